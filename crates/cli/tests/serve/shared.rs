//! Two servers on one store.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::{send_result, success};
use crate::history::{all, outcomes};
use crate::http_server::{Reply, ScriptedServer};
use crate::sandbox::Sandbox;
use crate::served::{RunningServer, async_step, deliver, only_item, provider, retries, step};

#[test]
fn each_of_two_servers_runs_its_flows_and_knows_those_of_the_other() {
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start().on("/a", &[Reply::x(1)]).on("/later", &[Reply::accepted()]);
    let (one, two) = (RunningServer::on(&sandbox), RunningServer::on(&sandbox));
    one.register(&provider(&handlers, "a", &json!({})));
    let mut other = provider(&handlers, "a", &json!({}));
    other["name"] = json!("another");
    two.post("/engine/step", &other).refused(409);
    two.register(&async_step(&handlers, "later", &retries(1)));
    for n in 0..20 {
        let served = if n % 2 == 0 { &one } else { &two };
        served.start_flow(&format!("f{n}"), "a", &json!({}));
    }
    // The same flow started on both servers is one flow.
    one.start_flow("same", "a", &json!({}));
    two.start_flow("same", "a", &json!({}));
    two.post("/engine/flow", &json!({"id": "same", "goals": ["later"]})).refused(409);
    for n in 0..20 {
        let id = format!("f{n}");
        let flow = two.wait_for_end(&id, "completed");
        assert_eq!(one.flow(&id), flow);
    }
    one.wait_for_end("same", "completed");
    assert_eq!(handlers.requests("/a").len(), 21);
    assert_eq!(one.list().len(), 21);

    // A result that reaches the wrong server is forwarded, and counts once.
    one.start_flow("late", "later", &json!({}));
    let address = handlers.wait_for_call("/later").webhook_url();
    let wrong = address.replace(&one.address().to_string(), &two.address().to_string());
    assert_ne!(address, wrong);
    deliver(&wrong, success(&json!({"x": 8})));
    let flow = two.wait_for_end("late", "completed");
    assert_eq!(flow["attributes"]["x"]["value"], 8);
    send_result(&wrong, success(&json!({"x": 9}))).unwrap().is(200);
    send_result(&address, success(&json!({"x": 9}))).unwrap().is(200);
    send_result(&format!("{wrong}0"), success(&json!({"x": 9}))).unwrap().refused(404);
    let events = sandbox.lawful_events_of("late");
    assert_eq!(outcomes(&events), ["success"]);
    assert_eq!(handlers.requests("/later").len(), 1);
}

#[test]
fn the_flows_of_a_killed_server_are_resumed_by_the_other() {
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start()
        .on("/wait", &[Reply::status(503), Reply::x(1)])
        .on("/call", &[Reply::outputs(&json!({"x": 2})).gated()])
        .on("/later", &[Reply::accepted()])
        .on("/a", &[Reply::outputs(&json!({"y": 3}))]);
    let (one, two) = (RunningServer::on(&sandbox), RunningServer::on(&sandbox));
    let slow = json!({"max_retries": 1, "backoff": 1000, "backoff_type": "fixed"});
    one.register(&provider(&handlers, "wait", &slow));
    one.register(&provider(&handlers, "call", &retries(1)));
    one.register(&async_step(&handlers, "later", &retries(1)));
    one.start_flow("waiting", "wait", &json!({}));
    one.start_flow("calling", "call", &json!({}));
    one.start_flow("later", "later", &json!({}));
    two.start_flow("own", "call", &json!({}));
    let attributes = json!({"y": {"role": "output"}});
    one.register(&step(&handlers, "a", &attributes, &json!({})));
    let waiting = one.wait_for_item("waiting", "wait", |item| item["retry_count"] == 1);
    handlers.wait_for("/call", 2);
    sandbox.wait_for_event_of("later", "attempt_accepted");
    let address = handlers.requests("/later")[0].webhook_url();
    let address = address.replace(&one.address().to_string(), &two.address().to_string());
    one.kill();
    let killed = Instant::now();
    // A result makes the other server claim the flow at once.
    send_result(&address, success(&json!({"x": 4}))).unwrap().is(200);
    two.wait_for_end("later", "completed");
    handlers.wait_for("/call", 3);
    handlers.open("/call");
    for id in ["waiting", "calling", "own"] {
        two.wait_for_end(id, "completed");
    }
    assert!(killed.elapsed() < Duration::from_secs(15));
    for (id, expected) in [
        ("waiting", &["status", "success"][..]),
        ("calling", &["interrupted", "success"]),
        ("later", &["success"]),
        ("own", &["success"]),
    ] {
        let events = sandbox.lawful_events_of(id);
        assert_eq!(outcomes(&events), expected, "{id}");
        two.wait_for_deactivation(id);
    }
    assert_eq!(all(&sandbox.events_of("waiting"), "retry_scheduled")[0]["due_at"], waiting["next_retry_at"]);
    assert_eq!(only_item(&two.flow("calling"), "call").unwrap()["retry_count"], 1);
    assert_eq!(handlers.requests("/call").len(), 3);
    assert_eq!(handlers.requests("/wait").len(), 2);
}
