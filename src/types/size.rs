//! Sizes: integer polynomials in variables, with opaque atoms for what is not polynomial.
//!
//! A polynomial is kept in normal form (monomials sorted, no zero coefficient), so equality of sizes is equality of
//! values of this type. An *axis* of size `p` has `max(0, p)` places: `[n - 1]` is empty for `n = 0`. `axis()` drops
//! an outer `max(0, _)`, so that both spellings of an axis compare equal.
//!
//! Sizes stand in every type and every fact and are copied far more often than made, so copies share their terms. Numbers
//! and variables, which most sizes are, are held without memory of their own.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// A variable, bound once in its program. Its name and type are in `ir::Vars`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Var(pub u32);

impl std::fmt::Debug for Var {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "v{}", self.0)
    }
}

/// What a monomial multiplies: a variable, or an operation that is not polynomial.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Atom {
    Var(Var),
    /// Floored division and its remainder.
    Div(Box<Size>, Box<Size>),
    Mod(Box<Size>, Box<Size>),
    Min(Box<Size>, Box<Size>),
    Max(Box<Size>, Box<Size>),
}

impl Atom {
    pub fn mentions(&self, var: Var) -> bool {
        match self {
            Atom::Var(v) => *v == var,
            Atom::Div(a, b) | Atom::Mod(a, b) | Atom::Min(a, b) | Atom::Max(a, b) => a.mentions(var) || b.mentions(var),
        }
    }
}

/// A product of atoms, sorted, repeated for powers. The empty product is 1.
#[derive(Clone)]
pub enum Monomial {
    One,
    Atom(Atom),
    Product(Arc<[Atom]>),
}

impl Deref for Monomial {
    type Target = [Atom];
    fn deref(&self) -> &[Atom] {
        match self {
            Monomial::One => &[],
            Monomial::Atom(atom) => std::slice::from_ref(atom),
            Monomial::Product(atoms) => atoms,
        }
    }
}
impl From<Vec<Atom>> for Monomial {
    fn from(mut atoms: Vec<Atom>) -> Monomial {
        match atoms.len() {
            0 => Monomial::One,
            1 => Monomial::Atom(atoms.remove(0)),
            _ => Monomial::Product(atoms.into()),
        }
    }
}

/// Sorted by monomial; no coefficient is zero.
#[derive(Clone, Default)]
enum Terms {
    #[default]
    None,
    One(Term),
    Several(Arc<[Term]>),
}
type Term = (Monomial, i64);

impl Deref for Terms {
    type Target = [Term];
    fn deref(&self) -> &[Term] {
        match self {
            Terms::None => &[],
            Terms::One(term) => std::slice::from_ref(term),
            Terms::Several(terms) => terms,
        }
    }
}
impl From<Vec<Term>> for Terms {
    fn from(mut terms: Vec<Term>) -> Terms {
        match terms.len() {
            0 => Terms::None,
            1 => Terms::One(terms.remove(0)),
            _ => Terms::Several(terms.into()),
        }
    }
}

/// What both are made of is compared, not how it is held.
macro_rules! compared_by_parts {
    ($type:ty) => {
        impl PartialEq for $type {
            fn eq(&self, other: &$type) -> bool {
                **self == **other
            }
        }
        impl Eq for $type {}
        impl PartialOrd for $type {
            fn partial_cmp(&self, other: &$type) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }
        impl Ord for $type {
            fn cmp(&self, other: &$type) -> Ordering {
                (**self).cmp(&**other)
            }
        }
        impl Hash for $type {
            fn hash<H: Hasher>(&self, state: &mut H) {
                (**self).hash(state)
            }
        }
    };
}
compared_by_parts!(Monomial);
compared_by_parts!(Terms);

impl std::fmt::Debug for Monomial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Size {
    terms: Terms,
}

impl Size {
    pub fn constant(value: i64) -> Size {
        Size::term(Monomial::One, value)
    }
    pub fn var(var: Var) -> Size {
        Size::atom(Atom::Var(var))
    }
    fn term(monomial: Monomial, coefficient: i64) -> Size {
        if coefficient == 0 { Size::default() } else { Size { terms: Terms::One((monomial, coefficient)) } }
    }
    fn atom(atom: Atom) -> Size {
        Size::term(Monomial::Atom(atom), 1)
    }
    /// Of terms in any order, several of one monomial and zeros among them.
    fn of(mut terms: Vec<Term>) -> Size {
        terms.sort_by(|(m, _), (n, _)| m.cmp(n));
        terms.dedup_by(|(m, c), (first, total)| {
            let same = m == first;
            if same {
                *total = total.wrapping_add(*c);
            }
            same
        });
        terms.retain(|(_, c)| *c != 0);
        Size { terms: terms.into() }
    }

