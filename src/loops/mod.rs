//! The loop IR: what a target executes.
//!
//! A kernel is a block of statements over scalar locals and flat buffers. Arrays are row-major stretches of a buffer,
//! so an access is a buffer and one offset. A block is a scope: a local or buffer lives from its definition to the end
//! of the block it is defined in. Nothing here is particular to a host: a schedule says how a loop runs, and the
//! targets in `emit` spell it.

pub mod copies;
pub mod print;
pub mod tiles;
pub mod verify;
pub mod workspace;

pub use crate::ir::Site;
use crate::scalar::Op;
use crate::types::{Lit, Scalar};
use rustc_hash::{FxHashMap, FxHashSet};

/// A scalar variable of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Local(pub u32);

/// A stretch of memory of one scalar type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Buffer(pub u32);

#[derive(Clone, Debug, PartialEq)]
pub struct LocalInfo {
    /// As the user wrote it, where it comes from the source; the emitter makes names unique.
    pub name: String,
    pub scalar: Scalar,
}

#[derive(Clone, Debug, PartialEq)]
pub struct BufferInfo {
    pub name: String,
    pub scalar: Scalar,
    pub home: Home,
}

/// Where a buffer's memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// The caller's, read only: the n-th leaf of the parameters.
    Input(usize),
    /// The caller's: the n-th leaf of the result.
    Output(usize),
    /// Not planned yet.
    Unplanned,
    /// A small constant number of elements beside the locals.
    Stack(usize),
    /// In the call's arena, at the offset of this slot.
    Arena(usize),
    /// Its size is known only where it is allocated: memory of the call that grows and is kept until the call ends.
    Reserve(usize),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    Lit(Lit),
    Local(Local),
    /// The element of a buffer at an offset.
    Load(Buffer, Box<Expr>),
    Op(Op, Vec<Expr>),
    Partial(Op, usize, Vec<Expr>),
    /// Evaluates the chosen operand only.
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
}

/// Where a scalar is written.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    Local(Local),
    Place(Buffer, Expr),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    /// Defines a local that is never assigned again.
    Let(Local, Expr),
    /// Defines a local that is assigned again.
    Var(Local, Expr),
    Set(Target, Expr),
    Add(Target, Expr),
    Loop(Loop),
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    /// Repeats its block until a `LeaveUnless` directly in it ends it.
    Forever(Vec<Stmt>),
    LeaveUnless(Expr),
    /// Memory for `count` elements, undefined at first, until the end of the block.
    Allocate(Buffer, Expr),
    /// Zeros `count` elements from an offset on.
    Zero(Buffer, Expr, Expr),
    /// Copies `count` elements: to buffer and offset, from buffer and offset.
    Copy(Buffer, Expr, Buffer, Expr, Expr),
    /// Ends the call with an error unless the condition holds.
    Check(Check),
    /// Counts operations that the statements do not show (only counting builds execute it).
    Count(Counts),
    /// From here on, time belongs to this origin (only profiling builds have it).
    Mark(usize),
    Gemm(Box<Gemm>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    pub index: Local,
    pub lo: Expr,
    pub hi: Expr,
    pub order: Order,
    pub schedule: Schedule,
    pub body: Vec<Stmt>,
}

/// What is known of a loop's iterations.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// One after the other.
    Sequential,
    /// Each iteration writes places of its own.
    Independent,
    /// Iterations meet only in these locals, each combined by one operation.
    Reduction(Vec<(Local, Combine)>),
    /// Iterations add into locals and into places.
    Accumulation(Vec<(Local, Combine)>, Vec<Accumulated>),
}

/// A stretch of a buffer that a loop's iterations add into.
#[derive(Clone, Debug, PartialEq)]
pub struct Accumulated {
    pub buffer: Buffer,
    pub offset: Expr,
    pub count: Expr,
    /// Whether each iteration adds into a row of its own.
    pub own_row: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    Add,
    Mul,
    Max,
    Min,
    And,
    Or,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    Plain,
    Vector,
    Lanes(Lanes),
    Parallel(Box<Parallel>),
}

impl Schedule {
    /// How the iterations of one thread run.
    pub fn within(&self) -> &Schedule {
        match self {
            Schedule::Parallel(p) => &p.within,
            Schedule::Plain | Schedule::Vector | Schedule::Lanes(_) => self,
        }
    }
}

