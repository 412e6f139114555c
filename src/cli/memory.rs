//! What a derivative keeps for its way back: all that it needs where that fits in memory, else blocks of loops that do.

use iverson::differentiate::saving::{Depth, Saving};
use iverson::ir::{Body, FunctionId, Program};
use iverson::loops::workspace::Call;
use iverson::pipeline::Without;
use iverson::{loops, memory, pipeline, runtime};

/// What is known of a call before it is made.
pub struct Known {
    pub call: Call,
    pub threads: usize,
}

/// A function prepared for a call.
pub struct Choice {
    pub program: Program,
    pub saving: Saving,
    /// The memory that the call takes besides its arguments and results, where it is known before.
    pub bytes: Option<u64>,
    pub budget: u64,
}

/// What is kept where nothing is known of calls: all, or blocks of loops where that is asked for.
pub fn asked(memory: Option<u64>) -> Saving {
    memory.map_or(Saving::All, |bytes| Saving::Within { bytes, depth: Depth::Outermost })
}

/// Prepares a function so that it fits in memory, as far as that can be known before it runs. Where how often loops run is
/// known only then, they are cut into blocks that fit: a loop of one block costs nothing more.
pub fn choose(program: &Program, id: FunctionId, budget: Option<u64>, without: &Without, known: impl Fn(&Program) -> Known) -> Choice {
    let budget = budget.unwrap_or_else(memory::budget);
    let tried = |saving: Saving| {
        let program = pipeline::prepare_without(program, id, None, saving, without);
        let kernel = runtime::kernel(&program, id, super::execute::settings(without), &Call::default());
        let Known { call, threads } = known(&program);
        let bytes = if call.sizes.len() == kernel.sizes.len() { loops::workspace::bytes(&kernel, &call, threads) } else { None };
        (Choice { program, saving, bytes: bytes.filter(|_| kernel.reserves == 0), budget }, bytes.is_some_and(|b| b > budget))
    };
    let derives = program.functions.iter().any(|f| matches!(f.body, Body::Derived { .. } | Body::Jacobian { .. }));
    let (all, exceeds) = tried(Saving::All);
    if !derives || (all.bytes.is_some() && !exceeds) {
        return all;
    }
    let within = |depth| Saving::Within { bytes: budget, depth };
    let (outermost, exceeds) = tried(within(Depth::Outermost));
    if outermost.program.function(id) == all.program.function(id) {
        return all;
    }
    if exceeds { tried(within(Depth::All)).0 } else { outermost }
}
