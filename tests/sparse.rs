//! Sparse Jacobians and Hessians.
//!
//! `tests/sparse/*.iv` are programs with calls and what they give, as golden programs have them: `--- f([1, 2])`, then the
//! value; `--- cost f(..)` is the number of operations. `BLESS=1` writes what they give now. Each call is interpreted after
//! every pass, and compiled. Functions of golden and of random programs are besides compared with their dense Jacobians:
//! small ones, or all with `SPARSE=all`.

#[allow(dead_code)]
mod generator;
mod harness;

use generator::grow::grow;
use generator::matrix::Matrix;
use harness::matrices::check_sparse;
use harness::stages::{Stages, TOLERANCE, Target, check_same};
use harness::{fits, load, sample, with_sizes};
use iverson::ir::specialize::{Known, Taken, inner_sizes, specialize};
use iverson::ir::{Body, Exp, FunctionId, Program};
use iverson::value::Value;
use iverson::value::literal;
use iverson::value::named::Named;
use iverson::value::tree::Wanted;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Functions of more nodes take long.
const LARGEST: usize = 14;

fn files(folder: &str) -> Vec<PathBuf> {
    let mut found = vec![];
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "iv") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn programs_give_what_they_should() {
    let bless = std::env::var("BLESS").is_ok();
    let mut wrong = vec![];
    for file in files("tests/sparse") {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut out = vec![];
        for case in text.split("\n===\n") {
            let mut sections = case.trim_end().split("\n--- ");
            let source = sections.next().unwrap_or_default();
            let mut case = format!("{}\n", source.trim_end());
            let program = load(&format!("{source}\n"));
            for section in sections {
                let (command, wanted) = section.split_once('\n').unwrap_or((section, ""));
                let found = match &program {
                    Ok(program) => run(program, command).unwrap_or_else(|e| format!("error: {e}")),
                    Err(e) => format!("error: {e}"),
                };
                if found.trim_end() != wanted.trim_end() && !bless || found.starts_with("error: ") {
                    wrong.push(format!("{}: {command}\nsays\n{found}\nbut should say\n{wanted}", file.display()));
                }
                let _ = writeln!(case, "--- {command}\n{}", found.trim_end());
            }
            out.push(case);
        }
        let out = out.join("===\n");
        if bless && out != text {
            std::fs::write(&file, out).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// What a call gives, `fails f(..)` why it fails, `cost f(..)` what it costs.
fn run(program: &Program, command: &str) -> Result<String, String> {
    let (word, call) = match command.split_once(' ') {
        Some((word @ ("cost" | "fails"), call)) => (word, call),
        _ => ("", command),
    };
    let (name, rest) = call.split_once('(').ok_or("no call")?;
    let id = program.find(name).ok_or(format!("there is no function `{name}`"))?;
    let mut args = vec![];
    for (k, text) in split_commas(rest.strip_suffix(')').ok_or("no call")?).iter().enumerate() {
        let tree = literal::read(text).map_err(|e| e.to_string())?;
        let wanted = Wanted { what: "argument", ty: program.param_type(id, k), name: &|v| program.vars.name(v).to_string() };
        args.push(wanted.convert(tree).map_err(|e| e.to_string())?);
    }
    let args = match (with_sizes(program, id, args), word) {
        (Ok(args), _) => args,
        (Err(failure), "fails") => return Ok(failure),
        (Err(failure), _) => return Err(failure),
    };
    let stages = Stages::new(program, id)?;
    let outcome = stages.call(&args, Target::Compiled)?;
    if let Ok((value, _)) = &outcome {
        same_for_its_sizes(program, id, &args, value)?;
    }
    match (outcome, word) {
        (Err(failure), "fails") => Ok(failure.message),
        (Err(failure), _) => Err(format!("the call fails: {}", failure.message)),
        (Ok(_), "fails") => Err("the call does not fail".to_string()),
        (Ok(_), "cost") => {
            let shown = iverson::pipeline::prepare(program, id, Some(iverson::pipeline::LAST_SHOWN_PASS));
            let (_, counts) = iverson::interpret::call(&shown, id, &args).map_err(|f| f.message)?;
            Ok(format!("{} operations", counts.total()))
        }
        (Ok((mut value, _)), _) => {
            value.for_each_float(&mut |x| *x = format!("{x:.11e}").parse().expect("a number"));
            Ok(Named::labelled(value, program.result_type(id)).pretty(0))
        }
    }
}

/// Compares code that is made for the sizes of a call alone.
fn same_for_its_sizes(program: &Program, id: FunctionId, args: &[Value], wanted: &Value) -> Result<(), String> {
    let bound = iverson::bind::sizes(program, id, args).map_err(|e| e.to_string())?;
    let sizes = inner_sizes(program, id).into_iter().map(|v| (v, bound[&v])).collect();
    let (program, id) = specialize(program, id, &Known { sizes, ..Known::default() }, Taken::Still);
    let found = Stages::new(&program, id)?.call(args, Target::Compiled)?.map_err(|f| f.message)?.0;
    check_same(wanted, &found, TOLERANCE).map_err(|e| format!("at its sizes: {e}"))
}

fn split_commas(text: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for c in text.chars() {
        depth += matches!(c, '(' | '[' | '{') as i32 - matches!(c, ')' | ']' | '}') as i32;
        match c {
            ',' if depth == 0 => parts.push(String::new()),
            c => parts.last_mut().expect("one part").push(c),
        }
    }
    parts.into_iter().map(|p| p.trim().to_string()).filter(|p| !p.is_empty()).collect()
}

/// Runs over all items on all processors; gives what is wrong.
fn in_parallel<T: Send>(items: Vec<T>, check: impl Fn(&T) -> Vec<String> + Sync) -> Vec<String> {
    let work = Mutex::new(items);
    let wrong = Mutex::new(vec![]);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |n| n.get()) {
            scope.spawn(|| {
                loop {
                    let Some(item) = work.lock().unwrap().pop() else { return };
                    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&item)));
                    wrong.lock().unwrap().extend(found.unwrap_or_else(|_| vec!["panicked".to_string()]));
                }
            });
        }
    });
    wrong.into_inner().unwrap()
}

