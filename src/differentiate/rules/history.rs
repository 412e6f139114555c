//! h = history s = s₀ for i in 0..n do e(i, s)        so h[0] = s₀, h[i+1] = e(i, h[i])
//!
//! forward:  the states and their tangents are one state
//! reverse:  with λ[n] = h̄[n] and λ[i] = h̄[i] + (∂e/∂s at h[i])ᵀ λ[i+1], a history run from the end:
//!           s̄₀ += λ[0], and the free variables' adjoints are summed over i from the seeds λ[i+1]
//!
//! Each step runs once in each direction: what is needed of it later is carried beside the state.
//! Beside the states a step may yield terms t(i, s) that are summed, y = sum i. t(i, h[i]): the adjoint of each is ȳ.

use super::super::forward::Forward;
use super::super::reverse::{Crossed, LoopOf, Reverse};
use super::super::scope::{Scope, Statement};
use super::super::split::{Taken, split, taken};
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;
use rustc_hash::{FxHashMap, FxHashSet};

/// A step that carries tangents after the state.
pub struct Step {
    pub state: Vec<Var>,
    pub init: Exp,
    pub body: Exp,
    /// The parts of the state that have tangents.
    pub active: Vec<usize>,
}

pub fn forward_step(cx: &mut Forward, state: &[Var], init: Exp, body: Exp) -> Step {
    let mut init = parts(init);
    let active: Vec<usize> = (0..state.len()).filter(|k| cx.vars.ty(state[*k]).has_float()).collect();
    let mut states = state.to_vec();
    for k in &active {
        let ty = cx.vars.ty(state[*k]).clone();
        init.push(match cx.tangent(&init[*k]) {
            Some(t) => t,
            None => zero(cx.vars, &ty),
        });
        let t = cx.tangent_var(state[*k], ty);
        cx.set_tangent(state[*k], Exp::Var(t));
        states.push(t);
    }
    let (mut done, _) = cx.body(body);
    for k in &active {
        if done.tangents[*k].is_none() {
            let ty = cx.vars.ty(state[*k]).clone();
            done.tangents[*k] = Some(zero(cx.vars, &ty));
        }
    }
    Step { state: states, init: tuple(init), body: done.into_exp(&active), active }
}

pub fn forward(cx: &mut Forward, vars: Vec<Var>, h: History, out: &mut Vec<Statement>) {
    let History { state, init, index, size, body } = h;
    let step = forward_step(cx, &state, init, body);
    let h = History { state: step.state, init: step.init, index, size, body: step.body };
    cx.bind_with_tangents(vars, &step.active, Exp::History(Box::new(h)), out);
}

/// What the adjoints given belong to: all states, or the last one alone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Seeds {
    OfAll,
    OfLast,
}

/// What the steps yield behind the next state, to be summed over all of them.
#[derive(Default)]
pub struct Sums {
    pub totals: Vec<Var>,
    pub adjoints: Vec<Option<Exp>>,
}

