//! What each step adds through a small window is added along the steps, for one row of the window after the other.
//!
//! ```text
//! for j { if p(j) { let e = f(j); for a { for q in 0..3 { y[a, j + q] += w[a, q] * e }; for q in 0..3 { v[a, q] += x[a, j + q] * e } } } }
//! ->
//! for j { if p(j) { live[j] = 1; e[j] = f(j) } else { live[j] = e[j] = 0 } }     -- and zeros before and behind
//! let first and last be the ends of what is live; if there are any {
//!   for a { for j in first..last + 2 in lanes { y[a, j] += (live[j - 2] ? w[a, 2] : 0) * e[j - 2] + …j - 1… + …j… } }
//!   for a { t0 = t1 = t2 = 0; for j in first..last in lanes { t0 += (live[j] ? x[a, j] : 0) * e[j]; … }; v[a, 0] += t0; … } }
//! ```
//! What lies between two places that are read may be read, too. A zero is no factor of what is not live, which may be infinite.
//! So are convolutions differentiated: a window is too short for vectors, the steps are many. What they add to is then read and
//! written once for a row of the window, and sums stay in registers. It changes the order of additions, and it is done where all that
//! is read and added to lies side by side in the order of the steps, or is the same for all.

use super::linear::Linear;
use super::*;

/// Loops known to have fewer steps stay as they are: they are no vectors.
const LEAST: i64 = 16;
/// The longest side of a window.
const WIDEST: i64 = 8;
/// The most places of a window that are added to at once: each has a register.
const MOST: usize = 9;
/// The most operations of what is computed again for each place of a window.
const LIGHT: i64 = 6;

/// How far rows of zeros go before the first step and behind the last.
const MARGIN: i64 = WIDEST;

pub(super) fn windows(kernel: &mut Kernel, bounds: &mut FxHashMap<Buffer, Option<Expr>>, options: Options) {
    let mut cx = Context { entry: Entry::new(kernel, &kernel.call), known: kernel.known_at_entry(), kernel, bounds, options };
    let body = std::mem::take(&mut cx.kernel.body);
    cx.kernel.body = block(&mut cx, body);
}

struct Context<'a> {
    kernel: &'a mut Kernel,
    bounds: &'a mut FxHashMap<Buffer, Option<Expr>>,
    entry: Entry,
    known: FxHashSet<Local>,
    options: Options,
}

fn block(cx: &mut Context, stmts: Vec<Stmt>) -> Vec<Stmt> {
    let mut out = vec![];
    for mut s in stmts {
        if let Stmt::Loop(l) = &s {
            // What stands in lanes is told apart there, by name.
            let is_in_lanes = matches!(l.schedule, Schedule::Lanes(_));
            let pieces = if has_windows(&cx.entry, l) { along(cx, l) } else { None };
            if is_in_lanes || pieces.is_some() {
                out.extend(pieces.unwrap_or(vec![s]));
                continue;
            }
        }
        for inner in s.blocks_mut() {
            *inner = block(cx, std::mem::take(inner));
        }
        out.push(s);
    }
    out
}

/// Whether a loop is long, and the innermost loops in it are short.
fn has_windows(entry: &Entry, l: &Loop) -> bool {
    fn are_short(block: &[Stmt], found: &mut bool) -> bool {
        block.iter().all(|s| match s {
            Stmt::Loop(inner) if inner.body.iter().any(|s| !s.blocks().is_empty()) => are_short(&inner.body, found),
            Stmt::Loop(inner) => {
                *found = true;
                length(inner).is_some_and(|length| (2..=WIDEST).contains(&length))
            }
            s => s.blocks().into_iter().all(|b| are_short(b, found)),
        })
    }
    let is_long = entry.trip(l).is_none_or(|trip| trip >= LEAST);
    let mut found = false;
    is_long && matches!(l.order, Order::Accumulation(..)) && l.schedule == Schedule::Plain && are_short(&l.body, &mut found) && found
}

