//! Checks of what is known by then: that were made before, or that conditions around them say.
//!
//! ```text
//! check k < n; s; check k < n; t              =  check k < n; s; t
//! if 0 <= k { if k < n { check k < n; s } }   =  if 0 <= k { if k < n { s } }
//! ```

use super::checks::is_short;
use super::outward::{changes, defined};
use super::*;

/// More is not remembered.
const MOST_KNOWN: usize = 64;

pub(super) fn repeated(kernel: &mut Kernel) {
    let body = std::mem::take(&mut kernel.body);
    kernel.body = Known::default().block(body);
}

#[derive(Clone, Default)]
struct Known {
    /// What locals stand for.
    definitions: FxHashMap<Local, Expr>,
    /// Integers that are not negative.
    natural: Vec<Expr>,
    /// Integers that are less than others.
    less: Vec<(Expr, Expr)>,
}

impl Known {
    fn block(&mut self, stmts: Vec<Stmt>) -> Vec<Stmt> {
        let mut out = vec![];
        for mut s in stmts {
            match &mut s {
                Stmt::Check(Check::Read { index, size, .. } | Check::Key { index, size, .. }) => {
                    let (index, size) = (self.meaning(index), self.meaning(size));
                    let less = (index.clone(), size);
                    if self.natural.contains(&index) && self.less.contains(&less) {
                        continue;
                    }
                    self.natural.push(index);
                    self.less.push(less);
                }
                Stmt::Let(local, e) => {
                    let e = self.meaning(e);
                    if is_short(&e) {
                        self.definitions.insert(*local, e);
                    }
                }
                Stmt::If(condition, yes, no) => {
                    let mut then = self.clone();
                    then.assume(&self.meaning(condition), true);
                    *yes = then.block(std::mem::take(yes));
                    let mut otherwise = self.clone();
                    otherwise.assume(&self.meaning(condition), false);
                    *no = otherwise.block(std::mem::take(no));
                }
                Stmt::Loop(l) => {
                    let inside = defined(l);
                    let mut known = self.clone();
                    known.forget(|e| is_changed(e, &|local| inside.contains(&local), &l.body));
                    l.body = known.block(std::mem::take(&mut l.body));
                }
                Stmt::Forever(body) => *body = Known::default().block(std::mem::take(body)),
                Stmt::Gemm(g) => g.otherwise = self.clone().block(std::mem::take(&mut g.otherwise)),
                _ => {}
            }
            let statement = std::slice::from_ref(&s);
            self.forget(|e| is_changed(e, &|local| sets(&s, local), statement));
            out.push(s);
        }
        out
    }

    fn meaning(&self, e: &Expr) -> Expr {
        e.substitute(&mut |local| self.definitions.get(&local).cloned())
    }

    fn assume(&mut self, condition: &Expr, holds: bool) {
        let (op, args) = match condition {
            Expr::Op(op, args) => (op, args),
            // Of a conjunction or disjunction the second part is looked at where it decides.
            Expr::Select(p, a, b) => {
                let (decided, other) = if holds { (b, a) } else { (a, b) };
                if **decided == Expr::Lit(Lit::Bool(!holds)) {
                    self.assume(p, holds);
                    self.assume(other, holds);
                }
                return;
            }
            Expr::Lit(_) | Expr::Local(_) | Expr::Load(..) | Expr::Partial(..) => return,
        };
        match (op, args.as_slice(), holds) {
            (Op::Not, [p], _) => self.assume(p, !holds),
            (Op::And, [p, q], true) | (Op::Or, [p, q], false) => {
                self.assume(p, holds);
                self.assume(q, holds);
            }
            (Op::Le, [zero, e], true) | (Op::Ge, [e, zero], true) | (Op::Lt, [e, zero], false) | (Op::Gt, [zero, e], false)
                if zero.as_int() == Some(0) =>
            {
                self.natural.push(e.clone())
            }
            (Op::Lt, [a, b], true) | (Op::Gt, [b, a], true) | (Op::Ge, [a, b], false) | (Op::Le, [b, a], false) => {
                self.less.push((a.clone(), b.clone()))
            }
            _ => {}
        }
    }

    fn forget(&mut self, is_changed: impl Fn(&Expr) -> bool) {
        self.definitions.retain(|_, e| !is_changed(e));
        self.natural.retain(|e| !is_changed(e));
        self.less.retain(|(a, b)| !is_changed(a) && !is_changed(b));
        let too_many = |n: usize| n.saturating_sub(MOST_KNOWN);
        self.natural.drain(..too_many(self.natural.len()));
        self.less.drain(..too_many(self.less.len()));
    }
}

/// Whether an expression may be something else after statements that set locals.
fn is_changed(e: &Expr, sets: &dyn Fn(Local) -> bool, stmts: &[Stmt]) -> bool {
    e.any(&mut |e| match e {
        Expr::Local(local) => sets(*local),
        Expr::Load(b, _) => stmts.iter().any(|s| changes(s, *b)),
        Expr::Lit(_) | Expr::Op(..) | Expr::Partial(..) | Expr::Select(..) => false,
    })
}

/// Whether a statement gives a variable a value.
pub(super) fn sets(s: &Stmt, local: Local) -> bool {
    let own = matches!(s, Stmt::Var(l, _) | Stmt::Set(Target::Local(l), _) | Stmt::Add(Target::Local(l), _) if *l == local);
    own || s.blocks().into_iter().any(|b| b.iter().any(|s| sets(s, local)))
}
