//! Results: to the terminal, as JSON, or to a NumPy archive.

use super::failure::Failure;
use super::options::Output;
use iverson::value::named::Named;
use iverson::value::npy::reason;
use std::io::{self, BufWriter, Write};
use std::path::Path;

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

/// Writes a file whole or not at all: beside its place first, then into it. Its permissions stay.
pub fn replace(path: &Path, contents: &[u8]) -> Result<(), Failure> {
    let failed = |e: io::Error| Failure::message(format!("cannot write {}: {}", path.display(), reason(&e)));
    // A link stays a link.
    let place = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let folder = place.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".iverson-");
    // A new file is as open as the user's other files are.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder).map_err(failed)?;
    file.write_all(contents).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
    if let Ok(metadata) = std::fs::metadata(&place) {
        file.as_file().set_permissions(metadata.permissions()).map_err(failed)?;
    }
    file.persist(&place).map_err(|e| failed(e.error))?;
    Ok(())
}
