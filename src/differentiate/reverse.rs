//! Reverse mode: the adjoints of each variable, by walking a scope backwards.
//!
//! Each scope is run forwards and then walked backwards. An adjoint is a sum of contributions, one for each use; those
//! of variables bound in the scope are `let`s in it, those of its free variables are what the reversed scope yields.
//! Contributions are pure expressions: the contribution of a read is a singleton, that of a binder a sum over its
//! reversed body.
//!
//! **What the way back needs.** The backward part of an inner scope runs elsewhere than its forward part, so values
//! that it uses must cross. What costs nothing (reads, index arithmetic) is done again; the rest is saved: a loop's
//! forward part yields it as an array. So every operation of the function runs once, and `optimize` decides later
//! what is cheaper to redo. Saved arrays whose size depends on the loop's index are padded to the largest one.

use super::lineage::Lineage;
use super::rows::{self, Row};
use super::rules;
use super::saving::Saving;
use super::scope::{Scope, Statement, costs_nothing};
use crate::ir::build::*;
use crate::ir::facts::Facts;
use crate::ir::*;
use indexmap::IndexMap;
use rustc_hash::{FxHashMap, FxHashSet};

pub struct Reverse<'a> {
    pub vars: &'a mut Vars,
    /// What is known of sizes and indices here.
    pub facts: Facts,
    /// Variables that depend on those with respect to which is differentiated; others get no adjoint.
    varied: FxHashSet<Var>,
    /// Arrays of the scope that are others but for places written in them, where the way back is to make these again.
    pub lineage: Lineage,
    /// Rows of arrays that take the adjoints of reads in the loop that is walked back over.
    pub rows: Vec<Row>,
    /// How much loops may keep, in all and each.
    pub saving: Saving,
    pub values_each: Option<i64>,
    /// The state of a loop that is a block already.
    pub block: Option<Var>,
    frames: Vec<Frame>,
}

/// The backward part of the scope being walked.
#[derive(Default)]
struct Frame {
    contributions: IndexMap<Var, Vec<Exp>>,
    backward: Vec<Statement>,
    /// What the scope binds, and of other variables those whose adjoints are made in it or go on from others.
    own: FxHashSet<Var>,
}

/// A scope after reverse mode. `backward` may use the variables of `forward`.
pub struct Reversed {
    pub forward: Vec<Statement>,
    pub results: Vec<Exp>,
    pub backward: Vec<Statement>,
    /// Adjoints of the scope's free variables, expressions over both parts.
    pub adjoints: IndexMap<Var, Exp>,
    /// Variables of the forward part that are at hand on the way back.
    pub given: Vec<Var>,
    /// Variables that the way back binds again, and yields.
    pub again: Vec<Var>,
}

/// The backward part of an inner scope, made ready to run apart from its forward part.
pub struct Crossed {
    pub forward: Vec<Statement>,
    pub results: Vec<Exp>,
    /// What the forward part must yield besides its results.
    pub saved: Vec<Saved>,
    /// Reads of what was saved, and what is done again.
    pub prologue: Vec<Statement>,
    pub backward: Vec<Statement>,
    pub adjoints: IndexMap<Var, Exp>,
    /// Variables that the backward part binds again, and yields.
    pub again: Vec<Var>,
}

/// A variable of an inner scope, the (padded) value to save for it, and the outer variable that will hold it.
pub struct Saved {
    pub inner: Var,
    pub value: Exp,
    pub outer: Var,
}

/// The loop that a scope stands in: its index runs over `lo .. lo + size`.
pub struct LoopOf {
    pub index: Var,
    pub lo: Size,
    pub size: Size,
    /// What else is another in each iteration.
    pub states: Vec<Var>,
}

