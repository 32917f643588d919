//! What follows from a state alone: steps begin and end, tolerances are passed, the job is done.

use undaunted_policy::{Reason, Timestamp};

use super::input::decide;
use crate::event::{Ended, Event, Record};
use crate::input::Input;
use crate::job::{Job, Stage, StepStage, StepState};
use crate::workflow::InputSource;

/// Tells a job something, and all that follows from it until nothing more does. What is returned
/// has been applied already; it must be on the disk before anybody acts upon it.
#[must_use]
pub fn react(job: &mut Job, input: &Input, now: Timestamp) -> Vec<Record> {
    let mut records = Vec::new();
    let mut events = decide(job, input, now);
    loop {
        for event in events.drain(..) {
            let record = Record { at: now, event };
            job.apply(&record);
            records.push(record);
        }
        // Asked even if the input had no consequence: a job that was just submitted has to begin.
        events = advance(job);
        if events.is_empty() {
            return records;
        }
    }
}

/// What follows from the state a job is in.
#[must_use]
pub fn advance(job: &Job) -> Vec<Event> {
    match job.stage {
        Stage::Running => go_on(job),
        Stage::Stopping(reason) => wind_up(job, reason),
        _ => Vec::new(),
    }
}

fn go_on(job: &Job) -> Vec<Event> {
    let mut events = Vec::new();
    for (step, state) in job.open_steps() {
        match state.stage {
            StepStage::Waiting => events.push(begin(job, step)),
            StepStage::Running => events.extend(settle(job, step, state)),
            _ => {}
        }
        if !events.is_empty() {
            return events;
        }
    }
    if job.running.is_empty() && job.open.failed > 0 {
        events.push(Event::JobFailed(Box::new(ending(job))));
    } else if job.open.completed == job.steps.len() {
        let ended = Box::new(ending(job));
        events.push(match ended.counts.dead {
            0 => Event::JobCompleted(ended),
            _ => Event::JobPartial(ended),
        });
    }
    events
}

fn begin(job: &Job, step: u32) -> Event {
    let by_command = job
        .plan()
        .map(step)
        .is_some_and(|map| matches!(map.input.source, InputSource::Shell(_)));
    Event::StepStarted {
        step,
        start: by_command.then_some(job.next_start),
    }
}

fn settle(job: &Job, step: u32, state: &StepState) -> Option<Event> {
    let is_map = job.plan().is_map(step);
    if let Some(map) = job.plan().map(step)
        && map
            .tolerance
            .exceeded(state.settled().into(), counting(state).into())
    {
        return Some(Event::JobStopping {
            reason: Reason::Tolerance,
        });
    }
    if state.settled() < state.items.len() {
        return None;
    }
    Some(if state.dead > 0 && !is_map {
        Event::StepFailed { step }
    } else {
        Event::StepCompleted { step }
    })
}

/// The dead letters that count.
const fn counting(state: &StepState) -> u32 {
    state.dead.saturating_sub(state.forgiven)
}

/// Nothing new is started: what waits is skipped, and when nothing runs any more the job has ended.
fn wind_up(job: &Job, reason: Reason) -> Vec<Event> {
    let mut events = Vec::new();
    for (step, state) in (0_u32..).zip(&job.steps) {
        let skipped =
            state
                .waiting
                .iter()
                .map(|&(_, item)| Event::ItemSkipped { step, item, reason });
        events.extend(skipped);
    }
    // The end of a command that gives items is told too, as a failed input.
    if !events.is_empty() || job.has_running() {
        return events;
    }
    let open = |stage| matches!(stage, StepStage::Running | StepStage::Reading(_));
    let steps = (0_u32..).zip(&job.steps);
    let open = steps.filter(|(_, state)| open(state.stage));
    events.extend(open.map(|(step, _)| Event::StepFailed { step }));
    let mut ended = ending(job);
    ended.reason = Some(reason);
    let ended = Box::new(ended);
    events.push(match reason {
        Reason::Cancelled => Event::JobCancelled(ended),
        _ => Event::JobFailed(ended),
    });
    events
}

fn ending(job: &Job) -> Ended {
    let mishap = job.failure.as_ref();
    Ended {
        counts: job.tally(),
        reason: mishap.map(|failure| failure.reason),
        error: mishap
            .or(job.recovered.as_ref())
            .map(|failure| failure.error.clone()),
        submitted: Some(job.submitted_at),
    }
}
