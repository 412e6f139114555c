//! Choices that the sizes of a call make: of a Jacobian that is computed one way or the other as sizes are, code for calls of
//! known sizes has the one way alone, and nothing instead of products that the matrix kernel does. Calls that would go the other
//! way are told so (`Kernel::assumed`).

use super::*;
use crate::loops::workspace::{LEAST_PRODUCT, LEAST_SIDE};

pub(super) fn choices(kernel: &mut Kernel) {
    let entry = Entry::new(kernel, &kernel.call);
    let body = std::mem::take(&mut kernel.body);
    kernel.body = settled(body, &entry, &mut kernel.assumed);
    let mut assumed = std::mem::take(&mut kernel.assumed);
    large_products(&mut kernel.body, &entry, &mut assumed);
    kernel.assumed = assumed;
}

/// Leaves out what would be done instead of large products: `iv_is_large`.
fn large_products(block: &mut [Stmt], entry: &Entry, assumed: &mut Vec<Expr>) {
    for s in block {
        match s {
            Stmt::Gemm(g) if entry.is_large(g) => {
                g.otherwise.clear();
                let mut sides = [&g.rows, &g.columns, &g.depth].map(Expr::clone);
                // In one order, so that products of the same sides assume the same.
                sides.sort_by_cached_key(|side| format!("{side:?}"));
                let [a, b, c] = sides;
                let all = a.clone().times(b.clone()).times(c.clone());
                for (size, least) in [(a, LEAST_SIDE), (b, LEAST_SIDE), (c, LEAST_SIDE), (all, LEAST_PRODUCT)] {
                    let condition = Expr::Op(Op::Ge, vec![size.clone(), Expr::int(least)]);
                    if size.as_int().is_none() && !assumed.contains(&condition) {
                        assumed.push(condition);
                    }
                }
            }
            _ => s.blocks_mut().into_iter().for_each(|b| large_products(b, entry, assumed)),
        }
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
