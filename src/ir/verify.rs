//! The invariants of the IR. A program that breaks one is our bug: `verify` says which, and panics nowhere.
//!
//! * Every variable is bound once in the program and used in its scope, in sizes too.
//! * Every expression has the type its place needs. Sizes are compared as axes, after variables that a `let` names are
//!   replaced by what they stand for (`let m = n + 1; for i in 0..m. e` is an `[n + 1]`).
//! * Types mention only what is in scope where they hold.

use super::build::{bind_sizes, exp_size};
use super::print::{print_exp_untyped, print_size, print_type};
use super::*;
use rustc_hash::{FxHashMap, FxHashSet};

pub fn verify(program: &Program) -> Result<(), String> {
    let mut bound = FxHashSet::default();
    let mut names = FxHashSet::default();
    for k in 0..program.functions.len() {
        let name = program.functions[k].name.as_str();
        if !names.insert(name) {
            return Err(format!("two functions have the name `{name}`"));
        }
        verify_in(program, FunctionId(k as u32), &mut bound)?;
    }
    Ok(())
}

pub fn verify_function(program: &Program, id: FunctionId) -> Result<(), String> {
    verify_in(program, id, &mut FxHashSet::default())
}

fn verify_in(program: &Program, id: FunctionId, bound: &mut FxHashSet<Var>) -> Result<(), String> {
    let Some(f) = program.functions.get(id.0 as usize) else { return Err(format!("there is no function {}", id.0)) };
    let mut verifier = Verifier { program, bound, scope: FxHashSet::default(), values: FxHashMap::default() };
    verifier.function(f).map_err(|e| format!("in `{}`: {e}", f.name))
}

struct Verifier<'a> {
    program: &'a Program,
    /// Variables that were bound somewhere before.
    bound: &'a mut FxHashSet<Var>,
    scope: FxHashSet<Var>,
    /// What `let` says of variables that sizes may mention.
    values: FxHashMap<Var, Size>,
}

type Checked = Result<Type, String>;

