//! `let`s: dropped if unused, put in place if that repeats no work, pruned of parts that nothing uses.

use super::super::Context;
use super::super::fuse::read_elementwise;
use super::super::share::canonical;
use super::arrays::{shared, total};
use super::one_place::{Keys, narrow};
use super::padded::padded;
use super::sink::{sink, sinks};
use super::views::{is_view, one_in_a_row};
use crate::differentiate::scope::costs_nothing;
use crate::ir::build::*;
use crate::ir::facts::Facts;
use crate::ir::traverse::{Substitution, copy, for_each_child_with_facts, map_children_with_facts, substitute};
use crate::ir::*;
use rustc_hash::{FxHashMap, FxHashSet};

/// How a variable is used.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    count: usize,
    /// Some use stands in a loop that its binding does not stand in.
    in_loop: bool,
    /// Uses other than as the array of a read.
    whole: usize,
    /// Reads whose first key is no literal.
    computed_keys: usize,
    in_size: bool,
    /// Some use stands in no branch, and under no guard, that its binding does not stand in.
    always: bool,
    /// Its last use reads an element at distinct indices, among them every loop that the use stands in.
    elementwise: bool,
    keys: Keys,
}

/// Where an expression stands.
#[derive(Default)]
struct Within {
    /// The indices of the loops; those that hand on states have none.
    loops: Vec<Option<Var>>,
    branches: usize,
    /// The loops and branches that variables are bound in.
    bound_at: FxHashMap<Var, (usize, usize)>,
}

impl Within {
    fn looped(&mut self, index: Option<Var>, exp: &Exp, uses: &mut Uses) {
        self.loops.push(index);
        find_uses(exp, self, uses);
        self.loops.pop();
    }
    fn branched(&mut self, exp: &Exp, uses: &mut Uses) {
        self.branches += 1;
        find_uses(exp, self, uses);
        self.branches -= 1;
    }
    fn note(&self, uses: &mut Uses, v: Var, keys: &[Exp], in_size: bool) {
        let (loops, branches) = self.bound_at.get(&v).copied().unwrap_or_default();
        let u = uses.entry(v).or_default();
        u.count += 1;
        u.in_loop |= self.loops.len() > loops;
        u.whole += keys.is_empty() as usize;
        u.computed_keys += keys.first().is_some_and(|k| !matches!(k, Exp::Lit(_))) as usize;
        u.in_size |= in_size;
        u.always |= self.branches <= branches;
        let distinct = keys.iter().enumerate().all(|(k, key)| matches!(key, Exp::Var(_)) && !keys[..k].contains(key));
        u.elementwise = distinct && self.loops[loops..].iter().all(|l| l.is_some_and(|l| keys.contains(&Exp::Var(l))));
        u.keys.note(keys);
    }
}

/// Reads of a changed array, `x with [k] = y`, that are reads of something else: of `y`, if that is at hand, or of `x`.
struct Reads<'a> {
    changed: &'a Exp,
    new: Var,
    /// Whether the array before the changes may be read.
    before: bool,
    found: usize,
}

impl Reads<'_> {
    fn replaced(&mut self, cx: &mut Context, exp: Exp) -> Exp {
        match exp {
            Exp::Index(array, keys, site) if *array == Exp::Var(self.new) => match self.elsewhere(cx, &keys, site) {
                Some(other) => {
                    self.found += 1;
                    other
                }
                None => Exp::Index(array, keys, site),
            },
            exp => exp.map_children(&mut |e| self.replaced(cx, e)),
        }
    }

    fn elsewhere(&self, cx: &mut Context, keys: &[Exp], site: Site) -> Option<Exp> {
        let mut array = self.changed;
        while let Exp::Update(old, changed, value, _) = array {
            let same: Vec<Option<bool>> = keys
                .iter()
                .zip(changed)
                .map(|(a, b)| if a == b { Some(true) } else { cx.facts.decide(cx.vars, &op2(Op::Eq, a.clone(), b.clone())) })
                .collect();
            if same.contains(&Some(false)) {
                array = old;
                continue;
            }
            let whole = same.len() == changed.len() && same.iter().all(|s| *s == Some(true));
            let at_hand = match &**value {
                Exp::Var(_) => true,
                Exp::Index(of, keys, _) => {
                    matches!(**of, Exp::Var(_)) && keys.iter().all(|k| costs_nothing(cx.vars, k)) && total(cx, value)
                }
                _ => false,
            };
            return (whole && at_hand).then(|| match &keys[changed.len()..] {
                [] => (**value).clone(),
                rest => index((**value).clone(), rest.to_vec(), site),
            });
        }
        match array {
            Exp::Var(_) if self.before => Some(Exp::Index(Box::new(array.clone()), keys.to_vec(), site)),
            _ => None,
        }
    }
}

