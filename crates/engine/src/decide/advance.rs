//! What follows from a state without an input: steps start and end, a tolerance is exceeded, the job ends.
//!
//! Each call returns only the next change. [`react`] applies it and calls again, so no decision has to foresee
//! what another one changes.

use undaunted_policy::{CompletionRule, Reason, Timestamp};

use super::draft::EventDraft;
use super::fail::{cut_off, item_succeeded};
use super::hold::past_deadline_while_held;
use super::input::decide;
use super::words::with_last;
use super::{flow, late};
use crate::breaker::BreakerReport;
use crate::event::{CompletionReached, Event, ItemEvent, JobEnded, JobEvent, Record, StepEvent};
use crate::id::StepId;
use crate::input::Input;
use crate::job::{Job, JobStage, StepStage, StepState};
use crate::workflow::InputSource;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reaction {
    /// Already applied to the job. They must be on disk before the runner acts on any of them.
    pub records: Vec<Record>,
    /// For the job's breakers, to be written in the same append.
    pub reports: Vec<BreakerReport>,
}

/// Decides an input and everything that follows from it.
pub fn react(job: &mut Job, input: &Input, now: Timestamp) -> Reaction {
    let mut records = Vec::new();
    let reports = react_into(job, input, now, &mut records);
    Reaction { records, reports }
}

/// As [`react`], but adds the records to those of earlier inputs.
pub fn react_into(
    job: &mut Job,
    input: &Input,
    now: Timestamp,
    records: &mut Vec<Record>,
) -> Vec<BreakerReport> {
    let mut events = decide(job, input, now);
    // Only `Woke` lets deadlines pass. After a resume, results that arrived during the downtime count first,
    // however late they are.
    let time = if *input == Input::Woke { now } else { Timestamp::ZERO };
    let mut reports = Vec::new();
    loop {
        let mut changed = None;
        for event in events.drain(..) {
            changed = late::changed_step(&event).or(changed);
            let record = Record { at: now, event };
            reports.extend(job.report_of(&record));
            job.apply(&record);
            records.push(record);
        }
        // Also after an input without events: a job that was just submitted must start.
        events = changed.map_or_else(Vec::new, |step| late::follow(job, step));
        if events.is_empty() {
            events = advance(job, time);
        }
        if events.is_empty() {
            return reports;
        }
    }
}

/// What follows from the state alone once `now` has been reached.
pub fn advance(job: &Job, now: Timestamp) -> Vec<Event> {
    if !job.succeeded_before.is_empty() {
        let mut draft = EventDraft::new(job, now);
        for item in &job.succeeded_before {
            if let Some(active) = job.active(*item) {
                item_succeeded(&mut draft, active.last_attempt(*item));
            }
        }
        return draft.into_events();
    }
    match job.stage {
        JobStage::Running => advance_running(job, now),
        JobStage::Stopping(reason) => advance_stopping(job, reason),
        JobStage::Suspended
        | JobStage::Completed
        | JobStage::Partial
        | JobStage::Failed
        | JobStage::Cancelled => Vec::new(),
    }
}

fn advance_running(job: &Job, now: Timestamp) -> Vec<Event> {
    if job.workflow().flow.is_some() {
        return flow::advance(job, now);
    }
    for (step, state) in job.open_steps() {
        let events = match state.stage {
            StepStage::Waiting => vec![start(job, step)],
            StepStage::Running => settle(job, step, state, now),
            StepStage::Reading(_) | StepStage::Completed | StepStage::Failed | StepStage::Skipped => {
                Vec::new()
            }
        };
        if !events.is_empty() {
            return events;
        }
    }
    if job.open.failed > 0 {
        let left = job.open.left.iter().filter_map(|&step| Some((step, job.step(step)?)));
        let dropped: Vec<Event> = left.flat_map(|(step, state)| dropped(job, step, state)).collect();
        if dropped.is_empty() && job.starts.running.is_empty() && job.starts.reserved.is_empty() {
            return vec![Event::Job(JobEvent::Failed(Box::new(ending(job))))];
        }
        return dropped;
    }
    if job.open.completed == job.steps.len() && job.open.left.is_empty() {
        return vec![completed(job)];
    }
    Vec::new()
}

pub(super) fn completed(job: &Job) -> Event {
    let mut ended = Box::new(ending(job));
    if job.counted().all(|(step, state)| job.is_met(step, state)) {
        ended.reason = None;
        Event::Job(JobEvent::Completed(ended))
    } else {
        Event::Job(JobEvent::Partial(ended))
    }
}

fn start(job: &Job, step: StepId) -> Event {
    let map = job.plan().map(step);
    let by_command = map.is_some_and(|map| matches!(map.input.source, InputSource::Shell(_)));
    Event::Step(StepEvent::Started { step, start: by_command.then_some(job.starts.next) })
}

