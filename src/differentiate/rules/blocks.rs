//! y = loop s = s₀ for i in 0..n do e(i, s), in blocks of k steps: q blocks, and a last one of 1 to k steps
//!
//! reverse:  the states at which blocks begin are kept, and the steps of the last block:
//!           (s, w) = loop (s, w) = (s₀, 0) for b in 0..q do (loop s for i in b k..b k + k do e(i, s), w with [b] = s)
//!           y = loop s for i in q k..n do e(i, s), reversed as any loop
//!           On the way back every other block is run again from its start, its steps kept, and reversed:
//!           loop (s̄, ā) for b in 0..q, from the last, do let s = w[b]; …
//!
//! So about n/k + k states are there at a time instead of n, and all but the last block run twice forwards: a loop of one
//! block costs nothing more. `stripmine(d)` makes the blocks loops that are stripmined themselves, d - 1 times: d n^(1/d)
//! states, and d runs forwards. Kept are only states from which something that the way back needs is computed; of sums
//! none is. What loops keep otherwise stays as it is within a block: arrays that its steps change where they are
//! (`in_place`) are kept once for each block, and within it what the steps overwrite.

use super::super::reverse::Reverse;
use super::super::saving::{Depth, Saving};
use super::super::scope::{Scope, Statement};
use super::summed::{Summed, parts};
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;
use rustc_hash::FxHashSet;

/// How a loop is cut.
pub struct Cut {
    /// The length of blocks, of the type of an integer; at least 1 where it matters.
    length: Length,
    /// What is asked for the blocks.
    inner: Vec<(Annotation, Size)>,
}

enum Length {
    Given(Size),
    /// So that a block keeps half of so many values.
    Within(i64),
    /// So that there are as many blocks as their root of this degree of all steps.
    Root(i64),
}

/// How deep a loop is stripmined whose depth is known only when it runs.
const DEPTH: i64 = 2;

impl Cut {
    /// `None` where a loop is to be kept step by step.
    pub fn of(annotations: &[(Annotation, Size)]) -> Option<Cut> {
        let asked = |wanted: Annotation| annotations.iter().find(|(a, _)| *a == wanted).map(|(_, size)| size.clone());
        let depth = asked(Annotation::Stripmine).map(|d| d.as_constant().unwrap_or(DEPTH)).filter(|d| *d > 1);
        let stripmined = |d: i64| if d > 1 { vec![(Annotation::Stripmine, Size::constant(d))] } else { vec![] };
        match (asked(Annotation::Checkpoint), depth) {
            (Some(every), depth) => Some(Cut { length: Length::Given(every), inner: stripmined(depth.unwrap_or(1)) }),
            (None, Some(depth)) => Some(Cut { length: Length::Root(depth), inner: stripmined(depth - 1) }),
            (None, None) => None,
        }
    }

    /// Blocks that keep so many values, with the states that they begin with.
    pub fn within(values: i64) -> Cut {
        Cut { length: Length::Within(values), inner: vec![] }
    }

    /// The number of steps in a block, at least 1, and what it is computed from.
    fn length(&self, vars: &mut Vars, size: &Size, of_step: &Size) -> (Vec<Statement>, Exp) {
        let at_least_one = |e: Exp| op2(Op::Max, i64(1), e);
        match &self.length {
            Length::Given(every) => (vec![], at_least_one(size_exp(every))),
            Length::Within(values) => {
                let twice = size_exp(&of_step.scale(2));
                (vec![], at_least_one(op2(Op::IDiv, i64(*values), at_least_one(twice))))
            }
            Length::Root(degree) => {
                let (root, statements) = root(vars, size, *degree);
                let last = size_exp(&size.sub(&Size::constant(1)));
                (statements, at_least_one(add(op2(Op::IDiv, last, root), i64(1))))
            }
        }
    }
}

