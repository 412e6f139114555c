//! Derivatives that a program gives itself: `def jvp f(x: T, dx: T) -> U = e`, `def vjp f(x: T, seed: U) = e`.
//!
//! A `jvp` has the parameters of `f` and behind them a tangent for each that has floats; it gives the tangent of the result,
//! linear in the tangents. A `vjp` has the parameters and a seed for the result; it gives an adjoint for each parameter that
//! has floats, linear in the seed. One of them is enough: the transpose of a linear function is its own `vjp`.
//! Transposing a rule must not need what it is to give, so a rule that has no other beside it may not call its function on
//! what is transposed.

use super::Checker;
use super::derive::{Deriving, float_params};
use super::messages::count;
use super::templates::Callee;
use crate::diagnostic::Diagnostic;
use crate::ir::build::{bind_sizes, tuple_type};
use crate::ir::{Body, Exp, FunctionId, Heading, Mode, Program, Rules, Type, Var};
use crate::syntax::ast;
use rustc_hash::{FxHashMap, FxHashSet};

/// The rules of a function, each with its definition.
#[derive(Default)]
struct Found {
    jvp: Option<(FunctionId, usize)>,
    vjp: Option<(FunctionId, usize)>,
}

impl Checker<'_> {
    /// Gives functions the rules that definitions say; after everything is checked and erased.
    pub fn attach_rules(&mut self) {
        let mut found: Vec<(FunctionId, Found)> = vec![];
        for k in 0..self.module.definitions.len() {
            let Some((f, rule, mode)) = self.rule(k) else { continue };
            let at = found.iter().position(|(of, _)| *of == f).unwrap_or_else(|| {
                found.push((f, Found::default()));
                found.len() - 1
            });
            match mode {
                ast::Mode::Jvp => found[at].1.jvp = Some((rule, k)),
                ast::Mode::Vjp => found[at].1.vjp = Some((rule, k)),
            }
        }
        if self.error_count() > 0 {
            return;
        }
        for (f, Found { jvp, vjp }) in &found {
            let known = self.program.function(*f).params.len();
            let single = match (jvp, vjp) {
                (Some((rule, _)), None) | (None, Some((rule, _))) => Some(*rule),
                _ => None,
            };
            let transposed = single.map(|rule| {
                let by: Vec<usize> = (known..self.program.function(rule).params.len()).collect();
                Deriving { program: &mut self.program, memo: &mut self.derived }.derived(rule, Mode::Vjp, &by)
            });
            let rules = Rules { jvp: jvp.map(|(id, _)| id), vjp: vjp.map(|(id, _)| id), transposed };
            self.set_heading(*f, Some(rules), known);
            rules.given().chain(rules.transposed).for_each(|id| self.set_heading(id, None, known));
        }
        self.forbid_circles(&found);
    }

    fn set_heading(&mut self, id: FunctionId, rules: Option<Rules>, linear_from: usize) {
        let f = self.program.function(id);
        let heading = Heading { sizes: f.sizes.clone(), params: f.params.clone(), result: f.result.clone(), rules, linear_from };
        self.program.vars.set_heading(id, heading);
    }

    /// What a definition is a derivative of, if it is one and fits.
    fn rule(&mut self, k: usize) -> Option<(FunctionId, FunctionId, ast::Mode)> {
        let definition = &self.module.definitions[k];
        let (mode, name) = definition.derivative_of.as_ref()?;
        let word = mode.word();
        let Some(of) = self.functions.get(name.text.as_str()).copied() else {
            let text = format!("there is no definition of `{}` to be the {word} of", name.text);
            self.report(Diagnostic::error(name.span, text).note("a derivative is given for a definition of the same text"));
            return None;
        };
        let original = &self.module.definitions[of];
        let plain = |callee: &Callee| if let Callee::Function(id) = callee { Some(*id) } else { None };
        let (Some(f), Some(rule)) = (plain(&self.callees[of]), plain(&self.callees[k])) else {
            let text = "derivatives are given for definitions that are one function";
            let diagnostic = Diagnostic::error(name.span, text).label(original.name.span, format!("`{}` is defined here", name.text));
            self.report(diagnostic.note("this one takes functions, or is generic over types of elements"));
            return None;
        };
        if [of, k].iter().any(|d| self.broken_definition(*d)) {
            return None;
        }
        let f_result = self.program.function(f).result.clone();
        let nested = matches!(&f_result, Type::Tuple(parts) if parts.iter().any(|t| matches!(t, Type::Tuple(_))));
        if self.program.function(f).hidden.is_some() || nested || f_result.tangent().is_none() {
            let text = format!("derivatives are not given for a function with the result `{}`", self.describe(&f_result));
            let note = "the result has floats, and is a number, an array, or a tuple or record of these, of known sizes";
            self.report(Diagnostic::error(name.span, text).note(note));
            return None;
        }
        let params = self.program.function(f).params.clone();
        let floats = float_params(&self.program, f);
        let behind = if *mode == ast::Mode::Jvp { floats.len() } else { 1 };
        let given: Vec<Type> = self.program.function(rule).params.iter().map(|p| self.program.vars.ty(*p).clone()).collect();
        let names = |c: &Self| floats.iter().map(|p| format!("`{}`", c.program.vars.name(params[*p]))).collect::<Vec<_>>().join(", ");
        if given.len() != params.len() + behind {
            let more = match mode {
                ast::Mode::Jvp => format!("{}, one for each of {}", count(behind, "tangent"), names(self)),
                ast::Mode::Vjp => "a seed for the result".to_string(),
            };
            let text =
                format!("`{word} {}` takes {}: those of `{}` and {more}", name.text, count(params.len() + behind, "parameter"), name.text);
            self.report(Diagnostic::error(name.span, text).label(original.name.span, format!("`{}` is defined here", name.text)));
            return None;
        }
        let args: Vec<Exp> = self.program.function(rule).params[..params.len()].iter().map(|v| Exp::Var(*v)).collect();
        let sizes = bind_sizes(&self.program, f, &given[..params.len()], &args);
        let here = |ty: &Type| ty.map_sizes(&mut |s| s.substitute(&|v| sizes.get(&v).cloned()));
        let of_params: Vec<Type> = params.iter().map(|p| here(self.program.vars.ty(*p))).collect();
        let tangents: Vec<Type> = of_params.iter().filter_map(Type::tangent).collect();
        let result = here(&f_result).tangent().expect("the result has floats");
        let (wanted, gives) = match mode {
            ast::Mode::Jvp => ([&of_params[..], &tangents].concat(), result),
            ast::Mode::Vjp => ([&of_params[..], &[result]].concat(), tuple_type(tangents)),
        };
        for (at, (given, wanted)) in given.iter().zip(&wanted).enumerate().filter(|(_, (g, w))| g != w) {
            let what = if at < params.len() {
                format!("parameter `{}` of `{}`", self.program.vars.name(params[at]), name.text)
            } else if *mode == ast::Mode::Jvp {
                format!("the tangent of `{}`", self.program.vars.name(params[floats[at - params.len()]]))
            } else {
                format!("the seed for the result of `{}`", name.text)
            };
            let text = format!("{what} has type `{}`, not `{}`", self.describe(wanted), self.describe(given));
            self.report(Diagnostic::error(definition.params[at].ty.span, text));
            return None;
        }
        let found = self.program.function(rule).result.clone();
        if found != gives {
            let what = match mode {
                ast::Mode::Jvp => "the tangent of the result".to_string(),
                ast::Mode::Vjp => format!("the adjoint of {}", names(self)),
            };
            let text = format!("`{word} {}` gives {what}: `{}`, not `{}`", name.text, self.describe(&gives), self.describe(&found));
            let place = definition.result.as_ref().map_or(definition.body.span, |ty| ty.span);
            self.report(Diagnostic::error(place, text));
            return None;
        }
        Some((f, rule, *mode))
    }

    /// Reports rules whose transpose needs itself.
    fn forbid_circles(&mut self, found: &[(FunctionId, Found)]) {
        let mut needs: FxHashMap<FunctionId, FxHashSet<FunctionId>> = FxHashMap::default();
        for (f, Found { jvp, vjp }) in found {
            if let (Some((rule, _)), None) | (None, Some((rule, _))) = (jvp, vjp) {
                let known = self.program.function(*f).params.len();
                let varied = self.program.function(*rule).params[known..].iter().copied().collect();
                let mut called = FxHashSet::default();
                if let Body::Exp(body) = &self.program.function(*rule).body {
                    called_on(&self.program, body, varied, &mut called);
                }
                needs.insert(*f, called);
            }
        }
        for (f, Found { jvp, vjp }) in found {
            let mut reached: Vec<FunctionId> = needs.get(f).into_iter().flatten().copied().collect();
            let mut at = 0;
            while at < reached.len() {
                let next = needs.get(&reached[at]).into_iter().flatten().copied().filter(|g| !reached.contains(g)).collect::<Vec<_>>();
                reached.extend(next);
                at += 1;
            }
            let Some((_, k)) = jvp.or(*vjp).filter(|_| reached.contains(f)) else { continue };
            let definition = &self.module.definitions[k];
            let (word, other, on) = if jvp.is_some() { ("jvp", "vjp", "tangents") } else { ("vjp", "jvp", "seed") };
            let name = &self.program.function(*f).name;
            let text = format!("`{word} {name}` calls `{name}` on its {on}, so that its transpose needs itself");
            let note = format!("write `def {other} {name}` too, or the {on} out of the call");
            self.diagnostics.push(Diagnostic::error(definition.name.span, text).note(note));
        }
    }
}

