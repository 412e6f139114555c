//! Golden programs: `tests/golden/**/*.iv`.
//!
//! A file is a program, then sections `--- COMMAND` with what the command says; `===` begins another program.
//! `BLESS=1 cargo test --test golden` writes what they say now; read the difference as code.
//!
//! | command | says |
//! |---|---|
//! | `f([1, 2], 3)` | the value |
//! | `grad f([1, 2], 3) wrt x` | the derivative; also `value_and_grad`, `jacobian`, `jacfwd`, `jacrev`, `hessian` |
//! | `jvp f(..) dir (..)`, `hvp f(..) dir (..)`, `vjp f(..) seed ..` | value and tangent, product, value and adjoints |
//! | `show f`, `show grad f wrt x after PASS` | the function after a pass, the last that is shown if none is named; `check` is as it was written |
//! | `cost f at n=10`, `cost grad f at n=10` | the number of operations of the function after all passes, on random arguments |
//! | `error` | the messages about the program |
//! | `fails f(..)` | why the call fails, before and after all passes |
//!
//! Every call in a golden file is besides checked at every stage, and every derivative by duality and differences
//! (`harness/`); so is every function at sizes 0, 1, 7 and 17. Of the compiled code one in four is compiled as thoroughly as
//! for users, the rest in a hurry (`harness/stages.rs`).

mod harness;

use harness::derivatives::{Counted, Modes};
use harness::stages::{Stages, Target};
use harness::{direction, load, read};
use iverson::check::{self, DerivativeKind};
use iverson::diagnostic::render;
use iverson::ir::print::print_function;
use iverson::ir::{Body, Function, FunctionId, Program, Type};
use iverson::library;
use iverson::pipeline;
use iverson::value::named::Named;
use iverson::value::{Value, literal, print, tree::Wanted};
use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

#[test]
fn golden_programs_say_what_they_should() {
    let mut files = vec![];
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden"), &mut files);
    let only = std::env::var("GOLDEN").unwrap_or_default();
    files.retain(|f| f.to_string_lossy().contains(&only));
    assert!(!files.is_empty(), "there are golden programs");
    let bless = std::env::var("BLESS").is_ok();
    let work = Mutex::new(files);
    let wrong = Mutex::new(vec![]);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let Some(file) = work.lock().unwrap().pop() else { return };
                    let found = std::panic::catch_unwind(|| run_file(&file, bless)).unwrap_or_else(|_| vec!["panicked".to_string()]);
                    wrong.lock().unwrap().extend(found.into_iter().map(|w| format!("{}: {w}", file.display())));
                }
            });
        }
    });
    let mut wrong = wrong.into_inner().unwrap();
    wrong.sort();
    assert!(wrong.is_empty(), "{} golden programs are wrong:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

fn collect(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, out);
        } else if path.extension().is_some_and(|e| e == "iv") {
            out.push(path);
        }
    }
    out.sort();
}

/// Runs the commands of a file; gives what is wrong, and writes the file anew where it is blessed.
fn run_file(file: &Path, bless: bool) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap();
    let mut wrong = vec![];
    let mut out = String::new();
    for (k, case) in text.split("\n===\n").enumerate() {
        if k > 0 {
            out.push_str("===\n");
        }
        let mut sections = case.split("\n--- ");
        let program = sections.next().unwrap_or("");
        let program = format!("{}\n", program.trim_end_matches('\n'));
        out.push_str(&program);
        let mut subject = Subject::new(&program);
        let sections: Vec<&str> = sections.collect();
        if let (Err(error), true) = (&subject.program, sections.iter().any(|s| s.trim() != "error" && !s.starts_with("error\n"))) {
            wrong.push(format!("the program is wrong:\n{error}"));
        }
        for section in sections {
            let (command, wanted) = section.split_once('\n').unwrap_or((section, ""));
            if subject.program.is_err() && command != "error" {
                let _ = writeln!(out, "--- {section}");
                continue;
            }
            let found = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| subject.run(command))) {
                Ok(Ok(found)) => found,
                Ok(Err(error)) => {
                    wrong.push(format!("--- {command}\n{error}"));
                    wanted.to_string()
                }
                Err(_) => {
                    wrong.push(format!("--- {command}\npanicked"));
                    wanted.to_string()
                }
            };
            let found = found.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
            if found.trim_end() != wanted.trim_end() && !bless {
                wrong.push(format!("--- {command}\nsays\n{found}\nbut should say\n{wanted}"));
            }
            let _ = writeln!(out, "--- {command}\n{}", found.trim_end());
        }
        wrong.extend(subject.sweep());
    }
    if bless && out != text {
        std::fs::write(file, out).unwrap();
    }
    wrong
}

