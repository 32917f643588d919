//! Extreme values: no retry number, duration, instant or count makes the crate panic, wrap around or exceed
//! a limit.

#![expect(clippy::expect_used, reason = "a panic in a test is a red test")]

use core::num::NonZeroU32;
use std::time::Duration;

use undaunted_policy::{
    Admission, Backoff, Breaker, BreakerSettings, CircuitState, Decision, Delay, Draws, Failure, Health,
    Jitter, JitterMode, Policy, PolicyError, Pool, PoolCeilings, PoolLimits, Reason, RetryConfig,
    RetryProgress, RetryState, Schedule, Seed, Ticket, Timestamp, Transition, Verdict, verdict,
};

const NANO: Duration = Duration::from_nanos(1);
const SECOND: Duration = Duration::from_secs(1);
const CAP: Duration = Duration::from_secs(30);
/// The longest duration a policy accepts, 584 years.
const LONGEST: Duration = Duration::from_nanos(u64::MAX);
const BEFORE_THE_END: Timestamp = Timestamp::from_nanos(u64::MAX - 1);

/// Retry numbers at which a shift, a float's mantissa, a Fibonacci number or an exponent overflows.
const RETRIES: [u32; 9] = [1, 2, 54, 64, 65, 93, 94, 4_000_000_000, u32::MAX];
const INITIALS: [Duration; 4] = [Duration::ZERO, NANO, SECOND, LONGEST];
const CAPS: [Duration; 4] = [Duration::ZERO, NANO, CAP, LONGEST];

fn exponential(base: f64) -> Backoff {
    Backoff::Exponential { base }
}

fn linear(increment: Duration) -> Backoff {
    Backoff::Linear { increment }
}

fn custom(delays: &[Duration]) -> Backoff {
    Backoff::Custom { delays: delays.to_vec().into() }
}

fn strategies() -> Vec<Backoff> {
    vec![
        Backoff::Fixed,
        Backoff::Fibonacci,
        linear(Duration::ZERO),
        linear(NANO),
        linear(SECOND),
        linear(LONGEST),
        exponential(1.0),
        exponential(1.0 + f64::EPSILON),
        exponential(1.5),
        exponential(2.0),
        exponential(2.0 + 2.0 * f64::EPSILON),
        exponential(10.0),
        exponential(f64::MAX),
        custom(&[]),
        custom(&[NANO]),
        custom(&[LONGEST, Duration::ZERO]),
    ]
}

/// Strategies whose delay exceeds 30s long before retry 4 000 000 000, whatever the initial delay.
fn growing() -> Vec<Backoff> {
    vec![
        Backoff::Fibonacci,
        linear(SECOND),
        linear(LONGEST),
        exponential(1.5),
        exponential(2.0),
        exponential(10.0),
        exponential(f64::MAX),
    ]
}

fn unlimited(backoff: &Backoff, initial: Duration, cap: Duration) -> RetryConfig {
    RetryConfig::new().backoff(backoff.clone()).initial_delay(initial).max_delay(cap).unlimited_attempts()
}

fn delay(config: &RetryConfig, retry: u32, previous: Option<Duration>) -> Delay {
    let policy = config.build().expect("the table holds what is accepted");
    let retry = NonZeroU32::new(retry).expect("retries count from 1");
    policy.terms().pace().delay(retry, previous, Draws::default())
}

/// Calls `check` with every combination of strategy, initial delay, cap and retry number.
fn everywhere(check: impl Fn(&RetryConfig, Duration, u32, &str)) {
    for backoff in strategies() {
        for initial in INITIALS {
            for cap in CAPS {
                let config = unlimited(&backoff, initial, cap);
                for retry in RETRIES {
                    let place = format!("{backoff:?} from {initial:?} cap {cap:?} retry {retry}");
                    check(&config, cap, retry, &place);
                }
            }
        }
    }
}

fn worn_out(retries: u32, spent: Duration) -> RetryState {
    RetryState { progress: RetryProgress { retries, spent, previous: Some(spent) }, ..RetryState::default() }
}

