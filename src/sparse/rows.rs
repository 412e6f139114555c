//! Compressed rows of a matrix whose rows all come alike: where each entry goes is a formula, and nothing is sorted.
//!
//! In: the streams of a matrix. Where every part of the result is covered row by row, each row of a part has as many
//! entries as the others, and the order of its columns is known before any number is:
//!
//! ```text
//! stored = sum over parts of rows * entries in a row
//! indptr[r] = start of the part + (r - first row of the part) * entries in a row
//! indices, data = the parts, one after the other; of a part, for each row its entries in order
//! ```
//!
//! The columns of one stream are in order where each of its loops belongs to one key, by which it rises. Streams by
//! different parameters are in the order of the parameters; those by one parameter, where one is proven to end before
//! the other begins. For all other matrices there is `_csr_places` of the library.

use super::nest::{Nest, Part};
use super::project::live;
use super::streams::Frame;
use super::{Matrix, Placed, natural, places, tidy, unflattened};
use crate::ir::build::*;
use crate::ir::facts::Facts;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;

/// The rows of one part of the result.
struct Block<'m> {
    /// Its rows, and the indices that count them.
    shape: Vec<Size>,
    indices: Vec<Var>,
    rows: Size,
    /// The streams in the order of their columns.
    streams: Vec<Ordered<'m>>,
    /// How many entries a row has.
    width: Size,
}

struct Ordered<'m> {
    placed: &'m Placed,
    /// The loops inside of a row in the order of the columns, and how often each runs.
    inner: Vec<(Var, Size)>,
    /// The loops that are rows, by the axis of the rows that each is.
    outer: Vec<Var>,
    width: Size,
}

/// The rows of a matrix, if they are alike.
pub struct Rows<'m> {
    matrix: &'m Matrix,
    blocks: Vec<Block<'m>>,
}

impl Matrix {
    pub fn rows(&self, vars: &mut Vars, facts: &Facts) -> Option<Rows<'_>> {
        let blocks = self.parts.iter().enumerate().map(|(k, shape)| self.block(vars, facts, k, shape)).collect::<Option<_>>()?;
        Some(Rows { matrix: self, blocks })
    }

    fn block(&self, vars: &mut Vars, facts: &Facts, part: usize, shape: &[Size]) -> Option<Block<'_>> {
        let indices: Vec<Var> = shape.iter().map(|_| vars.fresh("i", Type::I64)).collect();
        let mut known = facts.clone();
        indices.iter().zip(shape).for_each(|(i, size)| known.enter_for(*i, size));
        let mut streams: Vec<Ordered> = vec![];
        for placed in self.streams.iter().filter(|s| s.part == part) {
            let new = ordered(placed, shape, facts)?;
            // Those of one parameter stand together at the end; the new one belongs before the first that it precedes.
            let mut at = streams.len();
            while at > 0 && streams[at - 1].placed.parameter == placed.parameter {
                if precedes(vars, &known, &indices, &streams[at - 1], &new) {
                    break;
                }
                if !precedes(vars, &known, &indices, &new, &streams[at - 1]) {
                    return None;
                }
                at -= 1;
            }
            streams.insert(at, new);
        }
        let width = streams.iter().fold(Size::default(), |n, s| n.add(&s.width));
        Some(Block { shape: shape.to_vec(), indices, rows: places(shape, facts), streams, width })
    }
}

