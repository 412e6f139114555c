//! Parallel loops in C: a loop over chunks with OpenMP, and in it the iterations of a chunk.
//!
//! Inside, totals, private buffers, the context and the status are the chunk's own and hide those outside, so that
//! statements are spelled as anywhere else. An error ends its chunk; that of the first such chunk is the loop's.

use super::*;

impl Emitter<'_> {
    pub(super) fn parallel(&mut self, l: &Loop, p: &Parallel) {
        self.regions += 1;
        let n = self.regions;
        let totals = match &l.order {
            Order::Reduction(locals) | Order::Accumulation(locals, _) => locals.clone(),
            Order::Sequential | Order::Independent => vec![],
        };
        let fails = l.body.iter().any(Stmt::can_fail);
        let calls = fails || l.body.iter().any(has_gemm);
        let mut chunks = self.chunks(&p.chunks);
        // Sums are the same for any number of threads; where there are none, there need not be more chunks than threads can share.
        if totals.is_empty() && p.private.is_empty() {
            chunks = format!("iv_few(context, {chunks})");
        }
        line!(self, "const int64_t chunks{n} = {chunks};");
        if p.again {
            line!(self, "if (chunks{n} == 1) {{");
            self.depth += 1;
            let (lo, hi) = (self.e(&l.lo), self.e(&l.hi));
            line!(self, "const int64_t start{n} = {lo}, end{n} = {hi};");
            self.iterations(l, &p.within, &format!("start{n}"), &format!("end{n}"));
            self.depth -= 1;
            self.line("} else {");
            self.depth += 1;
        }
        for (total, _) in &totals {
            let name = self.names.local(*total);
            line!(self, "{} {name}_parts{n}[{}];", type_name(self.names.kernel.local(*total).scalar), p.chunks.most);
        }
        for private in &p.private {
            let (name, ty) = (self.names.buffer(private.buffer), type_name(self.names.kernel.buffer(private.buffer).scalar));
            line!(self, "{ty} *const {name}_shared{n} = {name};");
        }
        if calls {
            line!(self, "const iv_context *const context_{n} = context;");
        }
        if fails {
            line!(self, "iv_failure failure{n} = {{0}};");
        }
        if p.threads {
            let threads = format!("iv_threads(context, chunks{n})");
            line!(self, "iv_turns turns{n};");
            line!(self, "iv_share_out(&turns{n}, chunks{n}, {threads});");
            line!(self, "#pragma omp parallel num_threads({threads}) if ({threads} > 1)");
            line!(self, "for (int64_t chunk{n} = iv_take(&turns{n}); chunk{n} < chunks{n}; chunk{n} = iv_take(&turns{n})) {{");
        } else {
            line!(self, "for (int64_t chunk{n} = 0; chunk{n} < chunks{n}; chunk{n}++) {{");
        }
        self.depth += 1;
        let marked = self.marked;
        if self.style.profile {
            self.mark(marked);
        }
        self.chunk(l, p, &totals, n, fails, calls);
        if self.style.profile {
            self.mark(marked);
        }
        self.depth -= 1;
        self.line("}");
        if fails {
            line!(
                self,
                "if (failure{n}.code) {{ status = iv_fail(context, failure{n}.code, failure{n}.a, failure{n}.b, failure{n}.site); goto {}; }}",
                self.end
            );
        }
        self.combine(p, &totals, n);
        if p.again {
            self.depth -= 1;
            self.line("}");
        }
    }

    fn chunk(&mut self, l: &Loop, p: &Parallel, totals: &[(Local, Combine)], n: usize, fails: bool, calls: bool) {
        let kernel = self.names.kernel;
        if self.style.flush {
            line!(self, "const iv_float_mode mode{n} = iv_flush();");
        }
        if calls {
            line!(self, "iv_context own = *context_{n}, *context = &own;");
            self.line("own.threads = 1;");
        }
        if fails {
            self.line("int32_t status = 0;");
        }
        for (total, combine) in totals {
            let scalar = kernel.local(*total).scalar;
            line!(self, "{} {} = {};", type_name(scalar), self.names.local(*total), self.e(&Expr::Lit(neutral(*combine, scalar))));
        }
        for private in &p.private {
            let (name, parts) = (self.names.buffer(private.buffer).to_string(), self.names.buffer(private.parts).to_string());
            let (ty, count) = (type_name(kernel.buffer(private.buffer).scalar), self.names.at_level(&private.count, UNARY));
            line!(self, "{ty} *{name} = chunk{n} == 0 ? {name}_shared{n} : {parts} + (chunk{n} - 1) * {count};");
            line!(self, "if (chunk{n} > 0) memset({name}, 0, sizeof({ty}) * {count});");
        }
        let bound = |chunk: &str| {
            let (lo, hi) = (self.e(&l.lo), self.e(&l.hi));
            match &p.within {
                Schedule::Lanes(lanes) if !lanes.partial => format!("iv_block_start({lo}, {hi}, chunks{n}, {chunk}, {})", lanes.width()),
                _ => format!("iv_chunk_start({lo}, {hi}, chunks{n}, {chunk})"),
            }
        };
        let (start, end) = (bound(&format!("chunk{n}")), bound(&format!("chunk{n} + 1")));
        line!(self, "const int64_t start{n} = {start}, end{n} = {end};");
        let outer = std::mem::replace(&mut self.end, format!("iv_chunk_{n}"));
        self.iterations(l, &p.within, &format!("start{n}"), &format!("end{n}"));
        self.end = outer;
        for (total, _) in totals {
            let name = self.names.local(*total);
            line!(self, "{name}_parts{n}[chunk{n}] = {name};");
        }
        if fails {
            self.depth -= 1;
            line!(self, "iv_chunk_{n}:");
            self.depth += 1;
            self.line("if (status) {");
            if p.threads {
                self.line("    #pragma omp critical(iverson)");
            }
            line!(self, "    iv_keep(&failure{n}, chunk{n}, context);");
            self.line("}");
        }
        if self.style.flush {
            line!(self, "iv_restore(mode{n});");
        }
    }

    /// What the chunks have for themselves, put together in their order.
    fn combine(&mut self, p: &Parallel, totals: &[(Local, Combine)], n: usize) {
        for (total, combine) in totals {
            let name = self.names.local(*total).to_string();
            let part = format!("{name}_parts{n}[chunk]");
            let scalar = self.names.kernel.local(*total).scalar;
            let apply = |op: Op| op.c_template(&[scalar, scalar]).replace("{0}", &name).replace("{1}", &part);
            let combined = apply(match combine {
                Combine::Add => Op::Add,
                Combine::Mul => Op::Mul,
                Combine::Max => Op::Max,
                Combine::Min => Op::Min,
                Combine::And => Op::And,
                Combine::Or => Op::Or,
            });
            line!(self, "for (int64_t chunk = 0; chunk < chunks{n}; chunk++) {name} = {combined};");
        }
        for private in &p.private {
            let (name, parts) = (self.names.buffer(private.buffer).to_string(), self.names.buffer(private.parts).to_string());
            let count = self.e(&private.count);
            let letter = letter(self.names.kernel.buffer(private.buffer).scalar);
            line!(self, "iv_add_parts_{letter}({name}, {parts}, {count}, chunks{n});");
        }
    }

    pub(super) fn chunks(&self, chunks: &Chunks) -> String {
        let Chunks { lo, hi, cost, private, most, planned: _ } = chunks;
        format!("iv_chunks({}, {}, {}, {}, {most})", self.e(lo), self.e(hi), self.e(cost), self.e(private))
    }
}

fn neutral(combine: Combine, scalar: Scalar) -> Lit {
    match combine {
        Combine::Add => Lit::zero(scalar),
        Combine::Mul => Lit::one(scalar),
        Combine::Max => Lit::lowest(scalar),
        Combine::Min => Lit::highest(scalar),
        Combine::And => Lit::Bool(true),
        Combine::Or => Lit::Bool(false),
    }
}

fn has_gemm(s: &Stmt) -> bool {
    matches!(s, Stmt::Gemm(_)) || s.blocks().iter().any(|b| b.iter().any(has_gemm))
}
