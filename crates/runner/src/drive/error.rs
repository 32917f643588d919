//! Why a job cannot continue now.

use std::io;
use std::path::PathBuf;

use undaunted_store::{AppendError, StoreError};

use crate::journal::JournalError;
use crate::keeper::{KeeperError, KeeperRefusal};

/// Why a job cannot continue now. Nothing that was recorded is lost.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError {
    #[error(transparent)]
    Append(#[from] AppendError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("commands cannot be run")]
    Keeper(#[from] KeeperError),
    /// The keeper did not start a command, or cannot store its outcome.
    #[error("commands cannot be begun or ended in good order")]
    Refused(#[source] KeeperRefusal),
    #[error("a command calls the function `{name}`, which this program does not have")]
    Function { name: String },
    #[error("`{}` cannot be written", path.display())]
    File { path: PathBuf, source: io::Error },
}

impl DriveError {
    pub const fn of_store(&self) -> Option<&StoreError> {
        match self {
            Self::Store(error) | Self::Append(AppendError::Store(error)) => Some(error),
            Self::Journal(error) => error.of_store(),
            _ => None,
        }
    }

    /// The store's error, if the job continues when the outage is over.
    pub(super) fn outage(&self) -> Option<&StoreError> {
        self.of_store().filter(|error| error.is_outage())
    }
}
