//! What a function costs, as a formula in its sizes.
//!
//! The counts are the interpreter's: every operation on floats once, partials as calls, one addition for each float
//! added into a destination (see `interpret`). Loops are summed symbolically, over triangles and under brackets too.
//! Where a count depends on data, the formula is an upper bound and says so (`exact` is false): a guard on data counts
//! as if it held, of an `if` on data the dearer branch counts, and of a `while` loop as many rounds as its `#[bound(n)]`
//! says. Of one without a bound one round counts, which is no bound, and the formula says that too (`bounds` is false).
//!
//! Sizes are taken to be at least zero, as they are.

pub mod compare;
pub mod poly;
mod sum;

use crate::ir::destination::{Path, held, passed_on};
use crate::ir::facts::Facts;
use crate::ir::summed::summed;
use crate::ir::{Body, Exp, FunctionId, Lit, Op, Program, Range, Reduction, Scalar, Size, Trip, Type, Var, Vars, build, print};
use crate::scalar::CostClass;
pub use poly::Poly;
use rustc_hash::FxHashMap;
use std::rc::Rc;
use sum::Place;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    pub additions: Poly,
    pub multiplications: Poly,
    pub calls: Poly,
    /// Whether these are the counts, and not only bounds on them.
    pub exact: bool,
    /// Whether they are bounds. They are not where a `while` loop has operations and no `#[bound(n)]`: one round of it is counted.
    pub bounds: bool,
    /// The most values that are kept at one time: in arrays with names, states of loops, and histories.
    pub saved: Poly,
    pub saved_exact: bool,
}

impl Cost {
    pub fn total(&self) -> Poly {
        self.additions.add(&self.multiplications).add(&self.calls)
    }
    /// Additions, multiplications and calls at given sizes; `None` where a size is missing or the counts depend on data.
    pub fn evaluate(&self, value: &impl Fn(Var) -> Option<i64>) -> Option<[i64; 3]> {
        Some([self.additions.evaluate(value)?, self.multiplications.evaluate(value)?, self.calls.evaluate(value)?])
    }
}

/// The cost of a call.
pub fn cost(program: &Program, id: FunctionId) -> Cost {
    let mut analysis = Analysis { program, functions: FxHashMap::default(), types: FxHashMap::default() };
    let (tally, exact) = analysis.function(id);
    let Tally { additions, multiplications, calls, saved } = tally;
    Cost { additions, multiplications, calls, exact: exact.counts, bounds: exact.bounds, saved, saved_exact: exact.saved }
}

/// What is exact.
#[derive(Clone, Copy, Debug)]
struct Exact {
    counts: bool,
    bounds: bool,
    saved: bool,
}

impl std::ops::BitAndAssign for Exact {
    fn bitand_assign(&mut self, other: Exact) {
        self.counts &= other.counts;
        self.bounds &= other.bounds;
        self.saved &= other.saved;
    }
}

/// Counts of the three kinds of operations, which add up, and the most values that are kept, of which there is a largest.
#[derive(Clone, Debug, Default)]
struct Tally {
    additions: Poly,
    multiplications: Poly,
    calls: Poly,
    saved: Poly,
}

impl Tally {
    fn additions(count: Poly) -> Tally {
        Tally { additions: count, ..Tally::default() }
    }
    fn one(class: CostClass) -> Tally {
        let mut tally = Tally::default();
        match class {
            CostClass::Free => {}
            CostClass::Addition => tally.additions = Poly::one(),
            CostClass::Multiplication => tally.multiplications = Poly::one(),
            CostClass::Call => tally.calls = Poly::one(),
        }
        tally
    }
    fn map(&self, mut f: impl FnMut(&Poly) -> Poly) -> Tally {
        Tally { additions: f(&self.additions), multiplications: f(&self.multiplications), calls: f(&self.calls), saved: f(&self.saved) }
    }
    fn zip(&self, other: &Tally, mut f: impl FnMut(&Poly, &Poly) -> Poly) -> Tally {
        Tally {
            additions: f(&self.additions, &other.additions),
            multiplications: f(&self.multiplications, &other.multiplications),
            calls: f(&self.calls, &other.calls),
            saved: self.saved.larger(&other.saved),
        }
    }
    fn add(&self, other: &Tally) -> Tally {
        self.zip(other, Poly::add)
    }
    /// While so many values are kept.
    fn keeping(mut self, values: &Poly) -> Tally {
        self.saved = self.saved.add(values);
        self
    }
    fn times(&self, factor: &Poly) -> Tally {
        self.map(|p| p.mul(factor))
    }
    fn is_zero(&self) -> bool {
        // What is kept is no operation.
        self.additions.is_zero() && self.multiplications.is_zero() && self.calls.is_zero()
    }
}

