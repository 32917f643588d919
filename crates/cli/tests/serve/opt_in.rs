//! Steps have a breaker if their definition says so, or if the server gives one to every origin.

use serde_json::json;

use crate::history::{count, has_event};
use crate::http_server::{Reply, ScriptedServer};
use crate::sandbox::Sandbox;
use crate::served::{RunningServer, provider};

const PER_ORIGIN: [&str; 3] = ["--listen", "127.0.0.1:0", "--breaker-per-origin"];

#[test]
fn a_step_without_a_breaker_is_called_exactly_as_its_work_config_says() {
    let handlers = ScriptedServer::start().on("/a", &[Reply::status(503)]);
    let sandbox = Sandbox::new();
    let served = RunningServer::on(&sandbox);
    let work = json!({"max_retries": 7, "backoff": 1, "backoff_type": "fixed"});
    served.register(&provider(&handlers, "a", &work));
    served.run_flow("f", "a", &json!({}), "failed");
    let events = sandbox.lawful_events_of("f");
    assert!(!has_event(&events, "held"), "{events:#?}");
    assert_eq!(handlers.requests("/a").len(), 8);
    assert_eq!(sandbox.stdout(&["breaker", "ls", "--json"]), "");
    served.stop();
}

#[test]
fn a_server_may_give_every_origin_a_breaker_and_flows_keep_what_they_began_with() {
    let handlers = ScriptedServer::start().on("/a", &[Reply::status(503)]).on("/b", &[Reply::status(503)]);
    let origin = handlers.origin();
    let sandbox = Sandbox::new();
    let served = RunningServer::with(&sandbox, &PER_ORIGIN, &[]);
    let work = json!({"max_retries": 7, "backoff": 1, "backoff_type": "fixed"});
    served.register(&provider(&handlers, "a", &work));
    let mut without = provider(&handlers, "b", &work);
    without["breaker"] = json!(false);
    served.register(&without);
    served.start_flow("with", "a", &json!({}));
    sandbox.wait_for_open_breaker(&origin);
    served.wait_for_item("with", "a", |item| item["status"] != "active");
    served.run_flow("without", "b", &json!({}), "failed");
    assert_eq!(handlers.requests("/b").len(), 8, "it has none, and is not held");
    served.kill();
    // A server without the flag keeps the breaker of the existing flow and gives its own flows none.
    let served = RunningServer::on(&sandbox);
    served.run_flow("since", "a", &json!({}), "failed");
    assert_eq!(handlers.requests("/a").len(), 5 + 8);
    assert_eq!(served.flow("with")["status"], "active", "it is on hold");
    handlers.answers("/a", &[Reply::x(1)]);
    sandbox.reset_breaker(&origin);
    served.wait_for_end("with", "completed");
    let events = sandbox.lawful_events_of("with");
    assert_eq!(count(&events, "held"), 1);
    served.stop();
}
