//! What a derivative is taken by: parameters, or fields of parameters that are records (`--wrt p.w,x`).
//!
//! Where a field is named, the function that is differentiated is another one: it takes the fields of that record as
//! parameters of their own, and calls the function. So a derivative by a field costs what that field costs.

use super::failure::Failure;
use super::inputs::check_name;
use super::options::Wrt;
use super::source::Source;
use iverson::bind::{self, Sizes};
use iverson::ir::{Body, Exp, Function, FunctionId, Signature, Site, Size, Type, Var, build};
use iverson::value::{Error, Value};
use std::collections::HashMap;

pub struct By {
    /// The function to differentiate.
    pub of: FunctionId,
    /// Positions of its parameters, ascending, and how they are named: `p.w`.
    pub positions: Vec<usize>,
    pub names: Vec<String>,
    /// For each parameter of the function that was asked for, what became of it; none if nothing did.
    pieces: Option<Vec<Piece>>,
}

/// A parameter, or its parts.
enum Piece {
    Whole(String, Type),
    Parts(Vec<Piece>),
}

impl By {
    /// What `--wrt` names, or all parameters with floats.
    pub fn new(source: &mut Source, of: FunctionId, wrt: &Wrt) -> Result<By, Failure> {
        let program = &source.program;
        let f = program.function(of);
        let params: Vec<&str> = f.visible().map(|(_, p)| program.vars.name(p)).collect();
        let Some(wanted) = &wrt.wrt else {
            let all: Vec<usize> = (0..f.params.len()).filter(|k| program.vars.ty(f.params[*k]).has_float()).collect();
            if all.is_empty() {
                return Err(Failure::message(format!("`{}` has no float parameters to differentiate by", f.name)));
            }
            let names = all.iter().map(|k| program.vars.name(f.params[*k]).to_string()).collect();
            return Ok(By { of, positions: all, names, pieces: None });
        };
        let mut names: Vec<&str> = vec![];
        for path in wanted.iter().map(|n| n.trim()) {
            let param = path.split('.').next().unwrap_or(path);
            check_name(param, &params, || format!("`{}` has no parameter `{param}` to differentiate by", f.name))?;
            let k = f.params.iter().position(|p| program.vars.name(*p) == param).expect("a known name");
            let ty = part(program.param_type(of, k), param, path)?;
            if !ty.has_float() {
                let ty = ty.describe(&|v| program.vars.name(v).to_string());
                return Err(Failure::message(format!("`{path}: {ty}` has no floats to differentiate by")));
            }
            for other in &names {
                if *other == path {
                    return Err(Failure::message(format!("`{path}` stands twice in --wrt")));
                }
                let (inner, outer) = if path.len() > other.len() { (path, *other) } else { (*other, path) };
                if is_below(inner, outer) {
                    return Err(Failure::message(format!("`{inner}` is a part of `{outer}`, and both stand in --wrt")));
                }
            }
            names.push(path);
        }
        if !names.iter().any(|name| name.contains('.')) {
            let position = |name: &&str| f.params.iter().position(|p| program.vars.name(*p) == *name);
            let mut positions: Vec<usize> = names.iter().filter_map(position).collect();
            positions.sort();
            let names = positions.iter().map(|k| program.vars.name(f.params[*k]).to_string()).collect();
            return Ok(By { of, positions, names, pieces: None });
        }
        if f.hidden.is_some() {
            let error = Error::new(format!("fields cannot be named here, for the size of the result of `{}` depends on data", f.name));
            return Err(Failure::Message(error.note("name the whole parameter")));
        }
        let whole = |k: usize| (program.vars.name(f.params[k]).to_string(), program.param_type(of, k).clone());
        let pieces: Vec<Piece> = (0..f.params.len()).map(|k| split(whole(k), &names)).collect();
        let labels: Vec<String> = names.iter().map(|n| n.to_string()).collect();
        let mut leaves = vec![];
        pieces.iter().for_each(|piece| piece.leaves(&mut leaves));
        let positions: Vec<usize> = (0..leaves.len()).filter(|k| labels.contains(&leaves[*k].0)).collect();
        let names = positions.iter().map(|k| leaves[*k].0.clone()).collect();
        let of = by_fields(source, of, &pieces);
        Ok(By { of, positions, names, pieces: Some(pieces) })
    }

    /// The arguments of the function that is differentiated, and the sizes they give.
    pub fn arguments(&self, source: &Source, values: Vec<Value>, sizes: Sizes) -> Result<(Vec<Value>, Sizes), Failure> {
        let Some(pieces) = &self.pieces else { return Ok((values, sizes)) };
        let mut out = vec![];
        pieces.iter().zip(values).for_each(|(piece, value)| piece.take_apart(value, &mut out));
        let sizes = bind::sizes(&source.program, self.of, &out)?;
        Ok((out, sizes))
    }
}

/// `p.w` is below `p`.
fn is_below(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.starts_with('.'))
}

