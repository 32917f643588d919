//! How a connection to the database is opened: whether it writes, and where it keeps the index of the log.
//!
//! SQLite indexes the write-ahead log in a file beside the database (`undaunted.db-shm`) that all processes share.
//! The first process that opens a store truncates and fills that file, which needs write access and room on the
//! disk. The modes for full disks and read-only folders index the log in memory instead. Each is used only where
//! it is safe, which its description says.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::classify;

/// The length to which a checkpointed log is truncated. Overwriting the rest is faster than growing it again.
const KEPT_LOG: i64 = 64 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionMode {
    /// Reads and writes, as any number of processes may at the same time.
    Shared,
    /// Reads and writes, and locks all other processes out, so that the index can be in the memory of this process.
    /// For changes that make room on a full disk.
    Exclusive,
    /// Reads, sharing the index with other processes.
    Reading,
    /// Reads, with an index of its own as long as no process has the store open for writing. SQLite compares it
    /// with the log in every transaction, and uses the shared index once there is a writer.
    ReadingPrivately,
    /// Reads without locks. Safe as long as there is no index file: a writer creates one before it writes
    /// ([`ConnectionMode::is_outdated`]). For read-only folders.
    ReadingAlone,
    /// Like [`ConnectionMode::ReadingAlone`], without a log.
    ReadingDatabase,
}

impl ConnectionMode {
    /// The mode for reading this database, found by trying.
    pub(super) fn for_reading(database: &Path, patience: Duration) -> rusqlite::Result<Self> {
        let reads = |mode: Self| mode.open(database, patience).and_then(|connection| touch(&connection));
        let Err(error) = reads(Self::Reading) else {
            return Ok(Self::Reading);
        };
        let mode = match error.sqlite_error_code() {
            _ if classify::is_disk_full(&error) => Self::ReadingPrivately,
            // The index cannot be created. Another error may mean that a process has locked the others out.
            Some(ErrorCode::CannotOpen) if !index_of(database).exists() => {
                if log_of(database).exists() {
                    Self::ReadingAlone
                } else {
                    Self::ReadingDatabase
                }
            }
            _ => return Err(error),
        };
        reads(mode).map(|()| mode)
    }

    /// The mode for changes that make room: shared as ever, unless that needs room itself.
    pub(super) fn for_removing(database: &Path, patience: Duration) -> rusqlite::Result<Self> {
        match Self::Shared.open(database, patience).and_then(|connection| touch(&connection)) {
            Err(error) if classify::is_disk_full(&error) => Ok(Self::Exclusive),
            other => other.map(|()| Self::Shared),
        }
    }

    pub(super) fn open(self, database: &Path, patience: Duration) -> rusqlite::Result<Connection> {
        let (writes, reads) = (OpenFlags::SQLITE_OPEN_READ_WRITE, OpenFlags::SQLITE_OPEN_READ_ONLY);
        let any = OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let uri = OpenFlags::SQLITE_OPEN_URI;
        let connection = match self {
            Self::Shared => Connection::open_with_flags(database, writes | any)?,
            Self::Exclusive => Connection::open_with_flags_and_vfs(database, writes | any, "unix-excl")?,
            Self::Reading => Connection::open_with_flags(database, reads | any)?,
            Self::ReadingPrivately => {
                Connection::open_with_flags(with_setting(database, "readonly_shm=1"), reads | any | uri)?
            }
            Self::ReadingAlone => Connection::open_with_flags_and_vfs(database, reads | any, "unix-none")?,
            Self::ReadingDatabase => {
                Connection::open_with_flags(with_setting(database, "immutable=1"), reads | any | uri)?
            }
        };
        if self == Self::ReadingAlone {
            // Only then does SQLite index the log in memory.
            connection.query_row("PRAGMA locking_mode = EXCLUSIVE", [], |_| Ok(()))?;
        }
        set_up(&connection, patience)?;
        Ok(connection)
    }

    /// Whether a process may have written since the connection was opened, unnoticed by a connection without locks.
    pub(super) fn is_outdated(self, database: &Path) -> bool {
        match self {
            Self::Shared | Self::Exclusive | Self::Reading | Self::ReadingPrivately => false,
            Self::ReadingAlone => index_of(database).exists(),
            Self::ReadingDatabase => index_of(database).exists() || log_of(database).exists(),
        }
    }
}

fn set_up(connection: &Connection, patience: Duration) -> rusqlite::Result<()> {
    connection.busy_timeout(patience)?;
    connection.set_prepared_statement_cache_capacity(32);
    // Otherwise SQLite prepares a statement again for every new value, in search of a better plan.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // Otherwise the last process to close the store checkpoints, syncs three files and deletes the log, and
    // the next one creates it again. A long log is checkpointed when the store is opened.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    sync_commits(connection, true)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    // The writer thread checkpoints when no task is waiting (`checkpoint.rs`).
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "journal_size_limit", KEPT_LOG)?;
    Ok(())
}

/// FULL syncs a commit before it is acknowledged; NORMAL syncs it together with the next one.
pub(super) fn sync_commits(connection: &Connection, syncs: bool) -> rusqlite::Result<()> {
    let how = if syncs { "FULL" } else { "NORMAL" };
    connection.pragma_update(None, "synchronous", how)
}

/// Reads something, for which SQLite needs the log and its index.
fn touch(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
}

/// The database as a URI with a setting for SQLite.
fn with_setting(database: &Path, setting: &str) -> PathBuf {
    let absolute = std::path::absolute(database).unwrap_or_else(|_| database.to_owned());
    let mut uri = b"file://".to_vec();
    for byte in absolute.as_os_str().as_bytes() {
        match byte {
            b'%' | b'?' | b'#' => uri.extend(format!("%{byte:02X}").bytes()),
            byte => uri.push(*byte),
        }
    }
    uri.push(b'?');
    uri.extend(setting.bytes());
    OsString::from_vec(uri).into()
}

fn index_of(database: &Path) -> PathBuf {
    database.with_extension("db-shm")
}

pub(super) fn log_of(database: &Path) -> PathBuf {
    database.with_extension("db-wal")
}
