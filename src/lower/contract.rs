//! Nests of `for` and `sum` over products of reads: the order of their loops, and matrix products.
//!
//! ```text
//! for i, j. sum k. A[i, k] * B[k, j]     for i { zero d[i]; for k { for j { d[i, j] += A[i, k] * B[k, j] } } }
//! ```
//! Every read and the destination have an offset that is a polynomial in the indices; the stride along an index is the
//! polynomial's step. The innermost loop is the one along which the fewest strides are other than 0 and 1; additions into
//! one place keep their order. Where the body is a scaled product of two reads that share a summed index, and each has an
//! index of the destination to itself, the nest is a matrix product, whatever the strides: sizes that are large at run
//! time go to a kernel made for that.

use super::*;
use crate::ir::traverse::replaced;
use crate::loops::workspace::is_large;

/// The most terms of a sum that is written out.
const MOST_TERMS: usize = 8;

/// A loop of a nest.
#[derive(Clone)]
struct Binder {
    var: Var,
    lo: Size,
    hi: Size,
    /// The axis of the destination that it runs along; a `sum` has none.
    axis: Option<usize>,
}

/// A read of a variable: the view, the offset within it, and the expression.
#[derive(Clone)]
struct Read {
    view: View,
    offset: Size,
    whole: Exp,
    /// Whether it is of a row that data name, the same one in all steps: the offset is within that row, and whether there is
    /// such a row is checked where it is read.
    of_a_row: bool,
}

struct Nest<'a> {
    binders: Vec<Binder>,
    body: &'a Exp,
    reads: Vec<Read>,
    dest: &'a View,
    /// The offset that is written, within `dest`.
    written: Size,
    store: bool,
}

