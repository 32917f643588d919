//! Whoever runs the programs of a job.

use std::io;
use std::path::PathBuf;

use crate::keeper::{Keeper, KeeperError, Spec};
use crate::spool::{CaptureError, Kept};

/// What commands wrote, for whoever knows the place.
pub trait Outputs {
    /// The whole of an output.
    ///
    /// # Errors
    ///
    /// When it is too long, or cannot be read.
    fn capture(&self, kept: &Kept, limit: u64) -> Result<Vec<u8>, CaptureError>;

    /// The last lines of an output.
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    fn last_lines(&self, kept: &Kept, lines: usize) -> io::Result<String>;
}

/// Runs programs, and outlives whoever asked for it. See [`Keeper`] for what each request means; that
/// it has gone is told, and no failure of a request.
pub trait Keeping: Outputs {
    /// Has a command run whose start is on record.
    ///
    /// # Errors
    ///
    /// When the command is too large to be told.
    fn run(&self, spec: Spec) -> Result<(), KeeperError>;

    /// Ends a command.
    fn cancel(&self, id: u64);

    /// Ends every command.
    fn cancel_all(&self);

    /// Lets it forget an attempt whose end is on record.
    fn forget(&self, id: u64);

    /// Says that all fates of the recovery are on record.
    fn trust(&self);

    /// The files a running command writes to: output and error output.
    fn slot(&self, number: u32) -> [PathBuf; 2];
}

impl Outputs for Keeper {
    fn capture(&self, kept: &Kept, limit: u64) -> Result<Vec<u8>, CaptureError> {
        self.spool().capture(kept, limit)
    }

    fn last_lines(&self, kept: &Kept, lines: usize) -> io::Result<String> {
        self.spool().last_lines(kept, lines)
    }
}

impl Keeping for Keeper {
    fn run(&self, spec: Spec) -> Result<(), KeeperError> {
        self.run(spec)
    }

    fn cancel(&self, id: u64) {
        self.cancel(id);
    }

    fn cancel_all(&self) {
        self.cancel_all();
    }

    fn forget(&self, id: u64) {
        self.forget(id);
    }

    fn trust(&self) {
        self.trust();
    }

    fn slot(&self, number: u32) -> [PathBuf; 2] {
        self.spool().slot(number)
    }
}
