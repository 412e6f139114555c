//! `build`: a C library and its header from chosen functions and their derivatives.

use super::derivative::{Derivative, leaf_names};
use super::failure::Failure;
use super::inputs::read;
use super::memory;
use super::options::{Build, Form, Kind, Storage, Subject};
use super::output;
use super::progress::Progress;
use super::show::head;
use super::source::Source;
use super::wrt::By;
use iverson::differentiate::saving::Saving;
use iverson::emit::library::{Export, Leaf, Library};
use iverson::ir::print::print_size;
use iverson::ir::specialize::{Known, Taken, specialize};
use iverson::ir::{FunctionId, Lit, Program, Type, Var};
use iverson::pipeline;
use iverson::runtime::{self, library};
use iverson::unfinished;
use iverson::value::tree::Wanted;
use iverson::value::{Error, Value};
use std::io::Write;
use std::path::{Path, PathBuf};

pub fn build(options: &Build) -> Result<(), Failure> {
    let (folder, name) = place(options)?;
    let settings = library::Build {
        strict: options.strict,
        openmp: options.openmp,
        flush: options.flush_denormals,
        march: (options.march != "any").then(|| options.march.clone()),
    };
    let saving = memory::asked(options.memory);
    let mut exports: Vec<Export> = vec![];
    let mut unused: Vec<&str> = options.with.iter().map(|(name, _)| name.as_str()).collect();
    for asked in &options.functions {
        let (mut source, of) = Source::subject(&Subject { file: options.file.clone(), function: asked.function.clone() })?;
        let f = source.program.function(of);
        unused.retain(|name| !f.sizes.iter().chain(&f.params).any(|v| source.program.vars.name(*v) == *name));
        let kinds: Vec<Option<Kind>> = match asked.derivative {
            Some(kind) => vec![Some(kind)],
            None => [None].into_iter().chain(options.derivative.iter().copied().map(Some)).collect(),
        };
        for kind in kinds {
            let derivative = match kind {
                None => None,
                Some(kind) => {
                    let by = By::new(&mut source, of, &options.wrt)?;
                    let matrix = matches!(kind, Kind::Jacobian | Kind::Hessian);
                    let mode = options.storage.mode.filter(|_| kind == Kind::Jacobian);
                    let storage = if matrix { Storage { mode, ..options.storage } } else { Storage::default() };
                    Some(Derivative::stored(&mut source, &by, kind, storage)?)
                }
            };
            let mut made = vec![];
            // The caller computes the sizes that depend on data first.
            let sizes = match &derivative {
                Some(derivative) => derivative.sizes(&source).map(|(sizes, _)| sizes),
                None => source.program.function(of).hidden.map(|hidden| hidden.sizes),
            };
            made.extend(sizes.map(|sizes| export(&source, sizes, None, &settings, saving, &options.with)).transpose()?);
            made.push(export(&source, derivative.as_ref().map_or(of, |d| d.id), derivative.as_ref(), &settings, saving, &options.with)?);
            for made in made {
                if !exports.iter().any(|e| e.kernel.name == made.kernel.name) {
                    exports.push(made);
                }
            }
        }
    }
    if let Some(name) = unused.first() {
        return Err(Failure::message(format!("`--with {name}`: no function has a size or parameter `{name}`")));
    }
    let library = Library {
        origin: origin(&options.file),
        usage: usage(&name, options),
        name,
        exports,
        strict: options.strict,
        flush: options.flush_denormals,
    };
    let (header, text) = library::texts(&library);
    let written = write(&folder, &library.name, &header, &text, options, &settings)?;
    output::print(|out| written.iter().try_for_each(|path| writeln!(out, "{}", path.display())))
}