fn settle(job: &Job, step: StepId, state: &StepState, now: Timestamp) -> Vec<Event> {
    if state.reached.is_some() {
        return complete_early(job, step, state);
    }
    let map = job.plan().map(step);
    if let Some(map) = map {
        let failed = state.dead.saturating_sub(state.forgiven);
        let tolerance = &map.tolerance;
        if tolerance.exceeded(state.settled().into(), failed.into()) {
            return vec![Event::Job(JobEvent::Stopping { reason: Reason::Tolerance })];
        }
        // Asked after every item: without `best_effort` no rule applies before all have reported.
        if !map.completion.best_effort && state.settled() < state.items.len() {
            return Vec::new();
        }
        let completion = reached(step, state, &map.completion, now);
        if map.completion.best_effort || completion.is_some() {
            return completion.into_iter().collect();
        }
    }
    if state.settled() < state.items.len() {
        return Vec::new();
    }
    vec![if state.dead > 0 && map.is_none() {
        Event::Step(StepEvent::Failed { step })
    } else {
        Event::Step(StepEvent::Completed { step })
    }]
}

/// Completes a step by its rule; `None` while the rule does not apply. Without `best_effort` all items have to
/// report.
pub(super) fn reached(
    step: StepId,
    state: &StepState,
    rule: &CompletionRule,
    now: Timestamp,
) -> Option<Event> {
    let tally = state.reports();
    let deadline = state.deadline(rule);
    let completion = rule.decide(tally, deadline, now)?;
    let (success, min) = if rule.best_effort {
        (completion.success, rule.min_of(tally.target))
    } else {
        // Items that are skipped have reported, but only dead letters keep the job from being completed.
        (state.dead == 0, tally.target)
    };
    let reached = CompletionReached {
        step,
        why: completion.reason.into(),
        success,
        completed: tally.completed,
        failed: tally.failed,
        target: tally.target,
        min,
        deadline,
        best_effort: Some(rule.best_effort),
    };
    Some(StepEvent::CompletionReached(Box::new(reached)).into())
}

/// Completes a step whose rule was met. Unless the rule leaves running items alone, waiting items are skipped
/// and running ones end first.
fn complete_early(job: &Job, step: StepId, state: &StepState) -> Vec<Event> {
    let left = state.redriven.is_empty() && job.leaves(step);
    let dropped: Vec<Event> = dropped(job, step, state).collect();
    if dropped.is_empty() && (left || !state.is_busy()) {
        return vec![Event::Step(StepEvent::Completed { step })];
    }
    dropped
}

/// Skips the waiting and held items that must not continue.
pub(super) fn dropped<'j>(
    job: &'j Job,
    step: StepId,
    state: &'j StepState,
) -> impl Iterator<Item = Event> + 'j {
    unsettled(state).filter_map(move |index| {
        let reason = job.end_reason(step.item(index))?;
        Some(skipped(step, index, reason))
    })
}

fn skipped(step: StepId, index: u32, reason: Reason) -> Event {
    Event::Item(ItemEvent::Skipped { step, index, reason })
}

fn unsettled(state: &StepState) -> impl Iterator<Item = u32> {
    state.waiting.iter().map(|(_, item)| item).chain(state.held.items())
}

/// Ends the waiting and held items of a job whose deadline has passed.
fn cut_off_unsettled(job: &Job) -> Vec<Event> {
    let mut draft = EventDraft::new(job, job.times.last_at);
    for (step, state) in StepId::all().zip(&job.steps) {
        for index in unsettled(state) {
            let item = step.item(index);
            let Some(active) = job.active(item) else { continue };
            let sentence = match state.held.get(index) {
                Some(hold) => past_deadline_while_held(&hold.breaker),
                None => Reason::Deadline.sentence().to_owned(),
            };
            let error = with_last(&sentence, &draft.last_error(active));
            cut_off(&mut draft, active.last_attempt(item), active, &error);
        }
    }
    draft.into_events()
}

/// Settles what waits, and ends the job once nothing runs. Starts nothing.
fn advance_stopping(job: &Job, reason: Reason) -> Vec<Event> {
    let mut events = if reason == Reason::Deadline {
        cut_off_unsettled(job)
    } else {
        let steps = StepId::all().zip(&job.steps);
        steps
            .flat_map(|(step, state)| unsettled(state).map(move |index| skipped(step, index, reason)))
            .collect()
    };
    // An input command that the runner ended reports too, as a failed input.
    if !events.is_empty() || job.has_running() {
        return events;
    }
    if job.open.completed == job.steps.len() && reason == Reason::Deadline {
        // All steps are completed; only items that their rule had left running were ended.
        return vec![completed(job)];
    }
    let open = |stage| matches!(stage, StepStage::Running | StepStage::Reading(_));
    let open = StepId::all().zip(&job.steps).filter(|(_, state)| open(state.stage));
    events.extend(open.map(|(step, _)| Event::Step(StepEvent::Failed { step })));
    let mut ended = Box::new(ending(job));
    ended.reason = Some(reason);
    events.push(Event::Job(if reason == Reason::Cancelled {
        JobEvent::Cancelled(ended)
    } else {
        JobEvent::Failed(ended)
    }));
    events
}

pub(super) fn ending(job: &Job) -> JobEnded {
    let failure = job.first_failure();
    JobEnded {
        counts: job.tally(),
        // After a redrive, the dead letters that were not redriven are the reason.
        reason: failure.as_ref().map(|failure| failure.reason).or_else(|| job.first_dead()),
        error: failure.or_else(|| job.failures.recovered.clone()).map(|failure| failure.error),
        submitted: Some(job.times.submitted_at),
    }
}