/// How many nodes a view may have that is written out at several places.
const SHORT_VIEW: usize = 40;

type Uses = FxHashMap<Var, Use>;

pub fn tidy(cx: &mut Context, exp: Exp) -> Exp {
    let mut uses = Uses::default();
    find_uses(&exp, &mut Within::default(), &mut uses);
    tidy_with(cx, exp, &uses, &mut Substitution::default())
}

fn find_uses(exp: &Exp, within: &mut Within, uses: &mut Uses) {
    exp.for_each_size(&mut |s| s.for_each_variable(&mut |v| within.note(uses, v, &[], true)));
    match exp {
        Exp::Var(v) => within.note(uses, *v, &[], false),
        Exp::Index(array, keys, _) => {
            match **array {
                Exp::Var(v) => within.note(uses, v, keys, false),
                _ => find_uses(array, within, uses),
            }
            keys.iter().for_each(|k| find_uses(k, within, uses));
        }
        Exp::Let(vars, value, body) => {
            find_uses(value, within, uses);
            let place = (within.loops.len(), within.branches);
            within.bound_at.extend(vars.iter().map(|v| (*v, place)));
            find_uses(body, within, uses);
        }
        Exp::Guard(p, e) => {
            find_uses(p, within, uses);
            within.branched(e, uses);
        }
        Exp::If(p, a, b) => {
            find_uses(p, within, uses);
            within.branched(a, uses);
            within.branched(b, uses);
        }
        Exp::For(i, _, body) => within.looped(Some(*i), body, uses),
        Exp::Sum(range, body) | Exp::Reduce(_, range, body, _) => {
            find_uses(&range.lo, within, uses);
            find_uses(&range.hi, within, uses);
            within.looped(Some(range.index), body, uses);
        }
        Exp::History(h) => {
            find_uses(&h.init, within, uses);
            within.looped(Some(h.index), &h.body, uses);
        }
        Exp::Loop(l) => {
            find_uses(&l.init, within, uses);
            match &l.trip {
                Trip::For(range) => {
                    find_uses(&range.lo, within, uses);
                    find_uses(&range.hi, within, uses);
                }
                Trip::While(condition) => within.looped(None, condition, uses),
            }
            within.looped(None, &l.body, uses);
        }
        Exp::Lit(_)
        | Exp::Update(..)
        | Exp::Op(..)
        | Exp::Partial(..)
        | Exp::Singleton(..)
        | Exp::Tuple(_)
        | Exp::Array(_)
        | Exp::Call(..) => exp.for_each_child(&mut |e| find_uses(e, within, uses)),
    }
}

/// What becomes of a `let`.
enum Tidied {
    /// The counts hold for what is bound in it, all of which was bound there before.
    Counted(Exp),
    /// It binds what was not counted.
    Anew(Exp),
}

/// How often the rest of a chain of `let`s is counted again in one round, when one of them has become something else: to wait for
/// the next round each time takes long where chains are.
const AGAIN: usize = 32;
/// How many `let`s a chain has that is long.
const LONG_CHAIN: usize = 64;

