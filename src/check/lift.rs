//! Functions that are applied to known types, as functions of the program: what a derivative operator needs.
//!
//! A lambda is closed over: `|x| a * x` in `f` becomes `def f_lambda(a: f64, x: f64) -> f64 = a * x`. What it captures are
//! parameters in front of its own, by which it is not differentiated. Sizes that are axes of the parameters are sizes of
//! the function, other integers parameters.

use super::calls::Arg;
use super::functions::FunctionValue;
use super::scope::Place;
use super::{Checker, Typed};
use crate::diagnostic::Span;
use crate::ir::build::size_exp;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::{Body, Exp, Function, FunctionId, Size, Type, Var};
use rustc_hash::FxHashMap;

impl<'a> Checker<'a> {
    /// The function of the program that a function is for arguments of these types, and what it captures.
    pub fn function_at(&mut self, f: &FunctionValue, types: &[Type], span: Span) -> Option<(FunctionId, Vec<Arg<'static>>)> {
        match f {
            FunctionValue::Function(id) => Some((*id, vec![])),
            FunctionValue::Definition(k) => {
                let variables = self.variables_at(*k, types);
                self.instance(*k, &variables, span).map(|id| (id, vec![]))
            }
            FunctionValue::Derivative(derivative) => self.derivative_at(derivative, types, span),
            FunctionValue::Scalar(_) | FunctionValue::Partial(..) | FunctionValue::Operator(_) | FunctionValue::Lambda(_) => {
                self.lift(f, types, span)
            }
            FunctionValue::Poison => None,
        }
    }

    fn lift(&mut self, f: &FunctionValue, types: &[Type], span: Span) -> Option<(FunctionId, Vec<Arg<'static>>)> {
        let own: Vec<Var> = types
            .iter()
            .enumerate()
            .map(|(k, ty)| {
                let name =
                    self.parameter_name(f, k).unwrap_or_else(|| ["x", "y"].get(k).map_or_else(|| format!("x_{k}"), |n| n.to_string()));
                self.program.vars.fresh(name, ty.clone())
            })
            .collect();
        let args = own.iter().zip(types).map(|(v, ty)| Arg::Found(Typed::new(Exp::Var(*v), ty.clone()), span)).collect();
        // Two definitions may name their lambdas alike.
        let (name, place) = match f {
            FunctionValue::Lambda(closure) => (closure.name.as_deref().unwrap_or("lambda"), closure.span),
            FunctionValue::Scalar(op) => (op.name(), span),
            _ => ("lambda", span),
        };
        let name = format!("{}_{name}", self.inside);
        let text = self.describe_function(f).trim_matches('`').to_string();
        let found = self.scoped(&Place::Body(&text), place, |c| c.apply(f, &text, args, span, None));
        let result = found.ty?;

        // A variable that is a size of others (`let m = n - 1`) is replaced by these.
        let mut with = Substitution::default();
        let mut expand = |c: &Self, v: Var| -> Vec<Var> {
            let size = c.expand(&Size::var(v));
            if size == Size::var(v) {
                return vec![v];
            }
            let mut vars = vec![];
            size.variables(&mut vars);
            with.insert(v, size_exp(&size));
            vars
        };
        let mut pending: Vec<Var> = found.exp.free_vars().into_iter().filter(|v| !own.contains(v)).collect();
        types.iter().chain([&result]).for_each(|ty| type_sizes(ty, &mut pending));
        let mut captured: Vec<Var> = vec![];
        while let Some(v) = pending.pop() {
            for v in expand(self, v) {
                if !captured.contains(&v) && !own.contains(&v) {
                    captured.push(v);
                    type_sizes(self.program.vars.ty(v), &mut pending);
                }
            }
        }
        captured.sort();
        let expanded = |c: &Self, ty: &Type| ty.map_sizes(&mut |s| c.expand(s));
        let mut axes = vec![];
        for v in captured.iter().chain(&own) {
            if let ty @ (Type::Array(..) | Type::Tuple(_)) = &expanded(self, self.program.vars.ty(*v)) {
                lone_axes(ty, &mut axes);
            }
        }
        let (sizes, captured): (Vec<Var>, Vec<Var>) = captured.into_iter().partition(|v| axes.contains(v));
        let sizes: Vec<Var> = axes.into_iter().filter(|v| sizes.contains(v)).collect();

        let mut renamed = FxHashMap::default();
        let mut fresh = |c: &mut Self, v: &Var| {
            let ty = expanded(c, c.program.vars.ty(*v)).map_sizes(&mut |s| rename(s, &renamed));
            let name = c.program.vars.name(*v).to_string();
            let new = c.program.vars.fresh(name, ty);
            renamed.insert(*v, new);
            new
        };
        let new_sizes: Vec<Var> = sizes.iter().map(|v| fresh(self, v)).collect();
        // Integers come first, since the types of the others may mention them.
        let (integers, others): (Vec<Var>, Vec<Var>) = captured.into_iter().partition(|v| *self.program.vars.ty(*v) == Type::I64);
        let captured: Vec<Var> = integers.into_iter().chain(others).collect();
        let params: Vec<Var> = captured.iter().chain(&own).map(|v| fresh(self, v)).collect();
        let with: Substitution = with
            .into_iter()
            .map(|(v, e)| (v, copy(&mut self.program.vars, &e, &substitution(&renamed))))
            .chain(substitution(&renamed))
            .collect();
        let body = copy(&mut self.program.vars, &found.exp, &with);
        let result = expanded(self, &result).map_sizes(&mut |s| rename(s, &renamed));
        let taken = |name: &str| self.functions.contains_key(name) || self.program.find(name).is_some();
        let name = std::iter::once(name.clone()).chain((2..).map(|k| format!("{name}_{k}"))).find(|n| !taken(n))?;
        let id = FunctionId(self.program.functions.len() as u32);
        self.program.functions.push(Function {
            name,
            sizes: new_sizes,
            params,
            result,
            body: Body::Exp(body),
            signature: None,
            hidden: None,
            statics: vec![],
            span: place,
        });
        self.lifted.insert(id, (self.describe_function(f), place));
        let args = captured.iter().map(|v| Arg::Found(Typed::new(Exp::Var(*v), self.program.vars.ty(*v).clone()), span)).collect();
        Some((id, args))
    }
}

fn rename(size: &Size, renamed: &FxHashMap<Var, Var>) -> Size {
    size.substitute(&|v| renamed.get(&v).map(|w| Size::var(*w)))
}

fn substitution(renamed: &FxHashMap<Var, Var>) -> Substitution {
    renamed.iter().map(|(v, w)| (*v, Exp::Var(*w))).collect()
}

/// The variables in the sizes of a type.
fn type_sizes(ty: &Type, out: &mut Vec<Var>) {
    ty.map_sizes(&mut |s| {
        s.variables(out);
        s.clone()
    });
}

/// The axes that are one variable, each once.
fn lone_axes(ty: &Type, out: &mut Vec<Var>) {
    ty.map_sizes(&mut |s| {
        if let Some(v) = s.as_var().filter(|v| !out.contains(v)) {
            out.push(v);
        }
        s.clone()
    });
}