/// Several iterations side by side, each in a lane of vectors; what does not fill a block, where iterations may not run again,
/// runs one by one.
#[derive(Clone, Debug, PartialEq)]
pub struct Lanes {
    /// How many iterations a vector has side by side: `LANES`, or `NARROW_LANES`.
    pub lanes: usize,
    /// How many vectors a value is.
    pub vectors: usize,
    /// Locals that may differ from lane to lane; all others are the same in all.
    pub varying: FxHashSet<Local>,
    /// Buffers of which each lane has one: element `k` of all lanes stands together.
    pub own: FxHashSet<Buffer>,
    /// Whether the last block may be a part of one, under a mask; then there is nothing left over.
    pub partial: bool,
    /// Whether fewer than a block run in blocks of one vector first.
    pub narrow: bool,
    /// Whether there is always a block: in all calls, or in those that the code is for, which then also run other code where a
    /// check fails. Where iterations may run again, there is no loop for those left over.
    pub filled: bool,
    /// Loops of the body that run several steps at once, by their indices.
    pub tiles: FxHashMap<Local, tiles::Tile>,
    /// What loops of the body fetch into the near caches for their next steps, by their indices: for each array how many
    /// elements a step has of it, one step behind the other.
    pub ahead: FxHashMap<Local, Vec<(Buffer, Expr)>>,
}

/// The lanes of a vector: 64 bytes of the widest scalars.
pub const LANES: usize = 8;
/// Those where no float has 64 bits.
pub const NARROW_LANES: usize = 16;

impl Lanes {
    /// The iterations of a block.
    pub fn width(&self) -> usize {
        self.vectors * self.lanes
    }
    /// Whether the value may differ from lane to lane.
    pub fn varies(&self, e: &Expr) -> bool {
        e.any(&mut |e| match e {
            Expr::Local(l) => self.varying.contains(l),
            Expr::Load(b, _) => self.own.contains(b),
            Expr::Lit(_) | Expr::Op(..) | Expr::Partial(..) | Expr::Select(..) => false,
        })
    }
    /// By how much a value rises from one lane to the next, if by as much for all and known; offsets are taken apart so.
    pub fn stride(&self, e: &Expr, index: Local) -> Option<Expr> {
        if !self.varies(e) {
            return Some(Expr::int(0));
        }
        match e {
            Expr::Local(l) if *l == index => Some(Expr::int(1)),
            Expr::Op(op, args) => match (op, args.as_slice()) {
                (Op::Add, [a, b]) => Some(self.stride(a, index)?.plus(self.stride(b, index)?)),
                (Op::Sub, [a, b]) => Some(self.stride(a, index)?.minus(self.stride(b, index)?)),
                (Op::Mul, [a, b]) if !self.varies(b) => Some(self.stride(a, index)?.times(b.clone())),
                (Op::Mul, [a, b]) if !self.varies(a) => Some(self.stride(b, index)?.times(a.clone())),
                (Op::Neg, [a]) => Some(Expr::int(0).minus(self.stride(a, index)?)),
                _ => None,
            },
            Expr::Lit(_) | Expr::Local(_) | Expr::Load(..) | Expr::Partial(..) | Expr::Select(..) => None,
        }
    }
}

/// Over threads, in chunks whose number depends on the sizes alone: so does the result.
#[derive(Clone, Debug, PartialEq)]
pub struct Parallel {
    pub chunks: Chunks,
    /// How the iterations of a chunk run: not over threads again.
    pub within: Schedule,
    /// Whether the loop runs again and again in another, and may be short: a single chunk then goes without the threads' machinery.
    pub again: bool,
    /// Whether there are threads: else chunks run one after the other, and are there to add up in the same order.
    pub threads: bool,
    /// Buffers of which every chunk but the first has a part of its own, added up in order at the end.
    pub private: Vec<Private>,
}

/// How a loop is cut: by its bounds, the operations of an iteration, and the elements that each chunk has to itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Chunks {
    pub lo: Expr,
    pub hi: Expr,
    pub cost: Expr,
    pub private: Expr,
    pub most: usize,
    /// Whether all this is known at entry, so that memory is planned for as many chunks as there are.
    pub planned: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Private {
    pub buffer: Buffer,
    pub parts: Buffer,
    pub count: Expr,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Check {
    /// `0 <= index < size`, of a read.
    Read { index: Expr, size: Expr, site: usize },
    /// `0 <= key < size`, of a singleton.
    Key { index: Expr, size: Expr, site: usize },
    /// A reduction that needs an element has one.
    NotEmpty { lo: Expr, hi: Expr, what: crate::ir::Reduction, site: Option<usize> },
    /// The operation is defined for these operands.
    Defined { op: Op, args: Vec<Expr>, site: Option<usize> },
}

/// Float operations by kind, as the cost model counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub additions: i64,
    pub multiplications: i64,
    pub calls: i64,
}

