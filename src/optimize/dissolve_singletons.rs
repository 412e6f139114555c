//! Sums of singletons: how each is executed is read off its key.
//!
//! | sum | becomes |
//! |---|---|
//! | `sum i. {i -> e}` | `for i. e` |
//! | `sum i. {i + c -> e(i)}` | `for t. [a <= t - c and t - c < b] * e(t - c)` |
//! | `sum i. {c -> e}` | `{c -> sum i. e}` |
//! | `sum i. ({(c, i) -> e}, {i -> f})` | `let (a, b) = for i. (e, f); ({c -> a}, b)` |
//! | `sum i. (x, {(c, i) -> e})` | `let (a, b) = sum i. (x, {i -> e}); (a, {c -> b})`, where `c` is an index |
//! | `sum i. for t. e` | `for t. sum i. e` |
//!
//! Keys that are data stay: such a sum adds into its destination. A key that is not known to be in range stays as
//! well, for its error. `let`s and guards around the singleton go along with it.

use super::simplify::arrays::{linear, total_with};
use super::simplify::guards::{conjunction, conjuncts};
use super::{Context, Rewrite, rewrite_everywhere};
use crate::differentiate::scope::costs_nothing;
use crate::ir::build::*;
use crate::ir::facts::Facts;
use crate::ir::traverse::{Substitution, substitute};
use crate::ir::*;
use rustc_hash::FxHashSet;

pub fn dissolve_singletons(cx: &mut Context, exp: Exp) -> Exp {
    let mut carried = FxHashSet::default();
    added_to_states(&exp, &mut carried);
    let mut known: Vec<Var> = carried.iter().copied().collect();
    known.sort();
    rewrite_everywhere(cx, exp, ("dissolve_singletons", known), &|cx, e| rule(cx, e, &carried))
}

/// The indices of sums that the steps of loops add to their states: these must not become as long as the state, unless
/// they fill it.
fn added_to_states(exp: &Exp, found: &mut FxHashSet<Var>) {
    if let Exp::Loop(l) = exp {
        addends(&l.body, &l.state, found);
    }
    exp.for_each_child(&mut |e| added_to_states(e, found));
}

