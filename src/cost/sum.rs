//! Sums of formulas over an index, solved.
//!
//! Powers of the index are summed by Faulhaber's formula
//!
//! `sum i in 0..m. i^k  =  1/(k+1) * sum j in 0..k+1. C(k+1, j) B(j) m^(k+1-j)`
//!
//! an equation `[i == e]` by putting `e` for `i`, an inequality `[i < e]` by a narrower range. Where that would be a
//! minimum or maximum in an outer index, the sum waits for the sum over that index, which may be solved first (so the
//! cost of a convolution is `n m`). What remains in the end is added up when the formula is evaluated.

use super::poly::{Atom, Monomial, Poly, Rational};
use crate::ir::facts::Facts;
use crate::types::Var;
use crate::types::size::floor_div;

/// Where a sum stands.
#[derive(Clone, Default)]
pub struct Place {
    pub facts: Facts,
    /// The indices of the loops around it that are still to be summed over.
    pub indices: Vec<Var>,
}

impl Place {
    /// Inside a loop.
    pub fn enter(&self, index: Var, lo: &Poly, hi: &Poly) -> Place {
        let mut inner = self.clone();
        if let (Some(lo), Some(hi)) = (lo.to_size(), hi.to_size()) {
            inner.facts.enter(index, &lo, &hi);
        }
        inner.indices.push(index);
        inner
    }
}

impl Poly {
    /// `sum index in lo..hi. self`
    pub fn sum(&self, index: Var, lo: &Poly, hi: &Poly, place: &Place) -> Poly {
        // Bounds that are extremes in outer indices are brackets: these can wait.
        if let Some((a, b)) = lo.extreme(place, |atom| matches!(atom, Atom::Max(..))) {
            let from = Poly::var(index).sub(&b).nonnegative(&place.enter(index, &a, hi).facts);
            return self.mul(&from).sum(index, &a, hi, place);
        }
        if let Some((a, b)) = hi.extreme(place, |atom| matches!(atom, Atom::Min(..))) {
            let below = b.sub(&Poly::var(index)).sub(&Poly::one()).nonnegative(&place.enter(index, lo, &a).facts);
            return self.mul(&below).sum(index, lo, &a, place);
        }
        let mut total = Poly::default();
        for (monomial, c) in &self.terms {
            let (inner, outer): (Vec<&Atom>, Vec<&Atom>) = monomial.iter().partition(|a| a.mentions(index));
            let outer = Poly::term(outer.into_iter().cloned().collect(), *c);
            total = total.add(&outer.mul(&sum_product(inner.into_iter().cloned().collect(), index, lo, hi, place)));
        }
        total
    }

    /// The largest value over `index in lo..hi`, of a formula that is at least zero; zero of nothing.
    pub fn most(&self, index: Var, lo: &Poly, hi: &Poly, place: &Place) -> Poly {
        let some = hi.sub(lo).sub(&Poly::one()).nonnegative(&place.facts);
        if self.is_zero() || !self.mentions(index) {
            return self.mul(&some);
        }
        // Sizes are at least zero, so what is made of them and the index by products and sums grows with it.
        let grows = |(monomial, c): (&Monomial, &Rational)| {
            !monomial.iter().any(|a| a.mentions(index)) || (c.numerator > 0 && monomial.iter().all(|a| matches!(a, Atom::Var(_))))
        };
        let from_zero = lo.as_constant().is_some_and(|lo| lo >= 0);
        if from_zero && self.terms.iter().all(grows) {
            let last = hi.sub(&Poly::one());
            return self.substitute(place, &|v| (v == index).then(|| last.clone())).mul(&some);
        }
        Poly::atom(Atom::Most(index, Box::new(lo.clone()), Box::new(hi.clone()), Box::new(self.clone())))
    }

    /// Solves the sums that waited for outer indices, now that there are none.
    pub fn settle(&self, place: &Place) -> Poly {
        let mut total = Poly::default();
        for (monomial, c) in &self.terms {
            let settled = |atom: &Atom| match atom {
                Atom::Sum(index, lo, hi, body) => {
                    let body = body.settle(&Place { indices: vec![], ..place.enter(*index, lo, hi) });
                    body.sum(*index, lo, hi, &Place { indices: vec![], ..place.clone() })
                }
                other => Poly::atom(other.clone()),
            };
            total = total.add(&monomial.iter().fold(Poly::term(vec![], *c), |p, a| p.mul(&settled(a))));
        }
        total
    }

    /// The two sides, where this is an extreme of a kind that mentions an outer index; the first does not, if possible.
    fn extreme(&self, place: &Place, kind: impl Fn(&Atom) -> bool) -> Option<(Poly, Poly)> {
        let (monomial, c) = self.terms.iter().next().filter(|_| self.terms.len() == 1)?;
        match monomial.as_slice() {
            [atom @ (Atom::Min(a, b) | Atom::Max(a, b))] if kind(atom) && *c == Rational::new(1, 1) && self.waits(place) => {
                let inner = |p: &Poly| place.indices.iter().any(|v| p.mentions(*v));
                let (a, b) = if inner(a) { (b, a) } else { (a, b) };
                Some(((**a).clone(), (**b).clone()))
            }
            _ => None,
        }
    }
    /// Whether an extreme in it mentions an outer index.
    fn waits(&self, place: &Place) -> bool {
        let mentions = |p: &Poly| place.indices.iter().any(|v| p.mentions(*v));
        self.terms.keys().flatten().any(|atom| match atom {
            Atom::Min(a, b) | Atom::Max(a, b) => mentions(a) || mentions(b),
            Atom::Var(_)
            | Atom::Div(..)
            | Atom::Mod(..)
            | Atom::NonNegative(_)
            | Atom::Zero(_)
            | Atom::Sum(..)
            | Atom::Most(..)
            | Atom::Data(..) => false,
        })
    }
    /// Whether it has a sum over this index left.
    fn has_sum_over(&self, index: Var) -> bool {
        self.terms.keys().flatten().any(|atom| match atom {
            Atom::Sum(own, lo, hi, body) | Atom::Most(own, lo, hi, body) => {
                *own == index || [lo, hi, body].iter().any(|p| p.has_sum_over(index))
            }
            Atom::Min(a, b) | Atom::Max(a, b) | Atom::Div(a, b) | Atom::Mod(a, b) => a.has_sum_over(index) || b.has_sum_over(index),
            Atom::NonNegative(p) | Atom::Zero(p) => p.has_sum_over(index),
            Atom::Var(_) | Atom::Data(..) => false,
        })
    }

