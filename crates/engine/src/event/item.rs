//! Events of items and their attempts.

use minicbor::{Decode, Encode};
use undaunted_policy::{Reason, Timestamp};

use super::attempt::{
    AttemptFailed, AttemptId, AttemptStarted, AttemptSucceeded, CommandStopped, RetryScheduled, SpooledPart,
};
use super::breaker::{StartHeld, StartReleased};
use super::codec;
use super::completion::LateResult;
use super::text::StoredText;
use crate::id::{CommandId, ItemId, StepId};

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum ItemEvent {
    #[n(6)]
    AttemptStarted(#[n(0)] AttemptStarted),
    #[n(7)]
    AttemptSucceeded(#[n(0)] Box<AttemptSucceeded>),
    #[n(8)]
    AttemptFailed(#[n(0)] Box<AttemptFailed>),
    #[n(9)]
    RetryScheduled(#[n(0)] Box<RetryScheduled>),
    #[n(10)]
    CommandStopped(#[n(0)] Box<CommandStopped>),
    /// A handler has succeeded, and its command gets one more attempt.
    #[n(11)]
    CommandRepeated {
        /// The last attempt made.
        #[n(0)]
        of: AttemptId,
    },
    /// A handler has succeeded, and the item continues with the next command.
    #[n(12)]
    CommandRecovered {
        /// The last attempt made.
        #[n(0)]
        of: AttemptId,
        #[n(1)]
        next: Option<CommandId>,
    },
    #[n(13)]
    Succeeded {
        #[n(0)]
        step: StepId,
        #[n(1)]
        index: u32,
    },
    #[n(14)]
    DeadLettered {
        /// The last attempt made.
        #[n(0)]
        of: AttemptId,
        #[cbor(n(1), with = "codec::reason")]
        reason: Reason,
        #[n(2)]
        error: StoredText,
    },
    #[n(15)]
    Skipped {
        #[n(0)]
        step: StepId,
        #[n(1)]
        index: u32,
        #[cbor(n(2), with = "codec::reason")]
        reason: Reason,
    },
    #[n(26)]
    Redriven {
        #[n(0)]
        step: StepId,
        #[n(1)]
        index: u32,
    },
    /// An operator discarded a dead letter.
    #[n(27)]
    Dropped {
        #[n(0)]
        step: StepId,
        #[n(1)]
        index: u32,
    },
    #[n(32)]
    Held(#[n(0)] Box<StartHeld>),
    #[n(33)]
    Released(#[n(0)] StartReleased),
    #[n(39)]
    LateResult(#[n(0)] LateResult),
    /// The target has accepted the attempt; its result comes by webhook.
    #[n(43)]
    AttemptAccepted {
        #[n(0)]
        of: AttemptId,
        #[cbor(n(1), with = "codec::time")]
        until: Timestamp,
    },
}

impl ItemEvent {
    pub const fn word(&self) -> &'static str {
        match self {
            Self::AttemptStarted(_) => "attempt_started",
            Self::AttemptSucceeded(_) => "attempt_succeeded",
            Self::AttemptFailed(_) => "attempt_failed",
            Self::RetryScheduled(_) => "retry_scheduled",
            Self::CommandStopped(_) => "command_stopped",
            Self::CommandRepeated { .. } => "command_repeated",
            Self::CommandRecovered { .. } => "command_recovered",
            Self::Succeeded { .. } => "item_succeeded",
            Self::DeadLettered { .. } => "item_dead_lettered",
            Self::Skipped { .. } => "item_skipped",
            Self::Redriven { .. } => "item_redriven",
            Self::Dropped { .. } => "item_dropped",
            Self::Held(_) => "held",
            Self::Released(_) => "released",
            Self::LateResult(_) => "late_result",
            Self::AttemptAccepted { .. } => "attempt_accepted",
        }
    }

    /// Where stdout and stderr are kept.
    pub const fn outputs(&self) -> [Option<SpooledPart>; 2] {
        match self {
            Self::AttemptSucceeded(done) => [done.stdout, done.stderr],
            Self::AttemptFailed(failed) => [failed.stdout, failed.stderr],
            Self::AttemptStarted(_)
            | Self::AttemptAccepted { .. }
            | Self::RetryScheduled(_)
            | Self::CommandStopped(_)
            | Self::CommandRepeated { .. }
            | Self::CommandRecovered { .. }
            | Self::Succeeded { .. }
            | Self::DeadLettered { .. }
            | Self::Skipped { .. }
            | Self::Redriven { .. }
            | Self::Dropped { .. }
            | Self::Held(_)
            | Self::Released(_)
            | Self::LateResult(_) => [None, None],
        }
    }

    /// Whether the event uses a unit of the job's pool: a retry that is scheduled, held by a rule or made
    /// after a handler.
    pub const fn is_charged(&self) -> bool {
        match self {
            Self::RetryScheduled(_) | Self::CommandRepeated { .. } => true,
            Self::Held(held) => held.sum.is_some(),
            Self::AttemptStarted(_)
            | Self::AttemptSucceeded(_)
            | Self::AttemptFailed(_)
            | Self::AttemptAccepted { .. }
            | Self::CommandStopped(_)
            | Self::CommandRecovered { .. }
            | Self::Succeeded { .. }
            | Self::DeadLettered { .. }
            | Self::Skipped { .. }
            | Self::Redriven { .. }
            | Self::Dropped { .. }
            | Self::Released(_)
            | Self::LateResult(_) => false,
        }
    }

    pub const fn item(&self) -> ItemId {
        match self {
            Self::AttemptStarted(started) => started.of.item(),
            Self::AttemptSucceeded(succeeded) => succeeded.of.item(),
            Self::AttemptFailed(failed) => failed.of.item(),
            Self::RetryScheduled(retrying) => retrying.of.item(),
            Self::CommandStopped(stopped) => stopped.of.item(),
            Self::CommandRepeated { of }
            | Self::CommandRecovered { of, .. }
            | Self::DeadLettered { of, .. }
            | Self::AttemptAccepted { of, .. } => of.item(),
            Self::Succeeded { step, index }
            | Self::Skipped { step, index, .. }
            | Self::Redriven { step, index }
            | Self::Dropped { step, index } => step.item(*index),
            Self::Held(held) => held.of.item(),
            Self::Released(released) => released.of.item(),
            Self::LateResult(late) => late.item(),
        }
    }
}
