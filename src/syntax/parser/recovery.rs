//! Complaints, and how to read on after one.

use super::Parser;
use crate::diagnostic::{Diagnostic, Span};
use crate::syntax::ast::*;
use crate::syntax::lexer::Token;

impl Parser<'_> {
    /// Reports a mistake that the parser knows how to read on from.
    pub(super) fn complain(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Reports that the current token is unexpected, once for each token.
    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        if self.reported_at != Some(self.at) && !self.after_bad[self.at] {
            self.diagnostics.push(diagnostic);
        }
        self.reported_at = Some(self.at);
    }

    /// "expected .., found .." behind a complete expression, with the likely remedy.
    pub(super) fn unexpected_after(&self, expected: &str) -> Diagnostic {
        let diagnostic = Diagnostic::error(self.span(), format!("expected {expected}, found {}", self.found()));
        let before = self.at.checked_sub(1).map(|at| self.tokens[at].0);
        let text = self.slice(self.span());
        match (before, self.token()) {
            (_, Token::Colon) => diagnostic.note("a type is given in parentheses: `(e : f64)`"),
            (_, Token::DotDot) => diagnostic.note("a range `a..b` stands behind an index's `in` or in a slice `x[a..b]`"),
            (_, Token::Dot) => diagnostic.note("a `.` stands behind the indices of a binder: `sum i. e`"),
            (_, Token::Arrow) => {
                diagnostic.note("a lambda is written `|x| e`; `->` stands in a singleton `{k -> v}` or before a result type")
            }
            (_, Token::Question) => diagnostic.note("a choice is written `if c then a else b`"),
            (_, Token::Else) => diagnostic.note("`else` belongs to `if c then a else b`"),
            (_, Token::Then) => diagnostic.note("`then` belongs to `if c then a else b`"),
            (_, Token::Equals | Token::ColonEquals) => diagnostic.note("a binding is `let x = e; body`; equality is `==`"),
            (Some(Token::Int | Token::Float | Token::ParenClose), Token::Name | Token::Int | Token::Float) => {
                diagnostic.note(format!("a product is written with `*`: `.. * {text}`"))
            }
            (Some(Token::Name), Token::Name | Token::Int | Token::Float) if !self.on_new_line() => {
                let function = self.slice(self.previous());
                diagnostic.note(format!("a call is written `{function}({text})`, a product `{function} * {text}`"))
            }
            _ => diagnostic,
        }
    }

    /// Gives up on a definition whose tree would overflow the stack of those who walk it.
    pub(super) fn too_deep(&mut self, span: Span) -> Exp {
        let diagnostic = Diagnostic::error(span, "this is nested too deeply");
        self.report(diagnostic.note("give parts of it a name with `let`, or a function of their own"));
        self.skip_to_definition();
        self.reported_at = Some(self.at);
        Exp { kind: ExpKind::Error, span }
    }

    pub(super) fn skip_to_definition(&mut self) {
        while !matches!(self.token(), Token::End | Token::Def | Token::Type) {
            self.bump();
        }
    }

    /// Steps over an opening bracket that `close` closes; returns its span.
    pub(super) fn open(&mut self, close: Token) -> Span {
        self.open.push((close, self.in_range));
        self.in_range = false;
        self.bump()
    }

    /// Steps over the closing bracket of the innermost open one. Where it is missing, both places are shown, and what
    /// stands before it is skipped if it comes at all.
    pub(super) fn close(&mut self, opened: Span, close: Token, expected: &str) {
        if !self.at(close) {
            let diagnostic = self.unexpected_after(expected).label(opened, format!("`{}` is opened here", self.slice(opened)));
            self.report(diagnostic);
            self.skip_inside(close, false);
        }
        let (_, in_range) = self.open.pop().unwrap_or((close, false));
        self.in_range = in_range;
        let mismatched = matches!(self.token(), Token::ParenClose | Token::BracketClose | Token::BraceClose)
            && !self.open.iter().any(|(awaited, _)| *awaited == self.token());
        if self.at(close) || mismatched {
            self.bump();
        }
    }

    /// Skips to `close` (or a `,` of the same bracket), but not out of the bracket or the binding it stands in.
    pub(super) fn skip_inside(&mut self, close: Token, to_comma: bool) {
        let mut depth = 0;
        loop {
            match self.token() {
                Token::End | Token::Def | Token::Type => return,
                Token::Semicolon | Token::Then | Token::Else | Token::Do if depth == 0 => return,
                Token::Comma if depth == 0 && to_comma => return,
                Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => depth += 1,
                Token::ParenClose | Token::BracketClose | Token::BraceClose if depth > 0 => depth -= 1,
                token @ (Token::ParenClose | Token::BracketClose | Token::BraceClose) => {
                    if token == close || self.open.iter().any(|(awaited, _)| *awaited == token) {
                        return;
                    }
                }
                _ => {}
            }
            self.bump();
        }
    }

    /// Items between an opening bracket already stepped over and `close`, which is consumed. Tells whether a `,`
    /// stands behind the last.
    pub(super) fn list<T>(&mut self, opened: Span, close: Token, expected: &str, mut item: impl FnMut(&mut Self) -> T) -> (Vec<T>, bool) {
        let mut items = Vec::new();
        let mut comma = false;
        while !self.at(close) && !matches!(self.token(), Token::End | Token::Def | Token::Type) {
            let before = self.at;
            items.push(item(self));
            comma = false;
            if !self.at(close) && !self.at(Token::Comma) {
                let diagnostic = self.unexpected_after(expected).label(opened, format!("`{}` is opened here", self.slice(opened)));
                self.report(diagnostic);
                self.skip_inside(close, true);
            }
            comma |= self.eat(Token::Comma);
            if !comma || self.at == before {
                break;
            }
        }
        let expected = if items.is_empty() { "a closing bracket" } else { expected };
        self.close(opened, close, expected);
        (items, comma)
    }
}
