//! Events of a job as a whole.

use std::time::Duration;

use undaunted_policy::{Reason, Timestamp};

use super::codec;
use super::submitted::JobSubmitted;
use super::text::{StoredText, WorkflowText};
use crate::id::{AttemptNumber, CommandId, StepId};
use crate::job::JobStage;
use crate::stored::stored;

stored! {
    #[derive(Clone, Debug, PartialEq)]
    pub enum JobEvent {
        /// Always the first event of a journal.
        Submitted(Box<JobSubmitted> = 0) = 0 => "job_submitted",
        Resumed(JobResumed = 0) = 1 => "job_resumed",
        /// Later events refer to the text by its number.
        TextKept { text: String = 0 } = 5 => "text_kept",
        /// From now on nothing new is started.
        Stopping { reason: Reason = 0 with "codec::reason" } = 16 => "job_stopping",
        Completed(Box<JobEnded> = 0) = 19 => "job_completed",
        /// A job with dead letters is completed too; its status tells them apart.
        Partial(Box<JobEnded> = 0) = 20 => "job_completed",
        Failed(Box<JobEnded> = 0) = 21 => "job_failed",
        Cancelled(Box<JobEnded> = 0) = 22 => "job_cancelled",
        /// The owner leaves the job while nothing runs; it can be resumed.
        Suspended = 23 => "job_suspended",
        PolicyChanged {
            text: WorkflowText = 0,
            changes: Vec<PolicyChange> = 1,
            /// The new limits of the pool. `None` if it is unchanged.
            pool: Option<PoolChange> = 2,
            /// Deadlines that have passed, and that the new settings do not move. `None`: none.
            passed: Option<Vec<PassedDeadline>> = 3,
        } = 24 => "policy_changed",
        /// A finished job continues with some of its dead letters.
        Redriven {
            /// Whether the reduce steps run again.
            reduce: bool = 0,
        } = 25 => "job_redriven",
        Paused = 28 => "job_paused",
        Unpaused {
            /// How long the clocks of the items stood still.
            away: Duration = 0 with "codec::span",
        } = 29 => "job_unpaused",
        StateImported {
            commands: Vec<ImportedCommand> = 0,
            /// Executions that no history in `commands` lists. `None` is none, as for `correlations`.
            executions: Option<Vec<ImportedExecution>> = 1,
            /// Correlation ids, by item.
            correlations: Option<Vec<ImportedCorrelation>> = 2,
        } = 30 => "state_imported",
        PoolToppedUp {
            asked: u32 = 0,
            /// Bounded by the operator's maximum.
            added: u32 = 1,
            total: u32 = 2,
            /// The new item cap; `None` if unchanged.
            per_item: Option<u32> = 3,
        } = 31 => "pool_topped_up",
        /// From now on attempts start no closer together than this.
        StartsSpaced { every: Option<Duration> = 0 with "codec::maybe_span" has_nil } = 44 => "starts_spaced",
    }
}

impl JobEvent {
    pub fn submitted(&self) -> Option<&JobSubmitted> {
        let Self::Submitted(submitted) = self else { return None };
        Some(submitted)
    }

    pub const fn ended(&self) -> Option<(JobStage, &JobEnded)> {
        match self {
            Self::Completed(ended) => Some((JobStage::Completed, ended)),
            Self::Partial(ended) => Some((JobStage::Partial, ended)),
            Self::Failed(ended) => Some((JobStage::Failed, ended)),
            Self::Cancelled(ended) => Some((JobStage::Cancelled, ended)),
            Self::Submitted(_)
            | Self::Resumed(_)
            | Self::TextKept { .. }
            | Self::Stopping { .. }
            | Self::Suspended
            | Self::PolicyChanged { .. }
            | Self::Redriven { .. }
            | Self::Paused
            | Self::Unpaused { .. }
            | Self::StateImported { .. }
            | Self::PoolToppedUp { .. }
            | Self::StartsSpaced { .. } => None,
        }
    }
}

