//! The library's files as they document themselves.
//!
//! A file begins with `-- # Title` and what there is to say of it as a whole. The comment that stands directly above a
//! definition says what it computes; lines `-- > CALL` in it are examples, each with its result behind it:
//!
//! ```text
//! -- The inner product; 0 of empty vectors.
//! -- > dot([1, 2], [3, 4])
//! -- 11
//! def dot(x: [n]f64, y: [n]f64) -> f64 = sum i. x[i] * y[i]
//! ```
#![allow(dead_code)]

use std::path::{Path, PathBuf};

pub struct File {
    pub path: PathBuf,
    pub text: String,
    pub title: String,
    /// Paragraphs about the file.
    pub about: Vec<String>,
    pub definitions: Vec<Definition>,
}

pub struct Definition {
    pub name: String,
    /// Up to the `=` before the body.
    pub signature: String,
    /// The whole definition.
    pub text: String,
    /// Lines of the comment before its examples.
    pub description: Vec<String>,
    pub examples: Vec<Example>,
}

pub struct Example {
    pub call: String,
    pub result: String,
    /// The line of the call, from 0.
    pub line: usize,
}

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("library")
}

/// In the order in which the library lists them.
pub fn files() -> Vec<File> {
    iverson::library::FILES.iter().map(|file| read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(file.name))).collect()
}

fn read(path: &Path) -> File {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut file = File { path: path.to_path_buf(), title: String::new(), about: vec![], definitions: vec![], text: text.clone() };
    let lines: Vec<&str> = text.lines().collect();
    let mut at = 0;
    while at < lines.len() {
        let start = at;
        let comment: Vec<&str> = lines[at..].iter().map_while(|l| l.strip_prefix("--")).map(|l| l.strip_prefix(' ').unwrap_or(l)).collect();
        at += comment.len();
        if lines.get(at).is_some_and(|l| l.starts_with("def ")) {
            let body: Vec<&str> = lines[at..].iter().copied().take_while(|l| !l.is_empty()).collect();
            file.definitions.push(definition(&comment, start, &body.join("\n")));
            at += body.len();
        } else if let Some(first) = comment.first() {
            match first.strip_prefix("# ") {
                Some(title) => {
                    file.title = title.to_string();
                    file.about.extend(Some(comment[1..].join("\n")).filter(|text| !text.is_empty()));
                }
                None => file.about.push(comment.join("\n")),
            }
        } else {
            assert!(lines[at].is_empty(), "{}:{}: neither a comment nor a definition", path.display(), at + 1);
            at += 1;
        }
    }
    file
}

fn definition(comment: &[&str], first_line: usize, text: &str) -> Definition {
    let mut examples: Vec<Example> = vec![];
    let mut description = vec![];
    for (k, line) in comment.iter().enumerate() {
        if let Some(call) = line.strip_prefix("> ") {
            examples.push(Example { call: call.to_string(), result: String::new(), line: first_line + k });
        } else if let Some(example) = examples.last_mut() {
            example.result += &format!("{line}\n");
        } else {
            description.push(line.to_string());
        }
    }
    let head = text.strip_prefix("def ").expect("a definition");
    let name = head.split('(').next().unwrap().trim().to_string();
    Definition { name, signature: signature(text), text: text.to_string(), description, examples }
}

/// What stands before the first `=` that is in no bracket and part of no other sign.
fn signature(text: &str) -> String {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        depth += matches!(c, '(' | '[' | '{') as i32 - matches!(c, ')' | ']' | '}') as i32;
        if depth == 0 && text[at..].starts_with(" =") {
            return text[..at].to_string();
        }
    }
    panic!("a definition without a body: {text}");
}

/// The definitions of a name and of all it uses, so that a change of a file is seen without compiling it in.
pub fn closure(files: &[File], names: &[&str]) -> String {
    let all: Vec<&Definition> = files.iter().flat_map(|f| &f.definitions).collect();
    let mut needed: Vec<usize> = vec![];
    let mut visit = names.iter().map(|n| n.to_string()).collect::<Vec<_>>();
    while let Some(name) = visit.pop() {
        let Some(k) = all.iter().position(|d| d.name == name) else { continue };
        if !needed.contains(&k) {
            needed.push(k);
            visit.extend(words(&all[k].text));
        }
    }
    needed.sort();
    needed.iter().map(|k| format!("{}\n\n", all[*k].text)).collect()
}

pub fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_string).collect()
}
