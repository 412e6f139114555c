//! Programs and their derivatives at every stage: the interpreter gives one value, the symbolic cost is its count, and
//! a gradient costs at most four times its function, inputs and outputs.

mod harness;

use harness::sample;
use iverson::check::check;
use iverson::cost::cost;
use iverson::interpret::{Counts, call};
use iverson::ir::print::print_program;
use iverson::ir::verify::verify;
use iverson::ir::{FunctionId, Program, Type, Var};
use iverson::pipeline::{LAST_BOUNDED_PASS, pass_names, prepare};
use iverson::syntax::parse;
use iverson::value::Value;

const PROGRAMS: &[(&str, &str)] = &[
    ("dot", "def f(x: [n]f64, y: [n]f64) -> f64 = sum i. x[i] * y[i]"),
    ("quadratic", "def f(A: [n, m]f64, x: [n]f64, y: [m]f64) -> f64 = sum i. sum j. x[i] * A[i, j] * y[j]"),
    ("triangle", "def f(x: [n]f64) -> f64 = sum i. sum j in 0..i. x[i] * sin(x[j])"),
    ("convolution", "def f(x: [n]f64, w: [m]f64) -> f64 = sum i in 0..n - m + 1. (sum j. x[i + j] * w[j])^2"),
    ("norm", "def f(x: [n]f64) -> f64 = sqrt(1 + sum i. x[i]^2)"),
    ("logsumexp", "def f(x: [n]f64) -> f64 = let m = max i. x[i]; m + log(1 + sum i. exp(x[i] - m))"),
    ("trace", "def f(M: [n, n]f64) -> f64 = sum i. M[i, i]"),
    ("diagonal", "def f(x: [n]f64) -> f64 = let A = for i, j in 0..n. [i == j] * x[i]; sum i. A[i, i] * 2"),
    ("softplus", "def f(x: [n]f64) -> f64 = sum i. if x[i] > 0 then x[i] + log1p(exp(-x[i])) else log1p(exp(x[i]))"),
    ("neighbours", "def f(x: [n]f64) -> f64 = sum i. [i > 0] * (x[i] - x[i - 1])^2"),
    ("every other", "def f(x: [n]f64) -> f64 = sum i. [i mod 2 == 0] * x[i] * x[i]"),
    ("product", "def f(x: [n]f64) -> f64 = prod i. x[i]"),
    ("kmeans", "def f(P: [n, d]f64, C: [k, d]f64) -> f64 = sum p. min c. sum a. (P[p, a] - C[c, a])^2"),
    ("powers", "def f(x: [n]f64, y: f64) -> f64 = sum i. (1 + x[i]^2)^y + x[i]^3"),
    ("rows", "def f(A: [n, m]f64) -> f64 = let s = sum i. A[i]; sum j. s[j] * s[j]"),
    ("nested", "def g(x: [n]f64) -> f64 = sum i. tanh(x[i])\ndef f(A: [n, m]f64) -> f64 = sum i. g(A[i]) * g(A[i])"),
    ("product of matrices", "def f(A: [n, m]f64, B: [m, n]f64) -> f64 = sum i, k. (sum j. A[i, j] * B[j, k])^2"),
    ("histogram", "def f(k: i64, b: [n]i64, w: [n]f64) -> f64 = let h: [k]f64 = sum i. {b[i] -> w[i] * w[i]}; sum j. exp(h[j])"),
    ("gather", "def f(x: [n]f64, is: [m]i64) -> f64 = sum i. x[is[i]]^2 * sin(x[is[i]])"),
    ("columns", "def f(A: [n, m]f64) -> f64 = sum j. let c = A[:, j]; (sum i. c[i]) * (sum i. c[i] * c[i])"),
    ("slices", "def f(x: [n]f64) -> f64 = let a = x[1..n]; let b = x[0..n - 1]; sum i. a[i] * b[i]"),
    ("pairs", "def f(x: [n]f64) -> f64 = sum i. let (s, c) = (sin(x[i]), cos(x[i])); s * c + (if s > c then s else c * c)"),
    (
        "imperfect nest",
        "def f(A: [n, m]f64, x: [m]f64) -> f64 =
           sum i. let a = sum j. A[i, j] * x[j];
             a * (sum j. let b = a + sin(A[i, j]);
               b * (sum l in 0..j + 1. let c = b * x[l];
                 c + (sum q. exp(c * A[q, l] * 0.1)) * a))",
    ),
    (
        "branches in loops",
        "def f(A: [n, m]f64, x: [m]f64) -> f64 =
           sum i. let a = sum j. let b = x[j] * A[i, j];
               if b > 0.3 then b * (sum l. A[i, l] * b) else sin(b);
             a * a",
    ),
    ("largest row", "def f(A: [n, m]f64) -> f64 = max i. sum j. A[i, j]^2"),
    (
        "matrix chain",
        "def f(A: [n, n]f64, x: [n]f64) -> f64 = let y = for i. sum j. A[i, j] * x[j]; let z = for i. sum j. A[i, j] * y[j]; sum i. x[i] * z[i]",
    ),
    ("guarded root", "def f(x: [n]f64) -> f64 = sum i. if x[i] > 0 then sqrt(x[i]) * log(x[i]) else 0"),
    ("outer", "def f(x: [n]f64, y: [m]f64) -> f64 = let M = for i, j. x[i] * y[j]; sum i, j. M[i, j] * M[i, j] * [i <= j]"),
    (
        "full convolution",
        "def f(x: [n]f64, w: [m]f64) -> f64 = sum k in 0..n + m - 1. (sum j. [0 <= k - j and k - j < n] * x[k - j] * w[j])^2",
    ),
    ("band", "def f(A: [n, n]f64) -> f64 = sum i, j. [i - j <= 1 and j - i <= 1] * A[i, j]^2"),
    ("wrapped", "def f(x: [n]f64) -> f64 = sum i. x[i] * x[(i + 1) mod n]"),
    ("array sums", "def f(A: [n, m]f64, B: [n, m]f64) -> f64 = let C = A + 2.0 * B - A; let r = sum i. C[i]; sum j. r[j]^2"),
];

