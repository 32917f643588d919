//! Late results: left alone, logged, or counted if the operator says so.

use undaunted_engine::event::{Event, Record, StepEvent};
use undaunted_engine::id::StepId;
use undaunted_engine::workflow::Operator;
use undaunted_policy::{FailureCause, Reason};

use crate::fixture::{EXIT_1, TERM, TestedJob, at, completion_map, event_lines, item_at, with_rule};

/// Late results count.
fn counting_late(rule: &str, items: u32) -> TestedJob {
    let operator = Operator { late_results_count: true, ..Operator::default() };
    let mut test = TestedJob::with(&completion_map(rule), 7, &operator);
    test.items(items).start();
    test
}

#[test]
fn with_leave_reduce_begins_at_once_and_the_other_items_keep_running() {
    let mut test = with_rule("best_effort_min_dcs: 1\n  on_complete: leave", 3);
    let records = test.succeed(0).records();
    assert_eq!(
        event_lines(&records)[2..],
        ["completion_reached 0: min_dcs_reached (1/1), met", "step_completed 0", "step_started 1"]
    );
    assert!(!test.job.ends(item_at(1)), "the executor does not end it");
    test.start();
    assert_eq!(test.running(), 3, "two items and reduce");
    let reduce = *test.job.starts.running.keys().last().unwrap();
    test.end_start(reduce, None);
    assert!(!test.job.stage.has_ended(), "the rest is waited for");
    assert_eq!(test.succeed(1).lines()[1..], ["late_result 0/1", "item_skipped 0/1: cancelled"]);
    assert_eq!(
        test.fail(2, EXIT_1).lines()[2..],
        [
            "command_stopped 0/2 0.1: attempts",
            "late_result 0/2: attempts",
            "item_skipped 0/2: cancelled",
            "job_completed"
        ]
    );
    assert_eq!(test.outcome(), ("completed", None, [1, 0, 0]));
    assert_eq!(test.missing().len(), 2, "logged, never counted");
}

#[test]
fn with_leave_unstarted_items_are_missing_and_retries_continue() {
    let text = completion_map("best_effort_min_dcs: 1\n  on_complete: leave\n  max_parallel: 2")
        .replace("{shell: a}", "{shell: a, retry_config: {attempts: 1, backoff: fixed}}");
    let mut test = TestedJob::started_over(&text, 5);
    test.fail(0, EXIT_1).succeed(1).at(1);
    assert_eq!(test.ready(), [StepId(1).item(0), item_at(0)], "the retry of a left item, and reduce");
    test.crash_and_resume().start();
    while let Some(start) = test.job.starts.running.keys().next().copied() {
        test.end_start(start, None);
    }
    assert_eq!(test.outcome(), ("completed", None, [1, 0, 0]));
    let names = ["a0", "a2", "a3", "a4"].map(|name| (name.to_owned(), Reason::Cancelled));
    assert_eq!(test.missing(), names);
}

#[test]
fn with_leave_the_job_deadline_ends_late_items_and_the_job_is_completed() {
    let text = format!(
        "deadline: 100s\n{}",
        completion_map("best_effort_min_dcs: 1\n  on_complete: leave").replace("reduce: [{shell: r}]\n", "")
    );
    let mut test = TestedJob::started_over(&text, 2);
    test.succeed(0);
    assert_eq!(test.next_wake(), Some(at(100)));
    assert_eq!(test.at(100).wake().lines(), ["job_stopping deadline"]);
    assert_eq!(test.effects().last().unwrap(), "end all");
    assert_eq!(test.fail(1, TERM).outcome(), ("completed", None, [1, 0, 0]));
    assert_eq!(test.missing().len(), 1);
}

#[test]
fn with_leave_the_job_deadline_before_reduce_is_done_fails_the_job() {
    let text = format!("deadline: 100s\n{}", completion_map("best_effort_min_dcs: 1\n  on_complete: leave"));
    let mut test = TestedJob::started_over(&text, 1);
    test.succeed(0).start().at(100).wake().fail(0, TERM);
    assert_eq!(test.outcome(), ("failed", Some(Reason::Deadline), [1, 0, 0]));
}

#[test]
fn with_update_result_late_results_count() {
    let mut test = counting_late("best_effort_min_dcs: 1\n  on_complete: leave", 4);
    test.succeed(0);
    assert_eq!(test.succeed(1).lines()[1..], ["late_result 0/1", "item_succeeded 0/1"]);
    assert_eq!(
        test.fail(2, EXIT_1).lines()[3..],
        ["late_result 0/2: attempts", "item_dead_lettered 0/2 0.1: attempts"]
    );
    test.crash_and_resume().succeed(3);
    assert_eq!(test.after_reduce().outcome(), ("completed", None, [3, 1, 0]));
}

