//! Expressions: names, literals, tuples, array literals, `let`, `if`, ascription. The rest is in files of its own.

use super::hints::{is_number, needs_hint, rank};
use super::messages::{brief, count};
use super::scope::{Binding, Place, leaking};
use super::{Checker, Typed};
use crate::diagnostic::{Diagnostic, Span};
use crate::ir::build::{convert, guard, if_, lets, op1};
use crate::ir::{Exp, Lit, Op, Scalar, Size, Type, Var};
use crate::syntax::ast::{self, ExpKind, Pattern, TypeExp};

/// Deeper nesting than any person writes; the walk is recursive.
const DEEPEST: usize = 4000;

impl<'a> Checker<'a> {
    /// The expression and its type. The hint is what the context wants, where it is known; the type may be another.
    pub fn infer(&mut self, exp: &ast::Exp, hint: Option<&Type>) -> Typed {
        if self.depth >= DEEPEST {
            self.report(
                Diagnostic::error(exp.span, "this expression is nested too deeply")
                    .note("bind parts of it with `let`, or write it as a sum over an array"),
            );
            return Typed::poison();
        }
        self.depth += 1;
        let found = self.infer_kind(exp, hint);
        self.depth -= 1;
        found
    }

    fn infer_kind(&mut self, exp: &ast::Exp, hint: Option<&Type>) -> Typed {
        let span = exp.span;
        match &exp.kind {
            ExpKind::Name(name) => self.name(name, span, hint),
            ExpKind::Int(value) => self.whole_number(*value, false, span, hint),
            ExpKind::Float(value) => self.float_number(*value, span, hint),
            ExpKind::Bool(value) => Typed::new(Exp::Lit(Lit::Bool(*value)), Type::BOOL),
            ExpKind::Unary(op, a) => self.unary(*op, a, span, hint),
            ExpKind::Binary(op, op_span, a, b) => self.binary(exp, *op, *op_span, a, b, hint),
            ExpKind::Call(head, args) => self.call(head, args, span, hint),
            ExpKind::Index(array, keys) => self.subscripts(array, keys, span),
            ExpKind::Bracket(items) => self.bracket(exp, items, hint),
            ExpKind::Singleton(keys, value) => self.singleton(keys, value, span, hint),
            ExpKind::Tuple(parts) => self.tuple(parts, hint),
            ExpKind::Record(fields) => self.record(fields, span, hint),
            ExpKind::Field(of, name) => self.field(of, name),
            ExpKind::Let(pattern, ty, value, body) => self.let_(pattern, ty.as_ref(), value, body, hint),
            ExpKind::Binder(kind, indices, body) => self.binder(*kind, indices, body, span, hint),
            ExpKind::If(condition, a, b) => self.if_(condition, a, b.as_deref(), hint),
            ExpKind::History(pattern, init, index, body) => self.history(pattern, init, index, body, span, hint),
            ExpKind::Loop(pattern, init, trip, body) => self.iteration(pattern, init, trip, body, vec![], hint),
            ExpKind::Annotated(annotations, e) => self.annotated(annotations, e, hint),
            ExpKind::With(array, keys, value) => self.update(array, keys, value, span, hint),
            ExpKind::Ascribe(e, ty) => match self.read_type(ty) {
                None => {
                    self.infer(e, None);
                    Typed::poison()
                }
                Some(want) => self.check(e, &want, |_, d| d.label(ty.span, "the type that is written")),
            },
            ExpKind::Lambda(_) | ExpKind::Operator(_) => {
                self.function_not_value(exp);
                Typed::poison()
            }
            ExpKind::Open(name) => {
                self.open_size(name, span);
                Typed::poison()
            }
            ExpKind::Error => Typed::poison(),
        }
    }

    /// An expression that must have the type wanted.
    pub fn check(&mut self, exp: &ast::Exp, want: &Type, because: impl FnOnce(&Self, Diagnostic) -> Diagnostic) -> Typed {
        let found = self.infer(exp, Some(want));
        if self.require(&found, want, exp.span, because) { found } else { Typed::poison() }
    }

    /// An integer, such as an index or a bound; a poisoned one is no `Some`.
    pub fn integer(&mut self, exp: &ast::Exp, what: &str) -> Option<Exp> {
        let found = self.infer(exp, Some(&Type::I64));
        // An `i32` counts as well as an `i64`, which holds it.
        if found.ty == Some(Type::I32) {
            return Some(convert(found.exp, Scalar::I32, Scalar::I64));
        }
        let fits = self.require(&found, &Type::I64, exp.span, |_, d| d.note(format!("{what} is an `i64` or `i32`")));
        found.ty.filter(|_| fits).map(|_| found.exp)
    }

