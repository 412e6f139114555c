//! One NumPy array (`.npy`, or an entry of an `.npz`).
//!
//! A file is a magic word, a version, the length of a header, the header (a Python dictionary with the element type,
//! the order and the shape) and the bytes of the elements. What a header claims is believed only as far as bytes
//! arrive: a wrong length or shape is an error and never a large allocation.

use super::array::count_of;
use super::{Array, Data, Error};
use crate::memory::Filled;
use crate::unfinished;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

/// No honest header of an array of numbers is longer.
const LONGEST_HEADER: usize = 1 << 16;
const CHUNK: usize = 1 << 16;

pub fn read_file(path: &Path) -> Result<Array, Error> {
    let file = File::open(path).map_err(|e| cannot_read(path, &e))?;
    read(&mut BufReader::new(file)).map_err(|e| e.about(path.display()))
}

pub(super) fn cannot_read(path: &Path, error: &io::Error) -> Error {
    Error::new(format!("cannot read {}: {}", path.display(), reason(error)))
}

/// What the system says, in the words of our messages.
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::StorageFull => "no space left".into(),
        io::ErrorKind::QuotaExceeded => "no space left of the user's quota".into(),
        io::ErrorKind::FileTooLarge => "the file would be too large".into(),
        io::ErrorKind::IsADirectory => "it is a folder".into(),
        _ => error.to_string(),
    }
}

pub fn read(source: &mut impl Read) -> Result<Array, Error> {
    let header = Header::parse(&read_header(source)?)?;
    let large = || Error::new("the array does not fit in memory");
    let (element, width, big) = element_type(&header.descr).ok_or_else(|| {
        Error::new(format!("elements of type {} are not supported", header.descr))
            .note("supported are floats of 32 and 64 bits, integers of 8 to 64 bits, and bool")
    })?;
    let count = count_of(&header.shape).filter(|n| n.checked_mul(width).is_some()).ok_or_else(large)?;
    let data = read_elements(source, element, width, big, count)?;
    let data = if header.fortran_order && header.shape.len() > 1 { to_row_major(&header.shape, data) } else { data };
    data.large_pages(Filled::Already);
    Ok(Array { shape: header.shape, data })
}

/// The text of the header.
fn read_header(source: &mut impl Read) -> Result<String, Error> {
    let mut fill = |length: usize| {
        let mut bytes = vec![0; length];
        source.read_exact(&mut bytes).map(|()| bytes).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => Error::new("the file ends inside its header"),
            _ => Error::new(format!("the header is damaged: {e}")),
        })
    };
    let start = fill(8).map_err(|_| Error::new("this is not a NumPy array"))?;
    if &start[..6] != b"\x93NUMPY" {
        return Err(Error::new("this is not a NumPy array"));
    }
    let length = match start[6] {
        1 => fill(2)?.iter().rev().fold(0, |n, b| n << 8 | usize::from(*b)),
        2 | 3 => fill(4)?.iter().rev().fold(0, |n, b| n << 8 | usize::from(*b)),
        version => return Err(Error::new(format!("version {version} of the NumPy format is not known"))),
    };
    if length > LONGEST_HEADER {
        return Err(Error::new(format!("the header claims {length} bytes: the file is damaged")));
    }
    String::from_utf8(fill(length)?).map_err(|_| Error::new("the header is damaged"))
}

/// `{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }`, the keys in any order.
struct Header {
    descr: String,
    fortran_order: bool,
    shape: Vec<usize>,
}

impl Header {
    fn parse(text: &str) -> Result<Header, Error> {
        Header::entries(text).ok_or_else(|| Error::new("the header is damaged"))?
    }

    /// `None` where the text is no such dictionary.
    fn entries(text: &str) -> Option<Result<Header, Error>> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        let mut rest = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim_start();
        while !rest.is_empty() {
            let (key, after) = quoted(rest)?;
            rest = after.trim_start().strip_prefix(':')?.trim_start();
            match key {
                "descr" if rest.starts_with('[') => return Some(Err(Error::new("arrays of records are not supported"))),
                "descr" => {
                    let (value, after) = quoted(rest)?;
                    descr = Some(value.to_string());
                    rest = after;
                }
                "fortran_order" => {
                    let (value, after) =
                        [("True", true), ("False", false)].iter().find_map(|(word, v)| Some((*v, rest.strip_prefix(word)?)))?;
                    fortran_order = Some(value);
                    rest = after;
                }
                "shape" => {
                    let (inside, after) = rest.strip_prefix('(')?.split_once(')')?;
                    let inside = inside.trim();
                    let sizes = inside.strip_suffix(',').unwrap_or(inside);
                    // Python 2 marked long integers by an L.
                    let size = |s: &str| s.trim().trim_end_matches('L').parse::<usize>().ok();
                    shape = Some(if sizes.is_empty() { vec![] } else { sizes.split(',').map(size).collect::<Option<_>>()? });
                    rest = after;
                }
                _ => return None,
            }
            rest = rest.trim_start();
            rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        }
        Some(Ok(Header { descr: descr?, fortran_order: fortran_order?, shape: shape? }))
    }
}