impl<'a> Reverse<'a> {
    pub fn new(vars: &'a mut Vars, facts: Facts, wrt: impl IntoIterator<Item = Var>) -> Reverse<'a> {
        Reverse {
            vars,
            facts,
            varied: wrt.into_iter().collect(),
            lineage: Lineage::default(),
            rows: vec![],
            saving: Saving::All,
            values_each: None,
            block: None,
            frames: vec![],
        }
    }

    /// Marks what depends on varied variables. Runs once over a function's scope, inner scopes included.
    pub fn mark_varied(&mut self, statements: &[Statement]) {
        for (vars, exp) in statements {
            self.mark_inside(exp);
            if exp.free_vars().iter().any(|v| self.varied.contains(v)) {
                self.varied.extend(vars.iter().filter(|v| self.vars.ty(**v).has_float()));
            }
        }
    }
    fn mark_inside(&mut self, exp: &Exp) {
        match exp {
            Exp::Let(vars, value, body) => {
                self.mark_varied(&[(vars.clone(), (**value).clone())]);
                self.mark_inside(body);
            }
            Exp::History(h) => {
                // A state varies if its start or any step does; one step is enough to see it for all of them.
                let mut free = h.init.free_vars();
                free.extend(h.body.free_vars());
                if free.iter().any(|v| self.varied.contains(v)) {
                    self.varied.extend(h.state.iter().filter(|v| self.vars.ty(**v).has_float()));
                }
                self.mark_inside(&h.body);
            }
            Exp::Loop(l) => {
                let mut free = l.init.free_vars();
                free.extend(l.body.free_vars());
                if free.iter().any(|v| self.varied.contains(v)) {
                    self.varied.extend(l.state.iter().filter(|v| self.vars.ty(**v).has_float()));
                }
                self.mark_inside(&l.body);
            }
            _ => exp.for_each_child(&mut |e| self.mark_inside(e)),
        }
    }
    /// Marks a variable that stands for another.
    pub fn vary_as(&mut self, var: Var, like: Var) {
        if self.varied.contains(&like) {
            self.varied.insert(var);
        }
    }
    pub fn varies(&self, atom: &Exp) -> bool {
        matches!(atom, Exp::Var(v) if self.varied.contains(v))
    }

    /// Adds to the adjoint of an atom; literals and variables that do not vary take nothing.
    pub fn contribute(&mut self, atom: &Exp, contribution: Exp) {
        if let Exp::Var(v) = atom {
            if self.varied.contains(v) {
                self.frame().contributions.entry(*v).or_default().push(contribution);
            }
        }
    }
    fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("inside a scope")
    }
    /// Emits a statement of the backward part.
    pub fn emit(&mut self, vars: Vec<Var>, exp: Exp) {
        self.frame().backward.push((vars, exp));
    }
    /// Whether an array with the adjoint of a variable can be made here: not where it would be made for every step of a loop
    /// around that the variable comes into from outside, unless the step does as much (`rows`).
    pub fn may_make_adjoint(&self, var: Var) -> bool {
        let frame = self.frames.last().expect("inside a scope");
        let is_array = matches!(self.vars.ty(var), Type::Array(..));
        !is_array || self.frames.len() == 1 || frame.own.contains(&var)
    }
    /// Says that it can: it is no larger than what is done here.
    pub fn make_adjoint(&mut self, var: Var) {
        self.frame().own.insert(var);
    }
    /// Takes back what has been added to the adjoint of a variable so far.
    pub fn take_contributions(&mut self, var: Var) -> Option<Exp> {
        self.frame().contributions.shift_remove(&var).map(total)
    }
    /// The same under a name, for it to go on from there.
    pub fn begin_adjoint(&mut self, var: Var) -> Option<Var> {
        match self.take_contributions(var)? {
            Exp::Var(v) => Some(v),
            so_far => {
                let v = self.adjoint_var(var);
                self.emit(vec![v], so_far);
                Some(v)
            }
        }
    }
    pub fn adjoint_var(&mut self, var: Var) -> Var {
        let name = format!("{}_adj", self.vars.name(var));
        let ty = self.vars.ty(var).clone();
        self.vars.fresh(name, ty)
    }
    /// The adjoint of a variable, once all its uses are behind: an atom, or `None` for zero.
    pub fn take_adjoint(&mut self, var: Var) -> Option<Exp> {
        let contributions = self.frame().contributions.shift_remove(&var)?;
        let total = total(contributions);
        if matches!(total, Exp::Var(_) | Exp::Lit(_)) {
            return Some(total);
        }
        let adjoint = self.adjoint_var(var);
        self.emit(vec![adjoint], total);
        Some(Exp::Var(adjoint))
    }

    pub fn scope(&mut self, scope: Scope, seeds: Vec<Option<Exp>>) -> Reversed {
        self.scope_from(scope, seeds, &[])
    }

