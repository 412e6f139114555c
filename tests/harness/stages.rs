//! Every stage of a function gives the same.

use super::sound;
use iverson::interpret::{self, Counts, Failure};
use iverson::ir::widen;
use iverson::ir::{Body, Exp, Function, FunctionId, Program};
use iverson::pipeline;
use iverson::runtime;
use iverson::value::Value;
use iverson::value::compare::{Tolerance, check_close};
use std::cell::OnceCell;

/// What the compiled code and the passes may differ by: the order of additions and the last bits of functions.
pub const TOLERANCE: Tolerance = Tolerance { relative: 1e-10, absolute: 1e-12 };

/// The same of a function: an `f32` in it leaves its mark on an `f64`, too. Of its seven digits a program may lose four.
pub fn tolerance(program: &Program, id: FunctionId) -> Tolerance {
    if widen::has_f32(program, id) { Tolerance { relative: 1e-3, absolute: 1e-4 } } else { TOLERANCE }
}

/// The values are the same to a tolerance. The zero of a false bracket and of a tangent that is not there is *strong*: a
/// pass may take a product with it for zero whatever the other factor is, so where that is infinite or NaN the NaN of
/// the program as written may be a number later.
pub fn check_same(wanted: &Value, found: &Value, tolerance: Tolerance) -> Result<(), String> {
    let reference = wanted.floats();
    let mut found = found.clone();
    if found.floats().len() == reference.len() {
        let mut wanted = reference.iter();
        found.for_each_float(&mut |x| match wanted.next() {
            Some(w) if w.is_nan() => *x = *w,
            _ => {}
        });
    }
    check_close(wanted, &found, tolerance).map_err(|e| e.to_string())
}

/// A function after every pass that changed it.
pub struct Stages {
    all: Vec<Stage>,
    tolerance: Tolerance,
    compiled: OnceCell<Result<runtime::Compiled, String>>,
}

struct Stage {
    /// The pass that made it, and those after it that changed nothing.
    passes: Vec<String>,
    program: Program,
    id: FunctionId,
}

impl Stages {
    /// Runs the pipeline; the program and every stage must be sound.
    pub fn new(program: &Program, id: FunctionId) -> Result<Stages, String> {
        sound(program)?;
        let mut stages = Stages { all: vec![], tolerance: tolerance(program, id), compiled: OnceCell::new() };
        if !program.functions.iter().any(|f| matches!(f.body, Body::Derived { .. } | Body::Entries(_) | Body::Jacobian { .. })) {
            stages.all.push(Stage { passes: vec!["check".to_string()], program: program.clone(), id });
        }
        let mut wrong = None;
        pipeline::prepare_observed(program, id, None, &mut |pass, program| {
            if wrong.is_some() {
                return;
            }
            let (program, id) = alone(program, id);
            let same = stages.all.last().is_some_and(|last| last.program.function(last.id).body == program.function(id).body);
            if same {
                stages.all.last_mut().expect("there is a last stage").passes.push(pass.to_string());
                return;
            }
            wrong = sound(&program).err().map(|e| format!("after {pass}, the program {e}"));
            stages.all.push(Stage { passes: vec![pass.to_string()], program, id });
        });
        match wrong {
            Some(wrong) => Err(wrong),
            None => Ok(stages),
        }
    }

    pub fn last(&self) -> (&Program, FunctionId) {
        let stage = self.all.last().expect("the pipeline has a pass");
        (&stage.program, stage.id)
    }
    /// The stage up to which bounds on operations hold: passes settle again behind those that they do not hold for.
    pub fn bounded(&self) -> (&Program, FunctionId) {
        let runs = |s: &Stage, pass: &str| s.passes.iter().any(|p| p == pass);
        let after = self.all.iter().position(|s| runs(s, pipeline::FIRST_UNBOUNDED_PASS)).expect("every pass runs");
        let stage = if self.all[after].passes[0] == pipeline::FIRST_UNBOUNDED_PASS { after - 1 } else { after };
        (&self.all[stage].program, self.all[stage].id)
    }

    /// The stage at which what loops do not change has been moved in front of them.
    pub fn hoisted(&self) -> (&Program, FunctionId) {
        let stage = self.all.iter().find(|s| s.passes.iter().any(|p| p == "hoist")).expect("every pass runs");
        (&stage.program, stage.id)
    }

