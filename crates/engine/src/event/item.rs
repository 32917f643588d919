//! Events of items and their attempts.

use undaunted_policy::{Reason, Timestamp};

use super::attempt::{
    AttemptFailed, AttemptId, AttemptStarted, AttemptSucceeded, CommandStopped, ReservationWithdrawn,
    ResultArrived, RetryScheduled, SpooledPart, StartReserved,
};
use super::breaker::{StartHeld, StartReleased};
use super::codec;
use super::completion::LateResult;
use super::text::StoredText;
use crate::id::{CommandId, ItemId, StepId};
use crate::stored::stored;

stored! {
    #[derive(Clone, Debug, PartialEq)]
    pub enum ItemEvent {
        AttemptStarted(AttemptStarted = 0) = 6 => "attempt_started",
        AttemptSucceeded(Box<AttemptSucceeded> = 0) = 7 => "attempt_succeeded",
        AttemptFailed(Box<AttemptFailed> = 0) = 8 => "attempt_failed",
        RetryScheduled(Box<RetryScheduled> = 0) = 9 => "retry_scheduled",
        CommandStopped(Box<CommandStopped> = 0) = 10 => "command_stopped",
        /// A handler has succeeded, and its command gets one more attempt.
        CommandRepeated {
            /// The last attempt made.
            of: AttemptId = 0,
        } = 11 => "command_repeated",
        /// A handler has succeeded, and the item continues with the next command.
        CommandRecovered {
            /// The last attempt made.
            of: AttemptId = 0,
            next: Option<CommandId> = 1,
        } = 12 => "command_recovered",
        Succeeded { step: StepId = 0, index: u32 = 1 } = 13 => "item_succeeded",
        DeadLettered {
            /// The last attempt made.
            of: AttemptId = 0,
            reason: Reason = 1 with "codec::reason",
            error: StoredText = 2,
        } = 14 => "item_dead_lettered",
        Skipped {
            step: StepId = 0,
            index: u32 = 1,
            reason: Reason = 2 with "codec::reason",
        } = 15 => "item_skipped",
        Redriven { step: StepId = 0, index: u32 = 1 } = 26 => "item_redriven",
        /// An operator discarded a dead letter.
        Dropped { step: StepId = 0, index: u32 = 1 } = 27 => "item_dropped",
        Held(Box<StartHeld> = 0) = 32 => "held",
        Released(StartReleased = 0) = 33 => "released",
        LateResult(Box<LateResult> = 0) = 39 => "late_result",
        /// The target has accepted the attempt; its result comes by webhook.
        AttemptAccepted {
            of: AttemptId = 0,
            until: Timestamp = 1 with "codec::time",
        } = 43 => "attempt_accepted",
        ResultArrived(Box<ResultArrived> = 0) = 45 => "result_arrived",
        StartReserved(StartReserved = 0) = 46 => "start_reserved",
        ReservationWithdrawn(ReservationWithdrawn = 0) = 47 => "reservation_withdrawn",
    }
}

impl ItemEvent {
    /// Where stdout and stderr are kept.
    pub const fn outputs(&self) -> [Option<SpooledPart>; 2] {
        if let Self::AttemptSucceeded(done) = self {
            return [done.stdout, done.stderr];
        }
        if let Self::AttemptFailed(failed) = self {
            return [failed.stdout, failed.stderr];
        }
        [None, None]
    }

    /// Whether the event uses a unit of the job's pool: a retry that is scheduled, held by a rule or made
    /// after a handler.
    pub const fn is_charged(&self) -> bool {
        matches!(self, Self::RetryScheduled(_) | Self::CommandRepeated { .. })
            || matches!(self, Self::Held(held) if held.arithmetic.is_some())
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
            Self::ResultArrived(arrived) => arrived.of.item(),
            Self::StartReserved(reserved) => reserved.of.item(),
            Self::ReservationWithdrawn(withdrawn) => withdrawn.of.item(),
        }
    }
}
