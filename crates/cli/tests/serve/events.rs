//! Events over `/engine/ws`: each one once and in order, whenever a client subscribes.

use std::thread;

use serde_json::{Value, json};

use crate::client::{EventFollower, FollowerFrame};
use crate::history::{assert_contains, assert_fields, kind};
use crate::http_server::{Reply, ScriptedServer};
use crate::sandbox::Sandbox;
use crate::served::{RunningServer, one_step, provider, step};

/// Number and type of the events that clients must get, by the journal.
fn events_in_journal(journal: &[Value]) -> Vec<(u64, &'static str)> {
    let expected = journal.iter().filter_map(|event| {
        let name = match kind(event) {
            "job_submitted" => "flow_started",
            "items_read" if event["last"] != false => "step_started",
            "attempt_started" => "work_started",
            "attempt_succeeded" => "work_succeeded",
            "attempt_failed" if event["class"] != "permanent" => "work_not_completed",
            "retry_scheduled" => "retry_scheduled",
            "item_dead_lettered" => "work_failed",
            "step_completed" => "step_completed",
            "step_failed" | "step_unreachable" => "step_failed",
            "step_skipped" => "step_skipped",
            "attribute_set" => "attribute_set",
            "job_completed" => "flow_completed",
            "job_failed" | "job_cancelled" => "flow_failed",
            _ => return None,
        };
        Some((event["seq"].as_u64().unwrap(), name))
    });
    expected.collect()
}

fn number(event: &Value) -> u64 {
    event["sequence"].as_u64().unwrap()
}

fn received(events: &[Value]) -> Vec<(u64, &str)> {
    let events = events.iter();
    events.map(|event| (number(event), kind(event))).collect()
}

/// Handlers of a `for_each` step, a step that fails twice, and a step that requires the outputs of both.
fn script(handlers: ScriptedServer) -> ScriptedServer {
    handlers
        .by("/each", |request| {
            let n = request.argument("n");
            Reply::outputs(&json!({"m": n}))
        })
        .on("/a", &[Reply::status(503), Reply::status(500), Reply::x(1).gated()])
        .on("/last", &[Reply::outputs(&json!({"end": true}))])
}

fn register(served: &RunningServer, handlers: &ScriptedServer) {
    let each = json!({"n": {"role": "required", "for_each": true}, "m": {"role": "output"}});
    served.register(&step(handlers, "each", &each, &json!({})));
    served.register(&provider(handlers, "a", &json!({"max_retries": 3, "backoff": 20})));
    let last = json!({"m": {"role": "required"}, "x": {"role": "required"}, "end": {"role": "output"}});
    served.register(&step(handlers, "last", &last, &json!({})));
}

#[test]
fn a_follower_gets_the_state_and_every_later_event_once_and_in_order() {
    let sandbox = Sandbox::new();
    let handlers = script(ScriptedServer::start());
    let served = RunningServer::on(&sandbox);
    register(&served, &handlers);
    served.start_flow("f", "last", &json!({"n": [1, 2, 3, 4, 5]}));
    let address = served.address();
    // Many followers: some early, some late, some after the end.
    let followers: Vec<_> = (0..50)
        .map(|_| {
            thread::spawn(move || {
                let mut follower = EventFollower::connect(address);
                let answer = follower.follow("f");
                let over = answer["data"]["status"] != "active";
                let events = if over { Vec::new() } else { follower.read_until("flow_completed") };
                (answer, events)
            })
        })
        .collect();
    let mut early = served.follower();
    let first = early.follow("f");
    assert_eq!(first["id"], json!(["flow", "f"]));
    assert_eq!(first["data"]["id"], "f");
    handlers.wait_for("/a", 3);
    handlers.open("/a");
    let mine = early.read_until("flow_completed");
    let journal = sandbox.events_of("f");
    let expected = events_in_journal(&journal);
    let later = |answer: &Value| -> Vec<(u64, &str)> {
        let next = number(answer);
        expected.iter().copied().filter(|(at, _)| *at >= next).collect()
    };
    assert_eq!(received(&mine), later(&first));
    for follower in followers {
        let (answer, events) = follower.join().unwrap();
        assert_eq!(received(&events), later(&answer));
    }
    for event in &mine {
        let keys: Vec<&String> = event.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["data", "id", "sequence", "timestamp", "type"]);
        assert_eq!((&event["id"], &event["data"]["flow_id"]), (&json!(["flow", "f"]), &json!("f")));
    }
    // The state at the end is the state after the last event.
    assert_eq!(served.follower().follow("f")["data"], served.flow("f"));
}

