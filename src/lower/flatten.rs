//! Two loops that go through memory as one would are one.
//!
//! ```text
//! for i in 0..n { for j in 0..m { y[i * m + j] = f(x[i * m + j]) } }  =  for k in 0..n * m { y[k] = f(x[k]) }
//! ```
//! One long loop leaves less over where it runs in vectors, and is less to compile.

use super::*;

pub(super) fn flatten(kernel: &mut Kernel, options: Options) {
    let body = std::mem::take(&mut kernel.body);
    kernel.body = block(kernel, body, options);
}

fn block(kernel: &mut Kernel, stmts: Vec<Stmt>, options: Options) -> Vec<Stmt> {
    let mut out = vec![];
    for mut s in stmts {
        for inner in s.blocks_mut() {
            *inner = block(kernel, std::mem::take(inner), options);
        }
        out.extend(marks::pair(s, &mut |outer, inner| flat(kernel, outer, inner, options)));
    }
    out
}

fn flat(kernel: &mut Kernel, outer: &Loop, inner: &Loop, options: Options) -> Option<Loop> {
    let is_same = match (&outer.order, &inner.order) {
        (Order::Independent, Order::Independent) => true,
        // Sums come together in another order.
        (Order::Reduction(a), Order::Reduction(b)) => a == b && !options.strict,
        _ => false,
    };
    let from_zero = outer.lo.as_int() == Some(0) && inner.lo.as_int() == Some(0);
    // A range that ends below zero is empty; two such would make a long one.
    if !is_same || !from_zero || !is_length(kernel, &inner.hi) {
        return None;
    }
    let index = kernel.fresh_local(kernel.local(inner.index).name.clone(), Scalar::I64);
    let nest = Nest { outer: outer.index, inner: inner.index, length: &inner.hi, index };
    let body: Option<Vec<Stmt>> = inner.body.iter().map(|s| nest.stmt(s)).collect();
    Some(Loop { index, hi: outer.hi.clone().times(inner.hi.clone()), body: body?, ..outer.clone() })
}

/// Whether a number is not negative: sizes of arrays, and what is made of them.
fn is_length(kernel: &Kernel, e: &Expr) -> bool {
    match e {
        Expr::Lit(Lit::I64(n)) => *n >= 0,
        Expr::Local(l) => kernel.sizes.contains(l),
        Expr::Op(Op::Add | Op::Mul, args) => args.iter().all(|a| is_length(kernel, a)),
        Expr::Op(Op::Max, args) => {
            args.iter().any(|a| is_length(kernel, a)) && !args.iter().any(|a| a.any(&mut |e| matches!(e, Expr::Load(..))))
        }
        _ => false,
    }
}

struct Nest<'a> {
    outer: Local,
    inner: Local,
    length: &'a Expr,
    /// Counts the steps of both.
    index: Local,
}

impl Nest<'_> {
    fn stmt(&self, s: &Stmt) -> Option<Stmt> {
        match s {
            Stmt::Let(local, e) => Some(Stmt::Let(*local, self.value(e)?)),
            Stmt::Set(target, e) => Some(Stmt::Set(self.target(target)?, self.value(e)?)),
            Stmt::Add(target, e) => Some(Stmt::Add(self.target(target)?, self.value(e)?)),
            _ => None,
        }
    }

    fn target(&self, target: &Target) -> Option<Target> {
        match target {
            Target::Local(_) => Some(target.clone()),
            Target::Place(b, offset) => Some(Target::Place(*b, self.place(offset)?)),
        }
    }

    /// An expression that knows the steps only by places.
    fn value(&self, e: &Expr) -> Option<Expr> {
        let all = |args: &[Expr]| args.iter().map(|a| self.value(a)).collect::<Option<Vec<Expr>>>();
        match e {
            Expr::Local(l) if *l == self.outer || *l == self.inner => None,
            Expr::Lit(_) | Expr::Local(_) => Some(e.clone()),
            Expr::Load(b, offset) if self.is_steady(offset) => Some(Expr::Load(*b, offset.clone())),
            Expr::Load(b, offset) => Some(Expr::Load(*b, Box::new(self.place(offset)?))),
            Expr::Op(op, args) => Some(Expr::Op(*op, all(args)?)),
            Expr::Partial(op, k, args) => Some(Expr::Partial(*op, *k, all(args)?)),
            Expr::Select(p, a, b) => {
                let [p, a, b] = [p, a, b].map(|e| self.value(e).map(Box::new));
                Some(Expr::Select(p?, a?, b?))
            }
        }
    }

    fn is_steady(&self, e: &Expr) -> bool {
        !e.mentions(self.outer) && !e.mentions(self.inner)
    }

    /// A place that lies side by side with those of the steps before and after.
    fn place(&self, offset: &Expr) -> Option<Expr> {
        let follows = offset.slope(self.inner)?.as_int() == Some(1) && offset.slope(self.outer)? == *self.length;
        let first = offset.substitute(&mut |l| (l == self.outer || l == self.inner).then(|| Expr::int(0)));
        follows.then(|| first.plus(Expr::Local(self.index)))
    }
}
