//! Definitions that are not one function: those with functions among their parameters, and those generic over element types.
//!
//! A definition with functions as parameters is a *template*: a call of it is its body, with the functions known. It is
//! also checked once by itself, with opaque functions of the types it declares, so that what is wrong with it is said
//! even if nothing calls it.
//! A definition that is generic over element types (`x: [n]T`) is a function for each list of scalar types that it is called
//! at. The first that it can be checked at, of `f64`, `i64`, `bool`, `f32` and `i32`, has its name; the others have the types in theirs.

use super::apply::Application;
use super::calls::{Arg, Signature};
use super::existential::open_result_type;
use super::functions::{Context, FunctionValue, function_text};
use super::hints::is_number;
use super::messages::{closest, count};
use super::scope::Binding;
use super::{Checker, Typed};
use crate::diagnostic::{Diagnostic, Span};
use crate::ir::build::size_exp;
use crate::ir::{Body, Exp, Function, FunctionId, Scalar, Size, Type, Var};
use crate::syntax::ast::{Definition, Module, Name, Pattern, TypeExp, TypeKind};
use rustc_hash::FxHashMap;

/// What a definition is to its callers.
#[derive(Clone, Copy, Debug)]
pub enum Callee {
    Function(FunctionId),
    /// A function for each list of scalar types; this one under the definition's own name.
    Generic(FunctionId),
    /// Takes functions.
    Template,
}

/// The element types that a generic definition is checked at by itself.
const USUAL: [Scalar; 5] = [Scalar::F64, Scalar::I64, Scalar::Bool, Scalar::F32, Scalar::I32];

impl<'a> Checker<'a> {
    /// Makes what callers need to know of a definition.
    pub fn declare(&mut self, k: usize) {
        let definition = &self.module.definitions[k];
        let callee = if definition.takes_functions() {
            if self.recursive.contains(&k) {
                self.broken_templates.insert(k);
            }
            Callee::Template
        } else {
            let variables = self.variables_of(definition);
            let scalars = self.own_types(k, variables.len());
            let id = self.header(k, definition.name.text.clone(), at(&variables, &scalars));
            if self.recursive.contains(&k) && definition.result.is_none() {
                self.unknown_results.insert(id);
            }
            if variables.is_empty() {
                Callee::Function(id)
            } else {
                self.instances.insert((k, scalars), id);
                Callee::Generic(id)
            }
        };
        self.callees.push(callee);
    }

    /// Checks the body of a definition.
    pub fn define(&mut self, k: usize) {
        self.expanded = 0;
        self.trials = super::states::MOST_TRIALS;
        match self.callees[k] {
            Callee::Function(id) => self.body(k, id, FxHashMap::default()),
            Callee::Generic(id) => self.define_generic(k, id),
            Callee::Template => self.define_template(k),
        }
    }

    pub fn broken_definition(&self, k: usize) -> bool {
        match self.callees[k] {
            Callee::Function(id) | Callee::Generic(id) => self.broken.contains(&id) || self.unknown_results.contains(&id),
            Callee::Template => self.broken_templates.contains(&k),
        }
    }

