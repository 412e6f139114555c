//! Where a linear expression can be nonzero.
//!
//! In: an expression that is linear in a *seed* (a tangent or a cotangent), and how its variables are defined.
//! Out: its support, the places of the seed that it depends on, as a union of terms
//!
//! ```text
//! { (k(q), l(q)) | q in lo..hi, p(q) }
//! ```
//!
//! whose keys, ranges and conditions are integers of the program: `sum j. A[i, j] * seed[j]` has the support
//! `{ j | j in 0..n }`, `seed[is[i]] + seed[i + 1]` has `{ is[i] } ∪ { i + 1 }`. A support may be too large, never too
//! small. It depends on integers alone: a condition on floats is taken to hold, and a key that was computed from floats
//! stands for its whole axis.

use super::project::{alone, defined_part, project};
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy, substitute};
use crate::ir::*;
use crate::optimize::simplify::arrays::linear;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// More terms than these are not told apart.
const MOST_TERMS: usize = 48;

#[derive(Clone, Debug, Default)]
pub struct Term {
    pub loops: Vec<Range>,
    /// One for each axis of the seed.
    pub keys: Vec<Exp>,
    /// Conditions on integers.
    pub guards: Vec<Exp>,
}

/// `None`: it may be nonzero anywhere.
pub type Support = Option<Vec<Term>>;

/// What is known of the variables of an expression that is linear in a seed.
pub struct Linear<'a> {
    pub vars: &'a mut Vars,
    pub seed: Var,
    pub axes: Vec<Size>,
    /// Other seeds, which are zero.
    pub zeros: Vec<Var>,
    /// What variables are bound to, and which part of it they are.
    defined: FxHashMap<Var, (Rc<Exp>, Vec<usize>)>,
    /// Variables that depend on a seed.
    varying: FxHashSet<Var>,
    /// The support of each variable, in terms of variables for the indices it is read at.
    known: FxHashMap<Var, (Vec<Var>, Support)>,
    /// Which of the variables that loops carry depend on a seed.
    states: FxHashMap<Var, bool>,
}

