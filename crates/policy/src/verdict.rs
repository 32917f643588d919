//! The verdict: what to do about a failure.
//!
//! [`verdict`] takes policy, state, failure and time, and returns the decision, its reason and the whole
//! arithmetic, so that a decision can be explained later by printing it. It charges and changes nothing: a
//! verdict takes effect when the caller records it.

use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;

use crate::delay::Delay;
use crate::draw::Draws;
use crate::failure::{Failure, FailureClass};
use crate::limits::{Attempts, RetryProgress};
use crate::policy::{Policy, Terms};
use crate::pool::PoolBalance;
use crate::reason::Reason;
use crate::rules::RuleAction;
use crate::timestamp::Timestamp;

/// The state of a command when it fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct RetryState {
    /// What the command has used up in this round.
    pub progress: RetryProgress,
    /// The draws for its jitter.
    pub draws: Draws,
    /// The instant after which no retry may fall due.
    pub deadline: Option<Timestamp>,
    /// The balance of its item, if the job has a pool.
    pub pool: Option<PoolBalance>,
}

/// What to do about a failure, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Verdict {
    /// Try again, hold or stop.
    pub decision: Decision,
    /// The class of the failure, as the rules determined it.
    pub class: FailureClass,
    /// The row of the table of rules that decided, counted from 0.
    pub rule: Option<usize>,
    /// The numbers behind the decision.
    pub arithmetic: Arithmetic,
}

/// The decision of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum Decision {
    /// Schedule a retry.
    Retry {
        /// When the retry is due.
        at: Timestamp,
        /// The wait until then.
        wait: Duration,
    },
    /// Open the breaker, and try again when it admits the command.
    Hold,
    /// Make no further attempt.
    Stop {
        /// Why retrying stops.
        reason: Reason,
        /// What happens next: [`RuleAction::Stop`], [`RuleAction::Skip`] or [`RuleAction::DeadLetter`].
        then: RuleAction,
    },
}

/// The numbers behind a verdict. A number is absent if an earlier check refused before it was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Arithmetic {
    /// The number of the retry, from 1.
    pub retry: u32,
    /// How many retries are allowed; `None` if any number is.
    pub retries_allowed: Option<u32>,
    /// The delay and the steps of its computation.
    pub delay: Option<Delay>,
    /// The wait that the target asked for; the retry waits at least this long.
    pub retry_after: Option<Duration>,
    /// The longest wait it may ask for.
    pub max_retry_after: Duration,
    /// The sum of the delays before this retry.
    pub spent_before: Duration,
    /// The sum of the delays with this retry, even if it is refused.
    pub spent_after: Duration,
    /// The delay budget: the largest sum allowed.
    pub retry_budget: Option<Duration>,
    /// The instant after which recovery refuses the pending retry.
    pub retry_budget_expires_at: Option<Timestamp>,
    /// When the retry would be due.
    pub due: Option<Timestamp>,
    /// The instant after which no retry may fall due.
    pub deadline: Option<Timestamp>,
    /// The balance of the pool before this retry.
    pub pool: Option<PoolBalance>,
}

/// Decides what to do about this failure.
#[inline]
#[must_use]
pub fn verdict(policy: &Policy, state: &RetryState, failure: &Failure<'_>, now: Timestamp) -> Verdict {
    let rule_decision = policy.rules.judge(failure);
    let terms = rule_decision.terms.unwrap_or(&policy.terms);
    let mut arithmetic = initial_arithmetic(terms, state);
    let refused = match rule_decision.reason {
        Some(reason) => Some(reason),
        None if rule_decision.then == RuleAction::Hold => check_hold(terms, state, now),
        None => check_limits(terms, state, failure.retry_after, now, &mut arithmetic),
    };
    let decision = match (refused, arithmetic.due) {
        (Some(reason), _) => Decision::Stop {
            reason,
            // A retry that a limit refuses is an ordinary stop.
            then: match rule_decision.then {
                RuleAction::Retry | RuleAction::Hold => RuleAction::Stop,
                then @ (RuleAction::Stop | RuleAction::Skip | RuleAction::DeadLetter) => then,
            },
        },
        (None, Some(at)) => Decision::Retry { at, wait: arithmetic.wait() },
        (None, None) => Decision::Hold,
    };
    Verdict { decision, class: rule_decision.class, rule: rule_decision.rule, arithmetic }
}

