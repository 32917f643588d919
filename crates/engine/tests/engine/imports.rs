//! Imported state: used-up attempts and delays count, and state that does not fit is refused.

use serde_json::json;
use undaunted_engine::breaker::{BreakerFact, BreakerRecord, BreakerState, TargetSignal};
use undaunted_engine::event::{Event, JobEvent, Record, StepEvent};
use undaunted_engine::job::{Job, JobStage, Plans};
use undaunted_engine::law::{violations_by_record, violations_in_state};
use undaunted_engine::state_file::shape::{CircuitBreakerState, CommandRetryState, RetryCheckpointState};
use undaunted_engine::state_file::{ExportedPast, ImportError, ImportedState, export, import};
use undaunted_engine::task::correlation_id;
use undaunted_engine::view::history::Histories;
use undaunted_engine::view::rfc3339;
use undaunted_policy::{Admission, Reason};

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
    import(&state(commands), &submitted(text).job, None)
}

/// A job that was imported, suspended and resumed.
pub(crate) fn resumed(text: &str, commands: &serde_json::Value) -> TestedJob {
    let mut test = submitted(text);
    resume_with(&mut test, &state(commands));
    test
}

/// A job of this text, to which the exported state was given.
fn reimported(text: &str, exported: &RetryCheckpointState) -> TestedJob {
    let mut test = submitted(text);
    take(&mut test, exported);
    test
}

fn resume_with(test: &mut TestedJob, state: &RetryCheckpointState) {
    take(test, state);
    assert_eq!(test.job.stage, JobStage::Suspended);
    test.resume(None);
}

fn take(test: &mut TestedJob, state: &RetryCheckpointState) {
    let imported = import(state, &test.job, None).unwrap();
    for event in [imported.event, Event::Job(JobEvent::Suspended)] {
        let record = Record { at: test.now, event };
        assert_eq!(violations_by_record(&test.job, &record), []);
        test.job.apply(&record);
        assert_eq!(violations_in_state(&test.job), []);
        test.journal.push(record.encode());
    }
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
    let Event::Job(JobEvent::StateImported { commands, .. }) = imported.event else {
        panic!("{:?}", imported.event);
    };
    assert_eq!(commands[0].spent, secs(15), "5s and 10s");
    let nothing = serde_json::from_str::<RetryCheckpointState>("{}").unwrap();
    let imported = import(&nothing, &submitted(LIST).job, None).unwrap();
    assert_eq!(imported.commands, 0);
}

#[test]
fn the_bound_of_the_workflow_applies_and_is_noted() {
    let imported = imported(LIST, &json!({ "b": { "attempt_count": 1, "max_attempts": 9 } })).unwrap();
    assert_eq!(imported.notes, ["`b` was allowed 9 attempts; the 4 of the workflow apply"]);
    let unlimited = u32::MAX;
    let imported = self::imported(LIST, &json!({ "b": { "attempt_count": 1, "max_attempts": unlimited } }));
    assert_eq!(imported.unwrap().notes, [""; 0]);
}

#[test]
fn a_succeeded_command_does_not_run_again() {
    let state = json!({
        "a": { "attempt_count": 1, "retry_history": [{ "attempt_number": 1, "success": true }] },
        "b": { "attempt_count": 1 },
    });
    let imported = imported(LIST, &state).unwrap();
    assert_eq!((imported.commands, imported.succeeded, imported.notes), (2, 1, vec![]));
    let mut test = resumed(LIST, &state);
    assert_eq!(test.start().attempts(), 1);
    assert_eq!(test.active(0).attempts, 2, "of `b`");
    assert_eq!(test.succeed(0).outcome(), ("completed", None, [2, 0, 0]));
}