/// The variables that a step adds to states, and on the way the indices of sums.
fn addends(step: &Exp, state: &[Var], found: &mut FxHashSet<Var>) -> Vec<Var> {
    let is_state = |e: &Exp| matches!(e, Exp::Var(v) if state.contains(v));
    match step {
        Exp::Let(vars, value, rest) => {
            let added = addends(rest, state, found);
            if vars.iter().any(|v| added.contains(v)) {
                indices(value, found);
            }
            added
        }
        Exp::If(_, a, b) => [addends(a, state, found), addends(b, state, found)].concat(),
        Exp::Tuple(parts) => parts.iter().flat_map(|e| addends(e, state, found)).collect(),
        Exp::Op(Op::Add, args, _) => {
            let first = match &args[0] {
                inner @ Exp::Op(Op::Add, ..) => addends(inner, state, found),
                e if is_state(e) => vec![],
                _ => return vec![],
            };
            indices(&args[1], found);
            first.into_iter().chain(if let Exp::Var(v) = args[1] { Some(v) } else { None }).collect()
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
        | Exp::Loop(_)
        | Exp::Update(..)
        | Exp::Guard(..)
        | Exp::Array(_)
        | Exp::Call(..) => vec![],
    }
}

/// The indices of the sums that an expression adds up.
fn indices(exp: &Exp, found: &mut FxHashSet<Var>) {
    match exp {
        Exp::Sum(range, body) => {
            found.insert(range.index);
            indices(body, found);
        }
        Exp::Let(_, _, body) | Exp::Guard(_, body) => indices(body, found),
        Exp::If(_, a, b) => [a, b].iter().for_each(|e| indices(e, found)),
        Exp::Tuple(parts) | Exp::Op(Op::Add, parts, _) => parts.iter().for_each(|e| indices(e, found)),
        Exp::Var(_)
        | Exp::Lit(_)
        | Exp::Op(..)
        | Exp::Partial(..)
        | Exp::Index(..)
        | Exp::Singleton(..)
        | Exp::For(..)
        | Exp::Reduce(..)
        | Exp::History(_)
        | Exp::Loop(_)
        | Exp::Update(..)
        | Exp::Array(_)
        | Exp::Call(..) => {}
    }
}

/// What stands between a sum and its singleton.
pub enum Around {
    Let(Vec<Var>, Exp),
    Guard(Exp),
}

fn rule(cx: &mut Context, exp: Exp, carried: &FxHashSet<Var>) -> Rewrite {
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
    let guarded = around.iter().any(|a| matches!(a, Around::Guard(_)));
    let scope = Scope { facts: &outside, range: &range, bound: &bound, free, guarded, carried: carried.contains(&range.index) };
    let way = choose(cx, &scope, &core);
    cx.facts.reset(mark);
    let some = op2(Op::Lt, range.lo.clone(), range.hi.clone());
    let runs = cx.facts.decide(cx.vars, &some) == Some(true);
    // Keys that were checked where they were read are known to be in range where the sum has a term, and only there is it
    // certain that they can be computed.
    let fails = match &core {
        Exp::Singleton(places, ..) => !places.iter().all(|(k, _)| scope.total(cx.vars, k)),
        Exp::Tuple(parts) => {
            !parts.iter().all(|e| matches!(e, Exp::Singleton(places, ..) if places.iter().all(|(k, _)| scope.total(cx.vars, k))))
        }
        _ => false,
    };
    let known = |places: &[(Exp, Size)]| scope.all_known(places) && (places.is_empty() || !fails);
    let under = |places: &[(Exp, Size)], e: Exp| if runs || known(places) { e } else { guard(some.clone(), e) };
    match way {
        Some(Way::Generate(position)) => {
            let Exp::Singleton(mut places, value, site) = core else { unreachable!("chosen for singletons") };
            let behind = places.split_off(position + 1);
            let (key, axis) = places.pop().expect("the key that is solved");
            let inner = wrap(around, singleton(behind, *value, site));
            let row = generated(cx, (*range).clone(), key, axis, inner);
            Ok(under(&places, singleton(places.clone(), row, site)))
        }
        Some(Way::GenerateAll(positions)) => Ok(generate_all(cx, (*range).clone(), around, core, positions, &under)),
        Some(Way::PullFronts(counts)) => Ok(pull_fronts(cx, range, around, core, &counts)),
        Some(Way::Pull) => {
            let Exp::Singleton(places, value, site) = core else { unreachable!() };
            let total = Exp::Sum(range.clone(), Box::new(wrap(around, *value)));
            Ok(under(&places, singleton(places.clone(), total, site)))
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
    /// Several sums of one body: the index is the key at these positions.
    GenerateAll(Vec<usize>),
    /// No key depends on the index.
    Pull,
    /// Several sums of one body: so many keys of each do not depend on the index.
    PullFronts(Vec<usize>),
    /// A sum of generated arrays.
    Interchange,
}

/// Where a sum stands, and what stands between it and its singletons.
struct Scope<'a> {
    /// What is known outside of the sum.
    facts: &'a Facts,
    range: &'a Range,
    bound: &'a [Var],
    free: bool,
    guarded: bool,
    /// Whether a loop adds the sum to its state.
    carried: bool,
}

impl Scope<'_> {
    fn fixed_size(&self, s: &Size) -> bool {
        !s.mentions(self.range.index) && !self.bound.iter().any(|v| s.mentions(*v))
    }
    fn fixed(&self, key: &Exp, size: &Size) -> bool {
        !key.mentions(self.range.index) && !key.mentions_any(self.bound) && self.fixed_size(size)
    }
    /// Whether a row over the whole axis does not take longer than the sum: the rows of a packed triangle, say, are short
    /// beside it. Then the sum stays, which adds to the places that it has.
    fn may_fill(&self, axis: &Size) -> bool {
        let steps = exp_size(&self.range.hi).zip(exp_size(&self.range.lo)).map(|(hi, lo)| hi.sub(&lo).axis());
        if steps.as_ref().is_some_and(|steps| axis.order() > steps.order().max(1)) {
            return false;
        }
        !self.carried || steps.is_some_and(|steps| axis.axis().sub(&steps).as_constant().is_some())
    }
    /// What is taken out of the sum must be in range there too, where the sum may be empty or its guards false.
    fn comes_out(&self, vars: &Vars, key: &Exp, size: &Size, site: Site) -> bool {
        let in_range = self.facts.in_range(key, size) || (site.passed && !self.guarded);
        self.fixed(key, size) && in_range && (!self.guarded || self.total(vars, key))
    }
    /// Whether a key that comes out can be computed whatever was checked.
    fn total(&self, vars: &Vars, key: &Exp) -> bool {
        key.mentions(self.range.index) || key.mentions_any(self.bound) || total_with(vars, self.facts, key)
    }
    /// Whether the keys that come out are in range whatever was checked.
    fn all_known(&self, places: &[(Exp, Size)]) -> bool {
        places.iter().all(|(k, s)| !self.fixed(k, s) || self.facts.in_range(k, s))
    }
}

fn choose(cx: &Context, scope: &Scope, core: &Exp) -> Option<Way> {
    let i = scope.range.index;
    match core {
        Exp::Singleton(places, _, site) => {
            if places.iter().all(|(k, s)| scope.comes_out(cx.vars, k, s, *site)) {
                return Some(Way::Pull);
            }
            for (position, (key, size)) in places.iter().enumerate() {
                if solvable(key, i, scope.bound) && !scope.may_fill(size) {
                    return None;
                }
                if solvable(key, i, scope.bound) && scope.fixed_size(size) && (site.passed || cx.facts.in_range(key, size)) {
                    return Some(Way::Generate(position));
                }
                if !scope.comes_out(cx.vars, key, size, *site) {
                    return None;
                }
            }
            None
        }
        Exp::Tuple(parts) => generate_all_at(cx, scope, parts).or_else(|| {
            // What goes to one row goes there as a row, which sums around it may generate.
            let comes_out =
                |key: &Exp, size: &Size| matches!(key, Exp::Var(_)) && scope.fixed(key, size) && scope.facts.in_range(key, size);
            let counts: Vec<usize> = parts
                .iter()
                .map(|part| match part {
                    Exp::Singleton(places, ..) => places.iter().take_while(|(key, size)| comes_out(key, size)).count(),
                    _ => 0,
                })
                .collect();
            counts.iter().any(|n| *n > 0).then_some(Way::PullFronts(counts))
        }),
        Exp::For(_, size, _) => (scope.fixed_size(size) && scope.free).then_some(Way::Interchange),
        _ => None,
    }
}

/// Several sums of one body: where all of them generate over the same index.
fn generate_all_at(cx: &Context, scope: &Scope, parts: &[Exp]) -> Option<Way> {
    let i = scope.range.index;
    let mut axes: Vec<&Size> = vec![];
    let mut positions = vec![];
    for part in parts {
        let Exp::Singleton(places, _, site) = part else { return None };
        let position = places.iter().position(|(key, _)| *key == Exp::Var(i))?;
        let (key, size) = &places[position];
        let before_comes_out = places[..position].iter().all(|(k, s)| scope.comes_out(cx.vars, k, s, *site));
        if !before_comes_out || !cx.facts.in_range(key, size) || !scope.fixed_size(size) || !scope.may_fill(size) {
            return None;
        }
        axes.push(size);
        positions.push(position);
    }
    let same = axes.windows(2).all(|w| w[0].axis() == w[1].axis());
    same.then_some(Way::GenerateAll(positions))
}

/// `sum i. around ({(c, ..) -> e}, …)`, with the keys in front outside.
fn pull_fronts(cx: &mut Context, range: Box<Range>, around: Vec<Around>, core: Exp, counts: &[usize]) -> Exp {
    let Exp::Tuple(parts) = core else { unreachable!("chosen for tuples") };
    let (mut fronts, mut values) = (vec![], vec![]);
    for (part, count) in parts.into_iter().zip(counts) {
        match part {
            Exp::Singleton(mut places, value, site) if *count > 0 => {
                let behind = places.split_off(*count);
                fronts.push((places, site));
                values.push(singleton(behind, *value, site));
            }
            part => {
                fronts.push((vec![], Site::default()));
                values.push(part);
            }
        }
    }
    let sums = Exp::Sum(range, Box::new(wrap(around, Exp::Tuple(values))));
    let Type::Tuple(types) = type_of_exp(cx.vars, &sums) else { unreachable!("several sums are a tuple") };
    let rows: Vec<Var> = types.iter().map(|ty| cx.vars.fresh("row", ty.clone())).collect();
    let placed = rows.iter().zip(fronts).map(|(row, (places, site))| singleton(places, Exp::Var(*row), site)).collect();
    let_(rows, sums, Exp::Tuple(placed))
}

fn solvable(key: &Exp, i: Var, bound: &[Var]) -> bool {
    exp_size(key).and_then(|s| linear(&s, i)).is_some_and(|(_, rest)| !bound.iter().any(|v| rest.mentions(*v)))
}

/// `sum i in lo..hi. around ({(.., i, ..) -> e}, …)`: what is at each `i`, put where it belongs.
fn generate_all(
    cx: &mut Context,
    range: Range,
    around: Vec<Around>,
    core: Exp,
    positions: Vec<usize>,
    under: &dyn Fn(&[(Exp, Size)], Exp) -> Exp,
) -> Exp {
    let Exp::Tuple(parts) = core else { unreachable!("chosen for tuples") };
    let (mut fronts, mut values, mut axis) = (vec![], vec![], Size::default());
    for (part, position) in parts.into_iter().zip(positions) {
        let Exp::Singleton(mut places, value, site) = part else { unreachable!("chosen for singletons") };
        let behind = places.split_off(position + 1);
        axis = places.pop().expect("the key that is solved").1;
        fronts.push((places, site));
        values.push(singleton(behind, *value, site));
    }
    let inner = wrap(around, Exp::Tuple(values));
    let key = Exp::Var(range.index);
    let all = generated(cx, range, key, axis, inner);
    if fronts.iter().all(|(places, _)| places.is_empty()) {
        return all;
    }
    let Type::Tuple(types) = type_of_exp(cx.vars, &all) else { unreachable!("several sums are a tuple") };
    let rows: Vec<Var> = types.iter().map(|ty| cx.vars.fresh("row", ty.clone())).collect();
    let placed =
        rows.iter().zip(fronts).map(|(row, (places, site))| under(&places, singleton(places.clone(), Exp::Var(*row), site))).collect();
    let_(rows, all, Exp::Tuple(placed))
}

/// `inner` at the index for which a key is `t`, for every place `t` of an axis.
fn generated(cx: &mut Context, range: Range, key: Exp, axis: Size, inner: Exp) -> Exp {
    let i = range.index;
    let (sign, rest) = linear(&exp_size(&key).expect("a size"), i).expect("solvable");
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
    for_(t, axis, inner)
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
