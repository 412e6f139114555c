//! A stream of entries as a nest of loops that can be run.
//!
//! In: a stream (`streams.rs`). Out: the same with the loops of its term in place, the seed replaced by its one place, and
//! conditions on indices as bounds. How many entries it has, and arrays of their rows, columns and values:
//!
//! * Where no loop depends on another, the arrays are generated with an axis for each loop; nests of the same loops are
//!   generated as one, with an axis for the nests.
//! * Else the entries under each index are counted first; sums of these are the places of the entries, into which sums of
//!   singletons put them.

use super::one_hot::OneHot;
use super::project::{project, select};
use super::streams::{Frame, Stream};
use super::support::{Linear, Term};
use super::tidy;
use crate::ir::build::*;
use crate::ir::facts::Facts;
use crate::ir::traverse::{Substitution, copy, substitute};
use crate::ir::*;
use crate::optimize::simplify::guards::{conjunction, conjuncts};
use crate::optimize::solve_predicates::solve;

/// Loops around an entry.
#[derive(Clone, Debug)]
pub struct Nest {
    pub frames: Vec<Frame>,
    /// The place in the array, and that in the seed.
    pub keys: Vec<Exp>,
    pub place: Vec<Exp>,
    pub value: Exp,
    /// Whether an element of the array depends on a constant number of places of the seed.
    pub local: bool,
}

/// What is known inside of frames.
pub fn enter(facts: &mut Facts, frame: &Frame) {
    match frame {
        Frame::Loop(range) => facts.enter_range(range),
        Frame::Let(vars, value) => {
            if let [v] = vars.as_slice() {
                facts.define(*v, value);
            }
        }
        Frame::Guard(p) => facts.assume(p),
        // The places of entries do not depend on it.
        Frame::When(_) => {}
    }
}

fn within(facts: &Facts, frames: &[Frame]) -> Facts {
    let mut facts = facts.clone();
    frames.iter().for_each(|f| enter(&mut facts, f));
    facts
}

/// The nest of a stream, `None` if it has no entries. `axes` are those of the array.
pub fn nest(cx: &mut Linear, facts: &Facts, stream: Stream, axes: &[Size]) -> Option<Nest> {
    let Stream { frames, keys, term, before, value } = stream;
    let term = cx.renamed(&term, &Substitution::default());
    // The loops of the term stand as far outside as they can, so that what the seed alone decides is computed once.
    let wanted: Vec<Var> = term
        .keys
        .iter()
        .chain(&term.guards)
        .flat_map(Exp::free_vars)
        .chain(term.loops.iter().flat_map(|r| r.lo.free_vars().into_iter().chain(r.hi.free_vars())))
        .collect();
    let binds = |frame: &Frame| match frame {
        Frame::Loop(range) => wanted.contains(&range.index),
        Frame::Let(vars, _) => vars.iter().any(|v| wanted.contains(v)),
        // A key may be computed under a condition only.
        Frame::Guard(_) => !term.keys.iter().all(|k| matches!(k, Exp::Var(_) | Exp::Lit(_))),
        Frame::When(_) => false,
    };
    let at = frames.iter().rposition(binds).map_or(0, |k| k + 1);
    let Term { loops, keys: place, guards } = term;
    let constant = |r: &Range| exp_size(&sub(r.hi.clone(), r.lo.clone())).and_then(|s| s.as_constant()).is_some();
    let local = loops.iter().all(constant);

    // What varies waits for the seed; what is computed beside it does not.
    let (mut done, mut late) = (vec![], vec![]);
    for frame in &frames[..at] {
        match frame {
            Frame::Let(vars, value) if vars.iter().any(|v| cx.is_varying(*v)) => {
                let fixed: Vec<usize> = (0..vars.len()).filter(|k| !cx.is_varying(vars[*k])).collect();
                done.extend(parts(cx.vars, vars, value, &fixed));
                let unused =
                    |k: &usize| if fixed.contains(k) { cx.vars.fresh_like(vars[*k], cx.vars.ty(vars[*k]).clone()) } else { vars[*k] };
                late.push(Frame::Let((0..vars.len()).collect::<Vec<_>>().iter().map(unused).collect(), value.clone()));
            }
            frame => done.push(frame.clone()),
        }
    }
    done.extend(loops.into_iter().map(Frame::Loop));
    done.extend(guards.into_iter().flat_map(|g| conjuncts(&g)).map(Frame::Guard));
    let known = within(facts, &done);
    let indices = |frames: &[Frame]| frames.iter().filter(|f| matches!(f, Frame::Loop(_))).flat_map(Frame::binds).collect::<Vec<Var>>();
    let mut hot = OneHot::new(cx, known, indices(&done), place.clone());
    hot.known.extend(indices(&frames[at..]));
    for frame in late.iter().chain(&frames[at..]) {
        match frame {
            Frame::Let(vars, value) => {
                for (vars, value) in hot.bind(vars, value) {
                    let frame = Frame::Let(vars, value);
                    enter(&mut hot.facts, &frame);
                    done.push(frame);
                }
            }
            Frame::Guard(p) => {
                for p in conjuncts(p) {
                    let frame = Frame::Guard(p);
                    enter(&mut hot.facts, &frame);
                    done.push(frame);
                }
            }
            frame => {
                enter(&mut hot.facts, frame);
                done.push(frame.clone());
            }
        }
    }
    let mut value = hot.exp(&value)?;
    let known = hot.facts;
    // Where a term before this one has the place, the entry is its.
    for term in before {
        let taken = covers(cx, &term, &place)?;
        match known.decide(cx.vars, &taken) {
            Some(true) => return None,
            Some(false) => {}
            None => value = guard(op1(Op::Not, taken), value),
        }
    }
    let (keys, mut conditional): (Vec<Exp>, Vec<bool>) = keys.into_iter().unzip();
    let under = done.iter().any(|f| matches!(f, Frame::When(_)));
    conditional.extend(place.iter().map(|_| under));
    let mut nest = Nest { frames: done, keys, place, value, local };
    nest.solve_guards(cx, facts)?;
    nest.check_keys(cx, facts, axes, &conditional);
    Some(nest)
}

