//! Rows that lanes read again and again, copied so that the lanes' stand side by side (`lanes.rs`).

use super::in_row::{InRow, in_row};
use super::lanes::{Analysis, each};
use super::outward::define;
use super::*;

/// How often a row is read at least that is copied.
const LEAST_READS: i64 = 2;

/// `x[base + k * S + a]` that is read again and again for every `a < S`, where `k` is the lane's index or a number that an array has
/// for it: the row is copied once, lanes side by side. Only where it is sure to be read, so that it is there.
pub(super) fn with_rows_packed(
    kernel: &mut Kernel,
    bounds: &mut FxHashMap<Buffer, Option<Expr>>,
    known: &FxHashSet<Local>,
    analysis: &Analysis,
    mut body: Vec<Stmt>,
) -> Vec<Stmt> {
    let mut inside = FxHashSet::from_iter([analysis.index]);
    define(&body, &mut inside);
    let mut rows =
        Rows { analysis, known, inside, loops: vec![], keys: FxHashMap::default(), checked: vec![], found: vec![], packed: vec![] };
    rows.find(&body);
    let mut out = vec![];
    let found = std::mem::take(&mut rows.found);
    for Found { from, key, row, runs, .. } in &found {
        // A copy costs as much as reading the row a few times.
        let same = || found.iter().filter(|f| (f.from, &f.key) == (*from, key) && f.row.is_row_of(row));
        let again = same().map(|f| f.times).fold(0, i64::saturating_add);
        // Of a row that is never read to its end there may be no more.
        if again < LEAST_READS || !same().any(|f| f.whole) {
            continue;
        }
        let reads = |b: Buffer| body.iter().any(|s| checks::writes(s, b));
        let mut changes = reads(*from);
        key.any(&mut |e| {
            changes |= matches!(e, Expr::Load(b, _) if reads(*b));
            false
        });
        // What is checked somewhere may be out of range before.
        if changes || rows.checked.contains(key) || rows.packed.iter().any(|r| r.from == *from && r.key == *key && r.row.is_row_of(row)) {
            continue;
        }
        let info = kernel.buffer(*from).clone();
        let to = kernel.fresh_buffer(format!("{}_row", info.name), info.scalar, Home::Unplanned);
        bounds.insert(to, Some(row.length.clone()));
        out.push(Stmt::Allocate(to, row.length.clone()));
        let mut before = vec![];
        let start = match key {
            Expr::Local(_) => key.clone(),
            key => {
                let start = kernel.fresh_local("row", Scalar::I64);
                before.push(Stmt::Let(start, key.clone()));
                Expr::Local(start)
            }
        };
        let copy = each(kernel, &row.length, &mut |k| {
            let place = row.place(start.clone(), k.clone());
            Stmt::Set(Target::Place(to, k), Expr::Load(*from, Box::new(place)))
        });
        before.push(copy);
        let each_runs = runs.iter().map(|(lo, hi)| Expr::Op(Op::Lt, vec![lo.clone(), hi.clone()]));
        let all = each_runs.reduce(|a, b| Expr::Op(Op::And, vec![a, b])).expect("there are loops");
        out.push(Stmt::If(all, before, vec![]));
        rows.packed.push(Row { from: *from, key: key.clone(), row: row.clone(), runs: runs.clone(), to });
    }
    for s in &mut body {
        rows.replace(s);
    }
    out.extend(body);
    out
}

/// Rows of a buffer, and where those of the lanes stand side by side.
struct Row {
    from: Buffer,
    key: Expr,
    row: InRow,
    /// The bounds of loops that must run for the rows to be there.
    runs: Vec<(Expr, Expr)>,
    to: Buffer,
}

/// A buffer with rows, which row is read, the loops that must run for one to be read, and how often it is.
struct Found {
    from: Buffer,
    key: Expr,
    row: InRow,
    runs: Vec<(Expr, Expr)>,
    times: i64,
    /// Whether its last element is read.
    whole: bool,
}