/// `dest[i, j] += scale * sum k. a[i, k] * b[k, j]` where the strides of each operand are free and the product is
/// large; the statements otherwise, of which there are none in code for calls where it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Gemm {
    pub rows: Expr,
    pub columns: Expr,
    pub depth: Expr,
    pub dest: Matrix,
    pub left: Matrix,
    pub right: Matrix,
    pub scale: Expr,
    /// Whether the destination is added to, or overwritten.
    pub accumulate: bool,
    pub otherwise: Vec<Stmt>,
}

/// The element at row `r` and column `c` is `buffer[offset + r * row_stride + c * column_stride]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    pub buffer: Buffer,
    pub offset: Expr,
    pub row_stride: Expr,
    pub column_stride: Expr,
}

/// The number of statements, those inside of others too.
pub fn statements(block: &[Stmt]) -> usize {
    block.iter().map(|s| 1 + s.blocks().iter().map(|b| statements(b)).sum::<usize>()).sum()
}

/// The buffers that are allocated in a block, and inside of its statements.
pub fn allocated(block: &[Stmt]) -> FxHashSet<Buffer> {
    let mut found = FxHashSet::default();
    for s in block {
        if let Stmt::Allocate(b, _) = s {
            found.insert(*b);
        }
        s.blocks().iter().for_each(|b| found.extend(allocated(b)));
    }
    found
}

/// One function, ready for a target.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    pub name: String,
    pub locals: Vec<LocalInfo>,
    pub buffers: Vec<BufferInfo>,
    /// The sizes given by the caller, in order.
    pub sizes: Vec<Local>,
    /// The leaves of the parameters, in order.
    pub inputs: Vec<Input>,
    /// Integers that the sizes and inputs give, in order of definition; known at entry like these.
    pub derived: Vec<(Local, Expr)>,
    /// The leaves of the result, in order.
    pub outputs: Vec<Output>,
    pub body: Vec<Stmt>,
    /// What the sites in checks stand for.
    pub sites: Vec<Site>,
    /// The places in the source that marks stand for; the first is for what belongs to none.
    pub origins: Vec<Vec<crate::diagnostic::Span>>,
    /// The arena: for each slot its size in bytes and what it stands behind (slots that live at the same time).
    pub arena: Vec<Slot>,
    /// The number of reserves.
    pub reserves: usize,
    /// What is known of the calls that it is made for. It is right for others too, but for what `Lanes::filled` says and for
    /// `assumed`.
    pub call: workspace::Call,
    /// Conditions on what is known at entry, without which it does nothing but say so.
    pub assumed: Vec<Expr>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// The number of elements, in the sizes and the scalar `i64` inputs.
    pub count: Expr,
    pub scalar: Scalar,
    /// The slots in use when this one is taken; it begins behind the last of them.
    pub behind: Vec<usize>,
    /// Inside a parallel loop there is one for each thread, of which there are at most as many as chunks; and so there is
    /// of the parts that its chunks add into.
    pub copies: Option<Chunks>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    Scalar(Local),
    Array(Buffer),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    pub buffer: Buffer,
    pub scalar: Scalar,
    /// The number of axes; of a scalar none.
    pub rank: usize,
}

impl Kernel {
    /// A kernel of this name with nothing in it.
    pub fn empty(name: &str) -> Kernel {
        Kernel {
            name: name.to_string(),
            locals: vec![],
            buffers: vec![],
            sizes: vec![],
            inputs: vec![],
            derived: vec![],
            outputs: vec![],
            body: vec![],
            sites: vec![],
            origins: vec![vec![]],
            arena: vec![],
            reserves: 0,
            call: workspace::Call::default(),
            assumed: vec![],
        }
    }
    /// The locals that are known before anything runs: sizes, scalar inputs and what these give.
    pub fn known_at_entry(&self) -> FxHashSet<Local> {
        let scalars = self.inputs.iter().filter_map(|input| match input {
            Input::Scalar(l) => Some(*l),
            Input::Array(_) => None,
        });
        self.sizes.iter().copied().chain(scalars).chain(self.derived.iter().map(|(l, _)| *l)).collect()
    }
    /// Whether a loop may run over threads.
    pub fn has_threads(&self) -> bool {
        fn any(block: &[Stmt]) -> bool {
            let own = |s: &Stmt| matches!(s, Stmt::Loop(l) if matches!(&l.schedule, Schedule::Parallel(p) if p.threads));
            block.iter().any(|s| own(s) || s.blocks().iter().any(|b| any(b)))
        }
        any(&self.body)
    }

