//! Downtime of a job, and wall clocks that were set.

use std::time::Instant;

use crate::history::{all, assert_contains, assert_fields, millis, one, outcomes, text};
use crate::processes::{is_alive, kill_and_wait};
use crate::sandbox::{FinishedProcess, Sandbox};

const SLOW: &str = "
- shell: echo run >> log; echo $$ > up; exec sleep 1000
  timeout: 2s
";

fn resume_at(sandbox: &Sandbox, step: &str) -> FinishedProcess {
    let clock = [("UNDAUNTED_TEST_CLOCK", step)];
    sandbox.resume_with(&clock)
}

#[test]
fn a_timeout_holds_during_downtime() {
    let sandbox = Sandbox::of(SLOW);
    let engine = sandbox.spawn(&["run", "w.yaml"]);
    let command = sandbox.pid("up");
    engine.kill();
    Sandbox::wait_for_death(command);
    let report = sandbox.resume().exits(1).json();
    assert!(text(&report["error"]).contains("timed out"), "{report}");
    assert_eq!(outcomes(&sandbox.events()), ["timeout"]);
    assert_eq!(sandbox.lines("log"), ["run"]);
}

#[test]
fn a_command_that_is_overdue_and_alive_on_recovery_is_ended_as_timed_out() {
    let sandbox = Sandbox::of(SLOW);
    let engine = sandbox.spawn(&["run", "w.yaml"]);
    let command = sandbox.pid("up");
    // Without the keeper no process enforces the timeout.
    engine.kill();
    sandbox.keepers().into_iter().for_each(kill_and_wait);
    let began = Instant::now();
    Sandbox::wait_until("the timeout", || began.elapsed().as_millis() > 2100);
    assert!(is_alive(command));
    sandbox.resume().exits(1);
    assert!(!is_alive(command));
    assert_eq!(outcomes(&sandbox.events()), ["timeout"]);
}

/// A retry after two seconds, with a delay budget of ten seconds.
const BUDGET: &str = "
- shell: echo run >> log; echo trouble >&2; test -e ok
  retry_config: {attempts: 3, backoff: fixed, initial_delay: 2s, retry_budget: 10s}
  on_failure: {shell: echo handler >> log, fail_workflow: true}
";

#[test]
fn downtime_past_the_delay_budget_refuses_the_retry() {
    let sandbox = Sandbox::of(BUDGET);
    let scheduled = sandbox.run_killed_at("retry_scheduled");
    let expires = &scheduled["retry_budget_expires_at"];
    // It expires when the 8 unspent seconds of the budget have passed after the due time.
    assert_eq!(millis(expires) - millis(&scheduled["due_at"]), 8000);
    assert_eq!(&sandbox.show()["waiting"][0]["retry_budget_expires_at"], expires);
    sandbox.write("ok", "");
    let report = resume_at(&sandbox, "60").exits(1).json();
    assert_eq!(report["reason"], "retry_budget_expired");
    assert_contains(&report["error"], "trouble");
    assert_eq!(sandbox.lines("log"), ["run", "handler"]);
    assert_fields!(report, {"attempts": 1, "delay_ms": 2000});
    sandbox.lawful_events();
}

#[test]
fn downtime_within_the_delay_budget_costs_nothing() {
    let sandbox = Sandbox::of(BUDGET);
    sandbox.run_killed_at("retry_scheduled");
    sandbox.write("ok", "");
    // The retry is at most four seconds overdue, and eight seconds of the budget are left.
    let report = resume_at(&sandbox, "5").exits(0).json();
    assert_eq!(report["delay_ms"], 2000);
    assert_eq!(sandbox.lines("log"), ["run", "run"]);
}

#[test]
fn a_clean_suspension_is_not_charged_to_the_delay_budget() {
    let sandbox = Sandbox::of(BUDGET);
    sandbox.run_suspended_at("retry_scheduled");
    sandbox.write("ok", "");
    let report = resume_at(&sandbox, "3600").exits(0).json();
    assert_eq!(report["delay_ms"], 2000);
    assert_eq!(sandbox.lines("log"), ["run", "run"]);
}

#[test]
fn a_clock_set_back_cannot_stretch_a_wait() {
    let sandbox = Sandbox::of(BUDGET);
    sandbox.run_killed_at("retry_scheduled");
    sandbox.write("ok", "");
    let began = Instant::now();
    let report = resume_at(&sandbox, "-3600").exits(0).json();
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
    assert_eq!(report["attempts"], 2);
    let events = sandbox.events();
    assert_eq!(one(&events, "job_resumed")["downtime_ms"], 0);
    // The wait is not skipped either: it takes at most what can be left of the delay.
    let resumed = millis(&one(&events, "job_resumed")["at"]);
    let waited = millis(&all(&events, "attempt_started")[1]["at"]) - resumed;
    assert!((1500..8000).contains(&waited), "{waited} ms");
}

