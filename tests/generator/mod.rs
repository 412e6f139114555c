//! Random well-typed programs, as text, from a typed grammar of every construct of the core language.
//!
//! `grammar.rs` says which constructs make a value of which class and what they are made of; `grow.rs` grows programs by
//! it, preferring constructs that were seldom seen in their place (`functional.rs`: loops, lambdas and combinators;
//! `structured.rs`: records, loops with summed results, sizes that depend on
//! data, definitions that take functions or any type or have derivatives of
//! their own);
//! `shrink.rs` makes a failing program smaller;
//! `matrix.rs` counts which construct stood directly in which.

mod functional;
pub mod grammar;
pub mod grow;
pub mod matrix;
pub mod shrink;
mod structured;

use grammar::Kind;
use std::fmt::Write;

/// A size as the text has it: one of the function's sizes, plus a constant, or a constant alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dim {
    Named(&'static str),
    Plus1(&'static str),
    Const(i64),
}

impl Dim {
    pub fn text(self) -> String {
        match self {
            Dim::Named(n) => n.to_string(),
            Dim::Plus1(n) => format!("{n} + 1"),
            Dim::Const(c) => c.to_string(),
        }
    }
    pub fn value(self, sizes: &[(&str, i64)]) -> i64 {
        let named = |n| sizes.iter().find(|(name, _)| *name == n).expect("every size has a value").1;
        match self {
            Dim::Named(n) => named(n),
            Dim::Plus1(n) => named(n) + 1,
            Dim::Const(c) => c,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ty {
    F64,
    I64,
    /// An `i64` that is a place on an axis of this size.
    Place(Dim),
    Bool,
    Floats(Vec<Dim>),
    /// An array of places on an axis of the second size.
    Places(Dim, Dim),
    Tuple(Vec<Ty>),
}

impl Ty {
    pub fn text(&self) -> String {
        match self {
            Ty::F64 => "f64".into(),
            Ty::I64 | Ty::Place(_) => "i64".into(),
            Ty::Bool => "bool".into(),
            Ty::Floats(dims) => format!("[{}]f64", dims.iter().map(|d| d.text()).collect::<Vec<_>>().join(", ")),
            Ty::Places(d, _) => format!("[{}]i64", d.text()),
            Ty::Tuple(parts) => format!("({})", parts.iter().map(Ty::text).collect::<Vec<_>>().join(", ")),
        }
    }
    pub fn has_float(&self) -> bool {
        match self {
            Ty::F64 | Ty::Floats(_) => true,
            Ty::I64 | Ty::Place(_) | Ty::Bool | Ty::Places(..) => false,
            Ty::Tuple(parts) => parts.iter().any(Ty::has_float),
        }
    }
}

/// An expression: a construct, its type, and its text around its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    pub kind: Kind,
    pub ty: Ty,
    pub pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    Text(String),
    Child(Tree),
}

impl Tree {
    pub fn children(&self) -> impl Iterator<Item = &Tree> {
        self.pieces.iter().filter_map(|p| match p {
            Piece::Child(c) => Some(c),
            Piece::Text(_) => None,
        })
    }
    pub fn text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }
    fn write(&self, out: &mut String) {
        for piece in &self.pieces {
            match piece {
                Piece::Text(t) => out.push_str(t),
                Piece::Child(c) => {
                    let inner = c.text();
                    let atom = inner.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
                    let _ = if atom { write!(out, "{inner}") } else { write!(out, "({inner})") };
                }
            }
        }
    }
    /// `f64(0.5)` for `0.5`: elsewhere than beside other floats a literal would be of another type once it is narrowed.
    fn with_typed_literals(&self) -> Tree {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) if self.kind == Kind::Lit && self.ty == Ty::F64 => Piece::Text(format!("f64({text})")),
            Piece::Text(text) => Piece::Text(text.clone()),
            Piece::Child(child) => Piece::Child(child.with_typed_literals()),
        });
        Tree { kind: self.kind, ty: self.ty.clone(), pieces: pieces.collect() }
    }
    pub fn node_count(&self) -> usize {
        1 + self.children().map(Tree::node_count).sum::<usize>()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    pub name: String,
    pub params: Vec<(String, Ty)>,
    pub result: Ty,
    pub body: Tree,
}

/// Of which types the numbers of a program are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// All floats are `f64`, all integers `i64`.
    Wide,
    /// All floats are `f32`.
    Single,
    /// The vectors given to the program are of `f32` and `i32`, and are converted.
    Mixed,
}

/// The last definition is the one to call; it takes the sizes `n` and `m`.
#[derive(Clone, Debug, PartialEq)]
pub struct Generated {
    pub definitions: Vec<Definition>,
    pub width: Width,
}

impl Generated {
    pub fn main(&self) -> &Definition {
        self.definitions.last().expect("a program has a definition")
    }
    /// With more definitions behind, which are in `f64` as the others are before they are narrowed.
    pub fn text_with(&self, more: &str) -> String {
        let mut out = String::new();
        for (name, definition) in structured::HELPERS {
            if self.definitions.iter().any(|d| d.body.text().contains(name)) {
                out += definition;
            }
        }
        for (k, d) in self.definitions.iter().enumerate() {
            let main = k + 1 == self.definitions.len();
            let params: Vec<String> =
                d.params.iter().map(|(name, ty)| format!("{name}: {}", if main { self.given(ty) } else { ty.text() })).collect();
            let _ = write!(out, "def {}({}) -> {} =\n  ", d.name, params.join(", "), d.result.text());
            for (name, ty) in d.params.iter().filter(|(_, ty)| main && self.given(ty) != ty.text()) {
                let wide = if ty.has_float() { "f64" } else { "i64" };
                let _ = write!(out, "let {name} = for i. {wide}({name}[i]); ");
            }
            let body = if self.width == Width::Single { d.body.with_typed_literals() } else { d.body.clone() };
            let _ = writeln!(out, "{}", body.text());
        }
        out += more;
        if self.width == Width::Single { out.replace("f64", "f32") } else { out }
    }
    pub fn text(&self) -> String {
        self.text_with("")
    }
    /// Whether derivatives end somewhere, so that differences are none.
    pub fn stops(&self) -> bool {
        self.definitions.iter().any(|d| d.body.text().contains(structured::STOP))
    }
    /// The type of a parameter of the last definition.
    pub fn given(&self, ty: &Ty) -> String {
        let text = ty.text();
        match ty {
            Ty::Floats(dims) if dims.len() == 1 && self.width == Width::Mixed => text.replace("f64", "f32"),
            Ty::Places(..) if self.width == Width::Mixed => text.replace("i64", "i32"),
            _ => text,
        }
    }
}

/// A small random number generator (splitmix64), so that a seed means the same program everywhere.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e3779b97f4a7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
        z ^ (z >> 31)
    }
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
    /// Between -1.5 and 1.5, and no round number.
    pub fn float(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64 * 3.0 - 1.5
    }
}
