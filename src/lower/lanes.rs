//! Which loops run several iterations side by side, each in a lane of vectors, and how their bodies are prepared for it.
//!
//! Innermost loops over contiguous data become vector loops by themselves (`schedule.rs`). Where the work of an iteration is
//! itself made of loops and small arrays (a point against all components of a mixture, an observation of a camera), lanes
//! are the outer iterations instead: scalars that differ between iterations become vectors, small arrays stand with the
//! elements of all lanes side by side, and what does not depend on the iteration is computed once for all.
//!
//! ```text
//! for i { allocate z: d; for a { z[a] = x[i * d + a] - m[a] }; ... sum over a, b of q[a, b] * z[b] ... }
//!   =  for blocks of lanes i { allocate z: d * lanes; for a { z[a, :] = x[i[:] * d + a] - m[a] }; ... q[a, b] * z[b, :] ... }
//! ```
//! Numbers may be of any type, several beside each other: a vector has 8 lanes, or 16 where no float has 64 bits.
//! A condition that differs between lanes masks what it guards, and so do bounds that differ for the steps that not all
//! lanes take. Bodies whose innermost work reads or writes far apart in every lane stay as they are.

use super::work::Around;
use super::*;

/// Vectors of a value where the body has loops of its own, whose sums then run side by side.
const VECTORS: usize = 4;
/// The most statements of a body, and of one that is written for blocks of one vector too.
const MOST_STATEMENTS: usize = 1500;
const MOST_TWICE: usize = 40;
/// How long rows may be that every iteration makes for itself.
const MOST_IN_ROW: i128 = 1024;
/// A loop with less than this part of all that a call has to do stays as it is: lanes are more to compile than to gain there.
const LEAST_SHARE: f64 = 1.0 / 256.0;

pub(super) fn lanes(kernel: &mut Kernel, bounds: &mut FxHashMap<Buffer, Option<Expr>>, eager: bool) {
    let mut body = std::mem::take(&mut kernel.body);
    let known = Known { locals: kernel.known_at_entry(), entry: Entry::new(kernel, &kernel.call), eager };
    let around = Around::body(kernel, &known.entry, &body, if eager { 0.0 } else { LEAST_SHARE });
    visit(kernel, bounds, &known, &mut body, around);
    kernel.body = body;
}

/// What is known at entry: in all calls, and in those that the code is for.
pub(super) struct Known {
    pub locals: FxHashSet<Local>,
    pub entry: Entry,
    /// Whether all is done that can be, for tests.
    pub eager: bool,
}

impl Known {
    /// Whether a row is known to be short: all lanes' lie in the near caches.
    pub fn is_short(&self, length: &Expr) -> bool {
        self.eager || self.entry.evaluate(length).is_some_and(|length| length <= MOST_IN_ROW)
    }
}

fn visit(kernel: &mut Kernel, bounds: &mut FxHashMap<Buffer, Option<Expr>>, known: &Known, block: &mut [Stmt], around: Around) {
    for k in 0..block.len() {
        let (before, rest) = block.split_at_mut(k);
        let stmt = &mut rest[0];
        let within = around.inside(&known.entry, stmt);
        if let Stmt::Loop(l) = stmt {
            if within.is_little(&known.entry, &l.body) {
                continue;
            }
            let again = around.trip.is_some();
            if let Some(new) = in_partial_lanes(kernel, known, l) {
                *l = new;
                continue;
            }
            let with_rows = own_rows::with_own_rows(kernel, bounds, known, before, l);
            if let Some(mut new) = in_lanes(kernel, bounds, known, with_rows.as_ref().unwrap_or(l)) {
                if let Schedule::Lanes(lanes) = &mut new.schedule {
                    // A loop that runs again and again may be shorter than a block each time.
                    lanes.narrow = again && lanes.vectors > 1 && !lanes.filled && statements(&new.body) <= MOST_TWICE;
                }
                *l = new;
                continue;
            }
        }
        stmt.blocks_mut().into_iter().for_each(|b| visit(kernel, bounds, known, b, within));
    }
}

