//! Products of several arrays under sums: what is the same in all steps of a loop is multiplied first, where that costs less.
//!
//! ```text
//! for p, i. sum r. R[i, r] * (sum k. w[p, k] * (sum c. S[k, r, c] * x[p, c]))
//! ```
//! is
//! ```text
//! let t = for k, i, c. sum r. R[i, r] * S[k, r, c]; for p, i. sum k. w[p, k] * (sum c. t[k, i, c] * x[p, c])
//! ```
//! Which of the two is less to do, the sizes of a call say (`Vars::likely`): without them nothing is changed. A sum of which most
//! terms are zero, and left out by `skip_zeros`, counts as a short one. It is done before derivatives are taken, so that they
//! are derivatives of the cheaper program.

use super::simplify::arrays::{factors, total};
use super::tabulate::whole;
use super::{Context, children};
use crate::ir::build::*;
use crate::ir::destination::uses;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;
use rustc_hash::{FxHashMap, FxHashSet};

/// How many terms of a sum count as one, of which most are zero.
const ZEROS: f64 = 8.0;
/// What is done must be so much of what was.
const WORTH: f64 = 0.9;

pub fn reassociate(cx: &mut Context, exp: Exp) -> Exp {
    if !cx.vars.has_likely() {
        return exp;
    }
    let exp = of_loop(cx, exp);
    children(cx, exp, &reassociate)
}

/// A loop behind the products that are the same in all of its steps.
fn of_loop(cx: &mut Context, exp: Exp) -> Exp {
    let (index, size) = match &exp {
        Exp::For(i, size, _) => (*i, size.clone()),
        Exp::Sum(range, _) => match whole(range) {
            Some(size) => (range.index, size),
            None => return exp,
        },
        _ => return exp,
    };
    let Some(steps) = cx.vars.likely(&size).filter(|n| *n > 1) else { return exp };
    let mut search = Search {
        cx,
        steps: [(index, steps as f64)].into_iter().collect(),
        varied: [index].into_iter().collect(),
        inner: vec![],
        arrays: FxHashMap::default(),
        out: vec![],
    };
    let exp = match exp {
        Exp::For(i, size, body) => for_(i, size, search.within(*body)),
        Exp::Sum(range, body) => Exp::Sum(range, Box::new(search.within(*body))),
        exp => exp,
    };
    let out = search.out;
    cx.changed |= !out.is_empty();
    lets(out, exp)
}

struct Search<'a, 'c> {
    cx: &'a mut Context<'c>,
    /// How often the loop runs, and those inside.
    steps: FxHashMap<Var, f64>,
    /// What depends on the loop, or is bound in it and no index that a product may have as an axis.
    varied: FxHashSet<Var>,
    /// The loops inside.
    inner: Vec<(Var, Size)>,
    /// Arrays that are bound in the loop and read once.
    arrays: FxHashMap<Var, Exp>,
    out: Vec<(Vec<Var>, Exp)>,
}

/// `sum index in 0..size. factors * (the next one)`
#[derive(Clone)]
struct Level {
    index: Var,
    size: Size,
    factors: Vec<Exp>,
}

impl Search<'_, '_> {
    /// An expression in the loop that is evaluated in all of its steps.
    fn within(&mut self, exp: Exp) -> Exp {
        let exp = match exp {
            Exp::Sum(..) => self.chain(exp),
            exp => exp,
        };
        match exp {
            Exp::For(i, size, body) => {
                let body = self.inside(i, Some(size.clone()), *body);
                for_(i, size, body)
            }
            Exp::Sum(range, body) => {
                let body = self.inside(range.index, whole(&range), *body);
                Exp::Sum(range, Box::new(body))
            }
            Exp::Let(vars, value, body) => {
                let value = self.within(*value);
                self.varied.extend(&vars);
                if let ([v], Exp::For(..)) = (vars.as_slice(), &value) {
                    if uses(*v, &body) == 1 {
                        self.arrays.insert(*v, value.clone());
                    }
                }
                let_(vars, value, self.within(*body))
            }
            exp @ (Exp::Op(..) | Exp::Tuple(_) | Exp::Array(_)) => exp.map_children(&mut |e| self.within(e)),
            // What runs in steps or by a condition may cost less than it seems.
            exp => exp,
        }
    }

