//! Binders (`for`, `sum`, reductions), `history`, and the ranges of their indices.
//!
//! An index that is used directly (`x[i]`) runs over that axis, and all such axes must agree; arithmetic uses
//! (`x[i + 1]`) define nothing. Each binder around the current expression has a cell in which its body's walk leaves
//! the axes it meets. Uses at a constant distance from the index are kept too: where the range is known at the end and
//! one of them certainly overruns its axis, that is an error now and not when the program runs.
//! In the IR `for` starts at 0, so `for i in a..b. e(i)` is `for i in 0..b - a. e(i + a)`.

use super::messages::{brief, mentions, word};
use super::operators::is_additive;
use super::scope::{Binding, Place};
use super::{Checker, Typed};
use crate::diagnostic::{Diagnostic, Span};
use crate::ir::build::{add, exp_size, for_, i64, lets, size_exp, sum};
use crate::ir::facts::Facts;
use crate::ir::traverse::{Substitution, substitute};
use crate::ir::{Exp, History, Range, Reduction, Scalar, Site, Size, Type, Var};
use crate::syntax::ast::{self, BinaryOp, BinderKind, ExpKind, IndexBinding, Pattern};

/// What is known of an index while its binder's body is walked.
#[derive(Clone)]
pub struct IndexCell {
    pub var: Var,
    name: String,
    span: Span,
    explicit: bool,
    /// The range that is written, where its bounds are sizes.
    bounds: Option<(Size, Size)>,
    /// The axis it is used on directly, first met.
    axis: Option<Use>,
    /// An axis of a singleton that it is the key of: its range only if nothing else is.
    key_axis: Option<Use>,
    /// `index + offset` on an axis, outside of any condition.
    offsets: Vec<(i64, Use)>,
    conditions: usize,
    /// A disagreement was reported.
    failed: bool,
}

#[derive(Clone)]
struct Use {
    size: Size,
    span: Span,
    array: String,
}

const UNKNOWN_RANGE: &str = "the range of";

/// The range of an index after its body was walked.
pub(super) enum Bounds {
    Explicit(Exp, Exp),
    Axis(Size),
    Unknown,
}

impl<'a> Checker<'a> {
    pub fn binder(&mut self, kind: BinderKind, indices: &[IndexBinding], body: &ast::Exp, span: Span, hint: Option<&Type>) -> Typed {
        let keyword = word(kind);
        if matches!(kind, BinderKind::ArgMax | BinderKind::ArgMin) && indices.len() != 1 {
            self.report(
                Diagnostic::error(span, format!("`{keyword}` takes one index"))
                    .note(format!("nest them: `{keyword} i. max j. e` gives the first of the two places")),
            );
            return Typed::poison();
        }
        for (k, index) in indices.iter().enumerate() {
            if let Some(first) = indices[..k].iter().find(|i| i.name.text == index.name.text && i.name.text != "_") {
                self.report(
                    Diagnostic::error(index.name.span, format!("`{keyword}` has two indices named `{}`", index.name.text))
                        .label(first.name.span, "the first"),
                );
                return Typed::poison();
            }
        }
        self.warn_of_constant_terms(kind, indices, body);
        let hint = match kind {
            BinderKind::For | BinderKind::Sum | BinderKind::Prod | BinderKind::Max | BinderKind::Min => hint.cloned(),
            BinderKind::Any | BinderKind::All => Some(Type::BOOL),
            BinderKind::ArgMax | BinderKind::ArgMin => None,
        };
        self.nest(kind, indices, body, span, hint)
    }

