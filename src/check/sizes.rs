//! Sizes: types from text, the sizes that parameters bind, and the comparison of sizes.
//!
//! A lower-case name that stands alone as an axis of a parameter binds a size, unless an `i64` parameter has that
//! name; so does one that stands alone nowhere, but is the only unknown of an axis such as `n + 1`. Sizes are equal if their normal forms are, where a variable that is bound to a size (`let m = n - 1`) may be
//! replaced by it.

use super::{Checker, Typed, messages};
use crate::diagnostic::{Diagnostic, Span};
use crate::ir::build::exp_size;
use crate::ir::{Exp, FunctionId, Size, Type, Var};
use crate::syntax::ast::{self, BinaryOp, ExpKind, TypeExp, TypeKind};

use super::scope::Binding;
use crate::types::Parts;

/// A definition's sizes and parameters as variables.
pub struct Header {
    pub sizes: Vec<Var>,
    /// `None` for parameters that are functions.
    pub params: Vec<Option<Var>>,
    /// A parameter has no type, which is reported.
    pub unread: bool,
}

impl<'a> Checker<'a> {
    /// Reads a definition's parameters and brings their sizes and `i64` parameters into scope, for the types that
    /// mention them.
    pub fn parameters(&mut self, definition: &'a ast::Definition) -> Header {
        let mut header = Header { sizes: vec![], params: vec![], unread: false };
        for (k, param) in definition.params.iter().enumerate() {
            if let Some(first) = definition.params[..k].iter().find(|p| p.name.text == param.name.text) {
                self.report(
                    Diagnostic::error(param.name.span, format!("two parameters are named `{}`", param.name.text))
                        .here("the second")
                        .label(first.name.span, "the first"),
                );
                header.unread = true;
            }
            let is_value = !matches!(param.ty.kind, TypeKind::Function(..));
            header.params.push(is_value.then(|| self.program.vars.fresh(param.name.text.clone(), Type::I64)));
        }
        for (param, var) in definition.params.iter().zip(&header.params) {
            if let (true, Some(var)) = (self.is_integer_type(&param.ty), var) {
                self.bind_name(&param.name.text, Binding::Var(*var));
            }
        }
        for within in [false, true] {
            for param in &definition.params {
                self.bind_sizes(&param.ty, within, definition, &mut header.sizes);
            }
        }
        for (param, var) in definition.params.iter().zip(&header.params) {
            let Some(var) = var else { continue };
            match self.read_type(&param.ty) {
                Some(ty) => {
                    if let (Some(word), false) = (param.fixed, matches!(ty, Type::Scalar(_))) {
                        let text = format!("`{}` is `static`, but has type `{}`", param.name.text, self.describe(&ty));
                        let note = "code is made for the value of a `static` parameter, which is one number or truth value";
                        self.report(Diagnostic::error(word, text).note(note));
                    }
                    self.program.vars.set_ty(*var, ty)
                }
                None => header.unread = true,
            }
        }
        header
    }

    /// Binds the names that stand alone as axes, or `within` axes that are known but for them.
    fn bind_sizes(&mut self, ty: &'a TypeExp, within: bool, definition: &ast::Definition, sizes: &mut Vec<Var>) {
        match &ty.kind {
            TypeKind::Scalar(_) | TypeKind::Error => {}
            TypeKind::Name(name) => {
                if let Some(declared) = self.declared(name) {
                    self.inside_types.push((name.clone(), ty.span));
                    self.bind_sizes(&declared.ty, within, definition, sizes);
                    self.inside_types.pop();
                }
            }
            TypeKind::Tuple(parts) => parts.iter().for_each(|t| self.bind_sizes(t, within, definition, sizes)),
            TypeKind::Structured(_, _, array) => self.bind_sizes(array, within, definition, sizes),
            TypeKind::Record(fields) => fields.iter().for_each(|(_, t)| self.bind_sizes(t, within, definition, sizes)),
            TypeKind::Function(params, result) => {
                params.iter().chain([&**result]).for_each(|t| self.bind_sizes(t, within, definition, sizes))
            }
            TypeKind::Array(axes, element) => {
                for axis in axes {
                    let name = match (&axis.kind, within) {
                        (ExpKind::Name(name), false) => name.as_str(),
                        (ExpKind::Name(_), true) | (_, false) => continue,
                        (_, true) => match self.unknown_of(axis) {
                            Some(name) => name,
                            None => continue,
                        },
                    };
                    if self.lookup(name).is_some() {
                        continue;
                    }
                    if let Some(param) = definition.params.iter().find(|p| p.name.text == name) {
                        let diagnostic =
                            Diagnostic::error(axis.span, format!("`{name}` is a parameter that is no `i64`, so it is no size"))
                                .here("used as a size here")
                                .label(param.name.span, "the parameter")
                                .note("give the size another name, or the parameter the type `i64`");
                        let diagnostic = self.inside(diagnostic);
                        self.report(diagnostic);
                        self.bind_name(name, Binding::Poison);
                    } else if !name.starts_with(|c: char| c.is_lowercase() || c == '_') {
                        // In a type with a name it is reported where that is declared.
                        if self.inside_types.is_empty() {
                            self.report(no_size_name(name, axis.span));
                        }
                        self.bind_name(name, Binding::Poison);
                    } else {
                        let var = self.program.vars.fresh(name, Type::I64);
                        sizes.push(var);
                        self.bind_name(name, Binding::Var(var));
                    }
                }
                self.bind_sizes(element, within, definition, sizes)
            }
        }
    }

