//! Scalars: constants, the laws of rings, integers in normal form, comparisons that are known.
//!
//! Float products with zero stay: `0 * x` is no zero where `x` is infinite. Zeros of derivatives never get here, they
//! are symbolic or guards.

use super::super::{Context, Rewrite};
use super::guards::{is_nothing, plain_zero};
use crate::ir::build::*;
use crate::ir::*;

pub fn rewrite(cx: &mut Context, exp: Exp) -> Rewrite {
    match exp {
        Exp::Op(op, args, site) => operation(cx, op, args, site),
        Exp::If(p, a, b) => match *p {
            Exp::Lit(Lit::Bool(p)) => Ok(if p { *a } else { *b }),
            p if a == b => {
                let _ = p;
                Ok(*a)
            }
            p => match cx.facts.decide(cx.vars, &p) {
                Some(true) => Ok(*a),
                Some(false) => Ok(*b),
                None => Err(if_(p, *a, *b)),
            },
        },
        exp => Err(exp),
    }
}

fn operation(cx: &mut Context, op: Op, args: Vec<Exp>, site: Site) -> Rewrite {
    if let Some(literals) = args.iter().map(|a| if let Exp::Lit(l) = a { Some(*l) } else { None }).collect::<Option<Vec<_>>>() {
        if let Ok(value) = op.eval(&literals) {
            return Ok(Exp::Lit(value));
        }
    }
    let vanishes = matches!(op, Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Neg);
    if !vanishes && args.iter().any(is_nothing) {
        return Ok(Exp::Op(op, args.into_iter().map(plain_zero).collect(), site));
    }
    let exp = Exp::Op(op, args, site);
    let Exp::Op(_, args, _) = &exp else { unreachable!() };
    let integer = scalar_of(cx.vars, &args[0]) == Some(Scalar::I64);
    if integer {
        return integers(cx, exp);
    }
    let Exp::Op(op, args, _) = exp else { unreachable!() };
    match (op, args.as_slice()) {
        (Op::And | Op::Or | Op::Not | Op::Eq | Op::Ne, _) => logic(cx, op, args, site),
        (Op::Add, [a, b]) => match (a, b) {
            (a, z) | (z, a) if is_zero(z) => Ok(a.clone()),
            (a, Exp::Op(Op::Neg, n, _)) if is_scalar(cx, a) => Ok(sub(a.clone(), n[0].clone())),
            (Exp::Op(Op::Neg, n, _), b) if is_scalar(cx, b) => Ok(sub(b.clone(), n[0].clone())),
            (a, b) if a == b && is_scalar(cx, a) => {
                let scalar = type_of_exp(cx.vars, a).scalar().expect("a scalar");
                Ok(mul(Exp::Lit(Lit::small(scalar, 2)), a.clone()))
            }
            _ => Err(Exp::Op(op, args, site)),
        },
        (Op::Sub, [a, b]) => match (a, b) {
            (a, z) if is_zero(z) => Ok(a.clone()),
            (z, b) if is_zero(z) => Ok(op1(Op::Neg, b.clone())),
            (a, Exp::Op(Op::Neg, n, _)) => Ok(add(a.clone(), n[0].clone())),
            _ => Err(Exp::Op(op, args, site)),
        },
        (Op::Mul, [a, b]) => match (a, b) {
            (a, one) | (one, a) if is_small(one, 1) => Ok(a.clone()),
            (a, minus) | (minus, a) if is_small(minus, -1) => Ok(op1(Op::Neg, a.clone())),
            (Exp::Op(Op::Neg, n, _), b) => Ok(op1(Op::Neg, mul(n[0].clone(), b.clone()))),
            (a, Exp::Op(Op::Neg, n, _)) => Ok(op1(Op::Neg, mul(a.clone(), n[0].clone()))),
            (Exp::Lit(c), Exp::Op(Op::Mul, inner, _)) => match &inner[0] {
                Exp::Lit(d) => match Op::Mul.eval(&[*c, *d]) {
                    // Not where one factor alone overflows or vanishes, which the product need not do.
                    Ok(product) if is_normal(product) => Ok(mul(Exp::Lit(product), inner[1].clone())),
                    _ => Err(Exp::Op(op, args, site)),
                },
                _ => Err(Exp::Op(op, args, site)),
            },
            (a, c @ Exp::Lit(_)) if !matches!(a, Exp::Lit(_)) => Ok(mul(c.clone(), a.clone())),
            // A literal goes to the front of a product, where it meets others.
            (a, Exp::Op(Op::Mul, inner, _)) if matches!(inner[0], Exp::Lit(_)) => {
                Ok(mul(inner[0].clone(), mul(a.clone(), inner[1].clone())))
            }
            (Exp::Op(Op::Mul, inner, _), b) if matches!(inner[0], Exp::Lit(_)) => {
                Ok(mul(inner[0].clone(), mul(inner[1].clone(), b.clone())))
            }
            _ => Err(Exp::Op(op, args, site)),
        },
        (Op::Div, [a, b]) => match (a, b) {
            (a, one) if is_small(one, 1) => Ok(a.clone()),
            (Exp::Op(Op::Neg, n, _), b) => Ok(op1(Op::Neg, op2(Op::Div, n[0].clone(), b.clone()))),
            _ => Err(Exp::Op(op, args, site)),
        },
        (Op::Neg, [Exp::Op(inner, parts, _)]) => match (inner, parts.as_slice()) {
            (Op::Neg, [a]) => Ok(a.clone()),
            (Op::Sub, [a, b]) => Ok(sub(b.clone(), a.clone())),
            (Op::Mul, [Exp::Lit(c), x]) => match Op::Neg.eval(&[*c]) {
                Ok(minus) => Ok(mul(Exp::Lit(minus), x.clone())),
                Err(_) => Err(Exp::Op(op, args, site)),
            },
            _ => Err(Exp::Op(op, args, site)),
        },
        (Op::Pow, [x, Exp::Lit(k)]) => match (k.as_integer(), type_of_exp(cx.vars, x)) {
            (Some(1), _) => Ok(x.clone()),
            (Some(0), Type::Scalar(s)) => Ok(Exp::Lit(Lit::one(s))),
            _ => Err(Exp::Op(op, args, site)),
        },
        (_, [x]) if op.is_conversion() => match unconverted(cx, op, x) {
            Some(same) => Ok(same),
            None => Err(Exp::Op(op, args, site)),
        },
        _ => Err(Exp::Op(op, args, site)),
    }
}

