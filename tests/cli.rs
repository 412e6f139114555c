//! The command line, run as a user runs it: results in every form, and calls that are wrong.

mod folder;

use folder::Folder;
use iverson::value::npz::{Archive, write_file};
use iverson::value::{Array, Data};
use serde_json::json;
use std::process::Stdio;

const PROGRAM: &str = "\
def dot(x: [n]f64, y: [n]f64) -> f64 = sum i. x[i] * y[i]

def cubes(x: [n]f64, y: f64) -> f64 = sum i. x[i]^3 * y

def both(x: [n]f64) -> (f64, [n]f64) = (sum i. x[i]^2, for i. 2 * x[i])

def scaled(k: i64, up: bool, x: [n]f64) -> [n]f64 = for i. if up then f64(k) * x[i] else x[i]

def apply(A: [m, n]f64, x: [n]f64) -> [m]f64 = for i. sum j. A[i, j] * x[j]

def count(k: i64) -> i64 = k + 1

def pick(x: [n]f64, k: i64) -> f64 = x[k]

def first(t: (f64, [n]f64)) -> f64 = let (a, b) = t; a * (sum i. b[i])

def weigh(t: (f64, [n]f64), y: f64) -> f64 = let (a, b) = t; a * y * (sum i. b[i])

def bins(k: i64, w: [n]f64) -> [k]f64 = sum i. {i -> w[i]}

def roots(x: [n]f64) -> [n]f64 = for i. sqrt(x[i])
";

fn floats(shape: &[usize], data: &[f64]) -> Array {
    Array::f64(shape.to_vec(), data.to_vec())
}

#[test]
fn check_says_what_is_wrong() {
    let f = Folder::with(PROGRAM);
    let good = f.run(&["check", "p.iv"]);
    assert_eq!((good.code, good.out.as_str()), (0, "p.iv: 11 definitions checked\n"), "{}", good.err);
    f.write("bad.iv", "def f(x: [n]f64) -> f64 = y\ndef g(x: f64) -> f64 = x +\n");
    f.run(&["check", "bad.iv"]).fails(&["bad.iv"]);
    f.write("bad.iv", "def f(x: [n]f64) -> f64 = sum i. x[i] * y[i]\n");
    f.run(&["check", "bad.iv"]).fails(&["bad.iv:1:", "y"]);
    f.write("bytes.iv", [0xff, 0xfe, 0x00]);
    f.run(&["check", "bytes.iv"]).fails(&["bytes.iv is not text"]);
}

#[test]
fn run_on_both_targets() {
    let f = Folder::with(PROGRAM);
    for target in ["c", "interpret"] {
        let run = |arguments: &[&str]| f.run(&[&["run", "p.iv"], arguments, &["--target", target]].concat());
        assert_eq!(run(&["dot", "x=[1,2,3]", "y=[4,5,6]"]).out, "32\n");
        assert_eq!(run(&["dot", "x=[1,2,3]", "y=[4,5,6]", "--json"]).json(), json!(32.0));
        assert_eq!(run(&["both", "x=[1,2]", "--json"]).json(), json!([5.0, [2.0, 4.0]]));
        assert_eq!(run(&["scaled", "k=3", "up=true", "x=[1,2.5]"]).out, "[3, 7.5]\n");
        assert_eq!(run(&["apply", "A=[[1,2],[3,4]]", "x=ones(2)", "--json"]).json(), json!([3.0, 7.0]));
        assert_eq!(run(&["apply", "A=[[],[]]", "x=[]", "--json"]).json(), json!([0.0, 0.0]));
        assert_eq!(run(&["apply", "A=zeros(0,3)", "x=range(3)", "--json"]).json(), json!([]));
        assert_eq!(run(&["count", "k=-5", "--json"]).json(), json!(-4));
        assert_eq!(run(&["first", "t=(2, [1, 2])", "--json"]).json(), json!(6.0));
        assert_eq!(run(&["dot", "x=[1e308]", "y=[1e308]", "--json"]).json(), json!("Infinity"));
        assert_eq!(run(&["dot", "x=[-1e308, nan]", "y=[1e308, 1]", "--json"]).json(), json!("NaN"));
        assert_eq!(run(&["roots", "x=[4,-1,inf]", "--json"]).json(), json!([2.0, "NaN", "Infinity"]));
        assert_eq!(run(&["dot", "x=[-1e308]", "y=[1e308]", "--strict", "--threads", "1", "--json"]).json(), json!("-Infinity"));
    }
}

