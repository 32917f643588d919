//! Why a job cannot be gone on with now.

use std::io;
use std::path::PathBuf;

use undaunted_store::{AppendError, StoreError};

use crate::journal::JournalError;
use crate::keeper::{KeeperError, Refusal};

/// Why a job cannot be gone on with now. Nothing that was recorded is lost.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError {
    /// What was decided cannot be recorded.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The store has failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// There is no keeper to run commands.
    #[error("commands cannot be run")]
    Keeper(#[from] KeeperError),
    /// The keeper did not start a command, or cannot keep what it left.
    #[error("commands cannot be begun or ended in good order")]
    Refused(#[source] Refusal),
    /// A command is a function that is not here.
    #[error("a command calls the function `{name}`, which this program does not have")]
    Function { name: String },
    /// A file of the job cannot be written.
    #[error("`{}` cannot be written", path.display())]
    File { path: PathBuf, source: io::Error },
}

impl DriveError {
    /// The error of the store, if the job is run on when the store can be reached.
    pub(super) const fn outage(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error) | Self::Append(AppendError::Store(error)) if error.is_outage() => {
                Some(error)
            }
            Self::Journal(error) => error.outage(),
            _ => None,
        }
    }
}
