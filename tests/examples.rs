//! The examples: each folder of `examples/` has a program, its data, and `commands` with what they print
//! (`transcript/`). They run in a copy of the folder. `BLESS=1 cargo test --test examples` rewrites what they print.

mod transcript;

use std::path::{Path, PathBuf};

#[test]
fn examples_print_what_they_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut folders: Vec<PathBuf> = entries(&root).into_iter().filter(|p| p.is_dir()).collect();
    folders.sort();
    assert!(!folders.is_empty(), "there are examples");
    let mut wrong = vec![];
    for folder in folders {
        let copy = tempfile::tempdir().unwrap();
        for file in entries(&folder) {
            std::fs::copy(&file, copy.path().join(file.file_name().unwrap())).unwrap();
        }
        let commands = folder.join("commands");
        let text = std::fs::read_to_string(&commands).unwrap_or_else(|e| panic!("{}: {e}", commands.display()));
        let (replayed, found) = transcript::replay(&text, copy.path());
        if transcript::bless() && replayed != text {
            std::fs::write(&commands, replayed).unwrap();
        } else {
            wrong.extend(found.into_iter().map(|w| format!("{}: {w}", commands.display())));
        }
    }
    assert!(wrong.is_empty(), "{} commands print something else:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect()
}
