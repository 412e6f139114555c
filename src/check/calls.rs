//! Calls: of definitions, of scalar functions, of their partial derivatives.
//! What else can be called is in `functions`, `templates` and `combinators`.
//!
//! A call matches the parameters' types with the arguments'. The axes that are a size alone bind it, in order; then
//! every axis must be equal to what its parameter says.

use super::functions::FunctionValue;
use super::hints::{is_number, needs_hint};
use super::messages::{COMBINATORS, DERIVATIVE_OPERATORS, brief, count};
use super::scope::Binding;
use super::subscripts::UNKNOWN;
use super::templates::parameters_span;
use super::{Checker, Typed};
use crate::diagnostic::{Diagnostic, Span};
use crate::ir::build::{exp_size, for_, i64, if_, op2, size_exp, solve_sizes, tuple, zero};
use crate::ir::facts::Facts;
use crate::ir::{Exp, Function, FunctionId, Op, Scalar, Site, Size, Type, Var};
use crate::syntax::ast::{self, Argument, ExpKind};
use rustc_hash::FxHashMap;

/// An argument: as it is written, or found already.
pub enum Arg<'e> {
    Written(&'e ast::Exp),
    Found(Typed, Span),
}

impl Arg<'_> {
    pub fn span(&self) -> Span {
        match self {
            Arg::Written(e) => e.span,
            Arg::Found(_, span) => *span,
        }
    }
    pub fn needs_hint(&self) -> bool {
        match self {
            Arg::Written(e) => needs_hint(e),
            Arg::Found(..) => false,
        }
    }
}

/// What a call has to match.
pub struct Signature<'s> {
    /// In messages.
    pub name: &'s str,
    pub sizes: Vec<Var>,
    pub params: Vec<Var>,
    pub definition: Option<&'s ast::Definition>,
    /// Which of the definition's parameters these are.
    pub places: Vec<usize>,
}

/// The arguments of a call.
pub struct Matched {
    pub found: Vec<Typed>,
    /// What sizes and `i64` parameters stand for.
    pub bound: FxHashMap<Var, Size>,
    /// Whether the arguments have the types of the parameters; else it is reported.
    pub fits: bool,
    /// What their types do not tell.
    pub doubts: Vec<Doubt>,
}

/// A size that is known to be the one that is wanted only when the program runs.
pub struct Doubt {
    pub holds: Exp,
    pub found: Size,
    pub wanted: Size,
}

impl<'a> Checker<'a> {
    pub fn is_function_name(&self, name: &str) -> bool {
        self.functions.contains_key(name)
            || Op::by_name(name).is_some()
            || Op::by_partial_name(name).is_some()
            || DERIVATIVE_OPERATORS.contains(&name)
            || COMBINATORS.contains(&name)
    }

    pub fn call(&mut self, head: &ast::Exp, args: &[Argument], span: Span, hint: Option<&Type>) -> Typed {
        let ExpKind::Name(name) = &head.kind else {
            return match self.function_value(head) {
                Some(f) => self.apply_written(&f, &brief(head), args, span, hint),
                None => self.skip(args),
            };
        };
        match self.lookup(name) {
            Some(Binding::Function(f)) => return self.apply_written(&f, name, args, span, hint),
            Some(Binding::Poison) => return self.skip(args),
            Some(Binding::Var(_) | Binding::Value(..) | Binding::Summed(_)) => {}
            None if self.definition_named(name, head.span).is_some() => {
                return match self.named_function(name, head.span) {
                    Some(f) => self.apply_written(&f, name, args, span, hint),
                    None => self.skip(args),
                };
            }
            None => {}
        }
        if DERIVATIVE_OPERATORS.contains(&name.as_str()) {
            return self.operator_call(name, head.span, args, span);
        }
        if COMBINATORS.contains(&name.as_str()) {
            return match self.positional(name, args) {
                Some(args) => self.combinator(name, &args, span, hint),
                None => Typed::poison(),
            };
        }
        if let Some(Type::Scalar(s)) = self.type_variables.get(name.as_str()) {
            // `T(e)` converts to the type that the variable stands for.
            if let Some(op) = Op::by_name(s.name()) {
                return self.apply_written(&FunctionValue::Scalar(op), s.name(), args, span, hint);
            }
        }
        if let Some(f) = self.named_function(name, head.span) {
            return self.apply_written(&f, name, args, span, hint);
        }
        let diagnostic = if self.lookup(name).is_some() {
            self.value_not_function(name, head.span)
                .note(format!("an element of an array is read by `{name}[i]`, a product is written `{name} * (…)`"))
        } else {
            self.unknown_function(name, head.span)
        };
        self.report(diagnostic);
        self.skip(args)
    }

