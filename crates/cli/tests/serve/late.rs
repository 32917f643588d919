//! Results that come after the completion or the deadline of their step, and flows below their minimum.

use serde_json::{Value, json};

use crate::client::{failure, send_result, success};
use crate::history::{all, assert_fields, count};
use crate::http_server::{ReceivedRequest, Reply, ScriptedServer};
use crate::sandbox::Sandbox;
use crate::served::{RunningServer, follower_step, step};

/// A flow `f` of three elements, of which two have to succeed and one has.
fn below_its_minimum(policy: &str) -> (Sandbox, ScriptedServer, RunningServer, Vec<String>) {
    flow_of(3, policy)
}

/// A server with a flow `f`: an async step for each of some elements, of which two have to succeed within a
/// second, and a step that uses their results. One result arrives in time. Returns the webhook URLs of the elements.
fn flow_of(elements: usize, policy: &str) -> (Sandbox, ScriptedServer, RunningServer, Vec<String>) {
    let sandbox = Sandbox::new();
    let done = Reply::outputs(&json!({"y": 1}));
    let handlers = ScriptedServer::start().on("/a", &[Reply::accepted()]).on("/b", &[done]);
    let variables = [("BEST_EFFORT_LATE_RESULT_POLICY", policy)];
    let served = RunningServer::with(&sandbox, &["--listen", "127.0.0.1:0"], &variables);
    let attributes = json!({"n": {"role": "required", "for_each": true}, "x": {"role": "output"}});
    let rule = json!({
        "type": "async", "work_config": {"parallelism": elements}, "best_effort": true, "best_effort_min_dcs": 2,
        "best_effort_deadline_seconds": 1,
    });
    served.register(&step(&handlers, "a", &attributes, &rule));
    served.register(&follower_step(&handlers, "b", &json!({})));
    served.start_flow("f", "b", &json!({"n": (1..=elements).collect::<Vec<usize>>()}));
    let mut calls = handlers.wait_for("/a", elements);
    calls.sort_by_key(|call| call.argument("n").as_u64());
    let urls: Vec<String> = calls.iter().map(ReceivedRequest::webhook_url).collect();
    send_result(&urls[0], success(&json!({"x": 10}))).unwrap().is(200);
    served.wait_for_end("f", "failed");
    served.wait_for_deactivation("f");
    (sandbox, handlers, served, urls)
}

fn x(flow: &Value) -> &Value {
    &flow["attributes"]["x"]["value"]
}

#[test]
fn a_flow_below_its_minimum_at_the_deadline_keeps_what_has_succeeded() {
    let (sandbox, handlers, served, _) = below_its_minimum("log_only");
    let flow = served.flow("f");
    let one = json!([{"n": 1, "x": 10}]);
    assert_eq!(*x(&flow), one);
    assert_eq!(flow["error"], "deadline_expired (completed: 1): 2 of 3 had to succeed");
    assert_eq!(handlers.requests("/b")[0].argument("x"), one, "the next step uses it");
    let shown = sandbox.json(&["show", "f", "--json"]);
    assert_fields!(shown, {"status": "partial", "reason": "deadline"});
    assert_fields!(shown["best_effort"], {
        "enabled": true, "min_dcs": 2, "reason": "deadline_expired (completed: 1)", "success": false,
        "target": 3, "completed": 1,
    });
    let explained = sandbox.stdout(&["explain", "f"]);
    assert!(explained.contains("deadline_expired (completed: 1)"), "{explained}");
    sandbox.lawful_events_of("f");
}

#[test]
fn a_result_after_the_end_is_answered_200_recorded_once_and_logged() {
    let (sandbox, _handlers, served, urls) = below_its_minimum("log_only");
    let before = served.flow("f");
    for _ in 0..2 {
        send_result(&urls[1], success(&json!({"x": 20}))).unwrap().is(200);
        send_result(&urls[2], failure("no disk")).unwrap().is(200);
    }
    let events = sandbox.lawful_events_of("f");
    let late = all(&events, "late_result");
    assert_eq!(late.len(), 2, "{late:?}");
    assert_fields!(late[0], {"result": "succeeded", "policy": "log_only", "output": r#"{"x":20}"#});
    assert_fields!(late[1], {"result": "failed", "policy": "log_only", "error": "no disk"});
    let logged = Sandbox::eventually("the log records", || {
        let mut log = served.log();
        log.retain(|line| line["event"] == "LateDatacenterResult");
        (log.len() == 2).then_some(log)
    });
    assert_fields!(logged[0], {"job": "f", "policy": "log_only"});
    assert_eq!(logged[0]["datacenter"], late[0]["item"]);
    let flow = served.flow("f");
    for unchanged in ["status", "error", "attributes", "executions", "completed_at"] {
        assert_eq!(flow[unchanged], before[unchanged], "{unchanged}");
    }
}

#[test]
fn late_results_that_arrive_together_are_all_recorded() {
    let (sandbox, _handlers, served, urls) = flow_of(24, "log_only");
    let senders = urls
        .into_iter()
        .skip(1)
        .map(|url| std::thread::spawn(move || send_result(&url, success(&json!({"x": 20}))).unwrap().status));
    let senders = senders.collect::<Vec<_>>();
    let statuses: Vec<u16> = senders.into_iter().map(|sender| sender.join().unwrap()).collect();
    assert_eq!(statuses, [200; 23]);
    assert_eq!(count(&sandbox.lawful_events_of("f"), "late_result"), 23);
    drop(served);
}

#[test]
fn a_late_result_that_counts_brings_its_data_and_survives_a_kill() {
    let (sandbox, _handlers, served, urls) = below_its_minimum("update_result");
    send_result(&urls[2], success(&json!({"x": 30}))).unwrap().is(200);
    Sandbox::wait_until("the catalog to have the status", || {
        served.query(&json!({"statuses": ["completed"]}))["count"] == 1
    });
    served.kill();
    let served = RunningServer::on(&sandbox);
    let flow = served.flow("f");
    assert_eq!(flow["status"], "completed");
    assert_eq!(*x(&flow), json!([{"n": 1, "x": 10}, {"n": 3, "x": 30}]));
    let shown = sandbox.json(&["show", "f", "--json"]);
    assert_fields!(shown, {"status": "completed", "reason": null});
    assert_fields!(shown["best_effort"], {"completed": 2, "success": true});
    assert_eq!(count(&sandbox.lawful_events_of("f"), "late_result"), 1);
}
