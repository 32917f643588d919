//! Whatever the workflow, whatever its commands do and whenever its process dies: every law holds after every
//! record, and every job ends.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use undaunted_engine::event::{Event, ItemEvent, JobEvent};
use undaunted_engine::id::{AttemptNumber, CommandId, ItemId};
use undaunted_engine::input::Input;
use undaunted_engine::view::report;

use crate::fixture::{EXIT_1, JobWalk, SECOND, TestedJob, WalkOutcome, job_action, workflow};

/// The report of a job that has ended agrees with numbers counted from its journal.
fn adds_up(test: &TestedJob) {
    let job = &test.job;
    let records = test.decoded();
    let mut attempts: BTreeMap<(ItemId, CommandId), u64> = BTreeMap::new();
    let mut numbers: BTreeMap<(ItemId, CommandId), Vec<AttemptNumber>> = BTreeMap::new();
    let (mut main, mut delay, mut charged) = (0_u64, Duration::ZERO, 0_u32);
    for record in &records {
        match &record.event {
            Event::Item(ItemEvent::AttemptStarted(started)) => {
                let of = started.of;
                let place = (of.item(), of.command);
                *attempts.entry(place).or_default() += 1;
                numbers.entry(place).or_default().push(of.attempt);
                main += u64::from(job.plan().is_main(of.command));
            }
            Event::Item(ItemEvent::RetryScheduled(retrying)) => {
                charged += 1;
                if job.plan().is_main(retrying.of.command) {
                    delay += retrying.delay;
                }
            }
            Event::Item(ItemEvent::CommandRepeated { .. }) => charged += 1,
            Event::Item(ItemEvent::Held(held)) if held.arithmetic.is_some() => charged += 1,
            _ => {}
        }
    }
    for ((item, number), made) in attempts {
        let command = job.plan().command(number).unwrap();
        let numbers = numbers.get(&(item, number)).unwrap();
        if job.plan().is_main(number) {
            let expected = (1..=u32::try_from(made).unwrap()).map(AttemptNumber);
            let in_order = numbers.iter().copied().eq(expected);
            assert!(in_order, "{numbers:?} of {item:?} {number}");
        }
        let rounds = command.on_failure.as_ref().map_or(0, |it| it.max_attempts);
        if let Some(most) = command.retry.policy.bound().executions() {
            // A handler and its commands run again in every round.
            let rounds_of_all = if job.plan().is_main(number) { 1 } else { 3 };
            let most = (most + u64::from(rounds)) * rounds_of_all;
            assert!(made <= most, "{made} attempts of {item:?} {number}");
        }
    }
    let report = report(job);
    assert_eq!((report.attempts, report.delay_ms.0), (main, delay));
    if let Some(pool) = job.pool {
        assert_eq!(pool.consumed, charged);
        assert!(charged <= pool.limits.total);
    }
    let counts = report.items;
    let missing = u64::try_from(report.missing.len()).unwrap();
    let settled = counts.succeeded + counts.dead + counts.skipped;
    assert_eq!(settled + missing, counts.total);
    let ends = records.iter().filter(|record| {
        matches!(
            record.event,
            Event::Job(
                JobEvent::Completed(_) | JobEvent::Partial(_) | JobEvent::Failed(_) | JobEvent::Cancelled(_)
            )
        )
    });
    assert_eq!(ends.count(), 1);
}

proptest! {
    #[test]
    fn every_job_keeps_every_law_and_ends_whatever_happens_to_it(
        text in workflow(),
        seed in any::<u64>(),
        happenings in vec(job_action(), 0..60),
    ) {
        let mut walk = JobWalk { test: TestedJob::seeded(&text, seed) };
        for job_action in &happenings {
            walk.act(job_action);
        }
        walk.finish();
        adds_up(&walk.test);
    }

    #[test]
    fn a_job_that_reserves_starts_keeps_every_law(
        parallel in 1_u32..4,
        seed in any::<u64>(),
        happenings in vec(job_action(), 0..80),
    ) {
        let text = format!(
            "mode: mapreduce\nmap:\n  input: a.json\n  max_parallel: {parallel}\n  agent_template:\n    - shell: run\n      \
             retry_config: {{attempts: 3, initial_delay: 1s, jitter: true}}\n"
        );
        let mut walk = JobWalk { test: TestedJob::seeded(&text, seed) };
        walk.read(6, false);
        for job_action in &happenings {
            walk.act(job_action);
        }
        walk.finish();
        adds_up(&walk.test);
    }

    #[test]
    fn a_job_whose_commands_all_fail_ends_too(
        text in workflow().prop_filter("ends", |text| !text.contains("unlimited")),
        seed in any::<u64>(),
    ) {
        let mut walk = JobWalk { test: TestedJob::seeded(&text, seed) };
        for _ in 0..2000 {
            if walk.test.job.stage.has_ended() {
                break;
            }
            walk.read(3, false);
            walk.start();
            walk.end(0, WalkOutcome::Failure(EXIT_1));
            if walk.test.job.starts.running.is_empty() && walk.test.ready().is_empty() {
                walk.test.pass(SECOND * 30);
                walk.feed(&Input::Woke);
            }
        }
        prop_assert!(walk.test.job.stage.has_ended());
        adds_up(&walk.test);
    }
}
