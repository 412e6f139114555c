//! Predicate solving: inequalities on a sum's index become its bounds.
//!
//! `sum i in a..b. [c <= i and i < d] * e`   is   `sum i in max(a, c)..min(b, d). e`
//!
//! A comparison with a minimum or a maximum is two: `[i < min(j, i + k)]` is `[i < j and 0 < k]`.

use super::simplify::arrays::{linear, total};
use super::simplify::guards::{conjunction, conjuncts};
use super::{Context, Rewrite, rewrite_everywhere};
use crate::ir::build::*;
use crate::ir::*;
use crate::types::size::Atom;

pub fn solve_predicates(cx: &mut Context, exp: Exp) -> Exp {
    rewrite_everywhere(cx, exp, &rule)
}

fn rule(cx: &mut Context, exp: Exp) -> Rewrite {
    let Exp::Sum(range, body) = exp else { return Err(exp) };
    let Exp::Guard(p, e) = *body else { return Err(Exp::Sum(range, body)) };
    let Range { index, mut lo, mut hi } = *range;
    let mut left = vec![];
    let mut solved = false;
    for c in conjuncts(&p) {
        // A loop that never runs must not gain an error from its bounds.
        let parts = at_least_zero(&c).filter(|size| total(cx, &size_exp(size))).map(|size| split_extremes(&size)).unwrap_or_default();
        if !parts.iter().any(|part| bound(part, index).is_some()) {
            left.push(c);
            continue;
        }
        solved = true;
        for part in parts {
            match bound(&part, index) {
                Some(Bound::From(new)) => lo = larger(cx, lo, new),
                Some(Bound::Below(new)) => hi = smaller(cx, hi, new),
                None if cx.facts.prove_nonneg(&part) => {}
                None => left.push(op2(Op::Le, i64(0), size_exp(&part))),
            }
        }
    }
    let range = Box::new(Range { index, lo, hi });
    if !solved {
        return Err(Exp::Sum(range, Box::new(guard(*p, *e))));
    }
    let body = match conjunction(left) {
        Some(p) => guard(p, *e),
        None => *e,
    };
    Ok(Exp::Sum(range, Box::new(body)))
}

enum Bound {
    From(Size),
    Below(Size),
}

/// A comparison of integers as: something is at least zero.
fn at_least_zero(condition: &Exp) -> Option<Size> {
    let Exp::Op(op, sides) = condition else { return None };
    let (a, b) = (exp_size(&sides[0])?, exp_size(&sides[1])?);
    let one = Size::constant(1);
    Some(match op {
        Op::Ge => a.sub(&b),
        Op::Gt => a.sub(&b).sub(&one),
        Op::Le => b.sub(&a),
        Op::Lt => b.sub(&a).sub(&one),
        _ => return None,
    })
}

/// Sizes that are all at least zero just where this one is: a minimum is where both its parts are, and so is the
/// negative of a maximum.
fn split_extremes(size: &Size) -> Vec<Size> {
    for (monomial, c) in size.terms() {
        let parts = match (monomial.as_slice(), c > 0) {
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

fn larger(cx: &Context, a: Exp, b: Size) -> Exp {
    let Some(p) = exp_size(&a) else { return op2(Op::Max, a, size_exp(&b)) };
    if cx.facts.prove_nonneg(&p.sub(&b)) {
        a
    } else if cx.facts.prove_nonneg(&b.sub(&p)) {
        size_exp(&b)
    } else {
        size_exp(&p.maximum(&b))
    }
}
fn smaller(cx: &Context, a: Exp, b: Size) -> Exp {
    let Some(p) = exp_size(&a) else { return op2(Op::Min, a, size_exp(&b)) };
    if cx.facts.prove_nonneg(&b.sub(&p)) {
        a
    } else if cx.facts.prove_nonneg(&p.sub(&b)) {
        size_exp(&b)
    } else {
        size_exp(&p.minimum(&b))
    }
}