fn ask(config: &RetryConfig, state: &RetryState, failure: &Failure<'_>, now: Timestamp) -> Verdict {
    let policy = config.build().expect("the table holds what is accepted");
    verdict(&policy, state, failure, now)
}

fn go(breaker: &mut Breaker, settings: &BreakerSettings, now: Timestamp) -> Ticket {
    match breaker.admit(settings, now).0 {
        Admission::Go(ticket) => ticket,
        other => unreachable!("{other:?} at {now:?}"),
    }
}

#[test]
fn no_delay_before_jitter_passes_its_cap() {
    everywhere(|config, cap, retry, place| {
        let given = delay(config, retry, None);
        assert!(given.capped <= cap, "{place}: {given:?}");
        assert_eq!(given.capped, given.computed.min(cap), "{place}");
        assert_eq!(given.drawn, given.capped, "{place}");
    });
}

#[test]
fn no_jitter_leaves_its_band() {
    for (mode, factor) in [
        (JitterMode::PlusMinus, 0.0),
        (JitterMode::PlusMinus, 1.0),
        (JitterMode::Full, 0.0),
        (JitterMode::Equal, 0.0),
    ] {
        everywhere(|config, _, retry, place| {
            let config = config.clone().jitter(mode).jitter_factor(factor);
            let Delay { capped, drawn, .. } = delay(&config, retry, None);
            let (low, high) = match mode {
                JitterMode::Full => (Duration::ZERO, capped),
                JitterMode::Equal => (capped / 2, capped),
                _ if factor == 0.0 => (capped, capped),
                _ => (Duration::ZERO, capped.saturating_mul(2)),
            };
            assert!(low <= drawn && drawn <= high, "{mode:?} {factor} {place}: {drawn:?}");
        });
    }
}

#[test]
fn decorrelated_jitter_is_capped_whatever_came_before() {
    for previous in [None, Some(Duration::ZERO), Some(LONGEST), Some(Duration::MAX)] {
        everywhere(|config, cap, retry, place| {
            let config = config.clone().jitter(JitterMode::Decorrelated);
            let given = delay(&config, retry, previous);
            assert!(given.drawn <= cap, "{place} after {previous:?}: {given:?}");
            assert_eq!(given.drawn, given.capped, "{place} after {previous:?}");
        });
    }
}

#[test]
fn retry_four_billion_of_a_growing_strategy_is_the_cap() {
    for backoff in growing() {
        for initial in [NANO, SECOND, LONGEST] {
            for cap in [Duration::ZERO, NANO, CAP] {
                for retry in [4_000_000_000, u32::MAX] {
                    let given = delay(&unlimited(&backoff, initial, cap), retry, None);
                    assert_eq!(given.drawn, cap, "{backoff:?} {initial:?} retry {retry}");
                }
            }
        }
    }
}

#[test]
fn a_delay_too_long_to_represent_is_the_longest_there_is() {
    for backoff in growing().into_iter().filter(|backoff| *backoff != linear(SECOND)) {
        let given = delay(&unlimited(&backoff, NANO, LONGEST), 4_000_000_000, None);
        assert_eq!(given.computed, LONGEST, "{backoff:?}");
    }
}

#[test]
fn an_initial_delay_of_zero_never_grows() {
    for backoff in [Backoff::Fixed, Backoff::Fibonacci, linear(Duration::ZERO)]
        .into_iter()
        .chain([1.0, 1.5, 2.0, f64::MAX].map(exponential))
    {
        for retry in RETRIES {
            let given = delay(&unlimited(&backoff, Duration::ZERO, LONGEST), retry, None);
            assert_eq!(given.drawn, Duration::ZERO, "{backoff:?} retry {retry}");
        }
    }
}

#[test]
fn the_last_exact_delay_and_the_first_that_saturates_are_neighbours() {
    let nanos = |backoff: &Backoff, retry| {
        let wait = delay(&unlimited(backoff, NANO, LONGEST), retry, None).drawn;
        u64::try_from(wait.as_nanos()).expect("capped at 64 bits")
    };
    let doubling = exponential(2.0);
    assert_eq!(nanos(&doubling, 54), 1 << 53);
    assert_eq!(nanos(&doubling, 64), 1 << 63);
    assert_eq!(nanos(&doubling, 65), u64::MAX);
    assert_eq!(nanos(&Backoff::Fibonacci, 92), 7_540_113_804_746_346_429);
    assert_eq!(nanos(&Backoff::Fibonacci, 93), 12_200_160_415_121_876_738);
    assert_eq!(nanos(&Backoff::Fibonacci, 94), u64::MAX);
    assert_eq!(nanos(&linear(NANO), u32::MAX), u64::from(u32::MAX));
}

