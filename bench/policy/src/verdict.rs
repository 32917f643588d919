//! A verdict with every limit set.
//!
//! No peer has a verdict. The failure passes every check, which takes longest: attempts, `Retry-After`, delay
//! budget, deadline and pool all allow the retry, the last of four rules matches and has its own terms, and the
//! delay is jittered.

use std::hint::black_box;
use std::time::Duration;

use undaunted_policy::{
    ClassName, Conditions, Failure, FailureCause, FailureClass, FailureKind, JitterMode, Policy, PolicyError,
    PoolBalance, RetryConfig, RetryOn, RetryProgress, RetryState, Rule, RuleAction, Timestamp, verdict,
};

use crate::contestant::{Contestant, Group, Role, Target, repeat};
use crate::delay::{CAP, FIRST, draws};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

pub(crate) fn group() -> Result<Group, PolicyError> {
    let (full, text, plain) = (policy()?, policy()?, Policy::DEFAULT);
    Ok(Group {
        name: "verdict",
        about: "one verdict with its arithmetic",
        target: Some(Target::Nanoseconds(150.0)),
        left_out: "no peer decides on a failure without making the call",
        contestants: vec![
            Contestant::new(
                Role::Ours,
                "undaunted, every limit",
                "attempts, `Retry-After`, delay budget, deadline, pool, jitter, four rules and `retry_on`",
                time(full, state(), throttled()),
            ),
            Contestant::new(
                Role::Variant,
                "undaunted, nothing set",
                "the default policy: attempts and backoff",
                time(plain, RetryState::default(), Failure::transient()),
            ),
            Contestant::new(
                Role::Variant,
                "undaunted, text search",
                "every limit, and an exit code 1 whose 190 bytes of text are searched for all words of `retry_on`; one of the last words is at the end",
                time(text, state(), exited()),
            ),
        ],
    })
}

fn time(policy: Policy, state: RetryState, failure: Failure<'static>) -> impl FnMut(u64) -> Duration {
    move |n| repeat(n, || asked(&policy, &state, &failure))
}

fn asked(policy: &Policy, state: &RetryState, failure: &Failure<'_>) -> undaunted_policy::Verdict {
    verdict(black_box(policy), black_box(state), black_box(failure), black_box(NOW))
}

fn policy() -> Result<Policy, PolicyError> {
    let stop_on = |statuses| Conditions { statuses: vec![statuses], ..Conditions::default() };
    let named = |name| Conditions { classes: vec![name], ..Conditions::default() };
    let usage_error = Conditions { exit_codes: vec![2, 64], ..Conditions::default() };
    RetryConfig::exponential(2.0)
        .attempts(10)
        .initial_delay(FIRST)
        .max_delay(CAP)
        .jitter(JitterMode::PlusMinus)
        .retry_budget(Duration::from_mins(5))
        .deadline(Duration::from_hours(1))
        .max_retry_after(Duration::from_mins(1))
        .retry_statuses([408..=408, 425..=425, 429..=429])
        .retry_on(FailureKind::ALL.map(RetryOn::Kind))
        .rules([
            Rule::new(usage_error, RuleAction::DeadLetter),
            Rule::new(stop_on(400..=407), RuleAction::Stop),
            Rule::new(named(ClassName::Interrupted), RuleAction::Retry),
            Rule::retry(
                named(ClassName::Class(FailureClass::Throttled)),
                RetryConfig::new().initial_delay(2 * FIRST).attempts(20),
            ),
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
        draws: draws(),
        deadline: Some(NOW.after(Duration::from_mins(30))),
        pool: Some(PoolBalance { total: 50, consumed: 20, per_item: 10, item_consumed: 4 }),
    }
}

fn throttled() -> Failure<'static> {
    Failure::new(FailureCause::Status(503)).retry_after(Some(Duration::from_secs(2)))
}

fn exited() -> Failure<'static> {
    Failure::new(FailureCause::Exit(1)).text(
        "fetching index of registry.example\n\
         resolving 214 packages, 31 of them changed since yesterday\n\
         downloading archive 17 of 31 (4.2 MB)\n\
         error: the archive could not be read: throttled by peer",
    )
}

#[cfg(test)]
mod tests {
    use undaunted_policy::Decision;

    use super::*;

    #[test]
    fn the_timed_failure_passes_every_check_and_matches_the_last_rule() {
        let given = asked(&policy().unwrap(), &state(), &throttled());
        assert!(matches!(given.decision, Decision::Retry { .. }), "{given}");
        assert_eq!(given.rule, Some(3));
        assert_eq!(given.arithmetic.retries_allowed, Some(20));
        assert!(given.arithmetic.retry_budget_expires_at.is_some());
    }

    #[test]
    fn the_timed_text_is_searched_to_its_end() {
        let given = asked(&policy().unwrap(), &state(), &exited());
        assert!(matches!(given.decision, Decision::Retry { .. }), "{given}");
        assert_eq!(given.rule, None);
        assert!((180..200).contains(&exited().stderr.len()));
        assert!(!FailureKind::Network.matches(&exited()));
    }
}
