//! The checked retry policy.
//!
//! A policy says when to try again and when to stop. It never changes and knows nothing of any particular
//! attempt. Only [`RetryConfig::build`](crate::RetryConfig::build) makes one, and it refuses invalid
//! settings.

use core::time::Duration;

use crate::delay::Pace;
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
    pub(crate) pace: Pace,
    pub(crate) limits: Limits,
    pub(crate) max_retry_after: Duration,
}

impl Terms {
    const fn with(attempts: Attempts) -> Self {
        Self {
            pace: Pace::DEFAULT,
            limits: Limits { attempts, retry_budget: None, deadline: None },
            max_retry_after: Policy::DEFAULT_MAX_RETRY_AFTER,
        }
    }

    /// How fast retries follow each other.
    #[must_use]
    pub const fn pace(&self) -> &Pace {
        &self.pace
    }

    /// The limits at which retries stop.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The longest `Retry-After` on which a failure is retried.
    #[must_use]
    pub const fn max_retry_after(&self) -> Duration {
        self.max_retry_after
    }
}

impl Policy {
    /// The default of `max_retry_after`.
    pub const DEFAULT_MAX_RETRY_AFTER: Duration = Duration::from_mins(5);

    /// The policy of an empty `retry_config`: 3 retries, exponential from 1s with base 2, capped at 30s,
    /// without jitter; every transient failure is retried.
    pub const DEFAULT: Self = Self { terms: Terms::with(Attempts::DEFAULT), rules: Rules::NONE };

    /// The policy of a command without a `retry_config`: it runs once.
    pub const ONCE: Self = Self { terms: Terms::with(Attempts::NONE), rules: Rules::NONE };

    /// The terms for a failure that no rule with terms of its own matches.
    #[must_use]
    pub const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The rules that select failures for retrying.
    #[must_use]
    pub const fn rules(&self) -> &Rules<Terms> {
        &self.rules
    }

    /// The most retries that a round can have, whichever rules match.
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
