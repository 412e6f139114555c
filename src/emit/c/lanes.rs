//! Loops whose iterations run side by side in the lanes of vectors (`lower/lanes.rs`).
//!
//! A local that varies is some vectors, `x_1v0`, `x_1v1`, ..; the name of the loop's index stands for its first lane, and
//! the vectors of it for all. Statements are written once for each vector. Under a condition that varies they stand under a
//! mask, and are skipped where no lane needs them. A check that fails in a lane leaves what remains to the plain loop
//! behind, which then fails at the first iteration that does.

mod tiles;

use super::*;
use tiles::{Outer, Rows};

/// What is being written in lanes.
struct Block<'a> {
    lanes: &'a Lanes,
    index: Local,
    /// The mask of the lanes that take part; all do if there is none.
    mask: Option<usize>,
    /// Arrays of the body that are the same in all lanes.
    shared: &'a [Buffer],
    /// The label of the plain loop.
    plain: String,
    /// The number of lanes that take part, where the mask is no more than that.
    live: Option<String>,
}

impl Emitter<'_> {
    pub(super) fn in_lanes(&mut self, l: &Loop, lanes: &Lanes, lo: &str, hi: &str) {
        let index = self.names.local(l.index).to_string();
        let totals: Vec<Local> = match &l.order {
            Order::Reduction(totals) | Order::Accumulation(totals, _) => totals.iter().map(|(total, _)| *total).collect(),
            Order::Sequential | Order::Independent => vec![],
        };
        self.masks += 1;
        let shared: Vec<Buffer> = allocated(&l.body).into_iter().filter(|b| !lanes.own.contains(b)).collect();
        let plain = format!("iv_plain_{}", self.masks);
        if lanes.partial {
            return self.in_partial_lanes(l, lanes, &totals, (lo, hi));
        }
        let fails = l.body.iter().any(can_fail);
        line!(self, "int64_t {index} = {lo};");
        self.blocks_of_lanes(l, lanes, &totals, &shared, &plain, hi);
        if lanes.narrow {
            let one = Lanes { vectors: 1, ..lanes.clone() };
            self.blocks_of_lanes(l, &one, &totals, &shared, &plain, hi);
        }
        if fails {
            line!(self, "{plain}:;");
        }
        line!(self, "for (; {index} < {hi}; {index}++) {{");
        self.block(&l.body);
        self.line("}");
        if fails {
            line!(self, "if (IV_UNLIKELY(status)) goto {};", self.end);
        }
    }

    /// As many whole blocks as there are from the index on.
    fn blocks_of_lanes(&mut self, l: &Loop, lanes: &Lanes, totals: &[Local], shared: &[Buffer], plain: &str, hi: &str) {
        let index = self.names.local(l.index).to_string();
        let width = lanes.width();
        let block = Block { lanes, index: l.index, mask: None, shared, plain: plain.to_string(), live: None };
        line!(self, "if ({hi} - {index} >= {width}) {{");
        self.depth += 1;
        for total in totals {
            for m in 0..lanes.vectors {
                line!(self, "{} {} = {{0}};", self.vector_type(*total), self.part(*total, m));
            }
        }
        line!(self, "for (; {index} + {width} <= {hi}; {index} += {width}) {{");
        self.depth += 1;
        for m in 0..lanes.vectors {
            line!(self, "const iv_vl {} = {index} + {} + iv_lane_numbers;", self.part(l.index, m), m * LANES);
        }
        self.lane_stmts(&block, &l.body);
        self.depth -= 1;
        self.line("}");
        for total in totals {
            let (name, sum) = (self.names.local(*total).to_string(), self.sum_of(*total));
            let parts: Vec<String> = (0..lanes.vectors).map(|m| self.part(*total, m)).collect();
            line!(self, "{name} += {sum}({});", parts.join(" + "));
        }
        self.depth -= 1;
        self.line("}");
    }

    /// Blocks of one vector, of which the last may be a part.
    fn in_partial_lanes(&mut self, l: &Loop, lanes: &Lanes, totals: &[Local], (lo, hi): (&str, &str)) {
        let index = self.names.local(l.index).to_string();
        let k = self.masks;
        let block = Block { lanes, index: l.index, mask: Some(k), shared: &[], plain: String::new(), live: Some(format!("live{k}")) };
        for total in totals {
            line!(self, "{} {} = {{0}};", self.vector_type(*total), self.part(*total, 0));
        }
        line!(self, "for (int64_t {index} = {lo}; {index} < {hi}; {index} += {LANES}) {{");
        self.depth += 1;
        line!(self, "const int64_t live{k} = iv_int_min({LANES}, {hi} - {index});");
        line!(self, "const iv_vl {} = {index} + iv_lane_numbers;", self.part(l.index, 0));
        line!(self, "const iv_vl mask{k}v0 = iv_lane_numbers < live{k};");
        self.lane_stmts(&block, &l.body);
        self.depth -= 1;
        self.line("}");
        for total in totals {
            line!(self, "{} += {}({});", self.names.local(*total), self.sum_of(*total), self.part(*total, 0));
        }
    }

    fn part(&self, l: Local, m: usize) -> String {
        format!("{}v{m}", self.names.local(l))
    }
    fn letter(scalar: Scalar) -> &'static str {
        match scalar {
            Scalar::F64 => "d",
            Scalar::I64 | Scalar::Bool => "l",
            Scalar::F32 | Scalar::I32 => panic!("emit: {scalar:?} in lanes"),
        }
    }
    fn vector_type(&self, l: Local) -> String {
        format!("iv_v{}", Self::letter(self.names.kernel.local(l).scalar))
    }
    fn sum_of(&self, l: Local) -> String {
        format!("iv_sum_{}", Self::letter(self.names.kernel.local(l).scalar))
    }

    fn lane_block(&mut self, block: &Block, stmts: &[Stmt]) {
        self.depth += 1;
        self.lane_stmts(block, stmts);
        self.depth -= 1;
    }

    fn lane_stmts(&mut self, block: &Block, stmts: &[Stmt]) {
        stmts.iter().for_each(|s| self.lane_stmt(block, s));
    }

    fn lane_stmt(&mut self, block: &Block, s: &Stmt) {
        let vectors = block.lanes.vectors;
        match s {
            Stmt::Let(l, _) | Stmt::Var(l, _) if !block.lanes.varying.contains(l) => self.stmt(s),
            Stmt::Let(l, e) => {
                for m in 0..vectors {
                    line!(self, "const {} {} = {};", self.vector_type(*l), self.part(*l, m), self.vector(block, e, m));
                }
            }
            Stmt::Var(l, e) => {
                for m in 0..vectors {
                    line!(self, "{} {} = {};", self.vector_type(*l), self.part(*l, m), self.vector(block, e, m));
                }
            }
            Stmt::Set(Target::Local(l), e) | Stmt::Add(Target::Local(l), e) => {
                if !block.lanes.varying.contains(l) {
                    return self.stmt(s);
                }
                let letter = Self::letter(self.names.kernel.local(*l).scalar);
                for m in 0..vectors {
                    let (name, value) = (self.part(*l, m), self.vector(block, e, m));
                    // Lanes beyond the end matter only where they are added up.
                    let mask = self.mask(block, m).filter(|_| block.live.is_none() || matches!(s, Stmt::Add(..)));
                    match (s, mask) {
                        (Stmt::Add(..), None) => line!(self, "{name} += {value};"),
                        (Stmt::Add(..), Some(mask)) => line!(self, "{name} += iv_select_{letter}({mask}, {value}, (iv_v{letter}){{0}});"),
                        (_, None) => line!(self, "{name} = {value};"),
                        (_, Some(mask)) => line!(self, "{name} = iv_select_{letter}({mask}, {value}, {name});"),
                    }
                }
            }
            Stmt::Set(Target::Place(b, offset), e) => self.lane_write(block, *b, offset, e, false),
            Stmt::Add(Target::Place(b, offset), e) => self.lane_write(block, *b, offset, e, true),
            // What is the same in all lanes is as anywhere else.
            Stmt::Loop(_) if is_uniform(block, s) => self.stmt(s),
            Stmt::Loop(l) if block.lanes.varies(&l.lo) || block.lanes.varies(&l.hi) => self.lane_ragged(block, l),
            Stmt::Loop(l) if is_contraction(block, self.names.kernel, l) => self.lane_sums(block, l),
            Stmt::Loop(l) => {
                if let Some(outer) = Outer::of(block, self.names.kernel, l) {
                    return self.lane_outer(block, l, &outer);
                }
                if let Some(rows) = Rows::of(block, self.names.kernel, l) {
                    return self.lane_rows(block, l, &rows);
                }
                let index = self.names.local(l.index).to_string();
                let mut hi = self.e(&l.hi);
                if !l.hi.is_atom() {
                    line!(self, "const int64_t {index}_end = {hi};");
                    hi = format!("{index}_end");
                }
                line!(self, "for (int64_t {index} = {}; {index} < {hi}; {index}++) {{", self.e(&l.lo));
                self.lane_block(block, &l.body);
                self.line("}");
            }
            Stmt::If(p, yes, no) if !block.lanes.varies(p) => {
                line!(self, "if ({}) {{", self.e(p));
                self.lane_block(block, yes);
                if !no.is_empty() {
                    self.line("} else {");
                    self.lane_block(block, no);
                }
                self.line("}");
            }
            Stmt::If(p, yes, no) => {
                for (branch, taken) in [(yes, true), (no, false)] {
                    if branch.is_empty() {
                        continue;
                    }
                    self.masks += 1;
                    let k = self.masks;
                    self.line("{");
                    self.depth += 1;
                    for m in 0..vectors {
                        let mut condition = self.vector(block, p, m);
                        if !taken {
                            condition = format!("~{condition}");
                        }
                        if let Some(mask) = self.mask(block, m) {
                            condition = format!("{condition} & {mask}");
                        }
                        line!(self, "const iv_vl mask{k}v{m} = {condition};");
                    }
                    let any: Vec<String> = (0..vectors).map(|m| format!("mask{k}v{m}")).collect();
                    line!(self, "if (iv_any({})) {{", any.join(" | "));
                    let inner = Block { mask: Some(k), plain: block.plain.clone(), live: None, ..*block };
                    self.lane_block(&inner, branch);
                    self.line("}");
                    self.depth -= 1;
                    self.line("}");
                }
            }
            Stmt::Check(check) => self.lane_check(block, check, s),
            Stmt::Allocate(..) | Stmt::Mark(_) => self.stmt(s),
            Stmt::Forever(_) | Stmt::LeaveUnless(_) | Stmt::Zero(..) | Stmt::Copy(..) | Stmt::Count(_) | Stmt::Gemm(_) => {
                panic!("emit: {s:?} in lanes")
            }
        }
    }

    /// A loop whose bounds differ between lanes: the steps that all take stand between those that only some do.
    fn lane_ragged(&mut self, block: &Block, l: &Loop) {
        let vectors = block.lanes.vectors;
        self.masks += 1;
        let k = self.masks;
        let index = self.names.local(l.index).to_string();
        self.line("{");
        self.depth += 1;
        for m in 0..vectors {
            let (mut lo, mut hi) = (self.vector(block, &l.lo, m), self.vector(block, &l.hi, m));
            // Lanes that take no part have no steps.
            if let Some(mask) = self.mask(block, m) {
                lo = format!("iv_select_l({mask}, {lo}, iv_all_l(INT64_MAX))");
                hi = format!("iv_select_l({mask}, {hi}, iv_all_l(INT64_MIN))");
            }
            line!(self, "const iv_vl lo{k}v{m} = {lo}, hi{k}v{m} = {hi};");
        }
        let over = |which: &str, choice: &str, bound: &str| {
            let first = format!("{which}({bound}{k}v0)");
            (1..vectors).fold(first, |so_far, m| format!("{choice}({so_far}, {which}({bound}{k}v{m}))"))
        };
        let (least, most) = (("iv_least", "iv_int_min"), ("iv_most", "iv_int_max"));
        line!(self, "const int64_t some{k} = {}, all{k} = {};", over(least.0, least.1, "lo"), over(most.0, most.1, "lo"));
        line!(self, "const int64_t until{k} = {}, end{k} = {};", over(least.0, least.1, "hi"), over(most.0, most.1, "hi"));
        let ragged = |me: &mut Self, lo: &str, hi: &str| {
            me.masks += 1;
            let own = me.masks;
            line!(me, "for (int64_t {index} = {lo}; {index} < {hi}; {index}++) {{");
            me.depth += 1;
            for m in 0..vectors {
                line!(me, "const iv_vl mask{own}v{m} = ({index} >= lo{k}v{m}) & ({index} < hi{k}v{m});");
            }
            let any: Vec<String> = (0..vectors).map(|m| format!("mask{own}v{m}")).collect();
            line!(me, "if (!iv_any({})) continue;", any.join(" | "));
            let inner = Block { mask: Some(own), plain: block.plain.clone(), live: None, ..*block };
            me.lane_stmts(&inner, &l.body);
            me.depth -= 1;
            me.line("}");
        };
        if block.lanes.varies(&l.lo) || block.mask.is_some() {
            ragged(self, &format!("some{k}"), &format!("iv_int_min(all{k}, end{k})"));
        }
        line!(self, "for (int64_t {index} = all{k}; {index} < until{k}; {index}++) {{");
        self.lane_block(block, &l.body);
        self.line("}");
        if block.lanes.varies(&l.hi) || block.mask.is_some() {
            ragged(self, &format!("iv_int_max(all{k}, until{k})"), &format!("end{k}"));
        }
        self.depth -= 1;
        self.line("}");
    }

    /// A loop whose steps each add the sum over the lanes to a place: four steps at once, whose sums are made together.
    fn lane_sums(&mut self, block: &Block, l: &Loop) {
        let [Stmt::Add(Target::Place(b, offset), e)] = l.body.as_slice() else { panic!("emit: one addition in a loop") };
        let (index, name) = (self.names.local(l.index).to_string(), self.names.buffer(*b).to_string());
        let vectors: Vec<String> = (0..block.lanes.vectors).map(|m| self.vector(block, e, m)).collect();
        let (sum, offset) = (vectors.join(" + "), self.e(offset));
        line!(self, "int64_t {index}_at = {};", self.e(&l.lo));
        line!(self, "const int64_t {index}_end = {};", self.e(&l.hi));
        line!(self, "for (; {index}_at + 4 <= {index}_end; {index}_at += 4) {{");
        self.depth += 1;
        self.line("double *p0, *p1, *p2, *p3;");
        self.line("iv_vd s0, s1, s2, s3;");
        for k in 0..4 {
            line!(self, "{{ const int64_t {index} = {index}_at + {k}; p{k} = {name} + {offset}; s{k} = {sum}; }}");
        }
        self.line("iv_add_sums_d(p0, p1, p2, p3, s0, s1, s2, s3);");
        self.depth -= 1;
        self.line("}");
        line!(self, "for (int64_t {index} = {index}_at; {index} < {index}_end; {index}++) {name}[{offset}] += iv_sum_d({sum});");
    }

    fn mask(&self, block: &Block, m: usize) -> Option<String> {
        block.mask.map(|k| format!("mask{k}v{m}"))
    }

    /// A write or addition to memory.
    fn lane_write(&mut self, block: &Block, b: Buffer, offset: &Expr, e: &Expr, add: bool) {
        let lanes = block.lanes;
        let own = lanes.own.contains(&b);
        if !own && !lanes.varies(offset) {
            if block.shared.contains(&b) {
                let target = Target::Place(b, offset.clone());
                return self.stmt(&if add { Stmt::Add(target, e.clone()) } else { Stmt::Set(target, e.clone()) });
            }
            let letter = Self::letter(self.names.kernel.buffer(b).scalar);
            let parts = (0..lanes.vectors).map(|m| {
                let value = self.vector(block, e, m);
                match self.mask(block, m) {
                    None => value,
                    Some(mask) => format!("iv_select_{letter}({mask}, {value}, (iv_v{letter}){{0}})"),
                }
            });
            let sum = parts.collect::<Vec<_>>().join(" + ");
            return line!(self, "{}[{}] += iv_sum_{letter}({sum});", self.names.buffer(b), self.e(offset));
        }
        let letter = Self::letter(self.names.kernel.buffer(b).scalar);
        let name = self.names.buffer(b).to_string();
        let width = lanes.width();
        for m in 0..lanes.vectors {
            let value = self.vector(block, e, m);
            let mask = self.mask(block, m);
            if own && !lanes.varies(offset) {
                let place = self.own_place(block, b, offset, m);
                let value = if add { format!("{place} + {value}") } else { value };
                let value = match mask {
                    None => value,
                    Some(mask) => format!("iv_select_{letter}({mask}, {value}, {place})"),
                };
                line!(self, "{place} = {value};");
                continue;
            }
            let verb = if add { "add" } else { "put" };
            let stride = lanes.stride(offset, block.index).filter(|_| !own);
            if let (Some(live), Some(1)) = (&block.live, stride.as_ref().and_then(Expr::as_int)) {
                let first = format!("{name} + ({})", self.e(offset));
                let value = if add { format!("iv_near_part_{letter}({first}, {live}) + {value}") } else { value };
                line!(self, "iv_put_near_part_{letter}({first}, {value}, {live});");
                continue;
            }
            if let Some(stride) = stride.filter(|_| mask.is_none()) {
                let stride_text = self.names.at_level(&stride, UNARY);
                let first = format!("{name} + ({}) + {} * {stride_text}", self.e(offset), m * LANES);
                match stride.as_int() {
                    Some(1) if add => line!(self, "iv_put_near_{letter}({first}, iv_near_{letter}({first}) + {value});"),
                    Some(1) => line!(self, "iv_put_near_{letter}({first}, {value});"),
                    _ => line!(self, "iv_{verb}_far_{letter}({first}, {stride_text}, {value});"),
                }
                continue;
            }
            let mut at = self.vector(block, offset, m);
            if own {
                at = format!("{at} * {width} + {} + iv_lane_numbers", m * LANES);
            }
            let mask = mask.unwrap_or("iv_all_b(1)".into());
            line!(self, "iv_{verb}_some_{letter}({name}, {at}, {value}, {mask});");
        }
    }

    fn own_place(&self, block: &Block, b: Buffer, offset: &Expr, m: usize) -> String {
        let letter = Self::letter(self.names.kernel.buffer(b).scalar);
        let offset = self.names.at_level(offset, UNARY);
        format!("*(iv_v{letter}_at *)({} + {offset} * {} + {})", self.names.buffer(b), block.lanes.width(), m * LANES)
    }

    fn lane_check(&mut self, block: &Block, check: &Check, s: &Stmt) {
        let mut varies = false;
        s.for_each_expr(&mut |e| varies |= block.lanes.varies(e));
        let vectors = block.lanes.vectors;
        let site = |site: Option<usize>| site.map_or(-1, |site| site as i64);
        // Which lanes fail; what is said in the end is up to the plain loop.
        let (bad, code, site): (Vec<String>, i32, i64) = if varies {
            let at = |e: &Expr, m: usize| self.vector(block, e, m);
            let each = |f: &dyn Fn(usize) -> String| (0..vectors).map(f).collect::<Vec<String>>();
            match check {
                Check::Read { index, size, site } | Check::Key { index, size, site } => {
                    let bad = each(&|m| format!("(({0} < 0) | ({0} >= {1}))", at(index, m), at(size, m)));
                    (bad, Fault::INDEX_OUT_OF_RANGE, *site as i64)
                }
                Check::NotEmpty { lo, hi, site: s, .. } => {
                    (each(&|m| format!("({} >= {})", at(lo, m), at(hi, m))), Fault::NOTHING_TO_CHOOSE, site(*s))
                }
                Check::Defined { .. } => {
                    let (_, code, _, _, number) = self.check_parts(check);
                    (each(&|m| self.undefined(block, check, m)), code, number)
                }
            }
        } else {
            let (bad, code, _, _, site) = self.check_parts(check);
            (vec![format!("iv_all_b({bad})"); vectors], code, site)
        };
        let masked: Vec<String> = bad
            .iter()
            .enumerate()
            .map(|(m, bad)| match self.mask(block, m) {
                None => bad.clone(),
                Some(mask) => format!("({bad} & {mask})"),
            })
            .collect();
        line!(
            self,
            "if (IV_UNLIKELY(iv_any({}))) {{ status = iv_fail(context, {code}, 0, 0, {site}); goto {}; }}",
            masked.join(" | "),
            block.plain
        );
    }

    /// The lanes in which an operation is not defined.
    fn undefined(&self, block: &Block, check: &Check, m: usize) -> String {
        let Check::Defined { op, args, .. } = check else { panic!("emit: checks of operations") };
        let operand = args.last().expect("operations have operands");
        let last = self.vector(block, operand, m);
        match op {
            Op::Agreed => format!("({} != {last})", self.vector(block, &args[0], m)),
            Op::Bounded => format!("({} > {last})", self.vector(block, &args[0], m)),
            Op::Within => {
                let first = self.vector(block, &args[0], m);
                format!("(({first} < 0) | ({first} >= {last}))")
            }
            Op::Pow => format!("({last} < 0)"),
            Op::ToI64 => {
                format!("~(({last} >= -9223372036854775808.0) & ({last} < 9223372036854775808.0))")
            }
            _ => format!("({last} == 0)"),
        }
    }

    /// The value in the lanes of a vector.
    fn vector(&self, block: &Block, e: &Expr, m: usize) -> String {
        let lanes = block.lanes;
        let kernel = self.names.kernel;
        let scalar = kernel.scalar_of(e);
        if !lanes.varies(e) {
            let text = self.e(e);
            return match scalar {
                Scalar::Bool => format!("iv_all_b({text})"),
                _ => format!("iv_all_{}({text})", Self::letter(scalar)),
            };
        }
        match e {
            Expr::Lit(_) => unreachable!("literals do not vary"),
            Expr::Local(l) => self.part(*l, m),
            Expr::Load(b, offset) => self.lane_read(block, *b, offset, m),
            Expr::Select(p, a, b) => {
                let (a, b) = (self.vector(block, a, m), self.vector(block, b, m));
                if lanes.varies(p) {
                    format!("iv_select_{}({}, {a}, {b})", Self::letter(scalar), self.vector(block, p, m))
                } else {
                    format!("(({}) ? {a} : {b})", self.e(p))
                }
            }
            Expr::Partial(op, k, args) => self.vector(block, &self.names.expand(*op, *k, args), m),
            Expr::Op(op, args) => self.lane_op(block, *op, args, scalar, m),
        }
    }

    fn lane_op(&self, block: &Block, op: Op, args: &[Expr], scalar: Scalar, m: usize) -> String {
        let kernel = self.names.kernel;
        let kinds: Vec<Scalar> = args.iter().map(|a| kernel.scalar_of(a)).collect();
        // Numbers that do not vary take part as they are.
        let operand = |k: usize| {
            if block.lanes.varies(&args[k]) || kinds[k] == Scalar::Bool {
                self.vector(block, &args[k], m)
            } else {
                format!("({})", self.e(&args[k]))
            }
        };
        let infix = |symbol: &str| format!("({} {symbol} {})", operand(0), operand(1));
        let is_bool = kinds[0] == Scalar::Bool;
        match op {
            Op::Add => infix("+"),
            Op::Sub => infix("-"),
            Op::Mul => infix("*"),
            Op::Div => infix("/"),
            Op::Neg => format!("(-{})", operand(0)),
            Op::Eq if is_bool => format!("(~({} ^ {}))", operand(0), operand(1)),
            Op::Ne if is_bool => infix("^"),
            Op::Eq => infix("=="),
            Op::Ne => infix("!="),
            Op::Lt => infix("<"),
            Op::Le => infix("<="),
            Op::Gt => infix(">"),
            Op::Ge => infix(">="),
            Op::And => infix("&"),
            Op::Or => infix("|"),
            Op::Not => format!("(~{})", operand(0)),
            Op::StopGradient => operand(0),
            Op::ToF64 if is_bool => format!("(-__builtin_convertvector({}, iv_vd))", operand(0)),
            Op::ToI64 if is_bool => format!("(-{})", operand(0)),
            Op::ToF64 if kinds[0] == Scalar::I64 => format!("__builtin_convertvector({}, iv_vd)", operand(0)),
            Op::ToI64 if kinds[0] == Scalar::F64 => format!("__builtin_convertvector({}, iv_vl)", operand(0)),
            Op::ToF64 | Op::ToI64 => operand(0),
            _ => self.lane_by_lane(block, op, args, &kinds, scalar, m),
        }
    }

    /// An operation that is applied to one lane after the other; the compiler makes a vector function of it where there is one.
    fn lane_by_lane(&self, block: &Block, op: Op, args: &[Expr], kinds: &[Scalar], scalar: Scalar, m: usize) -> String {
        let mut text = op.c_template(kinds).to_string();
        let mut definitions = vec![];
        for (k, arg) in args.iter().enumerate().rev() {
            let letter = Self::letter(kinds[k]);
            let operand = if block.lanes.varies(arg) {
                let mut value = self.vector(block, arg, m);
                // Lanes that take no part must not divide by zero, nor run forever.
                if let (Op::IDiv | Op::IMod | Op::Pow, 1, Scalar::I64, Some(mask)) = (op, k, kinds[k], self.mask(block, m)) {
                    value = format!("iv_select_l({mask}, {value}, iv_all_l(1))");
                }
                definitions.push(format!("const iv_v{letter} x{k} = {value};"));
                format!("x{k}[l]")
            } else {
                format!("({})", self.e(arg))
            };
            text = text.replace(&format!("{{{k}}}"), &operand);
        }
        let value = if scalar == Scalar::Bool { format!("-(int64_t)({text})") } else { text };
        format!("({{ {} iv_v{} r; for (int l = 0; l < {LANES}; l++) r[l] = {value}; r; }})", definitions.join(" "), Self::letter(scalar))
    }

    fn lane_read(&self, block: &Block, b: Buffer, offset: &Expr, m: usize) -> String {
        let lanes = block.lanes;
        let letter = Self::letter(self.names.kernel.buffer(b).scalar);
        let name = self.names.buffer(b);
        let own = lanes.own.contains(&b);
        if own && !lanes.varies(offset) {
            return self.own_place(block, b, offset, m);
        }
        let mask = self.mask(block, m);
        let stride = lanes.stride(offset, block.index).filter(|_| !own);
        if let (Some(live), Some(1)) = (&block.live, stride.as_ref().and_then(Expr::as_int)) {
            return format!("iv_near_part_{letter}({name} + ({}), {live})", self.e(offset));
        }
        if let Some(stride) = stride.filter(|_| mask.is_none()) {
            let text = self.names.at_level(&stride, UNARY);
            let first = format!("{name} + ({}) + {} * {text}", self.e(offset), m * LANES);
            return match stride.as_int() {
                Some(1) => format!("iv_near_{letter}({first})"),
                _ => format!("iv_far_{letter}({first}, {text})"),
            };
        }
        let mut at = self.vector(block, offset, m);
        if own {
            at = format!("{at} * {} + {} + iv_lane_numbers", lanes.width(), m * LANES);
        }
        match mask {
            None => format!("iv_pick_{letter}({name}, {at})"),
            Some(mask) => format!("iv_pick_some_{letter}({name}, {at}, {mask})"),
        }
    }
}

