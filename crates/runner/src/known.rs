//! A job as it was read: from what was saved of it, if it was, and the records after that.
//!
//! What was saved is worth nothing by itself: it stands behind a record of its journal, brings that
//! record with it, and is used only if the journal has the same one there. So a store that somebody has
//! put back to an earlier day is not gone on with from a later one.

use undaunted_engine::event::Record;
use undaunted_engine::job::{Job, Plans};
use undaunted_store::{AggregateId, Records, Snapshot, Store, Version};

use crate::journal::{JournalError, aggregate, decode};

/// A job as it was read. Somebody may have gone on with it since.
#[derive(Debug)]
pub struct Known {
    pub job: Job,
    /// How long its journal was.
    pub(crate) version: Version,
    /// The last record of that.
    pub(crate) last: Vec<u8>,
    /// The last record that is part of what was saved, and how many bytes that has.
    pub(crate) saved: (Version, usize),
    /// Why something later that was saved could not be used, one sentence each: what is ahead of its
    /// journal says that records were lost.
    pub ignored: Vec<String>,
}

impl Known {
    pub fn read(store: &dyn Store, job: &str, plans: &Plans) -> Result<Self, JournalError> {
        let aggregate = aggregate(job)?;
        // Without what was saved the journal has everything.
        let (latest, ignored) = match store.latest_snapshot(&aggregate) {
            Ok(found) => (found.latest, found.ignored),
            Err(_) => (None, Vec::new()),
        };
        if let Some((mut saved, rest)) = saved(store, &aggregate, latest, plans) {
            saved.ignored = ignored;
            return saved.with(rest);
        }
        let mut records = store.read(&aggregate, Version::default())?;
        let not_found = || JournalError::NotFound {
            job: job.to_owned(),
        };
        let first = records.next().ok_or_else(not_found)?;
        let (version, last) = first?;
        let begun = Job::begin_sharing(&decode(job, version, &last)?, plans);
        let known = Self {
            job: begun.map_err(|why| JournalError::Job {
                job: job.to_owned(),
                why,
            })?,
            version,
            last,
            saved: (Version::default(), 0),
            ignored,
        };
        known.with(records)
    }

    /// The same, with what was recorded since.
    pub(crate) fn brought_up_to_date(
        self,
        store: &dyn Store,
        plans: &Plans,
    ) -> Result<Self, JournalError> {
        let aggregate = aggregate(self.job.id())?;
        match behind(store, &aggregate, self.version, &self.last) {
            Some(rest) => self.with(rest),
            // Another job has its name by now.
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

/// A job as bytes, behind this record.
pub(crate) fn bytes_of(job: &Job, last: &[u8]) -> Vec<u8> {
    let mut bytes = job.save();
    bytes.extend_from_slice(last);
    let length = u32::try_from(last.len()).unwrap_or(u32::MAX);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes
}

/// The job as it was saved last, and the records after that. None if it was not saved or that cannot be
/// used: its journal has everything.
fn saved<'s>(
    store: &'s dyn Store,
    aggregate: &AggregateId,
    latest: Option<Snapshot>,
    plans: &Plans,
) -> Option<(Known, Records<'s>)> {
    let found = latest?;
    let (bytes, length) = found.bytes.split_last_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (bytes, last) = bytes.split_at_checked(bytes.len().checked_sub(length)?)?;
    let rest = behind(store, aggregate, found.at, last)?;
    let job = Job::restore(bytes, plans).ok()?;
    let known = Known {
        job,
        version: found.at,
        last: last.to_vec(),
        saved: (found.at, found.bytes.len()),
        ignored: Vec::new(),
    };
    Some((known, rest))
}

/// The records behind one, if the journal has it there.
fn behind<'s>(
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
