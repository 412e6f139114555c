//! y = for i. e(i)
//!
//! forward:  (y, ẏ) = for i. (e(i), ė(i))
//! reverse:  ē(i) = ȳ[i]; the free variables' adjoints are summed over `i` as one tuple

use super::super::forward::Forward;
use super::super::reverse::{LoopOf, Reverse};
use super::super::scope::{Scope, Statement};
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;
use rustc_hash::FxHashSet;

pub fn forward(cx: &mut Forward, vars: Vec<Var>, i: Var, size: Size, body: Exp, out: &mut Vec<Statement>) {
    let (done, active) = cx.body(body);
    let value = for_(i, size, done.into_exp(&active));
    cx.bind_with_tangents(vars, &active, value, out);
}

pub fn reverse(cx: &mut Reverse, vars: Vec<Var>, i: Var, size: Size, body: Exp, adjoints: Vec<Option<Exp>>) -> Vec<Statement> {
    let seeds = adjoints.into_iter().map(|a| a.map(|a| index(a, vec![Exp::Var(i)], Site::default()))).collect();
    let facts = cx.facts.clone();
    cx.facts.enter_for(i, &size);
    let inner = cx.scope(Scope::split(body), seeds);
    cx.facts = facts;
    let within = LoopOf { index: i, lo: Size::default(), size: size.clone(), states: vec![] };
    let mut crossed = cx.cross(&inner, Some(&within), &FxHashSet::default());
    let free: Vec<Var> = crossed.adjoints.keys().copied().collect();
    if !free.is_empty() {
        let back = sum(i, i64(0), size_exp(&size), crossed.way_back(&free));
        let back = copy(cx.vars, &back, &Substitution::default());
        cx.contribute_all(free, back);
    }
    let aliases = crossed.take_results(&vars);
    let mut bound = vars;
    bound.extend(crossed.saved_vars());
    let mut forth = vec![(bound, for_(i, size, crossed.way_forth()))];
    forth.extend(aliases);
    forth
}
