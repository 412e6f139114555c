//! Several sums over the elements of one array become one sum, so that the array is not stored.
//!
//! ```text
//! let v = for i. e(i); let a = sum i. f(v[i]); (a, 2 * sum i. g(v[i]))
//!   =  let (a, b) = sum i. let v = e(i); let a = f(v); let b = g(v); (a, b); (a, 2 * b)
//! ```
//! Where the sums are the only uses of the array (or of several arrays that one loop gives) and none needs another's result.
//! This is how a loss and its gradient become one traversal of the data. Runs late: simplification takes such sums apart.

use super::fuse::{fuse, is_stored, reads_at, uses};
use super::{Context, Rewrite, rewrite_everywhere};
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, substitute};
use crate::ir::*;
use crate::scalar::Op;

/// The most steps of a loop that is little beside what stands around it.
const FEW: i64 = 8;

pub fn merge_sums(cx: &mut Context, exp: Exp) -> Exp {
    rewrite_everywhere(cx, exp, "merge_sums", &rule)
}

fn rule(cx: &mut Context, exp: Exp) -> Rewrite {
    let Exp::Let(vars, value, rest) = exp else { return Err(exp) };
    let Exp::For(index, size, e) = &*value else { return Err(Exp::Let(vars, value, rest)) };
    let total = uses(&rest, &vars);
    let mergeable = |size: &Size, e: &Exp| !is_stored(e) && total > 1 && worth_trying(&rest, &vars, size, total);
    let (size, new) = match filled(*index, e).filter(|(part, e)| mergeable(part, e)) {
        Some((part, e)) => (part.clone(), Exp::For(*index, part, Box::new(e.clone()))),
        None if mergeable(size, e) => (size.clone(), (*value).clone()),
        None => return Err(Exp::Let(vars, value, rest)),
    };
    let original = (*rest).clone();
    match merged(cx, &vars, &size, *rest, total) {
        // The one sum is now the only use.
        Some(rest) => {
            for v in &vars {
                if let Type::Array(mut shape, scalar) = cx.vars.ty(*v).clone() {
                    shape[0] = size.axis();
                    cx.vars.set_ty(*v, Type::Array(shape, scalar));
                }
            }
            let one = fuse(cx, Exp::Let(vars, Box::new(new), Box::new(rest)));
            // In the body of the sum others may meet.
            Ok(rewrite_everywhere(cx, one, "merge_inner", &inner_rule))
        }
        None => Err(Exp::Let(vars, value, Box::new(original))),
    }
}

/// Sums within a sum, over elements that are no loops themselves: those are better computed side by side.
fn inner_rule(cx: &mut Context, exp: Exp) -> Rewrite {
    match &exp {
        Exp::Let(_, value, _) if matches!(&**value, Exp::For(_, _, e) if is_short(e)) => rule(cx, exp),
        _ => Err(exp),
    }
}

/// Whether all loops in it have few steps, and a known number of them.
fn is_short(e: &Exp) -> bool {
    let few = |size: Option<Size>| size.and_then(|s| s.as_constant()).is_some_and(|n| n <= FEW);
    let own = match e {
        Exp::For(_, size, _) => few(Some(size.clone())),
        Exp::Sum(range, _) | Exp::Reduce(_, range, _, _) => few(exp_size(&range.hi)) && few(exp_size(&range.lo)),
        Exp::History(_) | Exp::Loop(_) | Exp::Call(..) => false,
        _ => true,
    };
    let mut short = own;
    e.for_each_child(&mut |c| short = short && is_short(c));
    short
}

/// The part of an array's first axis that is not zero, and what is there: of `for i in 0..n. [i < m] * e`, `m` and `e`.
fn filled(index: Var, e: &Exp) -> Option<(Size, &Exp)> {
    let Exp::Guard(condition, e) = e else { return None };
    let Exp::Op(Op::Lt, args, _) = &**condition else { return None };
    let part = exp_size(&args[1]).filter(|part| args[0] == Exp::Var(index) && !part.mentions(index))?;
    Some((part, e))
}

fn is_consumer(exp: &Exp, vars: &[Var], size: &Size) -> bool {
    let Exp::Sum(range, body) = exp else { return false };
    let whole = range.lo == i64(0) && exp_size(&range.hi).is_some_and(|h| h.axis() == size.axis());
    whole && uses(exp, vars) > 0 && reads_at(body, vars, range.index) == uses(exp, vars)
}

/// Whether all uses stand in two or more sums that could be merged.
fn worth_trying(exp: &Exp, vars: &[Var], size: &Size, total: usize) -> bool {
    fn look(exp: &Exp, vars: &[Var], size: &Size, found: &mut (usize, usize)) {
        match exp {
            Exp::Sum(..) if is_consumer(exp, vars, size) => {
                found.0 += 1;
                found.1 += uses(exp, vars);
            }
            Exp::Let(..) | Exp::Op(..) | Exp::Tuple(_) | Exp::Array(_) => exp.for_each_child(&mut |e| look(e, vars, size, found)),
            Exp::Guard(p, e) if is_nonempty(p, size) => look(e, vars, size, found),
            _ => {}
        }
    }
    let mut found = (0, 0);
    look(exp, vars, size, &mut found);
    found.0 > 1 && found.1 == total
}

