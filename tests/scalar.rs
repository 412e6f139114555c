//! Properties of the table of scalar operations: every row is tried, none is named unless it is special.

use iverson::fault::Fault;
use iverson::scalar::formula::Formula;
use iverson::scalar::{Case, CostClass, Notation, Op};
use iverson::types::{Lit, Scalar};

fn float(lit: Lit) -> f64 {
    lit.as_float().unwrap_or_else(|| panic!("{lit:?} is no float"))
}

/// The number in the widest type of its kind, which holds it exactly.
fn wide(lit: Lit) -> Lit {
    match lit {
        Lit::F32(x) => Lit::F64(x.into()),
        Lit::I32(x) => Lit::I64(x.into()),
        Lit::F64(_) | Lit::I64(_) | Lit::Bool(_) => lit,
    }
}
fn is_wide(case: &Case) -> bool {
    !case.args().iter().chain([&case.result()]).any(|s| matches!(s, Scalar::F32 | Scalar::I32))
}

/// Deterministic numbers in (0, 1).
struct Numbers(u64);
impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }
    fn sample(&mut self, case: &Case) -> Vec<Lit> {
        case.args()
            .iter()
            .zip(case.samples())
            .map(|(kind, (lo, hi))| {
                let x = lo + (hi - lo) * self.next();
                match kind {
                    Scalar::F64 | Scalar::F32 => Lit::float(*kind, x),
                    Scalar::I64 | Scalar::I32 => Lit::integer(*kind, x.round() as i64),
                    Scalar::Bool => Lit::Bool(x > 0.5 * (lo + hi)),
                }
            })
            .collect()
    }
}

/// The formula at the operation's arguments.
fn partial_at(op: Op, formula: &Formula, args: &[Lit]) -> f64 {
    let result = op.eval(args).unwrap();
    let operands = formula.uses().select(args[0], args.get(1).copied(), result);
    float(formula.eval(&operands).unwrap())
}

fn moved(args: &[Lit], k: usize, by: f64) -> Vec<Lit> {
    let mut args = args.to_vec();
    args[k] = Lit::F64(float(args[k]) + by);
    args
}

fn central(args: &[Lit], k: usize, f: impl Fn(&[Lit]) -> f64) -> f64 {
    // Two central differences, extrapolated: an error of order h^4.
    let d = |h: f64| (f(&moved(args, k, h)) - f(&moved(args, k, -h))) / (2.0 * h);
    let h = 1e-3;
    (4.0 * d(h / 2.0) - d(h)) / 3.0
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    a == b || (a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs()))
}

/// The derivative by argument `by` of a formula of the arguments and the result: symbolically by the rows, as
/// differentiation does it, the result being an operand that depends on the arguments.
fn derivative(formula: &Formula, op: Op, args: &[Lit], by: usize) -> f64 {
    let result = op.eval(args).unwrap();
    let kinds: Vec<Scalar> = args.iter().map(|a| a.scalar()).collect();
    tangent(formula, op, args, result, by, &kinds).1
}

fn tangent(formula: &Formula, op: Op, args: &[Lit], result: Lit, by: usize, kinds: &[Scalar]) -> (Lit, f64) {
    let of = |f: &Formula| tangent(f, op, args, result, by, kinds);
    match formula {
        Formula::X => (args[0], (by == 0) as i64 as f64),
        Formula::Y => (args[1], (by == 1) as i64 as f64),
        Formula::R => (result, op.partial(by, kinds).map_or(0.0, |f| partial_at(op, f, args))),
        Formula::Lit(lit) => (*lit, 0.0),
        Formula::If(p, a, b) => match of(p).0 {
            Lit::Bool(true) => of(a),
            _ => of(b),
        },
        Formula::Apply(inner, parts) => {
            let parts: Vec<(Lit, f64)> = parts.iter().map(of).collect();
            let values: Vec<Lit> = parts.iter().map(|p| p.0).collect();
            let kinds: Vec<Scalar> = values.iter().map(|v| v.scalar()).collect();
            let value = inner.eval(&values).unwrap();
            let mut total = 0.0;
            for (k, (_, dx)) in parts.iter().enumerate() {
                // A zero tangent is symbolic: it meets no infinity.
                if let (Some(partial), true) = (inner.partial(k, &kinds), *dx != 0.0) {
                    total += partial_at(*inner, partial, &values) * dx;
                }
            }
            (value, total)
        }
    }
}

