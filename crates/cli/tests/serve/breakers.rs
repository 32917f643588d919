//! Many flows that fail at the same time, at one place: the breaker of that place counts them all.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use serde_json::json;

use crate::client::Connection;
use crate::history::{is_lawful, outcomes};
use crate::http_server::{Reply, StepServer};
use crate::served::{Served, giver};
use crate::world::World;

const FLOWS: usize = 500;

/// Lets second calls wait until the test has looked.
#[derive(Default)]
struct Gate {
    seen: Mutex<(BTreeSet<String>, bool)>,
    changed: Condvar,
}

impl Gate {
    /// The first call of an item fails, with all others, when the test lets them; the second waits.
    fn reply(&self, token: &str) -> Reply {
        let mut seen = self.seen.lock().unwrap();
        if seen.0.insert(token.to_owned()) {
            return Reply::status(503).gated();
        }
        while !seen.1 {
            seen = self.changed.wait(seen).unwrap();
        }
        Reply::outputs(&json!({"x": 1}))
    }

    fn open(&self) {
        self.seen.lock().unwrap().1 = true;
        self.changed.notify_all();
    }
}

/// Flows of these servers, in turn, fail all at once and complete with their retry.
fn fail_together(world: &World, servers: &[Served]) {
    let gate = Arc::new(Gate::default());
    let of_calls = Arc::clone(&gate);
    let handlers = StepServer::start().by("/a", move |request| of_calls.reply(request.token()));
    let work = json!({"max_retries": 1, "backoff": 1});
    let mut step = giver(&handlers, "a", &work);
    step["breaker"] = json!({"failure_threshold": 100_000});
    servers[0].register(&step);
    thread::scope(|scope| {
        for part in 0..8 {
            scope.spawn(move || {
                let to = |served: &Served| Connection::to(served.address());
                let mut connections: Vec<_> = servers.iter().map(to).collect();
                for n in (part..FLOWS).step_by(8) {
                    let wanted = json!({"id": format!("f{n}"), "goals": ["a"]}).to_string();
                    let connection = &mut connections[n / 8 % servers.len()];
                    let answer = connection.ask("POST", "/engine/flow", &wanted);
                    answer.unwrap().is(201);
                }
            });
        }
    });
    handlers.wait_for("/a", FLOWS);
    handlers.open("/a");
    handlers.wait_for("/a", 2 * FLOWS);
    // No call is answered well yet, so every failure there was counts.
    let breaker = world.breaker(&handlers.origin());
    assert_eq!(breaker["failures"], FLOWS, "{breaker:#}");
    assert_eq!(breaker["state"], "closed");
    gate.open();
    World::eventually("the end of all flows", || {
        let query = json!({"statuses": ["completed"], "limit": 1});
        let found = servers[0].post("/engine/flow/query", &query).is(200);
        (found["total"] == FLOWS).then_some(())
    });
    assert_eq!(handlers.all().len(), 2 * FLOWS);
    assert_eq!(world.breaker(&handlers.origin())["failures"], 0);
    for n in (0..FLOWS).step_by(97) {
        let events = world.events_of(&format!("f{n}"));
        is_lawful(&events);
        assert_eq!(outcomes(&events), ["status", "success"], "f{n}");
    }
}

#[test]
fn flows_that_fail_at_the_same_time_are_all_counted_and_all_retried() {
    let world = World::new();
    let served = Served::on(&world);
    fail_together(&world, &[served]);
}

#[test]
fn flows_of_two_servers_that_fail_at_the_same_time_are_all_counted_and_all_retried() {
    let world = World::new();
    let servers = [Served::on(&world), Served::on(&world)];
    fail_together(&world, &servers);
}
