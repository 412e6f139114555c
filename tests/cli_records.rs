//! Records on the command line, as arguments, in files and as results; results whose sizes depend on data.

mod folder;

use folder::Folder;
use iverson::value::npz::{Archive, write_file};
use iverson::value::{Array, Data};
use serde_json::json;

/// A program with records.
const RECORDS: &str = "\
type Params = { w: [n]f64, b: f64, k: i64 }

def line(p: Params, x: [n]f64) -> f64 = f64(p.k) * (p.b + sum i. p.w[i] * x[i])

def parts(p: Params, x: [n]f64) -> { params: Params, product: f64 } = { product: line(p, x), params: p }

def pair(p: Params) -> (Params, f64) = (p, p.b)

def one(p: { only: f64 }) -> { square: f64 } = { square: p.only^2 }
";

#[test]
fn records_are_objects() {
    let folder = Folder::with("");
    folder.write("records.iv", RECORDS);
    let p = "p={w: [1, 2], b: 3, k: 2}";
    let x = "x=[1, 1]";
    let json = |args: &[&str]| folder.run(&[args, &["--json"]].concat()).json();
    assert_eq!(folder.run(&["run", "records.iv", "line", p, x]).out, "12\n");
    assert_eq!(folder.run(&["run", "records.iv", "line", "p.w=[1,2]", "p.b=3", "p.k=2", x]).out, "12\n");
    let whole = json!({"params": {"w": [1.0, 2.0], "b": 3.0, "k": 2}, "product": 12.0});
    assert_eq!(json(&["run", "records.iv", "parts", p, x]), whole);
    assert_eq!(json(&["run", "records.iv", "pair", p]), json!([{"w": [1.0, 2.0], "b": 3.0, "k": 2}, 3.0]));
    assert_eq!(json(&["grad", "records.iv", "line", p, x]), json!({"p": {"w": [2.0, 2.0], "b": 2.0}, "x": [2.0, 4.0]}));
    let expected = json!({"value": 12.0, "grad": {"p": {"w": [2.0, 2.0], "b": 2.0}}});
    assert_eq!(json(&["value-and-grad", "records.iv", "line", p, x, "--wrt", "p"]), expected);
    // A direction's fields that are not given are zero.
    assert_eq!(json(&["jvp", "records.iv", "line", p, x, "--dir", "p.b=1"]), json!({"value": 12.0, "tangent": 2.0}));
    assert_eq!(json(&["jvp", "records.iv", "line", p, x, "--dir", "p={w: [1, 0]}"]), json!({"value": 12.0, "tangent": 2.0}));
    let seeded = json(&["vjp", "records.iv", "parts", p, x, "--seed", "{params: {w: [1, 0], b: 0}, product: 1}", "--wrt", "p"]);
    assert_eq!(seeded, json!({"value": whole, "cotangents": {"p": {"w": [3.0, 2.0], "b": 2.0}}}));
    let rows = json(&["jacobian", "records.iv", "parts", p, x, "--wrt", "x"]);
    assert_eq!(rows, json!({"params": {"w": {"x": [[0.0, 0.0], [0.0, 0.0]]}, "b": {"x": [0.0, 0.0]}}, "product": {"x": [2.0, 4.0]}}));
    let second = json(&["hessian", "records.iv", "line", p, x]);
    assert_eq!(second["p"]["x"], json!({"w": [[2.0, 0.0], [0.0, 2.0]], "b": [0.0, 0.0]}));
    assert_eq!(second["p"]["p"]["b"], json!({"w": [0.0, 0.0], "b": 0.0}));
    assert_eq!(json(&["hvp", "records.iv", "line", p, x, "--dir", "x=[1,0]"])["p"], json!({"w": [2.0, 0.0], "b": 0.0}));
    assert_eq!(json(&["jacobian", "records.iv", "one", "p.only=3"]), json!({"square": {"p": {"only": 6.0}}}));

    // To a file and from it, and from JSON.
    assert_eq!(folder.run(&["run", "records.iv", "parts", p, x, "--out", "out.npz"]).code, 0);
    let archive = Archive::open(&folder.path("out.npz")).unwrap();
    assert_eq!(archive.names(), ["params.b", "params.k", "params.w", "product"]);
    let arrays = [
        ("p.w", Array::f64(vec![2], vec![1.0, 2.0])),
        ("p.b", Array::f64(vec![], vec![3.0])),
        ("p.k", Array::new(vec![], Data::I64(vec![2]))),
        ("x", Array::f64(vec![2], vec![1.0, 1.0])),
        ("d_p.w", Array::f64(vec![2], vec![1.0, 0.0])),
        ("d_p.b", Array::f64(vec![], vec![1.0])),
    ];
    write_file(&folder.path("in.npz"), arrays.iter().map(|(name, a)| (*name, a))).unwrap();
    assert_eq!(folder.run(&["run", "records.iv", "line", "--data", "in.npz"]).out, "12\n");
    assert_eq!(json(&["jvp", "records.iv", "line", "--data", "in.npz"]), json!({"value": 12.0, "tangent": 4.0}));
    std::fs::write(folder.path("in.json"), r#"{"p": {"k": 2, "w": [1, 2], "b": 3}, "x": [1, 1]}"#).unwrap();
    assert_eq!(folder.run(&["run", "records.iv", "line", "--data", "in.json"]).out, "12\n");

    let fails = |args: &[&str], parts: &[&str]| folder.run(&[&["run", "records.iv", "line", x], args].concat()).fails(parts);
    fails(&["p.w=[1,2]", "p.b=3"], &["argument `p`: the field `k` is missing"]);
    fails(&["p={w: [1, 2], b: 3, k: 2, c: 1}"], &["there is no field `c`", "the fields are `w`, `b`, `k`"]);
    fails(&["p=3"], &["expected {w: [n]f64, b: f64, k: i64}, got the number 3"]);
    fails(&["p={w: [1, 2], b: 3, k: 2.5}"], &["argument `p`, field `k`: expected i64, got the number 2.5"]);
    fails(&["p={w: [1, 2, 3], b: 3, k: 2}"], &["`x` has shape [2], but `n` = 3 from `p.w`"]);
    fails(&[p, "p.b=3"], &["argument `p.b` is given twice"]);
    fails(&[], &["`line` needs `p: {w: [n]f64, b: f64, k: i64}`"]);
    fails(&["q.w=[1]"], &["`line` has no parameter `q`"]);
}

#[test]
fn sizes_of_results_are_computed() {
    let program = "\
def positive(x: [n]f64) -> [?m]f64 =
  let place = for i in 0..n. sum j in 0..i. [x[j] > 0];
  let m = sum i. [x[i] > 0];
  (sum i. [x[i] > 0] * {place[i] -> x[i]^2} : [m]f64)
def total(x: [n]f64) -> f64 = let y = positive(x); sum i. y[i]
";
    let folder = Folder::with(program);
    for target in ["c", "interpret"] {
        let json = |args: &[&str]| folder.run(&[args, &["--json", "--target", target]].concat()).json();
        assert_eq!(json(&["run", "p.iv", "positive", "x=[1,-2,3]"]), json!([1.0, 9.0]));
        assert_eq!(json(&["run", "p.iv", "positive", "x=[-2]"]), json!([]));
        assert_eq!(json(&["jacobian", "p.iv", "positive", "x=[1,-2,3]"]), json!({"x": [[2.0, 0.0, 0.0], [0.0, 0.0, 6.0]]}));
        let expected = json!({"value": [1.0, 9.0], "cotangents": {"x": [20.0, 0.0, 120.0]}});
        assert_eq!(json(&["vjp", "p.iv", "positive", "x=[1,-2,3]", "--seed", "[10,20]"]), expected);
        let expected = json!({"value": [1.0, 9.0], "tangent": [2.0, 6.0]});
        assert_eq!(json(&["jvp", "p.iv", "positive", "x=[1,-2,3]", "--dir", "x=[1,1,1]"]), expected);
        assert_eq!(json(&["grad", "p.iv", "total", "x=[1,-2,3]"]), json!({"x": [2.0, 0.0, 6.0]}));
    }
    assert_eq!(folder.run(&["bench", "p.iv", "positive", "x=random(100)", "--runs", "2"]).code, 0);
    assert_eq!(folder.run(&["check-grad", "p.iv", "positive", "x=[1,-2,3]"]).code, 0);
    folder.run(&["run", "p.iv", "positive", "x=[1]", "m=1"]).fails(&["`positive` has no parameter `m`"]);
    folder.run(&["vjp", "p.iv", "positive", "x=[1,-2,3]", "--seed", "[10,20,30]"]).fails(&["seed: expected shape [2], got [3]"]);
    assert_eq!(folder.run(&["build", "p.iv", "positive"]).code, 0);
    let header = std::fs::read_to_string(folder.path("p.h")).unwrap();
    assert!(header.contains("positive_size(x: [n]f64) -> i64"), "{header}");
}
