//! The functions that derivative operators stand for.
//!
//! There are two derived functions that `differentiate` defines, with respect to chosen parameters:
//! `jvp_f(params, tangents) = (f, f' · tangents)` and `vjp_f(params, seed) = (f, seed · f')`. All other operators are
//! functions in terms of these, so they are ordinary functions that can be printed, called and differentiated:
//!
//! * `grad_f = let (value, adj) = vjp_f(x, 1.0); adj`, `value_and_grad_f = vjp_f(x, 1.0)`
//! * `jacfwd_f`: column `k` of the Jacobian is the tangent for the direction `{k -> 1.0}`
//! * `jacrev_f`: row `o` of the Jacobian is the adjoint for the seed `{o -> 1.0}`
//! * `jacobian_f`: the cheaper of these two, which `pipeline` finds
//! * `hessian_f`: the forward Jacobian of `grad_f`; `hvp_f`: the tangent of `jvp` of `grad_f`
//!
//! A Jacobian has the result's axes first and the parameter's last. Where the result is a tuple it is a tuple over the
//! result's parts, each of them a tuple over the parameters if there are several.

use super::erase::{erase, restore};
use super::operators::index_name;
use super::sparse::Storage;
use crate::diagnostic::Diagnostic;
use crate::ir::build::{bool, convert, float, for_, guard, index, let_, lets, singleton, tuple, tuple_type, type_of, zero};
use crate::ir::{Body, Exp, Function, FunctionId, Mode, Program, Scalar, Site, Size, Type, Var};
use rustc_hash::{FxHashMap, FxHashSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DerivativeKind {
    Grad,
    ValueAndGrad,
    Jvp,
    Vjp,
    /// The cheaper of the two below.
    Jacobian,
    JacFwd,
    JacRev,
    Hessian,
    Hvp,
}

impl DerivativeKind {
    pub fn name(self) -> &'static str {
        match self {
            DerivativeKind::Grad => "grad",
            DerivativeKind::ValueAndGrad => "value_and_grad",
            DerivativeKind::Jvp => "jvp",
            DerivativeKind::Vjp => "vjp",
            DerivativeKind::Jacobian => "jacobian",
            DerivativeKind::JacFwd => "jacfwd",
            DerivativeKind::JacRev => "jacrev",
            DerivativeKind::Hessian => "hessian",
            DerivativeKind::Hvp => "hvp",
        }
    }
}

/// Functions made before: of which function, which derivative, with respect to what, dense or how it is stored.
pub type Memo = FxHashMap<(FunctionId, DerivativeKind, Vec<usize>, Option<Storage>), FunctionId>;

/// The positions of the parameters that have tangents.
pub fn float_params(program: &Program, f: FunctionId) -> Vec<usize> {
    let params = &program.function(f).params;
    (0..params.len()).filter(|k| program.vars.ty(params[*k]).has_float()).collect()
}

/// Appends the function that computes a derivative of `f` with respect to the named parameters (all float ones if none
/// are named), and what it needs. Its parameters are those of `f`; then for `jvp` and `hvp` a tangent for each of
/// `wrt`, for `vjp` a seed. Gradients are a tuple over `wrt`, bare if it is one parameter.
pub fn derive(program: &mut Program, f: FunctionId, kind: DerivativeKind, wrt: Option<&[String]>) -> Result<FunctionId, Diagnostic> {
    derive_stored(program, f, kind, wrt, None)
}

/// The same; a Jacobian or Hessian as sparse matrices, where it is said how they are stored.
pub fn derive_stored(
    program: &mut Program,
    f: FunctionId,
    kind: DerivativeKind,
    wrt: Option<&[String]>,
    storage: Option<Storage>,
) -> Result<FunctionId, Diagnostic> {
    let wrt = with_respect_to(program, f, 0, wrt)?;
    let first = program.functions.len();
    restore(program);
    let mut memo = Memo::default();
    let mut deriving = Deriving { program: &mut *program, memo: &mut memo };
    let made = match storage {
        Some(storage) => deriving.derive_sparse(f, kind, &wrt, storage),
        None => deriving.derive(f, kind, &wrt),
    };
    erase(program, first, &FxHashSet::default());
    made
}

