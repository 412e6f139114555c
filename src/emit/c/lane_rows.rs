//! Rows that lanes write: the numbers that each lane has for neighbours in memory.
//!
//! ```text
//! out[i * 30 + 0] = a; out[i * 30 + 1] = b; ..      a, b, ..: vectors, one lane for each i
//! ```
//! One by one these would be as many writes as there are numbers. Up to eight vectors are transposed in registers instead,
//! and each lane's part of a row is written at once. Where the statements write rows from end to end, a block of lanes writes
//! one piece of memory; if the array is larger than caches are, it is put together aside, and goes out in whole lines.

use super::lanes::Block;
use super::*;

/// The most bytes of a block that are put together aside.
const MOST_ASIDE: usize = 1 << 14;

impl Emitter<'_> {
    /// Writes the rows that the statements begin with, and says how many statements these are.
    pub(super) fn rows_written(&mut self, block: &Block, stmts: &[Stmt]) -> usize {
        let Some((b, base, columns)) = columns(block, self.names.kernel, stmts) else { return 0 };
        let lanes = block.lanes;
        let stride = lanes.stride(&base, block.index).expect("rows have a stride");
        let stmts = &stmts[..columns];
        let name = self.names.buffer(b).to_string();
        let Stmt::Set(Target::Place(_, offset), _) = &stmts[0] else { panic!("emit: a row of places") };
        let first = self.e(offset);
        let stride_text = self.names.at_level(&stride, UNARY);
        let scalar = self.names.kernel.buffer(b).scalar;
        let aside = lanes.lanes * columns * scalar.bytes();
        let whole = stride.as_int() == Some(columns as i64) && aside <= MOST_ASIDE;
        for m in 0..lanes.vectors {
            let place = format!("{name} + ({first}) + {} * {stride_text}", m * lanes.lanes);
            if !whole {
                self.rows_to(block, &place, &stride_text, stmts, b, m);
                continue;
            }
            self.streams = true;
            self.line("{");
            self.depth += 1;
            let ty = type_name(scalar);
            line!(self, "const bool streams = iv_streams({}, {});", block.count, columns * scalar.bytes());
            line!(self, "{ty} aside[{}] __attribute__((aligned(64)));", lanes.lanes * columns);
            line!(self, "{ty} *const place = {place}, *const to = streams ? aside : place;");
            self.rows_to(block, "to", &stride_text, stmts, b, m);
            line!(self, "if (streams) iv_stream(place, aside, {aside});");
            self.depth -= 1;
            self.line("}");
        }
        columns
    }

    /// Writes columns from a place on, as many as can be at once.
    fn rows_to(&mut self, block: &Block, place: &str, stride: &str, stmts: &[Stmt], b: Buffer, m: usize) {
        let suffix = self.suffix_of(block.lanes, b);
        let mut done = 0;
        while done < stmts.len() {
            let count = [8, 4, 2].into_iter().find(|c| *c <= stmts.len() - done).unwrap_or(1);
            let values = stmts[done..done + count].iter().map(|s| match s {
                Stmt::Set(_, e) => self.vector(block, e, m),
                other => panic!("emit: {other:?} in a row"),
            });
            let values = values.collect::<Vec<_>>().join(", ");
            match count {
                1 => line!(self, "iv_put_far_{suffix}({place} + {done}, {stride}, {values});"),
                _ => line!(self, "iv_put_{count}_rows_{suffix}({place} + {done}, {stride}, {values});"),
            }
            done += count;
        }
    }
}

/// How many statements from the first on write neighbours in memory, far from those of the next lane: the buffer, the offset
/// without its constant, and their number, which is at least two.
fn columns(block: &Block, kernel: &Kernel, stmts: &[Stmt]) -> Option<(Buffer, Expr, usize)> {
    let place = |s: &Stmt| match s {
        Stmt::Set(Target::Place(b, offset), _) => Some((*b, without_constant(offset))),
        _ => None,
    };
    let (b, (base, first)) = stmts.first().and_then(place)?;
    let stride = block.lanes.stride(&base, block.index)?.as_int();
    let numbers = kernel.buffer(b).scalar.is_number();
    if block.mask.is_some() || block.lanes.own.contains(&b) || !numbers || !block.lanes.varies(&base) || stride == Some(1) {
        return None;
    }
    let follows = |(k, s): &(usize, &Stmt)| {
        let mut reads = false;
        s.for_each_expr(&mut |e| reads |= e.any(&mut |e| matches!(e, Expr::Load(from, _) if *from == b)));
        !reads && place(s) == Some((b, (base.clone(), first.wrapping_add(*k as i64))))
    };
    // A row ends where that of the next lane begins.
    let most = stride.map_or(usize::MAX, |s| s.unsigned_abs() as usize);
    let count = stmts.iter().take(most).enumerate().take_while(follows).count();
    (count > 1).then_some((b, base, count))
}

/// An offset as a sum of something and a constant.
fn without_constant(e: &Expr) -> (Expr, i64) {
    if let Expr::Op(Op::Add, args) = e {
        if let [a, b] = args.as_slice() {
            if let Some(c) = b.as_int() {
                let (base, constant) = without_constant(a);
                return (base, constant.wrapping_add(c));
            }
        }
    }
    (e.clone(), 0)
}
