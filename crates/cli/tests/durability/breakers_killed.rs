//! Breakers and held items after a kill.

use std::time::Instant;

use serde_json::json;

use crate::history::{
    assert_fields, changes, count_outcomes, has_event, held, one, only_probes_start_while_open, probes,
    running,
};
use crate::processes::Dice;
use crate::random_instants::kill_until_done;
use crate::sandbox::{FinishedProcess, Sandbox};

const WAITS: &str = "
mode: mapreduce
map:
  input: {shell: seq 1 6}
  max_parallel: 2
  agent_template:
    - shell: echo ${item}-$UNDAUNTED_ATTEMPT >> log; test -e up
      breaker: {name: shared, failure_threshold: 2, recovery_timeout: 10s, half_open_max_calls: 2}
      retry_config: {attempts: 3, backoff: fixed, initial_delay: 3ms}
";

#[test]
fn a_breaker_opened_before_a_kill_is_open_after_it_until_the_same_instant() {
    let (sandbox, engine) = Sandbox::start_workflow(&WAITS.replace("10s", "5s"));
    sandbox.wait_for_open_breaker("shared");
    let before =
        sandbox.wait_for_events("held items", |events| held(events).len() >= 2 && running(events) == 0);
    engine.kill();
    let breaker = sandbox.breaker("shared");
    let log = sandbox.lines("log");
    let engine = sandbox.start_resume();
    let resumed = sandbox.event("job_resumed");
    assert_eq!(resumed["restored"]["held"], held(&before).len());
    let after = sandbox.breaker("shared");
    for key in ["state", "opened_at", "until", "history"] {
        assert_eq!(after[key], breaker[key], "{key}");
    }
    assert_eq!(sandbox.lines("log"), log, "nothing starts while it is open");
    let before = held(&before);
    assert!(before.is_subset(&held(&sandbox.events())), "they are still on hold");
    sandbox.write("up", "");
    let report = engine.wait().exits(0).json();
    assert_eq!(report["items"]["succeeded"], 6);
    let events = sandbox.lawful_events();
    // The first start is a probe, and not before the recovery timeout has passed.
    let half_opened = one(&events, "breaker_half_opened");
    assert!(half_opened["at"].as_str() >= breaker["until"].as_str());
    only_probes_start_while_open(&events, &sandbox.breaker("shared"));
}

#[test]
fn a_breaker_whose_recovery_timeout_passed_during_downtime_lets_one_probe_through_at_once() {
    let (sandbox, engine) = Sandbox::start_workflow(WAITS);
    sandbox.wait_for_open_breaker("shared");
    engine.kill();
    sandbox.write("up", "");
    sandbox.resume_at("3600").exits(0);
    let breaker = sandbox.breaker("shared");
    assert_eq!((probes(&breaker), &breaker["state"]), (2, &json!("closed")));
    sandbox.lawful_events();
}

#[test]
fn downtime_counts_to_the_longest_hold_and_to_the_deadline_of_an_item() {
    for (max_hold, item, reason) in [
        (", max_hold: 60s", "", "circuit_open"),
        ("", "timeout_config: {agent_timeout_secs: 60}", "deadline"),
    ] {
        let breaker = "recovery_timeout: 10s";
        let (sandbox, engine) = Sandbox::start_workflow(
            &WAITS
                .replace(breaker, &format!("recovery_timeout: 2h{max_hold}"))
                .replace("seq 1 6}", "seq 1 2}")
                .replace("  max_parallel: 2", &format!("  max_parallel: 2\n  {item}")),
        );
        sandbox.wait_for_events("held items", |events| held(events).len() == 2);
        engine.kill();
        let before = sandbox.lines("log");
        sandbox.write("up", "");
        let ended = sandbox.resume_at("3600");
        ended.exits(4);
        assert_eq!(sandbox.lines("log"), before);
        for letter in sandbox.dead_letters() {
            assert_eq!(letter["reason"], reason);
        }
        sandbox.lawful_events();
    }
}

/// A dependency that fails the first seven calls.
const OUTAGE: &str = "
mode: mapreduce
map:
  input: {shell: seq 1 5}
  max_parallel: 2
  agent_template:
    - shell: |
        echo ${item}-$UNDAUNTED_ATTEMPT >> log
        test $(wc -l < log) -gt 7
      breaker: {name: shared, failure_threshold: 3, recovery_timeout: 15ms, half_open_max_calls: 2}
      retry_config: {attempts: 9, backoff: fixed, initial_delay: 2ms}
