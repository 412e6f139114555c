//! `profile`: where the time of calls goes, by line of the source.

use super::bench::{Stage, duration, prepare};
use super::execute::{Executable, threads};
use super::failure::Failure;
use super::options::{Profile, Target};
use super::output;
use super::progress::Progress;
use super::source::Source;
use iverson::diagnostic::{Sources, Span};
use iverson::runtime;
use iverson::value::Error;
use serde_json::json;
use std::io::Write;
use std::time::{Duration, Instant};

/// Shares below this are not worth a line.
const LEAST: f64 = 0.001;
/// The longest text of a line that is shown.
const TEXT: usize = 80;
/// The most lines that are shown of those that have become one loop.
const TOGETHER: usize = 6;

pub fn profile(options: &Profile) -> Result<(), Failure> {
    let execution = &options.work.execution;
    if execution.target == Target::Interpret {
        return Err(Failure::message("only native code is profiled; leave out `--target interpret`"));
    }
    let prepared = prepare(&options.work)?;
    let source = &prepared.source;
    let plain = prepared.executables(|id, values| Executable::new(source, id, execution, values))?;
    let marked = prepared.executables(|id, values| Executable::profiling(source, id, execution, values))?;
    let threads = threads(execution);
    let long = Duration::from_secs_f64(options.seconds) / plain.len() as u32;
    let mut seen = vec![];
    for (mut plain, marked) in plain.into_iter().zip(marked) {
        let progress = Progress::new("timing");
        let call = time(&mut plain, source, long / 4)?;
        drop(progress);
        seen.push((call, sample(&marked, source, threads, long)?));
    }
    let table = Table::new(&seen, &source.sources);
    let function = &source.program.function(prepared.id).name;
    let call: f64 = seen.iter().map(|(call, _)| call).sum();
    let marked_call: f64 = seen.iter().map(|(_, profile)| profile.call).sum();
    let calls = seen.last().map_or(0, |(_, profile)| profile.calls);
    output::print(|out| {
        if options.json {
            let place = |p: &Place| json!({"file": p.file, "line": p.line, "text": p.text});
            let places = |r: &Row| r.places.iter().map(place).collect::<Vec<_>>();
            let row = |r: &Row| json!({"share": r.share, "ms": 1e3 * r.share * call, "places": places(r)});
            return writeln!(
                out,
                "{}",
                json!({
                    "function": function,
                    "call_ms": 1e3 * call,
                    "marked_call_ms": 1e3 * marked_call,
                    "calls": calls,
                    "samples": table.samples,
                    "threads": threads,
                    "lines": table.rows.iter().map(row).collect::<Vec<_>>(),
                    "elsewhere": table.elsewhere,
                })
            );
        }
        let plural = if threads == 1 { "" } else { "s" };
        writeln!(out, "`{function}` takes {} a call on {threads} thread{plural}", duration(call))?;
        writeln!(out, "{} samples of {} calls, of {} with marks", table.samples, calls, duration(marked_call))?;
        writeln!(out)?;
        table.write(out, call)
    })
}

fn sample(marked: &Stage, source: &Source, threads: usize, long: Duration) -> Result<runtime::Profile, Failure> {
    let _progress = Progress::new("sampling");
    let seen = marked.executable.native().expect("native code").profile(marked.values, threads, long);
    let seen = seen.map_err(|failure| Failure::diagnostics(&[failure.diagnostic()], &source.sources))?;
    let Some(seen) = seen else {
        return Err(Failure::message("this system has no clock that samples a thread; `profile` needs Linux"));
    };
    if seen.samples.iter().all(|(_, n)| *n == 0) {
        let error = Error::new(format!("nothing was seen in {} calls of {} each", seen.calls, duration(seen.call)));
        return Err(Failure::Message(error.note("sample for longer, with `--seconds`")));
    }
    Ok(seen)
}

/// The median of the seconds of calls for about so long.
fn time(plain: &mut Stage, source: &Source, long: Duration) -> Result<f64, Failure> {
    let start = Instant::now();
    let mut times = vec![];
    while times.is_empty() || start.elapsed() < long {
        let call = Instant::now();
        plain.call(source)?;
        times.push(call.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// The lines of the source by the time they take.
struct Table {
    samples: u64,
    rows: Vec<Row>,
    /// The share of what is in no loop: entering and leaving the call.
    elsewhere: f64,
}

struct Row {
    /// Several where loops of several lines have become one.
    places: Vec<Place>,
    share: f64,
}

/// A line of the source.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    file: String,
    line: usize,
    text: String,
}

impl Table {
    /// Of the parts of a call, each with its seconds.
    fn new(seen: &[(f64, runtime::Profile)], sources: &Sources) -> Table {
        let call: f64 = seen.iter().map(|(seconds, _)| seconds).sum();
        let total = |profile: &runtime::Profile| profile.samples.iter().map(|(_, n)| n).sum::<u64>();
        let mut rows: Vec<Row> = vec![];
        let mut elsewhere = 0.0;
        let shares = seen.iter().flat_map(|(seconds, profile)| {
            let unit = seconds / call / total(profile) as f64;
            profile.samples.iter().filter(|(_, n)| *n > 0).map(move |(spans, n)| (spans, *n as f64 * unit))
        });
        for (spans, share) in shares {
            if spans.is_empty() {
                elsewhere += share;
                continue;
            }
            let mut places: Vec<Place> = spans.iter().map(|span| place(sources, *span)).collect();
            places.sort();
            places.dedup();
            match rows.iter_mut().find(|row| row.places == places) {
                Some(row) => row.share += share,
                None => rows.push(Row { places, share }),
            }
        }
        rows.sort_by(|a, b| b.share.total_cmp(&a.share));
        Table { samples: seen.iter().map(|(_, profile)| total(profile)).sum(), rows, elsewhere }
    }

    fn write(&self, out: &mut impl Write, call: f64) -> std::io::Result<()> {
        let shown: Vec<&Row> = self.rows.iter().filter(|row| row.share >= LEAST).collect();
        let width = shown.iter().flat_map(|row| &row.places).map(|p| p.name().chars().count()).max().unwrap_or(0);
        writeln!(out, "{:>7}  {:>10}  line", "share", "time")?;
        for row in shown {
            let mut figures = format!("{:>5.1} %  {:>10}", 100.0 * row.share, duration(row.share * call));
            for place in row.places.iter().take(TOGETHER) {
                writeln!(out, "{figures:19}  {:width$}  {}", place.name(), place.text)?;
                figures.clear();
            }
            if row.places.len() > TOGETHER {
                writeln!(out, "{:19}  … and {} more", "", row.places.len() - TOGETHER)?;
            }
        }
        writeln!(out, "{:>5.1} %  {:>10}  outside of loops", 100.0 * self.elsewhere, duration(self.elsewhere * call))
    }
}

impl Place {
    fn name(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }
}

/// The line that a span begins on, without what surrounds it.
fn place(sources: &Sources, span: Span) -> Place {
    let (line, _) = sources.position(span);
    let text = sources.text(span.source).lines().nth(line - 1).unwrap_or_default().trim();
    let text = match text.char_indices().nth(TEXT) {
        Some((end, _)) => format!("{} …", text[..end].trim_end()),
        None => text.to_string(),
    };
    Place { file: sources.name(span.source).to_string(), line, text }
}
