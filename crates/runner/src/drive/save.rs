//! Saving the job now and then, beside the way of its records.
//!
//! What is saved is the job as it is behind a batch of records, and it is written, by somebody else
//! than the loop, when those are on the disk. How often follows from how much it is: what a record
//! costs does not grow with the job.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use undaunted_store::Version;

use super::job_journal::JobJournal;
use super::running::{Drive, World};
use crate::known;

/// What is known of the last time a job was saved.
pub(super) struct Saving {
    /// The last record it included.
    pub(super) at: Version,
    /// How many bytes it had.
    pub(super) bytes: usize,
    /// The last record that was handed over.
    pub(super) last: Vec<u8>,
    /// Whether it is still being written.
    pub(super) under_way: Arc<AtomicBool>,
}

/// When a job is to be saved.
#[derive(Clone, Copy)]
pub(super) enum Occasion {
    /// A batch of records is handed over.
    Batch,
    /// Nothing runs, and nothing is being written.
    Rest,
    /// Nobody runs it any more.
    Leaving,
}

impl Occasion {
    /// How many bytes may be saved for every record since the last time. A record of an attempt has
    /// some sixty itself.
    const fn bytes_a_record(self) -> usize {
        match self {
            Self::Batch => 32,
            // Nobody waits for anything, and much may be read sooner for it one day.
            Self::Rest => 256,
            Self::Leaving => usize::MAX,
        }
    }
}

impl JobJournal {
    /// Has it written that the job was this behind a record that is on the disk.
    pub(super) fn write_saved(&self, world: &World, at: Version, bytes: Vec<u8>) {
        let store = Arc::clone(&world.store);
        let aggregate = self.claim.aggregate.clone();
        let under_way = Arc::clone(&self.saving.under_way);
        under_way.store(true, Ordering::Release);
        world.machine.save(Box::new(move || {
            // Without it, going on takes longer.
            drop(store.save_snapshot(&aggregate, at, bytes));
            under_way.store(false, Ordering::Release);
        }));
    }
}

impl Drive<'_> {
    /// The job as bytes behind everything that was handed over, if it is worth it now.
    pub(super) fn save_for(&mut self, occasion: Occasion) -> Option<Vec<u8>> {
        let version = self.journal.version;
        let saving = &mut self.journal.saving;
        let since = version.0.saturating_sub(saving.at.0);
        let records = usize::try_from(since).unwrap_or(usize::MAX);
        let may_have = records.saturating_mul(occasion.bytes_a_record());
        // Few go on with a job that has ended; what stands behind no known record is of no use.
        if self.job.stage.has_ended()
            || saving.last.is_empty()
            || since < self.context.world.machine.save_after()
            || may_have < saving.bytes
            || saving.under_way.load(Ordering::Acquire)
        {
            return None;
        }
        let bytes = known::bytes_of(&self.job, &saving.last);
        saving.at = version;
        saving.bytes = bytes.len();
        Some(bytes)
    }

    /// Saves the job while there is nothing else to do.
    pub(super) fn save_at_rest(&mut self) {
        if self.journal.is_written()
            && self.job.starts.running.is_empty()
            && let Some(bytes) = self.save_for(Occasion::Rest)
        {
            let at = self.journal.version;
            self.journal.write_saved(self.context.world, at, bytes);
        }
    }

    /// Saves the job for whoever goes on with it.
    pub(super) fn save_before_leaving(&mut self) {
        if self.journal.is_written()
            && let Some(bytes) = self.save_for(Occasion::Leaving)
        {
            let (of, at) = (&self.journal.claim.aggregate, self.journal.version);
            // Without it, going on takes longer.
            drop(self.context.world.store.save_snapshot(of, at, bytes));
        }
    }
}
