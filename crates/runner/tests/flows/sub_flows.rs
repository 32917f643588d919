//! Sub-flows, in one host or in several.

use serde_json::{Value, json};
use undaunted_engine::catalog::CatalogEvent;
use undaunted_engine::input::Input;
use undaunted_engine::job::{JobStage, Plans};
use undaunted_runner::drive::DeliveryOutcome;
use undaunted_runner::{journal, request};

use crate::engine::Engine;
use crate::fixture::{FlowFixture, async_step, now, step, wanted};
use crate::http_server::{ReceivedRequest, Reply, ScriptedServer};
use crate::process::HostProcess;

/// A flow `outer` with a sub-flow that has one asynchronous step.
fn fixture(server: &ScriptedServer) -> FlowFixture {
    let inner = json!({"x": {"role": "required"}, "y": {"role": "output"}});
    let work = json!({"max_retries": 3, "backoff": 1});
    FlowFixture::of(&[
        async_step("inner", &server.url("/inner"), &inner, &work),
        json!({
            "id": "middle", "type": "flow", "flow": {"goals": ["inner"]},
            "work_config": {"max_retries": 3, "backoff": 1, "parallelism": 2},
            "attributes": {
                "w": {"role": "required", "for_each": true, "mapping": {"name": "x"}},
                "ys": {"role": "output", "mapping": {"name": "y"}},
            },
        }),
        step("outer", &server.url("/outer"), &json!({"ys": {"role": "required"}}), &Value::Null),
    ])
}

fn server() -> ScriptedServer {
    let fine = Reply::outputs(&json!({}));
    ScriptedServer::start()
        .on("/inner", std::slice::from_ref(&fine))
        .on("/outer", std::slice::from_ref(&fine))
}

/// The flow and the token of a call.
fn of(sent: &ReceivedRequest) -> [String; 2] {
    let metadata = sent.json()["metadata"].clone();
    ["flow_id", "receipt_token"].map(|key| metadata[key].as_str().unwrap().to_owned())
}

#[test]
fn a_sub_flow_is_a_flow_with_a_parent() {
    let server = server();
    let fixture = fixture(&server);
    let engine = fixture.engine();
    engine.start(&wanted("a", "outer", &json!({"w": [5, 6]})));
    for sent in server.wait_for("/inner", 2) {
        let [flow, token] = of(&sent);
        let metadata = sent.json()["metadata"].clone();
        assert_eq!(metadata["parent_flow_id"], "a");
        assert_eq!(metadata["parent_step_id"], "middle");
        let parent = metadata["parent_work_item_token"].as_str().unwrap();
        assert_eq!(flow, format!("a:middle:{parent}"));
        let x = sent.json()["arguments"]["x"].as_u64().unwrap();
        let result = json!({"y": x * x}).to_string();
        let answer = engine.deliver(&flow, "inner", &token, &result);
        assert_eq!(answer, Some(DeliveryOutcome::Taken));
        engine.completes(&flow);
        assert_eq!(fixture.ended(&flow).stage, JobStage::Completed);
        let CatalogEvent::FlowActivated { parent, .. } = &fixture.catalog_of(&flow)[0].event else {
            panic!("it was not activated first");
        };
        assert_eq!(parent.as_deref(), Some("a"));
    }
    engine.completes("a");
    let sent = server.requests("/outer")[0].json();
    let ys = json!([{"x": 5, "y": 25}, {"x": 6, "y": 36}]);
    assert_eq!(sent["arguments"]["ys"], ys);
}

