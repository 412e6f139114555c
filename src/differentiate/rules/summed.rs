//! (x, y) = loop (x, y) = (x₀, y₀) for i in 0..n do (e(i, x), y + t(i, x)), where neither e nor t reads y
//!
//! reverse:  the adjoint of every term is ȳ, and no state of `y` is kept: the loop runs as a history of `x`, and
//!           y = y₀ + sum i. t(i, x[i]) beside it (`history`)

use super::super::reverse::Reverse;
use super::super::scope::{Scope, Statement};
use crate::ir::build::*;
use crate::ir::*;

/// A loop's step in named form, its sums apart.
pub struct Summed {
    pub statements: Vec<Statement>,
    /// The parts of the state that are carried, and their next values.
    pub carried: Vec<usize>,
    pub next: Vec<Exp>,
    /// The parts that are summed, and their terms.
    pub sums: Vec<usize>,
    pub terms: Vec<Exp>,
}

impl Summed {
    pub fn of(vars: &mut Vars, l: &Iteration) -> Summed {
        let Summed { statements, next: results, .. } = Summed::nothing(l);
        let mut found = Summed { statements, carried: vec![], next: vec![], sums: vec![], terms: vec![] };
        for (k, (state, result)) in l.state.iter().zip(&results).enumerate() {
            let read_elsewhere = results.iter().enumerate().any(|(j, e)| j != k && e.mentions(*state))
                || matches!(&l.trip, Trip::While(condition) if condition.mentions(*state));
            let term = if read_elsewhere { None } else { term_of(vars, &found.statements, result, *state) };
            match term {
                Some((statements, term)) => {
                    found.statements = statements;
                    found.sums.push(k);
                    found.terms.push(term);
                }
                None => {
                    found.carried.push(k);
                    found.next.push(result.clone());
                }
            }
        }
        found
    }

    /// The step with all of the state carried.
    pub fn nothing(l: &Iteration) -> Summed {
        let Scope { statements, results } = Scope::split(l.body.clone());
        Summed { statements, carried: (0..l.state.len()).collect(), next: results, sums: vec![], terms: vec![] }
    }

    /// Variables for the sums of the terms.
    pub fn totals(&self, vars: &mut Vars, l: &Iteration) -> Vec<Var> {
        let mut fresh = |k: &usize| {
            let (name, ty) = (vars.name(l.state[*k]).to_string(), vars.ty(l.state[*k]).clone());
            vars.fresh(name, ty)
        };
        self.sums.iter().map(&mut fresh).collect()
    }
}

/// The statements without the addition to `state` that `result` is, and the term that is added; `None` if it is none, or
/// if the state is used otherwise.
fn term_of(vars: &mut Vars, statements: &[Statement], result: &Exp, state: Var) -> Option<(Vec<Statement>, Exp)> {
    let Exp::Var(r) = result else { return None };
    let mut statements = statements.to_vec();
    let term = if *r == state {
        nothing(vars, state, &mut statements)
    } else {
        let at = statements.iter().position(|(bound, _)| bound.contains(r))?;
        let place = statements[at].0.iter().position(|v| v == r)?;
        // What is yielded must not be used besides.
        if statements.iter().any(|(_, e)| e.mentions(*r)) {
            return None;
        }
        match statements[at].1.clone() {
            Exp::Op(Op::Add, args, _) if args[0] == Exp::Var(state) => {
                statements.remove(at);
                args[1].clone()
            }
            Exp::Op(Op::Add, args, _) if args[1] == Exp::Var(state) => {
                statements.remove(at);
                args[0].clone()
            }
            Exp::If(p, a, b) => {
                let mut branch = |body: Exp| {
                    let Scope { statements, mut results } = Scope::split(body);
                    let (statements, term) = term_of(vars, &statements, results.get(place)?, state)?;
                    results[place] = term;
                    Some(lets(statements, tuple(results)))
                };
                let (a, b) = (branch(*a)?, branch(*b)?);
                let term = vars.fresh(vars.name(*r).to_string(), vars.ty(*r).clone());
                statements[at].0[place] = term;
                statements[at].1 = if_(*p, a, b);
                Exp::Var(term)
            }
            _ => return None,
        }
    };
    let used = term == Exp::Var(state) || statements.iter().any(|(_, e)| e.mentions(state));
    (!used).then_some((statements, term))
}

/// An atom that is zero of the state's type.
fn nothing(vars: &mut Vars, state: Var, statements: &mut Vec<Statement>) -> Exp {
    let ty = vars.ty(state).clone();
    let zero = zero(vars, &ty);
    if let Exp::Lit(_) = zero {
        return zero;
    }
    let v = vars.fresh(vars.name(state).to_string(), ty);
    statements.push((vec![v], zero));
    Exp::Var(v)
}

/// A loop over `0..size` of which everything is summed is a sum.
pub fn reverse(cx: &mut Reverse, vars: Vec<Var>, l: &Iteration, found: Summed, range: Range, adjoints: Vec<Option<Exp>>) -> Vec<Statement> {
    let totals: Vec<Var> = found.totals(cx.vars, l);
    let terms = Exp::Sum(Box::new(range), Box::new(lets(found.statements, tuple(found.terms))));
    let mut made = vec![(totals.clone(), terms)];
    made.extend(vars.iter().zip(parts(&l.init)).zip(totals).map(|((v, init), total)| (vec![*v], add(init, total))));
    cx.mark_varied(&made);
    for (v, adjoint) in vars.iter().zip(adjoints) {
        if let Some(adjoint) = adjoint {
            cx.contribute(&Exp::Var(*v), adjoint);
        }
    }
    cx.walk_back(made)
}

pub fn parts(exp: &Exp) -> Vec<Exp> {
    match exp {
        Exp::Tuple(parts) => parts.clone(),
        exp => vec![exp.clone()],
    }
}