    fn name(&mut self, name: &str, span: Span, hint: Option<&Type>) -> Typed {
        match self.lookup(name) {
            Some(Binding::Var(var)) => return Typed::new(Exp::Var(var), self.program.vars.ty(var).clone()),
            Some(Binding::Value(exp, ty)) => return Typed::new(exp, ty),
            Some(Binding::Poison) => return Typed::poison(),
            Some(Binding::Function(_)) => {
                self.function_not_value(&ast::Exp { kind: ExpKind::Name(name.to_string()), span });
                return Typed::poison();
            }
            Some(Binding::Summed(marked)) => {
                self.report(
                    Diagnostic::error(span, format!("`{name}` is summed by the loop, so its steps cannot read it"))
                        .label(marked, "marked as summed here")
                        .note("a step yields what is added to it; carry it without `sum` to read it"),
                );
                return Typed::poison();
            }
            None => {}
        }
        match name {
            "infinity" => return self.float_number(f64::INFINITY, span, hint),
            "nan" => return self.float_number(f64::NAN, span, hint),
            _ => {}
        }
        if self.is_function_name(name) {
            self.function_not_value(&ast::Exp { kind: ExpKind::Name(name.to_string()), span });
            return Typed::poison();
        }
        let diagnostic = Diagnostic::error(span, format!("unknown name `{name}`"));
        self.report(match self.similar_variable(name) {
            Some(similar) => diagnostic.note(format!("did you mean `{similar}`?")),
            None => diagnostic,
        });
        Typed::poison()
    }

    /// A whole number has the numeric type that is wanted, and is an `i64` where none is.
    pub fn whole_number(&mut self, value: u64, negative: bool, span: Span, hint: Option<&Type>) -> Typed {
        let scalar = match hint.and_then(Type::scalar) {
            Some(float @ (Scalar::F64 | Scalar::F32)) => {
                let nearest = if float == Scalar::F32 { f64::from(value as f32) } else { value as f64 };
                return self.float_number(if negative { -nearest } else { nearest }, span, hint);
            }
            Some(Scalar::I32) => Scalar::I32,
            _ => Scalar::I64,
        };
        let (largest, name) = (if scalar == Scalar::I32 { i32::MAX as u64 } else { i64::MAX as u64 }, scalar.name());
        if value > largest + negative as u64 {
            let diagnostic = Diagnostic::error(span, format!("this number does not fit an `{name}`"));
            self.report(match scalar {
                Scalar::I32 => diagnostic.note(format!("`i32` holds whole numbers from {} to {}", i32::MIN, i32::MAX)),
                _ => diagnostic.note(format!("the largest `{name}` is {largest}; with a point it is a float: `{value}.0`")),
            });
            return Typed::poison();
        }
        let value = if negative { (value as i64).wrapping_neg() } else { value as i64 };
        Typed::new(Exp::Lit(Lit::integer(scalar, value)), Type::Scalar(scalar))
    }

    /// A decimal number has the float type that is wanted, and is an `f64` where none is.
    pub fn float_number(&mut self, value: f64, span: Span, hint: Option<&Type>) -> Typed {
        let scalar = hint.and_then(Type::scalar).filter(|s| s.is_float()).unwrap_or(Scalar::F64);
        let lit = Lit::float(scalar, value);
        if value.is_finite() && lit.as_float().is_some_and(f64::is_infinite) {
            let note = format!("`f32` reaches to {:e}, `f64` to {:e}", f32::MAX, f64::MAX);
            self.report(Diagnostic::error(span, "this number does not fit an `f32`").note(note));
            return Typed::poison();
        }
        Typed::new(Exp::Lit(lit), Type::Scalar(scalar))
    }

    fn tuple(&mut self, parts: &[ast::Exp], hint: Option<&Type>) -> Typed {
        let found: Vec<Typed> = parts
            .iter()
            .enumerate()
            .map(|(k, part)| {
                let hint = match hint {
                    Some(Type::Tuple(hints)) if hints.len() == parts.len() && hints.fields().is_none() => Some(&hints[k]),
                    _ => None,
                };
                self.infer(part, hint)
            })
            .collect();
        let types: Option<Vec<Type>> = found.iter().map(|f| f.ty.clone()).collect();
        Typed { exp: Exp::Tuple(found.into_iter().map(|f| f.exp).collect()), ty: types.map(Type::tuple) }
    }

