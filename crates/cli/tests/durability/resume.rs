//! A job is resumed as it was submitted, or with new settings.

use std::fs;

use serde_json::json;

use crate::flows::flow;
use crate::history::{all, assert_fields, count, has_event, millis, one};
use crate::http_server::{Reply, ScriptedServer};
use crate::sandbox::Sandbox;

#[test]
fn resuming_an_ended_job_reports_the_same_and_changes_nothing() {
    let workflows = [
        (0, "[{shell: echo run >> log}]"),
        (1, "[{shell: echo run >> log; exit 3}]"),
        (
            4,
            "{mode: mapreduce, map: {input: {shell: seq 1 2}, agent_template: [{shell: 'echo run >> log; test ${item} = 1'}]}}",
        ),
    ];
    for (code, workflow) in workflows {
        let sandbox = Sandbox::of(workflow);
        let report = sandbox.run().exits(code).json();
        let (events, log) = (sandbox.events(), sandbox.lines("log"));
        let database = fs::read(sandbox.store().join("undaunted.db")).unwrap();
        assert_eq!(sandbox.resume().exits(code).json(), report);
        assert_eq!(sandbox.resume().exits(code).json(), report);
        assert_eq!(sandbox.events(), events);
        assert_eq!(sandbox.lines("log"), log);
        assert_eq!(fs::read(sandbox.store().join("undaunted.db")).unwrap(), database);
    }
}

const WAITS: &str = "
env: {GREETING: hello}
commands:
  - id: flaky
    shell: echo $GREETING ${env.OUTSIDE} >> log; test -e ok
    retry_config: {attempts: 1, backoff: fixed, initial_delay: 2s}
";

/// A job that was killed while it waited, and the time at which its retry is due.
fn killed_while_waiting(workflow: &str) -> (Sandbox, serde_json::Value) {
    let sandbox = Sandbox::of(workflow);
    let engine = sandbox.start_run_with(&[("OUTSIDE", "before")]);
    let due = sandbox.event("retry_scheduled")["due_at"].clone();
    engine.kill();
    (sandbox, due)
}

#[test]
fn a_job_is_resumed_as_it_was_submitted_wherever_the_resume_runs() {
    let (sandbox, _) = killed_while_waiting(WAITS);
    sandbox.write("ok", "");
    fs::remove_file(sandbox.path("w.yaml")).unwrap();
    let mut resume = sandbox.program(&["resume", "@last", "--json"], &[("OUTSIDE", "after")]);
    resume.current_dir("/");
    sandbox.start(resume).wait().exits(0);
    // The directory, the declared environment and the workflow are those of the submission.
    assert_eq!(sandbox.lines("log"), ["hello before", "hello before"]);
}

#[test]
fn a_changed_workflow_file_is_reported_and_not_used() {
    let (sandbox, _) = killed_while_waiting(WAITS);
    sandbox.write("ok", "");
    sandbox.write("w.yaml", &WAITS.replace("hello", "goodbye").replace("attempts: 1", "attempts: 9"));
    sandbox.resume().exits(0).err_contains("has changed since").err_contains("--update");
    assert_eq!(sandbox.lines("log"), ["hello before", "hello before"]);
    assert!(!has_event(&sandbox.events(), "policy_changed"));
}

#[test]
fn an_unchanged_workflow_file_is_not_reported() {
    let (sandbox, _) = killed_while_waiting(WAITS);
    sandbox.write("ok", "");
    let ended = sandbox.resume().exits(0);
    assert!(!ended.err.contains("changed"), "{ended:?}");
}

#[test]
fn an_update_applies_to_what_is_not_decided_and_a_scheduled_retry_stands() {
    let (sandbox, due) = killed_while_waiting(WAITS);
    sandbox.write("w.yaml", &WAITS.replace("attempts: 1", "attempts: 3").replace("2s", "10ms"));
    let ended = sandbox.call(&["resume", "@last", "--update", "--json"]).exits(1);
    let report = ended.json();
    assert_fields!(report, {"attempts": 4, "delay_ms": 2020});
    let events = sandbox.lawful_events();
    let scheduled = all(&events, "retry_scheduled");
    assert_eq!(scheduled[0]["due_at"], due);
    assert!(all(&events, "attempt_started")[1]["at"].as_str() >= due.as_str());
    let delays: Vec<_> = scheduled.iter().map(|event| &event["delay_ms"]).collect();
    assert_eq!(delays, [&json!(2000), &json!(10), &json!(10)]);
    let mut changes = one(&events, "policy_changed")["changes"].as_array().unwrap().clone();
    changes.sort_by_key(|change| change["setting"].to_string());
    assert_eq!(changes.len(), 2, "{changes:?}");
    assert_eq!(changes[0]["of"], "flaky");
    assert_eq!(changes[0]["setting"], "retry_config.attempts");
    assert_eq!((&changes[0]["old"], &changes[0]["new"]), (&json!("1"), &json!("3")));
    assert_eq!(changes[1]["setting"], "retry_config.initial_delay");
    assert_eq!((&changes[1]["old"], &changes[1]["new"]), (&json!("2s"), &json!("10ms")));
}

