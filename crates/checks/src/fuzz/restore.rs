//! Bytes that may be a saved state of any type that is saved.
//!
//! Most bytes are refused. An accepted state survives a round trip and answers questions at the ends of every
//! range.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use undaunted_policy::spelling::{BackoffType, WorkConfig, WorkDefaults};
use undaunted_policy::{
    Arithmetic, Breaker, BreakerSettings, CircuitState, CompletionRule, CompletionTally, Decision, Delay,
    Draws, Failure, FailureCause, FailureClass, Health, Pattern, Policy, Pool, PoolBalance, PoolCeilings,
    PoolLimits, Reason, RetryConfig, RetryProgress, RetryState, Rule, RuleAction, Seed, Ticket, Timestamp,
    Tolerance, Verdict, WhenOpen,
};

use super::breaker::{BreakerRun, BreakerStep};
use super::decide;
use super::expected::ExpectedPolicy;
use super::law::uphold;

/// Whether the bytes hold a value of one type.
type SavedReader = fn(&[u8]) -> bool;

/// Every type that is saved, by name.
pub const SAVED: [(&str, SavedReader); 33] = [
    ("Arithmetic", one::<Arithmetic>),
    ("BackoffType", one::<BackoffType>),
    ("PoolBalance", |data| restored(data, balance)),
    ("Breaker", |data| restored(data, breaker)),
    ("(Breaker, BreakerSettings)", |data| restored(data, breaker_with)),
    ("(Breaker, Ticket)", |data| restored(data, late_result)),
    ("BreakerSettings", |data| restored(data, breaker_settings)),
    ("Cause", |data| restored(data, cause)),
    ("PoolCeilings", |data| restored(data, ceilings)),
    ("Class", one::<FailureClass>),
    ("CompletionRule", |data| restored(data, completion)),
    ("Decision", one::<Decision>),
    ("Delay", one::<Delay>),
    ("Draws", |data| restored(data, draws)),
    ("Pattern", one::<Pattern>),
    ("Phase", one::<CircuitState>),
    ("Policy", |data| restored(data, |it| policy(&it))),
    ("(Policy, RetryState)", |data| restored(data, policy_with)),
    ("Pool", |data| restored(data, pool)),
    ("PoolLimits", one::<PoolLimits>),
    ("Progress", |data| restored(data, progress)),
    ("Reason", one::<Reason>),
    ("RetryConfig", |data| restored(data, |it| retry_config(&it))),
    ("Rule<RetryConfig>", |data| restored(data, rule)),
    ("Seed", one::<Seed>),
    ("RetryState", |data| restored(data, state)),
    ("Then", one::<RuleAction>),
    ("Ticket", one::<Ticket>),
    ("Timestamp", |data| restored(data, timestamp)),
    ("Tolerance", |data| restored(data, tolerance)),
    ("Verdict", |data| restored(data, verdict)),
    ("WhenOpen", one::<WhenOpen>),
    ("WorkConfig", |data| restored(data, work_config)),
];

const INSTANTS: [Timestamp; 4] =
    [Timestamp::ZERO, Timestamp::from_millis(60_000), Timestamp::from_nanos(u64::MAX - 1), Timestamp::MAX];

pub fn policy_restore(data: &[u8]) -> BTreeSet<&'static str> {
    let read = SAVED.iter().filter(|(_, read)| read(data));
    read.map(|(name, _)| *name).collect()
}

/// The value in the bytes, if there is one, after a round trip through its saved form.
pub(super) fn round_trip<T>(data: &[u8]) -> Option<T>
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let first: T = serde_json::from_slice(data).ok()?;
    let saved = serde_json::to_vec(&first);
    let saved = saved.as_deref().unwrap_or_default();
    let second = serde_json::from_slice::<T>(saved);
    let same = second.as_ref().is_ok_and(|second| *second == first);
    let text = String::from_utf8_lossy(saved);
    uphold("a saved value is read back the same", same, &(&first, &second, text));
    let resaved = second.as_ref().map(serde_json::to_vec);
    let same = matches!(&resaved, Ok(Ok(resaved)) if resaved == saved);
    uphold("a value that was read back is saved the same", same, &first);
    Some(first)
}

