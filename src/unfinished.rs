//! What this process has begun and not finished: files and folders that are being made, and programs that it waits for.
//!
//! A thing is made under a name that nobody else looks at, and takes its place when it is whole, so no reader ever sees half
//! of it. Who is interrupted calls `give_up`, which removes what was begun. Who is killed cannot: so the name says which
//! process made the thing, and whoever makes the next one beside it removes those of processes that are no more.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, TryLockError};
use std::time::{Duration, Instant};

/// Of processes elsewhere it cannot be known whether they live; nothing takes them this long.
const OLD: Duration = Duration::from_secs(24 * 60 * 60);
/// How long an interrupt waits for what cannot be interrupted.
const PATIENCE: Duration = Duration::from_millis(500);

struct Begun {
    paths: Vec<PathBuf>,
    programs: Vec<u32>,
}
static BEGUN: Mutex<Begun> = Mutex::new(Begun { paths: vec![], programs: vec![] });

fn begun() -> MutexGuard<'static, Begun> {
    BEGUN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Remembers a path as long as it lives.
struct Remembered(PathBuf);
impl Remembered {
    fn new(path: &Path) -> Remembered {
        begun().paths.push(path.to_path_buf());
        Remembered(path.to_path_buf())
    }
}
impl Drop for Remembered {
    fn drop(&mut self) {
        begun().paths.retain(|p| *p != self.0);
    }
}

/// A folder to work in, which goes with its contents.
pub struct Folder {
    folder: tempfile::TempDir,
    _remembered: Remembered,
}

impl Folder {
    /// A new folder whose name begins so, without what killed processes have left of such folders.
    pub fn new_in(parent: &Path, prefix: &str) -> io::Result<Folder> {
        sweep(parent, prefix);
        let folder = tempfile::Builder::new().prefix(&named(prefix)).tempdir_in(parent)?;
        let _remembered = Remembered::new(folder.path());
        Ok(Folder { folder, _remembered })
    }
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
    /// Keeps the folder, under another name.
    pub fn keep_as(self, place: &Path) -> io::Result<()> {
        std::fs::rename(self.folder.path(), place)
    }
}

/// A file that takes its place when it is finished.
pub struct File {
    file: tempfile::NamedTempFile,
    place: PathBuf,
    _remembered: Remembered,
}

/// How the names of files begin.
const FILES: &str = ".iverson-";

impl File {
    /// For the file at this path, which stays as it is until then. A link stays a link, and what is no plain file is not
    /// replaced by one.
    pub fn beside(path: &Path) -> io::Result<File> {
        let place = match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(io::Error::other("it is a folder")),
            Ok(found) if !found.is_file() => return Err(io::Error::other("it is no plain file")),
            Ok(_) => std::fs::canonicalize(path)?,
            Err(_) => path.to_path_buf(),
        };
        let folder = match place.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        if !folder.is_dir() {
            return Err(io::Error::other(format!("there is no folder {}", folder.display())));
        }
        sweep(folder, FILES);
        let name = named(FILES);
        let mut builder = tempfile::Builder::new();
        builder.prefix(&name).suffix(".tmp");
        // A new file is as open as the user's other files are; one that was there keeps its permissions.
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = builder.tempfile_in(folder)?;
        let _remembered = Remembered::new(file.path());
        if let Ok(found) = std::fs::metadata(&place) {
            file.as_file().set_permissions(found.permissions())?;
        }
        Ok(File { file, place, _remembered })
    }
    pub fn contents(&mut self) -> &mut std::fs::File {
        self.file.as_file_mut()
    }
    /// What was written is now what the path has.
    pub fn finish(self) -> io::Result<()> {
        self.file.persist(&self.place).map(|_| ()).map_err(|e| e.error)
    }
}

/// Runs a program to its end, which an interrupt of this process brings about.
pub fn output(command: &mut Command) -> io::Result<Output> {
    use std::os::unix::process::CommandExt;
    // The programs that it runs in turn end with it.
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = {
        // An interrupt between the two would not know of it.
        let mut begun = begun();
        let child = command.spawn()?;
        begun.programs.push(child.id());
        child
    };
    let id = child.id();
    let output = child.wait_with_output();
    begun().programs.retain(|p| *p != id);
    output
}

/// Ends the programs and removes the files and folders that this process has begun. It is not to go on after that.
pub fn give_up() {
    let start = Instant::now();
    let begun = loop {
        match BEGUN.try_lock() {
            Ok(begun) => break begun,
            Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
            Err(TryLockError::WouldBlock) if start.elapsed() > PATIENCE => return,
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    for program in &begun.programs {
        // SAFETY: a signal to the group that a child of ours leads.
        unsafe { libc::kill(-(*program as libc::pid_t), libc::SIGKILL) };
    }
    for path in &begun.paths {
        // A program that is ending may yet make a file in a folder.
        while !remove(path) && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    // Nothing new is begun.
    std::mem::forget(begun);
}

/// Removes what processes that are no more have left in a folder under names that begin so.
fn sweep(folder: &Path, prefix: &str) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if let Some(maker) = Maker::of(&entry.file_name(), prefix) {
            let age = entry.metadata().and_then(|m| m.modified()).ok().and_then(|t| t.elapsed().ok());
            let old = age.is_some_and(|age| age > OLD);
            if old || maker.is_gone() {
                remove(&entry.path());
            }
        }
    }
}

/// Whether nothing is there any more.
fn remove(path: &Path) -> bool {
    let is_folder = path.symlink_metadata().is_ok_and(|m| m.is_dir());
    let removed = if is_folder { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    removed.is_ok_and(|()| !path.exists()) || path.symlink_metadata().is_err()
}

/// Who makes a thing, by its name: `prefix`, where processes are counted, the process, and something random.
struct Maker {
    here: bool,
    process: libc::pid_t,
}

impl Maker {
    fn of(name: &OsStr, prefix: &str) -> Option<Maker> {
        let mut parts = name.to_str()?.strip_prefix(prefix)?.splitn(3, '-');
        let (place, process, random) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?);
        let is_ours = place.len() == here().len() && process > 0 && !random.is_empty();
        is_ours.then(|| Maker { here: place == here(), process })
    }
    fn is_gone(&self) -> bool {
        // SAFETY: signal 0 only asks.
        let asked = || unsafe { libc::kill(self.process, 0) };
        self.here && asked() == -1 && io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
    }
}

fn named(prefix: &str) -> String {
    format!("{prefix}{}-{}-", here(), std::process::id())
}

/// Where numbers of processes mean the same: this machine, and the container on it. A folder may be shared with others.
fn here() -> &'static str {
    static HERE: OnceLock<String> = OnceLock::new();
    HERE.get_or_init(|| {
        let machine = std::fs::read("/proc/sys/kernel/hostname").unwrap_or_default();
        let container = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let mut hasher = blake3::Hasher::new();
        hasher.update(&machine).update(container.as_os_str().as_encoded_bytes());
        hasher.finalize().to_hex()[..6].to_string()
    })
}
