//! Records: `type Params = { w: [h, d]f64, b: [h]f64 }`, `{ w: e, b: e }`, `p.w`.

use super::Parser;
use crate::diagnostic::{Diagnostic, Span};
use crate::syntax::ast::*;
use crate::syntax::lexer::Token;

impl Parser<'_> {
    /// `type Name = T`
    pub(super) fn type_definition(&mut self) -> Option<TypeDefinition> {
        let start = self.bump();
        self.open.clear();
        let name = self.name("the name of the type");
        if self.at(Token::ParenOpen) {
            let diagnostic = Diagnostic::error(self.span(), format!("expected `=`, found {}", self.found()));
            self.report(diagnostic.note("a type takes no arguments; the sizes in it are bound where a parameter has the type"));
            self.skip_to_definition();
            return None;
        }
        self.equals(&format!("the meaning of `{}`", name.text));
        let ty = self.type_exp();
        let span = start.to(self.previous());
        if !matches!(self.token(), Token::End | Token::Def | Token::Type | Token::Hash) {
            let message = match self.token() {
                Token::Semicolon => "unexpected `;` after a type".to_string(),
                _ => format!("expected `def` or `type`, found {}", self.found()),
            };
            self.report(Diagnostic::error(self.span(), message).note("a definition ends where the next `def` or `type` begins"));
            self.skip_to_definition();
        }
        Some(TypeDefinition { name, ty, span })
    }

    /// `{ w: [h, d]f64, b: [h]f64 }`
    pub(super) fn record_type(&mut self) -> TypeKind {
        let start = self.span();
        if self.peek(1) == Token::BraceClose {
            self.open(Token::BraceClose);
            self.close(start, Token::BraceClose, "`}`");
            self.complain(Diagnostic::error(start.to(self.previous()), "a record has at least one field").note("as in `{ x: f64 }`"));
            return TypeKind::Error;
        }
        if self.peek(1) != Token::Name || self.peek(2) == Token::Arrow {
            self.unsupported(start, "dictionaries are");
            self.skip_braces();
            return TypeKind::Error;
        }
        let opened = self.open(Token::BraceClose);
        let (fields, _) = self.list(opened, Token::BraceClose, "`,` or `}`", |parser| {
            let name = parser.field_name();
            (name, parser.type_exp())
        });
        TypeKind::Record(fields)
    }

    /// Whether a brace opens a record: `{name:`.
    pub(super) fn begins_record(&self) -> bool {
        let named = self.peek(1) == Token::Name || self.tokens.get(self.at + 1).is_some_and(|(token, _)| token.is_keyword());
        named && self.peek(2) == Token::Colon
    }

    /// `{ w: e, b: e }`
    pub(super) fn record(&mut self) -> Exp {
        let start = self.span();
        let opened = self.open(Token::BraceClose);
        let (fields, _) = self.list(opened, Token::BraceClose, "`,` or `}`", |parser| {
            let name = parser.field_name();
            (name, parser.expression())
        });
        Exp { kind: ExpKind::Record(fields), span: start.to(self.previous()) }
    }

    /// `name:`
    fn field_name(&mut self) -> Name {
        let name = self.name("the name of a field");
        match self.token() {
            Token::Colon => {
                self.bump();
            }
            Token::Equals | Token::Arrow | Token::FatArrow | Token::ColonEquals => {
                let message = format!("`:` stands between a field and what it holds, not {}", self.found());
                self.complain(Diagnostic::error(self.span(), message).note(format!("as in `{{{}: e}}`", name.text)));
                self.bump();
            }
            _ => {
                let message = format!("expected `:` behind the field `{}`, found {}", name.text, self.found());
                self.report(Diagnostic::error(self.span(), message).note("a record is `{a: e, b: e}`: each field with its value"));
            }
        }
        name
    }

    /// `.name` behind an expression; the parts of a tuple have no names.
    pub(super) fn field(&mut self, of: Exp) -> Exp {
        let dot = self.bump();
        let span = dot.to(self.span());
        let start = of.span;
        if matches!(self.token(), Token::Int | Token::Float) {
            let diagnostic = Diagnostic::error(span, "the parts of a tuple have no numbers");
            self.complain(diagnostic.note("take it apart with `let (a, b) = e;`, or make it a record: `{a: e, b: e}` has fields"));
            self.bump();
            return self.error_from(start);
        }
        let word = self.slice(self.span());
        if matches!(word, "sum" | "prod" | "max" | "min" | "argmax" | "argmin" | "any" | "all") && !self.at(Token::Name) {
            let diagnostic = Diagnostic::error(span, format!("`{word}` is no field"));
            self.complain(diagnostic.note(format!("`{word}` names the index it runs over: `{word} i. x[i]`")));
            self.bump();
            return Exp { kind: ExpKind::Error, span: start.to(self.previous()) };
        }
        let name = self.name("the name of a field");
        Exp { kind: ExpKind::Field(Box::new(of), name), span: start.to(self.previous()) }
    }

    /// `{}`
    pub(super) fn empty_dictionary(&mut self) -> Exp {
        let start = self.span();
        self.skip_braces();
        self.unsupported(start.to(self.previous()), "empty dictionaries are");
        self.error_from(start)
    }

    /// Whether a `.` here belongs to a field: it touches the name behind it.
    pub(super) fn begins_field(&self) -> bool {
        let next = self.peek(1);
        self.at(Token::Dot)
            && self.glued()
            && (matches!(next, Token::Name | Token::Int | Token::Float) || (next.is_keyword() && !self.in_range))
    }

    /// The dot in `0..n.x[i]`, where a binder's dot was meant and a field is read.
    pub(super) fn mistaken_field(&self, exp: &Exp) -> Option<Span> {
        match &exp.kind {
            ExpKind::Field(of, name) => {
                let dot = Span { start: name.span.start - 1, end: name.span.start, ..name.span };
                self.mistaken_field(of).or(Some(dot))
            }
            ExpKind::Index(of, _) | ExpKind::Call(of, _) => self.mistaken_field(of),
            ExpKind::Binary(_, _, a, b) => self.mistaken_field(a).or_else(|| self.mistaken_field(b)),
            _ => None,
        }
    }
}