    /// As `scope`; the adjoints of some free variables go on from variables.
    pub fn scope_from(&mut self, scope: Scope, seeds: Vec<Option<Exp>>, begun: &[(Var, Var)]) -> Reversed {
        let bound = scope.statements.iter().flat_map(|(vars, _)| vars.iter().copied());
        let own = bound.chain(begun.iter().map(|(v, _)| *v)).collect();
        self.frames.push(Frame { own, ..Frame::default() });
        for (v, begun) in begun {
            self.contribute(&Exp::Var(*v), Exp::Var(*begun));
        }
        for (result, seed) in scope.results.iter().zip(seeds) {
            if let Some(seed) = seed {
                self.contribute(result, seed);
            }
        }
        let facts = self.facts.clone();
        for (vars, exp) in &scope.statements {
            if let [v] = vars.as_slice() {
                if *self.vars.ty(*v) == Type::I64 {
                    self.facts.define(*v, exp);
                }
            }
        }
        let forward = self.walk_back(scope.statements);
        self.facts = facts;
        let frame = self.frames.pop().expect("the frame pushed above");
        let adjoints = frame.contributions.into_iter().map(|(v, c)| (v, total(c))).collect();
        Reversed { forward, results: scope.results, backward: frame.backward, adjoints, given: vec![], again: vec![] }
    }

    /// Walks back over statements; gives what takes their place in the forward part.
    pub fn walk_back(&mut self, statements: Vec<Statement>) -> Vec<Statement> {
        let mut forward: Vec<Vec<Statement>> = vec![];
        let made: Vec<(usize, Var, Var)> = statements
            .iter()
            .enumerate()
            .flat_map(|(k, (vars, _))| vars.iter().map(move |v| (k, *v)))
            .filter_map(|(k, v)| Some((k, v, *self.lineage.get(&v)?)))
            .collect();
        let all = if made.is_empty() { vec![] } else { statements.clone() };
        for (k, (vars, exp)) in statements.into_iter().enumerate().rev() {
            let adjoints: Vec<Option<Exp>> = vars.iter().map(|v| self.take_adjoint(*v)).collect();
            let mut kept = vec![];
            let mut gives_back = false;
            for (_, y, x) in made.iter().filter(|(at, _, _)| *at == k) {
                kept.extend(rules::in_place::restore(self, &all, *y, *x, &exp));
                gives_back = matches!(exp, Exp::Loop(_) | Exp::If(..));
            }
            if adjoints.iter().all(Option::is_none) && !gives_back {
                forward.push([kept, vec![(vars, exp)]].concat());
            } else {
                let before = rows::begin(self, &exp);
                forward.push([kept, self.statement(vars, exp, adjoints)].concat());
                rows::end(self, before);
            }
        }
        forward.into_iter().rev().flatten().collect()
    }

    /// Walks back over one statement; gives what takes its place in the forward part.
    fn statement(&mut self, vars: Vec<Var>, exp: Exp, adjoints: Vec<Option<Exp>>) -> Vec<Statement> {
        let single = |adjoints: Vec<Option<Exp>>| adjoints.into_iter().next().flatten().expect("an active statement has an adjoint");
        match exp {
            Exp::Var(_) => self.contribute(&exp, single(adjoints)),
            Exp::Lit(_) => {}
            Exp::Op(op, ref args, _) => rules::scalar::reverse(self, vars[0], op, args, single(adjoints)),
            Exp::Index(ref array, ref keys, site) => rules::index::reverse(self, array, keys, site, single(adjoints)),
            Exp::Singleton(ref keys, ref value, site) => rules::singleton::reverse(self, keys, value, site, single(adjoints)),
            Exp::Array(ref items) => rules::array::reverse(self, items, single(adjoints)),
            Exp::For(i, size, body) => return rules::generate::reverse(self, vars, i, size, *body, adjoints),
            Exp::Sum(range, body) => return rules::sum::reverse(self, vars, *range, *body, adjoints),
            Exp::Reduce(kind, range, body, _) => return rules::reduce::reverse(self, vars[0], kind, *range, *body, single(adjoints)),
            Exp::History(h) => {
                let (seeds, sums) = (rules::history::Seeds::OfAll, rules::history::Sums::default());
                return rules::history::reverse(self, vars, *h, adjoints, seeds, sums);
            }
            Exp::Loop(l) => return rules::iterate::reverse(self, vars, *l, adjoints),
            Exp::Update(ref array, ref keys, ref value, site) => rules::update::reverse(self, array, keys, value, site, single(adjoints)),
            Exp::Guard(p, e) => return rules::branch::reverse_guard(self, vars, *p, *e, adjoints),
            Exp::If(p, a, b) => return rules::branch::reverse_if(self, vars, *p, *a, *b, adjoints),
            Exp::Call(id, ref args, site) => rules::call::reverse(self, &vars, id, args, site, adjoints),
            Exp::Partial(..) | Exp::Let(..) | Exp::Tuple(_) => {
                panic!("differentiate: not a statement in named form: {exp:?}")
            }
        }
        vec![(vars, exp)]
    }

