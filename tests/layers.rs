//! The order of `pub mod` in `lib.rs` is the order of dependency: a module names only those above it.

use std::path::{Path, PathBuf};

#[test]
fn modules_name_only_those_above_them() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let modules = declared(&std::fs::read_to_string(src.join("lib.rs")).unwrap());
    let mut wrong = vec![];
    for file in files(&src) {
        let inside = file.strip_prefix(&src).unwrap().to_path_buf();
        let first = inside.iter().next().unwrap().to_str().unwrap();
        let own = first.strip_suffix(".rs").unwrap_or(first);
        // The binary stands below the whole library.
        if ["lib", "main", "cli"].contains(&own) {
            continue;
        }
        let Some(place) = modules.iter().position(|m| m == own) else {
            wrong.push(format!("{} is not declared in lib.rs", inside.display()));
            continue;
        };
        for (number, line) in std::fs::read_to_string(&file).unwrap().lines().enumerate() {
            for name in named(line.split("//").next().unwrap_or("")) {
                if modules.iter().position(|m| *m == name).is_some_and(|k| k > place) {
                    wrong.push(format!("{}:{} names `{name}`, which stands below `{own}`", inside.display(), number + 1));
                }
            }
        }
    }
    assert!(modules.len() > 3, "lib.rs declares its modules as `pub mod name;`");
    assert!(wrong.is_empty(), "the layers are broken:\n{}", wrong.join("\n"));
}

fn declared(lib: &str) -> Vec<String> {
    lib.lines().filter_map(|l| l.trim().strip_prefix("pub mod ")?.strip_suffix(';')).map(str::to_string).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The modules that a line names: `crate::a::b`, `crate::{a::b, c}`.
fn named(line: &str) -> Vec<String> {
    let mut names = vec![];
    for (start, _) in line.match_indices("crate::") {
        let rest = &line[start + "crate::".len()..];
        match rest.strip_prefix('{') {
            Some(group) => {
                let mut depth = 0;
                let mut part = String::new();
                for c in group.chars() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => names.push(std::mem::take(&mut part)),
                        _ => part.push(c),
                    }
                }
                names.push(part);
            }
            None => names.push(rest.to_string()),
        }
    }
    names.iter().map(|n| n.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()).collect()
}

#[test]
fn names_are_found() {
    assert_eq!(named("use crate::ir::{Exp, Var}; crate::value::f()"), ["ir", "value"]);
    assert_eq!(named("use crate::{ir::{Exp, Var}, types::Size};"), ["ir", "types"]);
}
