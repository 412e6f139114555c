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
    /// `agreed(a, b)`: `a`, which must be `b`. What a program takes sizes for is checked by it.
    Agreed,
    /// `bounded(a, b)`: `a`, which must be at most `b`. How often loops with a bound run is checked by it.
    Bounded,
    /// `within(i, n)`: `i`, which must be an index of an axis of size `n`.
    Within,
    /// `stop_gradient(x)`: `x`, of which nothing is said by how it came about. Gone once no derivative is taken any more.
    StopGradient,
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
    ToF32,
    ToI64,
    ToI32,
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
    args: Vec<Scalar>,
    result: Scalar,
    c: String,
    cost: CostClass,
    /// One per argument; empty where no argument has a derivative.
    partials: Vec<Option<Formula>>,
    /// For each argument where tests take it from: an interval in which the operation is smooth.
    samples: Vec<(f64, f64)>,
}

/// The value of an operation, by the kinds of its arguments and result. It is computed in `f64` and `i64`, and then
/// rounded or wrapped to the result's type: `+ - * /` and `sqrt` of `f32` are so rounded once, since an `f64` has more
/// than twice their digits, and other functions are as near as `f64` has them; integer arithmetic is right modulo the
/// range of any type.
#[derive(Clone, Copy)]
enum Value {
    Float1(fn(f64) -> f64),
    Float2(fn(f64, f64) -> f64),
    FloatInt(fn(f64, i64) -> f64),
    IntFloat(fn(i64, f64) -> f64),
    Int1(fn(i64) -> i64),
    Int2(fn(i64, i64) -> i64),
    TryInt2(fn(i64, i64) -> Result<i64, Fault>),
    /// An integer to the power of an integer of any type.
    TryIntPower(fn(i64, i64) -> Result<i64, Fault>),
    FloatTest(fn(f64, f64) -> bool),
    IntTest(fn(i64, i64) -> bool),
    BoolTest(fn(bool, bool) -> bool),
    Bool1(fn(bool) -> bool),
    /// From any type, rounding once.
    Convert,
}

impl Value {
    /// The types of the arguments and the result in every width; `target` is what a conversion converts to.
    fn signatures(self, target: Scalar) -> Vec<(Vec<Scalar>, Scalar)> {
        use Scalar::*;
        let (floats, ints) = ([F64, F32], [I64, I32]);
        let pairs = |a: [Scalar; 2], b: [Scalar; 2]| a.into_iter().flat_map(move |a| b.into_iter().map(move |b| (a, b)));
        match self {
            Value::Float1(_) => floats.map(|f| (vec![f], f)).into(),
            Value::Float2(_) => floats.map(|f| (vec![f, f], f)).into(),
            Value::FloatInt(_) => pairs(floats, ints).map(|(f, i)| (vec![f, i], f)).collect(),
            Value::IntFloat(_) => pairs(ints, floats).map(|(i, f)| (vec![i, f], f)).collect(),
            Value::Int1(_) => ints.map(|i| (vec![i], i)).into(),
            Value::Int2(_) | Value::TryInt2(_) => ints.map(|i| (vec![i, i], i)).into(),
            Value::TryIntPower(_) => pairs(ints, ints).map(|(i, k)| (vec![i, k], i)).collect(),
            Value::FloatTest(_) => floats.map(|f| (vec![f, f], Bool)).into(),
            Value::IntTest(_) => ints.map(|i| (vec![i, i], Bool)).into(),
            Value::BoolTest(_) => vec![(vec![Bool, Bool], Bool)],
            Value::Bool1(_) => vec![(vec![Bool], Bool)],
            Value::Convert => Scalar::ALL.map(|from| (vec![from], target)).into(),
        }
    }

    /// At arguments of the right kinds.
    fn apply(self, args: &[Lit], result: Scalar) -> Result<Lit, Fault> {
        let float = |k: usize| args[k].as_float().expect("a float");
        let int = |k: usize| args[k].as_integer().expect("an integer");
        let truth = |k: usize| matches!(args[k], Lit::Bool(true));
        Ok(match self {
            Value::Float1(f) => Lit::float(result, f(float(0))),
            Value::Float2(f) => Lit::float(result, f(float(0), float(1))),
            Value::FloatInt(f) => Lit::float(result, f(float(0), int(1))),
            Value::IntFloat(f) => Lit::float(result, f(int(0), float(1))),
            Value::Int1(f) => Lit::integer(result, f(int(0))),
            Value::Int2(f) => Lit::integer(result, f(int(0), int(1))),
            Value::TryInt2(f) | Value::TryIntPower(f) => Lit::integer(result, f(int(0), int(1))?),
            Value::FloatTest(f) => Lit::Bool(f(float(0), float(1))),
            Value::IntTest(f) => Lit::Bool(f(int(0), int(1))),
            Value::BoolTest(f) => Lit::Bool(f(truth(0), truth(1))),
            Value::Bool1(f) => Lit::Bool(f(truth(0))),
            Value::Convert => return numerics::convert(args[0], result),
        })
    }
}

