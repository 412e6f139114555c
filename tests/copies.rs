//! Loops that update arrays do it where they are: what compiled code copies, counted in bytes.
//!
//! A program, the size of its axes, and how many bytes a call copies. A parameter belongs to the caller, so that an array
//! that begins as one is copied once; all else that is copied is what a step must keep apart.

use iverson::check::check;
use iverson::ir::Program;
use iverson::pipeline::prepare;
use iverson::runtime::{self, Options};
use iverson::syntax::parse;
use iverson::value::compare::{Tolerance, check_close};
use iverson::{interpret, loops};

mod harness;

use harness::sample;

/// The numbers of elements of a vector and of a matrix, 8 bytes each.
const N: i64 = 12;
const VECTOR: i64 = 8 * N;
const MATRIX: i64 = 8 * N * N;

fn program(text: &str) -> Program {
    let (module, wrong) = parse(0, text);
    assert!(wrong.is_empty(), "{text}: {wrong:?}");
    let (program, wrong) = check(&module);
    assert!(wrong.iter().all(|d| d.severity == iverson::diagnostic::Severity::Warning), "{text}: {wrong:?}");
    program
}

/// What a call of `f` copies; its value is the interpreter's.
fn copied(text: &str) -> i64 {
    let base = program(text);
    let f = base.find("f").unwrap();
    let prepared = prepare(&base, f, None);
    let args = sample::arguments(&prepared, f, &[N], 5);
    let compiled = runtime::compile(&prepared, f, Options { count: true, strict: true, ..Options::default() }).unwrap();
    let value = compiled.call(&args, 1).unwrap_or_else(|e| panic!("{text}: {}", e.message));
    let (expected, _) = interpret::call(&prepare(&base, f, Some("differentiate")), f, &args).unwrap();
    check_close(&expected, &value, Tolerance::ROUNDING).unwrap_or_else(|e| panic!("{text}: {e}"));
    compiled.copied_bytes()
}

fn kernel(text: &str) -> loops::Kernel {
    let base = program(text);
    let f = base.find("f").unwrap();
    runtime::kernel(&prepare(&base, f, None), f, Options::default(), &Default::default())
}
fn report(text: &str) -> String {
    loops::copies::report(&kernel(text))
}
fn shown(text: &str) -> String {
    loops::print::print(&kernel(text))
}

