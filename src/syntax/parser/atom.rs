//! Atoms: names, numbers, and what stands in brackets: `(e)`, `(e : T)`, `(a, b)`, `(+)`, `[e, ...]`, `{k -> v}`.

use super::Parser;
use super::binding::binder_kind;
use super::expression::{ADD, NEGATE, operator};
use crate::diagnostic::{Diagnostic, Span};
use crate::syntax::ast::*;
use crate::syntax::lexer::Token;

impl Parser<'_> {
    pub(super) fn atom(&mut self) -> Exp {
        let span = self.span();
        let text = self.slice(span);
        let kind = match self.token() {
            Token::Name => ExpKind::Name(text.to_string()),
            Token::True => ExpKind::Bool(true),
            Token::False => ExpKind::Bool(false),
            Token::Int => self.int(span),
            Token::Float => self.float(span),
            Token::BadNumber => self.bad_number(span),
            Token::ParenOpen => return self.parenthesized(),
            Token::BracketOpen => {
                let opened = self.open(Token::BracketClose);
                let (items, _) = self.list(opened, Token::BracketClose, "`,` or `]`", Parser::expression);
                return Exp { kind: ExpKind::Bracket(items), span: span.to(self.previous()) };
            }
            Token::BraceOpen => return self.singleton(),
            token if binder_kind(token).is_some() => ExpKind::Name(text.to_string()),
            Token::Dot if self.glued() && self.peek(1) == Token::Int => {
                self.bump();
                let digits = self.slice(self.span());
                let diagnostic = Diagnostic::error(span.to(self.span()), "a float has a digit before its point");
                self.complain(diagnostic.note(format!("write `0.{digits}`")));
                ExpKind::Error
            }
            _ => return self.no_expression(),
        };
        self.bump();
        Exp { kind, span }
    }

    fn int(&mut self, span: Span) -> ExpKind {
        match self.slice(span).replace('_', "").parse() {
            Ok(value) => ExpKind::Int(value),
            Err(_) => {
                let diagnostic = Diagnostic::error(span, "this whole number is too large");
                self.complain(diagnostic.note(format!("`i64` reaches to {}; a float is written with a point or `e`", i64::MAX)));
                ExpKind::Error
            }
        }
    }

    fn float(&mut self, span: Span) -> ExpKind {
        match self.slice(span).replace('_', "").parse::<f64>() {
            Ok(value) if value.is_finite() => ExpKind::Float(value),
            _ => {
                let diagnostic = Diagnostic::error(span, "this number is too large");
                self.complain(diagnostic.note(format!("`f64` reaches to {:e}", f64::MAX)));
                ExpKind::Error
            }
        }
    }

    fn bad_number(&mut self, span: Span) -> ExpKind {
        let text = self.slice(span);
        let digits = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
        let (number, rest) = text.split_at(digits);
        let diagnostic = Diagnostic::error(span, format!("`{text}` is neither a number nor a name"));
        self.complain(match rest {
            "f64" | "f32" | "i64" | "i32" | "f" | "i" => diagnostic.note("a number takes the type its context wants and has no suffix"),
            _ if number == "0" && rest.len() > 1 && rest.starts_with(['x', 'b', 'o']) => diagnostic.note("numbers are decimal"),
            _ => diagnostic.note(format!("a product is written `{number} * {rest}`, and a name begins with a letter")),
        });
        ExpKind::Error
    }

    /// `(e)`, `(e : T)` or `(a, b)`
    fn parenthesized(&mut self) -> Exp {
        let start = self.span();
        if self.peek(2) == Token::ParenClose && (operator(self.peek(1)).is_some() || self.peek(1) == Token::Not) {
            return self.operator_function();
        }
        let opened = self.open(Token::ParenClose);
        let (mut parts, comma) = self.list(opened, Token::ParenClose, "an operator, `,` or `)`", |parser| {
            let exp = parser.expression();
            if !parser.eat(Token::Colon) {
                return exp;
            }
            let ty = parser.type_exp();
            let span = exp.span.to(ty.span);
            Exp { kind: ExpKind::Ascribe(Box::new(exp), ty), span }
        });
        let span = start.to(self.previous());
        match parts.pop() {
            None => {
                self.report(Diagnostic::error(span, "there is no empty tuple").note("a tuple has at least two parts: `(a, b)`"));
                Exp { kind: ExpKind::Error, span }
            }
            Some(part) if parts.is_empty() => {
                if comma {
                    self.complain(Diagnostic::error(span, "a tuple has at least two parts").note("leave out the `,`"));
                }
                Exp { span, ..part }
            }
            Some(part) => {
                parts.push(part);
                Exp { kind: ExpKind::Tuple(parts), span }
            }
        }
    }

    /// `(+)`, `(not)`
    fn operator_function(&mut self) -> Exp {
        let start = self.bump();
        let kind = match operator(self.token()) {
            None => ExpKind::Operator(Operator::Not),
            Some((op, _, None)) => ExpKind::Operator(Operator::Binary(op)),
            Some((_, _, Some(remedy))) => {
                let message = format!("`{}` is not an operator", self.slice(self.span()));
                self.complain(Diagnostic::error(self.span(), message).note(remedy));
                ExpKind::Error
            }
        };
        self.bump();
        let end = self.bump();
        Exp { kind, span: start.to(end) }
    }

    /// `{k -> v}` or `{(k, l) -> v}`
    fn singleton(&mut self) -> Exp {
        let start = self.span();
        if self.peek(1) == Token::BraceClose {
            return self.empty_dictionary();
        }
        if self.begins_record() {
            return self.record();
        }
        let opened = self.open(Token::BraceClose);
        let key = self.operand(ADD);
        if self.at(Token::Arrow) {
            self.bump();
        } else if matches!(self.token(), Token::FatArrow | Token::Colon | Token::Equals) {
            let message = format!("a singleton has `->` between place and value, not {}", self.found());
            self.complain(Diagnostic::error(self.span(), message).note("`{k -> v}` is `v` at `k` and zero elsewhere"));
            self.bump();
        } else {
            let diagnostic = self.unexpected_after("`->`").label(opened, "in this singleton");
            self.report(diagnostic.note("`{k -> v}` is `v` at `k` and zero elsewhere"));
            self.skip_inside(Token::BraceClose, false);
            self.close(opened, Token::BraceClose, "`}`");
            return self.error_from(start);
        }
        let value = self.expression();
        if self.at(Token::Comma) {
            let diagnostic = Diagnostic::error(self.span(), "a singleton has one place");
            self.report(diagnostic.note("add several: `{i -> a} + {j -> b}`"));
            self.skip_inside(Token::BraceClose, false);
        }
        self.close(opened, Token::BraceClose, "an operator or `}`");
        let keys = match key.kind {
            ExpKind::Tuple(keys) => keys,
            _ => vec![key],
        };
        Exp { kind: ExpKind::Singleton(keys, Box::new(value)), span: start.to(self.previous()) }
    }

    /// No expression begins here: says so, and steps over operators that cannot stand here.
    fn no_expression(&mut self) -> Exp {
        let start = self.span();
        let mut diagnostic = Diagnostic::error(start, format!("expected an expression, found {}", self.found()));
        if matches!(self.token(), Token::In | Token::Do | Token::While | Token::With | Token::Type) {
            diagnostic = diagnostic.note(format!("{} is a keyword", self.found()));
        }
        if self.at(Token::Question) {
            diagnostic = diagnostic.note("`[?m]f64` is the type of a result whose size depends on data");
        }
        self.report(diagnostic);
        let skipped = self.at;
        while operator(self.token()).is_some() && !self.at(Token::Equals) {
            self.bump();
        }
        if self.at > skipped && self.begins_expression() {
            return self.operand(NEGATE);
        }
        Exp { kind: ExpKind::Error, span: if self.at > skipped { start.to(self.previous()) } else { start } }
    }
}