/// Appends the Jacobian of `f` in one mode; to a program that is checked and erased.
pub fn dense_jacobian(program: &mut Program, f: FunctionId, mode: Mode, wrt: &[usize]) -> FunctionId {
    let mut memo = Memo::default();
    let mut deriving = Deriving { program, memo: &mut memo };
    match mode {
        Mode::Jvp => deriving.forward_jacobian(f, wrt, deriving.name("jacfwd", f, wrt)),
        Mode::Vjp => deriving.reverse_jacobian(f, wrt),
    }
}

/// The positions of the parameters named, in the order they are named. The first `captured` parameters are what the
/// function took from around it, and are constants.
pub fn with_respect_to(program: &Program, f: FunctionId, captured: usize, names: Option<&[String]>) -> Result<Vec<usize>, Diagnostic> {
    let function = program.function(f);
    let floats: Vec<usize> = float_params(program, f).into_iter().filter(|k| *k >= captured).collect();
    let Some(names) = names else {
        return if floats.is_empty() {
            Err(Diagnostic::error(function.span, format!("`{}` has no float parameter to differentiate by", function.name)))
        } else {
            Ok(floats)
        };
    };
    let mut wrt = vec![];
    for name in names {
        let own = function.params.iter().enumerate().skip(captured);
        let Some((k, _)) = own.into_iter().find(|(_, p)| program.vars.name(**p) == name) else {
            let known: Vec<String> = floats.iter().map(|k| format!("`{}`", program.vars.name(function.params[*k]))).collect();
            let diagnostic = Diagnostic::error(function.span, format!("`{}` has no parameter `{name}`", function.name));
            return Err(if known.is_empty() {
                diagnostic
            } else {
                diagnostic.note(format!("its float parameters are {}", known.join(", ")))
            });
        };
        if !floats.contains(&k) {
            let ty = describe(program, program.vars.ty(function.params[k]));
            return Err(Diagnostic::error(
                function.span,
                format!("`{name}` of `{}` has type `{ty}`, which has no derivative", function.name),
            )
            .note("only floats are differentiated by"));
        }
        if wrt.contains(&k) {
            return Err(Diagnostic::error(function.span, format!("`{name}` is named twice in `wrt`")));
        }
        wrt.push(k);
    }
    if wrt.is_empty() { Err(Diagnostic::error(function.span, "`wrt` names no parameter")) } else { Ok(wrt) }
}

fn describe(program: &Program, ty: &Type) -> String {
    ty.describe(&|v| program.vars.name(v).to_string())
}

pub struct Deriving<'p> {
    pub program: &'p mut Program,
    pub memo: &'p mut Memo,
}

/// A copy of a function's sizes and parameters.
pub struct Header {
    pub sizes: Vec<Var>,
    pub params: Vec<Var>,
    renamed: FxHashMap<Var, Var>,
}

impl Header {
    pub fn rename(&self, ty: &Type) -> Type {
        ty.map_sizes(&mut |s| s.substitute(&|v| self.renamed.get(&v).map(|w| Size::var(*w))))
    }
    pub fn args(&self) -> Vec<Exp> {
        self.params.iter().map(|v| Exp::Var(*v)).collect()
    }
}

