//! Lifts checks out of innermost loops, so that these become vector loops.
//!
//! ```text
//! for i in lo..hi { check k(i) < n; s }
//!   =  if lo >= hi or (k(lo) < n and k(hi - 1) < n) { for i in lo..hi { s } } else { for i in lo..hi { check k(i) < n; s } }
//! ```
//! A key that is affine in the index is in range throughout where it is at both ends. Other keys are looked at in a loop
//! of their own before, where the body calls functions and so has more to gain. A loop that will fail runs as it was
//! written, so that it fails in the same way.
//!
//! What is the same in all steps of a loop that is sure to run is checked once before:
//!
//! ```text
//! for i in 0..3 { for j in 0..3 { check k < n; s } }  =  check k < n; for i in 0..3 { for j in 0..3 { s } }
//! ```

use super::outward::{changes, defined};
use super::*;

pub(super) fn lift(kernel: &mut Kernel) {
    let body = std::mem::take(&mut kernel.body);
    let body = block(kernel, body);
    kernel.body = body;
}

fn block(kernel: &mut Kernel, stmts: Vec<Stmt>) -> Vec<Stmt> {
    let mut out = vec![];
    for mut stmt in stmts {
        for inner in stmt.blocks_mut() {
            *inner = block(kernel, std::mem::take(inner));
        }
        match stmt {
            Stmt::Loop(l) => out.extend(lifted(kernel, l)),
            other => out.push(other),
        }
    }
    out
}

/// Makes checks that are the same in all steps of loops that are sure to run before these.
pub(super) fn before_loops(kernel: &mut Kernel) {
    kernel.body = checked_before(std::mem::take(&mut kernel.body));
}

fn checked_before(block: Vec<Stmt>) -> Vec<Stmt> {
    let mut out: Vec<Stmt> = vec![];
    for mut stmt in block {
        for inner in stmt.blocks_mut() {
            *inner = checked_before(std::mem::take(inner));
        }
        if let Stmt::Loop(l) = &mut stmt {
            if matches!((l.lo.as_int(), l.hi.as_int()), (Some(lo), Some(hi)) if lo < hi) {
                out.extend(steady_checks(l));
            }
        }
        out.push(stmt);
    }
    out
}

/// Takes the checks out of a body that its first step comes to before anything else can fail or go on for ever, and that do not
/// depend on the step.
fn steady_checks(l: &mut Loop) -> Vec<Stmt> {
    let inside = defined(l);
    let mut definitions: FxHashMap<Local, Expr> = FxHashMap::default();
    let (mut taken, mut found) = (vec![], vec![]);
    for (k, s) in l.body.iter().enumerate() {
        match s {
            Stmt::Let(local, e) => {
                let e = e.substitute(&mut |l| definitions.get(&l).cloned());
                if is_short(&e) {
                    definitions.insert(*local, e);
                }
            }
            Stmt::Check(_) => {
                let mut check = s.clone();
                check.map_exprs(&mut |e| e.substitute(&mut |l| definitions.get(&l).cloned()));
                let mut steady = true;
                check.for_each_expr(&mut |e| {
                    steady = steady
                        && !e.any(&mut |e| match e {
                            Expr::Local(local) => inside.contains(local),
                            Expr::Load(b, _) => l.body.iter().any(|s| changes(s, *b)),
                            Expr::Lit(_) | Expr::Op(..) | Expr::Partial(..) | Expr::Select(..) => false,
                        })
                });
                if !steady {
                    break;
                }
                taken.push(k);
                found.push(check);
            }
            s if s.can_fail() || may_go_on(s) => break,
            _ => {}
        }
    }
    for k in taken.into_iter().rev() {
        l.body.remove(k);
    }
    found
}

fn may_go_on(s: &Stmt) -> bool {
    matches!(s, Stmt::Forever(_) | Stmt::LeaveUnless(_)) || s.blocks().iter().any(|b| b.iter().any(may_go_on))
}

