//! Jacobians and Hessians as sparse matrices: `jacobian(f, format = csr)`.
//!
//! Functions of the entries are left to `sparse` to define, once the derivative is known: how many there are, and their
//! rows, columns and values; how many places their compressed rows have, and these. The others are made of these:
//!
//! ```text
//! format = count:   count_f(x) -> i64
//! format = entries: entries_f(x, e: i64) -> ([e]i64, [e]i64, [e]f64)
//! format = stored:  stored_f(x, e: i64) -> i64
//! format = rows:    rows_f(x, e: i64, u: i64) -> ([m + 1]i64, [u]i64, [u]f64)
//! format = coo:     {shape: [2]i64, row: [?e]i64, col: [e]i64, data: [e]f64}, the entries with what they are entries of
//! format = csr:     {shape: [2]i64, indptr: [m + 1]i64, indices: [?u]i64, data: [u]f64}, sorted, those at one place added;
//!                   with index = i32 `indptr` and `indices` are narrow
//! ```
//!
//! The number of entries is a size that depends on data (`existential`). There is a matrix for each part of the result
//! and each of the parameters, in tuples and records like those of the dense Jacobian; with `stack` there is one, of all
//! results by all parameters.

use super::derive::{DerivativeKind, Deriving, Header, leaf_scalars, leaves, sorted};
use crate::diagnostic::Diagnostic;
use crate::ir::build::{lets, size_exp, tuple, tuple_type, type_of};
use crate::ir::facts::Facts;
use crate::ir::{Body, Entries, EntriesPart, Exp, FunctionId, Hidden, Mode, Scalar, Site, Size, Triangle, Type, Var};
use crate::library;
use crate::types::Parts;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    Coo,
    Csr,
    Count,
    Entries,
    Stored,
    Rows,
}

impl Format {
    pub const ALL: [Format; 6] = [Format::Coo, Format::Csr, Format::Count, Format::Entries, Format::Stored, Format::Rows];

    pub fn name(self) -> &'static str {
        match self {
            Format::Coo => "coo",
            Format::Csr => "csr",
            Format::Count => "count",
            Format::Entries => "entries",
            Format::Stored => "stored",
            Format::Rows => "rows",
        }
    }
}

/// How a sparse matrix is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Storage {
    pub format: Format,
    /// One matrix of all results by all parameters.
    pub stack: bool,
    pub triangle: Option<Triangle>,
    /// The type of the indices of compressed rows, `i64` or `i32`: of those that do not fit there is no matrix.
    pub index: Scalar,
}

/// One matrix: its shape and the type of its values.
struct Matrix {
    rows: Size,
    columns: Size,
    scalar: Scalar,
}

