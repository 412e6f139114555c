//! Terms that are zero times something dear are left out, where most of them are.
//!
//! ```text
//! for i, r. sum k. w[p, k] * (sum c. x[p, c] * m[k, r, c, i])
//! ```
//! of a `w` that is known to be zero nearly everywhere (skinning weights, say) is
//! ```text
//! let finite = (no number of x[p] and m is infinite or no number);
//! let t = sum k. [w[p, k] != 0.0 or not finite] * (for r, i. w[p, k] * (x[p, 0] * m[k, r, 0, i] + …));
//! for i, r. t[r, i]
//! ```
//! Zero times a number that is not finite is no zero, so with one all terms are computed. The `for` whose neighbours stand side
//! by side in memory goes innermost. What is done with the sum, as in `for i. y[i] - (sum k. …)`, is done behind it.
//!
//! It is right for all values, but good for few: terms that have to be asked for do not run side by side. So it is done for
//! parameters of which the values of a call at hand were looked at (`specialize`), and for terms that are dear. Products of two
//! matrices stay what they are.

use super::hoist::hoist;
use super::simplify::arrays::{factors, total};
use super::tabulate::weight;
use super::{Context, Rewrite, rewrite_outside_in};
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy, replaced, substitute};
use crate::ir::*;

/// What a term costs at least, additions and multiplications counting one; and what it costs where other terms with zeros are
/// left out anyway.
const DEAR: u64 = 192;
const DEAR_BESIDE: u64 = 16;
/// The most terms of a sum that is written out.
const MOST_TERMS: i64 = 8;
/// How often a loop counts as running of which that is not known.
const STEPS: u64 = 16;

pub fn skip_zeros(cx: &mut Context, exp: Exp) -> Exp {
    if !cx.vars.has_mostly_zero() {
        return exp;
    }
    let before = std::mem::replace(&mut cx.changed, false);
    let mut exp = everywhere(cx, exp, DEAR);
    if cx.changed {
        exp = everywhere(cx, exp, DEAR_BESIDE);
        exp = rewrite_outside_in(cx, exp, &asked_together);
        // What is asked of arrays that are the same for all is asked once.
        exp = hoist(cx, exp);
    }
    cx.changed |= before;
    exp
}

/// From the outside in: what is asked of numbers is asked for as many loops at once as there are.
fn everywhere(cx: &mut Context, exp: Exp, least: u64) -> Exp {
    rewrite_outside_in(cx, exp, &|cx, e| rule(cx, e, least))
}

/// A sum that has a name is read by it.
fn rule(cx: &mut Context, exp: Exp, least: u64) -> Rewrite {
    let skip = |cx: &mut Context, exp: &Exp| nests(exp).find_map(|nest| skipped(cx, &nest, least));
    match exp {
        Exp::Let(vars, value, rest) if vars.len() == 1 => match skip(cx, &value) {
            Some(new) => Ok(new.bound(cx, vars[0], *rest)),
            None => Err(Exp::Let(vars, value, rest)),
        },
        exp => match skip(cx, &exp) {
            Some(new) => Ok(new.whole(cx)),
            None => Err(exp),
        },
    }
}

/// A sum in loops.
struct Nest<'a> {
    loops: Vec<(Var, Size)>,
    range: &'a Range,
    term: &'a Exp,
    /// What is done with it in each step of the loops: the whole body, in which the sum stands.
    body: &'a Exp,
    sum: &'a Exp,
}

/// The sums that every step of loops computes.
fn nests(exp: &Exp) -> impl Iterator<Item = Nest<'_>> {
    let mut loops = vec![];
    let mut body = exp;
    while let Exp::For(i, n, inner) = body {
        loops.push((*i, n.clone()));
        body = inner;
    }
    let mut sums = vec![];
    if !loops.is_empty() {
        find_sums(body, &mut sums);
    }
    sums.into_iter().map(move |(sum, range, term)| Nest { loops: loops.clone(), range, term, body, sum })
}

/// The sums that arithmetic is done with: nothing is bound around them, and nothing decides whether they are computed.
fn find_sums<'a>(exp: &'a Exp, found: &mut Vec<(&'a Exp, &'a Range, &'a Exp)>) {
    match exp {
        Exp::Sum(range, term) => found.push((exp, range, term)),
        Exp::Op(op, args, _) if !matches!(op, Op::And | Op::Or) => args.iter().for_each(|e| find_sums(e, found)),
        _ => {}
    }
}

