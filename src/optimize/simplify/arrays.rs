//! Reads, generated arrays and sums: a read of a generated array is its body there, a generated array of reads is the
//! array itself, reads move into what they read from, constant factors out of sums.

use super::super::{Context, Rewrite};
use super::guards::{may_fail, never_fails};
use crate::differentiate::scope::costs_nothing;
use crate::ir::build::*;
use crate::ir::facts::Facts;
use crate::ir::traverse::{Substitution, substitute};
use crate::ir::*;

pub fn rewrite(cx: &mut Context, exp: Exp) -> Rewrite {
    match exp {
        Exp::Index(array, keys, site) => read(cx, *array, keys, site),
        Exp::For(i, size, body) => generate(cx, i, size, *body),
        Exp::Sum(range, body) => sum_of(cx, *range, *body),
        Exp::Reduce(kind, range, body, site) => only_step(cx, kind, *range, *body, site),
        Exp::Loop(l) => few_steps(cx, *l),
        // A history of one step has two states, so only the number of the step is known.
        Exp::History(mut h) if h.size.as_constant() == Some(1) && h.body.mentions(h.index) => {
            h.body = substitute(cx.vars, h.body, &Substitution::from_iter([(h.index, i64(0))]));
            Ok(Exp::History(h))
        }
        Exp::Op(op, args, site) => float_lets(cx, Exp::Op(op, args, site), &mut |cx, e| arrays_added(cx, e)),
        Exp::Singleton(..) | Exp::Array(_) | Exp::Tuple(_) => float_lets(cx, exp, &mut |_, e| Err(e)),
        // A chain of any length comes out at once.
        Exp::Let(vars, mut value, body) if matches!(*value, Exp::Let(..)) => {
            let mut bindings = vec![];
            while let Exp::Let(inner, first, second) = *value {
                bindings.push((inner, *first));
                value = second;
            }
            Ok(lets(bindings, let_(vars, *value, *body)))
        }
        exp => Err(exp),
    }
}

/// `let`s of strict operands move around the operation.
fn float_lets(cx: &mut Context, exp: Exp, otherwise: &mut dyn FnMut(&mut Context, Exp) -> Rewrite) -> Rewrite {
    let mut has_let = false;
    exp.for_each_child(&mut |e| has_let |= matches!(e, Exp::Let(..)));
    if !has_let {
        return otherwise(cx, exp);
    }
    let mut bindings = vec![];
    let exp = exp.map_children(&mut |e| {
        let mut e = e;
        while let Exp::Let(vars, value, body) = e {
            bindings.push((vars, *value));
            e = *body;
        }
        e
    });
    Ok(lets(bindings, exp))
}

fn read(cx: &mut Context, array: Exp, keys: Vec<Exp>, site: Site) -> Rewrite {
    match array {
        Exp::For(i, size, body) if may_replace(cx, i, &size, &body, &keys[0]) => {
            let mut keys = keys.into_iter();
            let first = keys.next().expect("at least one key");
            let body = put_in(cx, i, first, *body);
            Ok(index(body, keys.collect(), site))
        }
        Exp::Let(vars, value, body) => Ok(let_(vars, *value, index(*body, keys, site))),
        Exp::If(p, a, b) if keys.iter().all(|k| cheap(cx, k)) => Ok(if_(*p, index(*a, keys.clone(), site), index(*b, keys, site))),
        Exp::Guard(p, e) => Ok(guard(*p, index(*e, keys, site))),
        Exp::Op(Op::Add, args, _) if keys.iter().all(|k| cheap(cx, k)) => {
            Ok(Exp::Op(Op::Add, args.into_iter().map(|a| index(a, keys.clone(), site)).collect(), Site::default()))
        }
        Exp::Array(items) => match keys[0] {
            Exp::Lit(Lit::I64(k)) if (0..items.len() as i64).contains(&k) => {
                Ok(index(items.into_iter().nth(k as usize).expect("in range"), keys[1..].to_vec(), site))
            }
            _ => Err(Exp::Index(Box::new(Exp::Array(items)), keys, site)),
        },
        Exp::Singleton(places, value, at) => {
            let known = |k: &Exp, size: &Size| cheap(cx, k) && cx.facts.in_range(k, size);
            let placed = |k: &Exp, size: &Size| known(k, size) || (at.passed && cheap(cx, k));
            if places.iter().zip(&keys).all(|((k, size), j)| placed(k, size) && known(j, size)) {
                let count = places.len().min(keys.len());
                let same = places.iter().zip(&keys).map(|((k, _), j)| op2(Op::Eq, k.clone(), j.clone())).reduce(|a, b| op2(Op::And, a, b));
                let rest = index(singleton(places[count..].to_vec(), *value, at), keys[count..].to_vec(), site);
                Ok(guard(same.expect("at least one key"), rest))
            } else {
                Err(Exp::Index(Box::new(Exp::Singleton(places, value, at)), keys, site))
            }
        }
        Exp::Sum(range, body) if sum_solves(cx, &range, &body, &keys) => Ok(Exp::Sum(range, Box::new(index(*body, keys, site)))),
        array => float_lets(cx, Exp::Index(Box::new(array), keys, site), &mut |_, e| Err(e)),
    }
}

