//! A value that only one branch uses is computed in that branch.
//!
//! `let t = e; if p then f(t) else b`   is   `if p then (let t = e; f(t)) else b`

use crate::ir::build::*;
use crate::ir::*;

/// Whether all uses of some variables, `total` of them in this expression, stand in one branch or under one guard.
pub fn sinks(exp: &Exp, vars: &[Var], total: usize) -> bool {
    match exp {
        Exp::Guard(p, e) => match count(p, vars) {
            0 => count(e, vars) == total,
            in_condition => in_condition == total && sinks(p, vars, total),
        },
        Exp::If(p, a, b) => match count(p, vars) {
            0 => count(a, vars) == total || count(b, vars) == total,
            in_condition => in_condition == total && sinks(p, vars, total),
        },
        // A chain of bindings is long: each value is counted once.
        Exp::Let(_, value, body) => match count(value, vars) {
            0 => sinks(body, vars, total),
            in_value => in_value == total && sinks(value, vars, total),
        },
        Exp::For(..) | Exp::Sum(..) | Exp::Reduce(..) | Exp::History(_) | Exp::Loop(_) => false,
        Exp::Var(_)
        | Exp::Lit(_)
        | Exp::Op(..)
        | Exp::Partial(..)
        | Exp::Index(..)
        | Exp::Singleton(..)
        | Exp::Update(..)
        | Exp::Tuple(_)
        | Exp::Array(_)
        | Exp::Call(..) => {
            let (mut found, mut seen) = (false, 0);
            exp.for_each_child(&mut |e| {
                if seen == 0 {
                    seen = count(e, vars);
                    found = seen == total && sinks(e, vars, total);
                }
            });
            found
        }
    }
}

/// Binds the variables to the value where `sinks` found a place for it.
pub fn sink(exp: Exp, vars: &[Var], value: Exp, total: usize) -> Exp {
    let has_all = |e: &Exp| count(e, vars) == total;
    match exp {
        Exp::Guard(p, e) if !has_all(&p) => guard(*p, let_(vars.to_vec(), value, *e)),
        Exp::If(p, a, b) if has_all(&a) => if_(*p, let_(vars.to_vec(), value, *a), *b),
        Exp::If(p, a, b) if has_all(&b) => if_(*p, *a, let_(vars.to_vec(), value, *b)),
        Exp::Let(bound, e, body) => match count(&e, vars) {
            0 => let_(bound, *e, sink(*body, vars, value, total)),
            _ => let_(bound, sink(*e, vars, value, total), *body),
        },
        exp => {
            let mut value = Some(value);
            exp.map_children(&mut |e| {
                if value.is_some() && has_all(&e) { sink(e, vars, value.take().expect("bound once"), total) } else { e }
            })
        }
    }
}

fn count(exp: &Exp, vars: &[Var]) -> usize {
    let mut found = matches!(exp, Exp::Var(v) if vars.contains(v)) as usize;
    exp.for_each_size(&mut |size| found += vars.iter().filter(|v| size.mentions(**v)).count());
    exp.for_each_child(&mut |e| found += count(e, vars));
    found
}
