//! Text to tokens. White space and comments (`--` to the end of the line) disappear; what no token begins with
//! is reported and becomes one `Token::Bad`, so that the parser knows that something stood there.
//!
//! Spellings of other languages (`&&`, `**`, `%`, ...) are tokens too: the parser can say what to write instead.

use crate::diagnostic::{Diagnostic, Span};
use logos::{Filter, Logos};

#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq)]
#[logos(skip "[ \t\r\n\u{c}\u{feff}]+")]
pub enum Token {
    #[regex("[A-Za-z_][A-Za-z0-9_]*")]
    Name,
    /// A name with letters beyond ASCII; `tokenize` reports it and makes it a `Name`.
    #[regex(r"[\p{L}_][\p{L}\p{N}_]*", priority = 1)]
    ForeignName,
    #[regex("[0-9][0-9_]*", priority = 5)]
    Int,
    #[regex(r"[0-9][0-9_]*\.[0-9][0-9_]*([eE][+-]?[0-9]+)?", priority = 6)]
    #[regex("[0-9][0-9_]*[eE][+-]?[0-9]+", priority = 6)]
    Float,
    #[regex("[0-9][0-9_]*[A-Za-z][A-Za-z0-9_]*", priority = 4)]
    BadNumber,

    #[token("def")]
    Def,
    #[token("let")]
    Let,
    #[token("in")]
    In,
    #[token("for")]
    For,
    #[token("sum")]
    Sum,
    #[token("prod")]
    Prod,
    #[token("max")]
    Max,
    #[token("min")]
    Min,
    #[token("argmax")]
    ArgMax,
    #[token("argmin")]
    ArgMin,
    #[token("any")]
    Any,
    #[token("all")]
    All,
    #[token("if")]
    If,
    #[token("then")]
    Then,
    #[token("else")]
    Else,
    #[token("and")]
    And,
    #[token("or")]
    Or,
    #[token("not")]
    Not,
    #[token("div")]
    Div,
    #[token("mod")]
    Mod,
    #[token("true")]
    True,
    #[token("false")]
    False,
    #[token("history")]
    History,
    #[token("do")]
    Do,
    #[token("loop")]
    Loop,
    #[token("while")]
    While,
    #[token("with")]
    With,
    #[token("type")]
    Type,

    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("*")]
    Star,
    #[token("/")]
    Slash,
    #[token("^")]
    Caret,
    #[token("==")]
    EqEq,
    #[token("!=")]
    NotEq,
    #[token("<")]
    Lt,
    #[token("<=")]
    Le,
    #[token(">")]
    Gt,
    #[token(">=")]
    Ge,
    #[token("->")]
    Arrow,
    #[token("=")]
    Equals,
    #[token("(")]
    ParenOpen,
    #[token(")")]
    ParenClose,
    #[token("[")]
    BracketOpen,
    #[token("]")]
    BracketClose,
    #[token("{")]
    BraceOpen,
    #[token("}")]
    BraceClose,
    #[token(",")]
    Comma,
    #[token(";")]
    Semicolon,
    #[token(":")]
    Colon,
    #[token(".")]
    Dot,
    #[token("..")]
    DotDot,
    #[token("|")]
    Bar,
    #[token("#")]
    Hash,
    #[token("?")]
    Question,

    /// Kept only in `a--b`, where a comment cannot be meant; everywhere else the callback skips the line.
    #[token("--", comment)]
    DoubleMinus,
    #[token("&&")]
    #[token("&")]
    Ampersand,
    #[token("||")]
    DoubleBar,
    #[token("!")]
    Bang,
    #[token("**")]
    DoubleStar,
    #[token("//")]
    DoubleSlash,
    #[token("%")]
    Percent,
    #[token("=>")]
    FatArrow,
    #[token(":=")]
    ColonEquals,

    /// Characters that mean nothing; already reported.
    Bad,
    /// The end of the text; its span is empty and stands behind the last token.
    End,
}

impl Token {
    /// Words that cannot be names.
    pub fn is_keyword(self) -> bool {
        (Token::Def as u8..=Token::Type as u8).contains(&(self as u8))
    }
}

fn comment(lexer: &mut logos::Lexer<Token>) -> Filter<()> {
    let before = lexer.source()[..lexer.span().start].chars().next_back();
    let after = lexer.remainder().chars().next();
    let ends_operand = |c: char| c.is_alphanumeric() || matches!(c, '_' | ')' | ']');
    let begins_operand = |c: char| c.is_alphanumeric() || matches!(c, '_' | '(');
    if before.is_some_and(ends_operand) && after.is_some_and(begins_operand) {
        return Filter::Emit(());
    }
    let line = lexer.remainder().find('\n').unwrap_or(lexer.remainder().len());
    lexer.bump(line);
    Filter::Skip
}

