//! A linear expression for a seed that is one at one place and zero elsewhere.
//!
//! Reads of the seed become brackets (`seed[k]` is `[k == place] * 1.0`), those that are known not to hold are zero, and
//! zeros are followed through all that is linear: what depends on them alone is left out.

use super::project::{project, select};
use super::support::Linear;
use crate::ir::build::*;
use crate::ir::facts::Facts;
use crate::ir::*;
use rustc_hash::FxHashSet;

pub struct OneHot<'s, 'a> {
    pub cx: &'s mut Linear<'a>,
    pub facts: Facts,
    pub place: Vec<Exp>,
    /// The indices around.
    pub known: Vec<Var>,
    /// Variables that are zero for this seed.
    zero: FxHashSet<Var>,
}

impl<'s, 'a> OneHot<'s, 'a> {
    pub fn new(cx: &'s mut Linear<'a>, facts: Facts, known: Vec<Var>, place: Vec<Exp>) -> OneHot<'s, 'a> {
        OneHot { cx, facts, place, known, zero: FxHashSet::default() }
    }

    /// `let vars = value`, as bindings: none for what is zero.
    pub fn bind(&mut self, vars: &[Var], value: &Exp) -> Vec<(Vec<Var>, Exp)> {
        if !vars.iter().any(|v| self.cx.is_varying(*v)) {
            return vec![(vars.to_vec(), value.clone())];
        }
        if let [v] = vars {
            return match self.exp(value) {
                Some(value) => vec![(vars.to_vec(), value)],
                None => {
                    self.zero.insert(*v);
                    vec![]
                }
            };
        }
        // The parts of these are computed together.
        if let Exp::Loop(_) | Exp::History(_) | Exp::Var(_) | Exp::Singleton(..) | Exp::Call(..) = value {
            return vec![(vars.to_vec(), self.or_zero(value))];
        }
        let mut out = vec![];
        let (varying, fixed): (Vec<usize>, Vec<usize>) = (0..vars.len()).partition(|k| self.cx.is_varying(vars[*k]));
        let varying = match select(self.cx.vars, value, &fixed) {
            _ if fixed.is_empty() => varying,
            Some(together) => {
                out.push((fixed.iter().map(|k| vars[*k]).collect(), together));
                varying
            }
            None => (0..vars.len()).collect(),
        };
        for k in varying {
            let v = &vars[k];
            let Some(part) = project(self.cx.vars, value, &[k]) else {
                return vec![(vars.to_vec(), self.or_zero(value))];
            };
            // Its bound variables are new, so what is known of them is found again.
            self.cx.part_varies(&part, &[]);
            match self.exp(&part) {
                Some(part) => out.push((vec![*v], part)),
                None => {
                    self.zero.insert(*v);
                }
            }
        }
        out
    }

    /// Whether two integers are the same, where that is known.
    fn same(&self, a: &Exp, b: &Exp) -> Option<bool> {
        if a == b {
            return Some(true);
        }
        let difference = exp_size(a)?.sub(&exp_size(b)?);
        if let Some(c) = difference.as_constant() {
            return Some(c == 0);
        }
        // Of variables that are bound further inside nothing is known, so that no proof is tried.
        let mut vars = vec![];
        difference.variables(&mut vars);
        let known = vars.iter().all(|v| self.known.contains(v));
        known.then(|| self.facts.decide(self.cx.vars, &op2(Op::Eq, a.clone(), b.clone()))).flatten()
    }

    fn or_zero(&mut self, e: &Exp) -> Exp {
        match self.exp(e) {
            Some(e) => e,
            None => {
                let ty = type_of_exp(self.cx.vars, e);
                zero(self.cx.vars, &ty)
            }
        }
    }