    /// `[a, b, c]`, all of one type. An array of tuples is a tuple of arrays.
    pub fn array_literal(&mut self, items: &[ast::Exp], span: Span, hint: Option<&Type>) -> Typed {
        if items.is_empty() {
            self.report(
                Diagnostic::error(span, "an array literal needs at least one element")
                    .note("an array of no elements is `for i in 0..0. e`, whose `e` gives the type"),
            );
            return Typed::poison();
        }
        let element = hint.and_then(|h| match h {
            Type::Scalar(_) => Some(h.clone()),
            h => h.without_axes(1),
        });
        // Elements that know their type come first and are the hint of the others.
        let best = items.iter().map(rank).max();
        let lead = items.iter().position(|item| Some(rank(item)) == best).unwrap_or(0);
        let first = self.infer(&items[lead], element.as_ref());
        let want = first.ty.clone();
        let mut found: Vec<Option<Typed>> = items.iter().map(|_| None).collect();
        found[lead] = Some(first);
        let mut agree = true;
        for (k, item) in items.iter().enumerate().filter(|(k, _)| *k != lead) {
            let typed = self.infer(item, want.as_ref().or(element.as_ref()));
            if let Some(want) = &want {
                agree &= self.require(&typed, want, item.span, |c, d| {
                    d.label(items[lead].span, format!("`{}`", c.describe(want))).note("all elements of an array have one type")
                });
            }
            found[k] = Some(typed);
        }
        let found: Vec<Typed> = found.into_iter().flatten().collect();
        match want {
            Some(ty) if agree && found.iter().all(|f| f.ty.is_some()) => {
                let size = Size::constant(found.len() as i64);
                let exps: Vec<Exp> = found.into_iter().map(|f| f.exp).collect();
                Typed::new(self.array_of(exps, &ty), ty.with_axis(&size))
            }
            _ => Typed::poison(),
        }
    }

    /// An array of elements of this type; of tuples it is a tuple of arrays.
    pub fn array_of(&mut self, items: Vec<Exp>, ty: &Type) -> Exp {
        let Type::Tuple(parts) = ty else { return Exp::Array(items) };
        let mut columns: Vec<Vec<Exp>> = parts.iter().map(|_| vec![]).collect();
        for item in items {
            let row = match item {
                Exp::Tuple(row) => row,
                item => {
                    let vars: Vec<Var> = parts.iter().map(|t| self.program.vars.fresh("t", t.clone())).collect();
                    self.floating.push((vars.clone(), item));
                    vars.into_iter().map(Exp::Var).collect()
                }
            };
            columns.iter_mut().zip(row).for_each(|(column, e)| column.push(e));
        }
        Exp::Tuple(columns.into_iter().zip(parts).map(|(column, t)| self.array_of(column, t)).collect())
    }

    fn let_(&mut self, pattern: &Pattern, ty: Option<&TypeExp>, value: &ast::Exp, body: &ast::Exp, hint: Option<&Type>) -> Typed {
        if self.is_function(value) {
            return self.let_function(pattern, ty, value, body, hint);
        }
        let value_found = match ty {
            None => self.infer(value, None),
            Some(written) => match self.read_type(written) {
                None => {
                    self.infer(value, None);
                    Typed::poison()
                }
                Some(want) => self.check(value, &want, |_, d| d.label(written.span, "the type that is written")),
            },
        };
        let names = self.scope.len();
        let bound = self.bind_pattern(pattern, value_found.ty.as_ref(), value.span);
        if let (Some((vars, _)), Some(Type::Scalar(Scalar::I64))) = (&bound, &value_found.ty) {
            self.define_size(vars[0], &value_found.exp);
        }
        let outer = std::mem::take(&mut self.floating);
        let mut found = self.infer(body, hint);
        let inner = std::mem::replace(&mut self.floating, outer);
        self.scope.truncate(names);
        // Where the value is poisoned there is no binding to make, and the program will not be used.
        let Some((vars, parts)) = bound else { return found };
        let mut bindings = vec![(vars, value_found.exp)];
        bindings.extend(parts);
        bindings.extend(inner);
        let all: Vec<Var> = bindings.iter().flat_map(|(vars, _)| vars.iter().copied()).collect();
        if let Some(ty) = found.ty.as_ref().filter(|ty| leaking(ty, &all).is_some()) {
            let expanded = ty.map_sizes(&mut |s| self.expand(s));
            if leaking(&expanded, &all).is_some() {
                self.floating.extend(bindings);
                return found;
            }
            found.ty = Some(expanded);
        }
        found.exp = lets(bindings, found.exp);
        found
    }

