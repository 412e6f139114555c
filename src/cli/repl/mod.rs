//! `repl`: definitions and expressions one after another. Values keep their names; derivatives are part of the language.
//!
//! * `input`: what an input is, and whether it is all there
//! * `session`: what is known
//! * `child`: evaluation, which can be interrupted
//! * `commands`: what begins with `:`
//! * `editor`: lines from a terminal; `lines`: from elsewhere

mod child;
mod commands;
mod editor;
mod input;
mod lines;
mod session;

use super::execute::run_once;
use super::failure::Failure;
use super::options::{Repl, Target};
use super::output;
use super::source::read_text;
use editor::{Editor, Read};
use input::{Binding, Input};
use iverson::bind;
use iverson::ir::Type;
use iverson::syntax::ast::{Exp, ExpKind, Module, Pattern};
use iverson::syntax::parse;
use iverson::value::Value;
use iverson::value::named::Named;
use lines::Lines;
use session::{Checked, Known, Session};
use std::io::{IsTerminal, Write};
use std::path::Path;

/// The name of the last value.
const LAST: &str = "it";

pub struct Shell {
    session: Session,
    target: Target,
    threads: usize,
}

pub enum Next {
    Go,
    Quit,
}

pub fn repl(options: &Repl) -> Result<(), Failure> {
    let threads = options.threads.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), |n| n as usize);
    let mut shell = Shell { session: Session::new(), target: options.target, threads };
    for file in &options.files {
        shell.load(file)?;
    }
    child::watch_interrupts();
    if std::io::stdin().is_terminal() { shell.converse() } else { shell.read_all() }
}

impl Shell {
    /// With a person.
    fn converse(&mut self) -> Result<(), Failure> {
        output::print(|out| writeln!(out, "Iverson {}; :help says what can be asked, :quit leaves", env!("CARGO_PKG_VERSION")))?;
        let mut editor = Editor::new()?;
        loop {
            editor.know(self.session.names());
            match editor.read()? {
                Read::Text(text) => match self.take(&text) {
                    Ok(Next::Go) => {}
                    Ok(Next::Quit) => break,
                    Err(Failure::Closed) => return Err(Failure::Closed),
                    Err(failure) => {
                        failure.report();
                    }
                },
                Read::Cancelled => {}
                Read::End => break,
            }
        }
        Ok(())
    }

    /// From a pipe or a file: no prompts.
    fn read_all(&mut self) -> Result<(), Failure> {
        let mut failed = false;
        let mut lines = Lines::new()?;
        while let Some(text) = lines.input()? {
            match self.take(&text) {
                Ok(Next::Go) => {}
                Ok(Next::Quit) => break,
                Err(Failure::Closed) => return Err(Failure::Closed),
                Err(failure) => {
                    failed = true;
                    failure.report();
                }
            }
        }
        if failed { Err(Failure::Told) } else { Ok(()) }
    }

    /// One input.
    fn take(&mut self, text: &str) -> Result<Next, Failure> {
        // Words that other programs take; here they would be names.
        match text.trim() {
            word @ ("quit" | "exit" | "help" | "?") if !self.session.names().iter().any(|name| name == word) => {
                return self.command(if matches!(word, "help" | "?") { "help" } else { "quit" });
            }
            _ => {}
        }
        let source = self.session.source("input", text);
        match input::read(source, text) {
            Input::Nothing => {}
            Input::Command(command) => return self.command(&command),
            Input::Definitions(module) => self.define(module)?,
            Input::Bindings(bindings) => {
                for binding in bindings {
                    self.bind(binding)?;
                }
            }
            Input::Expression(exp) => {
                let known = self.value(LAST, exp)?;
                output::print(|out| writeln!(out, "{}", Named::labelled(known.value.clone(), &known.ty).pretty(0)))?;
                self.session.bind(known);
            }
            Input::Wrong(diagnostics) => return Err(self.session.wrong(&diagnostics)),
        }
        Ok(Next::Go)
    }

    fn define(&mut self, module: Module) -> Result<(), Failure> {
        let names = self.session.define(module)?;
        let signatures = self.signatures(&names)?;
        output::print(|out| signatures.iter().try_for_each(|line| writeln!(out, "{line}")))
    }

    /// Takes the definitions of a file.
    fn load(&mut self, path: &Path) -> Result<usize, Failure> {
        let text = read_text(path)?;
        let source = self.session.source(&path.display().to_string(), &text);
        let (module, diagnostics) = parse(source, &text);
        if !diagnostics.is_empty() {
            return Err(self.session.wrong(&diagnostics));
        }
        self.session.define(module).map(|names| names.len())
    }

    /// `let p = e`
    fn bind(&mut self, binding: Binding) -> Result<(), Failure> {
        let Binding { pattern, ty, mut value } = binding;
        if let Some(ty) = ty {
            let span = value.span;
            value = Exp { kind: ExpKind::Ascribe(Box::new(value), ty), span };
        }
        if let (Pattern::Name(name), Err(wrong)) = (&pattern, self.session.expression(value.clone())) {
            if !self.session.bind_function(name, &value) {
                return Err(wrong);
            }
            let text = self.session.functions().last().unwrap_or_default();
            return output::print(|out| writeln!(out, "{text}"));
        }
        let known = self.value("", value)?;
        let mut parts = vec![];
        take_apart(&pattern, known.value, known.ty, &mut parts)?;
        for known in &parts {
            let start = format!("{} = ", known.name);
            let value = Named::labelled(known.value.clone(), &known.ty).pretty(start.chars().count());
            output::print(|out| writeln!(out, "{start}{value}"))?;
        }
        parts.into_iter().for_each(|known| self.session.bind(known));
        Ok(())
    }

    /// The value of an expression, under a name.
    fn value(&self, name: &str, exp: Exp) -> Result<Known, Failure> {
        let Checked { program, id, arguments } = self.session.expression(exp)?;
        let ty = program.result_type(id).clone();
        bind::sizes(&program, id, &arguments)?;
        let sources = &self.session.sources;
        let (target, threads) = (self.target, self.threads);
        let value = child::evaluate(|| run_once(&program, id, &arguments, target, threads, sources))?;
        Ok(Known { name: name.to_string(), value, ty })
    }
}

/// The parts of a value under the names of a pattern.
fn take_apart(pattern: &Pattern, value: Value, ty: Type, out: &mut Vec<Known>) -> Result<(), Failure> {
    match (pattern, value, ty) {
        (Pattern::Name(name), value, ty) => {
            if out.iter().any(|known| known.name == name.text) {
                return Err(Failure::message(format!("`{}` is bound twice", name.text)));
            }
            out.push(Known { name: name.text.clone(), value, ty });
            Ok(())
        }
        (Pattern::Tuple(patterns, _), Value::Tuple(values), Type::Tuple(types)) if patterns.len() == values.len() => {
            patterns.iter().zip(values).zip(&types).try_for_each(|((pattern, value), ty)| take_apart(pattern, value, ty.clone(), out))
        }
        // The parser takes it in loops alone.
        (Pattern::Sum(pattern, _), value, ty) => take_apart(pattern, value, ty, out),
        (Pattern::Tuple(patterns, _), value, _) => {
            Err(Failure::message(format!("the pattern has {} parts, but the value is {}", patterns.len(), value.describe())))
        }
    }
}
