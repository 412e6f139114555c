//! `map`, `reduce`, `scan`, `reduce_by_index` and `scatter`, as binders and loops.
//!
//! * `map(f, xs, ys)` is `for i. f(xs[i], ys[i])`
//! * `reduce(op, ne, xs)` is `sum i. xs[i]` or another reduction where `op` is that of one; else a loop over the elements
//! * `scan(op, ne, xs)` is `let s = history a = ne for i in 0..n do op(a, xs[i]); for i. s[i + 1]`
//! * `reduce_by_index(op, ne, k, is, vs)` with `+` is `sum i. [0 <= is[i] < k] * {is[i] -> vs[i]}`; with another operator it is
//!   a loop that updates the bins, as is `scatter(dest, is, vs)`
//!
//! The elements of a tuple of arrays are tuples, those of an array with several axes its rows.

use super::calls::Arg;
use super::functions::FunctionValue;
use super::hints::needs_hint;
use super::messages::brief;
use super::operators::{index_name, is_additive};
use super::scope::Place;
use super::subscripts::{UNKNOWN, leading_axes};
use super::{Checker, Typed};
use crate::diagnostic::{Diagnostic, Span};
use crate::ir::build::{add, convert, for_, guard, i64, if_, index, is_zero, let_, op2, singleton, size_exp, sum, tuple};
use crate::ir::traverse::{Substitution, copy};
use crate::ir::{Exp, History, Iteration, Op, Range, Reduction, Scalar, Site, Size, Trip, Type, Var};
use crate::syntax::ast;

/// How a combinator is called.
fn usage(name: &str) -> (&'static str, usize) {
    match name {
        "map" => ("map(f, xs)", 2),
        "reduce" => ("reduce(op, neutral, values)", 3),
        "scan" => ("scan(op, neutral, values)", 3),
        "reduce_by_index" => ("reduce_by_index(op, neutral, size, indices, values)", 5),
        _ => ("scatter(start, indices, values)", 3),
    }
}

/// An array argument: what costs nothing to repeat, the type of its elements, how many there are, where it stands.
struct Elements {
    array: Exp,
    element: Type,
    size: Size,
    span: Span,
}

impl Elements {
    fn at(&self, i: impl Into<Exp>) -> Exp {
        index(self.array.clone(), vec![i.into()], Site::new(self.span))
    }

    /// An element that is a place of an array.
    fn place(&self, i: impl Into<Exp>) -> Exp {
        convert(self.at(i), self.element.scalar().unwrap_or(Scalar::I64), Scalar::I64)
    }
}

/// An operator on two variables.
struct Step {
    left: Vec<Var>,
    right: Var,
    /// In the scope of `right`.
    body: Exp,
}

impl<'a> Checker<'a> {
    pub fn combinator(&mut self, name: &str, args: &[&ast::Exp], span: Span, hint: Option<&Type>) -> Typed {
        let (usage, count) = usage(name);
        if args.len() < count || (args.len() > count && name != "map") {
            let diagnostic = self.wrong_count(name, count, args.len(), span);
            self.report(diagnostic.note(format!("it is called as `{usage}`")));
            return self.skip_args(&args.iter().map(|e| Arg::Written(e)).collect::<Vec<_>>());
        }
        if name == "scatter" {
            return self.scatter(args[0], args[1], args[2], span, hint);
        }
        if !self.is_function(args[0]) {
            let found = self.infer(args[0], None);
            if let Some(ty) = found.ty {
                let text = format!("`{name}` takes a function first, but this has type `{}`", self.describe(&ty));
                self.report(
                    Diagnostic::error(args[0].span, text)
                        .note(format!("it is called as `{usage}`, where a function is a lambda, an operator `(+)` or a name")),
                );
            }
            return self.skip_args(&args[1..].iter().map(|e| Arg::Written(e)).collect::<Vec<_>>());
        }
        let Some(f) = self.function_value(args[0]) else {
            return self.skip_args(&args[1..].iter().map(|e| Arg::Written(e)).collect::<Vec<_>>());
        };
        match name {
            "map" => self.map(&f, args, hint),
            "reduce" => self.reduce(&f, args, hint),
            "scan" => self.scan(&f, args, hint),
            _ => self.reduce_by_index(&f, args, span, hint),
        }
    }

