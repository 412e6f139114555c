//! Checking: wrong programs give the messages in `golden/check`, right ones the IR, and no program makes the checker
//! panic.
//!
//! A golden file is a program, a line `---`, and what is said about it; `BLESS=1` rewrites the latter.

use iverson::check::check;
use iverson::diagnostic::{Diagnostic, Severity, Sources, render};
use iverson::ir::equal::equal_up_to_renaming;
use iverson::ir::print::{print_function, print_program, print_type};
use iverson::ir::verify::verify;
use iverson::ir::{Body, Program};
use iverson::syntax::parse;
use std::path::{Path, PathBuf};

fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|found| found == extension));
    files.sort();
    files
}

fn said(diagnostics: &[Diagnostic], text: &str) -> String {
    render(diagnostics, &Sources::single("test.iv", text), false)
}

/// The program of a text without errors; it keeps the IR's invariants and its print reads back as the same program.
fn program(text: &str) -> Program {
    let (module, diagnostics) = parse(0, text);
    assert!(diagnostics.is_empty(), "{}", said(&diagnostics, text));
    let (program, diagnostics) = check(&module);
    assert!(diagnostics.iter().all(|d| d.severity == Severity::Warning), "{}", said(&diagnostics, text));
    verify(&program).unwrap_or_else(|e| panic!("{e}\n{text}\n{}", print_program(&program)));
    program
}

fn read_back(text: &str) -> Program {
    let first = program(text);
    let printed = print_program(&first);
    let second = program(&printed);
    equal_up_to_renaming(&first, &second).unwrap_or_else(|e| panic!("{e}\n\n{printed}\n{}", print_program(&second)));
    first
}

/// The print of the last definition, which reads back.
fn shown(text: &str) -> String {
    let program = read_back(text);
    let last =
        program.functions.iter().rposition(|f| matches!(f.body, Body::Exp(_)) && text.contains(&format!("def {}(", f.name))).unwrap();
    one_line(&print_function(&program, iverson::ir::FunctionId(last as u32)))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The type that a definition's result is inferred to have.
fn inferred(text: &str) -> String {
    let program = read_back(text);
    let count = text.matches("def ").count();
    print_type(&program, &program.functions[count - 1].result)
}

#[test]
fn wrong_programs_are_explained() {
    let files = files("golden/check", "txt");
    assert!(files.len() > 40);
    let mut wrong = Vec::new();
    for file in files {
        let golden = std::fs::read_to_string(&file).unwrap();
        let (text, expected) = golden.split_once("\n---\n").expect("a golden file has a line `---`");
        let (module, diagnostics) = parse(0, text);
        assert!(diagnostics.is_empty(), "{}: this is no text\n{}", file.display(), said(&diagnostics, text));
        let (_, diagnostics) = check(&module);
        assert!(!diagnostics.is_empty(), "{}: nothing is said about this program", file.display());
        let found = said(&diagnostics, text);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&file, format!("{text}\n---\n{found}")).unwrap();
        } else if found != expected {
            wrong.push(format!("{}\n{found}", file.display()));
        }
    }
    assert!(wrong.is_empty(), "messages differ (BLESS=1 rewrites them):\n{}", wrong.join("\n"));
}

#[test]
fn right_programs_read_back() {
    for file in files("programs", "iv") {
        read_back(&std::fs::read_to_string(&file).unwrap());
    }
}

#[test]
fn literals_take_the_type_wanted() {
    assert_eq!(shown("def f(x: f64) = 2 * x"), "def f(x: f64) -> f64 = 2.0 * x");
    assert_eq!(shown("def f(x: f64) = x - 1 / 2"), "def f(x: f64) -> f64 = x - 1.0 / 2.0");
    assert_eq!(shown("def f(x: f64) = if x > 0 then 1 else x"), "def f(x: f64) -> f64 = if x > 0.0 then 1.0 else x");
    assert_eq!(shown("def f(x: f64) = x^2 + 2^x"), "def f(x: f64) -> f64 = x ^ 2 + 2.0 ^ x");
    assert_eq!(shown("def f(x: f64) -> f64 = -2^2 * x"), "def f(x: f64) -> f64 = -2.0 ^ 2 * x");
    assert_eq!(shown("def f() -> (f64, i64) = (1, 1)"), "def f() -> (f64, i64) = (1.0, 1)");
    assert_eq!(shown("def f() -> [2]f64 = [1, -2]"), "def f() -> [2]f64 = [1.0, -2.0]");
    assert_eq!(shown("def f(x: f64) = [1, x]"), "def f(x: f64) -> [2]f64 = [1.0, x]");
    assert_eq!(shown("def f(x: f64) = max(0, x) + min(x, 1)"), "def f(x: f64) -> f64 = max(0.0, x) + min(x, 1.0)");
    assert_eq!(shown("def f(n: i64) -> f64 = sum i in 0..n. 1"), "def f(n: i64) -> f64 = sum i in 0..n. 1.0");
    assert_eq!(shown("def f(x: [n]f64) = 2 * x"), "def f(x: [n]f64) -> [n]f64 = for i. 2.0 * x[i]");
    assert_eq!(inferred("def f() = 2"), "i64");
    assert_eq!(inferred("def f(i: i64) = (2 * i, 2.5, -9223372036854775808)"), "(i64, f64, i64)");
    assert_eq!(shown("def f() = (infinity, -infinity, -0.0)"), "def f() -> (f64, f64, f64) = (infinity, -infinity, -0.0)");
}

