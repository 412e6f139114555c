//! Arrays that are padded as soon as they are there.
//!
//! ```text
//! let (a, b) = for j in 0..m. e(j); (for i in 0..n. [i < m] * a[i], for i in 0..n. [i < m] * b[i])
//!   =  for i in 0..n. [i < m] * e(i)
//! ```
//! Derivatives save arrays of a step's own size that way. Written as one loop, each of its iterations can be redone, or meet
//! those of the loop that reads it.

use super::super::Context;
use crate::ir::traverse::{Substitution, substitute};
use crate::ir::*;

/// A padded array: the index, the size, the condition, and what is read at the index.
struct Pad<'a> {
    index: Var,
    size: &'a Size,
    condition: &'a Exp,
    of: Var,
}

impl<'a> Pad<'a> {
    fn of(e: &'a Exp) -> Option<Pad<'a>> {
        let Exp::For(index, size, body) = e else { return None };
        let Exp::Guard(condition, read) = &**body else { return None };
        let Exp::Index(array, keys, _) = &**read else { return None };
        match (&**array, keys.as_slice()) {
            (Exp::Var(of), [Exp::Var(key)]) if key == index => Some(Pad { index: *index, size, condition, of: *of }),
            _ => None,
        }
    }
}

/// The value of the `let`, if its body pads all that it binds, in order.
pub fn padded(cx: &mut Context, bound: &[Var], value: &Exp, body: &Exp) -> Option<Exp> {
    let Exp::For(inner, size, e) = value else { return None };
    let parts = match body {
        Exp::Tuple(parts) => parts.as_slice(),
        part => std::slice::from_ref(part),
    };
    let pads = parts.iter().map(Pad::of).collect::<Option<Vec<Pad>>>()?;
    let first = pads.first()?;
    if pads.len() != bound.len() || !pads.iter().zip(bound).all(|(pad, v)| pad.of == *v && pad.size == first.size) {
        return None;
    }
    // `[a[i] > 0] * a[i]` reads the array twice: one element for both would have to be bound, as `fuse` does.
    if first.condition.mentions_any(bound) {
        return None;
    }
    let same = |pad: &Pad| {
        let renamed = Substitution::from_iter([(pad.index, Exp::Var(first.index))]);
        substitute(cx.vars, pad.condition.clone(), &renamed) == *first.condition
    };
    if !pads.iter().map(same).collect::<Vec<_>>().into_iter().all(|same| same) {
        return None;
    }
    // Where the condition holds, there is an element to read.
    let mut facts = cx.facts.clone();
    facts.enter_for(first.index, first.size);
    facts.assume(first.condition);
    if !facts.in_range(&Exp::Var(first.index), size) {
        return None;
    }
    let e = substitute(cx.vars, (**e).clone(), &Substitution::from_iter([(*inner, Exp::Var(first.index))]));
    Some(Exp::For(first.index, first.size.clone(), Box::new(Exp::Guard(Box::new(first.condition.clone()), Box::new(e)))))
}
