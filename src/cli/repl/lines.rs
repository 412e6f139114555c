//! Inputs from a pipe or a file.

use super::input::is_unfinished;
use crate::cli::failure::Failure;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::{AsFd, AsRawFd};

/// How long the line behind a definition may take to come, in milliseconds.
const PATIENCE: i32 = 100;

pub struct Lines {
    reader: BufReader<File>,
    /// A line that was read too early.
    ahead: Option<String>,
}

impl Lines {
    pub fn new() -> Result<Lines, Failure> {
        let stdin = std::io::stdin().as_fd().try_clone_to_owned().map_err(unreadable)?;
        Ok(Lines { reader: BufReader::new(File::from(stdin)), ahead: None })
    }

    fn line(&mut self) -> Result<Option<String>, Failure> {
        if let Some(line) = self.ahead.take() {
            return Ok(Some(line));
        }
        let mut line = String::new();
        let count = self.reader.read_line(&mut line).map_err(unreadable)?;
        Ok((count > 0).then_some(line))
    }

    /// The next input: lines until it is finished. Lines behind a definition that are indented belong to it.
    pub fn input(&mut self) -> Result<Option<String>, Failure> {
        let Some(mut text) = self.line()? else { return Ok(None) };
        loop {
            while is_unfinished(&text) {
                match self.line()? {
                    Some(line) => text.push_str(&line),
                    None => return Ok(Some(text)),
                }
            }
            let defines = ["def ", "type "].iter().any(|word| text.trim_start().starts_with(word));
            if !defines || !self.is_ready() {
                return Ok(Some(text));
            }
            match self.line()? {
                Some(line) if line.starts_with([' ', '\t']) && !line.trim().is_empty() => text.push_str(&line),
                other => {
                    self.ahead = other;
                    return Ok(Some(text));
                }
            }
        }
    }

    /// Whether more is there, or comes soon: whoever waits for an answer before going on must get it.
    fn is_ready(&self) -> bool {
        let mut waiting = libc::pollfd { fd: self.reader.get_ref().as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one descriptor that is open.
        self.ahead.is_some() || !self.reader.buffer().is_empty() || unsafe { libc::poll(&mut waiting, 1, PATIENCE) } > 0
    }
}

fn unreadable(e: std::io::Error) -> Failure {
    Failure::message(format!("cannot read stdin: {e}"))
}