/// `pending` are variables whose `let`s are gone already, and what is put for them on the way: to go through the whole body for
/// each of them would take the square of a program's length.
fn tidy_with(cx: &mut Context, exp: Exp, uses: &Uses, pending: &mut Substitution) -> Exp {
    let mut exp = exp;
    let mut added = vec![];
    let mut outside = None;
    let (mut recounted, mut again) = (None, 0);
    while let Exp::Let(vars, value, body) = exp {
        let uses = recounted.as_ref().unwrap_or(uses);
        match at_once(cx, &vars, &value, uses) {
            Some(Plainly::Dropped) => {
                cx.changed = true;
                exp = *body;
                continue;
            }
            Some(Plainly::Put) => {
                cx.changed = true;
                let value = if pending.is_empty() { *value } else { substitute(cx.vars, *value, pending) };
                pending.insert(vars[0], value);
                added.push(vars[0]);
                exp = *body;
                continue;
            }
            Some(Plainly::Kept) => {
                exp = Exp::Let(vars, value, body);
                break;
            }
            None => {}
        }
        // What looks at the whole body sees it as it is.
        let (mut value, mut body) = (value, body);
        if !pending.is_empty() {
            let now = std::mem::take(pending);
            let Exp::Let(_, v, b) = substitute(cx.vars, Exp::Let(vars.clone(), value, body), &now) else { unreachable!("it is a `let`") };
            (value, body) = (v, b);
            outside.get_or_insert(now);
        }
        let done = decide(cx, vars, *value, *body, uses);
        match done.or_else(|same| narrowed(cx, same, uses).map(Tidied::Anew)) {
            Ok(Tidied::Counted(new)) => {
                cx.changed = true;
                exp = new;
            }
            Ok(Tidied::Anew(new)) => {
                cx.changed = true;
                if again == AGAIN || !is_long_chain(&new) {
                    restore(pending, outside, &added);
                    return new;
                }
                // What is bound here is used here alone.
                let mut counts = Uses::default();
                find_uses(&new, &mut Within::default(), &mut counts);
                recounted = Some(counts);
                again += 1;
                exp = new;
            }
            Err(same) => {
                exp = same;
                break;
            }
        }
    }
    let uses = recounted.as_ref().unwrap_or(uses);
    let exp = match exp {
        Exp::Var(v) => pending.get(&v).map_or(Exp::Var(v), |e| copy(cx.vars, e, &Substitution::default())),
        exp => {
            let mut facts = std::mem::take(&mut cx.facts);
            let exp = map_children_with_facts(exp, &mut facts, &mut |e, facts| {
                std::mem::swap(&mut cx.facts, facts);
                let e = tidy_with(cx, e, uses, pending);
                std::mem::swap(&mut cx.facts, facts);
                e
            });
            cx.facts = facts;
            exp
        }
    };
    restore(pending, outside, &added);
    exp
}

fn is_long_chain(exp: &Exp) -> bool {
    let (mut rest, mut count) = (exp, 0);
    while let Exp::Let(_, _, body) = rest {
        rest = body;
        count += 1;
    }
    count > LONG_CHAIN
}

/// What was pending around a chain of `let`s.
fn restore(pending: &mut Substitution, outside: Option<Substitution>, added: &[Var]) {
    if let Some(outside) = outside {
        *pending = outside;
    }
    added.iter().for_each(|v| {
        pending.remove(v);
    });
}

/// What becomes of a `let` as its value and the counts tell, whatever its body is.
enum Plainly {
    Dropped,
    /// The value, which costs nothing, goes where the variable stands.
    Put,
    Kept,
}

fn at_once(cx: &Context, vars: &[Var], value: &Exp, uses: &Uses) -> Option<Plainly> {
    let of = |v: &Var| uses.get(v).copied().unwrap_or_default();
    if vars.iter().all(|v| of(v).count == 0) {
        return Some(Plainly::Dropped);
    }
    let [v] = vars else { return None };
    let (u, ty) = (of(v), cx.vars.ty(*v));
    // Integers may be sizes in types of what is bound further on.
    if u.in_size || *ty == Type::I64 || matches!(ty, Type::Tuple(_)) {
        return None;
    }
    match value {
        Exp::Var(_) | Exp::Lit(_) => Some(Plainly::Put),
        // Numbers that cost something and are used several times, not in one branch.
        Exp::Op(..) if ty.scalar().is_some_and(Scalar::is_float) && ty.shape().is_empty() => {
            let stays = u.count > 1 && (u.in_loop || u.always) && !costs_nothing(cx.vars, value);
            stays.then_some(Plainly::Kept)
        }
        _ => None,
    }
}

