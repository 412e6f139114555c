//! How much memory a call of a kernel takes beside its arguments and results, as far as it is known at entry: the arena
//! for given sizes. Compiled code computes the same before it runs.

use super::*;
use crate::scalar::Op;
use crate::types::size::floor_div;
use rustc_hash::FxHashMap;

/// What each slot is rounded up to.
const LINE: i128 = 64;

/// What is known of a call before it is made: the sizes and the scalar inputs, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Call {
    pub sizes: Vec<i64>,
    pub scalars: Vec<Option<i64>>,
}

/// Locals that are known at entry, and their values.
pub struct Entry(FxHashMap<Local, i128>);

impl Entry {
    pub fn new(kernel: &Kernel, call: &Call) -> Entry {
        let mut known: FxHashMap<Local, i128> = FxHashMap::default();
        if call.sizes.len() == kernel.sizes.len() {
            known.extend(kernel.sizes.iter().copied().zip(call.sizes.iter().map(|n| *n as i128)));
        }
        let locals = kernel.inputs.iter().map(|input| if let Input::Scalar(l) = input { Some(*l) } else { None });
        known.extend(locals.zip(&call.scalars).filter_map(|(l, value)| Some((l?, (*value)? as i128))));
        let mut entry = Entry(known);
        for (l, e) in &kernel.derived {
            if let Some(value) = entry.evaluate(e) {
                entry.0.insert(*l, value);
            }
        }
        entry
    }

    pub fn evaluate(&self, e: &Expr) -> Option<i128> {
        evaluate(e, &self.0)
    }

    /// Whether a condition holds.
    pub fn holds(&self, e: &Expr) -> Option<bool> {
        let Expr::Op(op, args) = e else { return None };
        match (op, args.as_slice()) {
            (Op::Not, [p]) => self.holds(p).map(|p| !p),
            (Op::And, [p, q]) => Some(self.holds(p)? && self.holds(q)?),
            (Op::Or, [p, q]) => Some(self.holds(p)? || self.holds(q)?),
            (Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::Eq | Op::Ne, [a, b]) => {
                let order = self.evaluate(a)?.cmp(&self.evaluate(b)?);
                Some(match op {
                    Op::Lt => order.is_lt(),
                    Op::Le => order.is_le(),
                    Op::Gt => order.is_gt(),
                    Op::Ge => order.is_ge(),
                    Op::Eq => order.is_eq(),
                    _ => order.is_ne(),
                })
            }
            _ => None,
        }
    }

    /// How often a loop runs.
    pub fn trip(&self, l: &Loop) -> Option<i64> {
        let trip = self.evaluate(&l.hi)?.saturating_sub(self.evaluate(&l.lo)?);
        i64::try_from(trip).ok()
    }

    /// How often a loop runs at most, by those of its ends that are known: in `max(0, j - n)..min(j + 1, 5)` that is 5.
    pub fn trip_at_most(&self, l: &Loop) -> Option<i64> {
        let (mut highest, mut lowest) = (None, None);
        operands(&l.hi, Op::Min, &mut |e| highest = [highest, self.evaluate(e)].into_iter().flatten().min());
        operands(&l.lo, Op::Max, &mut |e| lowest = [lowest, self.evaluate(e)].into_iter().flatten().max());
        i64::try_from(highest?.saturating_sub(lowest?).max(0)).ok()
    }

    /// Whether a product is known to be done by the matrix kernel: `iv_is_large`.
    pub fn is_large(&self, g: &Gemm) -> bool {
        let side = |e: &Expr| self.evaluate(e).and_then(|n| i64::try_from(n).ok());
        matches!((side(&g.rows), side(&g.columns), side(&g.depth)), (Some(m), Some(n), Some(k)) if is_large(m, n, k))
    }

    /// Whether a product may be large enough for several threads: `IV_LEAST_SHARED`.
    pub fn may_be_shared(&self, g: &Gemm) -> bool {
        let sides: Option<Vec<i128>> = [&g.rows, &g.columns, &g.depth].into_iter().map(|e| self.evaluate(e)).collect();
        sides.is_none_or(|sides| sides.iter().map(|n| *n as f64).product::<f64>() >= LEAST_SHARED)
    }