#[inline]
fn initial_arithmetic(terms: &Terms, state: &RetryState) -> Arithmetic {
    Arithmetic {
        retry: state.progress.retries.saturating_add(1),
        retries_allowed: terms.limits.attempts.retries(),
        delay: None,
        retry_after: None,
        max_retry_after: terms.max_retry_after,
        spent_before: state.progress.spent,
        spent_after: state.progress.spent,
        retry_budget: terms.limits.retry_budget,
        retry_budget_expires_at: None,
        due: None,
        deadline: state.deadline,
        pool: state.pool,
    }
}

/// Checks the limits in order; the first that refuses is the reason.
#[inline]
fn check_limits(
    terms: &Terms,
    state: &RetryState,
    retry_after: Option<Duration>,
    now: Timestamp,
    sum: &mut Arithmetic,
) -> Option<Reason> {
    let limits = &terms.limits;
    let made = state.progress.retries;
    if !limits.attempts.allow(made) {
        return Some(Reason::Attempts);
    }
    sum.retry_after = retry_after;
    if retry_after.is_some_and(|asked| asked > terms.max_retry_after) {
        return Some(Reason::RetryAfterExceedsLimit);
    }
    let retry = NonZeroU32::MIN.saturating_add(state.progress.retries);
    sum.delay = Some(terms.pace.delay(retry, state.progress.previous, state.draws));
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

/// A hold has no delay, since the breaker decides when to release it, and held time is never charged. It
/// still leads to a further attempt, so attempts, deadline and pool are checked.
fn check_hold(terms: &Terms, state: &RetryState, now: Timestamp) -> Option<Reason> {
    if !terms.limits.attempts.allow(state.progress.retries) {
        Some(Reason::Attempts)
    } else if state.deadline.is_some_and(|deadline| now > deadline) {
        Some(Reason::Deadline)
    } else {
        state.pool.and_then(|pool| pool.refuses())
    }
}

impl Arithmetic {
    /// The wait before the retry: the drawn delay, or the `Retry-After` if that is longer.
    #[must_use]
    pub fn wait(&self) -> Duration {
        let drawn = self.delay.map_or(Duration::ZERO, |delay| delay.drawn);
        drawn.max(self.retry_after.unwrap_or(Duration::ZERO))
    }
}

impl Verdict {
    /// The command's progress after the caller has acted on this verdict.
    #[must_use]
    pub const fn progress(&self, before: RetryProgress) -> RetryProgress {
        match self.decision {
            Decision::Retry { wait, .. } => before.after_wait(wait),
            Decision::Hold => before.after_hold(),
            Decision::Stop { .. } => before,
        }
    }

    /// Why retrying stops, if it does.
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
            Decision::Retry { wait, .. } => write!(f, "{} in {wait:?}", RetryNumber(sum)),
            Decision::Hold => write!(f, "{} when the breaker allows", RetryNumber(sum)),
            Decision::Stop { reason: Reason::Deadline, .. } if sum.due.is_some() => {
                f.write_str("The retry would be due after the deadline")
            }
            Decision::Stop { reason, .. } => {
                f.write_str(reason.sentence())?;
                fmt_limit(f, reason, sum)
            }
        }
    }
}

/// Writes the numbers of the limit that refused.
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
            write!(f, " (requested {asked:?}, limit {:?})", sum.max_retry_after)
        }
        _ => Ok(()),
    }
}

/// Shows `retry 2 of 3 (attempt 3 of 4)`: both numbers, so that neither is taken for the other.
struct RetryNumber<'a>(&'a Arithmetic);

impl fmt::Display for RetryNumber<'_> {
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
