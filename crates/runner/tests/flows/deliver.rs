//! Delivering results: in time, early, late, twice, with unknown tokens, and for flows without an owner.

use serde_json::{Value, json};
use undaunted_engine::event::{Event, JobEvent};
use undaunted_engine::job::JobStage;
use undaunted_runner::drive::DeliveryOutcome::{Taken, Unknown};
use undaunted_runner::request::ArrivedResult;

use crate::fixture::{FlowFixture, async_step, step, wanted};
use crate::http_server::{Reply, ScriptedServer};

const RESULT: &str = r#"{"y": 7}"#;

/// An asynchronous step, and a step that uses its output.
fn fixture(server: &ScriptedServer, work: &Value) -> FlowFixture {
    let y = json!({"y": {"role": "output"}});
    FlowFixture::of(&[
        async_step("later", &server.url("/later"), &y, work),
        step("use", &server.url("/use"), &json!({"y": {"role": "required"}}), &Value::Null),
    ])
}

fn server() -> ScriptedServer {
    ScriptedServer::start()
        .on("/later", &[Reply::outputs(&json!({}))])
        .on("/use", &[Reply::outputs(&json!({}))])
}

/// The receipt token of the last request.
fn token(server: &ScriptedServer) -> String {
    server.wait_for("/later", 1).pop().unwrap().token().to_owned()
}

#[test]
fn a_delivered_result_is_on_disk_and_the_flow_continues() {
    let server = server();
    let fixture = fixture(&server, &Value::Null);
    let engine = fixture.engine();
    engine.start(&wanted("a", "use", &json!({})));
    let token = token(&server);
    assert_eq!(engine.deliver("a", "later", &token, RESULT), Some(Taken));
    assert_eq!(fixture.job("a").attributes["y"].value, json!(7));
    engine.completes("a");
    assert_eq!(server.requests("/use")[0].json()["arguments"], json!({"y": 7}));
}

#[test]
fn a_call_carries_the_url_for_its_result() {
    let server = server();
    let fixture = fixture(&server, &Value::Null);
    let engine = fixture.engine();
    engine.start(&wanted("a", "use", &json!({})));
    let token = token(&server);
    let sent = server.requests("/later")[0].json();
    let address = format!("http://here/webhook/a/later/{token}");
    assert_eq!(sent["metadata"]["webhook_url"], address);
}

/// A flow `a` whose step was called once and waits a long time for its retry.
fn waiting(server: &ScriptedServer) -> FlowFixture {
    server.answers("/later", &[Reply::status(503)]);
    fixture(server, &json!({"max_retries": 3, "backoff": 50_000}))
}

