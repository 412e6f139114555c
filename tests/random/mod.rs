//! Random well-typed expressions: every construct in every position.
#![allow(dead_code)]

use iverson::diagnostic::Span;
use iverson::ir::build::*;
use iverson::ir::*;
use iverson::value::{Array, Data, Value};

/// Numbers that are the same in every run.
pub struct Random(pub u64);
impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
    fn float(&mut self) -> f64 {
        self.below(4001) as f64 / 1000.0 - 2.0
    }
    fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }
}

/// Writes random expressions of given types over the variables in scope.
struct Writer {
    program: Program,
    random: Random,
    scope: Vec<Var>,
    /// Indices in scope and the sizes they run below.
    indices: Vec<(Var, Size)>,
    sizes: Vec<Size>,
    sites: usize,
}

impl Writer {
    fn fresh(&mut self, name: &str, ty: Type) -> Var {
        self.program.vars.fresh(name, ty)
    }
    fn site(&mut self) -> Site {
        self.sites += 1;
        Site::new(Span::new(0, self.sites, self.sites + 1))
    }
    fn vars_of(&self, ty: &Type) -> Vec<Var> {
        self.scope.iter().copied().filter(|v| self.program.vars.ty(*v) == ty).collect()
    }
    fn size(&mut self) -> Size {
        let sizes = self.sizes.clone();
        self.random.pick(&sizes)
    }
    fn element(&mut self) -> Scalar {
        self.random.pick(&[Scalar::F64, Scalar::F64, Scalar::F64, Scalar::F32, Scalar::I64, Scalar::I32])
    }
    fn ty(&mut self, depth: usize) -> Type {
        match self.random.below(if depth == 0 { 4 } else { 6 }) {
            0 => Type::F64,
            1 => self.random.pick(&[Type::F64, Type::F64, Type::F32, Type::I32]),
            2 => Type::Array(vec![self.size()], self.element()),
            3 => Type::Array(vec![self.size(), self.size()], self.element()),
            4 => Type::I64,
            _ => Type::Tuple((0..2 + self.random.below(2)).map(|_| self.ty(depth - 1)).collect()),
        }
    }

    /// Runs with an index in scope.
    fn under<T>(&mut self, name: &str, size: &Size, f: impl FnOnce(&mut Writer, Var) -> T) -> T {
        let i = self.fresh(name, Type::I64);
        self.scope.push(i);
        self.indices.push((i, size.clone()));
        let result = f(self, i);
        self.indices.pop();
        self.scope.pop();
        result
    }

    fn exp(&mut self, ty: &Type, depth: usize) -> Exp {
        let known = self.vars_of(ty);
        if !known.is_empty() && self.random.chance(if depth == 0 { 80 } else { 15 }) {
            return self.random.pick(&known).into();
        }
        if depth == 0 {
            return self.leaf(ty);
        }
        if self.random.chance(25) {
            return self.any_type(ty, depth);
        }
        match ty {
            Type::Scalar(s @ (Scalar::F64 | Scalar::F32)) => self.float(*s, depth),
            Type::Scalar(Scalar::I64) => self.int(depth),
            Type::Scalar(Scalar::I32) => self.short_int(depth),
            Type::Scalar(Scalar::Bool) => self.truth(depth),
            Type::Array(shape, s) => self.array(shape, *s, depth),
            Type::Tuple(parts) => self.tuple(parts, depth),
        }
    }

    fn leaf(&mut self, ty: &Type) -> Exp {
        match ty {
            Type::Scalar(s @ (Scalar::F64 | Scalar::F32)) => float(*s, self.random.float()),
            Type::Scalar(s @ (Scalar::I64 | Scalar::I32)) => Exp::Lit(Lit::integer(*s, self.random.below(4) as i64)),
            Type::Scalar(Scalar::Bool) => bool(self.random.chance(50)),
            Type::Array(shape, s) => {
                let inner = Type::array(shape[1..].to_vec(), *s);
                self.under("l", &shape[0], |w, i| {
                    let body = w.leaf(&inner);
                    for_(i, shape[0].clone(), body)
                })
            }
            Type::Tuple(parts) => Exp::Tuple(parts.iter().map(|t| self.leaf(t)).collect()),
        }
    }

