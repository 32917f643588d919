//! The engine is killed: commands keep running, results are collected, waits keep their due times.

use std::fs;

use crate::history::{all, assert_fields, count, kind, millis, one, outcomes, starts};
use crate::processes::is_alive;
use crate::sandbox::Sandbox;

/// The first command writes its process id to `up`, waits for the file `go`, and prints a word.
const LONG: &str = "
- id: long
  shell: |
    echo begun >> log
    echo $$ > up
    until [ -e go ]; do sleep 0.01; done
    echo word
    echo ended >> log
  capture_output: said
- id: after
  shell: echo got ${said} >> log
";

#[test]
fn a_command_survives_its_engine_and_its_result_is_collected() {
    let sandbox = Sandbox::of(LONG);
    let engine = sandbox.spawn(&["run", "w.yaml"]);
    let command = sandbox.pid("up");
    engine.kill();
    assert!(is_alive(command), "it went with its engine");
    sandbox.write("go", "");
    // The command ends while no engine runs.
    Sandbox::wait_for_death(command);
    let ended = sandbox.resume().exits(0);
    assert_eq!(sandbox.lines("log"), ["begun", "ended", "got word"]);
    let report = ended.json();
    assert_fields!(report, {"attempts": 2, "retries": 0});
    let events = sandbox.lawful_events();
    let resumed = one(&events, "job_resumed");
    assert_fields!(resumed, {"run": 2, "planned": false});
    assert_eq!(resumed["restored"]["running"], 1);
    assert!(resumed["downtime_ms"].is_u64());
}

#[test]
fn a_command_that_still_runs_at_resume_is_not_started_again() {
    let sandbox = Sandbox::of(LONG);
    let engine = sandbox.spawn(&["run", "w.yaml"]);
    let command = sandbox.pid("up");
    let keepers = sandbox.keepers();
    engine.kill();
    let next = sandbox.start_resume();
    sandbox.event("job_resumed");
    assert!(is_alive(command));
    assert_eq!(sandbox.keepers(), keepers, "the keeper is the same");
    sandbox.write("go", "");
    next.wait().exits(0);
    assert_eq!(sandbox.lines("log"), ["begun", "ended", "got word"]);
    sandbox.lawful_events();
}

#[test]
fn twelve_kills_in_a_row_leave_exactly_the_attempts_that_are_allowed() {
    let sandbox = Sandbox::of(
        "
- id: hard
  shell: |
    echo attempt $UNDAUNTED_ATTEMPT >> log
    until [ -e go-$UNDAUNTED_ATTEMPT ]; do sleep 0.01; done
    exit 1
  retry_config: {attempts: 12, backoff: fixed, initial_delay: 10ms}
",
    );
    let mut engine = sandbox.spawn(&["run", "w.yaml"]);
    for attempt in 1..=12 {
        sandbox.wait_for_lines("log", attempt);
        engine.kill();
        sandbox.write(&format!("go-{attempt}"), "");
        engine = sandbox.start_resume();
    }
    sandbox.write("go-13", "");
    let report = engine.wait().exits(1).json();
    let expected: Vec<String> = (1..=13).map(|n| format!("attempt {n}")).collect();
    assert_eq!(sandbox.lines("log"), expected);
    assert_fields!(report, {"attempts": 13, "retries": 12, "reason": "attempts", "delay_ms": 120});
    let events = sandbox.lawful_events();
    assert_eq!(outcomes(&events), ["exit"; 13]);
    assert_eq!(count(&events, "job_resumed"), 12);
}

#[test]
fn twelve_kills_in_a_row_run_every_item_of_a_map_once() {
    let items: Vec<String> = (0..40).map(|n| format!("item{n}")).collect();
    let sandbox = Sandbox::of(
        "
mode: mapreduce
map:
  input: items.txt
  max_parallel: 3
  agent_template:
    - shell: echo ${item} >> log; sleep 0.02
reduce:
  - shell: echo ${map.successful} of ${map.total} >> reduced
",
    );
    sandbox.write("items.txt", &items.join("\n"));
    let mut engine = sandbox.spawn(&["run", "w.yaml"]);
    for kills in 1..=12 {
        // Some items complete between two kills, but never all.
        sandbox.wait_for_lines("log", 3 * kills);
        engine.kill();
        engine = sandbox.start_resume();
    }
    let report = engine.wait().exits(0).json();
    assert_eq!(sandbox.runs("log").len(), 40);
    assert!(sandbox.runs("log").values().all(|runs| *runs == 1));
    assert_eq!(report["attempts"], 41);
    assert_eq!(sandbox.lines("reduced"), ["40 of 40"]);
    let events = sandbox.lawful_events();
    assert!(starts(&events).values().all(|starts| *starts == 1));
}