#[test]
fn operators_on_arrays() {
    assert_eq!(shown("def f(x: [n]f64, y: [n]f64) = x + y"), "def f(x: [n]f64, y: [n]f64) -> [n]f64 = x + y");
    assert_eq!(
        shown("def f(x: [n, m]f64, y: [n, m]f64) = x - y"),
        "def f(x: [n, m]f64, y: [n, m]f64) -> [n, m]f64 = for i, j. x[i, j] - y[i, j]"
    );
    assert_eq!(shown("def f(x: [n]i64) = -x"), "def f(x: [n]i64) -> [n]i64 = for i. -x[i]");
    assert_eq!(shown("def f(x: [n]f64, c: f64) = x / (c + 1)"), "def f(x: [n]f64, c: f64) -> [n]f64 = let t = c + 1.0; for i. x[i] / t");
    assert_eq!(shown("def f(x: [n]f64, c: f64) = (1.0, x) + (c, x)"), "def f(x: [n]f64, c: f64) -> (f64, [n]f64) = (1.0, x) + (c, x)");
    assert_eq!(shown("def f(A: [n, m]f64) = sum i. A[i]"), "def f(A: [n, m]f64) -> [m]f64 = sum i. A[i]");
}

#[test]
fn brackets_guard_their_chains() {
    assert_eq!(shown("def f(a: f64, p: bool, b: f64) = a * [p] * b / 2"), "def f(a: f64, p: bool, b: f64) -> f64 = [p] * a * b / 2.0");
    assert_eq!(shown("def f(i: i64, x: f64) = [i > 0] * [i < 9] * x"), "def f(i: i64, x: f64) -> f64 = [i > 0 and i < 9] * x");
    assert_eq!(shown("def f(i: i64) = [i > 0]"), "def f(i: i64) -> i64 = [i > 0]");
    assert_eq!(shown("def f(i: i64) -> f64 = [i > 0] / 3"), "def f(i: i64) -> f64 = [i > 0] * 1.0 / 3.0");
    assert_eq!(shown("def f(i: i64, x: f64) = x + [i > 0]"), "def f(i: i64, x: f64) -> f64 = x + [i > 0]");
    assert_eq!(
        shown("def f(i: i64, x: [n]f64) = [i > 0 and x[i - 1] > 0] * x[i]"),
        "def f(i: i64, x: [n]f64) -> f64 = [i > 0] * ([x[i - 1] > 0.0] * x[i])"
    );
    assert_eq!(shown("def f(x: f64) = [x]"), "def f(x: f64) -> [1]f64 = [x]");
    assert_eq!(shown("def f(p: bool) -> [1]bool = [p]"), "def f(p: bool) -> [1]bool = ([p] : [1]bool)");
    assert_eq!(shown("def f(p: bool, x: [n]f64) = [p] * x"), "def f(p: bool, x: [n]f64) -> [n]f64 = [p] * x");
    assert_eq!(shown("def f(x: f64) = if x > 0 then x"), "def f(x: f64) -> f64 = [x > 0.0] * x");
}