    fn inside(&mut self, index: Var, size: Option<Size>, body: Exp) -> Exp {
        let known = size.as_ref().and_then(|s| self.cx.vars.likely(s));
        let axis = size.filter(|s| known.is_some() && !self.is_local(s));
        match (&axis, known) {
            (Some(size), Some(n)) => {
                self.steps.insert(index, n.max(0) as f64);
                self.inner.push((index, size.clone()));
            }
            _ => {
                self.varied.insert(index);
            }
        }
        let body = self.within(body);
        if axis.is_some() {
            self.inner.pop();
        }
        body
    }

    /// Whether a size depends on what is in the loop.
    fn is_local(&self, size: &Size) -> bool {
        self.varied.iter().any(|v| size.mentions(*v)) || self.inner.iter().any(|(v, _)| size.mentions(*v))
    }

    fn varies(&self, exp: &Exp) -> bool {
        exp.free_vars().iter().any(|v| self.varied.contains(v))
    }

    /// Sums in one another, with what is the same in all steps multiplied before the loop as long as that pays.
    fn chain(&mut self, exp: Exp) -> Exp {
        let Some((mut outside, mut levels)) = self.levels(&exp) else { return exp };
        let mut changed = false;
        while let Some((factors, rest)) = (0..levels.len()).find_map(|k| self.multiplied(&outside, &levels, k)) {
            (outside, levels) = (factors, rest);
            changed = true;
        }
        if !changed {
            return exp;
        }
        let mut inner: Option<Exp> = None;
        for level in levels.into_iter().rev() {
            let body = product(level.factors.into_iter().chain(inner)).expect("the last sum of a chain is one of factors");
            inner = Some(sum(level.index, i64(0), size_exp(&level.size), body));
        }
        product(outside.into_iter().chain(inner)).expect("a product that is multiplied first is a factor")
    }

    /// The sums of a chain from the outside in. Arrays that are read in it alone are part of it.
    fn levels(&mut self, exp: &Exp) -> Option<(Vec<Exp>, Vec<Level>)> {
        let mut levels: Vec<Level> = vec![];
        let mut next = Some(exp.clone());
        while let Some(Exp::Sum(range, body)) = next.take() {
            let size = whole(&range).filter(|s| !self.is_local(s) && !levels.iter().any(|l| s.mentions(l.index)))?;
            self.cx.vars.likely(&size)?;
            let all = match &*body {
                Exp::Op(Op::Mul, args, _) => factors(args),
                body => vec![body.clone()],
            };
            let all: Vec<Exp> = all.into_iter().map(|e| self.written(e)).collect();
            let all = factors(&all);
            let (sums, factors): (Vec<Exp>, Vec<Exp>) = all.into_iter().partition(|e| matches!(e, Exp::Sum(..)));
            let is_float = |e: &Exp| scalar_of(self.cx.vars, e).is_some_and(Scalar::is_float);
            if !factors.iter().all(is_float) {
                return None;
            }
            levels.push(Level { index: range.index, size, factors });
            match <[Exp; 1]>::try_from(sums) {
                Ok([inner]) => next = Some(inner),
                Err(sums) if sums.is_empty() => {}
                Err(_) => return None,
            }
        }
        (levels.len() > 1).then_some((vec![], levels))
    }

    /// An element of an array that is read once, as it is computed.
    fn written(&mut self, exp: Exp) -> Exp {
        let Exp::Index(array, keys, _) = &exp else { return exp };
        let Exp::Var(v) = **array else { return exp };
        let Some(mut element) = self.arrays.get(&v) else { return exp };
        let mut at = Substitution::default();
        for key in keys {
            let (Exp::For(i, _, body), Exp::Var(_)) = (element, key) else { return exp };
            at.insert(*i, key.clone());
            element = body;
        }
        if matches!(element, Exp::For(..)) {
            return exp;
        }
        let element = element.clone();
        copy(self.cx.vars, &element, &at)
    }

