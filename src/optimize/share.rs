//! Sharing: an expression computed twice in one place is computed once.
//!
//! Expressions are compared up to the names of what they bind. A value already bound by an enclosing `let` is read
//! there; a costly expression that occurs twice on the strict path of one body is bound at its head.
//! Variables that a `let` binds are compared one by one, by their numbers (`numbers.rs`): the values that one loop computes
//! beside their tangents are those that another computes alone.

use super::Context;
use super::numbers::Numbers;
use crate::differentiate::scope::costs_nothing;
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, sizes_mention, substitute};
use crate::ir::*;
use indexmap::IndexMap;
use rustc_hash::FxHashMap;

pub fn share(cx: &mut Context, exp: Exp) -> Exp {
    let exp = known_values(cx, exp, &mut FxHashMap::default());
    let exp = repeated_in_body(cx, exp);
    // What is the same now that its parts are.
    let exp = known_values(cx, exp, &mut FxHashMap::default());
    same_numbers(cx, exp, &mut Numbers::default(), &mut FxHashMap::default())
}

/// Takes variables for others in scope that have the same value.
fn same_numbers(cx: &mut Context, exp: Exp, numbers: &mut Numbers, bound: &mut FxHashMap<u128, Var>) -> Exp {
    let mut chain: Vec<(Vec<Var>, Exp)> = vec![];
    let mut names = Substitution::default();
    let mut fresh = vec![];
    let mut rest = exp;
    while let Exp::Let(vars, value, next) = rest {
        let value = substitute(cx.vars, *value, &names);
        let value = same_numbers(cx, value, numbers, bound);
        let parts = numbers.of(&value);
        numbers.bind(&vars, parts.clone());
        rest = *next;
        let mut place = chain.len();
        chain.push((vars.clone(), value));
        if parts.len() != vars.len() || costs_nothing(cx.vars, &chain[place].1) {
            continue;
        }
        for (v, part) in vars.iter().zip(parts) {
            // Sizes that data say keep their names.
            match bound.get(&part.value).filter(|_| *cx.vars.ty(*v) != Type::I64) {
                Some(same) if cx.vars.ty(*same) == cx.vars.ty(*v) => {
                    cx.changed = true;
                    let same = *same;
                    match later_alone(&chain, same, place) {
                        Some(order) => {
                            place = order.iter().position(|k| *k == place).expect("it is still there");
                            let mut old: Vec<Option<(Vec<Var>, Exp)>> = chain.into_iter().map(Some).collect();
                            chain = order.into_iter().map(|k| old[k].take().expect("taken once")).collect();
                            let name = Substitution::from_iter([(same, Exp::Var(*v))]);
                            chain.iter_mut().for_each(|(_, e)| *e = substitute(cx.vars, e.clone(), &name));
                            names.values_mut().for_each(|e| *e = substitute(cx.vars, e.clone(), &name));
                            names.insert(same, Exp::Var(*v));
                            bound.insert(part.value, *v);
                        }
                        None => {
                            names.insert(*v, Exp::Var(same));
                        }
                    }
                }
                Some(_) => {}
                None => {
                    bound.insert(part.value, *v);
                    fresh.push(part.value);
                }
            }
        }
    }
    let rest = substitute(cx.vars, rest, &names);
    let rest = rest.map_children(&mut |e| same_numbers(cx, e, numbers, bound));
    fresh.iter().for_each(|number| {
        bound.remove(number);
    });
    lets(chain, rest)
}

/// An order of a chain of `let`s without that of a variable, which the last one, at `last`, binds to the same value beside others:
/// what needs it goes behind that one. `None` if the last one needs any of this, too, or the variable is not bound alone.
fn later_alone(chain: &[(Vec<Var>, Exp)], same: Var, last: usize) -> Option<Vec<usize>> {
    let first = chain.iter().position(|(vars, _)| *vars == [same])?;
    if chain[last].0.len() == 1 {
        return None;
    }
    let mut moved = vec![];
    let mut needing = vec![same];
    for k in first + 1..chain.len() {
        if chain[k].1.mentions_any(&needing) {
            if k == last {
                return None;
            }
            moved.push(k);
            needing.extend(&chain[k].0);
        }
    }
    let stays = (0..chain.len()).filter(|k| *k != first && !moved.contains(k));
    Some(stays.chain(moved.iter().copied()).collect())
}

