//! Compiled libraries by content.
//!
//! The key covers the text, the support files, the compiler, its flags and the processor. An entry is written beside its
//! place and renamed into it, so two processes may compile at once and a killed one leaves nothing broken. It ends with a
//! digest of itself; an entry that does not match is made again.

use super::compile::{self, Compiler, SUPPORT, flags};
use super::{Error, Options};
use crate::unfinished;
use etcetera::BaseStrategy;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub struct Loaded {
    pub library: libloading::Library,
    pub from_cache: bool,
}

/// The library of a text, from the cache or made now.
pub fn library(text: &str, options: Options) -> Result<Loaded, Error> {
    let compiler = Compiler::find()?;
    let key = key(text, &compiler, options);
    let folder = folder();
    let place = folder.join(format!("{key}.so"));
    if is_whole(&place) {
        if let Ok(library) = load(&place) {
            return Ok(Loaded { library, from_cache: true });
        }
    }
    match make(&compiler, folder, &place, text, options) {
        Ok(library) => Ok(Loaded { library, from_cache: false }),
        // A folder that cannot be written is no reason not to run.
        Err(Trouble::Folder(_)) => {
            let folder = temporary_folder()?;
            make(&compiler, folder, &folder.join(format!("{key}.so")), text, options)
                .map(|library| Loaded { library, from_cache: false })
                .map_err(Trouble::error)
        }
        Err(trouble) => Err(trouble.error()),
    }
}

enum Trouble {
    /// The cache's folder cannot be used.
    Folder(Error),
    Other(Error),
}
impl Trouble {
    fn error(self) -> Error {
        match self {
            Trouble::Folder(e) | Trouble::Other(e) => e,
        }
    }
}

/// How the names of folders begin in which libraries are made.
const MAKING: &str = "making-";

fn make(compiler: &Compiler, folder: &Path, place: &Path, text: &str, options: Options) -> Result<libloading::Library, Trouble> {
    let unusable = |e: std::io::Error| Trouble::Folder(Error::new(format!("cannot write to {}: {e}", folder.display())));
    std::fs::create_dir_all(folder).map_err(unusable)?;
    let work = unfinished::Folder::new_in(folder, MAKING).map_err(unusable)?;
    let source = compile::write(work.path(), text).map_err(unusable)?;
    let made = match compiler.run(&source, options).map_err(Trouble::Other)? {
        Ok(made) => made,
        Err(complaint) => {
            // That is our fault, so the evidence is kept.
            let kept = place.with_extension("rejected");
            let _ = std::fs::remove_dir_all(&kept);
            let kept = work.keep_as(&kept).map(|()| kept.join("kernel.c"));
            let kept = kept.map_or(String::new(), |path| format!("; the code is in {}", path.display()));
            let error = Error::new("the C compiler rejected the code made for this program").note(complaint);
            return Err(Trouble::Other(error.note(format!("this is a fault of Iverson{kept}"))));
        }
    };
    seal(&made).map_err(unusable)?;
    std::fs::rename(&made, place).map_err(unusable)?;
    load(place).map_err(Trouble::Other)
}

fn load(place: &Path) -> Result<libloading::Library, Error> {
    // SAFETY: the library was made by us from emitted code, which has no initialisers.
    unsafe { libloading::Library::new(place) }.map_err(|e| Error::new(format!("cannot load {}: {e}", place.display())))
}

const SEAL: &[u8; 8] = b"iverson1";

/// Puts a digest behind the library; loaders do not look there.
fn seal(made: &Path) -> std::io::Result<()> {
    let digest = blake3::hash(&std::fs::read(made)?);
    let mut file = std::fs::OpenOptions::new().append(true).open(made)?;
    file.write_all(digest.as_bytes())?;
    file.write_all(SEAL)
}
fn is_whole(place: &Path) -> bool {
    let Ok(bytes) = std::fs::read(place) else { return false };
    let Some(rest) = bytes.strip_suffix(SEAL) else { return false };
    match rest.len().checked_sub(blake3::OUT_LEN) {
        Some(end) => blake3::hash(&rest[..end]).as_bytes() == &rest[end..],
        None => false,
    }
}

fn key(text: &str, compiler: &Compiler, options: Options) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut part = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    part(text.as_bytes());
    SUPPORT.iter().for_each(|(_, support)| part(support.as_bytes()));
    part(compiler.identity.as_bytes());
    compiler.arguments.iter().for_each(|a| part(a.as_bytes()));
    flags(options).iter().for_each(|f| part(f.as_bytes()));
    part(processor().as_bytes());
    hasher.finalize().to_hex()[..32].to_string()
}

/// Whether a text of a program has not been seen before, as far as the cache remembers; from now on it has.
pub fn is_first_sight(text: &str) -> bool {
    let mark = folder().join(format!("{}.seen", &blake3::hash(text.as_bytes()).to_hex()[..32]));
    let seen = mark.exists();
    // Where nothing can be remembered, everything is new.
    let _ = std::fs::create_dir_all(folder()).and_then(|()| std::fs::File::create(&mark));
    !seen
}

/// What `-march=native` depends on.
fn processor() -> &'static str {
    static PROCESSOR: OnceLock<String> = OnceLock::new();
    PROCESSOR.get_or_init(|| {
        let mut text = std::env::consts::ARCH.to_string();
        // The first processor's description is at the beginning. Its clock rate changes from moment to moment.
        let mut start = vec![0; 4096];
        if let Ok(count) = std::fs::File::open("/proc/cpuinfo").and_then(|mut f| f.read(&mut start)) {
            let info = String::from_utf8_lossy(&start[..count]).into_owned();
            let steady = ["vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU part"];
            let lines = info.lines().filter(|l| steady.iter().any(|s| l.starts_with(s)));
            text.extend(lines.take(8).flat_map(|l| ["\n", l]));
        }
        text
    })
}

/// `$IVERSON_CACHE`, or the user's cache.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| match std::env::var_os("IVERSON_CACHE").filter(|p| !p.is_empty()) {
        Some(path) => PathBuf::from(path),
        None => match etcetera::base_strategy::choose_base_strategy() {
            Ok(base) => base.cache_dir().join("iverson"),
            Err(_) => std::env::temp_dir().join("iverson-cache"),
        },
    })
}
/// A folder of this process, where nothing else can be written.
fn temporary_folder() -> Result<&'static Path, Error> {
    static FOLDER: OnceLock<Result<unfinished::Folder, String>> = OnceLock::new();
    let made = FOLDER.get_or_init(|| unfinished::Folder::new_in(&std::env::temp_dir(), "iverson-cache-").map_err(|e| e.to_string()));
    made.as_ref().map(|dir| dir.path()).map_err(|e| Error::new(format!("cannot write compiled code anywhere: {e}")))
}
