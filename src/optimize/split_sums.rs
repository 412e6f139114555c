//! Several sums of one body taken apart, what they share stored between.
//!
//! `sum i. let t = e(i); (f(i, t), g(i, t))`   is   `let t = for i. e(i); (sum i. f(i, t[i]), sum i. g(i, t[i]))`
//! where each of `f`, `g` runs loops of its own, more of them than `t` has axes: then storing `t` is small beside the
//! work on it, and each sum may become a reduction or a matrix product.

use super::dissolve_singletons::{Around, peel};
use super::{Context, Rewrite, rewrite_everywhere};
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;

pub fn split_sums(cx: &mut Context, exp: Exp) -> Exp {
    rewrite_everywhere(cx, exp, "split_sums", &rule)
}

fn rule(cx: &mut Context, exp: Exp) -> Rewrite {
    match exp {
        Exp::Sum(range, body) if splits(cx, &range, &body) => Ok(split(cx, *range, *body)),
        exp => Err(exp),
    }
}

fn splits(cx: &Context, range: &Range, body: &Exp) -> bool {
    if exp_size(&range.lo).is_none() || exp_size(&range.hi).is_none() {
        return false;
    }
    let mut bound = vec![];
    let mut rest = body;
    while let Exp::Let(vars, _, inner) = rest {
        bound.extend(vars.iter().copied());
        rest = inner;
    }
    let Exp::Tuple(parts) = rest else { return false };
    let depth = parts.iter().map(loop_depth).min().unwrap_or(0);
    let local = |s: &Size| s.mentions(range.index) || bound.iter().any(|v| s.mentions(*v));
    !bound.is_empty()
        && bound.iter().filter(|v| rest.mentions(**v)).all(|v| {
            let ty = cx.vars.ty(*v);
            ty.shape().len() < depth && !ty.shape().iter().any(local) && !matches!(ty, Type::Tuple(_))
        })
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
