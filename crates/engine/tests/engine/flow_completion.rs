//! Completion rules of flow steps, and results that come after them.

use serde_json::{Value, json};
use undaunted_engine::id::{ItemId, StepId};
use undaunted_engine::input::Input;
use undaunted_engine::task::{TokenStatus, as_uuid, find_token, receipt_token};
use undaunted_engine::workflow::Operator;
use undaunted_policy::{FailureCause, Reason};

use crate::fixture::{EXIT_1, TestedJob, item_at};

const RULE: &str = "best_effort: true, best_effort_min_dcs: 2, best_effort_deadline_seconds: 60";

/// An async step over three elements, and a step that uses its results.
fn flow(rule: &str, late_results_count: bool) -> TestedJob {
    let text = format!(
        "
mode: flow
goals: [b]
init: {{n: [1, 2, 3]}}
steps:
  - id: a
    type: async
    http: {{endpoint: 'http://s/a'}}
    attributes: {{n: {{role: required, for_each: true}}, x: {{role: output}}}}
    work_config: {{max_retries: 0, parallelism: 3}}
{rule}
  - id: b
    type: sync
    http: {{endpoint: 'http://s/b'}}
    attributes: {{x: {{role: required}}, y: {{role: output}}}}
"
    );
    let operator = Operator { late_results_count, ..Operator::default() };
    let mut test = TestedJob::with(&text, 7, &operator);
    test.start();
    test
}

fn rule(keys: &str) -> String {
    format!("    {}", keys.replace(", ", "\n    "))
}

fn x(of: u64) -> Value {
    json!({"x": of})
}

/// The only item of the step after `a`.
const NEXT: ItemId = StepId(1).item(0);

fn late(test: &mut TestedJob, index: u32, result: Result<Value, &str>) -> Vec<String> {
    let result = result.map(|output| output.to_string()).map_err(str::to_owned);
    test.feed(&Input::Late { item: item_at(index), result }).lines()
}

/// Accepts three attempts, lets the first succeed and the deadline pass, and ends the others.
fn below_its_minimum(late_results_count: bool) -> TestedJob {
    let mut test = flow(&rule(RULE), late_results_count);
    for item in 0..3 {
        test.accept(item);
    }
    test.succeed_item(item_at(0), &x(10)).at(60).wake();
    for item in 1..3 {
        test.fail(item, EXIT_1);
    }
    test.start();
    test
}

#[test]
fn below_the_minimum_at_the_deadline_the_attribute_holds_what_succeeded_and_the_flow_is_partial() {
    let mut test = below_its_minimum(false);
    assert_eq!(test.attribute("x"), json!([{"n": 1, "x": 10}]));
    test.succeed_item(NEXT, &json!({"y": 1}));
    assert_eq!(test.outcome(), ("partial", Some(Reason::Deadline), [2, 0, 0]));
    let error = test.report().error.unwrap();
    assert_eq!(error, "deadline_expired (completed: 1): 2 of 3 had to succeed");
    test.check_replay();
}

#[test]
fn without_any_success_at_the_deadline_the_attribute_is_an_empty_list() {
    let mut test = flow(&rule(RULE), false);
    test.at(60).wake();
    for item in 0..3 {
        test.fail(item, EXIT_1);
    }
    test.start();
    assert_eq!(test.attribute("x"), json!([]));
    assert_eq!(test.succeed_item(NEXT, &json!({})).outcome().0, "partial");
}

#[test]
fn when_all_have_reported_below_the_minimum_the_flow_is_partial_too() {
    let mut test = flow(&rule(RULE), false);
    test.succeed_item(item_at(0), &x(10)).fail(1, EXIT_1).fail(2, EXIT_1).start();
    assert_eq!(test.attribute("x"), json!([{"n": 1, "x": 10}]));
    assert_eq!(test.succeed_item(NEXT, &json!({})).outcome().0, "partial");
}

#[test]
fn a_step_over_elements_completes_with_a_record_without_best_effort_too() {
    let mut test = flow("", false);
    test.succeed_item(item_at(0), &x(10)).succeed_item(item_at(1), &x(20));
    let lines = test.succeed_item(item_at(2), &x(30)).lines();
    assert_eq!(lines[2], "completion_reached 0: all_dcs_reported, met", "{lines:?}");
    let lines = test.start().succeed_item(NEXT, &json!({"y": 1})).lines();
    let decided = lines.iter().find(|line| line.starts_with("completion_reached"));
    assert_eq!(decided, None, "a step without `for_each` has no rule");
    assert_eq!(test.outcome().0, "completed");
    test.check_replay();
}

