//! Sparse matrices: coordinates (COO) and compressed rows (CSR).
//!
//! In programs they are records, `{shape, row, col, data}` and `{shape, indptr, indices, data}`; a record of these names
//! is written and read as a matrix:
//!
//! * JSON: `{"format": "csr", "shape": [..], "indptr": [..], "indices": [..], "data": [..]}`, or `coo` with `row`, `col`
//! * `.npz`: the same as arrays, as SciPy's `save_npz` has them
//! * `.mtx`: Matrix Market, coordinates that count from 1
//!
//! What is read is checked: lengths, and that every place is in the matrix. Compressed rows are sorted by column, and
//! entries at one place are added up; coordinates stay as they are, for several at one place are their sum by nature.

use super::tree::Tree;
use super::{Array, Data, Error, Value, npz};
use crate::types::{Lit, Scalar};
use std::io::{self, BufRead, Write};
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Coo,
    Csr,
}

impl Format {
    pub const ALL: [Format; 2] = [Format::Coo, Format::Csr];

    pub fn name(self) -> &'static str {
        match self {
            Format::Coo => "coo",
            Format::Csr => "csr",
        }
    }
    /// The names of the parts, in order.
    pub fn fields(self) -> [&'static str; 4] {
        match self {
            Format::Coo => ["shape", "row", "col", "data"],
            Format::Csr => ["shape", "indptr", "indices", "data"],
        }
    }
    /// The format that a record of these fields is.
    pub fn of<T: AsRef<str>>(names: &[T]) -> Option<Format> {
        Format::ALL.into_iter().find(|f| names.len() == 4 && f.fields().iter().zip(names).all(|(a, b)| *a == b.as_ref()))
    }
}

/// A matrix by its entries, in any order; those at one place are added up.
#[derive(Clone, Debug, PartialEq)]
pub struct Coo {
    pub shape: [usize; 2],
    pub row: Vec<usize>,
    pub col: Vec<usize>,
    pub data: Data,
}

impl Coo {
    /// Checks that every entry is in the matrix.
    pub fn new(shape: [usize; 2], row: Vec<i64>, col: Vec<i64>, data: Data) -> Result<Coo, Error> {
        if row.len() != data.len() || col.len() != data.len() {
            return Err(Error::new(format!("{} rows, {} columns and {} values are no entries", row.len(), col.len(), data.len())));
        }
        Ok(Coo { shape, row: places(row, shape[0], "row")?, col: places(col, shape[1], "column")?, data })
    }

    fn of_csr(shape: [usize; 2], indptr: &[i64], indices: Vec<i64>, data: Data) -> Result<Coo, Error> {
        if indptr.len().checked_sub(1) != Some(shape[0]) {
            let text = format!("`indptr` has {} places, but {} rows need one more than there are rows", indptr.len(), shape[0]);
            return Err(Error::new(text));
        }
        if indptr[0] != 0 || indptr.windows(2).any(|w| w[1] < w[0]) || indptr[shape[0]] != indices.len() as i64 {
            return Err(Error::new(format!("`indptr` does not rise from 0 to the number of entries, {}", indices.len())));
        }
        let row = (0..shape[0]).flat_map(|i| std::iter::repeat_n(i as i64, (indptr[i + 1] - indptr[i]) as usize)).collect();
        Coo::new(shape, row, indices, data)
    }

    /// Compressed rows: sorted, entries at one place added up.
    pub fn compressed(&self) -> Result<(Vec<i64>, Vec<i64>, Data), Error> {
        let mut order: Vec<usize> = (0..self.row.len()).collect();
        order.sort_by_key(|k| (self.row[*k], self.col[*k]));
        let mut indptr: Vec<i64> = vec![];
        let rows = self.shape[0].saturating_add(1);
        indptr.try_reserve_exact(rows).map_err(|_| Error::new(format!("{} rows do not fit in memory", self.shape[0])))?;
        indptr.resize(rows, 0);
        let mut indices: Vec<i64> = vec![];
        let mut data = Data::zeros(self.data.scalar(), 0);
        let mut last = None;
        for k in order {
            let place = (self.row[k], self.col[k]);
            if last == Some(place) {
                add(&mut data, self.data.get(k));
            } else {
                indptr[place.0 + 1] += 1;
                indices.push(place.1 as i64);
                data.push(self.data.get(k));
            }
            last = Some(place);
        }
        for i in 0..self.shape[0] {
            indptr[i + 1] += indptr[i];
        }
        Ok((indptr, indices, data))
    }

