//! Columns go innermost: a `for` over a few columns, the same but for a part that depends on the column, becomes arrays of
//! columns.
//!
//! ```text
//! for c. let (x, t) = loop (x, t) = (x₀, t₀(c)) for i in 0..n do (e(x), f(c, x, t)); for k. r(c, k, x, t)
//! ```
//! is
//! ```text
//! let (x, T) = loop (x, T) = (x₀, for c. t₀(c)) for i in 0..n do (e(x), for c. f(c, x, T[c]));
//! let R = for k. for c. r(c, k, x, T[c]);
//! for c. for k. R[k, c]
//! ```
//!
//! So what does not depend on the column, the values of a function beside the tangents of its Jacobian, is computed once, at
//! every depth. Columns are the last axis of all that depends on them: they stand side by side in memory, updates of a
//! carried array stay updates, and a Jacobian, which has the columns last, is written where it belongs.
//! It is done for a known and small number of columns, where a good part of the work is the same for all of them: elsewhere
//! the columns had better run at once, each with arrays of its own.

use super::hoist::hoist;
use super::simplify::lets::{has_loop, project};
use super::{Context, Rewrite, rewrite_everywhere};
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;
use rustc_hash::{FxHashMap, FxHashSet};

/// The most columns that are taken inwards.
const COLUMNS: i64 = 32;
/// What is the same for all columns is at least one part in so many of the work.
const PART: u64 = 4;
/// How often a loop counts as running.
const STEPS: u64 = 8;

pub fn interchange(cx: &mut Context, exp: Exp) -> Exp {
    let exp = rewrite_everywhere(cx, exp, "interchange", &rule);
    // In a step, too, what is the same for all columns is computed before them.
    if cx.changed { hoist(cx, exp) } else { exp }
}

fn rule(cx: &mut Context, exp: Exp) -> Rewrite {
    let Exp::For(c, size, body) = exp else { return Err(exp) };
    if !is_few(&size) || !worth(&body, c) {
        return Err(Exp::For(c, size, body));
    }
    let ty = type_of_exp(cx.vars, &body);
    // Tuples in tuples, and variables for whole tuples, are taken apart first.
    if part_types(&ty).iter().any(|part| matches!(part, Type::Tuple(_)))
        || has_tuples(cx.vars, &body)
        || is_unfit(cx.vars, &body, &[c].into_iter().collect(), false)
    {
        return Err(Exp::For(c, size, body));
    }
    let varying = vec![true; part_types(&ty).len()];
    let mut columns =
        Columns { cx, c, size, varied: [c].into_iter().collect(), arrays: FxHashMap::default(), pending: vec![], out: vec![] };
    let all = columns.of(*body, &varying);
    let result = columns.first(all, &ty);
    let out = std::mem::take(&mut columns.out);
    Ok(lets(out, result))
}

/// Whether so many columns are taken inwards.
pub(super) fn is_few(size: &Size) -> bool {
    size.as_constant().is_some_and(|n| (2..=COLUMNS).contains(&n))
}

type Statement = (Vec<Var>, Exp);

/// Whether a good part of the body is the same for all columns, and columns have loops: else there is nothing to be saved.
pub(super) fn worth(body: &Exp, c: Var) -> bool {
    let (same, all) = work(body, &[c].into_iter().collect());
    same > STEPS && same * PART >= all
}

/// A loop or a history, as far as both are the same.
struct Step<'a> {
    state: &'a [Var],
    init: &'a Exp,
    body: &'a Exp,
    trip: Option<&'a Trip>,
    size: Option<&'a Size>,
}

