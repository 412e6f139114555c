//! y = {k -> x}
//!
//! forward:  ẏ = {k -> ẋ}
//! reverse:  x̄ += ȳ[k]

use super::super::forward::Forward;
use super::super::reverse::Reverse;
use super::super::scope::Statement;
use crate::ir::build::{index, singleton};
use crate::ir::*;

pub fn forward(cx: &mut Forward, y: Var, keys: Vec<(Exp, Size)>, value: Exp, site: Site, out: &mut Vec<Statement>) {
    let tangent = cx.tangent(&value);
    out.push((vec![y], singleton(keys.clone(), value, site)));
    if let Some(t) = tangent {
        cx.bind_tangent(y, singleton(keys, t, site), out);
    }
}

pub fn reverse(cx: &mut Reverse, keys: &[(Exp, Size)], value: &Exp, site: Site, y_adj: Exp) {
    cx.contribute(value, index(y_adj, keys.iter().map(|(k, _)| k.clone()).collect(), site));
}
