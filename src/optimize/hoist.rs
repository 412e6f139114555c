//! Loop-invariant code motion: what does not depend on a loop is computed once before it.
//!
//! Only what costs operations moves, and only what cannot fail: a loop that never runs must not gain an error.
//! Values under a guard or in a branch stay, unless the whole guard is invariant.

use super::Context;
use super::simplify::arrays::total;
use crate::differentiate::scope::costs_nothing;
use crate::ir::build::*;
use crate::ir::traverse::map_children_with_facts;
use crate::ir::*;
use rustc_hash::FxHashSet;

pub fn hoist(cx: &mut Context, exp: Exp) -> Exp {
    let mut facts = std::mem::take(&mut cx.facts);
    let exp = map_children_with_facts(exp, &mut facts, &mut |e, facts| {
        std::mem::swap(&mut cx.facts, facts);
        let e = hoist(cx, e);
        std::mem::swap(&mut cx.facts, facts);
        e
    });
    cx.facts = facts;
    let mut moved = vec![];
    let mut bound = FxHashSet::default();
    let exp = match exp {
        Exp::For(i, size, body) => {
            bound.insert(i);
            let body = take_invariant(cx, *body, &mut bound, &mut moved);
            for_(i, size, body)
        }
        Exp::Sum(range, body) => {
            bound.insert(range.index);
            let body = take_invariant(cx, *body, &mut bound, &mut moved);
            Exp::Sum(range, Box::new(body))
        }
        Exp::Reduce(kind, range, body, site) => {
            bound.insert(range.index);
            let body = take_invariant(cx, *body, &mut bound, &mut moved);
            Exp::Reduce(kind, range, Box::new(body), site)
        }
        Exp::History(mut h) => {
            bound.insert(h.index);
            bound.extend(h.state.iter().copied());
            h.body = take_invariant(cx, h.body, &mut bound, &mut moved);
            Exp::History(h)
        }
        Exp::Loop(mut l) => {
            if let Trip::For(range) = &l.trip {
                bound.insert(range.index);
            }
            bound.extend(l.state.iter().copied());
            l.body = take_invariant(cx, l.body, &mut bound, &mut moved);
            Exp::Loop(l)
        }
        exp => exp,
    };
    cx.changed |= !moved.is_empty();
    lets(moved, exp)
}

/// Whether an expression may and should be computed before the loop.
fn is_invariant(cx: &Context, exp: &Exp, bound: &FxHashSet<Var>) -> bool {
    !matches!(exp, Exp::Var(_) | Exp::Lit(_) | Exp::Tuple(_))
        && !exp.free_vars().iter().any(|v| bound.contains(v))
        && !costs_nothing(cx.vars, exp)
        && !super::simplify::arrays::has_singleton(exp)
        && total(cx, exp)
}

/// Replaces maximal invariant subexpressions on the strict path by variables; a `let` moves as it is.
fn take_invariant(cx: &mut Context, exp: Exp, bound: &mut FxHashSet<Var>, moved: &mut Vec<(Vec<Var>, Exp)>) -> Exp {
    if !matches!(exp, Exp::Let(..)) && is_invariant(cx, &exp, bound) {
        let ty = type_of_exp(cx.vars, &exp);
        if !matches!(ty, Type::Tuple(_)) {
            let v = cx.vars.fresh("t", ty);
            moved.push((vec![v], exp));
            return Exp::Var(v);
        }
    }
    match exp {
        Exp::Guard(p, e) => {
            let p = take_invariant(cx, *p, bound, moved);
            guard(p, *e)
        }
        Exp::If(p, a, b) => {
            let p = take_invariant(cx, *p, bound, moved);
            if_(p, *a, *b)
        }
        Exp::Let(vars, value, body) => {
            if is_invariant(cx, &value, bound) {
                moved.push((vars, *value));
                return take_invariant(cx, *body, bound, moved);
            }
            let value = take_invariant(cx, *value, bound, moved);
            bound.extend(vars.iter().copied());
            let body = take_invariant(cx, *body, bound, moved);
            let_(vars, value, body)
        }
        Exp::For(i, size, body) => {
            bound.insert(i);
            let body = take_invariant(cx, *body, bound, moved);
            for_(i, size, body)
        }
        Exp::Sum(range, body) => {
            bound.insert(range.index);
            let body = take_invariant(cx, *body, bound, moved);
            Exp::Sum(range, Box::new(body))
        }
        Exp::Reduce(kind, range, body, site) => {
            bound.insert(range.index);
            let body = take_invariant(cx, *body, bound, moved);
            Exp::Reduce(kind, range, Box::new(body), site)
        }
        Exp::History(mut h) => {
            h.init = take_invariant(cx, h.init, bound, moved);
            bound.insert(h.index);
            bound.extend(h.state.iter().copied());
            h.body = take_invariant(cx, h.body, bound, moved);
            Exp::History(h)
        }
        Exp::Loop(mut l) => {
            l.init = take_invariant(cx, l.init, bound, moved);
            if let Trip::For(range) = &l.trip {
                bound.insert(range.index);
            }
            bound.extend(l.state.iter().copied());
            l.body = take_invariant(cx, l.body, bound, moved);
            Exp::Loop(l)
        }
        exp => exp.map_children(&mut |e| take_invariant(cx, e, bound, moved)),
    }
}
