//! Fusion of loops side by side: one traversal, several results.
//!
//! `(for i. a(i), for j. b(j))`   is   `for i. (a(i), b(i))`, in tuples and in `let`s one behind the other, where neither the
//! second nor what stands between them needs the first, and they read an array in common: loops that have nothing in common
//! each have their own best order. What both compute in a step is computed once.
//!
//! `let (x, y) = for i. (a(i), b(i)); (x, for j. c(y[j]))`   is   `let (x, z) = for i. (a(i), c(b(i))); (x, z)`, where that is
//! all that `y` is for.

use super::share::share;
use super::{Context, Rewrite, rewrite_everywhere};
use crate::ir::build::*;
use crate::ir::destination::uses;
use crate::ir::traverse::{Substitution, substitute};
use crate::ir::*;

pub fn fuse_siblings(cx: &mut Context, exp: Exp) -> Exp {
    rewrite_everywhere(cx, exp, "fuse_siblings", &rule)
}

fn rule(cx: &mut Context, exp: Exp) -> Rewrite {
    match exp {
        Exp::Let(first, value, body) => {
            if let Some(k) = (0..first.len()).find(|k| is_absorbed(&first, *k, &value, &body)) {
                return Ok(absorb(cx, first, k, *value, *body));
            }
            let Some(place) = sibling(cx, &first, &value, &body) else { return Err(let_(first, *value, *body)) };
            let (mut between, mut rest) = (vec![], *body);
            loop {
                let Exp::Let(second, b, after) = rest else { unreachable!("a loop was found there") };
                rest = *after;
                if between.len() == place {
                    let both = merge(cx, *value, *b, (first.len(), second.len()));
                    // What both compute is computed once.
                    let both = share(cx, both);
                    return Ok(lets(between, let_([first, second].concat(), both, rest)));
                }
                between.push((second, *b));
            }
        }
        // A tuple whose parts are all generated over one domain.
        Exp::Tuple(parts) if one_domain(&parts) && parts[1..].iter().all(|p| share_an_array(cx, &parts[0], p)) => {
            let mut merged = 0;
            let all = parts.into_iter().reduce(|a, b| {
                merged += 1;
                merge(cx, a, b, (merged, 1))
            });
            Ok(all.expect("two parts"))
        }
        exp => Err(exp),
    }
}

/// Whether one of several results of a loop is only read by another loop over the same domain, step by step.
fn is_absorbed(vars: &[Var], k: usize, value: &Exp, rest: &Exp) -> bool {
    let Exp::For(_, size, body) = value else { return false };
    vars.len() > 1 && has_parts(body, vars.len()) && uses(vars[k], rest) == 1 && next_step(vars, k, size, rest).is_some()
}

/// The loop in what follows that reads a result step by step, if all else that it needs is known before.
fn next_step<'e>(vars: &[Var], k: usize, size: &Size, rest: &'e Exp) -> Option<&'e Exp> {
    let mut bound: Vec<Var> = vars.iter().copied().filter(|v| *v != vars[k]).collect();
    step_in(rest, vars[k], size, &mut bound)
}

fn step_in<'e>(rest: &'e Exp, y: Var, size: &Size, bound: &mut Vec<Var>) -> Option<&'e Exp> {
    match rest {
        Exp::For(j, n, body) if n.axis() == size.axis() && reads_step(body, y, *j) => (!rest.mentions_any(bound)).then_some(rest),
        Exp::Let(vars, value, body) => step_in(value, y, size, bound).or_else(|| {
            bound.extend(vars);
            step_in(body, y, size, bound)
        }),
        Exp::Tuple(parts) => parts.iter().find_map(|part| step_in(part, y, size, &mut bound.clone())),
        _ => None,
    }
}

fn reads_step(exp: &Exp, y: Var, j: Var) -> bool {
    let mut found = matches!(exp, Exp::Index(array, keys, _) if **array == Exp::Var(y) && keys[0] == Exp::Var(j));
    exp.for_each_child(&mut |e| found = found || reads_step(e, y, j));
    found
}

fn absorb(cx: &mut Context, mut vars: Vec<Var>, k: usize, value: Exp, rest: Exp) -> Exp {
    let Exp::For(i, size, body) = value else { unreachable!("a loop absorbs") };
    let y = vars[k];
    let next = next_step(&vars, k, &size, &rest).expect("it was found").clone();
    let ty = type_of_exp(cx.vars, &next);
    let z = cx.vars.fresh_like(y, ty);
    let rest = replaced(rest, &|e| (*e == next).then_some(Exp::Var(z)));
    let Exp::For(j, _, step) = next else { unreachable!("a loop is absorbed") };
    let (mut bindings, results) = split(*body);
    let mut results = parts(results, vars.len());
    let element = cx.vars.fresh_like(y, type_of_exp(cx.vars, &results[k]));
    let step = replaced(*step, &|e| match e {
        Exp::Index(array, keys, _) if **array == Exp::Var(y) && keys.len() == 1 => Some(Exp::Var(element)),
        Exp::Index(array, keys, site) if **array == Exp::Var(y) => Some(index(element, keys[1..].to_vec(), *site)),
        _ => None,
    });
    let step = substitute(cx.vars, step, &Substitution::from_iter([(j, Exp::Var(i))]));
    bindings.push((vec![element], std::mem::replace(&mut results[k], step)));
    vars[k] = z;
    let_(vars, for_(i, size, lets(bindings, Exp::Tuple(results))), rest)
}

fn replaced(exp: Exp, by: &impl Fn(&Exp) -> Option<Exp>) -> Exp {
    match by(&exp) {
        Some(other) => other,
        None => exp.map_children(&mut |e| replaced(e, by)),
    }
}

/// How many `let`s stand between a loop and one of those behind it that can be one with it, none of which needs the first.
fn sibling(cx: &Context, first: &[Var], value: &Exp, body: &Exp) -> Option<usize> {
    let mut rest = body;
    let mut between = 0;
    while let Exp::Let(second, b, after) = rest {
        if b.mentions_any(first) {
            return None;
        }
        if merges(cx, value, b, (first.len(), second.len())) {
            return Some(between);
        }
        between += 1;
        rest = after;
    }
    None
}

/// Whether two loops, whose bodies have so many parts, can be one.
fn merges(cx: &Context, a: &Exp, b: &Exp, counts: (usize, usize)) -> bool {
    match (a, b) {
        (Exp::For(_, n, e), Exp::For(_, m, f)) => {
            n.axis() == m.axis() && has_parts(e, counts.0) && has_parts(f, counts.1) && share_an_array(cx, e, f)
        }
        _ => false,
    }
}

/// Two loops over one domain as one, where the results of their bodies are taken apart into so many parts each.
fn merge(cx: &mut Context, a: Exp, b: Exp, counts: (usize, usize)) -> Exp {
    let (Exp::For(i, n, e), Exp::For(j, _, f)) = (a, b) else { unreachable!("loops are merged") };
    let f = substitute(cx.vars, *f, &Substitution::from_iter([(j, Exp::Var(i))]));
    let (mut bindings, e) = split(*e);
    let (more, f) = split(f);
    bindings.extend(more);
    let parts = [parts(e, counts.0), parts(f, counts.1)].concat();
    for_(i, n, lets(bindings, Exp::Tuple(parts)))
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
