//! Choices that the sizes of a call make: of a Jacobian that is computed one way or the other as sizes are, code for calls of
//! known sizes has the one way alone. What stands for a product that the matrix kernel does is there, but not made fast
//! (`work.rs`). Calls that would go the other way are told so (`Kernel::assumed`).

use super::*;
use crate::loops::workspace::LEAST_SIDE;

pub(super) fn choices(kernel: &mut Kernel) {
    let entry = Entry::new(kernel, &kernel.call);
    let body = std::mem::take(&mut kernel.body);
    kernel.body = settled(body, &entry, &mut kernel.assumed);
    let mut sides = vec![];
    large_products(&kernel.body, &entry, &mut sides);
    kernel.assumed.extend(sides);
}

/// That products which are large have no short sides: these may be long in the others.
fn large_products(block: &[Stmt], entry: &Entry, assumed: &mut Vec<Expr>) {
    for s in block {
        if let Stmt::Gemm(g) = s {
            let sides = [&g.rows, &g.columns, &g.depth].into_iter().filter(|side| side.as_int().is_none());
            let conditions = sides.map(|side| Expr::Op(Op::Ge, vec![side.clone(), Expr::int(LEAST_SIDE)]));
            for condition in conditions.filter(|_| entry.is_large(g)) {
                if !assumed.contains(&condition) {
                    assumed.push(condition);
                }
            }
        }
        s.blocks().into_iter().for_each(|b| large_products(b, entry, assumed));
    }
}

/// Only what is sure to be executed is looked at, and only where much is left out.
fn settled(block: Vec<Stmt>, entry: &Entry, assumed: &mut Vec<Expr>) -> Vec<Stmt> {
    let mut out = vec![];
    for s in block {
        let Stmt::If(condition, yes, no) = s else {
            out.push(s);
            continue;
        };
        match entry.holds(&condition) {
            Some(true) if no.iter().any(has_loop) => {
                assumed.push(condition);
                out.extend(settled(yes, entry, assumed));
            }
            Some(false) if yes.iter().any(has_loop) => {
                assumed.push(Expr::Op(Op::Not, vec![condition]));
                out.extend(settled(no, entry, assumed));
            }
            _ => out.push(Stmt::If(condition, yes, no)),
        }
    }
    out
}

fn has_loop(s: &Stmt) -> bool {
    matches!(s, Stmt::Loop(_) | Stmt::Forever(_) | Stmt::Gemm(_)) || s.blocks().iter().any(|b| b.iter().any(has_loop))
}
