//! Whoever wants to know what happens to a job while it happens.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use undaunted_engine::breaker::{AdmissionControl, BreakerChange};
use undaunted_engine::event::Record;
use undaunted_engine::job::Job;
use undaunted_store::StoreError;

use super::handle::Handle;
use crate::with_causes;

/// The store of an event loop cannot be reached, or can be again.
#[derive(Clone, Copy, Debug)]
pub enum StoreOutage<'e> {
    /// Nothing is recorded and nothing starts until it ends.
    Begins(&'e StoreError),
    /// Everything continues, after so long.
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

/// Told of every record once it is on the disk. It looks on; it changes nothing.
pub trait Observer {
    /// The job is about to be run, and whoever runs it can be spoken to this way.
    fn begins(&mut self, _job: &Job, _handle: Handle) {}

    /// A record, with its number. The job may be ahead of it.
    fn recorded(&mut self, job: &Job, seq: u64, record: &Record);

    /// A breaker that the job uses has opened, half opened or closed. On the disk, with the breaker.
    fn turned(&mut self, _job: &Job, _breaker: &str, _change: &BreakerChange) {}

    /// The command of a start runs and writes to these files, output and error output, until the
    /// end of the attempt is recorded.
    fn began(&mut self, _start: u64, _files: [PathBuf; 2]) {}

    /// Somebody asked to leave, for the how-manieth time; so many attempts still run.
    fn leaving(&mut self, _asked: u32, _running: usize) {}

    /// The store cannot be reached, or can be again. One observer of an event loop is told.
    fn outage(&mut self, _outage: &StoreOutage<'_>) {}

    /// How often it wants to be told that time has passed, if at all.
    fn patience(&self) -> Option<Duration> {
        None
    }

    /// The loop has come round, because something has happened or because its patience is over.
    fn tick(&mut self, _job: &Job, _breakers: &AdmissionControl) {}
}

impl<T: Observer + ?Sized> Observer for &mut T {
    fn begins(&mut self, job: &Job, handle: Handle) {
        (**self).begins(job, handle);
    }

    fn recorded(&mut self, job: &Job, seq: u64, record: &Record) {
        (**self).recorded(job, seq, record);
    }

    fn began(&mut self, start: u64, files: [PathBuf; 2]) {
        (**self).began(start, files);
    }

    fn leaving(&mut self, asked: u32, running: usize) {
        (**self).leaving(asked, running);
    }

    fn outage(&mut self, outage: &StoreOutage<'_>) {
        (**self).outage(outage);
    }

    fn patience(&self) -> Option<Duration> {
        (**self).patience()
    }

    fn tick(&mut self, job: &Job, breakers: &AdmissionControl) {
        (**self).tick(job, breakers);
    }

    fn turned(&mut self, job: &Job, breaker: &str, change: &BreakerChange) {
        (**self).turned(job, breaker, change);
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Quiet;

impl Observer for Quiet {
    fn recorded(&mut self, _: &Job, _: u64, _: &Record) {}
}
