//! What was used up before a job was made is used up in it, and nothing that does not fit gets in.

use std::collections::BTreeMap;

use serde_json::json;
use undaunted_engine::event::{Event, JobEvent, Record};
use undaunted_engine::id::{ItemId, StepId};
use undaunted_engine::input::Input;
use undaunted_engine::job::{Job, JobStage};
use undaunted_engine::law::{violations_by_record, violations_in_state};
use undaunted_engine::state_file::shape::RetryCheckpointState;
use undaunted_engine::state_file::{ImportError, ImportedState, export, import};
use undaunted_engine::view::history::{Histories, History};
use undaunted_engine::view::rfc3339;
use undaunted_policy::{FailureCause, Reason};

use crate::scene::{Scene, at, secs};

const LIST: &str = "
- {id: a, shell: a, retry_config: {attempts: 3, retry_budget: 1m}}
- {id: b, shell: b, retry_config: {attempts: 3, initial_delay: 5s}}
";
const MAP: &str = "
mode: mapreduce
map:
  input: a.json
  max_parallel: 2
  error_policy: {retry_config: {attempts: 3}}
  agent_template: [{id: get, shell: a}, {id: put, shell: b}]
";

fn state(commands: &serde_json::Value) -> RetryCheckpointState {
    serde_json::from_value(json!({ "command_retry_states": commands })).unwrap()
}

/// The job as it is before anything has happened to it.
fn submitted(text: &str) -> Scene {
    let mut scene = Scene::of(text);
    scene.journal.truncate(1);
    let first = Record::decode(&scene.journal[0]).unwrap();
    scene.job = Job::begin(&first).unwrap();
    scene
}

fn told(text: &str, commands: &serde_json::Value) -> Result<ImportedState, ImportError> {
    import(&state(commands), &submitted(text).job)
}

/// A job that was imported, suspended and resumed.
pub(crate) fn resumed(text: &str, commands: &serde_json::Value) -> Scene {
    let mut scene = submitted(text);
    let imported = import(&state(commands), &scene.job).unwrap();
    for event in [imported.event, Event::Job(JobEvent::Suspended)] {
        let record = Record { at: scene.now, event };
        assert_eq!(violations_by_record(&scene.job, &record), []);
        scene.job.apply(&record);
        assert_eq!(violations_in_state(&scene.job), []);
        scene.journal.push(record.encode());
    }
    assert_eq!(scene.job.stage, JobStage::Suspended);
    let _ = scene.tell(&Input::Resume { seen: None });
    scene
}

#[test]
fn attempts_and_delays_are_used_up_and_a_pending_retry_keeps_its_time() {
    let due = rfc3339(at(20));
    let mut scene = resumed(
        LIST,
        &json!({ "a": {
            "attempt_count": 2, "max_attempts": 4, "next_retry_at": due,
            "backoff_state": { "current_delay": "2s" },
            "retry_history": [
                { "attempt_number": 1, "success": false, "error": "x" },
                { "attempt_number": 2, "success": false, "error": "y", "backoff_applied": "1s" },
            ],
        } }),
    );
    let active = scene.active(0);
    assert_eq!((active.attempts, active.progress().retries), (2, 2));
    assert_eq!(active.progress().spent, secs(3));
    assert_eq!(scene.next_wake(), Some(at(20)));
    assert_eq!(scene.ready(), []);
    scene.at(20);
    let _ = scene.start();
    assert_eq!(scene.active(0).attempts, 3);
    let _ = scene.fail(0, FailureCause::Exit(1));
    assert_eq!(scene.active(0).progress().spent, secs(7), "1s, 2s and 4s");
    scene.at(30);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    assert_eq!(scene.came_to().0, "failed", "4 attempts, 2 of them here");
    assert_eq!(scene.counted().0, 2);
}

