//! `loop state = init for i in a..b do body` and `… while condition do body`.
//!
//! The state lives in one place: arrays in the loop's destination, scalars in locals. A step computes the next scalars,
//! then changes the arrays where they are (`in_place.rs` says which it may). What one array needs of another is read before
//! the other is written; where each needs the other, what is written is computed before anything is.
//! To a state that the steps only add to (`ir/summed.rs`) they add where it is. Any other array is built beside and copied.

use super::binding::shares;
use super::*;
use crate::ir::summed::summed;

/// What a step works on.
#[derive(Clone)]
pub(super) struct Step<'a> {
    /// Where each part of the state lives.
    pub places: &'a [Dest],
    /// The parts that are only added to.
    pub summed: &'a [bool],
    /// The variables that are what the places hold now, if any are: at first the state's, then what was made of these in place.
    pub current: Vec<Option<Var>>,
}

/// The bounds of a loop, in locals.
pub(super) type Bounds = Option<(Expr, Expr)>;

impl Lowering<'_> {
    pub fn store_iteration(&mut self, l: &Iteration, dest: &Dest) {
        let state = self.state_home(dest, &l.state);
        match (&l.init, &state) {
            (Exp::Tuple(parts), Dest::Tuple(places)) if parts.len() == l.state.len() => {
                for (k, (part, place)) in parts.iter().zip(places).enumerate() {
                    if !self.is_filled(l, k, part) {
                        self.store(part, place);
                    }
                }
            }
            (init, _) if l.state.len() == 1 && self.is_filled(l, 0, init) => {}
            (init, state) => self.store(init, state),
        }
        let bounds = self.bounds_of(l);
        self.iterate(l, &state, bounds);
        self.copy(&state.value(), dest);
    }

    /// Whether a part of the state is an array of zeros of which each step writes the row of its number, and nothing else
    /// does anything with it: then it need not be zero.
    fn is_filled(&self, l: &Iteration, k: usize, init: &Exp) -> bool {
        let (Trip::For(range), Exp::For(_, size, _)) = (&l.trip, init) else { return false };
        let whole = range.lo == build::i64(0) && build::exp_size(&range.hi).is_some_and(|hi| hi.axis() == size.axis());
        if !whole || !build::is_zero(init) {
            return false;
        }
        let state = l.state[k];
        let mut rest = &l.body;
        while let Exp::Let(_, value, body) = rest {
            if value.mentions(state) {
                return false;
            }
            rest = body;
        }
        let part = match rest {
            Exp::Tuple(parts) if l.state.len() > 1 && parts.len() == l.state.len() => {
                if parts.iter().enumerate().any(|(j, part)| j != k && part.mentions(state)) {
                    return false;
                }
                &parts[k]
            }
            part if l.state.len() == 1 => part,
            _ => return false,
        };
        let Exp::Update(array, keys, value, _) = part else { return false };
        **array == Exp::Var(state) && keys.as_slice() == [Exp::Var(range.index)] && !value.mentions(state)
    }

    pub fn bounds_of(&mut self, l: &Iteration) -> Bounds {
        match &l.trip {
            Trip::For(range) => {
                let (lo, hi) = (self.value(&range.lo), self.value(&range.hi));
                Some((self.named("start", lo), self.named("end", hi)))
            }
            Trip::While(_) => None,
        }
    }

    /// The steps of a loop whose first state is in its place.
    pub fn iterate(&mut self, l: &Iteration, state: &Dest, bounds: Bounds) {
        let summed = summed(self.vars, l);
        let step = Step { places: places(&l.state, state), summed: &summed, current: l.state.iter().copied().map(Some).collect() };
        // What is added is not read.
        let sums: Vec<Var> = l.state.iter().zip(&summed).filter(|(_, sum)| **sum).map(|(v, _)| *v).collect();
        self.passed.extend(sums.iter().copied());
        let is_bounded = match &l.trip {
            Trip::For(range) => build::exp_size(&range.hi).is_some_and(|hi| self.most(&hi, 0).is_some()),
            Trip::While(_) => false,
        };
        self.unbounded += !is_bounded as usize;
        match (&l.trip, bounds) {
            (Trip::For(range), Some((lo, hi))) => {
                let index = self.kernel.fresh_local(self.vars.name(range.index), Scalar::I64);
                self.env.insert(range.index, Val::Scalar(Expr::Local(index)));
                let bounds = buffers::Extent::Index { lo: build::exp_size(&range.lo), hi: build::exp_size(&range.hi) };
                self.ranges.insert(range.index, bounds);
                let (body, ()) = self.nested(|me| {
                    me.facts.enter_range(range);
                    me.bind_states(&l.state, state);
                    me.advance(&l.body, step);
                });
                self.emit(Stmt::Loop(Loop { index, lo, hi, order: Order::Sequential, schedule: Schedule::Plain, body }));
            }
            (Trip::While(condition), _) => {
                let (body, ()) = self.nested(|me| {
                    me.bind_states(&l.state, state);
                    let goes_on = me.value(condition);
                    me.emit(Stmt::LeaveUnless(goes_on));
                    me.facts.assume(condition);
                    me.advance(&l.body, step);
                });
                self.emit(Stmt::Forever(body));
            }
            (Trip::For(_), None) => unreachable!("a counted loop has bounds"),
        }
        self.unbounded -= !is_bounded as usize;
        sums.iter().for_each(|v| {
            self.passed.remove(v);
        });
    }

    /// One step of a state that is in its place.
    pub fn step(&mut self, states: &[Var], body: &Exp, state: &Dest) {
        let summed = vec![false; states.len()];
        let step = Step { places: places(states, state), summed: &summed, current: states.iter().copied().map(Some).collect() };
        self.bind_states(states, state);
        self.advance(body, step);
    }

    /// The value of a loop whose state is one scalar.
    pub fn iteration_value(&mut self, l: &Iteration) -> Expr {
        let ty = self.type_of(&l.init);
        let dest = self.allocate(&ty, self.vars.name(l.state[0]));
        self.store_iteration(l, &dest);
        match dest.value() {
            Val::Scalar(value) => value,
            Val::Array(_) | Val::Tuple(_) => panic!("lower: a scalar was expected"),
        }
    }

    /// The destination, with locals in place of scalars that are in memory.
    pub fn state_home(&mut self, dest: &Dest, names: &[Var]) -> Dest {
        match dest {
            Dest::Scalar(target) => {
                let scalar = match target {
                    Target::Local(l) => self.kernel.local(*l).scalar,
                    Target::Place(b, _) => self.kernel.buffer(*b).scalar,
                };
                self.allocate(&Type::Scalar(scalar), self.vars.name(names[0]))
            }
            Dest::Array(_) => dest.clone(),
            Dest::Tuple(parts) => {
                let name = |k: usize| if names.len() == parts.len() { &names[k..k + 1] } else { names };
                Dest::Tuple(parts.iter().enumerate().map(|(k, d)| self.state_home(d, name(k))).collect())
            }
        }
    }

    fn bind_states(&mut self, vars: &[Var], state: &Dest) {
        match (vars, state) {
            ([v], state) => self.define(*v, state),
            (vars, Dest::Tuple(parts)) => vars.iter().zip(parts).for_each(|(v, d)| self.define(*v, d)),
            _ => panic!("lower: several states are a tuple"),
        }
    }

    /// `state = body`, where the body reads the state.
    pub fn advance(&mut self, body: &Exp, mut step: Step) {
        let several = step.places.len() > 1;
        match body {
            Exp::Let(bound, value, rest) => {
                if !self.bind_in_place(bound, value, rest, &mut step) {
                    self.bind_beside(bound, value, rest, &step);
                }
                self.advance(rest, step);
            }
            Exp::If(p, a, b) => {
                let condition = self.value(p);
                let (yes, ()) = self.branch(p, true, |l| l.advance(a, step.clone()));
                let (no, ()) = self.branch(p, false, |l| l.advance(b, step));
                self.emit(Stmt::If(condition, yes, no));
            }
            Exp::Tuple(parts) if several && step.places.len() == parts.len() => self.advance_parts(parts, &step),
            // A loop in a loop goes on with the same state.
            Exp::Loop(inner) if several && self.continues(inner, &step) => {
                let Exp::Tuple(parts) = &inner.init else { unreachable!("`continues` has seen a tuple") };
                let bounds = self.bounds_of(inner);
                self.advance_parts(parts, &step);
                self.apart_marked(body, |me| me.iterate(inner, &Dest::Tuple(step.places.to_vec()), bounds));
            }
            body if !several => self.advance_parts(std::slice::from_ref(body), &step),
            body => {
                let next = self.beside(body);
                self.copy(&next, &Dest::Tuple(step.places.to_vec()));
            }
        }
    }

    /// Whether nothing in an inner loop needs the state that it starts from, by any name.
    fn continues(&self, inner: &Iteration, step: &Step) -> bool {
        let is_in = |val: &Val, place: &Dest| match place {
            Dest::Array(view) => shares(val, view.buffer),
            Dest::Scalar(Target::Local(local)) => self.depends(val, *local),
            Dest::Scalar(Target::Place(buffer, _)) => shares(val, *buffer),
            Dest::Tuple(_) => true,
        };
        let is_state = |v: &Var| self.env.get(v).is_some_and(|val| step.places.iter().any(|place| is_in(val, place)));
        let needed = |e: &Exp| e.free_vars().iter().any(is_state);
        // The bounds are evaluated before, but where they are scalars of the state they are the very locals that change.
        let trip = match &inner.trip {
            Trip::For(range) => needed(&range.lo) || needed(&range.hi),
            Trip::While(condition) => needed(condition),
        };
        let starts = matches!(&inner.init, Exp::Tuple(parts) if parts.len() == step.places.len());
        starts && inner.state.len() == step.places.len() && !trip && !needed(&inner.body)
    }

    /// Whether a value is another when a local changes: a scalar, or an array whose place or size is computed from it.
    fn depends(&self, val: &Val, local: Local) -> bool {
        match val {
            Val::Scalar(e) => e.mentions(local),
            Val::Array(view) => {
                let mut sizes = vec![];
                view.shape.iter().for_each(|size| size.variables(&mut sizes));
                view.offset.mentions(local) || sizes.iter().any(|v| self.env.get(v).is_some_and(|val| self.depends(val, local)))
            }
            Val::Tuple(parts) => parts.iter().any(|part| self.depends(part, local)),
        }
    }

    fn bind_beside(&mut self, bound: &[Var], value: &Exp, rest: &Exp, step: &Step) {
        if !step.summed.contains(&true) {
            return self.bind(bound, value, Then { body: Some(rest), dest: None });
        }
        let part = |path: &[usize]| match path {
            path if step.places.len() == 1 => step.summed[0].then(|| step.places[0].part(path)),
            [k, rest @ ..] => step.summed[*k].then(|| step.places[*k].part(rest)),
            [] => None,
        };
        self.bind_into(bound, value, rest, &part);
    }

    fn advance_parts(&mut self, parts: &[Exp], step: &Step) {
        let Step { places, summed, current } = step;
        // Terms read the state as it was, so they come first; nothing reads the sums.
        for k in (0..parts.len()).filter(|k| summed[*k]) {
            self.accumulate(&parts[k], &places[k]);
        }
        let buffer = |k: usize| match &places[k] {
            Dest::Array(view) => Some(view.buffer),
            Dest::Scalar(_) | Dest::Tuple(_) => None,
        };
        let holds = |k: usize, e: &Exp| current[k].is_some_and(|v| *e == Exp::Var(v));
        let consumes = |l: &Self, k: usize| current[k].zip(buffer(k)).is_some_and(|(v, b)| l.consumes(&parts[k], v, b));
        let changed: Vec<usize> = (0..parts.len()).filter(|k| !summed[*k] && !holds(*k, &parts[*k])).collect();
        let mut waiting: Vec<usize> = changed.iter().copied().filter(|k| consumes(self, *k)).collect();
        // An array is written when no other that changes in place needs it any more.
        let mut ordered = vec![];
        let reads = |l: &Self, j: usize, k: usize| buffer(k).is_some_and(|b| l.reads_buffer(&parts[j], b, &[]));
        while let Some(at) = waiting.iter().position(|k| !waiting.iter().any(|j| j != k && reads(self, *j, *k))) {
            ordered.push(waiting.remove(at));
        }
        // Where each needs the other, places and values are settled before anything is written.
        let (crossing, beside): (Vec<usize>, Vec<usize>) = waiting
            .into_iter()
            .partition(|k| matches!(&parts[*k], Exp::Update(array, _, value, _) if holds(*k, array) && !self.is_placed(value)));
        let mut next = vec![];
        for k in changed.iter().copied().filter(|k| beside.contains(k) || !(ordered.contains(k) || crossing.contains(k))) {
            next.push((self.beside(&parts[k]), places[k].clone()));
        }
        for k in crossing {
            let Exp::Update(_, keys, value, site) = &parts[k] else { unreachable!("one update") };
            let place = self.written_place(keys, *site, &places[k]);
            next.push((self.beside(value), place));
        }
        for k in ordered {
            self.change(&parts[k], current[k].expect("only what a place holds is consumed"), &places[k]);
        }
        for (value, place) in next {
            self.copy(&value, &place);
        }
    }

    /// The value in memory or a local of its own, apart from any state.
    pub fn beside(&mut self, e: &Exp) -> Val {
        let ty = self.type_of(e);
        if let Type::Scalar(scalar) = ty {
            let value = self.value(e);
            let local = self.kernel.fresh_local("next", scalar);
            self.emit(Stmt::Let(local, value));
            return Val::Scalar(Expr::Local(local));
        }
        let dest = self.allocate(&ty, "next");
        self.store(e, &dest);
        dest.value()
    }
}

/// Where each part of a state is.
fn places<'d>(states: &[Var], state: &'d Dest) -> &'d [Dest] {
    match states.len() {
        1 => std::slice::from_ref(state),
        _ => state.parts(),
    }
}
