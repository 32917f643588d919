//! The sources of views: a job, its projection, and facts outside of its journal.

use std::collections::BTreeSet;
use std::time::Duration;

use undaunted_policy::Timestamp;

use super::projection::Projection;
use super::shared::{all_held, named_by_rule};
use crate::breaker::AdmissionControl;
use crate::decide::left_at;
use crate::dispatch::prober;
use crate::id::{CommandId, ItemId, StepId};
use crate::job::{Job, JobStage, StepState};

#[derive(Clone, Copy, Debug)]
pub struct ViewContext<'a> {
    pub job: &'a Job,
    pub projection: &'a Projection,
    /// The breakers of the job, with the clock set to now.
    pub breakers: &'a AdmissionControl,
    /// The process that runs the job.
    pub owner: Option<u32>,
    /// The last known activity of the process that ran the job.
    pub seen: Option<Timestamp>,
    pub now: Timestamp,
}

impl ViewContext<'_> {
    /// Since when deadlines do not progress, because the job is paused or suspended.
    pub(super) fn standstill_since(&self) -> Option<Timestamp> {
        let job = self.job;
        let suspended = || left_at(job, self.seen, self.now);
        let suspended = (job.stage == JobStage::Suspended).then(suspended);
        job.times.paused.or(suspended)
    }

    /// How long deadlines have not progressed since an instant.
    pub(super) fn standstill(&self, since: Timestamp) -> Duration {
        let start = self.standstill_since();
        start.map_or(Duration::ZERO, |start| self.now.since(start.max(since)))
    }

    /// How long an overdue retry has waited without a charge to its delay budget: while a process ran the job, or
    /// while the job was suspended.
    pub(super) fn not_charged(&self, due: Timestamp) -> Duration {
        let (job, now) = (self.job, self.now);
        let until = match self.owner {
            Some(_) => now,
            None if job.stage == JobStage::Suspended => now,
            None => left_at(job, self.seen, now),
        };
        until.since(due.max(job.times.resumed_at))
    }
}

/// The items that probe first, now or once they have started: their names and inputs select breakers.
pub(super) fn probers(job: &Job) -> BTreeSet<ItemId> {
    let next = steps(job).filter(|(_, state)| state.cursor < state.items.len());
    let next = next.map(|(step, state)| step.item(state.cursor));
    if all_held(job).next().is_none() {
        return BTreeSet::new();
    }
    let names = job.breakers();
    let first = names.iter().filter_map(|name| prober(job, name));
    next.chain(first).collect()
}

/// The items that a view of the limits of a job names.
pub(super) fn named_by_limits(job: &Job, projection: &Projection) -> BTreeSet<ItemId> {
    let mut named = probers(job);
    named.extend(named_by_rule(job));
    let late = projection.late.iter().map(|late| late.item);
    named.extend(late.take(super::shared::LISTED));
    named
}

pub(super) fn step_name(job: &Job, step: StepId) -> Option<String> {
    Some(job.plan().step(step)?.name.clone())
}

pub(super) fn command_id(job: &Job, command: CommandId) -> Option<String> {
    Some(job.plan().command(command)?.id.clone())
}

/// The steps of a job with their states.
pub(super) fn steps(job: &Job) -> impl Iterator<Item = (StepId, &StepState)> {
    StepId::all().zip(&job.steps)
}