    /// The chain without one of its sums, where all that has the index is the same in all steps of the loop: that is
    /// multiplied before.
    fn multiplied(&mut self, outside: &[Exp], levels: &[Level], k: usize) -> Option<(Vec<Exp>, Vec<Level>)> {
        let level = &levels[k];
        let is_part = |e: &Exp| e.mentions(level.index);
        let parts: Vec<Exp> = levels.iter().flat_map(|l| &l.factors).filter(|e| is_part(e)).cloned().collect();
        if parts.len() < 2 || parts.iter().any(|e| self.varies(e)) || !levels.iter().flat_map(|l| &l.factors).any(|e| self.varies(e)) {
            return None;
        }
        // In the order in which they are then read: by the sums, the loops around these, and the last sum.
        let mut sums: Vec<(Var, Size)> = levels.iter().filter(|l| l.index != level.index).map(|l| (l.index, l.size.clone())).collect();
        let last = sums.pop()?;
        let axes: Vec<(Var, Size)> = sums.into_iter().chain(self.inner.iter().cloned()).chain([last]).collect();
        let axes: Vec<(Var, Size)> = axes.into_iter().filter(|(v, _)| parts.iter().any(|e| e.mentions(*v))).collect();
        let value = sum(level.index, i64(0), size_exp(&level.size), product(parts.iter().cloned())?);
        let ty = type_of_exp(self.cx.vars, &value);
        let all = axes.iter().rev().fold(value, |e, (v, size)| for_(*v, size.clone(), e));
        let all = copy(self.cx.vars, &all, &Substitution::default());
        let ty = axes.iter().rev().fold(ty, |ty, (_, size)| ty.with_axis(size));
        if axes.is_empty() || !self.is_small(&ty, &parts) || !total(self.cx, &all) {
            return None;
        }
        let t = self.cx.vars.fresh("t", ty);
        let read = index(t, axes.iter().map(|(v, _)| Exp::Var(*v)).collect(), Site::default());
        let mut outside = outside.to_vec();
        let mut rest: Vec<Level> = levels.to_vec();
        rest.iter_mut().for_each(|l| l.factors.retain(|e| !is_part(e)));
        let removed = rest.remove(k);
        match k.checked_sub(1) {
            Some(around) => rest[around].factors.extend(removed.factors),
            None => outside.extend(removed.factors),
        }
        match rest.iter().rposition(|l| read.mentions(l.index)) {
            Some(at) => rest[at].factors.insert(0, read),
            None => outside.push(read),
        }
        if rest.last().is_none_or(|l| l.factors.is_empty()) {
            return None;
        }
        let before = self.cost(levels);
        let once: f64 = axes.iter().map(|(v, size)| self.count(*v, size)).product::<f64>() * self.count(level.index, &level.size);
        if once + self.cost(&rest) > WORTH * before {
            return None;
        }
        self.out.push((vec![t], all));
        Some((outside, rest))
    }

    /// What is multiplied in a chain, in all steps of the loops around: every sum runs in the loops that what is in it depends on.
    fn cost(&self, levels: &[Level]) -> f64 {
        let mut counts = self.steps.clone();
        for level in levels {
            let zeros = level.factors.iter().any(|e| self.is_mostly_zero(e) && e.mentions(level.index));
            let count = self.count(level.index, &level.size);
            counts.insert(level.index, if zeros { (count / ZEROS).max(1.0) } else { count });
        }
        let mut total = 0.0;
        let mut needed: FxHashSet<Var> = FxHashSet::default();
        for level in levels.iter().rev() {
            needed.extend(level.factors.iter().flat_map(|e| e.free_vars()));
            needed.insert(level.index);
            total += needed.iter().filter_map(|v| counts.get(v)).product::<f64>();
            needed.remove(&level.index);
        }
        total
    }

    fn is_mostly_zero(&self, exp: &Exp) -> bool {
        matches!(exp, Exp::Index(array, _, _) if matches!(**array, Exp::Var(v) if self.cx.vars.is_mostly_zero(v)))
    }

    fn count(&self, index: Var, size: &Size) -> f64 {
        let known = || self.cx.vars.likely(size).unwrap_or(0).max(0) as f64;
        self.steps.get(&index).copied().unwrap_or_else(known)
    }

    /// Whether an array has no more elements than two of the largest that its elements are made of.
    fn is_small(&self, ty: &Type, parts: &[Exp]) -> bool {
        let count = |ty: &Type| ty.shape().iter().try_fold(1.0, |n, s| Some(n * self.cx.vars.likely(s)? as f64));
        let read = |e: &Exp| match e {
            Exp::Index(array, _, _) => count(&type_of_exp(self.cx.vars, array)).unwrap_or(0.0),
            _ => 0.0,
        };
        let largest = parts.iter().map(read).fold(0.0, f64::max);
        count(ty).is_some_and(|n| n <= 2.0 * largest)
    }
}

fn product(factors: impl Iterator<Item = Exp>) -> Option<Exp> {
    factors.reduce(mul)
}
