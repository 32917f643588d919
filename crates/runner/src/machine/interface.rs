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

pub type Withdraw = Box<dyn FnOnce() + Send>;

pub trait Machine: Send + Sync {
    /// Sleep included. Cannot be set, unlike the wall clock.
    fn uptime(&self) -> Duration;

    /// The wall clock, and the uptime at that instant.
    fn clocks(&self) -> (Timestamp, Duration);

    /// The fewest records between two snapshots of a job. Reading fewer takes no time to speak of.
    fn save_after(&self) -> u64 {
        16_384
    }

    /// The length at which the journal of a breaker is folded into one record.
    fn trim_after(&self) -> u64 {
        1024
    }

    /// Writes a snapshot, outside the loop.
    fn save(&self, work: Box<dyn FnOnce() + Send>) {
        self.aside(work);
    }

    fn aside(&self, work: Box<dyn FnOnce() + Send>);

    /// Sends a request; that it was accepted, or how it ended, is reported.
    fn send(&self, order: HttpOrder, notifier: Notifier) -> Withdraw;

    fn has_function(&self, _name: &str) -> bool {
        false
    }

    fn call(&self, _order: FunctionOrder, _notifier: Notifier) -> Withdraw {
        Box::new(|| {})
    }

    /// Reaches the keeper of a job, or starts one, and says what became of the attempts of the last one.
    /// If the keeper cannot tell which attempts never began, their remaining processes are ended
    /// first, so that no second attempt runs beside one of them.
    fn keeper(&self, reach: KeeperAddress<'_>) -> Result<ReachedKeeper, KeeperError>;

    fn has_spool(&self, folder: &JobFolder) -> bool;

    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    fn write(&self, file: &NewFile<'_>) -> io::Result<()>;

    /// Writes a private file of a job, atomically.
    fn keep(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Notes that a process runs the job, only to know afterwards how long none did: it does not
    /// decide who owns the job, and may be lost.
    fn note_alive(&self, folder: &JobFolder);

    /// When `note_alive` was last called.
    fn seen_alive(&self, folder: &JobFolder) -> Option<Timestamp>;
}
