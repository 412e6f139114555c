//! Walking expressions: children, free variables, substitution and renaming copies.
//!
//! A substitution replaces variables by expressions, in expressions and in the sizes that mention them. A variable
//! that a size mentions may only be replaced by an expression that is itself a size (`build::exp_size`).

use super::build::exp_size;
use super::facts::Facts;
use super::*;
use rustc_hash::{FxHashMap, FxHashSet};

impl Exp {
    /// Calls `f` on each direct subexpression.
    pub fn for_each_child(&self, f: &mut impl FnMut(&Exp)) {
        match self {
            Exp::Var(_) | Exp::Lit(_) => {}
            Exp::Op(_, args, _) | Exp::Partial(_, _, args) | Exp::Tuple(args) | Exp::Array(args) | Exp::Call(_, args, _) => {
                args.iter().for_each(f)
            }
            Exp::Index(array, keys, _) => {
                f(array);
                keys.iter().for_each(f)
            }
            Exp::Singleton(keys, value, _) => {
                keys.iter().for_each(|(k, _)| f(k));
                f(value)
            }
            Exp::For(_, _, body) => f(body),
            Exp::Sum(range, body) | Exp::Reduce(_, range, body, _) => {
                f(&range.lo);
                f(&range.hi);
                f(body)
            }
            Exp::History(h) => {
                f(&h.init);
                f(&h.body)
            }
            Exp::Loop(l) => {
                f(&l.init);
                match &l.trip {
                    Trip::For(range) => {
                        f(&range.lo);
                        f(&range.hi)
                    }
                    Trip::While(condition) => f(condition),
                }
                f(&l.body)
            }
            Exp::Update(array, keys, value, _) => {
                f(array);
                keys.iter().for_each(&mut *f);
                f(value)
            }
            Exp::Guard(p, e) => {
                f(p);
                f(e)
            }
            Exp::If(p, a, b) => {
                f(p);
                f(a);
                f(b)
            }
            Exp::Let(_, value, body) => {
                f(value);
                f(body)
            }
        }
    }

    /// The same expression with each direct subexpression replaced, in order of evaluation.
    pub fn map_children(self, f: &mut impl FnMut(Exp) -> Exp) -> Exp {
        let list = |es: Vec<Exp>, f: &mut dyn FnMut(Exp) -> Exp| es.into_iter().map(f).collect::<Vec<_>>();
        match self {
            Exp::Var(_) | Exp::Lit(_) => self,
            Exp::Op(op, args, site) => Exp::Op(op, list(args, f), site),
            Exp::Partial(op, k, args) => Exp::Partial(op, k, list(args, f)),
            Exp::Tuple(args) => Exp::Tuple(list(args, f)),
            Exp::Array(args) => Exp::Array(list(args, f)),
            Exp::Call(id, args, site) => Exp::Call(id, list(args, f), site),
            Exp::Index(array, keys, site) => {
                let array = f(*array);
                build::index(array, list(keys, f), site)
            }
            Exp::Singleton(keys, value, site) => {
                let keys = keys.into_iter().map(|(k, s)| (f(k), s)).collect();
                build::singleton(keys, f(*value), site)
            }
            Exp::For(v, size, body) => Exp::For(v, size, Box::new(f(*body))),
            Exp::Sum(range, body) => {
                let Range { index, lo, hi } = *range;
                let range = Range { index, lo: f(lo), hi: f(hi) };
                Exp::Sum(Box::new(range), Box::new(f(*body)))
            }
            Exp::Reduce(kind, range, body, site) => {
                let Range { index, lo, hi } = *range;
                let range = Range { index, lo: f(lo), hi: f(hi) };
                Exp::Reduce(kind, Box::new(range), Box::new(f(*body)), site)
            }
            Exp::History(h) => {
                let History { state, init, index, size, body } = *h;
                let init = f(init);
                Exp::History(Box::new(History { state, init, index, size, body: f(body) }))
            }
            Exp::Loop(l) => {
                let Iteration { state, init, trip, body, annotations } = *l;
                let init = f(init);
                let trip = match trip {
                    Trip::For(Range { index, lo, hi }) => Trip::For(Range { index, lo: f(lo), hi: f(hi) }),
                    Trip::While(condition) => Trip::While(f(condition)),
                };
                Exp::Loop(Box::new(Iteration { state, init, trip, body: f(body), annotations }))
            }
            Exp::Update(array, keys, value, site) => {
                let array = f(*array);
                let keys = list(keys, f);
                Exp::Update(Box::new(array), keys, Box::new(f(*value)), site)
            }
            Exp::Guard(p, e) => {
                let p = f(*p);
                Exp::Guard(Box::new(p), Box::new(f(*e)))
            }
            Exp::If(p, a, b) => {
                let (p, a) = (f(*p), f(*a));
                Exp::If(Box::new(p), Box::new(a), Box::new(f(*b)))
            }
            Exp::Let(vars, value, body) => {
                let value = f(*value);
                Exp::Let(vars, Box::new(value), Box::new(f(*body)))
            }
        }
    }

