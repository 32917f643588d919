//! What is recorded of items and their attempts.

use minicbor::{Decode, Encode};
use undaunted_policy::{Reason, Timestamp};

use super::attempt::{AttemptFailed, AttemptId, CommandStopped, Retrying, Started, Succeeded};
use super::breaker::{Held, Released};
use super::codec;
use super::completion::Late;
use super::text::Text;
use crate::id::{CommandId, ItemId, StepId};

/// Something that has happened to an item.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum ItemEvent {
    /// An attempt may begin.
    #[n(6)]
    AttemptStarted(#[n(0)] Started),
    #[n(7)]
    AttemptSucceeded(#[n(0)] Box<Succeeded>),
    #[n(8)]
    AttemptFailed(#[n(0)] Box<AttemptFailed>),
    /// A retry will be made.
    #[n(9)]
    RetryScheduled(#[n(0)] Box<Retrying>),
    /// A command is tried no further.
    #[n(10)]
    CommandStopped(#[n(0)] Box<CommandStopped>),
    /// The handler of a stopped command has succeeded, and the command is tried once more.
    #[n(11)]
    CommandRepeated {
        /// The command; the attempt is the last one made.
        #[n(0)]
        of: AttemptId,
    },
    /// The handler of a stopped command has succeeded, and the item goes on.
    #[n(12)]
    CommandRecovered {
        /// The command; the attempt is the last one made.
        #[n(0)]
        of: AttemptId,
        /// The command that comes next, if any.
        #[n(1)]
        next: Option<CommandId>,
    },
    /// An item is done.
    #[n(13)]
    Succeeded {
        #[n(0)]
        step: StepId,
        /// Its place in the input.
        #[n(1)]
        index: u32,
    },
    /// An item has failed for good.
    #[n(14)]
    DeadLettered {
        /// The command and the last attempt of it.
        #[n(0)]
        of: AttemptId,
        #[n(1)]
        #[cbor(with = "codec::reason")]
        reason: Reason,
        #[n(2)]
        error: Text,
    },
    /// An item is not gone on with.
    #[n(15)]
    Skipped {
        #[n(0)]
        step: StepId,
        /// Its place in the input.
        #[n(1)]
        index: u32,
        #[n(2)]
        #[cbor(with = "codec::reason")]
        reason: Reason,
    },
    /// A dead letter is tried again, in a new round.
    #[n(26)]
    Redriven {
        #[n(0)]
        step: StepId,
        /// Its place in the input.
        #[n(1)]
        index: u32,
    },
    /// Nobody wants a dead letter any more.
    #[n(27)]
    Dropped {
        #[n(0)]
        step: StepId,
        /// Its place in the input.
        #[n(1)]
        index: u32,
    },
    /// A breaker keeps an item back.
    #[n(32)]
    Held(#[n(0)] Box<Held>),
    /// A breaker lets an item go, and its attempt starts.
    #[n(33)]
    Released(#[n(0)] Released),
    /// An item has come to its end after its step was complete.
    #[n(39)]
    LateResult(#[n(0)] Late),
    /// The other side has taken an attempt on, and its result comes later.
    #[n(43)]
    AttemptAccepted {
        #[n(0)]
        of: AttemptId,
        /// Until then it is waited for.
        #[n(1)]
        #[cbor(with = "codec::time")]
        until: Timestamp,
    },
}

impl ItemEvent {
    /// The word it has in JSON.
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

    /// Whether it takes a unit of the job's pool: a retry, scheduled, held by a rule or made after a
    /// handler.
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
