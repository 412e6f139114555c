//! Small constant axes in loops over items: the body of such a loop becomes straight-line scalars.
//!
//! ```text
//! for i. let r = for a in 0..3. x[i, a] - c[a]; sum a. r[a]^2
//!   =  for i. (x[i, 0] - c[0])^2 + (x[i, 1] - c[1])^2 + (x[i, 2] - c[2])^2
//! ```
//!
//! Loops of constant length are run on symbols (`evaluate.rs`), so that brackets on their indices are decided, arrays of
//! constant size are scalars, and every operation is there once (`nodes.rs`); then the scalars are written as `let`s
//! (`write.rs`). The body of a derivative with one-hot seeds becomes what one would write by hand.
//!
//! Elements of small arrays outside that are literals are known inside.
//!
//! Only bodies of loops whose length is not constant are looked at, the inner ones first. A body stays as it is where
//! nothing is gained, or where too much would have to be written.

mod evaluate;
mod known;
mod nodes;
mod write;

use super::Context;
use super::hoist::hoist;
use crate::ir::build::exp_size;
use crate::ir::facts::Facts;
use crate::ir::traverse::map_children_with_facts;
use crate::ir::*;
use evaluate::Evaluation;
use known::Known;
use nodes::Graph;

/// How many different scalars are looked at in a body.
const MOST_NODES: usize = 12_000;
/// How many operations may be written in its place, and how many where these are not half of what they stand for.
const MOST_OPERATIONS: usize = 3_000;
const FEW_OPERATIONS: usize = 400;
/// How many elements are written out that are only read somewhere.
const SHORT_MAP: i64 = 32;
/// From which length on loops run along vectors by themselves.
const LONG: i64 = 16;

pub fn unroll(cx: &mut Context, exp: Exp) -> Exp {
    let before = std::mem::replace(&mut cx.changed, false);
    let exp = visit(cx, exp, &mut Known::default());
    // What was computed in small loops may not depend on the large ones around them.
    let exp = if cx.changed { hoist(cx, exp) } else { exp };
    cx.changed |= before;
    exp
}

fn visit(cx: &mut Context, exp: Exp, known: &mut Known) -> Exp {
    let mut facts = std::mem::take(&mut cx.facts);
    if let Exp::Let(vars, value, _) = &exp {
        note(cx, vars, value, &facts, known);
    }
    let exp = match exp {
        Exp::For(i, size, body) if size.as_constant().is_none() => {
            let body = inside(cx, *body, &mut facts, known, false, |facts| facts.enter_for(i, &size));
            Exp::For(i, size, Box::new(body))
        }
        Exp::Sum(range, body) if !is_constant(&range) => {
            let body = inside(cx, *body, &mut facts, known, true, |facts| facts.enter_range(&range));
            Exp::Sum(range, Box::new(body))
        }
        Exp::Reduce(kind, range, body, site) if !is_constant(&range) => {
            let body = inside(cx, *body, &mut facts, known, true, |facts| facts.enter_range(&range));
            Exp::Reduce(kind, range, Box::new(body), site)
        }
        Exp::Loop(mut l) if matches!(&l.trip, Trip::For(range) if !is_constant(range)) => {
            let Trip::For(range) = &l.trip else { unreachable!("seen above") };
            l.body = inside(cx, l.body, &mut facts, known, false, |facts| facts.enter_range(range));
            Exp::Loop(l)
        }
        Exp::History(mut h) if h.size.as_constant().is_none() => {
            h.body = inside(cx, h.body, &mut facts, known, false, |facts| facts.enter_for(h.index, &h.size));
            Exp::History(h)
        }
        exp => map_children_with_facts(exp, &mut facts, &mut |e, facts| {
            std::mem::swap(&mut cx.facts, facts);
            let e = visit(cx, e, known);
            std::mem::swap(&mut cx.facts, facts);
            e
        }),
    };
    cx.facts = facts;
    exp
}

fn is_constant(range: &Range) -> bool {
    exp_size(&range.lo).zip(exp_size(&range.hi)).is_some_and(|(lo, hi)| hi.sub(&lo).as_constant().is_some())
}

/// The body of a loop, with what is known in it; `adds` says that the loop only adds its values up.
fn inside(cx: &mut Context, body: Exp, facts: &mut Facts, known: &mut Known, adds: bool, enter: impl FnOnce(&mut Facts)) -> Exp {
    let mark = facts.mark();
    enter(facts);
    std::mem::swap(&mut cx.facts, facts);
    let body = visit(cx, body, known);
    let body = straight(cx, body, known, adds);
    std::mem::swap(&mut cx.facts, facts);
    facts.reset(mark);
    body
}

/// The body as straight-line scalars, if that is better, else those of its results of which it is. A sum of small sums reads
/// along them as it is; written out it would read with gaps, so there only operations that go count.
fn straight(cx: &mut Context, body: Exp, known: &Known, adds: bool) -> Exp {
    if !has_small_loop(&body) {
        return body;
    }
    match written_out(cx, &body, known, adds) {
        Some(exp) => exp,
        None => results(cx, body, known, adds),
    }
}

