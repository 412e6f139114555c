//! `bench`: the time of calls, apart from compilation.

use super::derivative::Derivative;
use super::execute::{Executable, threads};
use super::failure::Failure;
use super::options::{Bench, Kind, Target, Work};
use super::output;
use super::progress::Progress;
use super::source::{Called, Purpose, Source};
use super::wrt::By;
use iverson::ir::FunctionId;
use iverson::value::Value;
use iverson::value::named::Named;
use serde_json::json;
use std::io::Write;
use std::time::{Duration, Instant};

/// A function with the values that it is to be called with.
pub struct Prepared {
    pub source: Source,
    pub id: FunctionId,
    pub values: Vec<Value>,
    /// What a call is: the function that computes sizes of the result, if there is one, and the function itself; each with
    /// how many of the values it takes.
    pub stages: Vec<(FunctionId, usize)>,
    derivative: Option<Derivative>,
    /// How long it took to read the values.
    reading: Duration,
}

impl Prepared {
    /// The stages, ready to be called.
    pub fn executables(&self, new: impl Fn(FunctionId, &[Value]) -> Result<Executable, Failure>) -> Result<Vec<Stage<'_>>, Failure> {
        let stage = |(id, count): &(FunctionId, usize)| {
            let values = &self.values[..*count];
            Ok(Stage { executable: new(*id, values)?, values, result: None })
        };
        self.stages.iter().map(stage).collect()
    }

    /// The result of a call, with names.
    fn named(&self, result: Value) -> Named {
        match &self.derivative {
            Some(derivative) => derivative.named(&self.source, result),
            None => Named::labelled(result, self.source.program.result_type(self.id)),
        }
    }
}

/// One part of a call.
pub struct Stage<'a> {
    pub executable: Executable,
    pub values: &'a [Value],
    /// Of the last call; its memory is used again.
    result: Option<Value>,
}

impl Stage<'_> {
    pub fn call(&mut self, source: &Source) -> Result<(), Failure> {
        self.executable.call_into(source, self.values, &mut self.result)
    }
}

pub fn prepare(work: &Work) -> Result<Prepared, Failure> {
    let purpose = if work.derivative.is_some() { Purpose::Derivative } else { Purpose::Value };
    let Called { mut source, id: of, mut given, mut values, mut sizes, reading } =
        Source::called(&work.subject, &work.inputs, &work.execution, purpose)?;
    let mut id = of;
    let mut taken = None;
    let mut sizing = source.program.function(of).hidden.map(|hidden| (hidden.sizes, hidden.at));
    if let Some(kind) = work.derivative {
        let by = By::new(&mut source, of, &work.wrt)?;
        (values, sizes) = by.arguments(&source, values, sizes)?;
        let derivative = Derivative::stored(&mut source, &by, kind, work.storage)?;
        values = derivative.with_sizes(&source, values, &work.execution)?;
        sizing = derivative.sizes(&source);
        match kind {
            Kind::Jvp | Kind::Hvp => values.extend(derivative.directions(&source, &work.directions.dir, &mut given, &sizes)?),
            Kind::Vjp => values.push(derivative.seed(&source, work.seed.seed.as_deref(), &mut given, &sizes)?),
            Kind::Grad | Kind::ValueAndGrad | Kind::Jacobian | Kind::Hessian => {}
        }
        id = derivative.id;
        taken = Some(derivative);
    }
    let stages = sizing.into_iter().chain([(id, values.len())]).collect();
    Ok(Prepared { source, id, values, stages, derivative: taken, reading })
}

pub fn bench(options: &Bench) -> Result<(), Failure> {
    let start = Instant::now();
    let work = &options.work;
    let mut prepared = prepare(work)?;
    if options.listen {
        // Sizes of results that depend on data are known by now.
        prepared.stages = prepared.stages.split_off(prepared.stages.len() - 1);
    }
    let mut stages = prepared.executables(|id, values| Executable::new(&prepared.source, id, &work.execution, values))?;
    let ready = start.elapsed().saturating_sub(prepared.reading);
    if options.listen {
        listen(&mut stages, &prepared, ready)?;
    } else {
        measure(&mut stages, &prepared, options)?;
    }
    match (&options.out, stages.pop().and_then(|last| last.result)) {
        (Some(path), Some(result)) => output::write_file(&prepared.named(result), path),
        _ => Ok(()),
    }
}