fn length(l: &Loop) -> Option<i64> {
    Linear::of(&l.hi).add(&Linear::of(&l.lo), -1).constant()
}

fn along(cx: &mut Context, l: &Loop) -> Option<Vec<Stmt>> {
    if ![&l.lo, &l.hi].into_iter().all(|e| e.is_known(&cx.known)) || !is_apart(&l.body) {
        return None;
    }
    let scalar = added(cx.kernel, &l.body).filter(|scalar| scalar.is_float())?;
    let (condition, body) = match l.body.as_slice() {
        [Stmt::If(p, yes, no)] if no.is_empty() => (Some(p), yes.as_slice()),
        body => (None, body),
    };
    let (mut first, mut until) = (l.lo.clone(), l.hi.clone());
    if condition.is_some() {
        first = Expr::Local(cx.kernel.fresh_local("first", Scalar::I64));
        until = Expr::Local(cx.kernel.fresh_local("until", Scalar::I64));
    }
    let (lo, hi) = (&l.lo, &l.hi);
    let mut steps = Along { cx, index: l.index, lo, hi, first, until, depth: 0, kept: vec![], live: None, scalar, adds_to_windows: false };
    let condition = match condition {
        Some(p) => Some(steps.tidy(p)?),
        None => None,
    };
    if condition.is_some() {
        steps.live();
    }
    let all = steps.block(body, &FxHashMap::default())?;
    if !steps.adds_to_windows {
        return None;
    }
    let runs = Expr::Op(Op::Lt, vec![l.lo.clone(), l.hi.clone()]);
    let all = steps.behind_what_is_kept(condition, all);
    Some(vec![Stmt::If(runs, all, vec![])])
}

/// What kind of numbers a block adds to places, at first.
fn added(kernel: &Kernel, block: &[Stmt]) -> Option<Scalar> {
    block.iter().find_map(|s| match s {
        Stmt::Add(Target::Place(b, _), _) => Some(kernel.buffer(*b).scalar),
        s => s.blocks().into_iter().find_map(|b| added(kernel, b)),
    })
}

/// Whether nothing is read of what is added to.
fn is_apart(body: &[Stmt]) -> bool {
    fn collect(block: &[Stmt], to: &mut FxHashSet<Buffer>, from: &mut FxHashSet<Buffer>) {
        for s in block {
            if let Stmt::Add(Target::Place(b, _), _) | Stmt::Set(Target::Place(b, _), _) = s {
                to.insert(*b);
            }
            s.for_each_expr(&mut |e| {
                e.any(&mut |e| {
                    if let Expr::Load(b, _) = e {
                        from.insert(*b);
                    }
                    false
                });
            });
            s.blocks().into_iter().for_each(|b| collect(b, to, from));
        }
    }
    let (mut to, mut from) = (FxHashSet::default(), FxHashSet::default());
    collect(body, &mut to, &mut from);
    to.is_disjoint(&from)
}

/// What locals of the loop stand for.
type Names = FxHashMap<Local, Expr>;

fn named(e: &Expr, names: &Names) -> Expr {
    e.substitute(&mut |l| names.get(&l).cloned())
}

/// The steps of a loop that is to be the innermost.
struct Along<'a, 'b> {
    cx: &'a mut Context<'b>,
    index: Local,
    lo: &'a Expr,
    hi: &'a Expr,
    /// The first step that does something, and the one behind the last.
    first: Expr,
    until: Expr,
    /// The number of loops around what is looked at.
    depth: usize,
    /// Rows of numbers that have a name in each step.
    kept: Vec<(Buffer, Expr)>,
    /// The row that says which steps do something.
    live: Option<Buffer>,
    /// Of what is added.
    scalar: Scalar,
    adds_to_windows: bool,
}

