//! Matrices of which a part is stored, from what callers give: the packed array, or the dense matrix, whose other places
//! must be what the structure says they are (zero, or the mirrored number).
//!
//! A band has as many axes packed as dense. Where its widths are known a square array is the dense matrix; else it is
//! packed. `zeros(n, n)`, `random(n, n)` and the like fill the stored places alone.

use super::{Tree, Wanted};
use crate::types::{Form, Parts, Size, Structure, Type};
use crate::value::{Array, Data, Error, Value};

impl Wanted<'_> {
    pub(super) fn structured(&self, types: &Parts, tree: Tree) -> Result<Value, Error> {
        let (Some(structure), Some(scalar)) = (types.structure(), types[0].scalar()) else { return Err(self.mismatch(&tree.describe())) };
        let packed = types[0].shape().len();
        let dense = packed - structure.rank() + 2;
        let shape = tree.shape();
        let square = shape.len() == dense && shape[dense - 2] == shape[dense - 1];
        let widths_known = match &structure.form {
            Form::Lower | Form::Upper | Form::Sym | Form::Diag => true,
            Form::Band(below, above) => below.as_constant().is_some() && above.as_constant().is_some(),
        };
        if !(square && widths_known) {
            let converted = Wanted { what: self.what, ty: &types[0], name: self.name }.convert(tree);
            return converted.map_err(|e| match shape.len() {
                given if given == packed => e,
                _ => self.mismatch(&super::describe_dimensions(&shape)).note(self.forms(structure)),
            });
        }
        let filled = matches!(tree, Tree::Fill(..));
        let all = Type::Array(vec![Size::default(); dense], scalar);
        match (Wanted { what: self.what, ty: &all, name: self.name }.convert(tree)?, filled) {
            (Value::Array(array), filled) => self.packed(structure, array, filled).map(Value::Array),
            (other, _) => Err(self.mismatch(&other.describe())),
        }
    }

    /// What may be given.
    fn forms(&self, structure: &Structure) -> String {
        let n = structure.size.describe(self.name);
        let packed: Vec<String> = structure.packed().iter().map(|s| s.describe(self.name)).collect();
        format!("it is given as a matrix of [{n}, {n}], or packed as [{}]", packed.join(", "))
    }

    /// The stored places of dense matrices. What is `filled` by rule has nothing else.
    fn packed(&self, structure: &Structure, dense: Array, filled: bool) -> Result<Array, Error> {
        let (outer, n) = (&dense.shape[..dense.shape.len() - 2], dense.shape[dense.shape.len() - 1]);
        let width = |s: &Size| s.as_constant().unwrap_or(0).max(0) as usize;
        let (row_length, below, above) = match &structure.form {
            Form::Lower => (None, n, 0),
            Form::Sym => (None, n, 0),
            Form::Upper => (None, 0, n),
            Form::Diag => (Some(1), 0, 0),
            Form::Band(below, above) => (Some(width(below) + width(above) + 1), width(below), width(above)),
        };
        let each = row_length.map_or(n * (n + 1) / 2, |length| n * length);
        let count: usize = outer.iter().product();
        let mut data = Data::zeros(dense.scalar(), count * each);
        let zero = Data::zeros(dense.scalar(), 1).get(0);
        for matrix in 0..count {
            let mut next = matrix * each;
            for i in 0..n {
                for j in 0..n {
                    let value = dense.data.get((matrix * n + i) * n + j);
                    let stored = j + below >= i && j <= i + above;
                    if stored {
                        let place = row_length.map_or(next, |length| matrix * each + i * length + j + below - i);
                        data.set(place, value);
                        next += 1;
                        continue;
                    }
                    let mirrored = matches!(structure.form, Form::Sym);
                    let other = if mirrored { dense.data.get((matrix * n + j) * n + i) } else { zero };
                    let same = value == other || (value.as_float() == Some(0.0) && other.as_float() == Some(0.0));
                    if !same && !filled {
                        return Err(self.beside(structure, &dense, matrix, i, j, mirrored));
                    }
                }
            }
        }
        let stored = row_length.map_or(vec![each], |length| if structure.rank() == 1 { vec![n] } else { vec![n, length] });
        Ok(Array { shape: outer.iter().copied().chain(stored).collect(), data })
    }

    fn beside(&self, structure: &Structure, dense: &Array, matrix: usize, i: usize, j: usize, mirrored: bool) -> Error {
        let n = dense.shape[dense.shape.len() - 1];
        let at = |i: usize, j: usize| {
            let place = (matrix * n + i) * n + j;
            let index: Vec<String> = dense.index_of(place).iter().map(usize::to_string).collect();
            format!("{} at [{}]", super::describe_lit(dense.data.get(place)), index.join(", "))
        };
        let word = structure.describe(self.name);
        if mirrored {
            self.error(format!("expected a symmetric matrix, got {} and {}", at(i, j), at(j, i)))
        } else {
            self.error(format!("expected zero beside the stored places of `{word}`, got {}", at(i, j)))
        }
    }
}

impl Tree {
    /// The lengths of the axes, as far as first elements tell them.
    fn shape(&self) -> Vec<usize> {
        match self {
            Tree::Array(a) => a.shape.clone(),
            Tree::Fill(_, shape) => shape.clone(),
            Tree::List(items) => {
                let mut shape = vec![items.len()];
                shape.extend(items.first().map(Tree::shape).unwrap_or_default());
                shape
            }
            Tree::Scalar(_) | Tree::Tuple(_) | Tree::Record(_) | Tree::Other(_) => vec![],
        }
    }
}