    /// Constructs of any type.
    fn any_type(&mut self, ty: &Type, depth: usize) -> Exp {
        match self.random.below(4) {
            0 => {
                let p = self.exp(&Type::BOOL, depth - 1);
                guard(p, self.exp(ty, depth - 1))
            }
            1 => {
                let p = self.exp(&Type::BOOL, depth - 1);
                let a = self.exp(ty, depth - 1);
                if_(p, a, self.exp(ty, depth - 1))
            }
            2 => {
                let bound = self.ty(1);
                let value = self.exp(&bound, depth - 1);
                let vars = match &bound {
                    Type::Tuple(parts) if self.random.chance(70) => parts.iter().map(|t| self.fresh("t", t.clone())).collect(),
                    _ => vec![self.fresh("v", bound)],
                };
                self.scope.extend(&vars);
                let body = self.exp(ty, depth - 1);
                self.scope.truncate(self.scope.len() - vars.len());
                let_(vars, value, body)
            }
            _ => {
                // a read of something with an axis more
                let size = self.size();
                let array = self.exp(&ty.with_axis(&size), depth - 1);
                let key = self.key(&size, depth - 1);
                let site = self.site();
                index(array, vec![key], site)
            }
        }
    }

    fn key(&mut self, size: &Size, depth: usize) -> Exp {
        let fitting: Vec<Var> = self.indices.iter().filter(|(_, s)| s == size).map(|(v, _)| *v).collect();
        match self.random.below(10) {
            0 => self.exp(&Type::I64, depth.min(2)),
            1 | 2 => op2(Op::IMod, self.exp(&Type::I64, depth.min(1)), size_exp(size)),
            3 => i64(0),
            _ if !fitting.is_empty() => self.random.pick(&fitting).into(),
            4 | 5 => sub(size_exp(size), i64(1)),
            _ => op2(Op::Min, i64(self.random.below(3) as i64), sub(size_exp(size), i64(1))),
        }
    }

    /// A range that an index below `size` may have.
    fn range(&mut self, i: Var, size: &Size, depth: usize) -> Range {
        let lo = if self.random.chance(70) { i64(0) } else { self.without(i, |w| op2(Op::Max, i64(0), w.exp(&Type::I64, depth.min(1)))) };
        let hi = if self.random.chance(70) {
            size_exp(size)
        } else {
            self.without(i, |w| op2(Op::Min, size_exp(size), w.exp(&Type::I64, depth.min(1))))
        };
        Range { index: i, lo, hi }
    }
    /// The bounds of an index do not mention it.
    fn without<T>(&mut self, i: Var, f: impl FnOnce(&mut Writer) -> T) -> T {
        let (scope, indices) = (self.scope.clone(), self.indices.clone());
        self.scope.retain(|v| *v != i);
        self.indices.retain(|(v, _)| *v != i);
        let result = f(self);
        (self.scope, self.indices) = (scope, indices);
        result
    }

    fn sum_of(&mut self, ty: &Type, depth: usize) -> Exp {
        let size = self.size();
        self.under("s", &size.clone(), |w, i| {
            let range = w.range(i, &size, depth - 1);
            Exp::Sum(Box::new(range), Box::new(w.exp(ty, depth - 1)))
        })
    }
    fn reduce(&mut self, kinds: &[Reduction], of: &Type, depth: usize) -> Exp {
        let size = self.size();
        let kind = self.random.pick(kinds);
        self.under("r", &size.clone(), |w, i| {
            let range = w.range(i, &size, depth - 1);
            let body = w.exp(of, depth - 1);
            Exp::Reduce(kind, Box::new(range), Box::new(body), w.site())
        })
    }