    /// One binder per index, the first outermost.
    fn nest(&mut self, kind: BinderKind, indices: &[IndexBinding], body: &ast::Exp, span: Span, hint: Option<Type>) -> Typed {
        let Some((binding, rest)) = indices.split_first() else {
            let found = self.infer(body, hint.as_ref());
            return self.reducible(kind, found, body.span);
        };
        if kind == BinderKind::For {
            if let Some(matrix) = hint.as_ref().filter(|h| h.outer_axes().is_some_and(<[Size]>::is_empty)) {
                if let Some(found) = self.stored_places(indices, body, span, matrix) {
                    return found;
                }
            }
        }
        let inner_hint = match kind {
            BinderKind::For => {
                hint.as_ref().and_then(|h| if h.shape().is_empty() && h.scalar().is_some() { None } else { h.without_axes(1) })
            }
            _ => hint,
        };
        let keyword = word(kind);
        let name = binding.name.text.as_str();
        let (index, bounds, found) = self.indexed(keyword, binding, body.span, |c| c.nest(kind, rest, body, span, inner_hint));
        if let (None, Bounds::Unknown, Some(range)) = (&binding.range, &bounds, rest.iter().find_map(|b| b.range.as_ref())) {
            // `for i, j in 0..n` reads as if the range were that of both.
            if let Some(diagnostic) = self.diagnostics.last_mut().filter(|d| d.message.starts_with(UNKNOWN_RANGE)) {
                diagnostic.notes = vec![format!(
                    "a range belongs to the one index before it; write `{keyword} {name} in {0}..{1}, {2} in {0}..{1}. …`",
                    brief(&range.0),
                    brief(&range.1),
                    rest[0].name.text
                )];
            }
        }
        let (Some(ty), false) = (found.ty, matches!(bounds, Bounds::Unknown)) else { return Typed::poison() };
        if kind == BinderKind::For {
            let (size, body) = self.zero_based(name, index, bounds, found.exp);
            return Typed::new(for_(index, size.clone(), body), ty.with_axis(&size));
        }
        let (lo, hi) = match bounds {
            Bounds::Explicit(lo, hi) => (lo, hi),
            Bounds::Axis(size) => (i64(0), size_exp(&size)),
            Bounds::Unknown => return Typed::poison(),
        };
        let reduction = match kind {
            BinderKind::For | BinderKind::Sum => return Typed::new(sum(index, lo, hi, found.exp), ty),
            BinderKind::Prod => Reduction::Prod,
            BinderKind::Max => Reduction::Max,
            BinderKind::Min => Reduction::Min,
            BinderKind::ArgMax => Reduction::ArgMax,
            BinderKind::ArgMin => Reduction::ArgMin,
            BinderKind::Any => Reduction::Any,
            BinderKind::All => Reduction::All,
        };
        let ty = match kind {
            BinderKind::ArgMax | BinderKind::ArgMin => Type::I64,
            _ => ty,
        };
        Typed::new(Exp::Reduce(reduction, Box::new(Range { index, lo, hi }), Box::new(found.exp), Site::new(span)), ty)
    }

    /// The body of a binder, if its type is one that the binder takes.
    fn reducible(&mut self, kind: BinderKind, found: Typed, span: Span) -> Typed {
        let Some(ty) = &found.ty else { return found };
        let (fits, takes) = match kind {
            BinderKind::For => (true, ""),
            BinderKind::Sum => (is_additive(ty), "adds numbers, arrays and tuples of them"),
            BinderKind::Any | BinderKind::All => (*ty == Type::BOOL, "takes a `bool`"),
            BinderKind::Prod | BinderKind::Max | BinderKind::Min | BinderKind::ArgMax | BinderKind::ArgMin => {
                (matches!(ty, Type::Scalar(s) if s.is_number()), "takes numbers")
            }
        };
        if fits {
            return found;
        }
        let keyword = word(kind);
        let mut diagnostic = Diagnostic::error(span, format!("`{keyword}` {takes}")).here(format!("this has type `{}`", self.describe(ty)));
        diagnostic = match (kind, ty) {
            (BinderKind::Sum, Type::Scalar(Scalar::Bool)) => {
                diagnostic.note("to count where it holds, sum the Iverson bracket: `sum i. [p]`")
            }
            (BinderKind::Any | BinderKind::All, _) => diagnostic,
            (_, Type::Array(..)) => diagnostic.note(format!("for each element apart, write `for j. {keyword} i. A[i, j]`")),
            _ => diagnostic,
        };
        self.report(diagnostic);
        Typed::poison()
    }

