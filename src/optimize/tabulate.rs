//! Tables of what a loop does not change but the loops in it do.
//!
//! ```text
//! for i. sum r. a[i, r] * (sum k. b[r, k] * c[k])
//! ```
//! is
//! ```text
//! let t = for r. sum k. b[r, k] * c[k]; for i. sum r. a[i, r] * t[r]
//! ```
//!
//! and `for i, c. sum a. (b[c, a] + f(i, c, a))` is `let t = for c. sum a. b[c, a]; for i, c. t[c] + sum a. f(i, c, a)`.
//!
//! `hoist` moves what depends on nothing in the loop; here it depends on the loops inside, so that it is computed for all their
//! indices. A table is made of what costs more than to store and read it, cannot fail, and takes no more memory than
//! an array that it reads: no program begins to need the square of its memory.

use super::interchange::part_types;
use super::simplify::arrays::{has_singleton, total};
use super::simplify::lets::has_loop;
use super::{Context, children};
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;
use crate::scalar::CostClass;
use rustc_hash::FxHashSet;

/// What costs so much is worth a table; an addition or a multiplication costs one.
const WORTH: u64 = 8;
/// What a call of a function or a division costs.
pub const CALL: u64 = 8;
/// How often a loop counts as running.
const STEPS: u64 = 8;

/// How often tables are made of what tables are made of.
const DEEPEST: usize = 3;

pub fn tabulate(cx: &mut Context, exp: Exp) -> Exp {
    within(cx, exp, 0)
}

fn within(cx: &mut Context, exp: Exp, depth: usize) -> Exp {
    let (tables, exp) = of_loop(cx, exp);
    let exp = children(cx, exp, &|cx, e| within(cx, e, depth));
    let deeper = |cx: &mut Context, table: Exp| if depth < DEEPEST { within(cx, table, depth + 1) } else { table };
    let tables = tables.into_iter().map(|(names, table)| (names, deeper(cx, table))).collect();
    lets(tables, exp)
}

/// A loop, and the tables of what it does not change.
fn of_loop(cx: &mut Context, exp: Exp) -> (Vec<(Vec<Var>, Exp)>, Exp) {
    let again = |n: &Size| n.as_constant().is_none_or(|n| n > 1);
    let (changing, body) = match &exp {
        Exp::For(i, size, body) if again(size) => (vec![*i], &**body),
        // One that data bound may well not run.
        Exp::Sum(range, body) | Exp::Reduce(_, range, body, _) if exp_size(&range.lo).is_some() && exp_size(&range.hi).is_some() => {
            (vec![range.index], &**body)
        }
        Exp::History(h) if again(&h.size) => (h.state.iter().copied().chain([h.index]).collect(), &h.body),
        Exp::Loop(l) => {
            let index = match &l.trip {
                Trip::For(range) => Some(range.index),
                Trip::While(_) => None,
            };
            (l.state.iter().copied().chain(index).collect(), &l.body)
        }
        _ => return (vec![], exp),
    };
    if !has_loop(body) {
        return (vec![], exp);
    }
    let mut tables =
        Tables { cx, varied: changing.into_iter().collect(), inner: vec![], scope: vec![], conditions: vec![], maybe: false, out: vec![] };
    let exp = match exp {
        Exp::For(i, size, body) => for_(i, size, tables.take(*body)),
        Exp::Sum(range, body) => Exp::Sum(range, Box::new(tables.take(*body))),
        Exp::Reduce(kind, range, body, site) => Exp::Reduce(kind, range, Box::new(tables.take(*body)), site),
        Exp::History(mut h) => {
            h.body = tables.take(h.body);
            Exp::History(h)
        }
        Exp::Loop(mut l) => {
            l.body = tables.take(l.body);
            Exp::Loop(l)
        }
        exp => exp,
    };
    let out = tables.out;
    cx.changed |= !out.is_empty();
    (out, exp)
}

struct Tables<'a, 'c> {
    cx: &'a mut Context<'c>,
    /// What depends on the loop, or on a loop in it that no table can have as an axis.
    varied: FxHashSet<Var>,
    /// The loops in it, outermost first.
    inner: Vec<(Var, Size)>,
    /// What the loop does not change and is too cheap for a table; tables repeat it.
    scope: Vec<(Vec<Var>, Exp)>,
    /// The conditions around that the loop does not change, and whether there are others.
    conditions: Vec<Exp>,
    maybe: bool,
    out: Vec<(Vec<Var>, Exp)>,
}

