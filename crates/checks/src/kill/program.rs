//! Builds the program that is killed.

use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::repository;

/// Builds it with its failpoints, in the profile this was built in, in a folder of its own: neither
/// disturbs the other.
pub(crate) fn build() -> io::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let own = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = own.unwrap_or_else(|| repository().join("target"));
    let target = target.join("failpoints");
    eprintln!("the program is built with its failpoints, which may take minutes");
    let mut command = Command::new(cargo);
    command
        .args(["build", "--quiet", "--package", "undaunted"])
        .args(["--features", "failpoints", "--target-dir"])
        .arg(&target)
        .current_dir(repository())
        .stdin(Stdio::null());
    let is_release = !cfg!(debug_assertions);
    if is_release {
        command.arg("--release");
    }
    if !command.status()?.success() {
        return Err(io::Error::other("the program cannot be built"));
    }
    let profile = if is_release { "release" } else { "debug" };
    Ok(target.join(profile).join("undaunted"))
}