pub fn reverse(cx: &mut Reverse, vars: Vec<Var>, h: History, adjoints: Vec<Option<Exp>>, seeds_are: Seeds, sums: Sums) -> Vec<Statement> {
    let History { state, init, index: i, size, body } = h;
    let init = parts(init);
    let n = size_exp(&size);
    // A history of negative size has no state, so that its first and last one have no adjoint.
    let may_be_none = seeds_are == Seeds::OfAll && !cx.facts.prove_nonneg(&size);
    let of_some = |e: Exp, n: &Exp| if may_be_none { guard(op2(Op::Ge, n.clone(), i64(0)), e) } else { e };
    let moving: Vec<usize> = (0..state.len()).filter(|k| cx.varies(&Exp::Var(state[*k]))).collect();
    let lambda: Vec<Var> = moving.iter().map(|k| cx.adjoint_var(state[*k])).collect();
    let mut seeds = vec![None; state.len()];
    for (k, l) in moving.iter().zip(&lambda) {
        seeds[*k] = Some(Exp::Var(*l));
    }
    seeds.extend(sums.adjoints);
    let facts = cx.facts.clone();
    cx.facts.enter_for(i, &size);
    let mut inner = cx.scope(Scope::split(body), seeds);
    cx.facts = facts;
    let within = LoopOf { index: i, lo: Size::default(), size: size.clone(), states: state.clone() };
    let terms = inner.results.split_off(state.len());
    if !terms.is_empty() {
        let saved = cx.cross(&inner, Some(&within), &FxHashSet::default()).saved;
        let first: Vec<Exp> = inner.results.iter().cloned().chain(saved.iter().map(|s| Exp::Var(s.inner))).collect();
        inner.forward = split(cx.vars, inner.forward, &first, &terms);
    }
    let mut crossed = cx.cross(&inner, Some(&within), &FxHashSet::default());
    let states_here: Vec<Statement> =
        state.iter().zip(&vars).map(|(s, all)| (vec![*s], index(*all, vec![Exp::Var(i)], Site::default()))).collect();

    // The forward part: the history carries what the way back needs of a step beside the state after it.
    let needs: Vec<(Var, Exp)> = crossed.saved.iter().map(|s| (s.outer, s.value.clone())).collect();
    let for_terms = terms_take(cx, &crossed, &terms, &within);
    let mut types: Vec<Type> = needs.iter().map(|(outer, _)| cx.vars.ty(*outer).without_axes(1).expect("an axis of steps")).collect();
    types.extend(for_terms.shared.iter().map(|v| cx.vars.ty(*v).clone()));
    let named = needs.iter().map(|(outer, _)| *outer).chain(for_terms.shared.iter().copied()).collect();
    let beside = Beside::new(cx.vars, named, types, &size);
    let carried = needs.into_iter().map(|(_, e)| e).chain(for_terms.shared.iter().map(|v| Exp::Var(*v)));
    let body = lets(crossed.forward.clone(), tuple(crossed.results.iter().cloned().chain(carried).collect()));
    let steps = beside.carried_by(state.clone(), init.clone(), i, &size, body);
    let mut forth = vec![([vars.clone(), beside.all.clone()].concat(), steps)];
    if !terms.is_empty() {
        let after = size_exp(&Size::var(i).add(&Size::constant(1)));
        let mut way = states_here.clone();
        let held = &beside.all[crossed.saved.len()..];
        way.extend(for_terms.shared.iter().zip(held).map(|(v, all)| (vec![*v], index(*all, vec![after.clone()], Site::default()))));
        way.extend(crossed.forward.iter().enumerate().filter(|(k, _)| for_terms.redone.contains(k)).map(|(_, s)| s.clone()));
        let total = copy(cx.vars, &sum(i, i64(0), n.clone(), lets(way, tuple(terms))), &Substitution::default());
        forth.push((sums.totals, total));
    }
    for (s, all) in crossed.saved.iter().zip(&beside.all) {
        let t = cx.vars.fresh(cx.vars.name(i).to_string(), Type::I64);
        let after = size_exp(&Size::var(t).add(&Size::constant(1)));
        forth.push((vec![s.outer], for_(t, size.clone(), index(*all, vec![after], Site::default()))));
    }
    crossed.prologue.splice(0..0, states_here);

    // The adjoints of the states, from the last to the first.
    let t = cx.vars.fresh(cx.vars.name(i).to_string(), Type::I64);
    let mut of_states = vec![];
    let mut starts = vec![];
    for k in &moving {
        let at = |key: Exp, a: &Exp| index(a.clone(), vec![key], Site::default());
        let from_step = crossed.adjoints.shift_remove(&state[*k]);
        let from_result = adjoints[*k].as_ref().filter(|_| seeds_are == Seeds::OfAll).map(|a| at(Exp::Var(i), a));
        let ty = cx.vars.ty(state[*k]).clone();
        of_states.push(match (from_result, from_step) {
            (Some(a), Some(b)) => add(a, b),
            (Some(a), None) | (None, Some(a)) => a,
            (None, None) => zero(cx.vars, &ty),
        });
        starts.push(match &adjoints[*k] {
            Some(a) if seeds_are == Seeds::OfLast => a.clone(),
            Some(a) => of_some(at(n.clone(), a), &n),
            None => zero(cx.vars, &ty),
        });
    }
    let mut statements = crossed.prologue.clone();
    statements.extend(crossed.backward.clone());
    let free: Vec<Var> = crossed.adjoints.keys().copied().filter(|v| !state.contains(v)).collect();
    let of_free: Vec<Exp> = free.iter().map(|v| crossed.adjoints[v].clone()).collect();
    // What both the states and the free variables need is computed on the way from the last state and carried along,
    // padded where its size depends on the step.
    let statements = split(cx.vars, statements, &of_states, &of_free);
    let place: FxHashMap<Var, usize> = statements.iter().enumerate().flat_map(|(k, (vars, _))| vars.iter().map(move |v| (*v, k))).collect();
    let bounds: FxHashMap<Var, (Exp, Type)> = place.keys().filter_map(|v| Some((*v, cx.padded(*v, &place, Some(&within))?))).collect();
    let Taken { shared, redone, twice } = taken(cx.vars, &statements, &of_states, &of_free, &|v| bounds.contains_key(&v));
    if twice && free.iter().all(|v| cx.may_make_adjoint(*v)) {
        let back = Together { lambda, starts, statements, of_states, of_free, index: i, size };
        let at_first = back.run(cx, free);
        for (k, adjoint) in moving.iter().zip(at_first) {
            cx.contribute(&init[*k], of_some(Exp::Var(adjoint), &n));
        }
        return forth;
    }
    let types = shared.iter().map(|v| bounds[v].1.clone()).collect();
    let beside = Beside::new(cx.vars, shared.clone(), types, &size);
    let from_end = size_exp(&size.sub(&Size::constant(1)).sub(&Size::var(t)));
    of_states.extend(shared.iter().map(|v| bounds[v].0.clone()));
    let body = copy(cx.vars, &lets(statements.clone(), tuple(of_states)), &Substitution::from_iter([(i, from_end)]));
    let back = beside.carried_by(lambda.clone(), starts, t, &size, body);
    let back = copy(cx.vars, &back, &Substitution::default());
    let silent = lambda.is_empty() && beside.all.is_empty();
    let longer = size.add(&Size::constant(1));
    let all: Vec<Var> = lambda
        .iter()
        .map(|l| {
            let (name, ty) = (cx.vars.name(*l).to_string(), cx.vars.ty(*l).with_axis(&longer));
            cx.vars.fresh(name, ty)
        })
        .collect();
    if !silent {
        cx.emit([all.clone(), beside.all.clone()].concat(), back);
    }

    // The free variables, from the seeds λ[i+1], which stands at n-1-i; what was carried with λ[i] stands at n-i.
    if !free.is_empty() {
        let behind = size_exp(&size.sub(&Size::constant(1)).sub(&Size::var(i)));
        let here = size_exp(&size.sub(&Size::var(i)));
        let mut way: Vec<Statement> =
            lambda.iter().zip(&all).map(|(l, all)| (vec![*l], index(*all, vec![behind.clone()], Site::default()))).collect();
        // What is carried may have a size that is bound again.
        for (k, statement) in statements.into_iter().enumerate() {
            for (v, all) in shared.iter().zip(&beside.all).filter(|(v, _)| place[v] == k) {
                let read = match &bounds[v].0 {
                    Exp::Var(_) => index(*all, vec![here.clone()], Site::default()),
                    _ => cx.unpadded(*v, *all, vec![here.clone()]),
                };
                way.push((vec![*v], read));
            }
            if redone.contains(&k) {
                way.push(statement);
            }
        }
        let back = copy(cx.vars, &sum(i, i64(0), n.clone(), lets(way, tuple(of_free))), &Substitution::default());
        cx.contribute_all(free, back);
    }
    for (k, all) in moving.iter().zip(all) {
        cx.contribute(&init[*k], of_some(index(all, vec![n.clone()], Site::default()), &n));
    }
    forth
}