/// Bindings of some of the variables of `let vars = value`.
fn parts(table: &mut Vars, vars: &[Var], value: &Exp, wanted: &[usize]) -> Vec<Frame> {
    if wanted.is_empty() {
        return vec![];
    }
    if let Some(parts) = select(table, value, wanted) {
        return vec![Frame::Let(wanted.iter().map(|k| vars[*k]).collect(), parts)];
    }
    let one = |k: &usize| {
        let part = project(table, value, &[*k]).unwrap_or_else(|| panic!("sparse: a part of what has none"));
        Frame::Let(vec![vars[*k]], part)
    };
    wanted.iter().map(one).collect()
}

/// Whether a term has a place. Its loops follow from its keys.
fn covers(cx: &mut Linear, term: &Term, place: &[Exp]) -> Option<Exp> {
    let mut with = Substitution::default();
    let mut conditions = vec![];
    for solved in term.solved()? {
        let rest = substitute(cx.vars, size_exp(&solved.rest), &with);
        let difference = sub(place[solved.axis].clone(), rest);
        let value = if solved.sign > 0 { difference } else { op1(Op::Neg, difference) };
        let value = exp_size(&value).map_or(value, |s| size_exp(&s));
        let range = term.loops.iter().find(|r| r.index == solved.index).expect("a loop of the term");
        let (lo, hi) = (copy(cx.vars, &range.lo, &with), copy(cx.vars, &range.hi, &with));
        conditions.push(op2(Op::Le, lo, value.clone()));
        conditions.push(op2(Op::Lt, value.clone(), hi));
        with.insert(solved.index, value);
    }
    let keys = term.keys.iter().zip(place).map(|(k, p)| op2(Op::Eq, copy(cx.vars, k, &with), p.clone()));
    let same: Vec<Exp> = keys.collect();
    conditions.extend(same.into_iter().filter(|c| !matches!(c, Exp::Op(Op::Eq, sides, _) if sides[0] == sides[1])));
    let guards: Vec<Exp> = term.guards.iter().map(|g| copy(cx.vars, g, &with)).collect();
    conditions.extend(guards);
    Some(conjunction(conditions).unwrap_or_else(|| bool(true)))
}

