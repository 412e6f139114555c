//! Which of two costs is less: one of them at all sizes that matter, or the one that a comparison of sizes tells.
//!
//! Sizes are taken to be large. So of the difference only the terms count that divide no other (`n` is nothing beside
//! `n m`), a bracket holds, and what all terms have in common is left out: of `6 n^2 m - 8 n m^2 + n` it is `3 n - 4 m`
//! that tells.

use super::poly::{Atom, Monomial, Poly, Rational};
use crate::types::Size;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Less {
    /// Also where both are the same.
    First,
    Second,
    /// The first where this is at most zero, else the second.
    FirstUpTo(Size),
    /// The formulas have more in them than sizes.
    Unknown,
}

/// Of higher degree, the value of a comparison might not be an `i64`.
const HIGHEST_DEGREE: usize = 2;

pub fn less(first: &Poly, second: &Poly) -> Less {
    let Some(difference) = leading(&first.sub(second)) else { return Less::Unknown };
    if difference.terms.values().all(|c| c.numerator <= 0) {
        return Less::First;
    }
    if difference.terms.values().all(|c| c.numerator > 0) {
        return Less::Second;
    }
    let size = without_common_factors(difference).to_size();
    size.filter(|s| s.degree() <= HIGHEST_DEGREE).map_or(Less::Unknown, Less::FirstUpTo)
}

/// The size of everything where two costs are compared by numbers.
const TYPICAL_SIZE: i64 = 100;

/// How many terms of sums that have no formula are added up for such a comparison.
const MOST_TERMS: i64 = 1_000_000;

/// Whether the second cost is less than the first where all sizes are the same. What has no number is more than what has one.
pub fn second_is_typically_less(first: &Poly, second: &Poly) -> bool {
    // Sums in sums in sums are compared where they are short.
    let depth = first.sums_within().max(second.sums_within()) as u32;
    let terms = |size: i64| size.checked_pow(depth).unwrap_or(i64::MAX);
    let mut size = TYPICAL_SIZE;
    while size > 2 && terms(size) > MOST_TERMS {
        size = size * 3 / 4;
    }
    let number = |p: &Poly| p.evaluate(&|_| Some(size));
    number(second).is_some_and(|second| number(first).is_none_or(|first| second < first))
}

/// The terms that count; nothing where there is more in them than sizes.
fn leading(p: &Poly) -> Option<Poly> {
    let mut plain = Poly::default();
    for (monomial, c) in &p.terms {
        let mut product = Poly::term(vec![], *c);
        for atom in monomial {
            product = product.mul(&match atom {
                Atom::Var(v) => Poly::var(*v),
                Atom::NonNegative(_) => Poly::one(),
                Atom::Zero(_) => Poly::zero(),
                // Which of them it is, is told by the sizes that decide; both is not too much.
                Atom::Max(a, b) => leading(&a.add(b))?,
                Atom::Min(..) | Atom::Div(..) | Atom::Mod(..) | Atom::Sum(..) | Atom::Most(..) | Atom::Data(..) => {
                    return None;
                }
            });
        }
        plain = plain.add(&product);
    }
    let counts = |m: &Monomial| !plain.terms.keys().any(|other| other != m && divided(other, m).is_some());
    let terms = plain.terms.iter().filter(|(m, _)| counts(m)).map(|(m, c)| (m.clone(), *c)).collect();
    Some(Poly { terms })
}

fn without_common_factors(p: Poly) -> Poly {
    let mut monomials = p.terms.keys();
    let mut common = monomials.next().cloned().unwrap_or_default();
    for other in monomials {
        let mut rest = other.clone();
        common.retain(|atom| rest.iter().position(|a| a == atom).map(|k| rest.remove(k)).is_some());
    }
    let denominators = p.terms.values().map(|c| c.denominator).fold(1, |a, b| a / greatest_divisor(a, b) * b);
    let scaled = p.scale(Rational::new(denominators, 1));
    let content = scaled.terms.values().fold(0, |a, c| greatest_divisor(a, c.numerator.abs()));
    let terms = scaled.terms.into_iter().map(|(m, c)| (divided(&m, &common).unwrap_or(m), c)).collect();
    Poly { terms }.scale(Rational::new(1, content.max(1)))
}

fn greatest_divisor(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { greatest_divisor(b, a % b) }
}

/// A product of atoms without those of a divisor.
fn divided(monomial: &Monomial, divisor: &Monomial) -> Option<Monomial> {
    let mut rest = monomial.clone();
    for atom in divisor {
        let k = rest.iter().position(|a| a == atom)?;
        rest.remove(k);
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Var;

    fn n() -> Poly {
        Poly::var(Var(0))
    }
    fn m() -> Poly {
        Poly::var(Var(1))
    }
    fn times(k: i64, factors: &[Poly]) -> Poly {
        factors.iter().fold(Poly::constant(k), |p, f| p.mul(f))
    }

    #[test]
    fn terms_of_lower_degree_do_not_count() {
        let first = times(2, &[n(), m()]).add(&times(100, &[n()]));
        assert_eq!(less(&first, &times(3, &[n(), m()])), Less::First);
        assert_eq!(less(&times(3, &[n(), m()]), &first), Less::Second);
        assert_eq!(less(&first, &first), Less::First);
    }

    #[test]
    fn sizes_decide_without_what_both_have() {
        let first = times(6, &[n(), n(), m()]).add(&n());
        let second = times(8, &[n(), m(), m()]);
        let told = Size::var(Var(0)).scale(3).sub(&Size::var(Var(1)).scale(4));
        assert_eq!(less(&first, &second), Less::FirstUpTo(told));
    }

    #[test]
    fn fractions_become_whole() {
        let half = n().mul(&n()).scale(Rational::new(1, 2));
        let third = n().mul(&m()).scale(Rational::new(1, 3));
        let told = Size::var(Var(0)).scale(3).sub(&Size::var(Var(1)).scale(2));
        assert_eq!(less(&half, &third), Less::FirstUpTo(told));
    }

    #[test]
    fn sums_in_sums_are_compared_where_they_are_short() {
        let index = |k: u32| Var(10 + k);
        let data = Poly::data("k".into(), vec![]);
        let sums = |body: Poly, depth: u32| {
            (0..depth).fold(body, |body, k| {
                let bracket = Poly::atom(Atom::Zero(Box::new(Poly::var(index(k)).sub(&body))));
                Poly::atom(Atom::Sum(index(k), Box::new(Poly::zero()), Box::new(n()), Box::new(bracket.add(&body))))
            })
        };
        assert!(second_is_typically_less(&sums(m(), 9), &sums(Poly::one(), 9)));
        assert!(!second_is_typically_less(&sums(Poly::one(), 9), &sums(m(), 9)));
        assert!(second_is_typically_less(&data, &n()));
        assert!(!second_is_typically_less(&n(), &data));
    }

    #[test]
    fn what_depends_on_data_is_not_compared() {
        assert_eq!(less(&Poly::data("k".into(), vec![]), &n()), Less::Unknown);
    }
}
