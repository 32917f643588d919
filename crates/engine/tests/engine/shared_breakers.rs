//! What other jobs do to a breaker holds here too, as soon as it is known.

use undaunted_engine::breaker::{BreakerFact, TargetSignal};
use undaunted_policy::{Reason, WhenOpen};

use crate::fixture::{BREAKER, EXIT_1, JobFixture, at, breaker_map, open};

#[test]
fn what_another_job_has_opened_holds_here() {
    let mut test = JobFixture::over(&breaker_map(3, "", ""), 3);
    test.at(10).append_facts(BREAKER, None, vec![BreakerFact::Tripped { at: at(4) }]);
    assert_eq!(test.start().lines()[0], "held 0/0 0.0 until +64s");
    assert_eq!(test.attempts(), 0);
    assert_eq!(test.next_wake(), Some(at(64)));
    test.finish();
    assert_eq!(test.outcome(), ("completed", None, [3, 0, 0]));
}

#[test]
fn failures_of_other_jobs_count_with_those_of_this_one() {
    let mut test = JobFixture::started_over(&breaker_map(3, "", ""), 3);
    test.fail(0, EXIT_1);
    let failed =
        BreakerFact::Reported { at: at(0), generation: 0, probe: false, signal: TargetSignal::Down, many: 1 };
    test.append_facts(BREAKER, Some("another"), vec![failed]).fail(1, EXIT_1);
    assert_eq!(test.transitions(), ["opened until +60s"], "three in a row");
}

#[test]
fn what_another_job_has_closed_lets_go_here_one_after_the_other() {
    let mut test = open(3, 30);
    test.start().at(1).start();
    assert_eq!(test.held().len(), 6);
    test.at(20).reset(BREAKER);
    assert!(test.start().started_items().len() <= 1, "not all at once");
    test.finish();
    assert_eq!(test.outcome(), ("completed", None, [30, 0, 0]));
    assert!(test.now <= at(26), "nobody waits for the old instant");
}

#[test]
fn while_another_job_probes_nothing_starts_here() {
    let mut test = open(3, 6);
    test.start().at(1).start().at(60);
    let (at, generation) = (at(60), test.breaker(BREAKER).breaker.generation());
    test.append_facts(BREAKER, Some("another"), vec![BreakerFact::Probed { at, generation }]);
    assert_eq!(test.ready(), []);
    assert_eq!(test.next_wake(), None);
    test.crash_and_resume();
    assert_eq!(test.ready(), []);
    // The process that probed is gone.
    test.append_facts(BREAKER, None, vec![BreakerFact::ProbeLost { at, generation }]);
    assert_eq!(test.start().started_items(), [3]);
}

#[test]
fn what_is_held_fails_when_the_latest_submission_says_so() {
    let mut test = open(3, 3);
    test.at(1).start();
    assert_eq!(test.held(), [0, 1, 2]);
    test.configure(BREAKER, |settings| settings.when_open = WhenOpen::Fail).start();
    assert_eq!(test.outcome(), ("partial", Some(Reason::CircuitOpen), [0, 3, 0]));
    assert_eq!(test.attempts(), 3, "no attempt was used");
}

#[test]
fn a_running_attempt_says_nothing_about_a_breaker_that_somebody_has_reset() {
    let mut test = JobFixture::started_over(&breaker_map(3, ", half_open_max_calls: 1", ""), 3);
    test.reset(BREAKER).fail_all(0..3);
    assert_eq!(test.breaker(BREAKER).failures(), 0);
}
