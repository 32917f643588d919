//! The keeper is killed, with its engine or alone, and so are commands: a vanished attempt is interrupted, a
//! failed one is retried, and leftover processes are ended before the next attempt.

use std::fs;

use crate::history::{all, assert_fields, has_event, outcomes, text};
use crate::processes::{is_alive, kill_and_wait};
use crate::sandbox::Sandbox;

/// The first attempt runs for ever, the second succeeds at once.
const ONCE_MORE: &str = "
- id: work
  shell: |
    echo attempt $UNDAUNTED_ATTEMPT >> log
    test $UNDAUNTED_ATTEMPT -gt 1 && exit
    echo $$ > up
    exec sleep 1000
  retry_config: {attempts: 1, backoff: fixed, initial_delay: 5ms}
";

fn kill_keepers(sandbox: &Sandbox) {
    let keepers = sandbox.keepers();
    assert_eq!(keepers.len(), 1);
    keepers.into_iter().for_each(kill_and_wait);
}

#[test]
fn a_command_that_vanished_with_engine_and_keeper_is_interrupted_and_charged() {
    let sandbox = Sandbox::of(ONCE_MORE);
    let engine = sandbox.spawn(&["run", "w.yaml"]);
    let command = sandbox.pid("up");
    engine.kill();
    kill_keepers(&sandbox);
    // The command is alive, but its exit status can never be collected.
    assert!(is_alive(command));
    let report = sandbox.resume().exits(0).json();
    assert!(!is_alive(command), "it was left beside the next attempt");
    assert_eq!(sandbox.lines("log"), ["attempt 1", "attempt 2"]);
    assert_fields!(report, {"attempts": 2, "retries": 1});
    let events = sandbox.lawful_events();
    assert_eq!(outcomes(&events), ["interrupted", "success"]);
}

#[test]
fn an_interrupted_attempt_is_a_failure_like_any_other() {
    let sandbox = Sandbox::of(&ONCE_MORE.replace("attempts: 1", "attempts: 0"));
    let engine = sandbox.spawn(&["run", "w.yaml"]);
    sandbox.pid("up");
    engine.kill();
    kill_keepers(&sandbox);
    let report = sandbox.resume().exits(1).json();
    assert_eq!(sandbox.lines("log"), ["attempt 1"]);
    assert_eq!(report["reason"], "attempts");
    assert!(text(&report["error"]).contains("interrupted"), "{report}");
}

#[test]
fn a_command_marked_as_not_repeatable_is_not_started_again_after_a_crash() {
    let sandbox = Sandbox::of(&ONCE_MORE.replace("id: work", "on_interrupt: stop"));
    let engine = sandbox.spawn(&["run", "w.yaml"]);
    sandbox.pid("up");
    engine.kill();
    kill_keepers(&sandbox);
    let report = sandbox.resume().exits(1).json();
    assert_eq!(sandbox.lines("log"), ["attempt 1"]);
    assert_fields!(report, {"reason": "interrupted", "retries": 0});
    sandbox.lawful_events();
}

