//! How operations are spelled: infix with a precedence, or as functions.

use crate::scalar::Op;

/// What an operand must bind at least as tightly as. Loosest first.
pub mod level {
    pub const ANY: u8 = 0;
    pub const OR: u8 = 1;
    pub const AND: u8 = 2;
    pub const NOT: u8 = 3;
    pub const COMPARE: u8 = 4;
    pub const ADD: u8 = 5;
    pub const MUL: u8 = 6;
    pub const UNARY: u8 = 7;
    pub const POW: u8 = 8;
    pub const POSTFIX: u8 = 9;
}

/// The symbol of an infix operation, its level, and the levels of its operands.
pub fn infix(op: Op) -> Option<(&'static str, u8, u8, u8)> {
    use level::*;
    let left = |symbol, level| Some((symbol, level, level, level + 1));
    let compare = |symbol| Some((symbol, COMPARE, ADD, ADD));
    match op {
        Op::Or => left("or", OR),
        Op::And => left("and", AND),
        Op::Eq => compare("=="),
        Op::Ne => compare("!="),
        Op::Lt => compare("<"),
        Op::Le => compare("<="),
        Op::Gt => compare(">"),
        Op::Ge => compare(">="),
        Op::Add => left("+", ADD),
        Op::Sub => left("-", ADD),
        Op::Mul => left("*", MUL),
        Op::Div => left("/", MUL),
        Op::IDiv => left("div", MUL),
        Op::IMod => left("mod", MUL),
        Op::Pow => Some(("^", POW, POSTFIX, POW)),
        _ => None,
    }
}

pub fn function_name(op: Op) -> String {
    match op {
        Op::ToF64 => "f64".to_string(),
        Op::ToI64 => "i64".to_string(),
        Op::IDiv => "idiv".to_string(),
        Op::IMod => "imod".to_string(),
        other => format!("{other:?}").to_lowercase(),
    }
}

/// `d_sin` for an operation of one argument, `d0_pow` and `d1_pow` for one of two.
pub fn partial_name(op: Op, argument: usize, arity: usize) -> String {
    if arity == 1 { format!("d_{}", function_name(op)) } else { format!("d{argument}_{}", function_name(op)) }
}

pub fn arity(op: Op) -> usize {
    use crate::types::Scalar::*;
    let unary = [F64, I64, Bool].iter().any(|s| op.result(&[*s]).is_some());
    if unary { 1 } else { 2 }
}

/// Whether the name is that of a scalar function or of a partial derivative.
pub fn is_operation(name: &str) -> bool {
    let base = match name.split_once('_') {
        Some(("d" | "d0" | "d1", rest)) => rest,
        _ => name,
    };
    FUNCTIONS.iter().any(|op| function_name(*op) == base)
}

const FUNCTIONS: &[Op] = &[
    Op::Abs,
    Op::Sign,
    Op::Min,
    Op::Max,
    Op::Pow,
    Op::Floor,
    Op::Ceil,
    Op::Round,
    Op::Sqrt,
    Op::Cbrt,
    Op::Exp,
    Op::Exp2,
    Op::Expm1,
    Op::Log,
    Op::Log2,
    Op::Log10,
    Op::Log1p,
    Op::Sin,
    Op::Cos,
    Op::Tan,
    Op::Asin,
    Op::Acos,
    Op::Atan,
    Op::Atan2,
    Op::Sinh,
    Op::Cosh,
    Op::Tanh,
    Op::Sigmoid,
    Op::Erf,
    Op::Erfc,
    Op::Lgamma,
    Op::Digamma,
    Op::Polygamma,
    Op::Hypot,
    Op::Div,
    Op::ToF64,
    Op::ToI64,
];
