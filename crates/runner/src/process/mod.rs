//! Processes as `/proc` shows them.
//!
//! Reads and signals, and decides nothing: what belongs to which attempt is the keeper's affair. A
//! number is never trusted alone; a process is its number and the instant it was started.

mod ending;
mod mark;
mod place;
mod table;
mod token;

pub(crate) use ending::{EndedGroup, end_all, signal};
pub(crate) use mark::{ProcessMark, VARIABLE};
pub(crate) use place::{boot, pid_space};
pub use place::{random_name, random_number};
pub(crate) use table::{Process, descendants};
pub(crate) use token::holding;
