//! Tokens -> a tree of what belongs together, for `arrange` to lay out.
//!
//! The tree follows the grammar only as far as lines break at it, and has every token of the text exactly once, so that
//! nothing can be lost or added. The text has been parsed before: what stands here is well formed. A construct that is
//! not known here is set with spaces between its words.

use crate::syntax::lexer::{Comment, Token, gap, tokenize};
use crate::syntax::parser::{binder_kind, operator};
use crate::types::structure;

/// A token with what stands around it.
pub struct Leaf<'a> {
    pub token: Token,
    pub text: &'a str,
    /// Comments on lines of their own before it.
    pub before: Vec<Comment<'a>>,
    /// Comments behind it on its line.
    pub behind: Vec<&'a str>,
    /// Whether it began a line.
    pub newline: bool,
    /// Whether an empty line stood before it (behind its comments).
    pub blank: bool,
    /// Whether it begins a definition, a binding or what a chain of bindings ends in: there empty lines are kept.
    pub statement: bool,
}

pub type At = usize;

pub enum Tree {
    Leaf(At),
    /// Without spaces: `f(x)[i]`, `0..n`, `x^2`.
    Glued(Vec<Tree>),
    /// With spaces, on one line.
    Spaced(Vec<Tree>),
    /// `a + b - c`: operands, and operators of one level.
    Chain(Level, Box<Tree>, Vec<(At, Tree)>),
    Brackets(Brackets),
    /// A head, and a body that reaches as far right as it can: `sum i. e`, `|x| e`, `a with [i] = e`.
    Open(Vec<Tree>, Box<Tree>),
    /// Annotations, and the loop they are for.
    Noted(Vec<Tree>, Box<Tree>),
    /// `loop p = e`, `for i in a..b do`, and the body.
    Loop(Vec<Tree>, Vec<Tree>, Box<Tree>),
    /// Bindings, and what they are for.
    Lets(Vec<Binding>, Box<Tree>),
    If(Vec<Arm>, Option<(At, Box<Tree>)>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Logic,
    Comparison,
    Sum,
    Product,
}

/// `let p: T =`, a value and its `;`
pub struct Binding {
    pub head: Vec<Tree>,
    pub value: Tree,
    pub end: Option<At>,
}

/// `if c then e` or `else if c then e`
pub struct Arm {
    pub words: Vec<At>,
    pub condition: Tree,
    pub then: At,
    pub value: Tree,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The parameters of a definition.
    Parameters,
    /// What stands behind a function or an array.
    Arguments,
    /// An expression or tuple in parentheses.
    Tuple,
    Array,
    Braces,
    /// Axes and tuples in types.
    Type,
}

pub struct Brackets {
    pub role: Role,
    pub open: At,
    /// Each with the comma behind it.
    pub items: Vec<(Tree, Option<At>)>,
    pub close: Option<At>,
}

/// A definition or the like.
pub struct Item {
    pub head: Vec<Tree>,
    pub body: Option<Tree>,
}

pub fn leaves(text: &str) -> Vec<Leaf<'_>> {
    let (tokens, _) = tokenize(0, text);
    let mut leaves: Vec<Leaf> = vec![];
    let mut end = 0;
    for (token, span) in tokens {
        let start = if token == Token::End { text.len() } else { span.start as usize };
        let gap = gap(text, end, start);
        let (behind, before) = gap.comments.into_iter().partition::<Vec<_>, _>(|c| c.behind_token);
        if let Some(last) = leaves.last_mut() {
            last.behind.extend(behind.iter().map(|c| c.text));
        }
        let text = &text[start..(span.end as usize).max(start)];
        leaves.push(Leaf { token, text, before, behind: vec![], newline: gap.newline, blank: gap.blank, statement: false });
        end = span.end as usize;
    }
    drop_last_commas(leaves)
}

/// A comma before a closing bracket separates nothing. Its comments go to its neighbours.
fn drop_last_commas(leaves: Vec<Leaf<'_>>) -> Vec<Leaf<'_>> {
    let mut kept: Vec<Leaf> = vec![];
    for mut leaf in leaves {
        let closes = matches!(leaf.token, Token::ParenClose | Token::BracketClose | Token::BraceClose);
        if closes && kept.len() > 1 && kept[kept.len() - 1].token == Token::Comma && !is_open(kept[kept.len() - 2].token) {
            let comma = kept.pop().expect("seen above");
            leaf.before.splice(0..0, comma.before);
            kept.last_mut().expect("seen above").behind.extend(comma.behind);
        }
        kept.push(leaf);
    }
    kept
}

fn is_open(token: Token) -> bool {
    matches!(token, Token::ParenOpen | Token::BracketOpen | Token::BraceOpen)
}

/// The items of a text, and the token behind them.
pub fn items(leaves: &mut [Leaf]) -> (Vec<Item>, At) {
    let mut reader = Reader { leaves, at: 0 };
    let mut items = vec![];
    while !reader.at(Token::End) {
        items.push(reader.item());
    }
    (items, reader.at)
}

struct Reader<'l, 'a> {
    leaves: &'l mut [Leaf<'a>],
    at: At,
}

