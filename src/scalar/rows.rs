//! The table of scalar operations.
//!
//! Partials hold at special points as first and as higher derivatives: the tie of `max` is the first argument's, `abs`
//! has slope 0 at 0, `hypot` at the origin; `x^y` at `x = 0` has its limit where there is one and never `0 * log 0`.
//! A formula branches only where its derivatives are those of the branch: the partial `y x^(y-1)` of a float power
//! branches at the one point `x = y = 0`, not at `y = 0`, where its derivative by `y` is `1 / x`.
//! Where the result `r` makes a partial cheaper, it is used: `exp` is its own derivative.

use super::CostClass::*;
use super::Precedence::*;
use super::Value::*;
use super::formula::*;
use super::numerics;
use super::*;
use std::f64::consts::{LN_2, LN_10};

/// `2 / sqrt(π)`, the slope of `erf` at 0.
const ERF_SLOPE: f64 = std::f64::consts::FRAC_2_SQRT_PI;

pub(super) fn row(op: Op) -> Row {
    match op {
        Op::Add => infix("add", "+", Sum).case(Float2(|x, y| x + y), "({0} + {1})", |c| c.costs(Addition).partials([one(), one()])).case(
            Int2(i64::wrapping_add),
            "({0} + {1})",
            same,
        ),
        Op::Sub => infix("sub", "-", Sum)
            .case(Float2(|x, y| x - y), "({0} - {1})", |c| c.costs(Addition).partials([one(), (-1.0).into()]))
            .case(Int2(i64::wrapping_sub), "({0} - {1})", same),
        Op::Mul => infix("mul", "*", Product)
            .case(Float2(|x, y| x * y), "({0} * {1})", |c| c.costs(Multiplication).partials([y(), x()]))
            .case(Int2(i64::wrapping_mul), "({0} * {1})", same),
        Op::Div => infix("divide", "/", Product).case(Float2(|x, y| x / y), "({0} / {1})", |c| {
            c.costs(Multiplication).partials([1.0 / y(), -r() / y()]).on([(-3.0, 3.0), (0.5, 3.0)])
        }),
        Op::Neg => prefix("neg", "-", Negation).case(Float1(|x| -x), "(-{0})", |c| c.costs(Free).partials([(-1.0).into()])).case(
            Int1(i64::wrapping_neg),
            "(-{0})",
            same,
        ),
        Op::Abs => function("abs").case(Float1(f64::abs), "fabs{f}({0})", |c| c.partials([sign(x())])).case(
            Int1(i64::wrapping_abs),
            "iv_int{w}_abs({0})",
            same,
        ),
        Op::Sign => {
            function("sign").case(Float1(numerics::sign), "iv_sign{f}({0})", same).case(Int1(i64::signum), "iv_int{w}_sign({0})", same)
        }
        Op::Min => {
            let first = || or(apply(Op::Le, [x(), y()]), is_nan(x()));
            function("min")
                .case(Float2(numerics::min), "iv_min{f}({0}, {1})", |c| c.partials([when(first(), 1.0, 0.0), when(first(), 0.0, 1.0)]))
                .case(Int2(i64::min), "iv_int{w}_min({0}, {1})", same)
        }
        Op::Max => {
            let first = || or(apply(Op::Ge, [x(), y()]), is_nan(x()));
            function("max")
                .case(Float2(numerics::max), "iv_max{f}({0}, {1})", |c| c.partials([when(first(), 1.0, 0.0), when(first(), 0.0, 1.0)]))
                .case(Int2(i64::max), "iv_int{w}_max({0}, {1})", same)
        }
        Op::Pow => infix("pow", "^", Power)
            .case(Float2(f64::powf), "pow{f}({0}, {1})", |c| {
                c.on([(0.3, 2.0), (-2.0, 3.0)]).partials([
                    when(and(equal(x(), 0.0), equal(y(), 0.0)), 0.0, y() * apply(Op::Pow, [x(), y() - 1.0])),
                    when(equal(x(), 0.0), 0.0, r() * log(x())),
                ])
            })
            .case(FloatInt(numerics::powi), "iv_powi{f}({0}, {1})", |c| {
                // The exponent has no derivative, so this may branch at 0.
                let slope = apply(Op::ToF64, [y()]) * apply(Op::Pow, [x(), y() - 1]);
                c.on([(0.5, 2.0), (-3.0, 5.0)]).partial_by(0, when(equal(y(), 0), 0.0, slope))
            })
            .case(TryIntPower(numerics::int_pow), "iv_int{w}_pow({0}, {1})", |c| c.on([(-5.0, 5.0), (0.0, 8.0)])),

        Op::Floor => function("floor").case(Float1(f64::floor), "floor{f}({0})", same),
        Op::Ceil => function("ceil").case(Float1(f64::ceil), "ceil{f}({0})", same),
        Op::Round => function("round").case(Float1(f64::round), "round{f}({0})", same),
        Op::Sqrt => function("sqrt").case(Float1(f64::sqrt), "sqrt{f}({0})", |c| c.partials([0.5 / r()]).on([(0.2, 4.0)])),
        Op::Cbrt => function("cbrt").case(Float1(f64::cbrt), "cbrt{f}({0})", |c| c.partials([1.0 / (3.0 * (r() * r()))]).on([(0.2, 4.0)])),
        Op::Exp => function("exp").case(Float1(f64::exp), "exp{f}({0})", |c| c.partials([r()])),
        Op::Exp2 => function("exp2").case(Float1(f64::exp2), "exp2{f}({0})", |c| c.partials([r() * LN_2])),
        Op::Expm1 => function("expm1").case(Float1(f64::exp_m1), "expm1{f}({0})", |c| c.partials([r() + 1.0])),
        Op::Log => function("log").case(Float1(f64::ln), "log{f}({0})", |c| c.partials([1.0 / x()]).on([(0.2, 4.0)])),
        Op::Log2 => function("log2").case(Float1(f64::log2), "log2{f}({0})", |c| c.partials([1.0 / (x() * LN_2)]).on([(0.2, 4.0)])),
        Op::Log10 => function("log10").case(Float1(f64::log10), "log10{f}({0})", |c| c.partials([1.0 / (x() * LN_10)]).on([(0.2, 4.0)])),
        Op::Log1p => function("log1p").case(Float1(f64::ln_1p), "log1p{f}({0})", |c| c.partials([1.0 / (1.0 + x())]).on([(-0.7, 4.0)])),

        Op::Sin => function("sin").case(Float1(f64::sin), "sin{f}({0})", |c| c.partials([cos(x())])),
        Op::Cos => function("cos").case(Float1(f64::cos), "cos{f}({0})", |c| c.partials([-sin(x())])),
        Op::Tan => function("tan").case(Float1(f64::tan), "tan{f}({0})", |c| c.partials([1.0 + r() * r()]).on([(-1.2, 1.2)])),
        Op::Asin => function("asin")
            .case(Float1(f64::asin), "asin{f}({0})", |c| c.partials([1.0 / sqrt((1.0 - x()) * (1.0 + x()))]).on([(-0.8, 0.8)])),
        Op::Acos => function("acos")
            .case(Float1(f64::acos), "acos{f}({0})", |c| c.partials([-1.0 / sqrt((1.0 - x()) * (1.0 + x()))]).on([(-0.8, 0.8)])),
        Op::Atan => function("atan").case(Float1(f64::atan), "atan{f}({0})", |c| c.partials([1.0 / (1.0 + x() * x())])),
        Op::Atan2 => function("atan2").case(Float2(f64::atan2), "atan2{f}({0}, {1})", |c| {
            let square = || x() * x() + y() * y();
            c.partials([y() / square(), -x() / square()]).on([(0.3, 3.0), (-3.0, 3.0)])
        }),
        Op::Sinh => function("sinh").case(Float1(f64::sinh), "sinh{f}({0})", |c| c.partials([apply(Op::Cosh, [x()])])),
        Op::Cosh => function("cosh").case(Float1(f64::cosh), "cosh{f}({0})", |c| c.partials([apply(Op::Sinh, [x()])])),
        Op::Tanh => function("tanh").case(Float1(f64::tanh), "tanh{f}({0})", |c| c.partials([1.0 - r() * r()])),
        Op::Sigmoid => function("sigmoid").case(Float1(numerics::sigmoid), "iv_sigmoid{f}({0})", |c| c.partials([r() * (1.0 - r())])),

        Op::Erf => function("erf").case(Float1(libm::erf), "erf{f}({0})", |c| c.partials([ERF_SLOPE * exp(-(x() * x()))])),
        Op::Erfc => function("erfc").case(Float1(libm::erfc), "erfc{f}({0})", |c| c.partials([-ERF_SLOPE * exp(-(x() * x()))])),
        Op::Lgamma => {
            function("lgamma").case(Float1(libm::lgamma), "lgamma{f}({0})", |c| c.partials([apply(Op::Digamma, [x()])]).on([(0.3, 6.0)]))
        }
        Op::Digamma => function("digamma").case(Float1(numerics::digamma), "iv_digamma{f}({0})", |c| {
            c.partials([apply(Op::Polygamma, [1.into(), x()])]).on([(0.3, 6.0)])
        }),
        Op::Polygamma => function("polygamma").case(IntFloat(numerics::polygamma), "iv_polygamma{f}({0}, {1})", |c| {
            c.partial_by(1, apply(Op::Polygamma, [x() + 1, y()])).on([(0.0, 4.0), (0.6, 6.0)])
        }),
        Op::Hypot => function("hypot").case(Float2(f64::hypot), "hypot{f}({0}, {1})", |c| {
            let slope = |side: Formula| when(equal(r(), 0.0), 0.0, side / r());
            c.partials([slope(x()), slope(y())]).on([(0.3, 3.0), (-3.0, 3.0)])
        }),

        Op::IDiv => {
            infix("div", "div", Product).case(TryInt2(numerics::int_div), "iv_int{w}_div({0}, {1})", |c| c.on([(-9.0, 9.0), (1.0, 5.0)]))
        }
        Op::IMod => {
            infix("mod", "mod", Product).case(TryInt2(numerics::int_mod), "iv_int{w}_mod({0}, {1})", |c| c.on([(-9.0, 9.0), (1.0, 5.0)]))
        }

        Op::StopGradient => function("stop_gradient").case(Float1(|x| x), "({0})", |c| c.costs(Free)).case(Int1(|x| x), "({0})", same),
        Op::Agreed => {
            function("agreed").case(TryInt2(numerics::int_agreed), "iv_int{w}_agreed({0}, {1})", |c| c.on([(3.0, 3.0), (3.0, 3.0)]))
        }

        Op::Bounded => {
            function("bounded").case(TryInt2(numerics::int_bounded), "iv_int{w}_agreed({0}, {1})", |c| c.on([(-3.0, 3.0), (3.0, 9.0)]))
        }

        Op::Within => {
            function("within").case(TryInt2(numerics::int_within), "iv_int{w}_agreed({0}, {1})", |c| c.on([(0.0, 3.0), (4.0, 9.0)]))
        }

        Op::Eq => infix("eq", "==", Comparison)
            .case(FloatTest(|x, y| x == y), "({0} == {1})", same)
            .case(IntTest(|x, y| x == y), "({0} == {1})", same)
            .case(BoolTest(|x, y| x == y), "({0} == {1})", same),
        Op::Ne => infix("ne", "!=", Comparison)
            .case(FloatTest(|x, y| x != y), "({0} != {1})", same)
            .case(IntTest(|x, y| x != y), "({0} != {1})", same)
            .case(BoolTest(|x, y| x != y), "({0} != {1})", same),
        Op::Lt => {
            infix("lt", "<", Comparison).case(FloatTest(|x, y| x < y), "({0} < {1})", same).case(IntTest(|x, y| x < y), "({0} < {1})", same)
        }
        Op::Le => infix("le", "<=", Comparison).case(FloatTest(|x, y| x <= y), "({0} <= {1})", same).case(
            IntTest(|x, y| x <= y),
            "({0} <= {1})",
            same,
        ),
        Op::Gt => {
            infix("gt", ">", Comparison).case(FloatTest(|x, y| x > y), "({0} > {1})", same).case(IntTest(|x, y| x > y), "({0} > {1})", same)
        }
        Op::Ge => infix("ge", ">=", Comparison).case(FloatTest(|x, y| x >= y), "({0} >= {1})", same).case(
            IntTest(|x, y| x >= y),
            "({0} >= {1})",
            same,
        ),
        Op::And => infix("and", "and", And).case(BoolTest(|x, y| x && y), "({0} && {1})", same),
        Op::Or => infix("or", "or", Or).case(BoolTest(|x, y| x || y), "({0} || {1})", same),
        Op::Not => prefix("not", "not", Not).case(Bool1(|x| !x), "(!{0})", same),

        Op::ToF64 => conversion("f64", Scalar::F64),
        Op::ToF32 => conversion("f32", Scalar::F32),
        Op::ToI64 => conversion("i64", Scalar::I64),
        Op::ToI32 => conversion("i32", Scalar::I32),
    }
}

