//! Retries: how many, when, and with which arithmetic.

use std::time::Duration;

use undaunted_engine::event::{Event, ItemEvent, RetryArithmetic};
use undaunted_engine::id::CommandId;
use undaunted_policy::{FailureCause, Reason, Schedule, Seed};

use crate::fixture::{EXIT_1, SECOND, TestedJob, at, item_at, scheduled, secs, start_input};

/// All delays until the only command stops.
fn delays(test: &mut TestedJob) -> Vec<Duration> {
    let mut delays = Vec::new();
    loop {
        test.start();
        let records = test.fail(0, EXIT_1).records();
        let Some(retrying) = scheduled(&records) else {
            return delays;
        };
        delays.push(retrying.delay);
        test.now = retrying.due;
    }
}

#[test]
fn a_retry_is_scheduled_with_its_delay_its_due_time_and_its_arithmetic() {
    let mut test = TestedJob::started("- {shell: a, retry_config: {attempts: 3, retry_budget: 1m}}\n");
    let first = test.at(10).fail(0, EXIT_1).scheduled().unwrap();
    assert_eq!((first.delay, first.due), (SECOND, at(11)));
    let expected = RetryArithmetic {
        retry: 1,
        allowed: Some(3),
        computed: Some(SECOND),
        capped: Some(SECOND),
        drawn: Some(SECOND),
        spent_before: Duration::ZERO,
        spent_after: SECOND,
        budget: Some(secs(60)),
        expires: Some(at(11 + 59)),
        retry_after: None,
        deadline: None,
        pool: None,
        share: None,
    };
    assert_eq!(first.arithmetic, expected);
    test.at(11).start().at(20);
    let second = test.fail(0, EXIT_1).scheduled().unwrap();
    assert_eq!((second.delay, second.due), (secs(2), at(22)));
    let expected = RetryArithmetic {
        retry: 2,
        computed: Some(secs(2)),
        capped: Some(secs(2)),
        drawn: Some(secs(2)),
        spent_before: SECOND,
        spent_after: secs(3),
        expires: Some(at(22 + 57)),
        ..expected
    };
    assert_eq!(second.arithmetic, expected);
}

#[test]
fn a_long_delay_is_recorded_as_computed_and_as_capped() {
    let text = "- {shell: a, retry_config: {attempts: 9, initial_delay: 20s, max_delay: 30s}}\n";
    let mut test = TestedJob::started(text);
    let first = test.fail(0, EXIT_1).scheduled().unwrap();
    test.now = first.due;
    test.start();
    let sum = test.fail(0, EXIT_1).scheduled().unwrap().arithmetic;
    assert_eq!(sum.computed, Some(secs(40)));
    assert_eq!((sum.capped, sum.drawn), (Some(secs(30)), Some(secs(30))));
    assert_eq!(sum.spent_after, secs(50));
}

#[test]
fn retries_stop_at_the_first_limit_that_they_reach() {
    for (config, expected, reason, error) in [
        (
            "attempts: 3, backoff: fixed, initial_delay: 5s",
            &[5, 5, 5][..],
            Reason::Attempts,
            "All attempts used (3 retries, 4 attempts)",
        ),
        (
            "attempts: 2, retry_budget: 1h",
            &[1, 2],
            Reason::Attempts,
            "All attempts used (2 retries, 3 attempts)",
        ),
        (
            "attempts: 100, retry_budget: 2m",
            &[1, 2, 4, 8, 16, 30, 30],
            Reason::RetryBudget,
            "Retry budget exhausted (spent 91s, next delay 30s, budget 120s)",
        ),
        (
            "attempts: 9, retry_budget: 5s",
            &[1, 2],
            Reason::RetryBudget,
            "Retry budget exhausted (spent 3s, next delay 4s, budget 5s)",
        ),
        // A delay may use up the budget exactly.
        (
            "attempts: 9, retry_budget: 7s",
            &[1, 2, 4],
            Reason::RetryBudget,
            "Retry budget exhausted (spent 7s, next delay 8s, budget 7s)",
        ),
    ] {
        let mut test = TestedJob::of(&format!("- {{shell: a, retry_config: {{{config}}}}}\n"));
        let expected: Vec<Duration> = expected.iter().copied().map(secs).collect();
        assert_eq!(delays(&mut test), expected, "{config}");
        let retries = u64::try_from(expected.len()).unwrap();
        assert_eq!(test.totals(), (retries + 1, retries, expected.iter().sum()), "{config}");
        assert_eq!(test.outcome(), ("failed", Some(reason), [0, 1, 0]), "{config}");
        assert_eq!(test.report().error, Some(format!("{error}; last error: exit status 1")));
    }
}

#[test]
fn a_successful_retry_completes_the_job() {
    let mut test = TestedJob::started("- {shell: a, retry_config: {attempts: 3}}\n");
    assert_eq!(test.fail(0, EXIT_1).at(1).start().succeed(0).outcome(), ("completed", None, [1, 0, 0]));
    assert_eq!(test.totals(), (2, 1, SECOND));
    assert_eq!(test.report().error, None);
}