    fn apply_written(&mut self, f: &FunctionValue, name: &str, args: &[Argument], span: Span, hint: Option<&Type>) -> Typed {
        match self.positional(name, args) {
            Some(args) => self.apply(f, name, args.into_iter().map(Arg::Written).collect(), span, hint),
            None => Typed::poison(),
        }
    }

    /// Walks arguments for the errors in them alone.
    pub fn skip(&mut self, args: &[Argument]) -> Typed {
        for arg in args.iter().filter(|a| a.name.is_none() && !needs_hint(&a.value) && !self.is_function(&a.value)).collect::<Vec<_>>() {
            self.infer(&arg.value, None);
        }
        Typed::poison()
    }

    pub fn skip_args(&mut self, args: &[Arg<'_>]) -> Typed {
        for arg in args {
            if let Arg::Written(e) = arg {
                if !needs_hint(e) && !self.is_function(e) {
                    self.infer(e, None);
                }
            }
        }
        Typed::poison()
    }

    pub fn wrong_count(&self, name: &str, takes: usize, given: usize, span: Span) -> Diagnostic {
        Diagnostic::error(span, format!("`{name}` takes {}, but {} given", count(takes, "argument"), are(given)))
    }

    /// The arguments of a function that takes no named ones.
    pub fn positional<'e>(&mut self, name: &str, args: &'e [Argument]) -> Option<Vec<&'e ast::Exp>> {
        if let Some(named) = args.iter().find_map(|a| a.name.as_ref()) {
            let text = format!("`{name}` takes no argument by name");
            self.report(Diagnostic::error(named.span, text).note("only derivative operators do: `grad(f, wrt = x)(…)`"));
            self.skip(args);
            return None;
        }
        Some(args.iter().map(|a| &a.value).collect())
    }

    pub fn call_function(&mut self, id: FunctionId, name: &str, args: Vec<Arg<'_>>, span: Span) -> Typed {
        let Function { sizes, params: all, result, hidden, .. } = self.program.function(id).clone();
        let params: Vec<Var> = self.program.function(id).visible().map(|(_, v)| v).collect();
        let given_by_none: Vec<Var> = hidden.map_or(vec![], |h| all[h.at..h.at + h.count].to_vec());
        if self.broken.contains(&id) {
            return self.skip_args(&args);
        }
        if args.len() != params.len() {
            let diagnostic = self.wrong_count(name, params.len(), args.len(), span);
            let diagnostic = match self.definition_of(id) {
                Some(definition) => diagnostic.label(parameters_span(definition), format!("`{name}` is defined here")),
                None => {
                    let of = |p: &Var| format!("{}: {}", self.program.vars.name(*p), self.describe(self.program.vars.ty(*p)));
                    let wanted: Vec<String> = params.iter().map(of).collect();
                    diagnostic.note(format!("its parameters are `{}`", wanted.join(", ")))
                }
            };
            self.report(diagnostic);
            return self.skip_args(&args);
        }
        let names: Vec<Var> = sizes.iter().chain(&all).copied().collect();
        let places = (0..params.len()).collect();
        let sizes = sizes.into_iter().chain(given_by_none.iter().copied()).collect();
        let signature = Signature { name, sizes, params, definition: self.definition_of(id), places };
        let Matched { found, mut bound, fits, mut doubts } = self.match_arguments(&signature, args, Some(&result));
        let mut exps: Vec<Exp> = found.iter().map(|f| f.exp.clone()).collect();
        if let (Some(hidden), true) = (hidden, fits) {
            // The sizes that depend on data are computed first. A seed of the result must have them.
            let told = given_by_none.iter().all(|v| bound.contains_key(v));
            for (exp, found) in exps.iter_mut().zip(&found).take(hidden.at) {
                if let Some(ty) = &found.ty {
                    *exp = self.shared("argument", exp.clone(), ty);
                }
            }
            let call = Exp::Call(hidden.sizes, exps[..hidden.at].to_vec(), Site::new(span));
            let mut computed = vec![];
            for v in &given_by_none {
                let size = self.program.vars.fresh_like(*v, Type::I64);
                computed.push(size);
                let wanted = Size::var(size);
                if told {
                    let found = bound[v].clone();
                    doubts.push(Doubt { holds: op2(Op::Eq, size_exp(&found), size_exp(&wanted)), found, wanted });
                } else {
                    bound.insert(*v, wanted);
                }
            }
            self.floating.push((computed, call));
            exps.splice(hidden.at..hidden.at, given_by_none.iter().map(|v| size_exp(&bound[v])));
        }
        if !fits || self.unknown_results.contains(&id) || unbound(&result, &names, &bound) {
            return Typed::poison();
        }
        let ty = result.map_sizes(&mut |s| s.substitute(&|v| bound.get(&v).cloned()));
        let call = self.in_doubt(Exp::Call(id, exps, Site::new(span)), &ty, doubts, span);
        Typed::new(call, ty)
    }

    /// A call that is made only where its sizes are those that are wanted; anything else is an error.
    pub fn in_doubt(&mut self, call: Exp, ty: &Type, doubts: Vec<Doubt>, span: Span) -> Exp {
        doubts.into_iter().rev().fold(call, |call, Doubt { holds, found, wanted }| {
            let wrong = Exp::Op(Op::Agreed, vec![size_exp(&found), size_exp(&wanted)], Site::new(span));
            if_(holds, call, self.nothing_at(&wrong, ty, span))
        })
    }

    /// A value of any type, which is never there: it is read at a key that fails.
    fn nothing_at(&mut self, key: &Exp, ty: &Type, span: Span) -> Exp {
        if let Type::Tuple(parts) = ty {
            return tuple(parts.iter().map(|part| self.nothing_at(key, part, span)).collect());
        }
        let nothing = zero(&mut self.program.vars, ty);
        let i = self.program.vars.fresh("i", Type::I64);
        Exp::Index(Box::new(for_(i, Size::constant(1), nothing)), vec![key.clone()], Site::new(span))
    }

    /// Whether a size is at least 0, whatever the sizes of parameters are, under the conditions that hold here.
    fn is_natural(&self, size: &Size) -> bool {
        let mut facts = Facts::default();
        let mut vars: Vec<Var> = self.assumed.iter().flat_map(Exp::free_vars).collect();
        size.variables(&mut vars);
        for v in vars {
            match self.defined_sizes.get(&v) {
                Some(defined) => facts.define(v, &size_exp(defined)),
                None if self.program.functions.iter().any(|f| f.sizes.contains(&v)) => facts.assume_nonneg(Size::var(v)),
                None => {}
            }
        }
        self.assumed.iter().for_each(|condition| facts.assume(condition));
        facts.prove_nonneg(size)
    }

    /// Matches arguments with parameters, as many of them.
    pub fn match_arguments(&mut self, signature: &Signature<'_>, args: Vec<Arg<'_>>, result: Option<&Type>) -> Matched {
        let Signature { sizes, params, .. } = signature;
        // Arguments that know their type come first: they bind the sizes that are hints for the others.
        let names: Vec<Var> = sizes.iter().chain(params).copied().collect();
        let mut bound: FxHashMap<Var, Size> = FxHashMap::default();
        let mut binders: Vec<(Var, Span)> = vec![];
        let mut found: Vec<Option<Typed>> = args.iter().map(|_| None).collect();
        let spans: Vec<Span> = args.iter().map(Arg::span).collect();
        let mut args: Vec<Option<Arg<'_>>> = args.into_iter().map(Some).collect();
        let order: Vec<usize> = {
            let (late, early): (Vec<usize>, Vec<usize>) = (0..args.len()).partition(|k| args[*k].as_ref().is_some_and(Arg::needs_hint));
            early.into_iter().chain(late).collect()
        };
        for k in order {
            let ty = self.program.vars.ty(params[k]).clone();
            let hint = ty.map_sizes(&mut |s| s.substitute(&|v| Some(bound.get(&v).cloned().unwrap_or_else(|| Size::var(UNKNOWN)))));
            let typed = match args[k].take() {
                Some(Arg::Written(e)) => self.infer(e, Some(&hint)),
                Some(Arg::Found(typed, _)) => typed,
                None => Typed::poison(),
            };
            if let Some(arg) = &typed.ty {
                bind(sizes, &ty, arg, &mut |v, size| {
                    bound.entry(v).or_insert_with(|| {
                        binders.push((v, spans[k]));
                        size.clone()
                    });
                });
                if ty == Type::I64 && *arg == Type::I64 {
                    if let Some(size) = exp_size(&typed.exp) {
                        bound.insert(params[k], size);
                    }
                }
            }
            found[k] = Some(typed);
        }
        let mut found: Vec<Typed> = found.into_iter().flatten().collect();

        // An `i64` argument that is a size of another parameter or of the result is bound to a variable.
        for (k, param) in params.iter().enumerate() {
            let used = result
                .into_iter()
                .chain(params.iter().map(|p| self.program.vars.ty(*p)))
                .any(|ty| super::scope::leaking(ty, &[*param]).is_some());
            if used && !bound.contains_key(param) && found[k].ty == Some(Type::I64) {
                let name = self.program.vars.name(*param).to_string();
                let exp = std::mem::replace(&mut found[k].exp, Exp::Tuple(vec![]));
                let var = self.float(&name, exp, Type::I64);
                found[k].exp = Exp::Var(var);
                bound.insert(*param, Size::var(var));
            }
        }

        let mut fits = true;
        let known: Vec<usize> = (0..found.len()).filter(|k| found[*k].ty.is_some()).collect();
        let pairs: Vec<(&Type, &Type)> =
            known.iter().map(|k| (self.program.vars.ty(params[*k]), found[*k].ty.as_ref().expect("known"))).collect();
        let unsolved: Vec<Var> = sizes.iter().copied().filter(|v| !bound.contains_key(v)).collect();
        solve_sizes(sizes, &pairs, &mut bound);
        let mut doubts = vec![];
        for v in unsolved {
            let Some(size) = bound.get(&v).map(|size| self.expand(size)) else { continue };
            // A solution that is negative fits no argument.
            match size.as_constant() {
                Some(c) if c < 0 => {
                    bound.insert(v, Size::default());
                }
                Some(_) => {}
                None if self.is_natural(&size) => {}
                None => {
                    let mut all = vec![];
                    pairs.iter().for_each(|(param, arg)| axes(param, arg, &mut all));
                    let Some((axis, found)) = all.into_iter().find(|(axis, _)| mentions(axis, v)) else { continue };
                    let least = bound[&v].maximum(&Size::default());
                    let wanted = axis.substitute(&|w| if w == v { Some(least.clone()) } else { bound.get(&w).cloned() });
                    doubts.push(Doubt { holds: op2(Op::Le, i64(0), size_exp(&bound[&v])), found: found.clone(), wanted });
                }
            }
        }
        for (k, param) in params.iter().enumerate() {
            let declared = self.program.vars.ty(*param).clone();
            let Some(ty) = found[k].ty.clone() else {
                fits = false;
                continue;
            };
            // A size that nothing binds is one of an argument with an error.
            if unbound(&declared, &names, &bound) {
                fits &= self.kinds_agree(&ty, &declared, signature, k, spans[k]);
                continue;
            }
            let want = declared.map_sizes(&mut |s| s.substitute(&|v| bound.get(&v).cloned()));
            if !self.same_type(&ty, &want) {
                fits = false;
                self.report_argument(signature, k, (&ty, &want, &declared), spans[k], &bound, &binders);
            }
        }
        Matched { found, bound, fits, doubts }
    }

    /// Compares ranks and elements alone.
    fn kinds_agree(&mut self, ty: &Type, declared: &Type, signature: &Signature<'_>, k: usize, span: Span) -> bool {
        let blank = |ty: &Type| ty.map_sizes(&mut |_| Size::default());
        let agree = blank(ty) == blank(declared);
        if !agree {
            self.report_argument(signature, k, (ty, declared, declared), span, &FxHashMap::default(), &[]);
        }
        agree
    }

    fn report_argument(
        &mut self,
        signature: &Signature<'_>,
        k: usize,
        (ty, want, declared): (&Type, &Type, &Type),
        span: Span,
        bound: &FxHashMap<Var, Size>,
        binders: &[(Var, Span)],
    ) {
        let name = signature.name;
        let param = signature.params[k];
        let param_name = self.program.vars.name(param).to_string();
        let text = format!("argument `{param_name}` of `{name}` has type `{}`, but `{}` is wanted", self.describe(ty), self.describe(want));
        let mut diagnostic = Diagnostic::error(span, text).here(format!("this has type `{}`", self.describe(ty)));
        if let Some(definition) = signature.definition {
            let written = &definition.params[signature.places[k]];
            diagnostic = diagnostic
                .label(written.name.span.to(written.ty.span), format!("`{param_name}` is declared as `{}`", self.describe(declared)));
        } else {
            diagnostic = diagnostic.note(format!("`{param_name}` has type `{}`", self.describe(declared)));
        }
        let mut vars = vec![];
        declared.map_sizes(&mut |s| {
            s.variables(&mut vars);
            s.clone()
        });
        for (var, at) in binders.iter().filter(|(v, at)| vars.contains(v) && *at != span) {
            if let Some(size) = bound.get(var) {
                let text = format!("`{}` of `{name}` is `{}` by this argument", self.program.vars.name(*var), self.describe_size(size));
                diagnostic = diagnostic.label(*at, text);
            }
        }
        let diagnostic = self.explain_difference(diagnostic, ty, want);
        self.report(diagnostic);
    }

    pub fn scalar_function(&mut self, op: Op, args: &[&ast::Exp], span: Span, hint: Option<&Type>) -> Typed {
        let name = op.name();
        if args.len() != op.arity() {
            let message = format!("`{name}` takes {}, but {} given", count(op.arity(), "argument"), are(args.len()));
            let diagnostic = Diagnostic::error(span, message);
            self.report(match (op, args) {
                (Op::Max | Op::Min, [array]) => diagnostic.note(format!("of the elements of an array: `{name} i. {}[i]`", brief(array))),
                _ => diagnostic,
            });
            args.iter().filter(|a| !needs_hint(a)).for_each(|a| {
                self.infer(a, None);
            });
            return Typed::poison();
        }
        let hints: Vec<Option<Type>> = (0..args.len()).map(|k| wanted_by(op, k, hint)).collect();
        let found: Vec<Typed> = match (args, hints.as_slice()) {
            ([a, b], [x, y]) if x == y => {
                let (a, b) = self.pair(a, b, x.as_ref());
                vec![a, b]
            }
            _ => args.iter().zip(&hints).map(|(a, h)| self.infer(a, h.as_ref())).collect(),
        };
        let Some(types) = found.iter().map(|f| f.ty.clone()).collect::<Option<Vec<Type>>>() else { return Typed::poison() };
        let kinds: Option<Vec<Scalar>> = types.iter().map(|t| if let Type::Scalar(s) = t { Some(*s) } else { None }).collect();
        if let Some(result) = kinds.and_then(|kinds| op.result(&kinds)) {
            return Typed::new(Exp::Op(op, found.into_iter().map(|f| f.exp).collect(), Site::new(span)), Type::Scalar(result));
        }
        if op == Op::StopGradient {
            let ty = types[0].clone();
            let operands = found.into_iter().map(|f| (f.exp, ty.clone())).collect();
            let exp = self.partwise(operands, &ty, &mut |c, operands, ty| c.stopped(operands, ty));
            return Typed::new(exp, ty);
        }
        let shown: Vec<String> = types.iter().map(|t| format!("`{}`", self.describe(t))).collect();
        let mut diagnostic = Diagnostic::error(span, format!("`{name}` does not take {}", shown.join(" and ")));
        for (arg, ty) in args.iter().zip(&shown) {
            diagnostic = diagnostic.label(arg.span, ty.to_string());
        }
        diagnostic = match types.iter().zip(args).find(|(t, _)| matches!(t, Type::Array(..))) {
            Some((array, arg)) => {
                let i: Vec<String> = (0..array.shape().len()).map(super::operators::index_name).collect();
                let i = i.join(", ");
                let inner = if args.len() == 1 { format!("{}[{i}]", brief(arg)) } else { format!("…, {}[{i}]", brief(arg)) };
                diagnostic.note(format!("for each element, write `for {i}. {name}({inner})`"))
            }
            None if types.len() == 2 => self.offer_conversion(diagnostic, (args[0], &types[0]), (args[1], &types[1])),
            None => match (types.first(), args.first()) {
                (Some(Type::Scalar(Scalar::I64 | Scalar::I32)), Some(arg)) => {
                    diagnostic.note(format!("there are no implicit conversions; write `{name}(f64({}))`", brief(arg)))
                }
                _ => diagnostic,
            },
        };
        self.report(diagnostic);
        Typed::poison()
    }

    /// `d_sin(x)`, `d0_pow(x, y)`: a partial derivative, on those of the arguments and the result that it uses.
    pub fn partial(&mut self, op: Op, k: usize, args: &[&ast::Exp], span: Span) -> Typed {
        // Whole numbers are floats, unless the operation takes integers too: then they are what they look like.
        let integers = op.cases().iter().any(|case| case.partial(k).is_some() && case.args().iter().any(|s| s.is_integer()));
        let hint = |a: &ast::Exp| (!(integers && is_number(a))).then_some(&Type::F64);
        let found: Vec<Typed> = args.iter().map(|a| self.infer(a, hint(a))).collect();
        let Some(types) = found.iter().map(|f| f.ty.clone()).collect::<Option<Vec<Type>>>() else { return Typed::poison() };
        let kinds: Option<Vec<Scalar>> = types.iter().map(|t| if let Type::Scalar(s) = t { Some(*s) } else { None }).collect();
        if let Some((result, _)) = kinds.and_then(|kinds| op.partial_of(k, &kinds)) {
            return Typed::new(Exp::Partial(op, k, found.into_iter().map(|f| f.exp).collect()), Type::Scalar(result));
        }
        let shown: Vec<String> = types.iter().map(|t| format!("`{}`", self.describe(t))).collect();
        let name = op.partial_name(k);
        self.report(
            Diagnostic::error(span, format!("`{name}` does not take ({})", shown.join(", ")))
                .note(format!("it takes those of `{}`'s arguments and result that its formula uses", op.name())),
        );
        Typed::poison()
    }
}