fn narrowed(cx: &mut Context, exp: Exp, uses: &Uses) -> Result<Exp, Exp> {
    let Exp::Let(vars, value, body) = &exp else { return Err(exp) };
    if let Some(new) = padded(cx, vars, value, body) {
        return Ok(new);
    }
    let keys = |v: Var| uses.get(&v).filter(|u| u.whole == 0).map(|u| u.keys);
    narrow(cx, vars, value, body, &keys).ok_or(exp)
}

fn decide(cx: &mut Context, vars: Vec<Var>, value: Exp, body: Exp, uses: &Uses) -> Result<Tidied, Exp> {
    let of = |v: Var| uses.get(&v).copied().unwrap_or_default();
    if vars.iter().all(|v| of(*v).count == 0) {
        return Ok(Tidied::Counted(body));
    }
    let may_sink = vars.iter().all(|v| !of(*v).in_loop && !of(*v).in_size && !of(*v).always);
    if may_sink && !costs_nothing(cx.vars, &value) {
        let total = vars.iter().map(|v| of(*v).count).sum();
        if sinks(&body, &vars, total) && !vars.iter().any(|v| is_overtaken(cx.vars, &value, *v, &body)) {
            return Ok(Tidied::Anew(sink(body, &vars, value, total)));
        }
    }
    let [v] = vars.as_slice() else {
        let parts = prune(vars, value, body, uses).or_else(|same| split_view(cx, same)).or_else(|same| merge_parts(cx, same));
        return parts.map(Tidied::Anew);
    };
    let (v, u) = (*v, of(*v));
    let ty = cx.vars.ty(v).clone();
    let replace = |cx: &mut Context, value: Exp, body: Exp| substitute(cx.vars, body, &Substitution::from_iter([(v, value)]));

    if let Type::Tuple(types) = ty {
        let name = cx.vars.name(v).to_string();
        let parts: Vec<Var> = types.into_iter().map(|t| cx.vars.fresh(name.clone(), t)).collect();
        let whole = Exp::Tuple(parts.iter().map(|p| Exp::Var(*p)).collect());
        let body = replace(cx, whole, body);
        return Ok(Tidied::Anew(let_(parts, value, body)));
    }
    // A size that says much is kept under its name: what is proven of sizes is proven of what they are made of.
    let is_size = || ty == Type::I64 && exp_size(&value).is_some_and(|s| u.count <= 1 || s.nesting() <= 1);
    if matches!(value, Exp::Var(_) | Exp::Lit(_)) || is_size() {
        return Ok(Tidied::Counted(replace(cx, value, body)));
    }
    if u.in_size {
        return Err(let_(vars, value, body));
    }
    // What is read of an array that is then overwritten stays before that, so that it can be overwritten where it is.
    let stays = || matches!(cx.vars.ty(v), Type::Scalar(_)) && is_overtaken(cx.vars, &value, v, &body);
    if u.count == 1 && (!u.in_loop || (matches!(ty, Type::Scalar(_)) && costs_nothing(cx.vars, &value) && !has_loop(&value))) {
        if stays() {
            return Err(let_(vars, value, body));
        }
        return Ok(Tidied::Counted(replace(cx, value, body)));
    }
    match &value {
        // A row is a view: reading it is reading the array. Where it stands is computed once.
        Exp::Index(array, keys, site) if !matches!(ty, Type::Scalar(_)) && matches!(**array, Exp::Var(_)) => {
            let mut bindings = vec![];
            let keys = keys.iter().map(|k| shared(cx, k.clone(), &mut bindings)).collect();
            let body = replace(cx, index((**array).clone(), keys, *site), body);
            Ok(if bindings.is_empty() { Tidied::Counted(body) } else { Tidied::Anew(lets(bindings, body)) })
        }
        // A read that cannot fail, or its negative, is as good as the variable, and shows what is read.
        exp if is_read(exp)
            && matches!(ty, Type::Scalar(_))
            && costs_nothing(cx.vars, &value)
            && !has_loop(&value)
            && total(cx, &value)
            && !stays() =>
        {
            Ok(Tidied::Counted(replace(cx, value, body)))
        }
        Exp::Update(..) if u.count > u.whole => {
            // What a change leaves as it was is read of the array before it, if then only a further change needs the new one.
            let before = u.whole == 1;
            let mut reads = Reads { changed: &value, new: v, before, found: 0 };
            let new = reads.replaced(cx, body.clone());
            let all = !before || reads.found == u.count - u.whole;
            if reads.found > 0 && all { Ok(Tidied::Anew(let_(vars, value, new))) } else { Err(let_(vars, value, body)) }
        }
        Exp::Singleton(places, part, site)
            if u.whole == 0
                && places.iter().all(|(k, s)| costs_nothing(cx.vars, k) && (site.passed || cx.facts.in_range(k, s)))
                && reads_known(cx, &body, v) =>
        {
            // What costs operations is computed once, where it was.
            let mut bindings = vec![];
            let mut atom = (**part).clone();
            if !costs_nothing(cx.vars, part) {
                let ty = type_of_exp(cx.vars, part);
                if matches!(ty, Type::Tuple(_)) {
                    return Err(let_(vars, value, body));
                }
                let x = cx.vars.fresh(cx.vars.name(v).to_string(), ty);
                bindings.push((vec![x], atom));
                atom = Exp::Var(x);
            }
            let value = singleton(places.clone(), atom, *site);
            Ok(Tidied::Anew(lets(bindings, inline_copies(cx.vars, body, v, &value))))
        }
        Exp::For(..) | Exp::Guard(..) if is_zero(&value) => Ok(Tidied::Anew(inline_copies(cx.vars, body, v, &value))),
        // An array of reads is a view too, where all that is read of it is known to be there. One that is read often and
        // says much is kept: views of views of it would double what they say at each step.
        Exp::For(..) | Exp::Guard(..) if u.whole == 0 && (u.count == 1 || value.node_count() <= SHORT_VIEW) && is_array(&ty) => {
            let (bindings, view) = match &value {
                value if is_view(cx, value) => (vec![], value.clone()),
                // The counts are of before other `let`s went where they are used.
                value if u.count > 1 || !u.elementwise || !read_elementwise(&body, v, ty.shape().len(), &mut vec![]) => {
                    match one_in_a_row(cx, value, cx.vars.name(v).to_string()) {
                        Some((small, e, view)) => (vec![(vec![small], e)], view),
                        None => return Err(let_(vars, value.clone(), body)),
                    }
                }
                // It will be fused as it is.
                value => return Err(let_(vars, value.clone(), body)),
            };
            if !reads_known(cx, &body, v) {
                return Err(let_(vars, value, body));
            }
            Ok(Tidied::Anew(lets(bindings, inline_copies(cx.vars, body, v, &view))))
        }
        Exp::Array(items) if u.whole == 0 && u.computed_keys == 0 => {
            let mut bindings = vec![];
            let atoms = items
                .iter()
                .map(|e| match e {
                    Exp::Var(_) | Exp::Lit(_) => e.clone(),
                    e => {
                        let (name, ty) = (cx.vars.name(v).to_string(), type_of_exp(cx.vars, e));
                        let x = cx.vars.fresh(name, ty);
                        bindings.push((vec![x], e.clone()));
                        Exp::Var(x)
                    }
                })
                .collect();
            let body = replace(cx, Exp::Array(atoms), body);
            Ok(Tidied::Anew(lets(bindings, body)))
        }
        _ => Err(let_(vars, value, body)),
    }
}

