//! Jobs that only the store knows, as if other processes ran them.

use undaunted_engine::catalog::Catalog;
use undaunted_engine::view::log::LogLevel;
use undaunted_policy::FailureCause;
use undaunted_store::{MemoryStore, Store};

use super::*;
use crate::fixture::TestFlow;
use crate::log::LogWriter;

const PATIENCE: Duration = Duration::from_secs(30);

const LIST: &str = "retry_budget: 2\ncommands:\n  - shell: 'false'\n    retry_config: {attempts: 9, initial_delay: 1s, backoff: fixed}\n";

fn start(store: &Arc<MemoryStore>) -> (Watch, StoreWatch) {
    let watch = Watch::of(Arc::clone(store) as _, LogWriter::of(LogLevel::Error));
    let others = StoreWatch::start(watch.clone(), LocalFolder::new("")).unwrap();
    (watch, others)
}

fn fail(test_flow: &mut TestFlow, times: std::ops::Range<u64>) {
    for second in times {
        test_flow.at(second * 1000).start();
        test_flow.fail(0, 0, FailureCause::Exit(1));
    }
}

#[track_caller]
fn has(watch: &Watch, line: &str) {
    let text = watch.metrics.text(&Catalog::default());
    assert!(text.lines().any(|it| it == line), "no `{line}` in\n{text}");
}

#[test]
fn the_series_of_jobs_that_ended_before_the_start_are_there_until_they_leave_the_store() {
    let store = Arc::new(MemoryStore::new());
    for job in ["one", "two"] {
        fail(&mut TestFlow::on(Arc::clone(&store), job, LIST), 0..3);
    }
    let (watch, others) = start(&store);
    others.catch_up(PATIENCE);
    for job in ["one", "two"] {
        has(&watch, &format!("retry_budget_consumed_total{{job_id=\"{job}\"}} 2"));
        has(&watch, &format!("retry_budget_exhausted_total{{job_id=\"{job}\"}} 1"));
    }
    // What is counted over all jobs begins with the process.
    has(&watch, "undaunted_retries_total 0");
    let one = aggregate("one").unwrap();
    store.remove(&one, store.head(&one).unwrap().unwrap().epoch).unwrap();
    others.catch_up(PATIENCE);
    assert!(!watch.metrics.text(&Catalog::default()).contains("one"));
    has(&watch, "retry_budget_exhausted_total{job_id=\"two\"} 1");
}

#[test]
fn every_later_record_of_a_job_of_another_process_is_counted_once() {
    let store = Arc::new(MemoryStore::new());
    let mut job = TestFlow::on(Arc::clone(&store), "p", LIST);
    let (watch, others) = start(&store);
    others.catch_up(PATIENCE);
    has(&watch, "undaunted_items{state=\"pending\"} 1");
    for _ in 0..2 {
        others.catch_up(PATIENCE);
    }
    fail(&mut job, 0..1);
    others.catch_up(PATIENCE);
    has(&watch, "undaunted_attempts_total{outcome=\"transient\"} 1");
    has(&watch, "undaunted_items{state=\"waiting\"} 1");
    fail(&mut job, 1..3);
    others.catch_up(PATIENCE);
    others.catch_up(PATIENCE);
    has(&watch, "undaunted_attempts_total{outcome=\"transient\"} 3");
    has(&watch, "undaunted_retries_total 2");
    has(&watch, "retry_budget_exhausted_total{job_id=\"p\"} 1");
    has(&watch, "undaunted_items{state=\"waiting\"} 0");
}
