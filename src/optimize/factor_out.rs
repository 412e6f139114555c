//! Sums of arrays: what is the same for all summands is multiplied and added once, behind the sum.
//!
//! ```text
//! sum i. for c, a. z[i, c, a] * w[i, c] / s[c, a] - w[i, c]
//! ```
//! is
//! ```text
//! let (t, t_2) = sum i. for c. let row = for a. z[i, c, a] * w[i, c]; (row, w[i, c]);
//! for c, a. t[c, a] / s[c, a] - t_2[c]
//! ```
//! An element is taken apart into terms, each a product of what differs from summand to summand and of what does not. A term
//! that needs fewer indices than the element has is a sum of its own, of fewer axes, for all elements that have it. Adjoints of
//! parameters that stand in every summand (scales, exponents of scales, offsets) are such sums.

use super::interchange::part_types;
use super::simplify::arrays::total;
use super::simplify::lets::has_loop;
use super::{Context, Rewrite, rewrite_everywhere};
use crate::ir::build::{lets as with_lets, *};
use crate::ir::destination::uses;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;
use rustc_hash::FxHashMap;

/// Of sums known to have fewer summands it is not worth to go through the result once more.
const LEAST: i64 = 8;
/// Elements of more terms stay as they are.
const MOST_TERMS: usize = 8;

pub fn factor_out(cx: &mut Context, exp: Exp) -> Exp {
    rewrite_everywhere(cx, exp, "factor_out", &rule)
}

fn rule(cx: &mut Context, exp: Exp) -> Rewrite {
    let Exp::Sum(range, body) = &exp else { return Err(exp) };
    let types = part_types(&type_of_exp(cx.vars, body));
    let is_sum = |ty: &Type| matches!(ty, Type::Array(_, s) if s.is_float());
    if types.iter().any(|ty| matches!(ty, Type::Tuple(_))) || !types.iter().any(is_sum) || !is_long(cx, range) {
        return Err(exp);
    }
    let mut elements = Elements {
        range: (**range).clone(),
        bound: [(range.index, 0)].into_iter().collect(),
        path: vec![],
        locals: FxHashMap::default(),
        found: vec![],
        extra: vec![],
        left: vec![],
        scalar: Scalar::F64,
    };
    let mut block = elements.block(cx, (**body).clone());
    let results = block.order.clone();
    elements.take_apart(cx, &mut block);
    if elements.found.iter().all(Option::is_none) {
        return Err(exp);
    }
    let (body, order) = elements.written(cx, block, None);
    let names: Vec<Var> = part_types(&type_of_exp(cx.vars, &body)).into_iter().map(|ty| cx.vars.fresh("t", ty)).collect();
    let sums: FxHashMap<usize, Var> = order.into_iter().zip(names.iter().copied()).collect();
    let results = tuple(results.into_iter().map(|number| elements.result(number, &sums)).collect());
    let results = copy(cx.vars, &results, &Substitution::default());
    if !total(cx, &results) {
        return Err(exp);
    }
    let some = op2(Op::Lt, range.lo.clone(), range.hi.clone());
    let results = match results {
        Exp::Tuple(parts) => Exp::Tuple(parts.into_iter().map(|part| where_summed(&some, part)).collect()),
        one => where_summed(&some, one),
    };
    Ok(let_(names, Exp::Sum(range.clone(), Box::new(body)), results))
}

/// Where nothing is summed, nothing is multiplied either.
fn where_summed(some: &Exp, result: Exp) -> Exp {
    if matches!(result, Exp::Var(_)) { result } else { guard(some.clone(), result) }
}

fn is_long(cx: &Context, range: &Range) -> bool {
    let steps = exp_size(&range.lo).zip(exp_size(&range.hi)).map(|(lo, hi)| hi.sub(&lo));
    steps.is_none_or(|n| cx.vars.likely(&n).or(n.as_constant()).is_none_or(|n| n >= LEAST))
}

/// What the body of a sum, or of a loop in it, computes: elements of its own and those of loops, each with a number, and the
/// order in which they are its results.
struct Block {
    lets: Vec<(Vec<Var>, Exp)>,
    nests: Vec<(Var, Size, Block)>,
    elements: Vec<(usize, Exp)>,
    order: Vec<usize>,
}