/// The literal is this whole number.
fn is_small(exp: &Exp, value: i8) -> bool {
    matches!(exp, Exp::Lit(lit) if *lit == Lit::small(lit.scalar(), value) && lit.scalar().is_number())
}
/// Neither zero nor infinite, nor rounded as one near zero is; an integer always.
fn is_normal(lit: Lit) -> bool {
    match lit {
        Lit::F64(x) => x.is_normal(),
        Lit::F32(x) => x.is_normal(),
        Lit::I64(_) | Lit::I32(_) => true,
        Lit::Bool(_) => false,
    }
}

/// What a conversion leaves as it is: a number of that type, also one that was converted to a type that holds it exactly.
fn unconverted(cx: &Context, op: Op, x: &Exp) -> Option<Exp> {
    let is_target = |e: &Exp| scalar_of(cx.vars, e).is_some_and(|s| Op::conversion(s) == Some(op));
    match x {
        x if is_target(x) => Some(x.clone()),
        Exp::Op(Op::ToF64, inner, _) if matches!(op, Op::ToF32 | Op::ToI32) => inner.first().filter(|e| is_target(e)).cloned(),
        Exp::Op(Op::ToI64, inner, _) if op == Op::ToI32 => inner.first().filter(|e| is_target(e)).cloned(),
        _ => None,
    }
}

fn is_scalar(cx: &Context, exp: &Exp) -> bool {
    scalar_of(cx.vars, exp).is_some()
}

