//! Completion of command lines. The shells' scripts ask the command itself (`iverson complete`), which knows its options
//! and reads the program for the names of functions and parameters.

use super::failure::Failure;
use super::options::{Complete, Options, Shell};
use super::output;
use clap::{Arg, ArgAction, Command, CommandFactory};
use iverson::ir::Type;
use iverson::load::load;
use iverson::{pipeline, syntax};
use std::io::Write;
use std::path::Path;

const BASH: &str = r#"# iverson: completion for bash. Put into ~/.bashrc: eval "$(iverson completions bash)"
_iverson() {
    local IFS=$'\n' line
    COMPREPLY=()
    for line in $(iverson complete --line "${COMP_LINE:0:$COMP_POINT}" 2>/dev/null); do
        COMPREPLY+=("${line%%$'\t'*}")
    done
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/] ]]; then
        compopt -o nospace
    fi
}
complete -F _iverson iverson
"#;

const ZSH: &str = r#"#compdef iverson
# iverson: completion for zsh. Write it to a folder of $fpath: iverson completions zsh > ~/.zfunc/_iverson
_iverson() {
    local -a whole open
    local line text entry
    for line in "${(@f)$(iverson complete -- "${(@)words[1,CURRENT]}" 2>/dev/null)}"; do
        text="${line%%$'\t'*}"
        [[ -z "$text" ]] && continue
        entry="${text//:/\\:}"
        [[ "$line" == *$'\t'* ]] && entry+=":${line#*$'\t'}"
        if [[ "$text" == *[=/] ]]; then open+=("$entry"); else whole+=("$entry"); fi
    done
    (( $#whole )) && _describe 'iverson' whole
    (( $#open )) && _describe 'iverson' open -S ''
}
if [[ "$funcstack[1]" == _iverson ]]; then _iverson "$@"; else compdef _iverson iverson; fi
"#;

const FISH: &str = r#"# iverson: completion for fish. Write it to ~/.config/fish/completions/iverson.fish
complete -c iverson -f -a '(iverson complete -- (commandline -opc) (commandline -ct) 2>/dev/null)'
"#;

pub fn script(shell: Shell) -> Result<(), Failure> {
    let text = match shell {
        Shell::Bash => BASH,
        Shell::Zsh => ZSH,
        Shell::Fish => FISH,
    };
    output::print(|out| out.write_all(text.as_bytes()))
}

/// One candidate on each line, with what it is behind a tab.
pub fn complete(options: &Complete) -> Result<(), Failure> {
    let words = match &options.line {
        Some(line) => split(line),
        None => options.words.clone(),
    };
    let found = candidates(&words);
    // Bash begins a new word behind `=` and `:`, and inserts what stands behind them.
    let last = words.last().map_or("", String::as_str);
    let kept = if options.line.is_some() { last.rfind(['=', ':']).map_or(0, |at| at + 1) } else { 0 };
    output::print(|out| {
        found.iter().try_for_each(|c| {
            let text = c.text.get(kept..).unwrap_or(&c.text);
            if c.help.is_empty() { writeln!(out, "{text}") } else { writeln!(out, "{text}\t{}", c.help) }
        })
    })
}

/// The words of a line; the last is the one being written, and may be empty.
fn split(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(q), c) if q == c => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, c) if c.is_whitespace() => {
                if words.last().is_some_and(|w| !w.is_empty()) {
                    words.push(String::new());
                }
            }
            _ => words.last_mut().expect("there is one").push(c),
        }
    }
    words
}

struct Candidate {
    text: String,
    help: String,
}

fn plain(text: impl Into<String>) -> Candidate {
    Candidate { text: text.into(), help: String::new() }
}

/// What may stand in the place of the last word.
fn candidates(words: &[String]) -> Vec<Candidate> {
    let root = Options::command();
    let Some((current, before)) = words.split_last() else { return vec![] };
    let mut all = match before {
        [] | [_] => root
            .get_subcommands()
            .filter(|c| !c.is_hide_set())
            .map(|c| Candidate { text: c.get_name().to_string(), help: first_line(c.get_about()) })
            .chain(["--help", "--version"].map(plain))
            .collect(),
        [_, name, rest @ ..] => match root.find_subcommand(name) {
            Some(command) => Line::read(command, rest).candidates(current),
            None => vec![],
        },
    };
    all.retain(|c| c.text.starts_with(current.as_str()));
    all
}

