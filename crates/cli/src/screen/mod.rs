//! What is printed, as text and as JSON: one file for each thing that is shown.

pub(crate) mod attempts;
pub(crate) mod breakers;
pub(crate) mod dead;
pub(crate) mod diagnostics;
mod duration;
pub(crate) mod events;
pub(crate) mod explain;
mod holds;
pub(crate) mod job;
pub(crate) mod jobs;
mod json;
pub(crate) mod limits;
pub(crate) mod logs;
pub(crate) mod policies;
pub(crate) mod progress;
pub(crate) mod resumes;
pub(crate) mod schedule;
pub(crate) mod summary;
#[cfg(test)]
mod tests;
pub(crate) mod timeline;
mod words;

pub(crate) use json::json;
pub(crate) use words::{count, is_colourful, plain};
