//! What is printed, for people and for machines: one file per thing that is shown.

pub(crate) mod diagnostics;
mod duration;
pub(crate) mod events;
pub(crate) mod job;
pub(crate) mod jobs;
pub(crate) mod policies;
pub(crate) mod progress;
pub(crate) mod schedule;
pub(crate) mod summary;
mod words;

pub(crate) use words::{count, is_colourful};
