//! Values as they are read, before their type is known, and their conversion to the type a parameter wants.
//!
//! Numbers that are written have the type that is wanted: whole ones are floats too, decimal ones the nearest float.
//! Arrays of files have a type of their own, which is converted only where every number stays the same: integers to
//! wider ones and to floats, narrower ones that fit, `f32` to `f64`. An `f64` is never rounded to an `f32`: whoever
//! wants that says it where the file is made. A list of `n` is an axis of `n` places; a tuple may be written as a list
//! (JSON has no other way). A record has its fields in any order, and an array of records, which is a record of arrays,
//! may be a list of records.

mod structured;

use super::array::{count_of, describe_dimensions, describe_lit};
use super::{Array, Data, Error, Value, sparse};
use crate::types::{Lit, Parts, Scalar, Type, Var};

#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    Scalar(Lit),
    List(Vec<Tree>),
    Tuple(Vec<Tree>),
    Record(Vec<(String, Tree)>),
    /// An array from a file.
    Array(Array),
    /// `zeros(3, 4)`: an array by rule, of the scalar type that is wanted.
    Fill(Fill, Vec<usize>),
    /// What is no value, in words: `text "abc"`, `null`.
    Other(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    Zeros,
    Ones,
    /// 0, 1, 2, ... in row-major order.
    Range,
    /// Uniform in (-1, 1), the same for the same name and shape.
    Random,
}

/// What a value is converted to, and how messages speak of it.
pub struct Wanted<'a> {
    /// For messages: ``argument `x` ``. Random numbers depend on it, too.
    pub what: &'a str,
    pub ty: &'a Type,
    pub name: &'a dyn Fn(Var) -> String,
}

