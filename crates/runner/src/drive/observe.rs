//! Whoever wants to know what happens to a job while it happens.

use undaunted_engine::event::Record;
use undaunted_engine::job::Job;

/// Told of every record once it is on the disk. It looks on; it changes nothing.
pub trait Observer {
    /// A record, with its number. The job may be ahead of it.
    fn recorded(&mut self, job: &Job, seq: u64, record: &Record);

    /// Somebody asked to leave, for the how-manieth time; so many attempts still run.
    fn leaving(&mut self, _asked: u32, _running: usize) {}
}

/// Nobody looks on.
#[derive(Clone, Copy, Debug)]
pub struct Quiet;

impl Observer for Quiet {
    fn recorded(&mut self, _: &Job, _: u64, _: &Record) {}
}
