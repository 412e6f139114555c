//! y = op(x₀, x₁)
//!
//! forward:  ẏ = Σₖ ∂ₖop · ẋₖ
//! reverse:  x̄ₖ += ∂ₖop · ȳ
//!
//! y = x₀ / x₁
//! forward:  ẏ = (ẋ₀ - y · ẋ₁) / x₁
//! reverse:  q = ȳ / x₁, x̄₀ += q, x̄₁ -= y · q        so that there is one division on the way back
//!
//! `+` also acts on arrays, where both rules are the same without products.
//! Where the types of operand and result differ (a conversion between floats), tangents and adjoints are converted, too.

use super::super::forward::Forward;
use super::super::partials::{partial, scalar_of, scaled};
use super::super::reverse::Reverse;
use super::super::scope::Statement;
use crate::ir::build::*;
use crate::ir::*;

pub fn forward(cx: &mut Forward, y: Var, op: Op, args: Vec<Exp>, site: Site, out: &mut Vec<Statement>) {
    let on_arrays = !matches!(cx.vars.ty(y), Type::Scalar(_));
    if let (Op::Div, [a, b]) = (op, args.as_slice())
        && let Some(b_tan) = cx.tangent(b)
    {
        let down = mul(y, b_tan);
        let tangent = match cx.tangent(a) {
            Some(a_tan) => sub(a_tan, down),
            None => op1(Op::Neg, down),
        };
        let tangent = op2(Op::Div, tangent, b.clone());
        out.push((vec![y], Exp::Op(op, args, site)));
        cx.bind_tangent(y, tangent, out);
        return;
    }
    let mut tangent: Option<Exp> = None;
    for (k, arg) in args.iter().enumerate() {
        let Some(arg_tan) = cx.tangent(arg) else { continue };
        let term = if on_arrays {
            arg_tan
        } else {
            let Some(p) = partial(cx.vars, op, k, &args, &Exp::Var(y)) else { continue };
            let (from, to) = (scalar_of(cx.vars, arg), scalar_of(cx.vars, &Exp::Var(y)));
            scaled(p, convert(arg_tan, from, to))
        };
        tangent = Some(match tangent {
            None => term,
            Some(t) => add(t, term),
        });
    }
    out.push((vec![y], Exp::Op(op, args, site)));
    if let Some(t) = tangent {
        cx.bind_tangent(y, t, out);
    }
}

pub fn reverse(cx: &mut Reverse, y: Var, op: Op, args: &[Exp], y_adj: Exp) {
    let on_arrays = !matches!(cx.vars.ty(y), Type::Scalar(_));
    if let (Op::Div, [a, b]) = (op, args)
        && cx.varies(b)
    {
        let q = cx.vars.fresh("q", cx.vars.ty(y).clone());
        cx.emit(vec![q], op2(Op::Div, y_adj, b.clone()));
        cx.contribute(b, op1(Op::Neg, mul(y, q)));
        if cx.varies(a) {
            cx.contribute(a, Exp::Var(q));
        }
        return;
    }
    for (k, arg) in args.iter().enumerate() {
        if !cx.varies(arg) {
            continue;
        }
        if on_arrays {
            cx.contribute(arg, y_adj.clone());
        } else if let Some(p) = partial(cx.vars, op, k, args, &Exp::Var(y)) {
            let (from, to) = (scalar_of(cx.vars, &Exp::Var(y)), scalar_of(cx.vars, arg));
            cx.contribute(arg, convert(scaled(p, y_adj.clone()), from, to));
        }
    }
}
