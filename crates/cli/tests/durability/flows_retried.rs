//! The `work_config` of a step in a workflow file, rule by rule.

use serde_json::json;

use crate::flows::{flow, items, one_step};
use crate::history::{all, count, one};
use crate::http::assert_one_request_per_attempt;
use crate::http_server::{Reply, ScriptedServer};
use crate::processes::ChildProcess;
use crate::sandbox::{FinishedProcess, Sandbox};

fn delays(sandbox: &Sandbox, engine: ChildProcess, many: usize) -> Vec<u64> {
    let events = sandbox.wait_for_events("retries", |events| count(events, "retry_scheduled") >= many);
    engine.kill();
    let scheduled = all(&events, "retry_scheduled").into_iter().take(many);
    scheduled.map(|event| event["delay_ms"].as_u64().unwrap()).collect()
}

#[test]
fn only_failures_of_the_transport_and_5xx_are_retried() {
    let ok = Reply::done();
    for (reply, calls, reason) in [
        (Reply::Close, 3, "attempts"),
        (Reply::Garbage, 3, "attempts"),
        (Reply::status(500), 3, "attempts"),
        (Reply::status(503), 3, "attempts"),
        (Reply::status(400), 1, "permanent"),
        (Reply::status(404), 1, "permanent"),
        (Reply::status(429), 1, "permanent"),
        (Reply::refusal("no"), 1, "permanent"),
        (Reply::text(200, "what?"), 1, "permanent"),
        (Reply::status(302).header("Location", "/b"), 1, "permanent"),
    ] {
        let (server, sandbox) = one_step(std::slice::from_ref(&reply), "max_retries: 2, backoff: 1");
        let report = sandbox.run().exits(1).json();
        assert_eq!(report["reason"], reason, "{reply:?}");
        assert_eq!(server.all().len(), calls, "{reply:?}");
        assert_eq!(items(&report), [1, 0, 1, 0], "{reply:?}");
    }
    // Outputs that look like a failure do not turn a success into one.
    let failed = Reply::outputs(&json!({"x": "failed", "error": true}));
    for reply in [ok, failed] {
        let (server, sandbox) = one_step(&[reply], "max_retries: 2");
        sandbox.run().exits(0);
        assert_eq!(server.all().len(), 1);
    }
}

#[test]
fn max_retries_is_the_number_of_retries_and_none_when_it_is_left_out() {
    for (work, calls) in [
        ("max_retries: 0, backoff: 1", 1),
        ("backoff: 1", 1),
        ("parallelism: 2", 1),
        ("max_retries: 1, backoff: 1", 2),
        ("max_retries: 4, backoff: 1, max_backoff: 2", 5),
    ] {
        let (server, sandbox) = one_step(&[Reply::status(503)], work);
        let report = sandbox.run().exits(1).json();
        assert_eq!(server.all().len(), calls, "{work}");
        assert_eq!(report["attempts"], calls, "{work}");
    }
    // -1 is no limit: the step is called until it succeeds.
    let mut replies = vec![Reply::status(503); 20];
    replies.push(Reply::done());
    let (server, sandbox) = one_step(&replies, "max_retries: -1, backoff: 1, backoff_type: fixed");
    sandbox.run().exits(0);
    assert_eq!(server.all().len(), 21);
}

#[test]
fn the_delay_is_constant_grows_by_itself_or_doubles_up_to_the_cap() {
    for (work, expected) in [
        ("backoff: 4, backoff_type: fixed", [4, 4, 4, 4, 4]),
        ("backoff: 4, backoff_type: linear", [4, 8, 12, 16, 20]),
        ("backoff: 4, backoff_type: exponential", [4, 8, 16, 32, 64]),
        ("backoff: 4, max_backoff: 10, backoff_type: exponential", [4, 8, 10, 10, 10]),
        ("backoff: 4, max_backoff: 9, backoff_type: linear", [4, 8, 9, 9, 9]),
        // 0 means that `max_backoff` is absent, never that the cap is 0.
        ("backoff: 4, max_backoff: 0, backoff_type: fixed", [4, 4, 4, 4, 4]),
    ] {
        let work = format!("max_retries: 5, {work}");
        let (_server, sandbox) = one_step(&[Reply::status(500)], &work);
        sandbox.run().exits(1);
        let events = sandbox.events();
        let delays: Vec<_> = all(&events, "retry_scheduled")
            .into_iter()
            .map(|event| event["delay_ms"].as_u64().unwrap())
            .collect();
        assert_eq!(delays, expected, "{work}");
    }
}