    /// An argument that is an array, or a tuple of arrays with one size in front.
    fn elements(&mut self, exp: &ast::Exp, hint: Option<&Type>) -> Option<Elements> {
        let found = self.infer(exp, hint);
        let ty = found.ty?;
        match leading_axes(&ty, 1) {
            Ok(axes) => {
                let element = ty.without_axes(1)?;
                let array = self.shared("xs", found.exp, &ty);
                Some(Elements { array, element, size: axes[0].axis(), span: exp.span })
            }
            Err(_) => {
                let text = format!("an array is wanted here, but this has type `{}`", self.describe(&ty));
                let diagnostic = Diagnostic::error(exp.span, text);
                self.report(match &ty {
                    Type::Tuple(_) => diagnostic.note("arrays that are gone through together have one size in front"),
                    Type::Scalar(_) | Type::Array(..) => diagnostic,
                });
                None
            }
        }
    }

    /// Whether two arrays have as many elements.
    fn same_count(&mut self, a: &Elements, b: &Elements) -> bool {
        if self.same_size(&a.size, &b.size) {
            return true;
        }
        let (n, m) = (self.describe_size(&a.size), self.describe_size(&b.size));
        self.report(
            Diagnostic::error(b.span, format!("this has `{m}` elements, but `{n}` are wanted"))
                .here(format!("`{m}` elements"))
                .label(a.span, format!("`{n}` elements"))
                .note("arrays that are gone through together have one size"),
        );
        false
    }

    fn map(&mut self, f: &FunctionValue, args: &[&ast::Exp], hint: Option<&Type>) -> Typed {
        let arrays: Vec<Option<Elements>> = args[1..].iter().map(|e| self.elements(e, None)).collect();
        let Some(arrays) = arrays.into_iter().collect::<Option<Vec<_>>>() else { return Typed::poison() };
        if !arrays[1..].iter().all(|other| self.same_count(&arrays[0], other)) {
            return Typed::poison();
        }
        let size = arrays[0].size.clone();
        let span = arrays[1..].iter().fold(arrays[0].span, |span, a| span.to(a.span));
        let i = self.program.vars.fresh("i", Type::I64);
        let result = hint.and_then(|h| if matches!(h, Type::Scalar(_)) { None } else { h.without_axes(1) });
        let elements = arrays.iter().map(|a| Arg::Found(Typed::new(a.at(i), a.element.clone()), a.span)).collect();
        let name = brief(args[0]);
        let place = Place::Applied("map", i);
        let found = self.scoped(&place, args[0].span, |c| c.apply(f, &name, elements, span, result.as_ref()));
        match found.ty {
            Some(ty) => Typed::new(for_(i, size.clone(), found.exp), ty.with_axis(&size)),
            None => Typed::poison(),
        }
    }

    /// The neutral element and the array of `reduce` and `scan`, which agree.
    fn folded(&mut self, ne: &ast::Exp, xs: &ast::Exp, hint: Option<&Type>) -> Option<(Exp, Elements)> {
        let (ne, elements, place) = if needs_hint(xs) && !needs_hint(ne) {
            let first = self.infer(ne, hint);
            let wanted = first.ty.as_ref().map(|ty| ty.with_axis(&Size::var(UNKNOWN)));
            (first, self.elements(xs, wanted.as_ref())?, ne.span)
        } else {
            let wanted = hint.map(|h| h.with_axis(&Size::var(UNKNOWN)));
            let elements = self.elements(xs, wanted.as_ref())?;
            let element = elements.element.clone();
            (self.infer(ne, Some(&element)), elements, ne.span)
        };
        let agrees = self.require(&ne, &elements.element, place, |c, d| {
            d.label(elements.span, format!("the elements have type `{}`", c.describe(&elements.element)))
                .note("the neutral element has the type of the elements")
        });
        (agrees && ne.ty.is_some()).then_some((ne.exp, elements))
    }

