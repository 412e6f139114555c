//! Sparse Jacobians: the entries of a matrix of derivatives, found from the program.
//!
//! In: `jvp_f` or `vjp_f`, settled. With a seed that is one at one place, the tangent of each result (the adjoint of each
//! parameter) is a row or column of the Jacobian. What is not zero in it is read off the program (`support.rs`), so that
//! it is a sum of streams of entries (`streams.rs`), each a nest of loops (`nest.rs`).
//! Out: a function that counts the entries, and one that computes their rows, columns and values; the same for compressed
//! rows, by a formula where the rows are alike (`rows.rs`, `row.rs`; where few
//! columns of a row may meet, these are put together row by row, `merge.rs`), else by sorting the entries. No array of the matrix's size is
//! made, and work is proportional to the number of entries.
//!
//! A matrix has a row for each number of a result, and a column for each number of a parameter, both flattened.
//! Which places are entries depends on sizes and integers alone. Entries at the same place are added up.

mod merge;
mod nest;
mod one_hot;
mod project;
mod row;
mod rows;
mod streams;
mod support;

use crate::differentiate::scope::{leaf_types, rebuild};
use crate::ir::build::*;
use crate::ir::facts::Facts;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;
use crate::optimize::inline::inline;
use crate::optimize::simplify::simplify;
use crate::optimize::{Context, Settled};
use nest::{Nest, Part};
use support::Linear;

/// Streams of one matrix, each with what is to be added to its rows and columns.
struct Matrix {
    scalar: Scalar,
    /// The shapes of the parts of the result that its rows are, and how many rows and columns there are.
    parts: Vec<Vec<Size>>,
    size: (Size, Size),
    streams: Vec<Placed>,
}

struct Placed {
    nest: Nest,
    row: Exp,
    column: Exp,
    /// The place in the part of the result and in the parameter, and which these are.
    row_keys: Vec<Exp>,
    column_keys: Vec<Exp>,
    part: usize,
    parameter: usize,
}

/// Entries in any order, as names of arrays: their columns, their values and the place that each has in compressed rows.
struct Listed {
    bindings: Vec<(Vec<Var>, Exp)>,
    indptr: Exp,
    count: Size,
    col: Var,
    data: Var,
    place: Var,
}

/// What the entries of a matrix are made of.
#[derive(Clone, Copy, Debug, Default)]
pub struct Structure {
    pub streams: usize,
    /// Whether what stands at each place of the array depends on a constant number of places of the seed.
    pub local: bool,
    /// Whether sizes alone decide how many entries there are, and how many of compressed rows are stored if those are asked for.
    pub counted: bool,
}

/// Defines a function of a matrix's entries in one mode, and says what they are made of. The derived function of the mode
/// must be defined and settled.
pub fn define(program: &mut Program, id: FunctionId, mode: Mode) -> Structure {
    let Body::Entries(entries) = program.function(id).body.clone() else { return Structure::default() };
    let matrices = matrices(program, id, &entries, mode);
    let function = program.function(id).clone();
    let facts = Facts::of_function(&function);
    let vars = &mut program.vars;
    let original = function.params.len() - entries.extra(matrices.len());
    let counts = function.params.get(original..).unwrap_or_default().iter().copied();
    let mut counted = matrices.iter().all(|m| m.streams.iter().all(|s| s.nest.is_rectangular()));
    let mut parts: Vec<Exp> = vec![];
    match entries.part {
        EntriesPart::Count => parts.extend(matrices.iter().map(|m| m.count(vars, &facts))),
        EntriesPart::Entries => parts.extend(matrices.iter().zip(counts).map(|(m, count)| m.entries(vars, &facts, count))),
        EntriesPart::Stored => {
            for (m, count) in matrices.iter().zip(counts) {
                let rows = m.rows(vars, &facts);
                let apart = rows.as_ref().and_then(|rows| rows.are_apart(vars));
                counted &= rows.is_some() && apart.is_none();
                parts.push(match (rows, apart) {
                    (Some(rows), None) => size_exp(&rows.stored()),
                    (Some(rows), Some(apart)) => if_(apart, size_exp(&rows.stored()), rows.merged_count(vars, &facts, &entries.library)),
                    (None, _) => m.sorted_count(vars, &facts, count, &entries.library),
                });
            }
        }
        EntriesPart::Rows => {
            let stored = function.params[original + matrices.len()..].iter();
            for ((m, count), stored) in matrices.iter().zip(counts).zip(stored) {
                let rows = m.rows(vars, &facts);
                let apart = rows.as_ref().and_then(|rows| rows.are_apart(vars));
                counted &= rows.is_some() && apart.is_none();
                parts.push(match (rows, apart) {
                    (Some(rows), None) => rows.arrays(vars, &facts, *stored, entries.index),
                    (Some(rows), Some(apart)) => {
                        let merged = rows.merged(vars, &facts, *stored, &entries.library, entries.index);
                        if_(apart, rows.arrays(vars, &facts, *stored, entries.index), merged)
                    }
                    (None, _) => m.sorted_rows(vars, &facts, count, *stored, &entries.library, entries.index),
                });
            }
        }
    }
    // What was computed beside derivatives that are zero here stands in `let`s that nothing uses, and speaks of the seeds.
    let mut body = tuple(parts);
    let given = |v: &Var| function.params.contains(v) || function.sizes.contains(v);
    if !body.free_vars().iter().all(given) {
        let mut cx = Context { vars, facts, changed: false, settled: Settled::default(), differentiating: false };
        body = simplify(&mut cx, body);
    }
    program.functions[id.0 as usize].body = Body::Exp(body);
    let mut all = matrices.iter().flat_map(|m| &m.streams);
    Structure { streams: matrices.iter().map(|m| m.streams.len()).sum(), local: all.all(|s| s.nest.local), counted }
}