#[test]
fn succeeded_items_of_a_map_count_and_their_later_commands_run() {
    let done = |attempt| json!({ "attempt_count": attempt, "retry_history": [{ "success": true }] });
    let due = rfc3339(at(9));
    let state = json!({
        "a0/get": done(2), "a0/put": done(1),
        "a1/get": done(1),
        "a2/get": done(1), "a2/put": { "attempt_count": 1, "next_retry_at": due },
        "a3/put": done(3),
    });
    let mut test = resumed(MAP, &state);
    test.items(5);
    assert_eq!(test.job.steps[0].succeeded, 1, "a0");
    assert_eq!(test.ready(), [item_at(1), item_at(3)], "a1 is at `put`, a2 waits, a3 is next");
    test.start();
    assert_eq!(test.attempts(), 2);
    test.succeed(1).succeed(3);
    assert_eq!(test.job.steps[0].succeeded, 3, "a3 needs no `put`");
    test.at(9).start();
    assert_eq!(test.active(2).attempts, 2, "of `put`");
    test.succeed(2).succeed(4).start();
    assert_eq!(test.succeed(4).outcome(), ("completed", None, [5, 0, 0]));
    assert_eq!(test.attempts(), 5);
}

#[test]
fn a_success_may_be_an_execution_only_and_the_last_one_counts() {
    let ran = |command: &str, attempt: u32, second: u64, success: bool| {
        let at = rfc3339(at(second));
        json!({ "command_id": command, "attempt_number": attempt, "executed_at": at, "success": success })
    };
    let state = |executions: serde_json::Value| {
        let state = json!({ "retry_execution_history": executions });
        serde_json::from_value::<RetryCheckpointState>(state).unwrap()
    };
    let mut test = submitted(LIST);
    resume_with(&mut test, &state(json!([ran("a", 2, 5, true), ran("a", 1, 3, false)])));
    assert_eq!(test.start().active(0).command.0, 1, "`b` is next");
    let mut test = submitted(LIST);
    resume_with(&mut test, &state(json!([ran("a", 1, 3, true), ran("a", 1, 5, false)])));
    assert_eq!(test.start().active(0).command.0, 0);
    let unknown = state(json!([ran("c", 1, 3, true)]));
    let refused = import(&unknown, &submitted(LIST).job, None).unwrap_err();
    assert_eq!(refused.to_string(), "`c` names the command `c`, but the workflow has no such command");
}

#[test]
fn state_of_items_that_the_input_does_not_have_is_refused_or_a_warning() {
    let items = ["a0", "a1"].map(str::to_owned).into();
    let state = state(&json!({ "a0/get": { "attempt_count": 1 }, "zz/put": { "attempt_count": 1 } }));
    let refused = import(&state, &submitted(MAP).job, Some(&items)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "`zz/put` names the item `zz`, but the input of the map has no such item"
    );
    let mut test = submitted(MAP);
    resume_with(&mut test, &state);
    test.items(2);
    let read = Record::decode(test.journal.last().unwrap()).unwrap();
    let Event::Step(StepEvent::ItemsRead { warning, .. }) = read.event else { panic!("{read:?}") };
    let said = "the imported state names items that the input does not have: `zz`";
    assert_eq!(warning.as_deref(), Some(said));
}

#[test]
fn correlation_ids_are_kept_whether_the_file_names_items_or_commands() {
    let known = |ids: serde_json::Value| {
        let state = json!({ "retry_correlation_map": ids });
        serde_json::from_value::<RetryCheckpointState>(state).unwrap()
    };
    let mut test = submitted(MAP);
    resume_with(&mut test, &known(json!({ "a0": "first", "a1/put": "second" })));
    test.items(3).crash_and_resume();
    let ids = [0, 1].map(|index| correlation_id(&test.job, item_at(index)));
    assert_eq!(ids, ["first", "second"]);
    assert_eq!(correlation_id(&test.job, item_at(2)).len(), 36, "an id of our own");
    let restored = Job::restore(&test.job.save(), &Plans::default()).unwrap();
    assert_eq!(correlation_id(&restored, item_at(1)), "second");
    for wrong in ["", "a\nb", "é", "\u{7f}"] {
        let refused = import(&known(json!({ "a0": wrong })), &submitted(MAP).job, None).unwrap_err();
        assert!(matches!(refused, ImportError::Correlation { .. }), "{refused}");
    }
}

