//! One row of a matrix, or many that are alike: streams in the order of their columns.
//!
//! In: streams, each with which of its loops are axes of the rows. Out: how many entries a row has, and arrays of their columns
//! and values, in order.
//!
//! The columns of one stream are in order where each of its loops belongs to one key, by which it rises. Streams by
//! different parameters are in the order of the parameters; those by one parameter, where one is proven to end before
//! the other begins. The order of few others (`x[from[i]]` and `x[to[i]]`) is that of their first columns, which is found for each
//! row when it is computed, if no two of them cross:
//!
//! ```text
//! start of a stream = sum of the widths of those whose first column is less
//! a and b cross where first(a) <= last(b) and first(b) <= last(a)
//! ```

use super::nest::{Nest, Part};
use super::project::live;
use super::streams::Frame;
use super::{Placed, flat, natural, tidy, unflattened};
use crate::ir::build::*;
use crate::ir::facts::Facts;
use crate::ir::traverse::Substitution;
use crate::ir::*;

/// The order of more streams than these is left to sorting, and that of streams that may begin in more ways.
const MOST_STREAMS: usize = 8;
const MOST_WAYS: usize = 64;

/// A stream, and which of its loops are axes of the rows.
#[derive(Clone)]
pub struct Member<'m> {
    pub placed: &'m Placed,
    pub outer: Vec<(Var, usize)>,
}

/// What is asked of the entries of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Of {
    Rows,
    /// How many columns of the row are before that of the entry.
    Ranks,
    Columns(Scalar),
    Values(Scalar),
}

/// In which order streams that data decides about are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    AsFound,
    ByFirstColumn,
}

impl Of {
    pub fn name(self) -> &'static str {
        match self {
            Of::Rows => "row",
            Of::Ranks => "rank",
            Of::Columns(_) => "col",
            Of::Values(_) => "data",
        }
    }
    pub fn zero(self) -> Exp {
        match self {
            Of::Rows | Of::Ranks => i64(0),
            Of::Columns(scalar) | Of::Values(scalar) => Exp::Lit(Lit::zero(scalar)),
        }
    }
}

/// A row: blocks of columns in their order.
pub struct Row<'m> {
    /// Its place in its part of the result: indices that the rows around it count, and numbers.
    place: Vec<Exp>,
    blocks: Vec<Block<'m>>,
    pub width: Size,
}

/// A stream, or several by one parameter whose order data decides about.
struct Block<'m> {
    streams: Vec<Ordered<'m>>,
    width: Size,
}

struct Ordered<'m> {
    placed: &'m Placed,
    outer: Vec<(Var, usize)>,
    /// The loops inside of a row in the order of the columns, and how often each runs.
    inner: Vec<(Var, Size)>,
    width: Size,
}

impl<'m> Row<'m> {
    /// The row at a place, if all like it have as many entries, and each stream has its own in order.
    pub fn new(vars: &mut Vars, facts: &Facts, place: &[Exp], members: Vec<Member<'m>>) -> Option<Row<'m>> {
        let mut blocks: Vec<Block> = vec![];
        for member in members {
            let new = ordered(member, facts)?;
            // The blocks of one parameter stand together at the end. The new stream belongs behind those that precede it and
            // before those that it precedes; with what is between, data decides.
            let own = blocks.iter().position(|b| b.streams[0].placed.parameter == new.placed.parameter).unwrap_or(blocks.len());
            let mut first = own;
            while first < blocks.len() && blocks[first].streams.iter().all(|s| precedes(vars, facts, place, s, &new)) {
                first += 1;
            }
            let mut last = blocks.len();
            while last > first && blocks[last - 1].streams.iter().all(|s| precedes(vars, facts, place, &new, s)) {
                last -= 1;
            }
            let mut streams: Vec<Ordered> = blocks.drain(first..last).flat_map(|b| b.streams).collect();
            streams.push(new);
            let width = streams.iter().fold(Size::default(), |n, s| n.add(&s.width));
            blocks.insert(first, Block { streams, width });
        }
        if blocks.iter().any(|b| b.streams.len() > MOST_STREAMS || b.ways().len() > MOST_WAYS) {
            return None;
        }
        let width = blocks.iter().fold(Size::default(), |n, b| n.add(&b.width));
        Some(Row { place: place.to_vec(), blocks, width })
    }

    /// The one stream, if there are no others.
    fn only(&self) -> Option<&Ordered<'m>> {
        match self.blocks.as_slice() {
            [Block { streams, .. }] if streams.len() == 1 => Some(&streams[0]),
            _ => None,
        }
    }

