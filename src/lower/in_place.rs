//! Changing an array where it is, instead of building another and copying it.
//!
//! `consumes` says whether an expression is an array but for places written in it, one after another, so that they can be
//! written into the array itself: `x with [k] = v`, `x + s`, a loop that begins with `x`, an element-wise `for i. f(x[i])`,
//! and these in one another, under `let` and `if`. `change` then does it. What is written is computed from the array as it
//! was: a value that reads the array is built before anything is written.
//!
//! Views (`let r = x[i]`) are other names for the same memory. Where one is needed after the array has changed, it does
//! not change in place.

use super::binding::{Then, is_view, shares};
use super::iterate::Step;
use super::*;

impl Lowering<'_> {
    /// Whether an expression mentions a variable, other than those excepted, that is in this memory.
    pub fn reads_buffer(&self, e: &Exp, buffer: Buffer, except: &[Var]) -> bool {
        e.free_vars().iter().any(|v| !except.contains(v) && self.env.get(v).is_some_and(|val| shares(val, buffer)))
    }

    /// Whether `e` can be made of `var` where that is, in this memory.
    pub fn consumes(&self, e: &Exp, var: Var, buffer: Buffer) -> bool {
        self.consumes_with(e, var, buffer, &mut vec![])
    }

    /// `views` are variables bound inside of `e` that are views of the array.
    fn consumes_with(&self, e: &Exp, var: Var, buffer: Buffer, views: &mut Vec<Var>) -> bool {
        let touches = |e: &Exp, views: &[Var]| {
            e.mentions(var) || views.iter().any(|v| e.mentions(*v)) || self.reads_buffer(e, buffer, std::slice::from_ref(&var))
        };
        match e {
            Exp::Var(v) => *v == var,
            Exp::Let(vars, value, body) => {
                if is_view(value) && touches(value, views) {
                    // A scalar is read when it is bound.
                    views.extend(vars.iter().filter(|v| !matches!(self.vars.ty(**v), Type::Scalar(_))));
                }
                self.consumes_with(body, var, buffer, views)
            }
            Exp::If(_, a, b) => self.consumes_with(a, var, buffer, views) && self.consumes_with(b, var, buffer, views),
            Exp::Update(array, _, _, _) => self.consumes_with(array, var, buffer, views),
            Exp::Op(Op::Add, args, _) => {
                let settled = !touches(&args[1], views) || singletons(&args[1]).is_some();
                settled && self.consumes_with(&args[0], var, buffer, views)
            }
            Exp::Loop(l) => {
                let trip = match &l.trip {
                    Trip::For(range) => touches(&range.lo, views) || touches(&range.hi, views),
                    Trip::While(condition) => touches(condition, views),
                };
                l.state.len() == 1 && !trip && !touches(&l.body, views) && self.consumes_with(&l.init, var, buffer, views)
            }
            Exp::For(..) => {
                let apart = views.is_empty() && !self.reads_buffer(e, buffer, std::slice::from_ref(&var));
                apart && e.mentions(var) && is_elementwise(self.vars, e, var) && self.type_of(e) == *self.vars.ty(var)
            }
            Exp::Lit(_)
            | Exp::Op(..)
            | Exp::Partial(..)
            | Exp::Index(..)
            | Exp::Singleton(..)
            | Exp::Sum(..)
            | Exp::Reduce(..)
            | Exp::History(_)
            | Exp::Guard(..)
            | Exp::Tuple(_)
            | Exp::Array(_)
            | Exp::Call(..) => false,
        }
    }

    /// Makes what `consumes` allows of the variable, which is in `place`.
    pub fn change(&mut self, e: &Exp, var: Var, place: &Dest) {
        match e {
            Exp::Var(_) => {}
            Exp::Let(bound, value, rest) => {
                self.bind(bound, value, Then::default());
                self.change(rest, var, place);
            }
            Exp::If(p, a, b) => {
                let condition = self.value(p);
                let (yes, ()) = self.branch(p, true, |l| l.change(a, var, place));
                let (no, ()) = self.branch(p, false, |l| l.change(b, var, place));
                self.emit(Stmt::If(condition, yes, no));
            }
            Exp::Update(array, _, value, _) if self.is_placed(value) => self.change(array, var, place),
            Exp::Update(array, keys, value, site) => {
                let written = self.written_place(keys, *site, place);
                let Dest::Array(View { buffer, .. }) = place else { panic!("lower: an update is of an array") };
                let first = matches!(**array, Exp::Var(_));
                if !first || self.reads_buffer(value, *buffer, &[]) {
                    let value = self.beside(value);
                    self.change(array, var, place);
                    self.copy(&value, &written);
                } else {
                    self.store(value, &written);
                }
            }
            Exp::Op(_, args, _) => {
                let Dest::Array(View { buffer, .. }) = place else { panic!("lower: an array is added to an array") };
                match singletons(&args[1]) {
                    // What is added is computed from the array as it was.
                    Some(added) if self.reads_buffer(&args[1], *buffer, &[]) => {
                        let mut settled = vec![];
                        for (keys, value, site) in added {
                            let at = self.settled_place(keys, site, place);
                            settled.push((self.beside(value), at));
                        }
                        self.change(&args[0], var, place);
                        settled.iter().for_each(|(value, at)| self.add(value, at));
                    }
                    _ => {
                        self.change(&args[0], var, place);
                        self.accumulate(&args[1], place);
                    }
                }
            }
            Exp::Loop(l) => {
                let bounds = self.bounds_of(l);
                self.change(&l.init, var, place);
                self.apart_marked(e, |me| me.iterate(l, place, bounds));
            }
            Exp::For(..) => self.store(e, place),
            Exp::Lit(_)
            | Exp::Partial(..)
            | Exp::Index(..)
            | Exp::Singleton(..)
            | Exp::Sum(..)
            | Exp::Reduce(..)
            | Exp::History(_)
            | Exp::Guard(..)
            | Exp::Tuple(_)
            | Exp::Array(_)
            | Exp::Call(..) => unreachable!("`consumes` allows no such expression"),
        }
    }

    /// `let bound = value; rest` in a step: where the value is made of a state that nothing needs after it, it takes the
    /// state's place.
    pub fn bind_in_place(&mut self, bound: &[Var], value: &Exp, rest: &Exp, step: &mut Step) -> bool {
        match (bound, value) {
            (_, Exp::Var(_)) => false,
            ([v], value) => {
                let Some(k) = self.consumed(value, rest, &[], step) else { return false };
                self.passed.remove(v);
                self.change(value, step.current[k].expect("it is consumed"), &step.places[k]);
                self.define(*v, &step.places[k]);
                step.current[k] = Some(*v);
                true
            }
            // Each part is made of a state of which some branch makes it; what the branches do with it is their own step.
            (bound, Exp::If(p, a, b)) => {
                let mut taken: Vec<Option<usize>> = vec![];
                for j in 0..bound.len() {
                    let of = |k: &usize| !taken.contains(&Some(*k)) && self.is_free(*k, rest, step) && self.makes(value, j, *k, step);
                    taken.push((0..step.places.len()).find(of));
                }
                if taken.iter().all(Option::is_none) {
                    return false;
                }
                let mut homes = vec![];
                for (v, k) in bound.iter().zip(&taken) {
                    self.passed.remove(v);
                    homes.push(k.map_or_else(|| self.home(*v, Then::default()), |k| step.places[k].clone()));
                }
                let current = taken.iter().map(|k| step.current[(*k)?]).collect();
                let inner = Step { places: &homes, summed: &vec![false; bound.len()], current };
                let condition = self.value(p);
                let (yes, ()) = self.branch(p, true, |l| l.advance(a, inner.clone()));
                let (no, ()) = self.branch(p, false, |l| l.advance(b, inner));
                self.emit(Stmt::If(condition, yes, no));
                self.take(bound, &homes, &taken, step);
                true
            }
            (bound, Exp::Loop(l)) => {
                let Exp::Tuple(init) = &l.init else { return false };
                let taken: Vec<Option<usize>> = (0..init.len())
                    .map(|j| {
                        let others: Vec<&Exp> =
                            (0..init.len()).filter(|i| *i != j).map(|i| &init[i]).chain([&l.body]).chain(condition(l)).collect();
                        self.consumed(&init[j], rest, &others, step)
                    })
                    .collect();
                if taken.iter().all(Option::is_none) {
                    return false;
                }
                let bounds = self.bounds_of(l);
                let mut homes = vec![];
                for (j, v) in bound.iter().enumerate() {
                    self.passed.remove(v);
                    homes.push(match (taken[j], self.row_for(*v, value, rest, step)) {
                        (Some(k), _) => step.places[k].clone(),
                        (None, row) => {
                            let home = match row {
                                Some((k, keys, site)) => {
                                    self.placed.insert(*v);
                                    self.written_place(keys, site, &step.places[k])
                                }
                                None => self.home(*v, Then::default()),
                            };
                            self.apart(|l| l.store(&init[j], &home));
                            home
                        }
                    });
                }
                for (j, k) in taken.iter().enumerate().filter_map(|(j, k)| Some((j, (*k)?))) {
                    self.change(&init[j], step.current[k].expect("it is consumed"), &step.places[k]);
                }
                self.apart_marked(value, |me| me.iterate(l, &Dest::Tuple(homes.clone()), bounds));
                self.take(bound, &homes, &taken, step);
                true
            }
            _ => false,
        }
    }

    /// Where `rest` does nothing with a variable but write it into a state that nothing needs besides: the state, and the keys
    /// of the place, so that the variable's value can be built there.
    fn row_for<'e>(&self, v: Var, value: &Exp, rest: &'e Exp, step: &Step) -> Option<(usize, &'e [Exp], Site)> {
        let (mut bound, mut last): (Vec<Var>, &Exp) = (vec![], rest);
        while let Exp::Let(vars, _, body) = last {
            bound.extend(vars);
            last = body;
        }
        let Exp::Tuple(parts) = last else { return None };
        let (k, keys, site) = parts.iter().enumerate().find_map(|(k, part)| match part {
            Exp::Update(array, keys, written, site) if **written == Exp::Var(v) => {
                let current = (*step.current.get(k)?)?;
                (**array == Exp::Var(current)).then_some((k, keys.as_slice(), *site))
            }
            _ => None,
        })?;
        let (Dest::Array(view), Some(current)) = (step.places.get(k)?, step.current[k]) else { return None };
        let settled = !keys.iter().any(|key| bound.iter().any(|b| key.mentions(*b)));
        let once = uses(rest, v) == 1 && uses(rest, current) == 1 && self.is_free(k, value, step);
        let apart = !self.reads_buffer(rest, view.buffer, &[current]);
        (settled && once && apart && !step.summed[k] && !matches!(self.vars.ty(v), Type::Scalar(_))).then_some((k, keys, site))
    }

    /// Whether a value was built in the very place that it is to be written to.
    pub fn is_placed(&self, value: &Exp) -> bool {
        matches!(value, Exp::Var(v) if self.placed.contains(v))
    }

    /// Binds variables to where their values are; those that took the place of a state are what it holds now.
    fn take(&mut self, bound: &[Var], homes: &[Dest], taken: &[Option<usize>], step: &mut Step) {
        for (j, v) in bound.iter().enumerate() {
            self.define(*v, &homes[j]);
            if let Some(k) = taken[j] {
                step.current[k] = Some(*v);
            }
        }
    }

    /// The state that a value can be made of in its place, because neither `rest` nor `others` need it.
    fn consumed(&self, value: &Exp, rest: &Exp, others: &[&Exp], step: &Step) -> Option<usize> {
        (0..step.places.len()).find(|k| {
            let (Dest::Array(view), Some(var)) = (&step.places[*k], step.current[*k]) else { return false };
            self.is_free(*k, rest, step) && others.iter().all(|e| self.is_free(*k, e, step)) && self.consumes(value, var, view.buffer)
        })
    }

    /// Whether an expression needs nothing of what the place of an array holds.
    fn is_free(&self, k: usize, e: &Exp, step: &Step) -> bool {
        match (&step.places[k], step.current[k]) {
            (Dest::Array(view), Some(var)) => !step.summed[k] && !e.mentions(var) && !self.reads_buffer(e, view.buffer, &[]),
            _ => false,
        }
    }

    /// Whether some branch of an expression makes its part `j` of a state.
    fn makes(&self, e: &Exp, j: usize, k: usize, step: &Step) -> bool {
        match (e, &step.places[k], step.current[k]) {
            (Exp::Let(_, _, body), _, _) => self.makes(body, j, k, step),
            (Exp::If(_, a, b), _, _) => self.makes(a, j, k, step) || self.makes(b, j, k, step),
            (Exp::Tuple(parts), Dest::Array(view), Some(var)) => self.consumes(&parts[j], var, view.buffer),
            _ => false,
        }
    }
}

