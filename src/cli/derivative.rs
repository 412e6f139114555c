//! A derivative asked for on the command line: the function that computes it, the values it takes besides the
//! parameters, and its result under the names of the parameters.

use super::execute::Executable;
use super::failure::Failure;
use super::inputs::{Given, check_name, check_shape, insert, read};
use super::options::{Execution, Format, Index, Kind, Mode, Side, Storage};
use super::source::Source;
use super::wrt::By;
use iverson::bind::Sizes;
use iverson::check::{self, DerivativeKind};
use iverson::ir::{FunctionId, Lit, Scalar, Triangle, Type, Var};
use iverson::value::named::Named;
use iverson::value::tree::{Random, Tree, Wanted};
use iverson::value::{Error, Value};

pub struct Derivative {
    pub kind: Kind,
    /// The function that is differentiated.
    pub of: FunctionId,
    /// The function that computes the derivative.
    pub id: FunctionId,
    /// Positions of parameters, ascending, and their names: `x`, or `p.w` for a field.
    pub wrt: Vec<usize>,
    pub names: Vec<String>,
    /// How the matrices are stored, if they are sparse.
    storage: Option<check::Storage>,
}

impl Derivative {
    /// Defines the derivative in the source's program.
    pub fn new(source: &mut Source, by: &By, kind: Kind) -> Result<Derivative, Failure> {
        Derivative::stored(source, by, kind, Storage::default())
    }

    /// The same, of a matrix perhaps stored as a sparse one.
    pub fn stored(source: &mut Source, by: &By, kind: Kind, storage: Storage) -> Result<Derivative, Failure> {
        let mode = storage.mode;
        if mode.is_some() && kind != Kind::Jacobian {
            let error = Error::new("`--mode` is for Jacobians");
            return Err(Failure::Message(error.note("gradients are computed in reverse mode, Hessians in forward mode of gradients")));
        }
        let storage = match (storage.format, kind) {
            (None, _) => None,
            (Some(format), Kind::Jacobian | Kind::Hessian) => Some(check::Storage {
                format: match format {
                    Format::Coo => check::Format::Coo,
                    Format::Csr => check::Format::Csr,
                },
                stack: storage.stack,
                triangle: storage.triangle.map(|side| match side {
                    Side::Lower => Triangle::Lower,
                    Side::Upper => Triangle::Upper,
                }),
                index: match storage.index {
                    Some(Index::I32) | None => Scalar::I32,
                    Some(Index::I64) => Scalar::I64,
                },
            }),
            (Some(_), _) => {
                let error = Error::new("`--format` is for Jacobians and Hessians");
                return Err(Failure::Message(error.note("say which: `--derivative jacobian` or `--derivative hessian`")));
            }
        };
        let kind_in_language = match kind {
            Kind::Grad => DerivativeKind::Grad,
            Kind::ValueAndGrad => DerivativeKind::ValueAndGrad,
            Kind::Jvp => DerivativeKind::Jvp,
            Kind::Vjp => DerivativeKind::Vjp,
            Kind::Jacobian => match mode {
                None => DerivativeKind::Jacobian,
                Some(Mode::Forward) => DerivativeKind::JacFwd,
                Some(Mode::Reverse) => DerivativeKind::JacRev,
            },
            Kind::Hessian => DerivativeKind::Hessian,
            Kind::Hvp => DerivativeKind::Hvp,
        };
        let f = source.program.function(by.of);
        let params: Vec<String> = by.positions.iter().map(|k| source.program.vars.name(f.params[*k]).to_string()).collect();
        let id = check::derive_stored(&mut source.program, by.of, kind_in_language, Some(&params), storage)
            .map_err(|d| Failure::diagnostics(&[d], &source.sources))?;
        Ok(Derivative { kind, of: by.of, id, wrt: by.positions.clone(), names: by.names.clone(), storage })
    }

    /// The function that computes sizes of the result which depend on data, and how many values it takes.
    pub fn sizes(&self, source: &Source) -> Option<(FunctionId, usize)> {
        let id = if self.storage.is_some() { self.id } else { self.of };
        source.program.function(id).hidden.map(|hidden| (hidden.sizes, hidden.at))
    }

