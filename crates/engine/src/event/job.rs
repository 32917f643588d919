//! What is recorded of a job as a whole.

use std::time::Duration;

use minicbor::{Decode, Encode};
use undaunted_policy::shape::{BackoffType, WorkDefaults};
use undaunted_policy::{Attempts, Reason, Timestamp};

use super::codec;
use super::flow::FlowRun;
use super::text::Text;

/// Everything a job is made of, so that nothing else is needed to go on with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Submitted {
    /// The job.
    #[n(0)]
    pub job: String,
    /// The text of its workflow, checked.
    #[n(1)]
    pub text: String,
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
    pub parallel: Vec<(u32, u32)>,
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
    pub work: Option<WorkDefaultsStored>,
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

/// How the steps of a flow are retried that do not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct WorkDefaultsStored {
    /// How many retries; any number without it.
    #[n(0)]
    pub max_retries: Option<u32>,
    /// The first delay.
    #[n(1)]
    #[cbor(with = "codec::span")]
    pub backoff: Duration,
    /// The longest.
    #[n(2)]
    #[cbor(with = "codec::span")]
    pub max_backoff: Duration,
    /// How delays grow: 0 not at all, 1 by the same each time, 2 by a factor.
    #[n(3)]
    pub growth: u8,
}

impl From<WorkDefaults> for WorkDefaultsStored {
    fn from(work: WorkDefaults) -> Self {
        Self {
            max_retries: work.max_retries.retries(),
            backoff: work.backoff,
            max_backoff: work.max_backoff,
            growth: match work.backoff_type {
                BackoffType::Fixed => 0,
                BackoffType::Linear => 1,
                BackoffType::Exponential => 2,
            },
        }
    }
}

impl From<WorkDefaultsStored> for WorkDefaults {
    fn from(stored: WorkDefaultsStored) -> Self {
        Self {
            max_retries: stored
                .max_retries
                .map_or(Attempts::Unlimited, Attempts::AtMost),
            backoff: stored.backoff,
            max_backoff: stored.max_backoff,
            backoff_type: match stored.growth {
                0 => BackoffType::Fixed,
                1 => BackoffType::Linear,
                _ => BackoffType::Exponential,
            },
        }
    }
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
    /// As it comes.
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
    /// What was found.
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
    /// Items never started.
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
    /// The setting.
    #[n(1)]
    pub setting: String,
    /// What it was.
    #[n(2)]
    pub old: String,
    /// What it is.
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
    /// When it was submitted.
    #[n(3)]
    #[cbor(with = "codec::maybe_time", has_nil)]
    pub submitted: Option<Timestamp>,
}

/// What a job has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Counts {
    /// Items there are.
    #[n(0)]
    pub total: u64,
    /// Items that succeeded.
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
