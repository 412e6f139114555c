//! Partial derivatives of scalar operations as expressions, from the formulas of `scalar`.

use crate::ir::build::*;
use crate::ir::*;
use crate::scalar::Formula;

/// `∂op/∂args[k]` at `args`, where the operation's result is `result`. `None` where it is zero.
/// A formula of at most one operation is written out; a longer one is a `Partial`, which counts as one call.
pub fn partial(vars: &Vars, op: Op, k: usize, args: &[Exp], result: &Exp) -> Option<Exp> {
    let kinds: Vec<Scalar> = args.iter().map(|a| scalar_of(vars, a)).collect();
    let formula = op.partial(k, &kinds)?;
    if formula.op_count() <= 1 {
        return Some(write_out(formula, &args[0], args.get(1), result));
    }
    let operands = formula.uses().select(args[0].clone(), args.get(1).cloned(), result.clone());
    Some(Exp::Partial(op, k, operands))
}

/// `factor * partial`, sparing products with ±1.
pub fn scaled(partial: Exp, factor: Exp) -> Exp {
    match partial {
        Exp::Lit(lit) if lit == Lit::one(lit.scalar()) => factor,
        Exp::Lit(lit) if lit == Lit::small(lit.scalar(), -1) => op1(Op::Neg, factor),
        // factor * (1 / y) is factor / y: one operation
        Exp::Op(Op::Div, mut args, _) if is_one(&args[0]) => op2(Op::Div, factor, args.pop().expect("two operands")),
        partial => mul(partial, factor),
    }
}

fn is_one(exp: &Exp) -> bool {
    matches!(exp, Exp::Lit(lit) if *lit == Lit::one(lit.scalar()))
}

/// Writes out every `Partial`, so that it can be differentiated or compiled.
pub fn expand_partials(vars: &mut Vars, exp: Exp) -> Exp {
    let exp = exp.map_children(&mut |e| expand_partials(vars, e));
    match exp {
        Exp::Partial(op, k, operands) => {
            // The operands appear more than once in a formula: bind those that are no atoms.
            let mut bindings = vec![];
            let atoms: Vec<Exp> = operands
                .into_iter()
                .map(|e| match e {
                    Exp::Var(_) | Exp::Lit(_) => e,
                    e => {
                        let ty = type_of_exp(vars, &e);
                        let v = vars.fresh("t", ty);
                        bindings.push((vec![v], e));
                        Exp::Var(v)
                    }
                })
                .collect();
            lets(bindings, formula_of(vars, op, k, &atoms))
        }
        exp => exp,
    }
}

pub fn has_partials(exp: &Exp) -> bool {
    let mut found = matches!(exp, Exp::Partial(..));
    exp.for_each_child(&mut |e| found = found || has_partials(e));
    found
}

/// The formula of a `Partial`, its operands put in.
fn formula_of(vars: &Vars, op: Op, k: usize, operands: &[Exp]) -> Exp {
    let kinds: Vec<Scalar> = operands.iter().map(|e| scalar_of(vars, e)).collect();
    let (_, formula) = op.partial_of(k, &kinds).unwrap_or_else(|| panic!("differentiate: {op:?} has no partial {k} for {kinds:?}"));
    let uses = formula.uses();
    let mut given = operands.iter();
    let unused = Exp::Tuple(vec![]);
    let mut next = |used: bool| if used { given.next().expect("as many operands as the formula uses") } else { &unused };
    let (x, y, r) = (next(uses.x), next(uses.y), next(uses.r));
    write_out(formula, x, Some(y), r)
}

pub fn scalar_of(vars: &Vars, exp: &Exp) -> Scalar {
    type_of_exp(vars, exp).scalar().expect("operands of scalar operations are scalars")
}

fn write_out(formula: &Formula, x: &Exp, y: Option<&Exp>, r: &Exp) -> Exp {
    match formula {
        Formula::X => x.clone(),
        Formula::Y => y.expect("a formula of y has y").clone(),
        Formula::R => r.clone(),
        Formula::Lit(lit) => Exp::Lit(*lit),
        Formula::Apply(op, args) => Exp::Op(*op, args.iter().map(|a| write_out(a, x, y, r)).collect(), Site::default()),
        Formula::If(p, a, b) => if_(write_out(p, x, y, r), write_out(a, x, y, r), write_out(b, x, y, r)),
    }
}
