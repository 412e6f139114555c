//! Only what is used of an array is computed, where the program says by data what it uses.
//!
//! ```text
//! let v = for p. e(p); … v[key(i)] …
//! ```
//! where all reads of `v` are at keys that are themselves read from arrays, is
//! ```text
//! let (m, place, used) = loop (m, place, used) = (0, zeros, zeros) for i do
//!   if place[key(i)] = 0 then (m + 1, place with [key(i)] = m + 1, used with [m] = key(i)) else (m, place, used);
//! let v' = for q in 0..m. e(used[q]); … v'[place[key(i)] - 1] …
//! ```
//! Places are counted as they are met: `used` has those that are read, `place` the number of each of them from 1 on, and 0 for
//! others. So nothing but `place` takes time for places that nobody reads, and what is read together lies together.
//!
//! Where sizes tell that there are few reads, few places are met twice, and elements are computed where they are read:
//! ```text
//! let v' = for i. e((for p. p)[key(i)]); … v'[i] …
//! ```
//! which becomes one loop with what reads them. A read at the indices of an axis gives the key, or the error of the read.
//!
//! It is done for elements that cost much more than to count them, and that cannot fail. Where sizes tell how many reads there are,
//! calls that have many for each place take all places as they are.

use super::simplify::arrays::{has_singleton, total};
use super::tabulate::weight;
use super::{Context, Rewrite, children, rewrite_everywhere};
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy, sizes_mention, substitute};
use crate::ir::*;
use rustc_hash::FxHashSet;

/// What an element costs at least, additions and multiplications counting one.
const WORTH: u64 = 128;
/// How many reads there are for a place where most places are taken to be read.
const MANY: i64 = 4;
/// How many places there are for a read where few are taken to be read twice.
const FEW: i64 = 4;
/// The longest that is written twice, for few reads and for more, in nodes.
const SHORT: usize = 400;
/// The most that is computed again to know a key.
const LIGHT: u64 = 16;

pub fn gather(cx: &mut Context, exp: Exp) -> Exp {
    if !matches!(exp, Exp::Let(..)) {
        return rewrite_everywhere(cx, exp, "gather", &|cx, exp| rule(cx, exp, false));
    }
    let exp = children(cx, exp, &gather);
    let gathered = rule(cx, exp, true);
    cx.changed |= gathered.is_ok();
    gathered.unwrap_or_else(|same| same)
}

/// `once`: it is done once, whatever data say. There code for the sizes of a call has the way for few reads or the other alone,
/// and nothing has to be taken out of loops any more.
fn rule(cx: &mut Context, exp: Exp, once: bool) -> Rewrite {
    let Exp::Let(vars, value, rest) = exp else { return Err(exp) };
    let Exp::For(p, size, body) = *value else { return Err(Exp::Let(vars, value, rest)) };
    let Some(reads) = reads(cx, &vars, p, &size, &body, &rest) else { return Err(let_(vars, for_(p, size, *body), *rest)) };
    let few = if once { compute_where_read(cx, &vars, p, &size, &body, &rest, &reads) } else { None };
    let used = compute_used(cx, vars, p, size, *body, *rest, reads);
    Ok(match few {
        Some((is_few, few)) => if_(is_few, few, used),
        None => used,
    })
}

/// The reads of an array, if only what they read should be computed.
fn reads(cx: &mut Context, vars: &[Var], p: Var, size: &Size, body: &Exp, rest: &Exp) -> Option<Vec<Read>> {
    if size.as_constant().is_some() || weight(cx, body) < WORTH || has_singleton(body) || sizes_mention(cx.vars, body, p) {
        return None;
    }
    let mut uses = Uses { vars, axis: size, binders: vec![], conditions: 0, reads: vec![] };
    if !uses.find(cx, rest) || uses.reads.is_empty() {
        return None;
    }
    let whole = for_(p, size.clone(), body.clone());
    total(cx, &whole).then_some(uses.reads)
}

