//! Arrays that cost nothing to read, so that nothing is stored for them.

use super::super::Context;
use super::super::normalize::solve;
use super::arrays::{put_in, total, total_with};
use super::guards::conjuncts;
use crate::differentiate::scope::costs_nothing;
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;

/// `for i, j. [j == k(i)] * e(i)`, an array with one place in each row where something is, as a view of what is there:
/// the smaller array, its value `for i. [0 <= k(i) < n] * e(i)` and `for i, j. [j == k(i)] * small[i]`. Both cost what the
/// whole did, and whoever reads the view learns where it is zero.
pub fn one_in_a_row(cx: &mut Context, value: &Exp, name: String) -> Option<(Var, Exp, Exp)> {
    let mut loops = vec![];
    let mut rest = value;
    let mut facts = cx.facts.clone();
    while let Exp::For(i, size, body) = rest {
        loops.push((*i, size.clone()));
        facts.enter_for(*i, size);
        rest = body;
    }
    let Exp::Guard(p, e) = rest else { return None };
    let Type::Scalar(scalar) = type_of_exp(cx.vars, e) else { return None };
    let conditions = conjuncts(p);
    if !total_with(cx.vars, &facts, p) || !costs_nothing(cx.vars, p) {
        return None;
    }
    let (at, key) = loops.iter().enumerate().filter(|(_, (j, _))| !e.mentions(*j)).find_map(|(at, (j, _))| {
        let key = conditions.iter().find_map(|c| solve(cx, c, *j))?;
        let fits = loops.iter().all(|(_, size)| !size.mentions(*j)) && total_with(cx.vars, &facts, &key);
        fits.then_some((at, key))
    })?;
    let (j, extent) = loops[at].clone();
    let others: Vec<(Var, Size)> = loops.iter().filter(|(i, _)| *i != j).cloned().collect();
    let ty = match others.is_empty() {
        true => Type::Scalar(scalar),
        false => Type::Array(others.iter().map(|(_, size)| size.clone()).collect(), scalar),
    };
    let small = cx.vars.fresh(name, ty);
    let within = op2(Op::And, op2(Op::Le, i64(0), key.clone()), op2(Op::Lt, key.clone(), size_exp(&extent)));
    let there = put_in(cx, j, key, (**p).clone());
    let small_value = others.iter().rev().fold(guard(op2(Op::And, within, there), (**e).clone()), |e, (i, size)| for_(*i, size.clone(), e));
    let small_value = copy(cx.vars, &small_value, &Substitution::default());
    let read = index(small, others.iter().map(|(i, _)| Exp::Var(*i)).collect(), Site::default());
    let view = loops.into_iter().rev().fold(guard((**p).clone(), read), |e, (i, size)| for_(i, size, e));
    Some((small, small_value, view))
}

/// An array whose elements cost nothing, or are zero but for one place that does not have to be checked.
pub fn is_view(cx: &Context, exp: &Exp) -> bool {
    match exp {
        Exp::Guard(p, e) => costs_nothing(cx.vars, p) && total(cx, p) && is_view(cx, e),
        Exp::For(_, _, body) => is_view(cx, body),
        Exp::Singleton(places, value, site) => {
            site.passed && places.iter().all(|(k, _)| costs_nothing(cx.vars, k)) && costs_nothing(cx.vars, value)
        }
        exp => costs_nothing(cx.vars, exp),
    }
}
