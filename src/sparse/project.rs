//! One part of an expression that gives several, as an expression by itself.

use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;
use crate::optimize::simplify::lets;
use rustc_hash::FxHashSet;

/// The part at a path of a tuple that is written out.
pub fn defined_part<'e>(e: &'e Exp, path: &[usize]) -> Option<&'e Exp> {
    match (e, path.split_first()) {
        (e, None) => Some(e),
        (Exp::Tuple(parts), Some((k, rest))) => defined_part(&parts[*k], rest),
        (_, Some(_)) => None,
    }
}

/// The part of an expression at a path, with bound variables of its own, without what the part does not need. `None` for
/// parts of variables.
pub fn project(vars: &mut Vars, e: &Exp, path: &[usize]) -> Option<Exp> {
    let own = copy(vars, e, &Substitution::default());
    part(vars, own, path).map(live)
}

/// The loop that computes one part of its state and what that needs; `None` where the parts cannot be told apart.
pub fn alone(e: &Exp, part: usize) -> Option<Exp> {
    let (e, _) = lets::project(e, &[part])?;
    Some(live(e))
}

/// An expression without what nothing uses.
pub fn live(e: Exp) -> Exp {
    needed(e, &mut FxHashSet::default())
}

/// An expression without the `let`s, and the parts of them, that nothing uses: beside a derivative that is zero, what leads to
/// it must not stay. Adds what the expression uses to `used`.
fn needed(e: Exp, used: &mut FxHashSet<Var>) -> Exp {
    e.for_each_size(&mut |s| {
        s.for_each_variable(&mut |v| {
            used.insert(v);
        })
    });
    match e {
        Exp::Let(vars, value, body) => {
            let body = needed(*body, used);
            let keep: Vec<usize> = (0..vars.len()).filter(|k| used.contains(&vars[*k])).collect();
            if keep.is_empty() {
                return body;
            }
            match lets::project(&value, &keep).filter(|_| keep.len() < vars.len()) {
                Some((value, kept)) => let_(kept.into_iter().map(|k| vars[k]).collect(), needed(value, used), body),
                None => let_(vars, needed(*value, used), body),
            }
        }
        Exp::Var(v) => {
            used.insert(v);
            e
        }
        e => e.map_children(&mut |c| needed(c, used)),
    }
}

fn part(vars: &mut Vars, e: Exp, path: &[usize]) -> Option<Exp> {
    let Some((first, rest)) = path.split_first() else { return Some(e) };
    Some(match e {
        Exp::Tuple(mut parts) => part(vars, parts.swap_remove(*first), rest)?,
        Exp::Let(names, value, body) => let_(names, *value, part(vars, *body, path)?),
        Exp::If(p, a, b) => if_(*p, part(vars, *a, path)?, part(vars, *b, path)?),
        Exp::For(i, size, body) => for_(i, size, part(vars, *body, path)?),
        Exp::Sum(range, body) => Exp::Sum(range, Box::new(part(vars, *body, path)?)),
        Exp::Guard(p, body) => guard(*p, part(vars, *body, path)?),
        Exp::Index(array, keys, site) => index(part(vars, *array, path)?, keys, site),
        Exp::Op(Op::Add, args, site) => {
            let args = args.into_iter().map(|a| part(vars, a, path)).collect::<Option<_>>()?;
            Exp::Op(Op::Add, args, site)
        }
        // A tuple that is not written out is taken apart.
        e @ (Exp::Var(_) | Exp::Loop(_) | Exp::History(_) | Exp::Singleton(..)) => {
            let Type::Tuple(types) = type_of_exp(vars, &e) else { return None };
            let names: Vec<Var> = types.iter().map(|ty| vars.fresh("part", ty.clone())).collect();
            let chosen = Exp::Var(names[*first]);
            let_(names, e, part(vars, chosen, rest)?)
        }
        Exp::Lit(_) | Exp::Op(..) | Exp::Partial(..) | Exp::Reduce(..) | Exp::Update(..) | Exp::Array(_) | Exp::Call(..) => return None,
    })
}

/// Several parts of an expression that gives a tuple, as a tuple.
pub fn select(vars: &mut Vars, e: &Exp, parts: &[usize]) -> Option<Exp> {
    let own = copy(vars, e, &Substitution::default());
    several(vars, own, parts).map(live)
}

fn several(vars: &mut Vars, e: Exp, wanted: &[usize]) -> Option<Exp> {
    Some(match e {
        Exp::Tuple(parts) => tuple(wanted.iter().map(|k| parts[*k].clone()).collect()),
        Exp::Let(names, value, body) => let_(names, *value, several(vars, *body, wanted)?),
        Exp::If(p, a, b) => if_(*p, several(vars, *a, wanted)?, several(vars, *b, wanted)?),
        Exp::For(i, size, body) => for_(i, size, several(vars, *body, wanted)?),
        Exp::Sum(range, body) => Exp::Sum(range, Box::new(several(vars, *body, wanted)?)),
        Exp::Guard(p, body) => guard(*p, several(vars, *body, wanted)?),
        Exp::Var(_)
        | Exp::Lit(_)
        | Exp::Op(..)
        | Exp::Partial(..)
        | Exp::Index(..)
        | Exp::Singleton(..)
        | Exp::Reduce(..)
        | Exp::History(_)
        | Exp::Loop(_)
        | Exp::Update(..)
        | Exp::Array(_)
        | Exp::Call(..) => return None,
    })
}
