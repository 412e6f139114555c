//! Code that is no more than a few steps with whole arrays, moves and matrix products, as gradients of products are: a compiler
//! would take longer than the calls, so that the steps are taken as they stand.

use super::call::{Gemm, gemm};
use super::team;
use crate::loops::workspace::{self, Call, Entry};
use crate::loops::{Buffer, Expr, Home, Kernel, Local, Loop, Matrix, Stmt, Target};
use crate::scalar::Op;
use crate::types::Lit;
use rustc_hash::FxHashMap;
use std::ffi::c_void;

/// The steps of a kernel, for calls of any sizes that they are for.
pub struct Steps {
    kernel: Kernel,
    body: Vec<Step<Expr>>,
}

/// The steps of calls of certain sizes.
pub struct Fitted {
    steps: Vec<Step<i64>>,
    /// Where the slots of the arena begin, in bytes.
    starts: Vec<usize>,
    /// How long it is, unless that is too long.
    pub work: Option<usize>,
}

/// A step, with expressions of the sizes, or with numbers. Offsets, strides and counts are of elements.
enum Step<N> {
    Zero {
        to: At<N>,
        count: N,
    },
    Copy {
        to: At<N>,
        from: At<N>,
        count: N,
    },
    /// The same number again and again: along each axis so far apart, and so often.
    Fill {
        to: At<N>,
        axes: Vec<(N, N)>,
        number: Lit,
    },
    Product {
        sides: [N; 3],
        matrices: [(At<N>, N, N); 3],
        scale: Lit,
        accumulate: bool,
    },
}

struct At<N> {
    buffer: Buffer,
    offset: N,
}

impl Steps {
    /// Those of a kernel, if it consists of nothing else.
    pub fn of(kernel: &Kernel) -> Option<Steps> {
        let entry = Entry::new(kernel, &Call { sizes: vec![1; kernel.sizes.len()], scalars: vec![] });
        // Quotients may be of nothing.
        let is_known = |e: &Expr| entry.evaluate(e).is_some() && !e.any(&mut |e| matches!(e, Expr::Op(Op::IDiv | Op::IMod, _)));
        let is_there = |b: Buffer| matches!(kernel.buffer(b).home, Home::Input(_) | Home::Output(_) | Home::Arena(_));
        let mut body = vec![];
        for s in &kernel.body {
            match s {
                Stmt::Mark(_) => {}
                Stmt::Allocate(b, _) if is_there(*b) => {}
                s => body.push(step(s)?),
            }
        }
        let are_known = body.iter().all(|step: &Step<Expr>| {
            let (arrays, numbers) = step.parts();
            arrays.into_iter().all(is_there) && numbers.into_iter().all(is_known)
        });
        let is_planned = kernel.arena.iter().all(|slot| is_known(&slot.count) && slot.copies.is_none());
        let can_be_told = kernel.assumed.iter().all(|condition| entry.holds(condition).is_some());
        (are_known && is_planned && can_be_told).then(|| Steps { kernel: kernel.clone(), body })
    }

    /// For a call, if it is one of those that they are for.
    pub fn fitted(&self, sizes: &[i64]) -> Option<Fitted> {
        let entry = Entry::new(&self.kernel, &Call { sizes: sizes.to_vec(), scalars: vec![] });
        if !self.kernel.assumed.iter().all(|condition| entry.holds(condition) == Some(true)) {
            return None;
        }
        let slots = workspace::slots(&self.kernel, &entry, 1).expect("all is known");
        let work = slots.iter().map(|(_, end)| *end).max().unwrap_or(0);
        let starts = slots.into_iter().map(|(start, _)| start as usize).collect();
        let number = |e: &Expr| entry.evaluate(e).expect("all is known") as i64;
        let steps = self.body.iter().map(|step| step.map(&number)).collect();
        Some(Fitted { steps, starts, work: isize::try_from(work).ok().map(|work| work as usize) })
    }

