//! The engine is killed: commands go on, results are collected, waits keep their time.

use std::fs;

use crate::history::{all, is_lawful, kind, millis, one, outcomes, starts};
use crate::processes::is_alive;
use crate::world::World;

/// Writes its number to `up`, waits for `go`, prints a word.
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
fn a_command_goes_on_without_its_engine_and_its_result_is_collected() {
    let world = World::of(LONG);
    let engine = world.spawn(&["run", "w.yaml"]);
    let command = world.pid("up");
    engine.kill();
    assert!(is_alive(command), "it went with its engine");
    world.write("go", "");
    // It ends while nobody looks.
    World::eventually("the end of the command", || (!is_alive(command)).then_some(()));
    let ended = world.resume().exits(0);
    assert_eq!(world.lines("log"), ["begun", "ended", "got word"]);
    let report = ended.json();
    assert_eq!((&report["attempts"], &report["retries"]), (&2.into(), &0.into()));
    let events = world.events();
    is_lawful(&events);
    let resumed = one(&events, "job_resumed");
    assert_eq!(resumed["run"], 2);
    assert_eq!(resumed["planned"], false);
    assert_eq!(resumed["restored"]["running"], 1);
    assert!(resumed["downtime_ms"].is_u64());
}

#[test]
fn a_command_that_still_runs_when_somebody_goes_on_is_not_started_again() {
    let world = World::of(LONG);
    let engine = world.spawn(&["run", "w.yaml"]);
    let command = world.pid("up");
    let keepers = world.keepers();
    engine.kill();
    let next = world.spawn(&["resume", "@last", "--json"]);
    world.event("job_resumed");
    assert!(is_alive(command));
    assert_eq!(world.keepers(), keepers, "the keeper is the same");
    world.write("go", "");
    next.wait().exits(0);
    assert_eq!(world.lines("log"), ["begun", "ended", "got word"]);
    is_lawful(&world.events());
}

#[test]
fn twelve_kills_in_a_row_leave_exactly_the_attempts_that_are_allowed() {
    let world = World::of(
        "
- id: hard
  shell: |
    echo attempt $UNDAUNTED_ATTEMPT >> log
    until [ -e go-$UNDAUNTED_ATTEMPT ]; do sleep 0.01; done
    exit 1
  retry_config: {attempts: 12, backoff: fixed, initial_delay: 10ms}
",
    );
    let mut engine = world.spawn(&["run", "w.yaml"]);
    for attempt in 1..=12 {
        world.wait_for_lines("log", attempt);
        engine.kill();
        world.write(&format!("go-{attempt}"), "");
        engine = world.spawn(&["resume", "@last", "--json"]);
    }
    world.write("go-13", "");
    let report = engine.wait().exits(1).json();
    let expected: Vec<String> = (1..=13).map(|n| format!("attempt {n}")).collect();
    assert_eq!(world.lines("log"), expected);
    assert_eq!(report["attempts"], 13);
    assert_eq!(report["retries"], 12);
    assert_eq!(report["reason"], "attempts");
    assert_eq!(report["delay_ms"], 120);
    let events = world.events();
    is_lawful(&events);
    assert_eq!(outcomes(&events), ["exit"; 13]);
    assert_eq!(all(&events, "job_resumed").len(), 12);
}

