//! Building and looking into values.

use super::{Array, Data, Error, Value};
use crate::types::{Lit, Scalar, Size, Type, Var};

impl Data {
    pub fn len(&self) -> usize {
        match self {
            Data::F64(v) => v.len(),
            Data::F32(v) => v.len(),
            Data::I64(v) => v.len(),
            Data::I32(v) => v.len(),
            Data::Bool(v) => v.len(),
        }
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Room for `count` scalars, or an error where there is not that much memory.
    pub fn try_with_capacity(scalar: Scalar, count: usize) -> Result<Data, Error> {
        fn reserve<T>(count: usize) -> Result<Vec<T>, Error> {
            let mut v = vec![];
            v.try_reserve_exact(count).map_err(|_| Error::new(format!("an array of {count} elements does not fit in memory")))?;
            Ok(v)
        }
        Ok(match scalar {
            Scalar::F64 => Data::F64(reserve(count)?),
            Scalar::F32 => Data::F32(reserve(count)?),
            Scalar::I64 => Data::I64(reserve(count)?),
            Scalar::I32 => Data::I32(reserve(count)?),
            Scalar::Bool => Data::Bool(reserve(count)?),
        })
    }
    /// Appends a scalar of this type.
    pub fn push(&mut self, lit: Lit) {
        match (self, lit) {
            (Data::F64(v), Lit::F64(x)) => v.push(x),
            (Data::F32(v), Lit::F32(x)) => v.push(x),
            (Data::I64(v), Lit::I64(x)) => v.push(x),
            (Data::I32(v), Lit::I32(x)) => v.push(x),
            (Data::Bool(v), Lit::Bool(x)) => v.push(x),
            (data, lit) => panic!("{} in an array of {}", lit.scalar().name(), data.scalar().name()),
        }
    }
    /// Changes the scalar at a place to another of this type.
    pub fn set(&mut self, place: usize, lit: Lit) {
        match (self, lit) {
            (Data::F64(v), Lit::F64(x)) => v[place] = x,
            (Data::F32(v), Lit::F32(x)) => v[place] = x,
            (Data::I64(v), Lit::I64(x)) => v[place] = x,
            (Data::I32(v), Lit::I32(x)) => v[place] = x,
            (Data::Bool(v), Lit::Bool(x)) => v[place] = x,
            (data, lit) => panic!("{} in an array of {}", lit.scalar().name(), data.scalar().name()),
        }
    }
}

/// The number of places of a shape; `None` where it overflows.
pub fn count_of(shape: &[usize]) -> Option<usize> {
    // Axes of no places make the whole empty, however large the others are.
    if shape.contains(&0) { Some(0) } else { shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d)) }
}

impl Array {
    pub fn new(shape: Vec<usize>, data: Data) -> Array {
        assert_eq!(count_of(&shape), Some(data.len()), "shape {shape:?}");
        Array { shape, data }
    }
    pub fn f64(shape: Vec<usize>, data: Vec<f64>) -> Array {
        Array::new(shape, Data::F64(data))
    }
    pub fn zeros(scalar: Scalar, shape: Vec<usize>) -> Array {
        let count = count_of(&shape).expect("a shape that fits in memory");
        Array { data: Data::zeros(scalar, count), shape }
    }
    pub fn rank(&self) -> usize {
        self.shape.len()
    }
    pub fn len(&self) -> usize {
        self.data.len()
    }
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }
    pub fn scalar(&self) -> Scalar {
        self.data.scalar()
    }
    /// Where the element with this full index lies; `None` if it is out of range.
    pub fn offset(&self, index: &[usize]) -> Option<usize> {
        if index.len() != self.shape.len() {
            return None;
        }
        index.iter().zip(&self.shape).try_fold(0, |at, (k, d)| (k < d).then(|| at * d + k))
    }
    pub fn get(&self, index: &[usize]) -> Option<Lit> {
        self.offset(index).map(|k| self.data.get(k))
    }
    /// The index of a place, the inverse of `offset`.
    pub fn index_of(&self, mut place: usize) -> Vec<usize> {
        let mut index = vec![0; self.shape.len()];
        for (k, d) in index.iter_mut().zip(&self.shape).rev() {
            *k = place % d;
            place /= d;
        }
        index
    }
    pub fn as_f64(&self) -> Option<&[f64]> {
        match &self.data {
            Data::F64(v) => Some(v),
            Data::F32(_) | Data::I64(_) | Data::I32(_) | Data::Bool(_) => None,
        }
    }
}