#[test]
fn events_say_what_the_journal_says() {
    let sandbox = Sandbox::new();
    let handlers = script(ScriptedServer::start());
    handlers.open("/a");
    let served = RunningServer::on(&sandbox);
    register(&served, &handlers);
    let gate = |work: Value| {
        let mut gate = provider(&handlers, "gate", &work);
        gate["attributes"] = json!({"z": {"role": "output"}});
        gate
    };
    served.register(&gate(json!({})));
    let mut engine = served.follower();
    let engine_state = engine.subscribe(&json!({"aggregate_id": ["engine"]}));
    assert_eq!(engine_state["data"]["steps"].as_object().unwrap().len(), 4);
    served.run_flow("f", "last", &json!({"n": [1]}), "completed");
    let events = engine.read_until("flow_deactivated");
    assert_eq!(
        received(&events).iter().map(|(_, it)| *it).collect::<Vec<_>>(),
        ["flow_activated", "flow_deactivated"]
    );
    assert_eq!(events[1]["data"]["status"], "completed");

    // This client subscribes while the flow begins.
    handlers.answers("/gate", &[Reply::status(503), Reply::refusal("no").gated()]);
    served
        .ask("PUT", "/engine/step/gate", &gate(json!({"max_retries": 1, "backoff": 30})).to_string())
        .is(200);
    served.start_flow("g", "gate", &json!({}));
    let mut follower = served.follower();
    let subscribed = follower.follow("g");
    handlers.open("/gate");
    let events = follower.read_until("flow_failed");
    let journal = sandbox.events_of("g");
    let data_of = |name: &str| events.iter().find(|event| event["type"] == name).map(|it| &it["data"]);
    if let Some(retry) = data_of("retry_scheduled") {
        let scheduled = crate::history::one(&journal, "retry_scheduled");
        assert_eq!(retry["next_retry_at"], scheduled["due_at"]);
        assert_eq!(retry["retry_count"], 1);
        assert!(retry["error"].as_str().unwrap().contains("503"), "{retry}");
    } else {
        assert!(number(&subscribed) > 3);
    }
    let failed = data_of("work_failed").unwrap();
    assert_eq!(failed["step_id"], "gate");
    assert_contains(&failed["error"], "no");
    assert_eq!(failed["token"], handlers.requests("/gate")[0].token());
    assert_contains(&data_of("step_failed").unwrap()["error"], "no");
    assert_contains(&data_of("flow_failed").unwrap()["error"], "no");
}

#[test]
fn only_subscribed_event_types_are_sent_including_those_of_flows_of_another_server() {
    let sandbox = Sandbox::new();
    let handlers = script(ScriptedServer::start());
    let (one, other) = (RunningServer::on(&sandbox), RunningServer::on(&sandbox));
    register(&one, &handlers);
    one.start_flow("f", "last", &json!({"n": [1, 2, 3]}));
    let mut follower = other.follower();
    let types = json!(["step_completed", "flow_completed"]);
    let subscription = json!({"aggregate_id": ["flow", "f"], "event_types": types, "sub_id": "mine"});
    assert_eq!(follower.subscribe(&subscription)["sub_id"], "mine");
    let mut all = other.follower();
    let first = all.follow("f");
    handlers.wait_for("/a", 3);
    handlers.open("/a");
    let events = follower.read_until("flow_completed");
    assert!(events.iter().all(|event| event["sub_id"] == "mine"));
    assert!(received(&events).iter().all(|(_, name)| ["step_completed", "flow_completed"].contains(name)));
    let journal = sandbox.events_of("f");
    let expected = events_in_journal(&journal);
    let next = number(&first);
    let later: Vec<_> = expected.into_iter().filter(|(at, _)| *at >= next).collect();
    assert_eq!(received(&all.read_until("flow_completed")), later);
    // Steps registered on one server are known to the other.
    assert_eq!(other.get("/engine/step").is(200)["count"], 3);
}