    /// The parts of a record of a format.
    fn parts(self, format: Format) -> Result<Vec<Array>, Error> {
        let list = |v: Vec<i64>| Array::new(vec![v.len()], Data::I64(v));
        let shape = list(self.shape.iter().map(|n| *n as i64).collect());
        match format {
            Format::Coo => {
                let whole = |v: Vec<usize>| list(v.into_iter().map(|k| k as i64).collect());
                let data = Array::new(vec![self.data.len()], self.data);
                Ok(vec![shape, whole(self.row), whole(self.col), data])
            }
            Format::Csr => {
                let (indptr, indices, data) = self.compressed()?;
                Ok(vec![shape, list(indptr), list(indices), Array::new(vec![data.len()], data)])
            }
        }
    }

    /// A picture of the pattern, a character for each place; large matrices are reduced.
    pub fn picture(&self, most: usize) -> String {
        let most = most.max(1);
        let scale = |n: usize| n.div_ceil(most).max(1);
        let step = scale(self.shape[0]).max(scale(self.shape[1]));
        let (rows, columns) = (self.shape[0].div_ceil(step), self.shape[1].div_ceil(step));
        let mut marked = vec![vec![false; columns]; rows];
        self.row.iter().zip(&self.col).for_each(|(i, j)| marked[i / step][j / step] = true);
        let line = |row: &Vec<bool>| row.iter().map(|m| if *m { '#' } else { '.' }).collect::<String>() + "\n";
        marked.iter().map(line).collect()
    }
}

fn places(given: Vec<i64>, size: usize, what: &str) -> Result<Vec<usize>, Error> {
    match given.iter().position(|k| usize::try_from(*k).map_or(true, |k| k >= size)) {
        Some(at) => Err(Error::new(format!("the {what} {} of entry {at} is not one of {size}", given[at]))
            .note(format!("{what}s count from 0 to {}", size as i64 - 1))),
        None => Ok(given.into_iter().map(|k| k as usize).collect()),
    }
}

/// Adds to the last element.
fn add(data: &mut Data, lit: Lit) {
    match (data, lit) {
        (Data::F64(v), Lit::F64(x)) => *v.last_mut().expect("an entry before") += x,
        (Data::F32(v), Lit::F32(x)) => *v.last_mut().expect("an entry before") += x,
        (Data::I64(v), Lit::I64(x)) => {
            let last = v.last_mut().expect("an entry before");
            *last = last.wrapping_add(x);
        }
        (Data::I32(v), Lit::I32(x)) => {
            let last = v.last_mut().expect("an entry before");
            *last = last.wrapping_add(x);
        }
        (Data::Bool(v), Lit::Bool(x)) => *v.last_mut().expect("an entry before") |= x,
        _ => unreachable!("one matrix has numbers of one type"),
    }
}

