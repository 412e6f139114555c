//! Names of types: `type Params = { w: [h, d]f64, b: [h]f64 }`.
//!
//! A name stands for the type it is declared as, word by word: the sizes in it are those of the place where the name is
//! used, so that a parameter `p: Params` binds `h` and `d` as `p: { w: [h, d]f64, b: [h]f64 }` does.

use super::messages::closest;
use super::{Checker, messages};
use crate::diagnostic::{Diagnostic, Span};
use crate::ir::{Scalar, Type};
use crate::syntax::ast::{ExpKind, TypeDefinition, TypeExp, TypeKind};

impl<'a> Checker<'a> {
    /// Reads the names of types and reports what is wrong with them by themselves.
    pub fn declare_types(&mut self) {
        for definition in &self.module.types {
            let name = definition.name.text.as_str();
            if scalar_names().any(|scalar| scalar == name) {
                self.report(Diagnostic::error(definition.name.span, format!("`{name}` is a type already")));
                continue;
            }
            match self.types.get(name) {
                None => {
                    self.types.insert(name, definition);
                }
                Some(first) => {
                    let first = first.name.span;
                    self.report(
                        Diagnostic::error(definition.name.span, format!("the type `{name}` is defined twice"))
                            .here("defined again here")
                            .label(first, "first defined here"),
                    );
                }
            }
        }
        for definition in &self.module.types {
            self.check_written(&definition.ty);
        }
        self.report_cycles();
    }

    /// Unknown names, fields that stand twice.
    fn check_written(&mut self, ty: &TypeExp) {
        match &ty.kind {
            TypeKind::Scalar(_) | TypeKind::Error => {}
            TypeKind::Name(name) => {
                if !self.types.contains_key(name.as_str()) {
                    let diagnostic = self.unknown_type(name, ty.span);
                    self.report(diagnostic);
                    self.broken_types.insert(name.clone());
                }
            }
            TypeKind::Tuple(parts) => parts.iter().for_each(|t| self.check_written(t)),
            TypeKind::Structured(_, _, array) => self.check_written(array),
            TypeKind::Function(..) => self.report_function_type(ty.span),
            TypeKind::Record(fields) => {
                self.distinct_fields(fields.iter().map(|(name, _)| name));
                fields.iter().for_each(|(_, t)| self.check_written(t));
            }
            TypeKind::Array(axes, element) => {
                for axis in axes {
                    if let ExpKind::Open(name) = &axis.kind {
                        self.open_size(name, axis.span);
                    }
                    if let ExpKind::Name(name) = &axis.kind {
                        if !name.starts_with(|c: char| c.is_lowercase() || c == '_') {
                            self.report(super::sizes::no_size_name(name, axis.span));
                        }
                    }
                }
                self.check_written(element)
            }
        }
    }

    /// Reports types that contain themselves; they have no meaning.
    fn report_cycles(&mut self) {
        let mut done: Vec<&str> = vec![];
        for definition in &self.module.types {
            let mut path = vec![];
            self.visit_type(definition, &mut path, &mut done);
        }
    }

    fn visit_type(&mut self, definition: &'a TypeDefinition, path: &mut Vec<&'a str>, done: &mut Vec<&'a str>) {
        let name = definition.name.text.as_str();
        if done.contains(&name) {
            return;
        }
        path.push(name);
        let mut used = vec![];
        type_names(&definition.ty, &mut used);
        for (inner, span) in used {
            if let Some(from) = path.iter().position(|n| *n == inner) {
                let text = match path[from..] {
                    [_] => format!("the type `{inner}` contains itself"),
                    _ => {
                        let chain: Vec<String> = path[from + 1..].iter().chain([&inner]).map(|n| format!("`{n}`")).collect();
                        format!("the type `{inner}` contains itself: it contains {}", chain.join(", which contains "))
                    }
                };
                self.broken_types.extend(path[from..].iter().map(|n| n.to_string()));
                self.report(Diagnostic::error(span, text).note("a value of it would have no end; keep a collection as an array: `[n]T`"));
            } else if let Some(next) = self.types.get(inner).copied() {
                self.visit_type(next, path, done);
            }
        }
        path.pop();
        done.push(name);
    }

    /// The definition that a name of a type stands for, if it has a meaning.
    pub fn declared(&self, name: &str) -> Option<&'a TypeDefinition> {
        self.types.get(name).copied().filter(|_| !self.broken_types.contains(name))
    }

    /// The type that a name stands for, its sizes in the variables in scope.
    pub fn named_type(&mut self, name: &str, span: Span) -> Option<Type> {
        if self.broken_types.contains(name) {
            return None;
        }
        let Some(definition) = self.declared(name) else {
            let diagnostic = self.unknown_type(name, span);
            self.report(diagnostic);
            return None;
        };
        self.inside_types.push((name.to_string(), span));
        let found = self.read_type(&definition.ty);
        self.inside_types.pop();
        found.map(|ty| match ty {
            Type::Tuple(parts) if parts.fields().is_some() => Type::Tuple(parts.with_name(name)),
            other => other,
        })
    }

    /// Whether a type is `i64`, by whatever name.
    pub fn is_integer_type(&self, ty: &TypeExp) -> bool {
        match &ty.kind {
            TypeKind::Scalar(s) => *s == Scalar::I64,
            TypeKind::Name(name) => self.declared(name).is_some_and(|d| self.is_integer_type(&d.ty)),
            TypeKind::Array(..)
            | TypeKind::Structured(..)
            | TypeKind::Tuple(_)
            | TypeKind::Record(_)
            | TypeKind::Function(..)
            | TypeKind::Error => false,
        }
    }

    fn unknown_type(&self, name: &str, span: Span) -> Diagnostic {
        let diagnostic = Diagnostic::error(span, format!("unknown type `{name}`"));
        let declared = self.module.types.iter().map(|t| t.name.text.as_str());
        // What other languages call them.
        let usual = match name.to_ascii_lowercase().as_str() {
            "float" | "double" | "real" | "number" | "float64" => Some("f64"),
            "float32" | "single" => Some("f32"),
            "int" | "integer" | "long" | "int64" | "usize" | "isize" | "u64" | "nat" => Some("i64"),
            "int32" | "u32" => Some("i32"),
            "boolean" => Some("bool"),
            _ => None,
        };
        match usual.map(String::from).or_else(|| closest(name, declared.chain(scalar_names()))) {
            Some(near) => diagnostic.note(format!("did you mean `{near}`?")),
            None => diagnostic.note(messages::TYPES),
        }
    }
}

fn scalar_names<'s>() -> impl Iterator<Item = &'s str> {
    Scalar::ALL.into_iter().map(|scalar| scalar.name())
}

/// The names of types in a type, with their places.
fn type_names<'t>(ty: &'t TypeExp, out: &mut Vec<(&'t str, Span)>) {
    match &ty.kind {
        TypeKind::Scalar(_) | TypeKind::Function(..) | TypeKind::Error => {}
        TypeKind::Name(name) => out.push((name, ty.span)),
        TypeKind::Tuple(parts) => parts.iter().for_each(|t| type_names(t, out)),
        TypeKind::Structured(_, _, array) => type_names(array, out),
        TypeKind::Record(fields) => fields.iter().for_each(|(_, t)| type_names(t, out)),
        TypeKind::Array(_, element) => type_names(element, out),
    }
}
