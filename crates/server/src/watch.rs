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
use crate::watched_jobs::{WatchState, WatchedJob, WatchedJobs};

#[derive(Clone)]
pub struct Watch {
    /// Where the journals of the jobs are.
    pub(crate) store: Arc<dyn Store>,
    pub metrics: Arc<Metrics>,
    pub log: LogWriter,
    /// Signals that records were stored.
    pub changes: ChangeSignal,
    pub(crate) jobs: Arc<WatchedJobs>,
    /// The job that it observes.
    own: Option<Arc<WatchedJob>>,
}

impl Watch {
    pub fn of(store: Arc<dyn Store>, log: LogWriter) -> Self {
        Self {
            store,
            metrics: Arc::default(),
            log,
            changes: ChangeSignal::default(),
            jobs: Arc::default(),
            own: None,
        }
    }

    /// The event loop of this process has left a job.
    pub fn left(&self, job: &str) {
        self.jobs.of(job).leave();
        self.changes.notify();
    }

    /// Counts and logs a record, which the job has applied, and perhaps later ones.
    pub(crate) fn tell(&self, job: &Job, record: &Record) {
        self.metrics.observe(job, record);
        self.log.job_record(job, record);
    }

    /// Counts and logs what other processes have recorded since it was last looked at.
    fn catch_up(&self, job: &Job, after: Version) -> Result<(), JournalError> {
        for read in self.store.read(&aggregate(job.id())?, after)? {
            let (version, bytes) = read?;
            self.tell(job, &decode(job.id(), version, &bytes)?);
        }
        Ok(())
    }

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
        let own = self.jobs.of(job.id());
        // Nothing of this run is recorded yet, so this process counts everything behind the head.
        let head = aggregate(job.id()).ok().and_then(|of| self.store.head(&of).ok().flatten());
        let head = head.map_or_else(|| own.last(), |head| head.version);
        let is_new = job.times.last_at == job.times.submitted_at;
        match own.begin_here() {
            WatchState::New if is_new => {
                // The submission was recorded before this observer was attached; what was recorded with it is
                // still reported.
                let submitted = Box::new(job.submitted().clone());
                let event = Event::Job(JobEvent::Submitted(submitted));
                self.metrics.restore(job);
                self.log.job_record(job, &Record { at: job.times.submitted_at, event });
                own.set_last(Version(1));
            }
            WatchState::New => {
                self.recover(job);
                own.set_last(head);
            }
            WatchState::Here | WatchState::Elsewhere(_) => {
                // What cannot be read now is not counted.
                drop(self.catch_up(job, own.last()));
                own.set_last(head);
            }
        }
        self.own = Some(own);
    }

    fn recorded(&mut self, job: &Job, seq: u64, record: &Record) {
        if self.own.as_ref().is_none_or(|own| own.advance(Version(seq))) {
            self.tell(job, record);
        }
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
