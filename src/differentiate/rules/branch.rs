//! y = [p] * e,  y = if p then a else b
//!
//! forward:  the same choice of value and tangent together
//! reverse:  the same choice of contributions; the branch not taken contributes zero
//!
//! What the way back needs of a branch is yielded by it; the other branch yields zero there.

use super::super::forward::Forward;
use super::super::lineage::{Lineage, changing, line, name_keys, ordered};
use super::super::reverse::{Crossed, Reverse};
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
    let begun = begin_adjoints(cx, &[&e]);
    let inner = cx.scope_from(Scope::split(e), adjoints, &begun);
    cx.facts = facts;
    let mut crossed = cx.cross(&inner, None, &FxHashSet::default());
    for (v, begun) in &begun {
        if crossed.adjoints.get(v) == Some(&Exp::Var(*begun)) {
            crossed.adjoints.shift_remove(v);
            cx.contribute(&Exp::Var(*v), Exp::Var(*begun));
        }
    }
    let free: Vec<Var> = crossed.adjoints.keys().copied().collect();
    if !free.is_empty() {
        let back = if begun.iter().any(|(v, _)| free.contains(v)) {
            let mut unchanged = |v: &Var| match begun.iter().find(|(w, _)| w == v) {
                Some((_, begun)) => Exp::Var(*begun),
                None => {
                    let ty = cx.vars.ty(*v).clone();
                    zero(cx.vars, &ty)
                }
            };
            if_(p.clone(), crossed.way_back(&free), tuple(free.iter().map(&mut unchanged).collect()))
        } else {
            guard(p.clone(), crossed.way_back(&free))
        };
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
    let given_back: Vec<(usize, Var)> = vars.iter().enumerate().filter_map(|(k, v)| Some((k, *cx.lineage.get(v)?))).collect();
    let begun = begin_adjoints(cx, &[&a, &b]);
    let both = |cx: &mut Reverse, given_back: &[(usize, Var)], begun: &[(Var, Var)]| {
        let facts = cx.facts.clone();
        cx.facts.assume(&p);
        let then = branch(cx, a.clone(), &vars, (given_back, begun), adjoints.clone());
        cx.facts = facts.clone();
        cx.facts.assume_not(&p);
        let other = branch(cx, b.clone(), &vars, (given_back, begun), adjoints.clone());
        cx.facts = facts;
        then.zip(other)
    };
    let (mut then, mut other) =
        both(cx, &given_back, &begun).or_else(|| both(cx, &[], &begun)).expect("without anything to give back there is always a way");
    for (v, begun) in begun {
        let unchanged = |branch: &Crossed| branch.adjoints.get(&v) == Some(&Exp::Var(begun));
        if unchanged(&then) && unchanged(&other) {
            then.adjoints.shift_remove(&v);
            other.adjoints.shift_remove(&v);
            cx.contribute(&Exp::Var(v), Exp::Var(begun));
        }
    }

    let mut free: Vec<Var> = then.adjoints.keys().copied().collect();
    free.extend(other.adjoints.keys().copied().filter(|v| !then.adjoints.contains_key(v)));
    if !free.is_empty() || !then.again.is_empty() {
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
        cx.contribute_and_bind(free, &then.again, back);
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

/// Where arrays change in place, the adjoints of free variables do too: a branch goes on from what they are.
fn begin_adjoints(cx: &mut Reverse, branches: &[&Exp]) -> Vec<(Var, Var)> {
    if cx.lineage.is_empty() {
        return vec![];
    }
    let free: Vec<Var> = branches.iter().flat_map(|e| cx.receivers(e)).collect();
    free.into_iter().filter_map(|v| Some((v, cx.begin_adjoint(v)?))).collect()
}

/// One branch. The arrays that are to be given back are made again of its results; `None` if that cannot be.
fn branch(
    cx: &mut Reverse,
    body: Exp,
    vars: &[Var],
    (given_back, begun): (&[(usize, Var)], &[(Var, Var)]),
    adjoints: Vec<Option<Exp>>,
) -> Option<Crossed> {
    let Scope { mut statements, results } = Scope::split(body);
    let outer = cx.lineage.clone();
    let (mut given, mut aliases) = (vec![], vec![]);
    if !given_back.is_empty() {
        let mut lineage = Lineage::default();
        for (k, first) in given_back {
            let (_, line) = line(&statements, &results[*k]).filter(|(of, _)| of == first)?;
            lineage.extend(line);
            let Exp::Var(last) = results[*k] else { return None };
            given.push(last);
            aliases.push((vec![last], Exp::Var(vars[*k])));
        }
        statements = ordered(name_keys(cx.vars, statements, &changing(&lineage)), &lineage)?;
        cx.lineage.extend(lineage);
    }
    let mut inner = cx.scope_from(Scope { statements, results }, adjoints, begun);
    cx.lineage = outer;
    inner.given = given;
    inner.again = given_back.iter().map(|(_, x)| *x).collect();
    let mut crossed = cx.try_cross(&inner, None, &FxHashSet::default())?;
    crossed.prologue.splice(0..0, aliases);
    Some(crossed)
}
