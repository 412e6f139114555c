//! How far two values are apart.
//!
//! The distance of two numbers is `|a - b| / (absolute + relative * max(|a|, |b|))`: at most 1 within the tolerance.
//! NaN is equal to NaN, an infinity to itself; integers and truth values are equal or infinitely far.

use super::Value;
use crate::types::Lit;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    pub relative: f64,
    pub absolute: f64,
}

impl Tolerance {
    /// For results that differ by the order of additions and the last bits of functions.
    pub const ROUNDING: Tolerance = Tolerance { relative: 1e-9, absolute: 1e-11 };
    pub const EXACT: Tolerance = Tolerance { relative: 0.0, absolute: 0.0 };

    /// For `f32`, of which the last bits are worth more: a tolerance that is not exact is at least about a hundred of them.
    pub fn single(self) -> Tolerance {
        match self == Tolerance::EXACT {
            true => self,
            false => Tolerance { relative: self.relative.max(2e-5), absolute: self.absolute.max(2e-6) },
        }
    }

    pub fn distance(self, a: f64, b: f64) -> f64 {
        if a == b || (a.is_nan() && b.is_nan()) {
            return 0.0;
        }
        if !a.is_finite() || !b.is_finite() {
            return f64::INFINITY;
        }
        (a - b).abs() / (self.absolute + self.relative * a.abs().max(b.abs()))
    }
}

/// The two scalars that are farthest apart, and where: `[1, 2]`, `.0[3]`; empty for a scalar.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// In tolerances.
    pub distance: f64,
    pub at: String,
    pub left: Lit,
    pub right: Lit,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} against {}", self.left.digits(), self.right.digits())?;
        if self.at.is_empty() { Ok(()) } else { write!(f, " at {}", self.at) }
    }
}

/// The largest difference, `None` where there is none at all; an error where kinds or shapes differ.
pub fn worst(a: &Value, b: &Value, tolerance: Tolerance) -> Result<Option<Difference>, String> {
    let mut worst: Option<Difference> = None;
    walk(a, b, tolerance, &mut String::new(), &mut worst)?;
    Ok(worst)
}

/// `Ok` where all is within the tolerance, else a message.
pub fn check_close(a: &Value, b: &Value, tolerance: Tolerance) -> Result<(), String> {
    match worst(a, b, tolerance)? {
        Some(d) if d.distance > 1.0 || d.distance.is_nan() => Err(d.to_string()),
        _ => Ok(()),
    }
}

fn walk(a: &Value, b: &Value, tolerance: Tolerance, path: &mut String, worst: &mut Option<Difference>) -> Result<(), String> {
    let mut note = |a: Lit, b: Lit, at: &dyn Fn() -> String| {
        let distance = match (a, b) {
            (Lit::F64(a), Lit::F64(b)) => tolerance.distance(a, b),
            (Lit::F32(a), Lit::F32(b)) => tolerance.single().distance(a.into(), b.into()),
            (a, b) if a == b => 0.0,
            _ => f64::INFINITY,
        };
        if distance > worst.as_ref().map_or(0.0, |w| w.distance) {
            *worst = Some(Difference { distance, at: at(), left: a, right: b });
        }
    };
    match (a, b) {
        (Value::Scalar(x), Value::Scalar(y)) if x.scalar() == y.scalar() => note(*x, *y, &|| path.clone()),
        (Value::Array(x), Value::Array(y)) if x.shape == y.shape && x.scalar() == y.scalar() => {
            for k in 0..x.len() {
                note(x.data.get(k), y.data.get(k), &|| {
                    let index: Vec<String> = x.index_of(k).iter().map(usize::to_string).collect();
                    format!("{path}[{}]", index.join(", "))
                });
            }
        }
        (Value::Tuple(x), Value::Tuple(y)) if x.len() == y.len() => {
            for (k, (x, y)) in x.iter().zip(y).enumerate() {
                let length = path.len();
                *path += &format!(".{k}");
                walk(x, y, tolerance, path, worst)?;
                path.truncate(length);
            }
        }
        _ => return Err(format!("{} against {}", a.describe(), b.describe())),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_where_and_how_far() {
        let a = Value::Tuple(vec![Value::from(1i64), Value::from(vec![1.0, f64::NAN, 3.0])]);
        let b = Value::Tuple(vec![Value::from(1i64), Value::from(vec![1.0, f64::NAN, 3.5])]);
        assert_eq!(check_close(&a, &a, Tolerance::EXACT), Ok(()));
        assert_eq!(check_close(&a, &b, Tolerance::ROUNDING), Err("3.0 against 3.5 at .1[2]".into()));
        assert_eq!(check_close(&a, &b, Tolerance { relative: 0.2, absolute: 0.0 }), Ok(()));
        assert!(check_close(&Value::from(1i64), &Value::from(1.0), Tolerance::ROUNDING).is_err());
        assert!(check_close(&Value::from(f64::INFINITY), &Value::from(1.0), Tolerance::ROUNDING).is_err());
        assert!(check_close(&Value::from(f64::INFINITY), &Value::from(f64::INFINITY), Tolerance::EXACT).is_ok());
        assert!(check_close(&Value::from(f64::NAN), &Value::from(1.0), Tolerance::ROUNDING).is_err());
    }
}