/// The least r of 1 or more with r^d >= n: bit by bit, in whole numbers, which cost nothing.
fn root(vars: &mut Vars, n: &Size, degree: i64) -> (Var, Vec<Statement>) {
    let bits = (62 / degree).max(1);
    let [r, bit, root, rest, j] = ["r", "bit", "root", "bit", "j"].map(|name| vars.fresh(name, Type::I64));
    let more = || add(r, bit);
    let power = (1..degree.min(62)).fold(more(), |p, _| mul(p, more()));
    let next = if_(op2(Op::Lt, power, size_exp(n)), more(), r);
    let step = Exp::Tuple(vec![next, op2(Op::IDiv, bit, i64(2))]);
    let trip = Trip::For(Range { index: j, lo: i64(0), hi: i64(bits) });
    let init = Exp::Tuple(vec![i64(0), i64(1 << (bits - 1))]);
    let search = Exp::Loop(Box::new(Iteration { state: vec![r, bit], init, trip, body: step, annotations: vec![] }));
    let below = vars.fresh("r", Type::I64);
    (root, vec![(vec![below, rest], search), (vec![root], add(below, i64(1)))])
}

/// A loop over `0..size`.
pub struct Steps<'a> {
    pub vars: &'a [Var],
    pub l: &'a Iteration,
    pub index: Var,
    pub size: &'a Size,
    /// In named form: the next state.
    pub body: &'a Exp,
}

