//! Histories by use: states that nothing reads again are not kept.
//!
//! ```text
//! let h = history s = s₀ for i in 0..n do e(i, s);          let (s, a) = loop (s, a) = (s₀, 0) for i in 0..n do
//! … h[n] … sum t in 0..n. f(t, h[t]) …               is       (e(i, s), a + f(i, s));
//!                                                           … s … a …
//! ```
//!
//! where every use of the history is its first state, its last one, or a sum over all of its steps, in either direction:
//! of the states before the steps, of those behind them, or of both. So a loop keeps one state instead of all of them. A
//! sum over the states that has one more term than there are steps takes the last state behind the loop.
//!
//! A sum in `for`s is a sum of arrays. A sum stays, and the history with it, where its terms are larger than the states
//! that they read (an outer product over all steps is a matrix product), or its terms have more work than the steps (they may
//! run at once, the steps may not).

use super::{Context, Rewrite, rewrite_everywhere};
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;

pub fn forget_states(cx: &mut Context, exp: Exp) -> Exp {
    rewrite_everywhere(cx, exp, "forget_states", &rule)
}

fn rule(cx: &mut Context, exp: Exp) -> Rewrite {
    match exp {
        Exp::Let(vars, value, rest) => match *value {
            Exp::History(h) => match survey(cx, &vars, &h, &rest) {
                Some(found) => Ok(convert(cx, vars, *h, *rest, found)),
                None => Err(let_(vars, Exp::History(h), *rest)),
            },
            value => Err(Exp::Let(vars, Box::new(value), rest)),
        },
        Exp::Index(array, keys, site) => match *array {
            Exp::History(h) => {
                let v = cx.vars.fresh_like(h.state[0], type_of_exp(cx.vars, &Exp::History(h.clone())));
                let rest = Exp::Index(Box::new(Exp::Var(v)), keys, site);
                match survey(cx, &[v], &h, &rest) {
                    Some(found) => Ok(convert(cx, vec![v], *h, rest, found)),
                    None => {
                        let Exp::Index(_, keys, site) = rest else { unreachable!("a read") };
                        Err(Exp::Index(Box::new(Exp::History(h)), keys, site))
                    }
                }
            }
            array => Err(Exp::Index(Box::new(array), keys, site)),
        },
        exp => Err(exp),
    }
}

/// What reads of a history are for.
#[derive(Default)]
struct Found {
    /// The sums over its steps, in the order in which they stand. The other reads are of the first state and the last.
    sums: Vec<StepSum>,
}

/// `sum t in lo..hi. f(t, h[±t + c])` under other sums and in `for`s.
#[derive(Clone)]
struct StepSum {
    /// The loops around, outermost first, that it depends on.
    around: Vec<(Var, Size)>,
    /// The sums around.
    outer: Vec<Range>,
    index: Var,
    body: Exp,
    steps: Steps,
}

impl StepSum {
    /// The index of the outermost sum, by which it is found.
    fn outermost(&self) -> Var {
        self.outer.first().map_or(self.index, |range| range.index)
    }
}

/// Which states the terms of a sum read.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Steps {
    /// Whether the keys grow with the index.
    up: bool,
    /// The lowest key is this, with or without the index: `key = c + t` or `c - t`.
    offset: Size,
    reach: Reach,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// The states before the steps, and maybe those behind them.
    Before,
    /// Those behind the steps alone.
    Behind,
    /// All states: those before the steps, and the last one.
    All,
}

/// The uses of a history in what follows it, if it need not be kept.
fn survey(cx: &Context, vars: &[Var], h: &History, rest: &Exp) -> Option<Found> {
    // One variable holds the whole tuple until its parts are named.
    if h.state.len() != vars.len() || h.state.iter().any(|v| matches!(cx.vars.ty(*v), Type::Tuple(_))) {
        return None;
    }
    let mut survey = Survey { cx, vars, h, around: vec![], between: vec![], found: Found::default() };
    survey.walk(rest, true).then_some(survey.found)
}