/// Times calls as stdin asks for them, so that several programs can be timed by turns. The first line that is answered is
/// unasked: code is ready, after so many milliseconds without the reading of data.
fn listen(stages: &mut [Stage], prepared: &Prepared, ready: Duration) -> Result<(), Failure> {
    let Some(stage) = stages.last_mut() else { return Ok(()) };
    let cached = stage.executable.native().map(|native| native.from_cache);
    give_back_memory();
    output::print(|out| writeln!(out, "{}", json!({ "ready_ms": 1e3 * ready.as_secs_f64(), "cached": cached })))?;
    for line in std::io::stdin().lines() {
        let line = line?;
        let Ok(count) = line.trim().parse::<u32>() else {
            return Err(Failure::message(format!("expected how many calls to time, not `{}`", line.trim())));
        };
        let mut times = vec![];
        for _ in 0..count {
            let start = Instant::now();
            stage.call(&prepared.source)?;
            times.push(1e3 * start.elapsed().as_secs_f64());
        }
        output::print(|out| writeln!(out, "{}", json!(times)))?;
    }
    Ok(())
}

/// What compiling took would else be there for calls to use, and they would seem to take nothing.
fn give_back_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it has no condition.
    unsafe {
        libc::malloc_trim(0);
    }
}

fn measure(stages: &mut [Stage], prepared: &Prepared, options: &Bench) -> Result<(), Failure> {
    let work = &options.work;
    let mut times = time(stages, &prepared.source, options.runs)?;
    times.sort_by(f64::total_cmp);
    let (minimum, median) = (times[0], times[times.len() / 2]);
    let memory = peak_memory();
    let native: Vec<_> = stages.iter().filter_map(|stage| stage.executable.native()).collect();
    let compiled = (!native.is_empty()).then(|| (native.iter().map(|c| c.compile_ms).sum::<f64>(), native.iter().all(|c| c.from_cache)));
    let made_for = stages.last().map(|stage| stage.executable.made_for.clone()).unwrap_or_default();
    let threads = threads(&work.execution);
    output::print(|out| {
        if options.json {
            let mut report = json!({
                "function": work.subject.function,
                "target": target_name(work.execution.target),
                "median_ms": 1e3 * median,
                "min_ms": 1e3 * minimum,
                "runs": options.runs,
                "threads": threads,
            });
            if let Some((ms, cached)) = compiled {
                report["compile_ms"] = json!(ms);
                report["cached"] = json!(cached);
            }
            if !made_for.is_empty() {
                report["made_for"] = made_for.iter().cloned().collect::<std::collections::BTreeMap<_, _>>().into_iter().collect();
            }
            if let Some(bytes) = memory {
                report["peak_memory_bytes"] = json!(bytes);
            }
            return writeln!(out, "{report}");
        }
        writeln!(out, "median   {}", duration(median))?;
        writeln!(out, "min      {}", duration(minimum))?;
        if let Some((ms, cached)) = compiled {
            writeln!(out, "compile  {ms:.1} ms{}", if cached { " (cached)" } else { "" })?;
        }
        if !made_for.is_empty() {
            let list: Vec<String> = made_for.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            writeln!(out, "made for {}", list.join(", "))?;
        }
        if let Some(bytes) = memory {
            writeln!(out, "memory   {:.1} MiB at the peak", bytes as f64 / (1u64 << 20) as f64)?;
        }
        writeln!(out, "runs     {} on {threads} thread{}", options.runs, if threads == 1 { "" } else { "s" })
    })
}

/// Seconds of each call, after one that warms up.
fn time(stages: &mut [Stage], source: &Source, runs: u32) -> Result<Vec<f64>, Failure> {
    let mut call = || stages.iter_mut().try_for_each(|stage| stage.call(source));
    let warming = Progress::new("warming up");
    call()?;
    drop(warming);
    let mut times = vec![];
    let progress = Progress::counted("timing call", runs.into());
    for k in 0..runs {
        progress.at(k.into());
        let start = Instant::now();
        call()?;
        times.push(start.elapsed().as_secs_f64());
    }
    Ok(times)
}

fn target_name(target: Target) -> &'static str {
    match target {
        Target::C => "c",
        Target::Interpret => "interpret",
    }
}

pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.3} s"),
        s if s >= 1e-3 => format!("{:.3} ms", s * 1e3),
        s => format!("{:.3} µs", s * 1e6),
    }
}

/// The most memory this process has had, in bytes; only Linux says.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|k| k * 1024)
}
