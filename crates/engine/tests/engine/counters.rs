//! The counters of a job.

use std::time::Duration;

use undaunted_engine::event::Record;
use undaunted_engine::view::{CompletionShare, DELAY_BOUNDS, JobCounters, Projection};

use crate::fixture::{TestedJob, flow, item_at};

fn projected(test: &TestedJob) -> Projection {
    let mut past = Projection::default();
    for (version, bytes) in (1..).zip(&test.journal) {
        past.take(&test.job, version, &Record::decode(bytes).unwrap());
    }
    past
}

/// A job that has used up its pool.
fn pooled() -> TestedJob {
    let mut test = TestedJob::of(
        "retry_budget: 2\ncommands:\n  - shell: 'false'\n    retry_config: {attempts: 9, initial_delay: 1s, backoff: fixed}\n",
    );
    test.fail_until_stopped();
    test
}

#[test]
fn attempts_retries_delays_and_the_pool_are_counted() {
    let JobCounters { attempts, retries_scheduled, delays, retries_charged, retries_refused, .. } =
        projected(&pooled()).counters;
    assert_eq!(attempts, [("transient".to_owned(), 3)].into());
    assert_eq!((retries_scheduled, retries_charged, retries_refused), (2, 2, 1));
    assert_eq!(delays.sum, Duration::from_secs(2));
    let second = DELAY_BOUNDS.iter().position(|it| it.as_secs() == 1).unwrap();
    assert_eq!(delays.counts[second], 2);
    assert_eq!(delays.counts.iter().sum::<u64>(), 2);
}

#[test]
fn completions_by_a_rule_are_counted_with_the_share_of_the_last_one() {
    let each = "xs: {role: required, for_each: true}, y: {role: output}";
    let rule = ", work_config: {parallelism: 5}, best_effort: true, best_effort_min_dcs: 1";
    let mut test = flow("each", "xs: [1, 2, 3, 4]", &[("each", each, rule)]);
    test.start().succeed_item(item_at(0), &serde_json::json!({"y": 1}));
    let counters = projected(&test).counters;
    assert_eq!(counters.completions, [("min_dcs_reached".to_owned(), 1)].into());
    let share = counters.last_completion.unwrap();
    assert_eq!((share.completed, share.target), (1, 4));
    assert_eq!(share.ratio().to_string(), "0.25");
    let nothing = CompletionShare { completed: 0, target: 0 };
    assert_eq!(nothing.ratio().to_string(), "1");
}

#[test]
fn counters_are_saved_with_the_projection() {
    let past = projected(&pooled());
    let (names, records) = (past.index.names.0.clone(), past.index.records.0.clone());
    let restored = Projection::restore(&past.save(), names, records).unwrap();
    assert_eq!(restored, past);
    assert_eq!(restored.counters.retries_refused, 1);
}

#[test]
fn counters_are_plain_json() {
    let json = serde_json::to_value(projected(&pooled()).counters).unwrap();
    assert_eq!(json["attempts"]["transient"], 3);
    assert_eq!(json["delays"]["sum"], 2.0);
}
