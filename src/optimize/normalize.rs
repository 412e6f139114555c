//! Loop normalisation: a sum that an equation leaves one term of is that term.
//!
//! `sum i in a..b. [i == e] * f(i)`   is   `[a <= e and e < b] * f(e)`

use super::simplify::arrays::{cheap, linear, put_in, total};
use super::simplify::guards::{conjunction, conjuncts};
use super::{Context, Rewrite, rewrite_everywhere};
use crate::ir::build::*;
use crate::ir::*;

pub fn normalize(cx: &mut Context, exp: Exp) -> Exp {
    rewrite_everywhere(cx, exp, &rule)
}

fn rule(cx: &mut Context, exp: Exp) -> Rewrite {
    let Exp::Sum(range, body) = exp else { return Err(exp) };
    let Exp::Guard(p, e) = *body else { return Err(Exp::Sum(range, body)) };
    let mut rest = conjuncts(&p);
    let found = rest.iter().enumerate().find_map(|(k, c)| solve(cx, c, range.index).map(|value| (k, value)));
    let Some((k, value)) = found else { return Err(Exp::Sum(range, Box::new(guard(*p, *e)))) };
    rest.remove(k);
    let Range { index: i, lo, hi } = *range;
    // The value stands in the conditions too, so it must be cheap to repeat. The others may fail outside the range.
    let within = op2(Op::And, op2(Op::Le, lo, value.clone()), op2(Op::Lt, value.clone(), hi));
    let body = match conjunction(rest) {
        Some(p) => guard(p, *e),
        None => *e,
    };
    Ok(guard(within, put_in(cx, i, value, body)))
}

/// The one index for which an equation holds.
fn solve(cx: &Context, condition: &Exp, i: Var) -> Option<Exp> {
    let Exp::Op(Op::Eq, sides) = condition else { return None };
    if let (Some(a), Some(b)) = (exp_size(&sides[0]), exp_size(&sides[1])) {
        let (sign, rest) = linear(&a.sub(&b), i)?;
        return Some(size_exp(&rest.scale(-sign))).filter(|e| total(cx, e));
    }
    match sides.as_slice() {
        // The value is computed although the range may be empty.
        [Exp::Var(v), e] | [e, Exp::Var(v)] if *v == i && !e.mentions(i) => (cheap(cx, e) && total(cx, e)).then(|| e.clone()),
        _ => None,
    }
}
