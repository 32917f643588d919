//! A job as read from a store: its latest snapshot, if there is one, and the records after that.
//!
//! A snapshot holds a copy of the last record it covers, and is used only if the journal has the same record
//! at that version. So in a store that was restored from a backup, a job does not continue from a later
//! snapshot.

use undaunted_engine::event::Record;
use undaunted_engine::job::{Job, Plans};
use undaunted_store::{AggregateId, Records, Snapshot, Store, Version};

use crate::JournalError;
use crate::journal::{aggregate, begin, decode, not_found};

/// A job as read from a store. Another process may have advanced it since.
#[derive(Debug)]
pub struct StoredJob {
    pub job: Job,
    pub(crate) version: Version,
    /// The record at `version`.
    pub(crate) last: Vec<u8>,
    /// The version of the snapshot it was read from, and its size in bytes.
    pub(crate) saved: (Version, usize),
    /// Why later snapshots could not be used, one sentence each. A snapshot that is ahead of its journal
    /// shows that records were lost.
    pub ignored: Vec<String>,
}

impl StoredJob {
    pub fn read(store: &dyn Store, job: &str, plans: &Plans) -> Result<Self, JournalError> {
        let aggregate = aggregate(job)?;
        // Without a snapshot, the journal has everything.
        let (latest, ignored) = match store.latest_snapshot(&aggregate) {
            Ok(found) => (found.latest, found.ignored),
            Err(_) => (None, Vec::new()),
        };
        if let Some((mut saved, rest)) = saved(store, &aggregate, latest, plans) {
            saved.ignored = ignored;
            return saved.with(rest);
        }
        let mut records = store.read(&aggregate, Version::default())?;
        let (version, last) = records.next().ok_or_else(|| not_found(job))??;
        let known = Self {
            job: begin(job, &decode(job, version, &last)?, plans)?,
            version,
            last,
            saved: (Version::default(), 0),
            ignored,
        };
        known.with(records)
    }

    pub(crate) fn brought_up_to_date(self, store: &dyn Store, plans: &Plans) -> Result<Self, JournalError> {
        let aggregate = aggregate(self.job.id())?;
        match records_after(store, &aggregate, self.version, &self.last) {
            Some(rest) => self.with(rest),
            // The name now belongs to another job.
            None => Self::read(store, self.job.id(), plans),
        }
    }

    fn with(mut self, records: Records<'_>) -> Result<Self, JournalError> {
        for read in records {
            let (version, bytes) = read?;
            let record: Record = decode(self.job.id(), version, &bytes)?;
            self.job.apply(&record);
            (self.version, self.last) = (version, bytes);
        }
        Ok(self)
    }
}

/// A snapshot: the job, its last record, and the length of that record.
pub(crate) fn snapshot_bytes(job: &Job, last: &[u8]) -> Vec<u8> {
    let mut bytes = job.save();
    bytes.extend_from_slice(last);
    let length = u32::try_from(last.len()).unwrap_or(u32::MAX);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes
}

/// The job from its latest snapshot, and the records after it. None without a usable snapshot.
fn saved<'s>(
    store: &'s dyn Store,
    aggregate: &AggregateId,
    latest: Option<Snapshot>,
    plans: &Plans,
) -> Option<(StoredJob, Records<'s>)> {
    let found = latest?;
    let (bytes, length) = found.bytes.split_last_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (bytes, last) = bytes.split_at_checked(bytes.len().checked_sub(length)?)?;
    let rest = records_after(store, aggregate, found.at, last)?;
    let job = Job::restore(bytes, plans).ok()?;
    let known = StoredJob {
        job,
        version: found.at,
        last: last.to_vec(),
        saved: (found.at, found.bytes.len()),
        ignored: Vec::new(),
    };
    Some((known, rest))
}

/// The records after `at`, if the journal has `last` there.
pub(crate) fn records_after<'s>(
    store: &'s dyn Store,
    aggregate: &AggregateId,
    at: Version,
    last: &[u8],
) -> Option<Records<'s>> {
    let before = Version(at.0.saturating_sub(1));
    let mut records = store.read(aggregate, before).ok()?;
    match records.next()? {
        Ok((version, record)) if version == at && record == last => Some(records),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