/// A matrix from the parts of a record of a format.
pub fn of_parts(format: Format, parts: &[Value]) -> Result<Coo, Error> {
    let integers = |k: usize| match parts.get(k) {
        Some(Value::Array(Array { shape, data: Data::I64(v) })) if shape.len() == 1 => Ok(v.clone()),
        Some(Value::Array(Array { shape, data: Data::I32(v) })) if shape.len() == 1 => Ok(v.iter().copied().map(i64::from).collect()),
        _ => Err(Error::new(format!("`{}` is no list of whole numbers", format.fields()[k]))),
    };
    let shape = match integers(0)?.as_slice() {
        [m, n] if *m >= 0 && *n >= 0 => [*m as usize, *n as usize],
        other => return Err(Error::new(format!("{other:?} is no shape of a matrix")).note("it has two sizes, rows and columns")),
    };
    let data = match parts.get(3) {
        Some(Value::Array(a)) if a.rank() == 1 => a.data.clone(),
        _ => return Err(Error::new("`data` is no list of numbers")),
    };
    match format {
        Format::Coo => Coo::new(shape, integers(1)?, integers(2)?, data),
        Format::Csr => Coo::of_csr(shape, &integers(1)?, integers(2)?, data),
    }
}

/// What is given for a record that is a matrix of a format: checked, and in this format whichever it is given in.
pub fn fitted(wanted: Format, fields: Vec<(String, Tree)>) -> Result<Vec<(String, Tree)>, Error> {
    let mut fields = fields;
    let said = fields.iter().position(|(name, _)| name == "format").map(|k| fields.remove(k).1);
    let said =
        match said {
            None => None,
            Some(Tree::Other(text)) => {
                let found = Format::ALL.into_iter().find(|f| text.contains(&format!("\"{}\"", f.name())));
                Some(found.ok_or_else(|| {
                    Error::new(format!("{text} is no format of matrices that is known")).note("there are `coo` and `csr`")
                })?)
            }
            Some(other) => return Err(Error::new(format!("`format` is {}", other.describe())).note("it is \"coo\" or \"csr\"")),
        };
    let has = |f: Format| f.fields().iter().all(|name| fields.iter().any(|(n, _)| n == name)) && fields.len() == 4;
    let Some(given) = said.or_else(|| Format::ALL.into_iter().find(|f| has(*f))).filter(|f| has(*f)) else {
        return match said {
            Some(f) => Err(Error::new(format!("a matrix in `{}` has the parts {}", f.name(), f.fields().join(", ")))),
            // A record with these names in part: its own messages say what is missing.
            None => Ok(fields),
        };
    };
    let mut parts = vec![];
    for name in given.fields() {
        let at = fields.iter().position(|(n, _)| n == name).expect("it has all");
        let tree = fields.swap_remove(at).1;
        parts.push(Value::Array(numbers(tree, name)?));
    }
    let matrix = of_parts(given, &parts)?;
    let names = wanted.fields().map(String::from);
    Ok(names.into_iter().zip(matrix.parts(wanted)?.into_iter().map(Tree::Array)).collect())
}

/// A list of numbers as an array; indices as `i64`.
fn numbers(tree: Tree, name: &str) -> Result<Array, Error> {
    let index = name != "data";
    let wrong = |what: String| Error::new(format!("`{name}` is {what}")).note("it is a list of numbers");
    let array = match tree {
        Tree::Array(a) if a.rank() == 1 => a,
        Tree::List(items) => {
            let mut lits = vec![];
            for item in items {
                match item {
                    Tree::Scalar(lit) => lits.push(lit),
                    other => return Err(wrong(format!("a list with {}", other.describe()))),
                }
            }
            let whole = lits.iter().all(|l| matches!(l, Lit::I64(_)));
            let data = if whole && index {
                Data::I64(lits.iter().filter_map(|l| if let Lit::I64(x) = l { Some(*x) } else { None }).collect())
            } else {
                let float = |l: &Lit| match l {
                    Lit::I64(x) => Some(*x as f64),
                    l => l.as_float(),
                };
                Data::F64(
                    lits.iter().map(|l| float(l).ok_or_else(|| wrong("a list with what is no number".into()))).collect::<Result<_, _>>()?,
                )
            };
            Array::new(vec![data.len()], data)
        }
        other => return Err(wrong(other.describe())),
    };
    match array.data {
        Data::I32(v) if index => Ok(Array::new(array.shape, Data::I64(v.into_iter().map(i64::from).collect()))),
        Data::F64(_) | Data::F32(_) | Data::Bool(_) if index => Err(Error::new(format!("`{name}` has numbers that are not whole"))),
        data => Ok(Array::new(array.shape, data)),
    }
}