/// The matrices of a function of entries, in order: for each part of the result one for each part of the parameters.
fn matrices(program: &mut Program, id: FunctionId, entries: &Entries, mode: Mode) -> Vec<Matrix> {
    let function = program.function(id).clone();
    let derived = match mode {
        Mode::Jvp => entries.forward,
        Mode::Vjp => entries.reverse,
    };
    let derived = derived.expect("the mode is one that was asked for");
    // What is left of calls are those of functions with derivatives of their own.
    let settled = program.function(derived).body.clone();
    inline(program, derived);
    let derived = {
        let whole = program.function(derived).clone();
        program.functions[derived.0 as usize].body = settled;
        whole
    };
    let Body::Exp(body) = &derived.body else { panic!("sparse: {} is not defined yet", derived.name) };
    let original = program.function(entries.of).params.len();
    let facts = Facts::of_function(&function);
    let vars = &mut program.vars;

    // The function's own parameters stand for those of the derived one, and variables for the parts of its seeds.
    let mut with = Substitution::default();
    derived.sizes.iter().zip(&function.sizes).for_each(|(old, new)| {
        with.insert(*old, Exp::Var(*new));
    });
    derived.params[..original].iter().zip(&function.params).for_each(|(old, new)| {
        with.insert(*old, Exp::Var(*new));
    });
    let rename = |ty: &Type, with: &Substitution| ty.map_sizes(&mut |s| s.substitute(&|v| with.get(&v).and_then(exp_size)));
    let mut seeds: Vec<Vec<Var>> = vec![];
    for seed in &derived.params[original..] {
        let ty = rename(vars.ty(*seed), &with);
        let parts: Vec<Var> = leaf_types(&ty).into_iter().map(|ty| vars.fresh("seed", ty)).collect();
        with.insert(*seed, rebuild(&ty, &mut parts.iter().map(|v| Exp::Var(*v))));
        seeds.push(parts);
    }
    let body = copy(vars, body, &with);
    let mut cx = Context { vars, facts: facts.clone(), changed: false, settled: Settled::default(), differentiating: false };
    let body = simplify(&mut cx, body);

    // The paths of the linear result's parts, by parameter in reverse mode.
    let Type::Tuple(pair) = rename(&derived.result, &with) else { panic!("sparse: a derived function gives a pair") };
    let mut paths = vec![];
    leaf_paths(&pair[1], &mut vec![1], &mut paths);
    let mut sorted = entries.wrt.clone();
    sorted.sort();
    let in_order: Vec<usize> = entries.wrt.iter().map(|k| sorted.iter().position(|s| s == k).expect("one of them")).collect();
    let (rows, columns): (Vec<Side>, Vec<Side>) = match mode {
        Mode::Jvp => {
            let rows = paths.into_iter().map(|(path, ty)| Side { ty, seed: None, path }).collect();
            let column = |v: &Var| Side { ty: vars.ty(*v).clone(), seed: Some(*v), path: vec![] };
            (rows, in_order.iter().flat_map(|k| seeds[*k].iter().map(column).collect::<Vec<_>>()).collect())
        }
        Mode::Vjp => {
            let row = |v: &Var| Side { ty: vars.ty(*v).clone(), seed: Some(*v), path: vec![] };
            let rows = seeds[0].iter().map(row).collect();
            let of_param = |k: &usize| -> Vec<Side> {
                let mine = paths.iter().filter(|(path, _)| in_order.len() == 1 || path[1] == *k);
                mine.map(|(path, ty)| Side { ty: ty.clone(), seed: None, path: path.clone() }).collect()
            };
            (rows, in_order.iter().flat_map(of_param).collect())
        }
    };

    let all_seeds: Vec<Var> = seeds.concat();
    let mut out: Vec<Matrix> = vec![];
    let mut row_offset = Size::default();
    for (part, row) in rows.iter().enumerate() {
        let mut column_offset = Size::default();
        for (parameter, column) in columns.iter().enumerate() {
            let (seed_side, array_side) = if mode == Mode::Jvp { (column, row) } else { (row, column) };
            let seed = seed_side.seed.expect("one side is the seed's");
            let zeros = all_seeds.iter().copied().filter(|v| *v != seed).collect();
            let own = copy(vars, &body, &Substitution::default());
            let mut cx = Linear::new(vars, seed, zeros);
            let axes = array_side.ty.shape().to_vec();
            let mut placed = vec![];
            for stream in streams::streams(&mut cx, &own, &array_side.path) {
                let Some(mut nest) = nest::nest(&mut cx, &facts, stream, &axes) else { continue };
                let (row_keys, column_keys) = if mode == Mode::Jvp { (&nest.keys, &nest.place) } else { (&nest.place, &nest.keys) };
                let (row_start, column_start) =
                    if entries.stack { (row_offset.clone(), column_offset.clone()) } else { Default::default() };
                let (row_keys, column_keys) = (row_keys.clone(), column_keys.clone());
                let row = flat(&row_keys, row.ty.shape(), &row_start);
                let column = flat(&column_keys, column.ty.shape(), &column_start);
                if let Some(triangle) = entries.triangle {
                    let inside = match triangle {
                        Triangle::Lower => op2(Op::Le, column.clone(), row.clone()),
                        Triangle::Upper => op2(Op::Le, row.clone(), column.clone()),
                    };
                    if nest.narrow(&mut cx, &facts, inside).is_none() {
                        continue;
                    }
                }
                let part = if entries.stack { part } else { 0 };
                placed.push(Placed { nest, row, column, row_keys, column_keys, part, parameter });
            }
            let scalar = column.ty.scalar().expect("a part is of numbers");
            let size = (places(row.ty.shape(), &facts), places(column.ty.shape(), &facts));
            match out.last_mut().filter(|_| entries.stack) {
                Some(matrix) => {
                    if parameter == 0 {
                        matrix.parts.push(row.ty.shape().to_vec());
                        matrix.size.0 = matrix.size.0.add(&size.0);
                    }
                    if part == 0 {
                        matrix.size.1 = matrix.size.1.add(&size.1);
                    }
                    matrix.streams.append(&mut placed);
                    if scalar == Scalar::F64 {
                        matrix.scalar = scalar;
                    }
                }
                None => out.push(Matrix { scalar, parts: vec![row.ty.shape().to_vec()], size, streams: placed }),
            }
            column_offset = column_offset.add(&places(column.ty.shape(), &facts));
        }
        row_offset = row_offset.add(&places(row.ty.shape(), &facts));
    }
    out
}