fn one<T>(data: &[u8]) -> bool
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    round_trip::<T>(data).is_some()
}

fn restored<T>(data: &[u8], ask: impl FnOnce(T)) -> bool
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    round_trip(data).map(ask).is_some()
}

fn states() -> [RetryState; 4] {
    let at = |retries, spent, previous| RetryState {
        progress: RetryProgress { retries, spent, previous },
        ..RetryState::default()
    };
    [
        RetryState::default(),
        at(62, Duration::from_millis(1), Some(Duration::ZERO)),
        at(3_999_999_999, Duration::MAX, Some(Duration::MAX)),
        RetryState {
            deadline: Some(Timestamp::from_millis(1)),
            pool: Some(Pool::new(PoolLimits::effective(0, 0, &PoolCeilings::DEFAULT)).balance(2)),
            ..at(u32::MAX, Duration::from_nanos(u64::MAX), None)
        },
    ]
}

fn failures() -> [Failure<'static>; 9] {
    let asked = |status, wait| Failure::status(status).retry_after(Some(wait));
    [
        Failure::transient(),
        Failure::new(FailureCause::Exit(1)).text("HTTP 503: connection timed out"),
        Failure::new(FailureCause::Exit(75)),
        Failure::new(FailureCause::Exit(127)),
        Failure::new(FailureCause::Signal(9)),
        Failure::new(FailureCause::Interrupted),
        asked(503, Duration::from_secs(7)),
        asked(429, Duration::MAX),
        Failure::new(FailureCause::Network),
    ]
}

fn ask_at_range_ends(policy: &Policy, states: &[RetryState]) {
    let expected = ExpectedPolicy::of(policy);
    uphold("a saved policy says everything", expected.is_some(), policy);
    let Some(expected) = expected else { return };
    for state in states {
        decide::plan(policy, &expected, *state);
        for failure in &failures() {
            for now in INSTANTS {
                decide::ask(policy, &expected, *state, failure, now);
            }
        }
    }
}

fn policy(policy: &Policy) {
    ask_at_range_ends(policy, &states());
}

fn policy_with((policy, state): (Policy, RetryState)) {
    ask_at_range_ends(&policy, &[state]);
}

fn state(state: RetryState) {
    for policy in [Policy::DEFAULT, Policy::ONCE] {
        ask_at_range_ends(&policy, &[state]);
    }
}

fn retry_config(config: &RetryConfig) {
    if let Ok(built) = config.build() {
        policy(&built);
    }
}

fn rule(rule: Rule<RetryConfig>) {
    retry_config(&RetryConfig::new().rules([rule]));
}

fn work_config(work: WorkConfig) {
    if let Ok(config) = work.retry_config(&WorkDefaults::DEFAULT) {
        retry_config(&config);
    }
}

fn verdict(verdict: Verdict) {
    for state in states() {
        let after = verdict.progress(state.progress);
        let kept = after.retries >= state.progress.retries && after.spent >= state.progress.spent;
        uphold("no verdict gives anything back", kept, &verdict);
    }
    let said = verdict.to_string();
    uphold("every verdict says something", !said.is_empty(), &verdict);
}

fn progress(progress: RetryProgress) {
    let state = RetryState { progress, ..RetryState::default() };
    ask_at_range_ends(&Policy::DEFAULT, &[state]);
}

fn draws(draws: Draws) {
    for (low, high) in [(0, 0), (0, u64::MAX), (7, 9), (u64::MAX, u64::MAX)] {
        for retry in [0, 1, u32::MAX] {
            let given = draws.between(retry, low, high);
            let within = (low..=high).contains(&given);
            uphold("a draw lies in its range", within, &(draws, low, high, given));
        }
    }
}

fn timestamp(instant: Timestamp) {
    for wait in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
        let later = instant.after(wait);
        let forward = later >= instant && later.since(instant) <= wait;
        uphold("waiting leads forward, and no further than asked", forward, &later);
    }
}

