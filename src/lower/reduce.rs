//! `prod max min argmax argmin any all` of scalars.
//!
//! ```text
//! r = neutral; for i { r = r (*) e }
//! best = neutral; at = lo; for i { v = e; if v beats best { best = v; at = i } }
//! ```
//! `v` beats `best` where it is strictly better, or where it is the first NaN.

use super::*;

impl Lowering<'_> {
    pub fn reduction(&mut self, kind: Reduction, range: &Range, body: &Exp, site: Site) -> Expr {
        let Type::Scalar(scalar) = self.type_of(body) else { panic!("lower: reductions are of scalars") };
        let (op, combine) = match kind {
            Reduction::Prod => (Op::Mul, Combine::Mul),
            Reduction::Max => (Op::Max, Combine::Max),
            Reduction::Min => (Op::Min, Combine::Min),
            Reduction::Any => (Op::Or, Combine::Or),
            Reduction::All => (Op::And, Combine::And),
            Reduction::ArgMax => return self.best_place(range, body, scalar, Op::Gt, kind, site),
            Reduction::ArgMin => return self.best_place(range, body, scalar, Op::Lt, kind, site),
        };
        let result = self.kernel.fresh_local(name(kind), scalar);
        self.emit(Stmt::Var(result, Expr::Lit(kind.neutral(scalar))));
        self.loop_over(range, Order::Reduction(vec![(result, combine)]), |l, _| {
            let element = l.value(body);
            l.emit(Stmt::Set(Target::Local(result), Expr::Op(op, vec![Expr::Local(result), element])));
        });
        Expr::Local(result)
    }

    fn best_place(&mut self, range: &Range, body: &Exp, scalar: Scalar, better: Op, kind: Reduction, site: Site) -> Expr {
        let lo = self.value(&range.lo);
        let lo = self.named("lo", lo);
        let hi = self.value(&range.hi);
        let hi = self.named("hi", hi);
        let nonempty = match (build::exp_size(&range.lo), build::exp_size(&range.hi)) {
            (Some(a), Some(b)) => self.facts.prove_nonneg(&b.sub(&a).sub(&Size::constant(1))),
            _ => false,
        };
        if !nonempty {
            let site = self.known_site(site);
            self.emit(Stmt::Check(Check::NotEmpty { lo: lo.clone(), hi: hi.clone(), what: kind, site }));
        }
        let best = self.kernel.fresh_local("best", scalar);
        let at = self.kernel.fresh_local("at", Scalar::I64);
        self.emit(Stmt::Var(best, Expr::Lit(kind.neutral(scalar))));
        self.emit(Stmt::Var(at, lo.clone()));
        let index = self.kernel.fresh_local(self.vars.name(range.index), Scalar::I64);
        self.env.insert(range.index, Val::Scalar(Expr::Local(index)));
        let extent = buffers::Extent::Index { lo: build::exp_size(&range.lo), hi: build::exp_size(&range.hi) };
        self.ranges.insert(range.index, extent);
        let (statements, ()) = self.nested(|l| {
            l.facts.enter_range(range);
            let element = l.value(body);
            let element = l.named("element", element);
            let beats = beats(better, &element, best, scalar);
            if scalar.is_float() {
                l.emit(Stmt::Count(Counts { calls: 1, ..Counts::default() }));
            }
            let take = vec![Stmt::Set(Target::Local(best), element), Stmt::Set(Target::Local(at), Expr::Local(index))];
            l.emit(Stmt::If(beats, take, vec![]));
        });
        self.emit(Stmt::Loop(Loop { index, lo, hi, order: Order::Sequential, schedule: Schedule::Plain, body: statements }));
        Expr::Local(at)
    }
}

/// Whether an element is to be taken instead of the best so far.
pub(super) fn beats(better: Op, element: &Expr, best: Local, scalar: Scalar) -> Expr {
    let (v, b) = (element.clone(), Expr::Local(best));
    let beats = Expr::Op(better, vec![v.clone(), b.clone()]);
    if !scalar.is_float() {
        return beats;
    }
    let nan = Expr::Op(Op::Ne, vec![v.clone(), v]);
    let number = Expr::Op(Op::Eq, vec![b.clone(), b]);
    Expr::Op(Op::Or, vec![beats, Expr::Op(Op::And, vec![nan, number])])
}

fn name(kind: Reduction) -> &'static str {
    match kind {
        Reduction::Prod => "product",
        Reduction::Max | Reduction::ArgMax => "maximum",
        Reduction::Min | Reduction::ArgMin => "minimum",
        Reduction::Any => "any",
        Reduction::All => "all",
    }
}
