//! Why a job of a program cannot be begun, or gone on with.

use std::io;
use std::path::PathBuf;

use undaunted_engine::submission::SubmissionError;
use undaunted_store::StoreError;

use crate::drive::DriveError;
use crate::journal::JournalError;
use crate::secrets::SecretError;

/// Why a job cannot be begun or gone on with. Nothing that was recorded is lost.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// No job can be called so.
    #[error("a job cannot be called `{job}`: use letters, digits, `_`, `.`, `-` and `+`, 200 at most")]
    Name {
        /// What it was to be called.
        job: String,
    },
    /// The work is not described as the language asks.
    #[error("the work of job `{job}` cannot be understood: {why}")]
    JobDescription {
        /// The job.
        job: String,
        /// Everything that is wrong with it, with line and column.
        why: String,
    },
    /// It calls a function that is not registered.
    #[error("job `{job}` calls the function `{function}`, which is not registered")]
    Function {
        /// The job.
        job: String,
        /// The function.
        function: String,
    },
    /// There is another job of this name.
    #[error("there is a job `{job}` already, and its work is another")]
    Exists {
        /// The job.
        job: String,
    },
    /// It cannot be run here.
    #[error(transparent)]
    Unfit(#[from] SubmissionError),
    /// A secret is not there.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// Its items cannot be kept.
    #[error("`{}` cannot be written", path.display())]
    Items {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It cannot be gone on with now.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// The system gives something that is needed to nobody.
    #[error("the system has no {what}")]
    System {
        /// What.
        what: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// Whoever ran it has gone.
    #[error("nobody runs job `{job}` any more; begin it again to go on with it")]
    Gone {
        /// The job.
        job: String,
    },
}
