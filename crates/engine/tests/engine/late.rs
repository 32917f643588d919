//! What comes after a step was complete: left alone, logged, counted if the operator says so.

use undaunted_engine::event::{Event, Record, StepEvent};
use undaunted_engine::id::StepId;
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::workflow::Operator;
use undaunted_policy::{FailureCause, Reason};

use crate::completion::{begun, map, missing};
use crate::scene::{Scene, at};
use crate::spoken::said;

/// With results that count however late they come.
fn counting_late(rule: &str, items: u32) -> Scene {
    let operator = Operator { late_results_count: true, ..Operator::default() };
    let mut scene = Scene::with(&map(rule), 7, &operator);
    scene.items(items);
    let _ = scene.start();
    scene
}

#[test]
fn with_leave_reduce_begins_at_once_and_the_rest_goes_on() {
    let mut scene = begun("best_effort_min_dcs: 1\n  on_complete: leave", 3);
    let records = scene.succeed(0);
    assert_eq!(
        said(&records)[2..],
        ["completion_reached 0: min_dcs_reached (1/1), met", "step_completed 0", "step_started 1"]
    );
    assert!(!scene.job.ends(StepId(0).item(1)), "whoever ends what runs of the step asks this first");
    let _ = scene.start();
    assert_eq!(scene.job.starts.running.len(), 3, "two items and reduce");
    let reduce = *scene.job.starts.running.keys().last().unwrap();
    let _ = scene.end(AttemptEnd { start: reduce, ..AttemptEnd::default() });
    assert!(!scene.job.stage.has_ended(), "the rest is waited for");
    assert_eq!(said(&scene.succeed(1))[1..], ["late_result 0/1", "item_skipped 0/1: cancelled"]);
    assert_eq!(
        said(&scene.fail(2, FailureCause::Exit(1)))[2..],
        [
            "command_stopped 0/2 0.1: attempts",
            "late_result 0/2: attempts",
            "item_skipped 0/2: cancelled",
            "job_completed"
        ]
    );
    assert_eq!(scene.came_to(), ("completed", None, [1, 0, 0]));
    assert_eq!(missing(&scene).len(), 2, "logged, never counted");
}

#[test]
fn with_leave_what_never_started_is_missing_and_retries_go_on() {
    let text = map("best_effort_min_dcs: 1\n  on_complete: leave\n  max_parallel: 2")
        .replace("{shell: a}", "{shell: a, retry_config: {attempts: 1, backoff: fixed}}");
    let mut scene = Scene::over(&text, 5);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    let _ = scene.succeed(1);
    scene.at(1);
    assert_eq!(scene.ready(), [StepId(1).item(0), StepId(0).item(0)], "the retry of a left item, and reduce");
    let _ = scene.crash_and_resume();
    let _ = scene.start();
    while let Some(start) = scene.job.starts.running.keys().next().copied() {
        let _ = scene.end(AttemptEnd { start, ..AttemptEnd::default() });
    }
    assert_eq!(scene.came_to(), ("completed", None, [1, 0, 0]));
    let names = ["a0", "a2", "a3", "a4"].map(|name| (name.to_owned(), Reason::Cancelled));
    assert_eq!(missing(&scene), names);
}

#[test]
fn with_leave_the_job_deadline_ends_what_is_left_and_the_job_is_completed() {
    let text = format!(
        "deadline: 100s\n{}",
        map("best_effort_min_dcs: 1\n  on_complete: leave").replace("reduce: [{shell: r}]\n", "")
    );
    let mut scene = Scene::over(&text, 2);
    let _ = scene.start();
    let _ = scene.succeed(0);
    assert_eq!(scene.next_wake(), Some(at(100)));
    scene.at(100);
    assert_eq!(scene.hear(&Input::Woke), ["job_stopping deadline"]);
    assert_eq!(scene.wanted().last().unwrap(), "end all");
    let _ = scene.fail(1, FailureCause::Signal(15));
    assert_eq!(scene.came_to(), ("completed", None, [1, 0, 0]));
    assert_eq!(missing(&scene).len(), 1);
}

#[test]
fn with_leave_the_job_deadline_before_reduce_is_done_fails_the_job() {
    let text = format!("deadline: 100s\n{}", map("best_effort_min_dcs: 1\n  on_complete: leave"));
    let mut scene = Scene::over(&text, 1);
    let _ = scene.start();
    let _ = scene.succeed(0);
    let _ = scene.start();
    scene.at(100);
    let _ = scene.tell(&Input::Woke);
    let _ = scene.fail(0, FailureCause::Signal(15));
    assert_eq!(scene.came_to(), ("failed", Some(Reason::Deadline), [1, 0, 0]));
}

#[test]
fn with_update_result_what_comes_late_counts() {
    let mut scene = counting_late("best_effort_min_dcs: 1\n  on_complete: leave", 4);
    let _ = scene.succeed(0);
    assert_eq!(said(&scene.succeed(1))[1..], ["late_result 0/1", "item_succeeded 0/1"]);
    let said = said(&scene.fail(2, FailureCause::Exit(1)));
    assert_eq!(said[3..], ["late_result 0/2: attempts", "item_dead_lettered 0/2 0.1: attempts"]);
    let _ = scene.crash_and_resume();
    let _ = scene.succeed(3);
    assert_eq!(scene.clone_at_its_end().came_to(), ("completed", None, [3, 1, 0]));
}