#[test]
fn derivatives_are_keyed_by_parameter() {
    let f = Folder::with(PROGRAM);
    for target in ["c", "interpret"] {
        let run = |arguments: &[&str]| f.run(&[arguments, &["--target", target, "--json"]].concat()).json();
        assert_eq!(run(&["grad", "p.iv", "dot", "x=[1,2]", "y=[3,4]"]), json!({"x": [3.0, 4.0], "y": [1.0, 2.0]}));
        assert_eq!(run(&["grad", "p.iv", "dot", "x=[1,2]", "y=[3,4]", "--wrt", "y"]), json!({"y": [1.0, 2.0]}));
        assert_eq!(run(&["grad", "p.iv", "dot", "x=[1,2]", "y=[3,4]", "--wrt", "y,x"]), json!({"x": [3.0, 4.0], "y": [1.0, 2.0]}));
        assert_eq!(run(&["grad", "p.iv", "first", "t=(2, [1, 2])"]), json!({"t": [3.0, [2.0, 2.0]]}));
        assert_eq!(run(&["value-and-grad", "p.iv", "cubes", "x=[2]", "y=1"]), json!({"value": 8.0, "grad": {"x": [12.0], "y": 8.0}}));
        assert_eq!(run(&["jacobian", "p.iv", "apply", "A=[[1,2]]", "x=[3,4]", "--wrt", "x"]), json!({"x": [[1.0, 2.0]]}));
        assert_eq!(run(&["jacobian", "p.iv", "apply", "A=[[1,2]]", "x=[3,4]"]), json!({"A": [[[3.0, 4.0]]], "x": [[1.0, 2.0]]}));
        assert_eq!(run(&["jacobian", "p.iv", "both", "x=[1,2]"]), json!([{"x": [2.0, 4.0]}, {"x": [[2.0, 0.0], [0.0, 2.0]]}]));
        assert_eq!(run(&["hessian", "p.iv", "cubes", "x=[2]", "y=1", "--wrt", "x"]), json!({"x": {"x": [[12.0]]}}));
        assert_eq!(
            run(&["hessian", "p.iv", "cubes", "x=[2]", "y=1"]),
            json!({"x": {"x": [[12.0]], "y": [12.0]}, "y": {"x": [12.0], "y": 0.0}})
        );
        assert_eq!(
            run(&["hessian", "p.iv", "weigh", "t=(2, [1, 3])", "y=5"]),
            json!({
                "t": {"t": [[0.0, [5.0, 5.0]], [[5.0, 5.0], [[0.0, 0.0], [0.0, 0.0]]]], "y": [4.0, [2.0, 2.0]]},
                "y": {"t": [4.0, [2.0, 2.0]], "y": 0.0}
            })
        );
        assert_eq!(run(&["hessian", "p.iv", "first", "t=(2, [1])"]), json!({"t": {"t": [[0.0, [1.0]], [[1.0], [[0.0]]]]}}));
        assert_eq!(
            run(&["jvp", "p.iv", "dot", "x=[1,2]", "y=[3,4]", "--dir", "x=[1,0]", "--dir", "y=[0,1]"]),
            json!({"value": 11.0, "tangent": 5.0})
        );
        assert_eq!(run(&["jvp", "p.iv", "dot", "x=[1,2]", "y=[3,4]", "--dir", "x=[1,0]"]), json!({"value": 11.0, "tangent": 3.0}));
        assert_eq!(run(&["jvp", "p.iv", "dot", "x=[1,2]", "y=[3,4]"]), json!({"value": 11.0, "tangent": 0.0}));
        assert_eq!(
            run(&["jvp", "p.iv", "both", "x=[1,2]", "--dir", "x=[1,1]"]),
            json!({"value": [5.0, [2.0, 4.0]], "tangent": [6.0, [2.0, 2.0]]})
        );
        assert_eq!(
            run(&["vjp", "p.iv", "apply", "A=[[1,2],[3,4]]", "x=[1,1]", "--seed", "[1,-1]"]),
            json!({"value": [3.0, 7.0], "cotangents": {"A": [[1.0, 1.0], [-1.0, -1.0]], "x": [-2.0, -2.0]}})
        );
        assert_eq!(
            run(&["vjp", "p.iv", "dot", "x=[1]", "y=[3]", "--seed", "-2"]),
            json!({"value": 3.0, "cotangents": {"x": [-6.0], "y": [-2.0]}})
        );
        assert_eq!(run(&["vjp", "p.iv", "dot", "x=[1]", "y=[3]"]), json!({"value": 3.0, "cotangents": {"x": [3.0], "y": [1.0]}}));
        assert_eq!(run(&["vjp", "p.iv", "both", "x=[1,2]", "--seed", "(1, [0, 1])"])["cotangents"], json!({"x": [2.0, 6.0]}));
        assert_eq!(run(&["hvp", "p.iv", "cubes", "x=[2]", "y=1", "--dir", "x=[1]"]), json!({"x": [12.0], "y": 12.0}));
        assert_eq!(run(&["hvp", "p.iv", "cubes", "x=[2]", "y=1", "--dir", "x=[1]", "--wrt", "x"]), json!({"x": [12.0]}));
        assert_eq!(run(&["hvp", "p.iv", "cubes", "x=[2]", "y=1"]), json!({"x": [0.0], "y": 0.0}));
    }
    let text = f.run(&["value-and-grad", "p.iv", "dot", "x=[1,2]", "y=[3,4]"]);
    assert_eq!(text.out, "value = 11\ngrad.x = [3, 4]\ngrad.y = [1, 2]\n");
}