impl Reader<'_, '_> {
    fn token(&self) -> Token {
        self.peek(0)
    }
    fn peek(&self, ahead: usize) -> Token {
        self.leaves.get(self.at + ahead).map_or(Token::End, |l| l.token)
    }
    fn at(&self, token: Token) -> bool {
        self.token() == token
    }
    fn bump(&mut self) -> At {
        let at = self.at;
        if !self.at(Token::End) {
            self.at += 1;
        }
        at
    }
    fn leaf(&mut self) -> Tree {
        Tree::Leaf(self.bump())
    }
    fn statement(&mut self) {
        self.leaves[self.at].statement = true;
    }

    fn item(&mut self) -> Item {
        self.statement();
        match self.token() {
            Token::Def => self.definition(),
            Token::Type => {
                let mut head = vec![self.leaf()];
                while !matches!(self.token(), Token::Equals | Token::End | Token::Def | Token::Type) {
                    match head.last_mut() {
                        Some(last) if is_open(self.token()) => {
                            let brackets = self.brackets(Role::Type);
                            glue(last, brackets);
                        }
                        _ => head.push(self.leaf()),
                    }
                }
                if !self.at(Token::Equals) {
                    return Item { head, body: None };
                }
                head.push(self.leaf());
                Item { head, body: Some(self.ty()) }
            }
            Token::Hash => {
                let hash = self.leaf();
                let inner = if self.at(Token::BracketOpen) { vec![hash, self.brackets(Role::Arguments)] } else { vec![hash] };
                Item { head: vec![Tree::Glued(inner)], body: None }
            }
            _ => Item { head: vec![self.leaf()], body: None },
        }
    }

    /// `def f(x: T) -> T = e`
    fn definition(&mut self) -> Item {
        let mut head = vec![self.leaf()];
        while !matches!(self.token(), Token::ParenOpen | Token::Arrow | Token::Equals | Token::End | Token::Def) {
            head.push(self.leaf());
        }
        if self.at(Token::ParenOpen) {
            let params = self.brackets(Role::Parameters);
            glue(head.last_mut().expect("the word `def`"), params);
        }
        if self.at(Token::Arrow) {
            head.push(self.leaf());
            head.push(self.ty());
        }
        if !self.at(Token::Equals) {
            return Item { head, body: None };
        }
        head.push(self.leaf());
        Item { head, body: Some(self.expression()) }
    }

    fn expression(&mut self) -> Tree {
        self.operand(LOOSEST)
    }

    /// Operators at least as tight as `least`.
    fn operand(&mut self, least: u8) -> Tree {
        let mut left = self.prefix();
        while let Some((tightness, level)) = tightness(self.token()).filter(|(t, _)| *t >= least) {
            let op = self.bump();
            let Some(level) = level else {
                // A power goes to the right.
                let right = self.operand(tightness);
                left = Tree::Glued(vec![left, Tree::Leaf(op), right]);
                continue;
            };
            let right = self.operand(tightness + 1);
            left = match left {
                Tree::Chain(own, first, mut rest) if own == level && is_level(self.leaves[rest[0].0].token, tightness) => {
                    rest.push((op, right));
                    Tree::Chain(own, first, rest)
                }
                left => Tree::Chain(level, Box::new(left), vec![(op, right)]),
            };
        }
        left
    }

    fn prefix(&mut self) -> Tree {
        if binder_kind(self.token()).is_some() && self.begins_binder() {
            return self.binder();
        }
        match self.token() {
            Token::Minus => {
                let minus = self.leaf();
                // Two of them touching would be a comment.
                let spaced = self.at(Token::Minus);
                let operand = self.operand(NEGATION);
                if spaced { Tree::Spaced(vec![minus, operand]) } else { Tree::Glued(vec![minus, operand]) }
            }
            Token::Not => {
                let not = self.leaf();
                Tree::Spaced(vec![not, self.operand(COMPARISON)])
            }
            Token::Let => self.bindings(),
            Token::If => self.branch(),
            Token::History | Token::Loop => self.looping(),
            Token::Bar => self.lambda(),
            Token::Hash => {
                let mut notes = vec![];
                while self.at(Token::Hash) {
                    let hash = self.leaf();
                    let note = if self.at(Token::BracketOpen) { vec![hash, self.brackets(Role::Arguments)] } else { vec![hash] };
                    notes.push(Tree::Glued(note));
                }
                Tree::Noted(notes, Box::new(self.operand(NEGATION)))
            }
            _ => self.postfix(),
        }
    }

