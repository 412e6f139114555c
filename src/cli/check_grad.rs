//! `check-grad`: are the derivatives right at this point?
//!
//! With a random cotangent `ȳ` of the result (1 if it is a number), reverse mode gives `x̄ = Jᵀ ȳ`. Each coordinate of `x̄`
//! that is looked at is compared with the derivative of `<ȳ, f(x)>` by central differences, extrapolated to step zero (Ridders).
//! Forward mode is compared as a whole: `<ȳ, J ẋ> = <x̄, ẋ>` for a random direction `ẋ`.
//!
//! Where there is an `f32`, the differences are those of the same function computed in `f64`: those of rounded results
//! would say little. What is compared is then only as good as `f32` is.

use super::derivative::{Derivative, random, tangent_type};
use super::execute::Executable;
use super::failure::Failure;
use super::options::{CheckGrad, Kind};
use super::output;
use super::progress::Progress;
use super::source::{Called, Purpose, Source};
use super::wrt::By;
use iverson::ir::widen::{has_f32, widen};
use iverson::ir::{Lit, Type};
use iverson::value::tree::Random;
use iverson::value::{Array, Value};
use serde_json::json;
use std::io::Write;

/// What is allowed by default.
struct Tolerances {
    error: f64,
    /// Both modes compute the same products in another order.
    duality: f64,
}
const DOUBLE: Tolerances = Tolerances { error: 1e-5, duality: 1e-9 };
const SINGLE: Tolerances = Tolerances { error: 1e-3, duality: 1e-4 };

pub fn check_grad(options: &CheckGrad) -> Result<(), Failure> {
    let Called { mut source, id: of, values, sizes, .. } =
        Source::called(&options.subject, &options.inputs, &options.execution, Purpose::Derivative)?;
    let asked = source.program.function(of).name.clone();
    let by = By::new(&mut source, of, &options.wrt)?;
    let (mut values, sizes) = by.arguments(&source, values, sizes)?;
    let reverse = Derivative::new(&mut source, &by, Kind::Vjp)?;
    let forward = Derivative::new(&mut source, &by, Kind::Jvp)?;
    let By { of, positions: wrt, names, .. } = by;

    let mut generator = Random::new("check-grad");
    let result_type = source.program.result_type(of).tangent().expect("a float result");
    let seed = match result_type {
        // What is compared is then the gradient itself.
        Type::Scalar(scalar) => Value::Scalar(Lit::one(scalar)),
        _ => random(&result_type, &sizes, &mut generator)?,
    };
    let directions: Vec<Value> =
        wrt.iter().map(|k| random(&tangent_type(&source, of, *k), &sizes, &mut generator)).collect::<Result<_, _>>()?;

    let run = |id, more: &[Value]| {
        let arguments: Vec<Value> = values.iter().chain(more).cloned().collect();
        Executable::new(&source, id, &options.execution, &arguments)?.call(&source, &arguments).map(second)
    };
    let adjoint = run(reverse.id, std::slice::from_ref(&seed))?;
    let tangent = run(forward.id, &directions)?;
    let adjoints: Vec<f64> = adjoint.floats();
    let direction: Vec<f64> = directions.iter().flat_map(Value::floats).collect();
    let seed = seed.floats();
    let duality = relative_difference(&products(&seed, &tangent.floats()), &products(&adjoints, &direction));

    let single = has_f32(&source.program, of);
    if single {
        source.program = widen(&source.program);
        values.iter_mut().for_each(|v| *v = v.widened());
    }
    let function = Executable::for_any_values(&source, of, &options.execution, &values)?;

    // Where each coordinate of the adjoint lies: parameter, and place among its floats.
    let counts: Vec<usize> = wrt.iter().map(|k| values[*k].floats().len()).collect();
    let locate = |mut k: usize| {
        let mut which = 0;
        while k >= counts[which] {
            k -= counts[which];
            which += 1;
        }
        (wrt[which], k)
    };
    let total: usize = counts.iter().sum();
    let mut report = Report { duality, total, ..Report::default() };
    let chosen = choose(total, options.coordinates, &mut generator);
    let progress = Progress::counted("comparing coordinate", chosen.len() as u64);
    for (done, k) in chosen.into_iter().enumerate() {
        progress.at(done as u64);
        let (param, place) = locate(k);
        let x = values[param].floats()[place];
        let mut project = |at: f64| -> Result<Vec<f64>, Failure> {
            set_float(&mut values[param], place, at);
            let result = function.call(&source, &values)?;
            Ok(result.floats())
        };
        let found = differences(x, &seed, &mut project)?;
        set_float(&mut values[param], place, x);
        let name = &names[wrt.iter().position(|k| *k == param).unwrap_or(0)];
        let ty = source.program.param_type(of, param);
        report.note(adjoints[k], found, || place_name(name, ty, &values[param], place));
    }
    drop(progress);
    report.print(&asked, options, if single { SINGLE } else { DOUBLE })
}

