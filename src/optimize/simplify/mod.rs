//! Simplification to a fixed point: algebra, reads and generated arrays, guards and branches, `let`s.
//!
//! No rule makes a program cost more operations. Reads and generated arrays cancel, guards move outwards to the loops
//! that can use them, tuples are taken apart, and `let`s that are used once or cost nothing disappear.

mod algebra;
pub mod arrays;
pub mod guards;
pub mod lets;
mod one_place;
mod padded;
mod sink;
mod tuples;
mod views;

use super::{Context, Rewrite, rewrite_everywhere};
use crate::ir::*;

/// Rounds after which simplification stops in any case.
const ROUNDS: usize = 40;

pub fn simplify(cx: &mut Context, exp: Exp) -> Exp {
    let before = cx.changed;
    let mut any = false;
    let mut exp = exp;
    for _ in 0..ROUNDS {
        cx.changed = false;
        exp = rewrite_everywhere(cx, exp, "simplify", &rules);
        exp = lets::tidy(cx, exp);
        any |= cx.changed;
        if !cx.changed {
            break;
        }
    }
    cx.changed = before || any;
    exp
}

fn rules(cx: &mut Context, exp: Exp) -> Rewrite {
    let exp = match algebra::rewrite(cx, exp) {
        Ok(new) => return Ok(new),
        Err(same) => same,
    };
    let exp = match guards::rewrite(cx, exp) {
        Ok(new) => return Ok(new),
        Err(same) => same,
    };
    let exp = match tuples::rewrite(cx, exp) {
        Ok(new) => return Ok(new),
        Err(same) => same,
    };
    arrays::rewrite(cx, exp)
}