    /// `let g = |x| e; body`: no binding is left in the IR.
    fn let_function(&mut self, pattern: &Pattern, ty: Option<&TypeExp>, value: &ast::Exp, body: &ast::Exp, hint: Option<&Type>) -> Typed {
        let f = self.function_value(value).map(|f| match pattern {
            Pattern::Name(name) => f.named(&name.text),
            Pattern::Tuple(..) | Pattern::Sum(..) => f,
        });
        let f = match (f, ty) {
            (Some(f), Some(ty)) => self.function_of_type(f, ty, value.span),
            (f, _) => f,
        };
        if let Pattern::Tuple(_, span) = pattern {
            self.report(Diagnostic::error(*span, "a function has no parts").label(value.span, "this is a function"));
        }
        let outside = self.scope.len();
        let mut names = vec![];
        pattern_names(pattern, &mut names);
        for name in names {
            let binding = f.clone().map_or(Binding::Poison, Binding::Function);
            self.bind_name(&name.text, if matches!(pattern, Pattern::Name(_)) { binding } else { Binding::Poison });
        }
        let found = self.infer(body, hint);
        self.scope.truncate(outside);
        found
    }

    /// Binds a pattern's names to the parts of a value: the variables of the outermost `let`, and the bindings that
    /// take nested tuples apart. `None` if the type is unknown or does not fit (the names are then poisoned).
    #[allow(clippy::type_complexity)]
    pub fn bind_pattern(&mut self, pattern: &Pattern, ty: Option<&Type>, value: Span) -> Option<(Vec<Var>, Vec<(Vec<Var>, Exp)>)> {
        let mut names = vec![];
        pattern_names(pattern, &mut names);
        for (k, name) in names.iter().enumerate() {
            if let Some(first) = names[..k].iter().find(|n| n.text == name.text && n.text != "_") {
                self.report(
                    Diagnostic::error(name.span, format!("`{}` is bound twice in one pattern", name.text))
                        .label(first.span, "bound here first"),
                );
            }
        }
        let mut inner = vec![];
        let vars = ty.and_then(|ty| self.bind_parts(pattern, ty, value, &mut inner));
        if vars.is_none() {
            names.iter().for_each(|name| self.bind_name(&name.text, Binding::Poison));
        }
        vars.map(|vars| (vars, inner))
    }

    fn bind_parts(&mut self, pattern: &Pattern, ty: &Type, value: Span, inner: &mut Vec<(Vec<Var>, Exp)>) -> Option<Vec<Var>> {
        match pattern {
            Pattern::Name(name) => {
                let var = self.program.vars.fresh(name.text.clone(), ty.clone());
                self.program.vars.set_origin(var, name.span);
                self.bind_name(&name.text, Binding::Var(var));
                self.take_apart(var, ty, inner);
                Some(vec![var])
            }
            // What is summed has a place in the state, but no step reads it.
            Pattern::Sum(part, _) => {
                let mut names = vec![];
                pattern_names(part, &mut names);
                names.iter().for_each(|name| self.bind_name(&name.text, Binding::Summed(name.span)));
                let name = names.first().map_or("t", |name| name.text.as_str()).to_string();
                Some(vec![self.program.vars.fresh(name, ty.clone())])
            }
            Pattern::Tuple(parts, span) => {
                let types = match ty {
                    Type::Tuple(types) if types.len() == parts.len() && types.fields().is_none() => types,
                    Type::Tuple(types) if types.fields().is_some() => {
                        let text = format!("this pattern takes a tuple apart, but the value is a record, `{}`", self.describe(ty));
                        self.report(Diagnostic::error(*span, text).label(value, "the value").note("read its fields by name: `p.a`"));
                        return None;
                    }
                    _ => {
                        let text =
                            format!("this pattern has {}, but the value has type `{}`", count(parts.len(), "part"), self.describe(ty));
                        self.report(Diagnostic::error(*span, text).label(value, "the value"));
                        return None;
                    }
                };
                let mut vars = vec![];
                let mut nested = vec![];
                for (part, ty) in parts.iter().zip(types) {
                    match part {
                        Pattern::Name(_) | Pattern::Sum(..) => vars.extend(self.bind_parts(part, ty, value, inner)?),
                        Pattern::Tuple(..) => {
                            let var = self.program.vars.fresh("t", ty.clone());
                            vars.push(var);
                            nested.push((part, ty, var));
                        }
                    }
                }
                for (part, ty, var) in nested {
                    let mut deeper = vec![];
                    let parts = self.bind_parts(part, ty, value, &mut deeper)?;
                    inner.push((parts, Exp::Var(var)));
                    inner.extend(deeper);
                }
                Some(vars)
            }
        }
    }

