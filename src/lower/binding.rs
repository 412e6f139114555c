//! `let x = value; body`: where the value of a variable lives.
//!
//! * A whole variable, a row, or a tuple of them is a view: nothing is moved.
//! * A variable that `body` returns is built in the destination of `body` (`returned_place`), and so is one that it writes
//!   out there (`pieces.rs`).
//! * `let b = a + s` at the last use of `a`, where `a` has a buffer of its own, adds `s` into that buffer. So does a loop that
//!   begins with `a`.
//! * Otherwise the value gets a buffer, or locals for scalars.

use super::*;

/// What follows a binding, and where it is stored, as far as they are known.
#[derive(Clone, Copy, Default)]
pub(super) struct Then<'a> {
    pub body: Option<&'a Exp>,
    pub dest: Option<&'a Dest>,
}

impl Lowering<'_> {
    /// Binds variables for what follows.
    pub fn bind(&mut self, vars: &[Var], value: &Exp, then: Then) {
        vars.iter().for_each(|v| {
            self.passed.remove(v);
        });
        match value {
            // let x = (let y = a; b); c  is  let y = a; let x = b; c
            Exp::Let(inner, first, rest) => {
                self.bind(inner, first, Then::default());
                self.bind(vars, rest, then);
            }
            Exp::Tuple(parts) if vars.len() > 1 => {
                for (var, part) in vars.iter().zip(parts) {
                    self.bind_one(*var, part, then);
                }
            }
            _ if vars.len() == 1 => self.bind_one(vars[0], value, then),
            Exp::Var(_) | Exp::Index(..) => {
                let whole = self.evaluate(value, self.vars.name(vars[0]));
                let Val::Tuple(parts) = whole else { panic!("lower: several variables name a tuple") };
                for (var, part) in vars.iter().zip(parts) {
                    let named = self.named_val(self.vars.name(*var), part);
                    self.env.insert(*var, named);
                }
            }
            Exp::Loop(l) if matches!(&l.init, Exp::Tuple(parts) if parts.len() == vars.len()) => self.bind_states_of(vars, value, l, then),
            _ => {
                let dests: Vec<Dest> = vars.iter().map(|v| self.home(*v, then)).collect();
                self.apart(|l| l.store(value, &Dest::Tuple(dests.clone())));
                vars.iter().zip(dests).for_each(|(v, dest)| self.define(*v, &dest));
            }
        }
    }

    /// Several states of a loop: those go on where they are that nothing else needs.
    fn bind_states_of(&mut self, vars: &[Var], value: &Exp, l: &Iteration, then: Then) {
        let Exp::Tuple(parts) = &l.init else { unreachable!("states begin with a tuple") };
        let (mut dests, mut built) = (vec![], vec![]);
        for (k, (var, part)) in vars.iter().zip(parts).enumerate() {
            let others = parts.iter().enumerate().filter(|(j, _)| *j != k).map(|(_, part)| part.clone());
            dests.push(match self.last_use(part, &Exp::Tuple(others.chain(needs(l)).collect()), then.body) {
                Some(dest) => {
                    self.owners.insert(*var, self.chain);
                    dest
                }
                None => {
                    built.push(k);
                    self.home(*var, then)
                }
            });
        }
        if built.len() == vars.len() {
            self.apart(|me| me.store(value, &Dest::Tuple(dests.clone())));
        } else {
            let bounds = self.bounds_of(l);
            self.apart_marked(value, |me| {
                built.iter().for_each(|k| me.store(&parts[*k], &dests[*k]));
                me.iterate(l, &Dest::Tuple(dests.clone()), bounds);
            });
        }
        vars.iter().zip(dests).for_each(|(v, dest)| self.define(*v, &dest));
    }

    fn bind_one(&mut self, var: Var, value: &Exp, then: Then) {
        let name = self.vars.name(var);
        if let Exp::Let(inner, first, rest) = value {
            self.bind(inner, first, Then::default());
            return self.bind_one(var, rest, then);
        }
        if let Type::Scalar(scalar) = self.vars.ty(var) {
            let result = self.apart(|l| l.value(value));
            let result = self.named(name, result);
            if *scalar == Scalar::I64 {
                self.facts.define(var, value);
                self.ranges.insert(var, buffers::Extent::Value(build::exp_size(value)));
            }
            self.env.insert(var, Val::Scalar(result));
            return;
        }
        if is_view(value) {
            let view = self.evaluate(value, name);
            let view = self.named_val(name, view);
            self.env.insert(var, view);
            return;
        }
        if let Exp::Op(Op::Add, args, _) = value {
            if let Some(dest) = self.last_use(&args[0], &args[1], then.body) {
                self.apart(|l| l.accumulate(&args[1], &dest));
                self.owners.insert(var, self.chain);
                return self.define(var, &dest);
            }
        }
        if let Exp::Loop(l) = value {
            if l.state.len() == 1 {
                if let Some(dest) = self.last_use(&l.init, &Exp::Tuple(needs(l)), then.body) {
                    let bounds = self.bounds_of(l);
                    self.apart_marked(value, |me| me.iterate(l, &dest, bounds));
                    self.owners.insert(var, self.chain);
                    return self.define(var, &dest);
                }
            }
        }
        if let Exp::Update(array, keys, place, site) = value {
            // The keys and the value are needed before the update: they count as used with it.
            let rest = Exp::Tuple(keys.iter().cloned().chain([(**place).clone()]).collect());
            if let Some(dest) = self.last_use(array, &rest, then.body) {
                self.apart(|l| l.write(keys, place, *site, &dest));
                self.owners.insert(var, self.chain);
                return self.define(var, &dest);
            }
        }
        let dest = self.home(var, then);
        self.apart(|l| l.store(value, &dest));
        self.define(var, &dest);
    }

    pub fn define(&mut self, var: Var, dest: &Dest) {
        self.env.insert(var, dest.value());
    }

    /// Where a variable's value is built: in the destination of what follows if that returns it, else in new memory.
    pub fn home(&mut self, var: Var, then: Then) -> Dest {
        let ty = self.vars.ty(var).clone();
        let next = then.body.zip(then.dest);
        let placed = next.and_then(|(body, dest)| returned_place(var, body, dest).or_else(|| self.piece_place(var, body, dest)));
        match placed {
            Some(place) if !matches!(ty, Type::Scalar(_)) => place,
            _ => {
                self.owners.insert(var, self.chain);
                self.allocate(&ty, self.vars.name(var))
            }
        }
    }

    /// The buffer of `a` in `let b = a + s; body`, if nothing needs the old value any more: it was bound in this very
    /// chain of lets, and neither `s` nor `body` mentions it, nor a view of it.
    fn last_use(&mut self, a: &Exp, s: &Exp, body: Option<&Exp>) -> Option<Dest> {
        let (Exp::Var(a), Some(body)) = (a, body) else { return None };
        if self.owners.get(a) != Some(&self.chain) {
            return None;
        }
        let Some(Val::Array(view)) = self.env.get(a).cloned() else { return None };
        let sharing = |l: &Self, e: &Exp| e.free_vars().iter().any(|v| l.env.get(v).is_some_and(|val| shares(val, view.buffer)));
        if sharing(self, s) || sharing(self, body) {
            return None;
        }
        self.owners.remove(a);
        Some(Dest::Array(view))
    }
}

