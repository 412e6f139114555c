//! `#[bound(n)] loop s = e while p do f` counts its steps, and fails when there is one too many:
//!
//! `loop (s, count) = (e, 0) while (if p then bounded(count + 1, n) > 0 else false) do (f, count + 1)`
//!
//! It runs when no derivative is taken any more: these keep what is said of the loop.

use crate::ir::build::*;
use crate::ir::*;

pub fn count_bounded(vars: &mut Vars, exp: Exp) -> Exp {
    let exp = exp.map_children(&mut |e| count_bounded(vars, e));
    let Exp::Loop(l) = exp else { return exp };
    let Some(most) = l.bound().map(size_exp) else { return Exp::Loop(l) };
    let Iteration { state, init, trip, body, annotations } = *l;
    let Trip::While(condition) = trip else { return Exp::Loop(Box::new(Iteration { state, init, trip, body, annotations })) };
    let site = vars.origin(state[0]).map_or(Site::default(), Site::new);
    let (counter, count) = (vars.fresh("count", Type::I64), vars.fresh("count", Type::I64));
    let again = |vars: &mut Vars| -> Vec<Var> { state.iter().map(|s| vars.fresh_like(*s, vars.ty(*s).clone())).collect() };
    let (first, next, last) = (again(vars), again(vars), again(vars));
    let with = |parts: &[Var], more: Exp| tuple(parts.iter().map(|v| Exp::Var(*v)).chain([more]).collect());
    let fits = Exp::Op(Op::Bounded, vec![add(counter, i64(1)), most], site);
    let condition = if_(condition, op2(Op::Gt, fits, i64(0)), bool(false));
    let steps = Exp::Loop(Box::new(Iteration {
        state: state.iter().copied().chain([counter]).collect(),
        init: let_(first.clone(), init, with(&first, i64(0))),
        trip: Trip::While(condition),
        body: let_(next.clone(), body, with(&next, add(counter, i64(1)))),
        annotations,
    }));
    let result = tuple(last.iter().map(|v| Exp::Var(*v)).collect());
    let_(last.into_iter().chain([count]).collect(), steps, result)
}
