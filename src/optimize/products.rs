//! Matrix products stand by themselves, so that they can be executed as such.
//!
//! ```text
//! for i, k. let e = b[k] + sum j. x[i, j] * w[k, j]; (max(0.0, e), e)
//! for k. sum i. [p(i, k)] * (for j. x[i, j] * y[i, k], y[i, k])
//! for k. (for j. sum i. x[i, j] * y[i, k], sum i. y[i, k])
//! ```
//! are
//! ```text
//! let t = for i, k. sum j. x[i, j] * w[k, j]; for i, k. let e = b[k] + t[i, k]; (max(0.0, e), e)
//! let z = for i, k. [p(i, k)] * y[i, k]; (for k, j. sum i. x[i, j] * z[i, k], for k. sum i. z[i, k])
//! (for k, j. sum i. x[i, j] * y[i, k], for k. sum i. y[i, k])
//! ```
//! and of a triangle, `for i, k. [k <= i] * (sum j. x[i, j] * y[k, j])`, all of the product is computed: that is twice as much, at
//! several times the speed. The second where all `x` are finite, so that what a false bracket guards is zero.
//! What is stored for it is no larger than an array that is read, and little beside the product. It runs last: as it would
//! save nothing where products were sums like others, other passes would put all in place again.

use super::simplify::arrays::{factors, total};
use super::simplify::lets::project;
use super::{Context, Rewrite, rewrite_everywhere};
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy, replaced};
use crate::ir::*;

/// An axis of a known size below this is too short for a product of matrices.
const SHORT: i64 = 16;

pub fn products(cx: &mut Context, exp: Exp) -> Exp {
    rewrite_everywhere(cx, exp, "products", &rule)
}

fn rule(cx: &mut Context, exp: Exp) -> Rewrite {
    let Exp::For(i, n, body) = exp else { return Err(exp) };
    match *body {
        Exp::For(k, m, body) if is_long(&n) && is_long(&m) => {
            match inner_product(cx, i, k, &body).or_else(|| triangle(cx, (i, &n), (k, &m), &body)) {
                Some(found) => Ok(apart(cx, (i, n), (k, m), *body, found)),
                None => Err(for_(i, n, for_(k, m, *body))),
            }
        }
        Exp::Sum(range, body) if is_long(&n) => match outer_product(cx, (i, &n), &range, &body) {
            Some(new) => Ok(new),
            None => Err(for_(i, n, Exp::Sum(range, body))),
        },
        Exp::Tuple(parts) if is_long(&n) && parts.iter().any(|p| is_row_of_product(i, p)) => Ok(beside(cx, (i, n), parts)),
        body @ (Exp::Let(..) | Exp::Tuple(_)) if is_long(&n) => {
            let found = row_products(cx, i, &body);
            let is_new = !found.is_empty();
            let (bindings, body) = rows_apart(cx, (i, &n), body, found);
            let rows = match products_by_results(i, &body) {
                found if found.is_empty() && !is_new => return Err(for_(i, n, body)),
                found if found.is_empty() => for_(i, n, body),
                found => results_first(cx, (i, n), body, found),
            };
            Ok(lets(bindings, rows))
        }
        body => Err(for_(i, n, body)),
    }
}

fn is_long(size: &Size) -> bool {
    size.as_constant().is_none_or(|n| n >= SHORT)
}

/// The sum of products of an element by row and column that its body computes with other things, on the strict path.
fn inner_product(cx: &Context, i: Var, k: Var, body: &Exp) -> Option<Exp> {
    let Exp::Let(_, value, _) = body else { return None };
    let mut found = None;
    find_product(cx, i, k, value, &mut found);
    // A matrix of nothing but sums is lowered as it is.
    found.filter(|_| matches!(type_of_exp(cx.vars, body), Type::Tuple(_)))
}

fn find_product(cx: &Context, i: Var, k: Var, exp: &Exp, found: &mut Option<Exp>) {
    if let Exp::Sum(range, body) = exp {
        if found.is_none() && is_product(i, k, range, body) {
            *found = Some(exp.clone());
        }
        return;
    }
    if let Exp::Op(_, args, _) = exp {
        args.iter().for_each(|a| find_product(cx, i, k, a, found));
    }
}

/// A sum of products that a row has for each of its elements, and the row's index and size.
type RowProduct = (Exp, Var, Size);