/// What a loop needs in its steps.
fn needs(l: &Iteration) -> Vec<Exp> {
    let mut needs = vec![l.body.clone()];
    match &l.trip {
        Trip::For(range) => needs.extend([range.lo.clone(), range.hi.clone()]),
        Trip::While(condition) => needs.push(condition.clone()),
    }
    needs
}

pub(super) fn shares(val: &Val, buffer: Buffer) -> bool {
    match val {
        Val::Scalar(e) => e.any(&mut |e| matches!(e, Expr::Load(b, _) if *b == buffer)),
        Val::Array(view) => view.buffer == buffer,
        Val::Tuple(parts) => parts.iter().any(|p| shares(p, buffer)),
    }
}

/// Whether evaluating the expression gives a view of memory that exists.
pub(super) fn is_view(e: &Exp) -> bool {
    match e {
        Exp::Var(_) | Exp::Index(..) => true,
        Exp::Tuple(parts) => parts.iter().any(is_view),
        Exp::Let(_, _, body) => is_view(body),
        Exp::Lit(_)
        | Exp::Op(..)
        | Exp::Partial(..)
        | Exp::Singleton(..)
        | Exp::For(..)
        | Exp::Sum(..)
        | Exp::Reduce(..)
        | Exp::History(_)
        | Exp::Loop(_)
        | Exp::Update(..)
        | Exp::Guard(..)
        | Exp::If(..)
        | Exp::Array(_)
        | Exp::Call(..) => false,
    }
}

