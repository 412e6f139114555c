//! The scalar operations: one row each.
//!
//! A row (`rows.rs`) says how an operation is written, and for each list of argument types it takes: its value, its
//! partial derivatives, its spelling in C, what it costs and where tests sample it. Every stage reads the rows; none
//! knows an operation by itself.

pub mod formula;
mod numerics;
mod rows;

use crate::fault::Fault;
use crate::types::{Lit, Scalar};
pub use formula::{Formula, Uses};
use std::sync::LazyLock;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    // on floats and integers
    Add,
    Sub,
    Mul,
    Neg,
    Abs,
    Sign,
    Min,
    Max,
    /// `x ^ y`: float by float, float by integer, integer by integer.
    Pow,
    // on floats
    Div,
    Floor,
    Ceil,
    Round,
    Sqrt,
    Cbrt,
    Exp,
    Exp2,
    Expm1,
    Log,
    Log2,
    Log10,
    Log1p,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Atan2,
    Sinh,
    Cosh,
    Tanh,
    Sigmoid,
    Erf,
    Erfc,
    Lgamma,
    Digamma,
    /// `polygamma(k, x)`, an integer order and a float: what `digamma` differentiates to.
    Polygamma,
    Hypot,
    // on integers, floored
    IDiv,
    IMod,
    // comparisons
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    // logic, strict in both arguments
    And,
    Or,
    Not,
    // conversions
    ToF64,
    ToI64,
}

/// How an operation is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// `sin(x)`
    Function,
    /// `x + y`
    Infix(&'static str, Precedence),
    /// `-x`
    Prefix(&'static str, Precedence),
}

/// How tightly an operator binds, loosest first. Comparisons do not chain; powers associate to the right, other infix
/// operators to the left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precedence {
    Or,
    And,
    Not,
    Comparison,
    Sum,
    Product,
    Negation,
    Power,
}

/// What one execution counts as in the cost model. Only floats count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostClass {
    Free,
    Addition,
    Multiplication,
    Call,
}

/// An operation: how it is written, and what it does to each list of types it takes.
struct Row {
    name: &'static str,
    notation: Notation,
    cases: Vec<Case>,
}

/// An operation on arguments of certain types.
pub struct Case {
    value: Value,
    c: &'static str,
    cost: CostClass,
    /// One per argument; empty where no argument has a derivative.
    partials: Vec<Option<Formula>>,
    /// For each argument where tests take it from: an interval in which the operation is smooth.
    samples: Vec<(f64, f64)>,
}

/// The value of an operation, by the types of its arguments and result.
#[derive(Clone, Copy)]
enum Value {
    Float1(fn(f64) -> f64),
    Float2(fn(f64, f64) -> f64),
    FloatInt(fn(f64, i64) -> f64),
    IntFloat(fn(i64, f64) -> f64),
    Int1(fn(i64) -> i64),
    Int2(fn(i64, i64) -> i64),
    TryInt2(fn(i64, i64) -> Result<i64, Fault>),
    FloatTest(fn(f64, f64) -> bool),
    IntTest(fn(i64, i64) -> bool),
    BoolTest(fn(bool, bool) -> bool),
    Bool1(fn(bool) -> bool),
    IntToFloat(fn(i64) -> f64),
    BoolToFloat(fn(bool) -> f64),
    TryFloatToInt(fn(f64) -> Result<i64, Fault>),
    BoolToInt(fn(bool) -> i64),
}

impl Value {
    fn signature(self) -> (&'static [Scalar], Scalar) {
        use Scalar::*;
        match self {
            Value::Float1(_) => (&[F64], F64),
            Value::Float2(_) => (&[F64, F64], F64),
            Value::FloatInt(_) => (&[F64, I64], F64),
            Value::IntFloat(_) => (&[I64, F64], F64),
            Value::Int1(_) => (&[I64], I64),
            Value::Int2(_) | Value::TryInt2(_) => (&[I64, I64], I64),
            Value::FloatTest(_) => (&[F64, F64], Bool),
            Value::IntTest(_) => (&[I64, I64], Bool),
            Value::BoolTest(_) => (&[Bool, Bool], Bool),
            Value::Bool1(_) => (&[Bool], Bool),
            Value::IntToFloat(_) => (&[I64], F64),
            Value::BoolToFloat(_) => (&[Bool], F64),
            Value::TryFloatToInt(_) => (&[F64], I64),
            Value::BoolToInt(_) => (&[Bool], I64),
        }
    }