#[test]
fn logic_is_lazy_where_it_could_fail() {
    assert_eq!(shown("def f(i: i64, j: i64) = i > 0 and j > 0"), "def f(i: i64, j: i64) -> bool = i > 0 and j > 0");
    assert_eq!(
        shown("def f(i: i64, x: [n]f64) = i > 0 and x[i - 1] > 0"),
        "def f(i: i64, x: [n]f64) -> bool = if i > 0 then x[i - 1] > 0.0 else false"
    );
    assert_eq!(
        shown("def f(i: i64, x: [n]f64) = i >= n or x[i] > 0"),
        "def f(i: i64, x: [n]f64) -> bool = if i >= n then true else x[i] > 0.0"
    );
    assert_eq!(
        shown("def f(i: i64, x: f64) = i > 0 and x^2 > 1 or i mod 2 == 0"),
        "def f(i: i64, x: f64) -> bool = i > 0 and x ^ 2 > 1.0 or i mod 2 == 0"
    );
}

#[test]
fn ranges_are_inferred() {
    assert_eq!(shown("def f(x: [n]f64, y: [n]f64) = for i. x[i] * y[i]"), "def f(x: [n]f64, y: [n]f64) -> [n]f64 = for i. x[i] * y[i]");
    assert_eq!(inferred("def f(A: [n, m]f64) = for j, i. A[i, j]"), "[m, n]f64");
    assert_eq!(inferred("def f(A: [n, m]f64) = for i. max j. A[i, j]"), "[n]f64");
    assert_eq!(inferred("def f(x: [n]f64) = for i in 1..n. x[i] - x[i - 1]"), "[n - 1]f64");
    assert_eq!(
        shown("def f(x: [n]f64) = for i in 1..n. x[i] - x[i - 1]"),
        "def f(x: [n]f64) -> [n - 1]f64 = for i in 0..n - 1. x[i + 1] - x[i + 1 - 1]"
    );
    assert_eq!(inferred("def f(x: [n]f64) = argmax i. x[i]"), "i64");
    assert_eq!(inferred("def f(x: [n]f64) = any i. x[i] > 0"), "bool");
    assert_eq!(
        shown("def eye(n: i64) -> [n, n]f64 = sum i. {(i, i) -> 1}"),
        "def eye(n: i64) -> [n, n]f64 = sum i in 0..n. {(i, i) -> 1.0}"
    );
    assert_eq!(inferred("def f(x: [n]f64) = sum i. (x[i], {0 -> x[i]} + x)"), "(f64, [n]f64)");
    assert_eq!(inferred("def f(x: [n]f64) = for i. (x[i], i > 0)"), "([n]f64, [n]bool)");
    assert_eq!(inferred("def f(x: [n]f64) = let p = for i. (x[i], i); for i. let (a, b) = p[i]; a * f64(b)"), "[n]f64");
}

#[test]
fn sizes_are_variables() {
    let counted = "def f(x: [n]f64, is: [m]i64) = sum k. let z = for j in 0..is[k]. x[j]; sum j. z[j]^2";
    assert_eq!(
        shown(counted),
        "def f(x: [n]f64, is: [m]i64) -> f64 = sum k. let j_to = is[k]; let z = for j in 0..j_to. x[j]; sum j. z[j] ^ 2"
    );
    assert_eq!(inferred("def f(x: [n]f64) = let m = n + 1; for i in 0..m. i"), "[n + 1]i64");
    assert_eq!(inferred("def f(x: [n]f64) -> [n - 1]f64 = let m = n - 1; let y = for i in 0..m. x[i]; y"), "[n - 1]f64");
    assert_eq!(inferred("def f(x: [n]f64) = x[1..n]"), "[n - 1]f64");
    assert_eq!(inferred("def f(x: [n]f64) = sum i. (let m = i64(x[0]); for j in 0..m. x[i])[0]"), "f64");
    assert_eq!(inferred("def f(k: i64, x: [k]f64, y: [k + 1]f64) = y"), "[k + 1]f64");
    assert_eq!(inferred("def f(y: [k + 1]f64, k: i64) = y"), "[k + 1]f64");
    assert_eq!(inferred("def f(x: [d]f64, y: [(d * (d + 1)) div 2]f64) = y"), "[(d * d + d) div 2]f64");
    assert_eq!(inferred("def g(k: i64, x: [n]f64) -> [k]f64 = for i in 0..k. x[0]  def f(x: [n]f64) = g(2 * n, x)"), "[2 * n]f64");
    assert_eq!(
        inferred("def g(k: i64, x: [n]f64) -> [k]f64 = for i in 0..k. x[0]  def f(x: [n]f64) = let k = i64(x[0]); sum i. g(k, x)[i]"),
        "f64"
    );
}

