//! Loops in a `for` over a few columns: one loop that carries all columns, in place of one for each.
//!
//! ```text
//! for c. let (x, t) = loop (x, t) = (x₀, t₀(c)) for i in 0..n do (e(x), f(c, x, t)); r(c, x, t)
//! ```
//! is
//! ```text
//! let (x, T) = loop (x, T) = (x₀, for c. t₀(c)) for i in 0..n do (e(x), for c. f(c, x, T[c])); for c. r(c, x, T[c])
//! ```
//!
//! So what does not depend on the column, the states of a function beside the tangents of its Jacobian, is computed once. It is
//! done for a known and small number of columns, where a good part of a step is the same for all of them: elsewhere the
//! columns had better run at once, each with a state of its own.

use super::hoist::hoist;
use super::simplify::lets::project;
use super::{Context, Rewrite, rewrite_everywhere};
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;
use rustc_hash::{FxHashMap, FxHashSet};

/// The most columns that a loop carries.
const COLUMNS: i64 = 32;
/// What is the same for all columns is at least one part in so many of a step.
const PART: usize = 4;

pub fn interchange(cx: &mut Context, exp: Exp) -> Exp {
    let exp = rewrite_everywhere(cx, exp, "interchange", &rule);
    // In a step, too, what is the same for all columns is computed before them.
    if cx.changed { hoist(cx, exp) } else { exp }
}

fn rule(cx: &mut Context, exp: Exp) -> Rewrite {
    let Exp::For(c, size, body) = exp else { return Err(exp) };
    let few = size.as_constant().is_some_and(|n| (2..=COLUMNS).contains(&n));
    if !few || !worth(&body, c) {
        return Err(Exp::For(c, size, body));
    }
    let (statements, result) = peel(*body);
    let mut columns =
        Columns { cx, c, size, varied: [c].into_iter().collect(), arrays: FxHashMap::default(), pending: vec![], out: vec![] };
    let count = 1;
    let result = columns.run(statements, vec![result], count).remove(0);
    let out = std::mem::take(&mut columns.out);
    Ok(lets(out, result))
}

type Statement = (Vec<Var>, Exp);

fn peel(exp: Exp) -> (Vec<Statement>, Exp) {
    let mut statements = vec![];
    let mut rest = exp;
    while let Exp::Let(vars, value, body) = rest {
        statements.push((vars, *value));
        rest = *body;
    }
    (statements, rest)
}

/// Whether a loop among the statements has states of both kinds, and a good part of its steps is the same for all columns.
fn worth(body: &Exp, c: Var) -> bool {
    let mut varied: FxHashSet<Var> = [c].into_iter().collect();
    let mut rest = body;
    while let Exp::Let(vars, value, inner) = rest {
        if let Some(step) = Step::of(value) {
            let states = step.varied_states(&varied);
            if step.is_mixed(&states, &varied) {
                let mut within = varied.clone();
                within.extend(step.state.iter().zip(&states).filter(|(_, v)| **v).map(|(s, _)| *s));
                let (same, all) = work(step.body, &within);
                if same > 0 && same * PART >= all {
                    return true;
                }
            }
        }
        note(vars, value, &mut varied);
        rest = inner;
    }
    false
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
            let mut within = varied.clone();
            within.extend(self.state.iter().zip(&states).filter(|(_, v)| **v).map(|(s, _)| *s));
            let next = parts_vary(self.body, self.state.len(), &within);
            let all: Vec<bool> = states.iter().zip(next).map(|(a, b)| *a || b).collect();
            if all == states {
                return states;
            }
            states = all;
        }
    }
    /// Whether it runs as often for all columns, and has states of both kinds.
    fn is_mixed(&self, states: &[bool], varied: &FxHashSet<Var>) -> bool {
        let mut within = varied.clone();
        within.extend(self.state.iter().zip(states).filter(|(_, v)| **v).map(|(s, _)| *s));
        let same = |e: &Exp| !varies(e, &within);
        let trip = match self.trip {
            Some(Trip::For(range)) => same(&range.lo) && same(&range.hi),
            Some(Trip::While(condition)) => same(condition),
            None => !self.size.is_some_and(|s| within.iter().any(|v| s.mentions(*v))),
        };
        trip && states.contains(&true) && states.contains(&false)
    }
}

fn varies(exp: &Exp, varied: &FxHashSet<Var>) -> bool {
    exp.free_vars().iter().any(|v| varied.contains(v))
}

