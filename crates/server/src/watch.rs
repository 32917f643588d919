//! Counts and logs what happens to running flows, and signals it to followers.

use std::sync::Arc;

use tokio::sync::watch::{Receiver, Sender};
use undaunted_engine::breaker::BreakerChange;
use undaunted_engine::event::{Event, JobEvent, Record};
use undaunted_engine::job::Job;
use undaunted_engine::view::JobCounters;
use undaunted_runner::drive::{LoopHandle, Observer, StoreOutage};
use undaunted_runner::journal::{JournalError, aggregate, decode};
use undaunted_store::{Store, Version};

use crate::log::LogWriter;
use crate::metrics::Metrics;

#[derive(Clone)]
pub struct Watch {
    /// Where the journals of the flows are.
    pub store: Arc<dyn Store>,
    pub metrics: Arc<Metrics>,
    pub log: LogWriter,
    /// Signals that records were stored.
    pub changes: ChangeSignal,
}

impl Watch {
    /// Counts what is counted by job from its journal, if there can be something. The event loop waits for
    /// that; no job is folded again.
    fn recover(&self, job: &Job) {
        let may_count = job.pool.is_some() || job.steps.iter().any(|step| step.reached.is_some());
        // If the journal cannot be read now, the numbers start from here.
        match may_count.then(|| counted(&*self.store, job)) {
            Some(Ok(before)) => self.metrics.recover(job, &before),
            Some(Err(_)) | None => self.metrics.restore(job),
        }
    }
}

fn counted(store: &dyn Store, job: &Job) -> Result<JobCounters, JournalError> {
    let mut counters = JobCounters::default();
    for read in store.read(&aggregate(job.id())?, Version::EMPTY)? {
        let (version, bytes) = read?;
        counters.take(job, &decode(job.id(), version, &bytes)?);
    }
    Ok(counters)
}

impl Observer for Watch {
    fn begins(&mut self, job: &Job, _: LoopHandle) {
        // The submission was recorded before this observer was attached.
        let is_new = job.times.last_at == job.times.submitted_at;
        if is_new {
            self.metrics.restore(job);
            let submitted = Box::new(job.submitted().clone());
            let record =
                Record { at: job.times.submitted_at, event: Event::Job(JobEvent::Submitted(submitted)) };
            self.log.job_record(job, &record);
        } else {
            self.recover(job);
        }
    }

    fn recorded(&mut self, job: &Job, _: u64, record: &Record) {
        self.metrics.observe(job, record);
        self.log.job_record(job, record);
        self.changes.notify();
    }

    fn outage(&mut self, outage: &StoreOutage<'_>) {
        self.log.outage(outage);
    }

    fn breaker_changed(&mut self, _: &Job, breaker: &str, change: &BreakerChange) {
        self.metrics.found_breaker(breaker, change.state.breaker.circuit());
        self.log.turned(breaker, change);
        self.changes.notify();
    }
}

/// Tells followers that there is something to read. It does not say what: they read the store, so nothing
/// is lost if they were not listening.
#[derive(Clone, Debug, Default)]
pub struct ChangeSignal(Arc<Sender<u64>>);

impl ChangeSignal {
    /// Records were stored. Cheap, and may be called from anywhere.
    pub fn notify(&self) {
        self.0.send_modify(|times| *times = times.wrapping_add(1));
    }

    pub(crate) fn subscribe(&self) -> Receiver<u64> {
        self.0.subscribe()
    }
}

#[cfg(test)]
mod tests;