/// Integer arithmetic in normal form, minima and comparisons decided where the facts allow it.
fn integers(cx: &mut Context, exp: Exp) -> Rewrite {
    if let Some(known) = cx.facts.decide(cx.vars, &exp) {
        return Ok(bool(known));
    }
    if let Some(size) = exp_size(&exp) {
        let normal = placed(size_exp(&size), &exp);
        if normal != exp && normal.node_count() <= exp.node_count() {
            return Ok(normal);
        }
    }
    let Exp::Op(op, args, site) = exp else { unreachable!() };
    if let Some(simpler) = half_decided(cx, op, &args) {
        return Ok(simpler);
    }
    if let (Op::Within, [i, n]) = (op, args.as_slice()) {
        if exp_size(n).is_some_and(|n| cx.facts.in_range(i, &n)) {
            return Ok(i.clone());
        }
    }
    if let (Op::Min | Op::Max, [a, b]) = (op, args.as_slice()) {
        if let (Some(p), Some(q)) = (exp_size(a), exp_size(b)) {
            if cx.facts.prove_nonneg(&q.sub(&p)) {
                return Ok(if op == Op::Min { a.clone() } else { b.clone() });
            }
            if cx.facts.prove_nonneg(&p.sub(&q)) {
                return Ok(if op == Op::Min { b.clone() } else { a.clone() });
            }
        }
    }
    Err(Exp::Op(op, args, site))
}

/// An expression made from another: where it divides, it does so at a place where the other does.
fn placed(exp: Exp, from: &Exp) -> Exp {
    fn place(exp: &Exp) -> Option<Site> {
        let mut found = match exp {
            Exp::Op(Op::IDiv | Op::IMod, _, site) => Some(*site).filter(|s| s.known().is_some()),
            _ => None,
        };
        exp.for_each_child(&mut |e| found = found.or_else(|| place(e)));
        found
    }
    fn put(exp: Exp, site: Site) -> Exp {
        match exp.map_children(&mut |e| put(e, site)) {
            Exp::Op(op @ (Op::IDiv | Op::IMod), args, _) => Exp::Op(op, args, site),
            exp => exp,
        }
    }
    match place(from) {
        Some(site) => put(exp, site),
        None => exp,
    }
}

/// `max(a, b) <= c` is `b <= c` where `a <= c` is known, and so on: a comparison with an extreme is two.
fn half_decided(cx: &Context, op: Op, args: &[Exp]) -> Option<Exp> {
    let [left, right] = args else { return None };
    let (in_left, in_right) = match op {
        Op::Le | Op::Lt => (Op::Max, Op::Min),
        Op::Ge | Op::Gt => (Op::Min, Op::Max),
        _ => return None,
    };
    let choose = |parts: &[Exp], with: &dyn Fn(&Exp) -> Exp| {
        let [a, b] = [with(&parts[0]), with(&parts[1])];
        match (cx.facts.decide(cx.vars, &a), cx.facts.decide(cx.vars, &b)) {
            (Some(true), _) => Some(b),
            (_, Some(true)) => Some(a),
            _ => None,
        }
    };
    match (left, right) {
        (Exp::Op(extreme, parts, _), _) if *extreme == in_left => choose(parts, &|part| op2(op, part.clone(), right.clone())),
        (_, Exp::Op(extreme, parts, _)) if *extreme == in_right => choose(parts, &|part| op2(op, left.clone(), part.clone())),
        _ => None,
    }
}

fn logic(cx: &Context, op: Op, args: Vec<Exp>, site: Site) -> Rewrite {
    let yes = bool(true);
    let no = bool(false);
    match (op, args.as_slice()) {
        (Op::And, [a, t]) | (Op::And, [t, a]) if *t == yes => Ok(a.clone()),
        (Op::Or, [a, f]) | (Op::Or, [f, a]) if *f == no => Ok(a.clone()),
        (Op::And, [a, b]) if *a == no || *b == no => Ok(no),
        (Op::Or, [a, b]) if *a == yes || *b == yes => Ok(yes),
        (Op::And | Op::Or, [a, b]) if a == b => Ok(a.clone()),
        (Op::Not, [Exp::Op(inner, parts, _)]) => {
            // NaN is neither below a number nor above it.
            let ordered = scalar_of(cx.vars, &parts[0]).is_some_and(Scalar::is_integer);
            let opposite = match inner {
                Op::Not => return Ok(parts[0].clone()),
                Op::Eq => Op::Ne,
                Op::Ne => Op::Eq,
                Op::Lt if ordered => Op::Ge,
                Op::Le if ordered => Op::Gt,
                Op::Gt if ordered => Op::Le,
                Op::Ge if ordered => Op::Lt,
                _ => return Err(Exp::Op(op, args, site)),
            };
            Ok(Exp::Op(opposite, parts.clone(), site))
        }
        _ => Err(Exp::Op(op, args, site)),
    }
}