    /// The values with the numbers of entries of sparse matrices, which are computed first.
    pub fn with_sizes(&self, source: &Source, mut values: Vec<Value>, execution: &Execution) -> Result<Vec<Value>, Failure> {
        let Some((sizes, count)) = self.sizes(source).filter(|_| self.storage.is_some()) else { return Ok(values) };
        values.truncate(count);
        let found = match Executable::new(source, sizes, execution, &values)?.call(source, &values)? {
            Value::Tuple(found) => found,
            found => vec![found],
        };
        self.has_indices(&found)?;
        values.extend(found);
        Ok(values)
    }

    /// Said before memory is taken for that many entries.
    fn has_indices(&self, counts: &[Value]) -> Result<(), Failure> {
        let narrow = matches!(self.storage, Some(check::Storage { format: check::Format::Csr, index: Scalar::I32, .. }));
        let most = counts.iter().filter_map(Value::as_i64).max().unwrap_or(0);
        if narrow && most > i32::MAX.into() {
            let error = Error::new(format!("the matrix has {most} entries, too many for indices of type `i32`"));
            return Err(Failure::Message(error.note("`--index i64` has indices for as many as there is memory for")));
        }
        Ok(())
    }

    /// Sparse matrices under the names of the parameters.
    fn matrices(&self, source: &Source, value: Value) -> Named {
        let ty = source.program.result_type(self.id).clone();
        match self.storage {
            Some(check::Storage { stack: true, .. }) => Named::labelled(value, &ty),
            _ if self.kind == Kind::Hessian => {
                self.keyed_by(source, value, &ty, &|source, outer, value, ty| self.by_parts(source, outer, value, ty))
            }
            _ => {
                let tangent = source.program.result_type(self.of).tangent().expect("a float result");
                self.by_parts(source, &tangent, value, &ty)
            }
        }
    }

    /// The parts of `outer`, each of them keyed by the parameters.
    fn by_parts(&self, source: &Source, outer: &Type, value: Value, ty: &Type) -> Named {
        let (Type::Tuple(parts), Type::Tuple(types), None) = (outer, ty, outer.structured()) else {
            return self.keyed_by(source, value, ty, &|_, _, value, ty| Named::labelled(value, ty));
        };
        let values = match value {
            Value::Tuple(values) if parts.len() > 1 => values,
            value => vec![value],
        };
        let parts: Vec<Named> =
            parts.iter().zip(types).zip(values).map(|((outer, ty), value)| self.by_parts(source, outer, value, ty)).collect();
        match types.fields() {
            Some(names) => Named::Record(names.iter().cloned().zip(parts).collect()),
            None => Named::List(parts),
        }
    }

    /// Something for each parameter, by its type.
    fn keyed_by(&self, source: &Source, value: Value, ty: &Type, part: &dyn Fn(&Source, &Type, Value, &Type) -> Named) -> Named {
        let (values, types) = match (value, ty) {
            (value, ty) if self.names.len() == 1 => (vec![value], vec![ty.clone()]),
            (Value::Tuple(values), Type::Tuple(types)) => (values, types.iter().cloned().collect()),
            (other, _) => panic!("a derivative by several parameters gives a tuple, not {}", other.describe()),
        };
        let one = |((value, ty), param): ((Value, &Type), &usize)| part(source, &tangent_type(source, self.of, *param), value, ty);
        let parts: Vec<Named> = values.into_iter().zip(&types).zip(&self.wrt).map(one).collect();
        nested(self.names.iter().cloned().zip(parts).collect())
    }

