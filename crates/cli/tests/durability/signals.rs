//! Ctrl-C: once lets running commands finish, twice ends them.

use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::history::{assert_fields, count, one, outcomes};
use crate::processes::is_alive;
use crate::sandbox::Sandbox;

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
    let sandbox = Sandbox::of(TWO);
    let engine = sandbox.spawn(&["run", "w.yaml"]);
    let command = sandbox.pid("up");
    engine.signal(name);
    Sandbox::wait_until("the message that it suspends", || engine.stderr().contains("waiting for 1 command"));
    assert!(is_alive(command), "the running command may finish");
    sandbox.write("go", "");
    let ended = engine.wait().exits(75);
    let job = sandbox.job();
    let all_said = format!("{}{}", ended.out, ended.err);
    assert!(all_said.contains(&format!("undaunted resume {job}")), "{ended:?}");
    assert_eq!(sandbox.lines("log"), ["first", "ended"]);
    assert_eq!(sandbox.show()["status"], "suspended");
    assert!(
        sandbox.keepers().is_empty()
            || Sandbox::eventually("no keeper", || { sandbox.keepers().is_empty().then_some(true) })
    );
    let report = sandbox.resume().exits(0).json();
    assert_eq!(report["attempts"], 2);
    assert_eq!(sandbox.lines("log"), ["first", "ended", "second"]);
    let events = sandbox.lawful_events();
    assert_eq!(one(&events, "job_resumed")["planned"], true);
    assert_eq!(count(&events, "job_suspended"), 1);
}

#[test]
fn one_ctrl_c_lets_running_commands_finish_and_suspends_the_job() {
    suspends_cleanly("INT");
}

#[test]
fn sigterm_is_the_same_as_one_ctrl_c() {
    suspends_cleanly("TERM");
}

#[test]
fn ctrl_c_at_a_terminal_reaches_no_command() {
    let sandbox = Sandbox::of(TWO);
    let mut program = sandbox.program(&["run", "w.yaml"], &[]);
    program.process_group(0);
    let engine = sandbox.start(program);
    let command = sandbox.pid("up");
    // A terminal signals the whole process group.
    let group = format!("kill -INT -{}", engine.pid());
    Command::new("/bin/sh").args(["-c", &group]).status().unwrap();
    Sandbox::wait_until("the message that it suspends", || engine.stderr().contains("waiting for"));
    assert!(is_alive(command));
    sandbox.write("go", "");
    engine.wait().exits(75);
    assert_eq!(outcomes(&sandbox.events()), ["success"]);
}

#[test]
fn ctrl_c_during_a_wait_suspends_at_once_and_the_wait_stands() {
    let (sandbox, engine) = Sandbox::start_workflow(
        "
- shell: echo run >> log; test -e ok
  retry_config: {attempts: 2, backoff: fixed, initial_delay: 1s}
",
    );
    let due = sandbox.event("retry_scheduled")["due_at"].clone();
    engine.signal("INT");
    let report = engine.wait().exits(75).json();
    assert_eq!(report["status"], "suspended");
    assert_eq!(sandbox.show()["waiting"][0]["due_at"], due);
    sandbox.write("ok", "");
    sandbox.resume().exits(0);
    assert_eq!(sandbox.lines("log").len(), 2);
    assert_eq!(one(&sandbox.events(), "retry_scheduled")["due_at"], due);
}

#[test]
fn a_second_ctrl_c_ends_running_commands_and_reports_it() {
    let sandbox = Sandbox::of(TWO);
    let engine = sandbox.spawn(&["run", "w.yaml"]);
    let command = sandbox.pid("up");
    engine.interrupt();
    engine.signal("INT");
    engine.wait().exits(130);
    assert!(!is_alive(command));
    assert_eq!(outcomes(&sandbox.events()), ["interrupted"]);
    // It is an interruption like any other: charged and retried.
    sandbox.write("go", "");
    let report = sandbox.resume().exits(0).json();
    assert_fields!(report, {"attempts": 3, "retries": 1});
    assert_eq!(sandbox.lines("log"), ["first", "first", "ended", "second"]);
    sandbox.lawful_events();
}

#[test]
fn a_job_whose_last_command_finishes_after_ctrl_c_is_complete() {
    let (sandbox, engine) =
        Sandbox::start_workflow("[{shell: 'echo $$ > up; until [ -e go ]; do sleep 0.01; done'}]");
    sandbox.pid("up");
    engine.signal("INT");
    sandbox.write("go", "");
    let ended = engine.wait().exits(0);
    assert_eq!(ended.json()["status"], "completed");
}