    /// The name of which an axis is a sum with what is known, if it is the only one that is not.
    fn unknown_of<'e>(&self, axis: &'e ast::Exp) -> Option<&'e str> {
        let mut names = vec![];
        messages::names(axis, &mut names);
        names.retain(|(name, _)| self.lookup(name).is_none() && !self.is_function_name(name));
        let (only, _) = *names.first()?;
        if names.iter().any(|(name, _)| *name != only) {
            return None;
        }
        // `n * (n + 1) div 2`, the places of a triangle, of which every `n` is told by its size.
        if is_triangle(axis, only) {
            return Some(only);
        }
        // `n + 1` and `k + n - 1`, but not `2 * n`, of which not every size has a half, nor `1 - n`.
        fn summand<'e>(exp: &'e ast::Exp, only: &str) -> Option<&'e str> {
            match &exp.kind {
                ExpKind::Name(name) if name == only => Some(name),
                ExpKind::Binary(BinaryOp::Add, _, a, b) => summand(a, only).or_else(|| summand(b, only)),
                ExpKind::Binary(BinaryOp::Sub, _, a, _) => summand(a, only),
                _ => None,
            }
        }
        summand(axis, only)
    }

    /// Brings the sizes and parameters of a definition into scope.
    pub fn enter_header(&mut self, definition: &ast::Definition, id: FunctionId) {
        let f = self.program.function(id).clone();
        for var in &f.sizes {
            self.bind_name(&self.program.vars.name(*var).to_string(), Binding::Var(*var));
        }
        let broken = self.broken.contains(&id);
        for (param, var) in definition.params.iter().zip(&f.params) {
            // Where one parameter could not be read the types of the others still hold, if they were read.
            let unread = broken && *self.program.vars.ty(*var) == Type::I64 && !self.is_integer_type(&param.ty);
            self.bind_name(&param.name.text, if unread { Binding::Poison } else { Binding::Var(*var) });
        }
    }

    /// The type that is written, its sizes in the variables in scope.
    pub fn read_type(&mut self, ty: &TypeExp) -> Option<Type> {
        match &ty.kind {
            TypeKind::Scalar(s) => Some(Type::Scalar(*s)),
            TypeKind::Tuple(parts) => {
                let parts: Vec<Option<Type>> = parts.iter().map(|t| self.read_type(t)).collect();
                parts.into_iter().collect::<Option<_>>().map(Type::Tuple)
            }
            TypeKind::Array(axes, element) => {
                let sizes: Vec<Option<Size>> = axes.iter().map(|axis| self.read_size(axis)).collect();
                let element = self.read_type(element)?;
                let sizes: Vec<Size> = sizes.into_iter().collect::<Option<_>>()?;
                Some(sizes.iter().rev().fold(element, |ty, size| ty.with_axis(size)))
            }
            TypeKind::Structured(word, widths, array) => self.structured_type(word, widths, array),
            TypeKind::Record(fields) => {
                // In a type with a name it is reported where that is declared.
                let distinct = !self.inside_types.is_empty() || self.distinct_fields(fields.iter().map(|(name, _)| name));
                let types: Vec<Option<Type>> = fields.iter().map(|(_, t)| self.read_type(t)).collect();
                let types: Vec<Type> = types.into_iter().collect::<Option<_>>()?;
                let names = fields.iter().map(|(name, _)| name.text.clone()).collect();
                distinct.then(|| Type::Tuple(Parts::record(names, types)))
            }
            TypeKind::Function(..) => {
                self.report_function_type(ty.span);
                None
            }
            TypeKind::Name(name) if self.type_variables.contains_key(name) => self.type_variables.get(name).cloned(),
            TypeKind::Name(name) => self.named_type(name, ty.span),
            TypeKind::Error => None,
        }
    }

    pub(super) fn read_size(&mut self, axis: &ast::Exp) -> Option<Size> {
        if let ExpKind::Open(name) = &axis.kind {
            return self.open_size(name, axis.span);
        }
        let mut names = vec![];
        messages::names(axis, &mut names);
        names.retain(|(name, _)| self.lookup(name).is_none() && !self.is_function_name(name));
        if !names.is_empty() {
            let multiple = matches!(axis.kind, ExpKind::Binary(BinaryOp::Mul, ..)) && names.len() == 1;
            for (name, span) in names {
                let around = |d: &&ast::Definition| d.span.source == span.source && d.span.start <= span.start && span.end <= d.span.end;
                let definition = self.module.definitions.iter().find(around);
                let param = definition.and_then(|d| d.params.iter().find(|p| p.name.text == *name));
                let diagnostic = match param {
                    Some(param) => Diagnostic::error(span, format!("`{name}` is a parameter that is no `i64`, so it is no size"))
                        .here("used as a size here")
                        .label(param.name.span, "the parameter")
                        .note("give the parameter the type `i64`; where an `i32` is needed, `i32(n)` is one"),
                    None if multiple => Diagnostic::error(span, format!("unknown size `{name}`"))
                        .note("not every size is such a multiple; name the axis (`x: [m]f64`) and compute with `m div 2`"),
                    None => Diagnostic::error(span, format!("unknown size `{name}`"))
                        .note("a size is bound by an axis of a parameter (`x: [n]f64`, or `x: [n + 1]f64`), or is an `i64` in scope"),
                };
                let diagnostic = self.inside(diagnostic);
                self.report(diagnostic);
            }
            return None;
        }
        // Definitions are no sizes, and may not have been read yet.
        let mut called = vec![];
        messages::names(axis, &mut called);
        if called.iter().any(|(name, _)| self.lookup(name).is_none() && self.functions.contains_key(name)) {
            self.report_no_size(axis);
            return None;
        }
        let Typed { exp, ty } = self.infer(axis, Some(&Type::I64));
        let ty = ty?;
        if ty != Type::I64 {
            let found = self.describe(&ty);
            self.report(Diagnostic::error(axis.span, "a size is an integer").here(format!("this has type `{found}`")));
            return None;
        }
        let size = exp_size(&exp);
        if size.is_none() {
            self.report_no_size(axis);
        }
        size
    }

    pub fn report_function_type(&mut self, span: Span) {
        self.report(
            Diagnostic::error(span, "a function stands here, where a value is wanted")
                .note("functions are parameters of definitions (`f: f64 -> f64`); they are no results, and no parts of tuples or arrays"),
        );
    }

    /// Says where the name of a type stands, where the complaint is about what it stands for.
    fn inside(&self, mut diagnostic: Diagnostic) -> Diagnostic {
        if let Some((name, used)) = self.inside_types.first() {
            let span = std::mem::replace(&mut diagnostic.labels[0].span, *used);
            diagnostic = diagnostic.label(span, format!("in the type `{name}`"));
        }
        diagnostic
    }

    fn report_no_size(&mut self, axis: &ast::Exp) {
        let note =
            "sizes are made of integer variables and literals by `+ - * div mod`, `min` and `max`; bind anything else with `let` first";
        self.report(Diagnostic::error(axis.span, "this is no size").note(note));
    }

    /// The type of a definition's body as its result: in its sizes and `i64` parameters alone.
    pub fn outward(&mut self, ty: &Type, id: FunctionId, definition: &ast::Definition) -> Option<Type> {
        let f = self.program.function(id);
        let known: Vec<Var> = f.sizes.iter().chain(&f.params).copied().collect();
        let unknown = |ty: &Type| {
            let mut vars = vec![];
            ty.map_sizes(&mut |s| {
                s.variables(&mut vars);
                s.clone()
            });
            vars.into_iter().find(|v| !known.contains(v))
        };
        if unknown(ty).is_none() {
            return Some(ty.clone());
        }
        let expanded = ty.map_sizes(&mut |s| self.expand(s));
        match unknown(&expanded) {
            None => Some(expanded),
            Some(var) => {
                let text = format!("the size `{}` is known only inside `{}`", self.program.vars.name(var), definition.name.text);
                let found = self.describe(ty);
                self.report(
                    Diagnostic::error(definition.body.span, text)
                        .here(format!("this has type `{found}`"))
                        .note(super::scope::open_size_note(self.program.vars.name(var))),
                );
                None
            }
        }
    }

    /// The size with variables that are bound to sizes replaced by these.
    pub fn expand(&self, size: &Size) -> Size {
        size.substitute(&|v| self.defined_sizes.get(&v).cloned())
    }

    /// `let var = exp`: remembers the size that an integer variable is.
    pub fn define_size(&mut self, var: Var, exp: &Exp) {
        if let Some(size) = exp_size(exp) {
            let size = self.expand(&size);
            self.defined_sizes.insert(var, size);
        }
    }

    pub fn same_size(&self, a: &Size, b: &Size) -> bool {
        if a.axis() == b.axis() {
            return true;
        }
        self.expand(a).axis() == self.expand(b).axis()
    }

    /// Equal types, sizes compared as `same_size` does.
    pub fn same_type(&self, a: &Type, b: &Type) -> bool {
        match (a, b) {
            (Type::Scalar(a), Type::Scalar(b)) => a == b,
            (Type::Array(sa, a), Type::Array(sb, b)) => {
                a == b && sa.len() == sb.len() && sa.iter().zip(sb).all(|(x, y)| self.same_size(x, y))
            }
            (Type::Tuple(a), Type::Tuple(b)) => {
                a.len() == b.len()
                    && a.fields() == b.fields()
                    && self.same_structure(a.structure(), b.structure())
                    && a.iter().zip(b).all(|(x, y)| self.same_type(x, y))
            }
            (Type::Scalar(_) | Type::Array(..) | Type::Tuple(_), _) => false,
        }
    }

    /// Whether the type found is the one wanted; if not, reports it with what `because` adds.
    pub fn require(&mut self, found: &Typed, want: &Type, span: Span, because: impl FnOnce(&Self, Diagnostic) -> Diagnostic) -> bool {
        let Some(ty) = &found.ty else { return true };
        if self.same_type(ty, want) {
            return true;
        }
        let (have, wanted) = self.describe_both(ty, want);
        let message = format!("this has type `{have}`, but `{wanted}` is wanted");
        let diagnostic = because(self, Diagnostic::error(span, message).here(format!("`{have}`")));
        let diagnostic = self.explain_difference(diagnostic, ty, want);
        self.report(diagnostic);
        false
    }
}