#[test]
fn arrays_change_where_they_are() {
    let programs: &[(&str, i64)] = &[
        ("def f(x: [n]f64) -> [n]f64 = loop c = x for i in 1..n do c with [i] = c[i] + c[i - 1]", VECTOR),
        // Built by the program, it needs no copy at all.
        ("def f(x: [n]f64) -> [n]f64 = let y = for i. 2 * x[i]; loop c = y for i in 1..n do c with [i] = c[i] + c[i - 1]", 0),
        ("def f(x: [n]f64) -> [n]f64 = let y = for i. 2 * x[i]; y with [0] = 3", 0),
        // Chosen by conditions, several places in one step.
        (
            "def f(x: [n]f64) -> [n]f64 =
               loop x = x for i in 1..n do if x[i] < x[i - 1] then (x with [i] = x[i - 1]) with [i - 1] = x[i] else x",
            VECTOR,
        ),
        (
            "def f(x: [n]f64) -> [n]f64 = loop x = x for i in 1..n do
               let y = x with [i] = x[i - 1];
               let z = y with [i - 1] = y[i] * 2;
               z with [0] = z[i]",
            VECTOR,
        ),
        // Two arrays, of which one needs the other, and of which each does.
        (
            "def f(x: [n]f64, y: [n]f64) -> ([n]f64, [n]f64) =
               loop (a, b) = (x, y) for i in 0..n do (a with [i] = b[i], b with [n - 1 - i] = 2 * b[i])",
            2 * VECTOR,
        ),
        (
            "def f(x: [n]f64, y: [n]f64) -> ([n]f64, [n]f64) = loop (a, b) = (x, y) for i in 0..n do (a with [i] = b[i], b with [i] = a[i])",
            2 * VECTOR,
        ),
        // Loops in loops.
        (
            "def f(A: [n, n]f64) -> [n, n]f64 =
               loop A = A for i in 1..n do loop A = A for j in 1..n do A with [i, j] = A[i - 1, j] + A[i, j - 1]",
            MATRIX,
        ),
        (
            "def f(A: [n, n]f64) -> ([n, n]f64, f64) = loop (A, s) = (A, 0.0) for i in 1..n do
               loop (A, s) = (A, s) for j in 1..n do (A with [i, j] = A[i - 1, j] + s, s + A[i, j])",
            MATRIX,
        ),
        (
            "def f(A: [n, n]f64) -> ([n, n]f64, f64) = loop (A, s) = (A, 0.0) for i in 1..n do
               let (B, t) = loop (A, s) = (A, s) for j in 1..n do (A with [i, j] = A[i - 1, j] + s, s + A[i, j]);
               (B with [i, 0] = t, t)",
            MATRIX,
        ),
        (
            "def f(D: [n, n]f64) -> [n, n]f64 = loop D = D for k in 0..n do
               loop D = D for i in 0..n do loop D = D for j in 0..n do D with [i, j] = min(D[i, j], D[i, k] + D[k, j])",
            MATRIX,
        ),
        // Slices of rows, and rows that are computed.
        ("def f(A: [n, n]f64, v: [n]f64) -> [n, n]f64 = loop A = A for i in 0..n do A with [i, 1..n] = v[0..n - 1]", MATRIX),
        ("def f(A: [n, n]f64, v: [n]f64) -> [n, n]f64 = loop A = A for i in 0..n do A with [i] = for j. v[j] * f64(i)", MATRIX),
        // Element by element, and sums.
        ("def f(x: [n]f64, k: i64) -> [n]f64 = loop x = x for t in 0..k do for i. 0.5 * x[i] + 1", VECTOR),
        (
            "def f(q: [n]f64, p: [n]f64, k: i64) -> ([n]f64, [n]f64) = loop (q, p) = (q, p) for t in 0..k do
               let p = for i. p[i] - 0.1 * sin(q[i]);
               (for i. q[i] + 0.1 * p[i], p)",
            2 * VECTOR,
        ),
        ("def f(A: [n, n]f64) -> [n]f64 = loop s = for j in 0..n. 0.0 for i in 0..n do s + A[i]", 0),
        (
            "def f(x: f64, k: i64) -> [k]f64 =
               let (x, s) = loop (x, sum s) = (x, for i in 0..k. 0.0) for t in 0..k do (cos(x), {t -> x} + {0 -> 1.0});
               s",
            0,
        ),
        // Arrays that live in a step.
        (
            "def f(x: [n]f64, k: i64) -> f64 = loop s = 0.0 for t in 0..k do
               let y = for i. s + x[i];
               let z = y with [0] = s;
               let w = loop z = z for i in 1..n do z with [i] = z[i] * z[i - 1];
               sum i. w[i]",
            0,
        ),
        ("def f(x: [n]f64) -> [n]f64 = loop x = x while (sum i. x[i]) > 1 do x with [0] = x[0] - 1", VECTOR),
    ];
    for (text, bytes) in programs {
        assert_eq!(copied(text), *bytes, "{text}\n{}", report(text));
    }
}

