//! Which arrays the steps of a loop change where they are.
//!
//! A line of arrays, `x, y, z`, is one in which each is the one before but for places written in it: `y = x with [k] = v`,
//! `z = y + {j -> w}`, a loop of such steps, or a choice between them. On the way back each of them is made of the next by writing what stood there
//! before, so that none is kept. For that every use of `x` must come before `y` is made; `ordered` sees to it.

use super::scope::{Scope, Statement};
use crate::ir::build::type_of_exp;
use crate::ir::*;
use rustc_hash::{FxHashMap, FxHashSet};

/// For each array that is another one but for places written in it, that other.
pub type Lineage = FxHashMap<Var, Var>;

/// All arrays of the lines.
pub fn changing(lineage: &Lineage) -> FxHashSet<Var> {
    lineage.iter().flat_map(|(written, of)| [*written, *of]).collect()
}

/// The array that another is in the end made of, which no statement binds, and the arrays between them with what each is made
/// of. `None` if the other is not made of one that way.
pub fn line(statements: &[Statement], last: &Exp) -> Option<(Var, Vec<(Var, Var)>)> {
    let &Exp::Var(mut at) = last else { return None };
    let mut line = vec![];
    while let Some((vars, exp)) = statements.iter().find(|(vars, _)| vars.contains(&at)) {
        let place = vars.iter().position(|v| *v == at)?;
        let of = made_of(statements, exp, place)?;
        line.push((at, of));
        at = of;
    }
    Some((at, line))
}

fn made_of(statements: &[Statement], exp: &Exp, place: usize) -> Option<Var> {
    let var = |e: &Exp| match e {
        Exp::Var(v) => Some(*v),
        _ => None,
    };
    match exp {
        Exp::Update(array, ..) => var(array),
        Exp::Op(Op::Add, args, _) => {
            let [a, b] = args.as_slice() else { return None };
            match (singleton_of(statements, a), singleton_of(statements, b)) {
                (_, Some(_)) => var(a),
                (Some(_), None) => var(b),
                (None, None) => None,
            }
        }
        Exp::Loop(l) => {
            let Scope { statements, results } = Scope::split(l.body.clone());
            let (first, _) = line(&statements, &results[place])?;
            match &l.init {
                _ if first != l.state[place] => None,
                Exp::Tuple(parts) => var(&parts[place]),
                whole => var(whole),
            }
        }
        Exp::If(_, a, b) => {
            let of = |branch: &Exp| {
                let Scope { statements, results } = Scope::split(branch.clone());
                line(&statements, &results[place]).map(|(first, _)| first)
            };
            of(a).filter(|first| of(b) == Some(*first))
        }
        Exp::Var(_)
        | Exp::Lit(_)
        | Exp::Op(..)
        | Exp::Partial(..)
        | Exp::Index(..)
        | Exp::Singleton(..)
        | Exp::For(..)
        | Exp::Sum(..)
        | Exp::Reduce(..)
        | Exp::History(_)
        | Exp::Guard(..)
        | Exp::Let(..)
        | Exp::Tuple(_)
        | Exp::Array(_)
        | Exp::Call(..) => None,
    }
}

/// The keys of the singleton that a variable stands for.
pub fn singleton_of<'a>(statements: &'a [Statement], e: &Exp) -> Option<&'a [(Exp, Size)]> {
    let Exp::Var(v) = e else { return None };
    statements.iter().find_map(|(vars, exp)| match exp {
        Exp::Singleton(keys, ..) if vars[..] == [*v] => Some(&keys[..]),
        _ => None,
    })
}

/// The statements with a name for every key and condition that reads an array which changes: what it was may be needed when
/// the array is another.
pub fn name_keys(vars: &mut Vars, statements: Vec<Statement>, changing: &FxHashSet<Var>) -> Vec<Statement> {
    let mut done = vec![];
    for (bound, exp) in statements {
        let mut named = |key: Exp| {
            if matches!(key, Exp::Var(_)) || !changing.iter().any(|v| key.mentions(*v)) {
                return key;
            }
            let k = vars.fresh("k", type_of_exp(vars, &key));
            done.push((vec![k], key));
            Exp::Var(k)
        };
        let exp = match exp {
            Exp::Update(array, keys, value, site) => Exp::Update(array, keys.into_iter().map(&mut named).collect(), value, site),
            Exp::Index(array, keys, site) => Exp::Index(array, keys.into_iter().map(&mut named).collect(), site),
            Exp::Singleton(keys, value, site) => Exp::Singleton(keys.into_iter().map(|(k, size)| (named(k), size)).collect(), value, site),
            Exp::If(p, a, b) => Exp::If(Box::new(named(*p)), a, b),
            Exp::Guard(p, e) => Exp::Guard(Box::new(named(*p)), e),
            exp => exp,
        };
        done.push((bound, exp));
    }
    done
}

/// The statements in an order in which every use of an array comes before another is made of it in its place; otherwise as
/// they were. `None` if there is no such order.
pub fn ordered(statements: Vec<Statement>, lineage: &Lineage) -> Option<Vec<Statement>> {
    let place: FxHashMap<Var, usize> = statements.iter().enumerate().flat_map(|(k, (vars, _))| vars.iter().map(move |v| (*v, k))).collect();
    let uses: Vec<Vec<Var>> = statements.iter().map(|(_, e)| e.free_vars()).collect();
    let mut before: Vec<FxHashSet<usize>> = uses.iter().map(|vars| vars.iter().filter_map(|v| place.get(v).copied()).collect()).collect();
    for (written, of) in lineage {
        let Some(writer) = place.get(written) else { continue };
        before[*writer].extend((0..uses.len()).filter(|k| k != writer && uses[*k].contains(of)));
    }
    let mut rest: Vec<Option<Statement>> = statements.into_iter().map(Some).collect();
    let mut done = vec![];
    while done.len() < rest.len() {
        let next = (0..rest.len()).find(|k| rest[*k].is_some() && before[*k].iter().all(|j| rest[*j].is_none()))?;
        done.extend(rest[next].take());
    }
    Some(done)
}