    /// The same expression in the place of a call: what is the library's knows the program's call of it.
    pub fn called_from(self, call: Span) -> Exp {
        let exp = self.map_children(&mut |e| e.called_from(call));
        match exp {
            Exp::Op(op, args, site) => Exp::Op(op, args, site.called_from(call)),
            Exp::Index(array, keys, site) => Exp::Index(array, keys, site.called_from(call)),
            Exp::Singleton(keys, value, site) => Exp::Singleton(keys, value, site.called_from(call)),
            Exp::Reduce(kind, range, body, site) => Exp::Reduce(kind, range, body, site.called_from(call)),
            Exp::Update(array, keys, value, site) => Exp::Update(array, keys, value, site.called_from(call)),
            Exp::Call(id, args, site) => Exp::Call(id, args, site.called_from(call)),
            Exp::Var(_)
            | Exp::Lit(_)
            | Exp::Partial(..)
            | Exp::For(..)
            | Exp::Sum(..)
            | Exp::History(_)
            | Exp::Loop(_)
            | Exp::Guard(..)
            | Exp::If(..)
            | Exp::Let(..)
            | Exp::Tuple(_)
            | Exp::Array(_) => exp,
        }
    }

    /// The variables that this node itself binds (not its subexpressions').
    pub fn binds(&self) -> Vec<Var> {
        match self {
            Exp::For(v, _, _) => vec![*v],
            Exp::Sum(range, _) | Exp::Reduce(_, range, _, _) => vec![range.index],
            Exp::History(h) => h.state.iter().copied().chain([h.index]).collect(),
            Exp::Loop(l) => match &l.trip {
                Trip::For(range) => l.state.iter().copied().chain([range.index]).collect(),
                Trip::While(_) => l.state.clone(),
            },
            Exp::Let(vars, _, _) => vars.clone(),
            _ => vec![],
        }
    }

    /// The sizes that this node itself mentions (not its subexpressions').
    pub fn for_each_size(&self, f: &mut impl FnMut(&Size)) {
        match self {
            Exp::For(_, size, _) => f(size),
            Exp::Singleton(keys, _, _) => keys.iter().for_each(|(_, s)| f(s)),
            Exp::History(h) => f(&h.size),
            Exp::Loop(l) => l.annotations.iter().for_each(|(_, s)| f(s)),
            _ => {}
        }
    }

    /// How often each variable occurs, uses in sizes included.
    pub fn count_uses(&self, counts: &mut FxHashMap<Var, usize>) {
        if let Exp::Var(v) = self {
            *counts.entry(*v).or_insert(0) += 1;
        }
        self.for_each_size(&mut |s| {
            let mut vars = vec![];
            s.variables(&mut vars);
            vars.into_iter().for_each(|v| *counts.entry(v).or_insert(0) += 1);
        });
        self.for_each_child(&mut |e| e.count_uses(counts));
    }

