//! The tree of a text -> a document that says where its lines may break.
//!
//! * A definition stands on one line if it fits; else its body begins a line of its own.
//! * Every `let` has its own line, and so has what the bindings are for.
//! * The head of a binder, loop or lambda stays where it is; its body goes below it if it is too long.
//! * Sums and logic that are too long have a line for each term; products, lists and parameters fill their lines.
//! * Where the author began a line with a body, a branch, or an element of a tuple or an array, it stays so.

use super::tree::*;
use crate::layout::*;
use crate::syntax::lexer::Token;

pub struct Arrange<'l, 'a> {
    pub leaves: &'l [Leaf<'a>],
}

impl Arrange<'_, '_> {
    /// All definitions; `end` is the token behind them, which may have comments.
    pub fn text(&self, items: &[Item], end: At) -> Doc {
        let mut parts = vec![];
        for item in items {
            if !parts.is_empty() {
                parts.push(Doc::Hard);
            }
            parts.push(self.item(item));
        }
        parts.push(self.leaf(end));
        Doc::Concat(parts)
    }

    fn item(&self, item: &Item) -> Doc {
        let head = self.spaced(&item.head);
        let Some(body) = &item.body else { return head };
        let separator = if self.begins_line(body) || matches!(body, Tree::Lets(..)) { Doc::Hard } else { Doc::Line };
        // The braces of a type stand behind its name.
        if let Tree::Brackets(b) = body
            && b.role == Role::Type
        {
            return concat([head, text(" "), self.tree(body)]);
        }
        concat([head, group(nest(concat([separator, self.tree(body)])))])
    }

    fn leaf(&self, at: At) -> Doc {
        let leaf = &self.leaves[at];
        let mut parts = vec![];
        let top = matches!(leaf.token, Token::Def | Token::Type | Token::End);
        for comment in &leaf.before {
            let aside = Doc::Aside(comment.text.to_string(), comment.after_blank);
            // A comment under the body of a definition belongs to it.
            parts.push(if top && !comment.at_margin { nest(aside) } else { aside });
        }
        if leaf.statement && leaf.blank {
            parts.push(Doc::Blank);
        }
        parts.push(text(leaf.text));
        parts.extend(leaf.behind.iter().map(|c| Doc::Remark(c.to_string())));
        match parts.len() {
            1 => parts.remove(0),
            _ => Doc::Concat(parts),
        }
    }

    fn spaced(&self, trees: &[Tree]) -> Doc {
        let mut parts = vec![];
        for (k, tree) in trees.iter().enumerate() {
            if k > 0 {
                parts.push(text(" "));
            }
            parts.push(self.tree(tree));
        }
        Doc::Concat(parts)
    }

    fn tree(&self, tree: &Tree) -> Doc {
        match tree {
            Tree::Leaf(at) => self.leaf(*at),
            Tree::Glued(parts) => concat(parts.iter().map(|p| self.tree(p))),
            Tree::Spaced(parts) => self.spaced(parts),
            Tree::Chain(level, first, rest) => self.chain(*level, first, rest),
            Tree::Brackets(b) => self.brackets(b),
            Tree::Open(head, body) => concat([self.spaced(head), self.body(body)]),
            Tree::Noted(notes, body) => {
                let between = if self.begins_line(body) { Doc::Hard } else { text(" ") };
                concat([self.spaced(notes), between, self.tree(body)])
            }
            Tree::Loop(start, trip, body) => {
                let head = concat([self.spaced(start), group(nest(concat([Doc::Line, self.spaced(trip)])))]);
                concat([head, self.body(body)])
            }
            Tree::Lets(bindings, body) => {
                let mut parts = vec![];
                for binding in bindings {
                    parts.push(self.spaced(&binding.head));
                    parts.push(self.value(&binding.value));
                    parts.extend(binding.end.map(|at| self.leaf(at)));
                    parts.push(Doc::Hard);
                }
                parts.push(self.tree(body));
                Doc::Concat(parts)
            }
            Tree::If(arms, otherwise) => self.branch(arms, otherwise.as_ref()),
        }
    }

    /// A body behind its head.
    fn body(&self, body: &Tree) -> Doc {
        if self.begins_line(body) {
            return nest(concat([Doc::Hard, self.tree(body)]));
        }
        self.value(body)
    }

