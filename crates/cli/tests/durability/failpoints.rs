//! Every failpoint of the program, one after the other.

use std::collections::BTreeMap;

use undaunted_runner::failpoint::PLACES;

use crate::history::{count, count_outcomes, one, starts};
use crate::http::one_request;
use crate::http_server::{Reply, ScriptedServer};
use crate::sandbox::{FinishedProcess, Sandbox};

/// Setup with a capture, a map with a failure and its retry, a handler, and a reduce over the results. Every
/// command logs outside of the store that it ran.
const WORKFLOW: &str = "
mode: mapreduce
setup:
  - id: prepare
    shell: echo prepare >> log; echo word
    capture_output: said
map:
  input: items.txt
  max_parallel: 2
  agent_template:
    - id: first
      shell: echo first-${item} >> log
    - id: second
      shell: |
        echo second-${item}-$UNDAUNTED_ATTEMPT >> log
        echo out-${item}
        test ${item} != b || test $UNDAUNTED_ATTEMPT -gt 1
      retry_config: {attempts: 2, backoff: fixed, initial_delay: 5ms}
reduce:
  - id: wrong
    shell: echo wrong >> log; exit 1
    on_failure: {shell: echo handler >> log}
  - id: sum
    shell: echo sum ${said} ${map.results} >> log
";

