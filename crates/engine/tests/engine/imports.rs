//! Imported state: used-up attempts and delays count, and state that does not fit is refused.

use std::collections::BTreeMap;

use serde_json::json;
use undaunted_engine::event::{Event, JobEvent, Record};
use undaunted_engine::id::ItemId;
use undaunted_engine::job::{Job, JobStage};
use undaunted_engine::law::{violations_by_record, violations_in_state};
use undaunted_engine::state_file::shape::RetryCheckpointState;
use undaunted_engine::state_file::{ImportError, ImportedState, export, import};
use undaunted_engine::view::history::{Histories, History};
use undaunted_engine::view::rfc3339;
use undaunted_policy::Reason;

use crate::fixture::{EXIT_1, TestedJob, at, item_at, secs};

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

/// A job with its submission only.
fn submitted(text: &str) -> TestedJob {
    let mut test = TestedJob::of(text);
    test.journal.truncate(1);
    let first = Record::decode(&test.journal[0]).unwrap();
    test.job = Job::begin(&first).unwrap();
    test
}

fn imported(text: &str, commands: &serde_json::Value) -> Result<ImportedState, ImportError> {
    import(&state(commands), &submitted(text).job)
}

/// A job that was imported, suspended and resumed.
pub(crate) fn resumed(text: &str, commands: &serde_json::Value) -> TestedJob {
    let mut test = submitted(text);
    let imported = import(&state(commands), &test.job).unwrap();
    for event in [imported.event, Event::Job(JobEvent::Suspended)] {
        let record = Record { at: test.now, event };
        assert_eq!(violations_by_record(&test.job, &record), []);
        test.job.apply(&record);
        assert_eq!(violations_in_state(&test.job), []);
        test.journal.push(record.encode());
    }
    assert_eq!(test.job.stage, JobStage::Suspended);
    test.resume(None);
    test
}