/// Adds the variables of a `let` that vary.
fn note(vars: &[Var], value: &Exp, varied: &mut FxHashSet<Var>) {
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

/// How many operations a step has that are the same for all columns, and how many in all; loops in it count eight times.
fn work(body: &Exp, varied: &FxHashSet<Var>) -> (usize, usize) {
    fn operations(exp: &Exp) -> usize {
        let mut count = matches!(exp, Exp::Op(..) | Exp::Partial(..)) as usize;
        exp.for_each_child(&mut |e| count += operations(e));
        let is_loop = matches!(exp, Exp::For(..) | Exp::Sum(..) | Exp::Reduce(..) | Exp::History(_) | Exp::Loop(_));
        if is_loop { 8 * count } else { count }
    }
    let mut varied = varied.clone();
    let (mut same, mut all) = (0, 0);
    let mut add = |e: &Exp, varied: &FxHashSet<Var>| {
        let own = operations(e);
        all += own;
        same += if varies(e, varied) { 0 } else { own };
    };
    let mut rest = body;
    while let Exp::Let(vars, value, inner) = rest {
        add(value, &varied);
        note(vars, value, &mut varied);
        rest = inner;
    }
    match rest {
        Exp::Tuple(parts) => parts.iter().for_each(|e| add(e, &varied)),
        rest => add(rest, &varied),
    }
    (same, all)
}

/// Statements that run for all columns.
struct Columns<'a, 'c> {
    cx: &'a mut Context<'c>,
    c: Var,
    size: Size,
    varied: FxHashSet<Var>,
    /// What varies and has been computed for all columns: in which array, and behind how many axes the columns are.
    arrays: FxHashMap<Var, (Var, usize)>,
    /// Statements of one column that are still to be put in a `for`.
    pending: Vec<Statement>,
    out: Vec<Statement>,
}

impl Columns<'_, '_> {
    /// Runs statements in front of results; gives the results for all columns, those that are the same for all of them as they are.
    fn run(&mut self, statements: Vec<Statement>, results: Vec<Exp>, count: usize) -> Vec<Exp> {
        let mut left: Vec<Statement> = statements;
        left.reverse();
        while let Some((vars, value)) = left.pop() {
            let parts = parts_vary(&value, vars.len(), &self.varied);
            if !parts.contains(&true) {
                self.out.push((vars, value));
                continue;
            }
            if let Some(step) = Step::of(&value).filter(|s| s.state.len() == vars.len()) {
                let states = step.varied_states(&self.varied);
                if step.is_mixed(&states, &self.varied) {
                    let mut later: FxHashSet<Var> = left.iter().flat_map(|(_, e)| e.free_vars()).collect();
                    later.extend(results.iter().flat_map(Exp::free_vars));
                    later.extend(value.free_vars());
                    self.flush(&later);
                    self.step(vars, value, &states);
                    continue;
                }
            }
            // What is the same for all columns is taken out of a tuple.
            if parts.contains(&false) {
                let of = |varying: bool| -> Vec<usize> { (0..vars.len()).filter(|k| parts[*k] == varying).collect() };
                let (same, own) = (of(false), of(true));
                let split = project(&value, &same).filter(|(e, kept)| *kept == same && !varies(e, &self.varied)).zip(project(&value, &own));
                if let Some(((first, _), (second, kept))) = split {
                    if kept == own {
                        let first = copy(self.cx.vars, &first, &Substitution::default());
                        let name = |of: &[usize]| of.iter().map(|k| vars[*k]).collect::<Vec<Var>>();
                        self.out.push((name(&same), first));
                        self.varied.extend(name(&own));
                        self.pending.push((name(&own), second));
                        continue;
                    }
                }
            }
            self.varied.extend(&vars);
            self.pending.push((vars, value));
        }
        self.finish(results, count)
    }

    /// The results for all columns.
    fn finish(&mut self, results: Vec<Exp>, count: usize) -> Vec<Exp> {
        let varying: Vec<usize> =
            (0..results.len()).filter(|k| count == 1 && results.len() == 1 || varies(&results[*k], &self.varied)).collect();
        let pending = std::mem::take(&mut self.pending);
        let body = lets(pending, tuple(varying.iter().map(|k| results[*k].clone()).collect()));
        let all = self.for_columns(body);
        if varying.len() == results.len() && results.len() == 1 {
            return vec![all];
        }
        let types = match type_of_exp(self.cx.vars, &all) {
            Type::Tuple(parts) if varying.len() > 1 => parts.iter().cloned().collect(),
            ty => vec![ty],
        };
        let named: Vec<Var> = types.into_iter().map(|ty| self.cx.vars.fresh("columns", ty)).collect();
        self.out.push((named.clone(), all));
        let mut named = named.into_iter();
        let mut out = vec![];
        for (k, e) in results.into_iter().enumerate() {
            out.push(if varying.contains(&k) { Exp::Var(named.next().expect("one for each")) } else { e });
        }
        out
    }

    /// Puts what is pending in a `for`, with arrays of what is needed later.
    fn flush(&mut self, later: &FxHashSet<Var>) {
        if self.pending.is_empty() {
            return;
        }
        let pending = std::mem::take(&mut self.pending);
        let needed: Vec<Var> = pending.iter().flat_map(|(vars, _)| vars.iter().copied()).filter(|v| later.contains(v)).collect();
        if needed.is_empty() {
            return;
        }
        let body = lets(pending, tuple(needed.iter().map(|v| Exp::Var(*v)).collect()));
        let all = self.for_columns(body);
        let arrays: Vec<Var> = needed.iter().map(|v| self.of_columns(*v, 0)).collect();
        self.out.push((arrays, all));
    }

    /// `for c. e`, with what is in arrays read from them.
    fn for_columns(&mut self, e: Exp) -> Exp {
        let e = self.read(e);
        copy(self.cx.vars, &for_(self.c, self.size.clone(), e), &Substitution::default())
    }

    /// A variable for the values that another has for all columns.
    fn of_columns(&mut self, v: Var, behind: usize) -> Var {
        let ty = self.cx.vars.ty(v).clone();
        let ty = match (behind, &ty) {
            (0, ty) => ty.with_axis(&self.size),
            (_, Type::Array(shape, s)) => {
                let mut shape = shape.clone();
                shape.insert(behind, self.size.clone());
                Type::Array(shape, *s)
            }
            (_, ty) => panic!("interchange: a history of {ty:?}"),
        };
        let array = self.cx.vars.fresh_like(v, ty);
        self.arrays.insert(v, (array, behind));
        array
    }

    /// Reads what has been computed for all columns at the column at hand.
    fn read(&mut self, exp: Exp) -> Exp {
        match exp {
            Exp::Index(array, keys, site) => match *array {
                Exp::Var(v) if self.arrays.contains_key(&v) => {
                    let (array, behind) = self.arrays[&v];
                    let mut keys: Vec<Exp> = keys.into_iter().map(|k| self.read(k)).collect();
                    keys.insert(behind, Exp::Var(self.c));
                    index(array, keys, site)
                }
                array => Exp::Index(Box::new(array), keys, site).map_children(&mut |e| self.read(e)),
            },
            Exp::Var(v) => match self.arrays.get(&v).copied() {
                Some((array, 0)) => index(array, vec![Exp::Var(self.c)], Site::default()),
                Some((array, _)) => {
                    let places = self.cx.vars.ty(v).shape()[0].clone();
                    let k = self.cx.vars.fresh("k", Type::I64);
                    for_(k, places, index(array, vec![Exp::Var(k), Exp::Var(self.c)], Site::default()))
                }
                None => Exp::Var(v),
            },
            exp => exp.map_children(&mut |e| self.read(e)),
        }
    }

    /// A loop with states of both kinds.
    fn step(&mut self, vars: Vec<Var>, value: Exp, states: &[bool]) {
        let behind = matches!(value, Exp::History(_)) as usize;
        let (state, init, body) = match &value {
            Exp::Loop(l) => (l.state.clone(), l.init.clone(), l.body.clone()),
            Exp::History(h) => (h.state.clone(), h.init.clone(), h.body.clone()),
            _ => unreachable!("a loop"),
        };
        let kind = |v: &Var, varying: bool, me: &mut Self, behind: usize| if varying { me.of_columns(*v, behind) } else { *v };
        let (before, first) = peel(init);
        for (vars, value) in before {
            note(&vars, &value, &mut self.varied);
            if vars.iter().any(|v| self.varied.contains(v)) {
                self.varied.extend(&vars);
                self.pending.push((vars, value));
            } else {
                self.out.push((vars, value));
            }
        }
        let starts = match first {
            Exp::Tuple(parts) if parts.len() == state.len() => parts,
            first => {
                let names: Vec<Var> = state.iter().map(|s| self.cx.vars.fresh_like(*s, self.cx.vars.ty(*s).clone())).collect();
                self.varied.extend(&names);
                self.pending.push((names.clone(), first));
                names.into_iter().map(Exp::Var).collect()
            }
        };
        self.flush(&starts.iter().flat_map(Exp::free_vars).collect());
        let init =
            starts.into_iter().zip(states).map(|(e, varying)| if *varying || varies(&e, &self.varied) { self.for_columns(e) } else { e });
        let init: Vec<Exp> = init.collect();
        self.varied.extend(state.iter().zip(states).filter(|(_, v)| **v).map(|(s, _)| *s));
        let carried: Vec<Var> = state.iter().zip(states).map(|(s, varying)| kind(s, *varying, self, 0)).collect();
        let outer = std::mem::take(&mut self.out);
        let (statements, result) = peel(body);
        let count = state.len();
        let next = match result {
            Exp::Tuple(parts) if parts.len() == count => self.run(statements, parts, count),
            result => {
                let names: Vec<Var> = state.iter().map(|s| self.cx.vars.fresh_like(*s, self.cx.vars.ty(*s).clone())).collect();
                let all = statements.into_iter().chain([(names.clone(), result)]).collect();
                self.run(all, names.into_iter().map(Exp::Var).collect(), count)
            }
        };
        let within = std::mem::replace(&mut self.out, outer);
        let body = lets(within, Exp::Tuple(next));
        let results: Vec<Var> = vars.iter().zip(states).map(|(v, varying)| kind(v, *varying, self, behind)).collect();
        self.varied.extend(vars.iter().zip(states).filter(|(_, v)| **v).map(|(v, _)| *v));
        let value = match value {
            Exp::Loop(l) => Exp::Loop(Box::new(Iteration { state: carried, init: tuple(init), body, ..*l })),
            Exp::History(h) => Exp::History(Box::new(History { state: carried, init: tuple(init), body, ..*h })),
            _ => unreachable!("a loop"),
        };
        self.out.push((results, value));
    }
}
