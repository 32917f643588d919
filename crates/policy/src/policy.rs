//! The one type that holds a retry policy, checked.
//!
//! A policy says when to try again and when to stop; it never changes and knows nothing about any
//! particular attempt. It is made by [`RetryConfig::build`](crate::RetryConfig::build), which
//! refuses what cannot be meant.

use core::time::Duration;

use crate::delay::DelayPolicy;
use crate::limits::{Attempts, Limits};
use crate::rules::Rules;

/// When to try again, and when to stop.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    pub(crate) terms: Terms,
    pub(crate) rules: Rules<Terms>,
}

/// The terms on which a failure is retried: the policy's own, or those of the rule that matched.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    pub(crate) pace: DelayPolicy,
    pub(crate) limits: Limits,
    pub(crate) max_retry_after: Duration,
}

impl Terms {
    const fn with(attempts: Attempts) -> Self {
        Self {
            pace: DelayPolicy::DEFAULT,
            limits: Limits { attempts, retry_budget: None, deadline: None },
            max_retry_after: Policy::DEFAULT_MAX_RETRY_AFTER,
        }
    }

    /// How fast retries follow each other.
    #[must_use]
    pub const fn delay_policy(&self) -> &DelayPolicy {
        &self.pace
    }

    /// When they stop.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The longest wait the other side may ask for.
    #[must_use]
    pub const fn max_retry_after(&self) -> Duration {
        self.max_retry_after
    }
}

impl Policy {
    /// The longest `Retry-After` that is honoured when nothing else is said.
    pub const DEFAULT_MAX_RETRY_AFTER: Duration = Duration::from_mins(5);

    /// An empty `retry_config`: 3 retries, exponential from 1s with base 2, capped at 30s, without
    /// jitter; everything transient is retried.
    pub const DEFAULT: Self = Self { terms: Terms::with(Attempts::DEFAULT), rules: Rules::NONE };

    /// No `retry_config`: run once.
    pub const ONCE: Self = Self { terms: Terms::with(Attempts::NONE), rules: Rules::NONE };

    /// The terms for a failure that no rule with terms of its own matches.
    #[must_use]
    pub const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// What selects failures for retrying.
    #[must_use]
    pub const fn rules(&self) -> &Rules<Terms> {
        &self.rules
    }

    /// How many retries a round can have at most, whichever rules match.
    #[must_use]
    pub fn bound(&self) -> Attempts {
        let own = self.rules.table.iter().filter_map(|rule| rule.terms.as_deref());
        let all = own.chain([&self.terms]);
        all.map(|terms| terms.limits.attempts)
            .max_by_key(|attempts| attempts.retries().map_or(u64::MAX, u64::from))
            .unwrap_or_default()
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::DEFAULT
    }
}