#[test]
fn only_objects_are_read_as_objects_and_null_is_nothing() {
    for wrong in [
        "[]",
        "[{}]",
        "null",
        "\"x\"",
        "{\"command_retry_states\": {\"a\": [\"a\", 1]}}",
        "{\"command_retry_states\": {\"a\": {\"retry_history\": [[1]]}}}",
        "{\"circuit_breaker_states\": {\"a\": [\"Open\"]}}",
    ] {
        let error = serde_json::from_str::<RetryCheckpointState>(wrong).unwrap_err().to_string();
        assert!(error.contains("expected an object at line 1 column "), "{wrong}: {error}");
    }
    let nulls = json!({
        "command_retry_states": { "a": {
            "command_id": null, "attempt_count": null, "max_attempts": null, "last_attempt_at": null,
            "next_retry_at": null, "backoff_state": null, "retry_history": null,
            "current_strategy": null, "is_circuit_broken": null, "delay_spent": null,
        } },
        "global_retry_config": null, "retry_execution_history": null, "circuit_breaker_states": null,
        "retry_correlation_map": null,
    });
    let read: RetryCheckpointState = serde_json::from_value(nulls).unwrap();
    assert_eq!(read.command_retry_states["a"], CommandRetryState::default());
    let all_null = json!({
        "command_retry_states": null, "retry_execution_history": [], "circuit_breaker_states": {},
    });
    assert_eq!(
        serde_json::from_value::<RetryCheckpointState>(all_null).unwrap(),
        RetryCheckpointState::default()
    );
}

fn exported(test: &TestedJob) -> RetryCheckpointState {
    let mut histories = Histories::of_all();
    let mut past = ExportedPast::default();
    let records = test.journal.iter().map(|it| Record::decode(it).unwrap());
    let mut job: Option<Job> = None;
    for record in records {
        match &mut job {
            Some(job) => job.apply(&record),
            None => job = Some(Job::begin(&record).unwrap()),
        }
        histories.take(job.as_ref().unwrap(), &record);
        past.take(job.as_ref().unwrap(), &record);
    }
    export(&test.job, &test.admission, &histories.items, &past)
}

#[test]
fn exported_state_is_imported_unchanged() {
    let mut test = TestedJob::started_over(MAP, 3);
    test.fail_with(0, EXIT_1, "no route").succeed(1).at(1).start();
    test.fail_with(0, EXIT_1, "no route to host");
    let exported = exported(&test);
    let keys: Vec<&str> = exported.command_retry_states.keys().map(String::as_str).collect();
    assert_eq!(keys, ["a0/get", "a1/get", "a1/put"]);
    let first = &exported.command_retry_states["a0/get"];
    assert_eq!((first.attempt_count, first.max_attempts), (Some(2), Some(4)));
    let text = serde_json::to_string(&exported).unwrap();
    let read: RetryCheckpointState = serde_json::from_str(&text).unwrap();
    assert_eq!(read, exported);
    let imported = import(&read, &submitted(MAP).job, None).unwrap();
    let Event::Job(JobEvent::StateImported { commands, .. }) = imported.event else {
        panic!("{:?}", imported.event);
    };
    let active = test.active(0);
    assert_eq!(commands[0].attempts, active.attempts);
    assert_eq!(commands[0].retries, active.progress().retries);
    assert_eq!(commands[0].spent, active.progress().spent);
    assert_eq!(commands[0].previous, active.progress().previous);
    assert_eq!(commands[0].due, test.next_wake());
    let again = reimported(MAP, &read);
    assert_eq!(self::exported(&again), read, "whatever was imported is exported");
}

