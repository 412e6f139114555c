//! Fusion of loops side by side: one traversal, several results.
//!
//! `(for i. a(i), for j. b(j))`   is   `for i. (a(i), b(i))`, in tuples and in neighbouring `let`s, where the second does
//! not need the first, and they read an array in common: loops that have nothing in common each have their own best order.

use super::{Context, Rewrite, rewrite_everywhere};
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, substitute};
use crate::ir::*;

pub fn fuse_siblings(cx: &mut Context, exp: Exp) -> Exp {
    rewrite_everywhere(cx, exp, "fuse_siblings", &rule)
}

fn rule(cx: &mut Context, exp: Exp) -> Rewrite {
    match exp {
        Exp::Let(first, value, body) => {
            let (a, rest) = match (*value, *body) {
                (a @ Exp::For(..), Exp::Let(second, b, rest)) if matches!(*b, Exp::For(..)) && !b.mentions_any(&first) => {
                    (a, (second, *b, *rest))
                }
                (value, body) => return Err(let_(first, value, body)),
            };
            let (second, b, rest) = rest;
            match merge(cx, a, b, (first.len(), second.len())) {
                Ok(both) => Ok(let_([first, second].concat(), both, rest)),
                Err((a, b)) => Err(let_(first, a, let_(second, b, rest))),
            }
        }
        // A tuple whose parts are all generated over one domain.
        Exp::Tuple(parts) if one_domain(&parts) && parts[1..].iter().all(|p| share_an_array(cx, &parts[0], p)) => {
            let mut merged = 0;
            let all = parts.into_iter().reduce(|a, b| {
                merged += 1;
                merge(cx, a, b, (merged, 1)).unwrap_or_else(|_| unreachable!("of one domain"))
            });
            Ok(all.expect("two parts"))
        }
        exp => Err(exp),
    }
}

/// Two loops as one, where the results of their bodies are taken apart into so many parts each.
fn merge(cx: &mut Context, a: Exp, b: Exp, counts: (usize, usize)) -> Result<Exp, (Exp, Exp)> {
    match (a, b) {
        (Exp::For(i, n, e), Exp::For(j, m, f))
            if n.axis() == m.axis() && has_parts(&e, counts.0) && has_parts(&f, counts.1) && share_an_array(cx, &e, &f) =>
        {
            let f = substitute(cx.vars, *f, &Substitution::from_iter([(j, Exp::Var(i))]));
            let (mut bindings, e) = split(*e);
            let (more, f) = split(f);
            bindings.extend(more);
            let parts = [parts(e, counts.0), parts(f, counts.1)].concat();
            Ok(for_(i, n, lets(bindings, Exp::Tuple(parts))))
        }
        (a, b) => Err((a, b)),
    }
}

fn share_an_array(cx: &Context, a: &Exp, b: &Exp) -> bool {
    let known = b.free_vars();
    a.free_vars().iter().any(|v| matches!(cx.vars.ty(*v), Type::Array(..)) && known.contains(v))
}

fn split(exp: Exp) -> (Vec<(Vec<Var>, Exp)>, Exp) {
    let mut bindings = vec![];
    let mut rest = exp;
    while let Exp::Let(vars, value, body) = rest {
        bindings.push((vars, *value));
        rest = *body;
    }
    (bindings, rest)
}

/// Whether a body's result is so many parts: anything is one part, a tuple that stands there is its own parts.
fn has_parts(exp: &Exp, count: usize) -> bool {
    match exp {
        _ if count == 1 => true,
        Exp::Let(_, _, body) => has_parts(body, count),
        Exp::Tuple(parts) => parts.len() == count,
        _ => false,
    }
}

fn parts(exp: Exp, count: usize) -> Vec<Exp> {
    match exp {
        Exp::Tuple(parts) if count != 1 => parts,
        exp => vec![exp],
    }
}

fn one_domain(parts: &[Exp]) -> bool {
    let size = |e: &Exp| match e {
        Exp::For(_, size, _) if !is_zero(e) => Some(size.axis()),
        _ => None,
    };
    parts.len() > 1 && size(&parts[0]).is_some() && parts.iter().all(|p| size(p) == size(&parts[0]))
}