    fn variables_of<'d>(&self, definition: &'d Definition) -> Vec<&'d str> {
        let mut names = type_variables(self.module, definition);
        names.retain(|name| !self.broken_types.contains(*name));
        names
    }

    /// The types at which a generic definition has its own name, unless they do not fit.
    fn own_types(&self, k: usize, variables: usize) -> Vec<Scalar> {
        match &self.chosen {
            Some((chosen, scalars)) if *chosen == k && scalars.len() == variables => scalars.clone(),
            _ => vec![USUAL[0]; variables],
        }
    }

    /// Finds the first of the usual types that the definition can be checked at.
    fn define_generic(&mut self, k: usize, id: FunctionId) {
        let definition = &self.module.definitions[k];
        let variables = self.variables_of(definition);
        let before = self.diagnostics.clone();
        let errors = self.error_count();
        let declared = self.program.function(id).clone();
        let own = self.own_types(k, variables.len());
        self.body(k, id, at(&variables, &own));
        let chosen = self.chosen.as_ref().is_some_and(|(c, _)| *c == k);
        if self.error_count() == errors || self.broken.contains(&id) || chosen {
            return;
        }
        let first = std::mem::replace(&mut self.diagnostics, before.clone());
        for scalar in &USUAL[1..] {
            let made = self.program.functions.len();
            let types = at(&variables, &vec![*scalar; variables.len()]);
            let other = self.header(k, definition.name.text.clone(), types.clone());
            self.body(k, other, types);
            let fits = self.error_count() == errors && !self.unknown_results.contains(&other);
            let function = self.program.functions[other.0 as usize].clone();
            if fits && self.program.functions.len() == made + 1 {
                self.forget(made);
                self.program.functions[id.0 as usize] = function;
                self.unknown_results.remove(&id);
                self.instances.remove(&(k, own));
                self.instances.insert((k, vec![*scalar; variables.len()]), id);
                return;
            }
            self.forget(made);
            self.diagnostics = before.clone();
        }
        self.diagnostics = first;
        self.program.functions[id.0 as usize] = declared;
        self.broken.insert(id);
    }

    /// Drops the functions from this number on, which nothing uses.
    pub fn forget(&mut self, made: usize) {
        let kept = |id: &FunctionId| (id.0 as usize) < made;
        self.program.functions.truncate(made);
        self.derived.retain(|(of, _, _, _), id| kept(of) && kept(id));
        self.instances.retain(|_, id| kept(id));
        self.origins.retain(|id, _| kept(id));
        self.lifted.retain(|id, _| kept(id));
        self.broken.retain(kept);
        self.unknown_results.retain(kept);
    }

    /// Checks a template by itself.
    fn define_template(&mut self, k: usize) {
        let definition = &self.module.definitions[k];
        let made = self.program.functions.len();
        let errors = self.error_count();
        let variables = self.variables_of(definition);
        let types = at(&variables, &vec![USUAL[0]; variables.len()]);
        let checked = self.aside(types, |c| {
            let header = c.parameters(definition);
            for (param, var) in definition.params.iter().zip(&header.params) {
                let binding = match (var, &param.ty.kind) {
                    (Some(var), _) => Binding::Var(*var),
                    (None, TypeKind::Function(params, result)) => c.opaque(&param.name.text, params, result, param.ty.span),
                    (None, _) => Binding::Poison,
                };
                c.bind_name(&param.name.text, binding);
            }
            if let Some(written) = open_result_type(definition) {
                return (!header.unread).then(|| c.open_result(definition, written));
            }
            let declared = match &definition.result {
                None => None,
                Some(ty) => Some(c.read_type(ty)?),
            };
            (!header.unread).then(|| c.result(definition, declared.as_ref()))
        });
        if checked.is_none() || self.error_count() > errors {
            self.broken_templates.insert(k);
        }
        self.forget(made);
    }

    /// A function of which nothing is known but its type.
    fn opaque(&mut self, name: &str, params: &[TypeExp], result: &TypeExp, span: Span) -> Binding {
        let types: Option<Vec<Type>> = params.iter().map(|t| self.read_type(t)).collect();
        let (Some(types), Some(result)) = (types, self.read_type(result)) else { return Binding::Poison };
        let named = |k: usize| if params.len() == 1 { "x".to_string() } else { format!("x_{}", k + 1) };
        let params = types.into_iter().enumerate().map(|(k, ty)| self.program.vars.fresh(named(k), ty)).collect();
        let body = Body::Exp(Exp::Var(self.program.vars.fresh("r", result.clone())));
        let id = FunctionId(self.program.functions.len() as u32);
        self.program.functions.push(Function {
            name: name.to_string(),
            sizes: vec![],
            params,
            result,
            body,
            signature: None,
            hidden: None,
            statics: vec![],
            span,
        });
        Binding::Function(FunctionValue::Function(id))
    }

    /// A call of a definition that is generic or takes functions.
    pub fn call_definition(&mut self, k: usize, name: &str, args: Vec<Arg<'_>>, span: Span, hint: Option<&Type>) -> Typed {
        let definition = &self.module.definitions[k];
        if self.broken_definition(k) {
            return self.skip_args(&args);
        }
        if args.len() != definition.params.len() {
            let diagnostic = self.wrong_count(name, definition.params.len(), args.len(), span);
            self.report(diagnostic.label(parameters_span(definition), format!("`{name}` is defined here")));
            return self.skip_args(&args);
        }
        match self.callees[k] {
            Callee::Template => self.call_template(k, name, args, span, hint),
            Callee::Function(id) => self.call_function(id, name, args, span),
            Callee::Generic(_) => {
                let mut types = FxHashMap::default();
                let Some(args) = self.bind_types(k, args, &mut types) else { return Typed::poison() };
                match self.instance(k, &types, span) {
                    Some(id) => self.call_function(id, name, args, span),
                    None => Typed::poison(),
                }
            }
        }
    }

    /// Finds what the type variables of a definition stand for from the arguments that are values, which are then found
    /// where that was needed.
    fn bind_types<'e>(&mut self, of: usize, args: Vec<Arg<'e>>, types: &mut FxHashMap<String, Type>) -> Option<Vec<Arg<'e>>> {
        let definition = &self.module.definitions[of];
        let variables = self.variables_of(definition);
        let mut args: Vec<Option<Arg<'e>>> = args.into_iter().map(Some).collect();
        // What takes its type from the context may take it from a variable that another argument binds.
        let (late, early): (Vec<usize>, Vec<usize>) = (0..args.len()).partition(|k| args[*k].as_ref().is_some_and(Arg::needs_hint));
        for k in early.into_iter().chain(late) {
            let ty = &definition.params[k].ty;
            if matches!(ty.kind, TypeKind::Function(..)) || variables.iter().all(|v| types.contains_key(*v) || !mentions(ty, v)) {
                continue;
            }
            // Whole numbers are of the type that is wanted, so they bind none, but where a function must be told its type.
            if matches!(&args[k], Some(Arg::Written(e)) if is_number(e)) && !definition.takes_functions() {
                continue;
            }
            args[k] = match args[k].take() {
                Some(Arg::Written(e)) => Some(Arg::Found(self.infer(e, None), e.span)),
                found => found,
            };
            if let Some(Arg::Found(typed, _)) = &args[k] {
                match &typed.ty {
                    Some(found) => bind_variables(ty, found, &variables, types),
                    None => return None,
                }
            }
        }
        // What no argument binds is as in the definition by itself: an argument of another shape is an error that is said
        // where the arguments are matched.
        let own = self.instances.iter().find(|((k, _), id)| *k == of && matches!(self.callees[of], Callee::Generic(own) if own == **id));
        let own: Vec<Scalar> = own.map_or(vec![], |((_, scalars), _)| scalars.clone());
        for (v, variable) in variables.into_iter().enumerate() {
            if definition.params.iter().any(|p| !matches!(p.ty.kind, TypeKind::Function(..)) && mentions(&p.ty, variable)) {
                types.entry(variable.to_string()).or_insert(Type::Scalar(own.get(v).copied().unwrap_or(USUAL[0])));
            }
        }
        args.into_iter().collect()
    }

    /// The function that a generic definition is at these types.
    pub fn instance(&mut self, k: usize, types: &FxHashMap<String, Type>, span: Span) -> Option<FunctionId> {
        let definition = &self.module.definitions[k];
        let variables = self.variables_of(definition);
        let mut scalars = vec![];
        for variable in &variables {
            match types.get(*variable) {
                Some(Type::Scalar(s)) => scalars.push(*s),
                Some(ty) => {
                    let text = format!("the type `{variable}` of `{}` would be `{}`", definition.name.text, self.describe(ty));
                    self.report(
                        Diagnostic::error(span, text).label(parameters_span(definition), "defined here").note(
                            "a type variable stands for the type of elements, such as `f64` or `i64`; axes are written in front of it",
                        ),
                    );
                    return None;
                }
                None => scalars.push(USUAL[0]),
            }
        }
        let key = (k, scalars);
        if let Some(id) = self.instances.get(&key) {
            return (!self.broken.contains(id)).then_some(*id);
        }
        let name = self.instance_name(&definition.name.text, &key.1);
        let spelled: Vec<String> = variables.iter().zip(&key.1).map(|(v, s)| format!("`{v}` = `{}`", s.name())).collect();
        let errors = self.error_count();
        self.applications.push(Application { span, text: format!("called here with {}", spelled.join(", ")), template: false });
        let types = at(&variables, &key.1);
        let id = self.header(k, name, types.clone());
        self.instances.insert(key, id);
        self.body(k, id, types);
        self.applications.pop();
        if self.error_count() > errors || self.unknown_results.contains(&id) {
            self.broken.insert(id);
            return None;
        }
        Some(id)
    }

    /// What the variables of a generic definition stand for where it is applied to values of these types.
    pub fn variables_at(&self, k: usize, types: &[Type]) -> FxHashMap<String, Type> {
        let definition = &self.module.definitions[k];
        let variables = self.variables_of(definition);
        let mut bound = FxHashMap::default();
        definition.params.iter().zip(types).for_each(|(p, ty)| bind_variables(&p.ty, ty, &variables, &mut bound));
        bound
    }

    /// A name for an instance that no definition has.
    fn instance_name(&self, name: &str, scalars: &[Scalar]) -> String {
        let suffix: Vec<&str> = scalars.iter().map(|s| s.name()).collect();
        let wanted = format!("{name}_{}", suffix.join("_"));
        let taken = |name: &str| self.functions.contains_key(name) || self.program.find(name).is_some();
        std::iter::once(wanted.clone()).chain((2..).map(|k| format!("{wanted}_{k}"))).find(|n| !taken(n)).unwrap_or(wanted)
    }

    fn report_unknown_type(&mut self, variable: &str, definition: &Definition, span: Span) {
        let text = format!("the type `{variable}` of `{}` is not known from these arguments", definition.name.text);
        self.report(Diagnostic::error(span, text).label(parameters_span(definition), "defined here"));
    }

    /// The body of a template in the place of its call.
    fn call_template(&mut self, k: usize, name: &str, args: Vec<Arg<'_>>, span: Span, hint: Option<&Type>) -> Typed {
        let definition = &self.module.definitions[k];
        let variables = self.variables_of(definition);
        let mut types = FxHashMap::default();
        let Some(args) = self.bind_types(k, args, &mut types) else { return Typed::poison() };
        let (header, mut context) = self.in_context(Context { scope: vec![], types }, |c| (c.parameters(definition), c.context()));
        let (values, functions): (Vec<_>, Vec<_>) = args.into_iter().enumerate().partition(|(k, _)| header.params[*k].is_some());
        let (places, values): (Vec<usize>, Vec<Arg<'_>>) = values.into_iter().unzip();
        let params = places.iter().filter_map(|k| header.params[*k]).collect();
        let signature = Signature { name, sizes: header.sizes.clone(), params, definition: Some(definition), places: places.clone() };
        let mut matched = self.match_arguments(&signature, values, None);

        let mut given = vec![];
        for (k, arg) in functions {
            let param = Parameter { name, definition, k, sizes: &header.sizes, variables: &variables };
            given.push((k, self.function_argument(&param, arg, &mut context, &mut matched.bound)));
        }
        if !matched.fits || given.iter().any(|(_, f)| f.is_none()) {
            return Typed::poison();
        }

        // The body sees sizes as the caller's, values under the parameters' names, and functions as they are.
        context.scope.clear();
        for size in &header.sizes {
            let binding = match matched.bound.get(size) {
                Some(bound) => bound.as_var().map_or_else(|| Binding::Value(size_exp(bound), Type::I64), Binding::Var),
                None => Binding::Poison,
            };
            context.scope.push((self.program.vars.name(*size).to_string(), binding));
        }
        let patterns: Vec<Pattern> = places.iter().map(|k| Pattern::Name(definition.params[*k].name.clone())).collect();
        let values = patterns.iter().zip(matched.found).map(|(p, v)| (p, v, p.span())).collect();
        self.applications.push(Application { span, text: format!("in this call of `{name}`"), template: true });
        let found = self.in_context(context, |c| {
            c.binding(values, span, |c| {
                for (k, f) in given {
                    let Name { text, .. } = &definition.params[k].name;
                    c.bind_name(text, f.map_or(Binding::Poison, Binding::Function));
                }
                if let Some(written) = open_result_type(definition) {
                    return c.open_result(definition, written);
                }
                match &definition.result {
                    None => c.infer(&definition.body, hint),
                    Some(written) => match c.read_type(written) {
                        Some(declared) => c.result(definition, Some(&declared)),
                        None => Typed::poison(),
                    },
                }
            })
        });
        self.applications.pop();
        let found = match found.ty {
            Some(ty) => Typed::new(self.in_doubt(found.exp, &ty, matched.doubts, span), ty),
            None => found,
        };
        if definition.span.is_of_library() { Typed { exp: found.exp.called_from(span), ty: found.ty } } else { found }
    }

    /// A function as an argument, if it is one that the parameter takes. Binds the sizes and types that its result gives.
    fn function_argument(
        &mut self,
        param: &Parameter<'_>,
        arg: Arg<'_>,
        context: &mut Context,
        bound: &mut FxHashMap<Var, Size>,
    ) -> Option<FunctionValue> {
        let Parameter { name, definition, k, .. } = *param;
        let written = &definition.params[k];
        let TypeKind::Function(params, result) = &written.ty.kind else { return None };
        let place = written.name.span.to(written.ty.span);
        let parameter = written.name.text.as_str();
        let exp = match arg {
            Arg::Written(e) if self.is_function(e) => e,
            arg => {
                let span = arg.span();
                let ty = match arg {
                    Arg::Written(e) => self.infer(e, None).ty?,
                    Arg::Found(found, _) => found.ty?,
                };
                let text = format!("argument `{parameter}` of `{name}` is a function, but this has type `{}`", self.describe(&ty));
                self.report(
                    Diagnostic::error(span, text)
                        .label(place, format!("`{parameter}` is declared as a function"))
                        .note("give a lambda `|x| e`, an operator `(+)`, or the name of a function"),
                );
                return None;
            }
        };
        let f = self.function_value(exp)?;
        if let Some(takes) = self.arity(&f).filter(|takes| *takes != params.len()) {
            let text = format!(
                "{} takes {}, but `{parameter}` of `{name}` is applied to {}",
                function_text(exp),
                count(takes, "argument"),
                count(params.len(), "value")
            );
            self.report(Diagnostic::error(exp.span, text).label(place, "declared here"));
            return None;
        }
        let mut types = vec![];
        for ty in params {
            if let Some(variable) = param.variables.iter().find(|v| mentions(ty, v) && !context.types.contains_key(**v)) {
                self.report_unknown_type(variable, definition, exp.span);
                return None;
            }
            let ty = self.in_context(context.clone(), |c| c.read_type(ty))?.map_sizes(&mut |s| s.substitute(&|v| bound.get(&v).cloned()));
            if let Some(size) = super::scope::leaking(&ty, param.sizes) {
                let text = format!("the size `{}` of `{name}` is not known from these arguments", self.program.vars.name(size));
                self.report(Diagnostic::error(exp.span, text).label(place, "a size of what the function is applied to"));
                return None;
            }
            types.push(ty);
        }
        // In the body of a template all that fits its types was tried already, and trying it in each call would double the
        // work at each level.
        let needed = param.variables.iter().any(|v| mentions(result, v) && !context.types.contains_key(*v))
            || param.sizes.iter().any(|s| !bound.contains_key(s));
        if self.applications.iter().any(|a| a.template) && !needed {
            return Some(f);
        }
        let shown: Vec<String> = types.iter().map(|t| format!("`{}`", self.describe(t))).collect();
        let text = format!("`{parameter}` is applied to {}", shown.join(", "));
        let given = self.trial(&f, types, exp.span, Application { span: place, text, template: false })?;
        bind_variables(result, &given, param.variables, &mut context.types);
        for variable in param.variables.iter().filter(|v| mentions(result, v)) {
            context.types.entry(variable.to_string()).or_insert(Type::Scalar(USUAL[0]));
        }
        let declared = self.in_context(context.clone(), |c| c.read_type(result))?;
        super::calls::bind(param.sizes, &declared, &given, &mut |v, size| {
            bound.entry(v).or_insert_with(|| size.clone());
        });
        let want = declared.map_sizes(&mut |s| s.substitute(&|v| bound.get(&v).cloned()));
        if self.same_type(&given, &want) {
            return Some(f);
        }
        let (given_text, want_text) = (self.describe(&given), self.describe(&want));
        let text = format!("argument `{parameter}` of `{name}` gives `{given_text}`, but `{want_text}` is wanted");
        let diagnostic = Diagnostic::error(exp.span, text).here(format!("gives `{given_text}`")).label(place, "declared here");
        let diagnostic = self.explain_difference(diagnostic, &given, &want);
        self.report(diagnostic);
        None
    }
}

