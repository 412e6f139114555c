//! Scopes in named form: what differentiation walks.
//!
//! `name` turns an expression into a list of statements and atoms (variables and literals) for its results. After it,
//! * every float operand is an atom, the array of a read is a variable;
//! * no variable is a tuple: a tuple is its parts, and a binder over a tuple binds each part;
//! * operands that are integers or truth values stay expressions where they cost nothing (`x[i + 1]`, `[i == j]`), and
//!   are named where they do;
//! * `prod`, `max`, `min` of floats run over an array: `let r = for i. e; prod i. r[i]`;
//! * the bodies of binders and branches are themselves named scopes, `let`s around a tuple of atoms.

use crate::ir::build::*;
use crate::ir::traverse::{Substitution, substitute};
use crate::ir::*;
use crate::scalar::CostClass;
use rustc_hash::FxHashMap;

pub type Statement = (Vec<Var>, Exp);

#[derive(Debug)]
pub struct Scope {
    pub statements: Vec<Statement>,
    /// Atoms, one for each scalar or array of the result.
    pub results: Vec<Exp>,
}

impl Scope {
    /// The scope of an expression, which is used up (its variables become the scope's).
    pub fn name(vars: &mut Vars, exp: Exp) -> Scope {
        let mut namer = Namer { vars, atoms: Substitution::default(), tuples: FxHashMap::default() };
        namer.scope(exp)
    }

    /// Takes a named expression apart.
    pub fn split(exp: Exp) -> Scope {
        let mut statements = vec![];
        let mut rest = exp;
        loop {
            match rest {
                Exp::Let(vars, value, body) => {
                    statements.push((vars, *value));
                    rest = *body;
                }
                Exp::Tuple(results) => return Scope { statements, results },
                result => return Scope { statements, results: vec![result] },
            }
        }
    }

    pub fn into_exp(self) -> Exp {
        lets(self.statements, tuple(self.results))
    }
}

/// The scalars and arrays of a type, in order.
pub fn leaf_types(ty: &Type) -> Vec<Type> {
    match ty {
        Type::Scalar(_) | Type::Array(..) => vec![ty.clone()],
        Type::Tuple(parts) => parts.iter().flat_map(leaf_types).collect(),
    }
}

/// Puts leaves back into the shape of a type.
pub fn rebuild(ty: &Type, leaves: &mut impl Iterator<Item = Exp>) -> Exp {
    match ty {
        Type::Scalar(_) | Type::Array(..) => leaves.next().expect("one leaf for each scalar or array"),
        Type::Tuple(parts) => Exp::Tuple(parts.iter().map(|t| rebuild(t, leaves)).collect()),
    }
}

/// Whether evaluation costs no operation: reads, integer arithmetic, comparisons, and arrays of such.
pub fn costs_nothing(vars: &Vars, exp: &Exp) -> bool {
    let free = |e: &Exp| costs_nothing(vars, e);
    match exp {
        Exp::Var(_) | Exp::Lit(_) => true,
        Exp::Op(op, args, _) => {
            // Few operations cost nothing, and of few types.
            let may = op.cases().iter().any(|c| c.cost() == CostClass::Free);
            let kinds = || args.iter().map(|a| scalar_of(vars, a)).collect::<Option<Vec<Scalar>>>();
            may && kinds().is_some_and(|kinds| op.cost(&kinds) == CostClass::Free) && args.iter().all(free)
        }
        Exp::Index(array, keys, _) => free(array) && keys.iter().all(free),
        Exp::For(_, _, body) => free(body),
        Exp::Guard(p, e) => free(p) && free(e),
        Exp::If(p, a, b) => free(p) && free(a) && free(b),
        Exp::Let(_, value, body) => free(value) && free(body),
        Exp::Tuple(parts) | Exp::Array(parts) => parts.iter().all(free),
        Exp::Partial(..) | Exp::Singleton(..) | Exp::Sum(..) | Exp::Reduce(..) => false,
        Exp::History(_) | Exp::Loop(_) | Exp::Update(..) | Exp::Call(..) => false,
    }
}