/// Whether an axis is the triangle of a size that mentions the name: `n * (n + 1) div 2`, in whatever words.
fn is_triangle<'e>(axis: &'e ast::Exp, of: &'e str) -> bool {
    // Variables of their own for the names, that of the name first.
    fn size<'e>(exp: &'e ast::Exp, names: &mut Vec<&'e str>) -> Option<Size> {
        Some(match &exp.kind {
            ExpKind::Name(name) => {
                let known = names.iter().position(|n| n == name);
                let k = known.unwrap_or_else(|| {
                    names.push(name);
                    names.len() - 1
                });
                Size::var(Var(k as u32))
            }
            ExpKind::Int(c) => Size::constant(i64::try_from(*c).ok()?),
            ExpKind::Binary(op, _, a, b) => {
                let (a, b) = (size(a, names)?, size(b, names)?);
                match op {
                    BinaryOp::Add => a.add(&b),
                    BinaryOp::Sub => a.sub(&b),
                    BinaryOp::Mul => a.mul(&b),
                    BinaryOp::IDiv => a.div(&b),
                    _ => return None,
                }
            }
            _ => return None,
        })
    }
    let base = size(axis, &mut vec![of]).and_then(|size| size.base());
    base.is_some_and(|base| base.mentions(Var(0)))
}

/// An axis of a name that is none of a size.
pub fn no_size_name(name: &str, span: Span) -> Diagnostic {
    Diagnostic::error(span, format!("`{name}` cannot name a size"))
        .note(format!("names of sizes begin with a lower-case letter, as `{}`", name.to_lowercase()))
}