#[test]
fn generic_functions_take_the_types_of_their_data() {
    let f = Folder::with(
        "def total(x: [n]T) -> T = sum i. x[i]\n\
         def either(x: [n]T) -> T = reduce((or), false, x)\n\
         def firsts(x: [n]T, y: [m]U) -> (T, U) = (x[0], y[0])\n\
         def applied(f: f64 -> f64, x: f64) -> f64 = f(x)\n",
    );
    let large = Array::new(vec![2], Data::I64(vec![1 << 60, 1]));
    let single = Array::new(vec![1], Data::F32(vec![0.1]));
    let truth = Array::new(vec![2], Data::Bool(vec![false, true]));
    write_file(&f.path("d.npz"), [("x", &large), ("y", &single), ("p", &truth)]).unwrap();
    let run = |args: &[&str]| f.run(&[args, &["--json"]].concat()).json();
    // A float would lose the last digit.
    assert_eq!(run(&["run", "p.iv", "total", "--data", "d.npz"]), json!((1i64 << 60) + 1));
    assert_eq!(run(&["run", "p.iv", "total", "x=@d.npz:x"]), json!((1i64 << 60) + 1));
    assert_eq!(run(&["run", "p.iv", "total", "x=[1,2]"]), json!(3.0));
    assert_eq!(run(&["run", "p.iv", "total", "x=[1.5,2]"]), json!(3.5));
    assert_eq!(run(&["run", "p.iv", "either", "x=[true,false]"]), json!(true));
    assert_eq!(run(&["run", "p.iv", "either", "x=@d.npz:p"]), json!(true));
    assert_eq!(run(&["run", "p.iv", "firsts", "x=[true]", "y=[2]"]), json!([true, 2.0]));
    assert_eq!(f.run(&["run", "p.iv", "firsts", "--data", "d.npz"]).out, "(1152921504606846976, 0.1)\n");
    assert_eq!(run(&["grad", "p.iv", "total", "--data", "d.npz"]), json!({"x": [1.0, 1.0]}));
    f.run(&["run", "p.iv", "total", "x=[true]"]).fails(&["argument `x`: expected f64, got true"]);
    f.run(&["run", "p.iv", "applied", "x=1"]).fails(&["`applied` takes functions"]);
}

