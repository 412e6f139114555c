//! Differentiation: defines derived functions, in forward and reverse mode.
//!
//! `jvp_f(x.., x_tan..) -> (y, y_tan)` and `vjp_f(x.., seed) -> (y, adjoints)`; every other derivative is made of
//! these two by the checker. A derived function is an ordinary function afterwards, so derivatives nest by deriving
//! again. The function derived from must be free of calls (`inline` comes first).

pub mod forward;
pub mod lineage;
pub mod partials;
pub mod reverse;
pub mod rows;
pub mod rules;
pub mod saving;
pub mod scope;
pub mod split;
pub mod work;

use crate::ir::build::*;
use crate::ir::facts::Facts;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;
use forward::Forward;
use reverse::Reverse;
use saving::Saving;
use scope::{Scope, Statement, leaf_types, rebuild};

/// Defines the derived function `id`, whose original must be defined, free of calls and of partials.
pub fn differentiate(program: &mut Program, id: FunctionId, saving: Saving) {
    let Body::Derived { mode, of, wrt } = program.function(id).body.clone() else { return };
    let original = program.function(of).clone();
    let Body::Exp(body) = &original.body else { panic!("differentiate: {} is not defined yet", original.name) };
    let derived = program.function(id).clone();
    let values_each = saving.values_each(&original);
    let vars = &mut program.vars;

    // The derived function's own parameters stand for the original's.
    let mut with = Substitution::default();
    for (old, new) in original.sizes.iter().zip(&derived.sizes) {
        with.insert(*old, Exp::Var(*new));
    }
    for (old, new) in original.params.iter().zip(&derived.params) {
        with.insert(*old, Exp::Var(*new));
    }
    // Of a function that has derivatives of its own these are taken, not its body's.
    let body = match vars.rules(of) {
        Some(_) => Exp::Call(of, derived.params[..original.params.len()].iter().map(|v| Exp::Var(*v)).collect(), Site::default()),
        None => copy(vars, body, &with),
    };
    let params = &derived.params[..original.params.len()];
    let extra = &derived.params[original.params.len()..];

    // Parameters that are tuples are taken apart first.
    let mut entry: Vec<Statement> = vec![];
    let mut with = Substitution::default();
    let mut leaves: Vec<Vec<Var>> = vec![];
    for p in params {
        let parts = take_apart(vars, *p, &mut entry);
        if matches!(vars.ty(*p), Type::Tuple(_)) {
            let ty = vars.ty(*p).clone();
            with.insert(*p, rebuild(&ty, &mut parts.iter().map(|v| Exp::Var(*v))));
        }
        leaves.push(parts);
    }
    let body = traverse::substitute(vars, body, &with);
    let result_type = type_of_exp(vars, &body);
    let scope = Scope::name(vars, body);
    let float_leaves = |vars: &Vars, leaves: &[Var]| -> Vec<Var> { leaves.iter().copied().filter(|v| vars.ty(*v).has_float()).collect() };

    let body = match mode {
        Mode::Jvp => {
            let mut tangents = vec![];
            for (k, t) in wrt.iter().zip(extra) {
                let parts = take_apart(vars, *t, &mut entry);
                tangents.extend(float_leaves(vars, &leaves[*k]).into_iter().zip(parts));
            }
            let mut cx = Forward::new(vars, Facts::of_function(&derived));
            for (v, t) in tangents {
                cx.set_tangent(v, Exp::Var(t));
            }
            let done = cx.scope(scope);
            let result = rebuild(&result_type, &mut done.results.iter().cloned());
            let types = leaf_types(&result_type);
            let mut tangents = vec![];
            for (ty, tangent) in types.iter().zip(done.tangents) {
                if ty.has_float() {
                    tangents.push(tangent.unwrap_or_else(|| zero(vars, ty)));
                }
            }
            let mut results = vec![result];
            results.extend(result_type.tangent().map(|ty| rebuild(&ty, &mut tangents.into_iter())));
            lets(done.statements, tuple(results))
        }
        Mode::Vjp => {
            let mut seeds: Vec<Exp> = vec![];
            if let Some(seed) = extra.first() {
                seeds.extend(take_apart(vars, *seed, &mut entry).into_iter().map(Exp::Var));
            }
            let mut seeds = seeds.into_iter();
            let seeds = leaf_types(&result_type).iter().map(|ty| if ty.has_float() { seeds.next() } else { None }).collect();
            let targets: Vec<Vec<Var>> = wrt.iter().map(|k| float_leaves(vars, &leaves[*k])).collect();
            let mut cx = Reverse::new(vars, Facts::of_function(&derived), targets.iter().flatten().copied());
            cx.saving = saving;
            cx.values_each = values_each;
            cx.mark_varied(&scope.statements);
            let mut done = cx.scope(scope, seeds);
            let result = rebuild(&result_type, &mut done.results.iter().cloned());
            let mut adjoints = vec![];
            for (k, leaves) in wrt.iter().zip(&targets) {
                let mut parts = vec![];
                for v in leaves {
                    let ty = vars.ty(*v).clone();
                    parts.push(done.adjoints.shift_remove(v).unwrap_or_else(|| zero(vars, &ty)));
                }
                let ty = vars.ty(params[*k]).tangent().expect("a parameter with floats");
                adjoints.push(rebuild(&ty, &mut parts.into_iter()));
            }
            let mut statements = done.forward;
            statements.extend(done.backward);
            lets(statements, Exp::Tuple(vec![result, tuple(adjoints)]))
        }
    };
    program.functions[id.0 as usize].body = Body::Exp(lets(entry, body));
}

/// The variables for the scalars and arrays of a parameter; a tuple is taken apart by `let`s.
fn take_apart(vars: &mut Vars, param: Var, out: &mut Vec<Statement>) -> Vec<Var> {
    let Type::Tuple(types) = vars.ty(param).clone() else { return vec![param] };
    let name = vars.name(param).to_string();
    let parts: Vec<Var> = types.into_iter().map(|ty| vars.fresh(name.clone(), ty)).collect();
    out.push((parts.clone(), Exp::Var(param)));
    parts.into_iter().flat_map(|p| take_apart(vars, p, out)).collect()
}
