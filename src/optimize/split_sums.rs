//! Several sums of one body taken apart, what they share stored between.
//!
//! `sum i. let t = e(i); (f(i, t), g(i, t))`   is   `let t = for i. e(i); (sum i. f(i, t[i]), sum i. g(i, t[i]))`
//! where each of `f`, `g` runs loops of its own, more of them than `t` has axes: then storing `t` is small beside the
//! work on it, and each sum may become a reduction or a matrix product.
//!
//! `sum i. let t = e(i); (for k, l. a[i, k] * b[i, l], g(i, t))`   is   `(sum i. for k, l. a[i, k] * b[i, l], sum i. …)`
//! since the first, which has nothing of the others, is a matrix product.

use super::dissolve_singletons::{Around, peel};
use super::simplify::lets::project;
use super::{Context, Rewrite, rewrite_everywhere};
use crate::differentiate::scope::costs_nothing;
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;

pub fn split_sums(cx: &mut Context, exp: Exp) -> Exp {
    rewrite_everywhere(cx, exp, "split_sums", &rule)
}

fn rule(cx: &mut Context, exp: Exp) -> Rewrite {
    match exp {
        Exp::Sum(range, body) if splits(cx, &range, &body) => Ok(split(cx, *range, *body)),
        Exp::Sum(range, body) => match products_of(cx, &range, &body) {
            products if products.is_empty() => Err(Exp::Sum(range, body)),
            products => Ok(apart(cx, *range, *body, &products)),
        },
        exp => Err(exp),
    }
}

fn splits(cx: &Context, range: &Range, body: &Exp) -> bool {
    if exp_size(&range.lo).is_none() || exp_size(&range.hi).is_none() {
        return false;
    }
    let (bound, rest) = within_lets(body);
    let Exp::Tuple(parts) = rest else { return false };
    let depth = parts.iter().map(loop_depth).min().unwrap_or(0);
    let local = |s: &Size| s.mentions(range.index) || bound.iter().any(|v| s.mentions(*v));
    !bound.is_empty()
        && bound.iter().filter(|v| rest.mentions(**v)).all(|v| {
            let ty = cx.vars.ty(*v);
            ty.shape().len() < depth && !ty.shape().iter().any(local) && !matches!(ty, Type::Tuple(_))
        })
}

/// A body without its `let`s, and what these bind.
fn within_lets(body: &Exp) -> (Vec<Var>, &Exp) {
    let mut bound = vec![];
    let mut rest = body;
    while let Exp::Let(vars, _, inner) = rest {
        bound.extend(vars.iter().copied());
        rest = inner;
    }
    (bound, rest)
}

/// Which parts of a sum of several are sums of outer products that need nothing of what is computed for the others.
fn products_of(cx: &Context, range: &Range, body: &Exp) -> Vec<usize> {
    let (bound, rest) = within_lets(body);
    let Exp::Tuple(parts) = rest else { return vec![] };
    if !costs_nothing(cx.vars, &range.lo) || !costs_nothing(cx.vars, &range.hi) {
        return vec![];
    }
    let is_own = |part: &Exp| !part.mentions_any(&bound) && (is_outer_product(part, range.index) || is_sum_of_products(part));
    let products: Vec<usize> = (0..parts.len()).filter(|k| is_own(&parts[*k])).collect();
    if products.len() < parts.len() { products } else { vec![] }
}

fn is_sum_of_products(part: &Exp) -> bool {
    match part {
        Exp::Sum(range, e) => is_outer_product(e, range.index) || is_sum_of_products(e),
        _ => false,
    }
}

/// `for k, l. a[i, k] * b[i, l]`, wherever it goes that `i` does not tell.
fn is_outer_product(part: &Exp, i: Var) -> bool {
    let mut rest = part;
    while let Exp::Singleton(places, value, _) = rest {
        if places.iter().any(|(key, _)| key.mentions(i)) {
            return false;
        }
        rest = value;
    }
    let Exp::For(k, n, row) = rest else { return false };
    let Exp::For(l, m, element) = &**row else { return false };
    let Exp::Op(Op::Mul, args, _) = &**element else { return false };
    let reads = |e: &Exp, own: Var, other: Var| {
        matches!(e, Exp::Index(array, ..) if matches!(**array, Exp::Var(_))) && e.mentions(own) && e.mentions(i) && !e.mentions(other)
    };
    let (a, b) = (&args[0], &args[1]);
    !n.mentions(i) && !m.mentions(i) && !m.mentions(*k) && (reads(a, *k, *l) && reads(b, *l, *k) || reads(a, *l, *k) && reads(b, *k, *l))
}