/// A matrix in an archive of SciPy's layout, if it is one: it has a `format`.
pub fn in_archive(archive: &mut npz::Archive) -> Result<Option<Tree>, Error> {
    if !archive.names().iter().any(|name| name == "format") {
        return Ok(None);
    }
    let about = |e: Error, path: &Path| e.about(path.display());
    let text = archive.read_text("format")?;
    let path = archive.path().to_path_buf();
    let Some(format) = Format::ALL.into_iter().find(|f| f.name() == text) else {
        return Err(about(Error::new(format!("a matrix in the format `{text}` is not read")).note("there are `coo` and `csr`"), &path));
    };
    let mut fields = vec![];
    for name in format.fields() {
        match archive.read(name)? {
            Some(array) => fields.push((name.to_string(), Tree::Array(array))),
            None => return Err(about(Error::new(format!("the matrix has no `{name}`")), &path)),
        }
    }
    fitted(format, fields).map(|fields| Some(Tree::Record(fields))).map_err(|e| about(e, &path))
}

/// Writes a matrix as Matrix Market has it: by columns, since readers like it so, from 1 on, the shortest digits that read back.
pub fn write_mtx(matrix: &Coo, out: &mut impl Write) -> io::Result<()> {
    let kind = match matrix.data.scalar() {
        Scalar::F64 | Scalar::F32 => "real",
        Scalar::I64 | Scalar::I32 | Scalar::Bool => "integer",
    };
    writeln!(out, "%%MatrixMarket matrix coordinate {kind} general")?;
    writeln!(out, "{} {} {}", matrix.shape[0], matrix.shape[1], matrix.row.len())?;
    for k in 0..matrix.row.len() {
        let value = match matrix.data.get(k) {
            Lit::Bool(b) => u8::from(b).to_string(),
            lit => lit.digits(),
        };
        writeln!(out, "{} {} {value}", matrix.row[k] + 1, matrix.col[k] + 1)?;
    }
    Ok(())
}

/// Reads a Matrix Market file: coordinates or a whole array, of numbers or of a pattern (ones), symmetric or not.
pub fn read_mtx(path: &Path) -> Result<Coo, Error> {
    let file = std::fs::File::open(path).map_err(|e| super::npy::cannot_read(path, &e))?;
    let mut lines = vec![];
    for line in io::BufReader::new(file).lines() {
        lines.push(line.map_err(|e| Error::new(format!("cannot read {}: {e}", path.display())))?);
    }
    parse_mtx(&lines).map_err(|e| e.about(path.display()))
}

