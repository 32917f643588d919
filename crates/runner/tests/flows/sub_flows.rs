//! Sub-flows, in one host or in several.

use serde_json::{Value, json};
use undaunted_engine::catalog::CatalogEvent;
use undaunted_engine::input::Input;
use undaunted_engine::job::{JobStage, Plans};
use undaunted_runner::drive::DeliveryOutcome;
use undaunted_runner::journal;
use undaunted_runner::request::{self, ArrivedResult};

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

/// So many that a process that cancels them one after another is killed in between.
const MANY: u64 = 40;

/// A flow `outer` with a sub-flow for each of many items.
fn many(server: &ScriptedServer, rule: &Value) -> FlowFixture {
    let inner = json!({"x": {"role": "required"}, "y": {"role": "output"}});
    let mut middle = json!({
        "id": "middle", "type": "flow", "flow": {"goals": ["inner"]}, "work_config": {"parallelism": MANY},
        "attributes": {
            "w": {"role": "required", "for_each": true, "mapping": {"name": "x"}},
            "ys": {"role": "output", "mapping": {"name": "y"}},
        },
    });
    middle.as_object_mut().unwrap().extend(rule.as_object().unwrap().clone());
    FlowFixture::of(&[
        async_step("inner", &server.url("/inner"), &inner, &Value::Null),
        middle,
        step("outer", &server.url("/outer"), &json!({"ys": {"role": "required"}}), &Value::Null),
    ])
}

/// Begins the flow with many sub-flows, and returns name and token of each sub-flow once all wait for a result.
fn begun(fixture: &FlowFixture, server: &ScriptedServer, process: &mut HostProcess) -> Vec<[String; 2]> {
    let items: Vec<u64> = (0..MANY).collect();
    process.begin(&wanted("a", "outer", &json!({"w": items})));
    let calls = server.wait_for("/inner", usize::try_from(MANY).unwrap());
    let inner: Vec<[String; 2]> = calls.iter().map(of).collect();
    for [flow, _] in &inner {
        fixture.accepted(flow);
    }
    fixture.accepted("a");
    inner
}

fn cancel(fixture: &FlowFixture) {
    request::ask(fixture.store(), "a", request::JobRequest::Cancel).unwrap();
}

/// Begins the flow, does something that changes it, and kills its process at the first record of a kind.
fn killed_at(
    event: &str,
    fixture: &FlowFixture,
    server: &ScriptedServer,
    change: impl Fn(&[String; 2]),
) -> Vec<[String; 2]> {
    let mut process = fixture.process();
    let inner = begun(fixture, server, &mut process);
    change(&inner[0]);
    FlowFixture::eventually(event, || fixture.all("a", event).pop());
    process.kill();
    inner
}

/// Recovers the flows in another process. None of these runs on, and none is called again.
fn are_cancelled(fixture: &FlowFixture, server: &ScriptedServer, inner: &[[String; 2]]) {
    let calls = server.requests("/inner").len();
    let engine = fixture.engine();
    engine.host().recover().unwrap();
    for [flow, _] in inner {
        assert_eq!(fixture.ended(flow).stage, JobStage::Cancelled, "{flow}");
    }
    assert_eq!(server.requests("/inner").len(), calls);
}

#[test]
fn the_cancellation_of_every_sub_flow_is_on_disk_before_that_of_its_parent() {
    // The version of the last record of the parent.
    let last = {
        let server = server();
        let fixture = many(&server, &json!({}));
        let mut process = fixture.process();
        begun(&fixture, &server, &mut process);
        cancel(&fixture);
        assert_eq!(fixture.ended("a").stage, JobStage::Cancelled);
        fixture.records("a").len()
    };
    let server = server();
    let fixture = many(&server, &json!({}));
    let failpoint = format!("append-after:{last}");
    let mut process = HostProcess::start_with(fixture.folder(), Some(failpoint));
    let inner = begun(&fixture, &server, &mut process);
    cancel(&fixture);
    process.died();
    assert_eq!(fixture.job("a").stage, JobStage::Cancelled);
    for [flow, _] in &inner {
        assert_eq!(fixture.all(flow, "job_stopping").len(), 1, "{flow}");
    }
    are_cancelled(&fixture, &server, &inner);
}

#[test]
fn no_sub_flow_outlives_a_parent_whose_process_is_killed_while_it_is_cancelled() {
    for event in ["job_stopping", "job_cancelled"] {
        let server = server();
        let fixture = many(&server, &json!({}));
        let inner = killed_at(event, &fixture, &server, |_| cancel(&fixture));
        are_cancelled(&fixture, &server, &inner);
        assert_eq!(fixture.ended("a").stage, JobStage::Cancelled);
    }
}

#[test]
fn no_sub_flow_outlives_a_step_that_is_completed_without_it_when_its_process_is_killed() {
    for event in ["completion_reached", "step_completed"] {
        let server = server();
        let fixture = many(&server, &json!({"best_effort": true, "best_effort_min_dcs": 1}));
        let inner = killed_at(event, &fixture, &server, |[flow, token]| {
            let (step, token) = ("inner".to_owned(), token.clone());
            let arrived = ArrivedResult { step, token, result: Ok(r#"{"y": 1}"#.to_owned()) };
            request::store_result(fixture.store(), flow, &arrived).unwrap();
        });
        are_cancelled(&fixture, &server, &inner[1..]);
        assert_eq!(fixture.ended(&inner[0][0]).stage, JobStage::Completed);
    }
}