    /// `None` where the arguments are of other types.
    fn apply(self, args: &[Lit]) -> Option<Result<Lit, Fault>> {
        use Lit::*;
        Some(Ok(match (self, args) {
            (Value::Float1(f), [F64(x)]) => F64(f(*x)),
            (Value::Float2(f), [F64(x), F64(y)]) => F64(f(*x, *y)),
            (Value::FloatInt(f), [F64(x), I64(y)]) => F64(f(*x, *y)),
            (Value::IntFloat(f), [I64(x), F64(y)]) => F64(f(*x, *y)),
            (Value::Int1(f), [I64(x)]) => I64(f(*x)),
            (Value::Int2(f), [I64(x), I64(y)]) => I64(f(*x, *y)),
            (Value::TryInt2(f), [I64(x), I64(y)]) => return Some(f(*x, *y).map(I64)),
            (Value::FloatTest(f), [F64(x), F64(y)]) => Bool(f(*x, *y)),
            (Value::IntTest(f), [I64(x), I64(y)]) => Bool(f(*x, *y)),
            (Value::BoolTest(f), [Bool(x), Bool(y)]) => Bool(f(*x, *y)),
            (Value::Bool1(f), [Bool(x)]) => Bool(f(*x)),
            (Value::IntToFloat(f), [I64(x)]) => F64(f(*x)),
            (Value::BoolToFloat(f), [Bool(x)]) => F64(f(*x)),
            (Value::TryFloatToInt(f), [F64(x)]) => return Some(f(*x).map(I64)),
            (Value::BoolToInt(f), [Bool(x)]) => I64(f(*x)),
            _ => return None,
        }))
    }
}

impl Case {
    pub fn args(&self) -> &'static [Scalar] {
        self.value.signature().0
    }
    pub fn result(&self) -> Scalar {
        self.value.signature().1
    }
    pub fn partial(&self, k: usize) -> Option<&Formula> {
        self.partials.get(k).and_then(Option::as_ref)
    }
    /// Where tests take each argument from.
    pub fn samples(&self) -> &[(f64, f64)] {
        &self.samples
    }
}

/// The rows, in the order of `Op::ALL`.
static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| Op::ALL.iter().map(|op| rows::row(*op)).collect());

