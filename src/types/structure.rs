//! Matrices of which only a part is stored: `lower [n, n]f64`, `upper`, `sym`, `diag`, `band(l, u)`.
//!
//! The stored places stand row by row in one packed array; what is read elsewhere is zero, or for `sym` the mirrored place:
//!
//! | form         | stored places        | packed         | place of `[i, j]`                 |
//! |--------------|----------------------|----------------|-----------------------------------|
//! | `lower`      | `j <= i`             | `n (n + 1) / 2`| `i (i + 1) / 2 + j`               |
//! | `upper`      | `j >= i`             | `n (n + 1) / 2`| `i (2 n - i + 1) / 2 + j - i`     |
//! | `sym`        | `j <= i`, and mirrored| `n (n + 1) / 2`| that of `lower`                  |
//! | `diag`       | `j == i`             | `n`            | `i`                               |
//! | `band(l, u)` | `i - l <= j <= i + u`| `n, l + u + 1` | `i, j - i + l`                    |
//!
//! The rows of a band are as long as the widest: places of them that lie beside the matrix are zero.
//! In types a structure marks a tuple of one part, the packed array, behind whatever axes stand in front; like the names of
//! a record's fields it is known to the checker and to callers, and the IR has the packed array alone.

use super::{Size, Type, Var};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    Lower,
    Upper,
    Sym,
    Diag,
    /// How many diagonals are stored below and above the main one.
    Band(Size, Size),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Structure {
    pub form: Form,
    /// The matrix is `size` by `size`.
    pub size: Size,
}

/// The words that begin a type of a stored part of a matrix.
pub const WORDS: [&str; 5] = ["lower", "upper", "sym", "diag", "band"];

impl Structure {
    pub fn word(&self) -> &'static str {
        match self.form {
            Form::Lower => "lower",
            Form::Upper => "upper",
            Form::Sym => "sym",
            Form::Diag => "diag",
            Form::Band(..) => "band",
        }
    }

    /// The axes of the packed array.
    pub fn packed(&self) -> Vec<Size> {
        let n = &self.size;
        match &self.form {
            Form::Lower | Form::Upper | Form::Sym => vec![n.mul(&n.add(&Size::constant(1))).div(&Size::constant(2))],
            Form::Diag => vec![n.clone()],
            Form::Band(below, above) => vec![n.clone(), below.add(above).add(&Size::constant(1))],
        }
    }

    /// How many axes the packed array has.
    pub fn rank(&self) -> usize {
        match self.form {
            Form::Lower | Form::Upper | Form::Sym | Form::Diag => 1,
            Form::Band(..) => 2,
        }
    }

    pub fn map_sizes(&self, f: &mut impl FnMut(&Size) -> Size) -> Structure {
        let form = match &self.form {
            Form::Band(below, above) => Form::Band(f(below), f(above)),
            other => other.clone(),
        };
        Structure { form, size: f(&self.size) }
    }

    /// `lower`, `band(2)`, `band(1, 0)`
    pub fn describe(&self, name: &dyn Fn(Var) -> String) -> String {
        match &self.form {
            Form::Band(below, above) if below == above => format!("band({})", below.describe(name)),
            Form::Band(below, above) => format!("band({}, {})", below.describe(name), above.describe(name)),
            Form::Lower | Form::Upper | Form::Sym | Form::Diag => self.word().to_string(),
        }
    }
}

impl Type {
    /// The structure of a matrix of which a part is stored, and its packed array with the axes in front.
    pub fn structured(&self) -> Option<(&Structure, &Type)> {
        match self {
            Type::Tuple(parts) => parts.structure().map(|structure| (structure, &parts[0])),
            Type::Scalar(_) | Type::Array(..) => None,
        }
    }

    /// The axes in front of a matrix of which a part is stored.
    pub fn outer_axes(&self) -> Option<&[Size]> {
        let (structure, packed) = self.structured()?;
        packed.shape().len().checked_sub(structure.rank()).map(|outer| &packed.shape()[..outer])
    }
}