    /// Binds the tuple that a reversed inner scope yields and adds its parts to the free variables' adjoints.
    pub fn contribute_all(&mut self, free: Vec<Var>, value: Exp) {
        self.contribute_and_bind(free, &[], value);
    }
    /// As `contribute_all`; the tuple ends with variables that are bound again.
    pub fn contribute_and_bind(&mut self, free: Vec<Var>, again: &[Var], value: Exp) {
        if free.is_empty() && again.is_empty() {
            return;
        }
        let parts: Vec<Var> = free.iter().map(|v| self.adjoint_var(*v)).collect();
        self.emit([&parts, again].concat(), value);
        for (v, part) in free.into_iter().zip(parts) {
            self.contribute(&Exp::Var(v), Exp::Var(part));
        }
    }

    /// Decides what of an inner scope's forward part crosses to its backward part, and how. `also` are forward
    /// variables that must be saved in any case.
    pub fn cross(&mut self, inner: &Reversed, within: Option<&LoopOf>, also: &FxHashSet<Var>) -> Crossed {
        self.try_cross(inner, within, also).expect("what is not bound again is there from the beginning")
    }

    /// As `cross`, for a backward part that binds variables of the forward part again. What is done again with them stands
    /// behind that, or is saved where it is needed before. `None` where this cannot be.
    pub fn try_cross(&mut self, inner: &Reversed, within: Option<&LoopOf>, also: &FxHashSet<Var>) -> Option<Crossed> {
        let Reversed { forward, results, backward, adjoints, given, again } = inner;
        let place: FxHashMap<Var, usize> =
            forward.iter().enumerate().flat_map(|(k, (vars, _))| vars.iter().map(move |v| (*v, k))).collect();
        let roots = adjoints.values().cloned().chain(again.iter().map(|v| Exp::Var(*v))).collect();
        let needed = lets(backward.clone(), tuple(roots)).free_vars();
        let bound_again: FxHashMap<Var, usize> =
            backward.iter().enumerate().flat_map(|(b, (vars, _))| vars.iter().map(move |v| (*v, b + 1))).collect();
        if needed.iter().any(|v| bound_again.contains_key(v)) {
            return None;
        }
        let mut also = also.clone();
        let (redone, save) = loop {
            let (redo, save) = self.redo_or_save(inner, &place, needed.clone(), &bound_again, within, &also);
            // The place in the backward part from which on what is done again can stand, in the order of the forward part.
            let mut redone: Vec<(usize, usize)> = vec![];
            for k in redo {
                let before = |v: Var| {
                    let done = place.get(&v).and_then(|j| redone.iter().find(|(_, k)| k == j));
                    bound_again.get(&v).copied().or(done.map(|(at, _)| *at)).unwrap_or(0)
                };
                let at = forward[k].1.free_vars().into_iter().map(before).max().unwrap_or(0);
                redone.push((at, k));
            }
            let sizes: Vec<Var> = save.iter().flat_map(|v| self.sizes_of(*v)).collect();
            let early = |(at, k): &&(usize, usize)| {
                let vars = &forward[*k].0;
                *at > 0
                    && (vars.iter().any(|v| sizes.contains(v)) || backward[..*at].iter().any(|(_, e)| vars.iter().any(|v| e.mentions(*v))))
            };
            let early: Vec<Var> = redone.iter().filter(early).flat_map(|(_, k)| forward[*k].0.clone()).collect();
            if early.is_empty() {
                break (redone, save);
            }
            if early.iter().any(|v| !also.insert(*v)) {
                return None;
            }
        };
        let mut saved = vec![];
        let mut reads: Vec<(usize, Statement)> = vec![];
        for v in save {
            let (value, ty) = self.padded(v, &place, within).expect("only what can be padded is saved");
            let name = self.vars.name(v).to_string();
            let keys = within.map_or(vec![], |l| vec![size_exp(&Size::var(l.index).sub(&l.lo))]);
            let outer = self.vars.fresh(name, within.map_or(ty.clone(), |l| ty.with_axis(&l.size)));
            let read = if matches!(value, Exp::Var(_)) { index(outer, keys, Site::default()) } else { self.unpadded(v, outer, keys) };
            saved.push(Saved { inner: v, value, outer });
            reads.push((place[&v], (vec![v], read)));
        }
        // What is done again may read what was saved, and what was saved may have a size that is done again.
        reads.extend(redone.iter().filter(|(at, _)| *at == 0).map(|(_, k)| (*k, forward[*k].clone())));
        reads.sort_by_key(|(k, _)| *k);
        let prologue = reads.into_iter().map(|(_, r)| r).collect();
        let mut way: Vec<Statement> = vec![];
        for at in 0..=backward.len() {
            way.extend(redone.iter().filter(|(from, _)| at > 0 && *from == at).map(|(_, k)| forward[*k].clone()));
            way.extend(backward.get(at).cloned());
        }
        debug_assert!(given.iter().all(|v| saved.iter().all(|s| s.inner != *v)));
        Some(Crossed {
            forward: forward.clone(),
            results: results.clone(),
            saved,
            prologue,
            backward: way,
            adjoints: adjoints.clone(),
            again: again.clone(),
        })
    }

