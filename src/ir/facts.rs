//! What is known of integers at a place in a program, and what follows from it.
//!
//! A fact is a polynomial that is at least zero. Facts come from index ranges (`i - lo >= 0`, `hi - 1 - i >= 0`), sizes
//! (`n >= 0`), guards, and definitions. To prove `g >= 0`, a term that could make `g` negative is cancelled by a
//! multiple of a fact (`g = g' + c * fact * monomial`, with `c` and the monomial at least zero), until only terms that
//! cannot be negative are left. Where that fails, a variable with a lower bound is replaced by the bound plus a new
//! variable that is at least zero (`a >= b + 1` gives `a = b + 1 + s`), which proves polynomials of any degree once all
//! coefficients are positive. The searches are bounded, so a proof may be missed but never invented.

use super::build::exp_size;
use super::fingerprint::fingerprint;
use super::*;
use crate::types::size::{Atom, Monomial};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::rc::Rc;

#[derive(Clone, Debug, Default)]
pub struct Facts {
    known: Vec<Size>,
    /// For each fact a fingerprint of it and all before it: what proofs are remembered by.
    fingerprints: Vec<u128>,
    /// What holds where a condition is known to.
    conditional: Vec<Conditional>,
    proofs: Proofs,
}

/// `fact >= 0` where `condition >= 0`.
#[derive(Clone, Debug)]
struct Conditional {
    condition: Size,
    fact: Size,
}

/// How much is known at a place.
#[derive(Clone, Copy)]
pub struct Mark {
    known: usize,
    conditional: usize,
}

/// Goals tried before, and whether they were proven. Variables keep their meaning in all passes over a program, so what
/// was found under the same facts holds again.
#[derive(Clone, Debug, Default)]
pub struct Proofs(Rc<RefCell<FxHashMap<(u128, Size), bool>>>);

/// The variables that were looked at in a proof, and whether they are known not to be negative.
type Signs = RefCell<FxHashMap<Var, bool>>;

/// How many steps a proof may try in all, and how long one chain of cancellations may be.
const EFFORT: usize = 400;
/// How many steps are tried to see that a condition follows from a new fact.
const SHORT: usize = 20;
const DEPTH: usize = 7;
/// How many terms in all polynomials that are known count as one step.
const LONG: usize = 32;

impl Facts {
    /// The facts at the entry of a function: its sizes are not negative.
    pub fn of_function(f: &Function) -> Facts {
        Facts::of_function_with(f, &Proofs::default())
    }
    /// The same, with proofs remembered from earlier passes.
    pub fn of_function_with(f: &Function, proofs: &Proofs) -> Facts {
        let mut facts = Facts { proofs: proofs.clone(), ..Facts::default() };
        f.sizes.iter().for_each(|n| facts.assume_nonneg(Size::var(*n)));
        facts
    }

    pub fn assume_nonneg(&mut self, size: Size) {
        self.explain_atoms(&size);
        if size.as_constant().is_none() && !self.known.contains(&size) {
            self.push(size);
            let follows =
                |c: &Conditional| !self.known.contains(&c.fact) && self.search(&c.condition, 2, &mut { SHORT }, &Signs::default());
            let facts: Vec<Size> = self.conditional.iter().filter(|c| follows(c)).map(|c| c.fact.clone()).collect();
            facts.into_iter().for_each(|fact| self.push(fact));
        }
    }
    fn assume_where(&mut self, condition: &Size, fact: Size) {
        match self.prove_nonneg(condition) {
            true => self.assume_nonneg(fact),
            false => self.conditional.push(Conditional { condition: condition.clone(), fact }),
        }
    }
    fn push(&mut self, fact: Size) {
        self.fingerprints.push(fingerprint(&(self.fingerprint(), &fact)));
        self.known.push(fact);
    }

    /// The same where the same is known.
    pub fn fingerprint(&self) -> u128 {
        self.fingerprints.last().copied().unwrap_or(0)
    }