impl Deriving<'_> {
    pub fn derive(&mut self, f: FunctionId, kind: DerivativeKind, wrt: &[usize]) -> Result<FunctionId, Diagnostic> {
        let key = (f, kind, wrt.to_vec(), None);
        if let Some(id) = self.memo.get(&key) {
            return Ok(*id);
        }
        self.require_derivative(f, kind)?;
        let id = match kind {
            DerivativeKind::Grad => self.grad(f, wrt),
            DerivativeKind::ValueAndGrad => self.value_and_grad(f, wrt),
            DerivativeKind::Jvp => self.jvp(f, wrt),
            DerivativeKind::Vjp => self.vjp(f, wrt),
            DerivativeKind::Jacobian => match self.result_tangent(f) {
                Type::Scalar(_) => self.derive(f, DerivativeKind::JacRev, wrt)?,
                Type::Array(..) | Type::Tuple(_) => self.jacobian(f, wrt),
            },
            DerivativeKind::JacFwd => self.forward_jacobian(f, wrt, self.name("jacfwd", f, wrt)),
            DerivativeKind::JacRev => self.reverse_jacobian(f, wrt),
            DerivativeKind::Hessian => {
                let grad = self.derive(f, DerivativeKind::Grad, wrt)?;
                self.forward_jacobian(grad, wrt, self.name("hessian", f, wrt))
            }
            DerivativeKind::Hvp => {
                let grad = self.derive(f, DerivativeKind::Grad, wrt)?;
                let jvp = self.derive(grad, DerivativeKind::Jvp, wrt)?;
                self.second_part(jvp, self.name("hvp", f, wrt), "tangent")
            }
        };
        self.memo.insert(key, id);
        Ok(id)
    }

    /// Whether the result of `f` is one that the operator takes.
    pub(super) fn require_derivative(&self, f: FunctionId, kind: DerivativeKind) -> Result<(), Diagnostic> {
        let function = self.program.function(f);
        let result = describe(self.program, &function.result);
        let (name, operator) = (&function.name, kind.name());
        if !function.result.has_float() {
            return Err(Diagnostic::error(function.span, format!("`{name}` gives `{result}`, which has no derivative"))
                .note("only floats are differentiated"));
        }
        let scalar = match kind {
            DerivativeKind::Grad | DerivativeKind::ValueAndGrad | DerivativeKind::Hessian | DerivativeKind::Hvp => true,
            DerivativeKind::Jvp | DerivativeKind::Vjp | DerivativeKind::Jacobian | DerivativeKind::JacFwd | DerivativeKind::JacRev => false,
        };
        if scalar && !matches!(function.result, Type::Scalar(_)) {
            let text = format!("`{operator}` takes a function that gives one float, but `{name}` gives `{result}`");
            return Err(Diagnostic::error(function.span, text)
                .note(format!("use `jacobian({name})` for all derivatives of all results, or `vjp` for a combination of them")));
        }
        Ok(())
    }

    pub(super) fn header(&mut self, f: FunctionId) -> Header {
        let Function { sizes, params, .. } = self.program.function(f).clone();
        let vars = &mut self.program.vars;
        let mut renamed = FxHashMap::default();
        let mut copy = |old: &[Var], renamed: &mut FxHashMap<Var, Var>| -> Vec<Var> {
            let fresh = |v: &Var| {
                let (name, ty) = (vars.name(*v).to_string(), vars.ty(*v).clone());
                let new = vars.fresh(name, ty);
                renamed.insert(*v, new);
                new
            };
            old.iter().map(fresh).collect()
        };
        let header = Header { sizes: copy(&sizes, &mut renamed), params: copy(&params, &mut renamed), renamed };
        for v in &header.params {
            let ty = header.rename(self.program.vars.ty(*v));
            self.program.vars.set_ty(*v, ty);
        }
        header
    }

    /// `grad_f`, or `grad_f_wrt_x` where it is not by all float parameters.
    pub(super) fn name(&self, operator: &str, f: FunctionId, wrt: &[usize]) -> String {
        let function = self.program.function(f);
        // Of a given derivative, whose name is two words, one.
        let mut name = format!("{operator}_{}", function.name.replace(' ', "_"));
        if wrt != float_params(self.program, f) {
            name += "_wrt";
            wrt.iter().for_each(|k| name += &format!("_{}", self.program.vars.name(function.params[*k])));
        }
        name
    }

    pub(super) fn add(&mut self, name: String, sizes: Vec<Var>, params: Vec<Var>, result: Type, body: Body, of: FunctionId) -> FunctionId {
        let mut unique = name.clone();
        let mut number = 2;
        while self.program.find(&unique).is_some() {
            unique = format!("{name}_{number}");
            number += 1;
        }
        // The parameters of `of` come first in what is made of it.
        let Function { span, hidden, ref statics, .. } = *self.program.function(of);
        let statics = statics.clone();
        self.program.functions.push(Function { name: unique, sizes, params, result, body, signature: None, hidden, statics, span });
        FunctionId(self.program.functions.len() as u32 - 1)
    }

    /// A function of the header's parameters.
    fn define(&mut self, name: String, header: Header, body: Exp, of: FunctionId) -> FunctionId {
        let result = type_of(self.program, &body);
        self.add(name, header.sizes, header.params, result, Body::Exp(body), of)
    }

    pub(super) fn tangent_types(&self, f: FunctionId, wrt: &[usize]) -> Vec<Type> {
        let params = &self.program.function(f).params;
        wrt.iter().filter_map(|k| self.program.vars.ty(params[*k]).tangent()).collect()
    }

    pub(super) fn result_tangent(&self, f: FunctionId) -> Type {
        self.program.function(f).result.tangent().unwrap_or(Type::tuple(vec![]))
    }

    /// A function for `differentiate` to define; `wrt` ascending.
    pub fn derived(&mut self, f: FunctionId, mode: Mode, wrt: &[usize]) -> FunctionId {
        let wanted = Body::Derived { mode, of: f, wrt: wrt.to_vec() };
        if let Some(k) = self.program.functions.iter().position(|g| g.body == wanted) {
            return FunctionId(k as u32);
        }
        let operator = match mode {
            Mode::Jvp => "jvp",
            Mode::Vjp => "vjp",
        };
        let name = self.name(operator, f, wrt);
        let mut header = self.header(f);
        let value = header.rename(&self.program.function(f).result.clone());
        let tangents: Vec<Type> = self.tangent_types(f, wrt).iter().map(|t| header.rename(t)).collect();
        let result_tangent = header.rename(&self.result_tangent(f));
        let second = match mode {
            Mode::Jvp => {
                for (k, ty) in wrt.iter().zip(tangents) {
                    let name = format!("{}_tan", self.program.vars.name(header.params[*k]));
                    let var = self.program.vars.fresh(name, ty);
                    header.params.push(var);
                }
                result_tangent
            }
            Mode::Vjp => {
                let seed = self.program.vars.fresh("seed", result_tangent);
                header.params.push(seed);
                tuple_type(tangents)
            }
        };
        self.add(name, header.sizes, header.params, Type::tuple(vec![value, second]), wanted, f)
    }

    /// `jvp_f`; where `wrt` is not ascending, a function that takes the tangents in its order.
    fn jvp(&mut self, f: FunctionId, wrt: &[usize]) -> FunctionId {
        let sorted = sorted(wrt);
        let derived = self.derived(f, Mode::Jvp, &sorted);
        if sorted == wrt {
            return derived;
        }
        let mut header = self.header(derived);
        let mut args = header.args();
        let first = args.len() - wrt.len();
        let tangents = header.params.split_off(first);
        header.params.extend(wrt.iter().map(|k| tangents[sorted.iter().position(|s| s == k).unwrap_or(0)]));
        args.truncate(first);
        args.extend(tangents.into_iter().map(Exp::Var));
        let name = self.name("jvp", f, wrt);
        self.define(name, header, Exp::Call(derived, args, Site::default()), f)
    }

    fn vjp(&mut self, f: FunctionId, wrt: &[usize]) -> FunctionId {
        let sorted = sorted(wrt);
        let derived = self.derived(f, Mode::Vjp, &sorted);
        if sorted == wrt {
            return derived;
        }
        let header = self.header(derived);
        let (value, body) = self.adjoints(derived, header.args(), wrt);
        let body = body(Exp::Var(value));
        let name = self.name("vjp", f, wrt);
        self.define(name, header, body, f)
    }

    /// A call of `vjp_f` taken apart: the variable of the value, and the whole as a function of what to put before the
    /// adjoints (in the order of `wrt`).
    fn adjoints(&mut self, derived: FunctionId, args: Vec<Exp>, wrt: &[usize]) -> (Var, impl FnOnce(Exp) -> Exp + use<>) {
        let call = Exp::Call(derived, args, Site::default());
        let (value, adjoints) = self.two_parts(&call, "value", "adjoints");
        let (bindings, ordered) = self.in_order(adjoints, wrt);
        (value, move |first| let_(vec![value, adjoints], call, lets(bindings, Exp::Tuple(vec![first, ordered]))))
    }

    /// Variables for the two parts of a call's result.
    fn two_parts(&mut self, call: &Exp, first: &str, second: &str) -> (Var, Var) {
        let Type::Tuple(parts) = type_of(self.program, call) else { unreachable!("derived functions give pairs") };
        (self.program.vars.fresh(first, parts[0].clone()), self.program.vars.fresh(second, parts[1].clone()))
    }

    /// The adjoints of ascending parameters in the order of `wrt`.
    fn in_order(&mut self, adjoints: Var, wrt: &[usize]) -> (Vec<(Vec<Var>, Exp)>, Exp) {
        let sorted = sorted(wrt);
        let Type::Tuple(types) = self.program.vars.ty(adjoints).clone() else { return (vec![], Exp::Var(adjoints)) };
        if sorted == wrt {
            return (vec![], Exp::Var(adjoints));
        }
        let parts: Vec<Var> = types.iter().map(|t| self.program.vars.fresh("adjoint", t.clone())).collect();
        let ordered = wrt.iter().map(|k| Exp::Var(parts[sorted.iter().position(|s| s == k).unwrap_or(0)])).collect();
        (vec![(parts, Exp::Var(adjoints))], Exp::Tuple(ordered))
    }

    fn grad(&mut self, f: FunctionId, wrt: &[usize]) -> FunctionId {
        let derived = self.derived(f, Mode::Vjp, &sorted(wrt));
        let header = self.header(f);
        let call = Exp::Call(derived, self.with_one(header.args(), f), Site::default());
        let (value, adjoints) = self.two_parts(&call, "value", "gradient");
        let (bindings, ordered) = self.in_order(adjoints, wrt);
        let body = let_(vec![value, adjoints], call, lets(bindings, ordered));
        let name = self.name("grad", f, wrt);
        self.define(name, header, body, f)
    }

    fn value_and_grad(&mut self, f: FunctionId, wrt: &[usize]) -> FunctionId {
        let derived = self.vjp(f, wrt);
        let header = self.header(f);
        let body = Exp::Call(derived, self.with_one(header.args(), f), Site::default());
        let name = self.name("value_and_grad", f, wrt);
        self.define(name, header, body, f)
    }

    /// The arguments with the seed 1 behind them, for a function that gives one float.
    fn with_one(&self, mut args: Vec<Exp>, f: FunctionId) -> Vec<Exp> {
        let scalar = self.program.function(f).result.scalar().expect("the result is a scalar");
        args.push(float(scalar, 1.0));
        args
    }

    /// The second part of what a function gives, as a function.
    fn second_part(&mut self, of: FunctionId, name: String, part: &str) -> FunctionId {
        let header = self.header(of);
        let call = Exp::Call(of, header.args(), Site::default());
        let (value, second) = self.two_parts(&call, "value", part);
        self.define(name, header, let_(vec![value, second], call, second), of)
    }

    /// A function for `pipeline` to define.
    fn jacobian(&mut self, f: FunctionId, wrt: &[usize]) -> FunctionId {
        let header = self.header(f);
        let result = header.rename(&self.result_tangent(f));
        let params: Vec<Type> = wrt.iter().map(|k| header.rename(&self.tangent_types(f, &[*k])[0])).collect();
        let ty = jacobian_type(&result, &params);
        let name = self.name("jacobian", f, wrt);
        self.add(name, header.sizes, header.params, ty, Body::Jacobian { of: f, wrt: wrt.to_vec() }, f)
    }

    fn forward_jacobian(&mut self, f: FunctionId, wrt: &[usize], name: String) -> FunctionId {
        let header = self.header(f);
        let result = header.rename(&self.result_tangent(f));
        let mut bindings = vec![];
        // For each parameter, for each of its arrays: the variables of the result's arrays, the parameter's axes in front.
        let mut columns: Vec<(Type, Vec<(Vec<Size>, Vec<Var>)>)> = vec![];
        for k in wrt {
            let derived = self.derived(f, Mode::Jvp, &[*k]);
            let param = header.rename(&self.tangent_types(f, &[*k])[0]);
            let leaves = leaves(&param);
            let mut by_leaf = vec![];
            for (at, shape) in leaves.iter().enumerate() {
                let column = self.one_hot_runs(&header, derived, &param, at, shape, "tangent", &|_, tangent| (vec![], Exp::Var(tangent)));
                let ty = type_of(self.program, &column);
                let var = self.program.vars.fresh(format!("{}_columns", self.program.vars.name(header.params[*k])), ty.clone());
                bindings.push((vec![var], column));
                by_leaf.push((shape.clone(), self.take_apart(var, &ty, &mut bindings)));
            }
            columns.push((param, by_leaf));
        }
        let mut next = 0;
        let body = self.rows_from_columns(&result, &columns, &mut next);
        let body = match (bindings.as_slice(), &body) {
            ([(vars, _)], Exp::Var(v)) if *vars == [*v] => bindings.remove(0).1,
            _ => lets(bindings, body),
        };
        let params: Vec<Type> = columns.into_iter().map(|(param, _)| param).collect();
        let ty = jacobian_type(&result, &params);
        self.add(name, header.sizes, header.params, ty, Body::Exp(body), f)
    }

    /// `for k. let (value, part) = derived(args, {k -> 1.0}); finish(part)`, the seed one-hot in array `at` of its type.
    #[allow(clippy::too_many_arguments)]
    fn one_hot_runs(
        &mut self,
        header: &Header,
        derived: FunctionId,
        seed: &Type,
        at: usize,
        shape: &[Size],
        part: &str,
        finish: &dyn Fn(&mut Self, Var) -> (Vec<(Vec<Var>, Exp)>, Exp),
    ) -> Exp {
        let indices: Vec<Var> = (0..shape.len()).map(|k| self.program.vars.fresh(index_name(k), Type::I64)).collect();
        let keys = indices.iter().map(|v| Exp::Var(*v)).zip(shape.iter().cloned()).collect();
        let mut hot = Some(singleton(keys, float(leaf_scalars(seed)[at], 1.0), Site::default()));
        let seed = self.with_leaf(seed, at, &mut 0, &mut hot);
        let mut args = header.args();
        args.push(seed);
        let call = Exp::Call(derived, args, Site::default());
        let (value, second) = self.two_parts(&call, "value", part);
        let (bindings, last) = finish(self, second);
        let run = let_(vec![value, second], call, lets(bindings, last));
        indices.into_iter().zip(shape).rev().fold(run, |body, (v, size)| for_(v, size.clone(), body))
    }

    /// A value of a tangent type that is zero but for its array number `at`.
    fn with_leaf(&mut self, ty: &Type, at: usize, next: &mut usize, hot: &mut Option<Exp>) -> Exp {
        match ty {
            Type::Tuple(parts) => Exp::Tuple(parts.iter().map(|t| self.with_leaf(t, at, next, hot)).collect()),
            Type::Scalar(_) | Type::Array(..) => {
                let here = *next == at;
                *next += 1;
                match hot.take_if(|_| here) {
                    Some(hot) => hot,
                    // Nothing, with which products vanish.
                    None => guard(bool(false), zero(&mut self.program.vars, ty)),
                }
            }
        }
    }

    /// The variables of the arrays in a value, in order.
    fn take_apart(&mut self, var: Var, ty: &Type, bindings: &mut Vec<(Vec<Var>, Exp)>) -> Vec<Var> {
        let Type::Tuple(parts) = ty else { return vec![var] };
        let vars: Vec<Var> = parts.iter().map(|t| self.program.vars.fresh("part", t.clone())).collect();
        bindings.push((vars.clone(), Exp::Var(var)));
        vars.into_iter().zip(parts).flat_map(|(v, t)| self.take_apart(v, t, bindings)).collect()
    }

    /// The Jacobian in the order of the result's parts, then of the parameters.
    fn rows_from_columns(&mut self, result: &Type, columns: &[(Type, Vec<(Vec<Size>, Vec<Var>)>)], next: &mut usize) -> Exp {
        match result {
            Type::Tuple(parts) => Exp::Tuple(parts.iter().map(|t| self.rows_from_columns(t, columns, next)).collect()),
            Type::Scalar(_) | Type::Array(..) => {
                let row = *next;
                *next += 1;
                let parts = columns
                    .iter()
                    .map(|(param, by_leaf)| {
                        let mut leaf = 0;
                        self.like(param, &mut |d, part| {
                            let (shape, rows) = &by_leaf[leaf];
                            leaf += 1;
                            d.transposed(rows[row], shape, result.shape(), part.scalar())
                        })
                    })
                    .collect();
                tuple(parts)
            }
        }
    }

    /// An expression for each array of a type, in tuples like the type's.
    fn like(&mut self, ty: &Type, f: &mut dyn FnMut(&mut Self, &Type) -> Exp) -> Exp {
        match ty {
            Type::Tuple(parts) => Exp::Tuple(parts.iter().map(|t| self.like(t, f)).collect()),
            Type::Scalar(_) | Type::Array(..) => f(self, ty),
        }
    }

    /// `for rows, columns. a[columns, rows]`, in the parameter's kind of floats, as reverse mode has it.
    fn transposed(&mut self, a: Var, columns: &[Size], rows: &[Size], wanted: Option<Scalar>) -> Exp {
        let own = self.program.vars.ty(a).scalar();
        let (own, wanted) = own.zip(wanted).unwrap_or((Scalar::F64, Scalar::F64));
        if (columns.is_empty() || rows.is_empty()) && own == wanted {
            return Exp::Var(a);
        }
        let mut fresh = |k: usize| self.program.vars.fresh(index_name(k), Type::I64);
        let outer: Vec<Var> = (0..rows.len()).map(&mut fresh).collect();
        let inner: Vec<Var> = (rows.len()..rows.len() + columns.len()).map(&mut fresh).collect();
        let keys: Vec<Exp> = inner.iter().chain(&outer).map(|v| Exp::Var(*v)).collect();
        let loops = outer.into_iter().zip(rows).chain(inner.into_iter().zip(columns));
        let read = if keys.is_empty() { Exp::Var(a) } else { index(a, keys, Site::default()) };
        loops.rev().fold(convert(read, own, wanted), |body, (v, size)| for_(v, size.clone(), body))
    }

    fn reverse_jacobian(&mut self, f: FunctionId, wrt: &[usize]) -> FunctionId {
        let derived = self.derived(f, Mode::Vjp, &sorted(wrt));
        let header = self.header(f);
        let result = header.rename(&self.result_tangent(f));
        let shapes = leaves(&result);
        let mut at = 0;
        let body = self.like(&result, &mut |d, _| {
            let row = d.one_hot_runs(&header, derived, &result, at, &shapes[at], "adjoints", &|d, adjoints| d.in_order(adjoints, wrt));
            at += 1;
            row
        });
        let params: Vec<Type> = wrt.iter().map(|k| header.rename(&self.tangent_types(f, &[*k])[0])).collect();
        let ty = jacobian_type(&result, &params);
        let name = self.name("jacrev", f, wrt);
        self.add(name, header.sizes, header.params, ty, Body::Exp(body), f)
    }
}

