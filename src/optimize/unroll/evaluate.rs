//! A body to scalars: loops of constant length are run, arrays of constant size are their elements.
//!
//! In: an expression, and what is known of its integers. Out: a value made of nodes (`nodes.rs`). Loops whose length is
//! not known stay as they are, and read what they need from variables.

use super::known::{Element, Known};
use super::nodes::{Full, Graph, Kind, Node, Path};
use crate::ir::build::*;
use crate::ir::facts::Facts;
use crate::ir::traverse::{Substitution, copy};
use crate::ir::*;
use crate::optimize::simplify::guards::may_fail;
use crate::optimize::simplify::lets::has_loop;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// How long a loop may be that is run.
const LONGEST: i64 = 32;
/// How many expressions may be looked at.
const STEPS: usize = 120_000;

#[derive(Clone, Debug)]
pub enum Value {
    Scalar(Node),
    Array(Rc<Vec<Value>>),
    Tuple(Rc<Vec<Value>>),
    /// A variable, read at some keys.
    View(Var, Rc<Vec<Node>>),
    /// `{k -> v}` of an axis that is no constant.
    Singleton(Rc<Vec<(Node, Size)>>, Rc<Value>, Site),
    Sum(Rc<Vec<Value>>),
}

/// Why a body stays as it is.
pub enum Stop {
    /// It has something that straight-line code has no form for.
    Unsupported,
    /// It would be too long.
    Long,
}
impl From<Full> for Stop {
    fn from(_: Full) -> Stop {
        Stop::Long
    }
}

type Found = Result<Value, Stop>;

pub struct Evaluation<'a> {
    pub graph: Graph<'a>,
    facts: &'a Facts,
    pub(super) known: &'a Known,
    values: FxHashMap<Var, Value>,
    path: Path,
    /// Keys that were checked to be below a size, and where.
    checked: FxHashSet<(Node, Size, Path)>,
    steps: usize,
    /// Loops around that are being run.
    running: usize,
    /// Arrays and loops that became scalars.
    pub dissolved: usize,
}