    /// Free variables (those in sizes included), each once, in order of appearance.
    pub fn free_vars(&self) -> Vec<Var> {
        fn walk(e: &Exp, bound: &mut FxHashSet<Var>, seen: &mut FxHashSet<Var>, out: &mut Vec<Var>) {
            let mut note = |v: Var, bound: &FxHashSet<Var>| {
                if !bound.contains(&v) && seen.insert(v) {
                    out.push(v);
                }
            };
            if let Exp::Var(v) = e {
                note(*v, bound);
            }
            e.for_each_size(&mut |s| {
                let mut vars = vec![];
                s.variables(&mut vars);
                vars.into_iter().for_each(|v| note(v, bound));
            });
            // Variables are bound once in a program, so a name may be added before its scope begins.
            bound.extend(e.binds());
            e.for_each_child(&mut |c| walk(c, bound, seen, out));
        }
        let mut out = vec![];
        walk(self, &mut FxHashSet::default(), &mut FxHashSet::default(), &mut out);
        out
    }

    /// Whether the variable occurs, in sizes too.
    pub fn mentions(&self, var: Var) -> bool {
        let mut found = matches!(self, Exp::Var(v) if *v == var);
        self.for_each_size(&mut |s| found |= s.mentions(var));
        if !found {
            self.for_each_child(&mut |e| found = found || e.mentions(var));
        }
        found
    }
    pub fn mentions_any(&self, vars: &[Var]) -> bool {
        vars.iter().any(|v| self.mentions(*v))
    }

    /// Number of nodes.
    pub fn node_count(&self) -> usize {
        let mut count = 1;
        self.for_each_child(&mut |e| count += e.node_count());
        count
    }
}

/// As `map_children`, with the facts that hold where each subexpression is evaluated.
pub fn map_children_with_facts(exp: Exp, facts: &mut Facts, f: &mut dyn FnMut(Exp, &mut Facts) -> Exp) -> Exp {
    let mark = facts.mark();
    let exp = match exp {
        Exp::For(v, size, body) => {
            facts.enter_for(v, &size);
            let body = f(*body, facts);
            Exp::For(v, size, Box::new(body))
        }
        Exp::Sum(range, body) => {
            let range = map_range(*range, facts, f);
            let body = f(*body, facts);
            Exp::Sum(Box::new(range), Box::new(body))
        }
        Exp::Reduce(kind, range, body, site) => {
            let range = map_range(*range, facts, f);
            let body = f(*body, facts);
            Exp::Reduce(kind, Box::new(range), Box::new(body), site)
        }
        Exp::History(h) => {
            let History { state, init, index, size, body } = *h;
            let init = f(init, facts);
            facts.enter_for(index, &size);
            let body = f(body, facts);
            Exp::History(Box::new(History { state, init, index, size, body }))
        }
        Exp::Loop(l) => {
            let Iteration { state, init, trip, body, annotations } = *l;
            let init = f(init, facts);
            let trip = match trip {
                Trip::For(range) => Trip::For(map_range(range, facts, f)),
                Trip::While(condition) => {
                    let condition = f(condition, facts);
                    facts.assume(&condition);
                    Trip::While(condition)
                }
            };
            let body = f(body, facts);
            Exp::Loop(Box::new(Iteration { state, init, trip, body, annotations }))
        }
        Exp::Guard(p, e) => {
            let p = f(*p, facts);
            facts.assume(&p);
            let e = f(*e, facts);
            Exp::Guard(Box::new(p), Box::new(e))
        }
        Exp::If(p, a, b) => {
            let p = f(*p, facts);
            facts.assume(&p);
            let a = f(*a, facts);
            facts.reset(mark);
            facts.assume_not(&p);
            let b = f(*b, facts);
            Exp::If(Box::new(p), Box::new(a), Box::new(b))
        }
        Exp::Let(vars, value, body) => {
            let value = f(*value, facts);
            if let [v] = vars.as_slice() {
                facts.define(*v, &value);
            }
            let body = f(*body, facts);
            Exp::Let(vars, Box::new(value), Box::new(body))
        }
        Exp::Var(_)
        | Exp::Lit(_)
        | Exp::Op(..)
        | Exp::Partial(..)
        | Exp::Index(..)
        | Exp::Singleton(..)
        | Exp::Update(..)
        | Exp::Tuple(_)
        | Exp::Array(_)
        | Exp::Call(..) => exp.map_children(&mut |e| f(e, facts)),
    };
    facts.reset(mark);
    exp
}