    fn float(&mut self, s: Scalar, depth: usize) -> Exp {
        let f = Type::Scalar(s);
        match self.random.below(10) {
            0..=2 => {
                let op = self.random.pick(&[Op::Add, Op::Sub, Op::Mul, Op::Min, Op::Max]);
                let a = self.exp(&f, depth - 1);
                op2(op, a, self.exp(&f, depth - 1))
            }
            3 => {
                let op = self.random.pick(&[Op::Sin, Op::Tanh, Op::Neg, Op::Abs, Op::Cos, Op::Atan]);
                op1(op, self.exp(&f, depth - 1))
            }
            4 => Exp::Partial(Op::Atan, 0, vec![self.exp(&f, depth - 1)]),
            5 => {
                let from = self.random.pick(&[Type::I64, Type::I32, Type::BOOL, Type::F64, Type::F32]);
                op1(Op::conversion(s).expect("to a number"), self.exp(&from, depth - 1))
            }
            6 => op2(Op::Pow, self.exp(&f, depth - 1), i64(self.random.below(4) as i64)),
            7 => self.reduce(&[Reduction::Prod, Reduction::Max, Reduction::Min], &f, depth),
            _ => self.sum_of(&f, depth),
        }
    }
    fn int(&mut self, depth: usize) -> Exp {
        let i = Type::I64;
        match self.random.below(9) {
            0..=2 => {
                let op = self.random.pick(&[Op::Add, Op::Sub, Op::Mul, Op::Min, Op::Max]);
                let a = self.exp(&i, depth - 1);
                op2(op, a, self.exp(&i, depth - 1))
            }
            3 => {
                let op = self.random.pick(&[Op::IDiv, Op::IMod]);
                let a = self.exp(&i, depth - 1);
                let b = if self.random.chance(80) { i64(3) } else { self.exp(&i, depth - 1) };
                op2(op, a, b)
            }
            4 => self.reduce(&[Reduction::ArgMax, Reduction::ArgMin], &Type::F64, depth),
            5 => {
                let from = self.random.pick(&[Type::F64, Type::F32, Type::I32]);
                op1(Op::ToI64, self.exp(&from, depth - 1))
            }
            6 => self.reduce(&[Reduction::Prod, Reduction::Max, Reduction::Min], &i, depth),
            7 => self.size_of(),
            _ => self.sum_of(&i, depth),
        }
    }
    fn short_int(&mut self, depth: usize) -> Exp {
        let i = Type::I32;
        match self.random.below(6) {
            0 | 1 => {
                let op = self.random.pick(&[Op::Add, Op::Sub, Op::Mul, Op::Min, Op::Max]);
                let a = self.exp(&i, depth - 1);
                op2(op, a, self.exp(&i, depth - 1))
            }
            2 => {
                let op = self.random.pick(&[Op::IDiv, Op::IMod, Op::Pow]);
                op2(op, self.exp(&i, depth - 1), Exp::Lit(Lit::I32(3)))
            }
            3 => self.reduce(&[Reduction::Prod, Reduction::Max, Reduction::Min], &i, depth),
            4 => {
                let from = self.random.pick(&[Type::I64, Type::BOOL, Type::F64, Type::F32]);
                op1(Op::ToI32, self.exp(&from, depth - 1))
            }
            _ => self.sum_of(&i, depth),
        }
    }
    fn size_of(&mut self) -> Exp {
        let size = self.size();
        size_exp(&size)
    }
    fn truth(&mut self, depth: usize) -> Exp {
        match self.random.below(5) {
            0 | 1 => {
                let of = self.random.pick(&[Type::F64, Type::I64, Type::F32, Type::I32]);
                let op = self.random.pick(&[Op::Lt, Op::Le, Op::Gt, Op::Ge, Op::Eq, Op::Ne]);
                let a = self.exp(&of, depth - 1);
                op2(op, a, self.exp(&of, depth - 1))
            }
            2 => {
                let op = self.random.pick(&[Op::And, Op::Or]);
                let a = self.exp(&Type::BOOL, depth - 1);
                op2(op, a, self.exp(&Type::BOOL, depth - 1))
            }
            3 => op1(Op::Not, self.exp(&Type::BOOL, depth - 1)),
            _ => self.reduce(&[Reduction::Any, Reduction::All], &Type::BOOL, depth),
        }
    }
    fn array(&mut self, shape: &[Size], s: Scalar, depth: usize) -> Exp {
        let ty = Type::array(shape.to_vec(), s);
        let inner = Type::array(shape[1..].to_vec(), s);
        match self.random.below(10) {
            0..=2 => self.under("i", &shape[0], |w, i| for_(i, shape[0].clone(), w.exp(&inner, depth - 1))),
            3 | 4 if s != Scalar::Bool => self.sum_of(&ty, depth),
            5 if s != Scalar::Bool => {
                let a = self.exp(&ty, depth - 1);
                add(a, self.exp(&ty, depth - 1))
            }
            6 | 7 => {
                let key = self.key(&shape[0], depth - 1);
                let value = self.exp(&inner, depth - 1);
                let site = self.site();
                singleton(vec![(key, shape[0].clone())], value, site)
            }
            8 => match shape[0].as_constant() {
                Some(count) if count > 0 => Exp::Array((0..count).map(|_| self.exp(&inner, depth - 1)).collect()),
                _ => self.history(&shape[0], &inner, depth),
            },
            _ => self.history(&shape[0], &inner, depth),
        }
    }
    /// All states of a loop, where the axis is one longer than something that is not negative.
    fn history(&mut self, axis: &Size, state: &Type, depth: usize) -> Exp {
        let steps = axis.sub(&Size::constant(1));
        let whole = self.sizes.contains(&steps) || steps.as_constant().is_some_and(|c| c >= 0);
        if !whole {
            return self.under("i", axis, |w, i| for_(i, axis.clone(), w.exp(state, depth - 1)));
        }
        let init = self.exp(state, depth - 1);
        let states: Vec<Var> = match state {
            Type::Tuple(parts) => parts.iter().map(|t| self.fresh("p", t.clone())).collect(),
            _ => vec![self.fresh("p", state.clone())],
        };
        self.scope.extend(&states);
        let result = self.under("h", &steps.clone(), |w, i| {
            let body = w.exp(state, depth - 1);
            Exp::History(Box::new(History { state: states.clone(), init, index: i, size: steps, body }))
        });
        self.scope.truncate(self.scope.len() - states.len());
        result
    }
    fn tuple(&mut self, parts: &[Type], depth: usize) -> Exp {
        let ty = Type::tuple(parts.to_vec());
        let numeric = parts.iter().all(is_numeric);
        // A tuple of arrays that share their first axis is an array of tuples.
        let axis = parts.iter().map(|t| t.shape().first()).collect::<Option<Vec<_>>>().filter(|a| a.windows(2).all(|p| p[0] == p[1]));
        match self.random.below(6) {
            0 | 1 if axis.is_some() => {
                let axis = axis.expect("just seen")[0].clone();
                let inner = ty.without_axes(1).expect("all have an axis");
                match self.random.below(3) {
                    0 => self.history(&axis, &inner, depth),
                    1 => {
                        let key = self.key(&axis, depth - 1);
                        let value = self.exp(&inner, depth - 1);
                        let site = self.site();
                        singleton(vec![(key, axis)], value, site)
                    }
                    _ => self.under("i", &axis, |w, i| for_(i, axis.clone(), w.exp(&inner, depth - 1))),
                }
            }
            2 if numeric => self.sum_of(&ty, depth),
            3 if numeric => {
                let a = self.exp(&ty, depth - 1);
                add(a, self.exp(&ty, depth - 1))
            }
            _ => Exp::Tuple(parts.iter().map(|t| self.exp(t, depth - 1)).collect()),
        }
    }
}

