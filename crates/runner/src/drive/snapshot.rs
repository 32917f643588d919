//! Snapshots of a job, written outside the loop.
//!
//! A snapshot holds the job after a batch of records, and is written once the batch is on disk. The larger it
//! is, the less often it is written, so that the cost per record does not grow with the job.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use undaunted_store::Version;

use super::job_journal::JobJournal;
use super::running::{JobDriver, Services};
use crate::stored_job;

pub(super) struct SnapshotSchedule {
    /// The last version it covers.
    pub(super) at: Version,
    pub(super) bytes: usize,
    /// The last record that was handed over, encoded.
    pub(super) last: Vec<u8>,
    pub(super) under_way: Arc<AtomicBool>,
}

#[derive(Clone, Copy)]
pub(super) enum SnapshotOccasion {
    Batch,
    /// Nothing runs, and nothing is being written.
    Rest,
    Leaving,
}

impl SnapshotOccasion {
    /// How many bytes a snapshot may have for every record since the last one. The record of an
    /// attempt has some sixty bytes itself.
    const fn bytes_a_record(self) -> usize {
        match self {
            Self::Batch => 32,
            // Nothing waits for it, and it may shorten a later recovery a lot.
            Self::Rest => 256,
            Self::Leaving => usize::MAX,
        }
    }
}

impl JobJournal {
    /// Writes a snapshot at a version that is on the disk.
    pub(super) fn write_saved(&self, services: &Services, at: Version, bytes: Vec<u8>) {
        let store = Arc::clone(&services.store);
        let aggregate = self.claim.aggregate.clone();
        let under_way = Arc::clone(&self.saving.under_way);
        under_way.store(true, Ordering::Release);
        services.machine.save(Box::new(move || {
            // Without a snapshot, recovery only takes longer.
            drop(store.save_snapshot(&aggregate, at, bytes));
            under_way.store(false, Ordering::Release);
        }));
    }
}

impl JobDriver<'_> {
    /// A snapshot after everything that was submitted, if it is worth its cost now.
    pub(super) fn save_for(&mut self, occasion: SnapshotOccasion) -> Option<Vec<u8>> {
        let version = self.journal.version;
        let saving = &mut self.journal.saving;
        let since = version.0.saturating_sub(saving.at.0);
        let records = usize::try_from(since).unwrap_or(usize::MAX);
        let may_have = records.saturating_mul(occasion.bytes_a_record());
        // A job that has ended is rarely resumed; and a snapshot needs the last record it covers.
        if self.job.stage.has_ended()
            || saving.last.is_empty()
            || since < self.context.services.machine.save_after()
            || may_have < saving.bytes
            || saving.under_way.load(Ordering::Acquire)
        {
            return None;
        }
        let bytes = stored_job::snapshot_bytes(&self.job, &saving.last);
        saving.at = version;
        saving.bytes = bytes.len();
        Some(bytes)
    }

    pub(super) fn save_at_rest(&mut self) {
        if self.journal.is_written()
            && self.job.starts.running.is_empty()
            && let Some(bytes) = self.save_for(SnapshotOccasion::Rest)
        {
            let at = self.journal.version;
            self.journal.write_saved(self.context.services, at, bytes);
        }
    }

    pub(super) fn save_before_leaving(&mut self) {
        if self.journal.is_written()
            && let Some(bytes) = self.save_for(SnapshotOccasion::Leaving)
        {
            let (of, at) = (&self.journal.claim.aggregate, self.journal.version);
            // Without a snapshot, recovery only takes longer.
            drop(self.context.services.store.save_snapshot(of, at, bytes));
        }
    }
}
