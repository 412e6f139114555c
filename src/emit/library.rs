//! Kernels -> a C library: one text that needs nothing but the C library, and the header that documents it.
//!
//! An exported function takes the sizes, then the inputs (scalars by value, arrays by pointer), then a pointer for each
//! output, and gives 0 or the code of an error. All else in the text is static, so several libraries can be linked.

use super::c::{Style, c, entry_name};
use super::c_family::{identifier, type_name};
use crate::fault::Fault;
use crate::loops::{Kernel, Stmt};
use crate::types::Scalar;
use std::fmt::Write;

/// A library to be.
pub struct Library {
    /// Names begin with it.
    pub name: String,
    /// Where it comes from, for the reader of the header.
    pub origin: String,
    /// How to build with it, for the reader of the header: one command for each line.
    pub usage: Vec<String>,
    pub exports: Vec<Export>,
    pub strict: bool,
    /// Denormal numbers are zero.
    pub flush: bool,
}

/// A function to be exported.
pub struct Export {
    pub kernel: Kernel,
    /// The definition's head, as the language writes it.
    pub signature: String,
    pub sizes: Vec<String>,
    /// The leaves of the parameters and of the result.
    pub inputs: Vec<Leaf>,
    pub outputs: Vec<Leaf>,
    /// What the kernel's sites are in the source: `file.iv:3:14`.
    pub places: Vec<String>,
}

pub struct Leaf {
    pub name: String,
    pub scalar: Scalar,
    /// `[n, m]`; none for a scalar.
    pub shape: Option<String>,
}

/// The texts that the library stands on, in order.
pub struct Support<'a> {
    pub base: &'a str,
    pub gemm: &'a str,
    pub library: &'a str,
}

/// The name under which a function is exported.
pub fn exported_name(library: &Library, export: &Export) -> String {
    format!("{}_{}", identifier(&library.name), identifier(&export.kernel.name))
}

/// The arguments of an exported function: name, declaration, and what it is.
fn arguments(export: &Export) -> Vec<(String, String, String)> {
    let mut taken: Vec<String> = vec![];
    let mut unique = |name: &str| {
        let name = safe(name);
        let name = match taken.contains(&name) {
            false => name,
            true => (2..).map(|k| format!("{name}_{k}")).find(|n| !taken.contains(n)).expect("some number is free"),
        };
        taken.push(name.clone());
        name
    };
    let mut arguments = vec![];
    for size in &export.sizes {
        let name = unique(size);
        arguments.push((name.clone(), format!("int64_t {name}"), "a size, 0 or more".to_string()));
    }
    for leaf in &export.inputs {
        let (name, ty) = (unique(&leaf.name), type_name(leaf.scalar));
        match &leaf.shape {
            None => arguments.push((name.clone(), format!("{ty} {name}"), format!("in: {}", single(leaf.scalar)))),
            Some(shape) => arguments.push((name.clone(), format!("const {ty} *{name}"), format!("in: {shape}"))),
        }
    }
    for leaf in &export.outputs {
        let (name, ty) = (unique(&leaf.name), type_name(leaf.scalar));
        let what = format!("out: {}", leaf.shape.as_deref().unwrap_or(single(leaf.scalar)));
        arguments.push((name.clone(), format!("{ty} *{name}"), what));
    }
    arguments
}

fn single(scalar: Scalar) -> &'static str {
    if scalar == Scalar::Bool { "one truth value" } else { "one number" }
}

fn prototype(library: &Library, export: &Export) -> String {
    let mut out = format!("int32_t {}(", exported_name(library, export));
    let arguments = arguments(export);
    if arguments.is_empty() {
        out.push_str("void");
    }
    let indent = " ".repeat(out.len().min(40));
    let mut column = out.len();
    for (k, (_, declaration, _)) in arguments.iter().enumerate() {
        let last = k + 1 == arguments.len();
        if k > 0 && column + declaration.len() + 2 > WIDTH {
            let _ = write!(out, "\n{indent}");
            column = indent.len();
        } else if k > 0 {
            out.push(' ');
        }
        let _ = write!(out, "{declaration}{}", if last { "" } else { "," });
        column += declaration.len() + 2;
    }
    out.push(')');
    out
}

/// The longest line of the header.
const WIDTH: usize = 110;

/// The text cut into lines at its commas, but for those in axes.
fn wrapped(text: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for c in text.chars() {
        parts.last_mut().expect("a part").push(c);
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            ' ' if depth == 0 => parts.push(String::new()),
            _ => {}
        }
    }
    let mut lines = vec![String::new()];
    for part in parts {
        if lines.last().is_some_and(|l| !l.is_empty() && l.len() + part.trim_end().len() > WIDTH - 3) {
            lines.push("  ".to_string());
        }
        lines.last_mut().expect("a line").push_str(&part);
    }
    lines.into_iter().map(|l| l.trim_end().to_string()).collect()
}

