//! Matrices of which a part is stored: `lower [n, n]f64` and its like (`types::structure` has the layouts).
//!
//! They end here: the IR has packed arrays, keys that are polynomials, and brackets.
//!
//! * a read `L[i, j]` is `[j <= i] * l[i * (i + 1) div 2 + j]`, of `sym` an `if` between the place and its mirror
//! * a comprehension `for i, j. e` where a structure is wanted computes the stored places alone:
//!   `sum i, j in 0..i + 1. {i * (i + 1) div 2 + j -> e}`, of `diag` and `band` a `for`
//! * `{(i, j) -> v}` and `L with [i, j] = v` take the key of a place, which must be a stored one
//!
//! An index is checked against the matrix, not the packed array: where it is not known to lie inside, it is bound by
//! `within(i, n)`.

use super::messages::brief;
use super::operators::index_name;
use super::subscripts::{Key, UNKNOWN};
use super::{Checker, Typed};
use crate::diagnostic::{Diagnostic, Span};
use crate::ir::build::{add, for_, guard, i64, if_, index, lets, op2, singleton, size_exp, sum};
use crate::ir::facts::Facts;
use crate::ir::{Exp, Op, Site, Size, Type, Var};
use crate::syntax::ast::{self, BinderKind, ExpKind, IndexBinding, Name, TypeExp};
use crate::types::{Form, Parts, Structure};

impl<'a> Checker<'a> {
    /// The type `word(widths) array` as it is written.
    pub fn structured_type(&mut self, word: &Name, widths: &[ast::Exp], array: &TypeExp) -> Option<Type> {
        let found = self.read_type(array);
        let sizes: Vec<Option<Size>> = widths.iter().map(|w| self.read_size(w)).collect();
        let sizes: Vec<Size> = sizes.into_iter().collect::<Option<_>>()?;
        let found = found?;
        let form = match (word.text.as_str(), sizes.as_slice()) {
            ("lower", []) => Form::Lower,
            ("upper", []) => Form::Upper,
            ("sym", []) => Form::Sym,
            ("diag", []) => Form::Diag,
            ("band", [k]) => Form::Band(k.clone(), k.clone()),
            ("band", [below, above]) => Form::Band(below.clone(), above.clone()),
            ("band", _) => {
                let text = "`band` takes how many diagonals are stored beside the main one";
                self.report(Diagnostic::error(word.span, text).note("write `band(k) [n, n]f64`, or `band(below, above) [n, n]f64`"));
                return None;
            }
            (other, _) => {
                let span = widths[0].span.to(widths[widths.len() - 1].span);
                self.report(Diagnostic::error(span, format!("`{other}` takes no width")).note(format!("write `{other} [n, n]f64`")));
                return None;
            }
        };
        if let Some(negative) = sizes.iter().zip(widths).find(|(s, _)| s.as_constant().is_some_and(|c| c < 0)) {
            self.report(Diagnostic::error(negative.1.span, "a number of diagonals is not negative"));
            return None;
        }
        let (shape, scalar) = match &found {
            Type::Array(shape, scalar) if scalar.is_number() => (shape, *scalar),
            other => {
                let text = format!("`{}` stores a part of a matrix of numbers, not of `{}`", word.text, self.describe(other));
                self.report(Diagnostic::error(array.span, text).note(format!("write `{} [n, n]f64`", word.text)));
                return None;
            }
        };
        let [rows, columns] = shape.as_slice() else {
            let text = format!("`{}` stores a part of a matrix, which has two axes", word.text);
            self.report(Diagnostic::error(array.span, text).note(format!("further axes stand in front: `[k] {} [n, n]f64`", word.text)));
            return None;
        };
        if !self.same_size(rows, columns) {
            let (n, m) = (self.describe_size(rows), self.describe_size(columns));
            let text = format!("`{}` stores a part of a square matrix, but `{n}` and `{m}` may differ", word.text);
            self.report(Diagnostic::error(array.span, text).note(format!("give both axes one size: `{} [{n}, {n}]f64`", word.text)));
            return None;
        }
        let structure = Structure { form, size: rows.clone() };
        let packed = Type::array(structure.packed(), scalar);
        Some(Type::Tuple(Parts::structured(structure, packed)))
    }

