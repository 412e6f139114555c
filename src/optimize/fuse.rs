//! Fusion of a generated array into the loop that reads it.
//!
//! `let v = for i. e(i); … for j. …v[j]…`   is   `… for j. let v = e(j); …v…`
//! where every use of `v` is a read at the index of one loop, which runs as often as the array was generated. So no
//! work is repeated and the array is never stored. A tuple of arrays is fused as one.
//!
//! `let v = for i, j. e(i, j); … for a, b. …v[b, a]…` likewise, where there is one use, it reads single elements, and
//! each loop between is one of its keys.
//!
//! `for j. … let v = for i. e(i, j); …v[j]…`   is   `for j. … let v = e(j, j); …v…` where nothing else of `v` is read.
//!
//! A matrix of sums of products stays: stored, it is a matrix product. Not so where its elements are only summed: then the sum goes
//! first (`sum_first`), nor where the sums are of different lengths.

use super::Context;
use super::simplify::arrays::factors;
use super::tabulate::whole;
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;
use rustc_hash::FxHashMap;

pub fn fuse(cx: &mut Context, exp: Exp) -> Exp {
    let mut places = Places::default();
    find_places(&exp, &mut places);
    within(cx, exp, &mut vec![], &places)
}

/// The index that all reads of an array have as their first key; `None` if they have others, too, or it is used as a whole.
type Places = FxHashMap<Var, Option<Var>>;

fn find_places(exp: &Exp, places: &mut Places) {
    exp.for_each_size(&mut |size| {
        size.for_each_variable(&mut |v| {
            places.insert(v, None);
        })
    });
    match exp {
        Exp::Var(v) => {
            places.insert(*v, None);
        }
        Exp::Index(array, keys, _) => {
            match &**array {
                Exp::Var(v) => {
                    let place = if let Some(Exp::Var(i)) = keys.first() { Some(*i) } else { None };
                    let known = places.entry(*v).or_insert(place);
                    *known = known.filter(|known| Some(*known) == place);
                }
                array => find_places(array, places),
            }
            keys.iter().for_each(|k| find_places(k, places));
        }
        exp => exp.for_each_child(&mut |e| find_places(e, places)),
    }
}

/// Whether arrays are read at one index alone: without that, there is nothing to look for in all that follows.
fn are_read_at_one(vars: &[Var], places: &Places) -> bool {
    let mut used = vars.iter().filter_map(|v| places.get(v));
    used.next().is_some_and(|first| first.is_some() && used.all(|place| place == first))
}

/// An expression in loops, of which all steps come to it or some.
fn within(cx: &mut Context, exp: Exp, loops: &mut Vec<(Var, Size)>, places: &Places) -> Exp {
    let exp = match exp {
        Exp::Let(vars, value, body) => match *value {
            Exp::For(i, size, e) if are_read_at_one(&vars, places) => {
                match fuse_into(cx, &vars, i, &size, &e, *body).or_else(|body| own_element(cx, &vars, i, &size, &e, body, loops)) {
                    Ok(body) => {
                        cx.changed = true;
                        return within(cx, body, loops, places);
                    }
                    Err(body) => let_(vars, for_(i, size, *e), body),
                }
            }
            value => Exp::Let(vars, Box::new(value), body),
        },
        exp => exp,
    };
    let own = match &exp {
        Exp::For(j, size, _) => Some((*j, size.clone())),
        Exp::Sum(range, _) => whole(range).map(|size| (range.index, size)),
        _ => None,
    };
    let mark = loops.len();
    loops.extend(own);
    let exp = exp.map_children(&mut |e| within(cx, e, loops, places));
    loops.truncate(mark);
    exp
}

/// An array that steps of a loop around make anew and read at their own place alone: that element is made instead.
fn own_element(cx: &mut Context, vars: &[Var], i: Var, size: &Size, e: &Exp, body: Exp, loops: &[(Var, Size)]) -> Result<Exp, Exp> {
    let total = uses(&body, vars);
    let own = |(j, n): &&(Var, Size)| n.axis() == size.axis() && total > 0 && reads_at(&body, vars, *j) == total;
    match loops.iter().find(own) {
        Some((j, _)) => Ok(put(cx, vars, i, e, *j, body, &mut false)),
        None => Err(body),
    }
}