/// `for path. outer * (the sum) + lower…`, each of these `outer * (a sum of its own)`.
struct Terms {
    path: Vec<(Var, Size)>,
    outer: Outer,
    lower: Vec<(Outer, usize)>,
}

/// What a term is multiplied with for all summands, and divided by, and whether it is subtracted.
#[derive(Clone, Default, PartialEq, Eq)]
struct Outer {
    negative: bool,
    factor: Option<Exp>,
    /// One after the other: their product may be no number.
    divisors: Vec<Exp>,
}

impl Outer {
    fn negated(self) -> Outer {
        Outer { negative: !self.negative, ..self }
    }
    fn times(self, other: Outer) -> Outer {
        let factor = match (self.factor, other.factor) {
            (Some(a), Some(b)) => Some(mul(a, b)),
            (a, b) => a.or(b),
        };
        Outer { negative: self.negative != other.negative, factor, divisors: [self.divisors, other.divisors].concat() }
    }
    fn over(mut self, divisor: Exp) -> Outer {
        self.divisors.push(divisor);
        self
    }
    fn of(self, inner: Exp) -> Exp {
        let product = match self.factor {
            Some(factor) => mul(factor, inner),
            None => inner,
        };
        let quotient = self.divisors.into_iter().fold(product, |e, divisor| op2(Op::Div, e, divisor));
        if self.negative { op1(Op::Neg, quotient) } else { quotient }
    }
    /// Whether it is the same but for the sign.
    fn is_like(&self, other: &Outer) -> bool {
        self.factor == other.factor && self.divisors == other.divisors
    }
    fn is_variable(&self) -> bool {
        self.factor.iter().chain(&self.divisors).any(|e| !e.free_vars().is_empty())
    }
}

/// A sum of its own, of terms that need only so many of the indices around them.
struct Extra {
    depth: usize,
    under: Option<Var>,
    inner: Exp,
    /// The result that it is.
    number: usize,
}

/// `outer * inner`, where what is the same for all summands stands outside.
struct Term {
    outer: Outer,
    inner: Exp,
}

struct Elements {
    /// The sum's.
    range: Range,
    /// What is bound in the sum, but for the indices around an element, and under how many of these.
    bound: FxHashMap<Var, usize>,
    path: Vec<(Var, Size)>,
    /// Numbers that have a name.
    locals: FxHashMap<Var, Exp>,
    /// For each of the results what becomes of it, if it is taken apart.
    found: Vec<Option<Terms>>,
    extra: Vec<Extra>,
    /// What is left of numbers that have a name, by another name.
    left: Vec<(Var, Var, Exp)>,
    /// The type of the element that is taken apart.
    scalar: Scalar,
}

impl Elements {
    fn block(&mut self, cx: &Context, exp: Exp) -> Block {
        let mut lets = vec![];
        let mut rest = exp;
        while let Exp::Let(vars, value, body) = rest {
            lets.push((vars, *value));
            rest = *body;
        }
        let parts = match rest {
            Exp::Tuple(parts) => parts,
            one => vec![one],
        };
        let mut block = Block { lets, nests: vec![], elements: vec![], order: vec![] };
        // Loops whose results are handed on, and nothing else.
        let mut named: FxHashMap<Var, usize> = FxHashMap::default();
        for at in (0..block.lets.len()).rev() {
            let (vars, value) = &block.lets[at];
            let later = &block.lets[at + 1..];
            let once = |v: &Var| {
                parts.iter().filter(|p| **p == Exp::Var(*v)).count() == 1
                    && parts.iter().map(|p| uses(*v, p)).sum::<usize>() == 1
                    && !later.iter().any(|(_, e)| e.mentions(*v))
            };
            if !matches!(value, Exp::For(..)) || !vars.iter().all(once) || !is_flat(cx, value) {
                continue;
            }
            let (vars, value) = block.lets.remove(at);
            let order = self.nest(cx, &mut block, value);
            named.extend(vars.into_iter().zip(order));
        }
        for part in parts {
            match part {
                Exp::Var(v) if named.contains_key(&v) => block.order.push(named[&v]),
                part @ Exp::For(..) if is_flat(cx, &part) => {
                    let order = self.nest(cx, &mut block, part);
                    block.order.extend(order);
                }
                part => {
                    let types = part_types(&type_of_exp(cx.vars, &part)).len();
                    let number = self.found.len();
                    self.found.extend((0..types).map(|_| None));
                    block.order.extend(number..number + types);
                    block.elements.push((number, part));
                }
            }
        }
        block
    }

