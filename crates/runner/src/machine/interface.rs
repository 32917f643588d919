//! The machine an event loop runs on.

use std::io;
use std::path::Path;
use std::time::Duration;

use undaunted_policy::Timestamp;

use super::command_host::{KeeperAddress, ReachedKeeper};
use crate::drive::Notifier;
use crate::executor::{FunctionOrder, HttpOrder, NewFile};
use crate::folder::JobFolder;
use crate::keeper::KeeperError;

pub type CancelCall = Box<dyn FnOnce() + Send>;

pub trait Machine: Send + Sync {
    /// The time since boot, including sleep. Unlike the wall clock, it cannot be set.
    fn uptime(&self) -> Duration;

    /// The wall clock, and the uptime at that instant.
    fn clocks(&self) -> (Timestamp, Duration);

    /// The fewest records between two snapshots of a job. Reading fewer takes negligible time.
    fn save_after(&self) -> u64 {
        16_384
    }

    /// The length at which the journal of a breaker is folded into one record.
    fn trim_after(&self) -> u64 {
        1024
    }

    /// Writes a snapshot, outside the loop.
    fn save(&self, work: Box<dyn FnOnce() + Send>) {
        self.run_in_background(work);
    }

    fn run_in_background(&self, work: Box<dyn FnOnce() + Send>);

    /// Sends an HTTP request, and reports that the service has accepted it, or how it ended.
    fn send(&self, order: HttpOrder, notifier: Notifier) -> CancelCall;

    fn has_function(&self, _name: &str) -> bool {
        false
    }

    fn call(&self, _order: FunctionOrder, _notifier: Notifier) -> CancelCall {
        Box::new(|| {})
    }

    /// Connects to the keeper of a job, or starts one, and returns the fates of the attempts on record. If
    /// the keeper cannot tell which attempts never began, their remaining processes are ended first, so that
    /// no second attempt runs beside one of them.
    fn keeper(&self, reach: KeeperAddress<'_>) -> Result<ReachedKeeper, KeeperError>;

    fn has_spool(&self, folder: &JobFolder) -> bool;

    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    fn write(&self, file: &NewFile<'_>) -> io::Result<()>;

    /// Writes a private file of a job, atomically.
    fn write_private(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Notes that a process runs the job, so that a resumed job can report how long it was interrupted. This
    /// does not decide who owns the job, and may be lost.
    fn note_alive(&self, folder: &JobFolder);

    /// When `note_alive` was last called.
    fn seen_alive(&self, folder: &JobFolder) -> Option<Timestamp>;
}