/// The stream, if each of its rows has the same number of entries, in order.
fn ordered<'m>(placed: &'m Placed, shape: &[Size], facts: &Facts) -> Option<Ordered<'m>> {
    let nest = &placed.nest;
    if !nest.is_rectangular() {
        return None;
    }
    let loops: Vec<&Range> = nest.loops().collect();
    let mut outer = vec![];
    for (key, size) in placed.row_keys.iter().zip(shape) {
        let Exp::Var(q) = key else { return None };
        let range = loops.iter().find(|r| r.index == *q)?;
        let whole = range.lo == i64(0) && exp_size(&range.hi).is_some_and(|hi| hi.axis() == size.axis());
        if !whole || outer.contains(q) {
            return None;
        }
        outer.push(*q);
    }
    let mut inner: Vec<(Var, Size)> = vec![];
    for key in &placed.column_keys {
        let here: Vec<&&Range> = loops.iter().filter(|r| !outer.contains(&r.index) && rises(nest, key, r.index) != Some(0)).collect();
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
    Some(Ordered { placed, inner, outer, width })
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

/// Whether all columns of one stream are before those of the other in every row.
fn precedes(vars: &mut Vars, facts: &Facts, indices: &[Var], a: &Ordered, b: &Ordered) -> bool {
    let last = a.column(vars, indices, &|trip| size_exp(&trip.sub(&Size::constant(1))));
    let first = b.column(vars, indices, &|_| i64(0));
    exp_size(&first).zip(exp_size(&last)).is_some_and(|(first, last)| facts.prove_nonneg(&first.sub(&last).sub(&Size::constant(1))))
}

impl Ordered<'_> {
    /// Something computed for an entry, at indices that count its rows and its loops from 0.
    fn at(&self, vars: &mut Vars, indices: &[Var], inner: &[Exp], leaf: Exp, of: Part) -> Exp {
        let index = |q: Var| match self.outer.iter().position(|w| *w == q) {
            Some(k) => Exp::Var(indices[k]),
            None => inner[self.inner.iter().position(|(w, _)| *w == q).expect("a loop of a row")].clone(),
        };
        let all: Vec<Exp> = self.placed.nest.loops().map(|r| index(r.index)).collect();
        self.placed.nest.at(vars, &all, leaf, of)
    }
    fn column(&self, vars: &mut Vars, indices: &[Var], place: &dyn Fn(&Size) -> Exp) -> Exp {
        let inner: Vec<Exp> = self.inner.iter().map(|(_, trip)| place(trip)).collect();
        let column = self.at(vars, indices, &inner, self.placed.column.clone(), Part::Places);
        tidy(without_lets(vars, live(column)))
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

impl Rows<'_> {
    /// How many entries are stored.
    pub fn stored(&self) -> Size {
        self.blocks.iter().fold(Size::default(), |n, b| n.add(&b.rows.mul(&b.width)))
    }

    /// `(indptr, indices, data)`, the latter two of so many places.
    pub fn arrays(&self, vars: &mut Vars, facts: &Facts, stored: Var, narrow: Scalar) -> Exp {
        let r = vars.fresh("r", Type::I64);
        let t = [0, 1].map(|_| vars.fresh("t", Type::I64));
        let (mut row, mut start) = (Size::default(), Size::default());
        let mut bindings = vec![];
        let mut starts: Vec<(Exp, Exp)> = vec![];
        let mut parts: Vec<(Exp, [Exp; 2])> = vec![];
        for block in &self.blocks {
            let place = start.add(&Size::var(r).sub(&row).mul(&block.width));
            row = row.add(&block.rows);
            starts.push((size_exp(&row), size_exp(&place)));
            if block.streams.is_empty() {
                continue;
            }
            let axes = block.axes();
            let reads = [0, 1].map(|k| {
                let array = block.generated(vars, self.matrix.scalar, narrow, k);
                let ty = type_of_exp(vars, &array);
                let name = vars.fresh(["col", "data"][k], ty);
                bindings.push((vec![name], array));
                let place = size_exp(&Size::var(t[k]).sub(&start));
                index(Exp::Var(name), unflattened(place, &axes, facts), Site::default())
            });
            start = start.add(&block.rows.mul(&block.width));
            parts.push((size_exp(&start), reads));
        }
        // The last row begins where all entries end.
        let last = starts.pop().map_or(i64(0), |(_, place)| place);
        let starts = starts.into_iter().rev().fold(last, |rest, (end, place)| if_(op2(Op::Lt, r, end), place, rest));
        let fits = fitting(vars, &self.matrix.size.1, stored, narrow, &mut bindings);
        let indptr = for_(r, row.add(&Size::constant(1)), narrowed_start(starts, fits, narrow));
        let zeros = [Lit::zero(narrow), Lit::zero(self.matrix.scalar)];
        let arrays = [0, 1].map(|k| {
            let chosen = parts
                .iter()
                .rev()
                .fold(Exp::Lit(zeros[k]), |rest, (end, reads)| if_(op2(Op::Lt, t[k], end.clone()), reads[k].clone(), rest));
            for_(t[k], Size::var(stored), chosen)
        });
        let [indices, data] = arrays;
        lets(bindings, Exp::Tuple(vec![indptr, indices, data]))
    }
}

impl Block<'_> {
    /// The axes of its entries: those of its rows, then those of a row.
    fn axes(&self) -> Vec<Size> {
        let inner = match self.streams.as_slice() {
            [one] => one.inner.iter().map(|(_, trip)| trip.clone()).collect(),
            _ => vec![self.width.clone()],
        };
        let mut axes = [self.shape.clone(), inner].concat();
        if axes.is_empty() {
            axes.push(Size::constant(1));
        }
        axes
    }

    /// The columns (0) or values (1) of its entries.
    fn generated(&self, vars: &mut Vars, scalar: Scalar, narrow: Scalar, k: usize) -> Exp {
        let indices: Vec<Var> = self.indices.iter().map(|_| vars.fresh("i", Type::I64)).collect();
        let mut axes: Vec<(Var, Size)> = indices.iter().copied().zip(self.shape.iter().cloned()).collect();
        let body = match self.streams.as_slice() {
            [one] => {
                let inner: Vec<Var> = one.inner.iter().map(|_| vars.fresh("c", Type::I64)).collect();
                axes.extend(inner.iter().copied().zip(one.inner.iter().map(|(_, trip)| trip.clone())));
                let places: Vec<Exp> = inner.iter().map(|c| Exp::Var(*c)).collect();
                one.leaf(vars, scalar, &indices, &places, k)
            }
            streams => {
                let c = vars.fresh("c", Type::I64);
                axes.push((c, self.width.clone()));
                let mut start = Size::default();
                let mut parts = vec![];
                for stream in streams {
                    let place = size_exp(&Size::var(c).sub(&start));
                    let trips: Vec<Size> = stream.inner.iter().map(|(_, trip)| trip.clone()).collect();
                    let places = unflattened(place, &trips, &Facts::default());
                    parts.push((stream.leaf(vars, scalar, &indices, &places, k), size_exp(&start.add(&stream.width))));
                    start = start.add(&stream.width);
                }
                let (last, _) = parts.pop().expect("several streams");
                parts.into_iter().rev().fold(last, |rest, (leaf, end)| if_(op2(Op::Lt, c, end), leaf, rest))
            }
        };
        if axes.is_empty() {
            axes.push((vars.fresh("i", Type::I64), Size::constant(1)));
        }
        let body = if k == 0 { converted(body, narrow) } else { body };
        let whole = axes.into_iter().rev().fold(body, |body, (i, size)| for_(i, size, body));
        copy(vars, &whole, &Substitution::default())
    }
}

