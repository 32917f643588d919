//! Log records of jobs.

use serde_json::{Value, json};
use undaunted_engine::event::Record;
use undaunted_engine::id::StepId;
use undaunted_engine::view::log::{LogLevel, records_of};
use undaunted_policy::FailureCause;

use crate::fixture::{EXIT_1, TestedJob, flow};

const FIRST: StepId = StepId(0);

fn said(test: &TestedJob) -> Vec<Value> {
    let records = test.journal.iter();
    let records = records.map(|bytes| Record::decode(bytes).unwrap());
    let said = records.flat_map(|record| records_of(&test.job, &record));
    said.map(|record| serde_json::from_str(&record.line()).unwrap()).collect()
}

fn named<'s>(said: &'s [Value], name: &str) -> Vec<&'s Value> {
    let found = said.iter().filter(|it| it["event"] == name || it["message"] == name);
    found.collect()
}

fn one_step(more: &str) -> TestedJob {
    let steps = [("a", "x: {role: required}, y: {role: output}", more)];
    let mut test = flow("a", "x: 1", &steps);
    test.start();
    test
}

#[test]
fn a_flow_is_logged_from_its_beginning_to_its_end() {
    let mut test = one_step(", work_config: {max_retries: 1, backoff: 1000}");
    test.fail_item(FIRST.item(0), FailureCause::Status(503)).at(2).start();
    test.fail_item(FIRST.item(0), FailureCause::Status(503));
    let said = said(&test);
    assert_eq!(named(&said, "job_submitted")[0]["level"], "info");
    assert_eq!(named(&said, "attempt_started").len(), 2);
    assert_eq!(named(&said, "attempt_started")[0]["level"], "debug");
    assert_eq!(named(&said, "job_failed")[0]["level"], "warn");
    let id = &named(&said, "attempt_started")[0]["correlation_id"];
    for name in ["attempt_failed", "retry_scheduled", "item_dead_lettered"] {
        for record in named(&said, name) {
            assert_eq!(&record["correlation_id"], id, "{name}");
        }
    }
    for record in &said {
        assert_eq!(record["job"], "7f3k");
        assert!(record["at"].as_str().unwrap().ends_with('Z'));
    }
}

#[test]
fn an_exhausted_pool_is_logged_with_its_numbers() {
    let list =
        "commands:\n  - shell: 'false'\n    retry_config: {attempts: 9, initial_delay: 1s, backoff: fixed}\n";
    let mut test = TestedJob::of(&format!("retry_budget: 2\n{list}"));
    for second in 0..3 {
        test.at(second).start().fail_item(FIRST.item(0), EXIT_1);
    }
    let said = said(&test);
    let found = named(&said, "RetryBudgetExhausted");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["level"], "warn");
    assert_eq!(found[0]["consumed"], 2);
    assert_eq!(found[0]["total"], 2);
    assert_eq!(found[0]["reason"], "job_budget_exhausted (2/2)");
    assert_eq!(found[0]["item"], "shell-1");
    assert!(found[0]["correlation_id"].is_string());
}

#[test]
fn an_exhausted_delay_budget_is_a_warning_and_an_expired_one_is_debug() {
    let list = "commands:\n  - id: c\n    shell: 'false'\n    retry_config: {attempts: 9, retry_budget: 1s, initial_delay: 1s, backoff: fixed}\n";
    let mut test = TestedJob::started(list);
    test.fail_item(FIRST.item(0), EXIT_1).at(1).start().fail_item(FIRST.item(0), EXIT_1);
    let found = said(&test);
    let found = named(&found, "Retry budget exhausted for c");
    assert_eq!(found[0]["level"], "warn");
    assert_eq!(found[0]["command"], "c");

    let mut test = TestedJob::started(list);
    test.fail_item(FIRST.item(0), EXIT_1).at(60).resume(None).wake().start();
    let found = said(&test);
    let expired = named(&found, "Command c retry budget expired");
    assert_eq!(expired.len(), 1, "{found:?}");
    assert_eq!(expired[0]["level"], "debug");
    assert_eq!(named(&found, "job_resumed")[0]["level"], "info");
}

#[test]
fn completions_and_late_results_are_logged() {
    let each = "xs: {role: required, for_each: true}, y: {role: output}";
    let rule =
        ", work_config: {parallelism: 5}, best_effort: true, best_effort_min_dcs: 1, on_complete: leave";
    let mut test = flow("each", "xs: [1, 2, 3]", &[("each", each, rule)]);
    test.start().succeed_item(FIRST.item(0), &json!({"y": 1}));
    test.succeed_item(FIRST.item(1), &json!({"y": 1}));
    let found = said(&test);
    let complete = named(&found, "BestEffortCompletion");
    assert_eq!(complete.len(), 1, "{found:?}");
    assert_eq!(complete[0]["reason"], "min_dcs_reached (1/1)");
    assert_eq!(complete[0]["completed"], 1);
    assert_eq!(complete[0]["missing"], 2);
    assert_eq!(complete[0]["success"], true);
    let late = named(&found, "LateDatacenterResult");
    assert_eq!(late[0]["datacenter"], "each[1]");
    assert_eq!(late[0]["policy"], "log_only");
}

#[test]
fn levels_have_words_and_an_order() {
    assert_eq!(LogLevel::of("WARN"), Some(LogLevel::Warn));
    assert_eq!(LogLevel::of("loud"), None);
    assert!(LogLevel::Error < LogLevel::Debug);
}
