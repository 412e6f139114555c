//! Loops that ask at every step whether it is on the rim: the rim apart from what is inside.
//!
//! ```text
//! for i in 0..n { for j in 0..m { if i == 0 or j == 0 or i == n - 1 or j == m - 1 { a } else { b } } }
//! ->
//! for i in 0..n { if 1 <= i and i < n - 1 { if 0 < m { a at j = 0 }
//!                                           for j in 1..m - 1 { b }
//!                                           if 1 < m { a at j = m - 1 } }
//!                 else { for j in 0..m { a } } }
//! ```
//! A comparison of an index with something a fixed number of steps from where its loop begins or ends comes out the same in all
//! steps but so many. Inside, where all of them are decided, vectors need no masks and read nothing in vain. On the rim those
//! conditions go that come out the same on all of it; others stay. Steps keep their order. It is done to vector loops, and to
//! those that are small enough for vectors once they have lost their conditions.

use super::linear::Linear;
use super::*;

/// The most steps of a rim, on each side.
const WIDEST: i64 = 8;
/// A loop known to have fewer iterations stays whole: it is soon done.
const LEAST: i64 = 32;
/// Longer bodies are too much to write several times.
const MOST_STATEMENTS: usize = 32;

pub(super) fn rims(kernel: &mut Kernel, options: Options) {
    let entry = Entry::new(kernel, &kernel.call);
    let body = std::mem::take(&mut kernel.body);
    let mut found = Finder { entry, changing: FxHashSet::default(), options };
    changing(&body, &mut found.changing);
    kernel.body = block(kernel, &found, body, &mut vec![]);
}

struct Finder {
    entry: Entry,
    /// Locals that are assigned again.
    changing: FxHashSet<Local>,
    options: Options,
}

impl Finder {
    /// Whether a number is the same wherever it is computed again.
    fn is_fixed(&self, e: &Expr) -> bool {
        !e.any(&mut |e| match e {
            Expr::Local(local) => self.changing.contains(local),
            Expr::Load(..) | Expr::Partial(..) | Expr::Select(..) => true,
            Expr::Lit(_) | Expr::Op(..) => false,
        })
    }
    /// The steps of a loop, of which nothing is known if its ends may change.
    fn range(&self, l: &Loop) -> Option<Range> {
        let (lo, hi) = (l.lo.clone(), l.hi.clone());
        (self.is_fixed(&lo) && self.is_fixed(&hi)).then_some(Range { index: l.index, lo, hi, first: 0, last: 0 })
    }
}

fn changing(block: &[Stmt], found: &mut FxHashSet<Local>) {
    for s in block {
        if let Stmt::Set(Target::Local(local), _) | Stmt::Add(Target::Local(local), _) = s {
            found.insert(*local);
        }
        s.blocks().into_iter().for_each(|b| changing(b, found));
    }
}

fn block(kernel: &mut Kernel, found: &Finder, stmts: Vec<Stmt>, around: &mut Vec<Range>) -> Vec<Stmt> {
    let mut out = vec![];
    for mut s in stmts {
        match s {
            // What stands in lanes is told apart there, by name.
            Stmt::Loop(l) if matches!(l.schedule, Schedule::Lanes(_)) => out.push(Stmt::Loop(l)),
            Stmt::Loop(l) if l.body.iter().all(schedule::is_straight) => match split(kernel, found, &l, around) {
                Some(pieces) => out.extend(pieces),
                None => out.push(Stmt::Loop(l)),
            },
            Stmt::Loop(mut l) => {
                let outside = around.len();
                around.extend(found.range(&l));
                l.body = block(kernel, found, l.body, around);
                around.truncate(outside);
                out.push(Stmt::Loop(l));
            }
            _ => {
                for inner in s.blocks_mut() {
                    *inner = block(kernel, found, std::mem::take(inner), around);
                }
                out.push(s);
            }
        }
    }
    out
}

/// The steps of a loop: how many at each end are on the rim.
#[derive(Clone)]
struct Range {
    index: Local,
    lo: Expr,
    hi: Expr,
    first: i64,
    last: i64,
}

