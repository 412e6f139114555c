//! Which expressions take their type from the context: literals, and singletons (`{k -> v}`), which have no size of
//! their own. A whole number (`2`) is of any numeric type, a decimal one (`0.5`) of any float type. Of several operands
//! the one that knows most of its type is inferred first and is the hint of the others.

use crate::scalar::Op;
use crate::syntax::ast::{BinaryOp, BinderKind, Exp, ExpKind, UnaryOp};

/// How much of its type an expression knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strength {
    /// Made of whole numbers alone.
    Whole,
    /// Made of literals, with a decimal number or a function of floats among them.
    Float,
    Known,
}

/// Whether the type depends on the context at all.
pub fn needs_hint(exp: &Exp) -> bool {
    strength(exp) < Strength::Known || needs_shape(exp)
}

/// Made of whole-number literals alone, so of the numeric type that is wanted.
pub fn is_number(exp: &Exp) -> bool {
    strength(exp) == Strength::Whole
}
/// Made of literals alone.
pub fn is_literal(exp: &Exp) -> bool {
    strength(exp) < Strength::Known
}

/// What comes first among operands: a higher rank.
pub fn rank(exp: &Exp) -> Strength {
    if needs_shape(exp) { Strength::Whole } else { strength(exp) }
}

pub fn strength(exp: &Exp) -> Strength {
    let strongest = |exps: &[Exp]| exps.iter().map(strength).max().unwrap_or(Strength::Known);
    match &exp.kind {
        ExpKind::Int(_) => Strength::Whole,
        ExpKind::Float(_) => Strength::Float,
        ExpKind::Name(name) if name == "infinity" || name == "nan" => Strength::Float,
        ExpKind::Unary(UnaryOp::Neg, a) => strength(a),
        ExpKind::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Pow, _, a, b) => strength(a).max(strength(b)),
        ExpKind::Binary(BinaryOp::IDiv | BinaryOp::IMod, _, a, b) => strength(a).max(strength(b)),
        ExpKind::Binary(BinaryOp::Div, _, a, b) => strength(a).max(strength(b)).max(Strength::Float),
        ExpKind::Bracket(items) => match items.as_slice() {
            // Of one element it may be an Iverson bracket, which says nothing of the type of what it guards.
            [p] if is_condition(p) || strength(p) == Strength::Known => Strength::Whole,
            items => strongest(items),
        },
        ExpKind::Let(_, _, _, body) => strength(body),
        ExpKind::Binder(kind, _, body) => match kind {
            BinderKind::For | BinderKind::Sum | BinderKind::Prod | BinderKind::Max | BinderKind::Min => strength(body),
            BinderKind::ArgMax | BinderKind::ArgMin | BinderKind::Any | BinderKind::All => Strength::Known,
        },
        ExpKind::If(_, a, b) => strength(a).max(b.as_ref().map_or(Strength::Whole, |b| strength(b))),
        ExpKind::Call(f, args) => match &f.kind {
            // A definition of that name is called with what it wants in any case.
            ExpKind::Name(name) => match Op::by_name(name) {
                Some(op) if !op.is_conversion() => {
                    let args = args.iter().map(|a| strength(&a.value)).max().unwrap_or(Strength::Known);
                    if op.cases().iter().all(|c| c.result().is_float()) { args.max(Strength::Float) } else { args }
                }
                _ => Strength::Known,
            },
            _ => Strength::Known,
        },
        ExpKind::Tuple(parts) => strongest(parts),
        ExpKind::Record(fields) => fields.iter().map(|(_, e)| strength(e)).max().unwrap_or(Strength::Known),
        _ => Strength::Known,
    }
}

/// Has a singleton where the context's type flows to.
fn needs_shape(exp: &Exp) -> bool {
    match &exp.kind {
        ExpKind::Singleton(..) => true,
        ExpKind::Unary(UnaryOp::Neg, a) => needs_shape(a),
        ExpKind::Binary(BinaryOp::Add | BinaryOp::Sub, _, a, b) => needs_shape(a) && needs_shape(b),
        ExpKind::Binary(BinaryOp::Mul | BinaryOp::Div, _, a, b) => needs_shape(a) || needs_shape(b),
        ExpKind::Let(_, _, _, body) | ExpKind::Binder(BinderKind::For | BinderKind::Sum, _, body) => needs_shape(body),
        ExpKind::If(_, a, b) => needs_shape(a) && b.as_ref().is_none_or(|b| needs_shape(b)),
        ExpKind::Tuple(parts) | ExpKind::Bracket(parts) => parts.iter().any(needs_shape),
        ExpKind::Record(fields) => fields.iter().any(|(_, e)| needs_shape(e)),
        _ => false,
    }
}

/// Looks like a truth value, by its outermost operator.
pub fn is_condition(exp: &Exp) -> bool {
    match &exp.kind {
        ExpKind::Bool(_) | ExpKind::Unary(UnaryOp::Not, _) | ExpKind::Binder(BinderKind::Any | BinderKind::All, _, _) => true,
        ExpKind::Binary(op, ..) => matches!(
            op,
            BinaryOp::Or | BinaryOp::And | BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge
        ),
        _ => false,
    }
}