#[test]
fn reads_and_slices() {
    assert_eq!(shown("def f(A: [n, m]f64, j: i64) = A[:, j]"), "def f(A: [n, m]f64, j: i64) -> [n]f64 = for i. A[i, j]");
    assert_eq!(shown("def f(A: [n, m]f64) = A[1..3, :]"), "def f(A: [n, m]f64) -> [2, m]f64 = for i in 0..2. A[1 + i]");
    assert_eq!(shown("def f(A: [n, m]f64, i: i64) = A[i, :]"), "def f(A: [n, m]f64, i: i64) -> [m]f64 = A[i]");
    assert_eq!(inferred("def f(A: [n, m, k]f64, i: i64) = A[i, 1..m, :]"), "[m - 1, k]f64");
    assert_eq!(shown("def f(x: [n]f64) = (x + x)[0..2]"), "def f(x: [n]f64) -> [2]f64 = let t = x + x; for i in 0..2. t[i]");
    assert_eq!(shown("def f(A: [n, m]f64) = for i. A[i][0]"), "def f(A: [n, m]f64) -> [n]f64 = for i. A[i, 0]");
    assert_eq!(shown("def f(x: [n]f64, is: [m]i64) = for i. x[is[i]]"), "def f(x: [n]f64, is: [m]i64) -> [m]f64 = for i. x[is[i]]");
}

#[test]
fn singletons_take_sizes_from_the_context() {
    assert_eq!(shown("def f(k: i64, n: i64) -> [n]f64 = {k -> 1}"), "def f(k: i64, n: i64) -> [n]f64 = {k -> 1.0}");
    assert_eq!(shown("def f(x: [n]f64) = let d: [n]f64 = {0 -> 1}; d[0]"), "def f(x: [n]f64) -> f64 = let d: [n]f64 = {0 -> 1.0}; d[0]");
    assert_eq!(inferred("def f(x: [n]f64) = {0 -> 1} + x"), "[n]f64");
    assert_eq!(
        inferred("def f(n: i64, x: f64) -> ([n]f64, f64) = let y = x; if y > 0 then ([y > 1] * 2 * {0 -> y}, y) else ({1 -> 1}, 0)"),
        "([n]f64, f64)"
    );
    assert_eq!(inferred("def f(n: i64, x: f64) -> [n, 2]f64 = {1 -> [x, 1]}"), "[n, 2]f64");
    assert_eq!(inferred("def g(x: [n]f64, y: [n]f64) = x + y  def f(x: [n]f64) = g({0 -> 1}, x)"), "[n]f64");
}

#[test]
fn patterns_take_tuples_apart() {
    assert_eq!(inferred("def f(t: (f64, (i64, [n]f64))) = let (a, (b, c)) = t; (c, b, a)"), "([n]f64, i64, f64)");
    assert_eq!(
        inferred("def f(x: f64) = history (a, (b, c)) = (x, (x, 1)) for i in 2..5 do (b, (a, c + i))"),
        "([4]f64, ([4]f64, [4]i64))"
    );
    assert_eq!(inferred("def f(x: f64) = let x = 2 * x; let x = [x]; x"), "[1]f64");
    assert_eq!(inferred("def f(x: f64) = [(x, 1), (2, 2)]"), "([2]f64, [2]i64)");
}

#[test]
fn definitions_shadow_the_library() {
    assert_eq!(inferred("def exp(x: f64) -> i64 = 1  def f(x: f64) = exp(x)"), "i64");
    assert_eq!(inferred("def grad(x: f64) -> i64 = 1  def f(x: f64) = grad(x)"), "i64");
}

const FUNCTIONS: &str = "
def cube(x: f64) -> f64 = x^3
def dot(x: [n]f64, y: [n]f64) -> f64 = sum i. x[i] * y[i]
def lin(A: [m, n]f64, x: [n]f64, k: i64) -> [m]f64 = for i. sum j. A[i, j] * x[j] + f64(k)
def two(p: (f64, [n]f64), i: i64) -> ([n]f64, i64, f64) = let (a, x) = p; (a * x, i, a)
";

