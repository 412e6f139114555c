//! `for i in 0..n. e` and `[a, b, c]`: one place of the destination per index.

use super::*;

impl Lowering<'_> {
    /// The loop over an axis of the destination; `f` writes or adds to one place.
    pub fn generate(&mut self, index: Var, size: &Size, dest: &Dest, f: &mut dyn FnMut(&mut Self, &Dest)) {
        let hi = self.size(size);
        let local = self.kernel.fresh_local(self.vars.name(index), Scalar::I64);
        self.env.insert(index, Val::Scalar(Expr::Local(local)));
        self.ranges.insert(index, buffers::Extent::Index { lo: Some(Size::constant(0)), hi: Some(size.clone()) });
        let (body, ()) = self.nested(|l| {
            l.facts.enter_for(index, size);
            let place = l.dest_at(dest, &[Expr::Local(local)]);
            f(l, &place);
        });
        self.emit(Stmt::Loop(Loop { index: local, lo: Expr::int(0), hi, order: Order::Independent, schedule: Schedule::Plain, body }));
    }

    pub fn each_item(&mut self, items: &[Exp], dest: &Dest, f: &mut dyn FnMut(&mut Self, &Exp, &Dest)) {
        for (k, item) in items.iter().enumerate() {
            let place = self.dest_at(dest, &[Expr::int(k as i64)]);
            f(self, item, &place);
        }
    }
}
