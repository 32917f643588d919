//! Ending a server by signals: flows are suspended and go on when it is back.

use serde_json::json;

use crate::client::webhook;
use crate::history::{all, is_lawful, kind, outcomes};
use crate::http_server::{Reply, StepServer};
use crate::served::{Served, address, giver, only, step};
use crate::webhooks::{done, later, taken_on, url};
use crate::world::World;

#[test]
fn one_sigterm_lets_calls_finish_and_suspends_and_all_goes_on_when_it_is_back() {
    let world = World::new();
    let handlers = StepServer::start()
        .on("/a", &[Reply::outputs(&json!({"x": 1})).gated()])
        .on("/b", &[Reply::outputs(&json!({"y": 2}))])
        .on("/wait", &[Reply::status(503), Reply::outputs(&json!({"z": 3}))])
        .on("/later", &[taken_on()]);
    let address = address();
    let served = Served::at(&world, &address);
    served.register(&giver(&handlers, "a", &json!({"max_retries": 2, "backoff": 1})));
    let attributes = json!({"x": {"role": "required"}, "y": {"role": "output"}});
    served.register(&step(&handlers, "b", &attributes, &json!({})));
    let mut wait =
        giver(&handlers, "wait", &json!({"max_retries": 1, "backoff": 1500, "backoff_type": "fixed"}));
    wait["attributes"] = json!({"z": {"role": "output"}});
    served.register(&wait);
    let mut later = later(&handlers, "later", &json!({}));
    later["attributes"] = json!({"w": {"role": "output"}});
    served.register(&later);
    served.begin("f", "b", &json!({}));
    served.begin("waiting", "wait", &json!({}));
    served.begin("later", "later", &json!({}));
    handlers.wait_for("/a", 1);
    let waiting = served.item("waiting", "wait", |item| item["retry_count"] == 1);
    World::eventually("an accepted call", || {
        let events = world.events_of("later");
        (!all(&events, "attempt_accepted").is_empty()).then_some(())
    });
    served.signal("TERM");
    // The call under way is waited for; nothing else begins.
    World::eventually("flows that are suspended", || {
        let suspended = |id: &str| kind(world.events_of(id).last().unwrap()) == "job_suspended";
        (suspended("waiting") && suspended("later")).then_some(())
    });
    let late = json!({"id": "late", "goals": ["a"]});
    if let Some(answer) = served.try_ask("POST", "/engine/flow", &late.to_string()) {
        answer.refused(503);
    }
    handlers.open("/a");
    served.wait().exits(0);
    let events = world.events_of("f");
    assert_eq!(kind(events.last().unwrap()), "job_suspended");
    assert_eq!(outcomes(&events), ["success"]);
    assert!(handlers.requests("/b").is_empty());

    let served = Served::at(&world, &address);
    let flow = served.ends("f", "completed");
    assert_eq!(flow["attributes"]["y"]["value"], 2);
    served.ends("waiting", "completed");
    webhook(&url(&handlers.requests("/later")[0]), &done(&json!({"w": 5}))).unwrap().is(200);
    served.ends("later", "completed");
    for (id, expected) in
        [("f", &["success", "success"][..]), ("waiting", &["status", "success"]), ("later", &["success"])]
    {
        let events = world.events_of(id);
        is_lawful(&events);
        assert_eq!(outcomes(&events), expected, "{id}");
        assert_eq!(all(&events, "job_resumed").len(), 1, "{id}");
    }
    let scheduled = world.events_of("waiting");
    assert_eq!(all(&scheduled, "retry_scheduled")[0]["due_at"], waiting["next_retry_at"]);
    assert_eq!(handlers.requests("/a").len(), 1);
    assert_eq!(handlers.requests("/later").len(), 1);
    assert!(served.try_ask("GET", "/engine/flow/late", "").unwrap().status == 404);
}

#[test]
fn a_second_sigterm_ends_it_at_once_and_the_call_is_sent_again_when_it_is_back() {
    let world = World::new();
    let handlers = StepServer::start().on("/a", &[Reply::StallInBody, Reply::outputs(&json!({"x": 1}))]);
    let served = Served::on(&world);
    served.register(&giver(&handlers, "a", &json!({"max_retries": 1, "backoff": 1})));
    served.begin("f", "a", &json!({}));
    handlers.wait_for("/a", 1);
    served.signal("TERM");
    World::eventually("the word that it ends", || {
        let log = served.log();
        log.iter().any(|line| line["message"] == "suspending flows").then_some(())
    });
    served.signal("TERM");
    served.wait().exits(130);
    let events = world.events_of("f");
    assert_eq!(outcomes(&events), ["interrupted"]);
    let served = Served::on(&world);
    let flow = served.ends("f", "completed");
    assert_eq!(only(&flow, "a").unwrap()["retry_count"], 1);
    let calls = handlers.requests("/a");
    assert_eq!((calls.len(), calls[0].token()), (2, calls[1].token()));
    // With nothing to do it ends at once, and followers are told.
    let mut follower = served.follower();
    follower.follow("f");
    served.signal("INT");
    served.wait().exits(0);
    assert!(matches!(follower.next(), crate::client::Heard::Closed(1001)));
}
