//! Derivatives in little memory: long loops under a limit on address space, with no option that says so.

use std::process::{Command, Output};

const PROGRAM: &str = "\
def power(x: f64, n: i64) -> f64 = loop p = 1.0 for i in 0..n do p * x
def simulate(x: [n]f64, c: f64, steps: i64) -> f64 =
  let y = loop y = x for t in 0..steps do for i. y[i] + 0.001 * sin(c * y[i]);
  sum i. y[i]
def shrink(x: f64, least: f64) -> f64 = loop y = x while y > least do y * 0.999999
def epochs(w: f64, n: i64, m: i64) -> f64 =
  loop w = w for e in 0..n do loop w = w for t in 0..m do w - 0.0000001 * sin(w)
def changed(x: [n]f64, steps: i64) -> f64 =
  let y = loop y = x for t in 0..steps do y with [t mod n] = sin(y[t mod n]) + y[(t + 1) mod n] * 0.001;
  sum i. y[i]
";

/// In kilobytes, as `ulimit` has it: 200 MB.
const LIMIT: u64 = 200_000;

fn run(limit: Option<u64>, arguments: &str) -> Output {
    run_program(PROGRAM, limit, arguments)
}

fn run_program(program: &str, limit: Option<u64>, arguments: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("long.iv");
    std::fs::write(&file, program).unwrap();
    let limit = limit.map_or(String::new(), |kilobytes| format!("ulimit -v {kilobytes}; "));
    let command = arguments.replace("FILE", &file.display().to_string());
    let line = format!("{limit}exec {} {command}", env!("CARGO_BIN_EXE_iverson"));
    Command::new("sh").arg("-c").arg(line).env("IVERSON_CACHE", folder.path().join("cache")).output().unwrap()
}

/// The number behind `name = `.
fn number(output: &Output, name: &str) -> f64 {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|l| l.strip_prefix(&format!("{name} = ")).map(str::to_string));
    let line = line.unwrap_or_else(|| panic!("no `{name}` in {text}{}", String::from_utf8_lossy(&output.stderr)));
    line.trim().parse().unwrap()
}

fn close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-8 * b.abs().max(1.0), "{a} is not {b}");
}

#[test]
fn ten_million_factors_fit() {
    let x = 1.0000001f64;
    let wanted = 1e7 * x.powf(1e7 - 1.0);
    let got = run(Some(LIMIT), &format!("grad FILE power x={x} n=10000000"));
    close(number(&got, "x"), wanted);
}

#[test]
fn a_long_simulation_fits() {
    let arguments = "FILE simulate 'x=random(1000)' c=0.5 steps=100000 --wrt c";
    let forward = run(None, &format!("jvp {arguments} --dir c=1"));
    let reverse = run(Some(LIMIT), &format!("grad {arguments}"));
    close(number(&reverse, "c"), number(&forward, "tangent"));
}

#[test]
fn a_loop_of_unknown_length_fits() {
    // As many steps as it takes: y = x r^k.
    let (x, least) = (100.0f64, 1e-4f64);
    let steps = ((least / x).ln() / 0.999999f64.ln()).ceil();
    let got = run(Some(LIMIT), &format!("grad FILE shrink x={x} least={least} --wrt x"));
    close(number(&got, "x"), 0.999999f64.powf(steps));
}

#[test]
fn a_long_loop_in_a_loop_fits() {
    let arguments = "FILE epochs w=1 n=3 m=5000000 --wrt w";
    let forward = run(None, &format!("jvp {arguments} --dir w=1"));
    let reverse = run(Some(LIMIT), &format!("grad {arguments}"));
    close(number(&reverse, "w"), number(&forward, "tangent"));
}

#[test]
fn a_loop_that_changes_an_array_fits() {
    let arguments = "FILE changed 'x=random(1000)' steps=10000000";
    let forward = run(None, &format!("jvp {arguments} --dir 'x=ones(1000)'"));
    let reverse = run(Some(LIMIT), &format!("grad {arguments} --json"));
    let text = String::from_utf8_lossy(&reverse.stdout).into_owned();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&reverse.stderr)));
    let sum: f64 = json["x"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).sum();
    close(sum, number(&forward, "tangent"));
}