/// The functions that are called, at any depth, on what depends on the variables.
fn called_on(program: &Program, exp: &Exp, mut varied: FxHashSet<Var>, out: &mut FxHashSet<FunctionId>) {
    fn all(program: &Program, id: FunctionId, out: &mut FxHashSet<FunctionId>) {
        if !out.insert(id) {
            return;
        }
        match &program.function(id).body {
            Body::Exp(body) => each_call(body, &mut |called, _| all(program, called, out)),
            Body::Derived { of, .. } => all(program, *of, out),
            Body::Entries(entries) => all(program, entries.of, out),
            Body::Jacobian { of, .. } => all(program, *of, out),
        }
    }
    fn each_call(exp: &Exp, f: &mut dyn FnMut(FunctionId, &[Exp])) {
        if let Exp::Call(id, args, _) = exp {
            f(*id, args);
        }
        exp.for_each_child(&mut |e| each_call(e, f));
    }
    // What binders bind comes from what is around: all that is bound where something varied is mentioned varies.
    fn spread(exp: &Exp, varied: &mut FxHashSet<Var>) -> bool {
        let binds = exp.binds();
        let (value, rest): (Vec<&Exp>, Vec<&Exp>) = match exp {
            Exp::Let(_, value, body) => (vec![value], vec![body]),
            Exp::Loop(l) => (vec![&l.init, &l.body], vec![]),
            Exp::History(h) => (vec![&h.init, &h.body], vec![]),
            _ => (vec![], vec![]),
        };
        let mut changed = false;
        if value.iter().any(|e| e.free_vars().iter().any(|v| varied.contains(v))) {
            binds.iter().for_each(|v| changed |= varied.insert(*v));
        }
        value.into_iter().chain(rest).for_each(|e| changed |= spread(e, varied));
        if !matches!(exp, Exp::Let(..) | Exp::Loop(_) | Exp::History(_)) {
            exp.for_each_child(&mut |e| changed |= spread(e, varied));
        }
        changed
    }
    while spread(exp, &mut varied) {}
    each_call(exp, &mut |id, args| {
        if args.iter().any(|a| a.free_vars().iter().any(|v| varied.contains(v))) {
            all(program, id, out);
        }
    });
}
