//! Sums of products of three and more become products of two matrices.
//!
//! ```text
//! for k, a, b. sum p. w[p, k] * r[p, a] * s[p, b]
//! ```
//! is, where `a` and `b` are short,
//! ```text
//! let t = for p, a, b. r[p, a] * s[p, b]; for k, a, b. sum p. w[p, k] * t[p, a, b]
//! ```
//! and where they are long, so that `t` would be larger than what is there,
//! ```text
//! for k. let t = for p, a. w[p, k] * r[p, a]; for a, b. sum p. t[p, a] * s[p, b]
//! ```
//! One factor stays by itself and has an axis of the result that the others have not, its rows; what the others are together
//! has the columns. A factor that is more than a read is stored, too. It runs among the last passes: as it would save nothing
//! where products were sums like others, these would be put in place again.

use super::simplify::arrays::{factors, total};
use super::tabulate::whole;
use super::{Context, Rewrite, rewrite_outside_in};
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy, substitute};
use crate::ir::*;

/// The least multiplications, rows, columns and terms that make a product of matrices worth storing its factors.
const LEAST_WORK: f64 = 16384.0;
const LEAST_ROWS: f64 = 8.0;
const LEAST_COLUMNS: f64 = 4.0;
const LEAST_TERMS: f64 = 16.0;
/// What a size is taken for that is not known.
const TYPICAL: f64 = 100.0;
/// More rows or columns than this make a product of matrices no faster.
const ENOUGH: f64 = 32.0;
/// How many elements are little in any case.
const LITTLE: f64 = 4096.0;

pub fn pair_factors(cx: &mut Context, exp: Exp) -> Exp {
    rewrite_outside_in(cx, exp, &rule)
}

fn rule(cx: &mut Context, exp: Exp) -> Rewrite {
    if let Some(new) = paired(cx, &exp) {
        return Ok(new);
    }
    match exp {
        Exp::For(i, n, body) => match *body {
            Exp::Tuple(parts) => beside(cx, i, n, parts),
            body => Err(for_(i, n, body)),
        },
        exp => Err(exp),
    }
}

/// Products beside what is computed in the same traversal of their first axis; that stays together.
fn beside(cx: &mut Context, i: Var, n: Size, parts: Vec<Exp>) -> Rewrite {
    let alone: Vec<Option<Exp>> = parts.iter().map(|part| paired(cx, &for_(i, n.clone(), part.clone()))).collect();
    if alone.iter().all(Option::is_none) {
        return Err(for_(i, n, Exp::Tuple(parts)));
    }
    let (mut names, mut rest, mut results) = (vec![], vec![], vec![]);
    for (part, alone) in parts.into_iter().zip(alone) {
        results.push(match alone {
            Some(product) => copy(cx.vars, &product, &Substitution::default()),
            None => {
                let ty = type_of_exp(cx.vars, &part).with_axis(&n);
                let name = cx.vars.fresh("t", ty);
                names.push(name);
                rest.push(part);
                Exp::Var(name)
            }
        });
    }
    if rest.is_empty() {
        return Ok(tuple(results));
    }
    let together = for_(i, n, tuple(rest));
    Ok(let_(names, together, tuple(results)))
}

/// `for axes. sum sums. product of factors`
struct Nest {
    axes: Vec<(Var, Size)>,
    sums: Vec<(Var, Size)>,
    factors: Vec<Exp>,
    /// Factors that are the same throughout.
    scales: Vec<Exp>,
}

/// The factor that stays by itself, and how many of the axes are loops around the product.
struct Choice {
    single: usize,
    around: usize,
    gain: f64,
}