/// The sums of products that a traversal of rows computes with other things of each row, `for i. let y = for k. f(sum j. a[i, j] *
/// b[k, j]); …`, where nothing of the row is read and the traversal has rows as long as this among its results.
fn row_products(cx: &Context, i: Var, body: &Exp) -> Vec<RowProduct> {
    let mut rows = vec![];
    result_rows(&type_of_exp(cx.vars, body), &mut rows);
    let mut bound = vec![];
    let mut found = vec![];
    let mut rest = body;
    while let Exp::Let(vars, value, inner) = rest {
        row_products_of(cx, (i, &rows), value, &mut bound, &mut found);
        bound.extend(vars);
        rest = inner;
    }
    row_products_of(cx, (i, &rows), rest, &mut bound, &mut found);
    found.retain(|(product, ..)| !product.mentions_any(&bound));
    found
}

/// As many as each loop over elements computes, on the strict path.
fn row_products_of(cx: &Context, (i, rows): (Var, &[Size]), value: &Exp, bound: &mut Vec<Var>, found: &mut Vec<RowProduct>) {
    let whole = |range: &Range| exp_size(&range.hi).filter(|m| range.lo == i64(0) && is_long(m) && rows.contains(m));
    let (k, m, body) = match value {
        Exp::For(k, m, body) if is_long(m) && rows.contains(m) => (*k, m.clone(), body),
        Exp::Sum(range, body) => match whole(range) {
            Some(m) => (range.index, m, body),
            None => return,
        },
        Exp::Tuple(parts) => return parts.iter().for_each(|part| row_products_of(cx, (i, rows), part, bound, found)),
        _ => return,
    };
    let mut add = |value: &Exp| {
        let mut rest = value.clone();
        loop {
            let mut one = None;
            find_product(cx, i, k, &rest, &mut one);
            let Some(one) = one else { break };
            rest = replaced(rest, &one, &Exp::Lit(Lit::zero(type_of_exp(cx.vars, &one).scalar().expect("products are numbers"))));
            if !found.iter().any(|(other, ..)| *other == one) {
                found.push((one, k, m.clone()));
            }
        }
    };
    let mut rest = &**body;
    while let Exp::Let(vars, value, inner) = rest {
        add(value);
        bound.extend(vars);
        rest = inner;
    }
    match rest {
        Exp::Tuple(parts) => parts.iter().for_each(add),
        rest => add(rest),
    }
}

/// The sizes of the rows of numbers among the parts of a type.
fn result_rows(ty: &Type, rows: &mut Vec<Size>) {
    match ty {
        Type::Tuple(parts) => parts.iter().for_each(|part| result_rows(part, rows)),
        Type::Array(shape, _) if shape.len() == 1 => rows.push(shape[0].clone()),
        Type::Array(..) | Type::Scalar(_) => {}
    }
}

/// These products for all rows, and the body that reads them.
fn rows_apart(cx: &mut Context, (i, n): (Var, &Size), body: Exp, found: Vec<RowProduct>) -> (Vec<(Vec<Var>, Exp)>, Exp) {
    let mut body = body;
    let mut bindings = vec![];
    for (product, k, m) in found {
        let scalar = type_of_exp(cx.vars, &product);
        let all = copy(cx.vars, &for_(i, n.clone(), for_(k, m.clone(), product.clone())), &Substitution::default());
        let t = cx.vars.fresh("t", scalar.with_axis(&m).with_axis(n));
        bindings.push((vec![t], all));
        body = replaced(body, &product, &index(t, vec![Exp::Var(i), Exp::Var(k)], Site::default()));
    }
    (bindings, body)
}

/// Results of a traversal of rows, `for i. let y = …; (y, for k. sum j. y[j] * b[j, k])`, that are products of another result with a
/// matrix: at which places these two are.
fn products_by_results(i: Var, body: &Exp) -> Vec<(usize, usize)> {
    let mut bound = vec![];
    let mut rest = body;
    while let Exp::Let(vars, _, inner) = rest {
        bound.extend(vars);
        rest = inner;
    }
    let Exp::Tuple(parts) = rest else { return vec![] };
    let row_of = |part: &Exp| {
        let Exp::For(k, m, sum) = part else { return None };
        let Exp::Sum(range, product) = &**sum else { return None };
        let Exp::Op(Op::Mul, args, _) = &**product else { return None };
        let outside = |e: &Exp| !e.mentions(i) && !e.mentions_any(&bound);
        let is_matrix = |e: &Exp| {
            matches!(e, Exp::Index(array, keys, _) if matches!(**array, Exp::Var(_))
                && keys.contains(&Exp::Var(*k)) && keys.contains(&Exp::Var(range.index)) && outside(e))
        };
        let is_whole = range.lo == i64(0) && exp_size(&range.hi).is_some_and(|size| is_long(&size)) && outside(&range.hi);
        let fixed = is_long(m) && !m.mentions(i) && !bound.iter().any(|v| m.mentions(*v));
        let row = |e: &Exp| match e {
            Exp::Index(array, keys, _) if **keys == [Exp::Var(range.index)] => parts.iter().position(|other| *other == **array),
            _ => None,
        };
        let (a, b) = (&args[0], &args[1]);
        let other = if is_matrix(b) { row(a) } else { None }.or_else(|| if is_matrix(a) { row(b) } else { None })?;
        (is_whole && fixed).then_some(other)
    };
    parts.iter().enumerate().filter_map(|(k, part)| Some((k, row_of(part)?))).collect()
}

