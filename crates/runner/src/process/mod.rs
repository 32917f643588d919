//! Processes as `/proc` shows them.
//!
//! Reads and signals, and decides nothing: what belongs to which attempt is the keeper's affair. A
//! number is never trusted alone; a process is its number and the instant it was started.

mod ending;
mod mark;
mod table;

pub(crate) use ending::{EndedGroup, end_all, signal};
pub(crate) use mark::{ProcessMark, VARIABLE, holding};
pub(crate) use table::{SystemProcess, boot, descendants, pid_space};
pub use table::{random_name, random_number};