#[test]
fn data_files_and_archives() {
    let f = Folder::with(PROGRAM);
    let k = Array::new(vec![], Data::I64(vec![3]));
    let up = Array::new(vec![], Data::Bool(vec![true]));
    let label = Array::new(vec![2], Data::I64(vec![1, 2]));
    let x = floats(&[2], &[1.0, 2.0]);
    write_file(
        &f.path("d.npz"),
        [("x", &x), ("y", &label), ("k", &k), ("up", &up), ("d_x", &floats(&[2], &[1.0, 1.0])), ("seed", &floats(&[2], &[0.0, 1.0]))],
    )
    .unwrap();
    f.write("d.json", r#"{"x": [1, 2], "y": [3.5, "Infinity"], "other": "ignored"}"#);
    assert_eq!(f.run(&["run", "p.iv", "dot", "--data", "d.npz", "--json"]).json(), json!(5.0));
    assert_eq!(f.run(&["run", "p.iv", "scaled", "--data", "d.npz", "--json"]).json(), json!([3.0, 6.0]));
    assert_eq!(f.run(&["run", "p.iv", "dot", "--data", "d.npz", "y=[5,5]", "--json"]).json(), json!(15.0));
    assert_eq!(f.run(&["run", "p.iv", "dot", "--data", "d.json", "--json"]).json(), json!("Infinity"));
    assert_eq!(f.run(&["jvp", "p.iv", "dot", "--data", "d.npz", "--json"]).json(), json!({"value": 5.0, "tangent": 3.0}));
    assert_eq!(f.run(&["vjp", "p.iv", "scaled", "--data", "d.npz", "--json"]).json()["cotangents"], json!({"x": [0.0, 3.0]}));
    let mut npy = vec![];
    iverson::value::npy::write(&x, &mut npy).unwrap();
    f.write("x.npy", &npy);
    assert_eq!(f.run(&["run", "p.iv", "dot", "x=@x.npy", "y=@d.npz:x", "--json"]).json(), json!(5.0));

    // A result that is one array, or text.
    assert_eq!(f.run(&["grad", "p.iv", "dot", "--data", "d.npz", "--wrt", "x", "--out", "g.npy"]).code, 0);
    assert_eq!(f.run(&["run", "p.iv", "dot", "x=@g.npy", "y=@g.npy", "--json"]).code, 0);
    f.run(&["grad", "p.iv", "dot", "--data", "d.npz", "--out", "g.npy"])
        .fails(&["g.npy holds one array, but the result has 2", "--out result.npz"]);
    assert_eq!(f.run(&["grad", "p.iv", "dot", "--data", "d.npz", "--out", "g.json"]).code, 0);
    assert_eq!(f.run(&["run", "p.iv", "dot", "--data", "g.json", "--json"]).code, 0);
    let refused = f.run(&["run", "p.iv", "dot", "--data", "d.npz", "--out", "r.txt"]);
    assert!(refused.code == 2 && refused.err.contains(".npz, .npy, .mtx or .json") && !f.path("r.txt").exists(), "{}", refused.err);

    let names = |file: &str| Archive::open(&f.path(file)).unwrap().names();
    let out = f.run(&["run", "p.iv", "dot", "--data", "d.npz", "--out", "r.npz"]);
    assert_eq!((out.code, out.out.as_str()), (0, ""), "{}", out.err);
    assert_eq!(names("r.npz"), ["value"]);
    assert_eq!(f.run(&["run", "p.iv", "both", "--data", "d.npz", "--out", "r.npz"]).code, 0);
    assert_eq!(names("r.npz"), ["0", "1"]);
    assert_eq!(f.run(&["value-and-grad", "p.iv", "dot", "--data", "d.npz", "--out", "r.npz"]).code, 0);
    assert_eq!(names("r.npz"), ["grad.x", "grad.y", "value"]);
    assert_eq!(f.run(&["hessian", "p.iv", "cubes", "x=[1,2]", "y=3", "--out", "r.npz"]).code, 0);
    assert_eq!(names("r.npz"), ["x.x", "x.y", "y.x", "y.y"]);
    assert_eq!(f.run(&["jacobian", "p.iv", "both", "--data", "d.npz", "--out", "r.npz"]).code, 0);
    assert_eq!(names("r.npz"), ["0.x", "1.x"]);
    assert_eq!(f.run(&["vjp", "p.iv", "dot", "--data", "d.npz", "--seed", "2", "--out", "r.npz"]).code, 0);
    assert_eq!(names("r.npz"), ["cotangents.x", "cotangents.y", "value"]);
    assert_eq!(Archive::open(&f.path("r.npz")).unwrap().read("cotangents.y").unwrap(), Some(floats(&[2], &[2.0, 4.0])));
    assert_eq!(f.files(), 7, "no temporary files are left");
}

#[test]
fn show_prints_programs_and_code() {
    let f = Folder::with(PROGRAM);
    let shown = f.run(&["show", "p.iv", "dot"]);
    assert_eq!(shown.code, 0, "{}", shown.err);
    assert!(shown.out.contains("def dot(x: [n]f64, y: [n]f64) -> f64"), "{}", shown.out);
    let grad = f.run(&["show", "p.iv", "dot", "--derivative", "grad"]);
    assert_eq!(grad.code, 0, "{}", grad.err);
    assert!(grad.out.contains("(y, x)"), "{}", grad.out);
    f.write("shown.iv", &grad.out);
    assert_eq!(f.run(&["check", "shown.iv"]).code, 0, "what is shown is a program: {}", grad.out);
    let code = f.run(&["show", "p.iv", "dot", "--emit", "c"]);
    assert_eq!(code.code, 0, "{}", code.err);
    assert!(code.out.contains("for (") && code.out.contains("double"), "{}", code.out);
    for pass in ["check", "differentiate", "inline", "simplify"] {
        let stage = f.run(&["show", "p.iv", "cubes", "--derivative", "grad", "--after", pass]);
        f.write("stage.iv", &stage.out);
        let call = ["run", "stage.iv", "grad_cubes", "x=[1,2]", "y=3", "--json"];
        assert_eq!(f.run(&call).json(), json!([[9.0, 36.0], 9.0]), "{pass}: {}", stage.out);
    }
    f.run(&["show", "p.iv", "dot", "--after", "nosuchpass"]).fails(&["no pass `nosuchpass`"]);
}

#[test]
fn cost_gives_formulas_and_numbers() {
    let f = Folder::with(PROGRAM);
    let formula = f.run(&["cost", "p.iv", "dot"]);
    assert_eq!(formula.code, 0, "{}", formula.err);
    assert!(formula.out.contains("multiplications") && formula.out.contains('n'), "{}", formula.out);
    let numbers = f.run(&["cost", "p.iv", "dot", "--at", "n=1000", "--json"]).json();
    assert_eq!(
        numbers,
        json!({"additions": 1000, "multiplications": 1000, "calls": 0, "total": 2000, "values_saved": 0, "bytes": 0, "blocks": false})
    );
    let gradient = f.run(&["cost", "p.iv", "cubes", "--derivative", "grad", "--wrt", "x", "--at", "n=10", "--json"]).json();
    assert!(gradient["total"].as_u64().unwrap() <= 4 * 52, "{gradient}");
    f.run(&["cost", "p.iv", "dot", "--at", "m=3"]).fails(&["no size `m`"]);
    f.run(&["cost", "p.iv", "apply", "--at", "m=3"]).fails(&["`n`"]);
    f.run(&["cost", "p.iv", "dot", "--at", "n=x"]).fails(&["expected a whole number"]);
}

#[test]
fn check_grad_compares() {
    let f = Folder::with(PROGRAM);
    let good = f.run(&["check-grad", "p.iv", "apply", "A=random(3,4)", "x=random(4)"]);
    assert_eq!(good.code, 0, "{}{}", good.out, good.err);
    assert!(good.out.contains("16 of 16 coordinates") && good.out.ends_with("ok\n"), "{}", good.out);
    let json = f.run(&["check-grad", "p.iv", "cubes", "x=random(500)", "y=1.5", "--coordinates", "20", "--json"]).json();
    assert_eq!(json["ok"], json!(true));
    assert_eq!(json["coordinates"], json!(20));
    f.write("kinks.iv", "def top(x: [n]f64) -> f64 = max i. x[i]\n");
    let kinks = f.run(&["check-grad", "kinks.iv", "top", "x=[1,1]"]);
    assert_eq!(kinks.code, 1);
    assert!(kinks.out.contains("do not settle at 2 of them") && kinks.out.contains("choose another point"), "{}", kinks.out);
    assert_eq!(f.run(&["check-grad", "kinks.iv", "top", "x=[1,2]"]).code, 0);
    // With no tolerance at all some rounding is found, and the exit code says so.
    f.write("rounding.iv", "def f(x: [n]f64) -> f64 = sum i. exp(sin(x[i]) * 30.0)\n");
    let strict = f.run(&["check-grad", "rounding.iv", "f", "x=random(50)", "--tolerance", "-1"]);
    assert_eq!(strict.code, 1, "{}", strict.out);
    assert!(strict.out.ends_with("wrong\n"));
}

#[test]
fn bench_times_calls() {
    let f = Folder::with(PROGRAM);
    let json = f.run(&["bench", "p.iv", "dot", "x=random(1000)", "y=random(1000)", "--runs", "3", "--threads", "1", "--json"]).json();
    assert!(json["median_ms"].as_f64().unwrap() >= json["min_ms"].as_f64().unwrap());
    assert!(json["compile_ms"].is_number() && json["peak_memory_bytes"].is_number());
    assert_eq!(json["runs"], json!(3));
    let text =
        f.run(&["bench", "p.iv", "dot", "x=random(10)", "y=random(10)", "--derivative", "grad", "--runs", "2", "--target", "interpret"]);
    assert!(text.out.contains("median") && text.out.contains("min"), "{}{}", text.out, text.err);
    f.run(&["bench", "p.iv", "dot"]).fails(&["`dot` needs `x: [n]f64`, `y: [n]f64`"]);
}

#[test]
fn bench_times_calls_when_it_is_asked() {
    let f = Folder::with(PROGRAM);
    let call = ["bench", "p.iv", "dot", "x=[1,2]", "y=[3,4]", "--derivative", "value-and-grad", "--listen", "--out", "last.json"];
    let finished = f.run_on("2\n3\n", &call);
    let lines: Vec<serde_json::Value> = finished.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3, "{}{}", finished.out, finished.err);
    assert!(lines[0]["ready_ms"].as_f64().unwrap() > 0.0);
    assert_eq!(lines[1..].iter().map(|times| times.as_array().unwrap().len()).collect::<Vec<_>>(), [2, 3]);
    let last: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(f.path("last.json")).unwrap()).unwrap();
    assert_eq!(last, json!({ "value": 11.0, "grad": { "x": [3.0, 4.0], "y": [1.0, 2.0] } }));
    let wrong = f.run_on("many\n", &call);
    assert!(wrong.code == 1 && wrong.err.contains("expected how many calls to time, not `many`"), "{}", wrong.err);
    // Nobody asked: there is nothing to write.
    assert_eq!(f.run_on("", &["bench", "p.iv", "dot", "x=[1,2]", "y=[3,4]", "--listen", "--out", "none.json"]).code, 0);
    assert!(!f.path("none.json").exists());
}

