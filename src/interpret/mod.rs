//! The meaning of the IR: slow, obvious, checking everything, counting operations.
//!
//! An expression is evaluated (`eval`) or added into a destination (`accumulate`). Adding distributes over `sum`, `for`,
//! `+` of arrays and tuples, `let`, `if`, guards, tuples and singletons; anything else is evaluated and then added, one
//! addition for each float, and a written zero is not added. So `sum i. {k(i) -> v(i)}` does one addition per `i`, and a
//! false guard costs nothing. Of `let (x, y) = value; body` a variable that the body only adds to its destination is
//! never built (`deliver.rs`).
//!
//! The cost model: each executed operation on floats counts once, as its row says (`Op::cost`); a partial derivative
//! is one call, with the product that applies it; a float added into a destination is one addition. Work on integers and truth values is free.
//!
//! `any` and `all` evaluate their body at every index, like the other binders.

mod deliver;
mod memory;

use crate::bind;
use crate::diagnostic::{Diagnostic, Span};
use crate::fault::Fault;
use crate::ir::destination::{Path, held};
use crate::ir::summed::summed;
use crate::ir::{
    Body, Exp, FunctionId, History, Iteration, Lit, Op, Program, Range, Reduction, Scalar, Site, Size, Trip, Type, Var, build,
};
use crate::scalar::CostClass;
use crate::value::Value;
use memory::{Buffers, Layout, Place, Val, stack};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// How many operations on floats were executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub additions: u64,
    pub multiplications: u64,
    pub calls: u64,
}

impl Counts {
    pub fn total(self) -> u64 {
        self.additions + self.multiplications + self.calls
    }
}

/// Why a call has no value, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub site: Span,
    /// The program's call of the library that it happened in.
    pub called: Option<Span>,
    pub message: String,
    /// What would be right.
    pub note: String,
}

impl Failure {
    pub fn new(site: Site, fault: Fault) -> Failure {
        Failure { site: site.span, called: site.called, message: fault.to_string(), note: fault.note() }
    }
    fn called_from(self, call: Span) -> Failure {
        let site = Site { called: self.called, ..Site::new(self.site) };
        Failure { called: site.called_from(call).called, ..self }
    }
    pub fn diagnostic(self) -> Diagnostic {
        let error = Diagnostic::error(self.site, self.message);
        let error = match self.called {
            Some(call) => error.label(call, "in this call"),
            None => error,
        };
        if self.note.is_empty() { error } else { error.note(self.note) }
    }
}

/// Deep expressions need a deep stack; only the part that is touched is ever taken.
const STACK_BYTES: usize = 1 << 28;

/// The value of a function at arguments, and what it cost.
pub fn call(program: &Program, id: FunctionId, args: &[Value]) -> Result<(Value, Counts), Failure> {
    call_measured(program, id, args).map(|(value, counts, _)| (value, counts))
}

/// What a call did with memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The number of elements that loops started from and updates wrote, and of zeros that are sums of nothing. They are
    /// free; moving their adjoints back is adding.
    pub moved: u64,
    /// The most elements that there were at one time in arrays with names, states of loops, and histories.
    pub saved: u64,
}

