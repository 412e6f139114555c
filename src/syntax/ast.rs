//! The syntax tree, as close to the text as a checker can use. Every node has its span.

use crate::diagnostic::Span;
use crate::types::Scalar;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    pub text: String,
    pub span: Span,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Module {
    pub types: Vec<TypeDefinition>,
    pub definitions: Vec<Definition>,
}

/// `type Name = T`
#[derive(Clone, Debug, PartialEq)]
pub struct TypeDefinition {
    pub name: Name,
    pub ty: TypeExp,
    pub span: Span,
}

/// `def name(params) -> result = body`, or `def jvp name(…)`, which has both words for its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    pub name: Name,
    /// The function that it is a derivative of.
    pub derivative_of: Option<(Mode, Name)>,
    pub params: Vec<Param>,
    pub result: Option<TypeExp>,
    pub body: Exp,
    pub span: Span,
}

/// Which derivative a definition gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Jvp,
    Vjp,
}

impl Mode {
    pub fn word(self) -> &'static str {
        match self {
            Mode::Jvp => "jvp",
            Mode::Vjp => "vjp",
        }
    }
}

impl Definition {
    /// Whether a parameter is a function: calls of the definition are then replaced by its body.
    pub fn takes_functions(&self) -> bool {
        self.params.iter().any(|p| matches!(p.ty.kind, TypeKind::Function(..)))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    pub name: Name,
    pub ty: TypeExp,
    /// `static k: i64`: code may be made for its values; where the word stands.
    pub fixed: Option<Span>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TypeExp {
    pub kind: TypeKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TypeKind {
    Scalar(Scalar),
    /// `[n, m]T`
    Array(Vec<Exp>, Box<TypeExp>),
    Tuple(Vec<TypeExp>),
    /// `lower [n, n]T`, `band(k) [n, n]T`: the word, its widths, and the array.
    Structured(Name, Vec<Exp>, Box<TypeExp>),
    /// `{ a: T, b: T }`, at least one field.
    Record(Vec<(Name, TypeExp)>),
    /// `T -> U`, `(T, U) -> V`: of parameters alone.
    Function(Vec<TypeExp>, Box<TypeExp>),
    /// A name that is no built-in type.
    Name(String),
    /// Stands where the text could not be read; already reported.
    Error,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Exp {
    pub kind: ExpKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ExpKind {
    Name(String),
    /// A whole number: takes the type its context wants. Kept unsigned, `-` is an operator.
    Int(u64),
    Float(f64),
    Bool(bool),
    /// `?m`, in the axes of a type alone: a size that a definition computes.
    Open(String),
    Unary(UnaryOp, Box<Exp>),
    /// The operator's own span is kept for messages.
    Binary(BinaryOp, Span, Box<Exp>, Box<Exp>),
    /// `f(a, b, wrt = (x, y))`; the function is any expression (`grad(f)(x)` is a call of a call).
    Call(Box<Exp>, Vec<Argument>),
    Index(Box<Exp>, Vec<Subscript>),
    /// `[e, ...]`: an Iverson bracket if it holds one expression of type `bool`, else an array literal.
    Bracket(Vec<Exp>),
    /// `{k -> v}`; several keys for `{(k, l) -> v}`.
    Singleton(Vec<Exp>, Box<Exp>),
    /// Never of length 1.
    Tuple(Vec<Exp>),
    /// `{ a: e, b: e }`, at least one field.
    Record(Vec<(Name, Exp)>),
    /// `e.a`
    Field(Box<Exp>, Name),
    /// `let pattern: T = value; body`
    Let(Pattern, Option<TypeExp>, Box<Exp>, Box<Exp>),
    /// `sum i, j in 0..n. body`
    Binder(BinderKind, Vec<IndexBinding>, Box<Exp>),
    If(Box<Exp>, Box<Exp>, Option<Box<Exp>>),
    /// `history pattern = init for index in 0..size do body`
    History(Pattern, Box<Exp>, Box<IndexBinding>, Box<Exp>),
    /// `loop pattern = init for index in a..b do body`, or `… while condition do body`
    Loop(Pattern, Box<Exp>, Box<Trip>, Box<Exp>),
    /// `#[name(e)] e`, one or several
    Annotated(Vec<Annotation>, Box<Exp>),
    /// `array with [i, j] = value`
    With(Box<Exp>, Vec<Subscript>, Box<Exp>),
    /// `|x, (y, z)| body`; shared, since it is kept as a value while it is in scope.
    Lambda(Arc<Lambda>),
    /// `(+)`, an operator as a function.
    Operator(Operator),
    /// `(e : T)`
    Ascribe(Box<Exp>, TypeExp),
    /// Stands where the text could not be read; already reported.
    Error,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Lambda {
    /// At least one.
    pub params: Vec<Pattern>,
    pub body: Exp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Binary(BinaryOp),
    Not,
}

/// `#[name(e)]`, `#[name(key = e)]`
#[derive(Clone, Debug, PartialEq)]
pub struct Annotation {
    pub name: Name,
    pub arguments: Vec<Argument>,
    pub span: Span,
}

/// How often a loop runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Trip {
    For(IndexBinding),
    While(Exp),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    pub name: Option<Name>,
    pub value: Exp,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Subscript {
    At(Exp),
    /// `a..b`
    Slice(Exp, Exp),
    /// `:`
    All(Span),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    Name(Name),
    Tuple(Vec<Pattern>, Span),
    /// `sum p`: in a `loop` alone, as the whole pattern or a part of it. What a step yields for it is added.
    Sum(Box<Pattern>, Span),
}

impl Pattern {
    pub fn span(&self) -> Span {
        match self {
            Pattern::Name(name) => name.span,
            Pattern::Tuple(_, span) | Pattern::Sum(_, span) => *span,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct IndexBinding {
    pub name: Name,
    pub range: Option<(Exp, Exp)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinderKind {
    For,
    Sum,
    Prod,
    Max,
    Min,
    ArgMax,
    ArgMin,
    Any,
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    Neg,
    Not,
}

/// Loosest first: `or`, `and`, comparisons (not chained), `+ -`, `* / div mod`, unary minus, `^` (to the right).
/// `not` stands between `and` and the comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    Or,
    And,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Add,
    Sub,
    Mul,
    Div,
    IDiv,
    IMod,
    Pow,
}