#[test]
fn passes_can_be_left_out() {
    let f = Folder::with(
        "def f(A: [n, k]f64, x: [k]f64) -> f64 =\n  let y = for i. tanh(sum j. A[i, j] * x[j]);\n  sum i. y[i]^2 * [y[i] > 0.1]\n",
    );
    let call = |without: &str| {
        let words = ["grad", "p.iv", "f", "A=random(4, 3)", "x=random(3)", "--json"];
        let words: Vec<&str> = words.into_iter().chain(if without.is_empty() { vec![] } else { vec!["--without", without] }).collect();
        f.run(&words)
    };
    let whole = call("").json();
    let numbers = |value: &serde_json::Value| -> Vec<f64> {
        let rows = value["A"].as_array().unwrap().iter().flat_map(|row| row.as_array().unwrap());
        rows.chain(value["x"].as_array().unwrap()).map(|v| v.as_f64().unwrap()).collect()
    };
    for pass in iverson::pipeline::optional_passes().into_iter().chain(["fuse,hoist,contract"]) {
        let (found, wanted) = (numbers(&call(pass).json()), numbers(&whole));
        assert!(found.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-12), "without {pass}: {found:?}, not {wanted:?}");
    }
    for (pass, message) in
        [("inline", "there is no code without this pass; simplify, normalize"), ("fused", "no such pass; simplify, normalize")]
    {
        let wrong = call(pass);
        assert!(wrong.code == 2 && wrong.err.contains(message), "{}", wrong.err);
    }
}

