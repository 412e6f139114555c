//! Formulas: what the partial derivatives of scalar operations are written in.
//!
//! A formula speaks of an operation's arguments `x` and `y` and of its result `r`. The operators of Rust build formulas,
//! so that a row reads like mathematics: the partial of `asin` is `1.0 / sqrt((1.0 - x()) * (1.0 + x()))`.
//! Differentiation turns formulas into expressions and may differentiate these again, `r` being an operand like the
//! others: so a formula must have the right derivatives too, also where it branches.

use super::Op;
use crate::fault::Fault;
use crate::types::{Lit, Scalar};
use std::ops;

#[derive(Clone, Debug, PartialEq)]
pub enum Formula {
    /// The operation's first argument.
    X,
    /// Its second argument.
    Y,
    /// Its result.
    R,
    /// As it is written in a row it is an `f64` or an `i64`; `at` gives it the type of a case.
    Lit(Lit),
    Apply(Op, Vec<Formula>),
    If(Box<Formula>, Box<Formula>, Box<Formula>),
}

/// Which of `x`, `y` and `r` a formula speaks of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    pub x: bool,
    pub y: bool,
    pub r: bool,
}

impl Uses {
    /// Picks from `x`, `y` and `r` (in this order) those that are used. Of a unary operation `y` is `None`.
    pub fn select<T>(self, x: T, y: Option<T>, r: T) -> Vec<T> {
        let mut operands = vec![];
        operands.extend(self.x.then_some(x));
        operands.extend(y.filter(|_| self.y));
        operands.extend(self.r.then_some(r));
        operands
    }
    pub fn count(self) -> usize {
        self.x as usize + self.y as usize + self.r as usize
    }
}

impl Formula {
    pub fn uses(&self) -> Uses {
        match self {
            Formula::X => Uses { x: true, ..Uses::default() },
            Formula::Y => Uses { y: true, ..Uses::default() },
            Formula::R => Uses { r: true, ..Uses::default() },
            Formula::Lit(_) => Uses::default(),
            Formula::Apply(_, args) => args.iter().fold(Uses::default(), |u, a| u.or(a.uses())),
            Formula::If(p, a, b) => p.uses().or(a.uses()).or(b.uses()),
        }
    }

    /// The number of operations, branches included. Formulas of none are operands or constants.
    pub fn op_count(&self) -> usize {
        match self {
            Formula::X | Formula::Y | Formula::R | Formula::Lit(_) => 0,
            Formula::Apply(_, args) => 1 + args.iter().map(Formula::op_count).sum::<usize>(),
            Formula::If(p, a, b) => 1 + p.op_count() + a.op_count() + b.op_count(),
        }
    }

    /// The value for the operands that the formula uses, in the order `x`, `y`, `r`.
    pub fn eval(&self, operands: &[Lit]) -> Result<Lit, Fault> {
        let uses = self.uses();
        debug_assert_eq!(uses.count(), operands.len(), "operands of {self:?}");
        let mut given = operands.iter().copied();
        let x = if uses.x { given.next() } else { None };
        let y = if uses.y { given.next() } else { None };
        let r = if uses.r { given.next() } else { None };
        self.eval_at(x, y, r)
    }

    fn eval_at(&self, x: Option<Lit>, y: Option<Lit>, r: Option<Lit>) -> Result<Lit, Fault> {
        Ok(match self {
            Formula::X => x.expect("a formula of x has x"),
            Formula::Y => y.expect("a formula of y has y"),
            Formula::R => r.expect("a formula of r has r"),
            Formula::Lit(lit) => *lit,
            Formula::Apply(op, args) => {
                let args = args.iter().map(|a| a.eval_at(x, y, r)).collect::<Result<Vec<_>, _>>()?;
                op.eval(&args)?
            }
            Formula::If(p, a, b) => match p.eval_at(x, y, r)? {
                Lit::Bool(true) => a.eval_at(x, y, r)?,
                Lit::Bool(false) => b.eval_at(x, y, r)?,
                other => panic!("the condition of a formula is {other:?}"),
            },
        })
    }

    /// The formula for a case of other types: literals and conversions are of its float and its integer type.
    pub(super) fn at(&self, float: Scalar, integer: Scalar) -> Formula {
        match self {
            Formula::X | Formula::Y | Formula::R => self.clone(),
            Formula::Lit(Lit::F64(c)) => Formula::Lit(Lit::float(float, *c)),
            Formula::Lit(Lit::I64(c)) => Formula::Lit(Lit::integer(integer, *c)),
            Formula::Lit(_) => self.clone(),
            Formula::Apply(op, args) => {
                let op = if *op == Op::ToF64 { Op::conversion(float).unwrap_or(*op) } else { *op };
                Formula::Apply(op, args.iter().map(|a| a.at(float, integer)).collect())
            }
            Formula::If(p, a, b) => {
                let at = |f: &Formula| Box::new(f.at(float, integer));
                Formula::If(at(p), at(a), at(b))
            }
        }
    }
}

impl Uses {
    fn or(self, other: Uses) -> Uses {
        Uses { x: self.x || other.x, y: self.y || other.y, r: self.r || other.r }
    }
}

pub fn x() -> Formula {
    Formula::X
}
pub fn y() -> Formula {
    Formula::Y
}
pub fn r() -> Formula {
    Formula::R
}
pub fn one() -> Formula {
    Formula::Lit(Lit::F64(1.0))
}
pub fn when(p: Formula, a: impl Into<Formula>, b: impl Into<Formula>) -> Formula {
    Formula::If(Box::new(p), Box::new(a.into()), Box::new(b.into()))
}
pub fn apply<const N: usize>(op: Op, args: [Formula; N]) -> Formula {
    Formula::Apply(op, args.into())
}

impl From<f64> for Formula {
    fn from(value: f64) -> Formula {
        Formula::Lit(Lit::F64(value))
    }
}
impl From<i64> for Formula {
    fn from(value: i64) -> Formula {
        Formula::Lit(Lit::I64(value))
    }
}

macro_rules! operator {
    ($($trait:ident $method:ident $op:ident),*) => {$(
        impl<T: Into<Formula>> ops::$trait<T> for Formula {
            type Output = Formula;
            fn $method(self, other: T) -> Formula {
                apply(Op::$op, [self, other.into()])
            }
        }
        impl ops::$trait<Formula> for f64 {
            type Output = Formula;
            fn $method(self, other: Formula) -> Formula {
                apply(Op::$op, [self.into(), other])
            }
        }
    )*};
}
operator!(Add add Add, Sub sub Sub, Mul mul Mul, Div div Div);

impl ops::Neg for Formula {
    type Output = Formula;
    fn neg(self) -> Formula {
        apply(Op::Neg, [self])
    }
}
