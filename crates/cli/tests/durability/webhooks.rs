//! Async steps: the call is accepted at once, and its result comes by webhook.
//!
//! The tests are the handlers of the steps: they send results at any time, as often as they like, and
//! check the answers.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::client::{Connection, failure, free_address, send_result, success};
use crate::history::{all, assert_contains, assert_fields, count, millis, one, outcomes};
use crate::http::assert_one_request_per_attempt;
use crate::http_server::{ReceivedRequest, Reply, ScriptedServer};
use crate::processes::ChildProcess;
use crate::sandbox::Sandbox;

/// Any free port: the address is part of the call.
pub(crate) const ANYWHERE: (&str, &str) = ("UNDAUNTED_LISTEN", "127.0.0.1:0");

/// Sends a success to the latest call of a path until it is accepted.
pub(crate) fn deliver(server: &ScriptedServer, path: &str, outputs: &Value) {
    Sandbox::wait_until("an accepted result", || {
        let call = server.requests(path).pop();
        let answer = call.and_then(|call| send_result(&call.webhook_url(), success(outputs)));
        answer.is_some_and(|answer| answer.status == 200)
    });
}

/// An async step `a` that outputs `x`, and a step `b` that requires it. Retries follow at once.
fn flow(server: &ScriptedServer, head: &str, http: &str, more: &str) -> Sandbox {
    Sandbox::of(&format!(
        "
mode: flow
goals: [b]
{head}
steps:
  - id: a
    type: async
    http: {{endpoint: '{}'{http}}}
    work_config: {{max_retries: 3, backoff: 1, parallelism: 3}}
    attributes: {{x: {{role: output}}{more}}}
  - id: b
    type: sync
    http: {{endpoint: '{}'}}
    work_config: {{max_retries: 3, backoff: 1}}
    attributes: {{x: {{role: required}}}}
",
        server.url("/a"),
        server.url("/b")
    ))
}

/// Starts the flow with a receiver for webhooks at any port.
pub(crate) fn run(sandbox: &Sandbox) -> ChildProcess {
    sandbox.start_run_with(&[ANYWHERE])
}

fn server() -> ScriptedServer {
    ScriptedServer::start().on("/a", &[Reply::accepted()]).on("/b", &[Reply::done()])
}

/// A server whose step `a` accepts calls, and the flow that calls it.
pub(crate) fn async_flow() -> (ScriptedServer, Sandbox) {
    let server = server();
    let sandbox = flow(&server, "", "", "");
    (server, sandbox)
}

/// The same, running; its first call has been made.
pub(crate) fn called_flow() -> (ScriptedServer, Sandbox, ChildProcess, ReceivedRequest) {
    let (server, sandbox) = async_flow();
    let engine = run(&sandbox);
    let call = server.wait_for_call("/a");
    (server, sandbox, engine, call)
}

#[test]
fn the_result_of_an_async_step_arrives_by_webhook_and_the_flow_continues() {
    let (server, sandbox, engine, call) = called_flow();
    let until = sandbox.event("attempt_accepted")["until"].clone();
    assert!(server.requests("/b").is_empty(), "the result has not come yet");
    let metadata = call.json()["metadata"].clone();
    let ids = ["flow_id", "step_id", "receipt_token"].map(|key| metadata[key].as_str().unwrap());
    let end = format!("/webhook/{}", ids.join("/"));
    assert!(call.webhook_url().ends_with(&end), "{metadata}");
    let answer = send_result(&call.webhook_url(), success(&json!({"x": 7}))).unwrap();
    assert_eq!(answer.is(200), json!({"success": true}));
    let report = engine.wait().exits(0).json();
    assert_fields!(report, {"attempts": 2, "retries": 0});
    assert_eq!(server.requests("/b")[0].arguments(), json!({"x": 7}));
    let events = sandbox.lawful_events();
    assert_one_request_per_attempt(&server, &events);
    let accepted = one(&events, "attempt_accepted");
    assert_eq!(accepted["until"], until);
    let day = 24 * 60 * 60 * 1000;
    assert_eq!(millis(&until) - millis(&accepted["at"]), day);
}

#[test]
fn a_result_that_is_a_failure_is_permanent() {
    let (server, sandbox, engine, call) = called_flow();
    sandbox.event("attempt_accepted");
    send_result(&call.webhook_url(), failure("out of stock")).unwrap().is(200);
    let report = engine.wait().exits(1).json();
    assert_contains(&report["error"], "out of stock");
    assert_eq!((server.requests("/a").len(), server.all().len()), (1, 1));
    assert_eq!(one(&sandbox.events(), "attempt_failed")["class"], "permanent");
}

