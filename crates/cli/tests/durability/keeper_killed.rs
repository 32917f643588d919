//! The keeper is killed, with its engine or alone, and so are commands: what vanished is interrupted,
//! what failed is retried, and what was left behind is gone before the next attempt.

use std::fs;

use crate::history::{all, is_lawful, outcomes, text};
use crate::processes::{is_alive, kill_and_wait};
use crate::world::World;

/// Runs for ever the first time, and is done the second.
const ONCE_MORE: &str = "
- id: work
  shell: |
    echo attempt $UNDAUNTED_ATTEMPT >> log
    test $UNDAUNTED_ATTEMPT -gt 1 && exit
    echo $$ > up
    exec sleep 1000
  retry_config: {attempts: 1, backoff: fixed, initial_delay: 5ms}
";

fn kill_keepers(world: &World) {
    let keepers = world.keepers();
    assert_eq!(keepers.len(), 1);
    keepers.into_iter().for_each(kill_and_wait);
}

#[test]
fn a_command_that_vanished_with_engine_and_keeper_is_interrupted_and_charged() {
    let world = World::of(ONCE_MORE);
    let engine = world.spawn(&["run", "w.yaml"]);
    let command = world.pid("up");
    engine.kill();
    kill_keepers(&world);
    // It lives on, but nobody will ever know how it ends.
    assert!(is_alive(command));
    let report = world.resume().exits(0).json();
    assert!(!is_alive(command), "it was left beside the next attempt");
    assert_eq!(world.lines("log"), ["attempt 1", "attempt 2"]);
    assert_eq!((&report["attempts"], &report["retries"]), (&2.into(), &1.into()));
    let events = world.events();
    is_lawful(&events);
    assert_eq!(outcomes(&events), ["interrupted", "success"]);
}

#[test]
fn an_interrupted_attempt_is_a_failure_like_any_other() {
    let world = World::of(&ONCE_MORE.replace("attempts: 1", "attempts: 0"));
    let engine = world.spawn(&["run", "w.yaml"]);
    world.pid("up");
    engine.kill();
    kill_keepers(&world);
    let report = world.resume().exits(1).json();
    assert_eq!(world.lines("log"), ["attempt 1"]);
    assert_eq!(report["reason"], "attempts");
    assert!(text(&report["error"]).contains("interrupted"), "{report}");
}

#[test]
fn a_command_that_must_not_run_again_unasked_is_not() {
    let world = World::of(&ONCE_MORE.replace("id: work", "on_interrupt: stop"));
    let engine = world.spawn(&["run", "w.yaml"]);
    world.pid("up");
    engine.kill();
    kill_keepers(&world);
    let report = world.resume().exits(1).json();
    assert_eq!(world.lines("log"), ["attempt 1"]);
    assert_eq!(report["reason"], "interrupted");
    assert_eq!(report["retries"], 0);
    is_lawful(&world.events());
}

#[test]
fn children_that_left_the_session_are_gone_before_the_next_attempt() {
    let world = World::of(
        "
- shell: |
    test $UNDAUNTED_ATTEMPT -gt 1 && exit
    (setsid sh -c 'echo $$ > apart; exec sleep 1000' &)
    (setsid sh -c 'trap \"\" TERM; echo $$ > stubborn; while :; do sleep 1; done' &)
    (setsid env -i sh -c 'echo $$ > lost; exec sleep 1000' &)
    echo $$ > up
    exec sleep 1000
  retry_config: {attempts: 1, backoff: fixed, initial_delay: 5ms}
",
    );
    let engine = world.spawn(&["run", "w.yaml"]);
    let found = ["up", "apart", "stubborn"].map(|name| world.pid(name));
    let lost = world.pid("lost");
    engine.kill();
    kill_keepers(&world);
    assert!(found.into_iter().all(is_alive));
    world.resume().exits(0);
    assert!(!found.into_iter().any(is_alive), "something is left");
    // It left its session and its group, lost its parent, cleared its environment, and whoever adopted
    // it has died: nothing ties it to the attempt (decision 0008, what cannot be attributed).
    assert!(is_alive(lost), "better than the documents say: change them");
    assert_eq!(outcomes(&world.events()), ["interrupted", "success"]);
}

#[test]
fn while_the_keeper_lives_even_a_child_that_cleared_its_environment_is_ended() {
    let world = World::of(
        "
- shell: |
    test $UNDAUNTED_ATTEMPT -gt 1 && exit
    (setsid env -i sh -c 'echo $$ > lost; exec sleep 1000' &)
    until [ -s lost ]; do sleep 0.01; done
    exit 1
  retry_config: {attempts: 1, backoff: fixed, initial_delay: 5ms}
",
    );
    world.run().exits(0);
    // The keeper adopted it, and one command ran: it can be nobody else's.
    assert!(!is_alive(world.pid("lost")));
}