fn each_partial(mut f: impl FnMut(Op, &'static Case, usize, &'static Formula)) {
    for op in Op::ALL {
        for case in op.cases() {
            for k in 0..case.args().len() {
                if let Some(formula) = case.partial(k) {
                    f(op, case, k, formula);
                }
            }
        }
    }
}

#[test]
fn all_is_in_order_and_names_are_unique() {
    for (k, op) in Op::ALL.iter().enumerate() {
        assert_eq!(*op as usize, k);
        assert_eq!(Op::ALL.iter().filter(|o| o.name() == op.name()).count(), 1, "{}", op.name());
        assert_eq!(Op::by_name(op.name()), (op.notation() == Notation::Function).then_some(*op));
        assert!(op.cases().iter().all(|c| c.args().len() == op.arity()));
    }
    assert_eq!(Op::ALL[Op::ALL.len() - 1], Op::ToI32);
}

#[test]
fn partials_are_found_by_name_and_by_operands() {
    each_partial(|op, case, k, formula| {
        assert_eq!(Op::by_partial_name(&op.partial_name(k)), Some((op, k)));
        // A formula without operands, of a conversion, is written out.
        if formula.op_count() > 0 {
            let operands = formula.uses().select(case.args()[0], case.args().get(1).copied(), case.result());
            assert_eq!(op.partial_of(k, &operands), Some((case.result(), formula)), "{op:?}");
        }
    });
    assert_eq!(Op::by_partial_name("d_floor"), None);
    assert_eq!(Op::by_partial_name("d_pow"), None);
    assert_eq!(Op::by_partial_name("x_sin"), None);
    assert_eq!(Op::by_partial_name("d2_pow"), None);
}

#[test]
fn every_argument_of_a_smooth_operation_has_a_partial() {
    for op in Op::ALL {
        for case in op.cases() {
            let flat = [Op::Sign, Op::Floor, Op::Ceil, Op::Round, Op::StopGradient].contains(&op);
            for (k, kind) in case.args().iter().enumerate() {
                let smooth = kind.is_float() && case.result().is_float() && !flat;
                assert_eq!(case.partial(k).is_some(), smooth, "{op:?} by argument {k} of {:?}", case.args());
            }
        }
    }
}

#[test]
fn partials_agree_with_differences() {
    let mut numbers = Numbers(1);
    each_partial(|op, case, k, formula| {
        if !is_wide(case) {
            return;
        }
        for _ in 0..50 {
            let args = numbers.sample(case);
            let exact = partial_at(op, formula, &args);
            let rough = central(&args, k, |a| float(op.eval(a).unwrap()));
            assert!(close(exact, rough, 2e-8), "{op:?}{args:?} by {k}: {exact} is not {rough}");
        }
    });
}

#[test]
fn second_derivatives_agree_with_differences() {
    let mut numbers = Numbers(2);
    each_partial(|op, case, k, formula| {
        if !is_wide(case) {
            return;
        }
        for by in (0..case.args().len()).filter(|by| case.args()[*by].is_float()) {
            for _ in 0..50 {
                let args = numbers.sample(case);
                let exact = derivative(formula, op, &args, by);
                let rough = central(&args, by, |a| partial_at(op, formula, a));
                assert!(close(exact, rough, 2e-7), "{op:?}{args:?} by {k}, {by}: {exact} is not {rough}");
            }
        }
    });
}

/// On `f32` and `i32` an operation gives what it gives on `f64` and `i64`, rounded or wrapped; so do its partials, whose
/// formulas are computed in `f32` throughout.
#[test]
fn narrow_cases_are_the_wide_ones() {
    let mut numbers = Numbers(4);
    for op in Op::ALL.into_iter().filter(|op| !op.is_conversion()) {
        for case in op.cases().iter().filter(|c| !is_wide(c)) {
            for _ in 0..50 {
                let args = numbers.sample(case);
                let widened: Vec<Lit> = args.iter().map(|a| wide(*a)).collect();
                let (narrow, exact) = (op.eval(&args).unwrap(), op.eval(&widened).unwrap());
                let rounded = match exact {
                    Lit::F64(x) => Lit::float(case.result(), x),
                    Lit::I64(x) => Lit::integer(case.result(), x),
                    other => other,
                };
                assert_eq!(narrow, rounded, "{op:?}{args:?}");
                let kinds: Vec<Scalar> = widened.iter().map(|a| a.scalar()).collect();
                for k in 0..args.len() {
                    let (mine, other) = (case.partial(k), op.partial(k, &kinds));
                    assert_eq!(mine.is_some(), other.is_some(), "{op:?} by {k}");
                    if let (Some(mine), Some(other)) = (mine, other) {
                        let value = op.eval(&args).unwrap();
                        let operands = mine.uses().select(args[0], args.get(1).copied(), value);
                        let slope = mine.eval(&operands).unwrap();
                        assert_eq!(slope.scalar(), case.result(), "{op:?} by {k}");
                        let wide_slope = partial_at(op, other, &widened);
                        assert!(close(float(slope), wide_slope, 1e-5), "{op:?}{args:?} by {k}: {slope:?} is not {wide_slope}");
                    }
                }
            }
        }
    }
}

