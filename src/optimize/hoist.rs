//! Loop-invariant code motion: what does not depend on a loop is computed once before it.
//!
//! Only what costs operations moves, and only what cannot fail: a loop that never runs must not gain an error.
//! Under a guard or in a branch that the loop does not decide, values move with the condition, `[p] * e`; where the loop decides,
//! what costs a call or more and has no loop in it moves as if it were needed: it is computed once. Not so where the condition
//! holds for one index: that is once as well. Nothing moves before derivatives are taken.

use super::Context;
use super::simplify::arrays::total;
use super::simplify::lets::has_loop;
use super::tabulate::{CALL, weight};
use crate::differentiate::scope::costs_nothing;
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy, map_children_with_facts};
use crate::ir::*;
use rustc_hash::FxHashSet;

pub fn hoist(cx: &mut Context, exp: Exp) -> Exp {
    let mut facts = std::mem::take(&mut cx.facts);
    let exp = map_children_with_facts(exp, &mut facts, &mut |e, facts| {
        std::mem::swap(&mut cx.facts, facts);
        let e = hoist(cx, e);
        std::mem::swap(&mut cx.facts, facts);
        e
    });
    cx.facts = facts;
    let mut moved = vec![];
    let mut bound = FxHashSet::default();
    let exp = match exp {
        Exp::For(i, size, body) => {
            bound.insert(i);
            let body = Invariant { cx, bound: &mut bound, moved: &mut moved, under: Under::default() }.take(*body);
            for_(i, size, body)
        }
        Exp::Sum(range, body) => {
            bound.insert(range.index);
            let body = Invariant { cx, bound: &mut bound, moved: &mut moved, under: Under::default() }.take(*body);
            Exp::Sum(range, Box::new(body))
        }
        Exp::Reduce(kind, range, body, site) => {
            bound.insert(range.index);
            let body = Invariant { cx, bound: &mut bound, moved: &mut moved, under: Under::default() }.take(*body);
            Exp::Reduce(kind, range, Box::new(body), site)
        }
        Exp::History(mut h) => {
            bound.insert(h.index);
            bound.extend(h.state.iter().copied());
            h.body = Invariant { cx, bound: &mut bound, moved: &mut moved, under: Under::default() }.take(h.body);
            Exp::History(h)
        }
        Exp::Loop(mut l) => {
            if let Trip::For(range) = &l.trip {
                bound.insert(range.index);
            }
            bound.extend(l.state.iter().copied());
            l.body = Invariant { cx, bound: &mut bound, moved: &mut moved, under: Under::default() }.take(l.body);
            Exp::Loop(l)
        }
        exp => exp,
    };
    cx.changed |= !moved.is_empty();
    lets(moved, exp)
}

/// The conditions around a value that the loop does not decide, and whether there are others.
#[derive(Clone, Default)]
struct Under {
    conditions: Vec<Exp>,
    maybe: bool,
}

struct Invariant<'a, 'c> {
    cx: &'a mut Context<'c>,
    /// What is bound by the loop and in it.
    bound: &'a mut FxHashSet<Var>,
    moved: &'a mut Vec<(Vec<Var>, Exp)>,
    under: Under,
}

impl Invariant<'_, '_> {
    /// Whether an expression may and should be computed before the loop.
    fn moves(&self, exp: &Exp) -> bool {
        !matches!(exp, Exp::Var(_) | Exp::Lit(_) | Exp::Tuple(_))
            && !self.varies(exp)
            && !costs_nothing(self.cx.vars, exp)
            && !super::simplify::arrays::has_singleton(exp)
            && (!self.under.maybe || weight(self.cx, exp) >= CALL && !has_loop(exp))
            && total(self.cx, exp)
    }

    fn varies(&self, exp: &Exp) -> bool {
        exp.free_vars().iter().any(|v| self.bound.contains(v))
    }

    fn moved(&mut self, vars: Vec<Var>, value: Exp) {
        let conditions: Vec<Exp> = self.under.conditions.iter().map(|p| copy(self.cx.vars, p, &Substitution::default())).collect();
        let value = conditions.into_iter().rev().fold(value, |e, p| guard(p, e));
        self.moved.push((vars, value));
    }

    /// Replaces maximal invariant subexpressions on the strict path by variables; a `let` moves as it is.
    fn take(&mut self, exp: Exp) -> Exp {
        if !matches!(exp, Exp::Let(..)) && self.moves(&exp) {
            let ty = type_of_exp(self.cx.vars, &exp);
            if !matches!(ty, Type::Tuple(_)) {
                let v = self.cx.vars.fresh("t", ty);
                self.moved(vec![v], exp);
                return Exp::Var(v);
            }
        }
        match exp {
            Exp::Guard(p, e) => {
                let p = self.take(*p);
                let e = self.branch(&p, *e);
                guard(p, e)
            }
            Exp::If(p, a, b) => {
                let p = self.take(*p);
                let (a, b) = (self.branch(&p, *a), self.branch(&op1(Op::Not, p.clone()), *b));
                if_(p, a, b)
            }
            Exp::Let(vars, value, body) => {
                if self.moves(&value) {
                    self.moved(vars, *value);
                    return self.take(*body);
                }
                let value = self.take(*value);
                self.bound.extend(vars.iter().copied());
                let body = self.take(*body);
                let_(vars, value, body)
            }
            Exp::For(i, size, body) => {
                self.bound.insert(i);
                let body = self.take(*body);
                for_(i, size, body)
            }
            Exp::Sum(range, body) => {
                self.bound.insert(range.index);
                let body = self.take(*body);
                Exp::Sum(range, Box::new(body))
            }
            Exp::Reduce(kind, range, body, site) => {
                self.bound.insert(range.index);
                let body = self.take(*body);
                Exp::Reduce(kind, range, Box::new(body), site)
            }
            Exp::History(mut h) => {
                h.init = self.take(h.init);
                self.bound.insert(h.index);
                self.bound.extend(h.state.iter().copied());
                h.body = self.take(h.body);
                Exp::History(h)
            }
            Exp::Loop(mut l) => {
                l.init = self.take(l.init);
                if let Trip::For(range) = &l.trip {
                    self.bound.insert(range.index);
                }
                self.bound.extend(l.state.iter().copied());
                l.body = self.take(l.body);
                Exp::Loop(l)
            }
            exp => exp.map_children(&mut |e| self.take(e)),
        }
    }

    /// Whether a condition holds for one index, or as good as one.
    fn holds_once(&self, p: &Exp) -> bool {
        match p {
            Exp::Op(Op::And, args, _) => args.iter().any(|a| self.holds_once(a)),
            Exp::Op(Op::Eq, args, _) => {
                self.varies(p) && args.iter().all(|a| scalar_of(self.cx.vars, a) == Some(Scalar::I64) && exp_size(a).is_some())
            }
            _ => false,
        }
    }

    /// What is evaluated where a condition holds.
    fn branch(&mut self, p: &Exp, e: Exp) -> Exp {
        // A derivative that is taken later stands under the condition, too: where a value is singular it would be infinite, and
        // infinite times nothing.
        if self.cx.differentiating || self.holds_once(p) {
            return e;
        }
        let before = self.under.clone();
        // A condition that costs something was given a name.
        if matches!(p, Exp::Lit(_)) || self.varies(p) || !total(self.cx, p) {
            self.under.maybe = true;
        } else {
            self.under.conditions.push(p.clone());
        }
        let e = self.take(e);
        self.under = before;
        e
    }
}
