//! Code that only moves arrays, as gradients of products do: a compiler would take longer than the calls, so it is carried out
//! as it stands.

use crate::loops::{Buffer, Expr, Home, Kernel, Local, Stmt};
use crate::scalar::Op;
use crate::types::Lit;
use std::ffi::c_void;

pub struct Moves {
    sizes: Vec<Local>,
    moves: Vec<Move>,
}

/// So many elements of so many bytes, to an output.
struct Move {
    to: usize,
    to_offset: Expr,
    from: Source,
    count: Expr,
    width: usize,
}

enum Source {
    Zeros,
    Input(usize, Expr),
    Output(usize, Expr),
}

impl Moves {
    /// Those that a kernel consists of, if it does of nothing else.
    pub fn of(kernel: &Kernel) -> Option<Moves> {
        let is_known = |e: &Expr| number(e, &|local| kernel.sizes.contains(&local).then_some(1)).is_some();
        let home = |b: &Buffer| kernel.buffer(*b).home;
        let mut moves = vec![];
        for s in &kernel.body {
            let (to, to_offset, from, count) = match s {
                Stmt::Mark(_) => continue,
                Stmt::Zero(to, to_offset, count) => (to, to_offset, Source::Zeros, count),
                Stmt::Copy(to, to_offset, from, from_offset, count) if is_known(from_offset) => match home(from) {
                    Home::Input(k) => (to, to_offset, Source::Input(k, from_offset.clone()), count),
                    Home::Output(k) => (to, to_offset, Source::Output(k, from_offset.clone()), count),
                    _ => return None,
                },
                _ => return None,
            };
            let Home::Output(k) = home(to) else { return None };
            if !is_known(to_offset) || !is_known(count) {
                return None;
            }
            let width = kernel.buffer(*to).scalar.bytes();
            moves.push(Move { to: k, to_offset: to_offset.clone(), from, count: count.clone(), width });
        }
        kernel.assumed.is_empty().then(|| Moves { sizes: kernel.sizes.clone(), moves })
    }

    /// # Safety
    /// The arrays are those that the kernel is for, at these sizes.
    pub unsafe fn run(&self, sizes: &[i64], inputs: &[*const c_void], outputs: &[*mut c_void]) {
        let size = |local: Local| self.sizes.iter().position(|l| *l == local).map(|k| sizes[k]);
        let number = |e: &Expr| number(e, &size).expect("seen before").max(0) as usize;
        for m in &self.moves {
            let bytes = number(&m.count) * m.width;
            // SAFETY: as promised.
            unsafe {
                let to = outputs[m.to].cast::<u8>().add(number(&m.to_offset) * m.width);
                match &m.from {
                    Source::Zeros => to.write_bytes(0, bytes),
                    Source::Input(k, offset) => to.copy_from(inputs[*k].cast::<u8>().add(number(offset) * m.width), bytes),
                    Source::Output(k, offset) => to.copy_from(outputs[*k].cast::<u8>().add(number(offset) * m.width), bytes),
                }
            }
        }
    }
}

/// An integer that sizes give. Of arrays that fit in memory there is none that does not fit.
fn number(e: &Expr, size: &impl Fn(Local) -> Option<i64>) -> Option<i64> {
    match e {
        Expr::Lit(Lit::I64(n)) => Some(*n),
        Expr::Local(local) => size(*local),
        Expr::Op(op, args) => {
            let [a, b] = args.as_slice() else { return None };
            let (a, b) = (number(a, size)?, number(b, size)?);
            match op {
                Op::Add => Some(a.wrapping_add(b)),
                Op::Sub => Some(a.wrapping_sub(b)),
                Op::Mul => Some(a.wrapping_mul(b)),
                Op::Max => Some(a.max(b)),
                Op::Min => Some(a.min(b)),
                _ => None,
            }
        }
        Expr::Lit(_) | Expr::Load(..) | Expr::Partial(..) | Expr::Select(..) => None,
    }
}