impl Range {
    /// Where what is inside begins, and where it ends.
    fn begin(&self) -> Expr {
        self.lo.clone().plus(Expr::int(self.first))
    }
    fn end(&self) -> Expr {
        self.hi.clone().minus(Expr::int(self.last))
    }
    fn whole(&self) -> Within {
        Within { index: self.index, lo: Linear::of(&self.lo), hi: Linear::of(&self.hi) }
    }
    fn inside(&self) -> Within {
        Within { index: self.index, lo: Linear::of(&self.begin()), hi: Linear::of(&self.end()) }
    }
    fn at(&self, place: Linear) -> Within {
        Within { index: self.index, hi: place.clone().plus(1), lo: place }
    }
    /// Each step on the rim at the beginning.
    fn firsts(&self) -> Vec<Within> {
        (0..self.first).map(|k| self.at(Linear::of(&self.lo).plus(k))).collect()
    }
    fn lasts(&self) -> Vec<Within> {
        (1..=self.last).map(|k| self.at(Linear::of(&self.hi).plus(-k))).collect()
    }

    /// Makes the rim wide enough that the comparison comes out the same inside.
    fn widen(&mut self, test: &Comparison) -> bool {
        let Some((sign, rest)) = test.difference.without(self.index) else { return false };
        let steps_from = |difference: i64, sign: i64| {
            // It comes out the same on either side of where the difference is zero, which may belong to this side.
            let zero = difference.wrapping_mul(-sign);
            let inside = zero.saturating_add(1);
            let is_inside = holds(test.op, 0) == holds(test.op, sign);
            let steps = if is_inside { zero } else { inside }.max(0);
            (steps <= WIDEST).then_some(steps)
        };
        let first = rest.add(&Linear::of(&self.lo), sign).constant().and_then(|d| steps_from(d, sign));
        let last = rest.add(&Linear::of(&self.hi).plus(-1), sign).constant().and_then(|d| steps_from(d, -sign));
        match (first, last) {
            (Some(steps), _) => self.first = self.first.max(steps),
            (None, Some(steps)) => self.last = self.last.max(steps),
            (None, None) => return false,
        }
        true
    }
}

fn split(kernel: &mut Kernel, found: &Finder, l: &Loop, around: &[Range]) -> Option<Vec<Stmt>> {
    if found.entry.trip(l).is_some_and(|trip| trip < LEAST) || statements(&l.body) > MOST_STATEMENTS {
        return None;
    }
    let mut body = l.body.clone();
    body.iter_mut().for_each(join_choices);
    let mut ranges: Vec<Range> = around.to_vec();
    ranges.push(found.range(l)?);
    for test in comparisons(kernel, &body) {
        // That of the innermost loop which decides.
        ranges.iter_mut().rev().any(|range| range.widen(&test));
    }
    let own = ranges.pop().expect("the loop itself");
    let on_rim = |range: &Range| range.first > 0 || range.last > 0;
    if !on_rim(&own) && !ranges.iter().any(on_rim) {
        return None;
    }
    let base: Vec<Within> = ranges.iter().map(Range::whole).chain([own.whole()]).collect();
    let with = |more: &[Within]| base.iter().chain(more).cloned().collect::<Vec<Within>>();
    let rows_inside: Vec<Within> = ranges.iter().map(Range::inside).collect();
    let inside = Settle::new(kernel, vec![with(&[rows_inside.clone(), vec![own.inside()]].concat())]).block(&body);
    if !is_light(kernel, l, &inside, found.options) || count_choices(&inside) >= count_choices(&body) {
        return None;
    }
    let at_each = |places: Vec<Within>, rows: &[Within]| -> Vec<Vec<Within>> {
        places.into_iter().map(|place| with(&[rows.to_vec(), vec![place]].concat())).collect()
    };
    let mut row = vec![];
    if own.first > 0 {
        let first = Settle::new(kernel, at_each(own.firsts(), &rows_inside)).block(&body);
        let until = Expr::Op(Op::Min, vec![own.begin(), own.hi.clone()]);
        row.extend(match own.first {
            1 => once(kernel, l, Expr::Op(Op::Lt, vec![own.lo.clone(), own.hi.clone()]), own.lo.clone(), first),
            _ => few(kernel, l, own.lo.clone(), until, first),
        });
    }
    row.extend(unless_empty(kernel, Loop { lo: own.begin(), hi: own.end(), body: inside, schedule: Schedule::Vector, ..l.clone() }));
    if own.last > 0 {
        let last = Settle::new(kernel, at_each(own.lasts(), &rows_inside)).block(&body);
        let from = Expr::Op(Op::Max, vec![own.begin(), own.end()]);
        row.extend(match own.last {
            1 => once(kernel, l, Expr::Op(Op::Lt, vec![own.begin(), own.hi.clone()]), own.end(), last),
            _ => few(kernel, l, from, own.hi.clone(), last),
        });
    }
    let Some(is_inside) = ranges.iter().flat_map(is_inside).reduce(|p, q| Expr::Op(Op::And, vec![p, q])) else { return Some(row) };
    let rows_on_rim: Vec<Within> = ranges.iter().flat_map(|range| [range.firsts(), range.lasts()].concat()).collect();
    let on_rim = Settle::new(kernel, at_each(rows_on_rim, &[])).block(&body);
    let on_rim = unless_empty(kernel, Loop { body: on_rim, ..l.clone() });
    Some(vec![Stmt::If(is_inside, row, on_rim.into_iter().collect())])
}

