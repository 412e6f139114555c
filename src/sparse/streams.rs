//! A linear expression as a sum of streams of entries.
//!
//! In: an array that is linear in a seed. Out: streams, each a nest of loops with the place in the array, the place in the
//! seed, and the derivative of the one by the other:
//!
//! | expression | streams |
//! |---|---|
//! | `for i. e` | those of `e`, in a loop over `i`, which is also the first key |
//! | `sum i. e` | those of `e`, in a loop over `i`; entries at one place are added up |
//! | `{k -> e}` | those of `e`, with the key `k` in front |
//! | `a + b`, `if p then a else b` | those of `a` and those of `b` |
//! | `[p] * e` | those of `e`: fewer, if `p` is of integers; else their values are zero where `p` is false |
//! | a number | one for each term of its support, its value the number for a seed that is one there and zero elsewhere |
//! | any other array | one over all its places |
//!
//! A number whose support names places twice (`sum j. seed[is[j]]`) is taken apart further, by its sums and products;
//! where that ends, the whole axis is its support.

use super::project::project;
use super::support::{Linear, Term};
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;

/// What stands around an entry, from the outside in.
#[derive(Clone, Debug)]
pub enum Frame {
    Loop(Range),
    Let(Vec<Var>, Exp),
    /// A condition on integers, without which there is no entry.
    Guard(Exp),
    /// A condition on floats, without which the entry is zero.
    When(Exp),
}

/// A linear step between a number that is taken apart and its parts.
#[derive(Clone, Debug)]
enum Step {
    Negate,
    Times(Exp),
    Over(Exp),
    Convert(Op),
}

/// An entry and what stands around it. The seed is still a variable in it.
#[derive(Clone, Debug)]
pub struct Stream {
    pub frames: Vec<Frame>,
    /// The place in the array; each key with whether it stands under a condition on floats.
    pub keys: Vec<(Exp, bool)>,
    pub term: Term,
    /// Terms before it in the same union: where one of them has the place, the entry is zero.
    pub before: Vec<Term>,
    pub value: Exp,
}

#[derive(Clone, Default)]
struct Around {
    frames: Vec<Frame>,
    keys: Vec<(Exp, bool)>,
    steps: Vec<Step>,
}

impl Around {
    fn with(&self, frame: Frame) -> Around {
        let mut around = self.clone();
        around.frames.push(frame);
        around
    }
    fn at(&self, key: Exp) -> Around {
        let mut around = self.clone();
        let conditional = self.frames.iter().any(|f| matches!(f, Frame::When(_)));
        around.keys.push((key, conditional));
        around
    }
    fn after(&self, step: Step) -> Around {
        let mut around = self.clone();
        around.steps.push(step);
        around
    }
}

/// The streams of the part `path` of an expression.
pub fn streams(cx: &mut Linear, e: &Exp, path: &[usize]) -> Vec<Stream> {
    let mut out = vec![];
    Streams { cx, out: &mut out }.array(e, path, vec![], Around::default());
    out
}

struct Streams<'s, 'a> {
    cx: &'s mut Linear<'a>,
    out: &'s mut Vec<Stream>,
}

