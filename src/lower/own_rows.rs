//! Rows that iterations add into, each into its own.
//!
//! ```text
//! zero out; for i { for c { out[i, k] += f(i, c, k) } }
//!   =  for i { zero row; for c { row[k] += f(i, c, k) }; out[i, k] = row[k] }
//! ```
//! In lanes the rows of all iterations then stand side by side as long as they are added to; and iterations that run again,
//! as the last block of lanes has them, write what they wrote.

use super::lanes::each;
use super::*;

/// How long rows may be that every iteration zeroes for itself: all lanes' lie in the nearest cache.
const MOST_ZEROED: i64 = 64;

/// The loop with rows of its own for what `before` has zeroed, or each iteration for itself; `None` where there is no such thing.
pub(super) fn with_own_rows(
    kernel: &mut Kernel,
    bounds: &mut FxHashMap<Buffer, Option<Expr>>,
    known: &FxHashSet<Local>,
    before: &[Stmt],
    l: &Loop,
) -> Option<Loop> {
    let (totals, places) = match &l.order {
        Order::Accumulation(totals, places) => (totals, places),
        Order::Independent => return with_zeroed_rows(kernel, bounds, known, l),
        Order::Sequential | Order::Reduction(_) => return None,
    };
    let is_there = |place: &&Accumulated| place.own_row && place.offset.as_int() == Some(0) && is_zeroed(before, place);
    let found: Vec<(Buffer, Expr)> =
        places.iter().filter(is_there).filter_map(|place| Some((place.buffer, row_length(l, place.buffer, known)?))).collect();
    if found.is_empty() {
        return None;
    }
    let (mut first, mut body, mut last) = (vec![], l.body.clone(), vec![]);
    for (buffer, length) in &found {
        let Row { zeroed, written } = own_row(kernel, bounds, l.index, *buffer, length, &mut body);
        first.extend(zeroed);
        last.push(written);
    }
    let left: Vec<Accumulated> = places.iter().filter(|p| found.iter().all(|(b, _)| *b != p.buffer)).cloned().collect();
    let order = match (left.is_empty(), totals.is_empty()) {
        (true, true) => Order::Independent,
        (true, false) => Order::Reduction(totals.clone()),
        (false, _) => Order::Accumulation(totals.clone(), left),
    };
    Some(Loop { order, body: [first, body, last].concat(), ..l.clone() })
}

/// The same of `for i { zero out[i]; for c { out[i, k] += f(i, c, k) } }`.
fn with_zeroed_rows(kernel: &mut Kernel, bounds: &mut FxHashMap<Buffer, Option<Expr>>, known: &FxHashSet<Local>, l: &Loop) -> Option<Loop> {
    let zeroed = |(k, s): (usize, &Stmt)| {
        let Stmt::Zero(buffer, offset, count) = s else { return None };
        let (stride, rest) = apart(offset, l.index)?;
        let short = count.as_int().is_some_and(|count| count <= MOST_ZEROED);
        let rows = short && stride == *count && rest == Expr::int(0) && !l.body[..k].iter().any(|s| mentions(s, *buffer));
        let behind = Loop { body: l.body[k + 1..].to_vec(), ..l.clone() };
        let adds = behind.body.iter().any(|s| matches!(s, Stmt::Loop(_)) && mentions(s, *buffer));
        (rows && adds && row_length(&behind, *buffer, known).as_ref() == Some(count)).then(|| (k, *buffer, count.clone()))
    };
    let found: Vec<_> = l.body.iter().enumerate().filter_map(zeroed).collect();
    if found.is_empty() {
        return None;
    }
    let mut body = l.body.clone();
    for (k, buffer, length) in found.into_iter().rev() {
        let mut behind = body.split_off(k + 1);
        body.pop();
        let Row { zeroed, written } = own_row(kernel, bounds, l.index, buffer, &length, &mut behind);
        body.extend(zeroed);
        body.extend(behind);
        body.push(written);
    }
    Some(Loop { body, ..l.clone() })
}

/// What makes a row, and what writes it where it belongs.
struct Row {
    zeroed: [Stmt; 2],
    written: Stmt,
}

