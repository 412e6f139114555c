//! y = [p] * e,  y = if p then a else b
//!
//! forward:  the same choice of value and tangent together
//! reverse:  the same choice of contributions; the branch not taken contributes zero
//!
//! What the way back needs of a branch is yielded by it; the other branch yields zero there.

use super::super::forward::Forward;
use super::super::reverse::Reverse;
use super::super::scope::{Scope, Statement};
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;
use rustc_hash::FxHashSet;

pub fn forward_guard(cx: &mut Forward, vars: Vec<Var>, p: Exp, e: Exp, out: &mut Vec<Statement>) {
    let (done, active) = cx.body(e);
    let value = guard(p, done.into_exp(&active));
    cx.bind_with_tangents(vars, &active, value, out);
}

pub fn forward_if(cx: &mut Forward, vars: Vec<Var>, p: Exp, a: Exp, b: Exp, out: &mut Vec<Statement>) {
    let (mut then, mut active) = cx.body(a);
    let (mut other, active_other) = cx.body(b);
    active.extend(active_other);
    active.sort();
    active.dedup();
    for k in &active {
        let ty = cx.vars.ty(vars[*k]).clone();
        for branch in [&mut then, &mut other] {
            if branch.tangents[*k].is_none() {
                branch.tangents[*k] = Some(zero(cx.vars, &ty));
            }
        }
    }
    let value = if_(p, then.into_exp(&active), other.into_exp(&active));
    cx.bind_with_tangents(vars, &active, value, out);
}

pub fn reverse_guard(cx: &mut Reverse, vars: Vec<Var>, p: Exp, e: Exp, adjoints: Vec<Option<Exp>>) -> Vec<Statement> {
    let facts = cx.facts.clone();
    cx.facts.assume(&p);
    let inner = cx.scope(Scope::split(e), adjoints);
    cx.facts = facts;
    let mut crossed = cx.cross(&inner, None, &FxHashSet::default());
    let free: Vec<Var> = crossed.adjoints.keys().copied().collect();
    if !free.is_empty() {
        let back = guard(p.clone(), crossed.way_back(&free));
        let back = copy(cx.vars, &back, &Substitution::default());
        cx.contribute_all(free, back);
    }
    let aliases = crossed.take_results(&vars);
    let mut bound = vars;
    bound.extend(crossed.saved_vars());
    let mut forth = vec![(bound, guard(p, crossed.way_forth()))];
    forth.extend(aliases);
    forth
}

pub fn reverse_if(cx: &mut Reverse, vars: Vec<Var>, p: Exp, a: Exp, b: Exp, adjoints: Vec<Option<Exp>>) -> Vec<Statement> {
    let facts = cx.facts.clone();
    cx.facts.assume(&p);
    let inner = cx.scope(Scope::split(a), adjoints.clone());
    let mut then = cx.cross(&inner, None, &FxHashSet::default());
    cx.facts = facts.clone();
    cx.facts.assume_not(&p);
    let inner = cx.scope(Scope::split(b), adjoints);
    let mut other = cx.cross(&inner, None, &FxHashSet::default());
    cx.facts = facts;

    let mut free: Vec<Var> = then.adjoints.keys().copied().collect();
    free.extend(other.adjoints.keys().copied().filter(|v| !then.adjoints.contains_key(v)));
    if !free.is_empty() {
        for branch in [&mut then, &mut other] {
            for v in &free {
                if !branch.adjoints.contains_key(v) {
                    let ty = cx.vars.ty(*v).clone();
                    let nothing = zero(cx.vars, &ty);
                    branch.adjoints.insert(*v, nothing);
                }
            }
        }
        let back = if_(p.clone(), then.way_back(&free), other.way_back(&free));
        let back = copy(cx.vars, &back, &Substitution::default());
        cx.contribute_all(free, back);
    }

    // In each branch what is a result is at hand; its name is right only where the branch is taken, as it is used.
    let mut aliases = then.take_results(&vars);
    aliases.extend(other.take_results(&vars));
    let mut bound = vars;
    let (then_saved, other_saved) = (then.saved_vars(), other.saved_vars());
    let mut zeros = |saved: &[Var]| -> Vec<Exp> {
        saved
            .iter()
            .map(|v| {
                let ty = cx.vars.ty(*v).clone();
                zero(cx.vars, &ty)
            })
            .collect()
    };
    let mut then_results = then.results.clone();
    then_results.extend(then.saved.iter().map(|s| s.value.clone()));
    then_results.extend(zeros(&other_saved));
    let mut other_results = other.results.clone();
    other_results.extend(zeros(&then_saved));
    other_results.extend(other.saved.iter().map(|s| s.value.clone()));
    bound.extend(then_saved);
    bound.extend(other_saved);
    let mut forth = vec![(bound, if_(p, lets(then.forward, tuple(then_results)), lets(other.forward, tuple(other_results))))];
    forth.extend(aliases);
    forth
}
