//! The settings of a policy, any of which may be missing.
//!
//! [`RetryConfig`] is the builder of a [`Policy`] and the normal form of every dialect of `retry_config`.
//! Settings from several sources are merged field by field before they are checked, so that a value may
//! come from the workflow and the one next to it from a command.

use core::ops::RangeInclusive;
use core::time::Duration;

use crate::backoff::Backoff;
use crate::delay::Pace;
use crate::error::PolicyError;
use crate::jitter::Jitter;
use crate::limits::{Attempts, Limits};
use crate::policy::{Policy, Terms};
use crate::rules::{RetryOn, Rule, Rules};

/// The builder of a [`Policy`].
///
/// ```
/// use std::time::Duration;
/// use undaunted_policy::{JitterMode, RetryConfig};
///
/// const CONFIG: RetryConfig = RetryConfig::fibonacci()
///     .attempts(5)
///     .initial_delay(Duration::from_millis(200))
///     .jitter(JitterMode::Full)
///     .retry_budget(Duration::from_secs(30));
/// let policy = CONFIG.build()?;
/// # Ok::<(), undaunted_policy::PolicyError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RetryConfig {
    pub(crate) attempts: Option<Attempts>,
    pub(crate) backoff: Option<Backoff>,
    pub(crate) initial_delay: Option<Duration>,
    pub(crate) max_delay: Option<Duration>,
    pub(crate) jitter: Option<JitterMode>,
    pub(crate) jitter_factor: Option<f64>,
    pub(crate) retry_budget: Option<Duration>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) max_retry_after: Option<Duration>,
    pub(crate) retry_on: Option<Vec<RetryOn>>,
    pub(crate) retry_statuses: Option<Vec<RangeInclusive<u16>>>,
    pub(crate) rules: Option<Vec<Rule<RetryConfig>>>,
}

/// The setting `jitter`. Its factor is a separate setting, `jitter_factor`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum JitterMode {
    /// No jitter: every delay is exact (`false`).
    #[default]
    Off,
    /// Plus or minus `jitter_factor` (`true`).
    PlusMinus,
    /// From zero to the delay.
    Full,
    /// From half of the delay to the whole delay.
    Equal,
    /// From the initial delay to three times the previous delay.
    Decorrelated,
}

impl RetryConfig {
    /// No settings: 3 retries, exponential from 1s, capped at 30s, without jitter.
    #[must_use]
    pub const fn new() -> Self {
        Self::with(None)
    }

    pub(crate) const fn with(backoff: Option<Backoff>) -> Self {
        Self {
            attempts: None,
            backoff,
            initial_delay: None,
            max_delay: None,
            jitter: None,
            jitter_factor: None,
            retry_budget: None,
            deadline: None,
            max_retry_after: None,
            retry_on: None,
            retry_statuses: None,
            rules: None,
        }
    }

