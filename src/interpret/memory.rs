//! Values and destinations of the interpreter.
//!
//! A value shares its arrays, so that reading a variable copies nothing. A destination is a place in a buffer on a stack
//! of buffers: an expression is added into it without building the expression's value first.

use crate::bind::{Argument, View};
use crate::types::{Lit, Scalar};
use crate::value::{Array, Data, Value};
use std::rc::Rc;

#[derive(Clone, Debug)]
pub enum Val {
    Scalar(Lit),
    Array(Rc<Array>),
    Tuple(Vec<Val>),
}

impl Argument for Val {
    fn view(&self) -> View<'_, Val> {
        match self {
            Val::Scalar(lit) => View::Scalar(*lit),
            Val::Array(array) => View::Array(array),
            Val::Tuple(parts) => View::Tuple(parts),
        }
    }
}

impl Val {
    pub fn from_value(value: &Value) -> Val {
        match value {
            Value::Scalar(lit) => Val::Scalar(*lit),
            Value::Array(array) => Val::Array(Rc::new(array.clone())),
            Value::Tuple(parts) => Val::Tuple(parts.iter().map(Val::from_value).collect()),
        }
    }
    pub fn into_value(self) -> Value {
        match self {
            Val::Scalar(lit) => Value::Scalar(lit),
            Val::Array(array) => Value::Array(Rc::unwrap_or_clone(array)),
            Val::Tuple(parts) => Value::Tuple(parts.into_iter().map(Val::into_value).collect()),
        }
    }
    /// The number of scalars in it.
    pub fn count(&self) -> u64 {
        match self {
            Val::Scalar(_) => 1,
            Val::Array(array) => array.shape.iter().product::<usize>() as u64,
            Val::Tuple(parts) => parts.iter().map(Val::count).sum(),
        }
    }
    /// The number of elements of its arrays.
    pub fn arrays(&self) -> u64 {
        match self {
            Val::Scalar(_) => 0,
            Val::Array(_) => self.count(),
            Val::Tuple(parts) => parts.iter().map(Val::arrays).sum(),
        }
    }
    pub fn lit(&self) -> Lit {
        match self {
            Val::Scalar(lit) => *lit,
            other => panic!("interpret: {other:?} stands where a scalar should"),
        }
    }
    pub fn int(&self) -> i64 {
        match self.lit() {
            Lit::I64(k) => k,
            other => panic!("interpret: {other:?} stands where an integer should"),
        }
    }
    pub fn truth(&self) -> bool {
        match self.lit() {
            Lit::Bool(p) => p,
            other => panic!("interpret: {other:?} stands where a truth value should"),
        }
    }
    /// The size of an axis; the parts of a tuple agree on it.
    pub fn axis(&self, axis: usize) -> usize {
        match self {
            Val::Scalar(_) => panic!("interpret: a scalar is indexed"),
            Val::Array(array) => array.shape[axis],
            Val::Tuple(parts) => parts[0].axis(axis),
        }
    }
    /// The value at indices that are in range.
    pub fn at(&self, keys: &[usize]) -> Val {
        match self {
            Val::Scalar(_) => panic!("interpret: a scalar is indexed"),
            Val::Array(array) => {
                let rest = &array.shape[keys.len()..];
                let count: usize = rest.iter().product();
                let place = keys.iter().zip(&array.shape).fold(0, |offset, (k, n)| offset * n + k);
                if rest.is_empty() {
                    Val::Scalar(array.data.get(place))
                } else {
                    Val::Array(Rc::new(Array { shape: rest.to_vec(), data: slice(&array.data, place * count, count) }))
                }
            }
            Val::Tuple(parts) => Val::Tuple(parts.iter().map(|p| p.at(keys)).collect()),
        }
    }
}

fn slice(data: &Data, start: usize, count: usize) -> Data {
    match data {
        Data::F64(v) => Data::F64(v[start..start + count].to_vec()),
        Data::F32(v) => Data::F32(v[start..start + count].to_vec()),
        Data::I64(v) => Data::I64(v[start..start + count].to_vec()),
        Data::I32(v) => Data::I32(v[start..start + count].to_vec()),
        Data::Bool(v) => Data::Bool(v[start..start + count].to_vec()),
    }
}

fn append(data: &mut Data, more: &Data) {
    match (data, more) {
        (Data::F64(v), Data::F64(w)) => v.extend_from_slice(w),
        (Data::F32(v), Data::F32(w)) => v.extend_from_slice(w),
        (Data::I64(v), Data::I64(w)) => v.extend_from_slice(w),
        (Data::I32(v), Data::I32(w)) => v.extend_from_slice(w),
        (Data::Bool(v), Data::Bool(w)) => v.extend_from_slice(w),
        (data, more) => panic!("interpret: {:?} are put beside {:?}", more.scalar(), data.scalar()),
    }
}

