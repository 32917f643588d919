//! Why a job cannot be moved to a file, or back.

use std::io;
use std::path::{Path, PathBuf};

use super::format::VERSION;
use crate::journal::JournalError;

/// Why a job cannot be archived or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// Only what has ended can be archived.
    #[error("job {job} is not finished")]
    NotEnded { job: String },
    /// Its result is waited for.
    #[error("job {job} is part of job {parent}, which is not finished")]
    Awaited { job: String, parent: String },
    /// A file cannot have this name.
    #[error("`{job}` cannot be the name of a job in a file")]
    NoName { job: String },
    /// Another archive is where this one would be.
    #[error("`{path}` is in the way: it is no archive of what job {job} is")]
    InTheWay { path: PathBuf, job: String },
    /// A file is not an archive, or no longer what was written.
    #[error("line {line} of `{path}`: {what}")]
    Unfit {
        path: PathBuf,
        /// Which line, counted from 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// A later release has written it.
    #[error(
        "line 1 of `{path}`: it is an archive of version {found}; this release knows versions up to {VERSION}"
    )]
    Newer { path: PathBuf, found: u64 },
    /// The store has another job of this name.
    #[error("there is a job {job} already, and it is not the one in the file")]
    Exists { job: String },
    /// The file system says no.
    #[error("`{path}` cannot be used")]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The journal or the catalog cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl ArchiveError {
    pub(super) fn io(path: &Path) -> impl Fn(io::Error) -> Self {
        |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}
