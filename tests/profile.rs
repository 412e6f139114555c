//! `iverson profile`: times go to the lines that take them, derivatives' too, and code with marks is otherwise the code
//! that runs.

mod folder;

use folder::Folder;
use iverson::check::{DerivativeKind, derive};
use iverson::ir::{Body, FunctionId, Program};
use iverson::load::load;
use iverson::optimize::inline::callees;
use iverson::pipeline::prepare;
use iverson::runtime::{Options, c_source};
use serde_json::Value as Json;

/// Most of the time is spent in line 3 or 4.
const PROGRAM: &str = "\
def mostly(x: [n]f64, y: [n]f64) -> f64 =
  let cheap = sum i. x[i];
  let dear = sum i, j. sin(x[i] * y[j]) * cos(y[j] - x[i]);
  let tail = loop t = 0.5 for k in 0..n do t * 0.5;
  cheap * tail + dear

def iterate(n: i64) -> f64 =
  loop t = 0.5 for k in 0..n do sin(t + 1)

def newton(a: f64) -> f64 =
  loop x = a while abs(x^2 - a) > 0.000000000001 do
    0.5 * (x + a / x)

def product(A: [n, n]f64, B: [n, n]f64) -> f64 =
  let C = for i, j. sum k. A[i, k] * B[k, j];
  sum i, j. C[i, j]^2

def together(x: [n]f64, y: [n]f64) -> f64 =
  let a = for i. sin(x[i]);
  let b = for i. cos(y[i]);
  sum i. a[i] * b[i]

def factor(A: [n, n]f64) -> f64 = sum_all(cholesky(A + f64(n) * identity(n)))

def sum_all(A: [n, m]f64) -> f64 = sum i, j. A[i, j]

def positive(x: [n]f64) -> [?m]f64 =
  let place = for i in 0..n. sum j in 0..i. [x[j] > 0];
  let m = sum i. [exp(x[i]) > 1];
  (sum i. [x[i] > 0] * {place[i] -> x[i]} : [m]f64)

def wrong(x: [n]f64, k: i64) -> f64 = sum i in 0..n. x[i + k]
";

/// The share of the lines named, and of all others.
fn share(report: &Json, line: usize) -> f64 {
    let rows = report["lines"].as_array().unwrap().iter();
    let has = |row: &&Json| row["places"].as_array().unwrap().iter().any(|p| p["file"] == "p.iv" && p["line"] == line);
    rows.filter(has).map(|row| row["share"].as_f64().unwrap()).sum()
}

fn report(f: &Folder, arguments: &[&str]) -> Json {
    f.run(&[&["profile", "p.iv"], arguments, &["--seconds", "0.3", "--threads", "1", "--json"]].concat()).json()
}

#[test]
fn time_goes_to_its_line() {
    let f = Folder::with(PROGRAM);
    let values = ["x=random(400)", "y=random(400)"];
    let plain = report(&f, &[&["mostly"], &values[..]].concat());
    assert!(share(&plain, 3) > 0.9, "{plain}");
    assert!(plain["samples"].as_u64().unwrap() > 100 && plain["calls"].as_u64().unwrap() > 1);
    let derived = report(&f, &[&["mostly", "--derivative", "grad"], &values[..]].concat());
    assert!(share(&derived, 3) > 0.9, "{derived}");
    // Nothing but arithmetic: the loop's variables tell.
    let loops = report(&f, &["iterate", "n=100000"]);
    assert!(share(&loops, 8) > 0.9, "{loops}");
    let matrices = report(&f, &["product", "A=random(200, 200)", "B=random(200, 200)", "--derivative", "grad"]);
    assert!(share(&matrices, 15) + share(&matrices, 16) > 0.9, "{matrices}");
}