/// A golden program, with the stages that its commands need.
struct Subject {
    text: String,
    program: Result<Program, String>,
    modes: HashMap<FunctionId, Option<Modes>>,
    stages: HashMap<(FunctionId, &'static str, Option<Vec<String>>), Stages>,
}

impl Subject {
    fn new(text: &str) -> Subject {
        Subject { text: text.to_string(), program: load(text), modes: HashMap::new(), stages: HashMap::new() }
    }

    fn program(&self) -> Result<&Program, String> {
        self.program.as_ref().map_err(Clone::clone)
    }

    fn run(&mut self, command: &str) -> Result<String, String> {
        let (word, rest) = command.split_once(' ').unwrap_or((command, ""));
        match word {
            "error" => self.error(),
            "show" => self.show(rest),
            "cost" => self.cost(rest),
            "fails" => self.fails(rest),
            _ => match kind(word) {
                Some(kind) => self.derivative(kind, rest),
                None => self.call(command),
            },
        }
    }

    fn error(&self) -> Result<String, String> {
        let read = read(&self.text);
        if read.diagnostics.is_empty() {
            return Err("the program has no errors".to_string());
        }
        Ok(render(&read.diagnostics, &read.sources, false))
    }

    fn call(&mut self, command: &str) -> Result<String, String> {
        let call = Call::read(self.program()?, command)?;
        let value = self.stages(call.id, None, &None)?.call(&call.args, Target::Compiled)?;
        let (value, _) = value.map_err(|f| format!("the call fails: {}", f.message))?;
        self.check(call.id, &call.args)?;
        Ok(shown(&value, self.program()?.result_type(call.id)))
    }

    fn fails(&mut self, command: &str) -> Result<String, String> {
        let call = Call::read(self.program()?, command)?;
        let text = self.text.clone();
        let stages = self.stages(call.id, None, &None)?;
        match stages.call(&call.args, Target::Compiled)? {
            Ok((value, _)) => Err(format!("the call gives {}", print::pretty(&value, 0))),
            Err(_) if stages.value_after_all(&call.args).is_some() => Err("after all passes, the call fails no more".to_string()),
            Err(failure) => Ok(render(&[failure.diagnostic()], &library::sources("golden.iv", text), false)),
        }
    }

    fn derivative(&mut self, kind: DerivativeKind, command: &str) -> Result<String, String> {
        let call = Call::read(self.program()?, command)?;
        let extra = self.extra_arguments(&call, kind)?;
        let stages = self.stages(call.id, Some(kind), &call.wrt)?;
        let mut args = call.args.clone();
        args.extend(extra);
        let value = stages.call(&args, Target::Compiled)?;
        let (value, _) = value.map_err(|f| format!("the call fails: {}", f.message))?;
        self.check(call.id, &call.args)?;
        let (program, id) = derived(self.program()?, call.id, kind, &call.wrt)?;
        Ok(shown(&value, program.result_type(id)))
    }