    /// Remembers how much is known, to forget what is learnt after it.
    pub fn mark(&self) -> Mark {
        Mark { known: self.known.len(), conditional: self.conditional.len() }
    }
    pub fn reset(&mut self, mark: Mark) {
        self.known.truncate(mark.known);
        self.fingerprints.truncate(mark.known);
        self.conditional.truncate(mark.conditional);
    }

    /// The facts inside a binder: `lo <= index < hi`.
    pub fn enter(&mut self, index: Var, lo: &Size, hi: &Size) {
        self.assume_nonneg(Size::var(index).sub(lo));
        self.assume_nonneg(hi.sub(&Size::var(index)).sub(&Size::constant(1)));
    }
    pub fn enter_range(&mut self, range: &Range) {
        if let Some(lo) = exp_size(&range.lo) {
            self.assume_nonneg(Size::var(range.index).sub(&lo));
        }
        if let Some(hi) = exp_size(&range.hi) {
            self.assume_nonneg(hi.sub(&Size::var(range.index)).sub(&Size::constant(1)));
        }
    }
    pub fn enter_for(&mut self, index: Var, size: &Size) {
        self.enter(index, &Size::constant(0), size);
    }

    /// `var` is this value.
    pub fn define(&mut self, var: Var, value: &Exp) {
        // The place of an extremum is one of those looked at.
        if let Exp::Reduce(Reduction::ArgMax | Reduction::ArgMin, range, _, _) = value {
            self.enter_range(&Range { index: var, lo: range.lo.clone(), hi: range.hi.clone() });
        }
        // The same where there is one; zero elsewhere.
        if let Exp::Guard(condition, inner) = value {
            if let Exp::Reduce(Reduction::ArgMax | Reduction::ArgMin, range, _, _) = &**inner {
                self.define_guarded(var, condition, range);
            }
        }
        // What was checked to lie in a range does.
        if let Exp::Op(Op::Within, args, _) = value {
            if let Some(n) = exp_size(&args[1]) {
                self.enter_for(var, &n);
            }
            if let Some(i) = exp_size(&args[0]) {
                self.assume_nonneg(Size::var(var).sub(&i));
                self.assume_nonneg(i.sub(&Size::var(var)));
            }
        }
        if let Some(size) = exp_size(value) {
            self.assume_nonneg(Size::var(var).sub(&size));
            self.assume_nonneg(size.sub(&Size::var(var)));
        }
    }

    /// `var` is in the range where `lo < hi` says so, and zero elsewhere.
    fn define_guarded(&mut self, var: Var, condition: &Exp, range: &Range) {
        let (Some((lo, hi)), Some((a, b, Op::Lt))) = (exp_size(&range.lo).zip(exp_size(&range.hi)), comparison(condition)) else { return };
        let some = b.sub(&a).sub(&Size::constant(1));
        if self.prove_nonneg(&lo) {
            self.assume_nonneg(Size::var(var));
        }
        self.assume_where(&some, Size::var(var).sub(&lo));
        self.assume_where(&some, hi.sub(&Size::var(var)).sub(&Size::constant(1)));
    }

