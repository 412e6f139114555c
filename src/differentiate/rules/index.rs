//! y = x[k]
//!
//! forward:  ẏ = ẋ[k]
//! reverse:  x̄ += {k -> ȳ}, or the adjoint of a row of x that the keys begin with (`rows`)

use super::super::forward::Forward;
use super::super::reverse::Reverse;
use super::super::scope::Statement;
use crate::ir::build::{index, singleton};
use crate::ir::*;

pub fn forward(cx: &mut Forward, y: Var, array: Exp, keys: Vec<Exp>, site: Site, out: &mut Vec<Statement>) {
    let tangent = cx.tangent(&array);
    out.push((vec![y], index(array, keys.clone(), site)));
    if let Some(t) = tangent {
        cx.bind_tangent(y, index(t, keys, site), out);
    }
}

pub fn reverse(cx: &mut Reverse, array: &Exp, keys: &[Exp], site: Site, y_adj: Exp) {
    let Exp::Var(x) = array else { panic!("differentiate: a read is of a variable") };
    let (receiver, known) = cx.receiver(*x, keys);
    let places = keys[known..].iter().cloned().zip(cx.vars.ty(receiver).shape().iter().cloned()).collect();
    cx.contribute(&Exp::Var(receiver), singleton(places, y_adj, site.passed()));
}
