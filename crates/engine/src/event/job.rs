//! What is recorded of a job as a whole.

use std::time::Duration;

use minicbor::{Decode, Encode};
use undaunted_policy::shape::WorkDefaults;
use undaunted_policy::{Reason, Timestamp};

use super::codec;
use super::flow::FlowRun;
use super::imported::ImportedCommand;
use super::text::Text;
use super::workflow_text::WorkflowText;
use crate::id::StepId;
use crate::job::Stage;

/// Something that has happened to a job as a whole.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum JobEvent {
    /// It was handed in. Always the first.
    #[n(0)]
    Submitted(#[n(0)] Box<Submitted>),
    /// Somebody goes on with it.
    #[n(1)]
    Resumed(#[n(0)] Resumed),
    /// A text that events refer to by its number.
    #[n(5)]
    TextKept {
        #[n(0)]
        text: String,
    },
    /// Nothing new is started any more.
    #[n(16)]
    Stopping {
        #[n(0)]
        #[cbor(with = "codec::reason")]
        reason: Reason,
    },
    /// The job is done.
    #[n(19)]
    Completed(#[n(0)] Box<Ended>),
    /// The job is done, with dead letters.
    #[n(20)]
    Partial(#[n(0)] Box<Ended>),
    #[n(21)]
    Failed(#[n(0)] Box<Ended>),
    #[n(22)]
    Cancelled(#[n(0)] Box<Ended>),
    /// The job was left in good order, to be gone on with.
    #[n(23)]
    Suspended,
    /// The workflow of the job was replaced by one with other settings.
    #[n(24)]
    PolicyChanged {
        #[n(0)]
        text: WorkflowText,
        /// Every setting that differs.
        #[n(1)]
        changes: Vec<PolicyChange>,
    },
    /// A job that had ended goes on with some of its dead letters.
    #[n(25)]
    Redriven {
        /// Whether what comes after the map is done again.
        #[n(0)]
        reduce: bool,
    },
    /// Nothing new is started until it is unpaused.
    #[n(28)]
    Paused,
    #[n(29)]
    Unpaused {
        /// How long it was paused; the time of its items stood still.
        #[n(0)]
        #[cbor(with = "codec::span")]
        away: Duration,
    },
    /// Commands were tried before the job was made.
    #[n(30)]
    StateImported {
        #[n(0)]
        commands: Vec<ImportedCommand>,
    },
    /// The job's pool was made larger.
    #[n(31)]
    PoolToppedUp {
        /// How many retries were asked for.
        #[n(0)]
        asked: u32,
        /// How many were added; the operator's maximum bounds them.
        #[n(1)]
        added: u32,
        /// What the pool is now.
        #[n(2)]
        total: u32,
        /// What an item may take of it now; as before without it.
        #[n(3)]
        per_item: Option<u32>,
    },
}

impl JobEvent {
    /// How the job has ended, and what it has come to; nothing if it has not.
    pub const fn ended(&self) -> Option<(Stage, &Ended)> {
        match self {
            Self::Completed(ended) => Some((Stage::Completed, ended)),
            Self::Partial(ended) => Some((Stage::Partial, ended)),
            Self::Failed(ended) => Some((Stage::Failed, ended)),
            Self::Cancelled(ended) => Some((Stage::Cancelled, ended)),
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

    /// The word it has in JSON.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Submitted(_) => "job_submitted",
            Self::Resumed(_) => "job_resumed",
            Self::TextKept { .. } => "text_kept",
            Self::Stopping { .. } => "job_stopping",
            // "Completed with dead letters" is a completion; its status says the rest.
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

/// Everything a job is made of, so that nothing else is needed to go on with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Submitted {
    #[n(0)]
    pub job: String,
    /// The text of its workflow, checked.
    #[n(1)]
    pub text: WorkflowText,
    /// Where the text came from: an absolute path, or what stood in its place.
    #[n(2)]
    pub file: String,
    /// The directory its commands run in.
    #[n(3)]
    pub working_dir: String,
    /// The environment variables it refers to, as they were.
    #[n(4)]
    pub env: Vec<(String, String)>,
    /// Where its jitter comes from.
    #[n(5)]
    pub seed: u64,
    /// How many items of each step run at a time, by the place of the step.
    #[n(6)]
    pub parallel: Vec<(StepId, u32)>,
    /// The pool: retries for the job, and for any one item. Without it there is none.
    #[n(7)]
    pub pool: Option<(u32, u32)>,
    /// The ceilings of the operator: defaults and maxima for the job and for any one item. Without
    /// them the documented ones hold.
    #[n(8)]
    pub ceilings: Option<(u32, u32, u32, u32)>,
    /// The release that wrote this, if it is known.
    #[n(9)]
    pub release: Option<String>,
    /// The file its commands read; none if they read nothing.
    #[n(10)]
    pub stdin: Option<String>,
    /// What becomes of what its commands write, beside being kept; none if nothing does.
    #[n(11)]
    pub passing: Option<Passing>,
    /// What a step waits for that says less than it could: how many have to succeed, and for how long.
    /// Without it the documented defaults hold.
    #[n(12)]
    pub completion: Option<CompletionDefaults>,
    /// Whether results that come after their step was complete count all the same; not without it.
    #[n(13)]
    pub late_results_count: Option<bool>,
    /// How the steps of a flow are retried that do not say. Without it the documented defaults hold.
    #[n(14)]
    #[cbor(with = "codec::maybe_work", has_nil)]
    pub work: Option<WorkDefaults>,
    /// What the flow is to reach, if its text does not say.
    #[n(15)]
    pub flow: Option<FlowRun>,
    /// Makes the tokens of its attempts known only to those who are given them. Without it they follow
    /// from its name.
    #[n(16)]
    pub token_key: Option<u64>,
    /// Whether HTTP requests that name no breaker have one for their origin. A job that was stored before
    /// breakers were opt-in does not say, and has.
    #[n(17)]
    pub origin_breakers: Option<bool>,
}

/// What a step waits for that does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CompletionDefaults {
    /// How many have to succeed.
    #[n(0)]
    pub min: u64,
    /// How long to wait for them.
    #[n(1)]
    #[cbor(with = "codec::span")]
    pub deadline: Duration,
}

/// How the output of commands is passed on to whoever runs the job. All of it is kept then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Passing {
    #[n(0)]
    Through,
    /// Item by item, as they end.
    #[n(1)]
    Grouped,
    /// Item by item, in input order.
    #[n(2)]
    InOrder,
    /// As they end, with the name of the item before every line.
    #[n(3)]
    Tagged,
    /// In input order, with the name of the item before every line.
    #[n(4)]
    TaggedInOrder,
}

/// Somebody goes on with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Resumed {
    /// Which run this is; the first was 1.
    #[n(0)]
    pub run: u32,
    /// How long nobody was there.
    #[n(1)]
    #[cbor(with = "codec::span")]
    pub away: Duration,
    /// Whether it had been suspended; otherwise whoever ran it has died.
    #[n(2)]
    pub planned: bool,
    #[n(3)]
    pub restored: Restored,
}

/// What a resume found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Restored {
    /// Attempts that had been started and not ended.
    #[n(0)]
    pub running: u32,
    /// Items waiting for a retry.
    #[n(1)]
    pub waiting: u32,
    /// Items that were done.
    #[n(2)]
    pub settled: u32,
    #[n(3)]
    pub pending: u32,
    /// Attempts started so far.
    #[n(4)]
    pub attempts: u64,
    /// Items that a breaker held; none are without it.
    #[n(5)]
    pub held: Option<u32>,
}

/// An item of a map.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct NewItem {
    /// What it is called.
    #[n(0)]
    pub identity: String,
    /// Its value, as JSON.
    #[n(1)]
    pub input: String,
}

/// One setting that `resume --update` has changed.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct PolicyChange {
    /// The command, or what else it belongs to.
    #[n(0)]
    pub of: String,
    #[n(1)]
    pub setting: String,
    #[n(2)]
    pub old: String,
    #[n(3)]
    pub new: String,
}

/// A job has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Ended {
    /// What it came to.
    #[n(0)]
    pub counts: Counts,
    /// Why it did not simply complete.
    #[n(1)]
    #[cbor(with = "codec::maybe_reason", has_nil)]
    pub reason: Option<Reason>,
    /// What people read about it.
    #[n(2)]
    pub error: Option<Text>,
    #[n(3)]
    #[cbor(with = "codec::maybe_time", has_nil)]
    pub submitted: Option<Timestamp>,
}

/// What a job has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Counts {
    #[n(0)]
    pub total: u64,
    #[n(1)]
    pub succeeded: u64,
    /// Items that are dead letters.
    #[n(2)]
    pub dead: u64,
    /// Items that were skipped.
    #[n(3)]
    pub skipped: u64,
    /// Attempts started, handlers left out.
    #[n(4)]
    pub attempts: u64,
    /// How many of them were retries.
    #[n(5)]
    pub retries: u64,
    /// All delays added up.
    #[n(6)]
    #[cbor(with = "codec::span")]
    pub delay: Duration,
}
