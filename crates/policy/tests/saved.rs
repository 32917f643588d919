//! Saved state is restored exactly and decides as the original would.
//!
//! Every state of the crate is saved as JSON and restored; the restored value is equal and gives the same
//! verdicts, admissions and schedules. Schedules of random policies keep their limits.

#![cfg(feature = "serde")]

use core::fmt::Debug;
use core::ops::RangeInclusive;
use std::time::Duration;

use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use undaunted_policy::{
    Admission, Backoff, Breaker, BreakerSettings, ClassName, CompletionRule, CompletionTally, Conditions,
    Draws, Failure, FailureCause, FailureClass, FailureKind, Health, JitterMode, Pattern, PlannedRetry,
    Policy, Pool, PoolBalance, PoolCeilings, PoolLimits, Reason, RetryConfig, RetryOn, RetryProgress,
    RetryState, Rule, RuleAction, Schedule, Seed, Ticket, Timestamp, Tolerance, Transition, Verdict,
    WhenOpen, verdict,
};

/// Saves and restores a value, and checks that saving it again gives the same text.
fn restored<T>(value: &T) -> Result<T, TestCaseError>
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let refused = |error: serde_json::Error| TestCaseError::fail(format!("{error}: {value:?}"));
    let saved = serde_json::to_string(value).map_err(refused)?;
    let back: T = serde_json::from_str(&saved).map_err(refused)?;
    prop_assert_eq!(&back, value, "{}", &saved);
    prop_assert_eq!(serde_json::to_string(&back).map_err(refused)?, saved);
    Ok(back)
}

/// A duration that a policy accepts: up to 584 years.
fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::from_nanos(1)),
        Just(Duration::from_nanos(u64::MAX)),
        any::<u64>().prop_map(Duration::from_nanos),
        (0_u64..100_000).prop_map(Duration::from_millis),
    ]
}

/// Any duration, as a state may contain it.
fn any_duration() -> impl Strategy<Value = Duration> {
    let long = (any::<u64>(), 0_u32..1_000_000_000).prop_map(|(secs, nanos)| Duration::new(secs, nanos));
    prop_oneof![4 => duration(), 1 => long, 1 => Just(Duration::MAX)]
}

fn instant() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        Just(Timestamp::ZERO),
        Just(Timestamp::MAX),
        any::<u64>().prop_map(Timestamp::from_nanos),
        (0_u64..1_000_000).prop_map(Timestamp::from_millis),
    ]
}

fn draws() -> impl Strategy<Value = Draws> {
    let place = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u32>());
    place.prop_map(|(seed, item, command, round)| Seed(seed).draws(item, command, round))
}

// Boxed from here on: nested strategies are values of many kilobytes, and a test has a small stack.
fn backoff() -> BoxedStrategy<Backoff> {
    prop_oneof![
        Just(Backoff::Fixed),
        Just(Backoff::Fibonacci),
        duration().prop_map(|increment| Backoff::Linear { increment }),
        (1.0..10.0_f64).prop_map(|base| Backoff::Exponential { base }),
        (1.0..f64::MAX).prop_map(|base| Backoff::Exponential { base }),
        prop::collection::vec(duration(), 0..5).prop_map(|delays| Backoff::Custom { delays: delays.into() }),
    ]
    .boxed()
}

fn jitter() -> impl Strategy<Value = JitterMode> {
    prop_oneof![
        Just(JitterMode::Off),
        Just(JitterMode::PlusMinus),
        Just(JitterMode::Full),
        Just(JitterMode::Equal),
        Just(JitterMode::Decorrelated),
    ]
}

/// `None` is unlimited.
fn attempts() -> impl Strategy<Value = Option<u32>> {
    prop_oneof![
        4 => (0_u32..30).prop_map(Some),
        1 => any::<u32>().prop_map(Some),
        1 => Just(None),
    ]
}

fn optional<T>(
    config: RetryConfig,
    value: Option<T>,
    set: impl FnOnce(RetryConfig, T) -> RetryConfig,
) -> RetryConfig {
    match value {
        Some(value) => set(config, value),
        None => config,
    }
}

