//! Which loops of a body in lanes run several steps at once (`loops/tiles.rs`).

use super::*;
use crate::loops::tiles::{Ends, LEAST_PLACES, Outer, ROWS, Tile, unmarked};

/// The loops, by their indices.
pub(super) fn tiles(kernel: &Kernel, entry: &Entry, lanes: &Lanes, body: &[Stmt]) -> FxHashMap<Local, Tile> {
    let shared: FxHashSet<Buffer> = allocated(body).into_iter().filter(|b| !lanes.own.contains(b)).collect();
    let finder = Finder { kernel, entry, lanes, shared };
    let mut found = FxHashMap::default();
    finder.visit(body, &mut found);
    found
}

/// What must be so that no steps of these loops are left over.
pub(super) fn assumed(tiles: &FxHashMap<Local, Tile>, body: &[Stmt], out: &mut Vec<Expr>) {
    for s in body {
        if let Stmt::Loop(l) = s {
            let trip = l.hi.clone().minus(l.lo.clone());
            if let (Some(Tile::Sums(Ends::Even) | Tile::Rows(Ends::Even)), None) = (tiles.get(&l.index), trip.as_int()) {
                let left = Expr::Op(Op::IMod, vec![trip, Expr::int(ROWS as i64)]);
                let none = Expr::Op(Op::Eq, vec![left, Expr::int(0)]);
                if !out.contains(&none) {
                    out.push(none);
                }
            }
        }
        s.blocks().into_iter().for_each(|b| assumed(tiles, b, out));
    }
}

struct Finder<'a> {
    kernel: &'a Kernel,
    entry: &'a Entry,
    lanes: &'a Lanes,
    /// Arrays of the body that are the same in all lanes.
    shared: FxHashSet<Buffer>,
}

impl Finder<'_> {
    fn visit(&self, block: &[Stmt], found: &mut FxHashMap<Local, Tile>) {
        for s in block {
            if let Stmt::Loop(l) = s {
                found.extend(self.tile(l).map(|tile| (l.index, tile)));
            }
            s.blocks().into_iter().for_each(|b| self.visit(b, found));
        }
    }

    fn tile(&self, l: &Loop) -> Option<Tile> {
        if self.lanes.varies(&l.lo) || self.lanes.varies(&l.hi) {
            return None;
        }
        if self.is_contraction(l) || self.adds_sums(l) {
            return Some(Tile::Sums(self.ends(l)));
        }
        self.outer(l).map(Tile::Outer).or_else(|| self.is_rows(l).then(|| Tile::Rows(self.ends(l))))
    }

    fn ends(&self, l: &Loop) -> Ends {
        if self.entry.trip(l).is_some_and(|trip| trip % ROWS as i64 == 0) { Ends::Even } else { Ends::Any }
    }

    /// Whether each step of a loop adds a sum over all lanes to a place outside.
    fn is_contraction(&self, l: &Loop) -> bool {
        let [Stmt::Add(Target::Place(b, offset), _)] = l.body.as_slice() else { return false };
        self.is_outside(*b, offset) && is_long(l, 4)
    }

    /// The same of several places, with what they need computed or written beside.
    fn adds_sums(&self, l: &Loop) -> bool {
        let (mut added, mut written) = (vec![], vec![]);
        for s in unmarked(l) {
            match s {
                Stmt::Let(..) => {}
                Stmt::Set(Target::Place(b, _), _) if self.lanes.own.contains(b) => written.push(*b),
                Stmt::Add(Target::Place(b, offset), _) if self.is_outside(*b, offset) => added.push(*b),
                _ => return false,
            }
        }
        let reads = |s: &Stmt, buffers: &[Buffer]| {
            let mut found = false;
            s.for_each_expr(&mut |e| found |= e.any(&mut |e| matches!(e, Expr::Load(b, _) if buffers.contains(b))));
            found
        };
        // The sums are added some steps later, and made when all else of a step is done.
        let apart = |s: &Stmt| !reads(s, &added) && !(matches!(s, Stmt::Add(..)) && reads(s, &written));
        !added.is_empty() && l.body.iter().all(apart) && is_long(l, 4) && l.order != Order::Sequential
    }

    fn is_outside(&self, b: Buffer, offset: &Expr) -> bool {
        let outside = !self.lanes.own.contains(&b) && !self.shared.contains(&b) && self.kernel.buffer(b).scalar.is_float();
        outside && !self.lanes.varies(offset)
    }

    fn is_rows(&self, l: &Loop) -> bool {
        let [Stmt::Var(total, Expr::Lit(_)), Stmt::Loop(inner), ref rest @ ..] = unmarked(l)[..] else { return false };
        let [Stmt::Add(Target::Local(added), term)] = inner.body.as_slice() else { return false };
        let lanes = self.lanes;
        let wide = added == total && lanes.varying.contains(total) && self.kernel.local(*total).scalar == Scalar::F64;
        let bounds_are_same = !lanes.varies(&inner.lo) && !lanes.varies(&inner.hi);
        let rest_is_short = rest.len() <= ROWS && rest.iter().all(|s| is_brief(s));
        // What comes behind the sum of a step is done before the next step, which has its sum by then.
        let sums_are_apart = l.order == Order::Independent || !rest.iter().any(|s| changes_what(s, &[term, &inner.lo, &inner.hi]));
        let reads_shared = term.any(&mut |e| matches!(e, Expr::Load(..)) && lanes.varies(e) && !e.mentions(l.index));
        sums_are_apart
            && lanes.vectors > 1
            && wide
            && bounds_are_same
            && rest_is_short
            && reads_shared
            && is_long(l, ROWS as i64)
            && is_long(inner, 2 * ROWS as i64)
            && is_arithmetic(term)
    }

    fn outer(&self, l: &Loop) -> Option<Outer> {
        let (kernel, entry) = (self.kernel, self.entry);
        let [Stmt::Loop(inner)] = unmarked(l)[..] else { return None };
        if !self.is_contraction(inner) || self.lanes.vectors == 1 || !is_long(l, LEAST_PLACES) || !is_long(inner, LEAST_PLACES) {
            return None;
        }
        let [Stmt::Add(Target::Place(buffer, offset), e)] = inner.body.as_slice() else { return None };
        let lanes = self.lanes;
        let wide = lanes.lanes == LANES && kernel.buffer(*buffer).scalar == Scalar::F64;
        if !wide || lanes.varies(&inner.lo) || lanes.varies(&inner.hi) {
            return None;
        }
        let stride = |e: &Expr, index: Local| {
            let only = Lanes { varying: [index].into_iter().collect(), own: Default::default(), ..lanes.clone() };
            only.stride(e, index)
        };
        let one_apart = |index: Local| stride(offset, index) == Some(Expr::int(1));
        let (along, across) = match (one_apart(inner.index), one_apart(l.index)) {
            (true, _) => (inner.index, l.index),
            (_, true) => (l.index, inner.index),
            (false, false) => return None,
        };
        let (mut along_factor, mut across_factor) = (vec![], vec![]);
        for factor in factors(e)? {
            // What is read between two places that are there is there.
            let even = |index: Local| !factor.any(&mut |e| matches!(e, Expr::Load(_, at) if stride(at, index).is_none()));
            if !even(along) || !even(across) {
                return None;
            }
            match (factor.mentions(along), factor.mentions(across)) {
                (true, true) => return None,
                (true, false) => along_factor.push(factor),
                (false, _) => across_factor.push(factor),
            }
        }
        let varies = |factors: &[Expr]| factors.iter().any(|e| lanes.varies(e));
        let product = |factors: Vec<Expr>| factors.into_iter().reduce(|a, b| Expr::Op(Op::Mul, vec![a, b]));
        if !varies(&along_factor) || !varies(&across_factor) {
            return None;
        }
        let (along_factor, across_factor) = (product(along_factor)?, product(across_factor)?);
        let across_rows = match &across_factor {
            Expr::Load(b, at) if lanes.own.contains(b) && !lanes.varies(at) && stride(at, across) == Some(Expr::int(1)) => {
                Some((*b, (**at).clone()))
            }
            _ => None,
        };
        // A row that depends on the number of rows is taken to be as long as there are.
        let places = entry.trip(if along == l.index { l } else { inner }).or(entry.trip(l));
        if places.is_some_and(|places| places < LEAST_PLACES) {
            return None;
        }
        let is_long = places.is_some();
        Some(Outer { along, across, along_factor, across_factor, across_rows, is_long })
    }
}