/// A sum that leaves out what it can, and what is asked for that.
struct Skipped {
    is_finite: Var,
    finite: Exp,
    sum: Exp,
    /// The loops that the sum stood in, and their order in it.
    loops: Vec<(Var, Size)>,
    order: Vec<usize>,
    /// The body of these loops and the sum in it, where the sum is not all of it.
    within: Option<(Exp, Exp)>,
}

impl Skipped {
    /// In place of the value of a variable.
    fn bound(self, cx: &mut Context, v: Var, rest: Exp) -> Exp {
        if self.within.is_some() || !is_read(&rest, v, self.loops.len()) {
            let whole = self.whole(cx);
            return let_(vec![v], whole, rest);
        }
        let t = cx.vars.fresh_like(v, type_of_exp(cx.vars, &self.sum));
        let rest = reordered(rest, v, t, &self.order);
        let_(vec![self.is_finite], self.finite, let_(vec![t], self.sum, rest))
    }

    /// In place of the loops.
    fn whole(self, cx: &mut Context) -> Exp {
        let t = cx.vars.fresh("t", type_of_exp(cx.vars, &self.sum));
        let element = index(t, self.order.iter().map(|k| Exp::Var(self.loops[*k].0)).collect(), Site::default());
        let whole = self.within.is_none() && self.order.is_sorted();
        let body = match self.within {
            Some((body, sum)) => replaced(body, &sum, &element),
            None => element,
        };
        let all = self.loops.iter().rev().fold(body, |e, (i, n)| for_(*i, n.clone(), e));
        let all = if whole { Exp::Var(t) } else { copy(cx.vars, &all, &Substitution::default()) };
        let_(vec![self.is_finite], self.finite, let_(vec![t], self.sum, all))
    }
}

fn skipped(cx: &mut Context, nest: &Nest, least: u64) -> Option<Skipped> {
    let Nest { loops, range, term, body, sum } = nest;
    let Exp::Op(Op::Mul, args, _) = *term else { return None };
    let (zeros, rest): (Vec<Exp>, Vec<Exp>) = factors(args).into_iter().partition(|f| is_mostly_zero(cx.vars, loops, range, f));
    let [zero] = zeros.as_slice() else { return None };
    let trips = loops.iter().map(|(_, n)| n.as_constant().map_or(STEPS, |n| n.max(1) as u64)).fold(1, u64::saturating_mul);
    let cost: u64 = rest.iter().map(|e| weight(cx, e)).sum();
    if !rest.iter().any(has_sum) || trips.saturating_mul(cost) < least {
        return None;
    }
    let as_range = |(i, n): &(Var, Size)| Range { index: *i, lo: i64(0), hi: size_exp(n) };
    let mut binders: Vec<Range> = loops.iter().map(as_range).chain([(*range).clone()]).collect();
    let mut asked = vec![];
    for factor in &rest {
        all_finite(cx, factor, &mut binders, &mut asked)?;
    }
    let finite = asked.into_iter().reduce(|a, b| op2(Op::And, a, b)).unwrap_or(bool(true));
    let finite = copy(cx.vars, &finite, &Substitution::default());
    let scalar = type_of_exp(cx.vars, term).scalar()?;
    let is_finite = cx.vars.fresh("finite", Type::Scalar(Scalar::Bool));
    let nonzero = op2(Op::Ne, zero.clone(), float(scalar, 0.0));
    let matters = op2(Op::Or, nonzero, op1(Op::Not, Exp::Var(is_finite)));
    let order = order(loops, &rest);
    let within = (body != sum).then(|| ((*body).clone(), (*sum).clone()));
    let term = written_out(cx.vars, (*term).clone());
    let inner = order.iter().rev().fold(term, |e, k| for_(loops[*k].0, loops[*k].1.clone(), e));
    let sum = Exp::Sum(Box::new((*range).clone()), Box::new(guard(matters, inner)));
    let sum = copy(cx.vars, &sum, &Substitution::default());
    Some(Skipped { is_finite, finite, sum, loops: loops.clone(), order, within })
}

/// `let f = …; let t = sum k. [w != 0 or not f] * e; rest`
struct Asked {
    is_finite: Var,
    finite: Exp,
    sum: Var,
    range: Range,
    nonzero: Exp,
    term: Exp,
    rest: Exp,
}

