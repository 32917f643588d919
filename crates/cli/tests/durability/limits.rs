//! Limits: timeouts, deadlines, the delay budget, the pool and tolerances.

use std::collections::BTreeSet;

use crate::history::{all, assert_fields, assert_lawful, one, outcomes, text};
use crate::processes::{is_alive, kill_and_wait};
use crate::sandbox::Sandbox;

#[test]
fn a_timeout_ends_the_whole_tree_and_is_transient() {
    let (sandbox, _) = Sandbox::run_workflow(
        "
- shell: |
    test $UNDAUNTED_ATTEMPT -gt 1 && exit
    (setsid sh -c 'echo $$ > apart; exec sleep 1000' &)
    sleep 1000 & echo $! > child
    wait
  timeout: 1s
  retry_config: {attempts: 1, backoff: fixed, initial_delay: 3ms}
",
        0,
    );
    assert!(!is_alive(sandbox.pid("apart")) && !is_alive(sandbox.pid("child")));
    let events = sandbox.events();
    assert_eq!(outcomes(&events), ["timeout", "success"]);
    assert_eq!(one(&events, "attempt_failed")["class"], "transient");
}

#[test]
fn a_command_that_ignores_sigterm_is_killed() {
    let (sandbox, _) = Sandbox::run_workflow(
        "
- shell: trap '' TERM; echo $$ > up; while :; do sleep 0.05; done
  timeout: 1s
",
        1,
    );
    assert!(!is_alive(sandbox.pid("up")));
}

#[test]
fn delays_count_to_the_deadline_of_an_item() {
    let (sandbox, _) = Sandbox::run_workflow(
        "
mode: mapreduce
map:
  input: {shell: seq 1 1}
  timeout_config: {agent_timeout_secs: 2}
  agent_template:
    - shell: echo run >> log; exit 1
      retry_config: {attempts: 9, backoff: fixed, initial_delay: 3s}
",
        4,
    );
    assert_eq!(sandbox.lines("log"), ["run"]);
    assert_eq!(one(&sandbox.events(), "item_dead_lettered")["reason"], "deadline");
}

#[test]
fn an_item_that_runs_past_its_deadline_is_ended() {
    let (sandbox, _) = Sandbox::run_workflow(
        "
mode: mapreduce
map:
  input: {shell: seq 1 1}
  timeout_config: {agent_timeout_secs: 1}
  agent_template: [{shell: echo $$ > up; exec sleep 1000}]
",
        4,
    );
    assert!(!is_alive(sandbox.pid("up")));
    assert_eq!(outcomes(&sandbox.events()), ["timeout"]);
}

#[test]
fn a_job_past_its_deadline_has_failed_and_nothing_of_it_runs() {
    let (sandbox, report) =
        Sandbox::run_workflow("{deadline: 2s, commands: [{shell: echo $$ > up; exec sleep 1000}]}", 1);
    assert_fields!(report, {"reason": "deadline", "error": "timed out after 2s (deadline)"});
    assert!(!is_alive(sandbox.pid("up")));
    sandbox.lawful_events();
}

#[test]
fn an_input_command_that_the_deadline_ends_leaves_its_error() {
    let (_, report) = Sandbox::run_workflow(
        "
deadline: 1s
mode: mapreduce
map:
  input: {shell: echo no route >&2; exec sleep 1000}
  agent_template: [{shell: a}]
",
        1,
    );
    let error = "the input command failed: timed out after 1s (deadline): no route";
    assert_fields!(report, {"reason": "deadline", "error": error});
}

/// Item 1 runs until the deadline, and the others never start.
const CUT_OFF: &str = "
deadline: 3s
mode: mapreduce
map:
  input: {shell: seq 1 3}
  max_parallel: 1
  agent_template:
    - shell: |
        [ -e mended ] && exit
        echo item ${item} >&2
        echo $$ > up
        exec sleep 1000
      retry_config: {attempts: 1, initial_delay: 1ms}
reduce: [{shell: touch reduced}]
";

#[test]
fn what_the_deadline_cuts_off_is_a_dead_letter_that_can_be_redriven() {
    let killed_engine = |sandbox: &Sandbox| {
        let engine = sandbox.start_run();
        let command = sandbox.pid("up");
        engine.kill();
        // The keeper ends the command although no engine lives.
        Sandbox::wait_for_death(command);
        sandbox.resume().exits(1).json()
    };
    let undisturbed = |sandbox: &Sandbox| sandbox.run().exits(1).json();
    let runs: [&dyn Fn(&Sandbox) -> serde_json::Value; 2] = [&undisturbed, &killed_engine];
    for run in runs {
        let sandbox = Sandbox::of(CUT_OFF);
        let report = run(&sandbox);
        let error = "timed out after 3s (deadline): item 1";
        assert_fields!(report, {"status": "failed", "reason": "deadline", "error": error});
        let letters = sandbox.dead_letters();
        assert_eq!(letters.len(), 1, "{letters:?}");
        assert_fields!(letters[0], {"item": "1", "reason": "deadline", "error": error});
        assert_eq!(report["missing"].as_array().unwrap().len(), 2, "{report}");
        sandbox.lawful_events();
        // The deadline has passed, and a redrive has its time again.
        sandbox.write("mended", "");
        let report = sandbox.redrive().exits(0).json();
        assert_fields!(report, {"status": "completed", "reason": null});
        assert_eq!(report["items"]["succeeded"], 3);
    }
}

