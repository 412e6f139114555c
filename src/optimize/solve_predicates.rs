//! Predicate solving: inequalities on a sum's index become its bounds.
//!
//! `sum i in a..b. [c <= i and i < d] * e`   is   `sum i in max(a, c)..min(b, d). e`

use super::simplify::arrays::linear;
use super::simplify::guards::{conjunction, conjuncts};
use super::{Context, Rewrite, rewrite_everywhere};
use crate::ir::build::*;
use crate::ir::*;

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
        match bound(&c, index) {
            Some(Bound::From(new)) => {
                lo = larger(cx, lo, new);
                solved = true;
            }
            Some(Bound::Below(new)) => {
                hi = smaller(cx, hi, new);
                solved = true;
            }
            None => left.push(c),
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

fn bound(condition: &Exp, i: Var) -> Option<Bound> {
    let Exp::Op(op, sides) = condition else { return None };
    let (a, b) = (exp_size(&sides[0])?, exp_size(&sides[1])?);
    let one = Size::constant(1);
    // Each comparison as: something is at least zero.
    let at_least_zero = match op {
        Op::Ge => a.sub(&b),
        Op::Gt => a.sub(&b).sub(&one),
        Op::Le => b.sub(&a),
        Op::Lt => b.sub(&a).sub(&one),
        _ => return None,
    };
    let (sign, rest) = linear(&at_least_zero, i)?;
    Some(if sign > 0 { Bound::From(rest.scale(-1)) } else { Bound::Below(rest.add(&one)) })
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