fn is_array(ty: &Type) -> bool {
    matches!(ty, Type::Array(..))
}

/// Whether a value reads arrays that are overwritten before the variable is used.
fn is_overtaken(vars: &Vars, value: &Exp, v: Var, body: &Exp) -> bool {
    let mut arrays = value.free_vars();
    arrays.retain(|a| matches!(vars.ty(*a), Type::Array(..)));
    fn overtaken(body: &Exp, v: Var, arrays: &[Var]) -> bool {
        if let Exp::Let(_, value, rest) = body {
            if overwrites(value, arrays) && rest.mentions(v) {
                return true;
            }
        }
        let mut found = false;
        body.for_each_child(&mut |e| found = found || overtaken(e, v, arrays));
        found
    }
    !arrays.is_empty() && overtaken(body, v, &arrays)
}

/// Whether an expression is one of the arrays but for places written in it.
fn overwrites(exp: &Exp, arrays: &[Var]) -> bool {
    let is_one = |e: &Exp| matches!(e, Exp::Var(v) if arrays.contains(v));
    match exp {
        Exp::Update(array, ..) => is_one(array) || overwrites(array, arrays),
        Exp::Op(Op::Add, args, _) => is_one(&args[0]) || overwrites(&args[0], arrays),
        Exp::Loop(l) => match &l.init {
            Exp::Tuple(parts) => parts.iter().any(is_one),
            whole => is_one(whole),
        },
        Exp::Let(_, _, body) => overwrites(body, arrays),
        Exp::If(_, a, b) => overwrites(a, arrays) || overwrites(b, arrays),
        Exp::Tuple(parts) => parts.iter().any(|e| overwrites(e, arrays)),
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
        | Exp::Array(_)
        | Exp::Call(..) => false,
    }
}