/// Replaces expressions that an enclosing `let` has bound, to one variable or, as a tuple, to several.
fn known_values(cx: &mut Context, exp: Exp, known: &mut FxHashMap<Exp, Vec<Var>>) -> Exp {
    if !matches!(exp, Exp::Var(_) | Exp::Lit(_) | Exp::Let(..)) && !costs_nothing(cx.vars, &exp) {
        if let Some([v]) = known.get(&canonical(&exp)).map(Vec::as_slice) {
            cx.changed = true;
            return Exp::Var(*v);
        }
    }
    match exp {
        Exp::Let(vars, value, body) => {
            let value = known_values(cx, *value, known);
            // What is computed with another name for a value may be known itself.
            let same = match (vars.as_slice(), &value) {
                ([_], Exp::Var(same)) => Some(vec![*same]),
                (_, value) => known.get(&canonical(value)).filter(|same| same.len() == vars.len()).cloned(),
            };
            if let Some(same) = same {
                // Types keep the names that their sizes have.
                let (kept, other): (Vec<_>, Vec<_>) = vars.iter().zip(&same).partition(|(v, _)| sizes_mention(cx.vars, &body, **v));
                if !other.is_empty() {
                    cx.changed = true;
                    let names = other.into_iter().map(|(v, same)| (*v, Exp::Var(*same)));
                    let body = substitute(cx.vars, *body, &Substitution::from_iter(names));
                    let body = known_values(cx, body, known);
                    return kept.into_iter().rev().fold(body, |body, (v, same)| let_(vec![*v], Exp::Var(*same), body));
                }
            }
            let names_tuple = vars.len() > 1 && !matches!(value, Exp::Tuple(_));
            let key = (names_tuple || !matches!(value, Exp::Var(_) | Exp::Lit(_) | Exp::Tuple(_))).then(|| canonical(&value));
            let fresh = key.filter(|key| !known.contains_key(key));
            if let Some(key) = &fresh {
                known.insert(key.clone(), vars.clone());
            }
            let body = known_values(cx, *body, known);
            if let Some(key) = fresh {
                known.remove(&key);
            }
            let_(vars, value, body)
        }
        exp => exp.map_children(&mut |e| known_values(cx, e, known)),
    }
}

/// Binds what occurs twice in a body, body by body.
fn repeated(cx: &mut Context, exp: Exp) -> Exp {
    match exp {
        Exp::For(i, size, body) => {
            let body = repeated_in_body(cx, *body);
            for_(i, size, body)
        }
        Exp::Sum(range, body) => {
            let body = repeated_in_body(cx, *body);
            Exp::Sum(range, Box::new(body))
        }
        Exp::Reduce(kind, range, body, site) => {
            let body = repeated_in_body(cx, *body);
            Exp::Reduce(kind, range, Box::new(body), site)
        }
        Exp::History(mut h) => {
            h.body = repeated_in_body(cx, h.body);
            Exp::History(h)
        }
        Exp::Loop(mut l) => {
            l.body = repeated_in_body(cx, l.body);
            Exp::Loop(l)
        }
        Exp::Guard(p, e) => {
            let e = repeated_in_body(cx, *e);
            guard(*p, e)
        }
        Exp::If(p, a, b) => {
            let (a, b) = (repeated_in_body(cx, *a), repeated_in_body(cx, *b));
            if_(*p, a, b)
        }
        exp => exp.map_children(&mut |e| repeated(cx, e)),
    }
}

/// A body is a chain of `let`s and a result, all of which are evaluated: what occurs twice in them is bound before the
/// first of them that has it.
fn repeated_in_body(cx: &mut Context, body: Exp) -> Exp {
    let mut chain: Vec<(Vec<Var>, Exp)> = vec![];
    let mut rest = body;
    while let Exp::Let(vars, value, next) = rest {
        let value = repeated(cx, *value);
        chain.push((vars, value));
        rest = *next;
    }
    let rest = repeated(cx, rest);
    chain.push((vec![], rest));
    loop {
        let mut counts: IndexMap<Exp, (usize, Exp)> = IndexMap::new();
        chain.iter().for_each(|(_, e)| strict_parts(cx, e, &mut counts));
        // The largest first: its parts go with it.
        let best = counts.into_iter().filter(|(_, (count, _))| *count > 1).max_by_key(|(_, (_, e))| e.node_count());
        let Some((key, (_, example))) = best else { break };
        cx.changed = true;
        if let Some(k) = chain.iter().position(|(vars, e)| vars.len() == 1 && canonical(e) == key) {
            // One of the `let`s binds it already, before all other places that it stands in or after some of them.
            let first = chain.iter().position(|(_, e)| contains(e, &key)).expect("it occurs");
            let v = chain[k].0[0];
            let binding = chain.remove(k);
            chain.iter_mut().for_each(|(_, e)| *e = replace(cx, e.clone(), &key, v));
            chain.insert(first.min(k), binding);
            continue;
        }
        let first = chain.iter().position(|(_, e)| contains(e, &key)).expect("it occurs");
        let ty = type_of_exp(cx.vars, &example);
        let v = cx.vars.fresh("t", ty);
        chain.iter_mut().for_each(|(_, e)| *e = replace(cx, e.clone(), &key, v));
        chain.insert(first, (vec![v], example));
    }
    let (_, result) = chain.pop().expect("the result");
    lets(chain, result)
}

