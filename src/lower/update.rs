//! `array with [k, l] = value`: the array is copied to the destination and one place written, or only the place is
//! written where the array's memory is the destination (`binding.rs`, `iterate.rs`).

use super::*;

impl Lowering<'_> {
    pub fn store_update(&mut self, array: &Exp, keys: &[Exp], value: &Exp, site: Site, dest: &Dest) {
        self.store(array, dest);
        self.write(keys, value, site, dest);
    }

    /// `dest[keys] = value`
    pub fn write(&mut self, keys: &[Exp], value: &Exp, site: Site, dest: &Dest) {
        let place = self.written_place(keys, site, dest);
        self.store(value, &place);
    }

    pub fn written_place(&mut self, keys: &[Exp], site: Site, dest: &Dest) -> Dest {
        let Dest::Array(view) = dest else { panic!("lower: an update is of an array") };
        let keys: Vec<(Exp, Size)> = keys.iter().cloned().zip(view.shape.iter().cloned()).collect();
        self.settled_place(&keys, site, dest)
    }

    /// The place that the keys name, settled now: what the keys read may be written before it.
    pub fn settled_place(&mut self, keys: &[(Exp, Size)], site: Site, dest: &Dest) -> Dest {
        match self.place(keys, site, dest) {
            Dest::Scalar(Target::Place(buffer, offset)) => Dest::Scalar(Target::Place(buffer, self.named("at", offset))),
            Dest::Array(view) => {
                let offset = self.named("at", view.offset);
                Dest::Array(View { offset, ..view })
            }
            place => place,
        }
    }
}
