//! Sparse Jacobians are the dense one.

use super::stages::{alone, tolerance};
use super::with_sizes;
use iverson::check::{self, DerivativeKind, Format, Storage};
use iverson::interpret;
use iverson::ir::print::print_program;
use iverson::ir::verify::verify;
use iverson::ir::{FunctionId, Program, Scalar, Triangle};
use iverson::pipeline;
use iverson::types::Type;
use iverson::value::sparse::{self, Coo};
use iverson::value::{Array, Value};

/// Matrices with more places are not compared.
const LARGEST: usize = 40_000;

/// In both modes the entries of the Jacobian add up to the dense one, in coordinates and in compressed rows, for each part
/// and for all together; compressed rows are sorted, each place once. So do those of the Hessian of a function that gives one
/// float, of which there is one triangle on request. `Ok(false)` where there is nothing to compare.
pub fn check_sparse(program: &Program, id: FunctionId, args: &[Value]) -> Result<bool, String> {
    let function = program.function(id);
    let differentiable = function.result.has_float() && function.params.iter().any(|p| program.vars.ty(*p).has_float());
    if !differentiable || function.hidden.is_some() || interpret_prepared(program, id, args).is_err() {
        return Ok(false);
    }
    use DerivativeKind::{Hessian, JacFwd, JacRev};
    let compared = compare(program, id, args, JacRev, &[JacFwd, JacRev], number_of_parts(&function.result))?;
    if matches!(function.result, Type::Scalar(_)) {
        let rows = function.params.iter().map(|p| number_of_parts(program.vars.ty(*p))).sum();
        compare(program, id, args, Hessian, &[Hessian], rows)?;
    }
    Ok(compared)
}

/// Whether the entries of some derivatives add up to a dense one, which has so many matrices below each other.
fn compare(
    program: &Program,
    id: FunctionId,
    args: &[Value],
    dense: DerivativeKind,
    kinds: &[DerivativeKind],
    rows: usize,
) -> Result<bool, String> {
    let mut with_dense = program.clone();
    let dense = check::derive(&mut with_dense, id, dense, None).map_err(|d| d.message)?;
    let Ok(dense) = interpret_prepared(&with_dense, dense, args) else { return Ok(false) };
    let mut wanted = vec![];
    numbers(&dense, &mut wanted);
    if wanted.iter().map(Vec::len).sum::<usize>() > LARGEST {
        return Ok(false);
    }
    let tolerance = tolerance(program, id);
    for kind in kinds {
        let mut shapes = vec![];
        let mut layouts = vec![(Format::Coo, false, None), (Format::Csr, true, None)];
        if *kind == DerivativeKind::Hessian {
            layouts.push((Format::Coo, true, Some(Triangle::Lower)));
        }
        for (format, stack, triangle) in layouts {
            let what = || format!("{} in {}{}", kind.name(), format.name(), if stack { ", stacked" } else { "" });
            // Half of them with narrow indices.
            let index = if format == Format::Csr { Scalar::I32 } else { Scalar::I64 };
            let (program, sparse) = derived(program, id, *kind, Storage { format, stack, triangle, index })?;
            let args = with_sizes(&program, sparse, args.to_vec()).map_err(|e| format!("{}: the sizes fail: {e}", what()))?;
            let value = interpret_prepared(&program, sparse, &args).map_err(|e| format!("{}: {e}", what()))?;
            let mut found = vec![];
            matrices(&value, &mut found).map_err(|e| format!("{}: {e}", what()))?;
            let mut wanted = if stack {
                vec![stacked(&wanted, &shapes, rows)]
            } else {
                shapes = found.iter().map(|m| m.shape).collect();
                wanted.clone()
            };
            if found.len() != wanted.len() {
                return Err(format!("{}: {} matrices, but the dense one has {}", what(), found.len(), wanted.len()));
            }
            if triangle.is_some() {
                let columns = found[0].shape[1];
                wanted[0].iter_mut().enumerate().filter(|(k, _)| k % columns > k / columns).for_each(|(_, x)| *x = 0.0);
            }
            let sums: Vec<Vec<f64>> = found.iter().map(dense_of).collect();
            let (a, b): (Vec<f64>, Vec<f64>) = (sums.concat(), wanted.concat());
            // A zero of a derivative is strong: it may be zero where the dense one has the product of zero and infinity.
            let strange = b.iter().any(|x| !x.is_finite());
            let close = |x: &f64, y: &f64| tolerance.distance(*x, *y) <= 1.0 || !y.is_finite();
            if !strange && (a.len() != b.len() || !a.iter().zip(&b).all(|(x, y)| close(x, y))) {
                return Err(format!("{} is\n{a:?}\nbut the dense one is\n{b:?}", what()));
            }
        }
    }
    Ok(true)
}

