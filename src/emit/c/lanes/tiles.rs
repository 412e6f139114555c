//! Register tiles of loops in lanes: several steps at once, so that what they all read is read once.
//!
//! * Rows: `for a { total = 0; for b { total += f(a, b) }; … }` has four steps of `a` in each of `b`, as far as all four have
//!   that step; the totals of all stay in registers.
//! * Outer products: `for a { for b { place(a, b) += sum over lanes of f(a) * g(b) } }`, where the places of successive `a`, or
//!   of successive `b`, stand side by side. Eight of these are a vector then, for which the lanes of the one factor are turned
//!   about, and no sum over the lanes of a vector is left to be made.

use super::*;

/// Steps at once, of rows.
const ROWS: usize = 4;
/// The totals of so many rows, each of some vectors, need the registers of wide vectors.
const WIDE: &str = "#ifdef __AVX512F__";
/// An outer product of fewer places in a row is not worth turning.
const LEAST_PLACES: i64 = 24;
/// Steps of the other index at once: as many, so that either index may be either.
const COLUMNS: usize = LANES;

/// A loop over rows.
pub(super) struct Rows<'a> {
    total: Local,
    start: &'a Expr,
    inner: &'a Loop,
    term: &'a Expr,
    rest: Vec<&'a Stmt>,
}

impl<'a> Rows<'a> {
    pub(super) fn of(block: &Block, kernel: &Kernel, l: &'a Loop) -> Option<Rows<'a>> {
        let [Stmt::Var(total, start), Stmt::Loop(inner), ref rest @ ..] = unmarked(l)[..] else { return None };
        let [Stmt::Add(Target::Local(added), term)] = inner.body.as_slice() else { return None };
        let lanes = block.lanes;
        let wide = added == total && lanes.varying.contains(total) && kernel.local(*total).scalar == Scalar::F64;
        let bounds_are_same = !lanes.varies(&inner.lo) && !lanes.varies(&inner.hi);
        let rest_is_short = rest.len() <= ROWS && rest.iter().all(|s| s.blocks().is_empty());
        let reads_shared = term.any(&mut |e| matches!(e, Expr::Load(..)) && lanes.varies(e) && !e.mentions(l.index));
        let fits = l.order == Order::Independent
            && block.mask.is_none()
            && lanes.vectors > 1
            && wide
            && bounds_are_same
            && rest_is_short
            && reads_shared
            && is_long(l, ROWS as i64)
            && is_long(inner, 2 * ROWS as i64)
            && is_arithmetic(term);
        fits.then(|| Rows { total: *total, start, inner, term, rest: rest.to_vec() })
    }
}

/// The body of a loop without the marks of a profile, which belong to the lines of its statements.
fn unmarked(l: &Loop) -> Vec<&Stmt> {
    l.body.iter().filter(|s| !matches!(s, Stmt::Mark(_))).collect()
}

fn is_long(l: &Loop, least: i64) -> bool {
    !matches!((l.lo.as_int(), l.hi.as_int()), (Some(lo), Some(hi)) if hi - lo < least)
}

/// Whether it is sums and products of what is read.
fn is_arithmetic(e: &Expr) -> bool {
    match e {
        Expr::Lit(_) | Expr::Local(_) | Expr::Load(..) => true,
        Expr::Op(op, args) => matches!(op, Op::Add | Op::Sub | Op::Mul | Op::Neg) && args.iter().all(is_arithmetic),
        Expr::Partial(..) | Expr::Select(..) => false,
    }
}

impl Emitter<'_> {
    /// Four rows at once, and those that are left one by one.
    pub(super) fn lane_rows(&mut self, block: &Block, l: &Loop, rows: &Rows) {
        let vectors = block.lanes.vectors;
        let (a, b) = (self.names.local(l.index).to_string(), self.names.local(rows.inner.index).to_string());
        let (lo, hi) = (self.e(&rows.inner.lo), self.e(&rows.inner.hi));
        let total = |r: usize, m: usize| format!("row{r}v{m}");
        let row = |r: usize| format!("const int64_t {a} = {a}_at + {r};");
        self.line("{");
        self.depth += 1;
        line!(self, "int64_t {a}_at = {};", self.e(&l.lo));
        line!(self, "const int64_t {a}_end = {};", self.e(&l.hi));
        self.out += &format!("{WIDE}\n");
        line!(self, "for (; {a}_at + {ROWS} <= {a}_end; {a}_at += {ROWS}) {{");
        self.depth += 1;
        line!(self, "int64_t {b}_from = INT64_MIN, {b}_to = INT64_MAX;");
        for r in 0..ROWS {
            line!(self, "{{ {} {b}_from = iv_int_max({b}_from, {lo}); {b}_to = iv_int_min({b}_to, {hi}); }}", row(r));
        }
        line!(self, "{b}_to = iv_int_max({b}_from, {b}_to);");
        for r in 0..ROWS {
            let names: Vec<String> = (0..vectors).map(|m| total(r, m)).collect();
            line!(self, "iv_v8d {};", names.join(", "));
            let starts: Vec<String> = (0..vectors).map(|m| format!("{} = {};", total(r, m), self.vector(block, rows.start, m))).collect();
            line!(self, "{{ {} {} }}", row(r), starts.join(" "));
        }
        let step = |me: &Self, r: usize| {
            let adds: Vec<String> = (0..vectors).map(|m| format!("{} += {};", total(r, m), me.vector(block, rows.term, m))).collect();
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
            if rows.inner.lo.mentions(l.index) {
                line!(self, "for (int64_t {b} = {lo}; {b} < iv_int_min({b}_from, {hi}); {b}++) {{ {} }}", step(self, r));
            }
            line!(self, "for (int64_t {b} = iv_int_max({b}_to, {lo}); {b} < {hi}; {b}++) {{ {} }}", step(self, r));
            for m in 0..vectors {
                line!(self, "iv_v8d {} = {};", self.part(rows.total, m), total(r, m));
            }
            rows.rest.iter().for_each(|s| self.lane_stmt(block, s));
            self.depth -= 1;
            self.line("}");
        }
        self.depth -= 1;
        self.line("}");
        self.out += "#endif\n";
        line!(self, "for (int64_t {a} = {a}_at; {a} < {a}_end; {a}++) {{");
        self.lane_block(block, &l.body);
        self.line("}");
        self.depth -= 1;
        self.line("}");
    }
}

