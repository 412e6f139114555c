//! Libraries to be linked with other programs: emitted as one C text, compiled ahead of time.

use super::compile::{Compiler, SUPPORT, tool};
use super::{Error, Options, kernel};
use crate::emit::library::{Library, Support, header, source};
use crate::ir::{FunctionId, Program};
use crate::loops::Kernel;
use crate::unfinished;
use std::path::{Path, PathBuf};
use std::process::Command;

const GEMM: &str = include_str!("support/iverson_gemm.h");
const LIBRARY: &str = include_str!("support/iverson_library.h");

/// For which machine, and how, a library is compiled.
#[derive(Clone, Debug)]
pub struct Build {
    pub strict: bool,
    /// Threads by OpenMP; whoever links it needs OpenMP, too.
    pub openmp: bool,
    /// Denormal numbers are zero.
    pub flush: bool,
    /// What `-march` says; the compiler's own choice if none.
    pub march: Option<String>,
}

/// The function as loops for a library.
pub fn library_kernel(program: &Program, id: FunctionId, build: &Build) -> Kernel {
    kernel(program, id, Options { strict: build.strict, threads: build.openmp, ..Options::default() }, &Default::default())
}

/// The header and the text of a library, which needs no other file.
pub fn texts(library: &Library) -> (String, String) {
    let text = |name: &str| SUPPORT.iter().find(|(n, _)| *n == name).map_or("", |(_, text)| text);
    let mut base = text("iverson.h").to_string();
    for part in ["iverson_math.h", "iverson_lanes.h"] {
        base = base.replace(&format!("#include \"{part}\"\n"), &format!("\n{}\n", text(part)));
    }
    (header(library), source(library, &Support { base: &base, gemm: GEMM, library: LIBRARY }))
}

/// The flags with which the text is compiled.
pub fn library_flags(build: &Build) -> Vec<String> {
    let mut flags: Vec<String> =
        ["-std=gnu99", "-O3", "-fno-math-errno", "-fno-trapping-math", "-fwrapv", "-fPIC", "-fvisibility=hidden"].map(String::from).into();
    flags.extend(build.march.iter().map(|m| format!("-march={m}")));
    flags.push(if build.strict { "-ffp-contract=off" } else { "-ffp-contract=fast" }.into());
    if build.openmp {
        flags.push("-fopenmp".into());
    } else {
        // Vector loops need no library at run time.
        flags.extend(["-fopenmp-simd".into(), "-DIV_SIMD".into()]);
    }
    flags
}

/// Compiles a text in a folder to an object, and gives its path.
pub fn object(text: &Path, build: &Build) -> Result<PathBuf, Error> {
    let compiler = Compiler::find()?;
    let object = text.with_extension("o");
    let mut command = Command::new(&compiler.program);
    command.args(&compiler.arguments).args(library_flags(build)).args(["-w", "-c", "-o"]).arg(&object).arg(text);
    run(command, "the C compiler rejected the code made for this library")?;
    Ok(object)
}

/// A static library of an object.
pub fn archive(object: &Path, place: &Path) -> Result<(), Error> {
    let name = std::env::var("AR").ok().filter(|ar| !ar.trim().is_empty()).unwrap_or_else(|| "ar".into());
    let remedy = "install binutils, set the variable AR, or leave out the static library: `--lib shared`";
    let program = tool(&name).ok_or_else(|| Error::new(format!("the archiver `{name}` was not found")).note(remedy))?;
    let mut command = Command::new(program);
    command.arg("rcs").arg(place).arg(object);
    run(command, "the static library could not be made")
}

/// A shared library of an object, under the name by which programs will look for it.
pub fn share(object: &Path, place: &Path, name: &str, build: &Build) -> Result<(), Error> {
    let compiler = Compiler::find()?;
    let mut command = Command::new(&compiler.program);
    command.args(&compiler.arguments).arg("-shared");
    if cfg!(target_os = "linux") {
        command.arg(format!("-Wl,-soname,{name}"));
    }
    if build.openmp {
        command.arg("-fopenmp");
    }
    command.arg("-o").arg(place).arg(object).arg("-lm");
    run(command, "the shared library could not be made")
}

fn run(mut command: Command, failure: &str) -> Result<(), Error> {
    let output =
        unfinished::output(&mut command).map_err(|e| Error::new(format!("cannot run {}: {e}", command.get_program().to_string_lossy())))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Error::new(failure).note(String::from_utf8_lossy(&output.stderr).trim_end())),
    }
}