#[test]
fn of_a_thousand_items_none_is_lost_or_repeated() {
    let sandbox = Sandbox::of(
        "
mode: mapreduce
map:
  input: {shell: seq 1 1000}
  max_parallel: 8
  agent_template: [{shell: 'echo ${item} >> log'}]
",
    );
    let mut engine = sandbox.spawn(&["run", "w.yaml"]);
    for many in [100, 400, 700] {
        sandbox.wait_for_lines("log", many);
        engine.kill();
        engine = sandbox.start_resume();
    }
    let report = engine.wait().exits(0).json();
    assert_eq!(report["attempts"], 1000);
    assert_eq!(sandbox.lines("log").len(), 1000);
    assert_eq!(sandbox.runs("log").len(), 1000);
    sandbox.lawful_events();
}

const WAITS: &str = "
- id: flaky
  shell: echo run >> log; test -e ok
  retry_config: {attempts: 3, backoff: fixed, initial_delay: 5s}
";

#[test]
fn a_wait_is_neither_restarted_nor_skipped() {
    let sandbox = Sandbox::of(WAITS);
    let due = sandbox.run_killed_at("retry_scheduled")["due_at"].clone();
    for run in 2..=4 {
        let engine = sandbox.spawn(&["resume", "@last"]);
        Sandbox::wait_until("the next run", || sandbox.show()["run"] == run);
        engine.kill();
        assert_eq!(sandbox.show()["waiting"][0]["due_at"], due);
    }
    sandbox.write("ok", "");
    sandbox.resume().exits(0);
    assert_eq!(sandbox.lines("log").len(), 2);
    let events = sandbox.lawful_events();
    assert_eq!(one(&events, "retry_scheduled")["due_at"], due);
    let late = millis(&all(&events, "attempt_started")[1]["at"]) - millis(&due);
    assert!((0..2000).contains(&late), "it began {late} ms late");
}

#[test]
fn a_retry_that_fell_due_during_the_downtime_is_due_now() {
    let sandbox = Sandbox::of(&WAITS.replace("5s", "1h").replace("backoff", "max_delay: 1h, backoff"));
    let due = sandbox.run_killed_at("retry_scheduled")["due_at"].clone();
    sandbox.write("ok", "");
    let ended = sandbox.resume_at("5000");
    let report = ended.exits(0).json();
    assert_fields!(report, {"attempts": 2, "delay_ms": 3_600_000});
    let events = sandbox.lawful_events();
    let resumed = one(&events, "job_resumed");
    assert!(resumed["downtime_ms"].as_u64().unwrap() >= 4_990_000);
    let started = all(&events, "attempt_started")[1];
    assert!(millis(&started["at"]) - millis(&resumed["at"]) < 5000, "{started}");
    assert!(millis(&started["at"]) > millis(&due));
    assert_eq!(one(&events, "retry_scheduled")["due_at"], due);
}

#[test]
fn between_a_result_and_the_next_start_nothing_is_lost_or_repeated() {
    // Records: 1 is the submission, 2 and 3 the first step and its start, 4 to 8 its end and the next start.
    for failpoint in ["ended-before:1", "append-before:8", "append-after:8", "begin-before:2"] {
        let sandbox = Sandbox::of("[{shell: echo one >> log}, {shell: echo two >> log}]");
        let ended = sandbox.call_with(&["run", "w.yaml"], &[("UNDAUNTED_TEST_DIE", failpoint)]);
        assert_eq!(ended.code, -9, "{failpoint}: {ended:?}");
        assert_eq!(sandbox.lines("log"), ["one"], "{failpoint}");
        let report = sandbox.resume().exits(0).json();
        assert_eq!(sandbox.lines("log"), ["one", "two"], "{failpoint}");
        assert_eq!(report["attempts"], 2, "{failpoint}");
        sandbox.lawful_events();
    }
}

#[test]
fn a_start_that_was_recorded_and_never_begun_begins_under_its_number() {
    let sandbox = Sandbox::of(
        "
- shell: echo attempt $UNDAUNTED_ATTEMPT >> log
  retry_config: {attempts: 0}
",
    );
    sandbox.run_dying_at("begin-before:1");
    assert_eq!(kind(sandbox.events().last().unwrap()), "attempt_started");
    assert!(!sandbox.path("log").exists());
    let report = sandbox.resume().exits(0).json();
    assert_eq!(sandbox.lines("log"), ["attempt 1"]);
    assert_fields!(report, {"attempts": 1, "retries": 0});
    let events = sandbox.lawful_events();
    assert_eq!(outcomes(&events), ["success"]);
}

#[test]
fn captured_values_are_on_disk_before_the_success_that_mentions_them() {
    // The process dies right after it recorded the success, and the spool is deleted: the output is in the
    // journal.
    let sandbox = Sandbox::of("[{shell: echo word, capture_output: said}, {shell: 'echo ${said} >> log'}]");
    sandbox.run_dying_at("append-after:8");
    let events = sandbox.events();
    assert_eq!(one(&events, "attempt_succeeded")["output"], "word\n");
    sandbox.wait_for_no_keeper();
    fs::remove_dir_all(sandbox.folder_of(&sandbox.job())).unwrap();
    // The second start was recorded too; without a spool it cannot be shown that the command never began.
    sandbox.resume().exits(1);
    assert_eq!(outcomes(&sandbox.events()), ["success", "interrupted"]);
    assert!(!sandbox.path("log").exists());
}