/// The value of a pair's second part.
fn second(pair: Value) -> Value {
    match pair {
        Value::Tuple(mut parts) if parts.len() == 2 => parts.pop().expect("two parts"),
        other => panic!("a derivative with a value gives a pair, not {}", other.describe()),
    }
}

fn products(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a * b).collect()
}

/// `|Σa - Σb|`, relative to the size of the terms.
fn relative_difference(a: &[f64], b: &[f64]) -> f64 {
    let size = |v: &[f64]| v.iter().map(|x| x.abs()).sum::<f64>();
    let difference = (a.iter().sum::<f64>() - b.iter().sum::<f64>()).abs();
    if difference == 0.0 { 0.0 } else { difference / size(a).max(size(b)) }
}

/// All places, or that many different ones.
fn choose(total: usize, most: usize, generator: &mut Random) -> Vec<usize> {
    if total <= most {
        return (0..total).collect();
    }
    let mut chosen = std::collections::BTreeSet::new();
    while chosen.len() < most {
        chosen.insert(generator.below(total));
    }
    chosen.into_iter().collect()
}

fn set_float(value: &mut Value, place: usize, to: f64) {
    let mut k = 0;
    value.for_each_float(&mut |x| {
        if k == place {
            *x = to;
        }
        k += 1;
    });
}

/// `x[1, 2]`, `t.1[0]`, `p.w[0]`
fn place_name(name: &str, ty: &Type, value: &Value, mut place: usize) -> String {
    let part_of = |k: usize| match ty {
        Type::Tuple(types) => (types.fields().map_or(k.to_string(), |fields| fields[k].clone()), &types[k]),
        Type::Scalar(_) | Type::Array(..) => (k.to_string(), ty),
    };
    if let Some((_, packed)) = ty.structured() {
        return place_name(name, packed, value, place);
    }
    if matches!(ty, Type::Tuple(types) if types.len() == 1) {
        let (field, ty) = part_of(0);
        return place_name(&format!("{name}.{field}"), ty, value, place);
    }
    match value {
        Value::Scalar(_) => name.to_string(),
        Value::Array(a) => {
            let index: Vec<String> = Array::index_of(a, place).iter().map(usize::to_string).collect();
            format!("{name}[{}]", index.join(", "))
        }
        Value::Tuple(parts) => {
            for (k, part) in parts.iter().enumerate() {
                let count = part.floats().len();
                if place < count {
                    let (field, ty) = part_of(k);
                    return place_name(&format!("{name}.{field}"), ty, part, place);
                }
                place -= count;
            }
            name.to_string()
        }
    }
}

/// A derivative by differences, and how far it may be wrong.
struct Estimate {
    value: f64,
    error: f64,
    /// Whether the slopes to both sides differ, however small the step.
    kink: bool,
}

/// Central differences at steps halved, extrapolated; the entry of the table that changes least is taken.
/// Steps that leave the function's domain are left out.
fn differences(x: f64, seed: &[f64], f: &mut impl FnMut(f64) -> Result<Vec<f64>, Failure>) -> Result<Estimate, Failure> {
    let mut best = Estimate { value: f64::NAN, error: f64::INFINITY, kink: false };
    let here = f(x)?;
    let mut row: Vec<f64> = vec![];
    let mut gaps: Vec<(f64, f64)> = vec![];
    let mut step = 0.02 * x.abs().max(0.1);
    for _ in 0..11 {
        let (above, below) = (x + step, x - step);
        let (high, low) = (f(above)?, f(below)?);
        let slope = high.iter().zip(&low).zip(seed).map(|((a, b), s)| s * (a - b)).sum::<f64>() / (above - below);
        // What rounding of the results may do to the slope.
        let noise = high.iter().zip(seed).map(|(a, s)| (a * s).abs()).sum::<f64>() * f64::EPSILON / step;
        let gap = high.iter().zip(&low).zip(&here).zip(seed).map(|(((a, b), c), s)| s * (a - 2.0 * c + b)).sum::<f64>().abs() / step;
        gaps.push((gap, noise));
        step *= 0.5;
        if !slope.is_finite() {
            row.clear();
            continue;
        }
        let mut next = vec![slope];
        let mut factor = 1.0;
        for (k, previous) in row.iter().enumerate() {
            factor *= 4.0;
            let better = (factor * next[k] - previous) / (factor - 1.0);
            let error = (better - next[k]).abs().max((better - previous).abs()).max(noise);
            if error <= best.error {
                best = Estimate { value: better, error, kink: false };
            }
            next.push(better);
        }
        row = next;
    }
    // The gap between the slopes to both sides shrinks with the step, but for a kink.
    if let (Some((first, _)), Some((last, noise))) = (gaps.first(), gaps.last()) {
        best.kink = *last > 0.3 * first && *last > 100.0 * noise && *last > 1e-3 * best.value.abs().max(1.0);
    }
    Ok(best)
}

