//! Every place where the program can be made to die, one after the other.

use std::collections::BTreeMap;

use undaunted_runner::failpoint::PLACES;

use crate::history::{all, is_lawful, one, outcomes, starts};
use crate::http::one_call;
use crate::http_server::{Reply, StepServer};
use crate::world::{Ended, World};

/// A bit of everything: setup with a capture, a map with a failure and its retry, a handler, a reduce
/// over the results. Every command tells the outside world that it ran.
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

/// The lines commands write when nothing goes wrong.
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

fn world() -> World {
    let world = World::of(WORKFLOW);
    world.write("items.txt", "a\nb\nc\n");
    world
}

/// Dies at a place, in `run` and in each `resume` again, and goes on until the job has ended. How often
/// somebody died, and how it ended.
fn die_at(world: &World, place: &str) -> (usize, Ended) {
    let die = [("UNDAUNTED_TEST_DIE", place)];
    let first = world.call_with(&["run", "w.yaml", "--json"], &die);
    if first.code != -9 {
        return (0, first);
    }
    // The same place may be reached again, as after a crash that has a cause.
    let second = world.call_with(&["resume", "@last", "--json"], &die);
    if second.code == 6 {
        // It died before the job was stored.
        assert_eq!(world.read("log"), "");
        return (1, world.run());
    }
    if second.code != -9 {
        return (1, second);
    }
    (2, world.resume())
}

/// Dies at a place with every number in turn until it is not reached any more.
fn dies_at_every(place: &str, many: u64) {
    let mut reached = 0;
    for id in 1..=many {
        let world = world();
        let (deaths, ended) = die_at(&world, &format!("{place}:{id}"));
        assert_eq!(ended.code, 0, "{place}:{id} {ended:?}");
        reached += usize::from(deaths > 0);
        assert_eq!(world.runs("log"), expected(), "{place}:{id}");
        let events = world.events();
        is_lawful(&events);
        // 3 × 2 commands, a retry, one before and two after the map; the handler is not counted.
        assert_eq!(ended.json()["attempts"], 10, "{place}:{id}");
        assert_eq!(ended.json()["retries"], 1, "{place}:{id}");
        // Who dies before it could say so has not gone on.
        assert!(all(&events, "job_resumed").len() <= deaths, "{place}:{id}");
    }
    println!("{place}: {reached} of {many} numbers reached");
    assert!(reached > 0, "{place} is never reached");
}

