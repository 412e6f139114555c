//! Loops -> C99 with OpenMP: one translation unit with one entry and the query of its workspace.

use super::c_family::{AND, Names, UNARY, identifier, type_name};
use crate::fault::Fault;
use crate::loops::*;
use crate::scalar::Op;
use crate::types::{Lit, Scalar};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::Write;

/// Rises when callers have to change.
pub const ABI_VERSION: i32 = 4;

/// What code for certain calls (`Lanes::filled`) says of others: it is not for them.
pub const OTHER_SIZES: i32 = 101;
/// What it says where a check fails: code in which the first iteration that fails comes first says which.
pub const FAILS_IN_LANES: i32 = 102;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Style {
    /// Count operations in the context.
    pub count: bool,
    /// No vector maths: every call is the scalar library's.
    pub strict: bool,
    /// Say at each mark what the time is spent on.
    pub profile: bool,
    /// Denormal numbers are zero while it runs.
    pub flush: bool,
    /// A part of a larger text: what it includes stands before it, and its names are its own.
    pub embedded: bool,
}

/// The name of a kernel's entry.
pub fn entry_name(kernel: &Kernel) -> String {
    // No name of the support code begins so.
    format!("iv_of_{}", identifier(&kernel.name))
}

/// The kernel as C.
pub fn c(kernel: &Kernel, style: Style) -> String {
    let mut emitter = Emitter {
        names: Names::new(kernel),
        style,
        out: String::new(),
        depth: 0,
        end: "iv_done".into(),
        regions: 0,
        marked: 0,
        masks: 0,
        streams: false,
    };
    emitter.unit();
    emitter.out
}

struct Emitter<'a> {
    names: Names<'a>,
    style: Style,
    out: String,
    depth: usize,
    /// The label to go to after an error.
    end: String,
    /// The number of parallel regions so far.
    regions: usize,
    /// What the time is spent on.
    marked: usize,
    /// The number of masks of lanes so far.
    masks: usize,
    /// Whether the loop in lanes that is being written writes past the caches.
    streams: bool,
}

macro_rules! line {
    ($self:ident, $($arg:tt)*) => {{
        let text = format!($($arg)*);
        $self.line(&text);
    }};
}

// Behind the macro, which they use.
mod lane_rows;
mod lane_values;
mod lanes;
mod parallel;

