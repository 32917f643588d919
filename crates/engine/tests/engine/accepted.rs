//! Attempts that were taken on, and whose results come later.

use std::time::Duration;

use serde_json::json;
use undaunted_engine::breaker::AdmissionControl;
use undaunted_engine::effect::{next_wake, ready, wanted};
use undaunted_engine::event::{Event, ItemEvent, Record};
use undaunted_engine::id::{StartId, StepId};
use undaunted_engine::input::Input;
use undaunted_engine::job::{Job, JobStage};
use undaunted_engine::task::{TaskWork, ValueFiles, task};
use undaunted_engine::view::report;
use undaunted_policy::{FailureCause, Reason, Timestamp};

use crate::flows::{attribute, done, fail, start_of};
use crate::scene::{Scene, at, digest, fold};
use crate::spoken::said;

/// An async step over `n`, two at a time, each retried after a second; what else it says, and what
/// its `http` says.
fn flow(head: &str, http: &str, more: &str) -> Scene {
    Scene::of(&format!(
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
fn begun() -> Scene {
    let mut scene = flow("", ", completion_timeout: 60000", "");
    assert_eq!(scene.start().len(), 2);
    scene
}

fn accept(scene: &mut Scene, item: u32) -> Vec<Record> {
    let start = start_of(scene, StepId(0).item(item));
    scene.tell(&Input::Accepted { start })
}

/// How long the results of these records are waited for.
fn until(records: &[Record]) -> Timestamp {
    match records {
        [Record { event: Event::Item(ItemEvent::AttemptAccepted { until, .. }), .. }] => *until,
        _ => panic!("{records:?}"),
    }
}

#[test]
fn an_attempt_that_was_taken_on_runs_until_its_result_comes() {
    let mut scene = begun();
    scene.at(1);
    let records = accept(&mut scene, 0);
    assert_eq!(said(&records), ["attempt_accepted"]);
    assert_eq!(until(&records), at(61));
    assert!(scene.ready().is_empty(), "it holds its place");
    assert_eq!(scene.next_wake(), Some(at(61)));
    assert!(scene.hear(&Input::Suspend).is_empty(), "it runs");
    scene.at(60);
    assert!(scene.hear(&Input::Woke).is_empty());
    let records = said(&done(&mut scene, StepId(0).item(0), &json!({"x": 1})));
    assert_eq!(records, ["attempt_succeeded 0/0 0.1", "item_succeeded 0/0"]);
    assert!(scene.job.starts.accepted.is_empty());
    assert_eq!(scene.next_wake(), None);
    assert_eq!(scene.ready(), [StepId(0).item(2)]);
}

#[test]
fn a_result_is_waited_for_a_day_if_nothing_else_is_said() {
    let mut scene = flow("", "", "");
    let _ = scene.start();
    let day = Duration::from_hours(24);
    assert_eq!(until(&accept(&mut scene, 0)), scene.now.after(day));
}

#[test]
fn a_result_that_does_not_come_is_a_timeout_and_called_for_again_with_the_same_token() {
    let mut scene = begun();
    let made = |scene: &Scene| {
        let task = task(&scene.job, StepId(0).item(0), ValueFiles::default(), scene.now);
        let TaskWork::Call(call) = task.unwrap().unwrap().work else {
            panic!("it is no call");
        };
        call
    };
    let first = made(&scene);
    assert!(first.later);
    let _ = accept(&mut scene, 0);
    scene.now = scene.next_wake().unwrap();
    assert_eq!(scene.now, at(60));
    let records = scene.hear(&Input::Woke);
    assert_eq!(records[1..], ["attempt_failed 0/0 0.1 Timeout", "retry_scheduled 0/0 0.1 in 1s at +61s",]);
    assert!(scene.hear(&Input::Woke).is_empty(), "once");
    scene.at(61);
    // The other one still runs, and the third has its place.
    let _ = scene.start();
    let _ = done(&mut scene, StepId(0).item(1), &json!({}));
    let _ = scene.start();
    assert_eq!(scene.active(0).attempts, 2);
    assert_eq!(made(&scene), first);
    // Each attempt has its own time.
    assert_eq!(until(&accept(&mut scene, 0)), at(121));
}

#[test]
fn results_that_never_come_use_up_the_attempts() {
    let mut scene = flow("", ", completion_timeout: 60000", "");
    while scene.came_to().0 == "running" {
        let _ = scene.start();
        let running: Vec<StartId> = scene.job.starts.running.keys().copied().collect();
        for start in running {
            let _ = scene.tell(&Input::Accepted { start });
        }
        scene.now = scene.next_wake().unwrap();
        let _ = scene.tell(&Input::Woke);
    }
    let (status, reason, [succeeded, ..]) = scene.came_to();
    assert_eq!((status, reason), ("failed", Some(Reason::Attempts)));
    assert_eq!(succeeded, 0);
    assert!(scene.job.starts.accepted.is_empty());
}

#[test]
fn a_result_may_come_before_it_is_known_that_the_attempt_was_taken_on() {
    let mut scene = begun();
    let start = start_of(&scene, StepId(0).item(0));
    let _ = done(&mut scene, StepId(0).item(0), &json!({"x": 1}));
    assert!(scene.hear(&Input::Accepted { start }).is_empty());
    let other = start_of(&scene, StepId(0).item(1));
    let _ = fail(&mut scene, StepId(0).item(1), FailureCause::Status(503));
    assert!(scene.hear(&Input::Accepted { start: other }).is_empty());
    assert!(scene.hear(&Input::Accepted { start: StartId(99) }).is_empty());
    assert!(scene.job.starts.accepted.is_empty());
}

#[test]
fn what_is_told_twice_has_no_consequence() {
    let mut scene = begun();
    let start = start_of(&scene, StepId(0).item(0));
    let _ = accept(&mut scene, 0);
    scene.at(5);
    assert!(accept(&mut scene, 0).is_empty(), "its time stands");
    let _ = done(&mut scene, StepId(0).item(0), &json!({"x": 1}));
    let end = undaunted_engine::input::AttemptEnd {
        start,
        failure: Some(FailureCause::Refused),
        ..Default::default()
    };
    assert!(scene.end(end).is_empty());
}

#[test]
fn a_failure_that_comes_later_is_judged_as_one_that_comes_at_once() {
    let mut scene = begun();
    let _ = accept(&mut scene, 0);
    let records = said(&fail(&mut scene, StepId(0).item(0), FailureCause::Refused));
    assert_eq!(records[1], "attempt_failed 0/0 0.1 Refused");
    assert!(records.contains(&"item_dead_lettered 0/0 0.1: permanent".to_owned()), "{records:?}");
}

#[test]
fn the_deadline_of_the_job_bounds_the_wait() {
    let mut scene = flow("deadline: 30s", ", completion_timeout: 60000", "");
    let _ = scene.start();
    assert_eq!(until(&accept(&mut scene, 0)), at(30));
    scene.at(30);
    assert_eq!(scene.hear(&Input::Woke), ["job_stopping deadline"]);
    assert_eq!(scene.wanted().last().unwrap(), "end all");
    for item in [0, 1] {
        let _ = fail(&mut scene, StepId(0).item(item), FailureCause::Interrupted);
    }
    assert!(scene.job.starts.accepted.is_empty());
    let (status, reason, _) = scene.came_to();
    assert_eq!((status, reason), ("failed", Some(Reason::Deadline)));
}

#[test]
fn results_that_are_overdue_together_are_judged_one_after_the_other() {
    let mut scene = flow("retry_budget: 1\nretry_budget_per_workflow: 1", ", completion_timeout: 60000", "");
    let _ = scene.start();
    for item in [0, 1] {
        let _ = accept(&mut scene, item);
    }
    scene.at(60);
    let mut records = Vec::new();
    while scene.job.stage == JobStage::Running && scene.next_wake().is_some_and(|at| at <= scene.now) {
        records.extend(scene.hear(&Input::Woke));
    }
    let retried = records.iter().filter(|it| it.starts_with("retry_sched"));
    assert_eq!(retried.count(), 1, "{records:?}");
    assert_eq!(scene.report().reason, Some(Reason::JobBudgetExhausted));
}

#[test]
fn a_crash_changes_nothing_about_the_wait() {
    let mut scene = begun();
    scene.at(1);
    let _ = accept(&mut scene, 0);
    let before = scene.job.starts.accepted.clone();
    scene.at(40);
    let _ = scene.crash_and_resume();
    assert_eq!(scene.job.starts.accepted, before);
    assert_eq!(scene.next_wake(), Some(at(61)));
    let _ = done(&mut scene, StepId(0).item(0), &json!({"x": 1}));
    assert_eq!(scene.counted().0, 2, "nothing was begun again");
    // One whose time has passed meanwhile is over at once.
    let mut scene = begun();
    let _ = accept(&mut scene, 0);
    scene.at(1000);
    let mut records = said(&scene.crash_and_resume());
    records.extend(scene.hear(&Input::Woke));
    assert!(records.contains(&"attempt_failed 0/0 0.1 Timeout".to_owned()), "{records:?}");
}

/// Runs to the end: everything is taken on, some results never come, and once somebody dies.
fn story() -> Scene {
    let mut scene = begun();
    let mut number = 0_u32;
    while !scene.job.stage.has_ended() {
        let _ = scene.start();
        let Some((&start, &item)) = scene.job.starts.running.first_key_value() else {
            scene.now = scene.next_wake().unwrap();
            continue;
        };
        number += 1;
        let _ = scene.tell(&Input::Accepted { start });
        if number == 2 {
            let _ = scene.crash_and_resume();
        }
        if number.is_multiple_of(3) {
            scene.now = scene.next_wake().unwrap();
            let _ = scene.tell(&Input::Woke);
        } else {
            let _ = done(&mut scene, item, &json!({"x": item.index}));
        }
    }
    assert_eq!(scene.came_to(), ("completed", None, [3, 0, 0]));
    scene
}

#[test]
fn at_every_record_the_journal_comes_to_the_state_and_the_wishes_of_the_live_one() {
    let journal = story().journal;
    let records = journal.iter().map(|it| Record::decode(it).unwrap());
    let records: Vec<Record> = records.collect();
    let mut live = Job::begin(&records[0]).unwrap();
    for (count, record) in (1_usize..).zip(&records).skip(1) {
        live.apply(record);
        let found = fold(&journal[..count]);
        assert_eq!(digest(&found), digest(&live));
        assert_eq!(found.starts.accepted, live.starts.accepted);
        assert_eq!(wanted(&found), wanted(&live));
        let admission = AdmissionControl::default();
        let startable = |job: &Job| ready(job, &admission, record.at);
        assert_eq!(startable(&found), startable(&live));
        assert_eq!(next_wake(&found, record.at), next_wake(&live, record.at));
        assert_eq!(report(&found), report(&live));
    }
}

#[test]
fn it_goes_on_from_wherever_its_journal_was_cut() {
    let whole = story();
    let cuts = whole.written.iter();
    for &count in cuts.filter(|count| **count < whole.journal.len()) {
        let mut scene = whole.clone();
        scene.cut(count);
        let waited_for = scene.job.starts.accepted.clone();
        let _ = scene.tell(&Input::Resume { seen: None });
        assert_eq!(scene.job.starts.accepted, waited_for, "cut at {count}");
        for _ in 0..20 {
            let _ = scene.start();
            let Some(&item) = scene.job.starts.running.values().next() else {
                match scene.next_wake() {
                    Some(due) => scene.now = due,
                    None => break,
                }
                continue;
            };
            let _ = done(&mut scene, item, &json!({"x": item.index}));
        }
        assert_eq!(scene.came_to().0, "completed", "cut at {count}");
        let expected = json!([{"n": 1, "x": 0}, {"n": 2, "x": 1}, {"n": 3, "x": 2}]);
        assert_eq!(attribute(&scene, "x"), expected, "cut at {count}");
    }
}

#[test]
fn whoever_takes_an_attempt_on_is_there_and_what_comes_of_it_says_no_more() {
    let mut scene = flow("", "", "    breaker: true");
    let _ = scene.start();
    let _ = accept(&mut scene, 0);
    let breaker = |scene: &Scene| {
        let name = scene.job.breakers().first().unwrap().clone();
        scene.breaker(&name).clone()
    };
    assert_eq!(breaker(&scene).failures(), 0);
    let until = *scene.job.starts.accepted.values().next().unwrap();
    scene.now = until;
    let _ = scene.tell(&Input::Woke);
    assert_eq!(breaker(&scene).failures(), 0, "it answered");
    assert!(breaker(&scene).probe.is_none());
}
