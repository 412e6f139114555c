//! What a vector loop reads at the same place in every iteration, read once before it.
//!
//! ```text
//! for i { t[i] += w[k] * x[i] }   =   element = w[k]; for i { t[i] += element * x[i] }
//! ```
//! A compiler of C cannot know that `t` and `w` are apart: it would read `w[k]` again after each write, and not one vector be
//! made. Short loops of known length around pass it on.

use super::outward::{changes, defined, replace};
use super::*;

pub(super) fn invariant(kernel: &mut Kernel) {
    let body = std::mem::take(&mut kernel.body);
    kernel.body = visit(kernel, body);
}

fn visit(kernel: &mut Kernel, block: Vec<Stmt>) -> Vec<Stmt> {
    let mut out = vec![];
    for mut s in block {
        // What runs in lanes has its own rules (`outward.rs`).
        if matches!(&s, Stmt::Loop(l) if matches!(l.schedule, Schedule::Lanes(_))) {
            out.push(s);
            continue;
        }
        for inner in s.blocks_mut() {
            *inner = visit(kernel, std::mem::take(inner));
        }
        if let Stmt::Loop(l) = &mut s {
            let surely_runs = matches!((l.lo.as_int(), l.hi.as_int()), (Some(lo), Some(hi)) if lo < hi);
            match l.schedule {
                Schedule::Vector => take_reads(kernel, l, surely_runs, &mut out),
                Schedule::Plain if surely_runs => take_values(l, &mut out),
                _ => {}
            }
        }
        out.push(s);
    }
    out
}

/// Reads that are made in every iteration, whatever its conditions are.
fn take_reads(kernel: &mut Kernel, l: &mut Loop, surely_runs: bool, out: &mut Vec<Stmt>) {
    // Of a loop that writes nothing, a compiler knows all this.
    if !l.body.iter().any(|s| matches!(s, Stmt::Set(Target::Place(..), _) | Stmt::Add(Target::Place(..), _))) {
        return;
    }
    let inside = defined(l);
    let mut found: Vec<Expr> = vec![];
    for s in l.body.iter().take_while(|s| s.blocks().is_empty()) {
        s.for_each_expr(&mut |e| sure_reads(l, &inside, e, &mut found));
    }
    let runs = Expr::Op(Op::Lt, vec![l.lo.clone(), l.hi.clone()]);
    let (mut loaded, mut read): (Vec<(Expr, Local)>, _) = (vec![], vec![]);
    for load in found {
        if loaded.iter().any(|(known, _)| *known == load) {
            continue;
        }
        let scalar = kernel.scalar_of(&load);
        let value = kernel.fresh_local("element", scalar);
        if surely_runs {
            out.push(Stmt::Let(value, load.clone()));
        } else {
            out.push(Stmt::Var(value, Expr::Lit(Lit::zero(scalar))));
            read.push(Stmt::Set(Target::Local(value), load.clone()));
        }
        loaded.push((load, value));
    }
    if !read.is_empty() {
        out.push(Stmt::If(runs, read, vec![]));
    }
    if !loaded.is_empty() {
        l.body.iter_mut().for_each(|s| replace(s, &loaded));
    }
}

/// The largest reads in an expression that are the same in all iterations.
fn sure_reads(l: &Loop, inside: &FxHashSet<Local>, e: &Expr, out: &mut Vec<Expr>) {
    match e {
        Expr::Load(..) if is_same(l, inside, e) => out.push(e.clone()),
        Expr::Select(p, _, _) => sure_reads(l, inside, p, out),
        Expr::Op(Op::And | Op::Or, args) => sure_reads(l, inside, &args[0], out),
        other => other.for_each_child(&mut |c| sure_reads(l, inside, c, out)),
    }
}

/// Whether an expression has the same value in all iterations of a loop.
fn is_same(l: &Loop, inside: &FxHashSet<Local>, e: &Expr) -> bool {
    !e.any(&mut |e| match e {
        Expr::Local(local) => inside.contains(local),
        Expr::Load(b, _) => l.body.iter().any(|s| changes(s, *b)),
        Expr::Lit(_) | Expr::Op(..) | Expr::Partial(..) | Expr::Select(..) => false,
    })
}

/// Values with names that the body begins with.
fn take_values(l: &mut Loop, out: &mut Vec<Stmt>) {
    loop {
        let inside = defined(l);
        match l.body.first() {
            Some(Stmt::Let(local, e)) => {
                let others: FxHashSet<Local> = inside.iter().copied().filter(|other| other != local).collect();
                if !is_same(l, &others, e) {
                    return;
                }
                out.push(l.body.remove(0));
            }
            _ => return,
        }
    }
}
