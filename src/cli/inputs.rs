//! The values a command is given: as arguments and in files, by name.

use super::execute::Executable;
use super::failure::Failure;
use super::options::{Execution, Inputs};
use super::source::{Source, quoted};
use iverson::bind::{self, Sizes, nearest};
use iverson::ir::{FunctionId, Program, Scalar, Type, Var};
use iverson::value::data::DataFile;
use iverson::value::tree::{Tree, Wanted};
use iverson::value::{Error, Value, literal};

pub struct Given {
    arguments: Vec<(String, Tree)>,
    files: Vec<DataFile>,
}

impl Given {
    /// Reads the arguments, which must all be parameters, and opens the files.
    pub fn new(inputs: &Inputs, program: &Program, id: FunctionId) -> Result<Given, Failure> {
        let f = program.function(id);
        let params: Vec<&str> = f.visible().map(|(_, p)| program.vars.name(p)).collect();
        let mut arguments: Vec<(String, Tree)> = vec![];
        for (path, text) in &inputs.arguments {
            let name = path.split('.').next().unwrap_or(path);
            check_name(name, &params, || format!("`{}` has no parameter `{name}`", f.name))?;
            insert(&mut arguments, path, read(&format!("argument `{path}`"), text)?)
                .map_err(|()| Failure::message(format!("argument `{path}` is given twice")))?;
        }
        let files = inputs.data.iter().map(|path| DataFile::open(path)).collect::<Result<_, _>>()?;
        Ok(Given { arguments, files })
    }

    /// The type of the elements of a value that is stored with one.
    pub fn element_type(&mut self, name: &str) -> Option<Scalar> {
        match self.arguments.iter().find(|(n, _)| n == name) {
            Some((_, Tree::Array(array))) => Some(array.scalar()),
            Some(_) => None,
            None => self.files.iter_mut().find_map(|file| file.element_type(name)),
        }
    }

    /// Values for all parameters, and the sizes they give. Sizes of the result that depend on data are computed.
    pub fn arguments(&mut self, source: &Source, id: FunctionId, execution: &Execution) -> Result<(Vec<Value>, Sizes), Failure> {
        let program = &source.program;
        let name_of = |v: Var| program.vars.name(v).to_string();
        let values = bind::arguments(program, id, &mut |name, ty| {
            let what = format!("argument `{name}`");
            let wanted = Wanted { what: &what, ty, name: &name_of };
            // Taken out, since it may be large.
            match self.arguments.iter().position(|(n, _)| n == name) {
                Some(k) => wanted.convert(self.arguments.swap_remove(k).1).map(Some),
                None => self.in_files(name, &wanted),
            }
        });
        let mut values = values.map_err(|e| {
            self.files.iter().fold(e, |e, file| e.note(format!("{} has {}", file.path().display(), file.names().join(", "))))
        })?;
        if let Some(hidden) = program.function(id).hidden {
            let found = match Executable::new(source, hidden.sizes, execution, &values)?.call(source, &values)? {
                Value::Tuple(sizes) => sizes,
                size => vec![size],
            };
            values.splice(hidden.at..hidden.at, found);
        }
        let sizes = bind::sizes(program, id, &values)?;
        Ok((values, sizes))
    }

    /// The value of a name that is no parameter (`d_x`, `seed`) in the files.
    pub fn in_files(&mut self, name: &str, wanted: &Wanted) -> Result<Option<Value>, Error> {
        for file in &mut self.files {
            if let Some(value) = file.get(name, wanted)? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }
}

/// Puts a value at its path among named ones: `p.w` is the field `w` of `p`. An error where something is there already.
pub fn insert(fields: &mut Vec<(String, Tree)>, path: &str, tree: Tree) -> Result<(), ()> {
    let (name, rest) = match path.split_once('.') {
        Some((name, rest)) => (name, Some(rest)),
        None => (path, None),
    };
    let place = fields.iter().position(|(n, _)| n == name);
    match (place, rest) {
        (None, None) => fields.push((name.to_string(), tree)),
        (None, Some(rest)) => {
            let mut inner = vec![];
            insert(&mut inner, rest, tree)?;
            fields.push((name.to_string(), Tree::Record(inner)));
        }
        (Some(_), None) => return Err(()),
        (Some(k), Some(rest)) => match &mut fields[k].1 {
            Tree::Record(inner) => insert(inner, rest, tree)?,
            _ => return Err(()),
        },
    }
    Ok(())
}

/// A value from the command line; `what` it is for is said in messages.
pub fn read(what: &str, text: &str) -> Result<Tree, Error> {
    literal::read(text).map_err(|e| e.about(what))
}

/// An error with the nearest name where the name is not among those known.
pub fn check_name(name: &str, known: &[&str], message: impl FnOnce() -> String) -> Result<(), Error> {
    if known.contains(&name) {
        return Ok(());
    }
    let error = Error::new(message());
    Err(match nearest(name, known.iter().copied()) {
        Some(near) => error.note(format!("did you mean `{near}`?")),
        None if known.is_empty() => error,
        None => error.note(format!("there are {}", quoted(known))),
    })
}

/// Checks that a value has the shape of its type under the sizes of the call.
pub fn check_shape(what: &str, value: &Value, ty: &Type, sizes: &Sizes) -> Result<(), Error> {
    let wanted = Value::zero(ty, &|v| sizes.get(&v).copied()).map_err(|e| e.about(what))?;
    fn fits(a: &Value, b: &Value) -> bool {
        match (a, b) {
            (Value::Tuple(a), Value::Tuple(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| fits(a, b)),
            (a, b) => a.shape() == b.shape(),
        }
    }
    fn shapes(v: &Value) -> String {
        match v {
            Value::Tuple(parts) => format!("({})", parts.iter().map(shapes).collect::<Vec<_>>().join(", ")),
            v => format!("{:?}", v.shape()),
        }
    }
    if fits(value, &wanted) {
        Ok(())
    } else {
        Err(Error::new(format!("{what}: expected shape {}, got {}", shapes(&wanted), shapes(value))))
    }
}
