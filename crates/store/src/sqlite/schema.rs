//! The tables, their format number, and how a connection is set up.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{checkpoint, classify};
use crate::StoreError;

pub const FORMAT: i64 = 1;
/// Identifies the database of a store: `undt`.
const APPLICATION: i64 = 0x756e_6474;
/// The length to which a checkpointed log is truncated. Overwriting the rest is faster than growing it again.
const KEPT_LOG: i64 = 64 << 20;

/// Rows of `batches` are inserted and deleted, never updated. They are stored in the order of writing, over all
/// aggregates, so that a commit fills the last page instead of writing many. The table is not `WITHOUT ROWID`,
/// where a row of a quarter page takes a whole page.
const TABLES: &str = "
CREATE TABLE aggregates (
    number INTEGER PRIMARY KEY AUTOINCREMENT, -- never given twice
    family TEXT NOT NULL,
    id     TEXT NOT NULL,
    epoch  INTEGER NOT NULL,                  -- of the latest claim, 0 if there was none
    owner  TEXT,                              -- a file in owners/; a claim counts while that is locked
    UNIQUE (family, id)
);
CREATE TABLE batches (
    position  INTEGER PRIMARY KEY,
    aggregate INTEGER NOT NULL,               -- its number
    first     INTEGER NOT NULL,               -- version of the first record in body
    count     INTEGER NOT NULL,
    body      BLOB NOT NULL                   -- records: length, checksum (u32, little-endian), bytes
);
CREATE UNIQUE INDEX batches_in_order ON batches (aggregate, first);
CREATE TABLE requests (
    id        INTEGER PRIMARY KEY,
    aggregate INTEGER NOT NULL,
    body      BLOB NOT NULL                   -- one record, with the id for its version
);
CREATE TABLE counters (
    name  TEXT PRIMARY KEY,                   -- or begin/NUMBER, with the version a trimmed journal begins at
    value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO counters VALUES ('epoch', 0), ('request', 0);
";

/// Opens the database of a store, creating its tables if it is empty. `was_closed` means that every earlier
/// handle was closed properly.
pub(super) fn open_first(
    path: &Path,
    patience: Duration,
    was_closed: bool,
) -> Result<Connection, StoreError> {
    let about = |error: rusqlite::Error| match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => {
            StoreError::NotAStore { path: path.to_owned(), what: "it is not a SQLite database".to_owned() }
        }
        _ => classify::of_database(path, patience, error),
    };
    let connection = open(path, patience).map_err(about)?;
    if is_empty(&connection).map_err(about)? {
        create(&connection).map_err(about)?;
        checkpoint::preallocate_log(&path.with_extension("db-wal"));
    }
    recognise(&connection, path, about)?;
    if connection.is_readonly("main").map_err(about)? {
        return Err(StoreError::ReadOnly { path: path.to_owned() });
    }
    // After a crash or a failed sync, pages of the log may exist only in the kernel's memory. A checkpoint
    // writes them to the database and syncs them again.
    if !was_closed || checkpoint::log_is_long(&connection).map_err(about)? {
        checkpoint::run_passive(&connection).map_err(about)?;
    }
    Ok(connection)
}
pub(super) fn open(path: &Path, patience: Duration) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    set_up(&connection, patience)?;
    Ok(connection)
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

fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(tables == 0 && number(connection, "application_id")? == 0)
}

fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE; {TABLES}
         PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {FORMAT}; COMMIT;"
    ))
}

/// Refuses a foreign database or a newer format, before anything is written to it.
fn recognise(
    connection: &Connection,
    path: &Path,
    about: impl Fn(rusqlite::Error) -> StoreError,
) -> Result<(), StoreError> {
    let path = path.to_owned();
    let not_a_store = |what: &str| StoreError::NotAStore { path: path.clone(), what: what.to_owned() };
    if number(connection, "application_id").map_err(&about)? != APPLICATION {
        return Err(not_a_store("it is another program's database"));
    }
    match number(connection, "user_version").map_err(&about)? {
        FORMAT => {}
        found if found > FORMAT => {
            return Err(StoreError::NewerFormat { path, found, known: FORMAT });
        }
        _ => return Err(not_a_store("it has no format number")),
    }
    let mode: String =
        connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(&about)?;
    if mode == "wal" { Ok(()) } else { Err(not_a_store("its journal mode cannot be set to WAL")) }
}

fn number(connection: &Connection, pragma: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, pragma, |row| row.get(0))
}
