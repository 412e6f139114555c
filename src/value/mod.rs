//! Values in memory.

use crate::types::{Lit, Scalar};

/// Row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    pub shape: Vec<usize>,
    pub data: Data,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    F64(Vec<f64>),
    I64(Vec<i64>),
    Bool(Vec<bool>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Scalar(Lit),
    Array(Array),
    Tuple(Vec<Value>),
}

impl Data {
    pub fn zeros(scalar: Scalar, count: usize) -> Data {
        match scalar {
            Scalar::F64 => Data::F64(vec![0.0; count]),
            Scalar::I64 => Data::I64(vec![0; count]),
            Scalar::Bool => Data::Bool(vec![false; count]),
        }
    }
    pub fn scalar(&self) -> Scalar {
        match self {
            Data::F64(_) => Scalar::F64,
            Data::I64(_) => Scalar::I64,
            Data::Bool(_) => Scalar::Bool,
        }
    }
    pub fn get(&self, k: usize) -> Lit {
        match self {
            Data::F64(v) => Lit::F64(v[k]),
            Data::I64(v) => Lit::I64(v[k]),
            Data::Bool(v) => Lit::Bool(v[k]),
        }
    }
}
