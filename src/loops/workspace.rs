//! How much memory a call of a kernel takes beside its arguments and results, as far as it is known at entry: the arena
//! for given sizes. Compiled code computes the same before it runs.

use super::*;
use crate::scalar::Op;
use crate::types::size::floor_div;
use rustc_hash::FxHashMap;

/// What each slot is rounded up to.
const LINE: i128 = 64;

/// The bytes of the arena, for sizes and scalar inputs that are given in order; `None` where something is not known. Loops
/// that run over threads have at most as many copies of their buffers as threads.
pub fn bytes(kernel: &Kernel, sizes: &[i64], scalars: &[Option<i64>], threads: usize) -> Option<u64> {
    let mut known: FxHashMap<Local, i128> = kernel.sizes.iter().copied().zip(sizes.iter().map(|n| *n as i128)).collect();
    let locals = kernel.inputs.iter().map(|input| if let Input::Scalar(l) = input { Some(*l) } else { None });
    known.extend(locals.zip(scalars).filter_map(|(l, value)| Some((l?, (*value)? as i128))));
    for (l, e) in &kernel.derived {
        if let Some(value) = evaluate(e, &known) {
            known.insert(*l, value);
        }
    }
    let mut ends: Vec<i128> = vec![];
    for slot in &kernel.arena {
        let start = slot.behind.iter().map(|s| ends[*s]).max().unwrap_or(0);
        let count = evaluate(&slot.count, &known)?.max(0);
        let own = (count.saturating_mul(slot.scalar.bytes() as i128) + LINE - 1) / LINE * LINE;
        let copies = slot.copies.as_ref().map_or(1, |chunks| chunks.most.min(threads).max(1) as i128);
        ends.push(start.saturating_add(own.saturating_mul(copies)));
    }
    Some(u64::try_from(ends.into_iter().max().unwrap_or(0)).unwrap_or(u64::MAX))
}

fn evaluate(e: &Expr, known: &FxHashMap<Local, i128>) -> Option<i128> {
    match e {
        Expr::Lit(Lit::I64(n)) => Some(*n as i128),
        Expr::Local(l) => known.get(l).copied(),
        Expr::Op(op, args) => {
            let args: Vec<i128> = args.iter().map(|a| evaluate(a, known)).collect::<Option<_>>()?;
            match (op, args.as_slice()) {
                (Op::Add, [a, b]) => Some(a.saturating_add(*b)),
                (Op::Sub, [a, b]) => Some(a.saturating_sub(*b)),
                (Op::Mul, [a, b]) => Some(a.saturating_mul(*b)),
                (Op::Neg, [a]) => Some(-a),
                (Op::Max, [a, b]) => Some(*a.max(b)),
                (Op::Min, [a, b]) => Some(*a.min(b)),
                (Op::IDiv, [a, b]) => {
                    let (a, b) = (i64::try_from(*a).ok()?, i64::try_from(*b).ok().filter(|b| *b != 0)?);
                    Some(floor_div(a, b) as i128)
                }
                (Op::IMod, [a, b]) if *b != 0 => Some(a.rem_euclid(*b)),
                _ => None,
            }
        }
        Expr::Lit(_) | Expr::Load(..) | Expr::Partial(..) | Expr::Select(..) => None,
    }
}
