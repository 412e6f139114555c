//! Code that is no more than a few steps with whole arrays, moves and matrix products, as gradients of products are: a compiler
//! would take longer than the calls, so that the steps are taken as they stand.

use super::call::{Gemm, gemm};
use crate::loops::workspace::{self, Call, Entry};
use crate::loops::{Buffer, Expr, Home, Kernel, Matrix, Stmt};
use crate::scalar::Op;
use crate::types::{Lit, Scalar};
use std::ffi::c_void;

pub struct Steps(Kernel);

/// A call of sizes that the steps are for.
pub struct Sized<'a> {
    steps: &'a Steps,
    entry: Entry,
    /// Where the slots of the arena begin, in bytes.
    starts: Vec<usize>,
    /// How long it is, unless that is too long.
    pub work: Option<usize>,
}

impl Steps {
    /// Those of a kernel, if it consists of nothing else.
    pub fn of(kernel: &Kernel) -> Option<Steps> {
        let entry = Entry::new(kernel, &Call { sizes: vec![1; kernel.sizes.len()], scalars: vec![] });
        // Quotients may be of nothing.
        let is_known = |e: &Expr| entry.evaluate(e).is_some() && !e.any(&mut |e| matches!(e, Expr::Op(Op::IDiv | Op::IMod, _)));
        let is_there = |b: &Buffer| matches!(kernel.buffer(*b).home, Home::Input(_) | Home::Output(_) | Home::Arena(_));
        let is_step = |s: &Stmt| match s {
            Stmt::Mark(_) => true,
            Stmt::Allocate(b, _) => is_there(b),
            Stmt::Zero(to, offset, count) => is_there(to) && is_known(offset) && is_known(count),
            Stmt::Copy(to, to_offset, from, from_offset, count) => {
                is_there(to) && is_there(from) && [to_offset, from_offset, count].into_iter().all(is_known)
            }
            Stmt::Gemm(g) => {
                let is_matrix = |m: &Matrix| is_there(&m.buffer) && [&m.offset, &m.row_stride, &m.column_stride].into_iter().all(is_known);
                let are_known = [&g.rows, &g.columns, &g.depth].into_iter().all(is_known);
                let are_there = [&g.dest, &g.left, &g.right].into_iter().all(is_matrix);
                g.otherwise.is_empty() && matches!(g.scale, Expr::Lit(_)) && are_known && are_there
            }
            _ => false,
        };
        let are_known = kernel.arena.iter().all(|slot| is_known(&slot.count) && slot.copies.is_none());
        let can_be_told = kernel.assumed.iter().all(|condition| entry.holds(condition).is_some());
        (kernel.body.iter().all(is_step) && are_known && can_be_told).then(|| Steps(kernel.clone()))
    }

    /// For a call, if it is one of those that they are for.
    pub fn sized(&self, sizes: &[i64]) -> Option<Sized<'_>> {
        let entry = Entry::new(&self.0, &Call { sizes: sizes.to_vec(), scalars: vec![] });
        if !self.0.assumed.iter().all(|condition| entry.holds(condition) == Some(true)) {
            return None;
        }
        let slots = workspace::slots(&self.0, &entry, 1).expect("all is known");
        let work = slots.iter().map(|(_, end)| *end).max().unwrap_or(0);
        let starts = slots.into_iter().map(|(start, _)| start as usize).collect();
        Some(Sized { steps: self, entry, starts, work: isize::try_from(work).ok().map(|work| work as usize) })
    }
}

impl Sized<'_> {
    fn integer(&self, e: &Expr) -> i64 {
        self.entry.evaluate(e).expect("seen before") as i64
    }
    fn number(&self, e: &Expr) -> usize {
        self.integer(e).max(0) as usize
    }

    /// # Safety
    /// The arrays are those that the kernel is for, at these sizes, and `work` is as long as it must be.
    pub unsafe fn run(&self, inputs: &[*const c_void], outputs: &[*mut c_void], work: *mut u8, threads: i32) {
        let kernel = &self.steps.0;
        let width = |b: Buffer| kernel.buffer(b).scalar.bytes();
        // SAFETY: as promised.
        let address = |b: Buffer, offset: &Expr| unsafe {
            let start = match kernel.buffer(b).home {
                Home::Input(k) => inputs[k].cast::<u8>().cast_mut(),
                Home::Output(k) => outputs[k].cast::<u8>(),
                Home::Arena(slot) => work.add(self.starts[slot]),
                Home::Unplanned | Home::Stack(_) | Home::Reserve(_) => panic!("runtime: seen before"),
            };
            start.add(self.number(offset) * width(b))
        };
        for s in &kernel.body {
            match s {
                // SAFETY: as promised.
                Stmt::Zero(to, offset, count) => unsafe { address(*to, offset).write_bytes(0, self.number(count) * width(*to)) },
                Stmt::Copy(to, to_offset, from, from_offset, count) => unsafe {
                    address(*to, to_offset).copy_from(address(*from, from_offset), self.number(count) * width(*to))
                },
                Stmt::Gemm(g) => {
                    let at = |m: &Matrix| (address(m.buffer, &m.offset), self.integer(&m.row_stride), self.integer(&m.column_stride));
                    let matrices = [&g.dest, &g.left, &g.right].map(at);
                    let sides = [&g.rows, &g.columns, &g.depth].map(|side| self.integer(side));
                    match (kernel.buffer(g.dest.buffer).scalar, &g.scale) {
                        (Scalar::F64, Expr::Lit(Lit::F64(scale))) => product(gemm::<f64>, sides, matrices, *scale, g.accumulate, threads),
                        (Scalar::F32, Expr::Lit(Lit::F32(scale))) => product(gemm::<f32>, sides, matrices, *scale, g.accumulate, threads),
                        other => panic!("runtime: a product of {other:?}"),
                    }
                }
                _ => {}
            }
        }
    }
}

/// A matrix: where it begins, and how far its rows and columns are apart.
type At = (*mut u8, i64, i64);

fn product<T>(gemm: Gemm<T>, [rows, columns, depth]: [i64; 3], [d, l, r]: [At; 3], scale: T, accumulate: bool, threads: i32) {
    let (dest, left, right) = (d.0.cast::<T>(), l.0.cast::<T>(), r.0.cast::<T>());
    gemm(rows, columns, depth, dest, d.1, d.2, left, l.1, l.2, right, r.1, r.2, scale, accumulate as i32, threads);
}
