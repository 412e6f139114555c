//! Laying out text on lines: a document says where lines may break, `render` breaks them where they are too long.
//!
//! A group is set on one line if it fits (with what follows it up to the next break), else all its own breaks become
//! line breaks; the groups inside it decide for themselves. A remark ends its line whatever comes, so what follows it
//! begins the next one.

pub enum Doc {
    Text(String),
    /// A space, or a line break.
    Line,
    /// Nothing, or a line break.
    Soft,
    /// A line break always; the groups around it are broken.
    Hard,
    /// An empty line before the line that begins here, if one does.
    Blank,
    /// Lines that begin in here are indented one step more.
    Nest(Box<Doc>),
    /// Lines that begin in here begin where this does; if that is far to the right, all of it goes to a new line.
    Hang(Box<Doc>),
    Group(Box<Doc>),
    Concat(Vec<Doc>),
    /// A comment behind what stands on the line.
    Remark(String),
    /// A comment on a line of its own, perhaps with an empty line before it.
    Aside(String, bool),
}

pub const WIDTH: usize = 120;
const STEP: usize = 2;
/// The last column at which something may hang.
const HANG: usize = WIDTH / 2;

pub fn text(s: impl Into<String>) -> Doc {
    Doc::Text(s.into())
}
pub fn concat(parts: impl IntoIterator<Item = Doc>) -> Doc {
    Doc::Concat(parts.into_iter().collect())
}
pub fn nest(doc: Doc) -> Doc {
    Doc::Nest(Box::new(doc))
}
pub fn hang(doc: Doc) -> Doc {
    Doc::Hang(Box::new(doc))
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
    let mut page = Page::default();
    let mut stack = vec![(0usize, Mode::Broken, doc)];
    while let Some((indent, mode, doc)) = stack.pop() {
        match doc {
            Doc::Text(s) => {
                if page.ended && !s.is_empty() {
                    page.line(indent);
                }
                page.push(s);
            }
            Doc::Concat(parts) => stack.extend(parts.iter().rev().map(|p| (indent, mode, p))),
            Doc::Nest(inner) => stack.push((indent + STEP, mode, inner)),
            Doc::Hang(inner) => {
                let mut start = page.column;
                if page.ended {
                    start = indent + STEP;
                } else if mode == Mode::Broken && start > HANG {
                    start = indent + STEP;
                    page.line(start);
                }
                stack.push((start, mode, inner));
            }
            Doc::Group(inner) => {
                let room = WIDTH.saturating_sub(page.column);
                let mode = if !page.ended && fits(room, inner, &stack) { Mode::Flat } else { Mode::Broken };
                stack.push((indent, mode, inner));
            }
            Doc::Line if mode == Mode::Flat && !page.ended => page.push(" "),
            Doc::Soft if mode == Mode::Flat && !page.ended => {}
            Doc::Line | Doc::Soft | Doc::Hard => page.line(indent),
            Doc::Blank => {
                page.blank = page.ended || page.at_start();
                if page.at_start() {
                    page.line_unless_begun(page.column);
                }
            }
            Doc::Remark(s) => {
                page.push(if page.at_start() { "" } else { " " });
                page.push(s);
                page.ended = true;
            }
            Doc::Aside(s, set_off) => {
                page.blank = *set_off;
                page.line_unless_begun(indent);
                page.push(s);
                page.ended = true;
            }
        }
    }
    page.out
}

/// The text so far.
#[derive(Default)]
struct Page {
    out: String,
    column: usize,
    /// Whether the line has a comment, behind which nothing can stand.
    ended: bool,
    /// Whether the next line break leaves an empty line.
    blank: bool,
}

impl Page {
    fn push(&mut self, s: &str) {
        self.out.push_str(s);
        self.column += s.chars().count();
    }
    /// Whether nothing stands on the line yet.
    fn at_start(&self) -> bool {
        let written = self.out.trim_end_matches(' ');
        written.is_empty() || written.ends_with('\n')
    }
    fn line(&mut self, indent: usize) {
        self.out.truncate(self.out.trim_end_matches(' ').len());
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        self.begin(indent);
    }
    fn line_unless_begun(&mut self, indent: usize) {
        if self.at_start() {
            self.out.truncate(self.out.trim_end_matches(' ').len());
            self.begin(indent);
        } else {
            self.line(indent);
        }
    }
    fn begin(&mut self, indent: usize) {
        if std::mem::take(&mut self.blank) && !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.column = indent;
        self.ended = false;
    }
}

/// Whether `doc` on one line, and what follows it up to a line break, has at most `room` columns.
fn fits(room: usize, doc: &Doc, rest: &[(usize, Mode, &Doc)]) -> bool {
    let mut left = room as i64;
    let mut rest = rest.iter().rev();
    let mut stack = vec![(Mode::Flat, doc, true)];
    let mut ended = false;
    loop {
        let Some((mode, doc, own)) = stack.pop() else {
            match rest.next() {
                Some((_, mode, doc)) if !ended => stack.push((*mode, doc, false)),
                _ => return true,
            }
            continue;
        };
        match doc {
            Doc::Text(s) => {
                left -= s.chars().count() as i64;
                if left < 0 || (ended && !s.is_empty()) {
                    return false;
                }
            }
            Doc::Concat(parts) => stack.extend(parts.iter().rev().map(|p| (mode, p, own))),
            // What follows may break at its own groups, so it is measured only up to there.
            Doc::Group(inner) if !own => stack.push((Mode::Broken, inner, own)),
            Doc::Nest(inner) | Doc::Hang(inner) | Doc::Group(inner) => stack.push((mode, inner, own)),
            Doc::Hard | Doc::Aside(..) => return !own,
            Doc::Line | Doc::Soft if mode == Mode::Broken => return true,
            Doc::Line => left -= 1,
            Doc::Soft | Doc::Blank => {}
            // A comment may stand behind the right end of the page, but nothing may stand behind a comment.
            Doc::Remark(_) if !own => return true,
            Doc::Remark(_) => ended = true,
        }
    }
}
