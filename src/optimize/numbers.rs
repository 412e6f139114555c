//! Numbers of values: expressions with the same number have the same value, whatever they call what they bind, and in
//! whatever order they compute it.
//!
//! A tuple has a number for each of its parts, and so has whatever makes tuples. The number of a part is that of what it takes
//! to compute this part alone: of `for i. (a(i), b(i))` those of `for i. a(i)` and of `for i. b(i)`, of a loop with several
//! states that of the loop with those alone that the part depends on.

use crate::ir::fingerprint::fingerprint;
use crate::ir::*;
use rustc_hash::FxHashMap;
use std::hash::Hash;

/// The number of a value, and which states of the loops around it depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    pub value: u128,
    states: u64,
}

/// Numbers of the variables that are in scope.
#[derive(Default)]
pub struct Numbers {
    known: FxHashMap<Var, Vec<Number>>,
    /// A variable for each number that sizes mention.
    sizes: FxHashMap<u128, Var>,
    /// How many binders there are around, and states of loops.
    depth: u32,
    states: u32,
}

impl Numbers {
    /// Numbers of variables, which have been bound to the parts of a value.
    pub fn bind(&mut self, vars: &[Var], parts: Vec<Number>) {
        match vars {
            [v] => {
                self.known.insert(*v, parts);
            }
            vars => {
                let parts = apart(parts, vars.len());
                vars.iter().zip(parts).for_each(|(v, part)| {
                    self.known.insert(*v, vec![part]);
                });
            }
        }
    }

    /// The numbers of a value's parts; of what is not known to be a tuple, that of the whole.
    pub fn of(&mut self, exp: &Exp) -> Vec<Number> {
        match exp {
            Exp::Var(v) => self.variable(*v).to_vec(),
            Exp::Lit(lit) => vec![join("literal", lit, &[])],
            Exp::Tuple(parts) => parts.iter().map(|part| self.whole(part)).collect(),
            Exp::Let(vars, value, body) => {
                let parts = self.of(value);
                self.bind(vars, parts);
                self.of(body)
            }
            Exp::If(p, yes, no) => {
                let (p, yes, no) = (self.whole(p), self.of(yes), self.of(no));
                in_parts(&[yes, no], |parts| join("if", (), &[p, parts[0], parts[1]]))
            }
            Exp::Guard(p, e) => {
                let p = self.whole(p);
                in_parts(&[self.of(e)], |parts| join("guard", (), &[p, parts[0]]))
            }
            Exp::For(i, size, body) => {
                let size = self.size(size);
                let body = self.within(&[*i], |numbers| numbers.of(body));
                in_parts(&[body], |parts| join("for", (), &[size, parts[0]]))
            }
            Exp::Sum(range, body) => {
                let (lo, hi) = (self.whole(&range.lo), self.whole(&range.hi));
                let body = self.within(&[range.index], |numbers| numbers.of(body));
                in_parts(&[body], |parts| join("sum", (), &[lo, hi, parts[0]]))
            }
            Exp::Reduce(kind, range, body, _) => {
                let (lo, hi) = (self.whole(&range.lo), self.whole(&range.hi));
                let body = self.within(&[range.index], |numbers| numbers.whole(body));
                vec![join("reduce", kind, &[lo, hi, body])]
            }
            Exp::Loop(l) => {
                let (ranges, index) = match &l.trip {
                    Trip::For(range) => (vec![self.whole(&range.lo), self.whole(&range.hi)], Some(range.index)),
                    Trip::While(_) => (vec![], None),
                };
                let annotations: Vec<Number> = l.annotations.iter().map(|(_, size)| self.size(size)).collect();
                let kinds: Vec<Annotation> = l.annotations.iter().map(|(annotation, _)| *annotation).collect();
                let kind = join("loop", kinds, &[ranges, annotations].concat());
                let condition = if let Trip::While(condition) = &l.trip { Some(condition) } else { None };
                self.states(kind, &l.state, &l.init, index, condition, &l.body)
            }
            Exp::History(h) => {
                let kind = join("history", (), &[self.size(&h.size)]);
                self.states(kind, &h.state, &h.init, Some(h.index), None, &h.body)
            }
            Exp::Op(Op::Add, args, _) => {
                let args: Vec<Vec<Number>> = args.iter().map(|a| self.of(a)).collect();
                in_parts(&args, |parts| join("operation", Op::Add, parts))
            }
            Exp::Op(op, args, _) => vec![self.joined("operation", op, args)],
            Exp::Partial(op, by, operands) => vec![self.joined("partial", (op, by), operands)],
            Exp::Index(array, keys, _) => {
                let parts = [vec![self.whole(array)], keys.iter().map(|k| self.whole(k)).collect()].concat();
                vec![join("index", (), &parts)]
            }
            Exp::Singleton(places, value, _) => {
                let places: Vec<Number> = places.iter().flat_map(|(k, size)| [self.whole(k), self.size(size)]).collect();
                let place = join("place", (), &places);
                in_parts(&[self.of(value)], |parts| join("singleton", (), &[place, parts[0]]))
            }
            Exp::Update(array, keys, value, _) => {
                let ends = [self.whole(array), self.whole(value)];
                let keys: Vec<Number> = keys.iter().map(|k| self.whole(k)).collect();
                vec![join("update", (), &[&ends[..], &keys].concat())]
            }
            Exp::Array(items) => vec![self.joined("array", (), items)],
            Exp::Call(f, args, _) => vec![self.joined("call", f, args)],
        }
    }

