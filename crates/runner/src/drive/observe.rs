//! Observers of running jobs.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use undaunted_engine::breaker::{AdmissionControl, BreakerChange};
use undaunted_engine::event::Record;
use undaunted_engine::id::StartId;
use undaunted_engine::job::Job;
use undaunted_store::StoreError;

use super::LoopHandle;
use crate::with_causes;

#[derive(Clone, Copy, Debug)]
pub enum StoreOutage<'e> {
    /// Nothing is recorded and nothing starts until it ends.
    Begins(&'e StoreError),
    /// Everything continues; how long the outage took.
    Ends(Duration),
}

impl fmt::Display for StoreOutage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begins(error) => write!(
                f,
                "{}; nothing starts until it can be reached, and nothing is lost",
                with_causes(*error)
            ),
            Self::Ends(lasted) => {
                let seconds = lasted.as_secs_f64();
                write!(f, "the store can be reached again after {seconds:.1}s")
            }
        }
    }
}

/// Receives every record once it is on disk. It cannot change anything.
pub trait Observer {
    /// The job is about to run; `handle` reaches its event loop.
    fn begins(&mut self, _job: &Job, _handle: LoopHandle) {}

    /// A record is on disk at this version. The job may be ahead of it.
    fn recorded(&mut self, job: &Job, seq: u64, record: &Record);

    /// A breaker of the job has opened, half opened or closed, and that is on disk.
    fn breaker_changed(&mut self, _job: &Job, _breaker: &str, _change: &BreakerChange) {}

    /// The command of a start is running. It writes its output and error output to these files until its end
    /// is on record.
    fn began(&mut self, _start: StartId, _files: [PathBuf; 2]) {}

    /// The loop was interrupted for the `asked`th time, while `_running` attempts were running.
    fn leaving(&mut self, _asked: u32, _running: usize) {}

    /// Called for one observer of an event loop.
    fn outage(&mut self, _outage: &StoreOutage<'_>) {}

    /// How often to call `tick` at least.
    fn tick_interval(&self) -> Option<Duration> {
        None
    }

    /// Called after every turn of the job.
    fn tick(&mut self, _job: &Job, _breakers: &AdmissionControl) {}
}

impl<T: Observer + ?Sized> Observer for &mut T {
    fn begins(&mut self, job: &Job, handle: LoopHandle) {
        (**self).begins(job, handle);
    }

    fn recorded(&mut self, job: &Job, seq: u64, record: &Record) {
        (**self).recorded(job, seq, record);
    }

    fn began(&mut self, start: StartId, files: [PathBuf; 2]) {
        (**self).began(start, files);
    }

    fn leaving(&mut self, asked: u32, running: usize) {
        (**self).leaving(asked, running);
    }

    fn outage(&mut self, outage: &StoreOutage<'_>) {
        (**self).outage(outage);
    }

    fn tick_interval(&self) -> Option<Duration> {
        (**self).tick_interval()
    }

    fn tick(&mut self, job: &Job, breakers: &AdmissionControl) {
        (**self).tick(job, breakers);
    }

    fn breaker_changed(&mut self, job: &Job, breaker: &str, change: &BreakerChange) {
        (**self).breaker_changed(job, breaker, change);
    }
}

#[derive(Clone, Copy, Debug)]
pub struct NoJobObserver;

impl Observer for NoJobObserver {
    fn recorded(&mut self, _: &Job, _: u64, _: &Record) {}
}
