//! Functions of one program put into another.

use super::*;
use crate::ir::build::{exp_size, size_exp};

impl Program {
    /// Appends the functions of another program that its function `wanted` needs, and says which of ours it is. A function
    /// that is there already, by its name, is not appended again.
    pub fn graft(&mut self, other: &Program, wanted: &str) -> FunctionId {
        if let Some(id) = self.find(wanted) {
            return id;
        }
        let first = self.vars.count() as u32;
        for k in 0..other.vars.count() {
            let var = Var(k as u32);
            let ty = other.vars.ty(var).map_sizes(&mut |s| shifted_size(s, first));
            self.vars.fresh(other.vars.name(var), ty);
        }
        let mut ids = vec![];
        let mut next = self.functions.len() as u32;
        for f in &other.functions {
            ids.push(self.find(&f.name).unwrap_or_else(|| {
                next += 1;
                FunctionId(next - 1)
            }));
        }
        for (k, f) in other.functions.iter().enumerate() {
            if self.functions.len() as u32 != ids[k].0 {
                continue;
            }
            let Body::Exp(body) = &f.body else { panic!("graft: {} is not defined", f.name) };
            let all = |vars: &[Var]| vars.iter().map(|v| shifted(*v, first)).collect();
            self.functions.push(Function {
                sizes: all(&f.sizes),
                params: all(&f.params),
                result: f.result.map_sizes(&mut |s| shifted_size(s, first)),
                body: Body::Exp(shifted_exp(body.clone(), first, &ids)),
                ..f.clone()
            });
        }
        self.find(wanted).unwrap_or_else(|| panic!("graft: there is no {wanted}"))
    }
}

fn shifted(v: Var, first: u32) -> Var {
    Var(v.0 + first)
}
fn shifted_size(size: &Size, first: u32) -> Size {
    // By way of an expression: one substitution after the other would meet variables that it has put in itself.
    exp_size(&shifted_exp(size_exp(size), first, &[])).expect("a size stays one")
}

fn shifted_exp(exp: Exp, first: u32, ids: &[FunctionId]) -> Exp {
    let range = |r: Range| Range { index: shifted(r.index, first), ..r };
    let all = |vars: Vec<Var>| vars.into_iter().map(|v| shifted(v, first)).collect::<Vec<_>>();
    let exp = match exp {
        Exp::Var(v) => Exp::Var(shifted(v, first)),
        Exp::Call(id, args, site) => Exp::Call(ids[id.0 as usize], args, site),
        Exp::Singleton(keys, value, site) => {
            Exp::Singleton(keys.into_iter().map(|(k, s)| (k, shifted_size(&s, first))).collect(), value, site)
        }
        Exp::For(v, size, body) => Exp::For(shifted(v, first), shifted_size(&size, first), body),
        Exp::Sum(r, body) => Exp::Sum(Box::new(range(*r)), body),
        Exp::Reduce(kind, r, body, site) => Exp::Reduce(kind, Box::new(range(*r)), body, site),
        Exp::History(h) => {
            let History { state, init, index, size, body } = *h;
            let (state, size) = (all(state), shifted_size(&size, first));
            Exp::History(Box::new(History { state, init, index: shifted(index, first), size, body }))
        }
        Exp::Loop(l) => {
            let Iteration { state, init, trip, body, annotations } = *l;
            let trip = match trip {
                Trip::For(r) => Trip::For(range(r)),
                Trip::While(condition) => Trip::While(condition),
            };
            let annotations = annotations.into_iter().map(|(a, s)| (a, shifted_size(&s, first))).collect();
            Exp::Loop(Box::new(Iteration { state: all(state), init, trip, body, annotations }))
        }
        Exp::Let(vars, value, body) => Exp::Let(all(vars), value, body),
        Exp::Lit(_)
        | Exp::Op(..)
        | Exp::Partial(..)
        | Exp::Index(..)
        | Exp::Update(..)
        | Exp::Guard(..)
        | Exp::If(..)
        | Exp::Tuple(_)
        | Exp::Array(_) => exp,
    };
    exp.map_children(&mut |e| shifted_exp(e, first, ids))
}
