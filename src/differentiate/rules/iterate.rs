//! y = loop s = s₀ for i in a..b do e(i, s)
//!
//! forward:  the states and their tangents are one state
//! reverse:  the loop runs as a history, whose last state is y, and is reversed as such; of states that are only added to
//!           none is kept (`summed`)
//!
//! Loops that only write places, each once, need no states (`writes`). Arrays that the steps change where they are need not
//! be kept (`in_place`).
//! A `while` loop is run once to count its iterations, and then is a loop over so many. `#[bound(n)]` says how many there are
//! at most: counting ends there, and what is kept is known before the loop runs.
//! Annotated loops keep fewer states and run steps again (`blocks`).

use super::super::forward::Forward;
use super::super::reverse::Reverse;
use super::super::scope::Statement;
use super::blocks::{self, Cut};
use super::history::{self, Seeds, Sums};
use super::in_place;
use super::summed::{self, Summed};
use super::writes;
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy, substitute};
use crate::ir::*;

pub fn forward(cx: &mut Forward, vars: Vec<Var>, l: Iteration, out: &mut Vec<Statement>) {
    let Iteration { state, init, trip, body, annotations } = l;
    let step = history::forward_step(cx, &state, init, body);
    let iteration = Iteration { state: step.state, init: step.init, trip, body: step.body, annotations };
    cx.bind_with_tangents(vars, &step.active, Exp::Loop(Box::new(iteration)), out);
}

pub fn reverse(cx: &mut Reverse, vars: Vec<Var>, l: Iteration, adjoints: Vec<Option<Exp>>) -> Vec<Statement> {
    // A loop that has to give back the array that it begins with takes its steps back one by one.
    let gives_back = vars.iter().any(|v| cx.lineage.contains_key(v));
    if let (Some(found), [y], [Some(y_adj)], false) = (writes::Writes::of(&l), vars.as_slice(), adjoints.as_slice(), gives_back) {
        return writes::reverse(cx, *y, l.init, found, y_adj.clone());
    }
    if let (Some(cut), false) = (cut_of(cx, &l), gives_back) {
        let mut forth = vec![];
        let (index, size, body) = from_zero(cx, &l, &l.state, &l.init, &l.body, l.body.clone(), &mut forth);
        forth.extend(blocks::reverse(cx, &blocks::Steps { vars: &vars, l: &l, index, size: &size, body: &body }, &cut, adjoints));
        return forth;
    }
    let found = match (Summed::of(cx.vars, &l), &l.trip) {
        _ if gives_back => Summed::nothing(&l),
        (found, Trip::For(range)) if found.carried.is_empty() => return summed::reverse(cx, vars, &l, found, range.clone(), adjoints),
        (found, Trip::While(_)) if found.carried.is_empty() => Summed::nothing(&l),
        (found, _) => found,
    };
    // What branches add has new names.
    cx.mark_varied(&found.statements);
    let totals = found.totals(cx.vars, &l);
    let init = summed::parts(&l.init);
    let state: Vec<Var> = found.carried.iter().map(|k| l.state[*k]).collect();
    let start = tuple(found.carried.iter().map(|k| init[*k].clone()).collect());
    let body = lets(found.statements.clone(), tuple(found.next.iter().chain(&found.terms).cloned().collect()));
    let mut forth = vec![];
    let step = lets(found.statements.clone(), tuple(found.next.clone()));
    let (index, size, body) = from_zero(cx, &l, &state, &start, &step, body, &mut forth);
    let steps = in_place::Steps { vars: &vars, found: &found, state: &state, init: &l.init, index, size: &size, body: &body };
    if let Some(steps) = in_place::reverse(cx, &steps, &adjoints) {
        forth.extend(steps);
        return forth;
    }
    let longer = size.add(&Size::constant(1));
    let all: Vec<Var> = found
        .carried
        .iter()
        .map(|k| {
            let (name, ty) = (cx.vars.name(vars[*k]).to_string(), cx.vars.ty(vars[*k]).with_axis(&longer));
            cx.vars.fresh(name, ty)
        })
        .collect();
    let last = size_exp(&size);
    let of = |which: &[usize]| which.iter().map(|k| adjoints[*k].clone()).collect::<Vec<_>>();
    let sums = Sums { totals: totals.clone(), adjoints: of(&found.sums) };
    let h = History { state, init: start, index, size, body };
    forth.extend(history::reverse(cx, all.clone(), h, of(&found.carried), Seeds::OfLast, sums));
    for (k, all) in found.carried.iter().zip(all) {
        forth.push((vec![vars[*k]], crate::ir::build::index(all, vec![last.clone()], Site::default())));
    }
    for (k, total) in found.sums.iter().zip(totals) {
        forth.push((vec![vars[*k]], add(init[*k].clone(), total)));
        if let Some(adjoint) = &adjoints[*k] {
            cx.contribute(&init[*k], adjoint.clone());
        }
    }
    forth
}

