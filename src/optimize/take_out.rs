//! Results of a loop that are as well computed apart from it.
//!
//! A derivative saves what its way back needs, and so loops have results by the way:
//! ```text
//! let (q, z, e) = for i. let z = for a. x[i, a] - m[a]; let (q, e) = for a. (let e = exp(s[a]); (e * z[a], e)); (q, z, e)
//! ```
//! `z` is one cheap operation on what is there anyway, so where it is read a row of it is made again, for as long as the
//! loop over its rows needs it. `e` is the same in every iteration, so it is computed once, before the loop.

use super::simplify::arrays::{has_singleton, total};
use super::store_or_recompute::is_light;
use super::{Context, Rewrite, rewrite_everywhere};
use crate::differentiate::scope::costs_nothing;
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;

pub fn take_out(cx: &mut Context, exp: Exp) -> Exp {
    rewrite_everywhere(cx, exp, "take_out", &rule)
}

fn rule(cx: &mut Context, exp: Exp) -> Rewrite {
    let Exp::Let(vars, value, rest) = exp else { return Err(exp) };
    if vars.len() < 2 || !matches!(*value, Exp::For(..)) {
        return Err(Exp::Let(vars, value, rest));
    }
    for k in 0..vars.len() {
        let Some((indices, element)) = element(&value, k, cx.vars.ty(vars[k]).shape().len()) else { continue };
        let Some((i, _)) = indices.first().cloned() else { continue };
        let nest = |from: usize, element: Exp| indices[from..].iter().rev().fold(element, |e, (j, n)| for_(*j, n.clone(), e));
        let same = !element.mentions(i) && !indices.iter().any(|(_, n)| n.mentions(i));
        let light = is_light(cx, &element) && !costs_nothing(cx.vars, &element);
        let (alone, whole) = if light && reads_rows(&rest, vars[k], indices.len(), &mut vec![]) {
            let (keys, (last, size)) = (indices[..indices.len() - 1].to_vec(), indices[indices.len() - 1].clone());
            let row = for_(last, size, element);
            let rest = with_rows(cx, *rest, vars[k], &keys, &row);
            return Ok(Exp::Let(vars, value, Box::new(rest)));
        } else if light {
            (nest(0, element), true)
        } else if same && !costs_nothing(cx.vars, &element) && total(cx, &nest(1, element.clone())) && only_rows(&rest, vars[k]) {
            (nest(1, element), false)
        } else {
            continue;
        };
        if has_singleton(&alone) {
            continue;
        }
        let Some(rows) = cx.vars.ty(vars[k]).without_axes(1) else { continue };
        let ty = if whole { cx.vars.ty(vars[k]).clone() } else { rows };
        let name = cx.vars.name(vars[k]).to_string();
        let v = cx.vars.fresh(name, ty);
        let alone = copy(cx.vars, &alone, &Substitution::default());
        let rest = if whole { rename(*rest, vars[k], v) } else { read_rows(*rest, vars[k], v) };
        // The loop's own result is not used any more, and goes.
        return Ok(let_(vec![v], alone, let_(vars, *value, rest)));
    }
    Err(Exp::Let(vars, value, rest))
}

/// The `k`-th result of nested loops, as an expression in their indices alone; `rank` loops deep.
fn element(exp: &Exp, k: usize, rank: usize) -> Option<(Vec<(Var, Size)>, Exp)> {
    let mut indices = vec![];
    let mut scope: Vec<(&[Var], &Exp)> = vec![];
    let (mut here, mut part) = (exp, Some(k));
    loop {
        match (here, part) {
            (Exp::For(i, size, body), _) if indices.len() < rank => {
                indices.push((*i, size.clone()));
                here = body;
            }
            (Exp::Let(vars, value, body), _) => {
                scope.push((vars, value));
                here = body;
            }
            (Exp::Tuple(parts), Some(k)) => {
                here = parts.get(k)?;
                part = None;
            }
            (Exp::Var(v), None) => match scope.iter().rposition(|(vars, _)| vars.contains(v)) {
                Some(at) => {
                    let (vars, value) = scope[at];
                    // What it is defined by sees only what stands before.
                    scope.truncate(at);
                    part = if vars.len() > 1 { vars.iter().position(|w| w == v) } else { None };
                    here = value;
                }
                None => return (indices.len() == rank).then(|| (indices, here.clone())),
            },
            (_, None) if indices.len() == rank => {
                let local = scope.iter().flat_map(|(vars, _)| vars.iter()).any(|v| here.mentions(*v));
                return (!local).then(|| (indices, here.clone()));
            }
            _ => return None,
        }
    }
}