    /// The condition holds.
    pub fn assume(&mut self, condition: &Exp) {
        match condition {
            Exp::Op(Op::And, parts, _) => parts.iter().for_each(|p| self.assume(p)),
            Exp::Guard(p, q) => {
                self.assume(p);
                self.assume(q);
            }
            Exp::If(p, q, no) if **no == build::bool(false) => {
                self.assume(p);
                self.assume(q);
            }
            Exp::Op(Op::Not, inner, _) => self.assume_not(&inner[0]),
            _ => {
                if let Some((a, b, op)) = comparison(condition) {
                    match op {
                        Op::Eq => {
                            self.assume_nonneg(a.sub(&b));
                            self.assume_nonneg(b.sub(&a));
                        }
                        Op::Le => self.assume_nonneg(b.sub(&a)),
                        Op::Lt => self.assume_nonneg(b.sub(&a).sub(&Size::constant(1))),
                        Op::Ge => self.assume_nonneg(a.sub(&b)),
                        Op::Gt => self.assume_nonneg(a.sub(&b).sub(&Size::constant(1))),
                        Op::Ne => self.assume_apart(&a, &b),
                        _ => {}
                    }
                }
            }
        }
    }
    /// The numbers differ: an end of a range that one of them is in is not in it.
    fn assume_apart(&mut self, a: &Size, b: &Size) {
        for (more, less) in [(a, b), (b, a)] {
            if self.prove_nonneg(&more.sub(less)) {
                return self.assume_nonneg(more.sub(less).sub(&Size::constant(1)));
            }
        }
    }
    /// The condition does not hold.
    pub fn assume_not(&mut self, condition: &Exp) {
        match condition {
            Exp::Op(Op::Or, parts, _) => parts.iter().for_each(|p| self.assume_not(p)),
            Exp::Op(Op::Not, inner, _) => self.assume(&inner[0]),
            Exp::Op(op @ (Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Ne | Op::Eq), args, _) => {
                let opposite = match op {
                    Op::Lt => Op::Ge,
                    Op::Le => Op::Gt,
                    Op::Gt => Op::Le,
                    Op::Ge => Op::Lt,
                    Op::Eq => Op::Ne,
                    _ => Op::Eq,
                };
                self.assume(&Exp::Op(opposite, args.clone(), Site::default()));
            }
            _ => {}
        }
    }

    /// Whether a condition on integers is known to hold (`Some(true)`), not to hold (`Some(false)`), or neither.
    pub fn decide(&self, vars: &Vars, condition: &Exp) -> Option<bool> {
        match condition {
            Exp::Lit(Lit::Bool(b)) => Some(*b),
            Exp::Op(Op::And, parts, _) => match (self.decide(vars, &parts[0]), self.decide(vars, &parts[1])) {
                (Some(true), Some(true)) => Some(true),
                (Some(false), _) | (_, Some(false)) => Some(false),
                _ => None,
            },
            Exp::Op(Op::Or, parts, _) => match (self.decide(vars, &parts[0]), self.decide(vars, &parts[1])) {
                (Some(false), Some(false)) => Some(false),
                (Some(true), _) | (_, Some(true)) => Some(true),
                _ => None,
            },
            Exp::Op(Op::Not, parts, _) => self.decide(vars, &parts[0]).map(|b| !b),
            _ => {
                let (a, b, op) = comparison(condition).filter(|_| compares_integers(vars, condition))?;
                let one = Size::constant(1);
                let le = |a: &Size, b: &Size| self.prove_nonneg(&b.sub(a));
                let lt = |a: &Size, b: &Size| self.prove_nonneg(&b.sub(a).sub(&one));
                let (yes, no) = match op {
                    Op::Le => (le(&a, &b), lt(&b, &a)),
                    Op::Lt => (lt(&a, &b), le(&b, &a)),
                    Op::Ge => (le(&b, &a), lt(&a, &b)),
                    Op::Gt => (lt(&b, &a), le(&a, &b)),
                    Op::Eq => (le(&a, &b) && le(&b, &a), lt(&a, &b) || lt(&b, &a)),
                    Op::Ne => (lt(&a, &b) || lt(&b, &a), le(&a, &b) && le(&b, &a)),
                    _ => return None,
                };
                match (yes, no) {
                    (true, _) => Some(true),
                    (_, true) => Some(false),
                    _ => None,
                }
            }
        }
    }

    /// Whether a read at `key` of an axis is known to be in range.
    pub fn in_range(&self, key: &Exp, axis: &Size) -> bool {
        if let Exp::Reduce(Reduction::ArgMax | Reduction::ArgMin, range, _, _) = key {
            let ends = exp_size(&range.lo).zip(exp_size(&range.hi));
            return ends.is_some_and(|(lo, hi)| self.prove_nonneg(&lo) && self.prove_nonneg(&axis.sub(&hi)));
        }
        match exp_size(key) {
            Some(k) => self.prove_nonneg(&k) && self.prove_nonneg(&axis.sub(&k).sub(&Size::constant(1))),
            None => false,
        }
    }

