//! The whole compiler between checking and lowering, as one list of named passes.
//!
//! `differentiate` first defines the derived functions that are called, innermost first; what is differentiated is
//! inlined and settled (simplified, its sums dissolved) before. The last derivatives are seen as the rules give them, then
//! settled too (`settle`). Then the passes below run on the one function wanted.
//! Every pass takes a program to a program of the same meaning; `observe` sees the program after each.

use crate::check::dense_jacobian;
use crate::cost::compare::{Less, less, second_is_typically_less};
use crate::cost::{Poly, cost};
use crate::differentiate::saving::Saving;
use crate::differentiate::{differentiate, partials};
use crate::ir::build::{bind_sizes, exp_size, i64, if_, op2, size_exp};
use crate::ir::facts::{Facts, Proofs};
use crate::ir::fingerprint::fingerprint;
use crate::ir::traverse::{Substitution, copy, substitute};
use crate::ir::*;
use crate::optimize::add_to_states::add_to_states;
use crate::optimize::count_bounded::count_bounded;
use crate::optimize::dissolve_singletons::dissolve_singletons;
use crate::optimize::factor_out::factor_out;
use crate::optimize::forget_states::forget_states;
use crate::optimize::fuse::fuse;
use crate::optimize::fuse_siblings::fuse_siblings;
use crate::optimize::gather::gather;
use crate::optimize::hoist::hoist;
use crate::optimize::inline::{callees, inline, inline_for_derivatives};
use crate::optimize::interchange::interchange;
use crate::optimize::invert_divisors::invert_divisors;
use crate::optimize::merge_sums::merge_sums;
use crate::optimize::normalize::normalize;
use crate::optimize::open_records::open_records;
use crate::optimize::pair_factors::pair_factors;
use crate::optimize::preaccumulate::preaccumulate;
use crate::optimize::products::products;
use crate::optimize::read_around::read_around;
use crate::optimize::reassociate::reassociate;
use crate::optimize::share::share;
use crate::optimize::simplify::guards::plain_zero;
use crate::optimize::simplify::simplify;
use crate::optimize::skip_zeros::skip_zeros;
use crate::optimize::slide::slide;
use crate::optimize::solve_predicates::solve_predicates;
use crate::optimize::split_sums::split_sums;
use crate::optimize::store_or_recompute::store_or_recompute;
use crate::optimize::sum_first::sum_first;
use crate::optimize::tabulate::tabulate;
use crate::optimize::take_out::take_out;
use crate::optimize::unroll::unroll;
use crate::optimize::{Context, Settled};
use crate::sparse;
use rustc_hash::{FxHashMap, FxHashSet};

/// One step on an expression.
type Pass = fn(&mut Context, Exp) -> Exp;

/// Passes that repeat until none changes anything.
const SETTLE: &[(&str, Pass)] = &[
    ("simplify", simplify),
    ("normalize", normalize),
    ("solve_predicates", solve_predicates),
    ("dissolve_singletons", dissolve_singletons),
    ("split_sums", split_sums),
    ("fuse", fuse),
];

/// Passes that run once each, each followed by settling. The bound on operations (a gradient costs at most four times
/// its function, its inputs and outputs) holds before them.
const FINISH: &[(&str, Pass)] = &[
    ("expand_partials", finish_derivatives),
    (REASSOCIATE, reassociate),
    ("take_out", take_out),
    ("store_or_recompute", store_or_recompute),
    ("hoist", hoist),
    ("preaccumulate", preaccumulate),
    ("interchange", interchange),
    (GATHER, gather),
    ("tabulate", tabulate),
    ("sum_first", sum_first),
    ("factor_out", factor_out),
    ("forget_states", forget_states),
    ("share", share),
];

/// Last of all, since simplification takes such loops apart.
const LAST: &[(&str, Pass)] = &[
    ("read_around", read_around),
    ("merge_sums", merge_sums),
    ("fuse_siblings", fuse_siblings),
    ("pair_factors", pair_factors),
    ("products", products),
    ("unroll", unroll),
    ("skip_zeros", skip_zeros),
    ("add_to_states", add_to_states),
    ("slide", slide),
    ("invert_divisors", invert_divisors),
];