fn pool(mut pool: Pool) {
    for mut item in [0, 1, u32::MAX] {
        let before = pool;
        let granted = pool.charge(&mut item).is_ok();
        let within = pool.consumed <= pool.limits.total && item <= pool.limits.per_item;
        uphold("no charge passes a limit", !granted || within, &before);
        uphold("a refusal charges nothing", granted || pool == before, &before);
        let added = pool.top_up(u32::MAX, &PoolCeilings::DEFAULT);
        let total = before.limits.total.saturating_add(added);
        uphold("a top-up adds what it says", pool.limits.total == total, &before);
    }
}

fn balance(balance: PoolBalance) {
    let left = balance.consumed < balance.total && balance.item_consumed < balance.per_item;
    let allowed = balance.refuses().is_none();
    uphold("a pool refuses when it is used up", left == allowed, &balance);
    uphold("a balance says something", !balance.to_string().is_empty(), &balance);
}

fn ceilings(ceilings: PoolCeilings) {
    for asked in [0, 1, u32::MAX] {
        let limits = PoolLimits::effective(asked, asked, &ceilings);
        let within =
            limits.total <= ceilings.max_total && limits.per_item <= ceilings.max_per_item.min(limits.total);
        uphold("no request passes the ceilings", within, &limits);
    }
}

fn breaker(breaker: Breaker) {
    breaker_with((breaker, BreakerSettings::DEFAULT));
}

fn breaker_settings(settings: BreakerSettings) {
    breaker_with((Breaker::default(), settings));
}

fn breaker_with((breaker, settings): (Breaker, BreakerSettings)) {
    let ends = [Health::Up, Health::Down, Health::Unknown].map(|health| BreakerStep::End(0, health));
    for now in INSTANTS {
        let mut run = BreakerRun::new(breaker, settings, now);
        for end in ends {
            run.take(BreakerStep::Start);
            run.take(BreakerStep::Start);
            run.take(end);
            run.take(BreakerStep::Pass(settings.recovery_timeout));
        }
        run.take(BreakerStep::Trip);
        run.take(BreakerStep::Start);
        run.take(BreakerStep::Reset);
        run.take(BreakerStep::Start);
    }
}

/// A ticket may come from any breaker; the only law is that there is an answer.
fn late_result((breaker, ticket): (Breaker, Ticket)) {
    for health in [Health::Up, Health::Down, Health::Unknown] {
        let mut told = breaker;
        let transition = told.report(&BreakerSettings::DEFAULT, ticket, health, Timestamp::MAX);
        let noted = transition.is_none() || told != breaker;
        uphold("a transition is a change", noted, &(breaker, ticket));
    }
}

fn cause(cause: FailureCause) {
    let class = cause.class();
    let health = Health::of_failure(cause, class);
    let known = cause != FailureCause::Interrupted || health == Health::Unknown;
    uphold("an interrupted attempt says nothing about its target", known, &cause);
}

fn completion(rule: CompletionRule) {
    for numbers in [[0, 0, 0], [1, 0, 1], [3, 2, 1], [u64::MAX, u64::MAX, u64::MAX], [9, 1, 0]] {
        let [target, completed, failed] = numbers;
        let tally = CompletionTally { target, completed, failed };
        for now in INSTANTS {
            let decided = rule.decide(tally, Timestamp::ZERO.after(rule.deadline), now);
            let all = completed.saturating_add(failed) >= target;
            uphold("when all have reported a step is complete", !all || decided.is_some(), &tally);
        }
    }
}

fn tolerance(tolerance: Tolerance) {
    for (settled, failed) in [(0, 0), (10, 10), (u64::MAX, u64::MAX), (u64::MAX, 0)] {
        let exceeded = tolerance.exceeded(settled, failed);
        let limits = tolerance.max_failures.is_some() || tolerance.failure_threshold.is_some();
        uphold("without a limit nothing is exceeded", limits || !exceeded, &tolerance);
    }
}
