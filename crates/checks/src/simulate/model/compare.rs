//! Compares the journal of a run without faults with the prediction.
//!
//! The only file of the model that knows the engine, and only its records and the final state of a job.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use undaunted_engine::event::{AttemptId, Event, ItemEvent, Record};
use undaunted_engine::id::{ItemId, StepId};
use undaunted_engine::job::{ItemState, Job, SettledItem};
use undaunted_engine::view::report;
use undaunted_policy::Reason;

use super::prediction::ObservedChoices;
use super::prediction::{DelayRange, PredictedAttempts, PredictedEnd, Prediction};
use crate::simulate::case::JobCase;

/// How a run compares with the prediction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelComparison {
    Same,
    Different(Vec<String>),
    /// The semantics do not specify the result.
    Unspecified(&'static str),
}

/// Compares a run with the prediction that follows from its random choices.
pub fn compare_run(case: &JobCase, job: &Job, records: &[Record]) -> ModelComparison {
    let observed_choices = observed_choices(job, records);
    match super::predict_with(case, &observed_choices) {
        Err(open) => ModelComparison::Unspecified(open.0),
        Ok(prediction) => {
            let found = differences(&prediction, job, records);
            if found.is_empty() {
                ModelComparison::Same
            } else if several_were_released(records) {
                ModelComparison::Unspecified("the order in which a breaker lets go what it holds")
            } else {
                ModelComparison::Different(found)
            }
        }
    }
}

/// Whether a breaker closed that held several items, whose order of release is unspecified. It has closed if
/// the released start is not a probe.
fn several_were_released(records: &[Record]) -> bool {
    let mut held = BTreeSet::new();
    let mut released = None;
    records.iter().any(|record| match &record.event {
        Event::Item(ItemEvent::Held(it)) => {
            held.insert(it.of.item());
            false
        }
        Event::Item(ItemEvent::Released(it)) => {
            let place = it.of.item();
            released = Some((place, held.len()));
            held.remove(&place);
            false
        }
        Event::Item(ItemEvent::DeadLettered { of, .. }) => {
            held.remove(&of.item());
            false
        }
        Event::Item(ItemEvent::AttemptStarted(started)) => {
            let place = started.of.item();
            let several = released.take().is_some_and(|(of, many)| of == place && many > 1);
            several && started.pass.as_ref().is_some_and(|pass| !pass.probe)
        }
        _ => false,
    })
}

/// The random choices of a run.
pub fn observed_choices(job: &Job, records: &[Record]) -> ObservedChoices {
    let mut observed_choices = ObservedChoices::default();
    for record in records {
        match &record.event {
            Event::Item(ItemEvent::RetryScheduled(retrying)) => {
                let key = key(job, retrying.of);
                observed_choices.delays.entry(key).or_default().push(retrying.delay);
            }
            Event::Item(ItemEvent::CommandStopped(stopped)) => {
                // A refused retry had a random delay too.
                if let Some(delay) = stopped.arithmetic.and_then(|sum| sum.wait()) {
                    let key = key(job, stopped.of);
                    observed_choices.delays.entry(key).or_default().push(delay);
                }
            }
            Event::Item(ItemEvent::Released(released)) => {
                let (_, item) = key(job, released.of);
                let at = record.at.since(job.times.submitted_at);
                observed_choices.releases.entry(item).or_default().push(at);
            }
            _ => {}
        }
    }
    observed_choices
}

/// The command and the item, as predictions name them.
fn key(job: &Job, of: AttemptId) -> (String, String) {
    let command = job.plan().command(of.command);
    let command = command.map_or_else(String::new, |it| it.id.clone());
    (command, item_name(job, of.item()))
}

fn item_name(job: &Job, item: ItemId) -> String {
    if job.plan().is_map(item.step) {
        return job.identity(item).to_owned();
    }
    let command = job.plan().first(item.step);
    let command = command.and_then(|it| job.plan().command(it));
    let name = command.map_or_else(String::new, |it| it.id.clone());
    if job.submitted().text.contains("mode: flow") { format!("{name}#{}", item.index) } else { name }
}

/// All differences between a run and its prediction.
pub fn differences(prediction: &Prediction, job: &Job, records: &[Record]) -> Vec<String> {
    let mut found = Vec::new();
    let report = report(job);
    let status = report.status.word();
    if status != prediction.end.status {
        found.push(format!("it ended {status}, not {}", prediction.end.status));
    }
    let reason = report.reason.map_or("none", Reason::word);
    let reasons = &prediction.end.reasons;
    if !reasons.is_empty() && !reasons.contains(reason) {
        found.push(format!("the reason is {reason}, not one of {reasons:?}"));
    }
    // A breaker may hold an item that has never started, or not start it at all.
    let holds = records.iter().any(|it| matches!(it.event, Event::Item(ItemEvent::Held(_))));
    compare_items(prediction, job, holds, &mut found);
    compare_made(prediction, job, records, &mut found);
    let spent = job.pool.map(|pool| pool.consumed);
    if spent != prediction.pool_spent {
        let expected = prediction.pool_spent;
        found.push(format!("{spent:?} of the pool was spent, not {expected:?}"));
    }
    if job.dead.len() != prediction.dead {
        let (dead, expected) = (job.dead.len(), prediction.dead);
        found.push(format!("there are {dead} dead letters, not {expected}"));
    }
    found
}

