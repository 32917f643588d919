//! The delay budget over a crash: downtime counts as waiting, clean suspension does not.

use std::time::Duration;

use undaunted_engine::id::StepId;
use undaunted_engine::input::Input;
use undaunted_engine::job::Activity;
use undaunted_policy::{FailureCause, Reason};

use crate::scene::{SECOND, Scene, at, secs};
use crate::spoken::said;

/// One retry of 1s is spent and one of 2s is pending, due at 13s; 7s of 10s are left, until 20s.
fn waiting() -> Scene {
    waiting_with("")
}

fn waiting_with(more: &str) -> Scene {
    let text = format!("- {{shell: a, retry_config: {{attempts: 9, retry_budget: 10s}}{more}}}\n");
    let mut scene = Scene::of(&text);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    scene.at(1);
    let _ = scene.start();
    scene.at(11);
    let _ = scene.fail_saying(0, FailureCause::Exit(1), "no route to host");
    assert_eq!(scene.active(0).activity, Activity::Waiting(at(13)));
    scene
}

#[test]
fn a_retry_overdue_by_exactly_what_is_left_is_made() {
    let mut scene = waiting();
    scene.at(20);
    assert_eq!(said(&scene.crash_and_resume()), ["job_resumed run 2"]);
    assert_eq!(scene.ready(), [StepId(0).item(0)]);
}

#[test]
fn a_retry_overdue_by_a_nanosecond_more_is_refused() {
    let mut scene = waiting();
    scene.at(20).pass(Duration::from_nanos(1));
    let said = said(&scene.crash_and_resume());
    assert_eq!(said[0], "job_resumed run 2");
    assert_eq!(
        said[2..],
        [
            "command_stopped 0/0 0.2: retry_budget_expired",
            "item_dead_lettered 0/0 0.2: retry_budget_expired",
            "step_failed 0",
            "job_failed retry_budget_expired",
        ]
    );
    assert_eq!(
        scene.report().error.as_deref(),
        Some(
            "Retry budget expired during downtime (budget 10s); \
             last error: exit status 1: no route to host"
        )
    );
}

#[test]
fn the_handler_runs_when_a_retry_has_expired() {
    let mut scene = waiting_with(", on_failure: {shell: mend}");
    scene.at(1000);
    let said = said(&scene.crash_and_resume());
    assert_eq!(said[2..], ["command_stopped 0/0 0.2: retry_budget_expired, handler 1"]);
}

#[test]
fn clean_suspension_is_not_charged() {
    let mut scene = waiting();
    assert_eq!(scene.hear(&Input::Suspend), ["job_suspended"]);
    scene.at(1_000_000);
    assert_eq!(said(&scene.crash_and_resume()), ["job_resumed run 2"]);
    assert_eq!(scene.ready(), [StepId(0).item(0)]);
}

#[test]
fn a_crash_after_a_clean_suspension_is_charged_alone() {
    // Suspended from 11s to 1000s: the retry fell due then, and 7s are left from 1000s on.
    for (crash, expired) in [(1007, false), (1008, true)] {
        let mut scene = waiting();
        let _ = scene.tell(&Input::Suspend);
        scene.at(1000);
        let _ = scene.crash_and_resume();
        scene.at(crash);
        let said = said(&scene.crash_and_resume());
        assert_eq!(said.len() > 1, expired, "{said:?}");
    }
}

#[test]
fn a_suspension_before_the_retry_is_due_gives_nothing_away() {
    // Due at 13s, resumed at 12s: 7s are left from 13s on, as before.
    for (crash, expired) in [(20, false), (21, true)] {
        let mut scene = waiting();
        let _ = scene.tell(&Input::Suspend);
        scene.at(12);
        let _ = scene.crash_and_resume();
        scene.at(crash);
        let said = said(&scene.crash_and_resume());
        assert_eq!(said.len() > 1, expired, "{said:?}");
    }
}

