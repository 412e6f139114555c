//! What a session knows: definitions, types, and values under names. Whatever is wrong with an input, the session stays
//! as it was.

use crate::cli::failure::{Failure, draw};
use crate::cli::source::Source;
use iverson::check;
use iverson::diagnostic::{Diagnostic, Severity, Sources, Span};
use iverson::ir::{FunctionId, Program, Type};
use iverson::library;
use iverson::syntax::ast::{Definition, Exp, ExpKind, Module, Name, Param, Pattern, TypeExp, TypeKind};
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
    /// Functions under names, in the order in which they were bound.
    functions: Vec<Kept>,
}

/// `let f = |x| …`: it is put before the expressions that use it.
struct Kept {
    name: Name,
    value: Exp,
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
        Session { sources: library::sources("session", ""), module: Module::default(), values: vec![], functions: vec![] }
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
        names.iter().for_each(|name| self.hide(name));
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
        let body = self.functions.iter().rev().fold(body, |body, kept| match free(&body).contains(&kept.name.text) {
            false => body,
            true => {
                let kind = ExpKind::Let(Pattern::Name(kept.name.clone()), None, Box::new(kept.value.clone()), Box::new(body));
                Exp { kind, span }
            }
        });
        let used = free(&body);
        let mut definition = Definition { name, derivative_of: None, params: vec![], result: None, body, span };
        let used: Vec<&Known> = self.values.iter().filter(|known| used.contains(&known.name)).collect();
        let param = |known: &&Known| Param {
            name: Name { text: known.name.clone(), span },
            ty: type_exp(&known.value, &known.ty, span),
            fixed: None,
        };
        definition.params = used.iter().map(param).collect();
        let mut module = self.module.clone();
        module.definitions.push(definition);
        let (program, _) = self.check(&module, &[], Some(span.source))?;
        let id = program.find(INPUT).ok_or_else(|| Failure::message("this is a function, not a value"))?;
        Ok(Checked { program, id, arguments: used.iter().map(|known| known.value.clone()).collect() })
    }

    pub fn bind(&mut self, known: Known) {
        self.hide(&known.name);
        self.values.push(known);
    }

    /// Binds a name to a function, if that is what the expression is.
    pub fn bind_function(&mut self, name: &Name, value: &Exp) -> bool {
        let zero = Exp { kind: ExpKind::Int(0), span: value.span };
        let kind = ExpKind::Let(Pattern::Name(name.clone()), None, Box::new(value.clone()), Box::new(zero));
        if self.expression(Exp { kind, span: value.span }).is_err() {
            return false;
        }
        // It may use what had its name before.
        self.functions.push(Kept { name: Name { text: String::new(), span: name.span }, value: value.clone() });
        self.hide(&name.text);
        if let Some(kept) = self.functions.last_mut() {
            kept.name = name.clone();
        }
        true
    }

    /// Makes way for another meaning of a name. Functions that use it go on to mean what it meant.
    fn hide(&mut self, name: &str) {
        let hidden = (1..).map(|k| format!("{name}'{k}")).find(|other| !self.has(other)).unwrap_or_default();
        let used = self.has(name) && self.functions.iter().any(|kept| free(&kept.value).iter().any(|n| n == name));
        if !used {
            self.values.retain(|known| known.name != name);
            self.functions.retain(|kept| kept.name.text != name);
            return;
        }
        let renamed = self.values.iter_mut().map(|known| &mut known.name).chain(self.functions.iter_mut().map(|kept| &mut kept.name.text));
        renamed.filter(|n| *n == name).for_each(|n| n.clone_from(&hidden));
        for kept in &mut self.functions {
            for_each_free_in(&mut kept.value, &mut |n| {
                if n == name {
                    n.clone_from(&hidden);
                }
            });
        }
    }

    fn has(&self, name: &str) -> bool {
        self.values.iter().any(|known| known.name == name) || self.functions.iter().any(|kept| kept.name.text == name)
    }

    /// The functions that have names, as they were written.
    pub fn functions(&self) -> impl Iterator<Item = String> {
        let text = |span: Span| self.sources.text(span.source).get(span.start as usize..span.end as usize).unwrap_or_default();
        let shown = self.functions.iter().filter(|kept| !kept.name.text.contains('\''));
        shown.map(move |kept| format!("{} = {}", kept.name.text, text(kept.value.span)))
    }

    pub fn values(&self) -> impl Iterator<Item = &Known> {
        self.values.iter().filter(|known| !known.name.contains('\''))
    }

    pub fn definitions(&self) -> &[Definition] {
        &self.module.definitions
    }

    /// What could be completed.
    pub fn names(&self) -> Vec<String> {
        let own = self.module.definitions.iter().map(|d| d.name.text.clone());
        let types = self.module.types.iter().map(|t| t.name.text.clone());
        let functions = self.functions.iter().map(|kept| kept.name.text.clone());
        let values = self.values().map(|v| v.name.clone());
        own.chain(types).chain(functions).chain(values).chain(library::names().map(String::from)).collect()
    }
}

/// The names that an expression takes from outside.
fn free(exp: &Exp) -> Vec<String> {
    let mut names = vec![];
    for_each_free_in(&mut exp.clone(), &mut |name| names.push(name.clone()));
    names
}

fn for_each_free_in(exp: &mut Exp, f: &mut dyn FnMut(&mut String)) {
    let span = exp.span;
    let body = std::mem::replace(exp, Exp { kind: ExpKind::Error, span });
    let mut definition =
        Definition { name: Name { text: INPUT.into(), span }, derivative_of: None, params: vec![], result: None, body, span };
    for_each_free(&mut definition, &mut |name, _| f(name));
    *exp = definition.body;
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
