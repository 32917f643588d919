//! Wrapped calls, async and blocking, on a manual clock.

use core::cell::Cell;
use core::time::Duration;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::config::{JitterMode, RetryConfig};
use crate::draw::Seed;
use crate::failure::{Failure, FailureCause};
use crate::policy::Policy;
use crate::reason::Reason;
use crate::rules::{Conditions, Rule, RuleAction};
use crate::verdict::{Decision, Verdict};
use crate::{Attempts, BreakerSettings, CircuitState, WhenOpen};

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn fixed(attempts: u32) -> Policy {
    RetryConfig::fixed().attempts(attempts).build().unwrap()
}

/// An operation that fails `times` times and then returns how often it was called.
fn failing(times: u32) -> impl FnMut() -> Result<u32, &'static str> {
    let mut calls = 0;
    move || {
        calls += 1;
        if calls > times { Ok(calls) } else { Err("no") }
    }
}

/// Runs the same operation through `run` and `call`, whose results must be equal.
fn both<C, H>(
    retry: impl Fn(ManualClock) -> Retry<C, H, ManualClock>,
    failures: u32,
) -> (Result<u32, Stopped<&'static str>>, Vec<Duration>)
where
    C: Classify<&'static str>,
    H: Observe<&'static str>,
{
    let clock = ManualClock::default();
    let blocked = retry(clock.clone()).call(failing(failures));
    let waits = clock.waits();
    let clock = ManualClock::default();
    let mut operation = failing(failures);
    let awaited = now_or_never(retry(clock.clone()).run(|| core::future::ready(operation())));
    assert_eq!((&awaited, clock.waits()), (&blocked, waits.clone()));
    (blocked, waits)
}

/// A wait on a manual clock is pending once, so polling in a loop completes the future.
fn now_or_never<T>(future: impl Future<Output = T>) -> T {
    let mut context = core::task::Context::from_waker(core::task::Waker::noop());
    let mut future = core::pin::pin!(future);
    for _ in 0..10_000 {
        if let core::task::Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
    panic!("the call never completes")
}

#[test]
fn a_call_is_made_until_it_succeeds() {
    let retry = |clock| Retry::new(Policy::DEFAULT).clock(clock);
    assert_eq!(both(retry, 0), (Ok(1), vec![]));
    assert_eq!(both(retry, 2), (Ok(3), vec![secs(1), secs(2)]));
    let (stopped, waits) = both(retry, 99);
    let stopped = stopped.unwrap_err();
    assert_eq!((stopped.reason(), stopped.attempts()), (Reason::Attempts, 4));
    assert_eq!(waits, [secs(1), secs(2), secs(4)]);
    assert_eq!(stopped.error(), Some(&"no"));
    assert_eq!(stopped.to_string(), "All attempts used (3 retries, 4 attempts)");
}

#[test]
fn the_budget_and_the_deadline_stop_it_with_their_numbers() {
    let policy = RetryConfig::new().attempts(9).retry_budget(secs(5)).build().unwrap();
    let (stopped, _) = both(|clock| Retry::new(policy.clone()).clock(clock), 99);
    assert_eq!(
        stopped.unwrap_err().to_string(),
        "Retry budget exhausted (spent 3s, next delay 4s, budget 5s) after 3 attempts"
    );
    let policy = RetryConfig::fixed().attempts(9).deadline(secs(3)).build().unwrap();
    let (stopped, waits) = both(|clock| Retry::new(policy.clone()).clock(clock), 99);
    let stopped = stopped.unwrap_err();
    assert_eq!((stopped.reason(), waits.len()), (Reason::Deadline, 3));
}

#[test]
fn time_spent_in_the_call_counts_towards_the_deadline_only() {
    let config = RetryConfig::fixed().attempts(9).retry_budget(secs(4));
    let policy = config.deadline(secs(11)).build().unwrap();
    let clock = ManualClock::default();
    let slow = clock.clone();
    let stopped = Retry::new(policy).clock(clock).call(|| {
        slow.advance(secs(4));
        Err::<(), _>("slow")
    });
    let stopped = stopped.unwrap_err();
    assert_eq!((stopped.reason(), stopped.attempts()), (Reason::Deadline, 3));
}

#[test]
fn an_error_classified_as_permanent_is_not_retried() {
    let retry =
        |clock| Retry::new(Policy::DEFAULT).classify(|_: &&'static str| Failure::permanent()).clock(clock);
    let stopped = both(retry, 1).0.unwrap_err();
    assert_eq!((stopped.reason(), stopped.attempts()), (Reason::Permanent, 1));
}

#[test]
fn a_retry_after_is_honoured() {
    let retry = |clock| {
        let retry = Retry::new(Policy::DEFAULT).clock(clock);
        retry.classify(|_: &&'static str| Failure::status(503).retry_after(Some(secs(9))))
    };
    assert_eq!(both(retry, 1), (Ok(2), vec![secs(9)]));
}

#[test]
fn the_observer_gets_every_verdict_with_its_error() {
    let seen = std::sync::Mutex::new(Vec::new());
    let note = |verdict: &Verdict, error: &&'static str| {
        seen.lock().unwrap().push(format!("{error}: {verdict}"));
    };
    let retry = Retry::new(fixed(1)).on_verdict(note).clock(ManualClock::default());
    retry.call(failing(9)).unwrap_err();
    assert_eq!(
        *seen.lock().unwrap(),
        ["no: retry 1 of 1 (attempt 2 of 2) in 1s", "no: All attempts used (1 retry, 2 attempts)"]
    );
}

#[test]
fn the_seed_fixes_the_waits_and_every_call_has_its_own() {
    let policy = RetryConfig::new().jitter(JitterMode::Full).build().unwrap();
    let waits = |seed| {
        let clock = ManualClock::default();
        let retry = Retry::new(policy.clone()).seed(Seed(seed)).clock(clock.clone());
        let _ = retry.call(failing(9));
        let _ = retry.call(failing(9));
        clock.waits()
    };
    assert_eq!(waits(3), waits(3));
    assert_ne!(waits(3), waits(4));
    assert_ne!(waits(3)[..3], waits(3)[3..]);
    let clock = ManualClock::default();
    let unseeded = |clock| Retry::new(policy.clone()).clock(clock);
    let _ = unseeded(clock.clone()).call(failing(9));
    let _ = unseeded(clock.clone()).call(failing(9));
    assert_ne!(clock.waits()[..3], clock.waits()[3..], "jitter differs without a seed");
}

#[test]
fn threads_together_never_exceed_the_pool() {
    let pool = SharedPool::new(100, 7);
    let calls = AtomicU32::new(0);
    let retry = Retry::new(RetryConfig::fixed().attempts(50).build().unwrap())
        .pool(&pool)
        .clock(ManualClock::default());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let stopped = retry
                        .call(|| {
                            calls.fetch_add(1, Ordering::Relaxed);
                            Err::<(), _>("down")
                        })
                        .unwrap_err();
                    assert!(stopped.attempts() <= 8, "{stopped}");
                }
            });
        }
    });
    assert_eq!(calls.load(Ordering::Relaxed), 80 + 100);
    assert_eq!(pool.balance(0).consumed, 100);
    pool.top_up(1);
    assert_eq!(retry.call(failing(9)).unwrap_err().attempts(), 2);
}

