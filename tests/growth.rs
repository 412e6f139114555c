//! Gradients of general `reduce`, `scan`, `reduce_by_index`, `scatter`, updates and loops in loops grow as their functions do: at ten times
//! as many elements they cost less than twelve times as much, in operations, in what loops and updates move, and in what is kept.

mod harness;

use harness::sample;
use iverson::check::{self, DerivativeKind};
use iverson::interpret::call_measured;
use iverson::pipeline::prepare;

const PROGRAMS: &[(&str, &str)] = &[
    ("columns of an array", "def f(A: [3, n]f64) -> f64 = sum j. sqrt(variance(A[:, j]) + 0.1)"),
    // operators on numbers, on tuples, on records and on arrays
    ("reduce", "def f(x: [n]f64) -> f64 = reduce(|a, b| a + b + a * b, 0, map(|v| 0.001 * v, x))"),
    ("scan", "def f(x: [n]f64) -> [n]f64 = scan(|a, b| a + b + a * b, 0, map(|v| 0.001 * v, x))"),
    (
        "reduce, linear functions",
        "def f(x: [n]f64, y: [n]f64) -> f64 =
           let (a, b) = reduce(|(a, b), (c, d)| (a * c, b * c + d), (1.0, 0.0), map(|u, v| (0.5 * sin(u), v), x, y)); a + b",
    ),
    (
        "scan, linear functions",
        "def f(x: [n]f64, y: [n]f64) -> f64 =
           let (a, b) = scan(|(a, b), (c, d)| (a * c, b * c + d), (1.0, 0.0), map(|u, v| (0.5 * sin(u), v), x, y)); sum i. a[i] * b[i]",
    ),
    (
        "reduce, the place of the largest",
        "def f(x: [n]f64) -> f64 =
           let (v, k) = reduce(|(a, i), (b, j)| if b > a then (b, j) else (a, i), (-infinity, 0), (x, for i in 0..n. i)); v * f64(k)",
    ),
    (
        "reduce, matrices",
        "def f(A: [n, 2, 2]f64) -> f64 =
           let P = reduce(|A, B| for i in 0..2, j in 0..2. sum k in 0..2. A[i, k] * B[k, j], for i in 0..2, j in 0..2. [i == j] * 1.0, A); P[0, 1]",
    ),
    (
        "scan, matrices",
        "def f(A: [n, 2, 2]f64) -> f64 =
           let P = scan(|A, B| for i in 0..2, j in 0..2. sum k in 0..2. A[i, k] * B[k, j], for i in 0..2, j in 0..2. [i == j] * 1.0, A);
           sum t. P[t, 0, 1] ^ 2",
    ),
    ("scan, rows", "def f(A: [n, 3]f64) -> f64 = let S = scan(|a, b| for i. a[i] + b[i], for i in 0..3. 0.0, A); sum t, i. S[t, i] ^ 2"),
    (
        "a result used in a second reduction",
        "def f(x: [n]f64) -> f64 = let s = reduce(|a, b| a + b + a * b, 0, map(|v| 0.001 * v, x)); reduce(|a, b| a + s * b, 0, x)",
    ),
    (
        "reduce_by_index",
        "def f(is: [n]i64, x: [n]f64) -> f64 = let h = reduce_by_index(|a, b| a + b + a * b, 0, 9, is, map(|v| 0.001 * v, x)); sum j. h[j] ^ 2",
    ),
    (
        "reduce_by_index, as many bins",
        "def f(is: [n]i64, x: [n]f64) -> f64 = let h = reduce_by_index(|a, b| a + b + a * b, 0, n, is, map(|v| 0.001 * v, x)); sum j. h[j] ^ 2",
    ),
    ("reduce_by_index, products", "def f(is: [n]i64, x: [n]f64) -> f64 = let h = reduce_by_index((*), 1, 9, is, x); sum j. sin(h[j])"),
    ("reduce_by_index, largest", "def f(is: [n]i64, x: [n]f64) -> f64 = let h = reduce_by_index(max, 0, 9, is, x); sum j. h[j] ^ 2"),
    (
        "reduce_by_index, rows",
        "def f(is: [n]i64, A: [n, 3]f64) -> f64 =
           let h = reduce_by_index(|a, b| for i. a[i] + b[i] + a[i] * b[i], for i in 0..3. 0.0, 9, is, A); sum j, i. sin(h[j, i])",
    ),
    ("scatter", "def f(x: [n]f64, is: [n]i64, v: [n]f64) -> f64 = let y = scatter(x, is, v); sum i. y[i] ^ 2"),
    ("updates", "def f(x: [n]f64) -> f64 = let y = loop c = x for i in 1..n do c with [i] = c[i] + 0.5 * sin(c[i - 1]); sum i. y[i] ^ 2"),
    ("steps", "def f(x: f64, v: [n]f64) -> f64 = loop x = x for i in 0..n do x + 0.01 * sin(x) * v[i]"),
    ("steps until", "def f(x: [n]f64) -> f64 = let (s, i) = loop (s, i) = (0.0, 0) while i < n do (s + sin(s) * x[i], i + 1); s"),
    ("reads through data", "def f(x: [n]f64, is: [n]i64) -> f64 = sum i. x[is[i]] * x[is[is[i]]]"),
    // loops in the bodies of others: many rows, long rows, rows that data choose, and little of long ones
    (
        "updates, many rows",
        "def f(L: [n, 3, 3]f64, x: [n, 3]f64) -> f64 =
           sum c. let q = solve_lower(for i in 0..3, j in 0..3. [j <= i] * (L[c, i, j] + 2), x[c]); sum a. q[a] * L[c, a, a]",
    ),
    (
        "updates, many rows by themselves",
        "def f(L: [n, 3, 3]f64, x: [n, 3]f64) -> f64 = sum c. let q = solve_lower(L[c], x[c]); sum a. q[a] * L[c, a, a]",
    ),
    (
        "updates, long rows",
        "def f(k: [n]f64, D: [3, n]f64) -> f64 =
           sum b. let e = loop e = D[b] for i in 1..n do e with [i] = D[b, i] + k[i] * sin(e[i - 1]); sum i. e[i] ^ 2",
    ),
    (
        "updates, rows that data choose",
        "def f(P: [n, 4]f64, is: [n]i64) -> f64 =
           sum i. let y = loop y = P[is[i]] for a in 1..4 do y with [a] = sin(y[a - 1]) * P[is[i], a]; sum a. y[a] * P[is[i], a]",
    ),
    (
        "updates, little of long rows",
        "def f(P: [3, n]f64, is: [n]i64) -> f64 =
           sum i in 0..n - 3.
             let y = loop y = (for a in 0..3. 1.0) for a in 1..3 do y with [a] = sin(y[a - 1]) * P[is[i], is[i + a]];
             y[2] * P[is[i], 0]",
    ),
    (
        "updates in steps",
        "def f(u: [n]f64, kappa: [n]f64) -> f64 =
           let u = loop u = u for t in 0..3 do
             let (c, e) = loop (c, e) = (for i in 0..n. 0.0, for i in 0..n. 0.0) for i in 0..n do
               let m = 3 + kappa[i] ^ 2 + [i > 0] * kappa[i] * c[i - 1];
               (c with [i] = -kappa[i] / m, e with [i] = (u[i] + [i > 0] * kappa[i] * e[i - 1]) / m);
             loop x = e for q in 1..n do x with [n - 1 - q] = e[n - 1 - q] - c[n - 1 - q] * x[n - q];
           sum i. u[i] ^ 2",
    ),
    (
        "loops in loops, many rows",
        "def f(P: [n, 3]f64, x: [n]f64) -> f64 =
           sum c. P[c, 0] * loop s = x[c] for i in 0..3 do loop t = s for j in 0..3 do t + 0.1 * sin(t) * P[c, j]",
    ),
];

#[test]
fn gradients_grow_as_their_functions_do() {
    let wrong: Vec<String> = PROGRAMS.iter().filter_map(|(what, text)| grows(text).err().map(|e| format!("{what}: {e}"))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn grows(text: &str) -> Result<(), String> {
    let mut program = harness::load(text)?;
    let f = program.find("f").ok_or("there is no `f`")?;
    let vjp = check::derive(&mut program, f, DerivativeKind::Vjp, None).map_err(|d| d.message)?;
    let prepared = prepare(&program, vjp, None);
    let work = |n: i64| -> Result<u64, String> {
        let args = sample::arguments(&prepared, vjp, &[n], 3);
        let (_, counts, memory) = call_measured(&prepared, vjp, &args).map_err(|f| f.message)?;
        Ok(counts.total() + memory.moved + memory.saved)
    };
    let (small, large) = (work(1_000)?, work(10_000)?);
    if large >= 12 * small { Err(format!("{small} at 1000 elements, {large} at 10000")) } else { Ok(()) }
}
