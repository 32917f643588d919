//! Errors of a store and its surroundings.
//!
//! Facts, in fields. Advice is [`StoreError::help`], never part of a message.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::aggregate::AggregateId;
use crate::request::RequestId;
use crate::version::Version;

/// A cause, shared by all the appends it has stopped.
pub type SharedError = Arc<dyn Error + Send + Sync>;

#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    #[error("the store `{path}` is not a folder")]
    NotAFolder { path: PathBuf },
    #[error("`{path}` is a folder, where the store has a file")]
    NotAFile { path: PathBuf },
    #[error("the store `{path}` is read-only")]
    ReadOnly { path: PathBuf },
    #[error("access to `{path}` is denied")]
    Denied { path: PathBuf },
    #[error("the disk of `{path}` is full")]
    DiskFull { path: PathBuf },
    #[error("the store `{path}` is busy, after a wait of {waited:?}")]
    Busy { path: PathBuf, waited: Duration },
    #[error("`{path}` is not a store: {what}")]
    NotAStore { path: PathBuf, what: String },
    #[error("the store `{path}` has format {found}; this release knows formats up to {known}")]
    NewerFormat { path: PathBuf, found: i64, known: i64 },
    /// Locks and shared memory maps do not work there.
    #[error("the store `{path}` is on a network file system ({name})")]
    NetworkFileSystem { path: PathBuf, name: String },
    /// Of the database as a whole.
    #[error("the database of the store `{path}` is damaged")]
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
        /// It can be taken like any other.
        request: RequestId,
        what: &'static str,
    },
    /// A commit may or may not have reached the disk. From then on the handle acknowledges nothing.
    #[error("the store has to be opened again: it is not known what reached the disk")]
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
    #[error("a record of {bytes} bytes for {aggregate} is too large; {most} is the most")]
    TooLarge { aggregate: AggregateId, bytes: usize, most: usize },
    #[error("a snapshot of {aggregate} at version {at} is ahead of its journal, at {head}")]
    AheadOfJournal {
        aggregate: AggregateId,
        /// The last version the snapshot claims to include.
        at: Version,
        head: Version,
    },
    #[error("{aggregate} is not in the store")]
    NotFound { aggregate: AggregateId },
    #[error("`{path}` cannot be used")]
    Io {
        path: PathBuf,
        #[source]
        source: Arc<std::io::Error>,
    },
    #[error("the database of the store `{path}` failed")]
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
            Self::NotAFolder { .. } => "store-not-a-folder",
            Self::NotAFile { .. } => "store-not-a-file",
            Self::ReadOnly { .. } => "store-read-only",
            Self::Denied { .. } => "store-denied",
            Self::DiskFull { .. } => "store-disk-full",
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
                "name another folder with --store; one that is missing is made"
            }
            Self::ReadOnly { .. } | Self::Denied { .. } => {
                "a store is written to even when it is only read; make the folder and its files yours to write, or name another with --store"
            }
            Self::DiskFull { .. } => "nothing that was acknowledged is lost; make room and resume",
            Self::Busy { .. } => "another process is writing for long; try again",
            Self::NewerFormat { .. } => "use the release that wrote it, or a later one",
            Self::NetworkFileSystem { .. } => {
                "locks between processes cannot be relied on there; name a folder on a local disk with --store"
            }
            Self::Corrupt { .. } => {
                "copy the folder before anything else; the command `sqlite3 undaunted.db .recover` saves what can be read"
            }
            Self::Damaged { .. } => {
                "everything before that record can be read; copy the folder before anything else"
            }
            Self::DamagedRequest { .. } => "it is not known what was asked; ask again",
            Self::MustReopen { .. } => "look at the disk, then resume: what reached it is found",
            Self::Unreachable { .. } => "look at the server and at the way to it, then try again",
            Self::TooLarge { .. } => "keep what is large in a file and record its name",
            Self::AheadOfJournal { .. } | Self::NotFound { .. } | Self::Io { .. } | Self::Database { .. } => {
                return None;
            }
        })
    }

    /// Whether the call can be repeated later through the same handle.
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