/// For `+ - * /` and `sqrt` the nearest `f32` is what `f32` arithmetic gives.
#[test]
fn arithmetic_of_f32_is_rounded_once() {
    let mut bits = 7u64;
    let mut next = || {
        bits = bits.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        f32::from_bits((bits >> 32) as u32)
    };
    for _ in 0..200_000 {
        let (x, y) = (next(), next());
        let rows: [(Op, f32); 4] = [(Op::Add, x + y), (Op::Sub, x - y), (Op::Mul, x * y), (Op::Div, x / y)];
        for (op, wanted) in rows {
            let got = op.eval(&[Lit::F32(x), Lit::F32(y)]).unwrap();
            assert!(got == Lit::F32(wanted) || wanted.is_nan(), "{op:?} of {x:?} and {y:?} is {got:?}, not {wanted:?}");
        }
        let root = Op::Sqrt.eval(&[Lit::F32(x)]).unwrap();
        assert!(root == Lit::F32(x.sqrt()) || x.sqrt().is_nan(), "sqrt of {x:?}");
        // Digits read back, through an f64 as everywhere.
        let again = Lit::F32(x).digits().parse::<f64>().unwrap() as f32;
        assert!(again.to_bits() == x.to_bits() || x.is_nan(), "{x:?}");
    }
}

#[test]
fn conversions_round_once_and_fail_where_nothing_fits() {
    use Scalar::*;
    let convert = |lit: Lit, to: Scalar| Op::conversion(to).unwrap().eval(&[lit]);
    assert_eq!(convert(Lit::F64(0.1), F32), Ok(Lit::F32(0.1)));
    assert_eq!(convert(Lit::F32(0.1), F64), Ok(Lit::F64(0.1f32.into())));
    // 2^53 + 2^29 + 1 lies above the middle of two f32, but an f64 has it in the middle.
    let x = (1i64 << 53) + (1 << 29) + 1;
    assert_eq!(convert(Lit::I64(x), F32), Ok(Lit::F32(x as f32)));
    assert_ne!(convert(Lit::I64(x), F32), convert(Lit::F64(x as f64), F32));
    assert_eq!(convert(Lit::I32(-7), I64), Ok(Lit::I64(-7)));
    assert_eq!(convert(Lit::I64(-7), I32), Ok(Lit::I32(-7)));
    assert_eq!(convert(Lit::I64(1 << 31), I32), Err(Fault::TooLarge { value: 1 << 31 }));
    assert_eq!(convert(Lit::F64(2147483647.9), I32), Ok(Lit::I32(i32::MAX)));
    assert_eq!(convert(Lit::F64(-2147483648.9), I32), Ok(Lit::I32(i32::MIN)));
    assert_eq!(convert(Lit::F64(2147483648.0), I32), Err(Fault::NoInteger { value: 2147483648.0, to: I32 }));
    assert_eq!(convert(Lit::F32(-2.9), I32), Ok(Lit::I32(-2)));
    assert!(convert(Lit::F32(f32::NAN), I64).is_err() && convert(Lit::F32(f32::INFINITY), I32).is_err());
    for to in [F64, F32, I64, I32] {
        assert_eq!(convert(Lit::Bool(true), to), Ok(Lit::one(to)));
        let op = Op::conversion(to).unwrap();
        for case in op.cases() {
            let (from, float) = (case.args()[0], case.args()[0].is_float());
            assert_eq!(op.can_fail(case.args()), (float && to.is_integer()) || (from == I64 && to == I32), "{from:?} {to:?}");
        }
    }
}