    pub fn prove_nonneg(&self, goal: &Size) -> bool {
        if let Some(c) = goal.as_constant() {
            return c >= 0;
        }
        let key = (self.fingerprint(), goal.clone());
        if let Some(known) = self.proofs.0.borrow().get(&key) {
            return *known;
        }
        let found = self.prove(goal);
        self.proofs.0.borrow_mut().insert(key, found);
        found
    }

    fn prove(&self, goal: &Size) -> bool {
        // Variables need no explanation.
        let plain = |(m, _): (&Monomial, i64)| m.iter().all(|a| matches!(a, Atom::Var(_)));
        if goal.terms().all(plain) {
            return self.prove_explained(goal);
        }
        let mut facts = self.clone();
        facts.explain_atoms(goal);
        facts.prove_explained(goal)
    }

    fn prove_explained(&self, goal: &Size) -> bool {
        let signs = Signs::default();
        // Short proofs first: a long search must not miss them.
        for depth in [1, 2, DEPTH] {
            if self.search(goal, depth, &mut { EFFORT }, &signs) {
                return true;
            }
        }
        let goal = exact_quotients(goal);
        goal.degree() > 1 && {
            let known = self.known.iter().map(exact_quotients).collect();
            Facts { known, ..Facts::default() }.search_by_slack(&goal, 0, &mut { EFFORT })
        }
    }

    /// Replaces variables by their lower bounds plus new variables, until no coefficient is negative.
    fn search_by_slack(&self, goal: &Size, depth: u32, effort: &mut usize) -> bool {
        if self.worst_term(goal, &Signs::default()).is_none() {
            return true;
        }
        let mut vars = vec![];
        goal.variables(&mut vars);
        vars.sort();
        vars.dedup();
        for v in vars {
            for fact in &self.known {
                let bound = Size::var(v).sub(fact);
                // A bound is of use if it is above zero somewhere.
                if bound.mentions(v) || bound.degree() > 1 || !bound.terms().any(|(_, c)| c > 0) {
                    continue;
                }
                if *effort == 0 {
                    return false;
                }
                // Substituting in long polynomials makes longer ones.
                let length: usize = self.known.iter().chain([goal]).map(|s| s.terms().count()).sum();
                *effort = effort.saturating_sub(1 + length / LONG);
                let slack = Var(u32::MAX - depth);
                let value = bound.add(&Size::var(slack));
                let put = |s: &Size| s.substitute(&|w| (w == v).then(|| value.clone()));
                let mut known: Vec<Size> = self.known.iter().map(put).filter(|f| f.as_constant().is_none()).collect();
                known.push(Size::var(slack));
                // What holds anyway says nothing new, but for the signs of variables.
                let (all, signs) = (Facts { known, ..Facts::default() }, Signs::default());
                let known = all.known.iter().filter(|f| f.as_var().is_some() || all.worst_term(f, &signs).is_some()).cloned().collect();
                let next = Facts { known, ..Facts::default() };
                if next.search_by_slack(&put(goal), depth + 1, effort) {
                    return true;
                }
            }
        }
        false
    }

