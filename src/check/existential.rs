//! Sizes of results that depend on data: `def positive(x: [n]f64) -> [?m]f64`.
//!
//! Such a definition is two functions: one that computes the sizes from the parameters, and one that computes the result
//! from the parameters and the sizes, which then are sizes like others.
//!
//! ```text
//! def positive_size(x: [n]f64) -> i64
//! def positive(x: [n]f64, m: i64) -> [m]f64
//! ```
//!
//! A call is `let m = positive_size(x); positive(x, m)`, where the binding floats to the nearest scope, so that what is
//! called has a size there. Whoever calls from outside does the same (`Function::hidden`).
//! The sizes are the variables bound in the body that the type of the result mentions.

use super::calls::bind;
use super::subscripts::UNKNOWN;
use super::{Checker, Typed};
use crate::diagnostic::{Diagnostic, Span};
use crate::ir::build::{lets, size_exp, tuple, tuple_type};
use crate::ir::traverse::{Substitution, copy, substitute};
use crate::ir::{Body, Exp, Function, FunctionId, Hidden, Size, Type, Var};
use crate::syntax::ast::{self, ExpKind, TypeExp, TypeKind};
use rustc_hash::FxHashMap;

use super::scope::Binding;

impl<'a> Checker<'a> {
    /// The result of a definition with sizes that its body gives. What they are bound to floats.
    pub fn open_result(&mut self, definition: &ast::Definition, written: &TypeExp) -> Typed {
        let names = self.scope.len();
        let Some((want, open)) = self.open_type(written) else {
            self.infer(&definition.body, None);
            return Typed::poison();
        };
        self.scope.truncate(names);
        let unknown = |v: Var| open.contains(&v).then(|| Size::var(UNKNOWN));
        let hint = want.map_sizes(&mut |s| s.substitute(&unknown));
        let found = self.infer(&definition.body, Some(&hint));
        let Some(ty) = &found.ty else { return found };
        let mut given: FxHashMap<Var, Size> = FxHashMap::default();
        let mut conflict = None;
        bind(&open, &want, ty, &mut |v, size| {
            let first = given.entry(v).or_insert_with(|| size.clone()).clone();
            if !self.same_size(&first, size) {
                conflict = Some((v, first, size.clone()));
            }
        });
        if let Some((v, first, other)) = conflict {
            let (name, first, other) = (self.program.vars.name(v), self.describe_size(&first), self.describe_size(&other));
            let text = format!("`{name}` is one size, but this has type `{}`", self.describe(ty));
            let note = match first == other {
                true => format!("these are two different sizes that are both named `{first}`; bind each with `let`"),
                false => format!("the sizes `{first}` and `{other}` are not known to be equal"),
            };
            self.report(Diagnostic::error(definition.body.span, text).label(written.span, "the type of the result").note(note));
            return Typed::poison();
        }
        let want = want.map_sizes(&mut |s| s.substitute(&|v| given.get(&v).cloned()));
        let agrees = self.require(&found, &want, definition.body.span, |c, d| {
            d.label(written.span, format!("`{}` is declared to give `{}`", definition.name.text, c.describe(&want)))
        });
        if agrees { found } else { Typed::poison() }
    }

    /// The type that is written, and variables for the sizes it leaves open.
    fn open_type(&mut self, written: &TypeExp) -> Option<(Type, Vec<Var>)> {
        let mut names = vec![];
        open_sizes(written, &mut names);
        let mut open = vec![];
        for (name, span) in names {
            match self.lookup(&name) {
                Some(Binding::Var(v)) if open.contains(&v) => {}
                Some(_) => {
                    self.report(
                        Diagnostic::error(span, format!("`{name}` is known already, so `?{name}` cannot stand for a new size"))
                            .note(format!("write `{name}` for the size that it is, or choose another name")),
                    );
                    return None;
                }
                None => {
                    let v = self.program.vars.fresh(format!("?{name}"), Type::I64);
                    self.bind_name(&name, Binding::Var(v));
                    open.push(v);
                }
            }
        }
        self.open_sizes = open.clone();
        let ty = self.read_type(written);
        self.open_sizes.clear();
        ty.map(|ty| (ty, open))
    }

    /// The size that `?m` stands for, where one may stand.
    pub fn open_size(&mut self, name: &str, span: Span) -> Option<Size> {
        match self.lookup(name) {
            Some(Binding::Var(v)) if self.open_sizes.contains(&v) => Some(Size::var(v)),
            _ => {
                self.report(
                    Diagnostic::error(span, format!("`?{name}` stands in the result of a definition alone"))
                        .note("there it is a size that the definition computes: `def f(x: [n]f64) -> [?m]f64 = e`"),
                );
                None
            }
        }
    }

