//! Arguments for a function at chosen sizes.

use iverson::ir::{FunctionId, Program};
use iverson::types::{Lit, Type, Var};
use iverson::value::{Data, Value};

/// What every function is tried at: nothing, one, and numbers that no block or vector divides. The first sizes of a
/// function take the numbers in this order, the next ones from one place further on, so that axes differ.
pub const SIZES: [i64; 4] = [0, 1, 7, 17];

/// Floats that look random and are no round numbers; integers are `integer`, those in arrays count up to it.
pub fn sample(ty: &Type, size: &impl Fn(Var) -> Option<i64>, integer: i64, seed: &mut f64) -> Value {
    let mut value = Value::zero(ty, size).expect("the sizes are known");
    value.for_each_float(&mut |x| {
        *seed += 1.0;
        // Sines alone would make every matrix one of rank 2.
        *x = ((*seed * 12.9898).sin() * 43.7585).fract() * 1.3;
    });
    fill_integers(&mut value, integer);
    value
}

fn fill_integers(value: &mut Value, integer: i64) {
    match value {
        Value::Scalar(Lit::I64(k)) => *k = integer,
        Value::Scalar(Lit::I32(k)) => *k = integer as i32,
        Value::Scalar(_) => {}
        Value::Array(a) => {
            let at = |i: usize| (i as i64 * 3) % integer.max(1);
            match &mut a.data {
                Data::I64(v) => v.iter_mut().enumerate().for_each(|(i, k)| *k = at(i)),
                Data::I32(v) => v.iter_mut().enumerate().for_each(|(i, k)| *k = at(i) as i32),
                Data::F64(_) | Data::F32(_) | Data::Bool(_) => {}
            }
        }
        Value::Tuple(parts) => parts.iter_mut().for_each(|v| fill_integers(v, integer)),
    }
}

/// The arguments of a function whose `k`-th size is `sizes[k mod length]`.
pub fn arguments(program: &Program, id: FunctionId, sizes: &[i64], integer: i64) -> Vec<Value> {
    let f = program.function(id);
    let mut seed = 0.0;
    let mut args: Vec<Value> = vec![];
    for (k, p) in f.params.iter().enumerate() {
        // Sizes that depend on data are what they must be.
        if f.hidden.is_some_and(|h| h.at == k) {
            args = super::with_sizes(program, id, args.clone()).unwrap_or(args);
        }
        if args.len() > k {
            continue;
        }
        // A size may also be an integer parameter's value.
        let given = |v: Var| f.params.iter().position(|p| *p == v).and_then(|k| args.get(k)).and_then(Value::as_i64);
        let size = |v: Var| f.sizes.iter().position(|s| *s == v).map(|k| sizes[k % sizes.len()]).or_else(|| given(v)).or(Some(integer));
        args.push(sample(program.vars.ty(*p), &size, integer, &mut seed));
    }
    args
}

/// The arguments at every of `SIZES`.
pub fn sweep(program: &Program, id: FunctionId) -> Vec<Vec<Value>> {
    (0..SIZES.len())
        .map(|k| {
            let sizes: Vec<i64> = (0..SIZES.len()).map(|j| SIZES[(k + j) % SIZES.len()]).collect();
            // Integers are as often places of a small axis as they are sizes.
            arguments(program, id, &sizes, sizes[0])
        })
        .collect()
}
