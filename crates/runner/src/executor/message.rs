//! What executors report to the event loop.

use std::path::PathBuf;

use undaunted_engine::event::NewItem;
use undaunted_engine::id::StepId;
use undaunted_engine::input::AttemptEnd;

use crate::keeper::Refusal;

/// The items of a map, or why there are none.
pub type ReadItems = Result<Vec<NewItem>, String>;

/// What an executor reports.
#[derive(Debug)]
pub enum ExecutorMessage {
    Began {
        start: u64,
        /// The files it writes to, output and error output.
        files: Option<[PathBuf; 2]>,
    },
    /// A program was not started, because it was cancelled before that.
    NotBegun(u64),
    /// The other side has taken an attempt on, and its result comes later.
    Accepted(u64),
    Ended(Box<AttemptEnd>),
    /// The items of a map were read from a file.
    Items {
        step: StepId,
        items: ReadItems,
    },
    /// A keeper cannot do what it was asked for.
    Refused(Refusal),
    /// The keeper has gone. The next one knows what became of its commands.
    KeeperGone,
}
