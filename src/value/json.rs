//! JSON in and out: arrays and tuples as lists, names and records as objects, floats in their shortest form that reads back the
//! same, and `"Infinity"`, `"-Infinity"`, `"NaN"` as text, because JSON has no such numbers.

use super::tree::Tree;
use super::{Array, Error, Value};
use crate::types::Lit;
use serde_json::Value as Json;
use std::io::{self, Write};
use std::path::Path;

pub fn write(value: &Value, out: &mut impl Write) -> io::Result<()> {
    match value {
        Value::Scalar(lit) => write_lit(*lit, out),
        Value::Array(a) => write_array(a, 0, 0, out),
        Value::Tuple(parts) => {
            out.write_all(b"[")?;
            for (k, part) in parts.iter().enumerate() {
                separate(k, out)?;
                write(part, out)?;
            }
            out.write_all(b"]")
        }
    }
}

pub fn to_string(value: &Value) -> String {
    let mut out = vec![];
    write(value, &mut out).expect("writing to memory");
    String::from_utf8(out).expect("JSON is text")
}

pub(super) fn separate(k: usize, out: &mut impl Write) -> io::Result<()> {
    if k > 0 { out.write_all(b", ") } else { Ok(()) }
}

/// A name as a JSON string.
pub(super) fn write_name(name: &str, out: &mut impl Write) -> io::Result<()> {
    write!(out, "{}", Json::String(name.to_string()))
}

fn write_lit(lit: Lit, out: &mut impl Write) -> io::Result<()> {
    match lit.as_float() {
        Some(x) if x.is_nan() => out.write_all(b"\"NaN\""),
        Some(x) if x.is_infinite() => out.write_all(if x > 0.0 { b"\"Infinity\"" } else { b"\"-Infinity\"" }),
        _ => out.write_all(lit.digits().as_bytes()),
    }
}

/// The part of an array under the first `axis` indices, which starts at `offset`.
fn write_array(array: &Array, axis: usize, offset: usize, out: &mut impl Write) -> io::Result<()> {
    let stride: usize = array.shape[axis + 1..].iter().product();
    out.write_all(b"[")?;
    for k in 0..array.shape[axis] {
        separate(k, out)?;
        let at = offset + k * stride;
        if axis + 1 < array.rank() {
            write_array(array, axis + 1, at, out)?;
        } else {
            write_lit(array.data.get(at), out)?;
        }
    }
    out.write_all(b"]")
}

/// A JSON document as a value without type.
pub fn tree(json: &Json) -> Tree {
    match json {
        Json::Null => Tree::Other("null".into()),
        Json::Bool(b) => Tree::Scalar(Lit::Bool(*b)),
        Json::Number(n) => match (n.as_i64(), n.as_f64()) {
            (Some(x), _) => Tree::Scalar(Lit::I64(x)),
            (None, Some(x)) => Tree::Scalar(Lit::F64(x)),
            (None, None) => Tree::Other(format!("the number {n}")),
        },
        Json::String(s) => match s.as_str() {
            "Infinity" => Tree::Scalar(Lit::F64(f64::INFINITY)),
            "-Infinity" => Tree::Scalar(Lit::F64(f64::NEG_INFINITY)),
            "NaN" => Tree::Scalar(Lit::F64(f64::NAN)),
            _ => Tree::Other(format!("the text {json}")),
        },
        Json::Array(items) => Tree::List(items.iter().map(tree).collect()),
        Json::Object(fields) => Tree::Record(fields.iter().map(|(name, value)| (name.clone(), tree(value))).collect()),
    }
}

/// Reads a JSON file.
pub fn read_file(path: &Path) -> Result<Json, Error> {
    let bytes = std::fs::read(path).map_err(|e| super::npy::cannot_read(path, &e))?;
    serde_json::from_slice(&bytes).map_err(|e| Error::new(format!("{} is not JSON: {e}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::super::Data;
    use super::super::tree::Wanted;
    use super::*;
    use crate::types::{Scalar, Size, Type, Var};

    #[test]
    fn writes_numbers_shortest_and_special_ones_as_text() {
        let v = Value::Tuple(vec![
            Value::from(vec![0.1, 1.0, -0.0, 1e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY]),
            Value::from(7i64),
            Value::from(true),
            Value::from(Array::f64(vec![2, 0, 3], vec![])),
            Value::from(Array::f64(vec![2, 1], vec![1.5, 2.5])),
        ]);
        assert_eq!(to_string(&v), r#"[[0.1, 1.0, -0.0, 1e300, "NaN", "Infinity", "-Infinity"], 7, true, [[], []], [[1.5], [2.5]]]"#);
    }

    #[test]
    fn reads_back_what_it_writes() {
        let n = |k| Size::var(Var(k));
        let ty = Type::tuple(vec![Type::Array(vec![n(0), n(1)], Scalar::F64), Type::I64, Type::Array(vec![n(0)], Scalar::Bool)]);
        let v = Value::Tuple(vec![
            Array::f64(vec![2, 3], vec![0.1, 5e-324, 1.7976931348623157e308, f64::INFINITY, -1.0 / 3.0, f64::NEG_INFINITY]).into(),
            i64::MAX.into(),
            Array::new(vec![2], Data::Bool(vec![true, false])).into(),
        ]);
        let json: Json = serde_json::from_str(&to_string(&v)).unwrap();
        let wanted = Wanted { what: "x", ty: &ty, name: &|v| format!("{v:?}") };
        assert_eq!(wanted.convert(tree(&json)), Ok(v));
        assert!(wanted.convert(tree(&serde_json::json!([[["a"]], 1, [true]]))).unwrap_err().message.contains("the text \"a\""));
        assert!(wanted.convert(tree(&serde_json::json!({"a": 1}))).unwrap_err().message.contains("got a record of `a`"));
    }
}
