//! Tests of `RetryConfig`: defaults, refusals, merging.

use super::*;
use crate::failure::{Failure, FailureCause};
use crate::kind::FailureKind;
use crate::rules::{Conditions, RuleAction};
use crate::timestamp::Timestamp;
use crate::verdict::{Decision, RetryState, verdict};

#[test]
fn an_empty_config_is_the_documented_default() {
    assert_eq!(RetryConfig::new().build(), Ok(Policy::DEFAULT));
    let once = RetryConfig::new().attempts(0).build();
    assert_eq!(once, Ok(Policy::ONCE));
}

#[test]
fn an_impossible_setting_is_named_with_what_is_accepted() {
    let refused = |config: RetryConfig| config.build().unwrap_err().to_string();
    for base in [0.99, 0.0, -2.0, f64::NAN, f64::INFINITY] {
        assert_eq!(
            refused(RetryConfig::exponential(base)),
            format!("`base` is {base}; it must be a number of at least 1")
        );
    }
    for factor in [1.01, -0.1, f64::NAN] {
        assert_eq!(
            refused(RetryConfig::new().jitter_factor(factor)),
            format!("`jitter_factor` is {factor}; it must be a number from 0 to 1")
        );
    }
    let too_long = Duration::from_secs(18_446_744_074);
    let named = |config: RetryConfig| config.build().unwrap_err().field();
    assert_eq!(
        refused(RetryConfig::new().initial_delay(too_long)),
        "`initial_delay` is 18446744074s; it must be a duration of at most 584 years"
    );
    assert_eq!(named(RetryConfig::new().max_delay(Duration::MAX)), "max_delay");
    assert_eq!(named(RetryConfig::new().retry_budget(too_long)), "retry_budget");
    assert_eq!(named(RetryConfig::new().deadline(too_long)), "deadline");
    assert_eq!(named(RetryConfig::new().max_retry_after(too_long)), "max_retry_after");
    assert_eq!(named(RetryConfig::linear(too_long)), "increment");
    assert_eq!(named(RetryConfig::custom(&[Duration::MAX])), "delays");
}

#[test]
fn settings_are_merged_field_by_field() {
    let general =
        RetryConfig::fibonacci().attempts(9).initial_delay(Duration::from_secs(7)).jitter_factor(0.1);
    let special = RetryConfig::new().attempts(2).jitter(JitterMode::PlusMinus);
    let policy = special.over(&general).build().unwrap();
    let terms = policy.terms();
    assert_eq!(terms.limits().attempts(), Attempts::AtMost(2));
    assert_eq!(terms.pace().backoff(), &Backoff::Fibonacci);
    assert_eq!(terms.pace().initial_delay(), Duration::from_secs(7));
    assert_eq!(terms.pace().jitter(), Jitter::PlusMinus { factor: 0.1 });
}

#[test]
fn every_field_can_come_from_the_base() {
    let below = RetryConfig::linear(Duration::from_secs(4))
        .attempts(7)
        .initial_delay(Duration::from_secs(2))
        .max_delay(Duration::from_secs(9))
        .jitter(JitterMode::Equal)
        .jitter_factor(0.5)
        .retry_budget(Duration::from_secs(99))
        .deadline(Duration::from_secs(999))
        .max_retry_after(Duration::from_secs(77))
        .retry_on([RetryOn::Kind(FailureKind::Network)])
        .retry_statuses([429..=429])
        .rules([Rule::new(Conditions::default(), RuleAction::Skip)]);
    assert_eq!(below.given().len(), 12);
    assert_eq!(RetryConfig::new().over(&below), below);
    assert_eq!(below.clone().over(&RetryConfig::fixed().attempts(1)), below);
}

#[test]
fn an_empty_retry_on_means_what_its_absence_means() {
    let empty = RetryConfig::new().retry_on([]);
    assert_eq!(empty, RetryConfig::new());
    assert_eq!(empty.given(), Vec::<&str>::new());
    let base = RetryConfig::new().retry_on([RetryOn::Kind(FailureKind::Network)]);
    assert_eq!(empty.clone().over(&base), base);
    let failure = Failure::new(FailureCause::Exit(1));
    let verdict = verdict(&empty.build().unwrap(), &RetryState::default(), &failure, Timestamp::ZERO);
    assert!(matches!(verdict.decision, Decision::Retry { .. }), "{verdict:?}");
}

#[test]
fn a_rule_keeps_what_it_does_not_change_and_may_raise_the_bound() {
    let own = RetryConfig::new().attempts(10).max_delay(Duration::from_secs(2));
    let policy = RetryConfig::fibonacci()
        .attempts(1)
        .rules([Rule::retry(Conditions::default(), own)])
        .build()
        .unwrap();
    let terms = policy.rules().table[0].terms.as_deref().unwrap();
    assert_eq!(terms.limits().attempts(), Attempts::AtMost(10));
    assert_eq!(terms.pace().backoff(), &Backoff::Fibonacci);
    assert_eq!(terms.pace().max_delay(), Duration::from_secs(2));
    assert_eq!(policy.bound(), Attempts::AtMost(10));
}

#[test]
fn a_rule_cannot_hold_rules() {
    let nested = RetryConfig::new().rules([Rule::new(Conditions::default(), RuleAction::Stop)]);
    let config = RetryConfig::new().rules([Rule::retry(Conditions::default(), nested)]);
    assert_eq!(
        config.build().unwrap_err().to_string(),
        "`rules` is not allowed in the `retry_config` of a rule"
    );
}
