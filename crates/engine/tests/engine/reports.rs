//! What comes late, twice or from nowhere has no consequence.

use undaunted_engine::breaker::BreakerAnswer;
use undaunted_engine::decide::decide;
use undaunted_engine::id::{StartId, StepId};
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_policy::FailureCause;

use crate::scene::Scene;

fn ended(start: StartId, failure: Option<FailureCause>) -> Input {
    Input::Ended(Box::new(AttemptEnd { start, failure, ..AttemptEnd::default() }))
}

#[test]
fn a_report_that_comes_twice_counts_once() {
    let mut scene = Scene::of("- {shell: a, retry_config: {attempts: 3}}\n");
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    for failure in [None, Some(FailureCause::Exit(1)), Some(FailureCause::Interrupted)] {
        assert_eq!(decide(&scene.job, &ended(StartId(1), failure), scene.now), []);
    }
    assert_eq!(scene.counted().0, 1);
}

#[test]
fn a_report_about_an_earlier_attempt_does_not_end_the_one_that_runs() {
    let mut scene = Scene::of("- {shell: a, retry_config: {attempts: 3}}\n");
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    scene.at(1);
    let _ = scene.start();
    assert_eq!(decide(&scene.job, &ended(StartId(1), None), scene.now), []);
    assert_eq!(scene.wanted(), ["begin 2 for 0/0"]);
}

#[test]
fn a_report_about_a_start_nobody_knows_has_no_consequence() {
    let mut scene = Scene::of("- shell: a\n");
    let _ = scene.start();
    for start in [0, 2, u64::MAX] {
        assert_eq!(decide(&scene.job, &ended(StartId(start), None), scene.now), []);
    }
}

#[test]
fn a_report_after_the_item_was_skipped_has_no_consequence() {
    let text = "mode: mapreduce\nmap: {input: a, agent_template: [{shell: a}]}\n";
    let mut scene = Scene::over(text, 2);
    let _ = scene.start();
    let _ = scene.tell(&Input::Cancel);
    let _ = scene.fail(0, FailureCause::Signal(15));
    assert_eq!(decide(&scene.job, &ended(StartId(1), None), scene.now), []);
}

#[test]
fn a_step_nobody_knows_has_no_items_and_starts_nothing() {
    let scene = Scene::of("- shell: a\n");
    for step in [StepId(1), StepId(u32::MAX)] {
        let start = Input::Start { item: step.item(0), refused: None, gate: BreakerAnswer::NoBreaker };
        let read = Input::ItemsRead { step, items: Vec::new() };
        assert_eq!(decide(&scene.job, &start, scene.now), []);
        assert_eq!(decide(&scene.job, &read, scene.now), []);
    }
}
