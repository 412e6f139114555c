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
fn fields_are_differentiated_by() {
    let program = "\
type Layer = { w: [m, n]f64, b: [m]f64 }
type Net = { first: Layer, scale: f64, k: i64 }
def loss(net: Net, x: [n]f64, t: (f64, f64)) -> f64 =
  let (a, b) = t;
  net.scale * f64(net.k) * (sum i. (net.first.b[i] + sum j. net.first.w[i, j] * x[j])^2) + a * b
def outputs(net: Net, x: [n]f64) -> [m]f64 = for i. net.scale * (net.first.b[i] + sum j. net.first.w[i, j] * x[j])
def one(p: { only: { x: f64 } }, p_only_x: f64) -> f64 = p.only.x^3 * p_only_x
";
    let folder = Folder::with(program);
    let net = "net={first: {w: [[1, 2], [3, 4]], b: [0.5, -1]}, scale: 2, k: 3}";
    let values = [net, "x=[1, -1]", "t=(2, 5)"];
    for target in ["c", "interpret"] {
        let json = |args: &[&str]| folder.run(&[args, &["--json", "--target", target]].concat()).json();
        let loss = |kind: &str, args: &[&str]| json(&[&[kind, "p.iv", "loss"], &values[..], args].concat());
        let whole = loss("grad", &[]);
        let wanted = json!({"net": {"first": {"b": whole["net"]["first"]["b"]}, "scale": whole["net"]["scale"]}});
        assert_eq!(loss("grad", &["--wrt", "net.scale,net.first.b"]), wanted);
        assert_eq!(loss("grad", &["--wrt", "net.first"]), json!({"net": {"first": whole["net"]["first"]}}));
        assert_eq!(loss("grad", &["--wrt", "x,t.1"]), json!({"x": whole["x"], "t": {"1": 2.0}}));
        assert_eq!(loss("value-and-grad", &["--wrt", "net.scale"])["grad"], json!({"net": {"scale": whole["net"]["scale"]}}));
        let second = loss("hessian", &[]);
        let of_fields = loss("hessian", &["--wrt", "net.first.b,net.scale"]);
        assert_eq!(of_fields["net"]["first"]["b"]["net"]["scale"], second["net"]["net"]["first"]["b"]["scale"]);
        let change = loss("jvp", &["--wrt", "net.first.b,x", "--dir", "net.first.b=[1,0]"]);
        assert_eq!(change["tangent"], whole["net"]["first"]["b"][0]);
        assert_eq!(loss("jvp", &["--wrt", "net.first", "--dir", "net.first.b=[1,0]"])["tangent"], change["tangent"]);
        let cotangents = json(&["vjp", "p.iv", "outputs", net, "x=[1, -1]", "--wrt", "net.first.b", "--seed", "[1, 10]"]);
        assert_eq!(cotangents["cotangents"], json!({"net": {"first": {"b": [2.0, 20.0]}}}));
        let rows = json(&["jacobian", "p.iv", "outputs", net, "x=[1, -1]", "--wrt", "net.scale"]);
        assert_eq!(rows, json!({"net": {"scale": [-0.5, -2.0]}}));
        assert_eq!(json(&["grad", "p.iv", "one", "p.only.x=2", "p_only_x=5", "--wrt", "p.only.x"]), json!({"p": {"only": {"x": 60.0}}}));
    }
    let text = folder.run(&[&["grad", "p.iv", "loss"], &values[..], &["--wrt", "net.scale"]].concat());
    assert_eq!(text.out.split(" = ").next(), Some("net.scale"), "{}", text.err);
    let checked = folder.run(&[&["check-grad", "p.iv", "loss"], &values[..], &["--wrt", "net.first.w,x"]].concat());
    assert!(checked.code == 0 && checked.out.starts_with("`loss`: 6 of 6"), "{}{}", checked.out, checked.err);
    // A derivative by a field does not compute the others.
    let cost = |wrt: &str| {
        let report = folder.run(&["cost", "p.iv", "loss", "--derivative", "grad", "--wrt", wrt, "--at", "m=30,n=30", "--json"]).json();
        report["total"].as_f64().unwrap_or_else(|| panic!("{report}"))
    };
    assert!(cost("net.scale") < 0.8 * cost("net"), "{} {}", cost("net.scale"), cost("net"));
    let fails = |wrt: &str, parts: &[&str]| folder.run(&[&["grad", "p.iv", "loss"], &values[..], &["--wrt", wrt]].concat()).fails(parts);
    fails("net.frist", &["`net` has no field `frist` to differentiate by", "did you mean `first`?"]);
    fails("net.first.c", &["`net.first` has no field `c`"]);
    fails("x.w", &["`x` is no record, so it has no field `w`"]);
    fails("net.k", &["`net.k: i64` has no floats to differentiate by"]);
    fails("net,net.scale", &["`net.scale` is a part of `net`, and both stand in --wrt"]);
    fails("net.scale,net.scale", &["`net.scale` stands twice in --wrt"]);
    fails("nt.scale", &["`loss` has no parameter `nt`"]);
    let wrong = folder.run(&[&["jvp", "p.iv", "loss"], &values[..], &["--wrt", "net.scale", "--dir", "net.first.b=[1,0]"]].concat());
    wrong.fails(&["no direction of `net.first.b` is wanted"]);
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
