//! A program's file: read and checked, together with what it uses of the library.

use super::failure::{Failure, draw};
use super::inputs::Given;
use super::options::{Execution, Inputs, Subject};
use super::output;
use super::progress::Progress;
use iverson::bind::{Sizes, nearest};
use iverson::diagnostic::Sources;
use iverson::ir::{FunctionId, Program, Scalar};
use iverson::library;
use iverson::load::load_at;
use iverson::runtime;
use iverson::value::npy::reason;
use iverson::value::{Error, Value};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

pub struct Source {
    pub sources: Sources,
    pub program: Program,
    /// How many functions the file defines; those after them are the library's, and derived.
    pub defined: usize,
    /// The definitions that take functions, and are no functions of the program.
    pub templates: Vec<String>,
    /// How many definitions the file has.
    pub definitions: usize,
    /// The generic definitions, with the parameters that mention each of their type variables.
    pub generic: Vec<(String, Vec<Vec<String>>)>,
}

/// When the warnings about a text are printed.
#[derive(Clone, Copy, PartialEq)]
enum Warnings {
    Always,
    /// By the first command that meets the text.
    Once,
}

impl Source {
    /// A file with definitions of the library that it need not use. Prints warnings; errors are the failure.
    fn load(path: &Path, wanted: &[&str], at: Option<(&str, &[Scalar])>, warnings: Warnings) -> Result<Source, Failure> {
        let text = read_text(path)?;
        let progress = Progress::new("checking");
        let loaded = load_at(&path.display().to_string(), &text, wanted, at);
        drop(progress);
        match (loaded.has_errors(), loaded.program) {
            (false, Some(program)) => {
                if !loaded.diagnostics.is_empty() && (warnings == Warnings::Always || runtime::is_first_sight(&text)) {
                    let _ = std::io::stderr().write_all(draw(&loaded.diagnostics, &loaded.sources).as_bytes());
                }
                Ok(Source {
                    sources: loaded.sources,
                    program,
                    defined: loaded.defined,
                    templates: loaded.templates,
                    definitions: loaded.definitions,
                    generic: loaded.generic,
                })
            }
            _ => Err(Failure::diagnostics(&loaded.diagnostics, &loaded.sources)),
        }
    }

    /// The file and the function of a command, which is the file's or the library's. `f[f32]` is a generic function at
    /// these types of elements, under a name of its own.
    pub fn subject(subject: &Subject) -> Result<(Source, FunctionId), Failure> {
        let Named { function, types } = Named::read(&subject.function)?;
        let at = types.as_ref().map(|types| (function, types.as_slice()));
        if let Some(types) = &types {
            let source = Source::load(&subject.file, &[function], None, Warnings::Once)?;
            source.find(function, &subject.file.display())?;
            source.check_types(function, types)?;
        }
        let mut source = Source::load(&subject.file, &[function], at, Warnings::Once)?;
        let id = source.find(function, &subject.file.display())?;
        if let Some(types) = &types {
            let name = types.iter().fold(function.to_string(), |name, s| format!("{name}_{}", s.name()));
            // Where a function has that name, a number makes another.
            let free = |name: &String| source.program.find(name).is_none();
            let others = (2..).map(|k| format!("{name}_{k}"));
            let name = std::iter::once(name.clone()).chain(others).find(free).unwrap_or_default();
            source.program.functions[id.0 as usize].name = name;
        }
        Ok((source, id))
    }

    /// Whether a function has type variables for these types.
    fn check_types(&self, function: &str, types: &[Scalar]) -> Result<(), Failure> {
        let wanted = match self.generic.iter().find(|(name, _)| name == function) {
            Some((_, variables)) if variables.len() == types.len() => return Ok(()),
            Some((_, variables)) => variables.len(),
            None => return Err(Failure::message(format!("`{function}` is not generic, so it has no types to choose"))),
        };
        let noun = if wanted == 1 { "type is" } else { "types are" };
        let error = Error::new(format!("`{function}` is given {} types of elements, but {wanted} {noun} wanted", types.len()));
        Err(Failure::Message(error.note(format!("as in `{function}[{}]`", vec!["f32"; wanted].join(", ")))))
    }

