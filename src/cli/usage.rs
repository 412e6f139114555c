//! Command lines that are not understood: what the parser of options says, and a note where more is known.

use super::options::Options;
use super::source::quoted;
use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use iverson::syntax;
use std::io::Write;
use std::path::Path;

/// The options, or an end of the process that says what is wrong with them.
pub fn options() -> Options {
    Options::try_parse().unwrap_or_else(|error| {
        let _ = error.print();
        let words: Vec<String> = std::env::args().collect();
        if let Some(note) = note(&error, &words) {
            let _ = writeln!(std::io::stderr(), "\n  note: {note}");
        }
        std::process::exit(error.exit_code())
    })
}

fn note(error: &clap::Error, words: &[String]) -> Option<String> {
    let texts = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => vec![],
    };
    match error.kind() {
        ErrorKind::MissingRequiredArgument if texts(ContextKind::InvalidArg).iter().any(|a| a.starts_with("<FN")) => {
            let file = words.iter().skip(2).find(|word| word.ends_with(".iv"))?;
            let module = syntax::parse(0, &std::fs::read_to_string(file).ok()?).0;
            let names: Vec<&str> = module.definitions.iter().map(|d| d.name.text.as_str()).collect();
            (!names.is_empty()).then(|| format!("{file} defines {}", quoted(&names)))
        }
        ErrorKind::UnknownArgument if texts(ContextKind::SuggestedArg).is_empty() => {
            let option = texts(ContextKind::InvalidArg).pop()?;
            let name = option.strip_prefix("--")?.split('=').next()?.to_string();
            Some(format!("values are given without dashes: `{name}=[1,2]`"))
        }
        ErrorKind::InvalidSubcommand => {
            let word = texts(ContextKind::InvalidSubcommand).pop()?;
            let is_program = Path::new(&word).extension().is_some_and(|e| e == "iv");
            is_program.then(|| format!("say what to do with it: `iverson check {word}`, or `iverson run {word} FN name=value`"))
        }
        _ => None,
    }
}
