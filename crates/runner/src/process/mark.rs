//! A mark in a process's environment: which keeper started it, for which attempt.
//!
//! The receipt token would not suffice: all attempts of a command share it, and an attempt must not be
//! confused with the next one. Marks accumulate, so that when a command itself runs this program, both
//! keepers find its processes. A process that clears its environment has no mark; the mark of another user's
//! process cannot be read.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;

use super::SystemProcess;

pub(crate) const VARIABLE: &str = "UNDAUNTED_RUN";
const TOKEN_VARIABLE: &str = "UNDAUNTED_RECEIPT_TOKEN";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcessMark {
    pub(crate) keeper: String,
    /// None for the keeper itself, and for its child before that has become the command.
    pub(crate) id: Option<u64>,
}

impl ProcessMark {
    /// The variable's value for a process whose environment had `before`.
    pub(crate) fn after(&self, before: Option<&OsStr>) -> OsString {
        let mut value = before.map(OsStr::to_owned).unwrap_or_default();
        if !value.is_empty() {
            value.push(" ");
        }
        value.push(&self.keeper);
        if let Some(id) = self.id {
            value.push(format!(":{id}"));
        }
        value
    }

    pub(crate) fn own() -> Option<Self> {
        let value = std::env::var_os(VARIABLE)?;
        Self::all(value.as_bytes()).pop()
    }

    /// Empty if the environment cannot be read.
    pub(crate) fn of(pid: i32) -> Vec<Self> {
        let value = environment_variable(pid, VARIABLE);
        value.as_deref().map(Self::all).unwrap_or_default()
    }

    fn all(value: &[u8]) -> Vec<Self> {
        let words = value.split(|byte| *byte == b' ');
        words
            .filter_map(|word| {
                let word = std::str::from_utf8(word).ok()?;
                Some(match word.split_once(':') {
                    Some((keeper, id)) => Self { keeper: keeper.to_owned(), id: Some(id.parse().ok()?) },
                    None => Self { keeper: word.to_owned(), id: None },
                })
            })
            .collect()
    }
}

/// Finds processes by the receipt token in their environment: the last resort, when it is no longer known
/// which keeper started what. All attempts of a command share a token, so it identifies the command and not
/// the attempt; that suffices to know that one of them is alive.
pub(crate) fn with_receipt_token(tokens: &BTreeSet<String>) -> io::Result<Vec<SystemProcess>> {
    let own = rustix::process::getpid().as_raw_pid();
    let mut all = SystemProcess::all()?;
    all.retain(|process| !process.ended && process.pid != own && has_receipt_token(process.pid, tokens));
    Ok(all)
}

fn has_receipt_token(pid: i32, tokens: &BTreeSet<String>) -> bool {
    let token = environment_variable(pid, TOKEN_VARIABLE);
    token.is_some_and(|token| std::str::from_utf8(&token).is_ok_and(|token| tokens.contains(token)))
}

/// None if the variable is not set, or the environment cannot be read.
fn environment_variable(pid: i32, name: &str) -> Option<Vec<u8>> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables.find_map(|variable| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
    value.map(<[u8]>::to_vec)
}