struct Survey<'a, 'c> {
    cx: &'a Context<'c>,
    vars: &'a [Var],
    h: &'a History,
    /// The `for`s between the history and this place.
    around: Vec<(Var, Size)>,
    /// What `let`s bind between.
    between: Vec<Var>,
    found: Found,
}

impl Survey<'_, '_> {
    /// Whether all uses in an expression are such that the states need not be kept. Sums are taken out where that repeats
    /// nothing and computes nothing that was not asked for (`open`).
    fn walk(&mut self, exp: &Exp, open: bool) -> bool {
        match exp {
            Exp::Var(v) => !self.vars.contains(v),
            Exp::Index(array, keys, _) => match **array {
                Exp::Var(v) if self.vars.contains(&v) => self.is_end(&keys[0]) && keys[1..].iter().all(|k| self.walk(k, open)),
                _ => self.walk(array, open) && keys.iter().all(|k| self.walk(k, open)),
            },
            Exp::For(i, size, body) => {
                self.around.push((*i, size.clone()));
                let fine = self.walk(body, open);
                self.around.pop();
                fine
            }
            Exp::Sum(range, body) => {
                if !body.mentions_any(self.vars) {
                    return self.walk(&range.lo, open) && self.walk(&range.hi, open);
                }
                match self.step_sum(range, body).filter(|_| open) {
                    Some(sum) => {
                        self.found.sums.push(sum);
                        true
                    }
                    None => self.walk(&range.lo, open) && self.walk(&range.hi, open) && self.walk(body, false),
                }
            }
            Exp::Let(bound, value, body) => {
                let fine = self.walk(value, open);
                let mark = self.between.len();
                self.between.extend(bound);
                let fine = fine && self.walk(body, open);
                self.between.truncate(mark);
                fine
            }
            Exp::Guard(p, e) => self.walk(p, open) && self.walk(e, false),
            Exp::If(p, a, b) => self.walk(p, open) && self.walk(a, false) && self.walk(b, false),
            Exp::Reduce(_, range, body, _) => self.walk(&range.lo, open) && self.walk(&range.hi, open) && self.walk(body, false),
            Exp::History(h) => self.walk(&h.init, open) && self.walk(&h.body, false),
            Exp::Loop(l) => {
                let trip = match &l.trip {
                    Trip::For(range) => self.walk(&range.lo, open) && self.walk(&range.hi, open),
                    Trip::While(condition) => self.walk(condition, false),
                };
                self.walk(&l.init, open) && trip && self.walk(&l.body, false)
            }
            Exp::Lit(_)
            | Exp::Op(..)
            | Exp::Partial(..)
            | Exp::Singleton(..)
            | Exp::Update(..)
            | Exp::Tuple(_)
            | Exp::Array(_)
            | Exp::Call(..) => {
                let mut fine = true;
                exp.for_each_child(&mut |e| fine = fine && self.walk(e, open));
                fine
            }
        }
    }

    /// Whether a key is that of the first or the last state.
    fn is_end(&self, key: &Exp) -> bool {
        exp_size(key).is_some_and(|key| key == self.h.size || key == Size::default())
    }

    /// A sum over the steps, if it is one that the loop may do.
    fn step_sum(&self, range: &Range, body: &Exp) -> Option<StepSum> {
        let mut outer = vec![];
        let (mut range, mut body) = (range, body);
        let steps = loop {
            match self.steps(range, body) {
                Some(steps) => break steps,
                None => match body {
                    Exp::Sum(inner, rest) if !inner.lo.mentions(range.index) && !inner.hi.mentions(range.index) => {
                        outer.push(range.clone());
                        (range, body) = (inner, rest);
                    }
                    _ => return None,
                },
            }
        };
        let mentioned = |v: Var| body.mentions(v) || outer.iter().any(|r| r.lo.mentions(v) || r.hi.mentions(v));
        let around: Vec<(Var, Size)> = self.around.iter().filter(|(i, _)| mentioned(*i)).cloned().collect();
        let inner: Vec<Var> = self.around.iter().map(|(i, _)| *i).chain(self.between.iter().copied()).collect();
        let fixed = !self.between.iter().any(|v| mentioned(*v))
            && !around.iter().any(|(_, size)| inner.iter().any(|v| size.mentions(*v)))
            && !outer.iter().any(|r| r.lo.mentions_any(self.vars) || r.hi.mentions_any(self.vars));
        let sum = StepSum { around, outer, index: range.index, body: body.clone(), steps };
        (fixed && self.is_worth(&sum)).then_some(sum)
    }

