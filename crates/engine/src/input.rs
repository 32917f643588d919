//! The inputs of a job: from its owner, its commands, the operator and the clock.

use std::time::Duration;

use undaunted_policy::{FailureCause, Reason, Timestamp};

use crate::breaker::BreakerAnswer;
use crate::event::{NewItem, PolicyChange, SpooledPart, WorkflowText};
use crate::id::{ItemId, StartId, StepId};

#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    Resume {
        /// When the previous owner was last known to run; may be later than its last record.
        last_seen: Option<Timestamp>,
    },
    Start {
        item: ItemId,
        /// Why the command of the attempt cannot be built.
        refused: Option<String>,
        gate: BreakerAnswer,
    },
    /// Put the first attempt of an item on record before a slot is free.
    Reserve {
        item: ItemId,
    },
    /// The keeper has begun a reserved start.
    Begun {
        start: StartId,
        at: Timestamp,
    },
    /// The keeper has not begun a reserved start, and will not.
    NotBegun {
        start: StartId,
    },
    Ended(Box<AttemptEnd>),
    /// The target has accepted an attempt; its result comes by webhook.
    Accepted {
        start: StartId,
    },
    /// The result of an earlier attempt has arrived while its item waits for a retry.
    ResultArrived {
        item: ItemId,
        /// The output, or the failure that the target reports.
        result: Result<String, String>,
    },
    ItemsRead {
        step: StepId,
        items: Vec<NewItem>,
        /// What the user should know about the input.
        warning: Option<String>,
    },
    InputFailed {
        step: StepId,
        reason: Reason,
        error: String,
        stderr: Option<SpooledPart>,
    },
    /// A result that came although nothing waits for it any more: its attempt was given up, or its step was
    /// complete without it. Applies to ended jobs too.
    Late {
        item: ItemId,
        /// The outputs as JSON, or why it failed.
        result: Result<String, String>,
    },
    Woke,
    Cancel,
    Pause,
    Unpause,
    Redrive {
        items: Vec<ItemId>,
        /// Whether the reduce steps run again.
        reduce: bool,
        /// The least time between two starts.
        every: Option<Duration>,
    },
    Drop {
        items: Vec<ItemId>,
    },
    /// Adds units to the pool. Applies to ended jobs too: their dead letters may be redriven.
    TopUp {
        retries: u32,
    },
    /// No attempt runs any more, and the owner leaves the job.
    Suspend,
    Update {
        /// The caller has checked that only its settings differ.
        text: WorkflowText,
        changes: Vec<PolicyChange>,
    },
}

impl Input {
    /// Whether the input applies to finished jobs, that is, to their dead letters.
    pub(crate) const fn is_for_ended_jobs(&self) -> bool {
        matches!(self, Self::Redrive { .. } | Self::Drop { .. } | Self::TopUp { .. } | Self::Late { .. })
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct AttemptEnd {
    pub start: StartId,
    /// When it began, by the clock of the machine it ran on; only programs say that.
    pub began: Option<Timestamp>,
    /// `None` if the attempt succeeded.
    pub failure: Option<FailureCause>,
    pub took: Duration,
    /// Only if a value or a report needs it.
    pub output: Option<String>,
    /// For rules that match the output.
    pub stdout_end: String,
    pub stderr_end: String,
    pub error: String,
    pub stdout: Option<SpooledPart>,
    pub stderr: Option<SpooledPart>,
    /// How many processes the attempt left running.
    pub left: u32,
    /// The wait that the target asked for.
    pub retry_after: Option<Duration>,
    /// Retry without delay, because only the process that made the attempt has failed.
    pub at_once: bool,
}
