//! Tests of the verdict: the order of its checks, its arithmetic, its sentences.

use proptest::prelude::*;

use super::*;
use crate::config::{JitterMode, RetryConfig};
use crate::draw::Seed;
use crate::failure::FailureCause;
use crate::pool::{Pool, PoolLimits};
use crate::rules::{Conditions, Rule};

const NOW: Timestamp = Timestamp::from_millis(1_000_000);

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn fixed(attempts: u32) -> RetryConfig {
    RetryConfig::fixed().attempts(attempts)
}

fn after(retries: u32, spent: Duration) -> RetryState {
    RetryState { progress: RetryProgress { retries, spent, previous: None }, ..RetryState::default() }
}

fn reason(config: &RetryConfig, state: &RetryState, failure: &Failure<'_>) -> Option<Reason> {
    verdict(&config.build().unwrap(), state, failure, NOW).reason()
}

#[test]
fn a_retry_says_when_and_shows_its_arithmetic() {
    let policy = RetryConfig::new().max_delay(secs(3)).retry_budget(secs(10)).build().unwrap();
    let given = verdict(&policy, &after(2, secs(3)), &Failure::transient(), NOW);
    let due = NOW.after(secs(3));
    assert_eq!(given.decision, Decision::Retry { at: due, wait: secs(3) });
    let sum = given.arithmetic;
    assert_eq!(sum.delay, Some(Delay { computed: secs(4), capped: secs(3), drawn: secs(3) }));
    assert_eq!((sum.retry, sum.retries_allowed), (3, Some(3)));
    assert_eq!((sum.spent_before, sum.spent_after), (secs(3), secs(6)));
    assert_eq!(sum.retry_budget_expires_at, Some(due.after(secs(4))));
    assert_eq!(given.to_string(), "retry 3 of 3 (attempt 4 of 4) in 3s");
}

#[test]
fn the_last_allowed_retry_is_made_and_the_next_is_not() {
    let config = fixed(3);
    let failure = Failure::transient();
    assert_eq!(reason(&config, &after(2, secs(2)), &failure), None);
    let stopped = Some(Reason::Attempts);
    assert_eq!(reason(&config, &after(3, secs(3)), &failure), stopped);
    let none = fixed(0);
    assert_eq!(reason(&none, &RetryState::default(), &failure), stopped);
}

#[test]
fn the_first_check_that_refuses_is_the_reason() {
    let mut state = after(3, secs(10));
    state.deadline = Some(NOW);
    state.pool = Some(Pool { limits: PoolLimits { total: 1, per_item: 1 }, consumed: 1 }.balance(1));
    let stop = Rule::new(Conditions::default(), RuleAction::Stop);
    let mut config = fixed(3).retry_budget(secs(10)).rules([stop]);
    let failure = Failure::transient();
    assert_eq!(reason(&config, &state, &failure), Some(Reason::Rule));
    config.rules = None;
    let permanent = Failure::permanent();
    assert_eq!(reason(&config, &state, &permanent), Some(Reason::Permanent));
    assert_eq!(reason(&config, &state, &failure), Some(Reason::Attempts));
    config = config.attempts(4);
    let asks_too_much = failure.retry_after(Some(secs(301)));
    assert_eq!(reason(&config, &state, &asks_too_much), Some(Reason::RetryAfterExceedsLimit));
    assert_eq!(reason(&config, &state, &failure), Some(Reason::RetryBudget));
    config = config.retry_budget(secs(11));
    assert_eq!(reason(&config, &state, &failure), Some(Reason::Deadline));
    state.deadline = Some(NOW.after(secs(1)));
    let exhausted = verdict(&config.build().unwrap(), &state, &failure, NOW);
    assert_eq!(exhausted.reason(), Some(Reason::JobBudgetExhausted));
    assert_eq!(exhausted.to_string(), "The job's retry pool is used up: job_budget_exhausted (1/1)");
    state.pool = state.pool.map(|pool| PoolBalance { total: 2, ..pool });
    assert_eq!(reason(&config, &state, &failure), Some(Reason::WorkflowBudgetExhausted));
    state.pool = None;
    assert_eq!(reason(&config, &state, &failure), None);
}

#[test]
fn a_retry_after_delays_the_retry_and_is_charged_to_the_budget() {
    let config = fixed(3).retry_budget(secs(20)).build().unwrap();
    let failure = Failure::status(503).retry_after(Some(secs(7)));
    let given = verdict(&config, &RetryState::default(), &failure, NOW);
    assert_eq!(given.class, FailureClass::Throttled);
    assert_eq!(given.decision, Decision::Retry { at: NOW.after(secs(7)), wait: secs(7) });
    assert_eq!(given.progress(RetryProgress::default()).spent, secs(7));
    let sooner = Failure::status(503).retry_after(Some(Duration::from_millis(5)));
    let given = verdict(&config, &RetryState::default(), &sooner, NOW);
    assert_eq!(given.arithmetic.wait(), secs(1));
}

#[test]
fn the_matching_rule_sets_the_terms_and_the_command_keeps_its_counters() {
    let busy = Conditions { exit_codes: vec![75], ..Conditions::default() };
    let own = RetryConfig::new().attempts(10).initial_delay(secs(20));
    let policy = fixed(2).rules([Rule::retry(busy, own)]).build().unwrap();
    let state = after(5, secs(5));
    let busy = verdict(&policy, &state, &Failure::new(FailureCause::Exit(75)), NOW);
    assert_eq!(busy.rule, Some(0));
    assert_eq!(busy.to_string(), "retry 6 of 10 (attempt 7 of 11) in 20s");
    let other = verdict(&policy, &state, &Failure::new(FailureCause::Exit(1)), NOW);
    assert_eq!(other.reason(), Some(Reason::Attempts));
}