fn are(n: usize) -> String {
    if n == 1 { "1 is".to_string() } else { format!("{n} are") }
}

/// What a literal is as argument `k` of an operation: of the type that the context wants of the result, if the operation
/// takes it there; else a float if it takes only floats, an `i64` if only integers. Conversions take what comes.
fn wanted_by(op: Op, k: usize, hint: Option<&Type>) -> Option<Type> {
    if op.is_conversion() {
        return None;
    }
    let takes = |test: &dyn Fn(Scalar) -> bool| op.cases().iter().all(|c| test(c.args()[k]));
    let fits = |s: Scalar| op.cases().iter().any(|c| c.args()[k] == s && c.result() == s);
    match hint {
        Some(ty @ Type::Scalar(s)) if fits(*s) => Some(ty.clone()),
        _ if takes(&Scalar::is_float) => Some(Type::F64),
        _ if takes(&Scalar::is_integer) => Some(Type::I64),
        _ => None,
    }
}

/// Whether a type mentions a size that is not bound.
fn unbound(ty: &Type, names: &[Var], bound: &FxHashMap<Var, Size>) -> bool {
    let missing: Vec<Var> = names.iter().copied().filter(|v| !bound.contains_key(v)).collect();
    super::scope::leaking(ty, &missing).is_some()
}

