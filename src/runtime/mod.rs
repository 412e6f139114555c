//! Compiled code: made by the system's C compiler, kept by content, loaded and called.
//!
//! A function of the IR, free of calls, is lowered and emitted as C. The shared library made from it is kept under a key
//! that covers everything it depends on (`cache.rs`), so that a program that ran before starts without a compiler.

mod cache;
mod call;
mod compile;
pub mod library;
mod pace;
mod profile;
mod steps;
mod team;

use crate::bind;
use crate::diagnostic::{Diagnostic, Span};
use crate::emit;
use crate::ir::{FunctionId, Program};
use crate::loops::Kernel;
use crate::loops::workspace::Call;
use crate::lower;
pub use crate::lower::InLanes;
use crate::types::Lit;
use crate::value::Value;
pub use cache::is_first_sight;
pub use call::Compiled;
pub use profile::Profile;
use std::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// In source order, without vector reductions, vector maths and fused operations: as the interpreter computes.
    pub strict: bool,
    /// Count operations as the cost model does.
    pub count: bool,
    /// Say where the time goes (`profile.rs`).
    pub profile: bool,
    /// Make code for several threads; calls say how many. Without, short loops do not know of them, which is less to compile.
    pub threads: bool,
    /// Products of matrices as such, and sums in the order that memory likes.
    pub contract: bool,
    /// Which loops run in lanes.
    pub lanes: InLanes,
    /// Denormal numbers are zero, as operands and as results, in all threads of a call; the caller's mode comes back after it.
    pub flush: bool,
    pub effort: Effort,
}

/// How long the C compiler may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effort {
    /// For code that runs once: half the time of the compiler, or less.
    Quick,
    /// For code that runs often.
    Full,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            strict: false,
            count: false,
            profile: false,
            threads: true,
            contract: true,
            lanes: InLanes::Some,
            flush: false,
            effort: Effort::Full,
        }
    }
}

/// Why there is no compiled code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub message: String,
    /// What would be right.
    pub notes: Vec<String>,
}

impl Error {
    pub fn new(message: impl Into<String>) -> Error {
        Error { message: message.into(), notes: vec![] }
    }
    pub fn note(mut self, note: impl Into<String>) -> Error {
        self.notes.push(note.into());
        self
    }
    pub fn diagnostic(self, span: Span) -> Diagnostic {
        self.notes.into_iter().fold(Diagnostic::error(span, self.message), |d, note| d.note(note))
    }
}
impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.message)?;
        self.notes.iter().try_for_each(|n| write!(f, "\n  note: {n}"))
    }
}
impl std::error::Error for Error {}

/// The function as loops, for calls like this one: what it does not know of is not taken for granted.
pub fn kernel(program: &Program, id: FunctionId, options: Options, call: &Call) -> Kernel {
    let Options { strict, count, profile, contract, lanes, threads, flush: _, effort: _ } = options;
    let kernel = lower::lower(program, id, lower::Options { strict, count, profile, contract, lanes, threads }, call);
    if let Err(wrong) = crate::loops::verify::verify(&kernel) {
        panic!("lower: {wrong}\n{}", crate::loops::print::print(&kernel));
    }
    kernel
}

/// The function as C, as it is compiled.
pub fn c_source(program: &Program, id: FunctionId, options: Options) -> String {
    emit::c::c(&kernel(program, id, options, &Call::default()), style(options))
}

fn style(options: Options) -> emit::c::Style {
    emit::c::Style { count: options.count, strict: options.strict, embedded: false, profile: options.profile, flush: options.flush }
}

/// What is known of a call with these values before it is made.
pub fn call(program: &Program, id: FunctionId, values: &[Value]) -> Call {
    let sizes = bind::sizes(program, id, values).ok();
    let sizes: Option<Vec<i64>> = sizes.and_then(|sizes| program.function(id).sizes.iter().map(|v| sizes.get(v).copied()).collect());
    Call { sizes: sizes.unwrap_or_default(), scalars: values.iter().flat_map(scalar_leaves).collect() }
}

/// The integers among the leaves of a value.
fn scalar_leaves(value: &Value) -> Vec<Option<i64>> {
    match value {
        Value::Scalar(Lit::I64(n)) => vec![Some(*n)],
        Value::Tuple(parts) => parts.iter().flat_map(scalar_leaves).collect(),
        _ => vec![None],
    }
}

/// The function as code that can be called. Its body has no calls and no derived functions.
pub fn compile(program: &Program, id: FunctionId, options: Options) -> Result<Compiled, Error> {
    compile_for(program, id, options, &Call::default())
}

/// The same for calls of such sizes: loops that are too short for threads there are made without, and those that fill the lanes
/// of vectors without what runs the iterations left over. Other calls have the same results, but for the order of sums; where
/// they need what was left out, it is compiled then.
pub fn compile_for(program: &Program, id: FunctionId, options: Options, call: &Call) -> Result<Compiled, Error> {
    let start = Instant::now();
    let kernel = kernel(program, id, options, call);
    let text = emit::c::c(&kernel, style(options));
    Compiled::new(program, id, options, &kernel, text, start)
}