/// An item with a deadline of a hundred seconds that waits for its retry.
const ITEM: &str = "
mode: mapreduce
map:
  input: items.txt
  timeout_config: {agent_timeout_secs: 100}
  agent_template:
    - shell: echo run >> log; test -e ok
      retry_config: {attempts: 3, backoff: fixed, initial_delay: 1s}
";

fn item() -> Sandbox {
    let sandbox = Sandbox::of(ITEM);
    sandbox.write("items.txt", "a\n");
    sandbox
}

#[test]
fn downtime_counts_to_the_deadline_of_an_item() {
    let sandbox = item();
    sandbox.run_killed_at("retry_scheduled");
    sandbox.write("ok", "");
    let ended = resume_at(&sandbox, "500").exits(4);
    assert_eq!(ended.json()["items"]["dead"], 1);
    let events = sandbox.events();
    assert_eq!(one(&events, "item_dead_lettered")["reason"], "deadline");
    assert_eq!(sandbox.lines("log"), ["run"]);
}

#[test]
fn a_clean_suspension_does_not_count_to_the_deadline_of_an_item() {
    let sandbox = item();
    let engine = sandbox.spawn(&["run", "w.yaml"]);
    sandbox.event("retry_scheduled");
    engine.signal("TERM");
    engine.wait().exits(75);
    sandbox.write("ok", "");
    resume_at(&sandbox, "500").exits(0);
    assert_eq!(sandbox.lines("log"), ["run", "run"]);
}

#[test]
fn nothing_moves_the_deadline_of_a_job() {
    let sandbox = Sandbox::of(&format!("deadline: 100s\ncommands:\n{BUDGET}").replace("2s", "1s"));
    sandbox.run_suspended_at("retry_scheduled");
    sandbox.write("ok", "");
    let report = resume_at(&sandbox, "500").exits(1).json();
    assert_eq!(report["reason"], "deadline");
    assert_eq!(sandbox.lines("log"), ["run"]);
}

#[test]
fn a_clean_suspension_stays_free_when_the_next_run_is_killed_at_once() {
    let sandbox = Sandbox::of(BUDGET);
    sandbox.run_suspended_at("retry_scheduled");
    let recorded = sandbox.events().len();
    sandbox.write("ok", "");
    // The process dies after it recorded `job_resumed` and before it records the start of the retry.
    let die = format!("append-before:{}", recorded + 2);
    let variables = [("UNDAUNTED_TEST_CLOCK", "3600"), ("UNDAUNTED_TEST_DIE", &die)];
    let killed = sandbox.call_with(&["resume", "@last"], &variables);
    assert_eq!(killed.code, -9, "{killed:?}");
    assert_eq!(one(&sandbox.events(), "job_resumed")["planned"], true);
    let report = resume_at(&sandbox, "3601").exits(0).json();
    assert_eq!(report["delay_ms"], 2000);
    assert_eq!(sandbox.lines("log"), ["run", "run"]);
}

#[test]
fn a_retry_is_due_again_when_the_clock_is_right_again() {
    // There is no delay budget here: a day by the clock counts as a day of downtime, even if the clock was
    // set.
    let sandbox = Sandbox::of(&BUDGET.replace(", retry_budget: 10s", "").replace("2s", "1s"));
    sandbox.run_killed_at("retry_scheduled");
    // The job is resumed while the clock is a day behind, and killed while it waits.
    let behind = [("UNDAUNTED_TEST_CLOCK", "-86400")];
    let engine = sandbox.spawn_with(&["resume", "@last"], &behind);
    sandbox.event("job_resumed");
    engine.kill();
    sandbox.write("ok", "");
    let began = Instant::now();
    sandbox.resume().exits(0);
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
    assert_eq!(sandbox.lines("log"), ["run", "run"]);
}

#[test]
fn an_expired_delay_budget_is_a_debug_record_of_resume() {
    let sandbox = Sandbox::of(BUDGET);
    sandbox.run_killed_at("retry_scheduled");
    let clock = [("UNDAUNTED_TEST_CLOCK", "60")];
    let resumed = sandbox.call_with(&["resume", "@last", "-vv"], &clock).exits(1);
    let command = "Command shell-1 retry budget expired";
    assert!(resumed.err.contains(&format!("  DEBUG {command} (job ")), "{}", resumed.err);
}
