//! Steps have a breaker if their definition says so, or if the server gives one to every origin.

use serde_json::json;

use crate::history::{all, is_lawful};
use crate::http_server::{Reply, StepServer};
use crate::served::{Served, giver};
use crate::world::World;

const PER_ORIGIN: [&str; 3] = ["--listen", "127.0.0.1:0", "--breaker-per-origin"];

#[test]
fn a_step_without_a_breaker_is_called_exactly_as_its_work_config_says() {
    let handlers = StepServer::start().on("/a", &[Reply::status(503)]);
    let world = World::new();
    let served = Served::on(&world);
    let work = json!({"max_retries": 7, "backoff": 1, "backoff_type": "fixed"});
    served.register(&giver(&handlers, "a", &work));
    served.begin("f", "a", &json!({}));
    served.ends("f", "failed");
    let events = world.events_of("f");
    is_lawful(&events);
    assert!(all(&events, "held").is_empty(), "{events:#?}");
    assert_eq!(handlers.requests("/a").len(), 8);
    assert_eq!(world.call(&["breaker", "ls", "--json"]).exits(0).out, "");
    served.end();
}

#[test]
fn a_server_may_give_every_origin_a_breaker_and_flows_keep_what_they_began_with() {
    let handlers = StepServer::start().on("/a", &[Reply::status(503)]).on("/b", &[Reply::status(503)]);
    let origin = handlers.origin();
    let world = World::new();
    let served = Served::with(&world, &PER_ORIGIN, &[]);
    let work = json!({"max_retries": 7, "backoff": 1, "backoff_type": "fixed"});
    served.register(&giver(&handlers, "a", &work));
    let mut without = giver(&handlers, "b", &work);
    without["breaker"] = json!(false);
    served.register(&without);
    served.begin("with", "a", &json!({}));
    world.wait_for_breaker(&origin, |breaker| breaker["state"] == "open");
    served.item("with", "a", |item| item["status"] != "active");
    served.begin("without", "b", &json!({}));
    served.ends("without", "failed");
    assert_eq!(handlers.requests("/b").len(), 8, "it has none, and is not held");
    served.kill();
    // Another server, which gives none, leaves the flow what it has; its own flows have none.
    let served = Served::on(&world);
    served.begin("since", "a", &json!({}));
    served.ends("since", "failed");
    assert_eq!(handlers.requests("/a").len(), 5 + 8);
    assert_eq!(served.flow("with")["status"], "active", "it is held");
    handlers.answers("/a", &[Reply::outputs(&json!({"x": 1}))]);
    world.call(&["breaker", "reset", &origin]).exits(0);
    served.ends("with", "completed");
    let events = world.events_of("with");
    is_lawful(&events);
    assert_eq!(all(&events, "held").len(), 1);
    served.end();
}
