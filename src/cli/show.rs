//! `show`: a function or its derivative, as a program after any pass, or as generated code.

use super::derivative::Derivative;
use super::failure::Failure;
use super::inputs::check_name;
use super::memory;
use super::options::{Emit, Show};
use super::output;
use super::progress::Progress;
use super::source::Source;
use super::wrt::By;
use iverson::ir::print::print_function;
use iverson::ir::{Body, FunctionId, Program};
use iverson::optimize::inline::callees;
use iverson::{loops, pipeline, runtime};
use std::io::Write;

/// Before any pass: as the program was checked.
const CHECKED: &str = "check";

pub fn show(options: &Show) -> Result<(), Failure> {
    let (mut source, of) = Source::subject(&options.subject)?;
    let id = match options.derivative {
        None => of,
        Some(kind) => {
            let by = By::new(&mut source, of, &options.wrt)?;
            Derivative::stored(&mut source, &by, kind, options.storage)?.id
        }
    };
    if let Some(pass) = &options.after {
        let names: Vec<&str> = [CHECKED].into_iter().chain(pipeline::pass_names()).collect();
        check_name(pass, &names, || format!("no pass `{pass}`"))?;
    }
    let without = options.passes.without();
    let settings = super::execute::settings(&without);
    let progress = Progress::new("preparing");
    let shown = options.emit.is_none().then_some(pipeline::LAST_SHOWN_PASS);
    let program = match options.after.as_deref().or(shown) {
        Some(CHECKED) => source.program,
        after => pipeline::prepare_without(&source.program, id, after, memory::asked(options.memory), &without),
    };
    let text = match options.emit {
        None => definitions(&program, id),
        Some(Emit::C) => runtime::c_source(&program, id, settings),
        Some(Emit::Copies) => loops::copies::report(&runtime::kernel(&program, id, settings, &Default::default())),
        Some(Emit::Loops) => loops::print::print(&runtime::kernel(&program, id, settings, &Default::default())),
    };
    drop(progress);
    output::print(|out| out.write_all(text.as_bytes()))
}

/// The function, after those that it calls: together they are a program.
pub fn definitions(program: &Program, id: FunctionId) -> String {
    fn visit(program: &Program, id: FunctionId, seen: &mut Vec<FunctionId>) {
        for callee in callees(program, id).into_iter().filter(|f| !seen.contains(f)).collect::<Vec<_>>() {
            visit(program, callee, seen);
        }
        if !seen.contains(&id) {
            seen.push(id);
            // The derivatives that it is given call it, as a rule.
            program.vars.rules(id).into_iter().flat_map(|rules| rules.given()).for_each(|rule| visit(program, rule, seen));
        }
    }
    let mut order = vec![];
    visit(program, id, &mut order);
    // A derived function has no text of its own but where it is what was asked for.
    let shown = order.into_iter().filter(|f| *f == id || matches!(program.function(*f).body, Body::Exp(_)));
    shown.map(|f| print_function(program, f)).collect::<Vec<_>>().join("\n")
}

/// The head of a definition on one line.
pub fn head(program: &Program, id: FunctionId) -> String {
    let text = print_function(program, id);
    // The first `=` ends it: types have none.
    let words: Vec<&str> = text.split(" =").next().unwrap_or_default().split_whitespace().collect();
    words.join(" ").trim_start_matches("def ").replace("( ", "(").replace(" )", ")")
}
