//! The facts a journal is made of.
//!
//! Numbers of variants and fields are part of the stored format: they are added, never used again.

use std::time::Duration;

use minicbor::{Decode, Encode};
use undaunted_policy::{Reason, Timestamp};

use super::attempt::{Failed, Kept, Retrying, Started, Stopped, Subject, Succeeded};
use super::breaker::{Held, Opened, Released};
use super::codec;
use super::completion::{Late, Reached};
use super::imported::ImportedCommand;
use super::job::{Ended, NewItem, PolicyChange, Resumed, Submitted};
use super::text::Text;

/// Something that has happened to a job.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum Event {
    /// It was handed in. Always the first.
    #[n(0)]
    JobSubmitted(#[n(0)] Box<Submitted>),
    /// Somebody goes on with it.
    #[n(1)]
    JobResumed(#[n(0)] Resumed),
    /// A step may begin.
    #[n(2)]
    StepStarted {
        /// Which one.
        #[n(0)]
        step: u32,
        /// The number of the start of the command that gives its items, if one does.
        #[n(1)]
        start: Option<u64>,
    },
    /// Items of a map are known. There may be several of these; the last one says so.
    #[n(3)]
    ItemsRead {
        /// The step.
        #[n(0)]
        step: u32,
        /// They, in order.
        #[n(1)]
        items: Vec<NewItem>,
        /// Whether there are no more.
        #[n(2)]
        last: bool,
    },
    /// The items of a map cannot be had.
    #[n(4)]
    InputFailed {
        /// The step.
        #[n(0)]
        step: u32,
        /// Why.
        #[n(1)]
        #[cbor(with = "codec::reason")]
        reason: Reason,
        /// What people read.
        #[n(2)]
        error: Text,
        /// Where the output of its command is kept.
        #[n(3)]
        stderr: Option<Kept>,
    },
    /// A text that events refer to by its number.
    #[n(5)]
    TextKept {
        /// It.
        #[n(0)]
        text: String,
    },
    /// An attempt may begin.
    #[n(6)]
    AttemptStarted(#[n(0)] Started),
    /// An attempt has succeeded.
    #[n(7)]
    AttemptSucceeded(#[n(0)] Box<Succeeded>),
    /// An attempt has failed.
    #[n(8)]
    AttemptFailed(#[n(0)] Box<Failed>),
    /// A retry will be made.
    #[n(9)]
    RetryScheduled(#[n(0)] Box<Retrying>),
    /// A command is tried no further.
    #[n(10)]
    CommandStopped(#[n(0)] Box<Stopped>),
    /// The handler of a stopped command has succeeded, and the command is tried once more.
    #[n(11)]
    CommandRepeated {
        /// The command; the attempt is the last one made.
        #[n(0)]
        subject: Subject,
    },
    /// The handler of a stopped command has succeeded, and the item goes on.
    #[n(12)]
    CommandRecovered {
        /// The command; the attempt is the last one made.
        #[n(0)]
        subject: Subject,
        /// The command that comes next, if any.
        #[n(1)]
        next: Option<u32>,
    },
    /// An item is done.
    #[n(13)]
    ItemSucceeded {
        /// Its step.
        #[n(0)]
        step: u32,
        /// Its place in the input.
        #[n(1)]
        item: u32,
    },
    /// An item has failed for good.
    #[n(14)]
    ItemDeadLettered {
        /// The command and the last attempt of it.
        #[n(0)]
        subject: Subject,
        /// Why.
        #[n(1)]
        #[cbor(with = "codec::reason")]
        reason: Reason,
        /// What people read.
        #[n(2)]
        error: Text,
    },
    /// An item is not gone on with.
    #[n(15)]
    ItemSkipped {
        /// Its step.
        #[n(0)]
        step: u32,
        /// Its place in the input.
        #[n(1)]
        item: u32,
        /// Why.
        #[n(2)]
        #[cbor(with = "codec::reason")]
        reason: Reason,
    },
    /// Nothing new is started any more.
    #[n(16)]
    JobStopping {
        /// Why.
        #[n(0)]
        #[cbor(with = "codec::reason")]
        reason: Reason,
    },
    /// All items of a step are settled.
    #[n(17)]
    StepCompleted {
        /// Which one.
        #[n(0)]
        step: u32,
    },
    /// A step has failed.
    #[n(18)]
    StepFailed {
        /// Which one.
        #[n(0)]
        step: u32,
    },
    /// The job is done.
    #[n(19)]
    JobCompleted(#[n(0)] Box<Ended>),
    /// The job is done, with dead letters.
    #[n(20)]
    JobPartial(#[n(0)] Box<Ended>),
    /// The job has failed.
    #[n(21)]
    JobFailed(#[n(0)] Box<Ended>),
    /// The job was cancelled.
    #[n(22)]
    JobCancelled(#[n(0)] Box<Ended>),
    /// The job was left in good order, to be gone on with.
    #[n(23)]
    JobSuspended,
    /// The workflow of the job was replaced by one with other settings.
    #[n(24)]
    PolicyChanged {
        /// The new text.
        #[n(0)]
        text: String,
        /// Every setting that differs.
        #[n(1)]
        changes: Vec<PolicyChange>,
    },
    /// A job that had ended goes on with some of its dead letters.
    #[n(25)]
    JobRedriven {
        /// Whether what comes after the map is done again.
        #[n(0)]
        reduce: bool,
    },
    /// A dead letter is tried again, in a new round.
    #[n(26)]
    ItemRedriven {
        /// Its step.
        #[n(0)]
        step: u32,
        /// Its place in the input.
        #[n(1)]
        item: u32,
    },
    /// Nobody wants a dead letter any more.
    #[n(27)]
    ItemDropped {
        /// Its step.
        #[n(0)]
        step: u32,
        /// Its place in the input.
        #[n(1)]
        item: u32,
    },
    /// Nothing new is started until it is unpaused.
    #[n(28)]
    JobPaused,
    /// It goes on.
    #[n(29)]
    JobUnpaused {
        /// How long it was paused; the time of its items stood still.
        #[n(0)]
        #[cbor(with = "codec::span")]
        away: Duration,
    },
    /// Commands were tried before the job was made.
    #[n(30)]
    StateImported {
        /// They.
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
    /// A breaker keeps an item back.
    #[n(32)]
    Held(#[n(0)] Box<Held>),
    /// A breaker lets an item go, and its attempt starts.
    #[n(33)]
    Released(#[n(0)] Released),
    /// An attempt of this job has opened a breaker.
    #[n(34)]
    BreakerOpened(#[n(0)] Opened),
    /// An attempt of this job finds out whether the target of a breaker is back.
    #[n(35)]
    BreakerHalfOpened {
        /// The breaker.
        #[n(0)]
        breaker: Text,
    },
    /// An attempt of this job has closed a breaker.
    #[n(36)]
    BreakerClosed {
        /// The breaker.
        #[n(0)]
        breaker: Text,
    },
    /// This job has given a breaker other settings.
    #[n(37)]
    BreakerConfigured {
        /// The breaker.
        #[n(0)]
        breaker: Text,
        /// Every setting that differs.
        #[n(1)]
        changes: Vec<PolicyChange>,
    },
    /// A step is complete by its rule.
    #[n(38)]
    CompletionReached(#[n(0)] Box<Reached>),
    /// An item has come to its end after its step was complete.
    #[n(39)]
    LateResult(#[n(0)] Late),
    /// The condition of a step does not hold, and it is not done.
    #[n(40)]
    StepSkipped {
        /// Which one.
        #[n(0)]
        step: u32,
    },
    /// A step can no longer begin, because this can no longer come.
    #[n(41)]
    StepUnreachable {
        /// Which one.
        #[n(0)]
        step: u32,
        /// The attribute.
        #[n(1)]
        missing: String,
    },
    /// A step has given an attribute.
    #[n(42)]
    AttributeSet {
        /// Which one.
        #[n(0)]
        step: u32,
        /// The attribute.
        #[n(1)]
        name: String,
        /// Its value, as JSON.
        #[n(2)]
        value: String,
    },
    /// The other side has taken an attempt on, and its result comes later.
    #[n(43)]
    AttemptAccepted {
        /// Which one.
        #[n(0)]
        subject: Subject,
        /// Until then it is waited for.
        #[n(1)]
        #[cbor(with = "codec::time")]
        until: Timestamp,
    },
}

impl Event {
    /// Whether somebody may have asked for it while nobody ran the job.
    pub(crate) const fn may_be_asked_for(&self) -> bool {
        matches!(
            self,
            Self::JobPaused
                | Self::JobUnpaused { .. }
                | Self::PoolToppedUp { .. }
                | Self::ItemDropped { .. }
        )
    }

    /// Where the outputs lie that it tells of: output and error output.
    #[must_use]
    pub const fn outputs(&self) -> [Option<Kept>; 2] {
        match self {
            Self::AttemptSucceeded(it) => [it.stdout, it.stderr],
            Self::AttemptFailed(it) => [it.stdout, it.stderr],
            Self::InputFailed { stderr, .. } => [None, *stderr],
            _ => [None, None],
        }
    }

    /// The word it has in JSON.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::JobSubmitted(_) => "job_submitted",
            Self::JobResumed(_) => "job_resumed",
            Self::StepStarted { .. } => "step_started",
            Self::ItemsRead { .. } => "items_read",
            Self::InputFailed { .. } => "input_failed",
            Self::TextKept { .. } => "text_kept",
            Self::AttemptStarted(_) => "attempt_started",
            Self::AttemptSucceeded(_) => "attempt_succeeded",
            Self::AttemptFailed(_) => "attempt_failed",
            Self::RetryScheduled(_) => "retry_scheduled",
            Self::CommandStopped(_) => "command_stopped",
            Self::CommandRepeated { .. } => "command_repeated",
            Self::CommandRecovered { .. } => "command_recovered",
            Self::ItemSucceeded { .. } => "item_succeeded",
            Self::ItemDeadLettered { .. } => "item_dead_lettered",
            Self::ItemSkipped { .. } => "item_skipped",
            Self::JobStopping { .. } => "job_stopping",
            Self::StepCompleted { .. } => "step_completed",
            Self::StepFailed { .. } => "step_failed",
            // "Completed with dead letters" is a completion; its status says the rest.
            Self::JobCompleted(_) | Self::JobPartial(_) => "job_completed",
            Self::JobFailed(_) => "job_failed",
            Self::JobCancelled(_) => "job_cancelled",
            Self::JobSuspended => "job_suspended",
            Self::PolicyChanged { .. } => "policy_changed",
            Self::StateImported { .. } => "state_imported",
            Self::JobRedriven { .. } => "job_redriven",
            Self::ItemRedriven { .. } => "item_redriven",
            Self::ItemDropped { .. } => "item_dropped",
            Self::JobPaused => "job_paused",
            Self::JobUnpaused { .. } => "job_unpaused",
            Self::PoolToppedUp { .. } => "pool_topped_up",
            Self::Held(_) => "held",
            Self::Released(_) => "released",
            Self::BreakerOpened(_) => "breaker_opened",
            Self::BreakerHalfOpened { .. } => "breaker_half_opened",
            Self::BreakerClosed { .. } => "breaker_closed",
            Self::BreakerConfigured { .. } => "breaker_configured",
            Self::CompletionReached(_) => "completion_reached",
            Self::LateResult(_) => "late_result",
            Self::StepSkipped { .. } => "step_skipped",
            Self::StepUnreachable { .. } => "step_unreachable",
            Self::AttributeSet { .. } => "attribute_set",
            Self::AttemptAccepted { .. } => "attempt_accepted",
        }
    }
}
