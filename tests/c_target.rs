//! The C target against the interpreter: values, faults with their places, and operation counts; on programs as users
//! write them, their derivatives, and random expressions of every construct in every position.

mod harness;
mod random;

use harness::sample;
use iverson::check::{DerivativeKind, check, derive};
use iverson::emit;
use iverson::interpret;
use iverson::ir::*;
use iverson::pipeline::prepare;
use iverson::runtime::{self, Options};
use iverson::syntax::parse;
use iverson::value::compare::{Tolerance, check_close};
use iverson::value::{Array, Data, Value};
use random::{arguments, random_program};

const CLOSE: Tolerance = Tolerance { relative: 1e-12, absolute: 1e-12 };
const STRICT: Tolerance = Tolerance { relative: 1e-14, absolute: 1e-300 };

/// Lanes, in code that is for calls of the sizes of the last arguments, and has nothing to run iterations one by one.
const FOR_LAST: &str = "lanes, filled";

fn agree(program: &Program, id: FunctionId, arguments: &[Vec<Value>], what: &str) {
    verify::verify(program).unwrap_or_else(|e| panic!("{what}: {e}\n{}", print::print_program(program)));
    let threads = std::env::var("THREADS").ok().and_then(|t| t.parse().ok()).unwrap_or(1);
    let modes = [
        ("plain", Options::default(), CLOSE),
        ("lanes", Options { lanes: runtime::InLanes::All, ..Options::default() }, CLOSE),
        (FOR_LAST, Options { lanes: runtime::InLanes::All, effort: runtime::Effort::Quick, ..Options::default() }, CLOSE),
        ("strict", Options { strict: true, ..Options::default() }, STRICT),
        ("count", Options { strict: true, count: true, ..Options::default() }, STRICT),
    ];
    // C has functions of `f32` of its own, which differ in the last bits from those of `f64`, rounded.
    let single = widen::has_f32(program, id);
    for (mode, options, tolerance) in modes {
        let tolerance = if single { tolerance.single() } else { tolerance };
        let arguments = if mode == FOR_LAST { &arguments[arguments.len().saturating_sub(1)..] } else { arguments };
        let call = arguments.iter().filter(|_| mode == FOR_LAST).map(|args| runtime::call(program, id, args)).next_back();
        let compiled = runtime::compile_for(program, id, options, &call.unwrap_or_default())
            .unwrap_or_else(|e| panic!("{what}, {mode}: {e}\n{}", print::print_program(program)));
        for args in arguments {
            let expected = interpret::call(program, id, args);
            let mut result = None;
            let got = compiled.call_into(args, &mut result, threads);
            let show = || format!("{what}, {mode}\n{}\n{}", print::print_program(program), compiled.c_source);
            match (expected, got) {
                (Ok((expected, counts)), Ok(counted)) => {
                    check_close(&result.unwrap(), &expected, tolerance).unwrap_or_else(|e| panic!("{e}\n{}", show()));
                    if options.count {
                        assert_eq!(counts, counted, "{}", show());
                    }
                }
                (Err(expected), Err(got)) => assert_eq!(expected, got, "{}", show()),
                (expected, got) => panic!("{expected:?}\n{got:?}\n{}", show()),
            }
        }
    }
}

fn random_agree(seeds: std::ops::Range<u64>, depth: usize) {
    for seed in seeds {
        let program = random_program(seed, depth);
        let arguments: Vec<Vec<Value>> =
            [(0, 0), (1, 1), (1, 7), (7, 3), (17, 5)].into_iter().map(|(n, m)| arguments(seed, n, m)).collect();
        agree(&program, FunctionId(0), &arguments, &format!("seed {seed}"));
    }
}

