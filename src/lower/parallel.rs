//! Which loops run over threads.
//!
//! The outermost loops whose iterations do not follow one another, cut into chunks by their sizes alone. Totals are kept
//! for each chunk and combined in order, and so are arrays that iterations add into, where that is little beside the
//! work: the result is the same for any number of threads. What iterations share is only read.

use super::*;
use crate::types::size::Atom;

/// The most chunks of a loop, and of a loop that adds into arrays, which every chunk has a part of.
const MOST: usize = 64;
const MOST_PARTS: usize = 16;
/// The most statements of a body that is written twice, with threads and without.
const MOST_TWICE: usize = 40;
/// What a function call counts for beside an addition, and what a loop of unknown length.
const CALL: i64 = 16;
const UNKNOWN: i64 = 16;

pub(super) fn parallel(kernel: &mut Kernel, bounds: &mut FxHashMap<Buffer, Option<Expr>>, options: Options) {
    let known = kernel.known_at_entry();
    let entry = Entry::new(kernel, &kernel.call);
    let body = std::mem::take(&mut kernel.body);
    let mut marker = Marker { kernel, bounds, known, entry, here: FxHashSet::default(), again: false, options };
    let body = marker.block(body);
    kernel.body = body;
}

struct Marker<'a> {
    kernel: &'a mut Kernel,
    bounds: &'a mut FxHashMap<Buffer, Option<Expr>>,
    /// Locals that are known at entry.
    known: FxHashSet<Local>,
    /// Those of which the call at hand has told the values.
    entry: Entry,
    /// Locals that are computed before the statement at hand, once and for all.
    here: FxHashSet<Local>,
    /// Whether a loop stands around.
    again: bool,
    options: Options,
}