/// The loop in lanes, where that can be done and pays.
fn in_lanes(kernel: &mut Kernel, bounds: &mut FxHashMap<Buffer, Option<Expr>>, known: &Known, l: &Loop) -> Option<Loop> {
    let totals = match &l.order {
        Order::Sequential => return None,
        Order::Independent => &[][..],
        Order::Reduction(totals) | Order::Accumulation(totals, _) => totals.as_slice(),
    };
    let unscheduled = l.schedule == Schedule::Plain || known.eager && l.schedule == Schedule::Vector;
    if !unscheduled || !totals.iter().all(|(total, combine)| is_added(kernel, *total, *combine)) {
        return None;
    }
    if !l.body.iter().all(is_possible) || statements(&l.body) > MOST_STATEMENTS {
        return None;
    }
    if !known.eager && has_long_vectors(&l.body) {
        return None;
    }
    let mut body = prepared(kernel, &l.body);
    let first = analyse(kernel, l.index, totals, &body)?;
    body = inward::inward(kernel, bounds, known, &first.lanes.own, body);
    body = picked::picked(kernel, l.index, body);
    body = outward::outward(kernel, &first, body);
    let first = analyse(kernel, l.index, totals, &body)?;
    let per_vector = first.lanes.lanes as i64;
    let trip = known.entry.trip(l);
    if trip.is_some_and(|trip| trip < 2 * per_vector && !known.eager || trip < 0) {
        return None;
    }
    body = rows::with_rows_packed(kernel, bounds, &known.locals, &first, body);
    let mut found = analyse(kernel, l.index, totals, &body)?;
    let depth = found.depth(&body);
    let mut work = Work::default();
    found.work(kernel, &known.entry, &body, None, &mut work);
    let pays = if depth == 0 { work.arithmetic >= 4.0 * work.apart && work.arithmetic > 20.0 } else { work.arithmetic >= 8.0 * work.apart };
    if (!pays || found.has_scattered_loop(&body)) && !known.eager {
        return None;
    }
    found.lanes.vectors = if depth == 0 || known.eager { 1 } else { trip.map_or(VECTORS, |trip| vectors(trip, per_vector)) };
    let width = found.lanes.width() as i64;
    let always = l.lo.as_int().is_some() && l.hi.as_int().is_some();
    found.lanes.filled = trip.is_some_and(|trip| trip >= width) && !(always && l.body.iter().any(Stmt::can_fail));
    widen(&mut body, &found.lanes.own, width);
    for b in &found.lanes.own {
        if let Some(bound) = bounds.get_mut(b) {
            *bound = bound.take().map(|count| count.times(Expr::int(width)));
        }
    }
    found.lanes.ahead = ahead::ahead(kernel, &known.entry, &found.lanes, &body);
    found.lanes.tiles = tiles::tiles(kernel, &known.entry, &found.lanes, &body);
    tiles::assumed(&found.lanes.tiles, &body, &mut kernel.assumed);
    Some(Loop { body, schedule: Schedule::Lanes(found.lanes), ..l.clone() })
}

/// How many vectors a value has in a loop whose steps are known: no more than it fills, and such that the last block, which begins
/// among steps that are done, does few of them again. What a block does once for all of its vectors counts as one more.
fn vectors(trip: i64, per_vector: i64) -> usize {
    let fits = (trip / per_vector).clamp(1, VECTORS as i64);
    let work = |vectors: &i64| {
        let width = vectors * per_vector;
        (trip / width + (trip % width != 0) as i64).saturating_mul(vectors + 1)
    };
    (1..=fits).rev().min_by_key(work).map_or(1, |vectors| vectors as usize)
}

/// An innermost loop whose neighbours read and write side by side, with functions to call or sums of places to add to: in
/// lanes, so that also a short loop, and the end of a long one, run in vectors.
fn in_partial_lanes(kernel: &mut Kernel, known: &Known, l: &Loop) -> Option<Loop> {
    let (totals, accumulates) = match &l.order {
        Order::Sequential => return None,
        Order::Independent => (&[][..], false),
        Order::Reduction(totals) => (totals.as_slice(), false),
        Order::Accumulation(totals, _) => (totals.as_slice(), true),
    };
    let short = matches!((l.lo.as_int(), l.hi.as_int()), (Some(lo), Some(hi)) if hi.wrapping_sub(lo) < 3);
    // Where all loops that can be are in lanes, for tests, both kinds are to be seen.
    let other = known.eager && kernel.locals.len() % 2 == 0;
    if short || other || !l.body.iter().all(schedule::is_straight) {
        return None;
    }
    if !totals.iter().all(|(total, combine)| is_added(kernel, *total, *combine)) {
        return None;
    }
    let body = prepared(kernel, &l.body);
    let mut found = analyse(kernel, l.index, totals, &body)?;
    let (mut work, mut calls) = (Work::default(), false);
    found.work(kernel, &known.entry, &body, None, &mut work);
    for s in &body {
        calls |= calls_function(kernel, s);
    }
    // What lanes add to one place is summed first; to places of their own they add side by side.
    let pays = work.apart == 0.0 && (calls || accumulates && work.arithmetic >= 4.0);
    if !pays && !known.eager {
        return None;
    }
    found.lanes.partial = true;
    Some(Loop { body, schedule: Schedule::Lanes(found.lanes), ..l.clone() })
}

