//! Rows that iterations add into, each into its own.
//!
//! ```text
//! zero out; for i { for c { out[i, k] += f(i, c, k) } }
//!   =  for i { zero row; for c { row[k] += f(i, c, k) }; out[i, k] = row[k] }
//! ```
//! and rows that iterations make, and then add to or read again, likewise.
//! In lanes the rows of all iterations then stand side by side as long as they are added to; and iterations that run again,
//! as the last block of lanes has them, write what they wrote.

use super::in_row::{InRow, in_row};
use super::lanes::{Known, each};
use super::*;

/// The loop with rows of its own for what `before` has zeroed, and for what each iteration makes itself; `None` where there is no
/// such thing.
pub(super) fn with_own_rows(
    kernel: &mut Kernel,
    bounds: &mut FxHashMap<Buffer, Option<Expr>>,
    known: &Known,
    before: &[Stmt],
    l: &Loop,
) -> Option<Loop> {
    let added = with_added_rows(kernel, bounds, &known.locals, before, l);
    let mut is_new = added.is_some();
    let l = added.unwrap_or_else(|| l.clone());
    let made = if l.order == Order::Sequential { l } else { with_made_rows(kernel, bounds, known, l, &mut is_new) };
    is_new.then_some(made)
}

fn with_added_rows(
    kernel: &mut Kernel,
    bounds: &mut FxHashMap<Buffer, Option<Expr>>,
    known: &FxHashSet<Local>,
    before: &[Stmt],
    l: &Loop,
) -> Option<Loop> {
    let Order::Accumulation(totals, places) = &l.order else { return None };
    let row = |place: &Accumulated| row_added_to(l, place.buffer, known).filter(|row| row.base == place.offset);
    let is_there = |place: &&Accumulated| place.own_row && is_zeroed(before, place);
    let found: Vec<(Buffer, InRow)> = places.iter().filter(is_there).filter_map(|place| Some((place.buffer, row(place)?))).collect();
    if found.is_empty() {
        return None;
    }
    let inside = outward::defined(l);
    let (mut first, mut body, mut last) = (vec![], l.body.clone(), vec![]);
    for (buffer, of) in &found {
        let own = own_row(kernel, bounds, l.index, *buffer, of, &mut body, &inside);
        first.extend([own.allocated, Stmt::Zero(own.row, Expr::int(0), of.length.clone())]);
        last.push(own.written);
    }
    let left: Vec<Accumulated> = places.iter().filter(|p| found.iter().all(|(b, _)| *b != p.buffer)).cloned().collect();
    let order = match (left.is_empty(), totals.is_empty()) {
        (true, true) => Order::Independent,
        (true, false) => Order::Reduction(totals.clone()),
        (false, _) => Order::Accumulation(totals.clone(), left),
    };
    Some(Loop { order, body: [first, body, last].concat(), ..l.clone() })
}

/// The same of `for i { out[i] = …; … out[i, k] …; out[i, k] += … }`: rows that iterations make, read again and add to.
fn with_made_rows(
    kernel: &mut Kernel,
    bounds: &mut FxHashMap<Buffer, Option<Expr>>,
    known: &Known,
    mut l: Loop,
    is_new: &mut bool,
) -> Loop {
    let mut seen: FxHashSet<Buffer> = allocated(&l.body);
    let mut at = 0;
    while at < l.body.len() {
        let mut written = vec![];
        writes(&l.body[at], &mut written);
        for buffer in written {
            if !seen.insert(buffer) || l.body[..at].iter().any(|s| mentions(s, buffer)) {
                continue;
            }
            let inside = outward::defined(&l);
            let Some(row) = made_row(&l.body[at..], buffer, l.index, &inside) else { continue };
            if !known.is_short(&row.length) || !row.length.is_known(&known.locals) {
                continue;
            }
            let (index, behind) = (l.index, &mut l.body[at..]);
            let own = own_row(kernel, bounds, index, buffer, &row, behind, &inside);
            l.body.insert(at, own.allocated);
            l.body.push(own.written);
            at += 1;
            *is_new = true;
        }
        at += 1;
    }
    l
}

/// The row of a buffer that statements make, the first of them, and then add to or read: no other is mentioned.
fn made_row(block: &[Stmt], buffer: Buffer, index: Local, inside: &FxHashSet<Local>) -> Option<InRow> {
    let first = match &block[0] {
        Stmt::Zero(_, offset, count) => {
            in_row(offset, &Expr::Local(index), inside).filter(|row| row.length == *count && row.within == Expr::int(0))?
        }
        Stmt::Loop(l) => {
            let at = l.body.iter().position(|s| mentions(s, buffer))?;
            let Stmt::Set(Target::Place(_, offset), value) = &l.body[at] else { return None };
            let row = in_row(offset, &Expr::Local(index), inside)?;
            let every = l.lo == Expr::int(0) && l.hi == row.length && row.within == Expr::Local(l.index);
            if !every || reads(value, buffer) {
                return None;
            }
            row
        }
        _ => return None,
    };
    let mut used = Used { row: &first, buffer, index, inside, again: false };
    (used.all(block, false) && used.again && first.length != Expr::int(0)).then_some(first)
}

