//! The server is killed with `kill -9`: during a delay, during a call, while it waits for a result, at every
//! failpoint.

use std::net::SocketAddr;
use std::thread;

use serde_json::{Value, json};

use crate::client::{Connection, free_address, send_result, success};
use crate::history::{all, millis, one, outcomes};
use crate::http_server::{ReceivedRequest, Reply, ScriptedServer};
use crate::sandbox::Sandbox;
use crate::served::{RunningServer, async_step, follower_step, one_step, only_item, provider, retries};

#[test]
fn killed_in_a_wait_the_retry_keeps_its_time_and_its_token() {
    let ok = Reply::x(1);
    let work = json!({"max_retries": 1, "backoff": 2500, "backoff_type": "fixed"});
    let (sandbox, handlers, mut served) = one_step(&[Reply::status(503), ok], &work);
    served.start_flow("f", "a", &json!({}));
    let waiting = served.wait_for_first_retry("f", "a");
    for _ in 0..3 {
        served.kill();
        served = RunningServer::on(&sandbox);
        let still = served.flow("f");
        // Either the item still waits for the same instant, or that has passed.
        let still = only_item(&still, "a").unwrap();
        if still["status"] == "pending" {
            assert_eq!(still["next_retry_at"], waiting["next_retry_at"]);
        }
        assert_eq!(still["retry_count"], 1);
    }
    served.wait_for_end("f", "completed");
    let events = sandbox.lawful_events_of("f");
    assert_eq!(one(&events, "retry_scheduled")["due_at"], waiting["next_retry_at"]);
    let calls = handlers.requests("/a");
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0].token(), calls[1].token());
    let started = all(&events, "attempt_started");
    assert!(millis(&started[1]["at"]) >= millis(&waiting["next_retry_at"]));
}

#[test]
fn killed_in_a_call_it_is_interrupted_and_sent_again_as_often_as_allowed() {
    let work = json!({"max_retries": 2, "backoff": 1, "backoff_type": "fixed"});
    let (sandbox, handlers, mut served) = one_step(&[Reply::x(1).gated()], &work);
    served.start_flow("f", "a", &json!({}));
    for calls in 1..=3 {
        handlers.wait_for("/a", calls);
        served.kill();
        served = RunningServer::on(&sandbox);
    }
    let flow = served.wait_for_end("f", "failed");
    assert_eq!(only_item(&flow, "a").unwrap()["retry_count"], 2);
    let events = sandbox.lawful_events_of("f");
    assert_eq!(outcomes(&events), ["interrupted"; 3]);
    let calls = handlers.requests("/a");
    assert_eq!(calls.len(), 3);
    assert!(calls.iter().all(|call| call.token() == calls[0].token()));
    assert!(calls.iter().all(|call| call.body == calls[0].body));

    // Another flow: its second call is answered.
    served.start_flow("g", "a", &json!({}));
    handlers.wait_for("/a", 4);
    served.kill();
    handlers.open("/a");
    let served = RunningServer::on(&sandbox);
    served.wait_for_end("g", "completed");
    assert_eq!(outcomes(&sandbox.events_of("g")), ["interrupted", "success"]);
    assert_eq!(handlers.requests("/a").len(), 5);
}

#[test]
fn killed_while_it_waits_for_a_result_it_keeps_waiting_and_makes_no_call() {
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start().on("/a", &[Reply::accepted()]);
    let address = free_address();
    let mut served = RunningServer::at(&sandbox, &address);
    served.register(&async_step(&handlers, "a", &retries(2)));
    for id in ["f", "g"] {
        served.start_flow(id, "a", &json!({}));
        sandbox.wait_for_event_of(id, "attempt_accepted");
    }
    let urls: Vec<String> = handlers.requests("/a").iter().map(ReceivedRequest::webhook_url).collect();
    for _ in 0..2 {
        served.kill();
        assert!(send_result(&urls[0], success(&json!({"x": 1}))).is_none());
        served = RunningServer::at(&sandbox, &address);
    }
    for url in &urls {
        send_result(url, success(&json!({"x": 7}))).unwrap().is(200);
    }
    // A result answered with 200 is not lost, even if no process could resume the flow.
    served.kill();
    let served = RunningServer::at(&sandbox, &address);
    for id in ["f", "g"] {
        let _flow = served.completes_with_x(id, &json!(7));
        let events = sandbox.lawful_events_of(id);
        assert_eq!(outcomes(&events), ["success"]);
    }
    assert_eq!(handlers.requests("/a").len(), 2);
}

