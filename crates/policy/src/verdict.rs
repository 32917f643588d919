//! The one function that gives a verdict.
//!
//! Policy, state, failure and time in; the decision, its reason and the whole arithmetic out, so
//! that explaining it later is printing it. Nothing is charged or changed here: a verdict becomes
//! true when its caller has recorded it.

use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;

use crate::delay::Delay;
use crate::draw::Draws;
use crate::failure::{Failure, FailureClass};
use crate::limits::{Attempts, RetryUsage};
use crate::policy::{Policy, Terms};
use crate::pool::Balance;
use crate::reason::Reason;
use crate::rules::RuleAction;
use crate::timestamp::Timestamp;

/// Where a command stands when it fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct RetryState {
    /// What it has used up in this round.
    pub usage: RetryUsage,
    /// Where its jitter comes from.
    pub draws: Draws,
    /// The instant after which no retry may fall due.
    pub deadline: Option<Timestamp>,
    /// Its standing with the job's pool, if there is one.
    pub pool: Option<Balance>,
}

/// What to do about a failure, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Verdict {
    /// Try again, hold or stop.
    pub decision: Decision,
    /// The class the failure was given.
    pub class: FailureClass,
    /// The row of the table of rules that decided, counted from 0.
    pub rule: Option<usize>,
    /// How the decision came about.
    pub arithmetic: Arithmetic,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum Decision {
    /// Try again.
    Retry {
        /// At this instant.
        at: Timestamp,
        /// After this delay.
        wait: Duration,
    },
    /// Open the breaker, and try again when it lets the command start.
    Hold,
    /// Try no further.
    Stop {
        /// Because of this.
        reason: Reason,
        /// And then this: [`RuleAction::Stop`], [`RuleAction::Skip`] or [`RuleAction::DeadLetter`].
        then: RuleAction,
    },
}

/// The numbers behind a verdict. What was not reached, because an earlier check refused, is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Arithmetic {
    /// The retry in question, counted from 1.
    pub retry: u32,
    /// How many retries are allowed; `None` is any number.
    pub retries_allowed: Option<u32>,
    /// The delay and how it came about.
    pub delay: Option<Delay>,
    /// The wait the other side asked for; the delay is at least that.
    pub retry_after: Option<Duration>,
    /// The longest wait it may ask for.
    pub max_retry_after: Duration,
    /// Delays added up, before this retry.
    pub spent_before: Duration,
    /// The same with this retry, allowed or not.
    pub spent_after: Duration,
    /// How long they may be together.
    pub retry_budget: Option<Duration>,
    /// When the pending retry is too late to be made after unplanned downtime.
    pub retry_budget_expires_at: Option<Timestamp>,
    /// When the retry would start.
    pub due: Option<Timestamp>,
    /// The instant after which it may not.
    pub deadline: Option<Timestamp>,
    /// The pool before this retry.
    pub pool: Option<Balance>,
}

/// What to do about this failure.
#[inline]
#[must_use]
pub fn verdict(policy: &Policy, state: &RetryState, failure: &Failure<'_>, now: Timestamp) -> Verdict {
    let judged = policy.rules.judge(failure);
    let terms = judged.terms.unwrap_or(&policy.terms);
    let mut arithmetic = opening(terms, state);
    let refused = match judged.reason {
        Some(reason) => Some(reason),
        None if judged.then == RuleAction::Hold => weigh_hold(terms, state, now),
        None => weigh(terms, state, failure.retry_after, now, &mut arithmetic),
    };
    let decision = match (refused, arithmetic.due) {
        (Some(reason), _) => Decision::Stop {
            reason,
            // A retry that a limit refuses is an ordinary stop; only a rule says otherwise.
            then: match judged.then {
                RuleAction::Retry | RuleAction::Hold => RuleAction::Stop,
                then @ (RuleAction::Stop | RuleAction::Skip | RuleAction::DeadLetter) => then,
            },
        },
        (None, Some(at)) => Decision::Retry { at, wait: arithmetic.wait() },
        (None, None) => Decision::Hold,
    };
    Verdict { decision, class: judged.class, rule: judged.rule, arithmetic }
}

#[inline]
fn opening(terms: &Terms, state: &RetryState) -> Arithmetic {
    Arithmetic {
        retry: state.usage.retries.saturating_add(1),
        retries_allowed: terms.limits.attempts.retries(),
        delay: None,
        retry_after: None,
        max_retry_after: terms.max_retry_after,
        spent_before: state.usage.spent,
        spent_after: state.usage.spent,
        retry_budget: terms.limits.retry_budget,
        retry_budget_expires_at: None,
        due: None,
        deadline: state.deadline,
        pool: state.pool,
    }
}