fn lifted(kernel: &mut Kernel, l: Loop) -> Vec<Stmt> {
    let is_plain = |s: &Stmt| match s {
        Stmt::Let(..) | Stmt::Var(..) | Stmt::Set(..) | Stmt::Add(..) | Stmt::Count(_) | Stmt::Mark(_) => true,
        Stmt::Check(Check::Read { .. } | Check::Key { .. }) => true,
        Stmt::If(_, a, b) => a.iter().chain(b).all(schedule::is_straight),
        Stmt::Check(_) | Stmt::Loop(_) | Stmt::Forever(_) | Stmt::LeaveUnless(_) => false,
        Stmt::Allocate(..) | Stmt::Zero(..) | Stmt::Copy(..) | Stmt::Gemm(_) => false,
    };
    let is_check = |s: &Stmt| matches!(s, Stmt::Check(_));
    if l.order == Order::Sequential || !l.body.iter().all(is_plain) || !l.body.iter().any(is_check) {
        return vec![Stmt::Loop(l)];
    }
    let Some(conditions) = conditions(&l) else { return vec![Stmt::Loop(l)] };
    let affine = conditions.iter().all(|(key, size)| is_affine(key, l.index) && !size.mentions(l.index));
    let calls = l.body.iter().any(|s| {
        let mut found = false;
        s.for_each_expr(&mut |e| found = found || e.any(&mut |e| matches!(e, Expr::Partial(..)) || is_call(kernel, e)));
        found
    });
    if !affine && (!calls || matches!(l.order, Order::Accumulation(..))) {
        return vec![Stmt::Loop(l)];
    }
    let mut out = vec![];
    let mut name = |kernel: &mut Kernel, text: &str, e: &Expr| {
        if e.is_atom() {
            return e.clone();
        }
        let local = kernel.fresh_local(text, Scalar::I64);
        out.push(Stmt::Let(local, e.clone()));
        Expr::Local(local)
    };
    let (lo, hi) = (name(kernel, "from", &l.lo), name(kernel, "to", &l.hi));
    let l = Loop { lo: lo.clone(), hi: hi.clone(), ..l };
    let safe = kernel.fresh_local("in_range", Scalar::Bool);
    if affine {
        let empty = Expr::Op(Op::Ge, vec![lo.clone(), hi.clone()]);
        let last = hi.minus(Expr::int(1));
        let at = |e: &Expr, place: &Expr| e.substitute(&mut |local| (local == l.index).then(|| place.clone()));
        let both = conditions.iter().flat_map(|(key, size)| {
            let ends = if key.mentions(l.index) { vec![at(key, &lo), at(key, &last)] } else { vec![key.clone()] };
            ends.into_iter().map(move |k| in_range(k, size.clone()))
        });
        let all = both.reduce(and).expect("there is a check");
        out.push(Stmt::Let(safe, Expr::Op(Op::Or, vec![empty, all])));
    } else {
        // As a maximum of integers the search is a vector loop too.
        let index = kernel.fresh_local("i", Scalar::I64);
        let wrong = kernel.fresh_local("wrong", Scalar::I64);
        let here = |e: &Expr| e.substitute(&mut |local| (local == l.index).then_some(Expr::Local(index)));
        let all = conditions.iter().map(|(key, size)| in_range(here(key), here(size))).reduce(and).expect("there is a check");
        let found = Expr::Select(Box::new(all), Box::new(Expr::int(0)), Box::new(Expr::int(1)));
        out.push(Stmt::Var(wrong, Expr::int(0)));
        out.push(Stmt::Loop(Loop {
            index,
            lo,
            hi,
            order: Order::Reduction(vec![(wrong, Combine::Max)]),
            schedule: Schedule::Plain,
            body: vec![Stmt::Set(Target::Local(wrong), Expr::Op(Op::Max, vec![Expr::Local(wrong), found]))],
        }));
        out.push(Stmt::Let(safe, Expr::Op(Op::Eq, vec![Expr::Local(wrong), Expr::int(0)])));
    }
    let checked = Loop { order: Order::Sequential, ..l.clone() };
    let checked = renamed(kernel, &Stmt::Loop(checked), &mut FxHashMap::default());
    let body = l.body.iter().filter(|s| !is_check(s)).cloned().collect();
    out.push(Stmt::If(Expr::Local(safe), vec![Stmt::Loop(Loop { body, ..l })], vec![checked]));
    out
}

/// The keys and sizes of the checks of a body, in terms of the index and of what is defined outside the loop.
fn conditions(l: &Loop) -> Option<Vec<(Expr, Expr)>> {
    let mut definitions: FxHashMap<Local, Expr> = FxHashMap::default();
    let mut changing = vec![];
    for s in &l.body {
        if let Stmt::Var(local, _) = s {
            changing.push(*local);
        }
    }
    if let Order::Reduction(totals) | Order::Accumulation(totals, _) = &l.order {
        changing.extend(totals.iter().map(|(local, _)| *local));
    }
    let written = |b: Buffer| l.body.iter().any(|s| writes(s, b));
    let steady = |e: &Expr| {
        !e.any(&mut |e| match e {
            Expr::Local(local) => changing.contains(local),
            Expr::Load(b, _) => written(*b),
            _ => false,
        })
    };
    let mut found = vec![];
    // What is long is never written out: of a chain of definitions it would be as long as there are ways through it.
    let mut long: FxHashSet<Local> = FxHashSet::default();
    for s in &l.body {
        match s {
            Stmt::Let(local, e) => {
                let is_long = e.any(&mut |e| matches!(e, Expr::Local(l) if long.contains(l)));
                let e = e.substitute(&mut |l| definitions.get(&l).cloned());
                if is_long || !is_short(&e) {
                    long.insert(*local);
                } else {
                    definitions.insert(*local, e);
                }
            }
            Stmt::Check(Check::Read { index, size, .. } | Check::Key { index, size, .. }) => {
                let [key, size] = [index, size].map(|e| e.substitute(&mut |l| definitions.get(&l).cloned()));
                let usable = |e: &Expr| steady(e) && is_short(e) && !e.any(&mut |e| matches!(e, Expr::Local(l) if long.contains(l)));
                if !usable(&key) || !usable(&size) {
                    return None;
                }
                found.push((key, size));
            }
            _ => {}
        }
    }
    Some(found)
}