pub fn header(library: &Library) -> String {
    let mut out = String::new();
    let name = identifier(&library.name);
    let upper = name.to_uppercase();
    let mut line = |text: String| {
        let _ = writeln!(out, "{text}");
    };
    line(format!("/* {name}: made by Iverson from {}.", library.origin));
    line(" *".into());
    line(" * Arrays are dense and row-major: the element i, j of an array [n, m] is at i * m + j. A bool is one byte.".into());
    line(" * Inputs are not written to; outputs belong to the caller and must overlap neither inputs nor one another.".into());
    line(" * Each function gives 0, or the code of an error; then its outputs hold nothing of use. Memory that a call needs".into());
    line(" * it takes and frees itself. All functions may be called by several threads at once.".into());
    if library.flush {
        line(" * Denormal numbers are zero in them, as operands and as results; the caller's mode is as it was after a call.".into());
    }
    line(" *".into());
    for usage in &library.usage {
        line(format!(" *   {usage}").trim_end().to_string());
    }
    line(" */".into());
    line(format!("#ifndef {upper}_H\n#define {upper}_H\n"));
    line("#include <stdbool.h>\n#include <stdint.h>\n".into());
    line("#ifdef __cplusplus\nextern \"C\" {\n#endif\n".into());
    line("/* The codes of errors. */".into());
    line("enum {".into());
    line(format!("    {upper}_OK = 0,"));
    for (code, constant, meaning) in codes() {
        line(format!("    {upper}_{constant} = {code}, /* {meaning} */"));
    }
    line("};\n".into());
    line("/* What went wrong in the last call of this thread that failed, with its place in the source: one line, empty if".into());
    line("   none has failed. It is valid until the next call of this thread that fails. */".into());
    line(format!("const char *{name}_message(void);"));
    for export in &library.exports {
        line(String::new());
        for (k, part) in wrapped(&export.signature).into_iter().enumerate() {
            line(format!("{} {part}", if k == 0 { "/*" } else { " *" }));
        }
        line(" *".into());
        let arguments = arguments(export);
        let width = arguments.iter().map(|(name, _, _)| name.len()).max().unwrap_or(0);
        for (name, _, what) in &arguments {
            line(format!(" *   {name:width$}  {what}"));
        }
        line(" */".into());
        line(format!("{};", prototype(library, export)));
    }
    line("\n#ifdef __cplusplus\n}\n#endif\n".into());
    line("#endif".into());
    out
}

pub fn source(library: &Library, support: &Support) -> String {
    let mut out = String::new();
    let name = identifier(&library.name);
    let _ = writeln!(out, "/* {name}: made by Iverson from {}. {name}.h says what there is. */\n", library.origin);
    if library.strict {
        out.push_str("#define IV_STRICT 1\n");
    }
    out.push_str(support.base);
    for (scalar, ending) in [(Scalar::F64, ""), (Scalar::F32, "##32")] {
        if library.exports.iter().any(|e| e.kernel.body.iter().any(|s| has_gemm(&e.kernel, s, scalar))) {
            let (ty, number) = (type_name(scalar), ending.trim_start_matches('#'));
            let _ = writeln!(out, "\n#define IV_HAS_GEMM{number} 1\n#define IV_REAL {ty}\n#define IV_NAME(name) name{ending}");
            let _ = writeln!(out, "{}#undef IV_REAL\n#undef IV_NAME", support.gemm);
        }
    }
    let _ = write!(out, "\n{}\n{}", support.library, describe());
    let visible = "__attribute__((visibility(\"default\")))";
    let _ = writeln!(out, "\n{visible} const char *{name}_message(void);\nconst char *{name}_message(void) {{ return iv_message; }}");
    for export in &library.exports {
        let style = Style { count: false, strict: library.strict, embedded: true, profile: false, flush: library.flush };
        let _ = write!(out, "\n/* {} */\n\n{}", export.signature, c(&export.kernel, style));
        let _ = write!(out, "\n{visible} {};\n{}", prototype(library, export), wrapper(library, export));
    }
    out
}

/// The exported function, around its kernel.
fn wrapper(library: &Library, export: &Export) -> String {
    let (entry, exported) = (entry_name(&export.kernel), exported_name(library, export));
    let arguments = arguments(export);
    let names: Vec<&str> = arguments.iter().map(|(name, _, _)| name.as_str()).collect();
    let (sizes, rest) = names.split_at(export.sizes.len());
    let (inputs, outputs) = rest.split_at(export.inputs.len());
    let inputs: Vec<String> = inputs
        .iter()
        .zip(&export.inputs)
        .map(|(name, leaf)| if leaf.shape.is_some() { name.to_string() } else { format!("&{name}") })
        .collect();
    // C has no empty arrays.
    let list = |items: &[String]| if items.is_empty() { "0".to_string() } else { items.join(", ") };
    let owned = |items: &[&str]| items.iter().map(|s| s.to_string()).collect::<Vec<_>>();
    let places: Vec<String> = export.places.iter().map(|p| quoted(p)).collect();
    let mut out = String::new();
    let _ = writeln!(out, "{}\n{{", prototype(library, export));
    let _ = writeln!(out, "    static const char *const iv_places[] = {{{}}};", list(&places));
    let _ = writeln!(
        out,
        "    static const iv_function iv_self = {{{}, {entry}, {entry}_work, iv_places, {}}};",
        quoted(&exported),
        places.len()
    );
    let _ = writeln!(out, "    const int64_t iv_sizes[] = {{{}}};", list(&owned(sizes)));
    let _ = writeln!(out, "    const void *const iv_inputs[] = {{{}}};", list(&inputs));
    let _ = writeln!(out, "    void *const iv_outputs[] = {{{}}};", list(&owned(outputs)));
    let _ = writeln!(out, "    return iv_library_call(&iv_self, iv_sizes, {}, iv_inputs, iv_outputs);\n}}", sizes.len());
    out
}