/// What is bound where it occurs twice: scalar operations, and whatever runs a loop.
fn is_shared(exp: &Exp) -> bool {
    matches!(exp, Exp::Op(..) | Exp::Partial(..) | Exp::For(..) | Exp::Sum(..) | Exp::Reduce(..) | Exp::History(_) | Exp::Loop(_))
}

/// Whether an expression has this canonical form, which is asked of few.
fn has_form(exp: &Exp, key: &Exp) -> bool {
    is_shared(exp)
        && std::mem::discriminant(exp) == std::mem::discriminant(key)
        && exp.node_count() == key.node_count()
        && canonical(exp) == *key
}

fn contains(exp: &Exp, key: &Exp) -> bool {
    if has_form(exp, key) {
        return true;
    }
    let mut found = false;
    exp.for_each_child(&mut |e| found = found || contains(e, key));
    found
}

/// Costly parts evaluated whenever the body is: not under binders, guards, branches or the body of a `let`.
fn strict_parts(cx: &Context, exp: &Exp, counts: &mut IndexMap<Exp, (usize, Exp)>) {
    let is_array_operation = || matches!(exp, Exp::Op(..)) && scalar_of(cx.vars, exp).is_none();
    if is_shared(exp) && !costs_nothing(cx.vars, exp) && !is_array_operation() {
        counts.entry(canonical(exp)).or_insert_with(|| (0, exp.clone())).0 += 1;
    }
    match exp {
        Exp::Op(..) | Exp::Partial(..) | Exp::Index(..) | Exp::Singleton(..) | Exp::Update(..) | Exp::Tuple(_) | Exp::Array(_) => {
            exp.for_each_child(&mut |e| strict_parts(cx, e, counts))
        }
        Exp::Let(_, value, _) => strict_parts(cx, value, counts),
        Exp::Guard(p, _) | Exp::If(p, _, _) => strict_parts(cx, p, counts),
        Exp::Var(_) | Exp::Lit(_) | Exp::For(..) | Exp::Sum(..) | Exp::Reduce(..) | Exp::History(_) | Exp::Loop(_) | Exp::Call(..) => {}
    }
}

fn replace(cx: &mut Context, exp: Exp, key: &Exp, v: Var) -> Exp {
    if has_form(&exp, key) {
        return Exp::Var(v);
    }
    exp.map_children(&mut |e| replace(cx, e, key, v))
}

/// The expression with its bound variables numbered from the far end, so that equal expressions are equal values.
pub fn canonical(exp: &Exp) -> Exp {
    fn go(exp: Exp, names: &mut FxHashMap<Var, Var>, next: &mut u32) -> Exp {
        let mut rename = |v: Var, names: &mut FxHashMap<Var, Var>| {
            *next -= 1;
            names.insert(v, Var(*next));
            Var(*next)
        };
        let size = |s: &Size, names: &FxHashMap<Var, Var>| s.substitute(&|v| names.get(&v).map(|w| Size::var(*w)));
        let exp = match exp {
            Exp::Var(v) => return Exp::Var(names.get(&v).copied().unwrap_or(v)),
            Exp::For(i, s, body) => {
                let s = size(&s, names);
                Exp::For(rename(i, names), s, body)
            }
            Exp::Sum(mut range, body) => {
                range.index = rename(range.index, names);
                Exp::Sum(range, body)
            }
            Exp::Reduce(kind, mut range, body, site) => {
                range.index = rename(range.index, names);
                Exp::Reduce(kind, range, body, site)
            }
            Exp::History(mut h) => {
                h.size = size(&h.size, names);
                h.index = rename(h.index, names);
                h.state = h.state.iter().map(|v| rename(*v, names)).collect();
                Exp::History(h)
            }
            Exp::Loop(mut l) => {
                if let Trip::For(range) = &mut l.trip {
                    range.index = rename(range.index, names);
                }
                l.state = l.state.iter().map(|v| rename(*v, names)).collect();
                Exp::Loop(l)
            }
            Exp::Let(vars, value, body) => Exp::Let(vars.iter().map(|v| rename(*v, names)).collect(), value, body),
            Exp::Singleton(places, value, site) => {
                Exp::Singleton(places.into_iter().map(|(k, s)| (k, size(&s, names))).collect(), value, site)
            }
            exp => exp,
        };
        exp.map_children(&mut |e| go(e, names, next))
    }
    let mut next = u32::MAX;
    go(exp.clone(), &mut FxHashMap::default(), &mut next)
}
