//! Derivative operators as they are written: `grad(f, wrt = x)(x, y)`, `jvp(f, (x, y), (dx, dy))`.
//!
//! An operator on a function is a function again (`grad(grad(f))(x)`), made by `derive`; a call of it is a call.
//! Jacobians and Hessians take `format`, `stack` and `triangle` besides (`sparse.rs`).

use super::apply::are;
use super::calls::Arg;
use super::derive::{DerivativeKind, Deriving, with_respect_to};
use super::functions::{Derivative, FunctionValue};
use super::hints::is_number;
use super::messages::{brief, count};
use super::sparse::{Format, Storage};
use super::{Checker, Typed};
use crate::diagnostic::{Diagnostic, Span};
use crate::ir::{Exp, FunctionId, Scalar, Triangle, Type, Var};
use crate::syntax::ast::{self, Argument, ExpKind};
use std::rc::Rc;

fn kind_of(operator: &str) -> Option<DerivativeKind> {
    use DerivativeKind::*;
    [Grad, ValueAndGrad, Jvp, Vjp, Jacobian, JacFwd, JacRev, Hessian, Hvp].into_iter().find(|kind| kind.name() == operator)
}

/// Whether the operator takes a function alone; the others take a point and directions too, if they are given.
fn gives_function(kind: DerivativeKind) -> bool {
    !matches!(kind, DerivativeKind::Jvp | DerivativeKind::Vjp | DerivativeKind::Hvp)
}

/// Whether the derivative is a matrix, which may be stored in other ways.
fn is_matrix(kind: DerivativeKind) -> bool {
    use DerivativeKind::*;
    matches!(kind, Jacobian | JacFwd | JacRev | Hessian)
}

/// How a matrix is to be stored, as far as it is said, with the places that say it.
#[derive(Default)]
struct Stored {
    format: Option<(Format, Span)>,
    stack: Option<(bool, Span)>,
    triangle: Option<(Triangle, Span)>,
    index: Option<(Scalar, Span)>,
}

/// What an operator is given.
struct Operands<'e> {
    kind: DerivativeKind,
    f: FunctionValue,
    wrt: Option<&'e ast::Exp>,
    /// The names in `wrt`.
    names: Option<Vec<String>>,
    storage: Option<Storage>,
    /// The point and the directions.
    rest: Vec<&'e ast::Exp>,
    /// The operator's own place.
    span: Span,
}

impl<'a> Checker<'a> {
    /// A derivative operator on a function alone: a function.
    pub fn operator_function(&mut self, operator: &str, span: Span, args: &[Argument]) -> Option<FunctionValue> {
        let operands = self.operands(kind_of(operator)?, span, args)?;
        if let Some(extra) = operands.rest.first() {
            let diagnostic = if gives_function(operands.kind) {
                let rest: Vec<String> = operands.rest.iter().map(|e| brief(e)).collect();
                Diagnostic::error(extra.span, format!("`{operator}` takes a function alone, and gives a function")).note(format!(
                    "write `{operator}({})({})`",
                    brief(&args[0].value),
                    rest.join(", ")
                ))
            } else {
                Diagnostic::error(extra.span, format!("with these arguments `{operator}` gives a value, not a function"))
            };
            self.report(diagnostic);
            return None;
        }
        let Operands { kind, f, names, storage, span, .. } = &operands;
        match f {
            FunctionValue::Function(id) => {
                let wrt = self.positions(&operands, *id, 0)?;
                self.derive(*id, *kind, &wrt, *storage, *span).map(FunctionValue::Function)
            }
            // The types of its parameters are known where it is applied.
            f => Some(FunctionValue::Derivative(Rc::new(Derivative {
                kind: *kind,
                of: f.clone(),
                storage: *storage,
                wrt: names.clone(),
                span: *span,
            }))),
        }
    }