impl From<f64> for Value {
    fn from(x: f64) -> Value {
        Value::Scalar(Lit::F64(x))
    }
}
impl From<i64> for Value {
    fn from(x: i64) -> Value {
        Value::Scalar(Lit::I64(x))
    }
}
impl From<f32> for Value {
    fn from(x: f32) -> Value {
        Value::Scalar(Lit::F32(x))
    }
}
impl From<i32> for Value {
    fn from(x: i32) -> Value {
        Value::Scalar(Lit::I32(x))
    }
}
impl From<bool> for Value {
    fn from(x: bool) -> Value {
        Value::Scalar(Lit::Bool(x))
    }
}
impl From<Array> for Value {
    /// An array without axes is a scalar.
    fn from(array: Array) -> Value {
        if array.shape.is_empty() { Value::Scalar(array.data.get(0)) } else { Value::Array(array) }
    }
}
impl From<Vec<f64>> for Value {
    fn from(v: Vec<f64>) -> Value {
        Value::Array(Array::new(vec![v.len()], Data::F64(v)))
    }
}
impl From<Vec<f32>> for Value {
    fn from(v: Vec<f32>) -> Value {
        Value::Array(Array::new(vec![v.len()], Data::F32(v)))
    }
}
impl From<Vec<i32>> for Value {
    fn from(v: Vec<i32>) -> Value {
        Value::Array(Array::new(vec![v.len()], Data::I32(v)))
    }
}
impl From<Vec<i64>> for Value {
    fn from(v: Vec<i64>) -> Value {
        Value::Array(Array::new(vec![v.len()], Data::I64(v)))
    }
}

impl Value {
    pub fn shape(&self) -> &[usize] {
        match self {
            Value::Array(a) => &a.shape,
            Value::Scalar(_) | Value::Tuple(_) => &[],
        }
    }
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Scalar(Lit::F64(x)) => Some(*x),
            _ => None,
        }
    }
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Scalar(Lit::I64(x)) => Some(*x),
            _ => None,
        }
    }

    /// The zero of a type under an assignment of its sizes; an axis has `max(0, size)` places.
    /// An error where a size cannot be evaluated or the array would not fit in memory.
    pub fn zero(ty: &Type, size: &impl Fn(Var) -> Option<i64>) -> Result<Value, Error> {
        Ok(match ty {
            Type::Scalar(s) => Value::Scalar(Lit::zero(*s)),
            Type::Array(axes, s) => {
                let shape = shape_under(axes, size)?;
                let count = count_of(&shape).ok_or_else(|| Error::new("an array that large does not fit in memory"))?;
                Data::try_with_capacity(*s, count)?;
                Value::Array(Array { data: Data::zeros(*s, count), shape })
            }
            // A record of one field is that field.
            Type::Tuple(parts) if parts.len() == 1 => Value::zero(&parts[0], size)?,
            Type::Tuple(parts) => Value::Tuple(parts.iter().map(|t| Value::zero(t, size)).collect::<Result<_, _>>()?),
        })
    }

    /// Calls `f` on each float in order, with a way to change it; an `f32` is rounded afterwards.
    pub fn for_each_float(&mut self, f: &mut impl FnMut(&mut f64)) {
        let mut narrow = |x: &mut f32| {
            let mut wide = f64::from(*x);
            f(&mut wide);
            *x = wide as f32;
        };
        match self {
            Value::Scalar(Lit::F64(x)) => f(x),
            Value::Scalar(Lit::F32(x)) => narrow(x),
            Value::Scalar(Lit::I64(_) | Lit::I32(_) | Lit::Bool(_)) => {}
            Value::Array(a) => match &mut a.data {
                Data::F64(v) => v.iter_mut().for_each(f),
                Data::F32(v) => v.iter_mut().for_each(narrow),
                Data::I64(_) | Data::I32(_) | Data::Bool(_) => {}
            },
            Value::Tuple(parts) => parts.iter_mut().for_each(|p| p.for_each_float(f)),
        }
    }
    /// All floats in order.
    pub fn floats(&self) -> Vec<f64> {
        fn walk(v: &Value, out: &mut Vec<f64>) {
            match v {
                Value::Scalar(lit) => out.extend(lit.as_float()),
                Value::Array(a) => match &a.data {
                    Data::F64(v) => out.extend_from_slice(v),
                    Data::F32(v) => out.extend(v.iter().map(|x| f64::from(*x))),
                    Data::I64(_) | Data::I32(_) | Data::Bool(_) => {}
                },
                Value::Tuple(parts) => parts.iter().for_each(|p| walk(p, out)),
            }
        }
        let mut out = vec![];
        walk(self, &mut out);
        out
    }
    /// With `f64` in place of every `f32`.
    pub fn widened(&self) -> Value {
        match self {
            Value::Scalar(Lit::F32(x)) => Value::Scalar(Lit::F64((*x).into())),
            Value::Array(Array { shape, data: Data::F32(v) }) => {
                Value::Array(Array { shape: shape.clone(), data: Data::F64(v.iter().map(|x| f64::from(*x)).collect()) })
            }
            Value::Scalar(_) | Value::Array(_) => self.clone(),
            Value::Tuple(parts) => Value::Tuple(parts.iter().map(Value::widened).collect()),
        }
    }
    /// The value of the tangent type: the float parts alone, a tuple with one part left being that part.
    pub fn tangent_part(&self) -> Option<Value> {
        match self {
            Value::Scalar(lit) => lit.scalar().is_float().then(|| self.clone()),
            Value::Array(a) => a.scalar().is_float().then(|| self.clone()),
            Value::Tuple(parts) => {
                let mut left: Vec<Value> = parts.iter().filter_map(Value::tangent_part).collect();
                match left.len() {
                    0 => None,
                    1 => left.pop(),
                    _ => Some(Value::Tuple(left)),
                }
            }
        }
    }

    /// The kind of value in words, for messages: `a 2 x 3 array of f64`.
    pub fn describe(&self) -> String {
        match self {
            Value::Scalar(lit) => describe_lit(*lit),
            Value::Array(a) => format!("{} of {}", describe_dimensions(&a.shape), a.scalar().name()),
            Value::Tuple(parts) => format!("a tuple of {}", parts.len()),
        }
    }
}

