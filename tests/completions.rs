//! Completions: what may follow on a command line, and the script that bash runs.

mod folder;

use folder::Folder;
use std::process::Command;

const PROGRAM: &str = "\
def loss(w: [d]f64, b: f64, X: [n, d]f64) -> f64 = b + sum i, j. X[i, j] * w[j]
def predict(w: [d]f64, x: [d]f64) -> f64 = sum j. w[j] * x[j]
";

fn folder() -> Folder {
    let f = Folder::with(PROGRAM);
    f.write("data.npz", "");
    f.write("notes.txt", "");
    std::fs::create_dir(f.path("models")).unwrap();
    f.write("models/q.iv", "");
    f
}

/// The candidates for the last of these words, without what is said about them.
fn candidates(f: &Folder, words: &[&str]) -> Vec<String> {
    let found = f.run(&[&["complete", "--", "iverson"], words].concat());
    assert_eq!((found.code, found.err.as_str()), (0, ""));
    found.out.lines().map(|line| line.split('\t').next().unwrap().to_string()).collect()
}

#[test]
fn commands_and_options() {
    let f = folder();
    assert_eq!(candidates(&f, &["val"]), ["value-and-grad"]);
    assert!(candidates(&f, &[""]).contains(&"build".to_string()));
    assert!(!candidates(&f, &[""]).contains(&"complete".to_string()));
    assert_eq!(candidates(&f, &["run", "p.iv", "loss", "--th"]), ["--threads"]);
    assert_eq!(candidates(&f, &["run", "p.iv", "loss", "--strict", "--st"]), [""; 0]);
    assert_eq!(candidates(&f, &["run", "--target", ""]), ["c", "interpret"]);
    assert_eq!(candidates(&f, &["run", "--target=i"]), ["--target=interpret"]);
    assert_eq!(candidates(&f, &["show", "p.iv", "loss", "--after", "no"]), ["normalize"]);
    assert_eq!(candidates(&f, &["nonsense", ""]), [""; 0]);
    assert_eq!(candidates(&f, &["completions", ""]), ["bash", "zsh", "fish"]);
}

#[test]
fn names_from_the_program() {
    let f = folder();
    assert_eq!(candidates(&f, &["grad", "p.iv", ""]), ["loss", "predict"]);
    assert_eq!(candidates(&f, &["grad", "none.iv", ""]), [""; 0]);
    assert_eq!(candidates(&f, &["grad", "p.iv", "loss", ""]), ["w=", "b=", "X="]);
    assert_eq!(candidates(&f, &["grad", "--target", "interpret", "p.iv", "loss", "w=[1]", ""]), ["b=", "X="]);
    assert_eq!(candidates(&f, &["grad", "p.iv", "loss", "--wrt", ""]), ["w", "b", "X"]);
    assert_eq!(candidates(&f, &["grad", "p.iv", "loss", "--wrt", "w,"]), ["w,b", "w,X"]);
    assert_eq!(candidates(&f, &["cost", "p.iv", "loss", "--at", "d=3,"]), ["d=3,n="]);
    assert_eq!(candidates(&f, &["build", "p.iv", "loss", "pre"]), ["predict"]);
    assert_eq!(candidates(&f, &["build", "p.iv", "loss:h"]), ["loss:hessian", "loss:hvp"]);
}

#[test]
fn files() {
    let f = folder();
    assert_eq!(candidates(&f, &["check", ""]), ["models/", "p.iv"]);
    assert_eq!(candidates(&f, &["check", "models/"]), ["models/q.iv"]);
    assert_eq!(candidates(&f, &["run", "p.iv", "loss", "--data", ""]), ["data.npz", "models/"]);
}

#[test]
fn bash_completes() {
    if Command::new("bash").arg("--version").output().is_err() {
        return;
    }
    let f = folder();
    let script = f.run(&["completions", "bash"]).out;
    let completed = |line: &str| {
        let commands = format!(
            "compopt() {{ :; }}\n{script}\nCOMP_LINE='{line}' COMP_POINT={}\n_iverson\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
            line.len()
        );
        let path = std::path::Path::new(env!("CARGO_BIN_EXE_iverson")).parent().unwrap().display().to_string();
        let output = Command::new("bash")
            .args(["-c", &commands])
            .current_dir(f.0.path())
            .env("PATH", format!("{path}:{}", std::env::var("PATH").unwrap()))
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(completed("iverson gr"), "grad\n");
    assert_eq!(completed("iverson grad p.iv "), "loss\npredict\n");
    // Bash itself cuts words at `:` and `=`.
    assert_eq!(completed("iverson build p.iv loss:g"), "grad\n");
    assert_eq!(completed("iverson cost p.iv loss --at d=3,"), "3,n=\n");
}

#[test]
fn every_shell_has_a_script() {
    let f = folder();
    for shell in ["bash", "zsh", "fish"] {
        assert!(f.run(&["completions", shell]).out.contains("iverson complete"));
    }
}
