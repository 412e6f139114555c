//! The command in a folder of its own.
#![allow(dead_code)]

use serde_json::Value as Json;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

pub struct Finished {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Finished {
    pub fn json(&self) -> Json {
        assert_eq!(self.code, 0, "{}", self.err);
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {}", self.out))
    }
    /// Failed with code 1, nothing on stdout, and a message that contains all of these.
    pub fn fails(&self, parts: &[&str]) {
        assert_eq!(self.code, 1, "stdout: {}\nstderr: {}", self.out, self.err);
        assert_eq!(self.out, "");
        assert!(!self.err.contains("panicked"), "{}", self.err);
        for part in parts {
            assert!(self.err.contains(part), "{part:?} is not in: {}", self.err);
        }
    }
}

/// A folder with a program `p.iv` in it.
pub struct Folder(pub tempfile::TempDir);

impl Folder {
    pub fn with(program: &str) -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        folder.write("p.iv", program);
        folder
    }
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), contents).unwrap();
    }
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_iverson"));
        command.args(arguments).current_dir(self.0.path()).env("XDG_CACHE_HOME", cache()).env("NO_COLOR", "1");
        command
    }
    pub fn run(&self, arguments: &[&str]) -> Finished {
        finished(self.command(arguments).output().unwrap())
    }
    /// With a text on stdin.
    pub fn run_on(&self, stdin: &str, arguments: &[&str]) -> Finished {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A command that fails early does not read it.
        let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        finished(child.wait_with_output().unwrap())
    }
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }
    pub fn files(&self) -> usize {
        std::fs::read_dir(self.0.path()).unwrap().count()
    }
}

fn finished(output: Output) -> Finished {
    Finished {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// One cache for all tests, apart from the user's.
pub fn cache() -> PathBuf {
    std::env::temp_dir().join("iverson-cli-tests")
}