#[test]
fn after_a_kill_a_flow_and_its_sub_flow_are_resumed_and_not_begun_again() {
    let server = server();
    let fixture = fixture(&server);
    let mut process = fixture.process();
    process.begin(&wanted("a", "outer", &json!({"w": [5]})));
    let [flow, token] = of(&server.wait_for("/inner", 1)[0]);
    fixture.accepted("a");
    fixture.accepted(&flow);
    process.kill();
    let engine = fixture.engine();
    let found = engine.host().recover().unwrap();
    assert_eq!(found.resumed, ["a".to_owned(), flow.clone()]);
    let answer = engine.deliver(&flow, "inner", &token, r#"{"y": 1}"#);
    assert_eq!(answer, Some(DeliveryOutcome::Taken));
    engine.completes(&flow);
    engine.completes("a");
    assert_eq!(server.requests("/inner").len(), 1);
    assert_eq!(fixture.all("a", "attempt_started").len(), 2);
    assert_eq!(fixture.all(&flow, "attempt_started").len(), 1);
}

#[test]
fn the_result_of_a_sub_flow_that_ended_without_its_parent_is_used() {
    let server = server();
    let fixture = fixture(&server);
    let mut process = fixture.process();
    process.begin(&wanted("a", "outer", &json!({"w": [5]})));
    let [flow, token] = of(&server.wait_for("/inner", 1)[0]);
    fixture.accepted("a");
    fixture.accepted(&flow);
    process.kill();
    let first = fixture.engine();
    // Only the sub-flow is resumed, and completes.
    let answer = first.deliver(&flow, "inner", &token, r#"{"y": 1}"#);
    assert_eq!(answer, Some(DeliveryOutcome::Taken));
    first.completes(&flow);
    drop(first);
    let second = fixture.engine();
    assert_eq!(second.host().recover().unwrap().resumed, ["a"]);
    second.completes("a");
    assert_eq!(server.requests("/inner").len(), 1);
    assert_eq!(fixture.all(&flow, "job_submitted").len(), 1);
}

/// A flow whose sub-flow runs in another host, after the host that began both was killed. Returns the host of
/// the outer flow, and the name and the token of the sub-flow.
fn apart(fixture: &FlowFixture, server: &ScriptedServer, inner: &mut HostProcess) -> (Engine, [String; 2]) {
    let mut process = fixture.process();
    process.begin(&wanted("a", "outer", &json!({"w": [5]})));
    let [flow, token] = of(&server.wait_for("/inner", 1)[0]);
    fixture.accepted("a");
    fixture.accepted(&flow);
    process.kill();
    // While the outer flow is claimed, only the sub-flow can be resumed.
    let held = journal::claim(fixture.store(), "a", &Plans::default()).unwrap();
    let found = inner.recover();
    assert_eq!(found, json!({"resumed": [flow], "owned": ["a"]}));
    journal::record_input(fixture.store(), held, &Input::Unpause, now()).unwrap();
    let outer = fixture.engine();
    let found = outer.host().recover().unwrap();
    assert_eq!(found.resumed, ["a"]);
    assert_eq!(found.owned, std::slice::from_ref(&flow));
    FlowFixture::eventually("a resume", || fixture.all("a", "job_resumed").pop());
    (outer, [flow, token])
}

#[test]
fn a_parent_waits_for_a_sub_flow_that_another_host_runs() {
    let server = server();
    let fixture = fixture(&server);
    let mut inner = fixture.process();
    let (outer, [flow, token]) = apart(&fixture, &server, &mut inner);
    // Delivered to the wrong host, which passes it on.
    let answer = outer.deliver(&flow, "inner", &token, r#"{"y": 4}"#);
    assert_eq!(answer, Some(DeliveryOutcome::Taken));
    assert_eq!(fixture.ended(&flow).stage, JobStage::Completed);
    outer.completes("a");
    assert_eq!(server.requests("/inner").len(), 1);
    let sent = server.requests("/outer")[0].json();
    assert_eq!(sent["arguments"]["ys"], 4);
    assert!(!outer.all_left().contains_key(&flow));
    assert_eq!(fixture.all("a", "attempt_started").len(), 2);
}

#[test]
fn the_host_of_the_parent_resumes_a_sub_flow_whose_host_was_killed() {
    let server = server();
    let fixture = fixture(&server);
    let mut inner = fixture.process();
    let (outer, [flow, token]) = apart(&fixture, &server, &mut inner);
    inner.kill();
    FlowFixture::eventually("a second resume", || {
        (fixture.all(&flow, "job_resumed").len() == 2).then_some(())
    });
    let answer = outer.deliver(&flow, "inner", &token, r#"{"y": 4}"#);
    assert_eq!(answer, Some(DeliveryOutcome::Taken));
    outer.completes(&flow);
    outer.completes("a");
    assert_eq!(server.requests("/inner").len(), 1);
}

#[test]
fn cancelling_a_flow_cancels_its_sub_flow_in_another_host() {
    let server = server();
    let fixture = fixture(&server);
    let mut inner = fixture.process();
    let (outer, [flow, _]) = apart(&fixture, &server, &mut inner);
    request::ask(fixture.store(), "a", request::JobRequest::Cancel).unwrap();
    assert_eq!(outer.left("a"), Ok(JobStage::Cancelled));
    assert_eq!(fixture.ended(&flow).stage, JobStage::Cancelled);
}

#[test]
fn a_failed_sub_flow_fails_its_item_permanently_with_the_reason() {
    let server = server();
    server.answers("/inner", &[Reply::refusal("no roots today")]);
    let fixture = fixture(&server);
    let engine = fixture.engine();
    engine.start(&wanted("a", "outer", &json!({"w": [5]})));
    assert_eq!(engine.left("a"), Ok(JobStage::Failed));
    let failed = fixture.events("a").pop().unwrap();
    let error = failed["error"].as_str().unwrap();
    assert!(error.contains("no roots today"), "{error}");
    assert_eq!(server.requests("/inner").len(), 1);
    let [flow, _] = of(&server.requests("/inner")[0]);
    assert_eq!(fixture.ended(&flow).stage, JobStage::Failed);
    assert_eq!(fixture.ended("a").stage, JobStage::Failed);
}
