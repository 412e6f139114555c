//! Libraries made by `iverson build`: compiled, linked and called from C, C++ and Python, and compared with what the
//! command itself computes.

mod folder;

use folder::Folder;
use serde_json::Value as Json;
use std::process::Command;

const PROGRAM: &str = "\
def loss(w: [d]f64, b: f64, X: [n, d]f64, y: [n]f64) -> f64 =
  (sum i. (b + (sum j. X[i, j] * w[j]) - y[i])^2) / f64(n)

def both(x: [n]f64, k: i64, up: bool) -> (f64, ([n]f64, [n]i64)) =
  (sum i. x[i], (for i. if up then f64(k) * x[i] else x[i], for i in 0..n. i * k))

def product(A: [m, k]f64, B: [k, n]f64) -> [m, n]f64 = for i, j. sum l. A[i, l] * B[l, j]

def squares(A: [m, k]f64, B: [k, n]f64) -> f64 =
  let C = product(A, B);
  sum i, j. C[i, j]^2

def single(A: [m, k]f32, B: [k, n]f32) -> [m, n]f32 = for i, j. sum l. A[i, l] * B[l, j]

def narrow(x: f64, k: i64) -> (i32, i32) = (i32(x), i32(k))

def take(x: [n]f64, at: [m]i64) -> [m]f64 = for i. x[at[i]]

def quotient(a: i64, b: i64) -> i64 = a div b

def whole(x: f64) -> i64 = i64(x)

def best(x: [n]f64) -> i64 = argmax i. x[i]

def big(n: i64, x: f64) -> f64 =
  let v = history p = x for i in 0..n do 0.5 * p + 1;
  sum i. v[i] * v[n - i]

def words(default: [int]f64, class: f64, result: f64) -> f64 = class * result * (sum i. default[i])

def positive(x: [n]f64) -> ([?m]f64, [m]i64) =
  let place = for i in 0..n. sum j in 0..i. [x[j] > 0];
  let m = sum i. [x[i] > 0];
  (sum i. [x[i] > 0] * ({place[i] -> x[i]}, {place[i] -> i}) : ([m]f64, [m]i64))

def norm(x: [n]T) -> T = sum i. x[i] * x[i]

def mixed(x: [n]T, k: [n]U) -> T = sum i. x[i] * T(k[i])

def curved(x: [n]f64, t: (f64, [2]f64)) -> f64 =
  let (a, b) = t;
  a * (sum i. x[i]^3) * b[0] + b[1]
";

