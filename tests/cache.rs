//! Compiled code on disk: found again, made again where it is broken, shared by processes, and what happens without a
//! compiler or a place to write.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROGRAM: &str = "def f(x: [n]f64) -> f64 = sum i. x[i] * x[i]\n";

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("f.iv"), PROGRAM).unwrap();
        Place { folder }
    }
    fn cache(&self) -> std::path::PathBuf {
        self.folder.path().join("cache")
    }
    /// `iverson bench f.iv f`, which says whether the code came from the cache.
    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_iverson"));
        command.current_dir(self.folder.path()).env("IVERSON_CACHE", self.cache()).env_remove("CC");
        command.args(["bench", "f.iv", "f", "x=[1,2,3]", "--runs", "1", "--json"]);
        command
    }
    fn value(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_iverson"));
        command.current_dir(self.folder.path()).env("IVERSON_CACHE", self.cache()).env_remove("CC");
        command.args(["run", "f.iv", "f", "x=[1,2,3]", "--json"]);
        command
    }
    fn entries(&self) -> Vec<std::path::PathBuf> {
        let Ok(found) = std::fs::read_dir(self.cache()) else { return vec![] };
        let mut paths: Vec<_> = found.map(|e| e.unwrap().path()).collect();
        paths.sort();
        paths
    }
}

fn from_cache(output: &Output) -> bool {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    report["cached"].as_bool().unwrap()
}
fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn code_is_found_again_and_broken_code_is_made_again() {
    let place = Place::new();
    assert!(!from_cache(&place.command().output().unwrap()));
    assert!(from_cache(&place.command().output().unwrap()));
    let [entry] = place.entries().try_into().unwrap();
    let whole = std::fs::read(&entry).unwrap();
    let broken: [&[u8]; 4] = [b"", b"not a library", &whole[..whole.len() / 2], &whole[..whole.len() - 1]];
    for bytes in broken {
        std::fs::write(&entry, bytes).unwrap();
        assert!(!from_cache(&place.command().output().unwrap()), "an entry of {} bytes", bytes.len());
        assert!(from_cache(&place.command().output().unwrap()));
    }
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    std::fs::write(&entry, &changed).unwrap();
    assert!(!from_cache(&place.command().output().unwrap()));
    assert_eq!(place.entries(), [entry], "nothing else is left behind");
}

#[test]
fn processes_may_compile_at_once() {
    let place = Place::new();
    let running: Vec<_> = (0..4).map(|_| place.value().stdout(std::process::Stdio::piped()).spawn().unwrap()).collect();
    for child in running {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "14.0");
    }
    assert_eq!(place.entries().len(), 1);
}

#[test]
fn a_missing_compiler_is_an_error_with_a_remedy() {
    let place = Place::new();
    let output = place.value().env("CC", "/nonexistent/cc").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output);
    assert!(message.contains("the C compiler `/nonexistent/cc`, named by CC, was not found"), "{message}");
    for remedy in ["install gcc or clang", "set the variable CC", "--target interpret"] {
        assert!(message.contains(remedy), "{message}");
    }
    let output = place.value().env_remove("CC").env("PATH", "/nonexistent").output().unwrap();
    assert!(text(&output).contains("no C compiler was found"), "{}", text(&output));
    let output = place.value().env("PATH", "/nonexistent").args(["--target", "interpret"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "14.0");
}

