//! A mark in a process's environment: which keeper started it, for which attempt.
//!
//! The receipt token would not do: all attempts of a command share it, and an attempt must not be
//! taken for its successor. Marks add up, so that both runners find the processes of a runner inside a
//! command of another. A process that clears its environment has no mark; that of another user cannot
//! be read.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

pub(crate) const VARIABLE: &str = "UNDAUNTED_RUN";

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
        let Ok(environment) = std::fs::read(format!("/proc/{pid}/environ")) else {
            return vec![];
        };
        let mut variables = environment.split(|byte| *byte == 0);
        let value =
            variables.find_map(|variable| variable.strip_prefix(VARIABLE.as_bytes())?.strip_prefix(b"="));
        value.map(Self::all).unwrap_or_default()
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