impl Wanted<'_> {
    fn error(&self, problem: impl std::fmt::Display) -> Error {
        Error::new(format!("{}: {problem}", self.what))
    }
    fn mismatch(&self, given: &str) -> Error {
        self.error(format!("expected {}, got {given}", self.ty.describe_fully(self.name)))
    }
    /// Of a nest of lists, which may be no array at all.
    fn mismatch_of(&self, tree: &Tree) -> Error {
        match tree.ragged(&mut vec![]) {
            Some(how) => self.mismatch("a ragged list").note(how),
            None => self.mismatch(&tree.describe()),
        }
    }

    pub fn convert(&self, tree: Tree) -> Result<Value, Error> {
        match self.ty {
            Type::Scalar(s) => match tree {
                Tree::Scalar(lit) => self.scalar(lit, *s).map(Value::Scalar),
                Tree::Array(a) if a.rank() == 0 => self.array(a, *s).map(Value::from),
                Tree::Fill(fill, shape) if shape.is_empty() => self.fill(fill, &shape, *s).map(Value::from),
                other => Err(self.mismatch(&other.describe())),
            },
            Type::Array(axes, s) => {
                let array = match tree {
                    Tree::Array(a) if a.rank() == axes.len() => self.array(a, *s)?,
                    Tree::Fill(fill, shape) if shape.len() == axes.len() => self.fill(fill, &shape, *s)?,
                    Tree::List(_) => self.nested(&tree, *s)?,
                    other => return Err(self.mismatch(&other.describe())),
                };
                Ok(Value::Array(array))
            }
            Type::Tuple(types) if types.structure().is_some() => self.structured(types, tree),
            Type::Tuple(types) if types.fields().is_some() => self.record(types, tree),
            Type::Tuple(types) => match tree {
                Tree::Tuple(parts) | Tree::List(parts) if parts.len() == types.len() => {
                    let convert = |(k, (part, ty)): (usize, (Tree, &Type))| {
                        Wanted { what: &format!("{}, part {k}", self.what), ty, name: self.name }.convert(part)
                    };
                    parts.into_iter().zip(types).enumerate().map(convert).collect::<Result<_, _>>().map(Value::Tuple)
                }
                other => Err(self.mismatch(&other.describe())),
            },
        }
    }

    /// The fields of a record in the order of its type. A record of one field is that field.
    fn record(&self, types: &Parts, tree: Tree) -> Result<Value, Error> {
        let names = types.fields().unwrap_or_default();
        let mut given = match (tree, sparse::Format::of(names)) {
            (Tree::Record(fields), Some(format)) => sparse::fitted(format, fields).map_err(|e| e.about(self.what))?,
            (tree, _) => match tree {
                Tree::Record(fields) => fields,
                Tree::List(items) if items.iter().all(|item| matches!(item, Tree::Record(_))) => self.transposed(items)?,
                other => return Err(self.mismatch(&other.describe())),
            },
        };
        if let Some((name, _)) = given.iter().find(|(name, _)| !names.contains(name)) {
            let error = self.error(format!("there is no field `{name}`"));
            return Err(error.note(format!("the fields are {}", quoted(names))));
        }
        let mut values = vec![];
        let mut missing = vec![];
        for (name, ty) in names.iter().zip(types) {
            match given.iter().position(|(given, _)| given == name) {
                Some(k) => {
                    let what = format!("{}, field `{name}`", self.what);
                    values.push(Wanted { what: &what, ty, name: self.name }.convert(given.swap_remove(k).1)?);
                }
                None => missing.push(name),
            }
        }
        if !missing.is_empty() {
            let noun = if missing.len() == 1 { "field" } else { "fields" };
            let verb = if missing.len() == 1 { "is" } else { "are" };
            return Err(self.error(format!("the {noun} {} {verb} missing", quoted(&missing))));
        }
        if let Some((name, _)) = given.first() {
            return Err(self.error(format!("the field `{name}` is given twice")));
        }
        Ok(if values.len() == 1 { values.remove(0) } else { Value::Tuple(values) })
    }

    /// A list of records as a record of lists.
    fn transposed(&self, items: Vec<Tree>) -> Result<Vec<(String, Tree)>, Error> {
        let mut columns: Vec<(String, Vec<Tree>)> = vec![];
        for (k, item) in items.into_iter().enumerate() {
            let Tree::Record(fields) = item else { continue };
            if k > 0 && (fields.len() != columns.len() || fields.iter().any(|(name, _)| !columns.iter().any(|(c, _)| c == name))) {
                return Err(self.error(format!("the record at [{k}] has other fields than the first")));
            }
            for (name, tree) in fields {
                match columns.iter_mut().find(|(c, _)| *c == name) {
                    Some((_, column)) => column.push(tree),
                    None => columns.push((name, vec![tree])),
                }
            }
        }
        Ok(columns.into_iter().map(|(name, column)| (name, Tree::List(column))).collect())
    }

    /// A number that is written.
    fn scalar(&self, lit: Lit, wanted: Scalar) -> Result<Lit, Error> {
        let refused = || self.error(format!("expected {}, got {}", wanted.name(), describe_lit(lit)));
        match (lit, wanted) {
            (lit, wanted) if lit.scalar() == wanted => Ok(lit),
            (Lit::I64(x), Scalar::F64) => Ok(Lit::F64(x as f64)),
            (Lit::I64(x), Scalar::F32) => Ok(Lit::F32(x as f32)),
            (Lit::F64(x), Scalar::F32) => Ok(Lit::F32(x as f32)),
            (Lit::I64(x), Scalar::I32) => {
                i32::try_from(x).map(Lit::I32).map_err(|_| refused().note("`i32` holds whole numbers from -2^31 to 2^31 - 1"))
            }
            (Lit::F64(x), Scalar::I64 | Scalar::I32) => {
                let whole = x.fract() == 0.0 && x.abs() < 9e15;
                Err(if whole { refused().note(format!("a whole number has no point: `{}`", x as i64)) } else { refused() })
            }
            _ => Err(refused()),
        }
    }

    /// An array of a file.
    fn array(&self, array: Array, wanted: Scalar) -> Result<Array, Error> {
        let Array { shape, data } = array;
        let given = match shape.as_slice() {
            [] => describe_lit(data.get(0)),
            shape => format!("{} of {}", describe_dimensions(shape), data.scalar().name()),
        };
        let refused = || self.mismatch(&given);
        let changed = |place: usize, x: i64| {
            let index = Array { shape: shape.clone(), data: Data::zeros(Scalar::Bool, 0) }.index_of(place);
            let at = index.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
            refused().note(format!("its number {x} at [{at}] is no {}", wanted.name()))
        };
        let exact = |x: i64| x as f32 as i128 == i128::from(x);
        let data = match (data, wanted) {
            (data, wanted) if data.scalar() == wanted => data,
            (Data::I64(v), Scalar::F64) => Data::F64(v.iter().map(|x| *x as f64).collect()),
            (Data::I32(v), Scalar::F64) => Data::F64(v.iter().map(|x| f64::from(*x)).collect()),
            (Data::I32(v), Scalar::I64) => Data::I64(v.iter().map(|x| i64::from(*x)).collect()),
            (Data::F32(v), Scalar::F64) => Data::F64(v.iter().map(|x| f64::from(*x)).collect()),
            (Data::I64(v), Scalar::I32) => {
                let narrow = |(k, x): (usize, &i64)| i32::try_from(*x).map_err(|_| changed(k, *x));
                Data::I32(v.iter().enumerate().map(narrow).collect::<Result<_, _>>()?)
            }
            (Data::I64(v), Scalar::F32) => {
                let convert = |(k, x): (usize, &i64)| if exact(*x) { Ok(*x as f32) } else { Err(changed(k, *x)) };
                Data::F32(v.iter().enumerate().map(convert).collect::<Result<_, _>>()?)
            }
            (Data::I32(v), Scalar::F32) => {
                let convert = |(k, x): (usize, &i32)| if exact((*x).into()) { Ok(*x as f32) } else { Err(changed(k, (*x).into())) };
                Data::F32(v.iter().enumerate().map(convert).collect::<Result<_, _>>()?)
            }
            (Data::F64(_), Scalar::F32) => {
                return Err(refused().note("numbers of files are not rounded; save it as `float32`, or declare the parameter as `f64`"));
            }
            _ => return Err(refused()),
        };
        Ok(Array { shape, data })
    }

    fn fill(&self, fill: Fill, shape: &[usize], scalar: Scalar) -> Result<Array, Error> {
        let count = count_of(shape).ok_or_else(|| self.error("an array that large does not fit in memory"))?;
        let mut data = Data::try_with_capacity(scalar, count).map_err(|e| e.about(self.what))?;
        let mut random = Random::new(self.what);
        match (&mut data, fill) {
            (Data::F64(v), Fill::Zeros) => v.resize(count, 0.0),
            (Data::F64(v), Fill::Ones) => v.resize(count, 1.0),
            (Data::F64(v), Fill::Range) => v.extend((0..count).map(|k| k as f64)),
            (Data::F64(v), Fill::Random) => v.extend((0..count).map(|_| random.symmetric())),
            (Data::F32(v), Fill::Zeros) => v.resize(count, 0.0),
            (Data::F32(v), Fill::Ones) => v.resize(count, 1.0),
            (Data::F32(v), Fill::Range) => v.extend((0..count).map(|k| k as f32)),
            (Data::F32(v), Fill::Random) => v.extend((0..count).map(|_| random.symmetric() as f32)),
            (Data::I64(v), Fill::Zeros) => v.resize(count, 0),
            (Data::I64(v), Fill::Ones) => v.resize(count, 1),
            (Data::I64(v), Fill::Range) => v.extend(0..count as i64),
            (Data::I32(v), Fill::Zeros) => v.resize(count, 0),
            (Data::I32(v), Fill::Ones) => v.resize(count, 1),
            (Data::I32(v), Fill::Range) => {
                let last = i32::try_from(count).map_err(|_| self.error(format!("`range({count})` does not fit i32")))?;
                v.extend(0..last)
            }
            (Data::Bool(v), Fill::Zeros) => v.resize(count, false),
            (Data::Bool(v), Fill::Ones) => v.resize(count, true),
            (Data::I64(_) | Data::I32(_), Fill::Random) | (Data::Bool(_), Fill::Range | Fill::Random) => {
                return Err(self.mismatch("random or counted numbers").note("`random` gives floats, `range` floats or integers"));
            }
        }
        Ok(Array { shape: shape.to_vec(), data })
    }

    /// A nest of lists, all of one length at each depth.
    fn nested(&self, tree: &Tree, scalar: Scalar) -> Result<Array, Error> {
        let axes = self.ty.shape();
        let mut shape = vec![];
        let mut level = tree;
        while let Tree::List(items) = level {
            if shape.len() == axes.len() {
                return Err(self.mismatch_of(tree));
            }
            shape.push(items.len());
            match items.first() {
                Some(first) => level = first,
                // The remaining axes of an empty list are what the type says, or empty.
                None => {
                    let rest = &axes[shape.len()..];
                    shape.extend(rest.iter().map(|s| s.as_constant().map_or(0, |c| c.max(0) as usize)));
                    return Ok(Array { data: Data::zeros(scalar, 0), shape });
                }
            }
        }
        if shape.len() < axes.len() {
            return Err(match level {
                Tree::Scalar(_) => self.mismatch_of(tree),
                other => self.error(format!("expected numbers, got {}", other.describe())),
            });
        }
        let mut data = Data::try_with_capacity(scalar, 0)?;
        self.flatten(tree, &shape, scalar, &mut vec![], &mut data)?;
        Ok(Array { shape, data })
    }

    fn flatten(&self, tree: &Tree, shape: &[usize], scalar: Scalar, at: &mut Vec<usize>, data: &mut Data) -> Result<(), Error> {
        let place = |at: &[usize]| format!("[{}]", at.iter().map(usize::to_string).collect::<Vec<_>>().join(", "));
        match (tree, shape) {
            (Tree::List(items), [length, rest @ ..]) => {
                if items.len() != *length {
                    return Err(self.error(format!("the list is ragged: row {} has {}, the first row {length}", place(at), items.len())));
                }
                for (k, item) in items.iter().enumerate() {
                    at.push(k);
                    self.flatten(item, rest, scalar, at, data)?;
                    at.pop();
                }
                Ok(())
            }
            (Tree::Scalar(lit), []) => match self.scalar(*lit, scalar) {
                Ok(lit) => {
                    data.push(lit);
                    Ok(())
                }
                Err(e) => Err(Error { message: format!("{} at {}", e.message, place(at)), notes: e.notes }),
            },
            (Tree::List(_), []) | (Tree::Scalar(_), [_, ..]) => {
                Err(self.error(format!("the list is ragged: a list and a number side by side at {}", place(at))))
            }
            (other, _) => Err(self.error(format!("expected {}, got {} at {}", scalar.name(), other.describe(), place(at)))),
        }
    }
}