fn parse_mtx(lines: &[String]) -> Result<Coo, Error> {
    let head: Vec<String> = lines.first().map(|l| l.split_whitespace().map(str::to_lowercase).collect()).unwrap_or_default();
    let [first, object, layout, field, symmetry] = head.as_slice() else {
        return Err(Error::new("this is no Matrix Market file").note("its first line is `%%MatrixMarket matrix coordinate real general`"));
    };
    if first != "%%matrixmarket" || object != "matrix" {
        return Err(Error::new("this is no Matrix Market file").note("its first line is `%%MatrixMarket matrix coordinate real general`"));
    }
    let pattern = field == "pattern";
    if !["real", "double", "integer", "pattern"].contains(&field.as_str()) {
        return Err(Error::new(format!("numbers of kind `{field}` are not read")).note("there are real, integer and pattern"));
    }
    let sign = match symmetry.as_str() {
        "general" => None,
        "symmetric" => Some(1.0),
        "skew-symmetric" => Some(-1.0),
        other => {
            return Err(Error::new(format!("the symmetry `{other}` is not read")).note("there are general, symmetric and skew-symmetric"));
        }
    };
    let dense = match layout.as_str() {
        "coordinate" => false,
        "array" => true,
        other => return Err(Error::new(format!("the layout `{other}` is not known")).note("there are coordinate and array")),
    };
    let mut rest = lines.iter().enumerate().skip(1).filter(|(_, l)| !l.trim_start().starts_with('%') && !l.trim().is_empty());
    let wrong = |line: usize, what: &str| Error::new(format!("line {}: {what}", line + 1));
    let (at, sizes) = rest.next().ok_or_else(|| Error::new("the line of sizes is missing"))?;
    let sizes: Vec<usize> = sizes
        .split_whitespace()
        .map(|w| w.parse().map_err(|_| wrong(at, "expected sizes, whole numbers of 0 or more")))
        .collect::<Result<_, _>>()?;
    let (shape, count) = match (dense, sizes.as_slice()) {
        (false, [m, n, count]) => ([*m, *n], *count),
        (true, [m, n]) => ([*m, *n], 0),
        _ => return Err(wrong(at, "expected the numbers of rows, of columns and (of coordinates) of entries")),
    };
    if sign.is_some() && shape[0] != shape[1] {
        return Err(wrong(at, "a symmetric matrix is square"));
    }
    let (mut row, mut col, mut data) = (vec![], vec![], vec![]);
    let mut push = |i: usize, j: usize, x: f64| {
        row.push(i as i64);
        col.push(j as i64);
        data.push(x);
    };
    if dense {
        // Column by column; of symmetric matrices the lower triangle.
        for j in 0..shape[1] {
            let first = match sign {
                None => 0,
                Some(s) if s > 0.0 => j,
                Some(_) => j + 1,
            };
            for i in first..shape[0] {
                let (at, line) = rest.next().ok_or_else(|| Error::new("the file ends before all numbers are there"))?;
                let x: f64 = line.trim().parse().map_err(|_| wrong(at, "expected a number"))?;
                push(i, j, x);
                if let Some(s) = sign.filter(|_| i != j) {
                    push(j, i, s * x);
                }
            }
        }
    } else {
        for k in 0..count {
            let (at, line) = rest.next().ok_or_else(|| Error::new(format!("the file ends after {k} of {count} entries")))?;
            let mut words = line.split_whitespace();
            let mut place = |size: usize, what: &str| -> Result<usize, Error> {
                let word = words.next().and_then(|w| w.parse::<usize>().ok()).ok_or_else(|| wrong(at, "expected a row and a column"))?;
                if word == 0 || word > size {
                    return Err(wrong(at, &format!("the {what} {word} is not one of 1 to {size}")));
                }
                Ok(word - 1)
            };
            let (i, j) = (place(shape[0], "row")?, place(shape[1], "column")?);
            let x = match pattern {
                true => 1.0,
                false => {
                    words.next().and_then(|w| w.parse().ok()).ok_or_else(|| wrong(at, "expected a number behind the row and the column"))?
                }
            };
            push(i, j, x);
            if let Some(s) = sign.filter(|_| i != j) {
                push(j, i, s * x);
            }
        }
    }
    match rest.next() {
        Some((at, _)) => Err(wrong(at, "there is more than the sizes say")),
        None => Coo::new(shape, row, col, Data::F64(data)),
    }
}