struct Analysis<'a> {
    program: &'a Program,
    functions: FxHashMap<FunctionId, (Tally, Exact)>,
    types: FxHashMap<*const Exp, Rc<Type>>,
}

/// What is known at a place.
#[derive(Clone, Default)]
struct Scope {
    place: Place,
    /// Integers bound by `let`, as sizes.
    ints: FxHashMap<Var, Size>,
    /// Truth values bound by `let`, as brackets.
    bools: FxHashMap<Var, Poly>,
    /// Integers bound by `let` that depend on data.
    unknown: Vec<Var>,
    /// Variables that were added into a destination when they were bound (`ir/destination.rs`).
    passed: Vec<Var>,
}

/// What becomes of an expression's value.
#[derive(Clone, PartialEq)]
enum Use {
    Evaluated,
    /// Added into a destination.
    Added,
    /// Of a tuple's parts, some are evaluated and some added.
    Parts(Vec<Use>),
}

impl Use {
    fn part(&self, k: usize) -> &Use {
        match self {
            Use::Parts(parts) => &parts[k],
            Use::Evaluated | Use::Added => self,
        }
    }
}

impl<'a> Analysis<'a> {
    fn function(&mut self, id: FunctionId) -> (Tally, Exact) {
        if let Some(known) = self.functions.get(&id) {
            return known.clone();
        }
        let f = self.program.function(id);
        let Body::Exp(body) = &f.body else { panic!("cost: `{}` is a derivative that has not been defined yet", f.name) };
        let scope = Scope { place: Place { facts: Facts::of_function(f), indices: vec![] }, ..Scope::default() };
        let mut walk = Walk { analysis: self, exact: Exact { counts: true, bounds: true, saved: true } };
        let tally = walk.count(&scope, body, &Use::Evaluated);
        let exact = walk.exact;
        let result = (tally.map(|p| p.settle(&scope.place)), exact);
        self.functions.insert(id, result.clone());
        result
    }
}

struct Walk<'w, 'a> {
    analysis: &'w mut Analysis<'a>,
    exact: Exact,
}

impl Walk<'_, '_> {
    fn type_of(&mut self, exp: &Exp) -> Rc<Type> {
        let program = self.analysis.program;
        self.analysis.types.entry(exp as *const Exp).or_insert_with(|| Rc::new(build::type_of(program, exp))).clone()
    }

