//! Records on the command line: as arguments, in files, and as results.

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
