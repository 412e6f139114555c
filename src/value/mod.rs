//! Values in memory, and how they come from and go to text, JSON and NumPy files.
//!
//! | file         | what it does                                                          |
//! |--------------|-----------------------------------------------------------------------|
//! | `array.rs`   | constructors, shapes, elements, descriptions for messages             |
//! | `compare.rs` | how far two values are apart                                          |
//! | `tree.rs`    | values read without a type, and their conversion to the type wanted   |
//! | `literal.rs` | `[1, 2]`, `(1.0, true)`, `zeros(3)`, `@file.npy` on the command line  |
//! | `json.rs`    | JSON in and out                                                       |
//! | `npy.rs`     | one NumPy array, `npz.rs` archives of them                            |
//! | `sparse.rs`  | sparse matrices: records in programs; JSON, SciPy's archives, Matrix Market |
//! | `data.rs`    | a file of named values, `.npz` or JSON                                |
//! | `named.rs`   | results with names: a derivative keyed by parameter                   |
//! | `print.rs`   | values for people                                                     |

pub mod array;
pub mod compare;
pub mod data;
pub mod json;
pub mod literal;
pub mod named;
pub mod npy;
pub mod npz;
pub mod print;
pub mod sparse;
pub mod tree;

use crate::memory::{Filled, large_pages};
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
    F32(Vec<f32>),
    I64(Vec<i64>),
    I32(Vec<i32>),
    Bool(Vec<bool>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Scalar(Lit),
    Array(Array),
    Tuple(Vec<Value>),
}

/// What is wrong with a value or a file, and perhaps what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub message: String,
    pub notes: Vec<String>,
}

impl Error {
    pub fn new(message: impl Into<String>) -> Error {
        Error { message: message.into(), notes: vec![] }
    }
    pub fn note(mut self, note: impl Into<String>) -> Error {
        self.notes.push(note.into());
        self
    }
    /// Says in front which thing the message is about.
    pub fn about(mut self, what: impl std::fmt::Display) -> Error {
        self.message = format!("{what}: {}", self.message);
        self
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.message)?;
        self.notes.iter().try_for_each(|n| write!(f, "\n  note: {n}"))
    }
}
impl std::error::Error for Error {}

impl Data {
    pub fn zeros(scalar: Scalar, count: usize) -> Data {
        let zeros = match scalar {
            Scalar::F64 => Data::F64(vec![0.0; count]),
            Scalar::F32 => Data::F32(vec![0.0; count]),
            Scalar::I64 => Data::I64(vec![0; count]),
            Scalar::I32 => Data::I32(vec![0; count]),
            Scalar::Bool => Data::Bool(vec![false; count]),
        };
        // They come from the system as they are, and no page is there before it is written to.
        zeros.large_pages(Filled::NotYet);
        zeros
    }
    /// Asks for large pages.
    pub fn large_pages(&self, filled: Filled) {
        match self {
            Data::F64(v) => large_pages(v.as_ptr().cast(), size_of_val(v.as_slice()), filled),
            Data::F32(v) => large_pages(v.as_ptr().cast(), size_of_val(v.as_slice()), filled),
            Data::I64(v) => large_pages(v.as_ptr().cast(), size_of_val(v.as_slice()), filled),
            Data::I32(v) => large_pages(v.as_ptr().cast(), size_of_val(v.as_slice()), filled),
            Data::Bool(v) => large_pages(v.as_ptr().cast(), v.len(), filled),
        }
    }
    pub fn scalar(&self) -> Scalar {
        match self {
            Data::F64(_) => Scalar::F64,
            Data::F32(_) => Scalar::F32,
            Data::I64(_) => Scalar::I64,
            Data::I32(_) => Scalar::I32,
            Data::Bool(_) => Scalar::Bool,
        }
    }
    pub fn get(&self, k: usize) -> Lit {
        match self {
            Data::F64(v) => Lit::F64(v[k]),
            Data::F32(v) => Lit::F32(v[k]),
            Data::I64(v) => Lit::I64(v[k]),
            Data::I32(v) => Lit::I32(v[k]),
            Data::Bool(v) => Lit::Bool(v[k]),
        }
    }
}
