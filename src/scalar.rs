//! The scalar operations: one row each.

use crate::types::Scalar;

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

impl Op {
    /// The result for arguments of these scalar types; `None` if the operation does not take them.
    pub fn result(self, args: &[Scalar]) -> Option<Scalar> {
        use Scalar::*;
        match (self, args) {
            (Op::Add | Op::Sub | Op::Mul | Op::Min | Op::Max | Op::Pow, [F64, F64]) => Some(F64),
            (Op::Add | Op::Sub | Op::Mul | Op::Min | Op::Max | Op::Pow | Op::IDiv | Op::IMod, [I64, I64]) => Some(I64),
            (Op::Neg | Op::Abs | Op::Sign, [s @ (F64 | I64)]) => Some(*s),
            (Op::Pow, [F64, I64]) => Some(F64),
            (Op::Div | Op::Atan2 | Op::Hypot, [F64, F64]) => Some(F64),
            (Op::Polygamma, [I64, F64]) => Some(F64),
            (Op::Eq | Op::Ne, [a, b]) if a == b => Some(Bool),
            (Op::Lt | Op::Le | Op::Gt | Op::Ge, [a @ (F64 | I64), b]) if a == b => Some(Bool),
            (Op::And | Op::Or, [Bool, Bool]) => Some(Bool),
            (Op::Not, [Bool]) => Some(Bool),
            (Op::ToF64, [F64 | I64 | Bool]) => Some(F64),
            (Op::ToI64, [F64 | I64 | Bool]) => Some(I64),
            (
                Op::Floor
                | Op::Ceil
                | Op::Round
                | Op::Sqrt
                | Op::Cbrt
                | Op::Exp
                | Op::Exp2
                | Op::Expm1
                | Op::Log
                | Op::Log2
                | Op::Log10
                | Op::Log1p
                | Op::Sin
                | Op::Cos
                | Op::Tan
                | Op::Asin
                | Op::Acos
                | Op::Atan
                | Op::Sinh
                | Op::Cosh
                | Op::Tanh
                | Op::Sigmoid
                | Op::Erf
                | Op::Erfc
                | Op::Lgamma
                | Op::Digamma,
                [F64],
            ) => Some(F64),
            _ => None,
        }
    }
}