#[test]
fn floats_cost_and_nothing_else_does() {
    use CostClass::*;
    let f = Scalar::F64;
    assert_eq!([Op::Add, Op::Sub].map(|op| op.cost(&[f, f])), [Addition; 2]);
    assert_eq!([Op::Mul, Op::Div].map(|op| op.cost(&[f, f])), [Multiplication; 2]);
    assert_eq!([Op::Max, Op::Pow, Op::Hypot].map(|op| op.cost(&[f, f])), [Call; 3]);
    assert_eq!([Op::Neg, Op::ToF64].map(|op| op.cost(&[f])), [Free; 2]);
    assert_eq!([Op::Sin, Op::Abs, Op::Floor].map(|op| op.cost(&[f])), [Call; 3]);
    assert_eq!(Op::Pow.cost(&[f, Scalar::I64]), Call);
    for op in Op::ALL {
        for case in op.cases().iter().filter(|c| !c.args().iter().any(|s| s.is_float()) || !c.result().is_float()) {
            assert_eq!(op.cost(case.args()), Free, "{op:?}");
        }
    }
}

fn value1(op: Op, x: f64) -> f64 {
    float(op.eval(&[Lit::F64(x)]).unwrap())
}
fn value2(op: Op, x: f64, y: f64) -> f64 {
    float(op.eval(&[Lit::F64(x), Lit::F64(y)]).unwrap())
}
fn slope(op: Op, k: usize, args: &[Lit]) -> f64 {
    let kinds: Vec<Scalar> = args.iter().map(|a| a.scalar()).collect();
    partial_at(op, op.partial(k, &kinds).unwrap(), args)
}
fn slope_of_slope(op: Op, k: usize, by: usize, args: &[Lit]) -> f64 {
    let kinds: Vec<Scalar> = args.iter().map(|a| a.scalar()).collect();
    derivative(op.partial(k, &kinds).unwrap(), op, args, by)
}
fn floats<const N: usize>(values: [f64; N]) -> Vec<Lit> {
    values.map(Lit::F64).to_vec()
}

#[test]
fn ties_go_to_the_first_argument_and_nan_passes() {
    for op in [Op::Max, Op::Min] {
        assert_eq!((slope(op, 0, &floats([2.0, 2.0])), slope(op, 1, &floats([2.0, 2.0]))), (1.0, 0.0));
        assert_eq!((slope(op, 0, &floats([f64::NAN, 2.0])), slope(op, 1, &floats([f64::NAN, 2.0]))), (1.0, 0.0));
        assert_eq!((slope(op, 0, &floats([2.0, f64::NAN])), slope(op, 1, &floats([2.0, f64::NAN]))), (0.0, 1.0));
        assert!(value2(op, f64::NAN, 1.0).is_nan() && value2(op, 1.0, f64::NAN).is_nan());
    }
    assert_eq!(Op::Max.eval(&floats([0.0, -0.0])), Ok(Lit::F64(0.0)));
    assert_eq!(Op::Max.eval(&floats([-0.0, 0.0])), Ok(Lit::F64(-0.0)));
}

#[test]
fn special_points_have_the_conventional_derivatives() {
    assert_eq!(slope(Op::Abs, 0, &floats([0.0])), 0.0);
    assert_eq!(slope_of_slope(Op::Abs, 0, 0, &floats([0.0])), 0.0);
    assert_eq!(slope(Op::Sqrt, 0, &floats([0.0])), f64::INFINITY);
    assert_eq!(slope(Op::Cbrt, 0, &floats([0.0])), f64::INFINITY);
    assert_eq!(slope(Op::Hypot, 0, &floats([0.0, 0.0])), 0.0);
    assert_eq!(slope(Op::Hypot, 1, &floats([0.0, 0.0])), 0.0);
    assert_eq!(slope_of_slope(Op::Hypot, 0, 0, &floats([0.0, 0.0])), 0.0);
}