/// Settings of how failures are retried, each present or not, without those that select failures.
fn settings() -> BoxedStrategy<RetryConfig> {
    let durations = prop::array::uniform4(prop::option::of(duration()));
    (
        prop::option::of(backoff()),
        prop::option::of(attempts()),
        prop::option::of(jitter()),
        prop::option::of(0.0..=1.0_f64),
        durations,
    )
        .prop_map(|(backoff, attempts, jitter, factor, durations)| {
            let [initial, cap, budget, longest] = durations;
            let config = optional(RetryConfig::new(), backoff, RetryConfig::backoff);
            let config = match attempts {
                None => config,
                Some(None) => config.unlimited_attempts(),
                Some(Some(retries)) => config.attempts(retries),
            };
            let config = optional(config, jitter, RetryConfig::jitter);
            let config = optional(config, factor, RetryConfig::jitter_factor);
            let config = optional(config, initial, RetryConfig::initial_delay);
            let config = optional(config, cap, RetryConfig::max_delay);
            let config = optional(config, budget, RetryConfig::retry_budget);
            optional(config, longest, RetryConfig::max_retry_after)
        })
        .boxed()
}

fn kind() -> impl Strategy<Value = FailureKind> {
    prop::sample::select(FailureKind::ALL.to_vec())
}

/// `None` in a build without regular expressions.
fn pattern() -> impl Strategy<Value = Option<Pattern>> {
    let texts = ["busy", "^dead(lock|line)$", "\\d+ \"rows\"", "接続", ""];
    prop::sample::select(texts.map(|text| Pattern::new(text).ok()).to_vec())
}

fn statuses() -> impl Strategy<Value = Vec<RangeInclusive<u16>>> {
    let range = (100_u16..=599, 100_u16..=599).prop_map(|(a, b)| a.min(b)..=a.max(b));
    prop::collection::vec(range, 0..3)
}

fn class_name() -> impl Strategy<Value = ClassName> {
    let classes = vec![FailureClass::Transient, FailureClass::Throttled, FailureClass::Permanent];
    prop_oneof![
        prop::sample::select(classes).prop_map(ClassName::Class),
        kind().prop_map(ClassName::Kind),
        Just(ClassName::Interrupted),
    ]
}

fn conditions() -> BoxedStrategy<Conditions> {
    (
        prop::collection::vec(0_i32..=255, 0..3),
        prop::collection::vec(1_i32..=64, 0..3),
        statuses(),
        prop::collection::vec(class_name(), 0..3),
        prop::option::of(pattern()),
        prop::option::of(pattern()),
    )
        .prop_map(|(exit_codes, signals, statuses, classes, stderr, output)| Conditions {
            exit_codes,
            signals,
            statuses,
            classes,
            stderr: stderr.flatten(),
            output: output.flatten(),
        })
        .boxed()
}

fn rule() -> BoxedStrategy<Rule<RetryConfig>> {
    let thens =
        vec![RuleAction::Retry, RuleAction::Stop, RuleAction::Skip, RuleAction::DeadLetter, RuleAction::Hold];
    prop_oneof![
        (conditions(), prop::sample::select(thens)).prop_map(|(when, then)| Rule::new(when, then)),
        (conditions(), settings()).prop_map(|(when, own)| Rule::retry(when, own)),
    ]
    .boxed()
}

/// Settings of every kind but the deadline, which is no part of a `retry_config`.
fn config() -> BoxedStrategy<RetryConfig> {
    let retry_on = prop_oneof![
        kind().prop_map(|kind| Some(RetryOn::Kind(kind))),
        pattern().prop_map(|pattern| pattern.map(RetryOn::Pattern)),
    ];
    (
        settings(),
        prop::option::of(prop::collection::vec(retry_on, 0..4)),
        prop::option::of(statuses()),
        prop::option::of(prop::collection::vec(rule(), 0..4)),
    )
        .prop_map(|(config, retry_on, statuses, rules)| {
            let config =
                optional(config, retry_on, |config, entries| config.retry_on(entries.into_iter().flatten()));
            let config = optional(config, statuses, RetryConfig::retry_statuses);
            optional(config, rules, RetryConfig::rules)
        })
        .boxed()
}

