//! Text for messages: types, short expressions, what to write instead; and the names that an expression calls.

use super::Checker;
use super::scope::Binding;
use crate::bind::nearest;
use crate::diagnostic::{Diagnostic, Span};
use crate::ir::{Size, Type};
use crate::syntax::ast::{BinaryOp, BinderKind, Exp, ExpKind, Operator, Pattern, Subscript, Trip, UnaryOp};

/// What to write where no type is meant by a name.
pub const TYPES: &str =
    "the types are `f64`, `f32`, `i64`, `i32`, `bool`, arrays `[n, m]f64`, tuples `(f64, [n]i64)`, records `{a: f64}` and names by `type`";

pub const DERIVATIVE_OPERATORS: [&str; 9] = ["grad", "value_and_grad", "jacobian", "jacfwd", "jacrev", "hessian", "jvp", "vjp", "hvp"];

/// Functions of functions that are elaborated to binders and loops.
pub const COMBINATORS: [&str; 5] = ["map", "reduce", "scan", "reduce_by_index", "scatter"];

impl Checker<'_> {
    pub fn describe(&self, ty: &Type) -> String {
        ty.describe(&|v| self.program.vars.name(v).to_string())
    }
    /// Two types that differ, in words that differ.
    pub fn describe_both(&self, a: &Type, b: &Type) -> (String, String) {
        let (short, other) = (self.describe(a), self.describe(b));
        if short != other {
            return (short, other);
        }
        let name = |v| self.program.vars.name(v).to_string();
        (a.describe_fully(&name), b.describe_fully(&name))
    }
    pub fn describe_size(&self, size: &Size) -> String {
        size.describe(&|v| self.program.vars.name(v).to_string())
    }

    /// Adds a note on what makes two types different, where that is worth saying.
    pub fn explain_difference(&self, diagnostic: Diagnostic, found: &Type, want: &Type) -> Diagnostic {
        match (found, want) {
            (Type::Scalar(from), Type::Scalar(to)) if from.is_number() && to.is_number() && from != to => {
                let name = to.name();
                diagnostic.note(match (from.is_float(), to.is_float()) {
                    (false, true) => format!("there are no implicit conversions; `{name}(e)` converts an integer to a float"),
                    (true, false) => format!("there are no implicit conversions; `{name}(e)` converts a float to an integer, towards zero"),
                    _ => format!("there are no implicit conversions; `{name}(e)` converts an `{}` to an `{name}`", from.name()),
                })
            }
            (Type::Array(a, from), Type::Array(b, to)) if from != to && a.len() == b.len() && from.is_number() && to.is_number() => {
                diagnostic.note(format!("there are no implicit conversions; `for i. {}(x[i])` converts each element", to.name()))
            }
            (Type::Array(a, s), Type::Array(b, t)) if s == t && a.len() == b.len() => {
                let differing = a.iter().zip(b).find(|(x, y)| self.expand(x).axis() != self.expand(y).axis());
                match differing {
                    Some((x, y)) if x.as_constant().is_some() && y.as_constant().is_some() => diagnostic,
                    Some((x, y)) => {
                        let (x, y) = (self.describe_size(x), self.describe_size(y));
                        if x == y {
                            diagnostic.note(format!("these are two different sizes that are both named `{x}`"))
                        } else {
                            diagnostic.note(format!("the sizes `{x}` and `{y}` are not known to be equal"))
                        }
                    }
                    None => diagnostic,
                }
            }
            _ => self.explain_structure(diagnostic, found, want),
        }
    }

    /// The names in scope and those of functions that are closest to `name`.
    pub fn similar_variable(&self, name: &str) -> Option<String> {
        closest(name, self.scope.iter().map(|(n, _)| n.as_str()))
    }
    /// What is wrong with a call of `name`, and what it may have been meant to be.
    pub fn unknown_function(&self, name: &str, span: Span) -> Diagnostic {
        let diagnostic = Diagnostic::error(span, format!("unknown function `{name}`"));
        match name {
            "sum" | "prod" | "any" | "all" | "argmax" | "argmin" => {
                diagnostic.note(format!("`{name}` names the index it runs over: `{name} i. x[i]`"))
            }
            "len" | "length" | "size" | "shape" => {
                diagnostic.note("sizes have names: the type `[n]f64` of a parameter binds `n`, which is a number in the body")
            }
            "pow" | "power" => diagnostic.note("a power is written `a ^ b`"),
            "zeros" | "ones" | "full" | "fill" => diagnostic.note("an array is made by `for`: `for i in 0..n. 0.0`"),
            _ => match usual_name(name).map(String::from).or_else(|| self.similar_function(name)) {
                Some(similar) => diagnostic.note(format!("did you mean `{similar}`?")),
                None => diagnostic,
            },
        }
    }
    fn similar_function(&self, name: &str) -> Option<String> {
        let built_in = crate::scalar::Op::functions().map(|op| op.name()).chain(DERIVATIVE_OPERATORS).chain(COMBINATORS);
        let local = self.scope.iter().filter(|(_, b)| matches!(b, Binding::Function(_))).map(|(n, _)| n.as_str());
        closest(name, self.functions.keys().copied().chain(built_in).chain(local).chain(crate::library::names()))
    }
}

