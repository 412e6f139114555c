//! Scalar functions that Rust's `f64` lacks. `runtime/support/iverson_math.h` has the same algorithms in C.

use crate::fault::Fault;
use crate::types::size::floor_div;
use crate::types::{Lit, Scalar};
use std::f64::consts::PI;

/// -1, 0 or 1; zeros and NaN are themselves.
pub fn sign(x: f64) -> f64 {
    if x > 0.0 {
        1.0
    } else if x < 0.0 {
        -1.0
    } else {
        x
    }
}

/// The first argument wins ties, NaN wins over numbers.
pub fn max(x: f64, y: f64) -> f64 {
    if x >= y || x.is_nan() { x } else { y }
}
pub fn min(x: f64, y: f64) -> f64 {
    if x <= y || x.is_nan() { x } else { y }
}

/// Right in both tails: where `exp(-x)` overflows, the quotient is 0.
pub fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// `x^k` by repeated squaring, the smallest powers first.
pub fn powi(x: f64, k: i64) -> f64 {
    let mut left = k.unsigned_abs();
    let (mut power, mut base) = (1.0, x);
    while left != 0 {
        if left & 1 == 1 {
            power *= base;
        }
        base *= base;
        left >>= 1;
    }
    if k < 0 { 1.0 / power } else { power }
}

/// `n^k`, wrapping like all integer arithmetic.
pub fn int_pow(n: i64, k: i64) -> Result<i64, Fault> {
    if k < 0 {
        return Err(Fault::NegativeExponent { exponent: k });
    }
    let (mut left, mut power, mut base) = (k, 1i64, n);
    while left != 0 {
        if left & 1 == 1 {
            power = power.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        left >>= 1;
    }
    Ok(power)
}

/// Floored division: the remainder has the divisor's sign.
pub fn int_div(a: i64, b: i64) -> Result<i64, Fault> {
    if b == 0 { Err(Fault::DivisionByZero) } else { Ok(floor_div(a, b)) }
}
pub fn int_mod(a: i64, b: i64) -> Result<i64, Fault> {
    if b == 0 { Err(Fault::DivisionByZero) } else { Ok(a.wrapping_sub(b.wrapping_mul(floor_div(a, b)))) }
}

/// `a`, which must be at most `b`; an index of `n` places; `a`, which must be `b`.
pub fn int_bounded(a: i64, b: i64) -> Result<i64, Fault> {
    if a <= b { Ok(a) } else { Err(Fault::TooManySteps { bound: b }) }
}
pub fn int_within(i: i64, n: i64) -> Result<i64, Fault> {
    if (0..n).contains(&i) { Ok(i) } else { Err(Fault::IndexOutOfRange { index: i, size: n.max(0) }) }
}
pub fn int_agreed(a: i64, b: i64) -> Result<i64, Fault> {
    if a == b { Ok(a) } else { Err(Fault::SizesDiffer { found: a, wanted: b }) }
}

/// Rounds to the nearest float, drops the fraction for an integer.
pub fn convert(lit: Lit, to: Scalar) -> Result<Lit, Fault> {
    Ok(match (to, lit) {
        (Scalar::F64, Lit::F64(x)) => Lit::F64(x),
        (Scalar::F64, Lit::F32(x)) => Lit::F64(x.into()),
        (Scalar::F64, Lit::I64(x)) => Lit::F64(x as f64),
        (Scalar::F64, Lit::I32(x)) => Lit::F64(x.into()),
        (Scalar::F32, Lit::F64(x)) => Lit::F32(x as f32),
        (Scalar::F32, Lit::F32(x)) => Lit::F32(x),
        (Scalar::F32, Lit::I64(x)) => Lit::F32(x as f32),
        (Scalar::F32, Lit::I32(x)) => Lit::F32(x as f32),
        (Scalar::I64, Lit::F64(x)) => Lit::I64(to_int(x, Scalar::I64)?),
        (Scalar::I64, Lit::F32(x)) => Lit::I64(to_int(x.into(), Scalar::I64)?),
        (Scalar::I64, Lit::I64(x)) => Lit::I64(x),
        (Scalar::I64, Lit::I32(x)) => Lit::I64(x.into()),
        (Scalar::I32, Lit::F64(x)) => Lit::I32(to_int(x, Scalar::I32)? as i32),
        (Scalar::I32, Lit::F32(x)) => Lit::I32(to_int(x.into(), Scalar::I32)? as i32),
        (Scalar::I32, Lit::I64(x)) => Lit::I32(i32::try_from(x).map_err(|_| Fault::TooLarge { value: x })?),
        (Scalar::I32, Lit::I32(x)) => Lit::I32(x),
        (to, Lit::Bool(x)) => Lit::small(to, x.into()),
        (Scalar::Bool, lit) => panic!("{lit:?} is converted to a truth value"),
    })
}

fn to_int(value: f64, to: Scalar) -> Result<i64, Fault> {
    // All bounds are floats; the upper ones are the first that do not fit.
    let fits = match to {
        Scalar::I32 => value > -2147483649.0 && value < 2147483648.0,
        _ => value >= -9223372036854775808.0 && value < 9223372036854775808.0,
    };
    if fits { Ok(value as i64) } else { Err(Fault::NoInteger { value, to }) }
}

/// The derivative of `lgamma`. At the poles 0 and -0 it is infinite, at the negative whole numbers NaN.
pub fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return -1.0 / x;
    }
    if x < 0.0 {
        let fraction = x - x.floor();
        if fraction == 0.0 || x.is_infinite() {
            return f64::NAN;
        }
        // ψ(x) = ψ(1 - x) - π / tan(π x), the tangent having period 1 in x.
        return digamma(1.0 - x) - PI / (PI * fraction).tan();
    }
    let (mut x, mut below) = (x, 0.0);
    while x < 10.0 {
        below += 1.0 / x;
        x += 1.0;
    }
    let inverse = 1.0 / x;
    let z = inverse * inverse;
    let series = z
        * (1.0 / 12.0
            - z * (1.0 / 120.0
                - z * (1.0 / 252.0
                    - z * (1.0 / 240.0 - z * (1.0 / 132.0 - z * (691.0 / 32760.0 - z * (1.0 / 12.0 - z * (3617.0 / 8160.0))))))));
    x.ln() - 0.5 * inverse - series - below
}

