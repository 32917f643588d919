//! Steps that do not wait for everything: when one is complete, and what becomes of the rest.

use undaunted_engine::effect::{Effect, wanted_by};
use undaunted_engine::event::{Event, JobEvent, Record};
use undaunted_engine::id::{StartId, StepId};
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_policy::{FailureCause, Reason};

use crate::scene::{Scene, at, digest, secs};
use crate::spoken::said;

/// A map over items that all start at once, whose rule is this.
pub(crate) fn map(rule: &str) -> String {
    format!(
        "
mode: mapreduce
map:
  input: a.json
  best_effort: true
  {rule}
  agent_template: [{{shell: a}}]
reduce: [{{shell: r}}]
"
    )
}

pub(crate) fn begun(rule: &str, items: u32) -> Scene {
    let mut scene = Scene::over(&map(rule), items);
    let _ = scene.start();
    scene
}

/// What the completion rule of the map has decided, in words.
fn decided(records: &[Record]) -> Option<String> {
    let lines = said(records);
    let mut lines = lines.into_iter();
    lines.find(|line| line.starts_with("completion_reached"))
}

pub(crate) fn missing(scene: &Scene) -> Vec<(String, Reason)> {
    let missing = scene.report().missing.into_iter();
    missing.map(|it| (it.item, it.reason)).collect()
}

#[test]
fn when_all_have_reported_that_is_the_reason_even_if_the_minimum_is_reached_with_the_last() {
    let mut scene = begun("best_effort_min_dcs: 2", 2);
    assert_eq!(decided(&scene.succeed(0)), None);
    assert_eq!(
        said(&scene.succeed(1))[2..],
        ["completion_reached 0: all_dcs_reported, met", "step_completed 0", "step_started 1"]
    );
}

#[test]
fn when_all_have_reported_after_the_deadline_that_is_the_reason() {
    let mut scene = begun("best_effort_min_dcs: 1", 1);
    scene.at(301);
    assert_eq!(
        decided(&scene.fail(0, FailureCause::Exit(1))).unwrap(),
        "completion_reached 0: all_dcs_reported, missed"
    );
}

#[test]
fn the_minimum_that_is_reached_is_the_reason_even_after_the_deadline() {
    let mut scene = begun("best_effort_min_dcs: 1", 2);
    scene.at(301);
    assert_eq!(decided(&scene.succeed(0)).unwrap(), "completion_reached 0: min_dcs_reached (1/1), met");
}

#[test]
fn the_deadline_runs_from_the_start_of_the_step() {
    let text = map("best_effort_deadline_seconds: 60\n  best_effort_min_dcs: 2")
        .replace("map:\n", "setup: [{shell: s}]\nmap:\n");
    let mut scene = Scene::of(&text);
    let _ = scene.start();
    scene.at(100);
    let _ = scene.succeed(0);
    scene.at(110);
    scene.items(3);
    let _ = scene.start();
    let _ = scene.succeed(0);
    assert_eq!(scene.next_wake(), Some(at(160)), "the step began at 100s");
    scene.at(159);
    assert_eq!(scene.hear(&Input::Woke), [""; 0]);
    scene.at(160);
    assert_eq!(scene.hear(&Input::Woke), ["completion_reached 1: deadline_expired (completed: 1), missed"]);
}

#[test]
fn the_default_is_one_within_300_seconds() {
    let scene = begun("on_complete: cancel", 3);
    assert_eq!(scene.next_wake(), Some(at(300)));
    let mut scene = begun("best_effort_deadline_seconds: 0", 3);
    assert_eq!(scene.next_wake(), Some(at(300)), "0 is the default");
    assert_eq!(decided(&scene.succeed(1)).unwrap(), "completion_reached 0: min_dcs_reached (1/1), met");
}

#[test]
fn the_minimum_is_clamped_to_what_there_is() {
    let mut scene = begun("best_effort_min_dcs: 9", 2);
    let _ = scene.succeed(0);
    let reached = scene.succeed(1);
    assert!(decided(&reached).unwrap().ends_with(", met"));
    let mut scene = begun("best_effort_min_dcs: 0", 2);
    assert_eq!(decided(&scene.succeed(0)).unwrap(), "completion_reached 0: min_dcs_reached (1/1), met");
}

