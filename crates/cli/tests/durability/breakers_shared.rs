//! One breaker for all jobs of a store, whichever process runs them.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};

use crate::history::{all, assert_fields, changes, count_outcomes, has_event, held, probes, running, starts};
use crate::processes::ChildProcess;
use crate::sandbox::Sandbox;

const SETTINGS: &str = "failure_threshold: 3, recovery_timeout: 10s, half_open_max_calls: 2";

/// A map whose items succeed while the file `up` exists.
fn workflow(name: &str, items: u32, breaker: &str) -> String {
    format!(
        "
name: {name}
mode: mapreduce
map:
  input: {{shell: seq 1 {items}}}
  max_parallel: 3
  agent_template:
    - id: call
      shell: |
        if [ -e up ]; then echo done-{name}-${{item}} >> log; exit; fi
        echo failed-{name}-${{item}} >> log
        exit 1
      breaker: {{name: shared, {breaker}}}
      retry_config: {{attempts: 20, backoff: fixed, initial_delay: 3ms}}
"
    )
}

/// Starts a job and returns its id.
fn start_job(sandbox: &Sandbox, name: &str, items: u32, breaker: &str) -> (ChildProcess, String) {
    let file = format!("{name}.yaml");
    sandbox.write(&file, &workflow(name, items, breaker));
    let before = sandbox.jobs();
    let engine = sandbox.spawn(&["run", &file, "--json"]);
    let job = Sandbox::eventually("the job", || sandbox.jobs().into_iter().find(|job| !before.contains(job)));
    (engine, job)
}

/// How many lines of the commands' log begin like this.
fn lines_beginning(sandbox: &Sandbox, what: &str) -> usize {
    let log = sandbox.lines("log");
    log.iter().filter(|line| line.starts_with(what)).count()
}

/// Asserts that the journal of a job has exactly the attempts in the commands' log.
fn assert_journal_matches_log(sandbox: &Sandbox, name: &str, job: &str, items: u32) {
    let events = sandbox.lawful_events_of(job);
    let ran = lines_beginning(sandbox, &format!("done-{name}-"))
        + lines_beginning(sandbox, &format!("failed-{name}-"));
    let started: u64 = starts(&events).values().sum();
    assert_eq!(u64::try_from(ran).unwrap(), started, "{name}");
    let failed = count_outcomes(&events, "exit");
    assert_eq!(lines_beginning(sandbox, &format!("failed-{name}-")), failed);
    let runs = sandbox.runs("log");
    for item in 1..=items {
        assert_eq!(runs.get(&format!("done-{name}-{item}")), Some(&1), "{name} {item}");
    }
}

#[test]
fn a_breaker_that_one_job_opened_holds_another_which_never_fails() {
    let sandbox = Sandbox::new();
    let (first, a) = start_job(&sandbox, "a", 5, SETTINGS);
    sandbox.wait_for_open_breaker("shared");
    let (second, b) = start_job(&sandbox, "b", 6, SETTINGS);
    Sandbox::wait_until("held items", || held(&sandbox.events_of(&b)).len() == 3);
    Sandbox::wait_until("the end of all attempts", || running(&sandbox.events_of(&a)) == 0);
    assert_eq!(lines_beginning(&sandbox, "failed-b"), 0);
    assert!(!has_event(&sandbox.events_of(&b), "attempt_started"));
    assert!((3..=5).contains(&lines_beginning(&sandbox, "failed-a")));
    sandbox.write("up", "");
    sandbox.reset_breaker("shared");
    first.wait().exits(0);
    second.wait().exits(0);
    assert_eq!(lines_beginning(&sandbox, "failed-b"), 0);
    assert_journal_matches_log(&sandbox, "a", &a, 5);
    assert_journal_matches_log(&sandbox, "b", &b, 6);
    // Both jobs use the same breaker.
    assert_eq!(sandbox.stdout(&["breaker", "ls", "--json"]).lines().count(), 1);
}

#[test]
fn four_jobs_fail_and_recover_on_one_breaker_without_losing_or_doubling_anything() {
    let sandbox = Sandbox::new();
    let settings = "failure_threshold: 3, recovery_timeout: 150ms, half_open_max_calls: 2";
    let names = ["a", "b", "c", "d"];
    let engines = names.map(|name| start_job(&sandbox, name, 40, settings));
    sandbox.wait_for_breaker("shared", |breaker| probes(breaker) > 3);
    sandbox.write("up", "");
    let jobs = engines.map(|(engine, job)| {
        engine.wait().exits(0);
        job
    });
    for (name, job) in names.iter().zip(&jobs) {
        assert_journal_matches_log(&sandbox, name, job, 40);
    }
    // When the breaker opens, each job may have as many attempts running as its map is wide.
    let breaker = sandbox.breaker("shared");
    let bound = 3 + 4 * 3 - 1 + probes(&breaker);
    let failed = lines_beginning(&sandbox, "failed-");
    assert!(failed <= bound, "{failed} of {bound}");
    assert_eq!(changes(&breaker, "closed"), 1);
    assert_probes_alternate(&breaker);
}

/// Asserts that a probe starts only while no other runs and that only a probe follows an opening.
fn assert_probes_alternate(breaker: &Value) {
    let mut last = "closed".to_owned();
    let mut probing = false;
    for change in breaker["history"].as_array().unwrap() {
        let word = change["change"].as_str().unwrap();
        match word {
            "half_opened" => assert!(last == "open" && !probing, "{breaker:#}"),
            "probe" => assert!(last == "half_open" && !probing, "{breaker:#}"),
            _ => {}
        }
        probing = ["half_opened", "probe"].contains(&word);
        change["state"].as_str().unwrap().clone_into(&mut last);
    }
}