#[test]
fn a_subscription_waits_for_its_flow_and_one_without_an_aggregate_follows_every_flow() {
    let (sandbox, _handlers, served) =
        one_step(&[Reply::status(503), Reply::x(1)], &json!({"max_retries": 1, "backoff": 20}));
    let (mut waiting, mut all) = (served.follower(), served.follower());
    let answer = waiting.subscribe(&json!({"aggregate_id": ["flow", "f"]}));
    assert_eq!(answer, json!({"type": "subscribed", "id": ["flow", "f"], "data": {}, "sequence": 1}));
    let answer =
        all.subscribe(&json!({"event_types": ["flow_activated", "flow_completed", "retry_scheduled"]}));
    assert_fields!(answer, {"type": "subscribed", "id": []});
    served.run_flow("f", "a", &json!({}), "completed");
    let expected = events_in_journal(&sandbox.events_of("f"));
    assert_eq!(received(&waiting.read_until("flow_completed")), expected);
    let mut told: Vec<String> = Vec::new();
    while told.len() < 3 {
        let event = all.read_message();
        told.push(format!("{} {}", event["type"], event["id"]));
    }
    told.sort();
    let expected = [
        r#""flow_activated" ["partition"]"#,
        r#""flow_completed" ["flow","f"]"#,
        r#""retry_scheduled" ["flow","f"]"#,
    ];
    assert_eq!(told, expected);
}

#[test]
fn invalid_messages_are_refused_and_the_socket_stays_open() {
    let (_sandbox, _handlers, served) = one_step(&[Reply::x(1)], &json!({}));
    let mut follower = served.follower();
    for wrong in [
        "",
        "{",
        "null",
        "[]",
        "7",
        r#"{"type":"sing"}"#,
        r#"{"type":"subscribe","data":{"aggregate_id":["flow"]}}"#,
        r#"{"type":"subscribe","data":{"aggregate_id":["flow",1]}}"#,
        r#"{"type":"subscribe","data":{"aggregate_id":["engine"],"event_types":{}}}"#,
    ] {
        follower.frame(1, wrong.as_bytes());
        let answer = follower.read_message();
        assert_fields!(answer, {"type": "error", "status": 400});
    }
    follower.frame(2, &[0xff, 0xfe]);
    assert_eq!(follower.read_message()["type"], "error");
    follower.frame(9, b"are you there?");
    served.start_flow("f", "a", &json!({}));
    follower.follow("f");
    served.wait_for_end("f", "completed");

    // A message over the size limit ends the connection, and so does text that is not UTF-8.
    follower.frame(1, &vec![b'x'; 1 << 20]);
    while let FollowerFrame::Text(_) = follower.next() {}
    let mut follower = served.follower();
    follower.frame(1, &[0xff, 0xfe]);
    assert!(matches!(follower.next(), FollowerFrame::Closed(_) | FollowerFrame::Gone));
    served.get("/health").is(200);
    // A client that disconnects without a close frame does no harm.
    for _ in 0..20 {
        let mut follower = served.follower();
        follower.send(&json!({"type": "subscribe", "data": {"aggregate_id": ["flow", "f"]}}));
    }
    served.get("/health").is(200);
}