    /// The value of a call, the same at every stage and from compiled code, or why it fails. A stage may fail only if
    /// the first does: passes remove failures, but make none.
    pub fn call(&self, args: &[Value], target: Target) -> Result<Result<(Value, Counts), Failure>, String> {
        let mut first: Option<(Value, Counts)> = None;
        for stage in &self.all {
            match (interpret::call(&stage.program, stage.id, args), &first) {
                (Ok(found), None) => first = Some(found),
                (Ok((value, _)), Some((wanted, _))) => check_same(wanted, &value, self.tolerance)
                    .map_err(|e| format!("after {}, the value is another: {e}\n{}", stage.passes[0], self.shown(stage)))?,
                (Err(failure), None) => return self.fails(args, target, failure),
                (Err(failure), Some(_)) => {
                    return Err(format!("after {}, the call fails: {}\n{}", stage.passes[0], failure.message, self.shown(stage)));
                }
            }
        }
        let first = first.ok_or("there is no stage")?;
        if target == Target::Compiled {
            let value = self.compiled()?.call(args, 1).map_err(|f| format!("compiled, the call fails: {}", f.message))?;
            check_same(&first.0, &value, self.tolerance).map_err(|e| format!("compiled, the value is another: {e}"))?;
        }
        Ok(Ok(first))
    }

    /// A call that fails as written: compiled code does what the last stage does, which may fail no more.
    #[allow(clippy::type_complexity)]
    fn fails(&self, args: &[Value], target: Target, failure: Failure) -> Result<Result<(Value, Counts), Failure>, String> {
        if target == Target::Compiled {
            let (program, id) = self.last();
            match (interpret::call(program, id, args), self.compiled()?.call(args, 1)) {
                (Ok((wanted, _)), Ok(value)) => {
                    check_same(&wanted, &value, self.tolerance).map_err(|e| format!("compiled, the value is another: {e}"))?
                }
                (Err(wanted), Err(found)) if wanted == found => {}
                (wanted, found) => {
                    let wanted = wanted.map(|(value, _)| value);
                    return Err(format!("after all passes, the call gives {wanted:?}, compiled {found:?}"));
                }
            }
        }
        Ok(Err(failure))
    }

    fn compiled(&self) -> Result<&runtime::Compiled, String> {
        let compiled = self.compiled.get_or_init(|| {
            let (program, id) = self.last();
            runtime::compile(program, id, options(program, id)).map_err(|e| e.to_string())
        });
        compiled.as_ref().map_err(|e| format!("it does not compile: {e}"))
    }

    /// The value of a call after all passes, or `None` if it fails.
    pub fn value_after_all(&self, args: &[Value]) -> Option<Value> {
        let (program, id) = self.last();
        interpret::call(program, id, args).ok().map(|(value, _)| value)
    }

    fn shown(&self, stage: &Stage) -> String {
        iverson::ir::print::print_function(&stage.program, stage.id)
    }
}

/// How a function is compiled, by what is written in it. Most of a test's time would be the C compiler's if all were compiled
/// as thoroughly as for users. Of eight functions two are, one of them with every loop in lanes that can be; one more has
/// such lanes; the others have the C that users get, but compiled in a hurry.
pub fn options(program: &Program, id: FunctionId) -> runtime::Options {
    let (lanes, effort) = match share(&iverson::ir::print::print_function(program, id)) {
        0 => (runtime::InLanes::Some, runtime::Effort::Full),
        1 => (runtime::InLanes::All, runtime::Effort::Full),
        2 => (runtime::InLanes::All, runtime::Effort::Quick),
        _ => (runtime::InLanes::Some, runtime::Effort::Quick),
    };
    runtime::Options { lanes, effort, ..runtime::Options::default() }
}

/// One of eight, the same for the same text.
fn share(text: &str) -> u64 {
    text.bytes().fold(0xcbf29ce484222325u64, |h, b| (h ^ b as u64).wrapping_mul(0x100000001b3)) >> 61
}

/// Whether calls are also made of compiled code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Target {
    Interpreter,
    Compiled,
}

/// The function by itself, if it calls no other.
pub fn alone(program: &Program, id: FunctionId) -> (Program, FunctionId) {
    fn calls(exp: &Exp) -> bool {
        let mut found = matches!(exp, Exp::Call(..));
        exp.for_each_child(&mut |e| found = found || calls(e));
        found
    }
    let function: &Function = program.function(id);
    match &function.body {
        Body::Exp(body) if !calls(body) => {
            // It has no number that others know it by, nor is it the derivative of one of them.
            let (mut vars, mut function) = (program.vars.clone(), function.clone());
            vars.forget_headings();
            function.name = function.name.replace(' ', "_");
            (Program { vars, functions: vec![function] }, FunctionId(0))
        }
        Body::Exp(_) | Body::Derived { .. } | Body::Entries(_) | Body::Jacobian { .. } => (program.clone(), id),
    }
}
