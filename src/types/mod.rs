//! Types: scalars, arrays with symbolic sizes, tuples; records, which are tuples whose parts have names.
//!
//! An array's elements are scalars: an array of tuples *is* a tuple of arrays (`for i. (a, b)` has type
//! `([n]A, [n]B)`), so pairs never sit inside storage.

pub mod describe;
pub mod parts;
pub mod size;

pub use parts::Parts;
pub use size::{Size, Var};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scalar {
    F64,
    I64,
    Bool,
}

impl Scalar {
    pub fn is_float(self) -> bool {
        self == Scalar::F64
    }
    pub fn name(self) -> &'static str {
        match self {
            Scalar::F64 => "f64",
            Scalar::I64 => "i64",
            Scalar::Bool => "bool",
        }
    }
}

/// One number or truth value. Equality is by bits, so that NaN equals itself and -0 differs from 0.
#[derive(Clone, Copy, Debug)]
pub enum Lit {
    F64(f64),
    I64(i64),
    Bool(bool),
}

impl Lit {
    pub fn scalar(self) -> Scalar {
        match self {
            Lit::F64(_) => Scalar::F64,
            Lit::I64(_) => Scalar::I64,
            Lit::Bool(_) => Scalar::Bool,
        }
    }
    /// The additive zero of a scalar type (`false` for `bool`).
    pub fn zero(scalar: Scalar) -> Lit {
        match scalar {
            Scalar::F64 => Lit::F64(0.0),
            Scalar::I64 => Lit::I64(0),
            Scalar::Bool => Lit::Bool(false),
        }
    }
    fn key(self) -> (Scalar, u64) {
        match self {
            Lit::F64(x) => (Scalar::F64, x.to_bits()),
            Lit::I64(x) => (Scalar::I64, x as u64),
            Lit::Bool(x) => (Scalar::Bool, x as u64),
        }
    }
}

impl PartialEq for Lit {
    fn eq(&self, other: &Lit) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Lit {}
impl std::hash::Hash for Lit {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.key().hash(state)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    Scalar(Scalar),
    /// At least one axis.
    Array(Vec<Size>, Scalar),
    /// A record has names for its parts; in the IR none has.
    Tuple(Parts),
}

impl Type {
    pub const F64: Type = Type::Scalar(Scalar::F64);
    pub const I64: Type = Type::Scalar(Scalar::I64);
    pub const BOOL: Type = Type::Scalar(Scalar::Bool);

    /// An array of `shape`, or the scalar itself where the shape has no axis.
    pub fn array(shape: Vec<Size>, scalar: Scalar) -> Type {
        if shape.is_empty() { Type::Scalar(scalar) } else { Type::Array(shape, scalar) }
    }

    pub fn tuple(parts: Vec<Type>) -> Type {
        Type::Tuple(parts.into())
    }

    /// `[size]self`: one more axis in front; a tuple gets it in every part.
    pub fn with_axis(&self, size: &Size) -> Type {
        match self {
            Type::Scalar(s) => Type::Array(vec![size.clone()], *s),
            Type::Array(shape, s) => {
                let mut axes = vec![size.clone()];
                axes.extend(shape.iter().cloned());
                Type::Array(axes, *s)
            }
            Type::Tuple(parts) => Type::Tuple(parts.map(|t| t.with_axis(size))),
        }
    }

    /// The type of a read with `count` indices; `None` if there are fewer axes.
    pub fn without_axes(&self, count: usize) -> Option<Type> {
        match self {
            Type::Scalar(_) => (count == 0).then(|| self.clone()),
            Type::Array(shape, s) => (count <= shape.len()).then(|| Type::array(shape[count..].to_vec(), *s)),
            Type::Tuple(parts) => parts.try_map(|t| t.without_axes(count)).map(Type::Tuple),
        }
    }

    pub fn shape(&self) -> &[Size] {
        match self {
            Type::Array(shape, _) => shape,
            Type::Scalar(_) | Type::Tuple(_) => &[],
        }
    }

    /// The scalar of a scalar or an array.
    pub fn scalar(&self) -> Option<Scalar> {
        match self {
            Type::Scalar(s) | Type::Array(_, s) => Some(*s),
            Type::Tuple(_) => None,
        }
    }

    /// Whether any part is a float: only such values have tangents and adjoints.
    pub fn has_float(&self) -> bool {
        match self {
            Type::Scalar(s) | Type::Array(_, s) => s.is_float(),
            Type::Tuple(parts) => parts.iter().any(Type::has_float),
        }
    }

    /// The type of tangents and adjoints: the float parts alone. A tuple of which one part is left is that part, but
    /// a record stays a record; `None` where nothing is left.
    pub fn tangent(&self) -> Option<Type> {
        match self {
            Type::Scalar(s) | Type::Array(_, s) => s.is_float().then(|| self.clone()),
            Type::Tuple(parts) => {
                let left = parts.tangents();
                match (left.len(), left.fields()) {
                    (0, _) => None,
                    (1, None) => left.into_iter().next(),
                    _ => Some(Type::Tuple(left)),
                }
            }
        }
    }

    /// The type without names of fields, as the IR has it: a record of one field is that field.
    pub fn erased(&self) -> Type {
        match self {
            Type::Scalar(_) | Type::Array(..) => self.clone(),
            Type::Tuple(parts) if parts.len() == 1 => parts[0].erased(),
            Type::Tuple(parts) => Type::Tuple(parts.iter().map(Type::erased).collect()),
        }
    }

    /// Whether there is a record anywhere in the type.
    pub fn has_record(&self) -> bool {
        match self {
            Type::Scalar(_) | Type::Array(..) => false,
            Type::Tuple(parts) => parts.fields().is_some() || parts.iter().any(Type::has_record),
        }
    }

    pub fn map_sizes(&self, f: &mut impl FnMut(&Size) -> Size) -> Type {
        match self {
            Type::Scalar(_) => self.clone(),
            Type::Array(shape, s) => Type::Array(shape.iter().map(f).collect(), *s),
            Type::Tuple(parts) => Type::Tuple(parts.map_sizes(f)),
        }
    }
}
