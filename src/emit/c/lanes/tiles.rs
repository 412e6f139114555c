//! Loops that run several steps at once (`loops/tiles.rs`), in registers.

use super::*;
use crate::loops::tiles::{Ends, LEAST_PLACES, Outer, ROWS, unmarked};

/// The totals of so many rows, each of some vectors, need the registers of wide vectors.
const WIDE: &str = "#ifdef __AVX512F__";
/// Steps of the other index at once: as many as of the one, so that either may be either.
const COLUMNS: usize = LANES;

impl Emitter<'_> {
    /// Four rows at once, and those that are left one by one.
    pub(super) fn lane_rows(&mut self, block: &Block, l: &Loop, ends: Ends) {
        let [Stmt::Var(total_local, start), Stmt::Loop(inner_loop), ref rest @ ..] = unmarked(l)[..] else { panic!("emit: rows") };
        let [Stmt::Add(_, term)] = inner_loop.body.as_slice() else { panic!("emit: a sum for each row") };
        let vectors = block.lanes.vectors;
        let (a, b) = (self.names.local(l.index).to_string(), self.names.local(inner_loop.index).to_string());
        let (lo, hi) = (self.e(&inner_loop.lo), self.e(&inner_loop.hi));
        let total = |r: usize, m: usize| format!("row{r}v{m}");
        let row = |r: usize| format!("const int64_t {a} = {a}_at + {r};");
        self.line("{");
        self.depth += 1;
        line!(self, "int64_t {a}_at = {};", self.e(&l.lo));
        line!(self, "const int64_t {a}_end = {};", self.e(&l.hi));
        self.out += &format!("{WIDE}\n");
        line!(self, "for (; {a}_at + {ROWS} <= {a}_end; {a}_at += {ROWS}) {{");
        self.depth += 1;
        // Steps that not all rows make are made behind, row by row.
        let is_ragged = |end: &Expr| end.mentions(l.index);
        let (ragged_start, ragged_end) = (is_ragged(&inner_loop.lo), is_ragged(&inner_loop.hi));
        if ragged_start || ragged_end {
            line!(self, "int64_t {b}_from = INT64_MIN, {b}_to = INT64_MAX;");
            for r in 0..ROWS {
                line!(self, "{{ {} {b}_from = iv_int_max({b}_from, {lo}); {b}_to = iv_int_min({b}_to, {hi}); }}", row(r));
            }
            line!(self, "{b}_to = iv_int_max({b}_from, {b}_to);");
        } else {
            line!(self, "const int64_t {b}_from = {lo}, {b}_to = {hi};");
        }
        for r in 0..ROWS {
            let names: Vec<String> = (0..vectors).map(|m| total(r, m)).collect();
            line!(self, "iv_v8d {};", names.join(", "));
            let starts: Vec<String> = (0..vectors).map(|m| format!("{} = {};", total(r, m), self.vector(block, start, m))).collect();
            line!(self, "{{ {} {} }}", row(r), starts.join(" "));
        }
        let step = |me: &Self, r: usize| {
            let adds: Vec<String> = (0..vectors).map(|m| format!("{} += {};", total(r, m), me.vector(block, term, m))).collect();
            adds.join(" ")
        };
        line!(self, "for (int64_t {b} = {b}_from; {b} < {b}_to; {b}++) {{");
        self.depth += 1;
        for r in 0..ROWS {
            line!(self, "{{ {} {} }}", row(r), step(self, r));
        }
        self.depth -= 1;
        self.line("}");
        for r in 0..ROWS {
            self.line("{");
            self.depth += 1;
            self.line(&row(r));
            if ragged_start {
                line!(self, "for (int64_t {b} = {lo}; {b} < iv_int_min({b}_from, {hi}); {b}++) {{ {} }}", step(self, r));
            }
            // Where only starts differ, the steps in common may be none at all, from behind some rows' end.
            if ragged_start || ragged_end {
                line!(self, "for (int64_t {b} = iv_int_max({b}_to, {lo}); {b} < {hi}; {b}++) {{ {} }}", step(self, r));
            }
            for m in 0..vectors {
                line!(self, "iv_v8d {} = {};", self.part(*total_local, m), total(r, m));
            }
            rest.iter().for_each(|s| self.lane_stmt(block, s));
            self.depth -= 1;
            self.line("}");
        }
        self.depth -= 1;
        self.line("}");
        self.out += if ends == Ends::Even { "#else\n" } else { "#endif\n" };
        line!(self, "for (int64_t {a} = {a}_at; {a} < {a}_end; {a}++) {{");
        self.lane_block(block, &l.body);
        self.line("}");
        if ends == Ends::Even {
            self.out += "#endif\n";
        }
        self.depth -= 1;
        self.line("}");
    }
}

