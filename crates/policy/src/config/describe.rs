//! The way back: the settings that describe a policy, every default written out.

use super::{JitterMode, RetryConfig};
use crate::jitter::Jitter;
use crate::policy::{Policy, Terms};
use crate::rules::Rule;

impl From<&Policy> for RetryConfig {
    /// The settings that describe a policy, every default written out.
    fn from(policy: &Policy) -> Self {
        let rules = policy.rules.table.iter().map(|rule| Rule {
            when: rule.when.clone(),
            then: rule.then,
            terms: rule.terms.as_deref().map(|own| {
                Box::new(Self {
                    // The deadline is the command's, for every rule.
                    deadline: None,
                    ..own.into()
                })
            }),
        });
        Self {
            retry_on: policy.rules.retry_on.clone(),
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
