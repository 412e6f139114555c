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
    pub fn map_children(mut self, f: &mut impl FnMut(Exp) -> Exp) -> Exp {
        self.map_children_in_place(f);
        self.joined()
    }

    /// Replaces each direct subexpression where it stands, so that nothing is allocated. Reads of reads, and singletons of
    /// singletons, are left as they are (`joined`).
    fn map_children_in_place(&mut self, f: &mut impl FnMut(Exp) -> Exp) {
        match self {
            Exp::Var(_) | Exp::Lit(_) => {}
            Exp::Op(_, args, _) | Exp::Partial(_, _, args) | Exp::Tuple(args) | Exp::Array(args) | Exp::Call(_, args, _) => {
                args.iter_mut().for_each(|e| replace(e, f))
            }
            Exp::Index(array, keys, _) => {
                replace(array, f);
                keys.iter_mut().for_each(|e| replace(e, f));
            }
            Exp::Singleton(keys, value, _) => {
                keys.iter_mut().for_each(|(k, _)| replace(k, f));
                replace(value, f);
            }
            Exp::For(_, _, body) => replace(body, f),
            Exp::Sum(range, body) | Exp::Reduce(_, range, body, _) => {
                replace(&mut range.lo, f);
                replace(&mut range.hi, f);
                replace(body, f);
            }
            Exp::History(h) => {
                replace(&mut h.init, f);
                replace(&mut h.body, f);
            }
            Exp::Loop(l) => {
                replace(&mut l.init, f);
                match &mut l.trip {
                    Trip::For(range) => {
                        replace(&mut range.lo, f);
                        replace(&mut range.hi, f);
                    }
                    Trip::While(condition) => replace(condition, f),
                }
                replace(&mut l.body, f);
            }
            Exp::Update(array, keys, value, _) => {
                replace(array, f);
                keys.iter_mut().for_each(|e| replace(e, f));
                replace(value, f);
            }
            Exp::Guard(p, e) => {
                replace(p, f);
                replace(e, f);
            }
            Exp::If(p, a, b) => {
                replace(p, f);
                replace(a, f);
                replace(b, f);
            }
            Exp::Let(_, value, body) => {
                replace(value, f);
                replace(body, f);
            }
        }
    }

    /// A read of a read as one read, a singleton of a singleton as one singleton.
    fn joined(self) -> Exp {
        match self {
            Exp::Index(array, keys, site) if matches!(*array, Exp::Index(..)) => build::index(*array, keys, site),
            Exp::Singleton(keys, value, site) if matches!(*value, Exp::Singleton(..)) => build::singleton(keys, *value, site),
            exp => exp,
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
        self.for_each_size(&mut |s| s.for_each_variable(&mut |v| *counts.entry(v).or_insert(0) += 1));
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
            e.for_each_size(&mut |s| s.for_each_variable(&mut |v| note(v, bound)));
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

/// Puts what `f` makes of an expression in its place.
fn replace(place: &mut Exp, f: &mut (impl FnMut(Exp) -> Exp + ?Sized)) {
    let exp = std::mem::replace(place, Exp::Lit(Lit::Bool(false)));
    *place = f(exp);
}

/// As `map_children`, with the facts that hold where each subexpression is evaluated.
pub fn map_children_with_facts(mut exp: Exp, facts: &mut Facts, f: &mut dyn FnMut(Exp, &mut Facts) -> Exp) -> Exp {
    let mark = facts.mark();
    match &mut exp {
        Exp::For(v, size, body) => {
            facts.enter_for(*v, size);
            replace(body, &mut |e| f(e, facts));
        }
        Exp::Sum(range, body) | Exp::Reduce(_, range, body, _) => {
            map_range(range, facts, f);
            replace(body, &mut |e| f(e, facts));
        }
        Exp::History(h) => {
            replace(&mut h.init, &mut |e| f(e, facts));
            facts.enter_for(h.index, &h.size);
            replace(&mut h.body, &mut |e| f(e, facts));
        }
        Exp::Loop(l) => {
            replace(&mut l.init, &mut |e| f(e, facts));
            match &mut l.trip {
                Trip::For(range) => map_range(range, facts, f),
                Trip::While(condition) => {
                    replace(condition, &mut |e| f(e, facts));
                    facts.assume(condition);
                }
            }
            replace(&mut l.body, &mut |e| f(e, facts));
        }
        Exp::Guard(p, e) => {
            replace(p, &mut |e| f(e, facts));
            facts.assume(p);
            replace(e, &mut |e| f(e, facts));
        }
        Exp::If(p, a, b) => {
            replace(p, &mut |e| f(e, facts));
            facts.assume(p);
            replace(a, &mut |e| f(e, facts));
            facts.reset(mark);
            facts.assume_not(p);
            replace(b, &mut |e| f(e, facts));
        }
        Exp::Let(vars, value, body) => {
            replace(value, &mut |e| f(e, facts));
            if let [v] = vars.as_slice() {
                facts.define(*v, value);
            }
            replace(body, &mut |e| f(e, facts));
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
        | Exp::Call(..) => exp.map_children_in_place(&mut |e| f(e, facts)),
    };
    facts.reset(mark);
    exp.joined()
}

fn map_range(range: &mut Range, facts: &mut Facts, f: &mut dyn FnMut(Exp, &mut Facts) -> Exp) {
    replace(&mut range.lo, &mut |e| f(e, facts));
    replace(&mut range.hi, &mut |e| f(e, facts));
    facts.enter_range(range);
}

/// As `for_each_child`, with the facts that hold where each subexpression is evaluated.
pub fn for_each_child_with_facts(exp: &Exp, facts: &mut Facts, f: &mut dyn FnMut(&Exp, &mut Facts)) {
    let mark = facts.mark();
    match exp {
        Exp::For(v, size, body) => {
            facts.enter_for(*v, size);
            f(body, facts);
        }
        Exp::Sum(range, body) | Exp::Reduce(_, range, body, _) => {
            f(&range.lo, facts);
            f(&range.hi, facts);
            facts.enter_range(range);
            f(body, facts);
        }
        Exp::History(h) => {
            f(&h.init, facts);
            facts.enter_for(h.index, &h.size);
            f(&h.body, facts);
        }
        Exp::Loop(l) => {
            f(&l.init, facts);
            match &l.trip {
                Trip::For(range) => {
                    f(&range.lo, facts);
                    f(&range.hi, facts);
                    facts.enter_range(range);
                }
                Trip::While(condition) => {
                    f(condition, facts);
                    facts.assume(condition);
                }
            }
            f(&l.body, facts);
        }
        Exp::Guard(p, e) => {
            f(p, facts);
            facts.assume(p);
            f(e, facts);
        }
        Exp::If(p, a, b) => {
            f(p, facts);
            facts.assume(p);
            f(a, facts);
            facts.reset(mark);
            facts.assume_not(p);
            f(b, facts);
        }
        Exp::Let(vars, value, body) => {
            f(value, facts);
            if let [v] = vars.as_slice() {
                facts.define(*v, value);
            }
            f(body, facts);
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
        | Exp::Call(..) => exp.for_each_child(&mut |e| f(e, facts)),
    }
    facts.reset(mark);
}

/// Variables and what replaces them.
pub type Substitution = FxHashMap<Var, Exp>;

fn substitute_size(size: &Size, with: &Substitution) -> Size {
    size.substitute(&|v| with.get(&v).map(|e| exp_size(e).unwrap_or_else(|| panic!("a size mentions {v:?}, replaced by {e:?}"))))
}

/// An expression with another one in the place of a part, wherever that stands.
pub fn replaced(exp: Exp, part: &Exp, by: &Exp) -> Exp {
    if exp == *part { by.clone() } else { exp.map_children(&mut |e| replaced(e, part, by)) }
}

/// Replaces free variables. The bound variables stay the same, so the result must take the place of `exp`
/// (use `copy` to have both). The types of bound variables are rewritten where their sizes change.
pub fn substitute(vars: &mut Vars, exp: Exp, with: &Substitution) -> Exp {
    if with.is_empty() {
        return exp;
    }
    match exp {
        Exp::Var(v) => with.get(&v).cloned().unwrap_or(Exp::Var(v)),
        mut exp => {
            for v in exp.binds() {
                let mut changes = false;
                vars.ty(v).for_each_size(&mut |s| s.for_each_variable(&mut |w| changes = changes || with.contains_key(&w)));
                if changes {
                    let ty = vars.ty(v).map_sizes(&mut |s| substitute_size(s, with));
                    vars.set_ty(v, ty);
                }
            }
            map_sizes(&mut exp, &mut |s| substitute_size(s, with));
            exp.map_children(&mut |e| substitute(vars, e, with))
        }
    }
}

/// A copy in which every bound variable is new, with free variables replaced: the only way to duplicate a body.
pub fn copy(vars: &mut Vars, exp: &Exp, with: &Substitution) -> Exp {
    let mut with = with.clone();
    renamed(vars, exp.clone(), &mut with)
}

fn renamed(vars: &mut Vars, exp: Exp, with: &mut Substitution) -> Exp {
    match exp {
        Exp::Var(v) => with.get(&v).cloned().unwrap_or(Exp::Var(v)),
        // A `let` binds in its body alone, and its variables' types may mention only what is bound before.
        mut exp => {
            for v in &exp.binds() {
                let ty = vars.ty(*v).map_sizes(&mut |s| substitute_size(s, with));
                let fresh = vars.fresh_like(*v, ty);
                with.insert(*v, Exp::Var(fresh));
            }
            let new = |v: &Var, with: &Substitution| match with.get(v) {
                Some(Exp::Var(w)) => *w,
                _ => unreachable!("bound variables are renamed to variables"),
            };
            match &mut exp {
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
            map_sizes(&mut exp, &mut |s| substitute_size(s, with));
            exp.map_children(&mut |e| renamed(vars, e, with))
        }
    }
}

fn map_sizes(exp: &mut Exp, f: &mut impl FnMut(&Size) -> Size) {
    match exp {
        Exp::For(_, size, _) => *size = f(size),
        Exp::Singleton(keys, _, _) => keys.iter_mut().for_each(|(_, s)| *s = f(s)),
        Exp::History(h) => h.size = f(&h.size),
        Exp::Loop(l) => l.annotations.iter_mut().for_each(|(_, s)| *s = f(s)),
        _ => {}
    }
}

/// Whether the size of something inside depends on a variable.
pub fn sizes_mention(vars: &Vars, exp: &Exp, p: Var) -> bool {
    let of_type = |v: Var| match vars.ty(v) {
        Type::Array(shape, _) => shape.iter().any(|s| s.mentions(p)),
        Type::Scalar(_) | Type::Tuple(_) => false,
    };
    let mut found = exp.binds().into_iter().any(of_type);
    exp.for_each_size(&mut |s| found |= s.mentions(p));
    exp.for_each_child(&mut |e| found = found || sizes_mention(vars, e, p));
    found
}