    /// Whether there are products of matrices that threads may share, for all that is known of the call.
    pub fn shares_products(&self) -> bool {
        fn any(entry: &workspace::Entry, block: &[Stmt]) -> bool {
            block.iter().any(|s| match s {
                Stmt::Gemm(g) => entry.may_be_shared(g),
                s => s.blocks().iter().any(|b| any(entry, b)),
            })
        }
        any(&workspace::Entry::new(self, &self.call), &self.body)
    }
    pub fn local(&self, local: Local) -> &LocalInfo {
        &self.locals[local.0 as usize]
    }
    pub fn buffer(&self, buffer: Buffer) -> &BufferInfo {
        &self.buffers[buffer.0 as usize]
    }
    pub fn fresh_local(&mut self, name: impl Into<String>, scalar: Scalar) -> Local {
        self.locals.push(LocalInfo { name: name.into(), scalar });
        Local(self.locals.len() as u32 - 1)
    }
    pub fn fresh_buffer(&mut self, name: impl Into<String>, scalar: Scalar, home: Home) -> Buffer {
        self.buffers.push(BufferInfo { name: name.into(), scalar, home });
        Buffer(self.buffers.len() as u32 - 1)
    }
    /// The type of an expression's value.
    pub fn scalar_of(&self, expr: &Expr) -> Scalar {
        match expr {
            Expr::Lit(lit) => lit.scalar(),
            Expr::Local(l) => self.local(*l).scalar,
            Expr::Load(b, _) => self.buffer(*b).scalar,
            Expr::Op(op, args) => {
                let kinds: Vec<Scalar> = args.iter().map(|a| self.scalar_of(a)).collect();
                op.result(&kinds).unwrap_or_else(|| panic!("loops: {op:?} on {kinds:?}"))
            }
            Expr::Partial(op, k, args) => {
                let kinds: Vec<Scalar> = args.iter().map(|a| self.scalar_of(a)).collect();
                op.partial_of(*k, &kinds).unwrap_or_else(|| panic!("loops: partial {k} of {op:?} on {kinds:?}")).0
            }
            Expr::Select(_, a, _) => self.scalar_of(a),
        }
    }
}