#[test]
fn derivatives_change_arrays_where_they_are() {
    // The gradient begins with a copy of the parameter. The way back goes on with the last state, or with a copy of it where
    // the gradient is made of it first.
    let programs: &[(&str, i64)] = &[
        ("def g(x: [n]f64) -> f64 = let y = loop x = x for i in 1..n do x with [i] = sin(x[i]) * x[i - 1]; sum i. y[i]", VECTOR),
        (
            "def g(x: [n]f64) -> f64 =
               let y = loop x = x for i in 1..n do if x[i] < x[i - 1] then (x with [i] = x[i - 1]) with [i - 1] = x[i] * x[0] else x;
               sum i. y[i] * y[i]",
            2 * VECTOR,
        ),
        (
            "def g(x: [n]f64) -> f64 =
               let (y, s) = loop (x, s) = (x, 1.0) for i in 1..n do (x with [i] = x[i - 1] * s, sin(s) * x[i] + x[0]);
               s + sum i. y[i]",
            VECTOR,
        ),
        // Nothing of the states is needed.
        ("def g(x: [n]f64) -> f64 = let y = loop x = x for i in 1..n do x with [i] = x[i] + 0.5 * x[i - 1]; sum i. y[i]", 0),
    ];
    for (text, bytes) in programs {
        let text = format!("{text}\ndef f(x: [n]f64) -> [n]f64 = grad(g)(x)");
        assert_eq!(copied(&text), *bytes, "{text}\n{}", report(&text));
        // A step keeps what it overwrites, not the array.
        let loops = shown(&text);
        assert!(loops.lines().filter(|line| line.trim().starts_with("slot")).all(|line| !line.contains('*')), "{loops}");
    }
    // Rows that are read when they are overwritten are built beside, and what was there is kept.
    let rows = "def g(A: [n, n]f64) -> f64 =
                  let (B, b) = loop (A, b) = (A, for i in 0..n. 1.5) for k in 0..n do
                    loop (A, b) = (A, b) for i in k + 1..n do
                      let f = A[i, k] / (A[k, k] + 3);
                      (A with [i] = for j. A[i, j] - f * A[k, j], b with [i] = b[i] - f * b[k]);
                  sum i. b[i] * B[i, i]
                def f(A: [n, n]f64) -> [n, n]f64 = grad(g)(A)";
    assert!(!report(rows).lines().any(|line| line.contains("(n_0 * n_0) f64, in each step")), "{}", report(rows));
    copied(rows);
    // What the steps of an inner loop keep is written to its place among those of all.
    let nested = "def g(A: [n, n]f64) -> f64 =
                    let B = loop A = A for i in 1..n do loop A = A for j in 1..n do A with [i, j] = sin(A[i - 1, j]) * A[i, j - 1];
                    sum i, j. B[i, j]
                  def f(A: [n, n]f64) -> [n, n]f64 = grad(g)(A)";
    assert_eq!(copied(nested), MATRIX, "{}", report(nested));
}

#[test]
fn copies_that_must_be_are_reported() {
    // A row that moves is kept while another takes its place.
    let swap = "def f(A: [n, n]f64, p: [n]i64) -> [n, n]f64 = loop A = A for i in 0..n do
                  let r = A[i];
                  (A with [i] = A[p[i]]) with [p[i]] = r";
    assert_eq!(copied(swap), MATRIX + 4 * N * VECTOR);
    assert_eq!(
        report(swap),
        "`A` to `out`: (n_0 * n_0) f64, once\n".to_string()
            + &"`out` to `next`: n_0 f64, in each step of `i`\n".repeat(2)
            + &"`next` to `out`: n_0 f64, in each step of `i`\n".repeat(2)
    );
    // Two arrays that change places, and a step that reads other elements than it writes.
    let exchange = "def f(x: [n]f64, y: [n]f64) -> ([n]f64, [n]f64) = loop (a, b) = (x, y) for i in 0..n do (b, a)";
    assert_eq!(copied(exchange), 2 * VECTOR + 3 * N * VECTOR);
    let shifted = "def f(x: [n]f64, k: i64) -> [n]f64 = loop x = x for t in 0..k do for i in 0..n. if i == 0 then 1 else x[i - 1]";
    assert_eq!(copied(shifted), VECTOR + 5 * VECTOR);
    assert!(report(shifted).contains("`next` to `out`: n_0 f64, in each step of `t`"), "{}", report(shifted));
    assert_eq!(report("def f(x: [n]f64) -> [n]f64 = for i. 2 * x[i]"), "nothing is copied\n");
}

