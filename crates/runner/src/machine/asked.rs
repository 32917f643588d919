//! What a loop asks of the machine it runs on.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::Duration;

use undaunted_engine::input::AttemptEnd;
use undaunted_policy::Timestamp;

use super::keeping::Keeping;
use crate::executor::{Answered, FunctionOrder, NewFile, Order};
use crate::folder::JobFolder;
use crate::keeper::{Event, KeeperError};
use crate::spool::Recovered;

/// Hears what a keeper says; false once nobody listens any more.
pub type Tell = Box<dyn Fn(Event) -> bool + Send>;

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

    /// Sends a request, and tells how it was answered.
    fn send(&self, order: Order, tell: Box<dyn FnOnce(Answered) + Send>) -> Withdraw;

    /// Whether the program that runs jobs here has a function of this name.
    fn has_function(&self, _name: &str) -> bool {
        false
    }

    /// Calls a function of the program, and tells how that came out.
    fn call(&self, _order: FunctionOrder, _tell: Box<dyn FnOnce(AttemptEnd) + Send>) -> Withdraw {
        Box::new(|| {})
    }

    /// Reaches the keeper of a job, or starts one, and says what became of what the last one was told.
    /// `behind` is the last place of its outputs that is on record, if the spool is gone.
    ///
    /// # Errors
    ///
    /// When there is no keeper to be had.
    fn keeper(
        &self,
        folder: &JobFolder,
        behind: Option<u32>,
        tell: Tell,
    ) -> Result<(Box<dyn Keeping>, Recovered), KeeperError>;

    /// Whether what the commands of a job wrote is still there.
    fn has_spool(&self, folder: &JobFolder) -> bool;

    /// Ends every process that holds one of these receipt tokens.
    ///
    /// # Errors
    ///
    /// When processes cannot be looked at.
    fn end_holders(&self, tokens: &BTreeSet<String>, grace: Duration) -> Result<(), KeeperError>;

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Writes the file that a command is to write.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    fn write(&self, file: &NewFile<'_>) -> io::Result<()>;

    /// Writes a file of a job, private, as a whole or not at all.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    fn keep(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Notes that somebody runs the job now. For the sake of knowing afterwards how long nobody did:
    /// who owns a job is not decided by it, and nothing is lost without it.
    fn note_alive(&self, folder: &JobFolder);

    /// When somebody was last seen running it.
    fn seen_alive(&self, folder: &JobFolder) -> Option<Timestamp>;
}
