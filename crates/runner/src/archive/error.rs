//! Why a job cannot be archived or restored.

use std::io;
use std::path::{Path, PathBuf};

use super::format::VERSION;
use crate::journal::JournalError;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    #[error("job {job} is not finished")]
    NotEnded { job: String },
    #[error("job {job} is part of job {parent}, which is not finished")]
    Awaited { job: String, parent: String },
    #[error("`{job}` cannot be used as the name of an archive file")]
    NoName { job: String },
    #[error("`{path}` already exists and is not an archive of job {job}")]
    InTheWay { path: PathBuf, job: String },
    #[error("line {line} of `{path}`: {what}")]
    Unfit {
        path: PathBuf,
        /// Counted from 1.
        line: u64,
        what: String,
    },
    #[error(
        "line 1 of `{path}`: the archive has version {found}; this release reads versions up to {VERSION}"
    )]
    Newer { path: PathBuf, found: u64 },
    #[error("job {job} already exists and differs from the one in the file")]
    Exists { job: String },
    #[error("cannot use `{path}`")]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl ArchiveError {
    pub(super) fn io(path: &Path) -> impl Fn(io::Error) -> Self {
        |source| Self::Io { path: path.to_owned(), source }
    }
}
