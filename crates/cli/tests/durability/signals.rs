//! Ctrl-C: once lets what runs finish, twice ends it.

use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::history::{all, is_lawful, one, outcomes};
use crate::processes::is_alive;
use crate::world::World;

const TWO: &str = "
- id: first
  shell: |
    echo first >> log
    echo $$ > up
    until [ -e go ]; do sleep 0.01; done
    echo ended >> log
  retry_config: {attempts: 2, backoff: fixed, initial_delay: 5ms}
- id: second
  shell: echo second >> log
";

fn suspends_cleanly(name: &str) {
    let world = World::of(TWO);
    let engine = world.spawn(&["run", "w.yaml"]);
    let command = world.pid("up");
    engine.signal(name);
    World::eventually("the news that it waits", || {
        engine.said().contains("waiting for 1 command").then_some(())
    });
    assert!(is_alive(command), "what runs may finish");
    world.write("go", "");
    let ended = engine.wait().exits(75);
    let job = world.job();
    let all_said = format!("{}{}", ended.out, ended.err);
    assert!(all_said.contains(&format!("undaunted resume {job}")), "{ended:?}");
    assert_eq!(world.lines("log"), ["first", "ended"]);
    assert_eq!(world.show()["status"], "suspended");
    assert!(
        world.keepers().is_empty()
            || World::eventually("no keeper", || { world.keepers().is_empty().then_some(true) })
    );
    let report = world.resume().exits(0).json();
    assert_eq!(report["attempts"], 2);
    assert_eq!(world.lines("log"), ["first", "ended", "second"]);
    let events = world.events();
    is_lawful(&events);
    assert_eq!(one(&events, "job_resumed")["planned"], true);
    assert_eq!(all(&events, "job_suspended").len(), 1);
}

#[test]
fn one_ctrl_c_lets_what_runs_finish_and_suspends_the_job() {
    suspends_cleanly("INT");
}

#[test]
fn sigterm_is_the_same_as_one_ctrl_c() {
    suspends_cleanly("TERM");
}

#[test]
fn ctrl_c_at_a_terminal_reaches_no_command() {
    let world = World::of(TWO);
    let mut program = world.program(&["run", "w.yaml"], &[]);
    program.process_group(0);
    let engine = world.start(program);
    let command = world.pid("up");
    // A terminal signals the whole group.
    let group = format!("kill -INT -{}", engine.pid());
    Command::new("/bin/sh").args(["-c", &group]).status().unwrap();
    World::eventually("the news that it waits", || engine.said().contains("waiting for").then_some(()));
    assert!(is_alive(command));
    world.write("go", "");
    engine.wait().exits(75);
    assert_eq!(outcomes(&world.events()), ["success"]);
}

#[test]
fn ctrl_c_during_a_wait_suspends_at_once_and_the_wait_stands() {
    let world = World::of(
        "
- shell: echo run >> log; test -e ok
  retry_config: {attempts: 2, backoff: fixed, initial_delay: 1s}
",
    );
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    let due = world.event("retry_scheduled")["due_at"].clone();
    engine.signal("INT");
    let report = engine.wait().exits(75).json();
    assert_eq!(report["status"], "suspended");
    assert_eq!(world.show()["waiting"][0]["due_at"], due);
    world.write("ok", "");
    world.resume().exits(0);
    assert_eq!(world.lines("log").len(), 2);
    assert_eq!(one(&world.events(), "retry_scheduled")["due_at"], due);
}

#[test]
fn a_second_ctrl_c_ends_what_runs_and_says_so() {
    let world = World::of(TWO);
    let engine = world.spawn(&["run", "w.yaml"]);
    let command = world.pid("up");
    engine.interrupt();
    engine.signal("INT");
    engine.wait().exits(130);
    assert!(!is_alive(command));
    assert_eq!(outcomes(&world.events()), ["interrupted"]);
    // Recorded as any other interruption: charged, and made again.
    world.write("go", "");
    let report = world.resume().exits(0).json();
    assert_eq!((&report["attempts"], &report["retries"]), (&3.into(), &1.into()));
    assert_eq!(world.lines("log"), ["first", "first", "ended", "second"]);
    is_lawful(&world.events());
}

#[test]
fn a_job_whose_last_command_finishes_after_ctrl_c_is_complete() {
    let world = World::of("[{shell: 'echo $$ > up; until [ -e go ]; do sleep 0.01; done'}]");
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    world.pid("up");
    engine.signal("INT");
    world.write("go", "");
    let ended = engine.wait().exits(0);
    assert_eq!(ended.json()["status"], "completed");
}