/// Loops around a statement, outermost first: their indices and bounds.
type Around = Vec<(Local, Expr, Expr)>;

/// The rows that lanes read.
struct Rows<'a> {
    analysis: &'a Analysis,
    known: &'a FxHashSet<Local>,
    /// The locals of the loop in lanes.
    inside: FxHashSet<Local>,
    loops: Around,
    /// What locals are that are read from an array at the lane's index.
    keys: FxHashMap<Local, Expr>,
    /// Those of them that some check is about.
    checked: Vec<Expr>,
    found: Vec<Found>,
    packed: Vec<Row>,
}

impl Rows<'_> {
    /// Which row, the index `a < S` of an inner loop, and the row, in `base + k * S + a`.
    fn row_of(&self, offset: &Expr) -> Option<(Expr, Local, InRow)> {
        let mut found = None;
        offset.any(&mut |row| {
            let key = match row {
                Expr::Local(k) => self.keys.get(k).unwrap_or(row),
                row => row,
            };
            if self.is_key(key) {
                found = in_row(offset, row, &self.inside).and_then(|place| match place.within {
                    Expr::Local(a) if is_below(a, &place.length, &self.loops) => Some((key.clone(), a, place)),
                    _ => None,
                });
            }
            found.is_some()
        });
        found
    }

    /// The lane's index, or what an array outside has there.
    fn is_key(&self, key: &Expr) -> bool {
        match key {
            Expr::Local(l) => *l == self.analysis.index,
            Expr::Load(b, offset) => !self.analysis.inside.contains(b) && **offset == Expr::Local(self.analysis.index),
            Expr::Lit(_) | Expr::Op(..) | Expr::Partial(..) | Expr::Select(..) => false,
        }
    }

    /// How often all of a row is read here, by the loops around that do not go along it.
    fn times(&self, index: Local) -> i64 {
        let mut times = 1i64;
        for (l, lo, hi) in &self.loops {
            if *l != index {
                let trip = lo.as_int().zip(hi.as_int()).map_or(8, |(lo, hi)| hi.saturating_sub(lo).max(0));
                times = times.saturating_mul(trip);
            }
        }
        times
    }

    fn note(&mut self, s: &Stmt) {
        if let Stmt::Check(_) = s {
            let mut of = vec![];
            s.for_each_expr(&mut |e| of.push(e.clone()));
            self.checked.extend(of.into_iter().map(|e| match &e {
                Expr::Local(l) => self.keys.get(l).cloned().unwrap_or(e),
                _ => e,
            }));
        }
        if let Stmt::Let(l, e @ Expr::Load(..)) = s {
            if self.is_key(e) {
                self.keys.insert(*l, e.clone());
            }
        }
    }

    fn note_all(&mut self, block: &[Stmt]) {
        for s in block {
            self.note(s);
            s.blocks().iter().for_each(|b| self.note_all(b));
        }
    }

    /// The bounds of loops that must run for a statement in them to be reached, if they are known at entry. A loop in `0..a + 1`
    /// runs wherever the loop of `a` does.
    fn runs(&self) -> Option<Vec<(Expr, Expr)>> {
        let mut runs = vec![];
        for (k, (_, lo, hi)) in self.loops.iter().enumerate() {
            let from_zero = |a: &Local| self.loops[..k].iter().any(|(l, lo, _)| l == a && lo.as_int().is_some_and(|lo| lo >= 0));
            let always = lo.as_int() == Some(0)
                && matches!(hi, Expr::Op(Op::Add, args) if matches!(args.as_slice(), [Expr::Local(a), one] if one.as_int() == Some(1) && from_zero(a)));
            if lo.is_known(self.known) && hi.is_known(self.known) {
                runs.push((lo.clone(), hi.clone()));
            } else if !always {
                return None;
            }
        }
        Some(runs).filter(|runs| self.loops.len() > 1 && !runs.is_empty())
    }

    /// Rows that are read in loops in loops, whatever the data are, with the condition that all those loops run.
    fn find(&mut self, block: &[Stmt]) {
        let mut failing = false;
        for s in block {
            self.note(s);
            // A check that fails would come too late.
            failing |= matches!(s, Stmt::Check(_));
            if let (false, Some(runs)) = (failing, self.runs()) {
                let mut loads = vec![];
                s.for_each_expr(&mut |e| {
                    e.any(&mut |e| {
                        if let Expr::Load(b, offset) = e {
                            loads.push((*b, (**offset).clone()));
                        }
                        false
                    });
                });
                for (from, offset) in loads {
                    let Some((key, index, row)) = self.row_of(&offset) else { continue };
                    if !self.analysis.inside.contains(&from) && row.length.is_known(self.known) {
                        let (times, whole) = (self.times(index), is_whole(index, &row.length, &self.loops));
                        self.found.push(Found { from, key, row, runs: runs.clone(), times, whole });
                    }
                }
            }
            if let Stmt::Loop(l) = s {
                self.loops.push((l.index, l.lo.clone(), l.hi.clone()));
                self.find(&l.body);
                self.loops.pop();
            } else {
                s.blocks().iter().for_each(|b| self.note_all(b));
            }
        }
    }

    /// Reads rows where they are packed.
    fn replace(&mut self, s: &mut Stmt) {
        self.note(s);
        let me = &*self;
        s.map_exprs(&mut |e| {
            e.map_loads(&mut |b, offset| {
                if let Some((key, index, of)) = me.row_of(&offset) {
                    let is_there = |row: &Row| row.runs.iter().all(|run| me.loops.iter().any(|(_, lo, hi)| (lo, hi) == (&run.0, &run.1)));
                    let same = |row: &&Row| row.from == b && row.key == key && row.row.is_row_of(&of) && is_there(row);
                    if let Some(row) = me.packed.iter().find(same) {
                        return Expr::Load(row.to, Box::new(Expr::Local(index)));
                    }
                }
                Expr::Load(b, Box::new(offset))
            })
        });
        let depth = self.loops.len();
        if let Stmt::Loop(l) = s {
            self.loops.push((l.index, l.lo.clone(), l.hi.clone()));
        }
        s.blocks_mut().into_iter().for_each(|b| b.iter_mut().for_each(|s| self.replace(s)));
        self.loops.truncate(depth);
    }
}