    /// The result under the names of the parameters, as JSON has it.
    pub fn named(&self, source: &Source, value: Value) -> Named {
        if self.storage.is_some() {
            return self.matrices(source, value);
        }
        let pair = |value: Value| match value {
            Value::Tuple(mut parts) if parts.len() == 2 => {
                let second = parts.pop().expect("two parts");
                (parts.pop().expect("two parts"), second)
            }
            other => panic!("a derivative with a value gives a pair, not {}", other.describe()),
        };
        let function = source.program.result_type(self.of);
        let tangent = function.tangent().expect("a float result");
        match self.kind {
            Kind::Grad | Kind::Hvp => self.keyed(source, value),
            Kind::Hessian => self.hessian(source, value),
            Kind::ValueAndGrad => {
                let (value, grad) = pair(value);
                Named::record([("value", Named::labelled(value, function)), ("grad", self.keyed(source, grad))])
            }
            Kind::Vjp => {
                let (value, cotangents) = pair(value);
                Named::record([("value", Named::labelled(value, function)), ("cotangents", self.keyed(source, cotangents))])
            }
            Kind::Jvp => {
                let (value, change) = pair(value);
                Named::record([("value", Named::labelled(value, function)), ("tangent", Named::labelled(change, &tangent))])
            }
            Kind::Jacobian => self.jacobian(source, &tangent, value),
        }
    }

    /// Names for the leaves of the result.
    pub fn leaf_names(&self, source: &Source) -> Vec<String> {
        let function = source.program.result_type(self.of);
        let tangent = function.tangent().expect("a float result");
        let mut out = vec![];
        if self.storage.is_some() {
            leaf_names(if self.kind == Kind::Hessian { "hessian" } else { "jacobian" }, source.program.result_type(self.id), &mut out);
            return out;
        }
        match self.kind {
            Kind::Grad => self.keyed_names(source, "grad", &mut out),
            Kind::Hvp => self.keyed_names(source, "hvp", &mut out),
            Kind::Jvp => {
                leaf_names("value", function, &mut out);
                leaf_names("tangent", &tangent, &mut out);
            }
            Kind::ValueAndGrad | Kind::Vjp => {
                leaf_names("value", function, &mut out);
                self.keyed_names(source, if self.kind == Kind::Vjp { "cotangent" } else { "grad" }, &mut out);
            }
            Kind::Jacobian => self.nested_names(source, "jacobian", &tangent, &mut out),
            Kind::Hessian => {
                for (name, param) in self.names.iter().zip(&self.wrt) {
                    self.nested_names(
                        source,
                        &format!("hessian_{}", name.replace('.', "_")),
                        &tangent_type(source, self.of, *param),
                        &mut out,
                    );
                }
            }
        }
        out
    }

    /// The parts of `outer` first, then the parameters.
    fn nested_names(&self, source: &Source, prefix: &str, outer: &Type, out: &mut Vec<String>) {
        match outer {
            Type::Tuple(parts) if parts.structure().is_none() => {
                for (k, part) in parts.iter().enumerate() {
                    self.nested_names(source, &format!("{prefix}_{}", parts.label(k)), part, out);
                }
            }
            Type::Scalar(_) | Type::Array(..) | Type::Tuple(_) => self.keyed_names(source, prefix, out),
        }
    }

    fn keyed_names(&self, source: &Source, prefix: &str, out: &mut Vec<String>) {
        for (name, param) in self.names.iter().zip(&self.wrt) {
            leaf_names(&format!("{prefix}_{}", name.replace('.', "_")), &tangent_type(source, self.of, *param), out);
        }
    }

    /// One parameter gives a bare value, several a tuple.
    fn keyed(&self, source: &Source, value: Value) -> Named {
        let parts = match value {
            value if self.names.len() == 1 => vec![value],
            Value::Tuple(parts) => parts,
            other => panic!("a derivative by several parameters gives a tuple, not {}", other.describe()),
        };
        assert_eq!(parts.len(), self.names.len(), "one part for each parameter");
        let label = |(part, param): (Value, &usize)| Named::labelled(part, &tangent_type(source, self.of, *param));
        nested(self.names.iter().cloned().zip(parts.into_iter().zip(&self.wrt).map(label)).collect())
    }

