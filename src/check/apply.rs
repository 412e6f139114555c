//! Functions applied to arguments: the body of a function in the place of its call.
//!
//! The arguments of a lambda are bound by `let`s and its body is elaborated there, in the scope it was written in. What is
//! wrong with a body at the types of one application is said at the body, with the application beside it.
//! An operator is applied as if it stood between its arguments.

use super::calls::Arg;
use super::functions::{Closure, Context, FunctionValue};
use super::messages::count;
use super::scope::{Binding, Place, leaking};
use super::{Checker, Typed};
use crate::diagnostic::{Diagnostic, Severity, Span};
use crate::ir::build::lets;
use crate::ir::{Exp, Scalar, Type, Var};
use crate::syntax::ast::{self, Argument, ExpKind, Operator, Pattern, UnaryOp};

/// Where a function is applied whose body is being checked, and what to say there.
#[derive(Clone, Debug)]
pub struct Application {
    pub span: Span,
    pub text: String,
    /// Of a template, whose body was checked by itself.
    pub template: bool,
}

/// More bodies than any program needs: functions that double what they call grow without bound.
const MOST_EXPANDED: usize = 20_000;

/// How many applications around an error are worth showing.
const SHOWN: usize = 3;

impl<'a> Checker<'a> {
    /// An error in the body of a function, with the innermost calls that led there.
    pub fn with_applications(&self, diagnostic: Diagnostic) -> Diagnostic {
        if diagnostic.severity != Severity::Error {
            return diagnostic;
        }
        self.applications.iter().rev().take(SHOWN).fold(diagnostic, |d, application| {
            // What stands around the place itself would only be drawn over it.
            let around =
                |s: Span| s.source == application.span.source && application.span.start <= s.start && s.end <= application.span.end;
            if d.labels.iter().any(|label| label.span == application.span) || d.labels.first().is_some_and(|label| around(label.span)) {
                return d;
            }
            d.label(application.span, application.text.clone())
        })
    }

    pub fn apply(&mut self, f: &FunctionValue, name: &str, args: Vec<Arg<'_>>, span: Span, hint: Option<&Type>) -> Typed {
        match f {
            FunctionValue::Function(id) => self.call_function(*id, name, args, span),
            FunctionValue::Definition(k) => self.call_definition(*k, name, args, span, hint),
            FunctionValue::Scalar(_) | FunctionValue::Partial(..) | FunctionValue::Operator(_) => {
                self.apply_built_in(f, name, args, span, hint)
            }
            FunctionValue::Lambda(closure) => self.apply_lambda(f, closure, args, span, hint),
            FunctionValue::Derivative(derivative) => self.apply_derivative(derivative, name, args, span),
            FunctionValue::Poison => self.skip_args(&args),
        }
    }

    fn apply_lambda(&mut self, f: &FunctionValue, closure: &Closure, args: Vec<Arg<'_>>, span: Span, hint: Option<&Type>) -> Typed {
        let params = &closure.lambda.params;
        if params.len() != args.len() {
            let text = format!("{} takes {}, but {} given", self.describe_function(f), count(params.len(), "argument"), are(args.len()));
            let place = params.iter().map(Pattern::span).reduce(Span::to).unwrap_or(closure.span);
            self.report(Diagnostic::error(span, text).label(place, "its parameters"));
            return self.skip_args(&args);
        }
        // A lambda that is applied where it stands is shown with its arguments alone.
        let given = args.iter().map(Arg::span).reduce(Span::to).unwrap_or(span);
        let direct = span.source == closure.span.source && span.start <= closure.span.start && closure.span.end <= span.end;
        let place = if direct { given } else { span };
        let mut functions = vec![];
        let mut values = vec![];
        let mut types = vec![];
        for (pattern, arg) in params.iter().zip(args) {
            let at = arg.span();
            let found = match arg {
                Arg::Written(e) if self.is_function(e) => {
                    let binding = self.function_value(e).map_or(Binding::Poison, Binding::Function);
                    match pattern {
                        Pattern::Name(name) => functions.push((name.text.clone(), binding)),
                        Pattern::Tuple(_, span) | Pattern::Sum(_, span) => {
                            self.report(Diagnostic::error(*span, "a function has no parts").label(at, "this is a function"));
                            return Typed::poison();
                        }
                    }
                    types.push("a function".to_string());
                    continue;
                }
                Arg::Written(e) => self.infer(e, None),
                Arg::Found(found, _) => found,
            };
            types.extend(found.ty.as_ref().map(|ty| format!("`{}`", self.describe(ty))));
            values.push((pattern, found, at));
        }
        self.applications.push(Application { span: place, text: format!("applied here to {}", types.join(", ")), template: false });
        let found = self.in_context(closure.context.clone(), |c| {
            c.binding(values, span, |c| {
                functions.into_iter().for_each(|(name, binding)| c.bind_name(&name, binding));
                c.infer(&closure.lambda.body, hint)
            })
        });
        self.applications.pop();
        found
    }

