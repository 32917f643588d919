//! [`wanted`]: what the runner should be doing for a job now.
//!
//! The runner asks [`wanted_by`] about each new record of a running job, and [`wanted`] about the whole job
//! on recovery. Both give the same effects, so recovery is not a separate code path. The runner acts on an
//! effect only after the records that led to it are on disk. Nothing here decides or changes anything.

use undaunted_policy::{CompletionRule, Reason, Timestamp};

use crate::event::{Event, ItemEvent, JobEvent, Record, StepEvent};
use crate::id::{ItemId, StartId, StepId};
use crate::job::{Job, JobStage, StepStage, StepState};

pub use crate::dispatch::{ask_breaker, next_admission, probe_offers, ready};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Begin the attempt, unless its executor has begun it already.
    Begin {
        start: StartId,
        item: ItemId,
    },
    /// Let the keeper begin the attempt when a slot is free.
    Reserve {
        start: StartId,
        item: ItemId,
    },
    /// Read the items of a map; `start` is the number of its input command, if it has one.
    ReadInput {
        step: StepId,
        start: Option<StartId>,
    },
    /// End the attempts of a step that is complete without them.
    EndStep {
        step: StepId,
    },
    EndAll,
}

/// The effect of one record, once it is on disk.
pub fn wanted_by(record: &Record) -> Option<Effect> {
    match &record.event {
        Event::Item(event) => {
            if let ItemEvent::StartReserved(reserved) = event {
                return Some(Effect::Reserve { start: reserved.start, item: reserved.of.item() });
            }
            let ItemEvent::AttemptStarted(started) = event else { return None };
            // The keeper has begun a reserved one.
            let item = started.of.item();
            started.began.is_none().then_some(Effect::Begin { start: started.start, item })
        }
        Event::Job(event) => {
            let JobEvent::Stopping { reason } = event else { return None };
            ends_running(*reason).then_some(Effect::EndAll)
        }
        // For steps that read their input, the runner asks `wanted_inputs` about the whole job.
        Event::Step(event) => {
            let StepEvent::CompletionReached(reached) = event else { return None };
            Some(Effect::EndStep { step: reached.step })
        }
        Event::Breaker(_) => None,
    }
}

/// The effects of a whole job. The order matters: what is begun first may be ended by a later effect.
pub fn wanted(job: &Job) -> Vec<Effect> {
    let mut effects = wanted_inputs(job);
    let running = job.starts.running.iter();
    effects.extend(running.map(|(&start, &item)| Effect::Begin { start, item }));
    let reserved = job.starts.reserved.iter();
    effects.extend(reserved.map(|(&start, it)| Effect::Reserve { start, item: it.item }));
    let complete = StepId::all().zip(&job.steps);
    let complete = complete.filter(|(_, state)| state.reached.is_some() && state.running > 0);
    effects.extend(complete.map(|(step, _)| Effect::EndStep { step }));
    if job.is_stopping().is_some_and(ends_running) {
        effects.push(Effect::EndAll);
    }
    effects
}

pub fn wanted_inputs(job: &Job) -> Vec<Effect> {
    if job.stage.has_ended() {
        return Vec::new();
    }
    job.open_steps()
        .filter_map(|(step, state)| {
            let StepStage::Reading(start) = state.stage else { return None };
            Some(Effect::ReadInput { step, start })
        })
        .collect()
}

/// Whether a job that stops for this reason ends its running attempts; the tolerance lets them finish.
pub(crate) const fn ends_running(reason: Reason) -> bool {
    !matches!(reason, Reason::Tolerance)
}

/// When the next retry falls due, hold expires or deadline passes. For breakers see [`next_admission`].
pub fn next_wake(job: &Job, now: Timestamp) -> Option<Timestamp> {
    if job.stage != JobStage::Running {
        return None;
    }
    let may_start = job.times.paused.is_none();
    let steps = job.busy_steps().filter(|_| may_start);
    let due = steps.filter_map(|(step, state)| {
        // Without a free slot a due retry changes nothing.
        (job.free_slots(step, state) > 0).then_some(())?;
        let due = state.waiting.due_after(now).next();
        due.map(|(due, _)| due)
    });
    let steps = job.busy_steps().filter(|_| may_start);
    let expiry = steps.filter_map(|(_, state)| state.held.next_expiry());
    let steps = job.open_steps();
    let complete = steps.filter_map(|(step, state)| {
        let (rule, _) = job.plan().completion(step)?;
        awaits(rule, state).then(|| state.deadline(rule))
    });
    let accepted = job.starts.accepted.values().copied();
    let reservations = job.reservations_end().filter(|at| may_start && *at > now);
    let due = due.chain(reservations);
    due.chain(expiry).chain(accepted).chain(complete).chain(job.deadline()).min()
}

/// Whether a completion rule may cut a running step short.
pub fn awaits_rule(job: &Job) -> bool {
    job.open_steps().any(|(step, state)| {
        let rule = job.plan().completion(step);
        rule.is_some_and(|(rule, _)| awaits(rule, state))
    })
}

fn awaits(rule: &CompletionRule, state: &StepState) -> bool {
    rule.best_effort && state.stage == StepStage::Running && state.reached.is_none()
}
