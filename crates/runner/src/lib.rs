//! Runs jobs: starts their commands and keeps their output.
//!
//! [`drive`] is the event loop around the engine: it commits what the engine decides, carries it out, and
//! reports the outcome. Commands outlive the loop: a [`keeper`] process starts them and records in a
//! [`spool`] what it starts and how it ends. When the engine is killed, the keeper and its commands keep
//! running, and the next engine reconnects to the keeper and collects the results. The crate decides nothing
//! about retries: it reports what happened, and reports as unknown what cannot be known.
//!
//! [`embed`] is the interface for Rust programs.
//!
//! Linux only: it relies on subreapers, `/proc` and process descriptors.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub mod archive;
pub mod breakers;
pub mod catalog;
pub mod clock;
mod codec;
pub mod drive;
pub mod embed;
pub mod endpoints;
mod error_text;
mod executor;
#[cfg(feature = "failpoints")]
pub mod failpoint;
#[cfg(not(feature = "failpoints"))]
mod failpoint;
pub mod flows;
pub mod folder;
mod index_file;
pub mod journal;
pub mod keeper;
pub mod machine;
mod process;
pub mod reader;
pub mod request;
pub mod secrets;
pub mod spool;
mod stored_job;
#[cfg(test)]
mod test_job;

use catalog::CatalogHandle;
use clock::Clock;
use drive::{DriveError, JobContext, JobResult, Notifier, Services};
use endpoints::Endpoints;
use executor::Functions;
use folder::{JobFolder, LocalFolder};
use journal::{ClaimedJob, JournalError};
use keeper::{CommandSpec, KeeperClient, KeeperError, KeeperRefusal};
use machine::{CancelCall, ExpectedEnd, Machine};
use process::{ProcessMark, SystemProcess};
use request::ArrivedResult;
use secrets::Secrets;
use spool::{
    CommandEnd, CommandExit, CommandFate, EndedBy, NotStartedCommand, OutputSegments, OutputSlot,
    OutputSlots, RecoveredSpool, RunningCommand, Spool, SpoolDamage, SpoolEntry, SpoolError, SpoolLock,
    SpoolLog, SpoolRecord, SpooledOutput, StartRefusal, VanishedCommand,
};

pub use error_text::with_causes;
pub use executor::{
    AttemptFate, ExecutorMessage, FunctionOrder, HttpAnswer, HttpOrder, InputItems, NewFile, ReadItems,
    StepResult, attempt_end, is_there, items_of_file, step_result,
};
pub use process::{random_name, random_number};

/// Locks a mutex and ignores poisoning: every change under these locks is a single call, so a panic cannot
/// leave one half done.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