#[test]
fn neither_suspension_nor_a_pause_moves_the_deadline() {
    let mut scene = Scene::over(&map("best_effort_deadline_seconds: 60"), 3);
    scene.at(10);
    let _ = scene.tell(&Input::Pause);
    assert_eq!(scene.next_wake(), Some(at(60)));
    scene.at(20);
    let _ = scene.tell(&Input::Unpause);
    let _ = scene.tell(&Input::Suspend);
    assert_eq!(scene.next_wake(), None);
    scene.at(50);
    let _ = scene.crash_and_resume();
    assert_eq!(scene.next_wake(), Some(at(60)));
    let _ = scene.tell(&Input::Pause);
    scene.at(60);
    assert_eq!(
        scene.hear(&Input::Woke)[0],
        "completion_reached 0: deadline_expired (completed: 0), missed",
        "paused or not"
    );
}

#[test]
fn a_deadline_that_passed_while_nobody_was_there_is_noticed_when_all_that_ended_was_told() {
    let mut scene = begun("best_effort_deadline_seconds: 60\n  best_effort_min_dcs: 3", 3);
    scene.at(1000);
    assert_eq!(decided(&scene.crash_and_resume()), None);
    let _ = scene.succeed(1);
    assert_eq!(
        decided(&scene.tell(&Input::Woke)).unwrap(),
        "completion_reached 0: deadline_expired (completed: 1), missed"
    );
}

#[test]
fn what_ended_while_nobody_was_there_counts_however_late_it_is_told() {
    let mut scene = begun("best_effort_deadline_seconds: 60\n  best_effort_min_dcs: 3", 3);
    scene.at(1000);
    let _ = scene.crash_and_resume();
    for item in 0..3 {
        let _ = scene.succeed(item);
    }
    assert_eq!(scene.clone_at_its_end().came_to(), ("completed", None, [3, 0, 0]));
}

#[test]
fn with_cancel_what_runs_is_ended_and_what_waits_is_missing() {
    let text = map("best_effort_min_dcs: 1\n  max_parallel: 3")
        .replace("[{shell: a}]", "[{shell: a, retry_config: {attempts: 5}, on_failure: {shell: mend}}]");
    let mut scene = Scene::over(&text, 5);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    let _ = scene.start();
    let records = scene.succeed(1);
    assert_eq!(
        said(&records)[1..],
        [
            "item_succeeded 0/1",
            "completion_reached 0: min_dcs_reached (1/1), met",
            "item_skipped 0/0: cancelled"
        ]
    );
    let effects: Vec<Effect> = records.iter().filter_map(wanted_by).collect();
    assert_eq!(effects, [Effect::EndStep { step: StepId(0) }]);
    assert_eq!(scene.wanted().last().unwrap(), "end what runs of 0");
    assert_eq!(scene.ready(), [], "what never started stays so");
    let _ = scene.crash_and_resume();
    assert_eq!(scene.wanted().last().unwrap(), "end what runs of 0");
    assert_eq!(
        said(&scene.fail(2, FailureCause::Signal(15)))[1..],
        ["item_skipped 0/2: cancelled"],
        "no retry and no handler"
    );
    assert_eq!(
        said(&scene.fail(3, FailureCause::Exit(1)))[1..],
        ["item_skipped 0/3: cancelled", "step_completed 0", "step_started 1"]
    );
    let _ = scene.start();
    let _ = scene.succeed(0);
    assert_eq!(scene.came_to(), ("completed", None, [1, 0, 0]));
    let names = ["a0", "a2", "a3", "a4"].map(|name| (name.to_owned(), Reason::Cancelled));
    assert_eq!(missing(&scene), names);
}

#[test]
fn what_a_breaker_holds_is_missing_too() {
    let text = map("best_effort_min_dcs: 1").replace(
        "{shell: a}",
        "{shell: a, breaker: {name: payments, failure_threshold: 1}, retry_config: {attempts: 5}}",
    );
    let mut scene = Scene::over(&text, 3);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    scene.at(1);
    let _ = scene.start();
    assert_eq!(scene.held(), [0]);
    let _ = scene.succeed(1);
    assert_eq!(scene.held(), [0; 0]);
    let breaker = scene.breaker("payments").clone();
    let _ = scene.fail(2, FailureCause::Signal(15));
    assert_eq!(scene.breaker("payments"), &breaker, "ended, not down");
    let missing = missing(&scene.clone_at_its_end());
    assert_eq!(missing, ["a0", "a2"].map(|name| (name.to_owned(), Reason::Cancelled)));
}