    /// Tangents and seeds, converted to what the derived function takes.
    fn extra_arguments(&self, call: &Call, kind: DerivativeKind) -> Result<Vec<Value>, String> {
        let program = self.program()?;
        let (derived, id) = derived(program, call.id, kind, &call.wrt)?;
        let first = program.function(call.id).params.len();
        let texts = match (&call.extra, derived.function(id).params.len() - first) {
            (None, 0) => vec![],
            (Some(text), 1) => vec![text.clone()],
            (Some(text), n) => {
                let inner = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')).ok_or("several directions are a tuple")?;
                let parts = split_commas(inner);
                if parts.len() != n {
                    return Err(format!("{n} directions are wanted"));
                }
                parts
            }
            (None, _) => return Err("a direction `dir ..` or a seed `seed ..` is wanted".to_string()),
        };
        texts.iter().zip(first..).map(|(text, k)| convert(&derived, id, k, text)).collect()
    }

    fn show(&mut self, command: &str) -> Result<String, String> {
        let (command, after) = match command.split_once(" after ") {
            Some((command, pass)) => (command, Some(pass.trim().to_string())),
            None => (command, None),
        };
        let (word, rest) = command.split_once(' ').unwrap_or((command, ""));
        let program = self.program()?;
        let (kind, name) = match kind(word) {
            Some(kind) => (Some(kind), rest),
            None => (None, command),
        };
        let (name, wrt) = split_wrt(name);
        let id = program.find(name.trim()).ok_or(format!("there is no function `{name}`"))?;
        if kind.is_none() && after.as_deref() == Some("check") {
            return Ok(print_function(program, id));
        }
        self.stages(id, kind, &wrt)?;
        let program = self.program()?;
        let (program, id) = match kind {
            Some(kind) => derived(program, id, kind, &wrt)?,
            None => (program.clone(), id),
        };
        let known = pipeline::pass_names();
        if let Some(pass) = after.as_ref().filter(|pass| !known.contains(&pass.as_str())) {
            return Err(format!("there is no pass `{pass}`; the passes are {}", known.join(", ")));
        }
        Ok(print_function(&pipeline::prepare(&program, id, after.as_deref().or(Some(pipeline::LAST_SHOWN_PASS))), id))
    }

    fn cost(&mut self, command: &str) -> Result<String, String> {
        let (command, at) = command.split_once(" at ").ok_or("`cost f at n=10`")?;
        let (word, rest) = command.split_once(' ').unwrap_or((command, ""));
        let (kind, name) = match kind(word) {
            Some(kind) => (Some(kind), rest),
            None => (None, command),
        };
        let (name, wrt) = split_wrt(name);
        let program = self.program()?;
        let id = program.find(name.trim()).ok_or(format!("there is no function `{name}`"))?;
        let sizes: HashMap<String, i64> = at
            .split(',')
            .filter_map(|part| part.split_once('='))
            .filter_map(|(n, v)| Some((n.trim().to_string(), v.trim().parse().ok()?)))
            .collect();
        let stages = self.stages(id, kind, &wrt)?;
        let (program, id) = stages.last();
        let mut args = vec![];
        for (k, param) in program.function(id).params.iter().enumerate() {
            let name = program.vars.name(*param);
            args.push(match sizes.get(name) {
                Some(value) => convert(program, id, k, &value.to_string())?,
                None => {
                    let lookup = |v| sizes.get(program.vars.name(v)).copied();
                    let mut value = Value::zero(program.vars.ty(*param), &lookup).map_err(|e| format!("{e:?}"))?;
                    let mut k = 0.0;
                    value.for_each_float(&mut |x| {
                        k += 1.0;
                        *x = 0.5 + (k * 0.7_f64).sin();
                    });
                    value
                }
            });
        }
        stages.call(&args, Target::Compiled)?.map_err(|f| f.message)?;
        let (_, counts) = iverson::interpret::call(program, id, &args).map_err(|f| f.message)?;
        Ok(format!("{} additions, {} multiplications, {} calls", counts.additions, counts.multiplications, counts.calls))
    }