impl Step<'_> {
    fn of(exp: &Exp) -> Option<Step<'_>> {
        match exp {
            Exp::Loop(l) => Some(Step { state: &l.state, init: &l.init, body: &l.body, trip: Some(&l.trip), size: None }),
            Exp::History(h) => Some(Step { state: &h.state, init: &h.init, body: &h.body, trip: None, size: Some(&h.size) }),
            _ => None,
        }
    }
    /// Which parts of the state depend on what varies.
    fn varied_states(&self, varied: &FxHashSet<Var>) -> Vec<bool> {
        let mut states = parts_vary(self.init, self.state.len(), varied);
        loop {
            let within = self.within(&states, varied);
            let next = parts_vary(self.body, self.state.len(), &within);
            let all: Vec<bool> = states.iter().zip(next).map(|(a, b)| *a || b).collect();
            if all == states {
                return states;
            }
            states = all;
        }
    }
    /// What varies in a step.
    fn within(&self, states: &[bool], varied: &FxHashSet<Var>) -> FxHashSet<Var> {
        let mut within = varied.clone();
        within.extend(self.state.iter().zip(states).filter(|(_, v)| **v).map(|(s, _)| *s));
        within
    }
    /// Whether it runs as often for all columns, and has states of both kinds.
    fn is_mixed(&self, states: &[bool], varied: &FxHashSet<Var>) -> bool {
        let within = self.within(states, varied);
        let same = |e: &Exp| !varies(e, &within);
        let trip = match self.trip {
            Some(Trip::For(range)) => same(&range.lo) && same(&range.hi),
            Some(Trip::While(condition)) => same(condition),
            None => !self.size.is_some_and(|s| within.iter().any(|v| s.mentions(*v))),
        };
        trip && states.contains(&true) && states.contains(&false)
    }
}

pub(super) fn varies(exp: &Exp, varied: &FxHashSet<Var>) -> bool {
    exp.free_vars().iter().any(|v| varied.contains(v))
}

/// Adds the variables of a `let` that vary.
pub(super) fn note(vars: &[Var], value: &Exp, varied: &mut FxHashSet<Var>) {
    let parts = parts_vary(value, vars.len(), varied);
    varied.extend(vars.iter().zip(parts).filter(|(_, v)| *v).map(|(v, _)| *v));
}

/// Which of the parts of an expression that has so many depend on what varies.
fn parts_vary(exp: &Exp, count: usize, varied: &FxHashSet<Var>) -> Vec<bool> {
    let whole = |v: bool| vec![v; count];
    if !varies(exp, varied) {
        return whole(false);
    }
    match exp {
        Exp::Tuple(parts) if count == parts.len() && count > 1 => parts.iter().map(|e| varies(e, varied)).collect(),
        Exp::Let(vars, value, body) => {
            let mut varied = varied.clone();
            note(vars, value, &mut varied);
            parts_vary(body, count, &varied)
        }
        Exp::For(_, size, body) if !varied.iter().any(|v| size.mentions(*v)) => parts_vary(body, count, varied),
        Exp::Sum(range, body) if !varies(&range.lo, varied) && !varies(&range.hi, varied) && project(body, &[0]).is_some() => {
            parts_vary(body, count, varied)
        }
        Exp::Guard(p, e) if !varies(p, varied) => parts_vary(e, count, varied),
        Exp::If(p, a, b) if !varies(p, varied) => {
            parts_vary(a, count, varied).into_iter().zip(parts_vary(b, count, varied)).map(|(a, b)| a || b).collect()
        }
        Exp::Loop(_) | Exp::History(_) if count > 1 => {
            let step = Step::of(exp).expect("a loop");
            let states = step.varied_states(varied);
            if step.state.len() == count && step.is_mixed(&states, varied) { states } else { whole(true) }
        }
        Exp::Var(_)
        | Exp::Lit(_)
        | Exp::Op(..)
        | Exp::Partial(..)
        | Exp::Index(..)
        | Exp::Singleton(..)
        | Exp::For(..)
        | Exp::Sum(..)
        | Exp::Reduce(..)
        | Exp::History(_)
        | Exp::Loop(_)
        | Exp::Update(..)
        | Exp::Guard(..)
        | Exp::If(..)
        | Exp::Tuple(_)
        | Exp::Array(_)
        | Exp::Call(..) => whole(true),
    }
}

