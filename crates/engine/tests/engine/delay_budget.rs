//! The delay budget after a crash: downtime counts as waiting, clean suspension does not.

use std::time::Duration;

use undaunted_engine::input::Input;
use undaunted_engine::job::Activity;
use undaunted_policy::{FailureCause, Reason};

use crate::fixture::{EXIT_1, SECOND, TestedJob, at, item_at, secs};

/// A delay of 1s is spent and one of 2s is pending, due at 13s. 7s of 10s are left, until 20s.
fn waiting() -> TestedJob {
    waiting_with("")
}

fn waiting_with(more: &str) -> TestedJob {
    let text = format!("- {{shell: a, retry_config: {{attempts: 9, retry_budget: 10s}}{more}}}\n");
    let mut test = TestedJob::started(&text);
    test.fail(0, EXIT_1).at(1).start().at(11).fail_with(0, EXIT_1, "no route to host");
    assert_eq!(test.active(0).activity, Activity::Waiting(at(13)));
    test
}

#[test]
fn a_retry_overdue_by_a_nanosecond_more_is_refused() {
    let mut test = waiting();
    test.at(20).pass(Duration::from_nanos(1));
    let lines = test.crash_and_resume().lines();
    assert_eq!(lines[0], "job_resumed run 2");
    assert_eq!(
        lines[2..],
        [
            "command_stopped 0/0 0.2: retry_budget_expired",
            "item_dead_lettered 0/0 0.2: retry_budget_expired",
            "step_failed 0",
            "job_failed retry_budget_expired",
        ]
    );
    assert_eq!(
        test.report().error.as_deref(),
        Some(
            "Retry budget expired during downtime (budget 10s); \
             last error: exit status 1: no route to host"
        )
    );
}

#[test]
fn the_handler_runs_when_a_retry_has_expired() {
    let mut test = waiting_with(", on_failure: {shell: mend}");
    test.at(1000);
    assert_eq!(
        test.crash_and_resume().lines()[2..],
        ["command_stopped 0/0 0.2: retry_budget_expired, handler 1"]
    );
}

#[test]
fn spent_delay_survives_a_crash_exactly() {
    let mut test = waiting();
    test.at(14).crash_and_resume();
    assert_eq!(test.active(0).progress().spent, secs(3));
    test.start();
    let third = test.fail(0, EXIT_1).scheduled().unwrap();
    assert_eq!((third.delay, third.arithmetic.spent_after), (secs(4), secs(7)));
    test.now = third.due;
    test.start().fail(0, EXIT_1);
    assert_eq!(test.outcome(), ("failed", Some(Reason::RetryBudget), [0, 1, 0]));
}

#[test]
fn a_retry_due_during_downtime_is_due_now() {
    let mut test = TestedJob::started("- {shell: a, retry_config: {attempts: 3}}\n");
    test.fail(0, EXIT_1).at(3600).crash_and_resume();
    assert_eq!(test.ready(), [item_at(0)]);
    assert_eq!(test.next_wake(), None);
}

#[test]
fn downtime_is_charged_and_clean_suspension_is_not() {
    // When a suspended job was resumed, when it was resumed after a crash, and whether its retry has expired.
    for (suspended, crash, expired) in [
        (None, 20, false),
        (Some(1_000_000), 1_000_000, false),
        // The retry fell due in the suspension: 7s are left from its end on.
        (Some(1000), 1007, false),
        (Some(1000), 1008, true),
        // The retry is due after the suspension: 7s are left from 13s on, as before.
        (Some(12), 20, false),
        (Some(12), 21, true),
    ] {
        let mut test = waiting();
        if let Some(resumed) = suspended {
            assert_eq!(test.suspend().lines(), ["job_suspended"]);
            test.at(resumed).crash_and_resume();
        }
        let lines = test.at(crash).crash_and_resume().lines();
        assert_eq!(lines.len() > 1, expired, "{suspended:?} {crash}: {lines:?}");
        assert!(expired || test.ready() == [item_at(0)]);
    }
}

#[test]
fn a_pending_retry_keeps_its_due_time_when_its_job_is_resumed_before() {
    for (resumed, is_suspended) in [(11, false), (12, false), (12, true)] {
        let mut test = waiting();
        if is_suspended {
            test.suspend();
        }
        test.at(resumed).crash_and_resume();
        assert_eq!((test.ready(), test.next_wake()), (vec![], Some(at(13))));
        assert_eq!(test.active(0).expires(), Some(at(20)));
    }
}

#[test]
fn a_clock_that_was_set_back_cannot_lengthen_a_wait() {
    let mut test = waiting();
    // The wait begins again and lasts its 2s, and its budget lasts as long after it as before.
    test.at(0).crash_and_resume();
    assert_eq!((test.ready(), test.next_wake()), (vec![], Some(at(2))));
    assert_eq!(test.active(0).expires(), Some(at(2 + 7)));
}

#[test]
fn a_rule_with_a_budget_of_its_own_expires_by_it() {
    let text = "
- shell: a
  retry_config:
    attempts: 9
    rules: [{exit_code: 75, then: retry, retry_config: {retry_budget: 5s}}]
";
    for (crash, expired) in [(5, false), (6, true)] {
        let mut test = TestedJob::started(text);
        test.fail(0, FailureCause::Exit(75)).at(crash);
        let lines = test.crash_and_resume().lines();
        assert_eq!(lines.len() > 1, expired, "{lines:?}");
    }
}

#[test]
fn an_attempt_that_runs_during_downtime_has_no_budget_to_lose() {
    let mut test = TestedJob::started("- {shell: a, retry_config: {attempts: 9, retry_budget: 3s}}\n");
    test.fail(0, EXIT_1).pass(SECOND).start().at(100_000);
    assert_eq!(test.crash_and_resume().lines(), ["job_resumed run 2"]);
    assert_eq!(test.effects(), ["begin 2 for 0/0"]);
}

#[test]
fn time_in_a_queue_while_a_process_ran_the_job_is_not_charged() {
    // Due at 11s with 7s left, and no slot free until the process died at 30s.
    for (resumed, expired) in [(37, false), (38, true)] {
        let mut test = waiting();
        test.at(resumed);
        test.job = test.replayed();
        let seen = Some(crate::fixture::at(30));
        let lines = test.feed(&Input::Resume { last_seen: seen }).lines();
        assert_eq!(lines.len() > 1, expired, "{lines:?}");
        let resumed = test.job.times.last_at.since(crate::fixture::at(30));
        assert_eq!(resumed, crate::fixture::secs(if expired { 8 } else { 7 }));
    }
}
