//! Results: to the terminal, as JSON, or to a file.

use super::failure::Failure;
use super::options::Output;
use iverson::unfinished;
use iverson::value::named::Named;
use iverson::value::npy::reason;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

pub fn write(result: &Named, output: &Output) -> Result<(), Failure> {
    if let Some(path) = &output.out {
        write_file(result, path)?;
        if !output.json {
            return Ok(());
        }
    }
    print(|out| if output.json { result.write_json(out).and_then(|()| writeln!(out)) } else { result.write_text(out) })
}

pub fn write_file(result: &Named, path: &Path) -> Result<(), Failure> {
    match path.extension().and_then(|e| e.to_str()) {
        Some("npy") => Ok(result.write_npy(path)?),
        Some("mtx") => Ok(result.write_mtx(path)?),
        Some("json") => {
            let mut text = vec![];
            result.write_json(&mut text).and_then(|()| writeln!(text))?;
            replace(&[(path.to_path_buf(), text)])
        }
        _ => Ok(result.write_npz(path)?),
    }
}

/// Writes to stdout and makes sure that it arrived.
pub fn print(f: impl FnOnce(&mut BufWriter<io::StdoutLock>) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    f(&mut out).and_then(|()| out.flush()).map_err(Failure::from)
}

/// Writes files whole or not at all: all beside their places first, then into them.
pub fn replace(files: &[(PathBuf, Vec<u8>)]) -> Result<(), Failure> {
    let mut written = vec![];
    for (path, contents) in files {
        let failed = |e: io::Error| Failure::message(format!("cannot write {}: {}", path.display(), reason(&e)));
        let mut file = unfinished::File::beside(path).map_err(failed)?;
        file.contents().write_all(contents).and_then(|()| file.contents().sync_all()).map_err(failed)?;
        written.push((file, failed));
    }
    written.into_iter().try_for_each(|(file, failed)| file.finish().map_err(failed))
}