    /// What stands behind a `=` or a head, on its line if there is room.
    fn value(&self, value: &Tree) -> Doc {
        match value {
            Tree::Lets(..) => nest(concat([Doc::Hard, self.tree(value)])),
            _ if self.breaks_inside(value) => concat([text(" "), self.tree(value)]),
            _ => group(nest(concat([Doc::Line, self.tree(value)]))),
        }
    }

    /// Whether a tree that is too long looks best beginning where it stands, because it breaks further inside.
    fn breaks_inside(&self, tree: &Tree) -> bool {
        match tree {
            Tree::Open(..) | Tree::Loop(..) => true,
            Tree::Noted(_, body) => !self.begins_line(body),
            Tree::Brackets(b) => b.items.len() > 1 && matches!(b.role, Role::Tuple | Role::Array | Role::Braces) || self.hugs(b),
            Tree::Glued(parts) => matches!(parts.last(), Some(Tree::Brackets(b)) if self.hugs(b)),
            // What is forced to break breaks in an operand, whose beginning can stay.
            Tree::Chain(_, first, rest) => self.breaks_inside(first) && self.forced(first) && !rest.iter().any(|(_, t)| self.forced(t)),
            Tree::Leaf(_) | Tree::Spaced(_) | Tree::Lets(..) | Tree::If(..) => false,
        }
    }

    /// Whether the last item of a bracket is open, so that its body can go below while the brackets stay.
    fn hugs(&self, b: &Brackets) -> bool {
        let Some(((last, _), others)) = b.items.split_last() else { return false };
        let opens = match last {
            Tree::Open(..) | Tree::Loop(..) | Tree::Noted(..) => true,
            Tree::Glued(parts) => matches!(parts.last(), Some(Tree::Brackets(inner)) if self.hugs(inner)),
            Tree::Brackets(inner) => self.hugs(inner),
            Tree::Leaf(_) | Tree::Spaced(_) | Tree::Chain(..) | Tree::Lets(..) | Tree::If(..) => false,
        };
        opens && !(b.role != Role::Arguments && !others.is_empty()) && !others.iter().any(|(t, _)| self.forced(t))
    }

    fn branch(&self, arms: &[Arm], otherwise: Option<&(At, Box<Tree>)>) -> Doc {
        let mut parts = vec![];
        for arm in arms {
            if !parts.is_empty() {
                parts.push(self.line_before(arm.words[0]));
            }
            for word in &arm.words {
                parts.extend([self.leaf(*word), text(" ")]);
            }
            parts.extend([self.tree(&arm.condition), text(" "), self.leaf(arm.then), self.choice(&arm.value)]);
        }
        if let Some((word, value)) = otherwise {
            parts.extend([self.line_before(*word), self.leaf(*word), self.choice(value)]);
        }
        group(Doc::Concat(parts))
    }

    /// What stands behind `then` and `else`.
    fn choice(&self, value: &Tree) -> Doc {
        let separator = if self.begins_line(value) || matches!(value, Tree::Lets(..)) { Doc::Hard } else { Doc::Line };
        group(nest(concat([separator, self.tree(value)])))
    }

    fn line_before(&self, at: At) -> Doc {
        if self.leaves[at].newline { Doc::Hard } else { Doc::Line }
    }

    fn chain(&self, level: Level, first: &Tree, rest: &[(At, Tree)]) -> Doc {
        let forced = self.forced(first) || rest.iter().any(|(op, operand)| self.has_comment(*op) || self.forced(operand));
        // Where an operand has lines of its own, what follows may stand behind its end.
        let fills = level == Level::Product || level == Level::Comparison || forced;
        let mut parts = vec![self.tree(first)];
        for (op, operand) in rest {
            let value = if matches!(operand, Tree::Lets(..)) { hang(self.tree(operand)) } else { self.tree(operand) };
            let broken = concat([Doc::Line, self.leaf(*op), text(" "), value]);
            parts.push(nest(if fills { group(broken) } else { broken }));
        }
        if fills { Doc::Concat(parts) } else { group(Doc::Concat(parts)) }
    }