    pub fn terms(&self) -> impl Iterator<Item = (&Monomial, i64)> {
        self.terms.iter().map(|(m, c)| (m, *c))
    }
    pub fn as_constant(&self) -> Option<i64> {
        match &*self.terms {
            [] => Some(0),
            [(m, c)] if m.is_empty() => Some(*c),
            _ => None,
        }
    }
    pub fn as_var(&self) -> Option<Var> {
        match self.as_atom() {
            Some(Atom::Var(v)) => Some(*v),
            _ => None,
        }
    }
    fn as_atom(&self) -> Option<&Atom> {
        match &*self.terms {
            [(m, 1)] => match &**m {
                [atom] => Some(atom),
                _ => None,
            },
            _ => None,
        }
    }

    /// The largest number of atoms multiplied in a term.
    pub fn degree(&self) -> usize {
        self.terms.iter().map(|(m, _)| m.len()).max().unwrap_or(0)
    }

    /// How fast it grows with its variables: as which power of them.
    pub fn order(&self) -> usize {
        let of = |atom: &Atom| match atom {
            Atom::Var(_) => 1,
            Atom::Div(a, b) => a.order().saturating_sub(b.order()),
            Atom::Mod(_, b) => b.order(),
            Atom::Min(a, b) => a.order().min(b.order()),
            Atom::Max(a, b) => a.order().max(b.order()),
        };
        self.terms.iter().map(|(m, _)| m.iter().map(of).sum()).max().unwrap_or(0)
    }

    /// How deep operations that are not polynomial stand in one another.
    pub fn nesting(&self) -> usize {
        let of = |atom: &Atom| match atom {
            Atom::Var(_) => 0,
            Atom::Div(a, b) | Atom::Mod(a, b) | Atom::Min(a, b) | Atom::Max(a, b) => 1 + a.nesting().max(b.nesting()),
        };
        self.terms.iter().flat_map(|(m, _)| m.iter()).map(of).max().unwrap_or(0)
    }

    pub fn add(&self, other: &Size) -> Size {
        self.plus(other, 1)
    }
    pub fn sub(&self, other: &Size) -> Size {
        self.plus(other, -1)
    }
    /// `self + factor * other`
    fn plus(&self, other: &Size, factor: i64) -> Size {
        if other.terms.is_empty() {
            return self.clone();
        }
        if self.terms.is_empty() {
            return other.scale(factor);
        }
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        let (mut ours, mut theirs) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        let scaled = |(m, c): &Term| (m.clone(), c.wrapping_mul(factor));
        loop {
            let order = match (ours.peek(), theirs.peek()) {
                (Some((m, _)), Some((n, _))) => m.cmp(n),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return Size { terms: terms.into() },
            };
            match order {
                Ordering::Less => terms.extend(ours.next().cloned()),
                Ordering::Greater => terms.extend(theirs.next().map(scaled)),
                Ordering::Equal => {
                    if let (Some((m, c)), Some((_, d))) = (ours.next(), theirs.next()) {
                        let sum = c.wrapping_add(d.wrapping_mul(factor));
                        if sum != 0 {
                            terms.push((m.clone(), sum));
                        }
                    }
                }
            }
        }
    }
    pub fn scale(&self, factor: i64) -> Size {
        if factor == 1 {
            return self.clone();
        }
        let scaled = self.terms.iter().map(|(m, c)| (m.clone(), c.wrapping_mul(factor))).filter(|(_, c)| *c != 0);
        Size { terms: scaled.collect::<Vec<_>>().into() }
    }
    pub fn mul(&self, other: &Size) -> Size {
        if let Some(c) = self.as_constant() {
            return other.scale(c);
        }
        if let Some(c) = other.as_constant() {
            return self.scale(c);
        }
        let mut terms = Vec::with_capacity(self.terms.len() * other.terms.len());
        for (m, c) in self.terms.iter() {
            for (n, d) in other.terms.iter() {
                let mut atoms: Vec<Atom> = m.iter().chain(n.iter()).cloned().collect();
                atoms.sort();
                terms.push((atoms.into(), c.wrapping_mul(*d)));
            }
        }
        Size::of(terms)
    }
    /// Floored division. Exact where every coefficient is divisible by a constant divisor.
    pub fn div(&self, other: &Size) -> Size {
        if let Some(d) = other.as_constant().filter(|d| *d != 0) {
            if let Some(c) = self.as_constant() {
                return Size::constant(floor_div(c, d));
            }
            if self.terms.iter().all(|(_, c)| c % d == 0) {
                return Size { terms: self.terms.iter().map(|(m, c)| (m.clone(), c / d)).collect::<Vec<_>>().into() };
            }
        }
        Size::atom(Atom::Div(Box::new(self.clone()), Box::new(other.clone())))
    }
    pub fn modulo(&self, other: &Size) -> Size {
        if let Some(d) = other.as_constant().filter(|d| *d != 0) {
            if let Some(c) = self.as_constant() {
                return Size::constant(c.wrapping_sub(d.wrapping_mul(floor_div(c, d))));
            }
            if self.terms.iter().all(|(_, c)| c % d == 0) {
                return Size::default();
            }
        }
        Size::atom(Atom::Mod(Box::new(self.clone()), Box::new(other.clone())))
    }
    pub fn minimum(&self, other: &Size) -> Size {
        match self.sub(other).as_constant() {
            Some(c) if c <= 0 => self.clone(),
            Some(_) => other.clone(),
            None => {
                let (a, b) = if self <= other { (self, other) } else { (other, self) };
                Size::atom(Atom::Min(Box::new(a.clone()), Box::new(b.clone())))
            }
        }
    }
    pub fn maximum(&self, other: &Size) -> Size {
        match self.sub(other).as_constant() {
            Some(c) if c >= 0 => self.clone(),
            Some(_) => other.clone(),
            None => {
                let (a, b) = if self <= other { (self, other) } else { (other, self) };
                Size::atom(Atom::Max(Box::new(a.clone()), Box::new(b.clone())))
            }
        }
    }