/// A column as an index of the type that is wanted: that all columns fit is seen to by `fitting`.
pub fn converted(column: Exp, to: Scalar) -> Exp {
    match Op::conversion(to) {
        Some(op) if to != Scalar::I64 => Exp::Op(op, vec![column], Site::default().passed()),
        _ => column,
    }
}

/// A zero, whose value is an error if the numbers of columns and of entries are not of the type that is wanted.
pub fn fitting(vars: &mut Vars, columns: &Size, stored: Var, to: Scalar, bindings: &mut Vec<(Vec<Var>, Exp)>) -> Option<Var> {
    if to == Scalar::I64 {
        return None;
    }
    let difference = |n: Exp| sub(convert(convert(n.clone(), Scalar::I64, to), to, Scalar::I64), n);
    let fits = vars.fresh("fits", Type::I64);
    bindings.push((vec![fits], add(difference(size_exp(columns)), difference(Exp::Var(stored)))));
    Some(fits)
}

/// Where a row begins, as an index of the type that is wanted. The zero of `fitting` is added, so that it is computed where
/// there are rows.
pub fn narrowed_start(start: Exp, fits: Option<Var>, to: Scalar) -> Exp {
    match fits {
        Some(zero) => converted(add(start, Exp::Var(zero)), to),
        None => start,
    }
}

impl Ordered<'_> {
    fn leaf(&self, vars: &mut Vars, scalar: Scalar, indices: &[Var], places: &[Exp], k: usize) -> Exp {
        let (leaf, of) = self.placed.leaf(vars, scalar, k + 1);
        self.at(vars, indices, places, leaf, of)
    }
}
