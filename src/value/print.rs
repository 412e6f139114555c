//! Values for people: nested lists as the language writes them, rows under each other, long axes abbreviated.
//!
//! What is abbreviated says its shape in a comment: `[0, 1, 2, ..., 97, 98, 99] -- [100]f64`.

use super::{Array, Value};
use crate::types::Lit;

/// An array of more elements is abbreviated ...
const MOST_ELEMENTS: usize = 200;
/// ... by showing so many places at both ends of each axis that is longer than twice that.
const ENDS: usize = 3;
/// Lines of numbers are broken before this column.
const WIDTH: usize = 100;

/// A value whose first line is already indented by `indent` columns.
pub fn pretty(value: &Value, indent: usize) -> String {
    match value {
        Value::Scalar(lit) => scalar(*lit),
        Value::Array(a) => {
            let short = a.len() > MOST_ELEMENTS;
            let mut text = rows(a, 0, 0, short, indent);
            if short || a.is_empty() {
                let shape: Vec<String> = a.shape.iter().map(usize::to_string).collect();
                text += &format!(" -- [{}]{}", shape.join(", "), a.scalar().name());
            }
            text
        }
        Value::Tuple(parts) => {
            let one_line = parts.iter().all(|p| matches!(p, Value::Scalar(_)) || (p.shape().len() == 1 && p.shape()[0] <= 2 * ENDS));
            let separator = if one_line { ", ".to_string() } else { format!(",\n{}", " ".repeat(indent + 1)) };
            let parts: Vec<String> = parts.iter().map(|p| pretty(p, indent + 1)).collect();
            // A comment reaches to the end of its line, so the separator goes before it.
            let mut text = String::from("(");
            for (k, part) in parts.iter().enumerate() {
                let end = if k + 1 < parts.len() { separator.clone() } else { ")".into() };
                match part.rsplit_once(" -- ") {
                    Some((value, shape)) if !end.starts_with(')') => text += &format!("{value}, -- {shape}\n{}", " ".repeat(indent + 1)),
                    Some((value, shape)) => text += &format!("{value}) -- {shape}"),
                    None => text += &(part.clone() + &end),
                }
            }
            text
        }
    }
}

/// Whole floats are written without a point, as they may be in programs.
pub fn scalar(lit: Lit) -> String {
    match lit {
        Lit::F64(_) | Lit::F32(_) => {
            let (x, digits) = (lit.as_float().expect("a float"), lit.digits());
            match digits.strip_suffix(".0") {
                _ if x.is_nan() => "nan".into(),
                Some(whole) if x.abs() < 1e15 && (x != 0.0 || x.is_sign_positive()) => whole.into(),
                _ => digits,
            }
        }
        Lit::I64(_) | Lit::I32(_) | Lit::Bool(_) => lit.digits(),
    }
}

/// The part of an array under its first `axis` indices; `None` stands for the places left out.
fn rows(a: &Array, axis: usize, offset: usize, short: bool, indent: usize) -> String {
    let length = a.shape[axis];
    let stride: usize = a.shape[axis + 1..].iter().product();
    let places: Vec<Option<usize>> = match short && length > 2 * ENDS {
        true => (0..ENDS).map(Some).chain([None]).chain((length - ENDS..length).map(Some)).collect(),
        false => (0..length).map(Some).collect(),
    };
    let innermost = axis + 1 == a.rank();
    let items = places.into_iter().map(|place| match place {
        None => "...".to_string(),
        Some(k) if innermost => scalar(a.data.get(offset + k)),
        Some(k) => rows(a, axis + 1, offset + k * stride, short, indent + 1),
    });
    let new_line = format!("\n{}", " ".repeat(indent + 1));
    let mut text = String::from("[");
    let mut column = indent + 1;
    for (k, item) in items.enumerate() {
        if k > 0 {
            text.push(',');
            if !innermost || column + 2 + item.len() > WIDTH {
                text += &new_line;
                column = indent + 1;
            } else {
                text.push(' ');
                column += 2;
            }
        }
        column += item.len();
        text += &item;
    }
    text.push(']');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_values_are_whole_and_long_ones_abbreviated() {
        assert_eq!(pretty(&vec![1.0, 2.5, -0.0].into(), 0), "[1, 2.5, -0.0]");
        assert_eq!(pretty(&Array::f64(vec![2, 2], vec![1.0, 2.0, 3.0, 1e20]).into(), 4), "[[1, 2],\n     [3, 1e20]]");
        assert_eq!(pretty(&(0..1000).collect::<Vec<i64>>().into(), 0), "[0, 1, 2, ..., 997, 998, 999] -- [1000]i64");
        assert_eq!(pretty(&Array::f64(vec![0, 3], vec![]).into(), 0), "[] -- [0, 3]f64");
        assert_eq!(pretty(&Value::Tuple(vec![1.0.into(), true.into()]), 0), "(1, true)");
        let wide = Array::f64(vec![100, 2], vec![0.5; 200]);
        assert_eq!(pretty(&wide.into(), 0).lines().count(), 100);
        let long = Value::Tuple(vec![vec![0.0; 300].into(), 1.0.into()]);
        assert_eq!(pretty(&long, 0), "([0, 0, 0, ..., 0, 0, 0], -- [300]f64\n 1)");
        assert_eq!(pretty(&Value::from(f64::INFINITY), 0), "inf");
    }
}