impl Nest {
    /// Conditions that are known to hold are left out; those on an index become its bounds. `None` where one never holds.
    fn solve_guards(&mut self, cx: &mut Linear, facts: &Facts) -> Option<()> {
        let mut at = 0;
        while at < self.frames.len() {
            let Frame::Guard(p) = self.frames[at].clone() else {
                at += 1;
                continue;
            };
            let known = within(facts, &self.frames[..at]);
            match known.decide(cx.vars, &p) {
                Some(true) => {
                    self.frames.remove(at);
                    continue;
                }
                Some(false) => return None,
                None => {}
            }
            let mut solved = false;
            for k in (0..at).rev() {
                let Frame::Loop(range) = &self.frames[k] else { continue };
                let outside = within(facts, &self.frames[..k]);
                let Some(found) = solve(cx.vars, &outside, &p, range) else { continue };
                let narrowed = found.range.clone();
                let Exp::Tuple(_) = found.under(Exp::Tuple(vec![])) else { continue };
                // The new bounds must be known where the loop begins.
                let inner: Vec<Var> = self.frames[k..at].iter().flat_map(Frame::binds).collect();
                if narrowed.lo.mentions_any(&inner) || narrowed.hi.mentions_any(&inner) {
                    continue;
                }
                self.frames[k] = Frame::Loop(narrowed);
                self.frames.remove(at);
                solved = true;
                break;
            }
            if !solved {
                at += 1;
            }
        }
        Some(())
    }

    /// Only the entries for which a condition on integers holds; `None` if there are none.
    pub fn narrow(&mut self, cx: &mut Linear, facts: &Facts, condition: Exp) -> Option<()> {
        self.frames.push(Frame::Guard(condition));
        self.solve_guards(cx, facts)
    }

    /// A key that may be out of range is an error, as the read is that it comes from; under a condition on floats, which
    /// does not decide about places, it is no entry.
    fn check_keys(&mut self, cx: &mut Linear, facts: &Facts, axes: &[Size], conditional: &[bool]) {
        let known = within(facts, &self.frames);
        let mut guards = vec![];
        let own = cx.axes.clone();
        let all = self.keys.iter_mut().zip(axes).chain(self.place.iter_mut().zip(&own));
        for ((key, size), conditional) in all.zip(conditional) {
            if known.in_range(key, size) {
                continue;
            }
            if *conditional {
                guards.push(op2(Op::Le, i64(0), key.clone()));
                guards.push(op2(Op::Lt, key.clone(), size_exp(size)));
            } else {
                let i = cx.vars.fresh("i", Type::I64);
                let places = for_(i, size.clone(), Exp::Var(i));
                *key = Exp::Index(Box::new(places), vec![key.clone()], Site::default());
            }
        }
        self.frames.extend(guards.into_iter().map(Frame::Guard));
    }

    /// Whether the number of times each loop runs depends on sizes alone.
    pub fn is_rectangular(&self) -> bool {
        let inner: Vec<Var> = self.frames.iter().flat_map(Frame::binds).collect();
        self.frames.iter().all(|f| match f {
            Frame::Loop(range) => exp_size(&range.lo).zip(exp_size(&range.hi)).is_some_and(|(lo, hi)| {
                let trip = size_exp(&hi.sub(&lo));
                !trip.mentions_any(&inner)
            }),
            Frame::Guard(_) => false,
            Frame::Let(..) | Frame::When(_) => true,
        })
    }

    /// How often each loop of a rectangular nest runs.
    pub fn trips(&self) -> Vec<Size> {
        let trip = |f: &Frame| match f {
            Frame::Loop(range) => Some(exp_size(&range.hi)?.sub(&exp_size(&range.lo)?)),
            Frame::Let(..) | Frame::Guard(_) | Frame::When(_) => None,
        };
        self.frames.iter().filter_map(trip).collect()
    }

    /// Its loops, from the outside in.
    pub fn loops(&self) -> impl Iterator<Item = &Range> {
        self.frames.iter().filter_map(|f| match f {
            Frame::Loop(range) => Some(range),
            Frame::Let(..) | Frame::Guard(_) | Frame::When(_) => None,
        })
    }

    /// Something computed in the loops of a rectangular nest, at indices that count them from 0.
    pub fn at(&self, vars: &mut Vars, indices: &[Exp], leaf: Exp, of: Part) -> Exp {
        let mut indices = indices.iter().rev();
        let body = self.frames.iter().rev().fold(leaf, |e, frame| match frame {
            Frame::Loop(range) => {
                let lo = exp_size(&range.lo).expect("a rectangular nest");
                let i = indices.next().expect("an index for each loop");
                let place = tidy(add(i.clone(), size_exp(&lo)));
                substitute(vars, e, &Substitution::from_iter([(range.index, place)]))
            }
            Frame::Let(names, value) => let_(names.clone(), value.clone(), e),
            Frame::When(p) if of == Part::Values => guard(p.clone(), e),
            Frame::When(_) => e,
            Frame::Guard(p) => guard(p.clone(), e),
        });
        copy(vars, &body, &Substitution::default())
    }

