//! Values for a function's parameters: by name, in order, with the sizes that their shapes give.
//!
//! A size is bound by the first axis that is just its name; all other axes are then checked against it. An axis that
//! is an expression in one unknown size (`[n + 1]`) is solved for it.

use crate::ir::{FunctionId, Program, Size, Type, Var};
use crate::types::Lit;
use crate::types::describe::describe_shape;
use crate::value::array::describe_dimensions;
use crate::value::{Array, Error, Value};
use rustc_hash::FxHashMap;

/// What a parameter can be bound to: values, however they are held.
pub trait Argument: Sized {
    fn view(&self) -> View<'_, Self>;
}
pub enum View<'a, T> {
    Scalar(Lit),
    Array(&'a Array),
    Tuple(&'a [T]),
}
impl Argument for Value {
    fn view(&self) -> View<'_, Value> {
        match self {
            Value::Scalar(lit) => View::Scalar(*lit),
            Value::Array(array) => View::Array(array),
            Value::Tuple(parts) => View::Tuple(parts),
        }
    }
}

/// The sizes of a call, and the values of its `i64` parameters.
pub type Sizes = FxHashMap<Var, i64>;

/// Asks `given` for the value of each parameter that callers give, converted to its type; all that are missing are named
/// in one error.
pub fn arguments(
    program: &Program,
    id: FunctionId,
    given: &mut impl FnMut(&str, &Type) -> Result<Option<Value>, Error>,
) -> Result<Vec<Value>, Error> {
    let f = program.function(id);
    let mut values = vec![];
    let mut missing = vec![];
    for (k, param) in f.visible() {
        match given(program.vars.name(param), program.param_type(id, k))? {
            Some(value) => values.push(value),
            None => missing.push(parameter(program, id, k)),
        }
    }
    match missing.as_slice() {
        [] => Ok(values),
        _ => Err(Error::new(format!("`{}` needs {}", f.name, missing.join(", ")))
            .note("give values as `name=value`, or in a file: `--data file.npz`")),
    }
}

/// `x: [n]f64`
pub fn parameter(program: &Program, id: FunctionId, k: usize) -> String {
    let name = |v: Var| program.vars.name(v).to_string();
    format!("`{}: {}`", name(program.function(id).params[k]), program.param_type(id, k).describe_fully(&name))
}

/// The sizes that values give to a function's parameters, or what does not fit.
pub fn sizes(program: &Program, id: FunctionId, values: &[impl Argument]) -> Result<Sizes, Error> {
    let f = program.function(id);
    assert_eq!(f.params.len(), values.len(), "one value for each parameter of {}", f.name);
    let mut binder = Binder { program, unknown: &f.sizes, sizes: Sizes::default(), bound_by: FxHashMap::default(), axes: vec![] };
    for (k, (param, value)) in f.params.iter().zip(values).enumerate() {
        let name = program.vars.name(*param);
        if let View::Scalar(Lit::I64(k)) = value.view() {
            binder.sizes.insert(*param, k);
            binder.bound_by.insert(*param, format!("`{name}`"));
        }
        binder.collect(name.to_string(), program.param_type(id, k), value)?;
    }
    binder.solve()?;
    Ok(binder.sizes)
}

fn describe<T>(view: &View<'_, T>) -> String {
    match view {
        View::Scalar(lit) => Value::Scalar(*lit).describe(),
        View::Array(array) => format!("{} of {}", describe_dimensions(&array.shape), array.scalar().name()),
        View::Tuple(parts) => format!("a tuple of {}", parts.len()),
    }
}

/// One axis of an argument.
struct Axis {
    /// `x`, or `t.1` for a part of a tuple, `p.w` for a field of a record.
    argument: String,
    types: Vec<Size>,
    shape: Vec<usize>,
    axis: usize,
}

struct Binder<'a> {
    program: &'a Program,
    unknown: &'a [Var],
    sizes: Sizes,
    /// Which argument gave a size, for messages.
    bound_by: FxHashMap<Var, String>,
    axes: Vec<Axis>,
}