/// All tokens with their spans, `Token::End` last.
pub fn tokenize(source: u32, text: &str) -> (Vec<(Token, Span)>, Vec<Diagnostic>) {
    let mut tokens: Vec<(Token, Span)> = Vec::new();
    let mut diagnostics = Vec::new();
    for (token, range) in Token::lexer(text).spanned() {
        let span = Span::new(source, range.start, range.end);
        match token {
            Ok(Token::DoubleMinus) => {
                diagnostics.push(
                    Diagnostic::error(span, "`--` begins a comment")
                        .here("this would hide the rest of the line")
                        .note("to subtract a negation write `a - -b`; before a comment write a space"),
                );
                tokens.push((Token::Minus, Span { end: span.start + 1, ..span }));
                tokens.push((Token::Minus, Span { start: span.start + 1, ..span }));
            }
            Ok(Token::ForeignName) => {
                let diagnostic = Diagnostic::error(span, format!("the name `{}` has letters that names cannot have", &text[range]));
                diagnostics.push(diagnostic.note("names consist of the letters `a` to `z` and `A` to `Z`, digits and `_`"));
                tokens.push((Token::Name, span));
            }
            Ok(token) => tokens.push((token, span)),
            Err(()) => match tokens.last_mut() {
                Some((Token::Bad, last)) if last.end == span.start => last.end = span.end,
                _ => tokens.push((Token::Bad, span)),
            },
        }
    }
    let bad = tokens.iter().filter(|(token, _)| *token == Token::Bad);
    diagnostics.extend(bad.map(|&(_, span)| bad_characters(span, &text[span.start as usize..span.end as usize])));
    diagnostics.sort_by_key(|diagnostic| diagnostic.labels[0].span);
    let end = tokens.last().map_or(0, |(_, span)| span.end as usize);
    tokens.push((Token::End, Span::new(source, end, end)));
    (tokens, diagnostics)
}

fn bad_characters(span: Span, text: &str) -> Diagnostic {
    // A control character would disturb the terminal, so it is shown by its number.
    let shown: String = text.chars().map(|c| if c.is_control() { c.escape_unicode().to_string() } else { c.to_string() }).collect();
    let noun = if text.chars().nth(1).is_some() { "characters" } else { "character" };
    let diagnostic = Diagnostic::error(span, format!("unexpected {noun} `{shown}`"));
    let first = text.chars().next().unwrap_or(' ');
    match first {
        '≤' => diagnostic.note("write `<=`"),
        '≥' => diagnostic.note("write `>=`"),
        '≠' => diagnostic.note("write `!=`"),
        '→' => diagnostic.note("write `->`"),
        '·' | '×' | '⋅' => diagnostic.note("a product is written `a * b`"),
        '−' | '–' => diagnostic.note("minus is written `-`"),
        '∑' => diagnostic.note("a sum is written `sum i. e`"),
        '"' | '\'' => diagnostic.note("there are no strings, and names end in a letter, a digit or `_`"),
        '@' => diagnostic.note("a matrix product is written `for i, j. sum k. A[i, k] * B[k, j]`"),
        _ if first.is_whitespace() => diagnostic.note("only spaces, tabs and line ends may stand between words"),
        _ => diagnostic,
    }
}

/// A comment, from its `--` to the end of its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comment<'a> {
    pub text: &'a str,
    /// Whether a token stands before it on its line.
    pub behind_token: bool,
    /// Whether the line above it is empty.
    pub after_blank: bool,
    /// Whether it stands at the beginning of its line.
    pub at_margin: bool,
}

/// What stands between two tokens of a text without bad characters: the comments, and how the second token is set off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gap<'a> {
    pub comments: Vec<Comment<'a>>,
    /// Whether the token that follows begins a line.
    pub newline: bool,
    /// Whether the line above the token that follows is empty.
    pub blank: bool,
}

/// The gap between a token that ends at `start` (0: the beginning of the text) and one that begins at `end`.
pub fn gap(text: &str, start: usize, end: usize) -> Gap<'_> {
    let mut gap = Gap::default();
    let lines: Vec<&str> = text[start..end].split('\n').collect();
    for (k, line) in lines.iter().enumerate() {
        let behind_token = k == 0 && start > 0;
        let trimmed = line.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        if !trimmed.is_empty() {
            let at_margin = !behind_token && line.trim_start_matches('\u{feff}').starts_with("--");
            gap.comments.push(Comment { text: trimmed, behind_token, after_blank: gap.blank, at_margin });
            gap.blank = false;
        } else if !behind_token && k + 1 < lines.len() {
            gap.blank = true;
        }
    }
    gap.newline = lines.len() > 1;
    gap
}