/// The one loop in `body` that all uses stand in, reading at its index: found by the number of uses outside it.
fn fuse_into(cx: &mut Context, vars: &[Var], i: Var, size: &Size, e: &Exp, body: Exp) -> Result<Exp, Exp> {
    let total = uses(&body, vars);
    if is_stored(e) && !matches!(vars, [v] if total == 1 && is_summed(&body, *v)) {
        return Err(body);
    }
    // In derivatives of what stays matrix products are, too.
    if cx.differentiating && has_product(e, &mut vec![]) {
        return Err(body);
    }
    if let ([v], 1) = (vars, total) {
        let rank = 1 + nest_depth(e);
        if read_elementwise(&body, *v, rank, &mut vec![]) && super::simplify::lets::reads_known(cx, &body, *v) {
            return Ok(super::simplify::lets::inline_copies(cx.vars, body, *v, &for_(i, size.clone(), e.clone())));
        }
    }
    let mut done = false;
    let body = enter(cx, vars, i, size, e, body, total, &mut done);
    if done { Ok(body) } else { Err(body) }
}

/// Whether the one use of an array is a sum of its elements along an axis.
fn is_summed(exp: &Exp, v: Var) -> bool {
    if let Exp::Sum(range, body) = exp {
        if matches!(&**body, Exp::Index(array, keys, _) if **array == Exp::Var(v) && keys.contains(&Exp::Var(range.index))) {
            return true;
        }
    }
    let mut found = false;
    exp.for_each_child(&mut |e| found = found || is_summed(e, v));
    found
}

/// Whether an array of such elements is stored in any case.
pub fn is_stored(e: &Exp) -> bool {
    nest_depth(e) > 0 && is_contraction(e, &mut vec![])
}

/// A matrix of sums of products: storing it is little beside computing it, and stored it is a matrix product. Not so sums of
/// different lengths, as products with triangles are.
fn is_contraction(exp: &Exp, axes: &mut Vec<Var>) -> bool {
    match exp {
        Exp::For(i, _, body) => {
            axes.push(*i);
            let found = is_contraction(body, axes);
            axes.pop();
            found
        }
        Exp::Op(Op::Mul, args, _) => args.iter().any(|a| is_contraction(a, axes)),
        Exp::Op(Op::Neg | Op::Div, args, _) => is_contraction(&args[0], axes),
        Exp::Sum(range, body) => match &**body {
            Exp::Op(Op::Mul, args, _) => {
                let same = !axes.iter().any(|i| range.lo.mentions(*i) || range.hi.mentions(*i));
                same && factors(args).iter().filter(|f| matches!(f, Exp::Index(..))).count() > 1
            }
            _ => false,
        },
        _ => false,
    }
}

/// Whether products are summed in it, all over the same range.
fn has_product(exp: &Exp, loops: &mut Vec<Var>) -> bool {
    if let Exp::Sum(range, body) = exp {
        let same = !loops.iter().any(|i| range.lo.mentions(*i) || range.hi.mentions(*i));
        let varied = |args: &[Exp]| factors(args).iter().filter(|f| f.mentions(range.index)).count();
        if same && matches!(&**body, Exp::Op(Op::Mul, args, _) if varied(args) > 1) {
            return true;
        }
    }
    let mark = loops.len();
    match exp {
        Exp::For(i, _, _) => loops.push(*i),
        Exp::Sum(range, _) | Exp::Reduce(_, range, _, _) => loops.push(range.index),
        _ => {}
    }
    let mut found = false;
    exp.for_each_child(&mut |e| found = found || has_product(e, loops));
    loops.truncate(mark);
    found
}

/// How many loops stand directly in one another.
fn nest_depth(exp: &Exp) -> usize {
    match exp {
        Exp::For(_, _, body) => 1 + nest_depth(body),
        _ => 0,
    }
}

