//! Making a failing program smaller while it still fails.
//!
//! A subtree is replaced by a smaller one of its type: a literal, or a part of itself that mentions nothing bound
//! between. Names are unique in a definition, so scopes are seen in the text.

use super::grammar::Kind;
use super::{Generated, Piece, Tree, Ty};

/// The smallest program found for which `fails` holds, with at most `tries` calls of it.
pub fn shrink(program: &Generated, tries: usize, fails: impl Fn(&Generated) -> bool) -> Generated {
    let mut best = program.clone();
    let mut left = tries;
    'again: loop {
        for candidate in smaller(&best) {
            if left == 0 {
                return best;
            }
            left -= 1;
            if fails(&candidate) {
                best = candidate;
                continue 'again;
            }
        }
        return best;
    }
}

fn smaller(program: &Generated) -> Vec<Generated> {
    let mut out = vec![];
    for k in 0..program.definitions.len().saturating_sub(1) {
        let name = format!("{}(", program.definitions[k].name);
        let passed = format!("({},", program.definitions[k].name);
        let used = program.definitions.iter().any(|d| {
            let text = d.body.text();
            text.contains(&name) || text.contains(&passed) || text.contains(&format!("({})", program.definitions[k].name))
        });
        if !used {
            let mut next = program.clone();
            next.definitions.remove(k);
            out.push(next);
        }
    }
    for k in (0..program.definitions.len()).rev() {
        for body in smaller_trees(&program.definitions[k].body) {
            let mut next = program.clone();
            next.definitions[k].body = body;
            out.push(next);
        }
    }
    out.sort_by_key(|p| p.definitions.iter().map(|d| d.body.node_count()).sum::<usize>());
    out
}

/// Each tree with one subtree replaced by something smaller.
fn smaller_trees(tree: &Tree) -> Vec<Tree> {
    let mut out = vec![];
    if let Some(leaf) = simplest(&tree.ty) {
        if leaf.node_count() < tree.node_count() {
            out.push(leaf);
        }
    }
    let bound = bound_names(tree);
    collect(tree, &tree.ty, &mut |part| {
        if part.node_count() < tree.node_count()
            && !bound.iter().any(|name| mentions(&part.text(), name) && !bound_names(part).contains(name))
        {
            out.push(part.clone());
        }
    });
    for (k, piece) in tree.pieces.iter().enumerate() {
        if let Piece::Child(child) = piece {
            for smaller in smaller_trees(child) {
                let mut next = tree.clone();
                next.pieces[k] = Piece::Child(smaller);
                out.push(next);
            }
        }
    }
    out
}

fn collect(tree: &Tree, ty: &Ty, f: &mut impl FnMut(&Tree)) {
    for child in tree.children() {
        if child.ty == *ty {
            f(child);
        }
        collect(child, ty, f);
    }
}

fn simplest(ty: &Ty) -> Option<Tree> {
    let text = match ty {
        Ty::F64 => "0.5",
        Ty::I64 | Ty::Place(_) => "0",
        Ty::Bool => "true",
        Ty::Floats(_) | Ty::Places(..) | Ty::Tuple(_) => return None,
    };
    Some(Tree { kind: Kind::Lit, ty: ty.clone(), pieces: vec![Piece::Text(text.to_string())] })
}

/// Names of generated variables (`v3`, `i12`) that the tree binds: those that stand before `in`, `=`, `:` or in a pattern.
fn bound_names(tree: &Tree) -> Vec<String> {
    let mut names = vec![];
    for piece in &tree.pieces {
        match piece {
            Piece::Text(text) => names.extend(words(text).filter(|w| generated(w)).map(str::to_string)),
            Piece::Child(child) => names.extend(bound_names(child)),
        }
    }
    // Uses stand as trees of their own; ranges may mention outer indices, which then count as bound: that only forbids
    // a step.
    if tree.kind == Kind::Var { vec![] } else { names }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|w| !w.is_empty())
}
fn generated(word: &str) -> bool {
    let mut chars = word.chars();
    matches!(chars.next(), Some('v' | 'i')) && word.len() > 1 && chars.all(|c| c.is_ascii_digit())
}
fn mentions(text: &str, name: &str) -> bool {
    words(text).any(|w| w == name)
}
