//! Derivative operators as they are written: `grad(f, wrt = x)(x, y)`, `jvp(f, (x, y), (dx, dy))`.
//!
//! An operator on a function is a function again (`grad(grad(f))(x)`), made by `derive`; a call of it is a call.

use super::calls::Arg;
use super::derive::{DerivativeKind, Deriving, takes, with_respect_to};
use super::messages::{DERIVATIVE_OPERATORS, brief, count};
use super::{Checker, Typed};
use crate::diagnostic::{Diagnostic, Span};
use crate::ir::{Exp, FunctionId, Op, Type, Var};
use crate::syntax::ast::{self, Argument, ExpKind};

fn kind_of(operator: &str) -> Option<DerivativeKind> {
    use DerivativeKind::*;
    [Grad, ValueAndGrad, Jvp, Vjp, Jacobian, JacFwd, JacRev, Hessian, Hvp].into_iter().find(|kind| kind.name() == operator)
}

/// Whether the operator takes a function alone; the others take a point and directions too, if they are given.
fn gives_function(kind: DerivativeKind) -> bool {
    !matches!(kind, DerivativeKind::Jvp | DerivativeKind::Vjp | DerivativeKind::Hvp)
}

impl<'a> Checker<'a> {
    /// The function that an expression is; `None` if it is none (reported) or has errors itself.
    pub fn function(&mut self, exp: &ast::Exp) -> Option<FunctionId> {
        match &exp.kind {
            ExpKind::Name(name) => {
                if let Some(id) = self.functions.get(name.as_str()).copied() {
                    return (!self.broken.contains(&id) && !self.unknown_results.contains(&id)).then_some(id);
                }
                let diagnostic = if Op::by_name(name).is_some() {
                    Diagnostic::error(exp.span, format!("`{name}` is built in, and only definitions can be differentiated"))
                        .note(format!("define a function that calls it: `def f(x: f64) -> f64 = {name}(x)`"))
                } else if self.lookup(name).is_some() {
                    Diagnostic::error(exp.span, format!("`{name}` is a value, not a function"))
                } else {
                    self.unknown_function(name, exp.span)
                };
                self.report(diagnostic);
                None
            }
            ExpKind::Call(head, args) => {
                let operator = match &head.kind {
                    ExpKind::Name(name) if !self.functions.contains_key(name.as_str()) => kind_of(name),
                    _ => None,
                };
                match operator {
                    Some(kind) => {
                        let (f, wrt, rest) = self.operator_arguments(kind, head.span, args)?;
                        if let (Some(extra), false) = (rest.first(), gives_function(kind)) {
                            self.report(Diagnostic::error(
                                extra.span,
                                format!("with these arguments `{}` gives a value, not a function", kind.name()),
                            ));
                            return None;
                        }
                        if let Some(extra) = rest.first() {
                            let (operator, name) = (kind.name(), brief(&args[0].value));
                            self.report(
                                Diagnostic::error(extra.span, format!("`{operator}` takes a function alone, and gives a function")).note(
                                    format!("write `{operator}({name})({})`", rest.iter().map(|e| brief(e)).collect::<Vec<_>>().join(", ")),
                                ),
                            );
                            return None;
                        }
                        self.derive(f, kind, &wrt, head.span)
                    }
                    None => {
                        self.not_a_function(exp);
                        None
                    }
                }
            }
            ExpKind::Error => None,
            _ => {
                self.not_a_function(exp);
                None
            }
        }
    }

    fn not_a_function(&mut self, exp: &ast::Exp) {
        self.report(
            Diagnostic::error(exp.span, "this is not a function")
                .note("a function is the name of a definition, or a derivative operator on one: `grad(f)`"),
        );
    }

