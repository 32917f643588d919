//! Trimming: removes the beginning of a journal.
//!
//! A missing row is damage, unless it was trimmed. So the first version of a trimmed journal is stored in
//! `counters`, under a name with the aggregate's number, in the transaction that removes the rows: a crash
//! leaves both or neither. A journal that was never trimmed has no such counter.

use rusqlite::{Connection, OptionalExtension as _};

use super::transaction::{ChangeResult, StoreTransaction, signed};
use crate::aggregate::AggregateId;
use crate::error::StoreError;
use crate::version::Version;

/// The version of the first record of a journal that was trimmed.
pub(super) fn begin(connection: &Connection, number: i64) -> rusqlite::Result<Option<Version>> {
    let mut find = connection.prepare_cached("SELECT value FROM counters WHERE name = 'begin/' || ?1")?;
    let found = find.query_row([number], |row| row.get::<_, i64>(0));
    // A negative number is damage. It counts as 0, so that the reader reports the missing records.
    let version = |value| Version(u64::try_from(value).unwrap_or(0));
    Ok(found.optional()?.map(version))
}

impl StoreTransaction<'_> {
    /// Removes the rows that hold only records older than `before`.
    pub(super) fn trim(&mut self, aggregate: &AggregateId, before: Version) -> ChangeResult<(), StoreError> {
        let Some(known) = self.heads.get(self.connection, aggregate)? else {
            return Ok(Ok(()));
        };
        // The row with that record stays; if there is none yet, the last row stays, which holds the head.
        let mut find = self
            .connection
            .prepare_cached("SELECT max(first) FROM batches WHERE aggregate = ?1 AND first <= ?2")?;
        let before = signed(before.0);
        let found = find.query_row((known.number, before), |row| row.get::<_, Option<i64>>(0))?;
        let Some(begin) = found else {
            return Ok(Ok(()));
        };
        let values = (known.number, begin);
        if self.execute("DELETE FROM batches WHERE aggregate = ?1 AND first < ?2", values)? > 0 {
            self.execute(
                "INSERT INTO counters VALUES ('begin/' || ?1, ?2)
                 ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                values,
            )?;
        }
        Ok(Ok(()))
    }
}
