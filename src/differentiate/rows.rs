//! The rows of arrays that a loop reads, whose adjoints the loop makes instead of the arrays'.
//!
//! y = loop s = s₀ for i do e(i, s, x[k, l(i)]), where the keys `k` are the same in all steps
//!
//! reverse:  the steps add to the adjoint of the row r = x[k], as {l(i) -> …}, and behind the loop x̄ += {k -> r̄}
//!
//! Some loops carry the adjoints of the variables around them along. In the body of another loop each of its steps makes these
//! anew, so that only those are carried that are no larger than what the loop does anyway: rows where there are keys `k`, and
//! arrays that are read from end to end. The way forth stays as it is. Where no step reads the row, `k` may be out of range: then
//! nothing is added.

use super::lineage::line;
use super::reverse::Reverse;
use super::rules::writes::Writes;
use super::scope::Scope;
use super::split::has_loop;
use super::work::{elements, work};
use crate::ir::build::*;
use crate::ir::facts::Facts;
use crate::ir::*;
use rustc_hash::FxHashSet;

/// A variable for `array[keys]`, which no statement binds: the adjoints of reads that begin with these keys are added to its.
pub struct Row {
    array: Var,
    keys: Vec<Exp>,
    row: Var,
}

/// Finds what a loop may carry the adjoints of, before it is walked back over. Gives how many rows there were before, for `end`.
pub fn begin(cx: &mut Reverse, exp: &Exp) -> usize {
    let before = cx.rows.len();
    let Some(body) = carrying(cx, exp) else { return before };
    let around: FxHashSet<Var> = exp.free_vars().into_iter().collect();
    let mut wanted: Vec<(Var, Vec<Exp>)> = vec![];
    for (array, keys) in reads(cx, body) {
        let (receiver, known) = cx.receiver(array, &keys);
        if !around.contains(&array) || cx.may_make_adjoint(receiver) {
            continue;
        }
        let same = |key: &Exp| key.free_vars().iter().all(|v| around.contains(v)) && never_fails(cx.vars, &cx.facts, key);
        let count = known + keys[known..].iter().take_while(|key| same(key)).count();
        wanted.push((array, keys[..count].to_vec()));
    }
    let shorter =
        |(array, keys): &(Var, Vec<Exp>), (other, of): &(Var, Vec<Exp>)| array == other && keys.len() < of.len() && of.starts_with(keys);
    let rows: Vec<(Var, Vec<Exp>)> = wanted.iter().filter(|row| !wanted.iter().any(|other| shorter(other, row))).cloned().collect();
    if rows.is_empty() {
        return before;
    }
    let done = work(cx.vars, &mut cx.facts, exp);
    let mut found: Vec<Row> = vec![];
    for (array, keys) in rows {
        let ty = cx.vars.ty(array).without_axes(keys.len()).expect("a key for an axis");
        if found.iter().any(|row| row.array == array && row.keys == keys) || !cx.facts.prove_nonneg(&done.sub(&elements(&ty))) {
            continue;
        }
        let (receiver, known) = cx.receiver(array, &keys);
        if known == keys.len() {
            cx.make_adjoint(receiver);
            continue;
        }
        let row = cx.vars.fresh_like(array, ty);
        cx.vary_as(row, array);
        cx.make_adjoint(row);
        found.push(Row { array, keys, row });
    }
    cx.rows.extend(found);
    before
}

/// Adds the adjoints of rows to those of their arrays, behind the loop.
pub fn end(cx: &mut Reverse, before: usize) {
    for Row { array, keys, row } in cx.rows.split_off(before) {
        let Some(adjoint) = cx.take_adjoint(row) else { continue };
        let shape = cx.vars.ty(array).shape().to_vec();
        let unknown = keys.iter().zip(shape).filter(|(key, axis)| !cx.facts.in_range(key, axis));
        let asked: Vec<Exp> =
            unknown.flat_map(|(key, axis)| [op2(Op::Le, i64(0), key.clone()), op2(Op::Lt, key.clone(), size_exp(&axis))]).collect();
        let (receiver, known) = cx.receiver(array, &keys);
        let places = keys[known..].iter().cloned().zip(cx.vars.ty(receiver).shape().iter().cloned()).collect();
        let added = singleton(places, adjoint, Site::default().passed());
        cx.contribute(&Exp::Var(receiver), asked.into_iter().rev().fold(added, |e, p| guard(p, e)));
    }
}