/// A key that may stand in several places and in loops: atoms, index arithmetic and reads.
pub fn cheap(cx: &Context, key: &Exp) -> bool {
    let read = matches!(key, Exp::Index(array, keys, _) if matches!(**array, Exp::Var(_)) && keys.iter().all(|k| never_fails(cx, k)));
    (read || never_fails(cx, key)) && costs_nothing(cx.vars, key)
}

/// An integer that is used several times: itself, or a variable bound to it if it is not cheap.
pub fn shared(cx: &mut Context, exp: Exp, bindings: &mut Vec<(Vec<Var>, Exp)>) -> Exp {
    if cheap(cx, &exp) {
        return exp;
    }
    let v = cx.vars.fresh("k", Type::I64);
    bindings.push((vec![v], exp));
    Exp::Var(v)
}

/// Whether reading at `key` may become the body at `key`: no error may be lost by it.
fn may_replace(cx: &Context, i: Var, size: &Size, body: &Exp, key: &Exp) -> bool {
    cx.facts.in_range(key, size) || checks(cx, i, size, body)
}

/// Whether evaluating the body reads an axis of this size at `i`, which checks `i` as well.
fn checks(cx: &Context, i: Var, size: &Size, body: &Exp) -> bool {
    match body {
        Exp::Index(array, keys, _) => {
            let ty = type_of_exp(cx.vars, array);
            keys.iter().zip(ty.shape()).any(|(k, s)| *k == Exp::Var(i) && s.axis() == size.axis())
                || keys.iter().any(|k| checks(cx, i, size, k))
                || checks(cx, i, size, array)
        }
        Exp::Op(_, args, _) => args.iter().any(|a| checks(cx, i, size, a)),
        _ => false,
    }
}

/// The body where `i` is `key`: by substitution, or where that would repeat work or is no size, by a `let`.
pub fn put_in(cx: &mut Context, i: Var, key: Exp, body: Exp) -> Exp {
    let mut in_sizes = false;
    walk_sizes(&body, i, &mut in_sizes);
    if !cheap(cx, &key) || (in_sizes && exp_size(&key).is_none()) {
        return let_(vec![i], key, body);
    }
    substitute(cx.vars, body, &Substitution::from_iter([(i, key)]))
}
fn walk_sizes(exp: &Exp, i: Var, found: &mut bool) {
    exp.for_each_size(&mut |s| *found |= s.mentions(i));
    exp.for_each_child(&mut |e| walk_sizes(e, i, found));
}

/// Whether reading a sum at one place leaves conditions that can be solved for the indices summed over. The place must
/// be known to be there: of an empty sum nothing is read.
fn sum_solves(cx: &Context, range: &Range, body: &Exp, keys: &[Exp]) -> bool {
    let ty = type_of_exp(cx.vars, body);
    let known = |k: &Exp, s: &Size| cheap(cx, k) && cx.facts.in_range(k, s);
    let mut facts = cx.facts.clone();
    facts.enter_range(range);
    keys.iter().zip(ty.shape()).all(|(k, s)| known(k, s)) && singletons_solve(&mut facts, body, &mut vec![range.index], &mut vec![])
}