#[test]
fn every_place_is_tried_by_a_test() {
    println!("places: {PLACES:?}");
    let here = concat!(include_str!("failpoints.rs"), include_str!("archive.rs"));
    let served = include_str!("../serve/killed.rs");
    for place in PLACES {
        let tried = here.contains(&format!("(\"{place}\""))
            || here.contains(&format!("\"{place}:"))
            || served.contains(&format!("\"{place}\""));
        assert!(tried, "{place}");
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
fn killed_after_any_command_began_it_is_not_begun_again() {
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
fn killed_before_the_keeper_is_told_anything_nothing_is_lost_or_repeated() {
    dies_at_every("told-before", 24);
}

#[test]
fn killed_after_the_keeper_was_told_anything_nothing_is_lost_or_repeated() {
    dies_at_every("told-after", 24);
}

#[test]
fn killed_after_the_suspension_was_recorded_it_is_a_clean_suspension() {
    let world = World::of(
        "
- shell: echo one >> log; until [ -e go ]; do sleep 0.01; done
- shell: echo two >> log
",
    );
    let die = [("UNDAUNTED_TEST_DIE", "suspend-after:1")];
    let engine = world.spawn_with(&["run", "w.yaml"], &die);
    world.line("log");
    engine.interrupt();
    world.write("go", "");
    let ended = engine.wait();
    assert_eq!(ended.code, -9, "the place is not reached: {ended:?}");
    assert_eq!(world.show()["status"], "suspended");
    world.resume().exits(0);
    assert_eq!(world.lines("log"), ["one", "two"]);
    assert_eq!(one(&world.events(), "job_resumed")["planned"], true);
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
    for place in places {
        let world = World::of(
            "
- write_file: {path: below/out.txt, content: 'job ${workflow.job}', create_dirs: true}
- shell: cat below/out.txt >> log
",
        );
        let die = [("UNDAUNTED_TEST_DIE", place)];
        assert_eq!(world.call_with(&["run", "w.yaml"], &die).code, -9, "{place}");
        let ended = world.resume().exits(0);
        assert_eq!(ended.json()["attempts"], 2, "{place}");
        assert_eq!(world.read("log"), format!("job {}", ended.job()));
        let left = std::fs::read_dir(world.path("below")).unwrap().count();
        assert_eq!(left, 1, "{place}: nothing is left beside it");
        is_lawful(&world.events());
    }
}

/// The keeper dies, alone: the attempt it was busy with has vanished, and is made again if it may be.
fn keeper_dies(place: &str, start: u64, command: &str) -> World {
    let world = World::of(
        "
retry_config: {attempts: 1, backoff: fixed, initial_delay: 5ms}
commands:
  - shell: echo one >> log
  - shell: echo two >> log
  - shell: echo three >> log
",
    );
    let place = format!("{place}:{start}");
    let die = [("UNDAUNTED_TEST_DIE", place.as_str())];
    // The keeper that is started next dies in the same place only if the number comes again.
    let ended = world.call_with(&["run", "w.yaml", "--json"], &die).exits(0);
    let report = ended.json();
    assert_eq!(report["attempts"], 4, "{place}");
    let events = world.events();
    is_lawful(&events);
    let cut = outcomes(&events);
    assert_eq!(cut.iter().filter(|cause| *cause == "interrupted").count(), 1);
    assert_eq!(starts(&events)[&(command.to_owned(), command.to_owned())], 2);
    world
}

#[test]
fn a_keeper_killed_before_it_makes_a_process_costs_an_attempt_and_no_run() {
    let world = keeper_dies("spawning", 2, "shell-2");
    assert_eq!(world.lines("log"), ["one", "two", "three"]);
}

#[test]
fn a_keeper_killed_after_it_made_a_process_costs_an_attempt() {
    let world = keeper_dies("spawned", 1, "shell-1");
    let mut runs = world.runs("log");
    // It may have been ended before it wrote anything.
    let first = runs.remove("one").unwrap();
    assert!((1..=2).contains(&first));
    assert_eq!(runs, [("three".to_owned(), 1), ("two".to_owned(), 1)].into());
}

#[test]
fn a_keeper_killed_before_it_notes_an_end_makes_the_end_uncertain() {
    let world = keeper_dies("exited", 3, "shell-3");
    assert_eq!(world.lines("log"), ["one", "two", "three", "three"]);
}

#[test]
fn a_command_that_gives_items_is_begun_again_when_the_keeper_that_was_told_of_it_has_died() {
    let world = World::of(
        "
map:
  input: {shell: echo asked >> log; echo a}
  agent_template: [{shell: 'echo ${item} >> log'}]
mode: mapreduce
",
    );
    let note = world.path("died");
    let die = [("UNDAUNTED_TEST_DIE", "spawning-before:1"), ("UNDAUNTED_TEST_DIED", note.to_str().unwrap())];
    world.call_with(&["run", "w.yaml", "--json"], &die).exits(0);
    assert!(world.read("died").starts_with("spawning-before:1 "));
    assert_eq!(world.lines("log"), ["asked", "a"]);
    is_lawful(&world.events());
}

/// The keeper dies, alone, and so many attempts are interrupted; the job ends all the same.
fn keeper_dies_once(place: &str, interrupted: std::ops::RangeInclusive<usize>) {
    let world = World::of(
        "
retry_config: {attempts: 2, backoff: fixed, initial_delay: 5ms}
commands:
  - shell: echo one $UNDAUNTED_ATTEMPT >> log
  - shell: echo two $UNDAUNTED_ATTEMPT >> log
",
    );
    let note = world.path("died");
    let die = [("UNDAUNTED_TEST_DIE", place), ("UNDAUNTED_TEST_DIED", note.to_str().unwrap())];
    world.call_with(&["run", "w.yaml", "--json"], &die).exits(0);
    let died = world.read("died");
    assert!(died.starts_with(place), "{place} is not reached: {died}");
    let events = world.events();
    is_lawful(&events);
    let outcomes = outcomes(&events);
    let cut = outcomes.iter().filter(|cause| *cause == "interrupted");
    assert!(interrupted.contains(&cut.count()), "{place}: {outcomes:?}");
    if place.starts_with("exited-after") {
        assert_eq!(starts(&events)[&("shell-1".to_owned(), "shell-1".to_owned())], 1);
    }
    assert!(world.runs("log").values().all(|runs| *runs == 1));
}

#[test]
fn a_keeper_killed_after_it_noted_an_end_costs_nothing_of_it() {
    // The engine may have read the note and begun the next command by then.
    keeper_dies_once("exited-after:1", 0..=1);
    keeper_dies_once("exited-after:2", 0..=0);
}

#[test]
fn a_keeper_killed_while_it_answers_costs_at_most_what_runs() {
    for number in 1..=3 {
        keeper_dies_once(&format!("answer-before:{number}"), 0..=1);
        keeper_dies_once(&format!("answer-after:{number}"), 0..=1);
    }
}

#[test]
fn a_keeper_killed_while_it_begins_its_log_is_replaced() {
    // Nobody vouches for a log that could not be written as trusted: what was begun meanwhile is uncertain.
    for (place, most) in [
        ("log-before-rename:1", 0),
        ("log-before-rename:2", 1),
        ("log-after-rename:1", 0),
        ("log-after-rename:2", 1),
    ] {
        keeper_dies_once(place, 0..=most);
    }
}

#[test]
fn killed_before_or_after_any_request_it_is_sent_again_with_the_next_number() {
    for (place, sent) in [("call-before:1", 0), ("call-after:1", 1), ("call-before:2", 1)] {
        let server = StepServer::start().on("/a", &[Reply::status(503), Reply::text(200, "")]);
        let http = format!("url: '{}'", server.url("/a"));
        let world = one_call(&http, "  breaker: {failure_threshold: 1000}");
        let die = [("UNDAUNTED_TEST_DIE", place)];
        assert_eq!(world.call_with(&["run", "w.yaml"], &die).code, -9, "{place}");
        assert_eq!(server.all().len(), sent, "{place}");
        world.resume().exits(0);
        let events = world.events();
        is_lawful(&events);
        let outcomes = outcomes(&events);
        let cut = outcomes.iter().filter(|cause| *cause == "interrupted");
        assert_eq!(cut.count(), 1, "{place}: {outcomes:?}");
        assert!((2..=3).contains(&server.all().len()), "{place}");
    }
}
