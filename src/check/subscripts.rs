//! Reads `A[i, a..b, :, j]` and singletons `{k -> v}`.
//!
//! A read with indices alone is the IR's own; a slice or a kept axis stands for a `for`:
//! `A[i, a..b]` is `for t in 0..b - a. A[i, a + t]`, `A[:, j]` is `for t. A[t, j]`.

use super::messages::{brief, count};
use super::operators::index_name;
use super::{Checker, Typed};
use crate::diagnostic::{Diagnostic, Span};
use crate::ir::build::{add, for_, index, singleton, size_exp};
use crate::ir::{Exp, Site, Size, Type, Var};
use crate::syntax::ast::{self, ExpKind, Subscript};

/// Stands in hints for a size that is not known yet. It is never in a program.
pub const UNKNOWN: Var = Var(u32::MAX);

/// One subscript, checked.
pub(super) enum Key {
    At(Exp),
    /// A part of the axis: where it starts and its size.
    Part(Size, Size),
}

impl<'a> Checker<'a> {
    pub fn subscripts(&mut self, array: &ast::Exp, keys: &[Subscript], span: Span) -> Typed {
        let found = self.infer(array, None);
        match (self.keys(array, &found, keys, span), found.ty) {
            (Some(keys), Some(ty)) => self.read(found.exp, ty, keys, span),
            _ => Typed::poison(),
        }
    }

    /// The subscripts of an array, checked against its axes.
    pub(super) fn keys(&mut self, array: &ast::Exp, found: &Typed, keys: &[Subscript], span: Span) -> Option<Vec<Key>> {
        let axes = match &found.ty {
            None => None,
            Some(ty) => match subscript_axes(ty, keys.len()) {
                Ok(axes) => Some(axes),
                Err(problem) => {
                    let have = self.describe(ty);
                    let text = match problem {
                        Axes::TooFew(0) => format!("`{}` is no array, so it has no index", brief(array)),
                        Axes::TooFew(n) => {
                            format!("`{}` has {}, but {} given", brief(array), count(n, "axis").replace("axiss", "axes"), given(keys.len()))
                        }
                        Axes::Differ => format!("the parts of `{}` have different sizes, so they have no common index", brief(array)),
                    };
                    self.report(Diagnostic::error(span, text).label(array.span, format!("this has type `{have}`")));
                    None
                }
            },
        };
        let axis = |k: usize| axes.as_ref().map(|axes| &axes[k]);
        let keys: Vec<Option<Key>> = keys.iter().enumerate().map(|(k, key)| self.subscript(key, axis(k), array)).collect();
        let keys: Option<Vec<Key>> = keys.into_iter().collect();
        keys.filter(|_| axes.is_some())
    }

    fn subscript(&mut self, key: &Subscript, axis: Option<&Size>, array: &ast::Exp) -> Option<Key> {
        match key {
            Subscript::At(e) => {
                let key = self.integer(e, "an index")?;
                if let Some(size) = axis {
                    let direct = matches!(&e.kind, ExpKind::Name(_));
                    self.note_use(&key, direct, size, e.span, array);
                }
                Some(Key::At(key))
            }
            Subscript::Slice(a, b) => {
                let (from, to) = (self.integer(a, "a bound of a slice"), self.integer(b, "a bound of a slice"));
                let from = self.size_of("from", &from?);
                let to = self.size_of("to", &to?);
                if let Some(size) = axis {
                    self.report_slice(&from, &to, size, a.span.to(b.span), array);
                }
                Some(Key::Part(from.clone(), to.sub(&from)))
            }
            Subscript::All(_) => axis.map(|size| Key::Part(Size::default(), size.clone())),
        }
    }

    /// A slice that certainly reaches out of its axis.
    fn report_slice(&mut self, from: &Size, to: &Size, size: &Size, span: Span, array: &ast::Exp) {
        let (from, to, size) = (self.expand(from), self.expand(to), self.expand(size).axis());
        let empty = to.sub(&from).as_constant().is_some_and(|c| c <= 0);
        if empty || self.conditions > 0 {
            return;
        }
        if from.as_constant().is_some_and(|c| c < 0) || to.sub(&size).as_constant().is_some_and(|d| d > 0) {
            let text = format!(
                "the slice `{}..{}` is out of range: `{}` has size `{}` here",
                self.describe_size(&from),
                self.describe_size(&to),
                brief(array),
                self.describe_size(&size)
            );
            self.report(Diagnostic::error(span, text).note("a slice `a..b` starts at `a` and ends before `b`"));
        }
    }