impl Streams<'_, '_> {
    /// The streams of a part of an expression that is read at `keys`.
    fn array(&mut self, e: &Exp, path: &[usize], keys: Vec<Exp>, around: Around) {
        if !self.cx.part_varies(e, path) {
            return;
        }
        let mut ty = type_of_exp(self.cx.vars, e);
        for k in path {
            let Type::Tuple(parts) = ty else { panic!("sparse: a part of what is no tuple") };
            ty = parts[*k].clone();
        }
        let rank = ty.shape().len() - keys.len().min(ty.shape().len());
        match e {
            Exp::Let(vars, value, body) => {
                self.cx.define(vars, value);
                self.array(body, path, keys, around.with(Frame::Let(vars.clone(), (**value).clone())));
            }
            Exp::Tuple(parts) if !path.is_empty() => self.array(&parts[path[0]], &path[1..], keys, around),
            Exp::Index(array, own, _) if rank > 0 => self.array(array, path, [own.as_slice(), &keys].concat(), around),
            _ if rank == 0 => match self.cx.vars_of(e, path, &keys) {
                Some(number) => self.number(&number, around),
                None => self.taken_apart(e, path, &keys, around),
            },
            Exp::Var(v) if *v == self.cx.seed => {
                let (around, places) = self.over_axes(&ty, &keys, around);
                self.number(&index(Exp::Var(*v), [keys, places].concat(), Site::default()), around);
            }
            Exp::Var(v) => match self.cx.definition(*v) {
                Some((value, first)) => {
                    let own = copy(self.cx.vars, &value, &Substitution::default());
                    self.array(&own, &[&first, path].concat(), keys, around);
                }
                None => self.opaque(e, path, &keys, around),
            },
            Exp::For(i, size, body) => match keys.split_first() {
                Some((first, rest)) => {
                    let body = copy(self.cx.vars, body, &Substitution::from_iter([(*i, first.clone())]));
                    self.array(&body, path, rest.to_vec(), around);
                }
                None => {
                    let range = Range { index: *i, lo: i64(0), hi: size_exp(size) };
                    self.array(body, path, keys, around.with(Frame::Loop(range)).at(Exp::Var(*i)));
                }
            },
            Exp::Sum(range, body) if self.cx.of_integers(&range.lo) && self.cx.of_integers(&range.hi) => {
                self.array(body, path, keys, around.with(Frame::Loop((**range).clone())))
            }
            Exp::Singleton(places, value, _) => {
                let read = keys.len().min(places.len());
                let mut around = around;
                for ((place, _), key) in places.iter().zip(&keys) {
                    around = around.with(self.condition(op2(Op::Eq, place.clone(), key.clone())));
                }
                for (place, size) in &places[read..] {
                    // Floats do not decide where entries are: of a place that they decide there is all of its axis.
                    if self.cx.of_integers(place) {
                        around = around.at(place.clone());
                        continue;
                    }
                    let index = self.cx.vars.fresh("i", Type::I64);
                    let range = Range { index, lo: i64(0), hi: size_exp(size) };
                    let here = op2(Op::Eq, place.clone(), Exp::Var(index));
                    around = around.with(Frame::Loop(range)).at(Exp::Var(index)).with(Frame::When(here));
                }
                self.array(value, path, keys[read..].to_vec(), around);
            }
            Exp::Op(Op::Add, args, _) => args.iter().for_each(|a| self.array(a, path, keys.clone(), around.clone())),
            Exp::Guard(p, body) => {
                let frame = self.condition((**p).clone());
                self.array(body, path, keys, around.with(frame));
            }
            Exp::If(p, a, b) => {
                let (yes, no) = (self.condition((**p).clone()), self.condition(op1(Op::Not, (**p).clone())));
                self.array(a, path, keys.clone(), around.with(yes));
                self.array(b, path, keys, around.with(no));
            }
            Exp::Array(items) if keys.is_empty() => {
                for (k, item) in items.iter().enumerate() {
                    self.array(item, path, vec![], around.at(i64(k as i64)));
                }
            }
            Exp::Array(_)
            | Exp::Tuple(_)
            | Exp::Lit(_)
            | Exp::Op(..)
            | Exp::Partial(..)
            | Exp::Index(..)
            | Exp::Sum(..)
            | Exp::Reduce(..)
            | Exp::History(_)
            | Exp::Loop(_)
            | Exp::Update(..)
            | Exp::Call(..) => self.opaque(e, path, &keys, around),
        }
    }

    fn condition(&self, p: Exp) -> Frame {
        if self.cx.of_integers(&p) { Frame::Guard(p) } else { Frame::When(p) }
    }

