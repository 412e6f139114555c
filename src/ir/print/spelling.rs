//! How tightly printed operations bind, in numbers.

use crate::scalar::{Notation, Op, Precedence};

/// What stands must bind at least as tightly. Loosest first.
pub mod level {
    use crate::scalar::Precedence;
    pub const ANY: u8 = 0;
    pub const NOT: u8 = of(Precedence::Not);
    pub const ADD: u8 = of(Precedence::Sum);
    pub const MUL: u8 = of(Precedence::Product);
    pub const UNARY: u8 = of(Precedence::Negation);
    pub const POW: u8 = of(Precedence::Power);
    pub const POSTFIX: u8 = POW + 1;

    pub const fn of(precedence: Precedence) -> u8 {
        precedence as u8 + 1
    }
}

pub struct Infix {
    pub symbol: &'static str,
    /// What the operands must bind at least as tightly as.
    pub left: u8,
    pub right: u8,
}

pub fn infix(op: Op) -> Option<Infix> {
    let (symbol, precedence) = op.infix()?;
    let own = level::of(precedence);
    let (left, right) = match precedence {
        Precedence::Power => (level::POSTFIX, own),
        Precedence::Comparison => (own + 1, own + 1),
        Precedence::Or | Precedence::And | Precedence::Not | Precedence::Sum | Precedence::Product | Precedence::Negation => (own, own + 1),
    };
    Some(Infix { symbol, left, right })
}

/// How tightly an operation's print binds.
pub fn strength(op: Op) -> u8 {
    match op.notation() {
        Notation::Function => level::POSTFIX,
        Notation::Infix(_, precedence) | Notation::Prefix(_, precedence) => level::of(precedence),
    }
}