#[test]
fn the_first_delay_is_the_initial_one_or_the_cap() {
    for backoff in strategies() {
        if matches!(backoff, Backoff::Custom { .. }) {
            continue;
        }
        for initial in INITIALS {
            for cap in CAPS {
                let given = delay(&unlimited(&backoff, initial, cap), 1, None);
                assert_eq!(given.drawn, initial.min(cap), "{backoff:?} {initial:?} {cap:?}");
            }
        }
    }
}

#[test]
fn the_first_delay_is_the_one_that_was_written_down_whatever_the_base() {
    let initial = Duration::from_micros(10_500);
    for base in [1.0, 1.5, 2.0, 3.0] {
        let given = delay(&unlimited(&exponential(base), initial, CAP), 1, None);
        assert_eq!(given.drawn, initial, "base {base}");
    }
}

#[test]
fn a_custom_list_ends_in_the_cap() {
    let list = custom(&[LONGEST, Duration::ZERO]);
    for cap in CAPS {
        let drawn = |retry| delay(&unlimited(&list, SECOND, cap), retry, None).drawn;
        assert_eq!(drawn(1), cap);
        assert_eq!(drawn(2), Duration::ZERO);
        for retry in [3, 4_000_000_000, u32::MAX] {
            assert_eq!(drawn(retry), cap, "retry {retry}");
        }
    }
}

#[test]
fn a_setting_past_the_longest_duration_is_refused_and_the_longest_is_not() {
    type Set = fn(Duration) -> RetryConfig;
    let field = |config: RetryConfig| config.build().err().as_ref().map(PolicyError::field);
    let past = LONGEST + NANO;
    let settings: [(&str, Set); 7] = [
        ("initial_delay", |d| RetryConfig::new().initial_delay(d)),
        ("max_delay", |d| RetryConfig::new().max_delay(d)),
        ("retry_budget", |d| RetryConfig::new().retry_budget(d)),
        ("deadline", |d| RetryConfig::new().deadline(d)),
        ("max_retry_after", |d| RetryConfig::new().max_retry_after(d)),
        ("increment", RetryConfig::linear),
        ("delays", |d| RetryConfig::new().backoff(custom(&[d]))),
    ];
    for (name, set) in settings {
        assert_eq!(field(set(LONGEST)), None);
        for too_long in [past, Duration::MAX] {
            assert_eq!(field(set(too_long)), Some(name));
        }
    }
}

#[test]
fn a_retry_after_without_end_exceeds_every_limit() {
    for config in [RetryConfig::new(), RetryConfig::new().max_retry_after(LONGEST)] {
        for now in [Timestamp::ZERO, Timestamp::MAX] {
            let failure = Failure::status(503).retry_after(Some(Duration::MAX));
            let given = ask(&config, &RetryState::default(), &failure, now);
            assert_eq!(given.reason(), Some(Reason::RetryAfterExceedsLimit));
            assert_eq!(given.progress(RetryProgress::default()), RetryProgress::default());
        }
    }
}

#[test]
fn the_longest_allowed_retry_after_is_honoured() {
    let config = RetryConfig::new().max_retry_after(LONGEST).retry_budget(LONGEST);
    let failure = Failure::status(503).retry_after(Some(LONGEST));
    let given = ask(&config, &RetryState::default(), &failure, Timestamp::from_millis(1));
    let forever = Decision::Retry { at: Timestamp::MAX, wait: LONGEST };
    assert_eq!(given.decision, forever);
    let state = worn_out(1, given.arithmetic.spent_after);
    let again = ask(&config, &state, &failure, Timestamp::MAX);
    assert_eq!(again.reason(), Some(Reason::RetryBudget));
}

