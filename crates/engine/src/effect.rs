//! What the world should be doing for a job now.
//!
//! Asked about the last records while a job lives, and about everything when somebody goes on with
//! one; the answer is the same, so recovery is not a separate path. An effect is acted upon only
//! when the records that led to it are on the disk.

use undaunted_policy::{Reason, Timestamp};

use crate::event::{Event, Record};
use crate::job::{Job, Stage, StepStage, StepState};

/// Something to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Begin the attempt with this number, unless it has begun.
    Begin {
        /// The number of its start.
        start: u64,
        /// The step.
        step: u32,
        /// The item.
        item: u32,
    },
    /// Read the items of a map, by the command with this number if there is one.
    ReadInput {
        /// The step.
        step: u32,
        /// The number of the start of its command.
        start: Option<u64>,
    },
    /// End everything that runs.
    EndAll,
}

/// What a record asks for, once it is on the disk.
#[must_use]
pub fn wanted_by(record: &Record) -> Option<Effect> {
    match &record.event {
        Event::AttemptStarted(started) => Some(Effect::Begin {
            start: started.start,
            step: started.subject.step,
            item: started.subject.item,
        }),
        Event::JobStopping { reason } if ends_running(*reason) => Some(Effect::EndAll),
        _ => None,
    }
}

/// Everything a job asks for.
#[must_use]
pub fn wanted(job: &Job) -> Vec<Effect> {
    let mut effects = reading(job);
    let running = job.running.iter();
    effects.extend(running.map(|(&start, &(step, item))| Effect::Begin { start, step, item }));
    // Last, so that it reaches what was just found running.
    if job.is_stopping().is_some_and(ends_running) {
        effects.push(Effect::EndAll);
    }
    effects
}

/// The maps whose items are to be read.
#[must_use]
pub fn reading(job: &Job) -> Vec<Effect> {
    if job.stage.has_ended() {
        return Vec::new();
    }
    job.open_steps()
        .filter_map(|(step, state)| match state.stage {
            StepStage::Reading(start) => Some(Effect::ReadInput { step, start }),
            _ => None,
        })
        .collect()
}

/// Whether a job that stops for this reason ends what runs. Too many failures let it finish.
const fn ends_running(reason: Reason) -> bool {
    !matches!(reason, Reason::Tolerance)
}

/// The items that may start now: retries that are due before new ones, those in input order.
#[must_use]
pub fn ready(job: &Job, now: Timestamp) -> Vec<(u32, u32)> {
    let mut ready = Vec::new();
    if job.stage != Stage::Running || job.paused.is_some() {
        return ready;
    }
    for (step, state) in job.open_steps() {
        if state.stage != StepStage::Running {
            continue;
        }
        let room = usize::try_from(room(job, step, state)).unwrap_or(usize::MAX);
        let due = state.waiting.range(..=(now, u32::MAX));
        let new = state.cursor..state.items.len();
        let new = new.filter(|item| !state.ahead.contains(item));
        let items = due.map(|&(_, item)| item).chain(new);
        ready.extend(items.take(room).map(|item| (step, item)));
    }
    ready
}

fn room(job: &Job, step: u32, state: &StepState) -> u32 {
    job.parallel(step).saturating_sub(state.running)
}

/// When something happens by itself next: a retry falls due, or the job's time is up.
#[must_use]
pub fn next_wake(job: &Job, now: Timestamp) -> Option<Timestamp> {
    let due = job.open_steps().filter_map(|(step, state)| {
        // Without a free slot nothing happens when a retry falls due.
        (state.stage == StepStage::Running && room(job, step, state) > 0).then_some(())?;
        let mut later = state.waiting.range((now, u32::MAX)..);
        later.next().map(|&(due, _)| due)
    });
    let due = due.filter(|_| job.stage == Stage::Running && job.paused.is_none());
    let deadline = job.deadline().filter(|_| job.stage == Stage::Running);
    due.chain(deadline).min()
}