/// The names for `--after`, in the order of their last run.
pub fn pass_names() -> Vec<&'static str> {
    let mut names = vec!["differentiate", "settle", "inline"];
    names.extend([SETTLE, FINISH, LAST].concat().iter().map(|(name, _)| *name));
    names
}

/// The choices that lowering makes for itself, and that can be left out as a pass can.
const CONTRACT: &str = "contract";
const LANES: &str = "lanes";
/// The pass that runs before derivatives are taken, too.
const REASSOCIATE: &str = "reassociate";
/// The pass after which data say how many elements an array has.
const GATHER: &str = "gather";
/// Code for the sizes and values of a call.
const SPECIALIZE: &str = "specialize";

/// What can be left out: code is made without it, only slower code. Calls are always inlined, and the formulas of partial
/// derivatives always expanded.
pub fn optional_passes() -> Vec<&'static str> {
    let passes = [SETTLE, FINISH, LAST].concat().into_iter().map(|(name, _)| name);
    passes.filter(|name| *name != FINISH[0].0).chain([CONTRACT, LANES, SPECIALIZE]).collect()
}

/// What is left out, to see what it is good for: names of `optional_passes`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Without(pub Vec<&'static str>);

impl Without {
    pub fn has(&self, pass: &str) -> bool {
        self.0.contains(&pass)
    }
    /// Whether products of matrices are lowered as any other sum.
    pub fn contractions(&self) -> bool {
        self.has(CONTRACT)
    }
    /// Whether code is made for all sizes and values.
    pub fn specialization(&self) -> bool {
        self.has(SPECIALIZE)
    }
    /// Whether no loop runs in lanes.
    pub fn lanes(&self) -> bool {
        self.has(LANES)
    }
}

/// The pass up to which operation bounds hold, and the one behind it.
pub const LAST_BOUNDED_PASS: &str = SETTLE[SETTLE.len() - 1].0;
pub const FIRST_UNBOUNDED_PASS: &str = FINISH[0].0;

/// The last pass after which a program says most: what comes then is for the processor.
pub const LAST_SHOWN_PASS: &str = "add_to_states";

/// Prepares one function for the interpreter's or the compiler's use: call-free and optimised. Stops after the pass
/// `until`, if one is named.
pub fn prepare(program: &Program, id: FunctionId, until: Option<&str>) -> Program {
    prepare_observed(program, id, until, &mut |_, _| {})
}

/// As `prepare`, where derivatives keep as much as is said.
pub fn prepare_within(program: &Program, id: FunctionId, until: Option<&str>, saving: Saving) -> Program {
    prepare_without(program, id, until, saving, &Without::default())
}

/// As `prepare_within`, and some passes are left out.
pub fn prepare_without(program: &Program, id: FunctionId, until: Option<&str>, saving: Saving, without: &Without) -> Program {
    let mut compiler = Compiler { without: without.clone(), ..Compiler::new(program, saving) };
    compiler.prepare(id, until, &mut |_, _| {});
    compiler.program
}

/// As `prepare`; `observe` is shown the program after every pass that ran, with the pass's name.
pub fn prepare_observed(program: &Program, id: FunctionId, until: Option<&str>, observe: &mut dyn FnMut(&str, &Program)) -> Program {
    let mut compiler = Compiler::new(program, Saving::All);
    compiler.prepare(id, until, observe);
    compiler.program
}

/// Rounds after which settling stops in any case.
const ROUNDS: usize = 12;

/// The program being compiled, with what is worth remembering between passes.
struct Compiler {
    program: Program,
    /// Functions that are call-free and settled.
    defined: FxHashSet<FunctionId>,
    proofs: Proofs,
    settled: Settled,
    /// The passes that found nothing to do, of which function, under which types of variables, with which body.
    settled_by: FxHashSet<((usize, FunctionId, u64), u128)>,
    saving: Saving,
    /// The modes that were chosen for the entries of Jacobians.
    modes: Vec<(Entries, Mode)>,
    without: Without,
    /// Whether there are matrices whose number of entries is a formula.
    counted: bool,
    /// Whether all derivatives are there.
    finishing: bool,
    /// Functions that derivatives are in.
    derived: FxHashSet<FunctionId>,
}