fn paired(cx: &mut Context, exp: &Exp) -> Option<Exp> {
    let nest = nest(cx, exp)?;
    let count = |(_, size): &(Var, Size)| cx.vars.likely(size).or(size.as_constant()).map_or(TYPICAL, |n| n.max(0) as f64);
    let all = || nest.axes.iter().chain(&nest.sums);
    let terms: f64 = nest.sums.iter().map(count).product();
    if all().map(count).product::<f64>() < LEAST_WORK || terms < LEAST_TERMS {
        return None;
    }
    let largest = nest.factors.iter().flat_map(|e| reads(e)).map(|array| elements(cx, array)).fold(LITTLE, f64::max);
    let mut best: Option<Choice> = None;
    for single in 0..nest.factors.len() {
        let alone = &nest.factors[single];
        let others: Vec<&Exp> = nest.factors.iter().enumerate().filter(|(k, _)| *k != single).map(|(_, e)| e).collect();
        let has = |v: Var| (alone.mentions(v), others.iter().any(|e| e.mentions(v)));
        // Two reads are a product as they are.
        let is_plain = is_read(alone) && matches!(others.as_slice(), [other] if is_read(other));
        if is_plain || !nest.sums.iter().all(|(v, _)| has(*v) == (true, true)) {
            continue;
        }
        for around in 0..nest.axes.len() {
            let (outer, inner) = nest.axes.split_at(around);
            let (mut rows, mut columns) = (1.0, 1.0);
            let mut apart = true;
            for axis in inner {
                match has(axis.0) {
                    (true, false) => rows *= count(axis),
                    (false, true) => columns *= count(axis),
                    _ => apart = false,
                }
            }
            let (left, right) = (rows * terms, columns * terms);
            let stored = if is_read(alone) { right } else { right.max(left) };
            let needed = outer.iter().all(|(v, _)| has(*v) != (false, false));
            if !apart || !needed || rows < LEAST_ROWS || columns < LEAST_COLUMNS || stored > 2.0 * largest {
                continue;
            }
            let gain = rows.min(ENOUGH) * columns.min(ENOUGH) / (1.0 + around as f64);
            if best.as_ref().is_none_or(|b| gain > b.gain) {
                best = Some(Choice { single, around, gain });
            }
        }
    }
    let choice = best?;
    built(cx, nest, choice)
}

fn built(cx: &mut Context, nest: Nest, choice: Choice) -> Option<Exp> {
    let Nest { axes, sums, mut factors, scales } = nest;
    let single = factors.remove(choice.single);
    let (outer, inner) = axes.split_at(choice.around);
    let mut bindings = vec![];
    let mut stored = |cx: &mut Context, value: Exp| {
        let own: Vec<&(Var, Size)> = sums.iter().chain(inner).filter(|(v, _)| value.mentions(*v)).collect();
        let array = |e: Exp| own.iter().rev().fold(e, |e, (v, size)| for_(*v, size.clone(), e));
        let everywhere = outer.iter().rev().fold(array(value.clone()), |e, (v, size)| for_(*v, size.clone(), e));
        if !total(cx, &everywhere) {
            return None;
        }
        let ty = own.iter().rev().fold(type_of_exp(cx.vars, &value), |ty, (_, size)| ty.with_axis(size));
        let name = cx.vars.fresh("t", ty);
        bindings.push((vec![name], copy(cx.vars, &array(value), &Substitution::default())));
        Some(index(name, own.iter().map(|(v, _)| Exp::Var(*v)).collect(), Site::default()))
    };
    let left = if is_read(&single) { single } else { stored(cx, single)? };
    let right = match factors.as_slice() {
        [one] if is_read(one) => one.clone(),
        _ => stored(cx, factors.into_iter().reduce(mul)?)?,
    };
    let product = scales.into_iter().chain([left, right]).reduce(mul)?;
    let summed = sums.iter().rev().fold(product, |e, (v, size)| sum(*v, i64(0), size_exp(size), e));
    let inside = lets(bindings, inner.iter().rev().fold(summed, |e, (v, size)| for_(*v, size.clone(), e)));
    Some(outer.iter().rev().fold(inside, |e, (v, size)| for_(*v, size.clone(), e)))
}