/// The keys and values of a sum of singletons.
fn singletons(e: &Exp) -> Option<Vec<(&[(Exp, Size)], &Exp, Site)>> {
    if let Exp::Singleton(keys, value, site) = e {
        return Some(vec![(keys, value, *site)]);
    }
    let Exp::Op(Op::Add, args, _) = e else { return None };
    let mut all = singletons(&args[0])?;
    all.extend(singletons(&args[1])?);
    Some(all)
}

fn uses(e: &Exp, v: Var) -> usize {
    let mut count = (*e == Exp::Var(v)) as usize;
    e.for_each_child(&mut |child| count += uses(child, v));
    count
}

fn condition(l: &Iteration) -> Option<&Exp> {
    match &l.trip {
        Trip::While(condition) => Some(condition),
        Trip::For(_) => None,
    }
}

/// `for i, j. e`, an index for each axis of `var`, where `e` reads `var[i, j]` alone of it and is made of scalars.
fn is_elementwise(vars: &Vars, e: &Exp, var: Var) -> bool {
    let mut indices = vec![];
    let mut body = e;
    while let Exp::For(i, _, inner) = body {
        indices.push(Exp::Var(*i));
        body = inner;
    }
    indices.len() == vars.ty(var).shape().len() && reads_one(body, var, &indices)
}

fn reads_one(e: &Exp, var: Var, place: &[Exp]) -> bool {
    match e {
        Exp::Index(array, keys, _) if **array == Exp::Var(var) => keys == place,
        Exp::Var(v) => *v != var,
        // What runs over elements itself is not sure to read before the place is written.
        Exp::For(..) | Exp::Sum(..) | Exp::Reduce(..) | Exp::History(_) | Exp::Loop(_) | Exp::Update(..) | Exp::Singleton(..) => false,
        Exp::Lit(_)
        | Exp::Op(..)
        | Exp::Partial(..)
        | Exp::Index(..)
        | Exp::Guard(..)
        | Exp::If(..)
        | Exp::Let(..)
        | Exp::Tuple(_)
        | Exp::Array(_)
        | Exp::Call(..) => {
            let mut fits = true;
            e.for_each_child(&mut |c| fits = fits && reads_one(c, var, place));
            fits
        }
    }
}
