//! Inputs of a job: from its process, its commands, its operator and the clock.

use std::time::Duration;

use undaunted_policy::{FailureCause, Reason, Timestamp};

use crate::breaker::BreakerAnswer;
use crate::event::{NewItem, PolicyChange, SpooledPart, WorkflowText};
use crate::id::{ItemId, StartId, StepId};

#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    Resume {
        /// When the previous process was last seen alive; may be later than its last record.
        seen: Option<Timestamp>,
    },
    Start {
        item: ItemId,
        /// Why its command cannot be built.
        refused: Option<String>,
        gate: BreakerAnswer,
    },
    Ended(Box<AttemptEnd>),
    /// The other side has accepted an attempt; the result comes later.
    Accepted {
        start: StartId,
    },
    ItemsRead {
        step: StepId,
        items: Vec<NewItem>,
    },
    InputFailed {
        step: StepId,
        reason: Reason,
        error: String,
        stderr: Option<SpooledPart>,
    },
    Woke,
    Cancel,
    Pause,
    Unpause,
    Redrive {
        items: Vec<ItemId>,
        /// Whether the reduce steps run again.
        reduce: bool,
    },
    /// Discard dead letters.
    Drop {
        items: Vec<ItemId>,
    },
    /// Enlarge the pool, also of a finished job: its dead letters may be redriven.
    TopUp {
        retries: u32,
    },
    /// No attempt runs any more, and the process leaves the job.
    Suspend,
    Update {
        /// Checked to differ in its settings only.
        text: WorkflowText,
        changes: Vec<PolicyChange>,
    },
}

impl Input {
    /// Whether it applies to finished jobs, that is to their dead letters.
    pub(crate) const fn is_for_ended_jobs(&self) -> bool {
        matches!(self, Self::Redrive { .. } | Self::Drop { .. } | Self::TopUp { .. })
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct AttemptEnd {
    pub start: StartId,
    /// `None` if it succeeded.
    pub failure: Option<FailureCause>,
    pub took: Duration,
    /// Only where something depends on it.
    pub output: Option<String>,
    /// For rules that match the output.
    pub stdout_end: String,
    pub stderr_end: String,
    pub error: String,
    pub stdout: Option<SpooledPart>,
    pub stderr: Option<SpooledPart>,
    pub left: u32,
    /// The wait the other side asked for.
    pub retry_after: Option<Duration>,
    /// Retry without delay: only the process that ran it has failed.
    pub at_once: bool,
}
