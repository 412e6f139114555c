//! IR -> loops, by destination passing.
//!
//! Every expression can be *stored* into a destination, *accumulated* into one (`dest += e`), or evaluated to a view.
//! Accumulation distributes over `sum`, `for`, `+`, `let`, `if`, guards, tuples and singletons, so
//! `sum i. sum j. {k -> v}` becomes two loops and one `dest[k] += v`, and never an array in between:
//!
//! ```text
//! store(for i. e, d)   = for i { store(e, d[i]) }        add(for i. e, d)   = for i { add(e, d[i]) }
//! store(sum i. e, d)   = zero d; add(sum i. e, d)        add(sum i. e, d)   = for i { add(e, d) }
//! store({k -> v}, d)   = zero d; store(v, d[k])          add({k -> v}, d)   = add(v, d[k])
//! store(a + b, d)      = store(a, d); add(b, d)          add(a + b, d)      = add(a, d); add(b, d)
//! store([p] * e, d)    = if p { store(e, d) } else { zero d }
//! ```
//!
//! Whatever else is accumulated is computed once and added. Whole variables and rows are views: an offset into the
//! buffer they live in. The input has no calls and no derived functions; there is no other condition.

mod ahead;
mod binding;
mod branch;
mod buffers;
mod checks;
mod choices;
mod coalesce;
mod contract;
mod count;
mod cover;
mod deliver;
mod flatten;
mod generate;
mod history;
mod in_place;
mod in_row;
mod index;
mod invariant;
mod inward;
mod iterate;
mod jam;
mod lanes;
mod linear;
mod marks;
mod outward;
mod own_rows;
mod parallel;
mod picked;
mod pieces;
mod places;
mod reduce;
mod repeated;
mod rims;
mod rows;
mod scalar;
mod schedule;
mod singleton;
mod sum;
mod tiles;
mod turn;
mod update;
mod views;
mod windows;
mod work;
mod wraps;

use crate::ir::facts::Facts;
use crate::ir::*;
use crate::loops::workspace::{Call, Entry};
use crate::loops::*;
use binding::Then;
use rustc_hash::{FxHashMap, FxHashSet};
use views::{Dest, Val, View};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Operations in source order, without vector reductions and matrix kernels: bit for bit what the interpreter does.
    pub strict: bool,
    /// Count operations; implies that nothing is executed in another way than counted.
    pub count: bool,
    /// Mark where loops come from.
    pub profile: bool,
    /// Lower contractions as such (`contract.rs`).
    pub contract: bool,
    /// Which loops run in lanes (`lanes.rs`).
    pub lanes: InLanes,
    /// Whether there may be more threads than one.
    pub threads: bool,
}

/// Which loops run several iterations side by side in the lanes of vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InLanes {
    None,
    /// Where it pays.
    Some,
    /// All that can, in blocks as short as can be: for tests, at sizes that tests have.
    All,
}

/// A function without calls as a kernel.
pub fn lower(program: &Program, id: FunctionId, options: Options, call: &Call) -> Kernel {
    let function = program.function(id);
    let Body::Exp(body) = &function.body else { panic!("lower: `{}` is not defined yet", function.name) };
    let mut lowering = Lowering {
        vars: &program.vars,
        kernel: Kernel { call: call.clone(), ..Kernel::empty(&function.name) },
        env: FxHashMap::default(),
        owners: FxHashMap::default(),
        facts: Facts::of_function(function),
        ranges: FxHashMap::default(),
        bounds: FxHashMap::default(),
        derived: FxHashMap::default(),
        touched: vec![],
        computed: FxHashMap::default(),
        passed: FxHashSet::default(),
        placed: FxHashSet::default(),
        pieces: FxHashSet::default(),
        block: vec![],
        depth: 0,
        unbounded: 0,
        chain: 0,
        chains: 0,
        mark: 0,
        options,
    };
    let dest = lowering.enter(function);
    lowering.store(body, &dest);
    let Lowering { mut kernel, block, mut bounds, .. } = lowering;
    kernel.body = block;
    coalesce::coalesce(&mut kernel);
    choices::choices(&mut kernel);
    if !options.count {
        checks::before_loops(&mut kernel);
        repeated::repeated(&mut kernel);
        checks::lift(&mut kernel);
    }
    if !options.count {
        flatten::flatten(&mut kernel, options);
        wraps::wraps(&mut kernel);
    }
    schedule::schedule(&mut kernel, options);
    if !options.count && !options.strict && options.lanes != InLanes::None {
        lanes::lanes(&mut kernel, &mut bounds, options.lanes == InLanes::All);
    }
    if !options.count {
        turn::turn(&mut kernel, options);
        if !options.strict {
            windows::windows(&mut kernel, &mut bounds, options);
        }
        invariant::invariant(&mut kernel);
    }
    if !options.count && !options.strict {
        places::places(&mut kernel, &mut bounds);
        jam::jam(&mut kernel);
    }
    if !options.count {
        rims::rims(&mut kernel, options);
    }
    if options.count {
        count::count(&mut kernel);
    } else {
        parallel::parallel(&mut kernel, &mut bounds, options);
    }
    buffers::plan(&mut kernel, &bounds);
    kernel
}