fn results(cx: &mut Context, body: Exp, known: &Known, adds: bool) -> Exp {
    match body {
        Exp::Let(vars, value, rest) => {
            let mark = cx.facts.mark();
            if let [v] = vars.as_slice() {
                cx.facts.define(*v, &value);
            }
            let rest = results(cx, *rest, known, adds);
            cx.facts.reset(mark);
            Exp::Let(vars, value, Box::new(rest))
        }
        Exp::Tuple(parts) => Exp::Tuple(parts.into_iter().map(|part| straight(cx, part, known, adds)).collect()),
        exp => exp,
    }
}

fn written_out(cx: &mut Context, body: &Exp, known: &Known, adds: bool) -> Option<Exp> {
    let facts = cx.facts.clone();
    let mut evaluation = Evaluation::new(Graph::new(cx.vars, MOST_NODES), &facts, known);
    let value = evaluation.value(body).ok()?;
    let (asked, dissolved) = (evaluation.graph.asked, evaluation.dissolved);
    let (exp, operations) = write::write(&mut evaluation.graph, &value);
    let gains = match operations {
        0 if mapped(body).is_some_and(|elements| elements > SHORT_MAP) => false,
        0..=FEW_OPERATIONS if !has_long_loop(body) => dissolved > 0 && !(adds && is_plain(body)) || operations * 10 < asked * 9,
        _ => operations <= MOST_OPERATIONS && operations * 2 < asked,
    };
    cx.changed |= gains;
    gains.then_some(exp)
}

/// How many elements a loop over such has that have no loops of their own: it runs along them as it is.
fn mapped(exp: &Exp) -> Option<i64> {
    let Exp::For(_, size, body) = exp else { return None };
    let own = if has_small_loop(body) { mapped(body)? } else { 1 };
    Some(size.as_constant()?.saturating_mul(own))
}

/// Whether a loop over elements goes along vectors as it is: written out it would have to save much.
fn has_long_loop(exp: &Exp) -> bool {
    let own = matches!(exp, Exp::For(_, size, _) if size.as_constant().is_some_and(|n| n >= LONG));
    let mut found = own;
    exp.for_each_child(&mut |e| found = found || has_long_loop(e));
    found
}

/// Remembers which elements of small arrays are literals: the zeros of a tangent with one-hot seeds, say. A loop further in
/// that reads them need not compute with them.
fn note(cx: &mut Context, vars: &[Var], value: &Exp, facts: &Facts, known: &mut Known) {
    let small = |v: &Var| match cx.vars.ty(*v) {
        Type::Array(shape, _) => shape.iter().all(|n| n.as_constant().is_some()),
        Type::Scalar(_) | Type::Tuple(_) => false,
    };
    if !vars.iter().any(small) {
        return;
    }
    let mut evaluation = Evaluation::new(Graph::new(cx.vars, MOST_NODES), facts, known);
    let Ok(value) = evaluation.value(value) else { return };
    let found = evaluation.literals(vars, &value);
    known.extend(found);
}

/// Whether an expression is arithmetic on reads and on sums of such.
fn is_plain(exp: &Exp) -> bool {
    let own = match exp {
        Exp::Var(_) | Exp::Lit(_) | Exp::Op(..) | Exp::Partial(..) | Exp::Index(..) | Exp::Sum(..) => true,
        Exp::Singleton(..) | Exp::For(..) | Exp::Reduce(..) | Exp::History(_) | Exp::Loop(_) | Exp::Update(..) => false,
        Exp::Guard(..) | Exp::If(..) | Exp::Let(..) | Exp::Tuple(_) | Exp::Array(_) | Exp::Call(..) => false,
    };
    let mut all = own;
    exp.for_each_child(&mut |e| all = all && is_plain(e));
    all
}

/// Whether there is a loop of constant length, or an array that is written out.
fn has_small_loop(exp: &Exp) -> bool {
    let own = match exp {
        Exp::For(_, size, _) => size.as_constant().is_some(),
        Exp::Sum(range, _) | Exp::Reduce(_, range, _, _) => is_constant(range),
        Exp::Loop(l) => matches!(&l.trip, Trip::For(range) if is_constant(range)),
        Exp::History(h) => h.size.as_constant().is_some(),
        Exp::Let(_, value, _) => matches!(**value, Exp::Array(_)),
        Exp::Var(_)
        | Exp::Lit(_)
        | Exp::Op(..)
        | Exp::Partial(..)
        | Exp::Index(..)
        | Exp::Singleton(..)
        | Exp::Update(..)
        | Exp::Guard(..)
        | Exp::If(..)
        | Exp::Tuple(_)
        | Exp::Array(_)
        | Exp::Call(..) => false,
    };
    let mut found = own;
    exp.for_each_child(&mut |e| found = found || has_small_loop(e));
    found
}