#[test]
fn children_that_left_the_session_are_gone_before_the_next_attempt() {
    let sandbox = Sandbox::of(
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
    let engine = sandbox.spawn(&["run", "w.yaml"]);
    let children = ["up", "apart", "stubborn"].map(|name| sandbox.pid(name));
    let lost = sandbox.pid("lost");
    engine.kill();
    kill_keepers(&sandbox);
    assert!(children.into_iter().all(is_alive));
    sandbox.resume().exits(0);
    assert!(!children.into_iter().any(is_alive), "something is left");
    // This child left its session and its group, cleared its environment, and its adoptive parent, the
    // keeper, has died: nothing ties it to the attempt (decision 0008, what cannot be attributed).
    assert!(is_alive(lost), "better than the documents say: change them");
    assert_eq!(outcomes(&sandbox.events()), ["interrupted", "success"]);
}

#[test]
fn while_the_keeper_lives_even_a_child_that_cleared_its_environment_is_ended() {
    let (sandbox, _) = Sandbox::run_workflow(
        "
- shell: |
    test $UNDAUNTED_ATTEMPT -gt 1 && exit
    (setsid env -i sh -c 'echo $$ > lost; exec sleep 1000' &)
    until [ -s lost ]; do sleep 0.01; done
    exit 1
  retry_config: {attempts: 1, backoff: fixed, initial_delay: 5ms}
",
        0,
    );
    // The keeper became the parent of the child, and only one command ran, so the child belongs to it.
    assert!(!is_alive(sandbox.pid("lost")));
}

#[test]
fn a_keeper_killed_alone_is_replaced_while_the_job_keeps_running() {
    let (sandbox, engine) = Sandbox::start_workflow(ONCE_MORE);
    let command = sandbox.pid("up");
    kill_keepers(&sandbox);
    let report = engine.wait().exits(0).json();
    assert!(!is_alive(command));
    assert_eq!(sandbox.lines("log"), ["attempt 1", "attempt 2"]);
    assert_eq!(report["attempts"], 2);
    let events = sandbox.lawful_events();
    assert_eq!(outcomes(&events), ["interrupted", "success"]);
    assert!(!has_event(&events, "job_resumed"), "the engine never died");
}

#[test]
fn a_keeper_killed_while_everything_waits_costs_nothing() {
    let sandbox = Sandbox::of(
        "
- shell: echo run >> log; test -e ok
  retry_config: {attempts: 1, backoff: fixed, initial_delay: 4s}
",
    );
    let mut engine = sandbox.start_run();
    let due = sandbox.event("retry_scheduled")["due_at"].clone();
    for _ in 0..3 {
        sandbox.keepers().into_iter().for_each(kill_and_wait);
        Sandbox::wait_until("another keeper", || engine.has_ended() || !sandbox.keepers().is_empty());
    }
    sandbox.write("ok", "");
    let mut ended = engine.wait();
    if ended.code == 7 {
        // The engine could not reach a keeper in time: it reports that, and nothing is lost.
        ended = sandbox.resume();
    }
    let report = ended.exits(0).json();
    assert_eq!(report["attempts"], 2);
    assert_eq!(sandbox.lines("log"), ["run", "run"]);
    let events = sandbox.lawful_events();
    assert_eq!(all(&events, "retry_scheduled")[0]["due_at"], due);
}

#[test]
fn a_command_killed_alone_has_failed_and_is_retried() {
    let (sandbox, engine) = Sandbox::start_workflow(ONCE_MORE);
    kill_and_wait(sandbox.pid("up"));
    let report = engine.wait().exits(0).json();
    assert_eq!(report["attempts"], 2);
    let events = sandbox.lawful_events();
    let failed = all(&events, "attempt_failed")[0];
    assert_fields!(failed, {"cause": "signal", "signal": 9, "class": "transient"});
}

#[test]
fn a_command_killed_while_no_process_owns_the_job_has_failed_with_its_signal() {
    let (sandbox, engine) = Sandbox::start_workflow(ONCE_MORE);
    let command = sandbox.pid("up");
    engine.kill();
    kill_and_wait(command);
    sandbox.resume().exits(0);
    assert_eq!(outcomes(&sandbox.events()), ["signal", "success"]);
}

#[test]
fn without_its_spool_what_ran_is_interrupted_and_what_was_recorded_stays() {
    let sandbox = Sandbox::of(&format!("- shell: echo first >> log{ONCE_MORE}"));
    let engine = sandbox.spawn(&["run", "w.yaml"]);
    let command = sandbox.pid("up");
    engine.kill();
    // As after a reboot that empties the disk of the spool.
    kill_keepers(&sandbox);
    kill_and_wait(command);
    fs::remove_dir_all(sandbox.folder_of(&sandbox.job())).unwrap();
    let report = sandbox.resume().exits(0).json();
    assert_eq!(sandbox.lines("log"), ["first", "attempt 1", "attempt 2"]);
    assert_eq!(report["attempts"], 3);
    let events = sandbox.lawful_events();
    assert_eq!(outcomes(&events), ["success", "interrupted", "success"]);
}

#[test]
fn after_a_reboot_an_end_that_was_not_recorded_is_uncertain() {
    let sandbox = Sandbox::of(&ONCE_MORE.replace("exec sleep 1000", "until [ -e go ]; do sleep 0.01; done"));
    let before = [("UNDAUNTED_TEST_BOOT_ID", "before")];
    let engine = sandbox.spawn_with(&["run", "w.yaml"], &before);
    let command = sandbox.pid("up");
    engine.kill();
    // The command succeeds and the keeper records that and exits; but the record was never synced to disk.
    sandbox.write("go", "");
    Sandbox::wait_until("the end of the command", || !is_alive(command) && sandbox.keepers().is_empty());
    let report = sandbox.resume().exits(0).json();
    assert_eq!(report["attempts"], 2);
    assert_eq!(outcomes(&sandbox.events()), ["interrupted", "success"]);
}

#[test]
fn without_its_spool_a_start_that_never_began_cannot_be_told_from_one_that_vanished() {
    let sandbox = Sandbox::of(ONCE_MORE);
    sandbox.run_dying_at("begin-before:1");
    sandbox.wait_for_no_keeper();
    fs::remove_dir_all(sandbox.folder_of(&sandbox.job())).unwrap();
    sandbox.resume().exits(0);
    // An uncertain start is charged as an attempt.
    assert_eq!(outcomes(&sandbox.events()), ["interrupted", "success"]);
    assert_eq!(sandbox.lines("log"), ["attempt 2"]);
}

#[test]
fn without_engine_and_without_commands_no_process_is_left() {
    let (sandbox, _) = Sandbox::run_workflow("[{shell: echo one}]", 0);
    Sandbox::wait_until("an empty sandbox", || sandbox.is_quiet());
}