fn first_line(text: Option<&clap::builder::StyledStr>) -> String {
    text.map(|t| t.to_string().lines().next().unwrap_or_default().to_string()).unwrap_or_default()
}

/// The words of a subcommand, as far as they are written.
struct Line<'a> {
    command: &'a Command,
    positional: Vec<&'a str>,
    /// The options that are there.
    given: Vec<&'a str>,
    /// The option that waits for its value.
    waiting: Option<&'a Arg>,
}

impl<'a> Line<'a> {
    fn read(command: &'a Command, words: &'a [String]) -> Line<'a> {
        let mut line = Line { command, positional: vec![], given: vec![], waiting: None };
        for word in words {
            if line.waiting.take().is_some() {
                continue;
            }
            let name = word.split('=').next().unwrap_or(word);
            match line.option(name) {
                Some(arg) => {
                    line.given.push(arg.get_id().as_str());
                    if takes_value(arg) && !word.contains('=') {
                        line.waiting = Some(arg);
                    }
                }
                None if word.starts_with('-') && word.len() > 1 => {}
                None => line.positional.push(word),
            }
        }
        line
    }

    fn option(&self, word: &str) -> Option<&'a Arg> {
        self.command.get_opts().chain(self.command.get_arguments().filter(|a| !a.is_positional())).find(|arg| {
            arg.get_long().is_some_and(|long| word.strip_prefix("--") == Some(long))
                || arg.get_short().is_some_and(|short| word.strip_prefix('-') == Some(short.to_string().as_str()))
        })
    }

    fn candidates(&self, current: &str) -> Vec<Candidate> {
        if let Some(arg) = self.waiting {
            return self.values(arg, current);
        }
        if let Some((name, value)) = current.split_once('=')
            && let Some(arg) = self.option(name)
        {
            let values = self.values(arg, value).into_iter();
            return values.map(|c| Candidate { text: format!("{name}={}", c.text), ..c }).collect();
        }
        if current.starts_with('-') {
            return self.options();
        }
        let positionals: Vec<&Arg> = self.command.get_positionals().collect();
        match positionals.get(self.positional.len()).or(positionals.last()) {
            Some(arg) => self.values(arg, current),
            None => vec![],
        }
    }

    fn options(&self) -> Vec<Candidate> {
        let open = |arg: &&Arg| {
            let repeats = matches!(arg.get_action(), ArgAction::Append | ArgAction::Count);
            !arg.is_positional() && !arg.is_hide_set() && (repeats || !self.given.contains(&arg.get_id().as_str()))
        };
        let candidate = |arg: &Arg| Some(Candidate { text: format!("--{}", arg.get_long()?), help: first_line(arg.get_help()) });
        self.command.get_arguments().filter(open).filter_map(candidate).chain([plain("--help")]).collect()
    }

    /// The values of an option or of a positional argument.
    fn values(&self, arg: &Arg, current: &str) -> Vec<Candidate> {
        let known = arg.get_possible_values();
        if !known.is_empty() && takes_value(arg) {
            let candidate = |v: &clap::builder::PossibleValue| Candidate { text: v.get_name().to_string(), help: first_line(v.get_help()) };
            return listed(current, known.iter().filter(|v| !v.is_hide_set()).map(candidate));
        }
        match arg.get_id().as_str() {
            "file" | "files" => files(current, &["iv"]),
            "data" => files(current, &["npz", "json"]),
            "out" => files(current, &["npz", "npy", "json"]),
            "output" => files(current, &[]),
            "after" => ["check"].into_iter().chain(pipeline::pass_names()).map(plain).collect(),
            "function" => self.functions().into_iter().map(plain).collect(),
            "functions" => match current.split_once(':') {
                None => self.functions().into_iter().map(plain).collect(),
                Some((function, _)) => kinds().map(|kind| plain(format!("{function}:{kind}"))).collect(),
            },
            "arguments" | "dir" if current.contains('=') => vec![],
            "arguments" | "dir" => {
                let written = |name: &str| self.positional.iter().any(|w| w.split('=').next() == Some(name));
                self.parameters().into_iter().filter(|name| !written(name)).map(|name| plain(format!("{name}="))).collect()
            }
            "wrt" => listed(current, self.parts().into_iter().map(plain)),
            "at" => listed(current, self.sizes().into_iter().map(|name| plain(format!("{name}=")))),
            _ => vec![],
        }
    }

    /// The functions of the file that is named.
    fn functions(&self) -> Vec<String> {
        let Some(text) = self.positional.first().and_then(|path| std::fs::read_to_string(path).ok()) else { return vec![] };
        syntax::parse(0, &text).0.definitions.into_iter().map(|d| d.name.text).collect()
    }

    fn parameters(&self) -> Vec<String> {
        self.of_function(|program, f| f.visible().map(|(_, v)| program.vars.name(v).to_string()).collect())
    }

    /// The parameters, and their fields: `p`, `p.w`.
    fn parts(&self) -> Vec<String> {
        fn below(path: &str, ty: &Type, out: &mut Vec<String>) {
            out.push(path.to_string());
            if let (Type::Tuple(parts), None) = (ty, ty.structured()) {
                parts.iter().enumerate().for_each(|(k, part)| below(&format!("{path}.{}", parts.label(k)), part, out));
            }
        }
        self.of_function(|program, f| {
            let mut out = vec![];
            for (k, v) in f.visible() {
                let ty = f.signature.as_ref().map_or_else(|| program.vars.ty(v), |s| &s.params[k]);
                below(program.vars.name(v), ty, &mut out);
            }
            out
        })
    }

    fn sizes(&self) -> Vec<String> {
        self.of_function(|program, f| f.sizes.iter().map(|v| program.vars.name(*v).to_string()).collect())
    }

    fn of_function(&self, f: impl Fn(&iverson::ir::Program, &iverson::ir::Function) -> Vec<String>) -> Vec<String> {
        let [file, function, ..] = self.positional[..] else { return vec![] };
        let function = function.split([':', '[']).next().unwrap_or(function);
        let Ok(text) = std::fs::read_to_string(file) else { return vec![] };
        let loaded = load(file, &text, &[function]);
        match loaded.program {
            Some(program) => program.find(function).map(|id| f(&program, program.function(id))).unwrap_or_default(),
            None => vec![],
        }
    }
}

