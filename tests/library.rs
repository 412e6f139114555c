//! The library: its examples hold, its derivatives are right at all sizes, and its reference says what it does.
//!
//! Every example is interpreted at every stage and compiled, and its derivatives are checked by duality and
//! differences (`harness/`). `BLESS=1 cargo test --test library` rewrites results of examples and `docs/library.md`;
//! `LIBRARY=name` looks at the definitions whose names contain it alone.

mod harness;
mod reference;

use harness::derivatives::Modes;
use harness::load;
use harness::stages::{Stages, Target, options};
use iverson::ir::{FunctionId, Program, Type};
use iverson::syntax::ast::{ExpKind, TypeKind};
use iverson::types::{Lit, Scalar};
use iverson::value::tree::{Tree, Wanted};
use iverson::value::{Value, literal, print};
use reference::{Definition, Example, File};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;

fn bless() -> bool {
    std::env::var("BLESS").is_ok()
}

/// Functions that take long.
const LARGEST: [(&str, i64); 2] = [("eigh", 7), ("eigenvalues", 7)];

fn chosen(definition: &Definition) -> bool {
    definition.name.contains(&std::env::var("LIBRARY").unwrap_or_default())
}

/// Runs over all items in as many threads as there are processors; gives what is wrong.
fn in_parallel<T: Sync>(items: &[T], check: impl Fn(&T) -> Result<(), String> + Sync) -> Vec<String> {
    let next = Mutex::new(0);
    let wrong = Mutex::new(vec![]);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let at = {
                        let mut next = next.lock().unwrap();
                        *next += 1;
                        *next - 1
                    };
                    let Some(item) = items.get(at) else { return };
                    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(item)));
                    let found = found.unwrap_or_else(|_| Err("panicked".to_string()));
                    wrong.lock().unwrap().extend(found.err().map(|w| (at, w)));
                }
            });
        }
    });
    let mut wrong = wrong.into_inner().unwrap();
    wrong.sort();
    wrong.into_iter().map(|(_, w)| w).collect()
}

