//! Printed names: a variable keeps the name the user wrote and is numbered (`x_2`) only where a name that is visible
//! at its binding is the same.

use crate::ir::{Op, Program, Var};
use rustc_hash::FxHashMap;

/// Words that no variable can have for a name.
#[rustfmt::skip]
pub const RESERVED: &[&str] = &[
    "def", "let", "in", "for", "sum", "prod", "max", "min", "argmax", "argmin", "any", "all", "if", "then", "else",
    "history", "do", "and", "or", "not", "div", "mod", "true", "false", "f64", "f32", "i64", "i32", "bool",
    "infinity", "nan", "grad", "value_and_grad", "jacobian", "jacfwd", "jacrev", "hessian", "jvp", "vjp", "hvp",
    "wrt", "loop", "while", "with", "type", "map", "reduce", "scan", "scatter", "reduce_by_index",
];

pub struct Names {
    printed: FxHashMap<Var, String>,
    /// How many visible bindings have the name.
    taken: FxHashMap<String, usize>,
}

impl Names {
    /// Nothing bound yet; the names of the program's functions are taken.
    pub fn new(program: &Program) -> Names {
        let mut taken = FxHashMap::default();
        for f in &program.functions {
            *taken.entry(f.name.clone()).or_insert(0) += 1;
        }
        Names { printed: FxHashMap::default(), taken }
    }

    /// Makes a variable visible and gives its printed name.
    pub fn bind(&mut self, program: &Program, var: Var) -> String {
        let known = (var.0 as usize) < program.vars.count();
        let wanted = if known { lexable(program.vars.name(var)) } else { format!("{var:?}") };
        let name = if self.free(&wanted) {
            wanted
        } else {
            let stem = match wanted.rsplit_once('_') {
                Some((stem, number)) if !stem.is_empty() && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => stem,
                _ => &wanted,
            };
            (2..).map(|k| format!("{stem}_{k}")).find(|name| self.free(name)).expect("some number is free")
        };
        *self.taken.entry(name.clone()).or_insert(0) += 1;
        self.printed.insert(var, name.clone());
        name
    }

    /// Ends the scope of a variable.
    pub fn unbind(&mut self, var: Var) {
        if let Some(name) = self.printed.remove(&var) {
            if let Some(count) = self.taken.get_mut(&name) {
                *count -= 1;
            }
        }
    }

    /// The name of a visible variable. One that was never bound is bound here for good: it is free in what is printed.
    pub fn name(&mut self, program: &Program, var: Var) -> String {
        match self.printed.get(&var) {
            Some(name) => name.clone(),
            None => self.bind(program, var),
        }
    }

    fn free(&self, name: &str) -> bool {
        self.taken.get(name).is_none_or(|count| *count == 0)
            && !RESERVED.contains(&name)
            && Op::by_name(name).is_none()
            && Op::by_partial_name(name).is_none()
    }
}

/// The name with what the lexer would not take replaced.
fn lexable(name: &str) -> String {
    let clean: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    match clean.chars().next() {
        Some(c) if c.is_ascii_alphabetic() || c == '_' => clean,
        _ => format!("v{clean}"),
    }
}