/// As `call`, with what it did with memory.
pub fn call_measured(program: &Program, id: FunctionId, args: &[Value]) -> Result<(Value, Counts, Memory), Failure> {
    let run = || {
        let mut interpreter = Interpreter::new(program);
        let args = args.iter().map(Val::from_value).collect();
        let value = interpreter.call(id, args, program.function(id).span)?;
        Ok((value.into_value(), interpreter.counts, Memory { moved: interpreter.moved, saved: interpreter.peak }))
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .stack_size(crate::memory::stack(STACK_BYTES))
            .spawn_scoped(scope, run)
            .expect("a thread can be started");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

struct Interpreter<'a> {
    program: &'a Program,
    /// The value of each variable that is in scope. Variables are bound once in a program and functions do not recurse,
    /// so one table serves all calls.
    env: Vec<Option<Val>>,
    buffers: Buffers,
    counts: Counts,
    /// Elements of the first states of loops, and those that updates wrote.
    moved: u64,
    /// Elements of arrays with names, states of loops and histories: those there are, and the most there were.
    held: u64,
    peak: u64,
    /// The function that is running: the place of faults that have no other.
    function: Span,
    /// Types of the expressions that were asked for, by address.
    types: FxHashMap<*const Exp, Rc<Type>>,
    /// For each `let` that was added into a destination, by the address of its body: which variables it passes on.
    paths: FxHashMap<*const Exp, Rc<Vec<Option<Path>>>>,
    /// Variables in scope that were added where they belong already.
    passed: Vec<Var>,
}

type Outcome<T> = Result<T, Failure>;

impl<'a> Interpreter<'a> {
    fn new(program: &'a Program) -> Interpreter<'a> {
        Interpreter {
            program,
            env: vec![None; program.vars.count()],
            buffers: Buffers::default(),
            counts: Counts::default(),
            moved: 0,
            held: 0,
            peak: 0,
            function: Span::default(),
            types: FxHashMap::default(),
            paths: FxHashMap::default(),
            passed: vec![],
        }
    }

    fn call(&mut self, id: FunctionId, args: Vec<Val>, site: Span) -> Outcome<Val> {
        let program = self.program;
        let f = program.function(id);
        let Body::Exp(body) = &f.body else { panic!("interpret: `{}` is a derivative that has not been defined yet", f.name) };
        let sizes =
            bind::sizes(program, id, &args).map_err(|e| Failure { site, called: None, message: e.message, note: e.notes.join("\n") })?;
        for (param, arg) in f.params.iter().zip(args) {
            self.env[param.0 as usize] = Some(arg);
        }
        for size in &f.sizes {
            self.env[size.0 as usize] = Some(Val::Scalar(Lit::I64(sizes[size])));
        }
        let caller = std::mem::replace(&mut self.function, f.span);
        let value = self.eval(body)?;
        let wanted = self.layout_of_type(&f.result).unwrap_or_else(|v| panic!("interpret: the result of `{}` mentions {v:?}", f.name));
        if Layout::of(&value) != wanted {
            return Err(Failure {
                called: None,
                site: f.span,
                message: format!("the result of `{}` is {:?}", f.name, Layout::of(&value)),
                note: format!("by its type it is {wanted:?}"),
            });
        }
        self.function = caller;
        f.params.iter().chain(&f.sizes).for_each(|v| self.env[v.0 as usize] = None);
        Ok(value)
    }

    fn eval(&mut self, exp: &'a Exp) -> Outcome<Val> {
        Ok(match exp {
            Exp::Var(v) => self.var(*v).clone(),
            Exp::Lit(lit) => Val::Scalar(*lit),
            Exp::Op(op, args, site) => match args.as_slice() {
                [a] => {
                    let a = self.eval(a)?.lit();
                    self.operate(*op, &[a], *site)?
                }
                [a, b] => match self.eval(a)? {
                    Val::Scalar(a) => {
                        let b = self.eval(b)?.lit();
                        let counts = self.counts;
                        let product = self.operate(*op, &[a, b], *site)?;
                        if build::applies_partial(*op, args) {
                            self.counts = counts;
                        }
                        product
                    }
                    first => {
                        assert_eq!(*op, Op::Add, "interpret: only `+` acts on arrays and tuples");
                        let place = self.buffers.push(first);
                        self.accumulate(b, &place)?;
                        self.buffers.pop(&place)
                    }
                },
                _ => panic!("interpret: {op:?} has {} arguments", args.len()),
            },
            Exp::Partial(op, k, operands) => {
                let operands = operands.iter().map(|e| Ok(self.eval(e)?.lit())).collect::<Outcome<Vec<Lit>>>()?;
                let kinds: Vec<Scalar> = operands.iter().map(|lit| lit.scalar()).collect();
                let (_, formula) = op.partial_of(*k, &kinds).unwrap_or_else(|| panic!("interpret: no partial {op:?} {k} of {kinds:?}"));
                self.counts.calls += 1;
                Val::Scalar(formula.eval(&operands).map_err(|fault| Failure::new(Site::new(self.function), fault))?)
            }
            Exp::Index(array, keys, site) => {
                let array = self.eval(array)?;
                let keys = keys.iter().map(|k| Ok(self.eval(k)?.int())).collect::<Outcome<Vec<i64>>>()?;
                let keys: Vec<usize> =
                    keys.iter().enumerate().map(|(axis, k)| in_range(*k, array.axis(axis), *site)).collect::<Outcome<_>>()?;
                array.at(&keys)
            }
            Exp::Singleton(..) | Exp::Sum(..) => {
                let zero = self.layout(exp)?.zero();
                let place = self.buffers.push(zero);
                match exp {
                    // A lone singleton is stored, not added.
                    Exp::Singleton(keys, value, site) => {
                        let place = self.keyed(keys, &place, *site)?;
                        let value = self.eval(value)?;
                        self.buffers.store(&place, &value);
                    }
                    _ => self.accumulate(exp, &place)?,
                }
                self.buffers.pop(&place)
            }
            Exp::For(index, size, body) => {
                let count = self.size(size);
                if count == 0 {
                    return Ok(self.layout(exp)?.zero());
                }
                let values = (0..count).map(|i| self.at(*index, i as i64, |me| me.eval(body))).collect::<Outcome<Vec<Val>>>()?;
                stack(values)
            }
            Exp::Reduce(kind, range, body, site) => self.reduce(*kind, range, body, exp, *site)?,
            Exp::History(h) => self.history(h)?,
            Exp::Loop(l) => self.iterate(l)?,
            Exp::Update(array, keys, value, site) => {
                let array = self.eval(array)?;
                let keys = keys.iter().map(|k| Ok(self.eval(k)?.int())).collect::<Outcome<Vec<i64>>>()?;
                let whole = self.buffers.push(array);
                let mut place = whole.clone();
                for key in keys {
                    place = place.at(in_range(key, place.axis(0), *site)?);
                }
                let value = self.eval(value)?;
                self.moved += value.count();
                self.buffers.store(&place, &value);
                self.buffers.pop(&whole)
            }
            Exp::Guard(p, e) => {
                if self.eval(p)?.truth() {
                    self.eval(e)?
                } else {
                    self.layout(e)?.zero()
                }
            }
            Exp::If(p, a, b) => {
                let chosen = if self.eval(p)?.truth() { a } else { b };
                self.eval(chosen)?
            }
            Exp::Let(vars, value, body) => {
                let held = held(value);
                let value = self.eval(value)?;
                let arrays = if held { value.arrays() } else { 0 };
                self.holding(arrays, |me| me.bound(vars, value, |me| me.eval(body)))?
            }
            Exp::Tuple(parts) => Val::Tuple(parts.iter().map(|e| self.eval(e)).collect::<Outcome<_>>()?),
            Exp::Array(items) => stack(items.iter().map(|e| self.eval(e)).collect::<Outcome<_>>()?),
            Exp::Call(id, args, site) => {
                let args = args.iter().map(|e| self.eval(e)).collect::<Outcome<_>>()?;
                self.call(*id, args, site.span).map_err(|failure| failure.called_from(site.span))?
            }
        })
    }

    /// `place += exp`
    fn accumulate(&mut self, exp: &'a Exp, place: &Place) -> Outcome<()> {
        match exp {
            _ if build::is_zero(exp) => Ok(()),
            Exp::Op(Op::Add, args, _) if matches!(place, Place::Tuple(_)) || !is_scalar(place) => {
                args.iter().try_for_each(|e| self.accumulate(e, place))
            }
            Exp::Singleton(keys, value, site) => {
                let place = self.keyed(keys, place, *site)?;
                self.accumulate(value, &place)
            }
            Exp::For(index, size, body) => {
                let count = self.size(size);
                assert_eq!(count, place.axis(0), "interpret: a `for` is added to an array of another size");
                (0..count).try_for_each(|i| self.at(*index, i as i64, |me| me.accumulate(body, &place.at(i))))
            }
            Exp::Sum(range, body) => {
                let (lo, hi) = self.range(range)?;
                if lo >= hi {
                    self.moved += place.count();
                }
                (lo..hi).try_for_each(|i| self.at(range.index, i, |me| me.accumulate(body, place)))
            }
            Exp::Guard(p, e) => {
                if self.eval(p)?.truth() {
                    self.accumulate(e, place)?;
                }
                Ok(())
            }
            Exp::If(p, a, b) => {
                let chosen = if self.eval(p)?.truth() { a } else { b };
                self.accumulate(chosen, place)
            }
            Exp::Let(vars, value, body) => {
                self.let_into(vars, value, body, &|path| Some(place.part(path)), |me| me.accumulate(body, place))
            }
            Exp::Var(v) if self.passed.contains(v) => Ok(()),
            Exp::Tuple(parts) => parts.iter().zip(place.parts()).try_for_each(|(e, p)| self.accumulate(e, p)),
            Exp::Var(_)
            | Exp::Lit(_)
            | Exp::Op(..)
            | Exp::Partial(..)
            | Exp::Index(..)
            | Exp::Reduce(..)
            | Exp::History(_)
            | Exp::Loop(_)
            | Exp::Update(..)
            | Exp::Array(_)
            | Exp::Call(..) => {
                let value = self.eval(exp)?;
                self.counts.additions += self.buffers.add(place, &value);
                Ok(())
            }
        }
    }

    /// Where something is, or at least in which function.
    fn place(&self, site: Site) -> Site {
        site.known().map_or(Site::new(self.function), |_| site)
    }

    /// A scalar operation.
    fn operate(&mut self, op: Op, args: &[Lit], site: Site) -> Outcome<Val> {
        let kinds = [args[0].scalar(), args[args.len() - 1].scalar()];
        self.count(op.cost(&kinds[..args.len()]));
        op.eval(args).map(Val::Scalar).map_err(|fault| Failure::new(self.place(site), fault))
    }

    fn count(&mut self, cost: CostClass) {
        match cost {
            CostClass::Free => {}
            CostClass::Addition => self.counts.additions += 1,
            CostClass::Multiplication => self.counts.multiplications += 1,
            CostClass::Call => self.counts.calls += 1,
        }
    }

    fn reduce(&mut self, kind: Reduction, range: &'a Range, body: &'a Exp, exp: &'a Exp, site: Site) -> Outcome<Val> {
        let (lo, hi) = self.range(range)?;
        let element = |me: &mut Self, i: i64| me.at(range.index, i, |me| Ok(me.eval(body)?.lit()));
        let scalar = |me: &mut Self| me.type_of(exp).scalar().expect("reductions are of scalars");
        Ok(Val::Scalar(match kind {
            Reduction::Prod | Reduction::Max | Reduction::Min => {
                let op = match kind {
                    Reduction::Prod => Op::Mul,
                    Reduction::Max => Op::Max,
                    _ => Op::Min,
                };
                let mut result = kind.neutral(scalar(self));
                for i in lo..hi {
                    let next = element(self, i)?;
                    result = self.operate(op, &[result, next], Site::default())?.lit();
                }
                result
            }
            Reduction::ArgMax | Reduction::ArgMin => {
                let op = if kind == Reduction::ArgMax { Op::Max } else { Op::Min };
                let mut best: Option<(i64, Lit)> = None;
                for i in lo..hi {
                    let next = element(self, i)?;
                    self.count(op.cost(&[next.scalar(); 2]));
                    if best.is_none_or(|(_, champion)| !first_wins(op, champion, next)) {
                        best = Some((i, next));
                    }
                }
                match best {
                    Some((i, _)) => Lit::I64(i),
                    None => return Err(Failure::new(self.place(site), Fault::NothingToChoose)),
                }
            }
            Reduction::Any | Reduction::All => {
                let neutral = kind == Reduction::All;
                let mut result = neutral;
                for i in lo..hi {
                    let next = element(self, i)? == Lit::Bool(true);
                    result = if neutral { result && next } else { result || next };
                }
                Lit::Bool(result)
            }
        }))
    }

    /// Runs while so many elements are there.
    fn holding<T>(&mut self, elements: u64, run: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        self.held += elements;
        self.peak = self.peak.max(self.held);
        let result = run(self);
        self.held -= elements;
        result
    }

    fn history(&mut self, h: &'a History) -> Outcome<Val> {
        let places = self.places(h);
        if places == 0 {
            return Ok(self.layout(&h.init)?.with_axis(0).zero());
        }
        let state = self.eval(&h.init)?;
        self.moved += state.count();
        let all = places as u64 * state.count();
        self.holding(all, |me| me.states(h, state))
    }

    /// How many states a history has: none, if its size is negative.
    fn places(&mut self, h: &History) -> usize {
        self.size(&h.size.add(&Size::constant(1)))
    }

    fn states(&mut self, h: &'a History, mut state: Val) -> Outcome<Val> {
        let mut states = vec![state.clone()];
        for i in 0..self.size(&h.size) {
            let next = self.bound(&h.state, state, |me| me.at(h.index, i as i64, |me| me.eval(&h.body)))?;
            states.push(next.clone());
            state = next;
        }
        Ok(stack(states))
    }

    fn iterate(&mut self, l: &'a Iteration) -> Outcome<Val> {
        let state = self.eval(&l.init)?;
        self.moved += state.count();
        let arrays = state.arrays();
        self.holding(arrays, |me| me.iterate_from(l, state))
    }

    fn iterate_from(&mut self, l: &'a Iteration, mut state: Val) -> Outcome<Val> {
        let summed = summed(&self.program.vars, l);
        if summed.contains(&true) {
            return self.iterate_sums(l, state, &summed);
        }
        match &l.trip {
            Trip::For(range) => {
                let (lo, hi) = self.range(range)?;
                for i in lo..hi {
                    state = self.bound(&l.state, state, |me| me.at(range.index, i, |me| me.eval(&l.body)))?;
                }
            }
            Trip::While(condition) => {
                let mut steps = 0;
                while self.bound(&l.state, state.clone(), |me| Ok(me.eval(condition)?.truth()))? {
                    self.one_more(l, &mut steps)?;
                    state = self.bound(&l.state, state, |me| me.eval(&l.body))?;
                }
            }
        }
        Ok(state)
    }

    /// Counts a step of a loop that may say how many there are at most.
    fn one_more(&mut self, l: &'a Iteration, steps: &mut i64) -> Outcome<()> {
        *steps += 1;
        let Some(bound) = l.bound() else { return Ok(()) };
        let bound = bound.evaluate(&|v| Some(self.var(v).int())).unwrap_or_else(|| panic!("interpret: the bound {bound:?} has no value"));
        self.operate(
            Op::Bounded,
            &[Lit::I64(*steps), Lit::I64(bound)],
            self.program.vars.origin(l.state[0]).map_or(Site::default(), Site::new),
        )?;
        Ok(())
    }

    /// A loop of which some states are only added to: these stay in one place.
    fn iterate_sums(&mut self, l: &'a Iteration, state: Val, summed: &[bool]) -> Outcome<Val> {
        let parts = match state {
            Val::Tuple(parts) if l.state.len() > 1 => parts,
            state => vec![state],
        };
        let mut places: Vec<Option<Place>> = vec![];
        let mut carried: Vec<Option<Val>> = vec![];
        for (part, sum) in parts.into_iter().zip(summed) {
            places.push(sum.then(|| self.buffers.push(part.clone())));
            carried.push((!sum).then_some(part));
        }
        let before = self.passed.len();
        self.passed.extend(l.state.iter().zip(summed).filter(|(_, sum)| **sum).map(|(v, _)| *v));
        let outcome = self.steps_of_sums(l, &mut carried, &places);
        self.passed.truncate(before);
        // A failure leaves what it was at behind.
        outcome?;
        // Buffers are a stack.
        let mut totals: Vec<Option<Val>> = places.iter().rev().map(|place| place.as_ref().map(|p| self.buffers.pop(p))).collect();
        totals.reverse();
        let mut parts: Vec<Val> = totals.into_iter().zip(carried).map(|(total, part)| total.or(part).expect("summed or carried")).collect();
        Ok(if l.state.len() > 1 { Val::Tuple(parts) } else { parts.remove(0) })
    }

    fn steps_of_sums(&mut self, l: &'a Iteration, carried: &mut Vec<Option<Val>>, places: &[Option<Place>]) -> Outcome<()> {
        let step = |me: &mut Self, carried: &mut Vec<Option<Val>>| -> Outcome<()> {
            match places {
                [Some(place)] => me.accumulate(&l.body, place),
                _ => {
                    *carried = me.deliver(&l.body, places)?;
                    Ok(())
                }
            }
        };
        let bind = |me: &mut Self, carried: &[Option<Val>]| {
            l.state.iter().zip(carried).for_each(|(v, value)| me.env[v.0 as usize] = value.clone());
        };
        match &l.trip {
            Trip::For(range) => {
                let (lo, hi) = self.range(range)?;
                for i in lo..hi {
                    bind(self, carried);
                    self.at(range.index, i, |me| step(me, carried))?;
                }
            }
            Trip::While(condition) => {
                let mut steps = 0;
                loop {
                    bind(self, carried);
                    if !self.eval(condition)?.truth() {
                        break;
                    }
                    self.one_more(l, &mut steps)?;
                    step(self, carried)?;
                }
            }
        }
        l.state.iter().for_each(|v| self.env[v.0 as usize] = None);
        Ok(())
    }

    fn var(&self, v: Var) -> &Val {
        self.env[v.0 as usize].as_ref().unwrap_or_else(|| panic!("interpret: `{}` ({v:?}) is not in scope", self.program.vars.name(v)))
    }

    /// Runs with an index bound.
    fn at<T>(&mut self, index: Var, i: i64, run: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        self.env[index.0 as usize] = Some(Val::Scalar(Lit::I64(i)));
        let result = run(self);
        self.env[index.0 as usize] = None;
        result
    }

    /// Runs with a value bound to one variable, or its parts to several.
    fn bound<T>(&mut self, vars: &[Var], value: Val, run: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        match (vars, value) {
            ([v], value) => self.env[v.0 as usize] = Some(value),
            (vars, Val::Tuple(parts)) if parts.len() == vars.len() => {
                vars.iter().zip(parts).for_each(|(v, part)| self.env[v.0 as usize] = Some(part))
            }
            (vars, value) => panic!("interpret: {value:?} is bound to {} variables", vars.len()),
        }
        let result = run(self);
        vars.iter().for_each(|v| self.env[v.0 as usize] = None);
        result
    }

    fn range(&mut self, range: &'a Range) -> Outcome<(i64, i64)> {
        let lo = self.eval(&range.lo)?.int();
        let hi = self.eval(&range.hi)?.int();
        Ok((lo, hi))
    }

    /// The part of a place that a singleton stands for.
    fn keyed(&mut self, keys: &'a [(Exp, Size)], place: &Place, site: Site) -> Outcome<Place> {
        let values = keys.iter().map(|(k, _)| Ok(self.eval(k)?.int())).collect::<Outcome<Vec<i64>>>()?;
        let mut place = place.clone();
        for ((_, size), k) in keys.iter().zip(values) {
            let size = self.size(size);
            assert_eq!(size, place.axis(0), "interpret: a singleton is added to an array of another size");
            place = place.at(in_range(k, size, site)?);
        }
        Ok(place)
    }

    fn size(&self, size: &Size) -> usize {
        self.try_size(size).unwrap_or_else(|v| panic!("interpret: the size {size:?} mentions {v:?}, which is not in scope"))
    }
    /// The number of places of an axis, or a variable of its size that is not in scope.
    fn try_size(&self, size: &Size) -> Result<usize, Var> {
        let mut vars = vec![];
        size.variables(&mut vars);
        if let Some(v) = vars.into_iter().find(|v| self.env[v.0 as usize].is_none()) {
            return Err(v);
        }
        let value = size.evaluate(&|v| Some(self.var(v).int()));
        Ok(value.unwrap_or_else(|| panic!("interpret: the size {size:?} has no value")).max(0) as usize)
    }

    fn type_of(&mut self, exp: &'a Exp) -> Rc<Type> {
        let program = self.program;
        self.types.entry(exp as *const Exp).or_insert_with(|| Rc::new(build::type_of(program, exp))).clone()
    }

    fn layout_of_type(&self, ty: &Type) -> Result<Layout, Var> {
        Ok(match ty {
            Type::Scalar(s) => Layout::Leaf(vec![], *s),
            Type::Array(shape, s) => Layout::Leaf(shape.iter().map(|n| self.try_size(n)).collect::<Result<_, _>>()?, *s),
            Type::Tuple(parts) => Layout::Tuple(parts.iter().map(|t| self.layout_of_type(t)).collect::<Result<_, _>>()?),
        })
    }

    /// What the expression's value will take, without evaluating it. Where its type mentions variables that the
    /// expression itself binds, these are bound on the way; nothing of this is counted.
    fn layout(&mut self, exp: &'a Exp) -> Outcome<Layout> {
        let ty = self.type_of(exp);
        if let Ok(layout) = self.layout_of_type(&ty) {
            return Ok(layout);
        }
        match exp {
            Exp::Let(vars, value, body) => {
                let (counts, peak) = (self.counts, self.peak);
                let value = self.eval(value)?;
                (self.counts, self.peak) = (counts, peak);
                self.bound(vars, value, |me| me.layout(body))
            }
            Exp::For(_, size, body) => Ok(self.layout(body)?.with_axis(self.size(size))),
            Exp::Singleton(keys, value, _) => {
                let inner = self.layout(value)?;
                Ok(keys.iter().rev().fold(inner, |layout, (_, size)| layout.with_axis(self.size(size))))
            }
            Exp::Sum(_, e) | Exp::Guard(_, e) | Exp::If(_, e, _) => self.layout(e),
            Exp::Op(_, args, _) => self.layout(&args[0]),
            Exp::Tuple(parts) => Ok(Layout::Tuple(parts.iter().map(|e| self.layout(e)).collect::<Outcome<_>>()?)),
            Exp::Array(items) => Ok(self.layout(&items[0])?.with_axis(items.len())),
            Exp::History(h) => Ok(self.layout(&h.init)?.with_axis(self.places(h))),
            Exp::Loop(l) => self.layout(&l.init),
            Exp::Update(array, ..) => self.layout(array),
            Exp::Var(_) | Exp::Lit(_) | Exp::Partial(..) | Exp::Index(..) | Exp::Reduce(..) | Exp::Call(..) => {
                panic!("interpret: the type {ty:?} mentions a variable that is not in scope")
            }
        }
    }
}

fn is_scalar(place: &Place) -> bool {
    matches!(place, Place::Leaf { shape, depth, .. } if *depth == shape.len())
}

/// Whether the first argument is the result of `max` or `min`.
fn first_wins(op: Op, first: Lit, second: Lit) -> bool {
    let ahead = match (first.as_float().zip(second.as_float()), first.as_integer().zip(second.as_integer())) {
        (Some((a, _)), _) if a.is_nan() => return true,
        (Some((a, b)), _) => a.partial_cmp(&b),
        (_, Some((a, b))) => Some(a.cmp(&b)),
        _ => panic!("interpret: {first:?} is compared with {second:?}"),
    };
    match op {
        Op::Max => ahead.is_some_and(|o| o.is_ge()),
        _ => ahead.is_some_and(|o| o.is_le()),
    }
}

fn in_range(index: i64, size: usize, site: Site) -> Outcome<usize> {
    match usize::try_from(index) {
        Ok(k) if k < size => Ok(k),
        _ => Err(Failure::new(site, Fault::IndexOutOfRange { index, size: size as i64 })),
    }
}