/// The way back in which the adjoints of free variables are carried along with those of the states: where a step has loops
/// that yield both, each of them runs once.
struct Together {
    lambda: Vec<Var>,
    starts: Vec<Exp>,
    statements: Vec<Statement>,
    of_states: Vec<Exp>,
    of_free: Vec<Exp>,
    index: Var,
    size: Size,
}

impl Together {
    /// Gives the adjoints of the first states.
    fn run(self, cx: &mut Reverse, free: Vec<Var>) -> Vec<Var> {
        let mut state = self.lambda;
        let mut init = self.starts;
        let mut next = self.of_states;
        let first: Vec<Var> = state.iter().map(|l| cx.vars.fresh_like(*l, cx.vars.ty(*l).clone())).collect();
        let mut all = first.clone();
        for (v, contribution) in free.iter().zip(self.of_free) {
            let so_far = cx.adjoint_var(*v);
            next.push(add(so_far, contribution));
            state.push(so_far);
            let ty = cx.vars.ty(*v).clone();
            init.push(cx.take_contributions(*v).unwrap_or_else(|| zero(cx.vars, &ty)));
            all.push(cx.adjoint_var(*v));
        }
        let t = cx.vars.fresh(cx.vars.name(self.index).to_string(), Type::I64);
        let from_end = size_exp(&self.size.sub(&Size::constant(1)).sub(&Size::var(t)));
        let body = copy(cx.vars, &lets(self.statements, tuple(next)), &Substitution::from_iter([(self.index, from_end)]));
        let trip = Trip::For(Range { index: t, lo: i64(0), hi: size_exp(&self.size) });
        let back = Exp::Loop(Box::new(Iteration { state, init: tuple(init), trip, body, annotations: vec![] }));
        let back = copy(cx.vars, &back, &Substitution::default());
        cx.emit(all.clone(), back);
        for (v, adjoint) in free.iter().zip(&all[first.len()..]) {
            cx.contribute(&Exp::Var(*v), Exp::Var(*adjoint));
        }
        first
    }
}

