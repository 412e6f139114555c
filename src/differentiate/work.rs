//! How much an expression does, as a size: to compare with it how large an adjoint is that is made each time.
//!
//! Every operation, read and element counts once, a loop as often as it runs. This is about orders: a guard and both branches
//! of a choice count as if they were taken, a loop runs a few steps more, and of a size that depends on the step of a loop
//! around it the first and the last one count. Where a loop's length is not known to be a length, one step of it counts.

use crate::ir::build::exp_size;
use crate::ir::facts::Facts;
use crate::ir::*;

pub fn work(vars: &Vars, facts: &mut Facts, exp: &Exp) -> Size {
    match exp {
        Exp::Var(_) | Exp::Lit(_) => Size::default(),
        Exp::For(i, size, body) => steps(vars, facts, *i, &Size::default(), size, body),
        Exp::Sum(range, body) | Exp::Reduce(_, range, body, _) => ranged(vars, facts, range, body),
        Exp::History(h) => {
            let begin = work(vars, facts, &h.init).add(&made(vars, facts, &h.state));
            begin.add(&steps(vars, facts, h.index, &Size::default(), &h.size, &h.body))
        }
        Exp::Loop(l) => {
            let begin = work(vars, facts, &l.init).add(&made(vars, facts, &l.state));
            begin.add(&match &l.trip {
                Trip::For(range) => ranged(vars, facts, range, &l.body),
                Trip::While(_) => work(vars, facts, &l.body),
            })
        }
        Exp::Op(..)
        | Exp::Partial(..)
        | Exp::Index(..)
        | Exp::Singleton(..)
        | Exp::Update(..)
        | Exp::Guard(..)
        | Exp::If(..)
        | Exp::Let(..)
        | Exp::Tuple(_)
        | Exp::Array(_)
        | Exp::Call(..) => {
            let mut total = Size::constant(1);
            exp.for_each_child(&mut |e| total = total.add(&work(vars, facts, e)));
            total
        }
    }
}

/// How many elements a type has.
pub fn elements(ty: &Type) -> Size {
    ty.shape().iter().fold(Size::constant(1), |product, s| product.mul(s))
}

/// The elements of the states that a loop begins with.
fn made(vars: &Vars, facts: &Facts, state: &[Var]) -> Size {
    let sizes = state.iter().map(|v| elements(vars.ty(*v))).filter(|size| facts.prove_nonneg(size));
    sizes.fold(Size::default(), |total, size| total.add(&size))
}

fn ranged(vars: &Vars, facts: &mut Facts, range: &Range, body: &Exp) -> Size {
    match exp_size(&range.lo).zip(exp_size(&range.hi)) {
        Some((lo, hi)) => steps(vars, facts, range.index, &lo, &hi.sub(&lo), body),
        None => work(vars, facts, body),
    }
}

fn steps(vars: &Vars, facts: &mut Facts, index: Var, lo: &Size, size: &Size, body: &Exp) -> Size {
    let hi = lo.add(size);
    let mark = facts.mark();
    facts.enter(index, lo, &hi);
    let step = work(vars, facts, body);
    facts.reset(mark);
    let at = |value: &Size| step.substitute(&|v| (v == index).then(|| value.clone()));
    let step = if step.mentions(index) { at(lo).add(&at(&hi)) } else { step };
    // One step more and one less are of one order, and `n - 1` may be less than none.
    let length = size.add(&Size::constant(2));
    if facts.prove_nonneg(&length) { length.mul(&step) } else { step }
}
