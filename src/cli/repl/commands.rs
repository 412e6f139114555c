//! What begins with `:`.

use super::{Next, Shell};
use crate::cli::cost;
use crate::cli::derivative::Derivative;
use crate::cli::failure::Failure;
use crate::cli::inputs::check_name;
use crate::cli::options::{Kind, Target, Wrt};
use crate::cli::output;
use crate::cli::show::{definitions, head};
use crate::cli::source::Source;
use crate::cli::wrt::By;
use clap::ValueEnum;
use iverson::diagnostic::Severity;
use iverson::ir::{FunctionId, Type};
use iverson::pipeline;
use iverson::syntax::parse_expression;
use iverson::value::Value;
use std::io::Write;
use std::path::Path;

/// Name, what it takes, what it does.
const COMMANDS: &[(&str, &str, &str)] = &[
    ("show", "f [KIND] [wrt x,y] [after PASS]", "a function or its derivative as a program"),
    ("cost", "f [KIND] [wrt x,y] [at n=10,m=20]", "the number of its operations"),
    ("type", "e", "the type of an expression, which is not evaluated"),
    ("load", "FILE", "the definitions of a file"),
    ("list", "", "what is defined"),
    ("target", "c|interpret", "how expressions are evaluated"),
    ("help", "", "this"),
    ("quit", "", "the end; so does Ctrl-D"),
];

const HELP: &str = "\
An expression is evaluated, and its value is `it` from then on. `let x = e` keeps a value under a name and `let f = |x| e`
a function; `def` and `type` define. An input goes on over several lines as long as it is unfinished; an empty line ends it. Ctrl-C drops the input,
or ends the computation.

  > def f(x: [n]f64) -> f64 = sum i. x[i]^2
  > let x = [1.0, 2.0]
  > grad(f)(x)
";

impl Shell {
    pub(super) fn command(&mut self, line: &str) -> Result<Next, Failure> {
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let known: Vec<&str> = COMMANDS.iter().map(|(name, _, _)| *name).collect();
        // The beginning of a name will do.
        let name = known.iter().copied().find(|k| !name.is_empty() && k.starts_with(name)).unwrap_or(name);
        match name {
            "show" => self.show(rest)?,
            "cost" => self.cost(rest)?,
            "type" => self.type_of(rest)?,
            "load" => {
                let count = self.load(Path::new(rest))?;
                output::print(|out| writeln!(out, "{count} definition{}", if count == 1 { "" } else { "s" }))?;
            }
            "list" => self.list()?,
            "target" => {
                self.target = Target::from_str(rest, false).map_err(|_| Failure::message("the targets are `c` and `interpret`"))?;
            }
            "help" => output::print(|out| {
                writeln!(out, "{HELP}")?;
                COMMANDS.iter().try_for_each(|(name, takes, does)| writeln!(out, "  {:<42} {does}", format!(":{name} {takes}")))
            })?,
            "quit" => return Ok(Next::Quit),
            other => check_name(other, &known, || format!("no command `:{other}`"))?,
        }
        Ok(Next::Go)
    }

    /// The function or derivative that a command is about, and the options behind it.
    fn subject(&self, rest: &str, options: &[&str]) -> Result<(Source, FunctionId, Vec<(String, String)>), Failure> {
        let mut words = rest.split_whitespace();
        let function = words.next().ok_or_else(|| Failure::message("the name of a function is missing"))?;
        let mut source = self.session.program(&[function])?;
        let of = source.find(function, &"this session")?;
        let mut words = words.peekable();
        let kind = match words.peek() {
            Some(word) if !options.contains(word) => {
                let kinds: Vec<String> =
                    Kind::value_variants().iter().filter_map(|k| Some(k.to_possible_value()?.get_name().to_string())).collect();
                let known: Vec<&str> = kinds.iter().map(String::as_str).collect();
                let word = word.replace('_', "-");
                check_name(&word, &known, || format!("no derivative `{word}`"))?;
                words.next();
                Kind::from_str(&word, false).ok()
            }
            _ => None,
        };
        let mut given = vec![];
        while let Some(word) = words.next() {
            check_name(word, options, || format!("`{word}` is not understood"))?;
            let value = words.next().ok_or_else(|| Failure::message(format!("something is missing behind `{word}`")))?;
            given.push((word.to_string(), value.to_string()));
        }
        let wrt = given.iter().find(|(name, _)| name == "wrt").map(|(_, names)| names.split(',').map(str::to_string).collect());
        let id = match kind {
            None => of,
            Some(kind) => {
                let by = By::new(&mut source, of, &Wrt { wrt })?;
                Derivative::new(&mut source, &by, kind)?.id
            }
        };
        Ok((source, id, given))
    }