fn results_first(cx: &mut Context, (i, n): (Var, Size), body: Exp, found: Vec<(usize, usize)>) -> Exp {
    let mut rest = &body;
    while let Exp::Let(_, _, inner) = rest {
        rest = inner;
    }
    let Exp::Tuple(parts) = rest.clone() else { unreachable!("chosen for tuples") };
    let others: Vec<usize> = (0..parts.len()).filter(|k| !found.iter().any(|(product, _)| product == k)).collect();
    let (rest, _) = project(&body, &others).expect("a tuple has parts");
    let names: Vec<Var> = others
        .iter()
        .map(|k| {
            let ty = type_of_exp(cx.vars, &parts[*k]).with_axis(&n);
            cx.vars.fresh("row", ty)
        })
        .collect();
    let name_of = |k: usize| names[others.iter().position(|other| *other == k).expect("a row is no product")];
    let mut results = vec![];
    for (k, part) in parts.iter().enumerate() {
        results.push(match found.iter().find(|(product, _)| *product == k) {
            None => Exp::Var(name_of(k)),
            Some((_, row)) => {
                let whole = index(name_of(*row), vec![Exp::Var(i)], Site::default());
                let product = replaced(part.clone(), &parts[*row], &whole);
                copy(cx.vars, &for_(i, n.clone(), product), &Substitution::default())
            }
        });
    }
    let_(names, for_(i, n, rest), tuple(results))
}

/// The sum of products that a bracket leaves a triangle of, where it may be computed everywhere.
fn triangle(cx: &Context, (i, n): (Var, &Size), (k, m): (Var, &Size), body: &Exp) -> Option<Exp> {
    fn find(cx: &Context, i: Var, k: Var, exp: &Exp) -> Option<Exp> {
        match exp {
            Exp::Op(_, args, _) => args.iter().find_map(|a| find(cx, i, k, a)),
            Exp::Guard(p, e) if is_triangle(p, i, k) => {
                let mut found = None;
                find_product(cx, i, k, e, &mut found);
                found
            }
            _ => None,
        }
    }
    let found = find(cx, i, k, body)?;
    let size = |s: &Size| !s.mentions(i) && !s.mentions(k);
    let all = || for_(i, n.clone(), for_(k, m.clone(), found.clone()));
    (size(n) && size(m) && total(cx, &all())).then_some(found)
}

/// `k < i + c` or the other way around: about half of all places.
fn is_triangle(p: &Exp, i: Var, k: Var) -> bool {
    let Exp::Op(Op::Lt | Op::Le | Op::Gt | Op::Ge, args, _) = p else { return false };
    let Some((a, b)) = exp_size(&args[0]).zip(exp_size(&args[1])) else { return false };
    let (difference, apart) = (a.sub(&b), Size::var(i).sub(&Size::var(k)));
    difference.sub(&apart).as_constant().is_some() || difference.add(&apart).as_constant().is_some()
}

/// `sum j. a[i, j] * b[k, j]`, the keys in any order.
fn is_product(i: Var, k: Var, range: &Range, body: &Exp) -> bool {
    let Exp::Op(Op::Mul, args, _) = body else { return false };
    let factors = factors(args);
    let [a, b] = factors.as_slice() else { return false };
    let fixed = !range.lo.mentions(i) && !range.lo.mentions(k) && !range.hi.mentions(i) && !range.hi.mentions(k);
    let reads = |e: &Exp, own: Var, other: Var| {
        matches!(e, Exp::Index(array, keys, _) if matches!(**array, Exp::Var(_))
            && keys.contains(&Exp::Var(own)) && keys.contains(&Exp::Var(range.index)) && !e.mentions(other))
    };
    fixed && (reads(a, i, k) && reads(b, k, i) || reads(a, k, i) && reads(b, i, k))
}

