//! What a session knows: definitions, types, and values under names. Whatever is wrong with an input, the session stays
//! as it was.

use crate::cli::failure::{Failure, draw};
use crate::cli::source::Source;
use iverson::check;
use iverson::diagnostic::{Diagnostic, Severity, Sources, Span};
use iverson::ir::{FunctionId, Program, Type};
use iverson::library;
use iverson::syntax::ast::{Definition, Exp, ExpKind, Module, Name, Param, TypeExp, TypeKind};
use iverson::syntax::names::for_each_free;
use iverson::value::Value;
use std::io::Write;

/// The function that an expression becomes; no name of a user's is the same.
const INPUT: &str = "_input";

pub struct Session {
    /// The library, and every input.
    pub sources: Sources,
    module: Module,
    values: Vec<Known>,
}

/// A value under a name.
#[derive(Clone)]
pub struct Known {
    pub name: String,
    pub value: Value,
    /// With the names of fields.
    pub ty: Type,
}

/// An expression that is checked: a function and the values of its parameters.
pub struct Checked {
    pub program: Program,
    pub id: FunctionId,
    pub arguments: Vec<Value>,
}

impl Session {
    pub fn new() -> Session {
        Session { sources: library::sources("session", ""), module: Module::default(), values: vec![] }
    }

    /// Keeps the text of an input for messages, and gives its number.
    pub fn source(&mut self, name: &str, text: &str) -> u32 {
        self.sources.add(name, text.to_string())
    }

    pub fn wrong(&self, diagnostics: &[Diagnostic]) -> Failure {
        Failure::Drawn(draw(diagnostics, &self.sources))
    }

    /// Adds definitions; those of the same names go. Gives the names that are new or changed.
    pub fn define(&mut self, added: Module) -> Result<Vec<String>, Failure> {
        let mut module = self.module.clone();
        let source = added.definitions.first().map(|d| d.span.source);
        let names: Vec<String> = added.definitions.iter().map(|d| d.name.text.clone()).collect();
        let types: Vec<String> = added.types.iter().map(|t| t.name.text.clone()).collect();
        module.definitions.retain(|d| !names.contains(&d.name.text));
        module.types.retain(|t| !types.contains(&t.name.text));
        module.definitions.extend(added.definitions);
        module.types.extend(added.types);
        self.check(&module, &[], source)?;
        self.module = module;
        self.values.retain(|known| !names.contains(&known.name));
        Ok(types.into_iter().chain(names).collect())
    }

    /// The program of the session, with definitions of the library that it need not use.
    pub fn program(&self, wanted: &[&str]) -> Result<Source, Failure> {
        let (program, templates) = self.check(&self.module, wanted, None)?;
        let definitions = self.module.definitions.len();
        let defined = self.module.definitions.iter().filter(|d| !d.takes_functions()).count();
        Ok(Source { sources: self.sources.clone(), program, defined, templates, definitions, generic: vec![] })
    }

    /// Checks a module together with what it uses of the library. Warnings about `source` are printed.
    fn check(&self, module: &Module, wanted: &[&str], source: Option<u32>) -> Result<(Program, Vec<String>), Failure> {
        let mut module = module.clone();
        library::complete(&mut module, wanted);
        let (program, diagnostics) = check::check(&module);
        if diagnostics.iter().any(|d| d.severity == Severity::Error) {
            return Err(self.wrong(&diagnostics));
        }
        let new = |d: &&Diagnostic| d.labels.first().is_some_and(|label| Some(label.span.source) == source);
        let warnings: Vec<Diagnostic> = diagnostics.iter().filter(new).cloned().collect();
        if !warnings.is_empty() {
            let _ = std::io::stderr().write_all(draw(&warnings, &self.sources).as_bytes());
        }
        let templates = module.definitions.iter().filter(|d| d.takes_functions()).map(|d| d.name.text.clone()).collect();
        Ok((program, templates))
    }

    /// An expression as a function of the values that it uses.
    pub fn expression(&self, body: Exp) -> Result<Checked, Failure> {
        let span = body.span;
        let name = Name { text: INPUT.into(), span };
        let mut definition = Definition { name, params: vec![], result: None, body, span };
        let mut used: Vec<String> = vec![];
        for_each_free(&mut definition, &mut |name, _| used.push(name.clone()));
        let used: Vec<&Known> = self.values.iter().filter(|known| used.contains(&known.name)).collect();
        let param = |known: &&Known| Param { name: Name { text: known.name.clone(), span }, ty: type_exp(&known.value, &known.ty, span) };
        definition.params = used.iter().map(param).collect();
        let mut module = self.module.clone();
        module.definitions.push(definition);
        let (program, _) = self.check(&module, &[], Some(span.source))?;
        let id = program.find(INPUT).ok_or_else(|| Failure::message("this is a function, not a value"))?;
        Ok(Checked { program, id, arguments: used.iter().map(|known| known.value.clone()).collect() })
    }

    pub fn bind(&mut self, known: Known) {
        self.values.retain(|other| other.name != known.name);
        self.values.push(known);
    }

    pub fn values(&self) -> &[Known] {
        &self.values
    }

    pub fn definitions(&self) -> &[Definition] {
        &self.module.definitions
    }

    /// What could be completed.
    pub fn names(&self) -> Vec<String> {
        let own = self.module.definitions.iter().map(|d| d.name.text.clone());
        let types = self.module.types.iter().map(|t| t.name.text.clone());
        own.chain(types).chain(self.values.iter().map(|v| v.name.clone())).chain(library::names().map(String::from)).collect()
    }
}

/// The type of a value as it would be written, with its sizes as numbers.
fn type_exp(value: &Value, ty: &Type, span: Span) -> TypeExp {
    let kind = match (value, ty) {
        (Value::Scalar(lit), _) => TypeKind::Scalar(lit.scalar()),
        (Value::Array(array), _) => {
            let axes = array.shape.iter().map(|n| Exp { kind: ExpKind::Int(*n as u64), span }).collect();
            TypeKind::Array(axes, Box::new(TypeExp { kind: TypeKind::Scalar(array.data.scalar()), span }))
        }
        (Value::Tuple(parts), Type::Tuple(types)) if types.fields().is_none() => {
            TypeKind::Tuple(parts.iter().zip(types).map(|(part, ty)| type_exp(part, ty, span)).collect())
        }
        (Value::Tuple(parts), _) => {
            let Type::Tuple(types) = ty else { panic!("repl: a tuple has a tuple's type") };
            let names = types.fields().unwrap_or_default().iter().map(|text| Name { text: text.clone(), span });
            TypeKind::Record(names.zip(parts.iter().zip(types).map(|(part, ty)| type_exp(part, ty, span))).collect())
        }
    };
    // A record of one field is that field in the IR, but not where it is written.
    match ty {
        Type::Tuple(types) if types.len() == 1 => {
            let name = Name { text: types.label(0), span };
            TypeExp { kind: TypeKind::Record(vec![(name, type_exp(value, &types[0], span))]), span }
        }
        _ => TypeExp { kind, span },
    }
}