    fn show(&self, rest: &str) -> Result<(), Failure> {
        let (source, id, given) = self.subject(rest, &["wrt", "after"])?;
        let after = given.iter().find(|(name, _)| name == "after").map(|(_, pass)| pass.as_str());
        if let Some(pass) = after {
            let names: Vec<&str> = ["check"].into_iter().chain(pipeline::pass_names()).collect();
            check_name(pass, &names, || format!("no pass `{pass}`"))?;
        }
        let program = match after.or(Some(pipeline::LAST_SHOWN_PASS)) {
            Some("check") => source.program,
            after => pipeline::prepare(&source.program, id, after),
        };
        output::print(|out| out.write_all(definitions(&program, id).as_bytes()))
    }

    fn cost(&self, rest: &str) -> Result<(), Failure> {
        let (source, id, given) = self.subject(rest, &["wrt", "at"])?;
        let at = given.iter().filter(|(name, _)| name == "at").flat_map(|(_, list)| list.split(','));
        let at: Option<Vec<(String, String)>> = at.map(|item| item.split_once('=').map(|(n, v)| (n.to_string(), v.to_string()))).collect();
        let at = at.ok_or_else(|| Failure::message("sizes are given as `at n=10,m=20`"))?;
        cost::report(&source, id, &at, None, false)
    }

    fn type_of(&mut self, text: &str) -> Result<(), Failure> {
        if self.session.definitions().iter().any(|d| d.name.text == text) {
            let lines = self.signatures(&[text.to_string()])?;
            return output::print(|out| lines.iter().try_for_each(|line| writeln!(out, "{line}")));
        }
        let number = self.session.source("input", text);
        let (exp, diagnostics) = parse_expression(number, text);
        if diagnostics.iter().any(|d| d.severity == Severity::Error) {
            return Err(self.session.wrong(&diagnostics));
        }
        let checked = self.session.expression(exp)?;
        let ty = checked.program.result_type(checked.id).describe(&|v| checked.program.vars.name(v).to_string());
        output::print(|out| writeln!(out, "{ty}"))
    }

    fn list(&self) -> Result<(), Failure> {
        let names: Vec<String> = self.session.definitions().iter().map(|d| d.name.text.clone()).collect();
        let signatures = self.signatures(&names)?;
        output::print(|out| {
            signatures.iter().try_for_each(|line| writeln!(out, "{line}"))?;
            self.session.functions().try_for_each(|line| writeln!(out, "{line}"))?;
            self.session.values().try_for_each(|known| writeln!(out, "{}: {}", known.name, type_text(&known.value, &known.ty)))
        })
    }

    /// The heads of definitions as they are checked, with the types of their results.
    pub(super) fn signatures(&self, names: &[String]) -> Result<Vec<String>, Failure> {
        let source = self.session.program(&[])?;
        let line = |name: &String| match source.program.find(name) {
            Some(id) => head(&source.program, id),
            None => format!("`{name}` is defined"),
        };
        Ok(names.iter().map(line).collect())
    }
}

/// The type of a value as the language writes it, with its sizes as numbers.
fn type_text(value: &Value, ty: &Type) -> String {
    match (value, ty) {
        (value, Type::Tuple(types)) if types.structure().is_some() => {
            format!("{} {}", types.structure().map_or("", |s| s.word()), type_text(value, &types[0]))
        }
        (value, Type::Tuple(types)) => {
            let parts = match value {
                Value::Tuple(parts) if types.len() > 1 => parts.as_slice(),
                one => std::slice::from_ref(one),
            };
            let parts: Vec<String> = parts.iter().zip(types).map(|(part, ty)| type_text(part, ty)).collect();
            match types.fields() {
                None => format!("({})", parts.join(", ")),
                Some(names) => {
                    let fields: Vec<String> = names.iter().zip(parts).map(|(name, part)| format!("{name}: {part}")).collect();
                    format!("{{{}}}", fields.join(", "))
                }
            }
        }
        (Value::Array(array), _) => {
            let axes: Vec<String> = array.shape.iter().map(usize::to_string).collect();
            format!("[{}]{}", axes.join(", "), array.scalar().name())
        }
        (Value::Scalar(lit), _) => lit.scalar().name().to_string(),
        (Value::Tuple(_), _) => value.describe(),
    }
}
