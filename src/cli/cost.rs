//! `cost`: how many operations a function or its derivative takes, after optimisation.

use super::derivative::Derivative;
use super::failure::Failure;
use super::inputs::check_name;
use super::memory::{self, Known};
use super::options::Cost;
use super::output;
use super::progress::Progress;
use super::source::Source;
use super::wrt::By;
use iverson::differentiate::saving::Saving;
use iverson::ir::{FunctionId, Program, Type, Var};
use iverson::loops::workspace::Call;
use iverson::pipeline::Without;
use iverson::{cost, pipeline};
use serde_json::json;
use std::io::Write;

/// The most values that are kept at one time.
const SAVED: &str = "values saved";

pub fn cost(options: &Cost) -> Result<(), Failure> {
    let (mut source, of) = Source::subject(&options.subject)?;
    let id = match options.derivative {
        None => of,
        Some(kind) => {
            let by = By::new(&mut source, of, &options.wrt)?;
            Derivative::stored(&mut source, &by, kind, options.storage)?.id
        }
    };
    report(&source, id, &options.at, options.memory, options.json)
}

/// The cost of a function, as formulas or for sizes that are given; there in the way that such calls are made.
pub fn report(source: &Source, id: FunctionId, given: &[(String, String)], memory: Option<u64>, json: bool) -> Result<(), Failure> {
    let at = numbers(source, id, given)?;
    let progress = Progress::new("counting");
    let choice = match given {
        [] => None,
        _ => Some(memory::choose(&source.program, id, memory, &Without::default(), |program| known(program, id, &at))),
    };
    let saving = choice.as_ref().map_or(memory::asked(memory), |choice| choice.saving);
    // What is counted is what `show` prints.
    let program = &pipeline::prepare_within(&source.program, id, Some(pipeline::LAST_SHOWN_PASS), saving);
    let counts = cost::cost(program, id);
    drop(progress);
    let rows = [
        ("additions", &counts.additions),
        ("multiplications", &counts.multiplications),
        ("calls", &counts.calls),
        ("total", &counts.total()),
        (SAVED, &counts.saved),
    ];
    let Some(choice) = choice else {
        let formulas: Vec<(&str, String)> = rows.iter().map(|(name, p)| (*name, p.display(&program.vars))).collect();
        return output::print(|out| {
            if json {
                let mut report: serde_json::Map<_, _> = formulas.iter().map(|(name, p)| (name.replace(' ', "_"), json!(p))).collect();
                report.insert("exact".into(), json!(counts.exact && counts.saved_exact));
                report.insert("at_most".into(), json!(counts.bounds));
                return writeln!(out, "{}", serde_json::Value::Object(report));
            }
            formulas.iter().try_for_each(|(name, p)| writeln!(out, "{name:<16} {p}"))?;
            match (counts.exact, counts.saved_exact) {
                (true, true) => Ok(()),
                (false, _) if !counts.bounds => {
                    writeln!(out, "(of a `while` loop one round is counted: how often it runs depends on data)")
                }
                (false, _) => writeln!(out, "(at most: the count depends on data)"),
                (true, false) => writeln!(out, "(at most: what is saved depends on data)"),
            }
        });
    };

    let value = |v: Var| at.iter().find(|(name, _)| name == program.vars.name(v)).map(|(_, x)| *x);
    let mut numbers = vec![];
    for (name, p) in rows {
        match p.evaluate(&value) {
            Some(n) => numbers.push((name, n)),
            // How many steps a loop has may depend on data.
            None if name == SAVED && !counts.saved_exact => {}
            None => {
                let missing: Vec<String> = integers(program, id)
                    .into_iter()
                    .filter(|v| value(*v).is_none())
                    .map(|v| format!("`{}`", program.vars.name(v)))
                    .collect();
                return Err(Failure::message(match missing.is_empty() {
                    true => format!("the {name} are {}, which depends on data or is too large", p.display(&program.vars)),
                    false => format!("the {name} are {}: --at must give {}", p.display(&program.vars), missing.join(", ")),
                }));
            }
        }
    }
    let blocks = choice.saving != Saving::All;
    output::print(|out| {
        if json {
            let mut report: serde_json::Map<_, _> = numbers.iter().map(|(name, n)| (name.replace(' ', "_"), json!(n))).collect();
            report.insert("bytes".into(), json!(choice.bytes));
            report.insert("blocks".into(), json!(blocks));
            return writeln!(out, "{}", serde_json::Value::Object(report));
        }
        numbers.iter().try_for_each(|(name, n)| writeln!(out, "{name:<16} {n}"))?;
        match choice.bytes {
            Some(bytes) => writeln!(out, "{:<16} {bytes}", "bytes")?,
            None => writeln!(out, "{:<16} as the data says", "bytes")?,
        }
        match blocks {
            true => writeln!(out, "(loops are cut into blocks, to fit in {} bytes)", choice.budget),
            false => Ok(()),
        }
    })
}

/// The sizes and the integer parameters of a function.
fn integers(program: &Program, id: FunctionId) -> Vec<Var> {
    let f = program.function(id);
    let parameters = f.params.iter().copied().filter(|p| *program.vars.ty(*p) == Type::I64);
    f.sizes.iter().copied().chain(parameters).collect()
}

/// The numbers given for them, by name.
fn numbers(source: &Source, id: FunctionId, given: &[(String, String)]) -> Result<Vec<(String, i64)>, Failure> {
    let program = &source.program;
    let all = integers(program, id);
    let names: Vec<&str> = all.iter().map(|v| program.vars.name(*v)).collect();
    let mut at = vec![];
    for (name, text) in given {
        check_name(name, &names, || format!("`{}` has no size `{name}`", program.function(id).name))?;
        let value = text.trim().parse().ok().filter(|n| *n >= 0);
        let value = value.ok_or_else(|| Failure::message(format!("--at {name}: expected a whole number of 0 or more, got `{text}`")))?;
        at.push((name.clone(), value));
    }
    Ok(at)
}

/// What is known of a call with such sizes.
fn known(program: &Program, id: FunctionId, at: &[(String, i64)]) -> Known {
    let f = program.function(id);
    let value = |v: &Var| at.iter().find(|(name, _)| name == program.vars.name(*v)).map(|(_, n)| *n);
    let sizes: Option<Vec<i64>> = f.sizes.iter().map(value).collect();
    fn leaves(ty: &Type, value: Option<i64>) -> Vec<Option<i64>> {
        match ty {
            Type::Tuple(parts) => parts.iter().flat_map(|t| leaves(t, None)).collect(),
            Type::Scalar(_) | Type::Array(..) => vec![value],
        }
    }
    let scalars = f.params.iter().flat_map(|p| leaves(program.vars.ty(*p), value(p))).collect();
    Known { call: Call { sizes: sizes.unwrap_or_default(), scalars }, threads: 1 }
}