    /// As the parser has it: before `(` a binder word is a function, unless `in` follows the matching `)`; with nothing
    /// behind it, it is a function that is passed on.
    fn begins_binder(&self) -> bool {
        if self.at(Token::For) {
            return true;
        }
        match self.peek(1) {
            Token::Comma | Token::ParenClose | Token::Semicolon => return false,
            Token::ParenOpen => {}
            _ => return true,
        }
        let mut depth = 0;
        for (k, leaf) in self.leaves.iter().enumerate().skip(self.at + 1) {
            match leaf.token {
                Token::ParenOpen => depth += 1,
                Token::ParenClose if depth == 1 => return self.leaves.get(k + 1).is_some_and(|next| next.token == Token::In),
                Token::ParenClose => depth -= 1,
                _ => {}
            }
        }
        false
    }

    /// `sum i, j in 0..n. e`
    fn binder(&mut self) -> Tree {
        let mut head = vec![self.leaf()];
        while !matches!(self.token(), Token::Dot | Token::End | Token::Def) {
            if !self.index(&mut head) {
                break;
            }
        }
        if self.at(Token::Dot) {
            let dot = self.leaf();
            glue(head.last_mut().expect("a binder's word"), dot);
        }
        Tree::Open(head, Box::new(self.expression()))
    }

    /// `i in a..b` and a comma behind it; says whether another index follows.
    fn index(&mut self, head: &mut Vec<Tree>) -> bool {
        let name = if self.at(Token::ParenOpen) { self.brackets(Role::Tuple) } else { self.leaf() };
        head.push(name);
        if self.at(Token::In) {
            head.push(self.leaf());
            let range = self.range();
            head.push(range);
        }
        let more = self.at(Token::Comma);
        if more {
            let comma = self.leaf();
            glue(head.last_mut().expect("the index"), comma);
        }
        more
    }

    /// `a..b`
    fn range(&mut self) -> Tree {
        let low = self.operand(SUM);
        if !self.at(Token::DotDot) {
            return low;
        }
        let dots = self.leaf();
        Tree::Glued(vec![low, dots, self.operand(SUM)])
    }

    fn bindings(&mut self) -> Tree {
        let mut bindings = vec![];
        while self.at(Token::Let) {
            self.statement();
            let mut head = vec![self.leaf()];
            self.pattern(&mut head);
            let value = self.expression();
            let end = self.at(Token::Semicolon).then(|| self.bump());
            bindings.push(Binding { head, value, end });
        }
        self.statement();
        Tree::Lets(bindings, Box::new(self.expression()))
    }

    /// `p: T =`
    fn pattern(&mut self, head: &mut Vec<Tree>) {
        let pattern = self.names();
        head.push(pattern);
        if self.at(Token::Colon) {
            let colon = self.leaf();
            glue(head.last_mut().expect("the pattern"), colon);
            let ty = self.ty();
            head.push(ty);
        }
        if self.at(Token::Equals) {
            head.push(self.leaf());
        }
    }

    /// A name, several in parentheses, or `sum` and these.
    fn names(&mut self) -> Tree {
        match self.token() {
            Token::Sum => {
                let sum = self.leaf();
                Tree::Spaced(vec![sum, self.names()])
            }
            Token::ParenOpen => {
                let open = self.bump();
                let mut items = vec![];
                while !matches!(self.token(), Token::ParenClose | Token::End | Token::Def) {
                    let item = self.names();
                    items.push((item, self.at(Token::Comma).then(|| self.bump())));
                }
                let close = self.at(Token::ParenClose).then(|| self.bump());
                Tree::Brackets(Brackets { role: Role::Tuple, open, items, close })
            }
            _ => self.leaf(),
        }
    }

