//! y = [x₀, x₁, …]
//!
//! forward:  ẏ = [ẋ₀, ẋ₁, …]
//! reverse:  x̄ₖ += ȳ[k]

use super::super::forward::Forward;
use super::super::reverse::Reverse;
use super::super::scope::Statement;
use crate::ir::build::{i64, index, type_of_exp, zero};
use crate::ir::*;

pub fn forward(cx: &mut Forward, y: Var, items: Vec<Exp>, out: &mut Vec<Statement>) {
    let tangents = items
        .iter()
        .map(|x| {
            cx.tangent(x).unwrap_or_else(|| {
                let ty = type_of_exp(cx.vars, x);
                zero(cx.vars, &ty)
            })
        })
        .collect();
    out.push((vec![y], Exp::Array(items)));
    cx.bind_tangent(y, Exp::Array(tangents), out);
}

pub fn reverse(cx: &mut Reverse, items: &[Exp], y_adj: Exp) {
    for (k, item) in items.iter().enumerate() {
        cx.contribute(item, index(y_adj.clone(), vec![i64(k as i64)], Site::default()));
    }
}
