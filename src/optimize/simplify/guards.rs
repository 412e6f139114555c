//! Guards and branches: a guard moves outwards, out of products, sums and generated arrays that it does not depend on,
//! so that it reaches the loop whose bounds it can narrow.

use super::super::{Context, Rewrite};
use super::arrays::total;
use crate::differentiate::scope::costs_nothing;
use crate::ir::build::*;
use crate::ir::facts::Facts;
use crate::ir::*;
use rustc_hash::FxHashSet;

pub fn rewrite(cx: &mut Context, exp: Exp) -> Rewrite {
    match exp {
        Exp::Guard(p, e) => guard_of(cx, *p, *e),
        Exp::If(p, a, b) if is_zero(&b) => Ok(guard(*p, *a)),
        Exp::If(p, a, b) if is_zero(&a) => Ok(guard(op1(Op::Not, *p), *b)),
        Exp::Op(op, args, site) => product(cx, op, args, site),
        // A loop that never runs must not gain an error from the condition.
        Exp::Sum(range, body) => match *body {
            Exp::Guard(p, e) if !p.mentions(range.index) && total(cx, &p) => Ok(guard(*p, Exp::Sum(range, e))),
            body => Err(Exp::Sum(range, Box::new(body))),
        },
        Exp::For(i, size, body) => match *body {
            Exp::Guard(p, e) if !p.mentions(i) && total(cx, &p) => Ok(guard(*p, for_(i, size, *e))),
            body => Err(Exp::For(i, size, Box::new(body))),
        },
        Exp::Let(vars, value, body) => match *body {
            // Under the guard the value is not evaluated in vain.
            Exp::Guard(p, e) if !p.mentions_any(&vars) => Ok(guard(*p, let_(vars, *value, *e))),
            body => match *value {
                Exp::Guard(p, e) if vanishes(&body, &mut vars.iter().copied().collect()) => Ok(guard(*p, let_(vars, *e, body))),
                value => Err(let_(vars, value, body)),
            },
        },
        // A loop that begins with zero and never leaves it.
        Exp::Loop(l) => match (&l.trip, guarded(cx, &l.init)) {
            (Trip::For(_), Some((p, init))) if vanishes(&l.body, &mut l.state.iter().copied().collect()) => {
                Ok(guard(p, Exp::Loop(Box::new(Iteration { init, ..*l }))))
            }
            _ => Err(Exp::Loop(l)),
        },
        exp => Err(exp),
    }
}

/// The condition outside which a value is zero, and the value under it.
fn guarded(cx: &Context, exp: &Exp) -> Option<(Exp, Exp)> {
    match exp {
        Exp::Guard(p, e) => Some(((**p).clone(), (**e).clone())),
        Exp::Singleton(places, value, site) if places.iter().all(|(k, s)| site.passed || cx.facts.in_range(k, s)) => {
            let (p, e) = guarded(cx, value)?;
            Some((p, singleton(places.clone(), e, *site)))
        }
        Exp::Tuple(parts) => {
            let (p, _) = parts.iter().find_map(|e| guarded(cx, e))?;
            let under = |e: &Exp| if is_zero(e) { Some(e.clone()) } else { guarded(cx, e).filter(|(q, _)| *q == p).map(|(_, e)| e) };
            Some((p.clone(), Exp::Tuple(parts.iter().map(under).collect::<Option<_>>()?)))
        }
        _ => None,
    }
}

/// Whether an expression is zero where these variables are.
pub fn vanishes(exp: &Exp, zeros: &mut FxHashSet<Var>) -> bool {
    match exp {
        Exp::Var(v) => zeros.contains(v),
        Exp::Index(e, _, _) | Exp::Singleton(_, e, _) | Exp::Guard(_, e) | Exp::For(_, _, e) | Exp::Sum(_, e) => vanishes(e, zeros),
        Exp::Tuple(parts) => parts.iter().all(|e| vanishes(e, zeros)),
        Exp::If(_, a, b) => vanishes(a, zeros) && vanishes(b, zeros),
        Exp::Op(Op::Mul, args, _) => args.iter().any(|e| vanishes(e, zeros)),
        Exp::Op(Op::Div | Op::Neg, args, _) => vanishes(&args[0], zeros),
        Exp::Op(Op::Add | Op::Sub, args, _) => args.iter().all(|e| vanishes(e, zeros)),
        Exp::Let(vars, value, body) => {
            if vanishes(value, zeros) {
                zeros.extend(vars);
            }
            vanishes(body, zeros)
        }
        Exp::Update(array, _, value, _) => vanishes(array, zeros) && vanishes(value, zeros),
        Exp::Loop(l) => {
            vanishes(&l.init, zeros) && {
                zeros.extend(&l.state);
                vanishes(&l.body, zeros)
            }
        }
        Exp::History(h) => {
            vanishes(&h.init, zeros) && {
                zeros.extend(&h.state);
                vanishes(&h.body, zeros)
            }
        }
        Exp::Lit(_) => is_zero(exp),
        Exp::Op(..) | Exp::Partial(..) | Exp::Reduce(..) | Exp::Array(_) | Exp::Call(..) => false,
    }
}

