//! Arrays that end as a copy are built where the copy would be.
//!
//! ```text
//! allocate a; s(a); copy b from a  =  s(b)        where `s` does not know `b`, and nothing behind knows `a`
//! ```
//! States of loops and branches come together in one place; where the place was free all along, nothing need be moved there.

use super::buffers::mentions;
use super::*;

pub(super) fn coalesce(kernel: &mut Kernel) {
    block(&mut kernel.body);
}

fn block(stmts: &mut Vec<Stmt>) {
    for s in &mut *stmts {
        s.blocks_mut().into_iter().for_each(block);
    }
    let mut k = 0;
    while k < stmts.len() {
        match origin(stmts, k) {
            Some((start, from, to)) => {
                stmts[start + 1..k].iter_mut().for_each(|s| rename(s, from, to));
                stmts.remove(k);
                stmts.remove(start);
                k -= 1;
            }
            None => k += 1,
        }
    }
}

/// Where the array begins that the statement at `k` makes a copy of, the array, and where it could have been built.
fn origin(stmts: &[Stmt], k: usize) -> Option<(usize, Buffer, Buffer)> {
    let Stmt::Copy(to, to_offset, from, from_offset, count) = &stmts[k] else { return None };
    let start = stmts[..k].iter().position(|s| matches!(s, Stmt::Allocate(b, all) if b == from && all == count))?;
    let is_there = !stmts[start..k].iter().any(|s| matches!(s, Stmt::Allocate(b, _) if b == to));
    let is_whole = to_offset.as_int() == Some(0) && from_offset.as_int() == Some(0);
    // Left in between, the copy would not be made.
    let is_free = !stmts[start..k].iter().any(|s| mentions(s, *to) || matches!(s, Stmt::LeaveUnless(_)));
    let is_last = !stmts[k + 1..].iter().any(|s| mentions(s, *from));
    (is_there && is_whole && is_free && is_last).then_some((start, *from, *to))
}

fn rename(s: &mut Stmt, from: Buffer, to: Buffer) {
    let change = |b: &mut Buffer| {
        if *b == from {
            *b = to;
        }
    };
    match s {
        Stmt::Set(Target::Place(b, _), _) | Stmt::Add(Target::Place(b, _), _) | Stmt::Zero(b, _, _) => change(b),
        Stmt::Copy(a, _, b, _, _) => [a, b].into_iter().for_each(change),
        Stmt::Gemm(g) => [&mut g.dest, &mut g.left, &mut g.right].into_iter().for_each(|m| change(&mut m.buffer)),
        Stmt::Loop(l) => {
            if let Order::Accumulation(_, places) = &mut l.order {
                for place in places {
                    change(&mut place.buffer);
                    place.offset = renamed(std::mem::replace(&mut place.offset, Expr::int(0)), from, to);
                    place.count = renamed(std::mem::replace(&mut place.count, Expr::int(0)), from, to);
                }
            }
        }
        _ => {}
    }
    s.map_exprs(&mut |e| renamed(e, from, to));
    s.blocks_mut().into_iter().for_each(|b| b.iter_mut().for_each(|s| rename(s, from, to)));
}

fn renamed(e: Expr, from: Buffer, to: Buffer) -> Expr {
    e.map_loads(&mut |b, at| Expr::Load(if b == from { to } else { b }, Box::new(at)))
}