impl Tables<'_, '_> {
    /// Replaces what is worth a table by reads of tables, where it is computed in any case.
    fn take(&mut self, exp: Exp) -> Exp {
        if !matches!(exp, Exp::Let(..) | Exp::Tuple(_) | Exp::Var(_) | Exp::Lit(_)) && !self.varies(&exp) {
            if let Some(read) = self.table(&exp) {
                return read;
            }
        }
        match exp {
            Exp::Let(vars, value, body) => {
                if self.varies(&value) {
                    let value = self.take(*value);
                    self.varied.extend(&vars);
                    return let_(vars, value, self.take(*body));
                }
                let value = match self.table(&value) {
                    Some(read) => read,
                    None => *value,
                };
                self.scope.push((vars.clone(), value.clone()));
                let body = self.take(*body);
                self.scope.pop();
                let_(vars, value, body)
            }
            Exp::For(i, size, body) => {
                let body = self.within(i, Some(&size), *body);
                for_(i, size, body)
            }
            Exp::Sum(range, body) => {
                let (read, body) = self.parted(&range, *body);
                let size = whole(&range);
                let body = self.within(range.index, size.as_ref(), body);
                let sum = Exp::Sum(range, Box::new(body));
                match read {
                    Some(read) => add(read, sum),
                    None => sum,
                }
            }
            Exp::Reduce(kind, range, body, site) => {
                let size = whole(&range);
                let body = self.within(range.index, size.as_ref(), *body);
                Exp::Reduce(kind, range, Box::new(body), site)
            }
            Exp::Guard(p, e) => {
                let e = self.branch(&p, *e);
                guard(self.take(*p), e)
            }
            Exp::If(p, a, b) => {
                let (a, b) = (self.branch(&p, *a), self.branch(&op1(Op::Not, (*p).clone()), *b));
                if_(self.take(*p), a, b)
            }
            // What runs in steps has tables before it only of what it begins with.
            Exp::History(h) => Exp::History(h),
            Exp::Loop(l) => Exp::Loop(l),
            exp => exp.map_children(&mut |e| self.take(e)),
        }
    }

    /// What is evaluated where a condition holds. Tables are filled by a condition that the loop does not change; where it changes
    /// it, tables of what has no loop are filled as if all of it were needed.
    fn branch(&mut self, p: &Exp, e: Exp) -> Exp {
        let (count, maybe) = (self.conditions.len(), self.maybe);
        if self.varies(p) {
            self.maybe = true;
        } else {
            self.conditions.push(p.clone());
        }
        let e = self.take(e);
        self.conditions.truncate(count);
        self.maybe = maybe;
        e
    }

    /// The terms of a summand that the loop does not change, summed by a table, and the others.
    fn parted(&mut self, range: &Range, body: Exp) -> (Option<Exp>, Exp) {
        let mut terms = vec![];
        if scalar_of(self.cx.vars, &body).is_some_and(Scalar::is_float) {
            terms_of(&body, false, &mut terms);
        }
        let (varied, fixed): (Vec<_>, Vec<_>) = terms.into_iter().partition(|(_, term)| self.varies(term));
        if varied.is_empty() || fixed.is_empty() {
            return (None, body);
        }
        let sum = Exp::Sum(Box::new(range.clone()), Box::new(added(fixed)));
        let read = if self.varies(&sum) { None } else { self.table(&sum) };
        let body = if read.is_some() { added(varied) } else { body };
        (read, body)
    }

    fn within(&mut self, index: Var, size: Option<&Size>, body: Exp) -> Exp {
        let axis = size.filter(|s| !self.inner.iter().any(|(i, _)| s.mentions(*i)) && !self.is_local(s));
        match axis {
            Some(size) => self.inner.push((index, size.clone())),
            None => {
                self.varied.insert(index);
            }
        }
        let body = self.take(body);
        if axis.is_some() {
            self.inner.pop();
        }
        body
    }

    /// Whether a size depends on what is in the loop.
    fn is_local(&self, size: &Size) -> bool {
        self.varied.iter().any(|v| size.mentions(*v)) || self.scope.iter().any(|(vars, _)| vars.iter().any(|v| size.mentions(*v)))
    }

    fn varies(&self, exp: &Exp) -> bool {
        exp.free_vars().iter().any(|v| self.varied.contains(v))
    }

    /// A read of a table of what the expression is for all loops inside that it depends on, if that is worth it.
    fn table(&mut self, exp: &Exp) -> Option<Exp> {
        let mut needed: FxHashSet<Var> = exp.free_vars().into_iter().collect();
        needed.extend(self.conditions.iter().flat_map(|p| p.free_vars()));
        let mut slice = vec![];
        for (vars, value) in self.scope.iter().rev() {
            if vars.iter().any(|v| needed.contains(v)) {
                needed.extend(value.free_vars());
                slice.push((vars.clone(), value.clone()));
            }
        }
        slice.reverse();
        if self.maybe && slice.iter().map(|(_, e)| e).chain([exp]).any(has_loop) {
            return None;
        }
        let axes: Vec<(Var, Size)> = self.inner.iter().filter(|(i, _)| needed.contains(i)).cloned().collect();
        let worth = || {
            weight(self.cx, exp) >= WORTH || slice.iter().map(|(_, e)| weight(self.cx, e)).sum::<u64>() + weight(self.cx, exp) >= 2 * WORTH
        };
        let types = part_types(&type_of_exp(self.cx.vars, exp));
        // Rows of different lengths are no array.
        let bad = |ty: &Type| match ty {
            Type::Tuple(_) => true,
            ty => ty.shape().iter().any(|s| self.is_local(s) || self.inner.iter().any(|(i, _)| s.mentions(*i))),
        };
        if axes.is_empty()
            || types.iter().any(bad)
            || !worth()
            || !types.iter().all(|ty| is_small(self.cx, &axes, ty, exp, &slice))
            || has_singleton(exp)
        {
            return None;
        }
        let value = self.conditions.iter().rev().fold(exp.clone(), |e, p| guard(p.clone(), e));
        let value = lets(slice, value);
        let whole = axes.iter().rev().fold(value, |e, (i, size)| for_(*i, size.clone(), e));
        let whole = copy(self.cx.vars, &whole, &Substitution::default());
        if !total(self.cx, &whole) {
            return None;
        }
        let named = |cx: &mut Context, ty: Type| {
            let ty = axes.iter().rev().fold(ty, |ty, (_, size)| ty.with_axis(size));
            cx.vars.fresh("t", ty)
        };
        let names: Vec<Var> = types.into_iter().map(|ty| named(self.cx, ty)).collect();
        let keys: Vec<Exp> = axes.iter().map(|(i, _)| Exp::Var(*i)).collect();
        let reads = names.iter().map(|name| index(*name, keys.clone(), Site::default())).collect();
        self.out.push((names, whole));
        Some(tuple(reads))
    }
}

