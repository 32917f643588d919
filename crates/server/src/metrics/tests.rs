//! What is counted of the records of real jobs.

use serde_json::json;
use undaunted_engine::catalog::{CatalogEvent, CatalogRecord};
use undaunted_engine::id::StepId;

use undaunted_policy::FailureCause;

use super::*;
use crate::fixture::{T0, TestFlow, text};

fn fed(test_flow: &TestFlow) -> Metrics {
    let metrics = Metrics::default();
    feed(&metrics, test_flow);
    metrics
}

fn feed(metrics: &Metrics, test_flow: &TestFlow) {
    for record in &test_flow.records {
        metrics.observe(&test_flow.job, record);
    }
}

#[track_caller]
fn has(metrics: &Metrics, line: &str) {
    let text = metrics.text(&Catalog::default());
    assert!(text.lines().any(|it| it == line), "no `{line}` in\n{text}");
}

fn pooled(id: &str) -> TestFlow {
    let list = "retry_budget: 2\ncommands:\n  - shell: 'false'\n    retry_config: {attempts: 9, initial_delay: 1s, backoff: fixed}\n";
    let mut test_flow = TestFlow::of(id, list);
    for second in 0..3 {
        test_flow.at(second * 1000).start();
        test_flow.fail(0, 0, FailureCause::Exit(1));
    }
    test_flow
}

#[test]
fn attempts_retries_delays_and_the_pool_are_counted_once() {
    let metrics = fed(&pooled("p"));
    has(&metrics, "retry_budget_consumed_total{job_id=\"p\"} 2");
    has(&metrics, "retry_budget_exhausted_total{job_id=\"p\"} 1");
    has(&metrics, "undaunted_attempts_total{outcome=\"transient\"} 3");
    has(&metrics, "undaunted_retries_total 2");
    has(&metrics, "undaunted_retry_delay_seconds_count 2");
    has(&metrics, "undaunted_retry_delay_seconds_sum 2.0");
    let text = metrics.text(&Catalog::default());
    assert!(!text.contains("_total_total"), "{text}");
    assert!(text.contains("# TYPE undaunted_retry_delay_seconds histogram"), "{text}");
}

#[test]
fn a_resumed_job_counts_the_retries_it_used_before() {
    let metrics = Metrics::default();
    metrics.restore(&pooled("p").job);
    has(&metrics, "retry_budget_consumed_total{job_id=\"p\"} 2");
    metrics.restore(&pooled("p").job);
    has(&metrics, "retry_budget_consumed_total{job_id=\"p\"} 2");
}

#[test]
fn the_series_of_a_job_are_removed_with_the_job() {
    let metrics = fed(&pooled("gone"));
    feed(&metrics, &pooled("stays"));
    assert!(metrics.text(&Catalog::default()).contains("gone"));
    metrics.remove("gone");
    let text = metrics.text(&Catalog::default());
    assert!(!text.contains("gone"), "{text}");
    has(&metrics, "retry_budget_consumed_total{job_id=\"stays\"} 2");
    has(&metrics, "undaunted_attempts_total{outcome=\"transient\"} 6");
}

#[test]
fn queues_are_those_of_all_jobs_and_empty_when_they_have_ended() {
    let each = "xs: {role: required, for_each: true}, y: {role: output}";
    let two = ", work_config: {parallelism: 2, max_retries: 1, backoff: 1000}";
    let text = text("each", "xs: [1, 2, 3, 4]", &[("each", each, two)]);
    let metrics = Metrics::default();
    let mut scenes = [TestFlow::of("one", &text), TestFlow::of("two", &text)];
    for test_flow in &mut scenes {
        test_flow.start();
        test_flow.fail(0, 0, FailureCause::Network);
        feed(&metrics, test_flow);
    }
    has(&metrics, "undaunted_items{state=\"running\"} 2");
    has(&metrics, "undaunted_items{state=\"waiting\"} 2");
    has(&metrics, "undaunted_items{state=\"pending\"} 4");
    has(&metrics, "undaunted_items{state=\"held\"} 0");
    metrics.remove("two");
    has(&metrics, "undaunted_items{state=\"pending\"} 2");
    let [one, _] = &mut scenes;
    for millis in [1000, 2000, 3000, 4000] {
        one.at(millis).start();
        for item in 0..4 {
            if one.job.starts.running.values().any(|place| *place == StepId(0).item(item)) {
                one.done(0, item, &json!({"y": 1}));
            }
        }
    }
    assert!(one.job.stage.has_ended());
    feed(&metrics, one);
    for state in ITEM_STATES {
        has(&metrics, &format!("undaunted_items{{state=\"{state}\"}} 0"));
    }
}

#[test]
fn completions_by_a_rule_and_breaker_states_are_counted() {
    let each = "xs: {role: required, for_each: true}, y: {role: output}";
    let rule = ", work_config: {parallelism: 5}, best_effort: true, best_effort_min_dcs: 1";
    let text = text("each", "xs: [1, 2, 3, 4]", &[("each", each, rule)]);
    let mut test_flow = TestFlow::of("e", &text);
    test_flow.start();
    test_flow.done(0, 0, &json!({"y": 1}));
    let metrics = fed(&test_flow);
    has(&metrics, "best_effort_completions_total{reason=\"min_dcs_reached\"} 1");
    has(&metrics, "best_effort_completion_ratio{job_id=\"e\"} 0.25");
    metrics.found_breaker("http://s", CircuitState::HalfOpen { successes: 0, probing: true });
    let state = |state: &str, value: u8| {
        format!("undaunted_breaker_state{{breaker=\"http://s\",state=\"{state}\"}} {value}")
    };
    has(&metrics, &state("half_open", 1));
    has(&metrics, &state("open", 0));
    metrics.found_breaker("http://s", CircuitState::Open { since: T0, until: T0 });
    has(&metrics, &state("half_open", 0));
    has(&metrics, &state("open", 1));
}

#[test]
fn flows_are_counted_from_the_catalog() {
    let mut catalog = Catalog::default();
    catalog.apply(&CatalogRecord {
        at: T0,
        event: CatalogEvent::FlowActivated {
            flow: "f".to_owned(),
            since: T0,
            labels: Vec::new(),
            parent: None,
        },
    });
    let text = Metrics::default().text(&catalog);
    assert!(text.contains("undaunted_flows{status=\"active\"} 1\n"), "{text}");
    assert!(text.contains("undaunted_flows{status=\"failed\"} 0\n"), "{text}");
}