fn policy() -> BoxedStrategy<Policy> {
    let config = (config(), prop::option::of(duration()))
        .prop_map(|(config, deadline)| optional(config, deadline, RetryConfig::deadline));
    config.prop_filter_map("settings that cannot be meant", |config| config.build().ok()).boxed()
}

fn cause() -> impl Strategy<Value = FailureCause> {
    prop_oneof![
        (0_i32..=255).prop_map(FailureCause::Exit),
        any::<i32>().prop_map(FailureCause::Exit),
        (1_i32..=64).prop_map(FailureCause::Signal),
        (100_u16..=599).prop_map(FailureCause::Status),
        any::<u16>().prop_map(FailureCause::Status),
        Just(FailureCause::Timeout),
        Just(FailureCause::Network),
        Just(FailureCause::Refused),
        Just(FailureCause::Unreadable),
        Just(FailureCause::Interrupted),
        Just(FailureCause::Other(FailureClass::Transient)),
        Just(FailureCause::Other(FailureClass::Throttled)),
        Just(FailureCause::Other(FailureClass::Permanent)),
    ]
}

fn failure() -> impl Strategy<Value = Failure<'static>> {
    let texts = ["", "busy", "deadlock", "12 \"rows\"", "接続 timed out", "HTTP 503"];
    let text = || prop::sample::select(texts.to_vec());
    (cause(), prop::option::of(any_duration()), text(), text())
        .prop_map(|(cause, retry_after, stderr, output)| Failure { cause, retry_after, stderr, output })
}

fn progress() -> impl Strategy<Value = RetryProgress> {
    let retries = prop_oneof![4 => 0_u32..30, 1 => any::<u32>(), 1 => Just(u32::MAX)];
    (retries, any_duration(), prop::option::of(any_duration()))
        .prop_map(|(retries, spent, previous)| RetryProgress { retries, spent, previous })
}

fn balance() -> impl Strategy<Value = PoolBalance> {
    let few = || prop_oneof![4 => 0_u32..10, 1 => any::<u32>()];
    (few(), few(), few(), few()).prop_map(|(total, consumed, per_item, item_consumed)| PoolBalance {
        total,
        consumed,
        per_item,
        item_consumed,
    })
}

fn state() -> impl Strategy<Value = RetryState> {
    (progress(), draws(), prop::option::of(instant()), prop::option::of(balance()))
        .prop_map(|(progress, draws, deadline, pool)| RetryState { progress, draws, deadline, pool })
}

fn breaker_settings() -> impl Strategy<Value = BreakerSettings> {
    let few = || prop_oneof![6 => 0_u32..4, 1 => any::<u32>()];
    let short = || prop_oneof![6 => (0_u64..60).prop_map(Duration::from_secs), 1 => any_duration()];
    let when_open = prop_oneof![Just(WhenOpen::Hold), Just(WhenOpen::Fail)];
    (few(), short(), few(), when_open, prop::option::of(short())).prop_map(
        |(failure_threshold, recovery_timeout, half_open_max_calls, when_open, max_hold)| BreakerSettings {
            failure_threshold,
            recovery_timeout,
            half_open_max_calls,
            when_open,
            max_hold,
        },
    )
}

#[derive(Clone, Copy, Debug)]
enum BreakerOperation {
    Start,
    End(prop::sample::Index, Health),
    Pass(u64),
    Trip,
    Reset,
}

fn steps() -> impl Strategy<Value = Vec<BreakerOperation>> {
    let health = prop_oneof![Just(Health::Up), Just(Health::Down), Just(Health::Unknown)];
    let end = (any::<prop::sample::Index>(), health);
    let step = prop_oneof![
        4 => Just(BreakerOperation::Start),
        4 => end.prop_map(|(which, health)| BreakerOperation::End(which, health)),
        2 => (0_u64..40).prop_map(BreakerOperation::Pass),
        1 => Just(BreakerOperation::Trip),
        1 => Just(BreakerOperation::Reset),
    ];
    prop::collection::vec(step, 0..30)
}