    /// `let pattern = value` for each of the values, around what `body` gives in their scope. What costs nothing to repeat
    /// is not bound again.
    pub fn binding(&mut self, values: Vec<(&Pattern, Typed, Span)>, span: Span, body: impl FnOnce(&mut Self) -> Typed) -> Typed {
        self.expanded += 1;
        if self.expanded >= MOST_EXPANDED {
            if self.expanded == MOST_EXPANDED {
                self.report(
                    Diagnostic::error(
                        span,
                        "this definition becomes too large: the bodies of functions that it applies are put in their place",
                    )
                    .note("let a definition without functions among its parameters do part of the work: it is called, not copied"),
                );
            }
            return Typed::poison();
        }
        let names = self.scope.len();
        let mut bindings = vec![];
        let mut complete = true;
        for (pattern, value, place) in values {
            complete &= self.bind_value(pattern, value, place, &mut bindings);
        }
        let outer = std::mem::take(&mut self.floating);
        let mut found = body(self);
        let inner = std::mem::replace(&mut self.floating, outer);
        self.scope.truncate(names);
        if !complete {
            return Typed::poison();
        }
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

    /// Binds a pattern to a value; tells whether it fits.
    fn bind_value(&mut self, pattern: &Pattern, value: Typed, place: Span, bindings: &mut Vec<(Vec<Var>, Exp)>) -> bool {
        match (pattern, value) {
            (Pattern::Name(name), Typed { exp: Exp::Var(v), ty: Some(_) }) => {
                self.bind_name(&name.text, Binding::Var(v));
                true
            }
            (Pattern::Tuple(parts, _), Typed { exp: Exp::Tuple(exps), ty: Some(Type::Tuple(types)) })
                if parts.len() == exps.len() && types.fields().is_none() && exps.iter().all(|e| matches!(e, Exp::Var(_))) =>
            {
                let values = exps.into_iter().zip(types).map(|(exp, ty)| Typed::new(exp, ty));
                parts.iter().zip(values).fold(true, |fits, (part, value)| self.bind_value(part, value, place, bindings) && fits)
            }
            (pattern, Typed { exp, ty }) => match self.bind_pattern(pattern, ty.as_ref(), place) {
                None => false,
                Some((vars, parts)) => {
                    if ty == Some(Type::Scalar(Scalar::I64)) {
                        self.define_size(vars[0], &exp);
                    }
                    bindings.push((vars, exp));
                    bindings.extend(parts);
                    true
                }
            },
        }
    }

    /// Scalar functions and operators, as they are written with their arguments.
    fn apply_built_in(&mut self, f: &FunctionValue, name: &str, args: Vec<Arg<'_>>, span: Span, hint: Option<&Type>) -> Typed {
        let written: Option<Vec<&ast::Exp>> = args.iter().map(|a| if let Arg::Written(e) = a { Some(*e) } else { None }).collect();
        match (f, &written) {
            (FunctionValue::Scalar(op), Some(args)) => return self.scalar_function(*op, args, span, hint),
            (FunctionValue::Partial(op, k), Some(args)) => return self.partial(*op, *k, args, span),
            _ => {}
        }
        if let Some(takes) = self.arity(f).filter(|takes| *takes != args.len()) {
            let diagnostic = self.wrong_count(name, takes, args.len(), span);
            self.report(diagnostic);
            return self.skip_args(&args);
        }
        if let (FunctionValue::Operator(op), Some(args)) = (f, written) {
            let exp = with_operator(*op, args.into_iter().cloned().collect(), span);
            return self.infer(&exp, hint);
        }
        let mut context = Context::default();
        let mut names = vec![];
        for (k, arg) in args.into_iter().enumerate() {
            let name = ["x", "y", "z"].get(k).map_or_else(|| format!("x_{k}"), |n| n.to_string());
            let place = arg.span();
            let found = match arg {
                Arg::Written(e) => self.infer(e, None),
                Arg::Found(found, _) => found,
            };
            let binding = match found.ty {
                Some(ty) => Binding::Value(found.exp, ty),
                None => Binding::Poison,
            };
            context.scope.push((name.clone(), binding));
            names.push(ast::Exp { kind: ExpKind::Name(name), span: place });
        }
        let exp = match f {
            FunctionValue::Operator(op) => with_operator(*op, names, span),
            _ => {
                let head = match f {
                    FunctionValue::Scalar(op) => op.name().to_string(),
                    FunctionValue::Partial(op, k) => op.partial_name(*k),
                    _ => return Typed::poison(),
                };
                let head = ast::Exp { kind: ExpKind::Name(head), span };
                let args = names.into_iter().map(|value| Argument { name: None, value }).collect();
                ast::Exp { kind: ExpKind::Call(Box::new(head), args), span }
            }
        };
        self.in_context(context, |c| c.infer(&exp, hint))
    }

    /// The type of what a function gives for arguments of these types; nothing of it is kept.
    pub fn trial(&mut self, f: &FunctionValue, types: Vec<Type>, span: Span, application: Application) -> Option<Type> {
        let made = self.program.functions.len();
        let mut args = vec![];
        for ty in types {
            let var = self.program.vars.fresh("x", ty.clone());
            args.push(Arg::Found(Typed::new(Exp::Var(var), ty), span));
        }
        let name = self.describe_function(f).trim_matches('`').to_string();
        self.applications.push(application);
        let found = self.scoped(&Place::Body(&name), span, |c| c.apply(f, &name, args, span, None));
        self.applications.pop();
        self.forget(made);
        found.ty
    }
}

/// `a + b`
fn with_operator(op: Operator, mut args: Vec<ast::Exp>, span: Span) -> ast::Exp {
    let kind = match (op, args.pop(), args.pop()) {
        (Operator::Binary(op), Some(b), Some(a)) => ExpKind::Binary(op, span, Box::new(a), Box::new(b)),
        (Operator::Not, Some(a), None) => ExpKind::Unary(UnaryOp::Not, Box::new(a)),
        _ => ExpKind::Error,
    };
    ast::Exp { kind, span }
}

pub fn are(n: usize) -> String {
    if n == 1 { "1 is".to_string() } else { format!("{n} are") }
}