/// The type of what the path names, in a parameter.
fn part(ty: &Type, param: &str, path: &str) -> Result<Type, Failure> {
    let (mut ty, mut at) = (ty, param.to_string());
    for field in path.split('.').skip(1) {
        let (Type::Tuple(parts), None) = (ty, ty.structured()) else {
            return Err(Failure::message(format!("`{at}` is no record, so it has no field `{field}` to differentiate by")));
        };
        let labels: Vec<String> = (0..parts.len()).map(|k| parts.label(k)).collect();
        let known: Vec<&str> = labels.iter().map(String::as_str).collect();
        check_name(field, &known, || format!("`{at}` has no field `{field}` to differentiate by"))?;
        let k = known.iter().position(|label| *label == field).expect("a known name");
        (ty, at) = (&parts[k], format!("{at}.{field}"));
    }
    Ok(ty.clone())
}

/// A parameter in as few parts as give each of the names one of its own.
fn split((path, ty): (String, Type), names: &[&str]) -> Piece {
    match &ty {
        Type::Tuple(parts) if parts.structure().is_none() && names.iter().any(|name| is_below(name, &path)) => {
            let part = |k: usize| split((format!("{path}.{}", parts.label(k)), parts[k].clone()), names);
            Piece::Parts((0..parts.len()).map(part).collect())
        }
        _ => Piece::Whole(path, ty),
    }
}

impl Piece {
    fn leaves<'a>(&'a self, out: &mut Vec<(String, &'a Type)>) {
        match self {
            Piece::Whole(path, ty) => out.push((path.clone(), ty)),
            Piece::Parts(parts) => parts.iter().for_each(|part| part.leaves(out)),
        }
    }

    fn take_apart(&self, value: Value, out: &mut Vec<Value>) {
        match (self, value) {
            (Piece::Whole(..), value) => out.push(value),
            // A record of one field is that field.
            (Piece::Parts(parts), value) if parts.len() == 1 => parts[0].take_apart(value, out),
            (Piece::Parts(parts), Value::Tuple(values)) => parts.iter().zip(values).for_each(|(p, v)| p.take_apart(v, out)),
            (Piece::Parts(_), value) => panic!("a record has parts, not {}", value.describe()),
        }
    }

    /// The value of the parameter, of variables for its leaves.
    fn put_together(&self, vars: &mut impl Iterator<Item = Var>) -> Exp {
        match self {
            Piece::Whole(..) => Exp::Var(vars.next().expect("a variable for each leaf")),
            Piece::Parts(parts) => build::tuple(parts.iter().map(|part| part.put_together(vars)).collect()),
        }
    }
}

/// The function with a parameter for each leaf.
fn by_fields(source: &mut Source, of: FunctionId, pieces: &[Piece]) -> FunctionId {
    let program = &mut source.program;
    let (f, result) = (program.function(of).clone(), program.result_type(of).clone());
    let mut renamed: HashMap<Var, Var> = HashMap::new();
    for v in &f.sizes {
        let (name, ty) = (program.vars.name(*v).to_string(), program.vars.ty(*v).clone());
        renamed.insert(*v, program.vars.fresh(name, ty));
    }
    let mut leaves = vec![];
    pieces.iter().for_each(|piece| piece.leaves(&mut leaves));
    let mut used: Vec<String> = vec![];
    let params: Vec<Var> = leaves
        .iter()
        .map(|(path, ty)| {
            let mut name = path.replace('.', "_");
            while used.contains(&name) {
                name.push('_');
            }
            used.push(name.clone());
            program.vars.fresh(name, ty.erased())
        })
        .collect();
    // A whole integer may be a size of others.
    for v in &f.params {
        if let Some(k) = leaves.iter().position(|(path, _)| path == program.vars.name(*v)) {
            renamed.insert(*v, params[k]);
        }
    }
    let rename = |ty: &Type| ty.map_sizes(&mut |s| s.substitute(&|v| renamed.get(&v).map(|w| Size::var(*w))));
    for v in &params {
        let ty = rename(program.vars.ty(*v));
        program.vars.set_ty(*v, ty);
    }
    let signature = Signature { params: leaves.iter().map(|(_, ty)| rename(ty)).collect(), result: rename(&result) };
    // What is whole is where its leaf is.
    let whole = |positions: &[usize]| -> Vec<usize> {
        let name = |k: &usize| program.vars.name(f.params[*k]).to_string();
        positions.iter().filter_map(|k| leaves.iter().position(|(path, _)| *path == name(k))).collect()
    };
    let statics = whole(&f.statics);
    let mut vars = params.iter().copied();
    let body = Exp::Call(of, pieces.iter().map(|piece| piece.put_together(&mut vars)).collect(), Site::new(f.span));
    let wanted = format!("{}_by_fields", f.name);
    let name = std::iter::once(wanted.clone()).chain((2..).map(|k| format!("{wanted}_{k}"))).find(|n| program.find(n).is_none());
    program.functions.push(Function {
        name: name.unwrap_or(wanted),
        sizes: f.sizes.iter().map(|v| renamed[v]).collect(),
        params,
        result: rename(&f.result),
        body: Body::Exp(body),
        signature: Some(Box::new(signature)),
        hidden: None,
        statics,
        span: f.span,
    });
    FunctionId(program.functions.len() as u32 - 1)
}