#[test]
fn twelve_kills_in_a_row_run_every_item_of_a_map_once() {
    let items: Vec<String> = (0..40).map(|n| format!("item{n}")).collect();
    let world = World::of(
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
    world.write("items.txt", &items.join("\n"));
    let mut engine = world.spawn(&["run", "w.yaml"]);
    for kills in 1..=12 {
        // Some get on before the next kill, and never all.
        world.wait_for_lines("log", 3 * kills);
        engine.kill();
        engine = world.spawn(&["resume", "@last", "--json"]);
    }
    let report = engine.wait().exits(0).json();
    assert_eq!(world.runs("log").len(), 40);
    assert!(world.runs("log").values().all(|runs| *runs == 1));
    assert_eq!(report["attempts"], 41);
    assert_eq!(world.lines("reduced"), ["40 of 40"]);
    let events = world.events();
    is_lawful(&events);
    assert!(starts(&events).values().all(|starts| *starts == 1));
}

#[test]
fn of_a_thousand_items_none_is_lost_or_repeated() {
    let world = World::of(
        "
mode: mapreduce
map:
  input: {shell: seq 1 1000}
  max_parallel: 8
  agent_template: [{shell: 'echo ${item} >> log'}]
",
    );
    let mut engine = world.spawn(&["run", "w.yaml"]);
    for many in [100, 400, 700] {
        world.wait_for_lines("log", many);
        engine.kill();
        engine = world.spawn(&["resume", "@last", "--json"]);
    }
    let report = engine.wait().exits(0).json();
    assert_eq!(report["attempts"], 1000);
    assert_eq!(world.lines("log").len(), 1000);
    assert_eq!(world.runs("log").len(), 1000);
    is_lawful(&world.events());
}

const WAITS: &str = "
- id: flaky
  shell: echo run >> log; test -e ok
  retry_config: {attempts: 3, backoff: fixed, initial_delay: 5s}
";

#[test]
fn a_wait_is_neither_restarted_nor_skipped() {
    let world = World::of(WAITS);
    let engine = world.spawn(&["run", "w.yaml"]);
    let due = world.event("retry_scheduled")["due_at"].clone();
    engine.kill();
    for run in 2..=4 {
        let engine = world.spawn(&["resume", "@last"]);
        World::eventually("the next run", || (world.show()["run"] == run).then_some(()));
        engine.kill();
        assert_eq!(world.show()["waiting"][0]["due_at"], due);
    }
    world.write("ok", "");
    world.resume().exits(0);
    assert_eq!(world.lines("log").len(), 2);
    let events = world.events();
    is_lawful(&events);
    assert_eq!(one(&events, "retry_scheduled")["due_at"], due);
    let late = millis(&all(&events, "attempt_started")[1]["at"]) - millis(&due);
    assert!((0..2000).contains(&late), "it began {late} ms late");
}

#[test]
fn a_retry_that_fell_due_during_the_downtime_is_due_now() {
    let world = World::of(&WAITS.replace("5s", "1h").replace("backoff", "max_delay: 1h, backoff"));
    let engine = world.spawn(&["run", "w.yaml"]);
    let due = world.event("retry_scheduled")["due_at"].clone();
    engine.kill();
    world.write("ok", "");
    let later = [("UNDAUNTED_TEST_CLOCK", "5000")];
    let ended = world.call_with(&["resume", "@last", "--json"], &later);
    let report = ended.exits(0).json();
    assert_eq!((&report["attempts"], &report["delay_ms"]), (&2.into(), &3_600_000.into()));
    let events = world.events();
    is_lawful(&events);
    let resumed = one(&events, "job_resumed");
    assert!(resumed["downtime_ms"].as_u64().unwrap() >= 4_990_000);
    let started = all(&events, "attempt_started")[1];
    assert!(millis(&started["at"]) - millis(&resumed["at"]) < 5000, "{started}");
    assert!(millis(&started["at"]) > millis(&due));
    assert_eq!(one(&events, "retry_scheduled")["due_at"], due);
}

#[test]
fn between_a_result_and_the_next_start_nothing_is_lost_or_repeated() {
    // Records: 1 submitted, 2 and 3 the first step and its start, 4 to 8 its end and the next start.
    for place in ["ended-before:1", "append-before:8", "append-after:8", "begin-before:2"] {
        let world = World::of("[{shell: echo one >> log}, {shell: echo two >> log}]");
        let ended = world.call_with(&["run", "w.yaml"], &[("UNDAUNTED_TEST_DIE", place)]);
        assert_eq!(ended.code, -9, "{place}: {ended:?}");
        assert_eq!(world.lines("log"), ["one"], "{place}");
        let report = world.resume().exits(0).json();
        assert_eq!(world.lines("log"), ["one", "two"], "{place}");
        assert_eq!(report["attempts"], 2, "{place}");
        is_lawful(&world.events());
    }
}

#[test]
fn a_start_that_was_recorded_and_never_begun_begins_under_its_number() {
    let world = World::of(
        "
- shell: echo attempt $UNDAUNTED_ATTEMPT >> log
  retry_config: {attempts: 0}
",
    );
    let die = [("UNDAUNTED_TEST_DIE", "begin-before:1")];
    assert_eq!(world.call_with(&["run", "w.yaml"], &die).code, -9);
    assert_eq!(kind(world.events().last().unwrap()), "attempt_started");
    assert!(!world.path("log").exists());
    let report = world.resume().exits(0).json();
    assert_eq!(world.lines("log"), ["attempt 1"]);
    assert_eq!((&report["attempts"], &report["retries"]), (&1.into(), &0.into()));
    let events = world.events();
    is_lawful(&events);
    assert_eq!(outcomes(&events), ["success"]);
}

#[test]
fn what_a_later_command_uses_is_on_disk_before_the_success_that_mentions_it() {
    // Killed the moment the success is recorded, with the spool gone: the output is in the journal.
    let world = World::of("[{shell: echo word, capture_output: said}, {shell: 'echo ${said} >> log'}]");
    let die = [("UNDAUNTED_TEST_DIE", "append-after:8")];
    assert_eq!(world.call_with(&["run", "w.yaml"], &die).code, -9);
    let events = world.events();
    assert_eq!(one(&events, "attempt_succeeded")["output"], "word\n");
    World::eventually("the end of the keeper", || world.keepers().is_empty().then_some(()));
    fs::remove_dir_all(world.folder_of(&world.job())).unwrap();
    // The second start was recorded too, and without a spool nobody knows that it never began.
    world.resume().exits(1);
    assert_eq!(outcomes(&world.events()), ["success", "interrupted"]);
    assert!(!world.path("log").exists());
}
