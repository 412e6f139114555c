//! Checks a syntax tree and elaborates it to the IR in one walk.
//!
//! Each surface expression is inferred under a *hint*, the type its context wants (if it is known), and gives its IR
//! expression and its type together. Hints let a whole-number literal be a float and give singletons their sizes;
//! whether the type found is the type wanted is compared afterwards, where the context knows why it wants it.
//! An erroneous expression has no type (`Typed::ty` is `None`), which silences everything that follows from it.
//!
//! * `sizes`: types from text, comparing sizes, sizes bound to variables
//! * `scope`: names, and bindings that float to the nearest scope
//! * `states`: the types of loops' states
//! * `infer`, `operators`, `binders`, `subscripts`, `calls`: expressions
//! * `functions`, `apply`: functions as values, and their bodies in the place of their calls
//! * `templates`: definitions that are generic or take functions; `combinators`: `map`, `reduce` and the like
//! * `operator_calls`: derivative operators as they are written; `derive`: the functions they stand for
//! * `sparse`: Jacobians and Hessians as sparse matrices
//! * `existential`: results whose sizes depend on data
//! * `structured`: matrices of which a part is stored
//! * `records`, `type_names`: records and names of types; `erase`: records to tuples, when all is checked
//! * `messages`: expressions and types as text

mod annotations;
mod apply;
mod binders;
mod calls;
mod combinators;
mod derive;
mod erase;
mod existential;
mod functions;
mod hints;
mod infer;
mod lift;
mod loops;
mod messages;
mod operator_calls;
mod operators;
mod records;
mod rules;
mod scope;
mod sizes;
mod sparse;
mod states;
mod structured;
mod subscripts;
mod templates;
mod type_names;

pub use derive::{DerivativeKind, dense_jacobian, derive, derive_stored, float_params};
pub use sparse::{Format, Storage};
pub use templates::generic_parameters;

use crate::diagnostic::{Diagnostic, Span};
use crate::ir::build::lets;
use crate::ir::{Body, Exp, Function, FunctionId, Program, Scalar, Size, Type, Var};
use crate::syntax::{ast, names};
use apply::Application;
use binders::IndexCell;
use existential::open_result_type;
use rustc_hash::{FxHashMap, FxHashSet};
use scope::Binding;
use templates::Callee;

/// Enough for the deepest tree that the walk accepts.
const STACK_BYTES: usize = 256 << 20;

/// The program and what is wrong with it. The program may be used only if no diagnostic is an error.
pub fn check(module: &ast::Module) -> (Program, Vec<Diagnostic>) {
    check_at(module, None)
}

