//! Flows that fail, crash and are redriven.

use serde_json::json;
use undaunted_engine::event::{Event, StepEvent};
use undaunted_engine::id::StepId;
use undaunted_policy::{FailureCause, Reason};

use crate::fixture::{ONCE, TestedJob, flow, item_at};

#[test]
fn an_unreachable_goal_fails_the_flow() {
    let steps = [
        ("a", "x: {role: output}", ONCE),
        ("b", "x: {role: required}, y: {role: output}", ONCE),
        ("c", "y: {role: required}", ONCE),
    ];
    for succeeds in [true, false] {
        let mut test = flow("c", "", &steps);
        test.start();
        if succeeds {
            // A success without the output.
            test.succeed_item(item_at(0), &json!({"other": 1}));
        } else {
            test.fail_item(item_at(0), FailureCause::Refused);
        }
        let words = test.lines();
        let unreachable = words.iter().filter(|word| word.starts_with("step_unreachable"));
        assert_eq!(unreachable.count(), 2, "{words:?}");
        let (status, _, items) = test.outcome();
        assert_eq!((status, items), ("failed", [u64::from(succeeds), u64::from(!succeeds), 0]));
        let error = test.report().error.unwrap();
        let expected = if succeeds { "it requires `x`" } else { "it said no" };
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_failed_goal_ends_the_flow_once_running_items_have_ended() {
    let mut test = flow(
        "a, b",
        "xs: [1, 2, 3]",
        &[
            ("a", "", ONCE),
            ("b", "xs: {role: required, for_each: true}", ", work_config: {max_retries: 3, parallelism: 2}"),
        ],
    );
    assert_eq!(test.start().records().len(), 3);
    test.fail_item(StepId(1).item(0), FailureCause::Status(503));
    test.fail_item(item_at(0), FailureCause::Status(400));
    assert_eq!(test.outcome().0, "running", "an item still runs");
    assert!(test.ready().is_empty(), "nothing new starts");
    test.succeed_item(StepId(1).item(1), &json!({}));
    assert_eq!(test.outcome(), ("failed", Some(Reason::Permanent), [1, 1, 1]));
    assert_eq!(test.report().items.total, 4);
    assert_eq!(test.report().missing.len(), 1, "what never began");
}

#[test]
fn a_step_that_succeeds_after_another_goal_has_failed_is_completed_and_sets_its_attribute() {
    let mut test = flow("a, b, c", "", &[("a", "", ONCE), ("b", "x: {role: output}", ONCE), ("c", "", ONCE)]);
    test.start().fail_item(item_at(0), FailureCause::Refused);
    let lines = test.succeed_item(StepId(1).item(0), &json!({"x": 4})).lines();
    assert_eq!(lines[1..], ["item_succeeded 1/0", "attribute_set", "step_completed 1"]);
    assert_eq!(test.attribute("x"), 4);
    assert_eq!(test.outcome().0, "running", "one still runs");
    test.fail_item(StepId(2).item(0), FailureCause::Refused);
    assert_eq!(test.outcome(), ("failed", Some(Reason::Permanent), [1, 2, 0]));
    test.check_replay();
}

#[test]
fn a_failure_that_no_goal_requires_does_not_stop_the_flow() {
    let mut test = flow("b", "", &[("a", "x: {role: output}", ONCE), ("b", "x: {role: optional}", ONCE)]);
    test.start().fail_item(item_at(0), FailureCause::Status(410)).start();
    assert_eq!(test.succeed_item(StepId(1).item(0), &json!({})).outcome().2, [1, 1, 0]);
    assert_ne!(test.outcome().0, "failed");
}

/// Four items, two at a time, each retried after a second.
fn four() -> TestedJob {
    let mut test = flow(
        "a",
        "x: [1, 2, 3, 4]",
        &[(
            "a",
            "x: {role: required, for_each: true}, y: {role: output}",
            ", work_config: {max_retries: 2, backoff: 1000, backoff_type: fixed, parallelism: 2}",
        )],
    );
    test.start();
    test
}

#[test]
fn items_run_up_to_the_parallelism_and_a_waiting_item_uses_no_slot() {
    let mut test = four();
    assert_eq!(test.running(), 2);
    assert!(test.ready().is_empty());
    test.fail_item(item_at(0), FailureCause::Status(503));
    assert_eq!(test.ready(), [item_at(2)], "its place is free");
    test.start();
    assert_eq!(test.running(), 2);
    test.at(1);
    assert!(test.ready().is_empty(), "due, and there is no room");
    test.succeed_item(item_at(1), &json!({}));
    assert_eq!(test.ready(), [item_at(0)], "what is due goes before what is new");
    // By default one item runs at a time.
    let each = "x: {role: required, for_each: true}";
    assert_eq!(flow("a", "x: [1, 2]", &[("a", each, "")]).ready().len(), 1);
}

#[test]
fn a_dead_letter_fails_the_step_and_skips_its_other_items() {
    let mut test = four();
    test.fail_item(item_at(0), FailureCause::Network).start();
    let records = test.fail_item(item_at(1), FailureCause::Refused).lines();
    assert!(records.contains(&"item_skipped 0/0: tolerance".to_owned()), "{records:?}");
    assert_eq!(test.outcome().0, "running", "one still runs");
    test.at(5);
    assert!(test.ready().is_empty());
    let records = test.succeed_item(item_at(2), &json!({"y": 1})).lines();
    assert!(records.contains(&"step_failed 0".to_owned()), "{records:?}");
    assert_eq!(test.outcome(), ("failed", Some(Reason::Permanent), [1, 1, 1]));
    assert_eq!(test.job.attributes.get("y"), None, "a step that failed gives nothing");
    assert_eq!(test.report().items.total, 4);
}

#[test]
fn a_redriven_flow_continues_at_the_failed_step() {
    let mut test = flow(
        "c",
        "",
        &[
            ("a", "x: {role: output}", ONCE),
            ("b", "x: {role: required}, y: {role: output}", ONCE),
            ("c", "y: {role: required}", ONCE),
        ],
    );
    test.start().succeed_item(item_at(0), &json!({"x": 1})).start();
    test.fail_item(StepId(1).item(0), FailureCause::Status(400));
    assert_eq!(test.outcome(), ("failed", Some(Reason::Permanent), [1, 1, 0]));
    test.redrive([StepId(1).item(0)]);
    assert_eq!(test.start().lines(), ["attempt_started 1/0 1.1 as 3"]);
    test.succeed_item(StepId(1).item(0), &json!({"y": 2})).start();
    assert_eq!(test.arguments(StepId(2).item(0)), json!({"y": 2}));
    test.succeed_item(StepId(2).item(0), &json!({}));
    assert_eq!(test.outcome(), ("completed", None, [3, 0, 0]));
}

#[test]
fn a_step_is_not_complete_after_a_redrive_while_an_item_of_it_is_dead() {
    let mut test = four();
    test.fail_item(item_at(0), FailureCause::Refused).fail_item(item_at(1), FailureCause::Refused);
    assert_eq!(test.outcome().2, [0, 2, 0]);
    test.redrive([item_at(0)]);
    while let Some(&item) = {
        test.start();
        test.job.starts.running.values().next()
    } {
        test.succeed_item(item, &json!({"y": item.index}));
    }
    // The items that never began have succeeded too; the other dead letter remains.
    assert_eq!(test.outcome(), ("failed", Some(Reason::Permanent), [3, 1, 0]));
    assert_eq!(test.job.attributes.get("y"), None);
    test.redrive([item_at(1)]).start().succeed_item(item_at(1), &json!({"y": 1}));
    assert_eq!(test.outcome(), ("completed", None, [4, 0, 0]));
    assert_eq!(test.attribute("y")[3], json!({"x": 4, "y": 3}));
}

#[test]
fn a_redrive_restarts_items_skipped_because_of_the_failure() {
    let mut test = four();
    let token = |test: &TestedJob, item: u32| {
        let key = test.call(item_at(item)).headers.into_iter();
        let mut key = key.filter(|(name, _)| name == "Idempotency-Key");
        key.next().unwrap().1
    };
    let before = token(&test, 0);
    // Item 0 waits for its retry when item 1 becomes a dead letter; items 2 and 3 have not started.
    test.fail_item(item_at(0), FailureCause::Network).fail_item(item_at(1), FailureCause::Refused);
    assert_eq!(test.outcome(), ("failed", Some(Reason::Permanent), [0, 1, 1]));
    assert_eq!(test.redrive([item_at(1)]).outcome(), ("running", None, [0, 0, 0]));
    test.crash_and_resume().start();
    let begun: Vec<u32> = test.job.starts.running.values().map(|item| item.index).collect();
    assert_eq!(begun, [1, 0], "what is due goes before what is new");
    assert_ne!(token(&test, 0), before, "in a round of its own");
    assert_eq!(test.active(0).attempts, 1, "with all its attempts");
    while let Some(&item) = {
        test.start();
        test.job.starts.running.values().next()
    } {
        test.succeed_item(item, &json!({"y": item.index}));
    }
    assert_eq!(test.outcome(), ("completed", None, [4, 0, 0]));
    let given: Vec<_> = (0..4).map(|item| json!({"x": item + 1, "y": item})).collect();
    assert_eq!(test.attribute("y"), json!(given));
}

#[test]
fn a_redriven_item_may_fail_and_be_redriven_again() {
    let mut test = four();
    for dead in [1, 2, 3] {
        while !test.job.starts.running.values().any(|item| item.index == dead) {
            let &item = test.job.starts.running.values().next().unwrap();
            test.succeed_item(item, &json!({"y": item.index})).start();
        }
        test.fail_item(item_at(dead), FailureCause::Refused);
        while let Some(&item) = test.job.starts.running.values().next() {
            test.succeed_item(item, &json!({"y": item.index}));
        }
        assert_eq!(test.outcome().0, "failed");
        test.redrive([item_at(dead)]).crash_and_resume().start();
    }
    while let Some(&item) = test.job.starts.running.values().next() {
        test.succeed_item(item, &json!({"y": item.index})).start();
    }
    assert_eq!(test.outcome(), ("completed", None, [4, 0, 0]));
}

#[test]
fn a_step_that_failed_before_it_had_items_begins_again_when_the_flow_is_redriven() {
    let mut test = flow(
        "b",
        "",
        &[("a", "y: {role: output}", ONCE), ("b", "y: {role: optional}", ", predicate: {script: 'y > 1'}")],
    );
    test.start().fail_item(item_at(0), FailureCause::Refused);
    let report = test.report();
    assert_eq!(report.status.word(), "failed");
    assert!(report.error.unwrap().contains("predicate"));
    test.redrive([item_at(0)]).crash_and_resume().start();
    test.succeed_item(item_at(0), &json!({"y": 5})).start();
    assert_eq!(test.arguments(StepId(1).item(0)), json!({"y": 5}));
    test.succeed_item(StepId(1).item(0), &json!({}));
    assert_eq!(test.outcome(), ("completed", None, [2, 0, 0]));
}

/// Runs a flow to its end. Some attempts fail, and the process dies once.
fn run_to_the_end() -> TestedJob {
    let mut test = flow(
        "d, e",
        "x: [1, 2, 3]",
        &[
            (
                "a",
                "x: {role: required, for_each: true}, y: {role: output}",
                ", work_config: {max_retries: 5, backoff: 10, parallelism: 2}",
            ),
            ("b", "y: {role: required}, z: {role: output}", ", predicate: {script: 'size(y) == 3'}"),
            ("c", "y: {role: required}, w: {role: output}", ", predicate: {script: 'false'}"),
            ("d", "z: {role: required}, w: {role: optional}", ""),
            ("e", "x: {role: required}", ", work_config: {max_retries: 0}"),
        ],
    );
    let mut number = 0_u32;
    while !test.job.stage.has_ended() {
        test.start();
        let Some(&item) = test.job.starts.running.values().next() else {
            test.advance();
            continue;
        };
        number += 1;
        let _ = if number.is_multiple_of(3) && item.step != StepId(4) {
            test.fail_item(item, FailureCause::Status(503))
        } else {
            test.succeed_item(item, &json!({"y": item.index, "z": "é"}))
        };
        if number == 4 {
            test.crash_and_resume();
        }
    }
    assert_eq!(test.outcome().0, "completed");
    test
}

#[test]
fn at_every_record_the_journal_of_a_flow_folds_to_the_state_and_the_effects_of_the_live_job() {
    let test = run_to_the_end();
    test.check_replay();
    let records = test.decoded().into_iter();
    let skipped = records.filter(|it| matches!(it.event, Event::Step(StepEvent::Skipped { .. })));
    assert_eq!(skipped.count(), 1);
}

#[test]
fn a_flow_completes_from_a_journal_cut_anywhere() {
    let whole = run_to_the_end();
    // The records of one decision are committed together.
    for &count in whole.commits.iter().filter(|count| **count < whole.journal.len()) {
        let mut test = whole.clone();
        test.truncate_journal(count);
        test.resume(None);
        for _ in 0..50 {
            test.start();
            let Some(&item) = test.job.starts.running.values().next() else {
                match test.next_wake() {
                    Some(due) => test.now = due,
                    None => break,
                }
                continue;
            };
            test.succeed_item(item, &json!({"y": item.index, "z": "é"}));
        }
        assert_eq!(test.outcome().0, "completed", "cut at {count}");
        assert_eq!(test.attribute("z"), "é", "cut at {count}");
    }
}

#[test]
fn a_flow_is_suspended_when_nothing_runs_and_cancelled_as_any_other_job() {
    let mut test = four();
    assert!(test.suspend().lines().is_empty(), "two calls run");
    test.fail_item(item_at(0), FailureCause::Network).succeed_item(item_at(1), &json!({}));
    assert_eq!(test.suspend().lines(), ["job_suspended"]);
    test.crash_and_resume();
    assert_eq!(
        test.cancel().lines(),
        ["job_stopping cancelled", "item_skipped 0/0: cancelled", "step_failed 0", "job_cancelled cancelled",]
    );
    assert_eq!(test.outcome(), ("cancelled", Some(Reason::Cancelled), [1, 0, 1]));
}