#[test]
fn wrong_calls_say_what_would_be_right() {
    let f = Folder::with(PROGRAM);
    let x = floats(&[2, 2], &[1.0; 4]);
    write_file(&f.path("x.npz"), [("x", &x)]).unwrap();
    let whole = std::fs::read(f.path("x.npz")).unwrap();
    f.write("short.npz", &whole[..whole.len() / 2]);
    f.write("noise.npz", "this is not an archive");
    f.write("noise.npy", "this is not an array");
    f.write("list.json", "[1, 2]");
    f.write("broken.json", "{\"x\": [1, 2");
    f.write("text.json", "{\"x\": [\"a\"]}");
    let mut flipped = whole.clone();
    let data = flipped.windows(8).position(|w| w == 1.0f64.to_le_bytes()).unwrap();
    flipped[data] ^= 1;
    f.write("flipped.npz", &flipped);
    write_file(&f.path("bools.npz"), [("x", &Array::new(vec![2], Data::Bool(vec![true, false])))]).unwrap();
    write_file(&f.path("reals.npz"), [("k", &floats(&[], &[2.0])), ("x", &floats(&[1], &[2.0]))]).unwrap();
    let before = f.files();

    let cases: &[(&[&str], &[&str])] = &[
        (&["run", "nowhere.iv", "dot"], &["cannot read nowhere.iv: no such file"]),
        (&["run", "p.iv", "dott", "x=[1]"], &["no function `dott` in p.iv", "did you mean `dot`?"]),
        (&["run", "p.iv", "dot", "x=[1,2]"], &["`dot` needs `y: [n]f64`", "name=value"]),
        (&["run", "p.iv", "dot", "x=[1,2]", "z=[1,2]"], &["`dot` has no parameter `z`"]),
        (&["run", "p.iv", "dot", "x=[1]", "x=[1]", "y=[1]"], &["argument `x` is given twice"]),
        (&["run", "p.iv", "dot", "x=[1,2,3]", "y=[1,2,3,4]"], &["`y` has shape [4], but `n` = 3 from `x`"]),
        (&["run", "p.iv", "dot", "x=[[1,2,3],[4,5,6]]", "y=[1]"], &["argument `x`: expected [n]f64, got a 2 x 3 array"]),
        (&["run", "p.iv", "dot", "x=5", "y=[1]"], &["argument `x`: expected [n]f64, got the number 5"]),
        (&["run", "p.iv", "dot", "x=[1,abc]", "y=[1]"], &["argument `x`: expected a value, got `abc]`"]),
        (&["run", "p.iv", "dot", "x=[1,2", "y=[1]"], &["argument `x`: expected `,` or `]`, but the value ends"]),
        (&["run", "p.iv", "apply", "A=[[1,2],[3]]", "x=[1]"], &["argument `A`: the list is ragged"]),
        (&["run", "p.iv", "count", "k=2.5"], &["argument `k`: expected i64, got the number 2.5"]),
        (&["run", "p.iv", "count", "k=true"], &["argument `k`: expected i64, got true"]),
        (&["run", "p.iv", "scaled", "k=1", "up=1", "x=[1]"], &["argument `up`: expected bool, got the number 1"]),
        (&["run", "p.iv", "first", "t=(1, 2, 3)"], &["argument `t`: expected (f64, [n]f64), got a tuple of 3"]),
        (&["run", "p.iv", "dot", "x=@nowhere.npy", "y=[1]"], &["argument `x`: cannot read nowhere.npy: no such file"]),
        (&["run", "p.iv", "dot", "x=@noise.npy", "y=[1]"], &["noise.npy: this is not a NumPy array"]),
        (&["run", "p.iv", "dot", "x=@x.npz:q", "y=[1]"], &["no array `q` in x.npz", "the file has: x"]),
        (&["run", "p.iv", "dot", "--data", "nowhere.npz"], &["cannot read nowhere.npz: no such file"]),
        (&["run", "p.iv", "dot", "--data", "noise.npz"], &["noise.npz is not a NumPy archive or is damaged"]),
        (&["run", "p.iv", "dot", "--data", "short.npz"], &["short.npz is not a NumPy archive or is damaged"]),
        (&["run", "p.iv", "apply", "--data", "flipped.npz", "A=[[1]]"], &["flipped.npz", "damaged"]),
        (&["run", "p.iv", "dot", "--data", "x.npz", "y=[1]"], &["argument `x`: expected [n]f64, got a 2 x 2 array of f64", "from x.npz"]),
        (&["run", "p.iv", "dot", "--data", "bools.npz", "y=[1]"], &["argument `x`: expected [n]f64, got an array of length 2 of bool"]),
        (&["run", "p.iv", "pick", "--data", "reals.npz"], &["argument `k`: expected i64, got the number 2.0"]),
        (&["run", "p.iv", "dot", "--data", "bools.npz", "x=[1]"], &["`dot` needs `y: [n]f64`", "bools.npz has x"]),
        (&["run", "p.iv", "dot", "--data", "list.json"], &["list.json holds no object"]),
        (&["run", "p.iv", "dot", "--data", "broken.json"], &["broken.json is not JSON"]),
        (&["run", "p.iv", "dot", "--data", "text.json", "y=[1]"], &["argument `x`", "the text \"a\""]),
        (&["run", "p.iv", "dot", "--data", "p.iv"], &["p.iv is no file of values"]),
        (&["run", "p.iv", "pick", "x=[1,2]", "k=7"], &["7", "p.iv:13:"]),
        (&["run", "p.iv", "pick", "x=[1,2]", "k=7", "--target", "interpret"], &["7", "p.iv:13:"]),
        (
            &["run", "p.iv", "dot", "x=[1]", "y=[1]", "--out", "no/such/folder/r.npz"],
            &["cannot write no/such/folder/r.npz", "there is no folder no/such/folder"],
        ),
        (
            &["run", "p.iv", "dot", "x=[1]", "y=[1]", "--out", "nowhere/r.npz"],
            &["cannot write nowhere/r.npz", "there is no folder nowhere"],
        ),
        (&["grad", "p.iv", "dot", "x=[1]", "y=[1]", "--wrt", "q"], &["`dot` has no parameter `q` to differentiate by"]),
        (&["grad", "p.iv", "pick", "x=[1]", "k=0", "--wrt", "k"], &["`k: i64` has no floats to differentiate by"]),
        (&["grad", "p.iv", "dot", "x=[1]", "y=[1]", "--wrt", "x,x"], &["`x` stands twice in --wrt"]),
        (&["grad", "p.iv", "count", "k=1"], &["`count` has no float parameters to differentiate by"]),
        (&["grad", "p.iv", "both", "x=[1]"], &["both"]),
        (&["jvp", "p.iv", "dot", "x=[1]", "y=[1]", "--dir", "z=[1]"], &["no direction of `z` is wanted"]),
        (&["jvp", "p.iv", "dot", "x=[1]", "y=[1]", "--dir", "x=[1,2]"], &["direction of `x`: expected shape [1], got [2]"]),
        (&["vjp", "p.iv", "apply", "A=[[1]]", "x=[1]"], &["the result is [m]f64, so a seed of that type is needed"]),
        (&["vjp", "p.iv", "apply", "A=[[1]]", "x=[1]", "--seed", "[1,2]"], &["seed: expected shape [1], got [2]"]),
        (&["vjp", "p.iv", "apply", "A=[[1]]", "x=[1]", "--seed", "oops"], &["seed: expected a value, got `oops`"]),
    ];
    for (call, parts) in cases {
        eprintln!("{call:?}");
        f.run(call).fails(parts);
    }
    assert_eq!(f.files(), before, "failures leave no files");
}

