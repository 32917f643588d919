//! The retries that a policy would make if every attempt failed.
//!
//! The schedule calls [`verdict`] repeatedly with a transient failure and advances the time by each delay.
//! It is lazy: for an unlimited policy it is an endless iterator.

use core::time::Duration;

use crate::delay::Delay;
use crate::draw::Draws;
use crate::failure::Failure;
use crate::policy::Policy;
use crate::reason::Reason;
use crate::rules::Rules;
use crate::timestamp::Timestamp;
use crate::verdict::{Decision, RetryState, verdict};

/// The retries of one command in one round, in order.
///
/// ```
/// use undaunted_policy::{Policy, Schedule, Seed};
///
/// let mut plan = Schedule::new(&Policy::DEFAULT, Seed(0).draws(0, 0, 1));
/// let waits: Vec<u64> = plan.by_ref().map(|retry| retry.delay.drawn.as_secs()).collect();
/// assert_eq!(waits, [1, 2, 4]);
/// assert_eq!(plan.stopped().map(|reason| reason.word()), Some("attempts"));
/// ```
#[derive(Clone, Debug)]
pub struct Schedule {
    policy: Policy,
    state: RetryState,
    now: Timestamp,
    stopped: Option<Reason>,
}

/// One retry of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedRetry {
    /// The number of the retry, from 1.
    pub retry: u32,
    /// The delay before it, and how it was computed.
    pub delay: Delay,
    /// The sum of all delays up to and including this one.
    pub spent: Duration,
}

impl Schedule {
    /// The schedule of a policy with these draws. Attempts are assumed to take no time.
    #[must_use]
    pub fn new(policy: &Policy, draws: Draws) -> Self {
        let start = Timestamp::ZERO;
        Self {
            policy: Policy {
                terms: policy.terms.clone(),
                // Every failure of the schedule is retried, whatever the rules select.
                rules: Rules::NONE,
            },
            state: RetryState {
                draws,
                deadline: policy.terms.limits.deadline.map(|limit| start.after(limit)),
                ..RetryState::default()
            },
            now: start,
            stopped: None,
        }
    }

    /// Why the schedule has ended; `None` until it has.
    #[must_use]
    pub const fn stopped(&self) -> Option<Reason> {
        self.stopped
    }
}

impl Iterator for Schedule {
    type Item = PlannedRetry;

    fn next(&mut self) -> Option<PlannedRetry> {
        if self.stopped.is_some() {
            return None;
        }
        let verdict = verdict(&self.policy, &self.state, &Failure::transient(), self.now);
        self.stopped = verdict.reason();
        self.state.progress = verdict.progress(self.state.progress);
        match (verdict.decision, verdict.arithmetic.delay) {
            (Decision::Retry { at, .. }, Some(delay)) => {
                self.now = at;
                Some(PlannedRetry {
                    retry: verdict.arithmetic.retry,
                    delay,
                    spent: verdict.arithmetic.spent_after,
                })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
