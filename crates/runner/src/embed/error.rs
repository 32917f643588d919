//! Errors of a program that embeds the runner.

use std::io;
use std::path::PathBuf;

use undaunted_engine::submission::SubmissionError;
use undaunted_store::StoreError;

use crate::secrets::SecretError;
use crate::{DriveError, JournalError};

/// Why a job cannot be begun, resumed or read. Everything on record before the error stays on record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// The name cannot be used for a job.
    #[error("`{job}` is not a valid job name: use up to 200 letters, digits, `_`, `.`, `-` and `+`")]
    Name {
        /// The refused name.
        job: String,
    },
    /// The [`JobDescription`](super::JobDescription) is not a valid workflow.
    #[error("the description of job `{job}` is not valid: {why}")]
    JobDescription {
        /// The name of the job.
        job: String,
        /// All errors in one line, each with its line and column or its key.
        why: String,
    },
    /// The job calls a function that the [`Functions`](super::Functions) of the runner do not have.
    #[error("job `{job}` calls the function `{function}`, which is not registered")]
    Function {
        /// The name of the job.
        job: String,
        /// The name of the missing function.
        function: String,
    },
    /// The store has a job of this name with a different description.
    #[error("job `{job}` already exists with a different description")]
    Exists {
        /// The name of the job.
        job: String,
    },
    /// The description is valid, but the job cannot be submitted.
    #[error(transparent)]
    Unfit(#[from] SubmissionError),
    /// A secret of the job cannot be read.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The file with the items of the job cannot be written.
    #[error("cannot write `{}`", path.display())]
    Items {
        /// The path of the file.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The journal of the job cannot be read, claimed or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The job could not be run to its end.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// The operating system refused a resource.
    #[error("cannot get {what} from the operating system")]
    System {
        /// The resource, such as `random numbers`.
        what: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The runner stopped before the job ended.
    #[error("the runner of job `{job}` has stopped; begin the job again to resume it")]
    Gone {
        /// The name of the job.
        job: String,
    },
}