    /// # Safety
    /// The arrays are those that the kernel is for, at these sizes, and `work` is as long as it must be.
    pub unsafe fn run(&self, fitted: &Fitted, inputs: &[*const c_void], outputs: &[*mut c_void], work: *mut u8, threads: i32) {
        let scalar = |at: &At<i64>| self.kernel.buffer(at.buffer).scalar;
        let bytes = |at: &At<i64>, count: i64| count.max(0) as usize * scalar(at).bytes();
        // SAFETY: as promised.
        let address = |at: &At<i64>| unsafe {
            let start = match self.kernel.buffer(at.buffer).home {
                Home::Input(k) => inputs[k].cast::<u8>().cast_mut(),
                Home::Output(k) => outputs[k].cast::<u8>(),
                Home::Arena(slot) => work.add(fitted.starts[slot]),
                Home::Unplanned | Home::Stack(_) | Home::Reserve(_) => panic!("runtime: seen before"),
            };
            start.add(bytes(at, at.offset))
        };
        for step in &fitted.steps {
            match step {
                // SAFETY: as promised.
                Step::Zero { to, count } => {
                    let to_at = Place(address(to));
                    in_parts(bytes(to, *count), threads, &|start, length| unsafe { to_at.at(start).write_bytes(0, length) });
                }
                // SAFETY: as promised.
                Step::Copy { to, from, count } => {
                    let (to_at, from_at) = (Place(address(to)), Place(address(from)));
                    in_parts(bytes(to, *count), threads, &|start, length| unsafe { to_at.at(start).copy_from(from_at.at(start), length) });
                }
                Step::Fill { axes, .. } if axes.iter().any(|(_, count)| *count <= 0) => {}
                Step::Fill { to, axes, number } => unsafe {
                    match number {
                        Lit::F64(x) => fill(address(to).cast(), axes, *x),
                        Lit::F32(x) => fill(address(to).cast(), axes, *x),
                        Lit::I64(n) => fill(address(to).cast(), axes, *n),
                        Lit::I32(n) => fill(address(to).cast(), axes, *n),
                        Lit::Bool(b) => fill(address(to).cast(), axes, *b),
                    }
                },
                Step::Product { sides, matrices, scale, accumulate } => {
                    let matrices = [0, 1, 2].map(|k| (address(&matrices[k].0), matrices[k].1, matrices[k].2));
                    match scale {
                        Lit::F64(scale) => product(gemm::<f64>, *sides, matrices, *scale, *accumulate, threads),
                        Lit::F32(scale) => product(gemm::<f32>, *sides, matrices, *scale, *accumulate, threads),
                        other => panic!("runtime: a product scaled by {other:?}"),
                    }
                }
            }
        }
    }
}

/// A statement as a step, if it is one.
fn step(s: &Stmt) -> Option<Step<Expr>> {
    let at = |buffer: &Buffer, offset: &Expr| At { buffer: *buffer, offset: offset.clone() };
    match s {
        Stmt::Zero(to, offset, count) => Some(Step::Zero { to: at(to, offset), count: count.clone() }),
        Stmt::Copy(to, to_offset, from, from_offset, count) => {
            Some(Step::Copy { to: at(to, to_offset), from: at(from, from_offset), count: count.clone() })
        }
        Stmt::Gemm(g) if g.otherwise.is_empty() => {
            let Expr::Lit(scale @ (Lit::F64(_) | Lit::F32(_))) = &g.scale else { return None };
            let matrix = |m: &Matrix| (at(&m.buffer, &m.offset), m.row_stride.clone(), m.column_stride.clone());
            Some(Step::Product {
                sides: [g.rows.clone(), g.columns.clone(), g.depth.clone()],
                matrices: [matrix(&g.dest), matrix(&g.left), matrix(&g.right)],
                scale: *scale,
                accumulate: g.accumulate,
            })
        }
        Stmt::Loop(l) => filling(l),
        _ => None,
    }
}

/// Nested loops that set one place after the other, equally far apart, to the same number.
fn filling(outermost: &Loop) -> Option<Step<Expr>> {
    let mut named: FxHashMap<Local, Expr> = FxHashMap::default();
    let mut loops: Vec<&Loop> = vec![];
    let mut block = std::slice::from_ref(last_of(outermost, &mut loops, &mut named)?);
    while let [Stmt::Loop(l)] = block {
        block = std::slice::from_ref(last_of(l, &mut loops, &mut named)?);
    }
    let [Stmt::Set(Target::Place(buffer, offset), Expr::Lit(number))] = block else { return None };
    let offset = offset.substitute(&mut |l| named.get(&l).cloned());
    let mut axes = vec![];
    for l in &loops {
        let (apart, count) = (offset.slope(l.index)?, l.hi.clone().minus(l.lo.clone()));
        // All rows are alike.
        if loops.iter().any(|other| apart.mentions(other.index) || l.lo.mentions(other.index) || l.hi.mentions(other.index)) {
            return None;
        }
        axes.push((apart, count));
    }
    let first = offset.substitute(&mut |local| loops.iter().find(|l| l.index == local).map(|l| l.lo.clone()));
    Some(Step::Fill { to: At { buffer: *buffer, offset: first }, axes, number: *number })
}

/// The last statement of a loop's body, before which others are only named.
fn last_of<'a>(l: &'a Loop, loops: &mut Vec<&'a Loop>, named: &mut FxHashMap<Local, Expr>) -> Option<&'a Stmt> {
    loops.push(l);
    let (last, before) = l.body.split_last()?;
    for s in before {
        let Stmt::Let(local, e) = s else { return None };
        let e = e.substitute(&mut |l| named.get(&l).cloned());
        named.insert(*local, e);
    }
    Some(last)
}

