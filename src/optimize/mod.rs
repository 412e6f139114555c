//! Optimisation: one verb per file, each from expression to expression.

pub mod dissolve_singletons;
pub mod forget_states;
pub mod fuse;
pub mod fuse_siblings;
pub mod hoist;
pub mod inline;
pub mod normalize;
pub mod share;
pub mod simplify;
pub mod solve_predicates;
pub mod split_sums;
pub mod store_or_recompute;

use crate::ir::facts::Facts;
use crate::ir::traverse::map_children_with_facts;
use crate::ir::*;

/// What a rewriting pass carries: the variables, what is known here, and whether anything changed.
pub struct Context<'a> {
    pub vars: &'a mut Vars,
    pub facts: Facts,
    pub changed: bool,
}

/// A rule: the rewritten expression, or the expression as it was.
pub type Rewrite = Result<Exp, Exp>;

/// Applies a rule everywhere, from the inside out, at each place until it no longer applies.
pub fn rewrite_everywhere(cx: &mut Context, exp: Exp, rule: &dyn Fn(&mut Context, Exp) -> Rewrite) -> Exp {
    let mut facts = std::mem::take(&mut cx.facts);
    let exp = map_children_with_facts(exp, &mut facts, &mut |e, facts| {
        std::mem::swap(&mut cx.facts, facts);
        let e = rewrite_everywhere(cx, e, rule);
        std::mem::swap(&mut cx.facts, facts);
        e
    });
    cx.facts = facts;
    let mut exp = exp;
    // A bound against rules that undo each other.
    for _ in 0..50 {
        match rule(cx, exp) {
            Ok(new) => {
                cx.changed = true;
                exp = new;
            }
            Err(same) => return same,
        }
    }
    exp
}
