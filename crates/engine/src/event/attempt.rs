//! Events of attempts, retries and stopped commands.

use std::time::Duration;

use minicbor::{Decode, Encode};
use undaunted_policy::{Arithmetic, FailureCause, FailureClass, Reason, Timestamp};

use super::breaker::BreakerPass;
use super::codec;
use super::text::StoredText;
use crate::id::{AttemptNumber, CommandId, ItemId, StartId, StepId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub struct AttemptId {
    #[n(0)]
    pub step: StepId,
    #[n(1)]
    pub index: u32,
    #[n(2)]
    pub command: CommandId,
    #[n(3)]
    pub attempt: AttemptNumber,
}

impl AttemptId {
    pub const fn new(item: ItemId, command: CommandId, attempt: AttemptNumber) -> Self {
        Self { step: item.step, index: item.index, command, attempt }
    }

    pub const fn item(&self) -> ItemId {
        self.step.item(self.index)
    }
}

/// Is on disk before the executor begins the attempt.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct AttemptStarted {
    #[n(0)]
    pub of: AttemptId,
    /// Unique within the job.
    #[n(1)]
    pub start: StartId,
    /// `None` if the command has no breaker.
    #[n(2)]
    pub pass: Option<BreakerPass>,
}

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct AttemptSucceeded {
    #[n(0)]
    pub of: AttemptId,
    #[cbor(n(1), with = "codec::span")]
    pub took: Duration,
    #[n(2)]
    pub next: Option<CommandId>,
    /// Only if a value or a report needs it.
    #[n(3)]
    pub output: Option<String>,
    #[n(4)]
    pub stdout: Option<SpooledPart>,
    #[n(5)]
    pub stderr: Option<SpooledPart>,
    /// How many processes it left running; `None` is 0.
    #[n(6)]
    pub left: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct AttemptFailed {
    #[n(0)]
    pub of: AttemptId,
    #[cbor(n(1), with = "codec::span")]
    pub took: Duration,
    #[cbor(n(2), with = "codec::cause")]
    pub cause: FailureCause,
    #[cbor(n(3), with = "codec::class")]
    pub class: FailureClass,
    /// The last lines that the attempt wrote, or another explanation.
    #[n(4)]
    pub error: Option<StoredText>,
    /// The row of the rule table that decided, from 0.
    #[n(5)]
    pub rule: Option<u32>,
    /// Only if a value or a report needs it.
    #[n(6)]
    pub output: Option<String>,
    #[n(7)]
    pub stdout: Option<SpooledPart>,
    #[n(8)]
    pub stderr: Option<SpooledPart>,
}

/// Where the spool keeps the beginning and the end of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SpooledPart {
    /// Bytes written.
    #[n(0)]
    pub length: u64,
    /// Bytes kept of the beginning.
    #[n(1)]
    pub head: u64,
    /// Bytes kept of the end.
    #[n(2)]
    pub tail: u64,
    #[n(3)]
    pub segment: u32,
    #[n(4)]
    pub offset: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct RetryScheduled {
    #[n(0)]
    pub of: AttemptId,
    #[n(1)]
    pub sum: RetryArithmetic,
    #[cbor(n(2), with = "codec::time")]
    pub due: Timestamp,
    #[cbor(n(3), with = "codec::span")]
    pub delay: Duration,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct RetryArithmetic {
    /// Counted from 1.
    #[n(0)]
    pub retry: u32,
    /// `None` is unlimited.
    #[n(1)]
    pub allowed: Option<u32>,
    /// Before cap and jitter.
    #[cbor(n(2), with = "codec::maybe_span", has_nil)]
    pub computed: Option<Duration>,
    #[cbor(n(3), with = "codec::maybe_span", has_nil)]
    pub capped: Option<Duration>,
    #[cbor(n(4), with = "codec::maybe_span", has_nil)]
    pub drawn: Option<Duration>,
    /// Sum of the delays before this retry; `spent_after` includes it.
    #[cbor(n(5), with = "codec::span")]
    pub spent_before: Duration,
    #[cbor(n(6), with = "codec::span")]
    pub spent_after: Duration,
    #[cbor(n(7), with = "codec::maybe_span", has_nil)]
    pub budget: Option<Duration>,
    /// After unplanned downtime, when the retry is too late.
    #[cbor(n(8), with = "codec::maybe_time", has_nil)]
    pub expires: Option<Timestamp>,
    /// The wait that the target asked for.
    #[cbor(n(9), with = "codec::maybe_span", has_nil)]
    pub retry_after: Option<Duration>,
    #[cbor(n(10), with = "codec::maybe_time", has_nil)]
    pub deadline: Option<Timestamp>,
    /// The retries of the job before this one: used and allowed.
    #[n(11)]
    pub pool: Option<(u32, u32)>,
    /// The retries of the item before this one: used and allowed.
    #[n(12)]
    pub share: Option<(u32, u32)>,
}

impl RetryArithmetic {
    /// The arithmetic of an immediate retry.
    pub(crate) const fn without_delay(self) -> Self {
        Self { computed: None, capped: None, drawn: None, spent_after: self.spent_before, ..self }
    }

    /// How late a retry is that was refused after downtime, which counts as waiting.
    pub fn overdue(&self) -> Duration {
        self.spent_after.saturating_sub(self.spent_before)
    }

    pub fn of(arithmetic: &Arithmetic) -> Self {
        let delay = arithmetic.delay;
        let pool = arithmetic.pool;
        Self {
            retry: arithmetic.retry,
            allowed: arithmetic.retries_allowed,
            computed: delay.map(|delay| delay.computed),
            capped: delay.map(|delay| delay.capped),
            drawn: delay.map(|delay| delay.drawn),
            spent_before: arithmetic.spent_before,
            spent_after: arithmetic.spent_after,
            budget: arithmetic.retry_budget,
            expires: arithmetic.retry_budget_expires_at,
            retry_after: arithmetic.retry_after,
            deadline: arithmetic.deadline,
            pool: pool.map(|pool| (pool.consumed, pool.total)),
            share: pool.map(|pool| (pool.item_consumed, pool.per_item)),
        }
    }

    /// The drawn delay, and at least the wait that the target asked for.
    pub fn wait(&self) -> Option<Duration> {
        let drawn = self.drawn?;
        Some(drawn.max(self.retry_after.unwrap_or_default()))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CommandStopped {
    /// The last attempt; number 0 if there was none.
    #[n(0)]
    pub of: AttemptId,
    #[cbor(n(1), with = "codec::reason")]
    pub reason: Reason,
    /// For people: the reason with its numbers, and the last error.
    #[n(2)]
    pub error: StoredText,
    #[n(3)]
    pub sum: Option<RetryArithmetic>,
    #[n(4)]
    pub handler: Option<CommandId>,
    /// The row of the rule table that decided, from 0.
    #[n(5)]
    pub rule: Option<u32>,
}
