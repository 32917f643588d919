//! Time that passes while nobody runs a job, and clocks that somebody has set.

use std::time::Instant;

use crate::history::{all, is_lawful, millis, one, outcomes, text};
use crate::processes::{is_alive, kill_and_wait};
use crate::world::{Ended, World};

const SLOW: &str = "
- shell: echo run >> log; echo $$ > up; exec sleep 1000
  timeout: 2s
";

/// Goes on with the latest job when the wall clock says something else.
fn resume_at(world: &World, step: &str) -> Ended {
    let clock = [("UNDAUNTED_TEST_CLOCK", step)];
    world.call_with(&["resume", "@last", "--json"], &clock)
}

#[test]
fn a_timeout_holds_while_nobody_runs_the_job() {
    let world = World::of(SLOW);
    let engine = world.spawn(&["run", "w.yaml"]);
    let command = world.pid("up");
    engine.kill();
    World::eventually("the end of the command", || (!is_alive(command)).then_some(()));
    let report = world.resume().exits(1).json();
    assert!(text(&report["error"]).contains("timed out"), "{report}");
    assert_eq!(outcomes(&world.events()), ["timeout"]);
    assert_eq!(world.lines("log"), ["run"]);
}

#[test]
fn a_command_that_is_overdue_and_alive_on_recovery_is_ended_as_timed_out() {
    let world = World::of(SLOW);
    let engine = world.spawn(&["run", "w.yaml"]);
    let command = world.pid("up");
    // With the keeper gone nobody ends it in time.
    engine.kill();
    world.keepers().into_iter().for_each(kill_and_wait);
    let began = Instant::now();
    World::eventually("its timeout", || (began.elapsed().as_millis() > 2100).then_some(()));
    assert!(is_alive(command));
    world.resume().exits(1);
    assert!(!is_alive(command));
    assert_eq!(outcomes(&world.events()), ["timeout"]);
}

/// One retry after two seconds, of a budget of ten.
const BUDGET: &str = "
- shell: echo run >> log; echo trouble >&2; test -e ok
  retry_config: {attempts: 3, backoff: fixed, initial_delay: 2s, retry_budget: 10s}
  on_failure: {shell: echo handler >> log, fail_workflow: true}
";

#[test]
fn downtime_past_the_delay_budget_refuses_the_retry() {
    let world = World::of(BUDGET);
    let engine = world.spawn(&["run", "w.yaml"]);
    let scheduled = world.event("retry_scheduled");
    engine.kill();
    let expires = &scheduled["retry_budget_expires_at"];
    // Due, and the 8 seconds of the budget that are not spent.
    assert_eq!(millis(expires) - millis(&scheduled["due_at"]), 8000);
    assert_eq!(&world.show()["waiting"][0]["retry_budget_expires_at"], expires);
    world.write("ok", "");
    let report = resume_at(&world, "60").exits(1).json();
    assert_eq!(report["reason"], "retry_budget_expired");
    let error = text(&report["error"]);
    assert!(error.contains("trouble"), "the last error is kept: {error}");
    assert_eq!(world.lines("log"), ["run", "handler"]);
    assert_eq!((&report["attempts"], &report["delay_ms"]), (&1.into(), &2000.into()));
    is_lawful(&world.events());
}

#[test]
fn downtime_within_the_delay_budget_costs_nothing() {
    let world = World::of(BUDGET);
    let engine = world.spawn(&["run", "w.yaml"]);
    world.event("retry_scheduled");
    engine.kill();
    world.write("ok", "");
    // Four seconds overdue at most, and eight are left.
    let report = resume_at(&world, "5").exits(0).json();
    assert_eq!(report["delay_ms"], 2000);
    assert_eq!(world.lines("log"), ["run", "run"]);
}

#[test]
fn a_clean_suspension_is_not_charged_to_the_delay_budget() {
    let world = World::of(BUDGET);
    let engine = world.spawn(&["run", "w.yaml"]);
    world.event("retry_scheduled");
    engine.signal("INT");
    engine.wait().exits(75);
    world.write("ok", "");
    let report = resume_at(&world, "3600").exits(0).json();
    assert_eq!(report["delay_ms"], 2000);
    assert_eq!(world.lines("log"), ["run", "run"]);
}

