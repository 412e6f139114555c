//! Where buffers live: beside the locals, in the call's arena, or in a reserve that grows.
//!
//! A buffer lives from its allocation to the last statement of its block that mentions it. The arena is laid out once
//! per call, before anything runs: a slot begins behind the slots that are in use when it is taken, and buffers of one
//! size whose lives do not meet share a slot. In a parallel loop every thread has its own copy of a slot, one behind the
//! other, so all slots of its body stand apart: threads are not in step. The size of a buffer must be known at entry. A
//! size that depends on an enclosing index is bounded over the index's range where it is monotone in it; where no bound
//! is found (sizes out of data), the buffer has a reserve, which grows and is kept until the call ends. So has one within
//! loops that data end, if it is huge whatever the sizes are.

use super::*;
use crate::types::size::Atom;

/// Buffers of at most this many elements, by a constant, stand beside the locals.
const SMALL: i64 = 64;

/// Buffers of so many elements, by a constant, within loops that data end are taken when they are reached.
pub(super) const HUGE: i64 = 1 << 16;

/// What is known at entry of an integer variable.
#[derive(Clone, Debug)]
pub(super) enum Extent {
    /// Its value.
    Entry,
    /// That it is below `hi` and not below `lo`.
    Index { lo: Option<Size>, hi: Option<Size> },
    /// That it stands for this.
    Value(Option<Size>),
}

impl Lowering<'_> {
    /// The number of elements that an array has at most, as far as it is known at entry.
    pub fn bound(&mut self, shape: &[Size]) -> Option<Expr> {
        let mut count = Expr::int(1);
        for axis in shape {
            let most = self.most(&axis.axis(), 0)?;
            let nonneg = most.terms().all(|(m, c)| c > 0 && m.iter().all(|a| self.is_size_parameter(a)));
            let extent = self.size(&most);
            count = count.times(if nonneg { extent } else { Expr::Op(Op::Max, vec![Expr::int(0), extent]) });
        }
        Some(count)
    }

    fn is_size_parameter(&self, atom: &Atom) -> bool {
        let Atom::Var(v) = atom else { return false };
        matches!(self.env.get(v), Some(Val::Scalar(Expr::Local(l))) if self.kernel.sizes.contains(l))
    }

    /// An upper bound that is known at entry.
    pub fn most(&self, size: &Size, depth: usize) -> Option<Size> {
        if depth > 32 {
            return None;
        }
        let mut vars = vec![];
        size.variables(&mut vars);
        // Variables are numbered in the order they are made, which need not be that of their scopes: an inner one may
        // stand for outer ones, so one is replaced at a time until only those of the entry are left.
        let Some(v) = vars.into_iter().find(|v| !matches!(self.ranges.get(v), Some(Extent::Entry))) else {
            return Some(size.clone());
        };
        let with = |value: &Size| size.substitute(&|w| (w == v).then(|| value.clone()));
        match self.ranges.get(&v)? {
            Extent::Entry => unreachable!("filtered above"),
            Extent::Value(value) => self.most(&with(value.as_ref()?), depth + 1),
            Extent::Index { lo, hi } => {
                // Is the size monotone in v? The step from v to v + 1 tells.
                let step = with(&Size::var(v).add(&Size::constant(1))).sub(size);
                if self.facts.prove_nonneg(&step) {
                    self.most(&with(&hi.as_ref()?.sub(&Size::constant(1))), depth + 1)
                } else if self.facts.prove_nonneg(&step.scale(-1)) {
                    self.most(&with(lo.as_ref()?), depth + 1)
                } else {
                    let terms: Vec<_> = size.terms().collect();
                    match terms.as_slice() {
                        [(m, 1)] => match &m[..] {
                            [Atom::Max(a, b)] => Some(self.most(a, depth + 1)?.maximum(&self.most(b, depth + 1)?)),
                            [Atom::Min(a, b)] => match (self.most(a, depth + 1), self.most(b, depth + 1)) {
                                (Some(a), Some(b)) => Some(a.minimum(&b)),
                                (a, b) => a.or(b),
                            },
                            _ => None,
                        },
                        _ => None,
                    }
                }
            }
        }
    }
}

/// Gives every buffer its home.
pub(super) fn plan(kernel: &mut Kernel, bounds: &FxHashMap<Buffer, Option<Expr>>) {
    let body = std::mem::take(&mut kernel.body);
    let mut planner = Planner { kernel, bounds, live: vec![], free: vec![], copies: None };
    planner.block(&body);
    kernel.body = body;
}

struct Planner<'a> {
    kernel: &'a mut Kernel,
    bounds: &'a FxHashMap<Buffer, Option<Expr>>,
    /// Slots in use; of a parallel loop around, also those that were in use before.
    live: Vec<usize>,
    /// Slots that were in use before, and can be for a buffer of the same size.
    free: Vec<usize>,
    /// The parallel loop around.
    copies: Option<Chunks>,
}

