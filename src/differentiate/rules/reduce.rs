//! y = prod i. r[i]        (in named form a reduction runs over an array)
//!
//! With `before[i] = r[0] ⋯ r[i-1]` and `after[i] = r[n-i] ⋯ r[n-1]`, both running products:
//! forward:  ẏ = sum i. ṙ[i] * (before[i] * after[n-1-i])
//! reverse:  r̄ += for i. before[i] * after[n-1-i], where `after` starts from ȳ instead of 1
//! exact with zeros among the factors, and differentiable again. A product then costs three times its multiplications.
//!
//! y = max i. r[i], with k the place of the first largest element:
//! forward:  ẏ = ṙ[k]
//! reverse:  r̄ += {k -> ȳ}
//! and nothing where there is no element. `min` likewise. `argmax argmin any all` have no derivative.

use super::super::forward::Forward;
use super::super::reverse::Reverse;
use super::super::scope::Statement;
use crate::ir::build::*;
use crate::ir::facts::Facts;
use crate::ir::*;

pub fn forward(cx: &mut Forward, y: Var, kind: Reduction, range: Range, body: Exp, site: Site, out: &mut Vec<Statement>) {
    let (elements, size) = array_of(&cx.facts, &range, &body);
    let Some(elements_tan) = cx.tangent(&Exp::Var(elements)) else {
        out.push((vec![y], Exp::Reduce(kind, Box::new(range), Box::new(body), site)));
        return;
    };
    match kind {
        Reduction::Prod => {
            let one = float(element_scalar(cx.vars, elements), 1.0);
            let (before, after) = (Products::before(elements, &size), Products::after(elements, &size));
            let (before, after) = (before.running(cx.vars, one.clone(), out), after.running(cx.vars, one, out));
            out.push((vec![y], index(before, vec![size_exp(&size)], Site::default())));
            let i = cx.vars.fresh(cx.vars.name(range.index).to_string(), Type::I64);
            let term = mul(index(elements_tan, vec![Exp::Var(i)], Site::default()), others(before, after, i, &size));
            cx.bind_tangent(y, sum(i, i64(0), size_exp(&size), term), out);
        }
        Reduction::Max | Reduction::Min => {
            let k = extremum(cx.vars, y, kind, elements, &size, out);
            let tangent = guard(some(&size), index(elements_tan, vec![Exp::Var(k)], Site::default()));
            cx.bind_tangent(y, tangent, out);
        }
        Reduction::ArgMax | Reduction::ArgMin | Reduction::Any | Reduction::All => unreachable!("their results are no floats"),
    }
}

pub fn reverse(cx: &mut Reverse, y: Var, kind: Reduction, range: Range, body: Exp, y_adj: Exp) -> Vec<Statement> {
    let (elements, size) = array_of(&cx.facts, &range, &body);
    let mut forward = vec![];
    match kind {
        Reduction::Prod => {
            let one = float(element_scalar(cx.vars, elements), 1.0);
            let before = Products::before(elements, &size).running(cx.vars, one, &mut forward);
            forward.push((vec![y], index(before, vec![size_exp(&size)], Site::default())));
            let mut backward = vec![];
            let after = Products::after(elements, &size).running(cx.vars, y_adj, &mut backward);
            backward.into_iter().for_each(|(vars, exp)| cx.emit(vars, exp));
            let i = cx.vars.fresh(cx.vars.name(range.index).to_string(), Type::I64);
            let contribution = for_(i, size.clone(), others(before, after, i, &size));
            cx.contribute(&Exp::Var(elements), contribution);
        }
        Reduction::Max | Reduction::Min => {
            let k = extremum(cx.vars, y, kind, elements, &size, &mut forward);
            let axis = cx.vars.ty(elements).shape()[0].clone();
            let contribution = guard(some(&size), singleton(vec![(Exp::Var(k), axis)], y_adj, Site::default().passed()));
            cx.contribute(&Exp::Var(elements), contribution);
        }
        Reduction::ArgMax | Reduction::ArgMin | Reduction::Any | Reduction::All => unreachable!("their results are no floats"),
    }
    forward
}

