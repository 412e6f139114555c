//! What binds names inside expressions: `let`, binders, lambdas, loops; and `if`, whose branches reach just as far right.

use super::{MAX_HEIGHT, MAX_NESTING, Parser};
use crate::diagnostic::{Diagnostic, Span};
use crate::syntax::ast::*;
use crate::syntax::lexer::Token;
use crate::syntax::parser::expression::ADD;
use std::sync::Arc;

pub(in crate::syntax) fn binder_kind(token: Token) -> Option<BinderKind> {
    Some(match token {
        Token::For => BinderKind::For,
        Token::Sum => BinderKind::Sum,
        Token::Prod => BinderKind::Prod,
        Token::Max => BinderKind::Max,
        Token::Min => BinderKind::Min,
        Token::ArgMax => BinderKind::ArgMax,
        Token::ArgMin => BinderKind::ArgMin,
        Token::Any => BinderKind::Any,
        Token::All => BinderKind::All,
        _ => return None,
    })
}

impl Parser<'_> {
    /// `let p = e; let q = f; body`: a chain is read in a loop, for it may be long.
    pub(super) fn bindings(&mut self) -> Exp {
        let mut bindings = Vec::new();
        let first = self.span();
        while self.at(Token::Let) {
            let start = self.bump();
            let pattern = self.pattern();
            let ty = self.eat(Token::Colon).then(|| self.type_exp());
            if self.at(Token::ParenOpen) && matches!(pattern, Pattern::Name(_)) {
                let diagnostic = Diagnostic::error(self.span(), format!("expected `=`, found {}", self.found()));
                self.report(diagnostic.note("functions are defined by `def`, outside of other definitions"));
                self.skip_call_like_head();
            }
            self.equals("the value of a binding");
            let value = self.expression();
            self.end_of_binding(start);
            bindings.push((start, pattern, ty, value));
            if bindings.len() > MAX_HEIGHT {
                return self.too_deep(first);
            }
        }
        let body = if matches!(self.token(), Token::End | Token::Def | Token::ParenClose | Token::BracketClose | Token::BraceClose) {
            let let_span = bindings.last().map_or(first, |binding| binding.0);
            let diagnostic = Diagnostic::error(self.behind(), format!("expected the body of a `let`, found {}", self.found()));
            self.report(diagnostic.label(let_span, "this binding is never used").note("`let x = e; body` has the value of its body"));
            Exp { kind: ExpKind::Error, span: self.behind() }
        } else {
            self.expression()
        };
        self.height += bindings.len();
        bindings.into_iter().rev().fold(body, |body, (start, pattern, ty, value)| {
            let span = start.to(body.span);
            Exp { kind: ExpKind::Let(pattern, ty, Box::new(value), Box::new(body)), span }
        })
    }

    fn skip_call_like_head(&mut self) {
        let opened = self.open(Token::ParenClose);
        self.skip_inside(Token::ParenClose, false);
        self.close(opened, Token::ParenClose, "`)`");
    }

    /// The `;` of a `let`. Where it is missing, the next line or what can begin an expression is taken as the body.
    fn end_of_binding(&mut self, start: Span) {
        if self.eat(Token::Semicolon) {
            return;
        }
        if self.at(Token::In) {
            self.complain(Diagnostic::error(self.span(), "a binding ends in `;`, not in `in`").note("write `let x = e; body`"));
            self.bump();
            return;
        }
        if self.on_new_line() && self.begins_expression() {
            let diagnostic = Diagnostic::error(self.behind(), "missing `;` after this binding");
            let diagnostic = diagnostic.here("a `;` belongs here").label(start, "the binding begins here");
            self.report(diagnostic.note("write `let x = e; body`"));
            return;
        }
        let diagnostic = self.unexpected_after("an operator or `;`").label(start, "in this binding");
        self.report(diagnostic);
        let resume = self.at;
        self.skip_inside(Token::Semicolon, false);
        if !self.eat(Token::Semicolon) {
            self.at = resume;
        }
    }

    pub(super) fn pattern(&mut self) -> Pattern {
        if self.at(Token::Sum) && matches!(self.peek(1), Token::Name | Token::ParenOpen) {
            let diagnostic = Diagnostic::error(self.span(), "`sum` marks what a `loop` adds up, and cannot stand here");
            self.complain(
                diagnostic.note("it stands before a part of a loop's state: `loop (x, sum total) = (a, 0.0) for i in 0..n do e`"),
            );
            self.bump();
        }
        if !self.at(Token::ParenOpen) {
            return Pattern::Name(self.name("a name"));
        }
        let start = self.span();
        if self.nesting >= MAX_NESTING {
            self.too_deep(start);
            return Pattern::Name(Name { text: "_".into(), span: start });
        }
        self.nesting += 1;
        let opened = self.open(Token::ParenClose);
        let (mut parts, _) = self.list(opened, Token::ParenClose, "`,` or `)`", Parser::pattern);
        self.nesting -= 1;
        let span = start.to(self.previous());
        match parts.pop() {
            None => {
                self.complain(Diagnostic::error(span, "an empty pattern binds nothing"));
                Pattern::Name(Name { text: "_".into(), span })
            }
            Some(part) if parts.is_empty() => part,
            Some(part) => {
                parts.push(part);
                Pattern::Tuple(parts, span)
            }
        }
    }

    /// `|x, (y, z)| body`
    pub(super) fn lambda(&mut self) -> Exp {
        let start = self.span();
        let example = "as in `|x| 2 * x` or `|(a, b), c| a * b + c`";
        if self.at(Token::DoubleBar) {
            self.complain(Diagnostic::error(start, "a lambda has at least one parameter").note(example));
            self.bump();
            self.expression();
            return self.error_from(start);
        }
        self.bump();
        let mut params = vec![];
        let errors = self.diagnostics.len();
        loop {
            if self.at(Token::Bar) && params.is_empty() {
                self.complain(Diagnostic::error(start.to(self.span()), "a lambda has at least one parameter").note(example));
                break;
            }
            params.push(self.pattern());
            if self.at(Token::Colon) {
                let diagnostic = Diagnostic::error(self.span(), "the parameters of a lambda have no types");
                self.complain(diagnostic.note("they have the types of the values that the lambda is applied to"));
                self.bump();
                self.type_exp();
            }
            if !self.eat(Token::Comma) {
                break;
            }
        }
        if !self.eat(Token::Bar) {
            let message = format!("expected `,` or `|` after a parameter of a lambda, found {}", self.found());
            self.report(Diagnostic::error(self.span(), message).label(start, "the lambda begins here").note(example));
            if !self.begins_expression() {
                return self.error_from(start);
            }
        }
        let body = self.expression();
        if self.diagnostics.len() > errors && params.is_empty() {
            return self.error_from(start);
        }
        let span = start.to(body.span);
        Exp { kind: ExpKind::Lambda(Arc::new(Lambda { params, body })), span }
    }

    /// A pattern of which the whole or some parts may be summed: `(x, sum total)`.
    fn loop_pattern(&mut self) -> Pattern {
        if self.at(Token::Sum) {
            return self.loop_part();
        }
        let end = self.closing_paren[self.at].map_or(self.at, |close| close as usize);
        if !self.tokens[self.at..end].iter().any(|(token, _)| *token == Token::Sum) {
            return self.pattern();
        }
        let start = self.span();
        let opened = self.open(Token::ParenClose);
        let (mut parts, _) = self.list(opened, Token::ParenClose, "`,` or `)`", Parser::loop_part);
        if parts.len() == 1 { parts.remove(0) } else { Pattern::Tuple(parts, start.to(self.previous())) }
    }

    fn loop_part(&mut self) -> Pattern {
        let start = self.span();
        if !self.eat(Token::Sum) {
            return self.pattern();
        }
        let inner = self.pattern();
        Pattern::Sum(Box::new(inner), start.to(self.previous()))
    }

    /// Whether the current binder word begins a binder: before `(` it is a function, unless `in` follows the matching
    /// `)`; with nothing behind it, it is a function that is passed on.
    pub(super) fn begins_binder(&self) -> bool {
        if self.at(Token::For) {
            return true;
        }
        if matches!(self.peek(1), Token::Comma | Token::ParenClose | Token::Semicolon) {
            return false;
        }
        if self.peek(1) != Token::ParenOpen {
            return true;
        }
        let close = self.closing_paren[self.at + 1];
        close.is_some_and(|close| self.tokens.get(close as usize + 1).is_some_and(|(token, _)| *token == Token::In))
    }

    /// `sum i, j in 0..n. body`
    pub(super) fn binder(&mut self, kind: BinderKind) -> Exp {
        let start = self.bump();
        let word = self.slice(start).to_string();
        if self.at(Token::ParenOpen) {
            self.stored_entries();
            self.binder_dot(&word);
            self.expression();
            return self.error_from(start);
        }
        let mut bindings = Vec::new();
        if !self.at(Token::Name) && !(self.token().is_keyword() && matches!(self.peek(1), Token::Dot | Token::Comma | Token::In)) {
            let diagnostic = Diagnostic::error(self.span(), format!("expected an index after `{word}`, found {}", self.found()));
            self.report(diagnostic.note(format!("write `{word} i. e`")));
            if self.begins_expression() {
                self.expression();
            }
            return self.error_from(start);
        }
        loop {
            bindings.push(self.index_binding());
            if !self.eat(Token::Comma) {
                break;
            }
        }
        let last = bindings.last().and_then(|b: &IndexBinding| b.range.as_ref()).and_then(|(_, high)| self.mistaken_field(high));
        if let (Some(dot), false) = (last, self.at(Token::Dot)) {
            self.complain(glued_dot(dot, &word));
            return self.error_from(start);
        }
        self.binder_dot(&word);
        let body = self.expression();
        let span = start.to(body.span);
        Exp { kind: ExpKind::Binder(kind, bindings, Box::new(body)), span }
    }

    fn index_binding(&mut self) -> IndexBinding {
        let name = self.name("an index");
        if self.at(Token::Equals) {
            let note = format!("write `{} in 0..n`", name.text);
            self.complain(Diagnostic::error(self.span(), "the range of an index stands behind `in`").note(note));
            self.bump();
            return IndexBinding { name, range: Some(self.range()) };
        }
        let range = self.eat(Token::In).then(|| self.range());
        IndexBinding { name, range }
    }

    /// The dot between a binder's indices and its body.
    fn binder_dot(&mut self, word: &str) {
        match self.token() {
            Token::Dot => {
                let glued = self.glued();
                let dot = self.bump();
                if glued {
                    self.complain(glued_dot(dot, word));
                }
            }
            Token::DotDot | Token::Colon | Token::Arrow | Token::FatArrow | Token::Do | Token::Semicolon => {
                let message = format!("the body of `{word}` stands behind a `.`, not {}", self.found());
                self.complain(Diagnostic::error(self.span(), message).note(format!("write `{word} i. e`")));
                self.bump();
            }
            _ => {
                let message = format!("expected `.` after the indices of `{word}`, found {}", self.found());
                self.report(Diagnostic::error(self.span(), message).note(format!("write `{word} i. e`")));
            }
        }
    }

    /// `a..b`
    pub(super) fn range(&mut self) -> (Exp, Exp) {
        let in_range = std::mem::replace(&mut self.in_range, true);
        let start = self.span();
        let low = if self.at(Token::DotDot) {
            self.complain(Diagnostic::error(start, "a range needs its lower end").note("write `0..n`"));
            Exp { kind: ExpKind::Error, span: start }
        } else {
            self.operand(ADD)
        };
        let ends = if self.at(Token::DotDot) {
            let dots = self.bump();
            if self.begins_expression() {
                (low, self.operand(ADD))
            } else {
                let diagnostic = Diagnostic::error(low.span.to(dots), "this range has no upper end");
                self.report(diagnostic.note("`a..b` runs from `a` to `b - 1`"));
                (low, Exp { kind: ExpKind::Error, span: dots })
            }
        } else {
            let text = self.slice(low.span).to_string();
            let diagnostic = Diagnostic::error(
                low.span,
                format!("expected a range, found {}", if text.is_empty() { self.found() } else { format!("`{text}`") }),
            );
            self.report(diagnostic.note("write both ends: `0..n` runs from 0 to `n - 1`"));
            (Exp { kind: ExpKind::Error, span: low.span }, low)
        };
        self.in_range = in_range;
        ends
    }

    /// `if c then a else b`, `if c then a`
    pub(super) fn branch(&mut self) -> Exp {
        let start = self.bump();
        let condition = self.expression();
        if !self.eat(Token::Then) {
            let message = format!("expected `then`, found {}", self.found());
            let diagnostic = Diagnostic::error(self.span(), message).label(start, "this `if` has no `then`");
            self.report(diagnostic.note("write `if c then a else b`"));
            if self.at(Token::BraceOpen) {
                // As other languages have it, with a block for each branch.
                self.skip_braces();
                while self.eat(Token::Else) {
                    match self.token() {
                        Token::BraceOpen => self.skip_braces(),
                        _ => {
                            self.expression();
                        }
                    }
                }
                return self.error_from(start);
            }
            if !self.begins_expression() {
                return self.error_from(start);
            }
        }
        let yes = self.expression();
        if self.at(Token::Semicolon) && self.peek(1) == Token::Else {
            self.complain(Diagnostic::error(self.span(), "no `;` stands before `else`").note("`;` ends a `let` binding"));
            self.bump();
        }
        if self.at(Token::Name) && matches!(self.slice(self.span()), "elif" | "elsif" | "elseif") {
            let message = format!("{} is written `else if`", self.found());
            self.complain(Diagnostic::error(self.span(), message));
            if self.nesting >= MAX_NESTING {
                return self.too_deep(start);
            }
            self.nesting += 1;
            let no = self.branch();
            self.nesting -= 1;
            self.height += 1;
            return Exp { span: start.to(no.span), kind: ExpKind::If(Box::new(condition), Box::new(yes), Some(Box::new(no))) };
        }
        let no = self.eat(Token::Else).then(|| Box::new(self.expression()));
        Exp { kind: ExpKind::If(Box::new(condition), Box::new(yes), no), span: start.to(self.previous()) }
    }

    /// `history p = e for i in 0..n do e`
    pub(super) fn history(&mut self) -> Exp {
        let start = self.bump();
        let pattern = self.pattern();
        self.equals("the first state");
        let init = self.expression();
        let index = self.counted_loop();
        let body = self.expression();
        let span = start.to(body.span);
        Exp { kind: ExpKind::History(pattern, Box::new(init), Box::new(index), Box::new(body)), span }
    }

    /// `loop p = e for i in a..b do e`, `loop p = e while c do e`; parts of the pattern may be summed
    pub(super) fn loop_exp(&mut self) -> Exp {
        let start = self.bump();
        let pattern = self.loop_pattern();
        self.equals("the first state");
        let init = self.expression();
        let trip = if self.eat(Token::While) {
            let condition = self.expression();
            self.expect_do();
            Trip::While(condition)
        } else {
            Trip::For(self.counted_loop())
        };
        let body = self.expression();
        let span = start.to(body.span);
        Exp { kind: ExpKind::Loop(pattern, Box::new(init), Box::new(trip), Box::new(body)), span }
    }

    /// `with [i] = v` behind an array
    pub(super) fn update(&mut self, array: Exp) -> Exp {
        self.bump();
        let keys = if self.at(Token::BracketOpen) {
            self.subscripts()
        } else {
            let message = format!("expected `[` and the place to write behind `with`, found {}", self.found());
            self.report(Diagnostic::error(self.span(), message).note("write `x with [i] = v`"));
            vec![]
        };
        self.equals("the new value");
        let value = self.expression();
        let span = array.span.to(value.span);
        Exp { kind: ExpKind::With(Box::new(array), keys, Box::new(value)), span }
    }

    /// `for i in a..b do`
    pub(super) fn counted_loop(&mut self) -> IndexBinding {
        if !self.eat(Token::For) {
            let message = format!("expected `for` and the loop's index, found {}", self.found());
            self.report(Diagnostic::error(self.span(), message).note("write `.. for i in 0..n do e`"));
            let end = Exp { kind: ExpKind::Error, span: self.behind() };
            self.eat(Token::Do);
            return IndexBinding { name: Name { text: "_".into(), span: end.span }, range: Some((end.clone(), end)) };
        }
        let mut index = self.index_binding();
        if index.range.is_none() {
            let diagnostic = Diagnostic::error(index.name.span, "the index of a loop needs a range");
            self.report(diagnostic.note(format!("write `for {} in 0..n do e`", index.name.text)));
            let end = Exp { kind: ExpKind::Error, span: index.name.span };
            index.range = Some((end.clone(), end));
        }
        self.expect_do();
        index
    }

    pub(super) fn expect_do(&mut self) {
        if self.at(Token::Dot) {
            self.complain(Diagnostic::error(self.span(), "the body of a loop stands behind `do`, not `.`"));
            self.bump();
        } else if !self.eat(Token::Do) {
            let message = format!("expected `do` before the body of the loop, found {}", self.found());
            self.report(Diagnostic::error(self.span(), message));
        }
    }
}

fn glued_dot(dot: Span, word: &str) -> Diagnostic {
    Diagnostic::error(dot, "the dot of a binder is followed by a space").note(format!("write `{word} i. e`"))
}