/// What holds of the index of an outer loop where it is not on the rim.
fn is_inside(range: &Range) -> Vec<Expr> {
    let index = Expr::Local(range.index);
    let first = (range.first > 0).then(|| Expr::Op(Op::Le, vec![range.begin(), index.clone()]));
    let last = (range.last > 0).then(|| Expr::Op(Op::Lt, vec![index.clone(), range.end()]));
    first.into_iter().chain(last).collect()
}

/// Whether the loop without its conditions may run in vectors.
fn is_light(kernel: &Kernel, l: &Loop, inside: &[Stmt], options: Options) -> bool {
    match l.schedule {
        Schedule::Vector => true,
        // What had little to do stays as it is; what was too long is shorter now.
        _ => !schedule::is_short(&l.body) && schedule::is_short(inside) && schedule::is_in_any_order(kernel, &l.order, options),
    }
}

/// The only step of a rim, if it is there.
fn once(kernel: &mut Kernel, l: &Loop, is_there: Expr, at: Expr, body: Vec<Stmt>) -> Option<Stmt> {
    let Stmt::Loop(step) = few(kernel, l, at.clone(), at.clone(), body)? else { return None };
    Some(Stmt::If(is_there, [vec![Stmt::Let(step.index, at)], step.body].concat(), vec![]))
}

/// The few steps of a rim: they are no vectors.
fn few(kernel: &mut Kernel, l: &Loop, lo: Expr, hi: Expr, body: Vec<Stmt>) -> Option<Stmt> {
    unless_empty(kernel, Loop { lo, hi, body, order: Order::Sequential, schedule: Schedule::Plain, ..l.clone() })
}

fn unless_empty(kernel: &mut Kernel, l: Loop) -> Option<Stmt> {
    let does_something = |s: &Stmt| !matches!(s, Stmt::Let(..) | Stmt::Var(..));
    l.body.iter().any(does_something).then(|| checks::renamed(kernel, &Stmt::Loop(l), &mut FxHashMap::default()))
}

/// A choice within a choice with the same number otherwise is one: `p ? (q ? x : 0) : 0` is `p and q ? x : 0`.
fn join_choices(s: &mut Stmt) {
    s.map_exprs(&mut joined);
    for block in s.blocks_mut() {
        block.iter_mut().for_each(join_choices);
    }
}