/// Whether the one use of `v` reads an element at distinct indices, among them every loop that the use stands in.
pub fn read_elementwise(exp: &Exp, v: Var, rank: usize, loops: &mut Vec<Var>) -> bool {
    if let Exp::Index(array, keys, _) = exp {
        if **array == Exp::Var(v) {
            let distinct = (0..keys.len()).all(|k| matches!(keys[k], Exp::Var(_)) && !keys[..k].contains(&keys[k]));
            return keys.len() == rank && distinct && loops.iter().all(|l| keys.contains(&Exp::Var(*l)));
        }
    }
    let mark = loops.len();
    match exp {
        Exp::For(i, _, _) => loops.push(*i),
        Exp::Sum(range, _) | Exp::Reduce(_, range, _, _) => loops.push(range.index),
        Exp::History(h) => loops.push(h.index),
        Exp::Loop(_) => return false,
        _ => {}
    }
    let mut found = false;
    exp.for_each_child(&mut |e| found = found || read_elementwise(e, v, rank, loops));
    loops.truncate(mark);
    found
}

pub fn uses(exp: &Exp, vars: &[Var]) -> usize {
    let mut counts = Default::default();
    exp.count_uses(&mut counts);
    vars.iter().map(|v| counts.get(v).copied().unwrap_or(0)).sum()
}

/// Walks to the loop without entering any other loop.
#[allow(clippy::too_many_arguments)]
fn enter(cx: &mut Context, vars: &[Var], i: Var, size: &Size, e: &Exp, exp: Exp, total: usize, done: &mut bool) -> Exp {
    if *done || uses(&exp, vars) < total {
        return exp;
    }
    let is_whole = |index: Var, lo: &Exp, hi: &Exp, body: &Exp| {
        let whole = *lo == i64(0) && exp_size(hi).is_some_and(|h| h.axis() == size.axis());
        whole && reads_at(body, vars, index) == total
    };
    match exp {
        Exp::For(j, extent, body) => {
            let body = if is_whole(j, &i64(0), &size_exp(&extent), &body) { put(cx, vars, i, e, j, *body, done) } else { *body };
            for_(j, extent, body)
        }
        Exp::Sum(range, body) => {
            let body =
                if is_whole(range.index, &range.lo, &range.hi, &body) { put(cx, vars, i, e, range.index, *body, done) } else { *body };
            Exp::Sum(range, Box::new(body))
        }
        Exp::Reduce(kind, range, body, site) => {
            let body =
                if is_whole(range.index, &range.lo, &range.hi, &body) { put(cx, vars, i, e, range.index, *body, done) } else { *body };
            Exp::Reduce(kind, range, Box::new(body), site)
        }
        Exp::History(mut h) => {
            if uses(&h.init, vars) == 0 && is_whole(h.index, &i64(0), &size_exp(&h.size), &h.body) {
                h.body = put(cx, vars, i, e, h.index, h.body, done);
            }
            Exp::History(h)
        }
        // Its body runs an unknown number of times.
        Exp::Loop(l) => Exp::Loop(l),
        exp => exp.map_children(&mut |c| enter(cx, vars, i, size, e, c, total, done)),
    }
}

/// How many uses are reads whose first key is `index`.
pub fn reads_at(exp: &Exp, vars: &[Var], index: Var) -> usize {
    let mut count = 0;
    if let Exp::Index(array, keys, _) = exp {
        if matches!(**array, Exp::Var(v) if vars.contains(&v)) && keys[0] == Exp::Var(index) {
            count += 1;
        }
    }
    exp.for_each_child(&mut |c| count += reads_at(c, vars, index));
    count
}

/// Computes the elements at the head of the loop's body and reads them there.
fn put(cx: &mut Context, vars: &[Var], i: Var, e: &Exp, j: Var, body: Exp, done: &mut bool) -> Exp {
    *done = true;
    let elements: Vec<Var> = vars
        .iter()
        .map(|v| {
            let ty = cx.vars.ty(*v).without_axes(1).expect("a generated array");
            let name = cx.vars.name(*v).to_string();
            cx.vars.fresh(name, ty)
        })
        .collect();
    let element = copy(cx.vars, e, &Substitution::from_iter([(i, Exp::Var(j))]));
    fn read(exp: Exp, vars: &[Var], elements: &[Var]) -> Exp {
        let exp = exp.map_children(&mut |c| read(c, vars, elements));
        match exp {
            Exp::Index(array, keys, site) => match vars.iter().position(|v| *array == Exp::Var(*v)) {
                Some(k) => index(elements[k], keys[1..].to_vec(), site),
                None => Exp::Index(array, keys, site),
            },
            exp => exp,
        }
    }
    let body = read(body, vars, &elements);
    let_(elements, element, body)
}
