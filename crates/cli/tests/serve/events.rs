//! Events over `/engine/ws`: all of them, in order, once, whenever somebody comes.

use std::thread;

use serde_json::{Value, json};

use crate::client::{Follower, Heard};
use crate::history::kind;
use crate::http_server::{Reply, StepServer};
use crate::served::{Served, giver, says, step};
use crate::world::World;

/// The events that clients are told of, by the journal: number and type.
fn told(journal: &[Value]) -> Vec<(u64, &'static str)> {
    let told = journal.iter().filter_map(|event| {
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
    told.collect()
}

fn number(event: &Value) -> u64 {
    event["sequence"].as_u64().unwrap()
}

fn heard(events: &[Value]) -> Vec<(u64, &str)> {
    let events = events.iter();
    events.map(|event| (number(event), kind(event))).collect()
}

/// A step for each of several items, one of which fails at first, and one behind it.
fn usual(handlers: StepServer) -> StepServer {
    handlers
        .by("/each", |request| {
            let n = &request.json()["arguments"]["n"];
            Reply::outputs(&json!({"m": n}))
        })
        .on("/a", &[Reply::status(503), Reply::status(500), Reply::outputs(&json!({"x": 1})).gated()])
        .on("/last", &[Reply::outputs(&json!({"end": true}))])
}

fn register(served: &Served, handlers: &StepServer) {
    let each = json!({"n": {"role": "required", "for_each": true}, "m": {"role": "output"}});
    served.register(&step(handlers, "each", &each, &json!({})));
    served.register(&giver(handlers, "a", &json!({"max_retries": 3, "backoff": 20})));
    let last = json!({"m": {"role": "required"}, "x": {"role": "required"}, "end": {"role": "output"}});
    served.register(&step(handlers, "last", &last, &json!({})));
}

#[test]
fn whoever_follows_a_flow_gets_its_state_and_every_later_event_once_and_in_order() {
    let world = World::new();
    let handlers = usual(StepServer::start());
    let served = Served::on(&world);
    register(&served, &handlers);
    served.begin("f", "last", &json!({"n": [1, 2, 3, 4, 5]}));
    let address = served.address();
    // Many, some of them early, some late, some when all is over.
    let followers: Vec<_> = (0..50)
        .map(|_| {
            thread::spawn(move || {
                let mut follower = Follower::of(address);
                let answer = follower.follow("f");
                let over = answer["data"]["status"] != "active";
                let events = if over { Vec::new() } else { follower.until("flow_completed") };
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
    let mine = early.until("flow_completed");
    let journal = world.events_of("f");
    let told = told(&journal);
    let later = |answer: &Value| -> Vec<(u64, &str)> {
        let next = number(answer);
        told.iter().copied().filter(|(at, _)| *at >= next).collect()
    };
    assert_eq!(heard(&mine), later(&first));
    for follower in followers {
        let (answer, events) = follower.join().unwrap();
        assert_eq!(heard(&events), later(&answer));
    }
    for event in &mine {
        let keys: Vec<&String> = event.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["data", "id", "sequence", "timestamp", "type"]);
        assert_eq!((&event["id"], &event["data"]["flow_id"]), (&json!(["flow", "f"]), &json!("f")));
    }
    // A state read at the end is the state that the last event led to.
    assert_eq!(served.follower().follow("f")["data"], served.flow("f"));
}

#[test]
fn events_say_what_the_journal_says() {
    let world = World::new();
    let handlers = usual(StepServer::start());
    handlers.open("/a");
    let served = Served::on(&world);
    register(&served, &handlers);
    let gate = |work: Value| {
        let mut gate = giver(&handlers, "gate", &work);
        gate["attributes"] = json!({"z": {"role": "output"}});
        gate
    };
    served.register(&gate(json!({})));
    let mut engine = served.follower();
    let known = engine.subscribe(&json!({"aggregate_id": ["engine"]}));
    assert_eq!(known["data"]["steps"].as_object().unwrap().len(), 4);
    served.begin("f", "last", &json!({"n": [1]}));
    served.ends("f", "completed");
    let events = engine.until("flow_deactivated");
    assert_eq!(
        heard(&events).iter().map(|(_, it)| *it).collect::<Vec<_>>(),
        ["flow_activated", "flow_deactivated"]
    );
    assert_eq!(events[1]["data"]["status"], "completed");

    // From the very beginning: nothing of a flow is told before it is there.
    handlers.answers("/gate", &[Reply::status(503), Reply::refusal("no").gated()]);
    served
        .ask("PUT", "/engine/step/gate", &gate(json!({"max_retries": 1, "backoff": 30})).to_string())
        .is(200);
    served.begin("g", "gate", &json!({}));
    let mut follower = served.follower();
    let subscribed = follower.follow("g");
    handlers.open("/gate");
    let events = follower.until("flow_failed");
    let journal = world.events_of("g");
    let of = |name: &str| events.iter().find(|event| event["type"] == name).map(|it| &it["data"]);
    if let Some(retry) = of("retry_scheduled") {
        let scheduled = crate::history::one(&journal, "retry_scheduled");
        assert_eq!(retry["next_retry_at"], scheduled["due_at"]);
        assert_eq!(retry["retry_count"], 1);
        assert!(retry["error"].as_str().unwrap().contains("503"), "{retry}");
    } else {
        assert!(number(&subscribed) > 3);
    }
    let failed = of("work_failed").unwrap();
    assert_eq!(failed["step_id"], "gate");
    says(&failed["error"], "no");
    assert_eq!(failed["token"], handlers.requests("/gate")[0].token());
    says(&of("step_failed").unwrap()["error"], "no");
    says(&of("flow_failed").unwrap()["error"], "no");
}

#[test]
fn only_the_types_that_were_asked_for_are_told_also_of_flows_of_another_server() {
    let world = World::new();
    let handlers = usual(StepServer::start());
    let (one, other) = (Served::on(&world), Served::on(&world));
    register(&one, &handlers);
    one.begin("f", "last", &json!({"n": [1, 2, 3]}));
    let mut follower = other.follower();
    let types = json!(["step_completed", "flow_completed"]);
    let wish = json!({"aggregate_id": ["flow", "f"], "event_types": types, "sub_id": "mine"});
    assert_eq!(follower.subscribe(&wish)["sub_id"], "mine");
    let mut all = other.follower();
    let first = all.follow("f");
    handlers.wait_for("/a", 3);
    handlers.open("/a");
    let events = follower.until("flow_completed");
    assert!(events.iter().all(|event| event["sub_id"] == "mine"));
    assert!(heard(&events).iter().all(|(_, name)| ["step_completed", "flow_completed"].contains(name)));
    let journal = world.events_of("f");
    let told = told(&journal);
    let next = number(&first);
    let later: Vec<_> = told.into_iter().filter(|(at, _)| *at >= next).collect();
    assert_eq!(heard(&all.until("flow_completed")), later);
    // Steps that one has registered the other knows.
    assert_eq!(other.get("/engine/step").is(200)["count"], 3);
}

#[test]
fn messages_that_make_no_sense_are_refused_and_the_socket_stays() {
    let world = World::new();
    let handlers = StepServer::start().on("/a", &[Reply::outputs(&json!({"x": 1}))]);
    let served = Served::on(&world);
    served.register(&giver(&handlers, "a", &json!({})));
    let mut follower = served.follower();
    let unknown = follower.subscribe(&json!({"aggregate_id": ["flow", "nobody"]}));
    assert_eq!((&unknown["type"], &unknown["status"]), (&json!("error"), &json!(404)));
    for wrong in [
        "",
        "{",
        "null",
        "[]",
        "7",
        r#"{"type":"sing"}"#,
        r#"{"type":"subscribe"}"#,
        r#"{"type":"subscribe","data":{"aggregate_id":["flow"]}}"#,
        r#"{"type":"subscribe","data":{"aggregate_id":["flow",1]}}"#,
        r#"{"type":"subscribe","data":{"aggregate_id":["engine"],"event_types":{}}}"#,
    ] {
        follower.frame(1, wrong.as_bytes());
        let answer = follower.hear();
        assert_eq!((&answer["type"], &answer["status"]), (&json!("error"), &json!(400)), "{wrong}");
    }
    follower.frame(2, &[0xff, 0xfe]);
    assert_eq!(follower.hear()["type"], "error");
    follower.frame(9, b"are you there?");
    served.begin("f", "a", &json!({}));
    follower.follow("f");
    served.ends("f", "completed");

    // A message beyond all bounds ends it, and text that is none does.
    follower.frame(1, &vec![b'x'; 1 << 20]);
    while let Heard::Text(_) = follower.next() {}
    let mut follower = served.follower();
    follower.frame(1, &[0xff, 0xfe]);
    assert!(matches!(follower.next(), Heard::Closed(_) | Heard::Gone));
    served.get("/health").is(200);
    // Whoever leaves without a word does no harm.
    for _ in 0..20 {
        let mut follower = served.follower();
        follower.say(&json!({"type": "subscribe", "data": {"aggregate_id": ["flow", "f"]}}));
    }
    served.get("/health").is(200);
}