impl<'a> Linear<'a> {
    pub fn new(vars: &'a mut Vars, seed: Var, zeros: Vec<Var>) -> Linear<'a> {
        let axes = vars.ty(seed).shape().to_vec();
        let varying = zeros.iter().copied().chain([seed]).collect();
        Linear {
            vars,
            seed,
            axes,
            zeros,
            defined: FxHashMap::default(),
            varying,
            known: FxHashMap::default(),
            states: FxHashMap::default(),
        }
    }

    /// `let vars = value`
    pub fn define(&mut self, vars: &[Var], value: &Exp) {
        let value = Rc::new(value.clone());
        for (k, v) in vars.iter().enumerate() {
            let path = if vars.len() == 1 { vec![] } else { vec![k] };
            if self.part_varies(&value, &path) {
                self.varying.insert(*v);
            }
            self.defined.insert(*v, (value.clone(), path));
        }
    }
    pub fn definition(&self, v: Var) -> Option<(Rc<Exp>, Vec<usize>)> {
        self.defined.get(&v).cloned()
    }

    pub fn is_varying(&self, v: Var) -> bool {
        self.varying.contains(&v)
    }
    /// Whether the expression depends on the seed.
    pub fn varies(&self, e: &Exp) -> bool {
        let mut found = matches!(e, Exp::Var(v) if self.varying.contains(v));
        e.for_each_child(&mut |c| found = found || self.varies(c));
        found
    }
    /// The same of one part of a tuple.
    pub fn part_varies(&mut self, e: &Exp, path: &[usize]) -> bool {
        match e {
            Exp::Tuple(parts) => match path.split_first() {
                Some((k, rest)) => self.part_varies(&parts[*k], rest),
                None => self.varies(e),
            },
            Exp::Let(vars, value, body) => {
                self.define(vars, value);
                self.part_varies(body, path)
            }
            // No condition depends on a seed, but one may stand behind parts of loops that cannot be told apart.
            Exp::If(p, a, b) => self.varies(p) || self.part_varies(a, path) || self.part_varies(b, path),
            Exp::Guard(p, body) => self.varies(p) || self.part_varies(body, path),
            Exp::For(_, _, body) | Exp::Sum(_, body) => self.part_varies(body, path),
            Exp::History(h) => self.state_varies(e, &h.state, path),
            Exp::Loop(l) => self.state_varies(e, &l.state, path),
            Exp::Var(v) if !path.is_empty() => match self.definition(*v) {
                Some((value, first)) => self.part_varies(&value, &[&first, path].concat()),
                None => self.varying.contains(v),
            },
            Exp::Var(_)
            | Exp::Lit(_)
            | Exp::Op(..)
            | Exp::Partial(..)
            | Exp::Index(..)
            | Exp::Singleton(..)
            | Exp::Reduce(..)
            | Exp::Update(..)
            | Exp::Array(_)
            | Exp::Call(..) => self.varies(e),
        }
    }

    /// The same of one part of what a loop carries: whether the loop that computes this part alone depends on the seed.
    fn state_varies(&mut self, e: &Exp, state: &[Var], path: &[usize]) -> bool {
        let Some(k) = path.first().filter(|_| state.len() > 1) else { return self.varies(e) };
        if let Some(varies) = self.states.get(&state[*k]) {
            return *varies;
        }
        let varies = self.varies(e) && alone(e, *k).is_none_or(|e| self.varies(&e));
        self.states.insert(state[*k], varies);
        varies
    }

    /// Whether integers alone decide the expression's value.
    pub fn of_integers(&self, e: &Exp) -> bool {
        match e {
            Exp::Lit(lit) => !lit.scalar().is_float(),
            Exp::Var(v) => {
                !self.vars.ty(*v).has_float()
                    && self.defined.get(v).is_none_or(|(value, path)| match path.as_slice() {
                        [] => self.of_integers(value),
                        path => defined_part(value, path).is_some_and(|e| self.of_integers(e)),
                    })
            }
            e => {
                let mut all = true;
                e.for_each_child(&mut |c| all = all && self.of_integers(c));
                all
            }
        }
    }

    /// The support of the part `path` of an expression, read at `keys`.
    pub fn support(&mut self, e: &Exp, path: &[usize], keys: &[Exp]) -> Support {
        if !self.varies(e) {
            return Some(vec![]);
        }
        match e {
            Exp::Var(v) if *v == self.seed => {
                let whole = keys.len() == self.axes.len();
                whole.then(|| vec![Term { keys: keys.to_vec(), ..Term::default() }])
            }
            Exp::Var(v) if path.is_empty() => self.support_of(*v, keys),
            Exp::Var(v) => {
                let (value, first) = self.definition(*v)?;
                self.support(&value, &[&first, path].concat(), keys)
            }
            Exp::Lit(_) => Some(vec![]),
            Exp::Op(_, args, _) | Exp::Partial(_, _, args) => self.union(args.iter(), path, keys),
            Exp::Index(array, own, _) => self.support(array, path, &[own, keys].concat()),
            Exp::Singleton(places, value, _) => {
                let rest = keys.get(places.len()..)?;
                let mut terms = self.support(value, path, rest)?;
                for ((place, _), key) in places.iter().zip(keys) {
                    self.under(&mut terms, op2(Op::Eq, place.clone(), key.clone()));
                }
                Some(terms)
            }
            Exp::For(i, _, body) => {
                let (first, rest) = keys.split_first()?;
                let body = copy(self.vars, body, &Substitution::from_iter([(*i, first.clone())]));
                self.support(&body, path, rest)
            }
            Exp::Sum(range, body) => {
                let mut terms = self.support(body, path, keys)?;
                if !self.of_integers(&range.lo) || !self.of_integers(&range.hi) {
                    return None;
                }
                for term in &mut terms {
                    if term.mentions(range.index) {
                        term.loops.insert(0, (**range).clone());
                    }
                }
                self.tidy(terms)
            }
            Exp::Guard(p, body) => {
                let mut terms = self.support(body, path, keys)?;
                self.under(&mut terms, (**p).clone());
                Some(terms)
            }
            Exp::If(p, a, b) => {
                let (mut yes, mut no) = (self.support(a, path, keys)?, self.support(b, path, keys)?);
                self.under(&mut yes, (**p).clone());
                self.under(&mut no, op1(Op::Not, (**p).clone()));
                yes.extend(no);
                self.tidy(yes)
            }
            Exp::Let(vars, value, body) => {
                self.define(vars, value);
                let terms = self.support(body, path, keys)?;
                terms.into_iter().map(|t| self.without(t, vars)).collect()
            }
            Exp::Tuple(parts) => {
                let (k, rest) = path.split_first()?;
                self.support(&parts[*k], rest, keys)
            }
            Exp::Array(items) => {
                let (first, rest) = keys.split_first()?;
                if let Exp::Lit(Lit::I64(k)) = first {
                    return self.support(items.get(usize::try_from(*k).ok()?)?, path, rest);
                }
                let mut all = vec![];
                for (k, item) in items.iter().enumerate() {
                    let mut terms = self.support(item, path, rest)?;
                    self.under(&mut terms, op2(Op::Eq, first.clone(), i64(k as i64)));
                    all.extend(terms);
                }
                self.tidy(all)
            }
            Exp::Update(array, places, value, _) => {
                let rest = keys.get(places.len()..)?;
                let mut written = self.support(value, path, rest)?;
                for (place, key) in places.iter().zip(keys) {
                    self.under(&mut written, op2(Op::Eq, place.clone(), key.clone()));
                }
                written.extend(self.support(array, path, keys)?);
                self.tidy(written)
            }
            Exp::Reduce(..) | Exp::History(_) | Exp::Loop(_) | Exp::Call(..) => None,
        }
    }

    fn union<'e>(&mut self, parts: impl Iterator<Item = &'e Exp>, path: &[usize], keys: &[Exp]) -> Support {
        let mut all = vec![];
        for part in parts {
            all.extend(self.support(part, path, keys)?);
        }
        self.tidy(all)
    }

