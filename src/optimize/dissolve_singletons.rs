//! Sums of singletons: how each is executed is read off its key.
//!
//! | sum | becomes |
//! |---|---|
//! | `sum i. {i -> e}` | `for i. e` |
//! | `sum i. {i + c -> e(i)}` | `for t. [a <= t - c and t - c < b] * e(t - c)` |
//! | `sum i. {c -> e}` | `{c -> sum i. e}` |
//! | `sum i. for t. e` | `for t. sum i. e` |
//!
//! Keys that are data stay: such a sum adds into its destination. A key that is not known to be in range stays as
//! well, for its error. `let`s and guards around the singleton go along with it.

use super::simplify::arrays::linear;
use super::simplify::guards::{conjunction, conjuncts};
use super::{Context, Rewrite, rewrite_everywhere};
use crate::differentiate::scope::costs_nothing;
use crate::ir::build::*;
use crate::ir::facts::Facts;
use crate::ir::traverse::{Substitution, substitute};
use crate::ir::*;

pub fn dissolve_singletons(cx: &mut Context, exp: Exp) -> Exp {
    rewrite_everywhere(cx, exp, &rule)
}

/// What stands between a sum and its singleton.
pub enum Around {
    Let(Vec<Var>, Exp),
    Guard(Exp),
}

fn rule(cx: &mut Context, exp: Exp) -> Rewrite {
    let Exp::Sum(range, body) = exp else { return Err(exp) };
    if exp_size(&range.lo).is_none() || exp_size(&range.hi).is_none() {
        return Err(Exp::Sum(range, body));
    }
    let (around, core) = peel(*body);
    let bound: Vec<Var> = around.iter().flat_map(|a| if let Around::Let(vars, _) = a { vars.clone() } else { vec![] }).collect();
    let outside = cx.facts.clone();
    let mark = cx.facts.mark();
    cx.facts.enter_range(&range);
    for a in &around {
        match a {
            Around::Let(vars, value) => {
                if let [v] = vars.as_slice() {
                    cx.facts.define(*v, value);
                }
            }
            Around::Guard(p) => cx.facts.assume(p),
        }
    }
    let free = around.iter().all(|a| match a {
        Around::Let(_, value) => costs_nothing(cx.vars, value),
        Around::Guard(p) => costs_nothing(cx.vars, p),
    });
    let core = if free { core } else { one_place(cx, range.index, core) };
    let way = choose(cx, &outside, &range, &bound, free, &core);
    cx.facts.reset(mark);
    match way {
        Some(Way::Generate(position)) => Ok(generate(cx, *range, around, core, position)),
        Some(Way::Pull) => {
            let Exp::Singleton(places, value, site) = core else { unreachable!() };
            Ok(singleton(places, Exp::Sum(range, Box::new(wrap(around, *value))), site))
        }
        Some(Way::Interchange) => {
            let Exp::For(t, size, e) = core else { unreachable!() };
            Ok(for_(t, size, Exp::Sum(range, Box::new(wrap(around, *e)))))
        }
        None => Err(Exp::Sum(range, Box::new(wrap(around, core)))),
    }
}

/// A generated row that an equation with the sum's index leaves one place of is a singleton:
/// `for t. [t == k(i)] * e(t)`   is   `{k(i) -> e(k(i))}`, where the key is in range.
fn one_place(cx: &mut Context, i: Var, core: Exp) -> Exp {
    let Exp::For(t, size, body) = core else { return core };
    let Exp::Guard(p, e) = *body else { return Exp::For(t, size, body) };
    let mut rest = conjuncts(&p);
    let solved = rest.iter().enumerate().find_map(|(k, c)| {
        let Exp::Op(Op::Eq, sides, _) = c else { return None };
        let (sign, key) = linear(&exp_size(&sides[0])?.sub(&exp_size(&sides[1])?), t)?;
        let key = key.scale(-sign);
        (linear(&key, i).is_some() && cx.facts.in_range(&size_exp(&key), &size)).then_some((k, size_exp(&key)))
    });
    let Some((k, key)) = solved else { return Exp::For(t, size, Box::new(Exp::Guard(p, e))) };
    rest.remove(k);
    let value = match conjunction(rest) {
        Some(p) => guard(p, *e),
        None => *e,
    };
    let value = substitute(cx.vars, value, &Substitution::from_iter([(t, key.clone())]));
    singleton(vec![(key, size)], value, Site::default())
}

enum Way {
    /// The key at this position is solved for the index; the keys before it do not depend on it.
    Generate(usize),
    /// No key depends on the index.
    Pull,
    /// A sum of generated arrays.
    Interchange,
}

