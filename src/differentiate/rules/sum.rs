//! y = sum i. e(i)
//!
//! forward:  (y, ẏ) = sum i. (e(i), ė(i))
//! reverse:  ē(i) = ȳ; the free variables' adjoints are summed over `i` as one tuple
//!
//! Where values must be saved for the way back, they are generated first and the sum reads them:
//! `let v = for i. …; let y = sum i. …v[i]…`, each costly statement in one of the two.

use super::super::forward::Forward;
use super::super::reverse::{Crossed, LoopOf, Reverse};
use super::super::scope::{Scope, Statement, costs_nothing};
use super::super::split::split;
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;
use rustc_hash::{FxHashMap, FxHashSet};

pub fn forward(cx: &mut Forward, vars: Vec<Var>, range: Range, body: Exp, out: &mut Vec<Statement>) {
    let (done, active) = cx.body(body);
    let value = Exp::Sum(Box::new(range), Box::new(done.into_exp(&active)));
    cx.bind_with_tangents(vars, &active, value, out);
}

pub fn reverse(cx: &mut Reverse, vars: Vec<Var>, range: Range, body: Exp, adjoints: Vec<Option<Exp>>) -> Vec<Statement> {
    let (lo, hi) = (exp_size(&range.lo).expect("a size"), exp_size(&range.hi).expect("a size"));
    let within = LoopOf { index: range.index, lo: lo.clone(), size: hi.sub(&lo), states: vec![] };
    let facts = cx.facts.clone();
    cx.facts.enter_range(&range);
    let mut inner = cx.scope(Scope::split(body), adjoints);
    cx.facts = facts;

    // What the way back needs is taken out of the branches that yield it beside their results, so that these are added
    // as before and not kept.
    let saved: Vec<Exp> = cx.cross(&inner, Some(&within), &FxHashSet::default()).saved.iter().map(|s| Exp::Var(s.inner)).collect();
    inner.forward = split(cx.vars, inner.forward, &saved, &inner.results);
    let mut also = FxHashSet::default();
    let crossed = loop {
        let crossed = cx.cross(&inner, Some(&within), &also);
        let shared = costly_in_both(cx, &crossed);
        let before = also.len();
        also.extend(shared);
        if also.len() == before {
            break crossed;
        }
    };
    let free: Vec<Var> = crossed.adjoints.keys().copied().collect();
    if !free.is_empty() {
        let back = Exp::Sum(Box::new(range.clone()), Box::new(crossed.way_back(&free)));
        let back = copy(cx.vars, &back, &Substitution::default());
        cx.contribute_all(free, back);
    }
    if crossed.saved.is_empty() {
        return vec![(vars, Exp::Sum(Box::new(range), Box::new(crossed.way_forth())))];
    }

    let t = cx.vars.fresh(cx.vars.name(range.index).to_string(), Type::I64);
    let at = Substitution::from_iter([(range.index, size_exp(&Size::var(t).add(&lo)))]);
    let save = needed(&crossed, crossed.saved.iter().map(|s| s.inner).collect(), &FxHashSet::default());
    let saved_body = lets(pick(&crossed, &save), tuple(crossed.saved.iter().map(|s| s.value.clone()).collect()));
    let saved_body = copy(cx.vars, &saved_body, &at);
    let first = (crossed.saved_vars(), for_(t, within.size.clone(), saved_body));

    let held: FxHashSet<Var> = crossed.saved.iter().map(|s| s.inner).collect();
    let rest = needed(&crossed, crossed.results.iter().flat_map(Exp::free_vars).collect(), &held);
    let mut statements = vec![];
    for (k, statement) in crossed.forward.iter().enumerate() {
        // What is saved of a statement is read; the statement itself runs for what is not.
        for read in crossed.prologue.iter().filter(|(vs, _)| vs.len() == 1 && held.contains(&vs[0]) && statement.0.contains(&vs[0])) {
            statements.push(read.clone());
        }
        if rest.contains(&k) && !statement.0.iter().any(|v| held.contains(v)) {
            statements.push(statement.clone());
        }
    }
    let body = lets(statements, tuple(crossed.results.clone()));
    vec![first, (vars, Exp::Sum(Box::new(range), Box::new(body)))]
}

/// The variables of costly statements that both the saved values and the results need.
fn costly_in_both(cx: &Reverse, crossed: &Crossed) -> Vec<Var> {
    let held: FxHashSet<Var> = crossed.saved.iter().map(|s| s.inner).collect();
    let save = needed(crossed, held.iter().copied().collect(), &FxHashSet::default());
    let rest = needed(crossed, crossed.results.iter().flat_map(Exp::free_vars).collect(), &held);
    save.intersection(&rest)
        .filter(|k| !costs_nothing(cx.vars, &crossed.forward[**k].1))
        .flat_map(|k| crossed.forward[*k].0.clone())
        .collect()
}

/// The forward statements that the variables need, without those that bind a variable held already.
fn needed(crossed: &Crossed, roots: Vec<Var>, held: &FxHashSet<Var>) -> FxHashSet<usize> {
    let place: FxHashMap<Var, usize> =
        crossed.forward.iter().enumerate().flat_map(|(k, (vars, _))| vars.iter().map(move |v| (*v, k))).collect();
    let mut found = FxHashSet::default();
    let mut pending = roots;
    while let Some(v) = pending.pop() {
        if held.contains(&v) {
            continue;
        }
        if let Some(k) = place.get(&v) {
            if found.insert(*k) {
                pending.extend(crossed.forward[*k].1.free_vars());
            }
        }
    }
    found
}

fn pick(crossed: &Crossed, which: &FxHashSet<usize>) -> Vec<Statement> {
    crossed.forward.iter().enumerate().filter(|(k, _)| which.contains(k)).map(|(_, s)| s.clone()).collect()
}
