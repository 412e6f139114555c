//! Scalars back to an expression: what is used twice is a `let`, where all its uses can read it.
//!
//! A choice computes what one side alone needs on that side. Choices by the same condition that do not need one another
//! are one `if` of a tuple. What may fail stands only where its conditions hold, or is asked for under them.

use super::evaluate::Value;
use super::nodes::{Graph, Kind, Node};
use crate::ir::build::*;
use crate::ir::*;
use crate::scalar::CostClass;
use rustc_hash::FxHashMap;

/// Where something is computed: everywhere, or on one side of an `if`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Region(usize);

const ROOT: Region = Region(0);

struct Side {
    outer: Region,
    depth: usize,
    condition: Node,
    holds: bool,
}

/// Choices made together: where, by what, and after how many others.
type Group = (Region, Node, usize);

pub struct Writing<'g, 'a> {
    graph: &'g mut Graph<'a>,
    live: Vec<bool>,
    level: Vec<usize>,
    region: Vec<Region>,
    uses: Vec<usize>,
    sides: Vec<Side>,
    known: FxHashMap<(Group, bool), Region>,
    groups: FxHashMap<Group, Vec<Node>>,
    /// What a node is called, if it has been bound.
    bound: Vec<Option<Var>>,
    members: Vec<Vec<Node>>,
}

/// The expression, and how many operations it has.
pub fn write(graph: &mut Graph, value: &Value) -> (Exp, usize) {
    let count = graph.nodes.len();
    let root = Side { outer: ROOT, depth: 0, condition: Node(0), holds: true };
    let mut writing = Writing {
        graph,
        live: vec![false; count],
        level: vec![0; count],
        region: vec![ROOT; count],
        uses: vec![0; count],
        sides: vec![root],
        known: FxHashMap::default(),
        groups: FxHashMap::default(),
        bound: vec![None; count],
        members: vec![],
    };
    let mut roots = vec![];
    nodes_of(writing.graph, value, &mut |n| roots.push(n));
    writing.plan(&roots);
    let operations = (0..count).filter(|k| writing.live[*k] && writing.costs(Node(*k as u32))).count();
    let bindings = writing.bindings(ROOT);
    let result = writing.result(value);
    (lets(bindings, result), operations)
}

fn nodes_of(graph: &Graph, value: &Value, f: &mut dyn FnMut(Node)) {
    match value {
        Value::Scalar(n) => f(*n),
        Value::Array(parts) | Value::Tuple(parts) | Value::Sum(parts) => parts.iter().for_each(|v| nodes_of(graph, v, f)),
        Value::View(v, keys) => {
            graph.owner(*v).into_iter().for_each(&mut *f);
            keys.iter().for_each(|n| f(*n));
        }
        Value::Singleton(keys, value, _) => {
            keys.iter().for_each(|(n, _)| f(*n));
            nodes_of(graph, value, f);
        }
    }
}

impl Writing<'_, '_> {
    fn costs(&self, n: Node) -> bool {
        match self.graph.kind(n) {
            Kind::Op(op, args) => {
                let kinds: Vec<Scalar> = args.iter().map(|a| self.graph.scalar(*a)).collect();
                op.cost(&kinds) != CostClass::Free
            }
            Kind::Var(_) | Kind::Lit(_) | Kind::Zero(_) | Kind::Int(_) | Kind::Read(..) => false,
            Kind::Choice(..) | Kind::Other(_) | Kind::Part(..) => false,
        }
    }

