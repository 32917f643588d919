//! Processes as `/proc` shows them.
//!
//! This module reads and signals processes; the keeper decides which process belongs to which attempt. A
//! number alone never identifies a process: it takes the number and the instant at which the process was
//! started.

mod ending;
mod mark;
mod table;

pub(crate) use ending::{EndedGroup, end_all, signal};
pub(crate) use mark::{ProcessMark, VARIABLE, with_receipt_token};
pub(crate) use table::{SystemProcess, boot, descendants, pid_space};
pub use table::{random_name, random_number};
