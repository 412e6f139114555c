//! What must hold of every program: used by the golden programs and the random ones.
//!
//! A *subject* is a function of a checked program. Of a call of it at arguments, `call` demands that
//! the interpreter's value is the same before and after every pass, that every stage verifies and reads back from its
//! print, and that the compiled code gives the same. `derivatives` demands that forward and reverse mode are
//! dual, agree with differences, and that the gradient is as cheap as it should be.
#![allow(dead_code)]

pub mod derivatives;
pub mod matrices;
pub mod sample;
pub mod stages;

use iverson::bind;
use iverson::diagnostic::render;
use iverson::ir::equal::equal_up_to_renaming;
use iverson::ir::print::print_program;
use iverson::ir::verify::verify;
use iverson::ir::{FunctionId, Program};
use iverson::load::Loaded;
use iverson::value::Value;

/// The checked program of a text, or its rendered diagnostics.
pub fn load(text: &str) -> Result<Program, String> {
    let loaded = read(text);
    match loaded.has_errors() {
        true => Err(render(&loaded.diagnostics, &loaded.sources, false)),
        false => Ok(loaded.program.expect("a text without errors is a program")),
    }
}

/// All diagnostics of a text, and the program if it could be checked.
pub fn read(text: &str) -> Loaded {
    iverson::load::load("golden.iv", text, &[])
}

/// The program verifies, and its print reads back as the same program.
pub fn sound(program: &Program) -> Result<(), String> {
    verify(program).map_err(|e| format!("does not verify: {e}\n{}", print_program(program)))?;
    let text = print_program(program);
    let again = load(&text).map_err(|e| format!("its print is wrong:\n{e}\n{text}"))?;
    verify(&again).map_err(|e| format!("what is read back from its print does not verify: {e}\n{text}"))?;
    equal_up_to_renaming(program, &again).map_err(|e| format!("its print reads back as another program: {e}\n{text}"))
}

/// Inner product of the floats of two values of one shape.
pub fn inner(a: &Value, b: &Value) -> f64 {
    a.floats().iter().zip(b.floats()).map(|(x, y)| x * y).sum()
}

/// The number of floats.
pub fn size(value: &Value) -> u64 {
    value.floats().len() as u64
}

/// A direction for every float of a value: small odd numbers, so that nothing cancels.
pub fn direction(value: &Value, seed: u64) -> Option<Value> {
    let mut direction = value.tangent_part()?;
    let mut state = seed.wrapping_mul(0x9e3779b97f4a7c15) | 1;
    direction.for_each_float(&mut |x| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        *x = (state >> 40) as f64 / (1u64 << 24) as f64 + 0.25;
        if state >> 39 & 1 == 1 {
            *x = -*x;
        }
    });
    Some(direction)
}

/// The arguments with the sizes that depend on them, which the program computes.
pub fn with_sizes(program: &Program, id: FunctionId, mut args: Vec<Value>) -> Result<Vec<Value>, String> {
    if let Some(hidden) = program.function(id).hidden {
        let sizes = iverson::pipeline::prepare(program, hidden.sizes, None);
        let (found, _) = iverson::interpret::call(&sizes, hidden.sizes, &args[..hidden.at]).map_err(|f| f.message)?;
        let found = match found {
            Value::Tuple(found) => found,
            found => vec![found],
        };
        args.splice(hidden.at..hidden.at, found);
    }
    Ok(args)
}

/// Whether the arguments fit the function, sizes included.
pub fn fits(program: &Program, id: FunctionId, args: &[Value]) -> Result<(), String> {
    bind::sizes(program, id, args).map(|_| ()).map_err(|e| format!("{e:?}"))
}