/// How many reads there are, if sizes tell that are known before.
fn count(reads: &[Read]) -> Option<Size> {
    let each = reads.iter().map(|read| {
        let is_inside = |v: Var| {
            read.around.iter().any(|around| match around {
                Around::Where(_) => false,
                Around::Let(vars, _) => vars.contains(&v),
                Around::Loop(range) => range.index == v,
            })
        };
        read.around.iter().try_fold(Size::constant(1), |count, around| {
            let Around::Loop(range) = around else { return Some(count) };
            let length = exp_length(range)?;
            let mut vars = vec![];
            length.variables(&mut vars);
            (!vars.into_iter().any(is_inside)).then(|| count.mul(&length))
        })
    });
    each.reduce(|a, b| Some(a?.add(&b?))).flatten()
}

fn exp_length(range: &Range) -> Option<Size> {
    Some(exp_size(&range.hi)?.sub(&exp_size(&range.lo)?))
}

enum Binder {
    Loop(Range),
    Let(Vec<Var>, Exp),
    /// Variables of a loop that runs in steps.
    Steps(Vec<Var>),
}

/// A read at a place that data says, and what it stands in, as far as the key needs it: the innermost first.
struct Read {
    key: Exp,
    site: Site,
    around: Vec<Around>,
    /// Whether it is done for all indices of the loops it needs, whatever data and other sizes are.
    is_certain: bool,
}

enum Around {
    Where(Exp),
    Let(Vec<Var>, Exp),
    Loop(Range),
}

/// The reads of arrays at places that data says.
struct Uses<'a> {
    vars: &'a [Var],
    axis: &'a Size,
    binders: Vec<Binder>,
    /// How many conditions there are around.
    conditions: usize,
    reads: Vec<Read>,
}