/// What is taken out of the sum must be in range there too, where the sum may be empty or its guards false.
fn choose(cx: &Context, outside: &Facts, range: &Range, bound: &[Var], free: bool, core: &Exp) -> Option<Way> {
    let i = range.index;
    let fixed = |e: &Exp| !e.mentions(i) && !e.mentions_any(bound);
    let fixed_size = |s: &Size| !s.mentions(i) && !bound.iter().any(|v| s.mentions(*v));
    match core {
        Exp::Singleton(places, _, site) => {
            let comes_out = |k: &Exp, s: &Size| fixed(k) && fixed_size(s) && outside.in_range(k, s);
            if places.iter().all(|(k, s)| comes_out(k, s)) {
                return Some(Way::Pull);
            }
            for (position, (key, size)) in places.iter().enumerate() {
                if solvable(key, i, bound) && fixed_size(size) && (site.passed || cx.facts.in_range(key, size)) {
                    return Some(Way::Generate(position));
                }
                if !comes_out(key, size) {
                    return None;
                }
            }
            None
        }
        // Several sums of one body: where all of them generate over the same index.
        Exp::Tuple(parts) => {
            let mut axes: Vec<&Size> = vec![];
            for part in parts {
                let Exp::Singleton(places, _, _) = part else { return None };
                let (key, size) = &places[0];
                if *key != Exp::Var(i) || !cx.facts.in_range(key, size) || !fixed_size(size) {
                    return None;
                }
                axes.push(size);
            }
            let same = axes.windows(2).all(|w| w[0].axis() == w[1].axis());
            same.then_some(Way::Generate(0))
        }
        Exp::For(_, size, _) => (fixed_size(size) && free).then_some(Way::Interchange),
        _ => None,
    }
}

fn solvable(key: &Exp, i: Var, bound: &[Var]) -> bool {
    exp_size(key).and_then(|s| linear(&s, i)).is_some_and(|(_, rest)| !bound.iter().any(|v| rest.mentions(*v)))
}

/// `sum i in lo..hi. around {(.., k(i), ..) -> e}` as an array generated over the place `t = k(i)`.
fn generate(cx: &mut Context, range: Range, around: Vec<Around>, core: Exp, position: usize) -> Exp {
    let i = range.index;
    let (key, axis) = match &core {
        Exp::Singleton(places, _, _) => places[position].clone(),
        Exp::Tuple(parts) => match &parts[0] {
            Exp::Singleton(places, _, _) => places[0].clone(),
            _ => unreachable!("chosen for singletons"),
        },
        _ => unreachable!("chosen for singletons"),
    };
    let (sign, rest) = linear(&exp_size(&key).expect("a size"), i).expect("solvable");
    let behind = |e: Exp| match e {
        Exp::Singleton(places, value, site) => {
            (places[..position].to_vec(), singleton(places[position + 1..].to_vec(), *value, site), site)
        }
        _ => unreachable!("chosen for singletons"),
    };
    let (before, inner, site) = match core {
        Exp::Tuple(parts) => (vec![], Exp::Tuple(parts.into_iter().map(|p| behind(p).1).collect()), Site::default()),
        core => behind(core),
    };
    let inner = wrap(around, inner);
    let (t, inner, value) = if sign == 1 && rest == Size::default() {
        (i, inner, Exp::Var(i))
    } else {
        let t = cx.vars.fresh(cx.vars.name(i).to_string(), Type::I64);
        let value = size_exp(&Size::var(t).sub(&rest).scale(sign));
        (t, substitute(cx.vars, inner, &Substitution::from_iter([(i, value.clone())])), value)
    };
    let mut facts = cx.facts.clone();
    facts.enter_for(t, &axis);
    let conditions = [op2(Op::Le, range.lo, value.clone()), op2(Op::Lt, value, range.hi)];
    let inner = conditions.into_iter().rev().filter(|c| facts.decide(cx.vars, c) != Some(true)).fold(inner, |e, c| guard(c, e));
    singleton(before, for_(t, axis, inner), site)
}

pub fn peel(exp: Exp) -> (Vec<Around>, Exp) {
    let mut around = vec![];
    let mut core = exp;
    loop {
        match core {
            Exp::Let(vars, value, body) => {
                around.push(Around::Let(vars, *value));
                core = *body;
            }
            Exp::Guard(p, e) => {
                around.push(Around::Guard(*p));
                core = *e;
            }
            core => return (around, core),
        }
    }
}

fn wrap(around: Vec<Around>, core: Exp) -> Exp {
    around.into_iter().rev().fold(core, |e, a| match a {
        Around::Let(vars, value) => let_(vars, value, e),
        Around::Guard(p) => guard(p, e),
    })
}