    /// How many entries there are, as an expression.
    pub fn count(&self, vars: &mut Vars) -> Exp {
        let count = self.count_from(0);
        copy(vars, &count, &Substitution::default())
    }

    /// How many entries there are inside of the frames before number `at`.
    fn count_from(&self, at: usize) -> Exp {
        let Some(frame) = self.frames.get(at) else { return i64(1) };
        let inner = self.count_from(at + 1);
        match frame {
            Frame::Loop(range) => {
                let trip = sub(range.hi.clone(), range.lo.clone());
                let trip = exp_size(&trip).map_or(trip, |s| size_exp(&s));
                // What may fail is looked at only where the loop runs.
                match exp_size(&inner).is_some() && !inner.mentions(range.index) {
                    true => mul(op2(Op::Max, i64(0), trip), inner),
                    false => Exp::Sum(Box::new(range.clone()), Box::new(inner)),
                }
            }
            // Places depend on integers alone.
            Frame::Let(names, value) if inner.mentions_any(names) => let_(names.clone(), value.clone(), inner),
            Frame::Guard(p) => if_(p.clone(), inner, i64(0)),
            Frame::Let(..) | Frame::When(_) => inner,
        }
    }

    /// An array of `count` places with something computed for each entry, in order.
    pub fn scatter(&self, vars: &mut Vars, count: &Size, leaf: Exp, of: Part) -> Exp {
        let nest = self.scatter_from(vars, 0, i64(0), count, leaf, of);
        copy(vars, &nest, &Substitution::default())
    }

    fn scatter_from(&self, vars: &mut Vars, at: usize, first: Exp, count: &Size, leaf: Exp, of: Part) -> Exp {
        let Some(frame) = self.frames.get(at) else {
            return singleton(vec![(first, count.clone())], leaf, Site::default().passed());
        };
        match frame {
            Frame::Loop(range) => {
                // It stands inside of the loops that it counts, so its indices are others.
                let inner = self.count_from(at + 1);
                let inner = copy(vars, &inner, &Substitution::default());
                let offset = sub(Exp::Var(range.index), range.lo.clone());
                if !inner.mentions(range.index) {
                    let place = add(first, mul(offset, inner));
                    return Exp::Sum(Box::new(range.clone()), Box::new(self.scatter_from(vars, at + 1, place, count, leaf, of)));
                }
                // The places before each index: sums of the counts.
                let (lo, hi) = (vars.fresh("lo", Type::I64), vars.fresh("hi", Type::I64));
                let trip = Size::var(hi).sub(&Size::var(lo)).maximum(&Size::constant(0));
                let (t, total) = (vars.fresh("t", Type::I64), vars.fresh("total", Type::I64));
                let shifted = add(Exp::Var(lo), Exp::Var(t));
                let counted = copy(vars, &inner, &Substitution::from_iter([(range.index, shifted)]));
                let history = Exp::History(Box::new(History {
                    state: vec![total],
                    init: i64(0),
                    index: t,
                    size: trip.clone(),
                    body: add(Exp::Var(total), counted),
                }));
                let starts = vars.fresh("starts", Type::Array(vec![trip.add(&Size::constant(1))], Scalar::I64));
                let here = index(Exp::Var(starts), vec![sub(Exp::Var(range.index), Exp::Var(lo))], Site::default());
                let rest = self.scatter_from(vars, at + 1, add(first, here), count, leaf, of);
                let over = Range { index: range.index, lo: Exp::Var(lo), hi: Exp::Var(hi) };
                let sum = Exp::Sum(Box::new(over), Box::new(rest));
                lets(vec![(vec![lo], range.lo.clone()), (vec![hi], range.hi.clone()), (vec![starts], history)], sum)
            }
            Frame::Let(names, value) => let_(names.clone(), value.clone(), self.scatter_from(vars, at + 1, first, count, leaf, of)),
            Frame::Guard(p) => guard(p.clone(), self.scatter_from(vars, at + 1, first, count, leaf, of)),
            Frame::When(p) if of == Part::Values => guard(p.clone(), self.scatter_from(vars, at + 1, first, count, leaf, of)),
            Frame::When(_) => self.scatter_from(vars, at + 1, first, count, leaf, of),
        }
    }
}

/// What is computed for each entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Places,
    Values,
}

impl Frame {
    pub fn binds(&self) -> Vec<Var> {
        match self {
            Frame::Loop(range) => vec![range.index],
            Frame::Let(vars, _) => vars.clone(),
            Frame::Guard(_) | Frame::When(_) => vec![],
        }
    }
}
