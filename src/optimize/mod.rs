//! Optimisation: one verb per file, each from expression to expression.

pub mod add_to_states;
pub mod count_bounded;
pub mod dissolve_singletons;
pub mod factor_out;
pub mod forget_states;
pub mod fuse;
pub mod fuse_siblings;
pub mod gather;
pub mod hoist;
pub mod inline;
pub mod interchange;
pub mod invert_divisors;
pub mod merge_sums;
pub mod normalize;
mod numbers;
pub mod open_records;
pub mod pair_factors;
pub mod preaccumulate;
pub mod products;
pub mod read_around;
pub mod reassociate;
pub mod share;
pub mod simplify;
pub mod skip_zeros;
pub mod slide;
pub mod solve_predicates;
pub mod split_sums;
pub mod store_or_recompute;
pub mod sum_first;
pub mod tabulate;
pub mod take_out;
pub mod unroll;

use crate::ir::facts::Facts;
use crate::ir::fingerprint::fingerprint;
use crate::ir::traverse::map_children_with_facts;
use crate::ir::*;
use rustc_hash::FxHashSet;
use std::hash::Hash;

/// What a rewriting pass carries: the variables, what is known here, and whether anything changed.
pub struct Context<'a> {
    pub vars: &'a mut Vars,
    pub facts: Facts,
    pub changed: bool,
    pub settled: Settled,
    /// Whether derivatives may still be taken of this. Until then zeros that conditions make stay zeros that products vanish
    /// with, as `[false] * 0.0`.
    pub differentiating: bool,
}

/// A rule: the rewritten expression, or the expression as it was.
pub type Rewrite = Result<Exp, Exp>;

/// Expressions in which rules apply nowhere, by fingerprints of the rules, the facts and the expressions: what a rule says
/// depends on these and on the types of variables alone.
#[derive(Debug, Default)]
pub struct Settled {
    found: FxHashSet<(u128, u128, u128)>,
    /// The types under which this was found.
    retyped: u64,
}

/// A rule, and what it is known by: the name of its pass, with all else that it depends on.
struct Known<'a> {
    rule: &'a dyn Fn(&mut Context, Exp) -> Rewrite,
    by: u128,
}

/// Applies a rule everywhere, from the inside out, at each place until it no longer applies. What a rule says must depend on
/// the expression, the facts, the types of variables and on `by` alone.
pub fn rewrite_everywhere(cx: &mut Context, exp: Exp, by: impl Hash, rule: &dyn Fn(&mut Context, Exp) -> Rewrite) -> Exp {
    rewrite(cx, exp, &Known { rule, by: fingerprint(&by) })
}

/// Applies a rule everywhere, from the outside in, at each place until it no longer applies.
pub fn rewrite_outside_in(cx: &mut Context, exp: Exp, rule: &dyn Fn(&mut Context, Exp) -> Rewrite) -> Exp {
    let mut exp = exp;
    loop {
        match rule(cx, exp) {
            Ok(new) => {
                cx.changed = true;
                exp = new;
            }
            Err(same) => return children(cx, same, &|cx, e| rewrite_outside_in(cx, e, rule)),
        }
    }
}

/// An expression with something done to its children, each where its facts hold.
pub fn children(cx: &mut Context, exp: Exp, f: &dyn Fn(&mut Context, Exp) -> Exp) -> Exp {
    let mut facts = std::mem::take(&mut cx.facts);
    let exp = map_children_with_facts(exp, &mut facts, &mut |e, facts| {
        std::mem::swap(&mut cx.facts, facts);
        let e = f(cx, e);
        std::mem::swap(&mut cx.facts, facts);
        e
    });
    cx.facts = facts;
    exp
}

/// Values of `let`s and bodies of binders are not looked at again where they are settled. Not so chains of `let`s, each of
/// which is a part of all before it.
fn rewrite(cx: &mut Context, exp: Exp, known: &Known) -> Exp {
    let parted = matches!(exp, Exp::Let(..) | Exp::For(..) | Exp::Sum(..) | Exp::Reduce(..) | Exp::History(_) | Exp::Loop(_));
    let mut facts = std::mem::take(&mut cx.facts);
    let exp = map_children_with_facts(exp, &mut facts, &mut |e, facts| {
        std::mem::swap(&mut cx.facts, facts);
        let whole = !parted || matches!(e, Exp::Var(_) | Exp::Lit(_) | Exp::Let(..));
        let e = if whole { rewrite(cx, e, known) } else { rewrite_unsettled(cx, e, known) };
        std::mem::swap(&mut cx.facts, facts);
        e
    });
    cx.facts = facts;
    let mut exp = exp;
    // A bound against rules that undo each other.
    for _ in 0..50 {
        match (known.rule)(cx, exp) {
            Ok(new) => {
                cx.changed = true;
                exp = new;
            }
            Err(same) => return same,
        }
    }
    exp
}

fn rewrite_unsettled(cx: &mut Context, exp: Exp, known: &Known) -> Exp {
    if cx.settled.retyped != cx.vars.retyped() {
        cx.settled = Settled { found: FxHashSet::default(), retyped: cx.vars.retyped() };
    }
    let key = (known.by, cx.facts.fingerprint(), fingerprint(&exp));
    if cx.settled.found.contains(&key) {
        return exp;
    }
    let before = std::mem::replace(&mut cx.changed, false);
    let exp = rewrite(cx, exp, known);
    if !cx.changed && cx.settled.retyped == cx.vars.retyped() {
        cx.settled.found.insert(key);
    }
    cx.changed |= before;
    exp
}
