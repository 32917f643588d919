//! How long an item may be held, and what says something about a target.

use undaunted_engine::breaker::BreakerFact;
use undaunted_engine::input::Input;
use undaunted_policy::{FailureCause, Reason, WhenOpen};

use crate::breakers::{NAME, finish, map, opened};
use crate::scene::{Scene, at};
use crate::spoken::said;

#[test]
fn with_max_hold_the_time_of_every_item_runs_also_of_those_that_could_not_run_yet() {
    let mut scene = opened(&map(3, ", max_hold: 20s", ""), 9);
    let _ = scene.start();
    let _ = scene.start();
    scene.at(1);
    let _ = scene.start();
    assert_eq!(scene.held(), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    scene.at(21);
    let _ = scene.tell(&Input::Woke);
    assert_eq!(scene.came_to(), ("partial", Some(Reason::CircuitOpen), [0, 9, 0]));
}

#[test]
fn settings_that_change_hold_for_what_is_held_already() {
    let text = map(3, ", max_hold: 20s", "");
    let mut scene = opened(&text, 3);
    scene.at(1);
    let _ = scene.start();
    assert_eq!(scene.next_wake(), Some(at(21)));
    for (longest, expected) in [(", max_hold: 40s", 41), (", max_hold: 5s", 6), ("", 60)] {
        let _ = scene.tell(&Input::Update {
            text: text.replace(", max_hold: 20s", longest).into(),
            changes: Vec::new(),
        });
        assert_eq!(scene.next_wake(), Some(at(expected)), "{longest}");
        let _ = scene.crash_and_resume();
        assert_eq!(scene.next_wake(), Some(at(expected)), "{longest}");
    }
    finish(&mut scene);
    assert_eq!(scene.came_to().0, "completed");
}

#[test]
fn what_retry_on_leaves_out_is_a_failure_of_the_target_all_the_same() {
    let mut scene = Scene::over(&map(3, "", ", retry_on: [timeout]"), 3);
    let _ = scene.start();
    for item in 0..3 {
        let _ = scene.fail(item, FailureCause::Exit(1));
    }
    assert_eq!(scene.breaker(NAME).word(), "open");
    assert_eq!(scene.came_to(), ("partial", Some(Reason::Permanent), [0, 3, 0]));
}

#[test]
fn output_that_cannot_be_captured_says_nothing_about_the_target() {
    let text =
        map(2, "", "").replace("shell: a", "shell: a\n      capture_output: n\n      capture_format: number");
    let mut scene = Scene::over(&text, 2);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    let _ = scene.succeed_writing(1, Some("twelve"));
    assert_eq!(scene.breaker(NAME).failures(), 1);
}

#[test]
fn a_clock_that_was_set_back_keeps_nothing_held_for_longer() {
    let mut scene = opened(&map(3, ", max_hold: 20s", ""), 3);
    scene.at(30);
    let _ = scene.start();
    assert_eq!(scene.job.steps[0].held.next_expiry(), Some(at(50)));
    scene.at(5);
    let _ = scene.crash_and_resume();
    assert_eq!(scene.job.steps[0].held.next_expiry(), Some(at(25)));
    scene.others(NAME, None, vec![BreakerFact::Tripped { at: at(100_000) }]);
    assert_eq!(scene.breaker(NAME).until(), Some(at(65)), "a minute from now");
}

#[test]
fn a_hold_that_begins_in_a_pause_is_longer_by_the_rest_of_it_only() {
    let rule = ", rules: [{exit_code: 3, then: hold}]";
    let mut scene = Scene::over(&map(1, ", max_hold: 20s", rule), 1);
    let _ = scene.start();
    let _ = scene.at(10).tell(&Input::Pause);
    scene.at(30);
    let _ = scene.fail(0, FailureCause::Exit(3));
    assert_eq!(scene.job.steps[0].held.next_expiry(), Some(at(50)));
    let _ = scene.at(40).tell(&Input::Unpause);
    assert_eq!(scene.job.steps[0].held.next_expiry(), Some(at(60)));
}

#[test]
fn a_release_does_not_run_on_while_the_job_is_paused() {
    let mut scene = opened(&map(40, "", ""), 40);
    for item in 3..40 {
        let _ = scene.fail(item, FailureCause::Exit(1));
    }
    scene.at(1);
    let _ = scene.start();
    assert_eq!(scene.held().len(), 40);
    let _ = scene.tell(&Input::Pause);
    scene.reset(NAME);
    let _ = scene.at(100).tell(&Input::Unpause);
    assert!(scene.ready().len() < 40, "not all of them at once");
    scene.at(106);
    assert_eq!(scene.ready().len(), 40);
}

#[test]
fn a_breaker_that_fails_holds_nothing_when_one_that_never_started_has_more_attempts_left() {
    let text = map(1, ", when_open: fail", ", initial_delay: 40s")
        .replace("threshold: 3", "threshold: 1")
        .replace("60s", "30s");
    let mut scene = Scene::over(&text, 3);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    scene.at(40);
    let said_first = said(&scene.start());
    assert_eq!(
        said_first[0], "attempt_started 0/0 0.2 as 2, a probe",
        "what is due goes first: {said_first:?}"
    );
    assert_eq!(scene.held(), [0; 0]);
}

#[test]
fn what_was_held_is_not_held_on_by_a_breaker_that_has_come_to_fail() {
    let mut scene = opened(&map(3, "", ""), 5);
    scene.at(1);
    let _ = scene.start();
    assert_eq!(scene.held(), [0, 1, 2]);
    scene.configure(NAME, |settings| settings.when_open = WhenOpen::Fail);
    scene.at(60);
    let said_first = said(&scene.start());
    assert_eq!(said_first[1], "attempt_started 0/0 0.2 as 4, a probe");
    let _ = scene.start();
    assert_eq!(scene.held(), [0; 0], "{said_first:?}");
}