stored! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct JobResumed {
        /// The first run is 1.
        pub run: u32 = 0,
        /// How long the job was not run.
        pub away: Duration = 1 with "codec::span",
        /// Whether the job was suspended; otherwise its owner died.
        pub planned: bool = 2,
        pub work: ResumedWork = 3,
    }

    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct ResumedWork {
        pub running: u32 = 0,
        pub waiting: u32 = 1,
        pub settled: u32 = 2,
        pub pending: u32 = 3,
        pub attempts: u64 = 4,
        /// Held items; `None` is 0.
        pub held: Option<u32> = 5,
    }

    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct NewItem {
        pub identity: String = 0,
        /// As JSON.
        pub input: String = 1,
    }

    /// One setting that `resume --update` has changed.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct PolicyChange {
        /// The command or other part it belongs to.
        pub of: String = 0,
        pub setting: String = 1,
        pub old: String = 2,
        pub new: String = 3,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PoolChange {
        /// Total, and share of an item. `None`: the job has no pool any more.
        pub limits: Option<(u32, u32)> = 0,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PassedDeadline {
        /// The step whose completion rule it belongs to; `None` for the deadline of the job.
        pub step: Option<StepId> = 0,
        pub at: Timestamp = 1 with "codec::time",
    }

    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct JobEnded {
        pub counts: EndCounts = 0,
        /// Why the job is not simply completed.
        pub reason: Option<Reason> = 1 with "codec::maybe_reason" has_nil,
        pub error: Option<StoredText> = 2,
        pub submitted: Option<Timestamp> = 3 with "codec::maybe_time" has_nil,
    }

    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct EndCounts {
        pub total: u64 = 0,
        pub succeeded: u64 = 1,
        pub dead: u64 = 2,
        pub skipped: u64 = 3,
        /// Without the attempts of handlers.
        pub attempts: u64 = 4,
        pub retries: u64 = 5,
        pub delay: Duration = 6 with "codec::span",
    }

    /// A command that was tried before the job was submitted.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ImportedCommand {
        pub item: String = 0,
        pub command: CommandId = 1,
        pub attempts: u32 = 2,
        /// Equal to `attempts` if a retry may be made, else one less.
        pub retries: u32 = 3,
        pub spent: Duration = 4 with "codec::span",
        pub previous: Option<Duration> = 5 with "codec::maybe_span" has_nil,
        /// When the pending retry falls due; `None` is at once.
        pub due: Option<Timestamp> = 6 with "codec::maybe_time" has_nil,
        /// After unplanned downtime, when that retry is too late.
        pub expires: Option<Timestamp> = 7 with "codec::maybe_time" has_nil,
        pub error: Option<StoredText> = 8,
        /// Whether it has succeeded and must not run again. `None` is no.
        pub succeeded: Option<bool> = 9,
        /// Whether a breaker held its retry. `None` is no.
        pub broken: Option<bool> = 10,
        /// `None` if only an execution says that it has succeeded, or from releases that kept no history.
        pub history: Option<Vec<ImportedAttempt>> = 11,
        pub last_attempt_at: Option<Timestamp> = 12 with "codec::maybe_time" has_nil,
    }

    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ImportedAttempt {
        pub number: u32 = 0,
        pub at: Option<Timestamp> = 1 with "codec::maybe_time" has_nil,
        pub took: Option<Duration> = 2 with "codec::maybe_span" has_nil,
        pub succeeded: bool = 3,
        pub error: Option<StoredText> = 4,
        /// The delay before it.
        pub delay: Option<Duration> = 5 with "codec::maybe_span" has_nil,
    }

    /// The correlation id that another system gave an item.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ImportedCorrelation {
        pub item: String = 0,
        pub id: String = 1,
    }

    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ImportedExecution {
        /// The key of the command in the file.
        pub command: String = 0,
        pub attempt: AttemptNumber = 1,
        pub at: Option<Timestamp> = 2 with "codec::maybe_time" has_nil,
        pub succeeded: bool = 3,
    }
}

impl ImportedCommand {
    /// What a job needs of it.
    pub(crate) fn without_history(&self) -> Self {
        Self { item: self.item.clone(), error: self.error.clone(), history: None, ..*self }
    }

    pub fn has_succeeded(&self) -> bool {
        self.succeeded == Some(true)
    }
}