impl Planner<'_> {
    fn block(&mut self, block: &[Stmt]) {
        // The last statement of this block that mentions each buffer allocated in it.
        let mut taken: Vec<(usize, usize)> = vec![];
        for (at, stmt) in block.iter().enumerate() {
            if let Stmt::Allocate(buffer, count) = stmt {
                let last = block.iter().rposition(|s| mentions(s, *buffer)).unwrap_or(at);
                let around = self.copies.clone();
                let parts = chunks_of_parts(&block[at..], *buffer);
                let is_parts = parts.is_some();
                self.copies = around.clone().or(parts);
                if let Some(slot) = self.take(*buffer, count, is_parts) {
                    taken.push((last, slot));
                }
                self.copies = around;
            }
            if let Stmt::Loop(Loop { schedule: Schedule::Parallel(p), body, .. }) = stmt {
                let live = self.live.clone();
                self.copies = Some(p.chunks.clone());
                self.block(body);
                self.copies = None;
                self.live = live;
            } else {
                stmt.blocks().into_iter().for_each(|b| self.block(b));
            }
            taken.retain(|(last, slot)| {
                let ends = *last <= at;
                if ends {
                    // The copies of another slot in the same place would lie elsewhere for each thread, and threads are not
                    // in step: until a parallel loop ends its slots are kept apart from each other.
                    if self.copies.is_none() {
                        self.live.retain(|s| s != slot);
                    }
                    self.free.push(*slot);
                }
                !ends
            });
        }
    }

    /// The slot of a buffer that lives in the arena.
    fn take(&mut self, buffer: Buffer, count: &Expr, is_parts: bool) -> Option<usize> {
        let scalar = self.kernel.buffer(buffer).scalar;
        let (home, slot) = match (count.as_int(), self.bounds.get(&buffer).cloned().flatten()) {
            (Some(c), _) if c <= SMALL && !is_parts => (Home::Stack(c.max(1) as usize), None),
            (_, Some(bound)) => {
                let slot = self.slot(bound, scalar);
                (Home::Arena(slot), Some(slot))
            }
            (_, None) => {
                self.kernel.reserves += 1;
                (Home::Reserve(self.kernel.reserves - 1), None)
            }
        };
        self.kernel.buffers[buffer.0 as usize].home = home;
        slot
    }

    fn slot(&mut self, count: Expr, scalar: Scalar) -> usize {
        let arena = &self.kernel.arena;
        let apart = |s: usize, t: usize| arena[s].behind.contains(&t) || arena[t].behind.contains(&s);
        let again = self.free.iter().position(|s| {
            let same = arena[*s].count == count && arena[*s].scalar == scalar && arena[*s].copies == self.copies;
            same && self.live.iter().all(|t| s == t || apart(*s, *t))
        });
        let slot = match again {
            Some(k) => self.free.remove(k),
            None => {
                self.kernel.arena.push(Slot { count, scalar, behind: self.live.clone(), copies: self.copies.clone() });
                self.kernel.arena.len() - 1
            }
        };
        if !self.live.contains(&slot) {
            self.live.push(slot);
        }
        slot
    }
}

/// How the loop is cut whose chunks add into parts of this buffer.
fn chunks_of_parts(block: &[Stmt], buffer: Buffer) -> Option<Chunks> {
    block.iter().find_map(|s| match s {
        Stmt::Loop(Loop { schedule: Schedule::Parallel(p), .. }) if p.private.iter().any(|p| p.parts == buffer) => Some(p.chunks.clone()),
        _ => None,
    })
}

/// Whether a statement, or one inside it, reads or writes the buffer.
pub(super) fn mentions(stmt: &Stmt, buffer: Buffer) -> bool {
    let own = match stmt {
        Stmt::Set(Target::Place(b, _), _) | Stmt::Add(Target::Place(b, _), _) | Stmt::Zero(b, _, _) => *b == buffer,
        Stmt::Copy(a, _, b, _, _) => *a == buffer || *b == buffer,
        Stmt::Loop(Loop { schedule: Schedule::Parallel(p), .. }) => p.private.iter().any(|p| p.parts == buffer || p.buffer == buffer),
        Stmt::Gemm(g) => [&g.dest, &g.left, &g.right].iter().any(|m| m.buffer == buffer),
        _ => false,
    };
    let mut found = own;
    stmt.for_each_expr(&mut |e| found = found || e.any(&mut |e| matches!(e, Expr::Load(b, _) if *b == buffer)));
    found || stmt.blocks().iter().any(|block| block.iter().any(|s| mentions(s, buffer)))
}