    /// The backoff strategy, replacing an earlier one.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = Some(backoff);
        self
    }

    /// At most this many **retries** after the first attempt (default 3).
    #[must_use]
    pub const fn attempts(mut self, retries: u32) -> Self {
        self.attempts = Some(Attempts::AtMost(retries));
        self
    }

    /// No bound on the number of retries.
    #[must_use]
    pub const fn unlimited_attempts(mut self) -> Self {
        self.attempts = Some(Attempts::Unlimited);
        self
    }

    /// The delay from which the strategy grows (default 1s).
    #[must_use]
    pub const fn initial_delay(mut self, delay: Duration) -> Self {
        self.initial_delay = Some(delay);
        self
    }

    /// The cap of every delay, before jitter (default 30s).
    #[must_use]
    pub const fn max_delay(mut self, cap: Duration) -> Self {
        self.max_delay = Some(cap);
        self
    }

    /// How delays are spread (default: not at all).
    #[must_use]
    pub const fn jitter(mut self, mode: JitterMode) -> Self {
        self.jitter = Some(mode);
        self
    }

    /// How far [`JitterMode::PlusMinus`] reaches, from 0 to 1 (default 0.3).
    #[must_use]
    pub const fn jitter_factor(mut self, factor: f64) -> Self {
        self.jitter_factor = Some(factor);
        self
    }

    /// The delay budget: how long all delays together may be (default: no bound).
    #[must_use]
    pub const fn retry_budget(mut self, budget: Duration) -> Self {
        self.retry_budget = Some(budget);
        self
    }

    /// How long after the first start a retry may still fall due (default: no bound).
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// The longest `Retry-After` on which a failure is retried (default 5 minutes).
    #[must_use]
    pub const fn max_retry_after(mut self, longest: Duration) -> Self {
        self.max_retry_after = Some(longest);
        self
    }

    /// Retry only these failures (default, also of an empty list: every transient failure).
    #[must_use]
    pub fn retry_on(mut self, entries: impl IntoIterator<Item = RetryOn>) -> Self {
        self.retry_on = listed(entries.into_iter().collect());
        self
    }

    /// HTTP statuses that are retried although they are below 500 (default: none).
    #[must_use]
    pub fn retry_statuses(mut self, ranges: impl IntoIterator<Item = RangeInclusive<u16>>) -> Self {
        self.retry_statuses = Some(ranges.into_iter().collect());
        self
    }

    /// The ordered table of rules (default: none).
    #[must_use]
    pub fn rules(mut self, rules: impl IntoIterator<Item = Rule<Self>>) -> Self {
        self.rules = Some(rules.into_iter().collect());
        self
    }

    /// The names of the settings that are present. Other spellings are listed under the main name: the
    /// number of retries as `attempts`, and an initial delay inside `backoff` as `initial_delay`.
    #[must_use]
    pub fn given(&self) -> Vec<&'static str> {
        let all = [
            ("attempts", self.attempts.is_some()),
            ("backoff", self.backoff.is_some()),
            ("initial_delay", self.initial_delay.is_some()),
            ("max_delay", self.max_delay.is_some()),
            ("jitter", self.jitter.is_some()),
            ("jitter_factor", self.jitter_factor.is_some()),
            ("retry_budget", self.retry_budget.is_some()),
            ("deadline", self.deadline.is_some()),
            ("max_retry_after", self.max_retry_after.is_some()),
            ("retry_on", self.retry_on.is_some()),
            ("retry_statuses", self.retry_statuses.is_some()),
            ("rules", self.rules.is_some()),
        ];
        all.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect()
    }

    /// Merges two sets of settings: those of `self` where they are present, else those of `base`.
    #[must_use]
    pub fn over(self, base: &Self) -> Self {
        Self {
            attempts: self.attempts.or(base.attempts),
            backoff: self.backoff.or_else(|| base.backoff.clone()),
            initial_delay: self.initial_delay.or(base.initial_delay),
            max_delay: self.max_delay.or(base.max_delay),
            jitter: self.jitter.or(base.jitter),
            jitter_factor: self.jitter_factor.or(base.jitter_factor),
            retry_budget: self.retry_budget.or(base.retry_budget),
            deadline: self.deadline.or(base.deadline),
            max_retry_after: self.max_retry_after.or(base.max_retry_after),
            retry_on: self.retry_on.or_else(|| base.retry_on.clone()),
            retry_statuses: self.retry_statuses.or_else(|| base.retry_statuses.clone()),
            rules: self.rules.or_else(|| base.rules.clone()),
        }
    }

    /// Builds the policy, with defaults for missing settings.
    ///
    /// # Errors
    /// The first invalid setting, and what would be accepted.
    pub fn build(&self) -> Result<Policy, PolicyError> {
        let terms = self.terms()?;
        let statuses = self.retry_statuses.iter().flatten();
        statuses.into_iter().try_for_each(|range| check::status_range("retry_statuses", range))?;
        let table = self.rules.iter().flatten();
        let rules = Rules {
            table: table.map(|rule| self.rule(rule)).collect::<Result<_, _>>()?,
            retry_on: self.retry_on.clone().unwrap_or_default(),
            retry_statuses: self.retry_statuses.clone().unwrap_or_default(),
        };
        Ok(Policy { terms, rules })
    }

    fn rule(&self, rule: &Rule<Self>) -> Result<Rule<Terms>, PolicyError> {
        rule.when.check()?;
        let terms = match rule.terms.as_deref() {
            None => None,
            Some(own) => {
                own.refuse_selection()?;
                Some(Box::new(own.clone().over(self).terms()?))
            }
        };
        Ok(Rule { when: rule.when.clone(), then: rule.then, terms })
    }

    /// A rule may change how a failure is retried, but not which failures are retried.
    fn refuse_selection(&self) -> Result<(), PolicyError> {
        let misplaced = |field| Err(PolicyError::Misplaced { field, place: "the `retry_config` of a rule" });
        match self {
            Self { rules: Some(_), .. } => misplaced("rules"),
            Self { deadline: Some(_), .. } => misplaced("deadline"),
            Self { retry_on: Some(_), .. } => misplaced("retry_on"),
            Self { retry_statuses: Some(_), .. } => misplaced("retry_statuses"),
            _ => Ok(()),
        }
    }

    fn terms(&self) -> Result<Terms, PolicyError> {
        let within = |field, setting: Option<Duration>, default| {
            let duration = setting.unwrap_or(default);
            check::in_range(field, duration).map(|()| duration)
        };
        let backoff = self.backoff.clone().unwrap_or_default();
        check::backoff(&backoff)?;
        let factor = self.jitter_factor.unwrap_or(Jitter::DEFAULT_FACTOR);
        if !(0.0..=1.0).contains(&factor) {
            return Err(PolicyError::OutOfRange {
                field: "jitter_factor",
                value: factor.to_string(),
                accepted: "a number from 0 to 1",
            });
        }
        let pace = Pace::new(
            within("initial_delay", self.initial_delay, Pace::DEFAULT_INITIAL_DELAY)?,
            backoff,
            within("max_delay", self.max_delay, Pace::DEFAULT_MAX_DELAY)?,
            match self.jitter.unwrap_or_default() {
                JitterMode::Off => Jitter::None,
                JitterMode::PlusMinus => Jitter::PlusMinus { factor },
                JitterMode::Full => Jitter::Full,
                JitterMode::Equal => Jitter::Equal,
                JitterMode::Decorrelated => Jitter::Decorrelated,
            },
        );
        within("retry_budget", self.retry_budget, Duration::ZERO)?;
        within("deadline", self.deadline, Duration::ZERO)?;
        Ok(Terms {
            pace,
            limits: Limits {
                attempts: self.attempts.unwrap_or_default(),
                retry_budget: self.retry_budget,
                deadline: self.deadline,
            },
            max_retry_after: within(
                "max_retry_after",
                self.max_retry_after,
                Policy::DEFAULT_MAX_RETRY_AFTER,
            )?,
        })
    }
}