struct Lowering<'a> {
    vars: &'a Vars,
    kernel: Kernel,
    env: FxHashMap<Var, Val>,
    /// Variables whose value has a buffer of its own, and the chain of `let`s in which it was bound.
    owners: FxHashMap<Var, usize>,
    facts: Facts,
    /// What bounds an integer variable that is not known at entry (`buffers.rs`).
    ranges: FxHashMap<Var, buffers::Extent>,
    /// How many elements a buffer has at most, known at entry; `None` if it is not.
    bounds: FxHashMap<Buffer, Option<Expr>>,
    /// Sizes that have a name (`Kernel::derived`).
    derived: FxHashMap<Size, Local>,
    /// Which views were added into, and at which first key (`None`: as a whole).
    touched: Vec<(View, Option<Expr>)>,
    /// Sums that have been computed before their place came (`contract.rs`), by address.
    computed: FxHashMap<*const Exp, Expr>,
    /// Variables that were added into the destination when they were bound (`deliver.rs`).
    passed: FxHashSet<Var>,
    /// Variables that were built where a step writes them (`in_place.rs`).
    placed: FxHashSet<Var>,
    /// Arrays that were built in their places in a result (`pieces.rs`).
    pieces: FxHashSet<Var>,
    /// The statements of the block being written.
    block: Vec<Stmt>,
    /// The number of blocks around it.
    depth: usize,
    /// The number of loops around it that data end.
    unbounded: usize,
    /// The chain of `let`s being lowered: bodies of `let`s continue it, everything else begins a new one.
    chain: usize,
    chains: usize,
    /// The origin of what is being lowered.
    mark: usize,
    options: Options,
}

impl<'a> Lowering<'a> {
    /// Binds sizes and parameters, and gives the destination of the result.
    fn enter(&mut self, function: &Function) -> Dest {
        for n in &function.sizes {
            let local = self.kernel.fresh_local(self.vars.name(*n), Scalar::I64);
            self.kernel.sizes.push(local);
            self.env.insert(*n, Val::Scalar(Expr::Local(local)));
            self.ranges.insert(*n, buffers::Extent::Entry);
        }
        for param in &function.params {
            let value = self.input(self.vars.name(*param), self.vars.ty(*param));
            if *self.vars.ty(*param) == Type::I64 {
                self.ranges.insert(*param, buffers::Extent::Entry);
            }
            self.env.insert(*param, value);
        }
        self.output("out", &function.result)
    }

    fn input(&mut self, name: &str, ty: &Type) -> Val {
        match ty {
            Type::Scalar(s) => {
                let local = self.kernel.fresh_local(name, *s);
                self.kernel.inputs.push(Input::Scalar(local));
                Val::Scalar(Expr::Local(local))
            }
            Type::Array(shape, s) => {
                let home = Home::Input(self.kernel.inputs.len());
                let buffer = self.kernel.fresh_buffer(name, *s, home);
                self.kernel.inputs.push(Input::Array(buffer));
                Val::Array(View { buffer, offset: Expr::int(0), shape: shape.clone() })
            }
            Type::Tuple(parts) => Val::Tuple(parts.iter().enumerate().map(|(k, t)| self.input(&format!("{name}_{k}"), t)).collect()),
        }
    }

    fn output(&mut self, name: &str, ty: &Type) -> Dest {
        let mut leaf = |scalar: Scalar, rank: usize| {
            let home = Home::Output(self.kernel.outputs.len());
            let buffer = self.kernel.fresh_buffer(name, scalar, home);
            self.kernel.outputs.push(Output { buffer, scalar, rank });
            buffer
        };
        match ty {
            Type::Scalar(s) => Dest::Scalar(Target::Place(leaf(*s, 0), Expr::int(0))),
            Type::Array(shape, s) => Dest::Array(View { buffer: leaf(*s, shape.len()), offset: Expr::int(0), shape: shape.clone() }),
            Type::Tuple(parts) => Dest::Tuple(parts.iter().enumerate().map(|(k, t)| self.output(&format!("{name}_{k}"), t)).collect()),
        }
    }

