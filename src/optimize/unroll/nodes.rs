//! Scalars as a graph: each operation once, whatever asks for it.
//!
//! A node is made from nodes that exist, so their order is an order of evaluation. Making one applies the laws of
//! `simplify/algebra.rs` to its operands; integers are polynomials in normal form. What may fail knows the conditions
//! under which the program evaluates it (its *path*), and is the same as another only where these include the other's.

use crate::ir::build::*;
use crate::ir::*;
use rustc_hash::FxHashMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node(pub u32);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A variable that is bound outside, of any type but `i64`.
    Var(Var),
    Lit(Lit),
    /// Zero because a bracket does not hold, so that products with it vanish.
    Zero(Scalar),
    /// An integer in normal form.
    Int(Size),
    Op(Op, Vec<Node>),
    /// One place of an array.
    Read(Var, Vec<Node>),
    /// The second where the first holds, else the third.
    Choice(Node, Node, Node),
    /// Any other expression, bound to the node's variables. It mentions variables of nodes.
    Other(Exp),
    /// One of the variables of another expression.
    Part(Node, usize),
}

pub struct Info {
    pub kind: Kind,
    /// `None` for what is no number.
    pub scalar: Option<Scalar>,
    /// What it is computed from.
    pub needs: Vec<Node>,
    /// The variables it is bound to, if something mentions them.
    pub vars: Vec<Var>,
    /// A name for its variable.
    pub name: Option<Var>,
    pub site: Site,
    /// The path of what may fail.
    pub path: Option<Path>,
}

/// Conditions that hold, from the outside in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Path(u32);

impl Path {
    pub const ROOT: Path = Path(0);
}

pub struct Graph<'a> {
    pub vars: &'a mut Vars,
    pub nodes: Vec<Info>,
    known: FxHashMap<(Kind, Option<Path>), Node>,
    /// The nodes of variables that nodes are bound to.
    owners: FxHashMap<Var, Node>,
    paths: Vec<(Path, Node, bool)>,
    /// Operations asked for, and the most nodes there may be.
    pub asked: usize,
    limit: usize,
}

/// There are more nodes than there may be.
pub struct Full;

type Made = Result<Node, Full>;

