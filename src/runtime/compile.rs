//! The system's C compiler: finding it, its flags, running it.

use super::{Effort, Error, Options};
use crate::unfinished;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The files that emitted C includes.
pub const SUPPORT: [(&str, &str); 4] = [
    ("iverson.h", include_str!("support/iverson.h")),
    ("iverson_lanes.h", include_str!("support/iverson_lanes.h")),
    ("iverson_math.h", include_str!("support/iverson_math.h")),
    ("iverson_profile.h", include_str!("support/iverson_profile.h")),
];

/// A compiler that exists.
#[derive(Clone, Debug)]
pub struct Compiler {
    pub program: PathBuf,
    /// Arguments that `$CC` has behind the program's name.
    pub arguments: Vec<String>,
    /// What changes when the compiler changes: asking it for its version would cost a process at every start.
    pub identity: String,
}

impl Compiler {
    /// `$CC`, or the first of `cc`, `gcc` and `clang` that is there.
    pub fn find() -> Result<Compiler, Error> {
        let remedy = "install gcc or clang, set the variable CC to a C compiler, or run with `--target interpret`";
        match std::env::var("CC").ok().filter(|cc| !cc.trim().is_empty()) {
            Some(cc) => {
                let mut words = cc.split_whitespace().map(str::to_string);
                let name = words.next().expect("not blank");
                match tool(&name) {
                    Some(program) => Ok(Compiler::new(program, words.collect())),
                    None => Err(Error::new(format!("the C compiler `{name}`, named by CC, was not found")).note(remedy)),
                }
            }
            None => match ["cc", "gcc", "clang"].into_iter().find_map(tool) {
                Some(program) => Ok(Compiler::new(program, vec![])),
                None => Err(Error::new("no C compiler was found").note(remedy)),
            },
        }
    }

    fn new(program: PathBuf, arguments: Vec<String>) -> Compiler {
        let program = program.canonicalize().unwrap_or(program);
        let identity = match std::fs::metadata(&program) {
            Ok(m) => format!("{} {} {:?}", program.display(), m.len(), m.modified().ok()),
            Err(_) => program.display().to_string(),
        };
        Compiler { program, arguments, identity }
    }

    /// Compiles a text, in a folder with all that it includes, to a shared library there, and gives its path. Where the
    /// compiler does not take it, what it says.
    pub fn run(&self, source: &Path, options: Options) -> Result<Result<PathBuf, String>, Error> {
        let library = source.with_extension("so");
        let mut flags = flags(options);
        let mut complaint = None;
        // Other compilers have no such passes to leave out and other libraries, and some have no OpenMP: they still make right
        // code, only without vector directives and threads.
        for unknown in [&[][..], &LEFT_OUT, &OPENMP] {
            flags.retain(|flag| !unknown.contains(flag));
            match self.attempt(source, &library, &flags)? {
                Ok(()) => return Ok(Ok(library)),
                Err(said) => complaint = complaint.or(Some(said)),
            }
        }
        Ok(Err(complaint.expect("there were attempts")))
    }

    fn attempt(&self, source: &Path, library: &Path, flags: &[&str]) -> Result<Result<(), String>, Error> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).args(flags).arg("-o").arg(library).arg(source).arg("-lm");
        let is_bare = flags.contains(&BARE);
        if is_bare {
            command.arg("-lgcc");
            command.args(flags.contains(&OPENMP[0]).then_some("-lgomp"));
        }
        // What it makes on the way goes with the folder, however it ends.
        if let Some(folder) = library.parent() {
            command.env("TMPDIR", folder);
        }
        let output = unfinished::output(&mut command)
            .map_err(|e| Error::new(format!("cannot run the C compiler {}: {e}", self.program.display())))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let program = self.program.display();
            return Ok(Err(if said.trim().is_empty() {
                format!("{program} said nothing, and ended with {}", output.status)
            } else {
                said
            }));
        }
        Ok(if is_bare { is_complete(library) } else { Ok(()) })
    }
}

/// Whether all that a library needs is in this process or in the libraries that it names.
fn is_complete(library: &Path) -> Result<(), String> {
    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
    // SAFETY: emitted code has no initialisers.
    unsafe { Library::open(Some(library), RTLD_NOW | RTLD_LOCAL) }.map(drop).map_err(|e| e.to_string())
}

/// Writes a text and what it includes to an empty folder, and gives its path.
pub fn write(folder: &Path, text: &str) -> std::io::Result<PathBuf> {
    for (name, support) in SUPPORT {
        std::fs::write(folder.join(name), support)?;
    }
    let source = folder.join("kernel.c");
    std::fs::write(&source, text)?;
    Ok(source)
}

/// For OpenMP's directives: threads and vector loops, or vector loops alone.
const OPENMP: [&str; 3] = ["-fopenmp", "-fopenmp-simd", "-DIV_SIMD"];

/// Passes of gcc that take a fifth of its time and change little (a long chain of operations takes 2 % longer without): emitted
/// code has no conditions that decide later ones, its ranges are proven before, and processors find out by themselves what can
/// be done at once. The last is about linking.
const LEFT_OUT: [&str; 5] = ["-fno-thread-jumps", "-fno-tree-dominator-opts", "-fno-tree-vrp", "-fno-schedule-insns2", BARE];

/// Not to link with the C library, which is in this process: the linker would read all its names, which takes longer than
/// compiling a line.
const BARE: &str = "-nostdlib";

/// Never `-ffast-math`: NaN and infinities mean something, and the host's rounding is its own.
pub fn flags(options: Options) -> Vec<&'static str> {
    // Loops that should be vectors say so, and short ones are unrolled. What else the next level does is tried on every
    // loop, for half as much time again and nothing that would show.
    let effort: &[&str] = match options.effort {
        Effort::Quick => &["-O1"],
        Effort::Full => &["-O2", "-fpeel-loops"],
    };
    let mut flags = vec!["-std=gnu99"];
    flags.extend(effort);
    flags.extend(LEFT_OUT);
    flags.extend(["-pipe", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-fwrapv", "-shared", "-fPIC", "-w"]);
    flags.push(if options.strict { "-ffp-contract=off" } else { "-ffp-contract=fast" });
    flags.extend(if options.threads { &OPENMP[..1] } else { &OPENMP[1..] });
    flags
}

/// A program by its path, or by its name in `$PATH`.
pub fn tool(name: &str) -> Option<PathBuf> {
    let is_program = |path: &Path| path.is_file();
    if name.contains('/') {
        let path = PathBuf::from(name);
        return is_program(&path).then_some(path);
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(name)).find(|path| is_program(path))
}