/// The string literal in front, and what follows it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| *c == '\'' || *c == '"')?;
    text[1..].split_once(quote)
}

#[derive(Clone, Copy)]
enum Element {
    F64,
    F32,
    I64,
    I32,
    I16,
    I8,
    U64,
    U32,
    U16,
    U8,
    Bool,
}

/// The element, its bytes, and whether the first byte is the highest.
fn element_type(descr: &str) -> Option<(Element, usize, bool)> {
    let (big, name) = match descr.chars().next()? {
        '>' => (true, &descr[1..]),
        '<' | '|' => (false, &descr[1..]),
        '=' => (cfg!(target_endian = "big"), &descr[1..]),
        _ => (false, descr),
    };
    let (element, width) = match name {
        "f8" => (Element::F64, 8),
        "f4" => (Element::F32, 4),
        "i8" => (Element::I64, 8),
        "i4" => (Element::I32, 4),
        "i2" => (Element::I16, 2),
        "i1" => (Element::I8, 1),
        "u8" => (Element::U64, 8),
        "u4" => (Element::U32, 4),
        "u2" => (Element::U16, 2),
        "u1" => (Element::U8, 1),
        "b1" => (Element::Bool, 1),
        _ => return None,
    };
    Some((element, width, big))
}

fn read_elements(source: &mut impl Read, element: Element, width: usize, big: bool, count: usize) -> Result<Data, Error> {
    // Integers of a size that the language lacks are read as the next that it has.
    let mut data = match element {
        Element::F64 => Data::F64(vec![]),
        Element::F32 => Data::F32(vec![]),
        Element::I64 | Element::U64 | Element::U32 => Data::I64(vec![]),
        Element::I32 | Element::I16 | Element::I8 | Element::U16 | Element::U8 => Data::I32(vec![]),
        Element::Bool => Data::Bool(vec![]),
    };
    let mut buffer = vec![0u8; CHUNK];
    let mut left = count;
    while left > 0 {
        let here = left.min(CHUNK / width);
        let bytes = &mut buffer[..here * width];
        source.read_exact(bytes).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => Error::new(format!("the file ends before its {count} elements")),
            _ => Error::new(format!("the data is damaged: {e}")),
        })?;
        if big {
            bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
        }
        append(&mut data, element, bytes)?;
        left -= here;
    }
    Ok(data)
}

fn append(data: &mut Data, element: Element, bytes: &[u8]) -> Result<(), Error> {
    /// Elements from little-endian bytes.
    macro_rules! elements {
        ($ty:ty) => {
            bytes.chunks_exact(size_of::<$ty>()).map(|c| <$ty>::from_le_bytes(c.try_into().expect("whole elements")))
        };
    }
    fn reserve<T>(v: &mut Vec<T>, count: usize) -> Result<(), Error> {
        v.try_reserve(count).map_err(|_| Error::new("the array does not fit in memory"))
    }
    match data {
        Data::F64(v) => {
            reserve(v, bytes.len() / 8)?;
            v.extend(elements!(f64));
        }
        Data::F32(v) => {
            reserve(v, bytes.len() / 4)?;
            v.extend(elements!(f32));
        }
        Data::Bool(v) => {
            reserve(v, bytes.len())?;
            v.extend(bytes.iter().map(|b| *b != 0));
        }
        Data::I32(v) => {
            reserve(v, bytes.len())?;
            match element {
                Element::I16 => v.extend(elements!(i16).map(i32::from)),
                Element::I8 => v.extend(elements!(i8).map(i32::from)),
                Element::U16 => v.extend(elements!(u16).map(i32::from)),
                Element::U8 => v.extend(elements!(u8).map(i32::from)),
                _ => v.extend(elements!(i32)),
            }
        }
        Data::I64(v) => {
            reserve(v, bytes.len() / 4)?;
            match element {
                Element::U32 => v.extend(elements!(u32).map(i64::from)),
                Element::U64 => {
                    for x in elements!(u64) {
                        v.push(i64::try_from(x).map_err(|_| Error::new(format!("{x} is too large for i64")))?);
                    }
                }
                _ => v.extend(elements!(i64)),
            }
        }
    }
    Ok(())
}