#[test]
fn loops_that_became_one_name_all_their_lines() {
    let f = Folder::with(PROGRAM);
    let one = report(&f, &["together", "x=random(1000)", "y=random(1000)"]);
    let lines: Vec<u64> = one["lines"][0]["places"].as_array().unwrap().iter().map(|p| p["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [19, 20], "{one}");
    assert_eq!(one["lines"][0]["places"][1]["text"], "let b = for i. cos(y[i]);");
    let shown = f.run(&["profile", "p.iv", "together", "x=random(1000)", "y=random(1000)", "--seconds", "0.1", "--threads", "1"]);
    let second = shown.out.lines().nth(5).unwrap();
    assert_eq!(second.trim(), "p.iv:20  let b = for i. cos(y[i]);", "{}", shown.out);
}

#[test]
fn lines_of_the_library_are_named() {
    let f = Folder::with(PROGRAM);
    for derivative in [&[][..], &["--derivative", "grad"]] {
        let factor = report(&f, &[&["factor", "A=random(60, 60)"], derivative].concat());
        let library = factor["lines"].as_array().unwrap().iter().filter(|row| row["places"][0]["file"] == "library/matrices.iv");
        assert!(library.map(|row| row["share"].as_f64().unwrap()).sum::<f64>() > 0.5, "{factor}");
    }
}

#[test]
fn calls_that_fail_say_why() {
    let f = Folder::with(PROGRAM);
    let wrong = f.run(&["profile", "p.iv", "wrong", "x=[1, 2]", "k=1", "--seconds", "0.1"]);
    wrong.fails(&["p.iv:32", "x[i + k]"]);
}

#[test]
fn results_whose_size_depends_on_data() {
    let f = Folder::with(PROGRAM);
    let positive = report(&f, &["positive", "x=random(1000)"]);
    assert!(share(&positive, 28) > 0.5 && share(&positive, 29) > 0.0, "{positive}");
    let bench = f.run(&["bench", "p.iv", "positive", "x=random(1000)", "--runs", "3"]);
    assert_eq!(bench.code, 0, "{}", bench.err);
}

#[test]
fn people_get_a_table() {
    let f = Folder::with(PROGRAM);
    let shown = f.run(&["profile", "p.iv", "mostly", "x=random(200)", "y=random(200)", "--seconds", "0.1"]);
    assert_eq!(shown.code, 0, "{}", shown.err);
    let first = shown.out.lines().nth(4).unwrap();
    assert!(first.contains(" %  ") && first.contains("p.iv:3  let dear = sum i, j."), "{}", shown.out);
    assert!(shown.out.lines().last().unwrap().ends_with("outside of loops"));
    f.run(&["profile", "p.iv", "mostly", "x=[1]", "y=[1]", "--target", "interpret"]).fails(&["only native code is profiled"]);
    f.run(&["profile", "p.iv", "mostly", "x=[1]"]).fails(&["`mostly` needs `y: [n]f64`"]);
    assert_eq!(f.run(&["profile", "p.iv", "mostly", "x=[1]", "y=[1]", "--seconds", "0"]).code, 2);
}

#[test]
fn marks_change_nothing_else() {
    let examples = std::fs::read_dir(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")).unwrap();
    let mut texts = vec![PROGRAM.to_string()];
    for folder in examples.map(|e| e.unwrap().path()) {
        let programs = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
        texts.extend(programs.filter(|p| p.extension().is_some_and(|e| e == "iv")).map(|p| std::fs::read_to_string(p).unwrap()));
    }
    let mut marks = 0;
    for text in texts {
        let loaded = load("p.iv", &text, &[]);
        let mut program = loaded.program.unwrap();
        let mut ids: Vec<_> = (0..loaded.defined as u32).map(iverson::ir::FunctionId).collect();
        // Derivatives of what has derivatives in it take long, and are marked no other way.
        let plain: Vec<_> = ids.iter().copied().filter(|id| !has_derivative(&program, *id)).collect();
        let derived: Vec<_> = plain.iter().filter_map(|id| derive(&mut program, *id, DerivativeKind::Vjp, None).ok()).collect();
        ids.extend(derived);
        for id in ids {
            let prepared = prepare(&program, id, None);
            let plain = c_source(&prepared, id, Options::default());
            let marked = c_source(&prepared, id, Options { profile: true, ..Options::default() });
            let is_mark = |line: &&str| line.trim().starts_with("iv_mark = ") || line.contains("iverson_profile.h");
            marks += marked.lines().filter(is_mark).count();
            let without: Vec<&str> = marked.lines().filter(|line| !is_mark(line)).collect();
            for (a, b) in plain.lines().zip(&without) {
                assert_eq!(a, *b, "{}:\n{marked}", program.function(id).name);
            }
            assert_eq!(plain.lines().count(), without.len());
        }
    }
    assert!(marks > 100);
}

/// Whether a function calls a derivative, at any depth.
fn has_derivative(program: &Program, id: FunctionId) -> bool {
    !matches!(program.function(id).body, Body::Exp(_)) || callees(program, id).into_iter().any(|f| has_derivative(program, f))
}