    /// An operator's function, `wrt` and other arguments.
    #[allow(clippy::type_complexity)]
    fn operator_arguments<'e>(
        &mut self,
        kind: DerivativeKind,
        operator: Span,
        args: &'e [Argument],
    ) -> Option<(FunctionId, Vec<usize>, Vec<&'e ast::Exp>)> {
        let mut wrt = None;
        let mut rest = vec![];
        for arg in args {
            match &arg.name {
                None => rest.push(&arg.value),
                Some(name) if name.text == "wrt" => wrt = Some(&arg.value),
                Some(name) => {
                    self.report(
                        Diagnostic::error(name.span, format!("`{}` has no argument `{}`", kind.name(), name.text))
                            .note("the only argument with a name is `wrt`, the parameters to differentiate by"),
                    );
                    return None;
                }
            }
        }
        if rest.is_empty() {
            self.report(
                Diagnostic::error(operator, format!("`{}` takes a function", kind.name())).note(format!("as in `{}(f)`", kind.name())),
            );
            return None;
        }
        let f = self.function(rest.remove(0))?;
        let names = match wrt {
            None => None,
            Some(exp) => Some(self.parameter_names(exp)?),
        };
        match with_respect_to(&self.program, f, names.as_deref()) {
            Ok(positions) => Some((f, positions, rest)),
            Err(diagnostic) => {
                self.report_at(diagnostic, wrt.map_or(operator, |e| e.span), f);
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

    fn derive(&mut self, f: FunctionId, kind: DerivativeKind, wrt: &[usize], span: Span) -> Option<FunctionId> {
        let made = Deriving { program: &mut self.program, memo: &mut self.derived }.derive(f, kind, wrt);
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
        if let Some(definition) = self.module.definitions.get(f.0 as usize) {
            diagnostic = diagnostic.label(definition.name.span, "the function");
        }
        self.report(diagnostic);
    }

    /// A derivative operator that is called by name: `jvp`, `vjp` and `hvp` with their arguments; the others are not
    /// values by themselves.
    pub fn operator_call(&mut self, operator: &str, head: Span, args: &[Argument], span: Span) -> Typed {
        let Some(kind) = kind_of(operator).filter(|_| DERIVATIVE_OPERATORS.contains(&operator)) else { return Typed::poison() };
        let Some((f, wrt, rest)) = self.operator_arguments(kind, head, args) else { return Typed::poison() };
        let name = self.program.function(f).name.clone();
        if gives_function(kind) || rest.is_empty() {
            let arguments: Vec<String> = match rest.as_slice() {
                [] => self.program.function(f).params.iter().map(|p| self.program.vars.name(*p).to_string()).collect(),
                rest => rest.iter().map(|e| brief(e)).collect(),
            };
            self.report(
                Diagnostic::error(span, format!("`{operator}` gives a function, not a value"))
                    .note(format!("call it: `{operator}({name})({})`", arguments.join(", "))),
            );
            return Typed::poison();
        }
        let [point, direction] = rest.as_slice() else {
            let example = match kind {
                DerivativeKind::Vjp => "`vjp(f, (x, y), seed)`",
                DerivativeKind::Hvp => "`hvp(f, (x, y), (dx, dy))`",
                _ => "`jvp(f, (x, y), (dx, dy))`",
            };
            let text = format!(
                "`{operator}` takes 3 arguments, but {} given",
                if args.len() == 1 { "1 is".into() } else { format!("{} are", args.len()) }
            );
            self.report(Diagnostic::error(span, text).note(format!("as in {example}")));
            return Typed::poison();
        };
        let Some(id) = self.derive(f, kind, &wrt, head) else { return Typed::poison() };
        let params = self.program.function(f).params.len();
        let point = self.split(point, params, &takes(&self.program, f));
        let direction = match kind {
            DerivativeKind::Vjp => Some(vec![Arg::Written(direction)]),
            _ => {
                let by = format!("`{name}` is differentiated by {}", count(wrt.len(), "parameter"));
                self.split(direction, wrt.len(), &by)
            }
        };
        match (point, direction) {
            (Some(mut args), Some(direction)) => {
                args.extend(direction);
                self.call_function(id, &format!("{operator}({name})"), args, span)
            }
            _ => Typed::poison(),
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
