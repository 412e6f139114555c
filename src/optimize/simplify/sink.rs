//! A value that only one branch uses is computed in that branch.
//!
//! `let t = e; if p then f(t) else b`   is   `if p then (let t = e; f(t)) else b`

use crate::ir::build::*;
use crate::ir::*;
use rustc_hash::FxHashMap;

/// Whether all uses of some variables, `total` of them, stand in one branch or under one guard.
pub fn sinks(exp: &Exp, vars: &[Var], total: usize) -> bool {
    let has_all = |e: &Exp| count(e, vars) == total;
    match exp {
        Exp::Guard(p, e) => has_all(e) || sinks(p, vars, total),
        Exp::If(p, a, b) => has_all(a) || has_all(b) || sinks(p, vars, total),
        Exp::For(..) | Exp::Sum(..) | Exp::Reduce(..) | Exp::History(_) | Exp::Loop(_) => false,
        Exp::Var(_)
        | Exp::Lit(_)
        | Exp::Op(..)
        | Exp::Partial(..)
        | Exp::Index(..)
        | Exp::Singleton(..)
        | Exp::Let(..)
        | Exp::Update(..)
        | Exp::Tuple(_)
        | Exp::Array(_)
        | Exp::Call(..) => {
            let mut found = false;
            exp.for_each_child(&mut |e| found = found || (has_all(e) && sinks(e, vars, total)));
            found
        }
    }
}

/// Binds the variables to the value where `sinks` found a place for it.
pub fn sink(exp: Exp, vars: &[Var], value: &mut Option<Exp>, total: usize) -> Exp {
    let has_all = |e: &Exp| count(e, vars) == total;
    if value.is_none() || !has_all(&exp) {
        return exp;
    }
    let mut bind = |e: Exp| let_(vars.to_vec(), value.take().expect("bound once"), e);
    match exp {
        Exp::Guard(p, e) if has_all(&e) => guard(*p, bind(*e)),
        Exp::If(p, a, b) if has_all(&a) => if_(*p, bind(*a), *b),
        Exp::If(p, a, b) if has_all(&b) => if_(*p, *a, bind(*b)),
        exp => exp.map_children(&mut |e| sink(e, vars, value, total)),
    }
}

fn count(exp: &Exp, vars: &[Var]) -> usize {
    let mut counts = FxHashMap::default();
    exp.count_uses(&mut counts);
    vars.iter().map(|v| counts.get(v).copied().unwrap_or(0)).sum()
}
