//! Only what is used of an array is computed, where the program says by data what it uses.
//!
//! ```text
//! let v = for p. e(p); … v[key(i)] …
//! ```
//! where all reads of `v` are at keys that are themselves read from arrays, is
//! ```text
//! let marked = sum i. {key(i) -> 1};                                  -- which places are read
//! let (m, place, used) = loop (m, place, used) = (0, zeros, zeros) for p do
//!   (m + [marked[p] > 0], place with [p] = m, used with [m] = p);      -- how many are, before each, and which
//! let v' = for q in 0..m. e(used[q]); … v'[place[key(i)]] …
//! ```
//! The last of the places with the same number before them is the one that is read.
//!
//! It is done for elements that cost much more than to mark them, and that cannot fail.

use super::simplify::arrays::{has_singleton, total};
use super::tabulate::weight;
use super::{Context, Rewrite, rewrite_everywhere};
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy, substitute};
use crate::ir::*;
use rustc_hash::FxHashSet;

/// What an element costs at least, additions and multiplications counting one.
const WORTH: u64 = 128;
/// The most that is computed again to know a key.
const LIGHT: u64 = 16;

pub fn gather(cx: &mut Context, exp: Exp) -> Exp {
    rewrite_everywhere(cx, exp, "gather", &rule)
}

fn rule(cx: &mut Context, exp: Exp) -> Rewrite {
    let Exp::Let(vars, value, rest) = exp else { return Err(exp) };
    let Exp::For(p, size, body) = *value else { return Err(Exp::Let(vars, value, rest)) };
    match places(cx, &vars, p, &size, &body, &rest) {
        Some(marked) => Ok(compute_used(cx, vars, p, size, *body, *rest, marked)),
        None => Err(let_(vars, for_(p, size, *body), *rest)),
    }
}

/// Marks on the places that are read, if only those should be computed.
fn places(cx: &mut Context, vars: &[Var], p: Var, size: &Size, body: &Exp, rest: &Exp) -> Option<Exp> {
    if size.as_constant().is_some() || weight(cx, body) < WORTH || has_singleton(body) || sizes_mention(cx.vars, body, p) {
        return None;
    }
    let mut uses = Uses { vars, binders: vec![], keys: vec![], marks: vec![], axis: size };
    if !uses.find(cx, rest) || uses.marks.is_empty() {
        return None;
    }
    let whole = for_(p, size.clone(), body.clone());
    if !total(cx, &whole) {
        return None;
    }
    let marks = uses.marks.into_iter().reduce(add)?;
    Some(copy(cx.vars, &marks, &Substitution::default()))
}

/// Whether the size of something inside depends on a variable.
pub(super) fn sizes_mention(vars: &Vars, exp: &Exp, p: Var) -> bool {
    let mut found = false;
    exp.for_each_size(&mut |s| found |= s.mentions(p));
    let of_type = |v: &Var| match vars.ty(*v) {
        Type::Array(shape, _) => shape.iter().any(|s| s.mentions(p)),
        Type::Scalar(_) | Type::Tuple(_) => false,
    };
    found |= match exp {
        Exp::Let(bound, _, _) => bound.iter().any(of_type),
        Exp::Loop(l) => l.state.iter().any(of_type),
        Exp::History(h) => h.state.iter().any(of_type),
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
        | Exp::Tuple(_)
        | Exp::Array(_)
        | Exp::Call(..) => false,
    };
    exp.for_each_child(&mut |e| found = found || sizes_mention(vars, e, p));
    found
}

enum Binder {
    Loop(Range),
    Let(Vec<Var>, Exp),
    /// Variables of a loop that runs in steps.
    Steps(Vec<Var>),
}

/// The reads of arrays at places that data says.
struct Uses<'a> {
    vars: &'a [Var],
    axis: &'a Size,
    binders: Vec<Binder>,
    keys: Vec<Exp>,
    marks: Vec<Exp>,
}