    fn branch(&mut self) -> Tree {
        let mut arms = vec![];
        let mut words = vec![self.bump()];
        loop {
            let condition = self.expression();
            let then = self.bump();
            let value = self.expression();
            arms.push(Arm { words: std::mem::take(&mut words), condition, then, value });
            if !self.at(Token::Else) {
                return Tree::If(arms, None);
            }
            let otherwise = self.bump();
            if !self.at(Token::If) || !self.leaves[self.at].before.is_empty() || !self.leaves[otherwise].behind.is_empty() {
                return Tree::If(arms, Some((otherwise, Box::new(self.expression()))));
            }
            words = vec![otherwise, self.bump()];
        }
    }

    /// `loop p = e for i in a..b do e`, `… while c do e`
    fn looping(&mut self) -> Tree {
        let mut start = vec![self.leaf()];
        self.pattern(&mut start);
        let init = self.expression();
        start.push(init);
        let mut trip = vec![];
        if matches!(self.token(), Token::For | Token::While) {
            let counted = self.at(Token::For);
            trip.push(self.leaf());
            if counted {
                self.index(&mut trip);
            } else {
                let condition = self.expression();
                trip.push(condition);
            }
        }
        if self.at(Token::Do) {
            trip.push(self.leaf());
        }
        Tree::Loop(start, trip, Box::new(self.expression()))
    }

    /// `|x, y: T| e`
    fn lambda(&mut self) -> Tree {
        let bar = self.leaf();
        let mut words = vec![];
        while !matches!(self.token(), Token::Bar | Token::End | Token::Def) {
            words.push(if is_open(self.token()) { self.brackets(Role::Tuple) } else { self.leaf() });
            for more in [Token::Colon, Token::Comma] {
                if self.at(more) {
                    let leaf = self.leaf();
                    glue(words.last_mut().expect("a name or a type"), leaf);
                    if more == Token::Colon {
                        words.push(self.ty());
                    }
                }
            }
        }
        let mut head = vec![bar];
        for (k, word) in words.into_iter().enumerate() {
            match k {
                0 => glue(&mut head[0], word),
                _ => head.push(word),
            }
        }
        if self.at(Token::Bar) {
            let bar = self.leaf();
            glue(head.last_mut().expect("the first bar"), bar);
        }
        Tree::Open(head, Box::new(self.expression()))
    }

    /// Calls, indices, fields and updates behind an atom.
    fn postfix(&mut self) -> Tree {
        let mut tree = self.atom();
        loop {
            match self.token() {
                Token::ParenOpen | Token::BracketOpen => {
                    let brackets = self.brackets(Role::Arguments);
                    glue(&mut tree, brackets);
                }
                Token::Dot if matches!(self.peek(1), Token::Name | Token::Int) && self.touches() => {
                    let (dot, name) = (self.leaf(), self.leaf());
                    glue(&mut tree, dot);
                    glue(&mut tree, name);
                }
                Token::With => {
                    let mut head = vec![tree, self.leaf()];
                    if is_open(self.token()) {
                        let place = self.brackets(Role::Arguments);
                        head.push(place);
                    } else {
                        head.push(self.leaf());
                    }
                    if self.at(Token::Equals) {
                        head.push(self.leaf());
                    }
                    tree = Tree::Open(head, Box::new(self.expression()));
                }
                _ => return tree,
            }
        }
    }

    /// Whether nothing stands between the current token and the next.
    fn touches(&self) -> bool {
        let (here, next) = (&self.leaves[self.at], &self.leaves[self.at + 1]);
        here.text.as_ptr() as usize + here.text.len() == next.text.as_ptr() as usize
    }

    fn atom(&mut self) -> Tree {
        match self.token() {
            Token::ParenOpen if self.peek(2) == Token::ParenClose && tightness(self.peek(1)).is_some() => {
                Tree::Glued(vec![self.leaf(), self.leaf(), self.leaf()])
            }
            Token::ParenOpen => self.brackets(Role::Tuple),
            Token::BracketOpen => self.brackets(Role::Array),
            Token::BraceOpen => self.brackets(Role::Braces),
            Token::Question => Tree::Glued(vec![self.leaf(), self.leaf()]),
            _ => self.leaf(),
        }
    }

    fn brackets(&mut self, role: Role) -> Tree {
        let close = match self.token() {
            Token::ParenOpen => Token::ParenClose,
            Token::BracketOpen => Token::BracketClose,
            _ => Token::BraceClose,
        };
        let open = self.bump();
        let mut items = vec![];
        while !self.at(close) && !matches!(self.token(), Token::End | Token::Def) {
            let item = self.bracketed(role, close);
            let comma = self.at(Token::Comma).then(|| self.bump());
            items.push((item, comma));
        }
        let close = self.at(close).then(|| self.bump());
        Tree::Brackets(Brackets { role, open, items, close })
    }