fn joined(e: Expr) -> Expr {
    match e {
        Expr::Lit(_) | Expr::Local(_) => e,
        Expr::Load(b, offset) => Expr::Load(b, Box::new(joined(*offset))),
        Expr::Op(op, args) => Expr::Op(op, args.into_iter().map(joined).collect()),
        Expr::Partial(op, k, args) => Expr::Partial(op, k, args.into_iter().map(joined).collect()),
        Expr::Select(p, a, b) => match (joined(*p), joined(*a), joined(*b)) {
            (p, Expr::Select(q, a, c), b) if is_same_number(&c, &b) => {
                Expr::Select(Box::new(Expr::Op(Op::And, vec![p, *q])), a, Box::new(b))
            }
            (p, a, b) => Expr::Select(Box::new(p), Box::new(a), Box::new(b)),
        },
    }
}

fn is_same_number(a: &Expr, b: &Expr) -> bool {
    match (a, b) {
        // Zeros with signs are equal, and not the same.
        (Expr::Lit(Lit::F64(a)), Expr::Lit(Lit::F64(b))) => a.to_bits() == b.to_bits(),
        (Expr::Lit(Lit::F32(a)), Expr::Lit(Lit::F32(b))) => a.to_bits() == b.to_bits(),
        (Expr::Lit(a), Expr::Lit(b)) => a == b,
        _ => false,
    }
}

fn count_choices(block: &[Stmt]) -> usize {
    fn of(e: &Expr) -> usize {
        let mut total = matches!(e, Expr::Select(..)) as usize;
        e.for_each_child(&mut |c| total += of(c));
        total
    }
    let mut total = 0;
    for s in block {
        total += matches!(s, Stmt::If(..)) as usize;
        s.for_each_expr(&mut |e| total += of(e));
        s.blocks().into_iter().for_each(|b| total += count_choices(b));
    }
    total
}

/// How a difference compares with zero.
struct Comparison {
    op: Op,
    difference: Linear,
}

impl Comparison {
    /// That of two integers that nothing changes.
    fn of(kernel: &Kernel, e: &Expr) -> Option<Comparison> {
        let Expr::Op(op @ (Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge), args) = e else { return None };
        let [a, b] = args.as_slice() else { return None };
        let is_fixed = !e.any(&mut |e| matches!(e, Expr::Load(..) | Expr::Partial(..) | Expr::Select(..)));
        let is_integer = kernel.scalar_of(a) == Scalar::I64;
        (is_fixed && is_integer).then(|| Comparison { op: *op, difference: Linear::of(a).add(&Linear::of(b), -1) })
    }
}

fn holds(op: Op, difference: i64) -> bool {
    match op {
        Op::Eq => difference == 0,
        Op::Ne => difference != 0,
        Op::Lt => difference < 0,
        Op::Le => difference <= 0,
        Op::Gt => difference > 0,
        Op::Ge => difference >= 0,
        _ => panic!("rims: {op:?} does not compare"),
    }
}

fn comparisons(kernel: &Kernel, block: &[Stmt]) -> Vec<Comparison> {
    let mut found = vec![];
    for s in block {
        s.for_each_expr(&mut |e| {
            e.any(&mut |e| {
                found.extend(Comparison::of(kernel, e));
                false
            });
        });
        s.blocks().into_iter().for_each(|b| found.extend(comparisons(kernel, b)));
    }
    found
}

/// That an index is at least `lo` and less than `hi`.
#[derive(Clone)]
struct Within {
    index: Local,
    lo: Linear,
    hi: Linear,
}

/// Takes the conditions away that come out the same at all of several places.
struct Settle<'a> {
    kernel: &'a Kernel,
    /// What is known at each.
    places: Vec<Vec<Within>>,
    /// Conditions that have a name.
    named: FxHashMap<Local, bool>,
}