    /// The file and the function of a command, with the values that it is given. A generic function is taken at the types
    /// of elements that files have, else at the first that the values fit; to be differentiated, at floats.
    pub fn called(subject: &Subject, inputs: &Inputs, execution: &Execution, purpose: Purpose) -> Result<Called, Failure> {
        let (source, id) = Source::subject(subject)?;
        if subject.function.contains('[') {
            return Called::new(source, id, inputs, execution);
        }
        let generic = source.generic.iter().find(|(name, _)| *name == subject.function).map(|(_, variables)| variables.clone());
        let Some(variables) = generic else { return Called::new(source, id, inputs, execution) };
        let mut given = Given::new(inputs, &source.program, id)?;
        let typed: Vec<Option<Scalar>> = variables.iter().map(|params| params.iter().find_map(|p| given.element_type(p))).collect();
        let typed: Vec<Option<Scalar>> = match purpose {
            Purpose::Value => typed,
            Purpose::Derivative => typed.into_iter().map(|s| s.filter(|s| s.is_float())).collect(),
        };
        let stored = typed.iter().any(Option::is_some).then(|| typed.iter().map(|s| s.unwrap_or(Scalar::F64)).collect());
        let called_at = |scalars: &[Scalar]| {
            let at = Some((subject.function.as_str(), scalars));
            let source = Source::load(&subject.file, &[&subject.function], at, Warnings::Once).ok()?;
            let id = source.find(&subject.function, &subject.file.display()).ok()?;
            Called::new(source, id, inputs, execution).ok()
        };
        if let Some(called) = stored.and_then(|scalars: Vec<Scalar>| called_at(&scalars)) {
            return Ok(called);
        }
        match Called::new(source, id, inputs, execution) {
            Ok(called) => Ok(called),
            Err(wrong) => combinations(variables.len()).iter().find_map(|scalars| called_at(scalars)).ok_or(wrong),
        }
    }

    /// A function of the program by its name, in the `place` that messages speak of.
    pub fn find(&self, function: &str, place: &dyn std::fmt::Display) -> Result<FunctionId, Failure> {
        let own: Vec<&str> = self.program.functions[..self.defined].iter().map(|f| f.name.as_str()).collect();
        let of_library = || library::names().any(|name| name == function);
        let found = own.iter().position(|n| *n == function).map(|k| FunctionId(k as u32));
        if let Some(id) = found.or_else(|| self.program.find(function).filter(|_| of_library())) {
            return Ok(id);
        }
        if self.templates.iter().any(|name| name == function) {
            let error = Error::new(format!("`{function}` takes functions, which a command cannot give it"));
            return Err(Failure::Message(
                error.note(format!("run a definition that calls it, as in `def g(x: f64) = {function}(|t| …, x)`")),
            ));
        }
        let error = Error::new(format!("no function `{function}` in {place}"));
        Err(Failure::Message(match nearest(function, own.iter().copied().chain(library::names())) {
            Some(name) => error.note(format!("did you mean `{name}`?")),
            None if own.is_empty() => error.note(format!("{place} defines no function")),
            None => error.note(format!("{place} defines {}", quoted(&own))),
        }))
    }
}

/// A function as a command names it: `f`, or `f[f32]`.
struct Named<'a> {
    function: &'a str,
    types: Option<Vec<Scalar>>,
}

impl Named<'_> {
    fn read(text: &str) -> Result<Named<'_>, Failure> {
        let Some((function, types)) = text.split_once('[') else { return Ok(Named { function: text, types: None }) };
        let types = types.strip_suffix(']').ok_or_else(|| Failure::message(format!("`{text}` lacks its `]`")))?;
        let known: Vec<&str> = Scalar::ALL.iter().map(|s| s.name()).collect();
        let read = |name: &str| {
            let unknown = || Error::new(format!("no type `{name}`")).note(format!("there are {}", quoted(&known)));
            Scalar::ALL.into_iter().find(|s| s.name() == name).ok_or_else(unknown)
        };
        let types = types.split(',').map(|name| read(name.trim())).collect::<Result<_, _>>()?;
        Ok(Named { function, types: Some(types) })
    }
}

/// What a function is called for.
#[derive(Clone, Copy, PartialEq)]
pub enum Purpose {
    Value,
    Derivative,
}

/// A function and the values that it is given.
pub struct Called {
    pub source: Source,
    pub id: FunctionId,
    pub given: Given,
    pub values: Vec<Value>,
    pub sizes: Sizes,
    /// How long it took to read the values.
    pub reading: Duration,
}

impl Called {
    fn new(source: Source, id: FunctionId, inputs: &Inputs, execution: &Execution) -> Result<Called, Failure> {
        let start = Instant::now();
        let mut given = Given::new(inputs, &source.program, id)?;
        let (values, sizes) = given.arguments(&source, id, execution)?;
        Ok(Called { source, id, given, values, sizes, reading: start.elapsed() })
    }
}

/// The types that so many type variables may stand for; of more than two, all for the same.
fn combinations(variables: usize) -> Vec<Vec<Scalar>> {
    match variables {
        2 => Scalar::ALL.iter().flat_map(|a| Scalar::ALL.iter().map(|b| vec![*a, *b])).collect(),
        _ => Scalar::ALL.iter().map(|s| vec![*s; variables]).collect(),
    }
}

pub fn read_text(path: &Path) -> Result<String, Failure> {
    let bytes = std::fs::read(path).map_err(|e| Failure::message(format!("cannot read {}: {}", path.display(), reason(&e))))?;
    String::from_utf8(bytes).map_err(|_| Failure::message(format!("{} is not text", path.display())))
}

/// `` `a`, `b` ``
pub fn quoted(names: &[&str]) -> String {
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}

pub fn check(path: &Path) -> Result<(), Failure> {
    let source = Source::load(path, &[], None, Warnings::Always)?;
    let count = source.definitions;
    output::print(|out| writeln!(out, "{}: {count} definition{} checked", path.display(), if count == 1 { "" } else { "s" }))
}