#[test]
fn float_powers_at_zero_have_their_limits() {
    for (y, first, second) in [(0.0, 0.0, 0.0), (1.0, 1.0, 0.0), (2.0, 0.0, 2.0), (3.0, 0.0, 0.0), (2.5, 0.0, 0.0)] {
        let at = floats([0.0, y]);
        assert_eq!(slope(Op::Pow, 0, &at), first, "first at y = {y}");
        assert_eq!(slope_of_slope(Op::Pow, 0, 0, &at), second, "second at y = {y}");
        assert_eq!(slope(Op::Pow, 1, &at), 0.0);
        assert_eq!(slope_of_slope(Op::Pow, 1, 1, &at), 0.0);
        assert_eq!(slope_of_slope(Op::Pow, 1, 0, &at), 0.0);
    }
    assert_eq!(slope_of_slope(Op::Pow, 0, 1, &floats([0.0, 2.0])), 0.0);
    // At y = 0 away from x = 0 the mixed derivative is 1/x, from both sides.
    assert_eq!(slope_of_slope(Op::Pow, 0, 1, &floats([2.0, 0.0])), 0.5);
    assert_eq!(slope_of_slope(Op::Pow, 1, 0, &floats([2.0, 0.0])), 0.5);
}

#[test]
fn integer_powers_at_zero_have_their_limits() {
    for (k, first, second) in [(0, 0.0, 0.0), (1, 1.0, 0.0), (2, 0.0, 2.0), (3, 0.0, 0.0)] {
        let at = [Lit::F64(0.0), Lit::I64(k)];
        assert_eq!(slope(Op::Pow, 0, &at), first, "first at k = {k}");
        assert_eq!(slope_of_slope(Op::Pow, 0, 0, &at), second, "second at k = {k}");
    }
    assert_eq!(Op::Pow.eval(&[Lit::F64(-2.0), Lit::I64(3)]), Ok(Lit::F64(-8.0)));
    assert_eq!(Op::Pow.eval(&[Lit::F64(2.0), Lit::I64(-2)]), Ok(Lit::F64(0.25)));
    assert_eq!(Op::Pow.eval(&[Lit::F64(-1.0), Lit::I64(i64::MIN)]), Ok(Lit::F64(1.0)));
}

#[test]
fn sigmoid_is_right_in_both_tails() {
    assert_eq!(value1(Op::Sigmoid, 1000.0), 1.0);
    assert_eq!(value1(Op::Sigmoid, -1000.0), 0.0);
    assert!(close(value1(Op::Sigmoid, -40.0) / (-40.0f64).exp(), 1.0, 1e-15));
    assert!(value1(Op::Sigmoid, f64::NAN).is_nan());
}

#[test]
fn integers_wrap_and_faults_are_found() {
    let short = |op: Op, a: i32, b: i32| op.eval(&[Lit::I32(a), Lit::I32(b)]);
    assert_eq!(short(Op::Add, i32::MAX, 1), Ok(Lit::I32(i32::MIN)));
    assert_eq!(short(Op::Mul, 65536, 65537), Ok(Lit::I32(65536)));
    assert_eq!(short(Op::IDiv, i32::MIN, -1), Ok(Lit::I32(i32::MIN)));
    assert_eq!(short(Op::IMod, -7, 2), Ok(Lit::I32(1)));
    assert_eq!(short(Op::IDiv, 1, 0), Err(Fault::DivisionByZero));
    assert_eq!(short(Op::Pow, 3, 21), Ok(Lit::I32(3i32.wrapping_pow(21))));
    assert_eq!(Op::Abs.eval(&[Lit::I32(i32::MIN)]), Ok(Lit::I32(i32::MIN)));
    let int = |op: Op, a: i64, b: i64| op.eval(&[Lit::I64(a), Lit::I64(b)]);
    assert_eq!(int(Op::Add, i64::MAX, 1), Ok(Lit::I64(i64::MIN)));
    assert_eq!(int(Op::IDiv, i64::MIN, -1), Ok(Lit::I64(i64::MIN)));
    assert_eq!(int(Op::IMod, i64::MIN, -1), Ok(Lit::I64(0)));
    for (a, b, q, m) in [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1), (6, -3, -2, 0)] {
        assert_eq!((int(Op::IDiv, a, b), int(Op::IMod, a, b)), (Ok(Lit::I64(q)), Ok(Lit::I64(m))));
    }
    assert_eq!(int(Op::IDiv, 1, 0), Err(Fault::DivisionByZero));
    assert_eq!(int(Op::IMod, 1, 0), Err(Fault::DivisionByZero));
    assert_eq!(int(Op::Pow, 3, 4), Ok(Lit::I64(81)));
    assert_eq!(int(Op::Pow, 3, -1), Err(Fault::NegativeExponent { exponent: -1 }));
    let convert = |x: f64| Op::ToI64.eval(&[Lit::F64(x)]);
    assert_eq!((convert(-2.9), convert(2.9)), (Ok(Lit::I64(-2)), Ok(Lit::I64(2))));
    assert_eq!(convert(-9.223372036854775808e18), Ok(Lit::I64(i64::MIN)));
    assert_eq!(convert(9.223372036854775808e18), Err(Fault::NoInteger { value: 9.223372036854775808e18, to: Scalar::I64 }));
    assert!(convert(f64::NAN).is_err());
    assert_eq!(value1(Op::Round, -2.5), -3.0);
    assert_eq!(value1(Op::Round, 0.5), 1.0);
}

