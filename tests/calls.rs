//! Wrong calls and unusual data: `golden/calls/*.txt`, each a program, a line `---`, and a transcript of commands on it.
//!
//! The commands find the data files of `data` below in their folder. `BLESS=1` rewrites what they print.

mod transcript;

use std::path::Path;

#[test]
fn wrong_calls_are_explained() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/calls");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 5, "there are golden calls");
    let mut wrong = vec![];
    for file in files {
        let golden = std::fs::read_to_string(&file).unwrap();
        let (program, commands) = golden.split_once("\n---\n").expect("a golden file has a line `---`");
        let folder = tempfile::tempdir().unwrap();
        data(folder.path());
        std::fs::write(folder.path().join("program.iv"), format!("{program}\n")).unwrap();
        let (replayed, found) = transcript::replay(commands, folder.path());
        if transcript::bless() {
            std::fs::write(&file, format!("{program}\n---\n{replayed}")).unwrap();
        } else {
            wrong.extend(found.into_iter().map(|w| format!("{}: {w}", file.display())));
        }
    }
    assert!(wrong.is_empty(), "{} calls are answered otherwise:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

/// Every data file that the commands use.
fn data(folder: &Path) {
    let floats = |values: &[f64]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).unwrap();
    let vector = npy("<f8", false, "(3,)", &floats(&[1.0, 2.0, 3.0]));
    write("vector.npy", &vector);
    write("truncated.npy", &vector[..vector.len() - 8]);
    write("header.npy", &vector[..20]);
    write("text.npy", b"1 2 3\n");
    write("empty.npy", b"");
    write("matrix.npy", &npy("<f8", false, "(2, 3)", &floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])));
    // By columns: 1 4 2 5 3 6 is the same matrix.
    write("fortran.npy", &npy("<f8", true, "(2, 3)", &floats(&[1.0, 4.0, 2.0, 5.0, 3.0, 6.0])));
    write("scalar.npy", &npy("<f8", false, "()", &floats(&[2.5])));
    write("big_endian.npy", &npy(">f8", false, "(2,)", &[1.0f64.to_be_bytes(), 2.0f64.to_be_bytes()].concat()));
    write("complex.npy", &npy("<c16", false, "(1,)", &floats(&[1.0, 2.0])));
    write("objects.npy", &npy("|O", false, "(1,)", b"\x80\x04N."));
    write("words.npy", &npy("<U3", false, "(1,)", &[0; 12]));
    write("places.npy", &npy("<i8", false, "(2,)", &[0i64.to_le_bytes(), 2i64.to_le_bytes()].concat()));
    let singles = [1.5f32, 0.1, 3.0].map(f32::to_le_bytes).concat();
    write("single.npy", &npy("<f4", false, "(3,)", &singles));
    write("short.npy", &npy("<i4", false, "(2,)", &[2i32.to_le_bytes(), 0i32.to_le_bytes()].concat()));
    write("bytes.npy", &npy("|u1", false, "(2,)", &[2, 1]));
    write("large.npy", &npy("<i8", false, "(2,)", &[1i64.to_le_bytes(), 3_000_000_001i64.to_le_bytes()].concat()));
    write("nan.npy", &npy("<f8", false, "(3,)", &floats(&[1.0, f64::NAN, f64::INFINITY])));
    write("none.npy", &npy("<f8", false, "(0,)", &[]));
    write("claims.npy", &npy("<f8", false, "(4000000000000,)", &floats(&[1.0])));

    iverson::value::npz::write_file(&folder.join("data.npz"), [("x", &three()), ("y", &three())]).unwrap();
    let archive = std::fs::read(folder.join("data.npz")).unwrap();
    write("truncated.npz", &archive[..archive.len() / 2]);
    let mut corrupt = archive.clone();
    // One bit of the first array's last number: the archive's checksum no longer fits.
    let at = find(&corrupt, &3.0f64.to_le_bytes()).expect("the archive holds a 3");
    corrupt[at + 7] ^= 1;
    write("corrupt.npz", &corrupt);
    write("not.npz", b"PK\x03\x04 this is no archive");
    write("data.json", br#"{"x": [1, 2, 3], "y": [4, 5, 6]}"#);
    write("broken.json", br#"{"x": [1, 2, 3"#);
    write("ragged.json", br#"{"x": [[1, 2], [3]]}"#);
}

fn three() -> iverson::value::Array {
    iverson::value::Array { shape: vec![3], data: iverson::value::Data::F64(vec![1.0, 2.0, 3.0]) }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|w| w == part)
}

fn npy(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend(data);
    bytes
}
