//! Sums that add to the places around each step are read from around each place instead.
//!
//! ```text
//! sum i, j. if p(i, j) then {(i, j) -> a} else let e = …; {(i, j) -> b} + {(i + 1, j) -> e} + {(i - 1, j) -> e}
//! ```
//! is
//! ```text
//! let E = for i, j in 0..n + 2, …. [0 < i <= n] * (if p(i - 1, j) then 0 else e(i - 1, j));
//! for k, l. (if p(k, l) then a(k, l) else b(k, l)) + E[k, l] + E[k + 2, l]
//! ```
//! with zeros around `E`, so that no place is asked whether it has a neighbour. So is the adjoint of a stencil: places are written
//! once, in any order, in vectors and by several threads, where the sum would add to the same memory again and again.
//!
//! It is done where the steps are as many as the places, but for a fixed number at the ends, all keys are in range, and nothing dear
//! has to be computed twice for it.

use super::share::canonical;
use super::simplify::arrays::{has_singleton, linear};
use super::simplify::lets::has_loop;
use super::tabulate::weight;
use super::{Context, Rewrite, rewrite_everywhere};
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;

/// What goes to the place of the step itself is computed there if it costs no more than this, and else kept. So much may
/// be computed again.
const LIGHT: u64 = 16;
/// The most arrays that are kept.
const MOST: usize = 3;

pub fn read_around(cx: &mut Context, exp: Exp) -> Exp {
    rewrite_everywhere(cx, exp, "read_around", &rule)
}

fn rule(cx: &mut Context, exp: Exp) -> Rewrite {
    let mark = cx.facts.mark();
    let found = Shifts::of(cx, &exp);
    cx.facts.reset(mark);
    match found.and_then(|shifts| shifts.read(cx)) {
        Some(new) => Ok(new),
        None => Err(exp),
    }
}

/// How far from its step something is added, along each axis.
type Shift = Vec<i64>;

/// A sum of which each term goes to places so far from its step.
struct Shifts {
    /// The steps that belong to each axis of the result.
    steps: Vec<Steps>,
    shape: Vec<Size>,
    body: Exp,
    all: Vec<Shift>,
}

struct Steps {
    index: Var,
    lo: Size,
    hi: Size,
}

impl Shifts {
    fn of(cx: &mut Context, exp: &Exp) -> Option<Shifts> {
        let mut ranges = vec![];
        let mut body = exp;
        while let Exp::Sum(range, inner) = body {
            cx.facts.enter_range(range);
            ranges.push(&**range);
            body = inner;
        }
        let Type::Array(shape, _) = type_of_exp(cx.vars, body) else { return None };
        if ranges.is_empty() || shape.len() != ranges.len() {
            return None;
        }
        let mut finder = Finder { indices: ranges.iter().map(|r| r.index).collect(), order: None, all: vec![] };
        if !finder.find(cx, body) || finder.all.len() < 2 {
            return None;
        }
        let steps_of = |index: &Var| {
            let range = ranges.iter().find(|r| r.index == *index)?;
            let (lo, hi) = exp_size(&range.lo).zip(exp_size(&range.hi))?;
            let depends = finder.indices.iter().any(|i| lo.mentions(*i) || hi.mentions(*i));
            (!depends).then_some(Steps { index: *index, lo, hi })
        };
        let steps = finder.order.as_ref()?.iter().map(steps_of).collect::<Option<Vec<_>>>()?;
        let nearly_all = |(s, places): (&Steps, &Size)| places.sub(&s.hi.sub(&s.lo)).as_constant().is_some_and(|left| left >= 0);
        steps.iter().zip(&shape).all(nearly_all).then(|| Shifts { steps, shape, body: body.clone(), all: finder.all })
    }