    /// The size as an axis: `max(0, p)` as an axis is `p`, a negative constant is 0.
    pub fn axis(&self) -> Size {
        if let Some(c) = self.as_constant() {
            return Size::constant(c.max(0));
        }
        if let Some(Atom::Max(a, b)) = self.as_atom() {
            match (a.as_constant(), b.as_constant()) {
                (Some(0), _) => return b.axis(),
                (_, Some(0)) => return a.axis(),
                _ => {}
            }
        }
        self.clone()
    }

    /// The same size, with what is a multiple of a constant taken out of divisions by it: `(n * n + 3 * n + 2) div 2` is
    /// `(n * n + n) div 2 + n + 1`. Then sizes are the same more often, though not shorter.
    pub fn reduced(&self) -> Size {
        let mut result = Size::default();
        for (m, c) in self.terms.iter() {
            let mut product = Size::constant(*c);
            for atom in m.iter() {
                let factor = match atom {
                    Atom::Div(a, b) => {
                        let (a, b) = (a.reduced(), b.reduced());
                        match b.as_constant().filter(|d| *d != 0) {
                            Some(d) => {
                                let multiple = Size::of(a.terms.iter().map(|(m, c)| (m.clone(), floor_div(*c, d))).collect());
                                a.sub(&multiple.scale(d)).div(&b).add(&multiple)
                            }
                            None => a.div(&b),
                        }
                    }
                    Atom::Var(_) | Atom::Mod(..) | Atom::Min(..) | Atom::Max(..) => Size::atom(atom.clone()),
                };
                product = product.mul(&factor);
            }
            result = result.add(&product);
        }
        result
    }

    /// Replaces variables by sizes.
    pub fn substitute(&self, f: &impl Fn(Var) -> Option<Size>) -> Size {
        let mut any = false;
        self.for_each_variable(&mut |v| any = any || f(v).is_some());
        if !any {
            return self.clone();
        }
        let mut result = Size::default();
        for (m, c) in self.terms.iter() {
            let mut product = Size::constant(*c);
            for atom in m.iter() {
                let factor = match atom {
                    Atom::Var(v) => f(*v).unwrap_or_else(|| Size::var(*v)),
                    Atom::Div(a, b) => a.substitute(f).div(&b.substitute(f)),
                    Atom::Mod(a, b) => a.substitute(f).modulo(&b.substitute(f)),
                    Atom::Min(a, b) => a.substitute(f).minimum(&b.substitute(f)),
                    Atom::Max(a, b) => a.substitute(f).maximum(&b.substitute(f)),
                };
                product = product.mul(&factor);
            }
            result = result.add(&product);
        }
        result
    }

