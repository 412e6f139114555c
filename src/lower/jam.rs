//! Rows of a matrix that go through the same vector, several at once.
//!
//! ```text
//! for i { t = 0; for a { t += x[i, a] * w[a] }  r = f(t); for a { g[a] += x[i, a] * r } }
//! ->
//! for i by fours { t0 = t1 = t2 = t3 = 0
//!                  for a { t0 += x[i, a] * w[a]; t1 += x[i + 1, a] * w[a]; … }
//!                  r0 = f(t0); …
//!                  for a { g[a] += x[i, a] * r0 + x[i + 1, a] * r1 + … } }
//! ```
//! What the rows share is read and written once for all of them, and sums need not wait for each other. It is done where
//! iterations do not depend on each other and their loops run along vectors; it changes the order of additions into an array.

use super::*;
use crate::loops::workspace::Entry;

/// How many iterations go together.
const ROWS: i64 = 4;
/// Loops known to have fewer iterations stay as they are, and so do those whose rows are known to be shorter.
const LEAST: i64 = 16;
/// Bodies with more statements are too much for registers, and to compile.
const MOST_STATEMENTS: usize = 24;

pub(super) fn jam(kernel: &mut Kernel) {
    let entry = Entry::new(kernel, &kernel.call);
    let body = std::mem::take(&mut kernel.body);
    kernel.body = block(kernel, &entry, body);
}

fn block(kernel: &mut Kernel, entry: &Entry, stmts: Vec<Stmt>) -> Vec<Stmt> {
    let mut out = vec![];
    for mut s in stmts {
        match s {
            // What stands in lanes is told apart there, by name.
            Stmt::Loop(l) if matches!(l.schedule, Schedule::Lanes(_)) => out.push(Stmt::Loop(l)),
            Stmt::Loop(l) if gains(entry, &l) => out.extend(by_rows(kernel, l)),
            _ => {
                for inner in s.blocks_mut() {
                    *inner = block(kernel, entry, std::mem::take(inner));
                }
                out.push(s);
            }
        }
    }
    out
}

fn gains(entry: &Entry, l: &Loop) -> bool {
    let apart = match &l.order {
        Order::Independent | Order::Reduction(_) => true,
        Order::Accumulation(_, places) => places.iter().all(|place| !place.own_row && !place.offset.mentions(l.index)),
        Order::Sequential => false,
    };
    let long = |l: &Loop| entry.trip(l).is_none_or(|trip| trip >= LEAST);
    if !apart || l.schedule != Schedule::Plain || !long(l) || statements(&l.body) > MOST_STATEMENTS {
        return false;
    }
    let mut own = vec![l.index];
    let mut shares = false;
    for s in &l.body {
        match s {
            Stmt::Loop(row) => {
                let along = row.schedule == Schedule::Vector && matches!(row.order, Order::Independent | Order::Reduction(_)) && long(row);
                let same =
                    |e: &Expr| !e.any(&mut |e| matches!(e, Expr::Load(..)) || matches!(e, Expr::Local(local) if own.contains(local)));
                if !along || !same(&row.lo) || !same(&row.hi) || !row.body.iter().all(is_plain) {
                    return false;
                }
                own.extend(row.body.iter().filter_map(defined));
                shares |= shares_places(row, &own);
            }
            s if is_plain(s) || matches!(s, Stmt::Mark(_)) => own.extend(defined(s)),
            _ => return false,
        }
    }
    shares
}

/// Whether a statement computes numbers and stores them, and cannot fail.
fn is_plain(s: &Stmt) -> bool {
    matches!(s, Stmt::Let(..) | Stmt::Var(..) | Stmt::Set(..) | Stmt::Add(..))
}

fn defined(s: &Stmt) -> Option<Local> {
    match s {
        Stmt::Let(local, _) | Stmt::Var(local, _) => Some(*local),
        _ => None,
    }
}

