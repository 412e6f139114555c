//! Text to syntax tree: `lexer` cuts the text into tokens, `parser` builds the tree of `ast` from them.

pub mod ast;
pub mod lexer;
pub mod parser;

pub use parser::{parse, parse_expression};
