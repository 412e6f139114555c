//! Loops that carry a state, and updates of places.
//!
//! A part of the state that is marked `sum` is one to which each step adds what it yields: `sum total` with the step `t`
//! stands for `total` with the step `total + t`. Where all of the state is summed, the loop is a sum.
//!
//! `x with [a..b] = v` stands for a loop that writes the places one by one, which changes nothing else.

use super::binders::Bounds;
use super::operators::is_additive;
use super::scope::Place;
use super::subscripts::Key;
use super::{Checker, Typed};
use crate::diagnostic::{Diagnostic, Span};
use crate::ir::build::{add, i64, if_, index, is_zero, let_, lets, size_exp, sum};
use crate::ir::traverse::{Substitution, copy};
use crate::ir::{Annotation, Exp, Iteration, Range, Site, Size, Trip, Type, Var};
use crate::syntax::ast::{self, Pattern, Subscript};

impl Checker<'_> {
    pub fn iteration(
        &mut self,
        pattern: &Pattern,
        init: &ast::Exp,
        trip: &ast::Trip,
        body: &ast::Exp,
        annotations: Vec<(Annotation, Size)>,
        hint: Option<&Type>,
    ) -> Typed {
        self.with_state(init, hint, &mut |c, hint| c.iteration_from(pattern, init, trip, body, annotations.clone(), hint))
    }

    fn iteration_from(
        &mut self,
        pattern: &Pattern,
        init: &ast::Exp,
        trip: &ast::Trip,
        body: &ast::Exp,
        annotations: Vec<(Annotation, Size)>,
        hint: Option<&Type>,
    ) -> Typed {
        let start = self.infer(init, hint);
        let start = self.additive_parts(pattern, start, init.span);
        let marked = summed_parts(pattern);
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
                if !marked.contains(&false) {
                    let terms = sum(index, lo, hi, lets(parts, found.exp));
                    return Typed::new(add(start.exp, terms), ty);
                }
                let trip = Trip::For(Range { index, lo, hi });
                let body = self.add_terms(lets(parts, found.exp), &state, &marked);
                Typed::new(Exp::Loop(Box::new(Iteration { state, init: start.exp, trip, body, annotations })), ty)
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
                let body = self.add_terms(lets(parts, found.exp), &state, &marked);
                Typed::new(Exp::Loop(Box::new(Iteration { state, init: start.exp, trip: Trip::While(goes_on), body, annotations })), ty)
            }
        }
    }

    /// The first state, if what is summed of it can be.
    fn additive_parts(&mut self, pattern: &Pattern, start: Typed, span: Span) -> Typed {
        let Some(ty) = &start.ty else { return start };
        let summed: Vec<(Span, Type)> = match (pattern, ty) {
            (Pattern::Sum(_, marked), ty) => vec![(*marked, ty.clone())],
            (Pattern::Tuple(parts, _), Type::Tuple(types)) if parts.len() == types.len() => {
                let marked = |(part, ty): (&Pattern, &Type)| match part {
                    Pattern::Sum(_, marked) => Some((*marked, ty.clone())),
                    Pattern::Name(_) | Pattern::Tuple(..) => None,
                };
                parts.iter().zip(types).filter_map(marked).collect()
            }
            _ => vec![],
        };
        let wrong = summed.iter().find(|(_, ty)| !is_additive(ty));
        let Some((marked, ty)) = wrong else { return start };
        let text = format!("`sum` adds numbers, arrays and tuples of them, but this starts as a `{}`", self.describe(ty));
        self.report(Diagnostic::error(*marked, text).label(span, "the first state"));
        Typed::poison()
    }

    /// A step that adds what it yields for the parts marked.
    fn add_terms(&mut self, step: Exp, state: &[Var], marked: &[bool]) -> Exp {
        if !marked.contains(&true) {
            return step;
        }
        let added = |v: Var, term: Exp| if is_zero(&term) { Exp::Var(v) } else { add(v, term) };
        match step {
            Exp::Let(vars, value, body) => let_(vars, *value, self.add_terms(*body, state, marked)),
            Exp::If(p, a, b) => if_(*p, self.add_terms(*a, state, marked), self.add_terms(*b, state, marked)),
            Exp::Tuple(parts) if state.len() > 1 => {
                let part = |(k, part): (usize, Exp)| if marked[k] { added(state[k], part) } else { part };
                Exp::Tuple(parts.into_iter().enumerate().map(part).collect())
            }
            step if state.len() == 1 => added(state[0], step),
            step => {
                let next: Vec<Var> = state
                    .iter()
                    .map(|v| {
                        let (name, ty) = (self.program.vars.name(*v).to_string(), self.program.vars.ty(*v).clone());
                        self.program.vars.fresh(name, ty)
                    })
                    .collect();
                let whole = Exp::Tuple(next.iter().map(|v| Exp::Var(*v)).collect());
                let_(next, step, self.add_terms(whole, state, marked))
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
        if ty.outer_axes().is_some_and(|outer| outer.len() < keys.len()) {
            return self.structured_update(found.exp, ty, keys, value, span, array.span);
        }
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
            body = Exp::Loop(Box::new(Iteration { state: vec![states[k]], init, trip, body, annotations: vec![] }));
        }
        Typed::new(body, ty)
    }
}

/// Which parts of a state are marked `sum`, in the order of its variables.
fn summed_parts(pattern: &Pattern) -> Vec<bool> {
    let marked = |part: &Pattern| matches!(part, Pattern::Sum(..));
    match pattern {
        Pattern::Tuple(parts, _) => parts.iter().map(marked).collect(),
        Pattern::Name(_) | Pattern::Sum(..) => vec![marked(pattern)],
    }
}
