//! What a server shows of flows that another process has begun.

use undaunted_engine::catalog::{Catalog, CatalogEvent, CatalogRecord};
use undaunted_engine::view::log::LogLevel;
use undaunted_policy::FailureCause;

use super::*;
use crate::fixture::{T0, TestFlow, text};

fn watching(test_flow: &TestFlow) -> Watch {
    Watch::of(test_flow.store.clone(), LogWriter::of(LogLevel::Error))
}

/// The metrics of a store with this flow.
fn shown(watch: &Watch, flow: &str) -> Vec<String> {
    let mut catalog = Catalog::default();
    let event =
        CatalogEvent::FlowActivated { flow: flow.to_owned(), since: T0, labels: Vec::new(), parent: None };
    catalog.apply(&CatalogRecord { at: T0, event });
    let text = watch.metrics.text(&catalog);
    text.lines().map(str::to_owned).collect()
}

#[track_caller]
fn has(watch: &Watch, flow: &str, line: &str) {
    let shown = shown(watch, flow);
    assert!(shown.iter().any(|it| it == line), "no `{line}` in {shown:#?}");
}

#[test]
fn retries_refused_by_a_pool_are_still_counted_after_a_restart() {
    let list = "retry_budget: 2\ncommands:\n  - shell: 'false'\n    retry_config: {attempts: 9, initial_delay: 1s, backoff: fixed}\n";
    let mut test_flow = TestFlow::of("p", list);
    for second in 0..3 {
        test_flow.at(second * 1000).start();
        test_flow.fail(0, 0, FailureCause::Exit(1));
    }
    let watch = watching(&test_flow);
    for _ in 0..2 {
        // A second time if this process has left the flow and resumes it.
        watch.recover(&test_flow.job);
        has(&watch, "p", "retry_budget_exhausted_total{job_id=\"p\"} 1");
        has(&watch, "p", "retry_budget_consumed_total{job_id=\"p\"} 2");
    }
    // What is counted over all flows begins with the process.
    has(&watch, "p", "undaunted_retries_total 0");
}

#[test]
fn the_completion_ratio_of_a_rule_is_still_reported_after_a_restart() {
    let each = "xs: {role: required, for_each: true}, y: {role: output}";
    let rule =
        ", work_config: {parallelism: 5}, best_effort: true, best_effort_min_dcs: 1, on_complete: leave";
    let text = text("each", "xs: [1, 2, 3, 4]", &[("each", each, rule)]);
    let mut test_flow = TestFlow::of("e", &text);
    test_flow.start();
    test_flow.done(0, 0, &serde_json::json!({"y": 1}));
    let watch = watching(&test_flow);
    watch.recover(&test_flow.job);
    has(&watch, "e", "best_effort_completion_ratio{job_id=\"e\"} 0.25");
}
