//! Whether an array is stored or its elements are computed again where they are read.
//!
//! An array whose element is a single cheap operation on reads (`+ - *`, no calls) is recomputed where it is read once: that
//! is no dearer than writing and reading it. So each read may cost one operation more than before this pass, and nothing else is redone.
//! Likewise several sums of one body that share only such values become sums of their own. An array that a loop gives beside
//! others, as derivatives keep what their way back reads, is one like any other.
//!
//! The outermost go first: what reads a recomputed array is no single operation any more, so it is stored, and operations
//! do not pile up along a chain of arrays.

use super::simplify::lets::{inline_copies, reads_known};
use super::simplify::simplify;
use super::{Context, Rewrite, rewrite_outside_in};
use crate::differentiate::scope::costs_nothing;
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;

/// The most that is looked at of an array which a loop gives beside others.
const MOST_NODES: usize = 40;

pub fn store_or_recompute(cx: &mut Context, exp: Exp) -> Exp {
    rewrite_outside_in(cx, exp, &rule)
}

fn rule(cx: &mut Context, exp: Exp) -> Rewrite {
    if let Exp::Sum(range, body) = exp {
        return own_sums(cx, *range, *body);
    }
    let Exp::Let(vars, value, body) = exp else { return Err(exp) };
    let is_recomputed = |cx: &Context, v: Var, array: &Exp| {
        is_light_array(cx, array)
            && only_read(&body, v)
            && (is_scaled(array) || !is_read_again(&body, v, &mut vec![]))
            && reads_known(cx, &body, v)
    };
    if let [v] = vars.as_slice() {
        if is_recomputed(cx, *v, &value) {
            return Ok(inline_copies(cx.vars, *body, *v, &value));
        }
        return Err(Exp::Let(vars, value, body));
    }
    for (k, v) in vars.iter().enumerate() {
        let array = part(cx.vars, &value, k, vars.len()).filter(|array| array.node_count() <= MOST_NODES && body.mentions(*v));
        let Some(array) = array else { continue };
        let array = copy(cx.vars, &array, &Substitution::default());
        let array = simplify(cx, array);
        if is_recomputed(cx, *v, &array) {
            let body = inline_copies(cx.vars, *body, *v, &array);
            return Ok(Exp::Let(vars, value, Box::new(body)));
        }
    }
    Err(Exp::Let(vars, value, body))
}

/// One of several arrays that a loop gives, where it needs nothing that the loop computes but what it is made of alone.
fn part(vars: &mut Vars, exp: &Exp, k: usize, count: usize) -> Option<Exp> {
    match exp {
        Exp::For(i, size, body) => Some(for_(*i, size.clone(), part(vars, body, k, count)?)),
        Exp::Let(bound, value, body) => {
            let e = part(vars, body, k, count)?;
            match (e, bound.as_slice()) {
                (Exp::Var(v), [w]) if v == *w => Some((**value).clone()),
                (Exp::Var(v), several) if several.contains(&v) => part(vars, value, several.iter().position(|w| *w == v)?, several.len()),
                (e, bound) if !e.mentions_any(bound) => Some(e),
                (e, [w]) => Some(inline_copies(vars, e, *w, value)),
                _ => None,
            }
        }
        Exp::Tuple(parts) if parts.len() == count => Some(parts[k].clone()),
        _ => None,
    }
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
            // A bracket on indices is one around what reads the element, too.
            Exp::Guard(p, e) => is_comparison(cx, p) && is_light(cx, e),
            body => !costs_nothing(cx.vars, body) && is_light(cx, body),
        },
        _ => false,
    }
}

/// A comparison of what costs nothing.
fn is_comparison(cx: &Context, p: &Exp) -> bool {
    match p {
        Exp::Op(Op::And, args, _) => args.iter().all(|a| is_comparison(cx, a)),
        Exp::Op(Op::Lt | Op::Le | Op::Eq | Op::Ne, args, _) => args.iter().all(|a| exp_size(a).is_some() && costs_nothing(cx.vars, a)),
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