fn is_read(exp: &Exp) -> bool {
    match exp {
        Exp::Index(..) => true,
        Exp::Op(Op::Neg, args, _) => is_read(&args[0]),
        _ => false,
    }
}

/// Whether the expression runs loops, even if they cost no operation.
pub fn has_loop(exp: &Exp) -> bool {
    let mut found = matches!(exp, Exp::For(..) | Exp::Sum(..) | Exp::Reduce(..) | Exp::History(_) | Exp::Loop(_));
    exp.for_each_child(&mut |e| found = found || has_loop(e));
    found
}

/// Whether every read of `v` is known to be in range where it stands.
pub fn reads_known(cx: &Context, body: &Exp, v: Var) -> bool {
    let shape = cx.vars.ty(v).shape().to_vec();
    fn walk(e: &Exp, facts: &mut Facts, v: Var, shape: &[Size], all: &mut bool) {
        if !*all {
            return;
        }
        if let Exp::Index(array, keys, _) = e {
            if **array == Exp::Var(v) {
                *all = keys.iter().zip(shape).all(|(k, s)| facts.in_range(k, s));
            }
        }
        for_each_child_with_facts(e, facts, &mut |e, facts| walk(e, facts, v, shape, all));
    }
    let mut all = true;
    walk(body, &mut cx.facts.clone(), v, &shape, &mut all);
    all
}

/// Puts a copy of the value wherever the variable stands.
pub fn inline_copies(vars: &mut Vars, body: Exp, v: Var, value: &Exp) -> Exp {
    match body {
        Exp::Var(w) if w == v => copy(vars, value, &Substitution::default()),
        body => body.map_children(&mut |e| inline_copies(vars, e, v, value)),
    }
}

/// `let (a, b) = …` where nothing uses some of the parts.
fn prune(vars: Vec<Var>, value: Exp, body: Exp, uses: &Uses) -> Result<Exp, Exp> {
    let keep: Vec<usize> = (0..vars.len()).filter(|k| uses.get(&vars[*k]).is_some_and(|u| u.count > 0)).collect();
    match project(&value, &keep).filter(|(_, kept)| kept.len() < vars.len()) {
        Some((value, kept)) => Ok(let_(kept.into_iter().map(|k| vars[k]).collect(), value, body)),
        None => Err(let_(vars, value, body)),
    }
}

