//! Flows that fail, that are killed, and that go on.

use serde_json::json;
use undaunted_engine::breaker::AdmissionControl;
use undaunted_engine::effect::{next_wake, ready, wanted};
use undaunted_engine::event::{Event, Record, StepEvent};
use undaunted_engine::id::StepId;
use undaunted_engine::input::Input;
use undaunted_engine::job::Job;
use undaunted_engine::task::{TaskWork, ValueFiles, task};
use undaunted_engine::view::report;
use undaunted_policy::{FailureCause, Reason};

use crate::flows::{ONCE, arguments, attribute, done, fail, flow};
use crate::scene::{Scene, digest, fold};
use crate::spoken::said;

#[test]
fn a_step_whose_required_input_can_no_longer_come_is_unreachable_and_a_goal_that_is_fails_the_flow() {
    let steps = [
        ("a", "x: {role: output}", ONCE),
        ("b", "x: {role: required}, y: {role: output}", ONCE),
        ("c", "y: {role: required}", ONCE),
    ];
    for succeeds in [true, false] {
        let mut scene = flow("c", "", &steps);
        let _ = scene.start();
        let records = if succeeds {
            // A success without the output: it is simply absent.
            done(&mut scene, StepId(0).item(0), &json!({"other": 1}))
        } else {
            fail(&mut scene, StepId(0).item(0), FailureCause::Refused)
        };
        let words = said(&records);
        let unreachable = words.iter().filter(|word| word.starts_with("step_unreachable"));
        assert_eq!(unreachable.count(), 2, "{words:?}");
        let (status, _, items) = scene.came_to();
        assert_eq!((status, items), ("failed", [u64::from(succeeds), u64::from(!succeeds), 0]));
        let error = scene.report().error.unwrap();
        let told = if succeeds { "`x`, which it requires" } else { "it said no" };
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn a_goal_that_fails_ends_the_flow_when_what_runs_has_finished() {
    let mut scene = flow(
        "a, b",
        "xs: [1, 2, 3]",
        &[
            ("a", "", ONCE),
            ("b", "xs: {role: required, for_each: true}", ", work_config: {max_retries: 3, parallelism: 2}"),
        ],
    );
    assert_eq!(scene.start().len(), 3);
    let _ = fail(&mut scene, StepId(1).item(0), FailureCause::Status(503));
    let _ = fail(&mut scene, StepId(0).item(0), FailureCause::Status(400));
    assert_eq!(scene.came_to().0, "running", "an item still runs");
    assert!(scene.ready().is_empty(), "nothing new starts");
    let _ = done(&mut scene, StepId(1).item(1), &json!({}));
    assert_eq!(scene.came_to(), ("failed", Some(Reason::Permanent), [1, 1, 1]));
    assert_eq!(scene.report().items.total, 4);
    assert_eq!(scene.report().missing.len(), 1, "what never began");
}

#[test]
fn a_failure_that_no_goal_needs_leaves_the_flow_to_go_on() {
    let mut scene = flow("b", "", &[("a", "x: {role: output}", ONCE), ("b", "x: {role: optional}", ONCE)]);
    let _ = scene.start();
    let _ = fail(&mut scene, StepId(0).item(0), FailureCause::Status(410));
    let _ = scene.start();
    let _ = done(&mut scene, StepId(1).item(0), &json!({}));
    assert_eq!(scene.came_to().2, [1, 1, 0]);
    assert_ne!(scene.came_to().0, "failed");
}

/// Four items, two at a time, each retried after a second.
fn four() -> Scene {
    let mut scene = flow(
        "a",
        "x: [1, 2, 3, 4]",
        &[(
            "a",
            "x: {role: required, for_each: true}, y: {role: output}",
            ", work_config: {max_retries: 2, backoff: 1000, backoff_type: fixed, parallelism: 2}",
        )],
    );
    let _ = scene.start();
    scene
}

#[test]
fn as_many_items_run_as_may_and_one_that_waits_for_its_retry_holds_no_slot() {
    let mut scene = four();
    assert_eq!(scene.job.starts.running.len(), 2);
    assert!(scene.ready().is_empty());
    let _ = fail(&mut scene, StepId(0).item(0), FailureCause::Status(503));
    assert_eq!(scene.ready(), [StepId(0).item(2)], "its place is free");
    let _ = scene.start();
    assert_eq!(scene.job.starts.running.len(), 2);
    scene.at(1);
    assert!(scene.ready().is_empty(), "due, and there is no room");
    let _ = done(&mut scene, StepId(0).item(1), &json!({}));
    assert_eq!(scene.ready(), [StepId(0).item(0)], "what is due goes before what is new");
    // By itself one item runs at a time.
    let each = "x: {role: required, for_each: true}";
    assert_eq!(flow("a", "x: [1, 2]", &[("a", each, "")]).ready().len(), 1);
}

#[test]
fn an_item_that_fails_for_good_fails_the_step_and_drops_what_waits_and_what_is_new() {
    let mut scene = four();
    let _ = fail(&mut scene, StepId(0).item(0), FailureCause::Network);
    let _ = scene.start();
    let records = said(&fail(&mut scene, StepId(0).item(1), FailureCause::Refused));
    assert!(records.contains(&"item_skipped 0/0: tolerance".to_owned()), "{records:?}");
    assert_eq!(scene.came_to().0, "running", "one still runs");
    scene.at(5);
    assert!(scene.ready().is_empty());
    let records = said(&done(&mut scene, StepId(0).item(2), &json!({"y": 1})));
    assert!(records.contains(&"step_failed 0".to_owned()), "{records:?}");
    assert_eq!(scene.came_to(), ("failed", Some(Reason::Permanent), [1, 1, 1]));
    assert_eq!(scene.job.attributes.get("y"), None, "a step that failed gives nothing");
    assert_eq!(scene.report().items.total, 4);
}

#[test]
fn a_failed_flow_goes_on_where_it_failed_when_it_is_redriven() {
    let mut scene = flow(
        "c",
        "",
        &[
            ("a", "x: {role: output}", ONCE),
            ("b", "x: {role: required}, y: {role: output}", ONCE),
            ("c", "y: {role: required}", ONCE),
        ],
    );
    let _ = scene.start();
    let _ = done(&mut scene, StepId(0).item(0), &json!({"x": 1}));
    let _ = scene.start();
    let _ = fail(&mut scene, StepId(1).item(0), FailureCause::Status(400));
    assert_eq!(scene.came_to(), ("failed", Some(Reason::Permanent), [1, 1, 0]));
    let items = vec![StepId(1).item(0)];
    let _ = scene.tell(&Input::Redrive { items, reduce: false });
    assert_eq!(said(&scene.start()), ["attempt_started 1/0 1.1 as 3"]);
    let _ = done(&mut scene, StepId(1).item(0), &json!({"y": 2}));
    let _ = scene.start();
    assert_eq!(arguments(&scene, StepId(2).item(0)), json!({"y": 2}));
    let _ = done(&mut scene, StepId(2).item(0), &json!({}));
    assert_eq!(scene.came_to(), ("completed", None, [3, 0, 0]));
}

#[test]
fn a_step_is_not_complete_after_a_redrive_while_an_item_of_it_is_dead() {
    let mut scene = four();
    let _ = fail(&mut scene, StepId(0).item(0), FailureCause::Refused);
    let _ = fail(&mut scene, StepId(0).item(1), FailureCause::Refused);
    assert_eq!(scene.came_to().2, [0, 2, 0]);
    let items = vec![StepId(0).item(0)];
    let _ = scene.tell(&Input::Redrive { items, reduce: false });
    while let Some(&item) = {
        let _ = scene.start();
        scene.job.starts.running.values().next()
    } {
        let _ = done(&mut scene, item, &json!({"y": item.index}));
    }
    // What never began is done too, and the other dead letter is still one.
    assert_eq!(scene.came_to(), ("failed", Some(Reason::Permanent), [3, 1, 0]));
    assert_eq!(scene.job.attributes.get("y"), None);
    let items = vec![StepId(0).item(1)];
    let _ = scene.tell(&Input::Redrive { items, reduce: false });
    let _ = scene.start();
    let _ = done(&mut scene, StepId(0).item(1), &json!({"y": 1}));
    assert_eq!(scene.came_to(), ("completed", None, [4, 0, 0]));
    assert_eq!(attribute(&scene, "y")[3], json!({"x": 4, "y": 3}));
}

#[test]
fn a_redrive_brings_back_what_was_dropped_because_of_the_failure() {
    let mut scene = four();
    let token = |scene: &Scene, item: u32| {
        let task = task(&scene.job, StepId(0).item(item), ValueFiles::default(), scene.now);
        let TaskWork::Call(call) = task.unwrap().unwrap().work else {
            panic!("it is no call");
        };
        let key = call.headers.into_iter();
        let mut key = key.filter(|(name, _)| name == "Idempotency-Key");
        key.next().unwrap().1
    };
    let before = token(&scene, 0);
    // The first waits for its retry when the second fails for good; the third and the fourth are new.
    let _ = fail(&mut scene, StepId(0).item(0), FailureCause::Network);
    let _ = fail(&mut scene, StepId(0).item(1), FailureCause::Refused);
    assert_eq!(scene.came_to(), ("failed", Some(Reason::Permanent), [0, 1, 1]));
    let _ = scene.tell(&Input::Redrive { items: vec![StepId(0).item(1)], reduce: false });
    assert_eq!(scene.came_to(), ("running", None, [0, 0, 0]));
    let _ = scene.crash_and_resume();
    let _ = scene.start();
    let begun: Vec<u32> = scene.job.starts.running.values().map(|item| item.index).collect();
    assert_eq!(begun, [1, 0], "what is due goes before what is new");
    assert_ne!(token(&scene, 0), before, "in a round of its own");
    assert_eq!(scene.active(0).attempts, 1, "with all its attempts");
    while let Some(&item) = {
        let _ = scene.start();
        scene.job.starts.running.values().next()
    } {
        let _ = done(&mut scene, item, &json!({"y": item.index}));
    }
    assert_eq!(scene.came_to(), ("completed", None, [4, 0, 0]));
    let given: Vec<_> = (0..4).map(|item| json!({"x": item + 1, "y": item})).collect();
    assert_eq!(attribute(&scene, "y"), json!(given));
}

#[test]
fn what_is_brought_back_may_fail_and_be_brought_back_again() {
    let mut scene = four();
    for dead in [1, 2, 3] {
        while !scene.job.starts.running.values().any(|item| item.index == dead) {
            let &item = scene.job.starts.running.values().next().unwrap();
            let _ = done(&mut scene, item, &json!({"y": item.index}));
            let _ = scene.start();
        }
        let _ = fail(&mut scene, StepId(0).item(dead), FailureCause::Refused);
        while let Some(&item) = scene.job.starts.running.values().next() {
            let _ = done(&mut scene, item, &json!({"y": item.index}));
        }
        assert_eq!(scene.came_to().0, "failed");
        let _ = scene.tell(&Input::Redrive { items: vec![StepId(0).item(dead)], reduce: false });
        let _ = scene.crash_and_resume();
        let _ = scene.start();
    }
    while let Some(&item) = scene.job.starts.running.values().next() {
        let _ = done(&mut scene, item, &json!({"y": item.index}));
        let _ = scene.start();
    }
    assert_eq!(scene.came_to(), ("completed", None, [4, 0, 0]));
}

#[test]
fn a_step_that_failed_before_it_had_items_begins_again_when_the_flow_is_redriven() {
    let mut scene = flow(
        "b",
        "",
        &[("a", "y: {role: output}", ONCE), ("b", "y: {role: optional}", ", predicate: {script: 'y > 1'}")],
    );
    let _ = scene.start();
    let _ = fail(&mut scene, StepId(0).item(0), FailureCause::Refused);
    let report = scene.report();
    assert_eq!(report.status.word(), "failed");
    assert!(report.error.unwrap().contains("condition"));
    let _ = scene.tell(&Input::Redrive { items: vec![StepId(0).item(0)], reduce: false });
    let _ = scene.crash_and_resume();
    let _ = scene.start();
    let _ = done(&mut scene, StepId(0).item(0), &json!({"y": 5}));
    let _ = scene.start();
    assert_eq!(arguments(&scene, StepId(1).item(0)), json!({"y": 5}));
    let _ = done(&mut scene, StepId(1).item(0), &json!({}));
    assert_eq!(scene.came_to(), ("completed", None, [2, 0, 0]));
}

/// Runs a flow to its end: some attempts fail, and once somebody dies.
fn story() -> Scene {
    let mut scene = flow(
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
    while !scene.job.stage.has_ended() {
        let _ = scene.start();
        let Some(&item) = scene.job.starts.running.values().next() else {
            scene.now = scene.next_wake().unwrap();
            continue;
        };
        number += 1;
        let _ = if number.is_multiple_of(3) && item.step != StepId(4) {
            fail(&mut scene, item, FailureCause::Status(503))
        } else {
            done(&mut scene, item, &json!({"y": item.index, "z": "é"}))
        };
        if number == 4 {
            let _ = scene.crash_and_resume();
        }
    }
    assert_eq!(scene.came_to().0, "completed");
    scene
}

#[test]
fn at_every_record_the_journal_of_a_flow_comes_to_the_state_and_the_wishes_of_the_live_one() {
    let journal = story().journal;
    let records: Vec<Record> = journal.iter().map(|it| Record::decode(it).unwrap()).collect();
    let mut live = Job::begin(&records[0]).unwrap();
    for (count, record) in (1_usize..).zip(&records).skip(1) {
        live.apply(record);
        let found = fold(&journal[..count]);
        assert_eq!(digest(&found), digest(&live));
        assert_eq!(found.attributes, live.attributes);
        assert_eq!(wanted(&found), wanted(&live));
        let admission = AdmissionControl::default();
        let startable = |job: &Job| ready(job, &admission, record.at);
        assert_eq!(startable(&found), startable(&live));
        assert_eq!(next_wake(&found, record.at), next_wake(&live, record.at));
        assert_eq!(report(&found), report(&live));
    }
    let skipped = records.iter().filter(|it| matches!(it.event, Event::Step(StepEvent::Skipped { .. })));
    assert_eq!(skipped.count(), 1);
}

#[test]
fn a_flow_goes_on_from_wherever_its_journal_was_cut() {
    let whole = story();
    // The records of one decision are written together.
    for &count in whole.written.iter().filter(|count| **count < whole.journal.len()) {
        let mut scene = whole.clone();
        scene.cut(count);
        let _ = scene.tell(&Input::Resume { seen: None });
        for _ in 0..50 {
            let _ = scene.start();
            let Some(&item) = scene.job.starts.running.values().next() else {
                match scene.next_wake() {
                    Some(due) => scene.now = due,
                    None => break,
                }
                continue;
            };
            let _ = done(&mut scene, item, &json!({"y": item.index, "z": "é"}));
        }
        assert_eq!(scene.came_to().0, "completed", "cut at {count}");
        assert_eq!(attribute(&scene, "z"), "é", "cut at {count}");
    }
}

#[test]
fn a_flow_is_suspended_when_nothing_runs_and_cancelled_as_any_other_job() {
    let mut scene = four();
    assert!(scene.hear(&Input::Suspend).is_empty(), "two calls run");
    let _ = fail(&mut scene, StepId(0).item(0), FailureCause::Network);
    let _ = done(&mut scene, StepId(0).item(1), &json!({}));
    assert_eq!(scene.hear(&Input::Suspend), ["job_suspended"]);
    let _ = scene.crash_and_resume();
    assert_eq!(
        scene.hear(&Input::Cancel),
        ["job_stopping cancelled", "item_skipped 0/0: cancelled", "step_failed 0", "job_cancelled cancelled",]
    );
    assert_eq!(scene.came_to(), ("cancelled", Some(Reason::Cancelled), [1, 0, 1]));
}
