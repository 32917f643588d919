//! Why an engine has no keeper.

use std::io;

use super::Refusal;
use crate::spool::SpoolError;

/// Why there is no keeper to talk to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeeperError {
    /// The spool cannot be used.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// Its process could not be made.
    #[error("the keeper `{program}` cannot be started")]
    Start { program: String, source: io::Error },
    /// It started and gave up.
    #[error("the keeper gave up: {complaint}")]
    GaveUp { complaint: String },
    /// It did not answer, or not as a keeper does.
    #[error("the keeper does not answer")]
    Silent(#[source] io::Error),
    /// It answered that it will not.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The command is too large to be told.
    #[error("the arguments and environment of attempt {id} are too large")]
    TooLarge { id: u64 },
    /// The processes of this machine cannot be read.
    #[error("`/proc` cannot be read")]
    Processes(#[source] io::Error),
}