/// Integer arithmetic for offsets and bounds, with constants folded.
impl Expr {
    pub fn int(value: i64) -> Expr {
        Expr::Lit(Lit::I64(value))
    }
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Expr::Lit(Lit::I64(c)) => Some(*c),
            _ => None,
        }
    }
    /// Whether it may be written twice at no cost.
    pub fn is_atom(&self) -> bool {
        matches!(self, Expr::Lit(_) | Expr::Local(_))
    }
    pub fn plus(self, other: Expr) -> Expr {
        match (self.as_int(), other.as_int()) {
            (Some(a), Some(b)) => Expr::int(a.wrapping_add(b)),
            (Some(0), _) => other,
            (_, Some(0)) => self,
            (_, Some(b)) if b < 0 && b != i64::MIN => Expr::Op(Op::Sub, vec![self, Expr::int(-b)]),
            _ => Expr::Op(Op::Add, vec![self, other]),
        }
    }
    pub fn minus(self, other: Expr) -> Expr {
        match (self.as_int(), other.as_int()) {
            (Some(a), Some(b)) => Expr::int(a.wrapping_sub(b)),
            (_, Some(0)) => self,
            _ if self == other => Expr::int(0),
            _ => Expr::Op(Op::Sub, vec![self, other]),
        }
    }
    pub fn times(self, other: Expr) -> Expr {
        match (self.as_int(), other.as_int()) {
            (Some(a), Some(b)) => Expr::int(a.wrapping_mul(b)),
            (Some(0), _) | (_, Some(0)) => Expr::int(0),
            (Some(1), _) => other,
            (_, Some(1)) => self,
            _ => Expr::Op(Op::Mul, vec![self, other]),
        }
    }
    pub fn for_each_child<'a>(&'a self, f: &mut impl FnMut(&'a Expr)) {
        match self {
            Expr::Lit(_) | Expr::Local(_) => {}
            Expr::Load(_, offset) => f(offset),
            Expr::Op(_, args) | Expr::Partial(_, _, args) => args.iter().for_each(f),
            Expr::Select(p, a, b) => {
                f(p);
                f(a);
                f(b)
            }
        }
    }
    pub fn any(&self, test: &mut impl FnMut(&Expr) -> bool) -> bool {
        if test(self) {
            return true;
        }
        let mut found = false;
        self.for_each_child(&mut |e| found = found || e.any(test));
        found
    }
    /// Whether it is integer arithmetic on these locals alone.
    pub fn is_known(&self, known: &FxHashSet<Local>) -> bool {
        !self.any(&mut |e| match e {
            Expr::Local(l) => !known.contains(l),
            Expr::Load(..) | Expr::Partial(..) | Expr::Select(..) => true,
            Expr::Op(op, _) => !matches!(op, Op::Add | Op::Sub | Op::Mul | Op::Neg | Op::IDiv | Op::IMod | Op::Min | Op::Max),
            Expr::Lit(_) => false,
        })
    }
    pub fn mentions(&self, local: Local) -> bool {
        self.any(&mut |e| matches!(e, Expr::Local(l) if *l == local))
    }
    /// By how much a number rises with an index, if by as much at every step.
    pub fn slope(&self, index: Local) -> Option<Expr> {
        if !self.mentions(index) {
            return Some(Expr::int(0));
        }
        let Expr::Op(op, args) = self else { return (*self == Expr::Local(index)).then(|| Expr::int(1)) };
        match (op, args.as_slice()) {
            (Op::Add, [a, b]) => Some(a.slope(index)?.plus(b.slope(index)?)),
            (Op::Sub, [a, b]) => Some(a.slope(index)?.minus(b.slope(index)?)),
            (Op::Mul, [a, b]) if !b.mentions(index) => Some(a.slope(index)?.times(b.clone())),
            (Op::Mul, [a, b]) if !a.mentions(index) => Some(b.slope(index)?.times(a.clone())),
            _ => None,
        }
    }
    /// With expressions in the places of locals.
    pub fn substitute(&self, with: &mut dyn FnMut(Local) -> Option<Expr>) -> Expr {
        match self {
            Expr::Lit(_) => self.clone(),
            Expr::Local(l) => with(*l).unwrap_or(Expr::Local(*l)),
            Expr::Load(b, offset) => Expr::Load(*b, Box::new(offset.substitute(with))),
            Expr::Op(op, args) => {
                let args: Vec<Expr> = args.iter().map(|a| a.substitute(with)).collect();
                match (op, <[Expr; 2]>::try_from(args)) {
                    (Op::Add, Ok([a, b])) if a.as_int().or(b.as_int()).is_some() => a.plus(b),
                    (Op::Sub, Ok([a, b])) if a.as_int().or(b.as_int()).is_some() => a.minus(b),
                    (Op::Mul, Ok([a, b])) if a.as_int().or(b.as_int()).is_some() => a.times(b),
                    (op, Ok(pair)) => Expr::Op(*op, pair.to_vec()),
                    (op, Err(args)) => Expr::Op(*op, args),
                }
            }
            Expr::Partial(op, k, args) => Expr::Partial(*op, *k, args.iter().map(|a| a.substitute(with)).collect()),
            Expr::Select(p, a, b) => {
                let [p, a, b] = [p, a, b].map(|e| Box::new(e.substitute(with)));
                Expr::Select(p, a, b)
            }
        }
    }
    /// The expression with each read, innermost first, as `f` has it.
    pub fn map_loads(self, f: &mut impl FnMut(Buffer, Expr) -> Expr) -> Expr {
        match self {
            Expr::Lit(_) | Expr::Local(_) => self,
            Expr::Load(b, offset) => {
                let offset = offset.map_loads(f);
                f(b, offset)
            }
            Expr::Op(op, args) => Expr::Op(op, args.into_iter().map(|a| a.map_loads(f)).collect()),
            Expr::Partial(op, k, args) => Expr::Partial(op, k, args.into_iter().map(|a| a.map_loads(f)).collect()),
            Expr::Select(p, a, b) => Expr::Select(Box::new(p.map_loads(f)), Box::new(a.map_loads(f)), Box::new(b.map_loads(f))),
        }
    }
}