#[test]
fn a_pool_counts_exactly_with_many_threads() {
    for _ in 0..50 {
        let pool = SharedPool::new(1000, u32::MAX);
        let taken = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while pool.charge(0).is_ok() {
                        taken.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(taken.load(Ordering::Relaxed), 1000);
        assert_eq!(SharedPool::restored(pool.saved()).balance(0), pool.balance(0));
    }
}

#[test]
fn a_call_held_past_its_deadline_is_not_made() {
    let settings = BreakerSettings { failure_threshold: 1, ..BreakerSettings::DEFAULT };
    let policy = RetryConfig::fixed().attempts(5).deadline(secs(30)).build().unwrap();
    let retry = |clock: ManualClock| {
        let breaker = SharedBreaker::new(settings);
        let down = Retry::new(fixed(0)).breaker(&breaker).clock(clock.clone());
        down.call(failing(1)).unwrap_err();
        Retry::new(policy.clone()).breaker(&breaker).clock(clock)
    };
    let (stopped, waits) = both(retry, 0);
    let stopped = stopped.unwrap_err();
    assert_eq!((stopped.reason(), stopped.attempts()), (Reason::Deadline, 0));
    assert_eq!(waits, [], "the breaker opens after the deadline: there is nothing to wait for");
}

#[test]
fn one_hold_does_not_count_towards_the_next() {
    let settings = BreakerSettings {
        failure_threshold: 1,
        half_open_max_calls: 1,
        max_hold: Some(secs(90)),
        ..BreakerSettings::DEFAULT
    };
    let retry = |clock| {
        let breaker = SharedBreaker::new(settings);
        Retry::new(fixed(5)).breaker(&breaker).clock(clock).seed(Seed(1))
    };
    assert_eq!(both(retry, 3).0, Ok(4));
}

#[test]
fn calls_that_were_held_together_do_not_start_together() {
    let settings = BreakerSettings { failure_threshold: 1, ..BreakerSettings::DEFAULT };
    let breaker = SharedBreaker::new(settings);
    let clock = ManualClock::default();
    let retry = Retry::new(fixed(0)).breaker(&breaker).clock(clock.clone()).seed(Seed(1));
    retry.call(failing(1)).unwrap_err();
    let mut first_waits = std::collections::BTreeSet::new();
    for _ in 0..20 {
        let clock = ManualClock::default();
        let held = retry.clone().clock(clock.clone());
        let _ = held.call(failing(1));
        first_waits.extend(clock.waits().first().copied());
        breaker.reset();
        retry.call(failing(1)).unwrap_err();
    }
    assert!(first_waits.len() > 10, "{first_waits:?}");
}

#[test]
fn a_hold_without_a_breaker_costs_the_pool_nothing() {
    let hold = Rule::new(Conditions::default(), RuleAction::Hold);
    let policy = RetryConfig::fixed().rules([hold]).build().unwrap();
    let pool = SharedPool::new(5, 5);
    let retry = Retry::new(policy).pool(&pool).clock(ManualClock::default());
    assert_eq!(retry.call(failing(1)).unwrap_err().reason(), Reason::Rule);
    assert_eq!(pool.balance(0).consumed, 0);
}

#[test]
fn a_breaker_saved_during_a_probe_lets_the_next_one_through() {
    let settings = BreakerSettings { failure_threshold: 1, ..BreakerSettings::DEFAULT };
    let breaker = SharedBreaker::new(settings);
    let clock = ManualClock::default();
    let retry = Retry::new(fixed(0)).breaker(&breaker).clock(clock.clone());
    retry.call(failing(1)).unwrap_err();
    clock.advance(secs(60));
    let saved = core::cell::Cell::new(None);
    let probe = retry.call(|| {
        saved.set(Some(breaker.saved()));
        Ok::<_, &str>(())
    });
    probe.unwrap();
    let restored = SharedBreaker::restored(settings, saved.get().unwrap());
    let again = Retry::new(fixed(0)).breaker(&restored).clock(clock);
    assert_eq!(again.call(failing(0)), Ok(1));
}

#[tokio::test]
async fn the_two_clocks_of_the_machine_agree() {
    let blocking = BlockingClock::now(&SystemClock);
    let task = AsyncClock::now(&SystemClock);
    let apart = task.since(blocking).max(blocking.since(task));
    assert!(apart < secs(5), "{apart:?}");
}

#[test]
fn an_open_breaker_holds_calls_until_its_target_is_back() {
    let settings =
        BreakerSettings { failure_threshold: 2, half_open_max_calls: 1, ..BreakerSettings::DEFAULT };
    let breakers = std::cell::RefCell::new(Vec::new());
    let retry = |clock| {
        let breaker = SharedBreaker::new(settings);
        breakers.borrow_mut().push(breaker.clone());
        Retry::new(fixed(5)).breaker(&breaker).clock(clock).seed(Seed(1))
    };
    let (done, waits) = both(retry, 3);
    assert_eq!(done, Ok(4));
    // Two failures a second apart, then a minute held, a failed probe, and another minute.
    assert_eq!(waits.iter().filter(|wait| **wait > secs(50)).count(), 2);
    assert!(breakers.borrow().iter().all(|breaker| breaker.circuit() == CircuitState::default()));
}

#[test]
fn a_hold_ends_after_max_hold() {
    let settings =
        BreakerSettings { failure_threshold: 1, max_hold: Some(secs(10)), ..BreakerSettings::DEFAULT };
    let retry = |clock| {
        let breaker = SharedBreaker::new(settings);
        Retry::new(fixed(5)).breaker(&breaker).clock(clock)
    };
    let (stopped, waits) = both(retry, 99);
    assert_eq!(stopped.unwrap_err().reason(), Reason::CircuitOpen);
    assert_eq!(waits, [secs(1), secs(10)]);
}

#[test]
fn a_rule_that_holds_opens_the_breaker_and_without_one_stops() {
    let down = Conditions { exit_codes: vec![75], ..Conditions::default() };
    let config = RetryConfig::fixed().rules([Rule::new(down, RuleAction::Hold)]);
    let policy = config.build().unwrap();
    let breaker = SharedBreaker::new(BreakerSettings::DEFAULT);
    let clock = ManualClock::default();
    let retry = Retry::new(policy.clone())
        .classify(|_: &&'static str| Failure::new(FailureCause::Exit(75)))
        .clock(clock.clone());
    assert_eq!(retry.clone().breaker(&breaker).call(failing(1)), Ok(2));
    let held: Duration = clock.waits().iter().sum();
    assert!(held >= secs(60) && held < secs(62), "{held:?}");
    assert_eq!(retry.call(failing(1)).unwrap_err().reason(), Reason::Rule);
}

#[test]
fn a_probe_whose_future_is_dropped_lets_the_next_one_through() {
    let settings =
        BreakerSettings { failure_threshold: 1, when_open: WhenOpen::Fail, ..BreakerSettings::DEFAULT };
    let breaker = SharedBreaker::new(settings);
    let clock = ManualClock::default();
    let retry = Retry::new(fixed(0)).breaker(&breaker).clock(clock.clone());
    retry.call(failing(1)).unwrap_err();
    clock.advance(secs(60));
    {
        let never = core::pin::pin!(retry.run(core::future::pending::<Result<(), &str>>));
        let mut context = core::task::Context::from_waker(core::task::Waker::noop());
        assert!(never.poll(&mut context).is_pending());
        assert_eq!(retry.call(failing(0)).unwrap_err().reason(), Reason::CircuitOpen);
    }
    assert_eq!(retry.call(failing(0)), Ok(1));
}

#[test]
fn a_cancelled_call_makes_no_further_attempt() {
    let cancel = CancelToken::default();
    let retry = Retry::new(fixed(5)).cancel(&cancel).clock(ManualClock::default());
    let calls = Cell::new(0);
    let stopped = retry.call(|| {
        calls.set(calls.get() + 1);
        if calls.get() == 2 {
            cancel.cancel();
        }
        Err::<(), _>("no")
    });
    let stopped = stopped.unwrap_err();
    assert_eq!((stopped.reason(), stopped.attempts()), (Reason::Cancelled, 2));
    assert_eq!(stopped.error(), Some(&"no"));
    let before_any = retry.call(failing(0)).unwrap_err();
    assert_eq!((before_any.attempts(), before_any.error()), (0, None));
}

/// A policy under which only a cancellation ends the first wait within the life of a test run.
fn endless() -> Policy {
    let config = RetryConfig::fixed().initial_delay(secs(1_000_000));
    config.max_delay(secs(1_000_000)).build().unwrap()
}

#[test]
fn a_cancellation_ends_a_real_wait_of_a_thread() {
    let cancel = CancelToken::default();
    let (failed, has_failed) = std::sync::mpsc::channel();
    let announce = move |verdict: &Verdict, _: &&str| {
        assert!(matches!(verdict.decision, Decision::Retry { .. }));
        failed.send(()).unwrap();
    };
    let retry = Retry::new(endless()).cancel(&cancel).on_verdict(announce);
    let waiting = std::thread::spawn(move || retry.call(|| Err::<(), _>("no")));
    has_failed.recv().unwrap();
    cancel.cancel();
    assert_eq!(waiting.join().unwrap().unwrap_err().reason(), Reason::Cancelled);
}

#[tokio::test]
async fn a_cancellation_ends_a_real_wait_of_a_task() {
    let cancel = CancelToken::default();
    let (failed, has_failed) = tokio::sync::mpsc::unbounded_channel();
    let mut has_failed = has_failed;
    let announce = move |_: &Verdict, _: &&str| failed.send(()).unwrap();
    let retry = Retry::new(endless()).cancel(&cancel).on_verdict(announce);
    let waiting = tokio::spawn(async move { retry.run(|| async { Err::<(), _>("no") }).await });
    has_failed.recv().await.unwrap();
    cancel.cancel();
    assert_eq!(waiting.await.unwrap().unwrap_err().reason(), Reason::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn the_machines_clock_follows_tokios_timer() {
    let policy = RetryConfig::fixed().attempts(99).deadline(secs(10)).build().unwrap();
    let started = tokio::time::Instant::now();
    let mut operation = failing(99);
    let stopped = Retry::new(policy).run(|| core::future::ready(operation())).await;
    assert_eq!(stopped.unwrap_err().reason(), Reason::Deadline);
    assert_eq!(started.elapsed().as_secs(), 10);
}

#[test]
fn a_wrapped_call_can_cross_threads() {
    fn is_send<T: Send>(_: T) {}
    let retry = Retry::new(Policy::DEFAULT).pool(&SharedPool::new(1, 1)).cancel(&CancelToken::default());
    is_send(retry.run(|| async { Ok::<_, std::io::Error>(1) }));
    assert_eq!(Policy::DEFAULT.bound(), Attempts::AtMost(3));
}
