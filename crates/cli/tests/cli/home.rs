//! A store and a folder of its own for a test.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// A folder with a store in it.
pub(crate) struct CliHome {
    folder: tempfile::TempDir,
}

/// What a command printed, and its exit code.
pub(crate) struct CliOutput {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: i32,
}

impl CliHome {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("written");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_undaunted"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("NO_COLOR", "1")
            .env("UNDAUNTED_HOME", self.path("store"))
            .env_remove("RETRY_BUDGET_DEFAULT")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> CliOutput {
        self.run_with("", arguments)
    }

    /// The same with this on standard input.
    pub(crate) fn run_with(&self, input: &str, arguments: &[&str]) -> CliOutput {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("it runs");
        let mut pipe = child.stdin.take().expect("a pipe");
        // A command that reads nothing may have gone.
        let _ = pipe.write_all(input.as_bytes());
        drop(pipe);
        let output = child.wait_with_output().expect("it ends");
        CliOutput {
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
            code: output.status.code().unwrap_or(-1),
        }
    }

    /// The lines of JSON a command prints.
    pub(crate) fn json(&self, arguments: &[&str]) -> Vec<Value> {
        let printed = self.run(arguments);
        let lines = printed.out.lines();
        lines.map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path("store")
    }
}

impl CliOutput {
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        self
    }
}

/// How many files are in a folder, at any depth.
pub(crate) fn files(folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return 0;
    };
    let count = |path: PathBuf| if path.is_dir() { files(&path) } else { 1 };
    entries.flatten().map(|entry| count(entry.path())).sum()
}
