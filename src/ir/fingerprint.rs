//! Fingerprints of expressions and facts: 128 bits, so that no two that are compared ever have the same by chance.
//!
//! What was found of an expression under some facts is remembered by their fingerprints, since keeping and comparing the
//! expressions themselves would take longer than finding it again.

use std::hash::{Hash, Hasher};

pub fn fingerprint(of: &impl Hash) -> u128 {
    let mut mixer = Mixer(0x243f_6a88_85a3_08d3_1319_8a2e_0370_7344);
    of.hash(&mut mixer);
    mixer.0
}

/// Multiplies and folds: what is mixed in comes to all bits, since every step brings the high ones down again.
struct Mixer(u128);

impl Mixer {
    fn mix(&mut self, word: u64) {
        let product = (self.0 ^ u128::from(word)).wrapping_mul(0xda94_2042_e4dd_58b5_9e37_79b9_7f4a_7c15);
        self.0 = product ^ (product >> 67);
    }
}

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        (self.0 >> 64) as u64 ^ self.0 as u64
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }
    fn write_u8(&mut self, x: u8) {
        self.mix(x.into());
    }
    fn write_u32(&mut self, x: u32) {
        self.mix(x.into());
    }
    fn write_u64(&mut self, x: u64) {
        self.mix(x);
    }
    fn write_u128(&mut self, x: u128) {
        self.mix(x as u64);
        self.mix((x >> 64) as u64);
    }
    fn write_usize(&mut self, x: usize) {
        self.mix(x as u64);
    }
}