/// How much work is the same for all columns, and how much there is in all. What is the same and is not in a loop among what
/// varies is not counted: it stands before the columns already, or costs too little to.
pub(super) fn work(exp: &Exp, varied: &FxHashSet<Var>) -> (u64, u64) {
    if !varies(exp, varied) {
        let all = operations(exp);
        return (all, all);
    }
    let times = |(same, all): (u64, u64)| (STEPS * same, STEPS * all);
    let add = |(a, b): (u64, u64), (c, d): (u64, u64)| (a + c, b + d);
    match exp {
        Exp::Let(vars, value, body) => {
            let mut inner = varied.clone();
            note(vars, value, &mut inner);
            add(work(value, varied), work(body, &inner))
        }
        Exp::For(_, size, body) if !varied.iter().any(|v| size.mentions(*v)) => times(work(body, varied)),
        Exp::Sum(range, body) if !varies(&range.lo, varied) && !varies(&range.hi, varied) => times(work(body, varied)),
        Exp::Loop(_) | Exp::History(_) => {
            let step = Step::of(exp).expect("a loop");
            let states = step.varied_states(varied);
            if !step.is_mixed(&states, varied) {
                return (0, operations(exp));
            }
            add(work(step.init, varied), times(work(step.body, &step.within(&states, varied))))
        }
        Exp::Op(..)
        | Exp::Partial(..)
        | Exp::Index(..)
        | Exp::Singleton(..)
        | Exp::Update(..)
        | Exp::Guard(..)
        | Exp::If(..)
        | Exp::Tuple(_)
        | Exp::Array(_) => {
            let mut sum = (0, matches!(exp, Exp::Op(..) | Exp::Partial(..)) as u64);
            exp.for_each_child(&mut |e| sum = add(sum, work(e, varied)));
            sum
        }
        Exp::Var(_) | Exp::Lit(_) => (0, 0),
        Exp::For(..) | Exp::Sum(..) | Exp::Reduce(..) | Exp::Call(..) => (0, operations(exp)),
    }
}

fn operations(exp: &Exp) -> u64 {
    let mut count = matches!(exp, Exp::Op(..) | Exp::Partial(..)) as u64;
    exp.for_each_child(&mut |e| count += operations(e));
    let is_loop = matches!(exp, Exp::For(..) | Exp::Sum(..) | Exp::Reduce(..) | Exp::History(_) | Exp::Loop(_));
    if is_loop { STEPS * count } else { count }
}

/// Whether a variable holds a whole tuple, or a value has tuples as parts.
fn has_tuples(vars: &Vars, exp: &Exp) -> bool {
    let whole = |v: &Var| matches!(vars.ty(*v), Type::Tuple(_));
    let mut found = match exp {
        Exp::Let(bound, _, _) => bound.iter().any(whole),
        Exp::Loop(l) => l.state.iter().any(whole),
        Exp::History(h) => h.state.iter().any(whole),
        Exp::Tuple(parts) => parts.iter().any(|e| matches!(type_of_exp(vars, e), Type::Tuple(_))),
        Exp::Var(_)
        | Exp::Lit(_)
        | Exp::Op(..)
        | Exp::Partial(..)
        | Exp::Index(..)
        | Exp::Singleton(..)
        | Exp::For(..)
        | Exp::Sum(..)
        | Exp::Reduce(..)
        | Exp::Update(..)
        | Exp::Guard(..)
        | Exp::If(..)
        | Exp::Array(_)
        | Exp::Call(..) => false,
    };
    exp.for_each_child(&mut |e| found = found || has_tuples(vars, e));
    found
}

/// Whether columns have arrays of different sizes, or change places of their own in loops: these would be copied as a whole in
/// every step.
fn is_unfit(vars: &Vars, exp: &Exp, varied: &FxHashSet<Var>, in_loop: bool) -> bool {
    let mut sized = false;
    exp.for_each_size(&mut |s| sized |= varied.iter().any(|v| s.mentions(*v)));
    if sized {
        return true;
    }
    let is_array = |e: &Exp| matches!(type_of_exp(vars, e), Type::Array(..));
    let own = match exp {
        Exp::Let(bound, value, body) => {
            let mut inner = varied.clone();
            note(bound, value, &mut inner);
            return is_unfit(vars, value, varied, in_loop) || is_unfit(vars, body, &inner, in_loop);
        }
        Exp::Loop(_) | Exp::History(_) => {
            let step = Step::of(exp).expect("a loop");
            let within = step.within(&step.varied_states(varied), varied);
            return is_unfit(vars, step.init, varied, in_loop) || is_unfit(vars, step.body, &within, true);
        }
        Exp::Sum(_, body) => return is_unfit(vars, body, varied, true),
        Exp::Update(_, keys, _, _) => in_loop && keys.iter().any(|k| varies(k, varied)),
        Exp::Singleton(places, _, _) => in_loop && places.iter().any(|(k, _)| varies(k, varied)),
        Exp::If(p, a, _) | Exp::Guard(p, a) => in_loop && varies(p, varied) && is_array(a),
        Exp::Var(_)
        | Exp::Lit(_)
        | Exp::Op(..)
        | Exp::Partial(..)
        | Exp::Index(..)
        | Exp::For(..)
        | Exp::Reduce(..)
        | Exp::Tuple(_)
        | Exp::Array(_)
        | Exp::Call(..) => false,
    };
    let mut found = own;
    exp.for_each_child(&mut |e| found = found || is_unfit(vars, e, varied, in_loop));
    found
}

