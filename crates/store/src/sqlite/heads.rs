//! The heads of journals: database queries, and the cache of the writer thread.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension as _};

use crate::{AggregateId, Epoch, Head, Version};

/// More aggregates than a process works on at a time. A larger cache is cleared.
const MAX_CACHED: usize = 10_000;

/// The head of a journal, and the number of its aggregate in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JournalHead {
    pub(super) number: i64,
    pub(super) head: Head,
}

pub(super) fn find(
    connection: &Connection,
    aggregate: &AggregateId,
) -> rusqlite::Result<Option<JournalHead>> {
    let Some((number, epoch)) = number(connection, aggregate)? else {
        return Ok(None);
    };
    let version = version(connection, number)?;
    let head = Head { version, epoch };
    Ok(Some(JournalHead { number, head }))
}

pub(super) fn number(
    connection: &Connection,
    aggregate: &AggregateId,
) -> rusqlite::Result<Option<(i64, Epoch)>> {
    let mut statement =
        connection.prepare_cached("SELECT number, epoch FROM aggregates WHERE family = ?1 AND id = ?2")?;
    let found = statement.query_row((aggregate.family(), aggregate.id()), |row| {
        Ok((row.get(0)?, head(row.get(1)?, None).epoch))
    });
    found.optional()
}

/// The version of a journal, according to its last row.
pub(super) fn version(connection: &Connection, number: i64) -> rusqlite::Result<Version> {
    let mut statement = connection.prepare_cached(
        "SELECT first + count - 1 FROM batches WHERE aggregate = ?1 ORDER BY first DESC LIMIT 1",
    )?;
    let found = statement.query_row([number], |row| row.get(0)).optional()?;
    Ok(head(0, found).version)
}

/// A negative version, which is damage, becomes 0; the reader reports the missing records.
pub(super) fn head(epoch: i64, version: Option<i64>) -> Head {
    Head {
        version: Version(u64::try_from(version.unwrap_or(0)).unwrap_or(0)),
        epoch: Epoch(u64::try_from(epoch).unwrap_or(0)),
    }
}

/// The cache of the writer thread, with which an append needs no query and writes one row. It is valid until
/// another connection writes, which changes SQLite's `data_version`.
#[derive(Debug, Default)]
pub(super) struct HeadCache {
    known: HashMap<AggregateId, JournalHead>,
    data_version: Option<i64>,
}

impl HeadCache {
    /// Must be called first in every transaction.
    pub(super) fn refresh(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let current = data_version(connection)?;
        if self.data_version != Some(current) || self.known.len() > MAX_CACHED {
            self.known.clear();
            self.data_version = Some(current);
        }
        Ok(())
    }

    pub(super) fn get(
        &mut self,
        connection: &Connection,
        aggregate: &AggregateId,
    ) -> rusqlite::Result<Option<JournalHead>> {
        if let Some(known) = self.known.get(aggregate) {
            return Ok(Some(*known));
        }
        let found = find(connection, aggregate)?;
        if let Some(known) = found {
            self.known.insert(aggregate.clone(), known);
        }
        Ok(found)
    }

    pub(super) fn set(&mut self, aggregate: &AggregateId, known: JournalHead) {
        match self.known.get_mut(aggregate) {
            Some(stored) => *stored = known,
            None => {
                self.known.insert(aggregate.clone(), known);
            }
        }
    }

    pub(super) fn forget(&mut self, aggregate: &AggregateId) {
        self.known.remove(aggregate);
    }

    /// Clears the cache after a rollback, which may have undone what it holds.
    pub(super) fn forget_all(&mut self) {
        self.known.clear();
        self.data_version = None;
    }
}

/// Changes when another connection commits. Only comparable within one connection.
pub(super) fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    let mut pragma = connection.prepare_cached("PRAGMA data_version")?;
    pragma.query_row([], |row| row.get(0))
}
