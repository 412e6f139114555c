//! What the steps of a loop in lanes add to all places of a row is summed for one place after the other, in registers.
//!
//! ```text
//! for j { for a { row[a] += f(j, a) } }  =  for a { total = 0; for j { total += f(j, a) }; row[a] += total }
//! ```
//! Where a step does several such things with what it computes, that is kept for all steps, and each is a loop of its own:
//! ```text
//! for a { let q = e(a); t += q; for j { u[j] += f(j, a) * q }; for j { v[a, j] += g(j) * q } }
//!   =  for a { q[a] = e(a); t += q[a] }; for a { for j { u[j] += f(j, a) * q[a] } }; for a { for j { v[a, j] += g(j) * q[a] } }
//! ```
//! Rows of the lanes stand far from each other in memory, as do the numbers that are the same in all lanes: neither order reads
//! them better, but a sum is not written and read again in every step. Several of them are then made at once (`tiles.rs`).

use super::lanes::Known;
use super::*;
use crate::loops::tiles::unmarked;

/// Loops of fewer steps stay together.
const LEAST_STEPS: i64 = 8;

pub(super) fn inward(
    kernel: &mut Kernel,
    bounds: &mut FxHashMap<Buffer, Option<Expr>>,
    known: &Known,
    own: &FxHashSet<Buffer>,
    body: Vec<Stmt>,
) -> Vec<Stmt> {
    let mut out = vec![];
    for mut s in body {
        for block in s.blocks_mut() {
            *block = inward(kernel, bounds, known, own, std::mem::take(block));
        }
        match s {
            Stmt::Loop(l) => {
                let parts = parted(kernel, bounds, known, own, &l).unwrap_or_else(|| vec![Stmt::Loop(l)]);
                out.extend(parts.into_iter().map(|part| match part {
                    Stmt::Loop(l) => Stmt::Loop(turned(kernel, own, &l).unwrap_or(l)),
                    other => other,
                }));
            }
            other => out.push(other),
        }
    }
    out
}

/// A loop as several, each of which does one thing with what the first computes. Nothing that it adds to is read in it.
fn parted(
    kernel: &mut Kernel,
    bounds: &mut FxHashMap<Buffer, Option<Expr>>,
    known: &Known,
    own: &FxHashSet<Buffer>,
    l: &Loop,
) -> Option<Vec<Stmt>> {
    let long = |l: &Loop| known.eager || known.entry.trip(l).is_none_or(|trip| trip >= LEAST_STEPS);
    if l.order == Order::Sequential || l.lo != Expr::int(0) || !known.is_short(&l.hi) || !long(l) || !l.hi.is_known(&known.locals) {
        return None;
    }
    let (mut first, mut rest, mut lets, mut targets) = (vec![], vec![], vec![], vec![]);
    for s in unmarked(l) {
        match s {
            Stmt::Let(local, _) => {
                lets.push(*local);
                first.push(s.clone());
            }
            Stmt::Add(Target::Local(_), _) => first.push(s.clone()),
            Stmt::Loop(inner) if long(inner) => {
                let [Stmt::Add(Target::Place(buffer, _), _)] = unmarked(inner)[..] else { return None };
                targets.push(*buffer);
                rest.push(inner);
            }
            _ => return None,
        }
    }
    let reads_target = |e: &Expr| e.any(&mut |e| matches!(e, Expr::Load(b, _) if targets.contains(b)));
    let mut apart = true;
    l.body.iter().for_each(|s| visit_exprs(s, &mut |e| apart &= !reads_target(e)));
    // One of them at least is summed where it is.
    let is_turned = |inner: &&Loop| {
        let [Stmt::Add(Target::Place(row, offset), _)] = unmarked(inner)[..] else { return false };
        own.contains(row) && !offset.mentions(l.index)
    };
    if !apart || rest.is_empty() || first.is_empty() || !rest.iter().any(is_turned) {
        return None;
    }
    let mut needed = FxHashSet::default();
    rest.iter().for_each(|inner| {
        visit_exprs(&Stmt::Loop((*inner).clone()), &mut |e| {
            e.any(&mut |e| {
                needed.extend(if let Expr::Local(local) = e { Some(*local) } else { None });
                false
            });
        })
    });
    let (mut out, mut kept) = (vec![], vec![]);
    for local in lets.into_iter().filter(|local| needed.contains(local)) {
        let info = kernel.local(local).clone();
        let row = kernel.fresh_buffer(format!("{}_row", info.name), info.scalar, Home::Unplanned);
        bounds.insert(row, Some(l.hi.clone()));
        out.push(Stmt::Allocate(row, l.hi.clone()));
        first.push(Stmt::Set(Target::Place(row, Expr::Local(l.index)), Expr::Local(local)));
        kept.push((local, row));
    }
    let (totals, places) = match &l.order {
        Order::Reduction(totals) => (totals.clone(), vec![]),
        Order::Accumulation(totals, places) => (totals.clone(), places.clone()),
        Order::Independent | Order::Sequential => (vec![], vec![]),
    };
    let order = if totals.is_empty() { Order::Independent } else { Order::Reduction(totals) };
    out.push(Stmt::Loop(Loop { order, schedule: Schedule::Plain, body: first, ..l.clone() }));
    for (inner, target) in rest.into_iter().zip(targets) {
        let index = kernel.fresh_local(kernel.local(l.index).name.clone(), Scalar::I64);
        let read = |e: Expr| {
            e.substitute(&mut |local| match kept.iter().find(|(l, _)| *l == local) {
                Some((_, row)) => Some(Expr::Load(*row, Box::new(Expr::Local(index)))),
                None => (local == l.index).then_some(Expr::Local(index)),
            })
        };
        let mut inner = Stmt::Loop(inner.clone());
        map_all_exprs(&mut inner, &read);
        let own: Vec<Accumulated> = places.iter().filter(|p| p.buffer == target).cloned().collect();
        let order = if own.is_empty() { Order::Independent } else { Order::Accumulation(vec![], own) };
        out.push(Stmt::Loop(Loop { index, order, schedule: Schedule::Plain, body: vec![inner], ..l.clone() }));
    }
    Some(out)
}