/// The types of the parts of a tuple, or the one type.
pub fn part_types(ty: &Type) -> Vec<Type> {
    match ty {
        Type::Tuple(parts) => parts.iter().cloned().collect(),
        ty => vec![ty.clone()],
    }
}

/// Statements and values that are being computed for all columns.
struct Columns<'a, 'c> {
    cx: &'a mut Context<'c>,
    c: Var,
    size: Size,
    varied: FxHashSet<Var>,
    /// What varies and has been computed for all columns: in which array, whose last axis they are.
    arrays: FxHashMap<Var, Var>,
    /// Statements of one column that are still to be put in a `for`.
    pending: Vec<Statement>,
    out: Vec<Statement>,
}

impl Columns<'_, '_> {
    /// A value for all columns: of its parts those that are said to vary have the columns as their last axis, those that do
    /// not are as they are. It stands behind what is put out.
    fn of(&mut self, exp: Exp, varying: &[bool]) -> Exp {
        let count = varying.len();
        if !varying.contains(&true) {
            return exp;
        }
        let same = |me: &Self, e: &Exp| !varies(e, &me.varied);
        match exp {
            Exp::Let(vars, value, body) => {
                self.statement(vars, *value);
                self.of(*body, varying)
            }
            Exp::Tuple(parts) if count > 1 => self.each(parts, varying, Exp::Tuple),
            Exp::Array(items) if count == 1 => {
                let all = vec![true; items.len()];
                self.each(items, &all, Exp::Array)
            }
            Exp::For(k, size, body) if !self.varied.iter().any(|v| size.mentions(*v)) => {
                self.flush();
                let body = self.scoped(*body, varying);
                for_(k, size, body)
            }
            Exp::If(p, a, b) if same(self, &p) => {
                self.flush();
                let (a, b) = (self.scoped(*a, varying), self.scoped(*b, varying));
                if_(*p, a, b)
            }
            Exp::Guard(p, e) if same(self, &p) => {
                self.flush();
                let e = self.scoped(*e, varying);
                guard(*p, e)
            }
            Exp::Update(array, keys, value, site) if keys.iter().all(|k| same(self, k)) => {
                let parts = self.each(vec![*array, *value], &[true, true], Exp::Tuple);
                let Exp::Tuple(mut parts) = parts else { unreachable!("two parts") };
                let value = parts.pop().expect("two parts");
                Exp::Update(Box::new(parts.remove(0)), keys, Box::new(value), site)
            }
            Exp::Sum(range, body) if same(self, &range.lo) && same(self, &range.hi) && self.has_arrays(&body) => {
                self.flush();
                let body = self.scoped(*body, varying);
                Exp::Sum(range, Box::new(body))
            }
            Exp::Sum(..) if varying.contains(&false) => match self.split(&exp, varying) {
                Some(parts) => parts,
                None => self.leaf(exp, varying),
            },
            Exp::Op(Op::Add, args, site) if count == 1 && self.has_arrays(&args[0]) => {
                let all = vec![true; args.len()];
                match self.each(args, &all, Exp::Tuple) {
                    Exp::Tuple(args) => Exp::Op(Op::Add, args, site),
                    _ => unreachable!("two parts"),
                }
            }
            Exp::Singleton(places, value, site) if places.iter().all(|(k, _)| same(self, k)) => {
                self.flush();
                let value = self.of(*value, &[true]);
                singleton(places, value, site)
            }
            Exp::Var(v) if self.arrays.contains_key(&v) => Exp::Var(self.arrays[&v]),
            Exp::Index(array, keys, site) if self.is_row(&array, &keys) => {
                let Exp::Var(v) = *array else { unreachable!("a row") };
                index(self.arrays[&v], keys, site)
            }
            exp if self.is_step(&exp, varying) => {
                self.flush();
                self.step(exp, varying)
            }
            exp => self.leaf(exp, varying),
        }
    }