    /// The operator on a state and an element. `right` is bound around the body by who uses it.
    fn step(&mut self, f: &FunctionValue, name: &ast::Exp, place: &Place<'_>, element: &Type, span: Span) -> Option<Step> {
        let fresh = |c: &mut Self, k: usize, ty: &Type| {
            let name = c.parameter_name(f, k).unwrap_or_else(|| ["a", "b"][k].to_string());
            c.program.vars.fresh(name, ty.clone())
        };
        let left: Vec<Var> = match element {
            Type::Tuple(parts) if parts.len() != 1 => parts
                .iter()
                .enumerate()
                .map(|(k, t)| {
                    let name = self.part_name(f, 0, k).unwrap_or_else(|| "a".to_string());
                    self.program.vars.fresh(name, t.clone())
                })
                .collect(),
            _ => vec![fresh(self, 0, element)],
        };
        let right = fresh(self, 1, element);
        let args = [tuple(left.iter().map(|v| Exp::Var(*v)).collect()), Exp::Var(right)];
        let args = args.into_iter().map(|e| Arg::Found(Typed::new(e, element.clone()), span)).collect();
        let found = self.scoped(place, name.span, |c| c.apply(f, &brief(name), args, span, Some(element)));
        let agrees = self.require(&found, element, name.span, |c, d| {
            d.label(span, format!("the elements have type `{}`", c.describe(element)))
                .note("the operator takes two elements and gives one; to carry a state of another type, write a `loop`")
        });
        (agrees && found.ty.is_some()).then_some(Step { left, right, body: found.exp })
    }

    fn reduce(&mut self, f: &FunctionValue, args: &[&ast::Exp], hint: Option<&Type>) -> Typed {
        let Some((ne, xs)) = self.folded(args[1], args[2], hint) else { return Typed::poison() };
        let i = self.program.vars.fresh("i", Type::I64);
        let Some(step) = self.step(f, args[0], &Place::Applied("reduce", i), &xs.element, xs.span) else { return Typed::poison() };
        let end = size_exp(&xs.size);
        let ty = xs.element.clone();
        let Some(op) = operation(&step) else {
            let body = let_(vec![step.right], xs.at(i), step.body);
            let trip = Trip::For(Range { index: i, lo: i64(0), hi: end });
            return Typed::new(Exp::Loop(Box::new(Iteration { state: step.left, init: ne, trip, body, annotations: vec![] })), ty);
        };
        let range = Range { index: i, lo: i64(0), hi: end };
        let body = xs.at(i);
        let (all, neutral) = match op {
            Op::Add => (Exp::Sum(Box::new(range), Box::new(body)), is_zero(&ne)),
            op => {
                let kind = reduction(op);
                let neutral = ty.scalar().map(|s| Exp::Lit(kind.neutral(s)));
                (Exp::Reduce(kind, Box::new(range), Box::new(body), Site::default()), neutral.as_ref() == Some(&ne))
            }
        };
        Typed::new(if neutral { all } else { op2(op, ne, all) }, ty)
    }

    fn scan(&mut self, f: &FunctionValue, args: &[&ast::Exp], hint: Option<&Type>) -> Typed {
        let hint = hint.and_then(|h| if matches!(h, Type::Scalar(_)) { None } else { h.without_axes(1) });
        let Some((ne, xs)) = self.folded(args[1], args[2], hint.as_ref()) else { return Typed::poison() };
        let i = self.program.vars.fresh("i", Type::I64);
        let Some(step) = self.step(f, args[0], &Place::Applied("scan", i), &xs.element, xs.span) else { return Typed::poison() };
        let body = let_(vec![step.right], xs.at(i), step.body);
        // An axis of negative size is empty, but a history has a first state in any case.
        let size =
            if xs.size.as_var().is_some() || xs.size.as_constant().is_some() { xs.size.clone() } else { xs.size.maximum(&Size::default()) };
        let states = xs.element.with_axis(&size.add(&Size::constant(1)));
        let history = Exp::History(Box::new(History { state: step.left, init: ne, index: i, size: size.clone(), body }));
        let s = self.program.vars.fresh("s", states);
        let k = self.program.vars.fresh("i", Type::I64);
        let later = for_(k, size, index(s, vec![add(k, i64(1))], Site::default()));
        Typed::new(let_(vec![s], history, later), xs.element.with_axis(&xs.size))
    }