#[test]
fn the_delay_budget_allows_what_fits_and_no_more() {
    // The delays are 10, 20 and 40 ms, so the third retry needs a budget of 70 ms; equality is allowed.
    for (budget, attempts) in [("50ms", 3), ("70ms", 4), ("69ms", 3)] {
        let (sandbox, report) = Sandbox::run_workflow(
            &format!(
                "
- shell: echo run >> log; sleep 0.03; exit 1
  retry_config: {{attempts: 3, initial_delay: 10ms, retry_budget: {budget}}}
"
            ),
            1,
        );
        assert_eq!(sandbox.lines("log").len(), attempts, "{budget}: {report}");
        let exhausted = text(&report["error"]).contains("Retry budget exhausted");
        assert_eq!(exhausted, attempts == 3, "{report}");
        let reason = if attempts == 3 { "retry_budget" } else { "attempts" };
        assert_eq!(report["reason"], reason);
        let stopped = one(&sandbox.events(), "command_stopped").clone();
        assert_eq!(stopped["attempt"], attempts);
    }
}

#[test]
fn the_spent_delay_is_restored_exactly() {
    let sandbox = Sandbox::of(
        "
- shell: echo run >> log; exit 1
  retry_config: {attempts: 9, backoff: fixed, initial_delay: 400ms, jitter: true, retry_budget: 1s}
",
    );
    let engine = sandbox.spawn(&["run", "w.yaml", "--json", "--seed", "7"]);
    sandbox.event("retry_scheduled");
    engine.kill();
    sandbox.resume().exits(1);
    let events = sandbox.lawful_events();
    let scheduled = all(&events, "retry_scheduled");
    let mut spent = 0;
    for event in &scheduled {
        assert_eq!(event["spent_before_ms"], spent);
        spent += event["delay_ms"].as_u64().unwrap();
        assert_eq!(event["spent_ms"], spent);
    }
    assert!(spent <= 1000);
    // The same seed without a kill draws the same delays.
    let delays = |events: &[serde_json::Value]| -> Vec<u64> {
        let scheduled = all(events, "retry_scheduled");
        scheduled.iter().map(|event| event["delay_ms"].as_u64().unwrap()).collect()
    };
    let drawn = delays(&events);
    sandbox.call(&["run", "w.yaml", "--seed", "7"]).exits(1);
    assert_eq!(delays(&sandbox.events()), drawn);
}

#[test]
fn the_pool_is_shared_by_all_items() {
    let (sandbox, _) = Sandbox::run_workflow(
        "
mode: mapreduce
retry_budget: 3
retry_budget_per_workflow: 2
map:
  input: {shell: seq 1 2}
  max_parallel: 1
  agent_template:
    - shell: echo ${item} >> log; exit 1
      retry_config: {attempts: 5, backoff: fixed, initial_delay: 3ms}
",
        4,
    );
    // Two first attempts and three retries from the pool.
    assert_eq!(sandbox.lines("log").len(), 5);
    let events = sandbox.events();
    let dead = all(&events, "item_dead_lettered");
    let reasons: BTreeSet<_> = dead.iter().map(|event| text(&event["reason"])).collect();
    let known = ["job_budget_exhausted", "workflow_budget_exhausted"];
    assert!(reasons.iter().all(|reason| known.contains(&reason.as_str())), "{reasons:?}");
    assert_lawful(&events);
}

#[test]
fn the_pool_of_the_operator_is_read_at_submission_and_stored() {
    let sandbox = Sandbox::of(
        "
- shell: echo run >> log; exit 1
  retry_config: {attempts: 5, backoff: fixed, initial_delay: 300ms}
",
    );
    let operator = [("RETRY_BUDGET_DEFAULT", "1")];
    let engine = sandbox.start_run_with(&operator);
    sandbox.event("retry_scheduled");
    engine.kill();
    let report = sandbox.resume().exits(1).json();
    assert_eq!(report["reason"], "job_budget_exhausted");
    assert_eq!(sandbox.lines("log"), ["run", "run"]);
}

#[test]
fn items_that_are_to_be_retried_have_the_default_policy_unless_they_say_otherwise() {
    let workflow = "
mode: mapreduce
map:
  input: {shell: seq 1 1}
  error_policy: {on_item_failure: retry OWN}
  agent_template: [{shell: echo run >> log; exit 1}]
";
    let sandbox = Sandbox::of(&workflow.replace("OWN", ""));
    let scheduled = sandbox.run_killed_at("retry_scheduled");
    assert_fields!(scheduled, {"retries_allowed": 3, "delay_ms": 1000});
    let own = ", retry_config: {attempts: 1, initial_delay: 3ms}";
    let sandbox = Sandbox::of(&workflow.replace(" OWN", own));
    assert_eq!(sandbox.run().exits(4).json()["items"]["dead"], 1);
    assert_eq!(sandbox.lines("log"), ["run", "run"]);
}

