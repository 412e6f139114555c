//! Tokens to syntax tree, by recursive descent; operators by precedence climbing (`expression`).
//!
//! A text with mistakes still gives a tree: what could not be read is an `Error` node, and everything else is kept,
//! so that one run reports as many mistakes as there are. After a mistake the parser goes on at the next `def`, `;`,
//! `,` or closing bracket, and it stays quiet at a token it has already complained about.

mod annotation;
mod atom;
mod binding;
mod expression;
mod record;
mod recovery;
mod types;
mod unsupported;

use super::ast::*;
use super::lexer::{Token, tokenize};
use crate::diagnostic::{Diagnostic, Span};
pub(super) use binding::binder_kind;
pub(super) use expression::operator;

/// How deeply brackets, branches and binders may nest: the parser and its readers recurse this far.
const MAX_NESTING: usize = 200;
/// How high the tree of one expression may grow, chains of operators and bindings included.
const MAX_HEIGHT: usize = 2000;

/// Reads the definitions of one text.
pub fn parse(source: u32, text: &str) -> (Module, Vec<Diagnostic>) {
    let mut parser = Parser::new(source, text);
    let module = parser.module();
    (module, parser.finish())
}

/// Reads a text that is one expression.
pub fn parse_expression(source: u32, text: &str) -> (Exp, Vec<Diagnostic>) {
    let mut parser = Parser::new(source, text);
    let exp = parser.expression();
    if !parser.at(Token::End) {
        let diagnostic = parser.unexpected_after("an operator or the end of the text");
        parser.report(diagnostic);
    }
    (exp, parser.finish())
}

struct Parser<'a> {
    text: &'a str,
    /// Without `Token::Bad`.
    tokens: Vec<(Token, Span)>,
    /// Whether bad characters, which are reported already, stand before a token.
    after_bad: Vec<bool>,
    /// For a `(`, the number of the token that closes it.
    closing_paren: Vec<Option<u32>>,
    at: usize,
    diagnostics: Vec<Diagnostic>,
    /// The token of the last complaint: a second one there would only repeat it.
    reported_at: Option<usize>,
    /// The brackets around the current token: what closes them, and `in_range` outside.
    open: Vec<(Token, bool)>,
    nesting: usize,
    /// An upper bound of the height of the trees read since the current expression began.
    height: usize,
    /// Whether a `.` ends the expression because it is the range of a binder's index.
    in_range: bool,
}