    /// The same part of a matrix of the same size.
    pub fn same_structure(&self, a: Option<&Structure>, b: Option<&Structure>) -> bool {
        let (Some(a), Some(b)) = (a, b) else { return a.is_none() && b.is_none() };
        self.same_size(&a.size, &b.size)
            && match (&a.form, &b.form) {
                (Form::Band(l, u), Form::Band(m, v)) => self.same_size(l, m) && self.same_size(u, v),
                (a, b) => a == b,
            }
    }

    /// A note on how matrices become dense, and how parts of them are taken.
    pub fn explain_structure(&self, diagnostic: Diagnostic, found: &Type, want: &Type) -> Diagnostic {
        let places = |outer: usize| (0..outer + 2).map(index_name).collect::<Vec<_>>().join(", ");
        match (found.structured(), want.structured()) {
            (Some(_), None) if want.shape().len() >= 2 => {
                let at = places(found.outer_axes().map_or(0, <[Size]>::len));
                diagnostic.note(format!("the dense matrix is `for {at}. L[{at}]`"))
            }
            (None, Some((structure, _))) if found.shape().len() >= 2 => {
                let at = places(want.outer_axes().map_or(0, <[Size]>::len));
                let word = structure.word();
                diagnostic
                    .note(format!("its stored places are taken by a comprehension of that type: `let L: {word} … = for {at}. A[{at}];`"))
            }
            (Some(_), Some((structure, _))) => {
                let at = places(want.outer_axes().map_or(0, <[Size]>::len));
                let word = structure.word();
                diagnostic
                    .note(format!("what `{word}` stores is taken by a comprehension of that type: `let M: {word} … = for {at}. L[{at}];`"))
            }
            _ => diagnostic,
        }
    }

    /// `L[i, j]`, `L[i]`, `L[:, j]`: more subscripts than there are axes in front of the matrix.
    pub fn read_structured(&mut self, array: Exp, ty: &Type, mut keys: Vec<Key>, span: Span) -> Typed {
        let (Some((structure, packed)), Some(outer)) = (ty.structured(), ty.outer_axes()) else { return Typed::poison() };
        let (structure, scalar) = (structure.clone(), packed.scalar());
        let Some(scalar) = scalar else { return Typed::poison() };
        let outer = outer.len();
        // A row is all of its places.
        while keys.len() < outer + 2 {
            keys.push(Key::Part(Size::default(), structure.size.clone()));
        }
        let array = self.shared("t", array, ty);
        let mut loops = vec![];
        let mut at = vec![];
        for key in keys {
            at.push(match key {
                Key::At(e) => e,
                Key::Part(from, size) => {
                    let var = self.program.vars.fresh(index_name(loops.len()), Type::I64);
                    loops.push((var, size));
                    if from == Size::default() { Exp::Var(var) } else { add(size_exp(&from), var) }
                }
            });
        }
        let columns = at.split_off(outer);
        let mut places = vec![];
        let mut under = vec![];
        for key in &columns {
            let of = |v: Var| loops.iter().find(|(index, _)| *index == v).map(|(_, size)| size);
            let whole = matches!(key, Exp::Var(v) if of(*v).is_some_and(|size| self.same_size(size, &structure.size)));
            let slice = key.free_vars().iter().any(|v| of(*v).is_some());
            let around = std::mem::take(&mut self.floating);
            places.push(self.place(key, &structure.size, whole, span));
            let checked = std::mem::replace(&mut self.floating, around);
            // What checks the places of a slice stands under its binder.
            if slice { under.extend(checked) } else { self.floating.extend(checked) }
        }
        let body = lets(under, stored_read(&structure, array, at, &places[0], &places[1], span));
        let sizes: Vec<Size> = loops.iter().map(|(_, size)| size.clone()).collect();
        let result = sizes.iter().rev().fold(Type::Scalar(scalar), |ty, size| ty.with_axis(size));
        Typed::new(loops.into_iter().rev().fold(body, |body, (var, size)| for_(var, size, body)), result)
    }