impl Emitter<'_> {
    fn line(&mut self, text: &str) {
        let pad = if text.is_empty() { String::new() } else { "    ".repeat(self.depth) };
        let _ = writeln!(self.out, "{pad}{text}");
    }
    fn e(&self, e: &Expr) -> String {
        self.names.expr(e)
    }

    fn unit(&mut self) {
        let kernel = self.names.kernel;
        let entry = entry_name(kernel);
        if !self.style.embedded {
            self.describe(&entry);
            if self.style.strict {
                self.line("#define IV_STRICT 1");
            }
            if !has_lanes(&kernel.body) {
                self.line("#define IV_NO_LANES 1");
            }
            self.line("#include \"iverson.h\"");
            if self.style.profile {
                self.line("#include \"iverson_profile.h\"");
            }
            self.line("");
            line!(self, "const int32_t {entry}_abi = {ABI_VERSION};");
            self.line("");
        }
        self.plan(&entry);
        let linkage = self.linkage();
        line!(
            self,
            "{linkage}int32_t {entry}(const int64_t *sizes, const void *const *inputs, void *const *outputs, void *work, iv_context *context)"
        );
        self.line("{");
        self.depth = 1;
        self.line("iv_context fallback = {0};");
        self.line("if (!context) context = &fallback;");
        self.line("int32_t status = 0;");
        if self.style.flush {
            self.line("const iv_float_mode mode = iv_flush();");
        }
        self.arguments();
        for (k, output) in kernel.outputs.iter().enumerate() {
            line!(self, "{} *restrict {} = outputs[{k}];", type_name(output.scalar), self.names.buffer(output.buffer));
        }
        if !kernel.arena.is_empty() {
            line!(self, "int64_t slot[{}];", kernel.arena.len());
            line!(self, "{entry}_plan(sizes, inputs, slot);");
        }
        if kernel.reserves > 0 {
            line!(self, "iv_reserve reserves[{}] = {{{{0}}}};", kernel.reserves);
        }
        self.line("");
        let mut filled = vec![];
        filled_lanes(&kernel.body, &mut filled);
        let mut assumed: Vec<String> = kernel.assumed.iter().map(|condition| self.names.at_level(condition, AND)).collect();
        assumed.extend(filled.iter().map(|(count, width)| format!("{} >= {width}", self.e(count))));
        if relies_on_products(&kernel.body) {
            assumed.push("context->gemm && context->gemm32".to_string());
        }
        if !assumed.is_empty() {
            let assumed = assumed.join(" && ");
            line!(self, "if (IV_UNLIKELY(!({assumed}))) {{ status = iv_fail(context, {OTHER_SIZES}, 0, 0, -1); goto iv_done; }}");
        }
        kernel.body.iter().for_each(|s| self.stmt(s));
        self.line("");
        if kernel.reserves > 0 || !assumed.is_empty() || kernel.body.iter().any(Stmt::can_fail) {
            self.depth = 0;
            self.line("iv_done:");
            self.depth = 1;
        }
        if kernel.reserves > 0 {
            line!(self, "iv_release(reserves, {});", kernel.reserves);
        }
        if self.style.flush {
            self.line("iv_restore(mode);");
        }
        self.line("(void)sizes, (void)inputs, (void)outputs, (void)work, (void)context;");
        self.line("return status;");
        self.depth = 0;
        self.line("}");
    }

    fn linkage(&self) -> &'static str {
        if self.style.embedded { "static " } else { "" }
    }

    fn describe(&mut self, entry: &str) {
        let kernel = self.names.kernel;
        let list = |items: Vec<String>| if items.is_empty() { "none".to_string() } else { items.join(", ") };
        let sizes = list(kernel.sizes.iter().map(|l| kernel.local(*l).name.clone()).collect());
        let inputs = kernel.inputs.iter().map(|input| match input {
            Input::Scalar(l) => format!("{}: {}", kernel.local(*l).name, kernel.local(*l).scalar.name()),
            Input::Array(b) => format!("{}: [..]{}", kernel.buffer(*b).name, kernel.buffer(*b).scalar.name()),
        });
        let inputs = list(inputs.collect());
        let outputs = kernel.outputs.iter().map(|o| {
            let axes = if o.rank > 0 { "[..]" } else { "" };
            format!("{}: {axes}{}", kernel.buffer(o.buffer).name, o.scalar.name())
        });
        let outputs = list(outputs.collect());
        line!(self, "/* {}, made by Iverson.", kernel.name);
        line!(self, " *");
        line!(self, " * `{entry}` may be called by several threads at once. Arrays are dense and row-major.");
        line!(self, " * sizes: {sizes}");
        line!(self, " * inputs, each by pointer: {inputs}");
        line!(self, " * outputs, owned by the caller and apart from the inputs: {outputs}");
        line!(self, " * work: `{entry}_work(sizes, inputs)` bytes (-1 if that is too many), aligned to 64, to be used freely");
        line!(self, " * context: how to run, and where the error goes; may be null. The status is 0 or the error's code. */");
    }

    /// The sizes and inputs as locals.
    fn arguments(&mut self) {
        let kernel = self.names.kernel;
        self.scalar_arguments();
        for (k, input) in kernel.inputs.iter().enumerate() {
            if let Input::Array(b) = input {
                line!(self, "const {} *restrict {} = inputs[{k}];", type_name(kernel.buffer(*b).scalar), self.names.buffer(*b));
            }
        }
    }
    fn scalar_arguments(&mut self) {
        let kernel = self.names.kernel;
        for (k, n) in kernel.sizes.iter().enumerate() {
            line!(self, "const int64_t {} = sizes[{k}];", self.names.local(*n));
        }
        for (k, input) in kernel.inputs.iter().enumerate() {
            if let Input::Scalar(l) = input {
                let ty = type_name(kernel.local(*l).scalar);
                line!(self, "const {ty} {} = *(const {ty} *)inputs[{k}];", self.names.local(*l));
            }
        }
        for (l, e) in &kernel.derived {
            line!(self, "const int64_t {} = {};", self.names.local(*l), self.saturating(e));
        }
    }

    /// Where the slots of the arena begin, and how long it is. Sizes that are too large saturate.
    fn plan(&mut self, entry: &str) {
        let kernel = self.names.kernel;
        if !kernel.arena.is_empty() {
            line!(self, "IV_COLD static int64_t {entry}_plan(const int64_t *sizes, const void *const *inputs, int64_t *slot)");
            self.line("{");
            self.depth = 1;
            self.scalar_arguments();
            self.line("int64_t end = 0;");
            let mut numbers: FxHashMap<String, String> = FxHashMap::default();
            // What each slot begins behind, by way of others too.
            let mut before: Vec<FxHashSet<usize>> = vec![];
            for (k, slot) in kernel.arena.iter().enumerate() {
                let nearest = slot.behind.iter().filter(|s| !slot.behind.iter().any(|t| before[*t].contains(s)));
                let start = nearest.fold("0".to_string(), |start, s| match start.as_str() {
                    "0" => format!("end{s}"),
                    _ => format!("iv_int_max({start}, end{s})"),
                });
                line!(self, "slot[{k}] = {start};");
                let size = format!("iv_slot_bytes({}, sizeof({}))", self.saturating(&slot.count), type_name(slot.scalar));
                match &slot.copies {
                    None => line!(self, "const int64_t end{k} = iv_saturating_add(slot[{k}], {size});"),
                    Some(chunks) => {
                        let chunks = if chunks.planned { self.chunks(chunks) } else { chunks.most.to_string() };
                        let chunks = match numbers.get(&chunks) {
                            Some(name) => name.clone(),
                            None => {
                                let name = format!("copies{k}");
                                line!(self, "const int64_t {name} = {chunks};");
                                numbers.insert(chunks, name.clone());
                                name
                            }
                        };
                        line!(self, "const int64_t end{k} = iv_saturating_add(slot[{k}], iv_copies({chunks}, {size}));")
                    }
                }
                line!(self, "end = iv_int_max(end, end{k});");
                let through = slot.behind.iter().flat_map(|s| before[*s].iter().copied());
                before.push(through.chain(slot.behind.iter().copied()).collect());
            }
            self.line("(void)sizes, (void)inputs;");
            self.line("return end;");
            self.depth = 0;
            self.line("}");
            self.line("");
        }
        let linkage = self.linkage();
        line!(self, "{linkage}int64_t {entry}_work(const int64_t *sizes, const void *const *inputs)");
        self.line("{");
        self.depth = 1;
        if kernel.arena.is_empty() {
            self.line("(void)sizes, (void)inputs;");
            self.line("return 0;");
        } else {
            line!(self, "int64_t slot[{}];", kernel.arena.len());
            line!(self, "const int64_t end = {entry}_plan(sizes, inputs, slot);");
            self.line("return end <= IV_MOST_BYTES ? end : -1;");
        }
        self.depth = 0;
        self.line("}");
        self.line("");
    }
    /// Integer arithmetic that saturates instead of wrapping, and is total.
    fn saturating(&self, e: &Expr) -> String {
        match e {
            Expr::Op(op, args) => {
                let function = match op {
                    Op::Add => "iv_saturating_add",
                    Op::Sub => "iv_saturating_sub",
                    Op::Mul => "iv_saturating_mul",
                    Op::Neg => "iv_saturating_neg",
                    Op::IDiv => "iv_saturating_div",
                    Op::IMod => "iv_saturating_mod",
                    Op::Min => "iv_int_min",
                    Op::Max => "iv_int_max",
                    other => panic!("emit: {other:?} in a size"),
                };
                let args: Vec<String> = args.iter().map(|a| self.saturating(a)).collect();
                format!("{function}({})", args.join(", "))
            }
            Expr::Lit(_) | Expr::Local(_) | Expr::Load(..) | Expr::Partial(..) | Expr::Select(..) => self.e(e),
        }
    }

    fn block(&mut self, stmts: &[Stmt]) {
        self.depth += 1;
        stmts.iter().for_each(|s| self.stmt(s));
        self.depth -= 1;
    }

    fn target(&self, t: &Target) -> String {
        match t {
            Target::Local(l) => self.names.local(*l).to_string(),
            Target::Place(b, offset) => format!("{}[{}]", self.names.buffer(*b), self.e(offset)),
        }
    }
    /// The address of an offset of a buffer.
    fn address(&self, b: Buffer, offset: &Expr) -> String {
        let name = self.names.buffer(b);
        if offset.as_int() == Some(0) { name.to_string() } else { format!("{name} + {}", self.names.at_level(offset, UNARY)) }
    }

    fn stmt(&mut self, s: &Stmt) {
        let kernel = self.names.kernel;
        match s {
            Stmt::Let(l, e) => {
                line!(self, "const {} {} = {};", type_name(kernel.local(*l).scalar), self.names.local(*l), self.e(e))
            }
            Stmt::Var(l, e) => line!(self, "{} {} = {};", type_name(kernel.local(*l).scalar), self.names.local(*l), self.e(e)),
            Stmt::Set(t, e) => line!(self, "{} = {};", self.target(t), self.e(e)),
            Stmt::Add(t, e) => line!(self, "{} += {};", self.target(t), self.e(e)),
            Stmt::Loop(l) => self.looping(l),
            Stmt::If(p, yes, no) => {
                line!(self, "if ({}) {{", self.e(p));
                self.block(yes);
                if !no.is_empty() {
                    self.line("} else {");
                    self.block(no);
                }
                self.line("}");
            }
            Stmt::Forever(body) => {
                self.line("for (;;) {");
                self.block(body);
                self.line("}");
            }
            Stmt::LeaveUnless(p) => line!(self, "if (!({})) break;", self.e(p)),
            Stmt::Allocate(b, count) => self.allocate(*b, count),
            Stmt::Zero(b, offset, count) => {
                let size = self.bytes(*b, count);
                line!(self, "memset({}, 0, {size});", self.address(*b, offset))
            }
            Stmt::Copy(to, at, from, from_at, count) => {
                let size = self.bytes(*to, count);
                line!(self, "memcpy({}, {}, {size});", self.address(*to, at), self.address(*from, from_at));
                if self.style.count {
                    line!(self, "context->copied_bytes += {size};");
                }
            }
            Stmt::Check(check) => self.check(check),
            Stmt::Mark(k) => self.mark(*k),
            Stmt::Count(c) => {
                if self.style.count {
                    for (name, n) in [("additions", c.additions), ("multiplications", c.multiplications), ("calls", c.calls)] {
                        if n != 0 {
                            line!(self, "context->{name} += {n};");
                        }
                    }
                }
            }
            Stmt::Gemm(g) => self.gemm(g),
        }
    }

    fn mark(&mut self, k: usize) {
        self.marked = k;
        if self.style.profile {
            line!(self, "iv_mark = {k};");
        }
    }

    fn bytes(&self, b: Buffer, count: &Expr) -> String {
        format!("sizeof({}) * {}", type_name(self.names.kernel.buffer(b).scalar), self.names.at_level(count, UNARY))
    }

    fn looping(&mut self, l: &Loop) {
        if let Schedule::Parallel(p) = &l.schedule {
            return self.parallel(l, p);
        }
        let index = self.names.local(l.index).to_string();
        let mut hi = self.e(&l.hi);
        // The bound is evaluated once, also where it reads memory.
        let fixed = l.hi.is_atom();
        if !fixed {
            line!(self, "const int64_t {index}_end = {hi};");
            hi = format!("{index}_end");
        }
        let lo = self.e(&l.lo);
        self.iterations(l, &l.schedule, &lo, &hi);
    }

    /// The iterations from `lo` to `hi`, in this thread.
    fn iterations(&mut self, l: &Loop, schedule: &Schedule, lo: &str, hi: &str) {
        let index = self.names.local(l.index).to_string();
        match schedule {
            Schedule::Lanes(lanes) => return self.in_lanes(l, lanes, lo, hi),
            Schedule::Vector => {
                let clauses = self.reduction_clauses(&l.order);
                line!(self, "#pragma omp simd{clauses}");
            }
            Schedule::Plain => {}
            Schedule::Parallel(_) => panic!("emit: a chunk is not cut again"),
        }
        line!(self, "for (int64_t {index} = {lo}; {index} < {hi}; {index}++) {{");
        self.block(&l.body);
        self.line("}");
    }

    fn reduction_clauses(&self, order: &Order) -> String {
        let locals = match order {
            Order::Reduction(locals) | Order::Accumulation(locals, _) => locals.as_slice(),
            Order::Sequential | Order::Independent => &[],
        };
        let clause = |(local, combine): &(Local, Combine)| {
            let float = self.names.kernel.local(*local).scalar.is_float();
            let operation = match (combine, float) {
                (Combine::Add, _) => "+",
                (Combine::Mul, _) => "*",
                (Combine::Max, true) => "iv_max",
                (Combine::Max, false) => "max",
                (Combine::Min, true) => "iv_min",
                (Combine::Min, false) => "min",
                (Combine::And, _) => "&&",
                (Combine::Or, _) => "||",
            };
            format!(" reduction({operation}:{})", self.names.local(*local))
        };
        locals.iter().map(clause).collect()
    }

    fn allocate(&mut self, b: Buffer, count: &Expr) {
        let info = self.names.kernel.buffer(b);
        let (ty, name) = (type_name(info.scalar), self.names.buffer(b).to_string());
        match info.home {
            Home::Stack(n) => line!(self, "{ty} {name}[{n}] IV_ALIGNED;"),
            Home::Arena(k) => {
                let slot = &self.names.kernel.arena[k];
                match &slot.copies {
                    None => line!(self, "{ty} *{name} = ({ty} *)((char *)work + slot[{k}]);"),
                    Some(_) => {
                        let size = format!("iv_slot_bytes({}, sizeof({ty}))", self.e(&slot.count));
                        line!(self, "{ty} *{name} = ({ty} *)((char *)work + slot[{k}] + iv_copy({size}));")
                    }
                }
            }
            Home::Reserve(k) => {
                line!(self, "{ty} *{name} = iv_reserve_bytes(&reserves[{k}], {}, sizeof({ty}));", self.e(count));
                line!(self, "if (!{name}) {{ status = iv_fail(context, IV_NO_MEMORY, 0, 0, -1); goto {}; }}", self.end);
            }
            Home::Input(_) | Home::Output(_) | Home::Unplanned => panic!("emit: {name} is not allocated"),
        }
    }

    fn check(&mut self, check: &Check) {
        let (bad, code, a, b, site) = self.check_parts(check);
        line!(self, "if (IV_UNLIKELY({bad})) {{ status = iv_fail(context, {code}, {a}, {b}, {site}); goto {}; }}", self.end);
    }

    /// When a check fails, and what it says then: the code, two numbers and the site.
    fn check_parts(&self, check: &Check) -> (String, i32, String, String, i64) {
        let number = |site: Option<usize>| site.map_or(-1, |site| site as i64);
        match check {
            Check::Read { index, size, site } | Check::Key { index, size, site } => {
                let (i, n) = (self.names.at_level(index, UNARY), self.names.at_level(size, UNARY));
                (format!("(uint64_t){i} >= (uint64_t){n}"), Fault::INDEX_OUT_OF_RANGE, self.e(index), self.e(size), *site as i64)
            }
            Check::NotEmpty { lo, hi, site, .. } => {
                let bad = format!("{} >= {}", self.names.at_level(lo, UNARY), self.names.at_level(hi, UNARY));
                (bad, Fault::NOTHING_TO_CHOOSE, "0".into(), "0".into(), number(*site))
            }
            Check::Defined { op, args, site } => {
                let site = number(*site);
                let operand = args.last().expect("operations have operands");
                let last = self.names.at_level(operand, UNARY);
                let no_integer = |to: Scalar| {
                    let bits = Fault::bits(to);
                    (format!("!iv_has_int{bits}({last})"), Fault::NO_INTEGER, format!("iv_bits({last})"), bits.to_string(), site)
                };
                match op {
                    Op::Agreed => {
                        let first = self.names.at_level(&args[0], UNARY);
                        (format!("{first} != {last}"), Fault::SIZES_DIFFER, first, last, site)
                    }
                    Op::Bounded => {
                        let first = self.names.at_level(&args[0], UNARY);
                        (format!("{first} > {last}"), Fault::TOO_MANY_STEPS, last, "0".into(), site)
                    }
                    Op::Within => {
                        let first = self.names.at_level(&args[0], UNARY);
                        let size = format!("({last} < 0 ? 0 : {last})");
                        (format!("{first} < 0 || {first} >= {last}"), Fault::INDEX_OUT_OF_RANGE, first, size, site)
                    }
                    Op::Pow => (format!("{last} < 0"), Fault::NEGATIVE_EXPONENT, last, "0".into(), site),
                    Op::ToI64 => no_integer(Scalar::I64),
                    Op::ToI32 if self.names.kernel.scalar_of(operand).is_float() => no_integer(Scalar::I32),
                    Op::ToI32 => (format!("{last} != (int32_t){last}"), Fault::TOO_LARGE, last, "0".into(), site),
                    _ => (format!("{last} == 0"), Fault::DIVISION_BY_ZERO, "0".into(), "0".into(), site),
                }
            }
        }
    }

    fn gemm(&mut self, g: &Gemm) {
        let (m, n, k) = (self.e(&g.rows), self.e(&g.columns), self.e(&g.depth));
        let matrix = |m: &Matrix| format!("{}, {}, {}", self.address(m.buffer, &m.offset), self.e(&m.row_stride), self.e(&m.column_stride));
        let (dest, left, right) = (matrix(&g.dest), matrix(&g.left), matrix(&g.right));
        let product = if self.names.kernel.buffer(g.dest.buffer).scalar == Scalar::F32 { "gemm32" } else { "gemm" };
        let call = format!(
            "iv_shared_{product}(context, {m}, {n}, {k}, {dest}, {left}, {right}, {}, {}, {});",
            self.e(&g.scale),
            g.accumulate as i32,
            self.style.flush as i32
        );
        if g.otherwise.is_empty() {
            return self.line(&call);
        }
        line!(self, "if (context->{product} && iv_is_large({m}, {n}, {k})) {{");
        self.depth += 1;
        self.line(&call);
        self.depth -= 1;
        self.line("} else {");
        self.block(&g.otherwise);
        self.line("}");
    }
}