    fn emit(&mut self, stmt: Stmt) {
        self.block.push(stmt);
    }
    fn type_of(&self, e: &Exp) -> Type {
        build::type_of_exp(self.vars, e)
    }
    fn is_scalar(&self, e: &Exp) -> bool {
        matches!(self.type_of(e), Type::Scalar(_))
    }

    /// What `f` emits, as a block of its own; what it learns is forgotten after it.
    fn nested<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> (Vec<Stmt>, R) {
        let facts = self.facts.clone();
        let outer = std::mem::take(&mut self.block);
        self.depth += 1;
        let result = self.apart(f);
        self.depth -= 1;
        self.facts = facts;
        (std::mem::replace(&mut self.block, outer), result)
    }

    /// Runs `f` in a new chain of `let`s.
    fn apart<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        self.chains += 1;
        let outer = std::mem::replace(&mut self.chain, self.chains);
        let result = f(self);
        self.chain = outer;
        result
    }

    /// The value under a name, so that it may be mentioned twice.
    fn named(&mut self, name: &str, value: Expr) -> Expr {
        if value.is_atom() {
            return value;
        }
        let local = self.kernel.fresh_local(name, self.kernel.scalar_of(&value));
        self.emit(Stmt::Let(local, value));
        Expr::Local(local)
    }

    /// `dest = e`. What was in the destination before does not matter.
    fn store(&mut self, e: &Exp, dest: &Dest) {
        if let Exp::Let(vars, value, body) = e {
            self.bind(vars, value, Then { body: Some(body), dest: Some(dest) });
            return self.store(body, dest);
        }
        self.apart_marked(e, |l| match e {
            Exp::Let(..) => unreachable!("handled above"),
            Exp::For(..) | Exp::Sum(..) if l.nest(e, dest, true) => {}
            Exp::Sum(..) if l.covering(e, dest) => {}
            Exp::For(..) if l.store_points(e, dest) => {}
            Exp::Var(_) | Exp::Index(..) => {
                let value = l.evaluate(e, "row");
                l.copy(&value, dest);
            }
            Exp::Lit(_) | Exp::Partial(..) | Exp::Reduce(..) => l.store_scalar(e, dest),
            Exp::Op(_, args, _) => {
                if l.is_scalar(e) {
                    l.store_scalar(e, dest)
                } else {
                    l.store(&args[0], dest);
                    l.accumulate(&args[1], dest);
                }
            }
            Exp::Singleton(keys, value, site) => l.store_singleton(keys, value, *site, dest),
            Exp::For(index, size, body) => match l.pieces_of(e).filter(|_| matches!(dest, Dest::Array(_))) {
                Some(pieces) => l.store_pieces(*index, &pieces, dest),
                None => l.generate(*index, size, dest, &mut |l, place| l.store(body, place)),
            },
            Exp::Sum(range, body) => {
                if let Dest::Scalar(target) = dest {
                    let total = l.value(e);
                    l.emit(Stmt::Set(target.clone(), total));
                } else {
                    l.zero(dest);
                    l.accumulate_sum(range, body, dest);
                }
            }
            Exp::History(h) => l.store_history(h, dest),
            Exp::Loop(iteration) => l.store_iteration(iteration, dest),
            Exp::Update(array, keys, value, site) => l.store_update(array, keys, value, *site, dest),
            Exp::Guard(p, e) => l.store_guard(p, e, dest),
            Exp::If(p, a, b) => l.store_if(p, a, b, dest),
            Exp::Tuple(parts) => parts.iter().zip(dest.parts()).for_each(|(e, d)| l.store(e, d)),
            Exp::Array(items) => l.each_item(items, dest, &mut |l, item, place| l.store(item, place)),
            Exp::Call(..) => panic!("lower: calls are inlined before"),
        })
    }

    /// `dest += e`.
    fn accumulate(&mut self, e: &Exp, dest: &Dest) {
        if let Exp::Let(vars, value, body) = e {
            self.bind_into(vars, value, body, &|path| Some(dest.part(path)));
            return self.accumulate(body, dest);
        }
        self.apart_marked(e, |l| match e {
            Exp::Let(..) => unreachable!("handled above"),
            // A written zero is not added, nor what was added when it was bound.
            _ if build::is_zero(e) => {}
            Exp::Var(v) if l.passed.contains(v) => {}
            Exp::For(..) | Exp::Sum(..) if l.nest(e, dest, false) => {}
            Exp::Var(_) | Exp::Index(..) => {
                let value = l.evaluate(e, "row");
                l.add(&value, dest);
            }
            Exp::Lit(_) | Exp::Partial(..) | Exp::Reduce(..) => l.add_scalar(e, dest),
            Exp::Op(_, args, _) => {
                if l.is_scalar(e) {
                    l.add_scalar(e, dest)
                } else {
                    l.accumulate(&args[0], dest);
                    l.accumulate(&args[1], dest);
                }
            }
            Exp::Singleton(keys, value, site) => {
                let place = l.place(keys, *site, dest);
                l.accumulate(value, &place);
            }
            Exp::For(index, size, body) => l.accumulate_generated(*index, size, body, dest),
            Exp::Sum(range, body) => l.accumulate_sum(range, body, dest),
            Exp::History(_) | Exp::Loop(_) | Exp::Update(..) => {
                let value = l.evaluate(e, "states");
                l.add(&value, dest);
            }
            Exp::Guard(p, e) => l.accumulate_guard(p, e, dest),
            Exp::If(p, a, b) => l.accumulate_if(p, a, b, dest),
            Exp::Tuple(parts) => parts.iter().zip(dest.parts()).for_each(|(e, d)| l.accumulate(e, d)),
            Exp::Array(items) => l.each_item(items, dest, &mut |l, item, place| {
                let value = l.evaluate(item, "item");
                l.add(&value, place);
            }),
            Exp::Call(..) => panic!("lower: calls are inlined before"),
        })
    }

    /// The value of an expression: a scalar, a view of memory that exists, or of memory made for it.
    fn evaluate(&mut self, e: &Exp, name: &str) -> Val {
        if let Exp::Let(vars, value, body) = e {
            self.bind(vars, value, Then { body: Some(body), dest: None });
            return self.evaluate(body, name);
        }
        self.apart(|l| match e {
            Exp::Let(..) => unreachable!("handled above"),
            Exp::Var(v) => l.env.get(v).unwrap_or_else(|| panic!("lower: `{}` is not bound", l.vars.name(*v))).clone(),
            Exp::Index(array, keys, site) => l.read(array, keys, *site),
            Exp::Tuple(parts) => Val::Tuple(parts.iter().map(|p| l.evaluate(p, name)).collect()),
            Exp::Lit(_)
            | Exp::Op(..)
            | Exp::Partial(..)
            | Exp::Singleton(..)
            | Exp::For(..)
            | Exp::Sum(..)
            | Exp::Reduce(..)
            | Exp::History(_)
            | Exp::Loop(_)
            | Exp::Update(..)
            | Exp::Guard(..)
            | Exp::If(..)
            | Exp::Array(_) => {
                let ty = l.type_of(e);
                if let Type::Scalar(_) = ty {
                    return Val::Scalar(l.value(e));
                }
                let dest = l.allocate(&ty, name);
                l.store(e, &dest);
                dest.value()
            }
            Exp::Call(..) => panic!("lower: calls are inlined before"),
        })
    }

    /// The value of a scalar expression.
    fn value(&mut self, e: &Exp) -> Expr {
        if let Exp::Let(vars, value, body) = e {
            self.bind(vars, value, Then { body: Some(body), dest: None });
            return self.value(body);
        }
        self.apart_marked(e, |l| match e {
            Exp::Let(..) => unreachable!("handled above"),
            Exp::Lit(lit) => Expr::Lit(*lit),
            Exp::Var(_) | Exp::Index(..) => match l.evaluate(e, "row") {
                Val::Scalar(value) => value,
                Val::Array(_) | Val::Tuple(_) => panic!("lower: a scalar was expected"),
            },
            Exp::Op(op, args, site) => l.operation(*op, args, *site),
            Exp::Partial(op, k, args) => {
                // A formula may use an operand several times.
                let values: Vec<Expr> = args.iter().map(|a| l.value(a)).collect();
                let args = values.into_iter().map(|v| if is_computed(&v) { l.named("operand", v) } else { v }).collect();
                Expr::Partial(*op, *k, args)
            }
            Exp::Sum(range, body) => match l.computed.get(&(e as *const Exp)) {
                Some(value) => value.clone(),
                None => l.sum_value(range, body),
            },
            Exp::Reduce(kind, range, body, site) => l.reduction(*kind, range, body, *site),
            Exp::Guard(p, e) => l.guard_value(p, e),
            Exp::If(p, a, b) => l.if_value(p, a, b),
            Exp::Loop(iteration) => l.iteration_value(iteration),
            Exp::Singleton(..) | Exp::For(..) | Exp::History(_) | Exp::Update(..) | Exp::Tuple(_) | Exp::Array(_) => {
                panic!("lower: a scalar was expected")
            }
            Exp::Call(..) => panic!("lower: calls are inlined before"),
        })
    }
}

/// Whether evaluating the expression is more than a load.
fn is_computed(e: &Expr) -> bool {
    e.any(&mut |e| matches!(e, Expr::Partial(..) | Expr::Select(..))) || matches!(e, Expr::Op(..))
}
