//! A program's text to a checked program: parsed, completed by the library, checked.

use crate::check;
use crate::diagnostic::{Diagnostic, Severity, Sources};
use crate::ir::Program;
use crate::library;
use crate::syntax;

pub struct Loaded {
    /// The text, and those of the library.
    pub sources: Sources,
    /// What is wrong with the text. Warnings are about the text itself, never about the library.
    pub diagnostics: Vec<Diagnostic>,
    /// `None` if the text could not be read; to be used only if no diagnostic is an error.
    pub program: Option<Program>,
    /// How many definitions the text has; the library's come behind them.
    pub defined: usize,
}

impl Loaded {
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|d| d.severity == Severity::Error)
    }
}

/// Loads a text under the name that messages show. The definitions `wanted` are taken from the library if the text has
/// none of that name, whether or not it uses them.
pub fn load(name: &str, text: &str, wanted: &[&str]) -> Loaded {
    let (mut module, diagnostics) = syntax::parse(0, text);
    let mut loaded = Loaded { sources: library::sources(name, text), diagnostics, program: None, defined: module.definitions.len() };
    if loaded.has_errors() {
        return loaded;
    }
    library::complete(&mut module, wanted);
    let (program, more) = check::check(&module);
    let own = |d: &Diagnostic| d.labels.first().is_none_or(|label| label.span.source == 0);
    loaded.diagnostics.extend(more.into_iter().filter(|d| d.severity == Severity::Error || own(d)));
    loaded.program = Some(program);
    loaded
}