#[test]
fn imported_attempts_and_delays_are_used_up_and_a_pending_retry_keeps_its_due_time() {
    let due = rfc3339(at(20));
    let mut test = resumed(
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
    let active = test.active(0);
    assert_eq!((active.attempts, active.progress().retries), (2, 2));
    assert_eq!(active.progress().spent, secs(3));
    assert_eq!(test.next_wake(), Some(at(20)));
    assert_eq!(test.ready(), []);
    test.at(20).start();
    assert_eq!(test.active(0).attempts, 3);
    test.fail(0, EXIT_1);
    assert_eq!(test.active(0).progress().spent, secs(7), "1s, 2s and 4s");
    assert_eq!(test.at(30).start().fail(0, EXIT_1).outcome().0, "failed", "4 attempts, 2 of them here");
    assert_eq!(test.attempts(), 2);
}

#[test]
fn an_imported_pending_retry_survives_a_crash() {
    let due = rfc3339(at(20));
    let state = json!({ "a": {
        "attempt_count": 1, "next_retry_at": due, "backoff_state": { "current_delay": "30s" },
    } });
    let mut test = resumed(LIST, &state);
    test.at(5).crash_and_resume();
    assert_eq!(test.next_wake(), Some(at(20)));
    assert_eq!(test.active(0).progress().spent, secs(30));
}

#[test]
fn an_imported_command_without_attempts_left_stops() {
    let state = json!({ "a": {
        "attempt_count": 4, "retry_history": [{ "attempt_number": 4, "error": "no route" }],
    } });
    let mut test = resumed(LIST, &state);
    assert_eq!(test.start().outcome(), ("failed", Some(Reason::Attempts), [0, 1, 0]));
    assert_eq!(test.attempts(), 0);
    assert_eq!(
        test.report().error.as_deref(),
        Some("All attempts used before the state was imported (4 attempts); last error: no route")
    );
}

#[test]
fn imported_state_belongs_to_items_by_name() {
    let due = rfc3339(at(9));
    let state = json!({
        "a1/get": { "attempt_count": 3, "next_retry_at": due },
        "a0/put": { "attempt_count": 2 },
        "zz/put": { "attempt_count": 1 },
    });
    let mut test = resumed(MAP, &state);
    test.items(4);
    assert_eq!(test.ready(), [item_at(0), item_at(2)], "a1 waits for its time");
    test.start().succeed(0);
    assert_eq!(test.active(0).attempts, 2, "of `put`");
    test.at(9).start();
    assert_eq!(test.active(0).attempts, 3);
    for _ in ["get", "put"] {
        test.succeed(2).start();
    }
    assert_eq!(test.active(1).attempts, 4);
    test.succeed(0).fail(1, EXIT_1);
    while !test.job.stage.has_ended() {
        test.start();
        let item = test.job.starts.running.values().next().unwrap();
        test.succeed(item.index);
    }
    assert_eq!(test.outcome(), ("partial", Some(Reason::Attempts), [3, 1, 0]));
}

#[test]
fn state_that_does_not_fit_is_refused_with_the_reason() {
    let refused =
        |text: &str, commands: &serde_json::Value| imported(text, commands).unwrap_err().to_string();
    let due = rfc3339(at(9));
    for (commands, why) in [
        (json!({ "c": {} }), "`c` names the command `c`, but the workflow has no such command"),
        (json!({ "x/a": {} }), "`x/a` names an item, but `a` is not a command of the map"),
        (json!({ "a": { "attempt_count": 5 } }), "`a` has made 5 attempts, but the workflow allows only 4"),
        (
            json!({ "a": { "attempt_count": 4, "next_retry_at": due } }),
            "`a` has a pending retry, but all of its 4 attempts are used",
        ),
        (
            json!({ "a": { "attempt_count": 1, "retry_history": [{}, {}] } }),
            "`a` has an attempt count of 1, but lists 2 attempts",
        ),
        (
            json!({ "a": { "attempt_count": 2, "delay_spent": "2m" } }),
            "`a` has spent 120s on delays, but its retry budget is 60s",
        ),
        (
            json!({ "a": { "backoff_state": { "strategy": { "Custom": { "formula": "2*n" } } } } }),
            "`a` has the strategy `Custom` with the formula `2*n`; formulas are not supported",
        ),
        (
            json!({ "a": { "is_circuit_broken": true } }),
            "`a` is held by a circuit breaker, but the workflow gives it none",
        ),
    ] {
        assert_eq!(refused(LIST, &commands), why);
    }
    assert_eq!(
        refused(MAP, &json!({ "get": {} })),
        "`get` is a command of the map; its state must name an item: `ITEM/get`"
    );
}

#[test]
fn missing_fields_are_computed_from_the_workflow() {
    let imported = imported(LIST, &json!({ "b": { "attempt_count": 3 } })).unwrap();
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
fn a_succeeded_command_is_run_again_and_noted() {
    let imported = imported(
        LIST,
        &json!({ "a": {
            "attempt_count": 1, "max_attempts": 9,
            "retry_history": [{ "attempt_number": 1, "success": true }],
        }, "b": { "attempt_count": 1, "max_attempts": 9 } }),
    );
    let imported = imported.unwrap();
    assert_eq!(imported.commands, 1);
    assert_eq!(
        imported.notes,
        [
            "`a` had succeeded; it runs again, because its output is not in the file",
            "`b` was allowed 9 attempts; the 4 attempts of the workflow apply",
        ]
    );
}

fn histories(test: &TestedJob) -> BTreeMap<ItemId, History> {
    let mut histories = Histories::of_all();
    let records = test.journal.iter().map(|it| Record::decode(it).unwrap());
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
fn exported_state_is_imported_unchanged() {
    let mut test = TestedJob::started_over(MAP, 3);
    test.fail_with(0, EXIT_1, "no route").succeed(1).at(1).start();
    test.fail_with(0, EXIT_1, "no route to host");
    let exported = export(&test.job, &test.admission, &histories(&test));
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
    let active = test.active(0);
    assert_eq!(commands[0].attempts, active.attempts);
    assert_eq!(commands[0].retries, active.progress().retries);
    assert_eq!(commands[0].spent, active.progress().spent);
    assert_eq!(commands[0].previous, active.progress().previous);
    assert_eq!(commands[0].due, test.next_wake());
}

#[test]
fn imported_state_is_exported_before_its_items_are_read() {
    let commands = serde_json::json!({"a0/get": {"command_id": "get", "attempt_count": 2}});
    let mut test = submitted(MAP);
    let imported = import(&state(&commands), &test.job).unwrap();
    test.job.apply(&undaunted_engine::event::Record { at: test.now, event: imported.event });
    let exported = export(&test.job, &test.admission, &BTreeMap::new());
    let found = &exported.command_retry_states["a0/get"];
    assert_eq!(found.attempt_count, Some(2));
}