/// The terms of a sum, and which of them are subtracted.
fn terms_of(exp: &Exp, negative: bool, terms: &mut Vec<(bool, Exp)>) {
    match exp {
        Exp::Op(Op::Add, args, _) => args.iter().for_each(|a| terms_of(a, negative, terms)),
        Exp::Op(Op::Sub, args, _) => {
            terms_of(&args[0], negative, terms);
            terms_of(&args[1], !negative, terms);
        }
        Exp::Op(Op::Neg, args, _) => terms_of(&args[0], !negative, terms),
        term => terms.push((negative, term.clone())),
    }
}

fn added(terms: Vec<(bool, Exp)>) -> Exp {
    let signed = terms.into_iter().map(|(negative, term)| if negative { op1(Op::Neg, term) } else { term });
    signed.reduce(add).expect("there is a term")
}

/// The size of an axis that has a place for each step.
pub fn whole(range: &Range) -> Option<Size> {
    if range.lo == i64(0) { exp_size(&range.hi) } else { None }
}

/// Whether an array that is read has all axes of unknown size that the table has: so it takes no more memory than what is there.
fn is_small(cx: &Context, axes: &[(Var, Size)], ty: &Type, exp: &Exp, slice: &[(Vec<Var>, Exp)]) -> bool {
    let unknown = |s: &Size| s.as_constant().is_none();
    let long: Vec<Var> = axes.iter().filter(|(_, s)| unknown(s)).map(|(i, _)| *i).collect();
    let count = long.len() + ty.shape().iter().filter(|s| unknown(s)).count();
    let reads = |array: &Exp, keys: &[Exp]| match array {
        Exp::Var(a) => {
            long.iter().all(|i| keys.contains(&Exp::Var(*i))) && cx.vars.ty(*a).shape().iter().filter(|s| unknown(s)).count() >= count
        }
        _ => false,
    };
    fn any_read(exp: &Exp, test: &dyn Fn(&Exp, &[Exp]) -> bool) -> bool {
        let mut found = matches!(exp, Exp::Index(array, keys, _) if test(array, keys));
        exp.for_each_child(&mut |e| found = found || any_read(e, test));
        found
    }
    count == 0 || any_read(exp, &reads) || slice.iter().any(|(_, e)| any_read(e, &reads))
}

/// What an expression costs, in additions and multiplications; a loop counts as running a few times.
pub fn weight(cx: &Context, exp: &Exp) -> u64 {
    let own = match exp {
        Exp::Op(op, args, _) => {
            let scalars: Option<Vec<Scalar>> = args.iter().map(|a| scalar_of(cx.vars, a)).collect();
            match (op, scalars) {
                (Op::Div, _) => CALL,
                (op, Some(scalars)) => match op.cost(&scalars) {
                    CostClass::Call => CALL,
                    CostClass::Free => 0,
                    CostClass::Addition | CostClass::Multiplication => 1,
                },
                (_, None) => 1,
            }
        }
        Exp::Partial(..) | Exp::Call(..) => CALL,
        // What is summed is added.
        Exp::Sum(..) | Exp::Reduce(..) => 1,
        Exp::Var(_)
        | Exp::Lit(_)
        | Exp::Index(..)
        | Exp::Singleton(..)
        | Exp::For(..)
        | Exp::History(_)
        | Exp::Loop(_)
        | Exp::Update(..)
        | Exp::Guard(..)
        | Exp::If(..)
        | Exp::Let(..)
        | Exp::Tuple(_)
        | Exp::Array(_) => 0,
    };
    let mut sum = own;
    exp.for_each_child(&mut |e| sum += weight(cx, e));
    let is_loop = matches!(exp, Exp::For(..) | Exp::Sum(..) | Exp::Reduce(..) | Exp::History(_) | Exp::Loop(_));
    if is_loop { STEPS * sum } else { sum }
}
