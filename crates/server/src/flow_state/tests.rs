//! Flows as their clients see them, read from real journals.

use serde_json::json;
use undaunted_engine::input::Input;
use undaunted_policy::FailureCause;

use super::*;
use crate::fixture::{TestFlow, text};
use undaunted_engine::id::StepId;
use undaunted_engine::view::rfc3339;

const RETRIED: &str = ", work_config: {max_retries: 2, backoff: 1000, backoff_type: fixed, parallelism: 5}";

fn chain() -> TestFlow {
    TestFlow::of(
        "wf-1",
        &text(
            "last",
            "x: 1",
            &[
                ("first", "x: {role: required, type: number}, a: {role: output}", RETRIED),
                ("last", "a: {role: required}, b: {role: output}", RETRIED),
                ("aside", "x: {role: required}, c: {role: output}", RETRIED),
            ],
        ),
    )
}

/// The only item of a step, and its token.
fn item(state: &Value, step: &str) -> (String, Value) {
    let items = state["executions"][step]["work_items"].as_object().unwrap();
    assert_eq!(items.len(), 1);
    let (token, item) = items.iter().next().unwrap();
    (token.clone(), item.clone())
}

#[test]
fn a_flow_is_active_then_completed_with_its_attributes_and_the_steps_that_were_planned() {
    let mut test_flow = chain();
    test_flow.start();
    let state = test_flow.state();
    assert_eq!(state["id"], "wf-1");
    assert_eq!(state["status"], "active");
    assert_eq!(state["created_at"], "2023-11-14T22:13:20.000Z");
    assert_eq!(state["completed_at"], Value::Null);
    let executions = state["executions"].as_object().unwrap();
    assert_eq!(executions.keys().collect::<Vec<_>>(), ["first", "last"]);
    assert_eq!(executions["first"]["status"], "active");
    assert_eq!(executions["first"]["inputs"], json!({"x": 1}));
    assert_eq!(executions["last"]["status"], "pending");
    assert_eq!(item(&state, "first").1["status"], "active");
    assert_eq!(item(&state, "first").1["inputs"], json!({"x": 1}));

    test_flow.at(1234).done(0, 0, &json!({"a": [2], "undeclared": 1}));
    test_flow.start();
    test_flow.at(2000).done(1, 0, &json!({"b": "c"}));
    let state = test_flow.state();
    assert_eq!(state["status"], "completed");
    assert_eq!(state["completed_at"], "2023-11-14T22:13:22.000Z");
    assert_eq!(state["last_updated"], "2023-11-14T22:13:22.000Z");
    assert_eq!(state["attributes"]["x"]["value"], 1);
    assert_eq!(state["attributes"]["x"]["step"], Value::Null);
    assert_eq!(state["attributes"]["a"]["value"], json!([2]));
    assert_eq!(state["attributes"]["a"]["step"], "first");
    let first = &state["executions"]["first"];
    assert_eq!(first["status"], "completed");
    assert_eq!(first["outputs"], json!({"a": [2]}));
    assert_eq!(first["duration"], 1234);
    let (_, work) = item(&state, "first");
    assert_eq!(work["status"], "succeeded");
    assert_eq!(work["outputs"], json!({"a": [2], "undeclared": 1}));
    assert!(state.get("error").is_none());
}

#[test]
fn the_plan_shows_the_steps_to_the_goals_and_which_step_provides_each_attribute() {
    let plan = chain().state()["plan"].clone();
    assert_eq!(plan["goals"], json!(["last"]));
    assert_eq!(plan["required"], json!([]));
    let steps = plan["steps"].as_object().unwrap();
    assert_eq!(steps.keys().collect::<Vec<_>>(), ["first", "last"]);
    assert_eq!(steps["first"]["type"], "sync");
    assert_eq!(steps["first"]["http"]["endpoint"], "http://s/first");
    let a = &plan["attributes"]["a"];
    assert_eq!(a, &json!({"providers": ["first"], "consumers": ["last"]}));
    let x = &plan["attributes"]["x"];
    assert_eq!(x, &json!({"providers": [], "consumers": ["first"]}));
}

#[test]
fn a_definition_written_as_json_is_shown_unchanged() {
    let step = json!({
        "id": "a", "name": "A", "type": "sync", "http": {"endpoint": "http://s/a"},
        "attributes": {"y": {"role": "output", "type": "any"}}, "labels": {"team": "x"},
    });
    let text = json!({"mode": "flow", "goals": ["a"], "init": {}, "steps": [step]});
    let test_flow = TestFlow::of("wf-2", &text.to_string());
    assert_eq!(test_flow.state()["plan"]["steps"]["a"], step);
}

