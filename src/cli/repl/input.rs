//! What an input is, and whether it is all there.

use iverson::diagnostic::{Diagnostic, Severity};
use iverson::syntax::ast::{Exp, ExpKind, Module, Pattern, TypeExp};
use iverson::syntax::lexer::{Token, tokenize};
use iverson::syntax::{parse, parse_expression};

pub enum Input {
    Nothing,
    /// `:show f grad`
    Command(String),
    Definitions(Module),
    /// `let p = e; let q = f`, without an end.
    Bindings(Vec<Binding>),
    Expression(Exp),
    Wrong(Vec<Diagnostic>),
}

pub struct Binding {
    pub pattern: Pattern,
    pub ty: Option<TypeExp>,
    pub value: Exp,
}

/// Reads an input, whose text has this number.
pub fn read(source: u32, text: &str) -> Input {
    let (tokens, _) = tokenize(source, text);
    let first = tokens[0].0;
    if let Some(command) = text.trim_start().strip_prefix(':') {
        return Input::Command(command.trim().to_string());
    }
    match first {
        Token::End => Input::Nothing,
        Token::Def | Token::Type => match parse(source, text) {
            (module, diagnostics) if is_fine(&diagnostics) => Input::Definitions(module),
            (_, diagnostics) => Input::Wrong(diagnostics),
        },
        Token::Let => match parse_expression(source, text) {
            (exp, diagnostics) if is_fine(&diagnostics) => Input::Expression(exp),
            (_, diagnostics) => bindings(source, text).map_or(Input::Wrong(diagnostics), Input::Bindings),
        },
        Token::Name if tokens.get(1).is_some_and(|(t, _)| *t == Token::Equals) => {
            let name = &text[tokens[0].1.start as usize..tokens[0].1.end as usize];
            let diagnostic = Diagnostic::error(tokens[1].1, format!("`{name}` gets a value by `let`"));
            Input::Wrong(vec![diagnostic.note(format!("write `let {name} = e`"))])
        }
        _ => {
            let text =
                if tokens.iter().rev().nth(1).is_some_and(|(t, _)| *t == Token::Semicolon) { without_end(text, &tokens) } else { text };
            match parse_expression(source, text) {
                (exp, diagnostics) if is_fine(&diagnostics) => Input::Expression(exp),
                (_, diagnostics) => Input::Wrong(diagnostics),
            }
        }
    }
}

fn is_fine(diagnostics: &[Diagnostic]) -> bool {
    !diagnostics.iter().any(|d| d.severity == Severity::Error)
}

/// The text before its last token.
fn without_end<'a>(text: &'a str, tokens: &[(Token, iverson::diagnostic::Span)]) -> &'a str {
    let end = tokens.iter().rev().nth(1).map_or(text.len(), |(_, span)| span.start as usize);
    &text[..end]
}

/// Bindings that nothing follows.
fn bindings(source: u32, text: &str) -> Option<Vec<Binding>> {
    let (tokens, _) = tokenize(source, text);
    let ended = tokens.iter().rev().nth(1).is_some_and(|(t, _)| *t == Token::Semicolon);
    // A comment would hide what stands behind it.
    let (mut exp, diagnostics) = parse_expression(source, &format!("{text}\n{}0", if ended { "" } else { ";" }));
    if !is_fine(&diagnostics) {
        return None;
    }
    let mut bindings = vec![];
    while let ExpKind::Let(pattern, ty, value, body) = exp.kind {
        bindings.push(Binding { pattern, ty, value: *value });
        exp = *body;
    }
    Some(bindings)
}

/// Whether more lines belong to the text: what is wrong with it is wrong at its end. An empty line ends any input.
pub fn is_unfinished(text: &str) -> bool {
    if text.trim_start().starts_with(':') || text.ends_with("\n\n") || text.ends_with("\n") && text.trim().is_empty() {
        return false;
    }
    let Input::Wrong(diagnostics) = read(0, text) else { return false };
    let (tokens, _) = tokenize(0, text);
    let end = tokens.last().map_or(0, |(_, span)| span.start);
    let first = diagnostics.iter().find(|d| d.severity == Severity::Error);
    first.is_some_and(|d| d.labels.first().is_some_and(|label| label.span.start >= end))
}
