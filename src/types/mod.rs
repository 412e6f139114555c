//! Types: scalars, arrays with symbolic sizes, tuples; records, which are tuples whose parts have names; matrices of which a
//! part is stored (`structure`).
//!
//! An array's elements are scalars: an array of tuples *is* a tuple of arrays (`for i. (a, b)` has type
//! `([n]A, [n]B)`), so pairs never sit inside storage.

pub mod describe;
pub mod parts;
pub mod size;
pub mod structure;

pub use parts::Parts;
pub use size::{Size, Var};
pub use structure::{Form, Structure};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scalar {
    F64,
    F32,
    I64,
    I32,
    Bool,
}

impl Scalar {
    /// What a number of this type takes in memory.
    pub fn bytes(self) -> usize {
        match self {
            Scalar::F64 | Scalar::I64 => 8,
            Scalar::F32 | Scalar::I32 => 4,
            Scalar::Bool => 1,
        }
    }
    pub const ALL: [Scalar; 5] = [Scalar::F64, Scalar::F32, Scalar::I64, Scalar::I32, Scalar::Bool];

    pub fn is_float(self) -> bool {
        matches!(self, Scalar::F64 | Scalar::F32)
    }
    pub fn is_integer(self) -> bool {
        matches!(self, Scalar::I64 | Scalar::I32)
    }
    pub fn is_number(self) -> bool {
        self != Scalar::Bool
    }
    pub fn name(self) -> &'static str {
        match self {
            Scalar::F64 => "f64",
            Scalar::F32 => "f32",
            Scalar::I64 => "i64",
            Scalar::I32 => "i32",
            Scalar::Bool => "bool",
        }
    }
    pub fn by_name(name: &str) -> Option<Scalar> {
        Scalar::ALL.into_iter().find(|s| s.name() == name)
    }
}

/// One number or truth value. Equality is by bits, so that NaN equals itself and -0 differs from 0.
#[derive(Clone, Copy, Debug)]
pub enum Lit {
    F64(f64),
    F32(f32),
    I64(i64),
    I32(i32),
    Bool(bool),
}

