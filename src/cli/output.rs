//! Results: to the terminal, as JSON, or to a NumPy archive.

use super::failure::Failure;
use super::options::Output;
use iverson::value::named::Named;
use std::io::{self, BufWriter, Write};

pub fn write(result: &Named, output: &Output) -> Result<(), Failure> {
    if let Some(path) = &output.out {
        result.write_npz(path)?;
        if !output.json {
            return Ok(());
        }
    }
    print(|out| if output.json { result.write_json(out).and_then(|()| writeln!(out)) } else { result.write_text(out) })
}

/// Writes to stdout and makes sure that it arrived.
pub fn print(f: impl FnOnce(&mut BufWriter<io::StdoutLock>) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    f(&mut out).and_then(|()| out.flush()).map_err(Failure::from)
}
