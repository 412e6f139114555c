//! What is likely of a call changes how its result is computed, and no result: products of several arrays, in the order that the
//! sizes of a call make the cheaper one, at those sizes and at others.

mod harness;

use harness::sample;
use harness::stages::{Stages, Target};
use iverson::check::{DerivativeKind, derive};
use iverson::ir::print::print_function;
use iverson::ir::specialize::{Known, Taken, expect, specialize};
use iverson::ir::{FunctionId, Program};
use iverson::pipeline::prepare;

/// Sizes in the order of the function, the text, and whether products are done in another order there.
const PROGRAMS: &[(&[i64], &str, bool)] = &[
    // Bones are blended, and then move a point: not each moves it for itself.
    (
        &[9, 200],
        "def f(R: [3, 3]f64, S: [b, 3, 4]f64, w: [v, b]f64, x: [v, 4]f64, o: [v]f64) -> [v, 3]f64 =
           for p, i. o[p] + (sum r. R[i, r] * (sum k. w[p, k] * (sum c. S[k, r, c] * x[p, c])))",
        true,
    ),
    (
        &[200, 300],
        "def f(R: [40, 30]f64, S: [30, 40]f64, x: [v, 40]f64, y: [n]f64) -> [v, 40]f64 =
           for p, i. y[0] * sin(sum r. R[i, r] * (sum c. S[r, c] * x[p, c]))",
        true,
    ),
    // A wide matrix times a narrow one is small.
    (
        &[500],
        "def f(R: [4, 90]f64, S: [90, 4]f64, x: [v, 4]f64) -> [v, 4]f64 =
           for p, i. 1.0 + (sum r. R[i, r] * (sum c. S[r, c] * x[p, c]))",
        true,
    ),
    // By a name, and added up over the points.
    (
        &[500],
        "def f(R: [4, 90]f64, S: [90, 4]f64, x: [v, 4]f64) -> f64 =
           sum p.
             let y = for r. sum c. S[r, c] * x[p, c];
             let z = for i. sum r. R[i, r] * y[r];
             sum i. z[i]^2",
        true,
    ),
    // In a function that is called, by other names of its sizes.
    (
        &[600],
        "def through(R: [m, k]f64, S: [k, m]f64, x: [v, m]f64) -> [v, m]f64 =
           for p, i. 0.5 + (sum r. R[i, r] * (sum c. S[r, c] * x[p, c]))
         def f(R: [5, 80]f64, S: [80, 5]f64, x: [n, 5]f64) -> f64 = let y = through(R, S, x); sum p, i. y[p, i]^3",
        true,
    ),
    // Numbers of 32 bits, factors that are constant, and a sum with factors of its own.
    (
        &[500],
        "def f(R: [3, 70]f32, S: [70, 2, 3]f32, w: [v, 2]f32, x: [v, 3]f32) -> [v, 3]f32 =
           for p, i. sum r. 2 * R[i, r] * (sum k. w[p, k] * (sum c. S[r, k, c] * x[p, c] * 0.5))",
        true,
    ),
    // For few points it is not worth it, nor is a table that would be large.
    (
        &[2],
        "def f(R: [4, 90]f64, S: [90, 4]f64, x: [v, 4]f64) -> [v, 4]f64 =
           for p, i. 1.0 + (sum r. R[i, r] * (sum c. S[r, c] * x[p, c]))",
        false,
    ),
    (
        &[60, 60],
        "def f(R: [n, 2]f64, S: [2, m]f64, x: [3, m]f64) -> [3, n]f64 =
           for p, i. exp(sum r. R[i, r] * (sum c. S[r, c] * x[p, c]))",
        false,
    ),
    // What depends on the step is not the same in all; nor is a range that does.
    (
        &[50, 40],
        "def f(R: [v, 40, 30]f64, S: [30, 4]f64, x: [v, 4]f64, n: [m]f64) -> [v, 40]f64 =
           for p, i. n[0] * (sum r. R[p, i, r] * (sum c. S[r, c] * x[p, c]))",
        false,
    ),
    (
        &[50],
        "def f(R: [90, 90]f64, S: [90, 4]f64, x: [v, 4]f64) -> [v, 90]f64 =
           for p, i. 1.0 + (sum r in 0..i. R[i, r] * (sum c. S[r, c] * x[p, c]))",
        false,
    ),
];

fn expected(text: &str, sizes: &[i64], kind: Option<DerivativeKind>) -> (Program, Program, FunctionId) {
    let mut plain = harness::load(text).unwrap();
    let mut id = plain.find("f").unwrap();
    if let Some(kind) = kind {
        id = derive(&mut plain, id, kind, None).unwrap();
    }
    let mut program = plain.clone();
    let own = program.function(id).sizes.clone();
    expect(&mut program, id, &|v| own.iter().position(|s| *s == v).map(|k| sizes[k % sizes.len()]));
    (plain, program, id)
}

#[test]
fn what_is_likely_changes_no_result() {
    for (sizes, text, reordered) in PROGRAMS {
        for kind in [None, Some(DerivativeKind::Grad)] {
            if kind.is_some() && !text.contains("-> f64") {
                continue;
            }
            let (plain, program, id) = expected(text, sizes, kind);
            let stages = Stages::new(&program, id).unwrap_or_else(|e| panic!("{text}\n{e}"));
            if kind.is_none() {
                let (before, after) = (prepare(&plain, id, None), prepare(&program, id, None));
                let changed = print_function(&before, id) != print_function(&after, id);
                assert_eq!(changed, *reordered, "{text}\n{}", print_function(&after, id));
            }
            // At sizes that are not the likely ones it is as right.
            for sizes in [[0, 0], [1, 1], [3, 2]] {
                let args = sample::arguments(&program, id, &sizes, 1);
                let (value, _) = stages.call(&args, Target::Compiled).unwrap_or_else(|e| panic!("{text}\n{e}")).unwrap();
                let wanted = Stages::new(&plain, id).unwrap().call(&args, Target::Interpreter).unwrap().unwrap().0;
                harness::stages::check_same(&wanted, &value, harness::stages::tolerance(&plain, id))
                    .unwrap_or_else(|e| panic!("{text}\n{e}"));
            }
        }
    }
}

/// Of sums of which most terms are zero few count, so that what is done for every point counts for more: a rotation of what bones
/// make of it is made one of the bones.
#[test]
fn zeros_count_for_little() {
    let text = PROGRAMS[0].1;
    let plain = harness::load(text).unwrap();
    let f = plain.find("f").unwrap();
    let prepared = |mostly_zero: Vec<usize>| {
        let known = Known { mostly_zero, ..Known::default() };
        let (mut program, id) = specialize(&plain, f, &known, Taken::Still);
        let own = program.function(id).sizes.clone();
        let sizes = [22, 5000];
        expect(&mut program, id, &|v| own.iter().position(|s| *s == v).map(|k| sizes[k]));
        let prepared = prepare(&program, id, None);
        (print_function(&prepared, id), prepared, id)
    };
    let (dense, _, _) = prepared(vec![]);
    let (sparse, program, id) = prepared(vec![2]);
    let rotated = "sum k. w[p, k] * sum c. t[k, i, c] * x[p, c]";
    assert!(!dense.contains(rotated), "{dense}");
    assert!(sparse.contains(rotated), "{sparse}");
    let args = sample::arguments(&program, id, &[4, 6], 1);
    let wanted = iverson::interpret::call(&plain, f, &args).unwrap().0;
    let found = iverson::interpret::call(&program, id, &args).unwrap().0;
    harness::stages::check_same(&wanted, &found, harness::stages::TOLERANCE).unwrap();
}