    /// What is needed, in which order, and where.
    fn plan(&mut self, roots: &[Node]) {
        for n in roots {
            self.live[n.0 as usize] = true;
        }
        let count = self.graph.nodes.len();
        for k in (0..count).rev() {
            if self.live[k] {
                let info = &self.graph.nodes[k];
                info.needs.iter().for_each(|n| self.live[n.0 as usize] = true);
                if let Some(path) = info.path {
                    self.graph.conditions(path).iter().for_each(|(n, _)| self.live[n.0 as usize] = true);
                }
            }
        }
        for k in 0..count {
            if !self.live[k] {
                continue;
            }
            let info = &self.graph.nodes[k];
            let conditions = info.path.map(|p| self.graph.conditions(p)).unwrap_or_default();
            let needs = info.needs.iter().chain(conditions.iter().map(|(n, _)| n));
            let below = needs.map(|n| self.level[n.0 as usize]).max().unwrap_or(0);
            self.level[k] = below + matches!(info.kind, Kind::Choice(..)) as usize;
        }
        let mut places: Vec<Option<Region>> = vec![None; count];
        for n in roots {
            self.used(*n, ROOT, &mut places);
        }
        for k in (0..count).rev() {
            if !self.live[k] {
                continue;
            }
            let n = Node(k as u32);
            let here = places[k].unwrap_or(ROOT);
            self.region[k] = here;
            match *self.graph.kind(n) {
                Kind::Choice(p, a, b) => {
                    let group = (here, p, self.level[k]);
                    self.groups.entry(group).or_default().push(n);
                    // However many are chosen, the condition is looked at once.
                    if self.groups[&group].len() == 1 {
                        self.used(p, here, &mut places);
                    }
                    let (yes, no) = (self.side(group, true), self.side(group, false));
                    self.used(a, yes, &mut places);
                    self.used(b, no, &mut places);
                }
                _ => {
                    for need in self.graph.info(n).needs.clone() {
                        self.used(need, here, &mut places);
                    }
                    for (p, _) in self.missing(n) {
                        self.used(p, here, &mut places);
                    }
                }
            }
        }
        self.members = vec![vec![]; self.sides.len()];
        for k in 0..count {
            if self.live[k] {
                self.members[self.region[k].0].push(Node(k as u32));
            }
        }
        self.groups.values_mut().for_each(|g| g.reverse());
    }

    fn used(&mut self, n: Node, at: Region, places: &mut [Option<Region>]) {
        let place = &mut places[n.0 as usize];
        *place = Some(match *place {
            None => at,
            Some(before) => common(&self.sides, before, at),
        });
        self.uses[n.0 as usize] += 1;
    }

    fn side(&mut self, group: Group, holds: bool) -> Region {
        if let Some(region) = self.known.get(&(group, holds)) {
            return *region;
        }
        let depth = self.sides[group.0.0].depth + 1;
        self.sides.push(Side { outer: group.0, depth, condition: group.1, holds });
        let region = Region(self.sides.len() - 1);
        self.known.insert((group, holds), region);
        region
    }

    /// Conditions of what may fail that are not known to hold where it stands.
    fn missing(&self, n: Node) -> Vec<(Node, bool)> {
        let Some(path) = self.graph.info(n).path else { return vec![] };
        let mut conditions = self.graph.conditions(path);
        let mut region = self.region[n.0 as usize];
        while region != ROOT {
            let side = &self.sides[region.0];
            conditions.retain(|c| *c != (side.condition, side.holds));
            region = side.outer;
        }
        conditions
    }

    /// What is bound in a region, in order.
    fn bindings(&mut self, region: Region) -> Vec<(Vec<Var>, Exp)> {
        let mut order: Vec<(usize, bool, Node)> = vec![];
        for n in self.members[region.0].clone() {
            let is_choice = matches!(self.graph.kind(n), Kind::Choice(..));
            if is_choice || self.is_bound(n) {
                order.push((self.level[n.0 as usize], !is_choice, n));
            }
        }
        order.sort();
        let mut out = vec![];
        for (level, _, n) in order {
            if let Kind::Choice(p, ..) = *self.graph.kind(n) {
                let group = (region, p, level);
                let members = self.groups[&group].clone();
                if members[0] != n || (members.len() == 1 && !self.is_bound(n)) {
                    continue;
                }
                let value = self.choices(group, &members);
                let vars: Vec<Var> = members.iter().map(|m| self.bind(*m)).collect();
                out.push((vars, value));
                continue;
            }
            let value = self.computed(n);
            match self.graph.kind(n) {
                Kind::Other(_) => out.push((self.graph.info(n).vars.clone(), value)),
                _ => {
                    let v = self.bind(n);
                    out.push((vec![v], value));
                }
            }
        }
        out
    }

    fn bind(&mut self, n: Node) -> Var {
        let v = self.graph.variable(n);
        self.bound[n.0 as usize] = Some(v);
        v
    }