#[test]
fn a_failed_step_is_complete_again_when_all_have_reported_after_a_redrive() {
    let mut test = flow("", false);
    test.succeed_item(item_at(0), &x(10)).succeed_item(item_at(1), &x(20));
    let lines = test.fail(2, EXIT_1).lines();
    let decided = |lines: &[String]| lines.iter().find(|line| line.starts_with("completion")).cloned();
    assert_eq!(decided(&lines).unwrap(), "completion_reached 0: all_dcs_reported, missed", "{lines:?}");
    assert_eq!(test.outcome().0, "failed");
    test.redrive([item_at(2)]).start();
    let lines = test.succeed_item(item_at(2), &x(30)).lines();
    assert_eq!(decided(&lines).unwrap(), "completion_reached 0: all_dcs_reported, met", "{lines:?}");
    assert_eq!(test.start().succeed_item(NEXT, &json!({})).outcome().0, "completed");
}

#[test]
fn a_late_result_is_recorded_once_and_changes_nothing() {
    let mut test = below_its_minimum(false);
    test.succeed_item(NEXT, &json!({"y": 1}));
    let before = test.outcome();
    assert_eq!(late(&mut test, 1, Ok(x(20))), ["late_result 0/1"]);
    assert_eq!(late(&mut test, 1, Ok(x(20))), [""; 0], "repeated");
    assert_eq!(late(&mut test, 2, Err("the disk is full")), ["late_result 0/2: permanent"]);
    assert_eq!(late(&mut test, 0, Ok(x(10))), [""; 0], "its result was in time");
    assert_eq!(test.outcome(), before);
    assert_eq!(test.attribute("x"), json!([{"n": 1, "x": 10}]));
    test.check_replay();
}

#[test]
fn a_late_result_that_counts_brings_its_data_and_may_complete_the_flow() {
    let mut test = below_its_minimum(true);
    test.succeed_item(NEXT, &json!({"y": 1}));
    let ended = test.job.times.ended_at;
    test.at(70);
    assert_eq!(late(&mut test, 2, Ok(x(30))), ["late_result 0/2", "attribute_set", "job_completed"]);
    assert_eq!(test.attribute("x"), json!([{"n": 1, "x": 10}, {"n": 3, "x": 30}]));
    assert_eq!(test.outcome(), ("completed", None, [3, 0, 0]));
    assert_eq!(test.job.times.ended_at, ended, "the flow has ended then");
    assert_eq!(late(&mut test, 1, Err("the disk is full")).len(), 1, "and it is not made worse");
    assert_eq!(test.outcome(), ("completed", None, [3, 0, 0]));
    test.check_replay();
}

#[test]
fn the_late_result_of_an_item_that_was_left_running_brings_its_data_if_it_counts() {
    for counts in [false, true] {
        let more = rule("best_effort: true, best_effort_min_dcs: 1, on_complete: leave");
        let mut test = flow(&more, counts);
        test.succeed_item(item_at(0), &x(10));
        let lines = test.succeed_item(item_at(1), &x(20)).lines();
        let one = json!({"n": 1, "x": 10});
        if counts {
            assert_eq!(lines[1..], ["late_result 0/1", "item_succeeded 0/1", "attribute_set"]);
            assert_eq!(test.attribute("x"), json!([one, {"n": 2, "x": 20}]));
        } else {
            assert_eq!(lines[1..], ["late_result 0/1", "item_skipped 0/1: cancelled"]);
            assert_eq!(test.attribute("x"), json!([one]));
        }
    }
}

#[test]
fn the_first_result_of_an_item_that_was_given_up_is_late_and_a_repeated_failure_is_not() {
    let mut test = flow("", true);
    let command = test.job.plan().first(StepId(0)).unwrap();
    let token = |item: u32| as_uuid(&receipt_token(&test.job, item_at(item), command, 1));
    let tokens: Vec<String> = (0..3).map(token).collect();
    test.fail(0, FailureCause::Refused);
    test.fail(1, FailureCause::Timeout).fail(2, EXIT_1);
    assert_eq!(test.outcome().0, "failed");
    let found = |test: &TestedJob, item: usize| find_token(&test.job, "a", &tokens[item]);
    assert_eq!(found(&test, 0), TokenStatus::Expired, "the service has reported its failure");
    assert_eq!(found(&test, 1), TokenStatus::Late(item_at(1)));
    assert_eq!(late(&mut test, 1, Ok(x(20))), ["late_result 0/1"]);
    assert_eq!(found(&test, 1), TokenStatus::Expired);
    assert_eq!(test.outcome().0, "failed", "only completion rules count late results");
    test.check_replay();
}