    fn evaluate(&mut self, scope: &Scope, exp: &Exp) -> Tally {
        self.count(scope, exp, &Use::Evaluated)
    }
    fn evaluate_all<'e>(&mut self, scope: &Scope, exps: impl IntoIterator<Item = &'e Exp>) -> Tally {
        exps.into_iter().fold(Tally::default(), |t, e| t.add(&self.evaluate(scope, e)))
    }

    fn count(&mut self, scope: &Scope, exp: &Exp, usage: &Use) -> Tally {
        // What does not distribute over adding is evaluated, then added.
        let added = |me: &mut Self, tally: Tally| {
            let ty = me.type_of(exp);
            tally.add(&Tally::additions(me.added(scope, &ty, usage)))
        };
        match exp {
            // A written zero is not added.
            _ if build::is_zero(exp) => Tally::default(),
            // Was added where it belongs when it was bound.
            Exp::Var(v) if scope.passed.contains(v) => Tally::default(),
            Exp::Var(_) | Exp::Lit(_) => added(self, Tally::default()),
            Exp::Op(op, args, _) => match &*self.type_of(&args[0]) {
                Type::Scalar(first) => {
                    let mut kinds = vec![*first];
                    kinds.extend(args[1..].iter().filter_map(|a| self.type_of(a).scalar()));
                    let class = if build::applies_partial(*op, args) { CostClass::Free } else { op.cost(&kinds) };
                    let tally = self.evaluate_all(scope, args).add(&Tally::one(class));
                    added(self, tally)
                }
                Type::Array(..) | Type::Tuple(_) => {
                    let first = self.count(scope, &args[0], usage);
                    first.add(&self.count(scope, &args[1], &Use::Added))
                }
            },
            Exp::Partial(_, _, operands) => {
                let tally = self.evaluate_all(scope, operands).add(&Tally::one(CostClass::Call));
                added(self, tally)
            }
            Exp::Index(array, keys, _) => {
                let tally = self.evaluate(scope, array).add(&self.evaluate_all(scope, keys));
                added(self, tally)
            }
            Exp::Singleton(keys, value, _) => {
                let tally = self.evaluate_all(scope, keys.iter().map(|(k, _)| k));
                let usage = if *usage == Use::Evaluated { Use::Evaluated } else { Use::Added };
                tally.add(&self.count(scope, value, &usage))
            }
            Exp::For(index, size, body) => {
                let size = scope.size(size);
                let mut inner = scope.clone();
                inner.place.facts.enter_for(*index, &size);
                inner.place.indices.push(*index);
                let tally = self.count(&inner, body, usage);
                self.sum(scope, *index, &Poly::zero(), &Poly::from_size(&size), tally)
            }
            Exp::Sum(range, body) => self.looped(scope, range, |me, inner| me.count(inner, body, &Use::Added)),
            Exp::Reduce(kind, range, body, _) => {
                let scalar = self.type_of(body).scalar().expect("reductions are of scalars");
                let step = match kind {
                    Reduction::Prod => Op::Mul.cost(&[scalar; 2]),
                    Reduction::Max | Reduction::ArgMax => Op::Max.cost(&[scalar; 2]),
                    Reduction::Min | Reduction::ArgMin => Op::Min.cost(&[scalar; 2]),
                    Reduction::Any | Reduction::All => CostClass::Free,
                };
                let tally = self.looped(scope, range, |me, inner| me.evaluate(inner, body).add(&Tally::one(step)));
                added(self, tally)
            }
            Exp::History(h) => {
                let init = self.evaluate(scope, &h.init);
                let size = scope.size(&h.size);
                let mut inner = scope.clone();
                inner.place.facts.enter_for(h.index, &size);
                inner.place.indices.push(h.index);
                inner.unknown.extend(&h.state);
                let step = self.evaluate(&inner, &h.body);
                let steps = self.sum(scope, h.index, &Poly::zero(), &Poly::from_size(&size), step);
                self.forget(&h.state, &steps);
                let all = self.type_of(exp);
                let kept = self.elements(scope, &all);
                added(self, init.add(&steps.keeping(&kept)))
            }
            Exp::Loop(l) => {
                let init = self.evaluate(scope, &l.init);
                let summed = summed(&self.analysis.program.vars, l);
                let step = |me: &mut Self, inner: &mut Scope| {
                    inner.unknown.extend(&l.state);
                    inner.passed.extend(l.state.iter().zip(&summed).filter(|(_, sum)| **sum).map(|(v, _)| *v));
                    let uses: Vec<Use> = summed.iter().map(|sum| if *sum { Use::Added } else { Use::Evaluated }).collect();
                    match uses.as_slice() {
                        [one] => me.count(inner, &l.body, one),
                        _ if summed.contains(&true) => me.count(inner, &l.body, &Use::Parts(uses)),
                        _ => me.evaluate(inner, &l.body),
                    }
                };
                let steps = match &l.trip {
                    Trip::For(range) => self.looped(scope, range, |me, inner| step(me, &mut inner.clone())),
                    // How often it runs is not known before it runs: as often as its bound says, or one round stands for all of
                    // them. What it does to integers alone is not counted in any case.
                    Trip::While(condition) => {
                        let mut inner = scope.clone();
                        inner.unknown.extend(&l.state);
                        let (test, round) = (self.evaluate(&inner, condition), step(self, &mut inner));
                        let free = test.is_zero() && round.is_zero();
                        let most = l.bound().map(|bound| Poly::from_size(&scope.size(bound)).maximum(&Poly::zero(), &scope.place.facts));
                        self.exact &= Exact { counts: free, bounds: free || most.is_some(), saved: round.saved.is_zero() };
                        match most {
                            Some(most) => {
                                test.times(&most.add(&Poly::one())).add(&Tally { saved: round.saved.clone(), ..round.times(&most) })
                            }
                            None => test.add(&round),
                        }
                    }
                };
                self.forget(&l.state, &steps);
                let state = self.type_of(&l.init);
                let kept = self.arrays(scope, &state);
                added(self, init.add(&steps.keeping(&kept)))
            }
            Exp::Update(array, keys, value, _) => {
                let mut tally = self.evaluate(scope, array).add(&self.evaluate(scope, value));
                for key in keys {
                    tally = tally.add(&self.evaluate(scope, key));
                }
                added(self, tally)
            }
            Exp::Guard(p, e) => {
                let condition = self.evaluate(scope, p);
                let (holds, exact) = scope.test(&self.analysis.program.vars, p);
                let mut inner = scope.clone();
                inner.place.facts.assume(p);
                let tally = self.count(&inner, e, usage);
                self.exact &= Exact { counts: exact || tally.is_zero(), bounds: true, saved: exact || tally.saved.is_zero() };
                condition.add(&tally.times(&holds))
            }
            Exp::If(p, a, b) => {
                let condition = self.evaluate(scope, p);
                let (holds, exact) = scope.test(&self.analysis.program.vars, p);
                let (mut yes, mut no) = (scope.clone(), scope.clone());
                yes.place.facts.assume(p);
                no.place.facts.assume_not(p);
                let (yes, no) = (self.count(&yes, a, usage), self.count(&no, b, usage));
                let branches = if exact {
                    yes.times(&holds).add(&no.times(&Poly::one().sub(&holds)))
                } else {
                    let same = yes.zip(&no, Poly::sub).is_zero();
                    self.exact &= Exact { counts: same, bounds: true, saved: yes.saved == no.saved };
                    yes.zip(&no, Poly::larger)
                };
                condition.add(&branches)
            }
            Exp::Let(vars, value, body) => {
                let added = |path: Option<Path>| match path.map(|path| path.iter().fold(usage, |u, k| u.part(*k))) {
                    Some(Use::Added) => Use::Added,
                    Some(Use::Evaluated | Use::Parts(_)) | None => Use::Evaluated,
                };
                let uses: Vec<Use> = passed_on(&self.analysis.program.vars, vars, body).into_iter().map(added).collect();
                let mut inner = scope.clone();
                inner.passed.extend(vars.iter().zip(&uses).filter(|(_, u)| **u == Use::Added).map(|(v, _)| *v));
                let held: Vec<Type> = vars
                    .iter()
                    .zip(&uses)
                    .filter(|(_, u)| **u != Use::Added && held(value))
                    .map(|(v, _)| self.analysis.program.vars.ty(*v).clone())
                    .collect();
                let bound = match uses.as_slice() {
                    [one] => self.count(scope, value, one),
                    _ if uses.contains(&Use::Added) => self.count(scope, value, &Use::Parts(uses)),
                    _ => self.evaluate(scope, value),
                };
                if let [v] = vars.as_slice() {
                    match &*self.type_of(value) {
                        Type::Scalar(Scalar::I64) => match scope.int(&self.analysis.program.vars, value) {
                            Some(size) => {
                                inner.ints.insert(*v, size);
                            }
                            None => inner.unknown.push(*v),
                        },
                        Type::Scalar(Scalar::Bool) => {
                            if let (condition, true) = scope.test(&self.analysis.program.vars, value) {
                                inner.bools.insert(*v, condition);
                            }
                        }
                        // An `i32` is no size, nor part of one.
                        Type::Scalar(Scalar::I32) => inner.unknown.push(*v),
                        Type::Scalar(Scalar::F64 | Scalar::F32) | Type::Array(..) | Type::Tuple(_) => {}
                    }
                } else {
                    inner.unknown.extend(vars);
                }
                let kept = held.iter().fold(Poly::zero(), |sum, ty| sum.add(&self.arrays(scope, ty)));
                let body = self.count(&inner, body, usage).keeping(&kept);
                self.forget(&inner.unknown[scope.unknown.len()..], &body);
                bound.add(&body)
            }
            Exp::Tuple(parts) => parts.iter().enumerate().fold(Tally::default(), |t, (k, e)| t.add(&self.count(scope, e, usage.part(k)))),
            Exp::Array(items) => {
                let tally = self.evaluate_all(scope, items);
                added(self, tally)
            }
            Exp::Call(id, args, _) => {
                let tally = self.evaluate_all(scope, args);
                let (callee, exact) = self.analysis.function(*id);
                let types: Vec<Type> = args.iter().map(|a| (*self.type_of(a)).clone()).collect();
                let bound = build::bind_sizes(self.analysis.program, *id, &types, args);
                let body = callee.map(|p| p.substitute(&scope.place, &|v| bound.get(&v).map(|size| Poly::from_size(&scope.size(size)))));
                let unbound: Vec<Var> =
                    self.analysis.program.function(*id).params.iter().copied().filter(|v| !bound.contains_key(v)).collect();
                self.forget(&unbound, &body);
                self.exact &= exact;
                added(self, tally.add(&body))
            }
        }
    }

    /// Variables leave their scope: a count that mentions them depends on data.
    fn forget(&mut self, vars: &[Var], tally: &Tally) {
        let mentioned = |p: &Poly| vars.iter().any(|v| p.mentions(*v));
        let counts = ![&tally.additions, &tally.multiplications, &tally.calls].into_iter().any(mentioned);
        self.exact &= Exact { counts, bounds: true, saved: !mentioned(&tally.saved) };
    }

    /// A body over a range, with the cost of the range.
    fn looped(&mut self, scope: &Scope, range: &Range, body: impl FnOnce(&mut Self, &Scope) -> Tally) -> Tally {
        let bounds = self.evaluate_all(scope, [&range.lo, &range.hi]);
        let mut inner = scope.clone();
        let (lo, hi) = (scope.int(&self.analysis.program.vars, &range.lo), scope.int(&self.analysis.program.vars, &range.hi));
        if let (Some(lo), Some(hi)) = (&lo, &hi) {
            inner.place.facts.enter(range.index, lo, hi);
        }
        inner.place.indices.push(range.index);
        let tally = body(self, &inner);
        let poly = |size: Option<Size>, exp: &Exp| match size {
            Some(size) => Poly::from_size(&size),
            None => Poly::data(print::print_exp_untyped(self.analysis.program, exp), exp.free_vars()),
        };
        let (lo, hi) = (poly(lo, &range.lo), poly(hi, &range.hi));
        bounds.add(&self.sum(scope, range.index, &lo, &hi, tally))
    }

    fn sum(&mut self, scope: &Scope, index: Var, lo: &Poly, hi: &Poly, tally: Tally) -> Tally {
        let saved = tally.saved.most(index, lo, hi, &scope.place);
        let counts = Tally { saved: Poly::zero(), ..tally }.map(|p| p.sum(index, lo, hi, &scope.place));
        Tally { saved, ..counts }
    }

    /// How many floats of a value of this type are added.
    fn added(&mut self, scope: &Scope, ty: &Type, usage: &Use) -> Poly {
        match (usage, ty) {
            (Use::Evaluated, _) => Poly::zero(),
            (Use::Added, _) => self.floats(scope, ty),
            (Use::Parts(uses), Type::Tuple(types)) => {
                types.iter().zip(uses).fold(Poly::zero(), |sum, (t, u)| sum.add(&self.added(scope, t, u)))
            }
            (Use::Parts(_), Type::Scalar(_) | Type::Array(..)) => panic!("cost: several variables name a tuple"),
        }
    }

    /// How many elements the arrays of a value of this type have.
    fn arrays(&mut self, scope: &Scope, ty: &Type) -> Poly {
        match ty {
            Type::Scalar(_) => Poly::zero(),
            Type::Array(..) => self.elements(scope, ty),
            Type::Tuple(parts) => parts.iter().fold(Poly::zero(), |p, t| p.add(&self.arrays(scope, t))),
        }
    }
    /// How many scalars a value of this type holds.
    fn elements(&mut self, scope: &Scope, ty: &Type) -> Poly {
        match ty {
            Type::Scalar(_) => Poly::one(),
            Type::Array(shape, _) => shape.iter().fold(Poly::one(), |p, size| {
                let axis = Poly::from_size(&scope.size(size));
                p.mul(&axis.maximum(&Poly::zero(), &scope.place.facts))
            }),
            Type::Tuple(parts) => parts.iter().fold(Poly::zero(), |p, t| p.add(&self.elements(scope, t))),
        }
    }

    /// How many floats a value of this type holds.
    fn floats(&mut self, scope: &Scope, ty: &Type) -> Poly {
        match ty {
            Type::Scalar(s) => {
                if s.is_float() {
                    Poly::one()
                } else {
                    Poly::zero()
                }
            }
            Type::Array(_, s) if !s.is_float() => Poly::zero(),
            Type::Array(shape, _) => shape.iter().fold(Poly::one(), |p, size| {
                let axis = Poly::from_size(&scope.size(size));
                p.mul(&axis.maximum(&Poly::zero(), &scope.place.facts))
            }),
            Type::Tuple(parts) => parts.iter().fold(Poly::zero(), |p, t| p.add(&self.floats(scope, t))),
        }
    }
}