    fn has_arrays(&self, exp: &Exp) -> bool {
        part_types(&type_of_exp(self.cx.vars, exp)).iter().any(|ty| !matches!(ty, Type::Scalar(_)))
    }

    /// Several sums of scalars as one of those that are the same for all columns, and one of the others.
    fn split(&mut self, sums: &Exp, varying: &[bool]) -> Option<Exp> {
        let of = |varies: bool| -> Vec<usize> { (0..varying.len()).filter(|k| varying[*k] == varies).collect() };
        let (same, own) = (of(false), of(true));
        let take = |which: &[usize]| project(sums, which).filter(|(_, kept)| kept == which).map(|(e, _)| e);
        let (first, second) = (take(&same)?, take(&own)?);
        let first = copy(self.cx.vars, &first, &Substitution::default());
        let types = part_types(&type_of_exp(self.cx.vars, sums));
        let names: Vec<Var> = types.into_iter().map(|ty| self.cx.vars.fresh("t", ty)).collect();
        self.out.push((same.iter().map(|k| names[*k]).collect(), first));
        let own: Vec<Var> = own.iter().map(|k| names[*k]).collect();
        self.varied.extend(&own);
        self.pending.push((own.clone(), second));
        self.flush();
        Some(Exp::Tuple(names.into_iter().map(|v| Exp::Var(self.arrays.get(&v).copied().unwrap_or(v))).collect()))
    }

    /// Whether it is a row of an array of columns.
    fn is_row(&self, array: &Exp, keys: &[Exp]) -> bool {
        matches!(array, Exp::Var(v) if self.arrays.contains_key(v) && keys.len() < self.cx.vars.ty(*v).shape().len())
            && !keys.iter().any(|k| varies(k, &self.varied))
    }

    fn is_step(&self, exp: &Exp, varying: &[bool]) -> bool {
        let Some(step) = Step::of(exp).filter(|s| s.state.len() == varying.len()) else { return false };
        let states = step.varied_states(&self.varied);
        step.is_mixed(&states, &self.varied)
    }

    /// A value in a scope of its own. Nothing is pending before it.
    fn scoped(&mut self, exp: Exp, varying: &[bool]) -> Exp {
        let outer = std::mem::take(&mut self.out);
        let exp = self.of(exp, varying);
        self.pending.clear();
        let out = std::mem::replace(&mut self.out, outer);
        lets(out, exp)
    }

    /// Several values: scalars are computed in one `for` over the columns.
    fn each(&mut self, parts: Vec<Exp>, varying: &[bool], make: fn(Vec<Exp>) -> Exp) -> Exp {
        let mut parts: Vec<Exp> = parts;
        if parts.len() > 1 {
            for (part, _) in parts.iter_mut().zip(varying).filter(|(_, v)| **v) {
                let ty = type_of_exp(self.cx.vars, part);
                if matches!(ty, Type::Scalar(_)) && !matches!(part, Exp::Var(_)) {
                    let name = self.cx.vars.fresh("t", ty);
                    let value = std::mem::replace(part, Exp::Var(name));
                    self.varied.insert(name);
                    self.pending.push((vec![name], value));
                }
            }
            self.flush();
        }
        make(parts.into_iter().zip(varying).map(|(e, v)| if *v { self.of(e, &[true]) } else { e }).collect())
    }

