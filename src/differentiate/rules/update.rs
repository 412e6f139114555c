//! y = x with [k] = v
//!
//! forward:  ẏ = ẋ with [k] = v̇
//! reverse:  v̄ += ȳ[k], x̄ += ȳ with [k] = 0

use super::super::forward::Forward;
use super::super::reverse::Reverse;
use super::super::scope::Statement;
use crate::ir::build::{index, type_of_exp, zero};
use crate::ir::*;

pub fn forward(cx: &mut Forward, y: Var, array: Exp, keys: Vec<Exp>, value: Exp, site: Site, out: &mut Vec<Statement>) {
    let mut tangent = |e: &Exp| match cx.tangent(e) {
        Some(t) => t,
        None => {
            let ty = type_of_exp(cx.vars, e);
            zero(cx.vars, &ty)
        }
    };
    let (array_tan, value_tan) = (tangent(&array), tangent(&value));
    out.push((vec![y], Exp::Update(Box::new(array), keys.clone(), Box::new(value), site)));
    cx.bind_tangent(y, Exp::Update(Box::new(array_tan), keys, Box::new(value_tan), site), out);
}

pub fn reverse(cx: &mut Reverse, array: &Exp, keys: &[Exp], value: &Exp, site: Site, y_adj: Exp) {
    cx.contribute(value, index(y_adj.clone(), keys.to_vec(), site));
    if cx.varies(array) {
        let ty = type_of_exp(cx.vars, value);
        let nothing = zero(cx.vars, &ty);
        cx.contribute(array, Exp::Update(Box::new(y_adj), keys.to_vec(), Box::new(nothing), site));
    }
}
