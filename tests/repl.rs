//! `iverson repl`, driven through a pipe: what it says, what it keeps, and that nothing ends it but `:quit`.

mod folder;
mod terminal;

use folder::{Finished, Folder};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

fn session(inputs: &str) -> Finished {
    Folder::with("").run_on(inputs, &["repl"])
}

/// What is printed, where nothing is wrong.
fn said(inputs: &str) -> String {
    let finished = session(inputs);
    assert_eq!((finished.code, finished.err.as_str()), (0, ""), "{}", finished.out);
    finished.out
}

#[test]
fn expressions_are_evaluated() {
    assert_eq!(said("1 + 2\n"), "3\n");
    assert_eq!(said("1 + 2"), "3\n");
    assert_eq!(said("2.5 * 2; -- with an end\n"), "5\n");
    assert_eq!(said("[1, 2, 3]\n(true, 1.5)\n"), "[1, 2, 3]\n(true, 1.5)\n");
    assert_eq!(said("let x = 2; x * x\n"), "4\n");
    assert_eq!(said("\n-- nothing\n\n7\n"), "7\n");
    // The library is there.
    assert_eq!(said("dot([1.0, 2.0], [3.0, 4.0])\n"), "11\n");
}

#[test]
fn values_keep_their_names() {
    assert_eq!(said("let x = [1.0, 2.0]\nsum i. x[i]\nit * 2\n"), "x = [1, 2]\n3\n6\n");
    assert_eq!(said("let x = 1;\nlet x = x + 1\nx\n"), "x = 1\nx = 2\n2\n");
    assert_eq!(said("let (a, (b, c)) = (1, (2.5, [true, false]))\nc[0]\n"), "a = 1\nb = 2.5\nc = [true, false]\ntrue\n");
    assert_eq!(said("let a: f64 = 1; let b = a / 2\nb\n"), "a = 1\nb = 0.5\n0.5\n");
    assert_eq!(said("let p = {w: [1.0], b: 3.0}\np.b + p.w[0]\n"), "p = {w: [1],\n     b: 3}\n4\n");
    assert_eq!(said("let x = (1.5 : f32)\nx\nlet e = for i in 0..0. 1.0\ne\n"), "x = 1.5\n1.5\ne = [] -- [0]f64\n[] -- [0]f64\n");
}

#[test]
fn definitions_and_derivatives() {
    let inputs = "def f(x: [n]f64) -> f64 = sum i. x[i]^2\nlet x = [1.0, 2.0]\ngrad(f)(x)\nhessian(f)(x)\n";
    assert_eq!(said(inputs), "f(x: [n]f64) -> f64\nx = [1, 2]\n[2, 4]\n[[2, 0],\n [0, 2]]\n");
    assert_eq!(said("type P = {a: f64}\ndef get(p: P) -> f64 = p.a\nget({a: 2.0})\n").lines().last(), Some("2"));
    // A definition takes the place of one of its name, for those that use it, too.
    let inputs = "def f(x: f64) -> f64 = x + 1\ndef g(x: f64) -> f64 = 2 * f(x)\ng(1.0)\ndef f(x: f64) -> f64 = x\ng(1.0)\n";
    assert_eq!(said(inputs), "f(x: f64) -> f64\ng(x: f64) -> f64\n4\nf(x: f64) -> f64\n2\n");
    let inputs = "let f = 3.0\ndef f(x: f64) -> f64 = x + 1\nf(1.0)\n";
    assert_eq!(said(inputs).lines().last(), Some("2"));
    assert_eq!(said("def twice(f: f64 -> f64, x: f64) -> f64 = f(f(x))\ntwice(|t| t * t, 3.0)\n").lines().last(), Some("81"));
}

