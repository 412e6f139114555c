//! Predicate solving: inequalities on a sum's index become its bounds.
//!
//! `sum i in a..b. [c <= i and i < d] * e`   is   `sum i in max(a, c)..min(b, d). e`
//!
//! A comparison with a minimum or a maximum is two: `[i < min(j, i + k)]` is `[i < j and 0 < k]`.

use super::simplify::arrays::{linear, total_with};
use super::simplify::guards::{conjunction, conjuncts};
use super::{Context, Rewrite, rewrite_everywhere};
use crate::ir::build::*;
use crate::ir::facts::Facts;
use crate::ir::*;
use crate::types::size::Atom;

pub fn solve_predicates(cx: &mut Context, exp: Exp) -> Exp {
    rewrite_everywhere(cx, exp, "solve_predicates", &rule)
}

fn rule(cx: &mut Context, exp: Exp) -> Rewrite {
    let Exp::Sum(range, body) = exp else { return Err(exp) };
    let Exp::Guard(p, e) = *body else { return Err(Exp::Sum(range, body)) };
    match solve(cx.vars, &cx.facts, &p, &range) {
        Some(solved) => Ok(Exp::Sum(Box::new(solved.range.clone()), Box::new(solved.under(*e)))),
        None => Err(Exp::Sum(range, Box::new(guard(*p, *e)))),
    }
}

/// A range that a condition has narrowed, and what is left of the condition.
pub struct Solved {
    pub range: Range,
    left: Option<Exp>,
}

impl Solved {
    pub fn under(self, e: Exp) -> Exp {
        match self.left {
            Some(p) => guard(p, e),
            None => e,
        }
    }
}

/// The part of a range in which a condition holds; `None` if it says nothing about the index.
pub fn solve(vars: &Vars, facts: &Facts, p: &Exp, range: &Range) -> Option<Solved> {
    let Range { index, mut lo, mut hi } = range.clone();
    let mut left = vec![];
    let mut solved = false;
    for c in conjuncts(p) {
        // A loop that never runs must not gain an error from its bounds.
        let parts: Vec<Size> = at_least_zero(&c)
            .into_iter()
            .filter(|size| total_with(vars, facts, &size_exp(size)))
            .flat_map(|size| split_extremes(&size))
            .collect();
        if !parts.iter().any(|part| bound(part, index).is_some()) {
            left.push(c);
            continue;
        }
        solved = true;
        for part in parts {
            match bound(&part, index) {
                Some(Bound::From(new)) => lo = larger(facts, lo, new),
                Some(Bound::Below(new)) => hi = smaller(facts, hi, new),
                None if facts.prove_nonneg(&part) => {}
                None => left.push(op2(Op::Le, i64(0), size_exp(&part))),
            }
        }
    }
    solved.then(|| Solved { range: Range { index, lo, hi }, left: conjunction(left) })
}

enum Bound {
    From(Size),
    Below(Size),
}

/// A comparison of integers as: these are at least zero.
fn at_least_zero(condition: &Exp) -> Vec<Size> {
    let Exp::Op(op @ (Op::Ge | Op::Gt | Op::Le | Op::Lt | Op::Eq), sides, _) = condition else { return vec![] };
    let Some((a, b)) = exp_size(&sides[0]).zip(exp_size(&sides[1])) else { return vec![] };
    let one = Size::constant(1);
    match op {
        Op::Ge => vec![a.sub(&b)],
        Op::Gt => vec![a.sub(&b).sub(&one)],
        Op::Le => vec![b.sub(&a)],
        Op::Lt => vec![b.sub(&a).sub(&one)],
        _ => vec![a.sub(&b), b.sub(&a)],
    }
}

/// Sizes that are all at least zero just where this one is: a minimum is where both its parts are, and so is the
/// negative of a maximum.
fn split_extremes(size: &Size) -> Vec<Size> {
    for (monomial, c) in size.terms() {
        let parts = match (&monomial[..], c > 0) {
            ([Atom::Min(a, b)], true) | ([Atom::Max(a, b)], false) => [a, b],
            _ => continue,
        };
        let extreme = match &monomial[0] {
            Atom::Min(a, b) => a.minimum(b),
            Atom::Max(a, b) => a.maximum(b),
            Atom::Var(_) | Atom::Div(..) | Atom::Mod(..) => unreachable!("chosen above"),
        };
        let rest = size.sub(&extreme.scale(c));
        return parts.into_iter().flat_map(|part| split_extremes(&rest.add(&part.scale(c)))).collect();
    }
    vec![size.clone()]
}

fn bound(at_least_zero: &Size, i: Var) -> Option<Bound> {
    let (sign, rest) = linear(at_least_zero, i)?;
    Some(if sign > 0 { Bound::From(rest.scale(-1)) } else { Bound::Below(rest.add(&Size::constant(1))) })
}

fn larger(facts: &Facts, a: Exp, b: Size) -> Exp {
    let Some(p) = exp_size(&a) else { return op2(Op::Max, a, size_exp(&b)) };
    if facts.prove_nonneg(&p.sub(&b)) {
        a
    } else if facts.prove_nonneg(&b.sub(&p)) {
        size_exp(&b)
    } else {
        size_exp(&p.maximum(&b))
    }
}
fn smaller(facts: &Facts, a: Exp, b: Size) -> Exp {
    let Some(p) = exp_size(&a) else { return op2(Op::Min, a, size_exp(&b)) };
    if facts.prove_nonneg(&b.sub(&p)) {
        a
    } else if facts.prove_nonneg(&p.sub(&b)) {
        size_exp(&b)
    } else {
        size_exp(&p.minimum(&b))
    }
}