    /// The place to write and the value there: `is` and `vs`, which agree.
    fn places(&mut self, is: &ast::Exp, vs: &ast::Exp, hint: Option<&Type>) -> Option<(Elements, Elements)> {
        let is = self.elements(is, Some(&Type::I64.with_axis(&Size::var(UNKNOWN))));
        let wanted = hint.map(|h| h.with_axis(&Size::var(UNKNOWN)));
        let vs = self.elements(vs, wanted.as_ref());
        let (is, vs) = (is?, vs?);
        if !matches!(is.element, Type::Scalar(s) if s.is_integer()) {
            let text = format!("these are places, which are of type `i64` or `i32`, but they have type `{}`", self.describe(&is.element));
            self.report(Diagnostic::error(is.span, text));
            return None;
        }
        self.same_count(&is, &vs).then_some((is, vs))
    }

    fn reduce_by_index(&mut self, f: &FunctionValue, args: &[&ast::Exp], span: Span, hint: Option<&Type>) -> Typed {
        let bins = if needs_hint(args[2]) && super::hints::is_number(args[2]) && !matches!(args[2].kind, ast::ExpKind::Bracket(_)) {
            self.infer(args[2], Some(&Type::I64))
        } else {
            self.infer(args[2], hint)
        };
        let element_hint = match &bins.ty {
            Some(Type::Scalar(_)) | None => hint.filter(|h| !matches!(h, Type::Scalar(_))).and_then(|h| h.without_axes(1)),
            Some(ty) => ty.without_axes(1),
        };
        let Some((is, vs)) = self.places(args[3], args[4], element_hint.as_ref()) else { return Typed::poison() };
        let ne = self.check(args[1], &vs.element.clone(), |c, d| {
            d.label(vs.span, format!("the elements have type `{}`", c.describe(&vs.element)))
                .note("the neutral element has the type of the elements")
        });
        let (Some(bins_ty), Some(_)) = (bins.ty, ne.ty) else { return Typed::poison() };
        let size = match &bins_ty {
            Type::Scalar(s) if s.is_integer() => self.size_of("k", &convert(bins.exp.clone(), *s, Scalar::I64)),
            ty => match leading_axes(ty, 1) {
                Ok(axes) => axes[0].clone(),
                Err(_) => {
                    let text =
                        format!("the number of bins or an array to start from is wanted here, but this has type `{}`", self.describe(ty));
                    self.report(Diagnostic::error(args[2].span, text));
                    return Typed::poison();
                }
            },
        };
        let ty = vs.element.with_axis(&size);
        let start = if matches!(bins_ty, Type::Scalar(_)) { None } else { Some(bins.exp) };
        if start.is_some() {
            let found = Typed::new(Exp::Tuple(vec![]), bins_ty);
            let agrees = self.require(&found, &ty, args[2].span, |c, d| {
                d.label(vs.span, format!("the elements have type `{}`", c.describe(&vs.element)))
            });
            if !agrees {
                return Typed::poison();
            }
        }
        let i = self.program.vars.fresh("i", Type::I64);
        let Some(step) = self.step(f, args[0], &Place::Applied("reduce_by_index", i), &vs.element, vs.span) else {
            return Typed::poison();
        };
        let k = self.program.vars.fresh("k", Type::I64);
        let inside = inside(k, &size);
        if let (Some(Op::Add), true) = (operation(&step), is_additive(&vs.element)) {
            let contribution = guard(inside, self.singletons(k, &size, vs.at(i), &vs.element, span));
            let total = sum(i, i64(0), size_exp(&vs.size), let_(vec![k], is.place(i), contribution));
            let start = start.or_else(|| (!is_zero(&ne.exp)).then(|| self.filled(ne.exp, &vs.element, &size)));
            return Typed::new(
                match start {
                    None => total,
                    Some(start) => op2(Op::Add, start, total),
                },
                ty,
            );
        }
        let start = start.unwrap_or_else(|| self.filled(ne.exp, &vs.element, &size));
        self.written(start, &ty, (i, k), (&is, &vs), inside, Some(step), span)
    }