impl Reverse<'_> {
    /// What the adjoint of a read is added to: a row, and how many of the keys it takes, or the array.
    pub fn receiver(&self, array: Var, keys: &[Exp]) -> (Var, usize) {
        let rows = self.rows.iter().filter(|row| row.array == array && keys.starts_with(&row.keys));
        rows.max_by_key(|row| row.keys.len()).map_or((array, 0), |row| (row.row, row.keys.len()))
    }

    /// What an expression may add to the adjoints of.
    pub fn receivers(&self, exp: &Exp) -> Vec<Var> {
        let free = || exp.free_vars().into_iter().filter(|v| self.varies(&Exp::Var(*v)));
        if self.rows.is_empty() {
            return free().collect();
        }
        let reads = reads(self, exp);
        let mut found: Vec<Var> = vec![];
        for v in free() {
            let mut of_reads = reads.iter().filter(|(array, _)| *array == v).map(|(array, keys)| self.receiver(*array, keys).0).peekable();
            let all: Vec<Var> = if of_reads.peek().is_some() { of_reads.collect() } else { vec![v] };
            for receiver in all {
                if !found.contains(&receiver) {
                    found.push(receiver);
                }
            }
        }
        found
    }
}

/// The steps of a loop that may carry adjoints along: those that change arrays in place, that have loops in them, or that run
/// in blocks.
fn carrying<'a>(cx: &Reverse, exp: &'a Exp) -> Option<&'a Exp> {
    match exp {
        Exp::Loop(l) if Writes::of(l).is_some() => None,
        Exp::Loop(l) => {
            let Scope { statements, results } = Scope::split(l.body.clone());
            let in_place = || {
                l.state.iter().zip(&results).any(|(s, r)| line(&statements, r).is_some_and(|(first, made)| first == *s && !made.is_empty()))
            };
            let in_blocks = cx.values_each.is_some() || !l.annotations.is_empty();
            (in_blocks || has_loop(&l.body) || in_place()).then_some(&l.body)
        }
        Exp::History(h) => has_loop(&h.body).then_some(&h.body),
        _ => None,
    }
}

/// The reads of arrays that vary, with their keys; where one is used otherwise, a read without keys.
fn reads(cx: &Reverse, exp: &Exp) -> Vec<(Var, Vec<Exp>)> {
    fn find(cx: &Reverse, exp: &Exp, found: &mut Vec<(Var, Vec<Exp>)>) {
        match exp {
            Exp::Var(v) if cx.varies(exp) && matches!(cx.vars.ty(*v), Type::Array(..)) => found.push((*v, vec![])),
            Exp::Index(array, keys, _) if cx.varies(array) => {
                let Exp::Var(v) = **array else { unreachable!("what varies is a variable") };
                found.push((v, keys.clone()));
                keys.iter().for_each(|key| find(cx, key, found));
            }
            exp => exp.for_each_child(&mut |e| find(cx, e, found)),
        }
    }
    let mut found = vec![];
    find(cx, exp, &mut found);
    found
}

/// Whether a key can be asked for where nothing was read.
fn never_fails(vars: &Vars, facts: &Facts, key: &Exp) -> bool {
    match key {
        Exp::Var(_) | Exp::Lit(_) => true,
        Exp::Op(op, args, _) => !op.ever_fails() && args.iter().all(|e| never_fails(vars, facts, e)),
        Exp::Index(array, keys, _) => {
            let Exp::Var(v) = **array else { return false };
            let within = |(key, axis): (&Exp, &Size)| never_fails(vars, facts, key) && facts.in_range(key, axis);
            keys.iter().zip(vars.ty(v).shape()).all(within)
        }
        _ => false,
    }
}