    /// The axes of its entries.
    pub fn axes(&self) -> Vec<Size> {
        match self.only() {
            Some(one) => one.trips(),
            None => vec![self.width.clone()],
        }
    }

    /// What is asked of its entries: in order, if that is by the first columns of streams and these do not cross.
    pub fn generated(&self, vars: &mut Vars, of: Of, order: Order) -> Exp {
        if let Some(one) = self.only() {
            return one.generated(vars, &self.place, of);
        }
        if of == Of::Ranks {
            return self.ranks(vars);
        }
        let c = vars.fresh("c", Type::I64);
        let mut start = Size::default();
        let (mut bindings, mut parts) = (vec![], vec![]);
        for block in &self.blocks {
            if block.streams.len() > 1 && order == Order::ByFirstColumn {
                let here = Size::var(c).sub(&start);
                start = start.add(&block.width);
                parts.push((block.entry(vars, &self.place, &here, of, &mut bindings), size_exp(&start)));
                continue;
            }
            for stream in &block.streams {
                let places = unflattened(size_exp(&Size::var(c).sub(&start)), &stream.trips(), &Facts::default());
                start = start.add(&stream.width);
                parts.push((stream.leaf(vars, &self.place, &places, of), size_exp(&start)));
            }
        }
        let (last, _) = parts.pop().expect("a row that has entries");
        let entry = parts.into_iter().rev().fold(last, |rest, (entry, end)| if_(op2(Op::Lt, c, end), entry, rest));
        lets(bindings, for_(c, self.width.clone(), entry))
    }

    /// The ranks of its entries as they are found: each is compared with all, and of those in one column the first counts.
    fn ranks(&self, vars: &mut Vars) -> Exp {
        let [a, b, c, d] = [0, 1, 2, 3].map(|_| vars.fresh("c", Type::I64));
        if !self.may_cross() {
            return for_(c, self.width.clone(), Exp::Var(c));
        }
        let columns = self.generated(vars, Of::Columns(Scalar::I64), Order::AsFound);
        let array = || Type::Array(vec![self.width.clone()], Scalar::I64);
        let [col, first] = ["col", "first"].map(|name| vars.fresh(name, array()));
        let at = |v: Var, c: Var| index(v, vec![Exp::Var(c)], Site::default());
        let before = sum(b, i64(0), Exp::Var(a), guard(op2(Op::Eq, at(col, b), at(col, a)), i64(1)));
        let firsts = for_(a, self.width.clone(), guard(op2(Op::Eq, before, i64(0)), i64(1)));
        let less = sum(d, i64(0), size_exp(&self.width), guard(op2(Op::Lt, at(col, d), at(col, c)), at(first, d)));
        lets(vec![(vec![col], columns), (vec![first], firsts)], for_(c, self.width.clone(), less))
    }

    pub fn may_cross(&self) -> bool {
        self.blocks.iter().any(|b| b.streams.len() > 1)
    }

    /// How many pairs of streams cross in this row, if data decides about that: the columns of neither end before those of the
    /// other begin.
    pub fn crossings(&self, vars: &mut Vars) -> Option<Exp> {
        let mut all: Option<Exp> = None;
        for block in &self.blocks {
            for (k, a) in block.streams.iter().enumerate() {
                for b in &block.streams[..k] {
                    let [(a_first, a_last), (b_first, b_last)] = [a, b].map(|s| (s.first(vars, &self.place), s.last(vars, &self.place)));
                    let cross = op2(Op::And, op2(Op::Le, a_first, b_last), op2(Op::Le, b_first, a_last));
                    let cross = guard(cross, i64(1));
                    all = Some(match all {
                        Some(all) => add(all, cross),
                        None => cross,
                    });
                }
            }
        }
        all
    }
}

