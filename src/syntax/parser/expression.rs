//! Expressions: operators by precedence climbing, then calls and indexing behind an atom (`atom`).
//!
//! Loosest first: `or`, `and`, `not`, comparisons (not chained), `+ -`, `* / div mod`, unary minus, `^` (to the right).

use super::binding::binder_kind;
use super::{MAX_HEIGHT, MAX_NESTING, Parser};
use crate::diagnostic::{Diagnostic, Span};
use crate::syntax::ast::*;
use crate::syntax::lexer::Token;

/// How tightly operators bind.
type Level = u8;
const OR: Level = 1;
const AND: Level = 2;
const COMPARISON: Level = 4;
pub(super) const ADD: Level = 5;
const MULTIPLY: Level = 6;
pub(super) const NEGATE: Level = 7;
const POWER: Level = 8;

/// The operator a token stands for, its level, and what to write instead if it is another language's spelling.
pub(in crate::syntax) fn operator(token: Token) -> Option<(BinaryOp, Level, Option<&'static str>)> {
    Some(match token {
        Token::Or => (BinaryOp::Or, OR, None),
        Token::And => (BinaryOp::And, AND, None),
        Token::EqEq => (BinaryOp::Eq, COMPARISON, None),
        Token::NotEq => (BinaryOp::Ne, COMPARISON, None),
        Token::Lt => (BinaryOp::Lt, COMPARISON, None),
        Token::Le => (BinaryOp::Le, COMPARISON, None),
        Token::Gt => (BinaryOp::Gt, COMPARISON, None),
        Token::Ge => (BinaryOp::Ge, COMPARISON, None),
        Token::Plus => (BinaryOp::Add, ADD, None),
        Token::Minus => (BinaryOp::Sub, ADD, None),
        Token::Star => (BinaryOp::Mul, MULTIPLY, None),
        Token::Slash => (BinaryOp::Div, MULTIPLY, None),
        Token::Div => (BinaryOp::IDiv, MULTIPLY, None),
        Token::Mod => (BinaryOp::IMod, MULTIPLY, None),
        Token::Caret => (BinaryOp::Pow, POWER, None),
        Token::Bar | Token::DoubleBar => (BinaryOp::Or, OR, Some("logic is written `a or b`")),
        Token::Ampersand => (BinaryOp::And, AND, Some("logic is written `a and b`")),
        Token::Equals => (BinaryOp::Eq, COMPARISON, Some("`=` gives a name to a value; equality is written `==`")),
        Token::FatArrow => (BinaryOp::Ge, COMPARISON, Some("a comparison is written `>=`, a singleton `{k -> v}`")),
        Token::DoubleSlash => (BinaryOp::IDiv, MULTIPLY, Some("whole numbers are divided by `a div b`, comments begin with `--`")),
        Token::Percent => (BinaryOp::IMod, MULTIPLY, Some("the remainder is written `a mod b`")),
        Token::DoubleStar => (BinaryOp::Pow, POWER, Some("a power is written `a ^ b`")),
        _ => return None,
    })
}

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Exp {
        self.operand(OR)
    }

    /// An expression of operators at least as tight as `level`.
    pub(super) fn operand(&mut self, level: Level) -> Exp {
        if self.nesting >= MAX_NESTING {
            return self.too_deep(self.span());
        }
        self.nesting += 1;
        let outside = std::mem::replace(&mut self.height, 0);
        let mut exp = self.operators(level);
        self.nesting -= 1;
        self.height += 1;
        if self.height > MAX_HEIGHT {
            exp = self.too_deep(exp.span);
            self.height = 0;
        }
        self.height = self.height.max(outside);
        exp
    }

    fn operators(&mut self, level: Level) -> Exp {
        let mut left = self.prefix();
        let mut comparison: Option<Span> = None;
        loop {
            self.height += 1;
            if self.height > MAX_HEIGHT {
                return self.too_deep(left.span);
            }
            let token = self.token();
            if token == Token::Dot && !self.in_range && self.previous_is_int() {
                let number = self.previous();
                let diagnostic = Diagnostic::error(number.to(self.span()), "a float has a digit after its point");
                let note = format!("write `{}.0`", self.slice(number));
                self.complain(diagnostic.note(note));
                self.bump();
                continue;
            }
            let Some((op, tightness, remedy)) = operator(token) else { return left };
            if tightness < level {
                return left;
            }
            let span = self.span();
            if token == Token::Equals && matches!(left.kind, ExpKind::Name(_)) && level == OR && self.reported_at != Some(self.at) {
                return self.binding_without_let(left);
            }
            if let Some(remedy) = remedy {
                let message = format!("`{}` is not an operator", self.slice(span));
                self.report(Diagnostic::error(span, message).note(remedy));
            }
            self.bump();
            let chained = if tightness == COMPARISON { comparison.replace(span) } else { None };
            // `^` goes to the right, the others to the left.
            let right = self.operand(if op == BinaryOp::Pow { POWER } else { tightness + 1 });
            let whole = left.span.to(right.span);
            let kind = match chained {
                None => ExpKind::Binary(op, span, Box::new(left), Box::new(right)),
                Some(first) => {
                    let diagnostic = Diagnostic::error(span, "comparisons cannot be chained");
                    let note = self.unchained(&left, span, &right);
                    self.complain(diagnostic.label(first, "the first comparison").note(note));
                    ExpKind::Error
                }
            };
            left = Exp { kind, span: whole };
        }
    }

    /// How to write `a < b < c`, in its own words if they are few.
    fn unchained(&self, left: &Exp, op: Span, right: &Exp) -> String {
        if let ExpKind::Binary(_, _, _, middle) = &left.kind {
            let middle = self.slice(middle.span);
            let text = format!("{} and {middle} {} {}", self.slice(left.span), self.slice(op), self.slice(right.span));
            if text.len() <= 80 && !text.contains('\n') {
                return format!("write `{text}`");
            }
        }
        "write `a < b and b < c`".into()
    }

    fn previous_is_int(&self) -> bool {
        self.at > 0 && self.tokens[self.at - 1].0 == Token::Int && self.previous().end == self.span().start
    }

    /// `x = e`, where either `let` or an `=` is missing; what follows tells which.
    fn binding_without_let(&mut self, name: Exp) -> Exp {
        let equals = self.bump();
        let value = self.expression();
        let text = self.slice(name.span);
        if self.at(Token::Semicolon) {
            let message = format!("the binding of `{text}` begins with `let`");
            self.complain(Diagnostic::error(name.span, message).note(format!("write `let {text} = e; body`")));
            self.bump();
            self.expression();
            return self.error_from(name.span);
        }
        let diagnostic = Diagnostic::error(equals, "`=` is not an operator");
        self.complain(diagnostic.note("`=` gives a name to a value; equality is written `==`"));
        let span = name.span.to(value.span);
        Exp { kind: ExpKind::Binary(BinaryOp::Eq, equals, Box::new(name), Box::new(value)), span }
    }

    /// Whether the current token can begin an expression.
    pub(super) fn begins_expression(&self) -> bool {
        let token = self.token();
        binder_kind(token).is_some()
            || matches!(
                token,
                Token::Name
                    | Token::Int
                    | Token::Float
                    | Token::BadNumber
                    | Token::True
                    | Token::False
                    | Token::Not
                    | Token::Bang
                    | Token::Minus
                    | Token::Let
                    | Token::If
                    | Token::History
                    | Token::Loop
                    | Token::Hash
                    | Token::Bar
                    | Token::DoubleBar
                    | Token::ParenOpen
                    | Token::BracketOpen
                    | Token::BraceOpen
            )
    }

    fn prefix(&mut self) -> Exp {
        let start = self.span();
        if let Some(kind) = binder_kind(self.token())
            && self.begins_binder()
        {
            return self.binder(kind);
        }
        match self.token() {
            Token::Minus => {
                self.bump();
                self.unary(UnaryOp::Neg, start, NEGATE)
            }
            Token::Not => {
                self.bump();
                self.unary(UnaryOp::Not, start, COMPARISON)
            }
            Token::Bang => {
                self.complain(Diagnostic::error(start, "`!` is not an operator").note("negation is written `not a`"));
                self.bump();
                self.unary(UnaryOp::Not, start, COMPARISON)
            }
            Token::Plus => {
                self.report(Diagnostic::error(start, "`+` stands between two operands").note("a number has no leading `+`"));
                self.bump();
                self.operand(NEGATE)
            }
            Token::Let => self.bindings(),
            Token::If => self.branch(),
            Token::History => self.history(),
            Token::Loop => self.loop_exp(),
            Token::Bar | Token::DoubleBar => self.lambda(),
            Token::Hash => self.annotated(),
            _ => {
                let atom = self.atom();
                self.postfix(atom)
            }
        }
    }

    fn unary(&mut self, op: UnaryOp, start: Span, level: Level) -> Exp {
        let operand = self.operand(level);
        let span = start.to(operand.span);
        Exp { kind: ExpKind::Unary(op, Box::new(operand)), span }
    }

    /// Calls, indexing and fields behind an atom.
    fn postfix(&mut self, mut exp: Exp) -> Exp {
        loop {
            self.height += 1;
            if self.height > MAX_HEIGHT {
                return self.too_deep(exp.span);
            }
            let start = exp.span;
            let kind = match self.token() {
                Token::ParenOpen => {
                    if matches!(exp.kind, ExpKind::Int(_) | ExpKind::Float(_)) {
                        let diagnostic = Diagnostic::error(start, "a number cannot be called");
                        let note = format!("a product is written with `*`: `{} * (..)`", self.slice(start));
                        self.complain(diagnostic.note(note));
                        exp.kind = ExpKind::Error;
                    }
                    let opened = self.open(Token::ParenClose);
                    let (arguments, _) = self.list(opened, Token::ParenClose, "`,` or `)`", Parser::argument);
                    ExpKind::Call(Box::new(exp), arguments)
                }
                Token::BracketOpen => ExpKind::Index(Box::new(exp), self.subscripts()),
                Token::Dot if self.begins_field() => {
                    exp = self.field(exp);
                    continue;
                }
                Token::With => {
                    exp = self.update(exp);
                    continue;
                }
                _ => return exp,
            };
            exp = Exp { kind, span: start.to(self.previous()) };
        }
    }

    /// `e` or `name = e`
    pub(super) fn argument(&mut self) -> Argument {
        let name = (self.at(Token::Name) && self.peek(1) == Token::Equals).then(|| {
            let name = self.name("the name of an argument");
            self.bump();
            name
        });
        Argument { name, value: self.expression() }
    }

    /// `[i, a..b, :]`
    pub(super) fn subscripts(&mut self) -> Vec<Subscript> {
        let opened = self.open(Token::BracketClose);
        let (subscripts, _) = self.list(opened, Token::BracketClose, "`,` or `]`", Parser::subscript);
        if subscripts.is_empty() {
            let span = opened.to(self.previous());
            self.report(
                Diagnostic::error(span, "expected an index").note("`x[i]` takes one place, `x[a..b]` a slice, `x[:]` the whole axis"),
            );
        }
        subscripts
    }

    fn subscript(&mut self) -> Subscript {
        if self.at(Token::Colon) {
            return Subscript::All(self.bump());
        }
        let note = "a slice needs both ends: `x[a..b]` takes the places from `a` to `b - 1`";
        let start = self.span();
        let low = if self.at(Token::DotDot) {
            self.complain(Diagnostic::error(start, "this slice has no lower end").note(note));
            Exp { kind: ExpKind::Error, span: start }
        } else {
            self.expression()
        };
        match self.token() {
            Token::DotDot => {
                let dots = self.bump();
                if self.begins_expression() {
                    return Subscript::Slice(low, self.expression());
                }
                self.report(Diagnostic::error(low.span.to(dots), "this slice has no upper end").note(note));
                Subscript::Slice(low, Exp { kind: ExpKind::Error, span: dots })
            }
            Token::Colon => {
                let colon = self.span();
                self.complain(Diagnostic::error(colon, "a slice is written `a..b`").note("`:` alone keeps a whole axis"));
                self.bump();
                let high = if self.begins_expression() { self.expression() } else { Exp { kind: ExpKind::Error, span: colon } };
                Subscript::Slice(low, high)
            }
            _ => Subscript::At(low),
        }
    }
}
