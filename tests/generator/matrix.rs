//! Which construct stood directly in which, how often.

use super::grammar::{Kind, allowed};
use super::{Generated, Tree};
use std::fmt::Write;

const KINDS: usize = Kind::ALL.len();

pub struct Matrix([[usize; KINDS]; KINDS]);

impl Matrix {
    pub fn new() -> Matrix {
        Matrix([[0; KINDS]; KINDS])
    }
    pub fn count(&self, parent: Kind, child: Kind) -> usize {
        self.0[parent as usize][child as usize]
    }
    /// How many constructs have not stood in this one yet.
    pub fn lacking(&self, parent: Kind) -> usize {
        Kind::ALL.iter().filter(|child| allowed(parent, **child) && self.count(parent, **child) == 0).count()
    }
    pub fn add(&mut self, program: &Generated) {
        program.definitions.iter().for_each(|d| self.add_tree(&d.body));
    }
    fn add_tree(&mut self, tree: &Tree) {
        for child in tree.children() {
            self.0[tree.kind as usize][child.kind as usize] += 1;
            self.add_tree(child);
        }
    }

    /// The pairs that the grammar allows and no program had.
    pub fn empty(&self) -> Vec<(Kind, Kind)> {
        let pairs = Kind::ALL.iter().flat_map(|p| Kind::ALL.iter().map(move |c| (*p, *c)));
        pairs.filter(|(p, c)| allowed(*p, *c) && self.count(*p, *c) == 0).collect()
    }

    /// Rows are parents, columns are children; a dot where the grammar allows nothing.
    pub fn table(&self) -> String {
        let mut out = String::from("construct in construct (row: outer, column: inner)\n");
        let names: Vec<String> = Kind::ALL.iter().map(|k| format!("{k:?}")).collect();
        let height = names.iter().map(String::len).max().unwrap_or(0);
        for line in 0..height {
            let _ = write!(out, "{:>10} ", "");
            for name in &names {
                let padded = format!("{name:>height$}");
                let _ = write!(out, "{:>4}", &padded[line..line + 1]);
            }
            out.push('\n');
        }
        for parent in Kind::ALL {
            let _ = write!(out, "{:>10} ", format!("{parent:?}"));
            for child in Kind::ALL {
                let cell = if allowed(parent, child) { self.count(parent, child).min(999).to_string() } else { ".".to_string() };
                let _ = write!(out, "{cell:>4}");
            }
            out.push('\n');
        }
        out
    }
}