    /// Whether a loop that could run over threads has too little to do for that, if it is known: `iv_chunks` is 1.
    pub fn is_one_chunk(&self, chunks: &Chunks) -> Option<bool> {
        let number = |e: &Expr| self.evaluate(e).map(|n| n as f64);
        let (lo, hi, cost, own) = (number(&chunks.lo)?, number(&chunks.hi)?, number(&chunks.cost)?, number(&chunks.private)?);
        let (count, work) = (hi - lo, (hi - lo) * cost);
        if work < 2.0 * GRAIN || count < 2.0 {
            return Some(true);
        }
        let mut chunks = work / GRAIN;
        if own > 0.0 {
            chunks = chunks.min(work / (OWN * own));
            if chunks * own > MOST_OWN {
                chunks = (MOST_OWN / own).max(4.0);
            }
        }
        Some(chunks < 2.0)
    }
}

/// `IV_GRAIN` and `IV_MOST_OWN` of iverson.h, which must be the same: what a chunk of a loop costs at least, and the elements
/// that all chunks may have to themselves.
const GRAIN: f64 = 65536.0;
const MOST_OWN: f64 = 2097152.0;
/// What it costs to zero an element of its own, and to add it up at the end.
const OWN: f64 = 32.0;

/// How many terms a product of matrices must have that threads share it.
pub const LEAST_SHARED: f64 = 524288.0;

/// What makes a product of matrices large in iverson.h.
pub const LEAST_SIDE: i64 = 2;
pub const LEAST_PRODUCT: i64 = 2000;
pub fn is_large(m: i64, n: i64, k: i64) -> bool {
    m >= LEAST_SIDE && n >= LEAST_SIDE && k >= LEAST_SIDE && m as f64 * n as f64 * k as f64 >= LEAST_PRODUCT as f64
}

/// The bytes of the arena; `None` where something is not known. Loops that run over threads have at most as many copies of
/// their buffers as threads; what lies between these (`IV_APART` of iverson.h) is not used, and not counted.
pub fn bytes(kernel: &Kernel, call: &Call, threads: usize) -> Option<u64> {
    let slots = slots(kernel, &Entry::new(kernel, call), threads)?;
    Some(u64::try_from(slots.into_iter().map(|(_, end)| end).max().unwrap_or(0)).unwrap_or(u64::MAX))
}

/// Where the slots of the arena begin and end, in bytes.
pub fn slots(kernel: &Kernel, entry: &Entry, threads: usize) -> Option<Vec<(i128, i128)>> {
    let mut slots: Vec<(i128, i128)> = vec![];
    for slot in &kernel.arena {
        let start = slot.behind.iter().map(|s| slots[*s].1).max().unwrap_or(0);
        let count = entry.evaluate(&slot.count)?.max(0);
        let own = (count.saturating_mul(slot.scalar.bytes() as i128) + LINE - 1) / LINE * LINE;
        let copies = slot.copies.as_ref().map_or(1, |chunks| chunks.most.min(threads).max(1) as i128);
        slots.push((start, start.saturating_add(own.saturating_mul(copies))));
    }
    Some(slots)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What is decided here is decided again where the code runs.
    #[test]
    fn limits_are_those_of_the_support_code() {
        let text = include_str!("../runtime/support/iverson.h");
        for rule in [
            format!("#define IV_GRAIN {GRAIN:?}\n"),
            format!("#define IV_MOST_OWN {MOST_OWN:?}\n"),
            format!("#define IV_LEAST_SHARED {LEAST_SHARED:?}\n"),
            format!("chunks > work / ({OWN:?} * (double)own)"),
            format!("m >= {LEAST_SIDE} && n >= {LEAST_SIDE} && k >= {LEAST_SIDE} && "),
            format!("(double)m * (double)n * (double)k >= {LEAST_PRODUCT}.0;"),
        ] {
            assert!(text.contains(&rule), "{rule}");
        }
    }
}

/// The numbers of which an expression is the smallest, or the largest.
fn operands(e: &Expr, op: Op, f: &mut dyn FnMut(&Expr)) {
    match e {
        Expr::Op(o, args) if *o == op => args.iter().for_each(|a| operands(a, op, f)),
        e => f(e),
    }
}