fn is_numeric(ty: &Type) -> bool {
    match ty {
        Type::Scalar(s) | Type::Array(_, s) => *s != Scalar::Bool,
        Type::Tuple(parts) => parts.iter().all(is_numeric),
    }
}

/// A function of a matrix, two vectors, an index vector and scalars, with a random body.
pub fn random_program(seed: u64, depth: usize) -> Program {
    let mut program = Program::default();
    let n = program.vars.fresh("n", Type::I64);
    let m = program.vars.fresh("m", Type::I64);
    let (sn, sm) = (Size::var(n), Size::var(m));
    let mut w = Writer {
        program,
        random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
        scope: vec![n, m],
        indices: vec![],
        sizes: vec![sn.clone(), sm.clone(), sn.add(&Size::constant(1)), Size::constant(3)],
        sites: 0,
    };
    for _ in 0..5 {
        w.random.next();
    }
    let types = [
        ("A", Type::Array(vec![sn.clone(), sm.clone()], Scalar::F64)),
        ("x", Type::Array(vec![sn.clone()], Scalar::F64)),
        ("y1", Type::Array(vec![sm], Scalar::F64)),
        ("is", Type::Array(vec![sn.clone()], Scalar::I64)),
        ("z", Type::Array(vec![sn.clone()], Scalar::F32)),
        ("js", Type::Array(vec![sn], Scalar::I32)),
        ("I", Type::F64),
        ("k", Type::I64),
    ];
    let params: Vec<Var> = types.into_iter().map(|(name, ty)| w.fresh(name, ty)).collect();
    w.scope.extend(&params);
    let result = w.ty(2);
    let body = w.exp(&result, depth);
    let function = Function {
        name: "f".into(),
        sizes: vec![n, m],
        params,
        result,
        body: Body::Exp(body),
        signature: None,
        hidden: None,
        statics: vec![],
        span: Span::new(0, 900, 901),
    };
    w.program.functions.push(function);
    w.program
}

pub fn arguments(seed: u64, n: usize, m: usize) -> Vec<Value> {
    let mut r = Random(seed.wrapping_mul(0x1234_5678_9abc_def1) | 1);
    let mut floats = |count: usize| (0..count).map(|_| r.float()).collect::<Vec<f64>>();
    let a = Array { shape: vec![n, m], data: Data::F64(floats(n * m)) };
    let (x, y) = (floats(n), floats(m));
    let is: Vec<i64> = (0..n).map(|i| ((i * 7 + 3) % n.max(1)) as i64).collect();
    let z: Vec<f32> = x.iter().map(|x| *x as f32).collect();
    let js: Vec<i32> = is.iter().rev().map(|k| *k as i32).collect();
    let scalars = [Value::from(0.75), Value::from(2i64)];
    [Value::Array(a), Value::from(x), Value::from(y), Value::from(is), Value::from(z), Value::from(js)].into_iter().chain(scalars).collect()
}
