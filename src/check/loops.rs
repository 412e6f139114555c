//! Loops that carry a state, and updates of places.
//!
//! `x with [a..b] = v` stands for a loop that writes the places one by one, which changes nothing else.

use super::binders::Bounds;
use super::scope::Place;
use super::subscripts::Key;
use super::{Checker, Typed};
use crate::diagnostic::{Diagnostic, Span};
use crate::ir::build::{add, i64, index, lets, size_exp};
use crate::ir::traverse::{Substitution, copy};
use crate::ir::{Exp, Iteration, Range, Site, Size, Trip, Type};
use crate::syntax::ast::{self, Pattern, Subscript};

impl Checker<'_> {
    pub fn iteration(&mut self, pattern: &Pattern, init: &ast::Exp, trip: &ast::Trip, body: &ast::Exp, hint: Option<&Type>) -> Typed {
        let start = self.infer(init, hint);
        let mut state = None;
        let step = |c: &mut Self, ty: Option<&Type>| {
            let found = c.infer(body, ty);
            let Some(want) = ty else { return found };
            let agrees = c.require(&found, want, body.span, |c, d| {
                let text = format!("the first state has type `{}`", c.describe(want));
                d.label(init.span, text).note("every state of a `loop` has one type")
            });
            if agrees { found } else { Typed::poison() }
        };
        match trip {
            ast::Trip::For(binding) => {
                let (index, bounds, found) = self.indexed("loop", binding, body.span, |c| {
                    state = c.bind_pattern(pattern, start.ty.as_ref(), init.span);
                    step(c, start.ty.as_ref())
                });
                let (Some(ty), Some(_), Some((state, parts)), Bounds::Explicit(lo, hi)) = (start.ty, found.ty, state, bounds) else {
                    return Typed::poison();
                };
                let trip = Trip::For(Range { index, lo, hi });
                let body = lets(parts, found.exp);
                Typed::new(Exp::Loop(Box::new(Iteration { state, init: start.exp, trip, body })), ty)
            }
            ast::Trip::While(condition) => {
                let names = self.scope.len();
                let bound = self.bind_pattern(pattern, start.ty.as_ref(), init.span);
                let goes_on = self.conditional(|c| c.scoped(&Place::Branch, condition.span, |c| c.condition(condition)));
                let found = self.conditional(|c| c.scoped(&Place::Branch, body.span, |c| step(c, start.ty.as_ref())));
                self.scope.truncate(names);
                let (Some(ty), Some(_), Some(_), Some((state, parts))) = (start.ty, found.ty, goes_on.ty, bound) else {
                    return Typed::poison();
                };
                // The parts of the state are bound in the condition and in the step, each for itself.
                let goes_on = if parts.is_empty() {
                    goes_on.exp
                } else {
                    copy(&mut self.program.vars, &lets(parts.clone(), goes_on.exp), &Substitution::default())
                };
                let body = lets(parts, found.exp);
                Typed::new(Exp::Loop(Box::new(Iteration { state, init: start.exp, trip: Trip::While(goes_on), body })), ty)
            }
        }
    }

    pub fn update(&mut self, array: &ast::Exp, keys: &[Subscript], value: &ast::Exp, span: Span, hint: Option<&Type>) -> Typed {
        let found = self.infer(array, hint);
        let checked = if keys.is_empty() { None } else { self.keys(array, &found, keys, span) };
        let (Some(keys), Some(ty)) = (checked, found.ty) else {
            self.infer(value, None);
            return Typed::poison();
        };
        if matches!(ty, Type::Tuple(_)) {
            let text = format!("`with` writes into one array, but this has type `{}`", self.describe(&ty));
            self.report(Diagnostic::error(array.span, text).note("take the tuple apart and update each array"));
            return Typed::poison();
        }
        let rest = ty.without_axes(keys.len()).unwrap_or(Type::tuple(vec![]));
        let parts: Vec<Size> = keys.iter().filter_map(|k| if let Key::Part(_, size) = k { Some(size.clone()) } else { None }).collect();
        let want = parts.iter().rev().fold(rest, |ty, size| ty.with_axis(size));
        let value = self.check(value, &want, |c, d| d.label(array.span, format!("a place of `{}` is written", c.describe(&ty))));
        if value.ty.is_none() {
            return Typed::poison();
        }
        if parts.is_empty() {
            let keys = keys.into_iter().map(|k| if let Key::At(e) = k { e } else { i64(0) }).collect();
            return Typed::new(Exp::Update(Box::new(found.exp), keys, Box::new(value.exp), Site::new(span)), ty);
        }
        let value = self.shared("v", value.exp, &want);
        let mut at = vec![];
        let mut loops = vec![];
        for key in keys {
            match key {
                Key::At(e) => at.push(self.shared("k", e, &Type::I64)),
                Key::Part(from, size) => {
                    let t = self.program.vars.fresh("t", Type::I64);
                    at.push(if from == Size::default() { Exp::Var(t) } else { add(size_exp(&from), t) });
                    loops.push((t, size));
                }
            }
        }
        let states: Vec<_> = loops.iter().map(|_| self.program.vars.fresh("x", ty.clone())).collect();
        let written = index(value, loops.iter().map(|(t, _)| Exp::Var(*t)).collect(), Site::new(span));
        let innermost = Exp::Var(states[states.len() - 1]);
        let mut body = Exp::Update(Box::new(innermost), at, Box::new(written), Site::new(span));
        for (k, (t, size)) in loops.into_iter().enumerate().rev() {
            let init = if k == 0 { found.exp.clone() } else { Exp::Var(states[k - 1]) };
            let trip = Trip::For(Range { index: t, lo: i64(0), hi: size_exp(&size) });
            body = Exp::Loop(Box::new(Iteration { state: vec![states[k]], init, trip, body }));
        }
        Typed::new(body, ty)
    }
}
