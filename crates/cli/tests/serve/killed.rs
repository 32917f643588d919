//! The server killed with `kill -9`: in a wait, in a call, waiting for a result, anywhere.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Connection, webhook};
use crate::history::{all, is_lawful, millis, one, outcomes, text};
use crate::http_server::{Reply, StepServer};
use crate::served::{Served, address, giver, only, step};
use crate::webhooks::{done, later, taken_on, url};
use crate::world::World;

#[test]
fn killed_in_a_wait_the_retry_keeps_its_time_and_its_token() {
    let world = World::new();
    let ok = Reply::outputs(&json!({"x": 1}));
    let server = StepServer::start().on("/a", &[Reply::status(503), ok]);
    let mut served = Served::on(&world);
    let work = json!({"max_retries": 1, "backoff": 2500, "backoff_type": "fixed"});
    served.register(&giver(&server, "a", &work));
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
    assert_eq!(
        one(&events, "retry_scheduled")["due_at"],
        waiting["next_retry_at"]
    );
    let calls = server.requests("/a");
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0].token(), calls[1].token());
    let started = all(&events, "attempt_started");
    assert!(millis(&started[1]["at"]) >= millis(&waiting["next_retry_at"]));
}

#[test]
fn killed_in_a_call_it_is_interrupted_and_sent_again_as_often_as_allowed() {
    let world = World::new();
    let server = StepServer::start().on("/a", &[Reply::outputs(&json!({"x": 1})).gated()]);
    let mut served = Served::on(&world);
    let work = json!({"max_retries": 2, "backoff": 1, "backoff_type": "fixed"});
    served.register(&giver(&server, "a", &work));
    served.begin("f", "a", &json!({}));
    for calls in 1..=3 {
        server.wait_for("/a", calls);
        served.kill();
        served = Served::on(&world);
    }
    let flow = served.ends("f", "failed");
    assert_eq!(only(&flow, "a").unwrap()["retry_count"], 2);
    let events = world.events_of("f");
    is_lawful(&events);
    assert_eq!(outcomes(&events), ["interrupted"; 3]);
    let calls = server.requests("/a");
    assert_eq!(calls.len(), 3);
    assert!(calls.iter().all(|call| call.token() == calls[0].token()));
    assert!(calls.iter().all(|call| call.body == calls[0].body));

    // The same with an end: two calls, the second of which is answered.
    served.begin("g", "a", &json!({}));
    server.wait_for("/a", 4);
    served.kill();
    server.open("/a");
    let served = Served::on(&world);
    served.ends("g", "completed");
    assert_eq!(outcomes(&world.events_of("g")), ["interrupted", "success"]);
    assert_eq!(server.requests("/a").len(), 5);
}

#[test]
fn killed_while_a_result_is_waited_for_it_goes_on_waiting_and_calls_nobody() {
    let world = World::new();
    let server = StepServer::start().on("/a", &[taken_on()]);
    let address = address();
    let mut served = Served::at(&world, &address);
    served.register(&later(
        &server,
        "a",
        &json!({"max_retries": 2, "backoff": 1}),
    ));
    for id in ["f", "g"] {
        served.begin(id, "a", &json!({}));
        World::eventually("an accepted call", || {
            let events = world.events_of(id);
            (!all(&events, "attempt_accepted").is_empty()).then_some(())
        });
    }
    let urls: Vec<String> = server.requests("/a").iter().map(url).collect();
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
    assert_eq!(server.requests("/a").len(), 2);
}