#[test]
fn many_jobs_start_nothing_while_their_breaker_is_open() {
    let sandbox = Sandbox::new();
    let names = ["a", "b", "c", "d"];
    let engines = names.map(|name| start_job(&sandbox, name, 10, SETTINGS));
    let quiet = |job: &str| {
        let events = sandbox.events_of(job);
        running(&events) == 0 && held(&events).len() >= 3
    };
    Sandbox::wait_until("held items", || engines.iter().all(|(_, job)| quiet(job)));
    let breaker = sandbox.breaker("shared");
    assert_eq!((&breaker["state"], probes(&breaker)), (&json!("open"), 0));
    let failed = lines_beginning(&sandbox, "failed-");
    assert!((3..=3 + 4 * 3 - 1).contains(&failed), "{failed}");
    sandbox.write("up", "");
    sandbox.reset_breaker("shared");
    let mut ran = BTreeMap::new();
    for (name, (engine, job)) in names.iter().zip(engines) {
        let report = engine.wait().exits(0).json();
        assert_journal_matches_log(&sandbox, name, &job, 10);
        ran.insert(job, report["attempts"].as_u64().unwrap());
    }
    let ran: u64 = ran.values().sum();
    assert_eq!(usize::try_from(ran).unwrap(), 40 + failed);
}

#[test]
fn the_latest_submission_sets_a_breaker_and_that_is_an_event() {
    let sandbox = Sandbox::new();
    sandbox.write("up", "");
    for (name, threshold) in [("a", 3), ("b", 3), ("c", 7)] {
        let settings = format!("failure_threshold: {threshold}, recovery_timeout: 10s");
        let (engine, job) = start_job(&sandbox, name, 2, &settings);
        engine.wait().exits(0);
        assert_eq!(sandbox.breaker("shared")["settings"]["failure_threshold"], threshold);
        let events = sandbox.events_of(&job);
        let configured = all(&events, "breaker_configured");
        // There is no event when the breaker is created or the settings are the same.
        assert_eq!(configured.len(), usize::from(name == "c"), "{name}");
        for event in configured {
            assert_eq!(event["breaker"], "shared");
            let changes = event["changes"].as_array().unwrap();
            assert_eq!(changes.len(), 1);
            assert_eq!((&changes[0]["old"], &changes[0]["new"]), (&json!("3"), &json!("7")));
        }
    }
}

#[test]
fn settings_of_a_later_submission_hold_for_a_job_that_runs() {
    let sandbox = Sandbox::new();
    let (first, a) = start_job(&sandbox, "a", 4, &SETTINGS.replace("10s", "5s"));
    sandbox.wait_for_open_breaker("shared");
    let until = sandbox.breaker("shared")["until"].clone();
    let other = "failure_threshold: 3, recovery_timeout: 5s, half_open_max_calls: 1";
    let (second, _) = start_job(&sandbox, "b", 1, other);
    let breaker =
        sandbox.wait_for_breaker("shared", |breaker| breaker["settings"]["half_open_max_calls"] == 1);
    assert_eq!((&breaker["state"], &breaker["until"]), (&json!("open"), &until));
    // After the recovery timeout one success closes the breaker.
    sandbox.write("up", "");
    let at_its_time = first.wait().exits(0);
    second.wait().exits(0);
    assert_eq!(at_its_time.json()["items"]["succeeded"], 4);
    assert_eq!(probes(&sandbox.breaker("shared")), 1);
    assert_journal_matches_log(&sandbox, "a", &a, 4);
}

#[test]
fn an_update_changes_the_settings_of_a_breaker() {
    let sandbox = Sandbox::new();
    let (engine, job) = start_job(&sandbox, "a", 4, SETTINGS);
    sandbox.wait_for_open_breaker("shared");
    engine.kill();
    let other = SETTINGS.replace("failure_threshold: 3", "failure_threshold: 9");
    sandbox.write("a.yaml", &workflow("a", 4, &other));
    let engine = sandbox.spawn(&["resume", &job, "--update", "--json"]);
    let breaker = sandbox.wait_for_breaker("shared", |breaker| breaker["settings"]["failure_threshold"] == 9);
    assert_eq!(breaker["state"], "open");
    sandbox.write("up", "");
    sandbox.reset_breaker("shared");
    engine.wait().exits(0);
    let events = sandbox.events_of(&job);
    let changed = all(&events, "policy_changed");
    assert_eq!(changed.len(), 1);
    let change = &changed[0]["changes"][0];
    assert_fields!(change, {"old": "3", "new": "9"});
    assert_journal_matches_log(&sandbox, "a", &job, 4);
}

#[test]
fn jobs_killed_in_turn_on_one_breaker_lose_and_double_nothing() {
    let sandbox = Sandbox::new();
    let settings = "failure_threshold: 3, recovery_timeout: 80ms, half_open_max_calls: 2";
    let names = ["a", "b"];
    let mut runs: VecDeque<_> = names.map(|name| start_job(&sandbox, name, 15, settings)).into();
    for kills in 0..6 {
        sandbox.wait_for_breaker("shared", |breaker| probes(breaker) > kills);
        let (engine, job) = runs.pop_front().unwrap();
        engine.kill();
        runs.push_back((sandbox.spawn(&["resume", &job, "--json"]), job));
    }
    sandbox.write("up", "");
    // After an even number of kills the jobs are in their old order.
    for (name, (engine, job)) in names.iter().zip(runs) {
        engine.wait().exits(0);
        assert_journal_matches_log(&sandbox, name, &job, 15);
    }
    let breaker = sandbox.breaker("shared");
    let bound = 3 + 2 * 3 - 1 + probes(&breaker);
    assert!(lines_beginning(&sandbox, "failed-") <= bound, "{breaker:#}");
    assert_eq!(breaker["state"], "closed");
}