/// Elements in column-major order put in row-major order.
fn to_row_major(shape: &[usize], data: Data) -> Data {
    fn permute<T: Copy>(shape: &[usize], old: Vec<T>) -> Vec<T> {
        let mut strides = vec![1; shape.len()];
        for k in 1..shape.len() {
            strides[k] = strides[k - 1] * shape[k - 1];
        }
        let mut index = vec![0; shape.len()];
        let mut at = 0;
        let mut new = Vec::with_capacity(old.len());
        for _ in 0..old.len() {
            new.push(old[at]);
            // The next index in row-major order.
            for k in (0..shape.len()).rev() {
                index[k] += 1;
                at += strides[k];
                if index[k] < shape[k] {
                    break;
                }
                at -= strides[k] * shape[k];
                index[k] = 0;
            }
        }
        new
    }
    match data {
        Data::F64(v) => Data::F64(permute(shape, v)),
        Data::F32(v) => Data::F32(permute(shape, v)),
        Data::I64(v) => Data::I64(permute(shape, v)),
        Data::I32(v) => Data::I32(permute(shape, v)),
        Data::Bool(v) => Data::Bool(permute(shape, v)),
    }
}

/// Writes a file whole or not at all.
pub fn write_file(path: &Path, array: &Array) -> Result<(), Error> {
    let failed = |e: io::Error| Error::new(format!("cannot write {}: {}", path.display(), reason(&e)));
    let mut file = unfinished::File::beside(path).map_err(failed)?;
    let mut out = BufWriter::new(file.contents());
    write(array, &mut out).and_then(|()| out.flush()).map_err(failed)?;
    drop(out);
    file.finish().map_err(failed)
}

/// A word: one element of type `bytes` or `str`.
pub fn read_text(source: &mut impl Read) -> Result<String, Error> {
    let header = Header::parse(&read_header(source)?)?;
    let wrong = || Error::new(format!("elements of type {} are no text", header.descr));
    let kind = header.descr.trim_matches('\'').trim_start_matches(['|', '<', '=']);
    let (kind, length) = kind.split_at_checked(1).ok_or_else(wrong)?;
    let length: usize = length.parse().ok().filter(|n| *n <= LONGEST_HEADER).ok_or_else(wrong)?;
    let width = match kind {
        "S" => 1,
        "U" => 4,
        _ => return Err(wrong()),
    };
    if !header.shape.is_empty() {
        return Err(wrong());
    }
    let mut bytes = vec![0; length * width];
    source.read_exact(&mut bytes).map_err(|_| Error::new("the file ends inside its text"))?;
    let text: Option<String> = bytes
        .chunks(width)
        .map(|c| c.iter().rev().fold(0u32, |n, b| n << 8 | u32::from(*b)))
        .take_while(|c| *c != 0)
        .map(char::from_u32)
        .collect();
    text.ok_or_else(|| Error::new("the text is damaged"))
}