    /// An index of the matrix as a size, checked when the program runs where it is not known to lie inside.
    fn place(&mut self, key: &Exp, size: &Size, known: bool, span: Span) -> Size {
        let found = self.size_of("k", key);
        if known || self.lies_in(&found, size) {
            return found;
        }
        let checked = Exp::Op(Op::Within, vec![size_exp(&found), size_exp(size)], Site::new(span));
        Size::var(self.float("k", checked, Type::I64))
    }

    /// Whether an index is known to be one of so many places.
    fn lies_in(&self, key: &Size, size: &Size) -> bool {
        let mut facts = Facts::default();
        let mut vars: Vec<Var> = self.assumed.iter().flat_map(Exp::free_vars).collect();
        key.variables(&mut vars);
        size.variables(&mut vars);
        self.indices.iter().for_each(|cell| vars.push(cell.var));
        for v in vars {
            match self.defined_sizes.get(&v) {
                Some(defined) => facts.define(v, &size_exp(defined)),
                None if self.program.functions.iter().any(|f| f.sizes.contains(&v)) => facts.assume_nonneg(Size::var(v)),
                None => {}
            }
        }
        self.index_facts(&mut facts);
        self.assumed.iter().for_each(|condition| facts.assume(condition));
        facts.in_range(&size_exp(&self.expand(key)), &self.expand(size))
    }

    /// `for i, j. e` where a matrix is wanted of which a part is stored: the stored places alone. `None` where it has not
    /// two indices.
    pub fn stored_places(&mut self, indices: &[IndexBinding], body: &ast::Exp, span: Span, wanted: &Type) -> Option<Typed> {
        let (structure, packed) = wanted.structured()?;
        let (structure, scalar, packed) = (structure.clone(), packed.scalar()?, packed.clone());
        // `for i. for j. e` is the same.
        let (row, column, body) = match (indices, &body.kind) {
            ([row, column], _) => (row, column, body),
            ([row], ExpKind::Binder(BinderKind::For, inner, body)) if inner.len() == 1 => (row, &inner[0], &**body),
            _ => return None,
        };
        if structure.size.mentions(UNKNOWN) {
            self.report(
                Diagnostic::error(span, "the size of this matrix is not known")
                    .note(format!("give its type: `let L: {} [n, n]f64 = …;`", structure.word())),
            );
            return Some(Typed::poison());
        }
        let n = structure.size.clone();
        let mut fits = true;
        let (i, _, found) = self.indexed("for", row, body.span, |c| {
            let i = c.note_range(&n, row.name.span);
            let (j, _, found) = c.indexed("for", column, body.span, |c| {
                c.note_range(&n, column.name.span);
                c.check(body, &Type::Scalar(scalar), |c, d| d.note(format!("the places of `{}` are scalars", c.describe(wanted))))
            });
            let (Some(i), Some(_)) = (i, &found.ty) else { return Typed::poison() };
            Typed::new(c.stored_row(&structure, &packed, i, j, found.exp, span), packed.without_axes(1).unwrap_or(Type::Scalar(scalar)))
        });
        for binding in [row, column] {
            fits &= self.whole_range(binding, &n);
        }
        if found.ty.is_none() || !fits {
            return Some(Typed::poison());
        }
        let exp = match structure.form {
            Form::Lower | Form::Upper | Form::Sym => sum(i, i64(0), size_exp(&n), found.exp),
            Form::Diag | Form::Band(..) => for_(i, n, found.exp),
        };
        Some(Typed::new(exp, wanted.clone()))
    }

