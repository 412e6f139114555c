//! The parts of a tuple. Those of a record have names; the packed array of a matrix in part stored has its structure.
//!
//! A record is a tuple with a name for each part. The checker knows fields by these names, and so does whoever calls a
//! function from outside; between them, in the IR, a record is `erased` to its parts: no names, and no tuple of one.
//! Two records are of one type if they have the same fields in the same order; the name of a declared type stands in
//! messages only.

use super::{Structure, Type};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub struct Parts {
    types: Vec<Type>,
    record: Option<Arc<Record>>,
    /// Of a matrix of which a part is stored, whose packed array is the one part.
    structure: Option<Arc<Structure>>,
}

#[derive(Debug)]
struct Record {
    fields: Vec<String>,
    /// `Params`, where the type is declared under this name.
    name: Option<String>,
}

impl Parts {
    /// The parts of a record, a name for each.
    pub fn record(fields: Vec<String>, types: Vec<Type>) -> Parts {
        assert_eq!(fields.len(), types.len(), "each field has a type");
        Parts { types, record: Some(Arc::new(Record { fields, name: None })), structure: None }
    }

    /// A matrix of which a part is stored, by its packed array.
    pub fn structured(structure: Structure, packed: Type) -> Parts {
        Parts { types: vec![packed], record: None, structure: Some(Arc::new(structure)) }
    }

    /// Which part of a matrix is stored, if this is one.
    pub fn structure(&self) -> Option<&Structure> {
        self.structure.as_deref()
    }

    /// The names of the fields, if this is a record.
    pub fn fields(&self) -> Option<&[String]> {
        self.record.as_ref().map(|r| r.fields.as_slice())
    }

    /// The name of a part, or its number where it has none.
    pub fn label(&self, k: usize) -> String {
        self.fields().map_or_else(|| k.to_string(), |fields| fields[k].clone())
    }

    /// The name under which the record's type is declared.
    pub fn name(&self) -> Option<&str> {
        self.record.as_ref().and_then(|r| r.name.as_deref())
    }

    pub fn with_name(self, name: &str) -> Parts {
        let record = self.record.map(|r| Arc::new(Record { fields: r.fields.clone(), name: Some(name.to_string()) }));
        Parts { types: self.types, record, structure: self.structure }
    }

    /// The same fields with other types, which are then of no declared type.
    pub fn map(&self, f: impl FnMut(&Type) -> Type) -> Parts {
        self.with_types(self.types.iter().map(f).collect())
    }

    pub fn try_map(&self, f: impl FnMut(&Type) -> Option<Type>) -> Option<Parts> {
        self.types.iter().map(f).collect::<Option<_>>().map(|types| self.with_types(types))
    }

    fn with_types(&self, types: Vec<Type>) -> Parts {
        match &self.record {
            None => Parts { types, record: None, structure: self.structure.clone() },
            Some(r) => Parts::record(r.fields.clone(), types),
        }
    }

    /// The same type with other sizes.
    pub fn map_sizes(&self, f: &mut impl FnMut(&super::Size) -> super::Size) -> Parts {
        let structure = self.structure.as_ref().map(|s| Arc::new(s.map_sizes(f)));
        Parts { types: self.types.iter().map(|t| t.map_sizes(f)).collect(), record: self.record.clone(), structure }
    }

    /// The tangents of the parts that have one.
    pub fn tangents(&self) -> Parts {
        let tangents: Vec<Option<Type>> = self.types.iter().map(Type::tangent).collect();
        let same = tangents.iter().zip(&self.types).all(|(tangent, ty)| tangent.as_ref() == Some(ty));
        match &self.record {
            _ if same => self.clone(),
            None => tangents.into_iter().flatten().collect(),
            Some(r) => {
                let left = r.fields.iter().zip(tangents).filter_map(|(field, ty)| Some((field.clone(), ty?)));
                let (fields, types) = left.unzip();
                Parts::record(fields, types)
            }
        }
    }
}

impl std::ops::Deref for Parts {
    type Target = [Type];
    fn deref(&self) -> &[Type] {
        &self.types
    }
}
impl From<Vec<Type>> for Parts {
    fn from(types: Vec<Type>) -> Parts {
        Parts { types, record: None, structure: None }
    }
}
impl FromIterator<Type> for Parts {
    fn from_iter<I: IntoIterator<Item = Type>>(types: I) -> Parts {
        types.into_iter().collect::<Vec<_>>().into()
    }
}
impl IntoIterator for Parts {
    type Item = Type;
    type IntoIter = std::vec::IntoIter<Type>;
    fn into_iter(self) -> Self::IntoIter {
        self.types.into_iter()
    }
}
impl<'a> IntoIterator for &'a Parts {
    type Item = &'a Type;
    type IntoIter = std::slice::Iter<'a, Type>;
    fn into_iter(self) -> Self::IntoIter {
        self.types.iter()
    }
}

impl PartialEq for Parts {
    fn eq(&self, other: &Parts) -> bool {
        self.types == other.types && self.fields() == other.fields() && self.structure == other.structure
    }
}
impl Eq for Parts {}
impl Hash for Parts {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.types.hash(state);
        self.fields().hash(state);
        self.structure.hash(state);
    }
}
