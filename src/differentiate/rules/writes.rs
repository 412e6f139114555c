//! y = loop x = x₀ for t in a..b do x with [k(t)] = v(t), where no place is written twice and `v` does not read `x`
//!
//! reverse:  v̄(t) = ȳ[k(t)], x̄₀ += loop x = ȳ for t in a..b do x with [k(t)] = 0
//!
//! This is what an update of a slice stands for; loops may nest. The states of the loop are not needed, as they are by the
//! general rule for loops: the values are generated first, and then written.

use super::super::reverse::Reverse;
use super::super::scope::{Scope, Statement};
use super::generate;
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy, substitute};
use crate::ir::*;
use rustc_hash::FxHashSet;

pub struct Writes {
    /// From the outermost.
    loops: Vec<Level>,
    keys: Vec<Exp>,
    /// An atom.
    value: Exp,
    site: Site,
}

struct Level {
    index: Var,
    lo: Size,
    size: Size,
    /// What the value needs to be computed here.
    statements: Vec<Statement>,
}

impl Writes {
    pub fn of(l: &Iteration) -> Option<Writes> {
        let mut loops = vec![];
        let mut states = vec![];
        let mut l = l.clone();
        loop {
            let (Trip::For(Range { index, lo, hi }), [state]) = (l.trip, l.state.as_slice()) else { return None };
            let (lo, hi) = (exp_size(&lo)?, exp_size(&hi)?);
            let Scope { mut statements, results } = Scope::split(l.body);
            let (last, written) = statements.pop()?;
            if last.len() != 1 || results != [Exp::Var(last[0])] {
                return None;
            }
            loops.push(Level { index, size: hi.sub(&lo), lo, statements });
            states.push(*state);
            match written {
                Exp::Loop(inner) if inner.init == Exp::Var(*state) => l = *inner,
                Exp::Update(array, keys, value, site) if *array == Exp::Var(*state) => {
                    let found = Writes { loops, keys, value: *value, site };
                    return found.is_plain(&states).then_some(found);
                }
                _ => return None,
            }
        }
    }

    fn is_plain(&self, states: &[Var]) -> bool {
        let indices: Vec<Var> = self.loops.iter().map(|l| l.index).collect();
        let computed: FxHashSet<Var> = self.loops.iter().flat_map(|l| &l.statements).flat_map(|(vars, _)| vars.iter().copied()).collect();
        let reads_state = |e: &Exp| e.free_vars().iter().any(|v| states.contains(v));
        let of_size = |s: &Size| {
            let mut vars = vec![];
            s.variables(&mut vars);
            vars
        };
        let ragged = self
            .loops
            .iter()
            .flat_map(|l| [of_size(&l.lo), of_size(&l.size)].concat())
            .any(|v| indices.contains(&v) || computed.contains(&v));
        // Each index moves a key of its own one by one, so different steps write different places.
        let moves =
            |key: &Exp, t: Var| exp_size(key).is_some_and(|key| !of_size(&key.sub(&Size::var(t))).iter().any(|v| indices.contains(v)));
        !ragged
            && !self.keys.iter().any(|k| reads_state(k) || k.free_vars().iter().any(|v| computed.contains(v)))
            && !reads_state(&self.value)
            && !self.loops.iter().flat_map(|l| &l.statements).any(|(_, e)| reads_state(e))
            && indices.iter().all(|t| self.keys.iter().any(|k| moves(k, *t)))
    }

    /// What `for t in 0..size` binds in place of `t in a..b`, for all loops.
    fn from_zero(&self, vars: &mut Vars) -> (Vec<Var>, Substitution) {
        let mut with = Substitution::default();
        let mut fresh = vec![];
        for l in &self.loops {
            let t = vars.fresh(vars.name(l.index).to_string(), Type::I64);
            with.insert(l.index, size_exp(&Size::var(t).add(&l.lo)));
            fresh.push(t);
        }
        (fresh, with)
    }

    /// The values of all steps, in named form: the outermost index and what it generates.
    fn values(&self, cx: &mut Reverse) -> (Var, Exp) {
        let (indices, with) = self.from_zero(cx.vars);
        let mut body = self.value.clone();
        for (l, t) in self.loops.iter().zip(&indices).skip(1).rev() {
            let row = for_(*t, l.size.clone(), lets(l.statements.clone(), body));
            let name = cx.vars.fresh("v", type_of_exp(cx.vars, &row));
            cx.mark_varied(&[(vec![name], row.clone())]);
            body = let_(vec![name], row, Exp::Var(name));
        }
        let body = lets(self.loops[0].statements.clone(), body);
        (indices[0], substitute(cx.vars, body, &with))
    }

    /// `for t. y_adj[k(t)]`
    fn adjoints(&self, vars: &mut Vars, y_adj: Exp) -> Exp {
        let (indices, with) = self.from_zero(vars);
        let read = substitute(vars, index(y_adj, self.keys.clone(), self.site), &with);
        indices.into_iter().zip(&self.loops).rev().fold(read, |body, (t, l)| for_(t, l.size.clone(), body))
    }

    /// The loops writing other values, into another array.
    fn write(&self, vars: &mut Vars, array: Exp, value: Exp) -> Exp {
        let ty = type_of_exp(vars, &array);
        let states: Vec<Var> = self.loops.iter().map(|_| vars.fresh("x", ty.clone())).collect();
        let innermost = Exp::Var(states[states.len() - 1]);
        let mut body = Exp::Update(Box::new(innermost), self.keys.clone(), Box::new(value), self.site);
        for (k, l) in self.loops.iter().enumerate().rev() {
            let init = if k == 0 { array.clone() } else { Exp::Var(states[k - 1]) };
            let trip = Trip::For(Range { index: l.index, lo: size_exp(&l.lo), hi: size_exp(&l.lo.add(&l.size)) });
            body = Exp::Loop(Box::new(Iteration { state: vec![states[k]], init, trip, body, annotations: vec![] }));
        }
        copy(vars, &body, &Substitution::default())
    }
}

pub fn reverse(cx: &mut Reverse, y: Var, init: Exp, writes: Writes, y_adj: Exp) -> Vec<Statement> {
    let ty = type_of_exp(cx.vars, &writes.value);
    if cx.varies(&init) {
        let nothing = zero(cx.vars, &ty);
        let rest = writes.write(cx.vars, y_adj.clone(), nothing);
        cx.contribute(&init, rest);
    }
    let values = cx.vars.fresh("v", writes.loops.iter().rev().fold(ty, |ty, l| ty.with_axis(&l.size)));
    let values_adj = cx.adjoint_var(values);
    let adjoints = writes.adjoints(cx.vars, y_adj);
    cx.emit(vec![values_adj], adjoints);
    let (i, body) = writes.values(cx);
    let mut forth = generate::reverse(cx, vec![values], i, writes.loops[0].size.clone(), body, vec![Some(Exp::Var(values_adj))]);
    let at = writes.loops.iter().map(|l| size_exp(&Size::var(l.index).sub(&l.lo))).collect();
    forth.push((vec![y], writes.write(cx.vars, init, index(values, at, Site::default()))));
    forth
}
