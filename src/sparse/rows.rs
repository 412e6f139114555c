//! Compressed rows of a matrix whose rows come alike: where each entry goes is a formula, and nothing is sorted.
//!
//! In: the streams of a matrix. Out, where there is a formula, how many entries are stored, and the arrays of compressed rows.
//!
//! The rows of a part of the result are taken apart axis by axis. Along an axis that every stream has a loop over, all are
//! *alike*; along a constant axis of which streams name places (those of an array that is written out, `[a, b]`) *each* place
//! has streams of its own. What is left without axes is one row (`row.rs`). So the parts of `for i. [a, for j. b]` are
//!
//! ```text
//! rows                  how many           entries                first entry of row r
//! alike over n: rows R  n * rows of R      n * entries of R       (r div rows of R) * entries of R + that of r mod rows of R
//! each of R, S, ..      their sum          their sum              of the one that r is in, behind all before it
//! one row               1                  its width              r * its width
//! ```
//!
//! and where all rows have one width, row `r` begins at `r` times that. The entries of what is alike are arrays with an axis
//! more; those of each are arrays one after the other. All this holds where no streams of a row cross; where they do, the entries
//! of a row are in another order, and fewer are stored (`merge.rs`). For all other matrices there is `_csr_places` of the library.

use super::row::{Member, Of, Order, Row, converted};
use super::{Matrix, natural, tidy, unflattened};
use crate::ir::build::*;
use crate::ir::facts::Facts;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;

/// An axis of more places is not taken apart: each of them is a program of its own.
const MOST_PLACES: i64 = 64;
/// So many entries of rows that are not alike are written out.
const MOST_ENTRIES: i64 = 256;

/// The entries of longer rows are not compared with one another.
const LONGEST_COMPARED: i64 = 64;

/// Rows that follow one another.
pub struct Region<'m> {
    kind: Kind<'m>,
    rows: Size,
    entries: Size,
}

enum Kind<'m> {
    Alike(Var, Size, Box<Region<'m>>),
    Each(Vec<Region<'m>>),
    One(Row<'m>),
}

/// The rows of a matrix, if there is a formula for them.
pub struct Rows<'m> {
    pub matrix: &'m Matrix,
    all: Region<'m>,
}

impl Matrix {
    pub fn rows(&self, vars: &mut Vars, facts: &Facts) -> Option<Rows<'_>> {
        if !self.streams.iter().all(|s| s.nest.is_rectangular()) {
            return None;
        }
        let mut parts = vec![];
        for (part, shape) in self.parts.iter().enumerate() {
            let streams = self.streams.iter().filter(|s| s.part == part);
            let members = streams.map(|placed| Member { placed, outer: vec![] }).collect();
            parts.push(region(vars, facts, shape, &mut vec![], members)?);
        }
        let all = Region::each(parts);
        // Rows of streams that cross are put in order one by one, in a time that grows with the squares of their widths.
        (!all.may_cross() || all.is_short()).then_some(Rows { matrix: self, all })
    }
}

/// The rows of a part of the result whose first keys are those of a place.
fn region<'m>(vars: &mut Vars, facts: &Facts, shape: &[Size], place: &mut Vec<Exp>, members: Vec<Member<'m>>) -> Option<Region<'m>> {
    let axis = place.len();
    let Some(size) = shape.get(axis) else { return Some(Region::one(Row::new(vars, facts, place, members)?)) };
    let keys = members.iter().map(|m| m.key(axis)).collect::<Option<Vec<Key>>>()?;
    let is_whole = |key: &Key| match key {
        Key::Place(_) => false,
        Key::Over(range) => range.lo == i64(0) && exp_size(&range.hi).is_some_and(|hi| hi.axis() == size.axis()),
    };
    if keys.iter().all(is_whole) {
        let i = vars.fresh("i", Type::I64);
        let mut known = facts.clone();
        known.enter_for(i, size);
        let members = members.into_iter().zip(keys).map(|(m, key)| m.with(&key, axis)).collect();
        place.push(Exp::Var(i));
        let row = region(vars, &known, shape, place, members)?;
        place.pop();
        return Some(Region::alike(i, size, facts, row));
    }
    let places = size.as_constant().filter(|n| *n <= MOST_PLACES)?;
    let mut items = vec![];
    for k in 0..places {
        let mut here = vec![];
        for (member, key) in members.iter().zip(&keys) {
            if key.has(k)? {
                here.push(member.clone().with(key, axis));
            }
        }
        place.push(i64(k));
        items.push(region(vars, facts, shape, place, here)?);
        place.pop();
    }
    Some(Region::each(items))
}

/// Where on an axis of the rows a stream has entries.
enum Key {
    Place(i64),
    Over(Range),
}

impl Key {
    /// Whether a place of a constant axis is among them.
    fn has(&self, k: i64) -> Option<bool> {
        match self {
            Key::Place(place) => Some(*place == k),
            Key::Over(range) => {
                let bound = |e: &Exp| exp_size(e)?.as_constant();
                Some(bound(&range.lo)? <= k && k < bound(&range.hi)?)
            }
        }
    }
}