impl Lowering<'_> {
    /// Lowers a nest if it is one that gains by it; says whether it did.
    pub fn nest(&mut self, e: &Exp, dest: &Dest, store: bool) -> bool {
        let Dest::Array(view) = dest else { return false };
        if !self.options.contract {
            return false;
        }
        let (binders, body) = peel(e);
        let axes: Vec<Size> = binders.iter().filter(|b| b.axis.is_some()).map(|b| Size::var(b.var)).collect();
        if axes.len() != view.shape.len() || !self.is_scalar(body) {
            return false;
        }
        if axes.len() == binders.len() {
            return self.added_products(&binders, body, view, store) || store && self.mapped(&binders, body, view);
        }
        match self.nest_of(binders, body, view, store) {
            Some(nest) => self.contraction(&nest),
            None => false,
        }
    }

    /// `for i, j. f(sum k. e)`: the sums first, then `f` of each in place; sums of few terms are written out in `f`.
    fn mapped(&mut self, binders: &[Binder], body: &Exp, dest: &View) -> bool {
        let Some(inner) = inner_sum(body) else { return false };
        let bound = |v: &Var| self.env.contains_key(v) || binders.iter().any(|b| b.var == *v);
        // The sums stand in the places of the results until then, so they must be of one type.
        let same = self.type_of(inner).scalar() == Some(self.kernel.buffer(dest.buffer).scalar);
        if !same || !inner.free_vars().iter().all(bound) {
            return false;
        }
        let (sums, innermost) = peel(inner);
        if sums.is_empty() {
            return false;
        }
        let nest: Vec<Binder> = binders.iter().cloned().chain(sums).collect();
        // The matrix kernel multiplies by what is the same for all elements.
        if self.may_reorder() && is_scaled(body, inner, binders) {
            let scaled = replaced(body.clone(), inner, innermost);
            if self.nest_of(nest.clone(), &scaled, dest, true).is_some_and(|nest| self.matrix_product(&nest)) {
                return true;
            }
        }
        let Some(nest) = self.nest_of(nest, innermost, dest, true) else { return false };
        if let Some((axes, terms)) = self.innermost(&nest).and_then(|best| self.written_out(&nest, best)) {
            let whole = replaced(body.clone(), inner, &terms);
            if inner_sum(&whole).is_none() || !self.mapped(binders, &whole, dest) {
                self.ordered(&axes, &whole, &Dest::Array(dest.clone()), 0, true);
            }
            return true;
        }
        if !self.contraction(&nest) {
            return false;
        }
        self.element(binders, body, inner, &Dest::Array(dest.clone()));
        true
    }

    /// `for i, j. f(e + (sum k. a * b) + (sum l. c * d))`: the products are added to one another where the result is, then come
    /// `f` and `e` of each element. What is added to a destination is the sum itself.
    fn added_products(&mut self, binders: &[Binder], body: &Exp, dest: &View, store: bool) -> bool {
        let Some(group) = group_of_sums(body).filter(|group| self.may_reorder() && (store || *group == body)) else { return false };
        let scalar = self.kernel.buffer(dest.buffer).scalar;
        let bound = |v: &Var| self.env.contains_key(v) || binders.iter().any(|b| b.var == *v);
        // What is computed before stands for the one place where it is wanted.
        let is_once = |e: &Exp| occurrences(body, e) == 1;
        let once = is_once(group) && terms(group).into_iter().filter_map(inner_sum).all(is_once);
        if !once || self.type_of(group).scalar() != Some(scalar) || !group.free_vars().iter().all(bound) {
            return false;
        }
        let (mut products, mut others) = (vec![], vec![]);
        for term in terms(group) {
            let fresh = store && products.is_empty();
            if self.added_product(binders, term, dest, fresh) { products.push(term) } else { others.push(term) }
        }
        let Some(first) = products.first().copied() else { return false };
        let place = Dest::Array(dest.clone());
        let rest = others.into_iter().cloned().reduce(build::add);
        if !store {
            rest.iter().for_each(|rest| self.accumulate(&generated(binders, rest), &place));
            return true;
        }
        let first = inner_sum(first).expect("it is one");
        let whole = rest.into_iter().fold(first.clone(), build::add);
        let body = replaced(body.clone(), group, &whole);
        let total = find(&body, first).expect("it was put there");
        if *total != body {
            self.element(binders, &body, total, &place);
        }
        true
    }

    /// A scaled sum of products, as a product of matrices.
    fn added_product(&mut self, binders: &[Binder], term: &Exp, dest: &View, store: bool) -> bool {
        let Some(inner) = inner_sum(term).filter(|inner| is_scaled(term, inner, binders)) else { return false };
        let (sums, innermost) = peel(inner);
        let nest: Vec<Binder> = binders.iter().cloned().chain(sums).collect();
        let scaled = replaced(term.clone(), inner, innermost);
        self.nest_of(nest, &scaled, dest, store).is_some_and(|nest| self.matrix_product(&nest))
    }

    fn element(&mut self, binders: &[Binder], body: &Exp, inner: &Exp, place: &Dest) {
        match (binders, place) {
            ([first, rest @ ..], _) => self.generate(first.var, &first.hi, place, &mut |l, at| l.element(rest, body, inner, at)),
            ([], Dest::Scalar(Target::Place(buffer, offset))) => {
                let sum = Expr::Load(*buffer, Box::new(offset.clone()));
                let sum = self.named("total", sum);
                self.computed.insert(inner as *const Exp, sum);
                self.store(body, place);
                self.computed.remove(&(inner as *const Exp));
            }
            _ => panic!("lower: an element is a scalar"),
        }
    }

    /// Loops around a body of total operations on reads.
    fn nest_of<'b>(&mut self, binders: Vec<Binder>, body: &'b Exp, dest: &'b View, store: bool) -> Option<Nest<'b>> {
        let axes: Vec<Size> = binders.iter().filter(|b| b.axis.is_some()).map(|b| Size::var(b.var)).collect();
        let facts = self.facts.clone();
        binders.iter().for_each(|b| self.facts.enter(b.var, &b.lo, &b.hi));
        let mut reads = vec![];
        let plain = self.reads(body, &binders, &mut reads);
        self.facts = facts;
        let written = within(&axes, &dest.shape);
        (plain && !reads.is_empty()).then_some(Nest { binders, body, reads, dest, written, store })
    }

    fn contraction(&mut self, nest: &Nest) -> bool {
        (self.may_reorder() && self.matrix_product(nest)) || self.reorder(nest)
    }
    /// Whether terms may be added in another order, and factors multiplied.
    fn may_reorder(&self) -> bool {
        !self.options.strict && !self.options.count
    }

    /// The reads of a body that consists of total scalar operations and reads in range, or in rows that are the same for all
    /// steps; `false` if there is anything else.
    fn reads(&mut self, e: &Exp, binders: &[Binder], out: &mut Vec<Read>) -> bool {
        match e {
            Exp::Lit(_) => true,
            Exp::Var(v) => matches!(self.env.get(v), Some(Val::Scalar(_)) | None),
            Exp::Op(op, args, _) => {
                let kinds: Vec<Scalar> = args.iter().filter_map(|a| self.type_of(a).scalar()).collect();
                !op.can_fail(&kinds) && args.iter().all(|a| self.reads(a, binders, out))
            }
            Exp::Partial(_, _, args) => args.iter().all(|a| self.reads(a, binders, out)),
            Exp::Index(array, keys, _) => {
                let Exp::Var(v) = &**array else { return false };
                let Some(Val::Array(view)) = self.env.get(v).cloned() else { return false };
                if keys.len() != view.shape.len() {
                    return false;
                }
                let in_range = |(key, axis): (&Exp, &Size)| self.facts.in_range(key, axis);
                let is_data = |key: &Exp| matches!(key, Exp::Index(..)) && binders.iter().all(|b| !key.mentions(b.var));
                let rows = keys.iter().take_while(|key| is_data(key)).count();
                let (keys, shape) = (&keys[rows..], &view.shape[rows..]);
                let Some(sizes) = keys.iter().map(build::exp_size).collect::<Option<Vec<Size>>>() else { return false };
                if !keys.iter().zip(shape).all(in_range) {
                    return false;
                }
                let offset = within(&sizes, shape);
                out.push(Read { view, offset, whole: e.clone(), of_a_row: rows > 0 });
                true
            }
            Exp::Singleton(..)
            | Exp::For(..)
            | Exp::Sum(..)
            | Exp::Reduce(..)
            | Exp::History(_)
            | Exp::Loop(_)
            | Exp::Update(..)
            | Exp::Guard(..)
            | Exp::If(..)
            | Exp::Let(..)
            | Exp::Tuple(_)
            | Exp::Array(_)
            | Exp::Call(..) => false,
        }
    }

    /// The loop with the best strides, if it should move to the inside.
    fn innermost(&self, nest: &Nest) -> Option<usize> {
        let binders = &nest.binders;
        let last = binders.len() - 1;
        let badness = |k: usize| {
            let far = |offset: &Size| !matches!(step(offset, binders[k].var).as_constant(), Some(-1..=1));
            nest.reads.iter().filter(|r| far(&r.offset)).count() + 2 * far(&nest.written) as usize
        };
        let best = (0..last).rev().filter(|k| self.inside(binders, *k).is_some()).min_by_key(|k| badness(*k))?;
        (badness(best) < badness(last)).then_some(best)
    }

    /// Moves that loop there.
    fn reorder(&mut self, nest: &Nest) -> bool {
        let Some(best) = self.innermost(nest) else { return false };
        if let Some((axes, terms)) = self.written_out(nest, best) {
            self.ordered(&axes, &terms, &Dest::Array(nest.dest.clone()), 0, nest.store);
            return true;
        }
        let Some(order) = self.inside(&nest.binders, best) else { return false };
        self.ordered(&order, nest.body, &Dest::Array(nest.dest.clone()), 0, nest.store);
        true
    }

    /// Sums of few terms, written out: the loops along the destination, of which the last is the innermost, and the terms. Each
    /// place is then written once, where loops around would add to it again and again.
    fn written_out(&self, nest: &Nest, innermost: usize) -> Option<(Vec<Binder>, Exp)> {
        let (axes, sums): (Vec<Binder>, Vec<Binder>) = nest.binders.iter().cloned().partition(|b| b.axis.is_some());
        let in_order = axes.iter().enumerate().all(|(k, b)| b.axis == Some(k));
        if !self.may_reorder() || !in_order || axes.last()?.var != nest.binders[innermost].var {
            return None;
        }
        let mut terms = vec![nest.body.clone()];
        for sum in &sums {
            let (lo, hi) = (sum.lo.as_constant()?, sum.hi.as_constant()?);
            let count = usize::try_from(hi.checked_sub(lo)?).ok()?;
            if !(1..=MOST_TERMS).contains(&(count * terms.len())) {
                return None;
            }
            terms = terms.iter().flat_map(|e| (lo..hi).map(|n| at(e.clone(), sum.var, n))).collect();
        }
        Some((axes, terms.into_iter().reduce(build::add)?))
    }

    /// The loops with one of them moved to the inside, if all that are inside of it run over ranges that do not depend on
    /// it, or that begin or end with it: `j in 0..n, i in j..n` is `i in 0..n, j in 0..i + 1`. The latter not inside of other
    /// loops, which may run in lanes: there it matters more that a sum stays in registers than in which order it reads.
    fn inside(&self, binders: &[Binder], k: usize) -> Option<Vec<Binder>> {
        let mut order = binders.to_vec();
        let mut facts = self.facts.clone();
        order[..k].iter().for_each(|b| facts.enter(b.var, &b.lo, &b.hi));
        let one = Size::constant(1);
        for at in k..binders.len() - 1 {
            let (outer, inner) = (order[at].clone(), order[at + 1].clone());
            let apart = |size: &Size| Some(size.sub(&Size::var(outer.var))).filter(|rest| !rest.mentions(outer.var));
            let (around, within) = match (inner.lo.mentions(outer.var), inner.hi.mentions(outer.var)) {
                (false, false) => (inner, outer),
                _ if self.depth > 0 => return None,
                // outer + c <= inner < hi
                (true, false) => {
                    let c = apart(&inner.lo)?;
                    let hi = Size::var(inner.var).sub(&c).add(&one);
                    let ends_within = facts.prove_nonneg(&outer.hi.add(&c).sub(&inner.hi));
                    let hi = if ends_within { hi } else { hi.minimum(&outer.hi) };
                    (Binder { lo: outer.lo.add(&c), ..inner }, Binder { hi, ..outer })
                }
                // lo <= inner < outer + c
                (false, true) => {
                    let c = apart(&inner.hi)?;
                    let lo = Size::var(inner.var).sub(&c).add(&one);
                    let begins_within = facts.prove_nonneg(&inner.lo.sub(&c).add(&one).sub(&outer.lo));
                    let lo = if begins_within { lo } else { lo.maximum(&outer.lo) };
                    (Binder { hi: outer.hi.sub(&one).add(&c), ..inner }, Binder { lo, ..outer })
                }
                (true, true) => return None,
            };
            facts.enter(around.var, &around.lo, &around.hi);
            order[at] = around;
            order[at + 1] = within;
        }
        Some(order)
    }

    /// The loops in this order. Loops along the destination's axes, as long as they come in the axes' order, lead to
    /// `place`, behind `depth` axes; before any other loop the place is zeroed, and then added to.
    fn ordered(&mut self, order: &[Binder], body: &Exp, place: &Dest, depth: usize, store: bool) {
        match order {
            _ if store && order.iter().all(|b| b.axis.is_none()) => self.store(&summed(order, body), place),
            [first, rest @ ..] if first.axis == Some(depth) => {
                self.generate(first.var, &first.hi, place, &mut |l, inner| l.ordered(rest, body, inner, depth + 1, store))
            }
            _ => {
                if store {
                    self.zero(place);
                }
                let axes = order.iter().filter(|b| b.axis.is_some()).count();
                self.added(order, body, place, depth, &mut vec![Expr::int(0); axes]);
            }
        }
    }

    /// The loops in this order, adding to the place that the indices of its axes name.
    fn added(&mut self, order: &[Binder], body: &Exp, place: &Dest, depth: usize, keys: &mut Vec<Expr>) {
        let Some(first) = order.iter().position(|b| b.axis.is_some()) else {
            // Only sums are left: they add up in a local.
            let at = if keys.is_empty() { place.clone() } else { self.dest_at(place, keys) };
            return self.accumulate(&summed(order, body), &at);
        };
        let binder = &order[0];
        let kind = if first == 0 { Order::Independent } else { Order::Sequential };
        self.loop_over(&binder.range(), kind, |l, index| {
            if let Some(axis) = binder.axis {
                keys[axis - depth] = Expr::Local(index);
            }
            l.added(&order[1..], body, place, depth, keys);
        });
    }

    /// Recognises `dest[.., i, j] (+)= s * sum k. a(i, k) * b(k, j)` and emits it with its plain loops beside it.
    fn matrix_product(&mut self, nest: &Nest) -> bool {
        let mut operands = vec![];
        let mut scales = vec![];
        let scalar = self.kernel.buffer(nest.dest.buffer).scalar;
        if !scalar.is_float() || !factors(nest.body, scalar, &nest.binders, &mut operands, &mut scales) {
            return false;
        }
        let [a, b] = operands.as_slice() else { return false };
        let read = |e: &Exp| nest.reads.iter().find(|r| r.whole == *e);
        let (Some(a), Some(b)) = (read(a), read(b)) else { return false };
        if [a, b].iter().any(|r| r.of_a_row || self.kernel.buffer(r.view.buffer).scalar != scalar) {
            return false;
        }
        // Strides must be the same everywhere in the nest.
        let varies = |size: &Size| nest.binders.iter().any(|b| size.mentions(b.var));
        let zero = Size::default();
        let (mut rows, mut columns, mut depths) = (vec![], vec![], vec![]);
        for (k, binder) in nest.binders.iter().enumerate() {
            let strides = [&a.offset, &b.offset, &nest.written].map(|offset| step(offset, binder.var));
            if strides.iter().any(varies) {
                return false;
            }
            let group = match (binder.axis.is_some(), strides[0] != zero, strides[1] != zero) {
                (true, true, false) => &mut rows,
                (true, false, true) => &mut columns,
                (false, true, true) => &mut depths,
                _ => continue,
            };
            // Axes that go through memory as one would are one; of others the last is the matrix's.
            let is_one = |outer: usize| {
                let (around, extent) = (&nest.binders[outer], binder.hi.sub(&binder.lo));
                let continued = |offset| step(offset, around.var) == step(offset, binder.var).mul(&extent);
                binder.lo == zero && around.lo == zero && [&a.offset, &b.offset, &nest.written].into_iter().all(continued)
            };
            match group.last() {
                Some(outer) if is_one(*outer) => group.push(k),
                _ => *group = vec![k],
            }
        }
        if [&rows, &columns, &depths].iter().any(|group| group.is_empty()) {
            return false;
        }
        // What is left are loops around the product. Where those along axes stand in front, each has a part of the result to itself.
        let chosen = [&rows[..], &columns, &depths].concat();
        let outer: Vec<&Binder> = nest.binders.iter().enumerate().filter(|(k, _)| !chosen.contains(k)).map(|(_, b)| b).collect();
        let leading = outer.iter().filter_map(|b| b.axis).enumerate().all(|(k, axis)| k == axis);
        let fixed = |size: &Size| chosen.iter().all(|k| !size.mentions(nest.binders[*k].var));
        if !nest.binders.iter().all(|b| fixed(&b.lo) && fixed(&b.hi)) {
            return false;
        }
        let accumulate = !nest.store || !leading || outer.iter().any(|b| b.axis.is_none());
        let whole = Dest::Array(nest.dest.clone());
        if nest.store && accumulate {
            self.zero(&whole);
        }
        self.touched.push((nest.dest.clone(), None));
        let plan = Product { a, b, rows, columns, depths, scales: &scales, accumulate };
        let axes = nest.binders.iter().filter(|b| b.axis.is_some()).count();
        let place = if leading { Place::Part(whole) } else { Place::Among(whole, vec![Expr::int(0); axes]) };
        self.around(&outer, nest, &plan, &place);
        true
    }

    /// The loops around a matrix product, then the product.
    fn around(&mut self, outer: &[&Binder], nest: &Nest, plan: &Product, place: &Place) {
        if let [first, rest @ ..] = outer {
            let kind = if first.axis.is_some() { Order::Independent } else { Order::Sequential };
            return self.loop_over(&first.range(), kind, |l, index| {
                let inner = match (first.axis, place) {
                    (None, place) => place.clone(),
                    (Some(_), Place::Part(part)) => Place::Part(l.dest_at(part, &[Expr::Local(index)])),
                    (Some(axis), Place::Among(whole, keys)) => {
                        let mut keys = keys.clone();
                        keys[axis] = Expr::Local(index);
                        Place::Among(whole.clone(), keys)
                    }
                };
                l.around(rest, nest, plan, &inner);
            });
        }
        let groups = [&plan.rows, &plan.columns, &plan.depths].map(|group| group.iter().map(|k| &nest.binders[*k]).collect::<Vec<_>>());
        let [row, column, depth] = [0, 1, 2].map(|k| *groups[k].last().expect("it has a loop"));
        let matrix = |l: &mut Self, base: &View, offset: &Size, rows: &Binder, columns: &Binder| {
            let start = offset.substitute(&|v| groups.iter().flatten().find(|b| b.var == v).map(|b| b.lo.clone()));
            let start = l.size(&start);
            Matrix {
                buffer: base.buffer,
                offset: base.offset.clone().plus(start),
                row_stride: l.size(&step(offset, rows.var)),
                column_stride: l.size(&step(offset, columns.var)),
            }
        };
        let dest = matrix(self, nest.dest, &nest.written, row, column);
        let left = matrix(self, &plan.a.view, &plan.a.offset, row, depth);
        let right = matrix(self, &plan.b.view, &plan.b.offset, depth, column);
        let [rows, columns, depth_count] = groups.map(|group| {
            let all = group.iter().map(|b| b.hi.sub(&b.lo)).reduce(|a, b| a.mul(&b));
            self.extent(&all.expect("it has a loop"))
        });
        let one = Expr::Lit(Lit::one(self.kernel.buffer(nest.dest.buffer).scalar));
        let mut scale = one.clone();
        for factor in plan.scales {
            let value = self.value(factor);
            scale = if scale == one { value } else { Expr::Op(Op::Mul, vec![scale, value]) };
        }
        // Small products of constant sizes are only that.
        if let [Some(m), Some(n), Some(k)] = [&rows, &columns, &depth_count].map(Expr::as_int) {
            if !is_large(m, n, k) {
                return self.small_product(nest, plan, place);
            }
        }
        let (otherwise, ()) = self.nested(|l| l.small_product(nest, plan, place));
        let accumulate = plan.accumulate;
        self.emit(Stmt::Gemm(Box::new(Gemm { rows, columns, depth: depth_count, dest, left, right, scale, accumulate, otherwise })));
    }

    /// The loops of the product itself, in the better order.
    fn small_product(&mut self, nest: &Nest, plan: &Product, place: &Place) {
        let mut inner: Vec<usize> = [&plan.rows[..], &plan.columns, &plan.depths].concat();
        inner.sort();
        let place = match place {
            Place::Part(part) => part,
            Place::Among(whole, keys) => {
                let binders: Vec<Binder> = inner.into_iter().map(|k| nest.binders[k].clone()).collect();
                let part = Nest { binders, reads: nest.reads.clone(), written: nest.written.clone(), store: false, ..*nest };
                let order = self.innermost(&part).and_then(|best| self.inside(&part.binders, best)).unwrap_or(part.binders);
                return self.added(&order, nest.body, whole, 0, &mut keys.clone());
            }
        };
        let Dest::Array(view) = place else { panic!("lower: a matrix product has a matrix as its destination") };
        let gone = nest.dest.shape.len() - plan.rows.len() - plan.columns.len();
        let binders: Vec<Binder> =
            inner.into_iter().map(|k| Binder { axis: nest.binders[k].axis.map(|a| a - gone), ..nest.binders[k].clone() }).collect();
        let axes: Vec<Size> = binders.iter().filter(|b| b.axis.is_some()).map(|b| Size::var(b.var)).collect();
        let written = within(&axes, &view.shape);
        let reads = nest.reads.clone();
        let part = Nest { binders: binders.clone(), body: nest.body, reads, dest: view, written, store: !plan.accumulate };
        if !self.reorder(&part) {
            self.ordered(&binders, nest.body, place, 0, part.store);
        }
    }
}

