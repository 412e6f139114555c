//! Values and destinations while lowering: scalars, views of buffers, tuples of them; copying, adding and zeroing.
//!
//! A view is a row-major array that begins at an offset of a buffer: indices only ever drop leading axes, so every
//! view is contiguous, and the place `[k, l]` of a view of shape `[_, m]` is at `offset + k * m + l`.

use super::*;
use crate::types::size::Atom;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct View {
    pub buffer: Buffer,
    pub offset: Expr,
    pub shape: Vec<Size>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Val {
    Scalar(Expr),
    Array(View),
    Tuple(Vec<Val>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Dest {
    Scalar(Target),
    Array(View),
    Tuple(Vec<Dest>),
}

impl Dest {
    /// What is in the destination, as a value.
    pub fn value(&self) -> Val {
        match self {
            Dest::Scalar(Target::Local(l)) => Val::Scalar(Expr::Local(*l)),
            Dest::Scalar(Target::Place(b, offset)) => Val::Scalar(Expr::Load(*b, Box::new(offset.clone()))),
            Dest::Array(view) => Val::Array(view.clone()),
            Dest::Tuple(parts) => Val::Tuple(parts.iter().map(Dest::value).collect()),
        }
    }
    pub fn parts(&self) -> &[Dest] {
        match self {
            Dest::Tuple(parts) => parts,
            Dest::Scalar(_) | Dest::Array(_) => panic!("lower: a tuple destination was expected"),
        }
    }
    /// The part of a part of a tuple.
    pub fn part(&self, path: &[usize]) -> Dest {
        path.iter().fold(self, |dest, k| &dest.parts()[*k]).clone()
    }
    /// The scalars among its leaves.
    pub fn for_each_scalar(&mut self, f: &mut impl FnMut(&mut Target)) {
        match self {
            Dest::Scalar(target) => f(target),
            Dest::Array(_) => {}
            Dest::Tuple(parts) => parts.iter_mut().for_each(|d| d.for_each_scalar(f)),
        }
    }
    pub fn for_each_view(&self, f: &mut impl FnMut(&View)) {
        match self {
            Dest::Scalar(_) => {}
            Dest::Array(view) => f(view),
            Dest::Tuple(parts) => parts.iter().for_each(|d| d.for_each_view(f)),
        }
    }
}

impl Val {
    /// The first axis of the first leaf: binders and indices act on all leaves alike.
    pub fn first_shape(&self) -> Option<&[Size]> {
        match self {
            Val::Scalar(_) => Some(&[]),
            Val::Array(view) => Some(&view.shape),
            Val::Tuple(parts) => parts.iter().find_map(Val::first_shape),
        }
    }
}

impl Lowering<'_> {
    /// A size as an expression over locals.
    pub fn size(&mut self, size: &Size) -> Expr {
        if !self.is_derived(size) {
            return self.size_value(&build::size_exp(size));
        }
        if let Some(local) = self.derived.get(size) {
            return Expr::Local(*local);
        }
        let value = self.size_value(&build::size_exp(size));
        let local = self.kernel.fresh_local("size", Scalar::I64);
        self.kernel.derived.push((local, value));
        self.derived.insert(size.clone(), local);
        Expr::Local(local)
    }
    /// Whether a size is worth a name: it is known at entry, and more than a polynomial.
    fn is_derived(&self, size: &Size) -> bool {
        let mut vars = vec![];
        size.variables(&mut vars);
        let known = vars.iter().all(|v| matches!(self.ranges.get(v), Some(buffers::Extent::Entry)));
        known && size.terms().any(|(m, _)| m.iter().any(|a| !matches!(a, Atom::Var(_)))) && is_total(size)
    }
    fn size_value(&mut self, e: &Exp) -> Expr {
        match e {
            Exp::Lit(lit) => Expr::Lit(*lit),
            Exp::Var(v) => match self.env.get(v) {
                Some(Val::Scalar(value)) => value.clone(),
                _ => panic!("lower: the size `{}` is not bound", self.vars.name(*v)),
            },
            Exp::Op(op @ (Op::IDiv | Op::IMod), parts, site) => {
                let values: Vec<Expr> = parts.iter().map(|a| self.size_value(a)).collect();
                self.defined(*op, parts, values, *site)
            }
            Exp::Op(op, args, _) => {
                let mut args: Vec<Expr> = args.iter().map(|a| self.size_value(a)).collect();
                match (op, args.len()) {
                    (Op::Add, 2) => {
                        let b = args.pop().unwrap();
                        args.pop().unwrap().plus(b)
                    }
                    (Op::Sub, 2) => {
                        let b = args.pop().unwrap();
                        args.pop().unwrap().minus(b)
                    }
                    (Op::Mul, 2) => {
                        let b = args.pop().unwrap();
                        args.pop().unwrap().times(b)
                    }
                    _ => Expr::Op(*op, args),
                }
            }
            _ => panic!("lower: not a size"),
        }
    }
    /// The number of places of an axis: its size, or zero where that is negative.
    pub fn extent(&mut self, axis: &Size) -> Expr {
        let axis = axis.axis();
        let size = self.size(&axis);
        if self.facts.prove_nonneg(&axis) { size } else { Expr::Op(Op::Max, vec![Expr::int(0), size]) }
    }
    pub fn element_count(&mut self, shape: &[Size]) -> Expr {
        let mut count = Expr::int(1);
        for axis in shape {
            let extent = self.extent(axis);
            count = count.times(extent);
        }
        count
    }

    /// `view[keys]`
    pub fn view_at(&mut self, view: &View, keys: &[Expr]) -> View {
        // Horner: ((offset of [k]) * m + l), behind the view's own offset.
        let mut within = Expr::int(0);
        for (key, axis) in keys.iter().zip(&view.shape) {
            let size = self.size(axis);
            within = within.times(size).plus(key.clone());
        }
        for axis in &view.shape[keys.len()..] {
            let size = self.size(axis);
            within = within.times(size);
        }
        View { buffer: view.buffer, offset: view.offset.clone().plus(within), shape: view.shape[keys.len()..].to_vec() }
    }
    pub fn val_at(&mut self, val: &Val, keys: &[Expr]) -> Val {
        match val {
            Val::Scalar(_) => panic!("lower: a scalar has no places"),
            Val::Array(view) => {
                let row = self.view_at(view, keys);
                if row.shape.is_empty() { Val::Scalar(Expr::Load(row.buffer, Box::new(row.offset))) } else { Val::Array(row) }
            }
            Val::Tuple(parts) => Val::Tuple(parts.iter().map(|p| self.val_at(p, keys)).collect()),
        }
    }
    pub fn dest_at(&mut self, dest: &Dest, keys: &[Expr]) -> Dest {
        match dest {
            Dest::Scalar(_) => panic!("lower: a scalar has no places"),
            Dest::Array(view) => {
                self.touched.push((view.clone(), keys.first().cloned()));
                let row = self.view_at(view, keys);
                if row.shape.is_empty() { Dest::Scalar(Target::Place(row.buffer, row.offset)) } else { Dest::Array(row) }
            }
            Dest::Tuple(parts) => Dest::Tuple(parts.iter().map(|p| self.dest_at(p, keys)).collect()),
        }
    }
    /// The same value with offsets and scalars under names, so that it may be mentioned often.
    pub fn named_val(&mut self, name: &str, val: Val) -> Val {
        match val {
            Val::Scalar(value) => Val::Scalar(self.named(name, value)),
            Val::Array(view) => {
                let offset = self.named(&format!("{name}_at"), view.offset);
                Val::Array(View { offset, ..view })
            }
            Val::Tuple(parts) => Val::Tuple(parts.into_iter().map(|p| self.named_val(name, p)).collect()),
        }
    }

    /// New memory for a value of this type.
    pub fn allocate(&mut self, ty: &Type, name: &str) -> Dest {
        match ty {
            Type::Scalar(s) => {
                let local = self.kernel.fresh_local(name, *s);
                self.emit(Stmt::Var(local, Expr::Lit(Lit::zero(*s))));
                Dest::Scalar(Target::Local(local))
            }
            Type::Array(shape, s) => {
                let buffer = self.kernel.fresh_buffer(name, *s, Home::Unplanned);
                let count = self.element_count(shape);
                // What is so long by itself may never be reached: blocks of steps are, that fill the memory where there are so many.
                let is_huge = self.unbounded > 0 && count.as_int().is_some_and(|n| n >= buffers::HUGE);
                let bound = if is_huge { None } else { self.bound(shape) };
                self.bounds.insert(buffer, bound);
                self.emit(Stmt::Allocate(buffer, count));
                Dest::Array(View { buffer, offset: Expr::int(0), shape: shape.clone() })
            }
            Type::Tuple(parts) => Dest::Tuple(parts.iter().map(|t| self.allocate(t, name)).collect()),
        }
    }

    pub fn zero(&mut self, dest: &Dest) {
        match dest {
            Dest::Scalar(target) => {
                let scalar = match target {
                    Target::Local(l) => self.kernel.local(*l).scalar,
                    Target::Place(b, _) => self.kernel.buffer(*b).scalar,
                };
                self.emit(Stmt::Set(target.clone(), Expr::Lit(Lit::zero(scalar))))
            }
            Dest::Array(view) => {
                let count = self.element_count(&view.shape);
                self.emit(Stmt::Zero(view.buffer, view.offset.clone(), count))
            }
            Dest::Tuple(parts) => parts.iter().for_each(|d| self.zero(d)),
        }
    }

    pub fn copy(&mut self, from: &Val, to: &Dest) {
        match (from, to) {
            (Val::Scalar(value), Dest::Scalar(target)) => self.emit(Stmt::Set(target.clone(), value.clone())),
            (Val::Array(from), Dest::Array(to)) => {
                // A value that was built in its destination is there already.
                if from.buffer == to.buffer && from.offset == to.offset {
                    return;
                }
                let count = self.element_count(&to.shape);
                self.emit(Stmt::Copy(to.buffer, to.offset.clone(), from.buffer, from.offset.clone(), count))
            }
            (Val::Tuple(from), Dest::Tuple(to)) => from.iter().zip(to).for_each(|(f, t)| self.copy(f, t)),
            _ => panic!("lower: a value does not fit its destination"),
        }
    }

    pub fn add(&mut self, from: &Val, to: &Dest) {
        match (from, to) {
            (Val::Scalar(value), Dest::Scalar(target)) => self.emit(Stmt::Add(target.clone(), value.clone())),
            (Val::Array(from), Dest::Array(to)) => {
                self.touched.push((to.clone(), None));
                let count = self.element_count(&to.shape);
                let k = self.kernel.fresh_local("k", Scalar::I64);
                let place = Target::Place(to.buffer, to.offset.clone().plus(Expr::Local(k)));
                let element = Expr::Load(from.buffer, Box::new(from.offset.clone().plus(Expr::Local(k))));
                self.emit(Stmt::Loop(Loop {
                    index: k,
                    lo: Expr::int(0),
                    hi: count,
                    order: Order::Independent,
                    schedule: Schedule::Plain,
                    body: vec![Stmt::Add(place, element)],
                }))
            }
            (Val::Tuple(from), Dest::Tuple(to)) => from.iter().zip(to).for_each(|(f, t)| self.add(f, t)),
            _ => panic!("lower: a value does not fit its destination"),
        }
    }
}

/// Whether a size has a value whatever its variables are: nothing in it is divided by what may be zero.
fn is_total(size: &Size) -> bool {
    size.terms().all(|(m, _)| {
        m.iter().all(|atom| match atom {
            Atom::Var(_) => true,
            Atom::Div(a, b) | Atom::Mod(a, b) => is_total(a) && b.as_constant().is_some_and(|c| c != 0),
            Atom::Min(a, b) | Atom::Max(a, b) => is_total(a) && is_total(b),
        })
    })
}