impl Asked {
    fn of(exp: &Exp) -> Option<Asked> {
        let Exp::Let(f, finite, body) = exp else { return None };
        let Exp::Let(t, value, rest) = &**body else { return None };
        let (Exp::Sum(range, body), [f], [t]) = (&**value, f.as_slice(), t.as_slice()) else { return None };
        let Exp::Guard(matters, term) = &**body else { return None };
        let Exp::Op(Op::Or, asked, _) = &**matters else { return None };
        let [nonzero, Exp::Op(Op::Not, not, _)] = asked.as_slice() else { return None };
        let (range, nonzero, finite) = ((**range).clone(), nonzero.clone(), (**finite).clone());
        let of = || Asked { is_finite: *f, finite, sum: *t, range, nonzero, term: (**term).clone(), rest: (**rest).clone() };
        (not[0] == Exp::Var(*f)).then(of)
    }

    /// This and others that ask the same as one sum, which is bound, and what is left of each.
    fn together(self, cx: &mut Context, others: Vec<Asked>) -> (Vec<(Vec<Var>, Exp)>, Vec<Exp>) {
        let Asked { range, nonzero, .. } = &self;
        let (range, nonzero) = (range.clone(), nonzero.clone());
        let (mut bound, mut matters, mut names, mut terms, mut rests) = (vec![], nonzero, vec![], vec![], vec![]);
        for asked in std::iter::once(self).chain(others) {
            let same = Substitution::from_iter([(asked.range.index, Exp::Var(range.index))]);
            matters = op2(Op::Or, matters, op1(Op::Not, Exp::Var(asked.is_finite)));
            bound.push((vec![asked.is_finite], asked.finite));
            names.push(asked.sum);
            terms.push(substitute(cx.vars, asked.term, &same));
            rests.push(asked.rest);
        }
        bound.push((names, Exp::Sum(Box::new(range), Box::new(guard(matters, tuple(terms))))));
        (bound, rests)
    }

    fn asks_as(&self, cx: &mut Context, first: &Asked) -> bool {
        let same = Substitution::from_iter([(self.range.index, Exp::Var(first.range.index))]);
        let nonzero = substitute(cx.vars, self.nonzero.clone(), &same);
        (&self.range.lo, &self.range.hi, &nonzero) == (&first.range.lo, &first.range.hi, &first.nonzero)
    }
}

/// Sums beside each other that leave out the same terms become one: what is zero is asked once.
fn asked_together(cx: &mut Context, exp: Exp) -> Rewrite {
    match exp {
        Exp::Tuple(mut parts) => {
            let mut asked = parts.iter().enumerate().filter_map(|(k, part)| Some((k, Asked::of(part)?)));
            let Some((at, first)) = asked.next() else { return Err(Exp::Tuple(parts)) };
            let all: Vec<(usize, Asked)> = asked.collect();
            let (same, others): (Vec<_>, Vec<_>) = all.into_iter().filter(|(_, a)| a.asks_as(cx, &first)).unzip();
            if others.is_empty() {
                return Err(Exp::Tuple(parts));
            }
            let (bound, rests) = first.together(cx, others);
            std::iter::once(at).chain(same).zip(rests).for_each(|(k, rest)| parts[k] = rest);
            Ok(lets(bound, Exp::Tuple(parts)))
        }
        exp => {
            let Some(first) = Asked::of(&exp) else { return Err(exp) };
            let Some(next) = Asked::of(&first.rest) else { return Err(exp) };
            if next.finite.mentions(first.sum) || next.term.mentions(first.sum) || !next.asks_as(cx, &first) {
                return Err(exp);
            }
            let (bound, mut rests) = first.together(cx, vec![next]);
            Ok(lets(bound, rests.pop().expect("there are two")))
        }
    }
}

fn has_sum(exp: &Exp) -> bool {
    let mut found = matches!(exp, Exp::Sum(..));
    exp.for_each_child(&mut |e| found = found || has_sum(e));
    found
}

/// Short sums as their terms: each place is then added to once.
fn written_out(vars: &mut Vars, exp: Exp) -> Exp {
    let exp = exp.map_children(&mut |e| written_out(vars, e));
    let Exp::Sum(range, term) = exp else { return exp };
    match (exp_size(&range.lo).and_then(|s| s.as_constant()), exp_size(&range.hi).and_then(|s| s.as_constant())) {
        (Some(lo), Some(hi)) if (1..=MOST_TERMS).contains(&hi.saturating_sub(lo)) => {
            let mut at = |n: i64| copy(vars, &term, &[(range.index, i64(n))].into_iter().collect());
            (lo + 1..hi).fold(at(lo), |sum, n| add(sum, at(n)))
        }
        _ => Exp::Sum(range, term),
    }
}