/// Whether every use reads one element, in loops over all its keys but perhaps the last, and some loop reads it again.
fn reads_rows(exp: &Exp, v: Var, rank: usize, loops: &mut Vec<Var>) -> bool {
    fn look(exp: &Exp, v: Var, rank: usize, loops: &mut Vec<Var>, again: &mut bool) -> bool {
        match exp {
            Exp::Var(w) => return *w != v,
            Exp::Index(array, keys, _) if **array == Exp::Var(v) => {
                let mut at = 0;
                for key in keys.iter().take(rank - 1) {
                    let Exp::Var(key) = key else { return false };
                    let Some(place) = loops.iter().position(|l| l == key) else { return false };
                    at = at.max(place + 1);
                }
                *again |= loops[at..].iter().any(|l| !keys[rank - 1].mentions(*l));
                return keys.len() == rank && rank > 1 && keys.iter().all(|k| look(k, v, rank, loops, again));
            }
            _ => {}
        }
        let mark = loops.len();
        match exp {
            Exp::For(i, _, _) => loops.push(*i),
            Exp::Sum(range, _) => loops.push(range.index),
            _ => {}
        }
        let mut all = true;
        exp.for_each_child(&mut |e| all = all && look(e, v, rank, loops, again));
        exp.for_each_size(&mut |s| all = all && !s.mentions(v));
        loops.truncate(mark);
        all
    }
    let mut again = false;
    look(exp, v, rank, loops, &mut again) && again
}

/// Reads of `v` as reads of rows that are made in the loops that they stand in; `keys` are the indices of a row.
fn with_rows(cx: &mut Context, exp: Exp, v: Var, keys: &[(Var, Size)], row: &Exp) -> Exp {
    let exp = exp.map_children(&mut |e| with_rows(cx, e, v, keys, row));
    let index_of = match &exp {
        Exp::For(i, _, _) => *i,
        Exp::Sum(range, _) => range.index,
        _ => return exp,
    };
    let mut rows: Vec<(Vec<Exp>, Var)> = vec![];
    let mut take = |cx: &mut Context, body: Exp| {
        let body = read_row(cx, body, v, index_of, keys.len(), row, &mut rows);
        let made = std::mem::take(&mut rows).into_iter().map(|(at, name)| {
            let with = keys.iter().map(|(k, _)| *k).zip(at).collect::<Substitution>();
            (vec![name], copy(cx.vars, row, &with))
        });
        lets(made.collect(), body)
    };
    match exp {
        Exp::For(i, size, body) => for_(i, size, take(cx, *body)),
        Exp::Sum(range, body) => {
            let body = take(cx, *body);
            Exp::Sum(range, Box::new(body))
        }
        exp => exp,
    }
}

/// Reads of rows whose last index is that of this loop.
fn read_row(cx: &mut Context, exp: Exp, v: Var, of: Var, keys: usize, row: &Exp, rows: &mut Vec<(Vec<Exp>, Var)>) -> Exp {
    let exp = exp.map_children(&mut |e| read_row(cx, e, v, of, keys, row, rows));
    match exp {
        Exp::Index(array, at, site) if *array == Exp::Var(v) && at[..keys].contains(&Exp::Var(of)) => {
            let known = rows.iter().find(|(k, _)| *k == at[..keys]).map(|(_, name)| *name);
            let name = known.unwrap_or_else(|| {
                let ty = cx.vars.ty(v).without_axes(keys).expect("a row");
                let text = cx.vars.name(v).to_string();
                let name = cx.vars.fresh(text, ty);
                rows.push((at[..keys].to_vec(), name));
                name
            });
            index(name, at[keys..].to_vec(), site)
        }
        exp => exp,
    }
}

/// Whether every use of an array reads a row of it, or less.
fn only_rows(exp: &Exp, v: Var) -> bool {
    match exp {
        Exp::Var(w) => *w != v,
        Exp::Index(array, keys, _) => (**array == Exp::Var(v) || only_rows(array, v)) && keys.iter().all(|k| only_rows(k, v)),
        exp => {
            let mut all = true;
            exp.for_each_child(&mut |e| all = all && only_rows(e, v));
            exp.for_each_size(&mut |s| all = all && !s.mentions(v));
            all
        }
    }
}

/// Reads rows of `v`, which are all alike, in `row`.
fn read_rows(exp: Exp, v: Var, row: Var) -> Exp {
    let exp = exp.map_children(&mut |e| read_rows(e, v, row));
    match exp {
        Exp::Index(array, keys, site) if *array == Exp::Var(v) => index(row, keys[1..].to_vec(), site),
        exp => exp,
    }
}

fn rename(exp: Exp, v: Var, new: Var) -> Exp {
    match exp {
        Exp::Var(w) if w == v => Exp::Var(new),
        exp => exp.map_children(&mut |e| rename(e, v, new)),
    }
}