    /// What is added so far from each step, as a number for each.
    fn part(&self, exp: &Exp, shift: &Shift) -> Option<Exp> {
        match exp {
            Exp::Let(vars, value, body) => self.part(body, shift).map(|body| match vars.as_slice() {
                [v] if body == Exp::Var(*v) => (**value).clone(),
                vars if !body.mentions_any(vars) => body,
                vars => let_(vars.to_vec(), (**value).clone(), body),
            }),
            Exp::Guard(p, e) => self.part(e, shift).map(|e| guard((**p).clone(), e)),
            Exp::If(p, a, b) => match (self.part(a, shift), self.part(b, shift)) {
                (None, None) => None,
                (Some(a), None) => Some(guard((**p).clone(), a)),
                (None, Some(b)) => Some(guard(op1(Op::Not, (**p).clone()), b)),
                (Some(a), Some(b)) => Some(if_((**p).clone(), a, b)),
            },
            Exp::Op(Op::Add, args, _) => {
                let parts = args.iter().filter_map(|e| self.part(e, shift));
                parts.reduce(add)
            }
            Exp::Singleton(places, value, _) => (self.shift(places)? == *shift).then(|| (**value).clone()),
            _ => None,
        }
    }

    fn shift(&self, places: &[(Exp, Size)]) -> Option<Shift> {
        let indices: Vec<Var> = self.steps.iter().map(|s| s.index).collect();
        Some(shift(&indices, places)?.into_iter().map(|(_, by)| by).collect())
    }

    /// Its value, place by place.
    fn read(&self, cx: &mut Context) -> Option<Exp> {
        let here: Shift = vec![0; self.steps.len()];
        let own = self.part(&self.body, &here);
        let own_here = own.as_ref().is_some_and(|own| weight(cx, own) <= LIGHT);
        // The same number may go to several places.
        let mut kept: Vec<(Exp, Exp, Vec<&Shift>)> = vec![];
        for shift in self.all.iter().filter(|shift| **shift != here || !own_here) {
            let part = self.part(&self.body, shift)?;
            let form = canonical(&part);
            match kept.iter_mut().find(|(other, _, _)| *other == form) {
                Some((_, _, shifts)) => shifts.push(shift),
                None => kept.push((form, part, vec![shift])),
            }
        }
        // What several of them need is computed for each: numbers in vectors may be, but not what has loops of its own.
        let all: u64 = kept.iter().map(|(_, part, _)| part).chain(own.iter().filter(|_| own_here)).map(|part| weight(cx, part)).sum();
        let is_dear = all > weight(cx, &self.body) * if has_loop(&self.body) { 1 } else { 2 } + LIGHT;
        if kept.is_empty() || kept.len() > MOST || is_dear {
            return None;
        }
        let extreme = |most: fn(i64, i64) -> i64| -> Shift {
            (0..self.steps.len()).map(|axis| self.all.iter().map(|shift| shift[axis]).fold(0, most)).collect()
        };
        let (most, least) = (extreme(i64::max), extreme(i64::min));
        let mut int = |name: &str| cx.vars.fresh(name, Type::I64);
        let places: Vec<Var> = self.steps.iter().map(|_| int("k")).collect();
        let mut terms = vec![];
        let mut arrays = vec![];
        if let Some(own) = own.filter(|_| own_here) {
            terms.push(self.at(cx, &own, &places, &here, &here));
        }
        for (_, part, shifts) in kept {
            let array = self.with_zeros_around(cx, part, &most, &least);
            let v = cx.vars.fresh("around", type_of_exp(cx.vars, &array));
            arrays.push((vec![v], array));
            for shift in shifts {
                let key = |(axis, k): (usize, &Var)| match most[axis] - shift[axis] {
                    0 => Exp::Var(*k),
                    by => add(Exp::Var(*k), i64(by)),
                };
                terms.push(index(v, places.iter().enumerate().map(key).collect(), Site::default().certain()));
            }
        }
        let all = terms.into_iter().reduce(add)?;
        let result = places.into_iter().zip(&self.shape).rev().fold(all, |body, (k, size)| for_(k, size.clone(), body));
        Some(lets(arrays, result))
    }