#[test]
fn usage_errors_say_what_is_known() {
    let f = Folder::with(PROGRAM);
    let noted = |arguments: &[&str], part: &str| {
        let run = f.run(arguments);
        assert!(run.code == 2 && run.err.contains(part), "{}", run.err);
    };
    noted(&["run", "p.iv"], "note: p.iv defines `dot`, ");
    noted(&["build", "p.iv"], "note: p.iv defines `dot`, ");
    noted(&["p.iv"], "note: say what to do with it: `iverson check p.iv`");
    noted(&["run", "p.iv", "dot", "--x=[1,2]"], "note: values are given without dashes: `x=[1,2]`");
    noted(&["run", "p.iv", "dot", "[1,2]"], "expected name=value, as in x=[1,2]");
    assert_eq!(f.run(&["help", "run"]).code, 0);
}

#[test]
fn usage_errors_have_their_own_code() {
    let f = Folder::with(PROGRAM);
    for call in [
        &["run"][..],
        &["nosuchcommand"],
        &["run", "p.iv", "dot", "x"],
        &["run", "p.iv", "dot", "=1"],
        &["run", "p.iv", "dot", "--target", "fortran"],
        &["run", "p.iv", "dot", "--threads", "0"],
        &["show", "p.iv", "dot", "--derivative", "integral"],
        &["bench", "p.iv", "dot", "--runs", "0"],
        &[],
    ] {
        let finished = f.run(call);
        assert_eq!((finished.code, finished.out.as_str()), (2, ""), "{call:?}: {}", finished.err);
        assert!(!finished.err.is_empty());
    }
    for call in [&["--help"][..], &["run", "--help"], &["jvp", "--help"], &["--version"]] {
        let finished = f.run(call);
        assert_eq!(finished.code, 0);
        assert!(!finished.out.is_empty());
    }
}

