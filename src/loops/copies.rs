//! The copies of arrays that a kernel makes, in words: what `lower` could not build or change where it is wanted.

use super::print::expr;
use super::*;
use std::fmt::Write;

/// One line for each copy: from where to where, how many elements, and how often.
pub fn report(kernel: &Kernel) -> String {
    let mut out = String::new();
    block(kernel, &kernel.body, &mut vec![], &mut out);
    if out.is_empty() {
        out.push_str("nothing is copied\n");
    }
    out
}

fn block(kernel: &Kernel, stmts: &[Stmt], loops: &mut Vec<String>, out: &mut String) {
    for stmt in stmts {
        match stmt {
            Stmt::Copy(to, _, from, _, count) => {
                let often = match loops.as_slice() {
                    [] => "once".to_string(),
                    loops => format!("in each step of {}", loops.join(" and ")),
                };
                let name = |b: &Buffer| kernel.buffer(*b).name.clone();
                let _ = writeln!(
                    out,
                    "`{}` to `{}`: {} {}, {often}",
                    name(from),
                    name(to),
                    expr(kernel, count),
                    kernel.buffer(*to).scalar.name()
                );
            }
            Stmt::Loop(l) => {
                loops.push(format!("`{}`", kernel.local(l.index).name));
                block(kernel, &l.body, loops, out);
                loops.pop();
            }
            Stmt::Forever(body) => {
                loops.push("a `while` loop".to_string());
                block(kernel, body, loops, out);
                loops.pop();
            }
            Stmt::If(_, yes, no) => {
                block(kernel, yes, loops, out);
                block(kernel, no, loops, out);
            }
            Stmt::Let(..)
            | Stmt::Var(..)
            | Stmt::Set(..)
            | Stmt::Add(..)
            | Stmt::LeaveUnless(_)
            | Stmt::Allocate(..)
            | Stmt::Zero(..)
            | Stmt::Check(_)
            | Stmt::Count(_)
            | Stmt::Mark(_)
            | Stmt::Gemm(_) => {}
        }
    }
}