/// Whether a buffer is only used in its row of the index, and whether that is read, or added to in loops.
struct Used<'a> {
    row: &'a InRow,
    buffer: Buffer,
    index: Local,
    inside: &'a FxHashSet<Local>,
    again: bool,
}

impl Used<'_> {
    fn all(&mut self, block: &[Stmt], looped: bool) -> bool {
        block.iter().all(|s| {
            let mut loads = vec![];
            s.for_each_expr(&mut |e| {
                e.any(&mut |e| {
                    loads.extend(if let Expr::Load(b, offset) = e { Some((*b, (**offset).clone())) } else { None });
                    false
                });
            });
            loads.retain(|(b, _)| *b == self.buffer);
            self.again |= !loads.is_empty();
            let target = match s {
                Stmt::Add(Target::Place(b, offset), _) if *b == self.buffer => {
                    self.again |= looped;
                    Some(offset)
                }
                Stmt::Set(Target::Place(b, offset), _) if *b == self.buffer => Some(offset),
                Stmt::Zero(b, offset, _) if *b == self.buffer => Some(offset),
                Stmt::Copy(to, _, from, _, _) if *to == self.buffer || *from == self.buffer => return false,
                Stmt::Gemm(_) => return false,
                _ => None,
            };
            let own = |offset: &Expr| in_row(offset, &Expr::Local(self.index), self.inside).is_some_and(|row| row.is_row_of(self.row));
            loads.iter().all(|(_, offset)| own(offset))
                && target.is_none_or(own)
                && s.blocks().into_iter().all(|b| self.all(b, looped || matches!(s, Stmt::Loop(_))))
        })
    }
}

/// The buffers that a statement writes to.
fn writes(s: &Stmt, out: &mut Vec<Buffer>) {
    match s {
        Stmt::Set(Target::Place(b, _), _) | Stmt::Add(Target::Place(b, _), _) | Stmt::Zero(b, _, _) => out.push(*b),
        _ => {}
    }
    s.blocks().into_iter().flatten().for_each(|s| writes(s, out));
}

/// Memory for a row, and what writes it where it belongs.
struct Own {
    row: Buffer,
    allocated: Stmt,
    written: Stmt,
}

/// A row of its own for what a body does with the row of the index.
fn own_row(
    kernel: &mut Kernel,
    bounds: &mut FxHashMap<Buffer, Option<Expr>>,
    index: Local,
    buffer: Buffer,
    of: &InRow,
    body: &mut [Stmt],
    inside: &FxHashSet<Local>,
) -> Own {
    let info = kernel.buffer(buffer).clone();
    let row = kernel.fresh_buffer(format!("{}_row", info.name), info.scalar, Home::Unplanned);
    bounds.insert(row, Some(of.length.clone()));
    let within = |offset: &Expr| in_row(offset, &Expr::Local(index), inside).expect("seen before").within;
    body.iter_mut().for_each(|s| retarget(s, buffer, row, &within));
    let written = each(kernel, &of.length, &mut |k| {
        Stmt::Set(Target::Place(buffer, of.place(Expr::Local(index), k.clone())), Expr::Load(row, Box::new(k)))
    });
    Own { row, allocated: Stmt::Allocate(row, of.length.clone()), written }
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

/// The row of the index, if all that a loop does with the buffer is to add to its places.
fn row_added_to(l: &Loop, buffer: Buffer, known: &FxHashSet<Local>) -> Option<InRow> {
    fn visit(block: &[Stmt], buffer: Buffer, index: Local, inside: &FxHashSet<Local>, row: &mut Option<InRow>) -> bool {
        block.iter().all(|s| {
            let mut read = false;
            s.for_each_expr(&mut |e| read |= reads(e, buffer));
            let own = match s {
                Stmt::Add(Target::Place(b, at), _) if *b == buffer => match in_row(at, &Expr::Local(index), inside) {
                    Some(found) if row.as_ref().is_none_or(|row| row.is_row_of(&found)) => {
                        *row = Some(found);
                        true
                    }
                    _ => false,
                },
                s => s.blocks().len() > 0 || !mentions(s, buffer),
            };
            let gemm = matches!(s, Stmt::Gemm(_));
            own && !read && !gemm && s.blocks().into_iter().all(|b| visit(b, buffer, index, inside, row))
        })
    }
    let mut row = None;
    let only_adds = visit(&l.body, buffer, l.index, &outward::defined(l), &mut row);
    row.filter(|row| only_adds && row.length.is_known(known) && row.length != Expr::int(0))
}

/// Does in the row what is done in the buffer.
fn retarget(s: &mut Stmt, buffer: Buffer, row: Buffer, within: &dyn Fn(&Expr) -> Expr) {
    s.map_exprs(&mut |e| {
        e.map_loads(&mut |b, offset| if b == buffer { Expr::Load(row, Box::new(within(&offset))) } else { Expr::Load(b, Box::new(offset)) })
    });
    match s {
        Stmt::Set(Target::Place(b, at), _) | Stmt::Add(Target::Place(b, at), _) | Stmt::Zero(b, at, _) if *b == buffer => {
            (*b, *at) = (row, within(at));
        }
        _ => {}
    }
    s.blocks_mut().into_iter().for_each(|b| b.iter_mut().for_each(|s| retarget(s, buffer, row, within)));
}
