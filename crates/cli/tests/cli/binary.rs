//! Runs the real binary.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The binary with these arguments, run at the top of the repository.
pub(crate) fn undaunted(arguments: &[&str]) -> Output {
    undaunted_in(&repository(), arguments)
}

/// The binary with these arguments, run in this folder, with no colours and no settings of the user who
/// runs the tests.
pub(crate) fn undaunted_in(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_undaunted"));
    command.args(arguments).current_dir(folder).env("NO_COLOR", "1");
    for name in ["DEFAULT", "MAX", "PER_WORKFLOW_DEFAULT", "PER_WORKFLOW_MAX"] {
        command.env_remove(format!("RETRY_BUDGET_{name}"));
    }
    command.output().expect("the binary runs")
}

pub(crate) fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.join("../..").canonicalize().expect("the repository exists")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is text")
}