impl Along<'_, '_> {
    fn block(&mut self, stmts: &[Stmt], names: &Names) -> Option<Vec<Stmt>> {
        let mut names = names.clone();
        let mut out = vec![];
        for s in stmts {
            match s {
                Stmt::Let(local, e) => {
                    let e = self.tidy(&named(e, &names))?;
                    let work = work::own(&Stmt::Let(*local, e.clone()));
                    let value = match (self.depth, self.cx.kernel.local(*local).scalar) {
                        (0, scalar) if scalar.is_number() => self.keep(*local, e),
                        _ if work <= LIGHT => e,
                        _ => return None,
                    };
                    names.insert(*local, value);
                }
                Stmt::Mark(_) => out.push(s.clone()),
                Stmt::Loop(inner) if inner.order != Order::Sequential => out.extend(self.within(inner, &names)?),
                Stmt::Add(..) => {
                    let places = self.places(std::slice::from_ref(s), &names)?;
                    out.extend(self.add(places)?);
                }
                _ => return None,
            }
        }
        Some(out)
    }

    /// A row of what is known by a name in each step.
    fn keep(&mut self, local: Local, e: Expr) -> Expr {
        let info = self.cx.kernel.local(local).clone();
        let row = self.row(&info.name, info.scalar);
        self.kept.push((row, e));
        self.at(row)
    }
    fn live(&mut self) -> Buffer {
        match self.live {
            Some(row) => row,
            None => {
                // As wide as what is added, so that lanes are alike.
                let row = self.row("live", self.scalar);
                self.live = Some(row);
                row
            }
        }
    }
    fn row(&mut self, name: &str, scalar: Scalar) -> Buffer {
        let row = self.cx.kernel.fresh_buffer(format!("{name}_row"), scalar, Home::Unplanned);
        self.cx.bounds.insert(row, Some(self.length()));
        row
    }
    /// That of a row, with its margins.
    fn length(&self) -> Expr {
        self.hi.clone().minus(self.lo.clone()).plus(Expr::int(2 * MARGIN))
    }
    fn place(&self) -> Expr {
        Linear::of(&Expr::Local(self.index)).add(&Linear::of(self.lo), -1).plus(MARGIN).expr()
    }
    fn at(&self, row: Buffer) -> Expr {
        Expr::Load(row, Box::new(self.place()))
    }
    fn is_live(&self) -> Option<Expr> {
        Some(Expr::Op(Op::Lt, vec![Expr::Lit(Lit::zero(self.scalar)), self.at(self.live?)]))
    }

    /// What the steps do, behind the rows that it needs.
    fn behind_what_is_kept(&mut self, condition: Option<Expr>, all: Vec<Stmt>) -> Vec<Stmt> {
        let rows: Vec<(Buffer, Expr)> =
            self.live.map(|row| (row, Expr::Lit(Lit::one(self.scalar)))).into_iter().chain(self.kept.clone()).collect();
        let mut out = vec![];
        let mut set = vec![];
        let if_it_holds = |e: Expr, otherwise: Expr| match &condition {
            Some(p) => Expr::Select(Box::new(p.clone()), Box::new(e), Box::new(otherwise)),
            None => e,
        };
        for (row, e) in rows {
            out.push(Stmt::Allocate(row, self.length()));
            out.push(Stmt::Zero(row, Expr::int(0), Expr::int(MARGIN)));
            let behind = self.length().minus(Expr::int(MARGIN));
            out.push(Stmt::Zero(row, behind, Expr::int(MARGIN)));
            let zero = Expr::Lit(Lit::zero(self.cx.kernel.buffer(row).scalar));
            set.push(Stmt::Set(Target::Place(row, self.place()), if_it_holds(e, zero)));
        }
        let (lo, hi) = (self.lo.clone(), self.hi.clone());
        let (Expr::Local(first), Expr::Local(until), true) = (self.first.clone(), self.until.clone(), condition.is_some()) else {
            out.push(self.steps(lo, hi, Order::Independent, set, false));
            return [out, all].concat();
        };
        let index = Expr::Local(self.index);
        for (end, op, here, otherwise) in [(first, Op::Min, index.clone(), &hi), (until, Op::Max, index.plus(Expr::int(1)), &lo)] {
            let here = if_it_holds(here, otherwise.clone());
            set.push(Stmt::Set(Target::Local(end), Expr::Op(op, vec![Expr::Local(end), here])));
            out.push(Stmt::Var(end, otherwise.clone()));
        }
        let order = Order::Reduction(vec![(first, Combine::Min), (until, Combine::Max)]);
        out.push(self.steps(lo, hi, order, set, false));
        out.push(Stmt::If(Expr::Op(Op::Lt, vec![Expr::Local(first), Expr::Local(until)]), all, vec![]));
        out
    }