/// The folder and the name of the library: `lib/gmm` and `lib/libgmm.a` are both `gmm` in `lib`.
fn place(options: &Build) -> Result<(PathBuf, String), Failure> {
    let given = match &options.output {
        Some(path) => path.clone(),
        None => PathBuf::from(options.file.file_stem().unwrap_or_default()),
    };
    let folder = given.parent().unwrap_or(Path::new("")).to_path_buf();
    let last = given.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // `libgmm.a` is a library `gmm`, but a name that has no ending is a name.
    let name = match [".a", ".so"].iter().find_map(|ending| last.strip_suffix(ending)) {
        Some(file) => file.strip_prefix("lib").filter(|rest| !rest.is_empty()).unwrap_or(file),
        None => [".h", ".c"].iter().find_map(|ending| last.strip_suffix(ending)).unwrap_or(&last),
    };
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(fits) {
        return Ok((folder, name.to_string()));
    }
    let error = Error::new(format!("`{name}` cannot be the name of a library, for C names begin with it"));
    Err(Failure::Message(error.note("give one of letters, digits and `_`: `-o [DIR/]NAME`")))
}

fn origin(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn usage(name: &str, options: &Build) -> Vec<String> {
    let openmp = if options.openmp { " -fopenmp" } else { "" };
    let mut lines = vec![];
    if options.lib.iter().any(|form| *form != Form::Source) {
        lines.push(format!("cc main.c -I. -L. -l{name} -lm{openmp}"));
    }
    if options.lib.contains(&Form::Source) {
        let flags = library::library_flags(&library::Build {
            strict: options.strict,
            openmp: options.openmp,
            flush: options.flush_denormals,
            march: None,
        });
        lines.push(format!("cc {} main.c {name}.c -lm", flags.join(" ")));
    }
    if options.march != "any" && options.lib.iter().any(|form| *form != Form::Source) {
        lines.push(String::new());
        let machine =
            if options.march == "native" { "processors like the one it was made on".into() } else { format!("`{}`", options.march) };
        lines.push(format!("The compiled code is for {machine}."));
    }
    lines
}

/// A function with names for its arguments.
fn export(
    source: &Source,
    id: FunctionId,
    derivative: Option<&Derivative>,
    settings: &library::Build,
    saving: Saving,
    with: &[(String, String)],
) -> Result<Export, Failure> {
    let known = known(&source.program, id, with)?;
    let (whole, id) = match known.is_empty() {
        true => (source.program.clone(), id),
        false => specialize(&source.program, id, &known, Taken::Dropped),
    };
    let program = pipeline::prepare_within(&whole, id, None, saving);
    let f = program.function(id);
    let kernel = library::library_kernel(&program, id, settings);
    let mut inputs = vec![];
    for (k, param) in f.params.iter().enumerate() {
        let mut names = vec![];
        leaf_names(program.vars.name(*param), whole.param_type(id, k), &mut names);
        let first = inputs.len();
        leaves(&program, program.vars.ty(*param), &mut names.into_iter(), &mut inputs);
        say_stored(&whole, whole.param_type(id, k), &mut inputs[first..].iter_mut());
    }
    let mut names = vec![];
    match derivative {
        None => leaf_names("result", whole.result_type(id), &mut names),
        Some(derivative) => names = derivative.leaf_names(source),
    }
    let mut outputs = vec![];
    leaves(&program, &f.result, &mut names.into_iter(), &mut outputs);
    say_stored(&whole, whole.result_type(id), &mut outputs.iter_mut());
    Ok(Export {
        signature: head(&program, id),
        sizes: f.sizes.iter().map(|n| program.vars.name(*n).to_string()).collect(),
        inputs,
        outputs,
        places: kernel.sites.iter().map(|site| source.sources.place(site.span)).collect(),
        kernel,
    })
}

/// The sizes and parameters that code is made for.
fn known(program: &Program, id: FunctionId, with: &[(String, String)]) -> Result<Known, Failure> {
    let f = program.function(id);
    let mut known = Known::default();
    let name_of = |v: Var| program.vars.name(v).to_string();
    for (name, text) in with {
        let what = format!("`--with {name}`");
        let tree = read(&what, text)?;
        let wanted = |ty: &Type| Wanted { what: &what, ty, name: &name_of }.convert(tree.clone());
        if let Some(v) = f.sizes.iter().find(|v| name_of(**v) == *name) {
            match wanted(&Type::I64)? {
                Value::Scalar(Lit::I64(n)) if n >= 0 => known.sizes.push((*v, n)),
                _ => return Err(Failure::message(format!("{what}: a size is not negative"))),
            }
            continue;
        }
        match f.visible().find(|(_, v)| name_of(*v) == *name) {
            Some((k, v)) => match (program.vars.ty(v), wanted(program.vars.ty(v))) {
                (Type::Scalar(_), Ok(Value::Scalar(lit))) => known.params.push((k, lit)),
                (Type::Scalar(_), Err(error)) => return Err(error.into()),
                _ => {
                    let error = Error::new(format!("{what}: only sizes and single numbers are given so"));
                    return Err(Failure::Message(error.note(format!("`{name}` has type {}", program.vars.ty(v).describe(&name_of)))));
                }
            },
            // Of several functions some may have it.
            None => {}
        }
    }
    Ok(known)
}

fn leaves(program: &Program, ty: &Type, names: &mut impl Iterator<Item = String>, out: &mut Vec<Leaf>) {
    match ty {
        Type::Scalar(scalar) => out.push(Leaf { name: names.next().unwrap_or_default(), scalar: *scalar, shape: None }),
        Type::Array(shape, scalar) => {
            let axes: Vec<String> = shape.iter().map(|size| print_size(program, size)).collect();
            let shape = Some(format!("[{}]", axes.join(", ")));
            out.push(Leaf { name: names.next().unwrap_or_default(), scalar: *scalar, shape });
        }
        Type::Tuple(parts) => parts.iter().for_each(|part| leaves(program, part, names, out)),
    }
}

/// Says of packed arrays which part of a matrix they are.
fn say_stored<'l>(program: &Program, ty: &Type, leaves: &mut impl Iterator<Item = &'l mut Leaf>) {
    match (ty, ty.structured()) {
        (Type::Tuple(_), Some((structure, _))) => {
            if let Some(shape) = leaves.next().and_then(|leaf| leaf.shape.as_mut()) {
                let n = print_size(program, &structure.size);
                *shape +=
                    &format!(", the stored places of {} [{n}, {n}] row by row", structure.describe(&|v| program.vars.name(v).to_string()));
            }
        }
        (Type::Tuple(parts), None) => parts.iter().for_each(|part| say_stored(program, part, leaves)),
        (Type::Scalar(_) | Type::Array(..), _) => {
            leaves.next();
        }
    }
}