#[test]
fn random_expressions_agree_with_the_interpreter() {
    let seeds = std::env::var("SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(24);
    let first = std::env::var("SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(0);
    random_agree(first..first + seeds / 3, 3);
    random_agree(first + 1000..first + 1000 + seeds / 3, 4);
    random_agree(first + 2000..first + 2000 + seeds / 3, 5);
}

fn program(text: &str) -> Program {
    let (module, wrong) = parse(0, text);
    assert!(wrong.is_empty(), "{text}: {wrong:?}");
    let (program, wrong) = check(&module);
    assert!(wrong.is_empty(), "{text}: {wrong:?}");
    program
}

/// A function, optimised and not, at several sizes.
fn check_function(program: &Program, id: FunctionId, sizes: &[(i64, i64)], what: &str) {
    for until in [None, Some("inline")] {
        let prepared = prepare(program, id, until);
        let arguments: Vec<Vec<Value>> = sizes.iter().map(|(n, m)| sample::arguments(&prepared, id, &[*n, *m], 5)).collect();
        agree(&prepared, id, &arguments, &format!("{what}, until {until:?}"));
    }
}

/// `f` of a program, and its gradient if it has one.
fn check_text(text: &str, sizes: &[(i64, i64)]) {
    let mut program = program(text);
    let f = program.find("f").unwrap();
    check_function(&program, f, sizes, text);
    if matches!(program.function(f).result, Type::Scalar(s) if s.is_float()) {
        let grad = derive(&mut program, f, DerivativeKind::Grad, None).unwrap();
        check_function(&program, grad, sizes, &format!("the gradient of {text}"));
    }
}

const SIZES: &[(i64, i64)] = &[(0, 0), (1, 1), (7, 3), (17, 7), (1, 17)];

#[test]
fn narrow_numbers() {
    check_text("def f(x: [n]f32, y: [n]f32) -> f32 = sum i. x[i] * y[i] * y[i]", SIZES);
    check_text("def f(x: [n]f32) -> f32 = let m = max i. x[i]; m + log(1 + sum i. exp(x[i] - m))", SIZES);
    check_text("def f(x: [n]f32) -> f32 = (prod i. x[i]) + (min i. x[i]) * 2", &SIZES[1..]);
    check_text("def f(x: [n]f32) -> f64 = sum i. f64(x[i]) * sin(f64(x[i]))", SIZES);
    check_text("def f(x: [n]i32, w: [5]f32) -> f32 = sum i. w[x[i]] * f32(x[i] * x[i])", SIZES);
    check_text("def f(x: [n]i32) -> (i32, i32, i32) = (sum i. x[i], max i. x[i], prod i. 1 + x[i])", SIZES);
    check_text("def f(A: [n, m]f32, B: [m, n]f32) -> [n, n]f32 = for i, j. sum k. A[i, k] * B[k, j]", SIZES);
    // Large enough for the kernel of matrix products.
    check_text("def f(A: [n, m]f32, B: [m, n]f32) -> [n, n]f32 = for i, j. 2 * sum k. A[i, k] * B[k, j]", &[(40, 30), (64, 64)]);
}

/// What lanes read where data say is read once, but for what they write themselves.
#[test]
fn what_lanes_pick_is_read_once() {
    let turned = "def f(x: [m]f64, y: [m]f64, is: [n]i64) -> ([n, 2]f64, [n, 2]f64) =
       for i.
         let k = is[i] mod m;
         let z = [x[k] * y[k], x[k] - y[k]];
         (z, for a. sin(z[a]) * x[k] + (sum b in 0..2. z[b] * y[k]) + (if y[k] > 0.0 then x[k] else 1.0))";
    // Only where the condition holds, and of an array that the iteration makes.
    let some = "def f(x: [m]f64, w: [n]f64, is: [n]i64) -> [n, 2]f64 =
       for i. if w[i] > 0.5 then [x[is[i]] * w[i], exp(x[is[i]])] else [w[i], sin(w[i])]";
    let own = "def f(w: [n]f64, y: [m]f64, is: [n]i64) -> [n]f64 =
       for i.
         let t = loop t = (for k in 0..4. sin(w[i])) for s in 0..m do t with [is[i] mod 4] = t[is[i] mod 4] * w[i] + t[(is[i] + s) mod 4];
         t[is[i] mod 4] + t[(is[i] + 1) mod 4]";
    for text in [turned, some, own] {
        check_text(text, &[(1, 1), (17, 7), (40, 3)]);
    }
    let program = program(turned);
    let id = program.find("f").unwrap();
    let prepared = prepare(&program, id, Some("inline"));
    let compiled = runtime::compile(&prepared, id, Options { lanes: runtime::InLanes::All, ..Options::default() }).unwrap();
    assert!(compiled.c_source.contains("picked"), "{}", compiled.c_source);
}

/// Rows that iterations in lanes make, read and add to, where these loops stand in others; and sums that go inward.
#[test]
fn rows_of_lanes_in_loops() {
    let programs = [
        // Attention: rows of weights that are made, normalised and read; each group of rows has a place of its own.
        "def f(Q: [2, n, m]f64, K: [2, n, m]f64, V: [2, n, m]f64) -> f64 =
           sum s, i.
             let w = for j. exp(sum a. Q[s, i, a] * K[s, j, a] / 8.0);
             let t = sum j. w[j];
             let o = for a. (sum j. w[j] * V[s, j, a]) / t;
             sum a. (o[a] - V[s, i, a])^2",
        // Rows that are zeroed and added to, then read, and rows that are set and read.
        "def f(W: [m, m]f64, x: [3, n, m]f64) -> ([3, n, m]f64, [3, n, m]f64) =
           for s, i.
             let y = for a. tanh(sum b. W[a, b] * x[s, i, b]);
             (y, for b. sum a. W[a, b] * y[a] * (1.0 - y[a]^2))",
        // Rows by data, of arrays with more axes.
        "def f(x: [n, 2, m]f64, is: [n]i64, w: [m]f64) -> f64 =
           sum g in 0..2, i.
             let k = is[i] mod n;
             let y = for a. sin(x[k, g, a] * w[a]) + x[i, g, a];
             (sum a. y[a] * x[k, g, a]) * (sum a. y[a]^2)",
        // Only a part of a row, and rows that overlap.
        "def f(x: [n]f64, w: [m]f64) -> f64 =
           sum i in 0..n - m + 1.
             let y = for a. w[a] * x[i + a];
             (sum a. sin(y[a]) * w[a]) * (sum a in 1..m. y[a] * y[a - 1])",
        // Two layers: the way back goes through a matrix and its transpose.
        "def f(W1: [m, m]f64, W2: [m, m]f64, x: [n, m]f64) -> f64 =
           sum i.
             let y = for a. tanh(sum b. W1[a, b] * x[i, b]);
             let z = for a. tanh(sum b. W2[a, b] * y[b]);
             log(sum a. exp(z[a]))",
    ];
    for text in programs {
        check_text(text, &[(1, 1), (9, 3), (17, 9), (40, 3), (35, 26)]);
    }
    // The index of the lanes twice in a place: no row is that long.
    for (shape, key) in [("n, n", "i, i"), ("n, 2 * n", "i, 2 * i"), ("n, n + 1", "i, n - i")] {
        let text = format!(
            "def f(x: [{shape}]f64, v: [m]f64) -> f64 =
               sum i. sum c. exp(0.1 * x[{key}] * v[c]) * (sum e. sin(x[{key}] * v[e] + v[c]))"
        );
        check_text(&text, &[(1, 1), (17, 9), (32, 33)]);
    }
}

/// Rows that go through one vector together, and those that are left over.
#[test]
fn rows_that_share_a_vector() {
    let sizes = [(0, 0), (1, 1), (3, 4), (4, 0), (5, 17), (0, 5), (18, 33), (35, 40)];
    for text in [
        // a row is summed, then added; choices between, sums and products of all rows
        "def f(X: [n, m]f64, y: [n]f64, w: [m]f64) -> f64 =
           sum i. let r = y[i] - sum a. X[i, a] * w[a]; if abs(r) < 1.0 then 0.5 * r^2 else abs(r) - 0.5",
        "def f(X: [n, m]f64, w: [m]f64) -> (f64, f64, [n]f64) =
           let t = for i. (sum a. X[i, a] * w[a]) + (max a. X[i, a] * w[a]);
           (prod i. t[i], min i. t[i] * t[i], t)",
        // results by row, and of a part of it
        "def f(X: [n, m]f64, w: [m]f64) -> [n, m]f64 = for i. let t = sum a. X[i, a] * sin(w[a]); for a. X[i, a] * t + w[a]",
        "def f(X: [n, m + 2]f64, w: [m]f64) -> [n]f64 = for i. sum a in 1..m. X[i, a] * w[a - 1] * X[i, a + 2]",
        // two vectors, integers, and what is the same in all rows
        "def f(X: [n, m]f64, u: [m]f64, w: [m]f64, c: f64) -> f64 =
           sum i. log(1.0 + exp(-c * sum a. X[i, a] * u[a])) * (sum a. X[i, a] * w[a] + u[a] * w[a])",
        "def f(X: [n, m]i64, w: [m]i64) -> [n]i64 = for i. (sum a. X[i, a] * w[a]) div 3",
        // in a loop whose iterations may run in lanes
        "def f(P: [3, n, m]f64, C: [5, m]f64) -> f64 = sum s, p. min c. sum a. (P[s, p, a] - C[c, a])^2",
        "def f(W: [m, m]f64, x: [n, m]f64) -> f64 = sum i. let y = for a. tanh(sum b. W[a, b] * x[i, b]); log(sum a. exp(y[a]))",
        // not where a row needs the one before
        "def f(X: [n, m]f64, w: [m]f64) -> f64 = loop s = 0.1 for i in 0..n do 0.5 * s + 0.01 * sum a. X[i, a] * w[a] * s",
    ] {
        check_text(text, &sizes);
    }
}

/// Sums in windows that slide, counted from where these begin.
#[test]
fn windows_that_slide() {
    let sizes = [(0, 0), (1, 0), (2, 1), (3, 3), (5, 2), (40, 5), (67, 70), (150, 9)];
    for text in [
        "def f(x: [n]f64, w: [m]f64) -> [n + m]f64 =
           for j in 0..n + m. sum i in max(0, j - m + 1)..min(n, j + 1). w[j - i] * x[i]",
        "def f(x: [n]f64, w: [5]f64) -> [n + 4]f64 = for j in 0..n + 4. sum i in max(0, j - 4)..min(n, j + 1). sin(w[j - i]) * x[i] + w[j - i]",
        "def f(x: [n]f64, w: [m]f64) -> f64 =
           sum j in 0..n + m. (sum i in max(0, j - m + 1)..min(n, j + 1). w[j - i] * x[i])^2 * f64(j)",
        "def f(x: [n, m]f64, w: [2, 3]f64) -> [n + 1, m + 2]f64 =
           for p in 0..n + 1, q in 0..m + 2.
             sum i in max(0, p - 1)..min(n, p + 1), j in max(0, q - 2)..min(m, q + 1). w[p - i, q - j] * x[i, j]",
        // at a distance from the place, in both directions, and more than one
        "def f(x: [n]f64, w: [9]f64) -> [n]f64 =
           for j in 0..n. sum i in max(0, j - 3)..min(n, j + 4). w[j - i + 4] * x[i] * w[3 + i - j] + (if i > j then x[j] else 2.0)",
    ] {
        check_text(text, &sizes);
    }
}

/// What is the same for all summands is multiplied behind the sum; nothing where nothing is summed.
#[test]
fn factors_come_out_of_sums() {
    for text in [
        "def f(x: [n]f64, u: [m]f64) -> [m]f64 = sum i. for a. sin(x[i] * u[a]) / u[a] - x[i] * u[a] + x[i]",
        "def f(x: [n]f64, u: [m]f64, v: [m]f64) -> ([m]f64, [m]f64, [m]f64) =
           sum i. (for a. exp(x[i] - u[a]) * v[a], for a. x[i] * v[a], for a. -(x[i] + cos(x[i] * u[a])) / v[a] / v[a])",
        "def f(x: [n]f32, u: [m]f32) -> ([m, m]f32, [m]f32) =
           sum i. let r = for a, b. let q = x[i] * cos(x[i] * u[a]) / u[b]; q * u[a] - x[i] * u[b]; (r, for a. x[i] + u[a] * sin(x[i] * u[a]))",
        // rows of different lengths, and what asks
        "def f(x: [n]f64, u: [m]f64) -> [m]f64 = sum i. for a. (sum b in 0..a. u[b] * x[i]) * u[a] + [x[i] > 0.0] * u[a]",
        "def f(x: [n]f64, u: [m]f64) -> [m]f64 = sum i in 0..n. for a. if x[i] > u[a] then u[a] * x[i] else u[a] * sin(x[i] * u[a]) - x[i]",
    ] {
        check_text(text, &[(0, 3), (1, 1), (9, 0), (9, 4), (40, 7)]);
    }
}

/// Places modulo a size are taken stretch by stretch, whatever wraps around where, how often and in which direction.
#[test]
fn places_that_wrap_around() {
    let sizes = [(0, 0), (1, 1), (2, 3), (3, 2), (5, 40), (40, 5), (67, 33)];
    for text in [
        "def f(x: [n]f64) -> [n]f64 = for i in 0..n. sin(x[(i + 1) mod n]) - 2 * x[i] * x[(i + n - 2) mod n] + x[(i - 7) mod n]",
        // another size, a number, and several sizes in one loop
        "def f(x: [n]f64, y: [m]f64) -> [n]f64 = for i in 0..n. x[(i + 3) mod n] * y[(i + m + 1) mod (m + 1) mod m] + y[(5 - i) mod m]",
        "def f(x: [n]f64, w: [7]f64) -> f64 = sum i. x[i] * w[i mod 7] * w[(3 - i) mod 7]",
        // around a circle
        "def f(x: [n]f64, w: [n]f64) -> [n]f64 = for i in 0..n. sum j. x[(i - j) mod n] * w[j]",
        "def f(u: [n, m]f64) -> [n, m]f64 = for i, j. u[(i + 1) mod n, j] + u[(i - 1) mod n, j] * u[i, (j + 1) mod m] + u[i, (j - 1) mod m]",
        // one step after the other
        "def f(x: [n]f64, k: i64) -> f64 = let (s, t) = loop (s, t) = (0.5, 0.0) for i in 0..n do (sin(s + x[(i + k) mod n]), t + s); s * t",
        "def f(x: [n]f64) -> [n]f64 = loop y = x for i in 0..n do y with [(i + 1) mod n] = y[(i + 1) mod n] + 0.5 * y[(i + 4) mod n]",
        // choices, and what is looked at in one branch only
        "def f(x: [n]f64, k: i64) -> [n]f64 = for i in 0..n. if i mod 2 == 0 then x[(i + 2) mod n] else if k > 100 then x[(i + 1) mod (k - k)] else x[i]",
        "def f(x: [n]f64, k: i64) -> f64 = max i in 0..n. x[(i * k + i) mod n] - x[(i + k * k) mod n]",
    ] {
        check_text(text, &sizes);
    }
}

/// The rim is done apart, however wide it is, on which sides, and how short the rows are.
#[test]
fn rims_of_loops() {
    let sizes = [(0, 0), (1, 1), (2, 3), (3, 2), (4, 17), (5, 40), (40, 5), (67, 33)];
    for text in [
        "def f(u: [n, m]f64) -> [n, m]f64 = for i, j. if i == 0 or j == 0 or i == n - 1 or j == m - 1 then u[i, j] * 2
           else u[i - 1, j] + u[i + 1, j] * u[i, j - 1] + u[i, j + 1]",
        // and around each place on the way back, step after step
        "def f(u: [n, m]f64, rate: f64, k: i64) -> f64 =
           let v = loop u = u for t in 0..max(0, min(3, k)) do for i, j.
             if i > 0 and i < n - 1 and j > 0 and j < m - 1 then u[i, j] + rate * (u[i - 1, j] + u[i + 1, j] * u[i, j - 1] - u[i, j + 1])
             else u[i, j];
           sum i, j. v[i, j]^2",
        // wider on one side than on the other, conditions in conditions, and falling differences
        "def f(x: [n]f64) -> [n]f64 = for i. if i < 2 then x[i] else if n - i <= 3 then 3 * x[i] else x[i - 2] * x[i + 3] + x[i + 1]",
        "def f(x: [n]f64, y: [m]f64) -> [n]f64 = for i. if 1 - i >= 0 then sin(x[i]) else if i == 5 then x[i - 5] else if i <= 7 then x[i - 1] else x[i - 2]",
        "def f(x: [n]f64) -> f64 = sum i. [i > 0] * [n - 1 > i] * (x[i + 1] - 2 * x[i] + x[i - 1])^2",
        "def f(x: [n]f64) -> f64 = sum i in 1..n. (if i == 1 then x[0] * x[1] else if i != n - 1 then x[i - 2] * x[i + 1] else 7 * x[i])",
        // on one side of one axis, and of an outer one alone
        "def f(u: [n, m]f64) -> [n, m]f64 = for i, j. u[i, j] - (if j > 0 then u[i, j - 1] else if i > 0 then u[i - 1, m - 1] else 0)",
        "def f(u: [n, m]f64) -> [n, m]f64 = for i, j. if i == n - 1 then u[i, j] * u[0, j] else u[i, j] - u[i + 1, j]",
        "def f(u: [n, m, n]f64) -> f64 = sum i, j, k.
           [i > 0 and j > 0 and k > 0 and k < n - 2] * (u[i - 1, j, k] + u[i, j - 1, k] * u[i, j, k - 1] - u[i, j, k + 2])^2",
        // beyond the ends, and far from them
        "def f(x: [n]f64, k: i64) -> [n]f64 = for i. if i >= n or i < 0 then 1 else if i == k or i == n - 20 or i < 12 then x[i] else -x[i]",
        // conditions that have names, integers, the largest
        "def f(x: [n]i64, y: [n]f64) -> (i64, f64, [n]f64) =
           (sum i. (if i == 0 or i == n - 1 then x[i] else x[i] * x[i - 1]),
            max i in 0..n + 1. if i == n then 0.5 else y[i],
            for i in 0..n. let rim = i < 1 or i > n - 3; let t = if rim then 1.5 else y[i + 1]; if rim then t else t * y[i - 1])",
        // zeros around a picture
        "def f(x: [n, m]f64, w: [3]f64) -> [n, m]f64 =
           for i in 0..n, j in 0..m. sum p in 0..3. w[p] * (if i + p > 0 and i + p < n + 1 and j > 1 then x[i + p - 1, j - 2] else 0)",
    ] {
        check_text(text, &sizes);
    }
}

/// What steps add through windows is added along the steps: in one direction or two, with conditions and without.
#[test]
fn windows_that_steps_add_through() {
    let sizes = [(0, 0), (1, 1), (2, 3), (3, 2), (5, 40), (40, 5), (17, 33), (67, 26)];
    for text in [
        "def f(x: [n, m]f64, w: [3, 2]f64) -> f64 = sum i in 0..n - 2, j in 0..m - 1. max(0, (sum p, q. w[p, q] * x[i + p, j + q]) - 0.3)^2",
        "def f(x: [n]f64, w: [5]f64) -> f64 = sum i in 0..n - 4. sin(sum q. w[q] * x[i + q])",
        "def f(x: [n]f64, w: [4]f64) -> f64 = sum i in 0..n - 3. sin(sum q. w[q] * x[i + 3 - q]) * x[i]",
        "def f(x: [n]f32, w: [3]f32) -> f32 = sum i in 0..n - 2. max(0.25, sum q. w[q] * x[i + q])",
        // channels, and a window with three sides
        "def f(x: [n, m]f64, w: [n, n, 3]f64) -> f64 = sum o, j in 0..m - 2. max(0.1, sum a, q. w[o, a, q] * x[a, j + q])^2",
        "def f(x: [3, n, m]f64, w: [2, 2, 3]f64) -> f64 = sum i in 0..n - 1, j in 0..m - 2. exp(sum a in 0..2, p, q. w[a, p, q] * x[a + 1, i + p, j + q])",
        // not from the first to the last, two steps at once, and not along a row
        "def f(x: [n, m]f64, w: [3]f64, k: i64) -> f64 = sum i, j in 1..m - 3. max(x[i, j], sum q. w[q] * x[i, j + q])^2",
        "def f(x: [n]f64, w: [3]f64) -> f64 = sum i in 0..n div 2 - 1. max(0.2, sum q. w[q] * x[2 * i + q])^3",
        "def f(x: [n, m]f64, w: [3]f64) -> f64 = sum j, i in 0..n - 2. max(0.2, sum q. w[q] * x[i + q, j])^3",
        // sums of singletons: what is infinite stays where it is, and what is read of the steps has no margins
        "def f(x: [n]f64, w: [3]f64) -> [n]f64 =
           sum i in 0..n - 2. [x[i] > 0.3] * (let e = sin(x[i]); sum q. {i + q -> (if q == 1 then w[q] / 0 else w[q]) * e})",
        "def f(x: [n]f64, w: [3]f64) -> ([n]f64, [3]f64) =
           sum i in 0..n - 2. [x[i] > 0.3] * (sum q. {i + q -> w[q] * x[i]}, sum q in 0..3. {q -> x[i + q] / (x[i] - 0.3)})",
        "def f(x: [n]f64, w: [3]f64, k: [n]i64) -> [n]f64 = sum i in 0..n - 2. [k[i] > 0] * (sum q. {i + q -> w[q] * x[k[i]]})",
    ] {
        check_text(text, &sizes);
    }
}

/// Blocks of lanes and what is left over, of numbers of every width beside each other.
#[test]
fn numbers_of_all_kinds_in_lanes() {
    let sizes = &[(0, 3), (7, 3), (17, 5), (150, 4)];
    let check = |text: &str| check_text(text, sizes);
    // Rows of 15 = 8 + 4 + 2 + 1 columns in each of two types, and of 3 in others.
    let columns = |f: &dyn Fn(usize) -> String| (0..15).map(f).collect::<Vec<_>>().join(", ");
    let (narrow, wide) = (columns(&|k| format!("k[i] * {k} + 1")), columns(&|k| format!("t * {k} + {k}.5 / (2 + t)")));
    check(&format!(
        "def f(x: [n]f64, k: [n]i32) -> ([n, 15]i32, [n, 15]f64) = (for i. [{narrow}], for i. let t = exp(sin(x[i])); [{wide}])"
    ));
    let single = wide.replace(".5", "");
    check(&format!("def f(x: [n]f32, k: [n]i32) -> ([n, 15]i32, [n, 15]f32) = (for i. [{narrow}], for i. let t = sin(x[i]); [{single}])"));
    check("def f(x: [n]f32) -> ([n, 3]f32, [n, 3]bool) = for i. let t = exp(x[i]); ([t, t * t, 1 / t], [t > 1, x[i] < 0, t * t <= 2])");
    check("def f(x: [n]f64, b: [n, 3]bool) -> [n, 3]f64 = for i. let t = exp(x[i]); for a. if b[i, a] then t * t else t / f64(a + 2)");
    check("def f(x: [n, m]f32, c: [m, m]f32) -> f32 = sum i. log(1 + sum k. exp(-(sum a. (x[i, a] - c[k, a])^2)))");
    check("def f(x: [n, m]f32, c: [m, m]f64) -> f64 = sum i. log(1 + sum k. exp(-(sum a. (f64(x[i, a]) - c[k, a])^2)))");
    check(
        "def f(x: [n, m]f32, k: [n]i64) -> [n, m]f32 = for i. let t = tanh(x[i, 0]); for a. if k[i] > a then t * x[i, a] else t + f32(k[i])",
    );
    check("def f(x: [n]f32, k: [n]i32) -> [5]f32 = sum i. let t = exp(sin(x[i])) * cos(x[i]); {i64(k[i]) -> t * t + 1 / (1 + t)}");
    check(
        "def f(x: [n]f64, k: [n]i32) -> ([n]i32, [n]f64) = for i. let t = exp(x[i]); (if k[i] != 0 then 7 div k[i] + 9 mod k[i] else -3, t)",
    );
    check(
        "def f(x: [n]f64, k: [n]i32) -> ([n]i64, [n]i32, [n]f64) = for i. let t = exp(x[i]); (i64(k[i]) - 5 * i64(x[i]), i32(4 * x[i]), f64(k[i]) * t)",
    );
    check("def f(x: [n]f32) -> ([n]i64, [n]i32, [n]f32) = for i. let t = exp(x[i]); (i64(x[i]), i32(-3 * x[i]), f32(i32(x[i])) + t)");
    // An error at the first of those that have no such integer.
    check("def f(x: [n]f64) -> ([n]i32, [n]f64) = for i. let t = exp(x[i]); (i32(x[i] * 1500000000), t * t)");
    check("def f(x: [n]f32) -> ([n]i32, [n]f32) = for i. let t = exp(x[i]); (i32(x[i] * 1500000000), t * t)");
    check("def f(k: [n]i64, x: [n]f64) -> ([n]i32, [n]f64) = for i. (i32(k[i] * 800000000), exp(x[i]) * sin(x[i]))");
    check(
        "def f(x: [n, m]f32, b: [n]i64) -> f32 = sum i. let y = for a in 0..m. exp(x[i, a]); sum a in 0..b[i]. if a < m then y[a] else 1",
    );
}

/// Rows of a result that is larger than caches are, which begins anywhere in a line of them, from one chunk and from several.
#[test]
fn large_results_are_written_whole() {
    let columns: Vec<String> = (0..15).map(|k| format!("x[i] * {k}")).collect();
    let text = format!("def f(x: [n]f64) -> ([n, 15]f64, [n, 15]i32) = for i. ([{0}], [{1}])", columns.join(", "), {
        let narrow: Vec<String> = (0..15).map(|k| format!("i32(x[i]) + {k}")).collect();
        narrow.join(", ")
    });
    let program = program(&text);
    let id = program.find("f").unwrap();
    let prepared = prepare(&program, id, None);
    let options = Options { lanes: runtime::InLanes::All, ..Options::default() };
    let compiled = runtime::compile(&prepared, id, options).unwrap();
    assert!(compiled.c_source.contains("iv_stream("), "{}", compiled.c_source);
    let n = 300_003;
    let x: Vec<f64> = (0..n).map(|i| (i % 1000) as f64).collect();
    let argument = Value::Array(Array::new(vec![n], Data::F64(x.clone())));
    for threads in [1, 3] {
        let mut result = None;
        compiled.call_into(std::slice::from_ref(&argument), &mut result, threads).unwrap();
        let Some(Value::Tuple(parts)) = &result else { panic!("two arrays") };
        let [Value::Array(wide), Value::Array(narrow)] = parts.as_slice() else { panic!("two arrays") };
        let (Data::F64(wide), Data::I32(narrow)) = (&wide.data, &narrow.data) else { panic!("of floats and of integers") };
        for (place, (wide, narrow)) in wide.iter().zip(narrow).enumerate() {
            let (i, k) = (place / 15, place % 15);
            assert_eq!((*wide, *narrow), (x[i] * k as f64, x[i] as i32 + k as i32), "row {i}, column {k}, {threads} threads");
        }
    }
}

#[test]
fn reductions() {
    check_text("def f(x: [n]f64, y: [n]f64) -> f64 = sum i. x[i] * y[i] * y[i]", SIZES);
    check_text("def f(x: [n]f64) -> f64 = let m = max i. x[i]; m + log(1 + sum i. exp(x[i] - m))", SIZES);
    check_text("def f(x: [n]f64) -> f64 = (prod i. x[i]) + (min i. x[i]) * 2", &SIZES[1..]);
    check_text("def f(P: [n, d]f64, C: [k, d]f64) -> f64 = sum p. min c. sum a. (P[p, a] - C[c, a])^2", &SIZES[1..]);
    check_text(
        "def f(x: [n]f64) -> (i64, i64, bool, bool) = (argmax i. x[i], argmin i. x[i], any i. x[i] > 1.0, all i. x[i] > -9.0)",
        SIZES,
    );
}

#[test]
fn matrix_products() {
    let sizes = &[(0, 0), (1, 1), (7, 3), (17, 7), (40, 33), (1, 17)];
    check_text("def f(A: [n, m]f64, B: [m, n]f64) -> f64 = sum i, k. (sum j. A[i, j] * B[j, k])^2", sizes);
    check_text("def f(A: [n, m]f64, B: [n, m]f64) -> [n, n]f64 = for i, k. sum j. A[i, j] * B[k, j]", sizes);
    check_text("def f(A: [n, m]f64, B: [n, m]f64, s: f64) -> [m, m]f64 = for i, k. -s * (sum j. A[j, i] * 3 * B[j, k])", sizes);
    check_text(
        "def f(A: [n, m]f64, x: [m]f64, y: [n]f64) -> ([n]f64, [m]f64) = (for i. sum j. A[i, j] * x[j], for j. sum i. A[i, j] * y[i])",
        sizes,
    );
    check_text(
        "def f(A: [n, n, m]f64, B: [n, m, n]f64) -> [n, n, n]f64 = for b, i, k. tanh(sum j. A[b, i, j] * B[b, j, k])",
        &[(0, 0), (1, 3), (7, 3), (23, 40)],
    );
    check_text("def f(A: [n, n]f64, B: [n, n]f64) -> [n, n]f64 = for i, j. sum k in 0..i. A[i, k] * B[k, j]", sizes);
    check_text("def f(x: [n]f64, w: [m]f64) -> [n]f64 = for i in 0..n. sum j. [j <= i] * x[i - j] * w[j]", sizes);
}

#[test]
fn branches_and_guards() {
    check_text("def f(x: [n]f64) -> f64 = sum i. if x[i] > 0 then sqrt(x[i]) else log1p(exp(x[i]))", SIZES);
    check_text("def f(x: [n]f64) -> f64 = sum i. [i > 0] * (x[i] - x[i - 1])^2", SIZES);
    check_text("def f(x: [n]f64, y: [n]f64, k: i64) -> [n]f64 = if k > 4 then x + y else y", SIZES);
}

#[test]
fn faults() {
    check_text("def f(x: [n]f64, k: i64) -> f64 = sum i in 0..n. x[i + k - 4]", SIZES);
    check_text("def f(x: [n]f64, is: [m]i64) -> [m]f64 = for j. x[is[j]]", SIZES);
    check_text("def f(k: i64, bin: [n]i64, w: [n]f64) -> [k]f64 = sum i. {bin[i] -> w[i]}", SIZES);
    check_text("def f(bin: [n]i64, w: [n]f64) -> [4]f64 = sum i. {bin[i] -> w[i]}", SIZES);
    check_text("def f(x: [n]f64, k: i64) -> f64 = sum i in 0..n. x[i div (i - k)]", SIZES);
    check_text("def f(x: [n]f64) -> i64 = argmax i. x[i]", SIZES);
    check_text("def f(x: [n]f64) -> i64 = sum i. i64(x[i] / 0.0)", SIZES);
}

#[test]
fn loops_with_states() {
    check_text("def f(x: f64, n: i64) -> [n + 1]f64 = history p = 1.0 for i in 0..n do p * x", &[(0, 0)]);
    check_text(
        "def f(x: [n]f64, k: i64) -> ([k + 1][n]f64, [k + 1]f64) =
           history (v, s) = (x, (0.0 : f64)) for i in 0..k do ((for j. v[j] * 0.5 + s), s + sum j. v[j])",
        SIZES,
    );
}

#[test]
fn scratch_of_varying_size() {
    check_text("def f(x: [n]f64) -> f64 = sum i in 0..n. let z = for j in 0..i. sin(x[j]); (sum j. z[j]) * (max j. z[j] + 1.0)", SIZES);
    check_text(
        "def f(x: [n]f64, is: [n]i64) -> f64 = sum i. let k = is[i]; let z = for j in 0..k. f64(j) * x[i]; (sum j. z[j]) * (sum j. z[j]^2)",
        SIZES,
    );
    check_text("def f(x: [n]f64) -> [n, n]f64 = for i. let z = for j. x[i] * x[j]; let s = sum j. z[j]; for j. z[j] / s", SIZES);
}

/// Adjoints of arrays that are free in a nest of loops leave every level without being built there.
#[test]
fn adjoints_pass_through_levels() {
    check_text(
        "def f(A: [n, m]f64, x: [m]f64) -> f64 =
           sum i. let a = sum j. A[i, j] * x[j];
             a * (sum j. let b = a + sin(A[i, j]);
               b * (sum l in 0..j + 1. let c = b * x[l];
                 c + (sum q. exp(c * A[q, l] * 0.1)) * a))",
        &[(0, 0), (1, 1), (3, 2), (4, 5)],
    );
    check_text(
        "def f(A: [n, m]f64, x: [m]f64) -> f64 =
           sum i. let a = sum j. let b = x[j] * A[i, j];
               if b > 0.3 then b * (sum l. A[i, l] * b) else sin(b);
             a * a",
        &[(0, 0), (1, 1), (3, 2), (4, 5)],
    );
}

/// Chunks depend on sizes alone, so results are the same to the last bit.
#[test]
fn threads_change_nothing() {
    let texts = [
        "def f(x: [n]f64, y: [n]f64) -> f64 = sum i. exp(x[i]) * y[i] * y[i]",
        "def f(x: [n]f64) -> f64 = let m = max i. x[i]; m + log(sum i. exp(x[i] - m))",
        "def f(A: [n, m]f64, x: [m]f64) -> f64 = sum i. let z = for j. tanh(A[i, j] * x[j]); let s = sum j. z[j]; sum j. (z[j] - s)^2",
        "def f(A: [n, n]f64, B: [n, n]f64) -> f64 = sum i, j. (sum k. A[i, k] * B[k, j])^2",
        "def f(x: [n]f64, is: [n]i64) -> f64 = sum i. sin(x[is[i]]) * x[i]",
        "def f(x: [n]f64, y: [m]f64) -> f64 = sum i. sum j. sin(x[i] * y[j])",
        // Arrays of different sizes that live one after another in a step.
        "def f(A: [n, m]f64) -> f64 =
           sum i.
             let s = loop s = A[i] for k in 0..3 do
               (let z = for j. s[j] * s[m - 1 - j]; for j in 0..m. tanh(z[j] + z[(j + 1) mod m] + s[j]));
             let r = history r = 0.0 for j in 0..3 * m do tanh(r + s[j div 3]);
             sum j in 0..3 * m. r[j] * r[3 * m - j]",
    ];
    for text in texts {
        let mut program = program(text);
        let f = program.find("f").unwrap();
        let grad = derive(&mut program, f, DerivativeKind::Grad, None).unwrap();
        for id in [f, grad] {
            let prepared = prepare(&program, id, None);
            let compiled = runtime::compile(&prepared, id, Options::default()).unwrap();
            // Code that is for one thread does not know of others.
            let alone = runtime::compile(&prepared, id, Options { threads: false, ..Options::default() }).unwrap();
            for n in [0i64, 1, 17, 400] {
                let args = sample::arguments(&prepared, id, &[n, n / 2 + 1], 5);
                let one = compiled.call(&args, 1);
                for (code, threads) in [(&compiled, 2), (&compiled, 3), (&compiled, 8), (&alone, 1), (&alone, 2)] {
                    let same = match (&one, code.call(&args, threads)) {
                        (Ok(a), Ok(b)) => check_close(a, &b, Tolerance::EXACT).is_ok(),
                        (Err(a), Err(b)) => *a == b,
                        _ => false,
                    };
                    assert!(same, "{text}, n = {n}, {threads} threads\n{}", code.c_source);
                }
                if n <= 17 {
                    let expected = interpret::call(&prepared, id, &args).map(|(value, _)| value);
                    match (expected, one) {
                        (Ok(a), Ok(b)) => check_close(&a, &b, Tolerance { relative: 1e-10, absolute: 1e-11 })
                            .unwrap_or_else(|e| panic!("{text}, n = {n}: {e}")),
                        (a, b) => assert_eq!(a, b, "{text}, n = {n}"),
                    }
                }
            }
        }
    }
}

/// Threads share products of matrices so that each place is added up as one thread adds it, of all shapes: short sides and long
/// depths are cut in other ways by the kernels.
#[test]
fn threads_that_share_products_change_nothing() {
    let plain = "def f(A: [n, k]T, B: [k, m]T) -> [n, m]T = for i, j. sum l. A[i, l] * B[l, j]";
    let turned = "def f(A: [n, k]T, B: [k, m]T) -> [m, n]T = for j, i. sum l. A[i, l] * B[l, j]";
    // A loop beside it, so that there is something to compile.
    let among = "def f(A: [n, k]T, B: [k, m]T) -> [n, m]T = let C = for i, j. sum l. A[i, l] * B[l, j]; for i, j. tanh(C[i, j])";
    for (text, scalar) in [plain, turned, among].into_iter().flat_map(|text| [(text, "f64"), (text, "f32")]) {
        let program = program(&text.replace('T', scalar));
        let f = program.find("f").unwrap();
        let prepared = prepare(&program, f, None);
        for [n, k, m] in
            [[256, 300, 64], [70, 600, 70], [64, 700, 64], [200, 700, 40], [33, 2000, 16], [16, 3000, 150], [1000, 40, 30], [5, 9000, 40]]
        {
            let args = sample::arguments(&prepared, f, &[n, k, m], 3);
            let call = runtime::call(&prepared, f, &args);
            for compiled in [
                runtime::compile(&prepared, f, Options::default()).unwrap(),
                runtime::compile_for(&prepared, f, Options::default(), &call).unwrap(),
            ] {
                let one = compiled.call(&args, 1).unwrap();
                for threads in [2, 3, 8] {
                    let several = compiled.call(&args, threads).unwrap();
                    check_close(&one, &several, Tolerance::EXACT)
                        .unwrap_or_else(|e| panic!("{text}, {scalar}, {n} x {k} x {m} on {threads} threads: {e}"));
                }
            }
        }
    }
}

/// Denormal numbers are kept, unless they are to be zero; then they are in every thread, and the caller's mode stays.
#[test]
fn denormals_are_kept_or_flushed() {
    let texts = [
        "def f(x: [n]f64, y: f64) -> [n]f64 = for i. x[i] * y",
        "def f(x: [n]f64, y: f64) -> f64 = sum i. x[i] * y",
        "def f(x: [n]f32, y: f32) -> [n]f32 = for i. (x[i] * y) * f32(1e-4)",
        // A matrix product, which has threads of its own.
        "def f(x: [n]f64, y: f64) -> [128, 128]f64 = let A = for i in 0..128, k in 0..128. x[(i + k) mod n]; \
         for i in 0..128, j in 0..128. sum k in 0..128. A[i, k] * A[k, j]",
    ];
    let tiny = std::hint::black_box(1e-300f64);
    for text in texts {
        let program = program(text);
        let f = program.find("f").unwrap();
        let prepared = prepare(&program, f, None);
        let single = widen::has_f32(&prepared, f);
        let args: Vec<Value> = if single {
            vec![Array { shape: vec![5000], data: Data::F32(vec![1e-20; 5000]) }.into(), Value::Scalar(Lit::F32(1e-16))]
        } else {
            vec![vec![1e-156; 5000].into(), 1e-156.into()]
        };
        for (flush, threads) in [(false, 1), (false, 2), (true, 1), (true, 2)] {
            let compiled = runtime::compile(&prepared, f, Options { flush, ..Options::default() }).unwrap();
            let result = compiled.call(&args, threads).unwrap();
            let zero = result.floats().iter().all(|x| *x == 0.0);
            let denormal = result.floats().iter().all(|x| *x != 0.0 && x.abs() < 1e-300);
            // Denormals of `f32` are no small numbers of `f64`.
            assert!(
                if flush { zero } else { denormal || (single && !zero) },
                "{text}, {flush}, {threads} threads: {:?}",
                result.floats()[0]
            );
            assert!(tiny * 1e-10 > 0.0, "the mode of the caller comes back");
        }
    }
}

/// Inverses of huge numbers are denormal; quotients by them are not, and are kept.
#[test]
fn quotients_by_huge_numbers_are_not_flushed() {
    let program = program("def f(x: [n, d]f64, t: [d]f64) -> [n, d]f64 = for i, a. x[i, a] / t[a]");
    let f = program.find("f").unwrap();
    let prepared = prepare(&program, f, None);
    let t = [1e308, 5e307, 3.0, 1e-300];
    let args: Vec<Value> = vec![Array { shape: vec![50, 4], data: Data::F64(t.repeat(50)) }.into(), t.to_vec().into()];
    for flush in [false, true] {
        let compiled = runtime::compile(&prepared, f, Options { flush, ..Options::default() }).unwrap();
        assert!(compiled.call(&args, 1).unwrap().floats().iter().all(|x| (x - 1.0).abs() < 1e-15), "{flush}");
    }
}

#[test]
fn several_loops_share_a_total() {
    check_text("def f(x: [n]f64, y: [m]f64) -> f64 = sum i in 0..2. if i > 0 then sum j. exp(x[j]) else (sum j. sin(y[j]))", SIZES);
    check_text(
        "def f(x: [n]f64, A: [n, n]f64) -> [n]f64 = (for i. sum j. A[i, j] * x[j]) + ((for i. sin(x[i])) + for i. sum j. A[j, i])",
        SIZES,
    );
}

/// A band of three added at each of many places: the loop runs over the band, not over the row with a condition in it.
#[test]
fn narrow_bands_are_added_where_they_are() {
    let text = "def band(x: [n]f64, w: [m]f64) -> [n + m]f64 = sum j in 0..n. let v = sin(x[j]); sum d in 0..m. {j + d -> v * w[d]}";
    let program = check(&parse(0, text).0).0;
    let prepared = prepare(&program, FunctionId(0), None);
    let compiled = runtime::compile(&prepared, FunctionId(0), Options::default()).unwrap();
    let floats = |n: usize| Value::Array(iverson::value::Array { shape: vec![n], data: Data::F64(vec![0.5; n]) });
    assert!(!compiled.c_source.contains("if (0 <="), "{}", compiled.c_source);
    let result = compiled.call(&[floats(1 << 12), floats(3)], 1).unwrap();
    assert_eq!(result.floats()[2..5], [3.0 * 0.5 * 0.5f64.sin(); 3]);
}

/// Rows at once and outer products in registers (`emit/c/lanes/tiles.rs`): triangles, bands and whole matrices, of sizes below
/// and above those that are worth it, and with blocks of lanes that are not filled.
#[test]
fn tiles_agree_with_the_interpreter() {
    let shapes = [
        ("(d * (d - 1)) div 2", "0..a", "(b * (2 * d - b - 1)) div 2 + a - b - 1", true),
        ("(d * (d - 1)) div 2", "0..a", "(a * (a - 1)) div 2 + b", true),
        ("(d * (d + 1)) div 2", "a..d", "a * d - (a * (a - 1)) div 2 + b - a", true),
        ("d * d", "max(0, a - 5)..min(d, a + 6)", "a * d + b", true),
        ("d * d", "max(0, a - 5)..min(d, a + 6)", "b * d + a", true),
        ("d * d", "0..(if a mod 2 == 0 then d else 0)", "a * d + b", false),
    ];
    for (size, range, place, turned) in shapes {
        let text = format!(
            "def logsumexp(x: [n]f64) -> f64 = let m = max i. x[i]; m + log(sum i. exp(x[i] - m))
             def f(w: [k, {size}]f64, mu: [k, d]f64, x: [n, d]f64) -> f64 =
               sum i. logsumexp(for c in 0..k.
                 let z = for a. x[i, a] - mu[c, a];
                 let q = for a in 0..d. 2.0 * z[a] + sum b in {range}. w[c, {place}] * z[b];
                 -0.1 * (sum a. q[a]^2))"
        );
        let mut program = program(&text);
        let id = program.find("f").unwrap();
        let wrt = ["w".to_string(), "mu".to_string()];
        let gradient = derive(&mut program, id, DerivativeKind::ValueAndGrad, Some(&wrt)).unwrap();
        let prepared = prepare(&program, gradient, None);
        let compiled = runtime::compile(&prepared, gradient, Options::default()).unwrap();
        assert_eq!(compiled.c_source.contains("iv_products_8d(turned"), turned, "{text}\n{}", compiled.c_source);
        for (n, d) in [(70, 31), (32, 40), (33, 8), (40, 1)] {
            let args = sample::arguments(&prepared, gradient, &[2, d, n], 1);
            let mut result = None;
            compiled.call_into(&args, &mut result, 1).unwrap();
            let expected = interpret::call(&prepared, gradient, &args).unwrap().0;
            check_close(&result.unwrap(), &expected, CLOSE).unwrap_or_else(|e| panic!("{text}\nn = {n}, d = {d}: {e}"));
        }
    }
}

/// Branches in lanes that change what their condition reads: which lanes take which is asked before.
#[test]
fn branches_change_what_they_ask() {
    let programs = [
        "def f(x: [n]f64, y: [m]f64) -> [n]f64 = for i. loop p = x[i] for j in 0..m do (if p > 0.0 then p - 1.5 else p * p + y[j])",
        "def f(x: [n]f64, c: [m]f64) -> [n]f64 =
           for i.
             let (a, b) = loop (p, q) = (-10.0, -10.0) for j in 0..m do (let t = sin(x[i] * c[j]); if t > p then (t, p) else (p, max(q, t)));
             a + b",
        "def f(x: [n, m]f64) -> [n]f64 =
           for i.
             let (y, s) = loop (y, s) = (x[i], 0.0) for j in 1..m do
               (if y[j] + s > 0.0 then (y with [j] = y[j - 1] - 5.0, s - 1.0) else (y with [j - 1] = exp(y[j]), s + 1.0));
             s + (sum j. y[j])",
    ];
    for text in programs {
        check_text(text, &[(0, 0), (1, 3), (17, 7), (40, 9)]);
    }
}

/// Products of matrices whose results have other axes between their own, or in front and behind, stored and added.
#[test]
fn products_among_other_axes() {
    let programs = [
        "def f(X: [2, n, m]f64, Q: [2, 3, n, m]f64) -> [m, 3, m]f64 = for b, g, a. sum i, s. X[i, s, b] * Q[i, g, s, a]",
        "def f(X: [n, m]f64, W: [m, 3, n]f64) -> [3, n, 2, n]f64 = for g, i, c in 0..2, j. 0.5 * sum b. X[i, b] * W[b, g, j]",
        "def f(X: [n, m]f64, W: [m, 3, n]f64, y: [n, 3, n]f64) -> f64 =
           let z = for i, g, j. y[i, g, j] + (sum b. X[i, b] * W[b, g, j]) + (sum b. X[j, b] * W[b, g, i]);
           sum i, g, j. z[i, g, j]^2",
    ];
    for text in programs {
        check_text(text, &[(0, 0), (1, 1), (7, 3), (20, 10), (0, 5), (5, 0)]);
    }
}

/// Rows of twelve numbers in small arrays: what is left behind a vector of eight is not aligned by half of one more.
#[test]
fn small_arrays_have_rows_of_any_length() {
    let second = "def g(W: [3, d, d]f64, U: [3, d, d]f64, xs: [t, d]f64) -> f64 =
      let h = loop h = for i in 0..d. 0.0 for s in 0..t do
        let z = for i. sigmoid((sum j. W[0, i, j] * xs[s, j]) + (sum j. U[0, i, j] * h[j]));
        let g = for i. sigmoid((sum j. W[1, i, j] * xs[s, j]) + (sum j. U[1, i, j] * h[j]));
        let c = for i. tanh((sum j. W[2, i, j] * xs[s, j]) + (sum j. U[2, i, j] * g[j] * h[j]));
        for i. (1 - z[i]) * h[i] + z[i] * c[i];
      sum i. h[i]^2
    def f(W: [3, 2, 2]f64, U: [3, 2, 2]f64, xs: [t, 2]f64) -> (
      ([3, 2, 2, 3, 2, 2]f64, [3, 2, 2, 3, 2, 2]f64, [3, 2, 2, t, 2]f64),
      ([3, 2, 2, 3, 2, 2]f64, [3, 2, 2, 3, 2, 2]f64, [3, 2, 2, t, 2]f64),
      ([t, 2, 3, 2, 2]f64, [t, 2, 3, 2, 2]f64, [t, 2, t, 2]f64)
    ) = hessian(g)(W, U, xs)";
    check_text(second, &[(1, 0), (2, 0), (3, 0)]);
}

/// Sums of several steps at once where what is done with them goes from step to step; not where they need what the step before did.
#[test]
fn sums_of_several_steps_in_order() {
    let programs = [
        ("def f(C: [k, d]f64, P: [n, d]f64) -> f64 = sum p. min c. sum a. (P[p, a] - C[c, a])^2", true),
        ("def f(C: [k, d]f64, P: [n, d]f64) -> [n]i64 = for p. [k > 0] * argmin c. sum a. (P[p, a] - C[c, a])^2", true),
        ("def f(C: [k, d]f64, P: [n, d]f64) -> [n]f64 = for p. loop s = 1.0 for c in 0..k do 0.5 * s + (sum a. P[p, a] * C[c, a])", true),
        (
            "def f(C: [k, d]f64, P: [n, d]f64) -> [n]f64 = for p. loop s = 1.0 for c in 0..k do 0.5 * s + (sum a. (P[p, a] * C[c, a] - s)^2) / 64.0",
            false,
        ),
        (
            "def f(C: [k, d]f64, P: [n, d]f64) -> [n, k]f64 =
               for p.
                 loop y = (for c in 0..k. 1.0) for c in 1..k do y with [c] = (sum a. (P[p, a] * C[c, a] - y[c - 1])^2) / 64.0",
            false,
        ),
    ];
    for (text, tiled) in programs {
        let program = program(text);
        let id = program.find("f").unwrap();
        let prepared = prepare(&program, id, None);
        let compiled = runtime::compile(&prepared, id, Options::default()).unwrap();
        assert_eq!(compiled.c_source.contains("row3v"), tiled, "{text}\n{}", compiled.c_source);
        for (n, d, k) in [(70, 31, 9), (32, 40, 4), (33, 8, 3), (40, 1, 1), (64, 9, 0)] {
            let mut args = sample::arguments(&prepared, id, &[k, d, n], 1);
            for number in [0.0, f64::NAN] {
                // A tie between the first two, and what is no number in the last.
                if let (Value::Array(Array { data: Data::F64(c), .. }), true) = (&mut args[0], k > 1) {
                    c.copy_within(..d as usize, d as usize);
                    *c.last_mut().unwrap() += number;
                }
                let mut result = None;
                compiled.call_into(&args, &mut result, 1).unwrap();
                let expected = interpret::call(&prepared, id, &args).unwrap().0;
                check_close(&result.unwrap(), &expected, CLOSE).unwrap_or_else(|e| panic!("{text}\nn = {n}, d = {d}, k = {k}: {e}"));
            }
        }
    }
}

/// Sums over lanes for several places in one loop, with what they need beside: an array written for a later loop too.
#[test]
fn sums_of_several_places_agree_with_the_interpreter() {
    let mixture = "def logsumexp(x: [n]f64) -> f64 = let m = max i. x[i]; m + log(sum i. exp(x[i] - m))
                   def f(mu: [k, d]f64, s: [k, d]f64, x: [n, d]f64) -> f64 =
                     sum i. logsumexp(for c. (sum a. s[c, a]) - 0.5 * (sum a. (exp(s[c, a]) * (x[i, a] - mu[c, a]))^2))";
    let written = "def f(mu: [k, d]f64, s: [k, d]f64, x: [n, d]f64) -> f64 =
                     sum i, c.
                       let u = for a. tanh(x[i, a] * mu[c, a]) * s[c, a];
                       let v = sum a. u[a]^2;
                       v * (sum a. sin(u[a] * v))";
    for (text, several) in [(mixture, true), (written, false)] {
        let mut program = program(text);
        let id = program.find("f").unwrap();
        let wrt = ["mu".to_string(), "s".to_string()];
        let gradient = derive(&mut program, id, DerivativeKind::ValueAndGrad, Some(&wrt)).unwrap();
        let prepared = prepare(&program, gradient, None);
        let compiled = runtime::compile(&prepared, gradient, Options::default()).unwrap();
        assert!(!several || compiled.c_source.contains("iv_add_sums_8d(p1[0]"), "{text}\n{}", compiled.c_source);
        for (n, d) in [(70, 31), (32, 40), (33, 8), (40, 1), (5, 6)] {
            let args = sample::arguments(&prepared, gradient, &[3, d, n], 1);
            let mut result = None;
            compiled.call_into(&args, &mut result, 1).unwrap();
            let expected = interpret::call(&prepared, gradient, &args).unwrap().0;
            check_close(&result.unwrap(), &expected, CLOSE).unwrap_or_else(|e| panic!("{text}\nn = {n}, d = {d}: {e}"));
        }
    }
}

/// Terms of sums that are zero times something are left out where a parameter is said to be mostly zeros: they are zeros, but
/// where they are not.
#[test]
fn zeros_that_are_left_out_are_zeros() {
    let programs = [
        "def f(w: [p, k]f64, m: [k, 3, 4]f64, x: [p, 4]f64) -> [p, 3]f64 =
           for q, r. sum j. w[q, j] * (sum c. m[j, r, c] * x[q, c])",
        "def f(w: [p, k]f64, m: [k, 40, 4]f64, x: [p, 4]f64) -> [p, 40]f64 =
           for q. let t = for i. sum j. w[q, j] * (sum c. x[q, c] * m[j, i, c]); let u = sum i. t[i]; for i. t[i] * u",
        "def f(w: [p, k]f64, m: [k, 4, 40]f64, x: [p, 4]f64) -> [p, 40, 3]f64 =
           for q.
             let t = for i, r in 0..3. sum j. w[q, j] * (sum c. x[q, c] * m[j, c, i] * m[j, r, i]);
             let u = sum i, r. t[i, r];
             for i, r. t[i, r] * u",
        "def f(w: [k]f64, m: [k, 60, k]f32, x: [k]f64, s: f64) -> [60]f64 =
           for i. sum j. ((sum c in 0..j. f64(m[j, i, c]) * x[c]) - s) * w[j]",
        "def f(w: [k]f64, m: [k, 60, k]f64, y: [k, 2]f64) -> [60, 2]f64 =
           for i, e. sum j. w[j] * (sum c. m[j, i, c] * y[c, e])",
        "def f(w: [p, k]f64, m: [k, 40, 4]f64, x: [p, 4]f64) -> [p, 40]f64 =
           for q, i. x[q, 0] - (sum j. w[q, j] * (sum c. x[q, c] * m[j, i, c]))",
        "def f(w: [p, k]f64, m: [k, 3, 4, 40]f64, x: [p, 4]f64, o: [p, 3]f64) -> [p, 3, 40]f64 =
           for q, r, i. -(o[q, r] + (sum j. w[q, j] * (sum c. x[q, c] * m[j, r, c, i])))",
        // Two sums that leave out the same terms are one, whichever of them has to have them all.
        "def f(w: [p, k]f64, m: [k, 3, 4, 40]f64, x: [p, 4]f64, o: [k, 3, 4, 20]f64) -> ([p, 3, 40]f64, [p, 3, 20]f64) =
           for q.
             (for r, i. 1.0 - (sum j. w[q, j] * (sum c. x[q, c] * m[j, r, c, i])),
              for r, i. (sum j. w[q, j] * (sum c. x[q, c] * o[j, r, c, i])) * 2.0)",
    ];
    let (mut skipped, mut questions) = (0, vec![]);
    for text in programs {
        let program = program(text);
        let id = program.find("f").unwrap();
        let known = specialize::Known { mostly_zero: vec![0], ..Default::default() };
        // Other passes reorder what is infinite, with this one and without.
        let whole = prepare(&program, id, None);
        let first = id;
        let (program, id) = specialize::specialize(&program, id, &known, specialize::Taken::Still);
        let prepared = prepare(&program, id, None);
        verify::verify(&prepared).unwrap();
        let printed = print::print_function(&prepared, id);
        skipped += printed.contains("finite") as usize;
        questions.push(printed.matches("!= 0.0").count());
        let sizes = vec![9; program.function(id).sizes.len()];
        let compiled = runtime::compile(&prepared, id, Options::default()).unwrap();
        for (number, at) in [(1.0, 0), (f64::INFINITY, 0), (f64::NAN, 40), (f64::NEG_INFINITY, 77)] {
            let mut args = sample::arguments(&program, id, &sizes, 5);
            if let Value::Array(Array { data: Data::F64(w), .. }) = &mut args[0] {
                w.iter_mut().enumerate().filter(|(k, _)| k % 4 != 1).for_each(|(_, w)| *w = 0.0);
            }
            match &mut args[1] {
                Value::Array(Array { data: Data::F64(m), .. }) => m[at] = number,
                Value::Array(Array { data: Data::F32(m), .. }) => m[at] = number as f32,
                other => panic!("{other:?}"),
            }
            let whole = interpret::call(&whole, first, &args).unwrap().0;
            let expected = interpret::call(&prepared, id, &args).unwrap().0;
            check_close(&expected, &whole, CLOSE).unwrap_or_else(|e| panic!("{text}\n{number} at {at}: {e}"));
            let found = compiled.call(&args, 1).unwrap();
            check_close(&found, &whole, CLOSE).unwrap_or_else(|e| panic!("{text}\n{number} at {at}, compiled: {e}"));
        }
    }
    assert_eq!(skipped, 6, "not the first, which is not worth it, nor the third, whose sums become tables");
    assert_eq!(questions, [0, 1, 0, 1, 1, 1, 1, 1]);
}

/// Loops in lanes ask for the rows of their next step where all rows are more than the near caches hold.
#[test]
fn rows_of_the_next_step_are_fetched() {
    let mut program = program(include_str!("../bench/gmm/gmm.iv"));
    let f = program.find("gmm").unwrap();
    let gradient = derive(&mut program, f, DerivativeKind::Grad, None).unwrap();
    let prepared = prepare(&program, gradient, None);
    let args = sample::arguments(&prepared, gradient, &[130, 24, 33], 3);
    let call = runtime::call(&prepared, gradient, &args);
    let compiled = runtime::compile_for(&prepared, gradient, Options::default(), &call).unwrap();
    assert!(compiled.c_source.contains("iv_fetch("), "{}", compiled.c_source);
    // Of all loops one has nearly everything to do; those that only go through memory may have threads, too.
    let regions = |text: &str| text.matches("#pragma omp parallel").count();
    let general = runtime::compile(&prepared, gradient, Options::default()).unwrap();
    assert!(2 * regions(&compiled.c_source) <= regions(&general.c_source), "{}", compiled.c_source);
    let expected = interpret::call(&prepared, gradient, &args).unwrap().0;
    for threads in [1, 2] {
        check_close(&compiled.call(&args, threads).unwrap(), &expected, CLOSE).unwrap();
    }
}

/// Where sizes decide how a Jacobian is computed, code for a call has the way of that call alone; calls that go the other way get
/// other code.
#[test]
fn the_sizes_of_a_call_choose_the_way() {
    let text = "def f(u: [h, n]f64, v: [m, h]f64, x: [n]f64) -> [m]f64 =
        let y = for i. tanh(sum j. u[i, j] * x[j]); for i. sum j. v[i, j] * y[j]";
    let mut program = program(text);
    let f = program.find("f").unwrap();
    let jacobian = derive(&mut program, f, DerivativeKind::Jacobian, Some(&["x".to_string()])).unwrap();
    let prepared = prepare(&program, jacobian, None);
    let general = runtime::compile(&prepared, jacobian, Options::default()).unwrap().c_source;
    let sizes = [[9, 3, 40], [9, 40, 3], [0, 3, 40], [9, 0, 3], [9, 40, 0]];
    for first in &sizes[..2] {
        let args = sample::arguments(&prepared, jacobian, first, 3);
        let compiled = runtime::compile_for(&prepared, jacobian, Options::default(), &runtime::call(&prepared, jacobian, &args)).unwrap();
        assert!(compiled.c_source.len() * 4 < general.len() * 3, "{}", compiled.c_source);
        assert!(compiled.c_source.contains(&format!("iv_fail(context, {}", emit::c::OTHER_SIZES)), "{}", compiled.c_source);
        for sizes in &sizes {
            let args = sample::arguments(&prepared, jacobian, sizes, 3);
            let expected = interpret::call(&prepared, jacobian, &args).unwrap().0;
            check_close(&compiled.call(&args, 2).unwrap(), &expected, CLOSE).unwrap();
        }
    }
}

/// Code for large products of matrices has little for others, which get other code where they are long.
#[test]
fn products_of_other_sizes_are_right() {
    let program = program("def f(A: [n, k]f64, B: [k, m]f64) -> [n, m]f64 = for i, j. -3.0 * sum l. A[i, l] * B[l, j]");
    let id = program.find("f").unwrap();
    let prepared = prepare(&program, id, None);
    let general = runtime::compile(&prepared, id, Options::default()).unwrap().c_source;
    let args = sample::arguments(&prepared, id, &[40, 50, 60], 3);
    let compiled = runtime::compile_for(&prepared, id, Options::default(), &runtime::call(&prepared, id, &args)).unwrap();
    assert!(general.contains("for (") && !compiled.c_source.contains("for ("), "{}", compiled.c_source);
    for sizes in [[40, 50, 60], [41, 64, 3], [1, 900, 70], [5, 5, 5], [26, 27, 28], [27, 27, 28], [0, 4, 4], [33, 0, 9]] {
        let args = sample::arguments(&prepared, id, &sizes, 3);
        let expected = interpret::call(&prepared, id, &args).unwrap().0;
        check_close(&compiled.call(&args, 2).unwrap(), &expected, CLOSE).unwrap_or_else(|e| panic!("{sizes:?}: {e}"));
    }
}

/// Products that need memory in between, of both kinds of floats, in code that is not compiled; calls of other sizes are.
#[test]
fn products_are_carried_out_as_they_stand() {
    for float in ["f64", "f32"] {
        let text = "def g(A: [n, k]f64, B: [k, m]f64, C: [m, p]f64) -> f64 = sum i, j. (sum l, h. A[i, l] * B[l, h] * C[h, j])^2
            def f(A: [n, k]f64, B: [k, m]f64, C: [m, p]f64) -> ([n, k]f64, [k, m]f64, [m, p]f64) = grad(g)(A, B, C)";
        let program = program(&text.replace("f64", float));
        let id = program.find("f").unwrap();
        let prepared = prepare(&program, id, None);
        let args = sample::arguments(&prepared, id, &[28, 29, 28, 28], 3);
        let compiled = runtime::compile_for(&prepared, id, Options::default(), &runtime::call(&prepared, id, &args)).unwrap();
        let close = if float == "f64" { CLOSE } else { Tolerance { relative: 1e-3, absolute: 1e-2 } };
        for (sizes, threads) in [([28, 29, 28, 28], 1), ([30, 28, 29, 28], 2), ([3, 4, 5, 6], 2), ([33, 30, 0, 41], 1)] {
            let args = sample::arguments(&prepared, id, &sizes, 4);
            let expected = interpret::call(&prepared, id, &args).unwrap().0;
            check_close(&compiled.call(&args, threads).unwrap(), &expected, close).unwrap_or_else(|e| panic!("{float}, {sizes:?}: {e}"));
        }
    }
}

/// What vector functions do lane by lane is done in vectors, and is the same.
#[test]
fn exponentials_of_numbers_far_out() {
    let program = program("def f(x: [n]f64) -> [n]f64 = for i. exp(x[i])");
    let id = program.find("f").unwrap();
    let prepared = prepare(&program, id, None);
    let mut x = vec![-745.0, -745.1, -745.2, -746.0, -1e4, -1e300, f64::NEG_INFINITY, f64::NAN, 709.0, 710.0, f64::INFINITY, -0.0];
    x.extend((0..30).map(|k| -700.0 - 2.0 * k as f64));
    let args = [Value::Array(Array { shape: vec![x.len()], data: Data::F64(x) })];
    let expected = interpret::call(&prepared, id, &args).unwrap().0;
    let compiled = runtime::compile(&prepared, id, Options { lanes: runtime::InLanes::All, ..Options::default() }).unwrap();
    assert!(compiled.c_source.contains("iv_exp_8d("), "{}", compiled.c_source);
    let close = Tolerance { relative: 1e-14, absolute: 0.0 };
    check_close(&compiled.call(&args, 1).unwrap(), &expected, close).unwrap();
}

/// Rows that data name are checked once for all that is read of them, and products of such rows are made along the result; what
/// is out of range is said as the interpreter says it, whichever comes first.
#[test]
fn rows_that_data_name_are_checked_before_loops() {
    for (shape, text, checks) in [
        ("[n, 4, 9]", "for i, j in 0..4, c in 0..9. sum l in 0..4. A[p[i], j, l] * B[q[i], l, c]", 2),
        ("[n, 4]", "for i, j in 0..4. let s = sum c in 0..9. B[j, 1, c] * B[p[i], j, c]; s * A[q[i], j, 0] + A[p[i], j, 1]", 2),
        // What the condition says need not be checked.
        ("[n, 4]", "for i, j in 0..4. if p[i] < 0 or p[i] >= 5 then 1.5 else sum l in 0..4. A[p[i], j, l] * A[q[i], l, j]", 1),
        // A loop that may not run checks nothing then.
        ("[n]", "for i. sum k in 0..i mod 3, l in 0..4. A[p[i], k, l] * A[q[i], l, k]", 2),
        // Keys that change from step to step, and within one.
        ("f64", "let (k, s) = loop (k, s) = (p, 0.0) for j in 0..3 do (k with [0] = k[0] + 1, s + A[k[0], 0, j]); s + f64(k[0])", 2),
        (
            "f64",
            "let (k, s) = loop (k, s) = (p, 0.0) for i in 0..n do
               let a = A[k[i], 0, 0];
               let h = k with [i] = k[i] + 1;
               (h, s + a * A[h[i], 0, 1]);
             s + f64(k[0])",
            3,
        ),
    ] {
        let text = format!("def f(A: [5, 4, 4]f64, B: [5, 4, 9]f64, p: [n]i64, q: [n]i64) -> {shape}f64 = {text}").replace("f64f64", "f64");
        let program = program(&text);
        let id = program.find("f").unwrap();
        let prepared = prepare(&program, id, None);
        let mut args = sample::arguments(&prepared, id, &[11], 3);
        for strict in [false, true] {
            let compiled = runtime::compile(&prepared, id, Options { strict, ..Options::default() }).unwrap();
            let found = compiled.c_source.matches("iv_fail(context, 1,").count();
            assert_eq!(found, checks, "{text}\n{}", compiled.c_source);
            let far =
                [[None, None], [Some((4, 5)), None], [None, Some((4, -1))], [Some((7, 9)), Some((3, 5))], [Some((2, -3)), Some((2, 8))]];
            for far in far.into_iter().chain([[Some((0, 2)), None], [Some((0, 3)), None], [Some((0, 4)), None]]) {
                let [p, q] = far.map(|far| {
                    let mut keys: Vec<i64> = (0..11).map(|k| k * 3 % 4).collect();
                    far.inspect(|(at, key)| keys[*at] = *key);
                    Value::Array(Array { shape: vec![11], data: Data::I64(keys) })
                });
                (args[2], args[3]) = (p, q);
                match (interpret::call(&prepared, id, &args), compiled.call(&args, 2)) {
                    (Ok((expected, _)), Ok(value)) => check_close(&value, &expected, CLOSE).unwrap_or_else(|e| panic!("{text}: {e}")),
                    (expected, found) => assert_eq!(expected.map(|_| ()), found.map(|_| ()), "{text}: {far:?}"),
                }
            }
        }
    }
}

/// Code that is for calls that fill its lanes says what fails, and where, as all other code does.
#[test]
fn what_fails_in_filled_lanes_is_the_first() {
    let text = "def f(x: [n, m]f64, k: [n]i64, y: [m]f64) -> [n]f64 =
        for i. let s = sum a. exp(x[i, a] * y[a]); s * y[k[i]] + f64(7 div k[i])";
    let program = program(text);
    let id = program.find("f").unwrap();
    let prepared = prepare(&program, id, None);
    let mut args = sample::arguments(&prepared, id, &[70, 9], 3);
    let compiled = runtime::compile_for(&prepared, id, Options::default(), &runtime::call(&prepared, id, &args)).unwrap();
    for (far, zero) in [(None, None), (Some(69), None), (None, Some(0)), (Some(40), Some(33)), (Some(33), Some(40)), (Some(5), Some(64))] {
        let mut keys = vec![3; 70];
        far.inspect(|at| keys[*at] = 9);
        zero.inspect(|at| keys[*at] = 0);
        args[1] = Value::Array(Array { shape: vec![70], data: Data::I64(keys) });
        let mut result = None;
        for threads in [1, 2] {
            match (interpret::call(&prepared, id, &args), compiled.call_into(&args, &mut result, threads)) {
                (Ok((expected, _)), Ok(_)) => check_close(result.as_ref().unwrap(), &expected, CLOSE).unwrap(),
                (expected, found) => assert_eq!(expected.map(|_| ()), found.map(|_| ()), "{far:?}, {zero:?}"),
            }
        }
    }
    assert!(compiled.c_source.contains(&format!("iv_fail(context, {}", emit::c::FAILS_IN_LANES)), "{}", compiled.c_source);
}

/// The last block of lanes begins among iterations that are done (`emit/c/lanes.rs`): what they add up counts once, also under
/// conditions and in tiles, whatever their numbers are; what is changed in place is not changed twice.
#[test]
fn iterations_that_run_again_count_once() {
    let mixture = "let m = max c. q[c]; m + log(sum c. exp(q[c] - m))";
    let programs = [
        format!("def f(x: [n, m]f64, w: [m, m]f64) -> f64 = sum i. let q = for c. sum b in 0..c + 1. w[c, b] * x[i, b]; {mixture}"),
        format!(
            "def f(x: [n, m]f64, w: [m, m]f64) -> f64 =
               sum i.
                 let q = for c.
                   let z = for a. x[i, a] - w[c, a];
                   let y = for a. sum b in 0..a + 1. w[a, b] * z[b];
                   0.0 - log1p(sum a. y[a]^2);
                 {mixture}"
        ),
        "def f(x: [n, m]f64, y: [m]f64) -> f64 =
           sum i. let s = sum a. x[i, a] * y[a]; if s > 0.0 then (sum a. sin(s * y[a])) else (sum a. cos(x[i, a] + y[a]))"
            .to_string(),
        "def f(x: [n, m]f64, y: [m]f64) -> [n, m]f64 = for i. let s = sum a. x[i, a] * y[a]; for a. x[i, a] * exp(y[a] * s)".to_string(),
        "def f(x: [n, m]f64, y: [m]f64) -> [n]f64 =
           let z = for i. sum a. sin(x[i, a] * y[a]);
           loop z = z for t in 0..3 do for i. z[i] + 0.01 * (sum a. cos(z[i] * y[a]))"
            .to_string(),
        "def f(x: [n, m]f64, k: [n]i64, y: [m]f64) -> f64 =
           let s: [m]f64 = sum i. {k[i] mod m -> sum a. exp(x[i, a] * y[a])};
           sum a. s[a]^2"
            .to_string(),
        "def f(x: [n, m]f64) -> f64 = sum i. sum j in 0..i. 1.0 / (1.0 + sum a. (x[i, a] - x[j, a])^2)".to_string(),
    ];
    for text in &programs {
        let mut program = program(text);
        let mut functions = vec![program.find("f").unwrap()];
        if matches!(program.function(functions[0]).result, Type::Scalar(_)) {
            functions.push(derive(&mut program, functions[0], DerivativeKind::Grad, None).unwrap());
        }
        for id in functions {
            let prepared = prepare(&program, id, None);
            let whole = runtime::call(&prepared, id, &sample::arguments(&prepared, id, &[100, 30], 3));
            let compiled = [
                runtime::compile(&prepared, id, Options::default()).unwrap(),
                runtime::compile_for(&prepared, id, Options::default(), &whole).unwrap(),
            ];
            for (n, m) in [(1, 3), (8, 5), (31, 3), (32, 30), (33, 3), (63, 5), (65, 30), (100, 7)] {
                for strange in [None, Some(f64::INFINITY), Some(f64::NAN)] {
                    let mut args = sample::arguments(&prepared, id, &[n, m], 3);
                    // An iteration that runs again where there is one.
                    if let (Some(number), Value::Array(Array { data: Data::F64(x), .. })) = (strange, &mut args[0]) {
                        x[((n - 1).min(40) * m) as usize] = number;
                    }
                    let mut result = None;
                    let expected = interpret::call(&prepared, id, &args).unwrap().0;
                    for (compiled, threads) in compiled.iter().flat_map(|c| [(c, 1), (c, 2)]) {
                        compiled.call_into(&args, &mut result, threads).unwrap();
                        let found = result.as_ref().unwrap();
                        check_close(found, &expected, CLOSE).unwrap_or_else(|e| panic!("{text}\nn = {n}, m = {m}, {strange:?}: {e}"));
                    }
                }
            }
        }
    }
}