    fn nest(&mut self, cx: &Context, block: &mut Block, nest: Exp) -> Vec<usize> {
        let Exp::For(index, size, body) = nest else { unreachable!("loops are nests") };
        let inner = self.block(cx, *body);
        let order = inner.order.clone();
        block.nests.push((index, size, inner));
        order
    }

    /// Puts in the place of elements what differs from summand to summand, and keeps what does not.
    fn take_apart(&mut self, cx: &mut Context, block: &mut Block) {
        for (vars, value) in &block.lets {
            self.bound.extend(vars.iter().map(|v| (*v, self.path.len())));
            if let [v] = vars.as_slice() {
                if matches!(value, Exp::Op(..)) && !has_loop(value) && scalar_of(cx.vars, value).is_some_and(Scalar::is_float) {
                    self.locals.insert(*v, value.clone());
                }
            }
        }
        for (index, size, inner) in &mut block.nests {
            // What is around the element will be around the result, where nothing of the sum is known.
            if !self.bound.keys().any(|v| size.mentions(*v)) && !self.path.iter().any(|(i, _)| size.mentions(*i)) {
                self.path.push((*index, size.clone()));
                self.take_apart(cx, inner);
                self.path.pop();
            }
        }
        if !self.path.is_empty() {
            for (number, element) in &mut block.elements {
                if let Some(scalar) = scalar_of(cx.vars, element).filter(|s| s.is_float()) {
                    self.scalar = scalar;
                    self.element(cx, *number, element);
                }
            }
        }
    }

    fn element(&mut self, cx: &mut Context, number: usize, element: &mut Exp) {
        let mut terms = vec![];
        if !self.terms(cx, element, &mut terms) {
            return;
        }
        let is_lower = |cx: &mut Context, t: &Term| self.depth(&t.inner) < self.path.len() && self.is_total(cx, &t.inner);
        let (lower, full): (Vec<Term>, Vec<Term>) = terms.into_iter().partition(|t| is_lower(cx, t));
        let full_depth = full.iter().any(|t| self.depth(&t.inner) == self.path.len());
        let Some(outer) = full.first().map(|t| t.outer.clone()).filter(|_| full_depth) else { return };
        // Terms that have different factors stay together.
        let same = full.iter().all(|t| t.outer.is_like(&outer));
        let outer = if same { outer } else { Outer::default() };
        if lower.is_empty() && !outer.is_variable() {
            return;
        }
        let inner = full.into_iter().map(|t| match same {
            true => Outer { negative: t.outer.negative != outer.negative, ..Outer::default() }.of(t.inner),
            false => t.outer.of(t.inner),
        });
        let new = inner.reduce(add).expect("there is a term");
        // A factor may stand in several terms.
        *element = copy(cx.vars, &new, &Substitution::default());
        let lower = lower.into_iter().map(|t| (t.outer, self.extra(copy(cx.vars, &t.inner, &Substitution::default())))).collect();
        self.found[number] = Some(Terms { path: self.path.clone(), outer, lower });
    }

    fn extra(&mut self, inner: Exp) -> usize {
        let depth = self.depth(&inner);
        let under = depth.checked_sub(1).map(|k| self.path[k].0);
        if let Some(k) = self.extra.iter().position(|e| e.under == under && e.inner == inner) {
            return k;
        }
        self.found.push(None);
        self.extra.push(Extra { depth, under, inner, number: self.found.len() - 1 });
        self.extra.len() - 1
    }

