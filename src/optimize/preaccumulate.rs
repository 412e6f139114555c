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
//! say, and not by all those of a hand. A bracket on the column, `[c == k] * e`, is as good as a number.

use super::interchange::{is_few, note, varies, work, worth};
use super::{Context, Rewrite, rewrite_everywhere};
use crate::ir::build::*;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;
use rustc_hash::{FxHashMap, FxHashSet};

/// The most numbers and conditions that all depends on, and the least columns for each of them.
const MOST_SOURCES: usize = 4;
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
        for cut in 0..=bindings.len() {
            let (before, behind) = bindings.split_at(cut);
            let rest = lets(behind.to_vec(), result.clone());
            let mut inner = varied.clone();
            before.iter().for_each(|(vars, value)| note(vars, value, &mut inner));
            let locals = before.iter().flat_map(|(vars, _)| vars.iter().copied());
            let numbers: Vec<Var> = locals.filter(|v| inner.contains(v) && rest.mentions(*v)).collect();
            let mut sources: Vec<Source> = numbers.iter().copied().map(Source::Number).collect();
            if !found_sources(self.cx.vars, &rest, varied, &mut sources) {
                continue;
            }
            // Conditions are asked again where the columns are put together: what they mention is not bound inside.
            let outside = body.free_vars();
            let is_outside = |s: &Source| match s {
                Source::Number(_) => true,
                Source::Bracket(p) => p.free_vars().iter().all(|v| outside.contains(v)),
            };
            let few = !sources.is_empty() && sources.len() <= MOST_SOURCES && LEAST_COLUMNS * sources.len() as i64 <= self.columns;
            let fit = few && numbers.iter().all(|v| is_number(self.cx.vars, *v)) && sources.iter().all(is_outside);
            if !fit || !self.pays(&rest, &inner, sources.len()) {
                return None;
            }
            let mut found = self.by_each(behind, result, &inner, &sources)?;
            found.bindings.splice(0..0, before.iter().cloned());
            return Some(found).filter(|found| found.parts.len() == parts);
        }
        None
    }

    fn pays(&self, rest: &Exp, varied: &FxHashSet<Var>, sources: usize) -> bool {
        let (same, all) = work(rest, varied);
        let elements = |ty: &Type| ty.shape().iter().try_fold(1u64, |n, s| n.checked_mul(u64::try_from(s.as_constant()?).ok()?));
        let together: Option<u64> = match type_of_exp(self.cx.vars, rest) {
            Type::Tuple(parts) => parts.iter().map(elements).sum(),
            part => elements(&part),
        };
        together.is_some_and(|n| all - same >= SAVED * 2 * n * sources as u64)
    }

    fn by_each(&mut self, behind: &[(Vec<Var>, Exp)], result: &Exp, varied: &FxHashSet<Var>, sources: &[Source]) -> Option<Accumulated> {
        let mut varied = varied.clone();
        let mut images: Vec<Image> = vec![];
        for one in sources {
            let numbers = sources.iter().filter_map(|s| if let Source::Number(v) = s { Some(*v) } else { None });
            let unit = |v: Var| (*one == Source::Number(v)).then(|| float(self.cx.vars.ty(v).scalar().expect("a number"), 1.0));
            images.push(Image { source: one.clone(), values: numbers.map(|v| (v, unit(v))).collect() });
        }
        let mut out = vec![];
        for (vars, value) in behind {
            if !varies(value, &varied) {
                out.push((vars.clone(), value.clone()));
                continue;
            }
            let [v] = vars.as_slice() else { return None };
            for image in &mut images {
                let of = match self.linear(value, image, &varied)? {
                    None => None,
                    Some(e) => Some(self.named(*v, e, &mut out)),
                };
                image.values.insert(*v, of);
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
            for image in &images {
                if let Some(e) = self.linear(part, image, &varied)? {
                    terms.push((copy(self.cx.vars, &e, &Substitution::default()), image.source.clone()));
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
        let bound: FxHashSet<Var> = found.bindings.iter().flat_map(|(vars, _)| vars.iter().copied()).collect();
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
            for (e, source) in terms {
                let value = index(all(self.cx, e), keys.clone(), Site::default());
                let term = match source {
                    Source::Number(v) if !bound.contains(&v) => mul(value, Exp::Var(v)),
                    Source::Number(v) => mul(value, index(all(self.cx, Exp::Var(v)), vec![Exp::Var(item)], Site::default())),
                    Source::Bracket(p) => {
                        guard(copy(self.cx.vars, &p, &[(k, Exp::Var(item))].into_iter().collect::<Substitution>()), value)
                    }
                };
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

    /// The value of a linear expression where one source is one and the others are zero: `Some(None)` if that is zero, `None` if
    /// it is not known to be linear.
    fn linear(&mut self, exp: &Exp, image: &Image, varied: &FxHashSet<Var>) -> Option<Option<Exp>> {
        let varies = |e: &Exp| varies(e, varied);
        if !varies(exp) {
            return is_zero(exp).then_some(None);
        }
        Some(match exp {
            Exp::Var(v) => image.values.get(v)?.clone(),
            Exp::Guard(p, e) if varies(p) => {
                if varies(e) {
                    return None;
                }
                matches!(&image.source, Source::Bracket(q) if q == &**p).then(|| (**e).clone())
            }
            Exp::Op(Op::Neg, args, _) => self.linear(&args[0], image, varied)?.map(|e| op1(Op::Neg, e)),
            Exp::Op(op @ (Op::Add | Op::Sub), args, _) => {
                let (a, b) = (self.linear(&args[0], image, varied)?, self.linear(&args[1], image, varied)?);
                match (a, b) {
                    (a, None) => a,
                    (None, Some(b)) => Some(if *op == Op::Add { b } else { op1(Op::Neg, b) }),
                    (Some(a), Some(b)) => Some(op2(*op, a, b)),
                }
            }
            Exp::Op(Op::Mul, args, _) => match (varies(&args[0]), varies(&args[1])) {
                (true, true) => return None,
                (true, false) => self.linear(&args[0], image, varied)?.map(|e| mul(e, args[1].clone())),
                _ => self.linear(&args[1], image, varied)?.map(|e| mul(args[0].clone(), e)),
            },
            Exp::Op(Op::Div, args, _) if !varies(&args[1]) => {
                self.linear(&args[0], image, varied)?.map(|e| op2(Op::Div, e, args[1].clone()))
            }
            Exp::Index(array, keys, site) if !keys.iter().any(&varies) => {
                self.linear(array, image, varied)?.map(|e| Exp::Index(Box::new(e), keys.clone(), *site))
            }
            Exp::For(i, size, body) => self.linear(body, image, varied)?.map(|e| for_(*i, size.clone(), e)),
            Exp::Sum(range, body) if !varies(&range.lo) && !varies(&range.hi) => {
                self.linear(body, image, varied)?.map(|e| Exp::Sum(range.clone(), Box::new(e)))
            }
            Exp::Guard(p, e) if !varies(p) => self.linear(e, image, varied)?.map(|e| guard((**p).clone(), e)),
            Exp::Let(vars, value, body) if !varies(value) => {
                self.linear(body, image, varied)?.map(|e| let_(vars.clone(), (**value).clone(), e))
            }
            Exp::Array(parts) => {
                let ty = type_of_exp(self.cx.vars, &parts[0]);
                let mut all = vec![];
                for part in parts {
                    all.push(self.linear(part, image, varied)?);
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
    Linear(Type, Vec<(Exp, Source)>),
}

/// What all depends on: a number, or whether a condition holds.
#[derive(Clone, PartialEq)]
enum Source {
    Number(Var),
    Bracket(Exp),
}

fn is_number(vars: &Vars, v: Var) -> bool {
    matches!(vars.ty(v), Type::Scalar(s) if s.is_float())
}

/// What variables are where this source is one and the others are zero; `None` for zero.
struct Image {
    source: Source,
    values: FxHashMap<Var, Option<Exp>>,
}

/// Collects the brackets and numbers that vary; whether nothing else does.
fn found_sources(vars: &Vars, exp: &Exp, varied: &FxHashSet<Var>, out: &mut Vec<Source>) -> bool {
    if !varies(exp, varied) {
        return true;
    }
    let mut add = |source: Source| {
        if !out.contains(&source) {
            out.push(source);
        }
    };
    match exp {
        Exp::Var(v) => {
            add(Source::Number(*v));
            is_number(vars, *v)
        }
        Exp::Guard(p, e) if varies(p, varied) => {
            add(Source::Bracket((**p).clone()));
            !varies(e, varied)
        }
        exp => {
            let mut sizes_vary = false;
            exp.for_each_size(&mut |s| sizes_vary |= varied.iter().any(|v| s.mentions(*v)));
            let mut fine = !sizes_vary;
            exp.for_each_child(&mut |e| fine = fine && found_sources(vars, e, varied, out));
            fine
        }
    }
}