/// `indices` are those of the sums around, `bound` what `let`s and loops inside them bind.
fn singletons_solve(facts: &mut Facts, exp: &Exp, indices: &mut Vec<Var>, bound: &mut Vec<Var>) -> bool {
    match exp {
        Exp::Singleton(places, value, site) => {
            let solves = |s: &Size| indices.iter().any(|i| linear(s, *i).is_some()) || indices.iter().all(|i| !s.mentions(*i));
            let fixed = |s: &Size| !bound.iter().any(|v| s.mentions(*v));
            places.iter().all(|(k, size)| exp_size(k).is_some_and(|s| solves(&s) && fixed(&s)) && (site.passed || facts.in_range(k, size)))
                && singletons_solve(facts, value, indices, bound)
        }
        Exp::Sum(range, body) => {
            indices.push(range.index);
            facts.enter_range(range);
            singletons_solve(facts, body, indices, bound)
        }
        // What has to be built whole is not built for every place read.
        Exp::History(_) | Exp::Loop(_) | Exp::Update(..) | Exp::Call(..) => false,
        Exp::Let(vars, value, body) => {
            bound.extend(vars);
            !matches!(**value, Exp::For(..) | Exp::Sum(..) | Exp::History(_) | Exp::Loop(_))
                && singletons_solve(facts, body, indices, bound)
        }
        Exp::For(i, size, body) => {
            bound.push(*i);
            facts.enter_for(*i, size);
            singletons_solve(facts, body, indices, bound)
        }
        Exp::Guard(p, body) => {
            let mark = facts.mark();
            facts.assume(p);
            let solves = singletons_solve(facts, body, indices, bound);
            facts.reset(mark);
            solves
        }
        Exp::If(_, a, b) => singletons_solve(facts, a, indices, bound) && singletons_solve(facts, b, indices, bound),
        Exp::Op(_, args, _) => args.iter().all(|a| singletons_solve(facts, a, indices, bound)),
        Exp::Var(_) | Exp::Lit(_) | Exp::Index(..) | Exp::Partial(..) | Exp::Reduce(..) | Exp::Array(_) | Exp::Tuple(_) => true,
    }
}

/// `size` as `±var + rest`: the sign and the rest.
pub fn linear(size: &Size, var: Var) -> Option<(i64, Size)> {
    let alone = crate::types::size::Atom::Var(var);
    let coefficient = size.terms().find(|(m, _)| m[..] == [alone.clone()]).map(|(_, c)| c)?;
    let rest = size.sub(&Size::var(var).scale(coefficient));
    (coefficient.abs() == 1 && !rest.mentions(var)).then_some((coefficient, rest))
}

fn generate(cx: &mut Context, i: Var, size: Size, body: Exp) -> Rewrite {
    let mark = cx.facts.mark();
    // for i. x[k, i]   is   x[k]
    if let Exp::Index(array, keys, site) = &body {
        let (last, front) = keys.split_last().expect("at least one key");
        if *last == Exp::Var(i) && !array.mentions(i) && !front.iter().any(|k| k.mentions(i)) {
            let ty = type_of_exp(cx.vars, array);
            if ty.shape().get(front.len()).is_some_and(|s| s.axis() == size.axis()) {
                return Ok(index((**array).clone(), front.to_vec(), *site));
            }
        }
    }
    // A row of zeros but for one place is a bracket, as in the identity matrix. One and the same place of all rows stays:
    // what adds such rows touches that place alone, where a bracket would be asked at all places.
    if let Exp::Singleton(places, value, site) = body {
        let (key, axis) = places[0].clone();
        if !key.mentions(i) {
            return Err(for_(i, size, Exp::Singleton(places, value, site)));
        }
        cx.facts.enter_for(i, &size);
        let known = never_fails(cx, &key) && cx.facts.in_range(&key, &axis);
        cx.facts.reset(mark);
        if !known {
            return Err(for_(i, size, Exp::Singleton(places, value, site)));
        }
        let j = cx.vars.fresh("j", Type::I64);
        let rest = singleton(places[1..].to_vec(), *value, site);
        return Ok(for_(i, size, for_(j, axis, guard(op2(Op::Eq, j, key), rest))));
    }
    Err(for_(i, size, body))
}

/// How many steps a range has, where that is a number: none if it is not positive.
fn steps(range: &Range) -> Option<i64> {
    exp_size(&range.hi)?.sub(&exp_size(&range.lo)?).as_constant()
}

/// A reduction of a single element is that element, and the first of the largest is where it stands.
fn only_step(cx: &mut Context, kind: Reduction, range: Range, body: Exp, site: Site) -> Rewrite {
    if steps(&range) == Some(1) {
        let element = substitute(cx.vars, body.clone(), &Substitution::from_iter([(range.index, range.lo.clone())]));
        if !matches!(kind, Reduction::ArgMax | Reduction::ArgMin) {
            return Ok(element);
        }
        if total(cx, &element) {
            return Ok(range.lo);
        }
    }
    Err(Exp::Reduce(kind, Box::new(range), Box::new(body), site))
}