#[test]
fn views_keep_what_they_saw() {
    // In each of these an array is read, under another name, after it has changed.
    for text in [
        "def f(A: [n, n]f64) -> ([n, n]f64, f64) = loop (A, s) = (A, 0.0) for i in 1..n do
           let r = A[0];
           let B = A with [0, i] = 7 + s;
           (B, s + r[i])",
        "def f(A: [n, n]f64) -> [n, n]f64 = loop A = A for i in 1..n do
           let r = A[i - 1];
           let B = loop B = A for j in 0..n do B with [i - 1, j] = 2 * B[i, j];
           B with [i] = for j. r[j] + B[i - 1, j]",
        "def f(A: [n, n]f64) -> [n, n]f64 = loop A = A for i in 1..n do let r = A[0]; loop A = A for j in 1..n do A with [0, j] = r[j - 1] + A[0, j]",
        "def f(x: [n]f64) -> ([n]f64, [n]f64) = let y = for i. 2 * x[i]; let z = y with [0] = 1; (z, y)",
        "def f(x: [n]f64) -> ([n]f64, f64) = let y = for i. 2 * x[i]; let s = y[1]; (loop y = y for i in 0..n do y with [i] = s + f64(i), s)",
        "def f(A: [n, n]f64) -> [n, n]f64 = let B = for i, j. 2 * A[i, j]; let r = B[1]; loop B = B for i in 0..n do B with [i] = r",
        "def f(x: [n]f64, y: [n]f64) -> ([n]f64, [n]f64) = loop (a, b) = (x, y) for i in 1..n do
           (for j. a[j] + b[j], for j. a[j] - b[j])",
        "def f(x: [n]f64, y: [n]f64) -> ([n]f64, [n]f64) = loop (a, b) = (x, y) for i in 1..n do
           (if a[i] > 0 then a with [i] = b[i - 1] else a, (b with [i] = a[i - 1]) with [i - 1] = a[i])",
        "def f(x: [n]f64, k: i64) -> [n]f64 = loop x = x for t in 0..k do x + for i in 0..n. x[n - 1 - i]",
        "def f(A: [n, n]f64) -> ([n, n]f64, f64) = loop (A, s) = (A, 1.0) for i in 1..n do
           let r = A[0];
           loop (A, s) = (A, s) while s < 30 + r[i] do (A with [0, i] = A[0, i] - s, s + 10)",
        "def f(A: [n, n]f64) -> ([n, n]f64, f64) = loop (A, s) = (A, 1.0) for i in 1..n do
           let t = s;
           loop (A, s) = (A, s) for j in 0..n do (A with [i, j] = A[i - 1, j] + t, 0.5 * s + t)",
        "def f(x: [n]f64, p: [n]i64) -> ([n]f64, [n]i64) = loop (x, p) = (x, p) for i in 0..n do
           (x with [p[i]] = x[i], p with [p[i]] = i)",
        "def f(x: [n]f64, k: i64) -> [n]f64 = loop x = x for t in 0..k do let a = x[0]; for i. x[i] - a",
        "def f(A: [n, n]f64) -> [n, n]f64 = loop A = A for i in 0..n do A with [i] = for j in 0..n. A[i, n - 1 - j] + A[0, j]",
        "def f(x: [n]f64, k: i64) -> [n]f64 = loop x = x for t in 0..k do
           let z = for i in 0..2 * n. x[0] + f64(i);
           let w = for i in 0..2 * n. z[2 * n - 1 - i] * z[i];
           for i in 0..n. w[i] - w[i + n]",
        "def f(x: [n]f64, k: i64) -> [n]f64 = loop x = x for t in 0..k do
           let z = for i in 0..2 * n. f64(i * t);
           let w = for i in 0..2 * n. z[2 * n - 1 - i] * z[i];
           for i in 0..n. w[i] - w[i + n]",
        "def f(x: [n]f64, y: [n]f64, k: i64) -> ([n]f64, [n]f64) = loop (x, y) = (x, y) for t in 0..k do
           let z = for i. x[i] + y[i];
           let w = y with [0] = x[1];
           (w, z)",
    ] {
        copied(text);
    }
}
