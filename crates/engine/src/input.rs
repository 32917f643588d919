//! What a job is told: by whoever runs it, by its commands and by the clock.

use std::time::Duration;

use undaunted_policy::{Cause, Reason, Timestamp};

use crate::breaker::Gate;
use crate::event::{Kept, NewItem, PolicyChange, WorkflowText};
use crate::id::{ItemId, StepId};

/// Something a job is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Somebody goes on with it.
    Resume {
        /// When whoever ran it before was last seen alive, if that is known; later than its last
        /// record, if nothing happened meanwhile.
        seen: Option<Timestamp>,
    },
    /// An item that is ready may start its attempt.
    Start {
        item: ItemId,
        /// Why its command cannot be put together, if it cannot.
        refused: Option<String>,
        /// What the breaker of its command answers.
        gate: Gate,
    },
    Ended(Box<AttemptEnd>),
    /// The other side has taken an attempt on, and its result comes later.
    Accepted {
        /// The number of its start.
        start: u64,
    },
    /// The items of a map are known.
    ItemsRead {
        step: StepId,
        items: Vec<NewItem>,
    },
    /// The items of a map cannot be had.
    InputFailed {
        step: StepId,
        reason: Reason,
        error: String,
        /// Where the error output of its command is kept.
        stderr: Option<Kept>,
    },
    Woke,
    /// Somebody wants it to end.
    Cancel,
    /// Nothing new is to be started for now.
    Pause,
    /// It may go on.
    Unpause,
    /// Dead letters are to be tried again, in a new round.
    Redrive {
        /// They, by step and place in the input.
        items: Vec<ItemId>,
        /// Whether what comes after the map is done again.
        reduce: bool,
    },
    /// Dead letters that nobody wants any more, by step and place in the input.
    Drop {
        items: Vec<ItemId>,
    },
    /// Its pool is to be made larger, also if it has ended: its dead letters may be tried again.
    TopUp {
        retries: u32,
    },
    /// Everything that ran has ended, and whoever runs it leaves.
    Suspend,
    /// Its workflow is replaced by one with other settings.
    Update {
        /// The new text, checked and found to differ in its settings only.
        text: WorkflowText,
        /// Every setting that differs.
        changes: Vec<PolicyChange>,
    },
}

impl Input {
    /// Whether it has consequences for a job that has ended: for its dead letters.
    pub(crate) const fn is_for_ended_jobs(&self) -> bool {
        matches!(
            self,
            Self::Redrive { .. } | Self::Drop { .. } | Self::TopUp { .. }
        )
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct AttemptEnd {
    /// The number of its start.
    pub start: u64,
    /// What went wrong, if anything did.
    pub failure: Option<Cause>,
    /// How long it took.
    pub took: Duration,
    /// What it wrote, where something depends on it.
    pub output: Option<String>,
    /// The end of its output, for rules that look at it.
    pub stdout_end: String,
    /// The end of its error output, for rules that look at it.
    pub stderr_end: String,
    /// What people read about a failure.
    pub error: String,
    /// Where its output is kept.
    pub stdout: Option<Kept>,
    /// Where its error output is kept.
    pub stderr: Option<Kept>,
    /// Processes it left running.
    pub left: u32,
    /// The wait the other side asked for before it is called again.
    pub retry_after: Option<Duration>,
    /// Whether it is tried again without delay, if it may be: nobody has failed but whoever ran it.
    pub at_once: bool,
}