fn compare_items(prediction: &Prediction, job: &Job, holds: bool, found: &mut Vec<String>) {
    let mut fates: BTreeMap<String, String> = BTreeMap::new();
    for (number, step) in StepId::all().zip(&job.steps) {
        for (item, state) in step.items.iter() {
            let fate = match state {
                ItemState::Settled(SettledItem::Succeeded) => "succeeded".to_owned(),
                ItemState::Settled(SettledItem::Dead(reason)) => format!("dead: {}", reason.word()),
                ItemState::Settled(SettledItem::Skipped(_)) => "skipped".to_owned(),
                ItemState::Settled(SettledItem::Missing(_)) | ItemState::Pending => "missing".to_owned(),
                ItemState::Active(_) => "under way".to_owned(),
            };
            let _ = fates.insert(item_name(job, number.item(item)), fate);
        }
    }
    for (name, fate) in &prediction.items {
        let expected = match fate {
            PredictedEnd::Succeeded => "succeeded".to_owned(),
            PredictedEnd::Dead(reason) => format!("dead: {reason}"),
            PredictedEnd::Skipped => "skipped".to_owned(),
            PredictedEnd::Missing => "missing".to_owned(),
        };
        let fate = fates.remove(name).unwrap_or_else(|| "missing".to_owned());
        let attempted = prediction.made.keys().any(|(_, item)| item == name);
        let not_done = |fate: &str| fate == "skipped" || fate == "missing";
        let alike = holds && !attempted && not_done(&fate) && not_done(&expected);
        if fate != expected && !alike {
            found.push(format!("{name} is {fate}, not {expected}"));
        }
    }
    for (name, fate) in fates {
        found.push(format!("{name} is {fate}, and was not expected at all"));
    }
}

/// The journalled attempts of one command for one item.
#[derive(Default)]
struct JournalledAttempts {
    starts: Vec<Duration>,
    delays: Vec<Duration>,
    spent: Duration,
}

fn compare_made(prediction: &Prediction, job: &Job, records: &[Record], found: &mut Vec<String>) {
    let mut made: BTreeMap<(String, String), JournalledAttempts> = BTreeMap::new();
    for record in records {
        match &record.event {
            Event::Item(ItemEvent::AttemptStarted(started)) => {
                let entry = made.entry(key(job, started.of)).or_default();
                entry.starts.push(record.at.since(job.times.submitted_at));
            }
            Event::Item(ItemEvent::RetryScheduled(retrying)) => {
                let entry = made.entry(key(job, retrying.of)).or_default();
                entry.delays.push(retrying.delay);
                entry.spent = retrying.arithmetic.spent_after;
            }
            _ => {}
        }
    }
    for (key, expected) in &prediction.made {
        let (command, item) = key;
        let JournalledAttempts { starts, delays, spent } = made.remove(key).unwrap_or_default();
        let of = format!("{command} of {item}");
        let attempts = u32::try_from(starts.len()).unwrap_or(u32::MAX);
        if attempts != expected.attempts {
            let wanted = expected.attempts;
            found.push(format!("{attempts} attempts of {of}, not {wanted}"));
        } else if !expected.starts.is_empty() && starts != expected.starts {
            let wanted = &expected.starts;
            found.push(format!("starts of {of}: {starts:?}, not {wanted:?}"));
        }
        let held = delays.len() == expected.delays.len()
            && delays.iter().zip(&expected.delays).all(|(it, range)| range.holds(*it));
        if !held {
            let wanted = delays_text(expected);
            found.push(format!("delays of {of}: {delays:?}, not {wanted}"));
        }
        if held && !is_near(expected.spent, spent, delays.len()) {
            let wanted = expected.spent;
            found.push(format!("spent by {of}: {spent:?}, not {wanted:?}"));
        }
    }
    for ((command, item), done) in made {
        let attempts = done.starts.len();
        found.push(format!("{attempts} attempts of {command} of {item}, not 0"));
    }
}

/// Whether a sum of rounded delays lies in its range.
fn is_near(range: DelayRange, spent: Duration, count: usize) -> bool {
    let grain = Duration::from_millis(u64::try_from(count).unwrap_or(u64::MAX));
    let wider =
        DelayRange { least: range.least.saturating_sub(grain), most: range.most.saturating_add(grain) };
    range.holds(spent) || (!range.is_exact() && wider.holds(spent))
}

fn delays_text(made: &PredictedAttempts) -> String {
    let delays = made.delays.iter().map(|range| {
        if range.is_exact() {
            format!("{:?}", range.least)
        } else {
            format!("{:?} to {:?}", range.least, range.most)
        }
    });
    format!("[{}]", delays.collect::<Vec<_>>().join(", "))
}
