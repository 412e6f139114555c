//! `show`: a function or its derivative, as a program after any pass, or as generated code.

use super::derivative::{Derivative, wrt_positions};
use super::failure::Failure;
use super::inputs::check_name;
use super::options::{Emit, Show};
use super::output;
use super::source::Source;
use iverson::{ir, loops, pipeline, runtime};
use std::io::Write;

pub fn show(options: &Show) -> Result<(), Failure> {
    let (mut source, of) = Source::subject(&options.subject)?;
    let id = match options.derivative {
        None => of,
        Some(kind) => {
            let wrt = wrt_positions(&source, of, &options.wrt)?;
            Derivative::new(&mut source, of, kind, wrt)?.id
        }
    };
    if let Some(pass) = &options.after {
        check_name(pass, &pipeline::pass_names(), || format!("no pass `{pass}`"))?;
    }
    let program = pipeline::prepare(&source.program, id, options.after.as_deref());
    let text = match options.emit {
        None => ir::print::print_function(&program, id),
        Some(Emit::C) => runtime::c_source(&program, id, runtime::Options::default()),
        Some(Emit::Loops) => loops::print::print(&runtime::kernel(&program, id, runtime::Options::default())),
    };
    output::print(|out| out.write_all(text.as_bytes()))
}
