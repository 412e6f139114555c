//! Records to tuples, after a program is checked.
//!
//! The names of fields leave the types of all variables and functions; those of the functions are kept as their
//! signatures. A record of one field is that field: `{e}` becomes `e`, and taking it apart is a plain `let`.
//! The bindings that take a variable apart (`let (w, b) = p;`) are dropped where no part is used.
//!
//! `restore` undoes it for the signatures, so that derivatives of functions of records are made of records.

use crate::ir::build::let_;
use crate::ir::{Body, Exp, Program, Signature, Var};
use rustc_hash::{FxHashMap, FxHashSet};

/// Erases the functions from number `first` on; `parts` are the variables that only take others apart.
pub fn erase(program: &mut Program, first: usize, parts: &FxHashSet<Var>) {
    for f in &mut program.functions {
        let params: Vec<_> = f.params.iter().map(|p| program.vars.ty(*p).clone()).collect();
        if params.iter().chain([&f.result]).any(|ty| ty.has_record()) {
            f.signature = Some(Box::new(Signature { params, result: f.result.clone() }));
            f.result = f.result.erased();
        }
    }
    let mut uses: FxHashMap<Var, usize> = FxHashMap::default();
    let mut used = |size: &crate::ir::Size| {
        let mut vars = vec![];
        size.variables(&mut vars);
        vars.into_iter().filter(|v| parts.contains(v)).for_each(|v| *uses.entry(v).or_default() += 1);
        size.clone()
    };
    for k in 0..program.vars.count() {
        let var = Var(k as u32);
        let ty = program.vars.ty(var);
        if !parts.is_empty() {
            ty.map_sizes(&mut used);
        }
        if ty.has_record() {
            let erased = ty.erased();
            program.vars.set_ty(var, erased);
        }
    }
    for f in &mut program.functions[first..] {
        if let Body::Exp(body) = &mut f.body {
            if !parts.is_empty() {
                count(body, parts, &mut uses);
            }
            *body = erased(std::mem::replace(body, Exp::Tuple(vec![])), parts, &mut uses);
        }
    }
}

/// Gives functions the types of their signatures again.
pub fn restore(program: &mut Program) {
    for f in &mut program.functions {
        if let Some(signature) = &f.signature {
            f.params.iter().zip(&signature.params).for_each(|(p, ty)| program.vars.set_ty(*p, ty.clone()));
            f.result = signature.result.clone();
        }
    }
}

fn count(exp: &Exp, parts: &FxHashSet<Var>, uses: &mut FxHashMap<Var, usize>) {
    if let Exp::Var(v) = exp {
        if parts.contains(v) {
            *uses.entry(*v).or_default() += 1;
        }
    }
    exp.for_each_size(&mut |size| {
        let mut vars = vec![];
        size.variables(&mut vars);
        vars.into_iter().filter(|v| parts.contains(v)).for_each(|v| *uses.entry(v).or_default() += 1);
    });
    exp.for_each_child(&mut |e| count(e, parts, uses));
}

fn erased(exp: Exp, parts: &FxHashSet<Var>, uses: &mut FxHashMap<Var, usize>) -> Exp {
    match exp {
        Exp::Tuple(mut items) if items.len() == 1 => erased(items.remove(0), parts, uses),
        // What is taken apart further inside is dropped first, and then uses no part of this one.
        Exp::Let(vars, value, body) => {
            let body = erased(*body, parts, uses);
            let unused = |v: &Var| parts.contains(v) && uses.get(v).is_none_or(|n| *n == 0);
            match *value {
                Exp::Var(whole) if vars.iter().all(unused) => {
                    if let Some(n) = uses.get_mut(&whole) {
                        *n -= 1;
                    }
                    body
                }
                value => let_(vars, erased(value, parts, uses), body),
            }
        }
        exp => exp.map_children(&mut |e| erased(e, parts, uses)),
    }
}