impl Case {
    pub fn args(&self) -> &[Scalar] {
        &self.args
    }
    pub fn result(&self) -> Scalar {
        self.result
    }
    pub fn partial(&self, k: usize) -> Option<&Formula> {
        self.partials.get(k).and_then(Option::as_ref)
    }
    pub fn cost(&self) -> CostClass {
        self.cost
    }
    /// Whether there are arguments without a value.
    fn can_fail(&self) -> bool {
        match self.value {
            Value::TryInt2(_) | Value::TryIntPower(_) => true,
            Value::Convert => match (self.args[0], self.result) {
                (from, to) if from.is_float() => to.is_integer(),
                (from, to) => (from, to) == (Scalar::I64, Scalar::I32),
            },
            _ => false,
        }
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
    pub const ALL: [Op; 58] = {
        use Op::*;
        [
            Add, Sub, Mul, Neg, Abs, Sign, Min, Max, Pow, Div, Floor, Ceil, Round, Sqrt, Cbrt, Exp, Exp2, Expm1, Log, Log2, Log10, Log1p,
            Sin, Cos, Tan, Asin, Acos, Atan, Atan2, Sinh, Cosh, Tanh, Sigmoid, Erf, Erfc, Lgamma, Digamma, Polygamma, Hypot, IDiv, IMod,
            Agreed, Bounded, Within, StopGradient, Eq, Ne, Lt, Le, Gt, Ge, And, Or, Not, ToF64, ToF32, ToI64, ToI32,
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

    /// The conversion to a type; there is none to `bool`.
    pub fn conversion(to: Scalar) -> Option<Op> {
        match to {
            Scalar::F64 => Some(Op::ToF64),
            Scalar::F32 => Some(Op::ToF32),
            Scalar::I64 => Some(Op::ToI64),
            Scalar::I32 => Some(Op::ToI32),
            Scalar::Bool => None,
        }
    }
    pub fn is_conversion(self) -> bool {
        matches!(self, Op::ToF64 | Op::ToF32 | Op::ToI64 | Op::ToI32)
    }

    /// The result for arguments of these scalar types; `None` if the operation does not take them.
    pub fn result(self, args: &[Scalar]) -> Option<Scalar> {
        self.case(args).map(Case::result)
    }

    /// The result where the first argument has this type and the others fit; `None` where the others decide it, too.
    pub fn result_of(self, first: Scalar) -> Option<Scalar> {
        let mut results = self.cases().iter().filter(|c| c.args().first() == Some(&first)).map(Case::result);
        let result = results.next()?;
        results.all(|r| r == result).then_some(result)
    }

    /// The value at well-typed arguments.
    pub fn eval(self, args: &[Lit]) -> Result<Lit, Fault> {
        let fits = |c: &&Case| c.args.len() == args.len() && c.args.iter().zip(args).all(|(s, lit)| *s == lit.scalar());
        let case = self.cases().iter().find(fits).unwrap_or_else(|| panic!("{self:?} on {args:?}"));
        case.value.apply(args, case.result)
    }

    /// The partial derivative by argument `k`, for arguments of these types; `None` where it is zero.
    pub fn partial(self, k: usize, args: &[Scalar]) -> Option<&'static Formula> {
        self.typed_case(args).partial(k)
    }
    /// The partial derivative by argument `k` that takes operands of these types (those of `x`, `y`, `r` that it uses):
    /// its type, which is the operation's, and the formula.
    pub fn partial_of(self, k: usize, operands: &[Scalar]) -> Option<(Scalar, &'static Formula)> {
        self.cases().iter().find_map(|case| {
            let formula = case.partial(k)?;
            let kinds = formula.uses().select(case.args()[0], case.args().get(1).copied(), case.result());
            (kinds == operands).then_some((case.result(), formula))
        })
    }

    /// The spelling in C, `{0}` and `{1}` standing for the arguments, which are put there as primary expressions.
    /// Functions `iv_..` are in `runtime/support/iverson_math.h`. What can fail is checked before.
    pub fn c_template(self, args: &[Scalar]) -> &'static str {
        &self.typed_case(args).c
    }

    pub fn cost(self, args: &[Scalar]) -> CostClass {
        self.typed_case(args).cost
    }

    /// Whether `eval` can fail on arguments of these types.
    pub fn can_fail(self, args: &[Scalar]) -> bool {
        self.typed_case(args).can_fail()
    }
    /// Whether `eval` can fail on arguments of any type.
    pub fn ever_fails(self) -> bool {
        self.cases().iter().any(Case::can_fail)
    }
}
