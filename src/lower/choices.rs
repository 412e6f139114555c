//! Choices that the sizes of a call make: of a Jacobian that is computed one way or the other as sizes are, code for calls of
//! known sizes has the one way alone. Calls that would go the other way are told so (`Kernel::assumed`).

use super::*;

pub(super) fn choices(kernel: &mut Kernel) {
    let entry = Entry::new(kernel, &kernel.call);
    let body = std::mem::take(&mut kernel.body);
    kernel.body = settled(body, &entry, &mut kernel.assumed);
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