impl Marker<'_> {
    fn block(&mut self, block: Vec<Stmt>) -> Vec<Stmt> {
        let mut out = vec![];
        for mut stmt in block {
            let before = match &mut stmt {
                Stmt::Loop(l) => match self.schedule(l) {
                    Some((parallel, before)) => {
                        l.schedule = Schedule::Parallel(Box::new(parallel));
                        before
                    }
                    None => {
                        if l.order == Order::Sequential {
                            l.body = self.repeated(std::mem::take(&mut l.body));
                        }
                        vec![]
                    }
                },
                Stmt::Let(local, _) => {
                    self.here.insert(*local);
                    vec![]
                }
                Stmt::If(_, yes, no) => {
                    *yes = self.block(std::mem::take(yes));
                    *no = self.block(std::mem::take(no));
                    vec![]
                }
                Stmt::Forever(body) => {
                    *body = self.repeated(std::mem::take(body));
                    vec![]
                }
                _ => vec![],
            };
            out.extend(before);
            out.push(stmt);
        }
        out
    }

    fn repeated(&mut self, body: Vec<Stmt>) -> Vec<Stmt> {
        let outer = std::mem::replace(&mut self.again, true);
        let body = self.block(body);
        self.again = outer;
        body
    }

    /// The cost as an expression, like terms put together.
    fn cost_of(&self, block: &[Stmt]) -> Expr {
        let mut total = Expr::int(0);
        for (monomial, coefficient) in self.cost(block).terms() {
            let factors = monomial.iter().filter_map(|atom| match atom {
                Atom::Var(v) => Some(Expr::Local(Local(v.0))),
                _ => None,
            });
            total = total.plus(factors.fold(Expr::int(coefficient), Expr::times));
        }
        total
    }

    /// How a loop is cut, and what has to be allocated before it; `None` if it is not to be.
    fn schedule(&mut self, l: &Loop) -> Option<(Parallel, Vec<Stmt>)> {
        let cost = self.cost_of(&l.body);
        let is_here = |e: &Expr| {
            !e.any(&mut |e| match e {
                Expr::Local(local) => !self.known.contains(local) && !self.here.contains(local),
                Expr::Load(..) => true,
                Expr::Lit(_) | Expr::Op(..) | Expr::Partial(..) | Expr::Select(..) => false,
            })
        };
        if ![&l.lo, &l.hi, &cost].iter().all(|e| is_here(e)) || self.grows(&l.body) {
            return None;
        }
        let planned = [&l.lo, &l.hi, &cost].iter().all(|e| e.is_known(&self.known));
        if matches!((l.lo.as_int(), l.hi.as_int()), (Some(lo), Some(hi)) if hi.wrapping_sub(lo) < 8) {
            return None;
        }
        let mut most = MOST;
        let (locals, places) = match &l.order {
            Order::Sequential => return None,
            Order::Independent => (&[][..], &[][..]),
            Order::Reduction(locals) => (locals.as_slice(), &[][..]),
            Order::Accumulation(locals, places) => (locals.as_slice(), places.as_slice()),
        };
        // Totals of chunks add up in another order.
        let shared: Vec<&Accumulated> = places.iter().filter(|p| !p.own_row).collect();
        if self.options.strict && (!locals.is_empty() || !shared.is_empty()) {
            return None;
        }
        let (mut private, mut before, mut elements) = (vec![], vec![], Expr::int(0));
        for place in shared {
            if !planned
                || place.offset.as_int() != Some(0)
                || !place.count.is_known(&self.known)
                || private.iter().any(|p: &Private| p.buffer == place.buffer)
            {
                return None;
            }
            most = MOST_PARTS;
            let info = self.kernel.buffer(place.buffer).clone();
            let parts = self.kernel.fresh_buffer(format!("{}_parts", info.name), info.scalar, Home::Unplanned);
            self.bounds.insert(parts, Some(place.count.clone()));
            before.push(Stmt::Allocate(parts, place.count.clone()));
            elements = elements.plus(place.count.clone());
            private.push(Private { buffer: place.buffer, parts, count: place.count.clone() });
        }
        let chunks = Chunks { lo: l.lo.clone(), hi: l.hi.clone(), cost, private: elements, most, planned };
        if self.entry.is_one_chunk(&chunks) {
            return None;
        }
        Some((Parallel { chunks, within: l.schedule.clone(), again: self.again && statements(&l.body) <= MOST_TWICE, private }, before))
    }

    /// Whether memory is taken whose size is not known at entry.
    fn grows(&self, block: &[Stmt]) -> bool {
        block.iter().any(|s| {
            let own = matches!(s, Stmt::Allocate(b, count) if count.as_int().is_none() && self.bounds.get(b).cloned().flatten().is_none());
            own || s.blocks().iter().any(|b| self.grows(b))
        })
    }

    /// About how many operations a block is: a polynomial in the locals that are known at entry, by their numbers.
    fn cost(&self, block: &[Stmt]) -> Size {
        let mut total = Size::default();
        for s in block {
            // A mark says something, but does nothing.
            let mut plain = if matches!(s, Stmt::Mark(_)) { 0 } else { 1 };
            s.for_each_expr(&mut |e| plain += self.weight(e));
            total = total.add(&Size::constant(plain));
            match s {
                Stmt::Loop(l) => {
                    let count = match (self.polynomial(&l.lo), self.polynomial(&l.hi)) {
                        (Some(lo), Some(hi)) => hi.sub(&lo),
                        (None, Some(hi)) => hi,
                        _ => Size::constant(UNKNOWN),
                    };
                    total = total.add(&self.cost(&l.body).mul(&count));
                }
                Stmt::Zero(_, _, count) | Stmt::Copy(_, _, _, _, count) => {
                    total = total.add(&self.polynomial(count).unwrap_or(Size::constant(UNKNOWN)));
                }
                _ => s.blocks().iter().for_each(|b| total = total.add(&self.cost(b))),
            }
        }
        total
    }
    fn polynomial(&self, e: &Expr) -> Option<Size> {
        match e {
            Expr::Lit(Lit::I64(c)) => Some(Size::constant(*c)),
            Expr::Local(l) if self.known.contains(l) => Some(Size::var(Var(l.0))),
            Expr::Op(op, args) => match (op, args.as_slice()) {
                (Op::Add, [a, b]) => Some(self.polynomial(a)?.add(&self.polynomial(b)?)),
                (Op::Sub, [a, b]) => Some(self.polynomial(a)?.sub(&self.polynomial(b)?)),
                (Op::Mul, [a, b]) => Some(self.polynomial(a)?.mul(&self.polynomial(b)?)),
                _ => None,
            },
            Expr::Lit(_) | Expr::Local(_) | Expr::Load(..) | Expr::Partial(..) | Expr::Select(..) => None,
        }
    }
    fn weight(&self, e: &Expr) -> i64 {
        let mut total = match e {
            Expr::Lit(_) | Expr::Local(_) => 0,
            Expr::Load(..) | Expr::Select(..) => 1,
            Expr::Partial(..) => CALL,
            Expr::Op(op, _) => {
                if op.infix().is_some() {
                    1
                } else {
                    CALL
                }
            }
        };
        e.for_each_child(&mut |c| total += self.weight(c));
        total
    }
}