/// The log of an undisturbed run.
fn expected() -> BTreeMap<String, usize> {
    let results: Vec<String> = ["a", "b", "c"]
        .iter()
        .map(|item| format!(r#"{{"item":"{item}","output":"out-{item}","status":"succeeded"}}"#))
        .collect();
    let sum = format!("sum word [{}]", results.join(","));
    let lines = [
        "prepare",
        "first-a",
        "first-b",
        "first-c",
        "second-a-1",
        "second-b-1",
        "second-b-2",
        "second-c-1",
        "wrong",
        "handler",
        &sum,
    ];
    lines.iter().map(|line| ((*line).to_owned(), 1)).collect()
}

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::of(WORKFLOW);
    sandbox.write("items.txt", "a\nb\nc\n");
    sandbox
}

/// Dies at a failpoint, in `run` and again in each `resume`, until the job has ended. Returns how often
/// a process died, and how the job ended.
fn die_at(sandbox: &Sandbox, failpoint: &str) -> (usize, FinishedProcess) {
    let die = [("UNDAUNTED_TEST_DIE", failpoint)];
    let first = sandbox.run_with(&die);
    if first.code != -9 {
        return (0, first);
    }
    // The same failpoint may be reached again, as after a crash with a lasting cause.
    let second = sandbox.resume_with(&die);
    if second.code == 6 {
        // It died before the job was stored.
        assert_eq!(sandbox.read("log"), "");
        return (1, sandbox.run());
    }
    if second.code != -9 {
        return (1, second);
    }
    (2, sandbox.resume())
}

/// Dies at a failpoint with each number in turn.
fn dies_at_every(failpoint: &str, many: u64) {
    let mut reached = 0;
    for id in 1..=many {
        let sandbox = sandbox();
        let (deaths, ended) = die_at(&sandbox, &format!("{failpoint}:{id}"));
        assert_eq!(ended.code, 0, "{failpoint}:{id} {ended:?}");
        reached += usize::from(deaths > 0);
        assert_eq!(sandbox.runs("log"), expected(), "{failpoint}:{id}");
        let events = sandbox.lawful_events();
        // 3 × 2 commands, a retry, one before and two after the map; the handler is not counted.
        assert_eq!(ended.json()["attempts"], 10, "{failpoint}:{id}");
        assert_eq!(ended.json()["retries"], 1, "{failpoint}:{id}");
        // A process that dies before it could record the resume has not resumed the job.
        assert!(count(&events, "job_resumed") <= deaths, "{failpoint}:{id}");
    }
    println!("{failpoint}: {reached} of {many} numbers reached");
    assert!(reached > 0, "{failpoint} is never reached");
}

#[test]
fn every_place_is_tried_by_a_test() {
    println!("places: {PLACES:?}");
    let here = concat!(include_str!("failpoints.rs"), include_str!("archive.rs"));
    let served = include_str!("../serve/killed.rs");
    for failpoint in PLACES {
        let tried = here.contains(&format!("(\"{failpoint}\""))
            || here.contains(&format!("\"{failpoint}:"))
            || served.contains(&format!("\"{failpoint}\""));
        assert!(tried, "{failpoint}");
    }
}

#[test]
fn killed_with_a_fresh_claim_nothing_is_lost() {
    dies_at_every("claimed", 1);
}

#[test]
fn killed_before_any_write_nothing_is_lost_or_repeated() {
    dies_at_every("append-before", 48);
}

#[test]
fn killed_after_any_write_nothing_is_lost_or_repeated() {
    dies_at_every("append-after", 48);
}

#[test]
fn killed_before_any_command_begins_it_begins_once() {
    dies_at_every("begin-before", 11);
}

#[test]
fn killed_after_any_command_started_it_is_not_started_again() {
    dies_at_every("begin-after", 11);
}

#[test]
fn killed_before_any_end_is_recorded_the_end_is_collected() {
    dies_at_every("ended-before", 11);
}

#[test]
fn killed_after_any_attempt_was_forgotten_nothing_is_repeated() {
    dies_at_every("forget-after", 11);
}

#[test]
fn killed_with_the_items_read_and_not_recorded_they_are_read_again() {
    dies_at_every("items-read", 1);
}

#[test]
fn killed_while_the_results_are_written_they_are_written_again() {
    dies_at_every("results-before-rename", 1);
}

#[test]
fn killed_after_the_results_were_written_nothing_is_repeated() {
    dies_at_every("results-after-rename", 1);
}

#[test]
fn killed_before_any_commit_nothing_is_lost_or_repeated() {
    dies_at_every("commit-before", 30);
}

#[test]
fn killed_after_any_commit_nothing_is_lost_or_repeated() {
    dies_at_every("commit-after", 30);
}

#[test]
fn killed_before_any_message_to_the_keeper_nothing_is_lost_or_repeated() {
    dies_at_every("told-before", 24);
}

#[test]
fn killed_after_any_message_to_the_keeper_nothing_is_lost_or_repeated() {
    dies_at_every("told-after", 24);
}

#[test]
fn killed_after_the_suspension_was_recorded_it_is_a_clean_suspension() {
    let sandbox = Sandbox::of(
        "
- shell: echo one >> log; until [ -e go ]; do sleep 0.01; done
- shell: echo two >> log
",
    );
    let die = [("UNDAUNTED_TEST_DIE", "suspend-after:1")];
    let engine = sandbox.spawn_with(&["run", "w.yaml"], &die);
    sandbox.line("log");
    engine.interrupt();
    sandbox.write("go", "");
    let ended = engine.wait();
    assert_eq!(ended.code, -9, "the place is not reached: {ended:?}");
    assert_eq!(sandbox.show()["status"], "suspended");
    sandbox.resume().exits(0);
    assert_eq!(sandbox.lines("log"), ["one", "two"]);
    assert_eq!(one(&sandbox.events(), "job_resumed")["planned"], true);
}

#[test]
fn a_file_that_was_being_written_is_written_again_under_its_number() {
    let places = [
        "begin-before:1",
        "file-before-rename:1",
        "file-after-rename:1",
        "append-after:3",
        "append-before:8",
        "append-after:8",
    ];
    for failpoint in places {
        let sandbox = Sandbox::of(
            "
- write_file: {path: below/out.txt, content: 'job ${workflow.job}', create_dirs: true}
- shell: cat below/out.txt >> log
",
        );
        sandbox.run_dying_at(failpoint);
        let ended = sandbox.resume().exits(0);
        assert_eq!(ended.json()["attempts"], 2, "{failpoint}");
        assert_eq!(sandbox.read("log"), format!("job {}", ended.job()));
        let left = std::fs::read_dir(sandbox.path("below")).unwrap().count();
        assert_eq!(left, 1, "{failpoint}: nothing is left beside it");
        sandbox.lawful_events();
    }
}

/// Only the keeper dies: the attempt that it was starting or ending is interrupted and retried.
fn keeper_dies(failpoint: &str, start: u64, command: &str) -> Sandbox {
    let sandbox = Sandbox::of(
        "
retry_config: {attempts: 1, backoff: fixed, initial_delay: 5ms}
commands:
  - shell: echo one >> log
  - shell: echo two >> log
  - shell: echo three >> log
",
    );
    let failpoint = format!("{failpoint}:{start}");
    let die = [("UNDAUNTED_TEST_DIE", failpoint.as_str())];
    // The next keeper dies at the same failpoint only if it reaches that start number, which does not come
    // again.
    let ended = sandbox.run_with(&die).exits(0);
    let report = ended.json();
    assert_eq!(report["attempts"], 4, "{failpoint}");
    let events = sandbox.lawful_events();
    assert_eq!(count_outcomes(&events, "interrupted"), 1);
    assert_eq!(starts(&events)[&(command.to_owned(), command.to_owned())], 2);
    sandbox
}

#[test]
fn a_keeper_killed_before_it_makes_a_process_costs_an_attempt_and_no_run() {
    let sandbox = keeper_dies("spawning", 2, "shell-2");
    assert_eq!(sandbox.lines("log"), ["one", "two", "three"]);
}

#[test]
fn a_keeper_killed_after_it_made_a_process_costs_an_attempt() {
    let sandbox = keeper_dies("spawned", 1, "shell-1");
    let mut runs = sandbox.runs("log");
    // The first attempt may have been ended before it wrote anything.
    let first = runs.remove("one").unwrap();
    assert!((1..=2).contains(&first));
    assert_eq!(runs, [("three".to_owned(), 1), ("two".to_owned(), 1)].into());
}

#[test]
fn a_keeper_killed_before_it_notes_an_end_makes_the_end_uncertain() {
    let sandbox = keeper_dies("exited", 3, "shell-3");
    assert_eq!(sandbox.lines("log"), ["one", "two", "three", "three"]);
}

#[test]
fn an_input_command_is_started_again_when_its_keeper_has_died() {
    let sandbox = Sandbox::of(
        "
map:
  input: {shell: echo asked >> log; echo a}
  agent_template: [{shell: 'echo ${item} >> log'}]
mode: mapreduce
",
    );
    let note = sandbox.path("died");
    let die = [("UNDAUNTED_TEST_DIE", "spawning-before:1"), ("UNDAUNTED_TEST_DIED", note.to_str().unwrap())];
    sandbox.run_with(&die).exits(0);
    assert!(sandbox.read("died").starts_with("spawning-before:1 "));
    assert_eq!(sandbox.lines("log"), ["asked", "a"]);
    sandbox.lawful_events();
}

/// Only the keeper dies: the job completes, and the number of interrupted attempts is in this range.
fn keeper_dies_once(failpoint: &str, interrupted: std::ops::RangeInclusive<usize>) {
    let sandbox = Sandbox::of(
        "
retry_config: {attempts: 2, backoff: fixed, initial_delay: 5ms}
commands:
  - shell: echo one $UNDAUNTED_ATTEMPT >> log
  - shell: echo two $UNDAUNTED_ATTEMPT >> log
",
    );
    let note = sandbox.path("died");
    let die = [("UNDAUNTED_TEST_DIE", failpoint), ("UNDAUNTED_TEST_DIED", note.to_str().unwrap())];
    sandbox.run_with(&die).exits(0);
    // The answer that ends the job may reach the engine before the keeper dies.
    Sandbox::wait_until(failpoint, || sandbox.read("died").starts_with(failpoint));
    let events = sandbox.lawful_events();
    let made = count_outcomes(&events, "interrupted");
    assert!(interrupted.contains(&made), "{failpoint}: {made} attempts were interrupted");
    if failpoint.starts_with("exited-after") {
        assert_eq!(starts(&events)[&("shell-1".to_owned(), "shell-1".to_owned())], 1);
    }
    assert!(sandbox.runs("log").values().all(|runs| *runs == 1));
}

#[test]
fn a_keeper_killed_after_it_noted_an_end_costs_nothing_of_it() {
    // By then the engine may have read the recorded end and begun the next command.
    keeper_dies_once("exited-after:1", 0..=1);
    keeper_dies_once("exited-after:2", 0..=0);
}

#[test]
fn a_keeper_killed_while_it_answers_costs_at_most_the_running_attempt() {
    for number in 1..=3 {
        keeper_dies_once(&format!("answer-before:{number}"), 0..=1);
        keeper_dies_once(&format!("answer-after:{number}"), 0..=1);
    }
}

#[test]
fn a_keeper_killed_while_it_creates_its_log_is_replaced() {
    // A log that could not be marked as trusted proves nothing: commands that started meanwhile are
    // uncertain.
    for (failpoint, most) in [
        ("log-before-rename:1", 0),
        ("log-before-rename:2", 1),
        ("log-after-rename:1", 0),
        ("log-after-rename:2", 1),
    ] {
        keeper_dies_once(failpoint, 0..=most);
    }
}

#[test]
fn killed_before_or_after_any_request_it_is_sent_again_with_the_next_number() {
    for (failpoint, sent) in [("call-before:1", 0), ("call-after:1", 1), ("call-before:2", 1)] {
        let server = ScriptedServer::start().on("/a", &[Reply::status(503), Reply::text(200, "")]);
        let http = format!("url: '{}'", server.url("/a"));
        let sandbox = one_request(&http, "  breaker: {failure_threshold: 1000}");
        sandbox.run_dying_at(failpoint);
        assert_eq!(server.all().len(), sent, "{failpoint}");
        sandbox.resume().exits(0);
        let events = sandbox.lawful_events();
        assert_eq!(count_outcomes(&events, "interrupted"), 1, "{failpoint}: {events:#?}");
        assert!((2..=3).contains(&server.all().len()), "{failpoint}");
    }
}