/// Whether a row meets places that are the same for all rows, and others that are not.
fn shares_places(row: &Loop, own: &[Local]) -> bool {
    let is_own = |e: &Expr| e.any(&mut |e| matches!(e, Expr::Local(local) if own.contains(local)));
    let (mut shared, mut apart) = (false, false);
    for s in &row.body {
        if let Stmt::Add(Target::Place(_, offset), _) = s {
            shared |= !is_own(offset) && offset.mentions(row.index);
        }
        s.for_each_expr(&mut |e| {
            e.any(&mut |e| {
                if let Expr::Load(_, offset) = e {
                    apart |= is_own(offset);
                    shared |= !is_own(offset) && offset.mentions(row.index);
                }
                false
            });
        });
    }
    shared && apart
}

fn by_rows(kernel: &mut Kernel, l: Loop) -> Vec<Stmt> {
    let name = kernel.local(l.index).name.clone();
    let group = kernel.fresh_local(format!("{name}_group"), Scalar::I64);
    let trip = Expr::Op(Op::Max, vec![l.hi.clone().minus(l.lo.clone()), Expr::int(0)]);
    // Said where it is needed: what is known at entry is known of it, too.
    let groups = Expr::Op(Op::IDiv, vec![trip, Expr::int(ROWS)]);
    let first_left = l.lo.clone().plus(groups.clone().times(Expr::int(ROWS)));
    // What is left over: fewer rows than go together.
    let left = Stmt::Loop(Loop { lo: first_left, order: Order::Sequential, ..l.clone() });
    let left = checks::renamed(kernel, &left, &mut FxHashMap::default());
    let mut body = vec![Stmt::Let(l.index, l.lo.clone().plus(Expr::Local(group).times(Expr::int(ROWS))))];
    let mut names: Vec<FxHashMap<Local, Local>> = vec![FxHashMap::default(); ROWS as usize];
    for (row, names) in names.iter_mut().enumerate().skip(1) {
        let index = kernel.fresh_local(&name, Scalar::I64);
        names.insert(l.index, index);
        body.push(Stmt::Let(index, Expr::Local(l.index).plus(Expr::int(row as i64))));
    }
    for s in &l.body {
        match s {
            Stmt::Loop(row) => body.push(together(kernel, row, &mut names, l.index)),
            Stmt::Mark(_) => body.push(s.clone()),
            s => body.extend(copies(kernel, s, &mut names)),
        }
    }
    let all = Loop { index: group, lo: Expr::int(0), hi: groups, order: l.order, schedule: Schedule::Plain, body };
    vec![Stmt::Loop(all), left]
}

/// A statement for each row; the first keeps its names.
fn copies(kernel: &mut Kernel, s: &Stmt, names: &mut [FxHashMap<Local, Local>]) -> Vec<Stmt> {
    let mut out = vec![s.clone()];
    out.extend(names[1..].iter_mut().map(|names| checks::renamed(kernel, s, names)));
    out
}

/// One loop along all rows.
fn together(kernel: &mut Kernel, row: &Loop, names: &mut [FxHashMap<Local, Local>], index: Local) -> Stmt {
    let mut body = vec![];
    for s in &row.body {
        let all = copies(kernel, s, names);
        match s {
            Stmt::Add(Target::Place(buffer, offset), _) if !differs(offset, names, index) => {
                let terms = all.into_iter().filter_map(|s| if let Stmt::Add(_, e) = s { Some(e) } else { None });
                let sum = terms.reduce(|a, b| Expr::Op(Op::Add, vec![a, b])).expect("there are rows");
                body.push(Stmt::Add(Target::Place(*buffer, offset.clone()), sum));
            }
            _ => body.extend(all),
        }
    }
    let order = match &row.order {
        Order::Reduction(sums) => Order::Reduction(
            sums.iter()
                .flat_map(|(local, combine)| names.iter().map(move |names| (*names.get(local).unwrap_or(local), *combine)))
                .collect(),
        ),
        order => order.clone(),
    };
    Stmt::Loop(Loop { order, body, ..row.clone() })
}

/// Whether a number is another one in each row.
fn differs(e: &Expr, names: &[FxHashMap<Local, Local>], index: Local) -> bool {
    e.any(&mut |e| matches!(e, Expr::Local(local) if *local == index || names[1].contains_key(local)))
}