impl Scene {
    /// The same job, once its reduce has succeeded.
    pub(crate) fn clone_at_its_end(&self) -> Self {
        let mut scene = self.clone();
        let _ = scene.start();
        let _ = scene.succeed(0);
        assert!(scene.job.stage.has_ended());
        scene
    }
}

#[test]
fn dead_letters_beside_a_rule_that_was_met_are_completed() {
    let mut scene = begun("best_effort_min_dcs: 2", 3);
    let _ = scene.fail(0, FailureCause::Exit(1));
    let _ = scene.succeed(1);
    let _ = scene.succeed(2);
    let scene = scene.clone_at_its_end();
    assert_eq!(scene.came_to(), ("completed", None, [2, 1, 0]));
}

#[test]
fn all_reported_below_the_minimum_is_partial() {
    let mut scene = begun("best_effort_min_dcs: 2", 2);
    let _ = scene.fail(0, FailureCause::Exit(1));
    let reached = scene.succeed(1);
    assert_eq!(decided(&reached).unwrap(), "completion_reached 0: all_dcs_reported, missed");
    let scene = scene.clone_at_its_end();
    assert_eq!(
        scene.came_to(),
        ("partial", Some(Reason::Attempts), [1, 1, 0]),
        "what is there is returned, and reduce runs"
    );
}

#[test]
fn the_deadline_passed_below_the_minimum_is_partial_and_says_so() {
    let mut scene = begun("best_effort_min_dcs: 2", 3);
    let _ = scene.succeed(0);
    scene.at(300);
    let _ = scene.tell(&Input::Woke);
    let _ = scene.fail(1, FailureCause::Signal(15));
    let _ = scene.fail(2, FailureCause::Signal(15));
    let scene = scene.clone_at_its_end();
    assert_eq!(scene.came_to(), ("partial", Some(Reason::Deadline), [1, 0, 0]));
    let error = scene.report().error.unwrap();
    assert_eq!(error, "deadline_expired (completed: 1): 2 of 3 had to succeed");
    let names = ["a1", "a2"].map(|name| (name.to_owned(), Reason::Deadline));
    assert_eq!(missing(&scene), names);
}

#[test]
fn a_reduce_that_fails_after_a_map_that_fell_short_is_what_failed_the_job() {
    let rule = "best_effort_min_dcs: 2\n  best_effort_deadline_seconds: 60";
    let mut scene = begun(rule, 3);
    let _ = scene.succeed(0);
    let _ = scene.fail_saying(1, FailureCause::Exit(1), "busy");
    scene.at(60);
    let _ = scene.tell(&Input::Woke);
    let _ = scene.fail(2, FailureCause::Signal(15));
    let _ = scene.start();
    let records = scene.fail_saying(0, FailureCause::Exit(127), "no such program");
    assert_eq!(scene.came_to(), ("failed", Some(Reason::Permanent), [1, 1, 0]));
    let report = scene.report();
    assert_eq!(report.error.as_deref(), Some("exit status 127 (not found): no such program"));
    assert!(report.completion.is_some(), "that it fell short is said too");
    let Some(Event::Job(JobEvent::Failed(ended))) = records.last().map(|record| &record.event) else {
        panic!("{:?}", said(&records));
    };
    let error = ended.error.as_ref().map(|it| scene.job.texts.read(it));
    assert_eq!((ended.reason, error), (report.reason, report.error.as_deref()));
}

#[test]
fn dead_letters_of_a_step_below_its_minimum_are_redriven_and_make_up_for_it() {
    let mut scene = begun("best_effort_min_dcs: 2", 2);
    let _ = scene.succeed(0);
    let _ = scene.fail(1, FailureCause::Exit(1));
    let mut scene = scene.clone_at_its_end();
    assert_eq!(scene.came_to().0, "partial");
    let redrive = Input::Redrive { items: vec![StepId(0).item(1)], reduce: false };
    let _ = scene.tell(&redrive);
    let _ = scene.start();
    let _ = scene.crash_and_resume();
    let _ = scene.succeed(1);
    assert_eq!(scene.came_to(), ("completed", None, [2, 0, 0]));
}

