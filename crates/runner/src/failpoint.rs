//! Places where a test makes a process die.
//!
//! Compiled only with the feature `failpoints`; otherwise there is nothing here.

/// Every place there is, engine and keeper; `id` is an attempt or the version of a journal, or the
/// how-manieth time in this process.
#[cfg(feature = "failpoints")]
pub const PLACES: &[&str] = &[
    "claimed",
    "append-before",
    "append-after",
    "begin-before",
    "begin-after",
    "ended-before",
    "forget-after",
    "items-read",
    "results-before-rename",
    "results-after-rename",
    "suspend-after",
    "spawning",
    "spawned",
    "exited",
    "exited-after",
    "commit-before",
    "commit-after",
    "told-before",
    "told-after",
    "answer-before",
    "answer-after",
    "log-before-rename",
    "log-after-rename",
    "file-before-rename",
    "file-after-rename",
    "call-before",
    "call-after",
    "flow-written",
    "flow-begun",
    "result-taken",
    "result-handed-on",
    "archive-before-rename",
    "archive-kept",
    "archive-noted",
    "archive-folder-removed",
];

#[cfg(feature = "failpoints")]
pub(crate) use undaunted_store::failpoint::{pass, reach};

/// Nothing: tests alone make a process die on cue.
#[cfg(not(feature = "failpoints"))]
pub(crate) const fn reach(_place: &str, _id: u64) {}

#[cfg(not(feature = "failpoints"))]
pub(crate) const fn pass(_place: &str) {}