/// Where a matrix product goes within the result of its nest.
#[derive(Clone)]
enum Place {
    /// To a part that is its own.
    Part(Dest),
    /// Among others, which the keys of the loops around tell from it.
    Among(Dest, Vec<Expr>),
}

/// Which loops and reads make the matrix product of a nest.
struct Product<'a> {
    a: &'a Read,
    b: &'a Read,
    /// Several loops go through memory as one would.
    rows: Vec<usize>,
    columns: Vec<usize>,
    depths: Vec<usize>,
    /// Factors that are the same throughout the nest.
    scales: &'a [Exp],
    accumulate: bool,
}

impl Binder {
    fn range(&self) -> Range {
        Range { index: self.var, lo: build::size_exp(&self.lo), hi: build::size_exp(&self.hi) }
    }
}

/// A body of a nest at a step of one of its loops.
fn at(body: Exp, index: Var, step: i64) -> Exp {
    match body {
        Exp::Var(v) if v == index => Exp::Lit(Lit::I64(step)),
        other => other.map_children(&mut |e| at(e, index, step)),
    }
}

fn summed(binders: &[Binder], body: &Exp) -> Exp {
    binders.iter().rev().fold(body.clone(), |e, b| Exp::Sum(Box::new(b.range()), Box::new(e)))
}