    fn search(&self, goal: &Size, depth: usize, effort: &mut usize, signs: &Signs) -> bool {
        let Some((bad, coefficient)) = self.worst_term(goal, signs) else { return true };
        if depth == 0 || (bad.is_empty() && goal.as_constant().is_some()) {
            return false;
        }
        // A negative constant alone cannot be cancelled by its own monomial: cancel a positive term by a fact instead,
        // which trades it for the fact's constant.
        let targets: Vec<(&Monomial, i64)> = match bad.is_empty() {
            true => goal.terms().filter(|(m, k)| !m.is_empty() && *k > 0).collect(),
            false => vec![(bad, coefficient)],
        };
        for fact in &self.known {
            for (part, c) in fact.terms() {
                for (target, k) in &targets {
                    let k = *k;
                    if (c < 0) != (k < 0) || part.is_empty() {
                        continue;
                    }
                    let Some(rest) = quotient(target, part) else { continue };
                    if !rest.iter().all(|a| self.atom_nonneg(a, signs)) {
                        continue;
                    }
                    if *effort == 0 {
                        return false;
                    }
                    *effort -= 1;
                    let multiple = rest.iter().fold(fact.clone(), |f, a| f.mul(&atom_size(a)));
                    // |c| * goal - |k| * multiple has no `target` term; it is at least zero only if goal is.
                    let (Some(c), Some(k)) = (c.checked_abs(), k.checked_abs()) else { continue };
                    if c > 1 << 20 || k > 1 << 20 {
                        continue;
                    }
                    let next = goal.scale(c).sub(&multiple.scale(k));
                    if self.search(&next, depth - 1, effort, signs) {
                        return true;
                    }
                }
            }
        }
        false
    }

    /// A term that can be negative: of unknown sign first, then negative ones, a negative constant last.
    fn worst_term<'g>(&self, goal: &'g Size, signs: &Signs) -> Option<(&'g Monomial, i64)> {
        let unknown = goal.terms().find(|(m, _)| !m.iter().all(|a| self.atom_nonneg(a, signs)) && !is_square(m));
        let negative = goal.terms().filter(|(m, _)| !m.is_empty()).find(|(_, c)| *c < 0);
        let constant = goal.terms().find(|(m, c)| m.is_empty() && *c < 0);
        unknown.or(negative).or(constant)
    }

    fn atom_nonneg(&self, atom: &Atom, signs: &Signs) -> bool {
        let size_nonneg = |s: &Size| s.terms().all(|(m, c)| c >= 0 && m.iter().all(|x| self.atom_nonneg(x, signs)));
        match atom {
            Atom::Var(v) => {
                let known = signs.borrow().get(v).copied();
                known.unwrap_or_else(|| {
                    let found = self.atom_known(atom) || self.var_nonneg(*v);
                    signs.borrow_mut().insert(*v, found);
                    found
                })
            }
            Atom::Div(a, b) => self.atom_known(atom) || (b.as_constant().is_some_and(|b| b > 0) && size_nonneg(a)),
            Atom::Mod(_, b) => self.atom_known(atom) || b.as_constant().is_some_and(|b| b > 0),
            Atom::Min(a, b) => self.atom_known(atom) || (size_nonneg(a) && size_nonneg(b)),
            Atom::Max(a, b) => self.atom_known(atom) || size_nonneg(a) || size_nonneg(b),
        }
    }
    /// Whether it is a fact that `v - rest >= 0`, where every term of rest is made of atoms known not to be negative.
    fn var_nonneg(&self, v: Var) -> bool {
        self.known.iter().any(|f| {
            let mut alone = false;
            f.terms().all(|(m, c)| {
                if **m == [Atom::Var(v)] {
                    alone = c == 1;
                    return alone;
                }
                c <= 0 && m.iter().all(|a| !a.mentions(v) && self.atom_known(a))
            }) && alone
        })
    }
    /// Whether it is a fact that the atom, less a number that is not negative, is at least zero.
    fn atom_known(&self, atom: &Atom) -> bool {
        self.known.iter().any(|f| {
            let mut terms = f.terms();
            match (terms.next(), terms.next(), terms.next()) {
                (Some((m, 1)), None, None) => m.len() == 1 && m[0] == *atom,
                (Some((one, c)), Some((m, 1)), None) => one.is_empty() && c <= 0 && m.len() == 1 && m[0] == *atom,
                _ => false,
            }
        })
    }

    /// Adds what holds of `min`, `max`, `div` and `mod` by their nature.
    fn explain_atoms(&mut self, size: &Size) {
        let atoms: Vec<Atom> = size.terms().flat_map(|(m, _)| m.iter().cloned()).collect();
        for atom in atoms {
            let here = atom_size(&atom);
            // Of periodic reads, `x[(i + 1) mod n]`, the period is a size.
            let period = match &atom {
                Atom::Mod(_, b) if self.is_positive(b) => Some((**b).clone()),
                _ => None,
            };
            let mut add = |fact: Size| {
                if fact.as_constant().is_none() && !self.known.contains(&fact) {
                    self.push(fact.clone());
                    self.explain_atoms(&fact);
                }
            };
            match &atom {
                Atom::Var(_) => {}
                Atom::Min(a, b) => {
                    add(a.sub(&here));
                    add(b.sub(&here));
                }
                Atom::Max(a, b) => {
                    add(here.sub(a));
                    add(here.sub(b));
                }
                Atom::Div(a, b) => {
                    if let Some(d) = b.as_constant().filter(|d| *d > 0) {
                        if always_divides(a, d) {
                            add(here.scale(d).sub(a));
                        }
                        add(a.sub(&here.scale(d)));
                        add(here.scale(d).add(&Size::constant(d - 1)).sub(a));
                    }
                }
                Atom::Mod(..) => {
                    if let Some(period) = period {
                        add(here.clone());
                        add(period.sub(&Size::constant(1)).sub(&here));
                    }
                }
            }
        }
    }
    fn is_positive(&self, size: &Size) -> bool {
        match size.as_constant() {
            Some(c) => c > 0,
            None => self.search(&size.sub(&Size::constant(1)), 2, &mut { EFFORT }, &Signs::default()),
        }
    }
}

