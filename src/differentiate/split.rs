//! Statements that yield several values, of which two users need different ones, made into statements for each.
//!
//! `let (p, q) = sum i. let g = …; (P(g), Q(g))`   is
//! `let g = for i. …; let p = sum i. P(g[i]); let q = sum i. Q(g[i])`
//!
//! so that the user of `q` can begin from `g` instead of running the whole sum again. What costs operations and stands in
//! both parts is done once, in the first of the three; what costs nothing is repeated. The same with `for`, guards and
//! branches; the bodies are split likewise.

use super::scope::{Scope, Statement, costs_nothing};
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;
use rustc_hash::{FxHashMap, FxHashSet};

/// Splits the statements of which `second` needs a part that `first` does not.
pub fn split(vars: &mut Vars, statements: Vec<Statement>, first: &[Exp], second: &[Exp]) -> Vec<Statement> {
    let mut by_first: FxHashSet<Var> = first.iter().flat_map(Exp::free_vars).collect();
    let mut by_second: FxHashSet<Var> = second.iter().flat_map(Exp::free_vars).collect();
    let mut before = statements;
    let mut done = vec![];
    while let Some((bound, exp)) = before.pop() {
        let of_first: Vec<bool> = bound.iter().map(|v| by_first.contains(v)).collect();
        let second_alone = bound.iter().any(|v| by_second.contains(v) && !by_first.contains(v));
        if second_alone && of_first.contains(&true) {
            if let Some(parts) = apart(vars, &bound, &exp, &of_first) {
                before.extend(parts);
                continue;
            }
        }
        for needs in [&mut by_first, &mut by_second] {
            if bound.iter().any(|v| needs.contains(v)) {
                needs.extend(exp.free_vars());
            }
        }
        done.push((bound, exp));
    }
    done.reverse();
    done
}

/// What the second of two users of some statements takes over from the first.
pub struct Taken {
    /// Variables of costly statements that the first user needs, from which the second begins.
    pub shared: Vec<Var>,
    /// The statements that the second then needs.
    pub redone: FxHashSet<usize>,
    /// Whether there are loops that both run, since they cannot be taken apart.
    pub twice: bool,
}

/// Whether a variable may be taken over is up to `may`.
pub fn taken(vars: &Vars, statements: &[Statement], first: &[Exp], second: &[Exp], may: &dyn Fn(Var) -> bool) -> Taken {
    let place = places(statements);
    let (of_first, by_first) = needed(statements, &place, first, &mut |_| false);
    let mut shared = vec![];
    let (_, redone) = needed(statements, &place, second, &mut |v| {
        let statement = &statements[place[&v]].1;
        // What an inner history carries is of its steps. Other statements may yield adjoints of whole arrays.
        let kept = of_first.contains(&v) || (matches!(statement, Exp::History(_)) && by_first.contains(&place[&v]));
        let stops = kept && !costs_nothing(vars, statement) && may(v);
        if stops {
            shared.push(v);
        }
        stops
    });
    // A statement is done again whole or not at all.
    shared.retain(|v| !redone.contains(&place[v]));
    shared.sort();
    let twice = redone.iter().any(|k| by_first.contains(k) && has_loop(&statements[*k].1));
    Taken { shared, redone, twice }
}

pub fn has_loop(exp: &Exp) -> bool {
    let mut found = matches!(exp, Exp::Loop(_));
    exp.for_each_child(&mut |e| found = found || has_loop(e));
    found
}

fn places(statements: &[Statement]) -> FxHashMap<Var, usize> {
    statements.iter().enumerate().flat_map(|(k, (vars, _))| vars.iter().map(move |v| (*v, k))).collect()
}

/// The variables and the statements that expressions need, as far as the walk is not stopped.
fn needed(
    statements: &[Statement],
    place: &FxHashMap<Var, usize>,
    roots: &[Exp],
    stop: &mut dyn FnMut(Var) -> bool,
) -> (FxHashSet<Var>, FxHashSet<usize>) {
    let mut seen: FxHashSet<Var> = FxHashSet::default();
    let mut through: FxHashSet<usize> = FxHashSet::default();
    let mut pending: Vec<Var> = roots.iter().flat_map(Exp::free_vars).collect();
    while let Some(v) = pending.pop() {
        if seen.insert(v) && place.contains_key(&v) && !stop(v) && through.insert(place[&v]) {
            pending.extend(statements[place[&v]].1.free_vars());
        }
    }
    (seen, through)
}

