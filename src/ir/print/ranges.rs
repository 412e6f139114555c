//! The range that a reader infers for an index without one: that of the axes it is used on directly (`x[i]`). Axes that it
//! is written on (`x with [i] = e`) must agree.

use crate::ir::build::type_of;
use crate::ir::{Exp, Program, Size, Type, Var};
use rustc_hash::FxHashSet;

/// The size of the axes that `index` is used on directly in `body`, where all uses agree and at least one is of a
/// variable bound outside (whose type a reader knows before the index's range).
pub fn inferred(program: &Program, index: Var, body: &Exp) -> Option<Size> {
    let mut uses = Uses { program, index, inner: FxHashSet::default(), size: None, known: false, agree: true };
    uses.walk(body);
    uses.size.filter(|_| uses.known && uses.agree)
}

struct Uses<'a> {
    program: &'a Program,
    index: Var,
    /// Variables bound inside the body.
    inner: FxHashSet<Var>,
    size: Option<Size>,
    known: bool,
    agree: bool,
}

impl Uses<'_> {
    fn walk(&mut self, exp: &Exp) {
        self.inner.extend(exp.binds());
        if let Exp::Index(array, keys, _) | Exp::Update(array, keys, _, _) = exp {
            for (k, _) in keys.iter().enumerate().filter(|(_, key)| **key == Exp::Var(self.index)) {
                let (ty, known) = match &**array {
                    Exp::Var(v) => (self.program.vars.ty(*v).clone(), !self.inner.contains(v)),
                    other => (type_of(self.program, other), false),
                };
                if let Some(axis) = axis(&ty, k) {
                    match &self.size {
                        Some(size) => self.agree &= *size == axis,
                        None => self.size = Some(axis),
                    }
                    self.known |= known && matches!(exp, Exp::Index(..));
                }
            }
        }
        exp.for_each_child(&mut |e| self.walk(e));
    }
}

fn axis(ty: &Type, k: usize) -> Option<Size> {
    match ty {
        Type::Scalar(_) => None,
        Type::Array(shape, _) => shape.get(k).map(Size::axis),
        Type::Tuple(parts) => parts.first().and_then(|t| axis(t, k)),
    }
}
