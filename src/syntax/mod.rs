//! Text to syntax tree: `lexer` cuts the text into tokens, `parser` builds the tree of `ast` from them;
//! `names` finds what a definition takes from outside; `format` writes a text as it should be laid out.

pub mod ast;
pub mod format;
pub mod lexer;
pub mod names;
pub mod parser;

pub use parser::{parse, parse_expression};