impl Stmt {
    /// Calls `f` on each expression of the statement itself (not of statements inside it).
    pub fn for_each_expr<'a>(&'a self, f: &mut impl FnMut(&'a Expr)) {
        let target = |t: &'a Target, f: &mut dyn FnMut(&'a Expr)| match t {
            Target::Local(_) => {}
            Target::Place(_, offset) => f(offset),
        };
        match self {
            Stmt::Let(_, e) | Stmt::Var(_, e) | Stmt::Allocate(_, e) | Stmt::If(e, _, _) | Stmt::LeaveUnless(e) => f(e),
            Stmt::Forever(_) => {}
            Stmt::Set(t, e) | Stmt::Add(t, e) => {
                target(t, f);
                f(e)
            }
            Stmt::Loop(l) => {
                f(&l.lo);
                f(&l.hi)
            }
            Stmt::Zero(_, offset, count) => {
                f(offset);
                f(count)
            }
            Stmt::Copy(_, to, _, from, count) => {
                f(to);
                f(from);
                f(count)
            }
            Stmt::Check(check) => match check {
                Check::Read { index, size, .. } | Check::Key { index, size, .. } => {
                    f(index);
                    f(size)
                }
                Check::NotEmpty { lo, hi, .. } => {
                    f(lo);
                    f(hi)
                }
                Check::Defined { args, .. } => args.iter().for_each(f),
            },
            Stmt::Count(_) | Stmt::Mark(_) => {}
            Stmt::Gemm(g) => {
                [&g.rows, &g.columns, &g.depth, &g.scale].into_iter().for_each(&mut *f);
                for m in [&g.dest, &g.left, &g.right] {
                    [&m.offset, &m.row_stride, &m.column_stride].into_iter().for_each(&mut *f);
                }
            }
        }
    }
    /// Replaces each expression of the statement itself (not of statements inside it).
    pub fn map_exprs(&mut self, f: &mut impl FnMut(Expr) -> Expr) {
        let mut map = |e: &mut Expr| *e = f(std::mem::replace(e, Expr::int(0)));
        match self {
            Stmt::Let(_, e) | Stmt::Var(_, e) | Stmt::Allocate(_, e) | Stmt::If(e, _, _) | Stmt::LeaveUnless(e) => map(e),
            Stmt::Forever(_) | Stmt::Count(_) | Stmt::Mark(_) => {}
            Stmt::Set(t, e) | Stmt::Add(t, e) => {
                if let Target::Place(_, offset) = t {
                    map(offset);
                }
                map(e)
            }
            Stmt::Loop(l) => {
                map(&mut l.lo);
                map(&mut l.hi)
            }
            Stmt::Zero(_, offset, count) => {
                map(offset);
                map(count)
            }
            Stmt::Copy(_, to, _, from, count) => [to, from, count].into_iter().for_each(map),
            Stmt::Check(check) => match check {
                Check::Read { index: a, size: b, .. } | Check::Key { index: a, size: b, .. } | Check::NotEmpty { lo: a, hi: b, .. } => {
                    map(a);
                    map(b)
                }
                Check::Defined { args, .. } => args.iter_mut().for_each(map),
            },
            Stmt::Gemm(g) => {
                [&mut g.rows, &mut g.columns, &mut g.depth, &mut g.scale].into_iter().for_each(&mut map);
                for m in [&mut g.dest, &mut g.left, &mut g.right] {
                    [&mut m.offset, &mut m.row_stride, &mut m.column_stride].into_iter().for_each(&mut map);
                }
            }
        }
    }
    /// Whether a check in it may end the call.
    pub fn can_fail(&self) -> bool {
        matches!(self, Stmt::Check(_)) || self.blocks().iter().any(|b| b.iter().any(Stmt::can_fail))
    }
    /// The blocks inside the statement.
    pub fn blocks(&self) -> Vec<&Vec<Stmt>> {
        match self {
            Stmt::Loop(l) => vec![&l.body],
            Stmt::If(_, a, b) => vec![a, b],
            Stmt::Forever(body) => vec![body],
            Stmt::Gemm(g) => vec![&g.otherwise],
            _ => vec![],
        }
    }
    pub fn blocks_mut(&mut self) -> Vec<&mut Vec<Stmt>> {
        match self {
            Stmt::Loop(l) => vec![&mut l.body],
            Stmt::If(_, a, b) => vec![a, b],
            Stmt::Forever(body) => vec![body],
            Stmt::Gemm(g) => vec![&mut g.otherwise],
            _ => vec![],
        }
    }
}