#[test]
fn a_scheduled_retry_puts_the_item_back_with_its_count_and_the_time_that_was_stored() {
    let mut test_flow = chain();
    test_flow.start();
    let (token, _) = item(&test_flow.state(), "first");
    test_flow.at(500).fail(0, 0, FailureCause::Status(503));
    let due = test_flow.job.steps[0].waiting.iter().next().unwrap().0;
    let (same, work) = item(&test_flow.state(), "first");
    assert_eq!(same, token);
    assert_eq!(work["status"], "pending");
    assert_eq!(work["retry_count"], 1);
    assert_eq!(work["next_retry_at"], rfc3339(due));
    assert_eq!(work["error"], "HTTP 503: rejected");
    test_flow.at(1500).start();
    let (same, work) = item(&test_flow.state(), "first");
    assert_eq!((same, &work["status"]), (token, &json!("active")));
    assert_eq!(work["next_retry_at"], Value::Null);
    test_flow.done(0, 0, &json!({"a": 1}));
    let (_, work) = item(&test_flow.state(), "first");
    assert_eq!(work["status"], "succeeded");
    assert_eq!(work["retry_count"], 1);
    assert!(work.get("error").is_none());
}

#[test]
fn a_failed_flow_says_which_step_and_a_redrive_shows_the_token_of_its_round() {
    let mut test_flow = chain();
    test_flow.start();
    let (token, _) = item(&test_flow.state(), "first");
    test_flow.at(500).fail(0, 0, FailureCause::Status(400));
    let state = test_flow.state();
    assert_eq!(state["status"], "failed");
    let error = state["error"].as_str().unwrap();
    assert!(error.starts_with("step first failed: "), "{error}");
    assert_eq!(state["executions"]["first"]["status"], "failed");
    let (same, work) = item(&state, "first");
    assert_eq!((same, &work["status"]), (token.clone(), &json!("failed")));

    test_flow.at(9000).feed(&Input::Redrive { items: vec![StepId(0).item(0)], reduce: false, every: None });
    let state = test_flow.state();
    assert_eq!(state["status"], "active");
    assert!(state.get("error").is_none());
    assert_eq!(state["completed_at"], Value::Null);
    assert_eq!(state["executions"]["first"]["status"], "active");
    assert!(state["executions"]["first"].get("error").is_none());
    let (other, work) = item(&state, "first");
    assert_ne!(other, token);
    assert_eq!(work["retry_count"], 0);
    test_flow.start();
    assert_eq!(item(&test_flow.state(), "first").0, other);
    test_flow.done(0, 0, &json!({"a": 1}));
    assert_eq!(item(&test_flow.state(), "first").0, other);
}

#[test]
fn items_for_each_have_a_token_each_and_those_that_were_dropped_are_not_completed() {
    let steps =
        [("each", "xs: {role: required, for_each: true, mapping: {name: x}}, y: {role: output}", RETRIED)];
    let mut test_flow = TestFlow::of("wf-3", &text("each", "xs: [1, 2, 3]", &steps));
    test_flow.start();
    let work = |test_flow: &TestFlow| {
        let state = test_flow.state();
        let items = state["executions"]["each"]["work_items"].clone();
        let mut found: Vec<(Value, Value)> = items
            .as_object()
            .unwrap()
            .values()
            .map(|item| (item["inputs"]["x"].clone(), item["status"].clone()))
            .collect();
        found.sort_by_key(|(x, _)| x.as_u64());
        found
    };
    assert_eq!(work(&test_flow).len(), 3);
    test_flow.fail(0, 0, FailureCause::Status(503));
    test_flow.done(0, 1, &json!({"y": 4}));
    test_flow.fail(0, 2, FailureCause::Status(400));
    let found: Vec<Value> = work(&test_flow).into_iter().map(|(_, it)| it).collect();
    assert_eq!(found, ["not_completed", "succeeded", "failed"]);
    let error = test_flow.state()["error"].clone();
    assert!(error.as_str().unwrap().contains("rejected"), "{error}");
    assert_eq!(test_flow.state()["executions"]["each"]["inputs"]["x"], json!([1, 2, 3]));
}

#[test]
fn skipped_unreachable_and_cancelled_work_is_marked_as_such() {
    let no = ", predicate: {language: cel, script: 'x > 5'}";
    let steps = [
        ("a", "x: {role: required}, y: {role: output}", no),
        ("b", "y: {role: required}, z: {role: output}", ""),
    ];
    let test_flow = TestFlow::of("wf-4", &text("b", "x: 1", &steps));
    let state = test_flow.state();
    assert_eq!(state["executions"]["a"]["status"], "skipped");
    assert_eq!(state["executions"]["b"]["status"], "failed");
    let error = state["error"].as_str().unwrap();
    assert!(error.starts_with("step b failed: ") && error.contains("`y`"), "{error}");

    let mut test_flow = chain();
    test_flow.start();
    test_flow.feed(&Input::Cancel);
    test_flow.fail(0, 0, FailureCause::Interrupted);
    let state = test_flow.state();
    assert_eq!(state["status"], "failed");
    assert_eq!(state["error"], "Cancelled");
}

#[test]
fn a_job_that_is_not_a_flow_is_not_found() {
    let test_flow = TestFlow::of("plain", "- shell: 'true'\n");
    let error = FollowedFlow::read(&*test_flow.store, "plain", &Plans::default()).unwrap_err();
    assert!(matches!(error, JournalError::NotFound { .. }));
    let error = FollowedFlow::read(&*test_flow.store, "unknown", &Plans::default()).unwrap_err();
    assert!(matches!(error, JournalError::NotFound { .. }));
}