    /// Whether something cannot fail under the indices that it needs: where there are no others it is computed all the same.
    fn is_total(&self, cx: &mut Context, exp: &Exp) -> bool {
        let mark = cx.facts.mark();
        cx.facts.enter_range(&self.range);
        self.path[..self.depth(exp)].iter().for_each(|(i, size)| cx.facts.enter_for(*i, size));
        let total = total(cx, exp);
        cx.facts.reset(mark);
        total
    }

    /// Under how many of the indices around an element something is known.
    fn depth(&self, exp: &Exp) -> usize {
        let of = |v: &Var| match self.path.iter().position(|(i, _)| i == v) {
            Some(k) => k + 1,
            None => self.bound.get(v).copied().unwrap_or(0),
        };
        exp.free_vars().iter().map(of).max().unwrap_or(0)
    }

    fn is_fixed(&self, exp: &Exp) -> bool {
        !exp.free_vars().iter().any(|v| self.bound.contains_key(v))
    }

    /// The terms of a sum; false if there are too many.
    fn terms(&mut self, cx: &mut Context, exp: &Exp, out: &mut Vec<Term>) -> bool {
        match exp {
            Exp::Op(Op::Add, args, _) => args.iter().all(|a| self.terms(cx, a, out)),
            Exp::Op(Op::Sub, args, _) => self.terms(cx, &args[0], out) && self.changed(cx, &args[1], out, &Outer::negated),
            Exp::Op(Op::Neg, args, _) => self.changed(cx, &args[0], out, &Outer::negated),
            Exp::Op(Op::Mul, args, _) if !self.is_fixed(exp) => {
                let (fixed, varied): (Vec<&Exp>, Vec<&Exp>) = args.iter().partition(|a| self.is_fixed(a));
                let fixed = Outer { factor: fixed.into_iter().cloned().reduce(mul), ..Outer::default() };
                if let [one] = varied.as_slice() {
                    return self.changed(cx, one, out, &|outer| fixed.clone().times(outer));
                }
                let product = varied
                    .iter()
                    .map(|e| self.one(cx, e))
                    .reduce(|a, b| Term { outer: a.outer.times(b.outer), inner: mul(a.inner, b.inner) });
                let Term { outer, inner } = product.expect("some factor is not fixed");
                out.push(Term { outer: fixed.times(outer), inner });
                out.len() <= MOST_TERMS
            }
            Exp::Op(Op::Div, args, _) if !self.is_fixed(&args[0]) => {
                let (above, below) = (&args[0], &args[1]);
                if self.is_fixed(below) {
                    return self.changed(cx, above, out, &|outer| outer.over(below.clone()));
                }
                let Term { outer, inner } = self.one(cx, above);
                out.push(Term { outer, inner: op2(Op::Div, inner, below.clone()) });
                out.len() <= MOST_TERMS
            }
            // A number that has a name is taken apart where something comes out of it; what is left has a name then.
            Exp::Var(v) if self.locals.contains_key(v) => {
                let Term { outer, inner } = self.one(cx, &self.locals[v].clone());
                let inner = match (outer == Outer::default(), &inner) {
                    (true, _) => exp.clone(),
                    (false, Exp::Op(..)) => Exp::Var(self.left_of(cx, *v, inner)),
                    (false, _) => inner,
                };
                out.push(Term { outer, inner });
                out.len() <= MOST_TERMS
            }
            exp => {
                out.push(Term { outer: Outer::default(), inner: exp.clone() });
                out.len() <= MOST_TERMS
            }
        }
    }

    /// The name of what is left of a number that has one.
    fn left_of(&mut self, cx: &mut Context, v: Var, inner: Exp) -> Var {
        if let Some((_, left, _)) = self.left.iter().find(|(w, _, _)| *w == v) {
            return *left;
        }
        let left = cx.vars.fresh_like(v, Type::Scalar(self.scalar));
        self.bound.insert(left, self.bound[&v]);
        self.left.push((v, left, inner));
        left
    }

    /// An expression as one term.
    fn one(&mut self, cx: &mut Context, exp: &Exp) -> Term {
        let mut terms = vec![];
        match self.terms(cx, exp, &mut terms) && terms.len() == 1 {
            true => terms.pop().expect("one term"),
            false => Term { outer: Outer::default(), inner: exp.clone() },
        }
    }

