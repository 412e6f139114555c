//! `run`, and the derivatives at given values.

use super::derivative::{Derivative, wrt_positions};
use super::execute::Executable;
use super::failure::Failure;
use super::inputs::Given;
use super::options::{Call, Directional, Kind, Seeded, Wrt};
use super::output;
use super::source::Source;
use iverson::value::named::Named;

pub fn run(call: &Call) -> Result<(), Failure> {
    let (source, id) = Source::subject(&call.subject)?;
    let (values, _) = Given::new(&call.inputs, &source.program, id)?.arguments(&source.program, id)?;
    let result = Executable::new(&source, id, &call.execution)?.call_watched(&source, &values)?;
    output::write(&Named::labelled(result, source.program.result_type(id)), &call.output)
}

/// Derivatives that take no more than the parameters.
pub fn derivative(call: &Call, kind: Kind, wrt: &Wrt) -> Result<(), Failure> {
    let (mut source, of) = Source::subject(&call.subject)?;
    let wrt = wrt_positions(&source, of, wrt)?;
    let (values, _) = Given::new(&call.inputs, &source.program, of)?.arguments(&source.program, of)?;
    let derivative = Derivative::new(&mut source, of, kind, wrt)?;
    let result = Executable::new(&source, derivative.id, &call.execution)?.call_watched(&source, &values)?;
    output::write(&derivative.named(&source, result), &call.output)
}

pub fn directional(d: &Directional, kind: Kind) -> Result<(), Failure> {
    let (mut source, of) = Source::subject(&d.call.subject)?;
    let wrt = wrt_positions(&source, of, &d.wrt)?;
    let mut given = Given::new(&d.call.inputs, &source.program, of)?;
    let (mut values, sizes) = given.arguments(&source.program, of)?;
    let derivative = Derivative::new(&mut source, of, kind, wrt)?;
    values.extend(derivative.directions(&source, &d.directions.dir, &mut given, &sizes)?);
    let result = Executable::new(&source, derivative.id, &d.call.execution)?.call_watched(&source, &values)?;
    output::write(&derivative.named(&source, result), &d.call.output)
}

pub fn seeded(d: &Seeded) -> Result<(), Failure> {
    let (mut source, of) = Source::subject(&d.call.subject)?;
    let wrt = wrt_positions(&source, of, &d.wrt)?;
    let mut given = Given::new(&d.call.inputs, &source.program, of)?;
    let (mut values, sizes) = given.arguments(&source.program, of)?;
    let derivative = Derivative::new(&mut source, of, Kind::Vjp, wrt)?;
    values.push(derivative.seed(&source, d.seed.seed.as_deref(), &mut given, &sizes)?);
    let result = Executable::new(&source, derivative.id, &d.call.execution)?.call_watched(&source, &values)?;
    output::write(&derivative.named(&source, result), &d.call.output)
}