/// A sum that is sure to be evaluated, among what a scalar expression is made of.
fn inner_sum(e: &Exp) -> Option<&Exp> {
    match e {
        Exp::Sum(..) => Some(e),
        Exp::Op(_, args, _) | Exp::Partial(_, _, args) => args.iter().find_map(inner_sum),
        Exp::Let(_, value, body) => inner_sum(value).or_else(|| inner_sum(body)),
        Exp::Var(_)
        | Exp::Lit(_)
        | Exp::Index(..)
        | Exp::Singleton(..)
        | Exp::For(..)
        | Exp::Reduce(..)
        | Exp::History(_)
        | Exp::Loop(_)
        | Exp::Update(..)
        | Exp::Guard(..)
        | Exp::If(..)
        | Exp::Tuple(_)
        | Exp::Array(_)
        | Exp::Call(..) => None,
    }
}

/// Several sums that are added to one another and sure to be evaluated, with what is added to them besides.
fn group_of_sums(e: &Exp) -> Option<&Exp> {
    match e {
        Exp::Op(Op::Add, ..) if terms(e).iter().filter(|term| inner_sum(term).is_some()).count() > 1 => Some(e),
        Exp::Op(_, args, _) | Exp::Partial(_, _, args) => args.iter().find_map(group_of_sums),
        Exp::Let(_, value, body) => group_of_sums(value).or_else(|| group_of_sums(body)),
        _ => None,
    }
}