impl Lit {
    pub fn scalar(self) -> Scalar {
        match self {
            Lit::F64(_) => Scalar::F64,
            Lit::F32(_) => Scalar::F32,
            Lit::I64(_) => Scalar::I64,
            Lit::I32(_) => Scalar::I32,
            Lit::Bool(_) => Scalar::Bool,
        }
    }
    /// The additive zero of a scalar type (`false` for `bool`).
    pub fn zero(scalar: Scalar) -> Lit {
        Lit::small(scalar, 0)
    }
    /// The multiplicative one (`true` for `bool`).
    pub fn one(scalar: Scalar) -> Lit {
        Lit::small(scalar, 1)
    }
    /// A whole number that every type but `bool` holds; a `bool` is whether it is not zero.
    pub fn small(scalar: Scalar, value: i8) -> Lit {
        match scalar {
            Scalar::F64 => Lit::F64(value.into()),
            Scalar::F32 => Lit::F32(value.into()),
            Scalar::I64 => Lit::I64(value.into()),
            Scalar::I32 => Lit::I32(value.into()),
            Scalar::Bool => Lit::Bool(value != 0),
        }
    }
    /// The float of this type that is nearest.
    pub fn float(scalar: Scalar, value: f64) -> Lit {
        match scalar {
            Scalar::F64 => Lit::F64(value),
            Scalar::F32 => Lit::F32(value as f32),
            Scalar::I64 | Scalar::I32 | Scalar::Bool => panic!("{} is no float", scalar.name()),
        }
    }
    /// The integer of this type that is equal modulo the type's range.
    pub fn integer(scalar: Scalar, value: i64) -> Lit {
        match scalar {
            Scalar::I64 => Lit::I64(value),
            Scalar::I32 => Lit::I32(value as i32),
            Scalar::F64 | Scalar::F32 | Scalar::Bool => panic!("{} is no integer", scalar.name()),
        }
    }
    /// The smallest number of the type; of floats it is infinite.
    pub fn lowest(scalar: Scalar) -> Lit {
        match scalar {
            Scalar::F64 => Lit::F64(f64::NEG_INFINITY),
            Scalar::F32 => Lit::F32(f32::NEG_INFINITY),
            Scalar::I64 => Lit::I64(i64::MIN),
            Scalar::I32 => Lit::I32(i32::MIN),
            Scalar::Bool => Lit::Bool(false),
        }
    }
    pub fn highest(scalar: Scalar) -> Lit {
        match scalar {
            Scalar::F64 => Lit::F64(f64::INFINITY),
            Scalar::F32 => Lit::F32(f32::INFINITY),
            Scalar::I64 => Lit::I64(i64::MAX),
            Scalar::I32 => Lit::I32(i32::MAX),
            Scalar::Bool => Lit::Bool(true),
        }
    }
    /// A float as an `f64`, which holds it exactly.
    pub fn as_float(self) -> Option<f64> {
        match self {
            Lit::F64(x) => Some(x),
            Lit::F32(x) => Some(x.into()),
            Lit::I64(_) | Lit::I32(_) | Lit::Bool(_) => None,
        }
    }
    /// An integer as an `i64`, which holds it exactly.
    pub fn as_integer(self) -> Option<i64> {
        match self {
            Lit::I64(x) => Some(x),
            Lit::I32(x) => Some(x.into()),
            Lit::F64(_) | Lit::F32(_) | Lit::Bool(_) => None,
        }
    }
    /// The shortest digits that read back as this number where its type is wanted. Floats have a point or an exponent;
    /// `inf` and `NaN` are as Rust has them.
    pub fn digits(self) -> String {
        match self {
            Lit::F64(x) => format!("{x:?}"),
            Lit::F32(x) => {
                // Readers go through `f64`. Should that round to another number, its own digits say it exactly.
                let short = format!("{x:?}");
                let again = short.parse::<f64>().map(|y| (y as f32).to_bits());
                if again == Ok(x.to_bits()) || x.is_nan() { short } else { format!("{:?}", f64::from(x)) }
            }
            Lit::I64(x) => x.to_string(),
            Lit::I32(x) => x.to_string(),
            Lit::Bool(x) => x.to_string(),
        }
    }
    fn key(self) -> (Scalar, u64) {
        match self {
            Lit::F64(x) => (Scalar::F64, x.to_bits()),
            Lit::F32(x) => (Scalar::F32, x.to_bits().into()),
            Lit::I64(x) => (Scalar::I64, x as u64),
            Lit::I32(x) => (Scalar::I32, x as u64),
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
    pub const F32: Type = Type::Scalar(Scalar::F32);
    pub const I64: Type = Type::Scalar(Scalar::I64);
    pub const I32: Type = Type::Scalar(Scalar::I32);
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
            // A matrix of which a part is stored has its axes in front alone; its places are no part of the packed array's.
            Type::Tuple(_) if self.outer_axes().is_some_and(|outer| outer.len() < count) => None,
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
                    (1, None) if left.structure().is_none() => left.into_iter().next(),
                    _ => Some(Type::Tuple(left)),
                }
            }
        }
    }

    /// How many floats a value of the type has.
    pub fn float_count(&self) -> Size {
        match self {
            Type::Scalar(s) => Size::constant(s.is_float().into()),
            Type::Array(shape, s) => shape.iter().fold(Size::constant(s.is_float().into()), |n, axis| n.mul(axis)),
            Type::Tuple(parts) => parts.iter().fold(Size::default(), |n, part| n.add(&part.float_count())),
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

    /// Whether there is a record, or a matrix of which a part is stored, anywhere in the type.
    pub fn has_record(&self) -> bool {
        match self {
            Type::Scalar(_) | Type::Array(..) => false,
            Type::Tuple(parts) => parts.fields().is_some() || parts.structure().is_some() || parts.iter().any(Type::has_record),
        }
    }

    pub fn map_scalars(&self, f: &mut impl FnMut(Scalar) -> Scalar) -> Type {
        match self {
            Type::Scalar(s) => Type::Scalar(f(*s)),
            Type::Array(shape, s) => Type::Array(shape.clone(), f(*s)),
            Type::Tuple(parts) => Type::Tuple(parts.map(|t| t.map_scalars(f))),
        }
    }

    pub fn for_each_size(&self, f: &mut impl FnMut(&Size)) {
        match self {
            Type::Scalar(_) => {}
            Type::Array(shape, _) => shape.iter().for_each(f),
            Type::Tuple(parts) => parts.iter().for_each(|t| t.for_each_size(f)),
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