#[test]
fn derivatives_have_their_types() {
    let ty = |params: &str, exp: &str| inferred(&format!("{FUNCTIONS}\ndef f({params}) = {exp}"));
    assert_eq!(ty("x: f64", "grad(cube)(x)"), "f64");
    assert_eq!(ty("x: f64", "grad(grad(grad(cube)))(x)"), "f64");
    assert_eq!(ty("x: [n]f64", "grad(dot)(x, x)"), "([n]f64, [n]f64)");
    assert_eq!(ty("x: [n]f64", "grad(dot, wrt = y)(x, x)"), "[n]f64");
    assert_eq!(ty("x: [n]f64", "value_and_grad(dot, wrt = (y, x))(x, x)"), "(f64, ([n]f64, [n]f64))");
    assert_eq!(ty("A: [m, n]f64, x: [n]f64", "jacobian(lin)(A, x, 1)"), "([m, m, n]f64, [m, n]f64)");
    assert_eq!(ty("A: [m, n]f64, x: [n]f64", "jacrev(lin, wrt = (x, A))(A, x, 1)"), "([m, n]f64, [m, m, n]f64)");
    assert_eq!(ty("A: [m, n]f64, x: [n]f64", "jacfwd(lin, wrt = x)(A, x, 1)"), "[m, n]f64");
    assert_eq!(ty("x: [n]f64", "hessian(dot)(x, x)"), "(([n, n]f64, [n, n]f64), ([n, n]f64, [n, n]f64))");
    assert_eq!(ty("x: [n]f64", "hessian(dot, wrt = x)(x, x)"), "[n, n]f64");
    assert_eq!(ty("x: [n]f64", "hvp(dot, (x, x), (x, x))"), "([n]f64, [n]f64)");
    assert_eq!(ty("x: [n]f64", "jvp(dot, (x, x), x, wrt = y)"), "(f64, f64)");
    assert_eq!(ty("x: [n]f64", "jvp(dot, (x, x), (x, 2 * x), wrt = (y, x))"), "(f64, f64)");
    assert_eq!(ty("x: [n]f64", "vjp(dot, (x, x), 1)"), "(f64, ([n]f64, [n]f64))");
    assert_eq!(ty("x: [n]f64", "vjp(dot, (x, x), 1, wrt = (y, x))"), "(f64, ([n]f64, [n]f64))");
    assert_eq!(ty("x: [n]f64", "jvp(grad(dot), (x, x), (x, x))"), "(([n]f64, [n]f64), ([n]f64, [n]f64))");
    assert_eq!(ty("x: [n]f64", "jvp(jvp(dot, wrt = x), (x, x, x), x, wrt = y)"), "((f64, f64), (f64, f64))");
    assert_eq!(ty("x: f64", "jacobian(jacobian(cube))(x)"), "f64");
    assert_eq!(ty("x: [n]f64", "jacobian(two)((1, x), 3)"), "(([n]f64, [n, n]f64), (f64, [n]f64))");
    assert_eq!(ty("x: [n]f64", "jacrev(two)((1, x), 3)"), "(([n]f64, [n, n]f64), (f64, [n]f64))");
    assert_eq!(ty("x: [n]f64", "vjp(two, ((1, x), 3), (x, 0))"), "(([n]f64, i64, f64), (f64, [n]f64))");
    assert_eq!(ty("x: [n]f64, t: ([n]f64, [n]f64)", "jvp(dot, t, t)"), "(f64, f64)");
    assert_eq!(ty("x: [3]f64, y: [3]f64", "jacobian(dot)(x, y)"), "([3]f64, [3]f64)");
}

#[test]
fn derivatives_are_functions_to_read() {
    let text =
        format!("{FUNCTIONS}\ndef f(A: [m, n]f64, x: [n]f64) = (grad(dot)(x, x), jacfwd(lin, wrt = x)(A, x, 1), jacrev(lin)(A, x, 1))");
    let program = read_back(&text);
    let shown = |name: &str| one_line(&print_function(&program, program.find(name).unwrap()));
    assert_eq!(
        shown("grad_dot"),
        "def grad_dot(x: [n]f64, y: [n]f64) -> ([n]f64, [n]f64) = let (value, gradient) = vjp(dot, (x, y), 1.0); gradient"
    );
    assert_eq!(
        shown("jacfwd_lin_wrt_x"),
        "def jacfwd_lin_wrt_x(A: [m, n]f64, x: [n]f64, k: i64) -> [m, n]f64 = let x_columns = for i in 0..n. let (value, tangent) = jvp(lin, (A, x, k), ({i -> 1.0} : [n]f64), wrt = x); tangent; for i, j. x_columns[j, i]"
    );
    assert_eq!(
        shown("jacrev_lin"),
        "def jacrev_lin(A: [m, n]f64, x: [n]f64, k: i64) -> ([m, m, n]f64, [m, n]f64) = for i in 0..m. let (value, adjoints) = vjp(lin, (A, x, k), ({i -> 1.0} : [m]f64)); adjoints"
    );
}