/// Loops around a product of floats of one type.
fn nest(cx: &mut Context, exp: &Exp) -> Option<Nest> {
    let (mut axes, mut sums): (Vec<(Var, Size)>, Vec<(Var, Size)>) = (vec![], vec![]);
    let (mut values, mut scales, mut negative) = (Substitution::default(), vec![], false);
    let mut rest = exp;
    let mut kept;
    loop {
        match rest {
            Exp::For(i, size, body) => {
                axes.push((*i, size.clone()));
                rest = body;
            }
            Exp::Sum(range, body) => {
                sums.push((range.index, whole(range)?));
                rest = body;
            }
            // Values inside are parts of the product.
            Exp::Let(vars, value, body) if !axes.is_empty() || !sums.is_empty() => {
                let ([v], Type::Scalar(scalar)) = (vars.as_slice(), type_of_exp(cx.vars, value)) else { return None };
                if !scalar.is_float() && exp_size(value).is_none() {
                    return None;
                }
                values.insert(*v, substitute(cx.vars, (**value).clone(), &values));
                rest = body;
            }
            // A sum that is scaled.
            Exp::Op(Op::Mul | Op::Neg, ..) if !axes.is_empty() && sums.is_empty() => {
                let mut all = vec![];
                factored(rest, &mut all, &mut negative);
                let at = all.iter().position(|e| matches!(e, Exp::Sum(..)))?;
                kept = all.remove(at);
                scales = all;
                rest = &kept;
            }
            _ => break,
        }
    }
    if axes.len() < 2 || sums.is_empty() || !type_of_exp(cx.vars, rest).scalar().is_some_and(Scalar::is_float) {
        return None;
    }
    let indices: Vec<Var> = axes.iter().chain(&sums).map(|(v, _)| *v).collect();
    let fixed = |size: &Size| indices.iter().all(|v| !size.mentions(*v));
    if !axes.iter().chain(&sums).all(|(_, size)| fixed(size)) {
        return None;
    }
    let product = substitute(cx.vars, rest.clone(), &values);
    let mut all: Vec<Exp> = scales.into_iter().map(|e| substitute(cx.vars, e, &values)).collect();
    if !all.iter().all(|e| indices.iter().all(|v| !e.mentions(*v))) {
        return None;
    }
    factored(&product, &mut all, &mut negative);
    let scalar = type_of_exp(cx.vars, rest);
    let (factors, mut scales): (Vec<Exp>, Vec<Exp>) = all.into_iter().partition(|e| indices.iter().any(|v| e.mentions(*v)));
    if factors.len() < 2 || !factors.iter().all(|e| is_arithmetic(e) && type_of_exp(cx.vars, e) == scalar) {
        return None;
    }
    if negative {
        scales.push(float(scalar.scalar()?, -1.0));
    }
    Some(Nest { axes, sums, factors, scales })
}

fn factored(exp: &Exp, out: &mut Vec<Exp>, negative: &mut bool) {
    match exp {
        Exp::Op(Op::Mul, args, _) => factors(args).iter().for_each(|e| match e {
            Exp::Op(Op::Neg, ..) => factored(e, out, negative),
            e => out.push(e.clone()),
        }),
        Exp::Op(Op::Neg, args, _) => {
            *negative = !*negative;
            factored(&args[0], out, negative);
        }
        e => out.push(e.clone()),
    }
}

/// Operations on reads, without loops and conditions.
fn is_arithmetic(exp: &Exp) -> bool {
    let own = matches!(exp, Exp::Var(_) | Exp::Lit(_) | Exp::Op(..) | Exp::Index(..));
    let mut all = own;
    exp.for_each_child(&mut |e| all = all && is_arithmetic(e));
    all
}

fn is_read(exp: &Exp) -> bool {
    matches!(exp, Exp::Index(array, keys, _) if matches!(**array, Exp::Var(_)) && keys.iter().all(|k| exp_size(k).is_some()))
}

/// The arrays that an expression reads.
fn reads(exp: &Exp) -> Vec<Var> {
    let mut found = vec![];
    if let Exp::Index(array, ..) = exp {
        if let Exp::Var(v) = **array {
            found.push(v);
        }
    }
    exp.for_each_child(&mut |e| found.extend(reads(e)));
    found
}

fn elements(cx: &Context, array: Var) -> f64 {
    cx.vars.ty(array).shape().iter().map(|s| cx.vars.likely(s).or(s.as_constant()).map_or(TYPICAL, |n| n.max(0) as f64)).product()
}
