//! Types: `f64`, `[n, m]f64` (the same as `[n][m]f64`), `(f64, [n]f64)`, and of functions `f64 -> f64`,
//! `(f64, [n]f64) -> f64`; matrices in part stored `lower [n, n]f64`; records are in `record`.

use super::{MAX_NESTING, Parser};
use crate::diagnostic::{Diagnostic, Span};
use crate::syntax::ast::*;
use crate::syntax::lexer::Token;
use crate::types::{Scalar, structure};

impl Parser<'_> {
    pub(super) fn type_exp(&mut self) -> TypeExp {
        self.type_with(true)
    }

    /// The arrow of `[n]f64 -> f64` belongs to the whole type, not to that of the elements.
    fn type_with(&mut self, arrow: bool) -> TypeExp {
        let start = self.span();
        if self.nesting >= MAX_NESTING {
            self.too_deep(start);
            return TypeExp { kind: TypeKind::Error, span: start };
        }
        self.nesting += 1;
        let (mut kind, parameters) = self.type_kind(start);
        if arrow && self.at(Token::Arrow) {
            let params = parameters.unwrap_or_else(|| vec![TypeExp { kind, span: start.to(self.previous()) }]);
            self.bump();
            let result = self.type_exp();
            kind = TypeKind::Function(params, Box::new(result));
        } else if parameters.as_ref().is_some_and(Vec::is_empty) {
            self.complain(Diagnostic::error(start.to(self.previous()), "a tuple has at least two parts"));
        }
        self.nesting -= 1;
        self.height += 1;
        TypeExp { kind, span: start.to(self.previous().max(start)) }
    }

    /// A type without its arrow; of types in parentheses also their list, since they may be parameters of a function.
    fn type_kind(&mut self, start: Span) -> (TypeKind, Option<Vec<TypeExp>>) {
        let kind = match self.token() {
            Token::BracketOpen => {
                let opened = self.open(Token::BracketClose);
                let (sizes, _) = self.list(opened, Token::BracketClose, "`,` or `]`", Parser::axis);
                if sizes.is_empty() {
                    let diagnostic = Diagnostic::error(start.to(self.previous()), "an axis needs a size");
                    self.report(diagnostic.note("`[n]f64` is an array of `n` numbers, for any `n`"));
                    self.element(start);
                    return (TypeKind::Error, None);
                }
                TypeKind::Array(sizes, Box::new(self.element(start)))
            }
            Token::ParenOpen => {
                let opened = self.open(Token::ParenClose);
                let (parts, comma) = self.list(opened, Token::ParenClose, "`,` or `)`", Parser::type_exp);
                if comma && parts.len() == 1 {
                    self.complain(Diagnostic::error(start.to(self.previous()), "a tuple has at least two parts"));
                }
                let kind = match parts.as_slice() {
                    [] => TypeKind::Error,
                    [part] => part.kind.clone(),
                    _ => TypeKind::Tuple(parts.clone()),
                };
                return (kind, Some(parts));
            }
            Token::Name => self.named_type(),
            Token::BraceOpen => self.record_type(),
            token => {
                let message = format!("expected a type, found {}", self.found());
                let diagnostic = Diagnostic::error(self.span(), message);
                self.report(diagnostic.note(
                    "types are `f64`, `f32`, `i64`, `i32`, `bool`, arrays `[n, m]f64`, tuples `(f64, [n]f64)` and records `{a: f64}`",
                ));
                if token.is_keyword() && !matches!(token, Token::Def | Token::Type | Token::Let | Token::Then | Token::Else | Token::Do) {
                    self.bump();
                }
                TypeKind::Error
            }
        };
        (kind, None)
    }

    /// A size, or `?m` for one that the definition computes.
    fn axis(&mut self) -> Exp {
        if !self.at(Token::Question) {
            return self.expression();
        }
        let start = self.bump();
        let name = self.name("the name of a size");
        Exp { kind: ExpKind::Open(name.text), span: start.to(name.span.max(start)) }
    }

    fn element(&mut self, start: Span) -> TypeExp {
        if matches!(self.token(), Token::Name | Token::BracketOpen | Token::ParenOpen | Token::BraceOpen) {
            return self.type_with(false);
        }
        let axes = self.slice(start.to(self.previous())).to_string();
        let message = format!("expected the type of the elements, found {}", self.found());
        self.report(Diagnostic::error(self.span(), message).note(format!("the element type follows the axes: `{axes}f64`")));
        TypeExp { kind: TypeKind::Error, span: self.behind() }
    }

    /// `lower [n, n]f64`, `band(k) [n, n]f64`: what follows the word.
    fn structured(&mut self, word: Name) -> TypeKind {
        let mut widths = vec![];
        if self.at(Token::ParenOpen) {
            let opened = self.open(Token::ParenClose);
            widths = self.list(opened, Token::ParenClose, "`,` or `)`", Parser::expression).0;
        }
        if !self.at(Token::BracketOpen) {
            let message = format!("expected the axes of the matrix, found {}", self.found());
            self.report(Diagnostic::error(self.span(), message).note("the axes follow: `lower [n, n]f64`, `band(k) [n, n]f64`"));
            return TypeKind::Error;
        }
        let array = self.type_with(false);
        TypeKind::Structured(word, widths, Box::new(array))
    }

    fn named_type(&mut self) -> TypeKind {
        let span = self.bump();
        let text = self.slice(span);
        let scalar = Scalar::by_name(text);
        if structure::WORDS.contains(&text) && matches!(self.token(), Token::BracketOpen | Token::ParenOpen) {
            return self.structured(Name { text: text.to_string(), span });
        }
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