/// A body in two: what both parts share, and how each goes on from there.
struct Body {
    statements: Vec<Statement>,
    shared: Vec<Var>,
    first: Vec<Exp>,
    second: Vec<Exp>,
}

impl Body {
    /// `None` where what is shared has a size that is known only inside (`local` or bound there).
    fn new(vars: &mut Vars, body: &Exp, of_first: &[bool], local: Option<Var>) -> Option<Body> {
        let Scope { statements, results } = Scope::split(body.clone());
        if results.len() != of_first.len() {
            return None;
        }
        let part = |wanted: bool| results.iter().zip(of_first).filter(|(_, f)| **f == wanted).map(|(e, _)| e.clone()).collect::<Vec<_>>();
        let (first, second) = (part(true), part(false));
        let statements = split(vars, statements, &first, &second);
        let place = places(&statements);
        let Taken { shared, .. } = taken(vars, &statements, &first, &second, &|_| true);
        for v in &shared {
            let mut sizes = vec![];
            vars.ty(*v).map_sizes(&mut |s| {
                s.variables(&mut sizes);
                s.clone()
            });
            if sizes.iter().any(|w| Some(*w) == local || place.contains_key(w)) {
                return None;
            }
        }
        Some(Body { statements, shared, first, second })
    }

    fn pick(&self, roots: &[Exp], stop: &mut dyn FnMut(Var) -> bool) -> Vec<Statement> {
        let (_, through) = needed(&self.statements, &places(&self.statements), roots, stop);
        self.statements.iter().enumerate().filter(|(k, _)| through.contains(k)).map(|(_, s)| s.clone()).collect()
    }

    /// The expression of what is shared.
    fn shared(&self) -> (Vec<Statement>, Vec<Exp>) {
        let roots: Vec<Exp> = self.shared.iter().map(|v| Exp::Var(*v)).collect();
        (self.pick(&roots, &mut |_| false), roots)
    }

    /// Where all that is shared is a result of the first part too: the variables, out of those bound to the first part,
    /// that hold it.
    fn among(&self, first: &[Var]) -> Option<Vec<Var>> {
        self.shared.iter().map(|v| Some(first[self.first.iter().position(|e| *e == Exp::Var(*v))?])).collect()
    }

    /// The first part by itself.
    fn whole_first(&self) -> Exp {
        lets(self.pick(&self.first, &mut |_| false), tuple(self.first.clone()))
    }

    /// A part that begins from what is shared, given by `reads`.
    fn part(&self, results: &[Exp], reads: &[Exp]) -> Exp {
        let rest = self.pick(results, &mut |v| self.shared.contains(&v));
        let mut statements: Vec<Statement> = self.shared.iter().zip(reads).map(|(v, e)| (vec![*v], e.clone())).collect();
        statements.extend(rest);
        lets(statements, tuple(results.to_vec()))
    }
}

