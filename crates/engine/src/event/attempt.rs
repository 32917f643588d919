//! What is recorded of attempts, retries and the end of both.

use std::time::Duration;

use minicbor::{Decode, Encode};
use undaunted_policy::{Arithmetic, Cause, Class, Reason, Timestamp};

use super::breaker::Pass;
use super::codec;
use super::text::Text;
use crate::id::{AttemptNumber, CommandId, ItemId, StepId};

/// Which attempt of which command of which item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub struct AttemptId {
    #[n(0)]
    pub step: StepId,
    /// The place of the item in the input of its step.
    #[n(1)]
    pub index: u32,
    #[n(2)]
    pub command: CommandId,
    #[n(3)]
    pub attempt: AttemptNumber,
}

impl AttemptId {
    pub const fn new(item: ItemId, command: CommandId, attempt: AttemptNumber) -> Self {
        Self {
            step: item.step,
            index: item.index,
            command,
            attempt,
        }
    }

    pub const fn item(&self) -> ItemId {
        self.step.item(self.index)
    }
}

/// An attempt may begin. On the disk before it does.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Started {
    #[n(0)]
    pub of: AttemptId,
    /// The number of this start, different from every other of the job.
    #[n(1)]
    pub start: u64,
    /// The breaker that let it through; none if it asked none.
    #[n(2)]
    pub pass: Option<Pass>,
}

/// An attempt has succeeded.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Succeeded {
    #[n(0)]
    pub of: AttemptId,
    /// How long it took.
    #[n(1)]
    #[cbor(with = "codec::span")]
    pub took: Duration,
    /// The command of the item that comes next, if any.
    #[n(2)]
    pub next: Option<CommandId>,
    /// What it wrote, where something depends on it.
    #[n(3)]
    pub output: Option<String>,
    /// Where its output is kept.
    #[n(4)]
    pub stdout: Option<Kept>,
    /// Where its error output is kept.
    #[n(5)]
    pub stderr: Option<Kept>,
    /// Processes it left running.
    #[n(6)]
    pub left: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct AttemptFailed {
    #[n(0)]
    pub of: AttemptId,
    /// How long it took.
    #[n(1)]
    #[cbor(with = "codec::span")]
    pub took: Duration,
    #[n(2)]
    #[cbor(with = "codec::cause")]
    pub cause: Cause,
    /// The class it was given.
    #[n(3)]
    #[cbor(with = "codec::class")]
    pub class: Class,
    /// The last lines it wrote, or what else is known.
    #[n(4)]
    pub error: Option<Text>,
    /// The row of the table of rules that decided, counted from 0.
    #[n(5)]
    pub rule: Option<u32>,
    /// What it wrote, where something depends on it.
    #[n(6)]
    pub output: Option<String>,
    /// Where its output is kept.
    #[n(7)]
    pub stdout: Option<Kept>,
    /// Where its error output is kept.
    #[n(8)]
    pub stderr: Option<Kept>,
}

/// Where the beginning and the end of an output are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Kept {
    /// How many bytes were written.
    #[n(0)]
    pub length: u64,
    /// How many bytes of the beginning are kept.
    #[n(1)]
    pub head: u64,
    /// How many bytes of the end are kept.
    #[n(2)]
    pub tail: u64,
    /// In which segment of the spool.
    #[n(3)]
    pub segment: u32,
    #[n(4)]
    pub offset: u64,
}

/// A retry will be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Retrying {
    /// The attempt that failed.
    #[n(0)]
    pub of: AttemptId,
    /// How its delay came about.
    #[n(1)]
    pub sum: Sum,
    /// When it falls due.
    #[n(2)]
    #[cbor(with = "codec::time")]
    pub due: Timestamp,
    #[n(3)]
    #[cbor(with = "codec::span")]
    pub delay: Duration,
}

/// The numbers behind a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Sum {
    /// The retry in question, counted from 1.
    #[n(0)]
    pub retry: u32,
    /// How many are allowed; `None` is any number.
    #[n(1)]
    pub allowed: Option<u32>,
    /// The delay by the formula.
    #[n(2)]
    #[cbor(with = "codec::maybe_span", has_nil)]
    pub computed: Option<Duration>,
    #[n(3)]
    #[cbor(with = "codec::maybe_span", has_nil)]
    pub capped: Option<Duration>,
    #[n(4)]
    #[cbor(with = "codec::maybe_span", has_nil)]
    pub drawn: Option<Duration>,
    /// Delays added up before it.
    #[n(5)]
    #[cbor(with = "codec::span")]
    pub spent_before: Duration,
    /// Delays added up with it.
    #[n(6)]
    #[cbor(with = "codec::span")]
    pub spent_after: Duration,
    #[n(7)]
    #[cbor(with = "codec::maybe_span", has_nil)]
    pub budget: Option<Duration>,
    /// When the retry is too late to be made after unplanned downtime.
    #[n(8)]
    #[cbor(with = "codec::maybe_time", has_nil)]
    pub expires: Option<Timestamp>,
    /// The wait the other side asked for.
    #[n(9)]
    #[cbor(with = "codec::maybe_span", has_nil)]
    pub retry_after: Option<Duration>,
    /// The instant after which no retry may fall due.
    #[n(10)]
    #[cbor(with = "codec::maybe_time", has_nil)]
    pub deadline: Option<Timestamp>,
    /// The job's pool before it: used and allowed.
    #[n(11)]
    pub pool: Option<(u32, u32)>,
    /// The item's share of the pool before it: used and allowed.
    #[n(12)]
    pub share: Option<(u32, u32)>,
}

impl Sum {
    /// The same for a retry that is made at once.
    pub(crate) const fn without_delay(self) -> Self {
        Self {
            computed: None,
            capped: None,
            drawn: None,
            spent_after: self.spent_before,
            ..self
        }
    }

    /// The numbers of a verdict, as they are recorded and shown.
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

    /// The delay after all: drawn, and at least what the other side asked for.
    pub fn wait(&self) -> Option<Duration> {
        let drawn = self.drawn?;
        Some(drawn.max(self.retry_after.unwrap_or_default()))
    }
}

/// A command is tried no further.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CommandStopped {
    /// The attempt that was the last; 0 if there was none.
    #[n(0)]
    pub of: AttemptId,
    #[n(1)]
    #[cbor(with = "codec::reason")]
    pub reason: Reason,
    /// What people read: the reason with its numbers, and the last error.
    #[n(2)]
    pub error: Text,
    /// The numbers behind the decision.
    #[n(3)]
    pub sum: Option<Sum>,
    /// The first command of the handler that runs now, if one does.
    #[n(4)]
    pub handler: Option<CommandId>,
    /// The row of the table of rules that decided, counted from 0.
    #[n(5)]
    pub rule: Option<u32>,
}
