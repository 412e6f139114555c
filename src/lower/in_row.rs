//! Places in memory as rows of an array: `base + index * length + within`.

use super::*;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct InRow {
    /// What is the same for all rows.
    pub base: Expr,
    pub length: Expr,
    pub within: Expr,
}

/// An offset as a place in the row of an index, or of what is read with it; `varies` says which locals are not the same for all rows. What is the same is
/// so many whole rows.
pub(super) fn in_row(offset: &Expr, index: &Expr, varies: &FxHashSet<Local>) -> Option<InRow> {
    let (length, rest) = apart(offset, index)?;
    let mut terms = vec![];
    added(&rest, &mut terms);
    let is_base = |term: &&Expr| {
        let fixed = !term.any(&mut |e| matches!(e, Expr::Load(..)) || matches!(e, Expr::Local(l) if varies.contains(l)));
        fixed && has_factor(term, &length)
    };
    let (fixed, others): (Vec<&Expr>, Vec<&Expr>) = terms.into_iter().partition(is_base);
    let sum = |terms: Vec<&Expr>| terms.into_iter().cloned().fold(Expr::int(0), Expr::plus);
    Some(InRow { base: sum(fixed), length, within: sum(others) })
}

impl InRow {
    /// The place in the row of a number that stands for the index.
    pub fn place(&self, row: Expr, within: Expr) -> Expr {
        self.base.clone().plus(row.times(self.length.clone())).plus(within)
    }
    pub fn is_row_of(&self, other: &InRow) -> bool {
        (&self.base, &self.length) == (&other.base, &other.length)
    }
}

fn has_factor(e: &Expr, factor: &Expr) -> bool {
    let is_inside = |e: &Expr| matches!(e, Expr::Op(Op::Mul, args) if args.iter().any(|a| has_factor(a, factor)));
    e == factor || is_inside(e)
}

fn added<'a>(e: &'a Expr, out: &mut Vec<&'a Expr>) {
    match e {
        Expr::Op(Op::Add, args) => args.iter().for_each(|a| added(a, out)),
        e => out.push(e),
    }
}

/// An offset as a multiple of the index and what is left.
fn apart(e: &Expr, index: &Expr) -> Option<(Expr, Expr)> {
    let has_index = |e: &Expr| e.any(&mut |e| e == index);
    if e == index {
        return Some((Expr::int(1), Expr::int(0)));
    }
    if !has_index(e) {
        return Some((Expr::int(0), e.clone()));
    }
    let Expr::Op(op, args) = e else { return None };
    match (op, args.as_slice()) {
        (Op::Add, [a, b]) => {
            let ((s, r), (t, q)) = (apart(a, index)?, apart(b, index)?);
            Some((s.plus(t), r.plus(q)))
        }
        (Op::Sub, [a, b]) => {
            let ((s, r), (t, q)) = (apart(a, index)?, apart(b, index)?);
            Some((s.minus(t), r.minus(q)))
        }
        (Op::Mul, [a, b]) if !has_index(b) => apart(a, index).map(|(s, r)| (s.times(b.clone()), r.times(b.clone()))),
        (Op::Mul, [a, b]) if !has_index(a) => apart(b, index).map(|(s, r)| (s.times(a.clone()), r.times(a.clone()))),
        _ => None,
    }
}