#[test]
fn a_retry_is_ready_at_its_instant_and_not_a_nanosecond_before() {
    let mut test = TestedJob::started("- {shell: a, retry_config: {attempts: 3}}\n");
    test.fail(0, EXIT_1);
    assert_eq!(test.next_wake(), Some(at(1)));
    test.pass(Duration::from_nanos(999_999_999));
    assert_eq!(test.ready(), []);
    let early = start_input(item_at(0));
    assert_eq!(test.feed(&early).lines(), [""; 0]);
    test.pass(Duration::from_nanos(1));
    assert_eq!(test.ready(), [item_at(0)]);
    assert_eq!(test.next_wake(), None, "what is ready is not waited for");
}

#[test]
fn jitter_is_drawn_as_a_schedule_with_the_same_seed_shows_it() {
    for seed in [0, 7, u64::MAX] {
        for jitter in ["jitter: true", "jitter: full", "jitter: decorrelated"] {
            let text = format!("- {{shell: a, retry_config: {{attempts: 6, {jitter}}}}}\n");
            let mut test = TestedJob::seeded(&text, seed);
            let policy = test.job.plan().command(CommandId(0)).unwrap().retry.policy.clone();
            let schedule = Schedule::new(&policy, Seed(seed).draws(0, 0, 1));
            let planned: Vec<_> = schedule.map(|planned| planned.delay.drawn).collect();
            assert_eq!(planned.len(), 6);
            assert_eq!(delays(&mut test), planned, "{seed} {jitter}");
        }
    }
}

#[test]
fn items_that_fail_together_are_retried_at_different_times() {
    let text = "
mode: mapreduce
map:
  input: a.json
  error_policy: {retry_config: {attempts: 1, jitter: full, initial_delay: 30s}}
  agent_template: [{shell: a}]
";
    let mut test = TestedJob::started_over(text, 5);
    let mut dues = Vec::new();
    for item in 0..5 {
        dues.push(test.fail(item, EXIT_1).scheduled().unwrap().due);
    }
    dues.sort_unstable();
    dues.dedup();
    assert_eq!(dues.len(), 5);
}

#[test]
fn a_refused_retry_records_its_arithmetic() {
    let mut test = TestedJob::of("- {shell: a, retry_config: {attempts: 9, retry_budget: 2s}}\n");
    let records = test.fail_until_stopped().records();
    let stopped = records.iter().find_map(|record| match &record.event {
        Event::Item(ItemEvent::CommandStopped(stopped)) => Some(stopped.clone()),
        _ => None,
    });
    let sum = stopped.unwrap().arithmetic.unwrap();
    assert_eq!((sum.retry, sum.allowed), (2, Some(9)));
    assert_eq!((sum.spent_before, sum.spent_after), (SECOND, secs(3)));
    assert_eq!((sum.budget, sum.expires), (Some(secs(2)), None));
}

#[test]
fn running_time_and_time_in_a_queue_are_never_charged() {
    let mut test = TestedJob::started("- {shell: a, retry_config: {attempts: 9, retry_budget: 3s}}\n");
    test.at(1000).fail(0, EXIT_1);
    // Due at 1001; started long after, without a crash.
    test.at(5000).start();
    let second = test.fail(0, EXIT_1).scheduled().unwrap();
    assert_eq!(second.arithmetic.spent_after, secs(3));
}

#[test]
fn transient_failures_are_retried_and_permanent_ones_are_not() {
    let text = "- {shell: a, retry_config: {attempts: 3}}\n";
    for cause in
        [FailureCause::Exit(2), FailureCause::Signal(9), FailureCause::Timeout, FailureCause::Interrupted]
    {
        let lines = TestedJob::started(text).fail(0, cause).lines();
        assert_eq!(lines[1], "retry_scheduled 0/0 0.1 in 1s at +1s", "{cause:?}");
    }
    for cause in [FailureCause::Exit(126), FailureCause::Exit(127), FailureCause::Unreadable] {
        let outcome = TestedJob::started(text).fail(0, cause).outcome();
        assert_eq!(outcome, ("failed", Some(Reason::Permanent), [0, 1, 0]), "{cause:?}");
    }
}

#[test]
fn unlimited_attempts_are_retried_with_the_capped_delay() {
    let mut test = TestedJob::of("- {shell: a, retry_config: {attempts: unlimited}}\n");
    for _ in 0..100 {
        test.start();
        let retrying = test.fail(0, EXIT_1).scheduled().unwrap();
        assert_eq!(retrying.arithmetic.allowed, None);
        test.now = retrying.due;
    }
    test.start();
    let retrying = test.fail(0, EXIT_1).scheduled().unwrap();
    assert_eq!((retrying.delay, retrying.arithmetic.retry), (secs(30), 101));
}
