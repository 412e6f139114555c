//! Which parts of a loop's state are sums: `loop (x, total) = … do (e, total + t)`, where nothing else reads `total`.
//!
//! Such a part needs no next state beside the one at hand: `t` is added where the state is. A sum of singletons in a
//! loop touches one place in each step.

use super::*;

/// For each variable of the state, whether it is an array (or a tuple) that the steps only add to. Scalars are not
/// asked for: adding to them is making them anew.
pub fn summed(table: &Vars, l: &Iteration) -> Vec<bool> {
    let condition_reads = |v: Var| match &l.trip {
        Trip::While(condition) => condition.mentions(v),
        Trip::For(_) => false,
    };
    let sums = |(k, v): (usize, &Var)| {
        !matches!(table.ty(*v), Type::Scalar(_)) && !condition_reads(*v) && adds_only(&l.body, k, l.state.len(), *v)
    };
    l.state.iter().enumerate().map(sums).collect()
}

/// Whether the step is `let`s and branches around a tuple whose part `k` alone mentions the variable, to add to it.
fn adds_only(body: &Exp, k: usize, count: usize, v: Var) -> bool {
    match body {
        Exp::Let(_, value, rest) => !value.mentions(v) && adds_only(rest, k, count, v),
        Exp::If(p, a, b) => !p.mentions(v) && adds_only(a, k, count, v) && adds_only(b, k, count, v),
        Exp::Tuple(parts) if count > 1 && parts.len() == count => {
            parts.iter().enumerate().all(|(j, part)| if j == k { is_sum(part, v) } else { !part.mentions(v) })
        }
        body => count == 1 && is_sum(body, v),
    }
}

/// `v`, `v + t`
fn is_sum(e: &Exp, v: Var) -> bool {
    match e {
        Exp::Var(w) => *w == v,
        Exp::Op(Op::Add, args, _) => is_sum(&args[0], v) && !args[1].mentions(v),
        Exp::Let(_, value, body) => !value.mentions(v) && is_sum(body, v),
        Exp::If(p, a, b) => !p.mentions(v) && is_sum(a, v) && is_sum(b, v),
        Exp::Lit(_)
        | Exp::Op(..)
        | Exp::Partial(..)
        | Exp::Index(..)
        | Exp::Singleton(..)
        | Exp::For(..)
        | Exp::Sum(..)
        | Exp::Reduce(..)
        | Exp::History(_)
        | Exp::Loop(_)
        | Exp::Update(..)
        | Exp::Guard(..)
        | Exp::Tuple(_)
        | Exp::Array(_)
        | Exp::Call(..) => false,
    }
}