    /// The expression, or `None` if it is zero.
    pub fn exp(&mut self, e: &Exp) -> Option<Exp> {
        if !self.cx.varies(e) {
            return Some(e.clone());
        }
        match e {
            Exp::Var(v) if *v == self.cx.seed => {
                let scalar = self.cx.vars.ty(*v).scalar().expect("a seed is of numbers");
                let places = self.place.iter().cloned().zip(self.cx.axes.iter().cloned()).collect();
                Some(singleton(places, float(scalar, 1.0), Site::default()))
            }
            Exp::Var(v) => (!self.zero.contains(v) && !self.cx.zeros.contains(v)).then(|| e.clone()),
            Exp::Index(array, keys, _) if **array == Exp::Var(self.cx.seed) && keys.len() == self.place.len() => {
                let scalar = self.cx.vars.ty(self.cx.seed).scalar().expect("a seed is of numbers");
                let mut value = float(scalar, 1.0);
                for (key, place) in keys.iter().zip(&self.place).rev() {
                    match self.same(key, place) {
                        Some(true) => {}
                        Some(false) => return None,
                        None => value = guard(op2(Op::Eq, key.clone(), place.clone()), value),
                    }
                }
                Some(value)
            }
            Exp::Index(array, keys, site) => Some(index(self.exp(array)?, keys.clone(), *site)),
            Exp::Op(Op::Add, args, site) => match (self.exp(&args[0]), self.exp(&args[1])) {
                (Some(a), Some(b)) => Some(Exp::Op(Op::Add, vec![a, b], *site)),
                (a, b) => a.or(b),
            },
            Exp::Op(Op::Sub, args, site) => match (self.exp(&args[0]), self.exp(&args[1])) {
                (Some(a), Some(b)) => Some(Exp::Op(Op::Sub, vec![a, b], *site)),
                (None, Some(b)) => Some(op1(Op::Neg, b)),
                (a, None) => a,
            },
            Exp::Op(op @ (Op::Mul | Op::Div | Op::Neg | Op::ToF64 | Op::ToF32), args, site) => {
                let args = args.iter().map(|a| self.exp(a)).collect::<Option<_>>()?;
                Some(Exp::Op(*op, args, *site))
            }
            Exp::Sum(range, body) => Some(Exp::Sum(range.clone(), Box::new(self.exp(body)?))),
            Exp::For(i, size, body) => Some(for_(*i, size.clone(), self.exp(body)?)),
            Exp::Guard(p, body) => Some(guard((**p).clone(), self.exp(body)?)),
            Exp::If(p, a, b) => match (self.exp(a), self.exp(b)) {
                (Some(a), Some(b)) => Some(if_((**p).clone(), a, b)),
                (Some(a), None) => Some(guard((**p).clone(), a)),
                (None, Some(b)) => Some(guard(op1(Op::Not, (**p).clone()), b)),
                (None, None) => None,
            },
            Exp::Let(vars, value, body) => {
                self.cx.define(vars, value);
                let bindings = self.bind(vars, value);
                Some(lets(bindings, self.exp(body)?))
            }
            Exp::Singleton(places, value, site) => Some(singleton(places.clone(), self.exp(value)?, *site)),
            Exp::Tuple(parts) => {
                let found: Vec<Option<Exp>> = parts.iter().map(|p| self.exp(p)).collect();
                if found.iter().all(Option::is_none) {
                    return None;
                }
                let zeros = parts.iter().map(|p| type_of_exp(self.cx.vars, p)).collect::<Vec<_>>();
                let vars = &mut self.cx.vars;
                Some(Exp::Tuple(found.into_iter().zip(zeros).map(|(e, ty)| e.unwrap_or_else(|| zero(vars, &ty))).collect()))
            }
            Exp::Array(items) => {
                let found: Vec<Option<Exp>> = items.iter().map(|p| self.exp(p)).collect();
                if found.iter().all(Option::is_none) {
                    return None;
                }
                let ty = type_of_exp(self.cx.vars, &items[0]);
                let vars = &mut self.cx.vars;
                Some(Exp::Array(found.into_iter().map(|e| e.unwrap_or_else(|| zero(vars, &ty))).collect()))
            }
            Exp::Lit(_)
            | Exp::Op(..)
            | Exp::Partial(..)
            | Exp::Reduce(..)
            | Exp::History(_)
            | Exp::Loop(_)
            | Exp::Update(..)
            | Exp::Call(..) => Some(e.clone().map_children(&mut |c| self.or_zero(&c))),
        }
    }
}
