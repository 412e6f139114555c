//! A program's file: read, parsed and checked.

use super::failure::{Failure, draw};
use super::options::Subject;
use super::output;
use iverson::bind::nearest;
use iverson::check;
use iverson::diagnostic::{Severity, Sources};
use iverson::ir::{FunctionId, Program};
use iverson::syntax;
use iverson::value::Error;
use iverson::value::npy::reason;
use std::io::Write;
use std::path::Path;

pub struct Source {
    pub sources: Sources,
    pub program: Program,
    /// How many functions the file defines; those after them are derived.
    pub defined: usize,
}

impl Source {
    /// Prints warnings; errors are the failure.
    pub fn load(path: &Path) -> Result<Source, Failure> {
        let bytes = std::fs::read(path).map_err(|e| Failure::message(format!("cannot read {}: {}", path.display(), reason(&e))))?;
        let text = String::from_utf8(bytes).map_err(|_| Failure::message(format!("{} is not text", path.display())))?;
        let (module, mut diagnostics) = syntax::parse(0, &text);
        let sources = Sources::single(path.display().to_string(), text);
        let wrong = |ds: &[_]| ds.iter().any(|d: &iverson::diagnostic::Diagnostic| d.severity == Severity::Error);
        if wrong(&diagnostics) {
            return Err(Failure::diagnostics(&diagnostics, &sources));
        }
        let (program, more) = check::check(&module);
        diagnostics.extend(more);
        if wrong(&diagnostics) {
            return Err(Failure::diagnostics(&diagnostics, &sources));
        }
        if !diagnostics.is_empty() {
            let _ = std::io::stderr().write_all(draw(&diagnostics, &sources).as_bytes());
        }
        Ok(Source { sources, program, defined: module.definitions.len() })
    }

    /// The file and the function of a command.
    pub fn subject(subject: &Subject) -> Result<(Source, FunctionId), Failure> {
        let source = Source::load(&subject.file)?;
        let names: Vec<&str> = source.program.functions[..source.defined].iter().map(|f| f.name.as_str()).collect();
        if let Some(k) = names.iter().position(|n| *n == subject.function) {
            return Ok((source, FunctionId(k as u32)));
        }
        let error = Error::new(format!("no function `{}` in {}", subject.function, subject.file.display()));
        Err(Failure::Message(match nearest(&subject.function, names.iter().copied()) {
            Some(name) => error.note(format!("did you mean `{name}`?")),
            None if names.is_empty() => error.note("the file defines no function"),
            None => error.note(format!("the file defines {}", quoted(&names))),
        }))
    }
}

/// `` `a`, `b` ``
pub fn quoted(names: &[&str]) -> String {
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}

pub fn check(path: &Path) -> Result<(), Failure> {
    let source = Source::load(path)?;
    let count = source.defined;
    output::print(|out| writeln!(out, "{}: {count} definition{} checked", path.display(), if count == 1 { "" } else { "s" }))
}
