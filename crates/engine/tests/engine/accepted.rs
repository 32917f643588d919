//! Accepted attempts, whose results arrive later.

use std::time::Duration;

use serde_json::json;
use undaunted_engine::event::{Event, ItemEvent, Record};
use undaunted_engine::id::StartId;
use undaunted_engine::input::Input;
use undaunted_engine::job::JobStage;
use undaunted_policy::{FailureCause, Reason, Timestamp};

use crate::fixture::{TestedJob, at, item_at};

/// An async step over `n`, two items at a time, each retried after a second.
fn flow(head: &str, http: &str, more: &str) -> TestedJob {
    TestedJob::of(&format!(
        "
mode: flow
goals: [a]
init: {{n: [1, 2, 3]}}
{head}
steps:
  - id: a
    type: async
    http: {{endpoint: 'http://s/a'{http}}}
    attributes: {{n: {{role: required, for_each: true}}, x: {{role: output}}}}
    work_config: {{max_retries: 2, backoff: 1000, backoff_type: fixed, parallelism: 2}}
{more}
"
    ))
}

/// Two attempts run.
fn begun() -> TestedJob {
    let mut test = flow("", ", completion_timeout: 60000", "");
    assert_eq!(test.start().records().len(), 2);
    test
}

/// Until when the result of the attempt that was accepted last is waited for.
fn until(test: &TestedJob) -> Timestamp {
    match &test.records()[..] {
        [Record { event: Event::Item(ItemEvent::AttemptAccepted { until, .. }), .. }] => *until,
        records => panic!("{records:?}"),
    }
}

#[test]
fn an_accepted_attempt_runs_until_its_result_arrives() {
    let mut test = begun();
    assert_eq!(test.at(1).accept(0).lines(), ["attempt_accepted"]);
    assert_eq!(until(&test), at(61));
    assert!(test.ready().is_empty(), "it holds its place");
    assert_eq!(test.next_wake(), Some(at(61)));
    assert!(test.suspend().lines().is_empty(), "it runs");
    assert!(test.at(60).wake().lines().is_empty());
    assert_eq!(
        test.succeed_item(item_at(0), &json!({"x": 1})).lines(),
        ["attempt_succeeded 0/0 0.1", "item_succeeded 0/0"]
    );
    assert!(test.job.starts.accepted.is_empty());
    assert_eq!(test.next_wake(), None);
    assert_eq!(test.ready(), [item_at(2)]);
}

#[test]
fn the_default_completion_timeout_is_a_day() {
    let mut test = flow("", "", "");
    test.start();
    let day = Duration::from_hours(24);
    assert_eq!(until(test.accept(0)), test.now.after(day));
}

#[test]
fn a_missing_result_is_a_timeout_and_the_retry_has_the_same_token() {
    let mut test = begun();
    let first = test.call(item_at(0));
    assert!(first.later);
    test.accept(0).advance();
    assert_eq!(test.now, at(60));
    assert_eq!(
        test.wake().lines()[1..],
        ["attempt_failed 0/0 0.1 Timeout", "retry_scheduled 0/0 0.1 in 1s at +61s",]
    );
    assert!(test.wake().lines().is_empty(), "once");
    test.at(61);
    // Item 1 still runs, and item 2 uses the free slot.
    test.start().succeed_item(item_at(1), &json!({})).start();
    assert_eq!(test.active(0).attempts, 2);
    assert_eq!(test.call(item_at(0)), first);
    // Each attempt has its own timeout.
    assert_eq!(until(test.accept(0)), at(121));
}

#[test]
fn results_that_never_arrive_use_up_the_attempts() {
    let mut test = flow("", ", completion_timeout: 60000", "");
    while test.outcome().0 == "running" {
        test.start();
        let running: Vec<StartId> = test.job.starts.running.keys().copied().collect();
        for start in running {
            test.feed(&Input::Accepted { start });
        }
        test.advance().wake();
    }
    let (status, reason, [succeeded, ..]) = test.outcome();
    assert_eq!((status, reason), ("failed", Some(Reason::Attempts)));
    assert_eq!(succeeded, 0);
    assert!(test.job.starts.accepted.is_empty());
}

