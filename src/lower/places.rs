//! Where the best element of an array is first, in vectors.
//!
//! ```text
//! best = neutral; at = lo; for i { if x[i] beats best { best = x[i]; at = i } }
//! ->
//! best = max i. x[i]; the first `at` where x[at] is best, or is NaN
//! ```
//! The extremum is a reduction like any other, and finding a value needs no carried state. This reads elements again, so it
//! is done only where they are read and not computed: then they are the same bits in vectors and out of them. Inside of
//! loops the choice stays as it is, since lanes of the outer loop can take it.

use super::*;

/// The elements in which the place is sought at once.
const BLOCK: i64 = 512;

pub(super) fn places(kernel: &mut Kernel) {
    let body = std::mem::take(&mut kernel.body);
    kernel.body = block(kernel, body);
}

fn block(kernel: &mut Kernel, stmts: Vec<Stmt>) -> Vec<Stmt> {
    let mut out: Vec<Stmt> = vec![];
    for mut stmt in stmts {
        if let Stmt::If(_, yes, no) = &mut stmt {
            *yes = block(kernel, std::mem::take(yes));
            *no = block(kernel, std::mem::take(no));
        }
        match (out.as_slice(), &stmt) {
            ([.., Stmt::Var(best, start), Stmt::Var(at, first)], Stmt::Loop(l)) if *first == l.lo => {
                let choice = Choice::of(kernel, l, *best, *at).filter(|c| *start == Expr::Lit(c.kind.neutral(c.scalar)));
                match choice {
                    Some(choice) => {
                        out.pop();
                        choice.sought(kernel, l, &mut out);
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

    /// The reduction, then the search: in blocks, and in the block that has it one by one.
    fn sought(&self, kernel: &mut Kernel, l: &Loop, out: &mut Vec<Stmt>) {
        let (op, combine) = match self.kind {
            Reduction::ArgMax => (Op::Max, Combine::Max),
            _ => (Op::Min, Combine::Min),
        };
        let mut body: Vec<Stmt> = self.naming.iter().map(|s| (*s).clone()).collect();
        let better = Expr::Op(op, vec![Expr::Local(self.best), Expr::Local(self.element)]);
        body.push(Stmt::Set(Target::Local(self.best), better));
        out.push(Stmt::Loop(Loop { order: Order::Reduction(vec![(self.best, combine)]), body, ..l.clone() }));

        let at = Expr::Local(self.at);
        out.push(Stmt::Var(self.at, l.lo.clone()));
        let block_end = at.clone().plus(Expr::int(BLOCK));
        let hits = kernel.fresh_local("hits", Scalar::I64);
        let index = kernel.fresh_local(kernel.local(l.index).name.clone(), Scalar::I64);
        let (mut body, hit) = self.hit(kernel, l, index);
        body.push(Stmt::Add(Target::Local(hits), Expr::Select(Box::new(hit), Box::new(Expr::int(1)), Box::new(Expr::int(0)))));
        let order = Order::Reduction(vec![(hits, Combine::Add)]);
        out.push(Stmt::Forever(vec![
            Stmt::LeaveUnless(Expr::Op(Op::Le, vec![block_end.clone(), l.hi.clone()])),
            Stmt::Var(hits, Expr::int(0)),
            Stmt::Loop(Loop { index, lo: at.clone(), hi: block_end.clone(), order, schedule: Schedule::Plain, body }),
            Stmt::LeaveUnless(Expr::Op(Op::Eq, vec![Expr::Local(hits), Expr::int(0)])),
            Stmt::Set(Target::Local(self.at), block_end),
        ]));

        let mut body = vec![Stmt::LeaveUnless(Expr::Op(Op::Lt, vec![at.clone(), l.hi.clone()]))];
        let (naming, hit) = self.hit(kernel, l, self.at);
        body.extend(naming);
        body.push(Stmt::LeaveUnless(Expr::Op(Op::Not, vec![hit])));
        body.push(Stmt::Set(Target::Local(self.at), at.plus(Expr::int(1))));
        out.push(Stmt::Forever(body));
    }

    /// Whether the element at an index is the best. Where it is NaN, so is the best.
    fn hit(&self, kernel: &mut Kernel, l: &Loop, index: Local) -> (Vec<Stmt>, Expr) {
        let mut names = FxHashMap::default();
        names.insert(l.index, index);
        let naming = self.naming.iter().map(|s| checks::renamed(kernel, s, &mut names)).collect();
        let element = Expr::Local(names[&self.element]);
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