#[test]
fn a_retry_that_is_pending_survives_a_crash_as_any_other() {
    let due = rfc3339(at(20));
    let told = json!({ "a": {
        "attempt_count": 1, "next_retry_at": due, "backoff_state": { "current_delay": "30s" },
    } });
    let mut scene = resumed(LIST, &told);
    scene.at(5);
    let _ = scene.crash_and_resume();
    assert_eq!(scene.next_wake(), Some(at(20)));
    assert_eq!(scene.active(0).progress().spent, secs(30));
}

#[test]
fn a_command_whose_attempts_are_used_up_stops_without_another() {
    let told = json!({ "a": {
        "attempt_count": 4, "retry_history": [{ "attempt_number": 4, "error": "no route" }],
    } });
    let mut scene = resumed(LIST, &told);
    let _ = scene.start();
    assert_eq!(scene.came_to(), ("failed", Some(Reason::Attempts), [0, 1, 0]));
    assert_eq!(scene.counted().0, 0);
    assert_eq!(
        scene.report().error.as_deref(),
        Some("All attempts used before the state was imported (4 attempts); last error: no route")
    );
}

#[test]
fn items_of_a_map_take_their_state_by_name_and_the_others_start_in_order() {
    let due = rfc3339(at(9));
    let told = json!({
        "a1/get": { "attempt_count": 3, "next_retry_at": due },
        "a0/put": { "attempt_count": 2 },
        "zz/put": { "attempt_count": 1 },
    });
    let mut scene = resumed(MAP, &told);
    scene.items(4);
    assert_eq!(scene.ready(), [StepId(0).item(0), StepId(0).item(2)], "a1 waits for its time");
    let _ = scene.start();
    let _ = scene.succeed(0);
    assert_eq!(scene.active(0).attempts, 2, "of `put`");
    scene.at(9);
    let _ = scene.start();
    assert_eq!(scene.active(0).attempts, 3);
    for _ in ["get", "put"] {
        let _ = scene.succeed(2);
        let _ = scene.start();
    }
    assert_eq!(scene.active(1).attempts, 4);
    let _ = scene.succeed(0);
    let _ = scene.fail(1, FailureCause::Exit(1));
    while !scene.job.stage.has_ended() {
        let _ = scene.start();
        let item = scene.job.starts.running.values().next().unwrap();
        let _ = scene.succeed(item.index);
    }
    assert_eq!(scene.came_to(), ("partial", Some(Reason::Attempts), [3, 1, 0]));
}

#[test]
fn what_does_not_fit_is_refused_and_says_why() {
    let said = |text: &str, commands: &serde_json::Value| told(text, commands).unwrap_err().to_string();
    let due = rfc3339(at(9));
    for (commands, why) in [
        (json!({ "c": {} }), "`c` names the command `c`, which the workflow does not have"),
        (json!({ "x/a": {} }), "`x/a` names an item, and `a` is not a command of the map"),
        (json!({ "a": { "attempt_count": 5 } }), "`a` has made 5 attempts, and the workflow allows 4"),
        (
            json!({ "a": { "attempt_count": 4, "next_retry_at": due } }),
            "`a` has a retry pending, and all of its 4 attempts are made",
        ),
        (
            json!({ "a": { "attempt_count": 1, "retry_history": [{}, {}] } }),
            "`a` has made 1 attempts and lists 2",
        ),
        (
            json!({ "a": { "attempt_count": 2, "delay_spent": "2m" } }),
            "`a` has waited 120s, and its retry budget is 60s",
        ),
        (
            json!({ "a": { "backoff_state": { "strategy": { "Custom": { "formula": "2*n" } } } } }),
            "`a` has the strategy `Custom` with the formula `2*n`, and formulas are not read",
        ),
        (
            json!({ "a": { "is_circuit_broken": true } }),
            "`a` is kept back by a circuit breaker, and the workflow gives it none",
        ),
    ] {
        assert_eq!(said(LIST, &commands), why);
    }
    assert_eq!(
        said(MAP, &json!({ "get": {} })),
        "`get` is a command of the map; its state belongs to an item: `ITEM/get`"
    );
}

