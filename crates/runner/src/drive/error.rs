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
    Function {
        /// The function.
        name: String,
    },
    /// A file of the job cannot be written.
    #[error("`{}` cannot be written", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}
