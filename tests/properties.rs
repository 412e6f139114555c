//! Random well-typed programs through the whole compiler.
//!
//! `IVERSON_FUZZ=N` sets how many programs there are, `IVERSON_SEED=S` checks the program of one seed alone and says more.
//! The programs together have every construct in every construct that the grammar allows; the matrix is printed
//! (`--nocapture`).

mod generator;
mod harness;

use generator::grow::grow;
use generator::matrix::Matrix;
use generator::shrink::shrink;
use generator::{Generated, Random, Ty, Width};
use harness::derivatives::{Counted, Modes};
use harness::stages::Target;
use iverson::interpret;
use iverson::types::{Lit, Scalar};
use iverson::value::{Array, Data, Value};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Far more than fill the matrix.
const DEFAULT_COUNT: u64 = 2000;
/// As many as fill it.
const ENOUGH: u64 = 700;
/// Every so many programs are also compiled, and differentiated twice.
const COMPILED_EVERY: u64 = 5;
const NESTED_EVERY: u64 = 4;
/// The sizes `n` and `m` that every program is run at.
const SIZES: [(i64, i64); 5] = [(0, 0), (0, 7), (1, 17), (7, 1), (17, 7)];
/// The derivatives of gradients cost more.
const NESTED_SIZES: [(i64, i64); 3] = [(0, 1), (1, 7), (7, 2)];
/// A program that executes more than so many operations at the sizes `PROBE`, as those of deep nests do, or that has so many
/// loops in each other, is not run where both sizes are larger than 1.
const PROBE: (i64, i64) = (5, 5);
const LIMIT: u64 = 4000;
const NEST: usize = 6;
/// How many programs are so.
static DEEP: AtomicU64 = AtomicU64::new(0);
/// Programs that fail are made smaller with at most so many tries, and no more after so long.
const TRIES: usize = 400;
const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn random_programs_mean_the_same_everywhere() {
    let variable = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let count = variable("IVERSON_FUZZ").unwrap_or(DEFAULT_COUNT);
    let only = variable("IVERSON_SEED");

    let mut matrix = Matrix::new();
    let mut programs = vec![];
    for seed in 0..only.map_or(count, |seed| seed + 1) {
        let program = grow(seed, &matrix);
        matrix.add(&program);
        programs.push((seed, program));
    }
    if let Some(seed) = only {
        programs.retain(|(s, _)| *s == seed);
        println!("{}", programs[0].1.text());
    } else {
        println!("{}", matrix.table());
        assert!(count < ENOUGH || matrix.empty().is_empty(), "no program has {:?}", matrix.empty());
    }

    programs.reverse();
    let work = Mutex::new(programs);
    let failures = Mutex::new(vec![]);
    let times = Mutex::new(vec![]);
    // The panics of programs that are being made smaller are not news.
    std::panic::set_hook(Box::new(|_| {}));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |n| n.get()) {
            // As deep as the programs are high, as the command line has it.
            let thread = std::thread::Builder::new().stack_size(256 << 20).spawn_scoped(scope, || {
                loop {
                    let Some((seed, program)) = work.lock().unwrap().pop() else { return };
                    let start = Instant::now();
                    let result = check(seed, &program);
                    times.lock().unwrap().push((start.elapsed(), seed));
                    if let Err(message) = result {
                        failures.lock().unwrap().push((seed, program, message));
                        if failures.lock().unwrap().len() >= 400 {
                            work.lock().unwrap().clear();
                        }
                    }
                }
            });
            thread.expect("a thread can be started");
        }
    });
    let mut times = times.into_inner().unwrap();
    times.sort_by(|a, b| b.cmp(a));
    println!("slowest: {:.1?}", &times[..times.len().min(5)]);
    println!("too deep for the larger sizes: {} of {}", DEEP.load(Relaxed), times.len());
    let mut failures = failures.into_inner().unwrap();
    failures.sort_by_key(|(_, program, _)| program.text().len());
    let report: Vec<String> = failures
        .iter()
        .take(std::env::var("SHOW").ok().and_then(|v| v.parse().ok()).unwrap_or(3))
        .map(|(seed, program, message)| smallest(*seed, program, message))
        .collect();
    let _ = std::panic::take_hook();
    let seeds: Vec<String> = failures.iter().map(|(seed, _, _)| seed.to_string()).collect();
    assert!(failures.is_empty(), "{} programs fail (seeds {}):\n\n{}", failures.len(), seeds.join(", "), report.join("\n\n"));
}

/// The failing program made small, with what is wrong with it.
fn smallest(seed: u64, program: &Generated, message: &str) -> String {
    let kind = complaint(message);
    let start = Instant::now();
    let small = shrink(program, TRIES, |p| start.elapsed() < PATIENCE && check(seed, p).is_err_and(|e| complaint(&e) == kind));
    let message = check(seed, &small).err().unwrap_or_else(|| message.to_string());
    format!("seed {seed}:\n{}\n{message}", small.text())
}

/// What kind of failure a message is about: its first line without numbers and names.
fn complaint(message: &str) -> String {
    let line = message.lines().next().unwrap_or("").split(':').take(2).collect::<Vec<_>>().join(":");
    line.chars().filter(|c| !c.is_ascii_digit() && !matches!(c, '.' | '-' | 'e')).collect()
}