    /// The support of a variable: found once, for indices that are variables, then read at the keys.
    fn support_of(&mut self, v: Var, keys: &[Exp]) -> Support {
        if self.zeros.contains(&v) {
            return Some(vec![]);
        }
        if !self.known.contains_key(&v) {
            let (value, path) = self.definition(v)?;
            let rank = self.vars.ty(v).shape().len();
            let places: Vec<Var> = (0..rank).map(|_| self.vars.fresh("k", Type::I64)).collect();
            let read: Vec<Exp> = places.iter().map(|p| Exp::Var(*p)).collect();
            let found = self.support(&value, &path, &read);
            self.known.insert(v, (places, found));
        }
        let (places, found) = self.known.get(&v).cloned()?;
        let with: Substitution = places.into_iter().zip(keys.iter().cloned()).collect();
        if with.len() != keys.len() {
            return None;
        }
        // At places that are numbers most conditions on places are decided.
        Some(found?.into_iter().map(|t| self.renamed(&t, &with)).filter_map(Term::decided).collect())
    }

    /// A copy of a term with variables replaced, and loops of its own.
    pub fn renamed(&mut self, term: &Term, with: &Substitution) -> Term {
        let mut with = with.clone();
        let mut loops = vec![];
        for Range { index, lo, hi } in &term.loops {
            let (lo, hi) = (copy(self.vars, lo, &with), copy(self.vars, hi, &with));
            let fresh = self.vars.fresh_like(*index, Type::I64);
            with.insert(*index, Exp::Var(fresh));
            loops.push(Range { index: fresh, lo, hi });
        }
        let mut all = |es: &[Exp]| es.iter().map(|e| copy(self.vars, e, &with)).collect();
        Term { keys: all(&term.keys), guards: all(&term.guards), loops }
    }

    /// The terms where a condition holds; one on floats is taken to hold.
    fn under(&mut self, terms: &mut [Term], condition: Exp) {
        if self.of_integers(&condition) {
            for term in terms {
                let own = copy(self.vars, &condition, &Substitution::default());
                term.guards.push(own);
            }
        }
    }

    /// A term without variables that are bound inside the expression: by what they are bound to.
    fn without(&mut self, mut term: Term, vars: &[Var]) -> Option<Term> {
        for v in vars.iter().filter(|v| term.clone().mentions(**v)).collect::<Vec<_>>() {
            let (value, path) = self.definition(*v)?;
            let value = project(self.vars, &value, &path)?;
            // Data in sizes have to have a name: without it, all places of an axis may be meant, and a condition may hold.
            if exp_size(&value).is_none() {
                let is_sized = |e: &Exp| is_sized_by(self.vars, e, *v);
                if term.loops.iter().any(|r| is_sized(&r.lo) || is_sized(&r.hi)) {
                    return None;
                }
                term.guards.retain(|e| !is_sized(e));
                let unknown: Vec<usize> = (0..term.keys.len()).filter(|k| is_sized(&term.keys[*k])).collect();
                unknown.into_iter().for_each(|axis| self.touch_all(&mut term, axis));
            }
            let mut put = |e: Exp| {
                let own = copy(self.vars, &value, &Substitution::default());
                substitute(self.vars, e, &Substitution::from_iter([(*v, own)]))
            };
            let mut all = |es: Vec<Exp>| es.into_iter().map(&mut put).collect::<Vec<Exp>>();
            let (keys, guards) = (all(term.keys), all(term.guards));
            let loops = term.loops.into_iter().map(|r| Range { index: r.index, lo: put(r.lo), hi: put(r.hi) }).collect();
            term = Term { loops, keys, guards };
        }
        Some(term)
    }

