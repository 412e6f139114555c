//! A text laid out as it should be: the same tokens and comments on other lines.
//!
//! `tree` finds what belongs together, `arrange` says where lines may break, `layout` breaks them.

mod arrange;
mod tree;

use super::ast::Module;
use super::parse;
use crate::diagnostic::{Diagnostic, Severity};
use crate::layout::render;
use arrange::Arrange;

/// The text laid out, or why it cannot be read. Formatting what this gives gives the same again.
pub fn format(text: &str) -> Result<String, Vec<Diagnostic>> {
    let (module, diagnostics) = parse(0, text);
    if diagnostics.iter().any(|d| d.severity == Severity::Error) {
        return Err(diagnostics);
    }
    let mut leaves = tree::leaves(text);
    let (items, end) = tree::items(&mut leaves);
    let mut formatted = render(&Arrange { leaves: &leaves }.text(&items, end));
    if !formatted.is_empty() {
        formatted.push('\n');
    }
    let (again, _) = parse(0, &formatted);
    assert!(same(&module, &again) && comments(text) == comments(&formatted), "format: the program would change");
    Ok(formatted)
}

/// Whether two programs differ in nothing but where they stand. What `Debug` shows is all of a tree, whatever constructs
/// it has.
fn same(a: &Module, b: &Module) -> bool {
    fn without_spans(module: &Module) -> String {
        let shown = format!("{module:?}");
        let mut parts = shown.split("Span {");
        let first = parts.next().unwrap_or_default().to_string();
        parts.fold(first, |text, part| text + part.split_once('}').map_or(part, |(_, rest)| rest))
    }
    without_spans(a) == without_spans(b)
}

/// The comments of a text, in order.
fn comments(text: &str) -> Vec<&str> {
    tree::leaves(text).iter().flat_map(|l| l.before.iter().map(|c| c.text).chain(l.behind.iter().copied()).collect::<Vec<_>>()).collect()
}
