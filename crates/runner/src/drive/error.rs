//! Why a job cannot continue now.

use std::io;
use std::path::PathBuf;

use undaunted_store::{AppendError, StoreError};

use crate::journal::JournalError;
use crate::keeper::{KeeperError, KeeperRefusal};

/// Why a job cannot continue now. Everything on record stays on record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError {
    #[error(transparent)]
    Append(#[from] AppendError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("cannot run commands")]
    Keeper(#[from] KeeperError),
    /// The keeper did not start a command, or cannot store its outcome.
    #[error("the keeper refused a command")]
    Refused(#[source] KeeperRefusal),
    #[error("the function `{name}` is not registered in this program")]
    Function { name: String },
    #[error("cannot write `{}`", path.display())]
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