impl Compiler {
    fn new(program: &Program, saving: Saving) -> Compiler {
        Compiler {
            program: program.clone(),
            defined: FxHashSet::default(),
            proofs: Proofs::default(),
            settled: Settled::default(),
            settled_by: FxHashSet::default(),
            saving,
            modes: vec![],
            without: Without::default(),
            counted: false,
            finishing: false,
            derived: FxHashSet::default(),
        }
    }

    fn prepare(&mut self, id: FunctionId, until: Option<&str>, observe: &mut dyn FnMut(&str, &Program)) {
        let roots = match self.program.function(id).body {
            Body::Derived { .. } | Body::Entries(_) | Body::Jacobian { .. } => vec![id],
            Body::Exp(_) => callees(&self.program, id),
        };
        for f in &roots {
            self.expand(*f);
        }
        observe("differentiate", &self.program);
        if until == Some("differentiate") {
            return;
        }
        for f in roots {
            if self.defined.insert(f) {
                self.settle(f);
            }
        }
        observe("settle", &self.program);
        if until == Some("settle") {
            return;
        }
        inline(&mut self.program, id);
        open_records(&mut self.program, id);
        self.write_sizes(id);
        observe("inline", &self.program);
        if until == Some("inline") || self.settle_observed(id, until, observe) {
            return;
        }
        self.finishing = true;
        self.settled = Settled::default();
        self.settled_by.clear();
        for (name, pass) in FINISH {
            let changed = self.run(id, name, *pass);
            observe(name, &self.program);
            if until == Some(name) {
                return;
            }
            // These say truly whether they changed anything, and most often they do not.
            if changed
                || ![REASSOCIATE, "preaccumulate", "interchange", "gather", "tabulate", "sum_first", "factor_out", "forget_states"]
                    .contains(name)
            {
                self.settle_observed(id, None, observe);
            }
        }
        for (name, pass) in LAST {
            self.run(id, name, *pass);
            observe(name, &self.program);
            if until == Some(name) {
                return;
            }
        }
    }

    /// Sizes that no caller gives are written as formulas, where they are: what has such a size can be built in place.
    fn write_sizes(&mut self, id: FunctionId) {
        let Some(hidden) = self.program.function(id).hidden.filter(|_| self.counted) else { return };
        self.define(hidden.sizes);
        let (sizes, function) = (self.program.function(hidden.sizes).clone(), self.program.function(id).clone());
        let visible: Vec<Var> = function.visible().map(|(_, v)| v).collect();
        // What is known of a call may have taken sizes and parameters from the function, not from what counts for it.
        let (types, args): (Vec<Type>, Vec<Exp>) = visible.iter().map(|v| (self.program.vars.ty(*v).clone(), Exp::Var(*v))).unzip();
        if sizes.params.len() != args.len() {
            return;
        }
        let bound = bind_sizes(&self.program, hidden.sizes, &types, &args);
        if !sizes.sizes.iter().all(|v| bound.contains_key(v)) {
            return;
        }
        let mut names: Substitution = sizes.sizes.iter().map(|v| (*v, size_exp(&bound[v]))).collect();
        names.extend(sizes.params.iter().copied().zip(args));
        let Body::Exp(value) = &sizes.body else { return };
        let value = copy(&mut self.program.vars, value, &names);
        let values = match value {
            Exp::Tuple(values) => values,
            value => vec![value],
        };
        let given = &function.params[hidden.at..hidden.at + hidden.count];
        let known: Substitution = given.iter().copied().zip(values).filter(|(_, value)| exp_size(value).is_some()).collect();
        let Body::Exp(body) = function.body else { return };
        let body = substitute(&mut self.program.vars, body, &known);
        let written = |ty: &Type| ty.map_sizes(&mut |s| s.substitute(&|v| known.get(&v).and_then(exp_size)));
        let signature = function.signature.map(|s| Box::new(Signature { result: written(&s.result), ..*s }));
        let result = written(&function.result);
        for param in &function.params {
            let ty = written(self.program.vars.ty(*param));
            if ty != *self.program.vars.ty(*param) {
                self.program.vars.set_ty(*param, ty);
            }
        }
        self.program.functions[id.0 as usize] = Function { body: Body::Exp(body), result, signature, ..self.program.function(id).clone() };
    }

