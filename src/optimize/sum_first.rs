//! Sums of linear functions: what is summed goes first.
//!
//! ```text
//! sum i. let y = …i…; (…, for a. sum b. m[a, b] * y[b])
//! ```
//! is
//! ```text
//! let (…, y) = sum i. let y = …i…; (…, y); (…, for a. sum b. m[a, b] * y[b])
//! ```
//! where what `y` is multiplied with is the same for all `i`: the product is done once, not for each. With a sum inside whose
//! index says where the result is added, `sum c. {c -> …}`, there is a `y` for each place.
//! It is done where the function reads elements of `y` again and again: else nothing is saved.

use super::simplify::arrays::total;
use super::store_or_recompute::is_read_again;
use super::{Context, Rewrite, rewrite_everywhere};
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;
use rustc_hash::FxHashSet;

pub fn sum_first(cx: &mut Context, exp: Exp) -> Exp {
    rewrite_everywhere(cx, exp, "sum_first", &rule)
}

/// A sum with all that stands around what it adds.
struct Nest {
    outer: Range,
    /// Statements, and behind them a sum inside, outermost first.
    sums: Vec<(Vec<(Vec<Var>, Exp)>, Range)>,
    statements: Vec<(Vec<Var>, Exp)>,
    parts: Vec<Exp>,
}

fn rule(cx: &mut Context, exp: Exp) -> Rewrite {
    let Exp::Sum(outer, body) = &exp else { return Err(exp) };
    let nest = peel((**outer).clone(), body);
    let varied = varied(&nest);
    let found: Vec<Option<Vec<Var>>> = nest.parts.iter().map(|part| summed(cx, &nest, &varied, part)).collect();
    if found.iter().all(Option::is_none) {
        return Err(exp);
    }
    let (mut parts, mut results) = (vec![], vec![]);
    let mut names = vec![];
    for (part, ys) in nest.parts.iter().zip(found) {
        let Some(ys) = ys else {
            let name = cx.vars.fresh("t", type_of_exp(cx.vars, part));
            parts.push(part.clone());
            names.push(name);
            results.push(Exp::Var(name));
            continue;
        };
        let (places, value) = match part {
            Exp::Singleton(places, value, _) => (places.clone(), (**value).clone()),
            value => (vec![], value.clone()),
        };
        let keys: Vec<Exp> = places.iter().map(|(k, _)| k.clone()).collect();
        let mut result = value;
        for y in ys {
            let one = match places.is_empty() {
                true => Exp::Var(y),
                false => singleton(places.clone(), Exp::Var(y), Site::default()),
            };
            let total = cx.vars.fresh_like(y, type_of_exp(cx.vars, &one));
            parts.push(one);
            names.push(total);
            result = read_total(cx, result, y, total, &keys);
        }
        let axes = places.iter().rev().map(|(key, size)| match key {
            Exp::Var(c) => (*c, size.clone()),
            _ => unreachable!("keys are indices of sums"),
        });
        let whole = axes.fold(result, |e, (c, size)| for_(c, size, e));
        let whole = copy(cx.vars, &whole, &Substitution::default());
        // Where nothing is summed, nothing is multiplied either.
        if !total(cx, &whole) {
            return Err(exp);
        }
        results.push(guard(op2(Op::Lt, nest.outer.lo.clone(), nest.outer.hi.clone()), whole));
    }
    let inner = lets(nest.statements, tuple(parts));
    let body = nest.sums.into_iter().rev().fold(inner, |e, (before, range)| lets(before, Exp::Sum(Box::new(range), Box::new(e))));
    Ok(let_(names, Exp::Sum(Box::new(nest.outer), Box::new(body)), tuple(results)))
}

fn peel(outer: Range, body: &Exp) -> Nest {
    let mut sums = vec![];
    let mut statements = vec![];
    let mut rest = body;
    loop {
        match rest {
            Exp::Let(vars, value, inner) => {
                statements.push((vars.clone(), (**value).clone()));
                rest = inner;
            }
            Exp::Sum(range, inner) => {
                sums.push((std::mem::take(&mut statements), (**range).clone()));
                rest = inner;
            }
            Exp::Tuple(parts) => return Nest { outer, sums, statements, parts: parts.clone() },
            rest => return Nest { outer, sums, statements, parts: vec![rest.clone()] },
        }
    }
}

