//! `run`, and the derivatives at given values.

use super::derivative::Derivative;
use super::execute::Executable;
use super::failure::Failure;
use super::options::{Call, Directional, Kind, MatrixDerivative, Seeded, Storage, Wrt};
use super::output;
use super::source::{Called, Purpose, Source};
use super::wrt::By;
use iverson::value::named::Named;
use std::io::Write;

pub fn run(call: &Call) -> Result<(), Failure> {
    let Called { source, id, values, .. } = Source::called(&call.subject, &call.inputs, &call.execution, Purpose::Value)?;
    let result = Executable::new(&source, id, &call.execution, &values)?.call_watched(&source, &values)?;
    output::write(&Named::labelled(result, source.program.result_type(id)), &call.output)
}

/// Derivatives that take no more than the parameters.
pub fn derivative(call: &Call, kind: Kind, wrt: &Wrt) -> Result<(), Failure> {
    let named = computed(call, kind, wrt, Storage::default())?;
    output::write(&named, &call.output)
}

/// Derivatives that are matrices, dense or sparse.
pub fn matrix(d: &MatrixDerivative, kind: Kind) -> Result<(), Failure> {
    let named = computed(&d.call, kind, &d.wrt, d.storage)?;
    if !d.picture {
        return output::write(&named, &d.call.output);
    }
    let mut pictures = vec![];
    named.for_each_matrix("", &mut |name, matrix| pictures.push((name.to_string(), matrix)));
    output::print(|out| {
        for (name, matrix) in pictures {
            if !name.is_empty() {
                writeln!(out, "{name}:")?;
            }
            match matrix {
                Ok(matrix) => write!(out, "{}", matrix.picture(PICTURE))?,
                Err(e) => writeln!(out, "{e}")?,
            }
        }
        Ok(())
    })
}

/// The most characters of a picture in a line.
const PICTURE: usize = 80;

fn computed(call: &Call, kind: Kind, wrt: &Wrt, storage: Storage) -> Result<Named, Failure> {
    let Called { mut source, id: of, values, sizes, .. } =
        Source::called(&call.subject, &call.inputs, &call.execution, Purpose::Derivative)?;
    let by = By::new(&mut source, of, wrt)?;
    let (values, _) = by.arguments(&source, values, sizes)?;
    let derivative = Derivative::stored(&mut source, &by, kind, storage)?;
    let values = derivative.with_sizes(&source, values, &call.execution)?;
    let result = Executable::new(&source, derivative.id, &call.execution, &values)?.call_watched(&source, &values)?;
    Ok(derivative.named(&source, result))
}

pub fn directional(d: &Directional, kind: Kind) -> Result<(), Failure> {
    let Called { mut source, id: of, mut given, values, sizes, .. } =
        Source::called(&d.call.subject, &d.call.inputs, &d.call.execution, Purpose::Derivative)?;
    let by = By::new(&mut source, of, &d.wrt)?;
    let (mut values, sizes) = by.arguments(&source, values, sizes)?;
    let derivative = Derivative::new(&mut source, &by, kind)?;
    values.extend(derivative.directions(&source, &d.directions.dir, &mut given, &sizes)?);
    let result = Executable::new(&source, derivative.id, &d.call.execution, &values)?.call_watched(&source, &values)?;
    output::write(&derivative.named(&source, result), &d.call.output)
}

pub fn seeded(d: &Seeded) -> Result<(), Failure> {
    let Called { mut source, id: of, mut given, values, sizes, .. } =
        Source::called(&d.call.subject, &d.call.inputs, &d.call.execution, Purpose::Derivative)?;
    let by = By::new(&mut source, of, &d.wrt)?;
    let (mut values, sizes) = by.arguments(&source, values, sizes)?;
    let derivative = Derivative::new(&mut source, &by, Kind::Vjp)?;
    values.push(derivative.seed(&source, d.seed.seed.as_deref(), &mut given, &sizes)?);
    let result = Executable::new(&source, derivative.id, &d.call.execution, &values)?.call_watched(&source, &values)?;
    output::write(&derivative.named(&source, result), &d.call.output)
}