    /// Walks a body under an index and finds the index's range.
    pub(super) fn indexed(
        &mut self,
        keyword: &'static str,
        binding: &IndexBinding,
        body: Span,
        walk: impl FnOnce(&mut Self) -> Typed,
    ) -> (Var, Bounds, Typed) {
        let range = binding.range.as_ref().map(|(lo, hi)| (self.integer(lo, "a bound"), self.integer(hi, "a bound")));
        let name = binding.name.text.as_str();
        let index = self.program.vars.fresh(name, Type::I64);
        self.program.vars.set_origin(index, binding.name.span);
        // A range that is written may be empty, so what stands under it is not certainly evaluated.
        let certain = match &range {
            None => true,
            Some((Some(lo), Some(hi))) => {
                let count = exp_size(hi).zip(exp_size(lo)).and_then(|(hi, lo)| hi.sub(&lo).as_constant());
                count.is_some_and(|c| c > 0)
            }
            Some(_) => false,
        };
        self.conditions += !certain as usize;
        self.indices.push(IndexCell {
            var: index,
            name: name.to_string(),
            span: binding.name.span,
            explicit: range.is_some(),
            bounds: match &range {
                Some((Some(lo), Some(hi))) => exp_size(lo).zip(exp_size(hi)),
                _ => None,
            },
            axis: None,
            key_axis: None,
            offsets: vec![],
            conditions: self.conditions,
            failed: false,
        });
        let errors = self.error_count();
        let found = self.scoped(&Place::Binder(keyword, name, index), body, |c| {
            c.bind_name(name, Binding::Var(index));
            walk(c)
        });
        self.conditions -= !certain as usize;
        let Some(cell) = self.indices.pop() else { return (index, Bounds::Unknown, Typed::poison()) };
        let bounds = match range {
            Some((Some(lo), Some(hi))) => Bounds::Explicit(lo, hi),
            Some(_) => Bounds::Unknown,
            None => match cell.axis.as_ref().or(cell.key_axis.as_ref()) {
                Some(found) => Bounds::Axis(found.size.axis()),
                None => Bounds::Unknown,
            },
        };
        match &bounds {
            Bounds::Explicit(lo, hi) => {
                if let (Some(lo), Some(hi)) = (exp_size(lo), exp_size(hi)) {
                    self.report_overruns(&cell, &lo, &hi);
                }
            }
            Bounds::Axis(size) => self.report_overruns(&cell, &Size::default(), size),
            // A body with errors may have lost the use that gives the range.
            Bounds::Unknown if binding.range.is_none() && self.error_count() == errors => {
                let end = cell
                    .offsets
                    .first()
                    .map_or("n".to_string(), |(offset, used)| self.describe_size(&used.size.sub(&Size::constant((*offset).max(0)))));
                self.report(
                    Diagnostic::error(binding.name.span, format!("{UNKNOWN_RANGE} `{name}` is not known"))
                        .note(format!("use it as an index (`x[{name}]`), or write the range: `{keyword} {name} in 0..{end}. …`")),
                );
            }
            Bounds::Unknown => {}
        }
        let bounds = if cell.failed { Bounds::Unknown } else { bounds };
        (index, bounds, found)
    }

    /// The size of a `for`, and its body with the index shifted to start at 0.
    fn zero_based(&mut self, name: &str, index: Var, bounds: Bounds, body: Exp) -> (Size, Exp) {
        let (lo, hi) = match bounds {
            Bounds::Explicit(lo, hi) => (lo, hi),
            Bounds::Axis(size) => return (size, body),
            Bounds::Unknown => return (Size::default(), body),
        };
        let lo = self.size_of(&format!("{name}_from"), &lo);
        let hi = self.size_of(&format!("{name}_to"), &hi);
        if lo == Size::default() {
            return (hi, body);
        }
        let shifted = add(index, size_exp(&lo));
        let with: Substitution = [(index, shifted)].into_iter().collect();
        (hi.sub(&lo), substitute(&mut self.program.vars, body, &with))
    }

    pub fn history(
        &mut self,
        pattern: &Pattern,
        init: &ast::Exp,
        binding: &IndexBinding,
        body: &ast::Exp,
        span: Span,
        hint: Option<&Type>,
    ) -> Typed {
        let state_hint = hint.and_then(|h| h.without_axes(1));
        self.with_state(init, state_hint.as_ref(), &mut |c, hint| c.history_from(pattern, init, binding, body, span, hint))
    }

    fn history_from(
        &mut self,
        pattern: &Pattern,
        init: &ast::Exp,
        binding: &IndexBinding,
        body: &ast::Exp,
        span: Span,
        state_hint: Option<&Type>,
    ) -> Typed {
        let start = self.infer(init, state_hint);
        let name = binding.name.text.as_str();
        let mut state = None;
        let (index, bounds, found) = self.indexed("history", binding, body.span, |c| {
            state = c.bind_pattern(pattern, start.ty.as_ref(), init.span);
            let found = c.infer(body, start.ty.as_ref());
            match &start.ty {
                Some(want) => {
                    let agrees = c.require(&found, want, body.span, |c, d| {
                        let text = format!("the first state has type `{}`", c.describe(want));
                        d.label(init.span, text).note("every state of a `history` has one type")
                    });
                    if agrees { found } else { Typed::poison() }
                }
                None => found,
            }
        });
        let (Some(ty), Some(_), Some((state, parts)), false) = (start.ty, found.ty, state, matches!(bounds, Bounds::Unknown)) else {
            return Typed::poison();
        };
        let (size, body) = self.zero_based(name, index, bounds, lets(parts, found.exp));
        let places = size.add(&Size::constant(1));
        // With a negative size there would be no place for the first state.
        if size.as_constant().is_some_and(|c| c < 0) {
            self.report(Diagnostic::error(span, "a `history` runs a number of times that is not negative"));
            return Typed::poison();
        }
        Typed::new(Exp::History(Box::new(History { state, init: start.exp, index, size, body })), ty.with_axis(&places))
    }