#[test]
fn a_flow_that_was_answered_201_is_there_however_soon_the_server_is_killed() {
    let world = World::new();
    let server = StepServer::start().on("/a", &[Reply::outputs(&json!({"x": 1}))]);
    let served = Served::on(&world);
    served.register(&giver(
        &server,
        "a",
        &json!({"max_retries": 9, "backoff": 1}),
    ));
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

/// Sends a wish until somebody does it.
fn insist(address: SocketAddr, path: &str, wish: &Value) {
    World::eventually(path, || {
        let mut connection = Connection::try_to(address)?;
        let answer = connection.ask("POST", path, &wish.to_string())?;
        assert_eq!(answer.status, 201, "{}", answer.text());
        Some(())
    });
}

#[test]
fn wherever_the_server_dies_the_flow_goes_on_and_each_step_is_called_as_recorded() {
    let places = ["append-before", "append-after", "begin-before", "claimed"];
    thread::scope(|scope| {
        for place in places {
            scope.spawn(move || {
                let numbers = if place.starts_with("append") {
                    1..14
                } else {
                    1..4
                };
                let mut deaths = 0;
                let server = StepServer::start()
                    .on("/a", &[Reply::outputs(&json!({"x": 1}))])
                    .on("/b", &[Reply::outputs(&json!({"y": 1}))]);
                let world = World::new();
                let address = address();
                let served = Served::at(&world, &address);
                served.register(&giver(
                    &server,
                    "a",
                    &json!({"max_retries": 3, "backoff": 1}),
                ));
                let attributes = json!({"x": {"role": "required"}, "y": {"role": "output"}});
                let more = json!({"work_config": {"max_retries": 3, "backoff": 1}});
                served.register(&step(&server, "b", &attributes, &more));
                served.end();
                for number in numbers {
                    let id = format!("{place}-{number}");
                    let die = format!("{place}:{number}");
                    let mut dying = Served::with(
                        &world,
                        &["--listen", &address],
                        &[("UNDAUNTED_TEST_DIE", &die)],
                    );
                    let wish = json!({"id": id, "goals": ["b"]});
                    let _ = dying.try_ask("POST", "/engine/flow", &wish.to_string());
                    let died = World::eventually("a death or an end", || {
                        if dying.is_gone() {
                            return Some(true);
                        }
                        let answer = dying.try_ask("GET", &format!("/engine/flow/{id}"), "")?;
                        (answer.status == 200 && answer.json()["status"] != "active")
                            .then_some(false)
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
                    let calls = server.all();
                    let calls = calls
                        .iter()
                        .filter(|call| call.json()["metadata"]["flow_id"] == *id);
                    let outcomes = outcomes(&events);
                    let interrupted = outcomes.iter().filter(|it| *it == "interrupted").count();
                    let (made, started) = (calls.count(), outcomes.len());
                    assert!(
                        made <= started && made >= started - interrupted,
                        "{die}: {made} {outcomes:?}"
                    );
                }
                assert!(deaths > 0, "nobody ever died at {place}");
            });
        }
    });
}

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

#[test]
fn killed_at_twenty_random_instants_thirty_flows_end_and_nothing_is_lost() {
    let given = std::env::var("DURABILITY_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let mut dice = Dice(given.unwrap_or_else(|| u64::from(std::process::id()) * 1_000_003));
    println!("DURABILITY_SEED={}", dice.0);
    let world = World::new();
    let address = address();
    let server = StepServer::start()
        .by("/a", |request| {
            // Every other call fails.
            let fails = request
                .at
                .duration_since(std::time::UNIX_EPOCH)
                .unwrap()
                .subsec_micros()
                % 2
                == 0;
            if fails {
                Reply::status(503)
            } else {
                Reply::outputs(&json!({"x": 1}))
            }
        })
        .by("/b", |request| {
            let url = url(request);
            thread::spawn(move || {
                World::eventually("a result that is taken", || {
                    let answer = webhook(&url, &done(&json!({"y": 2})))?;
                    assert_ne!(answer.status, 404, "{}", answer.text());
                    (answer.status == 200).then_some(())
                })
            });
            taken_on()
        });
    let served = Served::at(&world, &address);
    served.register(&giver(
        &server,
        "a",
        &json!({"max_retries": 60, "backoff": 5, "max_backoff": 20}),
    ));
    let mut b = later(
        &server,
        "b",
        &json!({"max_retries": 60, "backoff": 5, "max_backoff": 20}),
    );
    b["attributes"] = json!({"x": {"role": "required"}, "y": {"role": "output"}});
    served.register(&b);
    let place = served.address();
    let clients = thread::spawn(move || {
        for n in 0..30 {
            insist(
                place,
                "/engine/flow",
                &json!({"id": format!("f{n}"), "goals": ["b"], "init": {"n": n}}),
            );
        }
    });
    let mut served = Some(served);
    for _ in 0..20 {
        let until = Instant::now() + Duration::from_micros(dice.below(150_000));
        while Instant::now() < until {
            thread::yield_now();
        }
        served.take().unwrap().kill();
        served = Some(Served::at(&world, &address));
    }
    clients.join().unwrap();
    let served = served.unwrap();
    let mut calls: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for n in 0..30 {
        let flow = served.ends(&format!("f{n}"), "completed");
        assert_eq!(flow["attributes"]["y"]["value"], 2);
        served.deactivated(&format!("f{n}"));
    }
    for call in server.all() {
        let metadata = &call.json()["metadata"];
        let of = (text(&metadata["flow_id"]), text(&metadata["step_id"]));
        calls.entry(of).or_default().push(call.token().to_owned());
    }
    assert_eq!(calls.len(), 60);
    let mut kills = 0;
    for n in 0..30 {
        let id = format!("f{n}");
        let events = world.events_of(&id);
        is_lawful(&events);
        for step in ["a", "b"] {
            let of = |kind: &str| {
                all(&events, kind)
                    .into_iter()
                    .filter(|event| text(&event["item"]).starts_with(step))
                    .count()
            };
            let failed = all(&events, "attempt_failed").into_iter();
            let failed = failed.filter(|event| text(&event["item"]).starts_with(step));
            let interrupted = failed
                .filter(|event| event["cause"] == "interrupted")
                .count();
            let made = &calls[&(id.clone(), step.to_owned())];
            let started = of("attempt_started");
            assert!(started <= 61);
            assert!(
                made.len() <= started && made.len() >= started - interrupted,
                "{id} {step}: {} {events:#?}",
                made.len()
            );
            let tokens = flow_tokens(&served, &id, step);
            assert!(
                made.iter().all(|token| tokens.contains(token)),
                "{id} {step}"
            );
            kills += interrupted;
        }
    }
    println!("{kills} attempts were interrupted");
}

fn flow_tokens(served: &Served, id: &str, step: &str) -> Vec<String> {
    let flow = served.flow(id);
    let items = flow["executions"][step]["work_items"].as_object().unwrap();
    assert_eq!(items.len(), 1);
    items.keys().cloned().collect()
}
