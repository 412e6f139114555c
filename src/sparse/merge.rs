//! Compressed rows of streams that cross: entries of a row whose order is not known, and of which several may be at one place.
//!
//! In: rows of which there is a formula but for the order inside of a row, and how many entries of it meet. Out: the arrays of
//! compressed rows. Each row is put in order by itself: the rank of an entry is how many columns of its row are before its own
//! (`row.rs`), and then
//!
//! ```text
//! width of a row = 1 + its greatest rank, or 0 if it has no entries
//! place of an entry = sum of the widths of the rows before + its rank
//! ```
//!
//! This is less than sorting all entries, where rows are short.

use super::Listed;
use super::row::{Of, Order};
use super::rows::{Rows, joined};
use crate::ir::build::*;
use crate::ir::facts::Facts;
use crate::ir::*;

/// The ranks of the entries, and where rows begin, as names of arrays, and how to compute these.
struct Ranked {
    bindings: Vec<(Vec<Var>, Exp)>,
    rank: Var,
    starts: Var,
}

impl Rows<'_> {
    /// How many entries are stored.
    pub fn merged_count(&self, vars: &mut Vars, facts: &Facts, library: &[FunctionId]) -> Exp {
        let Ranked { bindings, starts, .. } = self.ranked(vars, facts, library);
        lets(bindings, index(starts, vec![size_exp(&self.count())], Site::default()))
    }

    /// `(indptr, indices, data)`, the latter two of so many places.
    pub fn merged(&self, vars: &mut Vars, facts: &Facts, stored: Var, library: &[FunctionId], narrow: Scalar) -> Exp {
        let Ranked { mut bindings, rank, starts } = self.ranked(vars, facts, library);
        let asked = [Of::Rows, Of::Columns(Scalar::I64), Of::Values(self.matrix.scalar)];
        let [row, col, data] = asked.map(|of| self.flat(vars, facts, of, &mut bindings));
        let t = vars.fresh("t", Type::I64);
        let at = |v: Var, k: Exp| index(v, vec![k], Site::default());
        let all = for_(t, self.stored(), add(at(starts, at(row, Exp::Var(t))), at(rank, Exp::Var(t))));
        let place = vars.fresh("place", type_of_exp(vars, &all));
        bindings.push((vec![place], all));
        let listed = Listed { bindings, indptr: Exp::Var(starts), count: self.stored(), col, data, place };
        self.matrix.compressed(vars, listed, stored, library, narrow)
    }

    fn ranked(&self, vars: &mut Vars, facts: &Facts, library: &[FunctionId]) -> Ranked {
        let mut bindings = vec![];
        let rank = self.flat(vars, facts, Of::Ranks, &mut bindings);
        let ends = self.count().add(&Size::constant(1));
        let r = vars.fresh("r", Type::I64);
        let [begin, starts] = ["begin", "starts"].map(|name| vars.fresh(name, Type::Array(vec![ends.clone()], Scalar::I64)));
        bindings.push((vec![begin], for_(r, ends, self.start(Exp::Var(r)))));
        bindings.push((vec![starts], Exp::Call(library[4], vec![Exp::Var(begin), Exp::Var(rank)], Site::default())));
        Ranked { bindings, rank, starts }
    }

    /// An array of all entries, in the order of their rows.
    fn flat(&self, vars: &mut Vars, facts: &Facts, of: Of, bindings: &mut Vec<(Vec<Var>, Exp)>) -> Var {
        let t = vars.fresh("t", Type::I64);
        let (arrays, entry) = joined(vars, facts, self.parts(), t, of, Order::AsFound);
        bindings.extend(arrays);
        let all = for_(t, self.stored(), entry);
        let name = vars.fresh(of.name(), type_of_exp(vars, &all));
        bindings.push((vec![name], all));
        name
    }
}
