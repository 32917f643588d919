//! From decisions to records on the disk.

use undaunted_engine::decide::react;
use undaunted_engine::event::Record;
use undaunted_engine::input::Input;
use undaunted_store::Append;

use super::error::DriveError;
use super::main_loop::{Batch, Drive};
use super::news::News;
use crate::failpoint;

impl Drive<'_> {
    /// Tells the job something; what follows from it goes with the next batch.
    pub(super) fn decide(&mut self, input: &Input) {
        let records = react(&mut self.job, input, self.clock.now());
        self.pending.records.extend(records);
    }

    /// Hands the records over to be written, if there are any.
    pub(super) fn hand_over(&mut self) {
        if let Some(append) = self.close_batch() {
            let tell = self.tell.clone();
            let reached = self.version.0;
            self.world.store.submit(
                vec![append],
                Box::new(move |result| {
                    failpoint::reach("append-after", reached);
                    // Whoever no longer listens has left.
                    drop(tell.send(News::Stored(result)));
                }),
            );
        }
    }

    /// The same, and waits until they are on the disk.
    pub(super) fn write(&mut self) -> Result<(), DriveError> {
        if let Some(append) = self.close_batch() {
            let result = self.world.store.append(vec![append]);
            let failed = result.as_ref().err().cloned();
            // Batches are told of in their order, so this one is too.
            drop(self.tell.send(News::Stored(result)));
            if let Some(error) = failed {
                return Err(error.into());
            }
        }
        Ok(())
    }

    fn close_batch(&mut self) -> Option<Append> {
        if self.pending.records.is_empty() {
            return None;
        }
        let mut batch: Batch = std::mem::take(&mut self.pending);
        batch.after = self.version;
        let records = batch.records.iter().map(Record::encode);
        let append = Append::new(
            self.claim.aggregate.clone(),
            self.version,
            self.claim.epoch,
            records.collect(),
        );
        let append = append.taking(batch.taken.iter().copied());
        self.version = append.reaches();
        self.batches.push_back(batch);
        failpoint::reach("append-before", self.version.0);
        Some(append)
    }
}
