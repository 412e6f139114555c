//! Commands that are interrupted, killed, or run out of space: they end at once, leave nothing behind, and what was whole
//! stays whole.

mod folder;

use folder::Folder;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = "\
def f(x: [n]f64) -> f64 = sum i. x[i]^2
def forever(x: f64) -> f64 = loop t = x while t == t do t + 1
def many(n: i64) -> [n]f64 = for i in 0..n. f64(i)
";

/// A folder with a program, a cache, and a compiler that takes its time.
struct Place {
    folder: Folder,
}

impl Place {
    fn new() -> Place {
        let folder = Folder::with(PROGRAM);
        // It says that it has begun, and starts another program, as compilers do.
        folder.write("slow-cc", "#!/bin/sh\necho $$ > compiling\nsleep 600 & echo $! > inner\nwait\n");
        std::fs::set_permissions(folder.path("slow-cc"), std::fs::Permissions::from_mode(0o755)).unwrap();
        Place { folder }
    }
    fn cache(&self) -> PathBuf {
        self.folder.path("cache")
    }
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.folder.command(arguments);
        command.env("IVERSON_CACHE", self.cache()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Tests that run in the background may have been told to ignore them.
        let heed = || {
            for signal in [libc::SIGINT, libc::SIGHUP] {
                unsafe { libc::signal(signal, libc::SIG_DFL) };
            }
            Ok(())
        };
        unsafe { command.pre_exec(heed) };
        command
    }
    /// A command that is compiling.
    fn compiling(&self, arguments: &[&str]) -> Child {
        let child = self.command(arguments).env("CC", self.folder.path("slow-cc")).spawn().unwrap();
        until("the compiler runs", || std::fs::read_to_string(self.folder.path("inner")).is_ok_and(|text| text.ends_with('\n')));
        child
    }
    fn number(&self, file: &str) -> i32 {
        self.folder.read(file).trim().parse().unwrap()
    }
    /// What stands in the cache but for marks of texts that were seen.
    fn left(&self) -> Vec<String> {
        names(&self.cache()).into_iter().filter(|name| !name.ends_with(".seen")).collect()
    }
}

fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return vec![] };
    entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn send(process: i32, signal: i32) {
    assert_eq!(unsafe { libc::kill(process, signal) }, 0);
}

fn lives(process: i32) -> bool {
    // A process that has ended but that nobody has asked about still has its number.
    let state = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    !state.is_empty() && !state.contains(") Z")
}

/// Ends the child by a signal, and sees that it does not take long.
#[track_caller]
fn end(mut child: Child, signal: i32) {
    let start = Instant::now();
    send(child.id() as i32, signal);
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(signal), "{status:?}");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[test]
fn interrupted_compilations_leave_nothing() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let place = Place::new();
        let child = place.compiling(&["run", "p.iv", "f", "x=[1,2]"]);
        assert_eq!(place.left().len(), 1);
        end(child, signal);
        assert_eq!(place.left(), [""; 0]);
        until("the compiler has ended", || !lives(place.number("compiling")) && !lives(place.number("inner")));
        let again = place.command(&["run", "p.iv", "f", "x=[1,2]"]).output().unwrap();
        assert_eq!(String::from_utf8(again.stdout).unwrap(), "5\n");
    }
}

#[test]
fn shells_see_the_codes_of_signals() {
    let place = Place::new();
    let iverson = env!("CARGO_BIN_EXE_iverson");
    for (signal, code) in [("INT", "130"), ("TERM", "143")] {
        let script = format!("timeout --preserve-status -s {signal} 0.5 {iverson} run p.iv forever x=1; echo $?");
        let run = Command::new("sh").args(["-c", &script]).current_dir(place.folder.0.path()).output().unwrap();
        assert!(String::from_utf8(run.stdout).unwrap().ends_with(&format!("{code}\n")), "{}", String::from_utf8_lossy(&run.stderr));
    }
}

#[test]
fn killed_compilations_are_tidied_up_after() {
    let place = Place::new();
    let child = place.compiling(&["run", "p.iv", "f", "x=[1,2]"]);
    let running = place.left();
    // Another process leaves alone what is still being made.
    let other = place.command(&["run", "p.iv", "many", "n=2"]).output().unwrap();
    assert!(other.status.success());
    assert!(running.iter().all(|name| place.left().contains(name)), "{running:?}");
    end(child, libc::SIGKILL);
    send(-place.number("compiling"), libc::SIGKILL);
    assert!(running.iter().all(|name| place.left().contains(name)));
    // What an unknown machine makes is left alone, and so is what only looks alike.
    let foreign = place.cache().join("making-zzzzzz-1-abc");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::create_dir(place.cache().join("making-of")).unwrap();
    let again = place.command(&["run", "p.iv", "f", "x=[1,2]"]).output().unwrap();
    assert!(again.status.success());
    assert!(!running.iter().any(|name| place.left().contains(name)), "{:?}", place.left());
    assert!(foreign.exists() && place.cache().join("making-of").exists());
}