/// Two loops that add products of a factor for each step of the one and a factor for each of the other, summed over the lanes.
pub(super) struct Outer<'a> {
    inner: &'a Loop,
    buffer: Buffer,
    offset: &'a Expr,
    /// The index along which places stand side by side, and the other.
    along: Local,
    across: Local,
    along_factor: Expr,
    across_factor: Expr,
    /// Where the other factor stands as it is needed: an array of the lanes, and the place in it.
    across_rows: Option<(Buffer, Expr)>,
    /// Whether there are known to be enough places in a row.
    is_long: bool,
}

impl<'a> Outer<'a> {
    pub(super) fn of(block: &Block, kernel: &Kernel, entry: &Entry, l: &'a Loop) -> Option<Outer<'a>> {
        let [Stmt::Loop(inner)] = unmarked(l)[..] else { return None };
        if !is_contraction(block, kernel, inner) || block.lanes.vectors == 1 || !is_long(l, LEAST_PLACES) || !is_long(inner, LEAST_PLACES) {
            return None;
        }
        let [Stmt::Add(Target::Place(buffer, offset), e)] = inner.body.as_slice() else { return None };
        let lanes = block.lanes;
        let wide = lanes.lanes == LANES && kernel.buffer(*buffer).scalar == Scalar::F64;
        if !wide || lanes.varies(&inner.lo) || lanes.varies(&inner.hi) {
            return None;
        }
        let stride = |e: &Expr, index: Local| {
            let only = Lanes { varying: [index].into_iter().collect(), own: Default::default(), ..lanes.clone() };
            only.stride(e, index)
        };
        let one_apart = |index: Local| stride(offset, index) == Some(Expr::int(1));
        let (along, across) = match (one_apart(inner.index), one_apart(l.index)) {
            (true, _) => (inner.index, l.index),
            (_, true) => (l.index, inner.index),
            (false, false) => return None,
        };
        let (mut along_factor, mut across_factor) = (vec![], vec![]);
        for factor in factors(e)? {
            // What is read between two places that are there is there.
            let even = |index: Local| !factor.any(&mut |e| matches!(e, Expr::Load(_, at) if stride(at, index).is_none()));
            if !even(along) || !even(across) {
                return None;
            }
            match (factor.mentions(along), factor.mentions(across)) {
                (true, true) => return None,
                (true, false) => along_factor.push(factor),
                (false, _) => across_factor.push(factor),
            }
        }
        let varies = |factors: &[Expr]| factors.iter().any(|e| lanes.varies(e));
        let product = |factors: Vec<Expr>| factors.into_iter().reduce(|a, b| Expr::Op(Op::Mul, vec![a, b]));
        if !varies(&along_factor) || !varies(&across_factor) {
            return None;
        }
        let (along_factor, across_factor) = (product(along_factor)?, product(across_factor)?);
        let across_rows = match &across_factor {
            Expr::Load(b, at) if lanes.own.contains(b) && !lanes.varies(at) && stride(at, across) == Some(Expr::int(1)) => {
                Some((*b, (**at).clone()))
            }
            _ => None,
        };
        // A row that depends on the number of rows is taken to be as long as there are.
        let places = entry.trip(if along == l.index { l } else { inner }).or(entry.trip(l));
        if places.is_some_and(|places| places < LEAST_PLACES) {
            return None;
        }
        let is_long = places.is_some();
        Some(Outer { inner, buffer: *buffer, offset, along, across, along_factor, across_factor, across_rows, is_long })
    }
}

/// The factors of a product of what is cheap; a sign is one.
fn factors(e: &Expr) -> Option<Vec<Expr>> {
    match e {
        Expr::Op(Op::Mul, args) => Some(args.iter().map(factors).collect::<Option<Vec<_>>>()?.concat()),
        Expr::Op(Op::Neg, args) => Some([vec![Expr::Lit(Lit::F64(-1.0))], factors(&args[0])?].concat()),
        Expr::Lit(_) | Expr::Local(_) | Expr::Load(..) => Some(vec![e.clone()]),
        Expr::Op(..) | Expr::Partial(..) | Expr::Select(..) => None,
    }
}

impl Emitter<'_> {
    /// Places in vectors of eight, for eight steps of the other index at once. Where not all of these places are added to, at the
    /// ends of rows, each is asked.
    pub(super) fn lane_outer(&mut self, block: &Block, l: &Loop, outer: &Outer) {
        let (vectors, width) = (block.lanes.vectors, block.lanes.width());
        let (u, o) = (self.names.local(outer.along).to_string(), self.names.local(outer.across).to_string());
        let (inner, outermost) = (self.names.local(outer.inner.index).to_string(), self.names.local(l.index).to_string());
        let (lo, hi) = (self.e(&outer.inner.lo), self.e(&outer.inner.hi));
        let (first, last) = (self.e(&l.lo), self.e(&l.hi));
        let is_there = |x: &str| if x == outermost { format!("{x} < {x}_last && {lo} < {hi}") } else { format!("{x} < {x}_last") };
        let place = format!("{} + {}", self.names.buffer(outer.buffer), self.e(outer.offset));
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
        line!(self, "bool any = false, all = {u}_at + {LANES} <= {u}_last && {o}_at + {COLUMNS} <= {o}_last;");
        line!(
            self,
            "for (int64_t {outermost} = {outermost}_at; {outermost} < iv_int_min({outermost}_at + {LANES}, {outermost}_last); {outermost}++) {{"
        );
        line!(self, "    any |= {lo} < iv_int_min({inner}_at + {LANES}, {inner}_last) && {hi} > {inner}_at;");
        line!(self, "    all &= {lo} <= {inner}_at && {hi} >= {inner}_at + {LANES};");
        self.line("}");
        self.line("if (!any) continue;");
        line!(self, "double other[{COLUMNS}][{width}] __attribute__((aligned(64)));");
        self.line("const double *others = other[0];");
        if let Some((b, at)) = &outer.across_rows {
            // Lanes that are left out are zero in both factors.
            let whole = block.fresh.map_or(String::new(), |k| format!(" && done{k} == {}", self.names.local(block.index)));
            let (b, at) = (self.names.buffer(*b), self.e(at));
            line!(self, "if (all{whole}) {{ const int64_t {o} = {o}_at; others = {b} + ({at}) * {width}; }} else");
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
        line!(self, "    for (int64_t {o} = {o}_at; {o} < iv_int_min({o}_at + {COLUMNS}, {o}_last); {o}++)");
        line!(self, "        for (int64_t {u} = {u}_at; {u} < iv_int_min({u}_at + {LANES}, {u}_last); {u}++)");
        line!(self, "            if ({lo} <= {inner} && {inner} < {hi}) *({place}) += sums[{o} - {o}_at][{u} - {u}_at];");
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
