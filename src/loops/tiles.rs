//! Loops of a body in lanes that run several steps at once, so that what all of these read is read once.
//!
//! * Sums: `for a { place(a) += sum over lanes of f(a) }`: the sums of four steps are made together. There may be several such
//!   places, and what they need.
//! * Rows: `for a { total = 0; for b { total += f(a, b) }; … }` has four steps of `a` in each of `b`, as far as all four have
//!   that step; the totals of all stay in registers.
//! * Outer products: `for a { for b { place(a, b) += sum over lanes of f(a) * g(b) } }`, where the places of successive `a`, or
//!   of successive `b`, stand side by side. Eight of these are a vector then, for which the lanes of the one factor are turned
//!   about, and no sum over the lanes of a vector is left to be made.

use super::*;

/// Rows at once.
pub const ROWS: usize = 4;
/// An outer product of fewer places in a row is not worth turning.
pub const LEAST_PLACES: i64 = 24;

#[derive(Clone, Debug, PartialEq)]
pub enum Tile {
    Sums(Ends),
    Rows(Ends),
    Outer(Outer),
}

/// Whether steps may be left over: none are in the calls that the code is for, which then says so of others (`Kernel::assumed`),
/// or in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    Even,
    Any,
}

/// Two loops that add products of a factor for each step of the one and a factor for each of the other, summed over the lanes.
#[derive(Clone, Debug, PartialEq)]
pub struct Outer {
    /// The index along which places stand side by side, and the other.
    pub along: Local,
    pub across: Local,
    pub along_factor: Expr,
    pub across_factor: Expr,
    /// Where the other factor stands as it is needed: an array of the lanes, and the place in it.
    pub across_rows: Option<(Buffer, Expr)>,
    /// Whether there are known to be enough places in a row.
    pub is_long: bool,
}

/// The body of a loop without the marks of a profile, which belong to the lines of its statements.
pub fn unmarked(l: &Loop) -> Vec<&Stmt> {
    l.body.iter().filter(|s| !matches!(s, Stmt::Mark(_))).collect()
}