#[test]
fn with_update_result_late_results_can_reach_a_missed_minimum() {
    let mut test =
        counting_late("best_effort_min_dcs: 2\n  on_complete: leave\n  best_effort_deadline_seconds: 9", 3);
    test.succeed(0).at(9).wake().at(20).succeed(1).succeed(2);
    assert_eq!(test.after_reduce().outcome(), ("completed", None, [3, 0, 0]));
    // By default late results are only logged.
    let mut test =
        with_rule("best_effort_min_dcs: 2\n  on_complete: leave\n  best_effort_deadline_seconds: 9", 2);
    test.at(9).wake().succeed(0).succeed(1);
    assert_eq!(test.after_reduce().outcome(), ("partial", Some(Reason::Deadline), [0, 0, 0]));
}

#[test]
fn a_cancel_ends_late_items() {
    let mut test = with_rule("best_effort_min_dcs: 1\n  on_complete: leave", 3);
    test.succeed(0).cancel();
    assert!(test.job.ends(item_at(1)));
    assert_eq!(test.fail(1, TERM).fail(2, TERM).outcome().0, "cancelled");
}

#[test]
fn a_tally_is_frozen_when_the_rule_has_decided() {
    let mut test = counting_late("best_effort_min_dcs: 1\n  on_complete: leave", 4);
    test.succeed(0);
    let reached = test.job.steps[0].reached;
    test.succeed(1).fail(2, EXIT_1);
    assert_eq!(test.job.steps[0].reached, reached);
    let once = test.journal.iter().filter(|bytes| {
        let record = Record::decode(bytes).unwrap();
        matches!(record.event, Event::Step(StepEvent::CompletionReached(_)))
    });
    assert_eq!(once.count(), 1);
}

#[test]
fn a_success_after_its_cancellation_is_logged_and_not_counted() {
    let mut test = with_rule("best_effort_min_dcs: 1", 3);
    test.succeed(0);
    assert_eq!(test.succeed(2).lines()[1..], ["late_result 0/2", "item_skipped 0/2: cancelled"]);
    test.fail(1, TERM);
    let test = test.after_reduce();
    assert_eq!(test.outcome(), ("completed", None, [1, 0, 0]));
    assert_eq!(test.missing().len(), 2);
}

#[test]
fn a_redrive_does_not_revive_items_that_are_being_ended() {
    let text = completion_map("best_effort_min_dcs: 1").replace(
        "[{shell: a}]",
        "[{shell: a, retry_config: {attempts: 5, rules: [{exit_code: 3, then: dead_letter}]}}]",
    );
    let mut test = TestedJob::started_over(&text, 3);
    test.fail(0, FailureCause::Exit(3)).succeed(1);
    assert!(test.job.ends(item_at(2)));
    test.redrive([item_at(0)]);
    let lines = test.fail(2, TERM).lines();
    assert_eq!(lines[1], "item_skipped 0/2: cancelled", "{lines:?}");
}

#[test]
fn a_redrive_leaves_late_items_late() {
    let mut test = with_rule("best_effort_min_dcs: 1\n  on_complete: leave", 3);
    test.fail(0, EXIT_1).succeed(1).redrive([item_at(0)]);
    let lines = test.succeed(2).lines();
    assert_eq!(lines[1], "late_result 0/2", "{lines:?}");
}

#[test]
fn a_late_success_that_reaches_the_minimum_clears_the_reason() {
    let rule = "best_effort_min_dcs: 2\n  best_effort_deadline_seconds: 10\n  on_complete: leave";
    let mut test = counting_late(rule, 3);
    test.succeed(0).at(10).wake().succeed(1).fail(2, EXIT_1);
    let test = test.after_reduce();
    let report = test.report();
    assert_eq!(test.outcome().0, "completed");
    assert_eq!((report.reason, report.error.is_some()), (None, true), "of the dead letter");
    assert!(!report.error.unwrap().contains("deadline_expired"));
}

#[test]
fn late_results_that_count_are_in_the_numbers_for_reduce() {
    let mut test = counting_late("best_effort_min_dcs: 1\n  on_complete: leave", 3);
    test.succeed(0).succeed(1).fail(2, EXIT_1);
    let state = &test.job.steps[0];
    assert_eq!((state.succeeded, state.dead), (2, 1));
}