/// A part of the result or of a parameter: a seed, or a path to a part of the linear result.
struct Side {
    ty: Type,
    seed: Option<Var>,
    path: Vec<usize>,
}

fn leaf_paths(ty: &Type, path: &mut Vec<usize>, out: &mut Vec<(Vec<usize>, Type)>) {
    match ty {
        Type::Scalar(_) | Type::Array(..) => out.push((path.clone(), ty.clone())),
        Type::Tuple(parts) => {
            for (k, part) in parts.iter().enumerate() {
                path.push(k);
                leaf_paths(part, path, out);
                path.pop();
            }
        }
    }
}

/// The place in a flattened array.
fn flat(keys: &[Exp], shape: &[Size], start: &Size) -> Exp {
    let place = keys.iter().zip(shape).fold(None, |place: Option<Exp>, (key, size)| match place {
        None => Some(key.clone()),
        Some(place) => Some(add(mul(place, size_exp(size)), key.clone())),
    });
    let place = place.unwrap_or_else(|| i64(0));
    let total = if *start == Size::default() { place } else { add(size_exp(start), place) };
    exp_size(&total).map_or(total, |s| size_exp(&s))
}

/// How many places an array of a shape has.
pub fn places(shape: &[Size], facts: &Facts) -> Size {
    shape.iter().fold(Size::constant(1), |n, s| n.mul(&natural(s, facts)))
}