#[test]
fn missing_fields_are_what_the_workflow_would_have_done() {
    let imported = told(LIST, &json!({ "b": { "attempt_count": 3 } })).unwrap();
    assert_eq!((imported.commands, imported.pending), (1, 0));
    let Event::Job(JobEvent::StateImported { commands }) = imported.event else {
        panic!("{:?}", imported.event);
    };
    assert_eq!(commands[0].spent, secs(15), "5s and 10s");
    let nothing = serde_json::from_str::<RetryCheckpointState>("{}").unwrap();
    let imported = import(&nothing, &submitted(LIST).job).unwrap();
    assert_eq!(imported.commands, 0);
}

#[test]
fn what_had_succeeded_is_run_again_and_somebody_is_told() {
    let told = told(
        LIST,
        &json!({ "a": {
            "attempt_count": 1, "max_attempts": 9,
            "retry_history": [{ "attempt_number": 1, "success": true }],
        }, "b": { "attempt_count": 1, "max_attempts": 9 } }),
    );
    let told = told.unwrap();
    assert_eq!(told.commands, 1);
    assert_eq!(
        told.notes,
        [
            "`a` had succeeded; it is run again, because its output is not in the file",
            "`b` was allowed 9 attempts; the workflow allows 4, and that holds",
        ]
    );
}

fn histories(scene: &Scene) -> BTreeMap<ItemId, History> {
    let mut histories = Histories::of_all();
    let records = scene.journal.iter().map(|it| Record::decode(it).unwrap());
    let mut job: Option<Job> = None;
    for record in records {
        match &mut job {
            Some(job) => job.apply(&record),
            None => job = Some(Job::begin(&record).unwrap()),
        }
        histories.take(job.as_ref().unwrap(), &record);
    }
    histories.items
}

#[test]
fn what_is_exported_and_imported_is_the_same() {
    let mut scene = Scene::over(MAP, 3);
    let _ = scene.start();
    let _ = scene.fail_saying(0, FailureCause::Exit(1), "no route");
    let _ = scene.succeed(1);
    scene.at(1);
    let _ = scene.start();
    let _ = scene.fail_saying(0, FailureCause::Exit(1), "no route to host");
    let exported = export(&scene.job, &scene.admission, &histories(&scene));
    let keys: Vec<&str> = exported.command_retry_states.keys().map(String::as_str).collect();
    assert_eq!(keys, ["a0/get", "a1/get", "a1/put"]);
    let first = &exported.command_retry_states["a0/get"];
    assert_eq!((first.attempt_count, first.max_attempts), (Some(2), Some(4)));
    let text = serde_json::to_string(&exported).unwrap();
    let read: RetryCheckpointState = serde_json::from_str(&text).unwrap();
    assert_eq!(read, exported);
    let imported = import(&read, &submitted(MAP).job).unwrap();
    let Event::Job(JobEvent::StateImported { commands }) = imported.event else {
        panic!("{:?}", imported.event);
    };
    let active = scene.active(0);
    assert_eq!(commands[0].attempts, active.attempts);
    assert_eq!(commands[0].retries, active.progress().retries);
    assert_eq!(commands[0].spent, active.progress().spent);
    assert_eq!(commands[0].previous, active.progress().previous);
    assert_eq!(commands[0].due, scene.next_wake());
}

#[test]
fn what_was_imported_is_exported_before_any_item_has_turned_to_it() {
    let commands = serde_json::json!({"a0/get": {"command_id": "get", "attempt_count": 2}});
    let mut scene = submitted(MAP);
    let imported = import(&state(&commands), &scene.job).unwrap();
    scene.job.apply(&undaunted_engine::event::Record { at: scene.now, event: imported.event });
    let exported = export(&scene.job, &scene.admission, &BTreeMap::new());
    let found = &exported.command_retry_states["a0/get"];
    assert_eq!(found.attempt_count, Some(2));
}