impl Block<'_> {
    /// Each of its streams with where it may begin in the block: behind any of the others.
    fn ways(&self) -> Vec<(usize, Size)> {
        let mut ways = vec![];
        for k in 0..self.streams.len() {
            let mut starts = vec![Size::default()];
            for (_, other) in self.streams.iter().enumerate().filter(|(l, _)| *l != k) {
                for at in 0..starts.len() {
                    let start = starts[at].add(&other.width);
                    if !starts.contains(&start) {
                        starts.push(start);
                    }
                }
            }
            ways.extend(starts.into_iter().map(|start| (k, start)));
        }
        ways
    }

    /// Entry number `c` of the block: that of the stream that is there when they are in the order of their first columns.
    fn entry(&self, vars: &mut Vars, place: &[Exp], c: &Size, of: Of, bindings: &mut Vec<(Vec<Var>, Exp)>) -> Exp {
        let mut named = |vars: &mut Vars, name: &str, e: Exp| {
            let v = vars.fresh(name, type_of_exp(vars, &e));
            bindings.push((vec![v], e));
            v
        };
        let mut firsts = vec![];
        for stream in &self.streams {
            let first = stream.first(vars, place);
            firsts.push(named(vars, "first", first));
        }
        let (mut starts, mut arrays) = (vec![], vec![]);
        for (k, stream) in self.streams.iter().enumerate() {
            // Each has a place of its own, also where they begin together.
            let before = |l: usize| {
                let op = if l < k { Op::Le } else { Op::Lt };
                guard(op2(op, firsts[l], firsts[k]), size_exp(&self.streams[l].width))
            };
            let start = (0..firsts.len()).filter(|l| *l != k).map(before).reduce(add).expect("several streams");
            starts.push(named(vars, "start", start));
            let array = stream.generated(vars, place, of);
            arrays.push(named(vars, of.name(), array));
        }
        self.ways().into_iter().rev().fold(of.zero(), |rest, (k, start)| {
            let stream = &self.streams[k];
            let here = size_exp(&c.sub(&start));
            let inside = op2(Op::And, op2(Op::Le, i64(0), here.clone()), op2(Op::Lt, here.clone(), size_exp(&stream.width)));
            let chosen = op2(Op::And, inside, op2(Op::Eq, starts[k], size_exp(&start)));
            let read = index(Exp::Var(arrays[k]), unflattened(here, &stream.trips(), &Facts::default()), Site::default());
            if_(chosen, read, rest)
        })
    }
}

/// The stream, if each of its rows has the same number of entries, in order.
fn ordered<'m>(member: Member<'m>, facts: &Facts) -> Option<Ordered<'m>> {
    let Member { placed, outer } = member;
    let nest = &placed.nest;
    let loops: Vec<&Range> = nest.loops().collect();
    let is_outer = |q: Var| outer.iter().any(|(w, _)| *w == q);
    let mut inner: Vec<(Var, Size)> = vec![];
    for key in &placed.column_keys {
        let here: Vec<&&Range> = loops.iter().filter(|r| !is_outer(r.index) && rises(nest, key, r.index) != Some(0)).collect();
        match here.as_slice() {
            [] => {}
            [range] => {
                let rate = rises(nest, key, range.index)?;
                if rate <= 0 || inner.iter().any(|(q, _)| *q == range.index) {
                    return None;
                }
                let trip = exp_size(&range.hi)?.sub(&exp_size(&range.lo)?);
                inner.push((range.index, natural(&trip, facts)));
            }
            _ => return None,
        }
    }
    if inner.len() + outer.len() != loops.len() {
        return None;
    }
    let width = inner.iter().fold(Size::constant(1), |n, (_, trip)| n.mul(trip));
    Some(Ordered { placed, outer, inner, width })
}

/// By how much a key rises with an index: `None` where that is no constant.
fn rises(nest: &Nest, key: &Exp, index: Var) -> Option<i64> {
    match key {
        Exp::Var(v) if *v == index => Some(1),
        // What is bound inside may depend on the index.
        Exp::Var(v) => match nest.frames.iter().find_map(|f| match f {
            Frame::Let(vars, value) if vars.contains(v) => Some(value),
            Frame::Let(..) | Frame::Loop(_) | Frame::Guard(_) | Frame::When(_) => None,
        }) {
            Some(value) => (rises(nest, value, index) == Some(0)).then_some(0),
            None => Some(0),
        },
        Exp::Lit(_) => Some(0),
        Exp::Op(Op::Add, args, _) => Some(rises(nest, &args[0], index)? + rises(nest, &args[1], index)?),
        Exp::Op(Op::Sub, args, _) => Some(rises(nest, &args[0], index)? - rises(nest, &args[1], index)?),
        Exp::Op(Op::Mul, args, _) => match args.as_slice() {
            [Exp::Lit(Lit::I64(c)), e] | [e, Exp::Lit(Lit::I64(c))] => rises(nest, e, index)?.checked_mul(*c),
            args => args.iter().all(|a| rises(nest, a, index) == Some(0)).then_some(0),
        },
        // The check that a key is in range leaves it as it is.
        Exp::Index(array, keys, _) => match (&**array, keys.as_slice()) {
            (Exp::For(i, _, body), [key]) if **body == Exp::Var(*i) => rises(nest, key, index),
            _ => key_is_free(nest, key, index),
        },
        _ => key_is_free(nest, key, index),
    }
}