impl Verifier<'_> {
    fn function(&mut self, f: &Function) -> Result<(), String> {
        for v in &f.sizes {
            self.bind(*v, &Type::I64)?;
        }
        // A parameter's type may mention any `i64` parameter, so all are bound before the types are looked at.
        for v in &f.params {
            self.enter(*v)?;
        }
        for v in &f.params {
            self.type_in_scope(&self.program.vars.ty(*v).clone())?;
        }
        self.type_in_scope(&f.result)?;
        match &f.body {
            Body::Exp(e) => {
                let ty = self.exp(e)?;
                self.same(&f.result, &ty, || "the result".to_string())
            }
            Body::Derived { mode, of, wrt } => self.derived(f, *mode, *of, wrt),
            Body::Entries(entries) => self.entries(f, entries),
            Body::Jacobian { of, wrt } => self.jacobian(f, *of, wrt),
        }
    }

    fn jacobian(&mut self, f: &Function, of: FunctionId, wrt: &[usize]) -> Result<(), String> {
        let Some(source) = self.program.functions.get(of.0 as usize) else {
            return Err("it is the Jacobian of a function that does not exist".to_string());
        };
        if wrt.is_empty() || wrt.iter().any(|k| *k >= source.params.len()) {
            return Err(format!("its positions {wrt:?} are no parameters of `{}`", source.name));
        }
        if f.params.len() != source.params.len() {
            return Err(format!("it has {} parameters, but `{}` has {}", f.params.len(), source.name, source.params.len()));
        }
        Ok(())
    }

    fn entries(&mut self, f: &Function, entries: &Entries) -> Result<(), String> {
        let Some(source) = self.program.functions.get(entries.of.0 as usize) else {
            return Err("it has the entries of a function that does not exist".to_string());
        };
        if entries.forward.is_none() && entries.reverse.is_none() {
            return Err("it has neither mode".to_string());
        }
        if entries.wrt.is_empty() || entries.wrt.iter().any(|k| *k >= source.params.len()) {
            return Err(format!("its positions {:?} are no parameters of `{}`", entries.wrt, source.name));
        }
        let extra = match entries.part {
            EntriesPart::Count => 0,
            EntriesPart::Entries | EntriesPart::Stored | EntriesPart::Rows if entries.stack => entries.extra(1),
            EntriesPart::Entries | EntriesPart::Stored => f.params.len().saturating_sub(source.params.len()).max(1),
            EntriesPart::Rows => (f.params.len().saturating_sub(source.params.len()) / 2).max(1) * 2,
        };
        if f.params.len() != source.params.len() + extra {
            return Err(format!("it has {} parameters, but needs {} more than `{}`", f.params.len(), extra, source.name));
        }
        Ok(())
    }

    fn derived(&mut self, f: &Function, mode: Mode, of: FunctionId, wrt: &[usize]) -> Result<(), String> {
        let Some(source) = self.program.functions.get(of.0 as usize) else {
            return Err("it is derived from a function that does not exist".to_string());
        };
        if wrt.is_empty() || !wrt.is_sorted_by(|a, b| a < b) || wrt.iter().any(|k| *k >= source.params.len()) {
            return Err(format!(
                "it is derived with respect to the positions {wrt:?}, which are not ascending parameters of `{}`",
                source.name
            ));
        }
        let extra = match mode {
            Mode::Jvp => wrt.len(),
            Mode::Vjp => 1,
        };
        if f.params.len() != source.params.len() + extra {
            return Err(format!("it has {} parameters, but needs {} more than `{}`", f.params.len(), extra, source.name));
        }
        for k in wrt {
            if !self.ty_of_var(source.params[*k])?.has_float() {
                return Err(format!("parameter {k} of `{}` has no floats to differentiate by", source.name));
            }
        }
        Ok(())
    }

    fn ty_of_var(&self, v: Var) -> Checked {
        if (v.0 as usize) < self.program.vars.count() {
            Ok(self.program.vars.ty(v).clone())
        } else {
            Err(format!("there is no variable {v:?}"))
        }
    }

    fn enter(&mut self, v: Var) -> Result<(), String> {
        self.ty_of_var(v)?;
        if !self.bound.insert(v) {
            return Err(format!("`{}` ({v:?}) is bound twice", self.program.vars.name(v)));
        }
        self.scope.insert(v);
        Ok(())
    }

    /// Binds a variable to something of this type.
    fn bind(&mut self, v: Var, ty: &Type) -> Result<(), String> {
        let own = self.ty_of_var(v)?;
        self.type_in_scope(&own)?;
        self.same(&own, ty, || format!("`{}`", self.program.vars.name(v)))?;
        self.enter(v)
    }
    fn leave(&mut self, vars: &[Var]) {
        vars.iter().for_each(|v| {
            self.scope.remove(v);
        });
    }

    fn size_in_scope(&self, size: &Size) -> Result<(), String> {
        let mut vars = vec![];
        size.variables(&mut vars);
        for v in vars {
            if self.ty_of_var(v)? != Type::I64 {
                return Err(format!(
                    "the size {} mentions `{}`, which is no i64",
                    print_size(self.program, size),
                    self.program.vars.name(v)
                ));
            }
            if !self.scope.contains(&v) {
                let name = self.program.vars.name(v);
                return Err(format!("the size {} mentions `{name}` ({v:?}) out of its scope", print_size(self.program, size)));
            }
        }
        Ok(())
    }
    fn type_in_scope(&self, ty: &Type) -> Result<(), String> {
        match ty {
            Type::Scalar(_) => Ok(()),
            Type::Array(shape, _) if shape.is_empty() => Err("an array type has no axis".to_string()),
            Type::Array(shape, _) => shape.iter().try_for_each(|s| self.size_in_scope(s)),
            Type::Tuple(parts) if parts.len() == 1 => Err("a tuple type has one part".to_string()),
            Type::Tuple(parts) => parts.iter().try_for_each(|t| self.type_in_scope(t)),
        }
    }

    /// With what `let` says in place of variables.
    fn expanded(&self, size: &Size) -> Size {
        size.substitute(&|v| self.values.get(&v).cloned())
    }
    fn expanded_type(&self, ty: &Type) -> Type {
        ty.map_sizes(&mut |s| self.expanded(s))
    }
    fn same(&self, wanted: &Type, found: &Type, what: impl Fn() -> String) -> Result<(), String> {
        let normal = |t: &Type| t.map_sizes(&mut |s| self.expanded(s).axis());
        if normal(wanted) == normal(found) {
            return Ok(());
        }
        let show = |t: &Type| print_type(self.program, t);
        Err(format!("{} should have type {}, but has {}", what(), show(wanted), show(found)))
    }
    fn shown(&self, exp: &Exp) -> String {
        let text = print_exp_untyped(self.program, exp);
        match text.char_indices().nth(300) {
            Some((end, _)) => format!("`{}…`", &text[..end]),
            None => format!("`{text}`"),
        }
    }
    fn needs(&mut self, exp: &Exp, wanted: &Type) -> Result<(), String> {
        let ty = self.exp(exp)?;
        self.same(wanted, &ty, || self.shown(exp))
    }
    fn scalar(&mut self, exp: &Exp) -> Result<Scalar, String> {
        match self.exp(exp)? {
            Type::Scalar(s) => Ok(s),
            other => Err(format!("{} should be a scalar, but has type {}", self.shown(exp), print_type(self.program, &other))),
        }
    }

    fn exp(&mut self, exp: &Exp) -> Checked {
        match exp {
            Exp::Var(v) => {
                let ty = self.ty_of_var(*v)?;
                if !self.scope.contains(v) {
                    return Err(format!("`{}` ({v:?}) is used out of its scope", self.program.vars.name(*v)));
                }
                Ok(ty)
            }
            Exp::Lit(lit) => Ok(Type::Scalar(lit.scalar())),
            Exp::Op(Op::Add, args, _) if args.len() == 2 => {
                let ty = self.exp(&args[0])?;
                self.needs(&args[1], &ty)?;
                if !summable(&ty) {
                    return Err(format!("{} adds values of type {}", self.shown(exp), print_type(self.program, &ty)));
                }
                Ok(ty)
            }
            Exp::Op(op, args, _) => {
                let kinds = args.iter().map(|a| self.scalar(a)).collect::<Result<Vec<_>, _>>()?;
                let result = op.result(&kinds).ok_or_else(|| format!("{} is an operation on {kinds:?}", self.shown(exp)))?;
                Ok(Type::Scalar(result))
            }
            Exp::Partial(op, k, operands) => {
                let kinds = operands.iter().map(|e| self.scalar(e)).collect::<Result<Vec<_>, _>>()?;
                match op.partial_of(*k, &kinds) {
                    Some((result, _)) => Ok(Type::Scalar(result)),
                    None => Err(format!("{} is a partial derivative on {kinds:?}", self.shown(exp))),
                }
            }
            Exp::Index(array, keys, _) => {
                let ty = self.exp(array)?;
                if keys.is_empty() {
                    return Err(format!("{} reads with no index", self.shown(exp)));
                }
                keys.iter().try_for_each(|k| self.needs(k, &Type::I64))?;
                ty.without_axes(keys.len()).ok_or_else(|| format!("{} reads a {}", self.shown(exp), print_type(self.program, &ty)))
            }
            Exp::Singleton(keys, value, _) => {
                if keys.is_empty() {
                    return Err(format!("{} is a singleton without a key", self.shown(exp)));
                }
                for (key, size) in keys {
                    self.needs(key, &Type::I64)?;
                    self.size_in_scope(size)?;
                }
                let ty = self.exp(value)?;
                Ok(keys.iter().rev().fold(ty, |ty, (_, size)| ty.with_axis(size)))
            }
            Exp::For(index, size, body) => {
                self.size_in_scope(size)?;
                self.bind(*index, &Type::I64)?;
                let ty = self.exp(body)?;
                self.leave(&[*index]);
                self.closed(&ty, exp)?;
                Ok(ty.with_axis(size))
            }
            Exp::Sum(range, body) => {
                let ty = self.ranged(exp, range, body)?;
                if !summable(&ty) {
                    return Err(format!("{} sums values of type {}", self.shown(exp), print_type(self.program, &ty)));
                }
                Ok(ty)
            }
            Exp::Reduce(kind, range, body, _) => {
                let ty = self.ranged(exp, range, body)?;
                let number = matches!(ty, Type::Scalar(s) if s.is_number());
                match kind {
                    Reduction::Prod | Reduction::Max | Reduction::Min if number => Ok(ty),
                    Reduction::ArgMax | Reduction::ArgMin if number => Ok(Type::I64),
                    Reduction::Any | Reduction::All if ty == Type::BOOL => Ok(Type::BOOL),
                    _ => Err(format!("{} reduces values of type {}", self.shown(exp), print_type(self.program, &ty))),
                }
            }
            Exp::History(h) => {
                let ty = self.exp(&h.init)?;
                self.size_in_scope(&h.size)?;
                self.bind_pattern(&h.state, &ty, exp)?;
                self.bind(h.index, &Type::I64)?;
                self.needs(&h.body, &ty)?;
                self.leave(&h.state);
                self.leave(&[h.index]);
                self.closed(&ty, exp)?;
                Ok(ty.with_axis(&h.size.add(&Size::constant(1))))
            }
            Exp::Loop(l) => {
                let ty = self.exp(&l.init)?;
                l.annotations.iter().try_for_each(|(_, size)| self.size_in_scope(size))?;
                if let Trip::For(range) = &l.trip {
                    self.needs(&range.lo, &Type::I64)?;
                    self.needs(&range.hi, &Type::I64)?;
                    self.bind(range.index, &Type::I64)?;
                }
                self.bind_pattern(&l.state, &ty, exp)?;
                if let Trip::While(condition) = &l.trip {
                    self.needs(condition, &Type::BOOL)?;
                }
                self.needs(&l.body, &ty)?;
                self.leave(&l.state);
                if let Trip::For(range) = &l.trip {
                    self.leave(&[range.index]);
                }
                self.closed(&ty, exp)?;
                Ok(ty)
            }
            Exp::Update(array, keys, value, _) => {
                let ty = self.exp(array)?;
                keys.iter().try_for_each(|k| self.needs(k, &Type::I64))?;
                match ty.without_axes(keys.len()) {
                    Some(place) if !keys.is_empty() && !matches!(ty, Type::Tuple(_)) => self.needs(value, &place)?,
                    _ => return Err(format!("{} has {} keys for {}", self.shown(exp), keys.len(), print_type(self.program, &ty))),
                };
                Ok(ty)
            }
            Exp::Guard(p, e) => {
                self.needs(p, &Type::BOOL)?;
                self.exp(e)
            }
            Exp::If(p, a, b) => {
                self.needs(p, &Type::BOOL)?;
                let ty = self.exp(a)?;
                self.needs(b, &ty)?;
                Ok(ty)
            }
            Exp::Let(vars, value, body) => {
                let ty = self.exp(value)?;
                self.bind_pattern(vars, &ty, exp)?;
                if let ([v], Some(size), true) = (vars.as_slice(), exp_size(value), ty == Type::I64) {
                    let size = self.expanded(&size);
                    self.values.insert(*v, size);
                }
                let ty = self.exp(body)?;
                let ty = self.expanded_type(&ty);
                self.leave(vars);
                self.closed(&ty, exp)?;
                Ok(ty)
            }
            Exp::Tuple(parts) => {
                if parts.len() == 1 {
                    return Err(format!("{} is a tuple of one part", self.shown(exp)));
                }
                Ok(Type::Tuple(parts.iter().map(|e| self.exp(e)).collect::<Result<_, _>>()?))
            }
            Exp::Array(items) => {
                let Some((first, rest)) = items.split_first() else { return Err("an array literal has no element".to_string()) };
                let ty = self.exp(first)?;
                if matches!(ty, Type::Tuple(_)) {
                    return Err(format!("{} has tuples for elements", self.shown(exp)));
                }
                rest.iter().try_for_each(|e| self.needs(e, &ty))?;
                Ok(ty.with_axis(&Size::constant(items.len() as i64)))
            }
            Exp::Call(id, args, _) => self.call(exp, *id, args),
        }
    }

    fn ranged(&mut self, exp: &Exp, range: &Range, body: &Exp) -> Checked {
        self.needs(&range.lo, &Type::I64)?;
        self.needs(&range.hi, &Type::I64)?;
        self.bind(range.index, &Type::I64)?;
        let ty = self.exp(body)?;
        self.leave(&[range.index]);
        self.closed(&ty, exp)?;
        Ok(ty)
    }

    /// A type that leaves a scope mentions nothing that the scope bound.
    fn closed(&self, ty: &Type, exp: &Exp) -> Result<(), String> {
        self.type_in_scope(ty).map_err(|e| format!("the type of {} leaves a scope: {e}", self.shown(exp)))
    }

    fn bind_pattern(&mut self, vars: &[Var], ty: &Type, exp: &Exp) -> Result<(), String> {
        match (vars, ty) {
            ([v], _) => self.bind(*v, ty),
            (_, Type::Tuple(parts)) if parts.len() == vars.len() => vars.iter().zip(parts).try_for_each(|(v, t)| self.bind(*v, t)),
            _ => Err(format!("{} binds {} variables to a {}", self.shown(exp), vars.len(), print_type(self.program, ty))),
        }
    }

    fn call(&mut self, exp: &Exp, id: FunctionId, args: &[Exp]) -> Checked {
        let types = args.iter().map(|a| self.exp(a)).collect::<Result<Vec<_>, _>>()?;
        let types: Vec<Type> = types.iter().map(|t| self.expanded_type(t)).collect();
        let Some(f) = self.program.functions.get(id.0 as usize) else {
            return Err(format!("a call of function {}, which does not exist", id.0));
        };
        if f.params.len() != args.len() {
            return Err(format!("{} has {} arguments, but `{}` takes {}", self.shown(exp), args.len(), f.name, f.params.len()));
        }
        let bound = bind_sizes(self.program, id, &types, args);
        let instance = |t: &Type| t.map_sizes(&mut |s| s.substitute(&|v| bound.get(&v).cloned()));
        for ((param, ty), arg) in f.params.iter().zip(&types).zip(args) {
            let wanted = instance(&self.ty_of_var(*param)?);
            self.same(&wanted, ty, || self.shown(arg))?;
        }
        let result = instance(&f.result);
        self.closed(&result, exp)?;
        Ok(result)
    }
}

/// Whether values of the type add: no part of it is `bool`.
fn summable(ty: &Type) -> bool {
    match ty {
        Type::Scalar(s) | Type::Array(_, s) => *s != Scalar::Bool,
        Type::Tuple(parts) => parts.iter().all(summable),
    }
}