/// The part of `dest` that is sure to end up holding `var` (perhaps with something added), so that its value may be built there.
fn returned_place(var: Var, body: &Exp, dest: &Dest) -> Option<Dest> {
    match body {
        Exp::Var(v) => (*v == var).then(|| dest.clone()),
        Exp::Let(vars, value, rest) => {
            if let (Exp::Op(Op::Add, args, _), [next]) = (&**value, vars.as_slice()) {
                // let b = a + s; ... b ...: the place of b, if a is not needed besides.
                if args[0] == Exp::Var(var) && !args[1].mentions(var) && !rest.mentions(var) {
                    return returned_place(*next, rest, dest);
                }
            }
            let place = returned_place(var, rest, dest)?;
            // Where something is added into the place later, views of the old value would change with it.
            (!value.mentions(var) || !is_view(value) || !adds_to(var, rest)).then_some(place)
        }
        Exp::Op(Op::Add, args, _) => {
            let place = returned_place(var, &args[0], dest)?;
            (!args[1].mentions(var)).then_some(place)
        }
        // A loop changes its first state where it is.
        Exp::Loop(l) => {
            let place = returned_place(var, &l.init, dest)?;
            let condition = matches!(&l.trip, Trip::While(condition) if condition.mentions(var));
            (!condition && !l.body.mentions(var)).then_some(place)
        }
        Exp::Update(array, keys, value, _) => {
            let place = returned_place(var, array, dest)?;
            (!value.mentions(var) && !keys.iter().any(|k| k.mentions(var))).then_some(place)
        }
        Exp::Tuple(parts) => {
            let Dest::Tuple(dests) = dest else { return None };
            let k = parts.iter().zip(dests).position(|(part, d)| returned_place(var, part, d).is_some())?;
            let alone = parts.iter().enumerate().all(|(j, part)| j == k || !part.mentions(var));
            if adds_to(var, &parts[k]) && !alone {
                return None;
            }
            returned_place(var, &parts[k], &dests[k])
        }
        Exp::Lit(_)
        | Exp::Partial(..)
        | Exp::Op(..)
        | Exp::Index(..)
        | Exp::Singleton(..)
        | Exp::For(..)
        | Exp::Sum(..)
        | Exp::Reduce(..)
        | Exp::History(_)
        | Exp::Guard(..)
        | Exp::If(..)
        | Exp::Array(_)
        | Exp::Call(..) => None,
    }
}

/// Whether the place of `var` in the result is changed after `var` is built.
fn adds_to(var: Var, body: &Exp) -> bool {
    match body {
        Exp::Let(_, value, rest) => matches!(&**value, Exp::Op(Op::Add, args, _) if args[0] == Exp::Var(var)) || adds_to(var, rest),
        Exp::Op(Op::Add, args, _) => args[0].mentions(var),
        Exp::Loop(l) => l.init.mentions(var),
        Exp::Update(array, _, _, _) => array.mentions(var),
        Exp::Tuple(parts) => parts.iter().any(|p| adds_to(var, p)),
        Exp::Var(_)
        | Exp::Lit(_)
        | Exp::Partial(..)
        | Exp::Op(..)
        | Exp::Index(..)
        | Exp::Singleton(..)
        | Exp::For(..)
        | Exp::Sum(..)
        | Exp::Reduce(..)
        | Exp::History(_)
        | Exp::Guard(..)
        | Exp::If(..)
        | Exp::Array(_)
        | Exp::Call(..) => false,
    }
}
