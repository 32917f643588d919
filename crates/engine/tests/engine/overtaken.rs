//! Somebody else was faster to change a breaker: starts are taken back, results stand.

use undaunted_engine::event::Event;
use undaunted_policy::Cause;

use crate::scene::{T0, at};
use crate::two_jobs::{Driver, World, start_of};

/// Two jobs of three items, which run two at a time.
fn two() -> World {
    let text = "
mode: mapreduce
map:
  input: a
  max_parallel: 2
  agent_template:
    - {shell: a, retry_config: {attempts: 4, backoff: fixed}, breaker: {name: payments, failure_threshold: 2}}
";
    World::of(&[(text.to_owned(), 3), (text.to_owned(), 3)])
}

#[test]
fn a_start_that_another_job_was_faster_to_forbid_is_taken_back_and_no_attempt_is_used() {
    let mut world = two();
    world.drivers[0].start(T0);
    world.flush(0);
    world.drivers[1].start(T0);
    assert_eq!(world.drivers[1].job.running.len(), 2);
    world.end(0, 0, Some(Cause::Exit(1)));
    world.end(0, 0, Some(Cause::Exit(1)));
    world.flush(0);
    assert_eq!(world.kept["payments"].1.word(), "open");
    world.flush(1);
    let driver = &world.drivers[1];
    assert_eq!((driver.job.running.len(), driver.begun.len()), (0, 0));
    assert_eq!(driver.job.held_by("payments"), 2);
    assert_eq!(driver.job.counts.attempts, 0);
    let starts = driver.journal.iter().filter_map(start_of);
    assert_eq!(starts.count(), 0, "nothing was begun, and nothing recorded");
    world.heal();
}

#[test]
fn results_stand_when_another_job_was_faster_and_the_breaker_makes_of_them_what_it_makes() {
    let mut world = two();
    for which in [0, 1] {
        world.drivers[which].start(T0);
        world.flush(which);
    }
    // Each has seen one failure; together they are two in a row.
    world.end(0, 0, Some(Cause::Exit(1)));
    world.end(1, 0, Some(Cause::Exit(1)));
    world.flush(0);
    world.flush(1);
    assert_eq!(world.kept["payments"].1.word(), "open");
    let opened = |driver: &Driver| {
        let mut records = driver.journal.iter();
        records.any(|record| matches!(record.event, Event::BreakerOpened(_)))
    };
    assert_eq!(
        [opened(&world.drivers[0]), opened(&world.drivers[1])],
        [false, true],
        "whoever came second"
    );
    assert_eq!(world.drivers[1].job.counts.attempts, 2);
    world.heal();
}

#[test]
fn of_two_jobs_that_would_probe_one_does() {
    let mut world = two();
    world.by_hand(true);
    for which in [0, 1] {
        world.look(which);
        world.drivers[which].start(T0);
        world.flush(which);
    }
    world.now = at(60);
    for which in [0, 1] {
        world.drivers[which].start(world.now);
        assert_eq!(world.drivers[which].job.running.len(), 1);
    }
    world.flush(1);
    world.flush(0);
    let running = [0, 1].map(|which: usize| world.drivers[which].job.running.len());
    assert_eq!(running, [0, 1]);
    assert_eq!(world.drivers[0].job.held_by("payments"), 3, "with that one");
    let probe = world.kept["payments"].1.probe.clone();
    assert_eq!(probe.unwrap().job, "job1");
    world.heal();
}
