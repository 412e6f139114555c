//! Which loops run over threads.
//!
//! The outermost loops whose iterations do not follow one another, cut into chunks by their sizes alone. Totals are kept
//! for each chunk and combined in order, and so are arrays that iterations add into, where that is little beside the
//! work: the result is the same for any number of threads. What iterations share is only read.

use super::buffers::HUGE;
use super::work::Around;
use super::*;
use crate::types::size::Atom;

/// The most chunks of a loop, and of a loop that adds into arrays, which every chunk has a part of.
const MOST: usize = 64;
const MOST_PARTS: usize = 16;
/// The most statements of a body that is written twice, with threads and without.
const MOST_TWICE: usize = 40;
/// What an operation costs, in loops that do one after the other, and in those that do several at once.
const PLAIN: i64 = 4;
const IN_VECTORS: i64 = 1;
/// A loop with less than this part of all that a call has to do is not worth starting threads for.
const LEAST_SHARE: f64 = 1.0 / 64.0;

pub(super) fn parallel(kernel: &mut Kernel, bounds: &mut FxHashMap<Buffer, Option<Expr>>, options: Options) {
    let known = kernel.known_at_entry();
    let entry = Entry::new(kernel, &kernel.call);
    let body = std::mem::take(&mut kernel.body);
    let around = Around::body(kernel, &entry, &body, LEAST_SHARE);
    let mut marker = Marker { kernel, bounds, known, entry, here: FxHashSet::default(), around, options };
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
    around: Around,
    options: Options,
}

impl Marker<'_> {
    fn block(&mut self, block: Vec<Stmt>) -> Vec<Stmt> {
        let mut out = vec![];
        let mut settled = settled(&block);
        for (k, mut stmt) in block.into_iter().enumerate() {
            let before = match &mut stmt {
                Stmt::Loop(l) => match self.schedule(l) {
                    Some((parallel, before)) => {
                        l.schedule = Schedule::Parallel(Box::new(parallel));
                        before
                    }
                    None => {
                        if l.order == Order::Sequential {
                            let within = self.around.within(&self.entry, l);
                            l.body = self.repeated(std::mem::take(&mut l.body), within);
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
                    *body = self.repeated(std::mem::take(body), self.around.within_any());
                    vec![]
                }
                _ => vec![],
            };
            out.extend(before);
            out.push(stmt);
            self.here.extend(settled.remove(&k).unwrap_or_default());
        }
        out
    }

    fn repeated(&mut self, body: Vec<Stmt>, around: Around) -> Vec<Stmt> {
        let outer = std::mem::replace(&mut self.around, around);
        let body = self.block(body);
        self.around = outer;
        body
    }

    /// The cost as an expression, like terms put together.
    fn cost_of(&self, block: &[Stmt], unit: i64) -> Expr {
        let mut total = Expr::int(0);
        for (monomial, coefficient) in self.cost(block, unit).terms() {
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
        let unit = if l.schedule == Schedule::Plain { PLAIN } else { IN_VECTORS };
        let cost = self.cost_of(&l.body, unit);
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
        // Vector loops wait for memory, which is not counted.
        if l.schedule != Schedule::Vector && self.around.within(&self.entry, l).is_little(&self.entry, &l.body) {
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
        // A compiler makes a function of what threads do, in which it has all registers: nests gain by that on one thread, too.
        let threads = self.options.threads || l.schedule != Schedule::Vector;
        if !threads && locals.is_empty() && shared.is_empty() {
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
        let is_one = self.entry.is_one_chunk(&chunks);
        if is_one == Some(true) {
            return None;
        }
        Some((
            Parallel {
                chunks,
                within: l.schedule.clone(),
                again: is_one.is_none() && self.around.trip.is_some() && statements(&l.body) <= MOST_TWICE,
                threads,
                private,
            },
            before,
        ))
    }

    /// Whether memory is taken whose size is not known at entry.
    fn grows(&self, block: &[Stmt]) -> bool {
        block.iter().any(|s| {
            let own = matches!(s, Stmt::Allocate(b, count) if count.as_int().is_none_or(|n| n >= HUGE) && self.bounds.get(b).cloned().flatten().is_none());
            own || s.blocks().iter().any(|b| self.grows(b))
        })
    }

    /// About what a block costs, if an operation costs so much: a polynomial in the locals that are known at entry, by their
    /// numbers.
    fn cost(&self, block: &[Stmt], unit: i64) -> Size {
        let mut total = Size::default();
        for s in block {
            total = total.add(&Size::constant(unit.saturating_mul(work::own(s))));
            match s {
                Stmt::Loop(l) => {
                    let count = match (self.polynomial(&l.lo), self.polynomial(&l.hi)) {
                        (Some(lo), Some(hi)) => hi.sub(&lo),
                        (None, Some(hi)) => hi,
                        _ => Size::constant(work::UNKNOWN),
                    };
                    let unit = if l.schedule == Schedule::Plain { unit } else { IN_VECTORS };
                    total = total.add(&self.cost(&l.body, unit).mul(&count));
                }
                Stmt::Zero(_, _, count) | Stmt::Copy(_, _, _, _, count) => {
                    total = total.add(&self.polynomial(count).unwrap_or(Size::constant(work::UNKNOWN)));
                }
                _ => s.blocks().iter().for_each(|b| total = total.add(&self.cost(b, unit))),
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
}

/// The variables of a block, by the statement that is the last to set them: behind it they stay what they are.
fn settled(block: &[Stmt]) -> FxHashMap<usize, Vec<Local>> {
    let mut out: FxHashMap<usize, Vec<Local>> = FxHashMap::default();
    for stmt in block {
        if let Stmt::Var(local, _) = stmt {
            let last = block.iter().rposition(|s| repeated::sets(s, *local)).expect("where it is made, at least");
            out.entry(last).or_default().push(*local);
        }
    }
    out
}