#[test]
fn a_redrive_of_a_step_that_was_met_starts_nothing_that_it_went_without() {
    let mut scene = Scene::over(&map("best_effort_min_dcs: 1\n  max_parallel: 1"), 4);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    let _ = scene.start();
    let _ = scene.succeed(1);
    let mut scene = scene.clone_at_its_end();
    assert_eq!(scene.came_to(), ("completed", None, [1, 1, 0]));
    let _ = scene.tell(&Input::Redrive { items: vec![StepId(0).item(0)], reduce: false });
    assert_eq!(scene.ready(), [StepId(0).item(0)]);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    assert_eq!(scene.came_to().0, "completed", "the rule stays met");
    assert_eq!(missing(&scene).len(), 2);
}

#[test]
fn a_crash_at_every_record_comes_to_the_same_decision() {
    let mut scene = begun("best_effort_min_dcs: 2", 4);
    let _ = scene.fail(0, FailureCause::Exit(1));
    let _ = scene.succeed(1);
    let _ = scene.succeed(2);
    let _ = scene.fail(3, FailureCause::Signal(15));
    let _ = scene.start();
    let _ = scene.succeed(0);
    assert_eq!(scene.came_to(), ("completed", None, [2, 1, 0]));
    for count in scene.written.clone() {
        let mut other = scene.clone();
        other.journal.truncate(count);
        let _ = other.crash_and_resume();
        let reached = |scene: &Scene| {
            let records = scene.journal.iter();
            let records: Vec<Record> = records.map(|it| Record::decode(it).unwrap()).collect();
            decided(&records)
        };
        if other.job.steps[0].items.is_empty() {
            other.items(4);
        }
        while !other.job.stage.has_ended() {
            let _ = other.start();
            let (&start, &item) = other.job.starts.running.iter().next().unwrap();
            let fails = [0, 3].map(|index| StepId(0).item(index)).contains(&item);
            let failure = fails.then_some(FailureCause::Exit(1));
            let _ = other.end(AttemptEnd { start, failure, ..AttemptEnd::default() });
        }
        assert_eq!(other.came_to(), scene.came_to(), "cut after {count}");
        assert_eq!(reached(&other), reached(&scene));
    }
}

#[test]
fn without_best_effort_a_step_waits_for_everything() {
    let text = map("").replace("  best_effort: true\n", "");
    let mut scene = Scene::over(&text, 2);
    let _ = scene.start();
    assert_eq!(scene.next_wake(), None);
    let _ = scene.succeed(0);
    scene.at(10_000);
    assert_eq!(scene.hear(&Input::Woke), [""; 0]);
    let _ = scene.fail(1, FailureCause::Exit(1));
    let records: Vec<Record> = scene.journal.iter().map(|it| Record::decode(it).unwrap()).collect();
    assert_eq!(decided(&records), None);
    assert_eq!(scene.clone_at_its_end().came_to(), ("partial", Some(Reason::Attempts), [1, 1, 0]));
}

#[test]
fn a_map_without_items_is_completed() {
    let scene = begun("best_effort_min_dcs: 3", 0);
    assert_eq!(scene.clone_at_its_end().came_to(), ("completed", None, [0, 0, 0]));
}

#[test]
fn a_result_of_nobody_or_one_that_comes_twice_never_changes_what_is_counted() {
    for late in [false, true] {
        let mut scene = begun("best_effort_min_dcs: 2", 4);
        let first = scene.start_of(0);
        let _ = scene.succeed(0);
        if late {
            let _ = scene.succeed(1);
        }
        scene.pass(secs(1));
        let before = (digest(&scene.job), scene.journal.len());
        for start in [first, StartId(0), StartId(99), StartId(u64::MAX)] {
            for failure in [None, Some(FailureCause::Exit(1))] {
                let records = scene.end(AttemptEnd { start, failure, ..AttemptEnd::default() });
                assert_eq!(records, []);
            }
        }
        assert_eq!((digest(&scene.job), scene.journal.len()), before);
    }
}
