//! Types: `f64`, `[n, m]f64` (the same as `[n][m]f64`), `(f64, [n]f64)`; records are in `record`.

use super::{MAX_NESTING, Parser};
use crate::diagnostic::{Diagnostic, Span};
use crate::syntax::ast::*;
use crate::syntax::lexer::Token;
use crate::types::Scalar;

impl Parser<'_> {
    pub(super) fn type_exp(&mut self) -> TypeExp {
        let start = self.span();
        if self.nesting >= MAX_NESTING {
            self.too_deep(start);
            return TypeExp { kind: TypeKind::Error, span: start };
        }
        self.nesting += 1;
        let mut kind = self.type_kind(start);
        if self.at(Token::Arrow) {
            self.unsupported(self.span(), "function types are");
            self.bump();
            self.type_exp();
            kind = TypeKind::Error;
        }
        self.nesting -= 1;
        self.height += 1;
        TypeExp { kind, span: start.to(self.previous().max(start)) }
    }

    fn type_kind(&mut self, start: Span) -> TypeKind {
        match self.token() {
            Token::BracketOpen => {
                let opened = self.open(Token::BracketClose);
                let (sizes, _) = self.list(opened, Token::BracketClose, "`,` or `]`", Parser::expression);
                if sizes.is_empty() {
                    let diagnostic = Diagnostic::error(start.to(self.previous()), "an axis needs a size");
                    self.report(diagnostic.note("`[n]f64` is an array of `n` numbers, for any `n`"));
                    self.element(start);
                    return TypeKind::Error;
                }
                TypeKind::Array(sizes, Box::new(self.element(start)))
            }
            Token::ParenOpen => {
                let opened = self.open(Token::ParenClose);
                let (mut parts, comma) = self.list(opened, Token::ParenClose, "`,` or `)`", Parser::type_exp);
                match parts.len() {
                    0 => {
                        self.complain(Diagnostic::error(start.to(self.previous()), "a tuple has at least two parts"));
                        TypeKind::Error
                    }
                    1 if comma => {
                        self.complain(Diagnostic::error(start.to(self.previous()), "a tuple has at least two parts"));
                        TypeKind::Error
                    }
                    1 => parts.pop().map_or(TypeKind::Error, |part| part.kind),
                    _ => TypeKind::Tuple(parts),
                }
            }
            Token::Name => self.named_type(),
            Token::BraceOpen => self.record_type(),
            token => {
                let message = format!("expected a type, found {}", self.found());
                let diagnostic = Diagnostic::error(self.span(), message);
                self.report(
                    diagnostic.note("types are `f64`, `i64`, `bool`, arrays `[n, m]f64`, tuples `(f64, [n]f64)` and records `{a: f64}`"),
                );
                if token.is_keyword() && !matches!(token, Token::Def | Token::Type | Token::Let | Token::Then | Token::Else | Token::Do) {
                    self.bump();
                }
                TypeKind::Error
            }
        }
    }

    fn element(&mut self, start: Span) -> TypeExp {
        if matches!(self.token(), Token::Name | Token::BracketOpen | Token::ParenOpen | Token::BraceOpen) {
            return self.type_exp();
        }
        let axes = self.slice(start.to(self.previous())).to_string();
        let message = format!("expected the type of the elements, found {}", self.found());
        self.report(Diagnostic::error(self.span(), message).note(format!("the element type follows the axes: `{axes}f64`")));
        TypeExp { kind: TypeKind::Error, span: self.behind() }
    }

    fn named_type(&mut self) -> TypeKind {
        let span = self.bump();
        let text = self.slice(span);
        let scalar = [Scalar::F64, Scalar::I64, Scalar::Bool].into_iter().find(|scalar| scalar.name() == text);
        match (scalar, self.token()) {
            (Some(scalar), Token::BracketOpen) => {
                let diagnostic = Diagnostic::error(self.span(), "the axes stand before the element type");
                self.complain(diagnostic.note(format!("write `[n]{text}`")));
                let opened = self.open(Token::BracketClose);
                let (sizes, _) = self.list(opened, Token::BracketClose, "`,` or `]`", Parser::expression);
                TypeKind::Array(sizes, Box::new(TypeExp { kind: TypeKind::Scalar(scalar), span }))
            }
            (Some(scalar), _) => TypeKind::Scalar(scalar),
            (None, Token::BracketOpen | Token::Name) if !self.on_new_line() => {
                self.unsupported(span, &format!("the storage format `{text}` is"));
                self.type_exp();
                TypeKind::Error
            }
            (None, _) => TypeKind::Name(text.to_string()),
        }
    }
}