/// Every code with its name in C and what it means.
fn codes() -> Vec<(i32, &'static str, &'static str)> {
    let own = [(NO_MEMORY, "NO_MEMORY", "the call does not fit in memory"), (BAD_SIZE, "BAD_SIZE", "a size is negative")];
    Fault::CODES.iter().copied().chain(own).collect()
}
const NO_MEMORY: i32 = 100;
const BAD_SIZE: i32 = 101;

/// `iv_describe`: a code and its numbers in the words of `fault`. The formats are what faults of telling numbers say.
fn describe() -> String {
    let mut out = String::from("static int32_t iv_describe(int32_t code, int64_t a, int64_t b, char *out, size_t size)\n{\n");
    out.push_str("    double x;\n    memcpy(&x, &a, sizeof x);\n    switch (code) {\n");
    for (code, _, meaning) in codes() {
        let say = |call: String| format!("return snprintf(out, size, {call});");
        let line = match (format(code, SECOND), format(code, SMALL)) {
            (Some(usual), Some(special)) if usual != special => {
                format!("if (b == {SMALL}) {} else {}", say(special), say(usual))
            }
            (Some(usual), _) => say(usual),
            (None, _) if code == BAD_SIZE => say("\"a size is %lld, but sizes are 0 or more\", (long long)a".into()),
            (None, _) => say(quoted(meaning)),
        };
        let _ = writeln!(out, "    case {code}: {line}");
    }
    out.push_str("    default: return snprintf(out, size, \"error %d\", (int)code);\n    }\n}\n");
    out
}

const FIRST: i64 = 7_034_501;
const SECOND: i64 = 9_034_502;
const FLOAT: f64 = 1234.0625;
/// The one second number that changes words (`Fault::bits`).
const SMALL: i64 = Fault::bits(Scalar::I32);

/// The format of a fault and its arguments, for C.
fn format(code: i32, second: i64) -> Option<String> {
    let said = |a: i64| Fault::decode(code, a, second).map(|fault| fault.to_string());
    let text = said(FIRST)?;
    let float = said(FLOAT.to_bits() as i64).filter(|text| text.contains(&format!("{FLOAT:?}")));
    let mut format = float.unwrap_or(text).replace('%', "%%");
    let mut places = vec![];
    for (number, spelled, argument) in
        [(FIRST.to_string(), "%lld", "(long long)a"), (format!(" {second}"), " %lld", "(long long)b"), (format!("{FLOAT:?}"), "%g", "x")]
    {
        if let Some(at) = format.find(&number) {
            places.push((at, number, spelled, argument));
        }
    }
    // Arguments stand in the order of their places in the text.
    places.sort();
    for (_, number, spelled, _) in &places {
        format = format.replace(number, spelled);
    }
    let arguments: String = places.iter().map(|(_, _, _, argument)| format!(", {argument}")).collect();
    Some(format!("{}{arguments}", quoted(&format)))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// A name that is no keyword of C or C++, nor one of ours.
fn safe(name: &str) -> String {
    #[rustfmt::skip]
    const KEYWORDS: &[&str] = &[
        "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern", "float",
        "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed", "sizeof",
        "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while", "bool", "true", "false",
        "alignas", "alignof", "and", "asm", "bitand", "bitor", "catch", "class", "compl", "concept", "constexpr",
        "decltype", "delete", "explicit", "export", "friend", "mutable", "namespace", "new", "noexcept", "not", "nullptr",
        "operator", "or", "private", "protected", "public", "requires", "template", "this", "throw", "try", "typeid",
        "typename", "using", "virtual", "xor", "NULL", "INFINITY", "NAN", "linux", "unix",
    ];
    let name = identifier(name);
    if KEYWORDS.contains(&name.as_str()) || name.starts_with("iv_") { format!("{name}_") } else { name }
}

fn has_gemm(kernel: &Kernel, s: &Stmt, scalar: Scalar) -> bool {
    let own = matches!(s, Stmt::Gemm(g) if kernel.buffer(g.dest.buffer).scalar == scalar);
    own || s.blocks().iter().any(|b| b.iter().any(|s| has_gemm(kernel, s, scalar)))
}
