//! What the body of a loop in lanes reads where data say, read once.
//!
//! ```text
//! for i { … x[is[i] * 3] …; out[…] = …; … x[is[i] * 3] … }   =   for i { picked = x[is[i] * 3]; … picked …; out[…] = …; … picked … }
//! ```
//! Every lane has a place of its own there, so that a read is as many as there are lanes. A compiler of C cannot know that what
//! is written in between lies elsewhere.

use super::outward::{changes, define, replace, sure_loads};
use super::*;

pub(super) fn picked(kernel: &mut Kernel, index: Local, body: Vec<Stmt>) -> Vec<Stmt> {
    // Names that stay what they are from here on.
    let mut named = FxHashSet::from_iter([index]);
    let mut inside = FxHashSet::default();
    define(&body, &mut inside);
    let mut rest: std::collections::VecDeque<Stmt> = body.into();
    let mut out: Vec<Stmt> = vec![];
    while let Some(s) = rest.pop_front() {
        let mut loads = vec![];
        if s.blocks().is_empty() {
            s.for_each_expr(&mut |e| sure_loads(e, &mut loads));
        }
        rest.push_front(s);
        let mut found: Vec<(Expr, Local)> = vec![];
        for (b, offset) in loads {
            let load = Expr::Load(b, Box::new(offset.clone()));
            let is_picked = offset.any(&mut |e| match e {
                Expr::Local(local) => inside.contains(local),
                e => matches!(e, Expr::Load(..)),
            });
            let stays = !load.any(&mut |e| match e {
                Expr::Local(local) => inside.contains(local) && !named.contains(local),
                Expr::Load(b, _) => out.iter().chain(&rest).any(|s| changes(s, *b)),
                Expr::Lit(_) | Expr::Op(..) | Expr::Partial(..) | Expr::Select(..) => false,
            });
            if is_picked && stays && found.iter().all(|(e, _)| *e != load) && rest.iter().map(|s| reads(s, &load)).sum::<usize>() > 1 {
                let value = kernel.fresh_local("picked", kernel.scalar_of(&load));
                named.insert(value);
                out.push(Stmt::Let(value, load.clone()));
                found.push((load, value));
            }
        }
        rest.iter_mut().for_each(|s| replace(s, &found));
        let s = rest.pop_front().expect("it was put there");
        if let Stmt::Let(local, _) = s {
            named.insert(local);
        }
        out.push(s);
    }
    out
}

/// How often a statement makes a read.
fn reads(s: &Stmt, load: &Expr) -> usize {
    let mut count = 0;
    s.for_each_expr(&mut |e| {
        e.any(&mut |e| {
            count += (e == load) as usize;
            false
        });
    });
    count + s.blocks().into_iter().flatten().map(|s| reads(s, load)).sum::<usize>()
}