/// A statement without loops, or a choice between few of them.
fn is_brief(s: &Stmt) -> bool {
    let plain = |s: &Stmt| s.blocks().is_empty();
    plain(s) || matches!(s, Stmt::If(_, yes, no) if yes.len() + no.len() <= ROWS && yes.iter().chain(no).all(plain))
}

/// Whether a statement changes what expressions read.
fn changes_what(s: &Stmt, read: &[&Expr]) -> bool {
    let reads = |test: &dyn Fn(&Expr) -> bool| read.iter().any(|e| e.any(&mut |e| test(e)));
    let own = match s {
        Stmt::Set(Target::Local(local), _) | Stmt::Add(Target::Local(local), _) => reads(&|e| *e == Expr::Local(*local)),
        Stmt::Set(Target::Place(b, _), _) | Stmt::Add(Target::Place(b, _), _) | Stmt::Zero(b, _, _) | Stmt::Copy(b, ..) => {
            reads(&|e| matches!(e, Expr::Load(from, _) if from == b))
        }
        _ => false,
    };
    own || s.blocks().into_iter().flatten().any(|s| changes_what(s, read))
}

fn is_long(l: &Loop, least: i64) -> bool {
    !matches!((l.lo.as_int(), l.hi.as_int()), (Some(lo), Some(hi)) if hi - lo < least)
}

/// Whether it is sums and products of what is read.
fn is_arithmetic(e: &Expr) -> bool {
    match e {
        Expr::Lit(_) | Expr::Local(_) | Expr::Load(..) => true,
        // A square is a product.
        Expr::Op(Op::Pow, args) if args[1].as_int() == Some(2) => is_arithmetic(&args[0]),
        Expr::Op(op, args) => matches!(op, Op::Add | Op::Sub | Op::Mul | Op::Neg) && args.iter().all(is_arithmetic),
        Expr::Partial(..) | Expr::Select(..) => false,
    }
}

/// The factors of a product of what is cheap; a sign is one.
fn factors(e: &Expr) -> Option<Vec<Expr>> {
    match e {
        Expr::Op(Op::Mul, args) => Some(args.iter().map(factors).collect::<Option<Vec<_>>>()?.concat()),
        Expr::Op(Op::Neg, args) => Some([vec![Expr::Lit(Lit::F64(-1.0))], factors(&args[0])?].concat()),
        Expr::Lit(_) | Expr::Local(_) | Expr::Load(..) => Some(vec![e.clone()]),
        Expr::Op(..) | Expr::Partial(..) | Expr::Select(..) => None,
    }
}
