//! Invariants of all views, whatever has happened to a job.

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

use crate::fixture::{JobWalk, TestedJob, act, owner_action, workflow};
use crate::view_cases::{ViewCase, cases};
use crate::views::{AllViews, ReplayedJob, all_views};

fn has_ended(status: LiveJobStatus) -> bool {
    match status {
        LiveJobStatus::Paused | LiveJobStatus::Interrupted | LiveJobStatus::Unreadable => false,
        LiveJobStatus::As(status) => match status {
            JobStatus::Running | JobStatus::Stopping | JobStatus::Suspended => false,
            JobStatus::Completed | JobStatus::Partial | JobStatus::Failed | JobStatus::Cancelled => true,
        },
    }
}

fn keeps_every_law(case: &ViewCase) {
    let views = all_views(case);
    let name = case.name;
    let status = views.job.status;
    assert_eq!(views.explanation.status, status, "{name}");
    assert_eq!(views.line.status, status, "{name}");
    assert_eq!(views.resumes.status, status, "{name}");
    let ended = has_ended(status);
    assert_eq!(views.job.ended_at.is_some(), ended, "{name}");
    assert_eq!(views.explanation.ended_at, views.job.ended_at, "{name}");
    assert_eq!(views.line.ended_at, views.job.ended_at, "{name}");
    for step in &views.job.steps {
        let has_begun = !matches!(step.stage, StageView::Waiting | StageView::NotStarted);
        assert!(has_begun || step.started_at.is_none(), "{name}: {step:?}");
        let is_open = matches!(step.stage, StageView::Waiting | StageView::Reading | StageView::Running);
        assert!(!is_open || step.ended_at.is_none(), "{name}: {step:?}");
        assert!(!is_open || !ended, "{name}: {step:?}");
    }
    if ended {
        nothing_goes_on(&views, name);
    } else {
        assert_eq!(views.report.missing, [], "{name}: it may still begin");
    }
    is_cancelled_where_it_was(case, &views);
    for item in &views.items {
        is_true_of_an_item(item, &views, name);
    }
}

fn nothing_goes_on(views: &AllViews, name: &str) {
    let job = &views.job;
    assert_eq!((job.waiting_total, job.held_total), (0, 0), "{name}");
    assert!(job.waiting.is_empty() && job.held.is_empty(), "{name}");
    let items = views.explanation.items;
    assert_eq!((items.running, items.waiting, items.held), (0, 0, 0), "{name}");
    assert_eq!((views.line.waiting, views.line.held), (0, 0), "{name}");
    assert_eq!(views.line.next_due_at, None, "{name}");
    let took = job.ended_at.unwrap().0.since(job.submitted_at.0);
    assert_eq!(views.report.duration_ms.0, took, "{name}");
    if views.job.steps.iter().all(|step| !step.is_map) {
        let reasons = views.report.missing.iter().map(|it| it.reason);
        let blamed = reasons.filter(|reason| *reason == Reason::Tolerance);
        assert_eq!(blamed.count(), 0, "{name}: no map tolerates anything");
    }
}

