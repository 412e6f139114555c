//! About how much statements have to do, additions counting one.

use super::*;

/// The part of the time that iterations take which run side by side.
const SIDE_BY_SIDE: f64 = 0.25;
/// What a term of a product counts for that the matrix kernel does.
const PRODUCT: f64 = 0.125;
/// What a function call counts for, and how often a loop is taken to run of which that is not known.
const CALL: i64 = 16;
pub(super) const UNKNOWN: i64 = 16;

/// A statement without those inside of it.
pub(super) fn own(s: &Stmt) -> i64 {
    match s {
        // A mark says something, but does nothing.
        Stmt::Mark(_) => 0,
        Stmt::Set(Target::Place(_, at), e) | Stmt::Add(Target::Place(_, at), e) => 1 + reading(at) + weight(e),
        s => {
            let mut all = 1;
            s.for_each_expr(&mut |e| all += weight(e));
            all
        }
    }
}

fn weight(e: &Expr) -> i64 {
    let own = match e {
        Expr::Lit(_) | Expr::Local(_) => 0,
        Expr::Load(_, at) => return 1 + reading(at),
        Expr::Select(..) => 1,
        Expr::Partial(..) => CALL,
        Expr::Op(op, _) if op.infix().is_some() || op.prefix().is_some() || matches!(op, Op::Max | Op::Min | Op::Abs) => 1,
        Expr::Op(..) => CALL,
    };
    let mut total = own;
    e.for_each_child(&mut |c| total += weight(c));
    total
}

/// What an offset costs: loops go from place to place by themselves, so only what is read for it counts.
fn reading(at: &Expr) -> i64 {
    let mut total = if let Expr::Load(..) = at { 1 } else { 0 };
    at.for_each_child(&mut |c| total += reading(c));
    total
}

/// A block, for the call that the code is for. Of loops of unknown length those inside of others are taken to be triangles.
pub(super) fn block(entry: &Entry, block: &[Stmt], around: Option<i64>) -> f64 {
    let mut total = 0.0;
    for s in block {
        total += own(s) as f64;
        match s {
            Stmt::Loop(l) => {
                let trip = trip(entry, l, around);
                total += part(l) * trip as f64 * self::block(entry, &l.body, Some(trip));
            }
            Stmt::Zero(_, _, count) | Stmt::Copy(_, _, _, _, count) => {
                total += entry.evaluate(count).map_or(UNKNOWN as f64, |count| count as f64);
            }
            Stmt::Gemm(g) if g.otherwise.is_empty() => {
                let sides = [&g.rows, &g.columns, &g.depth].map(|side| entry.evaluate(side).map_or(UNKNOWN as f64, |n| n as f64));
                total += PRODUCT * sides.iter().product::<f64>();
            }
            s => s.blocks().into_iter().for_each(|b| total += self::block(entry, b, around)),
        }
    }
    total
}

fn part(l: &Loop) -> f64 {
    if matches!(l.schedule, Schedule::Vector | Schedule::Lanes(_)) { SIDE_BY_SIDE } else { 1.0 }
}

/// About how often a loop runs.
pub(super) fn trip(entry: &Entry, l: &Loop, around: Option<i64>) -> i64 {
    entry.trip(l).or_else(|| entry.trip_at_most(l)).or(around.map(|n| n / 2)).unwrap_or(UNKNOWN).max(0)
}

/// Where a block stands: how often it runs and the innermost loop around it does, whether that is known at least about, and how
/// much a statement must have to do in all that it is worth a look.
#[derive(Clone, Copy)]
pub(super) struct Around {
    pub times: f64,
    pub trip: Option<i64>,
    known: bool,
    least: f64,
}

impl Around {
    /// The body of a kernel, of which a statement must be so great a part: of that only calls of known sizes can say something.
    pub fn body(kernel: &Kernel, entry: &Entry, body: &[Stmt], share: f64) -> Around {
        let least = if kernel.call.sizes.is_empty() { 0.0 } else { share * block(entry, body, None) };
        Around { times: 1.0, trip: None, known: true, least }
    }

    /// What is inside of a statement here.
    pub fn inside(&self, entry: &Entry, s: &Stmt) -> Around {
        match s {
            Stmt::Loop(l) => self.within(entry, l),
            Stmt::Forever(_) => self.within_any(),
            _ => *self,
        }
    }

    /// The body of a loop here.
    pub fn within(&self, entry: &Entry, l: &Loop) -> Around {
        let known = self.known && (self.trip.is_some() || entry.trip(l).is_some());
        let trip = trip(entry, l, self.trip);
        Around { known, times: self.times * trip as f64 * part(l), trip: Some(trip), ..*self }
    }

    /// The body of a loop that runs as long as it does.
    pub fn within_any(&self) -> Around {
        Around { times: self.times * UNKNOWN as f64, trip: Some(UNKNOWN), ..*self }
    }

    /// Whether the loop with this body is known to do little.
    pub fn is_little(&self, entry: &Entry, body: &[Stmt]) -> bool {
        self.known && self.times * block(entry, body, self.trip) < self.least
    }
}