    fn brackets(&self, b: &Brackets) -> Doc {
        let (open, close) = (self.leaf(b.open), b.close.map_or_else(|| text(""), |at| self.leaf(at)));
        if b.items.is_empty() {
            return concat([open, close]);
        }
        let item = |(tree, comma): &(Tree, Option<At>)| {
            let tree = self.tree(tree);
            match comma {
                Some(comma) => concat([tree, self.leaf(*comma)]),
                None => tree,
            }
        };
        let items: Vec<Doc> = b.items.iter().map(item).collect();
        if self.hugs(b) {
            let mut parts = vec![open];
            for (k, item) in items.into_iter().enumerate() {
                parts.extend((k > 0).then(|| text(" ")));
                parts.push(item);
            }
            parts.push(close);
            return Doc::Concat(parts);
        }
        let begins = |k: usize| self.begins_item(b, k);
        // Items with heads and bodies have lines of their own; others fill the lines.
        let apart = b.items.iter().any(|(tree, _)| is_open(tree)) && b.items.len() > 1;
        let all = apart && (1..b.items.len()).any(begins);
        let mut inner = vec![];
        for (k, item) in items.into_iter().enumerate() {
            inner.push(match k {
                0 => item,
                _ if all || begins(k) => concat([Doc::Hard, item]),
                _ if apart => concat([Doc::Line, item]),
                _ => group(concat([Doc::Line, item])),
            });
        }
        group(concat([open, hang(Doc::Concat(inner)), close]))
    }

    /// Whether the author began a line with an item, and that is kept.
    fn begins_item(&self, b: &Brackets, k: usize) -> bool {
        let keeps = matches!(b.role, Role::Tuple | Role::Array | Role::Braces | Role::Type);
        keeps && k > 0 && self.begins_line(&b.items[k].0)
    }

    /// Whether it takes several lines however short it is: bindings and comments do. (Line breaks of the author's do not
    /// count, for what is broken now would be such a break the next time.)
    fn forced(&self, tree: &Tree) -> bool {
        let any = |trees: &[Tree]| trees.iter().any(|t| self.forced(t));
        match tree {
            Tree::Leaf(at) => self.has_comment(*at),
            Tree::Glued(parts) | Tree::Spaced(parts) => any(parts),
            Tree::Chain(_, first, rest) => self.forced(first) || rest.iter().any(|(op, t)| self.has_comment(*op) || self.forced(t)),
            Tree::Brackets(b) => {
                let item = |(tree, comma): &(Tree, Option<At>)| self.forced(tree) || comma.is_some_and(|at| self.has_comment(at));
                self.has_comment(b.open) || b.close.is_some_and(|at| self.has_comment(at)) || b.items.iter().any(item)
            }
            Tree::Open(head, body) | Tree::Noted(head, body) => any(head) || self.forced(body),
            Tree::Loop(start, trip, body) => any(start) || any(trip) || self.forced(body),
            Tree::Lets(..) => true,
            Tree::If(arms, otherwise) => {
                let arm = |arm: &Arm| {
                    let words = arm.words.iter().chain([&arm.then]).any(|at| self.has_comment(*at));
                    words || self.forced(&arm.condition) || self.forced(&arm.value)
                };
                arms.iter().any(arm) || otherwise.as_ref().is_some_and(|(word, value)| self.has_comment(*word) || self.forced(value))
            }
        }
    }

    fn has_comment(&self, at: At) -> bool {
        !self.leaves[at].before.is_empty() || !self.leaves[at].behind.is_empty()
    }

    /// Whether the author began a line with this.
    fn begins_line(&self, tree: &Tree) -> bool {
        self.leaves[self.first(tree)].newline
    }

    fn first(&self, tree: &Tree) -> At {
        match tree {
            Tree::Leaf(at) => *at,
            Tree::Glued(parts) | Tree::Spaced(parts) | Tree::Open(parts, _) | Tree::Noted(parts, _) | Tree::Loop(parts, _, _) => {
                self.first(&parts[0])
            }
            Tree::Chain(_, first, _) => self.first(first),
            Tree::Brackets(b) => b.open,
            Tree::Lets(bindings, _) => self.first(&bindings[0].head[0]),
            Tree::If(arms, _) => arms[0].words[0],
        }
    }
}

fn is_open(tree: &Tree) -> bool {
    match tree {
        Tree::Open(..) | Tree::Noted(..) | Tree::Loop(..) | Tree::Lets(..) | Tree::If(..) => true,
        Tree::Leaf(_) | Tree::Glued(_) | Tree::Spaced(_) | Tree::Brackets(_) => false,
        Tree::Chain(_, _, rest) => rest.last().is_some_and(|(_, last)| is_open(last)),
    }
}