#[test]
fn faults_survive_being_encoded() {
    for fault in [
        Fault::IndexOutOfRange { index: -1, size: 5 },
        Fault::NothingToChoose,
        Fault::DivisionByZero,
        Fault::NegativeExponent { exponent: -2 },
        Fault::NoInteger { value: 1e300, to: Scalar::I64 },
        Fault::NoInteger { value: 1e10, to: Scalar::I32 },
        Fault::TooLarge { value: i64::MIN },
    ] {
        let (code, a, b) = fault.encode();
        assert_eq!(Fault::decode(code, a, b), Some(fault));
    }
    assert_eq!(Fault::decode(0, 0, 0), None);
}

#[test]
fn gamma_functions_have_their_known_values() {
    let euler = 0.577_215_664_901_532_9;
    let pi = std::f64::consts::PI;
    let zeta3 = 1.202_056_903_159_594_2;
    let digamma = |x| value1(Op::Digamma, x);
    let polygamma = |k, x| float(Op::Polygamma.eval(&[Lit::I64(k), Lit::F64(x)]).unwrap());
    for (got, wanted) in [
        (digamma(1.0), -euler),
        (digamma(0.5), -euler - 2.0 * 2f64.ln()),
        (digamma(10.0), 2.251_752_589_066_721),
        (digamma(-0.5), 2.0 - euler - 2.0 * 2f64.ln()),
        (digamma(1e10), 1e10f64.ln() - 0.5e-10),
        (polygamma(1, 1.0), pi * pi / 6.0),
        (polygamma(1, 0.5), pi * pi / 2.0),
        (polygamma(1, -0.5), pi * pi / 2.0 + 4.0),
        (polygamma(2, 1.0), -2.0 * zeta3),
        (polygamma(2, -0.5), -14.0 * zeta3 + 16.0),
        (polygamma(3, 1.0), pi.powi(4) / 15.0),
        (polygamma(3, 100.0), 2.030_199_990_001_333e-6),
        (polygamma(20, 1.0), -2.432_903_168_507_861_5e18),
    ] {
        assert!((got - wanted).abs() <= 1e-13 * wanted.abs(), "{got} is not {wanted}");
    }
    assert!(digamma(-3.0).is_nan() && digamma(f64::NAN).is_nan());
    assert_eq!(digamma(0.0), f64::NEG_INFINITY);
    assert_eq!(digamma(f64::INFINITY), f64::INFINITY);
    assert_eq!(polygamma(1, 0.0), f64::INFINITY);
    assert_eq!(polygamma(1, f64::INFINITY), 0.0);
    assert_eq!(polygamma(0, 1.5), digamma(1.5));
}

fn c_literal(lit: Lit) -> String {
    match lit {
        Lit::F64(x) if x.is_nan() => "((double)NAN)".into(),
        Lit::F64(x) if x.is_infinite() => format!("({}INFINITY)", if x > 0.0 { "" } else { "-" }),
        Lit::F64(x) => format!("({x:?})"),
        Lit::F32(x) if !x.is_finite() => c_literal(Lit::F64(x.into())),
        Lit::F32(x) => format!("({x:?}f)"),
        Lit::I32(x) => format!("((int32_t){x}LL)"),
        Lit::I64(i64::MIN) => "INT64_MIN".into(),
        Lit::I64(x) => format!("((int64_t){x}LL)"),
        Lit::Bool(x) => format!("{}", x as i32),
    }
}