/// A loop of no step is its first state, one of a single step that step.
fn few_steps(cx: &mut Context, l: Iteration) -> Rewrite {
    let Trip::For(range) = &l.trip else { return Err(Exp::Loop(Box::new(l))) };
    match steps(range) {
        Some(1) => {
            let step = substitute(cx.vars, l.body, &Substitution::from_iter([(range.index, range.lo.clone())]));
            Ok(let_(l.state, l.init, step))
        }
        Some(n) if n <= 0 => Ok(l.init),
        _ => Err(Exp::Loop(Box::new(l))),
    }
}

fn sum_of(cx: &mut Context, range: Range, body: Exp) -> Rewrite {
    if is_zero(&body) {
        return Ok(body);
    }
    match steps(&range) {
        Some(1) => return Ok(substitute(cx.vars, body, &Substitution::from_iter([(range.index, range.lo)]))),
        Some(c) if c <= 0 => {
            let ty = type_of_exp(cx.vars, &body);
            return Ok(zero(cx.vars, &ty));
        }
        _ => {}
    }
    let i = range.index;
    let float = scalar_of(cx.vars, &body).is_some_and(Scalar::is_float);
    match body {
        Exp::Op(Op::Neg, args, _) if float => {
            Ok(op1(Op::Neg, Exp::Sum(Box::new(range), Box::new(args.into_iter().next().expect("one operand")))))
        }
        Exp::Op(Op::Mul, ref args, _) if float => {
            let (outer, inner): (Vec<Exp>, Vec<Exp>) = factors(args).into_iter().partition(|f| !f.mentions(i) && total(cx, f));
            if outer.is_empty() || inner.is_empty() {
                return Err(Exp::Sum(Box::new(range), Box::new(body)));
            }
            let product = |fs: Vec<Exp>| fs.into_iter().reduce(mul).expect("at least one factor");
            Ok(mul(product(outer), Exp::Sum(Box::new(range), Box::new(product(inner)))))
        }
        // Arrays added place by place: each may take its own way.
        Exp::Op(Op::Add, args, _) if !float && args.iter().any(has_singleton) => {
            let sums = args
                .into_iter()
                .map(|a| {
                    let one = Exp::Sum(Box::new(range.clone()), Box::new(a));
                    traverse::copy(cx.vars, &one, &Substitution::default())
                })
                .collect();
            Ok(Exp::Op(Op::Add, sums, Site::default()))
        }
        body => Err(Exp::Sum(Box::new(range), Box::new(body))),
    }
}

pub fn factors(args: &[Exp]) -> Vec<Exp> {
    args.iter()
        .flat_map(|a| match a {
            Exp::Op(Op::Mul, inner, _) => factors(inner),
            a => vec![a.clone()],
        })
        .collect()
}

pub fn has_singleton(exp: &Exp) -> bool {
    match exp {
        Exp::Singleton(..) => true,
        Exp::Op(_, args, _) => args.iter().any(has_singleton),
        Exp::Sum(_, e) | Exp::Guard(_, e) | Exp::For(_, _, e) | Exp::Let(_, _, e) => has_singleton(e),
        Exp::If(_, a, b) => has_singleton(a) || has_singleton(b),
        Exp::Tuple(parts) => parts.iter().any(has_singleton),
        _ => false,
    }
}

/// Whether evaluation cannot fail, so that it may happen where it did not before.
pub fn total(cx: &Context, exp: &Exp) -> bool {
    total_with(cx.vars, &cx.facts, exp)
}
pub fn total_with(vars: &Vars, facts: &Facts, exp: &Exp) -> bool {
    let total = |e: &Exp| total_with(vars, facts, e);
    match exp {
        Exp::Var(_) | Exp::Lit(_) => true,
        Exp::Index(array, keys, site) => total(array) && (site.certain || all_in_range(vars, facts, array, keys)) && keys.iter().all(total),
        Exp::Singleton(places, value, _) => places.iter().all(|(k, s)| facts.in_range(k, s) && total(k)) && total(value),
        Exp::Op(op, args, _) => !may_fail(vars, facts, *op, args) && args.iter().all(total),
        Exp::Partial(_, _, parts) | Exp::Tuple(parts) | Exp::Array(parts) => parts.iter().all(total),
        Exp::Update(array, keys, value, _) => {
            all_in_range(vars, facts, array, keys) && keys.iter().all(total) && total(array) && total(value)
        }
        Exp::Reduce(Reduction::ArgMax | Reduction::ArgMin, ..) | Exp::Call(..) => false,
        // It may not end.
        Exp::Loop(l) if matches!(l.trip, Trip::While(_)) => false,
        Exp::Let(..) | Exp::For(..) | Exp::Sum(..) | Exp::Reduce(..) | Exp::History(_) | Exp::Loop(_) | Exp::Guard(..) | Exp::If(..) => {
            // The facts of binders and branches inside are gathered on a copy.
            let mut facts = facts.clone();
            let mut all = true;
            traverse::for_each_child_with_facts(exp, &mut facts, &mut |e, facts| all = all && total_with(vars, facts, e));
            all
        }
    }
}

