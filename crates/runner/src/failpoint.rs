//! Failpoints: places in the code where a test kills the process.
//!
//! Compiled only with the feature `failpoints`; without it they are empty functions.

/// All failpoints of engine and keeper. The `id` passed to one is an attempt, a journal version, or a count
/// within the process.
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
    "spawning-before",
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

#[cfg(not(feature = "failpoints"))]
pub(crate) const fn reach(_place: &str, _id: u64) {}

#[cfg(not(feature = "failpoints"))]
pub(crate) const fn pass(_place: &str) {}