fn cc(f: &Folder, compiler: &str, arguments: &[&str]) {
    let output = Command::new(compiler).args(arguments).current_dir(f.0.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{compiler} {}: {said}", arguments.join(" "));
    assert_eq!(said, "", "{compiler} {}", arguments.join(" "));
}

/// What a program in the folder prints.
fn execute(f: &Folder, program: &str) -> String {
    let mut command = Command::new(f.path(program));
    let output = command.current_dir(f.0.path()).env("LD_LIBRARY_PATH", f.0.path()).output().unwrap();
    assert!(output.status.success(), "{program}: {}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn build(arguments: &[&str]) -> Folder {
    let f = Folder::with(PROGRAM);
    let built = f.run(&[&["build", "p.iv"], arguments].concat());
    assert_eq!(built.code, 0, "{}", built.err);
    f
}

fn numbers(text: &str) -> Vec<f64> {
    text.split_whitespace().map(|word| word.parse().unwrap_or_else(|_| panic!("{word:?} in {text:?}"))).collect()
}

/// All numbers of a JSON value, in order.
fn flat(json: &Json, out: &mut Vec<f64>) {
    match json {
        Json::Array(items) => items.iter().for_each(|item| flat(item, out)),
        Json::Object(items) => items.values().for_each(|item| flat(item, out)),
        other => out.push(other.as_f64().unwrap_or_else(|| panic!("{other} is no number"))),
    }
}

fn same(found: &[f64], wanted: &[f64]) {
    assert_eq!(found.len(), wanted.len(), "{found:?} {wanted:?}");
    for (a, b) in found.iter().zip(wanted) {
        assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "{found:?} {wanted:?}");
    }
}

/// A main function that calls, and prints numbers.
fn program(body: &str) -> String {
    format!(
        "#include \"p.h\"\n#include <stdio.h>\n#include <stdlib.h>\n\
         static void show(const double *x, int n) {{ for (int i = 0; i < n; i++) printf(\"%.17g \", x[i]); }}\n\
         static void ok(int32_t status) {{ if (status) {{ printf(\"%d: %s\\n\", (int)status, p_message()); exit(1); }} }}\n\
         int main(void)\n{{\n    (void)show, (void)ok;\n{body}    return 0;\n}}\n"
    )
}

const LOSS: &str = "\
    const double w[2] = {0.5, -1.25}, X[6] = {1, 2, 3, 4, 5, 6}, y[3] = {1, 0, 2};
    double value, gw[2], gb, gX[6], gy[3];
    ok(p_loss(2, 3, w, 0.75, X, y, &value));
    show(&value, 1);
    ok(p_value_and_grad_loss(2, 3, w, 0.75, X, y, &value, gw, &gb, gX, gy));
    show(&value, 1), show(gw, 2), show(&gb, 1), show(gX, 6), show(gy, 3);
";

#[test]
fn c_programs_compute_what_the_command_does() {
    let f = build(&["loss", "--derivative", "value-and-grad", "--lib", "static,shared,source"]);
    f.write("main.c", program(LOSS));
    let arguments = ["p.iv", "loss", "w=[0.5,-1.25]", "b=0.75", "X=[[1,2],[3,4],[5,6]]", "y=[1,0,2]", "--json"];
    let mut wanted = vec![];
    flat(&f.run(&[&["run"], &arguments[..]].concat()).json(), &mut wanted);
    let all = f.run(&[&["value-and-grad"], &arguments[..]].concat()).json();
    flat(&all["value"], &mut wanted);
    for name in ["w", "b", "X", "y"] {
        flat(&all["grad"][name], &mut wanted);
    }
    cc(&f, "cc", &["-std=c99", "-Wall", "-Wextra", "-pedantic", "main.c", "libp.a", "-lm", "-o", "static"]);
    same(&numbers(&execute(&f, "static")), &wanted);
    cc(&f, "cc", &["main.c", "-L.", "-lp", "-lm", "-o", "shared"]);
    std::fs::remove_file(f.path("libp.a")).unwrap();
    same(&numbers(&execute(&f, "shared")), &wanted);
    // The text alone, with every check the compiler has.
    cc(&f, "cc", &["-g", "-fsanitize=undefined", "-fno-sanitize-recover", "main.c", "p.c", "-lm", "-o", "checked"]);
    same(&numbers(&execute(&f, "checked")), &wanted);
}

#[test]
fn cpp_programs_link() {
    if Command::new("g++").arg("--version").output().is_err() {
        return;
    }
    let f = build(&["loss", "--derivative", "value-and-grad"]);
    f.write("main.cpp", program(LOSS));
    cc(&f, "g++", &["-Wall", "-Wextra", "main.cpp", "libp.a", "-lm", "-o", "main"]);
    assert_eq!(numbers(&execute(&f, "main")).len(), 14);
}

#[test]
fn tuples_and_integers_and_truth() {
    let f = build(&["both"]);
    f.write(
        "main.c",
        program("    double x[2] = {1.5, 2}, total, scaled[2];\n    int64_t at[2];\n    ok(p_both(2, x, 3, true, &total, scaled, at));\n    show(&total, 1), show(scaled, 2);\n    printf(\"%d %d\", (int)at[0], (int)at[1]);\n"),
    );
    cc(&f, "cc", &["main.c", "libp.a", "-lm", "-o", "main"]);
    assert_eq!(numbers(&execute(&f, "main")), [3.5, 4.5, 6.0, 0.0, 3.0]);
    assert!(f.read("p.h").contains("bool up, double *result_0, double *result_1_0,"), "{}", f.read("p.h"));
}

#[test]
fn sizes_that_depend_on_data() {
    let f = build(&["positive", "--derivative", "jvp"]);
    f.write(
        "main.c",
        program(
            "    double x[5] = {3, -1, 4, -1, 5}, dx[5] = {1, 2, 3, 4, 5};\n    int64_t m;\n    ok(p_positive_size(5, x, &m));\n\
             \x20   double *y = malloc(m * sizeof *y), *dy = malloc(m * sizeof *dy);\n    int64_t *at = malloc(m * sizeof *at);\n\
             \x20   ok(p_positive(5, x, m, y, at));\n    show(y, (int)m);\n    for (int i = 0; i < m; i++) printf(\"%d \", (int)at[i]);\n\
             \x20   ok(p_jvp_positive(5, x, m, dx, y, at, dy));\n    show(dy, (int)m);\n    free(y), free(dy), free(at);\n",
        ),
    );
    cc(&f, "cc", &["main.c", "libp.a", "-lm", "-o", "main"]);
    assert_eq!(numbers(&execute(&f, "main")), [3.0, 4.0, 5.0, 0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
    assert!(f.read("p.h").contains("p_positive_size"), "{}", f.read("p.h"));
}

#[test]
fn generic_functions_at_chosen_types() {
    let f = build(&["norm", "norm[f32]", "norm[f32]:grad", "norm[i64]", "mixed[f32, i32]"]);
    f.write(
        "main.c",
        program(
            "    double x[2] = {3, 4}, d;\n    float y[2] = {1.5f, 2}, s, g[2], t;\n    int64_t k[2] = {5, 6}, i;\n    int32_t l[2] = {2, 3};\n\
             \x20   ok(p_norm(2, x, &d)), ok(p_norm_f32(2, y, &s)), ok(p_grad_norm_f32(2, y, g)), ok(p_norm_i64(2, k, &i));\n\
             \x20   ok(p_mixed_f32_i32(2, y, l, &t));\n    printf(\"%g %g %g %g %d %g\", d, s, g[0], g[1], (int)i, t);\n",
        ),
    );
    cc(&f, "cc", &["main.c", "libp.a", "-lm", "-o", "main"]);
    assert_eq!(numbers(&execute(&f, "main")), [25.0, 6.25, 3.0, 4.0, 61.0, 9.0]);
    f.run(&["build", "p.iv", "norm[f16]"]).fails(&["no type `f16`", "there are `f64`, `f32`"]);
    f.run(&["build", "p.iv", "norm[f32, f64]"]).fails(&["`norm` is given 2 types of elements, but 1 type is wanted"]);
    f.run(&["build", "p.iv", "loss[f32]"]).fails(&["`loss` is not generic"]);
    f.run(&["build", "p.iv", "norm[f32"]).fails(&["lacks its `]`"]);
    f.run(&["build", "p.iv", "nrm[f32]"]).fails(&["did you mean `norm`?"]);
    f.run(&["build", "p.iv", "norm[bool]"]).fails(&["`bool`"]);
    // Other commands know such names, too.
    assert_eq!(f.run(&["run", "p.iv", "norm[f32]", "x=[0.1]"]).out, "0.010000001\n");
    assert!(f.run(&["show", "p.iv", "norm[i32]"]).out.starts_with("def norm_i32(x: [n]i32) -> i32"));
}

/// Matrix products large enough for the library's own kernel, of sizes that fill no block.
#[test]
fn matrix_products() {
    for options in [&[][..], &["--march", "any"], &["--openmp"]] {
        let f = build(&[&["product", "squares:grad", "single"], options].concat());
        f.write(
            "main.c",
            program(
                "    enum { M = 131, K = 299, N = 77 };\n    static double A[M * K], B[K * N], C[M * N], gA[M * K], gB[K * N];\n\
                 \x20   for (int i = 0; i < M * K; i++) A[i] = (i * 7919 % 1000) / 1000.0 - 0.5;\n\
                 \x20   for (int i = 0; i < K * N; i++) B[i] = (i * 6007 % 1000) / 1000.0 - 0.5;\n\
                 \x20   ok(p_product(M, K, N, A, B, C));\n    ok(p_grad_squares(M, K, N, A, B, gA, gB));\n    double worst = 0;\n\
                 \x20   for (int i = 0; i < M; i++) for (int j = 0; j < N; j++) { double s = 0; for (int k = 0; k < K; k++) s += A[i * K + k] * B[k * N + j]; s -= C[i * N + j]; if (s < 0) s = -s; if (s > worst) worst = s; }\n\
                 \x20   for (int i = 0; i < M; i++) for (int k = 0; k < K; k++) { double s = 0; for (int j = 0; j < N; j++) s += 2 * C[i * N + j] * B[k * N + j]; s -= gA[i * K + k]; if (s < 0) s = -s; if (s > worst) worst = s; }\n\
                 \x20   for (int k = 0; k < K; k++) for (int j = 0; j < N; j++) { double s = 0; for (int i = 0; i < M; i++) s += 2 * C[i * N + j] * A[i * K + k]; s -= gB[k * N + j]; if (s < 0) s = -s; if (s > worst) worst = s; }\n\
                 \x20   static float a[M * K], b[K * N], c[M * N];\n    for (int i = 0; i < M * K; i++) a[i] = A[i];\n    for (int i = 0; i < K * N; i++) b[i] = B[i];\n\
                 \x20   ok(p_single(M, K, N, a, b, c));\n    for (int i = 0; i < M * N; i++) { double s = 1e-6 * (C[i] - c[i]); if (s < 0) s = -s; if (s > worst) worst = s; }\n\
                 \x20   printf(\"%g\", worst);\n",
            ),
        );
        cc(
            &f,
            "cc",
            &[&["-O2", "main.c", "libp.a", "-lm", "-o", "main"], &["-fopenmp"][..options.iter().filter(|o| **o == "--openmp").count()]]
                .concat(),
        );
        let worst = numbers(&execute(&f, "main"))[0];
        assert!(worst < 1e-10, "{worst}");
        assert!(f.run(&["build", "p.iv", "product", "--lib", "source"]).code == 0 && f.read("p.c").contains("iv_library_gemm"));
    }
}

#[test]
fn errors_have_codes_and_words() {
    let f = build(&["take", "quotient", "whole", "best", "big", "narrow"]);
    f.write(
        "main.c",
        program(
            "    double x[3] = {1, 2, 3}, out[2];\n    int64_t at[2] = {2, 3}, n;\n    (void)n;\n\
             \x20   printf(\"[%s]\\n\", p_message());\n\
             \x20   printf(\"%d %d %s\\n\", (int)p_take(3, 2, x, at, out), P_INDEX_OUT_OF_RANGE, p_message());\n\
             \x20   printf(\"%d %d %s\\n\", (int)p_take(3, -1, x, at, out), P_BAD_SIZE, p_message());\n\
             \x20   printf(\"%d %d %s\\n\", (int)p_quotient(1, 0, &n), P_DIVISION_BY_ZERO, p_message());\n\
             \x20   printf(\"%d %d %s\\n\", (int)p_whole(1e300, &n), P_NO_INTEGER, p_message());\n\
             \x20   printf(\"%d %d %s\\n\", (int)p_best(0, x, &n), P_NOTHING_TO_CHOOSE, p_message());\n\
             \x20   printf(\"%d %d %s\\n\", (int)p_big((int64_t)1 << 60, 1.0, out), P_NO_MEMORY, p_message());\n\
             \x20   int32_t i, j;\n    printf(\"%d %s\\n\", (int)p_narrow(1e30, 1, &i, &j), p_message());\n\
             \x20   printf(\"%d %d %s\\n\", (int)p_narrow(1, 3000000000, &i, &j), P_TOO_LARGE, p_message());\n\
             \x20   at[1] = 0;\n    printf(\"%d %g\\n\", (int)p_take(3, 2, x, at, out), out[0]);\n",
        ),
    );
    cc(&f, "cc", &["main.c", "libp.a", "-lm", "-o", "main"]);
    let said = execute(&f, "main");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "[]");
    assert_eq!(lines[1], "1 1 p.iv:17:52: index 3 is out of range for an axis of size 3");
    assert_eq!(lines[2], "101 101 p_take: a size is -1, but sizes are 0 or more");
    assert_eq!(lines[3], "3 3 p.iv:19:39: integer division by zero");
    assert_eq!(lines[4], "5 5 p.iv:21:28: 1e+300 cannot be converted to `i64`");
    assert_eq!(lines[5], "2 2 p.iv:23:30: the index of the extreme of nothing was asked for");
    assert_eq!(lines[6], "100 100 p_big: the call does not fit in memory");
    assert_eq!(lines[7], "5 p.iv:15:45: 1e+30 cannot be converted to `i32`");
    assert_eq!(lines[8], "6 6 p.iv:15:53: 3000000000 cannot be converted to `i32`");
    assert_eq!(lines[9], "0 3");
}

/// Several threads at once, each with its own memory and its own errors; and nothing is left behind.
#[test]
fn calls_are_independent_and_leave_nothing() {
    let f = build(&["big", "take"]);
    f.write(
        "main.c",
        "#include \"p.h\"\n#include <malloc.h>\n#include <pthread.h>\n#include <stdio.h>\n#include <string.h>\n\
         static void *work(void *at)\n{\n    const int64_t mine = 5 + (int64_t)(intptr_t)at;\n    char wanted[32];\n\
         \x20   snprintf(wanted, sizeof wanted, \"index %d is out\", (int)mine);\n\
         \x20   for (int k = 0; k < 200; k++) {\n        double out, x[2] = {1, 2}, first;\n        p_big(1000 + mine, 1.0, &first);\n        p_big(1000 + mine, 1.0, &out);\n\
         \x20       if (first != out) return \"differs\";\n        if (p_take(2, 1, x, &mine, &out) != P_INDEX_OUT_OF_RANGE) return \"no error\";\n\
         \x20       if (!strstr(p_message(), wanted)) return \"wrong words\";\n    }\n    return NULL;\n}\n\
         int main(void)\n{\n    double out;\n    p_big(2000, 1.0, &out);\n    const size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;\n\
         \x20   for (int k = 0; k < 50; k++) p_big(2000 + k, 1.0, &out);\n    const size_t after = mallinfo2().uordblks + mallinfo2().hblkhd;\n\
         \x20   if (after != before) printf(\"%d bytes are left\", (int)(after - before));\n    pthread_t threads[4];\n\
         \x20   for (intptr_t k = 0; k < 4; k++) pthread_create(&threads[k], NULL, work, (void *)k);\n\
         \x20   for (int k = 0; k < 4; k++) { void *said; pthread_join(threads[k], &said); if (said) puts(said); }\n    return 0;\n}\n",
    );
    cc(&f, "cc", &["main.c", "libp.a", "-lm", "-lpthread", "-o", "main"]);
    assert_eq!(execute(&f, "main"), "");
}

#[test]
fn every_derivative_has_names_for_its_results() {
    let kinds = ["grad", "value-and-grad", "jvp", "vjp", "jacobian", "hessian", "hvp"];
    let functions: Vec<String> = kinds.iter().map(|kind| format!("curved:{kind}")).collect();
    let arguments: Vec<&str> = functions.iter().map(String::as_str).chain(["--lib", "source"]).collect();
    let f = build(&arguments);
    let header = f.read("p.h");
    for names in [
        "double *grad_x, double *grad_t_0,\n                      double *grad_t_1);",
        "double *value, double *grad_x, double *grad_t_0, double *grad_t_1);",
        "double *value, double *tangent);",
        "double *cotangent_x, double *cotangent_t_0, double *cotangent_t_1);",
        "double *jacobian_x, double *jacobian_t_0, double *jacobian_t_1);",
        "double *hessian_x_x,",
        "double *hessian_t_1_t_1);",
    ] {
        let spaced = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(spaced(&header).contains(&spaced(names)), "{names} is not in\n{header}");
    }
    f.write("main.c", "#include \"p.h\"\nint main(void) { return 0; }\n");
    cc(&f, "cc", &["main.c", "p.c", "-lm", "-o", "main"]);
}

/// Code for chosen sizes and values: they are no arguments.
#[test]
fn functions_at_chosen_sizes() {
    let f = build(&["loss:grad", "both", "--wrt", "w", "--with", "d=2", "--with", "k=3", "--lib", "source"]);
    let body = "\
    const double w[2] = {0.5, -1.25}, X[6] = {1, 2, 3, 4, 5, 6}, y[3] = {1, 0, 2};
    double gw[2], total, scaled[2];
    int64_t multiples[2];
    ok(p_grad_loss_wrt_w(3, w, 0.75, X, y, gw));
    show(gw, 2);
    ok(p_both(2, w, true, &total, scaled, multiples));
    show(scaled, 2);
    printf(\"%d\", (int)multiples[1]);
";
    f.write("main.c", program(body));
    cc(&f, "cc", &["main.c", "p.c", "-lm", "-o", "main"]);
    let arguments = ["p.iv", "loss", "w=[0.5,-1.25]", "b=0.75", "X=[[1,2],[3,4],[5,6]]", "y=[1,0,2]", "--wrt", "w", "--json"];
    let mut wanted = vec![];
    flat(&f.run(&[&["grad"], &arguments[..]].concat()).json()["w"], &mut wanted);
    wanted.extend([1.5, -3.75, 3.0]);
    same(&numbers(&execute(&f, "main")), &wanted);

    let folder = Folder::with(PROGRAM);
    for (with, said) in [
        ("q=2", "no function has a size or parameter `q`"),
        ("d=-1", "a size is not negative"),
        ("w=[1,2]", "only sizes and single numbers are given so"),
        ("b=true", "expected f64"),
    ] {
        let failed = folder.run(&["build", "p.iv", "loss", "--with", with, "--lib", "source"]);
        assert!(failed.code == 1 && failed.err.contains(said), "{}", failed.err);
    }
}

/// Names of parameters that C has other uses for.
#[test]
fn names_are_safe() {
    let f = build(&["words"]);
    f.write("main.c", program("    double x[2] = {1, 2}, y;\n    ok(p_words(2, x, 3.0, 4.0, &y));\n    show(&y, 1);\n"));
    cc(&f, "cc", &["main.c", "libp.a", "-lm", "-o", "main"]);
    assert_eq!(numbers(&execute(&f, "main")), [36.0]);
    assert!(f.read("p.h").contains("(int64_t int_, const double *default_, double class_, double result, double *result_2)"));
}

#[test]
fn python_can_call() {
    if Command::new("python3").arg("--version").output().is_err() {
        return;
    }
    let f = build(&["loss:grad", "--wrt", "w", "--lib", "shared"]);
    f.write(
        "call.py",
        "import ctypes\nlibrary = ctypes.CDLL('./libp.so')\nD = ctypes.c_double\nw, X, y = (D * 2)(0.5, -1.25), (D * 6)(1, 2, 3, 4, 5, 6), (D * 3)(1, 0, 2)\n\
         grad = (D * 2)()\nn = ctypes.c_int64\nassert library.p_grad_loss_wrt_w(n(2), n(3), w, D(0.75), X, y, grad) == 0\nprint(*grad)\n",
    );
    let output = Command::new("python3").arg("call.py").current_dir(f.0.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut wanted = vec![];
    let arguments = ["grad", "p.iv", "loss", "w=[0.5,-1.25]", "b=0.75", "X=[[1,2],[3,4],[5,6]]", "y=[1,0,2]", "--wrt", "w", "--json"];
    flat(&f.run(&arguments).json(), &mut wanted);
    same(&numbers(&String::from_utf8(output.stdout).unwrap()), &wanted);
}

#[test]
fn where_it_goes() {
    let f = Folder::with(PROGRAM);
    let written = |arguments: &[&str]| f.run(&[&["build", "p.iv", "loss"], arguments].concat()).out;
    assert_eq!(written(&[]), "p.h\nlibp.a\nlibp.so\n");
    assert_eq!(written(&["-o", "out/libmodel.a", "--lib", "static"]), "out/model.h\nout/libmodel.a\n");
    assert_eq!(written(&["-o", "library", "--lib", "source"]), "library.h\nlibrary.c\n");
    f.run(&["build", "p.iv", "loss", "-o", "a-b"]).fails(&["`a-b` cannot be the name of a library"]);
    f.run(&["build", "p.iv", "lost"]).fails(&["no function `lost`", "did you mean `loss`?"]);
    f.run(&["build", "p.iv", "both:grad"]).fails(&["`grad` takes a function that gives one float"]);
    assert_eq!(f.run(&["build", "p.iv", "loss:gradient"]).code, 2);
    let output = f.command(&["build", "p.iv", "loss"]).env("CC", "no-such-compiler").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let output = f.command(&["build", "p.iv", "loss"]).env("AR", "no-such-archiver").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("the archiver `no-such-archiver` was not found"));
}