impl Deriving<'_> {
    /// The function that computes a sparse Jacobian of `f`, or the sparse Hessian.
    pub fn derive_sparse(
        &mut self,
        f: FunctionId,
        kind: DerivativeKind,
        wrt: &[usize],
        storage: Storage,
    ) -> Result<FunctionId, Diagnostic> {
        let key = (f, kind, wrt.to_vec(), Some(storage));
        if let Some(id) = self.memo.get(&key) {
            return Ok(*id);
        }
        self.require_derivative(f, kind)?;
        let of = match kind {
            DerivativeKind::Hessian => self.derive(f, DerivativeKind::Grad, wrt)?,
            _ => f,
        };
        let function = self.program.function(of);
        if function.hidden.is_some_and(|h| h.at + h.count != function.params.len()) {
            let text = format!("the sizes of what `{}` gives depend on data, so its Jacobian has no sparse form", function.name);
            return Err(Diagnostic::error(function.span, text));
        }
        let header = self.header(of);
        let matrices = self.matrices(of, &header, wrt, storage.stack);
        if storage.triangle.is_some() && matrices.len() != 1 {
            let text = format!("`triangle` is a part of one matrix, but here are {}", matrices.len());
            return Err(Diagnostic::error(function_span(self, f), text).note("`stack = true` makes one of them"));
        }
        let prefix = match storage {
            Storage { stack: true, .. } => "stacked_",
            _ => "",
        };
        let operator = format!("{prefix}{}_{}", kind.name(), storage.format.name());
        let name = self.name(&operator, f, wrt);
        let id = match storage.format {
            Format::Count => self.count(of, kind, wrt, storage),
            Format::Entries => self.entries(of, kind, wrt, storage),
            Format::Stored => self.stored(of, kind, wrt, storage),
            Format::Rows => self.rows(of, kind, wrt, storage),
            Format::Coo => self.coo(of, kind, wrt, storage, name),
            Format::Csr => self.csr(of, kind, wrt, storage, name),
        };
        self.memo.insert(key, id);
        Ok(id)
    }

    fn matrices(&self, of: FunctionId, header: &Header, wrt: &[usize], stack: bool) -> Vec<Matrix> {
        let result = header.rename(&self.result_tangent(of));
        let params: Vec<Type> = self.tangent_types(of, wrt).iter().map(|t| header.rename(t)).collect();
        let mut facts = Facts::default();
        header.sizes.iter().for_each(|n| facts.assume_nonneg(Size::var(*n)));
        let number = |s: Vec<Size>| places(&s, &facts);
        let columns: Vec<(Size, Scalar)> = params.iter().flat_map(|p| leaves(p).into_iter().map(number).zip(leaf_scalars(p))).collect();
        let rows: Vec<Size> = leaves(&result).into_iter().map(number).collect();
        if stack {
            let total = |sizes: &mut dyn Iterator<Item = &Size>| sizes.fold(Size::default(), |n, s| n.add(s));
            let scalar = if columns.iter().all(|(_, s)| *s == Scalar::F32) { Scalar::F32 } else { Scalar::F64 };
            return vec![Matrix { rows: total(&mut rows.iter()), columns: total(&mut columns.iter().map(|(s, _)| s)), scalar }];
        }
        let one = |rows: &Size| -> Vec<Matrix> {
            columns.iter().map(|(columns, scalar)| Matrix { rows: rows.clone(), columns: columns.clone(), scalar: *scalar }).collect()
        };
        rows.iter().flat_map(one).collect()
    }

    fn body_of_entries(&mut self, of: FunctionId, kind: DerivativeKind, wrt: &[usize], storage: Storage, part: EntriesPart) -> Entries {
        let sorted = sorted(wrt);
        let forward = (kind != DerivativeKind::JacRev).then(|| self.derived(of, Mode::Jvp, &sorted));
        let reverse = matches!(kind, DerivativeKind::Jacobian | DerivativeKind::JacRev).then(|| self.derived(of, Mode::Vjp, &sorted));
        let library = match part {
            EntriesPart::Count | EntriesPart::Entries => vec![],
            EntriesPart::Stored | EntriesPart::Rows => self.from_library().to_vec(),
        };
        let index = if part == EntriesPart::Rows { storage.index } else { Scalar::I64 };
        Entries { part, of, wrt: wrt.to_vec(), forward, reverse, stack: storage.stack, triangle: storage.triangle, index, library }
    }

    /// A function with this body, if there is one.
    fn existing(&self, body: &Body) -> Option<FunctionId> {
        self.program.functions.iter().position(|g| g.body == *body).map(|k| FunctionId(k as u32))
    }

    fn count(&mut self, of: FunctionId, kind: DerivativeKind, wrt: &[usize], storage: Storage) -> FunctionId {
        let entries = self.body_of_entries(of, kind, wrt, storage, EntriesPart::Count);
        let body = Body::Entries(Box::new(entries));
        if let Some(id) = self.existing(&body) {
            return id;
        }
        let header = self.header(of);
        let count = self.matrices(of, &header, wrt, storage.stack).len();
        let name = self.name("entries_count", of, wrt);
        self.add(name, header.sizes, header.params, tuple_type(vec![Type::I64; count]), body, of)
    }

    fn entries(&mut self, of: FunctionId, kind: DerivativeKind, wrt: &[usize], storage: Storage) -> FunctionId {
        let entries = self.body_of_entries(of, kind, wrt, storage, EntriesPart::Entries);
        let body = Body::Entries(Box::new(entries));
        if let Some(id) = self.existing(&body) {
            return id;
        }
        let mut header = self.header(of);
        let matrices = self.matrices(of, &header, wrt, storage.stack);
        let mut types = vec![];
        for matrix in &matrices {
            let count = self.program.vars.fresh("entries", Type::I64);
            header.params.push(count);
            types.push(entries_type(count, matrix.scalar));
        }
        let name = self.name("entries", of, wrt);
        self.add(name, header.sizes, header.params, tuple_type(types), body, of)
    }

    fn stored(&mut self, of: FunctionId, kind: DerivativeKind, wrt: &[usize], storage: Storage) -> FunctionId {
        let entries = self.body_of_entries(of, kind, wrt, storage, EntriesPart::Stored);
        let body = Body::Entries(Box::new(entries));
        if let Some(id) = self.existing(&body) {
            return id;
        }
        let mut header = self.header(of);
        let matrices = self.matrices(of, &header, wrt, storage.stack).len();
        header.params.extend((0..matrices).map(|_| self.program.vars.fresh("entries", Type::I64)));
        let name = self.name("stored", of, wrt);
        self.add(name, header.sizes, header.params, tuple_type(vec![Type::I64; matrices]), body, of)
    }

    fn rows(&mut self, of: FunctionId, kind: DerivativeKind, wrt: &[usize], storage: Storage) -> FunctionId {
        let entries = self.body_of_entries(of, kind, wrt, storage, EntriesPart::Rows);
        let body = Body::Entries(Box::new(entries));
        if let Some(id) = self.existing(&body) {
            return id;
        }
        let mut header = self.header(of);
        let matrices = self.matrices(of, &header, wrt, storage.stack);
        let counts: Vec<Var> = matrices.iter().map(|_| self.program.vars.fresh("entries", Type::I64)).collect();
        let stored: Vec<Var> = matrices.iter().map(|_| self.program.vars.fresh("stored", Type::I64)).collect();
        header.params.extend(counts.iter().chain(&stored));
        let types = matrices.iter().zip(&stored).map(|(m, stored)| rows_type(m, *stored, storage.index)).collect();
        let name = self.name("rows", of, wrt);
        self.add(name, header.sizes, header.params, tuple_type(types), body, of)
    }

    /// The entries of all matrices, as variables bound by `bindings`.
    #[allow(clippy::too_many_arguments)]
    fn entries_of(
        &mut self,
        of: FunctionId,
        kind: DerivativeKind,
        wrt: &[usize],
        storage: Storage,
        args: Vec<Exp>,
        counts: &[Var],
        matrices: &[Matrix],
        bindings: &mut Vec<(Vec<Var>, Exp)>,
    ) -> Vec<[Var; 3]> {
        let entries = self.entries(of, kind, wrt, storage);
        let call = Exp::Call(entries, args.into_iter().chain(counts.iter().map(|v| Exp::Var(*v))).collect(), Site::default());
        let types = matrices.iter().zip(counts).map(|(m, count)| entries_type(*count, m.scalar)).collect();
        self.named_parts(call, types, ["row", "col", "data"], bindings)
    }

    /// The three arrays of each matrix that a call gives, as variables bound by `bindings`.
    fn named_parts(&mut self, call: Exp, types: Vec<Type>, names: [&str; 3], bindings: &mut Vec<(Vec<Var>, Exp)>) -> Vec<[Var; 3]> {
        let mut parts = vec![];
        for ty in &types {
            let Type::Tuple(arrays) = ty else { unreachable!("a matrix is three arrays") };
            parts.push([0, 1, 2].map(|k| self.program.vars.fresh(names[k], arrays[k].clone())));
        }
        if let [part] = parts.as_slice() {
            bindings.push((part.to_vec(), call));
            return parts;
        }
        let matrices: Vec<Var> = types.into_iter().map(|ty| self.program.vars.fresh("matrix", ty)).collect();
        bindings.push((matrices.clone(), call));
        bindings.extend(matrices.iter().zip(&parts).map(|(v, part)| (part.to_vec(), Exp::Var(*v))));
        parts
    }

    /// Parameters for sizes that no caller gives, behind those of a function: how many, and the function that computes them
    /// and those that the function has already.
    fn hide(&mut self, id: FunctionId, of: FunctionId, sizes: FunctionId, more: usize) {
        let before = self.program.function(of).hidden.map_or(0, |h| h.count);
        let function = &mut self.program.functions[id.0 as usize];
        let count = before + more;
        function.hidden = Some(Hidden { at: function.params.len() - count, count, sizes });
    }

    /// The start of a function of sizes: its parameters are those that callers of `of` give; what computes the others, then
    /// the counts of entries.
    fn sizes_header(&mut self, of: FunctionId, counter: FunctionId, matrices: usize) -> (Header, Vec<(Vec<Var>, Exp)>, Vec<Var>, Vec<Var>) {
        let mut header = self.header(of);
        let mut bindings = vec![];
        let mut hidden = vec![];
        if let Some(h) = self.program.function(of).hidden {
            hidden = header.params.split_off(h.at);
            bindings.push((hidden.clone(), Exp::Call(h.sizes, header.args(), Site::default())));
        }
        let counts: Vec<Var> = (0..matrices).map(|_| self.program.vars.fresh("entries", Type::I64)).collect();
        let args = header.args().into_iter().chain(hidden.iter().map(|v| Exp::Var(*v))).collect();
        bindings.push((counts.clone(), Exp::Call(counter, args, Site::default())));
        (header, bindings, hidden, counts)
    }

    /// A function that computes sizes; it hides nothing.
    fn add_sizes(&mut self, name: &str, header: Header, bindings: Vec<(Vec<Var>, Exp)>, sizes: Vec<Exp>, of: FunctionId) -> FunctionId {
        let count = sizes.len();
        let id = self.add(
            name.to_string(),
            header.sizes,
            header.params,
            tuple_type(vec![Type::I64; count]),
            Body::Exp(lets(bindings, tuple(sizes))),
            of,
        );
        self.program.functions[id.0 as usize].hidden = None;
        id
    }

    fn coo(&mut self, of: FunctionId, kind: DerivativeKind, wrt: &[usize], storage: Storage, name: String) -> FunctionId {
        let counter = self.count(of, kind, wrt, storage);
        let mut header = self.header(of);
        let matrices = self.matrices(of, &header, wrt, storage.stack);
        let args = header.args();
        let counts: Vec<Var> = matrices.iter().map(|_| self.program.vars.fresh("entries", Type::I64)).collect();
        let mut bindings = vec![];
        let parts = self.entries_of(of, kind, wrt, storage, args, &counts, &matrices, &mut bindings);
        let mut values = vec![];
        for (matrix, [row, col, data]) in matrices.iter().zip(parts) {
            let fields = vec![shape(matrix), Exp::Var(row), Exp::Var(col), Exp::Var(data)];
            let types = fields.iter().map(|e| type_of(self.program, e)).collect();
            values
                .push((Exp::Tuple(fields), Type::Tuple(Parts::record(["shape", "row", "col", "data"].map(String::from).to_vec(), types))));
        }
        let (value, ty) = self.arranged(of, &header, wrt, storage.stack, values);
        header.params.extend(&counts);
        let id = self.add(name.clone(), header.sizes, header.params, ty, Body::Exp(lets(bindings, value)), of);
        let sizes = if self.program.function(of).hidden.is_some() {
            let (header, bindings, hidden, counts) = self.sizes_header(of, counter, matrices.len());
            let sizes = hidden.into_iter().chain(counts).map(Exp::Var).collect();
            self.add_sizes(&format!("{name}_sizes"), header, bindings, sizes, of)
        } else {
            counter
        };
        self.hide(id, of, sizes, matrices.len());
        id
    }

    fn csr(&mut self, of: FunctionId, kind: DerivativeKind, wrt: &[usize], storage: Storage, name: String) -> FunctionId {
        let counter = self.count(of, kind, wrt, storage);
        let stored = self.stored(of, kind, wrt, storage);
        let header = self.header(of);
        let number = self.matrices(of, &header, wrt, storage.stack).len();
        let (own, mut bindings, hidden, counts) = self.sizes_header(of, counter, number);
        let args = own.args().into_iter().chain(hidden.iter().chain(&counts).map(|v| Exp::Var(*v))).collect();
        let places: Vec<Var> = counts.iter().map(|_| self.program.vars.fresh("stored", Type::I64)).collect();
        bindings.push((places.clone(), Exp::Call(stored, args, Site::default())));
        let sizes = hidden.iter().chain(&counts).chain(&places).map(|v| Exp::Var(*v)).collect();
        let sizes = self.add_sizes(&format!("{name}_sizes"), own, bindings, sizes, of);

        let rows = self.rows(of, kind, wrt, storage);
        let mut header = self.header(of);
        let matrices = self.matrices(of, &header, wrt, storage.stack);
        let counts: Vec<Var> = matrices.iter().map(|_| self.program.vars.fresh("entries", Type::I64)).collect();
        let stored: Vec<Var> = matrices.iter().map(|_| self.program.vars.fresh("stored", Type::I64)).collect();
        let args = header.args().into_iter().chain(counts.iter().chain(&stored).map(|v| Exp::Var(*v))).collect();
        let types = matrices.iter().zip(&stored).map(|(m, stored)| rows_type(m, *stored, storage.index)).collect();
        let mut bindings = vec![];
        let parts = self.named_parts(Exp::Call(rows, args, Site::default()), types, ["indptr", "indices", "data"], &mut bindings);
        let mut values = vec![];
        for (matrix, [indptr, indices, data]) in matrices.iter().zip(parts) {
            let fields = vec![shape(matrix), Exp::Var(indptr), Exp::Var(indices), Exp::Var(data)];
            let types = fields.iter().map(|e| type_of(self.program, e)).collect();
            let names = ["shape", "indptr", "indices", "data"].map(String::from).to_vec();
            values.push((Exp::Tuple(fields), Type::Tuple(Parts::record(names, types))));
        }
        let (value, ty) = self.arranged(of, &header, wrt, storage.stack, values);
        header.params.extend(counts.iter().chain(&stored));
        let id = self.add(name, header.sizes, header.params, ty, Body::Exp(lets(bindings, value)), of);
        self.hide(id, of, sizes, 2 * matrices.len());
        id
    }

    /// The matrices in tuples like those of the dense Jacobian.
    fn arranged(&self, of: FunctionId, header: &Header, wrt: &[usize], stack: bool, values: Vec<(Exp, Type)>) -> (Exp, Type) {
        let mut values = values.into_iter();
        if stack {
            return values.next().expect("one matrix");
        }
        let result = header.rename(&self.result_tangent(of));
        let params: Vec<Type> = self.tangent_types(of, wrt);
        like(&result, &mut || {
            let parts: Vec<(Exp, Type)> = params.iter().map(|p| like(p, &mut || values.next().expect("a matrix for each part"))).collect();
            let (exps, types): (Vec<Exp>, Vec<Type>) = parts.into_iter().unzip();
            (tuple(exps), tuple_type(types))
        })
    }

    /// The library's functions for compressed rows.
    fn from_library(&mut self) -> [FunctionId; 5] {
        let names = ["_csr_places", "_csr_count", "_csr_indices", "_csr_indptr", "_row_starts"];
        let known = names.map(|name| self.program.find(name));
        if known.iter().all(Option::is_some) {
            return known.map(|id| id.expect("all are known"));
        }
        let (program, wrong) = super::check(&library::part(&names));
        assert!(wrong.is_empty(), "library: {}", wrong[0].message);
        names.map(|name| self.program.graft(&program, name))
    }
}