    pub fn variables(&self, out: &mut Vec<Var>) {
        self.for_each_variable(&mut |v| out.push(v));
    }
    pub fn for_each_variable(&self, f: &mut dyn FnMut(Var)) {
        for atom in self.terms.iter().flat_map(|(m, _)| m.iter()) {
            match atom {
                Atom::Var(v) => f(*v),
                Atom::Div(a, b) | Atom::Mod(a, b) | Atom::Min(a, b) | Atom::Max(a, b) => {
                    a.for_each_variable(f);
                    b.for_each_variable(f);
                }
            }
        }
    }
    /// What makes this size equal to `value`, where it is `var` and something that does not mention it, or the triangle of
    /// such a size.
    pub fn solve(&self, var: Var, value: &Size) -> Option<Size> {
        let rest = self.sub(&Size::var(var));
        if !rest.mentions(var) {
            return Some(value.sub(&rest));
        }
        self.base()?.solve(var, &value.base()?)
    }

    /// The size whose triangle this is: `n` of `n * (n + 1) div 2`, for `n` of degree 1.
    pub fn base(&self) -> Option<Size> {
        // t = s (s + 1) / 2 is 8 t + 1 = (2 s + 1)^2.
        let eight = match self.as_atom() {
            Some(Atom::Div(a, b)) if b.as_constant() == Some(2) => a.scale(4),
            _ => self.scale(8),
        };
        let root = eight.add(&Size::constant(1)).root()?;
        let twice = root.sub(&Size::constant(1));
        let half = twice.div(&Size::constant(2));
        (half.scale(2) == twice && half.mul(&half.add(&Size::constant(1))).div(&Size::constant(2)) == *self).then_some(half)
    }

    /// The square root of a square of a size of degree 1, its first coefficient positive.
    fn root(&self) -> Option<Size> {
        fn exact(c: i64) -> Option<i64> {
            let root = (c.max(0) as f64).sqrt().round() as i64;
            (root.checked_mul(root)? == c).then_some(root)
        }
        let mut root = Size::default();
        let coefficient = |a: &[Atom]| self.terms.iter().find(|(m, _)| **m == *a).map_or(0, |(_, c)| *c);
        let constant = exact(coefficient(&[]))?;
        let mut first: Option<(Atom, i64)> = None;
        for (m, c) in self.terms.iter() {
            let [a, b] = &**m else { continue };
            if a != b {
                continue;
            }
            let magnitude = exact(*c)?;
            let sign = match &first {
                None => 1,
                Some((lead, _)) => {
                    let mut pair = [lead.clone(), a.clone()];
                    pair.sort();
                    coefficient(&pair).signum()
                }
            };
            first.get_or_insert((a.clone(), magnitude));
            root = root.add(&Size::atom(a.clone()).scale(sign * magnitude));
        }
        let sign = first.map_or(1, |(lead, _)| if coefficient(&[lead]) < 0 { -1 } else { 1 });
        let root = root.add(&Size::constant(sign * constant));
        (root.mul(&root) == *self).then_some(root)
    }

    pub fn mentions(&self, var: Var) -> bool {
        self.terms.iter().flat_map(|(m, _)| m.iter()).any(|atom| atom.mentions(var))
    }

    /// The value under an assignment; `None` on overflow, on division by zero, or where a variable is unknown.
    pub fn evaluate(&self, value: &impl Fn(Var) -> Option<i64>) -> Option<i64> {
        let mut total = 0i64;
        for (m, c) in self.terms.iter() {
            let mut product = *c;
            for atom in m.iter() {
                let pair = |a: &Size, b: &Size| Some((a.evaluate(value)?, b.evaluate(value)?));
                let factor = match atom {
                    Atom::Var(v) => value(*v)?,
                    Atom::Div(a, b) => pair(a, b).filter(|p| p.1 != 0).map(|(a, b)| floor_div(a, b))?,
                    Atom::Mod(a, b) => pair(a, b).filter(|p| p.1 != 0).map(|(a, b)| a.wrapping_sub(b.wrapping_mul(floor_div(a, b))))?,
                    Atom::Min(a, b) => pair(a, b).map(|(a, b)| a.min(b))?,
                    Atom::Max(a, b) => pair(a, b).map(|(a, b)| a.max(b))?,
                };
                product = product.checked_mul(factor)?;
            }
            total = total.checked_add(product)?;
        }
        Some(total)
    }
}

/// Division rounded towards minus infinity, as `div` has it.
pub fn floor_div(a: i64, b: i64) -> i64 {
    let q = a.wrapping_div(b);
    if a.wrapping_rem(b) != 0 && ((a < 0) != (b < 0)) { q - 1 } else { q }
}

impl std::fmt::Debug for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.terms.is_empty() {
            return write!(f, "0");
        }
        for (k, (m, c)) in self.terms.iter().enumerate() {
            if k > 0 {
                write!(f, " + ")?;
            }
            write!(f, "{c}")?;
            for atom in m.iter() {
                write!(f, "*{atom:?}")?;
            }
        }
        Ok(())
    }
}