/// An innermost loop in blocks of one vector, of which the last may be a part, if it can be.
pub(super) fn with_partial_blocks(kernel: &mut Kernel, l: &Loop) -> Option<Loop> {
    let totals = match &l.order {
        Order::Independent => &[][..],
        Order::Reduction(totals) => totals.as_slice(),
        Order::Sequential | Order::Accumulation(..) => return None,
    };
    if !totals.iter().all(|(total, combine)| is_added(kernel, *total, *combine)) {
        return None;
    }
    let body = prepared(kernel, &l.body);
    let mut found = analyse(kernel, l.index, totals, &body)?;
    found.lanes.partial = true;
    Some(Loop { body, schedule: Schedule::Lanes(found.lanes), ..l.clone() })
}

fn calls_function(kernel: &Kernel, s: &Stmt) -> bool {
    let mut found = false;
    s.for_each_expr(&mut |e| {
        found |= e.any(&mut |e| match e {
            Expr::Partial(..) => true,
            Expr::Op(op, args) => {
                let kinds: Vec<Scalar> = args.iter().map(|a| kernel.scalar_of(a)).collect();
                let power = matches!((op, args.last()), (Op::Pow, Some(Expr::Lit(_))));
                kernel.scalar_of(e).is_float() && op.cost(&kinds) == crate::scalar::CostClass::Call && !power
            }
            Expr::Lit(_) | Expr::Local(_) | Expr::Load(..) | Expr::Select(..) => false,
        })
    });
    found || s.blocks().iter().any(|b| b.iter().any(|s| calls_function(kernel, s)))
}

/// Whether most of what is done is in vector loops of places of their own, known to be long: these fill vectors as well as lanes
/// would, with a lane's part of the memory.
fn has_long_vectors(body: &[Stmt]) -> bool {
    let trip = |l: &Loop| l.lo.as_int().zip(l.hi.as_int()).map(|(lo, hi)| hi.saturating_sub(lo).max(0));
    fn operations(block: &[Stmt], trip: &dyn Fn(&Loop) -> Option<i64>, all: &mut i64, within: &mut i64, is_within: bool, times: i64) {
        for s in block {
            let mut own = 0;
            s.for_each_expr(&mut |e| {
                e.any(&mut |e| {
                    own += matches!(e, Expr::Op(..) | Expr::Partial(..) | Expr::Select(..)) as i64;
                    false
                });
            });
            *all = all.saturating_add(own.saturating_mul(times));
            if is_within {
                *within = within.saturating_add(own.saturating_mul(times));
            }
            let (times, is_within) = match s {
                Stmt::Loop(l) => {
                    let long = trip(l).is_some_and(|n| n >= 2 * LANES as i64);
                    let vectors = l.schedule == Schedule::Vector && l.order == Order::Independent && long;
                    (times.saturating_mul(trip(l).unwrap_or(work::UNKNOWN)), is_within || vectors)
                }
                _ => (times, is_within),
            };
            s.blocks().iter().for_each(|b| operations(b, trip, all, within, is_within, times));
        }
    }
    let (mut all, mut within) = (0, 0);
    operations(body, &trip, &mut all, &mut within, false, 1);
    within > all / 2
}

fn is_added(kernel: &Kernel, total: Local, combine: Combine) -> bool {
    combine == Combine::Add && kernel.local(total).scalar.is_number()
}

