//! The command line. `cli/options.rs` says what may be asked; each command has its file in `cli/`.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
