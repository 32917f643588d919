//! What is shown of a job at an instant.
//!
//! Pure, and cheap: it reads the counters of each step and the first few waits, never all items, of which
//! there may be a million.

use std::collections::BTreeSet;
use std::time::Duration;

use undaunted_engine::breaker::AdmissionControl;
use undaunted_engine::id::StepId;
use undaunted_engine::job::{Job, StepStage, StepState};
use undaunted_policy::Timestamp;

use super::sentences::name_of;
use super::speed::{Seen, Speed};
use crate::screen::holds::looks;
use crate::screen::limits::missing;
use crate::screen::words::{failure, plain};
use undaunted_engine::breaker::BreakerState;

pub(super) const RETRIES: usize = 3;

#[derive(Debug)]
pub(super) struct Board<'j> {
    pub(super) steps: Vec<StepRow<'j>>,
    /// In order of time.
    pub(super) retries: Vec<NextRetry>,
    /// One for each breaker that holds items.
    pub(super) holds: Vec<HoldRow>,
    pub(super) attempts: u64,
    pub(super) attempts_in_ten_seconds: Option<u64>,
    pub(super) so_far: Duration,
    pub(super) left: Option<TimeLeft<'j>>,
    pub(super) paused: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct StepRow<'j> {
    pub(super) name: &'j str,
    pub(super) stage: StepStage,
    pub(super) is_map: bool,
    pub(super) items: u64,
    pub(super) done: u64,
    pub(super) dead: u64,
    pub(super) skipped: u64,
    pub(super) running: u64,
    pub(super) waiting: u64,
    pub(super) held: u64,
    pub(super) missing: u64,
}

#[derive(Debug)]
pub(super) struct HoldRow {
    pub(super) breaker: String,
    pub(super) held: u64,
    /// The sentence about its next probe.
    pub(super) looks: String,
}

#[derive(Debug)]
pub(super) struct NextRetry {
    pub(super) due_in: Duration,
    pub(super) of: String,
    pub(super) retry: u32,
    pub(super) attempt: u32,
    pub(super) why: String,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct TimeLeft<'j> {
    pub(super) time: Duration,
    /// The step it is about, unless that is the last one.
    pub(super) step: Option<&'j str>,
}

impl<'j> Board<'j> {
    pub(super) fn of(job: &'j Job, breakers: &AdmissionControl, speed: &Speed, now: Timestamp) -> Self {
        let steps = StepId::all().zip(&job.steps);
        let steps: Vec<_> = steps.map(|(step, state)| StepRow::of(job, step, state)).collect();
        let seen = seen(job, now);
        Self {
            left: left(job, &steps, speed, seen),
            steps,
            retries: retries(job, now),
            holds: holds(job, breakers, now),
            attempts: job.counts.attempts,
            attempts_in_ten_seconds: speed.attempts_in_ten_seconds(seen),
            so_far: speed.so_far(now),
            paused: job.times.paused.is_some(),
        }
    }
}

pub(super) fn seen(job: &Job, now: Timestamp) -> Seen {
    let settled = job.steps.iter().map(|step| u64::from(step.settled()));
    Seen { at: now, attempts: job.counts.attempts, settled: settled.sum() }
}

impl<'j> StepRow<'j> {
    fn of(job: &'j Job, step: StepId, state: &StepState) -> Self {
        let name = job.plan().step(step).map(|step| step.name.as_str());
        Self {
            name: name.unwrap_or_default(),
            stage: state.stage,
            is_map: job.plan().is_map(step),
            items: u64::from(state.items.len()),
            done: u64::from(state.succeeded),
            dead: u64::from(state.dead),
            skipped: u64::from(state.skipped),
            running: u64::from(state.running),
            waiting: u64::try_from(state.waiting.len()).unwrap_or(u64::MAX),
            held: u64::from(state.held.len()),
            missing: u64::from(missing(state)),
        }
    }

    pub(super) const fn settled(&self) -> u64 {
        self.done.saturating_add(self.dead).saturating_add(self.skipped).saturating_add(self.missing)
    }

    pub(super) const fn has_ended(&self) -> bool {
        matches!(self.stage, StepStage::Completed | StepStage::Failed)
    }
}

fn holds(job: &Job, breakers: &AdmissionControl, now: Timestamp) -> Vec<HoldRow> {
    let held = job.steps.iter().flat_map(|step| step.held.breakers());
    let names: BTreeSet<_> = held.collect();
    let names = names.into_iter();
    names
        .map(|name| HoldRow {
            breaker: plain(name),
            held: job.held_by(name).into(),
            looks: next_probe(job, breakers.get(name), now),
        })
        .collect()
}

fn next_probe(job: &Job, state: Option<&BreakerState>, now: Timestamp) -> String {
    let until = state.and_then(BreakerState::until);
    let probe = state.and_then(|state| state.probe.as_ref());
    let word = state.map_or("", BreakerState::word);
    looks(job.id(), word, until, probe.map(|probe| &*probe.job), now)
}

fn retries(job: &Job, now: Timestamp) -> Vec<NextRetry> {
    // An item that only waits for a slot is due at time zero.
    let steps = StepId::all().zip(&job.steps);
    let mut first: Vec<_> = steps
        .flat_map(|(step, state)| {
            let waiting = state.waiting.due_after(Timestamp::ZERO).take(RETRIES);
            waiting.map(move |(due, index)| (due, step.item(index)))
        })
        .collect();
    first.sort_unstable();
    let first = first.into_iter().take(RETRIES);
    first
        .filter_map(|(due, item)| {
            let active = job.active(item)?;
            Some(NextRetry {
                due_in: due.since(now),
                of: name_of(job, item, active.command),
                retry: active.attempts,
                attempt: active.attempts.saturating_add(1),
                why: failure(job, active.cause, active.error.as_ref()),
            })
        })
        .collect()
}

/// How long the running map will take at its present speed, and at least as long as its longest wait.
fn left<'j>(job: &Job, steps: &[StepRow<'j>], speed: &Speed, seen: Seen) -> Option<TimeLeft<'j>> {
    let place = steps.iter().position(|step| step.is_map && step.stage == StepStage::Running)?;
    let step = steps.get(place)?;
    let rest = step.items.saturating_sub(step.settled());
    if !job.steps.get(place)?.held.is_empty() {
        // The end of an outage cannot be foretold.
        return None;
    }
    let by_speed = speed.time_for(rest, seen)?;
    let waiting = job.steps.get(place)?.waiting.last();
    let by_waits = waiting.map_or(Duration::ZERO, |(due, _)| due.since(seen.at));
    let is_last = !steps.iter().skip(place.saturating_add(1)).any(|step| !step.has_ended());
    Some(TimeLeft { time: by_speed.max(by_waits), step: (!is_last).then_some(step.name) })
}