#[test]
fn a_clock_set_back_cannot_stretch_a_wait() {
    let world = World::of(BUDGET);
    let engine = world.spawn(&["run", "w.yaml"]);
    world.event("retry_scheduled");
    engine.kill();
    world.write("ok", "");
    let began = Instant::now();
    let report = resume_at(&world, "-3600").exits(0).json();
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
    assert_eq!(report["attempts"], 2);
    let events = world.events();
    assert_eq!(one(&events, "job_resumed")["downtime_ms"], 0);
    // Not skipped either: it waits for what can be left of the delay at most.
    let resumed = millis(&one(&events, "job_resumed")["at"]);
    let waited = millis(&all(&events, "attempt_started")[1]["at"]) - resumed;
    assert!((1500..8000).contains(&waited), "{waited} ms");
}

/// An item that waits for its retry, and may take a hundred seconds.
const ITEM: &str = "
mode: mapreduce
map:
  input: items.txt
  timeout_config: {agent_timeout_secs: 100}
  agent_template:
    - shell: echo run >> log; test -e ok
      retry_config: {attempts: 3, backoff: fixed, initial_delay: 1s}
";

fn item() -> World {
    let world = World::of(ITEM);
    world.write("items.txt", "a\n");
    world
}

#[test]
fn downtime_counts_to_the_deadline_of_an_item() {
    let world = item();
    let engine = world.spawn(&["run", "w.yaml"]);
    world.event("retry_scheduled");
    engine.kill();
    world.write("ok", "");
    let ended = resume_at(&world, "500").exits(4);
    assert_eq!(ended.json()["items"]["dead"], 1);
    let events = world.events();
    assert_eq!(one(&events, "item_dead_lettered")["reason"], "deadline");
    assert_eq!(world.lines("log"), ["run"]);
}

#[test]
fn a_clean_suspension_does_not_count_to_the_deadline_of_an_item() {
    let world = item();
    let engine = world.spawn(&["run", "w.yaml"]);
    world.event("retry_scheduled");
    engine.signal("TERM");
    engine.wait().exits(75);
    world.write("ok", "");
    resume_at(&world, "500").exits(0);
    assert_eq!(world.lines("log"), ["run", "run"]);
}

#[test]
fn nothing_moves_the_deadline_of_a_job() {
    let world = World::of(&format!("deadline: 100s\ncommands:\n{BUDGET}").replace("2s", "1s"));
    let engine = world.spawn(&["run", "w.yaml"]);
    world.event("retry_scheduled");
    engine.signal("INT");
    engine.wait().exits(75);
    world.write("ok", "");
    let report = resume_at(&world, "500").exits(1).json();
    assert_eq!(report["reason"], "deadline");
    assert_eq!(world.lines("log"), ["run"]);
}

#[test]
fn a_clean_suspension_stays_free_when_the_next_run_is_killed_at_once() {
    let world = World::of(BUDGET);
    let engine = world.spawn(&["run", "w.yaml"]);
    world.event("retry_scheduled");
    engine.signal("INT");
    engine.wait().exits(75);
    let recorded = world.events().len();
    world.write("ok", "");
    // `job_resumed` is recorded, the start of the retry is not.
    let die = format!("append-before:{}", recorded + 2);
    let variables = [("UNDAUNTED_TEST_CLOCK", "3600"), ("UNDAUNTED_TEST_DIE", &die)];
    let killed = world.call_with(&["resume", "@last"], &variables);
    assert_eq!(killed.code, -9, "{killed:?}");
    assert_eq!(one(&world.events(), "job_resumed")["planned"], true);
    let report = resume_at(&world, "3601").exits(0).json();
    assert_eq!(report["delay_ms"], 2000);
    assert_eq!(world.lines("log"), ["run", "run"]);
}

#[test]
fn a_retry_is_due_again_when_the_clock_is_right_again() {
    // Without a budget: a day by the clock is a day of downtime, whoever set it.
    let world = World::of(&BUDGET.replace(", retry_budget: 10s", "").replace("2s", "1s"));
    let engine = world.spawn(&["run", "w.yaml"]);
    world.event("retry_scheduled");
    engine.kill();
    // Somebody goes on while the clock is a day behind, and is killed while it waits.
    let behind = [("UNDAUNTED_TEST_CLOCK", "-86400")];
    let engine = world.spawn_with(&["resume", "@last"], &behind);
    world.event("job_resumed");
    engine.kill();
    world.write("ok", "");
    let began = Instant::now();
    world.resume().exits(0);
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
    assert_eq!(world.lines("log"), ["run", "run"]);
}
