//! (x, c, y) = loop (x, c, y) = (x₀, c₀, y₀) for i in 0..n do (x with [k] = v, e, y + t)
//!
//! reverse:  what a step overwrites is kept, and on the way back written again:
//!           loop (x, w) = (x₀, 0) for i in 0..n do (x with [k] = v, w with [i] = x[k])
//!           loop (x, x̄, ā) = (xₙ, x̄ₙ, ā) for i in 0..n, from the last, do
//!             let x = x with [k] = w[i]; let v̄ = x̄[k]; (x, (x̄ with [k] = 0) + …, ā + …)
//!
//! Here x is any array that the steps change where it is (`lineage`). A step takes time and memory for what it writes, not
//! for the array. Other states `c` are kept step by step if the way back needs them; of sums `y` nothing is. The adjoints ā
//! of free variables are carried along: a loop in a loop goes on with those of the outer one.

use super::super::lineage::{Lineage, changing, line, name_keys, ordered, singleton_of};
use super::super::reverse::{LoopOf, Reverse};
use super::super::scope::{Scope, Statement};
use super::summed::{Summed, parts};
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;
use rustc_hash::FxHashSet;

/// What makes `x` again of `y`, where that is `x` with a place written: emits it, and gives what it needs of the way forth.
pub fn restore(cx: &mut Reverse, statements: &[Statement], y: Var, x: Var, exp: &Exp) -> Vec<Statement> {
    let keys: Vec<Exp> = match exp {
        Exp::Update(_, keys, _, _) => keys.clone(),
        Exp::Op(_, args, _) => {
            let keys = args.iter().filter(|a| **a != Exp::Var(x)).find_map(|a| singleton_of(statements, a));
            keys.expect("a singleton is added").iter().map(|(k, _)| k.clone()).collect()
        }
        // Loops and branches do it by themselves.
        _ => return vec![],
    };
    let read = index(x, keys.clone(), Site::default());
    let old = cx.vars.fresh(format!("{}_old", cx.vars.name(x)), type_of_exp(cx.vars, &read));
    cx.emit(vec![x], Exp::Update(Box::new(Exp::Var(y)), keys, Box::new(Exp::Var(old)), Site::default()));
    vec![(vec![old], read)]
}

/// A loop over `0..size`, whose body yields the next carried states and then the terms of sums.
pub struct Steps<'a> {
    pub vars: &'a [Var],
    pub found: &'a Summed,
    pub state: &'a [Var],
    /// Of all parts of the state.
    pub init: &'a Exp,
    pub index: Var,
    pub size: &'a Size,
    pub body: &'a Exp,
}

