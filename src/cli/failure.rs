//! Why a command ends without a result.

use iverson::diagnostic::{self, Diagnostic, Sources};
use iverson::value::Error;
use iverson::value::npy::reason;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

pub enum Failure {
    /// What a value, a file or an option has wrong.
    Message(Error),
    /// Drawn diagnostics.
    Drawn(String),
    /// All was printed, but the answer is no.
    Told,
    /// Nobody reads stdout any more, which is no error.
    Closed,
}

impl Failure {
    pub fn message(text: impl Into<String>) -> Failure {
        Failure::Message(Error::new(text))
    }
    /// Diagnostics over the text they speak of.
    pub fn diagnostics(diagnostics: &[Diagnostic], sources: &Sources) -> Failure {
        Failure::Drawn(draw(diagnostics, sources))
    }

    pub fn report(self) -> ExitCode {
        let code = if matches!(self, Failure::Closed) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        if let Some(text) = self.text() {
            // If stderr is closed, too, there is nobody to tell.
            let _ = io::stderr().write_all(text.as_bytes());
        }
        code
    }

    /// What is to be said, if anything is.
    pub fn text(self) -> Option<String> {
        match self {
            Failure::Closed | Failure::Told => None,
            Failure::Message(e) => Some(format!("Error: {e}\n")),
            Failure::Drawn(text) => Some(text),
        }
    }
}

pub fn draw(diagnostics: &[Diagnostic], sources: &Sources) -> String {
    let color = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    diagnostic::render(diagnostics, sources, color)
}

impl From<Error> for Failure {
    fn from(e: Error) -> Failure {
        Failure::Message(e)
    }
}

/// Failures to write to stdout.
impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Failure {
        match e.kind() {
            io::ErrorKind::BrokenPipe => Failure::Closed,
            _ => Failure::message(format!("cannot write the result: {}", reason(&e))),
        }
    }
}