    /// Fewer terms of the same union: each once, an axis that is touched all over as a whole.
    pub fn tidy(&mut self, terms: Vec<Term>) -> Support {
        let mut kept: Vec<Term> = vec![];
        for term in terms {
            let term = self.canonical(term);
            let before = kept.iter().find(|t| t.same(&term, &t.keys, &term.keys));
            match before.map(|t| t.guards == term.guards || t.guards.is_empty()) {
                Some(true) => {}
                Some(false) if term.guards.is_empty() => {
                    kept.retain(|t| !t.same(&term, &t.keys, &term.keys));
                    kept.push(term);
                }
                Some(false) | None => kept.push(term),
            }
        }
        for axis in 0..self.axes.len() {
            kept = self.whole_axes(kept, axis);
        }
        (kept.len() <= MOST_TERMS).then_some(kept)
    }

    /// A term without loops that its keys do not mention, its keys of integers alone.
    fn canonical(&mut self, mut term: Term) -> Term {
        for axis in 0..term.keys.len() {
            if !self.of_integers(&term.keys[axis]) {
                self.touch_all(&mut term, axis);
            }
        }
        for k in (0..term.loops.len()).rev() {
            let q = term.loops[k].index;
            let needed =
                term.keys.iter().any(|e| e.mentions(q)) || term.loops[k + 1..].iter().any(|r| r.lo.mentions(q) || r.hi.mentions(q));
            if !needed {
                term.loops.remove(k);
                term.guards.retain(|g| !g.mentions(q));
            }
        }
        term
    }

    /// A term at all places of an axis.
    fn touch_all(&mut self, term: &mut Term, axis: usize) {
        let whole = self.whole(axis);
        term.keys[axis] = Exp::Var(whole.index);
        term.loops.push(whole);
    }

    /// A loop over all places of an axis.
    pub fn whole(&mut self, axis: usize) -> Range {
        let index = self.vars.fresh("c", Type::I64);
        Range { index, lo: i64(0), hi: size_exp(&self.axes[axis]) }
    }

    /// Terms that differ on one axis alone, where one of them is all of the axis, or where the axis is of constant size and
    /// they are at least half of it: one loop is then shorter, and as cheap, as a program for each of its places.
    fn whole_axes(&mut self, terms: Vec<Term>, axis: usize) -> Vec<Term> {
        let mut groups: Vec<Vec<Term>> = vec![];
        for term in terms {
            match groups.iter_mut().find(|g| g[0].agrees(&term, axis)) {
                Some(group) => group.push(term),
                None => groups.push(vec![term]),
            }
        }
        let mut out = vec![];
        for mut group in groups {
            let is_whole = |t: &Term| {
                t.loops.iter().any(|r| {
                    t.keys[axis] == Exp::Var(r.index)
                        && r.lo == i64(0)
                        && exp_size(&r.hi).is_some_and(|hi| hi.axis() == self.axes[axis].axis())
                })
            };
            let places = self.axes[axis].as_constant();
            let touched = group.iter().map(Term::count).sum::<Option<i64>>();
            if group.len() > 1 && group.iter().any(is_whole) {
                let whole = group.iter().position(is_whole).expect("there is one");
                out.push(group.swap_remove(whole));
            } else if group.len() > 1 && places.zip(touched).is_some_and(|(places, touched)| 2 * touched >= places) {
                let whole = self.whole(axis);
                let mut term = group.swap_remove(0);
                term.loops = vec![whole];
                term.keys[axis] = Exp::Var(term.loops[0].index);
                out.push(term);
            } else {
                out.append(&mut group);
            }
        }
        out
    }
}

/// Whether a size in an expression, or one of a type in it, mentions a variable.
fn is_sized_by(vars: &Vars, exp: &Exp, v: Var) -> bool {
    let mut found = false;
    exp.binds().iter().for_each(|b| vars.ty(*b).for_each_size(&mut |size| found |= size.mentions(v)));
    exp.for_each_size(&mut |size| found |= size.mentions(v));
    exp.for_each_child(&mut |e| found = found || is_sized_by(vars, e, v));
    found
}

