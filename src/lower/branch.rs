//! `if p then a else b` and `[p] * e`: only what is chosen is evaluated.
//!
//! A choice between scalars whose branches need no statements is a select, which vectorises; otherwise each branch is
//! a block that writes the destination.

use super::*;

impl Lowering<'_> {
    /// A block in which the condition holds, or in which it does not.
    pub fn branch<R>(&mut self, p: &Exp, holds: bool, f: impl FnOnce(&mut Self) -> R) -> (Vec<Stmt>, R) {
        self.nested(|l| {
            if holds {
                l.facts.assume(p)
            } else {
                l.facts.assume_not(p)
            }
            f(l)
        })
    }

    pub fn store_if(&mut self, p: &Exp, a: &Exp, b: &Exp, dest: &Dest) {
        if let Dest::Scalar(target) = dest {
            let value = self.if_value(p, a, b);
            return self.emit(Stmt::Set(target.clone(), value));
        }
        let condition = self.value(p);
        let (yes, ()) = self.branch(p, true, |l| l.store(a, dest));
        let (no, ()) = self.branch(p, false, |l| l.store(b, dest));
        self.emit(Stmt::If(condition, yes, no));
    }
    pub fn accumulate_if(&mut self, p: &Exp, a: &Exp, b: &Exp, dest: &Dest) {
        let condition = self.value(p);
        let (yes, ()) = self.branch(p, true, |l| l.accumulate(a, dest));
        let (no, ()) = self.branch(p, false, |l| l.accumulate(b, dest));
        self.emit(Stmt::If(condition, yes, no));
    }
    pub fn if_value(&mut self, p: &Exp, a: &Exp, b: &Exp) -> Expr {
        let condition = self.value(p);
        let (yes, a) = self.branch(p, true, |l| l.value(a));
        let (no, b) = self.branch(p, false, |l| l.value(b));
        self.choose(condition, yes, a, no, b)
    }

    pub fn store_guard(&mut self, p: &Exp, e: &Exp, dest: &Dest) {
        if let Dest::Scalar(target) = dest {
            let value = self.guard_value(p, e);
            return self.emit(Stmt::Set(target.clone(), value));
        }
        let condition = self.value(p);
        let (yes, ()) = self.branch(p, true, |l| l.store(e, dest));
        let (no, ()) = self.nested(|l| l.zero(dest));
        self.emit(Stmt::If(condition, yes, no));
    }
    pub fn accumulate_guard(&mut self, p: &Exp, e: &Exp, dest: &Dest) {
        let condition = self.value(p);
        let (yes, ()) = self.branch(p, true, |l| l.accumulate(e, dest));
        self.emit(Stmt::If(condition, yes, vec![]));
    }
    pub fn guard_value(&mut self, p: &Exp, e: &Exp) -> Expr {
        let condition = self.value(p);
        let (yes, value) = self.branch(p, true, |l| l.value(e));
        let zero = Expr::Lit(Lit::zero(self.kernel.scalar_of(&value)));
        self.choose(condition, yes, value, vec![], zero)
    }

    fn choose(&mut self, condition: Expr, mut yes: Vec<Stmt>, a: Expr, mut no: Vec<Stmt>, b: Expr) -> Expr {
        // A counting build has to see which branch was taken.
        let free = |e: &Expr| !e.any(&mut |e| matches!(e, Expr::Op(..) | Expr::Partial(..)));
        let plain = yes.is_empty() && no.is_empty();
        if plain && (!self.options.count || (free(&a) && free(&b))) {
            return Expr::Select(Box::new(condition), Box::new(a), Box::new(b));
        }
        let scalar = self.kernel.scalar_of(&a);
        let chosen = self.kernel.fresh_local("chosen", scalar);
        self.emit(Stmt::Var(chosen, Expr::Lit(Lit::zero(scalar))));
        yes.push(Stmt::Set(Target::Local(chosen), a));
        no.push(Stmt::Set(Target::Local(chosen), b));
        self.emit(Stmt::If(condition, yes, no));
        Expr::Local(chosen)
    }
}