impl<N> Step<N> {
    /// All its arrays, and all its numbers.
    fn parts(&self) -> (Vec<Buffer>, Vec<&N>) {
        let (places, mut numbers): (Vec<&At<N>>, Vec<&N>) = match self {
            Step::Zero { to, count } => (vec![to], vec![count]),
            Step::Copy { to, from, count } => (vec![to, from], vec![count]),
            Step::Fill { to, axes, number: _ } => (vec![to], axes.iter().flat_map(|(apart, count)| [apart, count]).collect()),
            Step::Product { sides, matrices, .. } => {
                let strides = matrices.iter().flat_map(|(_, rows, columns)| [rows, columns]);
                (matrices.iter().map(|(at, _, _)| at).collect(), sides.iter().chain(strides).collect())
            }
        };
        numbers.extend(places.iter().map(|at| &at.offset));
        (places.into_iter().map(|at| at.buffer).collect(), numbers)
    }

    fn map<M>(&self, f: &dyn Fn(&N) -> M) -> Step<M> {
        let at = |at: &At<N>| At { buffer: at.buffer, offset: f(&at.offset) };
        match self {
            Step::Zero { to, count } => Step::Zero { to: at(to), count: f(count) },
            Step::Copy { to, from, count } => Step::Copy { to: at(to), from: at(from), count: f(count) },
            Step::Fill { to, axes, number } => {
                let axes = axes.iter().map(|(apart, count)| (f(apart), f(count))).collect();
                Step::Fill { to: at(to), axes, number: *number }
            }
            Step::Product { sides: [a, b, c], matrices: [d, l, r], scale, accumulate } => {
                let matrix = |m: &(At<N>, N, N)| (at(&m.0), f(&m.1), f(&m.2));
                Step::Product {
                    sides: [f(a), f(b), f(c)],
                    matrices: [matrix(d), matrix(l), matrix(r)],
                    scale: *scale,
                    accumulate: *accumulate,
                }
            }
        }
    }
}

/// # Safety
/// There are so many places from the first on.
unsafe fn fill<T: Copy>(first: *mut T, axes: &[(i64, i64)], number: T) {
    // SAFETY: as promised.
    unsafe {
        match axes {
            [] => first.write(number),
            [(1, count)] => std::slice::from_raw_parts_mut(first, *count as usize).fill(number),
            [(apart, count), inner @ ..] => (0..*count).for_each(|k| fill(first.offset((k * apart) as isize), inner, number)),
        }
    }
}

/// Moves or fills so many bytes, in parts where they are many.
fn in_parts(bytes: usize, threads: i32, part: &(dyn Fn(usize, usize) + Sync)) {
    let parts = team::parts_of_bytes(bytes, threads);
    if parts == 1 {
        return part(0, bytes);
    }
    let each = bytes.div_ceil(parts).next_multiple_of(4096);
    team::each_part(parts, &|k| {
        let start = bytes.min(k * each);
        part(start, each.min(bytes - start));
    });
}

/// Where an array begins of which threads have parts that do not overlap.
#[derive(Clone, Copy)]
struct Place(*mut u8);
// SAFETY: no place is written by one thread and used by another.
unsafe impl Sync for Place {}
impl Place {
    /// # Safety
    /// The array has so many bytes, or more.
    unsafe fn at(&self, bytes: usize) -> *mut u8 {
        // SAFETY: as promised.
        unsafe { self.0.add(bytes) }
    }
}

/// A matrix: where it begins, and how far its rows and columns are apart.
type Strided = (*mut u8, i64, i64);

/// A product of matrices by the threads of a call, as `iv_shared_gemm` of iverson.h has it: the longer side is cut among them.
fn product<T: Copy + Sync>(
    gemm: Gemm<T>,
    [rows, columns, depth]: [i64; 3],
    [d, l, r]: [Strided; 3],
    scale: T,
    accumulate: bool,
    threads: i32,
) {
    let by_rows = rows >= columns;
    let (side, other) = if by_rows { (rows, columns) } else { (columns, rows) };
    let parts = team::parts_of_product(side, other, depth, threads as i64);
    let [dest, left, right] = [d, l, r].map(|m| Place(m.0));
    team::each_part(parts as usize, &|part| {
        let from = team::part_start(side, parts, part as i64);
        let count = team::part_start(side, parts, part as i64 + 1) - from;
        let (row, column, rows, columns) = if by_rows { (from, 0, count, columns) } else { (0, from, rows, count) };
        let place = |m: Place, elements: i64| m.0.cast::<T>().wrapping_offset(elements as isize);
        let (to, a, b) = (place(dest, row * d.1 + column * d.2), place(left, row * l.1), place(right, column * r.2));
        gemm(rows, columns, depth, to, d.1, d.2, a, l.1, l.2, b, r.1, r.2, scale, accumulate as i32);
    });
}
