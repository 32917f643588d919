//! `on_failure` and `on_success`, and what the report says when a failure was handled.

use crate::history::{assert_fields, count, one, starts, text};
use crate::sandbox::Sandbox;

#[test]
fn a_handler_that_succeeds_recovers_the_command_and_the_failure_stays_in_the_report() {
    let (sandbox, report) = Sandbox::run_workflow(
        "
- shell: echo try >> log; echo trouble >&2; exit 1
  retry_config: {attempts: 9, backoff: fixed, initial_delay: 10ms, retry_budget: 25ms}
  on_failure: {shell: echo handler >> log}
- shell: echo next >> log
",
        0,
    );
    assert_eq!(sandbox.lines("log"), ["try", "try", "try", "handler", "next"]);
    assert_fields!(report, {"status": "completed", "reason": null});
    let error = text(&report["error"]);
    assert!(error.contains("Retry budget exhausted"), "{error}");
    assert!(error.contains("trouble"), "and keeps the last error: {error}");
    // Attempts of handlers are not counted.
    assert_fields!(report, {"attempts": 4, "retries": 2, "delay_ms": 20});
    let events = sandbox.lawful_events();
    assert_eq!(one(&events, "command_stopped")["reason"], "retry_budget");
    let people = sandbox.call(&["run", "w.yaml"]).exits(0);
    assert!(people.out.contains("Retry budget exhausted"), "{people:?}");
}

#[test]
fn with_fail_workflow_the_job_still_fails() {
    let (sandbox, report) = Sandbox::run_workflow(
        "
- shell: exit 1
  on_failure: {shell: echo handler >> log, fail_workflow: true}
- shell: echo next >> log
",
        1,
    );
    assert_eq!(report["reason"], "attempts");
    assert_eq!(sandbox.lines("log"), ["handler"]);
}

#[test]
fn a_list_of_handlers_stops_at_the_first_failure_and_keeps_the_original_reason() {
    let (sandbox, report) = Sandbox::run_workflow(
        "
- shell: echo original >&2; exit 1
  on_failure:
    - shell: echo one >> log
    - shell: echo two >> log; echo handler >&2; exit 2
    - shell: echo three >> log
",
        1,
    );
    assert_eq!(sandbox.lines("log"), ["one", "two"]);
    assert!(text(&report["error"]).contains("original"), "{report}");
    assert_eq!(report["reason"], "attempts");
}

#[test]
fn a_handler_with_rounds_gives_the_command_one_more_attempt_each() {
    let (sandbox, report) = Sandbox::run_workflow(
        "
- id: work
  shell: echo work $UNDAUNTED_ATTEMPT $UNDAUNTED_RECEIPT_TOKEN >> log; test -e fixed
  retry_config: {attempts: 1, backoff: fixed, initial_delay: 3ms}
  on_failure:
    max_attempts: 3
    commands:
      - shell: echo fix $UNDAUNTED_ATTEMPT $UNDAUNTED_RECEIPT_TOKEN >> log; test $(grep -c fix log) -lt 2 || touch fixed
",
        0,
    );
    let log = sandbox.lines("log");
    let words: Vec<&str> = log.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(words, ["work", "work", "fix", "work", "fix", "work"]);
    let of = |word: &str, number: usize| -> Vec<&str> {
        let lines = log.iter().filter(|line| line.starts_with(word));
        lines.map(|line| line.split(' ').nth(number).unwrap()).collect()
    };
    assert_eq!((of("work", 1), of("fix", 1)), (vec!["1", "2", "3", "4"], vec!["1", "2"]));
    let tokens = of("work", 2);
    assert!(tokens.iter().all(|token| token == &tokens[0]), "{tokens:?}");
    // Each round of the handler is work of its own.
    let rounds = of("fix", 2);
    assert_ne!(rounds[0], rounds[1]);
    assert_eq!(report["attempts"], 4);
    sandbox.lawful_events();
}

#[test]
fn a_handler_is_retried_only_if_it_says_so() {
    let workflow = "
retry_config: {attempts: 1, backoff: fixed, initial_delay: 3ms}
commands:
  - shell: exit 1
    on_failure: {shell: echo handler >> log; exit 1, OWN}
";
    for (own, runs) in [("fail_workflow: false", 1), ("retry_config: {attempts: 2, initial_delay: 3ms}", 3)] {
        let (sandbox, _) = Sandbox::run_workflow(&workflow.replace("OWN", own), 1);
        assert_eq!(sandbox.lines("log").len(), runs, "{own}");
    }
}

#[test]
fn on_success_handlers_run_after_a_success() {
    let (sandbox, _) = Sandbox::run_workflow(
        "
- shell: echo work >> log
  on_success: {shell: echo well >> log}
  on_failure: {shell: echo badly >> log}
- shell: echo next >> log
",
        0,
    );
    assert_eq!(sandbox.lines("log"), ["work", "well", "next"]);
}

#[test]
fn a_handler_that_was_running_when_the_engine_died_runs_once() {
    let (sandbox, engine) = Sandbox::start_workflow(
        "
- shell: echo work >> log; exit 1
  on_failure: {shell: 'echo handler >> log; echo $$ > up; until [ -e go ]; do sleep 0.01; done'}
- shell: echo next >> log
",
    );
    sandbox.pid("up");
    engine.kill();
    sandbox.write("go", "");
    sandbox.resume().exits(0);
    assert_eq!(sandbox.lines("log"), ["work", "handler", "next"]);
    let events = sandbox.lawful_events();
    assert!(starts(&events).values().all(|starts| *starts == 1));
    assert_eq!(count(&events, "command_recovered"), 1);
}
