//! What is counted of the records of real jobs.

use serde_json::json;
use undaunted_engine::catalog::{CatalogEvent, CatalogRecord};
use undaunted_engine::id::StepId;

use undaunted_policy::FailureCause;

use super::*;
use crate::scene::{Scene, T0, text};

fn fed(scene: &Scene) -> Metrics {
    let metrics = Metrics::default();
    feed(&metrics, scene);
    metrics
}

fn feed(metrics: &Metrics, scene: &Scene) {
    for record in &scene.records {
        metrics.observe(&scene.job, record);
    }
}

/// A catalog of these flows.
fn catalog(flows: &[&str]) -> Catalog {
    let mut catalog = Catalog::default();
    for flow in flows {
        let event = CatalogEvent::FlowActivated {
            flow: (*flow).to_owned(),
            since: T0,
            labels: Vec::new(),
            parent: None,
        };
        catalog.apply(&CatalogRecord { at: T0, event });
    }
    catalog
}

#[track_caller]
fn has(metrics: &Metrics, line: &str) {
    let text = metrics.text(&catalog(&["p", "stays", "e"]));
    assert!(text.lines().any(|it| it == line), "no `{line}` in\n{text}");
}

fn pooled(id: &str) -> Scene {
    let list = "retry_budget: 2\ncommands:\n  - shell: 'false'\n    retry_config: {attempts: 9, initial_delay: 1s, backoff: fixed}\n";
    let mut scene = Scene::of(id, list);
    for second in 0..3 {
        scene.at(second * 1000).start();
        scene.fail(0, 0, FailureCause::Exit(1));
    }
    scene
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
fn a_job_that_somebody_goes_on_with_counts_what_it_used_before() {
    let metrics = Metrics::default();
    metrics.restore(&pooled("p").job);
    has(&metrics, "retry_budget_consumed_total{job_id=\"p\"} 2");
    metrics.restore(&pooled("p").job);
    has(&metrics, "retry_budget_consumed_total{job_id=\"p\"} 2");
}

#[test]
fn what_is_counted_by_job_ends_with_the_job() {
    let metrics = fed(&pooled("gone"));
    feed(&metrics, &pooled("stays"));
    let text = metrics.text(&catalog(&["gone", "stays"]));
    assert!(text.contains("gone"), "{text}");
    let text = metrics.text(&catalog(&["stays"]));
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
    let mut scenes = [Scene::of("one", &text), Scene::of("two", &text)];
    for scene in &mut scenes {
        scene.start();
        scene.fail(0, 0, FailureCause::Network);
        feed(&metrics, scene);
    }
    has(&metrics, "undaunted_items{state=\"running\"} 2");
    has(&metrics, "undaunted_items{state=\"waiting\"} 2");
    has(&metrics, "undaunted_items{state=\"pending\"} 4");
    has(&metrics, "undaunted_items{state=\"held\"} 0");
    metrics.leave("two");
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
fn completions_by_a_rule_and_breakers_are_seen() {
    let each = "xs: {role: required, for_each: true}, y: {role: output}";
    let rule = ", work_config: {parallelism: 5}, best_effort: true, best_effort_min_dcs: 1";
    let text = text("each", "xs: [1, 2, 3, 4]", &[("each", each, rule)]);
    let mut scene = Scene::of("e", &text);
    scene.start();
    scene.done(0, 0, &json!({"y": 1}));
    let metrics = fed(&scene);
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
fn flows_are_counted_as_the_catalog_has_them() {
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