impl Scope {
    fn size(&self, size: &Size) -> Size {
        size.substitute(&|v| self.ints.get(&v).cloned())
    }
    /// An integer as a size, unless it depends on data. Floats have no size.
    fn int(&self, vars: &Vars, exp: &Exp) -> Option<Size> {
        let size = self.size(&build::exp_size(exp)?);
        let mut mentioned = vec![];
        size.variables(&mut mentioned);
        (mentioned.iter().all(|v| *vars.ty(*v) == Type::I64) && !self.unknown.iter().any(|v| size.mentions(*v))).then_some(size)
    }

    /// 1 where the condition holds, else 0, and whether that is so: a condition on data counts as true.
    fn test(&self, vars: &Vars, condition: &Exp) -> (Poly, bool) {
        if let Some(known) = self.place.facts.decide(vars, condition) {
            return (Poly::constant(known as i64), true);
        }
        let bound = (Poly::one(), false);
        match condition {
            Exp::Var(v) => self.bools.get(v).map_or(bound, |p| (p.clone(), true)),
            Exp::Lit(Lit::Bool(b)) => (Poly::constant(*b as i64), true),
            Exp::Op(op, args, _) => {
                let both = || (self.test(vars, &args[0]), self.test(vars, &args[1]));
                let ints = || Some((Poly::from_size(&self.int(vars, &args[0])?), Poly::from_size(&self.int(vars, &args[1])?)));
                let compared = |f: &dyn Fn(Poly, Poly) -> Poly| ints().map_or(bound.clone(), |(a, b)| (f(a, b), true));
                let at_least = |a: &Poly, b: &Poly| a.sub(b).nonnegative(&self.place.facts);
                let equal = |a: &Poly, b: &Poly| a.sub(b).is_null(&self.place.facts);
                match op {
                    Op::And => {
                        let ((p, p_exact), (q, q_exact)) = both();
                        (p.mul(&q), p_exact && q_exact)
                    }
                    Op::Or => {
                        let ((p, p_exact), (q, q_exact)) = both();
                        (p.add(&q).sub(&p.mul(&q)), p_exact && q_exact)
                    }
                    Op::Not => match self.test(vars, &args[0]) {
                        (p, true) => (Poly::one().sub(&p), true),
                        (_, false) => bound,
                    },
                    Op::Ge => compared(&|a, b| at_least(&a, &b)),
                    Op::Le => compared(&|a, b| at_least(&b, &a)),
                    Op::Gt => compared(&|a, b| at_least(&a.sub(&Poly::one()), &b)),
                    Op::Lt => compared(&|a, b| at_least(&b.sub(&Poly::one()), &a)),
                    Op::Eq => compared(&|a, b| equal(&a, &b)),
                    Op::Ne => compared(&|a, b| Poly::one().sub(&equal(&a, &b))),
                    _ => bound,
                }
            }
            _ => bound,
        }
    }
}