#[test]
fn the_counters_of_a_command_saturate() {
    let state = worn_out(u32::MAX, Duration::MAX);
    for backoff in strategies() {
        let config = unlimited(&backoff, SECOND, LONGEST);
        for now in [Timestamp::ZERO, BEFORE_THE_END, Timestamp::MAX] {
            let given = ask(&config, &state, &Failure::transient(), now);
            assert_eq!(given.reason(), None, "{backoff:?}");
            let progress = given.progress(state.progress);
            assert_eq!((progress.retries, progress.spent), (u32::MAX, Duration::MAX));
            assert!(given.to_string().starts_with("retry 4294967295 (attempt 4294967296) in "));
        }
    }
}

#[test]
fn the_largest_limits_still_limit() {
    let state = worn_out(u32::MAX, Duration::MAX);
    let reason = |config: RetryConfig| ask(&config, &state, &Failure::transient(), Timestamp::MAX).reason();
    let most = RetryConfig::fixed().attempts(u32::MAX);
    assert_eq!(reason(most.clone()), Some(Reason::Attempts));
    let longest = most.unlimited_attempts().retry_budget(LONGEST);
    assert_eq!(reason(longest), Some(Reason::RetryBudget));
}

#[test]
fn the_last_retry_before_the_counter_ends_is_made() {
    let config = RetryConfig::fixed().attempts(u32::MAX);
    let state = worn_out(u32::MAX - 1, Duration::ZERO);
    let given = ask(&config, &state, &Failure::transient(), Timestamp::ZERO);
    assert_eq!(given.to_string(), "retry 4294967295 of 4294967295 (attempt 4294967296 of 4294967296) in 1s");
    let stopped = worn_out(given.progress(state.progress).retries, SECOND);
    let given = ask(&config, &stopped, &Failure::transient(), Timestamp::ZERO);
    assert_eq!(given.reason(), Some(Reason::Attempts));
}

#[test]
fn a_retry_past_the_last_timestamp_is_due_at_the_last_timestamp() {
    let config = RetryConfig::fixed().retry_budget(LONGEST);
    let asked = |deadline| {
        let state = RetryState { deadline, ..RetryState::default() };
        ask(&config, &state, &Failure::transient(), Timestamp::MAX)
    };
    let given = asked(Some(Timestamp::MAX));
    let at = Timestamp::MAX;
    assert_eq!(given.decision, Decision::Retry { at, wait: SECOND });
    assert_eq!(given.arithmetic.retry_budget_expires_at, Some(at));
    assert_eq!(asked(None).reason(), None);
    assert_eq!(asked(Some(BEFORE_THE_END)).reason(), Some(Reason::Deadline));
    assert_eq!(asked(Some(Timestamp::ZERO)).reason(), Some(Reason::Deadline));
}

#[test]
fn downtime_of_any_length_is_charged_without_overflow() {
    let limited = RetryConfig::new().retry_budget(LONGEST).build();
    let limits = *limited.expect("a long budget").terms().limits();
    let whole = (Timestamp::ZERO, Timestamp::MAX);
    assert!(!limits.budget_expired(Duration::ZERO, whole.0, whole.1));
    assert!(limits.budget_expired(NANO, whole.0, whole.1));
    assert!(limits.budget_expired(Duration::MAX, whole.0, whole.1));
    let none = *Policy::DEFAULT.terms().limits();
    assert!(!none.budget_expired(Duration::MAX, whole.0, whole.1));
}

#[test]
fn a_schedule_of_centuries_ends_with_its_budget() {
    let config = unlimited(&Backoff::Fixed, Duration::from_nanos(u64::MAX / 3), LONGEST);
    let policy = config.retry_budget(LONGEST).build().expect("a long budget");
    let mut plan = Schedule::new(&policy, Seed(u64::MAX).draws(u64::MAX, u64::MAX, u32::MAX));
    let spent: Vec<Duration> = plan.by_ref().map(|planned| planned.spent).collect();
    assert_eq!(spent.len(), 3);
    assert!(spent.iter().all(|spent| *spent <= LONGEST));
    assert_eq!(plan.stopped(), Some(Reason::RetryBudget));
}

