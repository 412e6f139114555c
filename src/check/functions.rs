//! Functions as values: lambdas, definitions, operators, derivatives.
//!
//! A function is known where it is used: it is bound by a `let` or a parameter, passed on and applied, and nothing of it
//! is left in the IR. A lambda keeps the scope it stands in; its body is elaborated at each application, with the types
//! of the arguments (`apply`).

use super::apply::Application;
use super::scope::Binding;
use super::sparse::Storage;
use super::templates::Callee;
use super::{Checker, messages};
use crate::check::derive::DerivativeKind;
use crate::diagnostic::{Diagnostic, Span};
use crate::ir::{FunctionId, Op, Type};
use crate::syntax::ast::{self, ExpKind, Lambda, Operator, Pattern, TypeExp, TypeKind};
use messages::{COMBINATORS, DERIVATIVE_OPERATORS, brief, count, symbol};
use rustc_hash::FxHashMap;
use std::rc::Rc;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub enum FunctionValue {
    Function(FunctionId),
    /// A definition whose parameters do not have one type each: generic, or with functions among them.
    Definition(usize),
    Scalar(Op),
    /// The partial derivative of a scalar operation.
    Partial(Op, usize),
    Operator(Operator),
    Lambda(Rc<Closure>),
    Derivative(Rc<Derivative>),
    /// Something erroneous.
    Poison,
}

/// A lambda and what it may mention.
#[derive(Debug)]
pub struct Closure {
    pub lambda: Arc<Lambda>,
    pub span: Span,
    /// The name it is bound to.
    pub name: Option<String>,
    pub context: Context,
}

/// A derivative of a function whose parameters have no types before it is applied.
#[derive(Debug)]
pub struct Derivative {
    pub kind: DerivativeKind,
    pub of: FunctionValue,
    pub storage: Option<Storage>,
    pub wrt: Option<Vec<String>>,
    pub span: Span,
}

/// The names and types that an expression may mention.
#[derive(Clone, Debug, Default)]
pub struct Context {
    pub scope: Vec<(String, Binding)>,
    /// What the type variables of the definition stand for.
    pub types: FxHashMap<String, Type>,
}

impl FunctionValue {
    /// The function under the name it is bound to.
    pub fn named(self, name: &str) -> FunctionValue {
        match self {
            FunctionValue::Lambda(closure) if closure.name.is_none() => FunctionValue::Lambda(Rc::new(Closure {
                lambda: closure.lambda.clone(),
                span: closure.span,
                name: Some(name.to_string()),
                context: closure.context.clone(),
            })),
            f => f,
        }
    }
}

impl<'a> Checker<'a> {
    pub fn context(&self) -> Context {
        Context { scope: self.scope.clone(), types: self.type_variables.clone() }
    }

    /// Runs `f` with these names instead of those in scope.
    pub fn in_context<T>(&mut self, context: Context, f: impl FnOnce(&mut Self) -> T) -> T {
        let scope = std::mem::replace(&mut self.scope, context.scope);
        let types = std::mem::replace(&mut self.type_variables, context.types);
        let result = f(self);
        self.scope = scope;
        self.type_variables = types;
        result
    }

    /// The definition that a name stands for where it is written. The library knows its own definitions alone: one of the
    /// program hides nothing that is built in from it.
    pub fn definition_named(&self, name: &str, at: Span) -> Option<usize> {
        let k = *self.functions.get(name)?;
        (!at.is_of_library() || self.module.definitions[k].span.is_of_library()).then_some(k)
    }

    /// The function that a name stands for. A local value hides definitions, but not what is built in.
    pub fn named_function(&self, name: &str, at: Span) -> Option<FunctionValue> {
        match self.lookup(name) {
            Some(Binding::Function(f)) => return Some(f),
            Some(Binding::Poison) => return Some(FunctionValue::Poison),
            Some(Binding::Var(_) | Binding::Value(..) | Binding::Summed(_)) => {}
            None => {
                if let Some(k) = self.definition_named(name, at) {
                    return Some(match self.callees[k] {
                        Callee::Function(id) => FunctionValue::Function(id),
                        Callee::Generic(_) | Callee::Template => FunctionValue::Definition(k),
                    });
                }
            }
        }
        if let Some(op) = Op::by_name(name) {
            return Some(FunctionValue::Scalar(op));
        }
        Op::by_partial_name(name).map(|(op, k)| FunctionValue::Partial(op, k))
    }

