//! Checking: wrong programs give the messages in `golden/check`, right ones the IR, and no program makes the checker
//! panic.
//!
//! A golden file is a program, a line `---`, and what is said about it; `BLESS=1` rewrites the latter.

use iverson::check::check;
use iverson::diagnostic::{Diagnostic, Severity, Sources, render};
use iverson::ir::equal::equal_up_to_renaming;
use iverson::ir::print::{print_function, print_program, print_type};
use iverson::ir::verify::verify;
use iverson::ir::{Body, Program};
use iverson::syntax::parse;
use std::path::{Path, PathBuf};

fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|found| found == extension));
    files.sort();
    files
}

fn said(diagnostics: &[Diagnostic], text: &str) -> String {
    render(diagnostics, &Sources::single("test.iv", text), false)
}

/// The program of a text without errors; it keeps the IR's invariants and its print reads back as the same program.
fn program(text: &str) -> Program {
    let (module, diagnostics) = parse(0, text);
    assert!(diagnostics.is_empty(), "{}", said(&diagnostics, text));
    let (program, diagnostics) = check(&module);
    assert!(diagnostics.iter().all(|d| d.severity == Severity::Warning), "{}", said(&diagnostics, text));
    verify(&program).unwrap_or_else(|e| panic!("{e}\n{text}\n{}", print_program(&program)));
    program
}

fn read_back(text: &str) -> Program {
    let first = program(text);
    let printed = print_program(&first);
    let second = program(&printed);
    equal_up_to_renaming(&first, &second).unwrap_or_else(|e| panic!("{e}\n\n{printed}\n{}", print_program(&second)));
    first
}

#[allow(dead_code)]
/// The print of the last definition, which reads back.
fn shown(text: &str) -> String {
    let program = read_back(text);
    let last =
        program.functions.iter().rposition(|f| matches!(f.body, Body::Exp(_)) && text.contains(&format!("def {}(", f.name))).unwrap();
    print_function(&program, iverson::ir::FunctionId(last as u32)).trim_end().to_string()
}

#[allow(dead_code)]
/// The type that a definition's result is inferred to have.
fn inferred(text: &str) -> String {
    let program = read_back(text);
    let count = text.matches("def ").count();
    print_type(&program, &program.functions[count - 1].result)
}

#[test]
fn wrong_programs_are_explained() {
    let files = files("golden/check", "txt");

    let mut wrong = Vec::new();
    for file in files {
        let golden = std::fs::read_to_string(&file).unwrap();
        let (text, expected) = golden.split_once("\n---\n").expect("a golden file has a line `---`");
        let (module, diagnostics) = parse(0, text);
        assert!(diagnostics.is_empty(), "{}: this is no text\n{}", file.display(), said(&diagnostics, text));
        let (_, diagnostics) = check(&module);
        assert!(!diagnostics.is_empty(), "{}: nothing is said about this program", file.display());
        let found = said(&diagnostics, text);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&file, format!("{text}\n---\n{found}")).unwrap();
        } else if found != expected {
            wrong.push(format!("{}\n{found}", file.display()));
        }
    }
    assert!(wrong.is_empty(), "messages differ (BLESS=1 rewrites them):\n{}", wrong.join("\n"));
}

#[test]
fn right_programs_read_back() {
    for file in files("programs", "iv") {
        read_back(&std::fs::read_to_string(&file).unwrap());
    }
}