#[test]
fn a_keeper_killed_alone_is_replaced_while_the_job_goes_on() {
    let world = World::of(ONCE_MORE);
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    let command = world.pid("up");
    kill_keepers(&world);
    let report = engine.wait().exits(0).json();
    assert!(!is_alive(command));
    assert_eq!(world.lines("log"), ["attempt 1", "attempt 2"]);
    assert_eq!(report["attempts"], 2);
    let events = world.events();
    is_lawful(&events);
    assert_eq!(outcomes(&events), ["interrupted", "success"]);
    assert!(all(&events, "job_resumed").is_empty(), "the engine never died");
}

#[test]
fn a_keeper_killed_while_everything_waits_costs_nothing() {
    let world = World::of(
        "
- shell: echo run >> log; test -e ok
  retry_config: {attempts: 1, backoff: fixed, initial_delay: 4s}
",
    );
    let mut engine = world.spawn(&["run", "w.yaml", "--json"]);
    let due = world.event("retry_scheduled")["due_at"].clone();
    for _ in 0..3 {
        world.keepers().into_iter().for_each(kill_and_wait);
        World::eventually("another keeper", || {
            (engine.has_ended() || !world.keepers().is_empty()).then_some(())
        });
    }
    world.write("ok", "");
    let mut ended = engine.wait();
    if ended.code == 7 {
        // It was killed before it could be reached: told, and nothing is lost.
        ended = world.resume();
    }
    let report = ended.exits(0).json();
    assert_eq!(report["attempts"], 2);
    assert_eq!(world.lines("log"), ["run", "run"]);
    let events = world.events();
    is_lawful(&events);
    assert_eq!(all(&events, "retry_scheduled")[0]["due_at"], due);
}

#[test]
fn a_command_killed_alone_has_failed_and_is_retried() {
    let world = World::of(ONCE_MORE);
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    kill_and_wait(world.pid("up"));
    let report = engine.wait().exits(0).json();
    assert_eq!(report["attempts"], 2);
    let events = world.events();
    is_lawful(&events);
    let failed = all(&events, "attempt_failed")[0];
    assert_eq!(failed["cause"], "signal");
    assert_eq!(failed["signal"], 9);
    assert_eq!(failed["class"], "transient");
}

#[test]
fn a_command_killed_while_nobody_runs_the_job_has_failed_with_its_signal() {
    let world = World::of(ONCE_MORE);
    let engine = world.spawn(&["run", "w.yaml", "--json"]);
    let command = world.pid("up");
    engine.kill();
    kill_and_wait(command);
    world.resume().exits(0);
    assert_eq!(outcomes(&world.events()), ["signal", "success"]);
}

#[test]
fn without_its_spool_what_ran_is_interrupted_and_what_was_recorded_stays() {
    let world = World::of(&format!("- shell: echo first >> log{ONCE_MORE}"));
    let engine = world.spawn(&["run", "w.yaml"]);
    let command = world.pid("up");
    engine.kill();
    // As after a reboot onto an empty disk for temporary files.
    kill_keepers(&world);
    kill_and_wait(command);
    fs::remove_dir_all(world.folder_of(&world.job())).unwrap();
    let report = world.resume().exits(0).json();
    assert_eq!(world.lines("log"), ["first", "attempt 1", "attempt 2"]);
    assert_eq!(report["attempts"], 3);
    let events = world.events();
    is_lawful(&events);
    assert_eq!(outcomes(&events), ["success", "interrupted", "success"]);
}

#[test]
fn after_a_reboot_an_end_that_was_not_recorded_is_uncertain() {
    let world = World::of(&ONCE_MORE.replace("exec sleep 1000", "until [ -e go ]; do sleep 0.01; done"));
    let before = [("UNDAUNTED_TEST_BOOT_ID", "before")];
    let engine = world.spawn_with(&["run", "w.yaml"], &before);
    let command = world.pid("up");
    engine.kill();
    // It succeeds, the keeper notes that and goes; but what it wrote was never synced.
    world.write("go", "");
    World::eventually("the end of the command", || {
        (!is_alive(command) && world.keepers().is_empty()).then_some(())
    });
    let report = world.resume().exits(0).json();
    assert_eq!(report["attempts"], 2);
    assert_eq!(outcomes(&world.events()), ["interrupted", "success"]);
}

#[test]
fn without_its_spool_a_start_that_never_began_cannot_be_told_from_one_that_vanished() {
    let world = World::of(ONCE_MORE);
    let die = [("UNDAUNTED_TEST_DIE", "begin-before:1")];
    assert_eq!(world.call_with(&["run", "w.yaml"], &die).code, -9);
    World::eventually("the end of the keeper", || world.keepers().is_empty().then_some(()));
    fs::remove_dir_all(world.folder_of(&world.job())).unwrap();
    world.resume().exits(0);
    // Never guessed at: it is uncertain, so it is charged.
    assert_eq!(outcomes(&world.events()), ["interrupted", "success"]);
    assert_eq!(world.lines("log"), ["attempt 2"]);
}

#[test]
fn without_engine_and_without_commands_no_process_is_left() {
    let world = World::of("[{shell: echo one}]");
    world.run().exits(0);
    World::eventually("an empty world", || world.is_quiet().then_some(()));
}
