//! Why an engine has no keeper.

use std::io;

use super::KeeperRefusal;
use crate::spool::SpoolError;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeeperError {
    #[error(transparent)]
    Spool(#[from] SpoolError),
    #[error("the keeper `{program}` cannot be started")]
    Start { program: String, source: io::Error },
    /// It started, and exited before it answered.
    #[error("the keeper gave up: {complaint}")]
    GaveUp { complaint: String },
    /// It did not answer, or not as a keeper does.
    #[error("the keeper does not answer")]
    Silent(#[source] io::Error),
    #[error(transparent)]
    Refused(#[from] KeeperRefusal),
    #[error("the arguments and environment of attempt {id} are too large")]
    TooLarge { id: u64 },
    #[error("`/proc` cannot be read")]
    Processes(#[source] io::Error),
}
