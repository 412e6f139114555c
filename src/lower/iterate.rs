//! `loop state = init for i in a..b do body` and `… while condition do body`.
//!
//! The state lives in one place: arrays in the loop's destination, scalars in locals. A step computes the next scalars,
//! then changes the arrays where they are, if it only updates places of them (`A with [k] = v`, perhaps chosen by `if`);
//! what it writes is computed before anything is written. To a state that the steps only add to (`ir/summed.rs`) they add
//! where it is. An array that a step makes anew is built beside and copied.

use super::binding::shares;
use super::*;
use crate::ir::summed::summed;

impl Lowering<'_> {
    pub fn store_iteration(&mut self, l: &Iteration, dest: &Dest) {
        let state = self.state_home(dest, &l.state);
        self.store(&l.init, &state);
        let summed = summed(self.vars, l);
        // What is added is not read.
        let sums: Vec<Var> = l.state.iter().zip(&summed).filter(|(_, sum)| **sum).map(|(v, _)| *v).collect();
        self.passed.extend(sums.iter().copied());
        match &l.trip {
            Trip::For(range) => {
                let (lo, hi) = (self.value(&range.lo), self.value(&range.hi));
                let hi = self.named("end", hi);
                let index = self.kernel.fresh_local(self.vars.name(range.index), Scalar::I64);
                self.env.insert(range.index, Val::Scalar(Expr::Local(index)));
                let bounds = buffers::Extent::Index { lo: build::exp_size(&range.lo), hi: build::exp_size(&range.hi) };
                self.ranges.insert(range.index, bounds);
                let (body, ()) = self.nested(|me| {
                    me.facts.enter_range(range);
                    me.bind_states(&l.state, &state);
                    me.advance(&l.body, &l.state, &state, &summed);
                });
                self.emit(Stmt::Loop(Loop { index, lo, hi, order: Order::Sequential, schedule: Schedule::Plain, body }));
            }
            Trip::While(condition) => {
                let (body, ()) = self.nested(|me| {
                    me.bind_states(&l.state, &state);
                    let goes_on = me.value(condition);
                    me.emit(Stmt::LeaveUnless(goes_on));
                    me.facts.assume(condition);
                    me.advance(&l.body, &l.state, &state, &summed);
                });
                self.emit(Stmt::Forever(body));
            }
        }
        sums.iter().for_each(|v| {
            self.passed.remove(v);
        });
        self.copy(&state.value(), dest);
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
    fn state_home(&mut self, dest: &Dest, names: &[Var]) -> Dest {
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
    fn advance(&mut self, body: &Exp, vars: &[Var], state: &Dest, summed: &[bool]) {
        match body {
            Exp::Let(bound, value, rest) if summed.contains(&true) => {
                let part = |path: &[usize]| match path {
                    path if vars.len() == 1 => summed[0].then(|| state.part(path)),
                    [k, _rest @ ..] => summed[*k].then(|| state.part(path)),
                    [] => None,
                };
                self.bind_into(bound, value, rest, &part);
                self.advance(rest, vars, state, summed);
            }
            Exp::Let(bound, value, rest) => {
                self.bind(bound, value, Then::default());
                self.advance(rest, vars, state, summed);
            }
            Exp::If(p, a, b) => {
                let condition = self.value(p);
                let (yes, ()) = self.branch(p, true, |l| l.advance(a, vars, state, summed));
                let (no, ()) = self.branch(p, false, |l| l.advance(b, vars, state, summed));
                self.emit(Stmt::If(condition, yes, no));
            }
            Exp::Tuple(parts) if vars.len() == parts.len() => {
                let dests: Vec<Dest> = state.parts().to_vec();
                self.advance_parts(parts, vars, &dests, summed);
            }
            body if vars.len() == 1 => self.advance_parts(std::slice::from_ref(body), vars, std::slice::from_ref(state), summed),
            body => {
                let next = self.beside(body);
                self.copy(&next, state);
            }
        }
    }

    fn advance_parts(&mut self, parts: &[Exp], vars: &[Var], state: &[Dest], summed: &[bool]) {
        // Terms read the state as it was, so they come first; nothing reads the sums.
        for k in (0..parts.len()).filter(|k| summed[*k]) {
            self.accumulate(&parts[k], &state[k]);
        }
        let same = |k: usize| summed[k] || parts[k] == Exp::Var(vars[k]);
        let changed: Vec<usize> = (0..parts.len()).filter(|k| !same(*k)).collect();
        // One array may change where it is; with several, one could read what the other has changed.
        let in_place: Vec<usize> = changed.iter().copied().filter(|k| updates(&parts[*k], vars[*k])).collect();
        let in_place = if in_place.len() == 1 { in_place.first().copied() } else { None };
        let mut next = vec![];
        for k in changed.iter().copied().filter(|k| Some(*k) != in_place) {
            next.push((k, self.beside(&parts[k])));
        }
        if let Some(k) = in_place {
            self.update_in_place(&parts[k], vars[k], &state[k]);
        }
        for (k, value) in next {
            self.copy(&value, &state[k]);
        }
    }

    /// The value in memory or a local of its own, apart from any state.
    fn beside(&mut self, e: &Exp) -> Val {
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

    fn update_in_place(&mut self, e: &Exp, var: Var, state: &Dest) {
        match e {
            Exp::Var(_) => {}
            Exp::Let(bound, value, rest) => {
                self.bind(bound, value, Then::default());
                self.update_in_place(rest, var, state);
            }
            Exp::If(p, a, b) => {
                let condition = self.value(p);
                let (yes, ()) = self.branch(p, true, |l| l.update_in_place(a, var, state));
                let (no, ()) = self.branch(p, false, |l| l.update_in_place(b, var, state));
                self.emit(Stmt::If(condition, yes, no));
            }
            Exp::Update(array, keys, value, site) => {
                let place = self.written_place(keys, *site, state);
                let Dest::Array(View { buffer, .. }) = state else { panic!("lower: an update is of an array") };
                let reads_state = value.free_vars().iter().any(|v| self.env.get(v).is_some_and(|val| shares(val, *buffer)));
                let first = matches!(**array, Exp::Var(_));
                if reads_state || !first {
                    let value = self.beside(value);
                    self.update_in_place(array, var, state);
                    self.copy(&value, &place);
                } else {
                    self.store(value, &place);
                }
            }
            _ => unreachable!("only updates change in place"),
        }
    }
}

/// Whether the expression is `var` but for places written in it.
fn updates(e: &Exp, var: Var) -> bool {
    match e {
        Exp::Var(v) => *v == var,
        Exp::Update(array, _, _, _) => updates(array, var),
        Exp::Let(_, _, body) => updates(body, var),
        Exp::If(_, a, b) => updates(a, var) && updates(b, var),
        _ => false,
    }
}
