//! What executors report to the event loop.

use std::path::PathBuf;

use undaunted_engine::event::NewItem;
use undaunted_engine::id::{StartId, StepId};
use undaunted_engine::input::AttemptEnd;

use crate::keeper::KeeperRefusal;

pub type ReadItems = Result<Vec<NewItem>, String>;

#[derive(Debug)]
pub enum ExecutorMessage {
    Began {
        start: StartId,
        /// Output and error output.
        files: Option<[PathBuf; 2]>,
    },
    /// A program was cancelled before it was started.
    NotBegun(StartId),
    /// The other side has accepted an attempt; its result comes later.
    Accepted(StartId),
    Ended(Box<AttemptEnd>),
    Items {
        step: StepId,
        items: ReadItems,
    },
    /// A keeper refuses a request.
    Refused(KeeperRefusal),
    /// The keeper has gone. The next one recovers the fates of its commands.
    KeeperGone,
}