/// What an expression adds up.
fn terms(e: &Exp) -> Vec<&Exp> {
    match e {
        Exp::Op(Op::Add, args, _) => args.iter().flat_map(terms).collect(),
        e => vec![e],
    }
}

fn occurrences(e: &Exp, part: &Exp) -> usize {
    let mut count = (e == part) as usize;
    e.for_each_child(&mut |child| count += occurrences(child, part));
    count
}

/// Where an expression stands in another.
fn find<'e>(e: &'e Exp, part: &Exp) -> Option<&'e Exp> {
    if e == part {
        return Some(e);
    }
    match e {
        Exp::Op(_, args, _) | Exp::Partial(_, _, args) => args.iter().find_map(|a| find(a, part)),
        Exp::Let(_, value, body) => find(value, part).or_else(|| find(body, part)),
        _ => None,
    }
}

fn generated(binders: &[Binder], body: &Exp) -> Exp {
    binders.iter().rev().fold(body.clone(), |e, b| build::for_(b.var, b.hi.clone(), e))
}

/// Whether an expression is a sum times what is the same in all steps of loops.
fn is_scaled(e: &Exp, sum: &Exp, loops: &[Binder]) -> bool {
    let is_same = |e: &Exp| loops.iter().all(|b| !e.mentions(b.var));
    match e {
        Exp::Sum(..) => e == sum,
        Exp::Op(Op::Mul, args, _) => match args.as_slice() {
            [a, b] => (is_same(a) && is_scaled(b, sum, loops)) || (is_same(b) && is_scaled(a, sum, loops)),
            _ => false,
        },
        Exp::Op(Op::Neg, args, _) => is_scaled(&args[0], sum, loops),
        _ => false,
    }
}

