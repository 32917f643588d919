//! The server killed at random instants, again and again. The seed is printed; the same seed draws the
//! same instants, and `DURABILITY_SEED` sets it.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::client::webhook;
use crate::history::{is_lawful, kind, text};
use crate::http_server::{Reply, Request, StepServer};
use crate::killed::insist;
use crate::served::{Served, address, giver};
use crate::webhooks::{done, later, taken_on, url};
use crate::world::World;

const FLOWS: usize = 30;
const KILLS: usize = 20;
/// More than there are kills and failures.
const RETRIES: usize = 60;

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    fn seeded() -> Self {
        let given = std::env::var("DURABILITY_SEED").ok();
        let seed = given.and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| u64::from(std::process::id()) * 1_000_003);
        println!("DURABILITY_SEED={seed}");
        Self(seed)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// About every other call fails.
fn sometimes(request: &Request) -> Reply {
    let at = request.at.duration_since(UNIX_EPOCH).unwrap();
    if at.subsec_micros().is_multiple_of(2) { Reply::status(503) } else { Reply::outputs(&json!({"x": 1})) }
}

/// Sends a result until it is taken, whoever is killed meanwhile.
fn stubborn(request: &Request) -> Reply {
    let url = url(request);
    thread::spawn(move || {
        World::eventually("a result that is taken", || {
            let answer = webhook(&url, &done(&json!({"y": 2})))?;
            assert_ne!(answer.status, 404, "{}", answer.text());
            (answer.status == 200).then_some(())
        });
    });
    taken_on()
}

/// Kills the server at random instants.
fn kill_often(world: &World, address: &str, mut served: Served) -> Served {
    let mut dice = Dice::seeded();
    for _ in 0..KILLS {
        let until = Instant::now() + Duration::from_micros(dice.below(150_000));
        while Instant::now() < until {
            thread::yield_now();
        }
        served.kill();
        served = Served::at(world, address);
    }
    served
}

#[test]
fn killed_at_twenty_random_instants_thirty_flows_end_and_nothing_is_lost() {
    let world = World::new();
    let address = address();
    let handlers = StepServer::start().by("/a", sometimes).by("/b", stubborn);
    let served = Served::at(&world, &address);
    let work = json!({"max_retries": RETRIES, "backoff": 5, "max_backoff": 20});
    served.register(&giver(&handlers, "a", &work));
    let mut b = later(&handlers, "b", &work);
    b["attributes"] = json!({"x": {"role": "required"}, "y": {"role": "output"}});
    served.register(&b);
    let place = served.address();
    let clients = thread::spawn(move || {
        for n in 0..FLOWS {
            let wish = json!({"id": format!("f{n}"), "goals": ["b"], "init": {"n": n}});
            insist(place, "/engine/flow", &wish);
        }
    });
    let served = kill_often(&world, &address, served);
    clients.join().unwrap();
    let flows: Vec<Value> = (0..FLOWS).map(|n| served.ends(&format!("f{n}"), "completed")).collect();
    let mut calls: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for call in handlers.all() {
        let metadata = &call.json()["metadata"];
        let of = (text(&metadata["flow_id"]), text(&metadata["step_id"]));
        calls.entry(of).or_default().push(call.token().to_owned());
    }
    assert_eq!(calls.len(), 2 * FLOWS);
    for flow in &flows {
        assert_eq!(flow["attributes"]["y"]["value"], 2);
        let id = text(&flow["id"]);
        served.deactivated(&id);
        let events = world.events_of(&id);
        is_lawful(&events);
        for step in ["a", "b"] {
            is_as_recorded(flow, &events, step, &calls[&(id.clone(), step.to_owned())]);
        }
    }
}

/// What the step server saw is what the journal says: of an attempt that was interrupted nobody knows
/// whether it was sent, of every other one there is a request. All have the token that is shown.
fn is_as_recorded(flow: &Value, events: &[Value], step: &str, calls: &[String]) {
    let of_step = |event: &&Value| text(&event["item"]).starts_with(step);
    let count = |wanted: &dyn Fn(&Value) -> bool| {
        let events = events.iter().filter(of_step);
        events.filter(|event| wanted(event)).count()
    };
    let started = count(&|event| kind(event) == "attempt_started");
    let lost = count(&|event| event["cause"] == "interrupted");
    assert!(started <= RETRIES + 1);
    assert!(
        calls.len() <= started && calls.len() >= started - lost,
        "{step}: {} calls, {events:#?}",
        calls.len()
    );
    let items = flow["executions"][step]["work_items"].as_object().unwrap();
    let tokens: Vec<&String> = items.keys().collect();
    assert_eq!(tokens.len(), 1);
    assert!(calls.iter().all(|call| call == tokens[0]));
}
