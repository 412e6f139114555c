//! What depends on few numbers is differentiated by those first.
//!
//! ```text
//! for c. … let (m, m') = for k. let x = …; let x' = …c…; let z' = …c…; let m = …x…; (m, …x'…z'…); …
//! ```
//! where the last part is linear in the tangents `x'` and `z'`, and depends on the column `c` by these alone, is
//! ```text
//! for c. … let (m, X, Z, x', z') = for k. let x = …; let x' = …c…; let z' = …c…; let m = …x…; (m, …1…0…, …0…1…, x', z');
//!   let m' = for k, a, b. X[k, a, b] * x'[k] + Z[k, a, b] * z'[k]; …
//! ```
//! `X` and `Z` are the same for all columns, so they are computed once (`interchange`): a bone's transform by its own two angles,
//! say, and not by all those of a hand.

use super::interchange::{is_few, note, varies, work, worth};
use super::{Context, Rewrite, rewrite_everywhere};
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;
use rustc_hash::{FxHashMap, FxHashSet};

/// The most numbers that all depends on, and the least columns for each of them.
const MOST_NUMBERS: usize = 4;
const LEAST_COLUMNS: i64 = 4;
/// How much more the work is that is saved than what it takes to put the columns together.
const SAVED: u64 = 4;

pub fn preaccumulate(cx: &mut Context, exp: Exp) -> Exp {
    rewrite_everywhere(cx, exp, "preaccumulate", &rule)
}

fn rule(cx: &mut Context, exp: Exp) -> Rewrite {
    let Exp::For(c, size, body) = exp else { return Err(exp) };
    let columns = match size.as_constant() {
        Some(columns) if is_few(&size) && worth(&body, c) => columns,
        _ => return Err(Exp::For(c, size, body)),
    };
    let mut pass = Pass { cx, columns, changed: false };
    let body = pass.visit(*body, &[c].into_iter().collect());
    if pass.changed { Ok(for_(c, size, body)) } else { Err(for_(c, size, body)) }
}

struct Pass<'a, 'b> {
    cx: &'a mut Context<'b>,
    columns: i64,
    changed: bool,
}

impl Pass<'_, '_> {
    fn visit(&mut self, exp: Exp, varied: &FxHashSet<Var>) -> Exp {
        match exp {
            Exp::Let(vars, value, rest) => {
                let value = match *value {
                    Exp::For(k, size, body) => match self.accumulated(&body, vars.len(), varied) {
                        Some(found) => {
                            self.changed = true;
                            return self.columns(vars, (k, size), found, *rest);
                        }
                        None => for_(k, size, self.visit(*body, varied)),
                    },
                    value => self.visit(value, varied),
                };
                let mut inner = varied.clone();
                note(&vars, &value, &mut inner);
                let_(vars, value, self.visit(*rest, &inner))
            }
            Exp::For(k, size, body) => for_(k, size, self.visit(*body, varied)),
            exp => exp,
        }
    }

    /// The body of a loop, of which what is linear in few numbers is taken by each of them.
    fn accumulated(&mut self, body: &Exp, parts: usize, varied: &FxHashSet<Var>) -> Option<Accumulated> {
        let (mut bindings, mut result) = (vec![], body);
        while let Exp::Let(vars, value, rest) = result {
            bindings.push((vars.clone(), (**value).clone()));
            result = rest;
        }
        for cut in 1..=bindings.len() {
            let (before, behind) = bindings.split_at(cut);
            let rest = lets(behind.to_vec(), result.clone());
            if varies(&rest, varied) {
                continue;
            }
            let mut inner = varied.clone();
            before.iter().for_each(|(vars, value)| note(vars, value, &mut inner));
            let locals = before.iter().flat_map(|(vars, _)| vars.iter().copied());
            let numbers: Vec<Var> = locals.filter(|v| inner.contains(v) && rest.mentions(*v)).collect();
            let is_number = |v: &Var| matches!(self.cx.vars.ty(*v), Type::Scalar(s) if s.is_float());
            let few = !numbers.is_empty() && numbers.len() <= MOST_NUMBERS && LEAST_COLUMNS * numbers.len() as i64 <= self.columns;
            if !few || !numbers.iter().all(is_number) || !self.pays(&rest, &numbers) {
                return None;
            }
            let mut found = self.by_each(behind, result, &numbers)?;
            found.bindings.splice(0..0, before.iter().cloned());
            return Some(found).filter(|found| found.parts.len() == parts);
        }
        None
    }

