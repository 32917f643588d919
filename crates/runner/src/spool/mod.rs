//! The spool: the output of commands, and how they ended until an engine has recorded that.
//!
//! It is a private folder with a log of starts and ends, a pair of output files for each running command, and
//! segments with the beginnings and ends of outputs. Only the keeper writes it; any process of the same user
//! can read it.

mod exit;
mod folder;
mod format_1;
mod log;
mod output;
mod record;

pub use exit::{
    CommandEnd, CommandExit, CommandFate, EndedBy, NotStartedCommand, RecoveredSpool, RunningCommand,
    SpoolDamage, StartRefusal, VanishedCommand,
};
pub use folder::{Spool, SpoolError};
#[doc(hidden)]
pub use log::reread_log;
pub use output::{CaptureError, CommandOutput, SpooledOutput};

pub(crate) use folder::{SpoolLock, complaints};
pub(crate) use log::{FoundLog, ReadLog, SpoolLog};
pub(crate) use output::{OutputSegments, OutputSlot, OutputSlots};
pub(crate) use record::{BegunCommand, SpoolEntries, SpoolEntry, SpoolHeader, SpoolRecord};