/// The entries of `retry_on`: an empty list means what an absent one means.
pub(crate) fn listed(entries: Vec<RetryOn>) -> Option<Vec<RetryOn>> {
    (!entries.is_empty()).then_some(entries)
}

impl From<&Policy> for RetryConfig {
    /// The settings that describe a policy, with every default written out.
    fn from(policy: &Policy) -> Self {
        let rules = policy.rules.table.iter().map(|rule| Rule {
            when: rule.when.clone(),
            then: rule.then,
            terms: rule.terms.as_deref().map(|own| {
                Box::new(Self {
                    // A rule has no deadline of its own.
                    deadline: None,
                    ..own.into()
                })
            }),
        });
        Self {
            retry_on: listed(policy.rules.retry_on.clone()),
            retry_statuses: Some(policy.rules.retry_statuses.clone()),
            rules: Some(rules.collect()),
            ..Self::from(&policy.terms)
        }
    }
}

impl From<&Terms> for RetryConfig {
    fn from(terms: &Terms) -> Self {
        let (jitter, jitter_factor) = match terms.pace.jitter() {
            Jitter::None => (JitterMode::Off, None),
            Jitter::PlusMinus { factor } => (JitterMode::PlusMinus, Some(factor)),
            Jitter::Full => (JitterMode::Full, None),
            Jitter::Equal => (JitterMode::Equal, None),
            Jitter::Decorrelated => (JitterMode::Decorrelated, None),
        };
        Self {
            attempts: Some(terms.limits.attempts),
            initial_delay: Some(terms.pace.initial_delay()),
            max_delay: Some(terms.pace.max_delay()),
            jitter: Some(jitter),
            jitter_factor,
            retry_budget: terms.limits.retry_budget,
            deadline: terms.limits.deadline,
            max_retry_after: Some(terms.max_retry_after),
            ..Self::with(Some(terms.pace.backoff().clone()))
        }
    }
}

mod check;
#[cfg(test)]
mod tests;