/// What a function is called here that has another name elsewhere.
fn usual_name(name: &str) -> Option<&'static str> {
    Some(match name {
        "ln" => "log",
        "fabs" => "abs",
        "determinant" => "det",
        "inv" => "inverse",
        "eye" => "identity",
        "mm" | "matrix_multiply" | "multiply" => "matmul",
        "mv" => "matvec",
        "inner" => "dot",
        "average" | "avg" => "mean",
        "var" => "variance",
        "stddev" | "stdev" => "std",
        "eig" | "eigvals" | "eigvalsh" => "eigenvalues",
        "lstsq" => "least_squares",
        "concatenate" | "append" => "concat",
        "clamp" => "clip",
        "interp" => "interpolate",
        "trapz" => "trapezoid",
        "range" => "arange",
        "flip" => "reverse",
        _ => return None,
    })
}

/// The candidate most like `name`. Names of one letter are all alike.
pub fn closest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    let long = |name: &str| name.chars().count() > 1;
    nearest(name, candidates.filter(|c| long(c) && *c != name)).filter(|_| long(name)).map(str::to_string)
}

/// A short expression as text; long ones end in `…`.
pub fn brief(exp: &Exp) -> String {
    let text = spell(exp, 3);
    if text.chars().count() <= 32 { text } else { "…".to_string() }
}

/// The same, in parentheses where something else would be read without them.
pub fn operand(exp: &Exp) -> String {
    let text = brief(exp);
    match &exp.kind {
        ExpKind::Unary(..) | ExpKind::Binary(..) | ExpKind::If(..) | ExpKind::Let(..) | ExpKind::Binder(..) if text != "…" => {
            format!("({text})")
        }
        _ => text,
    }
}

fn spell(exp: &Exp, depth: usize) -> String {
    if depth == 0 {
        return match &exp.kind {
            ExpKind::Name(name) => name.clone(),
            ExpKind::Int(k) => k.to_string(),
            _ => "…".to_string(),
        };
    }
    let inner = |e: &Exp| spell(e, depth - 1);
    let list = |es: &[Exp]| es.iter().map(inner).collect::<Vec<_>>().join(", ");
    match &exp.kind {
        ExpKind::Name(name) => name.clone(),
        ExpKind::Int(k) => k.to_string(),
        ExpKind::Float(x) => format!("{x:?}"),
        ExpKind::Bool(b) => b.to_string(),
        ExpKind::Open(name) => format!("?{name}"),
        ExpKind::Unary(UnaryOp::Neg, a) => format!("-{}", inner(a)),
        ExpKind::Unary(UnaryOp::Not, a) => format!("not {}", inner(a)),
        ExpKind::Binary(op, _, a, b) => {
            let side = |e: &Exp| match &e.kind {
                ExpKind::Binary(..) => format!("({})", inner(e)),
                _ => inner(e),
            };
            match op {
                BinaryOp::Pow => format!("{}^{}", side(a), side(b)),
                op => format!("{} {} {}", side(a), symbol(*op), side(b)),
            }
        }
        ExpKind::Call(f, args) => {
            let args: Vec<String> = args.iter().map(|a| inner(&a.value)).collect();
            format!("{}({})", inner(f), args.join(", "))
        }
        ExpKind::Index(array, keys) => {
            let keys: Vec<String> = keys
                .iter()
                .map(|k| match k {
                    Subscript::At(e) => inner(e),
                    Subscript::Slice(a, b) => format!("{}..{}", inner(a), inner(b)),
                    Subscript::All(_) => ":".to_string(),
                })
                .collect();
            format!("{}[{}]", inner(array), keys.join(", "))
        }
        ExpKind::Bracket(items) => format!("[{}]", list(items)),
        ExpKind::Tuple(items) => format!("({})", list(items)),
        ExpKind::Ascribe(e, _) => inner(e),
        ExpKind::Field(e, name) => format!("{}.{}", spell(e, depth), name.text),
        ExpKind::Record(fields) => {
            let fields: Vec<String> = fields.iter().map(|(name, e)| format!("{}: {}", name.text, inner(e))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        ExpKind::Operator(Operator::Binary(op)) => format!("({})", symbol(*op)),
        ExpKind::Operator(Operator::Not) => "(not)".to_string(),
        ExpKind::Lambda(lambda) => match lambda.params.iter().map(simple_name).collect::<Option<Vec<_>>>() {
            Some(params) => format!("|{}| {}", params.join(", "), inner(&lambda.body)),
            None => "|…| …".to_string(),
        },
        ExpKind::Singleton(..)
        | ExpKind::Let(..)
        | ExpKind::Binder(..)
        | ExpKind::If(..)
        | ExpKind::History(..)
        | ExpKind::Loop(..)
        | ExpKind::Annotated(..)
        | ExpKind::With(..)
        | ExpKind::Error => "…".to_string(),
    }
}

fn simple_name(pattern: &Pattern) -> Option<&str> {
    match pattern {
        Pattern::Name(name) => Some(&name.text),
        Pattern::Tuple(..) | Pattern::Sum(..) => None,
    }
}

pub fn symbol(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Or => "or",
        BinaryOp::And => "and",
        BinaryOp::Eq => "==",
        BinaryOp::Ne => "!=",
        BinaryOp::Lt => "<",
        BinaryOp::Le => "<=",
        BinaryOp::Gt => ">",
        BinaryOp::Ge => ">=",
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::IDiv => "div",
        BinaryOp::IMod => "mod",
        BinaryOp::Pow => "^",
    }
}

pub fn word(kind: BinderKind) -> &'static str {
    match kind {
        BinderKind::For => "for",
        BinderKind::Sum => "sum",
        BinderKind::Prod => "prod",
        BinderKind::Max => "max",
        BinderKind::Min => "min",
        BinderKind::ArgMax => "argmax",
        BinderKind::ArgMin => "argmin",
        BinderKind::Any => "any",
        BinderKind::All => "all",
    }
}

