//! Where the time of loops goes: profiling builds say before each loop which lines of the source it comes from.
//!
//! A construct's own lines are those of its reads, writes and calls, but for what nested loops have to themselves; their
//! adjoints carry the same places, so a loop of a derivative belongs to the line that it is derived from. Where there is
//! nothing but arithmetic, the variables' origins tell. Loops with states also have the line of their states, since moving
//! these is their own work. No mark stands in a loop without loops in it, so that such loops remain what they are.

use super::*;
use crate::diagnostic::Span;

/// A loop with nothing in it but another as what is made of the two, if something is: marks between them then stand around it.
pub(super) fn pair(s: Stmt, make: &mut dyn FnMut(&Loop, &Loop) -> Option<Loop>) -> Vec<Stmt> {
    let Stmt::Loop(outer) = &s else { return vec![s] };
    let is_mark = |s: &&Stmt| matches!(s, Stmt::Mark(_));
    let before: Vec<Stmt> = outer.body.iter().take_while(is_mark).cloned().collect();
    let Some((Stmt::Loop(inner), behind)) = outer.body[before.len()..].split_first() else { return vec![s] };
    let made = if behind.iter().all(|s| is_mark(&s)) { make(outer, inner) } else { None };
    match made {
        Some(made) => before.into_iter().chain([Stmt::Loop(made)]).chain(behind.to_vec()).collect(),
        None => vec![s],
    }
}

impl Lowering<'_> {
    /// As `apart`, under the mark of the construct if it loops.
    pub fn apart_marked<R>(&mut self, e: &Exp, f: impl FnOnce(&mut Self) -> R) -> R {
        if !self.options.profile || !is_loop(e) {
            return self.apart(f);
        }
        let outer = self.mark;
        let origin = self.origin(e);
        if origin.is_empty() {
            return self.apart(f);
        }
        self.mark = match self.kernel.origins.iter().position(|known| *known == origin) {
            Some(k) => k,
            None => {
                self.kernel.origins.push(origin);
                self.kernel.origins.len() - 1
            }
        };
        if self.mark == outer {
            return self.apart(f);
        }
        self.emit(Stmt::Mark(self.mark));
        let before = self.block.len();
        let result = self.apart(f);
        self.mark = outer;
        // What was computed before has left nothing here.
        if self.block.len() == before {
            self.block.pop();
        } else {
            self.emit(Stmt::Mark(outer));
        }
        result
    }

    fn origin(&self, e: &Exp) -> Vec<Span> {
        let mut spans = vec![];
        if matches!(e, Exp::History(_) | Exp::Loop(_)) {
            spans.extend(e.binds().into_iter().filter_map(|v| self.vars.origin(v)));
        }
        for depth in [Depth::Own, Depth::All] {
            e.for_each_child(&mut |child| sites(child, depth, &mut spans));
            if spans.is_empty() {
                self.origins_of_bound(e, depth, &mut spans);
            }
            if !spans.is_empty() {
                break;
            }
        }
        spans.sort();
        spans.dedup();
        spans
    }

    /// The origins of the variables that an expression binds.
    fn origins_of_bound(&self, e: &Exp, depth: Depth, out: &mut Vec<Span>) {
        out.extend(e.binds().into_iter().filter_map(|v| self.vars.origin(v)));
        e.for_each_child(&mut |child| {
            if depth == Depth::All || !is_loop(child) {
                self.origins_of_bound(child, depth, out);
            }
        });
    }
}

/// How far to look.
#[derive(Clone, Copy, PartialEq)]
enum Depth {
    /// Not into nested loops.
    Own,
    All,
}

fn sites(e: &Exp, depth: Depth, out: &mut Vec<Span>) {
    if depth == Depth::Own && is_loop(e) {
        return;
    }
    let site = match e {
        Exp::Op(_, _, site) | Exp::Index(_, _, site) | Exp::Singleton(_, _, site) | Exp::Update(_, _, _, site) => Some(site),
        Exp::Reduce(_, _, _, site) | Exp::Call(_, _, site) => Some(site),
        Exp::Var(_) | Exp::Lit(_) | Exp::Partial(..) | Exp::For(..) | Exp::Sum(..) | Exp::History(_) | Exp::Loop(_) => None,
        Exp::Guard(..) | Exp::If(..) | Exp::Let(..) | Exp::Tuple(_) | Exp::Array(_) => None,
    };
    out.extend(site.map(|s| s.span).filter(|span| span.end > span.start));
    e.for_each_child(&mut |child| sites(child, depth, out));
}

fn is_loop(e: &Exp) -> bool {
    matches!(e, Exp::For(..) | Exp::Sum(..) | Exp::Reduce(..) | Exp::History(_) | Exp::Loop(_))
}
