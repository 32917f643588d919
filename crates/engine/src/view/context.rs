//! What views are made from: a job, its projection, and what stands outside of its journal.

use std::collections::BTreeSet;
use std::time::Duration;

use undaunted_policy::Timestamp;

use super::projection::Projection;
use super::shared::{all_held, named_by_rule};
use crate::breaker::AdmissionControl;
use crate::decide::left_at;
use crate::dispatch::prober;
use crate::id::{ItemId, StepId};
use crate::job::{Job, JobStage};

#[derive(Clone, Copy, Debug)]
pub struct ViewContext<'a> {
    pub job: &'a Job,
    pub projection: &'a Projection,
    /// Those of the job, as they are now.
    pub breakers: &'a AdmissionControl,
    /// The process that runs it.
    pub owner: Option<u32>,
    /// The last sign of life of the process that ran it, if it is known.
    pub seen: Option<Timestamp>,
    pub now: Timestamp,
}

impl ViewContext<'_> {
    /// Since when the time of the items stands still, if the job is paused or suspended.
    pub(super) fn still_since(&self) -> Option<Timestamp> {
        let job = self.job;
        let suspended = || left_at(job, self.seen, self.now);
        let suspended = (job.stage == JobStage::Suspended).then(suspended);
        job.times.paused.or(suspended)
    }

    /// How long the time of an item has stood still that waits since then.
    pub(super) fn stood_still(&self, since: Timestamp) -> Duration {
        let still = self.still_since();
        still.map_or(Duration::ZERO, |still| self.now.since(still.max(since)))
    }

    /// How long after its time a retry has waited without a charge to its delay budget: while a process ran
    /// the job, or while the job was suspended.
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

/// The items that are probed first, and those that would be: their names and inputs decide about breakers.
pub(super) fn probers(job: &Job) -> BTreeSet<ItemId> {
    let steps = StepId::all().zip(&job.steps);
    let next = steps.filter(|(_, state)| state.cursor < state.items.len());
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
