//! The invariants of the loop IR; a kernel that breaks one is our bug.
//!
//! * Locals and buffers are used inside the block that defines them; a local is defined once; only `Var`s are assigned.
//! * Expressions have types, offsets and bounds are integers, conditions are truth values.
//! * Every allocated buffer has a home; inputs are not written.

use super::*;
use rustc_hash::FxHashSet;

pub fn verify(kernel: &Kernel) -> Result<(), String> {
    let mut v = Verifier {
        kernel,
        locals: FxHashSet::default(),
        assignable: FxHashSet::default(),
        buffers: FxHashSet::default(),
        defined: FxHashSet::default(),
    };
    v.locals.extend(kernel.sizes.iter().copied());
    for input in &kernel.inputs {
        match input {
            Input::Scalar(l) => v.locals.insert(*l),
            Input::Array(b) => v.buffers.insert(*b),
        };
    }
    for (l, e) in &kernel.derived {
        v.typed(e, Scalar::I64)?;
        v.define(*l)?;
    }
    for slot in &kernel.arena {
        v.typed(&slot.count, Scalar::I64)?;
    }
    v.buffers.extend(kernel.outputs.iter().map(|o| o.buffer));
    v.block(&kernel.body)
}

struct Verifier<'a> {
    kernel: &'a Kernel,
    locals: FxHashSet<Local>,
    assignable: FxHashSet<Local>,
    buffers: FxHashSet<Buffer>,
    /// Locals defined anywhere before.
    defined: FxHashSet<Local>,
}

impl Verifier<'_> {
    fn block(&mut self, block: &[Stmt]) -> Result<(), String> {
        let (locals, buffers) = (self.locals.clone(), self.buffers.clone());
        for s in block {
            self.stmt(s).map_err(|e| format!("{e} in {s:?}"))?;
        }
        (self.locals, self.buffers) = (locals, buffers);
        Ok(())
    }

    fn stmt(&mut self, s: &Stmt) -> Result<(), String> {
        match s {
            Stmt::Let(l, e) => {
                self.typed(e, self.kernel.local(*l).scalar)?;
                self.define(*l)
            }
            Stmt::Var(l, e) => {
                self.typed(e, self.kernel.local(*l).scalar)?;
                self.assignable.insert(*l);
                self.define(*l)
            }
            Stmt::Set(t, e) | Stmt::Add(t, e) => match t {
                Target::Local(l) => {
                    if !self.locals.contains(l) || !self.assignable.contains(l) {
                        return Err(format!("{l:?} is assigned but not a variable here"));
                    }
                    self.typed(e, self.kernel.local(*l).scalar)
                }
                Target::Place(b, offset) => {
                    self.written(*b)?;
                    self.typed(offset, Scalar::I64)?;
                    self.typed(e, self.kernel.buffer(*b).scalar)
                }
            },
            Stmt::Loop(l) => {
                self.typed(&l.lo, Scalar::I64)?;
                self.typed(&l.hi, Scalar::I64)?;
                let locals = self.locals.clone();
                self.define(l.index)?;
                self.block(&l.body)?;
                self.locals = locals;
                Ok(())
            }
            Stmt::If(p, a, b) => {
                self.typed(p, Scalar::Bool)?;
                self.block(a)?;
                self.block(b)
            }
            Stmt::Forever(body) => self.block(body),
            Stmt::LeaveUnless(p) => self.typed(p, Scalar::Bool),
            Stmt::Allocate(b, count) => {
                self.typed(count, Scalar::I64)?;
                if self.kernel.buffer(*b).home == Home::Unplanned {
                    return Err(format!("{b:?} has no home"));
                }
                self.buffers.insert(*b);
                Ok(())
            }
            Stmt::Zero(b, offset, count) => {
                self.written(*b)?;
                self.typed(offset, Scalar::I64)?;
                self.typed(count, Scalar::I64)
            }
            Stmt::Copy(to, at, from, from_at, count) => {
                self.written(*to)?;
                self.known(*from)?;
                [at, from_at, count].into_iter().try_for_each(|e| self.typed(e, Scalar::I64))
            }
            Stmt::Check(check) => match check {
                Check::Read { index: a, size: b, .. } | Check::Key { index: a, size: b, .. } | Check::NotEmpty { lo: a, hi: b, .. } => {
                    self.typed(a, Scalar::I64)?;
                    self.typed(b, Scalar::I64)
                }
                Check::Defined { args, .. } => args.iter().try_for_each(|a| self.expr(a)),
            },
            Stmt::Count(_) => Ok(()),
            Stmt::Mark(k) if *k < self.kernel.origins.len() => Ok(()),
            Stmt::Mark(k) => Err(format!("mark {k} has no origin")),
            Stmt::Gemm(g) => {
                self.written(g.dest.buffer)?;
                for m in [&g.dest, &g.left, &g.right] {
                    self.known(m.buffer)?;
                    [&m.offset, &m.row_stride, &m.column_stride].into_iter().try_for_each(|e| self.typed(e, Scalar::I64))?;
                }
                [&g.rows, &g.columns, &g.depth].into_iter().try_for_each(|e| self.typed(e, Scalar::I64))?;
                let scalar = self.kernel.buffer(g.dest.buffer).scalar;
                if !scalar.is_float() || [&g.left, &g.right].iter().any(|m| self.kernel.buffer(m.buffer).scalar != scalar) {
                    return Err("a matrix product is of floats of one type".to_string());
                }
                self.typed(&g.scale, scalar)?;
                self.block(&g.otherwise)
            }
        }
    }

    fn define(&mut self, l: Local) -> Result<(), String> {
        if !self.defined.insert(l) {
            return Err(format!("{l:?} is defined twice"));
        }
        self.locals.insert(l);
        Ok(())
    }
    fn known(&self, b: Buffer) -> Result<(), String> {
        if self.buffers.contains(&b) { Ok(()) } else { Err(format!("{b:?} is not allocated here")) }
    }
    fn written(&self, b: Buffer) -> Result<(), String> {
        if matches!(self.kernel.buffer(b).home, Home::Input(_)) {
            return Err(format!("{b:?} is an input, which is not written"));
        }
        self.known(b)
    }
    fn typed(&self, e: &Expr, scalar: Scalar) -> Result<(), String> {
        self.expr(e)?;
        let own = self.kernel.scalar_of(e);
        if own == scalar { Ok(()) } else { Err(format!("{e:?} is {own:?}, not {scalar:?}")) }
    }
    fn expr(&self, e: &Expr) -> Result<(), String> {
        match e {
            Expr::Local(l) if !self.locals.contains(l) => {
                return Err(format!("{l:?} ({}) is not defined here", self.kernel.local(*l).name));
            }
            Expr::Load(b, offset) => {
                self.known(*b)?;
                self.typed(offset, Scalar::I64)?;
            }
            Expr::Op(op, args) => {
                let kinds: Vec<Scalar> = args.iter().map(|a| self.kernel.scalar_of(a)).collect();
                if op.result(&kinds).is_none() {
                    return Err(format!("{op:?} does not take {kinds:?}"));
                }
            }
            Expr::Lit(_) | Expr::Local(_) | Expr::Partial(..) | Expr::Select(..) => {}
        }
        let mut result = Ok(());
        e.for_each_child(&mut |c| {
            if result.is_ok() {
                result = self.expr(c);
            }
        });
        result
    }
}
