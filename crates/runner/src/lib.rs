//! Doing the work: jobs are run here, commands started, and what they leave is kept.
//!
//! [`drive`] is the loop around the engine: it writes what was decided, has it done, and reports what
//! happened. Commands outlive it. A [`keeper`] process starts them and notes in a [`spool`] what it
//! starts and how it ends; when the engine is killed, the keeper and its commands go on, and the
//! next engine collects. The crate decides nothing about retries: it says what happened, exactly,
//! and where that cannot be known it says so.
//!
//! Linux only: a subreaper, `/proc` and process descriptors carry the promise.

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
pub mod redact;
pub mod request;
pub mod secrets;
pub mod spool;
mod stored_job;

pub use error_text::with_causes;
pub use executor::{
    AttemptFate, ExecutorMessage, FunctionOrder, HttpAnswer, HttpOrder, NewFile, ReadItems, StepResult,
    is_there, judged, step_result,
};
pub use process::{random_name, random_number};

/// Locks a mutex and ignores poisoning: every change under these locks is a single call, so a panic cannot
/// leave one half done.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