/// The row `i` of a matrix product, `for k. sum j. a[i, j] * b[k, j]`.
fn is_row_of_product(i: Var, part: &Exp) -> bool {
    let Exp::For(k, m, body) = part else { return false };
    matches!(&**body, Exp::Sum(range, body) if is_long(m) && !m.mentions(i) && is_product(i, *k, range, body))
}

/// Matrix products beside what is computed in the same traversal of their rows; that stays together.
fn beside(cx: &mut Context, (i, n): (Var, Size), parts: Vec<Exp>) -> Exp {
    let mut names = vec![];
    let mut rest = vec![];
    let mut results = vec![];
    for part in parts {
        results.push(if is_row_of_product(i, &part) {
            copy(cx.vars, &for_(i, n.clone(), part), &Substitution::default())
        } else {
            let ty = type_of_exp(cx.vars, &part).with_axis(&n);
            names.push(cx.vars.fresh("t", ty));
            rest.push(part);
            Exp::Var(*names.last().expect("just named"))
        });
    }
    if rest.is_empty() {
        return tuple(results);
    }
    let together = copy(cx.vars, &for_(i, n, tuple(rest)), &Substitution::default());
    let_(names, together, tuple(results))
}

fn apart(cx: &mut Context, (i, n): (Var, Size), (k, m): (Var, Size), body: Exp, found: Exp) -> Exp {
    let scalar = type_of_exp(cx.vars, &found);
    let all = copy(cx.vars, &for_(i, n.clone(), for_(k, m.clone(), found.clone())), &Substitution::default());
    let t = cx.vars.fresh("t", scalar.with_axis(&m).with_axis(&n));
    let body = replaced(body, &found, &index(t, vec![Exp::Var(i), Exp::Var(k)], Site::default()));
    let_(vec![t], all, for_(i, n, for_(k, m, body)))
}

/// What stands around the values of a sum.
enum Around {
    Let(Vec<Var>, Exp),
    Guard(Exp),
}

