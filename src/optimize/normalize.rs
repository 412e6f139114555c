//! Loop normalisation: a sum that an equation leaves one term of is that term.
//!
//! `sum i in a..b. [i == e] * f(i)`   is   `[a <= e and e < b] * f(e)`
//!
//! Where an equation leaves one term of a part only, the sum is taken of each part:
//! `sum i. for j. [i == j] * a + b`   is   `(sum i. for j. [i == j] * a) + (sum i. for j. b)`

use super::simplify::arrays::{cheap, linear, put_in, total};
use super::simplify::guards::{conjunction, conjuncts};
use super::{Context, Rewrite, rewrite_everywhere};
use crate::differentiate::scope::costs_nothing;
use crate::ir::build::*;
use crate::ir::*;

pub fn normalize(cx: &mut Context, exp: Exp) -> Exp {
    rewrite_everywhere(cx, exp, "normalize", &rule)
}

fn rule(cx: &mut Context, exp: Exp) -> Rewrite {
    one_term(cx, exp).or_else(|exp| by_parts(cx, exp))
}

/// The sum of each of two added parts, where an equation between the index and others leaves one term of either. What
/// costs operations must not be needed by both.
fn by_parts(cx: &mut Context, exp: Exp) -> Rewrite {
    let Exp::Sum(range, body) = &exp else { return Err(exp) };
    let mut bindings: Vec<(&Vec<Var>, &Exp)> = vec![];
    let mut rest = &**body;
    while let Exp::Let(vars, value, inner) = rest {
        bindings.push((vars, value));
        rest = inner;
    }
    let mut loops = vec![];
    while let Exp::For(j, size, inner) = rest {
        loops.push((*j, size));
        rest = inner;
    }
    let Exp::Op(Op::Add, parts, _) = rest else { return Err(exp) };
    let pinned = |e: &Exp| matches!(e, Exp::Guard(p, _) if conjuncts(p).iter().any(|c| relates(c, range.index)));
    if loops.is_empty() || !parts.iter().any(pinned) {
        return Err(exp);
    }
    let needed = |part: &Exp| -> Vec<usize> {
        let mut wanted = part.free_vars();
        let mut found = vec![];
        for (k, (vars, value)) in bindings.iter().enumerate().rev() {
            if vars.iter().any(|v| wanted.contains(v)) {
                wanted.extend(value.free_vars());
                found.push(k);
            }
        }
        found.retain(|k| !costs_nothing(cx.vars, bindings[*k].1));
        found
    };
    let costly: Vec<Vec<usize>> = parts.iter().map(needed).collect();
    if (0..bindings.len()).any(|k| costly.iter().filter(|c| c.contains(&k)).count() > 1) {
        return Err(exp);
    }
    let sums = parts
        .iter()
        .map(|part| {
            let generated = loops.iter().rev().fold(part.clone(), |e, (j, size)| for_(*j, (*size).clone(), e));
            let body = lets(bindings.iter().map(|(vars, value)| ((*vars).clone(), (*value).clone())).collect(), generated);
            traverse::copy(cx.vars, &Exp::Sum(range.clone(), Box::new(body)), &traverse::Substitution::default())
        })
        .collect();
    Ok(Exp::Op(Op::Add, sums, Site::default()))
}

/// Whether a condition is an equation that can be solved for the index.
fn relates(condition: &Exp, i: Var) -> bool {
    let Exp::Op(Op::Eq, sides, _) = condition else { return false };
    match (exp_size(&sides[0]), exp_size(&sides[1])) {
        (Some(a), Some(b)) => linear(&a.sub(&b), i).is_some(),
        _ => false,
    }
}

fn one_term(cx: &mut Context, exp: Exp) -> Rewrite {
    let Exp::Sum(range, body) = exp else { return Err(exp) };
    let Exp::Guard(p, e) = *body else { return Err(Exp::Sum(range, body)) };
    let mut rest = conjuncts(&p);
    // A value that can fail is computed only where the range has an index, and behind the conditions in front of it.
    let usable = |k: usize, value: &Exp| k == 0 || total(cx, value);
    let found = rest.iter().enumerate().find_map(|(k, c)| Some((k, solve(cx, c, range.index).filter(|value| usable(k, value))?)));
    let Some((k, value)) = found else { return Err(Exp::Sum(range, Box::new(guard(*p, *e)))) };
    rest.remove(k);
    let Range { index: i, lo, hi } = *range;
    // The value stands in the conditions too, so it must be cheap to repeat. The others may fail outside the range.
    let some = op2(Op::Lt, lo.clone(), hi.clone());
    let runs = total(cx, &value) || cx.facts.decide(cx.vars, &some) == Some(true);
    let within = op2(Op::And, op2(Op::Le, lo, value.clone()), op2(Op::Lt, value.clone(), hi));
    let body = match conjunction(rest) {
        Some(p) => guard(p, *e),
        None => *e,
    };
    let term = guard(within, put_in(cx, i, value, body));
    Ok(if runs { term } else { guard(some, term) })
}

/// The one index for which an equation holds.
pub fn solve(cx: &Context, condition: &Exp, i: Var) -> Option<Exp> {
    let Exp::Op(Op::Eq, sides, _) = condition else { return None };
    if let (Some(a), Some(b)) = (exp_size(&sides[0]), exp_size(&sides[1])) {
        let (sign, rest) = linear(&a.sub(&b), i)?;
        return Some(size_exp(&rest.scale(-sign)));
    }
    match sides.as_slice() {
        [Exp::Var(v), e] | [e, Exp::Var(v)] if *v == i && !e.mentions(i) => cheap(cx, e).then(|| e.clone()),
        _ => None,
    }
}
