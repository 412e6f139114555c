//! Names in scope, and bindings that float.
//!
//! A size must be a polynomial in variables. Where a program has another number for a size (`for j in 0..is[k]. e`) the
//! number is bound to a variable first. Such a binding floats out to the nearest scope (the body of a binder, of a `let`
//! or of a definition, a branch, a guarded factor), so that what has the size may be used in all of that scope:
//! `let z = for j in 0..is[k]. e; sum j. z[j]` becomes `let m = is[k]; let z = for j in 0..m. e; sum j in 0..m. z[j]`.
//! A `let` whose variables stand in the type of its body floats likewise. What would leave a scope with a size that is
//! known only inside it is an error.

use super::functions::FunctionValue;
use super::{Checker, Typed};
use crate::diagnostic::{Diagnostic, Span};
use crate::ir::build::{exp_size, lets};
use crate::ir::{Exp, Size, Type, Var};

#[derive(Clone, Debug)]
pub enum Binding {
    Var(Var),
    /// An expression that is repeated where the name stands: a size, or what is used once.
    Value(Exp, Type),
    Function(FunctionValue),
    /// Bound to something erroneous.
    Poison,
    /// What a loop sums; marked so at this place.
    Summed(Span),
}

/// Where a scope is, for the message when a size would leave it.
pub enum Place<'a> {
    Body(&'a str),
    /// The binder's word and its index.
    Binder(&'static str, &'a str, Var),
    /// A function that a combinator applies to elements, whose place is the variable.
    Applied(&'static str, Var),
    Branch,
    Guarded,
}

impl Checker<'_> {
    pub fn bind_name(&mut self, name: &str, binding: Binding) {
        self.scope.push((name.to_string(), binding));
    }

    pub fn lookup(&self, name: &str) -> Option<Binding> {
        self.scope.iter().rev().find(|(n, _)| n == name).map(|(_, b)| b.clone())
    }

    /// Runs `f` in a scope of its own and makes the bindings there that float to it.
    pub fn scoped(&mut self, place: &Place<'_>, span: Span, f: impl FnOnce(&mut Self) -> Typed) -> Typed {
        let outer = std::mem::take(&mut self.floating);
        let names = self.scope.len();
        let mut found = f(self);
        self.scope.truncate(names);
        let inner = std::mem::replace(&mut self.floating, outer);
        let mut bound: Vec<Var> = inner.iter().flat_map(|(vars, _)| vars.iter().copied()).collect();
        if let Place::Binder(_, _, index) | Place::Applied(_, index) = place {
            bound.push(*index);
        }
        if let Some(ty) = &found.ty {
            if leaking(ty, &bound).is_some() {
                let expanded = ty.map_sizes(&mut |s| self.expand(s));
                if let Some(leak) = leaking(&expanded, &bound) {
                    let diagnostic = self.leak(place, span, &expanded, leak);
                    self.report(diagnostic);
                    return Typed::poison();
                }
                found.ty = Some(expanded);
            }
        }
        found.exp = lets(inner, found.exp);
        found
    }

    fn leak(&self, place: &Place<'_>, span: Span, ty: &Type, leak: Var) -> Diagnostic {
        let ty = self.describe(ty);
        let size = self.program.vars.name(leak);
        match place {
            Place::Binder(word, index, var) if *var == leak => {
                let what = if *word == "for" { "elements" } else { "terms" };
                Diagnostic::error(span, format!("the size of this `{word}`'s {what} depends on its index `{index}`"))
                    .here(format!("this has type `{ty}`"))
                    .note(format!("all {what} must have one size; mask with an Iverson bracket, as in `for j in 0..n. [j < {index}] * e`"))
            }
            Place::Binder(word, index, _) => {
                Diagnostic::error(span, format!("the size `{size}` is known only inside this `{word} {index}`"))
                    .here(format!("this has type `{ty}`"))
                    .note("a size that leaves a binder may depend only on what is bound outside it")
            }
            Place::Applied(word, _) => Diagnostic::error(span, "the size of what this function gives depends on what it is applied to")
                .here(format!("this gives `{ty}`"))
                .note(format!("`{word}` makes an array whose elements have one size, which may depend only on what is bound outside")),
            Place::Body(name) => Diagnostic::error(span, format!("the size `{size}` is known only inside `{name}`"))
                .here(format!("this has type `{ty}`"))
                .note(open_size_note(size)),
            Place::Branch | Place::Guarded => Diagnostic::error(span, format!("the size `{size}` is known only inside this branch"))
                .here(format!("this has type `{ty}`"))
                .note(format!("bind the size before the condition: `let {size} = …;`")),
        }
    }

    /// Binds an expression to a new variable in the nearest scope.
    pub fn float(&mut self, name: &str, exp: Exp, ty: Type) -> Var {
        let var = self.program.vars.fresh(name, ty);
        self.floating.push((vec![var], exp));
        var
    }

    /// The expression if it costs nothing to repeat, else a variable bound to it.
    pub fn shared(&mut self, name: &str, exp: Exp, ty: &Type) -> Exp {
        match exp {
            Exp::Var(_) | Exp::Lit(_) => exp,
            exp => Exp::Var(self.float(name, exp, ty.clone())),
        }
    }

    /// An integer expression as a size, bound to a variable where it is no polynomial in variables.
    pub fn size_of(&mut self, name: &str, exp: &Exp) -> Size {
        match exp_size(exp) {
            Some(size) => size,
            None => Size::var(self.float(name, exp.clone(), Type::I64)),
        }
    }

    /// Runs `f` where it is not certain that it is evaluated.
    pub fn conditional<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        self.conditions += 1;
        let result = f(self);
        self.conditions -= 1;
        result
    }
}

/// The first of the variables that stands in a size of the type.
pub fn leaking(ty: &Type, bound: &[Var]) -> Option<Var> {
    let mut found = None;
    ty.map_sizes(&mut |s| {
        let mut vars = vec![];
        s.variables(&mut vars);
        found = found.or_else(|| vars.into_iter().find(|v| bound.contains(v)));
        s.clone()
    });
    found
}

/// How to give a result a size that is known only inside its definition.
pub fn open_size_note(size: &str) -> String {
    // A bound of a range has a name of ours.
    let size = if size.ends_with("_to") || size.ends_with("_from") { "m" } else { size };
    format!(
        "a size that depends on data has a `?` in the type of the result: `-> [?{size}]f64`; any other is made of the parameters' sizes"
    )
}