/// A size that is not negative.
fn natural(size: &Size, facts: &Facts) -> Size {
    if facts.prove_nonneg(size) { size.clone() } else { size.maximum(&Size::constant(0)) }
}

impl Matrix {
    fn count(&self, vars: &mut Vars, facts: &Facts) -> Exp {
        let total = self.streams.iter().map(|s| s.count(vars, facts)).reduce(add).unwrap_or_else(|| i64(0));
        exp_size(&total).map_or(total, |s| size_exp(&s))
    }

    /// `(rows, columns, values)` of so many entries: those of the streams, one group after the other.
    fn entries(&self, vars: &mut Vars, facts: &Facts, count: Var) -> Exp {
        let t: [Var; 3] = [0, 1, 2].map(|_| vars.fresh("t", Type::I64));
        let mut bindings = vec![];
        let mut parts: Vec<(Exp, [Exp; 3])> = vec![];
        let mut start = i64(0);
        for group in self.groups() {
            let lengths = group.iter().map(|s| s.count(vars, facts)).reduce(add).expect("a group has a stream");
            let mut length = tidy(lengths);
            let trips = group[0].trips();
            let arrays: [Exp; 3] = match &trips {
                Some(trips) => [0, 1, 2].map(|k| self.generated(vars, &group, trips, k)),
                None => {
                    let size = vars.fresh("length", Type::I64);
                    bindings.push((vec![size], std::mem::replace(&mut length, Exp::Var(size))));
                    [0, 1, 2].map(|k| {
                        let (leaf, of) = group[0].leaf(vars, self.scalar, k);
                        group[0].nest.scatter(vars, &Size::var(size), leaf, of)
                    })
                }
            };
            let mut axes = trips.unwrap_or(vec![Size::default()]);
            if group.len() > 1 {
                axes.push(Size::constant(group.len() as i64));
            }
            let mut k = 0;
            let reads = arrays.map(|array| {
                let ty = type_of_exp(vars, &array);
                let name = vars.fresh(["row", "col", "data"][k], ty);
                bindings.push((vec![name], array));
                let place = tidy(sub(Exp::Var(t[k]), start.clone()));
                k += 1;
                index(Exp::Var(name), unflattened(place, &axes, facts), Site::default())
            });
            start = tidy(add(start, length));
            parts.push((start.clone(), reads));
        }
        let zeros = [Lit::zero(Scalar::I64), Lit::zero(Scalar::I64), Lit::zero(self.scalar)];
        let arrays = [0, 1, 2].map(|k| {
            let chosen = parts
                .iter()
                .rev()
                .fold(Exp::Lit(zeros[k]), |rest, (end, reads)| if_(op2(Op::Lt, Exp::Var(t[k]), end.clone()), reads[k].clone(), rest));
            for_(t[k], Size::var(count), chosen)
        });
        lets(bindings, Exp::Tuple(arrays.to_vec()))
    }

    /// The entries under names, and the place that each has in compressed rows.
    fn sorted(&self, vars: &mut Vars, facts: &Facts, count: Var, library: &[FunctionId]) -> (Vec<(Vec<Var>, Exp)>, [Var; 4]) {
        let entries = self.entries(vars, facts, count);
        let array = |s: Scalar| Type::Array(vec![Size::var(count)], s);
        let scalars = [Scalar::I64, Scalar::I64, self.scalar, Scalar::I64];
        let mut k = 0;
        let names = scalars.map(|s| {
            k += 1;
            vars.fresh(["row", "col", "data", "place"][k - 1], array(s))
        });
        let [row, col, data, place] = names;
        let (m, n) = (size_exp(&self.size.0), size_exp(&self.size.1));
        let places = Exp::Call(library[0], vec![m, n, Exp::Var(row), Exp::Var(col)], Site::default());
        (vec![(vec![row, col, data], entries), (vec![place], places)], names)
    }

    fn sorted_count(&self, vars: &mut Vars, facts: &Facts, count: Var, library: &[FunctionId]) -> Exp {
        let (bindings, [.., place]) = self.sorted(vars, facts, count, library);
        lets(bindings, Exp::Call(library[1], vec![Exp::Var(place)], Site::default()))
    }

    fn sorted_rows(&self, vars: &mut Vars, facts: &Facts, count: Var, stored: Var, library: &[FunctionId], narrow: Scalar) -> Exp {
        let (bindings, [row, col, data, place]) = self.sorted(vars, facts, count, library);
        let args = vec![size_exp(&self.size.0), Exp::Var(stored), Exp::Var(place), Exp::Var(row)];
        let indptr = Exp::Call(library[3], args, Site::default());
        self.compressed(vars, Listed { bindings, indptr, count: Size::var(count), col, data, place }, stored, library, narrow)
    }

