//! Counting builds: in front of each statement, what it executes by the cost model.
//!
//! An operation counts as its row says, a partial derivative is one call with the product that applies it, and a float added into a place or local is one
//! addition. Selects hide no operations in counting builds (`branch.rs`), so an expression's count is its operations'.

use super::*;
use crate::scalar::CostClass;

pub(super) fn count(kernel: &mut Kernel) {
    let mut body = std::mem::take(&mut kernel.body);
    block(kernel, &mut body);
    kernel.body = body;
}

fn block(kernel: &Kernel, stmts: &mut Vec<Stmt>) {
    for mut stmt in std::mem::take(stmts) {
        stmt.blocks_mut().into_iter().for_each(|b| block(kernel, b));
        let mut counts = Counts::default();
        stmt.for_each_expr(&mut |e| expr(kernel, e, &mut counts));
        if let Stmt::Add(_, e) = &stmt {
            counts.additions += kernel.scalar_of(e).is_float() as i64;
        }
        // What a check looks at is named before it and counted there.
        if counts != Counts::default() && !matches!(stmt, Stmt::Check(_)) {
            stmts.push(Stmt::Count(counts));
        }
        stmts.push(stmt);
    }
}

fn expr(kernel: &Kernel, e: &Expr, counts: &mut Counts) {
    match e {
        Expr::Op(op, args) => {
            let kinds: Vec<Scalar> = args.iter().map(|a| kernel.scalar_of(a)).collect();
            let applies_partial = *op == Op::Mul && args.iter().any(|a| matches!(a, Expr::Partial(..)));
            match op.cost(&kinds) {
                _ if applies_partial => {}
                CostClass::Free => {}
                CostClass::Addition => counts.additions += 1,
                CostClass::Multiplication => counts.multiplications += 1,
                CostClass::Call => counts.calls += 1,
            }
        }
        Expr::Partial(..) => counts.calls += 1,
        Expr::Lit(_) | Expr::Local(_) | Expr::Load(..) | Expr::Select(..) => {}
    }
    e.for_each_child(&mut |c| expr(kernel, c, counts));
}