#[test]
fn with_update_result_what_comes_late_can_make_up_for_a_minimum_that_was_missed() {
    let mut scene =
        counting_late("best_effort_min_dcs: 2\n  on_complete: leave\n  best_effort_deadline_seconds: 9", 3);
    let _ = scene.succeed(0);
    scene.at(9);
    let _ = scene.tell(&Input::Woke);
    scene.at(20);
    let _ = scene.succeed(1);
    let _ = scene.succeed(2);
    assert_eq!(scene.clone_at_its_end().came_to(), ("completed", None, [3, 0, 0]));
    // With the default they are only logged.
    let mut scene =
        begun("best_effort_min_dcs: 2\n  on_complete: leave\n  best_effort_deadline_seconds: 9", 2);
    scene.at(9);
    let _ = scene.tell(&Input::Woke);
    let _ = scene.succeed(0);
    let _ = scene.succeed(1);
    assert_eq!(scene.clone_at_its_end().came_to(), ("partial", Some(Reason::Deadline), [0, 0, 0]));
}

#[test]
fn a_cancel_ends_what_was_left() {
    let mut scene = begun("best_effort_min_dcs: 1\n  on_complete: leave", 3);
    let _ = scene.succeed(0);
    let _ = scene.tell(&Input::Cancel);
    assert!(scene.job.ends(StepId(0).item(1)));
    let _ = scene.fail(1, FailureCause::Signal(15));
    let _ = scene.fail(2, FailureCause::Signal(15));
    assert_eq!(scene.came_to().0, "cancelled");
}

#[test]
fn a_tally_is_frozen_when_the_rule_has_decided() {
    let mut scene = counting_late("best_effort_min_dcs: 1\n  on_complete: leave", 4);
    let _ = scene.succeed(0);
    let reached = scene.job.steps[0].reached;
    let _ = scene.succeed(1);
    let _ = scene.fail(2, FailureCause::Exit(1));
    assert_eq!(scene.job.steps[0].reached, reached);
    let once = scene.journal.iter().filter(|bytes| {
        let record = Record::decode(bytes).unwrap();
        matches!(record.event, Event::Step(StepEvent::CompletionReached(_)))
    });
    assert_eq!(once.count(), 1);
}

#[test]
fn what_is_done_after_it_was_cancelled_is_logged_and_not_counted() {
    let mut scene = begun("best_effort_min_dcs: 1", 3);
    let _ = scene.succeed(0);
    assert_eq!(said(&scene.succeed(2))[1..], ["late_result 0/2", "item_skipped 0/2: cancelled"]);
    let _ = scene.fail(1, FailureCause::Signal(15));
    let scene = scene.clone_at_its_end();
    assert_eq!(scene.came_to(), ("completed", None, [1, 0, 0]));
    assert_eq!(missing(&scene).len(), 2);
}

#[test]
fn a_dead_letter_redriven_while_others_are_being_ended_does_not_bring_them_back() {
    let text = map("best_effort_min_dcs: 1").replace(
        "[{shell: a}]",
        "[{shell: a, retry_config: {attempts: 5, rules: [{exit_code: 3, then: dead_letter}]}}]",
    );
    let mut scene = Scene::over(&text, 3);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(3));
    let _ = scene.succeed(1);
    assert!(scene.job.ends(StepId(0).item(2)));
    let _ = scene.tell(&Input::Redrive { items: vec![StepId(0).item(0)], reduce: false });
    let said = said(&scene.fail(2, FailureCause::Signal(15)));
    assert_eq!(said[1], "item_skipped 0/2: cancelled", "{said:?}");
}

#[test]
fn a_dead_letter_redriven_while_others_are_left_makes_them_no_less_late() {
    let mut scene = begun("best_effort_min_dcs: 1\n  on_complete: leave", 3);
    let _ = scene.fail(0, FailureCause::Exit(1));
    let _ = scene.succeed(1);
    let _ = scene.tell(&Input::Redrive { items: vec![StepId(0).item(0)], reduce: false });
    let said = said(&scene.succeed(2));
    assert_eq!(said[1], "late_result 0/2", "{said:?}");
}

#[test]
fn a_late_success_that_makes_up_for_what_was_missing_takes_the_blame_away() {
    let rule = "best_effort_min_dcs: 2\n  best_effort_deadline_seconds: 10\n  on_complete: leave";
    let mut scene = counting_late(rule, 3);
    let _ = scene.succeed(0);
    scene.at(10);
    let _ = scene.tell(&Input::Woke);
    let _ = scene.succeed(1);
    let _ = scene.fail(2, FailureCause::Exit(1));
    let scene = scene.clone_at_its_end();
    let report = scene.report();
    assert_eq!(scene.came_to().0, "completed");
    assert_eq!((report.reason, report.error.is_some()), (None, true), "of the dead letter");
    assert!(!report.error.unwrap().contains("deadline_expired"));
}

#[test]
fn reduce_sees_the_numbers_of_what_counted() {
    let mut scene = counting_late("best_effort_min_dcs: 1\n  on_complete: leave", 3);
    let _ = scene.succeed(0);
    let _ = scene.succeed(1);
    let _ = scene.fail(2, FailureCause::Exit(1));
    let state = &scene.job.steps[0];
    assert_eq!((state.succeeded, state.dead), (2, 1));
    assert_eq!(state.counted(), (1, 0));
}