/// A row of its own for what a body adds to the row of the index.
fn own_row(
    kernel: &mut Kernel,
    bounds: &mut FxHashMap<Buffer, Option<Expr>>,
    index: Local,
    buffer: Buffer,
    length: &Expr,
    body: &mut [Stmt],
) -> Row {
    let info = kernel.buffer(buffer).clone();
    let row = kernel.fresh_buffer(format!("{}_row", info.name), info.scalar, Home::Unplanned);
    bounds.insert(row, Some(length.clone()));
    body.iter_mut().for_each(|s| retarget(s, buffer, row, index));
    let written = each(kernel, length, &mut |k| {
        let place = Expr::Local(index).times(length.clone()).plus(k.clone());
        Stmt::Set(Target::Place(buffer, place), Expr::Load(row, Box::new(k)))
    });
    Row { zeroed: [Stmt::Allocate(row, length.clone()), Stmt::Zero(row, Expr::int(0), length.clone())], written }
}

/// Whether the last statement that has to do with the places zeroes them.
fn is_zeroed(before: &[Stmt], place: &Accumulated) -> bool {
    let last = before.iter().rev().find(|s| mentions(s, place.buffer));
    matches!(last, Some(Stmt::Zero(_, offset, count)) if *offset == place.offset && *count == place.count)
}

fn mentions(s: &Stmt, buffer: Buffer) -> bool {
    let own = match s {
        Stmt::Set(Target::Place(b, _), _) | Stmt::Add(Target::Place(b, _), _) | Stmt::Zero(b, _, _) | Stmt::Allocate(b, _) => *b == buffer,
        Stmt::Copy(to, _, from, _, _) => *to == buffer || *from == buffer,
        Stmt::Gemm(_) => true,
        _ => false,
    };
    let mut found = own;
    s.for_each_expr(&mut |e| found |= reads(e, buffer));
    found || s.blocks().iter().any(|b| b.iter().any(|s| mentions(s, buffer)))
}

fn reads(e: &Expr, buffer: Buffer) -> bool {
    e.any(&mut |e| matches!(e, Expr::Load(b, _) if *b == buffer))
}

/// How long rows are, if all that a loop does with the buffer is to add to places of the row of its index.
fn row_length(l: &Loop, buffer: Buffer, known: &FxHashSet<Local>) -> Option<Expr> {
    fn visit(block: &[Stmt], buffer: Buffer, index: Local, length: &mut Option<Expr>) -> bool {
        block.iter().all(|s| {
            let mut read = false;
            s.for_each_expr(&mut |e| read |= reads(e, buffer));
            let own = match s {
                Stmt::Add(Target::Place(b, at), _) if *b == buffer => match apart(at, index) {
                    Some((stride, _)) if length.is_none() || *length == Some(stride.clone()) => {
                        *length = Some(stride);
                        true
                    }
                    _ => false,
                },
                s => s.blocks().len() > 0 || !mentions(s, buffer),
            };
            let gemm = matches!(s, Stmt::Gemm(_));
            own && !read && !gemm && s.blocks().into_iter().all(|b| visit(b, buffer, index, length))
        })
    }
    let mut length = None;
    let only_adds = visit(&l.body, buffer, l.index, &mut length);
    length.filter(|length| only_adds && length.is_known(known) && *length != Expr::int(0))
}

/// An offset as a multiple of the index and what is left.
fn apart(e: &Expr, index: Local) -> Option<(Expr, Expr)> {
    if !e.mentions(index) {
        return Some((Expr::int(0), e.clone()));
    }
    match e {
        Expr::Local(_) => Some((Expr::int(1), Expr::int(0))),
        Expr::Op(op, args) => match (op, args.as_slice()) {
            (Op::Add, [a, b]) => {
                let ((s, r), (t, q)) = (apart(a, index)?, apart(b, index)?);
                Some((s.plus(t), r.plus(q)))
            }
            (Op::Sub, [a, b]) => {
                let ((s, r), (t, q)) = (apart(a, index)?, apart(b, index)?);
                Some((s.minus(t), r.minus(q)))
            }
            (Op::Mul, [a, b]) if !b.mentions(index) => apart(a, index).map(|(s, r)| (s.times(b.clone()), r.times(b.clone()))),
            (Op::Mul, [a, b]) if !a.mentions(index) => apart(b, index).map(|(s, r)| (s.times(a.clone()), r.times(a.clone()))),
            _ => None,
        },
        Expr::Lit(_) | Expr::Load(..) | Expr::Partial(..) | Expr::Select(..) => None,
    }
}

/// Adds to the row what is added to the buffer.
fn retarget(s: &mut Stmt, buffer: Buffer, row: Buffer, index: Local) {
    if let Stmt::Add(Target::Place(b, at), _) = s {
        if *b == buffer {
            let (_, within) = apart(at, index).expect("seen before");
            (*b, *at) = (row, within);
        }
    }
    s.blocks_mut().into_iter().for_each(|b| b.iter_mut().for_each(|s| retarget(s, buffer, row, index)));
}