fn map_range(range: Range, facts: &mut Facts, f: &mut dyn FnMut(Exp, &mut Facts) -> Exp) -> Range {
    let Range { index, lo, hi } = range;
    let range = Range { index, lo: f(lo, facts), hi: f(hi, facts) };
    facts.enter_range(&range);
    range
}

/// Variables and what replaces them.
pub type Substitution = FxHashMap<Var, Exp>;

fn substitute_size(size: &Size, with: &Substitution) -> Size {
    size.substitute(&|v| with.get(&v).map(|e| exp_size(e).unwrap_or_else(|| panic!("a size mentions {v:?}, replaced by {e:?}"))))
}

/// Replaces free variables. The bound variables stay the same, so the result must take the place of `exp`
/// (use `copy` to have both). The types of bound variables are rewritten where their sizes change.
pub fn substitute(vars: &mut Vars, exp: Exp, with: &Substitution) -> Exp {
    if with.is_empty() {
        return exp;
    }
    match exp {
        Exp::Var(v) => with.get(&v).cloned().unwrap_or(Exp::Var(v)),
        _ => {
            for v in exp.binds() {
                let ty = vars.ty(v).map_sizes(&mut |s| substitute_size(s, with));
                vars.set_ty(v, ty);
            }
            let exp = map_sizes(exp, &mut |s| substitute_size(s, with));
            exp.map_children(&mut |e| substitute(vars, e, with))
        }
    }
}

/// A copy in which every bound variable is new, with free variables replaced: the only way to duplicate a body.
pub fn copy(vars: &mut Vars, exp: &Exp, with: &Substitution) -> Exp {
    let mut with = with.clone();
    copy_with(vars, exp, &mut with)
}

fn copy_with(vars: &mut Vars, exp: &Exp, with: &mut Substitution) -> Exp {
    match exp {
        Exp::Var(v) => with.get(v).cloned().unwrap_or(Exp::Var(*v)),
        // A `let` binds in its body alone, and its variables' types may mention only what is bound before.
        _ => {
            let mut renamed = exp.clone();
            let bound = exp.binds();
            for v in &bound {
                let ty = vars.ty(*v).map_sizes(&mut |s| substitute_size(s, with));
                let fresh = vars.fresh_like(*v, ty);
                with.insert(*v, Exp::Var(fresh));
            }
            let new = |v: &Var, with: &Substitution| match with.get(v) {
                Some(Exp::Var(w)) => *w,
                _ => unreachable!("bound variables are renamed to variables"),
            };
            match &mut renamed {
                Exp::For(v, _, _) => *v = new(v, with),
                Exp::Sum(range, _) | Exp::Reduce(_, range, _, _) => range.index = new(&range.index, with),
                Exp::History(h) => {
                    h.index = new(&h.index, with);
                    h.state.iter_mut().for_each(|v| *v = new(v, with));
                }
                Exp::Loop(l) => {
                    if let Trip::For(range) = &mut l.trip {
                        range.index = new(&range.index, with);
                    }
                    l.state.iter_mut().for_each(|v| *v = new(v, with));
                }
                Exp::Let(vs, _, _) => vs.iter_mut().for_each(|v| *v = new(v, with)),
                _ => {}
            }
            let renamed = map_sizes(renamed, &mut |s| substitute_size(s, with));
            renamed.map_children(&mut |e| copy_with(vars, &e, with))
        }
    }
}

fn map_sizes(exp: Exp, f: &mut impl FnMut(&Size) -> Size) -> Exp {
    match exp {
        Exp::For(v, size, body) => Exp::For(v, f(&size), body),
        Exp::Singleton(keys, value, site) => Exp::Singleton(keys.into_iter().map(|(k, s)| (k, f(&s))).collect(), value, site),
        Exp::History(mut h) => {
            h.size = f(&h.size);
            Exp::History(h)
        }
        Exp::Loop(mut l) => {
            l.annotations.iter_mut().for_each(|(_, s)| *s = f(s));
            Exp::Loop(l)
        }
        other => other,
    }
}