    /// Notes that an index (or an index and a constant) is used on an axis. `direct`: it stands there by itself.
    pub fn note_use(&mut self, key: &Exp, direct: bool, size: &Size, span: Span, array: &ast::Exp) {
        let Some(key) = exp_size(key) else { return };
        let conditions = self.conditions;
        let Some(at) = self.indices.iter().rposition(|cell| key.mentions(cell.var)) else {
            self.report_certain_overrun(&key, size, span, array);
            return;
        };
        let Some(offset) = key.sub(&Size::var(self.indices[at].var)).as_constant() else { return };
        let found = Use { size: size.clone(), span, array: brief(array) };
        if direct && !self.indices[at].explicit {
            self.note_axis(at, found);
        } else if conditions == self.indices[at].conditions {
            self.indices[at].offsets.push((offset, found));
        }
    }

    fn note_axis(&mut self, at: usize, found: Use) {
        let var = self.indices[at].var;
        let mut inside = vec![];
        self.expand(&found.size).variables(&mut inside);
        if let Some(inner) = inside.into_iter().find(|v| *v >= var) {
            let name = self.indices[at].name.clone();
            let text = format!("the range of `{name}` would depend on `{}`, which is bound inside its body", self.program.vars.name(inner));
            let note = format!("write the range of `{name}`: `{name} in 0..n`");
            self.report(Diagnostic::error(found.span, text).label(self.indices[at].span, "bound here").note(note));
            self.indices[at].failed = true;
            return;
        }
        let size = match &self.indices[at].axis {
            None => {
                self.indices[at].axis = Some(found);
                return;
            }
            Some(first) => first.size.clone(),
        };
        if self.same_size(&size, &found.size) || self.indices[at].failed {
            return;
        }
        let (runs, has) = (self.describe_size(&size), self.describe_size(&found.size));
        let cell = &mut self.indices[at];
        cell.failed = true;
        let name = cell.name.clone();
        let first = cell.axis.as_ref().map(|u| (u.span, u.array.clone()));
        let mut diagnostic =
            Diagnostic::error(found.span, format!("index `{name}` runs to `{runs}`, but `{}` has size `{has}` here", found.array))
                .here(format!("this axis has size `{has}`"));
        if let Some((span, _)) = first {
            diagnostic = diagnostic.label(span, format!("`{name}` takes its range `0..{runs}` from here"));
        }
        self.report(
            diagnostic
                .note(format!("sizes of different names may differ; give both axes one name, or write the range: `{name} in 0..{runs}`")),
        );
    }

    /// Notes that the innermost index runs over an axis of this size, whatever else it is used for. What is written is not
    /// changed by it.
    pub(super) fn note_range(&mut self, size: &Size, span: Span) -> Option<Var> {
        let at = self.indices.len().checked_sub(1)?;
        if !self.indices[at].explicit {
            self.note_axis(at, Use { size: size.clone(), span, array: "the matrix".to_string() });
        }
        Some(self.indices[at].var)
    }

    /// What is known here of the indices around.
    pub(super) fn index_facts(&self, facts: &mut Facts) {
        for cell in &self.indices {
            match (&cell.bounds, cell.axis.as_ref().or(cell.key_axis.as_ref())) {
                (Some((lo, hi)), _) => facts.enter(cell.var, &self.expand(lo), &self.expand(hi)),
                (None, Some(found)) if !cell.explicit => facts.enter_for(cell.var, &self.expand(&found.size)),
                (None, _) => {}
            }
        }
    }

    /// Notes that an index is a key of a singleton: of use only if nothing else gives its range.
    pub fn note_key(&mut self, var: Var, size: &Size, span: Span) {
        if let Some(cell) = self.indices.iter_mut().rev().find(|cell| cell.var == var) {
            let mut inside = vec![];
            size.variables(&mut inside);
            if cell.key_axis.is_none() && inside.iter().all(|v| *v < var) {
                cell.key_axis = Some(Use { size: size.clone(), span, array: String::new() });
            }
        }
    }