/// Whether nothing in a statement varies, and nothing in it may fail or add to memory outside.
fn is_uniform(block: &Block, s: &Stmt) -> bool {
    let own = match s {
        Stmt::Let(l, _) | Stmt::Var(l, _) => !block.lanes.varying.contains(l),
        Stmt::Set(Target::Local(l), _) | Stmt::Add(Target::Local(l), _) => !block.lanes.varying.contains(l),
        Stmt::Set(Target::Place(b, _), _) | Stmt::Add(Target::Place(b, _), _) => block.shared.contains(b),
        Stmt::Loop(_) | Stmt::If(..) | Stmt::Mark(_) => true,
        Stmt::Check(_) | Stmt::Allocate(..) | Stmt::Forever(_) | Stmt::LeaveUnless(_) => false,
        Stmt::Zero(..) | Stmt::Copy(..) | Stmt::Count(_) | Stmt::Gemm(_) => false,
    };
    let mut same = own;
    s.for_each_expr(&mut |e| same = same && !block.lanes.varies(e));
    same && s.blocks().iter().all(|b| b.iter().all(|s| is_uniform(block, s)))
}

/// Whether each step of a loop adds a sum over all lanes to a place outside.
fn is_contraction(block: &Block, kernel: &Kernel, l: &Loop) -> bool {
    let [Stmt::Add(Target::Place(b, offset), _)] = l.body.as_slice() else { return false };
    let outside = !block.lanes.own.contains(b) && !block.shared.contains(b) && kernel.buffer(*b).scalar == Scalar::F64;
    let long = !matches!((l.lo.as_int(), l.hi.as_int()), (Some(lo), Some(hi)) if hi - lo < 4);
    outside && long && block.mask.is_none() && !block.lanes.varies(offset)
}
