//! What is foretold of an item is what is then done to it.

use std::sync::LazyLock;

use undaunted_engine::id::StepId;
use undaunted_engine::view::{Forecast, Projection, ViewContext, forecast};
use undaunted_policy::{FailureCause, Reason};

use crate::scene::{Scene, secs};

fn foretold(scene: &Scene) -> Option<Forecast> {
    forecast(&context(scene, Some(1)), StepId(0).item(0), 100)
}

/// As it is seen while a process runs the job, or while none does.
fn context(scene: &Scene, owner: Option<u32>) -> ViewContext<'_> {
    static NOTHING: LazyLock<Projection> = LazyLock::new(Projection::default);
    ViewContext {
        job: &scene.job,
        projection: &NOTHING,
        breakers: &scene.admission,
        owner,
        seen: None,
        now: scene.now,
    }
}

fn said(forecast: &Forecast) -> Vec<String> {
    let retries = forecast.retries.iter().map(ToString::to_string);
    let stop = forecast.stop.iter().map(|stop| stop.sentence.clone());
    retries.chain(stop).collect()
}

#[test]
fn the_retries_that_are_left_are_foretold_and_the_limit_that_ends_them() {
    let text = "- {shell: a, retry_config: {attempts: 9, retry_budget: 10s}}\n";
    let mut scene = Scene::of(text);
    assert_eq!(foretold(&scene), None, "it was not started");
    let _ = scene.start();
    assert_eq!(
        said(&foretold(&scene).unwrap()),
        [
            "retry 1 of 9 (attempt 2 of 10) in 1s",
            "retry 2 of 9 (attempt 3 of 10) in 2s",
            "retry 3 of 9 (attempt 4 of 10) in 4s",
            "Retry budget exhausted (spent 7s, next delay 8s, budget 10s)",
        ]
    );
    let _ = scene.fail(0, FailureCause::Exit(1));
    let waiting = foretold(&scene).unwrap();
    assert_eq!(waiting.retries.len(), 2);
    assert_eq!(waiting.stop.unwrap().reason, Some(Reason::RetryBudget));
}

#[test]
fn what_is_foretold_is_what_happens() {
    let text = "- {shell: a, retry_config: {attempts: 5, jitter: true, initial_delay: 3s}}\n";
    let mut scene = Scene::seeded(text, 11);
    let _ = scene.start();
    let foretold = foretold(&scene).unwrap();
    let mut done = Vec::new();
    while !scene.job.stage.has_ended() {
        let before = scene.counted().2;
        let _ = scene.fail(0, FailureCause::Exit(1));
        if scene.job.stage.has_ended() {
            break;
        }
        done.push(scene.counted().2.saturating_sub(before));
        scene.now = scene.next_wake().unwrap();
        let _ = scene.start();
    }
    let waits = foretold.retries.iter().map(|verdict| verdict.arithmetic.wait());
    assert_eq!(waits.collect::<Vec<_>>(), done);
    assert_eq!(foretold.stop.unwrap().reason, Some(Reason::Attempts));
}

#[test]
fn a_deadline_and_a_pool_end_what_is_foretold_too() {
    let slow = "- {shell: a, retry_config: {attempts: 9, initial_delay: 10s}}\n";
    let mut scene = Scene::of(&format!("deadline: 25s\ncommands:\n{slow}"));
    let _ = scene.start();
    let ended = foretold(&scene).unwrap();
    assert_eq!(ended.retries.len(), 1, "the second would be due after 30s");
    assert_eq!(ended.stop.unwrap().reason, Some(Reason::Deadline));
    let pool = "retry_budget: 5\nretry_budget_per_workflow: 2\n";
    let mut scene = Scene::of(&format!("{pool}commands:\n{slow}"));
    let _ = scene.start();
    let ended = foretold(&scene).unwrap();
    assert_eq!(ended.retries.len(), 2);
    let reason = ended.stop.unwrap().reason;
    assert_eq!(reason, Some(Reason::WorkflowBudgetExhausted));
}

#[test]
fn retries_without_end_are_foretold_as_far_as_somebody_asks() {
    let text = "- {shell: a, retry_config: {attempts: unlimited}}\n";
    let mut scene = Scene::of(text);
    let _ = scene.start();
    let told = forecast(&context(&scene, Some(1)), StepId(0).item(0), 7).unwrap();
    assert_eq!((told.retries.len(), told.stop), (7, None));
}

#[test]
fn one_attempt_after_a_handler_is_the_last_and_has_no_forecast() {
    let text = "- {shell: a, retry_config: {attempts: 0}, on_failure: {shell: mend, max_attempts: 1}}\n";
    let mut scene = Scene::of(text);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    let _ = scene.start();
    let _ = scene.succeed(0);
    scene.now = scene.now.after(secs(1));
    assert_eq!(foretold(&scene), None);
}