    /// Settles a function. Asked to stop after one of the passes, it does so after the pass's first run (the last of the
    /// passes: once all is settled) and says that it stopped.
    fn settle_observed(&mut self, id: FunctionId, until: Option<&str>, observe: &mut dyn FnMut(&str, &Program)) -> bool {
        for _ in 0..ROUNDS {
            let mut changed = false;
            for (name, pass) in SETTLE {
                changed |= self.run(id, name, *pass);
                observe(name, &self.program);
                if until == Some(name) && *name != LAST_BOUNDED_PASS {
                    return true;
                }
            }
            if !changed {
                break;
            }
        }
        until == Some(LAST_BOUNDED_PASS)
    }

    /// Makes a function call-free and settled, so that it can be called, inlined or differentiated.
    fn define(&mut self, id: FunctionId) {
        if self.defined.insert(id) {
            self.expand(id);
            self.settle(id);
        }
    }

    /// Makes a function call-free, by the rules of differentiation alone if it is derived; what it needs is settled.
    fn expand(&mut self, id: FunctionId) {
        if let Body::Jacobian { of, wrt } = self.program.function(id).body.clone() {
            self.program.functions[id.0 as usize].body = Body::Exp(self.jacobian(id, of, &wrt));
        }
        let mut derived = !matches!(self.program.function(id).body, Body::Exp(_));
        for callee in callees(&self.program, id) {
            self.define(callee);
            derived |= self.derived.contains(&callee);
        }
        if derived {
            self.derived.insert(id);
        }
        match self.program.function(id).body.clone() {
            Body::Derived { of, .. } => {
                // The formulas of one operation's partials have much in common, which is to have one adjoint.
                let original = self.program.function(of).body.clone();
                if matches!(&original, Body::Exp(body) if partials::has_partials(body)) {
                    self.run(of, FINISH[0].0, expand_partials);
                    self.run(of, "simplify", simplify);
                    self.run(of, "share", share);
                }
                differentiate(&mut self.program, id, self.saving);
                for callee in callees(&self.program, id) {
                    self.define(callee);
                }
                inline_for_derivatives(&mut self.program, id);
                self.program.functions[of.0 as usize].body = original;
            }
            Body::Entries(_) => {
                let mode = self.cheaper_mode(id);
                self.counted |= sparse::define(&mut self.program, id, mode).counted;
                // Entries that are sorted are sorted by functions of the library.
                for callee in callees(&self.program, id) {
                    self.define(callee);
                }
                inline_for_derivatives(&mut self.program, id);
            }
            Body::Jacobian { .. } => panic!("pipeline: a Jacobian without a mode"),
            Body::Exp(_) => inline_for_derivatives(&mut self.program, id),
        }
    }

    /// A compiler of the same kind, to see what becomes of a program.
    fn trial(&self, program: &Program) -> Compiler {
        Compiler {
            defined: self.defined.clone(),
            derived: self.derived.clone(),
            without: self.without.clone(),
            ..Compiler::new(program, self.saving)
        }
    }

