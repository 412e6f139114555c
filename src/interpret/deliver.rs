//! `dest += let (x, y) = value; body`, where the body does nothing with `y` but add it to a part of the destination.
//!
//! The value is delivered part by part (`ir/destination.rs` says which): some parts are kept, others are added to their
//! place in the destination right away, so that they are never built.

use super::memory::{Place, Val, stack};
use super::{Interpreter, Outcome};
use crate::ir::destination::{held, passed_on};
use crate::ir::{Exp, Op, Var};
use std::rc::Rc;

impl<'a> Interpreter<'a> {
    /// Runs with variables bound, but those that the body only adds to its destination: these are added there. `part`
    /// gives the place for a part of the body's destination, if it has one.
    pub(super) fn let_into<T>(
        &mut self,
        vars: &[Var],
        value: &'a Exp,
        body: &'a Exp,
        part: &dyn Fn(&[usize]) -> Option<Place>,
        run: impl FnOnce(&mut Self) -> Outcome<T>,
    ) -> Outcome<T> {
        let program = self.program;
        let paths = self.paths.entry(body as *const Exp).or_insert_with(|| Rc::new(passed_on(&program.vars, vars, body))).clone();
        let places: Vec<Option<Place>> = paths.iter().map(|path| part(path.as_ref()?)).collect();
        let before = self.passed.len();
        if places.iter().all(Option::is_none) {
            let held = held(value);
            let value = self.eval(value)?;
            let arrays = if held { value.arrays() } else { 0 };
            return self.holding(arrays, |me| me.bound(vars, value, run));
        }
        let mut arrays = 0;
        match places.as_slice() {
            [Some(place)] => self.accumulate(value, place)?,
            _ => {
                let kept = self.deliver(value, &places)?;
                arrays = if held(value) { kept.iter().flatten().map(Val::arrays).sum() } else { 0 };
                vars.iter().zip(kept).for_each(|(v, value)| self.env[v.0 as usize] = value);
            }
        }
        self.passed.extend(vars.iter().zip(&places).filter(|(_, place)| place.is_some()).map(|(v, _)| *v));
        let result = self.holding(arrays, run);
        self.passed.truncate(before);
        vars.iter().for_each(|v| self.env[v.0 as usize] = None);
        result
    }

    /// The parts of a tuple that have no place; the others are added to theirs.
    pub(super) fn deliver(&mut self, exp: &'a Exp, places: &[Option<Place>]) -> Outcome<Vec<Option<Val>>> {
        match exp {
            Exp::Tuple(parts) => {
                let each = parts.iter().zip(places).map(|(e, place)| match place {
                    Some(place) => self.accumulate(e, place).map(|()| None),
                    None => self.eval(e).map(Some),
                });
                each.collect()
            }
            Exp::Let(vars, value, body) => {
                let part = |path: &[usize]| match path {
                    [k, rest @ ..] => places[*k].as_ref().map(|place| place.part(rest)),
                    [] => None,
                };
                self.let_into(vars, value, body, &part, |me| me.deliver(body, places))
            }
            Exp::If(p, a, b) => {
                let chosen = if self.eval(p)?.truth() { a } else { b };
                self.deliver(chosen, places)
            }
            Exp::Guard(p, e) => {
                if self.eval(p)?.truth() {
                    return self.deliver(e, places);
                }
                let zeros = self.layout(e)?.parts();
                Ok(zeros.into_iter().zip(places).map(|(layout, place)| place.is_none().then(|| layout.zero())).collect())
            }
            Exp::For(index, size, body) => {
                let count = self.size(size);
                if count == 0 {
                    let zeros = self.layout(exp)?.parts();
                    return Ok(zeros.into_iter().zip(places).map(|(layout, place)| place.is_none().then(|| layout.zero())).collect());
                }
                let mut columns: Vec<Vec<Val>> = vec![vec![]; places.len()];
                for i in 0..count {
                    let inner: Vec<Option<Place>> = places.iter().map(|p| p.as_ref().map(|p| p.at(i))).collect();
                    let kept = self.at(*index, i as i64, |me| me.deliver(body, &inner))?;
                    columns.iter_mut().zip(kept).for_each(|(column, value)| column.extend(value));
                }
                Ok(columns.into_iter().map(|column| (!column.is_empty()).then(|| stack(column))).collect())
            }
            Exp::Sum(..) | Exp::Singleton(..) => {
                let zeros = self.layout(exp)?.parts();
                let start = zeros.into_iter().zip(places).map(|(layout, place)| place.is_none().then(|| layout.zero())).collect();
                self.deliver_more(exp, start, places)
            }
            Exp::Op(Op::Add, args, _) => {
                let first = self.deliver(&args[0], places)?;
                self.deliver_more(&args[1], first, places)
            }
            Exp::Var(_)
            | Exp::Lit(_)
            | Exp::Op(..)
            | Exp::Partial(..)
            | Exp::Index(..)
            | Exp::Reduce(..)
            | Exp::History(_)
            | Exp::Loop(_)
            | Exp::Update(..)
            | Exp::Array(_)
            | Exp::Call(..) => {
                let Val::Tuple(values) = self.eval(exp)? else { panic!("interpret: several variables name a tuple") };
                let mut kept = vec![];
                for (value, place) in values.into_iter().zip(places) {
                    kept.push(match place {
                        Some(place) => {
                            self.counts.additions += self.buffers.add(place, &value);
                            None
                        }
                        None => Some(value),
                    });
                }
                Ok(kept)
            }
        }
    }

    /// Adds a tuple to what was kept of another, and to the places of the other parts.
    fn deliver_more(&mut self, exp: &'a Exp, kept: Vec<Option<Val>>, places: &[Option<Place>]) -> Outcome<Vec<Option<Val>>> {
        let all: Vec<Place> = kept
            .into_iter()
            .zip(places)
            .map(|(value, place)| match (value, place) {
                (Some(value), _) => self.buffers.push(value),
                (None, place) => place.clone().expect("a part is kept or has a place"),
            })
            .collect();
        let all = Place::Tuple(all);
        self.accumulate(exp, &all)?;
        let mut kept: Vec<Option<Val>> =
            all.parts().iter().zip(places).rev().map(|(own, place)| place.is_none().then(|| self.buffers.pop(own))).collect();
        kept.reverse();
        Ok(kept)
    }
}