#[test]
fn a_result_that_comes_twice_is_answered_200_and_ignored() {
    let (server, sandbox) = async_flow();
    server.answers("/b", &[Reply::done().gated()]);
    let engine = run(&sandbox);
    let call = server.wait_for_call("/a");
    send_result(&call.webhook_url(), success(&json!({"x": 1}))).unwrap().is(200);
    server.wait_for("/b", 1);
    for body in [success(&json!({"x": 2})), br#"{"success":false}"#.to_vec()] {
        send_result(&call.webhook_url(), body).unwrap().is(200);
    }
    server.open("/b");
    engine.wait().exits(0);
    let events = sandbox.lawful_events();
    assert_eq!(outcomes(&events), ["success", "success"]);
    assert_eq!(one(&events, "attribute_set")["value"], 1);
}

#[test]
fn an_unknown_result_is_404_an_unreadable_one_400_and_neither_changes_anything() {
    let (_server, sandbox, engine, call) = called_flow();
    let url = call.webhook_url();
    sandbox.event("attempt_accepted");
    let (step, token) = url.rsplit_once('/').unwrap();
    let flow = step.strip_suffix("/a").unwrap();
    let (base, _) = flow.rsplit_once('/').unwrap();
    let good = success(&json!({"x": 0}));
    for wrong in [
        format!("{step}/00000000-0000-0000-0000-000000000000"),
        format!("{step}/x"),
        format!("{step}/{token}x"),
        format!("{step}/{}", token.to_uppercase()),
        format!("{flow}/b/{token}"),
        format!("{flow}/unknown/{token}"),
        format!("{base}/other/a/{token}"),
        format!("{url}/more"),
        format!("{step}/%FF"),
        step.to_owned(),
    ] {
        send_result(&wrong, &good).unwrap().refused(404);
    }
    for wrong in [
        &b""[..],
        b"done",
        b"[]",
        b"null",
        b"{}",
        br#"{"success":"true"}"#,
        br#"{"success":true,"outputs":[1]}"#,
        br#"{"success":true"#,
        b"\xff\xfe",
    ] {
        send_result(&url, wrong).unwrap().refused(400);
    }
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut connection = Connection::open(host.parse().unwrap());
    connection.ask("GET", &format!("/{path}"), "").unwrap().refused(405);
    send_result(&url, good).unwrap().is(200);
    engine.wait().exits(0);
    sandbox.lawful_events();
}

#[test]
fn a_result_has_a_bound_and_one_below_it_is_taken_whole() {
    let (server, _sandbox, engine, call) = called_flow();
    let url = call.webhook_url();
    let large = |bytes: usize| success(&json!({"x": "x".repeat(bytes)}));
    // The sender may find the connection closed before everything is sent.
    if let Some(answer) = send_result(&url, large(16 << 20)) {
        answer.refused(413);
    }
    send_result(&url, large(1 << 20)).unwrap().is(200);
    engine.wait().exits(0);
    assert_eq!(server.requests("/b")[0].argument("x").as_str().unwrap().len(), 1 << 20);
}

#[test]
fn a_result_may_come_before_the_call_was_answered() {
    // The answer to the call no longer matters.
    for reply in [Reply::accepted(), Reply::status(500), Reply::Close] {
        let (server, sandbox) = async_flow();
        server.answers("/a", &[reply.gated()]);
        let engine = run(&sandbox);
        let url = server.wait_for_call("/a").webhook_url();
        send_result(&url, success(&json!({"x": 3}))).unwrap().is(200);
        server.wait_for("/b", 1);
        server.open("/a");
        engine.wait().exits(0);
        let events = sandbox.lawful_events();
        assert_one_request_per_attempt(&server, &events);
        assert_eq!(outcomes(&events), ["success", "success"]);
        assert_eq!(count(&events, "attempt_accepted"), 0);
    }
}

#[test]
fn a_missing_result_is_a_timeout_and_the_call_is_repeated_with_the_same_token() {
    let server = server();
    let sandbox = flow(&server, "", ", completion_timeout: 50", "");
    sandbox.edit_workflow("max_retries: 3", "max_retries: -1");
    let mut engine = run(&sandbox);
    let calls = server.wait_for("/a", 2);
    // The result of the first call counts whenever it comes.
    Sandbox::wait_until("the end", || {
        let _ = send_result(&calls[0].webhook_url(), success(&json!({"x": 1})));
        engine.has_ended()
    });
    engine.wait().exits(0);
    let events = sandbox.lawful_events();
    assert_one_request_per_attempt(&server, &events);
    assert_eq!(calls[0].json(), calls[1].json());
    let failed = all(&events, "attempt_failed");
    assert!(!failed.is_empty());
    for failure in failed {
        let kind = (&failure["cause"], &failure["class"]);
        assert_eq!(kind, (&json!("timeout"), &json!("transient")));
    }
}

