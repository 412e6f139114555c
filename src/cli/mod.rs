//! The command line: options to a command, its failure to an exit code.
//!
//! Results go to stdout, all else to stderr. Exit codes: 0, 1 for an error, 2 for a call that is not understood.

mod bench;
mod build;
mod call;
mod check_grad;
mod completions;
mod cost;
mod derivative;
mod execute;
mod failure;
mod fmt;
mod inputs;
mod memory;
mod options;
mod output;
mod profile;
mod progress;
mod repl;
mod show;
mod signals;
mod source;
mod usage;
mod wrt;

use failure::Failure;
use iverson::unfinished;
use options::{Command, Kind};
use std::process::ExitCode;

/// Deeply nested programs are walked by recursion; the memory is only touched where it is needed.
const STACK: usize = 1 << 29;

pub fn main() -> ExitCode {
    let options = usage::options();
    // A session watches for interrupts itself: they end a computation, not the session.
    if !matches!(options.command, Command::Repl(_)) {
        signals::watch();
    }
    let work = std::thread::Builder::new()
        .name("iverson".into())
        .stack_size(iverson::memory::stack(STACK))
        .spawn(move || dispatch(options.command));
    let outcome = work.map(std::thread::JoinHandle::join);
    unfinished::give_up();
    match outcome {
        Ok(Ok(Ok(()))) => ExitCode::SUCCESS,
        Ok(Ok(Err(failure))) => failure.report(),
        // The panic has been printed: it is our fault, not the user's.
        Ok(Err(_)) => ExitCode::from(101),
        Err(e) => Failure::message(format!("cannot start: {e}")).report(),
    }
}

fn dispatch(command: Command) -> Result<(), Failure> {
    match command {
        Command::Check { file } => source::check(&file),
        Command::Run(c) => call::run(&c),
        Command::Grad(d) => call::derivative(&d.call, Kind::Grad, &d.wrt),
        Command::ValueAndGrad(d) => call::derivative(&d.call, Kind::ValueAndGrad, &d.wrt),
        Command::Jacobian(d) => call::matrix(&d, Kind::Jacobian),
        Command::Hessian(d) => call::matrix(&d, Kind::Hessian),
        Command::Jvp(d) => call::directional(&d, Kind::Jvp),
        Command::Hvp(d) => call::directional(&d, Kind::Hvp),
        Command::Vjp(d) => call::seeded(&d),
        Command::Show(s) => show::show(&s),
        Command::Cost(c) => cost::cost(&c),
        Command::CheckGrad(c) => check_grad::check_grad(&c),
        Command::Bench(b) => bench::bench(&b),
        Command::Profile(p) => profile::profile(&p),
        Command::Build(b) => build::build(&b),
        Command::Fmt(f) => fmt::fmt(&f),
        Command::Repl(r) => repl::repl(&r),
        Command::Completions { shell } => completions::script(shell),
        Command::Complete(c) => completions::complete(&c),
    }
}
