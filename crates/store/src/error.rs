//! Errors of a store.
//!
//! The fields of an error hold the facts. Advice is returned by [`StoreError::help`] and is never part of a
//! message.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::{AggregateId, RequestId, Version};

/// A cause, shared by all appends that failed with it.
pub type SharedError = Arc<dyn Error + Send + Sync>;

#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    #[error("there is no store in `{path}`")]
    Missing { path: PathBuf },
    #[error("the store path `{path}` is not a folder")]
    NotAFolder { path: PathBuf },
    #[error("`{path}` is a folder, but the store needs a file there")]
    NotAFile { path: PathBuf },
    #[error("the store `{path}` is read-only")]
    ReadOnly { path: PathBuf },
    #[error("cannot access `{path}`: permission denied")]
    Denied { path: PathBuf },
    #[error("cannot write to `{path}`: the disk is full")]
    DiskFull { path: PathBuf },
    /// Nothing was changed.
    #[error("cannot compact `{path}`: the disk is full, and {missing} more bytes are needed")]
    NoRoomToCompact { path: PathBuf, missing: u64 },
    #[error("the store `{path}` is locked by another process (waited {waited:?})")]
    Busy { path: PathBuf, waited: Duration },
    #[error("`{path}` is not an Undaunted store: {what}")]
    NotAStore { path: PathBuf, what: String },
    #[error("the store `{path}` has format {found}; this release reads formats up to {known}")]
    NewerFormat { path: PathBuf, found: i64, known: i64 },
    /// File locks and shared memory are unreliable there.
    #[error("the store `{path}` is on a network file system ({name})")]
    NetworkFileSystem { path: PathBuf, name: String },
    #[error("the store database `{path}` is damaged")]
    Corrupt {
        path: PathBuf,
        #[source]
        source: SharedError,
    },
    #[error("record {version} of {aggregate} is damaged: {what}")]
    Damaged { aggregate: AggregateId, version: Version, what: &'static str },
    #[error("request {request} of {aggregate} is damaged: {what}")]
    DamagedRequest {
        aggregate: AggregateId,
        /// An append can take it like any other request.
        request: RequestId,
        what: &'static str,
    },
    /// A commit may or may not have reached the disk. From then on the handle acknowledges nothing.
    #[error("a commit failed and may not have reached the disk; the store must be reopened")]
    MustReopen {
        #[source]
        source: SharedError,
    },
    /// The store cannot be reached now. The call can be repeated later through the same handle. Only an
    /// append may have taken effect; repeating it shows whether it has.
    #[error("the store `{store}` cannot be reached")]
    Unreachable {
        /// The address, without secrets.
        store: String,
        #[source]
        source: SharedError,
    },
    #[error("a record of {bytes} bytes for {aggregate} is too large; the limit is {most} bytes")]
    TooLarge { aggregate: AggregateId, bytes: usize, most: usize },
    #[error(
        "the snapshot of {aggregate} at version {at} is ahead of its journal, which is at version {head}"
    )]
    AheadOfJournal {
        aggregate: AggregateId,
        /// The version of the last record in the snapshot.
        at: Version,
        head: Version,
    },
    #[error("{aggregate} not found in the store")]
    NotFound { aggregate: AggregateId },
    #[error("cannot read or write `{path}`")]
    Io {
        path: PathBuf,
        #[source]
        source: Arc<std::io::Error>,
    },
    #[error("a database operation on `{path}` failed")]
    Database {
        path: PathBuf,
        #[source]
        source: SharedError,
    },
}

impl StoreError {
    /// A word for this error, the same in every release.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "no-store",
            Self::NotAFolder { .. } => "store-not-a-folder",
            Self::NotAFile { .. } => "store-not-a-file",
            Self::ReadOnly { .. } => "store-read-only",
            Self::Denied { .. } => "store-denied",
            Self::DiskFull { .. } | Self::NoRoomToCompact { .. } => "store-disk-full",
            Self::Busy { .. } => "store-busy",
            Self::NotAStore { .. } => "not-a-store",
            Self::NewerFormat { .. } => "store-newer-format",
            Self::NetworkFileSystem { .. } => "store-network-file-system",
            Self::Corrupt { .. } => "store-corrupt",
            Self::Damaged { .. } => "record-damaged",
            Self::DamagedRequest { .. } => "request-damaged",
            Self::MustReopen { .. } => "store-must-reopen",
            Self::Unreachable { .. } => "store-unreachable",
            Self::TooLarge { .. } => "record-too-large",
            Self::AheadOfJournal { .. } => "snapshot-ahead-of-journal",
            Self::NotFound { .. } => "not-found",
            Self::Io { .. } => "store-io",
            Self::Database { .. } => "store-database",
        }
    }

    pub const fn help(&self) -> Option<&'static str> {
        Some(match self {
            Self::NotAFolder { .. } | Self::NotAFile { .. } | Self::NotAStore { .. } => {
                "choose another folder with --store; a missing folder is created"
            }
            Self::Missing { .. } => "check the path; `undaunted run` creates a store where --store says",
            Self::ReadOnly { .. } => {
                "jobs can be listed and shown there; to run or change them, make the folder and its files writable, or choose another with --store"
            }
            Self::Denied { .. } => {
                "make the folder and its files readable and writable, or choose another with --store"
            }
            Self::DiskFull { .. } => {
                "no acknowledged data is lost; free disk space (`undaunted prune` and `undaunted rm` remove jobs), then resume"
            }
            Self::NoRoomToCompact { .. } => {
                "nothing was changed; remove jobs with `undaunted rm` or `undaunted prune`, which work on a full disk, then compact again"
            }
            Self::Busy { .. } => "try again when the other process has finished writing",
            Self::NewerFormat { .. } => "use the release that wrote the store, or a later one",
            Self::NetworkFileSystem { .. } => {
                "file locks are unreliable there; choose a folder on a local disk with --store"
            }
            Self::Corrupt { .. } => {
                "copy the folder first; then `sqlite3 undaunted.db .recover` saves what can still be read"
            }
            Self::Damaged { .. } => {
                "copy the folder first; all records before the damaged one can still be read"
            }
            Self::DamagedRequest { .. } => "the request cannot be read; send it again",
            Self::MustReopen { .. } => {
                "check the disk, then resume; opening the store finds what was written"
            }
            Self::Unreachable { .. } => "check the server and the network, then try again",
            Self::TooLarge { .. } => "keep large data in a file and record its name",
            Self::AheadOfJournal { .. } | Self::NotFound { .. } | Self::Io { .. } | Self::Database { .. } => {
                return None;
            }
        })
    }

    /// Whether the same call can be repeated later through the same handle.
    pub const fn is_outage(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }

    /// The error of a handle whose writing thread has ended.
    pub(crate) fn closed() -> Self {
        Self::MustReopen {
            source: Arc::from(Box::<dyn Error + Send + Sync>::from("the store's writing thread has ended")),
        }
    }
}