    fn statement(&mut self, vars: Vec<Var>, value: Exp) {
        let parts = parts_vary(&value, vars.len(), &self.varied);
        if !parts.contains(&true) {
            self.out.push((vars, value));
            return;
        }
        let scalars = vars.iter().all(|v| matches!(self.cx.vars.ty(*v), Type::Scalar(_)));
        if scalars && !parts.contains(&false) && !self.is_step(&value, &parts) {
            self.varied.extend(&vars);
            self.pending.push((vars, value));
            return;
        }
        let value = self.of(value, &parts);
        self.name(vars, value, &parts);
    }

    /// Names a value for all columns.
    fn name(&mut self, vars: Vec<Var>, value: Exp, varying: &[bool]) {
        let names = vars.iter().zip(varying).map(|(v, varies)| if *varies { self.array_for(*v) } else { *v }).collect();
        self.out.push((names, value));
        self.varied.extend(vars.iter().zip(varying).filter(|(_, v)| **v).map(|(v, _)| *v));
    }

    /// A variable for the values that another has for all columns.
    fn array_for(&mut self, v: Var) -> Var {
        let ty = self.with_columns(self.cx.vars.ty(v).clone());
        let array = self.cx.vars.fresh_like(v, ty);
        self.arrays.insert(v, array);
        array
    }

    fn with_columns(&self, ty: Type) -> Type {
        match ty {
            Type::Array(mut shape, scalar) => {
                shape.push(self.size.clone());
                Type::Array(shape, scalar)
            }
            Type::Scalar(scalar) => Type::Array(vec![self.size.clone()], scalar),
            Type::Tuple(parts) => panic!("interchange: a variable of several parts, {parts:?}"),
        }
    }

    /// Puts what is pending in a `for`; what is not used of it will be dropped.
    fn flush(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        let vars: Vec<Var> = pending.iter().flat_map(|(vars, _)| vars.iter().copied()).collect();
        if vars.is_empty() {
            return;
        }
        let body = lets(pending, tuple(vars.iter().map(|v| Exp::Var(*v)).collect()));
        let all = self.for_columns(body);
        let arrays = vars.iter().map(|v| self.array_for(*v)).collect();
        self.out.push((arrays, all));
    }

    /// A value that is computed column by column, in each with what is pending.
    fn leaf(&mut self, exp: Exp, varying: &[bool]) -> Exp {
        let ty = type_of_exp(self.cx.vars, &exp);
        // What runs loops is not run again for each leaf.
        if self.pending.iter().any(|(_, e)| has_loop(e)) {
            self.flush();
        }
        let types = part_types(&ty);
        let scalars = types.iter().all(|ty| matches!(ty, Type::Scalar(_)));
        let body = lets(self.pending.clone(), exp);
        let all = self.for_columns(body);
        if scalars && !varying.contains(&false) {
            return all;
        }
        let size = self.size.clone();
        let names: Vec<Var> = types.iter().map(|ty| self.cx.vars.fresh("columns", ty.with_axis(&size))).collect();
        self.out.push((names.clone(), all));
        let mut parts = vec![];
        for ((name, ty), varies) in names.into_iter().zip(&types).zip(varying) {
            let indices: Vec<(Var, Size)> = ty.shape().iter().map(|s| (self.cx.vars.fresh("i", Type::I64), s.clone())).collect();
            let c = self.cx.vars.fresh_like(self.c, Type::I64);
            let mut keys = vec![if *varies { Exp::Var(c) } else { i64(0) }];
            keys.extend(indices.iter().map(|(i, _)| Exp::Var(*i)));
            let element = index(name, keys, Site::default());
            let element = if *varies { for_(c, self.size.clone(), element) } else { element };
            parts.push(indices.into_iter().rev().fold(element, |e, (i, s)| for_(i, s, e)));
        }
        tuple(parts)
    }

    /// `for c. e`, with what is in arrays read from them.
    fn for_columns(&mut self, e: Exp) -> Exp {
        let e = self.read(e);
        copy(self.cx.vars, &for_(self.c, self.size.clone(), e), &Substitution::default())
    }

    /// What has the columns as its last axis, with them as the first.
    fn first(&mut self, all: Exp, ty: &Type) -> Exp {
        let types = part_types(ty);
        let names: Vec<Var> = types.iter().map(|ty| self.cx.vars.fresh("columns", self.with_columns(ty.clone()))).collect();
        self.out.push((names.clone(), all));
        let c = self.c;
        let parts = names.into_iter().zip(&types).map(|(name, ty)| self.column(name, ty.shape(), vec![], c)).collect();
        for_(c, self.size.clone(), tuple(parts))
    }