    /// Whether a sum over the steps reads the states one by one.
    fn steps(&self, range: &Range, body: &Exp) -> Option<Steps> {
        let (lo, hi) = (exp_size(&range.lo)?, exp_size(&range.hi)?);
        let t = Size::var(range.index);
        let mut keys = vec![];
        if !self.keys(body, &mut keys) {
            return None;
        }
        let up = !keys.first()?.sub(&t).mentions(range.index);
        let offsets: Vec<Size> = keys.iter().map(|k| if up { k.sub(&t) } else { k.add(&t) }).collect();
        if offsets.iter().any(|c| c.mentions(range.index)) {
            return None;
        }
        let one = Size::constant(1);
        let lowest = offsets.iter().find(|c| offsets.iter().all(|d| d == *c || *d == c.add(&one)))?;
        let both = offsets.iter().any(|d| d != lowest);
        // The lowest of all keys, and how many there are.
        let start = if up { lowest.add(&lo) } else { lowest.sub(&hi).add(&one) };
        let count = hi.sub(&lo);
        let size = &self.h.size;
        let (zero, steps) = (Size::default(), count.axis() == size.axis());
        let reach = match () {
            () if steps && start == zero => Reach::Before,
            () if steps && start == one && !both => Reach::Behind,
            () if count == size.add(&one) && start == zero && !both => Reach::All,
            () => return None,
        };
        Some(Steps { up, offset: lowest.clone(), reach })
    }

    /// The keys of the states that are read, if the states are only read.
    fn keys(&self, exp: &Exp, out: &mut Vec<Size>) -> bool {
        match exp {
            Exp::Var(v) => !self.vars.contains(v),
            Exp::Index(array, keys, _) if matches!(**array, Exp::Var(v) if self.vars.contains(&v)) => match exp_size(&keys[0]) {
                Some(key) => {
                    out.push(key);
                    keys[1..].iter().all(|k| self.keys(k, out))
                }
                None => false,
            },
            exp => {
                let mut fine = true;
                exp.for_each_child(&mut |e| fine = fine && self.keys(e, out));
                fine
            }
        }
    }

    /// Whether terms are no larger than the states they read, and have no more work than a step.
    fn is_worth(&self, sum: &StepSum) -> bool {
        fn rank(ty: &Type) -> usize {
            match ty {
                Type::Scalar(_) => 0,
                Type::Array(shape, _) => shape.len(),
                Type::Tuple(parts) => parts.iter().map(rank).max().unwrap_or(0),
            }
        }
        let own = sum.around.len() + rank(&type_of_exp(self.cx.vars, &sum.body));
        let read = self.vars.iter().zip(&self.h.state).filter(|(v, _)| sum.body.mentions(**v));
        let state = read.map(|(_, s)| rank(self.cx.vars.ty(*s))).max().unwrap_or(0);
        let work = own.max(sum.around.len() + sum.outer.len() + depth(&sum.body));
        own <= state && work <= depth(&self.h.body).max(state)
    }
}

/// How deep loops stand in one another.
fn depth(exp: &Exp) -> usize {
    let mut deepest = 0;
    exp.for_each_child(&mut |e| deepest = deepest.max(depth(e)));
    deepest + matches!(exp, Exp::For(..) | Exp::Sum(..) | Exp::Reduce(..) | Exp::History(_) | Exp::Loop(_)) as usize
}

