//! Replaces calls by the bodies called.
//!
//! A call's sizes are those of its arguments. An argument that is an atom, or an integer that is a size, takes its
//! parameter's place; others are bound first. There is no recursion, so this ends.

use super::simplify::guards::vanishes;
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;
use rustc_hash::FxHashSet;

/// Inlines every call in the function; what it calls must be defined.
pub fn inline(program: &mut Program, id: FunctionId) {
    inline_where(program, id, &|_| true);
}

/// Inlines all calls but those of functions that have derivatives of their own, for the function to be differentiated.
pub fn inline_for_derivatives(program: &mut Program, id: FunctionId) {
    let ruled: Vec<bool> = (0..program.functions.len()).map(|k| program.vars.rules(FunctionId(k as u32)).is_some()).collect();
    inline_where(program, id, &|f| !ruled[f.0 as usize]);
}

fn inline_where(program: &mut Program, id: FunctionId, wanted: &dyn Fn(FunctionId) -> bool) {
    let Body::Exp(body) = &program.function(id).body else { return };
    let body = body.clone();
    let body = inline_exp(program, body, wanted);
    program.functions[id.0 as usize].body = Body::Exp(body);
}

/// The functions that a function calls, or is derived from.
pub fn callees(program: &Program, id: FunctionId) -> Vec<FunctionId> {
    fn walk(e: &Exp, out: &mut Vec<FunctionId>) {
        if let Exp::Call(f, _, _) = e {
            if !out.contains(f) {
                out.push(*f);
            }
        }
        e.for_each_child(&mut |c| walk(c, out));
    }
    let mut out = vec![];
    match &program.function(id).body {
        Body::Exp(e) => walk(e, &mut out),
        Body::Derived { of, .. } => out.push(*of),
        Body::Entries(entries) => out.extend(entries.forward.iter().chain(&entries.reverse)),
        Body::Jacobian { of, .. } => out.push(*of),
    }
    out
}

fn inline_exp(program: &mut Program, exp: Exp, wanted: &dyn Fn(FunctionId) -> bool) -> Exp {
    let exp = exp.map_children(&mut |e| inline_exp(program, e, wanted));
    let Exp::Call(id, args, site) = exp else { return exp };
    if !wanted(id) {
        return Exp::Call(id, args, site);
    }
    let types: Vec<Type> = args.iter().map(|a| type_of_exp(&program.vars, a)).collect();
    let bound = bind_sizes(program, id, &types, &args);
    let callee = program.function(id).clone();
    let Body::Exp(body) = &callee.body else { panic!("inline: {} is not defined", callee.name) };

    // What is linear in an argument that is not there need not be computed.
    let linear = program.vars.linear_params(id);
    let nothing = callee.params.iter().zip(&args).filter(|(v, arg)| linear.contains(v) && is_zero(arg)).map(|(v, _)| *v).collect();
    let body = &without(&mut program.vars, body.clone(), nothing);

    let mut with = Substitution::default();
    for size in &callee.sizes {
        let value = bound.get(size).cloned().expect("every size is bound by an argument");
        // A size is a number of places: that of an axis `n - 1` is not -1 where `n` is 0.
        let exact = is_natural(program, &value) || value.as_constant().is_some() || !is_axis(program, id, *size);
        let value = if exact { value } else { value.maximum(&Size::constant(0)) };
        with.insert(*size, size_exp(&value));
    }
    let mut bindings = vec![];
    for (param, (arg, ty)) in callee.params.iter().zip(args.into_iter().zip(types)) {
        let direct = matches!(arg, Exp::Var(_) | Exp::Lit(_)) || (ty == Type::I64 && exp_size(&arg).is_some());
        if direct {
            with.insert(*param, arg);
        } else {
            let name = program.vars.name(*param).to_string();
            let fresh = program.vars.fresh(name, ty);
            bindings.push((vec![fresh], arg));
            with.insert(*param, Exp::Var(fresh));
        }
    }
    let body = copy(&mut program.vars, body, &with);
    // What is called may itself have calls of such functions left.
    let body = inline_exp(program, body, wanted);
    lets(bindings, if callee.span.is_of_library() { body.called_from(site.span) } else { body })
}

/// Whether a size is a variable, or a sum of sizes of functions, which are not negative.
fn is_natural(program: &Program, size: &Size) -> bool {
    let mut vars = vec![];
    size.variables(&mut vars);
    let sizes = || vars.iter().all(|v| program.functions.iter().any(|f| f.sizes.contains(v)));
    let sums = size.degree() <= 1 && size.nesting() == 0 && size.terms().all(|(_, c)| c >= 0);
    size.as_var().is_some() || (sums && sizes())
}

/// The expression where some variables are zero, and everything that is zero with them is left out.
fn without(vars: &mut Vars, exp: Exp, mut zeros: FxHashSet<Var>) -> Exp {
    if zeros.is_empty() {
        return exp;
    }
    let ty = type_of_exp(vars, &exp);
    if ty.has_float() && vanishes(&exp, &mut zeros.clone()) {
        return zero(vars, &ty);
    }
    match exp {
        Exp::Let(bound, value, body) => {
            if vanishes(&value, &mut zeros.clone()) {
                zeros.extend(&bound);
            }
            let value = without(vars, *value, zeros.clone());
            let_(bound, value, without(vars, *body, zeros))
        }
        exp => exp.map_children(&mut |e| without(vars, e, zeros.clone())),
    }
}