    fn operands<'e>(&mut self, kind: DerivativeKind, span: Span, args: &'e [Argument]) -> Option<Operands<'e>> {
        let mut wrt = None;
        let mut rest = vec![];
        let mut stored = Stored::default();
        let matrix = is_matrix(kind);
        for arg in args {
            match &arg.name {
                None => rest.push(&arg.value),
                Some(name) if name.text == "wrt" => wrt = Some(&arg.value),
                Some(name) if matrix && name.text == "format" => stored.format = Some((self.format(&arg.value)?, name.span)),
                Some(name) if matrix && name.text == "stack" => stored.stack = Some((self.truth(&arg.value)?, name.span)),
                Some(name) if matrix && name.text == "triangle" => stored.triangle = Some((self.triangle(&arg.value)?, name.span)),
                Some(name) if matrix && name.text == "index" => stored.index = Some((self.index_type(&arg.value)?, name.span)),
                Some(name) => {
                    self
                        .report(Diagnostic::error(name.span, format!("`{}` has no argument `{}`", kind.name(), name.text)).note(if matrix {
                        "the arguments with names are `wrt`, the parameters to differentiate by, `format`, `stack`, `triangle` and `index`"
                    } else {
                        "the only argument with a name is `wrt`, the parameters to differentiate by"
                    }));
                    return None;
                }
            }
        }
        let storage = match stored.format {
            Some((format, _)) => Some(Storage {
                format,
                stack: stored.stack.is_some_and(|s| s.0),
                triangle: stored.triangle.map(|t| t.0),
                index: stored.index.map_or(Scalar::I64, |i| i.0),
            }),
            None => match stored
                .stack
                .map(|s| ("stack", s.1))
                .or(stored.triangle.map(|t| ("triangle", t.1)))
                .or(stored.index.map(|i| ("index", i.1)))
            {
                Some((name, span)) => {
                    self.report(
                        Diagnostic::error(span, format!("`{name}` is for sparse matrices"))
                            .note(format!("say how they are stored: `{}(f, format = csr, {name} = …)`", kind.name())),
                    );
                    return None;
                }
                None => None,
            },
        };
        if rest.is_empty() {
            self.report(Diagnostic::error(span, format!("`{}` takes a function", kind.name())).note(format!("as in `{}(f)`", kind.name())));
            return None;
        }
        let f = rest.remove(0);
        let value = self.function_value(f)?;
        if let FunctionValue::Definition(k) = &value {
            let definition = &self.module.definitions[*k];
            if definition.takes_functions() {
                let name = &definition.name.text;
                let text = format!("`{name}` takes functions, so it has no derivative by itself");
                self.report(
                    Diagnostic::error(f.span, text)
                        .label(definition.name.span, "the function")
                        .note(format!("differentiate a call of it: `{}(|x| {name}(…, x))`", kind.name())),
                );
                return None;
            }
        }
        let names = match wrt {
            None => None,
            Some(exp) => Some(self.parameter_names(exp)?),
        };
        Some(Operands { kind, f: value, wrt, names, storage, rest, span })
    }

    /// `format = csr`
    fn format(&mut self, exp: &ast::Exp) -> Option<Format> {
        let found = Format::ALL.into_iter().find(|f| matches!(&exp.kind, ExpKind::Name(name) if name == f.name()));
        if found.is_none() {
            self.report(Diagnostic::error(exp.span, "this is no format of sparse matrices").note("there are `coo` and `csr`"));
        }
        found
    }

    /// `triangle = lower`
    fn triangle(&mut self, exp: &ast::Exp) -> Option<Triangle> {
        let found = [Triangle::Lower, Triangle::Upper].into_iter().find(|t| matches!(&exp.kind, ExpKind::Name(name) if name == t.name()));
        if found.is_none() {
            self.report(Diagnostic::error(exp.span, "this is no triangle").note("there are `lower` and `upper`"));
        }
        found
    }

    /// `index = i32`
    fn index_type(&mut self, exp: &ast::Exp) -> Option<Scalar> {
        let found = [Scalar::I64, Scalar::I32].into_iter().find(|s| matches!(&exp.kind, ExpKind::Name(name) if name == s.name()));
        if found.is_none() {
            self.report(Diagnostic::error(exp.span, "this is no type of indices").note("there are `i64` and `i32`"));
        }
        found
    }

    /// `stack = true`
    fn truth(&mut self, exp: &ast::Exp) -> Option<bool> {
        match &exp.kind {
            ExpKind::Bool(value) => Some(*value),
            _ => {
                self.report(Diagnostic::error(exp.span, "`stack` is `true` or `false`"));
                None
            }
        }
    }

    /// The positions of the parameters to differentiate by; the first `captured` are none that can be named.
    fn positions(&mut self, operands: &Operands<'_>, f: FunctionId, captured: usize) -> Option<Vec<usize>> {
        match with_respect_to(&self.program, f, captured, operands.names.as_deref()) {
            Ok(positions) => Some(positions),
            Err(diagnostic) => {
                self.report_at(diagnostic, operands.wrt.map_or(operands.span, |e| e.span), f);
                None
            }
        }
    }

    /// `wrt = x`, `wrt = (x, y)`
    fn parameter_names(&mut self, exp: &ast::Exp) -> Option<Vec<String>> {
        let parts = match &exp.kind {
            ExpKind::Tuple(parts) => parts.as_slice(),
            _ => std::slice::from_ref(exp),
        };
        let names: Option<Vec<String>> =
            parts.iter().map(|p| if let ExpKind::Name(name) = &p.kind { Some(name.clone()) } else { None }).collect();
        if names.is_none() && !parts.iter().any(|p| p.kind == ExpKind::Error) {
            self.report(Diagnostic::error(exp.span, "`wrt` takes names of parameters").note("as in `wrt = x` or `wrt = (x, y)`"));
        }
        names
    }

    fn derive(&mut self, f: FunctionId, kind: DerivativeKind, wrt: &[usize], storage: Option<Storage>, span: Span) -> Option<FunctionId> {
        let mut deriving = Deriving { program: &mut self.program, memo: &mut self.derived };
        let made = match storage {
            Some(storage) => deriving.derive_sparse(f, kind, wrt, storage),
            None => deriving.derive(f, kind, wrt),
        };
        match made {
            Ok(id) => Some(id),
            Err(diagnostic) => {
                self.report_at(diagnostic, span, f);
                None
            }
        }
    }

    /// A complaint about a function, at the place that asks for its derivative.
    fn report_at(&mut self, mut diagnostic: Diagnostic, span: Span, f: FunctionId) {
        diagnostic.labels[0].span = span;
        let name = self.program.function(f).name.clone();
        // An instance has the name of its definition here, and what was closed over none.
        let (shown, place) = match (self.definition_of(f), self.lifted.get(&f)) {
            (Some(definition), _) => (format!("`{}`", definition.name.text), Some(definition.name.span)),
            (None, Some((shown, span))) => (shown.clone(), Some(*span)),
            (None, None) => (format!("`{name}`"), None),
        };
        let bare = if shown.starts_with('`') { shown.trim_matches('`').to_string() } else { "…".to_string() };
        let spoken = |text: &str| text.replace(&format!("`{name}`"), &shown).replace(&format!("({name})"), &format!("({bare})"));
        diagnostic.message = spoken(&diagnostic.message);
        diagnostic.notes.iter_mut().for_each(|note| *note = spoken(note));
        self.report(match place {
            Some(place) => diagnostic.label(place, "the function"),
            None => diagnostic,
        });
    }

    /// A derivative of a function whose parameters take the types of the arguments.
    pub fn apply_derivative(&mut self, derivative: &Derivative, name: &str, args: Vec<Arg<'_>>, span: Span) -> Typed {
        let mut found = vec![];
        for arg in args {
            found.push(match arg {
                // A derivative is asked for, so a whole number is a float.
                Arg::Written(e) => (self.infer(e, is_number(e).then_some(&Type::F64)), e.span),
                Arg::Found(typed, span) => (typed, span),
            });
        }
        let Some(types) = found.iter().map(|(typed, _)| typed.ty.clone()).collect::<Option<Vec<Type>>>() else { return Typed::poison() };
        let Some((id, mut args)) = self.derivative_at(derivative, &types, span) else { return Typed::poison() };
        args.extend(found.into_iter().map(|(typed, span)| Arg::Found(typed, span)));
        self.call_function(id, name, args, span)
    }

    /// The function that a derivative is for arguments of these types, with those of its arguments that were captured.
    pub fn derivative_at(&mut self, derivative: &Derivative, types: &[Type], span: Span) -> Option<(FunctionId, Vec<Arg<'static>>)> {
        let own = self.arity(&derivative.of).map_or(types, |n| &types[..n.min(types.len())]);
        let (f, captured) = self.function_at(&derivative.of, own, span)?;
        let wrt = match with_respect_to(&self.program, f, captured.len(), derivative.wrt.as_deref()) {
            Ok(wrt) => wrt,
            Err(diagnostic) => {
                self.report_at(diagnostic, derivative.span, f);
                return None;
            }
        };
        Some((self.derive(f, derivative.kind, &wrt, derivative.storage, derivative.span)?, captured))
    }

    /// A derivative operator that is called by name: `jvp`, `vjp` and `hvp` with their arguments; the others are not
    /// values by themselves.
    pub fn operator_call(&mut self, operator: &str, head: Span, args: &[Argument], span: Span) -> Typed {
        let Some(kind) = kind_of(operator) else { return Typed::poison() };
        let Some(operands) = self.operands(kind, head, args) else { return Typed::poison() };
        let name = self.describe_function(&operands.f).trim_matches('`').to_string();
        if gives_function(kind) || operands.rest.is_empty() {
            let arguments: Vec<String> = match operands.rest.as_slice() {
                [] => (0..self.arity(&operands.f).unwrap_or(1))
                    .map(|k| self.parameter_name(&operands.f, k).unwrap_or_else(|| "…".to_string()))
                    .collect(),
                rest => rest.iter().map(|e| brief(e)).collect(),
            };
            let f = args.iter().find(|a| a.name.is_none()).map_or(name, |a| brief(&a.value));
            self.report(
                Diagnostic::error(span, format!("`{operator}` gives a function, not a value"))
                    .note(format!("call it: `{operator}({f})({})`", arguments.join(", "))),
            );
            return Typed::poison();
        }
        let [point, direction] = operands.rest.as_slice() else {
            let example = match kind {
                DerivativeKind::Vjp => "`vjp(f, (x, y), seed)`",
                DerivativeKind::Hvp => "`hvp(f, (x, y), (dx, dy))`",
                _ => "`jvp(f, (x, y), (dx, dy))`",
            };
            let text = format!("`{operator}` takes 3 arguments, but {} given", are(args.len()));
            self.report(Diagnostic::error(span, text).note(format!("as in {example}")));
            return Typed::poison();
        };
        let Some(params) = self.arity(&operands.f) else {
            self.report(Diagnostic::error(head, format!("`{operator}` does not take {}", self.describe_function(&operands.f))));
            return Typed::poison();
        };
        let takes = format!("{} takes {}", self.describe_function(&operands.f), count(params, "argument"));
        let Some(mut args) = self.split(point, params, &takes) else { return Typed::poison() };
        let (f, captured) = match &operands.f {
            FunctionValue::Function(id) => (*id, vec![]),
            f => {
                let mut types = vec![];
                args = args
                    .into_iter()
                    .map(|arg| {
                        let (found, span) = match arg {
                            Arg::Written(e) => (self.infer(e, is_number(e).then_some(&Type::F64)), e.span),
                            Arg::Found(found, span) => (found, span),
                        };
                        types.extend(found.ty.clone());
                        Arg::Found(found, span)
                    })
                    .collect();
                if types.len() != params {
                    return Typed::poison();
                }
                match self.function_at(f, &types, span) {
                    Some(found) => found,
                    None => return Typed::poison(),
                }
            }
        };
        let Some(wrt) = self.positions(&operands, f, captured.len()) else { return Typed::poison() };
        let Some(id) = self.derive(f, kind, &wrt, None, head) else { return Typed::poison() };
        let direction = match kind {
            DerivativeKind::Vjp => Some(vec![Arg::Written(direction)]),
            _ => {
                let by = format!("{} is differentiated by {}", self.describe_function(&operands.f), count(wrt.len(), "parameter"));
                self.split(direction, wrt.len(), &by)
            }
        };
        match direction {
            Some(direction) => {
                let args = captured.into_iter().chain(args).chain(direction).collect();
                self.call_function(id, &format!("{operator}({name})"), args, span)
            }
            None => Typed::poison(),
        }
    }

    /// Several arguments written as one tuple; one argument needs no tuple.
    fn split<'e>(&mut self, exp: &'e ast::Exp, parts: usize, why: &str) -> Option<Vec<Arg<'e>>> {
        if parts == 1 {
            return Some(vec![Arg::Written(exp)]);
        }
        let given = match &exp.kind {
            ExpKind::Tuple(items) if items.len() == parts => return Some(items.iter().map(Arg::Written).collect()),
            ExpKind::Tuple(items) => count(items.len(), "part"),
            _ => {
                let found = self.infer(exp, None);
                match found.ty? {
                    Type::Tuple(types) if types.len() == parts && types.fields().is_none() => {
                        let vars: Vec<Var> = types.iter().map(|t| self.program.vars.fresh("t", t.clone())).collect();
                        self.floating.push((vars.clone(), found.exp));
                        let found = vars.into_iter().zip(types).map(|(v, t)| Arg::Found(Typed::new(Exp::Var(v), t), exp.span));
                        return Some(found.collect());
                    }
                    ty => format!("type `{}`", self.describe(&ty)),
                }
            }
        };
        self.report(
            Diagnostic::error(exp.span, format!("this has {given}, but {} are wanted", count(parts, "value")))
                .note(format!("{why}; write them as a tuple: `(x, y)`")),
        );
        None
    }
}
