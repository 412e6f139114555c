//! The names that a definition takes from outside: what it calls, passes on or reads but does not bind itself.
//!
//! Parameters, the sizes that their types name, `let`, loops and indices bind names for the expressions that they
//! stand over; a name that is bound there means the binding, whatever else has that name.

use super::ast::*;
use crate::diagnostic::Span;
use std::sync::Arc;

/// Calls `f` at each free name of a definition's body, with its place. What it leaves in the name is kept.
pub fn for_each_free(definition: &mut Definition, f: &mut dyn FnMut(&mut String, Span)) {
    let mut scope = Scope { bound: vec![], found: f };
    for param in &definition.params {
        scope.bound.push(param.name.text.clone());
        sizes(&param.ty, &mut scope.bound);
    }
    scope.walk(&mut definition.body);
}

/// The names in the axes of a parameter's type.
fn sizes(ty: &TypeExp, out: &mut Vec<String>) {
    match &ty.kind {
        TypeKind::Array(axes, element) => {
            for axis in axes {
                if let ExpKind::Name(name) = &axis.kind {
                    out.push(name.clone());
                }
            }
            sizes(element, out)
        }
        TypeKind::Tuple(parts) => parts.iter().for_each(|part| sizes(part, out)),
        TypeKind::Structured(_, _, array) => sizes(array, out),
        TypeKind::Record(fields) => fields.iter().for_each(|(_, ty)| sizes(ty, out)),
        TypeKind::Function(params, result) => {
            params.iter().for_each(|part| sizes(part, out));
            sizes(result, out)
        }
        TypeKind::Scalar(_) | TypeKind::Name(_) | TypeKind::Error => {}
    }
}

struct Scope<'f> {
    bound: Vec<String>,
    found: &'f mut dyn FnMut(&mut String, Span),
}

impl Scope<'_> {
    fn walk(&mut self, exp: &mut Exp) {
        let outside = self.bound.len();
        match &mut exp.kind {
            ExpKind::Name(name) => {
                if !self.bound.contains(name) {
                    (self.found)(name, exp.span)
                }
            }
            ExpKind::Int(_) | ExpKind::Float(_) | ExpKind::Bool(_) | ExpKind::Open(_) | ExpKind::Operator(_) | ExpKind::Error => {}
            ExpKind::Lambda(lambda) => {
                let lambda = Arc::make_mut(lambda);
                lambda.params.iter().for_each(|pattern| self.bind(pattern));
                self.walk(&mut lambda.body)
            }
            ExpKind::Unary(_, a) | ExpKind::Ascribe(a, _) | ExpKind::Field(a, _) => self.walk(a),
            ExpKind::Record(fields) => fields.iter_mut().for_each(|(_, e)| self.walk(e)),
            ExpKind::Binary(_, _, a, b) => {
                self.walk(a);
                self.walk(b)
            }
            ExpKind::Call(head, args) => {
                self.walk(head);
                // What `wrt` names are parameters of the function that is differentiated.
                args.iter_mut().filter(|a| a.name.is_none()).for_each(|a| self.walk(&mut a.value))
            }
            ExpKind::Index(array, keys) => {
                self.walk(array);
                self.subscripts(keys)
            }
            ExpKind::Bracket(items) | ExpKind::Tuple(items) => items.iter_mut().for_each(|e| self.walk(e)),
            ExpKind::Singleton(keys, value) => {
                keys.iter_mut().for_each(|e| self.walk(e));
                self.walk(value)
            }
            ExpKind::Let(pattern, _, value, body) => {
                self.walk(value);
                self.bind(pattern);
                self.walk(body)
            }
            ExpKind::Binder(_, indices, body) => {
                indices.iter_mut().for_each(|index| self.index(index));
                self.walk(body)
            }
            ExpKind::If(condition, yes, no) => {
                self.walk(condition);
                self.walk(yes);
                no.iter_mut().for_each(|e| self.walk(e))
            }
            ExpKind::History(pattern, init, index, body) => {
                self.walk(init);
                self.index(index);
                self.bind(pattern);
                self.walk(body)
            }
            ExpKind::Loop(pattern, init, trip, body) => {
                self.walk(init);
                if let Trip::For(index) = &mut **trip {
                    self.index(index)
                }
                self.bind(pattern);
                if let Trip::While(condition) = &mut **trip {
                    self.walk(condition)
                }
                self.walk(body)
            }
            ExpKind::Annotated(annotations, e) => {
                annotations.iter_mut().flat_map(|a| &mut a.arguments).for_each(|a| self.walk(&mut a.value));
                self.walk(e)
            }
            ExpKind::With(array, keys, value) => {
                self.walk(array);
                self.subscripts(keys);
                self.walk(value)
            }
        }
        self.bound.truncate(outside);
    }

    fn subscripts(&mut self, keys: &mut [Subscript]) {
        for key in keys {
            match key {
                Subscript::At(e) => self.walk(e),
                Subscript::Slice(a, b) => {
                    self.walk(a);
                    self.walk(b)
                }
                Subscript::All(_) => {}
            }
        }
    }

    /// The range is read before the index is bound.
    fn index(&mut self, index: &mut IndexBinding) {
        if let Some((lo, hi)) = &mut index.range {
            self.walk(lo);
            self.walk(hi)
        }
        self.bound.push(index.name.text.clone());
    }

    fn bind(&mut self, pattern: &Pattern) {
        match pattern {
            Pattern::Name(name) => self.bound.push(name.text.clone()),
            Pattern::Tuple(parts, _) => parts.iter().for_each(|part| self.bind(part)),
            Pattern::Sum(part, _) => self.bind(part),
        }
    }
}
