//! Tuples: taken apart by `let`s, and out of binders whose parts share nothing.

use super::super::{Context, Rewrite};
use super::arrays::shared;
use super::lets::has_loop;
use crate::differentiate::scope::costs_nothing;
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;

pub fn rewrite(cx: &mut Context, exp: Exp) -> Rewrite {
    match exp {
        Exp::Let(vars, value, body) if vars.len() > 1 => match *value {
            Exp::Tuple(parts) => Ok(lets(vars.into_iter().map(|v| vec![v]).zip(parts).collect(), *body)),
            // Named and put together again: what is left can be added into a destination without being built first.
            value if is_tuple_of(&body, &vars) => Ok(value),
            value => Err(Exp::Let(vars, Box::new(value), body)),
        },
        Exp::Sum(range, body) => match *body {
            Exp::Tuple(parts) => {
                let Range { index, lo, hi } = *range;
                let mut bindings = vec![];
                let range = Box::new(Range { index, lo: shared(cx, lo, &mut bindings), hi: shared(cx, hi, &mut bindings) });
                let sums =
                    parts.into_iter().map(|e| copy(cx.vars, &Exp::Sum(range.clone(), Box::new(e)), &Substitution::default())).collect();
                Ok(lets(bindings, Exp::Tuple(sums)))
            }
            body => Err(Exp::Sum(range, Box::new(body))),
        },
        Exp::For(i, size, body) => match *body {
            Exp::Tuple(parts) => {
                Ok(Exp::Tuple(parts.into_iter().map(|e| copy(cx.vars, &for_(i, size.clone(), e), &Substitution::default())).collect()))
            }
            // What the parts share costs nothing to do for each of them.
            body if shares_nothing_costly(cx.vars, &body) => {
                let (bindings, parts) = peel_tuple(body);
                let part = |e| for_(i, size.clone(), lets(bindings.clone(), e));
                Ok(Exp::Tuple(parts.into_iter().map(|e| copy(cx.vars, &part(e), &Substitution::default())).collect()))
            }
            body => Err(Exp::For(i, size, Box::new(body))),
        },
        Exp::Index(array, keys, site) => match *array {
            Exp::Tuple(parts) => {
                let mut bindings = vec![];
                let keys: Vec<Exp> = keys.into_iter().map(|k| shared(cx, k, &mut bindings)).collect();
                Ok(lets(bindings, Exp::Tuple(parts.into_iter().map(|e| index(e, keys.clone(), site)).collect())))
            }
            array => Err(Exp::Index(Box::new(array), keys, site)),
        },
        Exp::Op(Op::Add, args, site) => match args.as_slice() {
            [Exp::Tuple(a), Exp::Tuple(b)] => Ok(Exp::Tuple(a.iter().zip(b).map(|(a, b)| add(a.clone(), b.clone())).collect())),
            _ => Err(Exp::Op(Op::Add, args, site)),
        },
        Exp::History(h) => match named_parts(cx, &h.state) {
            Some(named) => Ok(Exp::History(Box::new(History { body: named.within(h.body), state: named.parts, ..*h }))),
            None => Err(Exp::History(h)),
        },
        Exp::Loop(l) => match named_parts(cx, &l.state) {
            Some(named) => {
                let trip = match l.trip {
                    Trip::While(condition) => Trip::While(copy(cx.vars, &named.within(condition), &Substitution::default())),
                    counted => counted,
                };
                Ok(Exp::Loop(Box::new(Iteration {
                    body: named.within(l.body),
                    state: named.parts,
                    trip,
                    init: l.init,
                    annotations: l.annotations,
                })))
            }
            None => Err(Exp::Loop(l)),
        },
        exp => Err(exp),
    }
}

/// Whether an expression is a tuple under `let`s of scalars that cost nothing.
fn shares_nothing_costly(vars: &Vars, exp: &Exp) -> bool {
    match exp {
        Exp::Let(bound, value, body) => {
            let scalar = matches!(bound.as_slice(), [v] if matches!(vars.ty(*v), Type::Scalar(_)));
            scalar && costs_nothing(vars, value) && !has_loop(value) && shares_nothing_costly(vars, body)
        }
        exp => matches!(exp, Exp::Tuple(_)),
    }
}

fn peel_tuple(exp: Exp) -> (Vec<(Vec<Var>, Exp)>, Vec<Exp>) {
    let mut bindings = vec![];
    let mut rest = exp;
    loop {
        match rest {
            Exp::Let(vars, value, body) => {
                bindings.push((vars, *value));
                rest = *body;
            }
            Exp::Tuple(parts) => return (bindings, parts),
            _ => unreachable!("a tuple under lets"),
        }
    }
}

/// A tuple that a loop carries in one variable, and a variable for each part of it.
struct Named {
    whole: Var,
    parts: Vec<Var>,
}

impl Named {
    fn within(&self, exp: Exp) -> Exp {
        let_(vec![self.whole], Exp::Tuple(self.parts.iter().map(|v| Exp::Var(*v)).collect()), exp)
    }
}

fn named_parts(cx: &mut Context, state: &[Var]) -> Option<Named> {
    let [whole] = state else { return None };
    let Type::Tuple(types) = cx.vars.ty(*whole).clone() else { return None };
    let name = cx.vars.name(*whole).to_string();
    let parts = types.iter().map(|ty| cx.vars.fresh(name.clone(), ty.clone())).collect();
    Some(Named { whole: *whole, parts })
}

/// Whether the expression is the tuple of just these variables.
fn is_tuple_of(exp: &Exp, vars: &[Var]) -> bool {
    matches!(exp, Exp::Tuple(parts) if parts.len() == vars.len() && parts.iter().zip(vars).all(|(e, v)| *e == Exp::Var(*v)))
}
