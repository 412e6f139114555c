//! Annotations of loops: `#[checkpoint(every = 10)]`, `#[stripmine(3), bound(n)]`.

use super::Parser;
use super::expression::NEGATE;
use crate::diagnostic::Diagnostic;
use crate::syntax::ast::*;
use crate::syntax::lexer::Token;

impl Parser<'_> {
    /// `#[name(e)] e`; whether what follows may have annotations is up to the checker.
    pub(super) fn annotated(&mut self) -> Exp {
        let start = self.span();
        if self.peek(1) != Token::BracketOpen {
            self.complain(Diagnostic::error(start, "`#` does not begin a comment").note("comments begin with `--`"));
            self.bump();
            return self.operand(NEGATE);
        }
        let annotations = self.annotations();
        let exp = if self.at(Token::Loop) { self.loop_exp() } else { self.operand(NEGATE) };
        let span = start.to(exp.span);
        Exp { kind: ExpKind::Annotated(annotations, Box::new(exp)), span }
    }

    /// Annotations where a definition should begin.
    pub(super) fn stray_annotations(&mut self) {
        let start = self.span();
        self.annotations();
        let diagnostic = Diagnostic::error(start.to(self.previous()), "an annotation stands before a `loop`, not here");
        self.complain(diagnostic.note("as in `#[checkpoint(every = 10)] loop x = e for i in 0..n do e`"));
    }

    fn annotations(&mut self) -> Vec<Annotation> {
        let mut all = vec![];
        while self.at(Token::Hash) && self.peek(1) == Token::BracketOpen {
            self.bump();
            let opened = self.open(Token::BracketClose);
            let (found, _) = self.list(opened, Token::BracketClose, "`(`, `,` or `]`", Parser::annotation);
            if found.is_empty() {
                let diagnostic = Diagnostic::error(opened.to(self.previous()), "expected an annotation");
                self.report(diagnostic.note("there are `stripmine(k)`, `checkpoint(every = k)` and `bound(n)`"));
            }
            all.extend(found);
        }
        all
    }

    fn annotation(&mut self) -> Annotation {
        let name = self.name("the name of an annotation");
        let mut arguments = vec![];
        if self.at(Token::ParenOpen) {
            let opened = self.open(Token::ParenClose);
            arguments = self.list(opened, Token::ParenClose, "`,` or `)`", Parser::argument).0;
        }
        Annotation { span: name.span.to(self.previous().max(name.span)), name, arguments }
    }
}