/// Between floats a conversion is linear: its derivative is the conversion itself.
fn conversion(name: &'static str, to: Scalar) -> Row {
    let more = |c: Case| {
        let linear = c.args[0].is_float() && to.is_float();
        if linear { c.costs(Free).partials([one()]) } else { c }
    };
    function(name).cases_of(Value::Convert, "((target){0})", to, more)
}

fn function(name: &'static str) -> Row {
    Row { name, notation: Notation::Function, cases: vec![] }
}
fn infix(name: &'static str, symbol: &'static str, precedence: Precedence) -> Row {
    Row { name, notation: Notation::Infix(symbol, precedence), cases: vec![] }
}
fn prefix(name: &'static str, symbol: &'static str, precedence: Precedence) -> Row {
    Row { name, notation: Notation::Prefix(symbol, precedence), cases: vec![] }
}
fn same(case: Case) -> Case {
    case
}

impl Row {
    /// Cases for all widths of an operation's types. In the C, `{f}` is the letter that functions on `float` end in, and
    /// `{w}` the width of integers that are no `int64_t`.
    fn case(self, value: Value, c: &str, more: impl Fn(Case) -> Case) -> Row {
        self.cases_of(value, c, Scalar::F64, more)
    }

    fn cases_of(mut self, value: Value, c: &str, target: Scalar, more: impl Fn(Case) -> Case) -> Row {
        for (args, result) in value.signatures(target) {
            let kinds = || args.iter().copied().chain([result]);
            let float = kinds().find(|s| s.is_float()).unwrap_or(Scalar::F64);
            let integer = kinds().find(|s| s.is_integer()).unwrap_or(Scalar::I64);
            let c = match c {
                "((target){0})" if args[0] == result => "{0}".to_string(),
                _ => c
                    .replace("{f}", if float == Scalar::F32 { "f" } else { "" })
                    .replace("{w}", if integer == Scalar::I32 { "32" } else { "" })
                    .replace("target", c_type(result)),
            };
            let cost = if args.iter().any(|s| s.is_float()) && result.is_float() { Call } else { Free };
            let samples = vec![(-2.0, 2.0); args.len()];
            let mut case = more(Case { value, args, result, c, cost, partials: vec![], samples });
            case.partials.iter_mut().flatten().for_each(|formula| *formula = formula.at(float, integer));
            self.cases.push(case);
        }
        self
    }
}

