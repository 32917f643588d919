//! The server killed with `kill -9`: in a wait, in a call, waiting for a result, anywhere.

use std::net::SocketAddr;
use std::thread;

use serde_json::{Value, json};

use crate::client::{Connection, webhook};
use crate::history::{all, is_lawful, millis, one, outcomes};
use crate::http_server::{Reply, StepServer};
use crate::served::{Served, address, giver, only, step};
use crate::webhooks::{done, later, taken_on, url};
use crate::world::World;

#[test]
fn killed_in_a_wait_the_retry_keeps_its_time_and_its_token() {
    let world = World::new();
    let ok = Reply::outputs(&json!({"x": 1}));
    let handlers = StepServer::start().on("/a", &[Reply::status(503), ok]);
    let mut served = Served::on(&world);
    let work = json!({"max_retries": 1, "backoff": 2500, "backoff_type": "fixed"});
    served.register(&giver(&handlers, "a", &work));
    served.begin("f", "a", &json!({}));
    let waiting = served.item("f", "a", |item| item["retry_count"] == 1);
    for _ in 0..3 {
        served.kill();
        served = Served::on(&world);
        let still = served.flow("f");
        // Either it still waits, for the same instant, or that has come.
        let still = only(&still, "a").unwrap();
        if still["status"] == "pending" {
            assert_eq!(still["next_retry_at"], waiting["next_retry_at"]);
        }
        assert_eq!(still["retry_count"], 1);
    }
    served.ends("f", "completed");
    let events = world.events_of("f");
    is_lawful(&events);
    assert_eq!(one(&events, "retry_scheduled")["due_at"], waiting["next_retry_at"]);
    let calls = handlers.requests("/a");
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0].token(), calls[1].token());
    let started = all(&events, "attempt_started");
    assert!(millis(&started[1]["at"]) >= millis(&waiting["next_retry_at"]));
}

#[test]
fn killed_in_a_call_it_is_interrupted_and_sent_again_as_often_as_allowed() {
    let world = World::new();
    let handlers = StepServer::start().on("/a", &[Reply::outputs(&json!({"x": 1})).gated()]);
    let mut served = Served::on(&world);
    let work = json!({"max_retries": 2, "backoff": 1, "backoff_type": "fixed"});
    served.register(&giver(&handlers, "a", &work));
    served.begin("f", "a", &json!({}));
    for calls in 1..=3 {
        handlers.wait_for("/a", calls);
        served.kill();
        served = Served::on(&world);
    }
    let flow = served.ends("f", "failed");
    assert_eq!(only(&flow, "a").unwrap()["retry_count"], 2);
    let events = world.events_of("f");
    is_lawful(&events);
    assert_eq!(outcomes(&events), ["interrupted"; 3]);
    let calls = handlers.requests("/a");
    assert_eq!(calls.len(), 3);
    assert!(calls.iter().all(|call| call.token() == calls[0].token()));
    assert!(calls.iter().all(|call| call.body == calls[0].body));

    // The same with an end: two calls, the second of which is answered.
    served.begin("g", "a", &json!({}));
    handlers.wait_for("/a", 4);
    served.kill();
    handlers.open("/a");
    let served = Served::on(&world);
    served.ends("g", "completed");
    assert_eq!(outcomes(&world.events_of("g")), ["interrupted", "success"]);
    assert_eq!(handlers.requests("/a").len(), 5);
}

#[test]
fn killed_while_a_result_is_waited_for_it_goes_on_waiting_and_calls_nobody() {
    let world = World::new();
    let handlers = StepServer::start().on("/a", &[taken_on()]);
    let address = address();
    let mut served = Served::at(&world, &address);
    served.register(&later(&handlers, "a", &json!({"max_retries": 2, "backoff": 1})));
    for id in ["f", "g"] {
        served.begin(id, "a", &json!({}));
        World::eventually("an accepted call", || {
            let events = world.events_of(id);
            (!all(&events, "attempt_accepted").is_empty()).then_some(())
        });
    }
    let urls: Vec<String> = handlers.requests("/a").iter().map(url).collect();
    for _ in 0..2 {
        served.kill();
        assert!(webhook(&urls[0], &done(&json!({"x": 1}))).is_none());
        served = Served::at(&world, &address);
    }
    for url in &urls {
        webhook(url, &done(&json!({"x": 7}))).unwrap().is(200);
    }
    // What was answered 200 is not lost, even if nobody could go on with it.
    served.kill();
    let served = Served::at(&world, &address);
    for id in ["f", "g"] {
        let flow = served.ends(id, "completed");
        assert_eq!(flow["attributes"]["x"]["value"], 7);
        let events = world.events_of(id);
        is_lawful(&events);
        assert_eq!(outcomes(&events), ["success"]);
    }
    assert_eq!(handlers.requests("/a").len(), 2);
}