/// A step that fails after its job was cancelled is views as cancelled.
fn is_cancelled_where_it_was(case: &ViewCase, views: &AllViews) {
    if views.job.status != LiveJobStatus::As(JobStatus::Cancelled) {
        return;
    }
    let (mut cancelled, mut before) = (false, Vec::new());
    for bytes in &case.test.journal {
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
    for (number, step) in StepId::all().zip(&views.job.steps) {
        let is_failed = step.stage == StageView::Failed;
        assert!(!is_failed || before.contains(&number), "{}: {step:?}", case.name);
    }
}

fn is_true_of_an_item(item: &ItemView, views: &AllViews, name: &str) {
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
    let letters = views.dead_letters.iter();
    let mut letters = letters.filter(|letter| letter.item == item.item);
    assert!(!is_dead || letters.any(|letter| letter.reason == item.reason), "{what}");
    if let (Some(argv), ItemStatus::Dead(_)) = (&item.argv, item.status) {
        assert!(!argv.is_empty(), "{what}");
    }
    let stops = item.history.iter().filter_map(|entry| match entry {
        EntryView::Stop(stop) => stop.decision.as_ref(),
        EntryView::Attempt(_)
        | EntryView::Mend(_)
        | EntryView::Held(_)
        | EntryView::Released(_)
        | EntryView::Arrived(_) => None,
    });
    let forecast_stops = item.next.iter().filter_map(|next| next.stops.decision.as_ref());
    for decision in stops.chain(forecast_stops) {
        if let Some((overdue, budget)) = decision.overdue_ms.zip(decision.retry_budget_ms) {
            let waited = decision.spent_before_ms.0 + overdue.0;
            assert!(waited > budget.0, "{what}: {decision:?}");
        }
    }
}

#[test]
fn every_case_keeps_the_laws_of_views() {
    for case in cases() {
        keeps_every_law(&case);
        forecasts_its_resume(&case, true);
    }
}

/// The retries that a resume refuses, with their arithmetic.
fn expired(records: &[Record]) -> Vec<(ItemId, String)> {
    let stops = records.iter().filter_map(|record| match &record.event {
        Event::Item(ItemEvent::CommandStopped(stopped)) if stopped.reason == Reason::RetryBudgetExpired => {
            Some((stopped.of.item(), format!("{:?}", stopped.arithmetic.unwrap())))
        }
        _ => None,
    });
    stops.collect()
}

/// Instants that move while a job is suspended: deadlines of items, ends of holds.
fn clocks(views: &AllViews) -> Vec<(String, Option<InstantView>, Option<InstantView>)> {
    let items = views.items.iter().map(|item| {
        let hold = item.held.as_ref().and_then(|held| held.expires_at);
        (item.item.clone(), item.deadline, hold)
    });
    items.collect()
}

/// Ends of delay budgets.
fn budgets(views: &AllViews) -> Vec<(String, Option<InstantView>)> {
    let waiting = views.job.waiting.iter();
    waiting.map(|it| (it.item.clone(), it.retry_budget_expires_at)).collect()
}

/// The forecast for a job that no process runs is what its resume does. Suspended time is known only if the
/// clock was never set back.
fn forecasts_its_resume(case: &ViewCase, is_steady: bool) {
    let stage = case.test.job.stage;
    if case.owner.is_some() || !matches!(stage, JobStage::Running | JobStage::Suspended) {
        return;
    }
    let reading = ReplayedJob::of(&case.test);
    let context = reading.context(case);
    let forecast_stops = reading.items().filter_map(|item| {
        let stop = forecast(&context, item, 9)?.stop?;
        let is_expired = stop.reason == Some(Reason::RetryBudgetExpired);
        is_expired.then(|| (item, format!("{:?}", stop.sum)))
    });
    let forecast_stops: Vec<(ItemId, String)> = forecast_stops.collect();
    let before = all_views(case);
    let mut test = case.test.clone();
    test.restart();
    let records = test.resume(case.seen).records();
    assert_eq!(expired(&records), forecast_stops, "{}", case.name);
    if stage != JobStage::Suspended || !is_steady {
        return;
    }
    let after = ViewCase { owner: Some(1), seen: None, name: case.name, about: case.about, test };
    assert_eq!(clocks(&all_views(&after)), clocks(&before), "{}", case.name);
    if case.test.job.times.paused.is_none() {
        assert_eq!(budgets(&all_views(&after)), budgets(&before), "{}", case.name);
        return;
    }
    let mut unpaused = after;
    unpaused.test.unpause();
    assert_eq!(clocks(&all_views(&unpaused)), clocks(&before), "{}", case.name);
}

#[test]
fn a_retry_forecast_to_miss_the_item_deadline_is_not_made() {
    let mut cases = cases().into_iter();
    let case = cases.find(|case| case.name == "interrupted_overdue_and_seen");
    let case = case.unwrap();
    let forecast_stops = all_views(&case).items[0].next.clone().unwrap();
    assert_eq!(forecast_stops.stops.reason, Some(Reason::Deadline));
    assert_eq!(forecast_stops.retries, [], "not even the one that waits");
    let mut test = case.test;
    let attempts = test.attempts();
    test.restart().resume(case.seen).start();
    assert_eq!(test.job.first_dead(), Some(Reason::Deadline));
    assert_eq!(test.attempts(), attempts, "none was made");
}

/// A job that no process runs now.
fn left(test: TestedJob, seen: Option<Timestamp>) -> ViewCase {
    ViewCase { name: "a walk", about: "", test, owner: None, seen }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_laws_of_views_hold_whatever_happens_to_a_job(
        text in workflow(),
        seed in any::<u64>(),
        actions in vec(owner_action(), 0..50),
        away in 0_u64..90_000,
        alive in prop::option::of(0_u64..90_000),
    ) {
        let mut walk = JobWalk { test: TestedJob::seeded(&text, seed) };
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
            let case = left(test, seen);
            keeps_every_law(&case);
            forecasts_its_resume(&case, is_steady);
            keeps_every_law(&ViewCase { owner: Some(1), ..case });
        }
        walk.finish();
        keeps_every_law(&left(walk.test, None));
    }
}