/// The same, where the function of a generic definition's name has these types of elements.
pub fn check_at(module: &ast::Module, at: Option<(&str, &[Scalar])>) -> (Program, Vec<Diagnostic>) {
    // The walk recurses as deep as the tree is high, which the caller's stack may be too small for.
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(crate::memory::stack(STACK_BYTES)).spawn_scoped(scope, || walk(module, at));
        match thread.expect("a thread can be started").join() {
            Ok(checked) => checked,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn walk(module: &ast::Module, at: Option<(&str, &[Scalar])>) -> (Program, Vec<Diagnostic>) {
    let mut checker = Checker::new(module);
    checker.chosen = at.and_then(|(name, types)| Some((*checker.functions.get(name)?, types.to_vec())));
    checker.declare_types();
    let order = checker.order();
    for k in 0..module.definitions.len() {
        checker.declare(k);
    }
    for k in order {
        checker.define(k);
    }
    let parts = checker.parts.values().flatten().copied().collect();
    erase::erase(&mut checker.program, 0, &parts);
    checker.attach_rules();
    let mut diagnostics = checker.diagnostics;
    diagnostics.sort_by_key(|d| d.labels.first().map(|label| label.span));
    (checker.program, diagnostics)
}

/// An IR expression and its type; no type where an error was reported.
struct Typed {
    exp: Exp,
    ty: Option<Type>,
}

impl Typed {
    fn new(exp: Exp, ty: Type) -> Typed {
        Typed { exp, ty: Some(ty) }
    }
    fn poison() -> Typed {
        Typed { exp: Exp::Tuple(vec![]), ty: None }
    }
}

struct Checker<'a> {
    module: &'a ast::Module,
    program: Program,
    diagnostics: Vec<Diagnostic>,
    /// The definition that a function's name stands for.
    functions: FxHashMap<&'a str, usize>,
    /// What each definition is to its callers.
    callees: Vec<Callee>,
    /// The definition that a function comes from.
    origins: FxHashMap<FunctionId, usize>,
    /// Functions that were closed over: how messages call them, and where they stand.
    lifted: FxHashMap<FunctionId, (String, Span)>,
    /// The types that one generic definition is wanted at.
    chosen: Option<(usize, Vec<Scalar>)>,
    /// Generic definitions at scalar types.
    instances: FxHashMap<(usize, Vec<Scalar>), FunctionId>,
    /// Definitions that call themselves, in the end.
    recursive: FxHashSet<usize>,
    /// Definitions with functions as parameters that have errors: calls of them are not checked.
    broken_templates: FxHashSet<usize>,
    /// Functions whose parameters could not be read: calls of them are not checked.
    broken: FxHashSet<FunctionId>,
    /// Functions whose result type is not known.
    unknown_results: FxHashSet<FunctionId>,
    derived: derive::Memo,
    /// What a type's name stands for, and the names that have no meaning.
    types: FxHashMap<&'a str, &'a ast::TypeDefinition>,
    broken_types: FxHashSet<String>,
    /// The names of types that are being read, with their places, outermost first.
    inside_types: Vec<(String, Span)>,
    /// The sizes that the type being read leaves open.
    open_sizes: Vec<Var>,
    /// The variables of a record's fields, where it is taken apart.
    parts: FxHashMap<Var, Vec<Var>>,
    scope: Vec<(String, Binding)>,
    /// What the type variables of the definition stand for.
    type_variables: FxHashMap<String, Type>,
    /// The calls whose bodies the current expression stands in, outermost first.
    applications: Vec<Application>,
    /// The name of the function whose body is being checked.
    inside: String,
    /// How many bodies were put in the place of calls in this definition.
    expanded: usize,
    /// Bindings that the nearest enclosing scope will make.
    floating: Vec<(Vec<Var>, Exp)>,
    /// The binders around the current expression, outermost first.
    indices: Vec<IndexCell>,
    /// How many conditions stand around the current expression, within the definition.
    conditions: usize,
    /// Conditions that are known to hold there.
    assumed: Vec<Exp>,
    depth: usize,
    /// How often loops may still be checked again with a state of another type.
    trials: usize,
    /// `let m = n - 1`: variables that are sizes of others.
    defined_sizes: FxHashMap<Var, Size>,
}

impl<'a> Checker<'a> {
    fn new(module: &'a ast::Module) -> Checker<'a> {
        let mut checker = Checker {
            module,
            program: Program::default(),
            diagnostics: vec![],
            functions: FxHashMap::default(),
            callees: vec![],
            origins: FxHashMap::default(),
            lifted: FxHashMap::default(),
            chosen: None,
            instances: FxHashMap::default(),
            recursive: FxHashSet::default(),
            broken_templates: FxHashSet::default(),
            broken: FxHashSet::default(),
            unknown_results: FxHashSet::default(),
            derived: derive::Memo::default(),
            types: FxHashMap::default(),
            broken_types: FxHashSet::default(),
            inside_types: vec![],
            open_sizes: vec![],
            parts: FxHashMap::default(),
            scope: vec![],
            type_variables: FxHashMap::default(),
            applications: vec![],
            inside: String::new(),
            expanded: 0,
            floating: vec![],
            indices: vec![],
            conditions: 0,
            assumed: vec![],
            depth: 0,
            trials: states::MOST_TRIALS,
            defined_sizes: FxHashMap::default(),
        };
        for (k, definition) in module.definitions.iter().enumerate() {
            match checker.functions.get(definition.name.text.as_str()) {
                None => {
                    checker.functions.insert(&definition.name.text, k);
                }
                Some(first) => {
                    let first = module.definitions[*first].name.span;
                    checker.report(
                        Diagnostic::error(definition.name.span, format!("`{}` is defined twice", definition.name.text))
                            .here("defined again here")
                            .label(first, "first defined here"),
                    );
                }
            }
        }
        checker
    }

    /// Adds a diagnostic. What stands in the body of a function that is applied several times is said once.
    fn report(&mut self, diagnostic: Diagnostic) {
        if self.applications.is_empty() {
            self.diagnostics.push(diagnostic);
            return;
        }
        let place = |d: &Diagnostic| d.labels.first().map(|label| label.span);
        if self.diagnostics.iter().any(|d| d.message == diagnostic.message && place(d) == place(&diagnostic)) {
            return;
        }
        let diagnostic = self.with_applications(diagnostic);
        self.diagnostics.push(diagnostic);
    }

    /// Definitions with those they call before them. Reports recursion; what is in a cycle has no result type unless
    /// it is declared.
    fn order(&mut self) -> Vec<usize> {
        let definitions = &self.module.definitions;
        let calls: Vec<Vec<(usize, Span)>> = definitions
            .iter()
            .map(|d| {
                let mut calls = vec![];
                names::for_each_free(&mut d.clone(), &mut |name, span| {
                    calls.extend(self.definition_named(name, span).map(|k| (k, span)));
                });
                calls
            })
            .collect();
        let mut order = vec![];
        let mut done = vec![false; definitions.len()];
        for start in 0..definitions.len() {
            // Depth first, on a stack of its own so that long chains of calls are no trouble.
            let mut path: Vec<(usize, usize)> = vec![(start, 0)];
            while let Some((k, next)) = path.last_mut() {
                let k = *k;
                if done[k] {
                    path.pop();
                    continue;
                }
                match calls[k].get(*next) {
                    None => {
                        done[k] = true;
                        order.push(k);
                        path.pop();
                    }
                    Some((callee, _)) => {
                        *next += 1;
                        match path.iter().position(|(j, _)| j == callee) {
                            None => path.push((*callee, 0)),
                            Some(from) => {
                                let cycle: Vec<(usize, usize)> = path[from..].to_vec();
                                self.report_cycle(&cycle, &calls);
                            }
                        }
                    }
                }
            }
        }
        order
    }

    fn report_cycle(&mut self, cycle: &[(usize, usize)], calls: &[Vec<(usize, Span)>]) {
        let definitions = &self.module.definitions;
        let name = |k: usize| definitions[k].name.text.as_str();
        let mut message = format!("`{}`", name(cycle[0].0));
        for (k, (at, _)) in cycle.iter().enumerate() {
            let callee = cycle.get(k + 1).map_or(cycle[0].0, |(next, _)| *next);
            message += if k == 0 { " calls " } else { ", which calls " };
            message += &if callee == *at { "itself".to_string() } else { format!("`{}`", name(callee)) };
        }
        let step = |(k, next): &(usize, usize)| calls[*k][next - 1];
        let mut diagnostic = Diagnostic::error(step(&cycle[0]).1, format!("recursion: {message}"));
        for (count, at) in cycle.iter().enumerate() {
            let (callee, span) = step(at);
            let text = format!("`{}` calls `{}` here", name(at.0), name(callee));
            diagnostic = if count == 0 { diagnostic.here(text) } else { diagnostic.label(span, text) };
        }
        self.report(diagnostic.note("definitions may not call themselves; repeat with `loop`, `for` or `sum`"));
        self.recursive.extend(cycle.iter().map(|(k, _)| *k));
    }

    /// Makes the function of a definition with its sizes, parameters and declared result; its body comes later.
    fn header(&mut self, k: usize, name: String, types: FxHashMap<String, Type>) -> FunctionId {
        let definition = &self.module.definitions[k];
        let id = FunctionId(self.program.functions.len() as u32);
        let (header, result) = self.aside(types, |c| {
            let header = c.parameters(definition);
            // What is open is known when the body is checked.
            let closed = definition.result.as_ref().filter(|_| open_result_type(definition).is_none());
            let result = closed.and_then(|ty| c.read_type(ty));
            (header, result)
        });
        if header.unread {
            self.broken.insert(id);
        }
        if definition.result.is_none() || result.is_none() {
            self.unknown_results.insert(id);
        }
        self.origins.insert(id, k);
        self.program.functions.push(Function {
            name,
            sizes: header.sizes,
            params: header.params.into_iter().flatten().collect(),
            result: result.unwrap_or(Type::tuple(vec![])),
            body: Body::Exp(Exp::Tuple(vec![])),
            signature: None,
            hidden: None,
            statics: statics(definition),
            span: definition.span,
        });
        id
    }

    /// Checks the body of a definition's function.
    fn body(&mut self, k: usize, id: FunctionId, types: FxHashMap<String, Type>) {
        let definition = &self.module.definitions[k];
        let declared =
            (definition.result.is_some() && !self.unknown_results.contains(&id)).then(|| self.program.function(id).result.clone());
        let errors = self.error_count();
        let outside = std::mem::replace(&mut self.inside, self.program.function(id).name.clone());
        let (found, result) = self.aside(types, |c| {
            c.enter_header(definition, id);
            let mut taken_apart = vec![];
            for param in c.program.function(id).params.clone() {
                let ty = c.program.vars.ty(param).clone();
                c.take_apart(param, &ty, &mut taken_apart);
            }
            if let Some(written) = open_result_type(definition) {
                c.open_body(id, definition, written, taken_apart);
                return (None, None);
            }
            let mut found = c.result(definition, declared.as_ref());
            found.exp = lets(taken_apart, found.exp);
            let result = match (&found.ty, &definition.result) {
                (Some(ty), None) => c.outward(ty, id, definition),
                _ => None,
            };
            (Some(found), result)
        });
        self.inside = outside;
        let Some(found) = found else { return };
        if let Some(result) = result {
            self.program.functions[id.0 as usize].result = result;
            self.unknown_results.remove(&id);
        } else if found.ty.is_none() && self.error_count() == errors && definition.result.is_none() {
            self.unknown_results.insert(id);
        }
        self.program.functions[id.0 as usize].body = Body::Exp(found.exp);
    }

    /// The body of a definition, whose names are in scope, as its result.
    fn result(&mut self, definition: &ast::Definition, declared: Option<&Type>) -> Typed {
        self.scoped(&scope::Place::Body(&definition.name.text), definition.body.span, |c| match (declared, &definition.result) {
            (Some(want), Some(written)) => {
                let found = c.infer(&definition.body, Some(want));
                let agrees = c.require(&found, want, definition.body.span, |c, d| {
                    let text = format!("`{}` is declared to give `{}`", definition.name.text, c.describe(want));
                    d.label(written.span, text)
                });
                if agrees { found } else { Typed::poison() }
            }
            _ => c.infer(&definition.body, None),
        })
    }

    /// Runs `f` apart from the expression that is being checked: with nothing in scope, and no binder around.
    fn aside<T>(&mut self, types: FxHashMap<String, Type>, f: impl FnOnce(&mut Self) -> T) -> T {
        let scope = std::mem::take(&mut self.scope);
        let types = std::mem::replace(&mut self.type_variables, types);
        let floating = std::mem::take(&mut self.floating);
        let indices = std::mem::take(&mut self.indices);
        let conditions = std::mem::take(&mut self.conditions);
        let assumed = std::mem::take(&mut self.assumed);
        let defined_sizes = std::mem::take(&mut self.defined_sizes);
        let result = f(self);
        self.scope = scope;
        self.type_variables = types;
        self.floating = floating;
        self.indices = indices;
        self.conditions = conditions;
        self.assumed = assumed;
        self.defined_sizes = defined_sizes;
        result
    }

    /// The definition that a function comes from.
    fn definition_of(&self, id: FunctionId) -> Option<&'a ast::Definition> {
        self.origins.get(&id).map(|k| &self.module.definitions[*k])
    }

    fn error_count(&self) -> usize {
        self.diagnostics.iter().filter(|d| d.severity == crate::diagnostic::Severity::Error).count()
    }
}

/// The positions of the parameters that are marked `static`, of those that are values.
fn statics(definition: &ast::Definition) -> Vec<usize> {
    let values = definition.params.iter().filter(|p| !matches!(p.ty.kind, ast::TypeKind::Function(..)));
    values.enumerate().filter(|(_, p)| p.fixed.is_some()).map(|(k, _)| k).collect()
}