impl<'a> Parser<'a> {
    fn new(source: u32, text: &'a str) -> Parser<'a> {
        let (all, diagnostics) = tokenize(source, text);
        let (mut tokens, mut after_bad, mut bad) = (Vec::new(), Vec::new(), false);
        for (token, span) in all {
            if token != Token::Bad {
                tokens.push((token, span));
                after_bad.push(bad);
            }
            bad = token == Token::Bad;
        }
        let mut closing_paren = vec![None; tokens.len()];
        let mut open = Vec::new();
        for (at, (token, _)) in tokens.iter().enumerate() {
            match token {
                Token::ParenOpen => open.push(at),
                Token::ParenClose => {
                    if let Some(start) = open.pop() {
                        closing_paren[start] = Some(at as u32);
                    }
                }
                _ => {}
            }
        }
        Parser {
            text,
            tokens,
            after_bad,
            closing_paren,
            at: 0,
            diagnostics,
            reported_at: None,
            open: Vec::new(),
            nesting: 0,
            height: 0,
            in_range: false,
        }
    }

    fn finish(mut self) -> Vec<Diagnostic> {
        self.diagnostics.sort_by_key(|diagnostic| diagnostic.labels[0].span);
        self.diagnostics
    }

    // Definitions

    fn module(&mut self) -> Module {
        let mut types = Vec::new();
        let mut definitions = Vec::new();
        while !self.at(Token::End) {
            match self.token() {
                Token::Def => definitions.push(self.definition()),
                Token::Type => types.extend(self.type_definition()),
                Token::Hash if self.peek(1) == Token::BracketOpen => self.stray_annotations(),
                token => {
                    let message = format!("expected `def`, found {}", self.found());
                    let note = match token {
                        Token::Hash | Token::DoubleSlash => "comments begin with `--`",
                        Token::Name if matches!(self.slice(self.span()), "fn" | "fun" | "func" | "function" | "define") => {
                            "a definition begins with `def`: `def f(x: T) -> T = e`"
                        }
                        _ => "a text is a list of definitions `def f(x: T) -> T = e`",
                    };
                    self.report(Diagnostic::error(self.span(), message).note(note));
                    self.skip_to_definition();
                }
            }
        }
        Module { types, definitions }
    }

    /// `def name(params) -> result = body`
    fn definition(&mut self) -> Definition {
        let start = self.bump();
        self.open.clear();
        let mode = match self.slice(self.span()) {
            "jvp" if self.peek(1) == Token::Name => Some(Mode::Jvp),
            "vjp" if self.peek(1) == Token::Name => Some(Mode::Vjp),
            _ => None,
        };
        if mode.is_some() {
            self.bump();
        }
        let mut name = self.name("the name of the function");
        let derivative_of = mode.map(|mode| (mode, name.clone()));
        if let Some(mode) = mode {
            name.text = format!("{} {}", mode.word(), name.text);
        }
        let params = if self.at(Token::ParenOpen) {
            let open = self.open(Token::ParenClose);
            self.list(open, Token::ParenClose, "`,` or `)`", Parser::param).0
        } else {
            let message = format!("expected the parameters of `{}`, found {}", name.text, self.found());
            self.report(
                Diagnostic::error(self.span(), message).note(format!("a function without parameters is `def {}() = e`", name.text)),
            );
            Vec::new()
        };
        let result = if self.eat(Token::Arrow) {
            Some(self.type_exp())
        } else if self.at(Token::Colon) {
            self.complain(Diagnostic::error(self.span(), "the result type stands behind `->`").note("`def f(x: f64) -> f64 = e`"));
            self.bump();
            Some(self.type_exp())
        } else {
            None
        };
        let body = if self.at(Token::BraceOpen) {
            let message = format!("expected `=` before the body of `{}`, found `{{`", name.text);
            self.report(
                Diagnostic::error(self.span(), message).note("a body stands behind `=`, without braces: `def f(x: f64) -> f64 = e`"),
            );
            let start = self.span();
            self.skip_braces();
            self.error_from(start)
        } else {
            self.equals(&format!("the body of `{}`", name.text));
            self.expression()
        };
        let span = start.to(self.previous());
        self.end_of_definition();
        Definition { name, derivative_of, params, result, body, span }
    }

    fn param(&mut self) -> Param {
        // A word only before a name: a parameter may be called `static`.
        let word = self.at(Token::Name) && self.slice(self.span()) == "static" && self.peek(1) == Token::Name;
        let fixed = word.then(|| self.bump());
        let name = self.name("the name of a parameter");
        if self.eat(Token::Colon) {
            return Param { ty: self.type_exp(), name, fixed };
        }
        let message = format!("the parameter `{}` needs a type", name.text);
        let note = format!("`{0}: f64` is a number, `{0}: [n]f64` an array of `n` numbers", name.text);
        self.report(Diagnostic::error(name.span, message).note(note));
        let ty = if matches!(self.token(), Token::Name | Token::BracketOpen | Token::ParenOpen | Token::BraceOpen) {
            self.type_exp()
        } else {
            TypeExp { kind: TypeKind::Error, span: name.span }
        };
        Param { name, ty, fixed }
    }

    fn end_of_definition(&mut self) {
        match self.token() {
            Token::End | Token::Def | Token::Type | Token::Hash => return,
            Token::Semicolon => {
                let diagnostic = Diagnostic::error(self.span(), "unexpected `;` after the body of a definition");
                self.report(diagnostic.note("`;` ends a `let` binding; a definition ends where the next `def` begins"));
            }
            Token::ParenClose | Token::BracketClose | Token::BraceClose => {
                self.report(Diagnostic::error(self.span(), format!("{} closes nothing", self.found())));
            }
            _ => {
                let diagnostic = self.unexpected_after("an operator or `def`");
                self.report(diagnostic);
            }
        }
        self.skip_to_definition();
    }

    // Tokens

    fn token(&self) -> Token {
        self.tokens[self.at].0
    }

    fn span(&self) -> Span {
        self.tokens[self.at].1
    }

    fn peek(&self, ahead: usize) -> Token {
        self.tokens.get(self.at + ahead).map_or(Token::End, |(token, _)| *token)
    }

    fn at(&self, token: Token) -> bool {
        self.token() == token
    }

    /// Steps over the current token (never over the end) and returns its span.
    fn bump(&mut self) -> Span {
        let span = self.span();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        span
    }

    fn eat(&mut self, token: Token) -> bool {
        let found = self.at(token);
        if found {
            self.bump();
        }
        found
    }

    /// The span of the last token stepped over.
    fn previous(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].1
    }

    /// The empty place behind the last token stepped over, where something is missing.
    fn behind(&self) -> Span {
        let end = self.previous().end;
        Span { start: end, end, ..self.previous() }
    }

    fn slice(&self, span: Span) -> &'a str {
        &self.text[span.start as usize..span.end as usize]
    }

    fn found(&self) -> String {
        if self.at(Token::End) { "the end of the text".into() } else { format!("`{}`", self.slice(self.span())) }
    }

    /// Whether the current token stands on a later line than the one before it.
    fn on_new_line(&self) -> bool {
        self.text[self.previous().end as usize..self.span().start as usize].contains('\n')
    }

    /// Whether the current token and the one after it touch.
    fn glued(&self) -> bool {
        self.tokens.get(self.at + 1).is_some_and(|(token, next)| *token != Token::End && next.start == self.span().end)
    }

    /// A name, or a stand-in where there is none.
    fn name(&mut self, what: &str) -> Name {
        let span = self.span();
        let text = self.slice(span);
        if self.at(Token::Name) {
            self.bump();
            return Name { text: text.to_string(), span };
        }
        if self.token().is_keyword() && !matches!(self.token(), Token::Def | Token::Type) {
            let diagnostic = Diagnostic::error(span, format!("`{text}` is a keyword and cannot be a name"));
            self.complain(diagnostic.here(format!("{what} is expected here")));
            self.bump();
            return Name { text: text.to_string(), span };
        }
        self.report(Diagnostic::error(span, format!("expected {what}, found {}", self.found())));
        Name { text: "_".into(), span: self.behind() }
    }

    /// The `=` of a definition or binding; goes on without it.
    fn equals(&mut self, before: &str) {
        match self.token() {
            Token::Equals => {
                self.bump();
            }
            Token::EqEq | Token::ColonEquals => {
                let message = format!("{before} stands behind `=`, not {}", self.found());
                self.complain(Diagnostic::error(self.span(), message));
                self.bump();
            }
            _ => {
                let message = format!("expected `=` before {before}, found {}", self.found());
                self.report(Diagnostic::error(self.span(), message));
            }
        }
    }
}