#[test]
fn a_flow_that_was_answered_201_is_there_however_soon_the_server_is_killed() {
    let world = World::new();
    let handlers = StepServer::start().on("/a", &[Reply::outputs(&json!({"x": 1}))]);
    let served = Served::on(&world);
    served.register(&giver(&handlers, "a", &json!({"max_retries": 9, "backoff": 1})));
    served.kill();
    for n in 0..8 {
        let served = Served::on(&world);
        for part in 0..=n % 3 {
            served.begin(&format!("f{n}-{part}"), "a", &json!({}));
        }
        served.kill();
    }
    let served = Served::on(&world);
    for n in 0..8 {
        for part in 0..=n % 3 {
            let id = format!("f{n}-{part}");
            served.ends(&id, "completed");
            is_lawful(&world.events_of(&id));
            served.deactivated(&id);
        }
    }
}

#[test]
fn killed_in_a_flow_of_a_step_both_flows_go_on_and_the_inner_one_is_begun_once() {
    let world = World::new();
    let handlers = StepServer::start().on("/inner", &[Reply::outputs(&json!({"y": 2})).gated()]);
    let served = Served::on(&world);
    let inner = json!({"x": {"role": "required"}, "y": {"role": "output"}});
    let more = json!({"work_config": {"max_retries": 3, "backoff": 1}});
    served.register(&step(&handlers, "inner", &inner, &more));
    served.register(&json!({
        "id": "outer", "name": "outer", "type": "flow", "flow": {"goals": ["inner"]}, "attributes": inner,
    }));
    served.begin("f", "outer", &json!({"x": 1}));
    handlers.wait_for("/inner", 1);
    served.kill();
    let served = Served::on(&world);
    let calls = handlers.wait_for("/inner", 2);
    assert_eq!(calls[0].body, calls[1].body);
    handlers.open("/inner");
    let flow = served.ends("f", "completed");
    assert_eq!(flow["attributes"]["y"]["value"], 2);
    served.deactivated("f");
    let engine = served.get("/engine").is(200);
    assert_eq!(engine["flow_digests"].as_object().unwrap().len(), 2, "{engine:#}");
    assert_eq!(engine["active"], json!({}));
    assert_eq!(handlers.requests("/inner").len(), 2);
}

/// Sends a wish until somebody does it.
pub(crate) fn insist(address: SocketAddr, path: &str, wish: &Value) {
    World::eventually(path, || {
        let mut connection = Connection::try_to(address)?;
        let answer = connection.ask("POST", path, &wish.to_string())?;
        assert_eq!(answer.status, 201, "{}", answer.text());
        Some(())
    });
}

