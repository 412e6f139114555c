//! Forward Jacobians by few parameters, whose columns are put together by what depends on few numbers, against reverse ones: on
//! random chains of small matrices.

mod harness;
mod random;

use harness::sample;
use iverson::check::{DerivativeKind, check, derive};
use iverson::interpret;
use iverson::ir::*;
use iverson::pipeline::{Without, prepare, prepare_without};
use iverson::syntax::parse;
use iverson::value::compare::{Tolerance, check_close};
use random::Random;

const CLOSE: Tolerance = Tolerance { relative: 1e-9, absolute: 1e-9 };
const PROGRAMS: u64 = 150;

struct Writer {
    random: Random,
    numbers: Vec<String>,
    matrices: Vec<String>,
}

impl Writer {
    fn one_of(&mut self, choices: &[&str]) -> String {
        choices[self.random.below(choices.len())].to_string()
    }
    fn matrix(&mut self) -> String {
        self.matrices[self.random.below(self.matrices.len())].clone()
    }

    fn number(&mut self, depth: usize) -> String {
        let inner = |me: &mut Self| me.number(depth + 1);
        match if depth > 2 { 0 } else { self.random.below(12) } {
            0..=2 if !self.numbers.is_empty() && self.random.below(3) == 0 => {
                let k = self.random.below(self.numbers.len());
                self.numbers[k].clone()
            }
            0..=2 => self.one_of(&["angle[k mod 16]", "x[k, 0]", "x[k, 1]", "x[k, 0]", "0.5", "angle[k mod 16]", "angle[0]"]),
            3 => format!("sin({})", inner(self)),
            4 => format!("cos({})", inner(self)),
            5 => format!("[k mod 2 == 0] * ({})", inner(self)),
            6 if self.random.below(6) == 0 => format!("(if k < 1 then {} else {})", inner(self), inner(self)),
            6 => format!("exp(0.1 * {})", inner(self)),
            _ => format!("({} {} {})", inner(self), self.one_of(&["+", "-", "*", "*"]), inner(self)),
        }
    }

    fn program(mut self) -> String {
        let mut lines = vec![];
        for k in 0..1 + self.random.below(3) {
            lines.push(format!("let s{k} = {};", self.number(0)));
            self.numbers.push(format!("s{k}"));
        }
        for k in 0..3 + self.random.below(3) {
            let value = match if self.matrices.is_empty() { 0 } else { self.random.below(16) } {
                0..=2 => format!("[[{}, {}], [{}, {}]]", self.number(1), self.number(1), self.number(1), self.number(1)),
                3 => {
                    let at = self.one_of(&["k mod 2", "j"]);
                    format!("for i in 0..2, j in 0..2. [i == {at}] * {}[j, i] * {}", self.matrix(), self.number(2))
                }
                4 => format!("for i in 0..2, j in 0..2. angle[i + 3] * {}[i, j]", self.matrix()),
                _ => format!("for i in 0..2, j in 0..2. sum l. {}[i, l] * {}[l, j]", self.matrix(), self.matrix()),
            };
            lines.push(format!("let m{k} = {value};"));
            self.matrices.push(format!("m{k}"));
        }
        let last = self.matrices.last().expect("there are some").clone();
        lines.push(format!("for i in 0..2, j in 0..2. sum l. {last}[i, l] * {}[l, j];", self.matrix()));
        let behind = self.one_of(&[
            "for k, i, j. t[k, i, j] * (sum q. t[q, j, i])",
            "loop A = t for k in 1..n do A with [k] = (for i, j. sum l. A[k - 1, i, l] * t[k, l, j])",
        ]);
        let lines = lines.join("\n    ");
        format!("def f(angle: [16]f64, x: [n, 2]f64) -> [n, 2, 2]f64 =\n  let t = for k in 0..n.\n    {lines}\n  {behind}\n")
    }
}

#[test]
fn columns_by_few_numbers_are_those_of_reverse_mode() {
    let mut shorter = 0;
    for seed in 0..PROGRAMS {
        let text = Writer { random: Random((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)), numbers: vec![], matrices: vec![] }.program();
        let (module, wrong) = parse(0, &text);
        assert!(wrong.is_empty(), "{text}{wrong:?}");
        let (mut program, wrong) = check(&module);
        assert!(wrong.is_empty(), "{text}{wrong:?}");
        let f = program.find("f").unwrap();
        let wrt = [String::from("angle")];
        let forward = derive(&mut program, f, DerivativeKind::JacFwd, Some(&wrt)).unwrap();
        let reverse = derive(&mut program, f, DerivativeKind::JacRev, Some(&wrt)).unwrap();
        let args = sample::arguments(&program, f, &[3], seed as i64);
        let columns = prepare(&program, forward, None);
        verify::verify(&columns).unwrap_or_else(|e| panic!("{text}{e}"));
        let found = interpret::call(&columns, forward, &args).unwrap().0;
        let wanted = interpret::call(&prepare(&program, reverse, None), reverse, &args).unwrap().0;
        check_close(&found, &wanted, CLOSE).unwrap_or_else(|e| panic!("seed {seed}\n{text}{e}"));
        let without = Without(vec!["preaccumulate"]);
        let plain = prepare_without(&program, forward, None, Default::default(), &without);
        shorter += (print::print_function(&plain, forward) != print::print_function(&columns, forward)) as u64;
    }
    assert!(shorter >= PROGRAMS / 20, "only {shorter} of {PROGRAMS} programs have such columns");
}
