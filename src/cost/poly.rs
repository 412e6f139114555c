//! Costs as formulas: polynomials with rational coefficients in sizes and in what is not polynomial.
//!
//! A condition on integers is a formula too, 1 where it holds and 0 elsewhere (an Iverson bracket), so that the cost of
//! a guarded expression is a product, and the cost of a loop over it a sum of products.
//! Every formula is exact. Sums over an index are solved in `sum.rs`.

use super::sum::Place;
use crate::ir::Vars;
use crate::ir::facts::Facts;
use crate::types::size::{self, floor_div};
use crate::types::{Size, Var};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rational {
    pub(super) numerator: i128,
    /// At least 1, without a common factor.
    pub(super) denominator: i128,
}

impl Rational {
    pub fn new(numerator: i128, denominator: i128) -> Rational {
        let (mut a, mut b) = (numerator.abs(), denominator.abs());
        while b != 0 {
            (a, b) = (b, a % b);
        }
        let scale = if denominator < 0 { -a.max(1) } else { a.max(1) };
        Rational { numerator: numerator / scale, denominator: denominator / scale }
    }
    pub(super) fn add(self, other: Rational) -> Rational {
        Rational::new(self.numerator * other.denominator + other.numerator * self.denominator, self.denominator * other.denominator)
    }
    pub(super) fn mul(self, other: Rational) -> Rational {
        Rational::new(self.numerator * other.numerator, self.denominator * other.denominator)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Atom {
    Var(Var),
    /// Floored division and its remainder.
    Div(Box<Poly>, Box<Poly>),
    Mod(Box<Poly>, Box<Poly>),
    Min(Box<Poly>, Box<Poly>),
    Max(Box<Poly>, Box<Poly>),
    /// 1 where the polynomial is at least zero, else 0.
    NonNegative(Box<Poly>),
    /// 1 where the polynomial is zero, else 0.
    Zero(Box<Poly>),
    /// `sum index in lo..hi. body`
    Sum(Var, Box<Poly>, Box<Poly>, Box<Poly>),
    /// The largest of `body` over `index in lo..hi`, at least zero.
    Most(Var, Box<Poly>, Box<Poly>, Box<Poly>),
    /// An integer that depends on data: how it is written, and the variables in it.
    Data(String, Vec<Var>),
}

/// A product of atoms, sorted, repeated for powers (but brackets: their powers are themselves).
pub(super) type Monomial = Vec<Atom>;

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Poly {
    /// No coefficient is zero.
    pub(super) terms: BTreeMap<Monomial, Rational>,
}

impl Poly {
    pub fn zero() -> Poly {
        Poly::default()
    }
    pub fn one() -> Poly {
        Poly::constant(1)
    }
    pub fn constant(value: i64) -> Poly {
        Poly::term(vec![], Rational::new(value as i128, 1))
    }
    pub fn var(var: Var) -> Poly {
        Poly::atom(Atom::Var(var))
    }
    pub fn data(text: String, vars: Vec<Var>) -> Poly {
        Poly::atom(Atom::Data(text, vars))
    }
    pub(super) fn atom(atom: Atom) -> Poly {
        Poly::term(vec![atom], Rational::new(1, 1))
    }
    pub(super) fn term(monomial: Monomial, coefficient: Rational) -> Poly {
        let mut terms = BTreeMap::new();
        if coefficient.numerator != 0 {
            terms.insert(monomial, coefficient);
        }
        Poly { terms }
    }
    pub fn is_zero(&self) -> bool {
        self.terms.is_empty()
    }
    pub fn as_constant(&self) -> Option<i64> {
        match self.terms.len() {
            0 => Some(0),
            1 => self.terms.get(&vec![]).filter(|c| c.denominator == 1).and_then(|c| i64::try_from(c.numerator).ok()),
            _ => None,
        }
    }

    pub fn add(&self, other: &Poly) -> Poly {
        let mut sum = self.clone();
        for (m, c) in &other.terms {
            sum.add_term(m.clone(), *c);
        }
        sum
    }
    fn add_term(&mut self, monomial: Monomial, coefficient: Rational) {
        let total = self.terms.get(&monomial).map_or(coefficient, |c| c.add(coefficient));
        if total.numerator == 0 {
            self.terms.remove(&monomial);
        } else {
            self.terms.insert(monomial, total);
        }
    }
    pub(super) fn scale(&self, factor: Rational) -> Poly {
        self.mul(&Poly::term(vec![], factor))
    }
    pub fn negate(&self) -> Poly {
        self.scale(Rational::new(-1, 1))
    }
    pub fn sub(&self, other: &Poly) -> Poly {
        self.add(&other.negate())
    }
    pub fn mul(&self, other: &Poly) -> Poly {
        let mut product = Poly::default();
        for (m, c) in &self.terms {
            for (n, d) in &other.terms {
                let mut atoms: Monomial = m.iter().chain(n).cloned().collect();
                atoms.sort();
                atoms.dedup_by(|a, b| a == b && matches!(a, Atom::NonNegative(_) | Atom::Zero(_)));
                product.add_term(atoms, c.mul(*d));
            }
        }
        product
    }
    pub(super) fn power(&self, exponent: usize) -> Poly {
        (0..exponent).fold(Poly::one(), |p, _| p.mul(self))
    }

    pub fn from_size(size: &Size) -> Poly {
        let mut total = Poly::default();
        for (monomial, coefficient) in size.terms() {
            let mut product = Poly::constant(coefficient);
            for atom in monomial.iter() {
                let pair = |a: &Size, b: &Size| (Box::new(Poly::from_size(a)), Box::new(Poly::from_size(b)));
                let atom = match atom {
                    size::Atom::Var(v) => Atom::Var(*v),
                    size::Atom::Div(a, b) => {
                        let (a, b) = pair(a, b);
                        Atom::Div(a, b)
                    }
                    size::Atom::Mod(a, b) => {
                        let (a, b) = pair(a, b);
                        Atom::Mod(a, b)
                    }
                    size::Atom::Min(a, b) => {
                        let (a, b) = pair(a, b);
                        Atom::Min(a, b)
                    }
                    size::Atom::Max(a, b) => {
                        let (a, b) = pair(a, b);
                        Atom::Max(a, b)
                    }
                };
                product = product.mul(&Poly::atom(atom));
            }
            total = total.add(&product);
        }
        total
    }
    /// The formula as a size, where it is one.
    pub(super) fn to_size(&self) -> Option<Size> {
        let mut total = Size::default();
        for (monomial, c) in &self.terms {
            let whole = i64::try_from(c.numerator).ok().filter(|_| c.denominator == 1)?;
            let mut product = Size::constant(whole);
            for atom in monomial {
                product = product.mul(&match atom {
                    Atom::Var(v) => Size::var(*v),
                    Atom::Div(a, b) => a.to_size()?.div(&b.to_size()?),
                    Atom::Mod(a, b) => a.to_size()?.modulo(&b.to_size()?),
                    Atom::Min(a, b) => a.to_size()?.minimum(&b.to_size()?),
                    Atom::Max(a, b) => a.to_size()?.maximum(&b.to_size()?),
                    Atom::NonNegative(_) | Atom::Zero(_) | Atom::Sum(..) | Atom::Most(..) | Atom::Data(..) => return None,
                });
            }
            total = total.add(&product);
        }
        Some(total)
    }
    fn proven_nonnegative(&self, facts: &Facts) -> bool {
        match self.as_constant() {
            Some(c) => c >= 0,
            None => self.to_size().is_some_and(|s| facts.prove_nonneg(&s)),
        }
    }

    pub fn minimum(&self, other: &Poly, facts: &Facts) -> Poly {
        if other.sub(self).proven_nonnegative(facts) {
            self.clone()
        } else if self.sub(other).proven_nonnegative(facts) {
            other.clone()
        } else {
            let (a, b) = if self <= other { (self, other) } else { (other, self) };
            Poly::atom(Atom::Min(Box::new(a.clone()), Box::new(b.clone())))
        }
    }
    pub fn maximum(&self, other: &Poly, facts: &Facts) -> Poly {
        if self.sub(other).proven_nonnegative(facts) {
            self.clone()
        } else if other.sub(self).proven_nonnegative(facts) {
            other.clone()
        } else {
            let (a, b) = if self <= other { (self, other) } else { (other, self) };
            Poly::atom(Atom::Max(Box::new(a.clone()), Box::new(b.clone())))
        }
    }
    /// `[self >= 0]`, for whole numbers.
    pub fn nonnegative(&self, facts: &Facts) -> Poly {
        if self.proven_nonnegative(facts) {
            Poly::one()
        } else if self.add(&Poly::one()).negate().proven_nonnegative(facts) {
            Poly::zero()
        } else {
            Poly::atom(Atom::NonNegative(Box::new(self.clone())))
        }
    }
    /// `[self == 0]`, for whole numbers.
    pub fn is_null(&self, facts: &Facts) -> Poly {
        if self.is_zero() {
            Poly::one()
        } else if self.sub(&Poly::one()).proven_nonnegative(facts) || self.add(&Poly::one()).negate().proven_nonnegative(facts) {
            Poly::zero()
        } else {
            // One spelling for p and -p.
            let other = self.negate();
            Poly::atom(Atom::Zero(Box::new(if *self <= other { self.clone() } else { other })))
        }
    }
    /// The larger of two costs, where it is plain which of them that is.
    pub fn larger(&self, other: &Poly) -> Poly {
        if self.sub(other).is_plainly_positive() {
            self.clone()
        } else if other.sub(self).is_plainly_positive() {
            other.clone()
        } else {
            self.maximum(other, &Facts::default())
        }
    }
    /// Costs are at least zero, and so are sizes; a bracket is at most one. So `2 n - n [i == j]` is not below zero.
    fn is_plainly_positive(&self) -> bool {
        let mut least: BTreeMap<Vec<&Atom>, Rational> = BTreeMap::new();
        for (monomial, c) in &self.terms {
            let (brackets, factors): (Vec<&Atom>, Vec<&Atom>) =
                monomial.iter().partition(|a| matches!(a, Atom::NonNegative(_) | Atom::Zero(_)));
            let c = if brackets.is_empty() || c.numerator < 0 { *c } else { Rational::new(0, 1) };
            let total = least.entry(factors).or_insert(Rational::new(0, 1));
            *total = total.add(c);
        }
        least.values().all(|c| c.numerator >= 0)
    }

    /// How many sums that are left to be added up stand in each other.
    pub(super) fn sums_within(&self) -> usize {
        self.terms.keys().flatten().map(Atom::sums_within).max().unwrap_or(0)
    }

    pub fn mentions(&self, var: Var) -> bool {
        self.terms.keys().flatten().any(|a| a.mentions(var))
    }

    /// Other variables for some.
    pub fn rename(&self, f: &dyn Fn(Var) -> Option<Var>) -> Poly {
        self.substitute(&Place::default(), &|v| f(v).map(Poly::var))
    }
    /// Replaces variables.
    pub fn substitute(&self, place: &Place, f: &dyn Fn(Var) -> Option<Poly>) -> Poly {
        let mut total = Poly::default();
        for (monomial, c) in &self.terms {
            let product = monomial.iter().fold(Poly::term(vec![], *c), |p, a| p.mul(&a.substitute(place, f)));
            total = total.add(&product);
        }
        total
    }

    /// The value under an assignment; `None` on overflow, on division by zero, or where something is unknown.
    pub fn evaluate(&self, value: &dyn Fn(Var) -> Option<i64>) -> Option<i64> {
        // Over a common denominator: the value of a cost is whole, its terms need not be.
        let mut total = Rational::new(0, 1);
        for (monomial, c) in &self.terms {
            let mut product = c.numerator;
            for atom in monomial {
                product = product.checked_mul(atom.evaluate(value)? as i128)?;
            }
            let term = Rational::new(product, c.denominator);
            let scaled = total.numerator.checked_mul(term.denominator)?.checked_add(term.numerator.checked_mul(total.denominator)?)?;
            total = Rational::new(scaled, total.denominator.checked_mul(term.denominator)?);
        }
        if total.denominator == 1 { i64::try_from(total.numerator).ok() } else { None }
    }

    /// `2 n m + 1/2 n^2 - 3`: higher degrees first.
    pub fn display(&self, vars: &Vars) -> String {
        let mut terms: Vec<_> = self.terms.iter().collect();
        terms.sort_by_key(|(m, c)| (std::cmp::Reverse(m.len()), c.numerator < 0));
        let mut text = String::new();
        for (monomial, c) in terms {
            let negative = c.numerator < 0;
            text += match (text.is_empty(), negative) {
                (true, false) => "",
                (true, true) => "-",
                (false, false) => " + ",
                (false, true) => " - ",
            };
            let mut factors = vec![];
            let magnitude = c.numerator.abs();
            if c.denominator != 1 {
                factors.push(format!("{magnitude}/{}", c.denominator));
            } else if magnitude != 1 || monomial.is_empty() {
                factors.push(magnitude.to_string());
            }
            let mut k = 0;
            while k < monomial.len() {
                let power = monomial[k..].iter().take_while(|a| **a == monomial[k]).count();
                let base = monomial[k].display(vars);
                factors.push(if power > 1 { format!("{base}^{power}") } else { base });
                k += power;
            }
            text += &factors.join(" ");
        }
        if text.is_empty() { "0".into() } else { text }
    }
}

impl Atom {
    pub(super) fn mentions(&self, var: Var) -> bool {
        match self {
            Atom::Var(v) => *v == var,
            Atom::Div(a, b) | Atom::Mod(a, b) | Atom::Min(a, b) | Atom::Max(a, b) => a.mentions(var) || b.mentions(var),
            Atom::NonNegative(p) | Atom::Zero(p) => p.mentions(var),
            Atom::Sum(_, lo, hi, body) | Atom::Most(_, lo, hi, body) => lo.mentions(var) || hi.mentions(var) || body.mentions(var),
            Atom::Data(_, vars) => vars.contains(&var),
        }
    }

    fn sums_within(&self) -> usize {
        match self {
            Atom::Var(_) | Atom::Data(..) => 0,
            Atom::Div(a, b) | Atom::Mod(a, b) | Atom::Min(a, b) | Atom::Max(a, b) => a.sums_within().max(b.sums_within()),
            Atom::NonNegative(p) | Atom::Zero(p) => p.sums_within(),
            Atom::Sum(_, lo, hi, body) | Atom::Most(_, lo, hi, body) => lo.sums_within().max(hi.sums_within()).max(1 + body.sums_within()),
        }
    }

    fn substitute(&self, place: &Place, f: &dyn Fn(Var) -> Option<Poly>) -> Poly {
        let facts = &place.facts;
        let of = |p: &Poly| p.substitute(place, f);
        match self {
            Atom::Var(v) => f(*v).unwrap_or_else(|| Poly::var(*v)),
            Atom::Div(a, b) => Poly::atom(Atom::Div(Box::new(of(a)), Box::new(of(b)))),
            Atom::Mod(a, b) => Poly::atom(Atom::Mod(Box::new(of(a)), Box::new(of(b)))),
            Atom::Min(a, b) => of(a).minimum(&of(b), facts),
            Atom::Max(a, b) => of(a).maximum(&of(b), facts),
            Atom::NonNegative(p) => of(p).nonnegative(facts),
            Atom::Zero(p) => of(p).is_null(facts),
            // Summed again: where a size has become a number, more may be solved.
            Atom::Sum(index, lo, hi, body) => of(body).sum(*index, &of(lo), &of(hi), place),
            Atom::Most(index, lo, hi, body) => of(body).most(*index, &of(lo), &of(hi), place),
            Atom::Data(text, vars) => Poly::data(text.clone(), vars.clone()),
        }
    }

    fn evaluate(&self, value: &dyn Fn(Var) -> Option<i64>) -> Option<i64> {
        let pair = |a: &Poly, b: &Poly| Some((a.evaluate(value)?, b.evaluate(value)?));
        match self {
            Atom::Var(v) => value(*v),
            Atom::Div(a, b) => pair(a, b).filter(|p| p.1 != 0).map(|(a, b)| floor_div(a, b)),
            Atom::Mod(a, b) => pair(a, b).filter(|p| p.1 != 0).map(|(a, b)| a.wrapping_sub(b.wrapping_mul(floor_div(a, b)))),
            Atom::Min(a, b) => pair(a, b).map(|(a, b)| a.min(b)),
            Atom::Max(a, b) => pair(a, b).map(|(a, b)| a.max(b)),
            Atom::NonNegative(p) => p.evaluate(value).map(|x| (x >= 0) as i64),
            Atom::Zero(p) => p.evaluate(value).map(|x| (x == 0) as i64),
            Atom::Sum(index, lo, hi, body) => {
                let (lo, hi) = pair(lo, hi)?;
                (lo..hi).try_fold(0i64, |total, i| total.checked_add(body.evaluate(&|v| if v == *index { Some(i) } else { value(v) })?))
            }
            Atom::Most(index, lo, hi, body) => {
                let (lo, hi) = pair(lo, hi)?;
                (lo..hi).try_fold(0i64, |most, i| Some(most.max(body.evaluate(&|v| if v == *index { Some(i) } else { value(v) })?)))
            }
            Atom::Data(..) => None,
        }
    }

    fn display(&self, vars: &Vars) -> String {
        let of = |p: &Poly| p.display(vars);
        let operand = |p: &Poly| if p.terms.len() > 1 { format!("({})", of(p)) } else { of(p) };
        match self {
            Atom::Var(v) => vars.name(*v).to_string(),
            Atom::Div(a, b) => format!("({} div {})", operand(a), operand(b)),
            Atom::Mod(a, b) => format!("({} mod {})", operand(a), operand(b)),
            Atom::Min(a, b) => format!("min({}, {})", of(a), of(b)),
            Atom::Max(a, b) => format!("max({}, {})", of(a), of(b)),
            Atom::NonNegative(p) => compare(p, ">=", vars),
            Atom::Zero(p) => compare(p, "==", vars),
            Atom::Sum(index, lo, hi, body) => format!("(sum {} in {}..{}. {})", vars.name(*index), operand(lo), operand(hi), of(body)),
            Atom::Most(index, lo, hi, body) => format!("(max {} in {}..{}. {})", vars.name(*index), operand(lo), operand(hi), of(body)),
            Atom::Data(text, _) => format!("({text})"),
        }
    }
}

/// `[a >= b]` with positive terms on both sides.
fn compare(p: &Poly, relation: &str, vars: &Vars) -> String {
    let (mut left, mut right) = (Poly::default(), Poly::default());
    for (m, c) in &p.terms {
        if c.numerator > 0 {
            left.add_term(m.clone(), *c);
        } else {
            right.add_term(m.clone(), c.mul(Rational::new(-1, 1)));
        }
    }
    format!("[{} {relation} {}]", left.display(vars), right.display(vars))
}
