//! `cost`: how many operations a function or its derivative takes, after optimisation.

use super::derivative::Derivative;
use super::failure::Failure;
use super::inputs::check_name;
use super::options::Cost;
use super::output;
use super::progress::Progress;
use super::source::Source;
use super::wrt::By;
use iverson::ir::{FunctionId, Type, Var};
use iverson::{cost, pipeline};
use serde_json::json;
use std::io::Write;

pub fn cost(options: &Cost) -> Result<(), Failure> {
    let (mut source, of) = Source::subject(&options.subject)?;
    let id = match options.derivative {
        None => of,
        Some(kind) => {
            let by = By::new(&mut source, of, &options.wrt)?;
            Derivative::new(&mut source, &by, kind)?.id
        }
    };
    report(&source, id, &options.at, options.json)
}

/// The cost of a function, as formulas or for sizes that are given.
pub fn report(source: &Source, id: FunctionId, given: &[(String, String)], json: bool) -> Result<(), Failure> {
    let progress = Progress::new("counting");
    let program = pipeline::prepare(&source.program, id, None);
    let f = program.function(id);
    let counts = cost::cost(&program, id);
    drop(progress);
    let integers = f.params.iter().copied().filter(|p| *program.vars.ty(*p) == Type::I64);
    let sizes: Vec<Var> = f.sizes.iter().copied().chain(integers).collect();
    let rows = [
        ("additions", &counts.additions),
        ("multiplications", &counts.multiplications),
        ("calls", &counts.calls),
        ("total", &counts.total()),
    ];
    if given.is_empty() {
        let formulas: Vec<(&str, String)> = rows.iter().map(|(name, p)| (*name, p.display(&program.vars))).collect();
        return output::print(|out| {
            if json {
                let mut report: serde_json::Map<_, _> = formulas.iter().map(|(name, p)| (name.to_string(), json!(p))).collect();
                report.insert("exact".into(), json!(counts.exact));
                return writeln!(out, "{}", serde_json::Value::Object(report));
            }
            formulas.iter().try_for_each(|(name, p)| writeln!(out, "{name:<16} {p}"))?;
            if counts.exact { Ok(()) } else { writeln!(out, "(at most: the count depends on data)") }
        });
    }

    let names: Vec<&str> = sizes.iter().map(|v| program.vars.name(*v)).collect();
    let mut at: Vec<(Var, i64)> = vec![];
    for (name, text) in given {
        check_name(name, &names, || format!("`{}` has no size `{name}`", f.name))?;
        let value = text.trim().parse().ok().filter(|n| *n >= 0);
        let value = value.ok_or_else(|| Failure::message(format!("--at {name}: expected a whole number of 0 or more, got `{text}`")))?;
        let place = names.iter().position(|n| n == name).expect("a known name");
        at.push((sizes[place], value));
    }
    let value = |v: Var| at.iter().find(|(w, _)| *w == v).map(|(_, x)| *x);
    let mut numbers = vec![];
    for (name, p) in rows {
        match p.evaluate(&value) {
            Some(n) => numbers.push((name, n)),
            None => {
                let missing: Vec<String> =
                    sizes.iter().filter(|v| value(**v).is_none()).map(|v| format!("`{}`", program.vars.name(*v))).collect();
                return Err(Failure::message(match missing.is_empty() {
                    true => format!("the {name} are {}, which depends on data or is too large", p.display(&program.vars)),
                    false => format!("the {name} are {}: --at must give {}", p.display(&program.vars), missing.join(", ")),
                }));
            }
        }
    }
    output::print(|out| match json {
        true => writeln!(out, "{}", serde_json::Value::Object(numbers.iter().map(|(name, n)| (name.to_string(), json!(n))).collect())),
        false => numbers.iter().try_for_each(|(name, n)| writeln!(out, "{name:<16} {n}")),
    })
}