    /// A key without an index that is certainly not on its axis.
    fn report_certain_overrun(&mut self, key: &Size, size: &Size, span: Span, array: &ast::Exp) {
        if self.conditions > 0 {
            return;
        }
        let (key, size) = (self.expand(key), self.expand(size).axis());
        if key.as_constant().is_some_and(|k| k < 0) {
            self.report(
                Diagnostic::error(span, format!("the index {} is negative", self.describe_size(&key)))
                    .note("indices count from 0; the last place of an axis of size `n` is `n - 1`"),
            );
        } else if key.sub(&size).as_constant().is_some_and(|d| d >= 0) {
            let text = format!(
                "the index `{}` is out of range: `{}` has size `{}` here",
                self.describe_size(&key),
                brief(array),
                self.describe_size(&size)
            );
            self.report(Diagnostic::error(span, text).note("indices count from 0; the last place of an axis of size `n` is `n - 1`"));
        }
    }

    fn report_overruns(&mut self, cell: &IndexCell, lo: &Size, hi: &Size) {
        let (lo, hi) = (self.expand(lo), self.expand(hi));
        if hi.sub(&lo).as_constant().is_some_and(|c| c <= 0) {
            return;
        }
        for (offset, used) in &cell.offsets {
            let size = self.expand(&used.size).axis();
            let key = Size::var(cell.var).add(&Size::constant(*offset));
            let last = hi.add(&Size::constant(offset - 1));
            let first = lo.add(&Size::constant(*offset));
            let over = last.sub(&size).as_constant().is_some_and(|d| d >= 0);
            let under = first.as_constant().is_some_and(|c| c < 0);
            if !over && !under {
                continue;
            }
            let (name, key) = (&cell.name, self.describe_size(&key));
            let reached = self.describe_size(if over { &last } else { &first });
            let text = format!("`{key}` reaches {reached}, but `{}` has size `{}` here", used.array, self.describe_size(&size));
            let range = format!("`{name}` runs over `{}..{}`", self.describe_size(&lo), self.describe_size(&hi));
            let note = if over {
                let end = self.describe_size(&size.sub(&Size::constant(*offset)));
                format!(
                    "shorten the range (`{name} in {}..{end}`), or guard the read: `[{key} < {}] * …`",
                    self.describe_size(&lo),
                    self.describe_size(&size)
                )
            } else {
                format!(
                    "start the range later (`{name} in {}..{}`), or guard the read: `[{key} >= 0] * …`",
                    -offset,
                    self.describe_size(&hi)
                )
            };
            self.report(Diagnostic::error(used.span, text).label(cell.span, range).note(note));
        }
    }

    /// Warns of terms that do not mention any index: a binder's body reaches as far right as it can.
    fn warn_of_constant_terms(&mut self, kind: BinderKind, indices: &[IndexBinding], body: &ast::Exp) {
        if kind == BinderKind::For {
            return;
        }
        let mut terms = vec![];
        if kind == BinderKind::Sum {
            additive_terms(body, BinaryOp::Add, &mut terms)
        } else {
            terms.push((BinaryOp::Add, body))
        }
        let constant = terms.iter().copied().filter(|(_, t)| !indices.iter().any(|i| mentions(t, &i.name.text)));
        let names: Vec<&str> = indices.iter().map(|i| i.name.text.as_str()).collect();
        let (keyword, names) = (word(kind), names.join(", "));
        for (sign, term) in constant.filter(|(_, t)| !matches!(t.kind, ExpKind::Error)) {
            let (sign, verb, done) = if sign == BinaryOp::Sub { ("-", "subtract", "subtracted") } else { ("+", "add", "added") };
            let diagnostic = Diagnostic::warning(term.span, format!("this does not mention the index `{names}`"));
            let diagnostic = if terms.len() > 1 {
                diagnostic.here(format!("{done} once for each `{names}`")).note(format!(
                    "the body of `{keyword}` reaches as far right as it can; to {verb} it once, write `({keyword} {names}. …) {sign} {}`",
                    brief(term)
                ))
            } else {
                diagnostic.here(format!("the same for each `{names}`"))
            };
            self.report(diagnostic);
        }
    }
}

/// The terms of a sum with their signs, `Add` or `Sub`.
fn additive_terms<'e>(exp: &'e ast::Exp, sign: BinaryOp, out: &mut Vec<(BinaryOp, &'e ast::Exp)>) {
    match &exp.kind {
        ExpKind::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), _, a, b) => {
            additive_terms(a, sign, out);
            additive_terms(b, if *op == sign { BinaryOp::Add } else { BinaryOp::Sub }, out)
        }
        _ => out.push((sign, exp)),
    }
}
