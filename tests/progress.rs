//! What a terminal shows beside results: progress of long work, times of compilation, warnings once. Nothing of it goes
//! into pipes.

mod folder;
mod terminal;

use folder::Folder;

const PROGRAM: &str = "\
def slow(n: i64) -> f64 = loop x = 0.5 for i in 0..n do sin(x + f64(i))
";

/// What the command writes to a terminal, stdout and stderr together.
fn on_terminal(f: &Folder, arguments: &str) -> String {
    on_terminal_after(f, 3_600_000, arguments)
}

/// With progress shown after so many milliseconds.
fn on_terminal_after(f: &Folder, patience: u64, arguments: &str) -> String {
    let mut command = f.command(&arguments.split(' ').collect::<Vec<_>>());
    command.env("IVERSON_PATIENCE", patience.to_string()).env("XDG_CACHE_HOME", f.path("cache"));
    terminal::talk(command, &[]).0
}

#[test]
fn compilation_is_told_to_people() {
    let f = Folder::with(PROGRAM);
    let first = on_terminal(&f, "run p.iv slow n=3");
    assert!(first.starts_with("compiled in ") && !first.contains("cached"), "{first}");
    let second = on_terminal(&f, "run p.iv slow n=3");
    assert!(second.starts_with("compiled in ") && second.contains(" ms (cached)\n"), "{second}");
    let verbose = f.run(&["run", "p.iv", "slow", "n=3", "--verbose"]);
    assert!(verbose.err.starts_with("`slow` prepared in "), "{}", verbose.err);
    let piped = f.run(&["run", "p.iv", "slow", "n=3"]);
    assert_eq!(piped.err, "");
    assert_eq!(second.lines().last(), piped.out.lines().last());
}

#[test]
fn long_work_is_shown_and_cleared() {
    let f = Folder::with(PROGRAM);
    let shown = on_terminal_after(&f, 1, "run p.iv slow n=300000 --target interpret");
    assert!(shown.contains("\r\u{1b}[Krunning … "), "{shown:?}");
    // The line goes before the result comes.
    assert!(shown.lines().last().unwrap().contains("\r\u{1b}[K0."), "{shown:?}");
    let shown = on_terminal_after(&f, 1, "bench p.iv slow n=200000 --runs 60");
    assert!(shown.contains("timing call ") && shown.contains(" of 60 … "), "{shown:?}");
    let short = on_terminal(&f, "run p.iv slow n=3 --target interpret");
    assert!(!short.contains('\u{1b}'), "{short:?}");
    let piped = f.run(&["run", "p.iv", "slow", "n=300000", "--target", "interpret"]);
    assert_eq!(piped.err, "");
}

#[test]
fn warnings_come_once() {
    let program = "def idle(x: [n]f64) -> f64 = sum i in 0..n. 2.0 * x[0]\n";
    let f = Folder::with(program);
    let run = || {
        let output = f.command(&["run", "p.iv", "idle", "x=[1,2]"]).env("XDG_CACHE_HOME", f.path("cache")).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "4\n");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(run().contains("Warning"));
    assert_eq!(run(), "");
    for _ in 0..2 {
        assert!(f.run(&["check", "p.iv"]).err.contains("Warning"));
    }
    f.write("p.iv", format!("{program}\n-- changed\n"));
    assert!(run().contains("Warning"));
}