/// A value for each part of a type, in tuples like it.
fn like(ty: &Type, f: &mut dyn FnMut() -> (Exp, Type)) -> (Exp, Type) {
    match ty {
        Type::Scalar(_) | Type::Array(..) => f(),
        Type::Tuple(parts) if parts.structure().is_some() => like(&parts[0], f),
        Type::Tuple(parts) => {
            let mut exps = vec![];
            let parts = parts.map(|t| {
                let (exp, ty) = like(t, f);
                exps.push(exp);
                ty
            });
            (Exp::Tuple(exps), Type::Tuple(parts))
        }
    }
}

fn function_span(d: &Deriving<'_>, f: FunctionId) -> crate::diagnostic::Span {
    d.program.function(f).span
}

fn shape(matrix: &Matrix) -> Exp {
    Exp::Array(vec![size_exp(&matrix.rows), size_exp(&matrix.columns)])
}

fn entries_type(count: Var, scalar: Scalar) -> Type {
    let array = |s: Scalar| Type::Array(vec![Size::var(count)], s);
    Type::tuple(vec![array(Scalar::I64), array(Scalar::I64), array(scalar)])
}

fn rows_type(matrix: &Matrix, stored: Var, index: Scalar) -> Type {
    let array = |size: Size, s: Scalar| Type::Array(vec![size], s);
    let starts = matrix.rows.add(&Size::constant(1));
    Type::tuple(vec![array(starts, index), array(Size::var(stored), index), array(Size::var(stored), matrix.scalar)])
}

/// How many places an array of a shape has; an axis has none where its size is negative.
fn places(shape: &[Size], facts: &Facts) -> Size {
    let natural = |s: &Size| if facts.prove_nonneg(s) { s.clone() } else { s.maximum(&Size::constant(0)) };
    shape.iter().fold(Size::constant(1), |n, s| n.mul(&natural(s)))
}