impl Emitter<'_> {
    /// Places in vectors of eight, for eight steps of the other index at once. Where not all of these places are added to, at the
    /// ends of rows, those are masked.
    pub(super) fn lane_outer(&mut self, block: &Block, l: &Loop, outer: &Outer) {
        let [Stmt::Loop(inner_loop)] = unmarked(l)[..] else { panic!("emit: an outer product") };
        let [Stmt::Add(Target::Place(buffer, offset), _)] = inner_loop.body.as_slice() else { panic!("emit: one addition") };
        let (vectors, width) = (block.lanes.vectors, block.lanes.width());
        let (u, o) = (self.names.local(outer.along).to_string(), self.names.local(outer.across).to_string());
        let (inner, outermost) = (self.names.local(inner_loop.index).to_string(), self.names.local(l.index).to_string());
        let (lo, hi) = (self.e(&inner_loop.lo), self.e(&inner_loop.hi));
        let (first, last) = (self.e(&l.lo), self.e(&l.hi));
        let is_there = |x: &str| if x == outermost { format!("{x} < {x}_last && {lo} < {hi}") } else { format!("{x} < {x}_last") };
        let place = format!("{} + {}", self.names.buffer(*buffer), self.e(offset));
        // Places stand side by side along the outer index: the inner one's bounds are another's for each.
        let turned = outer.along == l.index;
        self.line("{");
        self.depth += 1;
        line!(self, "const int64_t {outermost}_first = {first}, {outermost}_last = {last};");
        line!(self, "int64_t {inner}_first = INT64_MAX, {inner}_last = INT64_MIN;");
        line!(self, "for (int64_t {outermost} = {outermost}_first; {outermost} < {outermost}_last; {outermost}++) {{");
        // Bounds of rows that are empty may be anything.
        line!(self, "    if ({lo} >= {hi}) continue;");
        line!(self, "    {inner}_first = iv_int_min({inner}_first, {lo});");
        line!(self, "    {inner}_last = iv_int_max({inner}_last, {hi});");
        self.line("}");
        if !outer.is_long {
            line!(self, "if ({u}_last - {u}_first >= {LEAST_PLACES}) {{");
            self.depth += 1;
        }
        line!(self, "for (int64_t {u}_at = {u}_first; {u}_at < {u}_last; {u}_at += {LANES}) {{");
        self.depth += 1;
        if turned {
            // The bounds of eight rows; those of rows that are not there are empty.
            line!(self, "iv_v8l from = iv_all_8l(INT64_MAX), to = iv_all_8l(INT64_MIN);");
            line!(self, "IV_EACH for (int k = 0; k < {LANES}; k++) {{");
            line!(self, "    const int64_t {u} = {u}_at + k;");
            line!(self, "    if ({}) from[k] = {lo}, to[k] = {hi};", is_there(&u));
            self.line("}");
            line!(self, "const int64_t least_from = iv_least_8(from), most_from = iv_most_8(from);");
            line!(self, "const int64_t least_to = iv_least_8(to), most_to = iv_most_8(to);");
        }
        // Lanes behind the last place are zero.
        line!(self, "double rows[{LANES}][{width}] __attribute__((aligned(64)));");
        line!(self, "iv_v8d turned[{width}];");
        line!(self, "IV_ROLLED for (int64_t k = 0; k < {LANES}; k++) {{");
        line!(self, "    const int64_t {u} = {u}_at + k;");
        for m in 0..vectors {
            let value = self.summed_part(block, &outer.along_factor, m, "8d");
            line!(self, "    *(iv_v8d *)(rows[k] + {}) = {} ? (iv_v8d)({value}) : (iv_v8d){{0}};", m * LANES, is_there(&u));
        }
        self.line("}");
        line!(self, "IV_ROLLED for (int m = 0; m < {vectors}; m++) iv_turn_8d(rows[0] + m * {LANES}, {width}, turned + m * {LANES});");
        line!(self, "for (int64_t {o}_at = {o}_first; {o}_at < {o}_last; {o}_at += {COLUMNS}) {{");
        self.depth += 1;
        line!(self, "const int64_t {o}_end = iv_int_min({o}_at + {COLUMNS}, {o}_last);");
        if turned {
            line!(self, "const bool any = least_from < {o}_end && most_to > {o}_at;");
            line!(self, "const bool all = most_from <= {o}_at && least_to >= {o}_at + {COLUMNS};");
        } else {
            line!(self, "bool any = false, all = {u}_at + {LANES} <= {u}_last && {o}_at + {COLUMNS} <= {o}_last;");
            line!(self, "for (int64_t {o} = {o}_at; {o} < {o}_end; {o}++) {{");
            line!(self, "    any |= {lo} < iv_int_min({u}_at + {LANES}, {u}_last) && {hi} > {u}_at;");
            line!(self, "    all &= {lo} <= {u}_at && {hi} >= {u}_at + {LANES};");
            self.line("}");
        }
        self.line("if (!any) continue;");
        line!(self, "double other[{COLUMNS}][{width}] __attribute__((aligned(64)));");
        self.line("const double *others = other[0];");
        if let Some((b, at)) = &outer.across_rows {
            // Lanes that are left out are zero in both factors.
            let whole = block.fresh.map_or(String::new(), |k| format!(" && done{k} == {}", self.names.local(block.index)));
            let (b, at) = (self.names.buffer(*b), self.e(at));
            line!(
                self,
                "if ({o}_at + {COLUMNS} <= {o}_last{whole}) {{ const int64_t {o} = {o}_at; others = {b} + ({at}) * {width}; }} else"
            );
        }
        line!(self, "IV_ROLLED for (int64_t r = 0; r < {COLUMNS}; r++) {{");
        line!(self, "    const int64_t {o} = {o}_at + r;");
        for m in 0..vectors {
            let value = self.summed_part(block, &outer.across_factor, m, "8d");
            line!(self, "    *(iv_v8d *)(other[r] + {}) = {} ? (iv_v8d)({value}) : (iv_v8d){{0}};", m * LANES, is_there(&o));
        }
        self.line("}");
        line!(self, "iv_v8d sums[{COLUMNS}];");
        line!(self, "iv_products_8d(turned, others, {width}, sums);");
        self.line("if (all) {");
        line!(self, "    IV_ROLLED for (int64_t r = 0; r < {COLUMNS}; r++) {{");
        line!(self, "        const int64_t {u} = {u}_at, {o} = {o}_at + r;");
        line!(self, "        *(iv_v8d_at *)({place}) += sums[r];");
        self.line("    }");
        self.line("} else {");
        line!(self, "    for (int64_t {o} = {o}_at; {o} < {o}_end; {o}++) {{");
        if turned {
            line!(self, "        const iv_v8m there = (iv_v8m)((from <= {o}) & ({o} < to));");
        } else {
            line!(self, "        const iv_v8l along = {u}_at + iv_lanes_8l;");
            line!(self, "        const iv_v8m there = (iv_v8m)((({lo}) <= along) & (along < iv_int_min({hi}, {u}_last)));");
        }
        line!(self, "        const int64_t {u} = {u}_at;");
        line!(self, "        iv_add_where_8d({place}, sums[{o} - {o}_at], there);");
        self.line("    }");
        self.line("}");
        self.depth -= 1;
        self.line("}");
        self.depth -= 1;
        self.line("}");
        if !outer.is_long {
            self.depth -= 1;
            self.line("} else {");
            self.depth += 1;
            line!(self, "for (int64_t {outermost} = {outermost}_first; {outermost} < {outermost}_last; {outermost}++) {{");
            self.lane_block(block, &l.body);
            self.line("}");
            self.depth -= 1;
            self.line("}");
        }
        self.depth -= 1;
        self.line("}");
    }
}