    /// The statements of the forward part that are done again, and the variables of it that are saved, in order.
    fn redo_or_save(
        &mut self,
        inner: &Reversed,
        place: &FxHashMap<Var, usize>,
        needed: Vec<Var>,
        bound_again: &FxHashMap<Var, usize>,
        within: Option<&LoopOf>,
        also: &FxHashSet<Var>,
    ) -> (Vec<usize>, Vec<Var>) {
        let mut redo: FxHashSet<usize> = FxHashSet::default();
        let mut save: Vec<Var> = vec![];
        let mut pending = needed;
        pending.extend(also.iter().copied());
        let mut seen: FxHashSet<Var> = FxHashSet::default();
        while let Some(v) = pending.pop() {
            if !seen.insert(v) {
                continue;
            }
            // A type's sizes are needed wherever its variable is.
            pending.extend(self.sizes_of(v));
            let Some(&k) = place.get(&v) else { continue };
            if inner.given.contains(&v) || bound_again.contains_key(&v) {
                continue;
            }
            let redone = !also.contains(&v) && is_redone(self.vars, &inner.forward[k].1);
            if redone || self.padded(v, place, within).is_none() {
                redo.insert(k);
                pending.extend(inner.forward[k].1.free_vars());
            } else {
                save.push(v);
            }
        }
        // A statement is done again whole or not at all.
        save.retain(|v| !redo.contains(&place[v]));
        save.sort();
        let mut redo: Vec<usize> = redo.into_iter().collect();
        redo.sort();
        (redo, save)
    }

    fn sizes_of(&self, v: Var) -> Vec<Var> {
        let mut sizes = vec![];
        let _ = self.vars.ty(v).map_sizes(&mut |s| {
            s.variables(&mut sizes);
            s.clone()
        });
        sizes
    }

    /// The value to save for `v`, and its type outside the scope: sizes that the loop's index or the scope's own
    /// variables determine are padded to their largest value. `None` if there is no bound.
    pub fn padded(&mut self, v: Var, place: &FxHashMap<Var, usize>, within: Option<&LoopOf>) -> Option<(Exp, Type)> {
        let ty = self.vars.ty(v).clone();
        let local = |s: &Size| {
            let mut vars = vec![];
            s.variables(&mut vars);
            vars.iter().any(|w| place.contains_key(w) || within.is_some_and(|l| l.index == *w || l.states.contains(w)))
        };
        if !ty.shape().iter().any(local) {
            return Some((Exp::Var(v), ty));
        }
        let within = within?;
        let mut outer = vec![];
        for s in ty.shape() {
            let bound = if local(s) { self.largest(s, within)? } else { s.clone() };
            if local(&bound) {
                return None;
            }
            outer.push(bound);
        }
        let scalar = ty.scalar().expect("variables are scalars or arrays");
        let indices: Vec<Var> = outer.iter().map(|_| self.vars.fresh("i", Type::I64)).collect();
        let mut value = index(v, indices.iter().map(|i| Exp::Var(*i)).collect(), Site::default());
        for (i, s) in indices.iter().zip(ty.shape()).rev() {
            if local(s) {
                value = guard(op2(Op::Lt, *i, size_exp(s)), value);
            }
        }
        let value = indices.iter().zip(&outer).rev().fold(value, |e, (i, s)| for_(*i, s.clone(), e));
        Some((value, Type::Array(outer, scalar)))
    }

