//! Which expressions take their type from the context: whole numbers (`2`), which are of any numeric type, and
//! singletons (`{k -> v}`), which have no size of their own. Of two operands the one that knows its type is inferred
//! first and is the hint of the other.

use crate::syntax::ast::{BinaryOp, BinderKind, Exp, ExpKind, UnaryOp};

/// Whether the type depends on the context at all.
pub fn needs_hint(exp: &Exp) -> bool {
    is_number(exp) || needs_shape(exp)
}

/// Made of whole-number literals alone, so of the numeric type that is wanted.
pub fn is_number(exp: &Exp) -> bool {
    match &exp.kind {
        ExpKind::Int(_) => true,
        ExpKind::Unary(UnaryOp::Neg, a) => is_number(a),
        ExpKind::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul, _, a, b) => is_number(a) && is_number(b),
        ExpKind::Binary(BinaryOp::Pow, _, a, b) => is_number(a) && is_number(b),
        ExpKind::Bracket(items) => match items.as_slice() {
            [p] if is_condition(p) => true,
            items => items.iter().all(is_number),
        },
        ExpKind::Let(_, _, _, body) | ExpKind::Binder(BinderKind::For | BinderKind::Sum | BinderKind::Prod, _, body) => is_number(body),
        ExpKind::Binder(BinderKind::Max | BinderKind::Min, _, body) => is_number(body),
        ExpKind::If(_, a, b) => is_number(a) && b.as_ref().is_none_or(|b| is_number(b)),
        ExpKind::Call(f, args) => {
            matches!(&f.kind, ExpKind::Name(f) if ["min", "max", "abs", "sign"].contains(&f.as_str()))
                && args.iter().all(|a| is_number(&a.value))
        }
        ExpKind::Tuple(parts) => !parts.is_empty() && parts.iter().all(is_number),
        ExpKind::Record(fields) => fields.iter().all(|(_, e)| is_number(e)),
        _ => false,
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
