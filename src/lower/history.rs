//! `history state = init for i in 0..n do body`: state `k + 1` is written directly behind state `k`.

use super::*;

impl Lowering<'_> {
    pub fn store_history(&mut self, h: &History, dest: &Dest) {
        let places = h.size.add(&Size::constant(1));
        if self.facts.prove_nonneg(&h.size) {
            return self.states(h, dest);
        }
        // There is no place for the first state where the size is negative.
        let count = self.size(&places);
        let (body, ()) = self.nested(|l| l.states(h, dest));
        self.emit(Stmt::If(Expr::Op(Op::Gt, vec![count, Expr::int(0)]), body, vec![]));
    }

    fn states(&mut self, h: &History, dest: &Dest) {
        let first = self.dest_at(dest, &[Expr::int(0)]);
        // Numbers go from step to step in locals: what was written is not read again.
        let running = is_numbers(&first).then(|| self.state_home(&first, &h.state));
        match &running {
            Some(state) => {
                self.store(&h.init, state);
                self.copy(&state.value(), &first);
            }
            None => self.store(&h.init, &first),
        }
        let hi = self.size(&h.size);
        let index = self.kernel.fresh_local(self.vars.name(h.index), Scalar::I64);
        self.env.insert(h.index, Val::Scalar(Expr::Local(index)));
        self.ranges.insert(h.index, buffers::Extent::Index { lo: Some(Size::constant(0)), hi: Some(h.size.clone()) });
        let (body, ()) = self.nested(|l| {
            l.facts.enter_for(h.index, &h.size);
            let next = l.dest_at(dest, &[Expr::Local(index).plus(Expr::int(1))]);
            match &running {
                Some(state) => {
                    l.step(&h.state, &h.body, state);
                    l.copy(&state.value(), &next);
                }
                None => {
                    let current = l.dest_at(dest, &[Expr::Local(index)]).value();
                    match (h.state.as_slice(), current) {
                        ([state], current) => l.bind_state(*state, current),
                        (states, Val::Tuple(parts)) => states.iter().zip(parts).for_each(|(v, part)| l.bind_state(*v, part)),
                        _ => panic!("lower: several states are a tuple"),
                    }
                    l.store(&h.body, &next);
                }
            }
        });
        self.emit(Stmt::Loop(Loop { index, lo: Expr::int(0), hi, order: Order::Sequential, schedule: Schedule::Plain, body }));
    }

    fn bind_state(&mut self, state: Var, value: Val) {
        let name = self.vars.name(state).to_string();
        let value = self.named_val(&name, value);
        self.env.insert(state, value);
    }
}

fn is_numbers(dest: &Dest) -> bool {
    match dest {
        Dest::Scalar(_) => true,
        Dest::Array(_) => false,
        Dest::Tuple(parts) => parts.iter().all(is_numbers),
    }
}
