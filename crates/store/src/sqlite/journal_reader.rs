//! Reads the records of a journal, a few rows at a time.
//!
//! A reader holds no transaction between rows, so even a slow one does not block a checkpoint. It reads up to
//! the head at its start and fails if it cannot, so missing rows are always detected. Records before a damaged
//! one are returned. Trimmed records are skipped, even those trimmed during the iteration: only where a record
//! is missing does the reader look up whether it was trimmed, so other journals pay nothing for trimming.

use std::collections::VecDeque;

use rusqlite::Connection;

use super::record_codec::skip;
use super::transaction::{signed, trimmed_before};
use super::{Damage, ReadConnections, RecordCodec, heads};
use crate::{AggregateId, StoreError, Version};

/// The bytes of a fetch. The first fetch is small, since a reader may want one record; each later one is larger.
const FIRST: usize = 16 << 10;
const ENOUGH: usize = 4 << 20;
const MISSING: Damage = "it is missing";

struct BatchRow {
    first: i64,
    body: Vec<u8>,
    /// Records of the row that were not yet read, according to its `count` column.
    left: i64,
    offset: usize,
}

pub(super) struct JournalReader<'a> {
    readers: &'a ReadConnections,
    aggregate: AggregateId,
    codec: RecordCodec,
    number: i64,
    /// Records up to this version are not returned.
    after: Version,
    /// The last record that was read.
    at: Version,
    /// The version at which to stop, or why it could not be read.
    head: Result<Version, StoreError>,
    rows: VecDeque<BatchRow>,
    /// The number of bytes of the next fetch.
    enough: usize,
    failed: bool,
}

impl<'a> JournalReader<'a> {
    pub(super) fn new(
        readers: &'a ReadConnections,
        aggregate: AggregateId,
        number: i64,
        after: Version,
    ) -> Result<Self, StoreError> {
        let head = readers.query(|connection| match heads::version(connection, number)? {
            // Trimming keeps the last record, so if there is none, the record at `begin` is missing.
            Version::EMPTY => Ok(trimmed_before(connection, number)?.unwrap_or_default()),
            head => Ok(head),
        });
        // The row with the first wanted record may start with an earlier one.
        let start = match (after, &head) {
            (Version::EMPTY, _) | (_, Err(_)) => 1,
            (_, Ok(head)) => readers.query(|connection| {
                let mut find = connection.prepare_cached(
                    "SELECT coalesce(max(first), 1) FROM batches WHERE aggregate = ?1 AND first <= ?2",
                )?;
                let wanted = signed(after.next().min(*head).0);
                find.query_row((number, wanted), |row| row.get::<_, i64>(0))
            })?,
        };
        let start = u64::try_from(start).unwrap_or(1);
        Ok(Self {
            readers,
            codec: RecordCodec::of(&aggregate),
            aggregate,
            number,
            after,
            at: Version(start.saturating_sub(1)),
            head,
            rows: VecDeque::new(),
            enough: FIRST,
            failed: false,
        })
    }

    /// Reads the next record, or returns `None` if trimmed records were skipped.
    fn step(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        if self.rows.is_empty() {
            let (number, next) = (self.number, signed(self.at.next().0));
            let enough = self.enough;
            self.enough = enough.saturating_mul(4).min(ENOUGH);
            self.rows = self.readers.query(|reader| fetch(reader, number, next, enough))?;
        }
        let unwanted = self.after.0.saturating_sub(self.at.0);
        let _ = self.pass_over(unwanted);
        // All records before the error that made the head unreadable have been returned.
        if let (true, Err(error)) = (self.rows.is_empty(), &self.head) {
            return Err(error.clone());
        }
        match self.take() {
            Ok(record) => Ok(Some(record)),
            Err(MISSING) if self.skip_trimmed()? => Ok(None),
            // Checked last, because a removed aggregate has lost the note of its trimming.
            Err(MISSING) if self.is_removed()? => {
                Err(StoreError::NotFound { aggregate: self.aggregate.clone() })
            }
            Err(what) => {
                Err(StoreError::Damaged { aggregate: self.aggregate.clone(), version: self.at.next(), what })
            }
        }
    }

    /// Whether the next record was trimmed. If so, the first remaining record comes next, even if it is newer
    /// than the head, so that a journal with records never seems empty.
    fn skip_trimmed(&mut self) -> Result<bool, StoreError> {
        let number = self.number;
        let begin = self.readers.query(|reader| trimmed_before(reader, number))?;
        let Some(begin) = begin.filter(|begin| *begin > self.at.next()) else {
            return Ok(false);
        };
        // More may have been trimmed since these rows were fetched.
        self.rows.retain(|row| row.first >= signed(begin.0));
        self.at = Version(begin.0.saturating_sub(1));
        self.head = self.head.clone().map(|head| head.max(begin));
        Ok(true)
    }