fn c_type(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::F64 => "double",
        Scalar::F32 => "float",
        Scalar::I64 => "int64_t",
        Scalar::I32 => "int32_t",
        Scalar::Bool => "bool",
    }
}

impl Case {
    fn costs(mut self, cost: CostClass) -> Case {
        self.cost = cost;
        self
    }
    fn on<const N: usize>(mut self, samples: [(f64, f64); N]) -> Case {
        self.samples = samples.into();
        self
    }
    /// By each argument in order.
    fn partials<const N: usize>(mut self, partials: [Formula; N]) -> Case {
        self.partials = partials.map(Some).into();
        self
    }
    /// By argument `k` alone.
    fn partial_by(mut self, k: usize, formula: Formula) -> Case {
        self.partials = vec![None; self.args.len()];
        self.partials[k] = Some(formula);
        self
    }
}

fn sign(a: Formula) -> Formula {
    apply(Op::Sign, [a])
}
fn sqrt(a: Formula) -> Formula {
    apply(Op::Sqrt, [a])
}
fn exp(a: Formula) -> Formula {
    apply(Op::Exp, [a])
}
fn log(a: Formula) -> Formula {
    apply(Op::Log, [a])
}
fn sin(a: Formula) -> Formula {
    apply(Op::Sin, [a])
}
fn cos(a: Formula) -> Formula {
    apply(Op::Cos, [a])
}
fn equal(a: Formula, b: impl Into<Formula>) -> Formula {
    apply(Op::Eq, [a, b.into()])
}
fn is_nan(a: Formula) -> Formula {
    apply(Op::Ne, [a.clone(), a])
}
fn and(a: Formula, b: Formula) -> Formula {
    apply(Op::And, [a, b])
}
fn or(a: Formula, b: Formula) -> Formula {
    apply(Op::Or, [a, b])
}
