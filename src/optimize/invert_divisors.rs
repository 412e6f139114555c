//! What is divided by again and again is inverted once.
//!
//! ```text
//! let t = e; for i. x[i] / t   =   let t = e; let inverse = 1 / t; for i. x[i] * inverse
//! ```
//! and where loops divide by an array of which others go around its axes, by all of its elements:
//! ```text
//! for i, a. x[i, a] / t[a]     =   let inverse = for a. 1 / t[a]; for i, a. x[i, a] * inverse[a]
//! ```
//! The inverse of a denormal number is infinite where a quotient need not be, and that of a huge number is denormal. So both operands
//! are made larger first, or smaller, by a power of two: `(x * scale) * inverse`, `inverse = 1 / (t * scale)`. Where the quotient
//! is neither infinite nor zero that is exact, but for the rounding of the inverse and of one product. A root needs none of that: it
//! is zero, infinite or far from both.
//!
//! It runs last: to whoever reads a derivative a quotient says more.

use super::Context;
use super::simplify::arrays::total;
use crate::ir::build::*;
use crate::ir::traverse::map_children_with_facts;
use crate::ir::*;
use rustc_hash::FxHashSet;

/// How many quotients are worth it: what stands beside an inverse costs as much as one.
const LEAST: f64 = 3.0;
/// In the steps of a loop that wait for one another, where quotients beside each other take the time of one.
const LEAST_IN_STEPS: f64 = 9.0;
/// How many for each element of an array, which is read from memory.
const LEAST_EACH: f64 = 4.0;
/// What a size is taken for that is not known.
const TYPICAL: f64 = 100.0;
/// What is done by a condition is taken to be done so often.
const CHANCE: f64 = 0.25;

/// What something is divided by.
#[derive(Default)]
struct Divisors {
    vars: FxHashSet<Var>,
    /// Variables, also others, whose inverses are as good as they are.
    moderate: FxHashSet<Var>,
}

pub fn invert_divisors(cx: &mut Context, exp: Exp) -> Exp {
    let mut divisors = Divisors::default();
    collect(&exp, &mut divisors);
    if divisors.vars.is_empty() {
        return exp;
    }
    let free: Vec<Var> = exp.free_vars();
    let exp = everywhere(cx, exp, &mut divisors, LEAST);
    within(cx, &free, exp, &divisors, LEAST)
}

/// The variables that something is divided by, and the arrays.
fn collect(exp: &Exp, out: &mut Divisors) {
    if let Some((v, _)) = divisor(exp) {
        out.vars.insert(v);
    }
    if let Exp::Let(vars, value, _) = exp {
        let moderate = vars.iter().enumerate().filter(|(k, _)| is_moderate(value, (vars.len() > 1).then_some(*k)));
        out.moderate.extend(moderate.map(|(_, v)| *v));
    }
    exp.for_each_child(&mut |e| collect(e, out));
}

/// Whether a value, or a part of a tuple, is zero, infinite, or neither so small nor so large that its inverse would round otherwise.
fn is_moderate(exp: &Exp, part: Option<usize>) -> bool {
    match exp {
        Exp::Tuple(parts) => part.is_some_and(|k| is_moderate(&parts[k], None)),
        Exp::For(_, _, e) | Exp::Guard(_, e) | Exp::Let(_, _, e) => is_moderate(e, part),
        Exp::If(_, a, b) => is_moderate(a, part) && is_moderate(b, part),
        Exp::Op(Op::Sqrt, ..) => true,
        Exp::Op(Op::Neg | Op::Abs, args, _) => is_moderate(&args[0], None),
        Exp::Op(Op::Max | Op::Min, args, _) => args.iter().all(|e| is_moderate(e, None)),
        // Roots are not negative, so nothing is lost between them.
        Exp::Op(Op::Add, args, _) => args.iter().all(|e| matches!(e, Exp::Op(Op::Sqrt, ..))),
        Exp::Lit(lit) => lit.as_float().is_some_and(|x| x == 0.0 || (1e-30..1e30).contains(&x.abs())),
        _ => false,
    }
}

/// The variable that something is divided by, or the array and the keys of its element.
fn divisor(exp: &Exp) -> Option<(Var, &[Exp])> {
    let Exp::Op(Op::Div, args, _) = exp else { return None };
    match &args[1] {
        Exp::Var(v) => Some((*v, &[])),
        Exp::Index(array, keys, _) => match **array {
            Exp::Var(v) => Some((v, keys)),
            _ => None,
        },
        _ => None,
    }
}