/// A breaker, its running starts, and the time.
#[derive(Clone, Debug, Default, PartialEq)]
struct SavedBreakerRun {
    breaker: Breaker,
    running: Vec<Ticket>,
    now: Timestamp,
}

impl SavedBreakerRun {
    /// Applies the inputs and returns the answers as text.
    fn apply(&mut self, settings: &BreakerSettings, steps: &[BreakerOperation]) -> Vec<String> {
        let answers = steps.iter().map(|step| match *step {
            BreakerOperation::Start => {
                let (admission, transition) = self.breaker.admit(settings, self.now);
                if let Admission::Go(ticket) = admission {
                    self.running.push(ticket);
                }
                format!("{admission:?} {transition:?}")
            }
            BreakerOperation::End(..) if self.running.is_empty() => String::new(),
            BreakerOperation::End(which, health) => {
                let ticket = self.running.swap_remove(which.index(self.running.len()));
                let transition = self.breaker.report(settings, ticket, health, self.now);
                format!("{transition:?}")
            }
            BreakerOperation::Pass(seconds) => {
                self.now = self.now.after(Duration::from_secs(seconds));
                String::new()
            }
            BreakerOperation::Trip => format!("{:?}", self.breaker.trip(settings, self.now)),
            BreakerOperation::Reset => format!("{:?}", self.breaker.reset()),
        });
        answers.collect()
    }

    fn restored(&self) -> Result<Self, TestCaseError> {
        Ok(Self {
            breaker: restored(&self.breaker)?,
            running: self.running.iter().map(restored).collect::<Result<_, _>>()?,
            now: restored(&self.now)?,
        })
    }
}

/// The first 100 retries of a schedule, and the reason if it ended before.
fn plan(policy: &Policy, draws: Draws) -> (Vec<PlannedRetry>, Option<Reason>) {
    let mut schedule = Schedule::new(policy, draws);
    let retries = schedule.by_ref().take(100).collect();
    (retries, schedule.stopped())
}

