//! Sums of sums: what a loop's steps add to an array is added where it is.
//!
//! ```text
//! loop (x, total) = … do (…, for i, j. total[i, j] + sum k. a[i, k] * b[k, j])
//! ```
//! is
//! ```text
//! loop (x, total) = … do (…, total + for i, j. sum k. a[i, k] * b[k, j])
//! ```
//! where nothing else reads `total`: then no next total is built beside it, and the product of matrices that is added is one
//! that adds. Simplification writes additions of arrays element by element, so this is done last.

use super::{Context, Rewrite, rewrite_everywhere};
use crate::ir::build::*;
use crate::ir::destination::uses;
use crate::ir::*;

pub fn add_to_states(cx: &mut Context, exp: Exp) -> Exp {
    rewrite_everywhere(cx, exp, "add_to_states", &rule)
}

fn rule(cx: &mut Context, exp: Exp) -> Rewrite {
    let Exp::Loop(mut l) = exp else { return Err(exp) };
    let whole = l.state.len() == 1;
    for (k, v) in l.state.clone().into_iter().enumerate() {
        let read = matches!(&l.trip, Trip::While(condition) if condition.mentions(v));
        if !read && part(&l.body, k, whole).is_some_and(|e| without(cx, e, v).is_some()) && uses(v, &l.body) == 1 {
            l.body = with_part(l.body, k, whole, &mut |e| {
                let rest = without(cx, &e, v).expect("it was asked before");
                op2(Op::Add, Exp::Var(v), rest)
            });
            return Ok(Exp::Loop(l));
        }
    }
    Err(Exp::Loop(l))
}

/// The next value of a state.
fn part(body: &Exp, k: usize, whole: bool) -> Option<&Exp> {
    match body {
        Exp::Let(_, _, rest) => part(rest, k, whole),
        Exp::Tuple(parts) if !whole => Some(&parts[k]),
        e => whole.then_some(e),
    }
}

fn with_part(body: Exp, k: usize, whole: bool, f: &mut dyn FnMut(Exp) -> Exp) -> Exp {
    match body {
        Exp::Let(vars, value, rest) => let_(vars, *value, with_part(*rest, k, whole, f)),
        Exp::Tuple(parts) if !whole => Exp::Tuple(parts.into_iter().enumerate().map(|(j, e)| if j == k { f(e) } else { e }).collect()),
        e => f(e),
    }
}

/// `for i, j. v[i, j] + e`, where `e` has sums, without the element.
fn without(cx: &Context, e: &Exp, v: Var) -> Option<Exp> {
    let mut indices = vec![];
    let mut body = e;
    while let Exp::For(i, size, inner) = body {
        indices.push((*i, size.clone()));
        body = inner;
    }
    let place: Vec<Exp> = indices.iter().map(|(i, _)| Exp::Var(*i)).collect();
    let own = |e: &Exp| matches!(e, Exp::Index(array, keys, _) if **array == Exp::Var(v) && *keys == place);
    let rest = term_taken(body, &own)?;
    let all = type_of_exp(cx.vars, e) == *cx.vars.ty(v) && indices.len() == cx.vars.ty(v).shape().len();
    (all && has_sum(&rest)).then(|| indices.into_iter().rev().fold(rest, |e, (i, size)| for_(i, size, e)))
}

/// What is added to a term.
fn term_taken(e: &Exp, term: &dyn Fn(&Exp) -> bool) -> Option<Exp> {
    let Exp::Op(Op::Add, args, _) = e else { return None };
    let [a, b] = args.as_slice() else { return None };
    match (term(a), term(b)) {
        (true, _) => Some(b.clone()),
        (_, true) => Some(a.clone()),
        _ => term_taken(a, term).map(|a| add(a, b.clone())).or_else(|| term_taken(b, term).map(|b| add(a.clone(), b))),
    }
}

/// Whether a sum is sure to be evaluated.
fn has_sum(e: &Exp) -> bool {
    match e {
        Exp::Sum(..) => true,
        Exp::Op(_, args, _) => args.iter().any(has_sum),
        _ => false,
    }
}