    fn is_removed(&self) -> Result<bool, StoreError> {
        let find = |reader: &_| heads::number(reader, &self.aggregate);
        Ok(self.readers.query(find)?.is_none_or(|(number, _)| number != self.number))
    }

    fn take(&mut self) -> Result<Vec<u8>, Damage> {
        let version = self.at.next();
        let row = self.rows.front_mut().ok_or(MISSING)?;
        if row.offset == 0 && row.first != signed(version.0) {
            return Err(MISSING);
        }
        if row.left <= 0 {
            return Err("its row has more records than its count says");
        }
        let mut rest = row.body.get(row.offset..).unwrap_or_default();
        let record = self.codec.read(&mut rest, version)?.to_vec();
        row.offset = row.body.len().saturating_sub(rest.len());
        row.left = row.left.saturating_sub(1);
        if row.left == 0 && rest.is_empty() {
            self.rows.pop_front();
        }
        self.at = version;
        Ok(record)
    }

    /// Skips up to `many` records of the current row, but not its last one, which `take` has to check. Returns
    /// how many were skipped: none if they are damaged.
    fn pass_over(&mut self, many: u64) -> u64 {
        let Some(row) = self.rows.front_mut() else {
            return 0;
        };
        if row.offset == 0 && row.first != signed(self.at.next().0) {
            return 0;
        }
        let more = u64::try_from(row.left.saturating_sub(1)).unwrap_or_default();
        let many = many.min(more);
        let mut rest = row.body.get(row.offset..).unwrap_or_default();
        if (0..many).try_for_each(|_| skip(&mut rest)).is_err() {
            return 0;
        }
        row.offset = row.body.len().saturating_sub(rest.len());
        row.left = row.left.saturating_sub(signed(many));
        self.at = Version(self.at.0.saturating_add(many));
        many
    }

    /// Whether the head is reached and the last row ends there.
    fn ended(&self) -> bool {
        let at_head = self.head.as_ref().is_ok_and(|head| self.at >= *head);
        at_head && self.rows.front().is_none_or(|row| row.offset == 0)
    }
}

impl Iterator for JournalReader<'_> {
    type Item = Result<(Version, Vec<u8>), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.failed && !self.ended() {
            match self.step() {
                Ok(Some(record)) if self.at > self.after => return Some(Ok((self.at, record))),
                Ok(_) => {}
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }

    /// Skipped records are not checked, unless they are the last of a row.
    fn nth(&mut self, mut many: usize) -> Option<Self::Item> {
        while many > 0 {
            let passed = if self.failed || self.at < self.after {
                0
            } else {
                self.pass_over(u64::try_from(many).unwrap_or(u64::MAX))
            };
            if passed == 0 {
                if let error @ Err(_) = self.next()? {
                    return Some(error);
                }
                many = many.saturating_sub(1);
            }
            many = many.saturating_sub(usize::try_from(passed).unwrap_or(usize::MAX));
        }
        self.next()
    }
}

fn fetch(
    connection: &Connection,
    number: i64,
    first: i64,
    enough: usize,
) -> rusqlite::Result<VecDeque<BatchRow>> {
    let mut select = connection.prepare_cached(
        "SELECT first, count, body FROM batches WHERE aggregate = ?1 AND first >= ?2 ORDER BY first",
    )?;
    let mut found = select.query((number, first))?;
    let (mut rows, mut bytes) = (VecDeque::new(), 0_usize);
    loop {
        match found.next() {
            Ok(Some(row)) => {
                let row = read_row(row);
                // A row has a cost even if its records are short.
                bytes = bytes.saturating_add(row.body.len()).saturating_add(64);
                rows.push_back(row);
            }
            Ok(None) => break,
            // The rows before the damage are returned first; the next fetch fails again.
            Err(_) if !rows.is_empty() => break,
            Err(error) => return Err(error),
        }
        if bytes >= enough {
            break;
        }
    }
    Ok(rows)
}

/// A value of the wrong type becomes 0 or empty, which the caller reports as damage.
fn read_row(row: &rusqlite::Row<'_>) -> BatchRow {
    let body = row.get_ref(2).ok().and_then(|body| body.as_bytes().ok());
    BatchRow {
        first: row.get(0).unwrap_or(0),
        left: row.get(1).unwrap_or(0),
        body: body.unwrap_or_default().to_vec(),
        offset: 0,
    }
}
