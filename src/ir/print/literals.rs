//! Literals as text, and which of them a reader must be told the type of.
//!
//! A literal has the type that its context wants, else it is an `i64` or an `f64`. So an `f32` or `i32` made of literals
//! alone stands bare where the context says its type or where an operand beside it knows its own, and is ascribed
//! elsewhere: `2.0 * x`, `(2.0 : f32)`.

use crate::ir::{Exp, Lit, Op, Reduction, Scalar};

pub fn literal(lit: Lit) -> String {
    match lit.as_float() {
        Some(x) if x.is_nan() => "nan".to_string(),
        Some(x) if x.is_infinite() => if x > 0.0 { "infinity" } else { "-infinity" }.to_string(),
        _ => lit.digits(),
    }
}

pub fn is_one(lit: Lit) -> bool {
    lit.scalar().is_number() && lit == Lit::one(lit.scalar())
}

pub fn is_negative(lit: Lit) -> bool {
    match (lit.as_float(), lit.as_integer()) {
        (Some(x), _) => x.is_sign_negative() && !x.is_nan(),
        (_, Some(x)) => x < 0,
        _ => false,
    }
}

/// The type of an expression's literals, if a reader finds no other type in it and would take them for something else.
pub fn unsaid(exp: &Exp) -> Option<Scalar> {
    match exp {
        Exp::Lit(lit) => match lit.scalar() {
            s @ (Scalar::F32 | Scalar::I32) => Some(s),
            Scalar::F64 | Scalar::I64 | Scalar::Bool => None,
        },
        Exp::Op(op, args, _) => match op {
            Op::Neg if matches!(args[0], Exp::Lit(lit) if !is_negative(lit)) => None,
            Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::And | Op::Or | Op::Not => None,
            op if op.is_conversion() => None,
            Op::Pow => unsaid(&args[0]),
            _ => all(args),
        },
        Exp::For(_, _, body) | Exp::Sum(_, body) | Exp::Guard(_, body) | Exp::Let(_, _, body) => unsaid(body),
        Exp::Reduce(kind, _, body, _) => match kind {
            Reduction::Prod | Reduction::Max | Reduction::Min => unsaid(body),
            Reduction::ArgMax | Reduction::ArgMin | Reduction::Any | Reduction::All => None,
        },
        Exp::If(_, a, b) => unsaid(a).filter(|_| unsaid(b).is_some()),
        Exp::Array(items) => all(items),
        Exp::Var(_) | Exp::Partial(..) | Exp::Index(..) | Exp::Singleton(..) | Exp::Call(..) | Exp::Tuple(_) => None,
        Exp::History(_) | Exp::Loop(_) | Exp::Update(..) => None,
    }
}

fn all(exps: &[Exp]) -> Option<Scalar> {
    let mut found = None;
    // Backwards, since long chains of operations reach to the left.
    for exp in exps.iter().rev() {
        found = Some(unsaid(exp)?);
    }
    found
}
