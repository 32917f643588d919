//! The spool: the output of commands, and how they ended until an engine has recorded that.
//!
//! A private folder with a log of starts and ends, one pair of output files for each running command, and
//! segments with the beginnings and ends of outputs. Only the keeper writes it; any process that may open
//! it can read it.

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