    fn within(&mut self, inner: &Loop, names: &Names) -> Option<Vec<Stmt>> {
        if let Some(places) = self.places(&[Stmt::Loop(inner.clone())], names)
            && (places.iter().all(|place| self.slope(place) == Some(0)) || self.is_row(&places))
        {
            self.adds_to_windows = true;
            return self.add(places);
        }
        let (mut lo, mut hi) = (named(&inner.lo, names), named(&inner.hi, names));
        let mut names = names.clone();
        if lo.mentions(self.index) || hi.mentions(self.index) {
            // The window goes with the steps: its places are counted from where it begins.
            names.insert(inner.index, Expr::Local(inner.index).plus(lo.clone()));
            hi = Linear::of(&hi).add(&Linear::of(&lo), -1).expr();
            lo = Expr::int(0);
            if hi.mentions(self.index) {
                return None;
            }
        }
        self.depth += 1;
        let body = self.block(&inner.body, &names)?;
        self.depth -= 1;
        Some(vec![Stmt::Loop(Loop { lo, hi, body, order: Order::Sequential, schedule: Schedule::Plain, ..inner.clone() })])
    }

    /// What a nest of short loops adds to each place of a window.
    fn places(&self, nest: &[Stmt], names: &Names) -> Option<Vec<(Target, Expr)>> {
        let mut only = nest.iter().filter(|s| !matches!(s, Stmt::Mark(_)));
        match (only.next(), only.next()) {
            (Some(Stmt::Loop(inner)), None) if inner.order != Order::Sequential => {
                let lo = named(&inner.lo, names);
                let mut all = vec![];
                for k in 0..length(inner).filter(|length| (1..=WIDEST).contains(length))? {
                    let mut names = names.clone();
                    names.insert(inner.index, lo.clone().plus(Expr::int(k)));
                    all.extend(self.places(&inner.body, &names)?);
                    if all.len() > MOST {
                        return None;
                    }
                }
                Some(all)
            }
            (Some(Stmt::Add(target, e)), None) => {
                let target = match target {
                    Target::Local(_) => target.clone(),
                    Target::Place(b, offset) => Target::Place(*b, self.offset(&named(offset, names))?),
                };
                Some(vec![(target, self.tidy(&named(e, names))?)])
            }
            _ => None,
        }
    }

    /// With offsets that are the same for all steps, or one further in the next step.
    fn tidy(&self, e: &Expr) -> Option<Expr> {
        let all = |args: &[Expr]| args.iter().map(|a| self.tidy(a)).collect::<Option<Vec<Expr>>>();
        Some(match e {
            Expr::Lit(_) | Expr::Local(_) => e.clone(),
            Expr::Load(b, offset) => Expr::Load(*b, Box::new(self.offset(offset)?)),
            Expr::Op(op, args) => Expr::Op(*op, all(args)?),
            Expr::Partial(op, k, args) => Expr::Partial(*op, *k, all(args)?),
            Expr::Select(p, a, b) => Expr::Select(Box::new(self.tidy(p)?), Box::new(self.tidy(a)?), Box::new(self.tidy(b)?)),
        })
    }
    fn offset(&self, e: &Expr) -> Option<Expr> {
        let moves = e.slope(self.index)?.as_int()?;
        let e = if e.mentions(self.index) { Linear::of(e).expr() } else { e.clone() };
        (moves == 1 || moves == 0 && !e.mentions(self.index)).then_some(e)
    }