    fn with_zeros_around(&self, cx: &mut Context, part: Exp, most: &Shift, least: &Shift) -> Exp {
        let indices: Vec<Var> = self.steps.iter().map(|s| cx.vars.fresh_like(s.index, Type::I64)).collect();
        let body = self.at(cx, &part, &indices, most, least);
        let with_ends = |axis: usize| self.shape[axis].add(&Size::constant(most[axis] - least[axis]));
        indices.into_iter().enumerate().rev().fold(body, |body, (axis, index)| for_(index, with_ends(axis), body))
    }

    /// A part at the step so far before these indices, and zero where there is none. They run that much beyond the places, and at
    /// the other end as much as is told.
    fn at(&self, cx: &mut Context, part: &Exp, indices: &[Var], before: &Shift, behind: &Shift) -> Exp {
        let mut names = Substitution::default();
        let mut conditions = vec![];
        for (axis, s) in self.steps.iter().enumerate() {
            let (index, by) = (Exp::Var(indices[axis]), Size::constant(before[axis]));
            if !s.begins() || before[axis] > 0 {
                conditions.push(op2(Op::Le, size_exp(&s.lo.add(&by)), index.clone()));
            }
            if s.hi != self.shape[axis] || behind[axis] < 0 {
                conditions.push(op2(Op::Lt, index.clone(), size_exp(&s.hi.add(&by))));
            }
            names.insert(s.index, if before[axis] == 0 { index } else { sub(index, i64(before[axis])) });
        }
        let part = copy(cx.vars, part, &names);
        conditions.into_iter().rev().fold(part, |e, p| guard(p, e))
    }
}

impl Steps {
    fn begins(&self) -> bool {
        self.lo.as_constant() == Some(0)
    }
}

/// Which index each key is, and how far from it: `(i + 1, j)`.
fn shift(indices: &[Var], places: &[(Exp, Size)]) -> Option<Vec<(Var, i64)>> {
    let of = |key: &Exp| {
        let size = exp_size(key)?;
        let (index, (1, rest)) = indices.iter().find_map(|i| Some((*i, linear(&size, *i)?)))? else { return None };
        Some((index, rest.as_constant()?))
    };
    places.iter().map(|(key, _)| of(key)).collect()
}

struct Finder {
    indices: Vec<Var>,
    /// The index that belongs to each axis, the same in all terms.
    order: Option<Vec<Var>>,
    all: Vec<Shift>,
}

impl Finder {
    /// Whether the terms are singletons, under conditions and behind `let`s, at keys that are known to be in range.
    fn find(&mut self, cx: &mut Context, exp: &Exp) -> bool {
        let mark = cx.facts.mark();
        match exp {
            Exp::Let(_, value, body) => !has_singleton(value) && self.find(cx, body),
            Exp::Op(Op::Add, args, _) => args.iter().all(|e| self.find(cx, e)),
            Exp::Guard(p, e) => {
                cx.facts.assume(p);
                let found = self.find(cx, e);
                cx.facts.reset(mark);
                found
            }
            Exp::If(p, a, b) => {
                cx.facts.assume(p);
                let yes = self.find(cx, a);
                cx.facts.reset(mark);
                cx.facts.assume_not(p);
                let no = self.find(cx, b);
                cx.facts.reset(mark);
                yes && no
            }
            Exp::Singleton(places, value, _) => {
                let Some(found) = shift(&self.indices, places) else { return false };
                let (order, by): (Vec<Var>, Shift) = found.into_iter().unzip();
                let known = places.iter().all(|(key, size)| cx.facts.in_range(key, size));
                let one_each = order.len() == self.indices.len() && self.indices.iter().all(|i| order.contains(i));
                if !known || !one_each || has_singleton(value) || self.order.as_ref().is_some_and(|other| *other != order) {
                    return false;
                }
                self.order = Some(order);
                if !self.all.contains(&by) {
                    self.all.push(by);
                }
                true
            }
            exp => is_zero(exp),
        }
    }
}