#[test]
fn a_result_for_an_item_that_waits_for_a_retry_counts_and_no_attempt_follows() {
    let server = server();
    let fixture = waiting(&server);
    let engine = fixture.engine();
    // One of them is delivered through another host.
    let elsewhere = fixture.engine();
    for (flow, host) in [("a", &engine), ("b", &elsewhere)] {
        server.answers("/later", &[Reply::status(503)]);
        engine.start(&wanted(flow, "use", &json!({})));
        FlowFixture::eventually("a wait", || fixture.all(flow, "retry_scheduled").pop());
        let token = server.requests("/later").pop().unwrap().token().to_owned();
        assert_eq!(host.deliver(flow, "later", &token, RESULT), Some(Taken));
        engine.completes(flow);
        assert_eq!(host.deliver(flow, "later", &token, r#"{"y": 8}"#), Some(Taken), "again");
        assert_eq!(fixture.job(flow).attributes["y"].value, json!(7));
        assert_eq!(fixture.all(flow, "attempt_started").len(), 2, "one of each step");
    }
}

#[test]
fn a_failure_for_an_item_that_waits_for_a_retry_is_permanent() {
    let server = server();
    let fixture = waiting(&server);
    let engine = fixture.engine();
    engine.start(&wanted("a", "use", &json!({})));
    FlowFixture::eventually("a wait", || fixture.all("a", "retry_scheduled").pop());
    let refused =
        ArrivedResult { step: "later".to_owned(), token: token(&server), result: Err("no stock".to_owned()) };
    assert_eq!(engine.host().deliver("a", &refused), Some(Taken));
    assert_eq!(engine.left("a"), Ok(JobStage::Failed));
    assert_eq!(fixture.all("a", "result_arrived")[0]["error"], "no stock");
    assert_eq!(server.all().len(), 1);
}

#[test]
fn a_result_for_a_waiting_item_survives_a_kill_before_and_after_it_is_taken() {
    let server = server();
    let fixture = waiting(&server);
    let mut process = fixture.process();
    process.begin(&wanted("a", "use", &json!({})));
    FlowFixture::eventually("a wait", || fixture.all("a", "retry_scheduled").pop());
    let token = token(&server);
    process.kill();
    // The second host takes the result, and is killed while the next step is called.
    server.answers("/use", &[Reply::outputs(&json!({})).gated()]);
    let mut process = fixture.process();
    assert_eq!(process.deliver("a", "later", &token, RESULT), json!({"delivered": "Taken"}));
    process.kill();
    server.open("/use");
    let engine = fixture.engine();
    assert_eq!(engine.host().recover().unwrap().resumed, ["a"]);
    engine.completes("a");
    assert_eq!(server.requests("/later").len(), 1);
    assert_eq!(fixture.job("a").attributes["y"].value, json!(7));
    assert_eq!(fixture.all("a", "result_arrived").len(), 1);
}

#[test]
fn a_late_or_repeated_result_is_acknowledged_and_changes_nothing() {
    let server = server();
    let fixture = fixture(&server, &Value::Null);
    server.answers("/use", &[Reply::outputs(&json!({})).gated()]);
    let engine = fixture.engine();
    engine.start(&wanted("a", "use", &json!({})));
    let token = token(&server);
    assert_eq!(engine.deliver("a", "later", &token, RESULT), Some(Taken));
    server.wait_for("/use", 1);
    let before = fixture.records("a").len();
    for again in [RESULT, r#"{"y": 8}"#] {
        assert_eq!(engine.deliver("a", "later", &token, again), Some(Taken));
        let refused =
            ArrivedResult { step: "later".to_owned(), token: token.clone(), result: Err("no".to_owned()) };
        assert_eq!(engine.host().deliver("a", &refused), Some(Taken));
    }
    assert_eq!(fixture.records("a").len(), before);
    server.open("/use");
    engine.completes("a");
    assert_eq!(fixture.job("a").attributes["y"].value, json!(7));
    assert_eq!(fixture.all("a", "attempt_succeeded").len(), 2);
}

#[test]
fn a_delivered_failure_is_permanent() {
    let server = server();
    let fixture = fixture(&server, &json!({"max_retries": 5, "backoff": 1}));
    let engine = fixture.engine();
    engine.start(&wanted("a", "use", &json!({})));
    let refused =
        ArrivedResult { step: "later".to_owned(), token: token(&server), result: Err("no stock".to_owned()) };
    assert_eq!(engine.host().deliver("a", &refused), Some(Taken));
    assert_eq!(engine.left("a"), Ok(JobStage::Failed));
    let failed = &fixture.all("a", "attempt_failed")[0];
    assert_eq!(failed["class"], "permanent");
    assert_eq!(failed["error"], "no stock");
    assert_eq!(server.all().len(), 1);
}

#[test]
fn a_result_with_an_unknown_token_is_unknown_and_changes_nothing() {
    let server = server();
    let fixture = fixture(&server, &Value::Null);
    let engine = fixture.engine();
    engine.start(&wanted("a", "use", &json!({})));
    let token = token(&server);
    fixture.accepted("a");
    let before = fixture.records("a").len();
    let elsewhere = fixture.engine();
    for engine in [&engine, &elsewhere] {
        for (flow, step, token) in [
            ("a", "later", "00000000-0000-0000-0000-000000000000"),
            ("a", "later", ""),
            ("a", "use", token.as_str()),
            ("a", "unknown", token.as_str()),
            ("b", "later", token.as_str()),
            ("", "later", token.as_str()),
        ] {
            let answer = engine.deliver(flow, step, token, RESULT);
            assert_eq!(answer, Some(Unknown), "{flow}/{step}/{token}");
        }
    }
    assert_eq!(fixture.records("a").len(), before);
    assert_eq!(engine.deliver("a", "later", &token, RESULT), Some(Taken));
    engine.completes("a");
}

#[test]
fn after_a_flow_has_ended_only_real_tokens_are_acknowledged() {
    let server = server();
    let fixture = fixture(&server, &Value::Null);
    let engine = fixture.engine();
    engine.start(&wanted("a", "use", &json!({})));
    let token = token(&server);
    assert_eq!(engine.deliver("a", "later", &token, RESULT), Some(Taken));
    engine.completes("a");
    let before = fixture.records("a");
    let elsewhere = fixture.engine();
    for engine in [&engine, &elsewhere] {
        assert_eq!(engine.deliver("a", "later", &token, r#"{"y": 9}"#), Some(Taken));
        assert_eq!(engine.deliver("a", "later", "nonsense", RESULT), Some(Unknown));
        assert_eq!(engine.deliver("a", "use", &token, RESULT), Some(Unknown));
    }
    assert_eq!(fixture.records("a"), before);
    fixture.ended("a");
    assert_eq!(fixture.words_of("a"), ["flow_activated", "flow_deactivated"]);
}

#[test]
fn a_result_resumes_a_flow_without_an_owner() {
    let server = server();
    let fixture = fixture(&server, &Value::Null);
    let mut process = fixture.process();
    process.begin(&wanted("a", "use", &json!({})));
    let token = token(&server);
    fixture.accepted("a");
    process.kill();
    // No host has recovered the flow before.
    let engine = fixture.engine();
    assert_eq!(engine.deliver("a", "later", &token, RESULT), Some(Taken));
    engine.completes("a");
    assert_eq!(server.requests("/later").len(), 1);
}

#[test]
fn an_unknown_result_does_not_resume_a_suspended_flow() {
    let server = server();
    let fixture = fixture(&server, &Value::Null);
    let asked = wanted("template", "use", &json!({}));
    fixture.deposit("a", &asked, &[Event::Job(JobEvent::Suspended)]);
    let engine = fixture.engine();
    assert_eq!(engine.deliver("a", "later", "nonsense", RESULT), Some(Unknown));
    engine.suspend();
    assert_eq!(fixture.records("a").len(), 2);
    assert!(server.all().is_empty());
}

#[test]
fn a_result_does_not_resume_a_job_that_is_not_a_flow() {
    let fixture = FlowFixture::new();
    fixture.deposit_shell("shell", &[Event::Job(JobEvent::Suspended)]);
    let engine = fixture.engine();
    assert_eq!(engine.deliver("shell", "shell-1", "nonsense", RESULT), Some(Unknown));
    engine.suspend();
    assert_eq!(fixture.records("shell").len(), 2);
}
