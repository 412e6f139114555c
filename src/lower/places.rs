//! Where the best element of an array is first, in vectors.
//!
//! ```text
//! best = neutral; at = lo; for i { if x[i] beats best { best = x[i]; at = i } }
//! ->
//! parts = for blocks. max i in block. x[i]; block = the first whose part is best, or is NaN
//! the first `at` in block where x[at] is best, or is NaN
//! ```
//! The extrema of blocks are reductions, and finding a value needs no carried state. This reads the elements of one block
//! again, so it is done only where they are read and not computed: then they are the same bits in vectors and out of them.
//! Where sizes do not tell how many blocks there are, all is one block. Inside of loops the choice stays as it is,
//! since lanes of the outer loop can take it. It runs behind them, since blocks are no lanes.

use super::*;

/// The elements in which the place is sought at once.
const STRIDE: i64 = 512;
/// The elements of a block.
const BLOCK: i64 = 8 * STRIDE;

type Bounds = FxHashMap<Buffer, Option<Expr>>;

pub(super) fn places(kernel: &mut Kernel, bounds: &mut Bounds) {
    let body = std::mem::take(&mut kernel.body);
    kernel.body = block(kernel, bounds, body);
}

fn block(kernel: &mut Kernel, bounds: &mut Bounds, stmts: Vec<Stmt>) -> Vec<Stmt> {
    let mut out: Vec<Stmt> = vec![];
    for mut stmt in stmts {
        if let Stmt::If(_, yes, no) = &mut stmt {
            *yes = block(kernel, bounds, std::mem::take(yes));
            *no = block(kernel, bounds, std::mem::take(no));
        }
        match (out.as_slice(), &stmt) {
            ([.., Stmt::Var(best, start), Stmt::Var(at, first)], Stmt::Loop(l)) if *first == l.lo => {
                let choice = Choice::of(kernel, l, *best, *at).filter(|c| *start == Expr::Lit(c.kind.neutral(c.scalar)));
                match choice {
                    Some(choice) => {
                        out.pop();
                        choice.sought(kernel, bounds, l, &mut out);
                    }
                    None => out.push(stmt),
                }
            }
            _ => out.push(stmt),
        }
    }
    out
}

/// A loop that looks for the best element and its place.
struct Choice<'a> {
    kind: Reduction,
    scalar: Scalar,
    best: Local,
    at: Local,
    element: Local,
    /// What names the element.
    naming: Vec<&'a Stmt>,
}