/// Puts at least one value of equal shapes one behind the other, along a new first axis.
pub fn stack(values: Vec<Val>) -> Val {
    let count = values.len();
    match &values[0] {
        Val::Scalar(first) => {
            let mut data = Data::zeros(first.scalar(), 0);
            values.iter().for_each(|v| data.push(v.lit()));
            Val::Array(Rc::new(Array { shape: vec![count], data }))
        }
        Val::Array(first) => {
            let mut data = Data::zeros(first.data.scalar(), 0);
            for value in &values {
                match value {
                    Val::Array(array) if array.shape == first.shape => append(&mut data, &array.data),
                    other => panic!("interpret: {other:?} is put beside an array of shape {:?}", first.shape),
                }
            }
            let shape = [&[count], first.shape.as_slice()].concat();
            Val::Array(Rc::new(Array { shape, data }))
        }
        Val::Tuple(first) => {
            let mut columns: Vec<Vec<Val>> = first.iter().map(|_| Vec::with_capacity(count)).collect();
            for value in values {
                match value {
                    Val::Tuple(parts) if parts.len() == columns.len() => columns.iter_mut().zip(parts).for_each(|(c, p)| c.push(p)),
                    other => panic!("interpret: {other:?} is put beside a tuple of {} parts", columns.len()),
                }
            }
            Val::Tuple(columns.into_iter().map(stack).collect())
        }
    }
}

/// What a value takes in memory: a type with its sizes evaluated.
#[derive(Clone, Debug, PartialEq)]
pub enum Layout {
    Leaf(Vec<usize>, Scalar),
    Tuple(Vec<Layout>),
}

impl Layout {
    pub fn of(value: &Val) -> Layout {
        match value {
            Val::Scalar(lit) => Layout::Leaf(vec![], lit.scalar()),
            Val::Array(array) => Layout::Leaf(array.shape.clone(), array.data.scalar()),
            Val::Tuple(parts) => Layout::Tuple(parts.iter().map(Layout::of).collect()),
        }
    }
    /// One more axis in front of every part.
    pub fn with_axis(self, n: usize) -> Layout {
        match self {
            Layout::Leaf(mut shape, scalar) => {
                shape.insert(0, n);
                Layout::Leaf(shape, scalar)
            }
            Layout::Tuple(parts) => Layout::Tuple(parts.into_iter().map(|p| p.with_axis(n)).collect()),
        }
    }
    pub fn parts(self) -> Vec<Layout> {
        match self {
            Layout::Tuple(parts) => parts,
            Layout::Leaf(..) => panic!("interpret: several variables name a tuple"),
        }
    }
    pub fn zero(&self) -> Val {
        match self {
            Layout::Leaf(shape, scalar) if shape.is_empty() => Val::Scalar(Lit::zero(*scalar)),
            Layout::Leaf(shape, scalar) => {
                Val::Array(Rc::new(Array { shape: shape.clone(), data: Data::zeros(*scalar, shape.iter().product()) }))
            }
            Layout::Tuple(parts) => Val::Tuple(parts.iter().map(Layout::zero).collect()),
        }
    }
}

/// Part of a buffer, or several for a tuple.
#[derive(Clone, Debug)]
pub enum Place {
    Leaf {
        buffer: usize,
        offset: usize,
        shape: Rc<[usize]>,
        /// How many of the shape's axes are indexed away.
        depth: usize,
    },
    Tuple(Vec<Place>),
}

impl Place {
    /// The place at an index in range of the first axis.
    pub fn at(&self, k: usize) -> Place {
        match self {
            Place::Leaf { buffer, offset, shape, depth } => {
                let stride: usize = shape[depth + 1..].iter().product();
                Place::Leaf { buffer: *buffer, offset: offset + k * stride, shape: shape.clone(), depth: depth + 1 }
            }
            Place::Tuple(parts) => Place::Tuple(parts.iter().map(|p| p.at(k)).collect()),
        }
    }
    /// The number of scalars in it.
    pub fn count(&self) -> u64 {
        match self {
            Place::Leaf { shape, depth, .. } => shape[*depth..].iter().product::<usize>() as u64,
            Place::Tuple(parts) => parts.iter().map(Place::count).sum(),
        }
    }
    pub fn parts(&self) -> &[Place] {
        match self {
            Place::Tuple(parts) => parts,
            Place::Leaf { .. } => panic!("interpret: a tuple is added to an array"),
        }
    }
    /// The part of a part of a tuple.
    pub fn part(&self, path: &[usize]) -> Place {
        path.iter().fold(self, |place, k| &place.parts()[*k]).clone()
    }
    /// The size of an axis.
    pub fn axis(&self, k: usize) -> usize {
        match self {
            Place::Leaf { shape, depth, .. } => shape[depth + k],
            Place::Tuple(parts) => parts[0].axis(k),
        }
    }
}