/// What depends on the index of the outer sum.
fn varied(nest: &Nest) -> FxHashSet<Var> {
    let mut varied = FxHashSet::from_iter([nest.outer.index]);
    let all = nest.sums.iter().flat_map(|(before, _)| before).chain(&nest.statements);
    for (vars, value) in all {
        if value.free_vars().iter().any(|v| varied.contains(v)) {
            varied.extend(vars);
        }
    }
    varied
}

/// The arrays of which a part of a sum is a linear function, the same for all summands; `None` if it is not, or if that saves
/// nothing.
fn summed(cx: &Context, nest: &Nest, varied: &FxHashSet<Var>, part: &Exp) -> Option<Vec<Var>> {
    let indices: Vec<Var> = nest.sums.iter().map(|(_, range)| range.index).collect();
    let bounds_fixed = nest.sums.iter().all(|(_, range)| range.lo == i64(0) && !range.hi.free_vars().iter().any(|v| varied.contains(v)));
    let value = match part {
        Exp::Singleton(places, value, _) => {
            let at_indices = places.len() == indices.len()
                && places.iter().zip(&nest.sums).all(|((key, size), (_, range))| {
                    *key == Exp::Var(range.index) && exp_size(&range.hi).is_some_and(|hi| hi.axis() == size.axis())
                });
            if !at_indices {
                return None;
            }
            &**value
        }
        value if indices.is_empty() => value,
        _ => return None,
    };
    let own: FxHashSet<Var> =
        nest.sums.iter().flat_map(|(before, _)| before).chain(&nest.statements).flat_map(|(vars, _)| vars.iter().copied()).collect();
    let free = value.free_vars();
    let ys: Vec<Var> = free.iter().copied().filter(|v| varied.contains(v)).collect();
    let fixed_shape = |v: &Var| {
        let shape = cx.vars.ty(*v).shape();
        !shape.is_empty() && !shape.iter().any(|s| indices.iter().chain(&own).chain([&nest.outer.index]).any(|w| s.mentions(*w)))
    };
    let known_after = free.iter().all(|v| !own.contains(v) || ys.contains(v));
    let good = bounds_fixed && !ys.is_empty() && known_after && ys.iter().all(|y| own.contains(y) && fixed_shape(y));
    (good && is_linear(value, &ys) && ys.iter().any(|y| is_read_again(value, *y, &mut vec![]))).then_some(ys)
}

/// Whether every term has one read of the arrays as a factor, and nothing else depends on them.
fn is_linear(exp: &Exp, ys: &[Var]) -> bool {
    let constant = |e: &Exp| !ys.iter().any(|y| e.mentions(*y));
    match exp {
        Exp::Index(array, keys, _) => matches!(**array, Exp::Var(v) if ys.contains(&v)) && keys.iter().all(constant),
        Exp::Op(Op::Neg, args, _) => is_linear(&args[0], ys),
        Exp::Op(Op::Add | Op::Sub, args, _) => args.iter().all(|a| is_linear(a, ys)),
        Exp::Op(Op::Mul, args, _) => {
            args.iter().filter(|a| !constant(a)).count() == 1 && args.iter().all(|a| constant(a) || is_linear(a, ys))
        }
        Exp::Op(Op::Div, args, _) => constant(&args[1]) && is_linear(&args[0], ys),
        Exp::Sum(range, body) => constant(&range.lo) && constant(&range.hi) && is_linear(body, ys),
        Exp::For(_, _, body) => is_linear(body, ys),
        Exp::Guard(p, e) => constant(p) && is_linear(e, ys),
        Exp::Let(_, value, body) => constant(value) && is_linear(body, ys),
        Exp::Var(_)
        | Exp::Lit(_)
        | Exp::Op(..)
        | Exp::Partial(..)
        | Exp::Singleton(..)
        | Exp::Reduce(..)
        | Exp::History(_)
        | Exp::Loop(_)
        | Exp::Update(..)
        | Exp::If(..)
        | Exp::Tuple(_)
        | Exp::Array(_)
        | Exp::Call(..) => false,
    }
}

/// Reads of one summand's array from the total.
fn read_total(cx: &Context, exp: Exp, y: Var, total: Var, places: &[Exp]) -> Exp {
    match exp.map_children(&mut |e| read_total(cx, e, y, total, places)) {
        Exp::Index(array, keys, site) if *array == Exp::Var(y) => index(total, places.iter().cloned().chain(keys).collect(), site),
        exp => exp,
    }
}