#[test]
fn imported_state_is_exported_before_its_items_are_read() {
    let commands = serde_json::json!({"a0/get": {"command_id": "get", "attempt_count": 2}});
    let mut test = submitted(MAP);
    take(&mut test, &state(&commands));
    let exported = exported(&test);
    let found = &exported.command_retry_states["a0/get"];
    assert_eq!(found.attempt_count, Some(2));
}

#[test]
fn what_was_imported_is_exported_with_what_was_done_since() {
    let mut test = TestedJob::started_over(MAP, 3);
    test.fail_with(0, EXIT_1, "no route").succeed(1).at(1).start();
    test.fail_with(0, EXIT_1, "no route to host").start().succeed(1).start();
    let first = exported(&test);
    let ran = |state: &RetryCheckpointState| -> Vec<(String, u32, bool)> {
        let executions = state.retry_execution_history.iter();
        executions.map(|it| (it.command_id.clone(), it.attempt_number, it.success)).collect()
    };
    let of = |command: &str, attempt, success| (command.to_owned(), attempt, success);
    let before =
        [of("a0/get", 1, false), of("a1/get", 1, true), of("a0/get", 2, false), of("a1/put", 1, true)];
    assert_eq!(ran(&first), before, "a1 has succeeded, a2 is running");
    let mut again = submitted(MAP);
    again.now = test.now;
    resume_with(&mut again, &first);
    again.items(3);
    assert_eq!(again.job.steps[0].succeeded, 1, "a1");
    again.at(600).start();
    again.fail_with(0, EXIT_1, "gone").crash_and_resume();
    let second = exported(&again);
    assert_eq!(ran(&second), [&before[..], &[of("a0/get", 3, false)]].concat());
    let known = &second.command_retry_states["a0/get"];
    let numbers: Vec<u32> = known.retry_history.iter().map(|attempt| attempt.attempt_number).collect();
    assert_eq!((numbers, known.attempt_count), (vec![1, 2, 3], Some(3)));
    assert_eq!(known.retry_history[..2], first.command_retry_states["a0/get"].retry_history);
    assert_eq!(second.retry_correlation_map["a0"], first.retry_correlation_map["a0"]);
}

#[test]
fn numbers_of_the_document_are_numbers_whatever_the_strategy() {
    for (backoff, multiplier) in [
        ("fixed", 1.0),
        ("{linear: {increment: 2s}}", 1.0),
        ("{exponential: {base: 3.0}}", 3.0),
        ("fibonacci", 1.0),
        ("{custom: {delays: [1s]}}", 1.0),
    ] {
        let text =
            format!("- {{id: a, shell: a, retry_config: {{attempts: unlimited, backoff: {backoff}}}}}");
        let mut test = TestedJob::of(&text);
        test.start().fail(0, EXIT_1);
        let state = &exported(&test).command_retry_states["a"];
        assert_eq!(state.max_attempts, Some(u32::MAX.into()), "{backoff}");
        let known = state.backoff_state.as_ref().unwrap();
        assert_eq!(known.multiplier, Some(multiplier), "{backoff}");
        let numbers = [known.current_delay, known.base_delay, known.max_delay];
        assert!(numbers.iter().all(Option::is_some), "{backoff}");
        let attempt = &state.retry_history[0];
        assert!(attempt.duration.is_some() && attempt.backoff_applied.is_some(), "{backoff}");
    }
}

#[test]
fn the_global_policy_is_the_block_of_the_workflow_or_null() {
    let own = TestedJob::of("{commands: [{id: a, shell: a, retry_config: {attempts: 1}}]}");
    assert_eq!(exported(&own).global_retry_config, serde_json::Value::Null);
    let shared = TestedJob::of(
        "{retry_config: {attempts: 7}, commands: [{id: a, shell: a, retry_config: {attempts: 1}}]}",
    );
    assert_eq!(exported(&shared).global_retry_config["attempts"], 7);
}

