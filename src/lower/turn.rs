//! Two loops that only go through their places, the inner one far apart in memory and the outer one side by side, change places.
//!
//! ```text
//! for a in 0..n { for b in 0..a { t += x[b * n + a] } }  =  for b in 0..n - 1 { for a in b + 1..n { t += x[b * n + a] } }
//! ```

use super::*;

pub(super) fn turn(kernel: &mut Kernel, options: Options) {
    kernel.body = block(std::mem::take(&mut kernel.body), options);
}

fn block(stmts: Vec<Stmt>, options: Options) -> Vec<Stmt> {
    let mut out = vec![];
    for mut s in stmts {
        // What runs in lanes has its own rules.
        if !matches!(&s, Stmt::Loop(l) if matches!(l.schedule, Schedule::Lanes(_))) {
            for inner in s.blocks_mut() {
                *inner = block(std::mem::take(inner), options);
            }
        }
        out.extend(marks::pair(s, &mut |outer, inner| turned(outer, inner, options)));
    }
    out
}

fn turned(outer: &Loop, inner: &Loop, options: Options) -> Option<Loop> {
    let in_lanes = |l: &Loop| matches!(l.schedule, Schedule::Lanes(_));
    if in_lanes(outer) || in_lanes(inner) {
        return None;
    }
    let (order, may_set) = match (&outer.order, &inner.order) {
        (Order::Independent, Order::Independent) => (Order::Independent, true),
        // Sums come together in another order.
        _ if options.strict => return None,
        (Order::Reduction(a), Order::Reduction(b)) if a == b => (outer.order.clone(), false),
        (Order::Accumulation(totals, places), _) if inner.order != Order::Sequential && !places.iter().any(|p| p.own_row) => {
            (Order::Accumulation(totals.clone(), places.clone()), false)
        }
        _ => return None,
    };
    let mut strides: Vec<(Option<i64>, Option<i64>)> = vec![];
    let mut seen = |offset: &Expr| {
        let stride = |index: Local| offset.slope(index).and_then(|slope| slope.as_int());
        strides.push((stride(outer.index), stride(inner.index)));
    };
    for s in &inner.body {
        match s {
            Stmt::Add(Target::Place(_, offset), _) => seen(offset),
            Stmt::Set(Target::Place(_, offset), _) if may_set => seen(offset),
            Stmt::Add(Target::Local(_), _) => {}
            // Through places that are named before one does not see.
            _ => return None,
        }
        s.for_each_expr(&mut |e| {
            e.any(&mut |e| {
                if let Expr::Load(_, offset) = e {
                    seen(offset);
                }
                false
            });
        });
    }
    let is_near = |stride: &Option<i64>| matches!(stride, Some(0 | 1));
    let is_better = strides.iter().all(|(outer, _)| is_near(outer)) && strides.iter().any(|(_, inner)| !is_near(inner));
    if !is_better || strides.iter().all(|(outer, _)| *outer == Some(0)) {
        return None;
    }
    let ((lo, hi), (within_lo, within_hi)) = bounds(outer, inner)?;
    // Steps of the outer loop may add to the same places.
    let schedule = if matches!(order, Order::Accumulation(..)) { Schedule::Plain } else { inner.schedule.clone() };
    let within = Loop { index: outer.index, lo: within_lo, hi: within_hi, order: order.clone(), schedule, body: inner.body.clone() };
    Some(Loop { index: inner.index, lo, hi, order, schedule: Schedule::Plain, body: vec![Stmt::Loop(within)] })
}

type Ends = (Expr, Expr);

/// The bounds of the inner index, and within them of the outer one: of a rectangle, or a triangle.
fn bounds(outer: &Loop, inner: &Loop) -> Option<(Ends, Ends)> {
    let (a, b) = (outer.index, Expr::Local(inner.index));
    // What is read for them need not be there where the outer loop does not run.
    if [&inner.lo, &inner.hi].into_iter().any(|e| e.any(&mut |e| matches!(e, Expr::Load(..)))) {
        return None;
    }
    let beyond = |e: &Expr| {
        let rest = e.substitute(&mut |l| (l == a).then(|| Expr::int(0))).as_int()?;
        (e.slope(a)?.as_int() == Some(1)).then_some(rest)
    };
    match (inner.lo.mentions(a), inner.hi.mentions(a)) {
        (false, false) => Some(((inner.lo.clone(), inner.hi.clone()), (outer.lo.clone(), outer.hi.clone()))),
        // b < a + c: a from b - c + 1 on, which is not below where it begins.
        (false, true) => {
            let (c, from, first) = (beyond(&inner.hi)?, inner.lo.as_int()?, outer.lo.as_int()?);
            let last = outer.hi.clone().plus(Expr::int(c - 1));
            (from - c + 1 >= first).then(|| ((inner.lo.clone(), last), (b.plus(Expr::int(1 - c)), outer.hi.clone())))
        }
        // a + c <= b: a up to b - c.
        (true, false) => {
            let c = beyond(&inner.lo)?;
            let first = outer.lo.clone().plus(Expr::int(c));
            (c >= 0 && outer.hi == inner.hi).then(|| ((first, inner.hi.clone()), (outer.lo.clone(), b.plus(Expr::int(1 - c)))))
        }
        (true, true) => None,
    }
}