/// What names in the support code end with, by the type they are for.
fn letter(scalar: Scalar) -> char {
    match scalar {
        Scalar::F64 => 'd',
        Scalar::F32 => 'f',
        Scalar::I64 => 'l',
        Scalar::I32 => 'i',
        Scalar::Bool => 'm',
    }
}

/// Whether there is nothing that could be done instead of a matrix product.
fn relies_on_products(block: &[Stmt]) -> bool {
    block.iter().any(|s| {
        let own = matches!(s, Stmt::Gemm(g) if g.otherwise.is_empty());
        own || s.blocks().into_iter().any(|b| relies_on_products(b))
    })
}

fn has_lanes(block: &[Stmt]) -> bool {
    block.iter().any(|s| {
        let own = matches!(s, Stmt::Loop(l) if matches!(l.schedule.within(), Schedule::Lanes(_)));
        own || s.blocks().into_iter().any(|b| has_lanes(b))
    })
}

/// Loops that fill their lanes in the calls that the code is for: how many iterations they have, and how many of them a block.
fn filled_lanes(block: &[Stmt], found: &mut Vec<(Expr, usize)>) {
    for s in block {
        if let Stmt::Loop(l) = s {
            let count = l.hi.clone().minus(l.lo.clone());
            match l.schedule.within() {
                Schedule::Lanes(lanes) if lanes.filled && count.as_int().is_none() => found.push((count, lanes.width())),
                _ => {}
            }
        }
        s.blocks().into_iter().for_each(|b| filled_lanes(b, found));
    }
}
