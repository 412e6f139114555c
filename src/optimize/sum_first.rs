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
//!
//! `for a. sum i. sum b. m[a, b] * y[i, b]`, where the summands' arrays are one, is `let t = sum i. y[i]; for a. sum b. m[a, b] * t[b]`.

use super::simplify::arrays::total;
use super::store_or_recompute::is_read_again;
use super::{Context, Rewrite, rewrite_everywhere};
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;
use rustc_hash::FxHashSet;

pub fn sum_first(cx: &mut Context, exp: Exp) -> Exp {
    let exp = rewrite_everywhere(cx, exp, "sum_first", &rule);
    rewrite_everywhere(cx, exp, "sum_first of rows", &rows_rule)
}

/// In a nest of `for`s, a sum of linear functions of the rows of an array.
fn rows_rule(cx: &mut Context, exp: Exp) -> Rewrite {
    let mut loops = vec![];
    let mut body = &exp;
    while let Exp::For(i, _, inner) = body {
        loops.push(*i);
        body = inner;
    }
    if loops.is_empty() {
        return Err(exp);
    }
    let Some((range, summand, ys)) = sum_of_rows(cx, body, &loops) else { return Err(exp) };
    let outside = exp.free_vars();
    let known = |e: &Exp| e.free_vars().iter().all(|v| outside.contains(v));
    if !known(&range.lo) || !known(&range.hi) || !ys.iter().all(|y| outside.contains(y)) {
        return Err(exp);
    }
    let mut statements = vec![];
    let mut result = summand.clone();
    for y in ys {
        let i = cx.vars.fresh_like(range.index, Type::I64);
        let row = index(y, vec![Exp::Var(i)], Site::default());
        let all = Exp::Sum(Box::new(Range { index: i, lo: range.lo.clone(), hi: range.hi.clone() }), Box::new(row));
        let total = cx.vars.fresh_like(y, type_of_exp(cx.vars, &all));
        result = read_sum(result, y, total);
        statements.push((vec![total], all));
    }
    // Where nothing is summed, nothing is multiplied either.
    let result = guard(op2(Op::Lt, range.lo.clone(), range.hi.clone()), result);
    let sum = Exp::Sum(Box::new(range), Box::new(summand));
    let exp = put_once(exp, &sum, &mut Some(result));
    Ok(lets(statements, exp))
}

/// The sum in the body of a nest, its summand, and the arrays whose rows that is a linear function of, each of which is read again
/// and again: there is a loop around that says nothing of which element is read, and one for each axis that does.
fn sum_of_rows(cx: &Context, body: &Exp, loops: &[Var]) -> Option<(Range, Exp, Vec<Var>)> {
    match body {
        Exp::Sum(range, summand) => {
            let whole = |y: Var| {
                let size = cx.vars.ty(y).shape().first();
                range.lo == i64(0) && exp_size(&range.hi).zip(size).is_some_and(|(hi, size)| hi.axis() == size.axis())
            };
            let mut reads = vec![];
            let plain = find_reads(summand, range.index, &mut reads);
            let inner = inner_sums(summand);
            let around: Vec<Var> = loops.iter().chain(&inner).copied().collect();
            let of_indices = |keys: &[Exp]| {
                let vars: FxHashSet<Var> = keys.iter().filter_map(|k| if let Exp::Var(v) = k { Some(*v) } else { None }).collect();
                vars.len() == keys.len() && vars.iter().all(|v| around.contains(v))
            };
            let again = reads.iter().any(|(_, keys)| loops.iter().any(|l| !keys.contains(&Exp::Var(*l))));
            let mut ys: Vec<Var> = reads.iter().map(|(y, _)| *y).collect();
            ys.sort();
            ys.dedup();
            let good = plain
                && again
                && !ys.is_empty()
                && !loops.iter().any(|l| range.lo.mentions(*l) || range.hi.mentions(*l))
                && ys.iter().all(|y| whole(*y) && cx.vars.ty(*y).shape().len() > 1)
                && reads.iter().all(|(y, keys)| keys.len() + 1 == cx.vars.ty(*y).shape().len() && of_indices(keys))
                && is_linear(summand, &ys);
            good.then(|| ((**range).clone(), (**summand).clone(), ys)).or_else(|| sum_of_rows(cx, summand, loops))
        }
        Exp::Op(_, parts, _) | Exp::Tuple(parts) => parts.iter().find_map(|e| sum_of_rows(cx, e, loops)),
        Exp::Let(_, value, body) => sum_of_rows(cx, value, loops).or_else(|| sum_of_rows(cx, body, loops)),
        Exp::Guard(_, e) => sum_of_rows(cx, e, loops),
        _ => None,
    }
}

/// The reads of rows at an index, `y[i, …]`; whether the index stands nowhere else.
fn find_reads(exp: &Exp, i: Var, reads: &mut Vec<(Var, Vec<Exp>)>) -> bool {
    match exp {
        Exp::Index(array, keys, _) if keys[0] == Exp::Var(i) => match **array {
            Exp::Var(y) if !keys[1..].iter().any(|k| k.mentions(i)) => {
                reads.push((y, keys[1..].to_vec()));
                true
            }
            _ => false,
        },
        Exp::Var(v) => *v != i,
        exp => {
            let mut fine = true;
            exp.for_each_size(&mut |s| fine &= !s.mentions(i));
            exp.for_each_child(&mut |e| fine = fine && find_reads(e, i, reads));
            fine
        }
    }
}

fn inner_sums(exp: &Exp) -> Vec<Var> {
    let mut found = if let Exp::Sum(range, _) = exp { vec![range.index] } else { vec![] };
    exp.for_each_child(&mut |e| found.extend(inner_sums(e)));
    found
}

/// Reads of rows from their sum.
fn read_sum(exp: Exp, y: Var, total: Var) -> Exp {
    match exp.map_children(&mut |e| read_sum(e, y, total)) {
        Exp::Index(array, keys, site) if *array == Exp::Var(y) => index(total, keys.into_iter().skip(1).collect(), site),
        exp => exp,
    }
}

/// Puts a new expression in the first place of an old one.
fn put_once(exp: Exp, old: &Exp, new: &mut Option<Exp>) -> Exp {
    if exp == *old {
        if let Some(new) = new.take() {
            return new;
        }
    }
    exp.map_children(&mut |e| if new.is_some() { put_once(e, old, new) } else { e })
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
