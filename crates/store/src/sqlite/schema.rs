//! The tables and their format number, and the first connection to a database.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};

use super::connection::{ConnectionMode, log_of};
use super::{checkpoint, classify};
use crate::StoreError;

pub const FORMAT: i64 = 1;
/// Identifies the database of a store: `undt`.
const APPLICATION: i64 = 0x756e_6474;

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
/// handle was closed properly, `removes` that the handle is for removing, also on a full disk.
pub(super) fn open_first(
    path: &Path,
    patience: Duration,
    mode: ConnectionMode,
    was_closed: bool,
    removes: bool,
) -> Result<Connection, StoreError> {
    let about = |error| about(path, patience, error);
    let connection = mode.open(path, patience).map_err(about)?;
    if is_empty(&connection).map_err(about)? {
        create(&connection).map_err(about)?;
        checkpoint::preallocate_log(&log_of(path));
    }
    recognise(&connection, path, about)?;
    let journal: String =
        connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(about)?;
    if journal != "wal" {
        return Err(not_a_store(path, "its journal mode cannot be set to WAL"));
    }
    if connection.is_readonly("main").map_err(about)? {
        return Err(StoreError::ReadOnly { path: path.to_owned() });
    }
    // After a crash or a failed sync, pages of the log may exist only in the kernel's memory. A checkpoint
    // writes them to the database and syncs them again.
    if !was_closed || checkpoint::log_is_long(&connection).map_err(about)? {
        match checkpoint::run_passive(&connection) {
            // The commits stay in the log, and the changes that make room are written there too.
            Err(error) if removes && classify::is_disk_full(&error) => {}
            moved => moved.map_err(about)?,
        }
    }
    Ok(connection)
}

/// Checks that an existing database can be read, and returns how.
pub(super) fn check_readable(path: &Path, patience: Duration) -> Result<ConnectionMode, StoreError> {
    let about = |error| about(path, patience, error);
    let mode = ConnectionMode::for_reading(path, patience).map_err(about)?;
    let connection = mode.open(path, patience).map_err(about)?;
    if is_empty(&connection).map_err(about)? {
        return Err(StoreError::Missing { path: path.to_owned() });
    }
    recognise(&connection, path, about)?;
    Ok(mode)
}

/// An error of the first connection to a database.
pub(super) fn about(path: &Path, patience: Duration, error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => not_a_store(path, "it is not a SQLite database"),
        _ => classify::of_database(path, patience, error),
    }
}

fn not_a_store(path: &Path, what: &str) -> StoreError {
    StoreError::NotAStore { path: path.to_owned(), what: what.to_owned() }
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
    if number(connection, "application_id").map_err(&about)? != APPLICATION {
        return Err(not_a_store(path, "it is another program's database"));
    }
    match number(connection, "user_version").map_err(&about)? {
        FORMAT => Ok(()),
        found if found > FORMAT => {
            Err(StoreError::NewerFormat { path: path.to_owned(), found, known: FORMAT })
        }
        _ => Err(not_a_store(path, "it has no format number")),
    }
}

fn number(connection: &Connection, pragma: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, pragma, |row| row.get(0))
}