pub(super) fn writes(s: &Stmt, buffer: Buffer) -> bool {
    let own = matches!(s, Stmt::Set(Target::Place(b, _), _) | Stmt::Add(Target::Place(b, _), _) if *b == buffer);
    own || s.blocks().iter().any(|b| b.iter().any(|s| writes(s, buffer)))
}

/// Whether an expression is not too long to be looked at again and again.
pub(super) fn is_short(e: &Expr) -> bool {
    fn size(e: &Expr) -> usize {
        let mut total = 1;
        e.for_each_child(&mut |c| total += size(c));
        total
    }
    size(e) <= 32
}

/// Whether a function is called, which vector code has another form of.
fn is_call(kernel: &Kernel, e: &Expr) -> bool {
    matches!(e, Expr::Op(op, _) if op.infix().is_none() && op.prefix().is_none() && kernel.scalar_of(e).is_float())
}

/// Whether the expression is affine in the index, with factors that cannot make it wrap around between its ends.
fn is_affine(e: &Expr, index: Local) -> bool {
    if !e.mentions(index) {
        return true;
    }
    match e {
        Expr::Local(_) => true,
        Expr::Op(Op::Add | Op::Sub, args) => args.iter().all(|a| is_affine(a, index)),
        Expr::Op(Op::Mul, args) => match args.as_slice() {
            [Expr::Lit(Lit::I64(c)), e] | [e, Expr::Lit(Lit::I64(c))] => c.unsigned_abs() < 1 << 20 && is_affine(e, index),
            _ => false,
        },
        Expr::Op(..) | Expr::Lit(_) | Expr::Load(..) | Expr::Partial(..) | Expr::Select(..) => false,
    }
}

fn in_range(key: Expr, size: Expr) -> Expr {
    and(Expr::Op(Op::Le, vec![Expr::int(0), key.clone()]), Expr::Op(Op::Lt, vec![key, size]))
}
fn and(a: Expr, b: Expr) -> Expr {
    Expr::Op(Op::And, vec![a, b])
}

/// A copy of a statement in which every local that it defines is new.
pub(super) fn renamed(kernel: &mut Kernel, s: &Stmt, names: &mut FxHashMap<Local, Local>) -> Stmt {
    let fresh = |kernel: &mut Kernel, l: Local, names: &mut FxHashMap<Local, Local>| {
        let info = kernel.local(l).clone();
        let new = kernel.fresh_local(info.name, info.scalar);
        names.insert(l, new);
        new
    };
    let expr = |e: &Expr, names: &FxHashMap<Local, Local>| e.substitute(&mut |l| names.get(&l).map(|n| Expr::Local(*n)));
    let target = |t: &Target, names: &FxHashMap<Local, Local>| match t {
        Target::Local(l) => Target::Local(*names.get(l).unwrap_or(l)),
        Target::Place(b, offset) => Target::Place(*b, expr(offset, names)),
    };
    match s {
        Stmt::Let(l, e) => {
            let e = expr(e, names);
            Stmt::Let(fresh(kernel, *l, names), e)
        }
        Stmt::Var(l, e) => {
            let e = expr(e, names);
            Stmt::Var(fresh(kernel, *l, names), e)
        }
        Stmt::Set(t, e) => Stmt::Set(target(t, names), expr(e, names)),
        Stmt::Add(t, e) => Stmt::Add(target(t, names), expr(e, names)),
        Stmt::If(p, a, b) => {
            let p = expr(p, names);
            let a = a.iter().map(|s| renamed(kernel, s, names)).collect();
            Stmt::If(p, a, b.iter().map(|s| renamed(kernel, s, names)).collect())
        }
        Stmt::Loop(l) => {
            let (lo, hi) = (expr(&l.lo, names), expr(&l.hi, names));
            let index = fresh(kernel, l.index, names);
            let body = l.body.iter().map(|s| renamed(kernel, s, names)).collect();
            let order = match &l.order {
                Order::Reduction(sums) => Order::Reduction(sums.iter().map(|(l, c)| (*names.get(l).unwrap_or(l), *c)).collect()),
                order => order.clone(),
            };
            Stmt::Loop(Loop { index, lo, hi, order, schedule: l.schedule.clone(), body })
        }
        Stmt::Forever(body) => Stmt::Forever(body.iter().map(|s| renamed(kernel, s, names)).collect()),
        Stmt::LeaveUnless(p) => Stmt::LeaveUnless(expr(p, names)),
        Stmt::Check(Check::Read { index, size, site }) => {
            Stmt::Check(Check::Read { index: expr(index, names), size: expr(size, names), site: *site })
        }
        Stmt::Check(Check::Key { index, size, site }) => {
            Stmt::Check(Check::Key { index: expr(index, names), size: expr(size, names), site: *site })
        }
        Stmt::Count(c) => Stmt::Count(*c),
        Stmt::Mark(k) => Stmt::Mark(*k),
        Stmt::Check(_) | Stmt::Allocate(..) | Stmt::Zero(..) | Stmt::Copy(..) | Stmt::Gemm(_) => {
            panic!("lower: {s:?} does not stand in an innermost loop")
        }
    }
}