/// Everything that must hold of a program; a panic is a failure.
fn check(seed: u64, program: &Generated) -> Result<(), String> {
    match catch_unwind(AssertUnwindSafe(|| check_all(seed, program))) {
        Ok(result) => result,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
            Err(format!("panic: {}", text.unwrap_or_default()))
        }
    }
}

fn check_all(seed: u64, generated: &Generated) -> Result<(), String> {
    let nested = seed % NESTED_EVERY == 0 || std::env::var("IVERSON_SEED").is_ok();
    let compiled = seed % COMPILED_EVERY == 0 || std::env::var("IVERSON_SEED").is_ok();
    let text = generated.text_with(&if nested { gradient_definition(generated) } else { String::new() });
    let program = harness::load(&text).map_err(|e| format!("the checker complains:\n{e}"))?;
    harness::sound(&program).map_err(|e| format!("the program {e}"))?;
    let target = if compiled { Target::Compiled } else { Target::Interpreter };
    let main = program.find("f").ok_or("the program has no `f`")?;
    let function = program_without_derivatives(&program, main);
    let mut modes = Modes::new(&program, main)?.ok_or("`f` has floats")?;
    modes.stops = generated.stops();
    let probe = interpret::call(&function, main, &arguments(generated, seed, PROBE.0, PROBE.1));
    let deep = probe.is_ok_and(|(_, counts)| counts.total() > LIMIT) || modes.nest() >= NEST;
    DEEP.fetch_add(deep as u64, Relaxed);
    let affordable = |(n, m): &(i64, i64)| !deep || *n.min(m) <= 1;
    for (n, m) in SIZES.into_iter().filter(affordable) {
        let args = arguments(generated, seed, n, m);
        let checked =
            modes.check(&args, target).and_then(|runs| if runs { modes.tangent_is_cheap(&args, Counted::InputsToo) } else { Ok(()) });
        checked.map_err(|e| format!("{e}\n(n = {n}, m = {m})"))?;
    }
    if nested {
        let gradient = program.find("gradient").ok_or("the program has no `gradient`")?;
        let mut modes = Modes::new(&program, gradient)?.ok_or("gradients have floats")?;
        modes.stops = generated.stops();
        for (n, m) in NESTED_SIZES.into_iter().filter(affordable) {
            let mut args = arguments(generated, seed, n, m);
            let Ok((value, _)) = interpret::call(&function, main, &args) else { continue };
            args.extend(harness::direction(&value, 5));
            modes.check(&args, target).map_err(|e| format!("nested: {e}\n(n = {n}, m = {m})"))?;
        }
    }
    Ok(())
}

/// With every derived function that `f` needs defined.
fn program_without_derivatives(program: &iverson::ir::Program, id: iverson::ir::FunctionId) -> iverson::ir::Program {
    iverson::pipeline::prepare(program, id, Some("inline"))
}

/// `gradient(x, .., seed)`: the adjoints of `f`, to be differentiated again.
fn gradient_definition(generated: &Generated) -> String {
    let main = generated.main();
    let params: Vec<String> = main.params.iter().map(|(name, ty)| format!("{name}: {}", generated.given(ty))).collect();
    let names: Vec<&str> = main.params.iter().map(|(name, _)| name.as_str()).collect();
    let adjoints: Vec<String> = main.params.iter().filter(|(_, ty)| ty.has_float()).map(|(_, ty)| generated.given(ty)).collect();
    format!(
        "def gradient({}, seed: {}) -> ({}) =\n  let (value, adjoints) = vjp(f, ({}), seed); adjoints\n",
        params.join(", "),
        main.result.text(),
        adjoints.join(", "),
        names.join(", ")
    )
}

/// Random arguments of these sizes.
fn arguments(generated: &Generated, seed: u64, n: i64, m: i64) -> Vec<Value> {
    let mut random = Random(seed ^ 0x5eed);
    let sizes = [("n", n), ("m", m)];
    let params = generated.main().params.iter();
    // Of a scalar, or of an array as the program declares it.
    let float = |ty: &Ty| match (generated.width, generated.given(ty).contains("f32")) {
        (Width::Single, _) | (_, true) => Scalar::F32,
        (Width::Wide | Width::Mixed, false) => Scalar::F64,
    };
    params
        .map(|(_, ty)| match ty {
            Ty::F64 => Value::Scalar(Lit::float(float(ty), random.float())),
            Ty::I64 => Value::Scalar(Lit::I64(random.below(7) as i64 - 2)),
            Ty::Floats(dims) => {
                let shape: Vec<usize> = dims.iter().map(|d| d.value(&sizes) as usize).collect();
                let mut data = Data::zeros(float(ty), 0);
                (0..shape.iter().product::<usize>()).for_each(|_| data.push(Lit::float(float(ty), random.float())));
                Value::Array(Array { shape, data })
            }
            Ty::Places(at, to) => {
                let count = at.value(&sizes) as usize;
                let scalar = if generated.given(ty).contains("i32") { Scalar::I32 } else { Scalar::I64 };
                let mut data = Data::zeros(scalar, 0);
                (0..count).for_each(|_| data.push(Lit::integer(scalar, random.below(to.value(&sizes) as usize) as i64)));
                Value::Array(Array { shape: vec![count], data })
            }
            Ty::Place(_) | Ty::Bool | Ty::Tuple(_) => unreachable!("no parameter has this type"),
        })
        .collect()
}
