//! What the loops of a body in lanes do at the same places in every step, done once: before them or behind.
//!
//! ```text
//! for j { … x[i * 3] …; out[i * 3] += e(j) }
//!   =  t = x[i * 3]; total = 0; for j { … t …; total += e(j) }; out[i * 3] += total        i: the lane's index
//! ```
//! Lanes read and add far apart there, which is as much work as the arithmetic of a step. A compiler of C cannot know that
//! other steps write elsewhere.

use super::lanes::Analysis;
use super::*;

pub(super) fn outward(kernel: &mut Kernel, analysis: &Analysis, body: Vec<Stmt>) -> Vec<Stmt> {
    let mut out = vec![];
    for mut s in body {
        for block in s.blocks_mut() {
            *block = outward(kernel, analysis, std::mem::take(block));
        }
        match s {
            Stmt::Loop(l) => moved(kernel, analysis, l, &mut out),
            other => out.push(other),
        }
    }
    out
}

fn moved(kernel: &mut Kernel, analysis: &Analysis, mut l: Loop, out: &mut Vec<Stmt>) {
    let inside = defined(&l);
    let stays = |l: &Loop, e: &Expr| {
        !e.any(&mut |e| match e {
            Expr::Local(local) => inside.contains(local),
            Expr::Load(b, _) => l.body.iter().any(|s| changes(s, *b)),
            Expr::Lit(_) | Expr::Op(..) | Expr::Partial(..) | Expr::Select(..) => false,
        })
    };
    let runs = Expr::Op(Op::Lt, vec![l.lo.clone(), l.hi.clone()]);
    let (mut before, mut behind) = (vec![], vec![]);
    for k in 0..l.body.len() {
        let Stmt::Add(Target::Place(b, offset), _) = &l.body[k] else { continue };
        let (b, offset) = (*b, offset.clone());
        let apart = analysis.is_apart(b, &offset) && !analysis.inside.contains(&b);
        if !apart || !stays(&l, &offset) || l.body.iter().any(|s| reads(s, b) || sets(s, b)) {
            continue;
        }
        let total = kernel.fresh_local("total", kernel.buffer(b).scalar);
        let Some(order) = with_total(&l.order, total) else { continue };
        l.order = order;
        before.push(Stmt::Var(total, Expr::Lit(Lit::zero(kernel.buffer(b).scalar))));
        let Stmt::Add(target, _) = &mut l.body[k] else { unreachable!("it is an addition") };
        *target = Target::Local(total);
        behind.push(Stmt::Add(Target::Place(b, offset), Expr::Local(total)));
    }
    // Up to the first statement that may keep the next from being reached.
    let reached = l.body.iter().take_while(|s| matches!(s, Stmt::Let(..) | Stmt::Var(..) | Stmt::Set(..) | Stmt::Add(..) | Stmt::Mark(_)));
    let mut found: Vec<(Buffer, Expr)> = vec![];
    for s in reached {
        s.for_each_expr(&mut |e| sure_loads(e, &mut found));
    }
    let (mut loaded, mut read) = (vec![], vec![]);
    for (b, offset) in found {
        let load = Expr::Load(b, Box::new(offset));
        let Expr::Load(_, offset) = &load else { unreachable!("it is a read") };
        let apart = analysis.is_apart(b, offset) && !analysis.inside.contains(&b);
        if !apart || !stays(&l, &load) || loaded.iter().any(|(known, _)| *known == load) {
            continue;
        }
        let value = kernel.fresh_local("element", kernel.buffer(b).scalar);
        before.push(Stmt::Var(value, Expr::Lit(Lit::zero(kernel.buffer(b).scalar))));
        read.push(Stmt::Set(Target::Local(value), load.clone()));
        loaded.push((load, value));
    }
    if !loaded.is_empty() {
        before.push(Stmt::If(runs.clone(), read, vec![]));
        l.body.iter_mut().for_each(|s| replace(s, &loaded));
    }
    out.extend(before);
    out.push(Stmt::Loop(l));
    if !behind.is_empty() {
        out.push(Stmt::If(runs, behind, vec![]));
    }
}

/// The order of a loop that adds up one more number.
fn with_total(order: &Order, total: Local) -> Option<Order> {
    let more = |totals: &[(Local, Combine)]| totals.iter().copied().chain([(total, Combine::Add)]).collect();
    match order {
        Order::Sequential => Some(Order::Sequential),
        Order::Independent => None,
        Order::Reduction(totals) => Some(Order::Reduction(more(totals))),
        Order::Accumulation(totals, places) => Some(Order::Accumulation(more(totals), places.clone())),
    }
}

/// The locals of a loop: they differ from step to step.
pub(super) fn defined(l: &Loop) -> FxHashSet<Local> {
    let mut out = FxHashSet::from_iter([l.index]);
    define(&l.body, &mut out);
    out
}

/// Those of a block.
pub(super) fn define(block: &[Stmt], out: &mut FxHashSet<Local>) {
    for s in block {
        match s {
            Stmt::Let(local, _) | Stmt::Var(local, _) | Stmt::Set(Target::Local(local), _) | Stmt::Add(Target::Local(local), _) => {
                out.insert(*local);
            }
            Stmt::Loop(l) => {
                out.insert(l.index);
            }
            _ => {}
        }
        s.blocks().into_iter().for_each(|b| define(b, out));
    }
}

fn reads(s: &Stmt, buffer: Buffer) -> bool {
    let mut found = matches!(s, Stmt::Copy(_, _, from, _, _) if *from == buffer);
    s.for_each_expr(&mut |e| found |= e.any(&mut |e| matches!(e, Expr::Load(b, _) if *b == buffer)));
    found || s.blocks().iter().any(|b| b.iter().any(|s| reads(s, buffer)))
}

/// Whether a buffer gets new contents, other than by additions.
fn sets(s: &Stmt, buffer: Buffer) -> bool {
    let own = match s {
        Stmt::Set(Target::Place(b, _), _) | Stmt::Zero(b, _, _) | Stmt::Copy(b, ..) => *b == buffer,
        Stmt::Gemm(_) => true,
        _ => false,
    };
    own || s.blocks().iter().any(|b| b.iter().any(|s| sets(s, buffer)))
}

pub(super) fn changes(s: &Stmt, buffer: Buffer) -> bool {
    sets(s, buffer) || checks::writes(s, buffer)
}

/// The reads of an expression that are made whatever its conditions are.
pub(super) fn sure_loads(e: &Expr, out: &mut Vec<(Buffer, Expr)>) {
    match e {
        Expr::Load(b, offset) => {
            sure_loads(offset, out);
            out.push((*b, (**offset).clone()));
        }
        Expr::Select(p, _, _) => sure_loads(p, out),
        Expr::Op(Op::And | Op::Or, args) => sure_loads(&args[0], out),
        other => other.for_each_child(&mut |c| sure_loads(c, out)),
    }
}

pub(super) fn replace(s: &mut Stmt, loaded: &[(Expr, Local)]) {
    s.map_exprs(&mut |e| {
        e.map_loads(&mut |b, offset| {
            let load = Expr::Load(b, Box::new(offset));
            loaded.iter().find(|(known, _)| *known == load).map_or(load, |(_, value)| Expr::Local(*value))
        })
    });
    s.blocks_mut().into_iter().for_each(|b| b.iter_mut().for_each(|s| replace(s, loaded)));
}