fn apart(vars: &mut Vars, bound: &[Var], exp: &Exp, of_first: &[bool]) -> Option<Vec<Statement>> {
    let part = |wanted: bool| bound.iter().zip(of_first).filter(|(_, f)| **f == wanted).map(|(v, _)| *v).collect::<Vec<Var>>();
    let (first, second) = (part(true), part(false));
    let fresh = |vars: &mut Vars, e: Exp| copy(vars, &e, &Substitution::default());
    let held = |vars: &mut Vars, shared: &[Var], axis: Option<&Size>| -> Vec<Var> {
        let types: Vec<(String, Type)> = shared.iter().map(|v| (vars.name(*v).to_string(), vars.ty(*v).clone())).collect();
        types.into_iter().map(|(name, ty)| vars.fresh(name, axis.map_or(ty.clone(), |n| ty.with_axis(n)))).collect()
    };
    let mut statements = vec![];
    match exp {
        Exp::Sum(..) | Exp::For(..) => {
            let (index_var, lo, size, body) = match exp {
                Exp::Sum(range, body) => {
                    let (lo, hi) = (exp_size(&range.lo)?, exp_size(&range.hi)?);
                    (range.index, lo.clone(), hi.sub(&lo), body)
                }
                Exp::For(i, size, body) => (*i, Size::default(), size.clone(), body),
                _ => return None,
            };
            let body = Body::new(vars, body, of_first, Some(index_var))?;
            let arrays = held(vars, &body.shared, Some(&size));
            if !arrays.is_empty() {
                let t = vars.fresh(vars.name(index_var).to_string(), Type::I64);
                let (inner, roots) = body.shared();
                let at = Substitution::from_iter([(index_var, size_exp(&Size::var(t).add(&lo)))]);
                let inner = copy(vars, &lets(inner, tuple(roots)), &at);
                statements.push((arrays.clone(), for_(t, size, inner)));
            }
            let key = size_exp(&Size::var(index_var).sub(&lo));
            let reads: Vec<Exp> = arrays.iter().map(|a| index(*a, vec![key.clone()], Site::default())).collect();
            for (bound, results) in [(first, &body.first), (second, &body.second)] {
                let part = Box::new(body.part(results, &reads));
                let part = match exp {
                    Exp::Sum(range, _) => Exp::Sum(range.clone(), part),
                    Exp::For(i, size, _) => Exp::For(*i, size.clone(), part),
                    _ => return None,
                };
                statements.push((bound, fresh(vars, part)));
            }
        }
        Exp::Guard(p, e) => {
            let body = Body::new(vars, e, of_first, None)?;
            if let Some(values) = body.among(&first) {
                let reads: Vec<Exp> = values.iter().map(|v| Exp::Var(*v)).collect();
                let (one, other) = (body.whole_first(), body.part(&body.second, &reads));
                let parts = [(first, one), (second, other)];
                return Some(parts.into_iter().map(|(bound, e)| (bound, fresh(vars, guard((**p).clone(), e)))).collect());
            }
            let values = held(vars, &body.shared, None);
            if !values.is_empty() {
                let (inner, roots) = body.shared();
                statements.push((values.clone(), fresh(vars, guard((**p).clone(), lets(inner, tuple(roots))))));
            }
            let reads: Vec<Exp> = values.iter().map(|v| Exp::Var(*v)).collect();
            for (bound, results) in [(first, &body.first), (second, &body.second)] {
                statements.push((bound, fresh(vars, guard((**p).clone(), body.part(results, &reads)))));
            }
        }
        Exp::If(p, a, b) => {
            let (a, b) = (Body::new(vars, a, of_first, None)?, Body::new(vars, b, of_first, None)?);
            let reads = |held: &[Var]| held.iter().map(|v| Exp::Var(*v)).collect::<Vec<_>>();
            if let (Some(of_a), Some(of_b)) = (a.among(&first), b.among(&first)) {
                let one = if_((**p).clone(), a.whole_first(), b.whole_first());
                let other = if_((**p).clone(), a.part(&a.second, &reads(&of_a)), b.part(&b.second, &reads(&of_b)));
                return Some([(first, one), (second, other)].into_iter().map(|(bound, e)| (bound, fresh(vars, e))).collect());
            }
            let (of_a, of_b) = (held(vars, &a.shared, None), held(vars, &b.shared, None));
            if !(of_a.is_empty() && of_b.is_empty()) {
                let nothing = |vars: &mut Vars, held: &[Var]| -> Vec<Exp> {
                    let types: Vec<Type> = held.iter().map(|v| vars.ty(*v).clone()).collect();
                    types.iter().map(|ty| zero(vars, ty)).collect()
                };
                let (inner_a, roots_a) = a.shared();
                let (inner_b, roots_b) = b.shared();
                let then = lets(inner_a, tuple([roots_a, nothing(vars, &of_b)].concat()));
                let other = lets(inner_b, tuple([nothing(vars, &of_a), roots_b].concat()));
                statements.push(([of_a.clone(), of_b.clone()].concat(), fresh(vars, if_((**p).clone(), then, other))));
            }
            for (bound, of_a_part, of_b_part) in [(first, &a.first, &b.first), (second, &a.second, &b.second)] {
                let part = if_((**p).clone(), a.part(of_a_part, &reads(&of_a)), b.part(of_b_part, &reads(&of_b)));
                statements.push((bound, fresh(vars, part)));
            }
        }
        Exp::Var(_)
        | Exp::Lit(_)
        | Exp::Op(..)
        | Exp::Partial(..)
        | Exp::Index(..)
        | Exp::Singleton(..)
        | Exp::Reduce(..)
        | Exp::History(_)
        | Exp::Loop(_)
        | Exp::Update(..)
        | Exp::Let(..)
        | Exp::Tuple(_)
        | Exp::Array(_)
        | Exp::Call(..) => return None,
    }
    Some(statements)
}