fn program(text: &str) -> Program {
    let (module, wrong) = parse(0, text);
    assert!(wrong.is_empty(), "{text}: {wrong:?}");
    let (program, wrong) = check(&module);
    assert!(wrong.is_empty(), "{text}: {wrong:?}");
    program
}

fn close(a: &Value, b: &Value) -> bool {
    let (a, b) = (a.floats(), b.floats());
    a.len() == b.len()
        && a.iter().zip(&b).all(|(a, b)| a == b || (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs())) || (a.is_nan() && b.is_nan()))
}

/// Runs a function at one stage, checks the symbolic cost against the counts, and gives the value.
fn run(what: &str, program: &Program, id: FunctionId, n: i64) -> (Value, Counts) {
    let f = program.function(id);
    let size = |v: Var| f.sizes.iter().position(|s| *s == v).map(|k| if k == 0 { n } else { (n + 1) / 2 });
    let args = sample::arguments(program, id, &[n, (n + 1) / 2, (n + 1) / 2, (n + 1) / 2], 2);
    let (value, counts) =
        call(program, id, &args).unwrap_or_else(|failure| panic!("{what}, n = {n}: {failure:?}\n{}", print_program(program)));
    let cost = cost(program, id);
    let counted = [counts.additions, counts.multiplications, counts.calls].map(|c| c as i64);
    let text = || {
        let show = |p: &iverson::cost::Poly| p.display(&program.vars);
        format!("{}; {}; {}\n{}", show(&cost.additions), show(&cost.multiplications), show(&cost.calls), print_program(program))
    };
    let known = |v: Var| size(v).or_else(|| f.params.iter().position(|p| *p == v).and_then(|k| args[k].as_i64()));
    match cost.evaluate(&known) {
        Some(formula) => {
            let fits = if cost.exact { counted == formula } else { counted.iter().zip(&formula).all(|(c, f)| c <= f) };
            assert!(fits, "{what}, n = {n}: counted {counted:?}, formula {formula:?}, exact {}: {}", cost.exact, text());
        }
        None => assert!(!cost.exact, "{what}: {}", text()),
    }
    (value, counts)
}