    /// One column of an array, or of a row of it.
    fn column(&mut self, array: Var, axes: &[Size], mut keys: Vec<Exp>, c: Var) -> Exp {
        let indices: Vec<(Var, Size)> = axes.iter().map(|s| (self.cx.vars.fresh("i", Type::I64), s.clone())).collect();
        keys.extend(indices.iter().map(|(i, _)| Exp::Var(*i)));
        keys.push(Exp::Var(c));
        indices.into_iter().rev().fold(index(array, keys, Site::default()), |e, (i, s)| for_(i, s, e))
    }

    /// Reads what has been computed for all columns at the column at hand.
    fn read(&mut self, exp: Exp) -> Exp {
        match exp {
            Exp::Index(array, keys, site) => match *array {
                Exp::Var(v) if self.arrays.contains_key(&v) => {
                    let keys: Vec<Exp> = keys.into_iter().map(|k| self.read(k)).collect();
                    let axes = self.cx.vars.ty(v).shape()[keys.len()..].to_vec();
                    match axes.is_empty() {
                        true => index(self.arrays[&v], keys.into_iter().chain([Exp::Var(self.c)]).collect(), site),
                        false => self.column(self.arrays[&v], &axes, keys, self.c),
                    }
                }
                array => Exp::Index(Box::new(array), keys, site).map_children(&mut |e| self.read(e)),
            },
            Exp::Var(v) => match self.arrays.get(&v).copied() {
                Some(array) => {
                    let axes = self.cx.vars.ty(v).shape().to_vec();
                    self.column(array, &axes, vec![], self.c)
                }
                None => Exp::Var(v),
            },
            exp => exp.map_children(&mut |e| self.read(e)),
        }
    }

    /// A loop with states of both kinds. Nothing is pending before it.
    fn step(&mut self, exp: Exp, varying: &[bool]) -> Exp {
        let step = Step::of(&exp).expect("a loop");
        let states = step.varied_states(&self.varied);
        let state = step.state.to_vec();
        let init = self.scoped(step.init.clone(), &states);
        let arrays: Vec<Var> = state.iter().zip(&states).map(|(s, varies)| if *varies { self.array_for(*s) } else { *s }).collect();
        self.varied.extend(state.iter().zip(&states).filter(|(_, v)| **v).map(|(s, _)| *s));
        let body = self.scoped(step.body.clone(), &states);
        let whole = match exp {
            Exp::Loop(l) => Exp::Loop(Box::new(Iteration { state: arrays, init, body, ..*l })),
            Exp::History(h) => Exp::History(Box::new(History { state: arrays, init, body, ..*h })),
            _ => unreachable!("a loop"),
        };
        if states == varying {
            return whole;
        }
        // What is the same for all columns, and is wanted for each, is repeated at the end.
        let types = part_types(&type_of_exp(self.cx.vars, &whole));
        let names: Vec<Var> = types.iter().map(|ty| self.cx.vars.fresh("t", ty.clone())).collect();
        self.out.push((names.clone(), whole));
        let mut parts = vec![];
        for (k, name) in names.into_iter().enumerate() {
            parts.push(if varying[k] && !states[k] { self.repeated(name) } else { Exp::Var(name) });
        }
        tuple(parts)
    }

    /// A value that is the same for all columns, for each of them.
    fn repeated(&mut self, v: Var) -> Exp {
        let axes: Vec<(Var, Size)> =
            self.cx.vars.ty(v).shape().to_vec().into_iter().map(|s| (self.cx.vars.fresh("i", Type::I64), s)).collect();
        let c = self.cx.vars.fresh_like(self.c, Type::I64);
        let element = match axes.is_empty() {
            true => Exp::Var(v),
            false => index(v, axes.iter().map(|(i, _)| Exp::Var(*i)).collect(), Site::default()),
        };
        axes.into_iter().rev().fold(for_(c, self.size.clone(), element), |e, (i, s)| for_(i, s, e))
    }
}