/// `let (a, b) = for i. let …; (e, x[i]); …`   is   `let a = for i. …; let b = for i. x[i]; …`: a row or an element of
/// an array outside, or the array itself, which costs nothing to read where it is wanted.
fn split_view(cx: &mut Context, exp: Exp) -> Result<Exp, Exp> {
    let Exp::Let(vars, value, body) = exp else { return Err(exp) };
    let Exp::For(i, size, element) = &*value else { return Err(Exp::Let(vars, value, body)) };
    let mut bound = vec![];
    let mut rest = &**element;
    while let Exp::Let(inner, _, next) = rest {
        bound.extend(inner.iter().copied());
        rest = next;
    }
    let is_view = |e: &Exp| match e {
        Exp::Index(array, keys, _) => matches!(**array, Exp::Var(a) if !bound.contains(&a)) && keys.len() == 1 && keys[0] == Exp::Var(*i),
        Exp::Var(a) => is_array(cx.vars.ty(*a)) && !bound.contains(a),
        _ => false,
    };
    let at = match rest {
        Exp::Tuple(parts) if parts.len() == vars.len() => parts.iter().position(is_view),
        _ => None,
    };
    let Some(at) = at else { return Err(Exp::Let(vars, value, body)) };
    let others: Vec<usize> = (0..vars.len()).filter(|k| *k != at).collect();
    let (one, rest) = match (project(&value, &[at]), project(&value, &others)) {
        (Some((Exp::For(_, _, one), _)), Some((rest, _))) => (one, rest),
        _ => return Err(Exp::Let(vars, value, body)),
    };
    let mut one = *one;
    while let Exp::Let(_, _, inner) = one {
        one = *inner;
    }
    let j = cx.vars.fresh_like(*i, Type::I64);
    let one = substitute(cx.vars, one, &Substitution::from_iter([(*i, Exp::Var(j))]));
    let body = let_(vec![vars[at]], for_(j, size.clone(), one), *body);
    Ok(let_(others.iter().map(|k| vars[*k]).collect(), rest, body))
}

/// `let (a, b) = for i. let …; (e, e); …`, as derivatives of derivatives save one thing twice: all is read from one of them.
fn merge_parts(cx: &mut Context, exp: Exp) -> Result<Exp, Exp> {
    let Exp::Let(vars, value, body) = exp else { return Err(exp) };
    let mut rest = &*value;
    while let Exp::For(_, _, next) | Exp::Let(_, _, next) | Exp::Guard(_, next) = rest {
        rest = next;
    }
    let parts = match rest {
        Exp::Tuple(parts) if parts.len() == vars.len() => parts,
        _ => return Err(Exp::Let(vars, value, body)),
    };
    let mut first = FxHashMap::default();
    let twice = parts.iter().zip(&vars).find_map(|(part, v)| {
        let same = *first.entry(canonical(part)).or_insert(*v);
        (same != *v && cx.vars.ty(same) == cx.vars.ty(*v)).then_some((same, *v))
    });
    match twice {
        Some((same, v)) if body.mentions(v) => {
            let body = substitute(cx.vars, *body, &Substitution::from_iter([(v, Exp::Var(same))]));
            Ok(Exp::Let(vars, value, Box::new(body)))
        }
        _ => Err(Exp::Let(vars, value, body)),
    }
}

/// The parts `keep` of a tuple, pushed inwards, and those that had to be kept with them.
pub fn project(exp: &Exp, keep: &[usize]) -> Option<(Exp, Vec<usize>)> {
    match exp {
        Exp::Tuple(parts) => Some((tuple(keep.iter().map(|k| parts[*k].clone()).collect()), keep.to_vec())),
        Exp::For(i, size, body) => project(body, keep).map(|(body, kept)| (for_(*i, size.clone(), body), kept)),
        Exp::Sum(range, body) => project(body, keep).map(|(body, kept)| (Exp::Sum(range.clone(), Box::new(body)), kept)),
        Exp::Guard(p, e) => project(e, keep).map(|(e, kept)| (guard((**p).clone(), e), kept)),
        Exp::Let(..) => project_chain(exp, keep),
        Exp::If(p, a, b) => {
            let (a, b) = (project(a, keep)?, project(b, keep)?);
            (a.1 == b.1).then(|| (if_((**p).clone(), a.0, b.0), a.1))
        }
        Exp::History(h) => {
            let (init, body, kept) = project_step(&h.state, &h.init, &h.body, None, keep)?;
            let state = kept.iter().map(|k| h.state[*k]).collect();
            Some((Exp::History(Box::new(History { state, init, index: h.index, size: h.size.clone(), body })), kept))
        }
        Exp::Loop(l) => {
            let condition = match &l.trip {
                Trip::For(_) => None,
                Trip::While(condition) => Some(condition),
            };
            let (init, body, kept) = project_step(&l.state, &l.init, &l.body, condition, keep)?;
            let state = kept.iter().map(|k| l.state[*k]).collect();
            Some((Exp::Loop(Box::new(Iteration { state, init, trip: l.trip.clone(), body, annotations: l.annotations.clone() })), kept))
        }
        Exp::Var(_)
        | Exp::Lit(_)
        | Exp::Op(..)
        | Exp::Partial(..)
        | Exp::Index(..)
        | Exp::Singleton(..)
        | Exp::Reduce(..)
        | Exp::Update(..)
        | Exp::Array(_)
        | Exp::Call(..) => None,
    }
}