#[test]
fn wherever_the_server_dies_the_flow_goes_on_and_each_step_is_called_as_recorded() {
    let places = [
        "append-before",
        "append-after",
        "begin-before",
        "claimed",
        "call-before",
        "call-after",
        "flow-written",
        "flow-begun",
        "commit-before",
        "commit-after",
    ];
    thread::scope(|scope| {
        for place in places {
            scope.spawn(move || {
                let numbers = match place {
                    "append-before" | "append-after" => 1..14,
                    "flow-written" | "flow-begun" => 1..2,
                    _ => 1..4,
                };
                let mut deaths = 0;
                let handlers = StepServer::start()
                    .on("/a", &[Reply::outputs(&json!({"x": 1}))])
                    .on("/b", &[Reply::outputs(&json!({"y": 1}))]);
                let world = World::new();
                let address = address();
                let served = Served::at(&world, &address);
                served.register(&giver(&handlers, "a", &json!({"max_retries": 3, "backoff": 1})));
                let attributes = json!({"x": {"role": "required"}, "y": {"role": "output"}});
                let more = json!({"work_config": {"max_retries": 3, "backoff": 1}});
                served.register(&step(&handlers, "b", &attributes, &more));
                served.end();
                for number in numbers {
                    let id = format!("{place}-{number}");
                    let die = format!("{place}:{number}");
                    let mut dying =
                        Served::with(&world, &["--listen", &address], &[("UNDAUNTED_TEST_DIE", &die)]);
                    let wish = json!({"id": id, "goals": ["b"]});
                    let _ = dying.try_ask("POST", "/engine/flow", &wish.to_string());
                    let died = World::eventually("a death or an end", || {
                        if dying.is_gone() {
                            return Some(true);
                        }
                        let answer = dying.try_ask("GET", &format!("/engine/flow/{id}"), "")?;
                        (answer.status == 200 && answer.json()["status"] != "active").then_some(false)
                    });
                    deaths += usize::from(died);
                    dying.kill();
                    let served = Served::at(&world, &address);
                    insist(served.address(), "/engine/flow", &wish);
                    served.ends(&id, "completed");
                    served.deactivated(&id);
                    served.end();
                    let events = world.events_of(&id);
                    is_lawful(&events);
                    let calls = handlers.all();
                    let calls = calls.iter().filter(|call| call.json()["metadata"]["flow_id"] == *id);
                    let outcomes = outcomes(&events);
                    let interrupted = outcomes.iter().filter(|it| *it == "interrupted").count();
                    let (made, started) = (calls.count(), outcomes.len());
                    assert!(made <= started && made >= started - interrupted, "{die}: {made} {outcomes:?}");
                }
                assert!(deaths > 0, "nobody ever died at {place}");
            });
        }
    });
}

/// Begins a flow whose result comes later, and waits until it is waited for: where it is to be sent.
fn waited_for(world: &World, handlers: &StepServer, served: &Served, id: &str) -> String {
    let work = json!({"max_retries": 2, "backoff": 1});
    served.register(&later(handlers, "a", &work));
    served.begin(id, "a", &json!({}));
    World::eventually("an accepted call", || {
        let events = world.events_of(id);
        (!all(&events, "attempt_accepted").is_empty()).then_some(())
    });
    url(&handlers.all()[0])
}

#[test]
fn a_result_that_was_taken_and_not_answered_is_there_and_may_be_sent_again() {
    let world = World::new();
    let handlers = StepServer::start().on("/a", &[taken_on()]);
    let address = address();
    let place = "result-taken";
    let die = format!("{place}:1");
    let listen = ["--listen", address.as_str()];
    let dying = Served::with(&world, &listen, &[("UNDAUNTED_TEST_DIE", &die)]);
    let url = waited_for(&world, &handlers, &dying, "f");
    assert!(webhook(&url, &done(&json!({"x": 7}))).is_none());
    assert_eq!(dying.wait().code, -9);
    let served = Served::at(&world, &address);
    webhook(&url, &done(&json!({"x": 8}))).unwrap().is(200);
    let flow = served.ends("f", "completed");
    assert_eq!(flow["attributes"]["x"]["value"], 7);
    assert_eq!(outcomes(&world.events_of("f")), ["success"]);
}

#[test]
fn a_result_that_was_handed_on_and_not_answered_is_taken_by_whoever_has_the_flow() {
    let world = World::new();
    let handlers = StepServer::start().on("/a", &[taken_on()]);
    let owner = Served::on(&world);
    let url = waited_for(&world, &handlers, &owner, "f");
    let place = "result-handed-on";
    let die = format!("{place}:1");
    let listen = ["--listen", "127.0.0.1:0"];
    let dying = Served::with(&world, &listen, &[("UNDAUNTED_TEST_DIE", &die)]);
    let owner_is = owner.address().to_string();
    let elsewhere = url.replace(&owner_is, &dying.address().to_string());
    assert!(webhook(&elsewhere, &done(&json!({"x": 7}))).is_none());
    assert_eq!(dying.wait().code, -9);
    let flow = owner.ends("f", "completed");
    assert_eq!(flow["attributes"]["x"]["value"], 7);
    assert_eq!(outcomes(&world.events_of("f")), ["success"]);
}