fn visit_exprs(s: &Stmt, f: &mut dyn FnMut(&Expr)) {
    s.for_each_expr(&mut |e| f(e));
    s.blocks().into_iter().flatten().for_each(|s| visit_exprs(s, f));
}

fn map_all_exprs(s: &mut Stmt, f: &dyn Fn(Expr) -> Expr) {
    s.map_exprs(&mut |e| f(e));
    s.blocks_mut().into_iter().flatten().for_each(|s| map_all_exprs(s, f));
}

fn turned(kernel: &mut Kernel, own: &FxHashSet<Buffer>, outer: &Loop) -> Option<Loop> {
    let [Stmt::Loop(inner)] = unmarked(outer)[..] else { return None };
    let [Stmt::Add(Target::Place(row, offset), term)] = unmarked(inner)[..] else { return None };
    let reads_row = |e: &Expr| e.any(&mut |e| matches!(e, Expr::Load(b, _) if b == row));
    let fixed = |e: &Expr| !e.mentions(outer.index) && !e.any(&mut |e| matches!(e, Expr::Load(..)));
    // Steps of the inner loop that add to one place are a sum already.
    let is_row = inner.order == Order::Independent && own.contains(row) && offset.mentions(inner.index);
    if !is_row || ![offset, &inner.lo, &inner.hi].into_iter().all(fixed) || reads_row(term) {
        return None;
    }
    let scalar = kernel.buffer(*row).scalar;
    let total = kernel.fresh_local("total", scalar);
    let sum = Loop {
        order: Order::Reduction(vec![(total, Combine::Add)]),
        body: vec![Stmt::Add(Target::Local(total), term.clone())],
        schedule: Schedule::Plain,
        ..outer.clone()
    };
    let body = vec![
        Stmt::Var(total, Expr::Lit(Lit::zero(scalar))),
        Stmt::Loop(sum),
        Stmt::Add(Target::Place(*row, offset.clone()), Expr::Local(total)),
    ];
    Some(Loop { body, schedule: Schedule::Plain, ..inner.clone() })
}
