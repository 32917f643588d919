//! The facts about a job that one frame of the progress display shows.
//!
//! Pure and cheap: it reads the counters of each step and the next few retries, never all items, of which there
//! may be a million.

use std::collections::BTreeSet;
use std::time::Duration;

use undaunted_engine::breaker::{AdmissionControl, BreakerState};
use undaunted_engine::id::StepId;
use undaunted_engine::job::{Job, StepStage, StepState};
use undaunted_policy::Timestamp;

use super::Speed;
use super::sentences::name_of;
use super::speed::SpeedSample;
use crate::screen::holds::next_probe;
use crate::screen::limits::missing;
use crate::screen::plain;
use crate::screen::words::failure;

pub(super) const RETRIES: usize = 3;

#[derive(Debug)]
pub(super) struct ProgressFrame<'j> {
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
    pub(super) next_probe: String,
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
    /// The step, unless it is the last one.
    pub(super) step: Option<&'j str>,
}

impl<'j> ProgressFrame<'j> {
    pub(super) fn of(job: &'j Job, breakers: &AdmissionControl, speed: &Speed, now: Timestamp) -> Self {
        let steps = StepId::all().zip(&job.steps);
        let steps: Vec<_> = steps.map(|(step, state)| StepRow::of(job, step, state)).collect();
        let sample = sample(job, now);
        Self {
            left: left(job, &steps, speed, sample),
            steps,
            retries: retries(job, now),
            holds: holds(job, breakers, now),
            attempts: job.counts.attempts,
            attempts_in_ten_seconds: speed.attempts_in_ten_seconds(sample),
            so_far: speed.so_far(now),
            paused: job.times.paused.is_some(),
        }
    }
}

pub(super) fn sample(job: &Job, now: Timestamp) -> SpeedSample {
    let settled = job.steps.iter().map(|step| u64::from(step.settled()));
    SpeedSample { at: now, attempts: job.counts.attempts, settled: settled.sum() }
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
            next_probe: probe_of(job, breakers.get(name), now),
        })
        .collect()
}

fn probe_of(job: &Job, state: Option<&BreakerState>, now: Timestamp) -> String {
    let until = state.and_then(BreakerState::until);
    let probe = state.and_then(|state| state.probe.as_ref());
    let word = state.map_or("", BreakerState::word);
    next_probe(job.id(), word, until, probe.map(|probe| &*probe.job), now)
}

fn retries(job: &Job, now: Timestamp) -> Vec<NextRetry> {
    // An item that waits for a slot is due at time zero.
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
                why: failure(job, (active.cause, active.limit), active.error.as_ref()),
            })
        })
        .collect()
}

/// The time the running map will take at its present speed, and at least until its last due retry.
fn left<'j>(job: &Job, steps: &[StepRow<'j>], speed: &Speed, sample: SpeedSample) -> Option<TimeLeft<'j>> {
    let place = steps.iter().position(|step| step.is_map && step.stage == StepStage::Running)?;
    let step = steps.get(place)?;
    let rest = step.items.saturating_sub(step.settled());
    if !job.steps.get(place)?.held.is_empty() {
        // The end of an outage is unknown.
        return None;
    }
    let by_speed = speed.time_for(rest, sample)?;
    let waiting = job.steps.get(place)?.waiting.last();
    let by_waits = waiting.map_or(Duration::ZERO, |(due, _)| due.since(sample.at));
    let is_last = !steps.iter().skip(place.saturating_add(1)).any(|step| !step.has_ended());
    Some(TimeLeft { time: by_speed.max(by_waits), step: (!is_last).then_some(step.name) })
}