/// What can stand in lanes at all.
fn is_possible(s: &Stmt) -> bool {
    let own = match s {
        Stmt::Let(..) | Stmt::Var(..) | Stmt::Set(..) | Stmt::Add(..) | Stmt::If(..) | Stmt::Check(_) => true,
        Stmt::Loop(l) => !matches!(l.schedule, Schedule::Parallel(_) | Schedule::Lanes(_)),
        Stmt::Allocate(..) | Stmt::Zero(..) | Stmt::Copy(..) | Stmt::Mark(_) | Stmt::Count(_) => true,
        Stmt::Forever(_) | Stmt::LeaveUnless(_) | Stmt::Gemm(_) => false,
    };
    own && s.blocks().iter().all(|b| b.iter().all(is_possible))
}

/// The body with copies and zeros as loops, and with no reads in operands that may not be evaluated.
fn prepared(kernel: &mut Kernel, block: &[Stmt]) -> Vec<Stmt> {
    let mut out = vec![];
    for s in block {
        let mut s = match s {
            Stmt::Zero(b, offset, count) => {
                let zero = Expr::Lit(Lit::zero(kernel.buffer(*b).scalar));
                each(kernel, count, &mut |k| Stmt::Set(Target::Place(*b, offset.clone().plus(k)), zero.clone()))
            }
            Stmt::Copy(to, at, from, from_at, count) => each(kernel, count, &mut |k| {
                let value = Expr::Load(*from, Box::new(from_at.clone().plus(k.clone())));
                Stmt::Set(Target::Place(*to, at.clone().plus(k)), value)
            }),
            Stmt::Count(_) => continue,
            other => other.clone(),
        };
        for inner in s.blocks_mut() {
            *inner = prepared(kernel, inner);
        }
        take_apart(kernel, &mut s, &mut out);
        out.push(s);
    }
    out
}

pub(super) fn each(kernel: &mut Kernel, count: &Expr, f: &mut dyn FnMut(Expr) -> Stmt) -> Stmt {
    let index = kernel.fresh_local("k", Scalar::I64);
    let body = vec![f(Expr::Local(index))];
    Stmt::Loop(Loop { index, lo: Expr::int(0), hi: count.clone(), order: Order::Independent, schedule: Schedule::Plain, body })
}

/// Moves each choice with reads in its operands out of the statement's expressions into a statement before it.
fn take_apart(kernel: &mut Kernel, s: &mut Stmt, out: &mut Vec<Stmt>) {
    s.map_exprs(&mut |e| choices_out(kernel, e, out));
}

fn choices_out(kernel: &mut Kernel, e: Expr, out: &mut Vec<Stmt>) -> Expr {
    match e {
        Expr::Lit(_) | Expr::Local(_) => e,
        Expr::Load(b, offset) => Expr::Load(b, Box::new(choices_out(kernel, *offset, out))),
        Expr::Op(op, args) => Expr::Op(op, args.into_iter().map(|a| choices_out(kernel, a, out)).collect()),
        Expr::Partial(op, k, args) => Expr::Partial(op, k, args.into_iter().map(|a| choices_out(kernel, a, out)).collect()),
        Expr::Select(p, a, b) => {
            let p = choices_out(kernel, *p, out);
            if !a.any(&mut is_guarded) && !b.any(&mut is_guarded) {
                return Expr::Select(Box::new(p), a, b);
            }
            let scalar = kernel.scalar_of(&a);
            let chosen = kernel.fresh_local("chosen", scalar);
            let (mut yes, mut no) = (vec![], vec![]);
            let a = choices_out(kernel, *a, &mut yes);
            yes.push(Stmt::Set(Target::Local(chosen), a));
            let b = choices_out(kernel, *b, &mut no);
            no.push(Stmt::Set(Target::Local(chosen), b));
            out.push(Stmt::Var(chosen, Expr::Lit(Lit::zero(scalar))));
            out.push(Stmt::If(p, yes, no));
            Expr::Local(chosen)
        }
    }
}

/// Whether an operand may only be evaluated where its condition holds.
fn is_guarded(e: &Expr) -> bool {
    match e {
        Expr::Load(..) => true,
        Expr::Op(op, _) => matches!(op, Op::IDiv | Op::IMod | Op::ToI64 | Op::ToI32 | Op::Pow),
        Expr::Lit(_) | Expr::Local(_) | Expr::Partial(..) | Expr::Select(..) => false,
    }
}

pub(super) struct Analysis {
    lanes: Lanes,
    pub(super) index: Local,
    /// Buffers that are allocated in the body.
    pub(super) inside: FxHashSet<Buffer>,
}

