//! `docs/errors.md` shows every message of the golden tests. `BLESS=1 cargo test --test gallery` writes it anew.

use std::fmt::Write;
use std::path::Path;

const HEAD: &str = "\
# What can go wrong

Every message below is from a test of that name in `tests/golden`. A message says what is wrong and where, and its note
what would be right. Errors go to stderr; the exit code is 1, and 2 for a command line that cannot be understood.
";

/// Folders of `tests/golden`, and what their chapters are called.
const CHAPTERS: [(&str, &str, &str); 3] = [
    ("syntax", "Texts that are no programs", "Several mistakes are reported at once where the text can be read on."),
    ("check", "Programs that mean nothing", "The checker knows types, sizes and the ranges of indices."),
    ("calls", "Calls that cannot be answered", "The commands run on the program above them; `#` begins a remark."),
];

#[test]
fn the_gallery_shows_every_message() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut gallery = HEAD.to_string();
    for (folder, title, remark) in CHAPTERS {
        let _ = writeln!(gallery, "\n## {title}\n\n{remark}");
        let mut files: Vec<_> = std::fs::read_dir(root.join("tests/golden").join(folder)).unwrap().map(|e| e.unwrap().path()).collect();
        files.retain(|f| f.extension().is_some_and(|e| e == "txt"));
        files.sort();
        for file in files {
            let golden = std::fs::read_to_string(&file).unwrap();
            let (program, said) = golden.split_once("\n---\n").expect("a golden file has a line `---`");
            let name = file.file_stem().unwrap().to_string_lossy().replace('_', " ");
            let _ = write!(gallery, "\n### {name}\n\n```text\n{program}\n```\n\n```text\n{}\n```\n", said.trim_end());
        }
    }
    let document = root.join("docs/errors.md");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&document, gallery).unwrap();
    } else {
        let found = std::fs::read_to_string(&document).unwrap_or_default();
        assert!(found == gallery, "docs/errors.md is not what the tests say; `BLESS=1 cargo test --test gallery` writes it anew");
    }
}