impl<'a> Choice<'a> {
    fn of(kernel: &Kernel, l: &'a Loop, best: Local, at: Local) -> Option<Choice<'a>> {
        let (Order::Sequential, Some((Stmt::If(beats, yes, no), before))) = (&l.order, l.body.split_last()) else { return None };
        let [Stmt::Set(Target::Local(set), Expr::Local(element)), Stmt::Set(Target::Local(place), Expr::Local(index))] = yes.as_slice()
        else {
            return None;
        };
        if (*set, *place, *index) != (best, at, l.index) || !no.is_empty() {
            return None;
        }
        let scalar = kernel.local(best).scalar;
        let kind = [(Reduction::ArgMax, Op::Gt), (Reduction::ArgMin, Op::Lt)]
            .into_iter()
            .find(|(_, better)| *beats == reduce::beats(*better, &Expr::Local(*element), best, scalar))?
            .0;
        let naming: Vec<&Stmt> = before.iter().filter(|s| !matches!(s, Stmt::Count(_))).collect();
        let exact = naming.iter().all(|s| matches!(s, Stmt::Let(_, e) if is_exact(kernel, e)));
        let named = naming.iter().any(|s| matches!(s, Stmt::Let(name, _) if name == element));
        (exact && named).then_some(Choice { kind, scalar, best, at, element: *element, naming })
    }

    /// The best of each block and the first block that has the best of all; then the search: in strides, and in the stride that
    /// has it one by one.
    fn sought(&self, kernel: &mut Kernel, bounds: &mut Bounds, l: &Loop, out: &mut Vec<Stmt>) {
        // Not of numbers that are given: they may be far beyond the array, which is then said when it is read.
        let known = kernel.sizes.iter().copied().collect();
        let start = if l.lo.is_known(&known) && l.hi.is_known(&known) {
            self.best_block(kernel, bounds, l, out)
        } else {
            self.reduced(kernel, l, self.best, (l.lo.clone(), l.hi.clone()), out);
            l.lo.clone()
        };
        out.push(Stmt::Var(self.at, start));
        let at = Expr::Local(self.at);
        let stride_end = at.clone().plus(Expr::int(STRIDE));
        let hits = kernel.fresh_local("hits", Scalar::I64);
        let index = kernel.fresh_local(kernel.local(l.index).name.clone(), Scalar::I64);
        let (mut body, hit) = self.hit(kernel, l, index);
        body.push(Stmt::Add(Target::Local(hits), Expr::Select(Box::new(hit), Box::new(Expr::int(1)), Box::new(Expr::int(0)))));
        let order = Order::Reduction(vec![(hits, Combine::Add)]);
        out.push(Stmt::Forever(vec![
            Stmt::LeaveUnless(Expr::Op(Op::Le, vec![stride_end.clone(), l.hi.clone()])),
            Stmt::Var(hits, Expr::int(0)),
            Stmt::Loop(Loop { index, lo: at.clone(), hi: stride_end.clone(), order, schedule: Schedule::Vector, body }),
            Stmt::LeaveUnless(Expr::Op(Op::Eq, vec![Expr::Local(hits), Expr::int(0)])),
            Stmt::Set(Target::Local(self.at), stride_end),
        ]));

        let mut body = vec![Stmt::LeaveUnless(Expr::Op(Op::Lt, vec![at.clone(), l.hi.clone()]))];
        let (naming, hit) = self.hit(kernel, l, self.at);
        body.extend(naming);
        body.push(Stmt::LeaveUnless(Expr::Op(Op::Not, vec![hit])));
        body.push(Stmt::Set(Target::Local(self.at), at.plus(Expr::int(1))));
        out.push(Stmt::Forever(body));
    }

    /// Writes the best element of each block to a buffer, and chooses among them; gives where the first block that has it begins.
    fn best_block(&self, kernel: &mut Kernel, bounds: &mut Bounds, l: &Loop, out: &mut Vec<Stmt>) -> Expr {
        let count = Expr::Op(Op::IDiv, vec![l.hi.clone().minus(l.lo.clone()).plus(Expr::int(BLOCK - 1)), Expr::int(BLOCK)]);
        let count = Expr::Op(Op::Max, vec![Expr::int(0), count]);
        let parts = kernel.fresh_buffer("best_parts", self.scalar, Home::Unplanned);
        bounds.insert(parts, Some(count.clone()));
        out.push(Stmt::Allocate(parts, count.clone()));
        let each = kernel.fresh_local("block", Scalar::I64);
        let part = kernel.fresh_local("best_part", self.scalar);
        let start = |block: Local| l.lo.clone().plus(Expr::Local(block).times(Expr::int(BLOCK)));
        let end = Expr::Op(Op::Min, vec![start(each).plus(Expr::int(BLOCK)), l.hi.clone()]);
        let mut body = vec![Stmt::Var(part, Expr::Lit(self.kind.neutral(self.scalar)))];
        self.reduced(kernel, l, part, (start(each), end), &mut body);
        body.push(Stmt::Set(Target::Place(parts, Expr::Local(each)), Expr::Local(part)));
        let (lo, schedule) = (Expr::int(0), Schedule::Plain);
        out.push(Stmt::Loop(Loop { index: each, lo: lo.clone(), hi: count.clone(), order: Order::Independent, schedule, body }));

        let chosen = kernel.fresh_local("chosen_block", Scalar::I64);
        let each = kernel.fresh_local("block", Scalar::I64);
        let part = kernel.fresh_local("best_part", self.scalar);
        out.push(Stmt::Var(chosen, Expr::int(0)));
        let better = if self.kind == Reduction::ArgMax { Op::Gt } else { Op::Lt };
        let beats = reduce::beats(better, &Expr::Local(part), self.best, self.scalar);
        let take = vec![Stmt::Set(Target::Local(self.best), Expr::Local(part)), Stmt::Set(Target::Local(chosen), Expr::Local(each))];
        let body = vec![Stmt::Let(part, Expr::Load(parts, Box::new(Expr::Local(each)))), Stmt::If(beats, take, vec![])];
        out.push(Stmt::Loop(Loop { index: each, lo, hi: count, order: Order::Sequential, schedule: Schedule::Plain, body }));
        start(chosen)
    }

    /// The best of a range of elements, in a local that has the neutral element. That some are NaN is found beside it: so
    /// neither waits for the other.
    fn reduced(&self, kernel: &mut Kernel, l: &Loop, best: Local, (lo, hi): (Expr, Expr), out: &mut Vec<Stmt>) {
        let (better, combine) = match self.kind {
            Reduction::ArgMax => (Op::Gt, Combine::Max),
            _ => (Op::Lt, Combine::Min),
        };
        let index = kernel.fresh_local(kernel.local(l.index).name.clone(), Scalar::I64);
        let (mut body, element) = self.named_at(kernel, l, index);
        let beats = Expr::Op(better, vec![element.clone(), Expr::Local(best)]);
        let chosen = Expr::Select(Box::new(beats), Box::new(element.clone()), Box::new(Expr::Local(best)));
        body.push(Stmt::Set(Target::Local(best), chosen));
        let mut order = vec![(best, combine)];
        let nans = self.scalar.is_float().then(|| kernel.fresh_local("nans", Scalar::I64));
        if let Some(nans) = nans {
            let is_nan = Expr::Op(Op::Ne, vec![element.clone(), element]);
            let count = Expr::Select(Box::new(is_nan), Box::new(Expr::int(1)), Box::new(Expr::int(0)));
            body.push(Stmt::Add(Target::Local(nans), count));
            order.push((nans, Combine::Add));
            out.push(Stmt::Var(nans, Expr::int(0)));
        }
        out.push(Stmt::Loop(Loop { index, lo, hi, order: Order::Reduction(order), schedule: Schedule::Vector, body }));
        if let Some(nans) = nans {
            let some = Expr::Op(Op::Gt, vec![Expr::Local(nans), Expr::int(0)]);
            let nan = Expr::Lit(if self.scalar == Scalar::F32 { Lit::F32(f32::NAN) } else { Lit::F64(f64::NAN) });
            out.push(Stmt::If(some, vec![Stmt::Set(Target::Local(best), nan)], vec![]));
        }
    }

    /// What names the element at an index, and its name.
    fn named_at(&self, kernel: &mut Kernel, l: &Loop, index: Local) -> (Vec<Stmt>, Expr) {
        let mut names = FxHashMap::default();
        names.insert(l.index, index);
        let naming = self.naming.iter().map(|s| checks::renamed(kernel, s, &mut names)).collect();
        (naming, Expr::Local(names[&self.element]))
    }

    /// Whether the element at an index is the best. Where it is NaN, so is the best.
    fn hit(&self, kernel: &mut Kernel, l: &Loop, index: Local) -> (Vec<Stmt>, Expr) {
        let (naming, element) = self.named_at(kernel, l, index);
        let mut hit = Expr::Op(Op::Eq, vec![element.clone(), Expr::Local(self.best)]);
        if self.scalar.is_float() {
            hit = Expr::Op(Op::Or, vec![hit, Expr::Op(Op::Ne, vec![element.clone(), element])]);
        }
        (naming, hit)
    }
}

/// Whether a value is the same however it is compiled: nothing in it is rounded.
fn is_exact(kernel: &Kernel, e: &Expr) -> bool {
    let own = match e {
        Expr::Lit(_) | Expr::Local(_) | Expr::Load(..) => true,
        Expr::Op(op, _) => !kernel.scalar_of(e).is_float() || *op == Op::Neg,
        Expr::Partial(..) | Expr::Select(..) => false,
    };
    let mut all = own;
    e.for_each_child(&mut |c| all = all && is_exact(kernel, c));
    all
}
