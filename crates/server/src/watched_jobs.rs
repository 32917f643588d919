//! How far the records of each job were counted and logged.
//!
//! A job that this process runs reports its records to [`Watch`](crate::Watch); those of all other jobs are
//! read by [`StoreWatch`](crate::StoreWatch). Both keep their positions here, so that no record is counted
//! twice when a job moves from one process to another.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use undaunted_engine::job::Job;
use undaunted_store::Version;

#[derive(Debug, Default)]
pub(crate) struct WatchedJobs(Mutex<BTreeMap<String, Arc<WatchedJob>>>);

#[derive(Debug, Default)]
pub(crate) struct WatchedJob {
    /// The version of the last record that was counted.
    last: AtomicU64,
    state: Mutex<WatchState>,
}

#[derive(Debug, Default)]
pub(crate) enum WatchState {
    /// Nothing was counted yet.
    #[default]
    New,
    /// This process runs the job.
    Here,
    /// The job after the last record that was counted, unless it has ended or was run here.
    Elsewhere(Option<Box<Job>>),
}

impl WatchedJobs {
    pub(crate) fn of(&self, job: &str) -> Arc<WatchedJob> {
        let mut jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match jobs.get(job) {
            Some(known) => Arc::clone(known),
            None => Arc::clone(jobs.entry(job.to_owned()).or_default()),
        }
    }

    /// Takes out the jobs of other processes that are no longer there.
    pub(crate) fn take_removed(&self, is_there: impl Fn(&str) -> bool) -> Vec<String> {
        let mut removed = Vec::new();
        let mut jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.retain(|job, watched| {
            let is_gone = !is_there(job) && matches!(*watched.lock(), WatchState::Elsewhere(_));
            if is_gone {
                removed.push(job.clone());
            }
            !is_gone
        });
        removed
    }
}

impl WatchedJob {
    pub(crate) fn lock(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn last(&self) -> Version {
        Version(self.last.load(Ordering::Acquire))
    }

    pub(crate) fn set_last(&self, version: Version) {
        self.last.store(version.0, Ordering::Release);
    }

    /// Whether a record was not counted yet. From then on it is.
    pub(crate) fn advance(&self, version: Version) -> bool {
        self.last.fetch_max(version.0, Ordering::AcqRel) < version.0
    }

    /// This process runs the job. Returns what was known before; waits while the job is being read.
    pub(crate) fn begin_here(&self) -> WatchState {
        std::mem::replace(&mut *self.lock(), WatchState::Here)
    }

    /// This process no longer runs the job.
    pub(crate) fn leave(&self) {
        let mut state = self.lock();
        if matches!(*state, WatchState::Here) {
            *state = WatchState::Elsewhere(None);
        }
    }
}