    /// The stored places of row `i`, for each of which `e` is the value at column `j`.
    fn stored_row(&mut self, structure: &Structure, packed: &Type, i: Var, j: Var, e: Exp, span: Span) -> Exp {
        let (row, column, one) = (Size::var(i), Size::var(j), Size::constant(1));
        let place = |e: Exp| {
            let key = stored_key(structure, &row, &column).remove(0);
            singleton(vec![(size_exp(&key), packed.shape()[0].clone())], e, Site::new(span).passed())
        };
        match &structure.form {
            Form::Lower | Form::Sym => sum(j, i64(0), size_exp(&row.add(&one)), place(e)),
            Form::Upper => sum(j, size_exp(&row), size_exp(&structure.size), place(e)),
            Form::Diag => lets(vec![(vec![j], Exp::Var(i))], e),
            Form::Band(below, above) => {
                let t = self.program.vars.fresh("t", Type::I64);
                let at = row.add(&Size::var(t)).sub(below);
                let inside = op2(Op::And, op2(Op::Le, i64(0), size_exp(&at)), op2(Op::Lt, size_exp(&at), size_exp(&structure.size)));
                let value = guard(inside, lets(vec![(vec![j], size_exp(&at))], e));
                for_(t, below.add(above).add(&one), value)
            }
        }
    }

    /// Whether a range that is written is all of the matrix's axis.
    fn whole_range(&mut self, binding: &IndexBinding, n: &Size) -> bool {
        let Some((lo, hi)) = &binding.range else { return true };
        let errors = self.error_count();
        let (from, to) = (self.integer(lo, "a bound"), self.integer(hi, "a bound"));
        let (Some(from), Some(to)) = (from, to) else { return false };
        let sizes = crate::ir::build::exp_size(&from).zip(crate::ir::build::exp_size(&to));
        let whole = sizes.is_some_and(|(from, to)| from == Size::default() && self.same_size(&to, n));
        if !whole && self.error_count() == errors {
            let size = self.describe_size(n);
            self.report(
                Diagnostic::error(lo.span.to(hi.span), format!("`{}..{}` is not the whole axis of the matrix", brief(lo), brief(hi))).note(
                    format!("leave the range out, or write `{} in 0..{size}`; what is not stored is not computed", binding.name.text),
                ),
            );
        }
        whole
    }

    /// `{(i, j) -> v}` where a matrix is wanted of which a part is stored.
    pub fn structured_singleton(&mut self, keys: &[ast::Exp], value: &ast::Exp, span: Span, wanted: &Type) -> Typed {
        let (Some((structure, packed)), Some(outer)) = (wanted.structured(), wanted.outer_axes()) else { return Typed::poison() };
        let (structure, packed, outer) = (structure.clone(), packed.clone(), outer.to_vec());
        let found: Vec<Option<Exp>> = keys.iter().map(|k| self.integer(k, "a key")).collect();
        let found: Option<Vec<Exp>> = found.into_iter().collect();
        let (Some(mut found), Some(scalar)) = (found, packed.scalar()) else { return Typed::poison() };
        let known = !structure.size.mentions(UNKNOWN);
        if keys.len() != outer.len() + 2 || !known {
            let text = if known { "this singleton is no place of a matrix" } else { "the size of this singleton is not known" };
            let note = format!("a place of `{}` has a row and a column: `{{(i, j) -> v}}`", self.describe(wanted));
            self.report(Diagnostic::error(span, text).note(note));
            return Typed::poison();
        }
        let axes: Vec<Size> = outer.iter().chain([&structure.size, &structure.size]).cloned().collect();
        for (key, size) in found.iter().zip(&axes) {
            if let Exp::Var(v) = key {
                self.note_key(*v, size, span);
            }
        }
        let value = self.check(value, &Type::Scalar(scalar), |_, d| d);
        if value.ty.is_none() {
            return Typed::poison();
        }
        let columns = found.split_off(outer.len());
        let stored = self.checked_keys(&structure, &columns[0], &columns[1], span);
        let keys = found.into_iter().chain(stored).zip(packed.shape().iter().cloned()).collect();
        Typed::new(singleton(keys, value.exp, Site::new(span)), wanted.clone())
    }