/// A chain of `let`s before what is left of its result, without values and parts of them that nothing uses any more: what
/// these read may be gone, too.
fn project_chain(exp: &Exp, keep: &[usize]) -> Option<(Exp, Vec<usize>)> {
    let mut chain = vec![];
    let mut result = exp;
    while let Exp::Let(vars, value, body) = result {
        chain.push((vars, value));
        result = body;
    }
    let (mut exp, kept) = project(result, keep)?;
    let mut live: FxHashSet<Var> = exp.free_vars().into_iter().collect();
    for (vars, value) in chain.into_iter().rev() {
        let used: Vec<usize> = (0..vars.len()).filter(|k| live.remove(&vars[*k])).collect();
        if used.is_empty() {
            continue;
        }
        let fewer = if used.len() < vars.len() { project(value, &used) } else { None };
        let (value, vars) = match fewer {
            Some((value, kept)) => (value, kept.into_iter().map(|k| vars[k]).collect()),
            None => ((**value).clone(), vars.clone()),
        };
        live.extend(value.free_vars());
        exp = let_(vars, value, exp);
    }
    Some((exp, kept))
}

/// The first state and the step of a loop without the parts of its state that neither `keep` nor the condition needs, from
/// any step on.
fn project_step(state: &[Var], init: &Exp, body: &Exp, condition: Option<&Exp>, keep: &[usize]) -> Option<(Exp, Exp, Vec<usize>)> {
    // One variable holds the whole tuple until its parts are named (`tuples.rs`).
    if state.len() == 1 {
        return None;
    }
    let mut needed: Vec<bool> = (0..state.len()).map(|k| keep.contains(&k)).collect();
    let mut live: FxHashSet<Var> = condition.into_iter().flat_map(Exp::free_vars).collect();
    loop {
        let kept: Vec<usize> = (0..state.len()).filter(|k| needed[*k]).collect();
        let (step, of_step) = project(body, &kept)?;
        live.extend(step.free_vars());
        let now: Vec<bool> = (0..state.len()).map(|k| of_step.contains(&k) || live.contains(&state[k])).collect();
        if now == needed {
            return Some((project(init, &kept).filter(|(_, of_init)| *of_init == kept)?.0, step, kept));
        }
        needed = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `let (a, b) = (x, x); let c = b; (a, c)` without `c` has no use for `b`.
    #[test]
    fn what_only_unused_values_read_goes_with_them() {
        let mut vars = Vars::default();
        let [x, a, b, c] = ["x", "a", "b", "c"].map(|name| vars.fresh(name.to_string(), Type::F64));
        let result = tuple(vec![Exp::Var(a), Exp::Var(c)]);
        let chain = let_(vec![c], Exp::Var(b), result);
        let whole = let_(vec![a, b], tuple(vec![Exp::Var(x), Exp::Var(x)]), chain);
        let (part, kept) = project(&whole, &[0]).expect("a tuple has parts");
        assert_eq!(kept, [0]);
        assert_eq!(part.free_vars(), [x]);
        assert_eq!(part, let_(vec![a], Exp::Var(x), Exp::Var(a)));
    }
}
