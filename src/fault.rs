//! What can go wrong while a checked program runs, and how it is said.
//!
//! The interpreter and compiled code report the same faults in the same words: compiled code leaves a code and two
//! numbers (`encode`), from which the fault is read back (`decode`) and rendered here.

use crate::types::Scalar;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// A read or a singleton beside its axis.
    IndexOutOfRange { index: i64, size: i64 },
    /// `argmax` or `argmin` of an empty range.
    NothingToChoose,
    /// `div` or `mod` by zero.
    DivisionByZero,
    /// An integer to a negative integer power.
    NegativeExponent { exponent: i64 },
    /// A float that no integer of the type stands for once its fraction is dropped.
    NoInteger { value: f64, to: Scalar },
    /// An `i64` that is no `i32`.
    TooLarge { value: i64 },
    /// A size that is another than the program takes it for.
    SizesDiffer { found: i64, wanted: i64 },
    /// A `while` loop that goes on after its bound.
    TooManySteps { bound: i64 },
}

impl Fault {
    pub const INDEX_OUT_OF_RANGE: i32 = 1;
    pub const NOTHING_TO_CHOOSE: i32 = 2;
    pub const DIVISION_BY_ZERO: i32 = 3;
    pub const NEGATIVE_EXPONENT: i32 = 4;
    pub const NO_INTEGER: i32 = 5;
    pub const TOO_LARGE: i32 = 6;
    pub const SIZES_DIFFER: i32 = 7;
    pub const TOO_MANY_STEPS: i32 = 8;
    /// Every code, with a name for it and what it means.
    pub const CODES: &[(i32, &str, &str)] = &[
        (Fault::INDEX_OUT_OF_RANGE, "INDEX_OUT_OF_RANGE", "an index lies outside of its axis"),
        (Fault::NOTHING_TO_CHOOSE, "NOTHING_TO_CHOOSE", "argmax or argmin of nothing"),
        (Fault::DIVISION_BY_ZERO, "DIVISION_BY_ZERO", "div or mod by zero"),
        (Fault::NEGATIVE_EXPONENT, "NEGATIVE_EXPONENT", "an integer to a negative power"),
        (Fault::NO_INTEGER, "NO_INTEGER", "a float that no integer stands for"),
        (Fault::TOO_LARGE, "TOO_LARGE", "an integer that does not fit its type"),
        (Fault::SIZES_DIFFER, "SIZES_DIFFER", "a size is not the one that is wanted"),
        (Fault::TOO_MANY_STEPS, "TOO_MANY_STEPS", "a while loop goes on after its bound"),
    ];

    /// What stands beside a float that is no integer: the bits of the integer type.
    pub const fn bits(to: Scalar) -> i64 {
        if matches!(to, Scalar::I32) { 32 } else { 64 }
    }

    /// A code that is not zero, and two numbers (a float by its bits).
    pub fn encode(self) -> (i32, i64, i64) {
        match self {
            Fault::IndexOutOfRange { index, size } => (Fault::INDEX_OUT_OF_RANGE, index, size),
            Fault::NothingToChoose => (Fault::NOTHING_TO_CHOOSE, 0, 0),
            Fault::DivisionByZero => (Fault::DIVISION_BY_ZERO, 0, 0),
            Fault::NegativeExponent { exponent } => (Fault::NEGATIVE_EXPONENT, exponent, 0),
            Fault::NoInteger { value, to } => (Fault::NO_INTEGER, value.to_bits() as i64, Fault::bits(to)),
            Fault::TooLarge { value } => (Fault::TOO_LARGE, value, 0),
            Fault::SizesDiffer { found, wanted } => (Fault::SIZES_DIFFER, found, wanted),
            Fault::TooManySteps { bound } => (Fault::TOO_MANY_STEPS, bound, 0),
        }
    }

    /// The inverse of `encode`; `None` for a code that is no fault's.
    pub fn decode(code: i32, a: i64, b: i64) -> Option<Fault> {
        Some(match code {
            Fault::INDEX_OUT_OF_RANGE => Fault::IndexOutOfRange { index: a, size: b },
            Fault::NOTHING_TO_CHOOSE => Fault::NothingToChoose,
            Fault::DIVISION_BY_ZERO => Fault::DivisionByZero,
            Fault::NEGATIVE_EXPONENT => Fault::NegativeExponent { exponent: a },
            Fault::NO_INTEGER => {
                let to = if b == Fault::bits(Scalar::I32) { Scalar::I32 } else { Scalar::I64 };
                Fault::NoInteger { value: f64::from_bits(a as u64), to }
            }
            Fault::TOO_LARGE => Fault::TooLarge { value: a },
            Fault::SIZES_DIFFER => Fault::SizesDiffer { found: a, wanted: b },
            Fault::TOO_MANY_STEPS => Fault::TooManySteps { bound: a },
            _ => return None,
        })
    }

    /// What would be right.
    pub fn note(self) -> String {
        match self {
            Fault::IndexOutOfRange { size, .. } if size > 0 => format!("indices run from 0 to {}", size - 1),
            Fault::IndexOutOfRange { .. } => "an empty axis has no index".into(),
            Fault::NothingToChoose => "`argmax` and `argmin` need at least one element".into(),
            Fault::DivisionByZero => "`div` and `mod` need a divisor other than 0".into(),
            Fault::NegativeExponent { .. } => "convert the base: `f64(n)^k` takes negative powers".into(),
            Fault::NoInteger { to: Scalar::I32, .. } | Fault::TooLarge { .. } => "`i32` holds whole numbers from -2^31 to 2^31 - 1".into(),
            Fault::SizesDiffer { .. } => {
                "an argument has the shape of its parameter (`[n + 1]` is at least one place), a seed that of the result".into()
            }
            Fault::TooManySteps { .. } => "`#[bound(n)]` takes the most steps that there may be; without it they are counted".into(),
            Fault::NoInteger { .. } => "`i64` holds whole numbers from -2^63 to 2^63 - 1".into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::IndexOutOfRange { index, size } => write!(f, "index {index} is out of range for an axis of size {size}"),
            Fault::NothingToChoose => write!(f, "the index of the extreme of nothing was asked for"),
            Fault::DivisionByZero => write!(f, "integer division by zero"),
            Fault::NegativeExponent { exponent } => write!(f, "integer raised to the negative power {exponent}"),
            Fault::NoInteger { value, to } => write!(f, "{value:?} cannot be converted to `{}`", to.name()),
            Fault::TooLarge { value } => write!(f, "{value} cannot be converted to `i32`"),
            Fault::TooManySteps { bound } => write!(f, "the loop goes on after its bound of {bound} steps"),
            Fault::SizesDiffer { found, wanted } => write!(f, "a size is {found} where {wanted} is wanted"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Fault;

    #[test]
    fn every_fault_has_a_name() {
        let named: Vec<i32> = Fault::CODES.iter().map(|(code, _, _)| *code).collect();
        let known: Vec<i32> = (1..100).filter(|code| Fault::decode(*code, 0, 0).is_some()).collect();
        assert_eq!(named, known);
    }
}