/// A parameter that is a function, in a call of its definition.
struct Parameter<'p> {
    name: &'p str,
    definition: &'p Definition,
    k: usize,
    sizes: &'p [Var],
    variables: &'p [&'p str],
}

/// The type variables of a definition, in order: upper-case names in the types of its parameters that no type has. One
/// that is like the name of a type is a misspelt type, and is reported as such.
fn type_variables<'d>(module: &Module, definition: &'d Definition) -> Vec<&'d str> {
    let mut names = vec![];
    definition.params.iter().for_each(|p| upper_case_names(&p.ty, &mut names));
    let types = || module.types.iter().map(|t| t.name.text.as_str());
    names.retain(|name| types().all(|t| t != *name) && closest(name, types()).is_none());
    names
}

/// The parameters whose types mention each type variable of a definition.
pub fn generic_parameters(module: &Module, definition: &Definition) -> Vec<Vec<String>> {
    let of = |variable: &str| {
        let params = definition.params.iter().filter(|p| mentions(&p.ty, variable));
        params.map(|p| p.name.text.clone()).collect()
    };
    type_variables(module, definition).into_iter().map(of).collect()
}

/// The upper-case names of types in a type, each once.
fn upper_case_names<'d>(ty: &'d TypeExp, out: &mut Vec<&'d str>) {
    match &ty.kind {
        TypeKind::Name(name) => {
            if name.starts_with(|c: char| c.is_uppercase()) && !out.contains(&name.as_str()) {
                out.push(name)
            }
        }
        TypeKind::Array(_, element) => upper_case_names(element, out),
        TypeKind::Structured(_, _, array) => upper_case_names(array, out),
        TypeKind::Tuple(parts) => parts.iter().for_each(|t| upper_case_names(t, out)),
        TypeKind::Record(fields) => fields.iter().for_each(|(_, t)| upper_case_names(t, out)),
        TypeKind::Function(params, result) => params.iter().chain([&**result]).for_each(|t| upper_case_names(t, out)),
        TypeKind::Scalar(_) | TypeKind::Error => {}
    }
}