#[test]
fn a_result_may_arrive_before_the_acceptance_of_its_attempt() {
    let mut test = begun();
    let start = test.start_of_item(item_at(0));
    test.succeed_item(item_at(0), &json!({"x": 1}));
    assert!(test.feed(&Input::Accepted { start }).lines().is_empty());
    let other = test.start_of_item(item_at(1));
    test.fail_item(item_at(1), FailureCause::Status(503));
    assert!(test.feed(&Input::Accepted { start: other }).lines().is_empty());
    assert!(test.feed(&Input::Accepted { start: StartId(99) }).lines().is_empty());
    assert!(test.job.starts.accepted.is_empty());
}

#[test]
fn repeated_acceptances_and_results_are_ignored() {
    let mut test = begun();
    let start = test.start_of_item(item_at(0));
    test.accept(0).at(5);
    assert!(test.accept(0).records().is_empty(), "its time stands");
    test.succeed_item(item_at(0), &json!({"x": 1}));
    let end = undaunted_engine::input::AttemptEnd {
        start,
        failure: Some(FailureCause::Refused),
        ..Default::default()
    };
    assert!(test.end(end).records().is_empty());
}

#[test]
fn a_failure_that_arrives_later_is_judged_like_an_immediate_one() {
    let mut test = begun();
    test.accept(0);
    let records = test.fail_item(item_at(0), FailureCause::Refused).lines();
    assert_eq!(records[1], "attempt_failed 0/0 0.1 Refused");
    assert!(records.contains(&"item_dead_lettered 0/0 0.1: permanent".to_owned()), "{records:?}");
}

/// The first result did not come in time; its item waits for the retry.
fn overdue() -> TestedJob {
    let mut test = begun();
    test.accept(0).at(60).wake();
    assert!(test.next_wake() == Some(at(61)), "a retry is scheduled");
    test
}

#[test]
fn a_result_that_arrives_during_a_retry_wait_counts_and_no_attempt_follows() {
    let mut test = overdue();
    test.crash_and_resume();
    assert_eq!(
        test.overtake(0, Ok(&json!({"x": 7}))).lines(),
        ["result_arrived 0/0 0.1", "item_succeeded 0/0"]
    );
    assert!(test.overtake(0, Ok(&json!({"x": 8}))).lines().is_empty(), "once");
    assert_eq!(test.at(100).ready(), [item_at(2)], "the retry is not made");
    test.start().succeed_item(item_at(1), &json!({})).succeed_item(item_at(2), &json!({}));
    assert_eq!(test.attempts(), 3);
    assert_eq!(test.attribute("x"), json!([{"n": 1, "x": 7}]));
    assert_eq!(test.outcome(), ("completed", None, [3, 0, 0]));
    test.check_replay();
}

#[test]
fn a_failure_that_arrives_during_a_retry_wait_is_permanent() {
    let mut test = overdue();
    let lines = test.overtake(0, Err("no stock")).lines();
    assert!(lines.contains(&"result_arrived 0/0 0.1, failed".to_owned()), "{lines:?}");
    assert!(lines.contains(&"item_dead_lettered 0/0 0.1: permanent".to_owned()), "{lines:?}");
    test.succeed_item(item_at(1), &json!({}));
    assert_eq!(test.outcome().1, Some(Reason::Permanent));
    assert_eq!(test.report().error.as_deref(), Some("the service reported a failure: no stock"));
    test.check_replay();
}

#[test]
fn a_result_that_arrives_while_a_breaker_holds_its_retry_counts() {
    let mut test = flow("", ", completion_timeout: 60000", "    breaker: {failure_threshold: 1}");
    test.start();
    for item in [0, 1] {
        test.fail_item(item_at(item), FailureCause::Status(503));
    }
    test.at(1).start();
    assert_eq!(test.job.starts.running.len(), 0, "the breaker holds every start");
    test.overtake(0, Ok(&json!({"x": 7})));
    assert_eq!(test.report().items.succeeded, 1);
}

#[test]
fn the_deadline_of_the_job_bounds_the_wait() {
    let mut test = flow("deadline: 30s", ", completion_timeout: 60000", "");
    test.start();
    assert_eq!(until(test.accept(0)), at(30));
    assert_eq!(test.at(30).wake().lines(), ["job_stopping deadline"]);
    assert_eq!(test.effects().last().unwrap(), "end all");
    for item in [0, 1] {
        test.fail_item(item_at(item), FailureCause::Interrupted);
    }
    assert!(test.job.starts.accepted.is_empty());
    let (status, reason, _) = test.outcome();
    assert_eq!((status, reason), ("failed", Some(Reason::Deadline)));
}