fn outer_product(cx: &mut Context, (k, n): (Var, &Size), range: &Range, body: &Exp) -> Option<Exp> {
    let i = range.index;
    let rows = Some(exp_size(&range.hi)?).filter(|s| range.lo == i64(0) && !s.mentions(k) && is_long(s))?;
    let mut around = vec![];
    let mut rest = body;
    loop {
        match rest {
            Exp::Let(vars, value, inner) => {
                around.push(Around::Let(vars.clone(), (**value).clone()));
                rest = inner;
            }
            Exp::Guard(p, inner) => {
                around.push(Around::Guard((**p).clone()));
                rest = inner;
            }
            _ => break,
        }
    }
    let parts: Vec<Exp> = match rest {
        Exp::Tuple(parts) => parts.clone(),
        rest => vec![rest.clone()],
    };
    let guarded = around.iter().any(|a| matches!(a, Around::Guard(_)));
    // Nothing stands around a single product: it is lowered as it is.
    if around.is_empty() {
        return None;
    }
    let bound: Vec<Var> = around.iter().flat_map(|a| if let Around::Let(vars, _) = a { vars.clone() } else { vec![] }).collect();
    let mut found = vec![];
    for part in &parts {
        found.push(outer_part(cx, range, k, part, &bound)?);
    }
    let reads_both = |e: &Exp| reads_at(e, i, k);
    let has_matrix = found.iter().any(|f| matches!(f, Part::Matrix { .. }));
    let stored = around.iter().any(|a| match a {
        Around::Let(_, e) | Around::Guard(e) => reads_both(e),
    }) || found.iter().any(|f| reads_both(f.column()));
    if !has_matrix || !stored {
        return None;
    }
    // The values by row and column, each of them once.
    let mut columns: Vec<Exp> = vec![];
    let mut at = vec![];
    for part in &found {
        let column = part.column();
        at.push(columns.iter().position(|c| c == column).unwrap_or_else(|| {
            columns.push(column.clone());
            columns.len() - 1
        }));
    }
    let names: Vec<Var> = columns
        .iter()
        .map(|e| {
            let ty = type_of_exp(cx.vars, e).with_axis(n).with_axis(&rows);
            cx.vars.fresh("t", ty)
        })
        .collect();
    let element = around.into_iter().rev().fold(tuple(columns), |e, a| match a {
        Around::Let(vars, value) => let_(vars, value, e),
        Around::Guard(p) => guard(p, e),
    });
    let all = copy(cx.vars, &for_(i, rows, for_(k, n.clone(), element)), &Substitution::default());
    let results: Vec<Exp> = found
        .iter()
        .zip(at)
        .map(|(part, at)| {
            let read = index(names[at], vec![Exp::Var(i), Exp::Var(k)], Site::default());
            let sum = |e: Exp| Exp::Sum(Box::new(range.clone()), Box::new(e));
            let whole = match part {
                Part::Matrix { index: j, size, row, .. } => for_(k, n.clone(), for_(*j, size.clone(), sum(mul(row.clone(), read)))),
                Part::Scalar(_) => for_(k, n.clone(), sum(read)),
            };
            copy(cx.vars, &whole, &Substitution::default())
        })
        .collect();
    let product = let_(names, all, tuple(results));
    if !guarded {
        return Some(product);
    }
    // The zero of a false bracket is one whatever it multiplies; in a product of matrices only a finite number times zero is.
    let plain = copy(cx.vars, &for_(k, n.clone(), Exp::Sum(Box::new(range.clone()), Box::new(body.clone()))), &Substitution::default());
    let finite = found.iter().filter_map(|part| match part {
        Part::Matrix { index: j, size, row, .. } => {
            let scalar = type_of_exp(cx.vars, row).scalar()?;
            let below = op2(Op::Lt, op1(Op::Abs, row.clone()), float(scalar, f64::INFINITY));
            let all = |index: Var, hi: Exp, e: Exp| {
                Exp::Reduce(Reduction::All, Box::new(Range { index, lo: i64(0), hi }), Box::new(e), Site::default())
            };
            let whole = all(i, range.hi.clone(), all(*j, size_exp(size), below));
            Some(copy(cx.vars, &whole, &Substitution::default()))
        }
        Part::Scalar(_) => None,
    });
    let finite = finite.collect::<Vec<_>>().into_iter().reduce(|a, b| op2(Op::And, a, b))?;
    Some(if_(finite, product, plain))
}

/// A part of a sum for each column: a row times a number that the column has for it, or such a number.
enum Part {
    Matrix { index: Var, size: Size, row: Exp, column: Exp },
    Scalar(Exp),
}

impl Part {
    fn column(&self) -> &Exp {
        match self {
            Part::Matrix { column, .. } | Part::Scalar(column) => column,
        }
    }
}

fn outer_part(cx: &Context, range: &Range, k: Var, part: &Exp, bound: &[Var]) -> Option<Part> {
    let i = range.index;
    if matches!(type_of_exp(cx.vars, part), Type::Scalar(_)) {
        return Some(Part::Scalar(part.clone()));
    }
    let Exp::For(j, size, body) = part else { return None };
    let Exp::Op(Op::Mul, args, _) = &**body else { return None };
    if !is_long(size) || size.mentions(i) || size.mentions(k) || bound.iter().any(|v| size.mentions(*v)) {
        return None;
    }
    let (rows, columns): (Vec<Exp>, Vec<Exp>) = factors(args).into_iter().partition(|f| f.mentions(*j));
    let [row] = rows.as_slice() else { return None };
    let plain = matches!(row, Exp::Index(array, keys, _) if matches!(**array, Exp::Var(_))
        && keys.iter().all(|key| *key == Exp::Var(i) || *key == Exp::Var(*j)) && keys.contains(&Exp::Var(i)));
    if !plain || bound.iter().any(|v| row.mentions(*v)) {
        return None;
    }
    let column = columns.into_iter().reduce(mul)?;
    // It is read where brackets do not guard it any more.
    let rows_of = exp_size(&range.hi)?;
    if !total(cx, &for_(i, rows_of, for_(*j, size.clone(), row.clone()))) {
        return None;
    }
    Some(Part::Matrix { index: *j, size: size.clone(), row: row.clone(), column })
}

/// Whether an array with both axes is read, or a value of it is known.
fn reads_at(exp: &Exp, i: Var, k: Var) -> bool {
    let mut found = matches!(exp, Exp::Index(_, keys, _) if keys.contains(&Exp::Var(i)) && keys.contains(&Exp::Var(k)));
    exp.for_each_child(&mut |e| found = found || reads_at(e, i, k));
    found
}
