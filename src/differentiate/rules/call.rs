//! y = f(x), where the program gives derivatives of f
//!
//! forward:  ẏ = jvp f(x, ẋ), or the transpose of vjp f as a function of its seed, applied to ẋ
//! reverse:  x̄ = vjp f(x, ȳ), or the transpose of jvp f as a function of its tangents, applied to ȳ
//!
//! A transpose is the `vjp` of the rule by what it is linear in, at zero; its value is not used.

use super::super::forward::Forward;
use super::super::reverse::Reverse;
use super::super::scope::Statement;
use crate::ir::build::*;
use crate::ir::*;

pub fn forward(cx: &mut Forward, vars: Vec<Var>, id: FunctionId, args: Vec<Exp>, site: Site, out: &mut Vec<Statement>) {
    let rules = cx.vars.rules(id).expect("other calls are inlined before");
    let tangents: Vec<Exp> = args.iter().filter_map(|a| tangent_of(cx, a)).collect();
    let floats: Vec<Var> = vars.iter().copied().filter(|v| cx.vars.ty(*v).has_float()).collect();
    out.push((vars, Exp::Call(id, args.clone(), site)));
    let mut bound: Vec<Var> = vec![];
    for v in &floats {
        let ty = cx.vars.ty(*v).clone();
        let t = cx.tangent_var(*v, ty);
        cx.set_tangent(*v, Exp::Var(t));
        bound.push(t);
    }
    match (rules.jvp, rules.transposed) {
        (Some(jvp), _) => out.push((bound, Exp::Call(jvp, [args, tangents].concat(), site))),
        (None, transposed) => {
            let types: Vec<Type> = floats.iter().map(|v| cx.vars.ty(*v).clone()).collect();
            let seed = zero(cx.vars, &tuple_type(types));
            let call = Exp::Call(transposed.expect("of the one rule"), [args, vec![seed, tuple(tangents)]].concat(), site);
            second_part(cx.vars, call, bound, out);
        }
    }
}

pub fn reverse(cx: &mut Reverse, vars: &[Var], id: FunctionId, args: &[Exp], site: Site, adjoints: Vec<Option<Exp>>) {
    let rules = cx.vars.rules(id).expect("other calls are inlined before");
    let mut seeds = vec![];
    for (v, adjoint) in vars.iter().zip(adjoints) {
        let ty = cx.vars.ty(*v).clone();
        if ty.has_float() {
            seeds.push(adjoint.unwrap_or_else(|| zero(cx.vars, &ty)));
        }
    }
    let (seed, args) = (tuple(seeds), args.to_vec());
    let active: Vec<Exp> = args.iter().filter(|a| type_of_exp(cx.vars, a).has_float()).cloned().collect();
    let types: Vec<Type> = active.iter().filter_map(|a| type_of_exp(cx.vars, a).tangent()).collect();
    let bound: Vec<Var> = types.iter().map(|ty| cx.vars.fresh("adj", ty.clone())).collect();
    let mut statements = vec![];
    match (rules.vjp, rules.transposed) {
        (Some(vjp), _) => statements.push((bound.clone(), Exp::Call(vjp, [args, vec![seed]].concat(), site))),
        (None, transposed) => {
            let zeros = types.iter().map(|ty| zero(cx.vars, ty)).collect();
            let call = Exp::Call(transposed.expect("of the one rule"), [args, zeros, vec![seed]].concat(), site);
            second_part(cx.vars, call, bound.clone(), &mut statements);
        }
    }
    statements.into_iter().for_each(|(vars, exp)| cx.emit(vars, exp));
    for (arg, adjoint) in active.iter().zip(bound) {
        give(cx, arg, adjoint);
    }
}

/// The tangent of an argument, a tuple of atoms; `None` if it has no floats.
fn tangent_of(cx: &mut Forward, arg: &Exp) -> Option<Exp> {
    if let Exp::Tuple(parts) = arg {
        let tangents: Vec<Exp> = parts.iter().filter_map(|e| tangent_of(cx, e)).collect();
        return (!tangents.is_empty()).then(|| tuple(tangents));
    }
    let ty = type_of_exp(cx.vars, arg);
    ty.has_float().then(|| cx.tangent(arg).unwrap_or_else(|| zero(cx.vars, &ty)))
}

/// Adds an adjoint to those of an argument's atoms.
fn give(cx: &mut Reverse, arg: &Exp, adjoint: Var) {
    let Exp::Tuple(parts) = arg else { return cx.contribute(arg, Exp::Var(adjoint)) };
    let active: Vec<&Exp> = parts.iter().filter(|e| type_of_exp(cx.vars, e).has_float()).collect();
    let [one] = active.as_slice() else {
        let types: Vec<Type> = active.iter().filter_map(|e| type_of_exp(cx.vars, e).tangent()).collect();
        let bound: Vec<Var> = types.into_iter().map(|ty| cx.vars.fresh("adj", ty)).collect();
        cx.emit(bound.clone(), Exp::Var(adjoint));
        return active.into_iter().zip(bound).for_each(|(e, v)| give(cx, e, v));
    };
    give(cx, one, adjoint)
}

/// Binds variables to the second part of what a call gives.
fn second_part(vars: &mut Vars, call: Exp, bound: Vec<Var>, out: &mut Vec<Statement>) {
    let Type::Tuple(parts) = type_of_exp(vars, &call) else { unreachable!("derived functions give pairs") };
    let first = vars.fresh("value", parts[0].clone());
    if let [v] = bound.as_slice() {
        return out.push((vec![first, *v], call));
    }
    let second = vars.fresh("parts", parts[1].clone());
    out.push((vec![first, second], call));
    out.push((bound, Exp::Var(second)));
}