#[test]
fn a_schedule_past_the_last_timestamp_keeps_counting() {
    let policy = unlimited(&Backoff::Fixed, LONGEST, LONGEST).build();
    let plan = Schedule::new(&policy.expect("a long delay"), Draws::default());
    let last = plan.take(1000).last().expect("it never ends");
    assert_eq!((last.retry, last.spent), (1000, LONGEST * 1000));
}

#[test]
fn the_largest_pool_is_used_up_to_the_last_unit() {
    let limits = PoolLimits { total: u32::MAX, per_item: u32::MAX };
    let mut pool = Pool { limits, consumed: u32::MAX - 1 };
    let mut item = u32::MAX - 1;
    assert_eq!(pool.charge(&mut item), Ok(()));
    assert_eq!(pool.charge(&mut item), Err(Reason::JobBudgetExhausted));
    assert_eq!((pool.consumed, item), (u32::MAX, u32::MAX));
    let mut fresh = Pool::new(limits);
    assert_eq!(fresh.charge(&mut item), Err(Reason::WorkflowBudgetExhausted));
    assert_eq!((fresh.consumed, item), (0, u32::MAX));
    assert_eq!(fresh.top_up(u32::MAX, &PoolCeilings::DEFAULT), 0);
}

#[test]
fn an_empty_pool_refuses_and_an_overdrawn_one_shows_its_numbers() {
    let empty = Pool::new(PoolLimits { total: 0, per_item: 0 });
    assert_eq!(empty.balance(0).refuses(), Some(Reason::JobBudgetExhausted));
    let beyond = Pool { consumed: u32::MAX, ..empty };
    let said = beyond.balance(u32::MAX).to_string();
    assert_eq!(said, "job_budget_exhausted (4294967295/0)");
}

#[test]
fn every_ceiling_clamps_every_request() {
    let most = PoolCeilings {
        default_total: u32::MAX,
        max_total: u32::MAX,
        default_per_item: u32::MAX,
        max_per_item: u32::MAX,
    };
    let none = PoolCeilings { max_total: 0, max_per_item: 0, ..most };
    for asked in [0, 1, u32::MAX] {
        let limits = PoolLimits::effective(asked, u32::MAX, &most);
        assert_eq!(limits.per_item, limits.total, "no share exceeds the total");
        let limits = PoolLimits::effective(asked, asked, &none);
        assert_eq!((limits.total, limits.per_item), (0, 0));
    }
}

#[test]
fn a_breaker_with_an_endless_recovery_timeout_stays_open() {
    let settings = BreakerSettings { recovery_timeout: Duration::MAX, ..BreakerSettings::DEFAULT };
    for now in [Timestamp::ZERO, BEFORE_THE_END] {
        let mut breaker = Breaker::default();
        let until = Timestamp::MAX;
        assert_eq!(breaker.trip(&settings, now), Transition::Opened { until });
        let held = Admission::Held { until: Some(until) };
        assert_eq!(breaker.admit(&settings, BEFORE_THE_END), (held, None));
        assert!(go(&mut breaker, &settings, Timestamp::MAX).probe);
    }
}

#[test]
fn a_breaker_with_a_recovery_timeout_of_zero_admits_a_probe_at_once() {
    let settings = BreakerSettings { recovery_timeout: Duration::ZERO, ..BreakerSettings::DEFAULT };
    for now in [Timestamp::ZERO, Timestamp::MAX] {
        let mut breaker = Breaker::default();
        breaker.trip(&settings, now);
        assert!(go(&mut breaker, &settings, now).probe);
    }
}

#[test]
fn a_threshold_of_zero_counts_as_one() {
    let settings = BreakerSettings {
        failure_threshold: 0,
        half_open_max_calls: 0,
        recovery_timeout: Duration::ZERO,
        ..BreakerSettings::DEFAULT
    };
    let mut breaker = Breaker::default();
    assert!(!go(&mut breaker, &settings, Timestamp::ZERO).probe, "it begins closed");
    let ticket = go(&mut breaker, &settings, Timestamp::ZERO);
    let until = Timestamp::ZERO;
    let opened = breaker.report(&settings, ticket, Health::Down, Timestamp::ZERO);
    assert_eq!(opened, Some(Transition::Opened { until }));
    let ticket = go(&mut breaker, &settings, Timestamp::ZERO);
    let closed = breaker.report(&settings, ticket, Health::Up, Timestamp::ZERO);
    assert_eq!(closed, Some(Transition::Closed));
}

