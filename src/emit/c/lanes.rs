//! Loops whose iterations run side by side in the lanes of vectors (`lower/lanes.rs`).
//!
//! A local that varies is some vectors, `x_1v0`, `x_1v1`, ..; the name of the loop's index stands for its first lane, and
//! the vectors of it for all. Statements are written once for each vector. Under a condition that varies they stand under a
//! mask, and are skipped where no lane needs them. A check that fails in a lane leaves what remains to the plain loop
//! behind, which then fails at the first iteration that does. Code for calls that fill the lanes, and leave nothing over, has
//! no plain loop: its caller runs other code then (`OTHER_SIZES`, `FAILS_IN_LANES`).
//!
//! Where iterations may run again, the last block ends where the loop does, and begins among those that are done. What they
//! add up is left out then; what they write, they write again.

mod tiles;

use super::*;
use crate::loops::tiles::{Ends, Tile};

/// Loops of no more steps are written out by the compiler of C.
const SHORT: i64 = 8;

/// What is being written in lanes.
pub(super) struct Block<'a> {
    pub lanes: &'a Lanes,
    pub index: Local,
    /// How many iterations there are in all blocks.
    pub count: String,
    /// The mask of the lanes that take part; all do if there is none.
    pub mask: Option<usize>,
    /// Arrays of the body that are the same in all lanes.
    pub shared: &'a [Buffer],
    /// The label of the plain loop, if there is one.
    pub plain: Option<String>,
    /// The number of lanes that take part, where the mask is no more than that.
    pub live: Option<String>,
    /// The mask of the lanes whose iterations have not run before; `None` where all have not.
    pub fresh: Option<usize>,
    /// What all iterations add up.
    pub totals: &'a [Local],
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
        if lanes.partial {
            return self.in_partial_lanes(l, lanes, &totals, (lo, hi));
        }
        let fails = l.body.iter().any(Stmt::can_fail);
        self.streams = false;
        line!(self, "int64_t {index} = {lo};");
        if lanes.filled && may_run_again(l, lanes, &shared) {
            self.blocks_of_lanes(l, lanes, &totals, &shared, None, hi);
            if self.streams {
                self.line("iv_streamed();");
            }
            return;
        }
        let plain = format!("iv_plain_{}", self.masks);
        let label = Some(plain.as_str());
        self.blocks_of_lanes(l, lanes, &totals, &shared, label, hi);
        if lanes.narrow {
            // Rows and outer products are for several vectors.
            let tiles = lanes.tiles.iter().filter(|(_, tile)| matches!(tile, Tile::Sums(_))).map(|(l, tile)| (*l, tile.clone())).collect();
            let one = Lanes { vectors: 1, tiles, ..lanes.clone() };
            self.blocks_of_lanes(l, &one, &totals, &shared, label, hi);
        }
        if self.streams {
            self.line("iv_streamed();");
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
    fn blocks_of_lanes(&mut self, l: &Loop, lanes: &Lanes, totals: &[Local], shared: &[Buffer], plain: Option<&str>, hi: &str) {
        let index = self.names.local(l.index).to_string();
        let width = lanes.width();
        let count = format!("({}) - ({})", self.e(&l.hi), self.e(&l.lo));
        let again = may_run_again(l, lanes, shared);
        self.masks += 1;
        let (k, n) = (self.masks, lanes.lanes);
        let fresh = again.then_some(k);
        let block = Block { lanes, index: l.index, count, mask: None, shared, plain: plain.map(str::to_string), live: None, fresh, totals };
        line!(self, "if ({hi} - {index} >= {width}) {{");
        self.depth += 1;
        for total in totals {
            for m in 0..lanes.vectors {
                line!(self, "{} {} = {{0}};", self.vector_type(lanes, *total), self.part(*total, m));
            }
        }
        if again {
            line!(self, "for (; {index} < {hi}; {index} += {width}) {{");
            line!(self, "    const int64_t done{k} = {index};");
            line!(self, "    {index} = iv_int_min({index}, {hi} - {width});");
        } else {
            line!(self, "for (; {index} + {width} <= {hi}; {index} += {width}) {{");
        }
        self.depth += 1;
        self.lane_numbers(lanes, l.index);
        if again && adds_up(&block, &l.body) {
            for m in 0..lanes.vectors {
                line!(self, "const iv_v{n}m fresh{k}v{m} = iv_as(iv_v{n}m, {} >= done{k});", self.part(l.index, m));
            }
        }
        self.lane_stmts(&block, &l.body);
        self.depth -= 1;
        self.line("}");
        for total in totals {
            let (name, sum) = (self.names.local(*total).to_string(), self.sum_of(lanes, *total));
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
        let block = Block {
            lanes,
            index: l.index,
            count: String::new(),
            mask: Some(k),
            shared: &[],
            plain: None,
            live: Some(format!("live{k}")),
            fresh: None,
            totals,
        };
        for total in totals {
            line!(self, "{} {} = {{0}};", self.vector_type(lanes, *total), self.part(*total, 0));
        }
        let n = lanes.lanes;
        line!(self, "for (int64_t {index} = {lo}; {index} < {hi}; {index} += {n}) {{");
        self.depth += 1;
        line!(self, "const int64_t live{k} = iv_int_min({n}, {hi} - {index});");
        line!(self, "const iv_v{n}l {} = {index} + iv_lanes_{n}l;", self.part(l.index, 0));
        line!(self, "const iv_v{n}m mask{k}v0 = iv_first_{n}m(live{k});");
        self.lane_stmts(&block, &l.body);
        self.depth -= 1;
        self.line("}");
        for total in totals {
            line!(self, "{} += {}({});", self.names.local(*total), self.sum_of(lanes, *total), self.part(*total, 0));
        }
    }

    /// The index in all lanes of a block.
    fn lane_numbers(&mut self, lanes: &Lanes, index: Local) {
        let n = lanes.lanes;
        for m in 0..lanes.vectors {
            line!(self, "const iv_v{n}l {} = {} + {} + iv_lanes_{n}l;", self.part(index, m), self.names.local(index), m * n);
        }
    }

    pub(super) fn part(&self, l: Local, m: usize) -> String {
        format!("{}v{m}", self.names.local(l))
    }
    fn vector_type(&self, lanes: &Lanes, l: Local) -> String {
        format!("iv_v{}", Self::suffix(lanes, self.names.kernel.local(l).scalar))
    }
    fn sum_of(&self, lanes: &Lanes, l: Local) -> String {
        format!("iv_sum_{}", Self::suffix(lanes, self.names.kernel.local(l).scalar))
    }

    fn lane_block(&mut self, block: &Block, stmts: &[Stmt]) {
        self.depth += 1;
        self.lane_stmts(block, stmts);
        self.depth -= 1;
    }

    pub(super) fn lane_stmts(&mut self, block: &Block, stmts: &[Stmt]) {
        let mut rest = stmts;
        while let [first, ..] = rest {
            let written = self.rows_written(block, rest);
            if written == 0 {
                self.lane_stmt(block, first);
            }
            rest = &rest[written.max(1)..];
        }
    }

    fn lane_stmt(&mut self, block: &Block, s: &Stmt) {
        let (vectors, n) = (block.lanes.vectors, block.lanes.lanes);
        match s {
            Stmt::Let(l, _) | Stmt::Var(l, _) if !block.lanes.varying.contains(l) => self.stmt(s),
            Stmt::Let(l, e) => {
                for m in 0..vectors {
                    line!(self, "const {} {} = {};", self.vector_type(block.lanes, *l), self.part(*l, m), self.vector(block, e, m));
                }
            }
            Stmt::Var(l, e) => {
                for m in 0..vectors {
                    line!(self, "{} {} = {};", self.vector_type(block.lanes, *l), self.part(*l, m), self.vector(block, e, m));
                }
            }
            Stmt::Set(Target::Local(l), e) | Stmt::Add(Target::Local(l), e) => {
                if !block.lanes.varying.contains(l) {
                    return self.stmt(s);
                }
                let suffix = Self::suffix(block.lanes, self.names.kernel.local(*l).scalar);
                for m in 0..vectors {
                    let (name, value) = (self.part(*l, m), self.vector(block, e, m));
                    // Lanes beyond the end matter only where they are added up.
                    let mask = match s {
                        Stmt::Add(..) if block.totals.contains(l) => self.effective(block, m),
                        _ => self.mask(block, m).filter(|_| block.live.is_none() || matches!(s, Stmt::Add(..))),
                    };
                    match (s, mask) {
                        (Stmt::Add(..), None) => line!(self, "{name} += {value};"),
                        (Stmt::Add(..), Some(mask)) => line!(self, "{name} += iv_select_{suffix}({mask}, {value}, (iv_v{suffix}){{0}});"),
                        (_, None) => line!(self, "{name} = {value};"),
                        (_, Some(mask)) => line!(self, "{name} = iv_select_{suffix}({mask}, {value}, {name});"),
                    }
                }
            }
            Stmt::Set(Target::Place(b, offset), e) => self.lane_write(block, *b, offset, e, false),
            Stmt::Add(Target::Place(b, offset), e) => self.lane_write(block, *b, offset, e, true),
            // What is the same in all lanes is as anywhere else.
            Stmt::Loop(_) if is_uniform(block, s) => self.stmt(s),
            Stmt::Loop(l) if block.lanes.varies(&l.lo) || block.lanes.varies(&l.hi) => self.lane_ragged(block, l),
            Stmt::Loop(l) => {
                // Under a mask each step is asked.
                match block.lanes.tiles.get(&l.index).filter(|_| block.mask.is_none()) {
                    Some(Tile::Sums(ends)) => return self.lane_sums(block, l, *ends),
                    Some(Tile::Rows(ends)) => return self.lane_rows(block, l, *ends),
                    Some(Tile::Outer(outer)) => return self.lane_outer(block, l, outer),
                    None => {}
                }
                let index = self.names.local(l.index).to_string();
                let mut hi = self.e(&l.hi);
                if !l.hi.is_atom() {
                    line!(self, "const int64_t {index}_end = {hi};");
                    hi = format!("{index}_end");
                }
                let is_short = matches!((l.lo.as_int(), l.hi.as_int()), (Some(lo), Some(hi)) if hi - lo <= SHORT);
                if is_short && l.body.iter().all(|s| s.blocks().is_empty()) {
                    self.line("IV_EACH");
                }
                line!(self, "for (int64_t {index} = {}; {index} < {hi}; {index}++) {{", self.e(&l.lo));
                for (b, elements) in block.lanes.ahead.get(&l.index).into_iter().flatten() {
                    let (name, scalar) = (self.names.buffer(*b).to_string(), type_name(self.names.kernel.buffer(*b).scalar));
                    let (row, count) = (self.names.at_level(elements, UNARY), self.e(elements));
                    let fetch = format!("iv_fetch({name} + ({index} + 1) * {row}, sizeof({scalar}) * ({count}));");
                    line!(self, "    if ({index} + 1 < {hi}) {fetch}");
                }
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
                // Both masks come first: a branch may change what the condition reads.
                let branches: Vec<(&Vec<Stmt>, bool)> = [(yes, true), (no, false)].into_iter().filter(|(b, _)| !b.is_empty()).collect();
                self.line("{");
                self.depth += 1;
                let first = self.masks + 1;
                self.masks += branches.len();
                for (k, (_, taken)) in (first..).zip(&branches) {
                    for m in 0..vectors {
                        let mut condition = self.vector(block, p, m);
                        if !taken {
                            condition = format!("~{condition}");
                        }
                        if let Some(mask) = self.mask(block, m) {
                            condition = format!("{condition} & {mask}");
                        }
                        line!(self, "const iv_v{n}m mask{k}v{m} = {condition};");
                    }
                }
                for (k, (branch, _)) in (first..).zip(branches) {
                    let any: Vec<String> = (0..vectors).map(|m| format!("mask{k}v{m}")).collect();
                    line!(self, "if (iv_any_{n}({})) {{", any.join(" | "));
                    let inner = Block { mask: Some(k), plain: block.plain.clone(), count: block.count.clone(), live: None, ..*block };
                    self.lane_block(&inner, branch);
                    self.line("}");
                }
                self.depth -= 1;
                self.line("}");
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
        let (vectors, n) = (block.lanes.vectors, block.lanes.lanes);
        self.masks += 1;
        let k = self.masks;
        let index = self.names.local(l.index).to_string();
        self.line("{");
        self.depth += 1;
        for m in 0..vectors {
            let (mut lo, mut hi) = (self.vector(block, &l.lo, m), self.vector(block, &l.hi, m));
            // Lanes that take no part have no steps.
            if let Some(mask) = self.mask(block, m) {
                lo = format!("iv_select_{n}l({mask}, {lo}, iv_all_{n}l(INT64_MAX))");
                hi = format!("iv_select_{n}l({mask}, {hi}, iv_all_{n}l(INT64_MIN))");
            }
            line!(self, "const iv_v{n}l lo{k}v{m} = {lo}, hi{k}v{m} = {hi};");
        }
        let over = |which: &str, choice: &str, bound: &str| {
            let first = format!("{which}_{n}({bound}{k}v0)");
            (1..vectors).fold(first, |so_far, m| format!("{choice}({so_far}, {which}_{n}({bound}{k}v{m}))"))
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
                let inside = format!("({index} >= lo{k}v{m}) & ({index} < hi{k}v{m})");
                line!(me, "const iv_v{n}m mask{own}v{m} = iv_as(iv_v{n}m, {inside});");
            }
            let any: Vec<String> = (0..vectors).map(|m| format!("mask{own}v{m}")).collect();
            line!(me, "if (!iv_any_{n}({})) continue;", any.join(" | "));
            let inner = Block { mask: Some(own), plain: block.plain.clone(), count: block.count.clone(), live: None, ..*block };
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
    fn lane_sums(&mut self, block: &Block, l: &Loop, ends: Ends) {
        let [Stmt::Add(Target::Place(b, offset), e)] = l.body.as_slice() else { return self.lane_sums_beside(block, l, ends) };
        let (index, name) = (self.names.local(l.index).to_string(), self.names.buffer(*b).to_string());
        let suffix = self.suffix_of(block.lanes, *b);
        let (sum, offset, ty) = (self.summed(block, e, &suffix), self.e(offset), type_name(self.names.kernel.buffer(*b).scalar));
        let (lo, hi) = (self.e(&l.lo), self.e(&l.hi));
        self.line("{");
        self.depth += 1;
        if !e.mentions(l.index) {
            line!(self, "const {ty} sum = iv_sum_{suffix}({sum});");
            line!(self, "for (int64_t {index} = {lo}; {index} < {hi}; {index}++) {name}[{offset}] += sum;");
        } else {
            line!(self, "int64_t {index}_at = {lo};");
            line!(self, "const int64_t {index}_end = {hi};");
            line!(self, "for (; {index}_at + 4 <= {index}_end; {index}_at += 4) {{");
            self.depth += 1;
            line!(self, "{ty} *p0, *p1, *p2, *p3;");
            line!(self, "iv_v{suffix} s0, s1, s2, s3;");
            for k in 0..4 {
                line!(self, "{{ const int64_t {index} = {index}_at + {k}; p{k} = {name} + {offset}; s{k} = {sum}; }}");
            }
            line!(self, "iv_add_sums_{suffix}(p0, p1, p2, p3, s0, s1, s2, s3);");
            self.depth -= 1;
            self.line("}");
            if ends == Ends::Any {
                let add = format!("{name}[{offset}] += iv_sum_{suffix}({sum});");
                line!(self, "for (int64_t {index} = {index}_at; {index} < {index}_end; {index}++) {add}");
            }
        }
        self.depth -= 1;
        self.line("}");
    }

    /// Sums of several places, and what they need: four steps one after the other, whose sums are then made together.
    fn lane_sums_beside(&mut self, block: &Block, l: &Loop, ends: Ends) {
        let index = self.names.local(l.index).to_string();
        let (lo, hi) = (self.e(&l.lo), self.e(&l.hi));
        let is_place = |s: &&Stmt| matches!(s, Stmt::Add(Target::Place(..), _));
        let added: Vec<(Buffer, &Expr, &Expr)> = l
            .body
            .iter()
            .filter_map(|s| match s {
                Stmt::Add(Target::Place(b, offset), e) => Some((*b, offset, e)),
                _ => None,
            })
            .collect();
        self.line("{");
        self.depth += 1;
        line!(self, "int64_t {index}_at = {lo};");
        line!(self, "const int64_t {index}_end = {hi};");
        line!(self, "for (; {index}_at + 4 <= {index}_end; {index}_at += 4) {{");
        self.depth += 1;
        for (k, (b, _, _)) in added.iter().enumerate() {
            line!(self, "{} *p{k}[4];", type_name(self.names.kernel.buffer(*b).scalar));
            line!(self, "iv_v{} s{k}[4];", self.suffix_of(block.lanes, *b));
        }
        line!(self, "IV_EACH for (int64_t step = 0; step < 4; step++) {{");
        self.depth += 1;
        line!(self, "const int64_t {index} = {index}_at + step;");
        l.body.iter().filter(|s| !is_place(s)).for_each(|s| self.lane_stmt(block, s));
        for (k, (b, offset, e)) in added.iter().enumerate() {
            let (name, suffix) = (self.names.buffer(*b).to_string(), self.suffix_of(block.lanes, *b));
            line!(self, "p{k}[step] = {name} + {};", self.e(offset));
            line!(self, "s{k}[step] = {};", self.summed(block, e, &suffix));
        }
        self.depth -= 1;
        self.line("}");
        for (k, (b, _, _)) in added.iter().enumerate() {
            let four = |name: &str| (0..4).map(|step| format!("{name}{k}[{step}]")).collect::<Vec<_>>().join(", ");
            line!(self, "iv_add_sums_{}({}, {});", self.suffix_of(block.lanes, *b), four("p"), four("s"));
        }
        self.depth -= 1;
        self.line("}");
        if ends == Ends::Any {
            line!(self, "for (int64_t {index} = {index}_at; {index} < {index}_end; {index}++) {{");
            self.lane_block(block, &l.body);
            self.line("}");
        }
        self.depth -= 1;
        self.line("}");
    }

    /// The sum of a block's vectors, as far as they are to be added up.
    fn summed(&self, block: &Block, e: &Expr, suffix: &str) -> String {
        let parts: Vec<String> = (0..block.lanes.vectors).map(|m| self.summed_part(block, e, m, suffix)).collect();
        parts.join(" + ")
    }

    fn summed_part(&self, block: &Block, e: &Expr, m: usize, suffix: &str) -> String {
        let value = self.vector(block, e, m);
        match self.effective(block, m) {
            None => value,
            Some(mask) => format!("iv_select_{suffix}({mask}, {value}, (iv_v{suffix}){{0}})"),
        }
    }

    /// The mask of what is added up: of the lanes that take part, those that have not run before.
    fn effective(&self, block: &Block, m: usize) -> Option<String> {
        let fresh = block.fresh.map(|k| format!("fresh{k}v{m}"));
        match (self.mask(block, m), fresh) {
            (Some(mask), Some(fresh)) => Some(format!("({mask} & {fresh})")),
            (mask, fresh) => mask.or(fresh),
        }
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
            let suffix = self.suffix_of(block.lanes, b);
            let sum = self.summed(block, e, &suffix);
            return line!(self, "{}[{}] += iv_sum_{suffix}({sum});", self.names.buffer(b), self.e(offset));
        }
        let suffix = self.suffix_of(block.lanes, b);
        let name = self.names.buffer(b).to_string();
        let (width, n) = (lanes.width(), lanes.lanes);
        for m in 0..lanes.vectors {
            let value = self.vector(block, e, m);
            let mask = self.mask(block, m);
            if own && !lanes.varies(offset) {
                let place = self.own_place(block, b, offset, m);
                let value = if add { format!("{place} + {value}") } else { value };
                let value = match mask {
                    None => value,
                    Some(mask) => format!("iv_select_{suffix}({mask}, {value}, {place})"),
                };
                if self.names.kernel.buffer(b).scalar == Scalar::Bool {
                    line!(self, "iv_put_near_{suffix}({}, {value});", self.own_address(block, b, offset, m));
                } else {
                    line!(self, "{place} = {value};");
                }
                continue;
            }
            let verb = if add { "add" } else { "put" };
            let stride = lanes.stride(offset, block.index).filter(|_| !own);
            if let (Some(live), Some(1)) = (&block.live, stride.as_ref().and_then(Expr::as_int)) {
                let first = format!("{name} + ({})", self.e(offset));
                let value = if add { format!("iv_near_part_{suffix}({first}, {live}) + {value}") } else { value };
                line!(self, "iv_put_near_part_{suffix}({first}, {value}, {live});");
                continue;
            }
            if let Some(stride) = stride.filter(|_| mask.is_none()) {
                let stride_text = self.names.at_level(&stride, UNARY);
                let first = format!("{name} + ({}) + {} * {stride_text}", self.e(offset), m * n);
                match stride.as_int() {
                    Some(1) if add => line!(self, "iv_put_near_{suffix}({first}, iv_near_{suffix}({first}) + {value});"),
                    Some(1) => line!(self, "iv_put_near_{suffix}({first}, {value});"),
                    _ => line!(self, "iv_{verb}_far_{suffix}({first}, {stride_text}, {value});"),
                }
                continue;
            }
            let mut at = self.vector(block, offset, m);
            if own {
                at = format!("{at} * {width} + {} + iv_lanes_{n}l", m * n);
            }
            let mask = mask.unwrap_or(format!("iv_all_{n}m(1)"));
            line!(self, "iv_{verb}_some_{suffix}({name}, {at}, {value}, {mask});");
        }
    }

    fn lane_check(&mut self, block: &Block, check: &Check, s: &Stmt) {
        let mut varies = false;
        s.for_each_expr(&mut |e| varies |= block.lanes.varies(e));
        let (vectors, n) = (block.lanes.vectors, block.lanes.lanes);
        let site = |site: Option<usize>| site.map_or(-1, |site| site as i64);
        // Which lanes fail; what is said in the end is up to the plain loop.
        let (bad, code, site): (Vec<String>, i32, i64) = if varies {
            let at = |e: &Expr, m: usize| self.vector(block, e, m);
            let mask = |comparison| Self::as_mask(block, Scalar::I64, comparison);
            let each = |f: &dyn Fn(usize) -> String| (0..vectors).map(f).collect::<Vec<String>>();
            match check {
                Check::Read { index, size, site } | Check::Key { index, size, site } => {
                    let bad = each(&|m| mask(format!("(({0} < 0) | ({0} >= {1}))", at(index, m), at(size, m))));
                    (bad, Fault::INDEX_OUT_OF_RANGE, *site as i64)
                }
                Check::NotEmpty { lo, hi, site: s, .. } => {
                    (each(&|m| mask(format!("({} >= {})", at(lo, m), at(hi, m)))), Fault::NOTHING_TO_CHOOSE, site(*s))
                }
                Check::Defined { .. } => {
                    let (_, code, _, _, number) = self.check_parts(check);
                    (each(&|m| self.undefined(block, check, m)), code, number)
                }
            }
        } else {
            let (bad, code, _, _, site) = self.check_parts(check);
            (vec![format!("iv_all_{n}m({bad})"); vectors], code, site)
        };
        let masked: Vec<String> = bad
            .iter()
            .enumerate()
            .map(|(m, bad)| match self.mask(block, m) {
                None => bad.clone(),
                Some(mask) => format!("({bad} & {mask})"),
            })
            .collect();
        let (code, to) = match &block.plain {
            Some(plain) => (code, plain),
            None => (FAILS_IN_LANES, &self.end),
        };
        let failing = masked.join(" | ");
        line!(self, "if (IV_UNLIKELY(iv_any_{n}({failing}))) {{ status = iv_fail(context, {code}, 0, 0, {site}); goto {to}; }}");
    }
}

/// Whether iterations may run a second time: what they write outside they do not read, nor add to but for sums of all lanes.
fn may_run_again(l: &Loop, lanes: &Lanes, shared: &[Buffer]) -> bool {
    fn visit(block: &[Stmt], f: &mut impl FnMut(&Stmt)) {
        for s in block {
            f(s);
            s.blocks().into_iter().for_each(|b| visit(b, f));
        }
    }
    let outside = |b: &Buffer| !lanes.own.contains(b) && !shared.contains(b);
    let (mut written, mut read, mut adds) = (vec![], vec![], false);
    visit(&l.body, &mut |s| {
        match s {
            Stmt::Set(Target::Place(b, _), _) if outside(b) => written.push(*b),
            Stmt::Add(Target::Place(b, offset), _) if outside(b) => adds |= lanes.varies(offset),
            _ => {}
        }
        s.for_each_expr(&mut |e| {
            e.any(&mut |e| {
                if let Expr::Load(b, _) = e {
                    read.push(*b);
                }
                false
            });
        });
    });
    !adds && !written.iter().any(|b| read.contains(b))
}

/// Whether something of all lanes is added up.
fn adds_up(block: &Block, stmts: &[Stmt]) -> bool {
    stmts.iter().any(|s| {
        let own = match s {
            Stmt::Add(Target::Local(l), _) => block.totals.contains(l),
            Stmt::Add(Target::Place(b, _), _) => !block.lanes.own.contains(b) && !block.shared.contains(b),
            _ => false,
        };
        own || s.blocks().iter().any(|b| adds_up(block, b))
    })
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