proptest! {
    #[test]
    fn a_restored_policy_gives_the_same_verdict_and_the_same_schedule(
        policy in policy(), state in state(), failure in failure(), now in instant(),
    ) {
        let back = restored(&policy)?;
        let given = verdict(&policy, &state, &failure, now);
        prop_assert_eq!(verdict(&back, &state, &failure, now), given);
        prop_assert_eq!(back.bound(), policy.bound());
        prop_assert_eq!(plan(&back, state.draws), plan(&policy, state.draws));
    }

    #[test]
    fn restored_settings_build_the_same_policy(config in config()) {
        prop_assert_eq!(restored(&config)?.build(), config.build());
    }

    #[test]
    fn a_restored_state_gets_the_same_verdict(
        policy in policy(), state in state(), failure in failure(), now in instant(),
    ) {
        restored(&state.progress)?;
        let back = restored(&state)?;
        let given = verdict(&policy, &state, &failure, now);
        prop_assert_eq!(verdict(&policy, &back, &failure, now), given);
    }

    #[test]
    fn a_restored_verdict_says_and_charges_the_same(
        policy in policy(), state in state(), failure in failure(), now in instant(),
    ) {
        let given: Verdict = verdict(&policy, &state, &failure, now);
        let back = restored(&given)?;
        prop_assert_eq!(back.to_string(), given.to_string());
        prop_assert_eq!(back.progress(state.progress), given.progress(state.progress));
        prop_assert_eq!(back.reason(), given.reason());
        let cause = restored(&failure.cause)?;
        prop_assert_eq!(
            Health::of_failure(cause, back.class),
            Health::of_failure(failure.cause, given.class)
        );
    }

    #[test]
    fn saving_a_command_after_every_verdict_changes_none_of_its_retries(
        policy in policy(), start in draws(), failures in prop::collection::vec(failure(), 0..20),
    ) {
        let back = restored(&policy)?;
        let mut unbroken = RetryState { draws: start, ..RetryState::default() };
        let mut broken = unbroken;
        let mut now = Timestamp::ZERO;
        for failure in failures {
            let given = verdict(&policy, &unbroken, &failure, now);
            prop_assert_eq!(verdict(&back, &broken, &failure, now), given);
            unbroken.progress = given.progress(unbroken.progress);
            broken.progress = restored(&given)?.progress(broken.progress);
            broken = restored(&broken)?;
            now = now.after(given.arithmetic.wait());
        }
    }

    #[test]
    fn a_restored_pool_grants_and_refuses_the_same(
        total in 0_u32..20, per_item in 0_u32..5, consumed in 0_u32..25,
        asks in prop::collection::vec(0_usize..4, 0..30),
    ) {
        let mut pool = Pool { limits: PoolLimits { total, per_item }, consumed };
        let mut back = restored(&pool)?;
        let (mut items, mut items_back) = ([0_u32; 4], [0_u32; 4]);
        for item in asks {
            let answer = pool.charge(&mut items[item]);
            prop_assert_eq!(back.charge(&mut items_back[item]), answer);
            back = restored(&back)?;
            items_back = restored(&items_back)?;
        }
        prop_assert_eq!((back, items_back), (pool, items));
    }

    #[test]
    fn restored_ceilings_clamp_the_same(
        numbers: [u32; 4], total: u32, per_item: u32, consumed: u32, units: u32,
    ) {
        let [default_total, max_total, default_per_item, max_per_item] = numbers;
        let ceilings = PoolCeilings { default_total, max_total, default_per_item, max_per_item };
        let back = restored(&ceilings)?;
        let limits = PoolLimits::effective(total, per_item, &ceilings);
        prop_assert_eq!(PoolLimits::effective(total, per_item, &back), limits);
        let mut pool = Pool { limits: restored(&limits)?, consumed };
        let mut pool_back = restored(&pool)?;
        prop_assert_eq!(pool_back.top_up(units, &back), pool.top_up(units, &ceilings));
        prop_assert_eq!(pool_back, pool);
    }

    #[test]
    fn a_restored_balance_refuses_the_same(balance in balance()) {
        let back = restored(&balance)?;
        prop_assert_eq!(back.refuses(), balance.refuses());
        prop_assert_eq!(back.to_string(), balance.to_string());
    }

    #[test]
    fn a_restored_breaker_answers_as_the_original_would(
        settings in breaker_settings(), before in steps(), after in steps(),
    ) {
        let mut run = SavedBreakerRun::default();
        run.apply(&settings, &before);
        let mut back = run.restored()?;
        let settings_back = restored(&settings)?;
        prop_assert_eq!(back.apply(&settings_back, &after), run.apply(&settings, &after));
        prop_assert_eq!(back, run);
    }

    #[test]
    fn a_restored_seed_draws_the_same(
        seed: u64, item: u64, command: u64, round: u32, retry: u32, low: u64, high: u64,
    ) {
        let seed = Seed(seed);
        let draws = restored(&seed)?.draws(item, command, round);
        prop_assert_eq!(draws, seed.draws(item, command, round));
        let back = restored(&draws)?;
        prop_assert_eq!(back.at(retry), draws.at(retry));
        prop_assert_eq!(back.between(retry, low, high), draws.between(retry, low, high));
    }

    #[test]
    fn a_restored_instant_is_the_same_to_the_nanosecond(nanos: u64, wait in any_duration()) {
        let instant = Timestamp::from_nanos(nanos);
        prop_assert_eq!(restored(&instant)?.after(wait), instant.after(wait));
    }

    #[test]
    fn a_restored_rule_completes_a_step_at_the_same_moment(
        best_effort: bool, min: u64, limit in any_duration(), numbers: [u64; 3], now in instant(),
    ) {
        let rule = CompletionRule { best_effort, min, deadline: limit };
        let [target, completed, failed] = numbers;
        let tally = CompletionTally { target, completed, failed };
        let deadline = Timestamp::ZERO.after(limit);
        let decided = rule.decide(tally, deadline, now);
        prop_assert_eq!(restored(&rule)?.decide(tally, deadline, now), decided);
    }

    #[test]
    fn a_restored_tolerance_stops_at_the_same_item(
        max_failures: Option<u64>, share in prop::option::of(0.0..=1.0_f64),
        settled in 0_u64..40, failed in 0_u64..40,
    ) {
        let tolerance = Tolerance { max_failures, failure_threshold: share };
        let exceeded = tolerance.exceeded(settled, failed);
        prop_assert_eq!(restored(&tolerance)?.exceeded(settled, failed), exceeded);
    }

    #[test]
    fn the_same_seed_gives_the_same_schedule(
        policy in policy(), seed: u64, item: u64, command: u64, round: u32,
    ) {
        let draws = || Seed(seed).draws(item, command, round);
        prop_assert_eq!(plan(&policy, draws()), plan(&policy.clone(), draws()));
    }

    #[test]
    fn no_schedule_spends_more_than_its_budget(policy in policy(), draws in draws()) {
        let (retries, _) = plan(&policy, draws);
        let mut spent = Duration::ZERO;
        for planned in retries {
            spent = spent.saturating_add(planned.delay.drawn);
            prop_assert_eq!(planned.spent, spent);
            let budget = policy.terms().limits().retry_budget();
            prop_assert!(budget.is_none_or(|budget| spent <= budget), "{:?}", planned);
        }
    }

    #[test]
    fn no_schedule_is_longer_than_its_attempts(policy in policy(), draws in draws()) {
        let (retries, stopped) = plan(&policy, draws);
        let numbers = retries.iter().map(|planned| planned.retry);
        prop_assert!(numbers.eq((1_u32..).take(retries.len())), "{:?}", retries);
        if let Some(most) = policy.terms().limits().attempts().retries() {
            let most = usize::try_from(most)?;
            prop_assert!(retries.len() <= most, "{} of {}", retries.len(), most);
            // A schedule that is shorter than allowed was stopped by a limit.
            prop_assert!(retries.len() == most.min(100) || stopped.is_some());
        }
    }
}

