//! Every program and command in the documents runs.
//!
//! A block marked `iverson` is a program, and is checked; `iverson name.iv` names it for the commands behind it, and
//! `iverson name.iv wrong` must fail the check. A block marked `console` is a transcript (`transcript/`), run in a folder with
//! the document's programs and `examples/`. `sh`, `text` and `rust` are not run; a block without a mark is a mistake.
//! `BLESS=1 cargo test --test docs` rewrites what commands print.

mod transcript;

use std::path::{Path, PathBuf};

#[test]
fn documents_say_what_is_so() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut documents = markdown(root);
    documents.extend(markdown(&root.join("docs")));
    assert!(!documents.is_empty(), "there are documents");
    let mut wrong = vec![];
    for document in documents {
        let text = std::fs::read_to_string(&document).unwrap();
        let (replayed, found) = check(&text, root);
        if transcript::bless() && replayed != text {
            std::fs::write(&document, replayed).unwrap();
        } else {
            wrong.extend(found.into_iter().map(|w| format!("{}: {w}", document.display())));
        }
    }
    assert!(wrong.is_empty(), "{} statements are wrong:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

fn markdown(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    found.retain(|p| p.extension().is_some_and(|e| e == "md"));
    found.sort();
    found
}

/// The document as it should be, and what is wrong with it.
fn check(text: &str, root: &Path) -> (String, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root.join("examples"), folder.path().join("examples")).unwrap();
    let (mut checked, mut wrong) = (String::new(), vec![]);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        checked += &format!("{line}\n");
        let Some(mark) = line.strip_prefix("```") else { continue };
        let mut block = String::new();
        let mut closed = false;
        for line in lines.by_ref() {
            closed = line == "```";
            if closed {
                break;
            }
            block += &format!("{line}\n");
        }
        if !closed {
            wrong.push(format!("the block `{mark}` has no end"));
        }
        match mark.split_whitespace().collect::<Vec<_>>()[..] {
            ["iverson", ref name @ ..] => {
                let file = name.first().unwrap_or(&"program.iv");
                std::fs::write(folder.path().join(file), &block).unwrap();
                let expected = if name.get(1) == Some(&"wrong") { "Error:..." } else { "...checked" };
                let (_, found) = transcript::replay(&format!("$ iverson check {file}\n{expected}\n...\n"), folder.path());
                wrong.extend(found);
            }
            ["console"] => {
                let (replayed, found) = transcript::replay(&block, folder.path());
                block = replayed;
                wrong.extend(found);
            }
            ["sh" | "text" | "rust"] => {}
            _ => wrong.push(format!("a block is marked `{mark}`, which says not what it is:\n{block}")),
        }
        checked += &format!("{block}```\n");
    }
    (checked, wrong)
}