    /// `L with [i, j] = v`
    pub fn structured_update(&mut self, array: Exp, ty: Type, keys: Vec<Key>, value: &ast::Exp, span: Span, place: Span) -> Typed {
        let (Some((structure, packed)), Some(outer)) = (ty.structured(), ty.outer_axes()) else { return Typed::poison() };
        let (structure, scalar, outer) = (structure.clone(), packed.scalar(), outer.len());
        let mut at: Vec<Exp> = keys.into_iter().filter_map(|k| if let Key::At(e) = k { Some(e) } else { None }).collect();
        if at.len() != outer + 2 {
            let text = format!("`with` writes one place of `{}`, which has a row and a column", self.describe(&ty));
            self.report(Diagnostic::error(place, text).note("write `L with [i, j] = v`"));
            self.infer(value, None);
            return Typed::poison();
        }
        let Some(scalar) = scalar else { return Typed::poison() };
        let value = self.check(value, &Type::Scalar(scalar), |c, d| d.label(place, format!("a place of `{}` is written", c.describe(&ty))));
        if value.ty.is_none() {
            return Typed::poison();
        }
        let columns = at.split_off(outer);
        at.extend(self.checked_keys(&structure, &columns[0], &columns[1], span));
        Typed::new(Exp::Update(Box::new(array), at, Box::new(value.exp), Site::new(span)), ty)
    }

    /// Where a place is stored; that it is no stored place is an error when the program runs, if it is not known.
    fn checked_keys(&mut self, structure: &Structure, i: &Exp, j: &Exp, span: Span) -> Vec<Exp> {
        let n = &structure.size;
        let i = self.place(i, n, false, span);
        let one = Size::constant(1);
        let (i, j) = match &structure.form {
            Form::Lower => {
                let j = self.place(j, &i.add(&one), false, span);
                (i, j)
            }
            Form::Upper => {
                let j = self.place(j, n, false, span);
                // The row counts from its diagonal.
                let from = self.place(&size_exp(&j.sub(&i)), &n.sub(&i), false, span);
                let j = i.add(&from);
                (i, j)
            }
            Form::Diag => {
                let j = self.size_of("k", j);
                let beside = self.place(&size_exp(&j.sub(&i)), &one, false, span);
                let i = i.add(&beside);
                (i.clone(), i)
            }
            // The width is the packed array's, which checks it.
            Form::Band(..) => {
                let j = self.place(j, n, false, span);
                (i, j)
            }
            Form::Sym => {
                let j = self.place(j, n, false, span);
                let lower = op2(Op::Le, size_exp(&j), size_exp(&i));
                let (below, above) = (stored_key(structure, &i, &j).remove(0), stored_key(structure, &j, &i).remove(0));
                return vec![if_(lower, size_exp(&below), size_exp(&above))];
            }
        };
        stored_key(structure, &i, &j).iter().map(size_exp).collect()
    }
}

/// Where a stored place stands in the packed array.
fn stored_key(structure: &Structure, i: &Size, j: &Size) -> Vec<Size> {
    let (one, two) = (Size::constant(1), Size::constant(2));
    match &structure.form {
        Form::Lower | Form::Sym => vec![i.mul(&i.add(&one)).div(&two).add(j)],
        Form::Upper => vec![i.mul(&structure.size.scale(2).sub(i).add(&one)).div(&two).add(j).sub(i)],
        Form::Diag => vec![i.clone()],
        Form::Band(below, _) => vec![i.clone(), j.sub(i).add(below)],
    }
}

/// The value at a place of the matrix, behind the keys of the axes in front.
fn stored_read(structure: &Structure, array: Exp, outer: Vec<Exp>, i: &Size, j: &Size, span: Span) -> Exp {
    let at = |i: &Size, j: &Size| {
        let keys = outer.iter().cloned().chain(stored_key(structure, i, j).iter().map(size_exp)).collect();
        index(array.clone(), keys, Site::new(span))
    };
    let le = |a: &Size, b: &Size| op2(Op::Le, size_exp(a), size_exp(b));
    match &structure.form {
        Form::Lower => guard(le(j, i), at(i, j)),
        Form::Upper => guard(le(i, j), at(i, j)),
        Form::Sym => if_(le(j, i), at(i, j), at(j, i)),
        Form::Diag => guard(op2(Op::Eq, size_exp(i), size_exp(j)), at(i, j)),
        Form::Band(below, above) => guard(op2(Op::And, le(&i.sub(below), j), le(j, &i.add(above))), at(i, j)),
    }
}