impl Settle<'_> {
    fn new(kernel: &Kernel, places: Vec<Vec<Within>>) -> Settle<'_> {
        Settle { kernel, places, named: FxHashMap::default() }
    }

    fn block(&mut self, stmts: &[Stmt]) -> Vec<Stmt> {
        let mut out = vec![];
        for s in stmts {
            match s {
                Stmt::If(p, yes, no) => match self.truth(p) {
                    Some(true) => out.extend(self.block(yes)),
                    Some(false) => out.extend(self.block(no)),
                    None => {
                        let p = self.value(p);
                        out.push(Stmt::If(p, self.block(yes), self.block(no)));
                    }
                },
                s => {
                    if let Stmt::Let(local, e) = s {
                        self.named.extend(self.truth(e).map(|truth| (*local, truth)));
                    }
                    let mut s = s.clone();
                    s.map_exprs(&mut |e| self.value(&e));
                    out.push(s);
                }
            }
        }
        out
    }

    fn value(&self, e: &Expr) -> Expr {
        if let Some(truth) = self.truth(e) {
            return Expr::Lit(Lit::Bool(truth));
        }
        let all = |args: &[Expr]| args.iter().map(|a| self.value(a)).collect();
        match e {
            Expr::Lit(_) | Expr::Local(_) => e.clone(),
            Expr::Load(b, offset) => Expr::Load(*b, Box::new(self.value(offset))),
            Expr::Op(Op::And | Op::Or, args) if self.truth(&args[0]).is_some() => self.value(&args[1]),
            Expr::Op(Op::And | Op::Or, args) if self.truth(&args[1]).is_some() => self.value(&args[0]),
            Expr::Op(op, args) => Expr::Op(*op, all(args)),
            Expr::Partial(op, k, args) => Expr::Partial(*op, *k, all(args)),
            Expr::Select(p, a, b) => match self.truth(p) {
                Some(true) => self.value(a),
                Some(false) => self.value(b),
                None => {
                    let [p, a, b] = [p, a, b].map(|e| Box::new(self.value(e)));
                    Expr::Select(p, a, b)
                }
            },
        }
    }

    /// What a condition is, if it is the same at all places.
    fn truth(&self, e: &Expr) -> Option<bool> {
        let mut all = self.places.iter().map(|known| self.truth_at(e, known));
        let first = all.next()??;
        all.all(|truth| truth == Some(first)).then_some(first)
    }

    fn truth_at(&self, e: &Expr, known: &[Within]) -> Option<bool> {
        match e {
            Expr::Lit(Lit::Bool(b)) => Some(*b),
            Expr::Local(local) => self.named.get(local).copied(),
            Expr::Op(Op::Not, args) => self.truth_at(&args[0], known).map(|truth| !truth),
            Expr::Op(op @ (Op::And | Op::Or), args) => {
                // What decides it alone, if either of them is that.
                let deciding = *op == Op::Or;
                match [self.truth_at(&args[0], known), self.truth_at(&args[1], known)] {
                    [Some(truth), _] | [_, Some(truth)] if truth == deciding => Some(deciding),
                    [Some(_), Some(_)] => Some(!deciding),
                    _ => None,
                }
            }
            e => outcome(&Comparison::of(self.kernel, e)?, known),
        }
    }
}

fn outcome(test: &Comparison, known: &[Within]) -> Option<bool> {
    let (mut least, mut most) = (test.difference.constant(), test.difference.constant());
    for within in known {
        let Some((sign, rest)) = test.difference.without(within.index) else { continue };
        let [low, high] = [within.lo.clone(), within.hi.clone().plus(-1)].map(|end| rest.add(&end, sign).constant());
        let (low, high) = if sign > 0 { (low, high) } else { (high, low) };
        least = least.max(low);
        most = [most, high].into_iter().flatten().min();
    }
    match test.op {
        Op::Eq | Op::Ne => {
            let differs = least.is_some_and(|least| least > 0) || most.is_some_and(|most| most < 0);
            let same = least == Some(0) && most == Some(0);
            (differs || same).then_some(same == (test.op == Op::Eq))
        }
        op => {
            // It holds for all if it does where that is hardest, and for none if it does not where that is easiest.
            let (hardest, easiest) = if matches!(op, Op::Lt | Op::Le) { (most, least) } else { (least, most) };
            let holds_at = |difference: Option<i64>| difference.map(|d| holds(op, d));
            match (holds_at(hardest), holds_at(easiest)) {
                (Some(true), _) => Some(true),
                (_, Some(false)) => Some(false),
                _ => None,
            }
        }
    }
}