";

/// Asserts that each attempt ran once and that the outage cost no more than threshold, width and probes.
fn assert_limits_held(sandbox: &Sandbox, ended: &FinishedProcess) {
    let report = ended.json();
    assert_eq!(report["items"]["succeeded"], 5, "{report}");
    let runs = sandbox.runs("log");
    assert!(runs.values().all(|runs| *runs == 1), "{runs:?}");
    assert_eq!(report["attempts"], runs.len());
    let events = sandbox.lawful_events();
    let failed = count_outcomes(&events, "exit");
    let breaker = sandbox.breaker("shared");
    assert!(failed <= 3 + 2 - 1 + probes(&breaker), "{events:#?}");
    assert!(failed <= 7);
    only_probes_start_while_open(&events, &breaker);
    assert_eq!(breaker["state"], "closed", "{breaker:#}");
    assert_eq!(held(&events), [].into());
}

/// Dies at a failpoint with each number in turn, in `run` and once more in `resume`.
fn dies_at_every(failpoint: &str, numbers: impl Iterator<Item = u64>) {
    let mut reached = 0;
    for number in numbers {
        let sandbox = Sandbox::of(OUTAGE);
        let failpoint_number = format!("{failpoint}:{number}");
        let die = [("UNDAUNTED_TEST_DIE", failpoint_number.as_str())];
        let mut ended = sandbox.run_with(&die);
        if ended.code == -9 {
            reached += 1;
            ended = sandbox.resume_with(&die);
            if ended.code == -9 {
                ended = sandbox.resume();
            }
        }
        assert_eq!(ended.code, 0, "{failpoint_number} {ended:?}");
        assert_limits_held(&sandbox, &ended);
    }
    println!("{failpoint}: {reached} numbers reached");
    assert!(reached > 3, "{failpoint} is hardly reached");
}

#[test]
fn killed_before_any_write_of_an_outage_the_limits_hold() {
    dies_at_every("append-before", 4..28);
}

#[test]
fn killed_after_any_write_of_an_outage_the_limits_hold() {
    dies_at_every("append-after", 4..28);
}

#[test]
fn killed_around_any_command_of_an_outage_the_limits_hold() {
    dies_at_every("begin-before", 1..10);
    dies_at_every("begin-after", 1..10);
}

#[test]
fn killed_before_any_end_of_an_outage_is_recorded_the_limits_hold() {
    dies_at_every("ended-before", 1..10);
    dies_at_every("forget-after", 1..10);
}

#[test]
fn killed_at_random_instants_of_an_outage_the_limits_hold() {
    let mut dice = Dice::seeded();
    for round in 1..=4 {
        let sandbox = Sandbox::of(OUTAGE);
        let deaths = kill_until_done(&sandbox, &mut dice, |_| {});
        println!("round {round}: {deaths} kills");
        assert_limits_held(&sandbox, &sandbox.resume().exits(0));
    }
}

/// The first two calls fail and open the breaker; each later call waits for the file `go`.
const PROBER: &str = "
mode: mapreduce
map:
  input: {shell: seq 1 3}
  max_parallel: 1
  agent_template:
    - shell: |
        echo prober-${item}-$UNDAUNTED_ATTEMPT >> log
        test $(grep -c prober log) -gt 2 || exit 1
        echo $$ > probing
        until [ -e go ]; do sleep 0.01; done
      breaker: {name: shared, failure_threshold: 2, recovery_timeout: 200ms, half_open_max_calls: 1}
      retry_config: {attempts: 3, backoff: fixed, initial_delay: 3ms}
";

const OTHER: &str = "
mode: mapreduce
map:
  input: {shell: seq 1 4}
  max_parallel: 2
  agent_template:
    - shell: echo other-${item}-$UNDAUNTED_ATTEMPT >> log
      breaker: {name: shared, failure_threshold: 2, recovery_timeout: 200ms, half_open_max_calls: 1}
";