    fn scatter(&mut self, dest: &ast::Exp, is: &ast::Exp, vs: &ast::Exp, span: Span, hint: Option<&Type>) -> Typed {
        let Some(dest) = ({
            let found = self.infer(dest, hint);
            let axes = found.ty.as_ref().map(|ty| leading_axes(ty, 1));
            match (axes, found.ty) {
                (Some(Ok(axes)), Some(ty)) => Some((found.exp, ty, axes[0].clone())),
                (Some(Err(_)), Some(ty)) => {
                    let text = format!("an array is wanted here, but this has type `{}`", self.describe(&ty));
                    self.report(Diagnostic::error(dest.span, text).note("it is called as `scatter(start, indices, values)`"));
                    None
                }
                _ => None,
            }
        }) else {
            return self.skip_args(&[Arg::Written(is), Arg::Written(vs)]);
        };
        let (start, ty, size) = dest;
        let element = ty.without_axes(1);
        let Some((is, vs)) = self.places(is, vs, element.as_ref()) else { return Typed::poison() };
        let found = Typed::new(Exp::Tuple(vec![]), vs.element.clone());
        let Some(element) = element else { return Typed::poison() };
        if !self.require(&found, &element, vs.span, |c, d| d.note(format!("these are written into an array of type `{}`", c.describe(&ty))))
        {
            return Typed::poison();
        }
        let i = self.program.vars.fresh("i", Type::I64);
        let k = self.program.vars.fresh("k", Type::I64);
        let inside = inside(k, &size);
        self.written(start, &ty, (i, k), (&is, &vs), inside, None, span)
    }

    /// `loop out = start for i do let k = is[i]; if inside then out with [k] = … else out`
    #[allow(clippy::too_many_arguments)]
    fn written(
        &mut self,
        start: Exp,
        ty: &Type,
        (i, k): (Var, Var),
        (is, vs): (&Elements, &Elements),
        inside: Exp,
        step: Option<Step>,
        span: Span,
    ) -> Typed {
        let state: Vec<Var> = match ty {
            Type::Tuple(parts) if parts.len() != 1 => parts.iter().map(|t| self.program.vars.fresh("out", t.clone())).collect(),
            _ => vec![self.program.vars.fresh("out", ty.clone())],
        };
        let out = || tuple(state.iter().map(|v| Exp::Var(*v)).collect());
        let value = match step {
            None => vs.at(i),
            Some(Step { left, right, body }) => {
                let bins = state.iter().map(|v| index(*v, vec![Exp::Var(k)], Site::new(span)));
                let value = let_(vec![right], vs.at(i), body);
                left.into_iter().zip(bins).rev().fold(value, |body, (v, bin)| let_(vec![v], bin, body))
            }
        };
        let mut bindings = vec![];
        let updated = self.updated(out(), ty, k, value, span, &mut bindings);
        let updated = crate::ir::build::lets(bindings, updated);
        let body = let_(vec![k], is.place(i), if_(inside, updated, out()));
        let trip = Trip::For(Range { index: i, lo: i64(0), hi: size_exp(&vs.size) });
        Typed::new(Exp::Loop(Box::new(Iteration { state, init: start, trip, body, annotations: vec![] })), ty.clone())
    }