#[test]
fn long_calls_are_interrupted() {
    for target in ["c", "interpret"] {
        let place = Place::new();
        let child = place.command(&["run", "p.iv", "forever", "x=1", "--target", target, "--out", "r.npz"]).spawn().unwrap();
        if target == "c" {
            until("it is compiled", || place.left().iter().any(|name| name.ends_with(".so")));
        }
        std::thread::sleep(Duration::from_millis(300));
        end(child, libc::SIGINT);
        assert!(!place.left().iter().any(|name| name.starts_with("making-")));
        assert!(!place.folder.path("r.npz").exists());
    }
}

#[test]
fn outputs_are_whole_or_as_they_were() {
    let place = Place::new();
    let first = place.command(&["run", "p.iv", "many", "n=3", "--out", "r.npz"]).output().unwrap();
    assert!(first.status.success());
    let before = std::fs::read(place.folder.path("r.npz")).unwrap();
    // Interrupted at various moments while a large file is written.
    for milliseconds in [0, 5, 20, 60, 150, 400] {
        let mut child = place.command(&["run", "p.iv", "many", "n=3000000", "--out", "r.npz", "--target", "c"]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(milliseconds));
        let signal = if milliseconds % 2 == 0 { libc::SIGTERM } else { libc::SIGINT };
        unsafe { libc::kill(child.id() as i32, signal) };
        child.wait().unwrap();
        let now = std::fs::read(place.folder.path("r.npz")).unwrap();
        assert!(now == before || now.len() > 24_000_000, "{} bytes", now.len());
        std::fs::write(place.folder.path("r.npz"), &before).unwrap();
        let odd: Vec<String> = names(place.folder.0.path()).into_iter().filter(|name| name.starts_with(".iverson")).collect();
        assert_eq!(odd, [""; 0]);
    }
}

#[test]
fn killed_writers_are_tidied_up_after() {
    let place = Place::new();
    // As one that was killed leaves it: named as this machine names things, with a number that no process has any more.
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let child = place.compiling(&["run", "p.iv", "f", "x=[1,2]"]);
    let here = place.left()[0].split('-').nth(1).unwrap().to_string();
    end(child, libc::SIGTERM);
    let left = format!(".iverson-{here}-{}-abc.tmp", gone.id());
    let of_others = format!(".iverson-{here}-{}-abc.tmp", std::process::id());
    place.folder.write(&left, "half");
    place.folder.write(&of_others, "half");
    place.folder.write(".iverson-notes", "a user's");
    let written = place.command(&["run", "p.iv", "many", "n=3", "--out", "r.npz"]).output().unwrap();
    assert!(written.status.success());
    assert!(!place.folder.path(&left).exists());
    assert!(place.folder.path(&of_others).exists() && place.folder.path(".iverson-notes").exists());
}

#[test]
fn full_disks() {
    let place = Place::new();
    let iverson = env!("CARGO_BIN_EXE_iverson");
    let shell = |script: &str| {
        let run = Command::new("sh").args(["-c", script]).current_dir(place.folder.0.path()).output().unwrap();
        (run.status.code(), String::from_utf8(run.stdout).unwrap(), String::from_utf8(run.stderr).unwrap())
    };
    for command in ["run p.iv many n=100000", "run p.iv many n=3 --json", "show p.iv f", "cost p.iv f", "check p.iv"] {
        let (code, _, err) = shell(&format!("{iverson} {command} > /dev/full"));
        assert_eq!((code, err.as_str()), (Some(1), "Error: cannot write the result: no space left\n"), "{command}");
    }
    place.folder.write("r.npz", "old");
    place.folder.write("r.npy", "old");
    place.folder.write("r.json", "old");
    for out in ["r.npz", "r.npy", "r.json"] {
        let (code, _, err) = shell(&format!("ulimit -f 64; {iverson} run p.iv many n=100000 --target interpret --out {out}"));
        assert_eq!(code, Some(1), "{err}");
        assert_eq!(err, format!("Error: cannot write {out}: the file would be too large\n"));
        assert_eq!(place.folder.read(out), "old");
    }
    let (code, _, err) = shell(&format!("ln -s /dev/full full.npz; {iverson} run p.iv many n=3 --out full.npz"));
    assert_eq!((code, err.as_str()), (Some(1), "Error: cannot write full.npz: it is no plain file\n"));
    assert!(names(place.folder.0.path()).iter().all(|name| !name.starts_with(".iverson")));
}
