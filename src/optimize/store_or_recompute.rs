//! Whether an array is stored or its elements are computed again where they are read.
//!
//! An array whose element is a single cheap operation on reads (`+ - *`, no calls) is recomputed where it is read once: that
//! is no dearer than writing and reading it. So each read may cost one operation more than before this pass, and nothing else is redone.
//! Likewise several sums of one body that share only such values become sums of their own.
//!
//! The outermost go first: what reads a recomputed array is no single operation any more, so it is stored, and operations
//! do not pile up along a chain of arrays.

use super::simplify::lets::{inline_copies, reads_known};
use super::{Context, Rewrite};
use crate::differentiate::scope::costs_nothing;
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy, map_children_with_facts};
use crate::ir::*;

pub fn store_or_recompute(cx: &mut Context, exp: Exp) -> Exp {
    let mut exp = exp;
    loop {
        match rule(cx, exp) {
            Ok(new) => {
                cx.changed = true;
                exp = new;
            }
            Err(same) => {
                exp = same;
                break;
            }
        }
    }
    let mut facts = std::mem::take(&mut cx.facts);
    let exp = map_children_with_facts(exp, &mut facts, &mut |e, facts| {
        std::mem::swap(&mut cx.facts, facts);
        let e = store_or_recompute(cx, e);
        std::mem::swap(&mut cx.facts, facts);
        e
    });
    cx.facts = facts;
    exp
}

fn rule(cx: &mut Context, exp: Exp) -> Rewrite {
    if let Exp::Sum(range, body) = exp {
        return own_sums(cx, *range, *body);
    }
    let Exp::Let(vars, value, body) = exp else { return Err(exp) };
    let [v] = vars.as_slice() else { return Err(Exp::Let(vars, value, body)) };
    if is_light_array(cx, &value)
        && only_read(&body, *v)
        && (is_scaled(&value) || !is_read_again(&body, *v, &mut vec![]))
        && reads_known(cx, &body, *v)
    {
        let v = *v;
        return Ok(inline_copies(cx.vars, *body, v, &value));
    }
    Err(Exp::Let(vars, value, body))
}

/// `sum i. let t = a * b; (…t…, …t…)` with the light `t` computed in each part.
fn own_sums(cx: &mut Context, range: Range, body: Exp) -> Rewrite {
    let same = |range: Range, body: Exp| Err(Exp::Sum(Box::new(range), Box::new(body)));
    let mut bindings: Vec<(Var, &Exp)> = vec![];
    let mut rest = &body;
    while let Exp::Let(vars, value, inner) = rest {
        match vars.as_slice() {
            [v] if is_light(cx, value) && cx.vars.ty(*v).shape().is_empty() && !bindings.iter().any(|(w, _)| value.mentions(*w)) => {
                bindings.push((*v, value))
            }
            _ => return same(range, body),
        }
        rest = inner;
    }
    let Exp::Tuple(parts) = rest else { return same(range, body) };
    let parts = parts.clone();
    let bindings: Vec<(Vec<Var>, Exp)> = bindings.into_iter().map(|(v, e)| (vec![v], e.clone())).collect();
    let sums = parts
        .into_iter()
        .map(|part| {
            let one = Exp::Sum(Box::new(range.clone()), Box::new(lets(bindings.clone(), part)));
            copy(cx.vars, &one, &Substitution::default())
        })
        .collect();
    Ok(Exp::Tuple(sums))
}

/// One cheap operation on what costs nothing.
pub fn is_light(cx: &Context, exp: &Exp) -> bool {
    match exp {
        Exp::Op(Op::Add | Op::Sub | Op::Mul | Op::Neg, args, _) => {
            matches!(type_of_exp(cx.vars, exp), Type::Scalar(_)) && args.iter().all(|a| costs_nothing(cx.vars, a))
        }
        _ => costs_nothing(cx.vars, exp),
    }
}

fn is_light_array(cx: &Context, exp: &Exp) -> bool {
    match exp {
        Exp::For(_, _, body) => match &**body {
            Exp::For(..) => is_light_array(cx, body),
            body => !costs_nothing(cx.vars, body) && is_light(cx, body),
        },
        _ => false,
    }
}

/// Whether an array is another times a number: the number comes out of the sums that read it.
fn is_scaled(exp: &Exp) -> bool {
    match exp {
        Exp::For(_, _, body) => is_scaled(body),
        Exp::Op(Op::Neg, ..) => true,
        Exp::Op(Op::Mul, args, _) => args.iter().any(|a| matches!(a, Exp::Lit(_) | Exp::Var(_))),
        _ => false,
    }
}

/// Whether elements are read again in every step of some loop: then they are worth storing.
pub fn is_read_again(exp: &Exp, v: Var, loops: &mut Vec<Var>) -> bool {
    if let Exp::Index(array, keys, _) = exp {
        if **array == Exp::Var(v) && loops.iter().any(|l| !keys.iter().any(|k| k.mentions(*l))) {
            return true;
        }
    }
    let mark = loops.len();
    match exp {
        Exp::For(i, _, _) => loops.push(*i),
        Exp::Sum(range, _) | Exp::Reduce(_, range, _, _) => loops.push(range.index),
        Exp::History(h) => loops.push(h.index),
        Exp::Loop(l) => {
            if let Trip::For(range) = &l.trip {
                loops.push(range.index);
            }
        }
        _ => {}
    }
    let mut again = false;
    exp.for_each_child(&mut |e| again = again || is_read_again(e, v, loops));
    loops.truncate(mark);
    again
}

/// Whether every use of the variable is a read of one element.
fn only_read(exp: &Exp, v: Var) -> bool {
    match exp {
        Exp::Var(w) => *w != v,
        Exp::Index(array, keys, _) => (matches!(**array, Exp::Var(_)) || only_read(array, v)) && keys.iter().all(|k| only_read(k, v)),
        exp => {
            let mut all = true;
            exp.for_each_child(&mut |e| all = all && only_read(e, v));
            exp.for_each_size(&mut |s| all = all && !s.mentions(v));
            all
        }
    }
}