    fn stages(&mut self, id: FunctionId, kind: Option<DerivativeKind>, wrt: &Option<Vec<String>>) -> Result<&Stages, String> {
        let key = (id, kind.map_or("", DerivativeKind::name), wrt.clone());
        if !self.stages.contains_key(&key) {
            let program = self.program()?;
            let stages = match kind {
                None => Stages::new(program, id)?,
                Some(kind) => {
                    let (program, id) = derived(program, id, kind, wrt)?;
                    Stages::new(&program, id)?
                }
            };
            self.stages.insert(key.clone(), stages);
        }
        Ok(&self.stages[&key])
    }

    /// What must hold of every call.
    fn check(&mut self, id: FunctionId, args: &[Value]) -> Result<(), String> {
        if !self.modes.contains_key(&id) {
            let modes = Modes::new(self.program()?, id)?;
            self.modes.insert(id, modes);
        }
        match &self.modes[&id] {
            Some(modes) => match modes.check(args, Target::Compiled)? {
                true => modes.tangent_is_cheap(args, Counted::Results),
                false => Ok(()),
            },
            None => self.stages(id, None, &None)?.call(args, Target::Compiled).map(|_| ()),
        }
    }

    /// Every function at every of `SIZES`, whether its commands call it so or not; the library's have tests of their own.
    fn sweep(&mut self) -> Vec<String> {
        let Ok(program) = self.program.clone() else { return vec![] };
        let mut wrong = vec![];
        let own = |id: &FunctionId| program.function(*id).span.source == 0;
        for id in (0..program.functions.len() as u32).map(FunctionId).filter(own) {
            for args in harness::sample::sweep(&program, id) {
                // What the sizes' equations exclude is no call.
                if harness::fits(&program, id, &args).is_ok() {
                    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.check(id, &args)));
                    if let Err(e) = found.unwrap_or_else(|_| Err("panicked".to_string())) {
                        wrong.push(format!("{} at {args:?}\n{e}", program.function(id).name));
                    }
                }
            }
            let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.check_second(id)));
            if let Err(e) = found.unwrap_or_else(|_| Err("panicked".to_string())) {
                wrong.push(format!("the second derivative of {}\n{e}", program.function(id).name));
            }
        }
        wrong
    }

    /// `jvp` of `vjp` and `vjp` of `vjp`, of small functions at a small size.
    fn check_second(&mut self, id: FunctionId) -> Result<(), String> {
        let small = |function: &Function| matches!(&function.body, Body::Exp(e) if e.node_count() <= TWICE);
        let program = self.program()?;
        let args = &harness::sample::arguments(program, id, &SECOND_SIZES, SECOND_SIZES[0]);
        if !small(program.function(id)) || harness::fits(program, id, args).is_err() {
            return Ok(());
        }
        let Ok(value) = self.stages(id, None, &None)?.call(args, Target::Interpreter)? else { return Ok(()) };
        let program = self.program()?;
        let Some(seed) = direction(&value.0, 77).filter(|_| !check::float_params(program, id).is_empty()) else { return Ok(()) };
        let (program, id) = derived(program, id, DerivativeKind::Vjp, &None)?;
        let args: Vec<Value> = args.iter().cloned().chain([seed]).collect();
        let Some(mut modes) = Modes::new(&program, id)? else { return Ok(()) };
        modes.again = true;
        modes.check(&args, Target::Interpreter).map(|_| ())
    }
}

/// Functions of more nodes are not differentiated twice, but where a command says so.
const TWICE: usize = 40;
/// The sizes at which they are: every stage is interpreted, and derivatives of derivatives take long.
const SECOND_SIZES: [i64; 3] = [3, 2, 4];

fn derived(program: &Program, id: FunctionId, kind: DerivativeKind, wrt: &Option<Vec<String>>) -> Result<(Program, FunctionId), String> {
    let mut program = program.clone();
    let id = check::derive(&mut program, id, kind, wrt.as_deref()).map_err(|d| d.message)?;
    Ok((program, id))
}