#[test]
fn when_the_probing_job_is_killed_another_job_probes() {
    let sandbox = Sandbox::of(PROBER);
    sandbox.write("other.yaml", OTHER);
    let prober = sandbox.start_run();
    sandbox.pid("probing");
    let job = sandbox.job();
    let other = sandbox.spawn(&["run", "other.yaml", "--json"]);
    let probe = Sandbox::eventually("held items", || {
        let listed = sandbox.call(&["ls", "--json"]).out.lines().count();
        let held = listed == 2 && has_event(&sandbox.events(), "held");
        held.then(|| sandbox.breaker("shared")["probe"].clone())
    });
    assert_eq!(probe["job"], job.as_str());
    // A slow probe of a living process is never given up.
    let began = Instant::now();
    Sandbox::wait_until("more than the recovery timeout", || began.elapsed().as_millis() > 500);
    assert_eq!(sandbox.breaker("shared")["probe"], probe);
    assert!(!has_event(&sandbox.events(), "attempt_started"));
    prober.kill();
    let report = other.wait().exits(0).json();
    assert_fields!(report, {"attempts": 4, "retries": 0});
    let breaker = sandbox.breaker("shared");
    assert_eq!((changes(&breaker, "probe_lost"), &breaker["state"]), (1, &json!("closed")));
    // The probing command survived its engine, and its result is collected.
    sandbox.write("go", "");
    let report = sandbox.json(&["resume", &job, "--json"]);
    assert_eq!(report["attempts"], 5);
    let runs = sandbox.runs("log");
    assert!(runs.values().all(|runs| *runs == 1), "{runs:?}");
    assert_eq!(runs.len(), 9);
    sandbox.lawful_events_of(&job);
    assert_eq!(sandbox.breaker("shared")["state"], "closed");
}

#[test]
fn a_probe_that_was_running_at_a_kill_is_collected_after_the_resume() {
    let (sandbox, engine) = Sandbox::start_workflow(PROBER);
    sandbox.pid("probing");
    engine.kill();
    assert_eq!(sandbox.breaker("shared")["state"], "half_open");
    let engine = sandbox.start_resume();
    sandbox.event("job_resumed");
    sandbox.write("go", "");
    let report = engine.wait().exits(0).json();
    assert_eq!(report["attempts"], 5);
    let breaker = sandbox.breaker("shared");
    assert_eq!((probes(&breaker), &breaker["state"]), (1, &json!("closed")));
    let events = sandbox.lawful_events();
    only_probes_start_while_open(&events, &breaker);
}

#[test]
fn a_job_that_fails_at_an_open_breaker_does_not_fail_for_ever_because_a_prober_died() {
    let sandbox = Sandbox::of(PROBER);
    let fails = OTHER.replace(", failure_threshold", ", when_open: fail, failure_threshold");
    sandbox.write("other.yaml", &fails);
    let prober = sandbox.start_run();
    sandbox.pid("probing");
    sandbox.call(&["run", "other.yaml", "--json"]).exits(4);
    prober.kill();
    let done = Sandbox::eventually("the probe is given up", || {
        let done = sandbox.call(&["run", "other.yaml", "--json"]);
        (done.code == 0).then_some(done)
    });
    assert_eq!(done.json()["items"]["succeeded"], 4);
    sandbox.write("go", "");
}

#[test]
fn the_result_of_a_probe_that_was_given_up_no_longer_counts() {
    let sandbox = Sandbox::of(&PROBER.replace("half_open_max_calls: 1", "half_open_max_calls: 2"));
    let slow = OTHER
        .replace("half_open_max_calls: 1", "half_open_max_calls: 2")
        .replace(" >> log", " >> log; until [ -e end ]; do sleep 0.01; done");
    sandbox.write("other.yaml", &slow);
    let prober = sandbox.start_run();
    sandbox.pid("probing");
    let job = sandbox.job();
    prober.kill();
    let other = sandbox.spawn(&["run", "other.yaml", "--json"]);
    Sandbox::wait_until("another probe", || {
        let probe = sandbox.breaker("shared")["probe"].clone();
        probe["job"].is_string() && probe["job"] != job.as_str()
    });
    sandbox.write("go", "");
    let engine = sandbox.spawn(&["resume", &job, "--json"]);
    sandbox.wait_for_event_of(&job, "item_succeeded");
    let breaker = sandbox.breaker("shared");
    assert_eq!((changes(&breaker, "probe_succeeded"), breaker["probe"]["job"] == json!(job)), (0, false));
    sandbox.write("end", "");
    other.wait().exits(0);
    engine.wait().exits(0);
}
