//! Results with names: what a derivative gives, keyed by parameter, and its three ways out.
//!
//! JSON: an object; `.npz`: arrays whose names are the keys joined by dots; for people: one `name = value` each.
//! A plain result has no key; alone in an archive it is called `value`.

use super::{Array, Data, Error, Value, json, npy, npz, print, sparse};
use crate::types::Type;
use crate::unfinished;
use std::io::{self, Write};
use std::path::Path;

#[derive(Clone, Debug, PartialEq)]
pub enum Named {
    Value(Value),
    Record(Vec<(String, Named)>),
    List(Vec<Named>),
}

impl From<Value> for Named {
    fn from(value: Value) -> Named {
        Named::Value(value)
    }
}

impl Named {
    /// A value under the names of its type's fields, as it is without records.
    pub fn labelled(value: Value, ty: &Type) -> Named {
        let Type::Tuple(types) = ty else { return Named::Value(value) };
        // A matrix of which a part is stored is its packed array.
        if !ty.has_record() || types.structure().is_some() {
            return Named::Value(value);
        }
        let parts = match value {
            Value::Tuple(parts) if types.len() > 1 => parts,
            // A record of one field is that field.
            value => vec![value],
        };
        let parts: Vec<Named> = parts.into_iter().zip(types).map(|(part, ty)| Named::labelled(part, ty)).collect();
        match types.fields() {
            Some(names) => Named::Record(names.iter().cloned().zip(parts).collect()),
            None => Named::List(parts),
        }
    }

    /// As the language writes it: `{w: [1, 2], b: 3}`. What is short stands on one line.
    pub fn pretty(&self, indent: usize) -> String {
        let (open, close, parts) = match self {
            Named::Value(value) => return print::pretty(value, indent),
            Named::Record(parts) => ("{", "}", parts.iter().map(|(name, part)| (format!("{name}: "), part)).collect::<Vec<_>>()),
            Named::List(parts) => ("(", ")", parts.iter().map(|part| (String::new(), part)).collect()),
        };
        let count = parts.len();
        let mut texts = vec![];
        for (k, (label, part)) in parts.into_iter().enumerate() {
            let end = if k + 1 < count { "," } else { close };
            let text = format!("{label}{}", part.pretty(indent + 1 + label.len()));
            // A comment reaches to the end of its line, so what follows the value goes before it.
            texts.push(match text.rsplit_once(" -- ") {
                Some((value, shape)) => format!("{value}{end} -- {shape}"),
                None => format!("{text}{end}"),
            });
        }
        let short = texts.iter().all(|t| !t.contains(['\n', '[']) && !t.contains(" -- "));
        let separator = if short { " ".to_string() } else { format!("\n{}", " ".repeat(indent + 1)) };
        format!("{open}{}", texts.join(&separator))
    }

    pub fn record<const N: usize>(parts: [(&str, Named); N]) -> Named {
        Named::Record(parts.into_iter().map(|(name, part)| (name.to_string(), part)).collect())
    }

