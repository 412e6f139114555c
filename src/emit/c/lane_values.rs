//! Values in lanes: what an expression is in a vector, and where it is read (`lanes.rs`).

use super::lanes::Block;
use super::*;

impl Emitter<'_> {
    /// How the names of vectors and of what is done with them end.
    pub(super) fn suffix(lanes: &Lanes, scalar: Scalar) -> String {
        format!("{}{}", lanes.lanes, letter(scalar))
    }

    pub(super) fn suffix_of(&self, lanes: &Lanes, b: Buffer) -> String {
        Self::suffix(lanes, self.names.kernel.buffer(b).scalar)
    }

    pub(super) fn mask(&self, block: &Block, m: usize) -> Option<String> {
        block.mask.map(|k| format!("mask{k}v{m}"))
    }

    pub(super) fn own_address(&self, block: &Block, b: Buffer, offset: &Expr, m: usize) -> String {
        let offset = self.names.at_level(offset, UNARY);
        format!("{} + {offset} * {} + {}", self.names.buffer(b), block.lanes.width(), m * block.lanes.lanes)
    }

    /// The elements of all lanes, to be read, and if they are numbers also to be written.
    pub(super) fn own_place(&self, block: &Block, b: Buffer, offset: &Expr, m: usize) -> String {
        let (suffix, address) = (self.suffix_of(block.lanes, b), self.own_address(block, b, offset, m));
        match self.names.kernel.buffer(b).scalar {
            Scalar::Bool => format!("iv_near_{suffix}({address})"),
            _ => format!("*(iv_v{suffix}_at *)({address})"),
        }
    }

    /// A comparison of vectors is as wide as what is compared; a mask is as wide as the block has them.
    pub(super) fn as_mask(block: &Block, compared: Scalar, comparison: String) -> String {
        let n = block.lanes.lanes;
        let bytes = if n == LANES { 8 } else { 4 };
        if compared.bytes() == bytes { comparison } else { format!("iv_as(iv_v{n}m, {comparison})") }
    }

    /// The lanes in which an operation is not defined.
    pub(super) fn undefined(&self, block: &Block, check: &Check, m: usize) -> String {
        let Check::Defined { op, args, .. } = check else { panic!("emit: checks of operations") };
        let operand = args.last().expect("operations have operands");
        let (scalar, last) = (self.names.kernel.scalar_of(operand), self.vector(block, operand, m));
        let bad = match op {
            Op::Agreed => format!("({} != {last})", self.vector(block, &args[0], m)),
            Op::Bounded => format!("({} > {last})", self.vector(block, &args[0], m)),
            Op::Within => {
                let first = self.vector(block, &args[0], m);
                format!("(({first} < 0) | ({first} >= {last}))")
            }
            Op::Pow => format!("({last} < 0)"),
            Op::ToI64 | Op::ToI32 if scalar.is_float() => {
                // The float nearest to the number before the first that is in range may be the first itself.
                let (least, bound) = match (op, scalar) {
                    (Op::ToI64, _) => (">= -9223372036854775808.0", "9223372036854775808.0"),
                    (_, Scalar::F32) => (">= -2147483648.0", "2147483648.0"),
                    _ => ("> -2147483649.0", "2147483648.0"),
                };
                let f = if scalar == Scalar::F32 { "f" } else { "" };
                format!("~(({last} {least}{f}) & ({last} < {bound}{f}))")
            }
            Op::ToI32 => {
                let n = block.lanes.lanes;
                format!("({last} != iv_as(iv_v{n}l, iv_as(iv_v{n}i, {last})))")
            }
            _ => format!("({last} == 0)"),
        };
        Self::as_mask(block, scalar, bad)
    }

    /// The value in the lanes of a vector.
    pub(super) fn vector(&self, block: &Block, e: &Expr, m: usize) -> String {
        let lanes = block.lanes;
        let kernel = self.names.kernel;
        let scalar = kernel.scalar_of(e);
        if !lanes.varies(e) {
            return format!("iv_all_{}({})", Self::suffix(lanes, scalar), self.e(e));
        }
        match e {
            Expr::Lit(_) => unreachable!("literals do not vary"),
            Expr::Local(l) => self.part(*l, m),
            Expr::Load(b, offset) => self.lane_read(block, *b, offset, m),
            Expr::Select(p, a, b) => {
                let (a, b) = (self.vector(block, a, m), self.vector(block, b, m));
                if lanes.varies(p) {
                    format!("iv_select_{}({}, {a}, {b})", Self::suffix(lanes, scalar), self.vector(block, p, m))
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
        let test = |symbol: &str| Self::as_mask(block, kinds[0], infix(symbol));
        let is_bool = kinds[0] == Scalar::Bool;
        match op {
            Op::Add => infix("+"),
            Op::Sub => infix("-"),
            Op::Mul => infix("*"),
            Op::Div => infix("/"),
            Op::Neg => format!("(-{})", operand(0)),
            Op::Eq if is_bool => format!("(~({} ^ {}))", operand(0), operand(1)),
            Op::Ne if is_bool => infix("^"),
            Op::Eq => test("=="),
            Op::Ne => test("!="),
            Op::Lt => test("<"),
            Op::Le => test("<="),
            Op::Gt => test(">"),
            Op::Ge => test(">="),
            Op::And => infix("&"),
            Op::Or => infix("|"),
            Op::Not => format!("(~{})", operand(0)),
            Op::StopGradient => operand(0),
            Op::ToF64 | Op::ToF32 | Op::ToI64 | Op::ToI32 => {
                let to = format!("iv_v{}", Self::suffix(block.lanes, scalar));
                match kinds[0] {
                    Scalar::Bool => format!("(-iv_as({to}, {}))", operand(0)),
                    from if from == scalar => operand(0),
                    _ => format!("iv_as({to}, {})", operand(0)),
                }
            }
            Op::Min | Op::Max => {
                let [a, b] = [&args[0], &args[1]].map(|a| self.vector(block, a, m));
                format!("iv_{}_{}({a}, {b})", op.name(), Self::suffix(block.lanes, scalar))
            }
            Op::Sigmoid => {
                let (one, suffix) = (if scalar == Scalar::F32 { "1.0f" } else { "1.0" }, Self::suffix(block.lanes, scalar));
                format!("({one} / ({one} + iv_exp_{suffix}(-{})))", operand(0))
            }
            _ if has_vector_form(op) => format!("iv_{}_{}({})", op.name(), Self::suffix(block.lanes, scalar), operand(0)),
            _ => match args.get(1).and_then(Expr::as_int).filter(|_| op == Op::Pow && kinds[0].is_float()).and_then(small_power) {
                Some(product) if block.lanes.varies(&args[0]) => {
                    format!("({{ const iv_v{} x = {}; {product}; }})", Self::suffix(block.lanes, scalar), operand(0))
                }
                _ => self.lane_by_lane(block, op, args, &kinds, scalar, m),
            },
        }
    }

    /// An operation that is applied to one lane after the other; the compiler makes a vector function of it where there is one.
    fn lane_by_lane(&self, block: &Block, op: Op, args: &[Expr], kinds: &[Scalar], scalar: Scalar, m: usize) -> String {
        let mut text = op.c_template(kinds).to_string();
        let n = block.lanes.lanes;
        let mut definitions = vec![];
        for (k, arg) in args.iter().enumerate().rev() {
            let operand = if block.lanes.varies(arg) {
                let mut value = self.vector(block, arg, m);
                // Lanes that take no part must not divide by zero, nor run forever.
                let suffix = Self::suffix(block.lanes, kinds[k]);
                if let (Op::IDiv | Op::IMod | Op::Pow, 1, true, Some(mask)) = (op, k, kinds[k].is_integer(), self.mask(block, m)) {
                    value = format!("iv_select_{suffix}({mask}, {value}, iv_all_{suffix}(1))");
                }
                definitions.push(format!("const iv_v{suffix} x{k} = {value};"));
                format!("x{k}[l]")
            } else {
                format!("({})", self.e(arg))
            };
            text = text.replace(&format!("{{{k}}}"), &operand);
        }
        let value = if scalar == Scalar::Bool { format!("-(int32_t)({text})") } else { text };
        let (definitions, suffix) = (definitions.join(" "), Self::suffix(block.lanes, scalar));
        format!("({{ {definitions} iv_v{suffix} r; for (int l = 0; l < {n}; l++) r[l] = {value}; r; }})")
    }

    pub(super) fn lane_read(&self, block: &Block, b: Buffer, offset: &Expr, m: usize) -> String {
        let lanes = block.lanes;
        let suffix = self.suffix_of(block.lanes, b);
        let name = self.names.buffer(b);
        let own = lanes.own.contains(&b);
        if own && !lanes.varies(offset) {
            return self.own_place(block, b, offset, m);
        }
        let mask = self.mask(block, m);
        let stride = lanes.stride(offset, block.index).filter(|_| !own);
        if let (Some(live), Some(1)) = (&block.live, stride.as_ref().and_then(Expr::as_int)) {
            return format!("iv_near_part_{suffix}({name} + ({}), {live})", self.e(offset));
        }
        if let Some(stride) = stride.filter(|_| mask.is_none()) {
            let text = self.names.at_level(&stride, UNARY);
            let first = format!("{name} + ({}) + {} * {text}", self.e(offset), m * lanes.lanes);
            return match stride.as_int() {
                Some(1) => format!("iv_near_{suffix}({first})"),
                _ => format!("iv_far_{suffix}({first}, {text})"),
            };
        }
        let mut at = self.vector(block, offset, m);
        if own {
            let n = lanes.lanes;
            at = format!("{at} * {} + {} + iv_lanes_{n}l", lanes.width(), m * n);
        }
        match mask {
            None => format!("iv_pick_{suffix}({name}, {at})"),
            Some(mask) => format!("iv_pick_some_{suffix}({name}, {at}, {mask})"),
        }
    }
}

/// The functions that iverson_lanes.h has for vectors.
fn has_vector_form(op: Op) -> bool {
    use Op::*;
    matches!(
        op,
        Exp | Exp2
            | Expm1
            | Log
            | Log2
            | Log10
            | Log1p
            | Sin
            | Cos
            | Tan
            | Asin
            | Acos
            | Atan
            | Sinh
            | Cosh
            | Tanh
            | Erf
            | Erfc
            | Cbrt
            | Sqrt
    )
}

/// A power of `x` as `iv_powi` has it.
fn small_power(exponent: i64) -> Option<&'static str> {
    Some(match exponent {
        1 => "x",
        2 => "x * x",
        3 => "x * (x * x)",
        4 => "(x * x) * (x * x)",
        -1 => "1 / x",
        -2 => "1 / (x * x)",
        _ => return None,
    })
}