    /// Loops over the axes of a type behind the keys.
    fn over_axes(&mut self, ty: &Type, keys: &[Exp], around: Around) -> (Around, Vec<Exp>) {
        let mut around = around;
        let mut places = vec![];
        for size in &ty.shape()[keys.len()..] {
            let index = self.cx.vars.fresh("i", Type::I64);
            around = around.with(Frame::Loop(Range { index, lo: i64(0), hi: size_exp(size) })).at(Exp::Var(index));
            places.push(Exp::Var(index));
        }
        (around, places)
    }

    /// An array of unknown structure: all its places.
    fn opaque(&mut self, e: &Exp, path: &[usize], keys: &[Exp], around: Around) {
        let value = match e {
            Exp::Var(_) if path.is_empty() => e.clone(),
            _ => project(self.cx.vars, e, path).unwrap_or_else(|| panic!("sparse: a part of what has none")),
        };
        let ty = type_of_exp(self.cx.vars, &value);
        let (around, array) = match value {
            Exp::Var(_) => (around, value),
            value => {
                let whole = self.cx.vars.fresh("whole", ty.clone());
                self.cx.define(&[whole], &value);
                (around.with(Frame::Let(vec![whole], value)), Exp::Var(whole))
            }
        };
        let (around, places) = self.over_axes(&ty, keys, around);
        self.number(&index(array, [keys, &places].concat(), Site::default()), around);
    }

    /// A number: one stream for each term of its support.
    fn number(&mut self, e: &Exp, around: Around) {
        let terms = self.cx.support(e, &[], &[]).and_then(|terms| self.cx.tidy(terms));
        match terms {
            Some(terms) if terms.iter().all(|t| t.solved().is_some()) => self.leaves(e, terms, around),
            Some(terms) => {
                if !self.parts(e, &around) {
                    let terms = terms.into_iter().map(|t| self.widened(t)).collect();
                    match self.cx.tidy(terms) {
                        Some(terms) => self.leaves(e, terms, around),
                        None => self.everywhere(e, around),
                    }
                }
            }
            None => self.everywhere(e, around),
        }
    }

    fn everywhere(&mut self, e: &Exp, around: Around) {
        let loops: Vec<Range> = (0..self.cx.axes.len()).map(|axis| self.cx.whole(axis)).collect();
        let keys = loops.iter().map(|r| Exp::Var(r.index)).collect();
        self.leaves(e, vec![Term { loops, keys, guards: vec![] }], around);
    }

    /// A term that names no place twice: whole axes in place of keys that do not tell their loops.
    fn widened(&mut self, mut term: Term) -> Term {
        let old = std::mem::take(&mut term.loops);
        for axis in 0..term.keys.len() {
            if old.iter().any(|r| term.keys[axis].mentions(r.index)) {
                let whole = self.cx.whole(axis);
                term.keys[axis] = Exp::Var(whole.index);
                term.loops.push(whole);
            }
        }
        term.guards.retain(|g| !old.iter().any(|r| g.mentions(r.index)));
        term
    }

    fn leaves(&mut self, e: &Exp, terms: Vec<Term>, around: Around) {
        let value = around.steps.iter().rev().fold(e.clone(), |e, step| match step {
            Step::Negate => op1(Op::Neg, e),
            Step::Times(factor) => mul(factor.clone(), e),
            Step::Over(divisor) => op2(Op::Div, e, divisor.clone()),
            Step::Convert(op) => op1(*op, e),
        });
        for (k, term) in terms.iter().enumerate() {
            let Around { frames, keys, .. } = around.clone();
            let before = terms[..k].to_vec();
            self.out.push(Stream { frames, keys, term: term.clone(), before, value: value.clone() });
        }
    }

