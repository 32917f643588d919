//! Events of a job as a whole.

use std::time::Duration;

use minicbor::{Decode, Encode};
use undaunted_policy::{Reason, Timestamp};

use super::codec;
use super::submitted::JobSubmitted;
use super::text::{StoredText, WorkflowText};
use crate::id::CommandId;
use crate::job::JobStage;

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum JobEvent {
    /// Always the first event of a journal.
    #[n(0)]
    Submitted(#[n(0)] Box<JobSubmitted>),
    #[n(1)]
    Resumed(#[n(0)] JobResumed),
    /// Later events refer to the text by its number.
    #[n(5)]
    TextKept {
        #[n(0)]
        text: String,
    },
    /// From now on nothing new is started.
    #[n(16)]
    Stopping {
        #[cbor(n(0), with = "codec::reason")]
        reason: Reason,
    },
    #[n(19)]
    Completed(#[n(0)] Box<JobEnded>),
    #[n(20)]
    Partial(#[n(0)] Box<JobEnded>),
    #[n(21)]
    Failed(#[n(0)] Box<JobEnded>),
    #[n(22)]
    Cancelled(#[n(0)] Box<JobEnded>),
    /// The owner leaves the job while nothing runs; it can be resumed.
    #[n(23)]
    Suspended,
    #[n(24)]
    PolicyChanged {
        #[n(0)]
        text: WorkflowText,
        #[n(1)]
        changes: Vec<PolicyChange>,
    },
    /// A finished job continues with some of its dead letters.
    #[n(25)]
    Redriven {
        /// Whether the reduce steps run again.
        #[n(0)]
        reduce: bool,
    },
    #[n(28)]
    Paused,
    #[n(29)]
    Unpaused {
        /// How long the clocks of the items stood still.
        #[cbor(n(0), with = "codec::span")]
        away: Duration,
    },
    #[n(30)]
    StateImported {
        #[n(0)]
        commands: Vec<ImportedCommand>,
    },
    #[n(31)]
    PoolToppedUp {
        #[n(0)]
        asked: u32,
        /// Bounded by the operator's maximum.
        #[n(1)]
        added: u32,
        #[n(2)]
        total: u32,
        /// The new item cap; `None` if unchanged.
        #[n(3)]
        per_item: Option<u32>,
    },
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
            | Self::PoolToppedUp { .. } => None,
        }
    }

    pub const fn word(&self) -> &'static str {
        match self {
            Self::Submitted(_) => "job_submitted",
            Self::Resumed(_) => "job_resumed",
            Self::TextKept { .. } => "text_kept",
            Self::Stopping { .. } => "job_stopping",
            // A job with dead letters is completed too; its status tells them apart.
            Self::Completed(_) | Self::Partial(_) => "job_completed",
            Self::Failed(_) => "job_failed",
            Self::Cancelled(_) => "job_cancelled",
            Self::Suspended => "job_suspended",
            Self::PolicyChanged { .. } => "policy_changed",
            Self::Redriven { .. } => "job_redriven",
            Self::Paused => "job_paused",
            Self::Unpaused { .. } => "job_unpaused",
            Self::StateImported { .. } => "state_imported",
            Self::PoolToppedUp { .. } => "pool_topped_up",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct JobResumed {
    /// The first run is 1.
    #[n(0)]
    pub run: u32,
    /// How long the job was not run.
    #[cbor(n(1), with = "codec::span")]
    pub away: Duration,
    /// Whether the job was suspended; otherwise its owner died.
    #[n(2)]
    pub planned: bool,
    #[n(3)]
    pub restored: ResumedWork,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct ResumedWork {
    #[n(0)]
    pub running: u32,
    #[n(1)]
    pub waiting: u32,
    #[n(2)]
    pub settled: u32,
    #[n(3)]
    pub pending: u32,
    #[n(4)]
    pub attempts: u64,
    /// Held items; `None` is 0.
    #[n(5)]
    pub held: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct NewItem {
    #[n(0)]
    pub identity: String,
    /// As JSON.
    #[n(1)]
    pub input: String,
}

/// One setting that `resume --update` has changed.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct PolicyChange {
    /// The command or other part it belongs to.
    #[n(0)]
    pub of: String,
    #[n(1)]
    pub setting: String,
    #[n(2)]
    pub old: String,
    #[n(3)]
    pub new: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct JobEnded {
    #[n(0)]
    pub counts: EndCounts,
    /// Why the job is not simply completed.
    #[cbor(n(1), with = "codec::maybe_reason", has_nil)]
    pub reason: Option<Reason>,
    #[n(2)]
    pub error: Option<StoredText>,
    #[cbor(n(3), with = "codec::maybe_time", has_nil)]
    pub submitted: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct EndCounts {
    #[n(0)]
    pub total: u64,
    #[n(1)]
    pub succeeded: u64,
    #[n(2)]
    pub dead: u64,
    #[n(3)]
    pub skipped: u64,
    /// Without the attempts of handlers.
    #[n(4)]
    pub attempts: u64,
    #[n(5)]
    pub retries: u64,
    #[cbor(n(6), with = "codec::span")]
    pub delay: Duration,
}

/// A command that was tried before the job was submitted.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct ImportedCommand {
    #[n(0)]
    pub item: String,
    #[n(1)]
    pub command: CommandId,
    #[n(2)]
    pub attempts: u32,
    /// Equal to `attempts` if a retry may be made, else one less.
    #[n(3)]
    pub retries: u32,
    #[cbor(n(4), with = "codec::span")]
    pub spent: Duration,
    #[cbor(n(5), with = "codec::maybe_span", has_nil)]
    pub previous: Option<Duration>,
    /// When the pending retry falls due; `None` is at once.
    #[cbor(n(6), with = "codec::maybe_time", has_nil)]
    pub due: Option<Timestamp>,
    /// After unplanned downtime, when that retry is too late.
    #[cbor(n(7), with = "codec::maybe_time", has_nil)]
    pub expires: Option<Timestamp>,
    #[n(8)]
    pub error: Option<StoredText>,
}