    /// `array with [k] = value`, for each array of a tuple.
    fn updated(&mut self, array: Exp, ty: &Type, k: Var, value: Exp, span: Span, bindings: &mut Vec<(Vec<Var>, Exp)>) -> Exp {
        match ty {
            Type::Scalar(_) | Type::Array(..) => Exp::Update(Box::new(array), vec![Exp::Var(k)], Box::new(value), Site::new(span)),
            Type::Tuple(parts) if parts.len() == 1 => self.updated(array, &parts[0], k, value, span, bindings),
            Type::Tuple(parts) => {
                let elements = ty.without_axes(1).unwrap_or_else(|| ty.clone());
                let values = self.parts(value, &elements, "v", bindings);
                let arrays = self.parts(array, ty, "out", bindings);
                let updated = parts.iter().zip(arrays).zip(values);
                Exp::Tuple(updated.map(|((ty, array), value)| self.updated(array, ty, k, value, span, bindings)).collect())
            }
        }
    }

    /// The parts of a tuple, bound to variables if it is not written as one.
    fn parts(&mut self, exp: Exp, ty: &Type, name: &str, bindings: &mut Vec<(Vec<Var>, Exp)>) -> Vec<Exp> {
        match (exp, ty) {
            (Exp::Tuple(parts), _) => parts,
            (exp, Type::Tuple(types)) => {
                let vars: Vec<Var> = types.iter().map(|t| self.program.vars.fresh(name, t.clone())).collect();
                bindings.push((vars.clone(), exp));
                vars.into_iter().map(Exp::Var).collect()
            }
            (exp, Type::Scalar(_) | Type::Array(..)) => vec![exp],
        }
    }

    /// `{k -> value}`, for each part of a tuple.
    fn singletons(&mut self, k: Var, size: &Size, value: Exp, ty: &Type, span: Span) -> Exp {
        match ty {
            Type::Scalar(_) | Type::Array(..) => singleton(vec![(Exp::Var(k), size.clone())], value, Site::new(span)),
            Type::Tuple(types) if types.len() == 1 => self.singletons(k, size, value, &types[0], span),
            Type::Tuple(types) => {
                let mut bindings = vec![];
                let parts = self.parts(value, ty, "v", &mut bindings);
                let parts = parts.into_iter().zip(types).map(|(part, ty)| self.singletons(k, size, part, ty, span)).collect();
                crate::ir::build::lets(bindings, Exp::Tuple(parts))
            }
        }
    }

    /// `for j in 0..size. value`
    fn filled(&mut self, value: Exp, ty: &Type, size: &Size) -> Exp {
        let value = self.shared("ne", value, ty);
        let j = self.program.vars.fresh(index_name(1), Type::I64);
        for_(j, size.clone(), copy(&mut self.program.vars, &value, &Substitution::default()))
    }
}

/// `0 <= k and k < size`
fn inside(k: Var, size: &Size) -> Exp {
    op2(Op::And, op2(Op::Le, i64(0), k), op2(Op::Lt, k, size_exp(size)))
}

/// The operation of a step that is one operation on its two variables.
fn operation(step: &Step) -> Option<Op> {
    let Exp::Op(op @ (Op::Add | Op::Mul | Op::Max | Op::Min | Op::And | Op::Or), args, _) = &step.body else { return None };
    let left = tuple(step.left.iter().map(|v| Exp::Var(*v)).collect());
    let right = Exp::Var(step.right);
    match args.as_slice() {
        [a, b] if *a == left && *b == right => Some(*op),
        // Of equals the later would win.
        [a, b] if *a == right && *b == left => (!matches!(op, Op::Max | Op::Min)).then_some(*op),
        _ => None,
    }
}

/// The reduction of an operation on scalars.
fn reduction(op: Op) -> Reduction {
    match op {
        Op::Mul => Reduction::Prod,
        Op::Max => Reduction::Max,
        Op::Min => Reduction::Min,
        Op::And => Reduction::All,
        _ => Reduction::Any,
    }
}
