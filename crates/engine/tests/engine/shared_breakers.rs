//! Breakers that other jobs open, close and probe.

use undaunted_engine::breaker::{BreakerFact, TargetSignal};
use undaunted_policy::{Reason, WhenOpen};

use crate::fixture::{BREAKER, EXIT_1, TestedJob, at, breaker_map, open};

#[test]
fn a_breaker_opened_by_another_job_holds_items() {
    let mut test = TestedJob::over(&breaker_map(3, "", ""), 3);
    test.at(10).append_facts(BREAKER, None, vec![BreakerFact::Tripped { at: at(4) }]);
    assert_eq!(test.start().lines()[0], "held 0/0 0.0 until +64s");
    assert_eq!(test.attempts(), 0);
    assert_eq!(test.next_wake(), Some(at(64)));
    assert_eq!(test.finish().outcome(), ("completed", None, [3, 0, 0]));
}

#[test]
fn failures_of_several_jobs_count_together() {
    let mut test = TestedJob::started_over(&breaker_map(3, "", ""), 3);
    test.fail(0, EXIT_1);
    let failed =
        BreakerFact::Reported { at: at(0), generation: 0, probe: false, signal: TargetSignal::Down, many: 1 };
    test.append_facts(BREAKER, Some("another"), vec![failed]).fail(1, EXIT_1);
    assert_eq!(test.transitions(), ["opened until +60s"], "three in a row");
}

#[test]
fn a_breaker_closed_by_another_job_releases_items_one_after_the_other() {
    let mut test = open(3, 30);
    test.start().at(1).start();
    assert_eq!(test.held().len(), 6);
    test.at(20).reset(BREAKER);
    assert!(test.start().started_items().len() <= 1, "not all at once");
    assert_eq!(test.finish().outcome(), ("completed", None, [30, 0, 0]));
    assert!(test.now <= at(26), "no job waits for the old instant");
}

#[test]
fn nothing_starts_while_another_job_probes() {
    let mut test = open(3, 6);
    test.start().at(1).start().at(60);
    let (at, generation) = (at(60), test.breaker(BREAKER).breaker.generation());
    test.append_facts(BREAKER, Some("another"), vec![BreakerFact::Probed { at, generation }]);
    assert_eq!(test.ready(), []);
    assert_eq!(test.next_wake(), None);
    test.crash_and_resume();
    assert_eq!(test.ready(), []);
    // The process that probed has died.
    test.append_facts(BREAKER, None, vec![BreakerFact::ProbeLost { at, generation }]);
    assert_eq!(test.start().started_items(), [3]);
}

#[test]
fn held_items_fail_when_a_later_submission_sets_when_open_fail() {
    let mut test = open(3, 3);
    test.at(1).start();
    assert_eq!(test.held(), [0, 1, 2]);
    test.configure(BREAKER, |settings| settings.when_open = WhenOpen::Fail).start();
    assert_eq!(test.outcome(), ("partial", Some(Reason::CircuitOpen), [0, 3, 0]));
    assert_eq!(test.attempts(), 3, "no attempt was used");
}

#[test]
fn an_attempt_from_before_a_reset_does_not_count() {
    let mut test = TestedJob::started_over(&breaker_map(3, ", half_open_max_calls: 1", ""), 3);
    test.reset(BREAKER).fail_all(0..3);
    assert_eq!(test.breaker(BREAKER).failures(), 0);
}
