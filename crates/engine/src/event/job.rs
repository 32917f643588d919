//! Events of a job as a whole.

use std::time::Duration;

use minicbor::{Decode, Encode};
use undaunted_policy::spelling::WorkDefaults;
use undaunted_policy::{Reason, Timestamp};

use super::codec;
use super::flow::FlowRun;
use super::imported::ImportedCommand;
use super::text::StoredText;
use super::workflow_text::WorkflowText;
use crate::id::StepId;
use crate::job::JobStage;

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum JobEvent {
    /// Always the first event.
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
    /// Nothing new is started.
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
    /// Left in good order, to be resumed.
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
        /// The clocks of its items stood still meanwhile.
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
    /// The submission, if it is one.
    pub fn submitted(&self) -> Option<&JobSubmitted> {
        let Self::Submitted(submitted) = self else {
            return None;
        };
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
            // With dead letters it is still a completion; the status says the rest.
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

/// Everything that is needed to resume the job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct JobSubmitted {
    #[n(0)]
    pub job: String,
    #[n(1)]
    pub text: WorkflowText,
    /// Where the text came from: an absolute path, or a placeholder.
    #[n(2)]
    pub file: String,
    #[n(3)]
    pub working_dir: String,
    #[n(4)]
    pub env: Vec<(String, String)>,
    #[n(5)]
    pub seed: u64,
    #[n(6)]
    pub parallel: Vec<(StepId, u32)>,
    /// Retries for the job, and for any one item. `None`: no pool.
    #[n(7)]
    pub pool: Option<(u32, u32)>,
    /// Default and maximum total, default and maximum per item. `None`: the documented ceilings.
    #[n(8)]
    pub ceilings: Option<(u32, u32, u32, u32)>,
    /// The release that wrote this; `None` if unknown.
    #[n(9)]
    pub release: Option<String>,
    /// The file that commands read. `None`: they read nothing.
    #[n(10)]
    pub stdin: Option<String>,
    /// How outputs are passed on, beside being kept. `None`: not at all.
    #[n(11)]
    pub passing: Option<OutputPassing>,
    /// `None`: the documented defaults.
    #[n(12)]
    pub completion: Option<CompletionDefaults>,
    /// `None`: no.
    #[n(13)]
    pub late_results_count: Option<bool>,
    /// How flow steps are retried that do not say. `None`: the documented defaults.
    #[cbor(n(14), with = "codec::maybe_work", has_nil)]
    pub work: Option<WorkDefaults>,
    /// The aim of a flow. `None`: its text states it.
    #[n(15)]
    pub flow: Option<FlowRun>,
    /// Makes the tokens of attempts unguessable. `None`: they follow from the job's name.
    #[n(16)]
    pub token_key: Option<u64>,
    /// Whether HTTP requests that name no breaker have one for their origin. `None`, from before breakers
    /// were opt-in: yes.
    #[n(17)]
    pub origin_breakers: Option<bool>,
}

/// For completion rules that do not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CompletionDefaults {
    #[n(0)]
    pub min: u64,
    #[cbor(n(1), with = "codec::span")]
    pub deadline: Duration,
}

/// How command outputs are passed on to the caller. All of it is kept then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum OutputPassing {
    #[n(0)]
    Through,
    /// Item by item, as they end.
    #[n(1)]
    Grouped,
    /// Item by item, in input order.
    #[n(2)]
    InOrder,
    /// As they end, each line prefixed with the item's name.
    #[n(3)]
    Tagged,
    /// In input order, each line prefixed with the item's name.
    #[n(4)]
    TaggedInOrder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct JobResumed {
    /// The first run is 1.
    #[n(0)]
    pub run: u32,
    /// The downtime.
    #[cbor(n(1), with = "codec::span")]
    pub away: Duration,
    /// Whether the job was suspended; otherwise its process died.
    #[n(2)]
    pub planned: bool,
    #[n(3)]
    pub restored: RestoredWork,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct RestoredWork {
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
    /// Why it did not simply complete.
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
    /// Without those of handlers.
    #[n(4)]
    pub attempts: u64,
    #[n(5)]
    pub retries: u64,
    #[cbor(n(6), with = "codec::span")]
    pub delay: Duration,
}