#[test]
fn the_largest_threshold_is_not_reached_by_a_thousand_failures() {
    let settings = BreakerSettings { failure_threshold: u32::MAX, ..BreakerSettings::DEFAULT };
    let mut breaker = Breaker::default();
    for _ in 0..1000 {
        let ticket = go(&mut breaker, &settings, Timestamp::MAX);
        assert_eq!(breaker.report(&settings, ticket, Health::Down, Timestamp::MAX), None);
    }
    assert_eq!(breaker.circuit(), CircuitState::Closed { failures: 1000 });
}

/// What only a restored breaker reaches within a lifetime.
#[cfg(feature = "serde")]
mod restored {
    use super::*;

    fn breaker(saved: &str) -> Breaker {
        serde_json::from_str(saved).expect("a saved breaker")
    }

    #[test]
    fn the_largest_thresholds_are_reached_in_the_end() {
        let settings = BreakerSettings {
            failure_threshold: u32::MAX,
            half_open_max_calls: u32::MAX,
            ..BreakerSettings::DEFAULT
        };
        for failures in [u32::MAX - 1, u32::MAX] {
            let saved = format!(r#"{{"phase":{{"closed":{{"failures":{failures}}}}},"generation":0}}"#);
            let mut breaker = breaker(&saved);
            let ticket = go(&mut breaker, &settings, Timestamp::MAX);
            let opened = breaker.report(&settings, ticket, Health::Down, Timestamp::MAX);
            let until = Timestamp::MAX;
            assert_eq!(opened, Some(Transition::Opened { until }));
        }
        for successes in [u32::MAX - 1, u32::MAX] {
            let saved = format!(
                r#"{{"phase":{{"half_open":{{"successes":{successes},"probing":false}}}},"generation":0}}"#
            );
            let mut breaker = breaker(&saved);
            let ticket = go(&mut breaker, &settings, Timestamp::ZERO);
            let closed = breaker.report(&settings, ticket, Health::Up, Timestamp::ZERO);
            assert_eq!(closed, Some(Transition::Closed));
        }
    }

    #[test]
    fn after_the_last_generation_comes_the_first_and_older_results_stay_ignored() {
        let settings = BreakerSettings::DEFAULT;
        let last = r#"{"phase":{"closed":{"failures":4}},"generation":4294967295}"#;
        for wrap in [
            |breaker: &mut Breaker| breaker.trip(&BreakerSettings::DEFAULT, Timestamp::ZERO),
            |breaker: &mut Breaker| breaker.reset(),
        ] {
            let mut breaker = breaker(last);
            let early = go(&mut breaker, &settings, Timestamp::ZERO);
            wrap(&mut breaker);
            let wrapped = breaker;
            for health in [Health::Up, Health::Down, Health::Unknown] {
                assert_eq!(breaker.report(&settings, early, health, Timestamp::ZERO), None);
                assert_eq!(breaker, wrapped);
            }
            let late = go(&mut breaker, &settings, Timestamp::MAX);
            breaker.report(&settings, late, Health::Down, Timestamp::MAX);
            assert_ne!(breaker, wrapped, "a result of its own generation counts");
        }
    }
}

#[test]
fn the_spread_of_the_longest_delay_stays_representable() {
    let config =
        unlimited(&Backoff::Fixed, LONGEST, LONGEST).jitter(JitterMode::PlusMinus).jitter_factor(1.0);
    let policy = config.build().expect("a long delay");
    assert_eq!(policy.terms().pace().jitter(), Jitter::PlusMinus { factor: 1.0 });
    for seed in 0..1000 {
        let draws = Seed(seed).draws(0, 0, 1);
        let given = policy.terms().pace().delay(NonZeroU32::MAX, None, draws);
        assert!(given.drawn <= LONGEST);
    }
}