/// The buffers that are being added to, innermost last.
#[derive(Default)]
pub struct Buffers(Vec<Data>);

impl Buffers {
    /// Makes a value a destination. `pop` gives it back.
    pub fn push(&mut self, value: Val) -> Place {
        let buffer = self.0.len();
        match value {
            Val::Scalar(lit) => {
                let mut data = Data::zeros(lit.scalar(), 0);
                data.push(lit);
                self.0.push(data);
                Place::Leaf { buffer, offset: 0, shape: Rc::from([]), depth: 0 }
            }
            Val::Array(array) => {
                let Array { shape, data } = Rc::unwrap_or_clone(array);
                self.0.push(data);
                Place::Leaf { buffer, offset: 0, shape: shape.into(), depth: 0 }
            }
            Val::Tuple(parts) => Place::Tuple(parts.into_iter().map(|p| self.push(p)).collect()),
        }
    }
    /// The value of the destination that was pushed last.
    pub fn pop(&mut self, place: &Place) -> Val {
        match place {
            Place::Leaf { buffer, shape, .. } => {
                assert_eq!(*buffer + 1, self.0.len(), "interpret: destinations are popped in order");
                let data = self.0.pop().expect("the buffer was pushed");
                if shape.is_empty() { Val::Scalar(data.get(0)) } else { Val::Array(Rc::new(Array { shape: shape.to_vec(), data })) }
            }
            Place::Tuple(parts) => {
                let mut values: Vec<Val> = parts.iter().rev().map(|p| self.pop(p)).collect();
                values.reverse();
                Val::Tuple(values)
            }
        }
    }
    /// Puts a value of the place's shape there.
    pub fn store(&mut self, place: &Place, value: &Val) {
        match (place, value) {
            (Place::Leaf { buffer, offset, shape, depth }, Val::Scalar(lit)) if *depth == shape.len() => self.0[*buffer].set(*offset, *lit),
            (Place::Leaf { buffer, offset, shape, depth }, Val::Array(array)) if shape[*depth..] == array.shape => {
                (0..array.len()).for_each(|k| self.0[*buffer].set(offset + k, array.data.get(k)))
            }
            (Place::Tuple(places), Val::Tuple(values)) if places.len() == values.len() => {
                places.iter().zip(values).for_each(|(p, v)| self.store(p, v))
            }
            (place, value) => panic!("interpret: {value:?} does not fit {place:?}"),
        }
    }
    /// Adds a value of the place's shape, and says how many floats were added.
    pub fn add(&mut self, place: &Place, value: &Val) -> u64 {
        match (place, value) {
            (Place::Leaf { buffer, offset, shape, depth }, Val::Scalar(lit)) if *depth == shape.len() => {
                match (&mut self.0[*buffer], lit) {
                    (Data::F64(v), Lit::F64(x)) => {
                        v[*offset] += x;
                        1
                    }
                    (Data::F32(v), Lit::F32(x)) => {
                        v[*offset] += x;
                        1
                    }
                    (Data::I64(v), Lit::I64(x)) => {
                        v[*offset] = v[*offset].wrapping_add(*x);
                        0
                    }
                    (Data::I32(v), Lit::I32(x)) => {
                        v[*offset] = v[*offset].wrapping_add(*x);
                        0
                    }
                    (data, lit) => panic!("interpret: {lit:?} is added to {:?}", data.scalar()),
                }
            }
            (Place::Leaf { buffer, offset, shape, depth }, Val::Array(array)) if shape[*depth..] == array.shape => {
                match (&mut self.0[*buffer], &array.data) {
                    (Data::F64(v), Data::F64(w)) => {
                        v[*offset..].iter_mut().zip(w).for_each(|(a, b)| *a += b);
                        w.len() as u64
                    }
                    (Data::F32(v), Data::F32(w)) => {
                        v[*offset..].iter_mut().zip(w).for_each(|(a, b)| *a += b);
                        w.len() as u64
                    }
                    (Data::I32(v), Data::I32(w)) => {
                        v[*offset..].iter_mut().zip(w).for_each(|(a, b)| *a = a.wrapping_add(*b));
                        0
                    }
                    (Data::I64(v), Data::I64(w)) => {
                        v[*offset..].iter_mut().zip(w).for_each(|(a, b)| *a = a.wrapping_add(*b));
                        0
                    }
                    (data, more) => panic!("interpret: {:?} are added to {:?}", more.scalar(), data.scalar()),
                }
            }
            (Place::Tuple(places), Val::Tuple(values)) if places.len() == values.len() => {
                places.iter().zip(values).map(|(p, v)| self.add(p, v)).sum()
            }
            (place, value) => panic!("interpret: {value:?} does not fit {place:?}"),
        }
    }
}