/// Which locals and buffers differ between lanes; `None` if something cannot be done in lanes.
fn analyse(kernel: &Kernel, index: Local, totals: &[(Local, Combine)], body: &[Stmt]) -> Option<Analysis> {
    let inside = allocated(body);
    let varying = totals.iter().map(|(l, _)| *l).chain([index]).collect();
    let lanes = Lanes {
        lanes: LANES,
        vectors: 1,
        varying,
        own: FxHashSet::default(),
        partial: false,
        narrow: false,
        filled: false,
        tiles: FxHashMap::default(),
        ahead: FxHashMap::default(),
    };
    let mut analysis = Analysis { lanes, index, inside };
    loop {
        let before = (analysis.lanes.varying.len(), analysis.lanes.own.len());
        analysis.spread(body, false)?;
        if before == (analysis.lanes.varying.len(), analysis.lanes.own.len()) {
            break;
        }
    }
    if !analysis.is_allowed(body) {
        return None;
    }
    let mut floats = FxHashSet::from_iter(analysis.lanes.own.iter().map(|b| kernel.buffer(*b).scalar).filter(|s| s.is_float()));
    floats.extend(totals.iter().map(|(l, _)| kernel.local(*l).scalar).filter(|s| s.is_float()));
    analysis.floats(kernel, body, &mut floats);
    if floats.contains(&Scalar::F32) && !floats.contains(&Scalar::F64) {
        analysis.lanes.lanes = NARROW_LANES;
    }
    Some(analysis)
}

impl Analysis {
    /// One round of the fixed point.
    fn spread(&mut self, block: &[Stmt], masked: bool) -> Option<()> {
        for s in block {
            match s {
                Stmt::Let(l, e) | Stmt::Var(l, e) => {
                    if self.lanes.varies(e) {
                        self.lanes.varying.insert(*l);
                    }
                }
                Stmt::Set(t, e) | Stmt::Add(t, e) => {
                    let varies = masked || self.lanes.varies(e);
                    match t {
                        Target::Local(l) => {
                            if varies {
                                self.lanes.varying.insert(*l);
                            }
                        }
                        Target::Place(b, offset) => {
                            if self.inside.contains(b) && (varies || self.lanes.varies(offset)) {
                                self.lanes.own.insert(*b);
                            }
                        }
                    }
                }
                Stmt::Loop(l) => {
                    let ragged = self.lanes.varies(&l.lo) || self.lanes.varies(&l.hi);
                    self.spread(&l.body, masked || ragged)?;
                }
                Stmt::If(p, yes, no) => {
                    let masked = masked || self.lanes.varies(p);
                    self.spread(yes, masked)?;
                    self.spread(no, masked)?;
                }
                Stmt::Allocate(_, count) => {
                    if self.lanes.varies(count) {
                        return None;
                    }
                }
                Stmt::Check(_) | Stmt::Mark(_) => {}
                Stmt::Forever(_) | Stmt::LeaveUnless(_) | Stmt::Gemm(_) | Stmt::Zero(..) | Stmt::Copy(..) | Stmt::Count(_) => return None,
            }
        }
        Some(())
    }

    /// Whether every write to memory outside has its place.
    fn is_allowed(&self, block: &[Stmt]) -> bool {
        block.iter().all(|s| {
            let fine = match s {
                Stmt::Set(Target::Place(b, offset), _) => self.inside.contains(b) || self.lanes.varies(offset),
                _ => true,
            };
            fine && s.blocks().iter().all(|b| self.is_allowed(b))
        })
    }

    /// The types of floats that differ between lanes.
    fn floats(&self, kernel: &Kernel, block: &[Stmt], found: &mut FxHashSet<Scalar>) {
        for s in block {
            s.for_each_expr(&mut |e| {
                e.any(&mut |e| {
                    if self.lanes.varies(e) && kernel.scalar_of(e).is_float() {
                        found.insert(kernel.scalar_of(e));
                    }
                    false
                });
            });
            if let Stmt::Set(Target::Place(b, _), _) | Stmt::Add(Target::Place(b, _), _) = s {
                found.extend(Some(kernel.buffer(*b).scalar).filter(|s| s.is_float()));
            }
            if let Stmt::Set(Target::Local(l), _) | Stmt::Add(Target::Local(l), _) | Stmt::Let(l, _) | Stmt::Var(l, _) = s {
                found.extend(Some(kernel.local(*l).scalar).filter(|s| s.is_float() && self.lanes.varying.contains(l)));
            }
            s.blocks().iter().for_each(|b| self.floats(kernel, b, found));
        }
    }

