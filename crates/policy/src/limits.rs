//! The limits of one command in one round: attempts, delay budget, deadline.
//!
//! The limits that many items share are in `pool.rs` and `breaker.rs`. Each limit answers whether a retry
//! may be scheduled. Nothing is charged here: [`RetryProgress`] changes only when a caller acts on a verdict.

use core::time::Duration;

use crate::timestamp::Timestamp;

/// How many retries may follow the first attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Attempts {
    /// At most this many **retries**: with 3, the command runs at most four times.
    AtMost(u32),
    /// Any number of retries.
    Unlimited,
}

impl Attempts {
    /// The default of a `retry_config`: 3 retries.
    pub const DEFAULT: Self = Self::AtMost(3);
    /// No retries: the command runs once.
    pub const NONE: Self = Self::AtMost(0);

    /// Whether a further retry is allowed after `retries_made` retries.
    #[must_use]
    pub const fn allow(self, retries_made: u32) -> bool {
        match self {
            Self::AtMost(bound) => retries_made < bound,
            Self::Unlimited => true,
        }
    }

    /// The number of retries, if it is bounded.
    #[must_use]
    pub const fn retries(self) -> Option<u32> {
        match self {
            Self::AtMost(bound) => Some(bound),
            Self::Unlimited => None,
        }
    }

    /// The number of executions including the first attempt, if it is bounded.
    #[must_use]
    pub const fn executions(self) -> Option<u64> {
        match self {
            Self::AtMost(bound) => Some((bound as u64).saturating_add(1)),
            Self::Unlimited => None,
        }
    }
}

impl Default for Attempts {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The limits on one command in one round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub(crate) attempts: Attempts,
    pub(crate) retry_budget: Option<Duration>,
    pub(crate) deadline: Option<Duration>,
}

impl Limits {
    /// How many retries are allowed.
    #[must_use]
    pub const fn attempts(&self) -> Attempts {
        self.attempts
    }

    /// The delay budget: how long the delays of a round may be in total.
    #[must_use]
    pub const fn retry_budget(&self) -> Option<Duration> {
        self.retry_budget
    }

    /// How long after the first start a retry may still fall due.
    #[must_use]
    pub const fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    /// Whether a wait fits into the rest of the delay budget. Using it up exactly is allowed.
    #[must_use]
    pub fn budget_allows(&self, spent: Duration, wait: Duration) -> bool {
        self.retry_budget.is_none_or(|budget| spent.saturating_add(wait) <= budget)
    }

    /// The instant after which recovery refuses a scheduled retry: its due time plus the rest of the
    /// budget.
    #[must_use]
    pub fn budget_expires_at(&self, spent: Duration, due: Timestamp) -> Option<Timestamp> {
        self.retry_budget.map(|budget| due.after(budget.saturating_sub(spent)))
    }

    /// Whether a retry that fell due during unplanned downtime is too late, because the downtime after its
    /// due time counts as waiting. For recovery only: while the process lives, only scheduled delays count.
    #[must_use]
    pub fn budget_expired(&self, spent: Duration, due: Timestamp, now: Timestamp) -> bool {
        !self.budget_allows(spent, now.since(due))
    }
}

/// The progress of a command: what it has used up in its round. Small, because every pending retry has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct RetryProgress {
    /// Retries scheduled so far.
    pub retries: u32,
    /// The sum of their delays.
    pub spent: Duration,
    /// The delay before the last retry.
    pub previous: Option<Duration>,
}

impl RetryProgress {
    /// The progress after a further retry was scheduled with this delay.
    #[must_use]
    pub const fn after_wait(self, wait: Duration) -> Self {
        Self {
            retries: self.retries.saturating_add(1),
            spent: self.spent.saturating_add(wait),
            previous: Some(wait),
        }
    }

    /// The progress after a further retry that has no delay, because a breaker held it.
    #[must_use]
    pub const fn after_hold(self) -> Self {
        Self { retries: self.retries.saturating_add(1), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Limits =
        Limits { attempts: Attempts::Unlimited, retry_budget: Some(Duration::from_secs(10)), deadline: None };

    #[test]
    fn a_bound_of_three_is_four_executions() {
        assert!(Attempts::AtMost(3).allow(2));
        assert!(!Attempts::AtMost(3).allow(3));
        assert_eq!(Attempts::AtMost(3).executions(), Some(4));
        assert_eq!(Attempts::AtMost(u32::MAX).executions(), Some(4_294_967_296));
        assert_eq!(Attempts::Unlimited.executions(), None);
    }

    #[test]
    fn a_wait_that_uses_the_budget_up_exactly_is_allowed() {
        assert!(BUDGET.budget_allows(Duration::from_secs(7), Duration::from_secs(3)));
        assert!(!BUDGET.budget_allows(Duration::from_secs(7), Duration::from_millis(3001)));
        assert!(!BUDGET.budget_allows(Duration::MAX, Duration::MAX));
    }

    #[test]
    fn downtime_after_the_due_time_counts_against_the_rest_of_the_budget() {
        let spent = Duration::from_secs(7);
        let due = Timestamp::from_millis(100_000);
        assert_eq!(BUDGET.budget_expires_at(spent, due), Some(Timestamp::from_millis(103_000)));
        assert!(!BUDGET.budget_expired(spent, due, Timestamp::from_millis(90_000)));
        assert!(!BUDGET.budget_expired(spent, due, Timestamp::from_millis(103_000)));
        assert!(BUDGET.budget_expired(spent, due, Timestamp::from_millis(103_001)));
    }
}