#[test]
fn overdue_results_are_judged_one_after_the_other() {
    let mut test = flow("retry_budget: 1\nretry_budget_per_workflow: 1", ", completion_timeout: 60000", "");
    test.start();
    for item in [0, 1] {
        test.accept(item);
    }
    test.at(60);
    let mut records = Vec::new();
    while test.job.stage == JobStage::Running && test.next_wake().is_some_and(|at| at <= test.now) {
        records.extend(test.wake().lines());
    }
    let retried = records.iter().filter(|it| it.starts_with("retry_sched"));
    assert_eq!(retried.count(), 1, "{records:?}");
    assert_eq!(test.report().reason, Some(Reason::JobBudgetExhausted));
}

#[test]
fn a_crash_changes_nothing_about_the_wait() {
    let mut test = begun();
    test.at(1).accept(0);
    let before = test.job.starts.accepted.clone();
    test.at(40).crash_and_resume();
    assert_eq!(test.job.starts.accepted, before);
    assert_eq!(test.next_wake(), Some(at(61)));
    test.succeed_item(item_at(0), &json!({"x": 1}));
    assert_eq!(test.attempts(), 2, "nothing was begun again");
    // An attempt whose timeout passed in the downtime fails at once.
    let mut test = begun();
    test.accept(0).at(1000);
    let mut records = test.crash_and_resume().lines();
    records.extend(test.wake().lines());
    assert!(records.contains(&"attempt_failed 0/0 0.1 Timeout".to_owned()), "{records:?}");
}

/// Runs a flow to its end. Every call is accepted, some results never come, and the process dies once.
fn run_to_the_end() -> TestedJob {
    let mut test = begun();
    let mut number = 0_u32;
    while !test.job.stage.has_ended() {
        test.start();
        let Some((&start, &item)) = test.job.starts.running.first_key_value() else {
            test.advance();
            continue;
        };
        number += 1;
        test.feed(&Input::Accepted { start });
        if number == 2 {
            test.crash_and_resume();
        }
        if number.is_multiple_of(3) {
            test.advance().wake();
        } else {
            test.succeed_item(item, &json!({"x": item.index}));
        }
    }
    assert_eq!(test.outcome(), ("completed", None, [3, 0, 0]));
    test
}

#[test]
fn at_every_record_the_journal_folds_to_the_state_and_the_effects_of_the_live_job() {
    run_to_the_end().check_replay();
}

#[test]
fn an_accepted_attempt_survives_a_journal_cut_anywhere() {
    let whole = run_to_the_end();
    let cuts = whole.commits.iter();
    for &count in cuts.filter(|count| **count < whole.journal.len()) {
        let mut test = whole.clone();
        test.truncate_journal(count);
        let waited_for = test.job.starts.accepted.clone();
        test.resume(None);
        assert_eq!(test.job.starts.accepted, waited_for, "cut at {count}");
        for _ in 0..20 {
            test.start();
            let Some(&item) = test.job.starts.running.values().next() else {
                match test.next_wake() {
                    Some(due) => test.now = due,
                    None => break,
                }
                continue;
            };
            test.succeed_item(item, &json!({"x": item.index}));
        }
        assert_eq!(test.outcome().0, "completed", "cut at {count}");
        let expected = json!([{"n": 1, "x": 0}, {"n": 2, "x": 1}, {"n": 3, "x": 2}]);
        assert_eq!(test.attribute("x"), expected, "cut at {count}");
    }
}

#[test]
fn a_breaker_counts_an_acceptance_as_a_success_and_ignores_the_later_result() {
    let mut test = flow("", "", "    breaker: true");
    test.start().accept(0);
    let breaker = |test: &TestedJob| {
        let name = test.job.breakers().first().unwrap().clone();
        test.breaker(&name).clone()
    };
    assert_eq!(breaker(&test).failures(), 0);
    let until = *test.job.starts.accepted.values().next().unwrap();
    test.now = until;
    test.wake();
    assert_eq!(breaker(&test).failures(), 0, "it answered");
    assert!(breaker(&test).probe.is_none());
}
