//! A program's text to a checked program: parsed, completed by the library, checked.

use crate::check;
use crate::diagnostic::{Diagnostic, Severity, Sources};
use crate::ir::Program;
use crate::library;
use crate::syntax;
use crate::types::Scalar;

pub struct Loaded {
    /// The text, and those of the library.
    pub sources: Sources,
    /// What is wrong with the text. Warnings are about the text itself, never about the library.
    pub diagnostics: Vec<Diagnostic>,
    /// `None` if the text could not be read; to be used only if no diagnostic is an error.
    pub program: Option<Program>,
    /// How many definitions the text has.
    pub definitions: usize,
    /// How many functions the text defines; the library's come behind them.
    pub defined: usize,
    /// The definitions that take functions, the library's too: they are no functions of the program.
    pub templates: Vec<String>,
    /// The definitions that are generic over element types, with the parameters that mention each of these.
    pub generic: Vec<(String, Vec<Vec<String>>)>,
}

impl Loaded {
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|d| d.severity == Severity::Error)
    }
}

/// Loads a text under the name that messages show. The definitions `wanted` are taken from the library if the text has
/// none of that name, whether or not it uses them.
pub fn load(name: &str, text: &str, wanted: &[&str]) -> Loaded {
    load_at(name, text, wanted, None)
}

/// The same, where the function of a generic definition's name has these types of elements.
pub fn load_at(name: &str, text: &str, wanted: &[&str], at: Option<(&str, &[Scalar])>) -> Loaded {
    let (mut module, diagnostics) = syntax::parse(0, text);
    let templates: Vec<String> = module.definitions.iter().filter(|d| d.takes_functions()).map(|d| d.name.text.clone()).collect();
    let defined = module.definitions.len() - templates.len();
    let mut loaded = Loaded {
        sources: library::sources(name, text),
        diagnostics,
        program: None,
        definitions: module.definitions.len(),
        defined,
        templates,
        generic: vec![],
    };
    if loaded.has_errors() {
        return loaded;
    }
    let own = module.definitions.len();
    library::complete(&mut module, wanted);
    let of_library = module.definitions[own..].iter().filter(|d| d.takes_functions()).map(|d| d.name.text.clone());
    loaded.templates.extend(of_library);
    let generic = module.definitions.iter().map(|d| (d.name.text.clone(), check::generic_parameters(&module, d)));
    loaded.generic = generic.filter(|(_, variables)| !variables.is_empty()).collect();
    let (program, more) = check::check_at(&module, at);
    let own = |d: &Diagnostic| d.labels.first().is_none_or(|label| label.span.source == 0);
    loaded.diagnostics.extend(more.into_iter().filter(|d| d.severity == Severity::Error || own(d)));
    loaded.program = Some(program);
    loaded
}