    /// The streams of the parts of a number; says if it has parts.
    fn parts(&mut self, e: &Exp, around: &Around) -> bool {
        match e {
            Exp::Op(Op::Add, args, _) => args.iter().for_each(|a| self.part(a, around.clone())),
            Exp::Op(Op::Sub, args, _) => {
                self.part(&args[0], around.clone());
                self.part(&args[1], around.after(Step::Negate));
            }
            Exp::Op(Op::Neg, args, _) => self.part(&args[0], around.after(Step::Negate)),
            Exp::Op(Op::Mul, args, _) => match (self.cx.varies(&args[0]), self.cx.varies(&args[1])) {
                (true, false) => self.part(&args[0], around.after(Step::Times(args[1].clone()))),
                (false, true) => self.part(&args[1], around.after(Step::Times(args[0].clone()))),
                _ => return false,
            },
            Exp::Op(Op::Div, args, _) if !self.cx.varies(&args[1]) => self.part(&args[0], around.after(Step::Over(args[1].clone()))),
            Exp::Op(op @ (Op::ToF64 | Op::ToF32), args, _) => self.part(&args[0], around.after(Step::Convert(*op))),
            Exp::Sum(range, body) => self.part(body, around.with(Frame::Loop((**range).clone()))),
            Exp::Let(vars, value, body) => {
                self.cx.define(vars, value);
                self.part(body, around.with(Frame::Let(vars.clone(), (**value).clone())));
            }
            Exp::Guard(p, body) => {
                let frame = self.condition((**p).clone());
                self.part(body, around.with(frame));
            }
            Exp::If(p, a, b) => {
                let (yes, no) = (self.condition((**p).clone()), self.condition(op1(Op::Not, (**p).clone())));
                self.part(a, around.with(yes));
                self.part(b, around.with(no));
            }
            Exp::Var(v) => match self.cx.definition(*v) {
                Some((value, path)) => match project(self.cx.vars, &value, &path) {
                    Some(value) => self.part(&value, around.clone()),
                    None => return false,
                },
                None => return false,
            },
            // An element of an array that is generated is an expression of its own.
            Exp::Index(array, keys, _) => {
                let Exp::Var(v) = **array else { return false };
                let Some((value, path)) = self.cx.definition(v) else { return false };
                let generated = project(self.cx.vars, &value, &path);
                match generated.and_then(|e| self.element(e, keys, around.clone())) {
                    Some((element, around)) => self.part(&element, around),
                    None => return false,
                }
            }
            Exp::Lit(_)
            | Exp::Op(..)
            | Exp::Partial(..)
            | Exp::Singleton(..)
            | Exp::For(..)
            | Exp::Reduce(..)
            | Exp::History(_)
            | Exp::Loop(_)
            | Exp::Update(..)
            | Exp::Tuple(_)
            | Exp::Array(_)
            | Exp::Call(..) => return false,
        }
        true
    }

    fn part(&mut self, e: &Exp, around: Around) {
        if self.cx.varies(e) {
            self.number(e, around);
        }
    }

    /// What stands at the keys of nested `for`s.
    fn element(&mut self, e: Exp, keys: &[Exp], around: Around) -> Option<(Exp, Around)> {
        match (e, keys.split_first()) {
            (e, None) => Some((e, around)),
            (Exp::For(i, _, body), Some((first, rest))) => {
                let body = copy(self.cx.vars, &body, &Substitution::from_iter([(i, first.clone())]));
                self.element(body, rest, around)
            }
            (Exp::Let(vars, value, body), Some(_)) => {
                self.cx.define(&vars, &value);
                self.element(*body, keys, around.with(Frame::Let(vars, *value)))
            }
            (_, Some(_)) => None,
        }
    }

    /// A part of a tuple that is a number, which is no variable yet.
    fn taken_apart(&mut self, e: &Exp, path: &[usize], keys: &[Exp], around: Around) {
        let value = project(self.cx.vars, e, path).unwrap_or_else(|| panic!("sparse: a part of what has none"));
        self.number(&index(value, keys.to_vec(), Site::default()), around);
    }
}

impl Linear<'_> {
    /// An expression for a part that is read at keys, where that needs no copy.
    fn vars_of(&self, e: &Exp, path: &[usize], keys: &[Exp]) -> Option<Exp> {
        path.is_empty().then(|| index(e.clone(), keys.to_vec(), Site::default()))
    }
}
