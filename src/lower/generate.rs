//! `for i in 0..n. e` and `[a, b, c]`: one place of the destination per index.

use super::*;
use crate::optimize::solve_predicates::solve;

impl Lowering<'_> {
    /// The loop over an axis of the destination; `f` writes or adds to one place.
    pub fn generate(&mut self, index: Var, size: &Size, dest: &Dest, f: &mut dyn FnMut(&mut Self, &Dest)) {
        let whole = Range { index, lo: build::i64(0), hi: build::size_exp(size) };
        let hi = self.size(size);
        self.places(&whole, (Expr::int(0), hi), dest, f);
    }

    /// Adding to the places of an array touches only those that a bracket on the index leaves: a narrow band added row by
    /// row takes as long as the band is wide.
    pub fn accumulate_generated(&mut self, index: Var, size: &Size, body: &Exp, dest: &Dest) {
        let whole = Range { index, lo: build::i64(0), hi: build::size_exp(size) };
        if let Exp::Guard(p, e) = body {
            if let Some(solved) = solve(self.vars, &self.facts, p, &whole) {
                let range = solved.range.clone();
                let body = solved.under((**e).clone());
                let ends = (self.value(&range.lo), self.value(&range.hi));
                return self.places(&range, ends, dest, &mut |l, place| {
                    l.facts.enter_for(index, size);
                    l.facts.assume(p);
                    l.accumulate(&body, place)
                });
            }
        }
        self.generate(index, size, dest, &mut |l, place| l.accumulate(body, place));
    }

    /// The loop over a range of places.
    pub fn places(&mut self, range: &Range, (lo, hi): (Expr, Expr), dest: &Dest, f: &mut dyn FnMut(&mut Self, &Dest)) {
        let index = range.index;
        let local = self.kernel.fresh_local(self.vars.name(index), Scalar::I64);
        self.env.insert(index, Val::Scalar(Expr::Local(local)));
        self.ranges.insert(index, buffers::Extent::Index { lo: build::exp_size(&range.lo), hi: build::exp_size(&range.hi) });
        let (body, ()) = self.nested(|l| {
            l.facts.enter_range(range);
            let place = l.dest_at(dest, &[Expr::Local(local)]);
            f(l, &place);
        });
        self.emit(Stmt::Loop(Loop { index: local, lo, hi, order: Order::Independent, schedule: Schedule::Plain, body }));
    }

    pub fn each_item(&mut self, items: &[Exp], dest: &Dest, f: &mut dyn FnMut(&mut Self, &Exp, &Dest)) {
        for (k, item) in items.iter().enumerate() {
            let place = self.dest_at(dest, &[Expr::int(k as i64)]);
            f(self, item, &place);
        }
    }
}