/// What the terms of sums take over from the steps: values whose size is the same in all steps.
fn terms_take(cx: &Reverse, crossed: &Crossed, terms: &[Exp], within: &LoopOf) -> Taken {
    let own = within.states.iter().copied().chain([within.index]);
    let bound: FxHashSet<Var> = crossed.forward.iter().flat_map(|(vars, _)| vars.iter().copied()).chain(own).collect();
    let first: Vec<Exp> = crossed.results.iter().cloned().chain(crossed.saved.iter().map(|s| Exp::Var(s.inner))).collect();
    taken(cx.vars, &crossed.forward, &first, terms, &|v| {
        let mut sizes = vec![];
        cx.vars.ty(v).map_sizes(&mut |s| {
            s.variables(&mut sizes);
            s.clone()
        });
        !sizes.iter().any(|s| bound.contains(s))
    })
}

/// Values of each step that a history carries beside its state, so that they are at hand after it.
struct Beside {
    /// The variables of the state that hold them. No step reads them.
    state: Vec<Var>,
    nothing: Vec<Exp>,
    /// What holds those of all steps; that of step `i` stands at `i + 1`.
    all: Vec<Var>,
}

impl Beside {
    fn new(vars: &mut Vars, named: Vec<Var>, types: Vec<Type>, size: &Size) -> Beside {
        let mut beside = Beside { state: vec![], nothing: vec![], all: vec![] };
        for (v, ty) in named.into_iter().zip(types) {
            let name = vars.name(v).to_string();
            beside.state.push(vars.fresh(name.clone(), ty.clone()));
            beside.nothing.push(zero(vars, &ty));
            beside.all.push(vars.fresh(name, ty.with_axis(&size.add(&Size::constant(1)))));
        }
        beside
    }
    fn carried_by(&self, state: Vec<Var>, init: Vec<Exp>, index: Var, size: &Size, body: Exp) -> Exp {
        let state = [state, self.state.clone()].concat();
        let init = tuple([init, self.nothing.clone()].concat());
        Exp::History(Box::new(History { state, init, index, size: size.clone(), body }))
    }
}

fn parts(exp: Exp) -> Vec<Exp> {
    match exp {
        Exp::Tuple(parts) => parts,
        exp => vec![exp],
    }
}
