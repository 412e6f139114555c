//! Programs of hundreds of values are simplified whole, not only as far as some number of rounds gets.

mod harness;

use iverson::ir::print::print_program;
use iverson::pipeline::prepare;
use std::fmt::Write;

/// How many values follow each other.
const STEPS: usize = 200;

fn simplified(text: &str) -> String {
    let program = harness::load(text).unwrap_or_else(|e| panic!("{e}"));
    let f = program.find("f").expect("there is an f");
    print_program(&prepare(&program, f, Some("simplify")))
}

/// Each is used once, by the next.
#[test]
fn chains_of_values_used_once_are_one_expression() {
    let mut text = "def f(x: f64, y: f64) -> f64 =\n  let v0 = x;\n".to_string();
    for k in 1..=STEPS {
        let _ = writeln!(text, "  let v{k} = sin(v{}) + y;", k - 1);
    }
    let _ = writeln!(text, "  v{STEPS}");
    let prepared = simplified(&text);
    assert_eq!(prepared.matches("sin(").count(), STEPS);
    assert_eq!(prepared.matches("let ").count(), 0, "{prepared}");
}

/// Reads that cannot fail, each used by the next and by the last.
#[test]
fn chains_of_reads_are_where_they_are_used() {
    let mut text = format!("def f(x: [{STEPS}]f64) -> f64 =\n  let v0 = x[0];\n  let s0 = v0;\n");
    for k in 1..STEPS {
        let _ = writeln!(text, "  let v{k} = x[{k}];\n  let s{k} = s{} + v{k} * v{};", k - 1, k - 1);
    }
    let _ = writeln!(text, "  s{}", STEPS - 1);
    let prepared = simplified(&text);
    assert_eq!(prepared.matches("let ").count(), 0, "{prepared}");
}