struct Namer<'a> {
    vars: &'a mut Vars,
    /// Variables that turned out to be atoms.
    atoms: Substitution,
    /// Variables that are tuples, by their parts.
    tuples: FxHashMap<Var, Vec<Exp>>,
}

impl Namer<'_> {
    fn scope(&mut self, exp: Exp) -> Scope {
        let mut statements = vec![];
        let results = self.name(exp, &mut statements, &[]);
        Scope { statements, results }
    }

    /// Binds the parts of a value, to `targets` where there is one for each.
    fn bind(&mut self, value: Exp, name: &str, out: &mut Vec<Statement>, targets: &[Var]) -> Vec<Exp> {
        let types = leaf_types(&type_of_exp(self.vars, &value));
        let bound: Vec<Var> = if targets.len() == types.len() {
            for (v, ty) in targets.iter().zip(types) {
                self.vars.set_ty(*v, ty);
            }
            targets.to_vec()
        } else {
            types.into_iter().map(|ty| self.vars.fresh(name, ty)).collect()
        };
        out.push((bound.clone(), value));
        bound.into_iter().map(Exp::Var).collect()
    }

    fn name(&mut self, exp: Exp, out: &mut Vec<Statement>, targets: &[Var]) -> Vec<Exp> {
        match exp {
            Exp::Var(v) => match self.tuples.get(&v) {
                Some(parts) => parts.clone(),
                None => vec![self.atoms.get(&v).cloned().unwrap_or(Exp::Var(v))],
            },
            Exp::Lit(_) => vec![exp],
            Exp::Tuple(parts) => {
                let aligned = parts.len() == targets.len();
                parts
                    .into_iter()
                    .enumerate()
                    .flat_map(|(k, part)| self.name(part, out, if aligned { &targets[k..k + 1] } else { &[] }))
                    .collect()
            }
            Exp::Let(pattern, value, body) => {
                self.name_let(pattern, *value, out);
                self.name(*body, out, targets)
            }
            Exp::Op(op, args, site) => self.name_operation(op, args, site, out, targets),
            Exp::Partial(op, k, args) => {
                let args = args.into_iter().map(|a| self.operand(a, out)).collect();
                self.bind(Exp::Partial(op, k, args), "d", out, targets)
            }
            Exp::Index(array, keys, site) => {
                let arrays = self.name(*array, out, &[]);
                let keys: Vec<Exp> = keys.into_iter().map(|k| self.operand(k, out)).collect();
                let free = keys.iter().all(|k| costs_nothing(self.vars, k));
                arrays
                    .into_iter()
                    .flat_map(|a| {
                        let read = index(a, keys.clone(), site);
                        let integer = type_of_exp(self.vars, &read).scalar().is_some_and(|s| !s.is_float());
                        if integer && free && targets.is_empty() && matches!(type_of_exp(self.vars, &read), Type::Scalar(_)) {
                            vec![read]
                        } else {
                            self.bind(read, "e", out, targets)
                        }
                    })
                    .collect()
            }
            Exp::Singleton(keys, value, site) => {
                let keys: Vec<(Exp, Size)> = keys.into_iter().map(|(k, s)| (self.operand(k, out), s)).collect();
                let values = self.name(*value, out, &[]);
                values.into_iter().flat_map(|v| self.bind(singleton(keys.clone(), v, site), "e", out, targets)).collect()
            }
            Exp::Array(items) => {
                let items = items.into_iter().map(|e| self.operand(e, out)).collect();
                self.bind(Exp::Array(items), "e", out, targets)
            }
            Exp::For(i, size, body) => {
                let body = self.scope(*body).into_exp();
                self.bind(for_(i, size, body), "e", out, targets)
            }
            Exp::Sum(range, body) => {
                let range = self.range(*range, out);
                let body = self.scope(*body).into_exp();
                self.bind(Exp::Sum(Box::new(range), Box::new(body)), "e", out, targets)
            }
            Exp::Reduce(kind, range, body, site) => self.name_reduction(kind, *range, *body, site, out, targets),
            Exp::History(h) => {
                let History { state, init, index, size, body } = *h;
                let init = tuple(self.name(init, out, &[]));
                let state = self.state_leaves(state);
                let body = self.scope(body).into_exp();
                let h = History { state, init, index, size, body };
                self.bind(Exp::History(Box::new(h)), "h", out, targets)
            }
            Exp::Loop(l) => {
                let Iteration { state, init, trip, body, annotations } = *l;
                let init = tuple(self.name(init, out, &[]));
                let trip = match trip {
                    Trip::For(range) => Trip::For(self.range(range, out)),
                    Trip::While(condition) => Trip::While(condition),
                };
                let state = self.state_leaves(state);
                let trip = match trip {
                    Trip::While(condition) => Trip::While(self.scope(condition).into_exp()),
                    trip => trip,
                };
                let body = self.scope(body).into_exp();
                self.bind(Exp::Loop(Box::new(Iteration { state, init, trip, body, annotations })), "e", out, targets)
            }
            Exp::Update(array, keys, value, site) => {
                let array = self.operand(*array, out);
                let keys = keys.into_iter().map(|k| self.operand(k, out)).collect();
                let value = self.operand(*value, out);
                self.bind(Exp::Update(Box::new(array), keys, Box::new(value), site), "e", out, targets)
            }
            Exp::Guard(p, e) => {
                let p = self.operand(*p, out);
                let body = self.scope(*e).into_exp();
                self.bind(guard(p, body), "e", out, targets)
            }
            Exp::If(p, a, b) => {
                let p = self.operand(*p, out);
                let (a, b) = (self.scope(*a).into_exp(), self.scope(*b).into_exp());
                self.bind(if_(p, a, b), "e", out, targets)
            }
            Exp::Call(id, args, site) => {
                let args = args
                    .into_iter()
                    .map(|a| {
                        let ty = type_of_exp(self.vars, &a);
                        rebuild(&ty, &mut self.name(a, out, &[]).into_iter())
                    })
                    .collect();
                self.bind(Exp::Call(id, args, site), "e", out, targets)
            }
        }
    }

    fn name_let(&mut self, pattern: Vec<Var>, value: Exp, out: &mut Vec<Statement>) {
        let plain = pattern.iter().all(|v| !matches!(self.vars.ty(*v), Type::Tuple(_)));
        let mut leaves = self.name(value, out, if plain { &pattern } else { &[] }).into_iter();
        for v in pattern {
            let types = leaf_types(self.vars.ty(v));
            if matches!(self.vars.ty(v), Type::Tuple(_)) {
                let parts: Vec<Exp> = leaves.by_ref().take(types.len()).collect();
                // Integer expressions are bound, so that parts can be used twice.
                let parts = parts
                    .into_iter()
                    .map(|p| match p {
                        Exp::Var(_) | Exp::Lit(_) => p,
                        p => self.bind(p, "e", out, &[]).pop().expect("one leaf"),
                    })
                    .collect();
                self.tuples.insert(v, parts);
                continue;
            }
            match leaves.next().expect("one leaf for each variable") {
                Exp::Var(w) if w == v => {}
                // An integer may stand in a size, so it keeps its variable.
                atom @ (Exp::Var(_) | Exp::Lit(_)) if self.vars.ty(v).has_float() => {
                    self.atoms.insert(v, atom);
                }
                leaf => out.push((vec![v], leaf)),
            }
        }
    }

    fn name_operation(&mut self, op: Op, args: Vec<Exp>, site: Site, out: &mut Vec<Statement>, targets: &[Var]) -> Vec<Exp> {
        let args: Vec<Vec<Exp>> = args.into_iter().map(|a| self.name(a, out, &[])).collect();
        let leaves = args[0].len();
        let aligned = leaves == targets.len();
        (0..leaves)
            .flat_map(|k| {
                let value = Exp::Op(op, args.iter().map(|a| a[k].clone()).collect(), site);
                let ty = type_of_exp(self.vars, &value);
                if !ty.has_float() && matches!(ty, Type::Scalar(_)) && costs_nothing(self.vars, &value) && targets.is_empty() {
                    return vec![value];
                }
                // Float operands may only be named reads, which are atoms already.
                self.bind(value, "e", out, if aligned { &targets[k..k + 1] } else { &[] })
            })
            .collect()
    }

    fn name_reduction(
        &mut self,
        kind: Reduction,
        range: Range,
        body: Exp,
        site: Site,
        out: &mut Vec<Statement>,
        targets: &[Var],
    ) -> Vec<Exp> {
        let range = self.range(range, out);
        let float = type_of_exp(self.vars, &body).has_float();
        match kind {
            Reduction::Prod | Reduction::Max | Reduction::Min if float => {
                let (lo, hi) = (exp_size(&range.lo).expect("a size"), exp_size(&range.hi).expect("a size"));
                let size = hi.sub(&lo);
                let body = if lo == Size::default() {
                    body
                } else {
                    // The elements stand at 0, 1, ...: shift the index.
                    let shifted = self.vars.fresh(self.vars.name(range.index).to_string(), Type::I64);
                    let with = Substitution::from_iter([(range.index, size_exp(&Size::var(shifted).add(&lo)))]);
                    let body = substitute(self.vars, body, &with);
                    return self.reduce_array(kind, shifted, size, body, out, targets);
                };
                self.reduce_array(kind, range.index, size, body, out, targets)
            }
            _ => {
                let body = self.scope(body).into_exp();
                self.bind(Exp::Reduce(kind, Box::new(range), Box::new(body), site), "e", out, targets)
            }
        }
    }

    fn reduce_array(&mut self, kind: Reduction, i: Var, size: Size, body: Exp, out: &mut Vec<Statement>, targets: &[Var]) -> Vec<Exp> {
        let body = self.scope(body).into_exp();
        let elements = self.bind(for_(i, size.clone(), body), "r", out, &[]).pop().expect("a scalar body");
        let k = self.vars.fresh(self.vars.name(i).to_string(), Type::I64);
        let range = Range { index: k, lo: i64(0), hi: size_exp(&size) };
        let read = index(elements, vec![Exp::Var(k)], Site::default());
        self.bind(Exp::Reduce(kind, Box::new(range), Box::new(read), Site::default()), "e", out, targets)
    }

    /// The variables of a loop's state, tuples taken apart.
    fn state_leaves(&mut self, state: Vec<Var>) -> Vec<Var> {
        let mut leaves = vec![];
        for v in state {
            let ty = self.vars.ty(v).clone();
            if matches!(ty, Type::Tuple(_)) {
                let name = self.vars.name(v).to_string();
                let parts: Vec<Var> = leaf_types(&ty).into_iter().map(|t| self.vars.fresh(name.clone(), t)).collect();
                self.tuples.insert(v, parts.iter().map(|p| Exp::Var(*p)).collect());
                leaves.extend(parts);
            } else {
                leaves.push(v);
            }
        }
        leaves
    }

    /// An operand: an atom, or a free expression of integers or truth values.
    fn operand(&mut self, exp: Exp, out: &mut Vec<Statement>) -> Exp {
        let mut leaves = self.name(exp, out, &[]);
        assert_eq!(leaves.len(), 1, "differentiate: an operand is a scalar or an array");
        leaves.pop().expect("one leaf")
    }

    /// A range whose ends are sizes: others are named.
    fn range(&mut self, range: Range, out: &mut Vec<Statement>) -> Range {
        let mut end = |e: Exp| {
            let e = self.operand(e, out);
            if exp_size(&e).is_some() { e } else { self.bind(e, "end", out, &[]).pop().expect("one leaf") }
        };
        Range { index: range.index, lo: end(range.lo), hi: end(range.hi) }
    }
}