/// Whether a polynomial in variables is a multiple of `d` for all integers: tried for all remainders.
fn always_divides(size: &Size, d: i64) -> bool {
    let mut vars = vec![];
    size.variables(&mut vars);
    vars.sort();
    vars.dedup();
    let plain = size.terms().all(|(m, _)| m.iter().all(|a| matches!(a, Atom::Var(_))));
    let cases = (d as usize).checked_pow(vars.len() as u32).filter(|c| *c <= 64);
    let (true, Some(cases)) = (plain, cases) else { return false };
    (0..cases).all(|case| {
        let value = |v: Var| vars.iter().position(|w| *w == v).map(|k| (case / (d as usize).pow(k as u32) % d as usize) as i64);
        size.evaluate(&value).is_some_and(|x| x % d == 0)
    })
}

/// A positive multiple of the size in which quotients that leave no remainder are multiplied out.
fn exact_quotients(size: &Size) -> Size {
    let found = size.terms().flat_map(|(m, _)| m.iter()).find_map(|atom| match atom {
        Atom::Div(a, b) => b.as_constant().filter(|d| *d > 0 && always_divides(a, *d)).map(|d| (atom.clone(), (**a).clone(), d)),
        _ => None,
    });
    let Some((atom, whole, d)) = found else { return size.clone() };
    let mut result = Size::default();
    for (m, c) in size.terms() {
        let count = m.iter().filter(|a| **a == atom).count();
        if count > 1 {
            return size.clone();
        }
        let rest = m.iter().filter(|a| **a != atom).fold(Size::constant(c), |p, a| p.mul(&atom_size(a)));
        result = result.add(&if count == 1 { rest.mul(&whole) } else { rest.scale(d) });
    }
    exact_quotients(&result)
}

fn comparison(condition: &Exp) -> Option<(Size, Size, Op)> {
    match condition {
        Exp::Op(op @ (Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge), args, _) => {
            Some((exp_size(&args[0])?, exp_size(&args[1])?, *op))
        }
        _ => None,
    }
}

/// Whether a comparison of what look like sizes is one of integers. Floats look alike, but follow other laws: NaN
/// compares with nothing, and sums are rounded. (Facts about floats do no harm: no goal about integers meets them.)
fn compares_integers(vars: &Vars, condition: &Exp) -> bool {
    match condition {
        Exp::Var(v) => *vars.ty(*v) == Type::I64,
        Exp::Lit(lit) => lit.scalar() == Scalar::I64,
        Exp::Op(_, args, _) => compares_integers(vars, &args[0]),
        _ => false,
    }
}

