//! Two servers on one store.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::webhook;
use crate::history::{all, is_lawful, outcomes};
use crate::http_server::{Reply, StepServer};
use crate::served::{Served, giver, only, step};
use crate::webhooks::{done, later, taken_on, url};
use crate::world::World;

#[test]
fn each_of_two_servers_runs_its_flows_and_knows_those_of_the_other() {
    let world = World::new();
    let handlers =
        StepServer::start().on("/a", &[Reply::outputs(&json!({"x": 1}))]).on("/later", &[taken_on()]);
    let (one, two) = (Served::on(&world), Served::on(&world));
    one.register(&giver(&handlers, "a", &json!({})));
    let mut other = giver(&handlers, "a", &json!({}));
    other["name"] = json!("another");
    two.post("/engine/step", &other).refused(409);
    two.register(&later(&handlers, "later", &json!({"max_retries": 1, "backoff": 1})));
    for n in 0..20 {
        let served = if n % 2 == 0 { &one } else { &two };
        served.begin(&format!("f{n}"), "a", &json!({}));
    }
    // The same flow begun at both is one flow.
    one.begin("same", "a", &json!({}));
    two.begin("same", "a", &json!({}));
    two.post("/engine/flow", &json!({"id": "same", "goals": ["later"]})).refused(409);
    for n in 0..20 {
        let id = format!("f{n}");
        let seen = two.ends(&id, "completed");
        assert_eq!(one.flow(&id), seen);
    }
    one.ends("same", "completed");
    assert_eq!(handlers.requests("/a").len(), 21);
    assert_eq!(one.get("/engine/flow").is(200)["count"], 21);

    // A result that comes to the wrong one is handed on, and counts once.
    one.begin("late", "later", &json!({}));
    let told = url(&handlers.wait_for("/later", 1)[0]);
    let wrong = told.replace(&one.address().to_string(), &two.address().to_string());
    assert_ne!(told, wrong);
    World::eventually("a result that is taken", || {
        webhook(&wrong, &done(&json!({"x": 8}))).filter(|answer| answer.status == 200)
    });
    let flow = two.ends("late", "completed");
    assert_eq!(flow["attributes"]["x"]["value"], 8);
    webhook(&wrong, &done(&json!({"x": 9}))).unwrap().is(200);
    webhook(&told, &done(&json!({"x": 9}))).unwrap().is(200);
    webhook(&format!("{wrong}0"), &done(&json!({"x": 9}))).unwrap().refused(404);
    let events = world.events_of("late");
    is_lawful(&events);
    assert_eq!(outcomes(&events), ["success"]);
    assert_eq!(handlers.requests("/later").len(), 1);
}

#[test]
fn the_flows_of_a_server_that_was_killed_are_taken_over_by_the_other() {
    let world = World::new();
    let handlers = StepServer::start()
        .on("/wait", &[Reply::status(503), Reply::outputs(&json!({"x": 1}))])
        .on("/call", &[Reply::outputs(&json!({"x": 2})).gated()])
        .on("/later", &[taken_on()])
        .on("/a", &[Reply::outputs(&json!({"y": 3}))]);
    let (one, two) = (Served::on(&world), Served::on(&world));
    let slow = json!({"max_retries": 1, "backoff": 1000, "backoff_type": "fixed"});
    one.register(&giver(&handlers, "wait", &slow));
    one.register(&giver(&handlers, "call", &json!({"max_retries": 1, "backoff": 1})));
    one.register(&later(&handlers, "later", &json!({"max_retries": 1, "backoff": 1})));
    one.begin("waiting", "wait", &json!({}));
    one.begin("calling", "call", &json!({}));
    one.begin("later", "later", &json!({}));
    two.begin("own", "call", &json!({}));
    let attributes = json!({"y": {"role": "output"}});
    one.register(&step(&handlers, "a", &attributes, &json!({})));
    let waiting = one.item("waiting", "wait", |item| item["retry_count"] == 1);
    handlers.wait_for("/call", 2);
    World::eventually("an accepted call", || {
        let events = world.events_of("later");
        (!all(&events, "attempt_accepted").is_empty()).then_some(())
    });
    let told = url(&handlers.requests("/later")[0]);
    let told = told.replace(&one.address().to_string(), &two.address().to_string());
    one.kill();
    let killed = Instant::now();
    // A result takes the flow over at once.
    webhook(&told, &done(&json!({"x": 4}))).unwrap().is(200);
    two.ends("later", "completed");
    handlers.wait_for("/call", 3);
    handlers.open("/call");
    for id in ["waiting", "calling", "own"] {
        two.ends(id, "completed");
    }
    assert!(killed.elapsed() < Duration::from_secs(15));
    for (id, expected) in [
        ("waiting", &["status", "success"][..]),
        ("calling", &["interrupted", "success"]),
        ("later", &["success"]),
        ("own", &["success"]),
    ] {
        let events = world.events_of(id);
        is_lawful(&events);
        assert_eq!(outcomes(&events), expected, "{id}");
        two.deactivated(id);
    }
    assert_eq!(all(&world.events_of("waiting"), "retry_scheduled")[0]["due_at"], waiting["next_retry_at"]);
    assert_eq!(only(&two.flow("calling"), "call").unwrap()["retry_count"], 1);
    assert_eq!(handlers.requests("/call").len(), 3);
    assert_eq!(handlers.requests("/wait").len(), 2);
}
