//! How long items may be on hold, and which failures count for a breaker.

use undaunted_engine::breaker::BreakerFact;
use undaunted_policy::{FailureCause, Reason, WhenOpen};

use crate::fixture::{BREAKER, EXIT_1, TestedJob, at, breaker_map, opened};

#[test]
fn max_hold_applies_to_items_that_could_not_run_yet() {
    let mut test = opened(&breaker_map(3, ", max_hold: 20s", ""), 9);
    test.start().start().at(1).start();
    assert_eq!(test.held(), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(test.at(21).wake().outcome(), ("partial", Some(Reason::CircuitOpen), [0, 9, 0]));
}

#[test]
fn changed_settings_apply_to_held_items() {
    let text = breaker_map(3, ", max_hold: 20s", "");
    let mut test = opened(&text, 3);
    test.at(1).start();
    assert_eq!(test.next_wake(), Some(at(21)));
    for (longest, expected) in [(", max_hold: 40s", 41), (", max_hold: 5s", 6), ("", 60)] {
        test.update(&text.replace(", max_hold: 20s", longest));
        assert_eq!(test.next_wake(), Some(at(expected)), "{longest}");
        test.crash_and_resume();
        assert_eq!(test.next_wake(), Some(at(expected)), "{longest}");
    }
    assert_eq!(test.finish().outcome().0, "completed");
}

#[test]
fn failures_that_retry_on_excludes_count_for_the_breaker() {
    let mut test = TestedJob::started_over(&breaker_map(3, "", ", retry_on: [timeout]"), 3);
    test.fail_all(0..3);
    assert_eq!(test.breaker(BREAKER).word(), "open");
    assert_eq!(test.outcome(), ("partial", Some(Reason::Permanent), [0, 3, 0]));
}

#[test]
fn unreadable_output_does_not_count_for_the_breaker() {
    let text = breaker_map(2, "", "")
        .replace("shell: a", "shell: a\n      capture_output: n\n      capture_format: number");
    let mut test = TestedJob::started_over(&text, 2);
    test.fail(0, EXIT_1).succeed_with(1, "twelve");
    assert_eq!(test.breaker(BREAKER).failures(), 1);
}

#[test]
fn a_clock_that_was_set_back_does_not_lengthen_a_hold() {
    let mut test = opened(&breaker_map(3, ", max_hold: 20s", ""), 3);
    test.at(30).start();
    assert_eq!(test.hold_expiry(), Some(at(50)));
    test.at(5).crash_and_resume();
    assert_eq!(test.hold_expiry(), Some(at(25)));
    test.append_facts(BREAKER, None, vec![BreakerFact::Tripped { at: at(100_000) }]);
    assert_eq!(test.breaker(BREAKER).until(), Some(at(65)), "a minute from now");
}

#[test]
fn a_hold_that_begins_in_a_pause_is_extended_by_its_remainder() {
    let rule = ", rules: [{exit_code: 3, then: hold}]";
    let mut test = TestedJob::started_over(&breaker_map(1, ", max_hold: 20s", rule), 1);
    test.at(10).pause().at(30).fail(0, FailureCause::Exit(3));
    assert_eq!(test.hold_expiry(), Some(at(50)));
    test.at(40).unpause();
    assert_eq!(test.hold_expiry(), Some(at(60)));
}

#[test]
fn a_release_does_not_progress_while_the_job_is_paused() {
    let mut test = opened(&breaker_map(40, "", ""), 40);
    test.fail_all(3..40).at(1).start();
    assert_eq!(test.held().len(), 40);
    test.pause().reset(BREAKER).at(100).unpause();
    assert!(test.ready().len() < 40, "not all of them at once");
    test.at(106);
    assert_eq!(test.ready().len(), 40);
}

#[test]
fn a_breaker_that_fails_starts_probes_with_the_item_that_is_due() {
    let text = breaker_map(1, ", when_open: fail", ", initial_delay: 40s")
        .replace("threshold: 3", "threshold: 1")
        .replace("60s", "30s");
    let mut test = TestedJob::started_over(&text, 3);
    test.fail(0, EXIT_1).at(40);
    let lines_first = test.start().lines();
    assert_eq!(
        lines_first[0], "attempt_started 0/0 0.2 as 2, a probe",
        "what is due goes first: {lines_first:?}"
    );
    assert_eq!(test.held(), [0; 0]);
}

#[test]
fn held_items_are_not_held_again_once_the_breaker_fails_starts() {
    let mut test = opened(&breaker_map(3, "", ""), 5);
    test.at(1).start();
    assert_eq!(test.held(), [0, 1, 2]);
    test.configure(BREAKER, |settings| settings.when_open = WhenOpen::Fail).at(60);
    let lines_first = test.start().lines();
    assert_eq!(lines_first[1], "attempt_started 0/0 0.2 as 4, a probe");
    test.start();
    assert_eq!(test.held(), [0; 0], "{lines_first:?}");
}