    fn changed(&mut self, cx: &mut Context, exp: &Exp, out: &mut Vec<Term>, by: &dyn Fn(Outer) -> Outer) -> bool {
        let mut terms = vec![];
        let fine = self.terms(cx, exp, &mut terms);
        out.extend(terms.into_iter().map(|t| Term { outer: by(t.outer), inner: t.inner }));
        fine && out.len() <= MOST_TERMS
    }

    /// The body again, with the sums of their own that stand under an index, and the order of its results.
    fn written(&mut self, cx: &mut Context, block: Block, under: Option<Var>) -> (Exp, Vec<usize>) {
        let Block { lets, nests, elements, mut order } = block;
        let mut lets = self.with_left(lets);
        let mut results: FxHashMap<usize, Exp> = FxHashMap::default();
        for extra in self.extra.iter_mut().filter(|e| e.under == under) {
            match elements.iter().find(|(number, e)| *e == extra.inner && self.found[*number].is_none()) {
                Some((number, _)) => extra.number = *number,
                None => {
                    order.push(extra.number);
                    results.insert(extra.number, extra.inner.clone());
                }
            }
        }
        let alone = nests.len() == 1 && elements.is_empty() && results.is_empty();
        for (index, size, inner) in nests {
            let (body, inside) = self.written(cx, inner, Some(index));
            let nest = for_(index, size, body);
            order.extend(inside.iter().filter(|number| !order.contains(number)).copied().collect::<Vec<_>>());
            if alone && order == inside {
                return (with_lets(lets, nest), inside);
            }
            let names: Vec<Var> = part_types(&type_of_exp(cx.vars, &nest)).into_iter().map(|ty| cx.vars.fresh("row", ty)).collect();
            results.extend(inside.into_iter().zip(names.iter().map(|v| Exp::Var(*v))));
            lets.push((names, nest));
        }
        for (number, element) in elements {
            let types = part_types(&type_of_exp(cx.vars, &element));
            if types.len() == 1 {
                results.insert(number, element);
                continue;
            }
            let names: Vec<Var> = types.into_iter().map(|ty| cx.vars.fresh("t", ty)).collect();
            results.extend(names.iter().enumerate().map(|(k, v)| (number + k, Exp::Var(*v))));
            lets.push((names, element));
        }
        let parts = order.iter().map(|number| results.remove(number).expect("every result is computed")).collect();
        (with_lets(lets, tuple(parts)), order)
    }

    /// What is left of a number is computed behind it.
    fn with_left(&self, lets: Vec<(Vec<Var>, Exp)>) -> Vec<(Vec<Var>, Exp)> {
        let mut out = vec![];
        for (vars, value) in lets {
            let left = self.left.iter().filter(|(v, _, _)| vars == [*v]).map(|(_, left, inner)| (vec![*left], inner.clone()));
            out.push((vars.clone(), value));
            out.extend(left);
        }
        out
    }

    /// A result of the sum as it was, from those of the new one.
    fn result(&self, number: usize, sums: &FxHashMap<usize, Var>) -> Exp {
        let Some(Terms { path, outer, lower }) = &self.found[number] else { return Exp::Var(sums[&number]) };
        let at =
            |number: usize, depth: usize| index(sums[&number], path[..depth].iter().map(|(i, _)| Exp::Var(*i)).collect(), Site::default());
        let whole = outer.clone().of(at(number, path.len()));
        let element = lower.iter().fold(whole, |e, (outer, k)| {
            let Extra { depth, number, .. } = self.extra[*k];
            add(e, outer.clone().of(at(number, depth)))
        });
        path.iter().rev().fold(element, |e, (i, size)| for_(*i, size.clone(), e))
    }
}

/// Whether every result of a loop is an array.
fn is_flat(cx: &Context, nest: &Exp) -> bool {
    part_types(&type_of_exp(cx.vars, nest)).iter().all(|ty| !matches!(ty, Type::Tuple(_)))
}