fn takes_value(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

fn kinds() -> impl Iterator<Item = String> {
    use clap::ValueEnum;
    super::options::Kind::value_variants().iter().filter_map(|kind| Some(kind.to_possible_value()?.get_name().to_string()))
}

/// Candidates for the last item of a list with commas.
fn listed(current: &str, items: impl Iterator<Item = Candidate>) -> Vec<Candidate> {
    let (before, _) = current.split_at(current.rfind(',').map_or(0, |at| at + 1));
    let there: Vec<&str> = before.split(',').map(|w| w.split('=').next().unwrap_or(w)).collect();
    let fresh = items.filter(|c| !there.contains(&c.text.trim_end_matches('=')));
    fresh.map(|c| Candidate { text: format!("{before}{}", c.text), ..c }).collect()
}

/// Folders, and files with one of the endings (all if there are none).
fn files(current: &str, endings: &[&str]) -> Vec<Candidate> {
    let (folder, start) = current.split_at(current.rfind('/').map_or(0, |at| at + 1));
    let Ok(entries) = std::fs::read_dir(if folder.is_empty() { "." } else { folder }) else { return vec![] };
    let mut found: Vec<String> = vec![];
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') && !start.starts_with('.') {
            continue;
        }
        let path = entry.path();
        if path.is_dir() {
            found.push(format!("{folder}{name}/"));
        } else if endings.is_empty() || endings.iter().any(|e| Path::new(&name).extension().is_some_and(|x| x == *e)) {
            found.push(format!("{folder}{name}"));
        }
    }
    found.sort();
    found.into_iter().map(plain).collect()
}