impl Uses<'_> {
    /// Whether all uses are such reads, at keys that are known before.
    fn find(&mut self, cx: &Context, exp: &Exp) -> bool {
        match exp {
            Exp::Var(v) => !self.vars.contains(v),
            Exp::Index(array, keys, _) => {
                let read = match **array {
                    Exp::Var(v) if self.vars.contains(&v) => self.mark(cx, &keys[0]),
                    _ => self.find(cx, array),
                };
                read && keys.iter().all(|k| self.find(cx, k))
            }
            Exp::Let(vars, value, body) => self.find(cx, value) && self.within(cx, Binder::Let(vars.clone(), (**value).clone()), body),
            Exp::For(i, size, body) => {
                let range = Range { index: *i, lo: i64(0), hi: size_exp(size) };
                self.within(cx, Binder::Loop(range), body)
            }
            Exp::Sum(range, body) | Exp::Reduce(_, range, body, _) => {
                self.find(cx, &range.lo) && self.find(cx, &range.hi) && self.within(cx, Binder::Loop((**range).clone()), body)
            }
            Exp::History(h) => {
                let steps = h.state.iter().copied().chain([h.index]).collect();
                self.find(cx, &h.init) && self.within(cx, Binder::Steps(steps), &h.body)
            }
            Exp::Loop(l) => {
                let mut steps = l.state.clone();
                let bounds = match &l.trip {
                    Trip::For(range) => {
                        steps.push(range.index);
                        self.find(cx, &range.lo) && self.find(cx, &range.hi)
                    }
                    Trip::While(condition) => self.within(cx, Binder::Steps(steps.clone()), condition),
                };
                bounds && self.find(cx, &l.init) && self.within(cx, Binder::Steps(steps), &l.body)
            }
            Exp::Lit(_)
            | Exp::Op(..)
            | Exp::Partial(..)
            | Exp::Singleton(..)
            | Exp::Update(..)
            | Exp::Guard(..)
            | Exp::If(..)
            | Exp::Tuple(_)
            | Exp::Array(_)
            | Exp::Call(..) => {
                let mut all = true;
                exp.for_each_child(&mut |e| all = all && self.find(cx, e));
                all
            }
        }
    }

    fn within(&mut self, cx: &Context, binder: Binder, body: &Exp) -> bool {
        self.binders.push(binder);
        let found = self.find(cx, body);
        self.binders.pop();
        found
    }

    /// A mark on the place of a read, for all steps of the loops that it stands in.
    fn mark(&mut self, cx: &Context, key: &Exp) -> bool {
        if self.keys.contains(key) {
            return true;
        }
        let mut needed: FxHashSet<Var> = key.free_vars().into_iter().collect();
        let mut by_data = has_read(key);
        let Some(conditions) = conditions(cx, key) else { return false };
        let (low, high) = (op2(Op::Le, i64(0), key.clone()), op2(Op::Lt, key.clone(), size_exp(self.axis)));
        let mut mark = guard(low, guard(high, singleton(vec![(key.clone(), self.axis.clone())], i64(1), Site::default())));
        mark = conditions.into_iter().rev().fold(mark, |e, p| guard(p, e));
        for binder in self.binders.iter().rev() {
            match binder {
                Binder::Loop(range) if needed.contains(&range.index) => {
                    let bounds = self::conditions(cx, &range.lo).zip(self::conditions(cx, &range.hi));
                    let Some((lo, hi)) = bounds else { return false };
                    if weight(cx, &range.lo) + weight(cx, &range.hi) > LIGHT {
                        return false;
                    }
                    needed.extend(range.lo.free_vars().into_iter().chain(range.hi.free_vars()));
                    mark = Exp::Sum(Box::new(range.clone()), Box::new(mark));
                    mark = lo.into_iter().chain(hi).rev().fold(mark, |e, p| guard(p, e));
                }
                Binder::Let(vars, value) if vars.iter().any(|v| needed.contains(v)) => {
                    if weight(cx, value) > LIGHT {
                        return false;
                    }
                    let Some(conditions) = self::conditions(cx, value) else { return false };
                    by_data |= has_read(value);
                    needed.extend(value.free_vars());
                    mark = let_(vars.clone(), value.clone(), mark);
                    mark = conditions.into_iter().rev().fold(mark, |e, p| guard(p, e));
                }
                Binder::Steps(vars) if vars.iter().any(|v| needed.contains(v)) => return false,
                Binder::Loop(_) | Binder::Let(..) | Binder::Steps(_) => {}
            }
        }
        self.keys.push(key.clone());
        self.marks.push(mark);
        by_data && !self.vars.iter().any(|v| needed.contains(v))
    }
}

fn has_read(exp: &Exp) -> bool {
    let mut found = matches!(exp, Exp::Index(..));
    exp.for_each_child(&mut |e| found = found || has_read(e));
    found
}

/// Under which conditions, one after the other, an expression does not fail; none where that cannot be said.
fn conditions(cx: &Context, exp: &Exp) -> Option<Vec<Exp>> {
    match exp {
        Exp::Var(_) | Exp::Lit(_) => Some(vec![]),
        Exp::Index(array, keys, _) => {
            let Exp::Var(a) = **array else { return None };
            let mut all = vec![];
            for (key, axis) in keys.iter().zip(cx.vars.ty(a).shape()) {
                all.extend(conditions(cx, key)?);
                all.push(op2(Op::Le, i64(0), key.clone()));
                all.push(op2(Op::Lt, key.clone(), size_exp(axis)));
            }
            Some(all)
        }
        Exp::Op(Op::Add | Op::Sub | Op::Mul | Op::Neg, args, _) => {
            let all: Option<Vec<Vec<Exp>>> = args.iter().map(|a| conditions(cx, a)).collect();
            all.map(|all| all.concat())
        }
        exp => total(cx, exp).then(Vec::new),
    }
}

