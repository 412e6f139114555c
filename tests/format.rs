//! Formatting: what it makes of texts (`golden/format`), and that it changes no program, keeps every comment and has
//! nothing to do the second time: for every program in the repository, for random ones, and for all of them with their
//! lines broken anywhere and comments put anywhere.
//!
//! A golden file is a text, a line `---`, and the text formatted; `BLESS=1` rewrites the latter.

#[allow(dead_code)]
mod generator;

use generator::Random;
use generator::grow::grow;
use generator::matrix::Matrix;
use iverson::syntax::format::format;
use iverson::syntax::lexer::{Token, tokenize};
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn collect(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, extension, found);
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
}

fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let mut found = vec![];
    collect(&root().join(folder), extension, &mut found);
    found
}

/// Formats a text that can be read, and makes sure that formatting again changes nothing. `format` itself sees to it
/// that the program and the comments are the same.
fn formatted(text: &str) -> Option<String> {
    let once = format(text).ok()?;
    let twice = format(&once).unwrap_or_else(|_| panic!("what is formatted can be read:\n{once}"));
    assert_eq!(once, twice, "formatted twice, from\n{text}");
    for line in once.lines() {
        assert_eq!(line.trim_end(), line);
    }
    assert!(!once.contains("\n\n\n") && !once.starts_with('\n') && (once.is_empty() || once.ends_with('\n')));
    Some(once)
}

#[test]
fn texts_are_laid_out() {
    let files = files("tests/golden/format", "txt");
    assert!(files.len() > 5);
    let mut wrong = vec![];
    for file in files {
        let golden = std::fs::read_to_string(&file).unwrap();
        let (text, expected) = golden.split_once("\n---\n").expect("a golden file has a line `---`");
        let found = formatted(text).unwrap_or_else(|| panic!("{} cannot be read", file.display()));
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&file, format!("{text}\n---\n{found}")).unwrap();
        } else if found != expected {
            wrong.push(format!("{}\n{found}", file.display()));
        }
    }
    assert!(wrong.is_empty(), "texts are laid out differently (BLESS=1 rewrites them):\n{}", wrong.join("\n"));
}

/// Our own programs are formatted.
#[test]
fn the_house_is_tidy() {
    for folder in ["examples", "library", "bench", "tests/programs"] {
        for file in files(folder, "iv") {
            let text = std::fs::read_to_string(&file).unwrap();
            let found = formatted(&text).unwrap_or_else(|| panic!("{} cannot be read", file.display()));
            assert_eq!(text, found, "{} is not formatted: run `iverson fmt {}`", file.display(), file.display());
        }
    }
}

/// All programs of the repository that can be read: files, golden programs, blocks of documents.
fn programs() -> Vec<String> {
    let mut texts = vec![];
    for folder in ["examples", "library", "bench", "tests/programs"] {
        texts.extend(files(folder, "iv").iter().map(|file| std::fs::read_to_string(file).unwrap()));
    }
    for file in files("tests/golden", "iv") {
        let text = std::fs::read_to_string(&file).unwrap();
        texts.extend(text.split("\n===").map(|part| part.split("\n---").next().unwrap_or_default().to_string()));
    }
    for folder in ["docs", "."] {
        for file in files(folder, "md").iter().filter(|f| !f.starts_with(root().join("target"))) {
            let text = std::fs::read_to_string(file).unwrap();
            texts
                .extend(text.split("\n```iverson").skip(1).filter_map(|b| b.split_once('\n')?.1.split("\n```").next().map(str::to_string)));
        }
    }
    texts
}

/// The text with its tokens set apart anyhow: on one line, or with line breaks and comments anywhere.
fn scrambled(text: &str, random: &mut Random, breaks: usize, comments: usize) -> String {
    let (tokens, _) = tokenize(0, text);
    let mut out = String::new();
    let mut end = 0;
    for (k, (token, span)) in tokens.iter().enumerate() {
        let (start, stop) = (span.start as usize, span.end as usize);
        let before = k.checked_sub(1).map(|k| tokens[k].0);
        // A field's dot touches its name, and nothing else must.
        let touching = start == end && (*token == Token::Dot || before == Some(Token::Dot));
        if !touching && k > 0 {
            out.push(' ');
            if random.chance(comments) {
                out.push_str(&format!("-- remark {k}\n"));
            }
            while random.chance(breaks) {
                out.push_str(if random.chance(30) { "\n\n" } else { "\n  " });
                if random.chance(comments) {
                    out.push_str(&format!("{}-- aside {k}\n", " ".repeat(random.below(4))));
                }
            }
        }
        out.push_str(&text[start..stop]);
        end = stop;
    }
    out
}

fn survives(text: &str, random: &mut Random) {
    if formatted(text).is_none() {
        return;
    }
    for (breaks, comments) in [(0, 0), (20, 0), (5, 5), (30, 30)] {
        let other = scrambled(text, random, breaks, comments);
        assert!(formatted(&other).is_some(), "this cannot be read:\n{other}");
    }
}

#[test]
fn programs_of_the_repository_survive() {
    let programs = programs();
    assert!(programs.iter().filter(|text| formatted(text).is_some()).count() > 60);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for text in programs {
        survives(&text, &mut random);
        survives(&text.replace('\n', "\r\n"), &mut random);
    }
}

#[test]
fn random_programs_survive() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let matrix = Matrix::new();
    let count = std::env::var("IVERSON_FUZZ").ok().and_then(|v| v.parse().ok()).unwrap_or(200);
    for seed in 0..count {
        survives(&grow(seed, &matrix).text(), &mut random);
    }
}

#[test]
fn wrong_texts_are_refused() {
    assert!(format("def f(x: f64) -> f64 = x +").is_err());
    assert_eq!(format("").unwrap(), "");
    assert_eq!(format("\n\n").unwrap(), "");
    assert_eq!(format("-- alone").unwrap(), "-- alone\n");
    assert_eq!(format("\u{feff}def f() = 1").unwrap(), "def f() = 1\n");
}