/// How the loop is to be cut: as its annotations say, or so that it fits in the memory that is given.
fn cut_of(cx: &mut Reverse, l: &Iteration) -> Option<Cut> {
    let is_block = cx.block == Some(l.state[0]);
    let within = cx.values_each.filter(|_| !is_block && !Summed::of(cx.vars, l).carried.is_empty());
    Cut::of(&l.annotations).or_else(|| within.map(Cut::within))
}

/// A loop's index, number of steps and body, where the index runs from 0. `state`, `start` and `step` are the part of the loop
/// by which a `while` loop is counted.
fn from_zero(
    cx: &mut Reverse,
    l: &Iteration,
    state: &[Var],
    start: &Exp,
    step: &Exp,
    body: Exp,
    forth: &mut Vec<Statement>,
) -> (Var, Size, Exp) {
    match &l.trip {
        Trip::For(range) => {
            let (lo, hi) = (exp_size(&range.lo).expect("a size"), exp_size(&range.hi).expect("a size"));
            let size = hi.sub(&lo);
            // A history has a first state in any case.
            let size = if cx.facts.prove_nonneg(&size) { size } else { size.maximum(&Size::default()) };
            if lo == Size::default() {
                return (range.index, size, body);
            }
            let t = cx.vars.fresh(cx.vars.name(range.index).to_string(), Type::I64);
            let with = Substitution::from_iter([(range.index, size_exp(&Size::var(t).add(&lo)))]);
            (t, size, substitute(cx.vars, body, &with))
        }
        Trip::While(condition) => {
            let bound = l.bound().cloned();
            let i = cx.vars.fresh("i", Type::I64);
            let Some(bound) = bound else {
                let count = counted(cx, state, start, condition, step, forth);
                cx.facts.assume_nonneg(Size::var(count));
                return (i, Size::var(count), body);
            };
            // Counting ends behind the bound, and what is kept has a size that is known before the loop runs.
            let most = size_exp(&bound);
            let within = |counter: Var| op2(Op::Le, counter, most.clone());
            let count = counted_while(cx, state, start, condition, &within, step, forth);
            let steps = cx.vars.fresh("steps", Type::I64);
            let site = cx.vars.origin(l.state[0]).map_or(Site::default(), Site::new);
            forth.push((vec![steps], Exp::Op(Op::Bounded, vec![Exp::Var(count), most], site)));
            cx.facts.assume_nonneg(Size::var(steps));
            (i, Size::var(steps).minimum(&bound), body)
        }
    }
}

/// How often a `while` loop runs: the loop itself, counting.
fn counted(cx: &mut Reverse, state: &[Var], init: &Exp, condition: &Exp, body: &Exp, forth: &mut Vec<Statement>) -> Var {
    counted_while(cx, state, init, condition, &|_| bool(true), body, forth)
}

/// The same as long as another condition holds, on the number of steps.
fn counted_while(
    cx: &mut Reverse,
    state: &[Var],
    init: &Exp,
    condition: &Exp,
    goes_on: &dyn Fn(Var) -> Exp,
    body: &Exp,
    forth: &mut Vec<Statement>,
) -> Var {
    let (counter, count) = (cx.vars.fresh("count", Type::I64), cx.vars.fresh("count", Type::I64));
    let parts = |e: &Exp| match e {
        Exp::Tuple(parts) => parts.clone(),
        e => vec![e.clone()],
    };
    let mut start = parts(init);
    start.push(i64(0));
    // The step yields its results and one more; its `let`s stay around them.
    fn with_count(body: &Exp, next: Exp) -> Exp {
        match body {
            Exp::Let(vars, value, body) => let_(vars.clone(), (**value).clone(), with_count(body, next)),
            Exp::Tuple(parts) => Exp::Tuple(parts.iter().cloned().chain([next]).collect()),
            result => Exp::Tuple(vec![result.clone(), next]),
        }
    }
    let body = with_count(body, add(counter, i64(1)));
    let condition = match goes_on(counter) {
        Exp::Lit(Lit::Bool(true)) => condition.clone(),
        more => if_(more, condition.clone(), bool(false)),
    };
    let states = state.iter().copied().chain([counter]).collect();
    let l = Iteration { state: states, init: tuple(start), trip: Trip::While(condition), body, annotations: vec![] };
    let run = copy(cx.vars, &Exp::Loop(Box::new(l)), &Substitution::default());
    let mut bound: Vec<Var> = state
        .iter()
        .map(|s| {
            let (name, ty) = (cx.vars.name(*s).to_string(), cx.vars.ty(*s).clone());
            cx.vars.fresh(name, ty)
        })
        .collect();
    bound.push(count);
    forth.push((bound, run));
    count
}