    /// One item of a bracket: an expression, `name = e`, `a..b`, `:`, `e : T`, `k -> v`, `name: T`.
    fn bracketed(&mut self, role: Role, close: Token) -> Tree {
        let is_type = matches!(role, Role::Type | Role::Parameters);
        let mut parts: Vec<Tree> = vec![];
        while !self.at(close) && !matches!(self.token(), Token::Comma | Token::End | Token::Def) {
            match self.token() {
                Token::DotDot => {
                    let dots = self.leaf();
                    let mut range: Vec<Tree> = parts.pop().into_iter().collect();
                    range.push(dots);
                    if !self.at(close) && !self.at(Token::Comma) {
                        range.push(self.expression());
                    }
                    parts.push(Tree::Glued(range));
                }
                Token::Colon => {
                    let colon = self.leaf();
                    match parts.last_mut() {
                        Some(last) if role != Role::Tuple => glue(last, colon),
                        _ => parts.push(colon),
                    }
                    if !self.at(close) && !self.at(Token::Comma) {
                        let field = if role == Role::Braces { self.expression() } else { self.ty() };
                        parts.push(field);
                    }
                }
                Token::Arrow | Token::Equals => parts.push(self.leaf()),
                Token::Name if self.peek(1) == Token::Colon => parts.push(self.leaf()),
                // The axes of a type are expressions.
                _ if is_type && close == Token::BracketClose => parts.push(self.expression()),
                _ if is_type => parts.push(self.ty()),
                _ => {
                    let before = self.at;
                    let value = self.expression();
                    parts.push(if self.at == before { self.leaf() } else { value });
                }
            }
        }
        match parts.len() {
            1 => parts.remove(0),
            _ => Tree::Spaced(parts),
        }
    }

    /// A type: axes touch their elements, words and arrows stand apart.
    fn ty(&mut self) -> Tree {
        let mut parts: Vec<Tree> = vec![];
        let mut touching = false;
        loop {
            let part = match self.token() {
                Token::BracketOpen => self.brackets(Role::Type),
                Token::ParenOpen => self.brackets(Role::Type),
                Token::BraceOpen => self.brackets(Role::Type),
                Token::Name | Token::Arrow | Token::Int => self.leaf(),
                _ => break,
            };
            let opens = |token: Token| matches!(&part, Tree::Brackets(b) if self.leaves[b.open].token == token);
            let axes = opens(Token::BracketOpen);
            // `[k] lower [d, d]f64`, `band(1) [n, n]f64`
            let word = |tree: &Tree| matches!(tree, Tree::Leaf(at) if structure::WORDS.contains(&self.leaves[*at].text));
            let stored = word(&part) && matches!(self.token(), Token::BracketOpen | Token::ParenOpen);
            let width = opens(Token::ParenOpen) && parts.last().is_some_and(word);
            match parts.last_mut() {
                Some(last) if (touching && !stored) || width => glue(last, part),
                _ => parts.push(part),
            }
            touching = axes;
            // A new line can begin the next definition, whose words are no part of the type.
            if matches!(self.token(), Token::Name) && !touching && !self.after_arrow() {
                break;
            }
        }
        match parts.len() {
            1 => parts.remove(0),
            _ => Tree::Spaced(parts),
        }
    }

    fn after_arrow(&self) -> bool {
        self.at > 0 && self.leaves[self.at - 1].token == Token::Arrow
    }
}

/// Puts a tree directly behind another.
fn glue(tree: &mut Tree, more: Tree) {
    if let Tree::Glued(parts) = tree {
        parts.push(more);
        return;
    }
    let first = std::mem::replace(tree, Tree::Glued(vec![]));
    *tree = Tree::Glued(vec![first, more]);
}

const LOOSEST: u8 = 0;
const COMPARISON: u8 = 4;
const SUM: u8 = 5;
const NEGATION: u8 = 7;

/// How tightly an infix operator binds, and how chains of it break; a power does not.
fn tightness(token: Token) -> Option<(u8, Option<Level>)> {
    let (_, tightness, remedy) = operator(token)?;
    if remedy.is_some() {
        return None;
    }
    Some((
        tightness,
        match tightness {
            ..COMPARISON => Some(Level::Logic),
            COMPARISON => Some(Level::Comparison),
            SUM => Some(Level::Sum),
            6 => Some(Level::Product),
            _ => None,
        },
    ))
}

fn is_level(token: Token, tightness_wanted: u8) -> bool {
    tightness(token).is_some_and(|(t, _)| t == tightness_wanted)
}