#[test]
fn a_rule_decides_what_happens_to_the_item() {
    let on = |then| {
        let policy = fixed(3).rules([Rule::new(Conditions::default(), then)]).build();
        verdict(&policy.unwrap(), &RetryState::default(), &Failure::transient(), NOW).decision
    };
    for then in [RuleAction::Stop, RuleAction::Skip, RuleAction::DeadLetter] {
        let reason = Reason::Rule;
        assert_eq!(on(then), Decision::Stop { reason, then });
    }
    assert_eq!(on(RuleAction::Hold), Decision::Hold);
}

#[test]
fn a_hold_costs_an_attempt_but_no_delay_budget() {
    let hold = Rule::new(Conditions::default(), RuleAction::Hold);
    let policy = fixed(1).retry_budget(secs(0)).rules([hold]).build().unwrap();
    let given = verdict(&policy, &RetryState::default(), &Failure::transient(), NOW);
    assert_eq!(given.decision, Decision::Hold);
    let progress = given.progress(RetryProgress::default());
    assert_eq!((progress.retries, progress.spent), (1, secs(0)));
    let state = after(1, secs(0));
    let again = verdict(&policy, &state, &Failure::transient(), NOW);
    assert_eq!(again.reason(), Some(Reason::Attempts));
}

fn any_config() -> impl Strategy<Value = RetryConfig> {
    let backoff = prop_oneof![
        Just(RetryConfig::fixed()),
        (0_u64..5_000).prop_map(|ms| RetryConfig::linear(Duration::from_millis(ms))),
        (1.0..4.0_f64).prop_map(RetryConfig::exponential),
        Just(RetryConfig::fibonacci()),
        prop::collection::vec(0_u64..5_000, 0..5).prop_map(|ms| {
            let delays = ms.into_iter().map(Duration::from_millis).collect();
            RetryConfig::new().backoff(crate::Backoff::Custom { delays })
        }),
    ];
    let jitter = prop_oneof![
        Just(JitterMode::Off),
        Just(JitterMode::PlusMinus),
        Just(JitterMode::Full),
        Just(JitterMode::Equal),
        Just(JitterMode::Decorrelated),
    ];
    let millis = || (0_u64..20_000).prop_map(Duration::from_millis);
    (backoff, jitter, 0.0..=1.0_f64, 0_u32..30, millis(), millis(), prop::option::of(millis())).prop_map(
        |(config, jitter, factor, attempts, initial, cap, budget)| {
            let config = config
                .jitter(jitter)
                .jitter_factor(factor)
                .attempts(attempts)
                .initial_delay(initial)
                .max_delay(cap);
            match budget {
                Some(budget) => config.retry_budget(budget),
                None => config,
            }
        },
    )
}

proptest! {
    #[test]
    fn no_sequence_of_failures_exceeds_the_attempts_or_the_budget(
        config in any_config(),
        seed: u64,
        deadline in prop::option::of(0_u64..100_000),
        failures in prop::collection::vec((0_u64..5_000, prop::option::of(0_u64..10_000)), 0..60),
    ) {
        let policy = config.build().unwrap();
        let limits = *policy.terms().limits();
        let mut state = RetryState { draws: Seed(seed).draws(0, 0, 1), ..RetryState::default() };
        state.deadline = deadline.map(Timestamp::from_millis);
        let mut now = Timestamp::ZERO;
        let mut waited = Duration::ZERO;
        let mut stopped = false;
        for (ran, asked) in failures {
            now = now.after(Duration::from_millis(ran));
            let asked = asked.map(Duration::from_millis);
            let failure = Failure::transient().retry_after(asked);
            let given = verdict(&policy, &state, &failure, now);
            prop_assert_eq!(given, verdict(&policy, &state, &failure, now));
            match given.decision {
                Decision::Retry { at, wait } => {
                    // A limit that refused once keeps refusing, except after a shorter Retry-After.
                    prop_assert!(!stopped || asked.is_some() || deadline.is_some() || limits.retry_budget.is_some());
                    prop_assert!(wait >= asked.unwrap_or_default());
                    prop_assert_eq!(at, now.after(wait));
                    prop_assert!(state.deadline.is_none_or(|deadline| at <= deadline));
                    waited += wait;
                    now = at;
                }
                Decision::Stop { .. } => stopped = true,
                Decision::Hold => prop_assert!(false, "there is no rule that holds"),
            }
            state.progress = given.progress(state.progress);
            prop_assert_eq!(state.progress.spent, waited);
            prop_assert!(limits.retry_budget.is_none_or(|budget| waited <= budget));
            prop_assert!(Some(state.progress.retries) <= limits.attempts.retries());
        }
    }

    #[test]
    fn a_delay_before_jitter_never_passes_its_cap(config in any_config(), n in 1_u32.., seed: u64) {
        let policy = config.build().unwrap();
        let pace = policy.terms().pace();
        let retry = NonZeroU32::new(n).unwrap();
        let delay = pace.delay(retry, None, Seed(seed).draws(1, 2, 3));
        prop_assert!(delay.capped <= pace.max_delay());
        prop_assert_eq!(delay.capped, delay.computed.min(pace.max_delay()));
        if pace.jitter() == crate::Jitter::None {
            prop_assert_eq!(delay.drawn, delay.capped);
        }
    }
}