pub fn sorted(wrt: &[usize]) -> Vec<usize> {
    let mut sorted = wrt.to_vec();
    sorted.sort();
    sorted
}

/// The types of the numbers in a type's arrays (and scalars), in order.
pub fn leaf_scalars(ty: &Type) -> Vec<Scalar> {
    match ty {
        Type::Tuple(parts) => parts.iter().flat_map(leaf_scalars).collect(),
        Type::Scalar(s) | Type::Array(_, s) => vec![*s],
    }
}

/// The type of a Jacobian: the structure of the result, in it that of the parameters, at last the axes of both.
fn jacobian_type(result: &Type, params: &[Type]) -> Type {
    fn under(param: &Type, axes: &[Size]) -> Type {
        match param {
            Type::Tuple(parts) => Type::Tuple(parts.map(|t| under(t, axes))),
            Type::Scalar(_) | Type::Array(..) => axes.iter().rev().fold(param.clone(), |ty, size| ty.with_axis(size)),
        }
    }
    match result {
        // The rows of a matrix of which a part is stored are its stored places.
        Type::Tuple(parts) if parts.structure().is_some() => jacobian_type(&parts[0], params),
        Type::Tuple(parts) => Type::Tuple(parts.map(|t| jacobian_type(t, params))),
        Type::Scalar(_) | Type::Array(..) => tuple_type(params.iter().map(|p| under(p, result.shape())).collect()),
    }
}

/// The shapes of the arrays (and scalars) in a type, in order.
pub fn leaves(ty: &Type) -> Vec<Vec<Size>> {
    match ty {
        Type::Tuple(parts) => parts.iter().flat_map(leaves).collect(),
        Type::Scalar(_) | Type::Array(..) => vec![ty.shape().to_vec()],
    }
}
