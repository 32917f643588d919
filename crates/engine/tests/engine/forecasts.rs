//! Forecasts of the retries of an item.

use std::sync::LazyLock;

use undaunted_engine::view::{Forecast, Projection, ViewContext, forecast};
use undaunted_policy::Reason;

use crate::fixture::{EXIT_1, TestedJob, item_at, secs};

fn forecast_of(test: &TestedJob) -> Option<Forecast> {
    forecast(&context(test, Some(1)), item_at(0), 100)
}

fn context(test: &TestedJob, owner: Option<u32>) -> ViewContext<'_> {
    static NOTHING: LazyLock<Projection> = LazyLock::new(Projection::default);
    ViewContext {
        job: &test.job,
        projection: &NOTHING,
        breakers: &test.admission,
        owner,
        seen: None,
        now: test.now,
    }
}

fn lines_of(forecast: &Forecast) -> Vec<String> {
    let retries = forecast.retries.iter().map(ToString::to_string);
    let stop = forecast.stop.iter().map(|stop| stop.sentence.clone());
    retries.chain(stop).collect()
}

#[test]
fn a_forecast_lists_the_remaining_retries_and_the_limit_that_ends_them() {
    let mut test = TestedJob::of("- {shell: a, retry_config: {attempts: 9, retry_budget: 10s}}\n");
    assert_eq!(forecast_of(&test), None, "it was not started");
    test.start();
    assert_eq!(
        lines_of(&forecast_of(&test).unwrap()),
        [
            "retry 1 of 9 (attempt 2 of 10) in 1s",
            "retry 2 of 9 (attempt 3 of 10) in 2s",
            "retry 3 of 9 (attempt 4 of 10) in 4s",
            "Retry budget exhausted (spent 7s, next delay 8s, budget 10s)",
        ]
    );
    test.fail(0, EXIT_1);
    let waiting = forecast_of(&test).unwrap();
    assert_eq!(waiting.retries.len(), 2);
    assert_eq!(waiting.stop.unwrap().reason, Some(Reason::RetryBudget));
}

#[test]
fn a_forecast_comes_true() {
    let text = "- {shell: a, retry_config: {attempts: 5, jitter: true, initial_delay: 3s}}\n";
    let mut test = TestedJob::seeded(text, 11);
    test.start();
    let forecast = forecast_of(&test).unwrap();
    let mut done = Vec::new();
    while !test.job.stage.has_ended() {
        let before = test.totals().2;
        test.fail(0, EXIT_1);
        if test.job.stage.has_ended() {
            break;
        }
        done.push(test.totals().2.saturating_sub(before));
        test.advance().start();
    }
    let waits = forecast.retries.iter().map(|verdict| verdict.arithmetic.wait());
    assert_eq!(waits.collect::<Vec<_>>(), done);
    assert_eq!(forecast.stop.unwrap().reason, Some(Reason::Attempts));
}

#[test]
fn a_deadline_and_a_pool_end_a_forecast() {
    let slow = "- {shell: a, retry_config: {attempts: 9, initial_delay: 10s}}\n";
    let test = TestedJob::started(&format!("deadline: 25s\ncommands:\n{slow}"));
    let ended = forecast_of(&test).unwrap();
    assert_eq!(ended.retries.len(), 1, "the second would be due after 30s");
    assert_eq!(ended.stop.unwrap().reason, Some(Reason::Deadline));
    let pool = "retry_budget: 5\nretry_budget_per_workflow: 2\n";
    let test = TestedJob::started(&format!("{pool}commands:\n{slow}"));
    let ended = forecast_of(&test).unwrap();
    assert_eq!(ended.retries.len(), 2);
    let reason = ended.stop.unwrap().reason;
    assert_eq!(reason, Some(Reason::WorkflowBudgetExhausted));
}

#[test]
fn a_forecast_of_unlimited_retries_is_as_long_as_requested() {
    let text = "- {shell: a, retry_config: {attempts: unlimited}}\n";
    let test = TestedJob::started(text);
    let bounded = forecast(&context(&test, Some(1)), item_at(0), 7).unwrap();
    assert_eq!((bounded.retries.len(), bounded.stop), (7, None));
}

#[test]
fn one_attempt_after_a_handler_is_the_last_and_has_no_forecast() {
    let text = "- {shell: a, retry_config: {attempts: 0}, on_failure: {shell: mend, max_attempts: 1}}\n";
    let mut test = TestedJob::started(text);
    test.fail(0, EXIT_1).start().succeed(0);
    test.now = test.now.after(secs(1));
    assert_eq!(forecast_of(&test), None);
}