    fn read(&mut self, array: Exp, ty: Type, mut keys: Vec<Key>, span: Span) -> Typed {
        if ty.outer_axes().is_some_and(|outer| outer.len() < keys.len()) {
            return self.read_structured(array, &ty, keys, span);
        }
        let rest = ty.without_axes(keys.len()).unwrap_or(Type::tuple(vec![]));
        let parts: Vec<Size> = keys
            .iter()
            .filter_map(|k| match k {
                Key::Part(_, size) => Some(size.clone()),
                Key::At(_) => None,
            })
            .collect();
        let result = parts.iter().rev().fold(rest, |ty, size| ty.with_axis(size));
        if parts.is_empty() {
            let keys = keys.into_iter().map(|k| if let Key::At(e) = k { e } else { Exp::Tuple(vec![]) }).collect();
            return Typed::new(index(array, keys, Site::new(span)), result);
        }
        // Whole axes at the end are kept by leaving them out.
        let axes = leading_axes(&ty, keys.len()).unwrap_or_default();
        while matches!(keys.last(), Some(Key::Part(from, size)) if *from == Size::default() && Some(size) == axes.get(keys.len() - 1)) {
            keys.pop();
        }
        if keys.is_empty() {
            return Typed::new(array, result);
        }
        if keys.iter().all(|k| matches!(k, Key::At(_))) {
            let keys = keys.into_iter().map(|k| if let Key::At(e) = k { e } else { Exp::Tuple(vec![]) }).collect();
            return Typed::new(index(array, keys, Site::new(span)), result);
        }
        let array = self.shared("t", array, &ty);
        let mut loops = vec![];
        let mut exps = vec![];
        for key in keys {
            match key {
                Key::At(e) => exps.push(self.shared("k", e, &Type::I64)),
                Key::Part(from, size) => {
                    let var = self.program.vars.fresh(index_name(loops.len()), Type::I64);
                    exps.push(if from == Size::default() { Exp::Var(var) } else { add(size_exp(&from), var) });
                    loops.push((var, size));
                }
            }
        }
        let body = index(array, exps, Site::new(span));
        Typed::new(loops.into_iter().rev().fold(body, |body, (var, size)| for_(var, size, body)), result)
    }

    pub fn singleton(&mut self, keys: &[ast::Exp], value: &ast::Exp, span: Span, hint: Option<&Type>) -> Typed {
        if let Some(matrix) = hint.filter(|ty| ty.outer_axes().is_some_and(|outer| outer.len() < keys.len())) {
            return self.structured_singleton(keys, value, span, matrix);
        }
        let axes = hint.and_then(|ty| leading_axes(ty, keys.len()).ok());
        let axes = axes.filter(|axes| !axes.iter().any(|s| s.mentions(UNKNOWN)));
        let found: Vec<Option<Exp>> = keys.iter().map(|k| self.integer(k, "a key")).collect();
        let value_hint = hint.and_then(|ty| ty.without_axes(keys.len()));
        let value = self.infer(value, value_hint.as_ref());
        let found: Option<Vec<Exp>> = found.into_iter().collect();
        let (Some(found), Some(ty)) = (found, value.ty) else { return Typed::poison() };
        let Some(axes) = axes else {
            let element = self.describe(&ty);
            let mut shape = vec!["n"; keys.len()].join(", ");
            if let Type::Array(inner, s) = &ty {
                let inner: Vec<String> = inner.iter().map(|s| self.describe_size(s)).collect();
                shape = format!("[{shape}, {}]{}", inner.join(", "), s.name());
            } else {
                shape = format!("[{shape}]{element}");
            }
            self.report(
                Diagnostic::error(span, "the size of this singleton is not known")
                    .note(format!("give the type: `let d: {shape} = …` or `(… : {shape})`, or declare the definition's result")),
            );
            return Typed::poison();
        };
        for (key, size) in found.iter().zip(&axes) {
            if let Exp::Var(v) = key {
                self.note_key(*v, size, span);
            }
        }
        let result = axes.iter().rev().fold(ty, |ty, size| ty.with_axis(size));
        Typed::new(singleton(found.into_iter().zip(axes).collect(), value.exp, Site::new(span)), result)
    }
}

pub enum Axes {
    TooFew(usize),
    /// The parts of a tuple have different axes.
    Differ,
}

/// The first `count` axes that an array is read by: a matrix of which a part is stored has both of its axes.
fn subscript_axes(ty: &Type, count: usize) -> Result<Vec<Size>, Axes> {
    let Some(((structure, _), outer)) = ty.structured().zip(ty.outer_axes()) else { return leading_axes(ty, count) };
    let all: Vec<Size> = outer.iter().chain([&structure.size, &structure.size]).cloned().collect();
    if all.len() < count { Err(Axes::TooFew(all.len())) } else { Ok(all[..count].to_vec()) }
}

/// The first `count` axes of an array, or those that all arrays of a tuple have.
pub fn leading_axes(ty: &Type, count: usize) -> Result<Vec<Size>, Axes> {
    match ty {
        Type::Scalar(_) => Err(Axes::TooFew(0)),
        Type::Array(shape, _) if shape.len() < count => Err(Axes::TooFew(shape.len())),
        Type::Array(shape, _) => Ok(shape[..count].to_vec()),
        Type::Tuple(_) if ty.outer_axes().is_some_and(|outer| outer.len() < count) => {
            Err(Axes::TooFew(ty.outer_axes().map_or(0, <[Size]>::len)))
        }
        Type::Tuple(parts) => {
            let mut all: Option<Vec<Size>> = None;
            for part in parts {
                let axes = leading_axes(part, count)?;
                match &all {
                    None => all = Some(axes),
                    Some(first) if first.iter().zip(&axes).all(|(a, b)| a.axis() == b.axis()) => {}
                    Some(_) => return Err(Axes::Differ),
                }
            }
            all.ok_or(Axes::TooFew(0))
        }
    }
}

fn given(n: usize) -> String {
    if n == 1 { "1 index is".to_string() } else { format!("{n} indices are") }
}
