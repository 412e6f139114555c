//! A function ready to be called: prepared by the pipeline, then interpreted or compiled.

use super::failure::Failure;
use super::memory;
use super::options::{Execution, Target};
use super::progress::{Progress, is_watched};
use super::source::Source;
use iverson::diagnostic::Sources;
use iverson::ir::specialize::{Known, Taken, expect, inner_sizes, specialize};
use iverson::ir::{FunctionId, Lit, Program, Var};
use iverson::loops::workspace::Call;
use iverson::pipeline::Without;
use iverson::value::{Array, Data, Error, Value};
use iverson::{bind, interpret, runtime};
use std::io::Write;
use std::time::Instant;

pub struct Executable {
    engine: Engine,
    threads: usize,
    /// What the code is made for, by name.
    pub made_for: Vec<(String, String)>,
    /// The values that it is made for, by the positions of their parameters.
    fixed: Vec<(usize, Lit)>,
}

enum Engine {
    Interpreter(Program, FunctionId),
    Native(Box<runtime::Compiled>),
}

impl Executable {
    /// A function that is to be called with these values: their small sizes and `static` values are known to it.
    pub fn new(source: &Source, id: FunctionId, execution: &Execution, values: &[Value]) -> Result<Executable, Failure> {
        Executable::knowing(source, id, execution, values, known(source, id, execution, values))
    }

    /// A function that is to be called with values of these sizes.
    pub fn for_any_values(source: &Source, id: FunctionId, execution: &Execution, values: &[Value]) -> Result<Executable, Failure> {
        Executable::knowing(source, id, execution, values, Known::default())
    }

    fn knowing(source: &Source, id: FunctionId, execution: &Execution, values: &[Value], known: Known) -> Result<Executable, Failure> {
        let start = Instant::now();
        let progress = Progress::new(format!("preparing `{}`", source.program.function(id).name));
        let without = execution.passes.without();
        let made_for = known.describe(&source.program, id);
        let (mut program, id) = match known.is_empty() {
            true => (source.program.clone(), id),
            false => specialize(&source.program, id, &known, Taken::Still),
        };
        if execution.target == Target::C && !without.specialization() {
            let sizes = bind::sizes(&program, id, values).unwrap_or_default();
            expect(&mut program, id, &|v| sizes.get(&v).copied());
        }
        let program = prepared(&program, id, memory_for(execution), &without, threads(execution), values);
        drop(progress);
        let prepared = 1e3 * start.elapsed().as_secs_f64();
        let name = &program.function(id).name;
        let engine = match execution.target {
            Target::Interpret if execution.flush_denormals => {
                let error = Error::new("the interpreter keeps denormal numbers");
                return Err(Failure::Message(error.note("`--flush-denormals` is for native code: leave out `--target interpret`")));
            }
            Target::Interpret => {
                if execution.verbose {
                    tell(&format!("`{name}` prepared in {prepared:.1} ms"));
                }
                Engine::Interpreter(program, id)
            }
            Target::C => {
                let progress = Progress::new(format!("compiling `{name}`"));
                let compiled = compile(&program, id, options(execution), &runtime::call(&program, id, values))?;
                drop(progress);
                let cached = if compiled.from_cache { " (cached)" } else { "" };
                if execution.verbose {
                    tell(&format!("`{name}` prepared in {prepared:.1} ms, compiled in {:.1} ms{cached}", compiled.compile_ms));
                } else if is_watched() {
                    tell(&format!("compiled in {:.0} ms{cached}", compiled.compile_ms));
                }
                Engine::Native(Box::new(compiled))
            }
        };
        Ok(Executable { engine, threads: threads(execution), made_for, fixed: known.params })
    }

    /// Native code that says where its time goes.
    pub fn profiling(source: &Source, id: FunctionId, execution: &Execution, values: &[Value]) -> Result<Executable, Failure> {
        let _progress = Progress::new("compiling for profiling");
        let program = prepared(&source.program, id, execution.memory, &execution.passes.without(), threads(execution), values);
        let compiled = compile(&program, id, runtime::Options { profile: true, ..options(execution) }, &Call::default())?;
        Ok(Executable { engine: Engine::Native(Box::new(compiled)), threads: threads(execution), made_for: vec![], fixed: vec![] })
    }

    pub fn call(&self, source: &Source, values: &[Value]) -> Result<Value, Failure> {
        let mut result = None;
        self.call_into(source, values, &mut result)?;
        Ok(result.expect("a call that succeeds has a value"))
    }

    /// The value, with a sign of life on the terminal if it takes long.
    pub fn call_watched(&self, source: &Source, values: &[Value]) -> Result<Value, Failure> {
        let _progress = Progress::new("running");
        self.call(source, values)
    }

    /// Native code writes over the last result where its shape is right.
    pub fn call_into(&self, source: &Source, values: &[Value], result: &mut Option<Value>) -> Result<(), Failure> {
        self.run(&source.sources, values, result)
    }

    fn run(&self, sources: &Sources, values: &[Value], result: &mut Option<Value>) -> Result<(), Failure> {
        for (k, lit) in &self.fixed {
            assert!(values[*k] == Value::Scalar(*lit), "code that is made for a value is called with it");
        }
        let outcome = match &self.engine {
            Engine::Interpreter(program, id) => {
                // The interpreter takes all the memory that the result needs, so that is tried before.
                let sizes = bind::sizes(program, *id, values)?;
                Value::zero(&program.function(*id).result, &|v| sizes.get(&v).copied()).map_err(|e| e.about("the result"))?;
                interpret::call(program, *id, values).map(|(value, _)| *result = Some(value))
            }
            Engine::Native(compiled) => compiled.call_into(values, result, self.threads).map(|_| ()),
        };
        outcome.map_err(|failure| Failure::diagnostics(&[failure.diagnostic()], sources))
    }