#[test]
fn a_flow_that_was_answered_201_is_there_however_soon_the_server_is_killed() {
    let (sandbox, _handlers, served) = one_step(&[Reply::x(1)], &retries(9));
    served.kill();
    for n in 0..8 {
        let served = RunningServer::on(&sandbox);
        for part in 0..=n % 3 {
            served.start_flow(&format!("f{n}-{part}"), "a", &json!({}));
        }
        served.kill();
    }
    let served = RunningServer::on(&sandbox);
    for n in 0..8 {
        for part in 0..=n % 3 {
            let id = format!("f{n}-{part}");
            served.wait_for_end(&id, "completed");
            sandbox.lawful_events_of(&id);
            served.wait_for_deactivation(&id);
        }
    }
}

#[test]
fn killed_in_a_sub_flow_both_flows_are_resumed_and_the_inner_one_is_started_once() {
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start().on("/inner", &[Reply::outputs(&json!({"y": 2})).gated()]);
    let served = RunningServer::on(&sandbox);
    let more = json!({"work_config": {"max_retries": 3, "backoff": 1}});
    served.register(&follower_step(&handlers, "inner", &more));
    served.register(&json!({
        "id": "outer", "name": "outer", "type": "flow", "flow": {"goals": ["inner"]},
        "attributes": {"x": {"role": "required"}, "y": {"role": "output"}},
    }));
    served.start_flow("f", "outer", &json!({"x": 1}));
    handlers.wait_for("/inner", 1);
    served.kill();
    let served = RunningServer::on(&sandbox);
    let calls = handlers.wait_for("/inner", 2);
    assert_eq!(calls[0].body, calls[1].body);
    handlers.open("/inner");
    let flow = served.wait_for_end("f", "completed");
    assert_eq!(flow["attributes"]["y"]["value"], 2);
    served.wait_for_deactivation("f");
    let engine = served.get("/engine").is(200);
    assert_eq!(engine["flow_digests"].as_object().unwrap().len(), 2, "{engine:#}");
    assert_eq!(engine["active"], json!({}));
    assert_eq!(handlers.requests("/inner").len(), 2);
}

/// Sends a request until a server answers 201.
pub(crate) fn send_until_accepted(address: SocketAddr, path: &str, flow: &Value) {
    Sandbox::eventually(path, || {
        let mut connection = Connection::try_open(address)?;
        let answer = connection.ask("POST", path, &flow.to_string())?;
        assert_eq!(answer.status, 201, "{}", answer.text());
        Some(())
    });
}

