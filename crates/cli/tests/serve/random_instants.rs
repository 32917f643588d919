//! The server is killed at random instants, again and again. The seed is printed; the same seed draws the
//! same instants, and `DURABILITY_SEED` sets it.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::client::{free_address, send_result, success};
use crate::history::{kind, text};
use crate::http_server::{ReceivedRequest, Reply, ScriptedServer};
use crate::killed::send_until_accepted;
use crate::processes::Dice;
use crate::sandbox::Sandbox;
use crate::served::{RunningServer, async_step, provider};

const FLOWS: usize = 30;
const KILLS: usize = 20;
/// More than all kills and failures together can use.
const RETRIES: usize = 60;

/// Fails about every other call.
fn fail_sometimes(request: &ReceivedRequest) -> Reply {
    let at = request.at.duration_since(UNIX_EPOCH).unwrap();
    if at.subsec_micros().is_multiple_of(2) { Reply::status(503) } else { Reply::x(1) }
}

/// Accepts the call and sends its result until a server accepts that.
fn send_result_until_accepted(request: &ReceivedRequest) -> Reply {
    let url = request.webhook_url();
    thread::spawn(move || {
        Sandbox::eventually("an accepted result", || {
            let answer = send_result(&url, success(&json!({"y": 2})))?;
            assert_ne!(answer.status, 404, "{}", answer.text());
            (answer.status == 200).then_some(())
        });
    });
    Reply::accepted()
}

/// Kills the server at random instants.
fn kill_often(sandbox: &Sandbox, address: &str, mut served: RunningServer) -> RunningServer {
    let mut dice = Dice::seeded();
    for _ in 0..KILLS {
        let until = Instant::now() + Duration::from_micros(dice.below(150_000));
        while Instant::now() < until {
            thread::yield_now();
        }
        served.kill();
        served = RunningServer::at(sandbox, address);
    }
    served
}

#[test]
fn killed_at_twenty_random_instants_thirty_flows_end_and_nothing_is_lost() {
    let sandbox = Sandbox::new();
    let address = free_address();
    let handlers = ScriptedServer::start().by("/a", fail_sometimes).by("/b", send_result_until_accepted);
    let served = RunningServer::at(&sandbox, &address);
    let work = json!({"max_retries": RETRIES, "backoff": 5, "max_backoff": 20});
    served.register(&provider(&handlers, "a", &work));
    let mut b = async_step(&handlers, "b", &work);
    b["attributes"] = json!({"x": {"role": "required"}, "y": {"role": "output"}});
    served.register(&b);
    let target = served.address();
    let clients = thread::spawn(move || {
        for n in 0..FLOWS {
            let flow = json!({"id": format!("f{n}"), "goals": ["b"], "init": {"n": n}});
            send_until_accepted(target, "/engine/flow", &flow);
        }
    });
    let served = kill_often(&sandbox, &address, served);
    clients.join().unwrap();
    let flows: Vec<Value> = (0..FLOWS).map(|n| served.wait_for_end(&format!("f{n}"), "completed")).collect();
    let mut calls: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for call in handlers.all() {
        let metadata = &call.json()["metadata"];
        let subject = (text(&metadata["flow_id"]), text(&metadata["step_id"]));
        calls.entry(subject).or_default().push(call.token().to_owned());
    }
    assert_eq!(calls.len(), 2 * FLOWS);
    for flow in &flows {
        assert_eq!(flow["attributes"]["y"]["value"], 2);
        let id = text(&flow["id"]);
        served.wait_for_deactivation(&id);
        let events = sandbox.lawful_events_of(&id);
        for step in ["a", "b"] {
            assert_matches_journal(flow, &events, step, &calls[&(id.clone(), step.to_owned())]);
        }
    }
}

/// Asserts that the step server received a request for each attempt in the journal, except perhaps for
/// interrupted ones, and that all have the token in the state.
fn assert_matches_journal(flow: &Value, events: &[Value], step: &str, calls: &[String]) {
    let of_step = |event: &&Value| text(&event["item"]).starts_with(step);
    let count = |condition: &dyn Fn(&Value) -> bool| {
        let events = events.iter().filter(of_step);
        events.filter(|event| condition(event)).count()
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