/// The states that a term reads: those before a step and those behind it.
struct At<'a> {
    vars: &'a [Var],
    before: &'a [Var],
    behind: &'a [Var],
    /// The lower of the two keys.
    key: Size,
}

/// The terms of a sum at one step: of the states there, in place of the history's.
fn term(vars: &mut Vars, sum: &StepSum, at: &At) -> Exp {
    fn read(exp: Exp, sum: &StepSum, at: &At) -> Exp {
        let exp = exp.map_children(&mut |e| read(e, sum, at));
        match exp {
            Exp::Index(array, keys, site) => match at.vars.iter().position(|v| *array == Exp::Var(*v)) {
                Some(k) => {
                    let key = exp_size(&keys[0]).expect("seen before");
                    let t = Size::var(sum.index);
                    let offset = if sum.steps.up { key.sub(&t) } else { key.add(&t) };
                    let states = if offset == sum.steps.offset { at.before } else { at.behind };
                    index(states[k], keys[1..].to_vec(), site)
                }
                None => Exp::Index(array, keys, site),
            },
            exp => exp,
        }
    }
    let t = if sum.steps.up { at.key.sub(&sum.steps.offset) } else { sum.steps.offset.sub(&at.key) };
    let body = read(sum.body.clone(), sum, at);
    let summed = sum.outer.iter().rev().fold(body, |body, r| Exp::Sum(Box::new(r.clone()), Box::new(body)));
    let whole = sum.around.iter().rev().fold(summed, |body, (i, size)| for_(*i, size.clone(), body));
    copy(vars, &whole, &Substitution::from_iter([(sum.index, size_exp(&t))]))
}

/// The loop in place of a history, and what follows it with its sums and ends in place of the history's.
fn convert(cx: &mut Context, vars: Vec<Var>, h: History, rest: Exp, found: Found) -> Exp {
    let runs = cx.facts.prove_nonneg(&h.size);
    let History { state, init, index: i, size, body } = h;
    let again = |cx: &mut Context| -> Vec<Var> { state.iter().map(|v| cx.vars.fresh_like(*v, cx.vars.ty(*v).clone())).collect() };
    let (first, last, behind) = (again(cx), again(cx), again(cx));
    let mut next: Vec<Exp> = behind.iter().map(|v| Exp::Var(*v)).collect();
    let (mut states, mut starts, mut results) = (state.clone(), vec![], last.clone());
    // What is computed in a step beside the next state, and after the loop.
    let (mut within, mut after, mut totals) = (vec![], vec![], vec![]);
    for sum in &found.sums {
        let at = match sum.steps.reach {
            Reach::Behind => At { vars: &vars, before: &behind, behind: &behind, key: Size::var(i).add(&Size::constant(1)) },
            Reach::Before | Reach::All => At { vars: &vars, before: &state, behind: &behind, key: Size::var(i) },
        };
        let added = term(cx.vars, sum, &at);
        let types: Vec<Type> = match type_of_exp(cx.vars, &added) {
            Type::Tuple(parts) => parts.iter().cloned().collect(),
            ty => vec![ty],
        };
        let named = |cx: &mut Context| -> Vec<Var> { types.iter().map(|ty| cx.vars.fresh("total", ty.clone())).collect() };
        let (so_far, terms, of_steps) = (named(cx), named(cx), named(cx));
        next.extend(so_far.iter().zip(&terms).map(|(total, term)| add(*total, *term)));
        within.push((terms, added));
        starts.extend(types.iter().map(|ty| zero(cx.vars, ty)));
        states.extend(so_far);
        results.extend(&of_steps);
        totals.push(match sum.steps.reach {
            Reach::Before | Reach::Behind => of_steps,
            Reach::All => {
                let at = At { vars: &vars, before: &last, behind: &last, key: size.clone() };
                let one_more = term(cx.vars, sum, &at);
                // Without a first state there is no last one.
                let one_more = if runs { one_more } else { guard(op2(Op::Ge, size_exp(&size), i64(0)), one_more) };
                let all = named(cx);
                after.push((all.clone(), add(tuple(of_steps.into_iter().map(Exp::Var).collect()), one_more)));
                all
            }
        });
    }
    let body = if within.is_empty() {
        body
    } else {
        let (mut bindings, result) = peel(body);
        match result {
            Exp::Tuple(parts) if behind.len() > 1 => bindings.extend(behind.iter().map(|v| vec![*v]).zip(parts)),
            result => bindings.push((behind.clone(), result)),
        }
        bindings.extend(within);
        lets(bindings, tuple(next))
    };
    let trip = Trip::For(Range { index: i, lo: i64(0), hi: size_exp(&size) });
    let start = tuple(first.iter().map(|v| Exp::Var(*v)).chain(starts).collect());
    let steps = Exp::Loop(Box::new(Iteration { state: states, init: start, trip, body, annotations: vec![] }));
    let ends = Ends { vars, first: first.clone(), last, size, runs, sums: found.sums, totals };
    let rest = ends.replace(cx.vars, rest);
    let_(first, init, let_(results, steps, lets(after, rest)))
}