/// `1 argument`, `2 arguments`
pub fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

fn for_each_child<'a>(exp: &'a Exp, f: &mut dyn FnMut(&'a Exp)) {
    match &exp.kind {
        ExpKind::Name(_)
        | ExpKind::Int(_)
        | ExpKind::Float(_)
        | ExpKind::Bool(_)
        | ExpKind::Open(_)
        | ExpKind::Operator(_)
        | ExpKind::Error => {}
        ExpKind::Lambda(lambda) => f(&lambda.body),
        ExpKind::Unary(_, a) | ExpKind::Ascribe(a, _) | ExpKind::Field(a, _) => f(a),
        ExpKind::Record(fields) => fields.iter().for_each(|(_, e)| f(e)),
        ExpKind::Binary(_, _, a, b) => {
            f(a);
            f(b)
        }
        ExpKind::Call(head, args) => {
            f(head);
            args.iter().for_each(|a| f(&a.value))
        }
        ExpKind::Index(array, keys) => {
            f(array);
            for key in keys {
                match key {
                    Subscript::At(e) => f(e),
                    Subscript::Slice(a, b) => {
                        f(a);
                        f(b)
                    }
                    Subscript::All(_) => {}
                }
            }
        }
        ExpKind::Bracket(items) | ExpKind::Tuple(items) => items.iter().for_each(f),
        ExpKind::Singleton(keys, value) => {
            keys.iter().for_each(&mut *f);
            f(value)
        }
        ExpKind::Let(_, _, value, body) => {
            f(value);
            f(body)
        }
        ExpKind::Binder(_, indices, body) => {
            for (lo, hi) in indices.iter().filter_map(|i| i.range.as_ref()) {
                f(lo);
                f(hi)
            }
            f(body)
        }
        ExpKind::If(c, a, b) => {
            f(c);
            f(a);
            if let Some(b) = b {
                f(b)
            }
        }
        ExpKind::Loop(_, init, trip, body) => {
            f(init);
            match &**trip {
                Trip::For(index) => {
                    if let Some((lo, hi)) = &index.range {
                        f(lo);
                        f(hi)
                    }
                }
                Trip::While(condition) => f(condition),
            }
            f(body)
        }
        ExpKind::Annotated(annotations, e) => {
            annotations.iter().flat_map(|a| &a.arguments).for_each(|a| f(&a.value));
            f(e)
        }
        ExpKind::With(array, keys, value) => {
            f(array);
            for key in keys {
                match key {
                    Subscript::At(e) => f(e),
                    Subscript::Slice(a, b) => {
                        f(a);
                        f(b)
                    }
                    Subscript::All(_) => {}
                }
            }
            f(value)
        }
        ExpKind::History(_, init, index, body) => {
            f(init);
            if let Some((lo, hi)) = &index.range {
                f(lo);
                f(hi)
            }
            f(body)
        }
    }
}

/// All names that occur, with their places.
pub fn names<'a>(exp: &'a Exp, out: &mut Vec<(&'a str, Span)>) {
    if let ExpKind::Name(name) = &exp.kind {
        out.push((name, exp.span));
    }
    for_each_child(exp, &mut |e| names(e, out));
}

/// Whether a name occurs, whatever it stands for.
pub fn mentions(exp: &Exp, name: &str) -> bool {
    let mut found = matches!(&exp.kind, ExpKind::Name(n) if n == name);
    for_each_child(exp, &mut |e| found = found || mentions(e, name));
    found
}
