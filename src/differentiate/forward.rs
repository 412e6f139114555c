//! Forward mode: the tangent of each variable beside it.
//!
//! A variable without tangent has tangent zero, and nothing is computed for it. A binder's body yields its value and
//! its tangent together, so that no body is run twice.

use super::rules;
use super::scope::{Scope, Statement};
use crate::ir::facts::Facts;
use crate::ir::*;
use rustc_hash::FxHashMap;

pub struct Forward<'a> {
    pub vars: &'a mut Vars,
    pub facts: Facts,
    tangents: FxHashMap<Var, Exp>,
}

/// A scope after forward mode: `tangents` has one entry for each result, `None` for zero.
pub struct Linearised {
    pub statements: Vec<Statement>,
    pub results: Vec<Exp>,
    pub tangents: Vec<Option<Exp>>,
}

impl<'a> Forward<'a> {
    pub fn new(vars: &'a mut Vars, facts: Facts) -> Forward<'a> {
        Forward { vars, facts, tangents: FxHashMap::default() }
    }

    /// The tangent of an atom (or of a free expression of integers, which has none).
    pub fn tangent(&self, atom: &Exp) -> Option<Exp> {
        match atom {
            Exp::Var(v) => self.tangents.get(v).cloned(),
            _ => None,
        }
    }
    pub fn set_tangent(&mut self, var: Var, tangent: Exp) {
        self.tangents.insert(var, tangent);
    }

    /// A new variable for the tangent of `var`.
    pub fn tangent_var(&mut self, var: Var, ty: Type) -> Var {
        let name = format!("{}_tan", self.vars.name(var));
        self.vars.fresh(name, ty)
    }

    /// Binds the tangent of `var`.
    pub fn bind_tangent(&mut self, var: Var, tangent: Exp, out: &mut Vec<Statement>) {
        let ty = self.vars.ty(var).clone();
        let t = self.tangent_var(var, ty);
        out.push((vec![t], tangent));
        self.set_tangent(var, Exp::Var(t));
    }

    pub fn scope(&mut self, scope: Scope) -> Linearised {
        let mut out = vec![];
        for statement in scope.statements {
            self.statement(statement, &mut out);
        }
        let tangents = scope.results.iter().map(|r| self.tangent(r)).collect();
        Linearised { statements: out, results: scope.results, tangents }
    }

    fn statement(&mut self, (vars, exp): Statement, out: &mut Vec<Statement>) {
        let active = vars.iter().any(|v| self.vars.ty(*v).has_float()) && exp.free_vars().iter().any(|v| self.tangents.contains_key(v));
        if !active {
            out.push((vars, exp));
            return;
        }
        match exp {
            Exp::Var(_) | Exp::Lit(_) => {
                let tangent = self.tangent(&exp);
                out.push((vars.clone(), exp));
                if let Some(t) = tangent {
                    self.set_tangent(vars[0], t);
                }
            }
            Exp::Op(op, args, site) => rules::scalar::forward(self, vars[0], op, args, site, out),
            Exp::Index(array, keys, site) => rules::index::forward(self, vars[0], *array, keys, site, out),
            Exp::Singleton(keys, value, site) => rules::singleton::forward(self, vars[0], keys, *value, site, out),
            Exp::Array(items) => rules::array::forward(self, vars[0], items, out),
            Exp::For(i, size, body) => rules::generate::forward(self, vars, i, size, *body, out),
            Exp::Sum(range, body) => rules::sum::forward(self, vars, *range, *body, out),
            Exp::Reduce(kind, range, body, site) => rules::reduce::forward(self, vars[0], kind, *range, *body, site, out),
            Exp::History(h) => rules::history::forward(self, vars, *h, out),
            Exp::Loop(l) => rules::iterate::forward(self, vars, *l, out),
            Exp::Update(array, keys, value, site) => rules::update::forward(self, vars[0], *array, keys, *value, site, out),
            Exp::Guard(p, e) => rules::branch::forward_guard(self, vars, *p, *e, out),
            Exp::If(p, a, b) => rules::branch::forward_if(self, vars, *p, *a, *b, out),
            Exp::Call(id, args, site) => rules::call::forward(self, vars, id, args, site, out),
            Exp::Partial(..) | Exp::Let(..) | Exp::Tuple(_) => {
                panic!("differentiate: not a statement in named form: {exp:?}")
            }
        }
    }

    /// Runs forward mode on a body and gives it back with the tangents of its results after them. The second list
    /// says which results have a tangent.
    pub fn body(&mut self, body: Exp) -> (Linearised, Vec<usize>) {
        let done = self.scope(Scope::split(body));
        let active = (0..done.results.len()).filter(|k| done.tangents[*k].is_some()).collect();
        (done, active)
    }

    /// Binds the results of a construct over a linearised body: `vars`, then the tangents of the `active` ones.
    pub fn bind_with_tangents(&mut self, vars: Vec<Var>, active: &[usize], value: Exp, out: &mut Vec<Statement>) {
        let mut bound = vars.clone();
        for k in active {
            let ty = self.vars.ty(vars[*k]).clone();
            let t = self.tangent_var(vars[*k], ty);
            self.set_tangent(vars[*k], Exp::Var(t));
            bound.push(t);
        }
        out.push((bound, value));
    }
}

impl Linearised {
    /// The body, with the tangents of the `active` results after the results.
    pub fn into_exp(self, active: &[usize]) -> Exp {
        let mut results = self.results;
        for k in active {
            results.push(self.tangents[*k].clone().expect("an active result has a tangent"));
        }
        build::lets(self.statements, build::tuple(results))
    }
}
