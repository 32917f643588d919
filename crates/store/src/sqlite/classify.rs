//! Maps errors of the database and the file system to [`StoreError`].

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;

use crate::StoreError;

/// Whether the disk has no room for a write, or for the index of the log, which is memory shared through a file.
pub(super) fn is_disk_full(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
        || error.sqlite_extended_error_code() == Some(SQLITE_IOERR_SHMSIZE)
}

pub(super) fn of_database(path: &Path, waited: Duration, error: rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy { path, waited },
        _ if is_disk_full(&error) => StoreError::DiskFull { path },
        Some(ErrorCode::ReadOnly) => StoreError::ReadOnly { path },
        Some(ErrorCode::PermissionDenied) => StoreError::Denied { path },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Corrupt { path, source: Arc::new(error) }
        }
        _ if malformed(&error) => StoreError::Corrupt { path, source: Arc::new(error) },
        _ => StoreError::Database { path, source: Arc::new(error) },
    }
}

/// Whether a value has a type or size that the store never writes.
fn malformed(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::Utf8Error(..)
            | rusqlite::Error::QueryReturnedNoRows
    )
}

/// Whether it is unknown after a failed write what is on the disk. A full disk and a busy database fail
/// before the commit, but an I/O error may come after it, even one caused by a full disk: the index of the
/// log grows after the log was synced.
pub(super) fn unknown_fate(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::SystemIoFailure | ErrorCode::OutOfMemory | ErrorCode::InternalMalfunction)
    )
}

pub(super) fn of_files(path: &Path, error: std::io::Error) -> StoreError {
    let path = path.to_owned();
    match error.kind() {
        ErrorKind::PermissionDenied => StoreError::Denied { path },
        ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly { path },
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreError::DiskFull { path },
        ErrorKind::NotADirectory => StoreError::NotAFolder { path },
        ErrorKind::IsADirectory => StoreError::NotAFile { path },
        _ => StoreError::Io { path, source: Arc::new(error) },
    }
}