    /// Whether there is a loop that data begin and end, each lane's elsewhere: lanes take all steps from the first that one of them
    /// takes to the last, so that rows stored one after the other would be gone through by every lane.
    fn has_scattered_loop(&self, block: &[Stmt]) -> bool {
        let of_data = |e: &Expr| self.lanes.varies(e) && e.any(&mut |e| matches!(e, Expr::Load(..)));
        let of_data = |e: &Expr| match e {
            // A bound that has a name.
            Expr::Local(l) => self.lanes.varying.contains(l) && *l != self.index,
            e => of_data(e),
        };
        block.iter().any(|s| {
            let own = matches!(s, Stmt::Loop(l) if of_data(&l.lo) && of_data(&l.hi));
            own || s.blocks().iter().any(|b| self.has_scattered_loop(b))
        })
    }

    /// How deep loops stand in each other whose lengths are no small constants.
    fn depth(&self, block: &[Stmt]) -> usize {
        block
            .iter()
            .map(|s| {
                let inner = s.blocks().iter().map(|b| self.depth(b)).max().unwrap_or(0);
                inner + matches!(s, Stmt::Loop(l) if !is_short(l)) as usize
            })
            .max()
            .unwrap_or(0)
    }

    /// What a step has to do, in the call that the code is for.
    fn work(&self, kernel: &Kernel, entry: &Entry, block: &[Stmt], around: Option<i64>, work: &mut Work) {
        for s in block {
            let mut own = Work::default();
            s.for_each_expr(&mut |e| self.count(kernel, e, &mut own));
            if let Stmt::Set(Target::Place(b, offset), _) | Stmt::Add(Target::Place(b, offset), _) = s {
                own.apart += self.is_apart(*b, offset) as usize as f64;
            }
            let trip = if let Stmt::Loop(l) = s { Some(work::trip(entry, l, around)) } else { None };
            let mut inner = Work::default();
            s.blocks().iter().for_each(|b| self.work(kernel, entry, b, trip.or(around), &mut inner));
            let times = trip.unwrap_or(1) as f64;
            work.arithmetic += own.arithmetic + inner.arithmetic * times;
            work.apart += own.apart + inner.apart * times;
        }
    }

    fn count(&self, kernel: &Kernel, e: &Expr, work: &mut Work) {
        if !self.lanes.varies(e) {
            return;
        }
        match e {
            Expr::Load(b, offset) => work.apart += self.is_apart(*b, offset) as usize as f64,
            Expr::Op(op, args) if kernel.scalar_of(e).is_float() => {
                let kinds: Vec<Scalar> = args.iter().map(|a| kernel.scalar_of(a)).collect();
                work.arithmetic += match op.cost(&kinds) {
                    crate::scalar::CostClass::Call => 10.0,
                    _ => 1.0,
                };
            }
            Expr::Partial(..) => work.arithmetic += 10.0,
            Expr::Select(..) => work.arithmetic += 1.0,
            Expr::Lit(_) | Expr::Local(_) | Expr::Op(..) => {}
        }
        e.for_each_child(&mut |c| self.count(kernel, c, work));
    }

    /// Whether lanes read or write far from each other.
    pub(super) fn is_apart(&self, b: Buffer, offset: &Expr) -> bool {
        if self.lanes.own.contains(&b) {
            return self.lanes.varies(offset);
        }
        self.lanes.varies(offset) && self.lanes.stride(offset, self.index).and_then(|s| s.as_int()) != Some(1)
    }
}

/// Operations, and accesses of which each lane's is far from its neighbour's.
#[derive(Default)]
struct Work {
    arithmetic: f64,
    apart: f64,
}

fn is_short(l: &Loop) -> bool {
    matches!((l.lo.as_int(), l.hi.as_int()), (Some(lo), Some(hi)) if hi.saturating_sub(lo) <= 64)
}

/// Memory for all lanes.
fn widen(block: &mut [Stmt], own: &FxHashSet<Buffer>, width: i64) {
    for s in block {
        if let Stmt::Allocate(b, count) = s {
            if own.contains(b) {
                *count = std::mem::replace(count, Expr::int(0)).times(Expr::int(width));
            }
        }
        s.blocks_mut().into_iter().for_each(|b| widen(b, own, width));
    }
}
