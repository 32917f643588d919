//! What is true of everything that is shown, whatever has happened to a job.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use undaunted_engine::event::{Event, ItemEvent, JobEvent, Record, StepEvent};
use undaunted_engine::id::{ItemId, StepId};
use undaunted_engine::job::JobStage;
use undaunted_engine::view::{
    EntryView, InstantView, ItemStatus, ItemView, JobStatus, LiveJobStatus, StageView, forecast,
};
use undaunted_policy::{Reason, Timestamp};

use crate::fixture::{JobFixture, JobWalk, act, owner_action, workflow};
use crate::view_cases::{Shot, cases};
use crate::views::{Reading, Shown, show};

fn has_ended(status: LiveJobStatus) -> bool {
    match status {
        LiveJobStatus::Paused | LiveJobStatus::Interrupted | LiveJobStatus::Unreadable => false,
        LiveJobStatus::As(status) => match status {
            JobStatus::Running | JobStatus::Stopping | JobStatus::Suspended => false,
            JobStatus::Completed | JobStatus::Partial | JobStatus::Failed | JobStatus::Cancelled => true,
        },
    }
}

/// What is shown of a job, held against its journal.
fn keeps_every_law(shot: &Shot) {
    let shown = show(shot);
    let name = shot.name;
    let status = shown.job.status;
    assert_eq!(shown.explanation.status, status, "{name}");
    assert_eq!(shown.line.status, status, "{name}");
    assert_eq!(shown.resumes.status, status, "{name}");
    let ended = has_ended(status);
    assert_eq!(shown.job.ended_at.is_some(), ended, "{name}");
    assert_eq!(shown.explanation.ended_at, shown.job.ended_at, "{name}");
    assert_eq!(shown.line.ended_at, shown.job.ended_at, "{name}");
    for step in &shown.job.steps {
        let has_begun = !matches!(step.stage, StageView::Waiting | StageView::NotStarted);
        assert!(has_begun || step.started_at.is_none(), "{name}: {step:?}");
        let is_open = matches!(step.stage, StageView::Waiting | StageView::Reading | StageView::Running);
        assert!(!is_open || step.ended_at.is_none(), "{name}: {step:?}");
        assert!(!is_open || !ended, "{name}: {step:?}");
    }
    if ended {
        nothing_goes_on(&shown, name);
    } else {
        assert_eq!(shown.report.missing, [], "{name}: it may still begin");
    }
    is_cancelled_where_it_was(shot, &shown);
    for item in &shown.items {
        is_true_of_an_item(item, &shown, name);
    }
}

fn nothing_goes_on(shown: &Shown, name: &str) {
    let job = &shown.job;
    assert_eq!((job.waiting_total, job.held_total), (0, 0), "{name}");
    assert!(job.waiting.is_empty() && job.held.is_empty(), "{name}");
    let items = shown.explanation.items;
    assert_eq!((items.running, items.waiting, items.held), (0, 0, 0), "{name}");
    assert_eq!((shown.line.waiting, shown.line.held), (0, 0), "{name}");
    assert_eq!(shown.line.next_due_at, None, "{name}");
    let took = job.ended_at.unwrap().0.since(job.submitted_at.0);
    assert_eq!(shown.report.duration_ms.0, took, "{name}");
    if shown.job.steps.iter().all(|step| !step.is_map) {
        let reasons = shown.report.missing.iter().map(|it| it.reason);
        let blamed = reasons.filter(|reason| *reason == Reason::Tolerance);
        assert_eq!(blamed.count(), 0, "{name}: no map tolerates anything");
    }
}

/// A step that failed after the cancel of its job was cancelled.
fn is_cancelled_where_it_was(shot: &Shot, shown: &Shown) {
    if shown.job.status != LiveJobStatus::As(JobStatus::Cancelled) {
        return;
    }
    let (mut cancelled, mut before) = (false, Vec::new());
    for bytes in &shot.test.journal {
        match Record::decode(bytes).unwrap().event {
            Event::Job(JobEvent::Stopping { reason: Reason::Cancelled }) => cancelled = true,
            Event::Step(
                StepEvent::Failed { step }
                | StepEvent::InputFailed { step, .. }
                | StepEvent::Unreachable { step, .. },
            ) if !cancelled => before.push(step),
            Event::Job(_) | Event::Step(_) | Event::Item(_) | Event::Breaker(_) => {}
        }
    }
    for (number, step) in StepId::all().zip(&shown.job.steps) {
        let is_failed = step.stage == StageView::Failed;
        assert!(!is_failed || before.contains(&number), "{}: {step:?}", shot.name);
    }
}

fn is_true_of_an_item(item: &ItemView, shown: &Shown, name: &str) {
    let ended = has_ended(item.job_status);
    let is_settled = match item.status {
        ItemStatus::Running | ItemStatus::Waiting | ItemStatus::Held => false,
        ItemStatus::Pending => ended,
        ItemStatus::Succeeded | ItemStatus::Dead(_) | ItemStatus::Skipped(_) | ItemStatus::Missing(_) => true,
    };
    let what = format!("{name}: {} of {:?} is {:?}", item.item, item.step, item.status);
    assert!(is_settled || !ended, "{what}");
    assert!(!is_settled || item.next.is_none(), "{what}");
    assert_eq!(item.held.is_some(), item.status == ItemStatus::Held, "{what}");
    let is_dead = matches!(item.status, ItemStatus::Dead(_));
    let letters = shown.dead_letters.iter();
    let mut letters = letters.filter(|letter| letter.item == item.item);
    assert!(!is_dead || letters.any(|letter| letter.reason == item.reason), "{what}");
    if let (Some(argv), ItemStatus::Dead(_)) = (&item.argv, item.status) {
        assert!(!argv.is_empty(), "{what}");
    }
    let stops = item.history.iter().filter_map(|entry| match entry {
        EntryView::Stop(stop) => stop.decision.as_ref(),
        EntryView::Attempt(_) | EntryView::Mend(_) | EntryView::Held(_) | EntryView::Released(_) => None,
    });
    let foretold = item.next.iter().filter_map(|next| next.stops.decision.as_ref());
    for decision in stops.chain(foretold) {
        if let Some((overdue, budget)) = decision.overdue_ms.zip(decision.retry_budget_ms) {
            let waited = decision.spent_before_ms.0 + overdue.0;
            assert!(waited > budget.0, "{what}: {decision:?}");
        }
    }
}