    fn pays(&self, rest: &Exp, numbers: &[Var]) -> bool {
        let (same, all) = work(rest, &numbers.iter().copied().collect());
        let elements = |ty: &Type| ty.shape().iter().try_fold(1u64, |n, s| n.checked_mul(u64::try_from(s.as_constant()?).ok()?));
        let together: Option<u64> = match type_of_exp(self.cx.vars, rest) {
            Type::Tuple(parts) => parts.iter().map(elements).sum(),
            part => elements(&part),
        };
        together.is_some_and(|n| all - same >= SAVED * 2 * n * numbers.len() as u64)
    }

    fn by_each(&mut self, behind: &[(Vec<Var>, Exp)], result: &Exp, numbers: &[Var]) -> Option<Accumulated> {
        let mut varied: FxHashSet<Var> = numbers.iter().copied().collect();
        let unit = |me: &Self, v: Var, one: Var| (v == one).then(|| float(me.cx.vars.ty(v).scalar().expect("a number"), 1.0));
        let mut images: Vec<Images> =
            numbers.iter().map(|one| numbers.iter().map(|v| (*v, unit(self, *v, *one))).collect::<FxHashMap<_, _>>()).collect();
        let mut out = vec![];
        for (vars, value) in behind {
            if !varies(value, &varied) {
                out.push((vars.clone(), value.clone()));
                continue;
            }
            let [v] = vars.as_slice() else { return None };
            for image in &mut images {
                let of = match self.linear(value, image)? {
                    None => None,
                    Some(e) => Some(self.named(*v, e, &mut out)),
                };
                image.insert(*v, of);
            }
            varied.insert(*v);
        }
        let parts: Vec<Exp> = match result {
            Exp::Tuple(parts) => parts.clone(),
            part => vec![part.clone()],
        };
        let mut results = vec![];
        for part in &parts {
            if !varies(part, &varied) {
                results.push(Part::Same(part.clone()));
                continue;
            }
            let ty = type_of_exp(self.cx.vars, part);
            let mut terms = vec![];
            for (number, image) in numbers.iter().zip(&images) {
                if let Some(e) = self.linear(part, image)? {
                    terms.push((copy(self.cx.vars, &e, &Substitution::default()), *number));
                }
            }
            results.push(Part::Linear(ty, terms));
        }
        Some(Accumulated { bindings: out, parts: results })
    }

    fn named(&mut self, like: Var, e: Exp, out: &mut Vec<(Vec<Var>, Exp)>) -> Exp {
        let e = copy(self.cx.vars, &e, &Substitution::default());
        let v = self.cx.vars.fresh_like(like, type_of_exp(self.cx.vars, &e));
        out.push((vec![v], e));
        Exp::Var(v)
    }

    /// The loop, and the columns of its results put together behind it.
    fn columns(&mut self, vars: Vec<Var>, (k, size): (Var, Size), found: Accumulated, rest: Exp) -> Exp {
        let (mut names, mut values, mut together) = (vec![], vec![], vec![]);
        // A value of the loop's body, and the array of all of them.
        let mut all = |cx: &mut Context, e: Exp| {
            let at = values.iter().position(|known| *known == e).unwrap_or_else(|| {
                let ty = type_of_exp(cx.vars, &e).with_axis(&size);
                names.push(cx.vars.fresh("t", ty));
                values.push(e);
                values.len() - 1
            });
            names[at]
        };
        for (v, part) in vars.into_iter().zip(found.parts) {
            let (ty, terms) = match part {
                Part::Same(e) => {
                    let t = all(self.cx, e);
                    together.push((vec![v], Exp::Var(t)));
                    continue;
                }
                Part::Linear(ty, terms) => (ty, terms),
            };
            let item = self.cx.vars.fresh_like(k, Type::I64);
            let indices: Vec<Var> = ty.shape().iter().map(|_| self.cx.vars.fresh("i", Type::I64)).collect();
            let keys: Vec<Exp> = [item].iter().chain(&indices).map(|i| Exp::Var(*i)).collect();
            let mut sum = None;
            for (e, number) in terms {
                let (t, number) = (all(self.cx, e), all(self.cx, Exp::Var(number)));
                let term = mul(index(t, keys.clone(), Site::default()), index(number, vec![Exp::Var(item)], Site::default()));
                sum = Some(sum.map_or(term.clone(), |sum| add(sum, term)));
            }
            let value = match sum {
                Some(sum) => indices.iter().zip(ty.shape()).rev().fold(sum, |e, (i, n)| for_(*i, n.clone(), e)),
                None => zero(self.cx.vars, &ty),
            };
            together.push((vec![v], for_(item, size.clone(), value)));
        }
        let body = lets(found.bindings, tuple(values));
        let_(names, for_(k, size, body), lets(together, rest))
    }

