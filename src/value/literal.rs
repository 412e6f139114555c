//! Values on the command line: text to `Tree`.
//!
//! ```text
//! value = number | true | false | infinity | nan | [value, ..] | (value, ..) | {name: value, ..} | zeros(3, 4) | ones(..) | range(..) | random(..)
//!       | @file.npy | @file.json | @file.npz:name | @matrix.npz | @matrix.mtx
//! ```

use super::tree::{Fill, Tree};
use super::{Error, json, npy, npz, sparse};
use crate::types::Lit;
use std::path::Path;

/// Deeper than any array; keeps the reader from running out of stack.
const DEEPEST: usize = 64;

/// Reads a value, following `@file`.
pub fn read(text: &str) -> Result<Tree, Error> {
    if let Some(file) = text.trim().strip_prefix('@') {
        return read_file(file);
    }
    let mut reader = Reader { text, at: 0 };
    let tree = reader.value(0)?;
    reader.skip_space();
    match reader.peek() {
        None => Ok(tree),
        Some(_) => Err(reader.unexpected("the end")),
    }
}

fn read_file(file: &str) -> Result<Tree, Error> {
    let extension = |f: &str| Path::new(f).extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase);
    // A colon may be part of a path, so that an existing file is never split.
    if let Some((archive, name)) = file.rsplit_once(':').filter(|(a, _)| extension(a).as_deref() == Some("npz")) {
        let mut archive = npz::Archive::open(Path::new(archive))?;
        return match archive.read(name)? {
            Some(array) => Ok(Tree::Array(array)),
            None => Err(Error::new(format!("no array `{name}` in {}", archive.path().display()))
                .note(format!("the file has: {}", archive.names().join(", ")))),
        };
    }
    match extension(file).as_deref() {
        Some("npy") => npy::read_file(Path::new(file)).map(Tree::Array),
        Some("json") => json::read_file(Path::new(file)).map(|j| json::tree(&j)),
        Some("mtx") => sparse::mtx_tree(Path::new(file)),
        Some("npz") => {
            // A file that cannot be read is no matrix; it is to be named another way in any case.
            if let Some(matrix) = npz::Archive::open(Path::new(file)).ok().map(|mut a| sparse::in_archive(&mut a)).transpose()?.flatten() {
                return Ok(matrix);
            }
            Err(Error::new(format!("{file} holds several arrays")).note(format!("name one: `@{file}:x`, or pass `--data {file}`")))
        }
        _ => Err(Error::new(format!("{file} is no file of values")).note("files of values end in .npy, .npz, .mtx or .json")),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }
    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }
    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }
    fn take(&mut self, c: char) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }
    /// The longest prefix of such characters.
    fn word(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let word = &rest[..rest.find(|c| !accept(c)).unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    fn unexpected(&self, wanted: &str) -> Error {
        let shown: String = self.rest().chars().take(12).collect();
        match shown.is_empty() {
            true => Error::new(format!("expected {wanted}, but the value ends")),
            false => Error::new(format!("expected {wanted}, got `{shown}` at character {}", self.text[..self.at].chars().count() + 1)),
        }
        .note("values are numbers, `infinity`, `nan`, `true`, `false`, lists `[1, 2]`, tuples `(1, [2, 3])`, records `{a: 1}`, `zeros(3)`, `ones(3)`, `range(3)`, `random(3)`, or `@file.npy`")
    }

    fn value(&mut self, depth: usize) -> Result<Tree, Error> {
        if depth > DEEPEST {
            return Err(Error::new(format!("lists are nested deeper than {DEEPEST}")));
        }
        self.skip_space();
        match self.peek() {
            Some('[') => {
                self.at += 1;
                self.items(']', depth).map(Tree::List)
            }
            Some('(') => {
                self.at += 1;
                let mut parts = self.items(')', depth)?;
                // A tuple of one is a value in parentheses.
                Ok(if parts.len() == 1 { parts.remove(0) } else { Tree::Tuple(parts) })
            }
            Some('{') => {
                self.at += 1;
                self.fields(depth)
            }
            Some(c) if c.is_alphabetic() => self.named(),
            Some(c) if c.is_ascii_digit() || "+-.".contains(c) => self.number(),
            _ => Err(self.unexpected("a value")),
        }
    }

    /// Values up to the closing bracket; a comma may follow the last.
    fn items(&mut self, close: char, depth: usize) -> Result<Vec<Tree>, Error> {
        let mut items = vec![];
        loop {
            if self.take(close) {
                return Ok(items);
            }
            items.push(self.value(depth + 1)?);
            if !self.take(',') && !self.rest().starts_with(close) {
                return Err(self.unexpected(&format!("`,` or `{close}`")));
            }
        }
    }

    /// `name: value, ..}`
    fn fields(&mut self, depth: usize) -> Result<Tree, Error> {
        let mut fields: Vec<(String, Tree)> = vec![];
        loop {
            if self.take('}') {
                return Ok(Tree::Record(fields));
            }
            self.skip_space();
            let quote = self.take('"');
            let name = self.word(|c| c.is_alphanumeric() || c == '_').to_string();
            if name.is_empty() || (quote && !self.take('"')) {
                return Err(self.unexpected("the name of a field"));
            }
            if !self.take(':') {
                return Err(self.unexpected(&format!("`:` behind the field `{name}`")));
            }
            if fields.iter().any(|(f, _)| *f == name) {
                return Err(Error::new(format!("the field `{name}` is given twice")));
            }
            fields.push((name, self.value(depth + 1)?));
            if !self.take(',') && !self.rest().starts_with('}') {
                return Err(self.unexpected("`,` or `}`"));
            }
        }
    }

    fn named(&mut self) -> Result<Tree, Error> {
        let start = self.at;
        let word = self.word(|c| c.is_alphanumeric() || c == '_');
        let fill = match word {
            "true" => return Ok(Tree::Scalar(Lit::Bool(true))),
            "false" => return Ok(Tree::Scalar(Lit::Bool(false))),
            "inf" | "infinity" | "Infinity" => return Ok(Tree::Scalar(Lit::F64(f64::INFINITY))),
            "nan" | "NaN" => return Ok(Tree::Scalar(Lit::F64(f64::NAN))),
            "zeros" => Fill::Zeros,
            "ones" => Fill::Ones,
            "range" => Fill::Range,
            "random" => Fill::Random,
            _ => {
                self.at = start;
                return Err(self.unexpected("a value"));
            }
        };
        if !self.take('(') {
            return Err(self.unexpected(&format!("the shape: `{word}(3, 4)`")));
        }
        let mut shape = vec![];
        loop {
            if self.take(')') {
                return Ok(Tree::Fill(fill, shape));
            }
            self.skip_space();
            let start = self.at;
            match self.word(|c| c.is_ascii_digit() || c == '_').replace('_', "").parse() {
                Ok(d) => shape.push(d),
                Err(_) => {
                    self.at = start;
                    return Err(self.unexpected("a size"));
                }
            }
            if !self.take(',') && !self.rest().starts_with(')') {
                return Err(self.unexpected("`,` or `)`"));
            }
        }
    }

    fn number(&mut self) -> Result<Tree, Error> {
        let start = self.at;
        let sign = self.word(|c| c == '+' || c == '-');
        if sign.len() <= 1 && self.rest().starts_with(|c: char| c.is_alphabetic()) {
            return match self.word(|c| c.is_alphanumeric()) {
                "inf" | "infinity" | "Infinity" => Ok(Tree::Scalar(Lit::F64(if sign == "-" { f64::NEG_INFINITY } else { f64::INFINITY }))),
                "nan" | "NaN" => Ok(Tree::Scalar(Lit::F64(f64::NAN))),
                _ => {
                    self.at = start;
                    Err(self.unexpected("a number"))
                }
            };
        }
        self.word(|c| c.is_ascii_digit() || c == '.' || c == '_');
        if self.rest().starts_with(['e', 'E']) {
            self.at += 1;
            if self.rest().starts_with(['+', '-']) {
                self.at += 1;
            }
            self.word(|c| c.is_ascii_digit());
        }
        let text = self.text[start..self.at].replace('_', "");
        let whole = !text.contains(['.', 'e', 'E']);
        match (whole, text.parse::<i64>(), text.parse::<f64>()) {
            (true, Ok(x), _) => Ok(Tree::Scalar(Lit::I64(x))),
            (_, _, Ok(x)) if !self.rest().starts_with(|c: char| c.is_alphanumeric()) => Ok(Tree::Scalar(Lit::F64(x))),
            _ => {
                self.at = start;
                Err(self.unexpected("a number"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::Wanted;
    use super::super::{Array, Data, Value};
    use super::*;
    use crate::types::{Parts, Scalar, Size, Type, Var};

    fn convert(text: &str, ty: &Type) -> Result<Value, String> {
        let name = |v: Var| ["n", "m"][v.0 as usize].to_string();
        read(text).and_then(|t| Wanted { what: "argument `x`", ty, name: &name }.convert(t)).map_err(|e| e.to_string())
    }
    fn array(rank: u32, scalar: Scalar) -> Type {
        Type::array((0..rank).map(|k| Size::var(Var(k))).collect(), scalar)
    }

    #[test]
    fn reads_values() {
        let (f1, f2) = (array(1, Scalar::F64), array(2, Scalar::F64));
        assert_eq!(convert("[1, 2.5,-3e2 , ]", &f1), Ok(vec![1.0, 2.5, -300.0].into()));
        assert_eq!(convert("[[1,2],[3,4]]", &f2), Ok(Array::f64(vec![2, 2], vec![1.0, 2.0, 3.0, 4.0]).into()));
        assert_eq!(convert("3", &Type::I64), Ok(3i64.into()));
        assert_eq!(convert("-9223372036854775808", &Type::I64), Ok(i64::MIN.into()));
        assert_eq!(convert("3", &Type::F64), Ok(3.0.into()));
        assert_eq!(convert("1_000.5", &Type::F64), Ok(1000.5.into()));
        assert_eq!(convert("-inf", &Type::F64), Ok(f64::NEG_INFINITY.into()));
        assert_eq!(convert("true", &Type::BOOL), Ok(true.into()));
        let tuple = Type::tuple(vec![Type::F64, f1.clone()]);
        let wanted = Value::Tuple(vec![1.0.into(), vec![2.0, 3.0].into()]);
        assert_eq!(convert("(1.0,[2,3])", &tuple), Ok(wanted.clone()));
        assert_eq!(convert("[1.0,[2,3]]", &tuple), Ok(wanted));
        let record = Type::Tuple(Parts::record(vec!["a".into(), "b".into()], vec![Type::F64, f1.clone()]));
        let wanted = Value::Tuple(vec![1.0.into(), vec![2.0, 3.0].into()]);
        assert_eq!(convert("{b: [2, 3], a: 1}", &record), Ok(wanted.clone()));
        assert_eq!(convert(r#"{"a": 1, "b": [2, 3],}"#, &record), Ok(wanted));
        let points = Type::Tuple(Parts::record(vec!["x".into(), "y".into()], vec![f1.clone(), f1.clone()]));
        assert_eq!(convert("[{x: 1, y: 2}, {y: 4, x: 3}]", &points), convert("{x: [1, 3], y: [2, 4]}", &points));
        assert_eq!(convert("{a: 2}", &Type::Tuple(Parts::record(vec!["a".into()], vec![Type::F64]))), Ok(2.0.into()));
        assert_eq!(convert("[]", &f1).unwrap().shape(), [0]);
        assert_eq!(convert("[]", &f2).unwrap().shape(), [0, 0]);
        assert_eq!(convert("[[],[]]", &f2).unwrap().shape(), [2, 0]);
        assert_eq!(convert("[]", &Type::Array(vec![Size::var(Var(0)), Size::constant(3)], Scalar::F64)).unwrap().shape(), [0, 3]);
    }

    #[test]
    fn fills() {
        let f2 = array(2, Scalar::F64);
        assert_eq!(convert("ones(2,1)", &f2), Ok(Array::f64(vec![2, 1], vec![1.0, 1.0]).into()));
        assert_eq!(convert("range(3)", &array(1, Scalar::I64)), Ok(vec![0i64, 1, 2].into()));
        assert_eq!(convert("zeros(1)", &array(1, Scalar::Bool)), Ok(Array::new(vec![1], Data::Bool(vec![false])).into()));
        let random = convert("random(3, 4)", &f2).unwrap();
        assert_eq!(random, convert("random(3,4)", &f2).unwrap());
        assert!(random.floats().iter().all(|x| x.abs() < 1.0));
        assert!(convert("random()", &Type::F64).is_ok());
        assert!(convert("random(3)", &array(1, Scalar::I64)).unwrap_err().contains("`random` gives floats"));
        assert!(convert("zeros(99999999999999)", &array(1, Scalar::F64)).unwrap_err().contains("does not fit in memory"));
        assert!(convert("zeros(99999999999999999999)", &array(1, Scalar::F64)).unwrap_err().contains("expected a size"));
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let f1 = array(1, Scalar::F64);
        let first = |text: &str, ty: &Type| convert(text, ty).unwrap_err().lines().next().unwrap().to_string();
        assert_eq!(first("[[1,2,3],[4,5,6]]", &f1), "argument `x`: expected [n]f64, got a 2 x 3 array");
        assert_eq!(first("[1,2]", &array(2, Scalar::F64)), "argument `x`: expected [n, m]f64, got an array of length 2");
        assert_eq!(first("[[1,2],[3]]", &array(2, Scalar::F64)), "argument `x`: the list is ragged: row [1] has 1, the first row 2");
        assert_eq!(first("[[1,2],3]", &array(2, Scalar::F64)), "argument `x`: the list is ragged: a list and a number side by side at [1]");
        assert_eq!(first("[1,[2]]", &f1), "argument `x`: the list is ragged: a list and a number side by side at [1]");
        assert_eq!(first("2.5", &Type::I64), "argument `x`: expected i64, got the number 2.5");
        assert_eq!(first("[1,2.5]", &array(1, Scalar::I64)), "argument `x`: expected i64, got the number 2.5 at [1]");
        assert_eq!(first("true", &Type::F64), "argument `x`: expected f64, got true");
        assert_eq!(first("abc", &Type::F64), "expected a value, got `abc` at character 1");
        assert_eq!(first("[1, abc]", &f1), "expected a value, got `abc]` at character 5");
        assert_eq!(first("[1 2]", &f1), "expected `,` or `]`, got `2]` at character 4");
        assert_eq!(first("[1,", &f1), "expected a value, but the value ends");
        assert_eq!(first("1.2.3", &Type::F64), "expected a number, got `1.2.3` at character 1");
        assert_eq!(first("1 2", &Type::F64), "expected the end, got `2` at character 3");
        assert_eq!(first("12x", &Type::F64), "expected the end, got `x` at character 3");
        assert_eq!(first("(1, 2)", &f1), "argument `x`: expected [n]f64, got a tuple of 2");
        let record = Type::Tuple(Parts::record(vec!["a".into(), "b".into()], vec![Type::F64, f1.clone()]));
        assert_eq!(first("{a: 1}", &record), "argument `x`: the field `b` is missing");
        assert_eq!(first("{a: 1, c: 1, b: [1]}", &record), "argument `x`: there is no field `c`");
        assert_eq!(first("{a: 1, a: 1, b: [1]}", &record), "the field `a` is given twice");
        assert_eq!(first("{a 1}", &record), "expected `:` behind the field `a`, got `1}` at character 4");
        assert_eq!(first("(1, [2])", &record), "argument `x`: expected {a: f64, b: [n]f64}, got a tuple of 2");
        assert_eq!(first("{a: [1], b: [2]}", &record), "argument `x`, field `a`: expected f64, got an array of length 1");
        assert_eq!(first("[{a: 1}, {b: 1}]", &record), "argument `x`: the record at [1] has other fields than the first");
        assert_eq!(first("", &f1), "expected a value, but the value ends");
        assert_eq!(first("@nowhere.npy", &f1), "cannot read nowhere.npy: no such file");
        assert_eq!(first("@x.txt", &f1), "x.txt is no file of values");
        assert!(first(&"[".repeat(100_000), &f1).contains("nested deeper"));
        for bad in ["--1", "+", "-", ".", "1e", "é", "random", "random(", "random(-1)", "@", "0x10"] {
            assert!(convert(bad, &Type::F64).is_err(), "{bad}");
        }
    }
}