    /// A call of the cheaper of two Jacobians. What counts is what they compute and what they keep, which is written and read
    /// again; where that depends on sizes, these are compared when it is called.
    fn jacobian(&mut self, id: FunctionId, of: FunctionId, wrt: &[usize]) -> Exp {
        let own = self.program.function(id).clone();
        let call = |f: FunctionId| Exp::Call(f, own.params.iter().map(|v| Exp::Var(*v)).collect(), Site::default());
        let forward = dense_jacobian(&mut self.program, of, Mode::Jvp, wrt);
        if self.has_fewer_columns(of, wrt) {
            return call(forward);
        }
        let reverse = dense_jacobian(&mut self.program, of, Mode::Vjp, wrt);
        let mut cost_of = |f: FunctionId| {
            self.define(f);
            let other = self.program.function(f);
            let (theirs, ours) = (other.sizes.iter().chain(&other.params), own.sizes.iter().chain(&own.params));
            let renamed: FxHashMap<Var, Var> = theirs.copied().zip(ours.copied()).collect();
            let mut trial = self.trial(&self.program);
            trial.without.0.push(GATHER);
            trial.prepare(f, Some(FINISH[FINISH.len() - 1].0), &mut |_, _| {});
            let cost = cost(&trial.program, f);
            cost.total().add(&cost.saved).rename(&|v| renamed.get(&v).copied())
        };
        let (a, b) = (cost_of(forward), cost_of(reverse));
        // Other sizes that data say are known only inside.
        let is_known = |size: &Size| {
            let mut vars = vec![];
            size.variables(&mut vars);
            vars.iter().all(|v| own.sizes.contains(v) || own.params.contains(v))
        };
        match less(&a, &b) {
            Less::First => call(forward),
            Less::Second => call(reverse),
            Less::FirstUpTo(size) if is_known(&size) => if_(op2(Op::Le, size_exp(&size), i64(0)), call(forward), call(reverse)),
            Less::FirstUpTo(_) | Less::Unknown => call(if second_is_typically_less(&a, &b) { reverse } else { forward }),
        }
    }

    /// Whether forward mode needs no more runs for a Jacobian than reverse mode, one for each number of the parameters instead of
    /// one for each of the result: each of its runs is cheaper.
    fn has_fewer_columns(&self, of: FunctionId, wrt: &[usize]) -> bool {
        let of = self.program.function(of);
        let count = |ty: &Type| Poly::from_size(&ty.float_count());
        let columns = wrt.iter().fold(Poly::zero(), |n, k| n.add(&count(self.program.vars.ty(of.params[*k]))));
        less(&columns, &count(&of.result)) == Less::First
    }

    /// The mode in which the entries of a Jacobian cost less, by the cost model at sizes that are all the same. What counts the
    /// entries must take the same mode as what computes them, so it is always the latter that is compared.
    fn cheaper_mode(&mut self, id: FunctionId) -> Mode {
        let Body::Entries(entries) = self.program.function(id).body.clone() else { panic!("pipeline: no entries") };
        match (entries.forward, entries.reverse) {
            (Some(_), Some(_)) => {}
            (Some(_), None) => return Mode::Jvp,
            (None, _) => return Mode::Vjp,
        }
        let alike = |e: &Entries| Entries { part: EntriesPart::Entries, library: vec![], ..e.clone() };
        let same = |e: &Entries| alike(e) == alike(&entries);
        if let Some((_, mode)) = self.modes.iter().find(|(e, _)| same(e)) {
            return *mode;
        }
        let (forward, f, first) = self.entries_in(id, &entries, Mode::Jvp);
        if first.local {
            // A constant number of tangents for each row: no mode does with less than a part of that.
            self.modes.push((*entries, Mode::Jvp));
            return Mode::Jvp;
        }
        let (reverse, r, second) = self.entries_in(id, &entries, Mode::Vjp);
        // Each stream is a program of its own, so that one of many more is dearer, and takes long to look at.
        let mode = if second.streams > 3 * first.streams.max(2) {
            Mode::Jvp
        } else if first.streams > 3 * second.streams.max(2) {
            Mode::Vjp
        } else {
            let cost_of = |program: &Program, id: FunctionId| {
                let mut trial = self.trial(program);
                trial.settle(id);
                cost(&trial.program, id).total()
            };
            if second_is_typically_less(&cost_of(&forward, f), &cost_of(&reverse, r)) { Mode::Vjp } else { Mode::Jvp }
        };
        self.modes.push((*entries, mode));
        mode
    }

