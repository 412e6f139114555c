//! Places in memory as rows of an array: `base + index * length + within`.

use super::*;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct InRow {
    /// What is the same for all rows.
    pub base: Expr,
    pub length: Expr,
    pub within: Expr,
}

/// An offset as a place in the row of an index, or of what is read with it; `varies` says which locals are not the same for all
/// rows. What is the same is so many whole rows. The index is one key alone, so that what is left are keys within its row.
pub(super) fn in_row(offset: &Expr, index: &Expr, varies: &FxHashSet<Local>) -> Option<InRow> {
    let mut found = 0;
    offset.any(&mut |e| {
        found += (e == index) as usize;
        false
    });
    let (length, rest) = apart(offset, index).filter(|_| found == 1)?;
    let mut terms = vec![];
    added(&rest, &mut terms);
    let (mut base, mut within) = (Expr::int(0), Expr::int(0));
    for term in terms {
        let fixed = !term.any(&mut |e| matches!(e, Expr::Load(..)) || matches!(e, Expr::Local(l) if varies.contains(l)));
        match (term.as_int().zip(length.as_int()), has_factors(term, &length)) {
            (Some((_, length)), _) if length <= 0 => return None,
            (Some((n, length)), _) => {
                base = base.plus(Expr::int(n - n.rem_euclid(length)));
                within = within.plus(Expr::int(n.rem_euclid(length)));
            }
            // Other rows in other steps.
            (None, true) if !fixed => return None,
            (None, true) => base = base.plus(term.clone()),
            (None, false) => within = within.plus(term.clone()),
        }
    }
    Some(InRow { base, length, within })
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

/// Whether one product has all factors of another.
fn has_factors(e: &Expr, of: &Expr) -> bool {
    let (mut number, mut rest) = (1, vec![]);
    factors(e, &mut number, &mut rest);
    let (mut other, mut needed) = (1, vec![]);
    factors(of, &mut other, &mut needed);
    let all = needed.into_iter().all(|factor| match rest.iter().position(|f| *f == factor) {
        Some(at) => {
            rest.remove(at);
            true
        }
        None => false,
    });
    all && other != 0 && number % other == 0
}

fn factors<'a>(e: &'a Expr, number: &mut i64, out: &mut Vec<&'a Expr>) {
    match (e, e.as_int()) {
        (_, Some(n)) => *number = number.wrapping_mul(n),
        (Expr::Op(Op::Mul, args), _) => args.iter().for_each(|a| factors(a, number, out)),
        _ => out.push(e),
    }
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