fn atom_size(atom: &Atom) -> Size {
    match atom {
        Atom::Var(v) => Size::var(*v),
        Atom::Div(a, b) => a.div(b),
        Atom::Mod(a, b) => a.modulo(b),
        Atom::Min(a, b) => a.minimum(b),
        Atom::Max(a, b) => a.maximum(b),
    }
}

fn is_square(monomial: &Monomial) -> bool {
    monomial.len() % 2 == 0 && monomial.chunks(2).all(|pair| pair[0] == pair[1])
}

/// `whole / part` as products of atoms.
fn quotient(whole: &Monomial, part: &Monomial) -> Option<Monomial> {
    if part.iter().any(|a| !whole.contains(a)) {
        return None;
    }
    let mut rest = whole.to_vec();
    for atom in part.iter() {
        rest.remove(rest.iter().position(|a| a == atom)?);
    }
    Some(rest.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v(k: u32) -> Size {
        Size::var(Var(k))
    }
    fn c(k: i64) -> Size {
        Size::constant(k)
    }

    #[test]
    fn proves_what_holds_and_nothing_else() {
        let (n, m, i, j, d) = (v(0), v(1), v(2), v(3), v(4));
        let mut facts = Facts::default();
        [&n, &m, &d].iter().for_each(|s| facts.assume_nonneg((*s).clone()));
        facts.enter(Var(2), &c(0), &n);
        facts.enter(Var(3), &c(0), &m);
        // i * m + j is a place of an array of n * m
        let flat = i.mul(&m).add(&j);
        assert!(facts.prove_nonneg(&flat));
        assert!(facts.prove_nonneg(&n.mul(&m).sub(&flat).sub(&c(1))));
        assert!(!facts.prove_nonneg(&n.mul(&m).sub(&flat).sub(&c(2))));
        assert!(facts.prove_nonneg(&n.add(&m).sub(&i).sub(&j).sub(&c(2))));
        assert!(!facts.prove_nonneg(&n.sub(&j)));
        // n >= 1 is known where i runs below n
        assert!(facts.prove_nonneg(&n.sub(&c(1))));
        assert!(!facts.prove_nonneg(&n.sub(&c(2))));
    }

    #[test]
    fn proves_places_in_packed_triangles() {
        let (d, a, b) = (v(0), v(1), v(2));
        let mut facts = Facts::default();
        facts.assume_nonneg(d.clone());
        facts.enter(Var(1), &c(0), &d);
        facts.enter(Var(2), &c(0), &a);
        let size = d.mul(&d.add(&c(1))).div(&c(2));
        let column = b.mul(&d.scale(2).sub(&b).sub(&c(1))).div(&c(2));
        let key = d.add(&column).add(&a).sub(&b).sub(&c(1));
        assert!(facts.prove_nonneg(&size.sub(&a).sub(&c(1))));
        assert!(facts.prove_nonneg(&key));
        assert!(facts.prove_nonneg(&size.sub(&key).sub(&c(1))));
        assert!(!facts.prove_nonneg(&size.sub(&key).sub(&c(2))));
    }

    #[test]
    fn knows_minima_and_quotients() {
        let (n, k, i) = (v(0), v(1), v(2));
        let mut facts = Facts::default();
        facts.assume_nonneg(n.clone());
        facts.assume_nonneg(k.clone());
        facts.enter(Var(2), &c(0), &n.minimum(&k));
        assert!(facts.prove_nonneg(&n.sub(&i).sub(&c(1))));
        assert!(facts.prove_nonneg(&k.sub(&i).sub(&c(1))));
        let half = i.div(&c(2));
        assert!(facts.prove_nonneg(&half));
        assert!(facts.prove_nonneg(&n.sub(&half).sub(&c(1))));
        assert!(!facts.prove_nonneg(&half.sub(&c(1))));
    }
}