/// These parts of a sum by themselves.
fn apart(cx: &mut Context, range: Range, body: Exp, products: &[usize]) -> Exp {
    cx.changed = true;
    let parts = match within_lets(&body).1 {
        Exp::Tuple(parts) => parts.clone(),
        _ => unreachable!("chosen for tuples"),
    };
    let others: Vec<usize> = (0..parts.len()).filter(|k| !products.contains(k)).collect();
    let (rest, kept) = project(&body, &others).expect("a tuple has parts");
    assert_eq!(kept, others, "nothing else is kept of a tuple");
    let names: Vec<Var> = others
        .iter()
        .map(|k| {
            let ty = type_of_exp(cx.vars, &parts[*k]);
            cx.vars.fresh("total", ty)
        })
        .collect();
    let mut results: Vec<Exp> = vec![];
    for (k, part) in parts.into_iter().enumerate() {
        results.push(match others.iter().position(|other| *other == k) {
            Some(at) => Exp::Var(names[at]),
            None => copy(cx.vars, &Exp::Sum(Box::new(range.clone()), Box::new(part)), &Substitution::default()),
        });
    }
    let_(names, Exp::Sum(Box::new(range), Box::new(rest)), tuple(results))
}

/// How many loops stand in one another, at most.
fn loop_depth(exp: &Exp) -> usize {
    let mut depth = 0;
    exp.for_each_child(&mut |e| depth = depth.max(loop_depth(e)));
    depth + matches!(exp, Exp::For(..) | Exp::Sum(..) | Exp::Reduce(..) | Exp::History(_) | Exp::Loop(_)) as usize
}

fn split(cx: &mut Context, range: Range, body: Exp) -> Exp {
    let (around, core) = peel(body);
    let bindings: Vec<(Vec<Var>, Exp)> = around
        .into_iter()
        .map(|a| match a {
            Around::Let(vars, value) => (vars, value),
            Around::Guard(_) => unreachable!("only lets stand around the tuple"),
        })
        .collect();
    let Exp::Tuple(parts) = core else { unreachable!("chosen for tuples") };
    let (lo, hi) = (exp_size(&range.lo).expect("a size"), exp_size(&range.hi).expect("a size"));
    let size = hi.sub(&lo);
    let stored: Vec<Var> = bindings.iter().flat_map(|(vars, _)| vars.clone()).filter(|v| parts.iter().any(|p| p.mentions(*v))).collect();

    let t = cx.vars.fresh(cx.vars.name(range.index).to_string(), Type::I64);
    let at = Substitution::from_iter([(range.index, size_exp(&Size::var(t).add(&lo)))]);
    let values = lets(bindings, tuple(stored.iter().map(|v| Exp::Var(*v)).collect()));
    let store = for_(t, size.clone(), copy(cx.vars, &values, &at));
    let arrays: Vec<Var> = stored
        .iter()
        .map(|v| {
            let (name, ty) = (cx.vars.name(*v).to_string(), cx.vars.ty(*v).with_axis(&size));
            cx.vars.fresh(name, ty)
        })
        .collect();
    let key = size_exp(&Size::var(range.index).sub(&lo));
    let reads: Vec<(Vec<Var>, Exp)> =
        stored.iter().zip(&arrays).map(|(v, a)| (vec![*v], index(*a, vec![key.clone()], Site::default()))).collect();
    let sums = parts
        .into_iter()
        .map(|part| {
            let one = Exp::Sum(Box::new(range.clone()), Box::new(lets(reads.clone(), part)));
            copy(cx.vars, &one, &Substitution::default())
        })
        .collect();
    let_(arrays, store, Exp::Tuple(sums))
}
