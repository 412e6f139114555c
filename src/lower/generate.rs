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

    /// An array of which a bracket leaves one place in each row, as an identity has, is zeroed as a whole first.
    pub fn store_points(&mut self, e: &Exp, dest: &Dest) -> bool {
        let Dest::Array(view) = dest else { return false };
        // An array that changes where it is still needs what is there.
        if self.options.count || !has_points(self.vars, self.facts.clone(), e) || self.reads_buffer(e, view.buffer, &[]) {
            return false;
        }
        self.zero(dest);
        self.points(e, dest);
        true
    }

    fn points(&mut self, e: &Exp, dest: &Dest) {
        let Exp::For(index, size, body) = e else { panic!("lower: {e:?} has no points") };
        match point(self.vars, &self.facts, *index, size, body) {
            Some((at, inside)) => {
                let local = self.kernel.fresh_local(self.vars.name(*index), Scalar::I64);
                let at = self.value(&at);
                self.emit(Stmt::Let(local, at));
                self.env.insert(*index, Val::Scalar(Expr::Local(local)));
                self.ranges.insert(*index, buffers::Extent::Index { lo: Some(Size::constant(0)), hi: Some(size.clone()) });
                // What is known there is not known behind.
                let facts = self.facts.clone();
                self.facts.enter_for(*index, size);
                if let Exp::Guard(p, _) = &**body {
                    self.facts.assume(p);
                }
                let place = self.dest_at(dest, &[Expr::Local(local)]);
                self.store(&inside, &place);
                self.facts = facts;
            }
            None => self.generate(*index, size, dest, &mut |l, place| l.points(body, place)),
        }
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

/// Whether the innermost of nested `for`s is zero but for one place, and not known to be short.
fn has_points(vars: &Vars, mut facts: Facts, e: &Exp) -> bool {
    let Exp::For(index, size, body) = e else { return false };
    if point(vars, &facts, *index, size, body).is_some() {
        return size.as_constant().is_none();
    }
    facts.enter_for(*index, size);
    has_points(vars, facts, body)
}

/// The one place at which the elements of a `for` are not zero, and what is there.
fn point(vars: &Vars, facts: &Facts, index: Var, size: &Size, body: &Exp) -> Option<(Exp, Exp)> {
    let Exp::Guard(p, e) = body else { return None };
    let whole = Range { index, lo: build::i64(0), hi: build::size_exp(size) };
    let solved = solve(vars, facts, p, &whole)?;
    let (lo, hi) = (build::exp_size(&solved.range.lo)?, build::exp_size(&solved.range.hi)?);
    let at = solved.range.lo.clone();
    (hi.sub(&lo).as_constant() == Some(1)).then(|| (at, solved.under((**e).clone())))
}
