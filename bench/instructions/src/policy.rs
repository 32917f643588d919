//! The delay and the verdict.

use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::Duration;

use undaunted_policy::{
    ClassName, Conditions, Failure as Failed, FailureCause, FailureClass, FailureKind, JitterMode, Policy,
    PolicyError, PoolBalance, RetryConfig, RetryOn, RetryProgress, RetryState, Rule, RuleAction, Seed,
    Timestamp,
};

use crate::Failure;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// One delay: exponential, capped, with jitter, at retry 5.
pub(crate) fn delay(rounds: u32) -> Result<(), Failure> {
    let retry = NonZeroU32::new(5).ok_or("five is none")?;
    let policy = config().build()?;
    let draws = Seed(7).draws(41, 2, 1);
    for _ in 0..rounds {
        let pace = black_box(policy.terms().pace());
        black_box(pace.delay(black_box(retry), None, black_box(draws)));
    }
    Ok(())
}

/// One verdict on a failure that passes every check.
pub(crate) fn verdict(rounds: u32) -> Result<(), Failure> {
    let (policy, state) = (policy()?, state());
    let failed = Failed::new(FailureCause::Status(503)).retry_after(Some(Duration::from_secs(2)));
    for _ in 0..rounds {
        let (policy, state, failed) = (black_box(&policy), black_box(&state), black_box(&failed));
        black_box(undaunted_policy::verdict(policy, state, failed, black_box(NOW)));
    }
    Ok(())
}

fn config() -> RetryConfig {
    RetryConfig::exponential(2.0)
        .attempts(10)
        .initial_delay(Duration::from_millis(100))
        .max_delay(Duration::from_secs(30))
        .jitter(JitterMode::PlusMinus)
}

fn policy() -> Result<Policy, PolicyError> {
    let statuses = Conditions { statuses: vec![400..=407], ..Conditions::default() };
    let throttled =
        Conditions { classes: vec![ClassName::Class(FailureClass::Throttled)], ..Conditions::default() };
    config()
        .retry_budget(Duration::from_mins(5))
        .deadline(Duration::from_hours(1))
        .max_retry_after(Duration::from_mins(1))
        .retry_on(FailureKind::ALL.map(RetryOn::Kind))
        .rules([
            Rule::new(statuses, RuleAction::Stop),
            Rule::retry(throttled, RetryConfig::new().attempts(20)),
        ])
        .build()
}

fn state() -> RetryState {
    RetryState {
        progress: RetryProgress {
            retries: 4,
            spent: Duration::from_secs(3),
            previous: Some(Duration::from_millis(800)),
        },
        draws: Seed(7).draws(41, 2, 1),
        deadline: Some(NOW.after(Duration::from_mins(30))),
        pool: Some(PoolBalance { total: 50, consumed: 20, per_item: 10, item_consumed: 4 }),
    }
}