impl Binder<'_> {
    fn name(&self, v: Var) -> String {
        self.program.vars.name(v).to_string()
    }

    /// Notes every axis, and checks that kinds agree.
    fn collect(&mut self, argument: String, ty: &Type, value: &impl Argument) -> Result<(), Error> {
        let fits = match (ty, value.view()) {
            (Type::Scalar(s), View::Scalar(lit)) => *s == lit.scalar(),
            (Type::Array(types, s), View::Array(a)) if *s == a.scalar() && types.len() == a.rank() => {
                for axis in 0..types.len() {
                    self.axes.push(Axis { argument: argument.clone(), types: types.clone(), shape: a.shape.clone(), axis });
                }
                true
            }
            (Type::Tuple(types), _) if types.structure().is_some() => return self.collect(argument, &types[0], value),
            // A record of one field is that field.
            (Type::Tuple(types), _) if types.len() == 1 => {
                let field = types.fields().map_or("0", |fields| &fields[0]);
                return self.collect(format!("{argument}.{field}"), &types[0], value);
            }
            (Type::Tuple(types), View::Tuple(parts)) if types.len() == parts.len() => {
                for (k, (ty, part)) in types.iter().zip(parts).enumerate() {
                    let part_name = types.fields().map_or(k.to_string(), |fields| fields[k].clone());
                    self.collect(format!("{argument}.{part_name}"), ty, part)?;
                }
                true
            }
            _ => false,
        };
        let expected = || ty.describe(&|v| self.name(v));
        if fits {
            Ok(())
        } else {
            Err(Error::new(format!("argument `{argument}`: expected {}, got {}", expected(), describe(&value.view()))))
        }
    }

    fn solve(&mut self) -> Result<(), Error> {
        let mut axes = std::mem::take(&mut self.axes);
        // Names first, wherever they stand; then expressions, as long as one of them gives a new size.
        for axis in &axes {
            if let Some(v) = axis.types[axis.axis].as_var().filter(|v| self.unknown.contains(v) && !self.sizes.contains_key(v)) {
                self.bind(v, axis.shape[axis.axis] as i64, axis);
            }
        }
        loop {
            let before = axes.len();
            let mut waiting = vec![];
            for axis in axes {
                match self.unknown_in(&axis.types[axis.axis]).as_slice() {
                    [] => self.check(&axis)?,
                    [v] => self.solve_for(*v, &axis)?,
                    _ => waiting.push(axis),
                }
            }
            if waiting.is_empty() {
                break;
            }
            if waiting.len() == before {
                let axis = &waiting[0];
                let unknown: Vec<String> = self.unknown_in(&axis.types[axis.axis]).iter().map(|v| format!("`{}`", self.name(*v))).collect();
                return Err(Error::new(format!("the arguments do not tell {}", unknown.join(" and "))).note(format!(
                    "`{}` has shape {}",
                    axis.argument,
                    describe_shape(&axis.types, &|v| self.name(v))
                )));
            }
            axes = waiting;
        }
        match self.unknown.iter().find(|v| !self.sizes.contains_key(v)) {
            Some(v) => Err(Error::new(format!("the arguments do not tell `{}`", self.name(*v)))),
            None => Ok(()),
        }
    }

    fn bind(&mut self, v: Var, value: i64, axis: &Axis) {
        self.sizes.insert(v, value);
        self.bound_by.insert(v, format!("`{}`", axis.argument));
    }

    fn unknown_in(&self, size: &Size) -> Vec<Var> {
        let mut vars = vec![];
        size.variables(&mut vars);
        vars.sort();
        vars.dedup();
        vars.retain(|v| !self.sizes.contains_key(v));
        vars
    }

    fn evaluate(&self, size: &Size) -> Option<i64> {
        size.evaluate(&|v| self.sizes.get(&v).copied())
    }

    fn check(&self, axis: &Axis) -> Result<(), Error> {
        let size = &axis.types[axis.axis];
        let given = axis.shape[axis.axis] as i64;
        match self.evaluate(size) {
            Some(p) if p.max(0) == given => Ok(()),
            _ => Err(self.mismatch(axis)),
        }
    }

    /// Where the axis is `c * v + rest`, `v` is what makes it the given length.
    fn solve_for(&mut self, v: Var, axis: &Axis) -> Result<(), Error> {
        let size = &axis.types[axis.axis];
        let given = axis.shape[axis.axis] as i64;
        let at = |x: i64| size.evaluate(&|w| if w == v { Some(x) } else { self.sizes.get(&w).copied() });
        // Of a triangle the side, which is affine.
        let triangle = || {
            let base = size.base()?;
            let near = (2.0 * given as f64).sqrt() as i64;
            let side = (near.saturating_sub(2).max(0)..=near + 1).find(|s| s * (s + 1) / 2 == given)?;
            let at = |x: i64| base.evaluate(&|w| if w == v { Some(x) } else { self.sizes.get(&w).copied() });
            let (zero, one) = (at(0)?, at(1)?);
            let x = side.checked_sub(zero)?.checked_div(one - zero)?;
            (x >= 0 && at(x) == Some(side)).then_some(x)
        };
        let solution = at(0).zip(at(1)).and_then(|(a, b)| {
            let c = b.checked_sub(a).filter(|c| *c != 0)?;
            let x = given.checked_sub(a)? / c;
            // Exact, and truly affine: the expression gives back the length.
            (x >= 0 && at(x) == Some(given)).then_some(x)
        });
        match solution.or_else(triangle) {
            Some(x) => {
                self.bind(v, x, axis);
                Ok(())
            }
            None => {
                let shape = describe_shape(&axis.types, &|w| self.name(w));
                Err(Error::new(format!("`{}` has shape {:?}, but no `{}` makes that {shape}", axis.argument, axis.shape, self.name(v))))
            }
        }
    }

    fn mismatch(&self, axis: &Axis) -> Error {
        let size = &axis.types[axis.axis];
        let mut message = format!("`{}` has shape {:?}, but ", axis.argument, axis.shape);
        let mut vars = vec![];
        size.variables(&mut vars);
        vars.sort();
        vars.dedup();
        let origins: Vec<String> = vars
            .iter()
            .map(|v| {
                let from = self.bound_by.get(v).filter(|from| **from != format!("`{}`", self.name(*v)));
                let from = from.map(|from| format!(" from {from}")).unwrap_or_default();
                format!("`{}` = {}{from}", self.name(*v), self.sizes[v])
            })
            .collect();
        match (vars.is_empty(), size.as_var()) {
            (true, _) => message += &format!("axis {} has size {}", axis.axis, size.describe(&|v| self.name(v))),
            (_, Some(_)) => message += &origins.join(" and "),
            (_, None) => {
                let value = self.evaluate(size).map_or("too large or undefined".to_string(), |p| p.max(0).to_string());
                message +=
                    &format!("axis {} is `{}` = {value} with {}", axis.axis, size.describe(&|v| self.name(v)), origins.join(" and "));
            }
        }
        Error::new(message).note(format!("`{}` is declared {}", axis.argument, describe_shape(&axis.types, &|v| self.name(v))))
    }
}