fn quoted(names: &[impl AsRef<str>]) -> String {
    names.iter().map(|n| format!("`{}`", n.as_ref())).collect::<Vec<_>>().join(", ")
}

impl Tree {
    /// Where a nest of lists is no array: its items are not all lists of one length, or all no lists.
    fn ragged(&self, at: &mut Vec<usize>) -> Option<String> {
        let Tree::List(items) = self else { return None };
        let place = |at: &[usize], k: usize| {
            let indices: Vec<String> = at.iter().chain([&k]).map(usize::to_string).collect();
            format!("[{}]", indices.join(", "))
        };
        let length = |tree: &Tree| match tree {
            Tree::List(items) => Some(items.len()),
            _ => None,
        };
        let words = |tree: &Tree| match tree {
            Tree::List(items) => format!("a list of {}", items.len()),
            other => other.describe(),
        };
        let first = items.first()?;
        if let Some((k, other)) = items.iter().enumerate().find(|(_, item)| length(item) != length(first)) {
            return Some(format!("{} is {}, but {} is {}", place(at, 0), words(first), place(at, k), words(other)));
        }
        items.iter().enumerate().find_map(|(k, item)| {
            at.push(k);
            let found = item.ragged(at);
            at.pop();
            found
        })
    }

    /// In words, for messages.
    pub fn describe(&self) -> String {
        match self {
            Tree::Scalar(lit) => describe_lit(*lit),
            Tree::List(_) => {
                let (mut shape, mut level) = (vec![], self);
                while let Tree::List(items) = level {
                    shape.push(items.len());
                    match items.first() {
                        Some(first) => level = first,
                        None => break,
                    }
                }
                describe_dimensions(&shape)
            }
            Tree::Tuple(parts) => format!("a tuple of {}", parts.len()),
            Tree::Record(fields) => {
                format!("a record of {}", quoted(&fields.iter().map(|(name, _)| name).collect::<Vec<_>>()))
            }
            Tree::Array(a) => format!("{} of {}", describe_dimensions(&a.shape), a.scalar().name()),
            Tree::Fill(_, shape) => describe_dimensions(shape),
            Tree::Other(words) => words.clone(),
        }
    }
}

/// Reproducible random numbers: splitmix64 from a seed given by a name.
pub struct Random(u64);

impl Random {
    pub fn new(name: &str) -> Random {
        // FNV-1a spreads names over the seeds.
        Random(name.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)))
    }
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// Uniform in (-1, 1).
    pub fn symmetric(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) / (1u64 << 52) as f64 - 1.0
    }
    /// Uniform in `0..n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n.max(1) as u64) as usize
    }
}
