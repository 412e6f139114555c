//! Transcripts: commands and what they print, checked by running them.
//!
//! ```text
//! $ iverson run dot.iv dot x=[1,2] y=[3,4]
//! 11
//! ```
//!
//! A line that begins with `$ ` is a command for the shell, in which `iverson` is the binary under test; the lines up to the
//! next command or remark (`# `) are all it prints, to stdout and stderr. A command fails exactly if that begins with
//! `Error` or `error`.
//! In what is expected, `...` stands for any text within a line, and alone on its line for any lines: times, memory and
//! rounding errors are no facts. Floats may differ by their last digits, since processors differ in what they fuse.
//! With `BLESS=1` what differs is rewritten.

use std::path::Path;
use std::process::Command;

/// Runs the commands of a transcript in a folder. Gives the transcript as it should be, and what is wrong with it.
pub fn replay(text: &str, folder: &Path) -> (String, Vec<String>) {
    let (mut replayed, mut wrong) = (vec![], vec![]);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        replayed.push(line.to_string());
        let Some(command) = line.strip_prefix("$ ") else { continue };
        let mut expected = vec![];
        while let Some(next) = lines.next_if(|l| !l.starts_with("$ ") && !l.starts_with("# ")) {
            expected.push(next);
        }
        // Blank lines before the next command belong to the transcript's layout.
        let blank = expected.iter().rev().take_while(|l| l.trim().is_empty()).count();
        let layout = expected.split_off(expected.len() - blank);
        let (printed, succeeded) = shell(command, folder);
        let printed: Vec<&str> = printed.trim_end().lines().map(str::trim_end).collect();
        let reports = printed.first().is_some_and(|l| l.starts_with("Error") || l.starts_with("error"));
        if succeeded == reports {
            let how = if succeeded { "succeeds" } else { "fails" };
            wrong.push(format!("$ {command}\n{how}, but prints:\n{}", printed.join("\n")));
        }
        if matches(&expected, &printed) || numbers_match(&expected, &printed) {
            replayed.extend(expected.iter().map(|l| l.to_string()));
        } else {
            wrong.push(format!("$ {command}\nexpected:\n{}\nprinted:\n{}", expected.join("\n"), printed.join("\n")));
            replayed.extend(printed.iter().map(|l| l.to_string()));
        }
        replayed.extend(layout.iter().map(|l| l.to_string()));
    }
    (replayed.join("\n") + "\n", wrong)
}

/// Whether expectations are to be rewritten.
pub fn bless() -> bool {
    std::env::var_os("BLESS").is_some()
}

/// What a command prints, and whether it succeeds. `cargo run --release --` stands for the binary too.
fn shell(command: &str, folder: &Path) -> (String, bool) {
    let command = command.replace("cargo run --release -- ", "iverson ");
    let binary = Path::new(env!("CARGO_BIN_EXE_iverson"));
    let path = std::env::var("PATH").unwrap_or_default();
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("iverson-cache");
    let output = Command::new("sh")
        .arg("-c")
        .arg(format!("exec 2>&1\n{command}"))
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", binary.parent().expect("a folder").display()))
        .env("IVERSON_CACHE", cache)
        .env("NO_COLOR", "1")
        .output()
        .expect("a shell");
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.success())
}

/// Whether lines are as expected, `...` for any.
fn matches(expected: &[&str], printed: &[&str]) -> bool {
    match expected.split_first() {
        None => printed.is_empty(),
        Some((&"...", rest)) => (0..=printed.len()).any(|k| matches(rest, &printed[k..])),
        Some((first, rest)) => printed.split_first().is_some_and(|(p, others)| line_matches(first, p) && matches(rest, others)),
    }
}

fn line_matches(expected: &str, printed: &str) -> bool {
    match expected.split_once("...") {
        None => expected == printed,
        Some((before, after)) => {
            let Some(rest) = printed.strip_prefix(before) else { return false };
            rest.char_indices().map(|(k, _)| k).chain([rest.len()]).any(|k| line_matches(after, &rest[k..]))
        }
    }
}

/// How far floats may be from what is expected, relative to it or to 1.
const TOLERANCE: f64 = 1e-9;

/// Whether the texts are the same but for the last digits of floats, and for lines broken elsewhere because of them.
fn numbers_match(expected: &[&str], printed: &[&str]) -> bool {
    let (expected, printed) = (words(expected), words(printed));
    let close = |a: &str, b: &str| match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(x), Ok(y)) => (a.contains('.') || b.contains(['.', 'e'])) && (x - y).abs() <= TOLERANCE * x.abs().max(1.0),
        _ => false,
    };
    let same = |(a, b): (&String, &String)| a == b || close(a, b);
    expected != printed && expected.len() == printed.len() && expected.iter().zip(&printed).all(same)
}

/// Numbers, and what stands between them.
fn words(lines: &[&str]) -> Vec<String> {
    let text = lines.join(" ");
    let mut words = vec![];
    for word in text.split_whitespace() {
        let mut rest = word;
        while let Some(c) = rest.chars().next() {
            let of_number = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
            let length = rest.find(|d| of_number(d) != of_number(c)).unwrap_or(rest.len());
            words.push(rest[..length].to_string());
            rest = &rest[length..];
        }
    }
    words
}
