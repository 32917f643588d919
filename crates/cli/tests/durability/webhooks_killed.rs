//! Async steps whose result comes after a kill, a cancellation or Ctrl-C.

use serde_json::json;

use crate::client::{failure, free_address, send_result, success};
use crate::history::{assert_fields, count, one, outcomes};
use crate::http::assert_one_request_per_attempt;
use crate::http_server::{Reply, ScriptedServer};
use crate::sandbox::Sandbox;
use crate::webhooks::{ANYWHERE, async_flow, called_flow, deliver, run};

#[test]
fn a_flow_killed_while_it_waits_for_a_result_keeps_waiting_and_does_not_call_again() {
    let (server, sandbox) = async_flow();
    let own = free_address();
    let variables = [("UNDAUNTED_LISTEN", own.as_str())];
    let mut engine = sandbox.start_run_with(&variables);
    let until = sandbox.event("attempt_accepted")["until"].clone();
    let address = server.requests("/a")[0].webhook_url();
    let body = success(&json!({"x": 5}));
    for resumed in 1..=2 {
        engine.kill();
        // No server listens: the result has to be sent again.
        assert!(send_result(&address, &body).is_none());
        engine = sandbox.start_resume_with(&variables);
        Sandbox::eventually("a listening server", || send_result(&format!("{address}x"), &body));
        sandbox.wait_for_events("the resume", |events| count(events, "job_resumed") == resumed);
    }
    send_result(&address, body).unwrap().is(200);
    let report = engine.wait().exits(0).json();
    assert_fields!(report, {"attempts": 2, "retries": 0});
    let events = sandbox.lawful_events();
    assert_one_request_per_attempt(&server, &events);
    assert_eq!(one(&events, "attempt_accepted")["until"], until);
    assert_eq!(count(&events, "job_resumed"), 2);
}

#[test]
fn a_result_whose_time_passed_during_downtime_is_a_timeout() {
    let (server, sandbox) = async_flow();
    let engine = run(&sandbox);
    sandbox.event("attempt_accepted");
    engine.kill();
    // A result is waited for a day: this is a day and a minute later.
    let later = ("UNDAUNTED_TEST_CLOCK", "86460000");
    let engine = sandbox.start_resume_with(&[ANYWHERE, later]);
    server.wait_for("/a", 2);
    deliver(&server, "/a", &json!({"x": 1}));
    engine.wait().exits(0);
    let events = sandbox.lawful_events();
    assert_eq!(outcomes(&events)[..2], ["timeout", "success"]);
}

#[test]
fn a_result_answered_with_200_is_never_lost_wherever_a_process_dies() {
    for failpoint in ["append-before", "append-after"] {
        for number in 3..=9 {
            let (server, sandbox) = async_flow();
            let own = free_address();
            let die = format!("{failpoint}:{number}");
            let listen = ("UNDAUNTED_LISTEN", own.as_str());
            let mut engine = sandbox.start_run_with(&[listen, ("UNDAUNTED_TEST_DIE", &die)]);
            let call = Sandbox::eventually("a call, or the end", || {
                let call = server.requests("/a").pop();
                (call.is_some() || engine.has_ended()).then_some(call)
            });
            let body = success(&json!({"x": 5}));
            let answer = call.and_then(|call| send_result(&call.webhook_url(), body));
            engine.wait();
            let accepted = answer.is_some_and(|answer| answer.status == 200);
            let engine = sandbox.start_resume_with(&[listen]);
            if !accepted {
                deliver(&server, "/a", &json!({"x": 5}));
            }
            let ended = engine.wait();
            assert_eq!(ended.code, 0, "{die}: {ended:?}");
            let events = sandbox.lawful_events();
            assert_eq!(count(&events, "attribute_set"), 1, "{die}");
        }
    }
}

#[test]
fn a_flow_is_cancelled_while_it_waits_for_a_result() {
    let (server, sandbox) = async_flow();
    let engine = run(&sandbox);
    sandbox.event("attempt_accepted");
    sandbox.call(&["cancel", "@last"]).exits(0);
    assert_eq!(engine.wait().exits(1).json()["status"], "cancelled");
    sandbox.lawful_events();
    assert_eq!(server.all().len(), 1);
}

#[test]
fn ctrl_c_suspends_a_flow_with_calls_accepted_for_later_and_nothing_is_lost() {
    let (server, sandbox) = async_flow();
    let own = free_address();
    let listen = ("UNDAUNTED_LISTEN", own.as_str());
    let engine = sandbox.spawn_with(&["run", "w.yaml"], &[listen]);
    sandbox.event("attempt_accepted");
    engine.suspend();
    let engine = sandbox.start_resume_with(&[listen]);
    deliver(&server, "/a", &json!({"x": 1}));
    engine.wait().exits(0);
    assert_eq!(server.requests("/a").len(), 1, "it was called once");
    sandbox.lawful_events();
}

#[test]
fn a_step_that_is_complete_by_its_rule_stops_waiting_for_results() {
    let server = ScriptedServer::start().on("/a", &[Reply::accepted()]);
    let sandbox = Sandbox::of(&format!(
        "
mode: flow
goals: [a]
init: {{n: [1, 2]}}
steps:
  - id: a
    type: async
    http: {{endpoint: '{}'}}
    work_config: {{parallelism: 2}}
    attributes: {{n: {{role: required, for_each: true}}}}
    best_effort: true
    best_effort_min_dcs: 1
",
        server.url("/a")
    ));
    let engine = run(&sandbox);
    server.wait_for("/a", 2);
    sandbox.wait_for_events("two accepted calls", |events| count(events, "attempt_accepted") == 2);
    deliver(&server, "/a", &json!({}));
    engine.wait().exits(0);
    sandbox.lawful_events();
}

#[test]
fn a_result_of_a_round_that_is_over_is_answered_200_and_ignored() {
    let (server, sandbox, engine, call) = called_flow();
    let first = call.webhook_url();
    send_result(&first, failure("no")).unwrap();
    engine.wait().exits(1);
    server.answers("/b", &[Reply::done().gated()]);
    let own = free_address();
    let engine =
        sandbox.spawn_with(&["dlq", "redrive", "@last", "--yes", "--json"], &[("UNDAUNTED_LISTEN", &own)]);
    let second = server.wait_for("/a", 2)[1].webhook_url();
    let (_, path) = first.split_once("/webhook").unwrap();
    let first = format!("http://{own}/webhook{path}");
    assert_ne!(first, second);
    let body = |x: u32| success(&json!({"x": x}));
    send_result(&first, body(1)).unwrap().is(200);
    send_result(&second, body(2)).unwrap().is(200);
    server.wait_for("/b", 1);
    for url in [&first, &second] {
        send_result(url, body(3)).unwrap().is(200);
    }
    server.open("/b");
    engine.wait().exits(0);
    assert_eq!(one(&sandbox.events(), "attribute_set")["value"], 2);
}
