//! Integers as sums of locals and other numbers, each so many times, and a number: how far two of them are apart.

use super::*;

#[derive(Clone)]
pub(super) struct Linear {
    terms: Vec<(Expr, i64)>,
    number: i64,
}

impl Linear {
    pub fn of(e: &Expr) -> Linear {
        let mut sum = Linear { terms: vec![], number: 0 };
        sum.collect(e, 1);
        sum
    }
    fn collect(&mut self, e: &Expr, times: i64) {
        match e {
            Expr::Lit(Lit::I64(c)) => self.number = self.number.wrapping_add(c.wrapping_mul(times)),
            Expr::Op(op, args) => match (op, args.as_slice()) {
                (Op::Add, [a, b]) => {
                    self.collect(a, times);
                    self.collect(b, times);
                }
                (Op::Sub, [a, b]) => {
                    self.collect(a, times);
                    self.collect(b, times.wrapping_neg());
                }
                (Op::Neg, [a]) => self.collect(a, times.wrapping_neg()),
                _ => self.term(e, times),
            },
            _ => self.term(e, times),
        }
    }
    fn term(&mut self, e: &Expr, times: i64) {
        match self.terms.iter_mut().find(|(term, _)| term == e) {
            Some((_, all)) => *all = all.wrapping_add(times),
            None => self.terms.push((e.clone(), times)),
        }
        self.terms.retain(|(_, times)| *times != 0);
    }
    pub fn plus(mut self, number: i64) -> Linear {
        self.number = self.number.wrapping_add(number);
        self
    }
    pub fn add(&self, other: &Linear, times: i64) -> Linear {
        let mut sum = self.clone().plus(other.number.wrapping_mul(times));
        other.terms.iter().for_each(|(term, all)| sum.term(term, all.wrapping_mul(times)));
        sum
    }
    pub fn constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.number)
    }
    /// Whether it rises or falls by one with an index, and what is left without that.
    pub fn without(&self, index: Local) -> Option<(i64, Linear)> {
        let sign = self.terms.iter().find(|(term, _)| *term == Expr::Local(index))?.1;
        let mut rest = self.clone();
        rest.term(&Expr::Local(index), sign.wrapping_neg());
        let alone = !rest.terms.iter().any(|(term, _)| term.mentions(index));
        (alone && sign.abs() == 1).then_some((sign, rest))
    }
    /// Written again, the numbers last.
    pub fn expr(&self) -> Expr {
        let times = |term: &Expr, by: i64| term.clone().times(Expr::int(by));
        let (more, less): (Vec<_>, Vec<_>) = self.terms.iter().partition(|(_, by)| *by > 0);
        let sum = more.into_iter().map(|(term, by)| times(term, *by)).reduce(Expr::plus).unwrap_or(Expr::int(0));
        less.into_iter().fold(sum, |sum, (term, by)| sum.minus(times(term, by.wrapping_neg()))).plus(Expr::int(self.number))
    }
}
