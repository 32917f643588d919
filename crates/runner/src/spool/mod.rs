//! The spool: where the output of commands is kept, and what is known of their end until that is
//! collected.
//!
//! A private folder: a log of what was started and how it ended, one pair of output files for each
//! command that runs, and segments with the beginning and the end of what commands wrote. Written by
//! the keeper alone; read by anybody who may open it.

mod entries;
mod exit;
mod folder;
mod format_1;
mod kept;
mod log;
mod peek;
mod record;
mod recovered;
mod segments;
mod slots;

pub use exit::{End, EndedBy, Exited, NotStarted, Refusing, Vanished};
pub use folder::{Spool, SpoolError};
pub use kept::{CaptureError, Output, SpooledOutput};
#[doc(hidden)]
pub use log::reread_log;
pub use recovered::{Damage, Fate, Recovered, RunningCommand};

pub(crate) use entries::{Begun, Entries, Entry};
pub(crate) use folder::Lock;
pub(crate) use log::{Found, Log, Story};
pub(crate) use record::{Header, Record};
pub(crate) use segments::Segments;
pub(crate) use slots::{Slot, Slots};