impl Op {
    /// In the order of the enumeration.
    #[rustfmt::skip]
    pub const ALL: [Op; 52] = {
        use Op::*;
        [
            Add, Sub, Mul, Neg, Abs, Sign, Min, Max, Pow, Div, Floor, Ceil, Round, Sqrt, Cbrt, Exp, Exp2, Expm1, Log, Log2, Log10, Log1p,
            Sin, Cos, Tan, Asin, Acos, Atan, Atan2, Sinh, Cosh, Tanh, Sigmoid, Erf, Erfc, Lgamma, Digamma, Polygamma, Hypot, IDiv, IMod,
            Eq, Ne, Lt, Le, Gt, Ge, And, Or, Not, ToF64, ToI64,
        ]
    };

    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// A word that names the operation: what a function is called by, and for an operator a word instead of its symbol.
    pub fn name(self) -> &'static str {
        self.row().name
    }
    pub fn notation(self) -> Notation {
        self.row().notation
    }
    /// The symbol and precedence of an infix operator.
    pub fn infix(self) -> Option<(&'static str, Precedence)> {
        match self.notation() {
            Notation::Infix(symbol, precedence) => Some((symbol, precedence)),
            Notation::Function | Notation::Prefix(..) => None,
        }
    }
    /// The symbol and precedence of a prefix operator.
    pub fn prefix(self) -> Option<(&'static str, Precedence)> {
        match self.notation() {
            Notation::Prefix(symbol, precedence) => Some((symbol, precedence)),
            Notation::Function | Notation::Infix(..) => None,
        }
    }
    /// The function that programs call by this name. Operators have no such name.
    pub fn by_name(name: &str) -> Option<Op> {
        Op::functions().find(|op| op.name() == name)
    }
    /// The operations that are written as functions.
    pub fn functions() -> impl Iterator<Item = Op> {
        Op::ALL.into_iter().filter(|op| op.notation() == Notation::Function)
    }

    /// The name of the partial derivative by argument `k`: `d_sin`, `d0_pow`.
    pub fn partial_name(self, k: usize) -> String {
        if self.arity() == 1 { format!("d_{}", self.name()) } else { format!("d{k}_{}", self.name()) }
    }
    /// The partial derivative of this name, as an operation and the argument's position.
    pub fn by_partial_name(name: &str) -> Option<(Op, usize)> {
        let (_, word) = name.split_once('_')?;
        let op = Op::ALL.into_iter().find(|op| op.name() == word)?;
        let k = (0..op.arity()).find(|k| op.partial_name(*k) == name)?;
        op.cases().iter().any(|c| c.partial(k).is_some()).then_some((op, k))
    }

    pub fn arity(self) -> usize {
        self.cases()[0].args().len()
    }
    /// The lists of types that the operation takes, with what it does to them.
    pub fn cases(self) -> &'static [Case] {
        &self.row().cases
    }
    fn case(self, args: &[Scalar]) -> Option<&'static Case> {
        self.cases().iter().find(|c| c.args() == args)
    }
    fn typed_case(self, args: &[Scalar]) -> &'static Case {
        self.case(args).unwrap_or_else(|| panic!("{self:?} on {args:?}"))
    }

    /// The result for arguments of these scalar types; `None` if the operation does not take them.
    pub fn result(self, args: &[Scalar]) -> Option<Scalar> {
        self.case(args).map(Case::result)
    }

    /// The result where the first argument has this type and the others fit: no two cases differ in the others alone.
    pub fn result_of(self, first: Scalar) -> Option<Scalar> {
        self.cases().iter().find(|c| c.args().first() == Some(&first)).map(Case::result)
    }

    /// The value at well-typed arguments.
    pub fn eval(self, args: &[Lit]) -> Result<Lit, Fault> {
        let value = self.cases().iter().find_map(|c| c.value.apply(args));
        value.unwrap_or_else(|| panic!("{self:?} on {args:?}"))
    }

    /// The partial derivative by argument `k`, for arguments of these types; `None` where it is zero.
    pub fn partial(self, k: usize, args: &[Scalar]) -> Option<&'static Formula> {
        self.typed_case(args).partial(k)
    }
    /// The partial derivative by argument `k` that takes operands of these types (those of `x`, `y`, `r` that it uses):
    /// the types of the operation's arguments and the formula.
    pub fn partial_of(self, k: usize, operands: &[Scalar]) -> Option<(&'static [Scalar], &'static Formula)> {
        self.cases().iter().find_map(|case| {
            let formula = case.partial(k)?;
            let kinds = formula.uses().select(case.args()[0], case.args().get(1).copied(), case.result());
            (kinds == operands).then_some((case.args(), formula))
        })
    }

    /// The spelling in C, `{0}` and `{1}` standing for the arguments, which are put there as primary expressions.
    /// Functions `iv_..` are in `runtime/support/iverson_math.h`. What can fail is checked before.
    pub fn c_template(self, args: &[Scalar]) -> &'static str {
        self.typed_case(args).c
    }

    pub fn cost(self, args: &[Scalar]) -> CostClass {
        self.typed_case(args).cost
    }

    /// Whether `eval` can fail on arguments of these types.
    pub fn can_fail(self, args: &[Scalar]) -> bool {
        matches!(self.typed_case(args).value, Value::TryInt2(_) | Value::TryFloatToInt(_))
    }
}