    /// Checks the body of a definition with open sizes, and makes its two functions.
    pub fn open_body(&mut self, id: FunctionId, definition: &ast::Definition, written: &TypeExp, taken_apart: Vec<(Vec<Var>, Exp)>) {
        let found = self.open_result(definition, written);
        let mut bindings = taken_apart;
        bindings.append(&mut self.floating);
        let Some(ty) = found.ty else { return };
        // A size that is made of others (`let high = n - low`) is written as these, in the type and in the body.
        let mut with = Substitution::default();
        ty.map_sizes(&mut |s| {
            let mut vars = vec![];
            s.variables(&mut vars);
            with.extend(vars.into_iter().filter_map(|v| {
                let size = self.expand(&Size::var(v));
                (size != Size::var(v)).then(|| (v, size_exp(&size)))
            }));
            s.clone()
        });
        let ty = ty.map_sizes(&mut |s| self.expand(s));
        let exp = substitute(&mut self.program.vars, found.exp, &with);
        let Function { sizes, params, .. } = self.program.function(id).clone();
        let mut leaked: Vec<Var> = vec![];
        ty.map_sizes(&mut |s| {
            let mut vars = vec![];
            s.variables(&mut vars);
            for v in vars {
                if !sizes.contains(&v) && !params.contains(&v) && !leaked.contains(&v) {
                    leaked.push(v);
                }
            }
            s.clone()
        });
        self.unknown_results.remove(&id);
        let at = params.len();
        let mut all = params.clone();
        if !leaked.is_empty() {
            let whole = lets(bindings.clone(), tuple(leaked.iter().map(|v| Exp::Var(*v)).collect()));
            let size_function = self.size_function(id, &leaked, &whole);
            let hidden = Hidden { at, count: leaked.len(), sizes: size_function };
            self.program.functions[id.0 as usize].hidden = Some(hidden);
            // The sizes are given, so they are not bound; what is bound beside them still is.
            for (vars, _) in &mut bindings {
                if vars.len() > 1 {
                    for v in vars.iter_mut().filter(|v| leaked.contains(v)) {
                        let (name, ty) = (self.program.vars.name(*v).to_string(), self.program.vars.ty(*v).clone());
                        *v = self.program.vars.fresh(name, ty);
                    }
                }
            }
            bindings.retain(|(vars, _)| !matches!(vars.as_slice(), [v] if leaked.contains(v)));
            all.extend(leaked);
        }
        let f = &mut self.program.functions[id.0 as usize];
        f.params = all;
        f.result = ty;
        f.body = Body::Exp(lets(bindings, exp));
    }

    /// The function that computes the sizes, with sizes and parameters of its own.
    fn size_function(&mut self, of: FunctionId, leaked: &[Var], whole: &Exp) -> FunctionId {
        let Function { name, sizes, params, span, .. } = self.program.function(of).clone();
        let mut with = Substitution::default();
        let mut renamed: FxHashMap<Var, Var> = FxHashMap::default();
        let mut fresh = |c: &mut Self, v: &Var| {
            let ty = c.program.vars.ty(*v).map_sizes(&mut |s| s.substitute(&|v| renamed.get(&v).map(|w| Size::var(*w))));
            let name = c.program.vars.name(*v).to_string();
            let new = c.program.vars.fresh(name, ty);
            renamed.insert(*v, new);
            with.insert(*v, Exp::Var(new));
            new
        };
        let sizes: Vec<Var> = sizes.iter().map(|v| fresh(self, v)).collect();
        // Integers first: the types of others may mention them.
        let (integers, others): (Vec<Var>, Vec<Var>) = params.iter().partition(|v| *self.program.vars.ty(**v) == Type::I64);
        let new: FxHashMap<Var, Var> = integers.iter().chain(&others).map(|v| (*v, fresh(self, v))).collect();
        let params = params.iter().map(|v| new[v]).collect();
        let body = copy(&mut self.program.vars, whole, &with);
        let name = self.unused_name(&format!("{name}_{}", if leaked.len() == 1 { "size" } else { "sizes" }));
        let id = FunctionId(self.program.functions.len() as u32);
        let result = tuple_type(vec![Type::I64; leaked.len()]);
        self.program.functions.push(Function {
            name,
            sizes,
            params,
            result,
            body: Body::Exp(body),
            signature: None,
            hidden: None,
            statics: vec![],
            span,
        });
        id
    }

    /// The name, or one like it that no function has.
    fn unused_name(&self, name: &str) -> String {
        let taken = |name: &str| self.functions.contains_key(name) || self.program.find(name).is_some();
        std::iter::once(name.to_string()).chain((2..).map(|k| format!("{name}_{k}"))).find(|n| !taken(n)).unwrap_or_default()
    }
}

/// Whether a definition has a size in its result that its body gives.
pub fn open_result_type(definition: &ast::Definition) -> Option<&TypeExp> {
    definition.result.as_ref().filter(|ty| {
        let mut names = vec![];
        open_sizes(ty, &mut names);
        !names.is_empty()
    })
}

/// The names behind `?` in a type.
fn open_sizes(ty: &TypeExp, out: &mut Vec<(String, Span)>) {
    match &ty.kind {
        TypeKind::Scalar(_) | TypeKind::Name(_) | TypeKind::Error => {}
        TypeKind::Tuple(parts) => parts.iter().for_each(|t| open_sizes(t, out)),
        TypeKind::Structured(_, _, array) => open_sizes(array, out),
        TypeKind::Record(fields) => fields.iter().for_each(|(_, t)| open_sizes(t, out)),
        TypeKind::Function(params, result) => params.iter().chain([&**result]).for_each(|t| open_sizes(t, out)),
        TypeKind::Array(axes, element) => {
            for axis in axes {
                if let ExpKind::Open(name) = &axis.kind {
                    out.push((name.clone(), axis.span));
                }
            }
            open_sizes(element, out)
        }
    }
}