    /// `(indptr, indices, data)` of entries that have places; those at one place are added up.
    fn compressed(&self, vars: &mut Vars, listed: Listed, stored: Var, library: &[FunctionId], narrow: Scalar) -> Exp {
        let Listed { mut bindings, indptr, count, col, data, place } = listed;
        let indices = Exp::Call(library[2], vec![Exp::Var(stored), Exp::Var(place), Exp::Var(col)], Site::default());
        let t = vars.fresh("t", Type::I64);
        let at = |v: Var| index(v, vec![Exp::Var(t)], Site::default());
        let entry = singleton(vec![(at(place), Size::var(stored))], at(data), Site::default());
        let added = sum(t, i64(0), size_exp(&count), entry);
        let fits = rows::fitting(vars, &self.size.1, stored, narrow, &mut bindings);
        let mut narrowed = |name: &str, array: Exp, size: Size, starts: bool| {
            if narrow == Scalar::I64 {
                return array;
            }
            let wide = vars.fresh(name, Type::Array(vec![size.clone()], Scalar::I64));
            bindings.push((vec![wide], array));
            let k = vars.fresh("k", Type::I64);
            let read = index(wide, vec![Exp::Var(k)], Site::default());
            for_(k, size, if starts { rows::narrowed_start(read, fits, narrow) } else { row::converted(read, narrow) })
        };
        let indptr = narrowed("indptr", indptr, self.size.0.add(&Size::constant(1)), true);
        let indices = narrowed("indices", indices, Size::var(stored), false);
        lets(bindings, Exp::Tuple(vec![indptr, indices, added]))
    }

    /// Streams whose loops run equally often are computed together.
    fn groups(&self) -> Vec<Vec<&Placed>> {
        let mut groups: Vec<Vec<&Placed>> = vec![];
        for stream in &self.streams {
            let trips = stream.trips();
            match groups.iter_mut().find(|g| trips.is_some() && g[0].trips() == trips) {
                Some(group) => group.push(stream),
                None => groups.push(vec![stream]),
            }
        }
        groups
    }

    /// The rows (0), columns (1) or values (2) of a group of rectangular streams.
    fn generated(&self, vars: &mut Vars, group: &[&Placed], trips: &[Size], k: usize) -> Exp {
        let indices: Vec<Var> = trips.iter().map(|_| vars.fresh("i", Type::I64)).collect();
        let mut items: Vec<Exp> = vec![];
        for stream in group {
            let (leaf, of) = stream.leaf(vars, self.scalar, k);
            let here: Vec<Exp> = indices.iter().map(|i| Exp::Var(*i)).collect();
            items.push(stream.nest.at(vars, &here, leaf, of));
        }
        let body = if items.len() == 1 { items.remove(0) } else { Exp::Array(items) };
        indices.into_iter().zip(trips).rev().fold(body, |body, (i, trip)| for_(i, trip.clone(), body))
    }
}

/// An integer in normal form, where it has one.
fn tidy(e: Exp) -> Exp {
    exp_size(&e).map_or(e, |s| size_exp(&s))
}

impl Placed {
    /// How often each loop runs, where that depends on sizes alone.
    fn trips(&self) -> Option<Vec<Size>> {
        self.nest.is_rectangular().then(|| self.nest.trips())
    }

    /// The row (0), column (1) or value (2) of an entry.
    fn leaf(&self, vars: &Vars, scalar: Scalar, k: usize) -> (Exp, Part) {
        match k {
            0 => (self.row.clone(), Part::Places),
            1 => (self.column.clone(), Part::Places),
            _ => {
                let from = type_of_exp(vars, &self.nest.value).scalar().expect("a number");
                (convert(self.nest.value.clone(), from, scalar), Part::Values)
            }
        }
    }

    fn count(&self, vars: &mut Vars, facts: &Facts) -> Exp {
        if self.nest.is_rectangular() {
            return size_exp(&places(&self.nest.trips(), facts));
        }
        self.nest.count(vars)
    }
}

/// The indices of a place in an array that is flattened; the first trip does not matter.
fn unflattened(place: Exp, trips: &[Size], facts: &Facts) -> Vec<Exp> {
    let mut keys = vec![];
    let mut rest = place;
    for trip in trips.iter().skip(1).rev() {
        let trip = size_exp(&natural(trip, facts));
        keys.push(op2(Op::IMod, rest.clone(), trip.clone()));
        rest = op2(Op::IDiv, rest, trip);
    }
    if !trips.is_empty() {
        keys.push(rest);
    }
    keys.reverse();
    keys
}