    /// How far a place moves with the steps.
    fn slope(&self, (target, _): &(Target, Expr)) -> Option<i64> {
        match target {
            Target::Local(_) => Some(0),
            Target::Place(_, offset) => offset.slope(self.index)?.as_int(),
        }
    }

    /// Whether places follow each other, and each is the next one's in the step before.
    fn is_row(&self, places: &[(Target, Expr)]) -> bool {
        let Some((Target::Place(first, from), _)) = places.first() else { return false };
        let from = Linear::of(from);
        places.iter().zip(0..).all(|(place, k)| match &place.0 {
            Target::Place(b, offset) => {
                b == first && self.slope(place) == Some(1) && Linear::of(offset).add(&from, -1).constant() == Some(k)
            }
            Target::Local(_) => false,
        })
    }

    /// Adds to places, along the steps.
    fn add(&mut self, places: Vec<(Target, Expr)>) -> Option<Vec<Stmt>> {
        let mut out = vec![];
        let places: Vec<(Target, Expr)> = places.into_iter().map(|(target, e)| (target, self.read_before(&e, &mut out))).collect();
        if places.iter().all(|place| self.slope(place) == Some(0)) {
            self.add_totals(places, &mut out);
        } else if self.is_row(&places) {
            self.add_row(places, &mut out);
        } else {
            return None;
        }
        Some(out)
    }

    /// Reads before the steps what is the same for all.
    fn read_before(&mut self, e: &Expr, out: &mut Vec<Stmt>) -> Expr {
        let index = self.index;
        let kernel = &mut *self.cx.kernel;
        e.clone().map_loads(&mut |b, offset| {
            if offset.mentions(index) {
                return Expr::Load(b, Box::new(offset));
            }
            let local = kernel.fresh_local("element", kernel.buffer(b).scalar);
            out.push(Stmt::Let(local, Expr::Load(b, Box::new(offset))));
            Expr::Local(local)
        })
    }

    fn add_totals(&mut self, places: Vec<(Target, Expr)>, out: &mut Vec<Stmt>) {
        let (mut totals, mut body, mut adds) = (vec![], vec![], vec![]);
        for (target, e) in places {
            let scalar = self.cx.kernel.scalar_of(&e);
            let total = self.cx.kernel.fresh_local("total", scalar);
            out.push(Stmt::Var(total, Expr::Lit(Lit::zero(scalar))));
            let e = self.if_live(&e, 0, &mut body);
            adds.push(Stmt::Add(Target::Local(total), e));
            totals.push((total, target));
        }
        let order = Order::Reduction(totals.iter().map(|(total, _)| (*total, Combine::Add)).collect());
        out.push(self.steps(self.first.clone(), self.until.clone(), order, [body, adds].concat(), true));
        out.extend(totals.into_iter().map(|(total, target)| Stmt::Add(target, Expr::Local(total))));
    }

