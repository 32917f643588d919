//! Many flows that fail at the same time at one origin: its breaker counts every failure.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex};

use serde_json::json;

use crate::history::outcomes;
use crate::http_server::{Reply, ScriptedServer};
use crate::sandbox::Sandbox;
use crate::served::{RunningServer, provider, retries, start_flows};

const FLOWS: usize = 500;

/// Holds the second calls back until the test opens the gate.
#[derive(Default)]
struct SecondCallGate {
    state: Mutex<(BTreeSet<String>, bool)>,
    changed: Condvar,
}

impl SecondCallGate {
    /// The first call of an item fails when the test opens its path; the second waits for this gate.
    fn reply(&self, token: &str) -> Reply {
        let mut state = self.state.lock().unwrap();
        if state.0.insert(token.to_owned()) {
            return Reply::status(503).gated();
        }
        while !state.1 {
            state = self.changed.wait(state).unwrap();
        }
        Reply::x(1)
    }

    fn open(&self) {
        self.state.lock().unwrap().1 = true;
        self.changed.notify_all();
    }
}

/// Starts flows on these servers in turn; all fail at the same time and complete with their retry.
fn fail_together(sandbox: &Sandbox, servers: &[RunningServer]) {
    let gate = Arc::new(SecondCallGate::default());
    let of_calls = Arc::clone(&gate);
    let handlers = ScriptedServer::start().by("/a", move |request| of_calls.reply(request.token()));
    let work = retries(1);
    let mut step = provider(&handlers, "a", &work);
    step["breaker"] = json!({"failure_threshold": 100_000});
    servers[0].register(&step);
    let addresses: Vec<_> = servers.iter().map(RunningServer::address).collect();
    start_flows(&addresses, FLOWS, |n| json!({"id": format!("f{n}"), "goals": ["a"]}));
    handlers.wait_for("/a", FLOWS);
    handlers.open("/a");
    handlers.wait_for("/a", 2 * FLOWS);
    // No call has succeeded yet, so every failure is in the count.
    let breaker = sandbox.breaker(&handlers.origin());
    assert_eq!(breaker["failures"], FLOWS, "{breaker:#}");
    assert_eq!(breaker["state"], "closed");
    gate.open();
    servers[0].wait_for_completed(FLOWS);
    assert_eq!(handlers.all().len(), 2 * FLOWS);
    assert_eq!(sandbox.breaker(&handlers.origin())["failures"], 0);
    for n in (0..FLOWS).step_by(97) {
        let events = sandbox.lawful_events_of(&format!("f{n}"));
        assert_eq!(outcomes(&events), ["status", "success"], "f{n}");
    }
}

#[test]
fn flows_that_fail_at_the_same_time_are_all_counted_and_all_retried() {
    let sandbox = Sandbox::new();
    let served = RunningServer::on(&sandbox);
    fail_together(&sandbox, &[served]);
}

#[test]
fn flows_of_two_servers_that_fail_at_the_same_time_are_all_counted_and_all_retried() {
    let sandbox = Sandbox::new();
    let servers = [RunningServer::on(&sandbox), RunningServer::on(&sandbox)];
    fail_together(&sandbox, &servers);
}