#[test]
fn functions_have_names() {
    assert_eq!(said("let f = |x| x * x\nf(3.0)\nmap(f, [1.0, 2.0])\n"), "f = |x| x * x\n9\n[1, 4]\n");
    assert_eq!(said("def h(x: f64) -> f64 = x^3\nlet d = grad(h)\nd(2.0)\n").lines().last(), Some("12"));
    assert_eq!(said("let add = (+)\nlet s = sin\nreduce(add, 0, [1, 2, 3])\ns(0)\n"), "add = (+)\ns = sin\n6\n0\n");
    // What a function uses is what it was.
    let inputs = "let a = 2\nlet f = |x| a * x\nlet a = 5\nf(10)\nlet f = |x| f(x) + a\nf(10)\nlet a = 0\nf(10)\n";
    assert_eq!(said(inputs).lines().last(), Some("25"));
    assert_eq!(said("let f = |x| x\nlet f = 3\nf\nlet f = |x| x + 1\nf(1)\ndef f(x: i64) -> i64 = 7\nf(1)\n").lines().last(), Some("7"));
    assert_eq!(said("let k = 3\nlet f = |x| k + x\n:list\n"), "k = 3\nf = |x| k + x\nf = |x| k + x\nk: i64\n");
    // What is wrong in it is found where it is used.
    let finished = session("let f = |x| x + y\nf(1)\n");
    assert!(finished.err.contains("unknown name `y`"), "{}", finished.err);
    let finished = session("let f = |x| x + 1\nlet f = nothing\nf(1)\n");
    assert_eq!(finished.out.lines().last(), Some("2"), "{}", finished.err);
}

#[test]
fn habits_of_other_programs() {
    assert!(said("help\n").contains(":show f") && said("?\n").contains(":quit"));
    assert_eq!(said("quit\n1\n"), "");
    assert_eq!(said("exit\n1\n"), "");
    assert_eq!(said("let quit = 3\nquit\n"), "quit = 3\n3\n");
    let finished = session("x = 3\n1\n");
    assert!(finished.err.contains("`x` gets a value by `let`") && finished.err.contains("write `let x = e`"), "{}", finished.err);
}

#[test]
fn inputs_go_on_until_they_are_finished() {
    assert_eq!(said("1 +\n2\n"), "3\n");
    assert_eq!(said("[1,\n\t2]\n"), "[1, 2]\n");
    assert_eq!(said("sum i in 0..3.\nf64(i)\n"), "3\n");
    assert_eq!(said("def f(x: f64) -> f64 =\nlet y = x;\ny * y\nf(3)\n").lines().last(), Some("9"));
    // Lines that are indented belong to the one before.
    assert_eq!(said("def f(x: f64) -> f64 = x\n  + 1\nf(3)\n").lines().last(), Some("4"));
    // An empty line ends what could go on.
    let finished = session("1 +\n\n5\n");
    assert_eq!((finished.code, finished.out.as_str()), (1, "5\n"));
    assert!(finished.err.contains("expected an expression"), "{}", finished.err);
}

#[test]
fn mistakes_lose_nothing() {
    let finished = session("let x = 1\ny\nx +* 2\ndef f(x: f64) -> f64 = y\nlet x = [1][3]\nlet (a, b) = 3\nx\n");
    assert_eq!(finished.code, 1);
    assert_eq!(finished.out, "x = 1\n1\n");
    for part in ["unknown name `y`", "╭─[ input:1:1 ]", "out of range", "the pattern has 2 parts"] {
        assert!(finished.err.contains(part), "{part} is not in {}", finished.err);
    }
    // A definition that breaks another is refused.
    let inputs = "def f(x: f64) -> f64 = x\ndef g(x: f64) -> f64 = f(x)\ndef f(x: f64, y: f64) -> f64 = x\ng(2.0)\n";
    let finished = session(inputs);
    assert_eq!((finished.code, finished.out.lines().last()), (1, Some("2")));
    // What fails while it runs is shown where it stands.
    let finished = session("def at(x: [n]f64, k: i64) -> f64 = x[k]\nat([1.0, 2.0], 7)\n1\n");
    assert!(finished.err.contains("index 7 is out of range") && finished.err.contains("x[k]"), "{}", finished.err);
    assert_eq!(finished.out.lines().last(), Some("1"));
    // What fails in the library is shown with the input that called it.
    let finished = session("def middle(x: [n]f64) -> f64 = median(x)\nmiddle(for i in 0..0. 1.0)\n");
    for part in ["library/statistics.iv", "in this call", "median(x)"] {
        assert!(finished.err.contains(part), "{part} is not in {}", finished.err);
    }
}

