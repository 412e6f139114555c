//! `sum i in lo..hi. e`: the loop that adds `e` into the destination.
//!
//! Scalar destinations are locals while the loop runs, added to what is there after it.

use super::*;

impl Lowering<'_> {
    pub fn sum_value(&mut self, range: &Range, body: &Exp) -> Expr {
        let Type::Scalar(scalar) = self.type_of(body) else { panic!("lower: a scalar sum was expected") };
        let total = self.kernel.fresh_local("total", scalar);
        self.emit(Stmt::Var(total, Expr::Lit(Lit::zero(scalar))));
        self.accumulate_sum(range, body, &Dest::Scalar(Target::Local(total)));
        Expr::Local(total)
    }

    pub fn accumulate_sum(&mut self, range: &Range, body: &Exp, dest: &Dest) {
        let mut inside = dest.clone();
        let mut totals = vec![];
        let mut write_back = vec![];
        inside.for_each_scalar(&mut |target| {
            let local = match target {
                Target::Local(l) => *l,
                Target::Place(b, offset) => {
                    let scalar = self.kernel.buffer(*b).scalar;
                    let total = self.kernel.fresh_local("total", scalar);
                    // In order, the first term is added to what is there. Else iterations of a loop around may run side by
                    // side, and have the same place.
                    if self.options.strict || self.options.count {
                        self.block.push(Stmt::Var(total, Expr::Load(*b, Box::new(offset.clone()))));
                        write_back.push(Stmt::Set(target.clone(), Expr::Local(total)));
                    } else {
                        self.block.push(Stmt::Var(total, Expr::Lit(Lit::zero(scalar))));
                        write_back.push(Stmt::Add(target.clone(), Expr::Local(total)));
                    }
                    total
                }
            };
            *target = Target::Local(local);
            totals.push((local, Combine::Add));
        });
        let mark = self.touched.len();
        let mut views = vec![];
        inside.for_each_view(&mut |v| views.push(v.clone()));
        self.loop_over(range, Order::Reduction(totals.clone()), |l, _| l.accumulate(body, &inside));
        if !views.is_empty() {
            let places = views.iter().map(|v| self.accumulated(v, mark)).collect();
            if let Some(Stmt::Loop(l)) = self.block.last_mut() {
                l.order = Order::Accumulation(totals, places);
            }
        }
        self.block.extend(write_back);
    }

    /// What the loop that was just emitted did to a view, by what was noted from `mark` on.
    fn accumulated(&mut self, view: &View, mark: usize) -> Accumulated {
        let index = match self.block.last() {
            Some(Stmt::Loop(l)) => l.index,
            _ => panic!("lower: a loop was emitted"),
        };
        let own_row = self.touched[mark..].iter().filter(|(v, _)| v == view).all(|(_, key)| *key == Some(Expr::Local(index)));
        let count = self.element_count(&view.shape);
        Accumulated { buffer: view.buffer, offset: view.offset.clone(), count, own_row }
    }

    /// The loop over a range.
    pub fn loop_over(&mut self, range: &Range, order: Order, f: impl FnOnce(&mut Self, Local)) {
        let lo = self.value(&range.lo);
        let hi = self.value(&range.hi);
        let index = self.kernel.fresh_local(self.vars.name(range.index), Scalar::I64);
        self.env.insert(range.index, Val::Scalar(Expr::Local(index)));
        let extent = buffers::Extent::Index { lo: build::exp_size(&range.lo), hi: build::exp_size(&range.hi) };
        self.ranges.insert(range.index, extent);
        let (body, ()) = self.nested(|l| {
            l.facts.enter_range(range);
            f(l, index);
        });
        self.emit(Stmt::Loop(Loop { index, lo, hi, order, schedule: Schedule::Plain, body }));
    }
}
