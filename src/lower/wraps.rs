//! Places that wrap around: `for i in 0..n { y[i] = x[(i + 1) mod n] }`.
//!
//! ```text
//! at = 0; forever { leave unless at < n; m = (at + 1) mod n; until = min(n, at + max(1, n - m)); d = m - at;
//!                   for i in at..until { y[i] = x[i + d] }  at = until }
//! ```
//! A remainder rises by one with the index, or falls, until it wraps around. Between two such steps it is the index and a
//! number, so that remainders are taken once for each stretch, and neighbours in it are neighbours in memory. Iterations keep
//! their order. A divisor that is not positive makes stretches of one iteration, which are what they were. Remainders that are
//! the same in all iterations are taken before them.

use super::*;
use crate::loops::workspace::Entry;

/// A loop known to have fewer iterations stays whole: what is around it may run in lanes, and it is soon done.
const LEAST: i64 = 32;
/// Loops with more different remainders fall into too many stretches.
const MOST: usize = 8;

pub(super) fn wraps(kernel: &mut Kernel) {
    let entry = Entry::new(kernel, &kernel.call);
    let body = std::mem::take(&mut kernel.body);
    kernel.body = block(kernel, &entry, body);
}

fn block(kernel: &mut Kernel, entry: &Entry, stmts: Vec<Stmt>) -> Vec<Stmt> {
    let mut out = vec![];
    for mut s in stmts {
        for inner in s.blocks_mut() {
            *inner = block(kernel, entry, std::mem::take(inner));
        }
        match s {
            Stmt::Loop(mut l) => {
                let found = if entry.trip(&l).is_some_and(|trip| trip < LEAST) { vec![] } else { remainders(kernel, &l) };
                let (moving, fixed): (Vec<Remainder>, Vec<Remainder>) = found.into_iter().partition(|r| r.slope != 0);
                out.extend(taken_before(kernel, &mut l, fixed));
                if moving.is_empty() || moving.len() > MOST { out.push(Stmt::Loop(l)) } else { out.extend(in_stretches(kernel, l, moving)) }
            }
            s => out.push(s),
        }
    }
    out
}

/// A remainder that moves by one with the index of a loop, or not at all.
struct Remainder {
    whole: Expr,
    dividend: Expr,
    divisor: Expr,
    slope: i64,
}

impl Remainder {
    /// Zero where nothing divides it: of that there is a check in the body.
    fn value(&self, dividend: Expr) -> Expr {
        let zero = Expr::Op(Op::Eq, vec![self.divisor.clone(), Expr::int(0)]);
        Expr::Select(Box::new(zero), Box::new(Expr::int(0)), Box::new(Expr::Op(Op::IMod, vec![dividend, self.divisor.clone()])))
    }
}

/// Those of a loop that has no loops in it.
fn remainders(kernel: &Kernel, l: &Loop) -> Vec<Remainder> {
    let mut found: Vec<Remainder> = vec![];
    let mut inner = vec![];
    if !is_innermost(&l.body, &mut inner) {
        return found;
    }
    // Beyond its definition, what a block defines and what memory holds may change from one iteration to the next.
    let outside = |e: &Expr| {
        !e.any(&mut |e| match e {
            Expr::Local(local) => inner.contains(local),
            Expr::Load(..) | Expr::Partial(..) | Expr::Select(..) => true,
            Expr::Lit(_) | Expr::Op(..) => false,
        })
    };
    each_expr(&l.body, &mut |e| {
        e.any(&mut |e| {
            if let Expr::Op(Op::IMod, args) = e {
                let [dividend, divisor] = args.as_slice() else { return false };
                let slope = dividend.slope(l.index).and_then(|slope| slope.as_int()).filter(|slope| slope.abs() <= 1);
                let fixed = outside(dividend) && outside(divisor) && !divisor.mentions(l.index) && kernel.scalar_of(e) == Scalar::I64;
                if let (Some(slope), true, false) = (slope, fixed, found.iter().any(|r| r.whole == *e)) {
                    found.push(Remainder { whole: e.clone(), dividend: dividend.clone(), divisor: divisor.clone(), slope });
                }
            }
            false
        });
    });
    found
}

/// Whether a block has no loop, and what it defines.
fn is_innermost(block: &[Stmt], defined: &mut Vec<Local>) -> bool {
    block.iter().all(|s| {
        match s {
            Stmt::Let(local, _) | Stmt::Var(local, _) | Stmt::Set(Target::Local(local), _) | Stmt::Add(Target::Local(local), _) => {
                defined.push(*local)
            }
            Stmt::Loop(_) | Stmt::Forever(_) | Stmt::LeaveUnless(_) | Stmt::Gemm(_) => return false,
            _ => {}
        }
        s.blocks().into_iter().all(|b| is_innermost(b, defined))
    })
}

fn each_expr(block: &[Stmt], f: &mut impl FnMut(&Expr)) {
    for s in block {
        s.for_each_expr(&mut |e| f(e));
        s.blocks().into_iter().for_each(|b| each_expr(b, f));
    }
}

