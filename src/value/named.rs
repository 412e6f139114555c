//! Results with names: what a derivative gives, keyed by parameter, and its three ways out.
//!
//! JSON: an object; `.npz`: arrays whose names are the keys joined by dots; for people: one `name = value` each.
//! A plain result has no key; alone in an archive it is called `value`.

use super::{Array, Data, Error, Value, json, npy, npz, print};
use crate::types::Type;
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
        if !ty.has_record() {
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
        npz::write_file(path, arrays.iter().map(|(name, array)| (name.as_str(), array)))
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