#[test]
fn an_update_from_another_file_is_taken_and_survives_the_next_kill() {
    let (sandbox, _) = killed_while_waiting(WAITS);
    sandbox.write("other.yaml", &WAITS.replace("attempts: 1", "attempts: 2").replace("2s", "5s"));
    let engine = sandbox.spawn(&["resume", "@last", "--update", "other.yaml", "--json"]);
    sandbox.wait_for_lines("log", 2);
    Sandbox::wait_until("the second wait", || count(&sandbox.events(), "retry_scheduled") == 2);
    engine.kill();
    let second = all(&sandbox.events(), "retry_scheduled")[1].clone();
    assert_fields!(second, {"delay_ms": 5000, "retries_allowed": 2});
    let ended = sandbox.resume_at("10").exits(1);
    assert_eq!(ended.json()["attempts"], 3);
}

#[test]
fn an_update_cannot_change_what_is_done() {
    let (sandbox, _) = killed_while_waiting(WAITS);
    let before = sandbox.events();
    let changed = [
        WAITS.replace("test -e ok", "true"),
        WAITS.replace("hello", "goodbye"),
        format!("{WAITS}  - shell: 'true'\n"),
        WAITS.replace("id: flaky", "id: other"),
    ];
    for text in changed {
        sandbox.write("w.yaml", &text);
        let refused = sandbox.call(&["resume", "@last", "--update", "--json"]).exits(3);
        assert!(refused.err.contains("differs"), "the difference is said: {refused:?}");
        assert_eq!(refused.out, "");
    }
    assert_eq!(sandbox.events(), before);
    sandbox.write("w.yaml", "[{shell: 1, nonsense: 2}]");
    sandbox.call(&["resume", "@last", "--update"]).exits(3);
    sandbox.call(&["resume", "@last", "--update", "nofile.yaml"]).exits(6);
    assert_eq!(sandbox.events(), before);
}