impl<'a> Graph<'a> {
    pub fn new(vars: &'a mut Vars, limit: usize) -> Graph<'a> {
        let paths = vec![(Path::ROOT, Node(0), true)];
        Graph { vars, nodes: vec![], known: FxHashMap::default(), owners: FxHashMap::default(), paths, asked: 0, limit }
    }

    pub fn info(&self, n: Node) -> &Info {
        &self.nodes[n.0 as usize]
    }
    pub fn kind(&self, n: Node) -> &Kind {
        &self.info(n).kind
    }
    pub fn scalar(&self, n: Node) -> Scalar {
        self.info(n).scalar.expect("a number")
    }
    pub fn literal(&self, n: Node) -> Option<Lit> {
        match self.kind(n) {
            Kind::Lit(lit) => Some(*lit),
            Kind::Zero(s) => Some(Lit::zero(*s)),
            Kind::Int(size) => size.as_constant().map(Lit::I64),
            _ => None,
        }
    }
    pub fn owner(&self, v: Var) -> Option<Node> {
        self.owners.get(&v).copied()
    }

    /// The path with one more condition.
    pub fn under(&mut self, path: Path, condition: Node, holds: bool) -> Path {
        let (condition, holds) = self.plain(condition, holds);
        if let Some(k) = self.paths.iter().skip(1).position(|p| *p == (path, condition, holds)) {
            return Path(k as u32 + 1);
        }
        self.paths.push((path, condition, holds));
        Path(self.paths.len() as u32 - 1)
    }
    fn plain(&self, condition: Node, holds: bool) -> (Node, bool) {
        match self.kind(condition) {
            Kind::Op(Op::Not, args) => self.plain(args[0], !holds),
            _ => (condition, holds),
        }
    }
    /// The conditions of a path, the innermost first.
    pub fn conditions(&self, path: Path) -> Vec<(Node, bool)> {
        let mut all = vec![];
        let mut path = path;
        while path != Path::ROOT {
            let (outer, condition, holds) = self.paths[path.0 as usize];
            all.push((condition, holds));
            path = outer;
        }
        all
    }
    pub fn outer(&self, path: Path) -> Option<Path> {
        (path != Path::ROOT).then(|| self.paths[path.0 as usize].0)
    }

    fn add(&mut self, kind: Kind, scalar: Option<Scalar>, needs: Vec<Node>, site: Site, path: Option<Path>) -> Made {
        if let Some(n) = self.find(&kind, path) {
            return Ok(n);
        }
        if self.nodes.len() >= self.limit {
            return Err(Full);
        }
        let n = Node(self.nodes.len() as u32);
        self.known.insert((kind.clone(), path), n);
        self.nodes.push(Info { kind, scalar, needs, vars: vec![], name: None, site, path });
        Ok(n)
    }
    /// What may fail is known if it was evaluated under fewer conditions.
    fn find(&self, kind: &Kind, path: Option<Path>) -> Option<Node> {
        let Some(mut path) = path else { return self.known.get(&(kind.clone(), None)).copied() };
        loop {
            if let Some(n) = self.known.get(&(kind.clone(), Some(path))) {
                return Some(*n);
            }
            path = self.outer(path)?;
        }
    }

    /// The variable of a node, which is then bound to it.
    pub fn variable(&mut self, n: Node) -> Var {
        match *self.kind(n) {
            Kind::Var(v) => return v,
            Kind::Part(of, k) => return self.info(of).vars[k],
            _ => {}
        }
        if let [v] = self.info(n).vars.as_slice() {
            return *v;
        }
        let ty = Type::Scalar(self.scalar(n));
        let v = match self.info(n).name {
            Some(like) => self.vars.fresh_like(like, ty),
            None => self.vars.fresh("t", ty),
        };
        self.bind(n, vec![v]);
        v
    }
    fn bind(&mut self, n: Node, vars: Vec<Var>) {
        vars.iter().for_each(|v| {
            self.owners.insert(*v, n);
        });
        self.nodes[n.0 as usize].vars = vars;
    }
    pub fn name(&mut self, n: Node, like: Var) {
        self.nodes[n.0 as usize].name.get_or_insert(like);
    }

    /// The node as an operand of an expression that is kept as it is.
    pub fn operand(&mut self, n: Node) -> Exp {
        match self.kind(n) {
            Kind::Lit(lit) => Exp::Lit(*lit),
            Kind::Zero(s) => Exp::Lit(Lit::zero(*s)),
            Kind::Int(size) if size.as_constant().is_some() || size.as_var().is_some() => size_exp(size),
            _ => Exp::Var(self.variable(n)),
        }
    }

    pub fn lit(&mut self, lit: Lit) -> Made {
        match lit {
            Lit::I64(c) => self.int(Size::constant(c)),
            lit => self.add(Kind::Lit(lit), Some(lit.scalar()), vec![], Site::default(), None),
        }
    }
    pub fn zero(&mut self, scalar: Scalar) -> Made {
        match scalar {
            Scalar::F64 | Scalar::F32 => self.add(Kind::Zero(scalar), Some(scalar), vec![], Site::default(), None),
            Scalar::I64 | Scalar::I32 | Scalar::Bool => self.lit(Lit::zero(scalar)),
        }
    }
    pub fn int(&mut self, size: Size) -> Made {
        let mut vars = vec![];
        size.variables(&mut vars);
        let mut needs: Vec<Node> = vars.iter().filter_map(|v| self.owner(*v)).collect();
        needs.sort();
        needs.dedup();
        self.add(Kind::Int(size), Some(Scalar::I64), needs, Site::default(), None)
    }
    /// A scalar variable that is bound outside.
    pub fn outside(&mut self, v: Var) -> Made {
        match self.vars.ty(v).scalar() {
            Some(Scalar::I64) => self.int(Size::var(v)),
            scalar => self.add(Kind::Var(v), scalar, vec![], Site::default(), None),
        }
    }
    fn size(&self, n: Node) -> Option<&Size> {
        match self.kind(n) {
            Kind::Int(size) => Some(size),
            _ => None,
        }
    }
    /// An integer that is no polynomial of others is one in its own variable.
    fn atom(&mut self, n: Node) -> Made {
        match self.info(n).scalar {
            Some(Scalar::I64) if !matches!(self.kind(n), Kind::Int(_)) => {
                let v = self.variable(n);
                self.int(Size::var(v))
            }
            _ => Ok(n),
        }
    }

    pub fn read(&mut self, array: Var, keys: Vec<Node>, site: Site, path: Option<Path>) -> Made {
        let scalar = self.vars.ty(array).scalar();
        let needs = keys.iter().copied().chain(self.owner(array)).collect();
        let n = self.add(Kind::Read(array, keys), scalar, needs, site, path)?;
        self.atom(n)
    }

    /// An expression that is kept as it is; its variables, of these types.
    pub fn other(&mut self, exp: Exp, types: Vec<Type>, path: Path) -> Result<(Node, Vec<Var>), Full> {
        let mut needs: Vec<Node> = exp.free_vars().iter().filter_map(|v| self.owner(*v)).collect();
        needs.sort();
        needs.dedup();
        let key = super::super::share::canonical(&exp);
        if let Some(n) = self.find(&Kind::Other(key.clone()), Some(path)) {
            return Ok((n, self.info(n).vars.clone()));
        }
        let n = self.add(Kind::Other(key), None, needs, Site::default(), Some(path))?;
        self.nodes[n.0 as usize].kind = Kind::Other(exp);
        let vars: Vec<Var> = types.into_iter().map(|ty| self.vars.fresh("t", ty)).collect();
        self.bind(n, vars.clone());
        Ok((n, vars))
    }
    /// A scalar among the variables of another expression.
    pub fn part(&mut self, of: Node, k: usize) -> Made {
        let v = self.info(of).vars[k];
        match self.vars.ty(v).scalar() {
            Some(Scalar::I64) => self.int(Size::var(v)),
            scalar => self.add(Kind::Part(of, k), scalar, vec![of], Site::default(), None),
        }
    }

    pub fn choice(&mut self, condition: Node, yes: Node, no: Node) -> Made {
        if yes == no {
            return Ok(yes);
        }
        if let Some(Lit::Bool(holds)) = self.literal(condition) {
            return Ok(if holds { yes } else { no });
        }
        let (condition, holds) = self.plain(condition, true);
        let (yes, no) = if holds { (yes, no) } else { (no, yes) };
        if let (Some(Lit::Bool(a)), Some(Lit::Bool(b))) = (self.literal(yes), self.literal(no)) {
            return if a && !b { Ok(condition) } else { self.op(Op::Not, vec![condition], Site::default(), None) };
        }
        if let (Some(a), Some(b)) = (self.opposite(yes)?, self.opposite(no)?) {
            let positive = self.choice(condition, a, b)?;
            return self.op(Op::Neg, vec![positive], Site::default(), None);
        }
        let scalar = self.info(yes).scalar;
        let n = self.add(Kind::Choice(condition, yes, no), scalar, vec![condition, yes, no], Site::default(), None)?;
        self.atom(n)
    }

    /// What a node is the negative of: a float with a sign in front.
    fn opposite(&mut self, n: Node) -> Result<Option<Node>, Full> {
        Ok(match *self.kind(n) {
            Kind::Zero(_) => Some(n),
            Kind::Lit(Lit::F64(x)) if x < 0.0 => Some(self.lit(Lit::F64(-x))?),
            Kind::Lit(Lit::F32(x)) if x < 0.0 => Some(self.lit(Lit::F32(-x))?),
            _ if self.info(n).scalar.is_some_and(Scalar::is_float) => self.negated(n),
            _ => None,
        })
    }

    /// The value of a node where the conditions of a path hold.
    pub fn known_under(&self, n: Node, path: Path) -> Node {
        let mut n = n;
        if path == Path::ROOT {
            return n;
        }
        let conditions = self.conditions(path);
        while let Kind::Choice(p, yes, no) = *self.kind(n) {
            match conditions.iter().find(|(q, _)| *q == p) {
                Some((_, holds)) => n = if *holds { yes } else { no },
                None => break,
            }
        }
        n
    }

    /// An operation on numbers; `path` if it may fail.
    pub fn op(&mut self, op: Op, args: Vec<Node>, site: Site, path: Option<Path>) -> Made {
        if let Some(literals) = args.iter().map(|a| self.literal(*a)).collect::<Option<Vec<_>>>() {
            if !args.iter().any(|a| matches!(self.kind(*a), Kind::Zero(_))) {
                if let Ok(value) = op.eval(&literals) {
                    return self.lit(value);
                }
            }
        }
        if let Some(sizes) = args.iter().map(|a| self.size(*a).cloned()).collect::<Option<Vec<_>>>() {
            if let Some(made) = self.integers(op, &sizes) {
                return made;
            }
        }
        if let Some(made) = self.laws(op, &args, site) {
            return made;
        }
        let kinds: Vec<Scalar> = args.iter().map(|a| self.scalar(*a)).collect();
        let scalar = op.result(&kinds).unwrap_or_else(|| panic!("unroll: {op:?} on {kinds:?}"));
        self.asked += 1;
        if let (Op::Add | Op::Mul | Op::And | Op::Or | Op::Eq | Op::Ne, [a, b]) = (op, args.as_slice()) {
            if let Some(same) = self.find(&Kind::Op(op, vec![*b, *a]), path) {
                return self.atom(same);
            }
        }
        let n = self.add(Kind::Op(op, args.clone()), Some(scalar), args, site, path)?;
        self.atom(n)
    }

    fn integers(&mut self, op: Op, sizes: &[Size]) -> Option<Made> {
        let positive = |s: &Size| s.as_constant().is_some_and(|c| c > 0);
        let size = match (op, sizes) {
            (Op::Add, [a, b]) => a.add(b),
            (Op::Sub, [a, b]) => a.sub(b),
            (Op::Mul, [a, b]) => a.mul(b),
            (Op::Neg, [a]) => a.scale(-1),
            (Op::IDiv, [a, b]) if positive(b) => a.div(b),
            (Op::IMod, [a, b]) if positive(b) => a.modulo(b),
            (Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge, [a, b]) => {
                let difference = a.sub(b).as_constant()?;
                let holds = op.eval(&[Lit::I64(difference), Lit::I64(0)]).ok()?;
                return Some(self.lit(holds));
            }
            _ => return None,
        };
        Some(self.int(size))
    }

    fn is_zero(&self, n: Node) -> bool {
        self.literal(n).is_some_and(|lit| lit == Lit::zero(lit.scalar()))
    }
    fn is_small(&self, n: Node, value: i8) -> bool {
        self.literal(n).is_some_and(|lit| lit.scalar().is_number() && lit == Lit::small(lit.scalar(), value))
    }
    fn negated(&self, n: Node) -> Option<Node> {
        match self.kind(n) {
            Kind::Op(Op::Neg, args) => Some(args[0]),
            _ => None,
        }
    }

    /// The laws of rings, and brackets that do not hold.
    fn laws(&mut self, op: Op, args: &[Node], site: Site) -> Option<Made> {
        let vanishes = |g: &Self, n: Node| matches!(g.kind(n), Kind::Zero(_));
        match (op, args) {
            (Op::Add, &[a, b]) => {
                if self.is_zero(b) {
                    return Some(Ok(a));
                }
                if self.is_zero(a) {
                    return Some(Ok(b));
                }
                if let Some(n) = self.negated(b) {
                    return Some(self.op(Op::Sub, vec![a, n], site, None));
                }
                if let Some(n) = self.negated(a) {
                    return Some(self.op(Op::Sub, vec![b, n], site, None));
                }
                None
            }
            (Op::Sub, &[a, b]) => {
                if self.is_zero(b) {
                    return Some(Ok(a));
                }
                if self.is_zero(a) {
                    return Some(self.op(Op::Neg, vec![b], site, None));
                }
                if let Some(n) = self.negated(b) {
                    return Some(self.op(Op::Add, vec![a, n], site, None));
                }
                // Signs go outwards, so that what differs in its sign alone is computed once.
                let opposite = match self.negated(a) {
                    Some(n) => self.op(Op::Add, vec![n, b], site, None),
                    None => Ok(self.find(&Kind::Op(Op::Sub, vec![b, a]), None)?),
                };
                Some(opposite.and_then(|n| self.op(Op::Neg, vec![n], site, None)))
            }
            (Op::Mul, &[a, b]) => {
                if let Some(zero) = [a, b].into_iter().find(|n| vanishes(self, *n)) {
                    return Some(Ok(zero));
                }
                for (one, other) in [(a, b), (b, a)] {
                    if self.is_small(one, 1) {
                        return Some(Ok(other));
                    }
                    if self.is_small(one, -1) {
                        return Some(self.op(Op::Neg, vec![other], site, None));
                    }
                }
                for (n, other) in [(a, b), (b, a)] {
                    if let Some(n) = self.negated(n) {
                        let product = self.op(Op::Mul, vec![n, other], site, None);
                        return Some(product.and_then(|p| self.op(Op::Neg, vec![p], site, None)));
                    }
                }
                None
            }
            (Op::Div, &[a, b]) => {
                if vanishes(self, a) || self.is_small(b, 1) {
                    return Some(Ok(a));
                }
                let n = self.negated(a)?;
                let quotient = self.op(Op::Div, vec![n, b], site, None);
                Some(quotient.and_then(|q| self.op(Op::Neg, vec![q], site, None)))
            }
            (Op::Neg, &[a]) => {
                if vanishes(self, a) {
                    return Some(Ok(a));
                }
                self.negated(a).map(Ok)
            }
            (Op::ToF64 | Op::ToF32, &[a]) if vanishes(self, a) => Some(self.zero(if op == Op::ToF64 { Scalar::F64 } else { Scalar::F32 })),
            (Op::And, &[a, b]) | (Op::Or, &[a, b]) => {
                let neutral = Lit::Bool(op == Op::And);
                match (self.literal(a), self.literal(b)) {
                    (Some(lit), _) => Some(Ok(if lit == neutral { b } else { a })),
                    (_, Some(lit)) => Some(Ok(if lit == neutral { a } else { b })),
                    _ if a == b => Some(Ok(a)),
                    _ => None,
                }
            }
            (Op::Not, &[a]) => match self.kind(a) {
                Kind::Op(Op::Not, inner) => Some(Ok(inner[0])),
                _ => None,
            },
            _ => None,
        }
    }
}