    /// A program with a function for the entries of a Jacobian in one mode, and what they are made of.
    fn entries_in(&self, id: FunctionId, entries: &Entries, mode: Mode) -> (Program, FunctionId, sparse::Structure) {
        let mut program = self.program.clone();
        let mut function = program.function(id).clone();
        let own = program.function(entries.of).params.len();
        let extra = function.params.len() - own;
        let matrices = match (entries.part, &function.result) {
            (EntriesPart::Count, Type::Tuple(parts)) => parts.len(),
            (EntriesPart::Count, Type::Scalar(_) | Type::Array(..)) => 1,
            (EntriesPart::Entries | EntriesPart::Stored, _) => extra,
            (EntriesPart::Rows, _) => extra / 2,
        };
        function.params.truncate(own);
        function.params.extend((0..matrices).map(|_| program.vars.fresh("entries", Type::I64)));
        function.body = Body::Entries(Box::new(Entries { part: EntriesPart::Entries, library: vec![], ..entries.clone() }));
        program.functions.push(function);
        let own = FunctionId(program.functions.len() as u32 - 1);
        let structure = sparse::define(&mut program, own, mode);
        (program, own, structure)
    }

    /// Simplification, dissolving, hoisting and the order of products to a fixed point: all that runs between two
    /// differentiations. Of derivatives fusion would undo what was saved; what has none in it yet is fused, so that they are
    /// taken of loops that keep little.
    fn settle(&mut self, id: FunctionId) {
        open_records(&mut self.program, id);
        for _ in 0..ROUNDS {
            let mut changed = false;
            for (name, pass) in SETTLE {
                if !["fuse", "split_sums"].contains(name) {
                    changed |= self.run(id, name, *pass);
                }
            }
            if !self.derived.contains(&id) && self.run(id, "fuse", fuse) {
                // Arrays that are read at one place are no arrays, before anything is moved.
                self.run(id, "simplify", simplify);
                changed = true;
            }
            changed |= self.run(id, "hoist", hoist);
            if !changed && !self.run(id, REASSOCIATE, reassociate) {
                break;
            }
        }
    }

    /// Runs a pass on a function's body, unless it is left out; says whether it changed anything.
    fn run(&mut self, id: FunctionId, name: &str, pass: Pass) -> bool {
        if self.without.has(name) {
            return false;
        }
        let function = &mut self.program.functions[id.0 as usize];
        let facts = Facts::of_function_with(function, &self.proofs);
        let Body::Exp(body) = &mut function.body else { return false };
        let known = (pass as usize, id, self.program.vars.retyped());
        let before = fingerprint(body);
        if self.settled_by.contains(&(known, before)) {
            return false;
        }
        let exp = std::mem::replace(body, Exp::Lit(Lit::Bool(false)));
        let settled = std::mem::take(&mut self.settled);
        let differentiating = !self.finishing;
        let mut cx = Context { vars: &mut self.program.vars, facts, changed: false, settled, differentiating };
        *body = pass(&mut cx, exp);
        let changed = cx.changed;
        self.settled = cx.settled;
        if !changed && fingerprint(body) == before && self.program.vars.retyped() == known.2 {
            self.settled_by.insert((known, before));
        }
        changed
    }
}

fn expand_partials(cx: &mut Context, exp: Exp) -> Exp {
    partials::expand_partials(cx.vars, exp)
}

/// No derivative is taken any more: what was for derivatives alone goes, and bounds on steps become checks.
fn finish_derivatives(cx: &mut Context, exp: Exp) -> Exp {
    fn go_on(exp: Exp) -> Exp {
        match exp.map_children(&mut go_on) {
            Exp::Op(Op::StopGradient, mut args, _) => args.remove(0),
            exp => plain_zero(exp),
        }
    }
    let exp = go_on(expand_partials(cx, exp));
    count_bounded(cx.vars, exp)
}
