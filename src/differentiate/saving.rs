//! How much the loops of a function may keep for the way back of its derivative.

use crate::ir::{Body, Exp, Function};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Saving {
    /// What the way back needs, but where annotations ask for less.
    #[default]
    All,
    /// Loops are cut into blocks that keep so many bytes in all. A loop that keeps less is one block, and costs nothing more.
    Within { bytes: u64, depth: Depth },
}

/// Which loops are cut that have no annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Those that stand in no other loop.
    Outermost,
    All,
}

impl Saving {
    /// How many values of eight bytes each loop of a function may keep.
    pub fn values_each(self, f: &Function) -> Option<i64> {
        let (Saving::Within { bytes, .. }, Body::Exp(body)) = (self, &f.body) else { return None };
        Some(i64::try_from(bytes / 8).unwrap_or(i64::MAX) / loops(body).max(1))
    }
}

fn loops(exp: &Exp) -> i64 {
    let mut count = matches!(exp, Exp::Loop(_)) as i64;
    exp.for_each_child(&mut |e| count += loops(e));
    count
}