/// The name most like the one that was meant, if any is near.
pub fn nearest<'a>(meant: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = meant.chars().count();
    let limit = (1 + length / 3).min(length / 2);
    names.into_iter().map(|name| (edit_distance(meant, name), name)).filter(|(d, _)| *d <= limit).min_by_key(|(d, _)| *d).map(|(_, n)| n)
}

/// Insertions, deletions and changes of letters; case does not count.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.to_lowercase().chars().collect(), b.to_lowercase().chars().collect());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Span;
    use crate::ir::{Body, Function, Scalar, build};

    /// A function of parameters whose shapes are given in the sizes `n` and `m`.
    fn program(params: impl Fn(&Size, &Size) -> Vec<(&'static str, Type)>) -> Program {
        let mut p = Program::default();
        let (n, m) = (p.vars.fresh("n", Type::I64), p.vars.fresh("m", Type::I64));
        let params: Vec<(&str, Type)> = params(&Size::var(n), &Size::var(m));
        let params: Vec<Var> = params.into_iter().map(|(name, ty)| p.vars.fresh(name, ty)).collect();
        let mut used = vec![];
        params.iter().for_each(|v| p.vars.ty(*v).shape().iter().for_each(|s| s.variables(&mut used)));
        let sizes = [n, m].into_iter().filter(|v| used.contains(v)).collect();
        let body = Body::Exp(build::f64(0.0));
        p.functions.push(Function {
            name: "f".into(),
            sizes,
            params,
            result: Type::F64,
            body,
            signature: None,
            hidden: None,
            statics: vec![],
            span: Span::default(),
        });
        p
    }
    fn array(shape: &[&Size]) -> Type {
        Type::Array(shape.iter().map(|s| (*s).clone()).collect(), Scalar::F64)
    }
    fn zeros(shape: &[usize]) -> Value {
        Array::zeros(Scalar::F64, shape.to_vec()).into()
    }
    fn solve(p: &Program, values: &[Value]) -> Result<Vec<i64>, String> {
        let f = p.function(FunctionId(0));
        sizes(p, FunctionId(0), values).map(|s| f.sizes.iter().map(|v| s[v]).collect()).map_err(|e| e.message)
    }

    #[test]
    fn sizes_come_from_shapes_and_must_agree() {
        let p = program(|n, m| vec![("x", array(&[n])), ("y", array(&[n])), ("A", array(&[m, n]))]);
        assert_eq!(solve(&p, &[zeros(&[3]), zeros(&[3]), zeros(&[2, 3])]), Ok(vec![3, 2]));
        assert_eq!(solve(&p, &[zeros(&[3]), zeros(&[4]), zeros(&[2, 3])]), Err("`y` has shape [4], but `n` = 3 from `x`".into()));
        assert_eq!(solve(&p, &[zeros(&[0]), zeros(&[0]), zeros(&[2, 3])]), Err("`A` has shape [2, 3], but `n` = 0 from `x`".into()));
        assert_eq!(
            solve(&p, &[zeros(&[3]), zeros(&[3]), zeros(&[3])]),
            Err("argument `A`: expected [m, n]f64, got an array of length 3 of f64".into())
        );
    }

    #[test]
    fn expressions_are_checked_and_solved() {
        let p = program(|n, m| vec![("x", array(&[&n.add(m)])), ("y", array(&[&n.sub(&Size::constant(1))])), ("z", array(&[m]))]);
        // m from z, then n from either of the others.
        assert_eq!(solve(&p, &[zeros(&[7]), zeros(&[3]), zeros(&[3])]), Ok(vec![4, 3]));
        assert_eq!(
            solve(&p, &[zeros(&[7]), zeros(&[4]), zeros(&[3])]),
            Err("`y` has shape [4], but axis 0 is `n - 1` = 3 with `n` = 4 from `x`".into())
        );
        assert!(solve(&p, &[zeros(&[1]), zeros(&[4]), zeros(&[3])]).unwrap_err().contains("no `n` makes that"));
        let p = program(|n, m| vec![("x", array(&[&n.mul(m)]))]);
        assert_eq!(solve(&p, &[zeros(&[6])]), Err("the arguments do not tell `n` and `m`".into()));
        let p = program(|n, _| vec![("x", array(&[&n.scale(2)])), ("y", array(&[&Size::constant(3)]))]);
        assert_eq!(solve(&p, &[zeros(&[6]), zeros(&[3])]), Ok(vec![3]));
        assert!(solve(&p, &[zeros(&[5]), zeros(&[3])]).is_err());
        assert_eq!(solve(&p, &[zeros(&[6]), zeros(&[4])]), Err("`y` has shape [4], but axis 0 has size 3".into()));
        let p = program(|n, _| vec![("x", array(&[n])), ("y", array(&[&n.mul(n).mul(n).mul(n)]))]);
        assert!(solve(&p, &[zeros(&[3_000_000]), zeros(&[4])]).unwrap_err().contains("too large"));
    }

    #[test]
    fn names_are_suggested() {
        assert_eq!(nearest("lenght", ["length", "width"]), Some("length"));
        assert_eq!(nearest("Dot", ["dot", "norm"]), Some("dot"));
        assert_eq!(nearest("qqqq", ["dot", "norm"]), None);
    }
}