/// What only moves arrays and multiplies large matrices is not compiled.
#[test]
fn whole_arrays_need_no_compiler() {
    let place = Place::new();
    let program = "def dot(x: [n]f64, y: [n]f64) -> f64 = sum i. x[i] * y[i]
                   def these(x: [n]f64, A: [n, m]f32, k: [m]i32) -> ([n]f64, [n, m]f32, [n]f64, [m]i32, [n, m]f32) =
                     (x, A, x, k, A)
                   def add(x: [n]f64, y: [n]f64) -> [n]f64 = for i. x[i] + y[i]
                   def total(x: [n]f64, A: [3, n]f32) -> f64 = (sum i. x[i]) - f64(sum i, j. A[i, j])
                   def every(A: [n, m]i64) -> [m, n, 3]i32 = for j in 0..m, i in 0..n, c in 0..3. [c == 2] * 7
                   def product(A: [n, k]f64, B: [k, m]f64) -> f64 = sum i in 0..n, j in 0..m. (sum l. A[i, l] * B[l, j])^2\n";
    std::fs::write(place.folder.path().join("f.iv"), program).unwrap();
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_iverson"));
        command.current_dir(place.folder.path()).env("IVERSON_CACHE", place.cache()).env("CC", "false");
        let output = command.args(args).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        String::from_utf8_lossy(&output.stdout).trim().to_string()
    };
    assert_eq!(run(&["grad", "f.iv", "dot", "x=[1,2,3]", "y=[4,5,6]", "--json"]), r#"{"x": [4.0, 5.0, 6.0], "y": [1.0, 2.0, 3.0]}"#);
    assert_eq!(run(&["grad", "f.iv", "dot", "x=[]", "y=[]", "--json"]), r#"{"x": [], "y": []}"#);
    assert_eq!(
        run(&["jacobian", "f.iv", "add", "x=[1,2]", "y=[4,5]", "--json"]),
        r#"{"x": [[1.0, 0.0], [0.0, 1.0]], "y": [[1.0, 0.0], [0.0, 1.0]]}"#
    );
    assert_eq!(run(&["jacobian", "f.iv", "add", "x=[]", "y=[]", "--json"]), r#"{"x": [], "y": []}"#);
    assert_eq!(
        run(&["grad", "f.iv", "total", "x=[1,2]", "A=[[1,2],[3,4],[5,6]]", "--json"]),
        r#"{"x": [1.0, 1.0], "A": [[-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0]]}"#
    );
    // d/dA of |A B|^2 is 2 A B B', and all elements of a product of ones by ones are its depth.
    let ones = |rows: usize, columns: usize| serde_json::json!(vec![vec![1.0; columns]; rows]).to_string();
    let (a, b) = (format!("A={}", ones(40, 30)), format!("B={}", ones(30, 50)));
    let gradient: serde_json::Value = serde_json::from_str(&run(&["grad", "f.iv", "product", &a, &b, "--json"])).unwrap();
    assert_eq!((&gradient["A"][39][29], &gradient["B"][29][49]), (&(2.0 * 30.0 * 50.0).into(), &(2.0 * 30.0 * 40.0).into()));
    assert_eq!(
        run(&["run", "f.iv", "these", "x=[1,2]", "A=[[1,2,3],[4,5,6]]", "k=[7,8,9]", "--json"]),
        "[[1.0, 2.0], [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [1.0, 2.0], [7, 8, 9], [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]"
    );
}

#[test]
fn a_compiler_that_fails_leaves_the_code_to_look_at() {
    let place = Place::new();
    let output = place.value().env("CC", "false").output().unwrap();
    let message = text(&output);
    assert!(message.contains("the C compiler rejected the code made for this program"), "{message}");
    assert!(message.contains("false said nothing, and ended with exit status: 1"), "{message}");
    let kept = message.split("the code is in ").nth(1).unwrap().split_whitespace().next().unwrap();
    assert!(std::fs::read_to_string(kept).unwrap().contains("iv_of_f"), "{message}");
}

#[test]
fn a_folder_that_cannot_be_written_does_not_matter() {
    let place = Place::new();
    // A file stands where the folder should be.
    std::fs::write(place.cache(), "").unwrap();
    let output = place.value().output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "14.0", "{}", text(&output));
    assert!(Path::new(&place.cache()).is_file());
}

/// A compiler that does something before, compiles `$more` too, and notes with which flags.
fn odd_compiler(place: &Place, before: &str) -> (PathBuf, PathBuf) {
    let (script, said) = (place.folder.path().join("odd-cc"), place.folder.path().join("said"));
    std::fs::write(&script, format!("#!/bin/sh\n{before}\necho \"$@\" > {}\nexec cc \"$@\" $more\n", said.display())).unwrap();
    std::process::Command::new("chmod").args(["+x", script.to_str().unwrap()]).status().unwrap();
    (script, said)
}

#[test]
fn a_compiler_that_does_not_know_a_flag_will_do() {
    // Passes that only gcc has are left out before OpenMP is.
    for (unknown, openmp) in [("-fopenmp", false), ("-fno-tree-vrp", true)] {
        let place = Place::new();
        let refuse = format!("for a in \"$@\"; do case $a in {unknown}*) echo 'what is {unknown}' >&2; exit 1; esac; done");
        let (script, said) = odd_compiler(&place, &refuse);
        let output = place.value().env("CC", &script).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "14.0", "{}", text(&output));
        let flags = std::fs::read_to_string(said).unwrap();
        assert_eq!(flags.split_whitespace().any(|flag| flag.starts_with("-fopenmp")), openmp, "{flags}");
    }
}

/// A compiler whose code needs more than this process has: it is asked again to link with all that it knows.
#[test]
fn a_compiler_with_libraries_of_its_own_will_do() {
    let place = Place::new();
    let lost = place.folder.path().join("lost.c");
    std::fs::write(&lost, "void iv_nowhere(void); void iv_lost(void) { iv_nowhere(); }").unwrap();
    let (script, said) = odd_compiler(&place, &format!("case \"$*\" in *-nostdlib*) more={}; esac", lost.display()));
    let output = place.value().env("CC", &script).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "14.0", "{}", text(&output));
    let flags = std::fs::read_to_string(said).unwrap();
    assert!(!flags.contains("-nostdlib") && flags.contains("-fopenmp"), "{flags}");
}
