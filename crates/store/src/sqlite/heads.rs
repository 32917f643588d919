//! Where journals are, asked of the database and remembered by the writer.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension as _};

use crate::aggregate::AggregateId;
use crate::store::Head;
use crate::version::{Epoch, Version};

/// More than a process works on at a time; past it all is forgotten and asked again.
const MOST: usize = 10_000;

/// An aggregate as the database knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// What its rows are found by.
    pub(super) number: i64,
    pub(super) head: Head,
}

pub(super) fn ask(
    connection: &Connection,
    aggregate: &AggregateId,
) -> rusqlite::Result<Option<Known>> {
    let Some((number, epoch)) = number(connection, aggregate)? else {
        return Ok(None);
    };
    let version = version(connection, number)?;
    let head = Head { version, epoch };
    Ok(Some(Known { number, head }))
}

/// An aggregate's number, and the epoch of its latest claim.
pub(super) fn number(
    connection: &Connection,
    aggregate: &AggregateId,
) -> rusqlite::Result<Option<(i64, Epoch)>> {
    let mut statement = connection
        .prepare_cached("SELECT number, epoch FROM aggregates WHERE family = ?1 AND id = ?2")?;
    let found = statement.query_row((aggregate.family(), aggregate.id()), |row| {
        Ok((row.get(0)?, head(row.get(1)?, None).epoch))
    });
    found.optional()
}

/// How many records an aggregate has, by its last row.
pub(super) fn version(connection: &Connection, number: i64) -> rusqlite::Result<Version> {
    let mut statement = connection.prepare_cached(
        "SELECT first + count - 1 FROM batches WHERE aggregate = ?1 ORDER BY first DESC LIMIT 1",
    )?;
    let found = statement.query_row([number], |row| row.get(0)).optional()?;
    Ok(head(0, found).version)
}

/// A head from its columns. A version of less than nothing is damage; the reader will say where.
pub(super) fn head(epoch: i64, version: Option<i64>) -> Head {
    Head {
        version: Version(u64::try_from(version.unwrap_or(0)).unwrap_or(0)),
        epoch: Epoch(u64::try_from(epoch).unwrap_or(0)),
    }
}

/// What the writer remembers, so that an append asks nothing and writes one row. It counts while
/// nobody else has written, which the database tells by a number.
#[derive(Debug, Default)]
pub(super) struct Heads {
    known: HashMap<AggregateId, Known>,
    seen: Option<i64>,
}

impl Heads {
    /// Called inside each transaction before anything else.
    pub(super) fn refresh(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let mut statement = connection.prepare_cached("PRAGMA data_version")?;
        let now: i64 = statement.query_row([], |row| row.get(0))?;
        if self.seen != Some(now) || self.known.len() > MOST {
            self.known.clear();
            self.seen = Some(now);
        }
        Ok(())
    }

    pub(super) fn get(
        &mut self,
        connection: &Connection,
        aggregate: &AggregateId,
    ) -> rusqlite::Result<Option<Known>> {
        if let Some(known) = self.known.get(aggregate) {
            return Ok(Some(*known));
        }
        let found = ask(connection, aggregate)?;
        if let Some(known) = found {
            self.known.insert(aggregate.clone(), known);
        }
        Ok(found)
    }

    pub(super) fn set(&mut self, aggregate: &AggregateId, known: Known) {
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

    /// After a transaction that was undone, nothing remembered counts.
    pub(super) fn forget_all(&mut self) {
        self.known.clear();
        self.seen = None;
    }
}