impl<'a> Evaluation<'a> {
    pub fn new(graph: Graph<'a>, facts: &'a Facts, known: &'a Known) -> Evaluation<'a> {
        let (values, checked) = (FxHashMap::default(), FxHashSet::default());
        Evaluation { graph, facts, known, values, path: Path::ROOT, checked, steps: 0, running: 0, dissolved: 0 }
    }

    pub fn value(&mut self, e: &Exp) -> Found {
        self.steps += 1;
        if self.steps > STEPS {
            return Err(Stop::Long);
        }
        match e {
            Exp::Var(v) => self.variable(*v),
            Exp::Lit(lit) => Ok(Value::Scalar(self.graph.lit(*lit)?)),
            Exp::Op(op, args, site) => {
                let args = args.iter().map(|a| self.value(a)).collect::<Result<Vec<_>, _>>()?;
                match op {
                    Op::Add => self.added(args[0].clone(), args[1].clone(), *site),
                    op => {
                        let nodes = args.iter().map(|a| self.node(a)).collect::<Result<Vec<_>, _>>()?;
                        self.operation(*op, nodes, *site)
                    }
                }
            }
            Exp::Index(array, keys, site) => {
                if let Exp::For(i, size, body) = &**array {
                    match keys.as_slice() {
                        [key] if **body == Exp::Var(*i) => return self.checked_key(*i, size, key, *site),
                        _ if size.as_constant().is_none() => return self.other(e),
                        _ => {}
                    }
                }
                let array = self.value(array)?;
                let keys = keys.iter().map(|k| self.scalar(k)).collect::<Result<Vec<_>, _>>()?;
                self.indexed(array, &keys, *site)
            }
            Exp::Singleton(places, value, site) => {
                let keys = places.iter().map(|(k, _)| self.scalar(k)).collect::<Result<Vec<_>, _>>()?;
                let value = self.value(value)?;
                let constant = |n: Node| self.graph.literal(n).and_then(Lit::as_integer);
                let small: Option<Vec<(i64, i64)>> =
                    keys.iter().zip(places).map(|(k, (_, size))| Some((constant(*k)?, short(size)?))).collect();
                match small {
                    Some(small) if small.iter().all(|(k, n)| (0..*n).contains(k)) => {
                        let zero = self.zero_like(&value)?;
                        Ok(small.into_iter().rev().fold((value, zero), place_among).0)
                    }
                    Some(_) => Err(Stop::Unsupported),
                    // Its size would have to be written in other variables.
                    None if places.iter().any(|(_, s)| self.values.keys().any(|v| s.mentions(*v))) => Err(Stop::Unsupported),
                    None => {
                        let places = keys.into_iter().zip(places.iter().map(|(_, s)| s.clone())).collect();
                        Ok(Value::Singleton(Rc::new(places), Rc::new(value), *site))
                    }
                }
            }
            Exp::For(i, size, body) => match short(size).filter(|_| self.is_fixed(body, &[*i])) {
                Some(n) => {
                    let mut items = vec![];
                    self.running += 1;
                    for k in 0..n {
                        self.set_index(*i, k)?;
                        items.push(self.value(body)?);
                    }
                    self.running -= 1;
                    array_of(items)
                }
                None => self.other(e),
            },
            Exp::Sum(range, body) => match self.ends(range)?.filter(|_| self.is_fixed(body, &[range.index])) {
                Some((lo, hi)) if lo < hi => {
                    let mut total: Option<Value> = None;
                    self.running += 1;
                    for k in lo..hi {
                        self.set_index(range.index, k)?;
                        let item = self.value(body)?;
                        total = Some(match total {
                            None => item,
                            Some(before) => self.added(before, item, Site::default())?,
                        });
                    }
                    self.running -= 1;
                    self.dissolved += 1;
                    total.ok_or(Stop::Unsupported)
                }
                Some(_) => {
                    let ty = type_of_exp(self.graph.vars, body);
                    self.zero_of(&ty)
                }
                None => self.other(e),
            },
            Exp::Reduce(kind, range, body, _) => {
                let op = match kind {
                    Reduction::Prod => Op::Mul,
                    Reduction::Max => Op::Max,
                    Reduction::Min => Op::Min,
                    Reduction::Any => Op::Or,
                    Reduction::All => Op::And,
                    Reduction::ArgMax | Reduction::ArgMin => return self.other(e),
                };
                match self.ends(range)?.filter(|_| self.is_fixed(body, &[range.index])) {
                    Some((lo, hi)) if lo < hi => {
                        let mut total: Option<Node> = None;
                        self.running += 1;
                        for k in lo..hi {
                            self.set_index(range.index, k)?;
                            let item = self.scalar(body)?;
                            total = Some(match total {
                                None => item,
                                Some(before) => self.graph.op(op, vec![before, item], Site::default(), None)?,
                            });
                        }
                        self.running -= 1;
                        self.dissolved += 1;
                        total.map(Value::Scalar).ok_or(Stop::Unsupported)
                    }
                    Some(_) | None => self.other(e),
                }
            }
            Exp::History(h) => {
                let all: Vec<Var> = h.state.iter().copied().chain([h.index]).collect();
                match short(&h.size).filter(|_| self.is_fixed(&h.body, &all)) {
                    Some(n) => {
                        let mut states = vec![self.value(&h.init)?];
                        self.running += 1;
                        for k in 0..n {
                            self.set_index(h.index, k)?;
                            let last = states.last().expect("the first state").clone();
                            self.set(&h.state, last)?;
                            states.push(self.value(&h.body)?);
                        }
                        self.running -= 1;
                        self.dissolved += 1;
                        array_of(states)
                    }
                    None => self.other(e),
                }
            }
            Exp::Loop(l) => {
                let Trip::For(range) = &l.trip else { return self.other(e) };
                let all: Vec<Var> = l.state.iter().copied().chain([range.index]).collect();
                match self.ends(range)?.filter(|_| self.is_fixed(&l.body, &all)) {
                    Some((lo, hi)) => {
                        let mut state = self.value(&l.init)?;
                        self.running += 1;
                        for k in lo..hi {
                            self.set_index(range.index, k)?;
                            self.set(&l.state, state)?;
                            state = self.value(&l.body)?;
                        }
                        self.running -= 1;
                        self.dissolved += 1;
                        Ok(state)
                    }
                    None => self.other(e),
                }
            }
            Exp::Update(array, keys, value, _) => {
                let array = self.value(array)?;
                let keys = keys.iter().map(|k| self.scalar(k)).collect::<Result<Vec<_>, _>>()?;
                let value = self.value(value)?;
                self.updated(array, &keys, value)
            }
            Exp::Guard(p, e) => {
                let condition = self.scalar(p)?;
                match self.graph.literal(condition) {
                    Some(Lit::Bool(true)) => self.value(e),
                    Some(_) => {
                        let ty = type_of_exp(self.graph.vars, e);
                        self.zero_of(&ty)
                    }
                    None => {
                        let value = self.branch(condition, true, e)?;
                        let zero = self.zero_like(&value)?;
                        self.chosen(condition, value, zero)
                    }
                }
            }
            Exp::If(p, a, b) => {
                let condition = self.scalar(p)?;
                match self.graph.literal(condition) {
                    Some(Lit::Bool(holds)) => self.value(if holds { a } else { b }),
                    _ => {
                        let (a, b) = (self.branch(condition, true, a)?, self.branch(condition, false, b)?);
                        self.chosen(condition, a, b)
                    }
                }
            }
            Exp::Let(vars, value, body) => {
                let value = self.value(value)?;
                if matches!(value, Value::Array(_)) {
                    self.dissolved += 1;
                }
                self.set(vars, value)?;
                self.value(body)
            }
            Exp::Tuple(parts) => {
                let parts = parts.iter().map(|p| self.value(p)).collect::<Result<Vec<_>, _>>()?;
                Ok(Value::Tuple(Rc::new(parts)))
            }
            Exp::Array(items) => {
                let items = items.iter().map(|p| self.value(p)).collect::<Result<Vec<_>, _>>()?;
                array_of(items)
            }
            Exp::Partial(..) | Exp::Call(..) => Err(Stop::Unsupported),
        }
    }

    fn variable(&mut self, v: Var) -> Found {
        match self.values.get(&v) {
            Some(Value::Scalar(n)) => Ok(Value::Scalar(self.graph.known_under(*n, self.path))),
            Some(value) => Ok(value.clone()),
            None => match self.graph.vars.ty(v) {
                Type::Scalar(_) => Ok(Value::Scalar(self.graph.outside(v)?)),
                Type::Array(..) => Ok(Value::View(v, Rc::new(vec![]))),
                Type::Tuple(_) => Err(Stop::Unsupported),
            },
        }
    }

    fn scalar(&mut self, e: &Exp) -> Result<Node, Stop> {
        let value = self.value(e)?;
        self.node(&value)
    }
    fn node(&self, value: &Value) -> Result<Node, Stop> {
        match value {
            Value::Scalar(n) => Ok(self.graph.known_under(*n, self.path)),
            Value::Array(_) | Value::Tuple(_) | Value::View(..) | Value::Singleton(..) | Value::Sum(_) => Err(Stop::Unsupported),
        }
    }

    fn set_index(&mut self, v: Var, k: i64) -> Result<(), Stop> {
        let n = self.graph.lit(Lit::I64(k))?;
        self.values.insert(v, Value::Scalar(n));
        Ok(())
    }
    fn set(&mut self, vars: &[Var], value: Value) -> Result<(), Stop> {
        match (vars, value) {
            ([v], value) => {
                if let Value::Scalar(n) = value {
                    self.graph.name(n, *v);
                }
                self.values.insert(*v, value);
            }
            (vars, Value::Tuple(parts)) => {
                for (v, part) in vars.iter().zip(parts.iter()) {
                    self.set(&[*v], part.clone())?;
                }
            }
            _ => return Err(Stop::Unsupported),
        }
        Ok(())
    }

    /// The ends of a range, if they are constants and not far apart.
    fn ends(&mut self, range: &Range) -> Result<Option<(i64, i64)>, Stop> {
        let (lo, hi) = (self.scalar(&range.lo)?, self.scalar(&range.hi)?);
        let constant = |n: Node| self.graph.literal(n).and_then(Lit::as_integer);
        Ok(constant(lo).zip(constant(hi)).filter(|(lo, hi)| hi.saturating_sub(*lo) <= LONGEST))
    }

    /// Whether all loops in a body that is to be repeated are of constant length, so that none is written out twice.
    fn is_fixed(&self, e: &Exp, bound: &[Var]) -> bool {
        let known = |e: &Exp, bound: &[Var]| {
            exp_size(e).is_some_and(|size| {
                let mut vars = vec![];
                size.variables(&mut vars);
                vars.iter().all(|v| {
                    let literal = |n: Node| self.graph.literal(n).is_some();
                    bound.contains(v) || matches!(self.values.get(v), Some(Value::Scalar(n)) if literal(*n))
                })
            })
        };
        let range = |r: &Range| known(&r.lo, bound) && known(&r.hi, bound);
        let own = match e {
            Exp::For(_, size, _) => short(size).is_some(),
            Exp::Sum(r, _) | Exp::Reduce(_, r, _, _) => range(r),
            Exp::History(h) => short(&h.size).is_some(),
            Exp::Loop(l) => match &l.trip {
                Trip::For(r) => range(r),
                Trip::While(_) => false,
            },
            // A check of a key, which runs no loop.
            Exp::Index(array, keys, _) if matches!(**array, Exp::For(..)) => return keys.iter().all(|k| self.is_fixed(k, bound)),
            Exp::Var(_)
            | Exp::Lit(_)
            | Exp::Op(..)
            | Exp::Partial(..)
            | Exp::Index(..)
            | Exp::Singleton(..)
            | Exp::Update(..)
            | Exp::Guard(..)
            | Exp::If(..)
            | Exp::Let(..)
            | Exp::Tuple(_)
            | Exp::Array(_)
            | Exp::Call(..) => true,
        };
        let bound = &[bound, &e.binds()].concat();
        let mut all = own;
        e.for_each_child(&mut |c| all = all && self.is_fixed(c, bound));
        all
    }

    fn branch(&mut self, condition: Node, holds: bool, e: &Exp) -> Found {
        let outer = self.path;
        self.path = self.graph.under(outer, condition, holds);
        let value = self.value(e);
        self.path = outer;
        value
    }

    fn operation(&mut self, op: Op, args: Vec<Node>, site: Site) -> Found {
        let kinds: Vec<Scalar> = args.iter().map(|n| self.graph.scalar(*n)).collect();
        let mut path = None;
        if op.can_fail(&kinds) {
            let operands: Vec<Exp> = args.iter().map(|n| self.as_exp(*n)).collect();
            if may_fail(self.graph.vars, self.facts, op, &operands) {
                path = Some(self.path);
            }
        }
        Ok(Value::Scalar(self.graph.op(op, args, site, path)?))
    }

    fn added(&mut self, a: Value, b: Value, site: Site) -> Found {
        match (&a, &b) {
            (Value::Scalar(_), Value::Scalar(_)) => {
                let args = vec![self.node(&a)?, self.node(&b)?];
                self.operation(Op::Add, args, site)
            }
            (Value::Tuple(x), Value::Tuple(y)) => {
                let parts = x.iter().zip(y.iter()).map(|(x, y)| self.added(x.clone(), y.clone(), site));
                Ok(Value::Tuple(Rc::new(parts.collect::<Result<_, _>>()?)))
            }
            (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
                let items = x.iter().zip(y.iter()).map(|(x, y)| self.added(x.clone(), y.clone(), site));
                Ok(Value::Array(Rc::new(items.collect::<Result<_, _>>()?)))
            }
            (Value::Array(_), Value::View(..)) => {
                let b = self.elements(b)?;
                self.added(a, b, site)
            }
            (Value::View(..), Value::Array(_)) => {
                let a = self.elements(a)?;
                self.added(a, b, site)
            }
            _ => {
                let mut parts = vec![];
                for part in [a, b] {
                    match part {
                        Value::Sum(inner) => parts.extend(inner.iter().cloned()),
                        part => parts.push(part),
                    }
                }
                Ok(Value::Sum(Rc::new(parts)))
            }
        }
    }

    /// The elements of an array of constant size.
    fn elements(&mut self, value: Value) -> Found {
        let Value::View(v, keys) = &value else { return Ok(value) };
        let axis = self.graph.vars.ty(*v).shape().get(keys.len()).cloned();
        let n = axis.and_then(|a| short(&a)).ok_or(Stop::Unsupported)?;
        let mut items = vec![];
        for k in 0..n {
            let key = self.graph.lit(Lit::I64(k))?;
            items.push(self.indexed(value.clone(), &[key], Site::default())?);
        }
        array_of(items)
    }

    /// `(for i in 0..n. i)[k]`: an index, checked to be one of an axis.
    fn checked_key(&mut self, i: Var, size: &Size, key: &Exp, site: Site) -> Found {
        let key = self.scalar(key)?;
        if self.values.keys().any(|v| size.mentions(*v)) {
            return Err(Stop::Unsupported);
        }
        if self.facts.in_range(&self.as_exp(key), size) {
            return Ok(Value::Scalar(key));
        }
        self.checked.insert((key, size.clone(), self.path));
        let places = copy(self.graph.vars, &for_(i, size.clone(), Exp::Var(i)), &Substitution::default());
        let exp = Exp::Index(Box::new(places), vec![self.graph.operand(key)], site);
        let (n, _) = self.graph.other(exp, vec![Type::I64], self.path)?;
        Ok(Value::Scalar(self.graph.part(n, 0)?))
    }

    fn indexed(&mut self, array: Value, keys: &[Node], site: Site) -> Found {
        let Some((first, rest)) = keys.split_first() else { return Ok(array) };
        match array {
            Value::Array(items) => match self.graph.literal(*first).and_then(Lit::as_integer) {
                Some(k) => match usize::try_from(k).ok().and_then(|k| items.get(k)) {
                    Some(item) => {
                        let item = match item {
                            Value::Scalar(n) => Value::Scalar(self.graph.known_under(*n, self.path)),
                            item => item.clone(),
                        };
                        self.indexed(item, rest, site)
                    }
                    None => Err(Stop::Unsupported),
                },
                None => {
                    let v = self.stored(&Value::Array(items))?;
                    self.indexed(Value::View(v, Rc::new(vec![])), keys, site)
                }
            },
            Value::View(v, before) => {
                let all: Vec<Node> = before.iter().chain(keys).copied().collect();
                if all.len() < self.graph.vars.ty(v).shape().len() {
                    return Ok(Value::View(v, Rc::new(all)));
                }
                match self.known_element(v, &all) {
                    Some(Element::Lit(lit)) => return Ok(Value::Scalar(self.graph.lit(lit)?)),
                    Some(Element::Zero(scalar)) => return Ok(Value::Scalar(self.graph.zero(scalar)?)),
                    None => {}
                }
                let path = self.checks(v, &all);
                Ok(Value::Scalar(self.graph.read(v, all, site, path)?))
            }
            Value::Tuple(parts) => {
                let parts = parts.iter().map(|p| self.indexed(p.clone(), keys, site));
                Ok(Value::Tuple(Rc::new(parts.collect::<Result<_, _>>()?)))
            }
            Value::Scalar(_) | Value::Singleton(..) | Value::Sum(_) => Err(Stop::Unsupported),
        }
    }

    /// Under which conditions a read is known to be in range or checked to be, `None` if under all.
    fn checks(&mut self, v: Var, keys: &[Node]) -> Option<Path> {
        let shape = self.graph.vars.ty(v).shape().to_vec();
        let mut innermost: Option<(usize, Path)> = None;
        for (key, axis) in keys.iter().zip(shape) {
            let exp = self.as_exp(*key);
            if self.facts.in_range(&exp, &axis) {
                continue;
            }
            let mut path = Some(self.path);
            let mut before = None;
            while let Some(p) = path {
                if self.checked.contains(&(*key, axis.clone(), p)) {
                    before = Some(p);
                }
                path = self.graph.outer(p);
            }
            let at = before.unwrap_or(self.path);
            self.checked.insert((*key, axis, at));
            let depth = self.graph.conditions(at).len();
            if innermost.is_none_or(|(d, _)| d < depth) {
                innermost = Some((depth, at));
            }
        }
        innermost.map(|(_, path)| path)
    }

    /// A node as an expression for the facts.
    fn as_exp(&self, n: Node) -> Exp {
        match self.graph.kind(n) {
            Kind::Int(size) => size_exp(size),
            Kind::Lit(lit) => Exp::Lit(*lit),
            Kind::Zero(s) => Exp::Lit(Lit::zero(*s)),
            // Nothing is known of it but its type.
            Kind::Var(_) | Kind::Op(..) | Kind::Read(..) | Kind::Choice(..) | Kind::Other(_) | Kind::Part(..) => {
                let some = Exp::Lit(Lit::zero(self.graph.scalar(n)));
                if_(bool(true), some.clone(), some)
            }
        }
    }

    fn updated(&mut self, array: Value, keys: &[Node], value: Value) -> Found {
        let Some((first, rest)) = keys.split_first() else { return Ok(value) };
        let k = self.graph.literal(*first).and_then(Lit::as_integer).and_then(|k| usize::try_from(k).ok());
        match (self.elements(array)?, k) {
            (Value::Array(items), Some(k)) if k < items.len() => {
                let mut items = (*items).clone();
                items[k] = self.updated(items[k].clone(), rest, value)?;
                Ok(Value::Array(Rc::new(items)))
            }
            _ => Err(Stop::Unsupported),
        }
    }

    fn chosen(&mut self, condition: Node, a: Value, b: Value) -> Found {
        match (&a, &b) {
            (Value::Scalar(x), Value::Scalar(y)) => Ok(Value::Scalar(self.graph.choice(condition, *x, *y)?)),
            (Value::Tuple(x), Value::Tuple(y)) => {
                let parts = x.iter().zip(y.iter()).map(|(x, y)| self.chosen(condition, x.clone(), y.clone()));
                Ok(Value::Tuple(Rc::new(parts.collect::<Result<_, _>>()?)))
            }
            (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
                let items = x.iter().zip(y.iter()).map(|(x, y)| self.chosen(condition, x.clone(), y.clone()));
                Ok(Value::Array(Rc::new(items.collect::<Result<_, _>>()?)))
            }
            (Value::View(v, x), Value::View(w, y)) if v == w && x == y => Ok(a),
            (Value::Array(_) | Value::View(..), Value::Array(_) | Value::View(..)) => {
                let outer = self.path;
                self.path = self.graph.under(outer, condition, true);
                let x = self.elements(a);
                self.path = self.graph.under(outer, condition, false);
                let y = self.elements(b);
                self.path = outer;
                self.chosen(condition, x?, y?)
            }
            _ => Err(Stop::Unsupported),
        }
    }

    fn zero_of(&mut self, ty: &Type) -> Found {
        match ty {
            Type::Scalar(s) => Ok(Value::Scalar(self.graph.zero(*s)?)),
            Type::Tuple(parts) => {
                let parts = parts.iter().map(|t| self.zero_of(t)).collect::<Result<_, _>>()?;
                Ok(Value::Tuple(Rc::new(parts)))
            }
            Type::Array(shape, s) => {
                let mut value = Value::Scalar(self.graph.zero(*s)?);
                for axis in shape.iter().rev() {
                    let n = short(axis).ok_or(Stop::Unsupported)?;
                    value = Value::Array(Rc::new(vec![value; n as usize]));
                }
                Ok(value)
            }
        }
    }
    fn zero_like(&mut self, value: &Value) -> Found {
        match value {
            Value::Scalar(n) => {
                let scalar = self.graph.scalar(*n);
                Ok(Value::Scalar(self.graph.zero(scalar)?))
            }
            Value::Array(items) => {
                let items = items.iter().map(|v| self.zero_like(v)).collect::<Result<_, _>>()?;
                Ok(Value::Array(Rc::new(items)))
            }
            Value::Tuple(parts) => {
                let parts = parts.iter().map(|v| self.zero_like(v)).collect::<Result<_, _>>()?;
                Ok(Value::Tuple(Rc::new(parts)))
            }
            Value::View(v, keys) => {
                let ty = self.graph.vars.ty(*v).without_axes(keys.len()).ok_or(Stop::Unsupported)?;
                self.zero_of(&ty)
            }
            Value::Singleton(..) | Value::Sum(_) => Err(Stop::Unsupported),
        }
    }

    /// A variable that has the value.
    fn stored(&mut self, value: &Value) -> Result<Var, Stop> {
        if let Value::View(v, keys) = value {
            if keys.is_empty() {
                return Ok(*v);
            }
        }
        let exp = self.operand(value)?;
        let ty = type_of_exp(self.graph.vars, &exp);
        let (_, vars) = self.graph.other(exp, vec![ty], self.path)?;
        Ok(vars[0])
    }
    fn operand(&mut self, value: &Value) -> Result<Exp, Stop> {
        Ok(match value {
            Value::Scalar(n) => self.graph.operand(*n),
            Value::Array(items) => Exp::Array(items.iter().map(|v| self.operand(v)).collect::<Result<_, _>>()?),
            Value::Tuple(parts) => Exp::Tuple(parts.iter().map(|v| self.operand(v)).collect::<Result<_, _>>()?),
            Value::View(v, keys) => index(Exp::Var(*v), keys.iter().map(|k| self.graph.operand(*k)).collect(), Site::default()),
            Value::Singleton(..) | Value::Sum(_) => return Err(Stop::Unsupported),
        })
    }

    /// An expression that is kept as it is.
    fn other(&mut self, e: &Exp) -> Found {
        if self.running > 0 && !matches!(e, Exp::Index(..)) && has_loop(e) {
            return Err(Stop::Unsupported);
        }
        let mut with = Substitution::default();
        for v in e.free_vars() {
            let Some(value) = self.values.get(&v).cloned() else { continue };
            let exp = match &value {
                Value::Array(_) if reads_literally(e, v) => self.operand(&value)?,
                Value::Array(_) | Value::View(..) => Exp::Var(self.stored(&value)?),
                value => self.operand(value)?,
            };
            with.insert(v, exp);
        }
        let exp = literal_reads(copy(self.graph.vars, e, &with));
        let types = match type_of_exp(self.graph.vars, &exp) {
            Type::Tuple(parts) => parts.iter().cloned().collect(),
            ty => vec![ty],
        };
        let single = types.len() == 1;
        let (n, vars) = self.graph.other(exp, types, self.path)?;
        let mut parts = vec![];
        for (k, v) in vars.iter().enumerate() {
            parts.push(match self.graph.vars.ty(*v) {
                Type::Scalar(_) => Value::Scalar(self.graph.part(n, k)?),
                Type::Array(..) => Value::View(*v, Rc::new(vec![])),
                Type::Tuple(_) => return Err(Stop::Unsupported),
            });
        }
        Ok(if single { parts.remove(0) } else { Value::Tuple(Rc::new(parts)) })
    }
}

/// Whether an array is read at places that are literals only.
fn reads_literally(e: &Exp, v: Var) -> bool {
    match e {
        Exp::Var(w) => *w != v,
        Exp::Index(array, keys, _) if **array == Exp::Var(v) => keys.iter().all(|k| matches!(k, Exp::Lit(Lit::I64(_)))),
        e => {
            let mut all = true;
            e.for_each_child(&mut |c| all = all && reads_literally(c, v));
            all
        }
    }
}

/// Reads of arrays that are written out, at literals.
fn literal_reads(e: Exp) -> Exp {
    let mut e = e.map_children(&mut literal_reads);
    loop {
        e = match e {
            Exp::Index(array, keys, site) => match (*array, &keys[0]) {
                (Exp::Array(items), Exp::Lit(Lit::I64(k))) if (0..items.len() as i64).contains(k) => {
                    index(items[*k as usize].clone(), keys[1..].to_vec(), site)
                }
                (array, _) => return Exp::Index(Box::new(array), keys, site),
            },
            e => return e,
        }
    }
}

/// A constant size of which every place may be written out.
fn short(size: &Size) -> Option<i64> {
    size.as_constant().filter(|n| (1..=LONGEST).contains(n))
}

/// A value at one place, zero elsewhere, and the zero of that.
fn place_among((value, zero): (Value, Value), (k, n): (i64, i64)) -> (Value, Value) {
    let mut items = vec![zero.clone(); n as usize];
    items[k as usize] = value;
    (Value::Array(Rc::new(items)), Value::Array(Rc::new(vec![zero; n as usize])))
}

/// An array of tuples is a tuple of arrays.
fn array_of(items: Vec<Value>) -> Found {
    if let Some(Value::Tuple(first)) = items.first() {
        let mut parts = vec![];
        for k in 0..first.len() {
            let column = items.iter().map(|item| match item {
                Value::Tuple(parts) => Ok(parts[k].clone()),
                _ => Err(Stop::Unsupported),
            });
            parts.push(array_of(column.collect::<Result<_, _>>()?)?);
        }
        return Ok(Value::Tuple(Rc::new(parts)));
    }
    if items.iter().any(|v| matches!(v, Value::Singleton(..) | Value::Sum(_))) {
        return Err(Stop::Unsupported);
    }
    Ok(Value::Array(Rc::new(items)))
}