/// The loops around a body, from the outside in.
fn peel(e: &Exp) -> (Vec<Binder>, &Exp) {
    let mut binders = vec![];
    let mut axes = 0;
    let mut body = e;
    loop {
        match body {
            Exp::For(var, size, inner) => {
                binders.push(Binder { var: *var, lo: Size::constant(0), hi: size.clone(), axis: Some(axes) });
                axes += 1;
                body = inner;
            }
            Exp::Sum(range, inner) => {
                let (Some(lo), Some(hi)) = (build::exp_size(&range.lo), build::exp_size(&range.hi)) else { return (binders, body) };
                binders.push(Binder { var: range.index, lo, hi, axis: None });
                body = inner;
            }
            _ => return (binders, body),
        }
    }
}

/// The offset of the place with these indices.
fn within(keys: &[Size], shape: &[Size]) -> Size {
    keys.iter().zip(shape).fold(Size::default(), |offset, (key, axis)| offset.mul(axis).add(key))
}

/// By how much a size grows when a variable grows by one.
fn step(size: &Size, var: Var) -> Size {
    let next = Size::var(var).add(&Size::constant(1));
    size.substitute(&|v| (v == var).then(|| next.clone())).sub(size)
}

/// The factors of a product of floats: those that vary in the nest, which must be reads, and those that do not.
fn factors(e: &Exp, scalar: Scalar, binders: &[Binder], operands: &mut Vec<Exp>, scales: &mut Vec<Exp>) -> bool {
    if binders.iter().all(|b| !e.mentions(b.var)) {
        scales.push(e.clone());
        return true;
    }
    match e {
        Exp::Op(Op::Mul, args, _) => args.iter().all(|a| factors(a, scalar, binders, operands, scales)),
        Exp::Op(Op::Neg, args, _) => {
            scales.push(build::float(scalar, -1.0));
            factors(&args[0], scalar, binders, operands, scales)
        }
        Exp::Index(..) => {
            operands.push(e.clone());
            true
        }
        _ => false,
    }
}