/// Matches the axes that are a size alone.
pub fn bind(sizes: &[Var], param: &Type, arg: &Type, f: &mut impl FnMut(Var, &Size)) {
    match (param, arg) {
        (Type::Array(p, _), Type::Array(a, _)) if p.len() == a.len() => {
            for (p, a) in p.iter().zip(a) {
                if let Some(v) = p.as_var().filter(|v| sizes.contains(v)) {
                    f(v, a);
                }
            }
        }
        (Type::Tuple(p), Type::Tuple(a)) => {
            p.iter().zip(a).for_each(|(p, a)| bind(sizes, p, a, f));
            if let (Some(p), Some(a)) = (p.structure(), a.structure()) {
                if let Some(v) = p.size.as_var().filter(|v| sizes.contains(v)) {
                    f(v, &a.size);
                }
            }
        }
        _ => {}
    }
}

/// The axes of a parameter's type with those of its argument.
fn axes<'t>(param: &'t Type, arg: &'t Type, out: &mut Vec<(&'t Size, &'t Size)>) {
    match (param, arg) {
        (Type::Array(p, _), Type::Array(a, _)) if p.len() == a.len() => out.extend(p.iter().zip(a)),
        (Type::Tuple(p), Type::Tuple(a)) => p.iter().zip(a.iter()).for_each(|(p, a)| axes(p, a, out)),
        (Type::Scalar(_) | Type::Array(..) | Type::Tuple(_), _) => {}
    }
}

fn mentions(size: &Size, v: Var) -> bool {
    let mut vars = vec![];
    size.variables(&mut vars);
    vars.contains(&v)
}
