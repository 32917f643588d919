//! Whoever wants to know what happens to a job while it happens.

use std::path::PathBuf;

use undaunted_engine::event::Record;
use undaunted_engine::job::Job;

use super::news::Handle;

/// Told of every record once it is on the disk. It looks on; it changes nothing.
pub trait Observer {
    /// The job is about to be run, and can be spoken to this way.
    fn begins(&mut self, _handle: Handle) {}

    /// A record, with its number. The job may be ahead of it.
    fn recorded(&mut self, job: &Job, seq: u64, record: &Record);

    /// The command of a start runs and writes to these files, output and error output, until the
    /// end of the attempt is recorded.
    fn began(&mut self, _start: u64, _files: [PathBuf; 2]) {}

    /// Somebody asked to leave, for the how-manieth time; so many attempts still run.
    fn leaving(&mut self, _asked: u32, _running: usize) {}

    /// The loop has come round: at least five times a second, whether anything has happened or not.
    fn tick(&mut self, _job: &Job) {}
}

/// Nobody looks on.
#[derive(Clone, Copy, Debug)]
pub struct Quiet;

impl Observer for Quiet {
    fn recorded(&mut self, _: &Job, _: u64, _: &Record) {}
}