#[test]
fn starting_again_after_an_interruption_is_charged_to_the_pool() {
    let (sandbox, engine) = Sandbox::start_workflow(
        "
retry_budget: 1
commands:
  - shell: |
      echo run >> log
      test $UNDAUNTED_ATTEMPT -gt 1 && exit 1
      echo $$ > up
      exec sleep 1000
    retry_config: {attempts: 5, backoff: fixed, initial_delay: 3ms}
",
    );
    sandbox.pid("up");
    engine.kill();
    sandbox.keepers().into_iter().for_each(kill_and_wait);
    let report = sandbox.resume().exits(1).json();
    assert_eq!(report["reason"], "job_budget_exhausted");
    assert_eq!(sandbox.lines("log"), ["run", "run"]);
}

#[test]
fn a_tolerance_that_is_reached_stops_new_starts_and_skips_what_waits() {
    for policy in ["max_failures: 1", "continue_on_failure: false", "on_item_failure: stop"] {
        let sandbox = Sandbox::of(&format!(
            "
mode: mapreduce
map:
  input: {{shell: seq 1 4}}
  max_parallel: 2
  error_policy: {{{policy}}}
  agent_template:
    - shell: |
        echo ${{item}} >> log
        case ${{item}} in
          1) until [ -e go ]; do sleep 0.01; done; exit 1;;
          2) exit 1;;
        esac
        touch go
        until [ -e over ]; do sleep 0.01; done
        echo finished >> log
      retry_config: {{attempts: 1, initial_delay: 30s, rules: [{{exit_code: 1, then: stop}}]}}
reduce: [{{shell: echo reduced >> log}}]
"
        ));
        // Items 1 and 2 fail at once; the first failure stops the job while the other item may still run.
        sandbox.write("go", "");
        sandbox.write("over", "");
        let report = sandbox.run().exits(1).json();
        assert_fields!(report, {"status": "failed", "reason": "tolerance"});
        let log = sandbox.lines("log");
        assert!(!log.contains(&"reduced".to_owned()), "{policy}: {log:?}");
        assert!(!log.contains(&"4".to_owned()), "{policy}: {log:?}");
        sandbox.lawful_events();
    }
}

/// Runs twelve items one after the other, of which the first `fail` fail. Returns the exit code, the reason,
/// and how many items ran.
fn tolerated(fail: u32, policy: &str) -> (i32, String, usize) {
    let sandbox = Sandbox::of(&format!(
        "
mode: mapreduce
map:
  input: {{shell: seq 1 12}}
  max_parallel: 1
  error_policy: {{{policy}}}
  agent_template: [{{shell: 'echo ${{item}} >> log; test ${{item}} -gt {fail}'}}]
"
    ));
    let ended = sandbox.run();
    (ended.code, text(&ended.json()["reason"]), sandbox.lines("log").len())
}

#[test]
fn a_tolerance_is_a_number_or_a_share_of_at_least_ten() {
    let tolerance = || "tolerance".to_owned();
    let attempts = || "attempts".to_owned();
    assert_eq!(tolerated(3, "max_failures: 3"), (1, tolerance(), 3));
    assert_eq!(tolerated(2, "max_failures: 3"), (4, attempts(), 12));
    // Five of ten are not more than a half, and a share is not computed below ten items.
    assert_eq!(tolerated(5, "failure_threshold: 0.5"), (4, attempts(), 12));
    assert_eq!(tolerated(6, "failure_threshold: 0.5"), (1, tolerance(), 10));
    assert_eq!(tolerated(2, "on_item_failure: skip"), (0, String::new(), 12));
}

#[test]
fn a_low_limit_of_open_files_costs_no_item() {
    let sandbox = Sandbox::of(
        "
mode: mapreduce
map:
  input: {shell: seq 1 30}
  max_parallel: 30
  agent_template: [{shell: 'echo ${item} >> log; until [ -e go ]; do sleep 0.05; done'}]
",
    );
    let ours = sandbox.program(&["run", "w.yaml", "--json"], &[]);
    let mut limited = std::process::Command::new("/bin/sh");
    let script = "ulimit -Sn 40; exec \"$0\" \"$@\"";
    limited.args(["-c", script]).arg(ours.get_program()).args(ours.get_args());
    for (name, value) in ours.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    limited.current_dir(sandbox.path(""));
    let engine = sandbox.start(limited);
    sandbox.wait_for_lines("log", 8);
    sandbox.write("go", "");
    let report = engine.wait().exits(0).json();
    assert_eq!(report["items"]["succeeded"], 30, "{report}");
    assert_eq!(sandbox.lines("log").len(), 30);
}
