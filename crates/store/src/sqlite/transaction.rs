//! The changes that the writer thread makes inside a transaction.
//!
//! Each change makes all its checks before its first write, so a refusal leaves nothing to undo and does not
//! affect other changes of the same transaction. After a database error the writer rolls the transaction back
//! and runs each change in a transaction of its own.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _, Params};

use super::record_codec::encoded_len;
use super::{HeadCache, JournalHead, RecordCodec, owners};
use crate::{
    AggregateId, Append, AppendError, Claim, ClaimError, Epoch, Head, Owner, RequestId, StoreError, Version,
    append,
};

/// No record is added to a row that it would make longer than this many bytes.
const LONGEST_ROW: usize = 1 << 20;

pub(super) struct StoreTransaction<'a> {
    pub(super) connection: &'a Connection,
    pub(super) heads: &'a mut HeadCache,
    pub(super) owners: &'a Path,
    pub(super) written: usize,
}

/// The outer error is the database's; the inner one is a refusal.
pub(super) type ChangeResult<T, E> = rusqlite::Result<Result<T, E>>;

impl StoreTransaction<'_> {
    /// Returns the version that each journal has reached with its append.
    pub(super) fn append(&mut self, appends: &[Append]) -> ChangeResult<Vec<Version>, AppendError> {
        if let Err(refusal) = self.check(appends)? {
            return Ok(Err(refusal));
        }
        let mut reached = Vec::with_capacity(appends.len());
        for append in appends {
            let mut known = match self.heads.get(self.connection, &append.aggregate)? {
                Some(known) => known,
                None if append.records.is_empty() => {
                    reached.push(Version::EMPTY);
                    continue;
                }
                None => self.make(&append.aggregate)?,
            };
            self.write_rows(known, append)?;
            known.head.version = append.reaches(known.head.version);
            self.heads.set(&append.aggregate, known);
            reached.push(known.head.version);
            for request in &append.taken {
                self.execute("DELETE FROM requests WHERE id = ?1", [signed(request.0)])?;
            }
        }
        Ok(Ok(reached))
    }

    fn check(&mut self, appends: &[Append]) -> ChangeResult<(), AppendError> {
        // The heads after the earlier appends of the same list.
        let mut planned: HashMap<&AggregateId, Head> = HashMap::new();
        for append in appends {
            let head = match planned.get(&append.aggregate) {
                Some(head) => *head,
                None => self
                    .heads
                    .get(self.connection, &append.aggregate)?
                    .map_or_else(Head::default, |known| known.head),
            };
            if let Err(refusal) = append::check(append, head) {
                return Ok(Err(refusal));
            }
            let version = append.reaches(head.version);
            planned.insert(&append.aggregate, Head { version, ..head });
        }
        self.check_taken(appends)
    }

    fn check_taken(&mut self, appends: &[Append]) -> ChangeResult<(), AppendError> {
        let mut seen = vec![];
        for append in appends.iter().filter(|append| !append.taken.is_empty()) {
            let known = self.heads.get(self.connection, &append.aggregate)?;
            for request in &append.taken {
                let mut find = self
                    .connection
                    .prepare_cached("SELECT 1 FROM requests WHERE id = ?1 AND aggregate = ?2")?;
                let number = known.map(|known| known.number);
                if seen.contains(request) || !find.exists((signed(request.0), number))? {
                    return Ok(Err(AppendError::AlreadyTaken {
                        aggregate: append.aggregate.clone(),
                        request: *request,
                    }));
                }
                seen.push(*request);
            }
        }
        Ok(Ok(()))
    }

    /// Writes all records into one row, or into several if they are long. They continue the journal at its
    /// current head, which `check` has compared with the guard.
    fn write_rows(&mut self, known: JournalHead, append: &Append) -> rusqlite::Result<()> {
        let JournalHead { number, head } = known;
        let codec = RecordCodec::of(&append.aggregate);
        let (mut row, mut first) = (vec![], head.version.next());
        let mut version = head.version;
        for record in &append.records {
            if !row.is_empty() && row.len().saturating_add(encoded_len(record)) > LONGEST_ROW {
                self.write_row(number, first, version, &row)?;
                row.clear();
                first = version.next();
            }
            version = version.next();
            codec.write(&mut row, version, record);
        }
        if row.is_empty() {
            return Ok(());
        }
        self.write_row(number, first, version, &row)
    }

    fn write_row(&mut self, number: i64, first: Version, last: Version, body: &[u8]) -> rusqlite::Result<()> {
        let count = last.0.saturating_sub(first.0).saturating_add(1);
        self.execute(
            "INSERT INTO batches VALUES (NULL, ?1, ?2, ?3, ?4)",
            (number, signed(first.0), signed(count), body),
        )?;
        self.written = self.written.saturating_add(body.len());
        Ok(())
    }

    fn make(&mut self, aggregate: &AggregateId) -> rusqlite::Result<JournalHead> {
        let mut insert = self
            .connection
            .prepare_cached("INSERT INTO aggregates (family, id, epoch) VALUES (?1, ?2, 0)")?;
        let number = insert.insert((aggregate.family(), aggregate.id()))?;
        let known = JournalHead { number, head: Head::default() };
        self.heads.set(aggregate, known);
        Ok(known)
    }

    pub(super) fn remove(
        &mut self,
        aggregate: &AggregateId,
        epoch: Epoch,
    ) -> ChangeResult<Option<i64>, AppendError> {
        let Some(known) = self.heads.get(self.connection, aggregate)? else {
            return Ok(Ok(None));
        };
        if let Err(refusal) = append::fenced(aggregate, epoch, known.head) {
            return Ok(Err(refusal));
        }
        for statement in [
            "DELETE FROM batches WHERE aggregate = ?1",
            "DELETE FROM requests WHERE aggregate = ?1",
            "DELETE FROM counters WHERE name = 'begin/' || ?1",
            "DELETE FROM aggregates WHERE number = ?1",
        ] {
            self.execute(statement, [known.number])?;
        }
        self.heads.forget(aggregate);
        Ok(Ok(Some(known.number)))
    }

    pub(super) fn claim(&mut self, aggregate: &AggregateId, name: &str) -> ChangeResult<Claim, ClaimError> {
        let mut known = match self.heads.get(self.connection, aggregate)? {
            None => self.make(aggregate)?,
            Some(known) => match self.living_owner(known.number)? {
                Ok(None) => known,
                Ok(Some(owner)) => {
                    let aggregate = aggregate.clone();
                    return Ok(Err(ClaimError::OwnedBy { aggregate, owner }));
                }
                Err(error) => return Ok(Err(error.into())),
            },
        };
        known.head.epoch = Epoch(self.count("epoch")?);
        self.execute(
            "UPDATE aggregates SET epoch = ?2, owner = ?3 WHERE number = ?1",
            (known.number, signed(known.head.epoch.0), name),
        )?;
        self.heads.set(aggregate, known);
        Ok(Ok(Claim { aggregate: aggregate.clone(), epoch: known.head.epoch, version: known.head.version }))
    }

    fn living_owner(&self, number: i64) -> ChangeResult<Option<Owner>, StoreError> {
        let mut ask = self.connection.prepare_cached("SELECT owner FROM aggregates WHERE number = ?1")?;
        let name = ask.query_row([number], |row| row.get::<_, Option<String>>(0)).optional()?.flatten();
        Ok(name.map_or(Ok(None), |name| owners::living_owner(self.owners, &name)))
    }

    pub(super) fn release(&mut self, claim: &Claim) -> ChangeResult<(), StoreError> {
        let mut update = self.connection.prepare_cached(
            "UPDATE aggregates SET owner = NULL WHERE family = ?1 AND id = ?2 AND epoch = ?3",
        )?;
        let aggregate = &claim.aggregate;
        update.execute((aggregate.family(), aggregate.id(), signed(claim.epoch.0)))?;
        Ok(Ok(()))
    }

    pub(super) fn request(
        &mut self,
        aggregate: &AggregateId,
        bytes: &[u8],
    ) -> ChangeResult<RequestId, StoreError> {
        let known = self.heads.get(self.connection, aggregate)?;
        let Some(known) = known.filter(|known| known.head.version > Version::EMPTY) else {
            return Ok(Err(StoreError::NotFound { aggregate: aggregate.clone() }));
        };
        let id = self.count("request")?;
        let mut body = vec![];
        RecordCodec::of(aggregate).write(&mut body, Version(id), bytes);
        self.execute("INSERT INTO requests VALUES (?1, ?2, ?3)", (signed(id), known.number, body))?;
        Ok(Ok(RequestId(id)))
    }

    /// Removes the rows that hold only records older than `before`. A missing row is damage unless it was trimmed,
    /// so the version of the first row left is stored in `counters`, in the same transaction.
    pub(super) fn trim(&mut self, aggregate: &AggregateId, before: Version) -> ChangeResult<(), StoreError> {
        let Some(known) = self.heads.get(self.connection, aggregate)? else {
            return Ok(Ok(()));
        };
        // Keeps the batch that contains `before`; if no record has that version yet, the last batch, which holds
        // the head.
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

    pub(super) fn execute(&self, statement: &str, values: impl Params) -> rusqlite::Result<usize> {
        self.connection.prepare_cached(statement)?.execute(values)
    }

    /// Increments a counter and returns its value.
    fn count(&self, name: &str) -> rusqlite::Result<u64> {
        let mut next = self
            .connection
            .prepare_cached("UPDATE counters SET value = value + 1 WHERE name = ?1 RETURNING value")?;
        let value: i64 = next.query_row([name], |row| row.get(0))?;
        Ok(u64::try_from(value).unwrap_or(0))
    }
}

/// SQLite's integers are signed. No counter reaches 2^63, and a larger number matches no row.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The version of the first record of a journal that was trimmed.
pub(super) fn trimmed_before(connection: &Connection, number: i64) -> rusqlite::Result<Option<Version>> {
    let mut find = connection.prepare_cached("SELECT value FROM counters WHERE name = 'begin/' || ?1")?;
    let found = find.query_row([number], |row| row.get::<_, i64>(0));
    // A negative number is damage. It counts as 0, so that the reader reports the missing records.
    let version = |value| Version(u64::try_from(value).unwrap_or(0));
    Ok(found.optional()?.map(version))
}