#[test]
fn examples_hold() {
    let files = reference::files();
    let mut items = vec![];
    for (k, file) in files.iter().enumerate() {
        for definition in file.definitions.iter().filter(|d| chosen(d)) {
            items.extend(definition.examples.iter().map(|example| (k, definition, example)));
        }
    }
    let found: Mutex<HashMap<(usize, usize), String>> = Mutex::new(HashMap::new());
    let wrong = in_parallel(&items, |(k, definition, example)| {
        let at = format!("{}:{}: {}", files[*k].path.display(), example.line + 1, example.call);
        let result = run(&files, definition, example).map_err(|e| format!("{at}\n{e}"))?;
        if result.trim_end() != example.result.trim_end() && !bless() {
            return Err(format!("{at}\ngives\n{result}\nbut should give\n{}", example.result));
        }
        found.lock().unwrap().insert((*k, example.line), result);
        Ok(())
    });
    if bless() {
        files.iter().enumerate().for_each(|(k, file)| rewrite(file, k, &found.lock().unwrap()));
    }
    assert!(wrong.is_empty(), "{} examples are wrong:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

/// Writes results behind the calls they belong to.
fn rewrite(file: &File, k: usize, found: &HashMap<(usize, usize), String>) {
    let mut out = String::new();
    let mut lines = file.text.lines().enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        out += &format!("{line}\n");
        if let Some(result) = found.get(&(k, at)) {
            result.trim_end().lines().for_each(|l| out += &format!("-- {}\n", l.trim_end()));
            while lines.next_if(|(_, l)| l.starts_with("--") && !l.starts_with("-- > ")).is_some() {}
        }
    }
    if out != file.text {
        std::fs::write(&file.path, out).unwrap();
    }
}

/// The example's result, and all that must hold of it. Arguments that are plain values become parameters, by which it is
/// differentiated; others, such as functions, stay where they are.
fn run(files: &[File], definition: &Definition, example: &Example) -> Result<String, String> {
    let (module, _) = iverson::syntax::parse(0, &definition.text);
    let params = &module.definitions[0].params;
    let (call, wrong) = iverson::syntax::parse_expression(0, &example.call);
    if let Some(wrong) = wrong.first() {
        return Err(wrong.message.clone());
    }
    let ExpKind::Call(head, args) = &call.kind else { return Err("an example is a call".to_string()) };
    let named = matches!(&head.kind, ExpKind::Name(name) if *name == definition.name);
    if !named || args.len() != params.len() {
        return Err(format!("an example is a call of `{}` with {} arguments", definition.name, params.len()));
    }
    let takes_functions = params.iter().any(|p| matches!(p.ty.kind, TypeKind::Function(..)));
    let slice = |s: iverson::diagnostic::Span, text: &str| text[s.start as usize..s.end as usize].to_string();
    let (mut outer, mut inner, mut values) = (vec![], vec![], vec![]);
    for (param, arg) in params.iter().zip(args) {
        let text = slice(arg.value.span, &example.call);
        match literal::read(&text) {
            Ok(tree) if !matches!(param.ty.kind, TypeKind::Error) => {
                // A function that is written for vectors of two elements takes no others.
                let ty = match &param.ty.kind {
                    TypeKind::Array(_, element) if takes_functions => sized(&tree, &slice(element.span, &definition.text)),
                    _ => slice(param.ty.span, &definition.text),
                };
                outer.push(format!("{}: {ty}", param.name.text));
                inner.push(param.name.text.clone());
                values.push(tree);
            }
            _ => inner.push(text),
        }
    }
    let mut names = reference::words(&example.call);
    names.push(definition.name.clone());
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let library = reference::closure(files, &names);
    let written = |params: &[String]| format!("{library}def example({}) = {}({})\n", params.join(", "), definition.name, inner.join(", "));
    let program = load(&written(&outer))?;
    let id = program.find("example").expect("the example is defined");
    let args = convert(&program, id, &values)?;
    harness::fits(&program, id, &args)?;
    let stages = Stages::new(&program, id)?;
    let (value, _) = stages.call(&args, Target::Compiled)?.map_err(|f| format!("the call fails: {}", f.message))?;
    if let Some(modes) = Modes::new(&program, id)? {
        modes.check(&args, Target::Compiled)?;
    }
    if reference::words(&outer.join(" ")).iter().any(|word| word == "T") {
        let single: Vec<String> = outer.iter().map(|param| in_single_precision(param)).collect();
        single_precision(&written(&single), &values, &value)?;
    }
    Ok(shown(&value))
}

/// A parameter `x: [n]T` as `x: [n]f32`.
fn in_single_precision(param: &str) -> String {
    let (name, ty) = param.split_once(": ").expect("a parameter has a type");
    format!("{name}: {}", ty.replace('T', "f32"))
}

/// The same example with numbers of half the length gives about the same.
fn single_precision(text: &str, values: &[Tree], wanted: &Value) -> Result<(), String> {
    let program = load(text)?;
    let id = program.find("example").expect("the example is defined");
    let args = convert(&program, id, values)?;
    let prepared = iverson::pipeline::prepare(&program, id, None);
    let interpreted = iverson::interpret::call(&prepared, id, &args).map_err(|f| f.message)?.0;
    let compiled = iverson::runtime::compile(&prepared, id, options(&prepared, id)).map_err(|e| e.to_string())?;
    let compiled = compiled.call(&args, 1).map_err(|f| f.message)?;
    for (how, found) in [("interpreted", interpreted), ("compiled", compiled)] {
        let close = |(a, b): (&f64, &f64)| a == b || (a - b).abs() <= 1e-4 * (1.0 + a.abs());
        if !wanted.floats().iter().zip(&found.floats()).all(close) {
            return Err(format!("{how} in single precision it gives {}", shown(&found)));
        }
    }
    Ok(())
}

fn convert(program: &Program, id: FunctionId, values: &[Tree]) -> Result<Vec<Value>, String> {
    let convert = |(tree, param): (&Tree, &iverson::types::Var)| {
        let name = |v| program.vars.name(v).to_string();
        let what = format!("argument `{}`", program.vars.name(*param));
        Wanted { what: &what, ty: program.vars.ty(*param), name: &name }.convert(tree.clone()).map_err(|e| e.message)
    };
    values.iter().zip(&program.function(id).params).map(convert).collect()
}

/// The type of a list, with its sizes as numbers.
fn sized(tree: &Tree, element: &str) -> String {
    match tree {
        Tree::List(items) => format!("[{}]{}", items.len(), items.first().map_or(element.to_string(), |item| sized(item, element))),
        _ => element.to_string(),
    }
}

/// Twelve digits: machines differ in the last bits of functions.
fn shown(value: &Value) -> String {
    let mut value = value.clone();
    value.for_each_float(&mut |x| *x = format!("{x:.11e}").parse().expect("a printed number reads back"));
    print::pretty(&value, 0)
}

/// What arguments a function is defined for.
#[derive(Clone, Copy, PartialEq)]
enum Domain {
    /// Numbers of both signs, of any size.
    Any,
    /// Positive numbers.
    Positive,
    /// Numbers of both signs, and square matrices with a diagonal that outweighs the rest.
    Dominant,
    /// The same, symmetric.
    Definite,
    /// The first parameter ascends.
    Ascending,
    /// Functions as parameters, or numbers that depend on one another: the examples must do.
    Examples,
}

fn domain(name: &str) -> Domain {
    match name {
        "search_sorted" | "polynomial_fit" => Domain::Examples,
        "cumprod" | "entropy" | "kl_divergence" | "log_beta" | "log_choose" | "xlogy" => Domain::Positive,
        "interpolate" | "interpolate_hermite" | "spline" | "spline_slopes" => Domain::Ascending,
        name if name.ends_with("_logpdf") && !name.starts_with("multivariate") => Domain::Positive,
        name if name.ends_with("_logpmf") => Domain::Positive,
        "multivariate_normal_logpdf" => Domain::Definite,
        "multivariate_normal_cholesky_logpdf" | "solve_tridiagonal" => Domain::Dominant,
        "solve_lower" | "solve_upper" | "solve_lower_matrix" | "solve_upper_matrix" | "cholesky_solve" => Domain::Dominant,
        "cholesky" => Domain::Definite,
        _ => Domain::Any,
    }
}

const SIZES: [i64; 4] = [0, 1, 7, 17];

#[test]
fn derivatives_are_right_at_all_sizes() {
    let files = reference::files();
    let definitions: Vec<&Definition> = files.iter().flat_map(|f| &f.definitions).filter(|d| is_public(d) && chosen(d)).collect();
    let wrong = in_parallel(&definitions, |definition| {
        let domain = domain(&definition.name);
        let (module, _) = iverson::syntax::parse(0, &definition.text);
        let takes_functions = module.definitions[0].params.iter().any(|p| matches!(p.ty.kind, TypeKind::Function(..)));
        if domain == Domain::Examples || takes_functions {
            return Ok(());
        }
        let program = load(&reference::closure(&files, &[&definition.name]))?;
        let id = program.find(&definition.name).expect("it is defined");
        let stages = Stages::new(&program, id)?;
        let modes = Modes::new(&program, id)?;
        let largest = LARGEST.iter().find(|(name, _)| *name == definition.name).map_or(i64::MAX, |(_, size)| *size);
        for size in SIZES.into_iter().filter(|size| *size <= largest) {
            let args = arguments(&program, id, domain, size)?;
            let at = |e: String| format!("{} at size {size}: {e}", definition.name);
            match &modes {
                Some(modes) => modes.check(&args, Target::Compiled).map(|_| ()).map_err(at)?,
                None => stages.call(&args, Target::Compiled).map(|_| ()).map_err(at)?,
            }
        }
        Ok(())
    });
    assert!(wrong.is_empty(), "{} definitions are wrong:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

/// Irregular numbers for every parameter; sizes that differ are unequal.
fn arguments(program: &Program, id: FunctionId, domain: Domain, size: i64) -> Result<Vec<Value>, String> {
    let function = program.function(id);
    let sizes: HashMap<_, i64> =
        function.sizes.iter().enumerate().map(|(k, v)| (*v, if size > 1 { size - k as i64 } else { size })).collect();
    let lookup = |v: iverson::types::Var| sizes.get(&v).copied().or(Some(size));
    let mut state = 0.3_f64;
    let mut next = || {
        state = (state * 997.0 + 0.618).fract();
        match domain {
            Domain::Positive => 0.2 + 1.5 * state,
            Domain::Any | Domain::Ascending | Domain::Dominant | Domain::Definite | Domain::Examples => 2.6 * state - 1.3,
        }
    };
    let mut args = vec![];
    for param in &function.params {
        let ty = program.vars.ty(*param);
        args.push(match ty {
            Type::Scalar(Scalar::I64) => Value::Scalar(Lit::I64(size)),
            ty => {
                let mut value = Value::zero(ty, &lookup).map_err(|e| e.message)?;
                value.for_each_float(&mut |x| *x = next());
                if domain == Domain::Ascending && args.is_empty() {
                    let mut last = 0.0;
                    value.for_each_float(&mut |x| {
                        last += 0.1 + x.abs();
                        *x = last;
                    });
                }
                if matches!(domain, Domain::Dominant | Domain::Definite) {
                    make_dominant(&mut value, domain == Domain::Definite);
                }
                value
            }
        });
    }
    Ok(args)
}

/// Strengthens the diagonal of a square matrix, and mirrors it at the diagonal where it should be symmetric.
fn make_dominant(value: &mut Value, symmetric: bool) {
    let Value::Array(array) = value else { return };
    let [n, m] = array.shape[..] else { return };
    let iverson::value::Data::F64(x) = &mut array.data else { return };
    for i in 0..n.min(m) {
        x[i * m + i] += 2.0 * n as f64;
        for j in (0..i).filter(|_| symmetric && n == m) {
            x[j * m + i] = x[i * m + j];
        }
    }
}

fn is_public(definition: &Definition) -> bool {
    !definition.name.starts_with('_')
}

/// A program may define what is built in; the library does not notice.
#[test]
fn definitions_do_not_change_the_library() {
    let text = "
        def sign(x: f64) -> f64 = 100 * x
        def log(x: f64) -> f64 = 1000 * x
        def upper(x: f64) -> f64 = x
        def grad(x: f64) -> f64 = x
        def f(A: [n, n]f64) -> (f64, f64) = sign_and_log_det(A)
        def g(a: f64) -> f64 = newton(|x| x^2 - a + 0 * sign(x), 1, 6)
        def own(x: f64) -> f64 = sign(x) + log(x) + upper(x) + grad(x)";
    let program = load(text).unwrap();
    let call = |name: &str, args: &[Value]| {
        let id = program.find(name).unwrap();
        iverson::interpret::call(&iverson::pipeline::prepare(&program, id, None), id, args).unwrap().0.floats()
    };
    let matrix = iverson::value::Array::f64(vec![2, 2], vec![1.0, 2.0, 3.0, 4.0]);
    let found = call("f", &[Value::Array(matrix)]);
    assert!(found[0] == -1.0 && (found[1] - 2f64.ln()).abs() < 1e-12, "{found:?}");
    assert!((call("g", &[Value::Scalar(Lit::F64(2.0))])[0] - 2f64.sqrt()).abs() < 1e-12);
    assert_eq!(call("own", &[Value::Scalar(Lit::F64(1.0))]), [1102.0]);
}

/// What factorisations, solves and transforms must satisfy: all of these are zero.
const IDENTITIES: &str = "
    def by_cholesky(A: [n, n]f64) -> [n, n]f64 =
      let S = for i, j. [i == j] + sum k. A[i, k] * A[j, k];
      let L = cholesky(S);
      S - matmul(L, transpose(L))
    def by_lu(A: [n, n]f64) -> [n, n]f64 =
      let (L, U, order) = lu(A);
      for i, j. A[order[i], j] - sum k. L[i, k] * U[k, j]
    def by_solve(A: [n, n]f64, b: [n]f64) -> [n]f64 = matvec(A, solve(A, b)) - b
    def by_inverse(A: [n, n]f64) -> [n, n]f64 = matmul(A, inverse(A)) - identity(n)
    def by_det(A: [n, n]f64) -> f64 =
      let (s, l) = sign_and_log_det(A);
      det(A) - s * exp(l)
    def by_qr(A: [n, n]f64) -> ([n, n]f64, [n, n]f64) =
      let (Q, R) = qr(A);
      (matmul(Q, R) - A, matmul(transpose(Q), Q) - identity(n))
    def by_least_squares(A: [n, m]f64, b: [n]f64) -> [m]f64 = vecmat(matvec(A, least_squares(A, b)) - b, A)
    def by_eigh(A: [n, n]f64) -> ([n, n]f64, [n, n]f64) =
      let (d, V) = eigh(A);
      (matmul(symmetric(A), V) - (for i, k. V[i, k] * d[k]), matmul(transpose(V), V) - identity(n))
    def by_fft(x: [n]f64, y: [n]f64) -> ([n]f64, [n]f64, [n]f64, [n]f64) =
      let (a, b) = fft(x, y);
      let (c, d) = dft(x, y);
      let (u, v) = ifft(a, b);
      (a - c, b - d, u - x, v - y)
    def by_sort(x: [n]f64) -> f64 = if is_sorted(sort(x)) then (sum i. x[i]) - sum i. sort(x)[i] else 1
";

#[test]
fn identities_hold() {
    let program = load(IDENTITIES).unwrap();
    let own: Vec<FunctionId> =
        (0..program.functions.len() as u32).map(FunctionId).filter(|f| program.function(*f).span.source == 0).collect();
    let wrong = in_parallel(&own, |id| {
        let name = &program.function(*id).name;
        let modes = Modes::new(&program, *id)?.expect("it has a derivative");
        for size in [0, 1, 4, 8] {
            let args = arguments(&program, *id, Domain::Any, size)?;
            let (value, _) = modes.function.call(&args, Target::Compiled)?.map_err(|f| format!("{name}: {}", f.message))?;
            if let Some(x) = value.floats().iter().find(|x| x.abs() > 1e-8 || x.is_nan()) {
                return Err(format!("{name} at size {size}: {x} should be 0"));
            }
            modes.check(&args, Target::Compiled).map_err(|e| format!("{name} at size {size}: {e}"))?;
        }
        Ok(())
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn the_files_are_laid_out() {
    for file in reference::files() {
        let laid_out = iverson::syntax::format::format(&file.text).expect("the library parses");
        assert!(laid_out == file.text, "`iverson fmt {}` changes it", file.path.display());
    }
}

#[test]
fn the_reference_says_what_the_library_does() {
    let files = reference::files();
    for definition in files.iter().flat_map(|f| &f.definitions).filter(|d| is_public(d)) {
        assert!(!definition.description.is_empty(), "`{}` has no description", definition.name);
        assert!(!definition.examples.is_empty(), "`{}` has no example", definition.name);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/library.md");
    let page = page(&files);
    if bless() {
        std::fs::write(&path, &page).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "docs/library.md is out of date; `BLESS=1 cargo test --test library` writes it");
}

fn page(files: &[File]) -> String {
    let mut out = String::from(INTRODUCTION);
    // A file of functions that the compiler alone calls has no page.
    let files: Vec<&File> = files.iter().filter(|f| f.definitions.iter().any(is_public)).collect();
    for file in &files {
        let names: Vec<String> = file.definitions.iter().filter(|d| is_public(d)).map(|d| format!("[`{0}`](#{0})", d.name)).collect();
        out += &format!("\n- [{}](#{}): {}", file.title, anchor(&file.title), names.join(", "));
    }
    out += "\n";
    for file in files {
        out += &format!("\n## {}\n", file.title);
        file.about.iter().for_each(|text| out += &format!("\n{text}\n"));
        for definition in file.definitions.iter().filter(|d| is_public(d)) {
            out +=
                &format!("\n### {}\n\n```text\n{}\n```\n\n{}\n", definition.name, definition.signature, definition.description.join("\n"));
            out += "\n```text\n";
            for example in &definition.examples {
                out += &format!("> {}\n{}\n", example.call, example.result.trim_end());
            }
            out += "```\n";
        }
    }
    out
}

fn anchor(title: &str) -> String {
    title.to_lowercase().replace(' ', "-").replace(',', "")
}

const INTRODUCTION: &str = "\
# The library

These functions are written in Iverson (`library/*.iv`) and are there in every program, without being imported. A program's own
definitions and variables hide those of the library. All of them can be differentiated, in both modes and repeatedly;
what is said of derivatives below is about points where there is a choice. The examples are run by the tests.

`iverson run FILE dot x=[1,2] y=[3,4]` calls a function of the library from the command line, whatever the file defines.

This page is made from the comments in `library/`.
";