    /// The part of a padded array that holds `v`.
    pub fn unpadded(&mut self, v: Var, outer: Var, mut keys: Vec<Exp>) -> Exp {
        let shape = self.vars.ty(v).shape().to_vec();
        let indices: Vec<Var> = shape.iter().map(|_| self.vars.fresh("i", Type::I64)).collect();
        keys.extend(indices.iter().map(|i| Exp::Var(*i)));
        let read = index(outer, keys, Site::default());
        indices.into_iter().zip(shape).rev().fold(read, |e, (i, s)| for_(i, s, e))
    }

    /// A bound of `size` over the loop, where it grows or falls with the index.
    fn largest(&self, size: &Size, within: &LoopOf) -> Option<Size> {
        let at = |value: Size| size.substitute(&|v| (v == within.index).then(|| value.clone()));
        let next = at(Size::var(within.index).add(&Size::constant(1)));
        let mut facts = self.facts.clone();
        facts.enter(within.index, &within.lo, &within.lo.add(&within.size));
        if facts.prove_nonneg(&next.sub(size)) {
            Some(at(within.lo.add(&within.size).sub(&Size::constant(1))))
        } else if facts.prove_nonneg(&size.sub(&next)) {
            Some(at(within.lo.clone()))
        } else {
            None
        }
    }
}

/// The sum of contributions. One that is an array but for a place comes first, so that the others, which are singletons
/// mostly, are added to it and not it to them.
fn total(mut contributions: Vec<Exp>) -> Exp {
    contributions.sort_by_key(|e| !matches!(e, Exp::Update(..)));
    contributions.into_iter().reduce(add).expect("at least one contribution")
}

impl Crossed {
    /// The backward part as one expression: a tuple of the adjoints of `free`, and of what is bound again.
    pub fn way_back(&self, free: &[Var]) -> Exp {
        let mut statements = self.prologue.clone();
        statements.extend(self.backward.iter().cloned());
        let again = self.again.iter().map(|v| Exp::Var(*v));
        lets(statements, tuple(free.iter().map(|v| self.adjoints[v].clone()).chain(again).collect()))
    }
    /// The forward part as one expression: the results, then what is saved.
    pub fn way_forth(&self) -> Exp {
        let results = self.results.iter().cloned().chain(self.saved.iter().map(|s| s.value.clone())).collect();
        lets(self.forward.clone(), tuple(results))
    }
    /// Takes out what is saved although it is a result, and so at hand under a name of `results`: those names.
    pub fn take_results(&mut self, names: &[Var]) -> Vec<Statement> {
        let at_hand = |value: &Exp| self.results.iter().position(|r| r == value && matches!(r, Exp::Var(_)));
        let (known, saved): (Vec<_>, Vec<_>) =
            self.saved.drain(..).collect::<Vec<_>>().into_iter().partition(|s| at_hand(&s.value).is_some());
        let aliases = known.iter().map(|s| (vec![s.outer], Exp::Var(names[at_hand(&s.value).expect("at hand")]))).collect();
        self.saved = saved;
        aliases
    }
    pub fn saved_vars(&self) -> Vec<Var> {
        self.saved.iter().map(|s| s.outer).collect()
    }
}

/// Whether the way back does it again instead of reading what was saved: where that costs nothing, as putting a value in its
/// place among zeros does. So nobody reads the zeros.
fn is_redone(vars: &Vars, exp: &Exp) -> bool {
    match exp {
        Exp::Singleton(places, value, _) => places.iter().all(|(k, _)| costs_nothing(vars, k)) && costs_nothing(vars, value),
        exp => costs_nothing(vars, exp),
    }
}