pub fn write_text(text: &str, out: &mut impl Write) -> io::Result<()> {
    let mut header = format!("{{'descr': '|S{}', 'fortran_order': False, 'shape': (), }}", text.len());
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    out.write_all(b"\x93NUMPY\x01\x00")?;
    out.write_all(&(header.len() as u16).to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    out.write_all(text.as_bytes())
}

pub fn write(array: &Array, out: &mut impl Write) -> io::Result<()> {
    use npyz::WriterBuilder;
    let shape: Vec<u64> = array.shape.iter().map(|d| *d as u64).collect();
    fn elements<T: npyz::AutoSerialize + Copy>(v: &[T], shape: &[u64], out: &mut impl Write) -> io::Result<()> {
        let mut w = npyz::WriteOptions::new().default_dtype().shape(shape).writer(out).begin_nd()?;
        w.extend(v.iter().copied())?;
        w.finish()
    }
    match &array.data {
        Data::F64(v) => elements(v, &shape, out),
        Data::F32(v) => elements(v, &shape, out),
        Data::I64(v) => elements(v, &shape, out),
        Data::I32(v) => elements(v, &shape, out),
        Data::Bool(v) => elements(v, &shape, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file as NumPy writes it.
    fn file(descr: &str, fortran: &str, shape: &str, bytes: &[u8]) -> Vec<u8> {
        let mut header = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
        while (10 + header.len() + 1) % 64 != 0 {
            header.push(' ');
        }
        header.push('\n');
        let mut out = b"\x93NUMPY\x01\x00".to_vec();
        out.extend((header.len() as u16).to_le_bytes());
        out.extend(header.bytes());
        out.extend(bytes);
        out
    }
    fn parse(bytes: &[u8]) -> Result<Array, String> {
        read(&mut &bytes[..]).map_err(|e| e.message)
    }

    #[test]
    fn reads_every_number_type() {
        let ints = |descr: &str, bytes: &[u8]| match parse(&file(descr, "False", "(2,)", bytes)).unwrap().data {
            Data::I64(v) => v,
            Data::I32(v) => v.into_iter().map(i64::from).collect(),
            other => panic!("{other:?}"),
        };
        assert_eq!(ints("<i8", &[(-5i64).to_le_bytes(), 7i64.to_le_bytes()].concat()), [-5, 7]);
        assert_eq!(ints(">i8", &[(-5i64).to_be_bytes(), 7i64.to_be_bytes()].concat()), [-5, 7]);
        assert_eq!(ints("<i4", &[(-5i32).to_le_bytes(), 7i32.to_le_bytes()].concat()), [-5, 7]);
        assert_eq!(ints(">i2", &[(-5i16).to_be_bytes(), 7i16.to_be_bytes()].concat()), [-5, 7]);
        assert_eq!(ints("|i1", &[0xfb, 7]), [-5, 7]);
        assert_eq!(ints("|u1", &[0xfb, 7]), [251, 7]);
        assert_eq!(ints("<u2", &[5, 0, 0xff, 0xff]), [5, 65535]);
        assert_eq!(ints("<u4", &[5, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]), [5, 4294967295]);
        let f32s = parse(&file("<f4", "False", "(2,)", &[1.5f32.to_le_bytes(), 0.1f32.to_le_bytes()].concat())).unwrap();
        assert_eq!(f32s.data, Data::F32(vec![1.5, 0.1]));
        let f64s = parse(&file(">f8", "False", "()", &2.5f64.to_be_bytes())).unwrap();
        assert_eq!(f64s, Array::f64(vec![], vec![2.5]));
        assert_eq!(parse(&file("|b1", "False", "(2,)", &[0, 1])).unwrap().data, Data::Bool(vec![false, true]));
        assert!(parse(&file("<u8", "False", "(1,)", &[0xff; 8])).unwrap_err().contains("too large for i64"));
        for other in ["<c16", "<U3", "|O", "<f2", "<M8[ns]"] {
            assert!(parse(&file(other, "False", "(1,)", &[0; 64])).is_err(), "{other}");
        }
    }

    #[test]
    fn column_major_becomes_row_major() {
        // 2 x 3 x 2 with element (i, j, k) = 100 i + 10 j + k.
        let mut bytes = vec![];
        for k in 0..2 {
            for j in 0..3 {
                for i in 0..2 {
                    bytes.extend((100 * i + 10 * j + k as i64).to_le_bytes());
                }
            }
        }
        let a = parse(&file("<i8", "True", "(2, 3, 2)", &bytes)).unwrap();
        assert_eq!(a.data, Data::I64(vec![0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121]));
    }

    #[test]
    fn damaged_files_are_errors() {
        let good = file("<f8", "False", "(3,)", &[0; 24]);
        for end in 0..good.len() {
            assert!(parse(&good[..end]).is_err(), "{end}");
        }
        assert!(parse(&file("<f8", "False", "(4611686018427387904,)", &[0; 24])).is_err());
        assert!(parse(&file("<f8", "False", "(4000000000000,)", &[0; 24])).unwrap_err().contains("ends before"));
        assert!(parse(&file("<f8", "False", "(99999999999, 99999999999)", &[0; 24])).is_err());
        assert!(parse(&file("<f8", "False", "(99999999999999999999999,)", &[0; 24])).is_err());
        assert!(parse(&file("<f8", "False", "(-1,)", &[0; 24])).is_err());
        assert!(parse(&file("<f8", "False", &"(".repeat(20000), &[])).is_err());
        let mut huge = b"\x93NUMPY\x02\x00".to_vec();
        huge.extend(u32::MAX.to_le_bytes());
        assert!(parse(&huge).unwrap_err().contains("claims"));
        // One byte changed anywhere never panics.
        for k in 0..good.len() {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[k] ^= 1 << bit;
                let _ = parse(&bad);
            }
        }
    }

    #[test]
    fn reads_back_what_it_writes() {
        for array in [
            Array::f64(vec![2, 2], vec![1.0, f64::NAN, f64::INFINITY, -0.0]),
            Array::f64(vec![], vec![3.5]),
            Array::f64(vec![0, 3], vec![]),
            Array::new(vec![3], Data::I64(vec![i64::MIN, 0, i64::MAX])),
            Array::new(vec![3], Data::F32(vec![f32::MIN_POSITIVE, 0.1, f32::INFINITY])),
            Array::new(vec![3, 1], Data::I32(vec![i32::MIN, 0, i32::MAX])),
            Array::new(vec![1, 2], Data::Bool(vec![true, false])),
        ] {
            let mut bytes = vec![];
            write(&array, &mut bytes).unwrap();
            let back = parse(&bytes).unwrap();
            assert_eq!(format!("{back:?}"), format!("{array:?}"));
        }
    }
}