    /// Whether a node that is no choice has a name: it is used twice, or something mentions it by name.
    fn is_bound(&self, n: Node) -> bool {
        let info = self.graph.info(n);
        match info.kind {
            Kind::Var(_) | Kind::Lit(_) | Kind::Zero(_) | Kind::Part(..) => false,
            Kind::Int(_) => !info.vars.is_empty(),
            Kind::Other(_) => true,
            Kind::Op(..) | Kind::Read(..) | Kind::Choice(..) => !info.vars.is_empty() || self.uses[n.0 as usize] > 1,
        }
    }

    fn choices(&mut self, group: Group, members: &[Node]) -> Exp {
        let mut arms = vec![];
        for holds in [true, false] {
            let side = self.side(group, holds);
            let bindings = self.bindings(side);
            let values = members.iter().map(|m| match *self.graph.kind(*m) {
                Kind::Choice(_, a, b) => {
                    if holds {
                        a
                    } else {
                        b
                    }
                }
                _ => unreachable!("a group is of choices"),
            });
            let values: Vec<Exp> = values.collect::<Vec<_>>().into_iter().map(|n| self.exp(n)).collect();
            arms.push(lets(bindings, tuple(values)));
        }
        let no = arms.pop().expect("two arms");
        let yes = arms.pop().expect("two arms");
        let condition = self.exp(group.1);
        if is_zero(&no) { guard(condition, yes) } else { if_(condition, yes, no) }
    }

    fn exp(&mut self, n: Node) -> Exp {
        if let Some(v) = self.bound[n.0 as usize] {
            return Exp::Var(v);
        }
        match self.graph.kind(n) {
            Kind::Choice(p, ..) => {
                let group = (self.region[n.0 as usize], *p, self.level[n.0 as usize]);
                self.choices(group, &[n])
            }
            _ => self.computed(n),
        }
    }

    fn computed(&mut self, n: Node) -> Exp {
        let site = self.graph.info(n).site;
        let exp = match self.graph.kind(n).clone() {
            Kind::Var(v) => Exp::Var(v),
            Kind::Lit(lit) => Exp::Lit(lit),
            Kind::Zero(s) => Exp::Lit(Lit::zero(s)),
            Kind::Int(size) => size_exp(&size),
            Kind::Op(op, args) => {
                let args: Vec<Exp> = args.into_iter().map(|a| self.exp(a)).collect();
                match (op, args.as_slice()) {
                    // -(a - b) is b - a, where nothing else needs the difference.
                    (Op::Neg, [Exp::Op(Op::Sub, sides, inner)]) => Exp::Op(Op::Sub, vec![sides[1].clone(), sides[0].clone()], *inner),
                    _ => Exp::Op(op, args, site),
                }
            }
            Kind::Read(v, keys) => Exp::Index(Box::new(Exp::Var(v)), keys.into_iter().map(|k| self.exp(k)).collect(), site),
            Kind::Other(exp) => exp,
            Kind::Part(of, k) => Exp::Var(self.graph.info(of).vars[k]),
            Kind::Choice(..) => unreachable!("choices are made in groups"),
        };
        let mut exp = exp;
        for (p, holds) in self.missing(n) {
            let p = self.exp(p);
            exp = guard(if holds { p } else { op1(Op::Not, p) }, exp);
        }
        exp
    }

    fn result(&mut self, value: &Value) -> Exp {
        match value {
            Value::Scalar(n) => self.exp(*n),
            Value::Array(items) => Exp::Array(items.iter().map(|v| self.result(v)).collect()),
            Value::Tuple(parts) => Exp::Tuple(parts.iter().map(|v| self.result(v)).collect()),
            Value::View(v, keys) => index(Exp::Var(*v), keys.iter().map(|k| self.exp(*k)).collect(), Site::default()),
            Value::Singleton(keys, value, site) => {
                let keys = keys.iter().map(|(k, s)| (self.exp(*k), s.clone())).collect();
                singleton(keys, self.result(value), *site)
            }
            Value::Sum(parts) => {
                let parts: Vec<Exp> = parts.iter().map(|v| self.result(v)).collect();
                parts.into_iter().reduce(add).expect("a sum has parts")
            }
        }
    }
}

/// The innermost region around both.
fn common(sides: &[Side], a: Region, b: Region) -> Region {
    let (mut a, mut b) = (a, b);
    while a != b {
        if sides[a.0].depth >= sides[b.0].depth {
            a = sides[a.0].outer;
        } else {
            b = sides[b.0].outer;
        }
    }
    a
}
