//! Types and sizes as text, for messages: `[n, 2 * m + 1]f64`.
//!
//! Variables are only numbers here; the caller gives their names.

use super::size::Atom;
use super::{Parts, Size, Type, Var};

impl Type {
    pub fn describe(&self, name: &dyn Fn(Var) -> String) -> String {
        match self {
            Type::Scalar(s) => s.name().to_string(),
            Type::Array(shape, s) => format!("{}{}", describe_shape(shape, name), s.name()),
            Type::Tuple(parts) => match (parts.name(), describe_structured(parts, name)) {
                (Some(declared), _) => declared.to_string(),
                (None, Some(structured)) => structured,
                (None, None) => describe_parts(parts, &|t| t.describe(name)),
            },
        }
    }

    /// With the fields of records of declared types: where the name does not tell enough.
    pub fn describe_fully(&self, name: &dyn Fn(Var) -> String) -> String {
        match self {
            Type::Scalar(_) | Type::Array(..) => self.describe(name),
            Type::Tuple(parts) => describe_structured(parts, name).unwrap_or_else(|| describe_parts(parts, &|t| t.describe_fully(name))),
        }
    }
}

/// `[k] lower [d, d]f64`
fn describe_structured(parts: &Parts, name: &dyn Fn(Var) -> String) -> Option<String> {
    let structure = parts.structure()?;
    let (shape, scalar) = (parts[0].shape(), parts[0].scalar()?);
    let outer = &shape[..shape.len().saturating_sub(structure.rank())];
    let outer = if outer.is_empty() { String::new() } else { format!("{} ", describe_shape(outer, name)) };
    let square = describe_shape(&[structure.size.clone(), structure.size.clone()], name);
    Some(format!("{outer}{} {square}{}", structure.describe(name), scalar.name()))
}

fn describe_parts(parts: &Parts, describe: &dyn Fn(&Type) -> String) -> String {
    let types = parts.iter().map(describe);
    match parts.fields() {
        None => format!("({})", types.collect::<Vec<_>>().join(", ")),
        Some(fields) => format!("{{{}}}", fields.iter().zip(types).map(|(f, t)| format!("{f}: {t}")).collect::<Vec<_>>().join(", ")),
    }
}

pub fn describe_shape(shape: &[Size], name: &dyn Fn(Var) -> String) -> String {
    format!("[{}]", shape.iter().map(|s| s.describe(name)).collect::<Vec<_>>().join(", "))
}

impl Size {
    /// Positive terms first, higher degrees first, the constant last: `n - 1`, not `-1 + n`.
    pub fn describe(&self, name: &dyn Fn(Var) -> String) -> String {
        let mut terms: Vec<_> = self.terms().collect();
        terms.sort_by_key(|(m, c)| (m.is_empty(), *c < 0, std::cmp::Reverse(m.len())));
        let mut text = String::new();
        for (monomial, coefficient) in terms {
            text += match (text.is_empty(), coefficient < 0) {
                (true, true) => "-",
                (true, false) => "",
                (false, true) => " - ",
                (false, false) => " + ",
            };
            let mut factors: Vec<String> = monomial.iter().map(|atom| describe_atom(atom, name)).collect();
            let magnitude = coefficient.unsigned_abs();
            if magnitude != 1 || factors.is_empty() {
                factors.insert(0, magnitude.to_string());
            }
            text += &factors.join(" * ");
        }
        if text.is_empty() { "0".to_string() } else { text }
    }
}

fn describe_atom(atom: &Atom, name: &dyn Fn(Var) -> String) -> String {
    let operand = |s: &Size| match (s.as_var(), s.as_constant()) {
        (None, None) => format!("({})", s.describe(name)),
        _ => s.describe(name),
    };
    match atom {
        Atom::Var(v) => name(*v),
        Atom::Div(a, b) => format!("({} div {})", operand(a), operand(b)),
        Atom::Mod(a, b) => format!("({} mod {})", operand(a), operand(b)),
        Atom::Min(a, b) => format!("min({}, {})", a.describe(name), b.describe(name)),
        Atom::Max(a, b) => format!("max({}, {})", a.describe(name), b.describe(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Scalar;

    #[test]
    fn reads_as_written() {
        let (n, m) = (Size::var(Var(0)), Size::var(Var(1)));
        let name = |v: Var| ["n", "m"][v.0 as usize].to_string();
        let show = |s: &Size| s.describe(&name);
        assert_eq!(show(&n.sub(&Size::constant(1))), "n - 1");
        assert_eq!(show(&n.mul(&m).scale(2).add(&Size::constant(3))), "2 * n * m + 3");
        assert_eq!(show(&Size::constant(-4)), "-4");
        assert_eq!(show(&Size::default()), "0");
        assert_eq!(show(&n.add(&Size::constant(1)).div(&Size::constant(2))), "((n + 1) div 2)");
        let ty = Type::tuple(vec![Type::F64, Type::Array(vec![n, m], Scalar::I64)]);
        assert_eq!(ty.describe(&name), "(f64, [n, m]i64)");
    }
}