/// The rule where variables are bound.
fn everywhere(cx: &mut Context, exp: Exp, divisors: &mut Divisors, least: f64) -> Exp {
    let inside = match exp {
        Exp::Loop(_) | Exp::History(_) => LEAST_IN_STEPS,
        Exp::For(..) | Exp::Sum(..) | Exp::Reduce(..) => LEAST,
        _ => least,
    };
    let (names, exp) = named(cx, exp);
    divisors.vars.extend(names.iter().map(|(v, _)| *v));
    let mut facts = std::mem::take(&mut cx.facts);
    let exp = map_children_with_facts(exp, &mut facts, &mut |e, facts| {
        std::mem::swap(&mut cx.facts, facts);
        let e = everywhere(cx, e, divisors, inside);
        std::mem::swap(&mut cx.facts, facts);
        e
    });
    cx.facts = facts;
    let exp = match exp {
        Exp::Let(vars, value, body) => {
            let body = within(cx, &vars, *body, divisors, inside);
            Exp::Let(vars, value, Box::new(body))
        }
        Exp::Loop(mut l) => {
            l.body = within(cx, &l.state, l.body, divisors, inside);
            Exp::Loop(l)
        }
        Exp::History(mut h) => {
            h.body = within(cx, &h.state, h.body, divisors, inside);
            Exp::History(h)
        }
        exp => exp,
    };
    names.into_iter().rev().fold(exp, |exp, (v, element)| {
        let exp = within(cx, &[v], exp, divisors, least);
        let_(vec![v], element, exp)
    })
}

/// A loop, and names for the elements of arrays that it divides by and that are the same in all of its steps.
fn named(cx: &mut Context, exp: Exp) -> (Vec<(Var, Exp)>, Exp) {
    if entered(&exp).is_none() {
        return (vec![], exp);
    }
    let (mut bound, mut elements) = (FxHashSet::default(), vec![]);
    elements_divided_by(&exp, &mut bound, &mut elements);
    elements.retain(|e| e.free_vars().iter().all(|v| !bound.contains(v)) && total(cx, e));
    let mut names = vec![];
    let mut exp = exp;
    for element in elements {
        let v = cx.vars.fresh("divisor", type_of_exp(cx.vars, &element));
        exp = divided_by(exp, &element, v);
        names.push((v, element));
    }
    (names, exp)
}

fn elements_divided_by(exp: &Exp, bound: &mut FxHashSet<Var>, out: &mut Vec<Exp>) {
    bound.extend(exp.binds());
    if let Exp::Op(Op::Div, args, _) = exp {
        if matches!(args[1], Exp::Index(..)) && !out.contains(&args[1]) {
            out.push(args[1].clone());
        }
    }
    exp.for_each_child(&mut |e| elements_divided_by(e, bound, out));
}

/// The same with a variable in place of what is divided by.
fn divided_by(exp: Exp, element: &Exp, v: Var) -> Exp {
    match exp.map_children(&mut |e| divided_by(e, element, v)) {
        Exp::Op(Op::Div, mut args, site) => {
            if args[1] == *element {
                args[1] = Exp::Var(v);
            }
            Exp::Op(Op::Div, args, site)
        }
        exp => exp,
    }
}

/// The body of variables, where those of them that it divides by often are inverted first.
fn within(cx: &mut Context, vars: &[Var], body: Exp, divisors: &Divisors, least: f64) -> Exp {
    let mut body = body;
    for v in vars.iter().filter(|v| divisors.vars.contains(v)) {
        let ty = cx.vars.ty(*v).clone();
        let (Type::Scalar(scalar) | Type::Array(_, scalar)) = ty else { continue };
        let least = if ty.shape().is_empty() { least } else { LEAST_EACH };
        if scalar.is_float() && quotients(cx, &body, *v, ty.shape(), &mut vec![], 1.0) >= least {
            body = inverted(cx, *v, scalar, ty.shape(), divisors.moderate.contains(v), body);
        }
    }
    body
}

/// How many quotients there are for each element.
fn quotients(cx: &Context, exp: &Exp, v: Var, shape: &[Size], loops: &mut Vec<(Var, Size)>, chance: f64) -> f64 {
    let mut count = 0.0;
    if divisor(exp).is_some_and(|(w, keys)| w == v && (keys.is_empty() || is_every(keys, shape, loops))) {
        let Some((_, keys)) = divisor(exp) else { return 0.0 };
        let steps = |size: &Size| cx.vars.likely(size).or(size.as_constant()).map_or(TYPICAL, |n| n as f64);
        let again = loops.iter().filter(|(i, _)| !keys.contains(&Exp::Var(*i)));
        count += again.map(|(_, size)| steps(size)).product::<f64>() * chance;
    }
    let chance = if matches!(exp, Exp::Guard(..) | Exp::If(..)) { chance * CHANCE } else { chance };
    let depth = loops.len();
    loops.extend(entered(exp));
    exp.for_each_child(&mut |e| count += quotients(cx, e, v, shape, loops, chance));
    loops.truncate(depth);
    count
}