fn all_in_range(vars: &Vars, facts: &Facts, array: &Exp, keys: &[Exp]) -> bool {
    let within = |shape: &[Size]| keys.iter().zip(shape).all(|(k, s)| facts.in_range(k, s));
    match array {
        Exp::Var(v) => within(vars.ty(*v).shape()),
        array => within(type_of_exp(vars, array).shape()),
    }
}

/// `for i. a` + `for j. b`   is   `for i. a + b`; a variable or read takes part through its elements.
fn arrays_added(cx: &mut Context, exp: Exp) -> Rewrite {
    let Exp::Op(Op::Add, args, _) = &exp else { return Err(exp) };
    let [a, b] = args.as_slice() else { return Err(exp) };
    // {k -> a} + {k -> b}   is   {k -> a + b}
    if let (Exp::Singleton(k, a, site), Exp::Singleton(l, b, _)) = (a, b) {
        if k == l {
            return Ok(singleton(k.clone(), add((**a).clone(), (**b).clone()), *site));
        }
    }
    // {k -> a} + [p] * {(k, l) -> b}   is   {k -> a + [p] * {l -> b}}
    if let Exp::Singleton(front, first, site) = a {
        let (condition, second) = match b {
            Exp::Guard(p, e) => (Some(p), &**e),
            e => (None, e),
        };
        if let Exp::Singleton(places, b, other) = second {
            if places.len() > front.len() && places.starts_with(front) {
                let rest = singleton(places[front.len()..].to_vec(), (**b).clone(), *other);
                let rest = condition.into_iter().fold(rest, |e, p| guard((**p).clone(), e));
                return Ok(singleton(front.clone(), add((**first).clone(), rest), *site));
            }
        }
    }
    // What fills the array comes first, so that few places are added to it; not it to an array that is zero but for a few.
    if scatters(a) && !scatters(b) {
        return Ok(add(b.clone(), a.clone()));
    }
    // The rest of a read is done for every element, so it must be no work.
    let plain = |e: &Exp| match e {
        Exp::Index(array, keys, _) => matches!(**array, Exp::Var(_)) && keys.iter().all(|k| costs_nothing(cx.vars, k)),
        e => matches!(e, Exp::Var(_) | Exp::For(..)),
    };
    if !(plain(a) && plain(b)) || !(matches!(a, Exp::For(..)) || matches!(b, Exp::For(..))) {
        return Err(exp);
    }
    // What is added at a few places of every row stays by itself: the rest of the array is not for it to go through.
    if scatters(a) != scatters(b) {
        return Err(exp);
    }
    let Type::Array(shape, _) = type_of_exp(cx.vars, a) else { return Err(exp) };
    let name = match (a, b) {
        (Exp::For(i, ..), _) | (_, Exp::For(i, ..)) => cx.vars.name(*i).to_string(),
        _ => unreachable!("one of them is generated"),
    };
    let i = cx.vars.fresh(name, Type::I64);
    let mut element = |e: &Exp| match e {
        Exp::For(j, _, body) => substitute(cx.vars, (**body).clone(), &Substitution::from_iter([(*j, Exp::Var(i))])),
        e => index(e.clone(), vec![Exp::Var(i)], Site::default()),
    };
    let (a, b) = (element(a), element(b));
    Ok(for_(i, shape[0].clone(), add(a, b)))
}

/// Whether the expression is made of singletons alone.
fn scatters(exp: &Exp) -> bool {
    match exp {
        Exp::Singleton(..) => true,
        Exp::For(_, _, body) | Exp::Sum(_, body) | Exp::Guard(_, body) | Exp::Let(_, _, body) => scatters(body),
        Exp::Op(Op::Add, args, _) => args.iter().all(scatters),
        _ => false,
    }
}