    pub fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        match self {
            Named::Value(value) => json::write(value, out),
            Named::Record(parts) => {
                out.write_all(b"{")?;
                if let Some(format) = self.format() {
                    write!(out, "\"format\": \"{}\", ", format.name())?;
                }
                for (k, (name, part)) in parts.iter().enumerate() {
                    json::separate(k, out)?;
                    json::write_name(name, out)?;
                    out.write_all(b": ")?;
                    part.write_json(out)?;
                }
                out.write_all(b"}")
            }
            Named::List(parts) => {
                out.write_all(b"[")?;
                for (k, part) in parts.iter().enumerate() {
                    json::separate(k, out)?;
                    part.write_json(out)?;
                }
                out.write_all(b"]")
            }
        }
    }

    /// The format of a sparse matrix, where this is one.
    pub fn format(&self) -> Option<sparse::Format> {
        match self {
            Named::Record(parts) => sparse::Format::of(&parts.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>()),
            Named::Value(_) | Named::List(_) => None,
        }
    }

    /// The sparse matrix that this is.
    pub fn matrix(&self) -> Option<Result<sparse::Coo, Error>> {
        let (format, Named::Record(parts)) = (self.format()?, self) else { return None };
        let value = |part: &Named| match part {
            Named::Value(value) => Some(value.clone()),
            Named::Record(_) | Named::List(_) => None,
        };
        let parts: Vec<Value> = parts.iter().map(|(_, part)| value(part)).collect::<Option<_>>()?;
        Some(sparse::of_parts(format, &parts))
    }

    /// The one matrix that a result has, under whatever names.
    pub fn only_matrix(&self) -> Option<Result<sparse::Coo, Error>> {
        match self {
            _ if self.format().is_some() => self.matrix(),
            Named::Record(parts) if parts.len() == 1 => parts[0].1.only_matrix(),
            Named::List(parts) if parts.len() == 1 => parts[0].only_matrix(),
            Named::Value(_) | Named::Record(_) | Named::List(_) => None,
        }
    }

    /// Every sparse matrix under its name.
    pub fn for_each_matrix(&self, path: &str, f: &mut dyn FnMut(&str, Result<sparse::Coo, Error>)) {
        let under = |key: &str| if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
        match (self.matrix(), self) {
            (Some(matrix), _) => f(path, matrix),
            (None, Named::Value(_)) => {}
            (None, Named::Record(parts)) => parts.iter().for_each(|(name, part)| part.for_each_matrix(&under(name), f)),
            (None, Named::List(parts)) => parts.iter().enumerate().for_each(|(k, part)| part.for_each_matrix(&under(&k.to_string()), f)),
        }
    }

    /// The names of the matrices, each in front of the names of its parts.
    fn matrices(&self, path: &str, out: &mut Vec<(String, sparse::Format)>) {
        let under = |key: &str| if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
        match self {
            _ if self.format().is_some() => out.extend(self.format().map(|f| (path.to_string(), f))),
            Named::Value(_) => {}
            Named::Record(parts) => parts.iter().for_each(|(name, part)| part.matrices(&under(name), out)),
            Named::List(parts) => parts.iter().enumerate().for_each(|(k, part)| part.matrices(&under(&k.to_string()), out)),
        }
    }

    /// One `name = value` for each part; a plain result stands alone.
    pub fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        let mut result = Ok(());
        self.for_each(&mut String::new(), &mut |name, value| {
            if result.is_ok() {
                let prefix = if name.is_empty() { String::new() } else { format!("{name} = ") };
                result = writeln!(out, "{prefix}{}", print::pretty(value, prefix.chars().count()));
            }
        });
        result
    }

    pub fn write_npz(&self, path: &Path) -> Result<(), Error> {
        let mut arrays: Vec<(String, Array)> = vec![];
        self.for_each(&mut String::new(), &mut |name, value| {
            let name = match (name, value) {
                ("", Value::Scalar(_) | Value::Array(_)) => "value",
                (name, _) => name,
            };
            push_arrays(name.to_string(), value, &mut arrays)
        });
        let mut matrices = vec![];
        self.matrices("", &mut matrices);
        // One matrix is a file as SciPy writes it.
        if let ([(alone, _)], true) = (matrices.as_slice(), arrays.len() == 4) {
            let prefix = format!("{alone}.");
            arrays.iter_mut().for_each(|(name, _)| *name = name.strip_prefix(&prefix).unwrap_or(name).to_string());
            matrices[0].0.clear();
        }
        let formats =
            matrices.iter().map(|(name, format)| (if name.is_empty() { "format".to_string() } else { format!("{name}.format") }, *format));
        let formats: Vec<(String, sparse::Format)> = formats.collect();
        let words = formats.iter().map(|(name, format)| (name.as_str(), npz::Entry::Text(format.name())));
        npz::write_entries(path, arrays.iter().map(|(name, array)| (name.as_str(), npz::Entry::Array(array))).chain(words))
    }

    /// A result that is one sparse matrix, as Matrix Market has it.
    pub fn write_mtx(&self, path: &Path) -> Result<(), Error> {
        let Some(matrix) = self.only_matrix() else {
            return Err(Error::new(format!("{} holds one sparse matrix, which the result is not", path.display()))
                .note("a Jacobian or Hessian is one with `--format coo` or `csr`, and with `--stack` where it has several parts"));
        };
        let mut text = vec![];
        sparse::write_mtx(&matrix?, &mut text).expect("writing to memory");
        let failed = |e: io::Error| Error::new(format!("cannot write {}: {}", path.display(), npy::reason(&e)));
        let mut file = unfinished::File::beside(path).map_err(failed)?;
        file.contents().write_all(&text).map_err(failed)?;
        file.finish().map_err(failed)
    }

    /// A result that is one array.
    pub fn write_npy(&self, path: &Path) -> Result<(), Error> {
        let mut arrays: Vec<(String, Array)> = vec![];
        self.for_each(&mut String::new(), &mut |name, value| push_arrays(name.to_string(), value, &mut arrays));
        match arrays.as_slice() {
            [(_, array)] => npy::write_file(path, array),
            _ => {
                let error = Error::new(format!("{} holds one array, but the result has {}", path.display(), arrays.len()));
                Err(error.note("several are written to a NumPy archive: `--out result.npz`"))
            }
        }
    }

    fn for_each(&self, path: &mut String, f: &mut impl FnMut(&str, &Value)) {
        let mut under = |key: &str, part: &Named| {
            let length = path.len();
            if length > 0 {
                path.push('.');
            }
            path.push_str(key);
            part.for_each(path, f);
            path.truncate(length);
        };
        match self {
            Named::Value(value) => f(path, value),
            Named::Record(parts) => parts.iter().for_each(|(name, part)| under(name, part)),
            Named::List(parts) => parts.iter().enumerate().for_each(|(k, part)| under(&k.to_string(), part)),
        }
    }
}