    /// The places of step `j` are `j`, `j + 1`, …: to place `j` the steps `j`, `j - 1`, … add. At both ends there are fewer.
    fn add_row(&mut self, places: Vec<(Target, Expr)>, out: &mut Vec<Stmt>) {
        let (target, _) = places[0].clone();
        let more = places.len() as i64 - 1;
        let has_margins = |e: &Expr| {
            !e.any(&mut |e| matches!(e, Expr::Load(b, offset) if offset.mentions(self.index) && !self.kept.iter().any(|(row, _)| row == b)))
        };
        let (mut lo, mut hi) = (self.first.clone(), self.until.clone());
        if places.iter().all(|(_, e)| has_margins(e)) {
            self.live();
            hi = hi.plus(Expr::int(more));
        } else {
            for ((target, e), k) in places.iter().zip(0..) {
                let (first, last) = (lo.clone().plus(Expr::int(more - k)), hi.clone().minus(Expr::int(k)));
                let mut add = vec![];
                let e = self.if_live(e, 0, &mut add);
                add.push(Stmt::Add(target.clone(), e));
                if k < more {
                    out.push(self.few(lo.clone(), Expr::Op(Op::Min, vec![first.clone(), hi.clone()]), add.clone()));
                }
                if k > 0 {
                    out.push(self.few(Expr::Op(Op::Max, vec![first, last]), hi.clone(), add));
                }
            }
            lo = lo.plus(Expr::int(more));
        }
        let mut body = vec![];
        // In the order of the steps.
        let terms: Vec<Expr> = (0..=more).rev().zip(places.iter().rev()).map(|(k, (_, e))| self.if_live(e, k, &mut body)).collect();
        let sum = terms.into_iter().reduce(|a, b| Expr::Op(Op::Add, vec![a, b])).expect("there are places");
        body.push(Stmt::Add(target, sum));
        out.push(self.steps(lo, hi, Order::Independent, body, true));
    }

    /// What a step so far before adds, if it does something, and else zero: with all reads before it.
    fn if_live(&mut self, e: &Expr, before: i64, out: &mut Vec<Stmt>) -> Expr {
        let earlier = |e: &Expr| {
            let e = e.substitute(&mut |l| (l == self.index).then(|| Expr::Local(l).minus(Expr::int(before))));
            self.tidy(&e).expect("as far apart as before")
        };
        let (e, is_live) = (earlier(e), self.is_live().map(|p| earlier(&p)));
        let is_kept = |e: &Expr| matches!(e, Expr::Load(b, _) if self.kept.iter().any(|(row, _)| row == b));
        let masked = |e: Expr| match &is_live {
            Some(p) => {
                let zero = Expr::Lit(Lit::zero(self.cx.kernel.scalar_of(&e)));
                Expr::Select(Box::new(p.clone()), Box::new(e), Box::new(zero))
            }
            None => e,
        };
        // What is kept is zero where nothing is done.
        let e = match e {
            Expr::Op(Op::Mul, args) if is_kept(&args[1]) => Expr::Op(Op::Mul, vec![masked(args[0].clone()), args[1].clone()]),
            Expr::Op(Op::Mul, args) if is_kept(&args[0]) => Expr::Op(Op::Mul, vec![args[0].clone(), masked(args[1].clone())]),
            e => masked(e),
        };
        let kernel = &mut *self.cx.kernel;
        e.map_loads(&mut |b, offset| {
            let load = Expr::Load(b, Box::new(offset));
            let known = out.iter().find_map(|s| match s {
                Stmt::Let(local, e) if *e == load => Some(*local),
                _ => None,
            });
            Expr::Local(known.unwrap_or_else(|| {
                let local = kernel.fresh_local("near", kernel.buffer(b).scalar);
                out.push(Stmt::Let(local, load));
                local
            }))
        })
    }

    /// The steps, in lanes if they can be there, and else as vectors are.
    fn steps(&mut self, lo: Expr, hi: Expr, order: Order, body: Vec<Stmt>, in_lanes: bool) -> Stmt {
        let steps = Loop { index: self.index, lo, hi, order, schedule: Schedule::Vector, body };
        let steps = checks::renamed(self.cx.kernel, &Stmt::Loop(steps), &mut FxHashMap::default());
        match &steps {
            Stmt::Loop(l) if in_lanes && self.cx.options.lanes != InLanes::None => {
                lanes::with_partial_blocks(self.cx.kernel, l).map_or(steps, Stmt::Loop)
            }
            _ => steps,
        }
    }
    fn few(&mut self, lo: Expr, hi: Expr, add: Vec<Stmt>) -> Stmt {
        let steps = Loop { index: self.index, lo, hi, order: Order::Sequential, schedule: Schedule::Plain, body: add };
        checks::renamed(self.cx.kernel, &Stmt::Loop(steps), &mut FxHashMap::default())
    }
}