/// Compiles in a folder of its own, then puts the results in their places.
fn write(folder: &Path, name: &str, header: &str, text: &str, options: &Build, settings: &library::Build) -> Result<Vec<PathBuf>, Failure> {
    let unusable = |e: std::io::Error| Failure::message(format!("cannot write to {}: {e}", folder.display()));
    let failed = |e: runtime::Error| Failure::Message(e.notes.into_iter().fold(Error::new(e.message), Error::note));
    if !folder.as_os_str().is_empty() {
        std::fs::create_dir_all(folder).map_err(unusable)?;
    }
    let work = unfinished::Folder::new_in(&std::env::temp_dir(), "iverson-build-").map_err(unusable)?;
    let source = work.path().join(format!("{name}.c"));
    std::fs::write(&source, text).map_err(unusable)?;
    let mut results: Vec<(PathBuf, Vec<u8>)> = vec![(folder.join(format!("{name}.h")), header.into())];
    let compiled = options.lib.iter().any(|form| *form != Form::Source);
    let _progress = Progress::new(format!("compiling `{name}`"));
    let object = if compiled { Some(library::object(&source, settings).map_err(failed)?) } else { None };
    let mut made = |file: String, make: &dyn Fn(&Path, &Path) -> Result<(), runtime::Error>| -> Result<(), Failure> {
        let place = work.path().join(&file);
        make(object.as_deref().expect("compiled above"), &place).map_err(failed)?;
        results.push((folder.join(file), std::fs::read(&place).map_err(unusable)?));
        Ok(())
    };
    let shared = format!("lib{name}{}", std::env::consts::DLL_SUFFIX);
    for form in [Form::Static, Form::Shared] {
        match form {
            form if !options.lib.contains(&form) => {}
            Form::Static => made(format!("lib{name}.a"), &library::archive)?,
            _ => made(shared.clone(), &|object, place| library::share(object, place, &shared, settings))?,
        }
    }
    if options.lib.contains(&Form::Source) {
        results.push((folder.join(format!("{name}.c")), text.into()));
    }
    output::replace(&results)?;
    Ok(results.into_iter().map(|(path, _)| path).collect())
}