/// A Matrix Market file as a value without type.
pub fn mtx_tree(path: &Path) -> Result<Tree, Error> {
    let parts = read_mtx(path)?.parts(Format::Coo)?.into_iter().map(Tree::Array);
    Ok(Tree::Record(Format::Coo.fields().map(String::from).into_iter().zip(parts).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_string).collect()
    }
    fn example() -> Coo {
        Coo::new([2, 3], vec![1, 0, 1, 1], vec![2, 1, 0, 2], Data::F64(vec![1.0, 2.0, 3.0, 0.5])).unwrap()
    }

    #[test]
    fn rows_are_compressed_sorted_and_added_up() {
        let (indptr, indices, data) = example().compressed().unwrap();
        assert_eq!((indptr.clone(), indices.clone()), (vec![0, 1, 3], vec![1, 0, 2]));
        assert_eq!(data, Data::F64(vec![2.0, 3.0, 1.5]));
        let again = Coo::of_csr([2, 3], &indptr, indices, data.clone()).unwrap();
        assert_eq!(again.compressed().unwrap().2, data);
        assert_eq!(example().picture(10), ".#.\n#.#\n");
        let none = Coo::new([0, 0], vec![], vec![], Data::F64(vec![])).unwrap();
        assert_eq!(none.compressed().unwrap(), (vec![0], vec![], Data::F64(vec![])));
    }

    #[test]
    fn wrong_matrices_are_refused() {
        let data = || Data::F64(vec![1.0]);
        let message = |m: Result<Coo, Error>| m.unwrap_err().message;
        assert_eq!(message(Coo::new([2, 3], vec![2], vec![0], data())), "the row 2 of entry 0 is not one of 2");
        assert_eq!(message(Coo::new([2, 3], vec![0], vec![-1], data())), "the column -1 of entry 0 is not one of 3");
        assert_eq!(message(Coo::new([2, 3], vec![0], vec![], data())), "1 rows, 0 columns and 1 values are no entries");
        assert!(message(Coo::of_csr([2, 3], &[0, 1], vec![0], data())).contains("`indptr` has 2 places, but 2 rows need one more"));
        for bad in [[0, 2, 1], [1, 1, 1], [0, 0, 2]] {
            assert!(message(Coo::of_csr([2, 3], &bad, vec![0], data())).contains("does not rise"), "{bad:?}");
        }
    }

    #[test]
    fn matrix_market_reads_back_and_says_what_is_wrong() {
        let mut out = vec![];
        write_mtx(&example(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "%%MatrixMarket matrix coordinate real general\n2 3 4\n2 3 1.0\n1 2 2.0\n2 1 3.0\n2 3 0.5\n");
        assert_eq!(parse_mtx(&lines(&text)).unwrap(), example());
        let symmetric = parse_mtx(&lines("%%MatrixMarket matrix coordinate pattern symmetric\n% by hand\n2 2 2\n1 1\n2 1\n")).unwrap();
        assert_eq!((symmetric.row, symmetric.col), (vec![0, 1, 0], vec![0, 0, 1]));
        let whole = parse_mtx(&lines("%%MatrixMarket matrix array integer general\n2 2\n1\n2\n3\n4\n")).unwrap();
        assert_eq!(whole.data, Data::F64(vec![1.0, 2.0, 3.0, 4.0]));
        assert_eq!(whole.row, vec![0, 1, 0, 1]);
        let wrong = |text: &str| parse_mtx(&lines(text)).unwrap_err().message;
        let head = "%%MatrixMarket matrix coordinate real general\n";
        assert_eq!(wrong(""), "this is no Matrix Market file");
        assert_eq!(wrong(&format!("{head}2 2 1\n")), "the file ends after 0 of 1 entries");
        assert_eq!(wrong(&format!("{head}2 2 1\n3 1 1.0\n")), "line 3: the row 3 is not one of 1 to 2");
        assert_eq!(wrong(&format!("{head}2 2 1\n1 0 1.0\n")), "line 3: the column 0 is not one of 1 to 2");
        assert_eq!(wrong(&format!("{head}2 2 1\n1 1\n")), "line 3: expected a number behind the row and the column");
        assert_eq!(wrong(&format!("{head}2 2 1\n1 1 1\n1 1 1\n")), "line 4: there is more than the sizes say");
        assert_eq!(wrong(&format!("{head}2 -2 1\n")), "line 2: expected sizes, whole numbers of 0 or more");
        assert_eq!(wrong("%%MatrixMarket matrix coordinate complex general\n1 1 0\n"), "numbers of kind `complex` are not read");
    }
}