/// `None` if no state changes in place, if a value is needed on the way back before it is there again, or if for every step of
/// a loop around an adjoint would be made that is larger than what the steps do.
pub fn reverse(cx: &mut Reverse, steps: &Steps, adjoints: &[Option<Exp>]) -> Option<Vec<Statement>> {
    let Steps { vars, found, state, init, index: i, size, body } = steps;
    let (i, init) = (*i, parts(init));
    let Scope { statements, results } = Scope::split((*body).clone());
    let is_array = |v: &Var| matches!(cx.vars.ty(*v), Type::Array(..));
    let lines: Vec<Option<Vec<(Var, Var)>>> = state
        .iter()
        .zip(&results)
        .map(|(s, r)| line(&statements, r).filter(|(first, _)| is_array(s) && first == s).map(|(_, line)| line))
        .collect();
    let lineage: Lineage = lines.iter().flatten().flatten().copied().collect();
    if lineage.is_empty() {
        return None;
    }
    let in_place: Vec<usize> = (0..state.len()).filter(|k| lines[*k].is_some()).collect();
    let statements = ordered(name_keys(cx.vars, statements, &changing(&lineage)), &lineage)?;

    // One step back. The adjoints of free variables go on from what they are when it begins.
    let moving: Vec<usize> = (0..state.len()).filter(|k| cx.varies(&Exp::Var(state[*k]))).collect();
    let lambda: Vec<Var> = moving.iter().map(|k| cx.adjoint_var(state[*k])).collect();
    let mut seeds = vec![None; state.len()];
    for (k, l) in moving.iter().zip(&lambda) {
        seeds[*k] = Some(Exp::Var(*l));
    }
    seeds.extend(found.sums.iter().map(|k| adjoints[*k].clone()));
    let free: Vec<Var> = cx.receivers(body).into_iter().filter(|v| !state.contains(v)).collect();
    let gives_back = vars.iter().any(|v| cx.lineage.contains_key(v));
    if !gives_back && !free.iter().all(|v| cx.may_make_adjoint(*v)) {
        return None;
    }
    let begun: Vec<(Var, Var)> = free.iter().map(|v| (*v, cx.adjoint_var(*v))).collect();
    let facts = cx.facts.clone();
    cx.facts.enter_for(i, size);
    let outer = cx.lineage.clone();
    cx.lineage.extend(lineage);
    let mut inner = cx.scope_from(Scope { statements, results }, seeds, &begun);
    cx.lineage = outer;
    cx.facts = facts;
    let last = |k: &usize| match &inner.results[*k] {
        Exp::Var(v) => *v,
        _ => unreachable!("a line ends in a variable"),
    };
    inner.given = in_place.iter().map(last).collect();
    inner.again = in_place.iter().map(|k| state[*k]).collect();
    for (last, first) in inner.given.iter().zip(&inner.again) {
        let name = cx.vars.name(*first).to_string();
        cx.vars.rename(*last, name);
    }
    let within = LoopOf { index: i, lo: Size::default(), size: (*size).clone(), states: state.to_vec() };
    let mut crossed = cx.try_cross(&inner, Some(&within), &FxHashSet::default())?;
    let free: Vec<(Var, Var)> = begun.into_iter().filter(|(v, begun)| crossed.adjoints.get(v) != Some(&Exp::Var(*begun))).collect();
    let mut of_states = vec![];
    for k in &moving {
        let ty = cx.vars.ty(state[*k]).clone();
        of_states.push(crossed.adjoints.shift_remove(&state[*k]).unwrap_or_else(|| zero(cx.vars, &ty)));
    }

    // What is kept of each step: what the way back needs of it, and of the states that it begins with.
    let way: Vec<Statement> = crossed.prologue.iter().chain(&crossed.backward).cloned().collect();
    let mut back: Vec<Exp> = inner.again.iter().map(|v| Exp::Var(*v)).collect();
    back.extend(of_states);
    back.extend(free.iter().map(|(v, _)| crossed.adjoints[v].clone()));
    let back = lets(way, tuple(back));
    let mut kept: Vec<(Exp, Var)> = crossed.saved.iter().map(|s| (s.value.clone(), s.outer)).collect();
    let needed: FxHashSet<Var> = back.free_vars().into_iter().collect();
    let mut states_here = vec![];
    for s in state.iter().filter(|s| needed.contains(s) && !inner.given.contains(s)) {
        if inner.again.contains(s) {
            return None;
        }
        let all = cx.vars.fresh_like(*s, cx.vars.ty(*s).with_axis(size));
        states_here.push((vec![*s], index(all, vec![Exp::Var(i)], Site::default())));
        kept.push((Exp::Var(*s), all));
    }

    // The way forth.
    let mut again = |v: Var| cx.vars.fresh_like(v, cx.vars.ty(v).clone());
    let totals: Vec<Var> = found.sums.iter().map(|k| again(vars[*k])).collect();
    let holders: Vec<Var> = kept.iter().map(|(_, all)| again(*all)).collect();
    let (next, terms) = crossed.results.split_at(state.len());
    let mut step = next.to_vec();
    step.extend(totals.iter().zip(terms).map(|(total, term)| add(*total, term.clone())));
    step.extend(
        holders
            .iter()
            .zip(&kept)
            .map(|(all, (value, _))| Exp::Update(Box::new(Exp::Var(*all)), vec![Exp::Var(i)], Box::new(value.clone()), Site::default())),
    );
    let mut start: Vec<Exp> = found.carried.iter().chain(&found.sums).map(|k| init[*k].clone()).collect();
    for (_, all) in &kept {
        let ty = cx.vars.ty(*all).clone();
        start.push(zero(cx.vars, &ty));
    }
    let mut bound: Vec<Var> = found.carried.iter().chain(&found.sums).map(|k| vars[*k]).collect();
    bound.extend(kept.iter().map(|(_, all)| *all));
    let states = [state.to_vec(), totals, holders].concat();
    let forth = vec![(bound, counted(i, size, states, start, lets(crossed.forward, tuple(step))))];

    // The way back.
    let t = cx.vars.fresh_like(i, Type::I64);
    let from_end = size_exp(&size.sub(&Size::constant(1)).sub(&Size::var(t)));
    let mut start: Vec<Exp> = in_place.iter().map(|k| Exp::Var(vars[found.carried[*k]])).collect();
    let mut bound = vec![];
    for k in &in_place {
        let whole = vars[found.carried[*k]];
        bound.push(match cx.lineage.get(&whole) {
            Some(of) => *of,
            None => cx.vars.fresh_like(whole, cx.vars.ty(whole).clone()),
        });
    }
    for k in &moving {
        let ty = cx.vars.ty(state[*k]).clone();
        start.push(adjoints[found.carried[*k]].clone().unwrap_or_else(|| zero(cx.vars, &ty)));
        bound.push(cx.adjoint_var(state[*k]));
    }
    for (v, _) in &free {
        let ty = cx.vars.ty(*v).clone();
        start.push(cx.take_contributions(*v).unwrap_or_else(|| zero(cx.vars, &ty)));
        bound.push(cx.adjoint_var(*v));
    }
    let states: Vec<Var> = inner.given.iter().chain(&lambda).copied().chain(free.iter().map(|(_, begun)| *begun)).collect();
    let step = lets(states_here, back);
    let step = copy(cx.vars, &step, &Substitution::from_iter([(i, from_end)]));
    let whole = copy(cx.vars, &counted(t, size, states, start, step), &Substitution::default());
    cx.emit(bound.clone(), whole);
    let mut bound = bound.into_iter().skip(in_place.len());
    for (k, adjoint) in moving.iter().zip(bound.by_ref()) {
        cx.contribute(&init[found.carried[*k]], Exp::Var(adjoint));
    }
    for ((v, _), adjoint) in free.iter().zip(bound) {
        cx.contribute(&Exp::Var(*v), Exp::Var(adjoint));
    }
    for k in &found.sums {
        if let Some(adjoint) = &adjoints[*k] {
            cx.contribute(&init[*k], adjoint.clone());
        }
    }
    Some(forth)
}

fn counted(index: Var, size: &Size, state: Vec<Var>, init: Vec<Exp>, body: Exp) -> Exp {
    let trip = Trip::For(Range { index, lo: i64(0), hi: size_exp(size) });
    Exp::Loop(Box::new(Iteration { state, init: tuple(init), trip, body, annotations: vec![] }))
}