/// The derivative of order `order` of `digamma`: `(-1)^(k+1) k! ζ(k + 1, x)`, for negative `x` by summing the terms on
/// either side of the pole at 0.
pub fn polygamma(order: i64, x: f64) -> f64 {
    if order < 0 || x.is_nan() {
        return f64::NAN;
    }
    if order == 0 {
        return digamma(x);
    }
    let s = order as f64 + 1.0;
    let odd = order % 2 == 1;
    let sum = if x > 0.0 {
        zeta(s, x)
    } else {
        let fraction = x - x.floor();
        if fraction == 0.0 || x.is_infinite() {
            return if odd { f64::INFINITY } else { f64::NAN };
        }
        let below = zeta(s, 1.0 - fraction) - zeta(s, 1.0 - x);
        if odd { zeta(s, fraction) + below } else { zeta(s, fraction) - below }
    };
    let mut factorial = 1.0;
    for k in 2..=order.min(171) {
        factorial *= k as f64;
    }
    if odd { factorial * sum } else { -factorial * sum }
}

/// Hurwitz's `ζ(s, x) = sum k in 0... (x + k)^-s` for `x > 0`, `s >= 2`, by Euler and Maclaurin's formula.
fn zeta(s: f64, x: f64) -> f64 {
    // B(2j) / (2j)!
    const COEFFICIENTS: [f64; 10] = [
        1.0 / 12.0,
        -1.0 / 720.0,
        1.0 / 30240.0,
        -1.0 / 1209600.0,
        1.0 / 47900160.0,
        -691.0 / 1307674368000.0,
        1.0 / 74724249600.0,
        -3617.0 / 10670622842880000.0,
        43867.0 / 5109094217170944000.0,
        -174611.0 / 802857662698291200000.0,
    ];
    if x.is_infinite() {
        return 0.0;
    }
    let (mut a, mut sum) = (x, 0.0);
    // The terms of the series shrink while a is well above s; where s is large, few terms of the sum matter.
    while a < 10.0 + s {
        let term = a.powf(-s);
        sum += term;
        if term < 1e-17 * sum {
            return sum;
        }
        a += 1.0;
    }
    let power = a.powf(-s);
    sum += power * a / (s - 1.0) + 0.5 * power;
    let mut factor = s * power / a;
    for (j, c) in COEFFICIENTS.iter().enumerate() {
        sum += c * factor;
        let k = s + 2.0 * j as f64;
        factor *= (k + 1.0) * (k + 2.0) / (a * a);
    }
    sum
}