#[test]
fn a_saved_opening_ends_at_the_same_time_after_restoring() {
    let settings = BreakerSettings::DEFAULT;
    let mut breaker = Breaker::default();
    let opened = breaker.trip(&settings, Timestamp::from_millis(1000));
    let until = Timestamp::from_millis(61_000);
    assert_eq!(opened, Transition::Opened { until });
    let saved = serde_json::to_string(&breaker).unwrap();
    assert_eq!(saved, r#"{"phase":{"open":{"since":1000000000,"until":61000000000}},"generation":1}"#);
    let mut back: Breaker = serde_json::from_str(&saved).unwrap();
    let early = Timestamp::from_nanos(until.as_nanos() - 1);
    let held = Admission::Held { until: Some(until) };
    assert_eq!(back.admit(&settings, early).0, held);
    assert!(matches!(back.admit(&settings, until).0, Admission::Go(ticket) if ticket.probe));
}

#[test]
fn every_policy_that_can_be_built_can_be_saved() {
    let stop = |when| RetryConfig::new().rules([Rule::new(when, RuleAction::Stop)]);
    let exit_codes = [-1, 256].map(|code| Conditions { exit_codes: vec![code], ..Conditions::default() });
    let signals = [0, 65].map(|signal| Conditions { signals: vec![signal], ..Conditions::default() });
    let backwards = RangeInclusive::new(500, 400);
    let statuses = [0..=0, 600..=600, backwards]
        .map(|range| Conditions { statuses: vec![range], ..Conditions::default() });
    let conditions = exit_codes.into_iter().chain(signals).chain(statuses);
    let own = RetryConfig::new().deadline(Duration::from_secs(5));
    let configs = conditions.map(stop).chain([
        RetryConfig::new().retry_statuses([600..=600]),
        RetryConfig::new().rules([Rule::retry(Conditions::default(), own)]),
    ]);
    // A policy that cannot be saved must be refused.
    for policy in configs.filter_map(|config| config.build().ok()) {
        let saved = serde_json::to_string(&policy).unwrap();
        let back = serde_json::from_str::<Policy>(&saved).map_err(|error| error.to_string());
        assert_eq!(back, Ok(policy), "{saved}");
    }
}