#[test]
fn commands() {
    let program = "def f(x: [n]f64) -> f64 = sum i. x[i]^2\n";
    let run = |commands: &str| said(&format!("{program}{commands}")).lines().skip(1).map(|l| format!("{l}\n")).collect::<String>();
    assert_eq!(run(":show f grad\n"), "def grad_f(x: [n]f64) -> [n]f64 = for i. 2.0 * x[i]\n");
    assert_eq!(run(":show f after check\n"), "def f(x: [n]f64) -> f64 = sum i. x[i] ^ 2\n");
    assert!(run(":show f value-and-grad wrt x after check\n").contains("vjp(f, x, 1.0)"));
    assert!(run(":cost f value-and-grad\n").contains("total"));
    assert!(run(":cost f at n=10\n").contains("20"));
    assert_eq!(run(":type f\n"), "f(x: [n]f64) -> f64\n");
    assert_eq!(run(":type grad(f)([1.0, 2.0])\n"), "[2]f64\n");
    assert_eq!(run("let k = 3\n:list\n"), "k = 3\nf(x: [n]f64) -> f64\nk: i64\n");
    assert_eq!(run(":target c\nf([3.0])\n:target interpret\nf([3.0])\n"), "9\n9\n");
    assert!(run(":help\n").contains(":show f"));
    assert_eq!(run(":quit\n1\n"), "");
    let wrong = session(":shwo f\n:show\n:show g\n:cost f\n:target cuda\n:load none.iv\n");
    for part in ["no command `:shwo`", "did you mean `show`?", "no function `g` in this session", "the targets are", "cannot read none.iv"]
    {
        assert!(wrong.err.contains(part), "{part} is not in {}", wrong.err);
    }
}

#[test]
fn files_are_loaded() {
    let f = Folder::with("def f(x: f64) -> f64 = x * x\n");
    f.write("bad.iv", "def g(x: f64) -> f64 = f(\n");
    assert_eq!(f.run_on("f(3)\n", &["repl", "p.iv"]).out, "9\n");
    let loaded = f.run_on(":load p.iv\nf(4)\n:load bad.iv\nf(5)\n", &["repl"]);
    assert_eq!((loaded.code, loaded.out.as_str()), (1, "1 definition\n16\n25\n"));
    assert!(loaded.err.contains("bad.iv:1:"), "{}", loaded.err);
}

/// An interrupt ends the computation, and the session goes on.
#[test]
fn interrupts_end_computations_alone() {
    let f = Folder::with("");
    let mut child = f.command(&["repl"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdin.write_all(b"let x = 41\n").unwrap();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "x = 41\n");
    stdin.write_all(b"loop y = 0.5 for i in 0..100000000000 do sin(y)\nx + 1\n").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(600));
    // SAFETY: the process is ours and has not been waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    line.clear();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "42\n");
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "Error: interrupted\n");
    assert_eq!(output.status.code(), Some(1));
}

/// With a terminal there are prompts and a history.
#[test]
fn terminals_have_a_history() {
    let f = Folder::with("");
    let talk = |history: &str, inputs: &[&str]| {
        let mut command = f.command(&["repl"]);
        command.env("IVERSON_HISTORY", f.path(history));
        let (said, status) = terminal::talk(command, inputs);
        assert!(status.success(), "{said}");
        said
    };
    let said = talk("state/history", &["let x = 5\n", "x *\n", "3\n", "dropped\u{3}", ":quit\n"]);
    assert!(said.contains("x = 5\n") && said.contains("\n15\n"), "{said}");
    assert!(f.read("state/history").contains("let x = 5"));
    // The input before the last comes back, both its lines; the value is gone.
    let said = talk("state/history", &["\u{1b}[A\u{1b}[A\n", ":quit\n"]);
    assert!(said.contains("unknown name `x`"), "{said}");
    // Where no history can be kept, that is said once.
    f.write("file", "");
    let said = talk("file/history", &["1 + 1\n", "2 + 2\n", ":quit\n"]);
    assert_eq!(said.matches("Warning: the history cannot be kept").count(), 1, "{said}");
    assert!(said.contains("\n4\n"));
}
