//! `bench`: the time of calls, apart from compilation.

use super::derivative::{Derivative, wrt_positions};
use super::execute::{Executable, threads};
use super::failure::Failure;
use super::options::{Bench, Kind, Target};
use super::output;
use super::progress::Progress;
use super::source::{Called, Purpose, Source};
use iverson::value::Value;
use serde_json::json;
use std::io::Write;
use std::time::Instant;

pub fn bench(options: &Bench) -> Result<(), Failure> {
    let purpose = if options.derivative.is_some() { Purpose::Derivative } else { Purpose::Value };
    let Called { mut source, id: of, mut given, mut values, sizes } =
        Source::called(&options.subject, &options.inputs, &options.execution, purpose)?;
    let mut id = of;
    if let Some(kind) = options.derivative {
        let wrt = wrt_positions(&source, of, &options.wrt)?;
        let derivative = Derivative::new(&mut source, of, kind, wrt)?;
        match kind {
            Kind::Jvp | Kind::Hvp => values.extend(derivative.directions(&source, &options.directions.dir, &mut given, &sizes)?),
            Kind::Vjp => values.push(derivative.seed(&source, options.seed.seed.as_deref(), &mut given, &sizes)?),
            Kind::Grad | Kind::ValueAndGrad | Kind::Jacobian | Kind::Hessian => {}
        }
        id = derivative.id;
    }
    let function = Executable::new(&source, id, &options.execution)?;
    let mut times = time(&function, &source, &values, options.runs)?;
    times.sort_by(f64::total_cmp);
    let (minimum, median) = (times[0], times[times.len() / 2]);
    let memory = peak_memory();
    let compiled = function.native();
    let threads = threads(&options.execution);
    output::print(|out| {
        if options.json {
            let mut report = json!({
                "function": options.subject.function,
                "target": target_name(options.execution.target),
                "median_ms": 1e3 * median,
                "min_ms": 1e3 * minimum,
                "runs": options.runs,
                "threads": threads,
            });
            if let Some(c) = &compiled {
                report["compile_ms"] = json!(c.compile_ms);
                report["cached"] = json!(c.from_cache);
            }
            if let Some(bytes) = memory {
                report["peak_memory_bytes"] = json!(bytes);
            }
            return writeln!(out, "{report}");
        }
        writeln!(out, "median   {}", duration(median))?;
        writeln!(out, "min      {}", duration(minimum))?;
        if let Some(c) = &compiled {
            writeln!(out, "compile  {:.1} ms{}", c.compile_ms, if c.from_cache { " (cached)" } else { "" })?;
        }
        if let Some(bytes) = memory {
            writeln!(out, "memory   {:.1} MiB at the peak", bytes as f64 / (1u64 << 20) as f64)?;
        }
        writeln!(out, "runs     {} on {threads} thread{}", options.runs, if threads == 1 { "" } else { "s" })
    })
}

/// Seconds of each call, after one that warms up.
fn time(function: &Executable, source: &Source, values: &[Value], runs: u32) -> Result<Vec<f64>, Failure> {
    let mut result = None;
    let warming = Progress::new("warming up");
    function.call_into(source, values, &mut result)?;
    drop(warming);
    let mut times = vec![];
    let progress = Progress::counted("timing call", runs.into());
    for k in 0..runs {
        progress.at(k.into());
        let start = Instant::now();
        function.call_into(source, values, &mut result)?;
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

fn duration(seconds: f64) -> String {
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