impl Uses<'_> {
    /// Whether all uses are such reads, at keys that are known before.
    fn find(&mut self, cx: &Context, exp: &Exp) -> bool {
        match exp {
            Exp::Var(v) => !self.vars.contains(v),
            Exp::Index(array, keys, site) => {
                let read = match **array {
                    Exp::Var(v) if self.vars.contains(&v) => self.read(cx, &keys[0], *site),
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
            Exp::Guard(condition, value) => self.find(cx, condition) && self.where_true(cx, value),
            Exp::If(condition, yes, no) => self.find(cx, condition) && self.where_true(cx, yes) && self.where_true(cx, no),
            Exp::Op(Op::And | Op::Or, args, _) => args.iter().all(|a| self.where_true(cx, a)),
            Exp::Lit(_)
            | Exp::Op(..)
            | Exp::Partial(..)
            | Exp::Singleton(..)
            | Exp::Update(..)
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

    fn where_true(&mut self, cx: &Context, exp: &Exp) -> bool {
        self.conditions += 1;
        let found = self.find(cx, exp);
        self.conditions -= 1;
        found
    }

    /// Whether what stands here is done for all indices of the loops that it needs.
    fn is_certain(&self, around: &[Around]) -> bool {
        let needs = |range: &Range| around.iter().any(|a| matches!(a, Around::Loop(r) if r.index == range.index));
        self.conditions == 0
            && self.binders.iter().all(|binder| match binder {
                Binder::Let(..) => true,
                Binder::Steps(_) => false,
                Binder::Loop(range) => needs(range) || exp_length(range).is_some_and(|n| n.as_constant().is_some_and(|n| n > 0)),
            })
    }

    /// A read, for all steps of the loops that it stands in.
    fn read(&mut self, cx: &Context, key: &Exp, site: Site) -> bool {
        if let Some(known) = self.reads.iter().position(|read| read.key == *key) {
            let is_certain = self.is_certain(&self.reads[known].around);
            self.reads[known].is_certain |= is_certain;
            return true;
        }
        let mut needed: FxHashSet<Var> = key.free_vars().into_iter().collect();
        let mut by_data = has_read(key);
        let wheres = |conditions: Vec<Exp>| conditions.into_iter().rev().map(Around::Where);
        let Some(conditions) = conditions(cx, key) else { return false };
        let (low, high) = (op2(Op::Le, i64(0), key.clone()), op2(Op::Lt, key.clone(), size_exp(self.axis)));
        let mut around: Vec<Around> = wheres(vec![low, high]).chain(wheres(conditions)).collect();
        for binder in self.binders.iter().rev() {
            match binder {
                Binder::Loop(range) if needed.contains(&range.index) => {
                    let bounds = self::conditions(cx, &range.lo).zip(self::conditions(cx, &range.hi));
                    let Some((lo, hi)) = bounds else { return false };
                    if weight(cx, &range.lo) + weight(cx, &range.hi) > LIGHT {
                        return false;
                    }
                    needed.extend(range.lo.free_vars().into_iter().chain(range.hi.free_vars()));
                    around.push(Around::Loop(range.clone()));
                    around.extend(wheres([lo, hi].concat()));
                }
                Binder::Let(vars, value) if vars.iter().any(|v| needed.contains(v)) => {
                    if weight(cx, value) > LIGHT {
                        return false;
                    }
                    let Some(conditions) = self::conditions(cx, value) else { return false };
                    by_data |= has_read(value);
                    needed.extend(value.free_vars());
                    around.push(Around::Let(vars.clone(), value.clone()));
                    around.extend(wheres(conditions));
                }
                Binder::Steps(vars) if vars.iter().any(|v| needed.contains(v)) => return false,
                Binder::Loop(_) | Binder::Let(..) | Binder::Steps(_) => {}
            }
        }
        let is_certain = self.is_certain(&around);
        self.reads.push(Read { key: key.clone(), site, around, is_certain });
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

/// How many places have been met, the number of each of them from 1 on, and which they are.
#[derive(Clone, Copy)]
struct Met {
    count: Var,
    place: Var,
    used: Var,
}

impl Met {
    fn fresh(vars: &mut Vars, size: &Size) -> Met {
        let ints = Type::array(vec![size.clone()], Scalar::I64);
        Met { count: vars.fresh("used", Type::I64), place: vars.fresh("place", ints.clone()), used: vars.fresh("used", ints) }
    }

    fn vars(&self) -> Vec<Var> {
        vec![self.count, self.place, self.used]
    }

    fn exp(&self) -> Exp {
        Exp::Tuple(self.vars().into_iter().map(Exp::Var).collect())
    }

    /// With the place of a read.
    fn with(&self, key: &Exp) -> Exp {
        let site = Site::default().certain();
        let set = |a: Var, key: Exp, value: Exp| Exp::Update(Box::new(Exp::Var(a)), vec![key], Box::new(value), site);
        let next = || add(Exp::Var(self.count), i64(1));
        let is_new = op2(Op::Eq, index(self.place, vec![key.clone()], site), i64(0));
        let parts = vec![next(), set(self.place, key.clone(), next()), set(self.used, Exp::Var(self.count), key.clone())];
        Exp::If(Box::new(is_new), Box::new(Exp::Tuple(parts)), Box::new(self.exp()))
    }
}

/// The places of a read, and what was met before.
fn meet(cx: &mut Context, size: &Size, read: &Read) -> (Met, Exp) {
    let mut met = Met::fresh(cx.vars, size);
    let mut exp = met.with(&read.key);
    for around in &read.around {
        exp = match around {
            Around::Where(condition) => Exp::If(Box::new(condition.clone()), Box::new(exp), Box::new(met.exp())),
            Around::Let(vars, value) => let_(vars.clone(), value.clone(), exp),
            Around::Loop(range) => {
                let before = Met::fresh(cx.vars, size);
                let steps =
                    Iteration { state: met.vars(), init: before.exp(), trip: Trip::For(range.clone()), body: exp, annotations: vec![] };
                met = before;
                Exp::Loop(Box::new(steps))
            }
        };
    }
    (met, copy(cx.vars, &exp, &Substitution::default()))
}

/// Whether there are few reads, and what is to be computed then: elements in the loops that read them.
fn compute_where_read(cx: &mut Context, vars: &[Var], p: Var, size: &Size, body: &Exp, rest: &Exp, reads: &[Read]) -> Option<(Exp, Exp)> {
    let [read] = reads else { return None };
    let is_few = op2(Op::Le, size_exp(&count(reads)?.scale(FEW)), size_exp(size));
    if !read.is_certain || rest.node_count() > SHORT {
        return None;
    }
    let q = cx.vars.fresh_like(p, Type::I64);
    let key = Exp::Index(Box::new(for_(q, size.clone(), Exp::Var(q))), vec![read.key.clone()], read.site);
    let mut element = let_(vec![p], key, Certain { cx, p, size, binders: vec![] }.keep(body.clone()));
    let mut types: Vec<Type> = vars.iter().map(|v| cx.vars.ty(*v).without_axes(1).expect("an array")).collect();
    let mut indices = vec![];
    for around in &read.around {
        match around {
            Around::Where(_) => {}
            Around::Let(vars, value) => element = let_(vars.clone(), value.clone(), element),
            Around::Loop(range) => {
                let length = (range.lo == i64(0)).then(|| exp_size(&range.hi)).flatten()?;
                types = types.into_iter().map(|ty| ty.with_axis(&length)).collect();
                element = for_(range.index, length, element);
                indices.insert(0, Exp::Var(range.index));
            }
        }
    }
    if indices.is_empty() {
        return None;
    }
    let arrays: Vec<Var> = vars.iter().zip(types).map(|(v, ty)| cx.vars.fresh_like(*v, ty)).collect();
    let rest = read_from(rest.clone(), vars, &arrays, &|_, _| indices.clone());
    Some((is_few, copy(cx.vars, &let_(arrays, element, rest), &Substitution::default())))
}

fn compute_used(cx: &mut Context, vars: Vec<Var>, p: Var, size: Size, body: Exp, rest: Exp, reads: Vec<Read>) -> Exp {
    let (i, j) = (cx.vars.fresh("i", Type::I64), cx.vars.fresh("i", Type::I64));
    let mut met = vec![];
    let mut value = Exp::Tuple(vec![i64(0), for_(i, size.clone(), i64(0)), for_(j, size.clone(), i64(0))]);
    for read in &reads {
        let (before, with) = meet(cx, &size, read);
        met.push((before.vars(), value));
        value = with;
    }
    value = lets(met, value);
    if let Some(count) = count(&reads) {
        let (i, j) = (cx.vars.fresh("i", Type::I64), cx.vars.fresh("i", Type::I64));
        let all = vec![size_exp(&size), for_(i, size.clone(), add(Exp::Var(i), i64(1))), for_(j, size.clone(), Exp::Var(j))];
        value = if_(op2(Op::Le, size_exp(&count), size_exp(&size.scale(MANY))), value, Exp::Tuple(all));
    }
    let all = Met::fresh(cx.vars, &size);
    let Met { count: m, place, used } = all;
    let mut out = vec![(all.vars(), value)];
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
    let number = |key: &Exp, site: Site| vec![sub(index(place, vec![key.clone()], site), i64(1))];
    lets(out, read_from(rest, &vars, &arrays, &number))
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

/// Reads other arrays instead of these, at other places than the first key says.
fn read_from(exp: Exp, vars: &[Var], arrays: &[Var], places: &dyn Fn(&Exp, Site) -> Vec<Exp>) -> Exp {
    match exp.map_children(&mut |e| read_from(e, vars, arrays, places)) {
        Exp::Index(array, keys, site) => match vars.iter().position(|v| *array == Exp::Var(*v)) {
            Some(k) => {
                let mut places = places(&keys[0], site);
                places.extend_from_slice(&keys[1..]);
                index(arrays[k], places, site)
            }
            None => Exp::Index(array, keys, site),
        },
        exp => exp,
    }
}
