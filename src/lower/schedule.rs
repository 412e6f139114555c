//! How loops run: innermost loops whose iterations do not meet are vector loops.

use super::work::Around;
use super::*;

/// A loop with less than this part of all that a call has to do is not worth what vectors take to compile.
const LEAST_SHARE: f64 = 1.0 / 8192.0;

/// Longer bodies take long to compile as vectors, and gain less.
const MOST_WEIGHT: usize = 100;

pub(super) fn schedule(kernel: &mut Kernel, options: Options) {
    let mut body = std::mem::take(&mut kernel.body);
    let entry = Entry::new(kernel, &kernel.call);
    let share = if options.lanes == InLanes::All { 0.0 } else { LEAST_SHARE };
    let around = Around::body(kernel, &entry, &body, share);
    body.iter_mut().for_each(|s| visit(kernel, &entry, s, options, around));
    kernel.body = body;
}

fn visit(kernel: &Kernel, entry: &Entry, stmt: &mut Stmt, options: Options, around: Around) {
    let within = around.inside(entry, stmt);
    if let Stmt::Loop(l) = stmt {
        if within.is_little(entry, &l.body) {
            return;
        }
        if l.body.iter().all(|s| is_straight(s)) && is_short(&l.body) && is_in_any_order(kernel, &l.order, options) {
            l.schedule = Schedule::Vector;
        }
    }
    stmt.blocks_mut().into_iter().for_each(|b| b.iter_mut().for_each(|s| visit(kernel, entry, s, options, within)));
}

/// Whether a body is not too long for vectors.
pub(super) fn is_short(body: &[Stmt]) -> bool {
    body.iter().map(weight).sum::<usize>() <= MOST_WEIGHT
}

/// Whether iterations may run side by side.
pub(super) fn is_in_any_order(kernel: &Kernel, order: &Order, options: Options) -> bool {
    match order {
        Order::Sequential | Order::Accumulation(..) => false,
        Order::Independent => true,
        Order::Reduction(locals) => {
            // Integers and truth values come out the same in any order.
            let exact = locals.iter().all(|(l, _)| !kernel.local(*l).scalar.is_float());
            !locals.is_empty() && (exact || !options.strict)
        }
    }
}

/// Whether a statement may stand in a vector loop.
pub(super) fn is_straight(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Let(..) | Stmt::Var(..) | Stmt::Set(..) | Stmt::Add(..) => true,
        Stmt::If(_, a, b) => a.iter().chain(b).all(is_straight),
        Stmt::Forever(_) | Stmt::LeaveUnless(_) => false,
        Stmt::Loop(_) | Stmt::Allocate(..) | Stmt::Zero(..) | Stmt::Copy(..) | Stmt::Check(_) | Stmt::Gemm(_) => false,
        Stmt::Count(_) | Stmt::Mark(_) => false,
    }
}

/// The operations of a statement. Where it reads and writes costs little: loops go from place to place by themselves.
fn weight(stmt: &Stmt) -> usize {
    let mut total = 1;
    match stmt {
        Stmt::Set(_, e) | Stmt::Add(_, e) => total += size(e),
        s => s.for_each_expr(&mut |e| total += size(e)),
    }
    total + stmt.blocks().iter().map(|b| b.iter().map(weight).sum::<usize>()).sum::<usize>()
}
fn size(e: &Expr) -> usize {
    match e {
        Expr::Load(_, at) => loads(at) + 1,
        e => {
            let mut total = 1;
            e.for_each_child(&mut |c| total += size(c));
            total
        }
    }
}
fn loads(e: &Expr) -> usize {
    let mut total = matches!(e, Expr::Load(..)) as usize;
    e.for_each_child(&mut |c| total += loads(c));
    total
}
