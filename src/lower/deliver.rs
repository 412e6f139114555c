//! `dest += let (x, y) = value; body`, where the body does nothing with `y` but add it to a part of the destination.
//!
//! The value is delivered part by part (`ir/destination.rs` says which): some parts are stored in memory of their own,
//! others are added to their place in the destination right away, so that they are never built.

use super::binding::Then;
use super::*;
use crate::ir::destination::passed_on;

/// What is to become of one part of a tuple.
#[derive(Clone)]
pub(super) enum Way {
    Store(Dest),
    Add(Dest),
}

impl Way {
    fn dest(&self) -> &Dest {
        match self {
            Way::Store(dest) | Way::Add(dest) => dest,
        }
    }
    fn to(&self, dest: &Dest) -> Way {
        match self {
            Way::Store(_) => Way::Store(dest.clone()),
            Way::Add(_) => Way::Add(dest.clone()),
        }
    }
}

impl Lowering<'_> {
    /// Binds variables for a body that is added to a destination; `part` gives a part of it that is added to, if it is.
    pub fn bind_into(&mut self, vars: &[Var], value: &Exp, body: &Exp, part: &dyn Fn(&[usize]) -> Option<Dest>) {
        let then = Then { body: Some(body), dest: None };
        let places: Vec<Option<Dest>> = passed_on(self.vars, vars, body).iter().map(|path| part(path.as_ref()?)).collect();
        if places.iter().all(Option::is_none) {
            return self.bind(vars, value, then);
        }
        if let [Some(place)] = places.as_slice() {
            self.apart(|l| l.accumulate(value, place));
        } else {
            let mut ways = vec![];
            for (var, place) in vars.iter().zip(&places) {
                ways.push(match place {
                    Some(place) => Way::Add(place.clone()),
                    None => Way::Store(self.home(*var, then)),
                });
            }
            self.apart(|l| l.deliver(value, &ways));
            for (var, way) in vars.iter().zip(&ways) {
                if let Way::Store(dest) = way {
                    self.define(*var, dest);
                }
            }
        }
        for (var, place) in vars.iter().zip(&places) {
            if place.is_some() {
                self.passed.insert(*var);
            } else {
                self.passed.remove(var);
            }
        }
    }

    /// Stores or adds each part of a tuple.
    fn deliver(&mut self, e: &Exp, ways: &[Way]) {
        if let Exp::Let(vars, value, body) = e {
            let part = |path: &[usize]| match path {
                [k, rest @ ..] => match &ways[*k] {
                    Way::Add(dest) => Some(dest.part(rest)),
                    Way::Store(_) => None,
                },
                [] => None,
            };
            self.bind_into(vars, value, body, &part);
            return self.deliver(body, ways);
        }
        let whole = || Dest::Tuple(ways.iter().map(|way| way.dest().clone()).collect());
        self.apart(|l| match e {
            Exp::Let(..) => unreachable!("handled above"),
            Exp::Tuple(parts) => {
                for (part, way) in parts.iter().zip(ways) {
                    match way {
                        Way::Store(dest) => l.store(part, dest),
                        Way::Add(dest) => l.accumulate(part, dest),
                    }
                }
            }
            Exp::If(p, a, b) => {
                let condition = l.value(p);
                let (yes, ()) = l.branch(p, true, |l| l.deliver(a, ways));
                let (no, ()) = l.branch(p, false, |l| l.deliver(b, ways));
                l.emit(Stmt::If(condition, yes, no));
            }
            Exp::Guard(p, e) => {
                let condition = l.value(p);
                let (yes, ()) = l.branch(p, true, |l| l.deliver(e, ways));
                let (no, ()) = l.branch(p, false, |l| l.zero_stored(ways));
                l.emit(Stmt::If(condition, yes, no));
            }
            Exp::For(index, size, body) => l.generate(*index, size, &whole(), &mut |l, places| {
                let inner: Vec<Way> = ways.iter().zip(places.parts()).map(|(way, place)| way.to(place)).collect();
                l.deliver(body, &inner);
            }),
            Exp::Sum(..) | Exp::Singleton(..) => {
                l.zero_stored(ways);
                l.accumulate(e, &whole());
            }
            Exp::Op(Op::Add, args, _) => {
                l.deliver(&args[0], ways);
                l.accumulate(&args[1], &whole());
            }
            Exp::Var(_) | Exp::Index(..) | Exp::History(_) | Exp::Loop(_) => {
                let Val::Tuple(values) = l.evaluate(e, "parts") else { panic!("lower: several variables name a tuple") };
                for (value, way) in values.iter().zip(ways) {
                    match way {
                        Way::Store(dest) => l.copy(value, dest),
                        Way::Add(dest) => l.add(value, dest),
                    }
                }
            }
            Exp::Lit(_) | Exp::Op(..) | Exp::Partial(..) | Exp::Reduce(..) | Exp::Update(..) | Exp::Array(_) => {
                panic!("lower: several variables name a tuple")
            }
            Exp::Call(..) => panic!("lower: calls are inlined before"),
        })
    }

    fn zero_stored(&mut self, ways: &[Way]) {
        for way in ways {
            if let Way::Store(dest) = way {
                self.zero(dest);
            }
        }
    }
}