#[test]
fn stages_agree_costs_are_counts_and_gradients_are_cheap() {
    for (name, text) in PROGRAMS {
        let base = program(text);
        let f = base.find("f").unwrap();
        let listed = |of: &dyn Fn(&Type) -> bool| {
            let params = base.function(f).params.iter().filter(|p| of(base.vars.ty(**p)));
            params.map(|p| base.vars.name(*p)).collect::<Vec<_>>().join(", ")
        };
        let (names, floats) = (listed(&|_| true), listed(&Type::has_float));
        let params = text.split_once("def f(").unwrap().1.split_once(") ->").unwrap().0;
        let text = format!("{text}\ndef first({params}) = grad(f)({names})\ndef second({params}) = jvp(f, ({names}), ({floats}))");
        let one = base.function(f).params.len() == 1;
        let text = if one { format!("{text}\ndef third({params}) = hvp(f, {names}, {names})") } else { text };
        let base = program(&text);
        for n in [0, 1, 7, 17] {
            let at = |function: &str, pass: &str| {
                let id = base.find(function).unwrap();
                run(function, &prepare(&base, id, Some(pass)), id, n)
            };
            let (value, counts) = at("f", "inline");
            let (gradient, gradient_counts) = at("first", LAST_BOUNDED_PASS);
            // The gradient is as large as the inputs.
            let bound = 4 * (counts.total() + gradient.floats().len() as u64 + value.floats().len() as u64);
            let total = gradient_counts.total();
            assert!(total <= bound, "the gradient of {name} costs {total} at n = {n}, {bound} are allowed");
        }
        for function in ["f", "first", "second", "third"] {
            let Some(id) = base.find(function) else { continue };
            let stages: Vec<(&str, Program)> = pass_names().into_iter().map(|pass| (pass, prepare(&base, id, Some(pass)))).collect();
            for n in [0, 1, 2, 5, 8] {
                let mut wanted = None;
                for (pass, stage) in &stages {
                    verify(stage).unwrap();
                    let what = format!("{function} of {name} after {pass}");
                    let (value, _) = run(&what, stage, id, n);
                    match &wanted {
                        None => wanted = Some(value),
                        Some(wanted) => {
                            assert!(close(wanted, &value), "{what}, n = {n}: {value:?} is not {wanted:?}\n{}", print_program(stage))
                        }
                    }
                }
            }
        }
    }
}

/// Floats do not follow the laws of integers: NaN compares with nothing, sums are rounded.
#[test]
fn comparisons_of_floats_are_left_alone() {
    let text = "
        def f(x: f64, y: f64, z: f64) -> f64 = if x == x then 1.0 else 2.0
        def g(x: f64, y: f64, z: f64) -> f64 = if x > y then 1.0 else if x <= y then 2.0 else 3.0
        def h(x: f64, y: f64, z: f64) -> f64 = if x + z > y + z then 1.0 else if x > y then 2.0 else 3.0
        def k(x: f64, y: f64, z: f64) -> f64 = [not (x < y)] * [not (x >= y)] * 5.0";
    let base = program(text);
    for (name, args, wanted) in [
        ("f", [f64::NAN, 0.0, 0.0], 2.0),
        ("g", [f64::NAN, 1.0, 0.0], 3.0),
        ("h", [2.0, 1.0, 1e300], 2.0),
        ("k", [f64::NAN, 1.0, 0.0], 5.0),
    ] {
        let id = base.find(name).unwrap();
        for pass in pass_names() {
            let (value, _) = call(&prepare(&base, id, Some(pass)), id, &args.map(Value::from)).unwrap();
            assert_eq!(value, Value::from(wanted), "{name} after {pass}");
        }
    }
}