    /// The formula as `factor * index + rest`, where the factor is a whole number and the rest does not mention the index.
    fn linear_in(&self, index: Var) -> Option<(i64, Poly)> {
        let own = vec![Atom::Var(index)];
        let factor = self.terms.get(&own)?;
        let mut rest = self.clone();
        rest.terms.remove(&own);
        (factor.denominator == 1 && !rest.mentions(index)).then_some((i64::try_from(factor.numerator).ok()?, rest))
    }

    /// Floored division by a positive number.
    fn divide(&self, divisor: i64) -> Poly {
        if divisor == 1 {
            return self.clone();
        }
        match self.as_constant() {
            Some(c) => Poly::constant(floor_div(c, divisor)),
            None => Poly::atom(Atom::Div(Box::new(self.clone()), Box::new(Poly::constant(divisor)))),
        }
    }
}

/// `sum index in lo..hi.` of a product of atoms that all mention the index.
fn sum_product(atoms: Monomial, index: Var, lo: &Poly, hi: &Poly, place: &Place) -> Poly {
    let facts = &place.facts;
    let product = |atoms: &[Atom]| atoms.iter().fold(Poly::one(), |p, a| p.mul(&Poly::atom(a.clone())));
    let waiting = || Poly::atom(Atom::Sum(index, Box::new(lo.clone()), Box::new(hi.clone()), Box::new(product(&atoms))));
    for (k, atom) in atoms.iter().enumerate() {
        let others = || product(&[&atoms[..k], &atoms[k + 1..]].concat());
        match atom {
            Atom::Zero(p) => {
                if let Some((factor @ (1 | -1), rest)) = p.linear_in(index) {
                    let solution = if factor == 1 { rest.negate() } else { rest };
                    let inside = solution.sub(lo).nonnegative(facts).mul(&hi.sub(&solution).sub(&Poly::one()).nonnegative(facts));
                    let at = others().substitute(place, &|v| (v == index).then(|| solution.clone()));
                    return at.mul(&inside);
                }
            }
            Atom::NonNegative(p) => {
                if let Some((factor, rest)) = p.linear_in(index) {
                    // factor * index + rest >= 0
                    let (mut from, mut to) = (lo.clone(), hi.clone());
                    if factor > 0 {
                        from = lo.maximum(&rest.divide(factor).negate(), facts);
                    } else {
                        to = hi.minimum(&rest.divide(factor.wrapping_neg()).add(&Poly::one()), facts);
                    }
                    return if from.waits(place) || to.waits(place) { waiting() } else { others().sum(index, &from, &to, place) };
                }
            }
            Atom::Sum(inner, from, to, body) if !from.mentions(index) && !to.mentions(index) => {
                // The other way round.
                let outer = place.enter(*inner, from, to);
                let first = body.mul(&others()).sum(index, lo, hi, &outer);
                if !first.has_sum_over(index) {
                    return first.sum(*inner, from, to, place);
                }
            }
            Atom::Var(_)
            | Atom::Div(..)
            | Atom::Mod(..)
            | Atom::Min(..)
            | Atom::Max(..)
            | Atom::Sum(..)
            | Atom::Most(..)
            | Atom::Data(..) => {}
        }
    }
    if atoms.iter().all(|a| *a == Atom::Var(index)) {
        let full = |end: &Poly| faulhaber(atoms.len(), end).sub(&faulhaber(atoms.len(), lo));
        let end = lo.maximum(hi, facts);
        // An empty range in an outer index is a bracket, which the sum over that index can use.
        return if end.waits(place) { full(hi).mul(&hi.sub(lo).nonnegative(facts)) } else { full(&end) };
    }
    waiting()
}

/// `sum i in 0..m. i^k`
fn faulhaber(k: usize, m: &Poly) -> Poly {
    let mut bernoulli: Vec<Rational> = vec![];
    let binomial = |n: usize, j: usize| (0..j).fold(1i128, |b, t| b * (n - t) as i128 / (t + 1) as i128);
    for n in 0..=k {
        let sum = (0..n)
            .fold(Rational::new(if n == 0 { -1 } else { 0 }, 1), |s, j| s.add(Rational::new(binomial(n + 1, j), 1).mul(bernoulli[j])));
        bernoulli.push(sum.mul(Rational::new(-1, n as i128 + 1)));
    }
    let terms = (0..=k).map(|j| m.power(k + 1 - j).scale(Rational::new(binomial(k + 1, j), k as i128 + 1).mul(bernoulli[j])));
    terms.fold(Poly::zero(), |sum, term| sum.add(&term))
}