fn compute_used(cx: &mut Context, vars: Vec<Var>, p: Var, size: Size, body: Exp, rest: Exp, marks: Exp) -> Exp {
    let mut out = vec![];
    let ints = |size: &Size| Type::array(vec![size.clone()], Scalar::I64);
    let read = |a: Var, k: Exp| index(a, vec![k], Site::default());
    let marked = cx.vars.fresh("marked", ints(&size));
    out.push((vec![marked], marks));
    let mut int = |name: &str| cx.vars.fresh(name, Type::I64);
    let (m, so_far, k, i, j) = (int("used"), int("used"), int("p"), int("i"), int("i"));
    let mut whole = |name: &str| cx.vars.fresh(name, ints(&size));
    let (place, places, used, numbers) = (whole("place"), whole("place"), whole("used"), whole("used"));
    let with = |a: Var, key: Var, value: Var| {
        Exp::Update(Box::new(Exp::Var(a)), vec![Exp::Var(key)], Box::new(Exp::Var(value)), Site::default().certain())
    };
    let zeros = |i: Var| for_(i, size.clone(), i64(0));
    let each = Iteration {
        state: vec![so_far, places, numbers],
        init: Exp::Tuple(vec![i64(0), zeros(i), zeros(j)]),
        trip: Trip::For(Range { index: k, lo: i64(0), hi: size_exp(&size) }),
        body: Exp::Tuple(vec![
            add(Exp::Var(so_far), guard(op2(Op::Lt, i64(0), read(marked, Exp::Var(k))), i64(1))),
            with(places, k, so_far),
            with(numbers, so_far, k),
        ]),
        annotations: vec![],
    };
    out.push((vec![m, place, used], Exp::Loop(Box::new(each))));
    let few = Size::var(m);
    let q = cx.vars.fresh_like(p, Type::I64);
    let body = Certain { cx, p, size: &size, binders: vec![] }.keep(body);
    let body = substitute(cx.vars, body, &Substitution::from_iter([(p, index(used, vec![Exp::Var(q)], Site::default().certain()))]));
    let arrays: Vec<Var> = vars
        .iter()
        .map(|v| {
            let ty = cx.vars.ty(*v).without_axes(1).expect("an array").with_axis(&few);
            cx.vars.fresh_like(*v, ty)
        })
        .collect();
    out.push((arrays.clone(), for_(q, few, body)));
    lets(out, read_used(rest, &vars, &arrays, place))
}

/// Reads at `p` that are in range for any place of the array, and for any index that they mention, whatever else is known
/// where they stand: with another number in the place of `p` they will not show it any more.
struct Certain<'a, 'c> {
    cx: &'a Context<'c>,
    p: Var,
    size: &'a Size,
    binders: Vec<Range>,
}

impl Certain<'_, '_> {
    fn keep(&mut self, exp: Exp) -> Exp {
        let depth = self.binders.len();
        match &exp {
            Exp::For(i, size, _) => self.binders.push(Range { index: *i, lo: i64(0), hi: size_exp(size) }),
            Exp::Sum(range, _) | Exp::Reduce(_, range, _, _) => self.binders.push((**range).clone()),
            _ => {}
        }
        let exp = exp.map_children(&mut |e| self.keep(e));
        self.binders.truncate(depth);
        match exp {
            Exp::Index(array, keys, site) if keys.iter().any(|k| k.mentions(self.p)) && self.is_certain(&array, &keys) => {
                Exp::Index(array, keys, site.certain())
            }
            exp => exp,
        }
    }

    fn is_certain(&self, array: &Exp, keys: &[Exp]) -> bool {
        let Exp::Var(a) = array else { return false };
        let mut facts = self.cx.facts.clone();
        facts.enter_for(self.p, self.size);
        for range in &self.binders {
            // A read does not leave the loops whose indices it mentions.
            if keys.iter().any(|k| k.mentions(range.index)) {
                facts.enter_range(range);
            }
        }
        keys.iter().zip(self.cx.vars.ty(*a).shape()).all(|(k, s)| facts.in_range(k, s))
    }
}

fn read_used(exp: Exp, vars: &[Var], arrays: &[Var], place: Var) -> Exp {
    match exp.map_children(&mut |e| read_used(e, vars, arrays, place)) {
        Exp::Index(array, mut keys, site) => match vars.iter().position(|v| *array == Exp::Var(*v)) {
            Some(k) => {
                let key = index(place, vec![keys[0].clone()], site);
                keys[0] = key;
                index(arrays[k], keys, site)
            }
            None => Exp::Index(array, keys, site),
        },
        exp => exp,
    }
}