/// Every row's C gives the row's value, at sampled and at special arguments.
#[test]
fn c_agrees_with_the_values() {
    let mut numbers = Numbers(3);
    let special_floats = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let special_ints = [0, 1, -1, 2, 3, 4, -2, 7, -7, 1023, i64::MAX, i64::MIN];
    let mut calls: Vec<(Op, Vec<Lit>, Lit, String)> = vec![];
    for op in Op::ALL {
        for case in op.cases() {
            let mut points: Vec<Vec<Lit>> = (0..20).map(|_| numbers.sample(case)).collect();
            let mut special = vec![vec![]];
            for kind in case.args() {
                let values: Vec<Lit> = match kind {
                    Scalar::F64 | Scalar::F32 => special_floats.map(|x| Lit::float(*kind, x)).to_vec(),
                    Scalar::I64 | Scalar::I32 => special_ints.map(|x| Lit::integer(*kind, x)).to_vec(),
                    Scalar::Bool => vec![Lit::Bool(false), Lit::Bool(true)],
                };
                special = special.into_iter().flat_map(|p| values.iter().map(move |v| [p.clone(), vec![*v]].concat())).collect();
            }
            // The order of a polygamma function is a small number.
            points.extend(special.into_iter().filter(|p| op != Op::Polygamma || matches!(p[0].as_integer(), Some(-2..=7))));
            for args in points {
                let Ok(wanted) = op.eval(&args) else { continue };
                // Through volatile variables, so that no constant is folded.
                let code = op.c_template(case.args()).replace("{0}", "x").replace("{1}", "y");
                let names = ["x", "y"].iter().zip(&args).map(|(name, arg)| {
                    let ty = match arg.scalar() {
                        Scalar::F64 => "double",
                        Scalar::F32 => "float",
                        Scalar::I64 => "int64_t",
                        Scalar::I32 => "int32_t",
                        Scalar::Bool => "int",
                    };
                    format!("volatile {ty} {name} = {};", c_literal(*arg))
                });
                let print = match wanted {
                    Lit::F64(_) | Lit::F32(_) => format!("out_double({code});"),
                    Lit::I64(_) | Lit::I32(_) | Lit::Bool(_) => format!("printf(\"%lld\\n\", (long long){code});"),
                };
                let line = format!("{{ {} {print} }}", names.collect::<Vec<_>>().join(" "));
                calls.push((op, args, wanted, line));
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let (source, binary) = (folder.path().join("rows.c"), folder.path().join("rows"));
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/src/runtime/support/iverson_math.h");
    let mut text = format!("#include \"{header}\"\n#include <stdio.h>\n#include <string.h>\n");
    text += "static void out_double(double x) { unsigned long long b; memcpy(&b, &x, 8); printf(\"%llu\\n\", b); }\n";
    let mut main = String::from("int main(void) {\n");
    for (chunk, lines) in calls.chunks(200).enumerate() {
        let body: String = lines.iter().map(|c| format!("    {}\n", c.3)).collect();
        text += &format!("static void part{chunk}(void) {{\n{body}}}\n");
        main += &format!("    part{chunk}();\n");
    }
    std::fs::write(&source, text + &main + "    return 0;\n}\n").unwrap();
    let compiled = std::process::Command::new("cc")
        .args(["-O1", "-fwrapv", "-Wall", "-Wextra", "-Wno-unused-function", "-Werror", "-std=gnu99", "-o"])
        .args([&binary, &source])
        .arg("-lm")
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let output = String::from_utf8(std::process::Command::new(&binary).output().unwrap().stdout).unwrap();
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines.len(), calls.len());
    for ((op, args, wanted, _), line) in calls.iter().zip(lines) {
        let same = match *wanted {
            Lit::F64(w) => {
                let got = f64::from_bits(line.parse().unwrap());
                got.to_bits() == w.to_bits() || (got.is_nan() && w.is_nan()) || (got - w).abs() <= 1e-13 * w.abs()
            }
            Lit::F32(w) => {
                // Functions of the C library, and powers by repeated multiplication, have a few wrong bits.
                let got = f64::from_bits(line.parse().unwrap());
                let exact = matches!(op, Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Sqrt) || op.is_conversion();
                let (wide, tolerance) = (f64::from(w), if exact { 0.0 } else { 2e-6 });
                assert!(got as f32 as f64 == got || got.is_nan(), "{op:?}{args:?} is no f32 in C");
                let small = (got - wide).abs() <= tolerance * wide.abs() + if exact { 0.0 } else { 1e-44 };
                (got as f32).to_bits() == w.to_bits() || (got.is_nan() && w.is_nan()) || small
            }
            Lit::I64(w) => line.parse::<i64>().unwrap() == w,
            Lit::I32(w) => line.parse::<i32>().unwrap() == w,
            Lit::Bool(w) => (line != "0") == w,
        };
        assert!(same, "{op:?}{args:?} is {wanted:?}, in C {line}");
    }
}