#[test]
fn without_work_config_the_defaults_of_the_engine_hold() {
    let (_server, sandbox) = one_step(&[Reply::status(500)], "");
    let engine = sandbox.start_run();
    assert_eq!(delays(&sandbox, engine, 1), [1000]);
    let schedule = sandbox.json(&["schedule", "w.yaml", "--json"]);
    assert_eq!(schedule["attempts_allowed"], 11);
    let planned: Vec<_> =
        schedule["retries"].as_array().unwrap().iter().map(|retry| &retry["delay_ms"]).collect();
    assert_eq!(planned, [1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000, 60000, 60000]);
}

#[test]
fn the_variables_of_the_engine_are_its_defaults() {
    let (server, sandbox) = one_step(&[Reply::status(500)], "");
    let variables = [
        ("RETRY_MAX_RETRIES", "3"),
        ("RETRY_BACKOFF", "5"),
        ("RETRY_MAX_BACKOFF", "8"),
        ("RETRY_BACKOFF_TYPE", "linear"),
    ];
    let report = sandbox.run_with(&variables).exits(1).json();
    assert_eq!(report["attempts"], 4);
    assert_eq!(report["delay_ms"], 5 + 8 + 8);
    assert_eq!(server.all().len(), 4);
}

#[test]
fn a_malformed_variable_stops_the_start_by_its_name() {
    let (server, sandbox) = one_step(&[Reply::status(500)], "");
    for (name, value) in [
        ("RETRY_MAX_RETRIES", "many"),
        ("RETRY_MAX_RETRIES", "-2"),
        ("RETRY_BACKOFF", "1s"),
        ("RETRY_MAX_BACKOFF", "-1"),
        ("RETRY_BACKOFF_TYPE", "cubic"),
    ] {
        let ended = sandbox.run_with(&[(name, value)]);
        assert_ne!(ended.code, 0, "{name}={value}");
        assert!(ended.err.contains(name), "{ended:?}");
    }
    assert!(server.all().is_empty());
}

#[test]
fn an_invalid_work_config_is_refused() {
    for work in [
        "max_retries: -2",
        "backoff: -1",
        "max_backoff: -1",
        "backoff: 100, max_backoff: 50",
        "backoff_type: cubic",
        "parallelism: 0",
        "retries: 3",
    ] {
        let (server, sandbox) = one_step(&[Reply::status(200)], work);
        let ended: FinishedProcess = sandbox.run().exits(3);
        assert!(ended.err.contains("work_config") || ended.err.contains("w.yaml"), "{ended:?}");
        assert!(server.all().is_empty());
    }
}

#[test]
fn without_max_backoff_the_cap_is_the_default_of_the_engine() {
    let (_server, sandbox) = one_step(&[Reply::status(500)], "max_retries: 3, backoff: 40000");
    let schedule = sandbox.json(&["schedule", "w.yaml", "--json"]);
    let planned = schedule["retries"].as_array().unwrap().iter();
    let planned: Vec<_> = planned.map(|retry| &retry["delay_ms"]).collect();
    assert_eq!(planned, [40000, 60000, 60000]);
}

#[test]
fn an_item_that_waits_for_its_retry_holds_no_slot() {
    let server = ScriptedServer::start()
        .by("/a", |request| if request.argument("n") == 1 { Reply::status(503) } else { Reply::done() });
    let sandbox = flow(
        &server,
        "goals: [a]\ninit: {n: [1, 2, 3]}",
        &[(
            "a",
            "n: {role: required, for_each: true}",
            ", work_config: {max_retries: 1, backoff: 600000, max_backoff: 600000, parallelism: 1}",
        )],
    );
    let engine = sandbox.start_run();
    // Item 1 waits for ten minutes while the others complete.
    sandbox.wait_for_events("the other items", |events| count(events, "item_succeeded") == 2);
    engine.kill();
    let sent: Vec<_> = server.all().iter().map(|it| it.argument("n")).collect();
    assert_eq!(sent, [1, 2, 3]);
}

#[test]
fn a_flow_killed_during_a_wait_retries_at_the_recorded_time() {
    let server = ScriptedServer::start().on("/a", &[Reply::status(503), Reply::x(1)]);
    let sandbox = flow(
        &server,
        "goals: [a]",
        &[("a", "x: {role: output}", ", work_config: {max_retries: 1, backoff: 1000}")],
    );
    let due = sandbox.run_killed_at("retry_scheduled")["due_at"].clone();
    let report = sandbox.resume().exits(0).json();
    assert_eq!(items(&report), [1, 1, 0, 0]);
    let events = sandbox.lawful_events();
    assert_one_request_per_attempt(&server, &events);
    assert_eq!(one(&events, "retry_scheduled")["due_at"], due);
    assert_eq!(server.all()[0].json(), server.all()[1].json());
}