#[test]
fn an_update_of_a_flow_cannot_change_what_it_computes() {
    let server = ScriptedServer::start().on("/a", &[Reply::status(503), Reply::done()]);
    let waits = ", work_config: {max_retries: 3, backoff: 60000, max_backoff: 60000, parallelism: 2}";
    let attributes = "x: {role: required}, y: {role: output}";
    let sandbox = flow(&server, "goals: [a]\ninit: {x: 1}", &[("a", attributes, waits)]);
    sandbox.run_killed_at("retry_scheduled");
    let (before, text) = (sandbox.events(), sandbox.read("w.yaml"));
    for (old, new, difference) in [
        ("x: 1", "x: 2", "the workflow: init differs"),
        ("y: {role: output}", "z: {role: output}", "a: attributes differs"),
        (
            ", work_config",
            ", predicate: {language: cel, script: 'x > 0'}, work_config",
            "a: predicate differs",
        ),
        ("parallelism: 2", "parallelism: 1", "a: work_config.parallelism differs"),
    ] {
        assert!(text.contains(old), "{old}: {text}");
        sandbox.write("w.yaml", &text.replace(old, new));
        sandbox.call(&["resume", "@last", "--update"]).exits(3).err_contains(difference);
    }
    assert_eq!(sandbox.events(), before);
    sandbox.write("w.yaml", &text.replace("max_retries: 3", "max_retries: 5"));
    let engine = sandbox.spawn(&["resume", "@last", "--update"]);
    let updated = sandbox.event("policy_changed");
    engine.kill();
    let changes = updated["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_fields!(changes[0], {"of": "a", "setting": "retry_config.attempts", "old": "3", "new": "5"});
}

/// Six dead letters.
const DEAD: &str = "
mode: mapreduce
map:
  input: {shell: seq 1 6}
  agent_template: [{shell: test -e mended}]
";

#[test]
fn the_rate_of_a_redrive_is_kept_over_a_kill_and_a_resume() {
    // Four a second; the time between a decision and its record varies a little.
    const LEAST: i64 = 200;
    let sandbox = Sandbox::of(DEAD);
    sandbox.run().exits(4);
    sandbox.write("mended", "");
    let before = count(&sandbox.events(), "attempt_started");
    let redrive = sandbox.spawn(&["dlq", "redrive", "@last", "--yes", "--rate", "4"]);
    sandbox.wait_for_events("two starts", |events| count(events, "attempt_started") >= before + 2);
    redrive.kill();
    let killed = count(&sandbox.events(), "attempt_started");
    assert!(killed < before + 6, "killed too late");
    sandbox.resume().exits(0);
    let events = sandbox.events();
    assert_eq!(one(&events, "starts_spaced")["every_ms"], 250);
    let starts: Vec<i64> = all(&events, "attempt_started").iter().map(|it| millis(&it["at"])).collect();
    let spaces: Vec<i64> = starts[before..].windows(2).map(|two| two[1] - two[0]).collect();
    assert_eq!(spaces.len(), 5);
    assert!(spaces.iter().all(|space| *space >= LEAST), "{spaces:?}");
}

/// The settings that an update has changed, as `setting old new`.
fn changes_of(updated: &serde_json::Value) -> Vec<String> {
    let changes = updated["changes"].as_array().unwrap().iter();
    let changes = changes.map(|change| {
        let text = |name: &str| change[name].as_str().unwrap().to_owned();
        format!("{} {} {}", text("setting"), text("old"), text("new"))
    });
    changes.collect()
}

#[test]
fn an_update_changes_the_pool_of_a_list_but_not_below_what_is_used() {
    let list = "
retry_budget: 3
commands:
  - shell: echo run >> log; exit 1
    retry_config: {attempts: 9, backoff: {custom: {delays: [1ms, 1ms, 1h]}}, max_delay: 1h}
";
    let sandbox = Sandbox::of(list);
    let engine = sandbox.start_run();
    sandbox.wait_for_events("the third retry", |events| count(events, "retry_scheduled") == 3);
    engine.kill();
    sandbox.write("w.yaml", &list.replace("budget: 3", "budget: 1"));
    sandbox
        .call_with(&["resume", "@last", "--update", "--json"], &[("UNDAUNTED_TEST_CLOCK", "4000")])
        .exits(1);
    let events = sandbox.lawful_events();
    assert_eq!(changes_of(one(&events, "policy_changed")), ["retry_budget 3 3"]);
    assert_eq!(count(&events, "attempt_started"), 4, "the scheduled retry stands, and is the last");
    let budget = sandbox.json(&["budget", "show", "@last", "--json"]);
    assert_fields!(budget, {"total_budget": 3, "consumed": 3});
}

#[test]
fn an_update_changes_the_completion_rule_of_a_map() {
    let map = "
mode: mapreduce
map:
  input: {shell: seq 1 3}
  max_parallel: 3
  agent_template: [{shell: 'echo ${item} >> log; test ${item} = 1 || exit 1', retry_config: {attempts: 5, initial_delay: 1h, max_delay: 1h}}]
";
    let sandbox = Sandbox::of(map);
    let engine = sandbox.start_run();
    sandbox.wait_for_events("two retries", |events| {
        count(events, "retry_scheduled") == 2 && has_event(events, "item_succeeded")
    });
    engine.kill();
    sandbox.write("w.yaml", &map.replace("  max_parallel", "  best_effort: true\n  max_parallel"));
    let report = sandbox.call(&["resume", "@last", "--update", "--json"]).exits(0).json();
    assert_fields!(report, {"status": "completed"});
    assert_eq!(report["missing"].as_array().unwrap().len(), 2);
    let events = sandbox.lawful_events();
    assert_eq!(changes_of(one(&events, "policy_changed")), ["best_effort false true"]);
    assert_eq!(one(&events, "completion_reached")["reason"], "min_dcs_reached (1/1)");
}

#[test]
fn an_update_does_not_move_a_deadline_that_has_passed() {
    let list = WAITS.replace("commands:", "deadline: 5s\ncommands:");
    let (sandbox, _) = killed_while_waiting(&list);
    sandbox.write("w.yaml", &list.replace("deadline: 5s", "deadline: 1h"));
    let update = ["resume", "@last", "--update", "--json"];
    let ended = sandbox.call_with(&update, &[("UNDAUNTED_TEST_CLOCK", "10")]).exits(1);
    assert_fields!(ended.json(), {"status": "failed", "reason": "deadline"});
    let changes = changes_of(one(&sandbox.lawful_events(), "policy_changed"));
    assert_eq!(changes, ["deadline 5s 1h (the old one has passed and stands)"]);
}

#[test]
fn an_update_changes_the_pool_and_the_completion_rule_of_a_flow() {
    let server = ScriptedServer::start().by("/a", |request| {
        if request.argument("x") == 1 { Reply::outputs(&json!({"y": 1})) } else { Reply::status(503) }
    });
    let waits = ", work_config: {max_retries: 3, backoff: 60000, max_backoff: 60000, parallelism: 2}";
    let attributes = "x: {role: required, for_each: true}, y: {role: output}";
    let sandbox =
        flow(&server, "goals: [a]\nretry_budget: 5\ninit: {x: [1, 2]}", &[("a", attributes, waits)]);
    let engine = sandbox.start_run();
    sandbox.wait_for_events("a success and a retry", |events| {
        has_event(events, "retry_scheduled") && has_event(events, "item_succeeded")
    });
    engine.kill();
    let text = sandbox.read("w.yaml").replace("retry_budget: 5", "retry_budget: 7");
    sandbox.write("w.yaml", &text.replace(", work_config", ", best_effort: true, work_config"));
    sandbox.call(&["resume", "@last", "--update"]).exits(0);
    let events = sandbox.lawful_events();
    let changes = changes_of(one(&events, "policy_changed"));
    assert_eq!(changes, ["retry_budget 5 7", "best_effort false true"]);
    assert_eq!(one(&events, "completion_reached")["reason"], "min_dcs_reached (1/1)");
    assert_fields!(sandbox.json(&["budget", "show", "@last", "--json"]), {"total_budget": 7, "consumed": 1});
}