fn kind(word: &str) -> Option<DerivativeKind> {
    use DerivativeKind::*;
    [Grad, ValueAndGrad, Jvp, Vjp, Jacobian, JacFwd, JacRev, Hessian, Hvp].into_iter().find(|k| k.name() == word)
}

/// `f([1, 2], 3) wrt x dir 1`
struct Call {
    id: FunctionId,
    args: Vec<Value>,
    wrt: Option<Vec<String>>,
    /// What stands behind `dir` or `seed`.
    extra: Option<String>,
}

impl Call {
    fn read(program: &Program, text: &str) -> Result<Call, String> {
        let open = text.find('(').ok_or(format!("`{text}` is no call"))?;
        let id = program.find(&text[..open]).ok_or(format!("there is no function `{}`", &text[..open]))?;
        let mut depth = 0;
        let close = text.char_indices().skip(open).find_map(|(k, c)| {
            depth += matches!(c, '(' | '[' | '{') as i32 - matches!(c, ')' | ']' | '}') as i32;
            (depth == 0).then_some(k)
        });
        let close = close.ok_or(format!("`{text}` has no end"))?;
        let texts = split_commas(&text[open + 1..close]);
        let params = &program.function(id).params;
        if texts.len() != program.function(id).visible().count() {
            return Err(format!("`{}` takes {} arguments", &text[..open], params.len()));
        }
        let args = texts.iter().zip(0..).map(|(text, k)| convert(program, id, k, text)).collect::<Result<Vec<_>, _>>()?;
        let args = harness::with_sizes(program, id, args)?;
        harness::fits(program, id, &args)?;
        let rest = text[close + 1..].trim();
        let (rest, extra) = match rest.split_once("dir ").or_else(|| rest.split_once("seed ")) {
            Some((rest, extra)) => (rest, Some(extra.trim().to_string())),
            None => (rest, None),
        };
        let wrt = split_wrt(&format!(" {rest}")).1;
        Ok(Call { id, args, wrt, extra })
    }
}

fn split_wrt(text: &str) -> (&str, Option<Vec<String>>) {
    match text.split_once(" wrt ") {
        Some((name, wrt)) => (name, Some(wrt.split(',').map(|w| w.trim().to_string()).collect())),
        None => (text, None),
    }
}

fn split_commas(text: &str) -> Vec<String> {
    let mut parts = vec![];
    let mut depth = 0;
    let mut part = String::new();
    for c in text.chars() {
        depth += matches!(c, '(' | '[' | '{') as i32 - matches!(c, ')' | ']' | '}') as i32;
        if c == ',' && depth == 0 {
            parts.push(std::mem::take(&mut part));
        } else {
            part.push(c);
        }
    }
    parts.push(part);
    let parts: Vec<String> = parts.iter().map(|p| p.trim().to_string()).collect();
    if parts == [""] { vec![] } else { parts }
}

fn convert(program: &Program, id: FunctionId, k: usize, text: &str) -> Result<Value, String> {
    let tree = literal::read(text).map_err(|e| format!("{e:?}"))?;
    let name = |v| program.vars.name(v).to_string();
    let what = format!("argument `{}`", program.vars.name(program.function(id).params[k]));
    let wanted = Wanted { what: &what, ty: program.param_type(id, k), name: &name };
    wanted.convert(tree).map_err(|e| format!("{e:?}"))
}

/// Twelve digits, of an `f32` six: machines differ in the last bits of functions.
fn shown(value: &Value, ty: &Type) -> String {
    fn round(value: &mut Value) {
        match value {
            Value::Tuple(parts) => parts.iter_mut().for_each(round),
            leaf => {
                let single = *leaf != leaf.widened();
                leaf.for_each_float(&mut |x| {
                    let text = if single { format!("{x:.5e}") } else { format!("{x:.11e}") };
                    *x = text.parse().expect("a printed number reads back");
                });
            }
        }
    }
    let mut value = value.clone();
    round(&mut value);
    Named::labelled(value, ty).pretty(0)
}