#[test]
fn every_scene_keeps_every_law_of_what_is_shown() {
    for shot in cases() {
        keeps_every_law(&shot);
        foretells_its_resume(&shot, true);
    }
}

/// The retries that a resume refuses, with their arithmetic in words.
fn expired(records: &[Record]) -> Vec<(ItemId, String)> {
    let stops = records.iter().filter_map(|record| match &record.event {
        Event::Item(ItemEvent::CommandStopped(stopped)) if stopped.reason == Reason::RetryBudgetExpired => {
            Some((stopped.of.item(), format!("{:?}", stopped.sum.unwrap())))
        }
        _ => None,
    });
    stops.collect()
}

/// Clocks that stand still while a job is suspended: deadlines of items, ends of holds.
fn clocks(shown: &Shown) -> Vec<(String, Option<InstantView>, Option<InstantView>)> {
    let items = shown.items.iter().map(|item| {
        let hold = item.held.as_ref().and_then(|held| held.expires_at);
        (item.item.clone(), item.deadline, hold)
    });
    items.collect()
}

/// Ends of delay budgets.
fn budgets(shown: &Shown) -> Vec<(String, Option<InstantView>)> {
    let waiting = shown.job.waiting.iter();
    waiting.map(|it| (it.item.clone(), it.retry_budget_expires_at)).collect()
}

/// What is lines of a job that no process runs is what its resume does. Only if the clock was never set back
/// is also known outcome long a job stood still.
fn foretells_its_resume(shot: &Shot, is_steady: bool) {
    let stage = shot.test.job.stage;
    if shot.owner.is_some() || !matches!(stage, JobStage::Running | JobStage::Suspended) {
        return;
    }
    let reading = Reading::of(&shot.test);
    let context = reading.context(shot);
    let foretold = reading.items().filter_map(|item| {
        let stop = forecast(&context, item, 9)?.stop?;
        let is_expired = stop.reason == Some(Reason::RetryBudgetExpired);
        is_expired.then(|| (item, format!("{:?}", stop.sum)))
    });
    let foretold: Vec<(ItemId, String)> = foretold.collect();
    let before = show(shot);
    let mut test = shot.test.clone();
    test.restart();
    let records = test.resume(shot.seen).records();
    assert_eq!(expired(&records), foretold, "{}", shot.name);
    if stage != JobStage::Suspended || !is_steady {
        return;
    }
    let after = Shot { owner: Some(1), seen: None, name: shot.name, about: shot.about, test };
    assert_eq!(clocks(&show(&after)), clocks(&before), "{}", shot.name);
    if shot.test.job.times.paused.is_none() {
        assert_eq!(budgets(&show(&after)), budgets(&before), "{}", shot.name);
        return;
    }
    let mut unpaused = after;
    unpaused.test.unpause();
    assert_eq!(clocks(&show(&unpaused)), clocks(&before), "{}", shot.name);
}

#[test]
fn a_retry_that_is_foretold_to_come_after_the_deadline_of_its_item_is_not_made() {
    let mut shots = cases().into_iter();
    let shot = shots.find(|shot| shot.name == "interrupted_overdue_and_seen");
    let shot = shot.unwrap();
    let foretold = show(&shot).items[0].next.clone().unwrap();
    assert_eq!(foretold.stops.reason, Some(Reason::Deadline));
    assert_eq!(foretold.retries, [], "not even the one that waits");
    let mut test = shot.test;
    let attempts = test.attempts();
    test.restart().resume(shot.seen).start();
    assert_eq!(test.job.first_dead(), Some(Reason::Deadline));
    assert_eq!(test.attempts(), attempts, "none was made");
}

/// A job that no process runs now.
fn left(test: JobFixture, seen: Option<Timestamp>) -> Shot {
    Shot { name: "a walk", about: "", test, owner: None, seen }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn whatever_happens_to_a_job_what_is_shown_keeps_every_law(
        text in workflow(),
        seed in any::<u64>(),
        actions in vec(owner_action(), 0..50),
        away in 0_u64..90_000,
        alive in prop::option::of(0_u64..90_000),
    ) {
        let mut walk = JobWalk { test: JobFixture::seeded(&text, seed) };
        for action in &actions {
            act(&mut walk, action);
        }
        let is_steady = !format!("{actions:?}").contains("back: true");
        for suspended in [false, true] {
            let mut test = walk.test.clone();
            if suspended {
                test.suspend();
            }
            let last = test.job.times.last_at.max(test.now);
            test.now = last.after(Duration::from_millis(away));
            let seen = alive.map(|alive| last.after(Duration::from_millis(alive.min(away))));
            let shot = left(test, seen);
            keeps_every_law(&shot);
            foretells_its_resume(&shot, is_steady);
            keeps_every_law(&Shot { owner: Some(1), ..shot });
        }
        walk.finish();
        keeps_every_law(&left(walk.test, None));
    }
}