#[test]
fn the_limit_can_be_given_and_is_reported() {
    let of = |arguments: &str| String::from_utf8(run(None, arguments).stdout).unwrap();
    let all = of("cost FILE power --derivative grad --at n=1000000 --memory 1GB");
    let blocks = of("cost FILE power --derivative grad --at n=1000000 --memory 1MB");
    let bytes = |text: &str| text.lines().find_map(|l| l.strip_prefix("bytes")?.trim().parse::<u64>().ok()).unwrap();
    assert!(bytes(&all) >= 8_000_000 && !all.contains("blocks"), "{all}");
    assert!(bytes(&blocks) <= 1_000_000 && blocks.contains("blocks"), "{blocks}");
    let wrong = run(None, "grad FILE power x=1 n=3 --memory lots");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("as 200MB or 4GB"));
}

/// Loops that data end are cut into blocks that fill the memory: of blocks that no loop comes to, nothing is taken, nor once for each
/// of many loops side by side.
#[test]
fn blocks_that_are_not_reached_take_nothing() {
    let program = "def ragged(x: [n]f64, len: [n]i64) -> f64 = sum i. loop a = x[i] for t in 0..len[i] do a * sin(a)\n";
    let arguments = "hessian FILE ragged 'x=random(40)' 'len=range(40)' --json";
    let limited = run_program(program, Some(LIMIT), arguments);
    let free = run_program(program, None, &format!("{arguments} --target interpret"));
    let text = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(limited.status.success(), "{}", String::from_utf8_lossy(&limited.stderr));
    let read =
        |output: &Output| -> Vec<f64> { text(output).split(|c| "[],{}: \n\"".contains(c)).filter_map(|word| word.parse().ok()).collect() };
    let (limited, free) = (read(&limited), read(&free));
    assert!(limited.len() == 1600 && free.len() == 1600);
    limited.iter().zip(&free).for_each(|(a, b)| close(*a, *b));
}

/// A Jacobian whose mode is still to be chosen keeps to the limit, too.
#[test]
fn the_limit_holds_for_jacobians() {
    let program = "\
def orbit(x: [n]f64, steps: i64) -> [2]f64 =
  let (a, b) = (loop (a, b) = (x[0], x[1]) for t in 0..steps do (sin(a * b) + x[n - 1], cos(a + b)));
  [a, b]
";
    let asked = "cost FILE orbit --derivative jacobian --wrt x --at n=1000,steps=100000 --memory 64KB";
    let said = String::from_utf8(run_program(program, None, asked).stdout).unwrap();
    assert!(said.contains("loops are cut into blocks"), "{said}");
}

/// A plate whose heat flows linearly: the way back needs no state of the way there, and sums the adjoints of all steps.
const PLATE: &str = "\
def plate(source: [n, m]f64, steps: i64) -> f64 =
  let u = loop u = for i in 0..n, j in 0..m. 0.0 for t in 0..steps do
    for i, j. 0.2 * ([i > 0] * u[i - 1, j] + [i + 1 < n] * u[i + 1, j] + u[i, j]) + source[i, j];
  sum i, j. u[i, j]^2
def trace(x: [n]f64, steps: i64) -> f64 =
  let h = history y = x for t in 0..steps do for i. y[i] + 0.001 * sin(y[i]);
  sum t in 0..steps + 1, i. h[t, i]^2
";

#[test]
fn states_that_are_only_summed_are_not_kept() {
    // All states are 500 MB each.
    let plate = "FILE plate 'source=random(250, 250)' steps=1000";
    let forward = run_program(PLATE, None, &format!("jvp {plate} --dir 'source=ones(250, 250)'"));
    let reverse = run_program(PLATE, Some(LIMIT), &format!("grad {plate} --json --memory 1GB"));
    let text = String::from_utf8_lossy(&reverse.stdout).into_owned();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&reverse.stderr)));
    let rows = json["source"].as_array().unwrap().iter().flat_map(|row| row.as_array().unwrap());
    close(rows.map(|x| x.as_f64().unwrap()).sum(), number(&forward, "tangent"));
    let trace = run_program(PLATE, Some(LIMIT), "run FILE trace 'x=random(62500)' steps=1000");
    assert!(trace.status.success(), "{}", String::from_utf8_lossy(&trace.stderr));
}
