//! Laying out text on lines: a document says where lines may break, `render` breaks them where they are too long.
//!
//! A group is set on one line if it fits (with what follows it up to the next break), else all its own breaks become
//! line breaks; the groups inside it decide for themselves.

pub enum Doc {
    Text(String),
    /// A space, or a line break.
    Line,
    /// Nothing, or a line break.
    Soft,
    /// A line break always; the groups around it are broken.
    Hard,
    /// Lines that begin in here are indented one step more.
    Nest(Box<Doc>),
    Group(Box<Doc>),
    Concat(Vec<Doc>),
}

pub const WIDTH: usize = 120;
const STEP: usize = 2;

pub fn text(s: impl Into<String>) -> Doc {
    Doc::Text(s.into())
}
pub fn concat(parts: impl IntoIterator<Item = Doc>) -> Doc {
    Doc::Concat(parts.into_iter().collect())
}
pub fn nest(doc: Doc) -> Doc {
    Doc::Nest(Box::new(doc))
}
pub fn group(doc: Doc) -> Doc {
    Doc::Group(Box::new(doc))
}

/// `open part, part, part close`, the parts on lines of their own where they do not fit on one.
pub fn list(open: &str, parts: Vec<Doc>, close: &str) -> Doc {
    let mut inner = vec![Doc::Soft];
    let last = parts.len().saturating_sub(1);
    for (k, part) in parts.into_iter().enumerate() {
        inner.push(part);
        if k < last {
            inner.push(text(","));
            inner.push(Doc::Line);
        }
    }
    group(concat([text(open), nest(Doc::Concat(inner)), Doc::Soft, text(close)]))
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Flat,
    Broken,
}

pub fn render(doc: &Doc) -> String {
    let mut out = String::new();
    let mut column = 0;
    let mut stack = vec![(0usize, Mode::Broken, doc)];
    while let Some((indent, mode, doc)) = stack.pop() {
        match doc {
            Doc::Text(s) => {
                out.push_str(s);
                column += s.chars().count();
            }
            Doc::Concat(parts) => stack.extend(parts.iter().rev().map(|p| (indent, mode, p))),
            Doc::Nest(inner) => stack.push((indent + STEP, mode, inner)),
            Doc::Group(inner) => {
                let room = WIDTH.saturating_sub(column);
                let mode = if fits(room, inner, &stack) { Mode::Flat } else { Mode::Broken };
                stack.push((indent, mode, inner));
            }
            Doc::Line if mode == Mode::Flat => {
                out.push(' ');
                column += 1;
            }
            Doc::Soft if mode == Mode::Flat => {}
            Doc::Line | Doc::Soft | Doc::Hard => {
                out.truncate(out.trim_end_matches(' ').len());
                out.push('\n');
                out.extend(std::iter::repeat_n(' ', indent));
                column = indent;
            }
        }
    }
    out
}

/// Whether `doc` on one line, and what follows it up to a line break, has at most `room` columns.
fn fits(room: usize, doc: &Doc, rest: &[(usize, Mode, &Doc)]) -> bool {
    let mut left = room as i64;
    let mut rest = rest.iter().rev();
    let mut stack = vec![(Mode::Flat, doc, true)];
    loop {
        let Some((mode, doc, own)) = stack.pop() else {
            match rest.next() {
                Some((_, mode, doc)) => stack.push((*mode, doc, false)),
                None => return true,
            }
            continue;
        };
        match doc {
            Doc::Text(s) => {
                left -= s.chars().count() as i64;
                if left < 0 {
                    return false;
                }
            }
            Doc::Concat(parts) => stack.extend(parts.iter().rev().map(|p| (mode, p, own))),
            // What follows may break at its own groups, so it is measured only up to there.
            Doc::Group(inner) if !own => stack.push((Mode::Broken, inner, own)),
            Doc::Nest(inner) | Doc::Group(inner) => stack.push((mode, inner, own)),
            Doc::Hard => return !own,
            Doc::Line | Doc::Soft if mode == Mode::Broken => return true,
            Doc::Line => left -= 1,
            Doc::Soft => {}
        }
    }
}
