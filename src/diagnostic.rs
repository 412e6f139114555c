//! What is told to a user: where (`Span`), what is wrong, and what would be right (`Diagnostic`).
//!
//! `Sources` holds the texts that spans point into; `render` draws diagnostics over them.

use ariadne::{Color, Config, IndexType, Report, ReportKind};
use std::borrow::Cow;
use std::fmt;

/// How many texts the library has. They come after the user's file; texts after them are the user's, too.
pub const LIBRARY_FILES: u32 = 9;

/// A stretch of source text, in bytes. `source` numbers the text: 0 is the user's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Span {
    pub source: u32,
    pub start: u32,
    pub end: u32,
}

impl Span {
    pub fn new(source: u32, start: usize, end: usize) -> Span {
        Span { source, start: start as u32, end: end as u32 }
    }
    /// Whether the text is the library's.
    pub fn is_of_library(self) -> bool {
        (1..=LIBRARY_FILES).contains(&self.source)
    }
    /// The smallest span that covers both.
    pub fn to(self, other: Span) -> Span {
        Span { source: self.source, start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Error,
    Warning,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    pub span: Span,
    pub text: String,
}

/// A message with the places it speaks of. The first label is the main place.
/// Style: lower case, no final stop; notes say what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    pub message: String,
    pub labels: Vec<Label>,
    pub notes: Vec<String>,
}

impl Diagnostic {
    pub fn error(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Error, span, message)
    }
    pub fn warning(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Warning, span, message)
    }
    fn new(severity: Severity, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity, message: message.into(), labels: vec![Label { span, text: String::new() }], notes: vec![] }
    }
    /// Says something at the main place.
    pub fn here(mut self, text: impl Into<String>) -> Diagnostic {
        self.labels[0].text = text.into();
        self
    }
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.labels.push(Label { span, text: text.into() });
        self
    }
    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }
}

/// The texts that are compiled together, in the order in which `Span::source` numbers them.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<(String, Cow<'static, str>)>,
}

impl Sources {
    pub fn new() -> Sources {
        Sources::default()
    }

    /// One text alone, as source 0.
    pub fn single(name: impl Into<String>, text: impl Into<String>) -> Sources {
        Sources { files: vec![(name.into(), Cow::Owned(text.into()))] }
    }

    /// Adds a text and returns its number.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<Cow<'static, str>>) -> u32 {
        self.files.push((name.into(), text.into()));
        self.files.len() as u32 - 1
    }

    pub fn name(&self, source: u32) -> &str {
        self.files.get(source as usize).map_or("?", |(name, _)| name)
    }

    pub fn text(&self, source: u32) -> &str {
        self.files.get(source as usize).map_or("", |(_, text)| text)
    }

    /// The text a span covers, as far as it exists.
    pub fn slice(&self, span: Span) -> &str {
        let text = self.text(span.source);
        &text[floor_boundary(text, span.start)..floor_boundary(text, span.end.max(span.start))]
    }

    /// Line and column (in characters) of a span's beginning, both counted from 1.
    pub fn position(&self, span: Span) -> (usize, usize) {
        let text = self.text(span.source);
        let before = &text[..floor_boundary(text, span.start)];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    /// `file.iv:3:14`
    pub fn place(&self, span: Span) -> String {
        let (line, column) = self.position(span);
        format!("{}:{line}:{column}", self.name(span.source))
    }

    /// The characters a span covers, as ariadne counts them.
    fn characters(&self, span: Span) -> std::ops::Range<usize> {
        let text = self.text(span.source);
        let start = floor_boundary(text, span.start);
        let end = floor_boundary(text, span.end).max(start);
        let before = text[..start].chars().count();
        before..before + text[start..end].chars().count()
    }
}

/// The last character boundary at or before a byte offset, so that a span never cuts a character.
fn floor_boundary(text: &str, offset: u32) -> usize {
    let mut at = (offset as usize).min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// More messages than this help nobody; the rest is only counted.
const MAX_DRAWN: usize = 50;

/// Draws the diagnostics one after another, in the order given. Without colour the result is plain text.
pub fn render(diagnostics: &[Diagnostic], sources: &Sources, color: bool) -> String {
    let mut drawn = Drawn { sources, texts: sources.files.iter().map(|(_, text)| ariadne::Source::from(text.as_ref())).collect() };
    let mut bytes = Vec::new();
    for diagnostic in diagnostics.iter().take(MAX_DRAWN) {
        let known = |label: &&Label| (label.span.source as usize) < sources.files.len();
        let mut labels: Vec<&Label> = diagnostic.labels.iter().filter(known).collect();
        let main = labels.first().map_or((0, 0..0), |label| (label.span.source, sources.characters(label.span)));
        let (kind, main_color) = match diagnostic.severity {
            Severity::Error => (ReportKind::Error, Color::Red),
            Severity::Warning => (ReportKind::Warning, Color::Yellow),
        };
        // Labels of one file are drawn in one excerpt only if they come in the order of its lines.
        let first = labels.first().copied();
        labels.sort_by_key(|label| (label.span.source != main.0, label.span));
        let config = Config::new().with_color(color).with_index_type(IndexType::Char);
        let mut report = Report::build(kind, main.clone()).with_config(config).with_message(&diagnostic.message);
        for label in labels {
            let is_main = first.is_some_and(|first| std::ptr::eq(first, label));
            // A label without words would not be drawn at all in plain text.
            let words = if label.text.is_empty() { "here" } else { &label.text };
            let drawn_label = ariadne::Label::new((label.span.source, sources.characters(label.span)))
                .with_color(if is_main { main_color } else { Color::Cyan })
                .with_priority(is_main as i32)
                .with_message(words);
            report.add_label(drawn_label);
        }
        for note in &diagnostic.notes {
            report.add_note(note);
        }
        report.finish().write(&mut drawn, &mut bytes).expect("writing to memory does not fail");
    }
    let drawn = String::from_utf8_lossy(&bytes);
    let mut text: String = drawn.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    if diagnostics.len() > MAX_DRAWN {
        text.push_str(&format!("{} more messages are not shown\n", diagnostics.len() - MAX_DRAWN));
    }
    text
}

/// The texts with their lines counted, under their numbers, as ariadne asks for them.
struct Drawn<'a> {
    sources: &'a Sources,
    texts: Vec<ariadne::Source<&'a str>>,
}

impl<'a> ariadne::Cache<u32> for &mut Drawn<'a> {
    type Storage = &'a str;

    fn fetch(&mut self, id: &u32) -> Result<&ariadne::Source<&'a str>, impl fmt::Debug> {
        self.texts.get(*id as usize).ok_or("no such source")
    }

    fn display<'b>(&self, id: &'b u32) -> Option<impl fmt::Display + 'b> {
        Some(self.sources.name(*id).to_string())
    }
}