    /// Whether an expression is a function, by its form and the names in scope.
    pub fn is_function(&self, exp: &ast::Exp) -> bool {
        match &exp.kind {
            ExpKind::Lambda(_) | ExpKind::Operator(_) => true,
            ExpKind::Name(name) => match self.lookup(name) {
                Some(Binding::Function(_)) => true,
                Some(Binding::Var(_) | Binding::Value(..) | Binding::Poison | Binding::Summed(_)) => false,
                None => self.is_function_name(name),
            },
            ExpKind::Call(head, args) => match &head.kind {
                ExpKind::Name(name) if self.is_operator_name(name, head.span) => args.iter().filter(|a| a.name.is_none()).count() == 1,
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether the name is that of a derivative operator here.
    pub fn is_operator_name(&self, name: &str, at: Span) -> bool {
        let hidden = match self.lookup(name) {
            Some(Binding::Function(_)) => true,
            Some(_) => false,
            None => self.definition_named(name, at).is_some(),
        };
        DERIVATIVE_OPERATORS.contains(&name) && !hidden
    }

    /// The function that an expression is; `None` if it is none (reported) or has errors itself.
    pub fn function_value(&mut self, exp: &ast::Exp) -> Option<FunctionValue> {
        match &exp.kind {
            ExpKind::Lambda(lambda) => {
                let context = self.context();
                Some(FunctionValue::Lambda(Rc::new(Closure { lambda: lambda.clone(), span: exp.span, name: None, context })))
            }
            ExpKind::Operator(op) => Some(FunctionValue::Operator(*op)),
            ExpKind::Name(name) => {
                if let Some(f) = self.named_function(name, exp.span) {
                    return self.usable(f);
                }
                let diagnostic = if self.lookup(name).is_some() {
                    self.value_not_function(name, exp.span)
                } else if COMBINATORS.contains(&name.as_str()) {
                    Diagnostic::error(exp.span, format!("`{name}` is called with all its arguments, and is not passed on"))
                        .note(format!("write a lambda that calls it, as in `|x| {name}(…, x)`"))
                } else if self.is_operator_name(name, exp.span) {
                    Diagnostic::error(exp.span, format!("`{name}` takes a function, and is not passed on by itself"))
                        .note(format!("pass on `{name}(f)`"))
                } else {
                    self.unknown_function(name, exp.span)
                };
                self.report(diagnostic);
                None
            }
            ExpKind::Call(head, args) => match &head.kind {
                ExpKind::Name(name) if self.is_operator_name(name, head.span) => self.operator_function(name, head.span, args),
                _ => {
                    self.not_a_function(exp);
                    None
                }
            },
            ExpKind::Error => None,
            _ => {
                self.not_a_function(exp);
                None
            }
        }
    }

    /// Not a function whose parameters or result could not be read.
    fn usable(&self, f: FunctionValue) -> Option<FunctionValue> {
        match f {
            FunctionValue::Function(id) if self.broken.contains(&id) || self.unknown_results.contains(&id) => None,
            FunctionValue::Definition(k) if self.broken_definition(k) => None,
            FunctionValue::Poison => None,
            f => Some(f),
        }
    }

    /// A function as one of the type that is written.
    pub fn function_of_type(&mut self, f: FunctionValue, written: &TypeExp, span: Span) -> Option<FunctionValue> {
        let TypeKind::Function(params, result) = &written.kind else {
            self.report(
                Diagnostic::error(span, "a function stands here, where a value is wanted").label(written.span, "the type that is written"),
            );
            return None;
        };
        if let Some(takes) = self.arity(&f).filter(|n| *n != params.len()) {
            let text = format!("{} takes {}, not {}", self.describe_function(&f), count(takes, "argument"), params.len());
            self.report(Diagnostic::error(span, text).label(written.span, "the type that is written"));
            return None;
        }
        let types = params.iter().map(|t| self.read_type(t)).collect::<Option<Vec<Type>>>()?;
        let want = self.read_type(result)?;
        let application = Application { span: written.span, text: "its parameters have these types".to_string(), template: false };
        let given = self.trial(&f, types, span, application)?;
        if self.same_type(&given, &want) {
            return Some(f);
        }
        let text = format!("this gives `{}`, but `{}` is wanted", self.describe(&given), self.describe(&want));
        let diagnostic = Diagnostic::error(span, text).label(written.span, "the type that is written");
        let diagnostic = self.explain_difference(diagnostic, &given, &want);
        self.report(diagnostic);
        None
    }

    fn not_a_function(&mut self, exp: &ast::Exp) {
        let note = match &exp.kind {
            ExpKind::Field(_, name) => format!("a function is called by its name alone: `{}(…)`", name.text),
            _ => "a function is a lambda `|x| e`, an operator `(+)`, the name of a function, or a derivative operator on one: `grad(f)`"
                .to_string(),
        };
        self.report(Diagnostic::error(exp.span, "this is not a function").note(note));
    }

    pub fn value_not_function(&self, name: &str, span: Span) -> Diagnostic {
        let diagnostic = Diagnostic::error(span, format!("`{name}` is a value, not a function"));
        match self.functions.get(name) {
            Some(k) => diagnostic.label(self.module.definitions[*k].name.span, "this definition is hidden by a name bound closer"),
            None => diagnostic,
        }
    }

    /// A function where a value is wanted.
    pub fn function_not_value(&mut self, exp: &ast::Exp) {
        let text = match &exp.kind {
            ExpKind::Name(name) => format!("`{name}` is a function, not a value"),
            ExpKind::Operator(_) => "an operator is a function, not a value".to_string(),
            _ => "a lambda is a function, not a value".to_string(),
        };
        let note = match &exp.kind {
            ExpKind::Name(name) => format!("call it: `{name}(…)`"),
            _ => "apply it, pass it to a function as in `map(|x| 2 * x, xs)`, or name it: `let g = |x| 2 * x;`".to_string(),
        };
        self.report(Diagnostic::error(exp.span, text).note(note));
    }

    /// How many arguments a function takes.
    pub fn arity(&self, f: &FunctionValue) -> Option<usize> {
        Some(match f {
            FunctionValue::Function(id) => self.program.function(*id).visible().count(),
            FunctionValue::Definition(k) => self.module.definitions[*k].params.len(),
            FunctionValue::Scalar(op) => op.arity(),
            FunctionValue::Operator(Operator::Binary(_)) => 2,
            FunctionValue::Operator(Operator::Not) => 1,
            FunctionValue::Lambda(closure) => closure.lambda.params.len(),
            FunctionValue::Derivative(d) => match d.kind {
                DerivativeKind::Jvp | DerivativeKind::Vjp | DerivativeKind::Hvp => return None,
                _ => return self.arity(&d.of),
            },
            FunctionValue::Partial(..) | FunctionValue::Poison => return None,
        })
    }

    /// The name of a parameter, where it has one.
    pub fn parameter_name(&self, f: &FunctionValue, k: usize) -> Option<String> {
        match f {
            FunctionValue::Function(id) => self.program.function(*id).params.get(k).map(|p| self.program.vars.name(*p).to_string()),
            FunctionValue::Definition(d) => self.module.definitions[*d].params.get(k).map(|p| p.name.text.clone()),
            FunctionValue::Lambda(closure) => match closure.lambda.params.get(k)? {
                Pattern::Name(name) if name.text != "_" => Some(name.text.clone()),
                Pattern::Name(_) | Pattern::Tuple(..) | Pattern::Sum(..) => None,
            },
            FunctionValue::Derivative(d) => self.parameter_name(&d.of, k),
            FunctionValue::Scalar(_) | FunctionValue::Partial(..) | FunctionValue::Operator(_) | FunctionValue::Poison => None,
        }
    }

    /// The name of a part of a parameter that is taken apart.
    pub fn part_name(&self, f: &FunctionValue, k: usize, part: usize) -> Option<String> {
        let FunctionValue::Lambda(closure) = f else { return None };
        let Pattern::Tuple(parts, _) = closure.lambda.params.get(k)? else { return None };
        match parts.get(part)? {
            Pattern::Name(name) if name.text != "_" => Some(name.text.clone()),
            Pattern::Name(_) | Pattern::Tuple(..) | Pattern::Sum(..) => None,
        }
    }

    /// The function in a message.
    pub fn describe_function(&self, f: &FunctionValue) -> String {
        match f {
            FunctionValue::Function(id) => format!("`{}`", self.program.function(*id).name),
            FunctionValue::Definition(k) => format!("`{}`", self.module.definitions[*k].name.text),
            FunctionValue::Scalar(op) => format!("`{}`", op.name()),
            FunctionValue::Partial(op, k) => format!("`{}`", op.partial_name(*k)),
            FunctionValue::Operator(Operator::Binary(op)) => format!("`({})`", symbol(*op)),
            FunctionValue::Operator(Operator::Not) => "`(not)`".to_string(),
            FunctionValue::Lambda(closure) => match &closure.name {
                Some(name) => format!("`{name}`"),
                None => "this lambda".to_string(),
            },
            FunctionValue::Derivative(d) => match &d.of {
                FunctionValue::Lambda(closure) if closure.name.is_none() => format!("the `{}` of this lambda", d.kind.name()),
                of => format!("`{}({})`", d.kind.name(), self.describe_function(of).trim_matches('`')),
            },
            FunctionValue::Poison => "this".to_string(),
        }
    }
}

/// A function by its expression, for messages: its text if it is short.
pub fn function_text(exp: &ast::Exp) -> String {
    match &exp.kind {
        ExpKind::Lambda(_) => "this lambda".to_string(),
        _ => format!("`{}`", brief(exp)),
    }
}
