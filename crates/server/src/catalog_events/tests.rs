//! The events of flows and of the catalog, in order.

use undaunted_engine::catalog::FlowStatus;
use undaunted_engine::input::Input;
use undaunted_policy::FailureCause;

use super::*;
use crate::fixture::{T0, TestFlow, text};

const RETRIED: &str = ", work_config: {max_retries: 1, backoff: 1000, backoff_type: fixed}";

fn flow() -> TestFlow {
    let steps = [
        ("a", "x: {role: required}, y: {role: output}", RETRIED),
        ("b", "y: {role: required}, z: {role: output}", RETRIED),
    ];
    let mut test_flow = TestFlow::of("wf-1", &text("b", "x: 1", &steps));
    test_flow.start();
    test_flow
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

#[test]
fn the_events_of_a_flow_come_in_the_order_clients_expect() {
    let mut test_flow = flow();
    test_flow.at(500).fail(0, 0, FailureCause::Status(503));
    test_flow.at(1500).start();
    test_flow.at(2000).done(0, 0, &json!({"y": 2}));
    test_flow.start();
    test_flow.at(3000).done(1, 0, &json!({"z": 3}));
    let events = test_flow.events();
    assert_eq!(
        kinds(&events),
        [
            "flow_started",
            "step_started",
            "work_started",
            "work_not_completed",
            "retry_scheduled",
            "work_started",
            "work_succeeded",
            "attribute_set",
            "step_completed",
            "step_started",
            "work_started",
            "work_succeeded",
            "attribute_set",
            "step_completed",
            "flow_completed",
        ]
    );
    let sequences: Vec<u64> = events.iter().map(|it| it["sequence"].as_u64().unwrap()).collect();
    assert!(sequences.is_sorted_by(|a, b| a < b), "{sequences:?}");
    for event in &events {
        assert_eq!(event["id"], json!(["flow", "wf-1"]));
        assert_eq!(event["data"]["flow_id"], "wf-1");
    }
    assert_eq!(events[0]["data"]["init"], json!({"x": 1}));
    assert_eq!(events[0]["timestamp"], T0.as_millis());
    let items = events[1]["data"]["work_items"].as_object().unwrap();
    let (token, inputs) = items.iter().next().unwrap();
    assert_eq!(inputs, &json!({"x": 1}));
    for event in &events[2..7] {
        assert_eq!(event["data"]["token"], token.as_str());
        assert_eq!(event["data"]["step_id"], "a");
    }
    let retry = &events[4]["data"];
    assert_eq!(retry["retry_count"], 1);
    assert_eq!(retry["next_retry_at"], "2023-11-14T22:13:21.500Z");
    assert_eq!(retry["error"], "HTTP 503: rejected");
    assert_eq!(events[6]["data"]["outputs"], json!({"y": 2}));
    assert_eq!(events[7]["data"]["key"], "y");
    assert_eq!(events[7]["data"]["value"], 2);
    assert_eq!(events[8]["data"]["duration"], 2000);
    assert_eq!(events[8]["data"]["outputs"], json!({"y": 2}));
    assert_eq!(events[14]["data"]["result"], json!({"z": 3}));
}

#[test]
fn a_permanent_failure_fails_the_work_the_step_and_the_flow() {
    let mut test_flow = flow();
    test_flow.fail(0, 0, FailureCause::Status(404));
    let events = test_flow.events();
    assert_eq!(kinds(&events)[3..], ["work_failed", "step_failed", "step_failed", "flow_failed"]);
    let error = events[3]["data"]["error"].as_str().unwrap();
    assert!(error.contains("rejected"), "{error}");
    assert_eq!(events[4]["data"]["error"], error);
    assert_eq!(events[5]["data"]["step_id"], "b");
    let why = events[6]["data"]["error"].as_str().unwrap();
    assert!(why.starts_with("step a failed: "), "{why}");
}

#[test]
fn the_last_transient_failure_is_not_completed_and_then_failed() {
    let mut test_flow = flow();
    test_flow.fail(0, 0, FailureCause::Timeout);
    test_flow.at(1000).start();
    test_flow.fail(0, 0, FailureCause::Timeout);
    let events = test_flow.events();
    let last = ["work_started", "work_not_completed", "work_failed", "step_failed"];
    assert_eq!(kinds(&events)[5..9], last);
}

#[test]
fn a_cancelled_flow_has_failed() {
    let mut test_flow = flow();
    test_flow.feed(&Input::Cancel);
    test_flow.fail(0, 0, FailureCause::Interrupted);
    let events = test_flow.events();
    let last = events.last().unwrap();
    assert_eq!(last["type"], "flow_failed");
    assert_eq!(last["data"]["error"], "Cancelled");
}

#[test]
fn records_of_the_catalog_are_events_of_the_engine() {
    let event_of = |event| {
        let record = CatalogRecord { at: T0, event };
        let event = catalog_event(Version(9), &record);
        assert_eq!(event["id"], json!(["engine"]));
        assert_eq!(event["sequence"], 9);
        (event["type"].clone(), event["data"].clone())
    };
    let id = || "a".to_owned();
    let definition = json!({"id": "a"});
    let registered = CatalogEvent::StepRegistered { id: id(), definition: definition.to_string() };
    assert_eq!(event_of(registered), (json!("step_registered"), json!({ "step": definition })));
    let health = CatalogEvent::StepHealthChanged { id: id(), healthy: false, error: Some("gone".to_owned()) };
    assert_eq!(event_of(health).1, json!({"step_id": "a", "status": "unhealthy", "error": "gone"}));
    let activated = CatalogEvent::FlowActivated {
        flow: "f".to_owned(),
        since: T0,
        labels: vec![("k".to_owned(), "v".to_owned())],
        parent: None,
    };
    assert_eq!(event_of(activated).1, json!({"flow_id": "f", "labels": {"k": "v"}}));
    let deactivated = CatalogEvent::FlowDeactivated {
        flow: "f".to_owned(),
        status: FlowStatus::Failed,
        error: Some("no".to_owned()),
        ended: T0,
    };
    let (kind, data) = event_of(deactivated);
    assert_eq!(kind, "flow_deactivated");
    assert_eq!(data["status"], "failed");
}