    fn whole(&mut self, exp: &Exp) -> Number {
        together(&self.of(exp))
    }

    fn joined(&mut self, kind: &str, also: impl Hash, exps: &[Exp]) -> Number {
        let parts: Vec<Number> = exps.iter().map(|e| self.whole(e)).collect();
        join(kind, also, &parts)
    }

    fn variable(&mut self, v: Var) -> &[Number] {
        self.known.entry(v).or_insert_with(|| vec![join("variable", v, &[])])
    }

    /// Sizes are the same if they are of variables of the same value.
    fn size(&mut self, size: &Size) -> Number {
        let mut variables = vec![];
        size.for_each_variable(&mut |v| variables.push(v));
        let mut same: FxHashMap<Var, Var> = FxHashMap::default();
        let mut states = 0;
        for v in variables {
            let number = together(self.variable(v));
            states |= number.states;
            same.insert(v, *self.sizes.entry(number.value).or_insert(v));
        }
        let size = size.substitute(&|v| same.get(&v).map(|same| Size::var(*same)));
        Number { states, ..join("size", size.axis(), &[]) }
    }

    /// What is bound by this binder is numbered by how many there are around it.
    fn within<T>(&mut self, bound: &[Var], f: impl FnOnce(&mut Numbers) -> T) -> T {
        self.depth += 1;
        for (k, v) in bound.iter().enumerate() {
            self.known.insert(*v, vec![join("bound", (self.depth, k), &[])]);
        }
        let found = f(self);
        self.depth -= 1;
        found
    }

    /// The last states of a loop, or all of them. A state is known by what it is at first, so that it is the same in loops
    /// that have others beside it.
    fn states(&mut self, kind: Number, state: &[Var], init: &Exp, index: Option<Var>, condition: Option<&Exp>, body: &Exp) -> Vec<Number> {
        let init = apart(self.of(init), state.len());
        let first = self.states;
        // There are names for so many states; those of loops in many others all depend on each other.
        let tracked = first as usize + state.len() <= u64::BITS as usize;
        let bit = |k: usize| if tracked { 1 << (first as usize + k) } else { 0 };
        self.states += if tracked { state.len() as u32 } else { 0 };
        let index: Vec<Var> = index.into_iter().collect();
        let depth = self.depth;
        let (names, condition, next) = self.within(&index, |numbers| {
            let names: Vec<Number> = (0..state.len())
                .map(|k| {
                    let before = init[..k].iter().filter(|other| other.value == init[k].value).count();
                    let name = join("state", (depth, before), &[init[k]]);
                    Number { states: name.states | bit(k), ..name }
                })
                .collect();
            let bind = |numbers: &mut Numbers| state.iter().zip(&names).for_each(|(v, name)| numbers.bind(&[*v], vec![*name]));
            bind(numbers);
            let condition = condition.map(|c| numbers.whole(c));
            bind(numbers);
            (names.clone(), condition, apart(numbers.of(body), state.len()))
        });
        self.states = first;
        let own = (0..state.len()).fold(0, |all, k| all | bit(k));
        (0..state.len())
            .map(|k| {
                let mut needed: Vec<bool> = (0..state.len()).map(|other| !tracked || other == k).collect();
                loop {
                    let mut on = condition.map_or(0, |c| c.states);
                    (0..state.len()).filter(|s| needed[*s]).for_each(|s| on |= next[s].states);
                    let more: Vec<usize> = (0..state.len()).filter(|s| !needed[*s] && on & bit(*s) != 0).collect();
                    if more.is_empty() {
                        break;
                    }
                    more.into_iter().for_each(|s| needed[s] = true);
                }
                let mut steps: Vec<Number> =
                    (0..state.len()).filter(|s| needed[*s]).map(|s| join("step", (), &[names[s], init[s], next[s]])).collect();
                steps.sort_by_key(|step| step.value);
                let all = [vec![kind, names[k]], condition.into_iter().collect(), steps].concat();
                let number = join("states", condition.is_some(), &all);
                Number { states: number.states & !own, ..number }
            })
            .collect()
    }
}

fn join(kind: &str, also: impl Hash, parts: &[Number]) -> Number {
    let values: Vec<u128> = parts.iter().map(|part| part.value).collect();
    Number { value: fingerprint(&(kind, also, values)), states: parts.iter().fold(0, |all, part| all | part.states) }
}

/// Several parts as one.
fn together(parts: &[Number]) -> Number {
    match parts {
        [part] => *part,
        parts => join("tuple", (), parts),
    }
}

/// One as so many parts, if it is not in parts already.
fn apart(parts: Vec<Number>, count: usize) -> Vec<Number> {
    if parts.len() == count {
        return parts;
    }
    let whole = together(&parts);
    (0..count).map(|k| join("part", k, &[whole])).collect()
}

/// What is done with tuples part by part, where all of them are taken apart.
fn in_parts(tuples: &[Vec<Number>], f: impl Fn(&[Number]) -> Number) -> Vec<Number> {
    let count = tuples[0].len();
    if tuples.iter().any(|parts| parts.len() != count) {
        let wholes: Vec<Number> = tuples.iter().map(|parts| together(parts)).collect();
        return vec![f(&wholes)];
    }
    (0..count).map(|k| f(&tuples.iter().map(|parts| parts[k]).collect::<Vec<_>>())).collect()
}