    /// The value of a linear expression where variables have these values, `None` standing for zero: `Some(None)` if that is
    /// zero, `None` if it is not known to be linear.
    fn linear(&mut self, exp: &Exp, images: &Images) -> Option<Option<Exp>> {
        let varies = |e: &Exp| images.keys().any(|v| e.mentions(*v));
        if !varies(exp) {
            return is_zero(exp).then_some(None);
        }
        Some(match exp {
            Exp::Var(v) => images[v].clone(),
            Exp::Op(Op::Neg, args, _) => self.linear(&args[0], images)?.map(|e| op1(Op::Neg, e)),
            Exp::Op(op @ (Op::Add | Op::Sub), args, _) => {
                let (a, b) = (self.linear(&args[0], images)?, self.linear(&args[1], images)?);
                match (a, b) {
                    (a, None) => a,
                    (None, Some(b)) => Some(if *op == Op::Add { b } else { op1(Op::Neg, b) }),
                    (Some(a), Some(b)) => Some(op2(*op, a, b)),
                }
            }
            Exp::Op(Op::Mul, args, _) => match (varies(&args[0]), varies(&args[1])) {
                (true, true) => return None,
                (true, false) => self.linear(&args[0], images)?.map(|e| mul(e, args[1].clone())),
                _ => self.linear(&args[1], images)?.map(|e| mul(args[0].clone(), e)),
            },
            Exp::Op(Op::Div, args, _) if !varies(&args[1]) => self.linear(&args[0], images)?.map(|e| op2(Op::Div, e, args[1].clone())),
            Exp::Index(array, keys, site) if !keys.iter().any(&varies) => {
                self.linear(array, images)?.map(|e| Exp::Index(Box::new(e), keys.clone(), *site))
            }
            Exp::For(i, size, body) => self.linear(body, images)?.map(|e| for_(*i, size.clone(), e)),
            Exp::Sum(range, body) if !varies(&range.lo) && !varies(&range.hi) => {
                self.linear(body, images)?.map(|e| Exp::Sum(range.clone(), Box::new(e)))
            }
            Exp::Guard(p, e) if !varies(p) => self.linear(e, images)?.map(|e| guard((**p).clone(), e)),
            Exp::Let(vars, value, body) if !varies(value) => self.linear(body, images)?.map(|e| let_(vars.clone(), (**value).clone(), e)),
            Exp::Array(parts) => {
                let ty = type_of_exp(self.cx.vars, &parts[0]);
                let mut all = vec![];
                for part in parts {
                    all.push(self.linear(part, images)?);
                }
                if all.iter().all(Option::is_none) {
                    return Some(None);
                }
                Some(Exp::Array(all.into_iter().map(|e| e.unwrap_or_else(|| zero(self.cx.vars, &ty))).collect()))
            }
            _ => return None,
        })
    }
}

/// The body of a loop: what is computed, and its results.
struct Accumulated {
    bindings: Vec<(Vec<Var>, Exp)>,
    parts: Vec<Part>,
}

enum Part {
    Same(Exp),
    /// A sum of values, each times a number.
    Linear(Type, Vec<(Exp, Var)>),
}

/// What variables are where one number is one and the others are zero.
type Images = FxHashMap<Var, Option<Exp>>;