#[test]
fn a_result_that_arrives_during_a_retry_wait_counts_and_no_call_follows() {
    let (server, sandbox) = async_flow();
    sandbox.edit_workflow("backoff: 1,", "backoff: 60000,");
    server.answers("/a", &[Reply::status(503)]);
    let engine = run(&sandbox);
    let call = server.wait_for_call("/a");
    sandbox.event("retry_scheduled");
    send_result(&call.webhook_url(), success(&json!({"x": 1}))).unwrap().is(200);
    engine.wait().exits(0);
    assert_eq!(server.requests("/a").len(), 1);
    assert_eq!(server.requests("/b")[0].arguments(), json!({"x": 1}));
    let events = sandbox.lawful_events();
    assert_eq!(one(&events, "result_arrived")["result"], "succeeded");
}

#[test]
fn results_that_never_arrive_use_up_the_attempts() {
    let server = server();
    let sandbox = flow(&server, "", ", completion_timeout: 1", "");
    let report = run(&sandbox).wait().exits(1).json();
    assert_eq!(report["reason"], "attempts");
    assert_eq!(server.requests("/a").len(), 4);
    let events = sandbox.lawful_events();
    assert_eq!(outcomes(&events), ["timeout"; 4]);
    assert_eq!(count(&events, "attempt_accepted"), 4);
}

#[test]
fn a_call_that_is_not_accepted_for_later_is_judged_like_any_other() {
    let (server, sandbox) = async_flow();
    server.answers("/a", &[Reply::status(503), Reply::refusal("no")]);
    run(&sandbox).wait().exits(1);
    let events = sandbox.events();
    assert_eq!(outcomes(&events), ["status", "refused"]);
    assert_eq!(count(&events, "attempt_accepted"), 0);
}

#[test]
fn parallelism_bounds_awaited_results_and_they_come_in_any_order() {
    let server = server();
    let sandbox = flow(&server, "init: {n: [1, 2, 3, 4, 5]}", "", ", n: {role: required, for_each: true}");
    let engine = run(&sandbox);
    let first = server.wait_for("/a", 3);
    sandbox.wait_for_events("three accepted calls", |events| count(events, "attempt_accepted") == 3);
    assert_eq!(server.requests("/a").len(), 3, "each uses a slot");
    let answer = |call: &ReceivedRequest| {
        let body = success(&json!({"x": call.argument("n")}));
        send_result(&call.webhook_url(), body).unwrap().is(200);
    };
    first.iter().rev().for_each(answer);
    server.wait_for("/a", 5)[3..].iter().rev().for_each(answer);
    engine.wait().exits(0);
    let expected: Vec<Value> = (1..=5).map(|n| json!({"n": n, "x": n})).collect();
    assert_eq!(server.requests("/b")[0].argument("x"), json!(expected));
    sandbox.lawful_events();
}

#[test]
fn webhook_urls_use_the_public_base_url_if_there_is_one() {
    let (server, sandbox) = async_flow();
    let own = free_address();
    let engine = sandbox
        .start_run_with(&[("UNDAUNTED_LISTEN", &own), ("WEBHOOK_BASE_URL", "http://flows.test/behind/")]);
    let url = server.wait_for_call("/a").webhook_url();
    let path = url.strip_prefix("http://flows.test/behind/").unwrap();
    send_result(&format!("http://{own}/{path}"), success(&json!({"x": 1}))).unwrap().is(200);
    engine.wait().exits(0);
}

#[test]
fn an_invalid_address_is_refused_with_the_name_of_its_variable() {
    for wrong in ["7070", "localhost", "127.0.0.1", "127.0.0.1:70000", "x y"] {
        let (server, sandbox) = async_flow();
        let variables = [("UNDAUNTED_LISTEN", wrong)];
        sandbox
            .call_with(&["run", "w.yaml"], &variables)
            .exits(2)
            .err_contains("UNDAUNTED_LISTEN")
            .err_contains(wrong);
        assert!(server.all().is_empty());
    }
}

#[test]
fn a_flow_whose_address_is_in_use_reports_it_and_can_be_resumed() {
    let (server, sandbox) = async_flow();
    let own = free_address();
    let other = Sandbox::eventually(&own, || TcpListener::bind(&own).ok());
    let variables = [("UNDAUNTED_LISTEN", own.as_str())];
    sandbox
        .call_with(&["run", "w.yaml"], &variables)
        .exits(7)
        .err_contains(&own)
        .err_contains("UNDAUNTED_LISTEN");
    assert!(server.all().is_empty());
    drop(other);
    let engine = sandbox.start_resume_with(&variables);
    deliver(&server, "/a", &json!({"x": 1}));
    engine.wait().exits(0);
    sandbox.lawful_events();
}
