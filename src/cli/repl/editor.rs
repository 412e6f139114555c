//! Lines from a terminal: editing, completion of names, and a history that outlives the session.

use super::input::is_unfinished;
use crate::cli::failure::Failure;
use etcetera::BaseStrategy;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};
use std::io::Write;
use std::path::PathBuf;

pub struct Editor {
    lines: rustyline::Editor<Names, FileHistory>,
    history: Option<PathBuf>,
}

pub enum Read {
    Text(String),
    /// By Ctrl-C.
    Cancelled,
    /// By Ctrl-D.
    End,
}

impl Editor {
    pub fn new() -> Result<Editor, Failure> {
        let config = rustyline::Config::builder().max_history_size(10_000).map_err(unusable)?.build();
        let mut lines = rustyline::Editor::with_config(config).map_err(unusable)?;
        lines.set_helper(Some(Names::default()));
        let history = place();
        if let Some(path) = &history {
            // There is none at first.
            let _ = lines.load_history(path);
        }
        Ok(Editor { lines, history })
    }

    /// The names that can be completed from now on.
    pub fn know(&mut self, names: Vec<String>) {
        if let Some(helper) = self.lines.helper_mut() {
            helper.0 = names;
        }
    }

    pub fn read(&mut self) -> Result<Read, Failure> {
        match self.lines.readline("> ") {
            Ok(text) => {
                if !text.trim().is_empty() && self.lines.add_history_entry(text.trim_end()).unwrap_or(false) {
                    self.save();
                }
                Ok(Read::Text(text))
            }
            Err(ReadlineError::Interrupted) => Ok(Read::Cancelled),
            Err(ReadlineError::Eof) => Ok(Read::End),
            Err(e) => Err(unusable(e)),
        }
    }

    /// After every input, so that a session that is killed loses nothing. Failing once is enough to know.
    fn save(&mut self) {
        let Some(path) = &self.history else { return };
        let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        let saved = folder.map_err(|e| e.to_string()).and_then(|()| self.lines.save_history(path).map_err(|e| e.to_string()));
        if let Err(e) = saved {
            let _ = writeln!(std::io::stderr(), "Warning: the history cannot be kept in {}: {e}", path.display());
            self.history = None;
        }
    }
}

fn unusable(e: ReadlineError) -> Failure {
    Failure::message(format!("cannot read from the terminal: {e}"))
}

/// `$IVERSON_HISTORY`, or the user's state.
fn place() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("IVERSON_HISTORY") {
        return (!path.is_empty()).then(|| path.into());
    }
    let base = etcetera::base_strategy::choose_base_strategy().ok()?;
    Some(base.state_dir().unwrap_or_else(|| base.data_dir()).join("iverson").join("history"))
}

/// Names that can be completed; and unfinished inputs go on.
#[derive(Default)]
struct Names(Vec<String>);

impl Completer for Names {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let start = line[..at].rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(0, |k| k + 1);
        let word = &line[start..at];
        let mut found: Vec<String> = self.0.iter().filter(|name| !word.is_empty() && name.starts_with(word)).cloned().collect();
        found.sort();
        found.dedup();
        Ok((start, found))
    }
}

impl Validator for Names {
    fn validate(&self, context: &mut ValidationContext) -> rustyline::Result<ValidationResult> {
        let text = context.input();
        Ok(if is_unfinished(text) { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl Hinter for Names {
    type Hint = String;
}
impl Highlighter for Names {}
impl Helper for Names {}