/// How many matrices there are in a column of them: one for each part of the result that is of floats.
fn number_of_parts(result: &Type) -> usize {
    match result {
        Type::Tuple(parts) => parts.iter().map(number_of_parts).sum(),
        Type::Scalar(_) | Type::Array(..) => result.has_float() as usize,
    }
}

/// Dense matrices, in rows of as many as there are parameters, as one.
fn stacked(blocks: &[Vec<f64>], shapes: &[[usize; 2]], results: usize) -> Vec<f64> {
    let across = blocks.len() / results;
    let mut all = vec![];
    for (blocks, shapes) in blocks.chunks(across).zip(shapes.chunks(across)) {
        for row in 0..shapes[0][0] {
            blocks.iter().zip(shapes).for_each(|(block, shape)| all.extend(&block[row * shape[1]..(row + 1) * shape[1]]));
        }
    }
    all
}

/// The program with a sparse derivative of a function.
pub fn derived(program: &Program, id: FunctionId, kind: DerivativeKind, storage: Storage) -> Result<(Program, FunctionId), String> {
    let mut program = program.clone();
    let id = check::derive_stored(&mut program, id, kind, None, Some(storage)).map_err(|d| d.message)?;
    Ok((program, id))
}

/// The value of a call of the prepared function, which must verify after every pass.
fn interpret_prepared(program: &Program, id: FunctionId, args: &[Value]) -> Result<Value, String> {
    let mut wrong = None;
    let prepared = pipeline::prepare_observed(program, id, None, &mut |pass, program| {
        if wrong.is_none() {
            let verified = verify(&alone(program, id).0);
            wrong = verified.err().map(|e| format!("after {pass}, the program does not verify: {e}\n{}", print_program(program)));
        }
    });
    // Not an error of the call, which may well fail.
    assert!(wrong.is_none(), "{}", wrong.unwrap_or_default());
    interpret::call(&prepared, id, args).map(|(value, _)| value).map_err(|f| f.message)
}

fn numbers(value: &Value, out: &mut Vec<Vec<f64>>) {
    match value {
        Value::Tuple(parts) => parts.iter().for_each(|p| numbers(p, out)),
        leaf => out.push(leaf.floats()),
    }
}

/// The matrices of a value, which are tuples of four arrays.
fn matrices(value: &Value, out: &mut Vec<Coo>) -> Result<(), String> {
    let Value::Tuple(parts) = value else { return Err(format!("{} is no matrix", value.describe())) };
    let is_array = |v: &Value| matches!(v, Value::Array(_));
    if parts.len() != 4 || !parts.iter().all(is_array) {
        return parts.iter().try_for_each(|p| matrices(p, out));
    }
    let as_coo = sparse::of_parts(sparse::Format::Coo, parts);
    let matrix = match as_coo {
        Ok(matrix) => matrix,
        Err(_) => {
            let matrix = sparse::of_parts(sparse::Format::Csr, parts).map_err(|e| e.to_string())?;
            let sorted = matrix.row.iter().zip(&matrix.col).collect::<Vec<_>>();
            if !sorted.is_sorted_by(|a, b| a < b) {
                return Err(format!("the rows are not sorted, or have a place twice: {sorted:?}"));
            }
            matrix
        }
    };
    out.push(matrix);
    Ok(())
}

fn dense_of(matrix: &Coo) -> Vec<f64> {
    let mut dense = vec![0.0; matrix.shape[0] * matrix.shape[1]];
    let data = Value::Array(Array::new(vec![matrix.data.len()], matrix.data.clone())).floats();
    for ((i, j), x) in matrix.row.iter().zip(&matrix.col).zip(data) {
        dense[i * matrix.shape[1] + j] += x;
    }
    dense
}