/// A tuple's parts are numbered.
fn push_arrays(name: String, value: &Value, arrays: &mut Vec<(String, Array)>) {
    match value {
        Value::Scalar(lit) => {
            let mut data = Data::zeros(lit.scalar(), 1);
            data.set(0, *lit);
            arrays.push((name, Array { shape: vec![], data }))
        }
        Value::Array(a) => arrays.push((name, a.clone())),
        Value::Tuple(parts) => {
            for (k, part) in parts.iter().enumerate() {
                let name = if name.is_empty() { k.to_string() } else { format!("{name}.{k}") };
                push_arrays(name, part, arrays);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_result_three_ways() {
        let result = Named::record([
            ("value", Value::from(2.0).into()),
            ("grad", Named::record([("x", Value::from(vec![1.0, 2.5]).into()), ("t", Value::Tuple(vec![1.0.into(), 2.0.into()]).into())])),
        ]);
        let mut json = vec![];
        result.write_json(&mut json).unwrap();
        assert_eq!(String::from_utf8(json).unwrap(), r#"{"value": 2.0, "grad": {"x": [1.0, 2.5], "t": [1.0, 2.0]}}"#);
        let mut text = vec![];
        result.write_text(&mut text).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "value = 2\ngrad.x = [1, 2.5]\ngrad.t = (1, 2)\n");

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.npz");
        result.write_npz(&path).unwrap();
        let mut archive = npz::Archive::open(&path).unwrap();
        assert_eq!(archive.names(), ["grad.t.0", "grad.t.1", "grad.x", "value"]);
        assert_eq!(archive.read("value").unwrap(), Some(Array::f64(vec![], vec![2.0])));

        Named::from(Value::Tuple(vec![1.0.into(), 2.0.into()])).write_npz(&path).unwrap();
        assert_eq!(npz::Archive::open(&path).unwrap().names(), ["0", "1"]);
        Named::from(Value::from(1i64)).write_npz(&path).unwrap();
        assert_eq!(npz::Archive::open(&path).unwrap().names(), ["value"]);
    }
}