/// The shape of an array type under an assignment of sizes.
pub fn shape_under(axes: &[Size], size: &impl Fn(Var) -> Option<i64>) -> Result<Vec<usize>, Error> {
    axes.iter()
        .map(|axis| axis.evaluate(size).map(|d| d.max(0) as usize).ok_or_else(|| Error::new("a size overflows or divides by zero")))
        .collect()
}

pub(super) fn describe_lit(lit: Lit) -> String {
    match lit {
        Lit::F64(_) | Lit::F32(_) | Lit::I64(_) | Lit::I32(_) => format!("the number {}", lit.digits()),
        Lit::Bool(x) => format!("{x}"),
    }
}

/// `an array of 3`, `a 2 x 3 array`.
pub fn describe_dimensions(shape: &[usize]) -> String {
    match shape {
        [] => "a scalar".to_string(),
        [n] => format!("an array of length {n}"),
        _ => format!("a {} array", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(" x ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_indices() {
        let a = Array::f64(vec![2, 3], (0..6).map(f64::from).collect());
        assert_eq!(a.get(&[1, 2]), Some(Lit::F64(5.0)));
        assert_eq!(a.get(&[2, 0]), None);
        assert_eq!(a.get(&[1]), None);
        assert!((0..6).all(|k| a.offset(&a.index_of(k)) == Some(k)));
        assert_eq!(count_of(&[usize::MAX, 2]), None);
        assert_eq!(count_of(&[usize::MAX, 2, 0]), Some(0));
        assert_eq!(Value::from(a).describe(), "a 2 x 3 array of f64");
    }

    #[test]
    fn tangents_keep_the_floats() {
        let v = Value::Tuple(vec![Value::from(1i64), Value::from(vec![1.0, 2.0])]);
        assert_eq!(v.tangent_part(), Some(Value::from(vec![1.0, 2.0])));
        assert_eq!(v.floats(), [1.0, 2.0]);
        assert_eq!(Value::from(true).tangent_part(), None);
    }

    #[test]
    fn zeros_of_huge_sizes_are_errors() {
        let ty = Type::Array(vec![Size::var(Var(0)), Size::var(Var(0))], Scalar::F64);
        assert!(Value::zero(&ty, &|_| Some(i64::MAX)).is_err());
        assert!(Value::zero(&ty, &|_| Some(1 << 30)).is_err());
        assert_eq!(Value::zero(&ty, &|_| Some(-1)).unwrap().shape(), [0, 0]);
    }
}