    fn if_(&mut self, condition: &ast::Exp, a: &ast::Exp, b: Option<&ast::Exp>, hint: Option<&Type>) -> Typed {
        let condition = self.condition(condition);
        let branch = |c: &mut Self, e: &ast::Exp, hint: Option<&Type>| {
            let holds = condition.exp.clone();
            c.assumed.push(if std::ptr::eq(e, a) { holds } else { op1(Op::Not, holds) });
            let found = c.conditional(|c| c.scoped(&Place::Branch, e.span, |c| c.infer(e, hint)));
            c.assumed.pop();
            found
        };
        let Some(b) = b else {
            let found = branch(self, a, hint);
            return Typed { exp: guard(condition.exp, found.exp), ty: found.ty };
        };
        let (first, second) = if rank(a) < rank(b) { (b, a) } else { (a, b) };
        let one = branch(self, first, hint);
        let other = branch(self, second, one.ty.as_ref().or(hint));
        let mut ty = one.ty.clone().filter(|_| other.ty.is_some());
        if let Some(want) = one.ty.clone() {
            let agrees = self.require(&other, &want, second.span, |c, d| {
                d.label(first.span, format!("`{}`", c.describe(&want))).note("both branches of an `if` have one type")
            });
            ty = ty.filter(|_| agrees);
        }
        let (one, other) = if std::ptr::eq(first, a) { (one, other) } else { (other, one) };
        Typed { exp: if_(condition.exp, one.exp, other.exp), ty }
    }

    pub fn condition(&mut self, exp: &ast::Exp) -> Typed {
        self.check(exp, &Type::BOOL, |_, d| d.note("a condition is a `bool`, such as a comparison"))
    }

    /// Two operands, the one that knows its type first, so that it is the hint of the other.
    pub fn pair(&mut self, a: &ast::Exp, b: &ast::Exp, hint: Option<&Type>) -> (Typed, Typed) {
        if rank(a) < rank(b) {
            let right = self.infer(b, hint);
            let left = self.infer(a, right.ty.as_ref().or(hint));
            (left, right)
        } else {
            let left = self.infer(a, hint);
            // Between equals that know little, the context knows more than the other.
            let equal = rank(a) == rank(b) && needs_hint(a);
            let hint = if equal { hint.or(left.ty.as_ref()) } else { left.ty.as_ref().or(hint) };
            let right = self.infer(b, hint);
            (left, right)
        }
    }

    /// A note on how to convert one of two operands of different numeric types: an integer to the float beside it, else
    /// the narrower to the wider.
    pub fn offer_conversion(&self, diagnostic: Diagnostic, a: (&ast::Exp, &Type), b: (&ast::Exp, &Type)) -> Diagnostic {
        let (Some(x), Some(y)) = (a.1.scalar(), b.1.scalar()) else { return diagnostic };
        if x == y || !x.is_number() || !y.is_number() {
            return diagnostic;
        }
        let wide = |s: Scalar| (s.is_float(), matches!(s, Scalar::F64 | Scalar::I64));
        let single = |ty: &Type| matches!(ty, Type::Scalar(_));
        let (converted, to) = match (single(a.1), single(b.1)) {
            (true, false) => (a, y),
            (false, true) => (b, x),
            _ if wide(x) < wide(y) => (a, y),
            _ => (b, x),
        };
        let to = to.name();
        match converted.1 {
            Type::Scalar(_) if is_number(converted.0) => diagnostic,
            Type::Scalar(_) => diagnostic.note(format!("there are no implicit conversions; write `{to}({})`", brief(converted.0))),
            _ => diagnostic.note(format!("there are no implicit conversions; write `for i. {to}({}[i])`", brief(converted.0))),
        }
    }
}

pub fn pattern_names<'a>(pattern: &'a Pattern, out: &mut Vec<&'a ast::Name>) {
    match pattern {
        Pattern::Name(name) => out.push(name),
        Pattern::Tuple(parts, _) => parts.iter().for_each(|p| pattern_names(p, out)),
        Pattern::Sum(part, _) => pattern_names(part, out),
    }
}