/// The array that a reduction in named form runs over, and its number of elements, which is not negative.
fn array_of(facts: &Facts, range: &Range, body: &Exp) -> (Var, Size) {
    let size = exp_size(&range.hi).expect("a size");
    let size = if facts.prove_nonneg(&size) { size } else { Size::constant(0).maximum(&size) };
    match body {
        Exp::Index(array, keys, _) if keys.as_slice() == [Exp::Var(range.index)] => match **array {
            Exp::Var(v) => (v, size),
            _ => panic!("differentiate: a read is of a variable"),
        },
        _ => panic!("differentiate: a reduction runs over an array"),
    }
}

fn element_scalar(vars: &Vars, elements: Var) -> Scalar {
    vars.ty(elements).scalar().expect("a reduction runs over an array of scalars")
}

/// `0 < size`
fn some(size: &Size) -> Exp {
    match size.as_constant() {
        Some(c) => bool(c > 0),
        None => op2(Op::Lt, i64(0), size_exp(size)),
    }
}

/// The products of the first elements, or of the last ones.
struct Products<'a> {
    name: &'static str,
    elements: Var,
    size: &'a Size,
    backwards: bool,
}

impl<'a> Products<'a> {
    fn before(elements: Var, size: &'a Size) -> Products<'a> {
        Products { name: "before", elements, size, backwards: false }
    }
    fn after(elements: Var, size: &'a Size) -> Products<'a> {
        Products { name: "after", elements, size, backwards: true }
    }

    /// Binds all of them, the first being `start`.
    fn running(self, vars: &mut Vars, start: Exp, out: &mut Vec<Statement>) -> Var {
        let scalar = element_scalar(vars, self.elements);
        let (p, i) = (vars.fresh("p", Type::Scalar(scalar)), vars.fresh("i", Type::I64));
        let key = if self.backwards { last(self.size, i) } else { Exp::Var(i) };
        let body = mul(p, index(self.elements, vec![key], Site::default()));
        let all = vars.fresh(self.name, Type::Array(vec![self.size.add(&Size::constant(1))], scalar));
        let h = History { state: vec![p], init: start, index: i, size: self.size.clone(), body };
        out.push((vec![all], Exp::History(Box::new(h))));
        all
    }
}

/// The place `i` counted from the end.
fn last(size: &Size, i: Var) -> Exp {
    size_exp(&size.sub(&Size::constant(1)).sub(&Size::var(i)))
}

/// The product of all elements but the one at `i`, times what the running products start from.
fn others(before: Var, after: Var, i: Var, size: &Size) -> Exp {
    mul(index(before, vec![Exp::Var(i)], Site::default()), index(after, vec![last(size, i)], Site::default()))
}

/// Finds the place of the extremum, binds `y` by reading there, and gives the place.
fn extremum(vars: &mut Vars, y: Var, kind: Reduction, elements: Var, size: &Size, out: &mut Vec<Statement>) -> Var {
    let place = if kind == Reduction::Max { Reduction::ArgMax } else { Reduction::ArgMin };
    let nothing = kind.neutral(element_scalar(vars, elements));
    let (k, i) = (vars.fresh("k", Type::I64), vars.fresh("i", Type::I64));
    let range = Range { index: i, lo: i64(0), hi: size_exp(size) };
    let found = Exp::Reduce(place, Box::new(range), Box::new(index(elements, vec![Exp::Var(i)], Site::default())), Site::default());
    out.push((vec![k], if_(some(size), found, i64(0))));
    let value = index(elements, vec![Exp::Var(k)], Site::default());
    out.push((vec![y], if_(some(size), value, Exp::Lit(nothing))));
    k
}
