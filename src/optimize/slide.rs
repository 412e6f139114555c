//! Windows that slide: what is summed in one counts from where it begins.
//!
//! ```text
//! for j. sum i in max(0, j - 6)..min(n, j + 1). w[j - i] * e[i]
//!   =  for j. sum k in max(0, j - n + 1)..min(7, j + 1). w[k] * e[j - k]
//! ```
//! So for neighbouring `j`, which run side by side, the loops inside run over nearly the same indices, read one place of `w`, and
//! read `e` at places beside each other. Adjoints of convolutions are such sums, in the order of what is read. Runs late: to a
//! reader the first form says more.

use super::simplify::arrays::linear;
use super::{Context, children};
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, substitute};
use crate::ir::*;

pub fn slide(cx: &mut Context, exp: Exp) -> Exp {
    within(cx, exp, &[])
}

fn within(cx: &mut Context, exp: Exp, loops: &[Var]) -> Exp {
    let exp = match exp {
        Exp::Sum(range, body) => match window(&range, &body, loops) {
            Some((j, rest)) => {
                cx.changed = true;
                counted(cx, *range, *body, Size::var(j).add(&rest))
            }
            None => Exp::Sum(range, body),
        },
        exp => exp,
    };
    let own = match &exp {
        Exp::For(i, _, _) => Some(*i),
        Exp::Sum(range, _) => Some(range.index),
        _ => None,
    };
    let loops: Vec<Var> = loops.iter().copied().chain(own).collect();
    children(cx, exp, &|cx, e| within(cx, e, &loops))
}

/// The index of a loop around with which a sum's range moves, and a number, where something is read at the distance of the two
/// indices: at `j - i + rest`.
fn window(range: &Range, body: &Exp, loops: &[Var]) -> Option<(Var, Size)> {
    let ends = |e: &Exp, op: Op| bounds(e, op).iter().map(exp_size).collect::<Option<Vec<Size>>>();
    let (los, his) = (ends(&range.lo, Op::Max)?, ends(&range.hi, Op::Min)?);
    let moves = |ends: &[Size], j: Var| ends.iter().any(|e| linear(e, j).is_some_and(|(slope, _)| slope == 1));
    let mut found = None;
    distances(body, range.index, &mut |key: &Size| {
        let of = |j: &Var| linear(key, *j).filter(|(slope, rest)| *slope == 1 && !loops.iter().any(|l| rest.mentions(*l)));
        if found.is_none() {
            found = loops.iter().rev().find_map(|j| of(j).filter(|_| moves(&los, *j) && moves(&his, *j)).map(|(_, rest)| (*j, rest)));
        }
    });
    found
}

/// Calls `f` with the rest of each place `rest - i` of an array where something is read.
fn distances(exp: &Exp, i: Var, f: &mut dyn FnMut(&Size)) {
    if let Exp::Index(_, keys, _) = exp {
        for key in keys {
            if let Some((-1, rest)) = exp_size(key).and_then(|size| linear(&size, i)) {
                f(&rest);
            }
        }
    }
    match exp {
        Exp::Sum(range, body) => {
            let inner = range.index;
            distances(body, i, &mut |rest| {
                if !rest.mentions(inner) {
                    f(rest)
                }
            });
        }
        // What is bound further inside is no number here.
        Exp::For(..) | Exp::Reduce(..) | Exp::History(_) | Exp::Loop(_) | Exp::Let(..) => {}
        exp => exp.for_each_child(&mut |e| distances(e, i, f)),
    }
}

/// The numbers of which an end is the largest, or the smallest.
fn bounds(end: &Exp, op: Op) -> Vec<Exp> {
    match end {
        Exp::Op(o, args, _) if *o == op => args.iter().flat_map(|a| bounds(a, op)).collect(),
        end => vec![end.clone()],
    }
}

/// `sum k. body` with `k = origin - i` in the place of `i`.
fn counted(cx: &mut Context, range: Range, body: Exp, origin: Size) -> Exp {
    let k = cx.vars.fresh("k", Type::I64);
    let from = |end: &Exp| size_exp(&origin.sub(&exp_size(end).expect("ends are sizes")).add(&Size::constant(1)));
    let ends = |end: &Exp, op: Op, other: Op| bounds(end, op).iter().map(from).reduce(|a, b| op2(other, a, b)).expect("an end");
    let (lo, hi) = (ends(&range.hi, Op::Min, Op::Max), ends(&range.lo, Op::Max, Op::Min));
    let place = size_exp(&origin.sub(&Size::var(k)));
    let body = substitute(cx.vars, body, &Substitution::from_iter([(range.index, place)]));
    sum(k, lo, hi, plain(body, k))
}

/// Places that an index says, as they are written in the fewest words.
fn plain(exp: Exp, k: Var) -> Exp {
    match exp.map_children(&mut |e| plain(e, k)) {
        Exp::Index(array, keys, site) => {
            let short = |key: Exp| match exp_size(&key) {
                Some(size) if key.mentions(k) => size_exp(&size),
                _ => key,
            };
            Exp::Index(array, keys.into_iter().map(short).collect(), site)
        }
        exp => exp,
    }
}