fn mentions(ty: &TypeExp, variable: &str) -> bool {
    match &ty.kind {
        TypeKind::Name(name) => name == variable,
        TypeKind::Array(_, element) => mentions(element, variable),
        TypeKind::Structured(_, _, array) => mentions(array, variable),
        TypeKind::Tuple(parts) => parts.iter().any(|t| mentions(t, variable)),
        TypeKind::Record(fields) => fields.iter().any(|(_, t)| mentions(t, variable)),
        TypeKind::Function(params, result) => params.iter().chain([&**result]).any(|t| mentions(t, variable)),
        TypeKind::Scalar(_) | TypeKind::Error => false,
    }
}

/// Matches a type as it is written with a type: what the variables stand for that are not bound yet.
fn bind_variables(written: &TypeExp, ty: &Type, variables: &[&str], types: &mut FxHashMap<String, Type>) {
    match (&written.kind, ty) {
        (TypeKind::Name(name), ty) if variables.contains(&name.as_str()) => {
            if !types.contains_key(name) {
                types.insert(name.clone(), ty.clone());
            }
        }
        (TypeKind::Array(axes, element), ty) => {
            if let Some(rest) = ty.without_axes(axes.len()) {
                bind_variables(element, &rest, variables, types)
            }
        }
        (TypeKind::Tuple(parts), Type::Tuple(found)) if parts.len() == found.len() => {
            parts.iter().zip(found).for_each(|(w, t)| bind_variables(w, t, variables, types))
        }
        (TypeKind::Structured(_, _, array), Type::Tuple(found)) if found.structure().is_some() => {
            // Both of its axes are the matrix's.
            if let (TypeKind::Array(_, element), Some(scalar)) = (&array.kind, found[0].scalar()) {
                bind_variables(element, &Type::Scalar(scalar), variables, types)
            }
        }
        (TypeKind::Record(fields), Type::Tuple(found)) if fields.len() == found.len() => {
            fields.iter().zip(found).for_each(|((_, w), t)| bind_variables(w, t, variables, types))
        }
        _ => {}
    }
}

/// What variables stand for.
fn at(variables: &[&str], scalars: &[Scalar]) -> FxHashMap<String, Type> {
    variables.iter().zip(scalars).map(|(v, s)| (v.to_string(), Type::Scalar(*s))).collect()
}

/// Where a definition's parameters stand.
pub fn parameters_span(definition: &Definition) -> Span {
    definition.params.iter().map(|p| p.name.span.to(p.ty.span)).reduce(Span::to).unwrap_or(definition.name.span)
}
