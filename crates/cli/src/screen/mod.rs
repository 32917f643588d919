//! Output as text and as JSON, one file for each kind of view.

pub(crate) mod attempts;
pub(crate) mod breakers;
pub(crate) mod dead;
pub(crate) mod diagnostics;
mod duration;
pub(crate) mod events;
pub(crate) mod explain;
#[cfg(test)]
mod fixture;
mod holds;
pub(crate) mod job;
pub(crate) mod jobs;
pub(crate) mod limits;
pub(crate) mod logs;
pub(crate) mod policies;
pub(crate) mod progress;
pub(crate) mod records;
pub(crate) mod resumes;
pub(crate) mod schedule;
pub(crate) mod summary;
#[cfg(test)]
mod tests;
pub(crate) mod timeline;
mod words;

pub(crate) use words::{count, json, plain, plain_lines, print, wants_colour};

use duration::{measured, short};
use summary::error_lines;
use words::{masked, one_line, quoted};
