//! Annotations of loops: `#[stripmine(k)]`, `#[checkpoint(every = k)]`, `#[bound(n)]`.

use super::messages::{closest, count};
use super::{Checker, Typed};
use crate::diagnostic::Diagnostic;
use crate::ir::{Annotation, Size, Type};
use crate::syntax::ast::{self, ExpKind, Trip};

impl Checker<'_> {
    pub fn annotated(&mut self, written: &[ast::Annotation], exp: &ast::Exp, hint: Option<&Type>) -> Typed {
        let ExpKind::Loop(pattern, init, trip, body) = &exp.kind else {
            if exp.kind != ExpKind::Error {
                let place = written.iter().map(|a| a.span).reduce(crate::diagnostic::Span::to).unwrap_or(exp.span);
                self.report(
                    Diagnostic::error(place, "annotations are for loops")
                        .label(exp.span, "this is no `loop`")
                        .note("an annotation stands before `loop`: `#[checkpoint(every = 10)] loop x = e for i in 0..n do e`"),
                );
            }
            return self.infer(exp, hint);
        };
        let mut annotations: Vec<(Annotation, Size)> = vec![];
        for one in written {
            let Some((annotation, size)) = self.annotation(one, trip) else { continue };
            if annotations.iter().any(|(a, _)| *a == annotation) {
                self.report(Diagnostic::error(one.span, format!("`{}` stands twice before this loop", annotation.name())));
                continue;
            }
            annotations.push((annotation, size));
        }
        self.iteration(pattern, init, trip, body, annotations, hint)
    }

    fn annotation(&mut self, one: &ast::Annotation, trip: &Trip) -> Option<(Annotation, Size)> {
        let name = one.name.text.as_str();
        let Some(annotation) = Annotation::ALL.into_iter().find(|a| a.name() == name) else {
            let diagnostic = Diagnostic::error(one.name.span, format!("unknown annotation `{name}`"));
            self.report(match closest(name, Annotation::ALL.into_iter().map(|a| a.name())) {
                Some(near) => diagnostic.note(format!("did you mean `{near}`?")),
                None => diagnostic.note("there are `stripmine(k)`, `checkpoint(every = k)` and `bound(n)`"),
            });
            return None;
        };
        let key = annotation.argument();
        let example = match key {
            Some(key) => format!("write `#[{name}({key} = 10)]`"),
            None => format!("write `#[{name}(10)]`"),
        };
        let [argument] = one.arguments.as_slice() else {
            let text = format!("`{name}` takes one number, but {} given", given(one.arguments.len()));
            self.report(Diagnostic::error(one.span, text).note(example));
            return None;
        };
        if argument.name.as_ref().map(|n| n.text.as_str()) != key {
            let place = argument.name.as_ref().map_or(argument.value.span, |n| n.span);
            let text = match (&argument.name, key) {
                (Some(other), _) => format!("`{name}` has no argument `{}`", other.text),
                (None, _) => format!("the argument of `{name}` has a name"),
            };
            self.report(Diagnostic::error(place, text).note(example));
            return None;
        }
        if annotation == Annotation::Bound && matches!(trip, Trip::For(_)) {
            let text = "`bound` is for `while` loops";
            self.report(Diagnostic::error(one.span, text).note("a `for` loop runs as often as its range says"));
            return None;
        }
        let number = self.integer(&argument.value, "the argument of an annotation")?;
        let size = self.size_of(name, &number);
        if let Some(constant) = self.expand(&size).as_constant().filter(|c| *c < 1) {
            let text = format!("`{name}` takes a number of 1 or more, not {constant}");
            self.report(Diagnostic::error(argument.value.span, text));
            return None;
        }
        Some((annotation, size))
    }
}

fn given(n: usize) -> String {
    match n {
        0 => "none is".to_string(),
        n => format!("{} are", count(n, "argument")),
    }
}
