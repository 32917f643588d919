//! What other jobs do to a breaker holds here too, as soon as it is known.

use undaunted_engine::breaker::{BreakerFact, TargetSignal};
use undaunted_policy::{FailureCause, Reason, WhenOpen};

use crate::breakers::{NAME, finish, map, open, started};
use crate::scene::{Scene, at};
use crate::spoken::said;

#[test]
fn what_another_job_has_opened_holds_here() {
    let mut scene = Scene::over(&map(3, "", ""), 3);
    scene.at(10);
    scene.others(NAME, None, vec![BreakerFact::Tripped { at: at(4) }]);
    assert_eq!(said(&scene.start())[0], "held 0/0 0.0 until +64s");
    assert_eq!(scene.counted().0, 0);
    assert_eq!(scene.next_wake(), Some(at(64)));
    finish(&mut scene);
    assert_eq!(scene.came_to(), ("completed", None, [3, 0, 0]));
}

#[test]
fn failures_of_other_jobs_count_with_those_of_this_one() {
    let mut scene = Scene::over(&map(3, "", ""), 3);
    let _ = scene.start();
    let _ = scene.fail(0, FailureCause::Exit(1));
    let failed =
        BreakerFact::Reported { at: at(0), generation: 0, probe: false, signal: TargetSignal::Down, many: 1 };
    scene.others(NAME, Some("another"), vec![failed]);
    let _ = scene.fail(1, FailureCause::Exit(1));
    assert_eq!(scene.turned(), ["opened until +60s"], "three in a row");
}

#[test]
fn what_another_job_has_closed_lets_go_here_one_after_the_other() {
    let mut scene = open(3, 30);
    let _ = scene.start();
    scene.at(1);
    let _ = scene.start();
    assert_eq!(scene.held().len(), 6);
    scene.at(20);
    scene.reset(NAME);
    assert!(started(&scene.start()).len() <= 1, "not all at once");
    finish(&mut scene);
    assert_eq!(scene.came_to(), ("completed", None, [30, 0, 0]));
    assert!(scene.now <= at(26), "nobody waits for the old instant");
}

#[test]
fn while_another_job_probes_nothing_starts_here() {
    let mut scene = open(3, 6);
    let _ = scene.start();
    scene.at(1);
    let _ = scene.start();
    scene.at(60);
    let (at, generation) = (at(60), scene.breaker(NAME).breaker.generation());
    scene.others(NAME, Some("another"), vec![BreakerFact::Probed { at, generation }]);
    assert_eq!(scene.ready(), []);
    assert_eq!(scene.next_wake(), None);
    let _ = scene.crash_and_resume();
    assert_eq!(scene.ready(), []);
    // The process that probed is gone.
    scene.others(NAME, None, vec![BreakerFact::ProbeLost { at, generation }]);
    assert_eq!(started(&scene.start()), [3]);
}

#[test]
fn what_is_held_fails_when_the_latest_submission_says_so() {
    let mut scene = open(3, 3);
    scene.at(1);
    let _ = scene.start();
    assert_eq!(scene.held(), [0, 1, 2]);
    scene.configure(NAME, |settings| settings.when_open = WhenOpen::Fail);
    let _ = scene.start();
    assert_eq!(scene.came_to(), ("partial", Some(Reason::CircuitOpen), [0, 3, 0]));
    assert_eq!(scene.counted().0, 3, "no attempt was used");
}

#[test]
fn a_running_attempt_says_nothing_about_a_breaker_that_somebody_has_reset() {
    let mut scene = Scene::over(&map(3, ", half_open_max_calls: 1", ""), 3);
    let _ = scene.start();
    scene.reset(NAME);
    for item in 0..3 {
        let _ = scene.fail(item, FailureCause::Exit(1));
    }
    assert_eq!(scene.breaker(NAME).failures(), 0);
}