#[test]
fn without_a_compiler_the_error_names_the_remedy() {
    let f = Folder::with(PROGRAM);
    let run = |target: &str| {
        let mut command = f.command(&["run", "p.iv", "dot", "x=[1]", "y=[2]", "--target", target]);
        command.env("CC", "no-such-compiler").env("XDG_CACHE_HOME", f.path("cache")).output().unwrap()
    };
    let native = run("c");
    let message = String::from_utf8(native.stderr).unwrap();
    assert_eq!(native.status.code(), Some(1), "{message}");
    assert!(message.contains("no-such-compiler") && message.contains("--target interpret"), "{message}");
    assert_eq!(String::from_utf8(run("interpret").stdout).unwrap(), "2\n");
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error() {
    let f = Folder::with(PROGRAM);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = f.command(&["run", "p.iv", "dot", "x=[1]", "y=[1]"]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("cannot write the result: no space left"));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let f = Folder::with(PROGRAM);
    let mut child = f
        .command(&["run", "p.iv", "roots", "x=random(200000)", "--json", "--target", "interpret"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert!(output.status.success());
}

#[test]
fn functions_of_the_library_are_called_and_suggested() {
    let folder = Folder::with(PROGRAM);
    let run = |function: &str| folder.run(&["run", "p.iv", function, "x=[3,1,2]"]);
    assert_eq!(run("sort").out, "[1, 2, 3]\n");
    run("sorrt").fails(&["no function `sorrt`", "did you mean `sort`?"]);
    // What is the library's own is no function of a program.
    run("_before").fails(&["no function `_before`"]);
    // A definition of the file comes first, also where the library has it.
    assert_eq!(folder.run(&["run", "p.iv", "dot", "x=[1,2]", "y=[3,4]"]).out, "11\n");
    folder.write("uses.iv", "def f(x: [n]f64) -> f64 = sum i. sort(x)[i]");
    let checked = folder.run(&["check", "uses.iv"]);
    assert_eq!((checked.out.as_str(), checked.err.as_str()), ("uses.iv: 1 definition checked\n", ""));
}

#[test]
fn sparse_matrices_are_files_of_scipy() {
    let f = Folder::with("def step(x: [n]f64) -> [n - 1]f64 = for i in 0..n - 1. x[i] * x[i + 1]\n");
    f.run(&["jacobian", "p.iv", "step", "x=[1,2,3]", "--format", "csr", "--out", "J.npz"]);
    let mut archive = Archive::open(&f.path("J.npz")).unwrap();
    assert_eq!(archive.names(), ["data", "format", "indices", "indptr", "shape"]);
    assert_eq!(archive.read_text("format").unwrap(), "csr");
    assert_eq!(archive.read("shape").unwrap(), Some(Array::new(vec![2], Data::I64(vec![2, 3]))));
    assert_eq!(archive.read("indptr").unwrap(), Some(Array::new(vec![3], Data::I32(vec![0, 2, 4]))));
    assert_eq!(archive.read("indices").unwrap(), Some(Array::new(vec![4], Data::I32(vec![0, 1, 1, 2]))));
    assert_eq!(archive.read("data").unwrap(), Some(floats(&[4], &[2.0, 1.0, 3.0, 2.0])));
    let json = f.run(&["jacobian", "p.iv", "step", "x=[1,2,3]", "--format", "csr", "--json"]).json();
    let wanted = json!({"format": "csr", "shape": [2, 3], "indptr": [0, 2, 4], "indices": [0, 1, 1, 2], "data": [2.0, 1.0, 3.0, 2.0]});
    assert_eq!(json, json!({ "x": wanted }));
    // Wide indices are there for those who ask, and either are read where the other are wanted.
    f.run(&["jacobian", "p.iv", "step", "x=[1,2,3]", "--format", "csr", "--index", "i64", "--out", "wide.npz"]);
    assert_eq!(Archive::open(&f.path("wide.npz")).unwrap().read("indptr").unwrap(), Some(Array::new(vec![3], Data::I64(vec![0, 2, 4]))));
    f.write(
        "q.iv",
        "def last(A: {shape: [2]i64, indptr: [p]i64, indices: [e]i64, data: [e]f64}) -> i64 = A.indices[e - 1]\n\
         def narrow(A: {shape: [2]i64, indptr: [p]i32, indices: [e]i32, data: [e]f64}) -> i32 = A.indices[e - 1]\n",
    );
    for (function, file) in [("last", "J.npz"), ("last", "wide.npz"), ("narrow", "J.npz"), ("narrow", "wide.npz")] {
        assert_eq!(f.run(&["run", "q.iv", function, &format!("A=@{file}")]).out, "2\n", "{function} {file}");
    }
}

#[test]
fn more_entries_than_indices_are_an_error() {
    let f = Folder::with("def line(x: f64, k: i64) -> [k]f64 = for i in 0..k. x * f64(i)\n");
    let call = ["jacobian", "p.iv", "line", "x=1", "k=3000000000", "--wrt", "x", "--format", "csr"];
    f.run(&call).fails(&["the matrix has 3000000000 entries, too many for indices of type `i32`", "`--index i64`"]);
}