#[test]
fn golden_programs_have_the_entries_of_their_dense_jacobians() {
    let only = std::env::var("GOLDEN").unwrap_or_default();
    let all = std::env::var("SPARSE").is_ok();
    let mut files = files(if all { "tests/golden" } else { "tests/golden/optimize" });
    files.extend(self::files("tests/sparse"));
    files.retain(|f| f.to_string_lossy().contains(&only));
    let compared = Mutex::new(0);
    let wrong = in_parallel(files, |file| {
        let mut wrong = vec![];
        for case in std::fs::read_to_string(file).unwrap().split("\n===\n") {
            let source = case.split("\n--- ").next().unwrap_or_default();
            let Ok(program) = load(&format!("{source}\n")) else { continue };
            for id in (0..program.functions.len() as u32).map(FunctionId) {
                let function = program.function(id);
                let small = |e: &Exp| all || e.node_count() <= LARGEST;
                let own = function.span.source == 0 && matches!(&function.body, Body::Exp(e) if small(e));
                let sizes = if all { 0..3 } else { 2..3 };
                for args in sample::sweep(&program, id).into_iter().take(sizes.end).skip(sizes.start) {
                    if !own || fits(&program, id, &args).is_err() {
                        continue;
                    }
                    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check_sparse(&program, id, &args)));
                    match found.unwrap_or_else(|_| Err("panicked".to_string())) {
                        Ok(true) => *compared.lock().unwrap() += 1,
                        Ok(false) => {}
                        Err(e) => wrong.push(format!("{}: {} at {args:?}\n{e}", file.display(), function.name)),
                    }
                }
            }
        }
        wrong
    });
    println!("{} Jacobians compared", compared.lock().unwrap());
    assert!(wrong.is_empty(), "{} wrong:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn random_programs_have_the_entries_of_their_dense_jacobians() {
    let variable = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let matrix = Matrix::new();
    let seeds: Vec<u64> = match variable("IVERSON_SEED") {
        Some(seed) => vec![seed],
        None => (0..variable("IVERSON_FUZZ").unwrap_or(16)).collect(),
    };
    let wrong = in_parallel(seeds, |seed| {
        let text = grow(*seed, &matrix).text();
        let Ok(program) = load(&text) else { return vec![] };
        let mut wrong = vec![];
        // Of `g`, which gives a number, there is a Hessian.
        let functions = ["f", "g"].iter().filter_map(|name| program.find(name));
        let calls = functions.flat_map(|id| sample::sweep(&program, id).into_iter().take(3).skip(1).map(move |args| (id, args)));
        for (id, args) in calls {
            if fits(&program, id, &args).is_ok() {
                let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check_sparse(&program, id, &args)));
                let found = found.unwrap_or_else(|_| Err("panicked".to_string()));
                wrong.extend(found.err().map(|e| format!("seed {seed}: {e}\n{text}")));
            }
        }
        wrong
    });
    assert!(wrong.is_empty(), "{} wrong:\n\n{}", wrong.len(), wrong.join("\n\n"));
}