/// 0 where nothing in the expression depends on the index.
fn key_is_free(nest: &Nest, e: &Exp, index: Var) -> Option<i64> {
    let mut all = true;
    let bound = e.binds();
    e.for_each_child(&mut |c| all = all && (bound.contains(&index) || rises(nest, c, index) == Some(0)));
    let mut in_size = false;
    e.for_each_size(&mut |s| in_size |= s.mentions(index));
    (all && !in_size).then_some(0)
}

/// Whether all columns of one stream are before those of the other in the row at a place.
fn precedes(vars: &mut Vars, facts: &Facts, place: &[Exp], a: &Ordered, b: &Ordered) -> bool {
    let (last, first) = (a.last(vars, place), b.first(vars, place));
    exp_size(&first).zip(exp_size(&last)).is_some_and(|(first, last)| facts.prove_nonneg(&first.sub(&last).sub(&Size::constant(1))))
}

impl Ordered<'_> {
    fn trips(&self) -> Vec<Size> {
        self.inner.iter().map(|(_, trip)| trip.clone()).collect()
    }

    /// Something computed for an entry of the row at a place, at indices that count its loops from 0.
    fn at(&self, vars: &mut Vars, place: &[Exp], inner: &[Exp], leaf: Exp, of: Part) -> Exp {
        let index = |range: &Range| match self.outer.iter().find(|(q, _)| *q == range.index) {
            Some((_, axis)) => tidy(sub(place[*axis].clone(), range.lo.clone())),
            None => inner[self.inner.iter().position(|(q, _)| *q == range.index).expect("a loop of a row")].clone(),
        };
        let all: Vec<Exp> = self.placed.nest.loops().map(index).collect();
        self.placed.nest.at(vars, &all, leaf, of)
    }

    /// The columns or values of its entries in the row at a place.
    fn generated(&self, vars: &mut Vars, place: &[Exp], of: Of) -> Exp {
        let inner: Vec<Var> = self.inner.iter().map(|_| vars.fresh("c", Type::I64)).collect();
        let places: Vec<Exp> = inner.iter().map(|c| Exp::Var(*c)).collect();
        let leaf = self.leaf(vars, place, &places, of);
        inner.into_iter().zip(self.trips()).rev().fold(leaf, |body, (c, trip)| for_(c, trip, body))
    }

    fn first(&self, vars: &mut Vars, place: &[Exp]) -> Exp {
        self.column(vars, place, &|_| i64(0))
    }
    fn last(&self, vars: &mut Vars, place: &[Exp]) -> Exp {
        self.column(vars, place, &|trip| size_exp(&trip.sub(&Size::constant(1))))
    }
    fn column(&self, vars: &mut Vars, place: &[Exp], at: &dyn Fn(&Size) -> Exp) -> Exp {
        let inner: Vec<Exp> = self.inner.iter().map(|(_, trip)| at(trip)).collect();
        let column = self.at(vars, place, &inner, self.placed.column.clone(), Part::Places);
        tidy(without_lets(vars, live(column)))
    }

    fn leaf(&self, vars: &mut Vars, place: &[Exp], inner: &[Exp], of: Of) -> Exp {
        match of {
            Of::Rows => {
                let (leaf, part) = self.placed.leaf(vars, Scalar::I64, 0);
                self.at(vars, place, inner, leaf, part)
            }
            Of::Ranks => flat(inner, &self.trips(), &Size::default()),
            Of::Columns(narrow) => {
                let (leaf, part) = self.placed.leaf(vars, Scalar::I64, 1);
                converted(self.at(vars, place, inner, leaf, part), narrow)
            }
            Of::Values(scalar) => {
                let (leaf, part) = self.placed.leaf(vars, scalar, 2);
                self.at(vars, place, inner, leaf, part)
            }
        }
    }
}

/// Bindings of sizes put in their place.
fn without_lets(vars: &mut Vars, e: Exp) -> Exp {
    match e {
        Exp::Let(names, value, body) => match names.as_slice() {
            [v] if exp_size(&value).is_some() => {
                let body = traverse::substitute(vars, *body, &Substitution::from_iter([(*v, *value)]));
                without_lets(vars, body)
            }
            _ => let_(names, *value, *body),
        },
        e => e,
    }
}

/// A column as an index of the type that is wanted: that all columns fit is seen to by `fitting`.
pub fn converted(column: Exp, to: Scalar) -> Exp {
    match Op::conversion(to) {
        Some(op) if to != Scalar::I64 => Exp::Op(op, vec![column], Site::default().passed()),
        _ => column,
    }
}