    /// The Jacobian of the gradient has the parameters of the second derivative inside the parts of a tuple parameter;
    /// here they come first.
    fn hessian(&self, source: &Source, value: Value) -> Named {
        fn select(ty: &Type, value: &Value, which: Option<usize>) -> Value {
            match (ty, value, which) {
                (Type::Tuple(types), _, _) if types.len() == 1 => select(&types[0], value, which),
                (Type::Tuple(types), Value::Tuple(parts), _) => {
                    Value::Tuple(types.iter().zip(parts).map(|(ty, part)| select(ty, part, which)).collect())
                }
                (_, Value::Tuple(parts), Some(k)) => parts[k].clone(),
                (_, value, _) => value.clone(),
            }
        }
        let rows = match value {
            value if self.names.len() == 1 => vec![value],
            Value::Tuple(rows) => rows,
            other => panic!("a hessian by several parameters gives a tuple, not {}", other.describe()),
        };
        let row = |(row, param): (&Value, &usize)| {
            let ty = tangent_type(source, self.of, *param);
            let column = |k: usize| {
                let columns = within(&ty, &tangent_type(source, self.of, self.wrt[k]));
                Named::labelled(select(&ty, row, (self.names.len() > 1).then_some(k)), &columns)
            };
            nested(self.names.iter().enumerate().map(|(k, name)| (name.clone(), column(k))).collect())
        };
        nested(self.names.iter().cloned().zip(rows.iter().zip(&self.wrt).map(row)).collect())
    }

    /// A list over the parts of the result, or a record of its fields.
    fn jacobian(&self, source: &Source, tangent: &Type, value: Value) -> Named {
        let (Type::Tuple(types), None) = (tangent, tangent.structured()) else { return self.keyed(source, value) };
        let parts = match value {
            Value::Tuple(parts) if types.len() > 1 => parts,
            value => vec![value],
        };
        let parts = types.iter().zip(parts).map(|(ty, part)| self.jacobian(source, ty, part));
        match types.fields() {
            Some(names) => Named::Record(names.iter().cloned().zip(parts).collect()),
            None => Named::List(parts.collect()),
        }
    }

    /// Directions for the parameters, from the command line or a file as `d_name`; zero where there is none.
    pub fn directions(&self, source: &Source, dirs: &[(String, String)], given: &mut Given, sizes: &Sizes) -> Result<Vec<Value>, Failure> {
        let known: Vec<&str> = self.names.iter().map(String::as_str).collect();
        // A direction of a parameter, or of a field of it.
        let is_of = |path: &str, name: &str| path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        for (path, _) in dirs {
            if !known.iter().any(|name| is_of(path, name)) {
                let name = path.split('.').next().unwrap_or(path);
                let name = if known.iter().any(|k| k.contains('.')) { path } else { name };
                check_name(name, &known, || format!("no direction of `{name}` is wanted"))?;
            }
        }
        let mut values = vec![];
        for (k, name) in self.wrt.iter().zip(&self.names) {
            let ty = tangent_type(source, self.of, *k);
            let what = format!("direction of `{name}`");
            let wanted = Wanted { what: &what, ty: &ty, name: &|v| source.program.vars.name(v).to_string() };
            let mut mine = vec![];
            // From its own name on.
            let start = name.rfind('.').map_or(0, |k| k + 1);
            for (path, text) in dirs.iter().filter(|(path, _)| is_of(path, name)) {
                insert(&mut mine, &path[start..], read(&what, text)?)
                    .map_err(|()| Failure::message(format!("the {what} is given twice")))?;
            }
            let value = match mine.pop() {
                Some((_, tree)) => Some(wanted.convert(with_zeros(tree, &ty, sizes)?)?),
                None => given.in_files(&format!("d_{name}"), &wanted)?,
            };
            values.push(match value {
                Some(value) => {
                    check_shape(&what, &value, &ty, sizes)?;
                    value
                }
                None => Value::zero(&ty, &|v| sizes.get(&v).copied())?,
            });
        }
        Ok(values)
    }