#[derive(Default)]
struct Report {
    duality: f64,
    total: usize,
    compared: usize,
    /// Coordinates at which the differences do not settle: a kink or the edge of the domain.
    unsettled: Vec<String>,
    worst: Option<Worst>,
}

struct Worst {
    /// Relative to the derivative or 1.
    error: f64,
    /// The part of it that is not due to the differences.
    certain: f64,
    at: String,
    reverse: f64,
    differences: f64,
}

impl Report {
    fn note(&mut self, reverse: f64, found: Estimate, at: impl FnOnce() -> String) {
        let size = reverse.abs().max(found.value.abs()).max(1.0);
        self.compared += 1;
        if !found.value.is_finite() || found.kink || found.error > 1e-3 * size {
            self.unsettled.push(at());
            return;
        }
        let error = (reverse - found.value).abs();
        let error = if reverse.is_nan() { f64::INFINITY } else { error };
        // What the differences cannot know does not count.
        let certain = (error - found.error).max(0.0) / size;
        let error = error / size;
        if self.worst.as_ref().is_none_or(|w| (certain, error) > (w.certain, w.error)) {
            self.worst = Some(Worst { error, certain, at: at(), reverse, differences: found.value });
        }
    }

    fn print(&self, name: &str, options: &CheckGrad, tolerances: Tolerances) -> Result<(), Failure> {
        let error = self.worst.as_ref().map_or(0.0, |w| w.certain);
        let good = error <= options.tolerance.unwrap_or(tolerances.error) && self.duality <= tolerances.duality;
        let settled = self.compared == 0 || self.unsettled.len() < self.compared;
        if options.json {
            output::print(|out| writeln!(out, "{}", self.json(good && settled)))?;
        } else {
            output::print(|out| {
                writeln!(out, "`{name}`: {} of {} coordinates compared with finite differences", self.compared, self.total)?;
                if let Some(w) = &self.worst {
                    writeln!(
                        out,
                        "  worst error {:.1e} at {}: reverse mode {:?}, differences {:?}",
                        w.error, w.at, w.reverse, w.differences
                    )?;
                }
                if !self.unsettled.is_empty() {
                    let first = self.unsettled.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
                    let more = if self.unsettled.len() > 5 { ", ..." } else { "" };
                    writeln!(
                        out,
                        "  differences do not settle at {} of them (a kink or the edge of the domain): {first}{more}",
                        self.unsettled.len()
                    )?;
                }
                writeln!(out, "  forward and reverse mode differ by {:.1e}", self.duality)?;
                let verdict = match (good, settled) {
                    (true, true) => "ok",
                    (true, false) => "nothing could be compared: choose another point",
                    (false, _) => "wrong",
                };
                writeln!(out, "{verdict}")
            })?;
        }
        if good && settled { Ok(()) } else { Err(Failure::Told) }
    }

    fn json(&self, good: bool) -> serde_json::Value {
        // JSON has no infinities.
        let number = |x: f64| if x.is_finite() { json!(x) } else { json!(x.to_string()) };
        let mut report = json!({
            "ok": good,
            "coordinates": self.compared,
            "unsettled": self.unsettled.len(),
            "duality_error": number(self.duality),
        });
        if let Some(w) = &self.worst {
            report["worst_error"] = number(w.error);
            report["at"] = json!(w.at);
            report["reverse"] = number(w.reverse);
            report["differences"] = number(w.differences);
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slope(x: f64, f: impl Fn(f64) -> f64) -> Estimate {
        match differences(x, &[1.0], &mut |at| Ok(vec![f(at)])) {
            Ok(estimate) => estimate,
            Err(_) => panic!("no failure"),
        }
    }

    #[test]
    fn differences_are_near_the_derivative_and_know_how_near() {
        for (x, f, derivative) in [
            (0.7, f64::sin as fn(f64) -> f64, 0.7f64.cos()),
            (1e-3, f64::ln, 1e3),
            (100.0, f64::sqrt, 0.05),
            (0.0, f64::exp, 1.0),
            (3.0, |_| 5.0, 0.0),
            (1e6, |x| x * x, 2e6),
        ] {
            let found = slope(x, f);
            let error = (found.value - derivative).abs() / derivative.abs().max(1.0);
            assert!(error < 1e-7, "{x}: {error}");
            assert!((found.value - derivative).abs() <= 10.0 * found.error.max(1e-15), "{x}");
        }
        assert!(slope(0.0, f64::abs).kink && slope(1.0, |x| x.max(1.0)).kink && !slope(1e-3, f64::ln).kink);
        // Beside the domain nothing settles.
        assert!(slope(-1.0, f64::ln).value.is_nan());
    }

    #[test]
    fn chosen_places_are_different() {
        let chosen = choose(1000, 10, &mut Random::new("test"));
        assert_eq!(chosen.len(), 10);
        assert_eq!(choose(3, 10, &mut Random::new("test")), [0, 1, 2]);
    }
}