impl<'m> Member<'m> {
    fn key(&self, axis: usize) -> Option<Key> {
        match &self.placed.row_keys[axis] {
            Exp::Lit(Lit::I64(k)) => Some(Key::Place(*k)),
            Exp::Var(q) if !self.outer.iter().any(|(w, _)| w == q) => {
                self.placed.nest.loops().find(|r| r.index == *q).cloned().map(Key::Over)
            }
            _ => None,
        }
    }
    fn with(mut self, key: &Key, axis: usize) -> Member<'m> {
        if let Key::Over(range) = key {
            self.outer.push((range.index, axis));
        }
        self
    }
}

impl<'m> Region<'m> {
    fn one(row: Row<'m>) -> Region<'m> {
        Region { rows: Size::constant(1), entries: row.width.clone(), kind: Kind::One(row) }
    }
    fn alike(i: Var, size: &Size, facts: &Facts, region: Region<'m>) -> Region<'m> {
        let count = natural(size, facts);
        let (rows, entries) = (count.mul(&region.rows), count.mul(&region.entries));
        Region { rows, entries, kind: Kind::Alike(i, size.clone(), Box::new(region)) }
    }
    fn each(regions: Vec<Region<'m>>) -> Region<'m> {
        let mut all = vec![];
        for region in regions {
            match region.kind {
                Kind::Each(inner) => all.extend(inner),
                Kind::Alike(..) | Kind::One(_) => all.push(region),
            }
        }
        let total = |of: &dyn Fn(&Region) -> Size| all.iter().fold(Size::default(), |n, r| n.add(&of(r)));
        Region { rows: total(&|r| r.rows.clone()), entries: total(&|r| r.entries.clone()), kind: Kind::Each(all) }
    }

    /// The width of its rows, where all have the same.
    fn width(&self) -> Option<Size> {
        match &self.kind {
            Kind::One(row) => Some(row.width.clone()),
            Kind::Alike(_, _, region) => region.width(),
            Kind::Each(regions) => {
                let (first, rest) = regions.split_first()?;
                let width = first.width()?;
                rest.iter().all(|r| r.width().as_ref() == Some(&width)).then_some(width)
            }
        }
    }

    /// Where row number `r` begins; behind the last row, where that ends.
    fn start(&self, r: Exp) -> Exp {
        if let Some(width) = self.width() {
            return tidy(mul(r, size_exp(&width)));
        }
        match &self.kind {
            Kind::One(row) => tidy(mul(r, size_exp(&row.width))),
            Kind::Alike(_, _, region) => {
                // The first row of none is asked for too.
                let rows = match region.rows.as_constant() {
                    Some(n) => Size::constant(n.max(1)),
                    None => region.rows.maximum(&Size::constant(1)),
                };
                let [item, row] = [Op::IDiv, Op::IMod].map(|op| op2(op, r.clone(), size_exp(&rows)));
                add(mul(size_exp(&region.entries), item), region.start(row))
            }
            Kind::Each(regions) => {
                let (mut row, mut start) = (Size::default(), Size::default());
                let mut starts = vec![];
                for region in regions {
                    let inside = region.start(tidy(sub(r.clone(), size_exp(&row))));
                    let place = if start == Size::default() { inside } else { add(size_exp(&start), inside) };
                    row = row.add(&region.rows);
                    start = start.add(&region.entries);
                    starts.push((size_exp(&row), tidy(place)));
                }
                let last = starts.pop().map_or(i64(0), |(_, place)| place);
                starts.into_iter().rev().fold(last, |rest, (end, place)| if_(op2(Op::Lt, r.clone(), end), place, rest))
            }
        }
    }

    fn may_cross(&self) -> bool {
        match &self.kind {
            Kind::Alike(_, _, region) => region.may_cross(),
            Kind::Each(regions) => regions.iter().any(Region::may_cross),
            Kind::One(row) => row.may_cross(),
        }
    }
    fn is_short(&self) -> bool {
        match &self.kind {
            Kind::Alike(_, _, region) => region.is_short(),
            Kind::Each(regions) => regions.iter().all(Region::is_short),
            Kind::One(row) => row.width.as_constant().is_some_and(|n| n <= LONGEST_COMPARED),
        }
    }

    /// How many pairs of streams cross in its rows, if data decides about that.
    fn crossings(&self, vars: &mut Vars) -> Option<Exp> {
        match &self.kind {
            Kind::Alike(i, size, region) => Some(sum(*i, i64(0), size_exp(size), region.crossings(vars)?)),
            Kind::Each(regions) => regions.iter().filter_map(|r| r.crossings(vars)).reduce(add),
            Kind::One(row) => row.crossings(vars),
        }
    }

    /// The axes of its entries: those of its rows, then those of a row.
    fn axes(&self) -> Vec<Size> {
        match &self.kind {
            Kind::Alike(_, size, region) => [vec![size.clone()], region.axes()].concat(),
            Kind::Each(regions) => match same_axes(regions) {
                Some(axes) => [vec![Size::constant(regions.len() as i64)], axes].concat(),
                None => vec![self.entries.clone()],
            },
            Kind::One(row) => row.axes(),
        }
    }

    /// What is asked of its entries.
    fn generated(&self, vars: &mut Vars, facts: &Facts, of: Of, order: Order) -> Exp {
        match &self.kind {
            Kind::Alike(i, size, region) => for_(*i, size.clone(), region.generated(vars, facts, of, order)),
            Kind::Each(regions) if same_axes(regions).is_some() => {
                Exp::Array(regions.iter().map(|r| r.generated(vars, facts, of, order)).collect())
            }
            Kind::Each(regions) => {
                let t = vars.fresh("t", Type::I64);
                let (bindings, entry) = joined(vars, facts, regions, t, of, order);
                let entries = self.entries.as_constant().filter(|n| (1..=MOST_ENTRIES).contains(n));
                let all = match entries {
                    // What is written out takes no choice for each entry.
                    Some(n) => {
                        let at = |t_is: i64| copy(vars, &entry, &Substitution::from_iter([(t, i64(t_is))]));
                        Exp::Array((0..n).map(at).collect())
                    }
                    None => for_(t, self.entries.clone(), entry),
                };
                lets(bindings, all)
            }
            Kind::One(row) => row.generated(vars, of, order),
        }
    }
}

/// The axes of the entries of regions, where they are the same.
fn same_axes(regions: &[Region]) -> Option<Vec<Size>> {
    let (first, rest) = regions.split_first()?;
    let axes = first.axes();
    rest.iter().all(|r| r.axes() == axes).then_some(axes)
}

/// Arrays of the entries of regions, and entry number `t` of all of them, one region after the other.
pub fn joined(vars: &mut Vars, facts: &Facts, regions: &[Region], t: Var, of: Of, order: Order) -> (Vec<(Vec<Var>, Exp)>, Exp) {
    let mut bindings = vec![];
    let mut parts: Vec<(Exp, Exp)> = vec![];
    let mut start = Size::default();
    for region in regions.iter().filter(|r| r.entries != Size::default()) {
        let array = region.generated(vars, facts, of, order);
        let array = copy(vars, &array, &Substitution::default());
        let name = vars.fresh(of.name(), type_of_exp(vars, &array));
        bindings.push((vec![name], array));
        let place = size_exp(&Size::var(t).sub(&start));
        start = start.add(&region.entries);
        parts.push((size_exp(&start), index(Exp::Var(name), unflattened(place, &region.axes(), facts), Site::default())));
    }
    let entry = parts.into_iter().rev().fold(of.zero(), |rest, (end, read)| if_(op2(Op::Lt, t, end), read, rest));
    (bindings, entry)
}

impl Rows<'_> {
    /// How many entries are stored.
    pub fn stored(&self) -> Size {
        self.all.entries.clone()
    }

    /// How many rows there are.
    pub fn count(&self) -> Size {
        self.all.rows.clone()
    }
    /// Where a row begins.
    pub fn start(&self, r: Exp) -> Exp {
        self.all.start(r)
    }
    pub fn parts(&self) -> &[Region<'_>] {
        match &self.all.kind {
            Kind::Each(parts) => parts,
            Kind::Alike(..) | Kind::One(_) => panic!("sparse: a matrix has parts"),
        }
    }

    /// Whether no two streams of a row cross, if data decides about that. Else the formulas hold but for the order inside of
    /// rows, and for entries that meet.
    pub fn are_apart(&self, vars: &mut Vars) -> Option<Exp> {
        let crossings = self.all.crossings(vars)?;
        let crossings = copy(vars, &crossings, &Substitution::default());
        Some(op2(Op::Eq, crossings, i64(0)))
    }

    /// `(indptr, indices, data)`, the latter two of so many places.
    pub fn arrays(&self, vars: &mut Vars, facts: &Facts, stored: Var, narrow: Scalar) -> Exp {
        let mut bindings = vec![];
        let [indices, data] = [Of::Columns(narrow), Of::Values(self.matrix.scalar)].map(|of| {
            let t = vars.fresh("t", Type::I64);
            let (arrays, entry) = joined(vars, facts, self.parts(), t, of, Order::ByFirstColumn);
            bindings.extend(arrays);
            for_(t, Size::var(stored), entry)
        });
        let r = vars.fresh("r", Type::I64);
        let start = self.start(Exp::Var(r));
        let fits = fitting(vars, &self.matrix.size.1, stored, narrow, &mut bindings);
        let indptr = for_(r, self.count().add(&Size::constant(1)), narrowed_start(start, fits, narrow));
        lets(bindings, Exp::Tuple(vec![indptr, indices, data]))
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