/// Whether a variable is only read, at so many keys at least.
fn is_read(exp: &Exp, v: Var, keys: usize) -> bool {
    match exp {
        Exp::Var(w) => *w != v,
        Exp::Index(array, at, _) if **array == Exp::Var(v) => at.len() >= keys && at.iter().all(|k| is_read(k, v, keys)),
        exp => {
            let mut fine = true;
            exp.for_each_child(&mut |e| fine = fine && is_read(e, v, keys));
            fine
        }
    }
}

/// Reads of a variable as reads of another, whose first axes have another order.
fn reordered(exp: Exp, v: Var, t: Var, order: &[usize]) -> Exp {
    let exp = exp.map_children(&mut |e| reordered(e, v, t, order));
    match exp {
        Exp::Index(array, keys, site) if *array == Exp::Var(v) => {
            let first = order.iter().map(|k| keys[*k].clone());
            Exp::Index(Box::new(Exp::Var(t)), first.chain(keys[order.len()..].iter().cloned()).collect(), site)
        }
        exp => exp,
    }
}

/// A number of a parameter that is mostly zeros, the same for all of the loops.
fn is_mostly_zero(vars: &Vars, loops: &[(Var, Size)], range: &Range, factor: &Exp) -> bool {
    match factor {
        Exp::Index(array, _, _) => {
            matches!(**array, Exp::Var(v) if vars.is_mostly_zero(v))
                && factor.mentions(range.index)
                && !loops.iter().any(|(i, _)| factor.mentions(*i))
        }
        _ => false,
    }
}

/// Asks whether all numbers are finite that sums of products read, for all values of the indices that are bound around.
fn all_finite(cx: &mut Context, exp: &Exp, binders: &mut Vec<Range>, asked: &mut Vec<Exp>) -> Option<()> {
    match exp {
        Exp::Lit(_) => {}
        Exp::Var(_) | Exp::Index(..) => {
            let scalar = type_of_exp(cx.vars, exp).scalar().filter(|s| s.is_float())?;
            // Of all finite numbers, and of no others, zero is the product with zero.
            let nothing = mul(exp.clone(), float(scalar, 0.0));
            // Where a range depends on another index, that one runs, too.
            let mut ranges = 0;
            let sum = in_memory_order(binders, exp).into_iter().rev().fold(nothing, |e, range| {
                if !e.mentions(range.index) {
                    return e;
                }
                ranges += 1;
                Exp::Sum(Box::new(range.clone()), Box::new(e))
            });
            if !total(cx, &sum) {
                return None;
            }
            let sum = if ranges == 1 { written_out(cx.vars, sum) } else { sum };
            asked.push(op2(Op::Eq, sum, float(scalar, 0.0)));
        }
        Exp::Op(Op::Mul | Op::Add | Op::Sub | Op::Neg | Op::ToF64, args, _) => {
            for a in args {
                all_finite(cx, a, binders, asked)?;
            }
        }
        Exp::Sum(range, body) => {
            binders.push((**range).clone());
            let inside = all_finite(cx, body, binders, asked);
            binders.pop();
            inside?;
        }
        _ => return None,
    }
    Some(())
}

/// The ranges, as the keys of a read have their indices one after the other; as they are where one depends on another.
fn in_memory_order<'a>(binders: &'a [Range], read: &Exp) -> Vec<&'a Range> {
    let mut order: Vec<&Range> = binders.iter().collect();
    let is_bound = |e: &Exp| binders.iter().any(|range| e.mentions(range.index));
    if let (Exp::Index(_, keys, _), false) = (read, binders.iter().any(|range| is_bound(&range.lo) || is_bound(&range.hi))) {
        order.sort_by_key(|range| keys.iter().position(|key| key.mentions(range.index)));
    }
    order
}

/// The order of the loops: last the one that is the last key of a read.
fn order(loops: &[(Var, Size)], rest: &[Exp]) -> Vec<usize> {
    fn last_keys(exp: &Exp, found: &mut Vec<Var>) {
        if let Exp::Index(_, keys, _) = exp {
            found.extend(keys.last().and_then(|k| if let Exp::Var(v) = k { Some(*v) } else { None }));
        }
        exp.for_each_child(&mut |e| last_keys(e, found));
    }
    let mut found = vec![];
    rest.iter().for_each(|e| last_keys(e, &mut found));
    let innermost = (0..loops.len()).rev().find(|k| found.contains(&loops[*k].0));
    let others = (0..loops.len()).filter(|k| Some(*k) != innermost);
    others.chain(innermost).collect()
}