/// A loop of a term as a key says it: `axis`'s key is `sign * index + rest`.
pub struct Solved {
    pub index: Var,
    pub axis: usize,
    pub sign: i64,
    pub rest: Size,
}

impl Term {
    pub fn mentions(&self, v: Var) -> bool {
        self.keys.iter().chain(&self.guards).any(|e| e.mentions(v)) || self.loops.iter().any(|r| r.lo.mentions(v) || r.hi.mentions(v))
    }

    /// A term without conditions that hold in any case; `None` if one never does.
    fn decided(mut self) -> Option<Term> {
        let never = self.guards.iter().any(|g| truth(g) == Some(false));
        self.guards.retain(|g| truth(g).is_none());
        (!never).then_some(self)
    }

    /// How often its loops run, if that is a constant.
    fn count(&self) -> Option<i64> {
        self.loops.iter().try_fold(1i64, |n, r| Some(n * exp_size(&r.hi)?.sub(&exp_size(&r.lo)?).as_constant()?.max(0)))
    }

    /// Whether two terms are the same but for the names of their loops and their guards.
    fn same(&self, other: &Term, keys: &[Exp], others: &[Exp]) -> bool {
        if self.loops.len() != other.loops.len() {
            return false;
        }
        let names: Vec<(Var, Var)> = self.loops.iter().zip(&other.loops).map(|(a, b)| (a.index, b.index)).collect();
        let ranges = self.loops.iter().zip(&other.loops).all(|(a, b)| alike(&a.lo, &b.lo, &names) && alike(&a.hi, &b.hi, &names));
        ranges && keys.iter().zip(others).all(|(a, b)| alike(a, b, &names))
    }

    /// Whether the two differ in one key alone, to which alone the loops belong.
    fn agrees(&self, other: &Term, axis: usize) -> bool {
        let local = |t: &Term| {
            let others = t.keys.iter().enumerate().filter(|(k, _)| *k != axis).map(|(_, e)| e);
            !others.chain(&t.guards).any(|e| t.loops.iter().any(|r| e.mentions(r.index)))
        };
        let same = self.keys.iter().zip(&other.keys).enumerate().all(|(k, (a, b))| k == axis || a == b);
        same && local(self) && local(other) && self.guards == other.guards
    }

    /// How the loops' indices follow from the keys, so that no place is named twice; `None` where they do not.
    pub fn solved(&self) -> Option<Vec<Solved>> {
        let mut left: Vec<Var> = self.loops.iter().map(|r| r.index).collect();
        let mut out = vec![];
        while !left.is_empty() {
            let found = left.iter().enumerate().find_map(|(at, q)| {
                self.keys.iter().enumerate().find_map(|(axis, key)| {
                    let (sign, rest) = linear(&exp_size(key)?, *q)?;
                    let known = !left.iter().any(|w| w != q && rest.mentions(*w));
                    known.then_some((at, Solved { index: *q, axis, sign, rest }))
                })
            });
            let (at, solved) = found?;
            left.remove(at);
            out.push(solved);
        }
        Some(out)
    }
}

/// Whether a condition holds, where the difference of what it compares is a number.
fn truth(p: &Exp) -> Option<bool> {
    let Exp::Op(op, args, _) = p else { return None };
    let difference = || exp_size(&args[0])?.sub(&exp_size(&args[1])?).as_constant();
    match op {
        Op::Eq => difference().map(|d| d == 0),
        Op::Ne => difference().map(|d| d != 0),
        Op::Lt => difference().map(|d| d < 0),
        Op::Le => difference().map(|d| d <= 0),
        Op::Gt => difference().map(|d| d > 0),
        Op::Ge => difference().map(|d| d >= 0),
        Op::Not => truth(&args[0]).map(|p| !p),
        _ => None,
    }
}

/// Equality of expressions up to names for the variables given.
fn alike(a: &Exp, b: &Exp, names: &[(Var, Var)]) -> bool {
    match (a, b) {
        (Exp::Var(v), Exp::Var(w)) => names.iter().find(|(x, _)| x == v).map_or(v == w, |(_, y)| y == w),
        (Exp::Op(p, xs, _), Exp::Op(q, ys, _)) => p == q && xs.len() == ys.len() && xs.iter().zip(ys).all(|(x, y)| alike(x, y, names)),
        (Exp::Index(x, ks, _), Exp::Index(y, ls, _)) => {
            alike(x, y, names) && ks.len() == ls.len() && ks.iter().zip(ls).all(|(x, y)| alike(x, y, names))
        }
        (a, b) => a == b,
    }
}
