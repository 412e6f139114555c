//! The type of a loop's state, where it begins with literals.
//!
//! `loop s = 0 for i in 0..n do s + x[i]`: the state is of the type of `x[i]`, which only the step tells. So the step is
//! checked with what the literals may stand for, the usual types first, and the first that fits is the state's type.
//! Where none fits, what is said is what is wrong with the one that has the fewest errors.

use super::hints::{Strength, strength};
use super::{Checker, Typed};
use crate::ir::{FunctionId, Scalar, Type};
use crate::syntax::ast::{self, BinderKind, ExpKind};

/// How many types a state of several literals is tried at.
const MOST: usize = 32;
/// How many steps are checked again in one definition: loops in loops multiply.
pub const MOST_TRIALS: usize = 400;

impl Checker<'_> {
    /// Checks a loop by `run`, which gets the type that is wanted of its first state.
    pub fn with_state(&mut self, init: &ast::Exp, hint: Option<&Type>, run: &mut dyn FnMut(&mut Self, Option<&Type>) -> Typed) -> Typed {
        if hint.is_some() || leaves(init).iter().all(|s| *s == Strength::Known) || self.trials == 0 {
            return run(self, hint);
        }
        let mark = self.mark();
        let usual = self.infer(init, None).ty;
        self.back_to(&mark);
        let Some(usual) = usual else { return run(self, hint) };
        let mut best: Option<(usize, Type)> = None;
        for ty in alternatives(init, &usual) {
            let found = run(self, Some(&ty));
            let errors = self.error_count() - mark.errors;
            if errors == 0 && found.ty.is_some() {
                return found;
            }
            if best.as_ref().is_none_or(|(fewest, _)| errors < *fewest) {
                best = Some((errors, ty));
            }
            self.back_to(&mark);
            if self.trials == 0 {
                break;
            }
            self.trials -= 1;
        }
        run(self, best.as_ref().map(|(_, ty)| ty))
    }

    fn mark(&self) -> Mark {
        Mark {
            errors: self.error_count(),
            diagnostics: self.diagnostics.len(),
            floating: self.floating.len(),
            functions: self.program.functions.len() as u32,
            expanded: self.expanded,
            indices: self.indices.clone(),
        }
    }

    /// Forgets what was found since.
    fn back_to(&mut self, mark: &Mark) {
        self.diagnostics.truncate(mark.diagnostics);
        self.floating.truncate(mark.floating);
        self.expanded = mark.expanded;
        self.indices.clone_from(&mark.indices);
        let stays = |id: &FunctionId| id.0 < mark.functions;
        self.program.functions.truncate(mark.functions as usize);
        self.derived.retain(|_, id| stays(id));
        self.instances.retain(|_, id| stays(id));
        self.origins.retain(|id, _| stays(id));
        self.broken.retain(stays);
        self.unknown_results.retain(stays);
    }
}

struct Mark {
    errors: usize,
    diagnostics: usize,
    floating: usize,
    functions: u32,
    expanded: usize,
    indices: Vec<super::binders::IndexCell>,
}

/// The strengths of the leaves of an expression's type, as far as its tuples are written.
fn leaves(exp: &ast::Exp) -> Vec<Strength> {
    match &exp.kind {
        ExpKind::Tuple(parts) => parts.iter().flat_map(leaves).collect(),
        ExpKind::Let(_, _, _, body) | ExpKind::Binder(BinderKind::For, _, body) => leaves(body),
        _ => vec![strength(exp)],
    }
}

/// The types that an expression of this type may have as well, itself first.
fn alternatives(exp: &ast::Exp, ty: &Type) -> Vec<Type> {
    let mut usual = vec![];
    ty.map_scalars(&mut |s| {
        usual.push(s);
        s
    });
    let strengths = leaves(exp);
    if strengths.len() != usual.len() {
        return vec![ty.clone()];
    }
    let mut all: Vec<Vec<Scalar>> = vec![vec![]];
    for (strength, usual) in strengths.into_iter().zip(&usual) {
        let scalars: &[Scalar] = match strength {
            Strength::Whole => &[Scalar::I64, Scalar::F64, Scalar::F32, Scalar::I32],
            Strength::Float => &[Scalar::F64, Scalar::F32],
            Strength::Known => std::slice::from_ref(usual),
        };
        // The first leaf varies fastest.
        all = scalars.iter().flat_map(|s| all.iter().map(move |before| [before.as_slice(), &[*s]].concat())).collect();
        all.truncate(MOST);
    }
    let with = |scalars: Vec<Scalar>| {
        let mut next = scalars.into_iter();
        ty.map_scalars(&mut |s| next.next().unwrap_or(s))
    };
    all.into_iter().map(with).collect()
}
