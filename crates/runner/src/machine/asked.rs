//! What a loop asks of the machine it runs on.

use std::io;
use std::path::Path;
use std::time::Duration;

use undaunted_policy::Timestamp;

use super::keeping::{Reach, ReachedKeeper};
use crate::drive::Notifier;
use crate::executor::{FunctionOrder, NewFile, Order};
use crate::folder::JobFolder;
use crate::keeper::KeeperError;

/// Ends a request, so that its answer is not waited for any more.
pub type Withdraw = Box<dyn FnOnce() + Send>;

/// The machine a loop runs on.
pub trait Machine: Send + Sync {
    /// For how long it has been running, sleep included. Nobody can set that.
    fn uptime(&self) -> Duration;

    /// What the wall clock says, which somebody may set, and the uptime at that instant.
    fn clocks(&self) -> (Timestamp, Duration);

    /// How many records at least are written before a job is saved again, so that fewer have to be
    /// read by whoever goes on with it. Below that, reading them takes no time to speak of.
    fn save_after(&self) -> u64 {
        16_384
    }

    /// How many records the journal of a breaker has before they are folded into one.
    fn trim_after(&self) -> u64 {
        1024
    }

    /// Writes down what is saved of a job, beside the loop.
    fn save(&self, work: Box<dyn FnOnce() + Send>) {
        self.aside(work);
    }

    /// Does something beside the loop, which goes on.
    fn aside(&self, work: Box<dyn FnOnce() + Send>);

    /// Sends a request; that it was taken on, or how it ended, is reported.
    fn send(&self, order: Order, notifier: Notifier) -> Withdraw;

    /// Whether the program that runs jobs here has a function of this name.
    fn has_function(&self, _name: &str) -> bool {
        false
    }

    /// Calls a function of the program; how that ended is reported.
    fn call(&self, _order: FunctionOrder, _notifier: Notifier) -> Withdraw {
        Box::new(|| {})
    }

    /// Reaches the keeper of a job, or starts one, and says what became of what the last one was told.
    /// If the keeper cannot vouch for what never began, whatever is left of the attempts on record is
    /// ended first, so that no second one runs beside it.
    fn keeper(&self, reach: Reach<'_>) -> Result<ReachedKeeper, KeeperError>;

    /// Whether what the commands of a job wrote is still there.
    fn has_spool(&self, folder: &JobFolder) -> bool;

    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Writes the file that a command is to write.
    fn write(&self, file: &NewFile<'_>) -> io::Result<()>;

    /// Writes a file of a job, private, as a whole or not at all.
    fn keep(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Notes that somebody runs the job now. For the sake of knowing afterwards how long nobody did:
    /// who owns a job is not decided by it, and nothing is lost without it.
    fn note_alive(&self, folder: &JobFolder);

    /// When somebody was last seen running it.
    fn seen_alive(&self, folder: &JobFolder) -> Option<Timestamp>;
}
