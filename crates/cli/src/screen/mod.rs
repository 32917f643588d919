//! What is printed, for people and for machines: one file per thing that is shown.

pub(crate) mod diagnostics;
mod duration;
pub(crate) mod policies;
pub(crate) mod schedule;
mod words;

pub(crate) use words::{count, is_colourful};