pub fn reverse(cx: &mut Reverse, steps: &Steps, cut: &Cut, adjoints: Vec<Option<Exp>>) -> Vec<Statement> {
    let Steps { vars, l, size, .. } = steps;
    let init = parts(&l.init);
    let sums = Summed::of(cx.vars, l).sums;
    let fresh = |cx: &mut Reverse| -> Vec<Var> { l.state.iter().map(|s| cx.vars.fresh_like(*s, cx.vars.ty(*s).clone())).collect() };

    // The lengths: `whole` blocks of `every` steps before the last block. Their values come when it is known what is kept.
    let mut number = |name: &str, least: i64| -> Var {
        let v = cx.vars.fresh(name, Type::I64);
        cx.facts.assume_nonneg(Size::var(v).sub(&Size::constant(least)));
        v
    };
    let given = match &cut.length {
        Length::Given(every) => every.as_constant().filter(|k| *k >= 1).map(Size::constant),
        Length::Within(_) | Length::Root(_) => None,
    };
    let every_var = number("every", 1);
    let every = given.clone().unwrap_or(Size::var(every_var));
    let whole_var = number("blocks", 0);
    let whole = Size::var(whole_var);
    let done = whole.mul(&every);
    cx.facts.assume_nonneg(size.sub(&done));
    // Blocks are not cut again, nor what is in them, unless there is too much of it.
    let (values_each, around) = (cx.values_each, cx.block);
    if !matches!(cx.saving, Saving::Within { depth: Depth::All, .. }) {
        cx.values_each = None;
    }

    // The last block.
    let last = fresh(cx);
    last.iter().zip(&l.state).for_each(|(last, state)| cx.vary_as(*last, *state));
    let block = steps.block(cx.vars, &done, size, &last, &cut.inner);
    cx.block = state_of(&block);
    let block = vec![(vars.to_vec(), block)];
    cx.mark_varied(&block);
    for (v, adjoint) in vars.iter().zip(&adjoints) {
        if let Some(adjoint) = adjoint {
            cx.contribute(&Exp::Var(*v), adjoint.clone());
        }
    }
    let of_last = cx.walk_back(block);
    let moving: Vec<usize> = (0..l.state.len()).filter(|k| cx.varies(&Exp::Var(l.state[*k])) && !sums.contains(k)).collect();
    sums.iter().for_each(|k| drop(cx.take_contributions(last[*k])));

    // A whole block, run again and reversed. The adjoints of free variables go on from what they are when it begins.
    let b = cx.vars.fresh("b", Type::I64);
    let (start, end) = (fresh(cx), fresh(cx));
    start.iter().zip(&l.state).for_each(|(start, state)| cx.vary_as(*start, *state));
    let from = Size::var(b).mul(&every);
    let block = steps.block(cx.vars, &from, &from.add(&every), &start, &cut.inner);
    let free: Vec<Var> = cx.receivers(&block).into_iter().filter(|v| !start.contains(v)).collect();
    let begun: Vec<(Var, Var)> = free.iter().map(|v| (*v, cx.adjoint_var(*v))).collect();
    // What is summed is not needed on the way back, so it may start from anything.
    let mut statements: Vec<Statement> = vec![];
    for k in &sums {
        let ty = cx.vars.ty(start[*k]).clone();
        statements.push((vec![start[*k]], zero(cx.vars, &ty)));
    }
    statements.push((end.clone(), block));
    cx.mark_varied(&statements);
    let lambda: Vec<Var> = moving.iter().map(|k| cx.adjoint_var(l.state[*k])).collect();
    let mut seeds = vec![None; l.state.len()];
    for k in &sums {
        seeds[*k] = adjoints[*k].clone();
    }
    for (k, l) in moving.iter().zip(&lambda) {
        seeds[*k] = Some(Exp::Var(*l));
    }
    let facts = cx.facts.clone();
    cx.facts.enter_for(b, &whole);
    cx.block = statements.last().and_then(|(_, block)| state_of(block));
    let results = end.iter().map(|v| Exp::Var(*v)).collect();
    let mut inner = cx.scope_from(Scope { statements, results }, seeds, &begun);
    cx.facts = facts;
    (cx.values_each, cx.block) = (values_each, around);
    let free: Vec<(Var, Var)> = begun.into_iter().filter(|(v, begun)| inner.adjoints.get(v) != Some(&Exp::Var(*begun))).collect();
    let mut back = vec![];
    for k in &moving {
        let ty = cx.vars.ty(l.state[*k]).clone();
        back.push(inner.adjoints.shift_remove(&start[*k]).unwrap_or_else(|| zero(cx.vars, &ty)));
    }
    back.extend(free.iter().map(|(v, _)| inner.adjoints[v].clone()));
    let way = live(cx.vars, [inner.forward, inner.backward].concat(), &back);
    let of_step = kept_of_step(cx.vars, &way, every_var, b);
    let step = lets(way, tuple(back));
    let needed: FxHashSet<Var> = step.free_vars().into_iter().collect();
    let kept: Vec<usize> = (0..l.state.len()).filter(|k| needed.contains(&start[*k])).collect();

    let mut forth: Vec<Statement> = vec![];
    if given.is_none() {
        let (statements, length) = cut.length(cx.vars, size, &of_step);
        forth.extend(statements);
        forth.push((vec![every_var], length));
    }
    let before = size.sub(&Size::constant(1)).div(&every).maximum(&Size::default());
    forth.push((vec![whole_var], size_exp(&before)));

    // The way forth up to the last block, keeping what blocks begin with.
    let all: Vec<Var> = kept.iter().map(|k| cx.vars.fresh_like(start[*k], cx.vars.ty(start[*k]).with_axis(&whole))).collect();
    let (state, next) = (fresh(cx), fresh(cx));
    let holders: Vec<Var> = all.iter().map(|all| cx.vars.fresh_like(*all, cx.vars.ty(*all).clone())).collect();
    let written: Vec<Var> = all.iter().map(|all| cx.vars.fresh_like(*all, cx.vars.ty(*all).clone())).collect();
    let mut body: Vec<Statement> = vec![];
    for ((k, holder), written) in kept.iter().zip(&holders).zip(&written) {
        let value = Box::new(Exp::Var(state[*k]));
        body.push((vec![*written], Exp::Update(Box::new(Exp::Var(*holder)), vec![Exp::Var(b)], value, Site::default())));
    }
    body.push((next.clone(), steps.block(cx.vars, &from, &from.add(&every), &state, &[])));
    let body = lets(body, tuple(next.iter().chain(&written).map(|v| Exp::Var(*v)).collect()));
    let mut begin = init.clone();
    for all in &all {
        let ty = cx.vars.ty(*all).clone();
        begin.push(zero(cx.vars, &ty));
    }
    let blocks = counted(b, &whole, [state, holders].concat(), begin, body);
    forth.push(([last.clone(), all.clone()].concat(), copy(cx.vars, &blocks, &Substitution::default())));
    forth.extend(of_last);

    // The way back over the blocks before.
    let t = cx.vars.fresh_like(b, Type::I64);
    let from_end = size_exp(&whole.sub(&Size::constant(1)).sub(&Size::var(t)));
    let mut begin = vec![];
    let mut bound = vec![];
    for k in &moving {
        let ty = cx.vars.ty(l.state[*k]).clone();
        begin.push(cx.take_contributions(last[*k]).unwrap_or_else(|| zero(cx.vars, &ty)));
        bound.push(cx.adjoint_var(l.state[*k]));
    }
    for (v, _) in &free {
        let ty = cx.vars.ty(*v).clone();
        begin.push(cx.take_contributions(*v).unwrap_or_else(|| zero(cx.vars, &ty)));
        bound.push(cx.adjoint_var(*v));
    }
    let starts = kept.iter().zip(&all).map(|(k, all)| (vec![start[*k]], index(*all, vec![Exp::Var(b)], Site::default())));
    let step = copy(cx.vars, &lets(starts.collect(), step), &Substitution::from_iter([(b, from_end)]));
    let states = lambda.iter().copied().chain(free.iter().map(|(_, begun)| *begun)).collect();
    if !bound.is_empty() {
        let blocks = counted(t, &whole, states, begin, step);
        let blocks = copy(cx.vars, &blocks, &Substitution::default());
        cx.emit(bound.clone(), blocks);
    }
    let mut bound = bound.into_iter();
    for (k, adjoint) in moving.iter().zip(bound.by_ref()) {
        cx.contribute(&init[*k], Exp::Var(adjoint));
    }
    for ((v, _), adjoint) in free.iter().zip(bound) {
        cx.contribute(&Exp::Var(*v), Exp::Var(adjoint));
    }
    for k in &sums {
        if let Some(adjoint) = &adjoints[*k] {
            cx.contribute(&init[*k], adjoint.clone());
        }
    }
    forth
}