/// What takes the place of a history's uses.
struct Ends {
    vars: Vec<Var>,
    first: Vec<Var>,
    last: Vec<Var>,
    size: Size,
    /// Whether there is a first state for certain.
    runs: bool,
    sums: Vec<StepSum>,
    totals: Vec<Vec<Var>>,
}

impl Ends {
    fn replace(&self, vars: &mut Vars, exp: Exp) -> Exp {
        match exp {
            Exp::Sum(range, body) => match self.sums.iter().position(|s| s.outermost() == range.index) {
                Some(k) => {
                    let keys: Vec<Exp> = self.sums[k].around.iter().map(|(i, _)| Exp::Var(*i)).collect();
                    tuple(self.totals[k].iter().map(|v| index(*v, keys.clone(), Site::default())).collect())
                }
                None => Exp::Sum(range, body).map_children(&mut |e| self.replace(vars, e)),
            },
            Exp::Index(array, keys, site) => match self.vars.iter().position(|v| *array == Exp::Var(*v)) {
                Some(k) => {
                    let is_first = exp_size(&keys[0]) == Some(Size::default());
                    let state = if is_first { self.first[k] } else { self.last[k] };
                    let keys = keys.into_iter().skip(1).map(|e| self.replace(vars, e)).collect();
                    self.read(vars, state, is_first, keys, site)
                }
                None => Exp::Index(array, keys, site).map_children(&mut |e| self.replace(vars, e)),
            },
            exp => exp.map_children(&mut |e| self.replace(vars, e)),
        }
    }

    /// A read of the first or the last state. Where there may be none, a read of the program fails as it did: it reads an array
    /// that has the state, if there is one, at 0. The reads of derivatives stand where they do not fail.
    fn read(&self, vars: &mut Vars, state: Var, is_first: bool, keys: Vec<Exp>, site: Site) -> Exp {
        if self.runs || site.passed || site.known().is_none() {
            return index(state, keys, site);
        }
        let i = vars.fresh("i", Type::I64);
        let one = Size::constant(1);
        let key = if is_first { i64(0) } else { size_exp(&self.size.minimum(&Size::default())) };
        let if_there = for_(i, self.size.add(&one).minimum(&one), state);
        index(if_there, [vec![key], keys].concat(), site)
    }
}

fn peel(exp: Exp) -> (Vec<(Vec<Var>, Exp)>, Exp) {
    let mut bindings = vec![];
    let mut rest = exp;
    while let Exp::Let(vars, value, body) = rest {
        bindings.push((vars, *value));
        rest = *body;
    }
    (bindings, rest)
}