fn guard_of(cx: &mut Context, p: Exp, e: Exp) -> Rewrite {
    if is_zero(&e) {
        let stays = p == bool(false) && cx.differentiating && !matches!(e, Exp::Guard(..)) && is_of_floats(&type_of_exp(cx.vars, &e));
        return if stays { Err(guard(p, e)) } else { Ok(e) };
    }
    match cx.facts.decide(cx.vars, &p) {
        Some(true) => return Ok(e),
        Some(false) => {
            let ty = type_of_exp(cx.vars, &e);
            let zero = zero(cx.vars, &ty);
            return Ok(if cx.differentiating && is_of_floats(&ty) { guard(bool(false), zero) } else { zero });
        }
        None => {}
    }
    match e {
        // Both conditions are evaluated then, and a condition of several parts once for each.
        Exp::Guard(q, e) if never_fails(cx, &q) && costs_nothing(cx.vars, &q) => Ok(guard(op2(Op::And, p, *q), *e)),
        Exp::Tuple(parts) if never_fails(cx, &p) && costs_nothing(cx.vars, &p) => {
            Ok(Exp::Tuple(parts.into_iter().map(|e| guard(p.clone(), e)).collect()))
        }
        e => {
            // Parts of a conjunction that are known fall away.
            if let Exp::Op(Op::And, _, _) = &p {
                let conditions = conjuncts(&p);
                let left: Vec<Exp> = conditions.iter().filter(|c| cx.facts.decide(cx.vars, c) != Some(true)).cloned().collect();
                if left.len() < conditions.len() {
                    return Ok(match conjunction(left) {
                        Some(p) => guard(p, e),
                        None => e,
                    });
                }
            }
            Err(guard(p, e))
        }
    }
}

fn is_of_floats(ty: &Type) -> bool {
    match ty {
        Type::Scalar(s) | Type::Array(_, s) => s.is_float(),
        Type::Tuple(_) => false,
    }
}

/// Whether it is `[false] * 0.0`: zero because of a condition, as adjoints are, not because someone wrote so. Products with it
/// are zero, whatever the other factor.
pub fn is_nothing(exp: &Exp) -> bool {
    matches!(exp, Exp::Guard(p, zero) if **p == bool(false) && is_zero(zero))
}

/// The zero itself, where an expression is that.
pub fn plain_zero(exp: Exp) -> Exp {
    match exp {
        Exp::Guard(p, zero) if *p == bool(false) && is_zero(&zero) => *zero,
        exp => exp,
    }
}

/// The parts of a conjunction.
pub fn conjuncts(p: &Exp) -> Vec<Exp> {
    match p {
        Exp::Op(Op::And, parts, _) => parts.iter().flat_map(conjuncts).collect(),
        p => vec![p.clone()],
    }
}
pub fn conjunction(parts: Vec<Exp>) -> Option<Exp> {
    parts.into_iter().reduce(|a, b| op2(Op::And, a, b))
}

/// Whether a condition can be evaluated anywhere here: no reads, no division by what may be zero.
pub fn never_fails(cx: &Context, p: &Exp) -> bool {
    match p {
        Exp::Var(_) | Exp::Lit(_) => true,
        Exp::Op(op, args, site) => {
            let fits = *op == Op::ToI32 && site.passed;
            (fits || !may_fail(cx.vars, &cx.facts, *op, args)) && args.iter().all(|a| never_fails(cx, a))
        }
        Exp::If(p, a, b) => never_fails(cx, p) && never_fails(cx, a) && never_fails(cx, b),
        _ => false,
    }
}

/// Whether an operation fails on some operands. `+` on arrays does not; division does not by what is known to be positive.
pub fn may_fail(vars: &Vars, facts: &Facts, op: Op, args: &[Exp]) -> bool {
    if !op.ever_fails() {
        return false;
    }
    let kinds: Vec<Scalar> = args.iter().filter_map(|a| type_of_exp(vars, a).scalar()).collect();
    let divides = || match (op, args) {
        (Op::IDiv | Op::IMod, [_, Exp::Lit(c)]) => c.as_integer() != Some(0),
        (Op::IDiv | Op::IMod, [_, by]) => exp_size(by).is_some_and(|by| facts.prove_nonneg(&by.sub(&Size::constant(1)))),
        _ => false,
    };
    kinds.len() == args.len() && op.can_fail(&kinds) && !divides()
}

fn product(cx: &mut Context, op: Op, args: Vec<Exp>, site: Site) -> Rewrite {
    let is_guard = |e: &Exp| matches!(e, Exp::Guard(..));
    match (op, args.as_slice()) {
        (Op::Mul, [a, b]) if is_guard(a) || is_guard(b) => {}
        (Op::Div | Op::Neg | Op::Abs | Op::Sqrt, [a, ..]) if is_guard(a) => {}
        // A positive power of zero is zero.
        (Op::Pow, [a, Exp::Lit(k)]) if is_guard(a) && k.as_integer().is_some_and(|k| k > 0) => {}
        (Op::Add, [Exp::Guard(p, a), Exp::Guard(q, b)]) if p == q => return Ok(guard((**p).clone(), add((**a).clone(), (**b).clone()))),
        (Op::Sub, [Exp::Guard(p, a), Exp::Guard(q, b)]) if p == q => return Ok(guard((**p).clone(), sub((**a).clone(), (**b).clone()))),
        _ => return Err(Exp::Op(op, args, site)),
    }
    let float = scalar_of(cx.vars, &args[0]).is_some_and(Scalar::is_float)
        && (op == Op::Pow || args.iter().all(|a| scalar_of(cx.vars, a).is_some_and(Scalar::is_float)));
    if !float {
        return Err(Exp::Op(op, args, site));
    }
    let mut conditions = vec![];
    let mut args = args;
    let guarded = if op == Op::Mul { 2 } else { 1 };
    for arg in args.iter_mut().take(guarded) {
        if let Exp::Guard(p, e) = arg {
            conditions.push((**p).clone());
            *arg = (**e).clone();
        }
    }
    Ok(conditions.into_iter().rev().fold(Exp::Op(op, args, site), |e, p| guard(p, e)))
}