impl Steps<'_> {
    /// The steps from `lo` to `hi` from a state.
    fn block(&self, vars: &mut Vars, lo: &Size, hi: &Size, start: &[Var], annotations: &[(Annotation, Size)]) -> Exp {
        let trip = Trip::For(Range { index: self.index, lo: size_exp(lo), hi: size_exp(hi) });
        let init = tuple(start.iter().map(|v| Exp::Var(*v)).collect());
        let (state, body) = (self.l.state.clone(), self.body.clone());
        copy(vars, &Exp::Loop(Box::new(Iteration { state, init, trip, body, annotations: annotations.to_vec() })), &Substitution::default())
    }
}

/// The first variable of a loop's state.
fn state_of(block: &Exp) -> Option<Var> {
    match block {
        Exp::Loop(l) => l.state.first().copied(),
        _ => None,
    }
}

/// How many values are kept for each step of a block: of the arrays made on the way how much longer they are with each
/// step. What is made for one step and has a size of its own is not kept for the others.
fn kept_of_step(vars: &Vars, way: &[Statement], every: Var, b: Var) -> Size {
    let local: FxHashSet<Var> = way.iter().flat_map(|(bound, _)| bound.iter().copied()).chain([b]).collect();
    let mut total = Size::default();
    for v in way.iter().flat_map(|(bound, _)| bound) {
        let shape = vars.ty(*v).shape();
        let mut sizes = vec![];
        shape.iter().for_each(|s| s.variables(&mut sizes));
        if !shape.is_empty() && !sizes.iter().any(|s| local.contains(s)) {
            total = total.add(&shape.iter().fold(Size::constant(1), |product, s| product.mul(s)));
        }
    }
    let at = |size: &Size, value: Size| size.substitute(&|v| (v == every).then(|| value.clone()));
    let longer = at(&total, Size::var(every).add(&Size::constant(1)));
    at(&longer.sub(&total), Size::constant(1))
}

/// The statements that results need.
fn live(vars: &Vars, statements: Vec<Statement>, results: &[Exp]) -> Vec<Statement> {
    let mut needed: FxHashSet<Var> = results.iter().flat_map(Exp::free_vars).collect();
    let mut done = vec![];
    for (bound, exp) in statements.into_iter().rev() {
        if bound.iter().any(|v| needed.contains(v)) {
            needed.extend(exp.free_vars());
            // A type's sizes are needed wherever its variable is.
            for v in &bound {
                let mut sizes = vec![];
                vars.ty(*v).map_sizes(&mut |s| {
                    s.variables(&mut sizes);
                    s.clone()
                });
                needed.extend(sizes);
            }
            done.push((bound, exp));
        }
    }
    done.reverse();
    done
}

fn counted(index: Var, size: &Size, state: Vec<Var>, init: Vec<Exp>, body: Exp) -> Exp {
    let trip = Trip::For(Range { index, lo: i64(0), hi: size_exp(size) });
    Exp::Loop(Box::new(Iteration { state, init: tuple(init), trip, body, annotations: vec![] }))
}