fn in_stretches(kernel: &mut Kernel, mut l: Loop, found: Vec<Remainder>) -> Vec<Stmt> {
    let name = kernel.local(l.index).name.clone();
    let mut fresh = |suffix: &str| kernel.fresh_local(format!("{name}_{suffix}"), Scalar::I64);
    let (at, start, until) = (fresh("at"), fresh("start"), fresh("until"));
    let here = Expr::Local(start);
    let mut stretch = vec![Stmt::LeaveUnless(Expr::Op(Op::Lt, vec![Expr::Local(at), l.hi.clone()])), Stmt::Let(start, Expr::Local(at))];
    let mut length: Option<Expr> = None;
    let mut instead = vec![];
    for remainder in found {
        let (first, offset) = (fresh("first"), fresh("offset"));
        let dividend = remainder.dividend.substitute(&mut |local| (local == l.index).then(|| here.clone()));
        stretch.push(Stmt::Let(first, remainder.value(dividend)));
        let first = Expr::Local(first);
        let (left, shift, value) = match remainder.slope > 0 {
            true => {
                (remainder.divisor.clone().minus(first.clone()), first.minus(here.clone()), Expr::Local(l.index).plus(Expr::Local(offset)))
            }
            false => (first.clone().plus(Expr::int(1)), first.plus(here.clone()), Expr::Local(offset).minus(Expr::Local(l.index))),
        };
        stretch.push(Stmt::Let(offset, shift));
        length = Some(match length {
            Some(length) => Expr::Op(Op::Min, vec![length, left]),
            None => left,
        });
        instead.push((remainder.whole, value));
    }
    let length = Expr::Op(Op::Max, vec![Expr::int(1), length.expect("there are remainders")]);
    // The difference to the end cannot be too large, the sum with the length might.
    let length = Expr::Op(Op::Min, vec![length, l.hi.clone().minus(here.clone())]);
    stretch.push(Stmt::Let(until, here.plus(length)));
    for s in &mut l.body {
        replace(s, &instead);
    }
    if let Order::Accumulation(locals, places) = &l.order {
        if places.iter().all(|place| meets_each_once(&l, place.buffer)) {
            l.order = if locals.is_empty() { Order::Independent } else { Order::Reduction(locals.clone()) };
        }
    }
    let first = l.lo.clone();
    l.lo = Expr::Local(start);
    l.hi = Expr::Local(until);
    stretch.push(Stmt::Loop(l));
    stretch.push(Stmt::Set(Target::Local(at), Expr::Local(until)));
    vec![Stmt::Var(at, first), Stmt::Forever(stretch)]
}

/// Takes remainders that are the same in all iterations before the loop.
fn taken_before(kernel: &mut Kernel, l: &mut Loop, fixed: Vec<Remainder>) -> Vec<Stmt> {
    let mut out = vec![];
    let mut instead = vec![];
    for remainder in fixed {
        let name = format!("{}_row", kernel.local(l.index).name);
        let local = kernel.fresh_local(name, Scalar::I64);
        out.push(Stmt::Let(local, remainder.value(remainder.dividend.clone())));
        instead.push((remainder.whole, Expr::Local(local)));
    }
    if !instead.is_empty() {
        l.body.iter_mut().for_each(|s| replace(s, &instead));
    }
    out
}

/// Whether each iteration adds to one place of a buffer, which no other meets.
fn meets_each_once(l: &Loop, buffer: Buffer) -> bool {
    let mut adds = 0;
    let mut moves = true;
    let mut reads = false;
    for s in &l.body {
        match s {
            Stmt::Add(Target::Place(b, offset), _) if *b == buffer => {
                adds += 1;
                moves &= offset.slope(l.index).and_then(|slope| slope.as_int()).is_some_and(|slope| slope != 0);
            }
            Stmt::Set(Target::Place(b, _), _) if *b == buffer => return false,
            s if !s.blocks().is_empty() => return false,
            _ => {}
        }
        s.for_each_expr(&mut |e| {
            reads |= e.any(&mut |e| matches!(e, Expr::Load(b, _) if *b == buffer));
        });
    }
    adds == 1 && moves && !reads
}

fn replace(s: &mut Stmt, instead: &[(Expr, Expr)]) {
    s.map_exprs(&mut |e| replaced(e, instead));
    for block in s.blocks_mut() {
        block.iter_mut().for_each(|s| replace(s, instead));
    }
}

fn replaced(e: Expr, instead: &[(Expr, Expr)]) -> Expr {
    if let Some((_, value)) = instead.iter().find(|(whole, _)| *whole == e) {
        return value.clone();
    }
    match e {
        Expr::Lit(_) | Expr::Local(_) => e,
        Expr::Load(b, offset) => Expr::Load(b, Box::new(replaced(*offset, instead))),
        Expr::Op(op, args) => Expr::Op(op, args.into_iter().map(|a| replaced(a, instead)).collect()),
        Expr::Partial(op, k, args) => Expr::Partial(op, k, args.into_iter().map(|a| replaced(a, instead)).collect()),
        Expr::Select(p, a, b) => {
            let [p, a, b] = [p, a, b].map(|e| Box::new(replaced(*e, instead)));
            Expr::Select(p, a, b)
        }
    }
}
