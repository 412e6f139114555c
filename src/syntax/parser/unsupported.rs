//! Constructs the language will have and this compiler does not understand yet. Each is read to its end, so that
//! the rest of the text is still checked, and reported by name.

use super::Parser;
use crate::diagnostic::{Diagnostic, Span};
use crate::syntax::ast::*;
use crate::syntax::lexer::Token;

impl Parser<'_> {
    /// `what` with its verb: "records are".
    pub(super) fn unsupported(&mut self, span: Span, what: &str) {
        self.complain(Diagnostic::error(span, format!("{what} not supported yet")));
    }

    pub(super) fn skip_braces(&mut self) {
        let opened = self.open(Token::BraceClose);
        self.skip_inside(Token::BraceClose, false);
        self.close(opened, Token::BraceClose, "`}`");
    }

    /// The index pattern of `sum (j, v) in row. e`, up to the `.`
    pub(super) fn stored_entries(&mut self) {
        let start = self.span();
        self.pattern();
        self.unsupported(start.to(self.previous()), "binders over stored entries are");
        self.eat(Token::In);
        let in_range = std::mem::replace(&mut self.in_range, true);
        self.expression();
        self.in_range = in_range;
    }

    pub(super) fn error_from(&self, start: Span) -> Exp {
        Exp { kind: ExpKind::Error, span: start.to(self.previous()) }
    }
}