    /// The cotangent of the result, from the command line or a file as `seed`; 1 for a scalar where there is none.
    pub fn seed(&self, source: &Source, seed: Option<&str>, given: &mut Given, sizes: &Sizes) -> Result<Value, Failure> {
        let ty = source.program.result_type(self.of).tangent().expect("a float result");
        let name = |v: Var| source.program.vars.name(v).to_string();
        let wanted = Wanted { what: "seed", ty: &ty, name: &name };
        let value = match seed {
            Some(text) => Some(wanted.convert(read("seed", text)?)?),
            None => given.in_files("seed", &wanted)?,
        };
        match value {
            Some(value) => {
                check_shape("seed", &value, &ty, sizes)?;
                Ok(value)
            }
            None if matches!(ty, Type::Scalar(_)) => Ok(Value::Scalar(Lit::one(ty.scalar().expect("of a scalar")))),
            None => Err(Failure::Message(
                Error::new(format!("the result is {}, so a seed of that type is needed", ty.describe(&name)))
                    .note("give it as `--seed value`, or as `seed` in a file: `--data file.npz`"),
            )),
        }
    }
}

/// A name for each leaf of a type: the parts of a tuple have their fields or numbers behind the name.
pub fn leaf_names(name: &str, ty: &Type, out: &mut Vec<String>) {
    match ty {
        Type::Scalar(_) | Type::Array(..) => out.push(name.to_string()),
        Type::Tuple(parts) if parts.structure().is_some() => out.push(name.to_string()),
        Type::Tuple(parts) => {
            for (k, part) in parts.iter().enumerate() {
                leaf_names(&format!("{name}_{}", parts.label(k)), part, out);
            }
        }
    }
}

pub fn tangent_type(source: &Source, of: FunctionId, param: usize) -> Type {
    source.program.param_type(of, param).tangent().expect("a parameter with floats")
}

/// Parts under names that may be paths: `p.w` is the field `w` of `p`.
fn nested(parts: Vec<(String, Named)>) -> Named {
    let mut out: Vec<(String, Named)> = vec![];
    for (path, part) in parts {
        let mut at = &mut out;
        let mut steps = path.split('.').peekable();
        while let Some(step) = steps.next() {
            if steps.peek().is_none() {
                at.push((step.to_string(), part));
                break;
            }
            let k = at.iter().position(|(name, _)| name == step).unwrap_or(at.len());
            if k == at.len() {
                at.push((step.to_string(), Named::Record(vec![])));
            }
            match &mut at[k].1 {
                Named::Record(inner) => at = inner,
                Named::Value(_) | Named::List(_) => panic!("`{path}` is below what is no record"),
            }
        }
    }
    Named::Record(out)
}

/// A record with the fields that are not given, which are zero.
fn with_zeros(tree: Tree, ty: &Type, sizes: &Sizes) -> Result<Tree, Error> {
    let (Tree::Record(mut given), Type::Tuple(types)) = (tree.clone(), ty) else { return Ok(tree) };
    for (name, ty) in types.fields().unwrap_or_default().iter().zip(types) {
        let place = given.iter().position(|(n, _)| n == name);
        let field = match (place.map(|k| given.swap_remove(k).1), ty) {
            (Some(tree), ty) => with_zeros(tree, ty, sizes)?,
            (None, Type::Tuple(_)) if ty.structured().is_none() => with_zeros(Tree::Record(vec![]), ty, sizes)?,
            (None, _) => match Value::zero(ty, &|v| sizes.get(&v).copied())? {
                Value::Array(array) => Tree::Array(array),
                _ => Tree::Scalar(Lit::F64(0.0)),
            },
        };
        given.push((name.clone(), field));
    }
    Ok(Tree::Record(given))
}

/// The structure of one type with that of another in each of its places.
fn within(outer: &Type, inner: &Type) -> Type {
    match outer {
        Type::Tuple(parts) => Type::Tuple(parts.map(|t| within(t, inner))),
        Type::Scalar(_) | Type::Array(..) => inner.clone(),
    }
}

/// A random value of a type without integers under the sizes of a call.
pub fn random(ty: &Type, sizes: &Sizes, random: &mut Random) -> Result<Value, Error> {
    let mut value = Value::zero(ty, &|v| sizes.get(&v).copied())?;
    value.for_each_float(&mut |x| *x = random.symmetric());
    Ok(value)
}