/// A reproducible stream of numbers.
struct Random(u64);
impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

/// The words of a text: names and numbers, and single characters otherwise.
fn words(text: &str) -> Vec<&str> {
    let mut words = vec![];
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let name = |c: char| c.is_alphanumeric() || c == '_';
        let end = if name(c) { rest.find(|c| !name(c)).unwrap_or(rest.len()) } else { c.len_utf8() };
        words.push(&rest[..end]);
        rest = &rest[end..];
    }
    words
}

/// Programs with words changed, doubled, dropped and exchanged: the checker explains them or makes a program that keeps
/// the IR's invariants.
#[test]
fn no_program_makes_it_panic() {
    let mut texts: Vec<String> = files("programs", "iv").iter().map(|f| std::fs::read_to_string(f).unwrap()).collect();
    let golden = files("golden/check", "txt");
    texts.extend(golden.iter().map(|f| std::fs::read_to_string(f).unwrap().split_once("\n---\n").unwrap().0.to_string()));
    texts.push(
        FUNCTIONS.to_string() + "def f(A: [m, n]f64, x: [n]f64) = (grad(dot)(x, x), jacobian(lin)(A, x, 1), hvp(dot, (x, x), (x, x)))",
    );
    let all: Vec<String> = texts.iter().flat_map(|t| words(t)).map(str::to_string).filter(|w| w.trim() != "").collect();
    let mut random = Random(0x9e3779b97f4a7c15);
    let (mut right, mut wrong) = (0, 0);
    let fine = files("programs", "iv").len();
    for (k, text) in texts.iter().enumerate() {
        for _ in 0..if k < fine { 1000 } else { 150 } {
            let mut changed: Vec<String> = words(text).into_iter().map(str::to_string).collect();
            for _ in 0..1 + random.below(3) {
                let at = random.below(changed.len());
                let other = random.below(changed.len());
                match random.below(4) {
                    0 if random.below(2) == 0 => changed[at] = all[random.below(all.len())].clone(),
                    0 => changed[at] = changed[other].clone(),
                    1 => changed.insert(at, all[random.below(all.len())].clone()),
                    2 => changed.swap(at, other),
                    _ => drop(changed.remove(at)),
                }
                if changed.is_empty() {
                    break;
                }
            }
            let text = changed.concat();
            let (module, parsed) = parse(0, &text);
            let (program, diagnostics) = check(&module);
            if parsed.is_empty() && diagnostics.iter().all(|d| d.severity == Severity::Warning) {
                verify(&program).unwrap_or_else(|e| panic!("{e}\n{text}\n{}", print_program(&program)));
                right += 1;
            } else {
                said(&diagnostics, &text);
                wrong += 1;
            }
        }
    }
    assert!(right > 100 && wrong > 1000, "{right} right, {wrong} wrong");
}

#[test]
fn deep_nesting_is_an_error_at_most() {
    for text in [
        format!("def f(x: f64) = {}x{}", "x + (".repeat(60), ")".repeat(60)),
        format!("def f(x: f64) = {}x{}", "(if x > 0 then x else ".repeat(60), ")".repeat(60)),
        format!("def f(x: f64) = {}x{}", "(sum i in 0..2. x + ".repeat(60), ")".repeat(60)),
        format!("def f(x: f64) = x{}", " + x".repeat(1900)),
        format!("def f(x: f64) = x{}", " * x".repeat(1900)),
        format!("def f(x: f64) = x{}", " * [x > 0]".repeat(1900)),
        format!("def f(x: f64) = {}x", "let x = x; ".repeat(1900)),
        format!("def f(x: f64) = {}x > 0", "x > 0 and ".repeat(1900)),
    ] {
        let (module, diagnostics) = parse(0, &text);
        assert!(diagnostics.is_empty(), "{}", said(&diagnostics, &text));
        let (_, diagnostics) = check(&module);
        assert!(diagnostics.iter().all(|d| d.severity == Severity::Warning), "{}", said(&diagnostics, &text));
    }
    for text in [format!("def f(x: f64) = x{}", " + x".repeat(20000)), format!("def f(x: f64) = {}x", "(".repeat(20000))] {
        check(&parse(0, &text).0);
    }
}