#[test]
fn what_was_spent_is_restored_exactly() {
    let mut scene = waiting();
    scene.at(14);
    let _ = scene.crash_and_resume();
    assert_eq!(scene.active(0).progress().spent, secs(3));
    let _ = scene.start();
    let third = super::retries::scheduled(&scene.fail(0, FailureCause::Exit(1))).unwrap();
    assert_eq!((third.delay, third.sum.spent_after), (secs(4), secs(7)));
    scene.now = third.due;
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    assert_eq!(scene.came_to(), ("failed", Some(Reason::RetryBudget), [0, 1, 0]));
}

#[test]
fn a_retry_due_during_downtime_is_due_now() {
    let mut scene = Scene::of("- {shell: a, retry_config: {attempts: 3}}\n");
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    scene.at(3600);
    let _ = scene.crash_and_resume();
    assert_eq!(scene.ready(), [StepId(0).item(0)]);
    assert_eq!(scene.next_wake(), None);
}

#[test]
fn a_retry_due_later_keeps_its_time() {
    let mut scene = waiting();
    scene.at(12);
    let _ = scene.crash_and_resume();
    assert_eq!((scene.ready(), scene.next_wake()), (vec![], Some(at(13))));
}

#[test]
fn a_clock_that_was_set_back_cannot_stretch_a_wait() {
    let mut scene = waiting();
    // An hour earlier, by the clock: the wait is begun again and lasts 2s, not an hour.
    scene.now = crate::scene::T0;
    let _ = scene.crash_and_resume();
    assert_eq!((scene.ready(), scene.next_wake()), (vec![], Some(at(2))));
    // And its budget lasts as long after it as before.
    assert_eq!(scene.active(0).expires(), Some(at(2 + 7)));
}

#[test]
fn a_clock_that_was_set_back_a_little_does_not_shorten_a_wait() {
    let mut scene = waiting();
    scene.at(11);
    let _ = scene.crash_and_resume();
    assert_eq!(scene.next_wake(), Some(at(13)));
    assert_eq!(scene.active(0).expires(), Some(at(20)));
}

#[test]
fn waits_of_a_suspended_job_stay_absolute() {
    let mut scene = waiting();
    let _ = scene.tell(&Input::Suspend);
    scene.at(12);
    let _ = scene.crash_and_resume();
    assert_eq!(scene.next_wake(), Some(at(13)));
}

#[test]
fn a_rule_with_a_budget_of_its_own_expires_by_it() {
    let text = "
- shell: a
  retry_config:
    attempts: 9
    rules: [{exit_code: 75, then: retry, retry_config: {retry_budget: 5s}}]
";
    for (crash, expired) in [(5, false), (6, true)] {
        let mut scene = Scene::of(text);
        let _ = scene.start();
        let _ = scene.fail(0, FailureCause::Exit(75));
        scene.at(crash);
        let said = said(&scene.crash_and_resume());
        assert_eq!(said.len() > 1, expired, "{said:?}");
    }
}

#[test]
fn an_attempt_that_runs_during_downtime_has_no_budget_to_lose() {
    let text = "- {shell: a, retry_config: {attempts: 9, retry_budget: 3s}}\n";
    let mut scene = Scene::of(text);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    scene.pass(SECOND);
    let _ = scene.start();
    scene.at(100_000);
    assert_eq!(said(&scene.crash_and_resume()), ["job_resumed run 2"]);
    assert_eq!(scene.wanted(), ["begin 2 for 0/0"]);
}

#[test]
fn time_in_a_queue_while_somebody_was_there_is_not_charged() {
    // Due at 11s with 7s left, and no slot free until the process died at 30s.
    for (resumed, expired) in [(37, false), (38, true)] {
        let mut scene = waiting();
        scene.at(resumed);
        scene.job = scene.refolded();
        let seen = Some(crate::scene::at(30));
        let said = said(&scene.tell(&Input::Resume { seen }));
        assert_eq!(said.len() > 1, expired, "{said:?}");
        let resumed = scene.job.times.last_at.since(crate::scene::at(30));
        assert_eq!(resumed, crate::scene::secs(if expired { 8 } else { 7 }));
    }
}