    pub fn native(&self) -> Option<&runtime::Compiled> {
        match &self.engine {
            Engine::Interpreter(..) => None,
            Engine::Native(compiled) => Some(compiled),
        }
    }
}

/// The value of a function that is called once.
pub fn run_once(
    program: &Program,
    id: FunctionId,
    values: &[Value],
    target: Target,
    threads: usize,
    sources: &Sources,
) -> Result<Value, Failure> {
    let progress = Progress::new("preparing");
    let program = prepared(program, id, None, &Without::default(), threads, values);
    drop(progress);
    let engine = match target {
        Target::Interpret => Engine::Interpreter(program, id),
        Target::C => {
            let _progress = Progress::new("compiling");
            Engine::Native(Box::new(compile(&program, id, runtime::Options::default(), &runtime::call(&program, id, values))?))
        }
    };
    let mut result = None;
    let _progress = Progress::new("running");
    Executable { engine, threads, made_for: vec![], fixed: vec![] }.run(sources, values, &mut result)?;
    Ok(result.expect("a call that succeeds has a value"))
}

/// Sizes are known where they are no larger. Code for such a size pays for its compilation: a mixture of Gaussians is 1.4
/// times as fast in 2 dimensions and 1.1 times in 4, but no faster in 10, where loops do as well as lines.
const SMALL: i64 = 4;

/// What code for calls like this may take for known: small sizes that are of parts of items, and `static` parameters.
fn known(source: &Source, id: FunctionId, execution: &Execution, values: &[Value]) -> Known {
    let program = &source.program;
    if execution.target == Target::Interpret || execution.passes.without().specialization() {
        return Known::default();
    }
    let given = bind::sizes(program, id, values).unwrap_or_default();
    let small = |v: Var| given.get(&v).copied().filter(|n| (1..=SMALL).contains(n)).map(|n| (v, n));
    let literal = |k: &usize| match values.get(*k) {
        Some(Value::Scalar(lit)) => Some((*k, *lit)),
        _ => None,
    };
    Known {
        sizes: inner_sizes(program, id).into_iter().filter_map(small).collect(),
        params: program.function(id).statics.iter().filter_map(literal).collect(),
        mostly_zero: (0..values.len()).filter(|k| is_mostly_zero(&values[*k])).collect(),
    }
}

/// Whether most numbers of an array are zero, by some of them.
fn is_mostly_zero(value: &Value) -> bool {
    const LEAST: usize = 64;
    const LOOKED_AT: usize = 4096;
    let is_zero: Box<dyn Fn(usize) -> bool> = match value {
        Value::Array(Array { data: Data::F64(x), .. }) => Box::new(|k| x[k] == 0.0),
        Value::Array(Array { data: Data::F32(x), .. }) => Box::new(|k| x[k] == 0.0),
        _ => return false,
    };
    let count = if let Value::Array(array) = value { array.len() } else { 0 };
    // Steps of an odd length do not fall on the same column of every row.
    let step = (count / LOOKED_AT) | 1;
    let (zeros, all) = (0..count).step_by(step).fold((0, 0), |(zeros, all), k| (zeros + is_zero(k) as usize, all + 1));
    count >= LEAST && 4 * zeros >= 3 * all
}

/// The function ready for calls with such values: derivatives keep what their way back needs if that fits in the memory
/// given, else loops are cut into blocks that do.
fn prepared(program: &Program, id: FunctionId, memory: Option<u64>, without: &Without, threads: usize, values: &[Value]) -> Program {
    let known = |whole: &Program| memory::Known { call: runtime::call(whole, id, values), threads };
    memory::choose(program, id, memory, without, known).program
}

/// The interpreter takes several times as much memory for a value as native code.
fn memory_for(execution: &Execution) -> Option<u64> {
    match execution.target {
        Target::C => execution.memory,
        Target::Interpret => Some(execution.memory.unwrap_or_else(iverson::memory::budget) / 8),
    }
}

/// On stderr, if anybody listens.
fn tell(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn options(execution: &Execution) -> runtime::Options {
    let threads = threads(execution) > 1;
    runtime::Options { strict: execution.strict, flush: execution.flush_denormals, threads, ..settings(&execution.passes.without()) }
}

fn compile(program: &Program, id: FunctionId, options: runtime::Options, call: &Call) -> Result<runtime::Compiled, Failure> {
    runtime::compile_for(program, id, options, call).map_err(|e| {
        let error = e.notes.into_iter().fold(Error::new(e.message), Error::note);
        Failure::Message(error)
    })
}

/// How many threads native code may use.
pub fn threads(execution: &Execution) -> usize {
    let all = || iverson::memory::threads(std::thread::available_parallelism().map_or(1, usize::from));
    execution.threads.map_or_else(all, |n| n as usize)
}

/// How code is made that leaves something out.
pub fn settings(without: &Without) -> runtime::Options {
    let lanes = if without.lanes() { runtime::InLanes::None } else { runtime::InLanes::Some };
    runtime::Options { contract: !without.contractions(), lanes, ..runtime::Options::default() }
}