/// Whether the index of a loop goes up to the last place of a row: by itself, or for the last step of loops around.
fn is_whole(index: Local, length: &Expr, loops: &Around) -> bool {
    let Some(at) = loops.iter().position(|(l, _, _)| *l == index) else { return false };
    let hi = &loops[at].2;
    let inner = match hi {
        Expr::Op(Op::Add, args) => match args.as_slice() {
            [Expr::Local(l), one] if one.as_int() == Some(1) => Some(*l),
            _ => None,
        },
        _ => None,
    };
    hi == length || inner.is_some_and(|l| is_whole(l, length, &loops[..at].to_vec()))
}

/// Whether the index of a loop lies in `0..length`: by its own bounds, or by those of loops around that these mention.
fn is_below(index: Local, length: &Expr, loops: &Around) -> bool {
    let Some(at) = loops.iter().position(|(l, _, _)| *l == index) else { return false };
    let (_, lo, hi) = &loops[at];
    let around = loops[..at].to_vec();
    let inner = |e: &Expr| match e {
        Expr::Local(l) => Some(*l),
        Expr::Op(Op::Add, args) => match args.as_slice() {
            [Expr::Local(l), one] if one.as_int() == Some(1) => Some(*l),
            _ => None,
        },
        _ => None,
    };
    let from_zero = lo.as_int().is_some_and(|c| c >= 0) || inner(lo).is_some_and(|l| is_below(l, length, &around));
    from_zero && (hi == length || inner(hi).is_some_and(|l| is_below(l, length, &around)))
}
