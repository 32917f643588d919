//! Ending a server by signals: flows are suspended and are resumed when it starts again.

use serde_json::json;

use crate::client::{free_address, send_result, success};
use crate::history::{all, count, kind, outcomes};
use crate::http_server::{Reply, ScriptedServer};
use crate::sandbox::Sandbox;
use crate::served::{RunningServer, async_step, follower_step, one_step, only_item, provider, retries};

#[test]
fn one_sigterm_lets_calls_finish_suspends_and_everything_is_resumed_after_a_restart() {
    let sandbox = Sandbox::new();
    let handlers = ScriptedServer::start()
        .on("/a", &[Reply::x(1).gated()])
        .on("/b", &[Reply::outputs(&json!({"y": 2}))])
        .on("/wait", &[Reply::status(503), Reply::outputs(&json!({"z": 3}))])
        .on("/later", &[Reply::accepted()]);
    let address = free_address();
    let served = RunningServer::at(&sandbox, &address);
    served.register(&provider(&handlers, "a", &retries(2)));
    served.register(&follower_step(&handlers, "b", &json!({})));
    let mut wait =
        provider(&handlers, "wait", &json!({"max_retries": 1, "backoff": 1500, "backoff_type": "fixed"}));
    wait["attributes"] = json!({"z": {"role": "output"}});
    served.register(&wait);
    let mut later = async_step(&handlers, "later", &json!({}));
    later["attributes"] = json!({"w": {"role": "output"}});
    served.register(&later);
    served.start_flow("f", "b", &json!({}));
    served.start_flow("waiting", "wait", &json!({}));
    served.start_flow("later", "later", &json!({}));
    handlers.wait_for("/a", 1);
    let waiting = served.wait_for_first_retry("waiting", "wait");
    sandbox.wait_for_event_of("later", "attempt_accepted");
    served.signal("TERM");
    // The server waits for the running call and starts no other.
    Sandbox::wait_until("flows that are suspended", || {
        let suspended = |id: &str| kind(sandbox.events_of(id).last().unwrap()) == "job_suspended";
        suspended("waiting") && suspended("later")
    });
    let late = json!({"id": "late", "goals": ["a"]});
    if let Some(answer) = served.try_ask("POST", "/engine/flow", &late.to_string()) {
        answer.refused(503);
    }
    handlers.open("/a");
    served.wait().exits(0);
    let events = sandbox.events_of("f");
    assert_eq!(kind(events.last().unwrap()), "job_suspended");
    assert_eq!(outcomes(&events), ["success"]);
    assert!(handlers.requests("/b").is_empty());

    let served = RunningServer::at(&sandbox, &address);
    let flow = served.wait_for_end("f", "completed");
    assert_eq!(flow["attributes"]["y"]["value"], 2);
    served.wait_for_end("waiting", "completed");
    send_result(&handlers.requests("/later")[0].webhook_url(), success(&json!({"w": 5}))).unwrap().is(200);
    served.wait_for_end("later", "completed");
    for (id, expected) in
        [("f", &["success", "success"][..]), ("waiting", &["status", "success"]), ("later", &["success"])]
    {
        let events = sandbox.lawful_events_of(id);
        assert_eq!(outcomes(&events), expected, "{id}");
        assert_eq!(count(&events, "job_resumed"), 1, "{id}");
    }
    let scheduled = sandbox.events_of("waiting");
    assert_eq!(all(&scheduled, "retry_scheduled")[0]["due_at"], waiting["next_retry_at"]);
    assert_eq!(handlers.requests("/a").len(), 1);
    assert_eq!(handlers.requests("/later").len(), 1);
    assert!(served.try_ask("GET", "/engine/flow/late", "").unwrap().status == 404);
}

#[test]
fn a_second_sigterm_ends_it_at_once_and_the_call_is_sent_again_when_it_is_back() {
    let (sandbox, handlers, served) = one_step(&[Reply::StallInBody, Reply::x(1)], &retries(1));
    served.start_flow("f", "a", &json!({}));
    handlers.wait_for("/a", 1);
    served.signal("TERM");
    Sandbox::wait_until("the message that it suspends", || {
        let log = served.log();
        log.iter().any(|line| line["message"] == "suspending flows")
    });
    served.signal("TERM");
    served.wait().exits(130);
    let events = sandbox.events_of("f");
    assert_eq!(outcomes(&events), ["interrupted"]);
    let served = RunningServer::on(&sandbox);
    let flow = served.wait_for_end("f", "completed");
    assert_eq!(only_item(&flow, "a").unwrap()["retry_count"], 1);
    let calls = handlers.requests("/a");
    assert_eq!((calls.len(), calls[0].token()), (2, calls[1].token()));
    // An idle server ends at once and notifies its followers.
    let mut follower = served.follower();
    follower.follow("f");
    served.signal("INT");
    served.wait().exits(0);
    assert!(matches!(follower.next(), crate::client::FollowerFrame::Closed(1001)));
}
