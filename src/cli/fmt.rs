//! `fmt`: programs laid out as they should be.

use super::failure::{Failure, draw};
use super::options::Fmt;
use super::output;
use super::source::read_text;
use iverson::diagnostic::Sources;
use iverson::syntax;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Reads the program from stdin and writes it to stdout.
const STDIN: &str = "-";

pub fn fmt(options: &Fmt) -> Result<(), Failure> {
    let mut failed = false;
    let mut unformatted = vec![];
    for path in files(&options.files)? {
        match file(&path, options.check) {
            Ok(true) => {}
            Ok(false) => unformatted.push(path),
            // The other files are formatted all the same.
            Err(failure) if options.files.len() > 1 => {
                failed = true;
                failure.report();
            }
            Err(failure) => return Err(failure),
        }
    }
    if options.check {
        output::print(|out| unformatted.iter().try_for_each(|path| writeln!(out, "{}", path.display())))?;
        failed |= !unformatted.is_empty();
    }
    if failed { Err(Failure::Told) } else { Ok(()) }
}

/// The files named, and those in folders that are named.
fn files(named: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = vec![];
    for path in named {
        if path.is_dir() {
            let before = files.len();
            programs(path, &mut files).map_err(|e| Failure::message(format!("cannot read {}: {e}", path.display())))?;
            if files.len() == before {
                return Err(Failure::message(format!("no program (*.iv) in {}", path.display())));
            }
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

fn programs(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut entries = std::fs::read_dir(folder)?.map(|e| e.map(|e| e.path())).collect::<Result<Vec<_>, _>>()?;
    entries.sort();
    for path in entries {
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.is_dir() && !path.is_symlink() && !hidden {
            programs(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "iv") {
            files.push(path);
        }
    }
    Ok(())
}

/// Formats one file, or only looks at it; says whether it was formatted before.
fn file(path: &Path, only_check: bool) -> Result<bool, Failure> {
    let from_stdin = path.as_os_str() == STDIN;
    let (name, text) = if from_stdin {
        let mut bytes = vec![];
        std::io::stdin().read_to_end(&mut bytes).map_err(|e| Failure::message(format!("cannot read stdin: {e}")))?;
        ("stdin".to_string(), String::from_utf8(bytes).map_err(|_| Failure::message("stdin is not text"))?)
    } else {
        (path.display().to_string(), read_text(path)?)
    };
    let formatted = syntax::format::format(&text).map_err(|ds| Failure::Drawn(draw(&ds, &Sources::single(name, text.clone()))))?;
    let same = formatted == text;
    if only_check {
        return Ok(same);
    }
    if from_stdin {
        output::print(|out| out.write_all(formatted.as_bytes()))?;
    } else if !same {
        output::replace(&[(path.to_path_buf(), formatted.into_bytes())])?;
    }
    Ok(same)
}
