//! A file of named values for `--data`: an archive of NumPy arrays, or a JSON object.

use super::tree::{Tree, Wanted};
use super::{Error, Value, json, npz};
use crate::types::{Scalar, Type};
use std::path::{Path, PathBuf};

pub enum DataFile {
    Npz(npz::Archive),
    Json(PathBuf, serde_json::Map<String, serde_json::Value>),
}

impl DataFile {
    pub fn open(path: &Path) -> Result<DataFile, Error> {
        match path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("json") => {
                match json::read_file(path)? {
                    serde_json::Value::Object(map) => Ok(DataFile::Json(path.to_path_buf(), map)),
                    _ => Err(Error::new(format!("{} holds no object", path.display()))
                        .note("write the values with their names: {\"x\": [1, 2]}")),
                }
            }
            Some("npz") => npz::Archive::open(path).map(DataFile::Npz),
            Some("npy") => Err(Error::new(format!("{} holds one array without a name", path.display()))
                .note(format!("pass it as an argument: x=@{}", path.display()))),
            _ => Err(Error::new(format!("{} is no file of values", path.display())).note("files of named values end in .npz or .json")),
        }
    }

    pub fn path(&self) -> &Path {
        match self {
            DataFile::Npz(archive) => archive.path(),
            DataFile::Json(path, _) => path,
        }
    }

    pub fn names(&self) -> Vec<String> {
        match self {
            DataFile::Npz(archive) => archive.names(),
            DataFile::Json(_, map) => map.keys().cloned().collect(),
        }
    }

    /// The type of the elements of an array of this name, if the file knows one.
    pub fn element_type(&mut self, name: &str) -> Option<Scalar> {
        match self {
            DataFile::Npz(archive) => archive.read(name).ok().flatten().map(|array| array.scalar()),
            DataFile::Json(..) => None,
        }
    }

    /// The value of this name, `None` if the file has none. In an archive the parts of a tuple `t` are `t.0`, `t.1`, the
    /// fields of a record `p.w`, `p.b`.
    pub fn get(&mut self, name: &str, wanted: &Wanted) -> Result<Option<Value>, Error> {
        let path = self.path().display().to_string();
        match self.tree(name, wanted.ty)? {
            Some(tree) => wanted.convert(tree).map(Some).map_err(|e| e.note(format!("the value is from {path}"))),
            None => Ok(None),
        }
    }

    fn tree(&mut self, name: &str, ty: &Type) -> Result<Option<Tree>, Error> {
        match self {
            DataFile::Json(_, map) => Ok(map.get(name).map(json::tree)),
            DataFile::Npz(archive) => match ty {
                Type::Scalar(_) | Type::Array(..) => Ok(archive.read(name)?.map(Tree::Array)),
                Type::Tuple(types) if types.structure().is_some() => Ok(archive.read(name)?.map(Tree::Array)),
                Type::Tuple(types) if types.fields().is_some() => {
                    let names = types.fields().unwrap_or_default();
                    let mut fields = vec![];
                    for (field, ty) in names.iter().zip(types) {
                        fields.extend(self.tree(&format!("{name}.{field}"), ty)?.map(|tree| (field.clone(), tree)));
                    }
                    // Where only some are there, the others are missing.
                    Ok((!fields.is_empty()).then_some(Tree::Record(fields)))
                }
                Type::Tuple(types) => {
                    let parts = types.iter().enumerate().map(|(k, ty)| self.tree(&format!("{name}.{k}"), ty));
                    let parts: Vec<Option<Tree>> = parts.collect::<Result<_, _>>()?;
                    Ok(parts.into_iter().collect::<Option<Vec<_>>>().map(Tree::Tuple))
                }
            },
        }
    }
}
