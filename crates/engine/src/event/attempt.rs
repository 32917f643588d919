//! Events of attempts, retries and stopped commands.

use std::time::Duration;

use undaunted_policy::{Arithmetic, FailureCause, FailureClass, Reason, Timestamp};

use super::breaker::BreakerPass;
use super::codec;
use super::text::StoredText;
use super::time_limit::TimeLimit;
use crate::id::{AttemptNumber, CommandId, ItemId, StartId, StepId};
use crate::stored::stored;

stored! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub struct AttemptId {
        pub step: StepId = 0,
        pub index: u32 = 1,
        pub command: CommandId = 2,
        pub attempt: AttemptNumber = 3,
    }
}

impl AttemptId {
    pub const fn new(item: ItemId, command: CommandId, attempt: AttemptNumber) -> Self {
        Self { step: item.step, index: item.index, command, attempt }
    }

    pub const fn item(&self) -> ItemId {
        self.step.item(self.index)
    }
}

stored! {
    /// Is on disk before the executor begins the attempt.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AttemptStarted {
        pub of: AttemptId = 0,
        /// Unique within the job.
        pub start: StartId = 1,
        /// `None` if the command has no breaker.
        pub pass: Option<BreakerPass> = 2,
        /// When the keeper began it, if its start was reserved.
        pub began: Option<Timestamp> = 3 with "codec::maybe_time" has_nil,
    }

    /// The keeper may begin the attempt as soon as a slot is free.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct StartReserved {
        pub of: AttemptId = 0,
        pub start: StartId = 1,
    }

    /// The attempt has not begun under this number, and will not.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ReservationWithdrawn {
        pub of: AttemptId = 0,
        pub start: StartId = 1,
    }

    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AttemptSucceeded {
        pub of: AttemptId = 0,
        pub took: Duration = 1 with "codec::span",
        pub next: Option<CommandId> = 2,
        /// Only if a value or a report needs it.
        pub output: Option<String> = 3,
        pub stdout: Option<SpooledPart> = 4,
        pub stderr: Option<SpooledPart> = 5,
        /// How many processes it left running; `None` is 0.
        pub left: Option<u32> = 6,
    }

    /// The result of an accepted attempt has arrived after that attempt had failed, while its item waited for
    /// the retry.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ResultArrived {
        /// The last attempt made.
        pub of: AttemptId = 0,
        /// `None` if the target reported a failure.
        pub output: Option<String> = 1,
        /// What the target reported as its failure.
        pub error: Option<StoredText> = 2,
    }

    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AttemptFailed {
        pub of: AttemptId = 0,
        pub took: Duration = 1 with "codec::span",
        pub cause: FailureCause = 2 with "codec::cause",
        pub class: FailureClass = 3 with "codec::class",
        /// The last lines that the attempt wrote, or another explanation.
        pub error: Option<StoredText> = 4,
        /// The row of the rule table that decided, from 0.
        pub rule: Option<u32> = 5,
        /// Only if a value or a report needs it.
        pub output: Option<String> = 6,
        pub stdout: Option<SpooledPart> = 7,
        pub stderr: Option<SpooledPart> = 8,
        /// The time limit that ended it.
        pub limit: Option<TimeLimit> = 9,
    }

    /// Where the spool keeps the beginning and the end of an output.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct SpooledPart {
        /// Bytes written.
        pub length: u64 = 0,
        /// Bytes kept of the beginning.
        pub head: u64 = 1,
        /// Bytes kept of the end.
        pub tail: u64 = 2,
        pub segment: u32 = 3,
        pub offset: u64 = 4,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct RetryScheduled {
        pub of: AttemptId = 0,
        pub arithmetic: RetryArithmetic = 1,
        pub due: Timestamp = 2 with "codec::time",
        pub delay: Duration = 3 with "codec::span",
    }

    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct RetryArithmetic {
        /// Counted from 1.
        pub retry: u32 = 0,
        /// `None` is unlimited.
        pub allowed: Option<u32> = 1,
        /// Before cap and jitter.
        pub computed: Option<Duration> = 2 with "codec::maybe_span" has_nil,
        pub capped: Option<Duration> = 3 with "codec::maybe_span" has_nil,
        pub drawn: Option<Duration> = 4 with "codec::maybe_span" has_nil,
        /// Sum of the delays before this retry; `spent_after` includes it.
        pub spent_before: Duration = 5 with "codec::span",
        pub spent_after: Duration = 6 with "codec::span",
        pub budget: Option<Duration> = 7 with "codec::maybe_span" has_nil,
        /// After unplanned downtime, when the retry is too late.
        pub expires: Option<Timestamp> = 8 with "codec::maybe_time" has_nil,
        /// The wait that the target asked for.
        pub retry_after: Option<Duration> = 9 with "codec::maybe_span" has_nil,
        pub deadline: Option<Timestamp> = 10 with "codec::maybe_time" has_nil,
        /// The retries of the job before this one: used and allowed.
        pub pool: Option<(u32, u32)> = 11,
        /// The retries of the item before this one: used and allowed.
        pub share: Option<(u32, u32)> = 12,
    }
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

stored! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct CommandStopped {
        /// The last attempt; number 0 if there was none.
        pub of: AttemptId = 0,
        pub reason: Reason = 1 with "codec::reason",
        /// For people: the reason with its numbers, and the last error.
        pub error: StoredText = 2,
        pub arithmetic: Option<RetryArithmetic> = 3,
        pub handler: Option<CommandId> = 4,
        /// The row of the rule table that decided, from 0.
        pub rule: Option<u32> = 5,
    }
}