/// The index of a loop, and how often it runs.
fn entered(exp: &Exp) -> Option<(Var, Size)> {
    match exp {
        Exp::For(i, size, _) => Some((*i, size.clone())),
        Exp::Sum(range, _) | Exp::Reduce(_, range, ..) => Some((range.index, extent(range))),
        Exp::History(h) => Some((h.index, h.size.clone())),
        Exp::Loop(l) => match &l.trip {
            Trip::For(range) => Some((range.index, extent(range))),
            Trip::While(_) => Some((*l.state.first()?, Size::var(*l.state.first()?))),
        },
        _ => None,
    }
}

/// How often a range is run through; where data say, that is a size of its own, which is not known.
fn extent(range: &Range) -> Size {
    match (exp_size(&range.lo), exp_size(&range.hi)) {
        (Some(lo), Some(hi)) => hi.sub(&lo),
        _ => Size::var(range.index),
    }
}

/// Whether keys are the indices of loops, each over an axis.
fn is_every(keys: &[Exp], shape: &[Size], loops: &[(Var, Size)]) -> bool {
    let distinct = keys.iter().enumerate().all(|(k, key)| !keys[..k].contains(key));
    let over = |(key, size): (&Exp, &Size)| loops.iter().any(|(i, n)| *key == Exp::Var(*i) && n == size);
    distinct && keys.len() == shape.len() && keys.iter().zip(shape).all(over)
}

/// A body behind the inverses of a divisor, with products for its quotients.
fn inverted(cx: &mut Context, v: Var, scalar: Scalar, shape: &[Size], moderate: bool, body: Exp) -> Exp {
    cx.changed = true;
    let ty = Type::array(shape.to_vec(), scalar);
    let axes: Vec<(Var, Size)> = shape.iter().map(|size| (cx.vars.fresh("i", Type::I64), size.clone())).collect();
    let element = || index(v, axes.iter().map(|(i, _)| Exp::Var(*i)).collect(), Site::default());
    if moderate {
        let inverse = cx.vars.fresh("inverse", ty);
        let body = multiplied(body, v, shape, &[inverse], &mut vec![]);
        let value = op2(Op::Div, float(scalar, 1.0), element());
        return let_(vec![inverse], axes.into_iter().rev().fold(value, |e, (i, size)| for_(i, size, e)), body);
    }
    let (least, most, larger) = match scalar {
        Scalar::F32 => (f32::MIN_POSITIVE as f64, 2f64.powi(100), 2f64.powi(30)),
        _ => (f64::MIN_POSITIVE, 2f64.powi(1000), 2f64.powi(60)),
    };
    let size = || op1(Op::Abs, element());
    let smaller = if_(op2(Op::Gt, size(), float(scalar, most)), float(scalar, 1.0 / larger), float(scalar, 1.0));
    let scale = if_(op2(Op::Lt, size(), float(scalar, least)), float(scalar, larger), smaller);
    let inverse = |scale: Var| op2(Op::Div, float(scalar, 1.0), mul(element(), scale));
    let names = [cx.vars.fresh("scale", ty.clone()), cx.vars.fresh("inverse", ty)];
    let body = multiplied(body, v, shape, &names, &mut vec![]);
    if shape.is_empty() {
        return let_(vec![names[0]], scale, let_(vec![names[1]], inverse(names[0]), body));
    }
    let part = cx.vars.fresh("scale", Type::Scalar(scalar));
    let both = let_(vec![part], scale, tuple(vec![Exp::Var(part), inverse(part)]));
    let every = axes.iter().rev().fold(both, |e, (i, size)| for_(*i, size.clone(), e));
    let_(names.to_vec(), every, body)
}

/// Products with scales and inverses instead of quotients.
fn multiplied(exp: Exp, v: Var, shape: &[Size], names: &[Var], loops: &mut Vec<(Var, Size)>) -> Exp {
    let depth = loops.len();
    loops.extend(entered(&exp));
    let exp = exp.map_children(&mut |e| multiplied(e, v, shape, names, loops));
    loops.truncate(depth);
    match divisor(&exp) {
        Some((w, keys)) if w == v && (keys.is_empty() || is_every(keys, shape, loops)) => {
            let keys = keys.to_vec();
            let Exp::Op(_, mut args, _) = exp else { panic!("invert_divisors: a quotient is an operation") };
            let dividend = args.remove(0);
            let mut factors: Vec<Exp> = names.iter().map(|name| index(*name, keys.clone(), Site::default())).collect();
            if !matches!(&dividend, Exp::Lit(lit) if lit.as_float() == Some(1.0)) {
                factors.insert(0, dividend);
            }
            factors.into_iter().reduce(mul).expect("an inverse at least")
        }
        _ => exp,
    }
}