const GUARDED: &str = "
- {id: a, shell: a, retry_config: {attempts: 5}, breaker: {name: gate, failure_threshold: 3, recovery_timeout: 60s}}
";

/// The state of the breaker after an import.
fn gate(state: &serde_json::Value) -> BreakerState {
    let file = json!({ "circuit_breaker_states": { "gate": state } });
    let imported = import(&serde_json::from_value(file).unwrap(), &submitted(GUARDED).job, None).unwrap();
    let breaker = &imported.breakers[0];
    let mut gate = BreakerState::with_settings(breaker.settings);
    if let Some(fact) = breaker.fact(&gate, at(50)) {
        let _ = gate.apply(&BreakerRecord::by_hand(vec![fact]));
    }
    gate
}

#[test]
fn breakers_are_read_as_the_document_writes_them() {
    let open = json!({
        "state": "Open", "failure_count": 3, "failure_threshold": 3, "last_failure_at": rfc3339(at(10)),
        "recovery_timeout": "30s", "half_open_max_calls": 2,
    });
    let gate = self::gate(&open);
    assert_eq!(gate.until(), Some(at(40)), "its own timeout, from the failure that opened it");
    assert!(matches!(gate.admission(at(50)), Admission::Go(ticket) if ticket.probe), "the time is over");
    let written = serde_json::to_value(CircuitBreakerState::from(&gate)).unwrap();
    assert_eq!(written["failure_count"], 3);
    assert_eq!(
        written["last_failure_at"],
        "1970-01-01T00:00:10.000000000Z".replace("1970-01-01T00:00:10", &rfc3339(at(10))[..19])
    );
    assert_eq!((&written["failure_threshold"], &written["recovery_timeout"]), (&json!(3), &json!("1m")));
    assert_eq!(written["half_open_max_calls"], 3);

    let mut closed = self::gate(&json!({ "state": "Closed", "failure_count": 2 }));
    assert_eq!((closed.failures(), closed.is_open_or_half_open()), (2, false));
    let down = BreakerFact::Reported {
        at: at(60),
        generation: closed.breaker.generation(),
        probe: false,
        signal: TargetSignal::Down,
        many: 1,
    };
    let _ = closed.apply(&BreakerRecord::by_hand(vec![down]));
    assert_eq!((closed.until(), closed.failure_count()), (Some(at(120)), 3), "one more was needed");

    let half_open = self::gate(&json!({ "state": "HalfOpen", "failure_count": 4, "success_count": 2 }));
    assert_eq!(half_open.word(), "half_open");
    let written = serde_json::to_value(CircuitBreakerState::from(&half_open)).unwrap();
    assert_eq!((&written["failure_count"], &written["success_count"]), (&json!(4), &json!(2)));
    // As earlier releases exported it.
    let earlier = json!({
        "state": "Open", "failure_count": 0, "success_count": 0,
        "opened_at": rfc3339(at(20)), "next_attempt_at": rfc3339(at(95)),
    });
    assert_eq!(self::gate(&earlier).until(), Some(at(95)));
}

#[test]
fn a_breaker_that_is_more_cautious_stays_as_it_is() {
    let state = json!({ "state": "Closed", "failure_count": 2, "failure_threshold": 9 });
    let file = json!({ "circuit_breaker_states": { "a": state } });
    let imported = import(&serde_json::from_value(file).unwrap(), &submitted(GUARDED).job, None).unwrap();
    let breaker = &imported.breakers[0];
    assert_eq!(breaker.name, "gate", "named after its command");
    assert_eq!(imported.notes, ["breaker `a` had other settings; those of the workflow apply"]);
    let mut known = BreakerState::with_settings(breaker.settings);
    let _ = known.apply(&BreakerRecord::by_hand(vec![BreakerFact::Tripped { at: at(5) }]));
    assert_eq!(breaker.fact(&known, at(6)), None);
}