fn merged(cx: &mut Context, vars: &[Var], size: &Size, rest: Exp, total: usize) -> Option<Exp> {
    // Each sum gets a name of its own.
    let mut bindings: Vec<(Vec<Var>, Exp)> = vec![];
    let mut here = rest;
    let last = loop {
        match here {
            Exp::Let(names, value, body) => {
                let value = match *value {
                    value if is_consumer(&value, vars, size) => value,
                    value => named(cx, value, vars, size, &mut bindings),
                };
                bindings.push((names, value));
                here = *body;
            }
            last => break named(cx, last, vars, size, &mut bindings),
        }
    };
    let places: Vec<usize> = (0..bindings.len()).filter(|k| is_consumer(&bindings[*k].1, vars, size)).collect();
    let covered: usize = places.iter().map(|k| uses(&bindings[*k].1, vars)).sum();
    let (&first, &end) = (places.first()?, places.last()?);
    if covered != total || places.len() < 2 {
        return None;
    }
    let results: Vec<Var> = places.iter().flat_map(|k| bindings[*k].0.iter().copied()).collect();
    if places.iter().any(|k| bindings[*k].1.mentions_any(&results)) {
        return None;
    }
    // Down to the last of them, if nothing between needs one; or up to the first, if that has all that they need.
    let between = |k: usize| !places.contains(&k);
    let down = (first..end).filter(|k| between(*k)).all(|k| !bindings[k].1.mentions_any(&results));
    let late: Vec<Var> = (first..end).filter(|k| between(*k)).flat_map(|k| bindings[k].0.iter().copied()).collect();
    let up = places.iter().all(|k| !bindings[*k].1.mentions_any(&late));
    let at = if down {
        end
    } else if up {
        first
    } else {
        return None;
    };
    let mut out = vec![];
    let mut sums = vec![];
    let mut place = 0;
    for (k, (names, value)) in bindings.into_iter().enumerate() {
        match value {
            Exp::Sum(range, body) if places.contains(&k) => {
                if k == at {
                    place = out.len();
                }
                sums.push((names, range, body));
            }
            value => out.push((names, value)),
        }
    }
    let index = sums[0].1.index;
    let range = sums[0].1.clone();
    let (mut names, mut inner, mut parts) = (vec![], vec![], vec![]);
    for (results, range, body) in sums {
        let body = substitute(cx.vars, *body, &Substitution::from_iter([(range.index, Exp::Var(index))]));
        let own: Vec<Var> = results
            .iter()
            .map(|v| {
                let (name, ty) = (cx.vars.name(*v).to_string(), cx.vars.ty(*v).clone());
                cx.vars.fresh(name, ty)
            })
            .collect();
        parts.extend(own.iter().map(|v| Exp::Var(*v)));
        inner.push((own, body));
        names.extend(results);
    }
    out.insert(place, (names, Exp::Sum(range, Box::new(lets(inner, Exp::Tuple(parts))))));
    Some(lets(out, last))
}

/// The expression with the sums that it is made of by arithmetic and in tuples named before it.
fn named(cx: &mut Context, exp: Exp, vars: &[Var], size: &Size, bindings: &mut Vec<(Vec<Var>, Exp)>) -> Exp {
    match exp {
        Exp::Sum(..) if is_consumer(&exp, vars, size) => {
            let ty = type_of_exp(cx.vars, &exp);
            if matches!(ty, Type::Tuple(_)) {
                return exp;
            }
            let v = cx.vars.fresh("total", ty);
            bindings.push((vec![v], exp));
            Exp::Var(v)
        }
        Exp::Op(..) | Exp::Tuple(_) | Exp::Array(_) if exp.mentions_any(vars) => {
            exp.map_children(&mut |e| named(cx, e, vars, size, bindings))
        }
        // Where the condition does not hold, nothing is summed.
        Exp::Guard(p, e) if is_nonempty(&p, size) && e.mentions_any(vars) => match *e {
            Exp::Let(names, value, body) if is_consumer(&value, vars, size) => {
                bindings.push((names, *value));
                guard(*p, named(cx, *body, vars, size, bindings))
            }
            e => guard(*p, named(cx, e, vars, size, bindings)),
        },
        exp => exp,
    }
}

/// Whether a condition says that there is something of this size.
fn is_nonempty(p: &Exp, size: &Size) -> bool {
    matches!(p, Exp::Op(Op::Lt, args, _) if args[0] == i64(0) && exp_size(&args[1]).is_some_and(|s| s.axis() == size.axis()))
}