/// Asks every limit in its order; the first that refuses is the reason.
#[inline]
fn weigh(
    terms: &Terms,
    state: &RetryState,
    retry_after: Option<Duration>,
    now: Timestamp,
    sum: &mut Arithmetic,
) -> Option<Reason> {
    let limits = &terms.limits;
    let made = state.usage.retries;
    if !limits.attempts.allow(made) {
        return Some(Reason::Attempts);
    }
    sum.retry_after = retry_after;
    if retry_after.is_some_and(|asked| asked > terms.max_retry_after) {
        return Some(Reason::RetryAfterExceedsLimit);
    }
    let retry = NonZeroU32::MIN.saturating_add(state.usage.retries);
    sum.delay = Some(terms.pace.delay(retry, state.usage.previous, state.draws));
    let wait = sum.wait();
    let due = now.after(wait);
    sum.spent_after = sum.spent_before.saturating_add(wait);
    sum.due = Some(due);
    if !limits.budget_allows(sum.spent_before, wait) {
        return Some(Reason::RetryBudget);
    }
    sum.retry_budget_expires_at = limits.budget_expires_at(sum.spent_after, due);
    if state.deadline.is_some_and(|deadline| due > deadline) {
        return Some(Reason::Deadline);
    }
    state.pool.and_then(|pool| pool.refuses())
}

/// A hold has no delay: the breaker says when, and time held is never charged. It still leads to a
/// further attempt, so the limits on attempts are asked.
fn weigh_hold(terms: &Terms, state: &RetryState, now: Timestamp) -> Option<Reason> {
    if !terms.limits.attempts.allow(state.usage.retries) {
        Some(Reason::Attempts)
    } else if state.deadline.is_some_and(|deadline| now > deadline) {
        Some(Reason::Deadline)
    } else {
        state.pool.and_then(|pool| pool.refuses())
    }
}

impl Arithmetic {
    /// The delay after all: drawn, and at least what the other side asked for.
    #[must_use]
    pub fn wait(&self) -> Duration {
        let drawn = self.delay.map_or(Duration::ZERO, |delay| delay.drawn);
        drawn.max(self.retry_after.unwrap_or(Duration::ZERO))
    }
}

impl Verdict {
    /// The command's progress after this verdict was acted upon.
    #[must_use]
    pub const fn usage(&self, before: RetryUsage) -> RetryUsage {
        match self.decision {
            Decision::Retry { wait, .. } => before.after_wait(wait),
            Decision::Hold => before.after_hold(),
            Decision::Stop { .. } => before,
        }
    }

    /// Why it stops, if it does.
    #[must_use]
    pub const fn reason(&self) -> Option<Reason> {
        match self.decision {
            Decision::Stop { reason, .. } => Some(reason),
            Decision::Retry { .. } | Decision::Hold => None,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum = &self.arithmetic;
        match self.decision {
            Decision::Retry { wait, .. } => write!(f, "{} in {wait:?}", Retries(sum)),
            Decision::Hold => write!(f, "{} when the breaker allows", Retries(sum)),
            Decision::Stop { reason, .. } => {
                f.write_str(reason.sentence())?;
                fmt_limit(f, reason, sum)
            }
        }
    }
}

/// The numbers of the limit that refused.
fn fmt_limit(f: &mut fmt::Formatter<'_>, reason: Reason, sum: &Arithmetic) -> fmt::Result {
    match (reason, sum.retry_budget, sum.pool, sum.retry_after) {
        (Reason::Attempts, ..) => {
            let made = sum.retry.saturating_sub(1);
            let total = Attempts::AtMost(made).executions().unwrap_or_default();
            let retries = if made == 1 { "retry" } else { "retries" };
            let attempts = if total == 1 { "attempt" } else { "attempts" };
            write!(f, " ({made} {retries}, {total} {attempts})")
        }
        (Reason::RetryBudget, Some(budget), ..) => {
            write!(f, " (spent {:?}, next delay {:?}, budget {budget:?})", sum.spent_before, sum.wait())
        }
        (Reason::JobBudgetExhausted | Reason::WorkflowBudgetExhausted, _, Some(balance), _) => {
            write!(f, ": {balance}")
        }
        (Reason::RetryAfterExceedsLimit, _, _, Some(asked)) => {
            write!(f, " (asked {asked:?}, limit {:?})", sum.max_retry_after)
        }
        _ => Ok(()),
    }
}

/// `retry 2 of 3 (attempt 3 of 4)`: whoever sees one number sees the other.
struct Retries<'a>(&'a Arithmetic);

impl fmt::Display for Retries<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let retry = self.0.retry;
        let attempt = u64::from(retry).saturating_add(1);
        match self.0.retries_allowed {
            Some(bound) => {
                let executions = u64::from(bound).saturating_add(1);
                write!(f, "retry {retry} of {bound} (attempt {attempt} of {executions})")
            }
            None => write!(f, "retry {retry} (attempt {attempt})"),
        }
    }
}

#[cfg(test)]
mod tests;