#[test]
fn wherever_the_server_dies_the_flow_is_resumed_and_each_step_is_called_as_recorded() {
    let failpoints = [
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
        for failpoint in failpoints {
            scope.spawn(move || {
                let numbers = match failpoint {
                    "append-before" | "append-after" => 1..14,
                    "flow-written" | "flow-begun" => 1..2,
                    _ => 1..4,
                };
                let mut deaths = 0;
                let handlers = ScriptedServer::start()
                    .on("/a", &[Reply::x(1)])
                    .on("/b", &[Reply::outputs(&json!({"y": 1}))]);
                let sandbox = Sandbox::new();
                let address = free_address();
                let served = RunningServer::at(&sandbox, &address);
                served.register(&provider(&handlers, "a", &retries(3)));
                let more = json!({"work_config": {"max_retries": 3, "backoff": 1}});
                served.register(&follower_step(&handlers, "b", &more));
                served.stop();
                for number in numbers {
                    let id = format!("{failpoint}-{number}");
                    let die = format!("{failpoint}:{number}");
                    let mut dying = RunningServer::with(
                        &sandbox,
                        &["--listen", &address],
                        &[("UNDAUNTED_TEST_DIE", &die)],
                    );
                    let flow = json!({"id": id, "goals": ["b"]});
                    let _ = dying.try_ask("POST", "/engine/flow", &flow.to_string());
                    let died = Sandbox::eventually("a death or an end", || {
                        if dying.has_ended() {
                            return Some(true);
                        }
                        let answer = dying.try_ask("GET", &format!("/engine/flow/{id}"), "")?;
                        (answer.status == 200 && answer.json()["status"] != "active").then_some(false)
                    });
                    deaths += usize::from(died);
                    dying.kill();
                    let served = RunningServer::at(&sandbox, &address);
                    send_until_accepted(served.address(), "/engine/flow", &flow);
                    served.wait_for_end(&id, "completed");
                    served.wait_for_deactivation(&id);
                    served.stop();
                    let events = sandbox.lawful_events_of(&id);
                    let calls = handlers.all();
                    let calls = calls.iter().filter(|call| call.json()["metadata"]["flow_id"] == *id);
                    let outcomes = outcomes(&events);
                    let interrupted = outcomes.iter().filter(|it| *it == "interrupted").count();
                    let (sent, started) = (calls.count(), outcomes.len());
                    assert!(sent <= started && sent >= started - interrupted, "{die}: {sent} {outcomes:?}");
                }
                assert!(deaths > 0, "no process ever died at {failpoint}");
            });
        }
    });
}

/// Starts a flow of an async step and waits until its call is accepted. Returns the webhook URL.
fn waiting_flow(sandbox: &Sandbox, handlers: &ScriptedServer, served: &RunningServer, id: &str) -> String {
    let work = retries(2);
    served.register(&async_step(handlers, "a", &work));
    served.start_flow(id, "a", &json!({}));
    sandbox.wait_for_event_of(id, "attempt_accepted");
    handlers.all()[0].webhook_url()
}

#[test]
fn a_result_that_was_taken_and_not_answered_is_there_and_may_be_sent_again() {
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start().on("/a", &[Reply::accepted()]);
    let address = free_address();
    let failpoint = "result-taken";
    let die = format!("{failpoint}:1");
    let listen = ["--listen", address.as_str()];
    let dying = RunningServer::with(&sandbox, &listen, &[("UNDAUNTED_TEST_DIE", &die)]);
    let url = waiting_flow(&sandbox, &handlers, &dying, "f");
    assert!(send_result(&url, success(&json!({"x": 7}))).is_none());
    assert_eq!(dying.wait().code, -9);
    let served = RunningServer::at(&sandbox, &address);
    send_result(&url, success(&json!({"x": 8}))).unwrap().is(200);
    let _flow = served.completes_with_x("f", &json!(7));
    assert_eq!(outcomes(&sandbox.events_of("f")), ["success"]);
}

#[test]
fn a_result_that_was_forwarded_and_not_answered_is_taken_by_the_owner_of_the_flow() {
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start().on("/a", &[Reply::accepted()]);
    let owner = RunningServer::on(&sandbox);
    let url = waiting_flow(&sandbox, &handlers, &owner, "f");
    let failpoint = "result-handed-on";
    let die = format!("{failpoint}:1");
    let listen = ["--listen", "127.0.0.1:0"];
    let dying = RunningServer::with(&sandbox, &listen, &[("UNDAUNTED_TEST_DIE", &die)]);
    let owner_is = owner.address().to_string();
    let elsewhere = url.replace(&owner_is, &dying.address().to_string());
    assert!(send_result(&elsewhere, success(&json!({"x": 7}))).is_none());
    assert_eq!(dying.wait().code, -9);
    let _flow = owner.completes_with_x("f", &json!(7));
    assert_eq!(outcomes(&sandbox.events_of("f")), ["success"]);
}
